//! Redo by batches beside redo record by record, over the log of trees that were changed at random.

use super::*;
use crate::btree::{Edit, TreeRedo};
use crate::buffer::{DoubleWrite, PAGE_BYTES, PoolOptions};
use crate::ids::{Tag, TxnId};
use crate::record::{PageOp, Record, Redo, RowUndo, TxnLog};
use crate::seams::{PageLog, Purpose};
use crate::testing::{Rig, now};
use clearway_base::for_each_seed;
use clearway_base::testkit::Rng;
use clearway_base::vfs::{FileKind, MemVfs, OpenHow, Vfs};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A record as the log has it.
type Logged = (LsnRange, Vec<u8>);

/// Two trees of which rows come, change and split their leaves; and the records of that.
fn changed(vfs: &dyn Vfs, rng: &mut Rng, edits: usize) -> (Rig, Vec<Logged>) {
    now(async {
        let rig = Rig::new(vfs, 512).await;
        let trees = [rig.tree(1).await, rig.tree(2).await];
        let mut log = TxnLog::new(TxnId(7));
        for n in 0..edits {
            let key = rng.below(1_500).to_be_bytes();
            let value = vec![n as u8; rng.index(300)];
            let tag = Tag(rng.below(4));
            trees[rng.index(2)]
                .edit(&mut log, &key, value.len(), |_| (Edit::put(&value, tag), ()))
                .await
                .expect("a row");
        }
        // The end of the log is behind all that stands in pages: a record takes some bytes more here than there.
        {
            let mut credit = rig.log.try_credit(Purpose::Change, 1_000).expect("credit");
            let _ = rig.log.append(&mut credit, &Record::structure(&[]));
        }
        let records: Vec<Logged> = rig
            .log
            .records
            .lock()
            .iter()
            .map(|kept| {
                let undo = kept.undo.as_ref().map(|undo| RowUndo {
                    tree: undo.tree,
                    key: &undo.key,
                    tag: undo.tag,
                    prev_tag: undo.prev_tag,
                    before: undo.before.as_before(),
                });
                let payloads: Vec<[&[u8]; 1]> = kept.ops.iter().map(|(_, _, payload)| [&payload[..]]).collect();
                let ops: Vec<PageOp<'_>> = kept
                    .ops
                    .iter()
                    .zip(&payloads)
                    .map(|((page, op, _), payload)| PageOp { page: *page, op: *op, payload })
                    .collect();
                let record =
                    Record { kind: kept.kind, txn: TxnId(7), undo_next: kept.previous, undo, ops: &ops, body: &[] };
                let mut bytes = Vec::new();
                format::encode(&record, 1, &mut bytes);
                let end = Lsn(kept.range.start.0 + bytes.len() as u64);
                (LsnRange { start: kept.range.start, end }, bytes)
            })
            .collect();
        (rig, records)
    })
}

/// A pool over the pages on another disk, with the log of the rig.
async fn pool_over(vfs: &dyn Vfs, rig: &Rig, frames: usize, free_target: usize) -> Arc<Pool> {
    let other = Rig::new(vfs, 8).await;
    let how = OpenHow::create(FileKind::Data);
    let twins = DoubleWrite::new(vfs.open(Path::new("/twins"), how).await.expect("twins"));
    let options = PoolOptions { frames, batch_pages: (frames / 4).min(8), free_target, huge_pages: false };
    Pool::new(options, rig.log.clone(), other.space.clone(), twins)
}

/// REC-5, as it is defined: record by record, in the order of the log.
async fn redo_one_by_one(pool: &Pool, records: &[Logged]) {
    for (lsn, bytes) in records {
        let record = format::decode(bytes, lsn.start, "", 0).expect("a record");
        let pages: BTreeSet<PageId> = record.ops.iter().map(|op| op.page).collect();
        for page in pages {
            let (pin, _) = pool.pin_for_redo(page).await.expect("a page");
            let mut latched = pin.latch();
            if latched.page().lsn() < lsn.end {
                for op in record.ops.iter().filter(|op| op.page == page) {
                    TreeRedo.redo(latched.page(), op.op, op.payload, &record.view()).expect("redo");
                }
                latched.redone(lsn.start, lsn.end);
            }
        }
    }
}

/// The pages that records name, as they are in a pool.
async fn pages_in(pool: &Pool, records: &[Logged]) -> BTreeMap<PageId, Vec<u8>> {
    let mut named = Vec::new();
    records.iter().for_each(|(_, bytes)| format::pages_of(bytes, &mut named).expect("a record"));
    let mut pages = BTreeMap::new();
    for page in named {
        let pin = pool.pin(page).await.expect("a page");
        let mut bytes = Box::new([0; PAGE_BYTES]);
        pin.latch().page().copy_out(&mut bytes);
        // The checksum is made when the page is written.
        pages.insert(page, bytes[4..].to_vec());
        while pool.wants_cleaning() {
            pool.clean_step().await.expect("written");
        }
    }
    pages
}

