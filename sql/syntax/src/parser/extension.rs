//! CREATE, DROP and COMMENT ON EXTENSION.

use super::super::extension::ExtensionStatement;
use super::super::lexer::Tok;
use super::super::stmt::Statement;
use super::Parser;
use crate::error::Result;

impl Parser<'_> {
    /// Behind CREATE.
    pub(super) fn create_extension(&mut self) -> Result<Statement> {
        self.expect("extension")?;
        let if_not_exists = self.if_not_exists();
        let name = self.col_id()?;
        self.eat("with");
        let (mut schema, mut version) = (None, None);
        loop {
            if schema.is_none() && self.eat("schema") {
                schema = Some(self.col_id()?);
            } else if version.is_none() && self.eat("version") {
                version = Some(if matches!(self.peek(), Tok::Str(_)) { self.string()? } else { self.non_reserved()? });
            } else if !self.eat("cascade") {
                break;
            }
        }
        Ok(Statement::Extension(ExtensionStatement::Create { name, if_not_exists, schema, version }))
    }

    /// Behind COMMENT ON.
    pub(super) fn comment_on_extension(&mut self) -> Result<Statement> {
        self.expect("extension")?;
        let name = self.col_id()?;
        self.expect("is")?;
        let text = if self.eat("null") { None } else { Some(self.string()?) };
        Ok(Statement::Extension(ExtensionStatement::Comment { name, text }))
    }

    /// Behind DROP.
    pub(super) fn drop_extension(&mut self) -> Result<Statement> {
        self.expect("extension")?;
        let if_exists = self.if_exists();
        let names = self.comma_list(Self::col_id)?;
        let cascade = self.cascade();
        Ok(Statement::Extension(ExtensionStatement::Drop { names, if_exists, cascade }))
    }
}
