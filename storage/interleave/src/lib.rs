//! The real pages and trees under a scheduler that may switch between tasks at every atomic step.
//!
//! # Structure
//! `storage::interleave` calls a hook before each step; here the hook is shuttle's `yield_now`. Every step on an entry, a pin or a
//! frame is a point at which the scheduler may switch; of the steps on the words of a page one in [`WORDS`] is, so that the copy of a
//! page can be interrupted in the middle without too many points. Tasks see sequentially consistent memory: what weaker orderings
//! allow is not tried here.
//!
//! # Life of a case
//! A pool of few frames, two trees whose rows are so long that four fill a leaf. Writers insert and remove, so that
//! leaves split, merge, are freed and used again by the other tree; a tidier merges and packs; a cleaner writes and
//! evicts; readers look for rows that are always there, and scan. In the end both trees are checked whole, and every
//! page of the space belongs to one of them.
//!
//! `cargo test` runs the cases, then each of the planted mistakes in `mutation::INTERLEAVED`: each must be found. A failure prints the
//! seed of its schedule; `SEED=n EXECUTIONS=n cargo test` makes other schedules and more of them.

#![cfg(test)]

use clearway_storage::btree::{Direction, Edit, KeyRange, Lookup, RowBuf, Tree};
use clearway_storage::ids::{Tag, TxnId};
use clearway_storage::interleave::{self, Point};
use clearway_storage::mutation::{self, INTERLEAVED, Mutation};
use clearway_storage::record::TxnLog;
use clearway_storage::testing::Rig;
use shuttle::future::block_on;
use shuttle::rand::Rng;
use shuttle::scheduler::RandomScheduler;
use shuttle::{Config, FailurePersistence, MaxSteps, Runner, thread};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};

/// One word of a page in so many is a point of the schedule.
const WORDS: u64 = 97;

static WORD: AtomicU64 = AtomicU64::new(0);
static INSIDE: AtomicUsize = AtomicUsize::new(0);

fn hook(point: Point) {
    if INSIDE.load(SeqCst) == 0 {
        return;
    }
    let due = match point {
        Point::Atomic | Point::Spin => true,
        Point::Word => WORD.fetch_add(1, SeqCst) % WORDS == 0,
    };
    if due {
        thread::yield_now();
    }
}

/// Rows that are always there.
fn stays(number: u64) -> bool {
    number % 5 == 0
}

const NUMBERS: u64 = 25;

fn value(tree: u64, number: u64) -> Vec<u8> {
    vec![(tree * 100 + number) as u8; 1300]
}

fn put(tree: &Tree, log: &mut TxnLog, number: u64) {
    let value = value(tree.id().0, number);
    let key = number.to_be_bytes();
    block_on(tree.edit(log, &key, value.len(), |_| (Edit::put(&value, Tag::SETTLED), ()))).unwrap();
}

fn churn(tree: &Tree, task: u64) {
    let mut log = TxnLog::new(TxnId(task));
    for _ in 0..2 {
        let numbers: Vec<u64> = (0..NUMBERS).filter(|number| !stays(*number) && number % 2 == task % 2).collect();
        for number in &numbers {
            if shuttle::rand::thread_rng().gen_range(0..4) > 0 {
                put(tree, &mut log, *number);
            }
        }
        for number in &numbers {
            block_on(tree.edit(&mut log, &number.to_be_bytes(), 0, |_| (Edit::Remove, ()))).unwrap();
        }
    }
}

fn read(tree: &Tree, rounds: usize) {
    let mut out = RowBuf::default();
    for _ in 0..rounds {
        let number = shuttle::rand::thread_rng().gen_range(0..NUMBERS / 5) * 5;
        let found = block_on(tree.get(&number.to_be_bytes(), &mut out)).unwrap();
        assert!(matches!(found, Lookup::Found(_)), "BTR-6: row {number}, which stays, is not there");
        assert!(out.row().value == value(tree.id().0, number), "BUF-3: another row's bytes");
    }
    let mut cursor = tree.cursor(KeyRange::all(), Direction::Forward);
    let mut found = Vec::new();
    while let Some(leaf) = block_on(cursor.next_leaf()).unwrap() {
        for (key, row) in leaf.iter() {
            let number = u64::from_be_bytes(key.try_into().expect("eight bytes"));
            assert!(row.value == value(tree.id().0, number), "BTR-13: another row's bytes");
            found.push(number);
        }
    }
    assert!(found.is_sorted_by(|a, b| a < b), "BTR-13: {found:?}");
    assert_eq!(found.iter().filter(|number| stays(**number)).count(), (NUMBERS / 5) as usize, "BTR-13: {found:?}");
}

