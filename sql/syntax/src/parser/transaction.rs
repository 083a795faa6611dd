//! BEGIN, COMMIT, ROLLBACK, savepoints and the modes of transactions.

use super::super::stmt::{Isolation, Statement, Transaction, TransactionModes};
use super::Parser;
use crate::error::Result;

impl Parser<'_> {
    /// The statement whose first word is `word`, still at the cursor.
    pub(super) fn transaction(&mut self, word: &str) -> Result<Statement> {
        self.advance();
        Ok(Statement::Transaction(match word {
            "begin" => {
                self.eat_transaction_word();
                Transaction::Begin { modes: self.transaction_modes()?, start: false }
            }
            "start" => {
                self.expect("transaction")?;
                Transaction::Begin { modes: self.transaction_modes()?, start: true }
            }
            "commit" | "end" => {
                if word == "commit" && self.eat("prepared") {
                    Transaction::CommitPrepared(self.string()?)
                } else {
                    self.eat_transaction_word();
                    Transaction::Commit { chain: self.chain()? }
                }
            }
            "rollback" | "abort" => self.rollback(word == "rollback")?,
            "savepoint" => Transaction::Savepoint(self.col_id()?),
            _ => {
                self.eat("savepoint");
                Transaction::Release(self.col_id()?)
            }
        }))
    }

    fn rollback(&mut self, may_name: bool) -> Result<Transaction> {
        if may_name && self.eat("prepared") {
            return Ok(Transaction::RollbackPrepared(self.string()?));
        }
        self.eat_transaction_word();
        if may_name && self.eat("to") {
            self.eat("savepoint");
            return Ok(Transaction::RollbackTo(self.col_id()?));
        }
        Ok(Transaction::Rollback { chain: self.chain()? })
    }

    fn eat_transaction_word(&mut self) {
        let _ = self.eat("work") || self.eat("transaction");
    }

    fn chain(&mut self) -> Result<bool> {
        if !self.eat("and") {
            return Ok(false);
        }
        let no = self.eat("no");
        self.expect("chain")?;
        Ok(!no)
    }

    /// Modes, with or without commas; the last of a kind counts.
    pub(super) fn transaction_modes(&mut self) -> Result<TransactionModes> {
        let mut modes = TransactionModes::default();
        let mut comma = false;
        loop {
            if self.eat_seq(&["isolation", "level"]) {
                modes.isolation = Some(self.isolation()?);
            } else if self.eat_seq(&["read", "only"]) {
                modes.read_only = Some(true);
            } else if self.eat_seq(&["read", "write"]) {
                modes.read_only = Some(false);
            } else if self.eat("deferrable") {
                modes.deferrable = Some(true);
            } else if self.eat_seq(&["not", "deferrable"]) {
                modes.deferrable = Some(false);
            } else if comma {
                return Err(self.error_here());
            } else {
                return Ok(modes);
            }
            comma = self.eat_punct(b',');
        }
    }

    fn isolation(&mut self) -> Result<Isolation> {
        if self.eat("serializable") {
            Ok(Isolation::Serializable)
        } else if self.eat("repeatable") {
            self.expect("read")?;
            Ok(Isolation::RepeatableRead)
        } else {
            self.expect("read")?;
            if self.eat("uncommitted") {
                return Ok(Isolation::ReadUncommitted);
            }
            self.expect("committed")?;
            Ok(Isolation::ReadCommitted)
        }
    }
}
