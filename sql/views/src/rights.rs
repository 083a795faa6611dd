//! The rows of pg_auth_members, pg_db_role_setting, pg_default_acl and pg_policy.

use super::catalog::{acl, int_oid, local};
use super::{ViewOf, text};
use clearway_engine::catalog::{AclKind, Object, Policy, PolicyCondition, Role};
use clearway_exec::{Row, Run};
use clearway_values::types::datum::Array;
use clearway_values::types::{Datum, oid};

/// The rows of the views of this module.
pub const ROWS: &[ViewOf] = &[
    ("pg_catalog", "pg_auth_members", pg_auth_members),
    ("pg_catalog", "pg_db_role_setting", pg_db_role_setting),
    ("pg_catalog", "pg_default_acl", pg_default_acl),
    ("pg_catalog", "pg_policy", pg_policy),
];

fn roles<'r>(run: &'r Run<'_>) -> impl Iterator<Item = &'r Role> {
    run.names.catalog.objects().filter_map(|o| match &**o {
        Object::Role(role) => Some(role),
        _ => None,
    })
}

/// `name=value` for each; null for none.
pub(super) fn settings_of<'s>(list: impl Iterator<Item = (&'s String, &'s String)>) -> Datum {
    let list: Vec<Datum> = list.map(|(name, value)| text(&format!("{name}={value}"))).collect();
    if list.is_empty() { Datum::Null } else { Datum::Array(Array::one_dimensional(oid::TEXT, list).into()) }
}

/// The policies of the session's database.
fn pg_policy(run: &Run<'_>) -> Vec<Row> {
    let relations = local(run).filter_map(|o| if let Object::Relation(r) = o { Some(r) } else { None });
    let condition = |c: &Option<PolicyCondition>| c.as_ref().map_or(Datum::Null, |c| text(&c.text));
    let row = |(table, p): (u32, &Policy)| {
        let roles = p.roles.iter().map(|role| int_oid(*role)).collect();
        vec![
            int_oid(p.oid),
            text(&p.name),
            int_oid(table),
            text(&p.command.to_string()),
            Datum::Bool(!p.restrictive),
            Datum::Array(Array::one_dimensional(oid::OID, roles).into()),
            condition(&p.using),
            condition(&p.check),
        ]
    };
    relations.flat_map(|r| r.security.policies.iter().map(move |p| (r.oid, p))).map(row).collect()
}

/// One row for each membership.
fn pg_auth_members(run: &Run<'_>) -> Vec<Row> {
    let rows = roles(run).flat_map(|r| r.member_of.iter().map(move |m| (r.oid, m)));
    rows.map(|(member, m)| vec![int_oid(m.role), int_oid(member), int_oid(m.by), Datum::Bool(m.admin)]).collect()
}

/// What ALTER DEFAULT PRIVILEGES has set in the session's database.
fn pg_default_acl(run: &Run<'_>) -> Vec<Row> {
    let mut out = Vec::new();
    for r in roles(run) {
        for d in r.defaults.iter().filter(|d| d.database == run.names.database) {
            let kind = match d.kind {
                'S' => AclKind::Sequence,
                'n' => AclKind::Schema,
                _ => AclKind::Table,
            };
            let list = acl(run, r.oid, &d.acl, kind);
            out.push(vec![int_oid(r.oid), int_oid(r.oid), int_oid(d.schema), text(&d.kind.to_string()), list]);
        }
    }
    out
}

/// What sessions of a role, of a database or of both begin with.
fn pg_db_role_setting(run: &Run<'_>) -> Vec<Row> {
    let mut out = Vec::new();
    for object in run.names.catalog.objects() {
        if let Object::Database(d) = &**object
            && !d.settings.is_empty()
        {
            let list = settings_of(d.settings.iter().map(|(name, value)| (name, value)));
            out.push(vec![int_oid(d.oid), int_oid(0), list]);
        }
    }
    for r in roles(run) {
        if !r.settings_of_all.is_empty() {
            let list = settings_of(r.settings_of_all.iter().map(|(name, value)| (name, value)));
            out.push(vec![int_oid(0), int_oid(0), list]);
        }
        let mut databases: Vec<u32> = r.settings.iter().map(|s| s.0).collect();
        databases.sort_unstable();
        databases.dedup();
        for database in databases {
            let list = settings_of(r.settings.iter().filter(|s| s.0 == database).map(|s| (&s.1, &s.2)));
            out.push(vec![int_oid(database), int_oid(r.oid), list]);
        }
    }
    out
}
