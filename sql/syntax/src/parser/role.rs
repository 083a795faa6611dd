//! Roles, as statements name them.

use super::super::ddl::RoleSpec;
use super::Parser;
use crate::ast::QualName;
use crate::error::{Pos, Result, SqlError, code};

fn reserved(message: String, pos: Pos) -> SqlError {
    SqlError::new(code::RESERVED_NAME, message).at(pos)
}

impl Parser<'_> {
    /// gram.y's RoleSpec: a name, or one of the words for the session's roles and for everybody.
    pub(super) fn role_spec(&mut self) -> Result<RoleSpec> {
        let pos = self.pos();
        let word = match self.word_at(0) {
            Some("current_user" | "current_role") => Some(RoleSpec::CurrentUser),
            Some("session_user") => Some(RoleSpec::SessionUser),
            _ => None,
        };
        if let Some(word) = word {
            self.advance();
            return Ok(word);
        }
        let name = self.non_reserved()?;
        match name.as_str() {
            "public" => Ok(RoleSpec::Public),
            "none" => Err(reserved("role name \"none\" is reserved".to_owned(), pos)),
            _ => Ok(RoleSpec::Name(name)),
        }
    }

    /// gram.y's RoleId: the name that a role gets or has, and none of the words.
    pub(super) fn role_id(&mut self) -> Result<String> {
        let pos = self.pos();
        let word = self.word_at(0).map(str::to_ascii_uppercase);
        match (self.role_spec()?, word) {
            (RoleSpec::Name(name), _) => Ok(name),
            (RoleSpec::Public, _) => Err(reserved("role name \"public\" is reserved".to_owned(), pos)),
            (_, word) => Err(reserved(format!("{} cannot be used as a role name here", word.unwrap_or_default()), pos)),
        }
    }

    /// A role that DROP ROLE names.
    pub(super) fn dropped_role(&mut self) -> Result<QualName> {
        let pos = self.pos();
        match self.role_spec()? {
            RoleSpec::Name(name) => Ok(QualName { parts: vec![name], pos }),
            _ => {
                let message = "cannot use special role specifier in DROP ROLE";
                Err(SqlError::new(code::INVALID_PARAMETER_VALUE, message))
            }
        }
    }
}
