//! Updates of one row that share a transaction (`crate::line` of the engine): the reply of each, and what a crash leaves of them.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use clearway_base::for_each_seed;
use clearway_base::sync::Mutex;
use clearway_base::testkit::{self, Rng, Sim, Stop, yield_now};
use clearway_base::vfs::sim::SimDisk;
use clearway_engine::embedded::{AsyncTxn, Database, Error, Table, TableNames, TxnOptions};

use super::cut::{Cut, until};
use super::disk::open_engine;

type Counters = Table<i64, i64>;
type Increment<'d> = Pin<Box<dyn Future<Output = Result<Option<i64>, Error>> + Send + 'd>>;

const ROW: i64 = 1;

async fn counters(disk: &SimDisk) -> (Database, Counters) {
    let db = Database::on_engine(open_engine(disk).await.expect("opened")).expect("a database");
    let names = TableNames { table: "counters", key: &["id"], value: &["n"] };
    let table = db.table_async(names).await.expect("a table");
    (db, table)
}

async fn put(db: &Database, table: &Counters, n: i64) {
    let put: Result<(), Error> = db
        .transact_async(TxnOptions::default(), |txn: &mut AsyncTxn<'_>| {
            let table = table.clone();
            Box::pin(async move { txn.put(&table, &ROW, &n).await })
        })
        .await;
    put.expect("put");
}

/// A new database in which the row holds zero.
async fn fresh(seed: u64) -> (Database, Counters) {
    let (db, table) = counters(&SimDisk::new(seed)).await;
    put(&db, &table, 0).await;
    (db, table)
}

async fn get(db: &Database, table: &Counters) -> Option<i64> {
    let got: Result<Option<i64>, Error> = db
        .transact_async(TxnOptions::default(), |txn: &mut AsyncTxn<'_>| {
            let table = table.clone();
            Box::pin(async move { txn.get(&table, &ROW).await })
        })
        .await;
    got.expect("read")
}

fn increment<'d>(db: &'d Database, table: &'d Counters) -> Increment<'d> {
    Box::pin(db.update_with_async(table, &ROW, |n| {
        *n += 1;
        *n
    }))
}

fn poll<T>(future: &mut Pin<Box<dyn Future<Output = T> + Send + '_>>) -> Poll<T> {
    future.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

/// Lets others run and time pass.
async fn step() {
    testkit::sleep(Duration::from_micros(5)).await;
}

/// Polls them until each stands where it has to wait.
async fn stand(all: &mut [Increment<'_>]) {
    for _ in 0..20 {
        all.iter_mut().for_each(|f| assert!(poll(f).is_pending()));
        step().await;
    }
}

/// Polls until it is ready.
async fn ended<T>(mut future: Pin<Box<dyn Future<Output = T> + Send + '_>>) -> T {
    loop {
        if let Poll::Ready(out) = poll(&mut future) {
            return out;
        }
        step().await;
    }
}

fn in_simulation<T: Send + 'static>(seed: u64, test: impl Future<Output = T> + Send + 'static) -> T {
    Sim::new(seed).block_on(test).expect("the run ends")
}

/// A session has the row until the future that is returned is dropped.
async fn hold<'d>(
    db: &'d Database,
    table: &'d Counters,
) -> Pin<Box<dyn Future<Output = Result<(), Error>> + Send + 'd>> {
    let mut holds: Pin<Box<dyn Future<Output = Result<(), Error>> + Send + 'd>> =
        Box::pin(db.transact_async(TxnOptions::default(), |txn: &mut AsyncTxn<'_>| {
            let table = table.clone();
            Box::pin(async move {
                txn.get_for_update(&table, &ROW).await?;
                std::future::pending().await
            })
        }));
    for _ in 0..20 {
        assert!(poll(&mut holds).is_pending());
        step().await;
    }
    holds
}

