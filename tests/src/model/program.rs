//! The programs of the sessions, and the bounds within which a scenario explores all states.

use super::mutation::Mutation;
use super::state::{Body, Lsn, ROWS, SESSIONS};

/// A change of one row by its key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// INSERT; a duplicate key if a live row is there.
    Insert(u8),
    /// UPDATE; no row if none is there.
    Update(u8),
    /// DELETE; no row if none is there.
    Delete,
}

/// One operation of a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Op {
    /// BEGIN (read committed).
    Begin,
    /// BEGIN ISOLATION LEVEL REPEATABLE READ.
    BeginRepeatableRead,
    /// BEGIN READ ONLY.
    BeginReadOnly,
    /// SELECT of these rows, in this order.
    Select(&'static [u8]),
    /// One statement that changes these rows, in this order.
    Write(&'static [(u8, Change)]),
    /// LOCK TABLE, held to the end of the transaction.
    LockTable,
    /// pg_advisory_xact_lock in a block, pg_advisory_lock outside.
    LockAdvisory,
    /// SAVEPOINT.
    Savepoint,
    /// ROLLBACK TO SAVEPOINT.
    RollbackToSavepoint,
    /// COMMIT.
    Commit,
    /// ROLLBACK.
    Rollback,
}

/// What runs beside the sessions, and how finely their steps are cut. Flushing, record by record, always runs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bounds {
    /// Crashes; each at every step, with every length of log that may have survived.
    pub crashes: u8,
    /// Dirty pages are written at any time.
    pub steal: bool,
    /// Tags are cleared, undo pruned, ghosts purged at any time; with `fine_snapshots` also versions between snapshots.
    pub prune: bool,
    /// Changes taken back lose their undo at any time that the readers' epochs allow.
    pub retire: bool,
    /// Checkpoints, of three steps each.
    pub checkpoints: u8,
    /// Undo records that go to the spill file.
    pub spills: u8,
    /// Copying a row, resolving its tag and validating the page are steps of their own; else they are one.
    pub fine_rows: bool,
    /// Loading, storing and re-checking a snapshot, publishing and scanning a horizon are steps of their own; else each
    /// is one.
    pub fine_snapshots: bool,
}

/// A scenario: programs, bounds, and what it is good for.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// Its name.
    pub name: &'static str,
    /// What it is about.
    pub about: &'static str,
    /// The rows at the beginning.
    pub rows: [Body; ROWS],
    /// The page of each table row, 0 or 1.
    pub pages: [u8; 3],
    /// The sessions' programs.
    pub programs: [&'static [Op]; SESSIONS],
    /// What a session runs after the first recovery, as soon as the database is open.
    pub after: &'static [Op],
    /// Sessions with `synchronous_commit = off`.
    pub asynchronous: [bool; SESSIONS],
    /// Statements look up the table in the catalog, whose row says that it exists.
    pub catalog: bool,
    /// What runs beside them.
    pub bounds: Bounds,
    /// The mutations that this scenario must find.
    pub kills: &'static [Mutation],
}

impl Scenario {
    /// The page of a row.
    pub fn page_of(&self, row: u8) -> usize {
        self.pages.get(row as usize).map_or(2, |&page| page as usize)
    }

    /// The value of a row in the initial contents.
    pub fn initially(&self, row: u8) -> Option<u8> {
        self.rows[row as usize].seen()
    }

    /// The program with this number; 3 is the one after recovery.
    pub fn program(&self, number: u8) -> &'static [Op] {
        self.programs.get(number as usize).copied().unwrap_or(self.after)
    }
}

/// The letter of a session.
pub fn letter(session: usize) -> char {
    (b'A' + session as u8) as char
}

/// The operation as a client would write it.
pub fn sql(op: &Op) -> String {
    let list = |rows: &[u8]| rows.iter().map(|&row| name(row)).collect::<Vec<_>>().join(", ");
    match op {
        Op::Begin => "BEGIN".into(),
        Op::BeginRepeatableRead => "BEGIN ISOLATION LEVEL REPEATABLE READ".into(),
        Op::BeginReadOnly => "BEGIN READ ONLY".into(),
        Op::Select(rows) => format!("SELECT {}", list(rows)),
        Op::Write(items) => items
            .iter()
            .map(|&(row, change)| match (row as usize, change) {
                (super::state::CATALOG, Change::Delete) => "DROP TABLE".into(),
                (_, Change::Insert(value)) => format!("INSERT {} = {value}", name(row)),
                (_, Change::Update(value)) => format!("UPDATE {} = {value}", name(row)),
                (_, Change::Delete) => format!("DELETE {}", name(row)),
            })
            .collect::<Vec<_>>()
            .join(" and "),
        Op::LockTable => "LOCK TABLE".into(),
        Op::LockAdvisory => "SELECT pg_advisory_lock".into(),
        Op::Savepoint => "SAVEPOINT".into(),
        Op::RollbackToSavepoint => "ROLLBACK TO SAVEPOINT".into(),
        Op::Commit => "COMMIT".into(),
        Op::Rollback => "ROLLBACK".into(),
    }
}

/// The name of a row.
pub fn name(row: u8) -> &'static str {
    ["r0", "r1", "r2", "the catalog's entry"][row as usize]
}

/// A body, in words.
pub fn body(body: Body) -> String {
    match body {
        Body::Absent => "nothing".into(),
        Body::Ghost => "a ghost".into(),
        Body::Value(value) => value.to_string(),
    }
}

/// What a reader sees, in words.
pub fn seen(seen: Option<u8>) -> String {
    seen.map_or("no row".into(), |value| format!("{value}"))
}

/// A position, in words.
pub fn position(lsn: Lsn) -> String {
    if lsn == 0 { "the beginning".into() } else { format!("LSN {lsn}") }
}
