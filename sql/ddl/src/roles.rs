//! Roles and their memberships.
//!
//! Source: PostgreSQL 15's src/backend/commands/user.c, for the rights and the errors.

use super::{Ddl, missing};
use crate::context::privileges::{Judge, role_by_oid};
use crate::error::{Result, SqlError, code};
use crate::syntax::ddl::{GrantRole, RoleOption, RoleSpec};
use crate::types::text::Conversion;
use crate::types::{Datum, SqlType, oid, text};
use clearway_engine::catalog::predefined::DATABASE_OWNER;
use clearway_engine::catalog::{Catalog, Membership, Object, Role};

fn reserved(name: &str) -> SqlError {
    SqlError::new("42939", format!("role name \"{name}\" is reserved"))
}

fn denied(message: impl Into<String>) -> SqlError {
    SqlError::new("42501", message.into())
}

/// Whether no role may have this name.
pub(super) fn check_name(name: &str) -> Result<()> {
    if name.starts_with("pg_") {
        return Err(reserved(name).detail("Role names starting with \"pg_\" are reserved."));
    }
    Ok(())
}

/// Checks that a statement does not change a role of the system's by its name.
pub(super) fn refuse_predefined(role: &RoleSpec) -> Result<()> {
    match role {
        RoleSpec::Name(name) if name.starts_with("pg_") => Err(reserved(name).detail("Cannot alter reserved roles.")),
        _ => Ok(()),
    }
}

