//! RAISE, ASSERT, GET DIAGNOSTICS, and the conditions of EXCEPTION.

use super::conditions::{self, Condition};
use super::parser::Parser;
use super::tree::{Diagnostic, Raise, RaiseOption, StmtKind};
use crate::error::{Result, code};
use crate::lexer::Tok;

impl Parser<'_> {
    /// Behind WHEN of EXCEPTION, THEN included.
    pub(super) fn conditions(&mut self) -> Result<Vec<Condition>> {
        let mut out = Vec::new();
        loop {
            if self.eat("sqlstate") {
                out.push(Condition::State(self.state()?));
            } else {
                let name = self.name()?;
                match name.as_str() {
                    "others" => out.push(Condition::Others),
                    _ => {
                        let states = conditions::named(&name);
                        if states.is_empty() {
                            self.at -= 1;
                            let message = format!("unrecognized exception condition \"{name}\"");
                            return Err(self.unplaced(code::UNDEFINED_OBJECT, message));
                        }
                        out.extend(states.into_iter().map(|state| Condition::State(state.to_owned())));
                    }
                }
            }
            if !self.eat("or") {
                break;
            }
        }
        self.expect("then")?;
        Ok(out)
    }

    /// The string behind SQLSTATE.
    fn state(&mut self) -> Result<String> {
        let Tok::Str(text) = self.peek() else { return Err(self.error_here()) };
        let text = text.to_string();
        if !conditions::is_state(&text) {
            return Err(self.error_near("invalid SQLSTATE code"));
        }
        self.advance();
        Ok(text)
    }

    pub(super) fn raise_statement(&mut self) -> Result<StmtKind> {
        self.expect("raise")?;
        let mut raise =
            Raise { level: "EXCEPTION", condition: None, format: None, values: Vec::new(), options: Vec::new() };
        if self.eat_punct(b';') {
            raise.level = "";
            return Ok(StmtKind::Raise(Box::new(raise)));
        }
        let level = match self.word() {
            Some("exception") => Some("EXCEPTION"),
            Some("warning") => Some("WARNING"),
            Some("notice") => Some("NOTICE"),
            Some("info") => Some("INFO"),
            Some("log") => Some("LOG"),
            Some("debug") => Some("DEBUG"),
            _ => None,
        };
        if let Some(level) = level {
            raise.level = level;
            self.advance();
            if self.is_punct(b';') {
                return Err(self.error_here());
            }
        }
        if let Tok::Str(text) = self.peek() {
            raise.format = Some(text.to_string());
            self.advance();
            while self.eat_punct(b',') {
                raise.values.push(self.expression_in_list(&["using"])?);
            }
        } else if !self.is("using") {
            raise.condition = Some(self.raised_condition()?);
        }
        if self.eat("using") {
            loop {
                raise.options.push(self.raise_option()?);
                if !self.eat_punct(b',') {
                    break;
                }
            }
        }
        self.check_format(&raise)?;
        self.semicolon()?;
        Ok(StmtKind::Raise(Box::new(raise)))
    }

    fn raised_condition(&mut self) -> Result<(String, String)> {
        if self.eat("sqlstate") {
            let state = self.state()?;
            return Ok((state.clone(), state));
        }
        let at = self.at;
        let name = self.name()?;
        match conditions::named(&name).first() {
            Some(state) => Ok((name, (*state).to_owned())),
            None => {
                self.at = at;
                let message = format!("unrecognized exception condition \"{name}\"");
                Err(self.unplaced(code::UNDEFINED_OBJECT, message))
            }
        }
    }

    fn raise_option(&mut self) -> Result<(RaiseOption, super::tree::Fragment)> {
        let option = match self.word() {
            Some("errcode") => RaiseOption::Errcode,
            Some("message") => RaiseOption::Message,
            Some("detail") => RaiseOption::Detail,
            Some("hint") => RaiseOption::Hint,
            Some("column") => RaiseOption::Column,
            Some("constraint") => RaiseOption::Constraint,
            Some("datatype") => RaiseOption::Datatype,
            Some("table") => RaiseOption::Table,
            Some("schema") => RaiseOption::Schema,
            _ => return Err(self.error_near("unrecognized RAISE statement option")),
        };
        self.advance();
        if !self.is_assign_at(0) {
            return Err(self.error_near("syntax error, expected \"=\""));
        }
        self.advance();
        Ok((option, self.expression_in_list(&[])?))
    }

    /// As many values as the message has places.
    fn check_format(&self, raise: &Raise) -> Result<()> {
        let Some(format) = &raise.format else { return Ok(()) };
        let places = format.replace("%%", "").matches('%').count();
        let what = match places.cmp(&raise.values.len()) {
            std::cmp::Ordering::Equal => return Ok(()),
            std::cmp::Ordering::Less => "many",
            std::cmp::Ordering::Greater => "few",
        };
        Err(self.unplaced(code::SYNTAX_ERROR, format!("too {what} parameters specified for RAISE")))
    }

    pub(super) fn assert_statement(&mut self) -> Result<StmtKind> {
        self.expect("assert")?;
        let condition = self.expression_in_list(&[])?;
        let message = if self.eat_punct(b',') {
            Some(self.expression_before_semicolon()?)
        } else {
            self.semicolon()?;
            None
        };
        Ok(StmtKind::Assert { condition, message })
    }

    pub(super) fn diagnostics_statement(&mut self) -> Result<StmtKind> {
        self.expect("get")?;
        let stacked = self.eat("stacked");
        if !stacked {
            self.eat("current");
        }
        self.expect("diagnostics")?;
        let mut items = Vec::new();
        loop {
            let target = self.target()?;
            if !self.is_assign_at(0) {
                return Err(self.error_here());
            }
            self.advance();
            let item = match self.word() {
                Some("row_count") => Diagnostic::RowCount,
                Some("pg_context") => Diagnostic::Context,
                Some("returned_sqlstate") => Diagnostic::State,
                Some("message_text") => Diagnostic::Message,
                Some("pg_exception_detail") => Diagnostic::Detail,
                Some("pg_exception_hint") => Diagnostic::Hint,
                Some("pg_exception_context") => Diagnostic::ErrorContext,
                Some("column_name") => Diagnostic::Column,
                Some("constraint_name") => Diagnostic::Constraint,
                Some("pg_datatype_name") => Diagnostic::Datatype,
                Some("table_name") => Diagnostic::Table,
                Some("schema_name") => Diagnostic::Schema,
                _ => return Err(self.error_near("unrecognized GET DIAGNOSTICS item")),
            };
            let of_current = matches!(item, Diagnostic::RowCount | Diagnostic::Context);
            if of_current == stacked && item != Diagnostic::Context {
                let word = self.word().unwrap_or("").to_ascii_uppercase();
                let which = if stacked { "STACKED" } else { "CURRENT" };
                let message = format!("diagnostics item {word} is not allowed in GET {which} DIAGNOSTICS");
                return Err(self.error(message));
            }
            self.advance();
            items.push((target, item));
            if !self.eat_punct(b',') {
                break;
            }
        }
        self.semicolon()?;
        Ok(StmtKind::Diagnostics { stacked, items })
    }
}
