//! Tests of the costs of statements: what is counted by many sessions and threads is all there, once.

use super::super::cost::middle_of;
use super::*;

use clearway_base::usage::Usage;
use std::sync::Barrier;
use std::sync::atomic::AtomicBool;

/// An execution of a text; even the hash of its digest is made anew, as by a session that has not seen the text.
fn run_in(statements: &Statements, sql: &str, ns: u64, user: u32) {
    let digest = Digest::of(sql);
    run_digest(statements, &digest, sql, ns, user);
}

fn run_digest(statements: &Statements, digest: &Arc<Digest>, sql: &str, ns: u64, user: u32) {
    let key = Key { query: digest.id, user, database: 5, application: 0, tags: 0 };
    let application = &Arc::from("app");
    let failed = ns.is_multiple_of(10);
    let ended_ns = waits::now_ns();
    let usual = Usual {
        ended_ns,
        ns,
        busy_ns: ns + 5,
        cpu_ns: ns / 2,
        rows: 1,
        examined: 2,
        repeated: ns % 2,
        used: used_by(ns),
        ..Usual::default()
    };
    let (key, others) = (&key, Others { failed, warnings: u64::from(failed), ..Others::default() });
    let times = Execution { key, digest, application, usual, others };
    if statements.ran(&times, |wait| wait(WaitEvent::WalSync, 2, ns / 2)) {
        statements.sample(key, ns, ended_ns, sql);
    }
}

#[test]
fn lists_of_any_length_and_other_constants_are_one_statement() {
    let statements = Statements::default();
    for (n, sql) in [
        "select * from t where id in (1)",
        "SELECT  * FROM t WHERE id IN (7, 8, 9);",
        "select * from t where id in ($1,$2)",
    ]
    .into_iter()
    .enumerate()
    {
        run_in(&statements, sql, 1_000_000 * (n as u64 + 1), 10);
    }
    run_in(&statements, "select * from t where id = 1", 5, 10);
    run_in(&statements, "select * from t where id = 2", 5, 11);
    let mut all = statements.all();
    all.sort_by_key(|cost| cost.calls);
    assert_eq!(all.iter().map(|cost| cost.calls).collect::<Vec<_>>(), [1, 1, 3], "roles count apart");
    let lists = &all[2];
    assert_eq!((lists.total_ns, lists.min_ns, lists.max_ns, lists.errors), (6_000_000, 1_000_000, 3_000_000, 3));
    assert_eq!(lists.waits, [(WaitEvent::WalSync, 6, 3_000_000)]);
    assert_eq!((lists.busy_ns, lists.cpu_ns), (6_000_015, 3_000_000));
    assert!((lists.deviation_ms() - 0.8165).abs() < 0.001);
}

#[test]
fn buckets_rise_and_quantiles_lie_within_a_sixth() {
    let mut last = 0;
    for ns in (0..60_000_000u64).step_by(997) {
        let bucket = bucket_of(ns);
        assert!(bucket >= last && bucket < BUCKETS);
        last = bucket;
        let (from, to) = bounds_of(bucket);
        assert!(from <= ns && to.is_some_and(|to| ns < to), "{ns} in {from} to {to:?}");
        if ns > 1_100_000 {
            let middle = middle_of(bucket) as f64;
            assert!((middle / ns as f64 - 1.0).abs() < 0.18, "{ns} {middle}");
        }
    }
    let statements = Statements::default();
    (1..=1_000).for_each(|ms| run_in(&statements, "select 1", ms * 1_000_000, 10));
    let cost = &statements.all()[0];
    for (part, wanted) in [(0.5, 500.0), (0.95, 950.0), (0.99, 990.0)] {
        let ms = cost.quantile_ns(part) as f64 / 1e6;
        assert!((ms / wanted - 1.0).abs() < 0.18, "{part}: {ms}");
    }
}

#[test]
fn a_flood_of_texts_is_bounded_and_what_is_used_stays() {
    let statements = Statements::default();
    (0..50).for_each(|_| run_in(&statements, "select 'used'", 1, 10));
    (0..3 * ENTRIES_MAX).for_each(|n| run_in(&statements, &format!("select 1 as c{n}"), 1, 10));
    let all = statements.all();
    assert!(all.len() <= ENTRIES_MAX, "STM-1: {} entries", all.len());
    assert!(all.len() >= ENTRIES_MAX - ENTRIES_MAX / 20, "STM-1: {} entries", all.len());
    assert_eq!(all.len() as u64 + statements.info().0, 3 * ENTRIES_MAX as u64 + 1, "STM-1");
    assert!(all.iter().any(|cost| cost.calls == 50), "STM-1");
}