impl Ddl<'_> {
    /// The judge of the session's role; the catalog outlives it.
    pub(super) fn judge<'c>(&self, catalog: &'c Catalog) -> Judge<'c> {
        Judge::of(self.core, catalog)
    }

    /// The role that a statement names, by name or by one of the words for the session's roles.
    pub(super) fn role_named(&self, catalog: &Catalog, role: &RoleSpec) -> Result<Role> {
        let settings = self.core.settings.lock();
        let found = match role {
            RoleSpec::CurrentUser => settings.current_role().and_then(|oid| role_by_oid(catalog, oid)),
            RoleSpec::SessionUser => settings.session_role().and_then(|oid| role_by_oid(catalog, oid)),
            RoleSpec::Name(name) => catalog.role(name),
            RoleSpec::Public => None,
        };
        found.cloned().ok_or_else(|| missing("role", role.shown()))
    }

    /// Numbers of roles, where `public` is none.
    pub(super) fn role_numbers(&self, catalog: &Catalog, roles: &[RoleSpec]) -> Result<Vec<u32>> {
        roles.iter().map(|role| Ok(self.role_named(catalog, role)?.oid)).collect()
    }

    /// Numbers of roles; `public` is 0.
    pub(super) fn grantees(&self, catalog: &Catalog, roles: &[RoleSpec]) -> Result<Vec<u32>> {
        let one = |role: &RoleSpec| match role {
            RoleSpec::Public => Ok(0),
            role => self.role_named(catalog, role).map(|role| role.oid),
        };
        roles.iter().map(one).collect()
    }

    /// Checks that the session's role may make and change roles.
    fn creates_roles(&self, catalog: &Catalog) -> bool {
        self.judge(catalog).role().is_some_and(|role| role.superuser || role.create_role)
    }

    fn role_options(&self, role: &mut Role, options: &[RoleOption]) -> Result<()> {
        for o in options {
            match o {
                RoleOption::Superuser(on) => role.superuser = *on,
                RoleOption::CreateDb(on) => role.create_db = *on,
                RoleOption::CreateRole(on) => role.create_role = *on,
                RoleOption::Login(on) => role.login = *on,
                RoleOption::Inherit(on) => role.inherit = *on,
                RoleOption::BypassRls(on) => role.bypass_rls = *on,
                RoleOption::ConnectionLimit(n) if *n < -1 => {
                    return Err(SqlError::new(code::INVALID_PARAMETER_VALUE, format!("invalid connection limit: {n}")));
                }
                RoleOption::ConnectionLimit(n) => role.connection_limit = i32::try_from(*n).unwrap_or(i32::MAX),
                RoleOption::Password(None) => role.password = None,
                RoleOption::Password(Some(text)) => {
                    role.password = crate::context::password::to_store(text)?;
                    if role.password.is_none() {
                        let message = "empty string is not a valid password, clearing password";
                        self.core.notice("NOTICE", SqlError::new("00000", message));
                    }
                }
                RoleOption::ValidUntil(text) => role.valid_until = Some(self.moment(text)?),
                RoleOption::Replication(on) => role.replication = *on,
                RoleOption::InRole(_) | RoleOption::Role(_) | RoleOption::Admin(_) => {}
            }
        }
        Ok(())
    }

    fn moment(&self, text: &str) -> Result<i64> {
        let catalog = self.catalog();
        let names = self.core.names(&catalog);
        let format = self.core.settings.lock().format.clone();
        let conversion = Conversion { format: &format, now: crate::context::core::now(), names: &names };
        match text::input(SqlType::new(oid::TIMESTAMPTZ), text, &conversion)? {
            Datum::TimestampTz(at) => Ok(at),
            _ => Err(SqlError::internal("a value that is not a time")),
        }
    }

    /// CREATE ROLE.
    pub(super) async fn create_role(&self, name: &str, login: bool, options: &[RoleOption]) -> Result<&'static str> {
        let catalog = self.catalog();
        if options.iter().any(|o| matches!(o, RoleOption::Superuser(true))) {
            self.superuser("must be superuser to create superusers")?;
        } else if options.iter().any(|o| matches!(o, RoleOption::Replication(true))) {
            self.superuser("must be superuser to create replication users")?;
        } else if options.iter().any(|o| matches!(o, RoleOption::BypassRls(true))) {
            self.superuser("must be superuser to create bypassrls users")?;
        } else if !self.creates_roles(&catalog) {
            return Err(denied("permission denied to create role"));
        }
        check_name(name)?;
        if catalog.role(name).is_some() {
            return Err(SqlError::new("42710", format!("role \"{name}\" already exists")));
        }
        let mut role = Role { login, ..Role::new(self.new_oid(), name) };
        self.role_options(&mut role, options)?;
        self.put(Object::Role(role)).await?;
        let new = [RoleSpec::Name(name.to_owned())];
        for option in options {
            match option {
                RoleOption::InRole(roles) => self.change_members(&membership(roles, &new, false)).await?,
                RoleOption::Role(members) => self.change_members(&membership(&new, members, false)).await?,
                RoleOption::Admin(members) => self.change_members(&membership(&new, members, true)).await?,
                _ => {}
            }
        }
        Ok("CREATE ROLE")
    }

    /// ALTER ROLE.
    pub(super) async fn alter_role(&self, name: &RoleSpec, options: &[RoleOption]) -> Result<&'static str> {
        refuse_predefined(name)?;
        if options.iter().any(|o| matches!(o, RoleOption::InRole(_) | RoleOption::Role(_) | RoleOption::Admin(_))) {
            return Err(SqlError::unsupported("memberships in ALTER ROLE"));
        }
        let catalog = self.catalog();
        let mut role = self.role_named(&catalog, name)?;
        if role.superuser || options.iter().any(|o| matches!(o, RoleOption::Superuser(_))) {
            self.superuser("must be superuser to alter superuser roles or change superuser attribute")?;
        } else if role.has_replication() || options.iter().any(|o| matches!(o, RoleOption::Replication(_))) {
            self.superuser("must be superuser to alter replication roles or change replication attribute")?;
        } else if options.iter().any(|o| matches!(o, RoleOption::BypassRls(_))) {
            self.superuser("must be superuser to change bypassrls attribute")?;
        } else if !self.creates_roles(&catalog) {
            let own = self.judge(&catalog).role().is_some_and(|me| me.oid == role.oid);
            if !own || options.iter().any(|o| !matches!(o, RoleOption::Password(_))) {
                return Err(denied("permission denied"));
            }
        }
        self.role_options(&mut role, options)?;
        self.put(Object::Role(role)).await?;
        Ok("ALTER ROLE")
    }

    /// Whether the session's role may rename a role so.
    pub(super) fn may_rename_role(&self, role: &Role, to: &str) -> Result<()> {
        let (current, session) = self.own_roles();
        if Some(role.oid) == session || role.oid == self.core.login {
            return Err(SqlError::new(code::FEATURE_NOT_SUPPORTED, "session user cannot be renamed"));
        }
        if Some(role.oid) == current {
            return Err(SqlError::new(code::FEATURE_NOT_SUPPORTED, "current user cannot be renamed"));
        }
        if Catalog::is_predefined(role.oid) {
            return Err(reserved(&role.name).detail("Role names starting with \"pg_\" are reserved."));
        }
        check_name(to)?;
        let catalog = self.catalog();
        if catalog.role(to).is_some() {
            return Err(SqlError::new("42710", format!("role \"{to}\" already exists")));
        }
        if role.superuser {
            return self.superuser("must be superuser to rename superusers");
        }
        if self.creates_roles(&catalog) { Ok(()) } else { Err(denied("permission denied to rename role")) }
    }

    /// Whether the session's role may drop a role.
    pub(super) fn may_drop_role(&self, role: &Role) -> Result<()> {
        let catalog = self.catalog();
        if !self.creates_roles(&catalog) {
            return Err(denied("permission denied to drop role"));
        }
        let (current, session) = self.own_roles();
        if Some(role.oid) == current {
            return Err(SqlError::new("55006", "current user cannot be dropped"));
        }
        if Some(role.oid) == session || role.oid == self.core.login {
            return Err(SqlError::new("55006", "session user cannot be dropped"));
        }
        if role.superuser {
            self.superuser("must be superuser to drop superusers")?;
        }
        if Catalog::is_predefined(role.oid) || role.oid == clearway_engine::catalog::BOOTSTRAP_ROLE {
            let message = format!("cannot drop role {} because it is required by the database system", role.name);
            return Err(SqlError::new("2BP01", message));
        }
        Ok(())
    }

    /// Whether the session's role may comment on a role.
    pub(super) fn may_comment_role(&self, role: &Role) -> Result<()> {
        if role.superuser {
            return self.superuser("must be superuser to comment on a superuser role");
        }
        match self.creates_roles(&self.catalog()) {
            true => Ok(()),
            false => Err(denied("must have CREATEROLE privilege")),
        }
    }

    fn own_roles(&self) -> (Option<u32>, Option<u32>) {
        let settings = self.core.settings.lock();
        (settings.current_role(), settings.session_role())
    }

    /// The memberships in a role end with it, as does what it granted.
    pub(super) async fn forget_members(&self, role: u32) -> Result<()> {
        let catalog = self.catalog();
        for object in catalog.objects() {
            let Object::Role(member) = &**object else { continue };
            if member.member_of.iter().any(|m| m.role == role) {
                let mut member = member.clone();
                member.member_of.retain(|m| m.role != role);
                self.put(Object::Role(member)).await?;
            }
        }
        Ok(())
    }

    /// A schema goes: what roles grant by default in it goes, too.
    pub(super) async fn forget_defaults(&self, schema: u32) -> Result<()> {
        let catalog = self.catalog();
        for object in catalog.objects() {
            let Object::Role(role) = &**object else { continue };
            if role.defaults.iter().any(|list| list.schema == schema) {
                let mut role = role.clone();
                role.defaults.retain(|list| list.schema != schema);
                self.put(Object::Role(role)).await?;
            }
        }
        Ok(())
    }

    /// GRANT and REVOKE of roles.
    pub(super) async fn grant_role(&self, s: &GrantRole) -> Result<&'static str> {
        self.change_members(s).await?;
        Ok(match (s.as_group, s.revoke) {
            (true, _) => "ALTER ROLE",
            (false, true) => "REVOKE ROLE",
            (false, false) => "GRANT ROLE",
        })
    }

    async fn change_members(&self, s: &GrantRole) -> Result<()> {
        let catalog = self.catalog();
        let by = match &s.granted_by {
            Some(name) => self.role_named(&catalog, name)?.oid,
            None => self.role()?,
        };
        let members = s.to.iter().map(|name| self.role_named(&catalog, name)).collect::<Result<Vec<_>>>()?;
        for name in &s.roles {
            let role = self.role_named(&catalog, name)?;
            self.may_change_members(&catalog, &role, by)?;
            for member in &members {
                // The catalog of the moment: another pair of this statement may have changed the member.
                let catalog = self.catalog();
                let Some(member) = role_by_oid(&catalog, member.oid) else { continue };
                let changed = if s.revoke {
                    self.ceases(member, &role, s.admin)
                } else {
                    self.joins(&catalog, member, &role, by, s.admin)?
                };
                if let Some(member) = changed {
                    self.put(Object::Role(member)).await?;
                }
            }
        }
        Ok(())
    }

    fn may_change_members(&self, catalog: &Catalog, role: &Role, by: u32) -> Result<()> {
        if role.superuser {
            self.superuser("must be superuser to alter superusers")?;
        } else if !self.creates_roles(catalog) && !self.judge(catalog).is_admin(role.oid) {
            return Err(denied(format!("must have admin option on role \"{}\"", role.name)));
        }
        if role.oid == DATABASE_OWNER {
            let message = format!("role \"{}\" cannot have explicit members", role.name);
            return Err(SqlError::new("XX000", message));
        }
        if by != self.role()? {
            self.superuser("must be superuser to set grantor")?;
        }
        Ok(())
    }

    /// The member with the membership; none if it has it already.
    fn joins(&self, catalog: &Catalog, member: &Role, role: &Role, by: u32, admin: bool) -> Result<Option<Role>> {
        if member.oid == DATABASE_OWNER {
            let message = format!("role \"{}\" cannot be a member of any role", member.name);
            return Err(SqlError::new("XX000", message));
        }
        if Judge::new(catalog, 0, Some(role.oid)).reaches(member.oid, |_| true) {
            let message = format!("role \"{}\" is a member of role \"{}\"", role.name, member.name);
            return Err(SqlError::new("0LP01", message));
        }
        let mut member = member.clone();
        match member.member_of.iter_mut().find(|m| m.role == role.oid) {
            Some(m) if m.admin || !admin => {
                let message = format!("role \"{}\" is already a member of role \"{}\"", member.name, role.name);
                self.core.notice("NOTICE", SqlError::new("00000", message));
                return Ok(None);
            }
            Some(m) => (m.admin, m.by) = (true, by),
            None => member.member_of.push(Membership { role: role.oid, admin, by }),
        }
        Ok(Some(member))
    }

    /// The member without the membership, or without its ADMIN OPTION; none if it was no member.
    fn ceases(&self, member: &Role, role: &Role, admin_only: bool) -> Option<Role> {
        let mut changed = member.clone();
        let Some(at) = changed.member_of.iter().position(|m| m.role == role.oid) else {
            let message = format!("role \"{}\" is not a member of role \"{}\"", member.name, role.name);
            self.core.notice("WARNING", SqlError::new("01000", message));
            return None;
        };
        if admin_only {
            changed.member_of[at].admin = false;
        } else {
            changed.member_of.remove(at);
        }
        Some(changed)
    }
}

fn membership(roles: &[RoleSpec], to: &[RoleSpec], admin: bool) -> GrantRole {
    GrantRole {
        revoke: false,
        roles: roles.to_vec(),
        to: to.to_vec(),
        admin,
        granted_by: None,
        cascade: false,
        as_group: false,
    }
}
