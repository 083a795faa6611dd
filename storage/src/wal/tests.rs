//! The log on files in memory and on a simulated disk: every appended record is read back, and damage is reported.

use super::reader::LogReader;
use super::repair::{Known, check_end, read_all, settle_tail};
use super::segments::{Layout, Segments};
use super::*;
use crate::buffer::PAGE_BYTES;
use crate::ids::{PageId, Tag, TreeId, TxnId};
use crate::record::{Before, PageOp, RecordKind, RowUndo};
use clearway_base::testkit::{Rng, Sim};
use clearway_base::vfs::{MemVfs, Vfs};
use std::path::{Path, PathBuf};

/// WAL-7, WAL-20: however much ordinary work asks for, what the splits of undo may take stays.
#[test]
fn ordinary_credit_leaves_what_splits_of_undo_may_take() {
    let vfs: Arc<dyn Vfs> = Arc::new(MemVfs::new());
    crate::testing::now(vfs.create_dir(&dir())).expect("dir");
    let large = WalOptions { ring_bytes: 256 << 10, ..options() };
    let wal = crate::testing::now(start_with(large, &vfs, Lsn(8), vec![0; 8], 1));
    let log = &mut TxnLog::new(TxnId(1));
    let room = wal.undo_room();
    room.told(1000, 1000);
    let emptied = RoomChange { given_up: 600, taken: 0 };
    room.changed(log, emptied);
    assert_eq!(room.pages(), 0, "nothing came into the leaf: it has room");
    let filled = RoomChange { given_up: 0, taken: 100 };
    room.changed(&mut TxnLog::new(TxnId(2)), filled);
    // One row may split a node on each level; 100 bytes may take a part of a page more.
    assert_eq!(room.pages(), 5);
    while crate::testing::now(wal.prepare_step()).expect("room for segments") {}
    while wal.try_credit(Purpose::Change, 4 << 10).map(|mut credit| credit.spend(4 << 10)).is_some() {}
    let kept = wal.stats().log_free_bytes - (4 << 10);
    assert!(wal.stats().ring_free_bytes > 4 << 10, "the ring is not what is short");
    assert!(kept >= 5 * PAGE_BYTES as i64, "{kept} bytes are kept");
    room.undone(log, emptied);
    assert_eq!((room.pages(), log.room_rows, log.room_bytes), (0, 0, 0));
}

/// More log is kept ready after a writer has waited for some, and less again after checkpoints.
#[test]
fn log_is_kept_ready_by_demand() {
    let vfs: Arc<dyn Vfs> = Arc::new(MemVfs::new());
    crate::testing::now(vfs.create_dir(&dir())).expect("dir");
    let large = WalOptions { ring_bytes: 256 << 10, ..options() };
    let wal = crate::testing::now(start_with(large, &vfs, Lsn(8), vec![0; 8], 1));
    while crate::testing::now(wal.prepare_step()).expect("room for segments") {}
    assert!(wal.stats().log_free_bytes >= 40 << 10);
    let mut held = Vec::new();
    while let Some(credit) = wal.try_credit(Purpose::Change, 8 << 10) {
        held.push(credit);
    }
    let mut waits = Box::pin(wal.credit(Purpose::Change, 8 << 10));
    let cx = &mut std::task::Context::from_waker(std::task::Waker::noop());
    assert!(waits.as_mut().poll(cx).is_pending());
    assert!(crate::testing::now(wal.prepare_step()).expect("room for segments"));
    assert!(waits.as_mut().poll(cx).is_ready(), "a step gives a waiter what it waits for");
    while crate::testing::now(wal.prepare_step()).expect("room for segments") {}
    assert_eq!(wal.ahead.bytes(), 80 << 10, "twice as much");
    assert!(wal.stats().log_free_bytes >= 80 << 10);
    for left in [40 << 10, 40 << 10] {
        crate::testing::now(wal.release_below(Lsn(8))).expect("released");
        assert_eq!(wal.ahead.bytes(), left);
    }
}

const LAYOUT: Layout = Layout { segment_bytes: 32 << 10 };

fn options() -> WalOptions {
    WalOptions {
        ring_bytes: 16 << 10,
        segment_bytes: LAYOUT.segment_bytes,
        ahead_bytes: 40 << 10,
        floor_bytes: 4 << 10,
        log_bytes_max: 1 << 30,
        caller_flushes: false,
    }
}