#[test]
fn who_stands_in_line_is_served_by_the_one_before() {
    in_simulation(1, async {
        let (db, table) = fresh(1).await;
        let holder = hold(&db, &table).await;
        let mut all: Vec<_> = (0..4).map(|_| increment(&db, &table)).collect();
        stand(&mut all).await;
        let (waits, served) = (db.engine().transactions().locks().locks(), db.engine().updates_served());
        assert_eq!(
            waits.iter().filter(|lock| !lock.granted).count(),
            1,
            "LINE-3: one of them stands in the row's queue: {waits:?}"
        );
        // The third gives up.
        drop(all.remove(2));
        drop(holder);
        let mut results = Vec::new();
        for f in all {
            results.push(ended(f).await.expect("incremented"));
        }
        assert_eq!(results, [Some(1), Some(2), Some(3)]);
        assert_eq!(db.engine().updates_served() - served, 2);
        assert_eq!(get(&db, &table).await, Some(3));
    });
}

#[test]
fn a_panic_in_line_is_the_panic_of_its_own_future() {
    in_simulation(2, async {
        let (db, table) = fresh(2).await;
        let holder = hold(&db, &table).await;
        let mut first = increment(&db, &table);
        assert!(poll(&mut first).is_pending());
        let mut panics: Increment<'_> = Box::pin(db.update_with_async(&table, &ROW, |n| {
            *n = 99;
            std::panic::resume_unwind(Box::new("planted"))
        }));
        assert!(poll(&mut panics).is_pending());
        let mut third = increment(&db, &table);
        assert!(poll(&mut third).is_pending());
        drop(holder);
        assert_eq!(ended(first).await.expect("incremented"), Some(1));
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| poll(&mut panics)));
        assert!(panicked.is_err_and(|panic| panic.downcast_ref() == Some(&"planted")));
        assert_eq!(ended(third).await.expect("incremented"), Some(2));
        assert_eq!(get(&db, &table).await, Some(2), "what the panicking closure left is nowhere");
    });
}

#[test]
fn behind_one_who_cannot_go_on_they_stand_in_the_rows_own_queue() {
    // LINE-4
    in_simulation(3, async {
        let (db, table) = fresh(3).await;
        let holder = hold(&db, &table).await;
        let mut all: Vec<_> = (0..5).map(|_| increment(&db, &table)).collect();
        let waiting = || db.engine().transactions().locks().locks().iter().filter(|lock| !lock.granted).count();
        stand(&mut all).await;
        assert_eq!(waiting(), 1);
        testkit::sleep(Duration::from_millis(300)).await;
        stand(&mut all).await;
        assert_eq!(waiting(), 5, "each of them can be seen");
        // And a call that comes now goes there at once.
        all.push(increment(&db, &table));
        stand(&mut all).await;
        assert_eq!(waiting(), 6);
        drop(holder);
        let mut results = Vec::new();
        for _ in 0..6 {
            results.push(ended(all.remove(0)).await.expect("incremented").expect("the row"));
        }
        assert_eq!(results, [1, 2, 3, 4, 5, 6]);
    });
}

#[test]
fn who_was_served_waits_for_the_disk_whatever_becomes_of_the_one_that_served() {
    // LINE-2; and LINE-7 where that one is there and it is not polled.
    [true, false].into_iter().for_each(served_and_left);
}

fn served_and_left(dropped: bool) {
    in_simulation(4, async move {
        let (db, table) = fresh(4).await;
        let holder = hold(&db, &table).await;
        let (mut leads, mut served) = (increment(&db, &table), increment(&db, &table));
        assert!(poll(&mut leads).is_pending() && poll(&mut served).is_pending());
        drop(holder);
        let (all, before) = (db.engine().transactions(), db.engine().updates_served());
        while db.engine().updates_served() == before {
            assert!(poll(&mut leads).is_pending());
            if db.engine().updates_served() == before {
                step().await;
            }
        }
        let commit = all.visible_lsn();
        let unpolled = (!dropped).then_some(leads);
        let mut early = 0;
        loop {
            let durable = all.store().wal().durable_lsn() >= commit;
            match poll(&mut served) {
                Poll::Ready(result) => {
                    assert!(durable, "it was told before the disk had it");
                    assert_eq!(result.expect("incremented"), Some(2));
                    break;
                }
                Poll::Pending => early += usize::from(!durable),
            }
            step().await;
        }
        assert!(early > 0, "it was durable before anybody looked: nothing was tried");
        drop(unpolled);
    });
}

