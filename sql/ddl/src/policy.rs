//! Policies of tables: CREATE, ALTER and DROP POLICY, ALTER TABLE ... ROW LEVEL SECURITY, and the change of policies when a table, a
//! column or a role that they name changes.
//!
//! Source: PostgreSQL 15's src/backend/commands/policy.c, for the rights and the errors.

use super::cascade::{needed_by, shown, shown_column, shown_policy};
use super::{Ddl, missing};
use crate::context::names::quote;
use crate::error::{Result, SqlError, code};
use crate::planner::Planner;
use crate::planner::environment::{find_object, with_env};
use crate::planner::generated::says;
use crate::syntax::ast::QualName;
use crate::syntax::ddl::RoleSpec;
use crate::syntax::policy::{Condition, CreatePolicy, PolicyStatement};
use clearway_engine::catalog::{Catalog, Object, Oid, Policy, PolicyCondition, Relation, RelationKind};
use clearway_txn::lockmgr::LockMode;

/// Whether a condition has a query of its own, in which a name may stand for something else.
fn has_query(text: &str) -> bool {
    says(text, "select") || says(text, "values") || says(text, "table")
}

pub(super) fn unknown(policy: &str, table: &str) -> SqlError {
    SqlError::new(code::UNDEFINED_OBJECT, format!("policy \"{policy}\" for table \"{table}\" does not exist"))
}

fn taken(policy: &str, table: &str) -> SqlError {
    SqlError::new("42710", format!("policy \"{policy}\" for table \"{table}\" already exists"))
}

/// The policies of other tables with conditions that name this one.
pub(super) fn policies_about<'c>(
    catalog: &'c Catalog,
    r: &'c Relation,
) -> impl Iterator<Item = (&'c Relation, &'c Policy)> {
    let relations = catalog.objects().filter_map(|o| match &**o {
        Object::Relation(other) if other.oid != r.oid && other.database == r.database => Some(other),
        _ => None,
    });
    let names = |p: &Policy| p.conditions().any(|c| c.meaning.names.iter().any(|(_, oid)| *oid == r.oid));
    relations.flat_map(move |other| other.security.policies.iter().filter(move |p| names(p)).map(move |p| (other, p)))
}

/// The policies of a table that read one of its columns.
pub(super) fn policies_over<'r>(r: &'r Relation, column: &'r str) -> impl Iterator<Item = &'r Policy> {
    r.security.policies.iter().filter(move |p| p.conditions().any(|c| says(&c.text, column)))
}

/// A column gets another name: conditions follow.
///
/// # Errors
/// 0A000 where a condition has a query, in which the name may be another table's.
pub(super) fn follow_rename(catalog: &Catalog, r: &mut Relation, from: &str, to: &str) -> Result<()> {
    let elsewhere = policies_about(catalog, r).flat_map(|(_, p)| p.conditions()).any(|c| says(&c.text, from));
    let own =
        r.security.policies.iter().flat_map(Policy::conditions).any(|c| has_query(&c.text) && says(&c.text, from));
    if elsewhere || own {
        return Err(SqlError::unsupported("RENAME of a column that a query in a policy may name"));
    }
    for c in r.security.policies.iter_mut().flat_map(Policy::conditions_mut) {
        c.text = crate::syntax::rename::column(&c.text, from, &quote(to));
    }
    Ok(())
}

