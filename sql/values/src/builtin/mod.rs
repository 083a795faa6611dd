//! The rows with which PostgreSQL 15's catalogs begin, as data: relations and their columns, types, functions, operators, casts.
//!
//! # Structure
//! The files beside this one are tables in PostgreSQL's COPY text form, written by `generate.py` from a PostgreSQL 15 (their licence:
//! `COPYRIGHT`). `procs` indexes the functions for the types regproc and regprocedure.
//!
//! # Not here
//! Which of these rows Clearway shows. The views show a function or operator only if the binder resolves it (`crate::expr::known`), and a
//! type only if `crate::types` has it.

use std::collections::HashMap;
use std::sync::LazyLock;

/// The relations of pg_catalog and information_schema: schema, name, oid, kind, and `column:type` separated by blanks.
pub const RELATIONS: &str = include_str!("relations.tsv");

/// The rows that extensions add, with the extension and the catalog before each; schemas and owners are those of the extension.
pub fn extension_rows() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    include_str!("extensions.tsv").lines().filter_map(|line| {
        let (extension, rest) = line.split_once('\t')?;
        let (catalog, row) = rest.split_once('\t')?;
        Some((extension, catalog, row))
    })
}

/// The rows of a catalog; none for one that has no data here.
pub fn rows_of(catalog: &str) -> Option<&'static str> {
    Some(match catalog {
        "pg_type" => include_str!("pg_type.tsv"),
        "pg_proc" => include_str!("pg_proc.tsv"),
        "pg_aggregate" => include_str!("pg_aggregate.tsv"),
        "pg_operator" => include_str!("pg_operator.tsv"),
        "pg_cast" => include_str!("pg_cast.tsv"),
        "pg_am" => include_str!("pg_am.tsv"),
        "pg_opclass" => include_str!("pg_opclass.tsv"),
        "pg_opfamily" => include_str!("pg_opfamily.tsv"),
        "pg_amop" => include_str!("pg_amop.tsv"),
        "pg_amproc" => include_str!("pg_amproc.tsv"),
        "pg_language" => include_str!("pg_language.tsv"),
        "pg_range" => include_str!("pg_range.tsv"),
        "pg_collation" => include_str!("pg_collation.tsv"),
        "pg_description" => include_str!("pg_description.tsv"),
        _ => return None,
    })
}

/// The fields of a line; none for NULL.
pub fn fields(line: &str) -> impl Iterator<Item = Option<String>> {
    line.split('\t').map(|field| (field != "\\N").then(|| unescaped(field)))
}

fn unescaped(field: &str) -> String {
    let mut out = String::with_capacity(field.len());
    let mut chars = field.chars();
    while let Some(c) = chars.next() {
        match (c, if c == '\\' { chars.next() } else { None }) {
            ('\\', Some('n')) => out.push('\n'),
            ('\\', Some('t')) => out.push('\t'),
            ('\\', Some(other)) => out.push(other),
            (c, _) => out.push(c),
        }
    }
    out
}

/// A function of PostgreSQL.
#[derive(Debug)]
pub struct Proc {
    /// Its oid.
    pub oid: u32,
    /// Its name.
    pub name: &'static str,
    /// The oid of its schema: pg_catalog's, or another for information_schema.
    pub schema: u32,
    /// prokind: function, aggregate, window function or procedure.
    pub kind: char,
    /// Whether it gives rows.
    pub gives_rows: bool,
    /// The type of its result.
    pub result: u32,
    /// The types of its arguments.
    pub arguments: Vec<u32>,
    names: &'static str,
    defaults: &'static str,
    /// The name of its code in PostgreSQL.
    source: &'static str,
}

impl Proc {
    /// The names of its arguments; none: they have no names.
    pub fn argument_names(&self) -> Vec<&'static str> {
        let list = self.names.trim_start_matches('{').trim_end_matches('}').split(',');
        let names: Vec<&'static str> = list.take(self.arguments.len()).filter(|name| !name.is_empty()).collect();
        if self.names.starts_with('{') && names.len() == self.arguments.len() { names } else { Vec::new() }
    }

    /// The defaults of its last arguments, as SQL.
    pub fn argument_defaults(&self) -> Vec<&'static str> {
        if self.defaults == "\\N" { Vec::new() } else { self.defaults.split(", ").filter(|d| !d.is_empty()).collect() }
    }
}

