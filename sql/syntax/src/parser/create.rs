//! CREATE, and REFRESH.

use super::super::ast::{ExprKind, QualName};
use super::super::ddl::{
    CreateIndex, CreateRule, CreateTable, CreateTableAs, IndexKey, Like, LikeOption, OnCommit, Persistence, RuleEvent,
};
use super::super::keywords::{self, Category};
use super::super::lexer::Tok;
use super::super::stmt::{GenericOption, OptionValue, Statement};
use super::Parser;
use crate::error::{Result, SqlError, code};

impl Parser<'_> {
    pub(super) fn create(&mut self) -> Result<Statement> {
        self.expect("create")?;
        let replace = self.eat_seq(&["or", "replace"]);
        let persistence = self.persistence()?;
        let temporary = persistence == Persistence::Temporary;
        match self.word_at(0) {
            Some("table") if !replace => self.create_table(persistence),
            Some("view") if persistence != Persistence::Unlogged => self.create_view(replace, temporary),
            Some("recursive") if persistence != Persistence::Unlogged => self.create_recursive_view(replace, temporary),
            Some("sequence") if !replace => {
                self.advance();
                let if_not_exists = self.if_not_exists();
                let name = self.qual_name()?;
                Ok(Statement::CreateSequence { name, temporary, if_not_exists, options: self.sequence_options()? })
            }
            Some("materialized") if !replace && !temporary => self.create_materialized_view(persistence),
            Some("function" | "procedure") if persistence == Persistence::Permanent => self.create_routine(replace),
            Some("rule") if persistence == Persistence::Permanent => self.create_rule(replace),
            _ if replace || persistence != Persistence::Permanent => Err(self.error_or_unsupported()),
            Some("unique" | "index") => self.create_index(),
            Some("schema") => self.create_schema(),
            Some("type") => self.create_type(),
            Some("domain") => self.create_domain(),
            Some("operator") => self.create_operator(),
            Some("policy") => self.create_policy(),
            Some("extension") => self.create_extension(),
            Some("database") => {
                self.advance();
                let name = self.col_id()?;
                Ok(Statement::CreateDatabase { name, options: self.database_options()? })
            }
            Some(word @ ("role" | "user" | "group")) => {
                let login = word == "user";
                self.advance();
                if self.is_seq(&["mapping", "for"]) {
                    return Err(self.unsupported("CREATE USER MAPPING"));
                }
                let name = self.role_id()?;
                self.eat("with");
                Ok(Statement::CreateRole { name, login, options: self.role_options()? })
            }
            _ => Err(self.error_or_unsupported()),
        }
    }

    /// 0A000 for an object that PostgreSQL knows, 42601 for any other word.
    fn error_or_unsupported(&self) -> SqlError {
        let known = [
            "function",
            "procedure",
            "trigger",
            "type",
            "domain",
            "extension",
            "aggregate",
            "operator",
            "cast",
            "collation",
            "conversion",
            "publication",
            "subscription",
            "server",
            "foreign",
            "tablespace",
            "text",
            "statistics",
            "event",
            "language",
            "access",
            "transform",
            "constraint",
            "trusted",
            "procedural",
            "default",
            "large",
            "system",
            "routine",
            "owned",
        ];
        match self.word_at(0) {
            Some(w) if known.contains(&w) => self.unsupported(&format!("{} as an object", w.to_ascii_uppercase())),
            _ => self.error_here(),
        }
    }

    pub(super) fn unknown_object(&self) -> SqlError {
        self.error_or_unsupported()
    }

    fn persistence(&mut self) -> Result<Persistence> {
        if self.is_any(&["local", "global"]) {
            self.advance();
            if !self.is_any(&["temp", "temporary"]) {
                return Err(self.error_here());
            }
        }
        Ok(if self.eat("temp") || self.eat("temporary") {
            Persistence::Temporary
        } else if self.eat("unlogged") {
            Persistence::Unlogged
        } else {
            Persistence::Permanent
        })
    }

    fn create_schema(&mut self) -> Result<Statement> {
        self.expect("schema")?;
        let if_not_exists = self.if_not_exists();
        let name = if self.is("authorization") { None } else { Some(self.col_id()?) };
        let owner = if self.eat("authorization") { Some(self.role_spec()?) } else { None };
        let mut elements = Vec::new();
        while self.is_any(&["create", "grant"]) {
            if if_not_exists {
                let message = "CREATE SCHEMA IF NOT EXISTS cannot include schema elements";
                return Err(SqlError::new(code::FEATURE_NOT_SUPPORTED, message).at(self.pos()));
            }
            elements.push(self.schema_element()?);
        }
        Ok(Statement::CreateSchema { name, owner, if_not_exists, elements })
    }

    /// What may stand behind CREATE SCHEMA: tables, views, indexes, sequences and GRANT.
    fn schema_element(&mut self) -> Result<Statement> {
        let begins = self.at;
        self.advance();
        let wrong = self.error_here();
        self.at = begins;
        let element = self.nested(|p| if p.is("grant") { p.grant(false) } else { p.create() })?;
        match element {
            Statement::CreateTable(_)
            | Statement::CreateView { .. }
            | Statement::CreateIndex(_)
            | Statement::CreateSequence { .. }
            | Statement::Grant(_) => Ok(element),
            _ => Err(wrong),
        }
    }

    pub(super) fn database_options(&mut self) -> Result<Vec<GenericOption>> {
        self.eat("with");
        let mut out = Vec::new();
        while !matches!(self.peek(), Tok::End | Tok::Punct(b';')) {
            let pos = self.pos();
            let mut name = self.col_label()?;
            if name == "connection" {
                self.expect("limit")?;
                name = "connection limit".to_owned();
            }
            self.eat_op("=");
            let value = Some(self.option_value()?);
            out.push(GenericOption { name, value, pos });
        }
        Ok(out)
    }

    fn create_view(&mut self, replace: bool, temporary: bool) -> Result<Statement> {
        self.expect("view")?;
        let name = self.qual_name()?;
        let columns = self.opt_name_list()?;
        let mut options = self.opt_storage()?;
        self.expect("as")?;
        let first = self.at;
        let query = Box::new(self.query()?);
        let text = self.text_from(first);
        options.extend(self.check_option()?);
        Ok(Statement::CreateView { name, columns, options, query, replace, temporary, text })
    }

    /// `RECURSIVE VIEW name (columns) AS query`: the view of a query that has this one in its WITH RECURSIVE, under the view's name.
    fn create_recursive_view(&mut self, replace: bool, temporary: bool) -> Result<Statement> {
        self.expect_seq(&["recursive", "view"])?;
        let name = self.qual_name()?;
        let columns = self.name_list()?;
        let options = self.opt_storage()?;
        self.expect("as")?;
        let first = self.at;
        self.query()?;
        let inner = self.text_from(first);
        let at = self.pos();
        if self.check_option()?.is_some() {
            let message = "WITH CHECK OPTION not supported on recursive views";
            return Err(SqlError::new(code::FEATURE_NOT_SUPPORTED, message).at(at));
        }
        let list = columns.iter().map(|column| quoted(column)).collect::<Vec<_>>().join(", ");
        let own = quoted(name.name());
        let text = format!("WITH RECURSIVE {own} ({list}) AS ({inner}) SELECT {list} FROM {own}");
        let Some(Statement::Query(query)) = super::parse(&text)?.pop().map(|parsed| parsed.statement) else {
            return Err(SqlError::internal("the query of a recursive view"));
        };
        Ok(Statement::CreateView { name, columns, options, query, replace, temporary, text })
    }

    /// `WITH [LOCAL | CASCADED] CHECK OPTION`, as the option of the view that it stands for.
    fn check_option(&mut self) -> Result<Option<GenericOption>> {
        let pos = self.pos();
        if !self.eat("with") {
            return Ok(None);
        }
        let local = self.eat("local");
        if !local {
            self.eat("cascaded");
        }
        self.expect_seq(&["check", "option"])?;
        let value = Some(OptionValue::Word(if local { "local" } else { "cascaded" }.to_owned()));
        Ok(Some(GenericOption { name: "check_option".to_owned(), value, pos }))
    }

    fn create_materialized_view(&mut self, persistence: Persistence) -> Result<Statement> {
        self.expect_seq(&["materialized", "view"])?;
        let if_not_exists = self.if_not_exists();
        let name = self.qual_name()?;
        self.create_as(name, persistence, if_not_exists, true)
    }

    /// The part of CREATE TABLE AS and CREATE MATERIALIZED VIEW behind the name.
    fn create_as(
        &mut self,
        name: QualName,
        persistence: Persistence,
        if_not_exists: bool,
        view: bool,
    ) -> Result<Statement> {
        let columns = self.opt_name_list()?;
        self.access_method()?;
        let storage = self.opt_storage()?;
        let on_commit = self.on_commit()?;
        self.no_tablespace()?;
        self.expect("as")?;
        let first = self.at;
        let query = if self.is("execute") { self.statement()? } else { Statement::Query(Box::new(self.query()?)) };
        let text = self.text_from(first);
        let with_data = !self.eat_seq(&["with", "no", "data"]);
        if with_data {
            self.eat_seq(&["with", "data"]);
        }
        Ok(Statement::CreateTableAs(Box::new(CreateTableAs {
            name,
            materialized_view: view,
            persistence,
            if_not_exists,
            columns,
            storage,
            on_commit,
            query: Box::new(query),
            text,
            with_data,
        })))
    }

    pub(super) fn refresh(&mut self) -> Result<Statement> {
        self.expect_seq(&["refresh", "materialized", "view"])?;
        let concurrently = self.eat("concurrently");
        let name = self.qual_name()?;
        let with_data = !self.eat_seq(&["with", "no", "data"]);
        if with_data {
            self.eat_seq(&["with", "data"]);
        }
        Ok(Statement::RefreshMaterializedView { name, concurrently, with_data })
    }

    /// USING heap, the table access method of PostgreSQL's default.
    fn access_method(&mut self) -> Result<()> {
        let refused = self.unsupported("a table access method other than heap");
        if self.eat("using") && self.col_id()? != "heap" { Err(refused) } else { Ok(()) }
    }

    /// TABLESPACE pg_default, where everything is.
    pub(super) fn no_tablespace(&mut self) -> Result<()> {
        let refused = self.unsupported("TABLESPACE");
        if self.eat("tablespace") && self.col_id()? != "pg_default" { Err(refused) } else { Ok(()) }
    }

    fn on_commit(&mut self) -> Result<Option<OnCommit>> {
        if !self.eat_seq(&["on", "commit"]) {
            return Ok(None);
        }
        if self.eat("drop") {
            return Ok(Some(OnCommit::Drop));
        }
        let preserve = self.eat("preserve");
        if !preserve {
            self.expect("delete")?;
        }
        self.expect("rows")?;
        Ok(Some(if preserve { OnCommit::PreserveRows } else { OnCommit::DeleteRows }))
    }

    fn create_table(&mut self, persistence: Persistence) -> Result<Statement> {
        self.expect("table")?;
        let if_not_exists = self.if_not_exists();
        let name = self.qual_name()?;
        let is_as = self.is_any(&["as", "using", "with", "on", "tablespace"])
            || (self.is_punct(b'(') && matches!(self.peek_at(2), Tok::Punct(b',' | b')')));
        if is_as {
            return self.create_as(name, persistence, if_not_exists, false);
        }
        if self.is("of") || self.is("partition") {
            return Err(self.unsupported("typed tables and partitions"));
        }
        self.expect_punct(b'(')?;
        let (mut columns, mut constraints, mut like) = (Vec::new(), Vec::new(), Vec::new());
        if !self.is_punct(b')') {
            loop {
                if self.is_table_constraint() {
                    constraints.push(self.table_constraint()?);
                } else if self.is("like") {
                    self.advance();
                    like.push((columns.len(), self.like_clause()?));
                } else {
                    columns.push(self.column_def()?);
                }
                if !self.eat_punct(b',') {
                    break;
                }
            }
        }
        self.expect_punct(b')')?;
        if self.is("inherits") {
            return Err(self.unsupported("INHERITS"));
        }
        if self.is("partition") {
            return Err(self.unsupported("PARTITION BY"));
        }
        self.access_method()?;
        let storage = self.opt_storage()?;
        self.eat_seq(&["without", "oids"]);
        let on_commit = self.on_commit()?;
        let tablespace = if self.eat("tablespace") { Some(self.col_id()?) } else { None };
        Ok(Statement::CreateTable(Box::new(CreateTable {
            name,
            persistence,
            if_not_exists,
            columns,
            constraints,
            like,
            storage,
            on_commit,
            tablespace,
        })))
    }

    /// What stands behind LIKE in CREATE TABLE.
    fn like_clause(&mut self) -> Result<Like> {
        let table = self.qual_name()?;
        let mut options = Vec::new();
        loop {
            let including = self.eat("including");
            if !including && !self.eat("excluding") {
                return Ok(Like { table, options });
            }
            let option = match self.word_at(0) {
                Some("all") => LikeOption::All,
                Some("comments") => LikeOption::Comments,
                Some("compression") => LikeOption::Compression,
                Some("constraints") => LikeOption::Constraints,
                Some("defaults") => LikeOption::Defaults,
                Some("generated") => LikeOption::Generated,
                Some("identity") => LikeOption::Identity,
                Some("indexes") => LikeOption::Indexes,
                Some("statistics") => LikeOption::Statistics,
                Some("storage") => LikeOption::Storage,
                _ => return Err(self.error_here()),
            };
            self.advance();
            options.push((option, including));
        }
    }

    fn create_index(&mut self) -> Result<Statement> {
        let unique = self.eat("unique");
        self.expect("index")?;
        let concurrently = self.eat("concurrently");
        let if_not_exists = self.if_not_exists();
        let name = if self.is("on") && !if_not_exists { None } else { Some(self.col_id()?) };
        self.expect("on")?;
        let table = self.table_name()?;
        let method = if self.eat("using") { Some(self.col_id()?) } else { None };
        let keys = self.paren_list(Self::index_key)?;
        let include = if self.eat("include") { self.name_list()? } else { Vec::new() };
        let nulls_not_distinct = self.nulls_not_distinct();
        let storage = self.opt_storage()?;
        let tablespace = if self.eat("tablespace") { Some(self.col_id()?) } else { None };
        let filter = if self.eat("where") {
            let first = self.at;
            let expr = self.expr()?;
            Some((expr, self.text_from(first)))
        } else {
            None
        };
        Ok(Statement::CreateIndex(Box::new(CreateIndex {
            name,
            table: table.name,
            unique,
            concurrently,
            if_not_exists,
            only: table.only,
            method,
            keys,
            include,
            nulls_not_distinct,
            storage,
            tablespace,
            filter,
        })))
    }

    /// A key of an index or of ON CONFLICT.
    pub(super) fn index_key(&mut self) -> Result<IndexKey> {
        let (pos, mut first) = (self.pos(), self.at);
        let mut inner = None;
        let expr = if self.eat_punct(b'(') {
            first = self.at;
            let expr = self.expr()?;
            inner = Some(self.text_from(first));
            self.expect_punct(b')')?;
            expr
        } else if self.is_col_id() && *self.peek_at(1) != Tok::Punct(b'(') && *self.peek_at(1) != Tok::Punct(b'.') {
            let name = self.col_id()?;
            self.node(ExprKind::Column(QualName { parts: vec![name], pos }), pos)?
        } else {
            let call = self.primary()?;
            if !Self::is_call(&call.kind) {
                return Err(self.error_here());
            }
            call
        };
        let text = inner.unwrap_or_else(|| self.text_from(first));
        let collation = if self.eat("collate") { Some(self.qual_name()?) } else { None };
        let is_opclass = match self.peek() {
            Tok::Word(w) => {
                keywords::lookup(w).is_none_or(|(c, _)| c == Category::Unreserved) && !self.is_any(&["nulls"])
            }
            Tok::Quoted(_) => true,
            _ => false,
        };
        let opclass = if is_opclass { Some(self.qual_name()?) } else { None };
        let descending = self.direction();
        let nulls_first = self.nulls_order()?;
        Ok(IndexKey { expr, text, collation, opclass, descending, nulls_first })
    }

    fn create_rule(&mut self, replace: bool) -> Result<Statement> {
        self.expect("rule")?;
        let name = self.col_id()?;
        self.expect_seq(&["as", "on"])?;
        let event = match self.word_at(0) {
            Some("insert") => RuleEvent::Insert,
            Some("update") => RuleEvent::Update,
            Some("delete") => RuleEvent::Delete,
            Some("select") => return Err(self.unsupported("a rule ON SELECT")),
            _ => return Err(self.error_here()),
        };
        self.advance();
        self.expect("to")?;
        let table = self.qual_name()?;
        if self.is("where") {
            return Err(self.unsupported("a conditional rule"));
        }
        self.expect("do")?;
        if !self.eat("instead") || !self.eat("nothing") {
            return Err(self.unsupported("a rule other than DO INSTEAD NOTHING"));
        }
        Ok(Statement::CreateRule(CreateRule { name, replace, event, table }))
    }
}

/// A name as SQL writes it.
fn quoted(name: &str) -> String {
    let plain = |c: char| c == '_' || c.is_ascii_lowercase() || c.is_ascii_digit();
    let bare = name.chars().all(plain) && name.starts_with(|c: char| !c.is_ascii_digit());
    match bare && keywords::lookup(name).is_none() {
        true => name.to_owned(),
        false => format!("\"{}\"", name.replace('"', "\"\"")),
    }
}
