//! The protocol as designed passes every scenario, and every omitted clause is found.
//!
//! `CLEARWAY_REWRITE=1 cargo test -p clearway-tests --test protocol_model golden` writes the traces anew to
//! `docs/design/protocol-model-traces.md`; without the variable each test compares its result with that file.

use std::path::PathBuf;

use clearway_base::vfs::{FileKind, IoBuf, OpenHow, RealVfs, Vfs};
use clearway_tests::model::explore::explore;
use clearway_tests::model::golden::{PAIR, SEED, line, section, whole};
use clearway_tests::model::mutation::{Mutation, Planted};
use clearway_tests::model::scenarios::{SCENARIOS, killer_of, named};

const REWRITE: &str = "CLEARWAY_REWRITE";

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/design/protocol-model-traces.md")
}

fn rewriting() -> bool {
    std::env::var_os(REWRITE).is_some()
}

fn read_golden() -> String {
    let read = || {
        let file = RealVfs::inline().open(&path(), OpenHow::read_only(FileKind::Other)).wait()?;
        let len = file.len().wait()? as usize;
        file.read_at(0, IoBuf::with_capacity(len), len).wait()
    };
    let bytes = read().unwrap_or_else(|err| panic!("{err}"));
    String::from_utf8(bytes.to_vec()).expect("the golden file is text")
}

fn write_golden(text: &str) {
    let write = || {
        let file = RealVfs::inline().open(&path(), OpenHow::existing(FileKind::Other)).wait()?;
        file.set_len(0).wait()?;
        file.write_at(0, IoBuf::from_slice(text.as_bytes())).wait()
    };
    write().unwrap_or_else(|err| panic!("{err}"));
}

fn expect_in_golden(text: &str) {
    if rewriting() {
        return;
    }
    let golden = read_golden();
    assert!(
        golden.contains(text.trim_end()),
        "not in {}; rewrite it with {REWRITE}=1 if this is right:\n{text}",
        path().display()
    );
}

/// The design passes the scenario, its work can be finished and crashes happen in it; each mutation that the scenario
/// claims to find is found.
fn check_scenario(name: &str) {
    let scenario = named(name);
    match explore(scenario, Planted::NONE, SEED) {
        Err(trace) => panic!("the design fails:\n{}", section(&[], scenario, &trace)),
        Ok(seen) => {
            assert!(seen.finished > 0 && seen.crashes > 0, "the scenario proves nothing: {seen:?}");
            expect_in_golden(&line(scenario, &seen));
        }
    }
    for &mutation in scenario.kills {
        let found = explore(scenario, Planted::of(&[mutation]), SEED);
        assert!(found.is_err(), "{name} does not find {mutation:?}");
    }
}

/// The mutation is found, by the trace that the golden file shows.
fn check_mutation(mutation: Mutation) {
    let scenario = killer_of(mutation).expect("a scenario that finds it");
    let trace = explore(scenario, Planted::of(&[mutation]), SEED).expect_err("the mutation is found");
    let text = section(&[mutation], scenario, &trace);
    println!("{text}");
    expect_in_golden(&text);
}

