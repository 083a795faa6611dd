//! The saved form of lock waits and deadlocks: JSON objects with named fields, so that a later version can add fields.

use clearway_storage::ids::{TreeId, TxnId};
use clearway_txn::lockmgr::history::{Facts, Outcome, Party, WaitRecord};
use clearway_txn::lockmgr::modes::{ALL_MODES, ModeSet};
use clearway_txn::lockmgr::report::{DeadlockReport, Participant};
use clearway_txn::lockmgr::{AdvisoryKey, LockManager, LockMode, LockTag, VirtualId};
use serde::{Deserialize, Serialize};

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Saved {
    waits: Vec<SavedWait>,
    deadlocks: Vec<SavedDeadlock>,
}

/// A lock tag by its kind's letter.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct SavedTag {
    kind: char,
    numbers: [u64; 3],
    key: Vec<u8>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct SavedFacts {
    application: String,
    user: String,
    database: String,
    parameters: String,
    state: String,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct SavedParty {
    pid: i32,
    session: u32,
    local: u64,
    txn: Option<u64>,
    holds: Vec<String>,
    taken_by: Option<String>,
    ago: u32,
    latest: Option<String>,
    age_ns: u64,
    idle_ns: u64,
    facts: SavedFacts,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct SavedWait {
    number: u64,
    began_us: i64,
    waited_ns: u64,
    outcome: String,
    tag: SavedTag,
    mode: String,
    waiter: SavedParty,
    blocker: Option<SavedParty>,
    root: Option<SavedParty>,
    depth: u32,
    count: u64,
    total_ns: u64,
    histogram: Vec<u64>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct SavedParticipant {
    pid: i32,
    session: u32,
    local: u64,
    txn: Option<u64>,
    wanted: SavedTag,
    mode: String,
    waited_ns: u64,
    held: SavedTag,
    held_modes: Vec<String>,
    held_by: Option<String>,
    statements: Vec<String>,
    facts: SavedFacts,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct SavedDeadlock {
    number: u64,
    at_us: i64,
    found_in_ns: u64,
    by_scan: bool,
    participants: Vec<SavedParticipant>,
    context: String,
}

/// The text that is saved.
pub(super) fn saved(locks: &LockManager) -> String {
    let saved = Saved {
        waits: locks.history().records().iter().map(|record| save_wait(record)).collect(),
        deadlocks: locks.archive().reports().iter().map(|report| save_deadlock(report)).collect(),
    };
    serde_json::to_string(&saved).unwrap_or_default()
}

/// Takes in what was saved. What names a mode or a kind that this program does not know is left out.
pub(super) fn restore(locks: &LockManager, text: &str) -> Result<(), serde_json::Error> {
    let saved: Saved = serde_json::from_str(text)?;
    locks.history().restore(saved.waits.into_iter().filter_map(load_wait).collect());
    locks.archive().restore(saved.deadlocks.into_iter().filter_map(load_deadlock).collect());
    Ok(())
}

fn save_tag(tag: &LockTag) -> SavedTag {
    let plain = |kind, numbers| SavedTag { kind, numbers, key: Vec::new() };
    match tag {
        LockTag::Relation { database, relation } => plain('r', [u64::from(*database), *relation, 0]),
        LockTag::Row { tree, key } => SavedTag { key: key.to_vec(), ..plain('k', [tree.0, 0, 0]) },
        LockTag::UniqueKey { tree, key } => SavedTag { key: key.to_vec(), ..plain('u', [tree.0, 0, 0]) },
        LockTag::Place { tree, key } => SavedTag { key: key.to_vec(), ..plain('p', [tree.0, 0, 0]) },
        LockTag::Transaction(txn) => plain('t', [txn.0, 0, 0]),
        LockTag::VirtualTransaction(id) => plain('v', [u64::from(id.session), id.local, 0]),
        LockTag::Object { database, class, object } => plain('o', [u64::from(*database), u64::from(*class), *object]),
        LockTag::Advisory { database, key: AdvisoryKey::One(key) } => {
            plain('a', [u64::from(*database), *key as u64, 0])
        }
        LockTag::Advisory { database, key: AdvisoryKey::Two(a, b) } => {
            plain('b', [u64::from(*database), u64::from(*a as u32), u64::from(*b as u32)])
        }
    }
}

fn load_tag(tag: SavedTag) -> Option<LockTag> {
    let [a, b, c] = tag.numbers;
    let number = |n: u64| u32::try_from(n).ok();
    Some(match tag.kind {
        'r' => LockTag::Relation { database: number(a)?, relation: b },
        'k' => LockTag::Row { tree: TreeId(a), key: tag.key.into() },
        'u' => LockTag::UniqueKey { tree: TreeId(a), key: tag.key.into() },
        'p' => LockTag::Place { tree: TreeId(a), key: tag.key.into() },
        't' => LockTag::Transaction(TxnId(a)),
        'v' => LockTag::VirtualTransaction(VirtualId { session: number(a)?, local: b }),
        'o' => LockTag::Object { database: number(a)?, class: number(b)?, object: c },
        'a' => LockTag::Advisory { database: number(a)?, key: AdvisoryKey::One(b as i64) },
        'b' => LockTag::Advisory { database: number(a)?, key: AdvisoryKey::Two(number(b)? as i32, number(c)? as i32) },
        _ => return None,
    })
}

fn load_mode(name: &str) -> Option<LockMode> {
    ALL_MODES.into_iter().find(|mode| mode.name() == name)
}

fn save_modes(modes: ModeSet) -> Vec<String> {
    modes.iter().map(|mode| mode.name().to_owned()).collect()
}

fn load_modes(names: &[String]) -> ModeSet {
    names.iter().filter_map(|name| load_mode(name)).fold(ModeSet::EMPTY, ModeSet::with)
}

fn save_facts(facts: &Facts) -> SavedFacts {
    let Facts { application, user, database, parameters, state } = facts.clone();
    SavedFacts { application, user, database, parameters, state }
}

fn load_facts(facts: SavedFacts) -> Facts {
    let SavedFacts { application, user, database, parameters, state } = facts;
    Facts { application, user, database, parameters, state }
}

fn save_party(party: &Party) -> SavedParty {
    SavedParty {
        pid: party.pid,
        session: party.virtual_id.session,
        local: party.virtual_id.local,
        txn: party.txn.map(|txn| txn.0),
        holds: save_modes(party.holds),
        taken_by: party.taken_by.as_deref().map(str::to_owned),
        ago: party.ago,
        latest: party.latest.as_deref().map(str::to_owned),
        age_ns: party.age_ns,
        idle_ns: party.idle_ns,
        facts: save_facts(&party.facts),
    }
}

fn load_party(party: SavedParty) -> Party {
    Party {
        pid: party.pid,
        virtual_id: VirtualId { session: party.session, local: party.local },
        txn: party.txn.map(TxnId),
        holds: load_modes(&party.holds),
        taken_by: party.taken_by.map(Into::into),
        ago: party.ago,
        latest: party.latest.map(Into::into),
        age_ns: party.age_ns,
        idle_ns: party.idle_ns,
        facts: load_facts(party.facts),
    }
}

fn save_wait(record: &WaitRecord) -> SavedWait {
    SavedWait {
        number: record.number,
        began_us: record.began_us,
        waited_ns: record.waited_ns,
        outcome: record.outcome.name().to_owned(),
        tag: save_tag(&record.tag),
        mode: record.mode.name().to_owned(),
        waiter: save_party(&record.waiter),
        blocker: record.blocker.as_ref().map(save_party),
        root: record.root.as_ref().map(save_party),
        depth: record.depth,
        count: record.count,
        total_ns: record.total_ns,
        histogram: record.histogram.to_vec(),
    }
}

fn load_wait(saved: SavedWait) -> Option<WaitRecord> {
    Some(WaitRecord {
        number: saved.number,
        began_us: saved.began_us,
        waited_ns: saved.waited_ns,
        outcome: Outcome::of_name(&saved.outcome)?,
        tag: load_tag(saved.tag)?,
        mode: load_mode(&saved.mode)?,
        waiter: load_party(saved.waiter),
        blocker: saved.blocker.map(load_party),
        root: saved.root.map(load_party),
        depth: saved.depth,
        count: saved.count,
        total_ns: saved.total_ns,
        histogram: saved.histogram.into(),
    })
}

fn save_deadlock(report: &DeadlockReport) -> SavedDeadlock {
    let participant = |p: &Participant| SavedParticipant {
        pid: p.pid,
        session: p.virtual_id.session,
        local: p.virtual_id.local,
        txn: p.txn.map(|txn| txn.0),
        wanted: save_tag(&p.wanted),
        mode: p.mode.name().to_owned(),
        waited_ns: p.waited_ns,
        held: save_tag(&p.held),
        held_modes: save_modes(p.held_modes),
        held_by: p.held_by_statement.as_deref().map(str::to_owned),
        statements: p.statements.iter().map(|text| text.to_string()).collect(),
        facts: save_facts(&p.facts),
    };
    SavedDeadlock {
        number: report.number,
        at_us: report.at_us,
        found_in_ns: report.found_in_ns,
        by_scan: report.by_background_scan,
        participants: report.participants.iter().map(participant).collect(),
        context: report.context.clone(),
    }
}

fn load_deadlock(saved: SavedDeadlock) -> Option<DeadlockReport> {
    let participant = |p: SavedParticipant| {
        Some(Participant {
            pid: p.pid,
            virtual_id: VirtualId { session: p.session, local: p.local },
            txn: p.txn.map(TxnId),
            wanted: load_tag(p.wanted)?,
            mode: load_mode(&p.mode)?,
            waited_ns: p.waited_ns,
            held: load_tag(p.held)?,
            held_modes: load_modes(&p.held_modes),
            held_by_statement: p.held_by.map(Into::into),
            statements: p.statements.into_iter().map(Into::into).collect(),
            facts: load_facts(p.facts),
        })
    };
    Some(DeadlockReport {
        number: saved.number,
        at_us: saved.at_us,
        found_in_ns: saved.found_in_ns,
        by_background_scan: saved.by_scan,
        participants: saved.participants.into_iter().map(participant).collect::<Option<_>>()?,
        context: saved.context,
    })
}