#[test]
fn an_entry_has_a_sample_and_its_latest_execution() {
    let statements = Statements::default();
    for (sql, ns) in [("select 1", 3_000), ("select 22", 9_000), ("select 333", 5_000)] {
        run_in(&statements, sql, ns, 10);
    }
    let cost = statements.all().into_iter().next().expect("an entry");
    assert_eq!((&*cost.sample.text, cost.sample.ns, cost.warnings), ("select 22", 9_000, 3), "STX-1");
    assert!(cost.first_us <= cost.last_us && cost.last_us <= waits::wall_us());
}

/// What each execution that took `ns` has used.
fn used_by(ns: u64) -> Usage {
    let changes = ns % 2;
    Usage { pages_hit: ns, pages_read: changes, log_records: changes, log_bytes: 40 * changes, ..Usage::default() }
}

/// What must hold of an entry of which each execution took `ns`, at any moment.
fn assert_whole(cost: &Cost, ns: u64) {
    let calls = cost.calls;
    assert_eq!((cost.rows, cost.total_ns), (calls, calls * ns), "TLY-2");
    assert_eq!((cost.busy_ns, cost.cpu_ns), (calls * (ns + 5), calls * (ns / 2)), "TLY-2");
    assert_eq!((cost.work.examined, cost.work.repeated), (2 * calls, calls * (ns % 2)), "TLY-2");
    let Usage { pages_hit, pages_read, log_records, log_bytes, .. } = used_by(ns);
    let used = [cost.used.pages_hit, cost.used.pages_read, cost.used.log_records, cost.used.log_bytes];
    assert_eq!(used, [pages_hit, pages_read, log_records, log_bytes].map(|one| calls * one), "TLY-2");
    assert_eq!(cost.waits, [(WaitEvent::WalSync, 2 * calls, calls * (ns / 2))], "TLY-2");
    assert_eq!(cost.histogram.iter().map(|count| u64::from(*count)).sum::<u64>(), calls, "TLY-2");
    let squares_ms = calls as f64 * (ns as f64 / 1e6).powi(2);
    assert!((cost.squares_ms / squares_ms - 1.0).abs() < 1e-6, "TLY-2");
}

const TEXTS: [(&str, u64); 3] =
    [("select a from t where b = $1", 1_001), ("update t set a = 1", 2_003), ("commit", 3_005)];

/// Threads end and others begin, and a reader reads all the time: each figure is always that of whole
/// executions, never falls, and is at the end what was run.
#[test]
fn no_execution_is_lost_or_counted_twice() {
    const GENERATIONS: usize = 5;
    const ROUNDS: usize = 4_000;
    let statements = Statements::default();
    let digests = TEXTS.map(|(sql, _)| Digest::of(sql));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut before: HashMap<u64, u64> = HashMap::new();
            while !done.load(Relaxed) {
                for cost in statements.all() {
                    let at = digests.iter().position(|digest| digest.id == cost.digest.id).expect("one of the texts");
                    assert_whole(&cost, TEXTS[at].1);
                    let before = before.insert(cost.digest.id, cost.calls).unwrap_or(0);
                    assert!(cost.calls >= before, "TLY-3: {} calls after {before}", cost.calls);
                }
            }
        });
        for _ in 0..GENERATIONS {
            let work = || {
                let (statements, digests) = (&statements, &digests);
                move || {
                    for _ in 0..ROUNDS {
                        for (digest, (sql, ns)) in digests.iter().zip(TEXTS) {
                            run_digest(statements, digest, sql, ns, 10);
                        }
                    }
                }
            };
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(work())).collect();
            threads.into_iter().for_each(|thread| thread.join().expect("a thread of the test"));
        }
        done.store(true, Relaxed);
        reader.join().expect("the reader");
    });
    let all = statements.all();
    assert_eq!(all.len(), TEXTS.len());
    for cost in &all {
        assert_eq!(cost.calls, (GENERATIONS * 4 * ROUNDS) as u64, "TLY-1, TLY-3: {}", cost.digest.text);
    }
    assert_eq!(statements.registry.lock().tallies, 0, "TLY-3: their threads have ended");
}

/// A thread that has counted a statement before a reset counts it in full after the reset, whatever it has remembered.
#[test]
fn what_is_run_after_a_reset_counts_in_full() {
    let (statements, digest) = (Statements::default(), Digest::of(TEXTS[0].0));
    let run = |user: u32| (0..21).for_each(|_| run_digest(&statements, &digest, TEXTS[0].0, TEXTS[0].1, user));
    for _ in 0..3 {
        run(10);
        run(11);
        assert_eq!(statements.all().iter().map(|cost| cost.calls).collect::<Vec<_>>(), [21, 21], "TLY-4");
        statements.forget(|key| key.user == 11);
        run(11);
        let mut calls: Vec<(u32, u64)> = statements.all().iter().map(|cost| (cost.user, cost.calls)).collect();
        calls.sort_unstable();
        assert_eq!(calls, [(10, 21), (11, 21)], "TLY-4");
        statements.reset();
        assert_eq!(statements.all().len(), 0);
        assert_eq!(statements.registry.lock().tallies, 0, "STM-2");
    }
}