/// One execution.
fn case() {
    WORD.store(0, SeqCst);
    INSIDE.store(0, SeqCst);
    let rig = Arc::new(Rig::in_memory(10));
    let trees = [block_on(rig.tree(1)), block_on(rig.tree(2))];
    for tree in &trees {
        let mut log = TxnLog::new(TxnId(9));
        for number in (0..NUMBERS).filter(|number| stays(*number)) {
            while block_on(rig.pool.clean_step()).unwrap() > 0 {}
            put(tree, &mut log, number);
        }
    }
    INSIDE.store(1, SeqCst);
    let left = Arc::new(AtomicUsize::new(6));
    let mut tasks = Vec::new();
    for (index, tree) in trees.iter().enumerate() {
        // Two, each with its own keys: one may finish what the other began.
        for task in 0..2 {
            let (writer, one) = (tree.clone(), left.clone());
            tasks.push(thread::spawn(move || {
                churn(&writer, 2 * index as u64 + task);
                one.fetch_sub(1, SeqCst);
            }));
        }
        let (reader, other) = (tree.clone(), left.clone());
        tasks.push(thread::spawn(move || {
            read(&reader, 6);
            other.fetch_sub(1, SeqCst);
        }));
    }
    let (cleaner, running) = (rig.clone(), left.clone());
    tasks.push(thread::spawn(move || {
        while running.load(SeqCst) > 0 {
            block_on(cleaner.pool.clean_step()).unwrap();
            thread::yield_now();
        }
    }));
    let (tidied, running) = (trees.clone(), left.clone());
    tasks.push(thread::spawn(move || {
        while running.load(SeqCst) > 0 {
            for tree in &tidied {
                block_on(tree.tidy()).unwrap();
            }
            thread::yield_now();
        }
    }));
    for task in tasks {
        task.join().unwrap();
    }
    INSIDE.store(0, SeqCst);
    // The checker reads more pages than there are frames, and the cleaner has stopped.
    while block_on(rig.pool.clean_step()).unwrap() > 0 {}
    let mut pages = std::collections::BTreeSet::new();
    for tree in &trees {
        // BTR-10 and BTR-15 show here: a parent that names a dead node, a node that no parent names.
        let report = block_on(tree.check()).unwrap();
        assert_eq!(report.rows, NUMBERS / 5);
        pages.extend(report.pages);
    }
    assert_eq!(pages, rig.space.used(), "every page belongs to a tree");
    let counters = rig.pool.counters().view();
    MERGES.fetch_add(counters.merges + counters.moves, SeqCst);
    SPLITS.fetch_add(counters.leaf_splits, SeqCst);
    MISSES.fetch_add(counters.misses, SeqCst);
    RESTARTS.fetch_add(counters.restarts + counters.read_restarts, SeqCst);
    NEIGHBOURS.fetch_add(counters.neighbour_reads, SeqCst);
}

static MERGES: AtomicU64 = AtomicU64::new(0);
static SPLITS: AtomicU64 = AtomicU64::new(0);
static MISSES: AtomicU64 = AtomicU64::new(0);
static RESTARTS: AtomicU64 = AtomicU64::new(0);
static NEIGHBOURS: AtomicU64 = AtomicU64::new(0);

fn run(executions: usize) {
    let mut config = Config::new();
    config.stack_size = 1 << 20;
    config.max_steps = MaxSteps::FailAfter(5_000_000);
    config.failure_persistence = FailurePersistence::None;
    let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    Runner::new(RandomScheduler::new_from_seed(seed, executions), config).run(case);
}

/// One test, since a planted mistake is planted for the whole process.
#[test]
fn trees_hold_under_any_schedule_and_planted_mistakes_do_not() {
    interleave::install(hook);
    let executions = std::env::var("EXECUTIONS").ok().and_then(|n| n.parse().ok()).unwrap_or(200);
    run(executions);
    let [splits, merges, misses, restarts, neighbours] =
        [&SPLITS, &MERGES, &MISSES, &RESTARTS, &NEIGHBOURS].map(|count| count.load(SeqCst));
    eprintln!(
        "{executions} schedules: {splits} splits, {merges} merges, {misses} misses, {restarts} restarts, {neighbours} children read again"
    );
    let each = executions as u64;
    assert!(splits > each && merges > each && misses > each && restarts > each, "too little happened");
    for mistake in INTERLEAVED {
        mutation::plant(mistake);
        let found = catch_unwind(AssertUnwindSafe(|| run(20 * executions)));
        mutation::plant(Mutation::None);
        INSIDE.store(0, SeqCst);
        eprintln!("{mistake:?}: {}", if found.is_err() { "found" } else { "not found" });
        assert!(found.is_err(), "{mistake:?} was not found in {} schedules", 20 * executions);
    }
}
