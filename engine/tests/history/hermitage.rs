//! The cases of Martin Kleppmann's Hermitage, by their names, in both isolation levels; the expected answers are PostgreSQL's.
//!
//! Rows 1 and 2 have the values 10 and 20. Each statement runs as a task; a task that has not ended when no other task can run is waiting.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use clearway_base::testkit::{self, JoinHandle, Sim};
use clearway_base::vfs::sim::SimDisk;
use clearway_engine::db::Db;
use clearway_engine::embedded::Isolation::{self, ReadCommitted, RepeatableRead};
use clearway_engine::embedded::TxnOptions;
use clearway_engine::session::{Durability, Session, StatementMode};
use clearway_engine::table::shape::TableShape;

use super::disk::open_engine;
use super::oracle::{Key, Reply, Row};
use super::rows::{create, session_of};
use super::statements::{Refused, Runner, Step};

/// What a statement came to.
#[derive(Clone, Debug, PartialEq)]
enum Answer {
    /// The values of all rows it saw, by key.
    Rows(Vec<(Key, i64)>),
    /// How many rows it changed.
    Changed(usize),
    /// 40001.
    Conflict,
    Waits,
}
use Answer::{Changed, Conflict, Rows, Waits};

type Running = JoinHandle<(Session, Answer)>;

/// A transaction of the case.
struct Client {
    shape: Arc<TableShape>,
    isolation: Isolation,
    session: Option<Session>,
    waits: Option<Running>,
}

async fn statement(
    mut session: Session,
    shape: Arc<TableShape>,
    isolation: Isolation,
    step: Step,
) -> (Session, Answer) {
    let statement = session.open_statement(&"statement".into(), StatementMode::Write);
    let mut runner = Runner { session: &mut session, shape: &shape, view: statement.view, isolation };
    let answer = match runner.run(step).await {
        Ok(did) => match &did.replies[..] {
            [Reply::Table(rows)] => Rows(rows.iter().map(|(key, row)| (*key, row.a)).collect()),
            _ => Changed(did.writes.len()),
        },
        Err(Refused::Conflict(_)) => Conflict,
        Err(other) => panic!("{other:?}"),
    };
    session.close_statement(statement);
    (session, answer)
}

impl Client {
    fn new(db: &Arc<Db>, shape: &Arc<TableShape>, isolation: Isolation, number: u64) -> Client {
        let mut session = session_of(db, number);
        session.begin(TxnOptions { isolation, read_only: false });
        Client { shape: shape.clone(), isolation, session: Some(session), waits: None }
    }

    async fn run(&mut self, step: Step) -> Answer {
        let session = self.session.take().expect("a client does one thing at a time");
        self.waits = Some(testkit::spawn("statement", statement(session, self.shape.clone(), self.isolation, step)));
        self.look().await
    }

    /// The answer, if there is one yet.
    async fn look(&mut self) -> Answer {
        for _ in 0..500 {
            testkit::yield_now().await;
            if let Some((session, answer)) = self.waits.as_ref().and_then(JoinHandle::try_take) {
                (self.session, self.waits) = (Some(session), None);
                return answer;
            }
        }
        Waits
    }

    async fn read(&mut self) -> Vec<(Key, i64)> {
        match self.run(Step::Table).await {
            Rows(rows) => rows,
            other => panic!("a reader waits for nobody: {other:?}"),
        }
    }

    /// One row.
    async fn get(&mut self, key: Key) -> i64 {
        self.read().await.iter().find(|(k, _)| *k == key).map_or(-1, |(_, value)| *value)
    }

    async fn set(&mut self, key: Key, value: i64) -> Answer {
        self.run(Step::Update(key, Row { a: value, u: key, v: value }, false)).await
    }

    async fn commit(&mut self) {
        self.session.as_mut().expect("it does not wait").commit(Durability::Wait).await.expect("committed");
    }

    async fn abort(&mut self) {
        self.session.as_mut().expect("it does not wait").roll_back().await.expect("undone");
    }
}

type Case = for<'c> fn(&'c mut [Client; 3], Isolation) -> Pin<Box<dyn Future<Output = ()> + Send + 'c>>;

/// Runs a case with three transactions, and shows what is left to the last assertion.
fn case(isolation: Isolation, left: &'static [(Key, i64)], case: Case) {
    Sim::new(1)
        .block_on(async move {
            let db = open_engine(&SimDisk::new(1)).await.expect("opened");
            let mut first = session_of(&db, 9);
            let shape = create(&mut first).await.expect("a table");
            drop(first);
            let mut setup = Client::new(&db, &shape, isolation, 8);
            for (key, value) in [(1, 10), (2, 20)] {
                let row = Row { a: value, u: key, v: value };
                assert_eq!(setup.run(Step::Insert(key, row)).await, Changed(1));
            }
            setup.commit().await;
            let mut clients = [1, 2, 3].map(|number| Client::new(&db, &shape, isolation, number));
            case(&mut clients, isolation).await;
            let mut after = Client::new(&db, &shape, isolation, 7);
            assert_eq!(after.read().await, left);
        })
        .expect("the case ends");
}

