//! The rows with which PostgreSQL's catalogs begin, as far as Clearway has what they describe: types of `clearway_values::types`, functions and
//! operators that the binder resolves, casts that exist, and the rows that belong to those.

use super::{Columns, PickedOf};
use clearway_base::memory;
use clearway_context::views::SystemView;
use clearway_exec::{Keys, Row, Run, SoughtRows};
use clearway_values::builtin;
use clearway_values::expr::known::{knows_function, knows_operator};
use clearway_values::types::cast::{Context, can};
use clearway_values::types::text::{Conversion, NoNames, input};
use clearway_values::types::{Datum, Oid, SqlType, datetime::Format, facts, oid};
use std::collections::{HashMap, HashSet};
use std::sync::{LazyLock, OnceLock};

/// The views of this module of whose rows only some columns are built.
pub const PICKED: &[PickedOf] = &[("pg_type", pg_type)];

/// The catalogs whose rows are data, and their rows once they have been read.
static CATALOGS: [(&str, OnceLock<Vec<Row>>); 13] = [
    ("pg_proc", OnceLock::new()),
    ("pg_aggregate", OnceLock::new()),
    ("pg_operator", OnceLock::new()),
    ("pg_cast", OnceLock::new()),
    ("pg_am", OnceLock::new()),
    ("pg_opclass", OnceLock::new()),
    ("pg_opfamily", OnceLock::new()),
    ("pg_amop", OnceLock::new()),
    ("pg_amproc", OnceLock::new()),
    ("pg_language", OnceLock::new()),
    ("pg_range", OnceLock::new()),
    ("pg_collation", OnceLock::new()),
    ("pg_description", OnceLock::new()),
];

/// Whether the rows of a relation are data.
#[cfg(test)]
pub fn has_rows(view: &SystemView) -> bool {
    view.schema == "pg_catalog" && CATALOGS.iter().any(|(name, _)| *name == view.name)
}

/// The rows of a catalog that is data, of which only some may be sought; none for any other.
pub fn rows(view: &SystemView, sought: Option<&SoughtRows>) -> Vec<Row> {
    let Some((name, rows)) = CATALOGS.iter().find(|(name, _)| *name == view.name) else { return Vec::new() };
    // They stay for all sessions, whichever session reads them first.
    let read = || memory::uncharged(|| read(name, view).into_iter().filter(|row| exists(name, row)).collect());
    copied(rows.get_or_init(read), sought)
}

/// A copy of those rows that are sought.
pub(super) fn copied(rows: &[Row], sought: Option<&SoughtRows>) -> Vec<Row> {
    match sought {
        Some(sought) => rows.iter().filter(|row| sought.keys.have(&row[sought.place])).cloned().collect(),
        None => rows.to_vec(),
    }
}

/// Every row of a file, with the types of the relation's columns.
fn read(name: &str, view: &SystemView) -> Vec<Row> {
    builtin::rows_of(name).unwrap_or("").lines().map(|line| row_of(line, view)).collect()
}

/// A line of a file as a row of its relation.
pub(super) fn row_of(line: &str, view: &SystemView) -> Row {
    let format = Format::default();
    let conversion = Conversion { format: &format, now: 0, names: &NoNames };
    let value = |text: Option<String>, ty: Oid| match text {
        None => Datum::Null,
        Some(text) => input(SqlType::new(ty), &text, &conversion).unwrap_or(Datum::Null),
    };
    builtin::fields(line).zip(view.columns).map(|(text, column)| value(text, column.1)).collect()
}

fn number(row: &Row, at: usize) -> Oid {
    row.get(at).and_then(Datum::as_i64).unwrap_or(0) as Oid
}

fn has_type(ty: Oid) -> bool {
    ty == 0 || facts(ty).is_some() || builtin::pseudo_types().iter().any(|(oid, _)| *oid == ty)
}

/// Whether Clearway has what a row describes.
fn exists(catalog: &str, row: &Row) -> bool {
    match catalog {
        "pg_proc" | "pg_aggregate" => functions().contains(&number(row, 0)),
        "pg_operator" => operators().contains(&number(row, 0)),
        "pg_cast" => {
            let (from, to) = (number(row, 1), number(row, 2));
            has_type(from) && has_type(to) && can(from, to, Context::Explicit)
        }
        "pg_opclass" => has_type(number(row, 6)),
        "pg_opfamily" => families().contains(&number(row, 0)),
        "pg_amop" => has_type(number(row, 2)) && has_type(number(row, 3)) && operators().contains(&number(row, 6)),
        "pg_amproc" => has_type(number(row, 2)) && has_type(number(row, 3)),
        "pg_range" => has_type(number(row, 0)),
        "pg_collation" => matches!(number(row, 0), 100 | 950 | 951),
        "pg_description" => match number(row, 1) {
            1255 => functions().contains(&number(row, 0)),
            2617 => operators().contains(&number(row, 0)),
            1247 => has_type(number(row, 0)),
            2605 => false,
            3456 => matches!(number(row, 0), 100 | 950),
            2601 => matches!(number(row, 0), 2 | 403),
            _ => true,
        },
        _ => true,
    }
}

