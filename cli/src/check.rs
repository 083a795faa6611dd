//! `clearway check`: checks a directory that no server has open, and changes nothing in it.
//!
//! What it proves: the control file, the checkpoint and every record of the log can be read; every allocated page has its checksum, its
//! number and a place in exactly one tree; no allocated page is lost; the catalog can be read; every index has an entry for each row of
//! its table, and no other entry. A directory that was not closed is recovered in memory first, as the next start would recover it on
//! disk.

use std::path::Path;
use std::sync::Arc;

use clearway_base::sync::{block_on, spawn_thread};
use clearway_base::vfs::{RealVfs, Vfs};
use clearway_engine::catalog::{Object, RelationKind};
use clearway_engine::db::{Db, DbOptions};
use clearway_engine::table::verify::verify;
use clearway_storage::check::{Checked, check as check_storage};

/// Checks the directory and prints a line per tree.
///
/// # Errors
/// Damage, which is printed, or a directory that can't be looked at.
pub fn check(directory: &Path) -> Result<(), String> {
    let base: Arc<dyn Vfs> = Arc::new(RealVfs::inline());
    let options = DbOptions::new(base.clone(), directory).store;
    let looked = block_on(check_storage(base, directory, &options));
    let (checked, overlay) = looked.map_err(|error| format!("{}: {error}", directory.display()))?;
    report(&checked);
    match checked.damage.len() {
        0 => check_catalog(overlay, directory),
        1 => Err("1 place is damaged".to_owned()),
        places => Err(format!("{places} places are damaged")),
    }
}

fn report(checked: &Checked) {
    if checked.closed {
        println!("closed properly");
    } else {
        println!("not closed: looked at as the next start will recover it; {} transactions to undo", checked.losers);
    }
    println!("log: {} records, ends at LSN {}", checked.records, checked.log_end);
    for (tree, rows, pages) in &checked.trees {
        println!("tree {tree}: {rows} rows, {pages} pages");
    }
    for damage in &checked.damage {
        eprintln!("{damage}");
    }
}

/// Opens the database on what the check left in memory.
fn check_catalog(overlay: Arc<dyn Vfs>, directory: &Path) -> Result<(), String> {
    let mut options = DbOptions::new(overlay, directory);
    options.store.create = false;
    let opened = block_on(Db::open(options, |name, body| {
        let started = spawn_thread(name, move || block_on(body));
        assert!(started.is_ok(), "no thread for {name}: {started:?}");
    }));
    let db = opened.map_err(|error| format!("{}: {error}", directory.display()))?;
    let disagree = block_on(check_indexes(&db));
    let closed = block_on(db.close()).map_err(|error| error.to_string());
    match disagree? {
        0 => println!("{} objects in the catalog: no damage", db.catalog().objects().count()),
        1 => return Err("1 index is damaged".to_owned()),
        indexes => return Err(format!("{indexes} indexes are damaged")),
    }
    closed
}

/// Compares the indexes of every table with its rows and prints those that disagree; how many do.
async fn check_indexes(db: &Db) -> Result<usize, String> {
    clearway_sql::context::index_terms::install();
    let catalog = db.catalog();
    let mut damaged = 0;
    for object in catalog.objects() {
        let Object::Relation(relation) = &**object else { continue };
        if relation.kind == RelationKind::View {
            continue;
        }
        let found = verify(db.transactions(), &catalog, relation.oid).await;
        let found = found.map_err(|error| format!("table {}: {error}", relation.name))?;
        found.iter().for_each(|disagreement| eprintln!("{disagreement}"));
        damaged += found.len();
    }
    Ok(damaged)
}
