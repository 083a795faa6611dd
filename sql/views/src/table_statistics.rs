//! The rows of pg_stat_all_tables, pg_stat_all_indexes and pg_statio_*: how tables and indexes are used
//! (`clearway_engine::table::usage`).
//!
//! A table's rows are in the tree of its primary key. So a search of rows by that key counts as a scan of that index, while the tree's
//! pages count as the table's. Blocks are leaves: a leaf that was visited and not read from disk counts as a hit.

use super::catalog::{local, schema_name};
use super::{ViewOf, int, text, time};
use clearway_context::views::all;
use clearway_engine::catalog::{Index, Object, Relation, RelationKind};
use clearway_engine::table::usage::Use;
use clearway_exec::{Row, Run};
use clearway_storage::ids::TreeId;
use clearway_values::types::Datum;
use std::collections::HashMap;

/// The rows of the views of this module.
pub const ROWS: &[ViewOf] = &[
    ("pg_catalog", "pg_stat_all_tables", tables),
    ("pg_catalog", "pg_stat_xact_all_tables", tables_of_transaction),
    ("pg_catalog", "pg_stat_all_indexes", indexes),
    ("pg_catalog", "pg_statio_all_tables", table_blocks),
    ("pg_catalog", "pg_statio_all_indexes", index_blocks),
    ("pg_catalog", "pg_statio_all_sequences", sequences),
];

type Uses = HashMap<u32, Use>;

/// The tables of the session's database.
fn relations<'r>(run: &'r Run<'_>) -> impl Iterator<Item = &'r Relation> {
    local(run).filter_map(|object| match object {
        Object::Relation(r) if r.kind != RelationKind::View => Some(r),
        _ => None,
    })
}

/// Number, schema and name, with which each row begins.
fn named(run: &Run<'_>, relation: &Relation) -> Row {
    vec![Datum::Oid(relation.oid), text(&schema_name(run, relation.schema)), text(&relation.name)]
}

/// Those of the system's tables, which are built when they are read: nothing is counted of them.
fn of_system(zeros: usize) -> impl Iterator<Item = Row> {
    all().filter(|view| view.is_table()).map(move |view| {
        let mut row = vec![Datum::Oid(view.oid), text(view.schema), text(view.name)];
        row.resize(3 + zeros, Datum::Int8(0));
        row
    })
}

/// The index that is the table itself: that of its primary key.
fn is_the_table(index: &Index, table: &Relation) -> bool {
    index.primary || index.tree == table.tree
}

fn has_index(run: &Run<'_>, relation: &Relation) -> bool {
    run.names.catalog.indexes(relation.oid).next().is_some()
}

/// What scans have done with a table: by itself, by its indexes, then the changes.
fn scans(run: &Run<'_>, relation: &Relation, uses: &Uses) -> Row {
    let of = |oid: u32| uses.get(&oid).copied().unwrap_or_default();
    let own = of(relation.oid);
    let by_index: u64 = run.names.catalog.indexes(relation.oid).map(|index| of(index.oid).lookups).sum();
    let indexed = has_index(run, relation);
    let or_null = |n: u64| if indexed { int(n) } else { Datum::Null };
    vec![
        int(own.whole),
        int(own.whole_rows),
        or_null(own.lookups + by_index),
        or_null(own.lookup_rows + own.fetched),
        int(own.inserted),
        int(own.updated),
        int(own.deleted),
        int(own.in_place),
    ]
}

fn tables(run: &Run<'_>) -> Vec<Row> {
    let db = &run.core.db;
    let uses = db.usage().all();
    let rows = relations(run).map(|relation| {
        let used = uses.get(&relation.oid).copied().unwrap_or_default();
        let analyzed = db.statistics().analyzed(relation.oid);
        let rows = db.statistics().of(relation.oid).map(|counted| counted.rows as i64);
        // A crash, or a reset, may have left less of the uses than was known at the count: then the count itself is the best that is known.
        let live = match rows {
            Some(rows) if used.changed() < analyzed.changed => rows,
            Some(rows) => rows - analyzed.live + used.live,
            None => used.live,
        };
        let mut row = named(run, relation);
        row.extend(scans(run, relation, &uses));
        row.extend([
            Datum::Int8(live.max(0)),
            // Old versions stand in the undo memory: see clearway_undo.
            Datum::Int8(0),
            int(used.changed().saturating_sub(analyzed.changed)),
            int(used.inserted),
            // There is no vacuum.
            Datum::Null,
            Datum::Null,
            time(analyzed.asked.1),
            time(analyzed.unasked.1),
            Datum::Int8(0),
            Datum::Int8(0),
            int(analyzed.asked.0),
            int(analyzed.unasked.0),
        ]);
        row
    });
    let system = of_system(20).map(|mut row| {
        row[15..19].fill(Datum::Null);
        row
    });
    rows.chain(system).collect()
}