/// The operators that the binder resolves.
fn operators() -> &'static HashSet<Oid> {
    static KNOWN: LazyLock<HashSet<Oid>> = LazyLock::new(|| {
        memory::uncharged(|| builtin::operators().iter().filter(|o| knows_operator(o)).map(|o| o.oid).collect())
    });
    &KNOWN
}

/// The functions that a statement can call, and those that a shown type, operator, cast, aggregate or operator class names.
fn functions() -> &'static HashSet<Oid> {
    static KNOWN: LazyLock<HashSet<Oid>> = LazyLock::new(|| {
        memory::uncharged(|| {
            let called = builtin::procs().iter().filter(|p| super::functions::gives_rows(p) || knows_function(p));
            let mut known: HashSet<Oid> = called.map(|p| p.oid).collect();
            let mut add = |catalog: &str, keep: &dyn Fn(&[Oid]) -> bool, columns: &[usize]| {
                for line in builtin::rows_of(catalog).unwrap_or("").lines() {
                    let fields = line.split('\t').map(|f| f.parse().unwrap_or(0));
                    let fields: Vec<Oid> = fields.collect();
                    if keep(&fields) {
                        known.extend(columns.iter().filter_map(|at| fields.get(*at)).filter(|oid| **oid != 0));
                    }
                }
            };
            add("pg_type", &|f| has_type(f[0]), &[12, 15, 16, 17, 18, 19, 20, 21]);
            add("pg_operator", &|f| operators().contains(&f[0]), &[12, 13, 14]);
            add("pg_cast", &|f| has_type(f[1]) && has_type(f[2]), &[3]);
            add("pg_am", &|_| true, &[2]);
            add("pg_amproc", &|f| has_type(f[2]) && has_type(f[3]), &[5]);
            add("pg_language", &|_| true, &[5, 6, 7]);
            add("pg_range", &|f| has_type(f[0]), &[5, 6]);
            let shown = known.clone();
            let mut add = |fields: Vec<Oid>| {
                if shown.contains(&fields[0]) {
                    known.extend(
                        [3, 4, 5, 6, 7, 8, 9, 10].iter().filter_map(|at| fields.get(*at)).filter(|oid| **oid != 0),
                    );
                }
            };
            for line in builtin::rows_of("pg_aggregate").unwrap_or("").lines() {
                add(line.split('\t').map(|f| f.parse().unwrap_or(0)).collect());
            }
            known
        })
    });
    &KNOWN
}

/// The families of the shown operator classes.
fn families() -> &'static HashSet<Oid> {
    static KNOWN: LazyLock<HashSet<Oid>> = LazyLock::new(|| {
        let rows = opclasses().filter(|f| has_type(f[6]));
        memory::uncharged(|| rows.map(|f| f[5]).collect())
    });
    &KNOWN
}

fn opclasses() -> impl Iterator<Item = Vec<Oid>> {
    let lines = builtin::rows_of("pg_opclass").unwrap_or("").lines();
    lines.map(|line| line.split('\t').map(|f| f.parse().unwrap_or(0)).collect())
}

/// The operator `=` between two types; 0: none.
pub fn equality(left: Oid, right: Oid) -> Oid {
    let as_text = |ty| if ty == oid::VARCHAR { oid::TEXT } else { ty };
    let (left, right) = (as_text(left), as_text(right));
    let named = |l: Oid, r: Oid| builtin::operators().iter().find(|o| o.name == "=" && o.left == l && o.right == r);
    named(left, right).or_else(|| named(left, left)).map_or(0, |o| o.oid)
}

/// The operator `<` of a type; 0: none.
pub fn less(ty: Oid) -> Oid {
    let ty = if ty == oid::VARCHAR { oid::TEXT } else { ty };
    builtin::operators().iter().find(|o| o.name == "<" && o.left == ty && o.right == ty).map_or(0, |o| o.oid)
}

