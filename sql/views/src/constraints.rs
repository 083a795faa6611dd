//! The rows of pg_constraint, pg_attrdef and pg_tablespace.

use super::{SoughtOf, ViewOf, breathes, expressions, opt, text};
use clearway_context::names::{check_oid, check_oid_of, quote};
use clearway_context::routines::qualified_of;
use clearway_engine::catalog::types::{Domain, TypeBody, TypeObject};
use clearway_engine::catalog::{ForeignKey, Index, Object, ReferentialAction, Relation};
use clearway_exec::{Keys, Row, Run, SoughtRows};
use clearway_values::types::datum::Array;
use clearway_values::types::text::Names as _;
use clearway_values::types::{Datum, oid};

use oid::INT2;

/// The rows of the views of this module.
pub const ROWS: &[ViewOf] = &[
    ("pg_catalog", "pg_constraint", pg_constraint),
    ("pg_catalog", "pg_attrdef", pg_attrdef),
    ("pg_catalog", "pg_tablespace", pg_tablespace),
];

/// Those whose rows are found by a column.
pub const SOUGHT: &[SoughtOf] = &[("pg_constraint", sought_constraints), ("pg_attrdef", sought_defaults)];

fn pg_tablespace(_: &Run<'_>) -> Vec<Row> {
    let row = |oid, name| vec![Datum::Oid(oid), text(name), Datum::Oid(10), Datum::Null, Datum::Null];
    vec![row(1663, "pg_default"), row(1664, "pg_global")]
}

pub(super) fn relations<'r>(run: &'r Run<'_>) -> impl Iterator<Item = &'r Relation> {
    let database = run.names.database;
    run.names.catalog.objects().filter_map(move |o| match &**o {
        Object::Relation(r) if r.database == database => Some(r),
        _ => None,
    })
}

/// The tables that are sought, by number; those that refer to them for `confrelid`.
fn sought_relations<'r>(run: &'r Run<'_>, sought: &SoughtRows) -> Option<Vec<&'r Relation>> {
    let Keys::Oids(oids) = &sought.keys else { return None };
    let catalog = &run.names.catalog;
    let mut found: Vec<&Relation> = match sought.column {
        "confrelid" => oids.iter().flat_map(|oid| catalog.referring(*oid)).collect(),
        _ => oids.iter().filter_map(|oid| catalog.relation(*oid)).collect(),
    };
    found.retain(|r| r.database == run.names.database);
    // A table that refers to two of them, or twice to one.
    found.sort_unstable_by_key(|r| r.oid);
    found.dedup_by_key(|r| r.oid);
    Some(found)
}

fn sought_constraints(run: &Run<'_>, sought: &SoughtRows) -> Option<Vec<Row>> {
    // What refers to no table, or belongs to none, has 0 there.
    if sought.keys.have(&Datum::Oid(0)) {
        return None;
    }
    Some(constraint_rows(run, sought_relations(run, sought)?.into_iter()))
}

fn sought_defaults(run: &Run<'_>, sought: &SoughtRows) -> Option<Vec<Row>> {
    Some(default_rows(run, sought_relations(run, sought)?.into_iter()))
}

fn pg_attrdef(run: &Run<'_>) -> Vec<Row> {
    default_rows(run, relations(run).map_while(breathes(run)))
}

fn default_rows<'r>(run: &Run<'_>, tables: impl Iterator<Item = &'r Relation>) -> Vec<Row> {
    let mut out = Vec::new();
    for r in tables {
        for (i, c) in r.columns.iter().enumerate() {
            if let Some(default) = c.default.as_ref().filter(|_| !c.is_dropped() && c.identity.is_none()) {
                let number = i as i16 + 1;
                let oid = default_oid(r, i);
                out.push(vec![
                    Datum::Oid(oid),
                    Datum::Oid(r.oid),
                    Datum::Int2(number),
                    text(&expressions::default(run, r, (c, default), false)),
                ]);
            }
        }
    }
    out
}