/// The pseudo-types: what functions may be declared with, though no value is of them.
pub fn pseudo_types() -> &'static [(u32, &'static str)] {
    static TYPES: LazyLock<Vec<(u32, &'static str)>> = LazyLock::new(|| {
        let fields = include_str!("pg_type.tsv").lines().map(|line| line.split('\t').collect::<Vec<_>>());
        let pseudo = fields.filter(|f| f.get(6) == Some(&"p"));
        pseudo.map(|f| (number(f.first()), f.get(1).copied().unwrap_or(""))).collect()
    });
    &TYPES
}

/// An operator of PostgreSQL.
#[derive(Debug)]
pub struct Operator {
    /// Its oid.
    pub oid: u32,
    /// Its name.
    pub name: &'static str,
    /// The type on its left; 0: none.
    pub left: u32,
    /// The type on its right.
    pub right: u32,
    /// The type of its result.
    pub result: u32,
    /// The function behind it.
    pub code: u32,
}

fn number(field: Option<&&'static str>) -> u32 {
    field.and_then(|f| f.parse().ok()).unwrap_or(0)
}

fn proc_of(line: &'static str) -> Proc {
    let f: Vec<&'static str> = line.split('\t').collect();
    let kind = f.get(9).and_then(|k| k.chars().next()).unwrap_or('f');
    Proc {
        oid: number(f.first()),
        name: f.get(1).copied().unwrap_or(""),
        schema: number(f.get(2)),
        kind,
        gives_rows: f.get(13) == Some(&"t"),
        result: number(f.get(18)),
        arguments: f.get(19).map_or_else(Vec::new, |a| a.split(' ').filter_map(|t| t.parse().ok()).collect()),
        names: f.get(22).copied().unwrap_or(""),
        defaults: f.get(23).copied().unwrap_or(""),
        source: f.get(25).copied().unwrap_or(""),
    }
}

/// Every function of PostgreSQL, by oid.
pub fn procs() -> &'static [Proc] {
    static PROCS: LazyLock<Vec<Proc>> = LazyLock::new(|| {
        let mut list: Vec<Proc> = include_str!("pg_proc.tsv").lines().map(proc_of).collect();
        list.sort_unstable_by_key(|p| p.oid);
        list
    });
    &PROCS
}

/// The functions that extensions add, by oid.
fn extension_procs() -> &'static [Proc] {
    static PROCS: LazyLock<Vec<Proc>> = LazyLock::new(|| {
        let rows = extension_rows().filter(|(_, catalog, _)| *catalog == "pg_proc");
        let mut list: Vec<Proc> = rows.map(|(_, _, row)| proc_of(row)).collect();
        list.sort_unstable_by_key(|p| p.oid);
        list
    });
    &PROCS
}

/// How many functions of extensions have a name.
pub fn extension_procs_named(name: &str) -> usize {
    extension_procs().iter().filter(|p| p.name == name).count()
}

/// The function of an oid, those of extensions included.
pub fn proc(oid: u32) -> Option<&'static Proc> {
    let among = |list: &'static [Proc]| list.binary_search_by_key(&oid, |p| p.oid).ok().map(|at| &list[at]);
    among(procs()).or_else(|| among(extension_procs()))
}

/// The functions of a name.
pub fn procs_named(name: &str) -> &'static [&'static Proc] {
    static NAMES: LazyLock<HashMap<&'static str, Vec<&'static Proc>>> = LazyLock::new(|| {
        let mut names: HashMap<&'static str, Vec<&'static Proc>> = HashMap::new();
        procs().iter().for_each(|p| names.entry(p.name).or_default().push(p));
        names
    });
    NAMES.get(name).map_or(&[], Vec::as_slice)
}

