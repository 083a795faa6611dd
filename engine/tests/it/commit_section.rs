//! The commit section allocates nothing and takes no mutex (COM-2): debug builds check it at each commit of every test of this program.

use std::panic::{AssertUnwindSafe, catch_unwind};

use clearway_base::sync::{Bare, Mutex};
use clearway_engine::session::{Durability, Session, StatementMode, TxnOptions};
use clearway_engine::table::shape::TableShape;
use clearway_txn::transaction::{Basis, Changed};

use super::support::{DATABASE, create, key, memory, open, row, run};

fn message(run: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(run)).expect_err("the check speaks");
    panic.downcast_ref::<String>().cloned().expect("a message")
}

#[test]
#[cfg(debug_assertions)]
fn a_section_that_allocates_or_takes_a_mutex_is_told() {
    let allocates = message(|| {
        let _bare = Bare::begin("a section");
        std::hint::black_box(vec![1_u8; std::hint::black_box(100)]);
    });
    assert!(allocates.contains("a section called the allocator"), "{allocates}");
    let given_back = vec![1_u8; std::hint::black_box(100)];
    let frees = message(|| {
        let _bare = Bare::begin("a section");
        drop(given_back);
    });
    assert!(frees.contains("a section called the allocator"), "{frees}");
    let mutex = Mutex::new("test/commit_section", 0);
    let locks = message(|| {
        let _bare = Bare::begin("a section");
        *mutex.lock() += 1;
    });
    assert!(locks.contains("test/commit_section"), "{locks}");
    // After each of them the thread is as it was.
    *mutex.lock() += 1;
    let quiet = Bare::begin("a section");
    std::hint::black_box(1 + std::hint::black_box(1));
    drop(quiet);
}

async fn replace(session: &mut Session, shape: &TableShape, a: i64, text: &str) {
    session.begin(TxnOptions::default());
    let statement = session.open_statement(&"replace".into(), StatementMode::Write);
    let old = session.get(shape, &statement.view, &key(shape, 1)).await.expect("read").expect("the row");
    let basis = Basis::Read(statement.view);
    let changed = session.update(shape, &key(shape, 1), &old, &row(1, a, text), basis).await.expect("updated");
    assert_eq!(changed, Changed::Done);
    session.close_statement(statement);
    session.commit(Durability::Wait).await.expect("committed");
}

/// Values that are so long that they stand in chains: the commit names the chains that are to be freed. In debug builds it would panic.
#[test]
fn commits_that_supersede_chains_keep_to_the_section() {
    let db = open(&memory());
    run(async {
        let mut session = db.session(1, DATABASE);
        let shape = create(&mut session, true, false).await;
        session.begin(TxnOptions::default());
        session.insert(&shape, &row(1, 0, "first")).await.expect("inserted");
        session.commit(Durability::Wait).await.expect("committed");
        for a in 0..40 {
            replace(&mut session, &shape, a, &"x".repeat(40_000)).await;
            // A checkpoint asks which transactions are active, under the same mutex.
            db.transactions().store().checkpoint().await.expect("a checkpoint");
        }
        // Commits of any length, the first of a thread among them.
        let long = db.clone();
        let other = clearway_base::sync::spawn_thread("another", move || {
            run(async {
                let mut session = long.session(2, DATABASE);
                create(&mut session, true, true).await;
            });
        });
        other.expect("a thread").join().expect("it ends");
        drop(session);
        db.close().await.expect("closed");
    });
}
