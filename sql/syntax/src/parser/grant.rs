//! GRANT, REVOKE, ALTER DEFAULT PRIVILEGES.

use super::super::ast::QualName;
use super::super::ddl::{DefaultPrivileges, Grant, GrantRole, ObjectKind, RoleSpec};
use super::super::lexer::Tok;
use super::super::routine::{RoutineKind, RoutineName};
use super::super::stmt::Statement;
use super::Parser;
use crate::error::{Result, SqlError};

/// The roles that GRANT and REVOKE write where others have privileges: they are names, none of the words of [`RoleSpec`].
fn granted_roles(words: Vec<(String, Vec<String>)>) -> Result<Vec<RoleSpec>> {
    if words.iter().any(|(_, columns)| !columns.is_empty()) {
        return Err(SqlError::new("0LP01", "column names cannot be included in GRANT/REVOKE ROLE"));
    }
    Ok(words.into_iter().map(|(name, _)| RoleSpec::Name(name)).collect())
}

impl Parser<'_> {
    pub(super) fn grant(&mut self, revoke: bool) -> Result<Statement> {
        self.advance();
        let mut grant_option = revoke && self.eat_seq(&["grant", "option", "for"]);
        let admin_for = revoke && self.eat_seq(&["admin", "option", "for"]);
        let all = self.is("all");
        let privileges = self.privilege_list()?;
        let preposition = if revoke { "from" } else { "to" };
        if !all && self.eat(preposition) {
            let to = self.comma_list(Self::role_spec)?;
            let admin = admin_for || (!revoke && self.eat_seq(&["with", "admin", "option"]));
            let granted_by = self.granted_by()?;
            let cascade = revoke && self.cascade();
            let roles = granted_roles(privileges)?;
            return Ok(Statement::GrantRole(GrantRole {
                revoke,
                roles,
                to,
                admin,
                granted_by,
                cascade,
                as_group: false,
            }));
        }
        self.expect("on")?;
        let routines = self.granted_routines()?;
        let (object, names, all_in_schema) = match routines {
            Some((_, (_, ref schemas), all)) => (ObjectKind::Function, schemas.clone(), all),
            None => self.grant_objects()?,
        };
        let routines = routines.map(|(kind, (routines, _), _)| (kind, routines));
        self.expect(preposition)?;
        let roles = self.comma_list(|p| {
            p.eat("group");
            p.role_spec()
        })?;
        grant_option |= !revoke && self.eat_seq(&["with", "grant", "option"]);
        let granted_by = self.granted_by()?;
        let cascade = revoke && self.cascade();
        let grant = Grant {
            revoke,
            privileges,
            object,
            names,
            routines,
            all_in_schema,
            roles,
            grant_option,
            granted_by,
            cascade,
        };
        Ok(Statement::Grant(grant))
    }

    fn granted_by(&mut self) -> Result<Option<RoleSpec>> {
        if self.eat_seq(&["granted", "by"]) { self.role_spec().map(Some) } else { Ok(None) }
    }

    /// ALTER DEFAULT PRIVILEGES.
    pub(super) fn default_privileges(&mut self) -> Result<Statement> {
        let (mut roles, mut schemas) = (Vec::new(), Vec::new());
        loop {
            if self.eat_seq(&["for", "role"]) || self.eat_seq(&["for", "user"]) {
                roles.extend(self.comma_list(Self::role_spec)?);
            } else if self.eat_seq(&["in", "schema"]) {
                schemas.extend(self.comma_list(Self::col_id)?);
            } else {
                break;
            }
        }
        let revoke = self.is("revoke");
        if !revoke && !self.is("grant") {
            return Err(self.error_here());
        }
        self.advance();
        let mut grant_option = revoke && self.eat_seq(&["grant", "option", "for"]);
        let privileges = self.privilege_list()?;
        self.expect("on")?;
        let object = if self.eat("tables") {
            ObjectKind::Table
        } else if self.eat("sequences") {
            ObjectKind::Sequence
        } else if self.eat("schemas") {
            ObjectKind::Schema
        } else if self.eat("types") {
            ObjectKind::Type
        } else if self.eat("functions") || self.eat("routines") {
            ObjectKind::Function
        } else {
            return Err(self.error_here());
        };
        self.expect(if revoke { "from" } else { "to" })?;
        let grantees = self.comma_list(|p| {
            p.eat("group");
            p.role_spec()
        })?;
        grant_option |= !revoke && self.eat_seq(&["with", "grant", "option"]);
        let cascade = revoke && self.cascade();
        let (names, all_in_schema, granted_by) = (Vec::new(), false, None);
        let grant = Grant {
            revoke,
            privileges,
            object,
            names,
            routines: None,
            all_in_schema,
            roles: grantees,
            grant_option,
            granted_by,
            cascade,
        };
        Ok(Statement::AlterDefaultPrivileges(DefaultPrivileges { roles, schemas, grant }))
    }

    /// gram.y's privilege.
    fn privilege(&mut self) -> Result<String> {
        if self.is_any(&["select", "references", "create"]) { self.col_label() } else { self.col_id() }
    }

    /// Privileges with columns where written; empty: ALL.
    fn privilege_list(&mut self) -> Result<Vec<(String, Vec<String>)>> {
        if !self.eat("all") {
            return self.comma_list(|p| Ok((p.privilege()?, p.opt_name_list()?)));
        }
        self.eat("privileges");
        let columns = self.opt_name_list()?;
        Ok(if columns.is_empty() { Vec::new() } else { vec![(String::new(), columns)] })
    }

    /// Functions and procedures, or the schemas whose they are (true).
    #[allow(clippy::type_complexity)]
    fn granted_routines(&mut self) -> Result<Option<(RoutineKind, (Vec<RoutineName>, Vec<QualName>), bool)>> {
        for (word, kind) in [
            ("functions", RoutineKind::Function),
            ("procedures", RoutineKind::Procedure),
            ("routines", RoutineKind::Routine),
        ] {
            if self.eat_seq(&["all", word, "in", "schema"]) {
                return Ok(Some((kind, (Vec::new(), self.comma_list(Self::qual_name)?), true)));
            }
        }
        let named =
            matches!(self.peek_at(1), Tok::Word(_) | Tok::Quoted(_)) && !matches!(self.word_at(1), Some("to" | "from"));
        if !self.is_routine() || !named {
            return Ok(None);
        }
        let Some(kind) = self.routine_kind() else { return Ok(None) };
        Ok(Some((kind, (self.comma_list(Self::routine_name)?, Vec::new()), false)))
    }

    fn grant_objects(&mut self) -> Result<(ObjectKind, Vec<QualName>, bool)> {
        if self.eat("all") {
            let object = if self.eat("tables") {
                ObjectKind::Table
            } else {
                self.expect("sequences")?;
                ObjectKind::Sequence
            };
            self.expect_seq(&["in", "schema"])?;
            return Ok((object, self.comma_list(Self::qual_name)?, true));
        }
        if self.eat_seq(&["large", "object"]) {
            return Ok((ObjectKind::LargeObject, self.comma_list(Self::large_object)?, false));
        }
        let refused = ["language", "foreign", "tablespace", "parameter"];
        if self.is_any(&refused)
            && matches!(self.peek_at(1), Tok::Word(_) | Tok::Quoted(_))
            && self.word_at(1) != Some("to")
        {
            return Err(self.unsupported("GRANT on this kind of object"));
        }
        let object = if self.eat("sequence") {
            ObjectKind::Sequence
        } else if self.eat("database") {
            ObjectKind::Database
        } else if self.eat("schema") {
            ObjectKind::Schema
        } else if self.is_any(&["type", "domain"])
            && matches!(self.peek_at(1), Tok::Word(_) | Tok::Quoted(_))
            && self.word_at(1) != Some("to")
        {
            if self.eat("type") {
                ObjectKind::Type
            } else {
                self.expect("domain")?;
                ObjectKind::Domain
            }
        } else {
            self.eat("table");
            ObjectKind::Table
        };
        Ok((object, self.comma_list(Self::qual_name)?, false))
    }
}
