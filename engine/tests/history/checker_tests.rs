//! Planted violations that the checker must find, and histories that it must let pass.

use std::collections::BTreeMap;

use clearway_engine::embedded::Isolation::{self, ReadCommitted, RepeatableRead};

use super::checker::Op::{Append, Read};
use super::checker::Outcome::{Aborted, Committed, Unknown};
use super::checker::{Element, Key, Op, Outcome, Txn, Violation, check};

fn judge(history: &[(Outcome, &[Op])], last: &[(Key, &[Element])], isolation: Isolation) -> Vec<Violation> {
    let history: Vec<Txn> = history.iter().map(|(o, ops)| Txn { ops: ops.to_vec(), outcome: *o }).collect();
    let last: BTreeMap<_, _> = last.iter().map(|(k, l)| (*k, l.to_vec())).collect();
    check(&history, &last, isolation)
}

#[test]
fn a_serial_history_passes() {
    let history: &[(Outcome, &[Op])] = &[
        (Committed, &[Append(1, 10), Append(2, 11), Read(1, vec![10])]),
        (Aborted, &[Read(1, vec![10]), Append(1, 20)]),
        (Committed, &[Read(1, vec![10]), Append(1, 30), Read(1, vec![10, 30])]),
        (Unknown, &[Append(2, 40), Read(1, vec![99])]),
    ];
    for last in [&[(1, &[10, 30][..]), (2, &[11][..])], &[(1, &[10, 30][..]), (2, &[11, 40][..])]] {
        assert_eq!(judge(history, last, RepeatableRead), []);
    }
}

#[test]
fn lost_and_doubled_appends_are_found() {
    let history: &[(Outcome, &[Op])] = &[(Committed, &[Append(1, 10)])];
    assert!(matches!(judge(history, &[], ReadCommitted)[..], [Violation::Lost { times: 0, .. }]));
    assert!(matches!(judge(history, &[(1, &[10, 10])], ReadCommitted)[..], [Violation::Lost { times: 2, .. }]));
}

#[test]
fn replies_that_a_crash_took_back_are_found() {
    // Not acknowledged, gone, and yet a client was told of it.
    let history: &[(Outcome, &[Op])] = &[(Unknown, &[Append(1, 10)]), (Committed, &[Read(1, vec![10])])];
    assert!(matches!(judge(history, &[], ReadCommitted)[..], [Violation::NoPrefix { reader: 1, .. }]));
    let history: &[(Outcome, &[Op])] = &[(Unknown, &[Append(1, 10)]), (Aborted, &[Read(1, vec![10])])];
    assert!(matches!(judge(history, &[], ReadCommitted)[..], [Violation::NoPrefix { reader: 1, .. }]));
}

#[test]
fn g1a_and_g1b_are_found() {
    let aborted: &[(Outcome, &[Op])] = &[(Aborted, &[Append(1, 10)])];
    assert!(matches!(judge(aborted, &[(1, &[10])], ReadCommitted)[..], [Violation::AbortedRead { .. }]));
    let intermediate: &[(Outcome, &[Op])] =
        &[(Committed, &[Append(1, 10), Append(1, 11)]), (Committed, &[Read(1, vec![10])])];
    let found = judge(intermediate, &[(1, &[10, 11])], ReadCommitted);
    assert!(matches!(found[..], [Violation::IntermediateRead { reader: 1, writer: 0, .. }]), "{found:?}");
}

#[test]
fn own_appends_must_be_seen_and_elements_must_come_from_somewhere() {
    let history: &[(Outcome, &[Op])] = &[(Committed, &[Append(1, 10), Read(1, vec![])])];
    assert!(matches!(judge(history, &[(1, &[10])], ReadCommitted)[..], [Violation::NotOwn { .. }]));
    assert!(matches!(judge(&[], &[(1, &[7])], ReadCommitted)[..], [Violation::FromNowhere { .. }]));
}

#[test]
fn g0_is_found() {
    let history: &[(Outcome, &[Op])] =
        &[(Committed, &[Append(1, 10), Append(2, 11)]), (Committed, &[Append(1, 20), Append(2, 21)])];
    let found = judge(history, &[(1, &[10, 20]), (2, &[21, 11])], ReadCommitted);
    assert!(found.iter().any(|v| matches!(v, Violation::WriteCycle(_))), "{found:?}");
}

#[test]
fn g1c_is_found() {
    let history: &[(Outcome, &[Op])] =
        &[(Committed, &[Append(1, 10), Read(2, vec![20])]), (Committed, &[Append(2, 20), Read(1, vec![10])])];
    let found = judge(history, &[(1, &[10]), (2, &[20])], ReadCommitted);
    assert!(matches!(found[..], [Violation::InformationCycle(_)]), "{found:?}");
}

#[test]
fn lost_update_and_read_skew_are_found_where_they_are_forbidden() {
    // Both read the empty list; 1 writes on top of 0 without having seen it.
    let lost: &[(Outcome, &[Op])] =
        &[(Committed, &[Read(1, vec![]), Append(1, 10)]), (Committed, &[Read(1, vec![]), Append(1, 20)])];
    let skew: &[(Outcome, &[Op])] =
        &[(Committed, &[Append(1, 10), Append(2, 11)]), (Committed, &[Read(1, vec![]), Read(2, vec![11])])];
    for (history, last) in [(lost, &[(1, &[10, 20][..])][..]), (skew, &[(1, &[10][..]), (2, &[11][..])][..])] {
        let found = judge(history, last, RepeatableRead);
        assert!(matches!(found[..], [Violation::ReadSkew(_)]), "{found:?}");
        assert_eq!(judge(history, last, ReadCommitted), [], "read committed allows it");
    }
}

#[test]
fn write_skew_is_allowed_by_snapshots() {
    let history: &[(Outcome, &[Op])] =
        &[(Committed, &[Read(1, vec![]), Append(2, 10)]), (Committed, &[Read(2, vec![]), Append(1, 20)])];
    assert_eq!(judge(history, &[(1, &[20]), (2, &[10])], RepeatableRead), []);
}
