//! DECLARE.

use super::parser::Parser;
use super::tree::VariableKind;
use crate::error::{Result, SqlError};
use crate::lexer::Tok;
use crate::plpgsql::names::Slot;

impl Parser<'_> {
    /// The variables between DECLARE and BEGIN.
    pub(super) fn declarations(&mut self) -> Result<Vec<Slot>> {
        let mut out = Vec::new();
        while !self.is("begin") {
            if self.eat("declare") {
                continue;
            }
            if self.is_op("<<") {
                let message = "block label must be placed before DECLARE, not after";
                return Err(self.error(message));
            }
            if let Some(slot) = self.declaration()? {
                out.push(slot);
            }
        }
        Ok(out)
    }

    /// One of them; none: another name for one.
    fn declaration(&mut self) -> Result<Option<Slot>> {
        let may_be_name = match self.peek() {
            Tok::Word(w) => !is_reserved(w),
            Tok::Quoted(_) => true,
            _ => false,
        };
        if !may_be_name {
            return Err(self.error_here());
        }
        let pos = self.at;
        let name = self.name()?;
        if self.names.has_here(self.place, &name) {
            self.at = pos;
            return Err(self.error_near("duplicate declaration"));
        }
        if self.is("alias") && self.word_at(1) == Some("for") {
            self.at += 2;
            let Some((target, tokens)) = self.target_here() else {
                let parts = self.dotted();
                let message = format!("variable \"{}\" does not exist", parts.join("."));
                return Err(SqlError::new("42704", message).at(self.pos()));
            };
            if !target.fields.is_empty() {
                return Err(self.error_here());
            }
            self.at += tokens;
            self.semicolon()?;
            clearway_base::breath::step(self.variables.len() as u32)?;
            self.place = self.names.declare(self.place, &name, target.slot);
            return Ok(None);
        }
        if self.is("cursor") || self.is("scroll") || (self.is("no") && self.word_at(1) == Some("scroll")) {
            return self.cursor_declaration(&name).map(Some);
        }
        let line = self.line();
        let constant = self.eat("constant");
        let kind = self.variable_type()?;
        // PLP-1
        if self.is("collate") {
            return Err(SqlError::unsupported("COLLATE of a variable in PL/pgSQL").at(self.pos()));
        }
        let not_null_at = self.at;
        let not_null = self.eat("not") && {
            self.expect("null")?;
            true
        };
        let default = if self.eat("default") || self.is_assign_at(0) {
            if self.is_assign_at(0) {
                self.advance();
            }
            Some(self.expression_before_semicolon()?)
        } else {
            self.semicolon()?;
            None
        };
        if not_null && default.is_none() {
            self.at = not_null_at;
            let message = format!("variable \"{name}\" must have a default value, since it's declared NOT NULL");
            return Err(SqlError::new("22004", message).at(self.pos()));
        }
        let slot = self.variable(&name, kind);
        let variable = &mut self.variables[slot];
        (variable.line, variable.constant, variable.not_null, variable.default) = (line, constant, not_null, default);
        // A name is compared with those that the block has.
        clearway_base::breath::step(self.variables.len() as u32)?;
        self.place = self.names.declare(self.place, &name, slot);
        Ok(Some(slot))
    }

    pub(super) fn variable_type(&mut self) -> Result<VariableKind> {
        let parts = self.dotted();
        let behind = (parts.len() * 2).saturating_sub(1);
        if !parts.is_empty() && *self.peek_at(behind) == Tok::Op("%") {
            let pos = self.pos();
            match self.word_at(behind + 1) {
                Some("type") => {
                    self.at += behind + 2;
                    self.no_array()?;
                    let found = self.names.find(self.place, &parts).filter(|found| found.used == parts.len());
                    return Ok(match found {
                        Some(found) => VariableKind::LikeVariable(found.slot),
                        None => VariableKind::LikeColumn(parts, pos),
                    });
                }
                Some("rowtype") => {
                    self.at += behind + 2;
                    self.no_array()?;
                    return Ok(VariableKind::RowOf(parts, pos));
                }
                _ => {}
            }
        }
        let ends = |tok: &Tok<'_>| match tok {
            Tok::Punct(b';' | b',' | b')') | Tok::ColonEquals | Tok::Op("=") => true,
            Tok::Word(w) => matches!(w.as_ref(), "not" | "default" | "collate"),
            _ => false,
        };
        if ends(self.peek()) {
            return Err(self.error_near("missing data type declaration"));
        }
        let end = match self.find_end(ends, ";", "type") {
            Ok(end) => end,
            Err(_) => return Err(self.error_near("incomplete data type declaration")),
        };
        if self.is("record") && end.token == self.at + 1 {
            self.advance();
            return Ok(VariableKind::Record);
        }
        Ok(VariableKind::Typed(self.type_to(&end)?))
    }

    fn no_array(&self) -> Result<()> {
        if self.is_punct(b'[') { Err(self.error_here()) } else { Ok(()) }
    }
}

/// The words that are never the name of a variable.
pub(super) fn is_reserved(word: &str) -> bool {
    matches!(
        word,
        "all"
            | "begin"
            | "by"
            | "case"
            | "declare"
            | "else"
            | "end"
            | "execute"
            | "for"
            | "foreach"
            | "from"
            | "if"
            | "in"
            | "into"
            | "loop"
            | "not"
            | "null"
            | "or"
            | "strict"
            | "then"
            | "to"
            | "using"
            | "when"
            | "while"
    )
}
