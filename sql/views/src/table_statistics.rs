//! The rows of pg_stat_all_tables, pg_stat_all_indexes and pg_statio_*: how tables and indexes are used
//! (`clearway_engine::table::usage`).
//!
//! A table's rows are in the tree of its primary key. So a search of rows by that key counts as a scan of that index, while the tree's
//! pages count as the table's. Blocks are leaves: a leaf that was visited and not read from disk counts as a hit.

use super::catalog::{local, sought};
use super::{Columns, PickedOf, ViewOf, int, text, time};
use clearway_context::views::{SystemView, all, listed, named};
use clearway_engine::catalog::{Index, Object, Relation, RelationKind};
use clearway_engine::table::usage::Use;
use clearway_exec::{Keys, Row, Run, SoughtRows};
use clearway_storage::ids::TreeId;
use clearway_values::types::Datum;
use std::collections::HashMap;

/// The rows of the views of this module.
pub const ROWS: &[ViewOf] = &[("pg_catalog", "pg_statio_all_sequences", sequences)];

/// Those of whose rows only some columns are built. Programs that watch a database ask for one table, or for a few columns of all; every column of
/// every table took 1.8 ms with 1,000 tables, in one step.
pub const PICKED: &[PickedOf] = &[
    ("pg_stat_all_tables", tables),
    ("pg_stat_xact_all_tables", tables_of_transaction),
    ("pg_stat_all_indexes", indexes),
    ("pg_statio_all_tables", table_blocks),
    ("pg_statio_all_indexes", index_blocks),
];

type Uses = HashMap<u32, Use>;

fn as_table(object: &Object) -> Option<&Relation> {
    match object {
        Object::Relation(r) if r.kind != RelationKind::View => Some(r),
        _ => None,
    }
}

/// The tables of the session's database that are sought, else all.
fn relations<'r>(run: &'r Run<'_>, sought: Option<&SoughtRows>) -> Vec<&'r Relation> {
    match sought {
        Some(found) => self::sought(run, &found.keys).into_iter().filter_map(as_table).collect(),
        None => local(run).filter_map(as_table).collect(),
    }
}

/// Those of the system's tables, which are built when they are read: nothing is counted of them.
fn of_system(sought: Option<&SoughtRows>) -> Vec<&'static SystemView> {
    let mut views: Vec<&SystemView> = match sought.map(|found| &found.keys) {
        Some(Keys::Oids(oids)) => oids.iter().filter_map(|oid| listed(*oid)).collect(),
        Some(Keys::Names(names)) => names.iter().flat_map(|name| named(name)).copied().collect(),
        None => all().collect(),
    };
    views.retain(|view| view.is_table());
    views
}

/// How tables and their indexes were used: of all, or of those that were sought.
fn uses(run: &Run<'_>, sought: Option<&SoughtRows>, tables: &[&Relation]) -> Uses {
    let usage = run.core.db.usage();
    if sought.is_none() {
        return usage.all();
    }
    let of_table = |table: &&Relation| {
        let indexes = run.names.catalog.indexes(table.oid).map(|index| index.oid);
        std::iter::once(table.oid).chain(indexes).collect::<Vec<u32>>()
    };
    usage.of_these(&tables.iter().flat_map(of_table).collect::<Vec<u32>>())
}

/// The name of a schema.
fn schema_text(run: &Run<'_>, oid: u32) -> Datum {
    match run.names.catalog.get(oid).map(|o| &**o) {
        Some(Object::Schema(s)) => text(&s.name),
        _ => text(""),
    }
}

/// Number, schema and name, with which each row of a table begins.
fn name_column(run: &Run<'_>, relation: &Relation, at: usize) -> Datum {
    match at {
        0 => Datum::Oid(relation.oid),
        1 => schema_text(run, relation.schema),
        _ => text(&relation.name),
    }
}

/// The same of one of the system's, of which nothing is counted: `other` gives the columns behind.
fn system_column(view: &SystemView, at: usize, other: impl FnOnce(usize) -> Datum) -> Datum {
    match at {
        0 => Datum::Oid(view.oid),
        1 => text(view.schema),
        2 => text(view.name),
        _ => other(at),
    }
}

/// The index that is the table itself: that of its primary key.
fn is_the_table(index: &Index, table: &Relation) -> bool {
    index.primary || index.tree == table.tree
}