macro_rules! scenarios {
    ($($test:ident: $name:literal;)*) => {
        mod design {
            $(#[test] fn $test() { super::check_scenario($name); })*

            #[test]
            fn has_a_test_for_every_scenario() {
                let tested = [$($name),*];
                assert!(super::SCENARIOS.iter().all(|scenario| tested.contains(&scenario.name)));
            }
        }
    };
}

macro_rules! mutations {
    ($($test:ident: $mutation:ident;)*) => {
        mod finds {
            $(#[test] fn $test() { super::check_mutation(super::Mutation::$mutation); })*

            #[test]
            fn every_mutation_but_the_one_that_is_harmless_alone() {
                let tested = [$(super::Mutation::$mutation),*];
                let left: Vec<_> = super::Mutation::ALL.into_iter().filter(|one| !tested.contains(one)).collect();
                assert_eq!(left, [super::Mutation::RetireBeforeEpochs]);
            }
        }
    };
}

scenarios! {
    hot_row: "hot row";
    commit_section: "commit section";
    ghosts: "ghosts";
    reading_after_writing: "reading after writing";
    counts: "counts";
    errors: "errors";
    ends: "ends";
    catalog: "catalog";
    savepoints: "savepoints";
    failed_statements: "failed statements";
    revalidation: "revalidation";
    retiring: "retiring";
    spilled_undo: "spilled undo";
    beginning_a_snapshot: "beginning a snapshot";
    between_snapshots: "between snapshots";
    table_lock: "table lock";
    advisory_lock: "advisory lock";
    own_commits: "own commits";
    checkpoints: "checkpoints";
    undo_addresses: "undo addresses";
    crash_during_recovery: "crash during recovery";
    everything_at_once: "everything at once";
}

mutations! {
    no_dep_wait_for_rows: NoDepWaitRows;
    no_dep_wait_for_counts: NoDepWaitCounts;
    no_dep_wait_for_errors: NoDepWaitErrors;
    no_dep_wait_for_ghosts: NoDepWaitGhosts;
    no_dep_wait_for_the_catalog: NoDepWaitCatalog;
    no_dep_wait_for_ends: NoDepWaitEnds;
    commit_not_awaited: CommitNotAwaited;
    purge_before_durable: PurgeBeforeDurable;
    purge_ignores_snapshots: PurgeIgnoresSnapshots;
    no_page_revalidation: NoPageRevalidation;
    no_restart_after_await: NoRestartAfterAwait;
    retire_before_undo: RetireBeforeUndo;
    no_compensation_transaction: NoCompensationTransaction;
    no_compensation_savepoint: NoCompensationSavepoint;
    no_compensation_statement: NoCompensationStatement;
    no_compensation_recovery: NoCompensationRecovery;
    lock_without_lsn: LockWithoutLsn;
    advisory_lock_released_early: AdvisoryLockReleasedEarly;
    snapshot_not_rechecked: SnapshotNotRechecked;
    horizon_published_late: HorizonPublishedLate;
    horizon_published_low: HorizonPublishedLow;
    visible_with_holes: VisibleWithHoles;
    writer_ahead_of_visible: WriterAheadOfVisible;
    flush_before_visible: FlushBeforeVisible;
    own_commit_ignored: OwnCommitIgnored;
    steal_before_flush: StealBeforeFlush;
    checkpoint_without_undo: CheckpointWithoutUndo;
    checkpoint_before_flush: CheckpointBeforeFlush;
    checkpoint_saves_ahead_of_log: CheckpointSavesAheadOfLog;
    checkpoint_ignores_dirty_pages: CheckpointIgnoresDirtyPages;
    mark_not_saved: MarkNotSaved;
    tag_not_logged: TagNotLogged;
    tail_not_synced: TailNotSynced;
    losers_not_rebuilt: LosersNotRebuilt;
}

/// Validating the page after a tag was resolved and keeping undo until readers have left their epochs are two lines of
/// defence against an image that its writer takes back: in this scenario each suffices, and without both it is found.
/// Where a writer takes changes back and then commits, only validation helps (`finds::no_page_revalidation`).
#[test]
fn epochs_are_the_second_line_behind_revalidation() {
    let (name, pair) = PAIR;
    let scenario = named(name);
    for mutation in pair {
        assert!(explore(scenario, Planted::of(&[mutation]), SEED).is_ok(), "{mutation:?} alone is found by now");
    }
    for other in ["revalidation", "spilled undo", "crash during recovery"] {
        let alone = explore(named(other), Planted::of(&[Mutation::RetireBeforeEpochs]), SEED);
        assert!(alone.is_ok(), "RetireBeforeEpochs alone is found by now in {other}");
    }
    let trace = explore(scenario, Planted::of(&pair), SEED).expect_err("the pair is found");
    expect_in_golden(&section(&pair, scenario, &trace));
}

/// Two seeds of the fingerprints see the same number of states: none was taken for another.
#[test]
fn fingerprints_do_not_collide() {
    for name in ["catalog", "crash during recovery"] {
        let counts = [1, 0x5eed].map(|seed| explore(named(name), Planted::NONE, seed).expect("the design passes"));
        assert_eq!(counts[0], counts[1]);
    }
}

/// The golden file has a section for every mutation; with `CLEARWAY_REWRITE` set it is written.
#[test]
fn golden_file_is_complete() {
    if rewriting() {
        write_golden(&whole());
    }
    let golden = read_golden();
    let sections = golden.lines().filter(|line| line.starts_with("## ")).count();
    assert_eq!(sections, Mutation::ALL.len(), "one per mutation, the pair in place of the one harmless alone");
    assert_eq!(golden.lines().filter(|line| line.starts_with("| ")).count(), SCENARIOS.len() + 1);
}
