//! USE, CALL, SHOW ENGINE, and UPDATE of performance_schema's tables of switches.

use super::super::ast::Expr;
use super::super::lexer::Tok;
use super::super::stmt::{Mysql, Statement, Update};
use super::Parser;
use crate::error::Result;

impl Parser<'_> {
    pub(super) fn use_or_call(&mut self, word: &str) -> Result<Statement> {
        match word {
            "use" => self.use_schema(),
            "do" => self.do_block(),
            _ => self.call_procedure(),
        }
    }

    /// USE of one of the schemas that MySQL's people name.
    fn use_schema(&mut self) -> Result<Statement> {
        self.advance();
        Ok(Statement::Mysql(Box::new(Mysql::Use(self.col_id()?))))
    }

    /// CALL of a procedure of sys.
    fn call_procedure(&mut self) -> Result<Statement> {
        let at = self.at;
        self.advance();
        let name = self.qual_name()?;
        let known = matches!(name.schema(), None | Some("sys" | "ps_helper")) && PROCEDURES.contains(&name.name());
        if !known {
            self.at = at;
            return self.call_routine();
        }
        let args = if self.is_punct(b'(') { self.arguments()? } else { Vec::new() };
        Ok(Statement::Mysql(Box::new(Mysql::Call(name, args))))
    }

    /// What stands in the parentheses of CALL; there may be nothing.
    fn arguments(&mut self) -> Result<Vec<Expr>> {
        if matches!(self.peek_at(1), Tok::Punct(b')')) {
            self.expect_punct(b'(')?;
            self.expect_punct(b')')?;
            return Ok(Vec::new());
        }
        self.paren_list(Self::expr)
    }

    /// SHOW ENGINE INNODB MUTEX or STATUS; none: it is another SHOW.
    pub(super) fn show_engine(&mut self) -> Option<Statement> {
        let is_mutex = match self.word_at(3) {
            Some("mutex") => true,
            Some("status") => false,
            _ => return None,
        };
        if !self.is_seq(&["show", "engine", "innodb"]) {
            return None;
        }
        (0..4).for_each(|_| self.advance());
        Some(Statement::Mysql(Box::new(Mysql::ShowEngine(is_mutex))))
    }
}

/// The procedures that CALL knows.
pub const PROCEDURES: &[&str] = &["truncate_all", "ps_truncate_all_tables"];

/// An UPDATE, or the statement that it means for performance_schema's switches.
pub(super) fn update(update: Update) -> Statement {
    let name = &update.table.name;
    if name.schema() == Some("performance_schema") && matches!(name.name(), "setup_instruments" | "setup_consumers") {
        return Statement::Mysql(Box::new(Mysql::Setup(update)));
    }
    Statement::Update(Box::new(update))
}
