//! Decides from its first words which statement a text is.

use super::super::lexer::Tok;
use super::super::stmt::{Discard, GenericOption, Statement, Transaction};
use super::Parser;
use crate::error::Result;

impl Parser<'_> {
    /// One statement, up to the semicolon or the end.
    pub(super) fn statement(&mut self) -> Result<Statement> {
        let word = match self.peek() {
            Tok::Word(w) => w.to_string(),
            Tok::Punct(b'(') => return self.preparable(),
            _ => return Err(self.error_here()),
        };
        match word.as_str() {
            "select" | "values" | "with" | "table" | "insert" | "update" | "delete" | "merge" => self.preparable(),
            "begin" | "start" | "commit" | "end" | "rollback" | "abort" | "savepoint" | "release" => {
                self.transaction(&word)
            }
            "truncate" => self.truncate(),
            "copy" => self.copy(),
            "lock" => self.lock_table(),
            "prepare" => self.prepare(),
            "execute" => self.execute(),
            "deallocate" => self.deallocate(),
            "explain" => self.explain(),
            "analyze" | "analyse" => self.analyze(),
            "vacuum" => self.vacuum(),
            "cluster" => self.cluster(),
            "reindex" => self.reindex(),
            "set" => self.set(),
            "show" => self.show(),
            "use" | "call" | "do" => self.use_or_call(&word),
            "reset" => self.reset(),
            "discard" => self.discard(),
            "create" => self.create(),
            "alter" => self.alter(),
            "drop" => self.drop(),
            "refresh" => self.refresh(),
            "grant" | "revoke" => self.grant(word == "revoke"),
            "comment" => self.comment(),
            "declare" => self.declare(),
            "fetch" | "move" => self.fetch(word == "move"),
            "close" => {
                self.advance();
                let name = if self.eat("all") { None } else { Some(self.col_id()?) };
                Ok(Statement::CloseCursor { name })
            }
            "checkpoint" => {
                self.advance();
                Ok(Statement::Checkpoint)
            }
            "listen" => {
                self.advance();
                Ok(Statement::Listen { channel: self.col_id()? })
            }
            "unlisten" => {
                self.advance();
                let channel = if self.eat_op("*") { None } else { Some(self.col_id()?) };
                Ok(Statement::Unlisten { channel })
            }
            "notify" => {
                self.advance();
                let channel = self.col_id()?;
                let payload = if self.eat_punct(b',') { Some(self.string()?) } else { None };
                Ok(Statement::Notify { channel, payload })
            }
            "reassign" => {
                self.advance();
                self.expect_seq(&["owned", "by"])?;
                let roles = self.comma_list(Self::role_spec)?;
                self.expect("to")?;
                Ok(Statement::ReassignOwned { roles, to: self.role_spec()? })
            }
            "import" | "load" | "security" => Err(self.unsupported(&word.to_ascii_uppercase())),
            _ => Err(self.error_here()),
        }
    }

    fn prepare(&mut self) -> Result<Statement> {
        self.expect("prepare")?;
        if self.is("transaction") && matches!(self.peek_at(1), Tok::Str(_)) {
            self.advance();
            return Ok(Statement::Transaction(Transaction::Prepare(self.string()?)));
        }
        let name = self.col_id()?;
        let types = if self.is_punct(b'(') { self.paren_list(Self::type_name)? } else { Vec::new() };
        self.expect("as")?;
        let statement = Box::new(self.preparable()?);
        Ok(Statement::Prepare { name, types, statement })
    }

    fn execute(&mut self) -> Result<Statement> {
        self.expect("execute")?;
        let name = self.col_id()?;
        let args = if self.is_punct(b'(') { self.paren_list(|p| p.expr())? } else { Vec::new() };
        Ok(Statement::Execute { name, args })
    }

    fn deallocate(&mut self) -> Result<Statement> {
        self.expect("deallocate")?;
        if self.is("prepare") && !matches!(self.peek_at(1), Tok::End | Tok::Punct(b';')) {
            self.advance();
        }
        let name = if self.eat("all") { None } else { Some(self.col_id()?) };
        Ok(Statement::Deallocate { name })
    }

    fn explain(&mut self) -> Result<Statement> {
        self.expect("explain")?;
        let mut options: Vec<GenericOption> = Vec::new();
        if self.is_punct(b'(') && !matches!(self.word_at(1), Some("select" | "values" | "with" | "table")) {
            options = self.generic_options()?;
        } else {
            if self.is_any(&["analyze", "analyse"]) {
                options.push(self.flag("analyze"));
                self.advance();
            }
            if self.is("verbose") {
                options.push(self.flag("verbose"));
                self.advance();
            }
        }
        let statement = match self.word_at(0) {
            Some("create") => self.create()?,
            Some("execute") => self.execute()?,
            Some("refresh") => self.refresh()?,
            Some("declare") => self.declare()?,
            _ => self.preparable()?,
        };
        Ok(Statement::Explain { options, statement: Box::new(statement) })
    }

    fn discard(&mut self) -> Result<Statement> {
        self.expect("discard")?;
        let what = if self.eat("all") {
            Discard::All
        } else if self.eat("plans") {
            Discard::Plans
        } else if self.eat("sequences") {
            Discard::Sequences
        } else if self.eat("temp") || self.eat("temporary") {
            Discard::Temp
        } else {
            return Err(self.error_here());
        };
        Ok(Statement::Discard(what))
    }
}
