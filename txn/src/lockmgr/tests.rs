//! The lock table: directed cases, and random sessions against the rules.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use super::*;

pub(super) type Acquire<'a> = Pin<Box<dyn Future<Output = Result<Granted, LockError>> + Send + 'a>>;

fn relation(n: u64) -> LockTag {
    LockTag::Relation { database: 1, relation: n }
}

fn advisory(n: i64) -> LockTag {
    LockTag::Advisory { database: 1, key: AdvisoryKey::One(n) }
}

pub(super) fn row(n: u8) -> LockTag {
    LockTag::Row { tree: clearway_storage::ids::TreeId(7), key: Arc::from([n].as_slice()) }
}

fn ask<'a>(locks: &'a LockManager, owner: &'a Arc<Owner>, tag: LockTag, mode: LockMode) -> Acquire<'a> {
    ask_as(locks, owner, tag, mode, IfTaken::Wait)
}

pub(super) fn ask_as<'a>(
    locks: &'a LockManager,
    owner: &'a Arc<Owner>,
    tag: LockTag,
    mode: LockMode,
    if_taken: IfTaken,
) -> Acquire<'a> {
    let scope = LockScope::Transaction;
    Box::pin(locks.acquire(Request { owner, tag, mode, scope, if_taken, implicit: None, looks: false }))
}