fn no_place() -> Place {
    Arc::new(|_| ("log".to_owned(), 0))
}

#[test]
fn redo_by_batches_makes_the_pages_of_redo_record_by_record() {
    // REC-5, REC-14, REC-15, REC-16
    for_each_seed!(3, |seed| {
        let mut rng = Rng::new(seed);
        let vfs = MemVfs::new();
        let (rig, records) = changed(&vfs, &mut rng, 2_500);
        let expected = now(async {
            let pool = pool_over(&MemVfs::new(), &rig, 512, 4).await;
            redo_one_by_one(&pool, &records).await;
            pages_in(&pool, &records).await
        });
        assert!(expected.len() > 40, "{} pages", expected.len());
        for (threads, frames, bytes_max) in [(0, 512, 1 << 20), (0, 64, 20_000), (2, 512, 50_000), (3, 64, 1)] {
            // Some pages are on disk as they were at some time.
            let (disk, until) = (MemVfs::new(), rng.index(records.len()));
            now(async {
                let before = pool_over(&disk, &rig, 512, 4).await;
                redo_one_by_one(&before, &records[..until]).await;
                for _ in 0..rng.index(4) {
                    before.clean_step().await.expect("written");
                }
                let pool = pool_over(&disk, &rig, frames, frames / 2).await;
                let mut pass = RedoPass::new(pool.clone(), threads, bytes_max, no_place());
                for (lsn, bytes) in &records {
                    pass.take(*lsn, bytes).await.expect("redo");
                    // Pages that wait to be changed leave memory.
                    if rng.chance(1, 50) {
                        pool.clean_step().await.expect("written");
                    }
                }
                pass.finish().await.expect("redo");
                assert_eq!(
                    pass.seen,
                    records
                        .iter()
                        .map(|(_, r)| {
                            let mut p = Vec::new();
                            format::pages_of(r, &mut p);
                            p.len() as u64
                        })
                        .sum::<u64>()
                );
                let found = pages_in(&pool, &records).await;
                for (page, bytes) in &expected {
                    assert!(
                        found[page] == *bytes,
                        "page {page}, {threads} threads, {frames} frames, {bytes_max} bytes"
                    );
                }
            });
        }
    });
}

#[test]
fn what_the_threads_leave_is_applied_by_the_opening_task() {
    // REC-15
    let vfs = MemVfs::new();
    let (rig, records) = changed(&vfs, &mut Rng::new(5), 1_500);
    now(async {
        let pool = pool_over(&MemVfs::new(), &rig, 512, 512).await;
        let mut pass = RedoPass::new(pool.clone(), 0, 1 << 20, no_place());
        for (lsn, bytes) in &records {
            pass.take(*lsn, bytes).await.expect("redo");
        }
        pass.begin_batch().await.expect("fetched");
        pool.clean_step().await.expect("nothing is dirty: all pages are evicted");
        let work = pass.running.take().expect("a batch").end().expect("no panic");
        let mut done = std::mem::take(&mut *work.done.lock());
        assert!(done.left.len() > 20 && done.steps < work.steps(), "{} pages left", done.left.len());
        pass.apply_left(&work, &mut done).await.expect("applied");
        assert_eq!(done.steps, work.steps());
    });
}

#[test]
fn an_operation_on_a_page_that_cant_be_read_is_damage() {
    // REC-6
    let vfs = MemVfs::new();
    let (rig, records) = changed(&vfs, &mut Rng::new(6), 600);
    let mut first = Vec::new();
    let at = records.iter().position(|(_, bytes)| {
        first.clear();
        format::pages_of(bytes, &mut first);
        let record = format::decode(bytes, Lsn(8), "", 0).expect("a record");
        record.ops.iter().any(|op| !TreeRedo.is_init(op.op))
    });
    let at = at.expect("a change of a page that is there");
    for threads in [0, 2] {
        now(async {
            let pool = pool_over(&MemVfs::new(), &rig, 512, 4).await;
            let mut pass = RedoPass::new(pool, threads, 1 << 20, no_place());
            for (lsn, bytes) in &records[at..] {
                pass.take(*lsn, bytes).await.expect("one batch");
            }
            let error = pass.finish().await.expect_err("a page that was never written");
            assert!(error.to_string().contains("can't be read"), "{error}");
        });
    }
}
