//! Opening a directory with many tables reads the catalog and the tree directory, and no table.

use clearway_engine::catalog::CATALOG_TREE;
use clearway_engine::session::{Durability, TxnOptions};
use clearway_engine::table::shape::TableShape;
use clearway_storage::btree::{Direction, KeyRange};

use super::support::{DATABASE, SCHEMA, memory, open, read_a, row, run, table_object};

#[test]
fn opening_10000_tables_reads_the_catalog_and_no_table() {
    // Pages read are counted, not time.
    const TABLES: u32 = 10_000;
    let vfs = memory();
    let db = open(&vfs);
    let mut session = db.session(1, DATABASE);
    let mut last = 0;
    run(async {
        for _ in 0..TABLES / 50 {
            session.begin(TxnOptions::default());
            for _ in 0..50 {
                let tree = session.create_tree().await.expect("a tree");
                last = session.db().new_oid();
                session.put_object(table_object(last, tree, SCHEMA)).await.expect("a table");
            }
            session.commit(Durability::Async).await.expect("committed");
        }
        let shape = TableShape::new(&session.catalog(), last).expect("a shape");
        session.begin(TxnOptions::default());
        session.insert(&shape, &row(1, 10, "x")).await.expect("inserted");
        session.commit(Durability::Wait).await.expect("committed");
    });
    drop(session);
    run(db.close()).expect("closed");
    drop(db);

    let db = open(&vfs);
    let counters = || db.transactions().store().pool().counters().view().misses;
    let opening = counters();
    let mut leaves = 0;
    run(async {
        let mut cursor = db.transactions().store().tree(CATALOG_TREE).cursor(KeyRange::all(), Direction::Forward);
        while cursor.next_leaf().await.expect("readable").is_some() {
            leaves += 1;
        }
    });
    assert_eq!(db.catalog().objects().filter(|o| o.kind() == "table").count(), TABLES as usize);
    println!("{opening} pages read at the opening, {leaves} leaves of the catalog");
    // The catalog's inner pages, the directory of trees (some 150 entries a page), the bitmap, the first pages of the space.
    let beside = leaves / 50 + u64::from(TABLES) / 100 + 20;
    assert!(opening <= leaves + beside, "{opening} pages read for {leaves} leaves of the catalog");
    let before = counters();
    let mut session = db.session(1, DATABASE);
    run(async {
        let shape = TableShape::new(&session.catalog(), last).expect("a shape");
        assert_eq!(read_a(&mut session, &shape, 1).await, Some(10));
    });
    assert!(counters() - before <= 2, "{} pages read for the first row of a table", counters() - before);
    drop(session);
    run(db.close()).expect("closed");
}