/// Every operator of PostgreSQL, by oid.
pub fn operators() -> &'static [Operator] {
    static OPERATORS: LazyLock<Vec<Operator>> = LazyLock::new(|| {
        let row = |line: &'static str| {
            let f: Vec<&'static str> = line.split('\t').collect();
            Operator {
                oid: number(f.first()),
                name: f.get(1).copied().unwrap_or(""),
                left: number(f.get(7)),
                right: number(f.get(8)),
                result: number(f.get(9)),
                code: number(f.get(12)),
            }
        };
        let mut list: Vec<Operator> = include_str!("pg_operator.tsv").lines().map(row).collect();
        list.sort_unstable_by_key(|o| o.oid);
        list
    });
    &OPERATORS
}

/// The operator of an oid.
pub fn operator(oid: u32) -> Option<&'static Operator> {
    let list = operators();
    list.binary_search_by_key(&oid, |o| o.oid).ok().map(|at| &list[at])
}

/// What a function of PostgreSQL is that has no row of its own in the tables of functions.
#[derive(Clone, Copy)]
pub enum Meaning {
    /// What this operator computes.
    Operator(&'static Operator),
    /// A cast to its result.
    Cast,
    /// The binary form of its argument.
    Send,
}

/// What the functions are that stand behind operators, casts and types, by oid.
pub fn meaning(of: &Proc) -> Option<Meaning> {
    static MEANINGS: LazyLock<HashMap<u32, Meaning>> = LazyLock::new(|| clearway_base::memory::uncharged(meanings));
    MEANINGS.get(&of.oid).copied()
}

fn meanings() -> HashMap<u32, Meaning> {
    let mut meanings = HashMap::new();
    let by_source: HashMap<(&str, &[u32]), &Operator> = (operators().iter().rev())
        .filter_map(|o| proc(o.code).map(|p| ((p.source, p.arguments.as_slice()), o)))
        .collect();
    for p in procs().iter().filter(|p| p.kind == 'f' && !p.gives_rows) {
        if let Some(operator) = by_source.get(&(p.source, p.arguments.as_slice())) {
            meanings.insert(p.oid, Meaning::Operator(operator));
        }
    }
    let column = |table: &'static str, at: usize| {
        table.lines().map(move |line| number(line.split('\t').nth(at).as_ref())).filter(|oid| *oid != 0)
    };
    let casts = column(include_str!("pg_cast.tsv"), 3).filter(|oid| proc(*oid).is_some_and(|p| p.arguments.len() == 1));
    meanings.extend(casts.map(|oid| (oid, Meaning::Cast)));
    meanings.extend(column(include_str!("pg_type.tsv"), 18).map(|oid| (oid, Meaning::Send)));
    meanings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_and_operators_are_read_with_their_types() {
        let lower = procs_named("lower").iter().find(|p| p.arguments == [25]).expect("lower(text)");
        assert_eq!((lower.oid, lower.result, lower.kind, lower.gives_rows), (870, 25, 'f', false));
        assert_eq!(proc(1842).map(|p| (p.name, p.kind)), Some(("int8_sum", 'f')));
        assert!(procs_named("generate_series").iter().all(|p| p.gives_rows));
        let plus = operator(551).expect("int4 + int4");
        assert_eq!((plus.name, plus.left, plus.right, plus.result, plus.code), ("+", 23, 23, 23, 177));
    }

    #[test]
    fn each_line_has_the_fields_of_its_relation() {
        for relation in RELATIONS.lines() {
            let parts: Vec<&str> = relation.split('\t').collect();
            let [_, name, _, _, columns] = parts[..] else { panic!("{relation}") };
            let own = extension_rows().filter(|(_, catalog, _)| *catalog == name).map(|(_, _, row)| row);
            for line in rows_of(name).unwrap_or("").lines().chain(own) {
                assert_eq!(fields(line).count(), columns.split(' ').count(), "{name}: {line}");
            }
        }
    }

    #[test]
    fn fields_lose_their_escapes() {
        let read: Vec<_> = fields("a\\nb\t\\N\t\\\\N").collect();
        assert_eq!(read, [Some("a\nb".to_owned()), None, Some("\\N".to_owned())]);
    }
}
