//! The rows of pg_locks: locks in PostgreSQL's terms.
//!
//! The engine locks rows by tree and key, and the tag that a writer leaves in a row counts as a lock. PostgreSQL shows a wait for a row
//! as a wait for the holder's transaction id; the first waiter also holds a lock on the tuple, and the other waiters wait for that lock.
//! So this module adds the ids of each owner's transaction, and translates each row's wait queue into these terms.

use super::ViewOf;
use clearway_base::waits;
use clearway_context::backend::BackendState;
use clearway_context::core::now;
use clearway_engine::catalog::{Catalog, Object};
use clearway_exec::{Row, Run};
use clearway_storage::ids::TxnId;
use clearway_txn::lockmgr::view::LockRow;
use clearway_txn::lockmgr::{LockMode, LockTag};
use clearway_values::types::Datum;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::Ordering::Relaxed;

/// The rows of the views of this module.
pub const ROWS: &[ViewOf] = &[("pg_catalog", "pg_locks", locks)];

/// The oid of the view.
const PG_LOCKS: u32 = 12_073;

/// One line of the view.
#[derive(Clone)]
struct Line {
    kind: &'static str,
    database: Datum,
    relation: Datum,
    page: Datum,
    tuple: Datum,
    virtualxid: Datum,
    txn: Datum,
    class: [Datum; 3],
    mode: &'static str,
    granted: bool,
    /// None: as the lock that it is told of.
    fastpath: Option<bool>,
}

/// A time of the clock of wait events, microseconds since 2000.
fn since(at_ns: u64) -> i64 {
    now() - (waits::now_ns().saturating_sub(at_ns) / 1_000) as i64
}

impl Line {
    fn new(kind: &'static str, mode: &'static str, granted: bool) -> Self {
        let null = || Datum::Null;
        Self {
            kind,
            database: null(),
            relation: null(),
            page: null(),
            tuple: null(),
            virtualxid: null(),
            txn: null(),
            class: [null(), null(), null()],
            mode,
            granted,
            fastpath: None,
        }
    }

    /// The lock of a transaction on its own id.
    fn own(kind: &'static str, fastpath: bool) -> Self {
        Self { fastpath: Some(fastpath), ..Self::new(kind, "ExclusiveLock", true) }
    }

    fn row(self, of: &LockRow) -> Row {
        let [class, object, sub] = self.class;
        vec![
            Datum::text(self.kind),
            self.database,
            self.relation,
            self.page,
            self.tuple,
            self.virtualxid,
            self.txn,
            class,
            object,
            sub,
            Datum::text(of.virtual_id.to_string()),
            Datum::Int4(of.pid),
            Datum::text(self.mode),
            Datum::Bool(self.granted),
            Datum::Bool(self.fastpath.unwrap_or(of.fastpath)),
            if self.granted { Datum::Null } else { Datum::TimestampTz(since(of.since_ns)) },
        ]
    }
}

/// The table whose rows stand in a tree.
fn tables_by_tree(catalog: &Catalog) -> HashMap<u64, (u32, u32)> {
    let relations = catalog.objects().filter_map(|o| match &**o {
        Object::Relation(r) => Some((r.tree, (r.database, r.oid))),
        _ => None,
    });
    relations.collect()
}

/// The mode that PostgreSQL's heavyweight lock on a tuple has for a row lock.
fn tuple_mode(mode: LockMode) -> &'static str {
    match mode {
        LockMode::RowKeyShare => "AccessShareLock",
        LockMode::RowForShare => "RowShareLock",
        LockMode::RowNoKeyUpdate => "ExclusiveLock",
        _ => "AccessExclusiveLock",
    }
}

/// A page and tuple number made from a key: PostgreSQL shows these, and Clearway has only keys.
fn place(key: &[u8]) -> (i32, i16) {
    let hash = key.iter().fold(0xcbf2_9ce4_8422_2325u64, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x100_0000_01b3));
    ((hash >> 40) as i32 & 0x00ff_ffff, (hash & 0x3fff) as i16 + 1)
}

/// What a session's transaction holds of its own ids.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Ids {
    /// There is a transaction, and it has not given up its ids with its failure.
    any: bool,
    /// Levels below the transaction's own that have an id.
    levels: u32,
    /// A statement runs.
    active: bool,
}

impl Ids {
    fn of(run: &Run<'_>, pid: i32) -> Ids {
        let Some(backend) = run.core.backends.get(pid) else { return Ids { any: true, levels: 0, active: true } };
        let levels = backend.subtransactions.load(Relaxed);
        if pid == run.core.backend.pid {
            return Ids { any: true, levels, active: true };
        }
        let activity = backend.activity.lock();
        let active = activity.state.is_active();
        if activity.state != BackendState::IdleInTransactionAborted {
            return Ids { any: activity.xact_start_us != 0, levels, active };
        }
        // The innermost level has failed, and only that.
        let above = backend.savepoints.load(Relaxed);
        Ids { any: above > 0, levels: levels.min(above.saturating_sub(1)), active }
    }
}