pub(super) fn poll(future: &mut Acquire<'_>) -> Poll<Result<Granted, LockError>> {
    future.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

pub(super) fn given(future: &mut Acquire<'_>) -> Granted {
    of(poll(future))
}

/// What a poll has given.
pub(super) fn of(polled: Poll<Result<Granted, LockError>>) -> Granted {
    match polled {
        Poll::Ready(Ok(granted)) => granted,
        other => panic!("expected a grant, got {other:?}"),
    }
}

fn waits(future: &mut Acquire<'_>) {
    assert!(poll(future).is_pending(), "expected a wait");
}

#[test]
fn hand_off_is_first_come_first_served_and_carries_the_commit_lsn() {
    let locks = LockManager::new();
    let owners: Vec<_> = (1..=4).map(|pid| locks.register(pid)).collect();
    let mut futures: Vec<_> = owners.iter().map(|o| ask(&locks, o, row(1), LockMode::RowUpdate)).collect();
    assert!(!given(&mut futures[0]).waited);
    futures[1..].iter_mut().for_each(waits);
    // As PostgreSQL has it: the first waiter waits for the holder, the others for the tuple that the first has.
    assert_eq!(locks.blockers(2), vec![1]);
    assert_eq!(locks.blockers(3), vec![2]);
    assert_eq!(locks.blockers(4), vec![2, 3]);
    locks.release_transaction(&owners[0], Lsn(100));
    assert_eq!(given(&mut futures[1]), Granted { dep_lsn: Lsn(100), waited: true });
    futures[2..].iter_mut().for_each(waits);
    locks.release_transaction(&owners[1], Lsn(90));
    assert_eq!(given(&mut futures[2]).dep_lsn, Lsn(100), "the highest of all that gave it up");
}

/// LKM-12. Sessions that share a lock which is never free depend on no commit of each other; a session that could not have had it beside them does.
#[test]
fn a_grant_depends_on_the_commits_that_gave_up_a_conflicting_mode_alone() {
    let locks = LockManager::new();
    let owners: Vec<_> = (1..=5).map(|pid| locks.register(pid)).collect();
    let take = |at: usize, mode| given(&mut ask(&locks, &owners[at], row(1), mode)).dep_lsn;
    assert_eq!(take(0, LockMode::RowKeyShare), Lsn::ZERO);
    assert_eq!(take(1, LockMode::RowKeyShare), Lsn::ZERO);
    locks.release_transaction(&owners[0], Lsn(100));
    assert_eq!(take(2, LockMode::RowKeyShare), Lsn::ZERO, "another key share tells nothing");
    assert_eq!(take(3, LockMode::RowNoKeyUpdate), Lsn::ZERO, "nor does it to an update beside it");
    locks.release_transaction(&owners[3], Lsn(110));
    assert_eq!(take(4, LockMode::RowForShare), Lsn(110), "an update of the row conflicts with a share");
    let mut strong = ask(&locks, &owners[0], row(1), LockMode::RowUpdate);
    waits(&mut strong);
    locks.release_transaction(&owners[1], Lsn(130));
    locks.release_transaction(&owners[4], Lsn(120));
    locks.release_transaction(&owners[2], Lsn::ZERO);
    assert_eq!(given(&mut strong).dep_lsn, Lsn(130), "the highest of all that stood in its way");
}

/// LKM-12 for a table, whose weak locks stand in the lock table while a strong mode is announced.
#[test]
fn weak_locks_in_the_lock_table_make_no_commit_depend_on_another() {
    let locks = LockManager::new();
    let owners: Vec<_> = (1..=4).map(|pid| locks.register(pid)).collect();
    let take = |at: usize, mode| given(&mut ask(&locks, &owners[at], relation(1), mode)).dep_lsn;
    assert_eq!(take(0, LockMode::AccessExclusive), Lsn::ZERO);
    let mut reader = ask(&locks, &owners[1], relation(1), LockMode::AccessShare);
    waits(&mut reader);
    locks.release_transaction(&owners[0], Lsn(50));
    assert_eq!(given(&mut reader).dep_lsn, Lsn(50));
    // While a strong mode is announced, weak locks go by the lock table.
    assert!(!given(&mut ask(&locks, &owners[3], relation(1), LockMode::Share)).waited);
    locks.release_transaction(&owners[1], Lsn(70));
    assert_eq!(take(2, LockMode::AccessShare), Lsn(50), "not on the reader before it");
}

#[test]
fn compatible_waiters_are_admitted_as_a_group() {
    let locks = LockManager::new();
    let owners: Vec<_> = (1..=5).map(|pid| locks.register(pid)).collect();
    let mut holder = ask(&locks, &owners[0], row(1), LockMode::RowUpdate);
    given(&mut holder);
    let mut a = ask(&locks, &owners[1], row(1), LockMode::RowForShare);
    let mut b = ask(&locks, &owners[2], row(1), LockMode::RowKeyShare);
    let mut c = ask(&locks, &owners[3], row(1), LockMode::RowNoKeyUpdate);
    let mut d = ask(&locks, &owners[4], row(1), LockMode::RowForShare);
    [&mut a, &mut b, &mut c, &mut d].into_iter().for_each(waits);
    locks.release_transaction(&owners[0], Lsn::ZERO);
    given(&mut a);
    given(&mut b);
    waits(&mut c);
    waits(&mut d);
}

/// LKM-6: row locks that agree with all holders pass by the waiters; a ring that comes of it is found when it closes.
#[test]
fn a_row_lock_that_agrees_with_its_holders_passes_by_those_who_wait() {
    let locks = LockManager::new();
    let owners: Vec<_> = (1..=3).map(|pid| locks.register(pid)).collect();
    given(&mut ask(&locks, &owners[0], row(1), LockMode::RowForShare));
    let mut update = ask(&locks, &owners[1], row(1), LockMode::RowUpdate);
    waits(&mut update);
    assert!(!given(&mut ask(&locks, &owners[2], row(1), LockMode::RowForShare)).waited);
    // One holder after the other is waited for, not both at once.
    assert_eq!(locks.blockers(2), vec![1]);
    // A waiter that holds a lock goes before those that hold none: the third gets its turn before the second.
    let mut upgrade = ask(&locks, &owners[2], row(1), LockMode::RowUpdate);
    waits(&mut upgrade);
    locks.release_transaction(&owners[0], Lsn::ZERO);
    given(&mut upgrade);
    waits(&mut update);
    locks.release_transaction(&owners[2], Lsn::ZERO);
    given(&mut update);
    // A ring through one that passes by: the second holds row 2 and waits for row 1, the third passes by it and then wants row 2.
    locks.release_transaction(&owners[1], Lsn::ZERO);
    given(&mut ask(&locks, &owners[1], row(2), LockMode::RowUpdate));
    given(&mut ask(&locks, &owners[0], row(1), LockMode::RowForShare));
    let mut second = ask(&locks, &owners[1], row(1), LockMode::RowUpdate);
    waits(&mut second);
    given(&mut ask(&locks, &owners[2], row(1), LockMode::RowForShare));
    let mut third = ask(&locks, &owners[2], row(2), LockMode::RowUpdate);
    assert!(matches!(poll(&mut third), Poll::Ready(Err(LockError::Deadlock(_)))), "LKM-4");
}

#[test]
fn a_dropped_waiter_passes_its_grant_on() {
    let locks = LockManager::new();
    let owners: Vec<_> = (1..=3).map(|pid| locks.register(pid)).collect();
    let mut first = ask(&locks, &owners[0], relation(1), LockMode::AccessExclusive);
    let mut second = ask(&locks, &owners[1], relation(1), LockMode::AccessExclusive);
    let mut third = ask(&locks, &owners[2], relation(1), LockMode::AccessShare);
    given(&mut first);
    waits(&mut second);
    waits(&mut third);
    locks.release_transaction(&owners[0], Lsn::ZERO);
    // LKM-8: the second was granted but never polled again.
    drop(second);
    given(&mut third);
    locks.release_transaction(&owners[2], Lsn::ZERO);
    assert!(locks.is_empty(), "no lock and no announcement is left");
}

#[test]
fn a_weak_lock_is_seen_by_a_strong_one_and_needs_no_entry_otherwise() {
    let locks = LockManager::new();
    let (reader, writer) = (locks.register(1), locks.register(2));
    given(&mut ask(&locks, &reader, relation(1), LockMode::AccessShare));
    assert!(locks.locks()[0].fastpath);
    let mut strong = ask(&locks, &writer, relation(1), LockMode::AccessExclusive);
    waits(&mut strong);
    assert!(locks.locks().iter().all(|l| !l.fastpath), "LKM-3: moved to the lock table");
    assert_eq!(locks.blockers(2), vec![1]);
    locks.release_transaction(&reader, Lsn(5));
    assert_eq!(given(&mut strong).dep_lsn, Lsn(5));
    locks.release_transaction(&writer, Lsn::ZERO);
    given(&mut ask(&locks, &reader, relation(1), LockMode::AccessShare));
    assert!(locks.locks()[0].fastpath, "the fast path is open again");
}

#[test]
fn an_implicit_holder_is_entered_only_while_its_transaction_runs() {
    let locks = LockManager::new();
    let (writer, waiter) = (locks.register(1), locks.register(2));
    writer.set_txn(TxnId(9));
    for (text, changes) in [("first", 0), ("second", 1), ("third", 2)] {
        writer.statement(&text.into());
        writer.statement_opens(changes);
    }
    let implicit = |mode| Some(Implicit { owner: writer.clone(), txn: TxnId(9), mode, change: 1, earlier: None });
    let request = |implicit| Request {
        owner: &waiter,
        tag: row(1),
        mode: LockMode::RowUpdate,
        scope: LockScope::Transaction,
        if_taken: IfTaken::Wait,
        implicit,
        looks: false,
    };
    let mut wait: Acquire<'_> = Box::pin(locks.acquire(request(implicit(LockMode::RowNoKeyUpdate))));
    waits(&mut wait);
    let held = locks.locks().into_iter().find(|l| l.granted && l.pid == 1).and_then(|l| l.statement);
    assert_eq!(held.as_deref(), Some("second"), "the statement that made the change, not the latest");
    locks.release_transaction(&writer, Lsn(3));
    assert_eq!(given(&mut wait), Granted { dep_lsn: Lsn(3), waited: true });
    // LKM-9: the same transaction again, which has ended.
    locks.release_transaction(&waiter, Lsn::ZERO);
    let mut again: Acquire<'_> = Box::pin(locks.acquire(request(implicit(LockMode::RowNoKeyUpdate))));
    assert!(!given(&mut again).waited);
}

/// LKM-13, LKM-14: the statements of a transaction are its own, also where it begins without the mutex and uses the entries of the one before.
#[test]
fn a_transaction_begins_without_the_statements_of_the_one_before() {
    let locks = LockManager::new();
    let owner = locks.register(1);
    let (one, two): (Arc<str>, Arc<str>) = ("one".into(), "two".into());
    let texts = |owner: &Owner| owner.statements().iter().map(|text| text.to_string()).collect::<Vec<_>>();
    for round in 1..=4u64 {
        owner.begin();
        assert!(texts(&owner).is_empty(), "LKM-13");
        // The same statement in every round, then another one, each of a digest of its round.
        for (number, (text, table)) in [(&one, 7), (&two, 7), (&two, 8)].into_iter().take(round as usize).enumerate() {
            owner.statement_begins(10 * round + number as u64);
            assert!(locks.begin_weak(&owner, (text, 0), &relation(table), LockMode::AccessShare, round));
        }
        let expected = ["one", "two", "two"];
        assert_eq!(texts(&owner), expected[..(round as usize).min(3)]);
        let held = locks.locks();
        let first = held.iter().find(|lock| lock.tag == relation(7)).expect("it is held");
        assert_eq!((first.statement.as_deref(), first.since_ns), (Some("one"), round), "LKM-14");
        assert_eq!(u64::from(first.ago), round.min(3) - 1, "LKM-13: statements count from the transaction's first");
        let taker = owner.held().taker_of(&relation(7)).expect("a statement");
        assert_eq!((taker.digest, taker.number), (10 * round, 1), "LKM-14");
        let latest = owner.held().latest().cloned().expect("a statement");
        assert_eq!((latest.digest, u64::from(latest.number)), (10 * round + round.min(3) - 1, round.min(3)));
        locks.release_transaction(&owner, Lsn::ZERO);
        assert!(locks.locks().is_empty());
        assert_eq!(texts(&owner).len() as u64, round.min(3), "they are known until the next transaction begins");
    }
    // Another statement on the same table than the one before.
    owner.begin();
    assert!(locks.begin_weak(&owner, (&one, 0), &relation(8), LockMode::AccessShare, 9));
    assert_eq!(locks.locks()[0].statement.as_deref(), Some("one"), "LKM-14");
}

#[test]
fn a_savepoint_takes_back_the_stronger_of_two_implied_modes() {
    let locks = LockManager::new();
    let (writer, waiter) = (locks.register(1), locks.register(2));
    writer.set_txn(TxnId(9));
    // An update, a savepoint, a delete of the same row; then another owner waits for the row.
    let mark = writer.mark().after_changes(1);
    let deleted = Implicit {
        owner: writer.clone(),
        txn: TxnId(9),
        mode: LockMode::RowUpdate,
        change: 1,
        earlier: Some((LockMode::RowNoKeyUpdate, 0)),
    };
    let request = |mode, implicit| Request {
        owner: &waiter,
        tag: row(1),
        mode,
        scope: LockScope::Transaction,
        if_taken: IfTaken::Wait,
        implicit,
        looks: false,
    };
    let mut key_share: Acquire<'_> = Box::pin(locks.acquire(request(LockMode::RowKeyShare, Some(deleted))));
    waits(&mut key_share);
    locks.release_to(&writer, mark);
    given(&mut key_share);
    // LKM-11: the update stands.
    let mut share: Acquire<'_> = Box::pin(locks.acquire(request(LockMode::RowForShare, None)));
    waits(&mut share);
    locks.release_transaction(&writer, Lsn::ZERO);
    given(&mut share);
}

#[test]
fn a_savepoint_gives_back_what_was_taken_since() {
    let locks = LockManager::new();
    let (a, b) = (locks.register(1), locks.register(2));
    given(&mut ask(&locks, &a, row(1), LockMode::RowKeyShare));
    given(&mut ask(&locks, &a, relation(1), LockMode::AccessShare));
    let mark = a.mark();
    given(&mut ask(&locks, &a, row(1), LockMode::RowUpdate));
    given(&mut ask(&locks, &a, relation(1), LockMode::RowExclusive));
    given(&mut ask(&locks, &a, relation(2), LockMode::AccessShare));
    let mut shared = ask(&locks, &b, row(1), LockMode::RowForShare);
    waits(&mut shared);
    locks.release_to(&a, mark);
    given(&mut shared);
    let held: Vec<_> = locks.locks().into_iter().filter(|l| l.pid == 1).map(|l| l.mode).collect();
    assert_eq!(held, vec![LockMode::AccessShare, LockMode::RowKeyShare]);
}

/// LKM-2: a mode that is neither weak nor strong stands in the lock table, beside a weak one that does not.
#[test]
fn a_savepoint_gives_back_a_mode_of_the_table_beside_a_weak_one() {
    let locks = LockManager::new();
    let owner = locks.register(1);
    given(&mut ask(&locks, &owner, relation(1), LockMode::AccessShare));
    let mark = owner.mark();
    given(&mut ask(&locks, &owner, relation(1), LockMode::ShareUpdateExclusive));
    locks.release_to(&owner, mark);
    assert_eq!(locks.locks().iter().map(|lock| lock.mode).collect::<Vec<_>>(), [LockMode::AccessShare]);
    locks.release_transaction(&owner, Lsn::ZERO);
    assert!(locks.is_empty());
}

#[test]
fn session_locks_are_counted_and_outlive_the_transaction() {
    let locks = LockManager::new();
    let (a, b) = (locks.register(1), locks.register(2));
    for _ in 0..2 {
        let session = Request {
            owner: &a,
            tag: advisory(1),
            mode: LockMode::Exclusive,
            scope: LockScope::Session,
            if_taken: IfTaken::Fail,
            implicit: None,
            looks: false,
        };
        given(&mut (Box::pin(locks.acquire(session)) as Acquire<'_>));
    }
    locks.release_transaction(&a, Lsn::ZERO);
    let mut other = ask(&locks, &b, advisory(1), LockMode::Share);
    waits(&mut other);
    assert!(locks.release_one(&a, &advisory(1), LockMode::Exclusive));
    waits(&mut other);
    assert!(locks.release_one(&a, &advisory(1), LockMode::Exclusive));
    given(&mut other);
    assert!(!locks.release_one(&a, &advisory(1), LockMode::Exclusive));
}

#[test]
fn a_ring_takes_the_session_that_closed_it_and_reports_everybody() {
    let locks = LockManager::new();
    let owners: Vec<_> = (1..=3).map(|pid| locks.register(pid)).collect();
    for (i, owner) in owners.iter().enumerate() {
        owner.begin();
        owner.statement(&format!("UPDATE t SET a = {i} WHERE id = {i}").into());
        given(&mut ask(&locks, owner, row(i as u8), LockMode::RowUpdate));
        owner.statement(&format!("UPDATE t SET b = {i}").into());
    }
    let mut first = ask(&locks, &owners[0], row(1), LockMode::RowUpdate);
    let mut second = ask(&locks, &owners[1], row(2), LockMode::RowUpdate);
    waits(&mut first);
    waits(&mut second);
    let mut third = ask(&locks, &owners[2], row(0), LockMode::RowUpdate);
    let Poll::Ready(Err(LockError::Deadlock(Some(report)))) = poll(&mut third) else { panic!("no deadlock found") };
    assert_eq!(report.participants.iter().map(|p| p.pid).collect::<Vec<_>>(), vec![3, 1, 2]);
    assert_eq!(report.participants[0].statements.len(), 2);
    assert_eq!(report.participants[0].held_by_statement.as_deref(), Some("UPDATE t SET a = 2 WHERE id = 2"));
    locks.release_transaction(&owners[2], Lsn::ZERO);
    given(&mut second);
    assert_eq!((locks.archive().deadlocks(), locks.archive().missed_by_fast_path()), (1, 0));
    assert_eq!(locks.archive().reports().len(), 1);
}

#[test]
fn a_ring_with_a_soft_edge_takes_no_victim() {
    let locks = LockManager::new();
    let [d1, d2, e1, e2] = [1, 2, 3, 4].map(|pid| locks.register(pid));
    given(&mut ask(&locks, &d1, relation(1), LockMode::AccessShare));
    given(&mut ask(&locks, &d2, relation(2), LockMode::AccessShare));
    let mut e1_waits = ask(&locks, &e1, relation(1), LockMode::AccessExclusive);
    let mut e2_waits = ask(&locks, &e2, relation(2), LockMode::AccessExclusive);
    waits(&mut e1_waits);
    waits(&mut e2_waits);
    let mut d1_waits = ask(&locks, &d1, relation(2), LockMode::AccessShare);
    waits(&mut d1_waits);
    let mut d2_waits = ask(&locks, &d2, relation(1), LockMode::AccessShare);
    waits(&mut d2_waits);
    given(&mut d1_waits);
    assert_eq!((locks.archive().deadlocks(), locks.archive().reordered()), (0, 1));
}

/// The background scan counts what the search at the start of the wait did not see: here a ring that is planted by holding back that search.
#[test]
fn the_background_scan_counts_what_was_missed() {
    let locks = LockManager::new();
    let (a, b) = (locks.register(1), locks.register(2));
    given(&mut ask(&locks, &a, row(1), LockMode::RowUpdate));
    given(&mut ask(&locks, &b, row(2), LockMode::RowUpdate));
    let mut a_waits = ask(&locks, &a, row(2), LockMode::RowUpdate);
    waits(&mut a_waits);
    a.blocking.store(false, Ordering::SeqCst);
    b.blocking.store(false, Ordering::SeqCst);
    let mut b_waits = ask(&locks, &b, row(1), LockMode::RowUpdate);
    waits(&mut b_waits);
    locks.background_scan(0);
    assert_eq!((locks.archive().missed_by_fast_path(), locks.archive().deadlocks()), (1, 1));
    let lost = [poll(&mut a_waits), poll(&mut b_waits)];
    assert_eq!(lost.iter().filter(|p| matches!(p, Poll::Ready(Err(LockError::Deadlock(_))))).count(), 1);
}

/// DET-1: sessions that wait in one queue give the scan nothing to search, until the holder waits, too.
#[test]
fn the_background_scan_searches_from_holders_that_wait() {
    let locks = LockManager::new();
    let owners: Vec<_> = (1..=20).map(|id| locks.register(id)).collect();
    given(&mut ask(&locks, &owners[0], row(1), LockMode::RowUpdate));
    given(&mut ask(&locks, &owners[1], row(2), LockMode::RowUpdate));
    let mut crowd: Vec<_> = owners[2..].iter().map(|owner| ask(&locks, owner, row(1), LockMode::RowUpdate)).collect();
    crowd.iter_mut().for_each(|wait| {
        waits(wait);
    });
    let searches = || {
        let before = locks.archive().searches();
        locks.background_scan(0);
        locks.archive().searches() - before
    };
    assert_eq!(searches(), 0, "DET-1");
    let mut first = ask(&locks, &owners[0], row(2), LockMode::RowUpdate);
    waits(&mut first);
    assert_eq!(searches(), 1, "DET-1: the holder of the row for which the others wait");
    assert_eq!(locks.archive().deadlocks(), 0);
}

struct Rng(u64);

impl Rng {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % n
    }
}

/// Random sessions: after every step the lists of the owners and the lock table agree (LKM-2), no two holders conflict (LKM-5), no owner
/// waits that could be let in (LKM-7), of those that could be called one is (LKM-17), none waits in a ring; and when all have ended nothing is left.
#[test]
fn random_sessions_keep_the_rules() {
    let only: Option<u64> = std::env::var("CLEARWAY_SEED").ok().and_then(|v| v.parse().ok());
    for seed in only.map_or(0..400, |s| s..s + 1) {
        let run = std::panic::catch_unwind(|| random_session(seed));
        assert!(run.is_ok(), "replay: CLEARWAY_SEED={seed} cargo test -p clearway-txn random_sessions");
    }
}

fn random_session(seed: u64) {
    let mut rng = Rng(seed.wrapping_mul(0x9e37_79b9).wrapping_add(1));
    let locks = LockManager::new();
    let owners: Vec<_> = (0..6).map(|i| locks.register(i + 1)).collect();
    let mut waiting: BTreeMap<usize, Acquire<'_>> = BTreeMap::new();
    let mut marks: BTreeMap<usize, LockMark> = BTreeMap::new();
    for _ in 0..300 {
        let who = rng.below(owners.len());
        let owner = &owners[who];
        match (rng.below(10), waiting.contains_key(&who)) {
            (0..=5, false) => {
                let (tag, mode) = match rng.below(2) {
                    0 => (relation(rng.below(3) as u64), modes::ALL_MODES[rng.below(8)]),
                    _ => (row(rng.below(3) as u8), modes::ALL_MODES[8 + rng.below(4)]),
                };
                let if_taken = match (&tag, rng.below(2)) {
                    (LockTag::Row { .. }, 0) => IfTaken::WaitBriefly,
                    _ => IfTaken::Wait,
                };
                let mut future = ask_as(&locks, owner, tag, mode, if_taken);
                if poll(&mut future).is_pending() {
                    waiting.insert(who, future);
                }
            }
            (6, false) => drop(marks.insert(who, owner.mark())),
            (7, false) => marks.remove(&who).into_iter().for_each(|mark| locks.release_to(owner, mark)),
            (8, true) => drop(waiting.remove(&who)),
            (9, false) => {
                marks.remove(&who);
                locks.release_transaction(owner, Lsn(rng.below(1000) as u64));
            }
            _ => {}
        }
        waiting.retain(|who, future| {
            owners[*who].has_turn(rng.below(4) == 0);
            poll(future).is_pending()
        });
        locks.assert_rules();
    }
    drop(waiting);
    owners.iter().for_each(|o| locks.release_transaction(o, Lsn::ZERO));
    let left: Vec<_> = locks.shards.iter().flat_map(|s| s.lock().locks.keys().cloned().collect::<Vec<_>>()).collect();
    assert!(locks.is_empty(), "{left:?} {:?}", locks.locks());
    assert_eq!(locks.archive().missed_by_fast_path(), 0);
}

impl LockManager {
    fn is_empty(&self) -> bool {
        self.shards.iter().all(|s| s.lock().locks.is_empty())
            && self.strong.iter().all(|c| c.load(Ordering::SeqCst) == 0)
            && self.locks().is_empty()
    }

    fn assert_rules(&self) {
        let mut in_table = 0;
        for shard in &self.shards {
            let shard = shard.lock();
            for (tag, lock) in &shard.locks {
                for holder in &lock.holders {
                    in_table += 1;
                    let held = holder.owner.held();
                    assert_eq!(held.locks.get(tag).map(|l| l.modes()), Some(holder.modes), "LKM-2 {tag:?}");
                    let others = lock.holders.iter().filter(|h| h.owner.id != holder.owner.id);
                    for other in others {
                        assert!(holder.modes.iter().all(|m| !m.conflicts().meets(other.modes)), "LKM-5 {tag:?}");
                    }
                }
                assert!(lock.queue.counts_hold(), "LKM-10 {tag:?}");
                let (mut ahead, mut barred, mut called) = (ModeSet::EMPTY, ModeSet::EMPTY, false);
                for waiter in &lock.queue {
                    let behind = waiter.mode.conflicts().meets(if waiter.brief { barred } else { ahead });
                    let held_up = lock.conflicts_with_holders(&waiter.owner, waiter.mode) || behind;
                    called |= waiter.is_called();
                    // One that has been called before it calls it, when it has had the lock.
                    assert!(held_up || waiter.brief && called, "LKM-7, LKM-17 {tag:?}");
                    ahead = ahead.with(waiter.mode);
                    if !waiter.is_called() {
                        barred = barred.with(waiter.mode);
                    }
                }
            }
        }
        let in_lists: usize = self.owners().iter().map(|o| o.held().locks.len()).sum();
        assert_eq!(in_table, in_lists, "LKM-2");
        // No owner waits in a ring: each search at the start of a wait has done its work.
        self.background_scan(0);
        assert_eq!(self.archive.missed_by_fast_path(), 0, "a ring was missed");
    }
}
