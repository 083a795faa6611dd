//! CREATE, ALTER, DROP and CALL of functions and procedures.

use super::super::ast::{ExprKind, QualName, TypeName};
use super::super::keywords::{self, Category};
use super::super::lexer::{Tok, tokens};
use super::super::routine::{
    ArgumentDef, ArgumentMode, CreateRoutine, RoutineBody, RoutineChange, RoutineKind, RoutineName, RoutineOptions,
    RoutineSetting, RoutineStatement,
};
use super::super::stmt::{Do, Statement};
use super::{Parsed, Parser, parse};
use crate::error::{Pos, Result, SqlError, code};
use std::ops::Range;

fn routine(statement: RoutineStatement) -> Statement {
    Statement::Routine(Box::new(statement))
}

/// gram.y's type_function_name.
fn may_be_parameter(category: Option<Category>) -> bool {
    matches!(category, None | Some(Category::Unreserved | Category::TypeOrFunction))
}

impl Parser<'_> {
    /// The kind of routine at the cursor, taken.
    pub(super) fn routine_kind(&mut self) -> Option<RoutineKind> {
        let kind = match self.word_at(0)? {
            "function" => RoutineKind::Function,
            "procedure" => RoutineKind::Procedure,
            "routine" => RoutineKind::Routine,
            _ => return None,
        };
        self.advance();
        Some(kind)
    }

    pub(super) fn is_routine(&self) -> bool {
        self.is_any(&["function", "procedure", "routine"])
    }

    /// Behind CREATE: FUNCTION or PROCEDURE.
    pub(super) fn create_routine(&mut self, replace: bool) -> Result<Statement> {
        let procedure = self.is("procedure");
        self.advance();
        let name = self.qual_name()?;
        let mut arguments = self.argument_defs(true)?;
        let mut returns = None;
        if !procedure && self.eat("returns") {
            if self.eat("table") {
                let columns = self.paren_list(|p| {
                    let name = Some(p.name_where(may_be_parameter)?);
                    Ok(ArgumentDef { mode: ArgumentMode::Table, name, ty: p.type_name()?, default: None })
                })?;
                arguments.extend(columns);
            } else {
                let gives_rows = self.eat("setof");
                returns = Some((self.type_name()?, gives_rows));
            }
        }
        let mut c = CreateRoutine {
            procedure,
            replace,
            name,
            arguments,
            returns,
            language: None,
            options: RoutineOptions::default(),
            body: None,
            place: None,
        };
        while self.create_option(&mut c)? {}
        if self.is("return") || self.is_seq(&["begin", "atomic"]) {
            if c.body.is_some() {
                return Err(SqlError::new("42P13", "duplicate function body specified"));
            }
            c.body = Some(RoutineBody::Atomic(self.atomic_body()?));
        }
        Ok(routine(RoutineStatement::Create(Box::new(c))))
    }

    fn atomic_body(&mut self) -> Result<String> {
        let first = self.at;
        if self.eat("return") {
            self.expr()?;
            return Ok(self.text_from(first));
        }
        self.expect_seq(&["begin", "atomic"])?;
        while !self.is("end") {
            if self.eat_punct(b';') {
                continue;
            }
            self.nested(Self::statement)?;
            self.expect_punct(b';')?;
        }
        self.advance();
        Ok(self.text_from(first))
    }

    /// `(argument, ...)`; with `defaults` they may have some.
    fn argument_defs(&mut self, defaults: bool) -> Result<Vec<ArgumentDef>> {
        self.expect_punct(b'(')?;
        if self.eat_punct(b')') {
            return Ok(Vec::new());
        }
        let list = self.comma_list(|p| p.argument_def(defaults))?;
        self.expect_punct(b')')?;
        Ok(list)
    }

    fn argument_def(&mut self, defaults: bool) -> Result<ArgumentDef> {
        let mut mode = self.argument_mode();
        let mut name = None;
        if self.names_argument() {
            name = Some(self.name_where(may_be_parameter)?);
            if mode.is_none() {
                mode = self.argument_mode();
            }
        }
        if self.is("setof") {
            return Err(SqlError::new("42P13", "functions cannot accept set arguments").at(self.pos()));
        }
        let ty: TypeName = self.type_name()?;
        let mut default = None;
        if defaults && (self.eat("default") || self.eat_op("=")) {
            let first = self.at;
            let expr = self.expr()?;
            default = Some((expr, self.text_from(first)));
        }
        Ok(ArgumentDef { mode: mode.unwrap_or_default(), name, ty, default })
    }

    fn argument_mode(&mut self) -> Option<ArgumentMode> {
        let mode = match self.word_at(0)? {
            "in" if self.word_at(1) == Some("out") => {
                self.advance();
                ArgumentMode::InOut
            }
            "in" => ArgumentMode::In,
            "out" => ArgumentMode::Out,
            "inout" => ArgumentMode::InOut,
            "variadic" => ArgumentMode::Variadic,
            _ => return None,
        };
        self.advance();
        Some(mode)
    }

    /// Whether a name stands before the type.
    fn names_argument(&self) -> bool {
        let may = match self.peek() {
            Tok::Quoted(_) => true,
            Tok::Word(w) => may_be_parameter(keywords::lookup(w).map(|k| k.0)),
            _ => false,
        };
        let type_follows = match self.peek_at(1) {
            Tok::Quoted(_) => true,
            Tok::Word(w) if self.is("double") => w != "precision",
            Tok::Word(w) => !matches!(w.as_ref(), "default" | "array"),
            _ => false,
        };
        may && type_follows
    }

    /// An attribute of a new routine; false: there are no more.
    fn create_option(&mut self, c: &mut CreateRoutine) -> Result<bool> {
        let pos = self.pos();
        let twice = || SqlError::new(code::SYNTAX_ERROR, "conflicting or redundant options").at(pos);
        if self.eat("language") {
            let language = match self.peek() {
                Tok::Str(_) => self.string()?,
                _ => self.non_reserved()?,
            };
            if c.language.replace(language).is_some() {
                return Err(twice());
            }
            return Ok(true);
        }
        if self.eat("as") {
            c.place = self.literal_place();
            let text = self.string()?;
            let second = if self.eat_punct(b',') { Some(self.string()?) } else { None };
            if c.body.replace(RoutineBody::Text(text, second)).is_some() {
                return Err(twice());
            }
            return Ok(true);
        }
        if self.is_any(&["window", "transform", "support"]) {
            let word = self.word_at(0).unwrap_or("").to_ascii_uppercase();
            return Err(self.unsupported(&format!("{word} of a function")));
        }
        self.routine_option(&mut c.options, c.procedure)
    }

    /// An attribute that ALTER may change, too; false: there is none.
    fn routine_option(&mut self, o: &mut RoutineOptions, procedure: bool) -> Result<bool> {
        let pos = self.pos();
        let of_functions = || {
            let message = "invalid attribute in procedure definition";
            if procedure { Err(SqlError::new("42P13", message).at(pos)) } else { Ok(()) }
        };
        let twice = || SqlError::new(code::SYNTAX_ERROR, "conflicting or redundant options").at(pos);
        fn put<T>(slot: &mut Option<T>, value: T, twice: impl Fn() -> SqlError) -> Result<()> {
            if slot.replace(value).is_some() { Err(twice()) } else { Ok(()) }
        }
        if let Some(word @ ("immutable" | "stable" | "volatile")) = self.word_at(0) {
            let letter = word.chars().next().unwrap_or('v');
            self.advance();
            of_functions()?;
            put(&mut o.volatility, letter, twice)?;
        } else if self.eat("strict") || self.eat_seq(&["returns", "null", "on", "null", "input"]) {
            of_functions()?;
            put(&mut o.strict, true, twice)?;
        } else if self.eat_seq(&["called", "on", "null", "input"]) {
            of_functions()?;
            put(&mut o.strict, false, twice)?;
        } else if self.eat("leakproof") {
            of_functions()?;
            put(&mut o.leakproof, true, twice)?;
        } else if self.eat_seq(&["not", "leakproof"]) {
            of_functions()?;
            put(&mut o.leakproof, false, twice)?;
        } else if self.eat_seq(&["external", "security", "definer"]) || self.eat_seq(&["security", "definer"]) {
            put(&mut o.definer, true, twice)?;
        } else if self.eat_seq(&["external", "security", "invoker"]) || self.eat_seq(&["security", "invoker"]) {
            put(&mut o.definer, false, twice)?;
        } else if self.eat("parallel") {
            let word = self.col_id()?;
            of_functions()?;
            put(&mut o.parallel, word, twice)?;
        } else if self.eat("cost") {
            let number = self.written_number()?;
            of_functions()?;
            put(&mut o.cost, number, twice)?;
        } else if self.eat("rows") {
            let number = self.written_number()?;
            of_functions()?;
            put(&mut o.rows, number, twice)?;
        } else if self.eat("set") {
            o.settings.push(self.routine_setting()?);
        } else if self.eat("reset") {
            let set = self.reset_variable()?;
            let all = set.resets_all();
            o.settings.push(if all { RoutineSetting::ResetAll } else { RoutineSetting::Reset(set.name) });
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    fn routine_setting(&mut self) -> Result<RoutineSetting> {
        if self.word_at(1) == Some("from") && self.word_at(2) == Some("current") {
            let name = self.col_id()?;
            self.expect_seq(&["from", "current"])?;
            return Ok(RoutineSetting::FromCurrent(name));
        }
        Ok(RoutineSetting::Set(self.set_variable(false)?))
    }

    /// A number with its sign, as it is written.
    fn written_number(&mut self) -> Result<String> {
        let sign = if self.eat_op("-") { "-" } else { "" };
        if sign.is_empty() {
            self.eat_op("+");
        }
        let text = match self.peek() {
            Tok::Int(_) | Tok::Num(_) => {
                let first = self.at;
                self.advance();
                self.text_from(first)
            }
            _ => return Err(self.error_here()),
        };
        Ok(format!("{sign}{text}"))
    }

    /// A routine by its name, with the types of its arguments where they are written.
    pub(super) fn routine_name(&mut self) -> Result<RoutineName> {
        let name: QualName = self.qual_name()?;
        let arguments = if self.is_punct(b'(') { Some(self.argument_defs(false)?) } else { None };
        Ok(RoutineName { name, arguments })
    }

    /// Behind DROP.
    pub(super) fn drop_routine(&mut self) -> Result<Statement> {
        let Some(kind) = self.routine_kind() else { return Err(self.error_here()) };
        let if_exists = self.if_exists();
        let names = self.comma_list(Self::routine_name)?;
        let cascade = self.cascade();
        Ok(routine(RoutineStatement::Drop { kind, names, if_exists, cascade }))
    }

    /// Behind ALTER.
    pub(super) fn alter_routine(&mut self) -> Result<Statement> {
        let Some(kind) = self.routine_kind() else { return Err(self.error_here()) };
        let routine_name = self.routine_name()?;
        let change = if self.eat_seq(&["rename", "to"]) {
            RoutineChange::Rename(self.col_id()?)
        } else if self.eat_seq(&["owner", "to"]) {
            RoutineChange::Owner(self.role_spec()?)
        } else if self.eat_seq(&["set", "schema"]) {
            RoutineChange::Schema(self.col_id()?)
        } else if self.is_seq(&["depends", "on"]) || self.is_seq(&["no", "depends"]) {
            return Err(self.unsupported("DEPENDS ON EXTENSION"));
        } else {
            let mut options = RoutineOptions::default();
            let procedure = kind == RoutineKind::Procedure;
            let mut any = false;
            while self.routine_option(&mut options, procedure)? {
                any = true;
            }
            if !any {
                return Err(self.error_here());
            }
            self.eat("restrict");
            RoutineChange::Options(options)
        };
        Ok(routine(RoutineStatement::Alter { kind, routine: routine_name, change }))
    }

    /// Behind COMMENT ON.
    pub(super) fn comment_on_routine(&mut self) -> Result<Statement> {
        let Some(kind) = self.routine_kind() else { return Err(self.error_here()) };
        let name = self.routine_name()?;
        self.expect("is")?;
        let text = if self.eat("null") { None } else { Some(self.string()?) };
        Ok(routine(RoutineStatement::Comment { kind, routine: name, text }))
    }

    /// DO.
    pub(super) fn do_block(&mut self) -> Result<Statement> {
        self.expect("do")?;
        let (mut language, mut body) = (None, None);
        let twice = |p: &Self| SqlError::new(code::SYNTAX_ERROR, "conflicting or redundant options").at(p.pos());
        loop {
            if self.is("language") {
                if language.is_some() {
                    return Err(twice(self));
                }
                self.advance();
                language = Some(match self.peek() {
                    Tok::Str(_) => self.string()?,
                    _ => self.non_reserved()?,
                });
            } else if matches!(self.peek(), Tok::Str(_)) {
                if body.is_some() {
                    return Err(twice(self));
                }
                let place = self.literal_place();
                body = Some((self.string()?, place));
            } else {
                break;
            }
        }
        let Some((body, place)) = body else {
            return Err(if language.is_some() {
                SqlError::new(code::SYNTAX_ERROR, "no inline code specified")
            } else {
                self.error_here()
            });
        };
        Ok(Statement::Do(Box::new(Do { language, body, place })))
    }

    /// Where the content of the string at the cursor begins, if it stands there as it is: between dollars, or without escapes.
    pub(super) fn literal_place(&self) -> Option<Pos> {
        let Tok::Str(content) = self.peek() else { return None };
        let token = &self.tokens[self.at];
        let raw = self.sql.get(token.start as usize..token.end as usize)?;
        let quote = match raw.as_bytes().first()? {
            b'$' => raw.get(1..)?.find('$')? + 2,
            _ => 1,
        };
        let same = raw.get(quote..quote + content.len())? == content.as_ref();
        same.then_some(token.start + quote as Pos)
    }

    /// CALL of a procedure that a user has defined.
    pub(super) fn call_routine(&mut self) -> Result<Statement> {
        self.expect("call")?;
        let pos = self.pos();
        let name = self.qual_name()?;
        let call = self.function(name)?;
        match *call.kind {
            ExprKind::Call(call) => Ok(routine(RoutineStatement::Call { call, pos })),
            _ => Err(self.error_here()),
        }
    }
}

/// The statements of a body.
///
/// # Errors
/// 42601.
pub fn statements(body: &str, atomic: bool) -> Result<Vec<Parsed>> {
    match atomic {
        true => parse(&atomic_text(body)?.0),
        false => parse(body),
    }
}

/// The statements of a body of the standard as a text of their own, and the bytes of the body in whose place they stand. RETURN is SELECT there.
///
/// # Errors
/// 42601.
pub fn atomic_text(body: &str) -> Result<(String, Range<usize>)> {
    let list = tokens(body)?;
    let bad = || SqlError::new(code::SYNTAX_ERROR, "the body of a function is neither RETURN nor BEGIN ATOMIC");
    let is = |at: usize, word: &str| matches!(list.get(at).map(|t| &t.kind), Some(Tok::Word(w)) if w == word);
    if is(0, "return") {
        let (start, from) = list.first().map_or((0, 0), |t| (t.start as usize, t.end as usize));
        return Ok((format!("SELECT{}", body.get(from..).unwrap_or("")), start..body.len()));
    }
    // The list ends with a token that stands for the end.
    let last = list.len().checked_sub(2).ok_or_else(bad)?;
    if !is(0, "begin") || !is(1, "atomic") || !is(last, "end") {
        return Err(bad());
    }
    let (from, to) = (list[1].end as usize, list[last].start as usize);
    Ok((body.get(from..to).unwrap_or("").to_owned(), from..to))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn created(text: &str) -> CreateRoutine {
        let parsed = parse(text).expect("it is a statement");
        match parsed.into_iter().next().map(|p| p.statement) {
            Some(Statement::Routine(r)) => match *r {
                RoutineStatement::Create(c) => *c,
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn arguments_are_told_from_types() {
        let c = created(
            "CREATE FUNCTION f(a int, OUT b text, double precision, x in numeric = 1, variadic v int[]) AS 'select 1' LANGUAGE sql",
        );
        let shown: Vec<_> = c.arguments.iter().map(|a| (a.mode, a.name.as_deref(), a.ty.name.name())).collect();
        use ArgumentMode as M;
        assert_eq!(
            shown,
            [
                (M::In, Some("a"), "int4"),
                (M::Out, Some("b"), "text"),
                (M::In, None, "float8"),
                (M::In, Some("x"), "numeric"),
                (M::Variadic, Some("v"), "int4")
            ]
        );
        assert_eq!(c.arguments[3].default.as_ref().map(|d| d.1.as_str()), Some("1"));
    }

    #[test]
    fn a_body_of_the_standard_is_kept_as_it_is_written() {
        let c = created(
            "CREATE FUNCTION f(a int) RETURNS int BEGIN ATOMIC SELECT 1; SELECT CASE WHEN a > 1 THEN 2 END; END",
        );
        let Some(RoutineBody::Atomic(text)) = c.body else { panic!("{c:?}") };
        assert_eq!(statements(&text, true).expect("it reads").len(), 2);
        let c = created("CREATE OR REPLACE FUNCTION f(a int) RETURNS int IMMUTABLE RETURN a + 1");
        let Some(RoutineBody::Atomic(text)) = c.body else { panic!("{c:?}") };
        assert_eq!((text.as_str(), c.options.volatility, c.replace), ("RETURN a + 1", Some('i'), true));
        assert_eq!(statements(&text, true).expect("it reads").len(), 1);
    }

    #[test]
    fn an_option_is_said_once() {
        let refused = parse("CREATE FUNCTION f() RETURNS int LANGUAGE sql STABLE VOLATILE AS 'select 1'");
        assert_eq!(refused.map_err(|e| e.code()).err(), Some("42601"));
    }
}
