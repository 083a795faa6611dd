//! The rows of pg_depend and pg_rewrite: which object depends on which, so that clients know the order in which to create and drop
//! objects.

use super::catalog::{int_oid, local};
use super::constraints::{columns_in, default_oid, referenced_index, relations};
use super::routines::language;
use super::{ViewOf, breathes, text};
use clearway_context::names::check_oid;
use clearway_context::operators::written;
use clearway_context::routines::named_sequences;
use clearway_engine::catalog::types::{row_array, row_type};
use clearway_engine::catalog::{
    FIRST_USER_OID, Language, Object, Operator, Relation, RelationKind, Routine, TypeBody, TypeObject,
};
use clearway_exec::{Row, Run};
use clearway_planner::may_read_column;
use clearway_values::types::{Datum, Oid};

/// The rows of the views of this module.
pub const ROWS: &[ViewOf] = &[("pg_catalog", "pg_depend", pg_depend), ("pg_catalog", "pg_rewrite", pg_rewrite)];

const PG_TYPE: Oid = 1247;
const PG_PROC: Oid = 1255;
const PG_CLASS: Oid = 1259;
const PG_CONSTRAINT: Oid = 2606;
const PG_ATTRDEF: Oid = 2604;
const PG_NAMESPACE: Oid = 2615;
const PG_OPERATOR: Oid = 2617;
const PG_REWRITE: Oid = 2618;
const PG_LANGUAGE: Oid = 2612;
const PG_EXTENSION: Oid = 3079;
const PG_POLICY: Oid = 3256;

/// An object, as pg_depend names it: its catalog, its oid, its column or 0.
type Place = (Oid, Oid, usize);

fn depend(out: &mut Vec<Row>, from: Place, on: Place, kind: &str) {
    out.push(vec![
        int_oid(from.0),
        int_oid(from.1),
        Datum::Int4(from.2 as i32),
        int_oid(on.0),
        int_oid(on.1),
        Datum::Int4(on.2 as i32),
        text(kind),
    ]);
}

/// Rules are no objects: the number of a view's is made of the view's.
fn rule_oid(r: &Relation, place: usize) -> Oid {
    r.oid.wrapping_mul(1_600).wrapping_add(2_000_000 + place as u32)
}

fn pg_depend(run: &Run<'_>) -> Vec<Row> {
    let mut out = Vec::new();
    for object in local(run) {
        on_schema(run, object, &mut out);
        match object {
            Object::Relation(r) => {
                of_relation(run, r, &mut out);
                of_columns(r, &mut out);
            }
            Object::Index(i) if i.constraint => {
                depend(&mut out, (PG_CLASS, i.oid, 0), (PG_CONSTRAINT, i.oid, 0), "i");
                for c in &i.columns {
                    depend(&mut out, (PG_CONSTRAINT, i.oid, 0), (PG_CLASS, i.table, c.column + 1), "a");
                }
            }
            Object::Index(i) => {
                let plain = i.columns.iter().filter(|c| c.expression.is_none()).map(|c| c.column);
                for c in plain.chain(i.include.iter().copied()).chain(i.reads.iter().copied()) {
                    depend(&mut out, (PG_CLASS, i.oid, 0), (PG_CLASS, i.table, c + 1), "a");
                }
            }
            Object::Type(t) => of_type(run, t, &mut out),
            Object::Routine(r) => of_routine(run, r, &mut out),
            Object::Operator(o) => of_operator(run, o, &mut out),
            Object::Sequence(s) => {
                let Some((table, column)) = s.owned_by else { continue };
                let identity = run.names.catalog.relation(table).and_then(|t| t.columns.get(column)?.identity);
                let kind = if identity.is_some() { "i" } else { "a" };
                depend(&mut out, (PG_CLASS, s.oid, 0), (PG_CLASS, table, column + 1), kind);
            }
            _ => {}
        }
    }
    for (extension, class, object) in super::extensions::members(run) {
        depend(&mut out, (class, object, 0), (PG_EXTENSION, extension, 0), "e");
    }
    out
}

/// What stands in a schema depends on it; but for the sequences of identity columns.
fn on_schema(run: &Run<'_>, object: &Object, out: &mut Vec<Row>) {
    let (class, schema) = match object {
        Object::Relation(r) => (PG_CLASS, r.schema),
        Object::Type(t) => (PG_TYPE, t.schema),
        Object::Routine(r) => (PG_PROC, r.schema),
        Object::Sequence(s) => {
            let column = s.owned_by.and_then(|(table, at)| run.names.catalog.relation(table)?.columns.get(at));
            if column.is_some_and(|c| c.identity.is_some()) {
                return;
            }
            (PG_CLASS, s.schema)
        }
        _ => return,
    };
    depend(out, (class, object.oid(), 0), (PG_NAMESPACE, schema, 0), "n");
}