#[test]
fn g0_write_cycles() {
    case(ReadCommitted, &[(1, 12), (2, 22)], |[a, b, _], _| {
        Box::pin(async move {
            assert_eq!(a.set(1, 11).await, Changed(1));
            assert_eq!(b.set(1, 12).await, Waits);
            assert_eq!(a.set(2, 21).await, Changed(1));
            a.commit().await;
            assert_eq!(b.look().await, Changed(1));
            assert_eq!(b.set(2, 22).await, Changed(1));
            b.commit().await;
        })
    });
}

#[test]
fn g0_write_cycles_in_repeatable_read() {
    case(RepeatableRead, &[(1, 11), (2, 21)], |[a, b, _], _| {
        Box::pin(async move {
            assert_eq!(a.set(1, 11).await, Changed(1));
            assert_eq!(b.set(1, 12).await, Waits);
            assert_eq!(a.set(2, 21).await, Changed(1));
            a.commit().await;
            assert_eq!(b.look().await, Conflict);
            b.abort().await;
        })
    });
}

#[test]
fn g1a_aborted_reads() {
    for isolation in [ReadCommitted, RepeatableRead] {
        case(isolation, &[(1, 10), (2, 20)], |[a, b, _], _| {
            Box::pin(async move {
                assert_eq!(a.set(1, 101).await, Changed(1));
                assert_eq!(b.read().await, [(1, 10), (2, 20)]);
                a.abort().await;
                assert_eq!(b.read().await, [(1, 10), (2, 20)]);
                b.commit().await;
            })
        });
    }
}

#[test]
fn g1b_intermediate_reads() {
    for isolation in [ReadCommitted, RepeatableRead] {
        case(isolation, &[(1, 11), (2, 20)], |[a, b, _], isolation| {
            Box::pin(async move {
                assert_eq!(a.set(1, 101).await, Changed(1));
                assert_eq!(b.read().await, [(1, 10), (2, 20)]);
                assert_eq!(a.set(1, 11).await, Changed(1));
                a.commit().await;
                let sees = if isolation == ReadCommitted { 11 } else { 10 };
                assert_eq!(b.get(1).await, sees);
                b.commit().await;
            })
        });
    }
}

#[test]
fn g1c_circular_information_flow() {
    for isolation in [ReadCommitted, RepeatableRead] {
        case(isolation, &[(1, 11), (2, 22)], |[a, b, _], _| {
            Box::pin(async move {
                assert_eq!(a.set(1, 11).await, Changed(1));
                assert_eq!(b.set(2, 22).await, Changed(1));
                assert_eq!(a.get(2).await, 20);
                assert_eq!(b.get(1).await, 10);
                a.commit().await;
                b.commit().await;
            })
        });
    }
}

#[test]
fn otv_observed_transaction_vanishes() {
    case(ReadCommitted, &[(1, 12), (2, 18)], |[a, b, c], _| {
        Box::pin(async move {
            assert_eq!((a.set(1, 11).await, a.set(2, 19).await), (Changed(1), Changed(1)));
            assert_eq!(b.set(1, 12).await, Waits);
            a.commit().await;
            assert_eq!(b.look().await, Changed(1));
            assert_eq!(c.get(1).await, 11);
            assert_eq!(b.set(2, 18).await, Changed(1));
            assert_eq!(c.get(2).await, 19);
            b.commit().await;
            assert_eq!(c.read().await, [(1, 12), (2, 18)]);
        })
    });
}

#[test]
fn otv_in_repeatable_read() {
    case(RepeatableRead, &[(1, 11), (2, 19)], |[a, b, c], _| {
        Box::pin(async move {
            assert_eq!((a.set(1, 11).await, a.set(2, 19).await), (Changed(1), Changed(1)));
            assert_eq!(b.set(1, 12).await, Waits);
            a.commit().await;
            assert_eq!(b.look().await, Conflict);
            assert_eq!(c.get(1).await, 11);
            b.abort().await;
            assert_eq!(c.get(2).await, 19);
            c.commit().await;
        })
    });
}