/// What the session's open transaction has done.
fn tables_of_transaction(run: &Run<'_>) -> Vec<Row> {
    let uses: Uses = run.core.engine.take().used().open().iter().copied().collect();
    let rows = relations(run).map(|relation| {
        let mut row = named(run, relation);
        row.extend(scans(run, relation, &uses));
        row
    });
    rows.chain(of_system(8)).collect()
}

/// The indexes of the session's database with their tables.
fn all_indexes<'r>(run: &'r Run<'_>) -> impl Iterator<Item = (&'r Index, &'r Relation)> {
    local(run).filter_map(move |object| match object {
        Object::Index(index) => Some((index, run.names.catalog.relation(index.table)?)),
        _ => None,
    })
}

fn named_index(run: &Run<'_>, index: &Index, table: &Relation) -> Row {
    let schema = text(&schema_name(run, table.schema));
    vec![Datum::Oid(table.oid), Datum::Oid(index.oid), schema, text(&table.name), text(&index.name)]
}

fn indexes(run: &Run<'_>) -> Vec<Row> {
    let uses = run.core.db.usage().all();
    let of = |oid: u32| uses.get(&oid).copied().unwrap_or_default();
    let rows = all_indexes(run).map(|(index, table)| {
        let used = of(if is_the_table(index, table) { table.oid } else { index.oid });
        let mut row = named_index(run, index, table);
        row.extend([int(used.lookups), int(used.lookup_rows), int(used.lookup_rows)]);
        row
    });
    rows.collect()
}

/// Blocks of a tree that were read, and that were found.
fn blocks(reads: &HashMap<TreeId, u64>, tree: u64, used: Option<&Use>) -> (u64, u64) {
    let read = reads.get(&TreeId(tree)).copied().unwrap_or(0);
    (read, used.map_or(0, |used| used.leaves).saturating_sub(read))
}

fn table_blocks(run: &Run<'_>) -> Vec<Row> {
    let db = &run.core.db;
    let (uses, reads) = (db.usage().all(), db.transactions().store().pool().reads_by_tree());
    let rows = relations(run).map(|relation| {
        let heap = blocks(&reads, relation.tree, uses.get(&relation.oid));
        let others = run.names.catalog.indexes(relation.oid).filter(|index| !is_the_table(index, relation));
        let others = others.map(|index| blocks(&reads, index.tree, uses.get(&index.oid)));
        let index = others.fold((0, 0), |sum, more| (sum.0 + more.0, sum.1 + more.1));
        let mut row = named(run, relation);
        row.extend([int(heap.0), int(heap.1)]);
        row.extend(if has_index(run, relation) { [int(index.0), int(index.1)] } else { [Datum::Null, Datum::Null] });
        // Long values stand in the table's own tree.
        row.extend([const { Datum::Null }; 4]);
        row
    });
    rows.chain(of_system(8)).collect()
}

fn index_blocks(run: &Run<'_>) -> Vec<Row> {
    let db = &run.core.db;
    let (uses, reads) = (db.usage().all(), db.transactions().store().pool().reads_by_tree());
    let rows = all_indexes(run).map(|(index, table)| {
        let (read, found) = match is_the_table(index, table) {
            true => blocks(&reads, table.tree, uses.get(&table.oid)),
            false => blocks(&reads, index.tree, uses.get(&index.oid)),
        };
        let mut row = named_index(run, index, table);
        row.extend([int(read), int(found)]);
        row
    });
    rows.collect()
}

/// The states of all sequences stand in one tree, which is not counted by sequence.
fn sequences(run: &Run<'_>) -> Vec<Row> {
    let rows = local(run).filter_map(|object| match object {
        Object::Sequence(s) => {
            let schema = text(&schema_name(run, s.schema));
            Some(vec![Datum::Oid(s.oid), schema, text(&s.name), Datum::Null, Datum::Null])
        }
        _ => None,
    });
    rows.collect()
}
