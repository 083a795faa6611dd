//! Sessions that wait for a key which another transaction is putting in or taking away.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use clearway_engine::catalog::Oid;
use clearway_engine::error::EngineError;
use clearway_engine::session::{Durability, Session, TxnOptions};
use clearway_engine::table::shape::TableShape;
use clearway_engine::table::write::is_in_the_way;
use clearway_engine::value::Value;
use clearway_txn::transaction::{Basis, Changed};

use super::support::{DATABASE, create, key, memory, open, row, run};

/// What a session is doing, and how often it has been woken.
struct Doing<'s, T> {
    work: Pin<Box<dyn Future<Output = Result<T, EngineError>> + 's>>,
    wakes: Arc<Wakes>,
}

#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl<'s, T> Doing<'s, T> {
    fn new(work: impl Future<Output = Result<T, EngineError>> + 's) -> Self {
        Doing { work: Box::pin(work), wakes: Arc::default() }
    }

    /// Whether it has ended; none: it waits.
    fn poll(&mut self) -> Option<Result<T, EngineError>> {
        let waker = Waker::from(self.wakes.clone());
        match self.work.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(done) => Some(done),
            Poll::Pending => None,
        }
    }

    fn wakes(&self) -> usize {
        self.wakes.0.load(Ordering::SeqCst)
    }
}

/// A table with a unique index on its second column; its key is an index that can be named, too.
async fn table(session: &mut Session) -> TableShape {
    let mut shape = TableShape::clone(&*create(session, true, true).await);
    shape.primary = Some((Oid::default(), "t_pkey".to_owned()));
    shape
}

async fn put(session: &mut Session, shape: &TableShape, values: &[Value]) -> Result<(), EngineError> {
    session.insert(shape, values).await.map(drop)
}

/// Changes the third column alone.
async fn replace(session: &mut Session, shape: &TableShape, (from, to): (&str, &str)) -> Result<(), EngineError> {
    let (key, old, new) = (key(shape, 1), row(1, 1, from), row(1, 1, to));
    let changed = session.update(shape, &key, &old, &new, Basis::Locked).await?;
    assert_eq!(changed, Changed::Done);
    Ok(())
}

/// TXN-14, TAB-8: of three sessions that want to put in what another transaction has put in, its end wakes one.
#[test]
fn the_end_of_a_transaction_wakes_one_of_those_that_wait_for_its_key() {
    for by_key in [true, false] {
        let db = open(&memory());
        run(async {
            let [mut holder, mut first, mut second, mut third] = [1, 2, 3, 4].map(|pid| db.session(pid, DATABASE));
            let shape = table(&mut holder).await;
            let all = [&mut holder, &mut first, &mut second, &mut third];
            all.into_iter().for_each(|session| session.begin(TxnOptions::default()));
            holder.insert(&shape, &row(1, 1, "x")).await.expect("inserted");
            // The same key, or another one with the same value in the index.
            let rows = [2, 3, 4].map(|n| if by_key { row(1, n, "y") } else { row(n, 1, "y") });
            let mut one = Doing::new(put(&mut first, &shape, &rows[0]));
            let mut two = Doing::new(put(&mut second, &shape, &rows[1]));
            let mut three = Doing::new(put(&mut third, &shape, &rows[2]));
            assert!(one.poll().is_none() && two.poll().is_none() && three.poll().is_none(), "all wait");
            holder.roll_back().await.expect("ended");
            assert_eq!((one.wakes(), two.wakes(), three.wakes()), (1, 0, 0), "TXN-14, by the key: {by_key}");
            assert!(one.poll().expect("it has to wait for no other").is_ok());
            assert_eq!((two.wakes(), three.wakes()), (1, 0), "the next one looks");
            assert!(two.poll().is_none() && three.poll().is_none(), "at a row that is not committed");
            drop(one);
            first.commit(Durability::Wait).await.expect("committed");
            assert_eq!((two.wakes(), three.wakes()), (2, 0));
            assert!(matches!(two.poll(), Some(Err(EngineError::Duplicate { .. }))));
            assert_eq!(three.wakes(), 1, "and so on");
            assert!(matches!(three.poll(), Some(Err(EngineError::Duplicate { .. }))));
            drop((two, three));
            for session in [&mut second, &mut third] {
                session.roll_back().await.expect("ended");
            }
            drop((holder, first, second, third));
            db.close().await.expect("closed");
        });
    }
}

