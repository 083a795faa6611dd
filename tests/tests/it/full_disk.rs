//! A full disk: ordinary work is refused, rollbacks are not.

use clearway_base::testkit::Sim;
use clearway_base::vfs::OpKind;
use clearway_base::vfs::sim::{Fault, SimDisk};
use clearway_storage::error::StorageError;
use clearway_storage::ids::TreeId;
use clearway_tests::crash::sweep::Running;
use clearway_tests::crash::txns::Txn;
use std::io::ErrorKind;

/// What a transaction does that is to be undone.
#[derive(Clone, Copy, Debug)]
struct Emptied {
    /// Rows of the tree, and how long their values are.
    rows: usize,
    bytes: usize,
    /// It empties every so manieth.
    step: usize,
    /// How long the values are that others put between them.
    filler: usize,
}

fn key(row: usize) -> Vec<u8> {
    format!("{row:05}").into_bytes()
}

/// Others put rows between those of the tree until that is refused.
async fn fill(running: &Running, tree: TreeId, what: Emptied) -> Result<(), StorageError> {
    for round in 0.. {
        for row in 0..what.rows {
            let mut other = Txn::begin(&running.store, &running.book);
            let key = format!("{row:05}-{round}").into_bytes();
            match other.write(tree, &key, Some(&vec![2; what.filler])).await {
                Ok(()) => other.commit(|_| {}).await?,
                Err(StorageError::NoSpace(_)) => return other.abort().await,
                Err(err) => return Err(err),
            }
            running.store.tick();
        }
    }
    Ok(())
}

/// SPC-7: a transaction empties rows, others fill the room that this left and every page there is, then it goes back.
async fn roll_back_on_a_full_disk(disk: SimDisk, what: Emptied) -> Result<(), StorageError> {
    let (running, _) = Running::open(&disk).await?;
    let (store, book) = (&running.store, &running.book);
    let mut first = Txn::begin(store, book);
    let tree = first.create_tree().await?;
    for row in 0..what.rows {
        first.write(tree, &key(row), Some(&vec![1; what.bytes])).await?;
    }
    first.commit(|_| {}).await?;
    let mut emptied = Txn::begin(store, book);
    for row in (0..what.rows).step_by(what.step) {
        emptied.write(tree, &key(row), Some(&[])).await?;
    }
    disk.plant(Fault::on(OpKind::Preallocate, ErrorKind::StorageFull).path(".dat").times(u64::MAX));
    fill(&running, tree, what).await?;
    emptied.abort().await?;
    assert_eq!(store.wal().undo_room().pages(), 0, "WAL-20: all claims are released");
    let reader = Txn::begin(store, book);
    for row in 0..what.rows {
        assert_eq!(reader.read(tree, &key(row)).await?, Some(vec![1; what.bytes]), "row {row}");
    }
    disk.clear_faults();
    running.close().await
}

fn shown(what: Emptied) {
    clearway_base::for_each_seed!(4, |seed| {
        let disk = SimDisk::new(seed);
        let run = Sim::new(seed).block_on(roll_back_on_a_full_disk(disk, what));
        run.expect("nothing stops it").unwrap_or_else(|err| panic!("{what:?}: {err}"));
    });
}

#[test]
fn a_rollback_of_all_rows_finds_pages_when_nothing_else_does() {
    shown(Emptied { rows: 300, bytes: 600, step: 1, filler: 300 });
}

#[test]
fn a_rollback_of_one_row_in_each_leaf_finds_pages_when_nothing_else_does() {
    shown(Emptied { rows: 1200, bytes: 500, step: 16, filler: 40 });
}