/// Columns depend on the types that users define, the type of a relation's rows on the relation, and that of arrays of them on that type.
fn of_columns(r: &Relation, out: &mut Vec<Row>) {
    for (at, c) in r.columns.iter().enumerate().filter(|(_, c)| !c.is_dropped() && c.type_oid >= FIRST_USER_OID) {
        depend(out, (PG_CLASS, r.oid, at + 1), (PG_TYPE, c.type_oid, 0), "n");
    }
    if let (Some(row), Some(array)) = (row_type(r.oid), row_array(r.oid)) {
        depend(out, (PG_TYPE, row, 0), (PG_CLASS, r.oid, 0), "i");
        depend(out, (PG_TYPE, array, 0), (PG_TYPE, row, 0), "i");
    }
    for p in &r.security.policies {
        depend(out, (PG_POLICY, p.oid, 0), (PG_CLASS, r.oid, 0), "a");
    }
}

/// A composite type depends on the types of its attributes, a domain on the type below it, and the type of its arrays on any.
fn of_type(run: &Run<'_>, t: &TypeObject, out: &mut Vec<Row>) {
    depend(out, (PG_TYPE, t.array, 0), (PG_TYPE, t.oid, 0), "i");
    let parts: Vec<Oid> = match &t.body {
        TypeBody::Enum(_) => Vec::new(),
        TypeBody::Domain(domain) => vec![domain.below()],
        TypeBody::Composite(c) => {
            depend(out, (PG_CLASS, c.class, 0), (PG_TYPE, t.oid, 0), "i");
            c.attributes.iter().map(|a| a.type_oid).collect()
        }
    };
    if let TypeBody::Domain(domain) = &t.body {
        let texts = domain.default.iter().chain(domain.checks.iter().map(|c| &c.condition));
        on_operators(run, (PG_TYPE, t.oid, 0), texts.map(String::as_str), out);
    }
    for part in parts {
        if let Some(used) = run.names.catalog.types().find(|u| u.oid == part || u.array == part) {
            depend(out, (PG_TYPE, t.oid, 0), (PG_TYPE, used.oid, 0), "n");
        }
    }
}

/// What a text names with its schema (OPR-2).
fn on_operators<'t>(run: &Run<'_>, this: Place, texts: impl Iterator<Item = &'t str>, out: &mut Vec<Row>) {
    let catalog = &run.names.catalog;
    if !catalog.has_operators() {
        return;
    }
    for found in texts.flat_map(written) {
        let Some(schema) = catalog.schema(run.names.database, &found.schema) else { continue };
        for o in catalog.operators_in(schema.oid, found.name) {
            depend(out, this, (PG_OPERATOR, o.oid, 0), "n");
        }
    }
}

/// An operator depends on its schema, on its functions and on the types of its operands and its result.
fn of_operator(run: &Run<'_>, o: &Operator, out: &mut Vec<Row>) {
    let this = (PG_OPERATOR, o.oid, 0);
    depend(out, this, (PG_NAMESPACE, o.schema, 0), "n");
    for function in [o.function, o.restrict, o.join] {
        if run.names.catalog.routine(function).is_some() {
            depend(out, this, (PG_PROC, function, 0), "n");
        }
    }
    for used in [o.left, o.right, o.result] {
        if let Some(found) = run.names.catalog.types().find(|u| u.oid == used || u.array == used) {
            depend(out, this, (PG_TYPE, found.oid, 0), "n");
        }
    }
}

/// A routine depends on the types of its arguments and its result, and on the relations that a body of the standard names.
fn of_routine(run: &Run<'_>, r: &Routine, out: &mut Vec<Row>) {
    let this = (PG_PROC, r.oid, 0);
    if r.language != Language::Sql {
        depend(out, this, (PG_LANGUAGE, language(r.language), 0), "n");
    }
    let body = r.atomic.then_some(r.body.as_str());
    on_operators(run, this, body.into_iter().chain(r.arguments.iter().filter_map(|a| a.default.as_deref())), out);
    for used in r.arguments.iter().map(|a| a.type_oid).chain([r.result]) {
        if let Some(found) = run.names.catalog.types().find(|u| u.oid == used || u.array == used) {
            depend(out, this, (PG_TYPE, found.oid, 0), "n");
        }
        if let Some((table, _)) = clearway_engine::catalog::types::table_of_row_type(used) {
            depend(out, this, (PG_CLASS, table, 0), "n");
        }
    }
    for (_, relation) in r.meanings.iter().flat_map(|m| &m.names) {
        depend(out, this, (PG_CLASS, *relation, 0), "n");
    }
}