/// TXN-16, TAB-7: when the transaction that had replaced the row in the way has ended, no session waits for the one that replaces it next. TAB-5: a session that locks the row waits for neither.
#[test]
fn one_wait_for_a_row_that_is_being_replaced_is_enough() {
    for by_key in [true, false] {
        let db = open(&memory());
        run(async {
            let [mut holder, mut next, mut puts, mut asks, mut locks] =
                [1, 2, 3, 4, 5].map(|pid| db.session(pid, DATABASE));
            let shape = table(&mut holder).await;
            holder.begin(TxnOptions::default());
            holder.insert(&shape, &row(1, 1, "a")).await.expect("inserted");
            holder.commit(Durability::Wait).await.expect("committed");
            let all = [&mut holder, &mut next, &mut puts, &mut asks, &mut locks];
            all.into_iter().for_each(|session| session.begin(TxnOptions::default()));
            replace(&mut holder, &shape, ("a", "b")).await.expect("replaced");
            let named = [if by_key { Oid::default() } else { shape.indexes[0].oid }];
            let wanted = if by_key { row(1, 2, "y") } else { row(2, 1, "y") };
            let mut replacing = Doing::new(replace(&mut next, &shape, ("b", "c")));
            let mut putting = Doing::new(put(&mut puts, &shape, &wanted));
            let mut asking = Doing::new(asks.conflicting(&shape, (&named, false), &wanted));
            assert!(replacing.poll().is_none() && putting.poll().is_none() && asking.poll().is_none());
            {
                let mut locking = Doing::new(locks.conflicting(&shape, (&named, true), &wanted));
                assert_eq!(
                    locking.poll().expect("TAB-5").expect("found"),
                    Some(key(&shape, 1)),
                    "by the key: {by_key}"
                );
            }
            holder.commit(Durability::Wait).await.expect("committed");
            replacing.poll().expect("the row is its own").expect("replaced");
            assert!(matches!(putting.poll(), Some(Err(EngineError::Duplicate { .. }))), "by the key: {by_key}");
            assert_eq!(asking.poll().expect("TAB-7").expect("found"), Some(key(&shape, 1)));
            drop((replacing, putting, asking));
            for session in [&mut next, &mut puts, &mut asks, &mut locks] {
                session.roll_back().await.expect("ended");
            }
            drop((holder, next, puts, asks, locks));
            db.close().await.expect("closed");
        });
    }
}

/// A row that its own transaction has put in and then replaced has never been committed: neither TAB-5 nor TAB-7 holds for it.
#[test]
fn a_row_that_is_new_and_replaced_is_waited_for() {
    let db = open(&memory());
    run(async {
        let [mut holder, mut next, mut asks] = [1, 2, 3].map(|pid| db.session(pid, DATABASE));
        let shape = table(&mut holder).await;
        [&mut holder, &mut next, &mut asks].into_iter().for_each(|session| session.begin(TxnOptions::default()));
        for session in [&mut holder, &mut next] {
            let wanted = row(1, 1, "y");
            let mut locking = Doing::new(asks.conflicting(&shape, (&[], true), &wanted));
            session.insert(&shape, &row(1, 1, "a")).await.expect("inserted");
            replace(session, &shape, ("a", "b")).await.expect("replaced");
            assert!(locking.poll().is_none(), "it may come to nothing");
            let mut asking = locking;
            session.roll_back().await.expect("ended");
            assert_eq!(asking.poll().expect("nothing is in the way").expect("searched"), None);
        }
        asks.roll_back().await.expect("ended");
        drop((holder, next, asks));
        db.close().await.expect("closed");
    });
}

/// TAB-6
#[test]
fn a_row_is_in_the_way_by_the_values_that_it_has_now() {
    let db = open(&memory());
    run(async {
        let mut session = db.session(1, DATABASE);
        let shape = table(&mut session).await;
        let (wanted, at) = (row(2, 1, "y"), key(&shape, 1));
        let named = [shape.indexes[0].oid];
        let judge =
            |named: &[Oid], found: &[Value]| is_in_the_way(&shape, named, &wanted, (&at, found)).expect("judged");
        assert!(judge(&named, &row(1, 1, "x")) && judge(&[], &row(1, 1, "x")));
        assert!(!judge(&named, &row(1, 2, "x")) && !judge(&[], &row(1, 2, "x")));
        assert!(!judge(&[Oid::default()], &row(1, 1, "x")), "another key");
        drop(session);
        db.close().await.expect("closed");
    });
}