fn locks(run: &Run<'_>) -> Vec<Row> {
    let catalog = &run.names.catalog;
    let trees = tables_by_tree(catalog);
    let list = run.core.db.transactions().locks().locks();
    let lines = Lines::new(&list);
    let mut out = Vec::new();
    let mut owners: BTreeMap<i32, LockRow> = BTreeMap::new();
    for lock in &list {
        owners.entry(lock.pid).or_insert_with(|| lock.clone());
        match &lock.tag {
            LockTag::Row { tree, key } => {
                if !lock.granted {
                    out.extend(row_wait(lock, trees.get(&tree.0).copied(), key, &lines));
                }
            }
            LockTag::UniqueKey { .. } | LockTag::Place { .. } => {
                if !lock.granted {
                    out.push(wait_for_holder(lock, &lines).row(lock));
                }
            }
            LockTag::Relation { relation, .. } => {
                out.push(plain(lock).row(lock));
                if lock.granted && goes_to_indexes(lock, run) {
                    for index in catalog.indexes(*relation as u32) {
                        let mut line = plain(lock);
                        line.relation = Datum::Oid(index.oid);
                        out.push(line.row(lock));
                    }
                }
            }
            _ => out.push(plain(lock).row(lock)),
        }
    }
    add_idle_transactions(run, &mut owners);
    let awaited = |id| list.iter().any(|l| !l.granted && l.tag == LockTag::VirtualTransaction(id));
    for lock in owners.values() {
        let ids = Ids::of(run, lock.pid);
        if !ids.any {
            continue;
        }
        let mut own = Line::own("virtualxid", !awaited(lock.virtual_id));
        own.virtualxid = Datum::text(lock.virtual_id.to_string());
        out.push(own.row(lock));
        if lock.pid == run.core.backend.pid {
            let mut own = Line { fastpath: Some(true), ..Line::new("relation", "AccessShareLock", true) };
            own.database = Datum::Oid(run.core.database);
            own.relation = Datum::Oid(PG_LOCKS);
            out.push(own.row(lock));
        }
        if let Some(txn) = lock.txn.filter(|_| has_id(lock.pid, &list)) {
            let mut own = Line::own("transactionid", false);
            own.txn = Datum::Oid(txn.0 as u32);
            out.push(own.row(lock));
            for level in 0..ids.levels {
                let mut own = Line::own("transactionid", false);
                // Savepoints have no ids here: a number that no transaction has stands for each.
                own.txn = Datum::Oid(u32::MAX - level - 64 * (lock.pid as u32 % 1024));
                out.push(own.row(lock));
            }
        }
    }
    out
}

/// Sessions whose transaction holds no lock: in PostgreSQL each holds its own virtual id.
fn add_idle_transactions(run: &Run<'_>, owners: &mut BTreeMap<i32, LockRow>) {
    for owner in run.core.db.transactions().locks().owners() {
        let pid = owner.pid();
        let runs = pid == run.core.backend.pid || run.core.backends.get(pid).is_some() && Ids::of(run, pid).any;
        if owners.contains_key(&pid) || !runs {
            continue;
        }
        let (virtual_id, txn) = (owner.virtual_id(), owner.txn());
        let tag = LockTag::VirtualTransaction(virtual_id);
        let mode = LockMode::Exclusive;
        let lock = LockRow {
            pid,
            virtual_id,
            txn,
            tag,
            mode,
            granted: true,
            fastpath: true,
            since_ns: 0,
            statement: None,
            ago: 0,
        };
        owners.insert(pid, lock);
    }
}

/// Whether PostgreSQL would have given the session's transaction an id: a session that waits for the first row that it locks has
/// none yet there, but has one here.
fn has_id(pid: i32, list: &[LockRow]) -> bool {
    let mut own = list.iter().filter(|l| l.pid == pid);
    let waits = own.clone().any(|l| !l.granted && matches!(l.tag, LockTag::Row { .. }));
    !waits
        || own.any(|l| {
            l.granted
                && (matches!(l.tag, LockTag::Row { .. })
                    || (matches!(l.tag, LockTag::Relation { .. })
                        && !matches!(l.mode, LockMode::AccessShare | LockMode::RowShare)))
        })
}

/// Statements that read or change rows lock the indexes of a table as they lock the table; INSERT without ON CONFLICT keeps them only until it ends,
/// LOCK TABLE does not lock them.
fn goes_to_indexes(lock: &LockRow, run: &Run<'_>) -> bool {
    let weak = matches!(lock.mode, LockMode::AccessShare | LockMode::RowShare | LockMode::RowExclusive);
    let text = lock.statement.as_deref().unwrap_or("").trim_start().as_bytes();
    let begins = |word: &[u8]| text.get(..word.len()).is_some_and(|w| w.eq_ignore_ascii_case(word));
    let has = |word: &[u8]| text.windows(word.len()).any(|w| w.eq_ignore_ascii_case(word));
    let inserted = lock.mode == LockMode::RowExclusive && begins(b"insert") && !has(b"on conflict");
    // What these only look at is not planned.
    let looks =
        begins(b"prepare") || begins(b"create") && (has(b" view ") && !has(b" materialized ") || has(b"(like "));
    weak && !begins(b"lock") && !looks && (!inserted || (lock.ago == 0 && Ids::of(run, lock.pid).active))
}