fn dir() -> PathBuf {
    PathBuf::from("/wal")
}

async fn start(vfs: &Arc<dyn Vfs>, at: Lsn, head: Vec<u8>, epoch: u32) -> Arc<Wal> {
    start_with(options(), vfs, at, head, epoch).await
}

async fn start_with(options: WalOptions, vfs: &Arc<dyn Vfs>, at: Lsn, head: Vec<u8>, epoch: u32) -> Arc<Wal> {
    let segments = Segments::new(vfs.clone(), &dir(), LAYOUT, 7);
    let first = LAYOUT.number(at);
    let mut prepared = segments.adopt(first).await.expect("adopt");
    if prepared == first {
        segments.prepare(first, 1).await.expect("prepare");
        prepared += 1;
    }
    Arc::new(Wal::start(options, segments, StartAt { end: at, head, epoch, mark: None }, prepared, at))
}

fn row(rng: &mut Rng, key: &[u8], value: &[u8]) -> Vec<u8> {
    let parts: [&[u8]; 2] = [key, value];
    let ops = [PageOp { page: PageId(rng.below(9) as u32), op: 5, payload: &parts }];
    let before = Before::Row { ghost: true, overflow: false, value };
    let undo = RowUndo { tree: TreeId(3), key, tag: Tag(9), prev_tag: Tag(8), before };
    let record =
        Record { kind: RecordKind::Row, txn: TxnId(1), undo_next: Lsn(77), undo: Some(undo), ops: &ops, body: b"x" };
    let mut out = Vec::new();
    let crc = format::encode(&record, 1, &mut out);
    format::place(&mut out, crc, Lsn(64), Lsn(8));
    assert_eq!(out.len(), format::encoded_len(&record));
    out
}

#[test]
fn a_record_comes_back_and_no_flipped_bit_passes() {
    let mut rng = Rng::new(1);
    let mut bytes = row(&mut rng, b"key", b"some value");
    let decoded = format::decode(&bytes, Lsn(64), "f", 0).expect("decodes");
    assert_eq!((decoded.kind, decoded.txn, decoded.undo_next), (RecordKind::Row, TxnId(1), Lsn(77)));
    assert_eq!(decoded.ops[0].payload, b"keysome value");
    assert_eq!(decoded.undo.expect("undo").key, b"key");
    assert_eq!(decoded.body, b"x");
    for bit in 0..bytes.len() * 8 {
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(!format::crc_holds(&bytes, Lsn(64)), "WAL-1: bit {bit}");
        bytes[bit / 8] ^= 1 << (bit % 8);
    }
    assert!(!format::crc_holds(&bytes, Lsn(72)), "WAL-1: another position");
}

#[test]
fn decoding_random_bytes_never_panics() {
    clearway_base::for_each_seed!(200, |seed| {
        let mut rng = Rng::new(seed);
        let mut bytes = row(&mut rng, b"key", b"value");
        for _ in 0..rng.below(4) {
            let at = rng.index(bytes.len());
            bytes[at] = rng.next_u64() as u8;
        }
        let _ = format::decode(&bytes, Lsn(64), "f", 0);
        let _ = format::Header::parse(&bytes, Lsn(64));
    });
}

fn run<T: Send + 'static>(seed: u64, future: impl Future<Output = T> + Send + 'static) -> T {
    Sim::new(seed).block_on(future).expect("the simulation ends")
}

async fn appender(wal: Arc<Wal>, txn: u64, count: u64) {
    for i in 0..count {
        let body = [txn as u8; 300];
        let body = &body[..(txn * 37 + i * 11) as usize % 300];
        let record =
            Record { kind: RecordKind::Commit, txn: TxnId(txn), undo_next: Lsn(i), undo: None, ops: &[], body };
        let mut credit = wal.credit(Purpose::Change, Wal::record_bytes(&record)).await.expect("credit");
        let range = wal.append(&mut credit, &record);
        drop(credit);
        wal.wait_durable(range.end).await.expect("durable");
        assert!(wal.durable_lsn() >= range.end, "WAL-13");
    }
}

