//! Operations of the embedded library whose futures are dropped: EMB-5.

use clearway_base::for_each_seed;
use clearway_base::testkit::{self, Rng, Sim};
use clearway_base::vfs::sim::SimDisk;
use clearway_engine::embedded::{AsyncTxn, Database, Error, Isolation, Table, TableNames, TxnOptions};

use super::cut::{Cut, until};
use super::disk::open_engine;

/// A row: its key, what was added and what was taken away.
type Counted = (i64, (i64, i64));

const ROWS: i64 = 6;

type Pairs = Table<i64, (i64, i64)>;

/// Changes some rows, one operation at a time, of which each may be dropped; both columns of a row always change together.
async fn client(db: Database, table: Pairs, mut rng: Rng) -> (u64, u64) {
    let (mut committed, mut dropped) = (0, 0);
    for _ in 0..10 {
        let cuts: Vec<_> = (0..3).map(|_| (rng.below(ROWS as u64) as i64, Cut::sometimes(&mut rng, 2))).collect();
        let options = TxnOptions { isolation: Isolation::ReadCommitted, read_only: false };
        let ended: Result<bool, Error> = db
            .transact_async(options, |txn: &mut AsyncTxn<'_>| {
                let (table, cuts) = (table.clone(), cuts.clone());
                Box::pin(async move {
                    for (key, cut) in cuts {
                        let changed =
                            until(cut, txn.update_with(&table, &key, |v| (v.0, v.1) = (v.0 + 1, v.1 - 1))).await;
                        match changed {
                            None => return Ok(false),
                            Some(done) => done.map(|_| ())?,
                        }
                        testkit::yield_now().await;
                    }
                    Ok(true)
                })
            })
            .await;
        match ended {
            Ok(true) => committed += 1,
            Err(Error::Failed) => dropped += 1,
            other => panic!("a transaction with a dropped operation does not commit: {other:?}"),
        }
    }
    (committed, dropped)
}

#[test]
fn a_dropped_operation_leaves_no_half_of_it() {
    let (mut committed, mut dropped) = (0, 0);
    for_each_seed!(20, |seed| {
        let met = Sim::new(seed)
            .block_on(async move {
                let db =
                    Database::on_engine(open_engine(&SimDisk::new(seed)).await.expect("opened")).expect("a database");
                let names = TableNames { table: "pairs", key: &["k"], value: &["up", "down"] };
                let table: Pairs = db.table_async(names).await.expect("a table");
                let filled: Result<(), Error> = db
                    .transact_async(TxnOptions::default(), |txn: &mut AsyncTxn<'_>| {
                        let table = table.clone();
                        Box::pin(async move {
                            for key in 0..ROWS {
                                txn.put(&table, &key, &(0, 0)).await?;
                            }
                            Ok(())
                        })
                    })
                    .await;
                filled.expect("filled");
                let clients: Vec<_> = (0..4)
                    .map(|n| testkit::spawn("client", client(db.clone(), table.clone(), Rng::new(seed * 10 + n))))
                    .collect();
                let mut met = (0, 0);
                for client in clients {
                    let (committed, dropped) = client.await;
                    met = (met.0 + committed, met.1 + dropped);
                }
                let rows: Result<Vec<Counted>, Error> = db
                    .transact_async(TxnOptions::default(), |txn: &mut AsyncTxn<'_>| {
                        let table = table.clone();
                        Box::pin(async move { txn.range(&table, ..).await })
                    })
                    .await;
                let rows = rows.expect("read");
                assert!(rows.iter().all(|(_, (up, down))| up + down == 0), "{rows:?}");
                let ups: i64 = rows.iter().map(|(_, (up, _))| up).sum();
                assert_eq!(ups as u64, 3 * met.0, "what committed is there, and no more");
                let all = db.engine().transactions();
                assert!(all.locks().locks().is_empty(), "a lock is left");
                all.store().wal().wait_durable(all.visible_lsn()).await.expect("durable");
                let durable = all.durable_snapshot();
                assert_eq!(all.book().snapshots().refresh(durable).oldest(), durable, "a snapshot is left");
                met
            })
            .expect("the run ends");
        (committed, dropped) = (committed + met.0, dropped + met.1);
    });
    assert!(committed > 50 && dropped > 5, "{committed} committed, {dropped} dropped: nothing was tried");
}