fn plain(lock: &LockRow) -> Line {
    let mut line = Line::new(lock.tag.kind(), lock.mode.name(), lock.granted);
    match &lock.tag {
        LockTag::Relation { database, relation } => {
            line.database = Datum::Oid(*database);
            line.relation = Datum::Oid(*relation as u32);
        }
        LockTag::Transaction(txn) => line.txn = Datum::Oid(txn.0 as u32),
        LockTag::VirtualTransaction(v) => line.virtualxid = Datum::text(v.to_string()),
        LockTag::Object { database, class, object } => {
            line.database = Datum::Oid(*database);
            line.class = [Datum::Oid(*class), Datum::Oid(*object as u32), Datum::Int2(0)];
        }
        LockTag::Advisory { database, key } => {
            let (class, object, sub) = key.columns();
            line.database = Datum::Oid(*database);
            line.class = [Datum::Oid(class), Datum::Oid(object), Datum::Int2(sub as i16)];
        }
        LockTag::Row { .. } | LockTag::UniqueKey { .. } | LockTag::Place { .. } => {}
    }
    line
}

/// Holders and waiters by what they hold or want, made of one list of locks: so that a view asks the lock table for nothing, however
/// many wait.
pub(super) struct Lines<'l> {
    /// Holders, then waiters as they came.
    by_tag: HashMap<&'l LockTag, Vec<&'l LockRow>>,
    /// The transactions for whose end sessions wait.
    awaited: HashMap<i32, TxnId>,
}

impl<'l> Lines<'l> {
    pub(super) fn new(list: &'l [LockRow]) -> Self {
        let mut by_tag: HashMap<&LockTag, Vec<&LockRow>> = HashMap::new();
        let of_keys =
            |l: &&LockRow| matches!(l.tag, LockTag::Row { .. } | LockTag::UniqueKey { .. } | LockTag::Place { .. });
        for lock in list.iter().filter(of_keys) {
            by_tag.entry(&lock.tag).or_default().push(lock);
        }
        by_tag.values_mut().for_each(|line| line.sort_by_key(|l| (!l.granted, l.since_ns)));
        let waits = list.iter().filter(|l| !l.granted);
        let ends = waits.filter_map(|l| if let LockTag::Transaction(txn) = l.tag { Some((l.pid, txn)) } else { None });
        Self { by_tag, awaited: ends.collect() }
    }

    /// Whether it conflicts with no earlier waiter: in PostgreSQL it has the tuple's lock.
    pub(super) fn is_first(&self, wait: &LockRow) -> bool {
        let line = self.by_tag.get(&wait.tag).into_iter().flatten();
        let mut ahead = line.filter(|l| !l.granted).take_while(|l| l.pid != wait.pid);
        !ahead.any(|l| wait.mode.conflicts_with(l.mode))
    }

    /// A transaction that holds what is wanted or, else, wanted it before.
    fn blocker(&self, wait: &LockRow) -> Option<TxnId> {
        let line = self.by_tag.get(&wait.tag).into_iter().flatten().take_while(|l| l.granted || l.pid != wait.pid);
        if let (LockTag::Place { .. }, Some(first)) = (&wait.tag, line.clone().find(|l| l.granted))
            && let Some(awaited) = self.awaited.get(&first.pid)
        {
            return Some(*awaited); // TXN-15
        }
        let against = line.filter(|l| l.pid != wait.pid && wait.mode.conflicts_with(l.mode));
        // PostgreSQL waits for one holder after the other, by their ids.
        against.filter_map(|l| l.txn.map(|txn| (!l.granted, txn.0))).min().map(|(_, txn)| TxnId(txn))
    }
}

/// A wait for the end of the transaction that holds what is wanted.
fn wait_for_holder(lock: &LockRow, lines: &Lines<'_>) -> Line {
    let mut line = Line::new("transactionid", "ShareLock", false);
    line.txn = lines.blocker(lock).map_or(Datum::Null, |t| Datum::Oid(t.0 as u32));
    line
}

/// The first in a row's queue holds the tuple and waits for the holder's id; the others wait for the tuple.
fn row_wait(lock: &LockRow, table: Option<(u32, u32)>, key: &[u8], lines: &Lines<'_>) -> Vec<Row> {
    let first = lines.is_first(lock);
    let mut tuple = Line::new("tuple", tuple_mode(lock.mode), first);
    if let Some((database, relation)) = table {
        let (page, number) = place(key);
        tuple.database = Datum::Oid(database);
        tuple.relation = Datum::Oid(relation);
        tuple.page = Datum::Int4(page);
        tuple.tuple = Datum::Int2(number);
    }
    let mut out = vec![tuple.row(lock)];
    if first {
        out.push(wait_for_holder(lock, lines).row(lock));
    }
    out
}