#[test]
fn pmp_predicate_many_preceders() {
    for isolation in [ReadCommitted, RepeatableRead] {
        case(isolation, &[(1, 10), (2, 20), (3, 30)], |[a, b, _], isolation| {
            Box::pin(async move {
                assert_eq!(a.read().await, [(1, 10), (2, 20)]);
                assert_eq!(b.run(Step::Insert(3, Row { a: 30, u: 3, v: 30 })).await, Changed(1));
                b.commit().await;
                let rows = if isolation == ReadCommitted { 3 } else { 2 };
                assert_eq!(a.read().await.len(), rows);
            })
        });
    }
}

/// `UPDATE ... WHERE value = 20` behind a transaction that changes which rows those are: the row that was found is looked at again.
#[test]
fn pmp_for_writes() {
    for isolation in [ReadCommitted, RepeatableRead] {
        case(isolation, &[(1, 20), (2, 30)], |[a, b, _], isolation| {
            Box::pin(async move {
                assert_eq!((a.set(1, 20).await, a.set(2, 30).await), (Changed(1), Changed(1)));
                assert_eq!(b.run(Step::Bump(20, 100)).await, Waits);
                a.commit().await;
                let answer = if isolation == ReadCommitted { Changed(0) } else { Conflict };
                assert_eq!(b.look().await, answer);
                b.abort().await;
            })
        });
    }
}

#[test]
fn p4_lost_update() {
    for (isolation, left) in [(ReadCommitted, &[(1, 12), (2, 20)]), (RepeatableRead, &[(1, 11), (2, 20)])] {
        case(isolation, left, |[a, b, _], isolation| {
            Box::pin(async move {
                assert_eq!((a.get(1).await, b.get(1).await), (10, 10));
                assert_eq!(a.set(1, 11).await, Changed(1));
                assert_eq!(b.set(1, 12).await, Waits);
                a.commit().await;
                match isolation {
                    ReadCommitted => {
                        assert_eq!(b.look().await, Changed(1));
                        b.commit().await;
                    }
                    RepeatableRead => {
                        assert_eq!(b.look().await, Conflict);
                        b.abort().await;
                    }
                }
            })
        });
    }
}

#[test]
fn g_single_read_skew() {
    for isolation in [ReadCommitted, RepeatableRead] {
        case(isolation, &[(1, 12), (2, 18)], |[a, b, _], isolation| {
            Box::pin(async move {
                assert_eq!(a.get(1).await, 10);
                assert_eq!(b.read().await, [(1, 10), (2, 20)]);
                assert_eq!((b.set(1, 12).await, b.set(2, 18).await), (Changed(1), Changed(1)));
                b.commit().await;
                assert_eq!(a.get(2).await, if isolation == ReadCommitted { 18 } else { 20 });
                a.commit().await;
            })
        });
    }
}

/// The second condition would be met by what the second transaction wrote.
#[test]
fn g_single_dependencies() {
    for isolation in [ReadCommitted, RepeatableRead] {
        case(isolation, &[(1, 12), (2, 20)], |[a, b, _], isolation| {
            Box::pin(async move {
                let of = |rows: Vec<(Key, i64)>, by| rows.into_iter().filter(|(_, v)| v % by == 0).collect::<Vec<_>>();
                assert_eq!(of(a.read().await, 5), [(1, 10), (2, 20)]);
                assert_eq!(b.run(Step::Bump(10, 100)).await, Changed(1));
                assert_eq!(b.set(1, 12).await, Changed(1));
                b.commit().await;
                let sees: &[(Key, i64)] = if isolation == ReadCommitted { &[(1, 12)] } else { &[] };
                assert_eq!(of(a.read().await, 3), sees);
                a.commit().await;
            })
        });
    }
}

/// A write by a condition whose row the other one is going to change, and which is taken back.
#[test]
fn g_single_with_a_write_that_is_undone() {
    for isolation in [ReadCommitted, RepeatableRead] {
        case(isolation, &[(1, 12), (2, 18)], |[a, b, _], _| {
            Box::pin(async move {
                assert_eq!(a.get(1).await, 10);
                assert_eq!(b.read().await, [(1, 10), (2, 20)]);
                assert_eq!(b.set(1, 12).await, Changed(1));
                assert_eq!(a.run(Step::Bump(20, 100)).await, Changed(1));
                assert_eq!(b.set(2, 18).await, Waits);
                a.abort().await;
                assert_eq!(b.look().await, Changed(1));
                b.commit().await;
            })
        });
    }
}

#[test]
fn g_single_with_a_write() {
    for isolation in [ReadCommitted, RepeatableRead] {
        case(isolation, &[(1, 12), (2, 18)], |[a, b, _], isolation| {
            Box::pin(async move {
                assert_eq!(a.get(1).await, 10);
                assert_eq!((b.set(1, 12).await, b.set(2, 18).await), (Changed(1), Changed(1)));
                b.commit().await;
                let answer = if isolation == ReadCommitted { Changed(0) } else { Conflict };
                assert_eq!(a.run(Step::Bump(20, 100)).await, answer);
                a.abort().await;
            })
        });
    }
}

