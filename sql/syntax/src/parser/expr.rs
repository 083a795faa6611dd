//! Expressions with operators, by precedence climbing.

use super::super::ast::{AnyOf, Call, Expr, ExprKind, Index, LikeKind, Literal, QualName, Truth};
use super::super::lexer::Tok;
use super::Parser;
use super::operators::{binary_level, level};
use crate::error::{Pos, Result, SqlError, code};

/// The normal forms of Unicode that NORMALIZE and IS NORMALIZED name.
const NORMAL_FORMS: [&str; 4] = ["nfc", "nfd", "nfkc", "nfkd"];

/// What stands between two operands.
enum Infix {
    Or,
    And,
    Is,
    /// ISNULL (false), NOTNULL (true).
    Postfix(bool),
    Binary(String),
    /// BETWEEN, IN, LIKE, ILIKE, SIMILAR, with NOT before it.
    Match(bool),
    AtTimeZone,
    Collate,
    /// `(a, b) OVERLAPS (c, d)`
    Overlaps,
}

impl Parser<'_> {
    /// gram.y's a_expr.
    pub(super) fn expr(&mut self) -> Result<Expr> {
        self.nested(|p| p.expr_above(level::OR))
    }

    /// About gram.y's b_expr: what a default may be, where a following NOT NULL is not part of it.
    pub(super) fn restricted_expr(&mut self) -> Result<Expr> {
        self.nested(|p| {
            let left = p.expr_above(level::OTHER)?;
            match p.infix() {
                Some((infix @ Infix::Binary(_), level::COMPARE)) => p.apply(infix, left),
                _ => Ok(left),
            }
        })
    }

    /// An expression whose operators all bind at least as tightly as `min`.
    fn expr_above(&mut self, min: u8) -> Result<Expr> {
        let first = self.at;
        let mut left = self.prefix()?;
        let mut last_nonassoc = 0;
        while let Some((infix, at)) = self.infix() {
            if at < min {
                break;
            }
            if at == last_nonassoc {
                return Err(self.error_here());
            }
            left = self.apply(infix, left)?;
            self.note_operation(first, left.pos);
            let ends_with_operand = match &*left.kind {
                ExprKind::Binary { .. } => at == level::COMPARE,
                ExprKind::IsDistinct { .. } | ExprKind::Between { .. } | ExprKind::Like { .. } => true,
                _ => false,
            };
            last_nonassoc = if ends_with_operand { at } else { 0 };
        }
        Ok(left)
    }

    pub(super) fn operand(&mut self, min: u8) -> Result<Expr> {
        self.nested(|p| p.expr_above(min))
    }

    fn prefix(&mut self) -> Result<Expr> {
        let pos = self.pos();
        if self.eat("not") {
            let arg = self.operand(level::NOT)?;
            return self.node(ExprKind::Not(arg), pos);
        }
        if self.is_qualified_operator() {
            let op = self.qualified_operator()?;
            let arg = self.operand(level::ADD)?;
            return self.node(ExprKind::Unary { op, arg }, pos);
        }
        let first = self.at;
        let Tok::Op(op) = self.peek() else {
            return self.postfix();
        };
        let op = (*op).to_owned();
        match op.as_str() {
            "+" | "-" => {
                self.advance();
                let arg = self.operand(level::SIGN)?;
                self.note_operation(first, pos);
                self.signed(&op, arg, pos)
            }
            "<" | ">" | "=" | "<=" | ">=" | "<>" | "*" | "/" | "%" | "^" => Err(self.error_here()),
            _ => {
                self.advance();
                let arg = self.operand(level::ADD)?;
                self.node(ExprKind::Unary { op, arg }, pos)
            }
        }
    }

    /// A sign before a number belongs to it, as gram.y's doNegate has it.
    fn signed(&mut self, op: &str, arg: Expr, pos: Pos) -> Result<Expr> {
        if op == "-" {
            let folded = match &*arg.kind {
                ExprKind::Literal(Literal::Int(n)) => Some(match n.checked_neg() {
                    Some(n) => Literal::Int(n),
                    None => Literal::Number(n.unsigned_abs().to_string()),
                }),
                ExprKind::Literal(Literal::Number(n)) => Some(match n.strip_prefix('-') {
                    Some(positive) => Literal::Number(positive.to_owned()),
                    None => match format!("-{n}").parse::<i64>() {
                        Ok(min) => Literal::Int(min),
                        Err(_) => Literal::Number(format!("-{n}")),
                    },
                }),
                _ => None,
            };
            if let Some(literal) = folded {
                return self.node(ExprKind::Literal(literal), pos);
            }
        }
        self.node(ExprKind::Unary { op: op.to_owned(), arg }, pos)
    }

    /// The infix at the cursor with its level; takes nothing.
    fn infix(&self) -> Option<(Infix, u8)> {
        Some(match self.peek() {
            Tok::Op(op) => (Infix::Binary((*op).to_owned()), binary_level(op)),
            Tok::Word(w) => match w.as_ref() {
                "or" => (Infix::Or, level::OR),
                "and" => (Infix::And, level::AND),
                "is" => (Infix::Is, level::IS),
                "isnull" => (Infix::Postfix(false), level::IS),
                "notnull" => (Infix::Postfix(true), level::IS),
                "between" | "in" | "like" | "ilike" => (Infix::Match(false), level::MATCH),
                // SUBSTRING(a SIMILAR b ESCAPE c) has the word behind an operand, too.
                "similar" if self.word_at(1) == Some("to") => (Infix::Match(false), level::MATCH),
                "overlaps" => (Infix::Overlaps, level::MATCH),
                "not" if matches!(self.word_at(1), Some("between" | "in" | "like" | "ilike" | "similar")) => {
                    (Infix::Match(true), level::MATCH)
                }
                "operator" if *self.peek_at(1) == Tok::Punct(b'(') => (Infix::Binary(String::new()), level::OTHER),
                "at" if self.is_seq(&["at", "time", "zone"]) => (Infix::AtTimeZone, level::AT),
                "collate" => (Infix::Collate, level::COLLATE),
                _ => return None,
            },
            _ => return None,
        })
    }

    fn apply(&mut self, infix: Infix, left: Expr) -> Result<Expr> {
        let pos = self.pos();
        match infix {
            Infix::Or => {
                let mut list = vec![left];
                while self.eat("or") {
                    list.push(self.operand(level::AND)?);
                }
                self.node(ExprKind::Or(list), pos)
            }
            Infix::And => {
                let mut list = vec![left];
                while self.eat("and") {
                    list.push(self.operand(level::NOT)?);
                }
                self.node(ExprKind::And(list), pos)
            }
            Infix::Is => self.is_test(left, pos),
            Infix::Postfix(negated) => {
                self.advance();
                self.node(ExprKind::IsNull { arg: left, negated }, pos)
            }
            Infix::Binary(op) => {
                let op = if op.is_empty() {
                    self.qualified_operator()?
                } else {
                    self.advance();
                    op
                };
                if self.is_any(&["any", "some", "all"]) && *self.peek_at(1) == Tok::Punct(b'(') {
                    return self.quantified(left, op, pos);
                }
                let right = self.operand(binary_level(&op) + 1)?;
                self.node(ExprKind::Binary { op, left, right }, pos)
            }
            Infix::Match(negated) => {
                if negated {
                    self.advance();
                }
                self.match_test(left, negated, pos)
            }
            Infix::Overlaps => {
                self.advance();
                let right = self.operand(level::OTHER)?;
                self.overlaps(left, right, pos)
            }
            Infix::AtTimeZone => {
                self.advance();
                self.advance();
                self.advance();
                let zone = self.operand(level::COLLATE)?;
                self.call("timezone", vec![zone, left], pos)
            }
            Infix::Collate => {
                self.advance();
                let collation = self.any_name()?;
                self.node(ExprKind::Collate { arg: left, collation }, pos)
            }
        }
    }

    /// `(a, b) OVERLAPS (c, d)`.
    fn overlaps(&mut self, left: Expr, right: Expr, pos: Pos) -> Result<Expr> {
        let mut args = Vec::new();
        for (side, at) in [(left, "left"), (right, "right")] {
            match *side.kind {
                ExprKind::Row(pair) if pair.len() == 2 => args.extend(pair),
                ExprKind::Row(_) => {
                    let message = format!("wrong number of parameters on {at} side of OVERLAPS expression");
                    return Err(SqlError::new(code::SYNTAX_ERROR, message).at(side.pos));
                }
                _ => return Err(SqlError::new(code::SYNTAX_ERROR, "syntax error at or near \"OVERLAPS\"").at(pos)),
            }
        }
        self.call("overlaps", args, pos)
    }

    /// A call of a function that syntax of its own stands for.
    pub(super) fn call(&mut self, name: &str, args: Vec<Expr>, pos: Pos) -> Result<Expr> {
        let name = QualName { parts: vec!["pg_catalog".to_owned(), name.to_owned()], pos };
        self.node(ExprKind::Call(Call::new(name, args)), pos)
    }

    fn any_name(&mut self) -> Result<QualName> {
        self.qual_name()
    }

    /// `OPERATOR(pg_catalog.=)`: the name with its schema before it.
    pub(super) fn qualified_operator(&mut self) -> Result<String> {
        self.expect("operator")?;
        self.expect_punct(b'(')?;
        let name = self.any_operator()?;
        self.expect_punct(b')')?;
        Ok(name.parts.join("."))
    }

    /// Whether OPERATOR(...) stands at the cursor; a function may have the name, too.
    fn is_qualified_operator(&self) -> bool {
        let mut at = 2;
        while *self.peek_at(at + 1) == Tok::Punct(b'.') {
            at += 2;
        }
        self.is("operator") && *self.peek_at(1) == Tok::Punct(b'(') && matches!(self.peek_at(at), Tok::Op(_))
    }

    fn is_test(&mut self, arg: Expr, pos: Pos) -> Result<Expr> {
        self.expect("is")?;
        let negated = self.eat("not");
        let kind = if self.eat("null") {
            ExprKind::IsNull { arg, negated }
        } else if self.eat("true") {
            ExprKind::IsTruth { arg, truth: Truth::True, negated }
        } else if self.eat("false") {
            ExprKind::IsTruth { arg, truth: Truth::False, negated }
        } else if self.eat("unknown") {
            ExprKind::IsTruth { arg, truth: Truth::Unknown, negated }
        } else if self.eat_seq(&["distinct", "from"]) {
            let right = self.operand(level::COMPARE)?;
            ExprKind::IsDistinct { left: arg, right, negated }
        } else if let Some(form) = self.normal_form() {
            return self.normal_test(arg, form, negated, pos);
        } else if self.is_any(&["of", "document", "json"]) {
            return Err(self.unsupported("this form of IS"));
        } else {
            return Err(self.error_here());
        };
        self.node(kind, pos)
    }

    /// The form of `IS NFC NORMALIZED` at the cursor; the inner one is none where none is written.
    fn normal_form(&self) -> Option<Option<String>> {
        let form = self.word_at(0).filter(|word| NORMAL_FORMS.contains(word)).map(str::to_owned);
        let normalized = self.word_at(usize::from(form.is_some())) == Some("normalized");
        normalized.then_some(form)
    }

    /// `IS NORMALIZED`: a call of the function that computes it.
    fn normal_test(&mut self, arg: Expr, form: Option<String>, negated: bool, pos: Pos) -> Result<Expr> {
        let mut args = vec![arg];
        if let Some(form) = form {
            let at = self.pos();
            self.advance();
            args.push(self.node(ExprKind::Literal(Literal::Str(form.to_ascii_uppercase())), at)?);
        }
        self.expect("normalized")?;
        let test = self.call("is_normalized", args, pos)?;
        if negated { self.node(ExprKind::Not(test), pos) } else { Ok(test) }
    }

    /// `NORMALIZE(text, NFC)`.
    pub(super) fn normalize(&mut self) -> Result<Expr> {
        let pos = self.pos();
        self.advance();
        self.expect_punct(b'(')?;
        let mut args = vec![self.expr()?];
        if self.eat_punct(b',') {
            let at = self.pos();
            let form = self.word_at(0).filter(|word| NORMAL_FORMS.contains(word)).map(str::to_ascii_uppercase);
            let form = form.ok_or_else(|| self.error_here())?;
            self.advance();
            args.push(self.node(ExprKind::Literal(Literal::Str(form)), at)?);
        }
        self.expect_punct(b')')?;
        self.call("normalize", args, pos)
    }

    fn match_test(&mut self, arg: Expr, negated: bool, pos: Pos) -> Result<Expr> {
        if self.eat("between") {
            let symmetric = self.eat("symmetric") || {
                self.eat("asymmetric");
                false
            };
            let low = self.operand(level::OTHER)?;
            self.expect("and")?;
            let high = self.operand(level::OTHER)?;
            return self.node(ExprKind::Between { arg, low, high, negated, symmetric }, pos);
        }
        if self.eat("in") {
            return self.in_test(arg, negated, pos);
        }
        if self.eat("similar") {
            return self.similar_test(arg, negated, pos);
        }
        let kind = if self.eat("ilike") { LikeKind::ILike } else { LikeKind::Like };
        if kind == LikeKind::Like {
            self.eat("like");
        }
        if self.is_any(&["any", "some", "all"]) && *self.peek_at(1) == Tok::Punct(b'(') {
            let op = match (kind, negated) {
                (LikeKind::Like, false) => "~~",
                (LikeKind::Like, true) => "!~~",
                (LikeKind::ILike, false) => "~~*",
                (LikeKind::ILike, true) => "!~~*",
            };
            return self.quantified(arg, op.to_owned(), pos);
        }
        let pattern = self.operand(level::OTHER)?;
        let escape = if self.eat("escape") { Some(self.operand(level::OTHER)?) } else { None };
        self.node(ExprKind::Like { arg, pattern, escape, kind, negated }, pos)
    }

    /// `a SIMILAR TO b ESCAPE c`, behind its first word: a match with the regular expression that the pattern stands for.
    fn similar_test(&mut self, arg: Expr, negated: bool, pos: Pos) -> Result<Expr> {
        self.expect("to")?;
        let mut pattern = vec![self.operand(level::OTHER)?];
        if self.eat("escape") {
            pattern.push(self.operand(level::OTHER)?);
        }
        let right = self.call("similar_to_escape", pattern, pos)?;
        let op = if negated { "!~" } else { "~" }.to_owned();
        self.node(ExprKind::Binary { op, left: arg, right }, pos)
    }

    fn in_test(&mut self, arg: Expr, negated: bool, pos: Pos) -> Result<Expr> {
        self.expect_punct(b'(')?;
        if self.is_query_start() {
            let query = self.subquery_tail()?;
            return self.node(ExprKind::InQuery { arg, query, negated }, pos);
        }
        let mut list = self.comma_list(|p| p.expr())?;
        if list.len() == 1 && matches!(*list[0].kind, ExprKind::Subquery(_)) {
            let only = list.remove(0);
            let ExprKind::Subquery(query) = *only.kind else {
                return Err(self.error_here());
            };
            let query = self.continue_query(*query)?;
            self.expect_punct(b')')?;
            return self.node(ExprKind::InQuery { arg, query: Box::new(query), negated }, pos);
        }
        self.expect_punct(b')')?;
        self.node(ExprKind::InList { arg, list, negated }, pos)
    }

    fn quantified(&mut self, left: Expr, op: String, pos: Pos) -> Result<Expr> {
        let all = self.is("all");
        self.advance();
        self.expect_punct(b'(')?;
        let right = if self.is_query_start() {
            AnyOf::Query(self.subquery_tail()?)
        } else {
            let array = self.expr()?;
            self.expect_punct(b')')?;
            AnyOf::Array(array)
        };
        self.node(ExprKind::Quantified { left, op, all, right }, pos)
    }

    /// A primary with subscripts and `::` casts.
    fn postfix(&mut self) -> Result<Expr> {
        let bare_array = self.is("array");
        let mut arg = self.primary()?;
        loop {
            let pos = self.pos();
            if *self.peek() == Tok::Typecast {
                self.advance();
                let to = self.type_name()?;
                arg = self.node(ExprKind::Cast { arg, to }, pos)?;
            } else if self.is_punct(b'[') && !bare_array {
                let mut index = Vec::new();
                while self.eat_punct(b'[') {
                    index.push(self.index()?);
                }
                arg = self.node(ExprKind::Subscript { arg, index }, pos)?;
            } else if self.is_punct(b'.') {
                self.advance();
                if matches!(self.peek(), Tok::Op("*")) {
                    self.advance();
                    arg = self.node(ExprKind::AllFields(arg), pos)?;
                    continue;
                }
                let name = self.col_label()?;
                arg = self.node(ExprKind::Field { arg, name }, pos)?;
            } else {
                return Ok(arg);
            }
        }
    }

    /// A subscript, behind its bracket.
    pub(super) fn index(&mut self) -> Result<Index> {
        let low = if self.is_punct(b':') { None } else { Some(self.expr()?) };
        let index = if self.eat_punct(b':') {
            let high = if self.is_punct(b']') { None } else { Some(self.expr()?) };
            Index::Slice(low, high)
        } else {
            match low {
                Some(at) => Index::At(at),
                None => return Err(self.error_here()),
            }
        };
        self.expect_punct(b']')?;
        Ok(index)
    }
}
