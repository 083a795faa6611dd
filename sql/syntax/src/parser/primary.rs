//! Operands: constants, names, calls, parentheses, and the functions that have syntax of their own.

use super::super::ast::{BareFunction, Call, Expr, ExprKind, Literal, QualName, TypeName};
use super::super::keywords::{self, Category};
use super::super::lexer::Tok;
use super::Parser;
use super::operators::level;
use crate::error::{Pos, Result, SqlError, code};

impl Parser<'_> {
    /// gram.y's c_expr without what follows it.
    pub(super) fn primary(&mut self) -> Result<Expr> {
        let pos = self.pos();
        let literal = match self.peek() {
            Tok::Int(digits) => match digits.parse() {
                Ok(n) => Literal::Int(n),
                Err(_) => Literal::Number((*digits).to_owned()),
            },
            Tok::Num(text) => Literal::Number((*text).to_owned()),
            Tok::Str(s) => Literal::Str(s.to_string()),
            Tok::Param(n) => {
                let n = *n;
                self.advance();
                return self.node(ExprKind::Param(n), pos);
            }
            Tok::BitStr(text) => {
                // `b'01'`: the text is read as PostgreSQL's bit_in reads it, with its kind first.
                let text = text.replace('\'', "");
                let name = QualName { parts: vec!["pg_catalog".to_owned(), "bit".to_owned()], pos };
                self.advance();
                return self.cast_text(TypeName { name, modifiers: Vec::new(), array_dims: 0 }, text, pos);
            }
            Tok::Punct(b'(') => return self.parenthesis(),
            Tok::Quoted(_) => return self.name_or_call(),
            Tok::Word(w) => {
                let category = keywords::lookup(w).map(|k| k.0);
                return match category {
                    None => self.name_or_call(),
                    Some(category) => {
                        let word = w.to_string();
                        self.keyword(&word, category)
                    }
                };
            }
            _ => return Err(self.error_here()),
        };
        self.advance();
        self.node(ExprKind::Literal(literal), pos)
    }

    fn keyword(&mut self, word: &str, category: Category) -> Result<Expr> {
        let pos = self.pos();
        let bare = match word {
            "null" => return self.literal(Literal::Null),
            "true" => return self.literal(Literal::Bool(true)),
            "false" => return self.literal(Literal::Bool(false)),
            "default" => {
                self.advance();
                return self.node(ExprKind::Default, pos);
            }
            "case" => return self.case(),
            "array" => return self.array(),
            "current_date" => BareFunction::CurrentDate,
            "current_timestamp" => {
                self.advance();
                let precision = self.opt_precision()?;
                return self.node(ExprKind::Bare(BareFunction::CurrentTimestamp(precision)), pos);
            }
            "localtimestamp" => {
                self.advance();
                let precision = self.opt_precision()?;
                return self.node(ExprKind::Bare(BareFunction::LocalTimestamp(precision)), pos);
            }
            "current_user" => BareFunction::CurrentUser,
            "current_role" => BareFunction::CurrentRole,
            "user" => BareFunction::User,
            "session_user" => BareFunction::SessionUser,
            "current_catalog" => BareFunction::CurrentCatalog,
            "current_schema" if *self.peek_at(1) != Tok::Punct(b'(') => BareFunction::CurrentSchema,
            "current_time" | "localtime" => {
                let zoned = word == "current_time";
                self.advance();
                let precision = self.opt_precision()?;
                let function =
                    if zoned { BareFunction::CurrentTime(precision) } else { BareFunction::LocalTime(precision) };
                return self.node(ExprKind::Bare(function), pos);
            }
            _ => return self.keyword_form(word, category),
        };
        self.advance();
        self.node(ExprKind::Bare(bare), pos)
    }

    fn opt_precision(&mut self) -> Result<Option<i32>> {
        if !self.eat_punct(b'(') {
            return Ok(None);
        }
        let pos = self.pos();
        let value = self.signed_int()?;
        self.expect_punct(b')')?;
        match i32::try_from(value) {
            Ok(n) if n >= 0 => Ok(Some(n)),
            _ => Err(SqlError::new(
                code::INVALID_PARAMETER_VALUE,
                format!("TIMESTAMP({value}) precision must not be negative"),
            )
            .at(pos)),
        }
    }

    /// Keywords that open a form with parentheses, and those that may be names after all.
    fn keyword_form(&mut self, word: &str, category: Category) -> Result<Expr> {
        let pos = self.pos();
        if self.is_standard_type() && !self.is_bare_name() {
            return self.typed_literal();
        }
        let open = *self.peek_at(1) == Tok::Punct(b'(');
        let special = open
            && matches!(
                word,
                "exists"
                    | "cast"
                    | "coalesce"
                    | "greatest"
                    | "least"
                    | "nullif"
                    | "row"
                    | "extract"
                    | "position"
                    | "substring"
                    | "trim"
                    | "overlay"
            );
        if special {
            return self.special(word);
        }
        if open && word == "grouping" {
            self.advance();
            let list = self.paren_list(|p| p.expr())?;
            return self.node(ExprKind::Grouping(list), pos);
        }
        if word == "collation" && self.word_at(1) == Some("for") {
            self.advance();
            self.advance();
            self.expect_punct(b'(')?;
            let of = self.expr()?;
            self.expect_punct(b')')?;
            return self.call("pg_collation_for", vec![of], pos);
        }
        if open && word == "normalize" {
            return self.normalize();
        }
        let refused = matches!(word, "treat" | "setof") || word.starts_with("xml");
        if open && refused && category == Category::ColumnName {
            return Err(self.unsupported(&word.to_ascii_uppercase()));
        }
        match category {
            Category::Unreserved | Category::ColumnName => self.name_or_call(),
            Category::TypeOrFunction if open => self.name_or_call(),
            _ => Err(self.error_here()),
        }
    }

    /// Whether a type's keyword is the name of a column here: nothing of a literal follows.
    fn is_bare_name(&self) -> bool {
        let next = self.word_at(1);
        let goes_on = matches!(next, Some("varying" | "with" | "without" | "precision" | "char" | "character"));
        !goes_on && !matches!(self.peek_at(1), Tok::Str(_) | Tok::Punct(b'('))
    }

    fn literal(&mut self, literal: Literal) -> Result<Expr> {
        let pos = self.pos();
        self.advance();
        self.node(ExprKind::Literal(literal), pos)
    }

    /// `timestamp '2020-01-01'`, or a function or column that bears the keyword's name.
    fn typed_literal(&mut self) -> Result<Expr> {
        let mut to = self.type_name()?;
        let at = self.pos();
        let text = self.string()?;
        if to.name.name() == "interval" && to.modifiers.is_empty() {
            to.modifiers = self.interval_fields()?;
        }
        self.cast_text(to, text, at)
    }

    fn cast_text(&mut self, to: TypeName, text: String, at: Pos) -> Result<Expr> {
        let pos = to.name.pos;
        let arg = self.node(ExprKind::Literal(Literal::Str(text)), at)?;
        self.node(ExprKind::Cast { arg, to }, pos)
    }

    /// `a.b.c`, `f(...)`, or `type 'text'`.
    fn name_or_call(&mut self) -> Result<Expr> {
        let pos = self.pos();
        let mut parts = vec![self.col_label()?];
        while self.is_punct(b'.') {
            if matches!(self.peek_at(1), Tok::Op("*")) {
                // A whole row: its relation's name, where no column has it.
                self.advance();
                self.advance();
                let relation = self.node(ExprKind::Column(QualName { parts, pos }), pos)?;
                return self.node(ExprKind::AllFields(relation), pos);
            }
            self.advance();
            parts.push(self.col_label()?);
        }
        let name = QualName { parts, pos };
        if self.is_punct(b'(') {
            return self.function(name);
        }
        if let Tok::Str(s) = self.peek() {
            let (text, at) = (s.to_string(), self.pos());
            self.advance();
            return self.cast_text(TypeName { name, modifiers: Vec::new(), array_dims: 0 }, text, at);
        }
        if name.parts.len() > 4 {
            let message = format!("improper qualified name (too many dotted names): {}", name.dotted());
            return Err(SqlError::new(code::SYNTAX_ERROR, message).at(pos));
        }
        self.node(ExprKind::Column(name), pos)
    }

    pub(super) fn function(&mut self, name: QualName) -> Result<Expr> {
        let pos = name.pos;
        self.expect_punct(b'(')?;
        let mut call = Call::new(name, Vec::new());
        if matches!(self.peek(), Tok::Op("*")) {
            self.advance();
            call.star = true;
        } else if !self.is_punct(b')') {
            call.distinct = self.eat("distinct");
            if !call.distinct {
                self.eat("all");
            }
            loop {
                call.variadic = self.eat("variadic");
                let (name, arg) = self.argument()?;
                if name.is_none() && !call.names.is_empty() {
                    let message = "positional argument cannot follow named argument";
                    return Err(SqlError::new(code::SYNTAX_ERROR, message).at(arg.pos));
                }
                call.names.extend(name);
                call.args.push(arg);
                if call.variadic || !self.eat_punct(b',') {
                    break;
                }
            }
            if self.is("order") {
                call.order_by = self.order_by()?;
            }
        }
        self.expect_punct(b')')?;
        if self.is_seq(&["within", "group"]) {
            self.within_group(&mut call)?;
        }
        if self.is("filter") && *self.peek_at(1) == Tok::Punct(b'(') {
            self.advance();
            self.expect_punct(b'(')?;
            self.expect("where")?;
            call.filter = Some(self.expr()?);
            self.expect_punct(b')')?;
        }
        call.over = self.opt_over()?;
        self.node(ExprKind::Call(call), pos)
    }

    fn within_group(&mut self, call: &mut Call) -> Result<()> {
        let at = self.pos();
        let refused = if !call.order_by.is_empty() {
            Some("cannot use multiple ORDER BY clauses with WITHIN GROUP")
        } else if call.distinct {
            Some("cannot use DISTINCT with WITHIN GROUP")
        } else if call.variadic {
            Some("cannot use VARIADIC with WITHIN GROUP")
        } else {
            None
        };
        if let Some(message) = refused {
            return Err(SqlError::new(code::SYNTAX_ERROR, message).at(at));
        }
        self.expect_seq(&["within", "group"])?;
        self.expect_punct(b'(')?;
        call.order_by = self.order_by()?;
        self.expect_punct(b')')?;
        call.within_group = true;
        Ok(())
    }

    /// An argument, and its name where it is given by name.
    fn argument(&mut self) -> Result<(Option<String>, Expr)> {
        if !matches!(self.peek_at(1), Tok::ColonEquals | Tok::EqualsGreater) || !self.is_col_id() {
            return Ok((None, self.expr()?));
        }
        let name = self.col_id()?;
        self.advance();
        Ok((Some(name), self.expr()?))
    }

    fn special(&mut self, word: &str) -> Result<Expr> {
        let pos = self.pos();
        self.advance();
        self.expect_punct(b'(')?;
        let kind = match word {
            "exists" => {
                if !self.is_query_start() && !self.is_punct(b'(') {
                    return Err(self.error_here());
                }
                return match self.subquery_tail() {
                    Ok(query) => self.node(ExprKind::Exists(query), pos),
                    Err(e) => Err(e),
                };
            }
            "cast" => {
                let arg = self.expr()?;
                self.expect("as")?;
                let to = self.type_name()?;
                ExprKind::Cast { arg, to }
            }
            "coalesce" => ExprKind::Coalesce(self.comma_list(|p| p.expr())?),
            "greatest" => ExprKind::Greatest(self.comma_list(|p| p.expr())?),
            "least" => ExprKind::Least(self.comma_list(|p| p.expr())?),
            "nullif" => {
                let left = self.expr()?;
                self.expect_punct(b',')?;
                ExprKind::NullIf(left, self.expr()?)
            }
            "row" => {
                let list = if self.is_punct(b')') { Vec::new() } else { self.comma_list(|p| p.expr())? };
                ExprKind::Row(list)
            }
            "extract" => return self.extract(pos),
            "trim" => return self.trim(pos),
            _ => return self.string_function(word, pos),
        };
        self.expect_punct(b')')?;
        self.node(kind, pos)
    }

    fn extract(&mut self, pos: Pos) -> Result<Expr> {
        let at = self.pos();
        let field = match self.peek() {
            Tok::Word(w) | Tok::Quoted(w) | Tok::Str(w) => w.to_string(),
            _ => return Err(self.error_here()),
        };
        self.advance();
        self.expect("from")?;
        let source = self.expr()?;
        self.expect_punct(b')')?;
        let field = self.node(ExprKind::Literal(Literal::Str(field)), at)?;
        self.call("extract", vec![field, source], pos)
    }

    fn trim(&mut self, pos: Pos) -> Result<Expr> {
        let name = if self.eat("leading") {
            "ltrim"
        } else if self.eat("trailing") {
            "rtrim"
        } else {
            self.eat("both");
            "btrim"
        };
        let mut args = Vec::new();
        if self.eat("from") {
            args = self.comma_list(|p| p.expr())?;
        } else {
            let first = self.expr()?;
            if self.eat("from") {
                args = self.comma_list(|p| p.expr())?;
                args.push(first);
            } else {
                args.push(first);
                while self.eat_punct(b',') {
                    args.push(self.expr()?);
                }
            }
        }
        self.expect_punct(b')')?;
        self.call(name, args, pos)
    }

    /// POSITION(a IN b), SUBSTRING(a FROM b FOR c), OVERLAY(a PLACING b FROM c FOR d), or their plain forms.
    fn string_function(&mut self, word: &str, pos: Pos) -> Result<Expr> {
        let first = if word == "position" { self.operand(level::OTHER)? } else { self.expr()? };
        let mut args = vec![first];
        match word {
            "position" => {
                self.expect("in")?;
                args.insert(0, self.operand(level::OTHER)?);
            }
            "overlay" if self.eat("placing") => {
                args.push(self.expr()?);
                self.expect("from")?;
                args.push(self.expr()?);
                if self.eat("for") {
                    args.push(self.expr()?);
                }
            }
            "substring" if self.is("from") || self.is("for") => {
                let mut length = None;
                let mut start = None;
                while start.is_none() || length.is_none() {
                    if start.is_none() && self.eat("from") {
                        start = Some(self.expr()?);
                    } else if length.is_none() && self.eat("for") {
                        length = Some(self.expr()?);
                    } else {
                        break;
                    }
                }
                let start = match start {
                    Some(start) => start,
                    None => self.node(ExprKind::Literal(Literal::Int(1)), pos)?,
                };
                args.push(start);
                args.extend(length);
            }
            "substring" if self.eat("similar") => {
                args.push(self.expr()?);
                self.expect("escape")?;
                args.push(self.expr()?);
            }
            _ => {
                while self.eat_punct(b',') {
                    args.push(self.expr()?);
                }
            }
        }
        self.expect_punct(b')')?;
        self.call(word, args, pos)
    }

    fn case(&mut self) -> Result<Expr> {
        let pos = self.pos();
        self.advance();
        let arg = if self.is("when") { None } else { Some(self.expr()?) };
        let mut whens = Vec::new();
        while self.eat("when") {
            let when = self.expr()?;
            self.expect("then")?;
            whens.push((when, self.expr()?));
        }
        if whens.is_empty() {
            return Err(self.error_here());
        }
        let otherwise = if self.eat("else") { Some(self.expr()?) } else { None };
        self.expect("end")?;
        self.node(ExprKind::Case { arg, whens, otherwise }, pos)
    }

    fn array(&mut self) -> Result<Expr> {
        let pos = self.pos();
        self.advance();
        if self.eat_punct(b'(') {
            let query = self.subquery_tail()?;
            return self.node(ExprKind::ArrayQuery(query), pos);
        }
        self.array_elements(pos)
    }

    fn array_elements(&mut self, pos: Pos) -> Result<Expr> {
        self.expect_punct(b'[')?;
        let list = if self.is_punct(b']') {
            Vec::new()
        } else {
            self.comma_list(|p| {
                let at = p.pos();
                if p.is_punct(b'[') { p.nested(|p| p.array_elements(at)) } else { p.expr() }
            })?
        };
        self.expect_punct(b']')?;
        self.node(ExprKind::Array(list), pos)
    }

    /// Behind `(`: a subquery, one expression, or a row.
    fn parenthesis(&mut self) -> Result<Expr> {
        let pos = self.pos();
        self.advance();
        if self.is_query_start() {
            let query = self.subquery_tail()?;
            return self.node(ExprKind::Subquery(query), pos);
        }
        let first = self.expr()?;
        if self.is_punct(b',') {
            let mut list = vec![first];
            while self.eat_punct(b',') {
                list.push(self.expr()?);
            }
            self.expect_punct(b')')?;
            return self.node(ExprKind::Row(list), pos);
        }
        // ((SELECT ...) UNION ...): what looked like an operand was the left side of a query.
        if self.is_query_continuation() && matches!(*first.kind, ExprKind::Subquery(_)) {
            let ExprKind::Subquery(query) = *first.kind else {
                return Err(self.error_here());
            };
            let query = self.continue_query(*query)?;
            self.expect_punct(b')')?;
            return self.node(ExprKind::Subquery(Box::new(query)), pos);
        }
        self.expect_punct(b')')?;
        Ok(first)
    }
}