fn has_index(run: &Run<'_>, relation: &Relation) -> bool {
    run.names.catalog.indexes(relation.oid).next().is_some()
}

/// What scans have done with a table: by itself, by its indexes, then the changes; the column at this place.
fn scans(run: &Run<'_>, relation: &Relation, uses: &Uses, at: usize) -> Datum {
    let of = |oid: u32| uses.get(&oid).copied().unwrap_or_default();
    let own = of(relation.oid);
    match at {
        0 => int(own.whole),
        1 => int(own.whole_rows),
        2 | 3 if !has_index(run, relation) => Datum::Null,
        2 => int(own.lookups + run.names.catalog.indexes(relation.oid).map(|index| of(index.oid).lookups).sum::<u64>()),
        3 => int(own.lookup_rows + own.fetched),
        4 => int(own.inserted),
        5 => int(own.updated),
        6 => int(own.deleted),
        _ => int(own.in_place),
    }
}

fn tables(run: &Run<'_>, sought: Option<&SoughtRows>, columns: &Columns<'_>) -> Vec<Row> {
    let relations = relations(run, sought);
    let uses = uses(run, sought, &relations);
    let rows = relations.iter().map(|relation| {
        columns.row(|at| match at {
            0..3 => name_column(run, relation, at),
            3..11 => scans(run, relation, &uses, at - 3),
            _ => state(run, relation, &uses, at),
        })
    });
    let system = of_system(sought).into_iter().map(|view| {
        let nothing = |at: usize| if (15..19).contains(&at) { Datum::Null } else { Datum::Int8(0) };
        columns.row(|at| system_column(view, at, nothing))
    });
    rows.chain(system).collect()
}

/// The columns of pg_stat_all_tables behind the changes: the rows that are there, what has changed since, and when that was counted.
fn state(run: &Run<'_>, relation: &Relation, uses: &Uses, at: usize) -> Datum {
    let statistics = run.core.db.statistics();
    let used = uses.get(&relation.oid).copied().unwrap_or_default();
    let analyzed = || statistics.analyzed(relation.oid);
    match at {
        11 => {
            let (rows, analyzed) = (statistics.of(relation.oid).map(|counted| counted.rows as i64), analyzed());
            // A crash, or a reset, may have left less of the uses than was known at the count: then the count itself is the best that is known.
            let live = match rows {
                Some(rows) if used.changed() < analyzed.changed => rows,
                Some(rows) => rows - analyzed.live + used.live,
                None => used.live,
            };
            Datum::Int8(live.max(0))
        }
        13 => int(used.changed().saturating_sub(analyzed().changed)),
        14 => int(used.inserted),
        // There is no vacuum.
        15 | 16 => Datum::Null,
        17 => time(analyzed().asked.1),
        18 => time(analyzed().unasked.1),
        21 => int(analyzed().asked.0),
        22 => int(analyzed().unasked.0),
        // Of these 12: old versions stand in the undo memory, see clearway_undo.
        _ => Datum::Int8(0),
    }
}

/// What the session's open transaction has done.
fn tables_of_transaction(run: &Run<'_>, sought: Option<&SoughtRows>, columns: &Columns<'_>) -> Vec<Row> {
    let uses: Uses = run.core.engine.take().used().open().iter().copied().collect();
    let rows = relations(run, sought).into_iter().map(|relation| {
        columns.row(|at| match at {
            0..3 => name_column(run, relation, at),
            _ => scans(run, relation, &uses, at - 3),
        })
    });
    let system = of_system(sought).into_iter();
    rows.chain(system.map(|view| columns.row(|at| system_column(view, at, |_| Datum::Int8(0))))).collect()
}

/// The indexes of the session's database that are sought, else all, with their tables.
fn sought_indexes<'r>(run: &'r Run<'_>, sought: Option<&SoughtRows>) -> Vec<(&'r Index, &'r Relation)> {
    let catalog = &run.names.catalog;
    let with_table = |object: &'r Object| match object {
        Object::Index(index) => Some((index, catalog.relation(index.table)?)),
        _ => None,
    };
    match sought {
        None => local(run).filter_map(with_table).collect(),
        Some(found) if matches!(found.column, "relid" | "relname") => {
            let tables = relations(run, sought).into_iter();
            tables.flat_map(|table| catalog.indexes(table.oid).map(move |index| (index, table))).collect()
        }
        Some(found) => self::sought(run, &found.keys).into_iter().filter_map(with_table).collect(),
    }
}