async fn fill(vfs: Arc<dyn Vfs>, tasks: u64, count: u64) -> Lsn {
    vfs.create_dir(&dir()).await.expect("dir");
    let wal = start(&vfs, Lsn(8), vec![0; 8], 1).await;
    let background = [
        clearway_base::testkit::spawn("flusher", {
            let wal = wal.clone();
            async move { wal.run_flusher().await }
        }),
        clearway_base::testkit::spawn("preparer", {
            let wal = wal.clone();
            async move { wal.run_preparer().await }
        }),
    ];
    let mut handles = Vec::new();
    for txn in 1..=tasks {
        handles.push(clearway_base::testkit::spawn("appender", appender(wal.clone(), txn, count)));
    }
    for handle in handles {
        handle.await;
    }
    wal.close();
    for task in background {
        task.await;
    }
    let end = wal.end_lsn();
    assert_eq!(wal.durable_lsn(), end);
    let stats = wal.stats();
    assert_eq!(stats.ring_free_bytes, options().ring_bytes as i64, "WAL-6: all ring room came back");
    let prepared = LAYOUT.first_lsn(wal.segments().end_number()).0;
    assert_eq!(stats.log_free_bytes, (prepared - end.0) as i64, "WAL-6: log space adds up");
    end
}

async fn read(vfs: &Arc<dyn Vfs>, known: Lsn) -> (Vec<(u64, u64)>, Result<Lsn, StorageError>) {
    let reader = LogReader::new(vfs.clone(), &dir(), LAYOUT, 7, Lsn(8), (Lsn(8), 1));
    let mut seen = Vec::new();
    let end = read_all(reader, |range, bytes| {
        let record = format::decode(bytes, range.start, "f", 0)?;
        seen.push((record.txn.0, record.undo_next.0));
        Ok(())
    })
    .await
    .expect("reads");
    let known = Known { vfs, dir: &dir(), layout: LAYOUT, database: 7, durable: known };
    let checked = check_end(&known, &end).await.map(|()| end.lsn);
    (seen, checked)
}

#[test]
fn what_many_append_comes_back_in_one_order() {
    clearway_base::for_each_seed!(20, |seed| {
        run(seed, async move {
            let vfs: Arc<dyn Vfs> = Arc::new(MemVfs::new());
            let end = fill(vfs.clone(), 5, 60).await;
            assert!(LAYOUT.number(end) >= 1, "more than one segment");
            let (seen, checked) = read(&vfs, end).await;
            assert_eq!(seen.len(), 300);
            assert_eq!(checked.expect("a proper end"), end);
            for txn in 1..=5 {
                let of_txn: Vec<u64> = seen.iter().filter(|(t, _)| *t == txn).map(|(_, i)| *i).collect();
                assert_eq!(of_txn, (0..60).collect::<Vec<_>>(), "order of one task");
            }
        });
    });
}

async fn flip(vfs: &Arc<dyn Vfs>, path: &Path, at: u64) {
    let file = vfs.open(path, segments::how()).await.expect("open");
    let block = at / 4096 * 4096;
    let mut bytes = file.read_exact_at(block, clearway_base::vfs::IoBuf::zeroed(4096), 4096).await.expect("read");
    bytes[(at - block) as usize] ^= 0x40;
    file.write_at(block, bytes).await.expect("write");
}

#[test]
fn damage_below_the_known_durable_lsn_is_told() {
    clearway_base::for_each_seed!(60, |seed| {
        run(seed, async move {
            let mut rng = Rng::new(seed);
            let vfs: Arc<dyn Vfs> = Arc::new(MemVfs::new());
            let end = fill(vfs.clone(), 3, 60).await;
            // The control file knows little; records behind the damage know the rest.
            let at = Lsn(rng.range(8..end.0 - 2000));
            flip(&vfs, &dir().join(Layout::file_name(LAYOUT.number(at))), LAYOUT.offset(at)).await;
            let (_, checked) = read(&vfs, Lsn(8)).await;
            match checked {
                Err(StorageError::Corruption(c)) => assert!(c.lsn.is_some() && c.offset.is_some(), "{c}"),
                other => panic!("WAL-17: damage at {at} of {end} gave {other:?}"),
            }
        });
    });
}

