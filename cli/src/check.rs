//! `clearway check`: opens a directory, which recovers it if it was not closed, and walks every tree.
//!
//! What it proves: every page of every tree has its checksum and stands where its keys say; no page is in two trees; the
//! catalog can be read.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use clearway_base::sync::{block_on, spawn_thread};
use clearway_base::vfs::{RealVfs, Vfs};
use clearway_engine::db::{Db, DbOptions};

/// Checks the directory and prints a line per tree.
///
/// # Errors
/// Damage, or a directory that can't be opened.
pub fn check(directory: &Path) -> Result<(), String> {
    let vfs: Arc<dyn Vfs> = Arc::new(RealVfs::inline());
    let mut options = DbOptions::new(vfs, directory);
    options.store.create = false;
    let opened = block_on(Db::open(options, |name, body| {
        let started = spawn_thread(name, move || block_on(body));
        assert!(started.is_ok(), "no thread for {name}: {started:?}");
    }));
    let db = opened.map_err(|error| format!("{}: {error}", directory.display()))?;
    let walked = block_on(walk(&db));
    let closed = block_on(db.close()).map_err(|error| error.to_string());
    walked.and(closed)
}

async fn walk(db: &Db) -> Result<(), String> {
    db.undo_losers().await.map_err(|error| error.to_string())?;
    let store = db.transactions().store();
    let (mut owners, mut trees, mut rows) = (BTreeMap::new(), 0, 0);
    for entry in store.space().trees() {
        let report = store.tree(entry.tree).check().await.map_err(|error| format!("tree {}: {error}", entry.tree))?;
        println!("tree {}: {} rows in {} leaves, {} levels", entry.tree, report.rows, report.leaves, report.levels);
        trees += 1;
        rows += report.rows;
        for page in report.pages {
            if let Some(other) = owners.insert(page, entry.tree) {
                return Err(format!("page {page} is in tree {} and in tree {other}", entry.tree));
            }
        }
    }
    let catalog = db.catalog();
    println!("{trees} trees, {rows} rows, {} pages, {} objects: no damage", owners.len(), catalog.objects().count());
    Ok(())
}