/// Write skew: allowed by both, as in PostgreSQL below SERIALIZABLE.
#[test]
fn g2_item_write_skew() {
    for isolation in [ReadCommitted, RepeatableRead] {
        case(isolation, &[(1, 11), (2, 21)], |[a, b, _], _| {
            Box::pin(async move {
                assert_eq!(a.read().await, b.read().await);
                assert_eq!(a.set(1, 11).await, Changed(1));
                assert_eq!(b.set(2, 21).await, Changed(1));
                a.commit().await;
                b.commit().await;
            })
        });
    }
}

/// The same by rows that did not exist: allowed by both.
#[test]
fn g2_anti_dependency_cycles() {
    for isolation in [ReadCommitted, RepeatableRead] {
        case(isolation, &[(1, 10), (2, 20), (3, 30), (4, 42)], |[a, b, _], _| {
            Box::pin(async move {
                assert_eq!(a.read().await, b.read().await);
                assert_eq!(a.run(Step::Insert(3, Row { a: 30, u: 3, v: 30 })).await, Changed(1));
                assert_eq!(b.run(Step::Insert(4, Row { a: 42, u: 4, v: 42 })).await, Changed(1));
                a.commit().await;
                b.commit().await;
            })
        });
    }
}

/// A third one that only reads makes the cycle (Fekete, O'Neil, O'Neil): allowed by both.
#[test]
fn g2_two_edges() {
    for isolation in [ReadCommitted, RepeatableRead] {
        case(isolation, &[(1, 0), (2, 25)], |[a, b, c], _| {
            Box::pin(async move {
                assert_eq!(a.read().await, [(1, 10), (2, 20)]);
                assert_eq!(b.set(2, 25).await, Changed(1));
                b.commit().await;
                assert_eq!(c.read().await, [(1, 10), (2, 25)]);
                c.commit().await;
                assert_eq!(a.set(1, 0).await, Changed(1));
                a.commit().await;
            })
        });
    }
}

/// Both put a new row where the snapshot shows one that was deleted since: in PostgreSQL the transaction then sees two rows with one
/// key; here it fails.
#[test]
fn a_new_row_where_the_snapshot_shows_a_deleted_one() {
    for isolation in [ReadCommitted, RepeatableRead] {
        case(isolation, &[(2, 20)], |[a, b, _], isolation| {
            Box::pin(async move {
                assert_eq!(a.get(1).await, 10);
                assert_eq!(b.run(Step::Delete(1, true)).await, Changed(1));
                b.commit().await;
                let inserted = a.run(Step::Insert(1, Row { a: 5, u: 1, v: 5 })).await;
                assert_eq!(inserted, if isolation == ReadCommitted { Changed(1) } else { Conflict });
                a.abort().await;
            })
        });
    }
}

/// Two changes of a row, the second one weaker: a transaction that wants the key waits for the first.
#[test]
fn a_weaker_change_does_not_hide_a_stronger_one() {
    use clearway_txn::lockmgr::LockMode;
    case(ReadCommitted, &[(1, 12), (2, 20)], |[a, b, _], _| {
        Box::pin(async move {
            let new_key = Row { a: 11, u: 5, v: 11 };
            assert_eq!(a.run(Step::Update(1, new_key, false)).await, Changed(1));
            assert_eq!(a.run(Step::Update(1, Row { a: 12, v: 12, ..new_key }, false)).await, Changed(1));
            assert_eq!(b.run(Step::LockRow(1, LockMode::RowKeyShare)).await, Waits);
            a.commit().await;
            assert_eq!(b.look().await, Changed(0));
            b.commit().await;
        })
    });
}

/// A rollback to a savepoint that came after a change leaves the row locked, whenever its waiter came.
#[test]
fn a_savepoint_after_a_change_does_not_give_its_lock_away() {
    case(ReadCommitted, &[(1, 12), (2, 20)], |[a, b, _], _| {
        Box::pin(async move {
            assert_eq!(a.set(1, 11).await, Changed(1));
            let mark = a.session.as_ref().expect("it does not wait").mark();
            assert_eq!(b.set(1, 12).await, Waits);
            a.session.as_mut().expect("it does not wait").roll_back_to(&mark).await.expect("undone");
            assert_eq!(b.look().await, Waits);
            a.commit().await;
            assert_eq!(b.look().await, Changed(1));
            b.commit().await;
        })
    });
}