#[test]
fn a_log_goes_on_where_it_ended_in_a_new_epoch() {
    clearway_base::for_each_seed!(10, |seed| {
        run(seed, async move {
            let vfs: Arc<dyn Vfs> = Arc::new(MemVfs::new());
            let end = fill(vfs.clone(), 2, 20).await;
            let known = Known { vfs: &vfs, dir: &dir(), layout: LAYOUT, database: 7, durable: Lsn(8) };
            let head = settle_tail(&known, end, true).await.expect("settles");
            let wal = start(&vfs, end, head, 2).await;
            let flusher = clearway_base::testkit::spawn("flusher", {
                let wal = wal.clone();
                async move { wal.run_flusher().await }
            });
            appender(wal.clone(), 9, 3).await;
            wal.close();
            flusher.await;
            let (seen, checked) = read(&vfs, end).await;
            assert_eq!(seen.len(), 43);
            assert_eq!(checked.expect("a proper end"), wal.end_lsn());
        });
    });
}

#[test]
fn a_holder_keeps_the_log_until_its_limit() {
    let retention: Arc<Retention> = Arc::default();
    let holder = retention.hold("backup", Lsn(100), 1000).expect("free");
    assert!(retention.hold("backup", Lsn(0), 1).is_none());
    assert_eq!(retention.oldest(Lsn(900)), Lsn(100), "WAL-12");
    assert!(holder.advance(Lsn(200)));
    assert_eq!(retention.oldest(Lsn(1300)), Lsn::MAX, "WAL-12: beyond the limit");
    assert!(!holder.advance(Lsn(1200)));
    drop(holder);
    assert!(retention.rows().is_empty());
}

#[test]
fn only_a_waiter_that_is_alone_flushes_itself() {
    clearway_base::sync::block_on(async {
        let vfs: Arc<dyn Vfs> = Arc::new(MemVfs::new());
        vfs.create_dir(&dir()).await.expect("dir");
        let wal = start_with(WalOptions { caller_flushes: true, ..options() }, &vfs, Lsn(8), vec![0; 8], 1).await;
        let append = || {
            let record =
                Record { kind: RecordKind::Commit, txn: TxnId(1), undo_next: Lsn(0), undo: None, ops: &[], body: b"" };
            let mut credit = wal.try_credit(Purpose::Change, Wal::record_bytes(&record)).expect("room");
            wal.append(&mut credit, &record).end
        };
        // No background flusher runs: what becomes durable, the waiter has flushed.
        let polls = |end: Lsn, at_most: usize| {
            wal.quickness.took(quick::QUICK_NS); // WAL-27 is not what is asked here
            let mut wait = std::pin::pin!(wal.wait_durable(end));
            let mut context = std::task::Context::from_waker(std::task::Waker::noop());
            (1..=at_most).find(|_| wait.as_mut().poll(&mut context).is_ready())
        };
        wal.session_busy(true);
        wal.session_busy(true);
        let end = append();
        assert_eq!(polls(end, 3), None, "another session is at work");
        assert!(wal.durable_lsn() < end);
        wal.session_busy(false);
        assert_eq!(polls(end, 3), Some(2), "alone, after one yield");
        let taken: Vec<usize> = (0..32).filter_map(|_| polls(append(), 3)).collect();
        assert_eq!(taken.iter().filter(|polls| **polls == 2).count(), 2, "one yield in 16: {taken:?}");
        assert_eq!(taken.iter().filter(|polls| **polls == 1).count(), 30);
    });
}

/// WAL-27: where flushes are quick, a waiter flushes although others are at work, and leaves it to the flusher where they are not.
#[test]
fn a_waiter_flushes_beside_others_where_flushes_are_quick() {
    let vfs: Arc<dyn Vfs> = Arc::new(MemVfs::new());
    crate::testing::now(vfs.create_dir(&dir())).expect("dir");
    let wal =
        crate::testing::now(start_with(WalOptions { caller_flushes: true, ..options() }, &vfs, Lsn(8), vec![0; 8], 1));
    wal.session_busy(true);
    wal.session_busy(true);
    let is_flushed_at_once = || {
        let record =
            Record { kind: RecordKind::Commit, txn: TxnId(1), undo_next: Lsn(0), undo: None, ops: &[], body: b"" };
        let mut credit = wal.try_credit(Purpose::Change, Wal::record_bytes(&record)).expect("room");
        let end = wal.append(&mut credit, &record).end;
        let mut wait = std::pin::pin!(wal.wait_durable(end));
        let ready = wait.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop())).is_ready();
        assert_eq!(ready, wal.durable_lsn() >= end, "WAL-13");
        ready
    };
    let take = |ns| (0..40).for_each(|_| wal.quickness.took(ns));
    assert!(!is_flushed_at_once(), "no flush has shown how long one takes");
    take(quick::QUICK_NS - 1);
    assert!(is_flushed_at_once());
    take(quick::QUICK_NS);
    assert!(!is_flushed_at_once());
}