/// Resets in the middle of the work of other threads: nothing is counted that was not run, and what comes later counts in full.
#[test]
fn a_reset_in_the_middle_leaves_nothing_behind() {
    let (statements, digest) = (Statements::default(), Digest::of(TEXTS[1].0));
    let run = || run_digest(&statements, &digest, TEXTS[1].0, TEXTS[1].1, 10);
    let met = Barrier::new(4);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                (0..20_000).for_each(|_| run());
                met.wait();
                // The reset comes here.
                met.wait();
                (0..100).for_each(|_| run());
                met.wait();
            });
        }
        for _ in 0..200 {
            statements.reset();
            for cost in statements.all() {
                assert_whole(&cost, TEXTS[1].1);
            }
        }
        met.wait();
        statements.reset();
        met.wait();
        met.wait();
        let calls: u64 = statements.all().iter().map(|cost| cost.calls).sum();
        assert_eq!(calls, 300, "TLY-4");
    });
}

/// Waits of a commit come after its statement, perhaps on another thread; events for which a tally has no place are counted, too.
#[test]
fn late_waits_and_waits_of_many_events_are_counted() {
    let statements = Statements::default();
    let digest = Digest::of("commit");
    let key = Key { query: digest.id, user: 10, database: 5, application: 0, tags: 0 };
    (0..3).for_each(|_| run_digest(&statements, &digest, "commit", 1_001, 10));
    let busy_ns = statements.all()[0].busy_ns;
    let events = &WaitEvent::all()[..20];
    let late = || statements.waited(&key, |wait| events.iter().for_each(|event| wait(*event, 1, 100)));
    late();
    std::thread::scope(|scope| {
        scope.spawn(late);
    });
    let cost = &statements.all()[0];
    for event in events {
        let (_, count, ns) = cost.waits.iter().find(|(of, ..)| of == event).expect("the event");
        let own = if *event == WaitEvent::WalSync { (6, 1_500) } else { (0, 0) };
        assert_eq!((*count, *ns), (2 + own.0, 200 + own.1), "{event:?}");
    }
    assert_eq!(cost.busy_ns, busy_ns + 2 * 20 * 100);
}

/// Two databases in one process, and statements whose tallies want the same place of the thread's table.
#[test]
fn a_threads_table_keeps_databases_and_statements_apart() {
    let both = [Statements::default(), Statements::default()];
    let digests: Vec<_> = (0..1_000).map(|n| Digest::of(&format!("select 1 as c{n}"))).collect();
    for round in 1..=3 {
        for (at, statements) in both.iter().enumerate() {
            for _ in 0..=at {
                digests.iter().for_each(|digest| run_digest(statements, digest, "select", 1_001, 10));
            }
            let all = statements.all();
            let calls = (at as u64 + 1) * round;
            assert!(all.len() == 1_000 && all.iter().all(|cost| cost.calls == calls), "TLY-5");
            all.iter().for_each(|cost| assert_whole(cost, 1_001));
        }
    }
}

#[test]
fn tallies_have_a_limit_beyond_which_the_sum_counts() {
    const THREADS: usize = 8;
    let statements = Statements::default();
    let digests: Vec<_> = (0..ENTRIES_MAX).map(|n| Digest::of(&format!("select 1 as c{n}"))).collect();
    let met = Barrier::new(THREADS + 1);
    std::thread::scope(|scope| {
        let work = || {
            for _ in 0..2 {
                digests.iter().for_each(|digest| run_digest(&statements, digest, "select", 1_001, 10));
            }
            met.wait();
            met.wait();
        };
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(work)).collect();
        met.wait();
        assert_eq!(statements.registry.lock().tallies, TALLIES_MAX, "STM-2");
        let all = statements.all();
        assert!(all.iter().all(|cost| cost.calls == 2 * THREADS as u64), "STM-2");
        all.iter().for_each(|cost| assert_whole(cost, 1_001));
        met.wait();
        threads.into_iter().for_each(|thread| thread.join().expect("a thread of the test"));
    });
    assert_eq!(statements.all().iter().map(|cost| cost.calls).sum::<u64>(), (2 * THREADS * ENTRIES_MAX) as u64);
    assert_eq!(statements.registry.lock().tallies, 0, "TLY-3");
}
