//! Claims of jobs by SKIP LOCKED that have to pass over many rows.

use std::pin::pin;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::task::{Context, Waker};

use crate::alone;
use crate::memory::{self, Lines};
use clearway_base::breath::{self, StopFlag};
use clearway_base::sync::{block_on, spawn_thread};
use clearway_sql::session::{Backends, Session};

const TURNS: usize = 4;
const CLAIM: &str = "SELECT id FROM jobs ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED";

fn rows(session: &mut Session, sql: &str) -> Vec<String> {
    let mut lines = Lines::default();
    block_on(session.simple(sql, &mut lines)).unwrap_or_else(|e| panic!("{sql}: {e:?}"));
    lines.0
}

/// PSO-1: while all turns are taken, the claim waits without a snapshot. One that has not passed over many rows does not wait.
#[test]
fn a_long_claim_takes_its_turn_before_its_snapshot() {
    let _one = alone();
    breath::install(|work| work(), TURNS);
    let (db, backends) = (memory::open(), Arc::new(Backends::default()));
    let mut holder = memory::session(&db, &backends, "postgres", &[]);
    let mut worker = memory::session(&db, &backends, "postgres", &[]);
    rows(&mut holder, "CREATE TABLE jobs (id int PRIMARY KEY)");
    rows(&mut holder, "INSERT INTO jobs SELECT * FROM generate_series(1, 30001)");
    let hold = |session: &mut Session, jobs: u32| {
        rows(session, "BEGIN");
        rows(session, &format!("SELECT count(*) FROM (SELECT id FROM jobs ORDER BY id LIMIT {jobs} FOR UPDATE) j"));
    };
    let with_turns_taken = |worker: &mut Session| {
        let (taken, is_taken) = channel();
        let threads = [(); TURNS].map(|()| {
            let (let_go, until) = channel::<()>();
            let taken = taken.clone();
            let holds = move || {
                breath::block_on_within(Arc::new(StopFlag::new(4)), async {
                    breath::take_turn().await;
                    taken.send(()).expect("the test listens");
                    until.recv().expect_err("a turn lasts to the end of its poll");
                });
            };
            (spawn_thread("turn", holds).expect("a thread"), let_go)
        });
        (0..TURNS).for_each(|_| is_taken.recv().expect("a turn"));
        let mut lines = Lines::default();
        let waited = {
            let mut claim = pin!(worker.simple(CLAIM, &mut lines));
            let waits = claim.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending();
            assert!(db.transactions().book().snapshots().open().is_empty(), "PSO-1");
            for (thread, let_go) in threads {
                drop(let_go);
                thread.join().expect("it ends");
            }
            if waits {
                block_on(claim).expect("claimed");
            }
            waits
        };
        (waited, lines.0)
    };
    hold(&mut holder, 100);
    assert_eq!(rows(&mut worker, CLAIM), ["101"]);
    assert_eq!(with_turns_taken(&mut worker), (false, vec!["101".to_owned()]));
    rows(&mut holder, "COMMIT");
    // Not even a machine of the future passes over so many in two milliseconds.
    hold(&mut holder, 30_000);
    assert_eq!(rows(&mut worker, CLAIM), ["30001"]);
    assert_eq!(with_turns_taken(&mut worker), (true, vec!["30001".to_owned()]));
    rows(&mut holder, "COMMIT");
    assert_eq!(rows(&mut worker, CLAIM), ["1"]);
}
