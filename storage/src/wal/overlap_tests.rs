//! Flushes beside each other, on a disk that loses its power or fails a sync: what was told to be durable is there afterwards.

use super::tests::{dir, read, start};
use super::*;
use crate::ids::TxnId;
use crate::record::RecordKind;
use clearway_base::testkit::{self, Rng, Sim, Stop};
use clearway_base::vfs::sim::{Fault, SimDisk};
use clearway_base::vfs::{OpKind, Vfs};
use std::time::Duration;

const COMMITTERS: u64 = 6;
const COMMITS: u64 = 40;

/// What a life has told.
struct Told {
    /// Committer and number of each commit that was told to be durable.
    durable: Mutex<Vec<(u64, u64)>>,
    /// How many flushes began beside another.
    overlaps: AtomicU64,
}

impl Told {
    fn nothing() -> Arc<Told> {
        Arc::new(Told { durable: Mutex::new("test/told", Vec::new()), overlaps: AtomicU64::new(0) })
    }
}

/// Commits again and again, and counts as a thread that waits does, until the log is poisoned.
async fn committer(wal: Arc<Wal>, told: Arc<Told>, who: u64) {
    for number in 0..COMMITS {
        let body = [who as u8; 400];
        let body = &body[..(who * 67 + number * 31) as usize % 400];
        let record =
            Record { kind: RecordKind::Commit, txn: TxnId(who), undo_next: Lsn(number), undo: None, ops: &[], body };
        let Ok(mut credit) = wal.credit(Purpose::Change, Wal::record_bytes(&record)).await else { return };
        let end = wal.append(&mut credit, &record).end;
        drop(credit);
        wal.arrivals.come();
        if wal.wait_durable(end).await.is_err() {
            return;
        }
        assert!(wal.durable_lsn() >= end, "WAL-13");
        told.durable.lock().push((who, number));
    }
}

/// Flushes whenever a flush may begin, as the threads do that find one due.
async fn leader(wal: Arc<Wal>, told: Arc<Told>) {
    while wal.poisoned().is_none() {
        if let Some(turn) = wal.is_wanted().then(|| wal.take_turn()).flatten() {
            told.overlaps.fetch_add(wal.groups.under_way(), Ordering::SeqCst);
            wal.flush_once(turn).await;
        }
        testkit::sleep(Duration::from_micros(3)).await;
    }
}

fn life(seed: u64, disk: &SimDisk, told: &Arc<Told>) -> Result<(), Stop> {
    let (disk, told) = (disk.clone(), Arc::clone(told));
    Sim::new(seed).block_on(async move {
        let vfs: Arc<dyn Vfs> = Arc::new(disk);
        vfs.create_dir(&dir()).await.expect("dir");
        vfs.sync_dir(std::path::Path::new("/")).await.expect("synced");
        let wal = start(&vfs, Lsn(8), vec![0; 8], 1).await;
        let preparer = Arc::clone(&wal);
        testkit::spawn("preparer", async move { preparer.run_preparer().await });
        for _ in 0..3 {
            testkit::spawn("leader", leader(Arc::clone(&wal), Arc::clone(&told)));
        }
        let committers: Vec<_> = (1..=COMMITTERS)
            .map(|who| testkit::spawn("committer", committer(Arc::clone(&wal), Arc::clone(&told), who)))
            .collect();
        for committer in committers {
            committer.await;
        }
    })
}

/// Restarts the disk and looks for all that was told.
fn find(seed: u64, disk: &SimDisk, told: &Told) {
    let vfs: Arc<dyn Vfs> = Arc::new(disk.restart());
    let (seen, checked) = Sim::new(seed).block_on(async move { read(&vfs, Lsn(8)).await }).expect("it ends");
    checked.expect("a proper end, WAL-17");
    for commit in told.durable.lock().iter() {
        assert!(seen.contains(commit), "WAL-13: commit {commit:?} was told to be durable and is lost");
    }
}

/// WAL-13, WAL-28: flushes overlap, and after a power cut at any point everything is there that was told.
#[test]
fn what_overlapping_flushes_told_survives_a_power_cut() {
    clearway_base::for_each_seed!(4, |seed| {
        let (whole, told) = (SimDisk::new(seed), Told::nothing());
        life(seed, &whole, &told).expect("the life ends");
        assert_eq!(told.durable.lock().len() as u64, COMMITTERS * COMMITS);
        let overlaps = told.overlaps.load(Ordering::SeqCst);
        assert!(overlaps > 10, "{overlaps} flushes began beside another");
        let mut rng = Rng::new(seed);
        for _ in 0..60 {
            let (disk, told) = (SimDisk::new(seed), Told::nothing());
            disk.crash_at(rng.range(30..whole.points()));
            assert_eq!(life(seed, &disk, &told), Err(Stop::Crashed));
            find(seed, &disk, &told);
        }
    });
}

/// WAL-15, WAL-29: a sync that fails ends the log, although the sync of a later flush returns without an error.
#[test]
fn nothing_is_told_after_a_failed_sync() {
    clearway_base::for_each_seed!(60, |seed| {
        let (disk, told) = (SimDisk::new(seed), Told::nothing());
        let nth = Rng::new(seed).range(3..40);
        disk.plant(Fault::on(OpKind::SyncData, std::io::ErrorKind::Other).path("/wal/").nth(nth));
        life(seed, &disk, &told).expect("the committers end");
        assert!((told.durable.lock().len() as u64) < COMMITTERS * COMMITS, "the sync has failed");
        find(seed, &disk, &told);
    });
}

/// WAL-16, WAL-30: threads that wait for their own commits all go on, whichever of them flushes, and none is released early.
#[test]
fn threads_that_flush_for_each_other_all_go_on() {
    let vfs: Arc<dyn Vfs> = Arc::new(clearway_base::vfs::MemVfs::new());
    crate::testing::now(vfs.create_dir(&dir())).expect("dir");
    let options = WalOptions { caller_flushes: true, ..super::tests::options() };
    let wal = crate::testing::now(super::tests::start_with(options, &vfs, Lsn(8), vec![0; 8], 1));
    let thread = |name: &str, work: fn(&Arc<Wal>)| {
        let wal = Arc::clone(&wal);
        clearway_base::sync::spawn_thread(name, move || {
            let _inline = clearway_base::vfs::inline_io_here();
            work(&wal);
        })
        .expect("a thread")
    };
    let background = [
        thread("flusher", |wal| clearway_base::sync::block_on(Arc::clone(wal).run_flusher())),
        thread("preparer", |wal| clearway_base::sync::block_on(Arc::clone(wal).run_preparer())),
    ];
    let commit = |wal: &Arc<Wal>| {
        for number in 0..500 {
            let record = Record {
                kind: RecordKind::Commit,
                txn: TxnId(1),
                undo_next: Lsn(number),
                undo: None,
                ops: &[],
                body: b"",
            };
            let credit = wal.credit(Purpose::Change, Wal::record_bytes(&record));
            let end = {
                let mut credit = clearway_base::sync::block_on(credit).expect("room");
                wal.append(&mut credit, &record).end
            };
            wal.wait_durable_here(end).expect("durable");
            assert!(wal.durable_lsn() >= end, "WAL-13");
        }
    };
    let committers: Vec<_> = (0..8).map(|_| thread("committer", commit)).collect();
    committers.into_iter().for_each(|committer| committer.join().expect("no panic"));
    wal.close();
    background.into_iter().for_each(|task| task.join().expect("no panic"));
    assert_eq!(wal.durable_lsn(), wal.end_lsn());
}