/// How values of a type are kept, as pg_type says.
#[derive(Clone, Copy)]
pub struct Storage {
    /// typbyval.
    pub by_value: bool,
    /// typalign.
    pub align: &'static str,
    /// typstorage.
    pub storage: &'static str,
    /// typcollation.
    pub collation: Oid,
}

/// How values of a type are kept.
pub fn storage_of(ty: Oid) -> Storage {
    static KINDS: LazyLock<HashMap<Oid, Storage>> = LazyLock::new(|| {
        let row = |line: &'static str| {
            let f: Vec<&'static str> = line.split('\t').collect();
            let collation = f.get(28)?.parse().ok()?;
            let storage = Storage { by_value: f[5] == "t", align: f.get(22)?, storage: f.get(23)?, collation };
            Some((f.first()?.parse().ok()?, storage))
        };
        let own = builtin::extension_rows().filter(|(_, catalog, _)| *catalog == "pg_type").map(|(_, _, row)| row);
        memory::uncharged(|| builtin::rows_of("pg_type").unwrap_or("").lines().chain(own).filter_map(row).collect())
    });
    let unknown = Storage { by_value: false, align: "i", storage: "x", collation: 0 };
    // A domain is kept as the type below it, an enum as its label's number.
    let base = clearway_values::types::user::base(SqlType::new(ty)).oid;
    let base = if clearway_values::types::user::is_enum(base) { oid::INT4 } else { base };
    KINDS.get(&base).copied().unwrap_or(unknown)
}

/// The types that Clearway has.
fn pg_type(run: &Run<'_>, sought: Option<&SoughtRows>, columns: &Columns<'_>) -> Vec<Row> {
    static PLACES: OnceLock<HashMap<Oid, usize>> = OnceLock::new();
    let known = known_types();
    let copied = |row: &Row| columns.row(|at| row[at].clone());
    let mut out: Vec<Row> = match sought.map(|sought| (sought, &sought.keys)) {
        None => known.iter().map(copied).collect(),
        Some((sought, Keys::Oids(oids))) if sought.column == "oid" => {
            let by_oid = || known.iter().enumerate().map(|(at, row)| (number(row, sought.place), at)).collect();
            let places = PLACES.get_or_init(|| memory::uncharged(by_oid));
            oids.iter().filter_map(|oid| known.get(*places.get(oid)?)).map(copied).collect()
        }
        Some((sought, keys)) => known.iter().filter(|row| keys.have(&row[sought.place])).map(copied).collect(),
    };
    out.extend(super::types::user_types(run, known, sought).into_iter().map(|row| columns.of(row)));
    out.extend(super::extensions::rows_of(run, "pg_type", sought).into_iter().map(|row| columns.of(row)));
    out
}

/// The rows of PostgreSQL's own types.
fn known_types() -> &'static [Row] {
    static TYPES: OnceLock<Vec<Row>> = OnceLock::new();
    let view = clearway_context::views::find("pg_catalog", "pg_type");
    let read = || {
        let rows = view.map_or_else(Vec::new, |view| read("pg_type", view));
        rows.into_iter().filter(|row| has_type(number(row, 0))).collect()
    };
    TYPES.get_or_init(|| memory::uncharged(read))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearway_context::opclass;

    #[test]
    fn each_shown_row_refers_to_shown_rows() {
        let operators = operators();
        for o in builtin::operators().iter().filter(|o| operators.contains(&o.oid)) {
            assert!(functions().contains(&o.code), "the function of {} ({}, {})", o.name, o.left, o.right);
            assert!(has_type(o.left) && has_type(o.right), "{}", o.oid);
        }
        assert!(functions().contains(&870) && functions().contains(&1242) && !functions().contains(&3688));
    }

    #[test]
    fn indexes_find_their_operator_classes() {
        assert_eq!(opclass::of_type(oid::INT4), 1978);
        assert_eq!(opclass::of_type(oid::VARCHAR), opclass::of_type(oid::TEXT));
        assert_eq!(equality(oid::INT4, oid::INT4), 96);
        assert_eq!(equality(oid::INT4, oid::INT8), 15);
        // The `<` of box and its like compares areas and belongs to no class.
        let plain =
            clearway_values::types::TYPES.iter().filter(|t| clearway_values::types::element_of(t.oid).is_none());
        for t in plain.filter(|t| clearway_values::types::order::is_ordered(t.oid)) {
            let ordered = builtin::operators().iter().any(|o| o.name == "<" && o.left == t.oid && knows_operator(o));
            assert!(!ordered || opclass::of_type(t.oid) != 0, "{}", t.name);
        }
    }
}