fn numbers(columns: impl Iterator<Item = usize>) -> Datum {
    let list = columns.map(|c| Datum::Int2(c as i16 + 1)).collect();
    Datum::Array(Array::one_dimensional(INT2, list).into())
}

fn action(a: ReferentialAction) -> &'static str {
    match a {
        ReferentialAction::NoAction => "a",
        ReferentialAction::Restrict => "r",
        ReferentialAction::Cascade => "c",
        ReferentialAction::SetNull => "n",
        ReferentialAction::SetDefault => "d",
    }
}

/// Defaults are no objects either: the number of one is made of its column's.
pub(super) fn default_oid(r: &Relation, column: usize) -> u32 {
    r.oid.wrapping_mul(1_600).wrapping_add(column as u32 + 1)
}

/// The columns of a table that an expression names.
pub(super) fn columns_in(r: &Relation, expression: &str) -> Vec<usize> {
    let Ok(tokens) = clearway_syntax::lexer::tokens(expression) else { return Vec::new() };
    let is_word = |token: &clearway_syntax::lexer::Token<'_>, name: &str| match &token.kind {
        clearway_syntax::lexer::Tok::Word(word) | clearway_syntax::lexer::Tok::Quoted(word) => word == name,
        _ => false,
    };
    let named = |c: &clearway_engine::catalog::Column| !c.is_dropped() && tokens.iter().any(|t| is_word(t, &c.name));
    r.columns.iter().enumerate().filter(|(_, c)| named(c)).map(|(at, _)| at).collect()
}

/// The index of the referenced table whose columns a foreign key refers to.
pub(super) fn referenced_index(run: &Run<'_>, key: &ForeignKey) -> u32 {
    let fits = |i: &&Index| {
        i.unique
            && !i.is_computed()
            && i.columns.len() == key.referenced.len()
            && i.columns.iter().all(|c| key.referenced.contains(&c.column))
    };
    let mut found: Vec<&Index> = run.names.catalog.indexes(key.references).filter(fits).collect();
    // The primary key is taken before other unique indexes.
    found.sort_by_key(|i| (!i.primary, i.oid));
    found.first().map_or(0, |i| i.oid)
}

fn parent_of<'r>(run: &'r Run<'_>, key: Option<&ForeignKey>) -> Option<&'r Relation> {
    key.and_then(|key| run.names.catalog.relation(key.references))
}

/// The sides of a comparison that a foreign key makes.
#[derive(Clone, Copy)]
enum Pair {
    ParentChild,
    ParentParent,
    ChildChild,
}

/// The equality operators of a foreign key's columns.
fn operators(key: Option<&ForeignKey>, child: &Relation, parent: Option<&Relation>, pair: Pair) -> Datum {
    let (Some(key), Some(parent)) = (key, parent) else { return Datum::Null };
    let columns = key.columns.iter().zip(&key.referenced);
    let types = columns.map(|(c, p)| {
        let (c, p) = (child.columns[*c].type_oid, parent.columns[*p].type_oid);
        match pair {
            Pair::ParentChild => (p, c),
            Pair::ParentParent => (p, p),
            Pair::ChildChild => (c, c),
        }
    });
    let list = types.map(|(left, right)| Datum::Oid(super::builtin::equality(left, right))).collect();
    Datum::Array(Array::one_dimensional(oid::OID, list).into())
}

/// What has a constraint: a table or a domain; the number of the other is 0.
#[derive(Clone, Copy)]
struct Owner {
    schema: u32,
    relation: u32,
    domain: u32,
}

struct Line<'a> {
    oid: u32,
    name: &'a str,
    kind: &'static str,
    index: u32,
    columns: Datum,
    key: Option<&'a ForeignKey>,
    condition: Option<&'a str>,
    validated: bool,
    /// Deferrable, and initially deferred.
    timing: (bool, bool),
}