/// The numbers and names with which each row of an index begins.
fn index_name_column(run: &Run<'_>, index: &Index, table: &Relation, at: usize) -> Datum {
    match at {
        0 => Datum::Oid(table.oid),
        1 => Datum::Oid(index.oid),
        2 => schema_text(run, table.schema),
        3 => text(&table.name),
        _ => text(&index.name),
    }
}

fn tables_of<'r>(indexes: &[(&Index, &'r Relation)]) -> Vec<&'r Relation> {
    indexes.iter().map(|(_, table)| *table).collect()
}

fn indexes(run: &Run<'_>, sought: Option<&SoughtRows>, columns: &Columns<'_>) -> Vec<Row> {
    let indexes = sought_indexes(run, sought);
    let uses = uses(run, sought, &tables_of(&indexes));
    let rows = indexes.iter().map(|(index, table)| {
        let of = if is_the_table(index, table) { table.oid } else { index.oid };
        let used = uses.get(&of).copied().unwrap_or_default();
        columns.row(|at| match at {
            0..5 => index_name_column(run, index, table, at),
            5 => int(used.lookups),
            _ => int(used.lookup_rows),
        })
    });
    rows.collect()
}

/// Blocks of a tree that were read, and that were found.
fn blocks(reads: &HashMap<TreeId, u64>, tree: u64, used: Option<&Use>) -> (u64, u64) {
    let read = reads.get(&TreeId(tree)).copied().unwrap_or(0);
    (read, used.map_or(0, |used| used.leaves).saturating_sub(read))
}

fn table_blocks(run: &Run<'_>, sought: Option<&SoughtRows>, columns: &Columns<'_>) -> Vec<Row> {
    let relations = relations(run, sought);
    let uses = uses(run, sought, &relations);
    let reads = run.core.db.transactions().store().pool().reads_by_tree();
    let rows = relations.iter().map(|relation| {
        let heap = || blocks(&reads, relation.tree, uses.get(&relation.oid));
        let of_indexes = || {
            let others = run.names.catalog.indexes(relation.oid).filter(|index| !is_the_table(index, relation));
            let others = others.map(|index| blocks(&reads, index.tree, uses.get(&index.oid)));
            others.fold((0, 0), |sum, more| (sum.0 + more.0, sum.1 + more.1))
        };
        columns.row(|at| match at {
            0..3 => name_column(run, relation, at),
            3 => int(heap().0),
            4 => int(heap().1),
            5 | 6 if !has_index(run, relation) => Datum::Null,
            5 => int(of_indexes().0),
            6 => int(of_indexes().1),
            // Long values stand in the table's own tree.
            _ => Datum::Null,
        })
    });
    let system = of_system(sought).into_iter();
    rows.chain(system.map(|view| columns.row(|at| system_column(view, at, |_| Datum::Int8(0))))).collect()
}

fn index_blocks(run: &Run<'_>, sought: Option<&SoughtRows>, columns: &Columns<'_>) -> Vec<Row> {
    let indexes = sought_indexes(run, sought);
    let uses = uses(run, sought, &tables_of(&indexes));
    let reads = run.core.db.transactions().store().pool().reads_by_tree();
    let rows = indexes.iter().map(|(index, table)| {
        let (read, found) = match is_the_table(index, table) {
            true => blocks(&reads, table.tree, uses.get(&table.oid)),
            false => blocks(&reads, index.tree, uses.get(&index.oid)),
        };
        columns.row(|at| match at {
            0..5 => index_name_column(run, index, table, at),
            5 => int(read),
            _ => int(found),
        })
    });
    rows.collect()
}

/// The states of all sequences stand in one tree, which is not counted by sequence.
fn sequences(run: &Run<'_>) -> Vec<Row> {
    let rows = local(run).filter_map(|object| match object {
        Object::Sequence(s) => {
            Some(vec![Datum::Oid(s.oid), schema_text(run, s.schema), text(&s.name), Datum::Null, Datum::Null])
        }
        _ => None,
    });
    rows.collect()
}