impl Ddl<'_> {
    /// CREATE, ALTER and DROP POLICY.
    pub(super) async fn policy(&self, s: &PolicyStatement) -> Result<&'static str> {
        match s {
            PolicyStatement::Create(s) => self.create_policy(s).await,
            PolicyStatement::Alter { name, table, roles, using, check } => {
                self.alter_policy((name, table), roles.as_deref(), using.as_ref(), check.as_ref()).await
            }
            PolicyStatement::Rename { name, table, to } => {
                let mut r = self.secured(table).await?;
                if r.security.policies.iter().any(|p| p.name == *to) {
                    return Err(taken(to, &r.name));
                }
                let table = r.name.clone();
                let policy = r.security.policies.iter_mut().find(|p| p.name == *name);
                policy.ok_or_else(|| unknown(name, &table))?.name.clone_from(to);
                self.put(Object::Relation(r)).await?;
                Ok("ALTER POLICY")
            }
            PolicyStatement::Drop { name, table, if_exists } => self.drop_policy(name, table, *if_exists).await,
        }
    }

    /// The table of a policy, locked for a change.
    async fn secured(&self, name: &QualName) -> Result<Relation> {
        let object = find_object(self.core, &self.catalog(), name);
        let object = object.ok_or_else(|| self.no_such("relation", name))?;
        self.owns(&object)?;
        let is_table = |object: &Object| match object {
            Object::Relation(r) if r.kind == RelationKind::Table => Ok(r.clone()),
            other => Err(SqlError::new(code::WRONG_OBJECT_TYPE, format!("\"{}\" is not a table", other.name()))),
        };
        is_table(&object)?;
        self.lock(object.oid(), LockMode::AccessExclusive).await?;
        // PostgreSQL keeps policies apart from the rights on the table: a GRANT in an open transaction is waited for, but nothing fails.
        self.lock_record(&object).await?;
        // What may have changed while the lock was waited for.
        let catalog = self.catalog();
        let object = catalog.get(object.oid()).ok_or_else(|| missing("relation", name.name()))?;
        self.owns(object)?;
        is_table(object)
    }

    /// The roles of a policy; 0 alone stands for every role.
    fn policy_roles(&self, names: &[RoleSpec]) -> Result<Vec<Oid>> {
        let catalog = self.catalog();
        if names.contains(&RoleSpec::Public) {
            if names.len() > 1 {
                let message = "ignoring specified roles other than PUBLIC";
                let hint = "All roles are members of the PUBLIC role.";
                self.core.notice("WARNING", SqlError::new("22023", message).hint(hint));
            }
            return Ok(vec![0]);
        }
        self.grantees(&catalog, names)
    }

    /// A condition with what its names stand for.
    fn policy_condition(&self, r: &Relation, condition: &Condition) -> Result<PolicyCondition> {
        let (e, text) = &self.condition_to_store(r, condition)?;
        let catalog = self.catalog();
        let meaning = with_env(self.core, &catalog, |env| Planner::new(env).plan_policy(r, (e, text)))?;
        Ok(PolicyCondition { text: text.clone(), table: r.name.clone(), meaning })
    }

    async fn create_policy(&self, s: &CreatePolicy) -> Result<&'static str> {
        if matches!(s.command, 'r' | 'd') && s.check.is_some() {
            return Err(SqlError::new(code::SYNTAX_ERROR, "WITH CHECK cannot be applied to SELECT or DELETE"));
        }
        if s.command == 'a' && s.using.is_some() {
            return Err(SqlError::new(code::SYNTAX_ERROR, "only WITH CHECK expression allowed for INSERT"));
        }
        let roles = self.policy_roles(&s.roles)?;
        let mut r = self.secured(&s.table).await?;
        let condition = |c: &Option<Condition>| c.as_ref().map(|c| self.policy_condition(&r, c)).transpose();
        let (using, check) = (condition(&s.using)?, condition(&s.check)?);
        if r.security.policies.iter().any(|p| p.name == s.name) {
            return Err(taken(&s.name, &r.name));
        }
        let (oid, name) = (self.new_oid(), s.name.clone());
        let policy = Policy { oid, name, restrictive: s.restrictive, command: s.command, roles, using, check };
        r.security.policies.push(policy);
        self.put(Object::Relation(r)).await?;
        Ok("CREATE POLICY")
    }

    async fn alter_policy(
        &self,
        (name, table): (&str, &QualName),
        roles: Option<&[RoleSpec]>,
        using: Option<&Condition>,
        check: Option<&Condition>,
    ) -> Result<&'static str> {
        let roles = roles.map(|roles| self.policy_roles(roles)).transpose()?;
        let mut r = self.secured(table).await?;
        let using = using.map(|c| self.policy_condition(&r, c)).transpose()?;
        let check = check.map(|c| self.policy_condition(&r, c)).transpose()?;
        let table = r.name.clone();
        let policy = r.security.policies.iter_mut().find(|p| p.name == name).ok_or_else(|| unknown(name, &table))?;
        if matches!(policy.command, 'r' | 'd') && check.is_some() {
            return Err(SqlError::new(code::SYNTAX_ERROR, "only USING expression allowed for SELECT, DELETE"));
        }
        if policy.command == 'a' && using.is_some() {
            return Err(SqlError::new(code::SYNTAX_ERROR, "only WITH CHECK expression allowed for INSERT"));
        }
        policy.roles = roles.unwrap_or_else(|| policy.roles.clone());
        policy.using = using.or(policy.using.take());
        policy.check = check.or(policy.check.take());
        self.put(Object::Relation(r)).await?;
        Ok("ALTER POLICY")
    }

    /// Whether a table has a policy, or is none. As in PostgreSQL, a policy that is missing is no reason to wait for the table's readers and writers.
    async fn has_policy(&self, name: &str, table: &QualName) -> Result<bool> {
        let has = |object: &Object| !matches!(object, Object::Relation(r) if r.kind == RelationKind::Table && r.security.policies.iter().all(|p| p.name != name));
        let Some(object) = find_object(self.core, &self.catalog(), table) else { return Ok(true) };
        if has(&object) {
            return Ok(true);
        }
        self.lock(object.oid(), LockMode::AccessShare).await?;
        Ok(self.catalog().get(object.oid()).is_none_or(|object| has(object)))
    }

    async fn drop_policy(&self, name: &str, table: &QualName, if_exists: bool) -> Result<&'static str> {
        if if_exists && find_object(self.core, &self.catalog(), table).is_none() {
            let message = format!("relation \"{}\" does not exist, skipping", table.name());
            self.core.notice("NOTICE", SqlError::new("00000", message));
            return Ok("DROP POLICY");
        }
        let named = |error: SqlError| match error.code() {
            "42501" => SqlError::new("42501", format!("must be owner of relation {}", table.name())),
            _ => error,
        };
        if !self.has_policy(name, table).await? {
            if !if_exists {
                return Err(unknown(name, table.name()));
            }
            let message = format!("policy \"{name}\" for relation \"{}\" does not exist, skipping", table.name());
            self.core.notice("NOTICE", SqlError::new("00000", message));
            return Ok("DROP POLICY");
        }
        let mut r = self.secured(table).await.map_err(named)?;
        let Some(at) = r.security.policies.iter().position(|p| p.name == name) else {
            if !if_exists {
                return Err(unknown(name, &r.name));
            }
            let message = format!("policy \"{name}\" for relation \"{}\" does not exist, skipping", r.name);
            self.core.notice("NOTICE", SqlError::new("00000", message));
            return Ok("DROP POLICY");
        };
        r.security.policies.remove(at);
        self.put(Object::Relation(r)).await?;
        Ok("DROP POLICY")
    }

    /// ALTER TABLE ... ENABLE, DISABLE, FORCE, NO FORCE ROW LEVEL SECURITY.
    pub(super) async fn row_security(&self, mut r: Relation, enable: Option<bool>, force: Option<bool>) -> Result<()> {
        if r.kind != RelationKind::Table {
            let what = match (enable, force) {
                (Some(true), _) => "ENABLE",
                (Some(false), _) => "DISABLE",
                (_, Some(true)) => "FORCE",
                _ => "NO FORCE",
            };
            let message = format!("ALTER action {what} ROW SECURITY cannot be performed on relation \"{}\"", r.name);
            let detail = format!("This operation is not supported for {}s.", r.kind.name());
            return Err(SqlError::new(code::WRONG_OBJECT_TYPE, message).detail(detail));
        }
        r.security.enabled = enable.unwrap_or(r.security.enabled);
        r.security.forced = force.unwrap_or(r.security.forced);
        self.put(Object::Relation(r)).await
    }

    /// A table goes that policies of others name: they go with it, or keep it from being dropped.
    pub(super) async fn drop_policies_about(&self, r: &Relation, cascade: bool, together: &[u32]) -> Result<()> {
        let catalog = self.catalog();
        let about: Vec<(u32, u32, String)> = policies_about(&catalog, r)
            .filter(|(table, _)| !together.contains(&table.oid))
            .map(|(table, p)| (table.oid, p.oid, shown_policy(p, table)))
            .collect();
        if about.is_empty() {
            return Ok(());
        }
        if !cascade {
            let this = shown(r);
            let users: Vec<&str> = about.iter().map(|(_, _, shown)| shown.as_str()).collect();
            return Err(needed_by(&users, &this, &this));
        }
        for (table, policy, shown) in about {
            self.tell_cascade(&[shown]);
            self.lock(table, LockMode::AccessExclusive).await?;
            if let Some(mut fresh) = self.catalog().relation(table).cloned() {
                fresh.security.policies.retain(|p| p.oid != policy);
                self.put(Object::Relation(fresh)).await?;
            }
        }
        Ok(())
    }

    /// A column goes: policies that read it go with it, or keep it from being dropped.
    pub(super) fn drop_policies_over(&self, r: &mut Relation, column: &str, cascade: bool) -> Result<()> {
        let catalog = self.catalog();
        let elsewhere = policies_about(&catalog, r).filter(|(_, p)| p.conditions().any(|c| says(&c.text, column)));
        let own = policies_over(r, column).map(|p| shown_policy(p, r));
        let others: Vec<String> = elsewhere.map(|(t, p)| shown_policy(p, t)).collect();
        let shown: Vec<String> = own.chain(others.iter().cloned()).collect();
        if shown.is_empty() {
            return Ok(());
        }
        if !cascade {
            let this = shown_column(column, r);
            return Err(needed_by(&shown, &this, &this));
        }
        if !others.is_empty() {
            return Err(SqlError::unsupported("DROP COLUMN ... CASCADE of a column that another table's policy names"));
        }
        for shown in shown {
            self.tell_cascade(&[shown]);
        }
        let going: Vec<u32> = policies_over(r, column).map(|p| p.oid).collect();
        r.security.policies.retain(|p| !going.contains(&p.oid));
        Ok(())
    }
}

/// A role goes: policies hold for it no more, and those that held for it alone go.
pub(super) fn forget_role(object: &mut Object, role: Oid) {
    let Object::Relation(r) = object else { return };
    for p in &mut r.security.policies {
        p.roles.retain(|r| *r != role);
    }
    r.security.policies.retain(|p| !p.roles.is_empty());
}