impl<'a> Line<'a> {
    fn new(oid: u32, name: &'a str, kind: &'static str, columns: Datum) -> Line<'a> {
        Line { oid, name, kind, index: 0, columns, key: None, condition: None, validated: true, timing: (false, false) }
    }

    /// As a row of pg_constraint.
    fn row(self, owner: Owner, [parent_child, parent_parent, child_child]: [Datum; 3]) -> Row {
        let key = self.key;
        vec![
            Datum::Oid(self.oid),
            text(self.name),
            Datum::Oid(owner.schema),
            text(self.kind),
            Datum::Bool(self.timing.0),
            Datum::Bool(self.timing.1),
            Datum::Bool(self.validated),
            Datum::Oid(owner.relation),
            Datum::Oid(owner.domain),
            Datum::Oid(self.index),
            Datum::Oid(0),
            Datum::Oid(key.map_or(0, |k| k.references)),
            text(key.map_or(" ", |k| action(k.on_update))),
            text(key.map_or(" ", |k| action(k.on_delete))),
            text(key.map_or(" ", |k| if k.full { "f" } else { "s" })),
            Datum::Bool(true),
            Datum::Int4(0),
            Datum::Bool(self.kind != "c"),
            self.columns,
            key.map_or(Datum::Null, |k| numbers(k.referenced.iter().copied())),
            parent_child,
            parent_parent,
            child_child,
            key.filter(|k| !k.delete_columns.is_empty())
                .map_or(Datum::Null, |k| numbers(k.delete_columns.iter().copied())),
            Datum::Null,
            opt(self.condition),
        ]
    }
}

fn pg_constraint(run: &Run<'_>) -> Vec<Row> {
    let mut out = constraint_rows(run, relations(run).map_while(breathes(run)));
    for (ty, domain) in domains(run).map_while(breathes(run)) {
        for (at, check) in domain.checks.iter().enumerate() {
            let condition = expressions::domain_check(run, (ty, domain), check, false);
            let line = Line {
                condition: Some(&condition),
                validated: check.validated,
                ..Line::new(check_oid_of(ty.oid, at), &check.name, "c", Datum::Null)
            };
            out.push(line.row(Owner { schema: ty.schema, relation: 0, domain: ty.oid }, [(); 3].map(|()| Datum::Null)));
        }
    }
    out
}

/// The domains of the session's database.
fn domains<'r>(run: &'r Run<'_>) -> impl Iterator<Item = (&'r TypeObject, &'r Domain)> {
    let database = run.names.database;
    run.names.catalog.objects().filter_map(move |o| match &**o {
        Object::Type(ty) if ty.database == database => match &ty.body {
            TypeBody::Domain(domain) => Some((ty, domain)),
            _ => None,
        },
        _ => None,
    })
}

fn constraint_rows<'r>(run: &Run<'_>, tables: impl Iterator<Item = &'r Relation>) -> Vec<Row> {
    let mut out = Vec::new();
    for r in tables {
        let owner = Owner { schema: r.schema, relation: r.oid, domain: 0 };
        let mut push = |l: Line<'_>| {
            let parent = parent_of(run, l.key);
            let pairs = [Pair::ParentChild, Pair::ParentParent, Pair::ChildChild];
            let operators = pairs.map(|pair| operators(l.key, r, parent, pair));
            out.push(l.row(owner, operators));
        };
        for i in run.names.catalog.indexes(r.oid).filter(|i| i.constraint) {
            let columns = numbers(i.columns.iter().map(|c| c.column));
            let kind = if i.primary { "p" } else { "u" };
            let timing = (i.deferrable, i.deferred);
            push(Line { index: i.oid, timing, ..Line::new(i.oid, &i.name, kind, columns) });
        }
        for k in &r.foreign_keys {
            let columns = numbers(k.columns.iter().copied());
            let (index, validated) = (referenced_index(run, k), k.validated);
            let timing = (k.deferrable, k.deferred);
            push(Line { index, key: Some(k), validated, timing, ..Line::new(k.oid, &k.name, "f", columns) });
        }
        for (i, c) in r.checks.iter().enumerate() {
            let columns = numbers(columns_in(r, &c.condition).into_iter());
            let shown = expressions::check(run, r, c, false);
            let (condition, validated) = (Some(shown.as_str()), c.validated);
            push(Line { condition, validated, ..Line::new(check_oid(r, i), &c.name, "c", columns) });
        }
    }
    out
}

