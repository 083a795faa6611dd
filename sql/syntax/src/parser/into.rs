//! SELECT ... INTO: a table of the rows of a query, as CREATE TABLE AS makes it.

use super::super::ddl::{CreateTableAs, Persistence};
use super::super::stmt::Statement;
use super::{IntoTable, Parser};
use crate::error::{Result, SqlError, code};

impl Parser<'_> {
    /// A statement of the text, with a query's INTO.
    pub(super) fn whole_statement(&mut self) -> Result<Statement> {
        let is_query = self.is_any(&["select", "with"]);
        let statement = self.statement()?;
        let Some(into) = self.into.take() else { return Ok(statement) };
        if !is_query || !matches!(statement, Statement::Query(_)) {
            return Err(not_here(&into));
        }
        Ok(Statement::CreateTableAs(Box::new(CreateTableAs {
            name: into.name,
            materialized_view: false,
            persistence: into.persistence,
            if_not_exists: false,
            columns: Vec::new(),
            storage: Vec::new(),
            on_commit: None,
            query: Box::new(statement),
            text: String::new(),
            with_data: true,
        })))
    }

    /// `INTO [TEMPORARY | UNLOGGED] [TABLE] name`, where it stands.
    pub(super) fn opt_into(&mut self) -> Result<()> {
        if !self.eat("into") {
            return Ok(());
        }
        let local = self.eat("local") || self.eat("global");
        let persistence = if self.eat("temporary") || self.eat("temp") {
            Persistence::Temporary
        } else if !local && self.eat("unlogged") {
            Persistence::Unlogged
        } else {
            Persistence::Permanent
        };
        self.eat("table");
        let into = IntoTable { name: self.qual_name()?, persistence };
        if self.into.is_some() {
            return Err(not_here(&into));
        }
        self.into = Some(into);
        Ok(())
    }

    /// An error if a query behind UNION had one.
    pub(super) fn no_second_into(&self) -> Result<()> {
        let Some(into) = &self.into else { return Ok(()) };
        let message = "INTO is only allowed on first SELECT of UNION/INTERSECT/EXCEPT";
        Err(SqlError::new(code::SYNTAX_ERROR, message).at(into.name.pos))
    }

    /// An error if a query inside of another one had an INTO.
    pub(super) fn no_into(&self) -> Result<()> {
        self.into.as_ref().map_or(Ok(()), |into| Err(not_here(into)))
    }
}

fn not_here(into: &IntoTable) -> SqlError {
    SqlError::new(code::SYNTAX_ERROR, "SELECT ... INTO is not allowed here").at(into.name.pos)
}
