//! A holder keeps the old log that it needs, across checkpoints, until it releases the log or exceeds its limit.

use clearway_base::testkit::Sim;
use clearway_base::vfs::Vfs;
use clearway_base::vfs::sim::SimDisk;
use clearway_storage::error::StorageError;
use clearway_storage::ids::Lsn;
use clearway_storage::wal::segments::Layout;
use clearway_tests::crash::sweep::{DIR, Running};
use clearway_tests::crash::txns::Txn;
use std::path::Path;

/// Some hundreds of kilobytes of log, in segments of 64, and checkpoints that need none of it.
async fn work(running: &Running) -> Result<(), StorageError> {
    let mut txn = Txn::begin(&running.store, &running.book);
    let tree = txn.create_tree().await?;
    for row in 0..400_u32 {
        txn.write(tree, &row.to_be_bytes(), Some(&[7; 600])).await?;
    }
    txn.commit(|_| {}).await?;
    for _ in 0..3 {
        running.store.checkpoint().await?;
    }
    Ok(())
}

/// Whether the segment in which this position lies is still there under its name.
async fn is_kept(disk: &SimDisk, running: &Running, lsn: Lsn) -> Result<bool, StorageError> {
    let name = Layout::file_name(running.store.wal().segments().layout().number(lsn));
    Ok(disk.list(&Path::new(DIR).join("wal")).await?.iter().any(|entry| entry.name == name))
}

#[test]
fn a_holder_keeps_its_segments_until_it_lets_go() {
    clearway_base::for_each_seed!(2, |seed| {
        let disk = SimDisk::new(seed);
        let run = Sim::new(seed).block_on(async move {
            let (running, _) = Running::open(&disk).await?;
            let wal = running.store.wal();
            let from = wal.end_lsn();
            let backup = wal.retention().hold("backup", from, 10 << 20).expect("the name is free");
            work(&running).await?;
            assert!(is_kept(&disk, &running, from).await?, "WAL-12: the backup needs it");
            let rows = wal.retention().rows();
            assert_eq!((rows.len(), rows[0].name.as_str(), rows[0].needs, rows[0].lost), (1, "backup", from, false));
            let half = wal.end_lsn();
            assert!(backup.advance(half));
            running.store.checkpoint().await?;
            assert!(!is_kept(&disk, &running, from).await?, "nobody needs it any more");
            work(&running).await?;
            assert!(is_kept(&disk, &running, half).await?, "WAL-12: the backup needs what comes after");
            drop(backup);
            assert!(wal.retention().rows().is_empty());
            running.store.checkpoint().await?;
            assert!(!is_kept(&disk, &running, half).await?, "nobody holds it any more");
            running.close().await
        });
        run.expect("nothing stops it").unwrap_or_else(|err| panic!("{err}"));
    });
}

#[test]
fn a_holder_beyond_its_limit_is_lost_and_is_told_so() {
    clearway_base::for_each_seed!(2, |seed| {
        let disk = SimDisk::new(seed);
        let run = Sim::new(seed).block_on(async move {
            let (running, _) = Running::open(&disk).await?;
            let wal = running.store.wal();
            let from = wal.end_lsn();
            let slow = wal.retention().hold("slow replica", from, 100 << 10).expect("the name is free");
            work(&running).await?;
            assert!(!is_kept(&disk, &running, from).await?, "WAL-12: the log goes on without it");
            assert!(wal.retention().rows()[0].lost);
            assert!(!slow.advance(wal.end_lsn()), "it is told");
            running.close().await
        });
        run.expect("nothing stops it").unwrap_or_else(|err| panic!("{err}"));
    });
}