/// When a constraint is checked, as its definition says.
fn shown_timing(deferrable: bool, deferred: bool) -> &'static str {
    match (deferrable, deferred) {
        (false, _) => "",
        (true, false) => " DEFERRABLE",
        (true, true) => " DEFERRABLE INITIALLY DEFERRED",
    }
}

fn not_valid(validated: bool) -> &'static str {
    if validated { "" } else { " NOT VALID" }
}

/// What `pg_get_constraintdef` says.
pub fn definition(run: &Run<'_>, oid: u32, pretty: bool) -> Option<String> {
    let list = |r: &Relation, columns: &[usize]| {
        columns.iter().map(|c| quote(&r.columns[*c].name)).collect::<Vec<_>>().join(", ")
    };
    // Only an index has a number of its own in the catalog.
    let own = run.names.catalog.index(oid).and_then(|i| run.names.catalog.relation(i.table));
    for r in own.into_iter().chain(relations(run).filter(|_| own.is_none())) {
        if let Some(i) = run.names.catalog.indexes(r.oid).find(|i| i.oid == oid) {
            let columns: Vec<usize> = i.columns.iter().map(|c| c.column).collect();
            let kind = match (i.primary, i.nulls_not_distinct) {
                (true, _) => "PRIMARY KEY",
                (false, true) => "UNIQUE NULLS NOT DISTINCT",
                (false, false) => "UNIQUE",
            };
            let mut out = format!("{kind} ({})", list(r, &columns));
            if !i.include.is_empty() {
                out.push_str(&format!(" INCLUDE ({})", list(r, &i.include)));
            }
            out.push_str(shown_timing(i.deferrable, i.deferred));
            return Some(out);
        }
        if let Some(k) = r.foreign_keys.iter().find(|k| k.oid == oid) {
            let parent = run.names.catalog.relation(k.references)?;
            let mut out = format!(
                "FOREIGN KEY ({}) REFERENCES {}({})",
                list(r, &k.columns),
                run.names.relation_name(parent.oid).unwrap_or_else(|| quote(&parent.name)),
                list(parent, &k.referenced)
            );
            if k.full {
                out.push_str(" MATCH FULL");
            }
            for (when, a) in [("UPDATE", k.on_update), ("DELETE", k.on_delete)] {
                let what = match a {
                    ReferentialAction::NoAction => continue,
                    ReferentialAction::Restrict => "RESTRICT",
                    ReferentialAction::Cascade => "CASCADE",
                    ReferentialAction::SetNull => "SET NULL",
                    ReferentialAction::SetDefault => "SET DEFAULT",
                };
                out.push_str(&format!(" ON {when} {what}"));
                if when == "DELETE" && !k.delete_columns.is_empty() {
                    out.push_str(&format!(" ({})", list(r, &k.delete_columns)));
                }
            }
            out.push_str(shown_timing(k.deferrable, k.deferred));
            out.push_str(not_valid(k.validated));
            return Some(out);
        }
        for (i, c) in r.checks.iter().enumerate() {
            if check_oid(r, i) == oid {
                let condition = qualified_of(&run.names, r.oid, &expressions::check(run, r, c, pretty));
                return Some(format!("CHECK ({condition}){}", not_valid(c.validated)));
            }
        }
    }
    let mut checks = domains(run).flat_map(|of| of.1.checks.iter().enumerate().map(move |(at, check)| (of, at, check)));
    let (of, _, check) = checks.find(|((ty, _), at, _)| check_oid_of(ty.oid, *at) == oid)?;
    let condition = expressions::domain_check(run, of, check, pretty);
    Some(format!("CHECK ({condition}){}", not_valid(check.validated)))
}