/// WAL-16: a waiter that finds the flush state taken leaves the flusher asleep; the task that has the state wakes it.
#[test]
fn a_waiter_does_not_wake_the_flusher_while_another_task_flushes() {
    struct Rings(std::sync::atomic::AtomicUsize);
    impl std::task::Wake for Rings {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let vfs: Arc<dyn Vfs> = Arc::new(MemVfs::new());
    crate::testing::now(vfs.create_dir(&dir())).expect("dir");
    let wal =
        crate::testing::now(start_with(WalOptions { caller_flushes: true, ..options() }, &vfs, Lsn(8), vec![0; 8], 1));
    let record = Record { kind: RecordKind::Commit, txn: TxnId(1), undo_next: Lsn(0), undo: None, ops: &[], body: b"" };
    let mut credit = wal.try_credit(Purpose::Change, Wal::record_bytes(&record)).expect("room");
    let end = wal.append(&mut credit, &record).end;
    let rings = Arc::new(Rings(0.into()));
    let mut flusher = std::pin::pin!(wal.run_flusher());
    let waker = std::task::Waker::from(Arc::clone(&rings));
    assert!(flusher.as_mut().poll(&mut std::task::Context::from_waker(&waker)).is_pending(), "it has nothing to do");
    let cx = &mut std::task::Context::from_waker(std::task::Waker::noop());
    let mut wait = std::pin::pin!(wal.wait_durable(end));
    let _inline = clearway_base::vfs::inline_io_here();
    let turn = wal.take_turn().expect("no task flushes");
    assert!(wait.as_mut().poll(cx).is_pending());
    assert_eq!(rings.0.load(Ordering::SeqCst), 0, "the flusher could do nothing");
    drop(turn);
    assert_eq!(rings.0.load(Ordering::SeqCst), 1, "what was wanted meanwhile is left to the flusher");
    assert!(flusher.as_mut().poll(&mut std::task::Context::from_waker(&waker)).is_pending());
    assert!(wait.as_mut().poll(cx).is_ready());
}

/// WAL-24, WAL-26: a flush waits for the committer that took part in the last one, and begins when that has come.
#[test]
fn a_flush_waits_for_the_committers_of_the_last_one() {
    let vfs: Arc<dyn Vfs> = Arc::new(MemVfs::new());
    crate::testing::now(vfs.create_dir(&dir())).expect("dir");
    let wal =
        crate::testing::now(start_with(WalOptions { caller_flushes: true, ..options() }, &vfs, Lsn(8), vec![0; 8], 1));
    let thread = |name: &str, work: fn(&Wal)| {
        let wal = Arc::clone(&wal);
        clearway_base::sync::spawn_thread(name, move || work(&wal)).expect("a thread")
    };
    let commit = |wal: &Wal| {
        let record =
            Record { kind: RecordKind::Commit, txn: TxnId(1), undo_next: Lsn(0), undo: None, ops: &[], body: b"" };
        let mut credit = wal.try_credit(Purpose::Change, Wal::record_bytes(&record)).expect("room");
        let end = wal.append(&mut credit, &record).end;
        let _inline = clearway_base::vfs::inline_io_here();
        clearway_base::sync::block_on(wal.wait_durable(end)).expect("durable");
    };
    let flusher = thread("flusher", |wal| {
        let _inline = clearway_base::vfs::inline_io_here();
        clearway_base::sync::block_on(wal.run_flusher());
    });
    // The last flush carried two, and the next may wait for an hour, so that the deadline decides nothing here.
    wal.flush.lock().as_mut().expect("no task flushes").carried(2, 3_600_000_000_000);
    let first = thread("first", commit);
    while wal.arrivals.count() == 0 {
        std::thread::yield_now();
    }
    assert_eq!(wal.stats().flushes, 0, "it waits for the second");
    commit(&wal);
    first.join().expect("no panic");
    assert_eq!(wal.stats().flushes, 1, "one flush carries both");
    wal.close();
    flusher.join().expect("no panic");
}
