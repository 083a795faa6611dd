//! Planted violations that the oracle must find, and histories that it must let pass.

use clearway_engine::embedded::Isolation::{self, ReadCommitted, RepeatableRead};
use clearway_storage::ids::Lsn;

use super::oracle::{Key, ObservedReply, Oracle, Own, Reply, Row, Rows, Txn, Write, Wrong};

fn row(v: i64) -> Row {
    Row { a: 0, u: v, v }
}

fn write(key: Key, before: Option<i64>, after: Option<i64>) -> Write {
    Write { key, before: before.map(row), after: after.map(row) }
}

fn txn(isolation: Isolation, commit: u64, writes: &[Write]) -> Txn {
    Txn { isolation, told: Vec::new(), writes: writes.to_vec(), commit: Some(Lsn(commit)), acknowledged: false }
}

fn told(read_lsn: u64, upto: u64, reply: Reply) -> Txn {
    let told = ObservedReply { read_lsn: Lsn(read_lsn), upto: Lsn(upto), own: Own::new(), reply, given: true };
    Txn { isolation: RepeatableRead, told: vec![told], writes: Vec::new(), commit: None, acknowledged: false }
}

/// 10: row 1 is put; 20: changed; 30: deleted.
fn life() -> Vec<Txn> {
    vec![
        txn(ReadCommitted, 10, &[write(1, None, Some(1))]),
        txn(ReadCommitted, 20, &[write(1, Some(1), Some(2))]),
        txn(ReadCommitted, 30, &[write(1, Some(2), None)]),
    ]
}

fn isolation(more: Txn) -> Vec<Wrong> {
    let mut history = life();
    history.push(more);
    Oracle::new(&history).isolation()
}

#[test]
fn what_is_right_passes() {
    for reply in [
        told(10, 40, Reply::Point(1, Some(row(1)))),
        told(25, 25, Reply::Table(Rows::from([(1, row(2))]))),
        told(5, 15, Reply::Newest(1, None)),
        told(5, 15, Reply::DuplicateKey(1)),
        told(15, 40, Reply::DuplicateU(9, 2)),
        told(15, 20, Reply::Conflict(1)),
        told(15, 40, Reply::Locked(Lsn(15))),
    ] {
        assert_eq!(isolation(reply), []);
    }
    assert_eq!(Oracle::new(&life()).replies(Lsn(25), &Rows::from([(1, row(2))])), []);
}

#[test]
fn a_read_of_another_snapshot_is_found() {
    for reply in [Reply::Point(1, Some(row(1))), Reply::Table(Rows::new()), Reply::Point(1, Some(row(7)))] {
        assert!(matches!(isolation(told(20, 40, reply))[..], [Wrong::Snapshot { txn: 3, .. }]));
    }
}

#[test]
fn a_newest_version_that_never_was_is_found() {
    for reply in [Reply::Newest(1, Some(row(1))), Reply::DuplicateKey(2), Reply::DuplicateU(1, 2), Reply::Conflict(2)] {
        assert!(matches!(isolation(told(20, 40, reply))[..], [Wrong::Never { txn: 3, .. }]));
    }
}

#[test]
fn a_lost_update_and_a_second_updater_are_found() {
    let lost = txn(ReadCommitted, 25, &[write(1, Some(1), Some(3))]);
    assert!(isolation(lost).iter().any(|wrong| matches!(wrong, Wrong::LostUpdate { txn: 3, key: 1, .. })));
    let mut second = txn(RepeatableRead, 25, &[write(1, Some(2), None)]);
    second.told = told(15, 15, Reply::Point(1, Some(row(1)))).told;
    let mut history = life();
    history.truncate(2);
    history.push(second);
    assert!(matches!(Oracle::new(&history).isolation()[..], [Wrong::NotFirst { txn: 2, key: 1, other: 1 }]));
}

#[test]
fn two_snapshots_and_two_rows_of_one_value_are_found() {
    let mut two = told(10, 10, Reply::Point(1, Some(row(1))));
    two.told.extend(told(20, 20, Reply::Point(1, Some(row(2)))).told);
    assert!(matches!(isolation(two)[..], [Wrong::TwoSnapshots { txn: 3 }]));
    let twice = txn(ReadCommitted, 25, &[write(2, None, Some(2))]);
    assert!(matches!(isolation(twice)[..], [Wrong::NotUnique { u: 2, .. }]));
}

#[test]
fn replies_that_a_crash_made_untrue_are_found() {
    for reply in [
        Reply::Point(1, Some(row(2))),
        Reply::Newest(1, Some(row(2))),
        Reply::DuplicateU(9, 2),
        Reply::Conflict(1),
        Reply::Table(Rows::from([(1, row(2))])),
        Reply::Locked(Lsn(11)),
    ] {
        let mut history = life();
        history.push(told(15, 20, reply.clone()));
        if !matches!(reply, Reply::Conflict(_) | Reply::Locked(_)) {
            history[3].told[0].read_lsn = Lsn(20);
        }
        let found = Oracle::new(&history).replies(Lsn(12), &Rows::from([(1, row(1))]));
        assert!(matches!(found[..], [Wrong::Reply { txn: 3, .. }]), "{reply:?}: {found:?}");
        history[3].told[0].given = false;
        assert_eq!(Oracle::new(&history).replies(Lsn(12), &Rows::from([(1, row(1))])), [], "nobody heard of it");
    }
}

#[test]
fn lost_commits_and_what_is_no_prefix_are_found() {
    let mut history = life();
    history[1].acknowledged = true;
    let found = Oracle::new(&history).replies(Lsn(12), &Rows::from([(1, row(1))]));
    assert!(matches!(found[..], [Wrong::Lost { txn: 1, .. }]));
    let found = Oracle::new(&life()).replies(Lsn(12), &Rows::new());
    assert!(matches!(found[..], [Wrong::Left { .. }]));
}
