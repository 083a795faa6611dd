//! Describes the session that blocks a statement: for the DETAIL of an error that ended a wait, for notices and for the log.
//!
//! # Invariants
//! - OBS-1: a client is shown the statement that took the lock only if its role may see the blocking session's statements in
//!   pg_stat_activity. The server's log always has the statement.

use std::fmt::Write as _;
use std::sync::atomic::Ordering::Relaxed;

use clearway_engine::catalog::{Catalog, Object};
use clearway_storage::ids::TreeId;
use clearway_txn::lockmgr::blockers::{Blocker, Obstacle};
use clearway_txn::lockmgr::{LockMode, LockTag};

use super::core::Core;
use super::privileges::Judge;
use clearway_syntax::error::SqlError;

/// The most blockers that are named; of the others only the number is given.
const NAMED_MAX: usize = 5;
/// The most characters of a statement that are shown.
const SHOWN_CHARS: usize = 200;

/// What the session waits for now; none if it waits for no lock. The engine's session may be lent.
pub fn now(core: &Core) -> Option<Obstacle> {
    core.db.transactions().locks().obstacle(core.backend.pid)
}

/// An error that ends a statement from outside (cancel, timeout), with the session that blocked it. To be called before the wait is given up.
pub fn explained(core: &Core, error: SqlError) -> SqlError {
    match now(core) {
        Some(mut obstacle) if matches!(error.code(), "57014" | "55P03") => {
            // Behind others in a queue: the holder of the lock matters more than the waiter ahead.
            if obstacle.blockers.iter().all(|b| b.modes.is_empty()) {
                let locks = core.db.transactions().locks();
                let mut holders = locks.holders_against(core.backend.pid, &obstacle.tag, obstacle.mode);
                holders.append(&mut obstacle.blockers);
                obstacle.blockers = holders;
            }
            detailed(core, error, &obstacle)
        }
        _ => error,
    }
}

/// The error of a lock that was taken and not waited for, with its holder.
pub fn refused(core: &Core, error: SqlError, tag: &LockTag, mode: LockMode) -> SqlError {
    let blockers = core.db.transactions().locks().holders_against(core.backend.pid, tag, mode);
    if blockers.is_empty() {
        return error;
    }
    detailed(core, error, &Obstacle { tag: tag.clone(), mode, since_ns: 0, blockers })
}

fn detailed(core: &Core, error: SqlError, obstacle: &Obstacle) -> SqlError {
    let detail = detail(core, obstacle, true);
    if detail.is_empty() { error } else { error.detail(detail) }
}

/// One line for each blocker; for the log with every statement, for the client by OBS-1.
pub fn detail(core: &Core, obstacle: &Obstacle, for_client: bool) -> String {
    let what = name(core, &obstacle.tag);
    let mut out = String::new();
    for blocker in obstacle.blockers.iter().take(NAMED_MAX) {
        if !out.is_empty() {
            out.push('\n');
        }
        line(core, blocker, &what, for_client, &mut out);
    }
    if obstacle.blockers.len() > NAMED_MAX {
        let _ = write!(out, "\nand {} more", obstacle.blockers.len() - NAMED_MAX);
    }
    out
}

fn line(core: &Core, blocker: &Blocker, what: &str, for_client: bool, out: &mut String) {
    let pid = blocker.pid;
    if blocker.modes.is_empty() {
        let _ = write!(out, "Process {pid} stands ahead in the queue for {what}.");
        return;
    }
    let modes: Vec<&str> = blocker.modes.iter().map(LockMode::name).collect();
    let _ = write!(out, "Process {pid} holds {} on {what}", modes.join(", "));
    match &blocker.statement {
        Some(statement) if !for_client || may_see(core, pid) => {
            let shown: String = statement.chars().take(SHOWN_CHARS).collect();
            let _ = write!(out, ", taken by: {shown}");
        }
        _ => out.push('.'),
    }
}

/// OBS-1
fn may_see(core: &Core, pid: i32) -> bool {
    let catalog = core.db.catalog();
    let role = core.backends.get(pid).map_or(0, |backend| backend.role.load(Relaxed));
    Judge::of(core, &catalog).may_watch(role)
}

/// What is locked.
pub fn name(core: &Core, tag: &LockTag) -> String {
    let catalog = core.db.catalog();
    match tag {
        LockTag::Relation { relation, .. } => match catalog.get(*relation as u32) {
            Some(object) => format!("relation \"{}\"", object.name()),
            None => format!("relation {relation}"),
        },
        LockTag::Row { tree, .. } => format!("a row of {}", named_by_tree(&catalog, *tree)),
        LockTag::UniqueKey { tree, .. } | LockTag::Place { tree, .. } => {
            format!("a key of {}", named_by_tree(&catalog, *tree))
        }
        other => plain_name(other),
    }
}

/// What is locked, where no catalog is needed to say it.
pub fn plain_name(tag: &LockTag) -> String {
    match tag {
        LockTag::Relation { relation, .. } => format!("relation {relation}"),
        LockTag::Row { tree, .. } => format!("a row of tree {}", tree.0),
        LockTag::UniqueKey { tree, .. } | LockTag::Place { tree, .. } => format!("a key of tree {}", tree.0),
        LockTag::Transaction(txn) => format!("transaction {}", txn.0),
        LockTag::VirtualTransaction(id) => format!("virtual transaction {id}"),
        LockTag::Object { class, object, .. } => format!("object {object} of class {class}"),
        LockTag::Advisory { database, key } => {
            let (class, object, sub) = key.columns();
            format!("advisory lock [{database},{class},{object},{sub}]")
        }
    }
}

/// The name of the table or index whose row, key or self is locked.
pub fn relation_of(catalog: &Catalog, tag: &LockTag) -> Option<String> {
    let named = |tree: TreeId| {
        let mut objects = catalog.objects();
        objects.find(|o| match &***o {
            Object::Relation(r) => r.tree == tree.0,
            Object::Index(i) => i.tree == tree.0,
            _ => false,
        })
    };
    let object = match tag {
        LockTag::Row { tree, .. } | LockTag::UniqueKey { tree, .. } | LockTag::Place { tree, .. } => named(*tree),
        LockTag::Relation { relation, .. } => u32::try_from(*relation).ok().and_then(|oid| catalog.get(oid)),
        _ => None,
    };
    object.map(|object| object.name().to_owned())
}

fn named_by_tree(catalog: &Catalog, tree: TreeId) -> String {
    let found = catalog.objects().find(|o| match &***o {
        Object::Relation(r) => r.tree == tree.0,
        Object::Index(i) => i.tree == tree.0,
        _ => false,
    });
    found.map_or_else(|| format!("tree {}", tree.0), |o| format!("\"{}\"", o.name()))
}
