//! Cursor variables: their declarations, OPEN, FETCH, MOVE, CLOSE, and loops over them.
//!
//! Source: PostgreSQL 15's pl_gram.y: `decl_cursor_args`, `read_cursor_args`, `read_fetch_direction`.

use super::names::Slot;
use super::parser::{Parser, SELECT};
use super::tree::{
    BoundQuery, Direction, Distance, Fragment, FragmentKind, Opened, Rows, StmtKind, Variable, VariableKind,
};
use crate::error::{Result, SqlError, code};
use crate::lexer::Tok;
use std::sync::Arc;

impl Parser<'_> {
    /// `[NO] SCROLL`, if it is there.
    fn scroll(&mut self) -> Result<Option<bool>> {
        if self.eat("no") {
            self.expect("scroll")?;
            return Ok(Some(false));
        }
        Ok(self.eat("scroll").then_some(true))
    }

    /// A cursor variable that is bound to a query; its name is taken.
    pub(super) fn cursor_declaration(&mut self, name: &str) -> Result<Slot> {
        let line = self.line();
        let scroll = self.scroll()?;
        self.expect("cursor")?;
        let outer = self.place;
        self.place = self.names.level(outer, Some(name.to_owned()), false);
        let mut arguments = Vec::new();
        if self.eat_punct(b'(') {
            loop {
                let argument = self.name()?;
                let kind = self.variable_type()?;
                let slot = self.variable(&argument, kind);
                self.place = self.names.declare(self.place, &argument, slot);
                arguments.push(slot);
                if !self.eat_punct(b',') {
                    break;
                }
            }
            if !self.eat_punct(b')') {
                return Err(self.error_here());
            }
        }
        if !self.eat("is") {
            self.expect("for")?;
        }
        let query = self.statement_before_semicolon()?;
        self.place = outer;
        let slot = self.variable(name, VariableKind::Cursor);
        let variable = &mut self.variables[slot];
        (variable.line, variable.query) = (line, Some(Arc::new(BoundQuery { query, arguments, scroll })));
        self.place = self.names.declare(self.place, name, slot);
        Ok(slot)
    }

    fn statement_before_semicolon(&mut self) -> Result<Fragment> {
        let end = self.find_end(|tok| *tok == Tok::Punct(b';'), ";", "statement")?;
        let statement = self.statement_between(self.at, end.token)?;
        self.at = end.token;
        self.semicolon()?;
        Ok(statement)
    }

    /// Whether a variable is of type refcursor; that of a column's type is not known here.
    fn is_refcursor(&self, slot: Slot) -> Option<bool> {
        let mut kind = &self.variables[slot].kind;
        while let VariableKind::LikeVariable(other) = kind {
            kind = &self.variables[*other].kind;
        }
        match kind {
            VariableKind::Cursor => Some(true),
            VariableKind::Typed(ty) => {
                let of_catalog = ty.name.schema().is_none_or(|schema| schema == "pg_catalog");
                Some(of_catalog && ty.name.name() == "refcursor" && ty.array_dims == 0)
            }
            VariableKind::LikeColumn(..) => None,
            VariableKind::Argument(number) => Some(self.owner.refcursors.get(*number) == Some(&true)),
            _ => Some(false),
        }
    }

    /// A cursor variable.
    pub(super) fn cursor_variable(&mut self) -> Result<Slot> {
        let Some((target, tokens)) = self.target_here() else { return Err(self.no_variable()) };
        let simple = !matches!(self.variables[target.slot].kind, VariableKind::Record | VariableKind::RowOf(..));
        if !target.fields.is_empty() || !simple || *self.peek_at(tokens) == Tok::Punct(b'[') {
            let message = "cursor variable must be a simple variable";
            return Err(SqlError::new(code::DATATYPE_MISMATCH, message).at(self.pos()));
        }
        if self.is_refcursor(target.slot) == Some(false) {
            let name = &self.variables[target.slot].name;
            let message = format!("variable \"{name}\" must be of type cursor or refcursor");
            return Err(SqlError::new(code::DATATYPE_MISMATCH, message).at(self.pos()));
        }
        self.at += tokens;
        Ok(target.slot)
    }

    pub(super) fn open_statement(&mut self) -> Result<StmtKind> {
        self.advance();
        let cursor = self.cursor_variable()?;
        if self.variables[cursor].query.is_some() {
            let arguments = self.cursor_arguments(cursor)?;
            self.semicolon()?;
            return Ok(StmtKind::Open { cursor, what: Opened::Bound(arguments), scroll: None });
        }
        let scroll = self.scroll()?;
        if !self.eat("for") {
            return Err(self.error_near("syntax error, expected \"FOR\""));
        }
        let rows = if self.eat("execute") {
            let query = self.expression_in_list(&["using"])?;
            let values = self.using()?;
            self.semicolon()?;
            Rows::Dynamic(query, values)
        } else {
            Rows::Query(self.statement_before_semicolon()?)
        };
        Ok(StmtKind::Open { cursor, what: Opened::Rows(rows), scroll })
    }

    fn argument_name(&self, slot: Slot) -> &str {
        self.variables.get(slot).map_or("", |variable: &Variable| &variable.name)
    }

    /// The arguments of a bound cursor as one row, in the order in which it declares them; none: it has no arguments.
    fn cursor_arguments(&mut self, cursor: Slot) -> Result<Option<Fragment>> {
        let variable = &self.variables[cursor];
        let name = variable.name.clone();
        let wanted = variable.query.as_ref().map_or_else(Vec::new, |query| query.arguments.clone());
        if wanted.is_empty() {
            if self.is_punct(b'(') {
                return Err(self.error(format!("cursor \"{name}\" has no arguments")));
            }
            return Ok(None);
        }
        if !self.is_punct(b'(') {
            return Err(self.error(format!("cursor \"{name}\" has arguments")));
        }
        let start = i64::from(self.pos());
        self.advance();
        let mut values: Vec<Option<String>> = vec![None; wanted.len()];
        let mut any_named = false;
        for count in 1..=wanted.len() {
            let pos = self.pos();
            let mut at = count - 1;
            if *self.peek_at(1) == Tok::ColonEquals && matches!(self.peek(), Tok::Word(_) | Tok::Quoted(_)) {
                let argument = self.name()?;
                let Some(found) = wanted.iter().position(|slot| self.argument_name(*slot) == argument) else {
                    let message = format!("cursor \"{name}\" has no argument named \"{argument}\"");
                    return Err(SqlError::new(code::SYNTAX_ERROR, message).at(pos));
                };
                self.advance();
                (at, any_named) = (found, true);
            }
            if values[at].is_some() {
                let argument = self.argument_name(wanted[at]);
                let message =
                    format!("value for parameter \"{argument}\" of cursor \"{name}\" specified more than once");
                return Err(SqlError::new(code::SYNTAX_ERROR, message).at(pos));
            }
            let ends = |tok: &Tok<'_>| matches!(tok, Tok::Punct(b',' | b')'));
            let end = self.find_end(ends, ",\" or \")", "expression")?;
            let text = self.text_between(self.at, end.token).to_owned();
            // An error in it shows its own place.
            self.expression_to(&end)?;
            values[at] = Some(text);
            let last = self.is_punct(b')');
            if last && count < wanted.len() {
                return Err(self.error(format!("not enough arguments for cursor \"{name}\"")));
            }
            if !last && count == wanted.len() {
                return Err(self.error(format!("too many arguments for cursor \"{name}\"")));
            }
            self.advance();
        }
        let shown = |(value, slot): (Option<String>, &Slot)| {
            let value = value.unwrap_or_default();
            match any_named {
                true => format!("{value} AS {}", quoted(self.argument_name(*slot))),
                false => value,
            }
        };
        let text = values.into_iter().zip(&wanted).map(shown).collect::<Vec<_>>().join(", ");
        self.fragment_of(&text, start, (SELECT, ""), FragmentKind::Expression, false).map(Some)
    }

    pub(super) fn fetch_statement(&mut self, is_move: bool) -> Result<StmtKind> {
        let pos = self.pos();
        self.advance();
        let (direction, distance, many) = self.direction()?;
        let cursor = self.cursor_variable()?;
        if is_move {
            self.semicolon()?;
            return Ok(StmtKind::Fetch { cursor, direction, distance, into: None });
        }
        self.expect("into")?;
        let into = Some(self.target_list()?);
        self.semicolon()?;
        if many {
            let message = "FETCH statement cannot return multiple rows";
            return Err(SqlError::new(code::FEATURE_NOT_SUPPORTED, message).at(pos));
        }
        Ok(StmtKind::Fetch { cursor, direction, distance, into })
    }

    /// The direction, how far, and whether that may be many rows; the cursor then stands behind FROM or IN.
    fn direction(&mut self) -> Result<(Direction, Distance, bool)> {
        let mut direction = Direction::Forward;
        let mut distance = Distance::Fixed(1);
        let mut many = false;
        if self.eat("next") {
        } else if self.eat("prior") {
            direction = Direction::Backward;
        } else if self.eat("first") {
            direction = Direction::Absolute;
        } else if self.eat("last") {
            (direction, distance) = (Direction::Absolute, Distance::Fixed(-1));
        } else if self.is("absolute") || self.is("relative") {
            direction = if self.is("absolute") { Direction::Absolute } else { Direction::Relative };
            self.advance();
            return Ok((direction, self.counted()?, false));
        } else if self.eat("all") {
            (distance, many) = (Distance::Fixed(i64::MAX), true);
        } else if self.is("forward") || self.is("backward") {
            if self.is("backward") {
                direction = Direction::Backward;
            }
            self.advance();
            if self.eat("all") {
                (distance, many) = (Distance::Fixed(i64::MAX), true);
            } else if !self.is("from") && !self.is("in") {
                return Ok((direction, self.counted()?, true));
            }
        } else if self.is("from") || self.is("in") {
            self.advance();
            return Ok((direction, distance, false));
        } else if self.target_here().is_some() {
            return Ok((direction, distance, false));
        } else {
            return Ok((direction, self.counted()?, true));
        }
        if !self.eat("from") && !self.eat("in") {
            return Err(self.error_near("expected FROM or IN"));
        }
        Ok((direction, distance, many))
    }

    /// The number of rows before FROM or IN, which is taken.
    fn counted(&mut self) -> Result<Distance> {
        let ends = |tok: &Tok<'_>| matches!(tok, Tok::Word(w) if matches!(w.as_ref(), "from" | "in"));
        let end = self.find_end(ends, "FROM or IN", "expression")?;
        let count = self.expression_to(&end)?;
        self.advance();
        Ok(Distance::Counted(count))
    }

    /// The cursor variable behind IN of FOR, not taken.
    pub(super) fn loop_cursor(&self) -> Option<Slot> {
        let (target, _) = self.target_here().filter(|(target, _)| target.fields.is_empty())?;
        (self.is_refcursor(target.slot) == Some(true)).then_some(target.slot)
    }

    /// The loop over a cursor, from its variable on.
    pub(super) fn cursor_loop(
        &mut self,
        label: Option<String>,
        (name, name_at): (&str, usize),
        targets: usize,
        cursor: Slot,
    ) -> Result<StmtKind> {
        if targets > 1 {
            self.at = name_at;
            return Err(self.error("cursor FOR loop must have only one target variable"));
        }
        if self.variables[cursor].query.is_none() {
            return Err(self.error("cursor FOR loop must use a bound cursor variable"));
        }
        self.cursor_variable()?;
        let arguments = self.cursor_arguments(cursor)?;
        self.expect("loop")?;
        let variable = self.variable(name, VariableKind::Record);
        self.place = self.names.declare(self.place, name, variable);
        let body = self.loop_body(label.as_deref())?;
        Ok(StmtKind::ForCursor { label, cursor, arguments, variable, body })
    }
}

/// A name as SQL takes it, whatever it is.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
