//! LOCK, VACUUM and similar statements, settings, cursors, GRANT.

use super::super::ast::QualName;
use super::super::keywords::{self, Category};
use super::super::lexer::Tok;
use super::super::stmt::{
    FetchDirection, GenericOption, LockTable, OptionValue, Reindex, ReindexTarget, SetVariable, Statement,
    TableLockMode, Transaction,
};
use super::Parser;
use crate::error::{Result, SqlError, code};

impl Parser<'_> {
    pub(super) fn lock_table(&mut self) -> Result<Statement> {
        self.expect("lock")?;
        self.eat("table");
        let tables = self.comma_list(Self::table_name)?;
        let mut mode = TableLockMode::AccessExclusive;
        if self.eat("in") {
            mode = self.lock_mode()?;
            self.expect("mode")?;
        }
        let nowait = self.eat("nowait");
        Ok(Statement::LockTable(LockTable { tables, mode, nowait }))
    }

    fn lock_mode(&mut self) -> Result<TableLockMode> {
        use TableLockMode as M;
        Ok(if self.eat("access") {
            if self.eat("share") {
                M::AccessShare
            } else {
                self.expect("exclusive")?;
                M::AccessExclusive
            }
        } else if self.eat("row") {
            if self.eat("share") {
                M::RowShare
            } else {
                self.expect("exclusive")?;
                M::RowExclusive
            }
        } else if self.eat("share") {
            if self.eat("update") {
                self.expect("exclusive")?;
                M::ShareUpdateExclusive
            } else if self.eat("row") {
                self.expect("exclusive")?;
                M::ShareRowExclusive
            } else {
                M::Share
            }
        } else {
            self.expect("exclusive")?;
            M::Exclusive
        })
    }

    fn tables_with_columns(&mut self) -> Result<Vec<(QualName, Vec<String>)>> {
        if !self.is_col_id() {
            return Ok(Vec::new());
        }
        self.comma_list(|p| Ok((p.qual_name()?, p.opt_name_list()?)))
    }

    pub(super) fn analyze(&mut self) -> Result<Statement> {
        self.advance();
        let verbose = if self.is_punct(b'(') {
            let mut verbose = false;
            for option in self.generic_options()? {
                let value = option.as_bool();
                match (option.name.as_str(), value) {
                    ("verbose", Some(on)) => verbose = on,
                    ("skip_locked", Some(false)) => {}
                    ("skip_locked", Some(true)) => {
                        return Err(SqlError::unsupported("ANALYZE (SKIP_LOCKED)").at(option.pos));
                    }
                    _ => return Err(unrecognized("ANALYZE", &option)),
                }
            }
            verbose
        } else {
            self.eat("verbose")
        };
        Ok(Statement::Analyze { verbose, tables: self.tables_with_columns()? })
    }

    pub(super) fn vacuum(&mut self) -> Result<Statement> {
        self.expect("vacuum")?;
        let mut options = Vec::new();
        if self.is_punct(b'(') {
            options = self.generic_options()?;
            let known = [
                "full",
                "freeze",
                "verbose",
                "analyze",
                "disable_page_skipping",
                "skip_locked",
                "index_cleanup",
                "process_toast",
                "truncate",
                "parallel",
            ];
            if let Some(bad) = options.iter().find(|o| !known.contains(&o.name.as_str())) {
                return Err(unrecognized("VACUUM", bad));
            }
        } else {
            for names in [&["full"][..], &["freeze"], &["verbose"], &["analyze", "analyse"]] {
                if self.is_any(names) {
                    options.push(self.flag(names[0]));
                    self.advance();
                }
            }
        }
        Ok(Statement::Vacuum { options, tables: self.tables_with_columns()? })
    }

    pub(super) fn cluster(&mut self) -> Result<Statement> {
        self.expect("cluster")?;
        let mut verbose = self.eat("verbose");
        if self.is_punct(b'(') {
            for option in self.generic_options()? {
                match (option.name.as_str(), option.as_bool()) {
                    ("verbose", Some(on)) => verbose = on,
                    _ => return Err(unrecognized("CLUSTER", &option)),
                }
            }
        }
        if !self.is_col_id() {
            return Ok(Statement::Cluster { table: None, index: None, verbose });
        }
        let mut table = self.qual_name()?;
        let mut index = None;
        if self.eat("using") {
            index = Some(self.col_id()?);
        } else if self.eat("on") {
            index = Some(table.name().to_owned());
            table = self.qual_name()?;
        }
        Ok(Statement::Cluster { table: Some(table), index, verbose })
    }

    pub(super) fn reindex(&mut self) -> Result<Statement> {
        self.expect("reindex")?;
        let (mut verbose, mut concurrently) = (false, false);
        if self.is_punct(b'(') {
            for option in self.generic_options()? {
                match (option.name.as_str(), option.as_bool()) {
                    ("verbose", Some(on)) => verbose = on,
                    ("concurrently", Some(on)) => concurrently = on,
                    ("tablespace", _) => {
                        return Err(SqlError::unsupported("REINDEX (TABLESPACE)").at(option.pos));
                    }
                    _ => return Err(unrecognized("REINDEX", &option)),
                }
            }
        }
        let target = match self.word_at(0) {
            Some("index") => ReindexTarget::Index,
            Some("table") => ReindexTarget::Table,
            Some("schema") => ReindexTarget::Schema,
            Some("database") => ReindexTarget::Database,
            Some("system") => ReindexTarget::System,
            _ => return Err(self.error_here()),
        };
        self.advance();
        concurrently |= self.eat("concurrently");
        Ok(Statement::Reindex(Reindex { target, name: self.qual_name()?, concurrently, verbose }))
    }

    pub(super) fn set(&mut self) -> Result<Statement> {
        self.expect("set")?;
        if self.eat_seq(&["session", "characteristics", "as", "transaction"]) {
            return Ok(Statement::Transaction(Transaction::SetSession(self.some_modes()?)));
        }
        if self.eat("constraints") {
            let names = if self.eat("all") { Vec::new() } else { self.comma_list(Self::qual_name)? };
            let deferred = self.eat("deferred");
            if !deferred {
                self.expect("immediate")?;
            }
            return Ok(Statement::SetConstraints { names, deferred });
        }
        let local = self.eat("local");
        if !local && self.is("session") && !self.is_session_authorization() {
            self.advance();
        }
        if local && self.is_seq(&["session", "characteristics"]) {
            return Err(self.unsupported("SET LOCAL SESSION CHARACTERISTICS"));
        }
        // A transaction's modes end with it, so LOCAL changes nothing.
        let assigned = self.word_at(1) == Some("to") || matches!(self.peek_at(1), Tok::Op("="));
        if self.is("transaction") && !assigned {
            self.advance();
            if self.eat("snapshot") {
                return Ok(Statement::Transaction(Transaction::SetSnapshot { id: self.string()?, local }));
            }
            return Ok(Statement::Transaction(Transaction::Set(self.some_modes()?)));
        }
        Ok(Statement::Set(self.set_variable(local)?))
    }

    /// gram.y's var_value: of the reserved words only those of truth values.
    fn setting_value(&mut self) -> Result<OptionValue> {
        let reserved = |word: &str| keywords::lookup(word).is_some_and(|known| known.0 == Category::Reserved);
        match self.word_at(0) {
            Some(word) if reserved(word) && !matches!(word, "true" | "false" | "on" | "default") => {
                Err(self.error_here())
            }
            _ => self.option_value(),
        }
    }

    /// What SET ROLE and SET SESSION AUTHORIZATION name: `none` comes as a word, in quotes too.
    fn role_to_be(&mut self) -> Result<OptionValue> {
        if matches!(self.peek(), Tok::Str(_)) {
            self.option_value()
        } else {
            self.non_reserved().map(OptionValue::Word)
        }
    }

    fn is_session_authorization(&self) -> bool {
        self.is_seq(&["session", "authorization"])
    }

    fn some_modes(&mut self) -> Result<super::super::stmt::TransactionModes> {
        let at = self.at;
        let modes = self.transaction_modes()?;
        if self.at == at { Err(self.error_here()) } else { Ok(modes) }
    }

    /// What stands behind SET, or behind ALTER ROLE ... SET.
    pub(super) fn set_variable(&mut self, local: bool) -> Result<SetVariable> {
        let pos = self.pos();
        let variable = |name: &str, values| SetVariable { name: name.to_owned(), local, values, pos };
        if self.eat_seq(&["time", "zone"]) {
            if self.eat("local") || self.eat("default") {
                return Ok(variable("timezone", None));
            }
            if self.eat("interval") {
                let OptionValue::Str(text) = self.option_value()? else { return Err(self.error_here()) };
                if !self.eat_seq(&["hour", "to", "minute"]) {
                    self.eat("hour");
                }
                return Ok(variable("timezone", Some(vec![OptionValue::Str(format!("INTERVAL '{text}'"))])));
            }
            let value = self.option_value()?;
            return Ok(variable("timezone", Some(vec![value])));
        }
        if self.eat("names") {
            let values = if matches!(self.peek(), Tok::Str(_)) { Some(vec![self.option_value()?]) } else { None };
            self.eat("default");
            return Ok(variable("client_encoding", values));
        }
        for (words, name) in [(&["session", "authorization"][..], "session_authorization"), (&["role"], "role")] {
            let assigned = matches!(self.peek_at(words.len()), Tok::Op("=")) || self.word_at(words.len()) == Some("to");
            if !assigned && self.eat_seq(words) {
                let default = name == "session_authorization" && self.eat("default");
                let values = if default { None } else { Some(vec![self.role_to_be()?]) };
                return Ok(variable(name, values));
            }
        }
        let name = self.setting_name()?;
        if self.eat_seq(&["from", "current"]) {
            return Err(SqlError::unsupported("SET ... FROM CURRENT").at(pos));
        }
        if !self.eat("to") && !self.eat_op("=") {
            return Err(self.error_here());
        }
        if self.eat("default") {
            return Ok(variable(&name, None));
        }
        let values = self.comma_list(Self::setting_value)?;
        Ok(variable(&name, Some(values)))
    }

    fn setting_name(&mut self) -> Result<String> {
        let mut name = self.col_id()?.to_lowercase();
        while self.eat_punct(b'.') {
            name.push('.');
            name.push_str(&self.col_id()?.to_lowercase());
        }
        Ok(name)
    }

    /// The name behind SHOW and RESET, with the standard's spellings resolved; none: ALL.
    fn shown_name(&mut self) -> Result<Option<String>> {
        if self.eat("all") {
            Ok(None)
        } else if self.eat_seq(&["time", "zone"]) {
            Ok(Some("timezone".to_owned()))
        } else if self.eat_seq(&["transaction", "isolation", "level"]) {
            Ok(Some("transaction_isolation".to_owned()))
        } else if self.eat_seq(&["session", "authorization"]) {
            Ok(Some("session_authorization".to_owned()))
        } else {
            Ok(Some(self.setting_name()?))
        }
    }

    pub(super) fn show(&mut self) -> Result<Statement> {
        if let Some(statement) = self.show_engine() {
            return Ok(statement);
        }
        self.expect("show")?;
        let name = self.shown_name()?.unwrap_or_else(|| "all".to_owned());
        Ok(Statement::Show { name })
    }

    pub(super) fn reset(&mut self) -> Result<Statement> {
        self.expect("reset")?;
        Ok(Statement::Reset { name: self.shown_name()? })
    }

    pub(super) fn declare(&mut self) -> Result<Statement> {
        self.expect("declare")?;
        let name = self.col_id()?;
        let (mut binary, mut scroll) = (false, None);
        loop {
            if self.eat("binary") {
                binary = true;
            } else if self.eat("scroll") {
                scroll = Some(true);
            } else if self.eat_seq(&["no", "scroll"]) {
                scroll = Some(false);
            } else if !self.eat("insensitive") && !self.eat("asensitive") {
                break;
            }
        }
        self.expect("cursor")?;
        let hold = self.eat_seq(&["with", "hold"]);
        if !hold {
            self.eat_seq(&["without", "hold"]);
        }
        self.expect("for")?;
        let query = Box::new(self.query()?);
        Ok(Statement::DeclareCursor { name, query, hold, binary, scroll })
    }

    pub(super) fn fetch(&mut self, is_move: bool) -> Result<Statement> {
        use FetchDirection as D;
        self.advance();
        let count = |p: &mut Self| -> Result<i64> {
            if p.eat("all") {
                Ok(i64::MAX)
            } else if matches!(p.peek(), Tok::Int(_) | Tok::Op("-" | "+")) {
                p.signed_int()
            } else {
                Ok(1)
            }
        };
        let direction = if self.eat("next") {
            D::Forward(1)
        } else if self.eat("prior") {
            D::Backward(1)
        } else if self.eat("first") {
            D::Absolute(1)
        } else if self.eat("last") {
            D::Absolute(-1)
        } else if self.eat("absolute") {
            D::Absolute(self.signed_int()?)
        } else if self.eat("relative") {
            D::Relative(self.signed_int()?)
        } else if self.eat("forward") {
            D::Forward(count(self)?)
        } else if self.eat("backward") {
            D::Backward(count(self)?)
        } else {
            D::Forward(count(self)?)
        };
        let _ = self.eat("from") || self.eat("in");
        Ok(Statement::Fetch { name: self.col_id()?, direction, is_move })
    }

    /// What stands behind RESET in ALTER ROLE and ALTER DATABASE; no setting has the empty name, which stands for ALL.
    pub(super) fn reset_variable(&mut self) -> Result<SetVariable> {
        let pos = self.pos();
        let name = self.shown_name()?.unwrap_or_default();
        Ok(SetVariable { name, local: false, values: None, pos })
    }
}

fn unrecognized(statement: &str, option: &GenericOption) -> SqlError {
    SqlError::new(code::SYNTAX_ERROR, format!("unrecognized {statement} option \"{}\"", option.name)).at(option.pos)
}
