//! INSERT, UPDATE, DELETE, TRUNCATE and COPY.

use super::super::ast::{Alias, Index, TableRef, Target};
use super::super::lexer::Tok;
use super::super::stmt::{
    Assignment, ConflictTarget, Copy, CopyEnd, CopySource, Delete, GenericOption, Insert, OnConflict, OptionValue,
    Statement, Truncate, Update,
};
use super::Parser;
use crate::error::{Pos, Result, SqlError, code};

impl Parser<'_> {
    /// A statement that PREPARE, EXPLAIN and WITH take.
    pub(super) fn preparable(&mut self) -> Result<Statement> {
        let first = if self.is("with") { self.word_behind_with() } else { self.word_at(0).map(str::to_owned) };
        match first.as_deref() {
            Some("insert") => {
                let with = self.opt_with()?;
                self.insert(with)
            }
            Some("update") => {
                let with = self.opt_with()?;
                self.update(with)
            }
            Some("delete") => {
                let with = self.opt_with()?;
                self.delete(with)
            }
            Some("merge") => {
                let with = self.opt_with()?;
                self.merge(with)
            }
            _ if self.is_query_start() || self.is_punct(b'(') => Ok(Statement::Query(Box::new(self.query()?))),
            _ => Err(self.error_here()),
        }
    }

    /// The first word outside parentheses that begins a statement, behind WITH.
    fn word_behind_with(&self) -> Option<String> {
        let mut depth = 0i32;
        for (i, t) in self.tokens[self.at..].iter().enumerate() {
            match &t.kind {
                // An expression of WITH may have this name.
                Tok::Word(w) if w == "merge" && self.word_at(i + 1) != Some("into") => {}
                Tok::Punct(b'(') => depth += 1,
                Tok::Punct(b')') => depth -= 1,
                Tok::Punct(b';') | Tok::End => return None,
                Tok::Word(w)
                    if depth == 0
                        && matches!(
                            w.as_ref(),
                            "select" | "values" | "insert" | "update" | "delete" | "table" | "merge"
                        ) =>
                {
                    return Some(w.to_string());
                }
                _ => {}
            }
            if depth < 0 {
                return None;
            }
        }
        None
    }

    fn insert(&mut self, with: Option<super::super::ast::With>) -> Result<Statement> {
        self.expect_seq(&["insert", "into"])?;
        let name = self.qual_name()?;
        let alias = if self.eat("as") {
            Some(Alias { name: self.col_id()?, columns: Vec::new(), types: Vec::new() })
        } else {
            None
        };
        let table = TableRef { name, only: false, alias };
        let mut columns = Vec::new();
        let is_columns = self.is_punct(b'(')
            && !matches!(self.peek_at(1), Tok::Punct(b'('))
            && !matches!(self.word_at(1), Some("select" | "values" | "with" | "table"));
        if is_columns {
            columns = self.insert_columns()?;
        }
        let overriding_system = self.opt_overriding()?;
        let source = if columns.is_empty() && self.eat_seq(&["default", "values"]) {
            None
        } else if self.is_query_start() || self.is_punct(b'(') {
            Some(Box::new(self.query()?))
        } else {
            return Err(self.error_here());
        };
        let on_conflict = if self.is_seq(&["on", "conflict"]) { Some(self.on_conflict()?) } else { None };
        let returning = self.opt_returning()?;
        Ok(Statement::Insert(Box::new(Insert {
            with,
            table,
            columns,
            overriding_system,
            source,
            on_conflict,
            returning,
        })))
    }

    pub(super) fn insert_columns(&mut self) -> Result<Vec<(String, Pos)>> {
        self.paren_list(|p| {
            let column = p.col_id_at()?;
            if p.is_punct(b'[') || p.is_punct(b'.') {
                return Err(p.unsupported("INSERT into a part of a column"));
            }
            Ok(column)
        })
    }

    /// OVERRIDING SYSTEM VALUE; false: USER VALUE.
    pub(super) fn opt_overriding(&mut self) -> Result<Option<bool>> {
        if !self.eat("overriding") {
            return Ok(None);
        }
        let system = self.eat("system");
        if !system {
            self.expect("user")?;
        }
        self.expect("value")?;
        Ok(Some(system))
    }

    fn on_conflict(&mut self) -> Result<OnConflict> {
        let pos = self.pos();
        self.expect_seq(&["on", "conflict"])?;
        let target = if self.is_punct(b'(') {
            let keys = self.paren_list(Self::index_key)?;
            Some(ConflictTarget::Index(keys, self.opt_where()?))
        } else if self.eat("on") {
            self.expect("constraint")?;
            Some(ConflictTarget::Constraint(self.col_id()?))
        } else {
            None
        };
        self.expect("do")?;
        let update = if self.eat("nothing") {
            None
        } else {
            self.expect_seq(&["update", "set"])?;
            let set = self.comma_list(Self::assignment)?;
            Some((set, self.opt_where()?))
        };
        if update.is_some() && target.is_none() {
            return Err(SqlError::new(
                code::SYNTAX_ERROR,
                "ON CONFLICT DO UPDATE requires inference specification or constraint name",
            )
            .hint("For example, ON CONFLICT (column_name).")
            .at(pos));
        }
        Ok(OnConflict { target, update, pos })
    }

    fn opt_returning(&mut self) -> Result<Vec<Target>> {
        if self.eat("returning") { self.targets() } else { Ok(Vec::new()) }
    }

    pub(super) fn assignment(&mut self) -> Result<Assignment> {
        let multiple = self.is_punct(b'(');
        let columns = if multiple { self.paren_list(Self::col_id_at)? } else { vec![self.col_id_at()?] };
        let mut part = Vec::new();
        while !multiple && (self.is_punct(b'[') || self.is_punct(b'.')) {
            if self.eat_punct(b'[') {
                part.push(self.index()?);
            } else {
                self.advance();
                part.push(Index::Field(self.col_label()?));
            }
        }
        if self.is_punct(b'[') || self.is_punct(b'.') {
            return Err(self.unsupported("an assignment to a part of a column"));
        }
        if !self.eat_op("=") {
            return Err(self.error_here());
        }
        let value = self.expr()?;
        Ok(Assignment { columns, value, multiple, part })
    }

    /// The table of UPDATE, DELETE and MERGE, whose alias can't be SET.
    pub(super) fn modified_table(&mut self) -> Result<TableRef> {
        let mut table = self.table_name()?;
        if self.eat("as") || (self.is_col_id() && !self.is("set")) {
            table.alias = Some(Alias { name: self.col_id()?, columns: Vec::new(), types: Vec::new() });
        }
        Ok(table)
    }

    fn update(&mut self, with: Option<super::super::ast::With>) -> Result<Statement> {
        self.expect("update")?;
        let table = self.modified_table()?;
        self.expect("set")?;
        let set = self.comma_list(Self::assignment)?;
        let from = if self.eat("from") { self.table_items()? } else { Vec::new() };
        let (filter, current_of) = self.modification_filter()?;
        let returning = self.opt_returning()?;
        Ok(super::mysql::update(Update { with, table, set, from, filter, current_of, returning }))
    }

    fn delete(&mut self, with: Option<super::super::ast::With>) -> Result<Statement> {
        self.expect_seq(&["delete", "from"])?;
        let table = self.modified_table()?;
        let using = if self.eat("using") { self.table_items()? } else { Vec::new() };
        let (filter, current_of) = self.modification_filter()?;
        let returning = self.opt_returning()?;
        Ok(Statement::Delete(Box::new(Delete { with, table, using, filter, current_of, returning })))
    }

    /// The condition, or the cursor of WHERE CURRENT OF.
    fn modification_filter(&mut self) -> Result<(Option<super::super::ast::Expr>, Option<String>)> {
        if self.eat_seq(&["where", "current", "of"]) {
            return Ok((None, Some(self.col_id()?)));
        }
        Ok((self.opt_where()?, None))
    }

    pub(super) fn truncate(&mut self) -> Result<Statement> {
        self.expect("truncate")?;
        self.eat("table");
        let tables = self.comma_list(Self::table_name)?;
        let restart_identity = self.eat_seq(&["restart", "identity"]);
        if !restart_identity {
            self.eat_seq(&["continue", "identity"]);
        }
        let cascade = self.cascade();
        Ok(Statement::Truncate(Truncate { tables, restart_identity, cascade }))
    }

    pub(super) fn copy(&mut self) -> Result<Statement> {
        self.expect("copy")?;
        // The form of PostgreSQL before 9.0.
        let (binary, pos) =
            (self.is("binary") && !matches!(self.peek_at(1), Tok::Word(w) if w == "from" || w == "to"), self.pos());
        if binary {
            self.advance();
        }
        let source = if self.eat_punct(b'(') {
            let statement = self.nested(Self::preparable)?;
            self.expect_punct(b')')?;
            if self.into.take().is_some() {
                return Err(SqlError::unsupported("COPY (SELECT INTO)"));
            }
            CopySource::Query(Box::new(statement))
        } else {
            let name = self.qual_name()?;
            let columns = if self.is_punct(b'(') { self.paren_list(Self::col_id_at)? } else { Vec::new() };
            CopySource::Table(name, columns)
        };
        let from = !matches!(source, CopySource::Query(_)) && self.eat("from");
        if !from {
            self.expect("to")?;
        }
        let end = if self.eat("program") {
            CopyEnd::Program(self.string()?)
        } else if self.eat("stdin") || self.eat("stdout") {
            CopyEnd::Client
        } else {
            CopyEnd::File(self.string()?)
        };
        let mut options = self.copy_options()?;
        if binary {
            options.insert(
                0,
                GenericOption { name: "format".to_owned(), value: Some(OptionValue::Word("binary".to_owned())), pos },
            );
        }
        let at = self.pos();
        let filter = self.opt_where()?;
        if filter.is_some() && !from {
            return Err(SqlError::new(code::SYNTAX_ERROR, "WHERE clause not allowed with COPY TO").at(at));
        }
        Ok(Statement::Copy(Box::new(Copy { source, from, end, options, filter })))
    }
}