fn of_relation(run: &Run<'_>, r: &Relation, out: &mut Vec<Row>) {
    for (at, column) in r.columns.iter().enumerate().filter(|(_, c)| !c.is_dropped() && c.identity.is_none()) {
        let Some(default) = &column.default else { continue };
        let this = (PG_ATTRDEF, default_oid(r, at), 0);
        depend(out, this, (PG_CLASS, r.oid, at + 1), "a");
        let sequence =
            default.strip_prefix("nextval('").and_then(|t| t.split('\'').next()).and_then(|n| n.parse().ok());
        let path = column.path.as_deref().unwrap_or_default();
        let named = named_sequences(&run.names.catalog, path, default).into_iter().map(|(_, sequence)| sequence);
        for sequence in sequence.into_iter().chain(named) {
            depend(out, this, (PG_CLASS, sequence, 0), "n");
        }
    }
    for (at, check) in r.checks.iter().enumerate() {
        for column in columns_in(r, &check.condition) {
            depend(out, (PG_CONSTRAINT, check_oid(r, at), 0), (PG_CLASS, r.oid, column + 1), "a");
        }
    }
    for key in &r.foreign_keys {
        let this = (PG_CONSTRAINT, key.oid, 0);
        key.columns.iter().for_each(|c| depend(out, this, (PG_CLASS, r.oid, c + 1), "a"));
        key.referenced.iter().for_each(|c| depend(out, this, (PG_CLASS, key.references, c + 1), "n"));
        depend(out, this, (PG_CLASS, referenced_index(run, key), 0), "n");
    }
    if r.kind != RelationKind::Table && r.query.is_some() {
        let rule = (PG_REWRITE, rule_oid(r, 0), 0);
        depend(out, rule, (PG_CLASS, r.oid, 0), "i");
        depend(out, rule, (PG_CLASS, r.oid, 0), "n");
        for (_, oid) in r.meaning.iter().flat_map(|m| &m.names) {
            depend(out, rule, (PG_CLASS, *oid, 0), "n");
            let read = run.names.catalog.relation(*oid);
            let columns = read.map_or_else(Vec::new, |read| {
                let reads = |at: &usize| !read.columns[*at].is_dropped() && may_read_column(r, read, *at);
                (0..read.columns.len()).filter(reads).collect()
            });
            columns.iter().for_each(|c| depend(out, rule, (PG_CLASS, *oid, c + 1), "n"));
        }
    }
}

/// The rule that makes a view a view, and rules that insert nothing.
fn pg_rewrite(run: &Run<'_>) -> Vec<Row> {
    let mut out = Vec::new();
    let mut rule = |r: &Relation, place: usize, name: &str, event: &str| {
        out.push(vec![
            int_oid(rule_oid(r, place)),
            text(name),
            int_oid(r.oid),
            text(event),
            text("O"),
            Datum::Bool(true),
            text("<>"),
            text("<>"),
        ]);
    };
    for r in relations(run).map_while(breathes(run)) {
        if r.kind != RelationKind::Table {
            rule(r, 0, "_RETURN", "1");
        }
        for (at, name) in r.insert_nothing_rules.iter().enumerate() {
            rule(r, at + 1, name, "3");
        }
    }
    out
}

/// What `pg_get_ruledef` says.
pub fn rule_definition(run: &Run<'_>, oid: Oid) -> Option<String> {
    use clearway_context::names::quote;
    use clearway_values::types::text::Names as _;
    for r in relations(run) {
        let full = || {
            let schema = run.names.schema_name(r.schema).unwrap_or_default();
            format!("{schema}.{}", quote(&r.name))
        };
        if r.kind != RelationKind::Table && rule_oid(r, 0) == oid {
            let query = r.query.as_deref().unwrap_or("").trim().trim_end_matches(';');
            return Some(format!("CREATE RULE \"_RETURN\" AS\n    ON SELECT TO {} DO INSTEAD {query};", full()));
        }
        for (at, name) in r.insert_nothing_rules.iter().enumerate() {
            if rule_oid(r, at + 1) == oid {
                let (name, table) = (quote(name), full());
                return Some(format!("CREATE RULE {name} AS\n    ON INSERT TO {table} DO INSTEAD NOTHING;"));
            }
        }
    }
    None
}