#[derive(Default)]
struct IncrementResults {
    begun: i64,
    results: Vec<i64>,
}

/// Several tasks increment, of which some give up now and then; a task locks the row in a transaction of its own between.
async fn crowd(seed: u64, disk: SimDisk, told: Arc<Mutex<IncrementResults>>) -> u64 {
    let (db, table) = counters(&disk).await;
    put(&db, &table, 0).await;
    let tasks: Vec<_> = (0..8)
        .map(|n| {
            let (db, table, told, mut rng) = (db.clone(), table.clone(), told.clone(), Rng::new(seed * 100 + n));
            testkit::spawn("incrementer", async move {
                for _ in 0..12 {
                    told.lock().begun += 1;
                    let cut = Cut::sometimes(&mut rng, 4);
                    if let Some(result) = until(cut, increment(&db, &table)).await {
                        told.lock().results.push(result.expect("incremented").expect("the row"));
                    }
                    if rng.below(3) == 0 {
                        yield_now().await;
                    }
                }
            })
        })
        .collect();
    let (other, others) = (db.clone(), table.clone());
    let holds = testkit::spawn("holder", async move {
        for n in 0..6 {
            let held: Result<(), Error> = other
                .transact_async(TxnOptions::default(), |txn: &mut AsyncTxn<'_>| {
                    let table = others.clone();
                    Box::pin(async move {
                        txn.get_for_update(&table, &ROW).await?;
                        testkit::sleep(Duration::from_millis(if n == 3 { 250 } else { 1 })).await;
                        Ok(())
                    })
                })
                .await;
            held.expect("held");
        }
    });
    for task in tasks {
        task.await;
    }
    holds.await;
    db.engine().updates_served()
}

fn agrees(told: &IncrementResults, last: i64) {
    let mut results = told.results.clone();
    results.sort_unstable();
    results.dedup();
    assert_eq!(results.len(), told.results.len(), "two were told the same");
    let highest = results.last().copied().unwrap_or(0);
    assert!(highest <= last && last <= told.begun, "{} begun, told {highest}, and the row holds {last}", told.begun);
}

#[test]
fn what_was_told_is_there_after_a_crash() {
    let mut met = (0, 0);
    for_each_seed!(6, |seed| {
        let new = || Arc::new(Mutex::new("test/told", IncrementResults::default()));
        let (whole, told) = (SimDisk::new(seed), new());
        met.0 += Sim::new(seed).block_on(crowd(seed, whole.clone(), told.clone())).expect("the run ends");
        let mut rng = Rng::new(seed);
        for _ in 0..8 {
            let (disk, told) = (SimDisk::new(seed), new());
            disk.crash_at(rng.range(whole.points() / 3..whole.points()));
            match Sim::new(seed).block_on(crowd(seed, disk.clone(), told.clone())) {
                Err(Stop::Crashed) => {}
                other => panic!("{other:?}"),
            }
            let after = disk.restart();
            let last = in_simulation(seed, async move {
                let (db, table) = counters(&after).await;
                // A crash may have come before the first row.
                get(&db, &table).await.unwrap_or(0)
            });
            let told = told.lock();
            agrees(&told, last);
            met.1 += told.results.len();
        }
    });
    assert!(met.0 > 50 && met.1 > 200, "{met:?}: nothing was tried");
}
