//! Judges the replies that transactions over one table got, by the order of commits.
//!
//! Every committed transaction has a place in the log, every statement a place up to which it reads. So what a statement must see is
//! known exactly: the table as the commits at or below its snapshot made it, with the changes of its own transaction. A reply that rests
//! on a newest version (a lock, a refusal) must agree with the table at some moment between the statement's snapshot and its reply.
//! The rule of the replies: each reply is still true if only the commits that a crash left had happened.

use std::collections::{BTreeMap, BTreeSet};

use clearway_engine::embedded::Isolation;
use clearway_storage::ids::Lsn;

pub type Key = i64;

/// Where the table beside the table stands among the keys: what is there or not is an object of the catalog.
pub const CATALOG: Key = -1;

/// A row; `v` is unique among all versions of all rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    pub a: i64,
    pub u: i64,
    pub v: i64,
}

pub type Rows = BTreeMap<Key, Row>;
/// What a transaction has changed so far.
pub type Own = BTreeMap<Key, Option<Row>>;

/// What a statement answered.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// A row, by its key, in the statement's snapshot.
    Point(Key, Option<Row>),
    /// All rows of the snapshot.
    Table(Rows),
    /// The newest version of a row, which it then locked or changed, or found to be none.
    Newest(Key, Option<Row>),
    /// 23505 for the primary key.
    DuplicateKey(Key),
    /// 23505 for `u`, for the row with this key.
    DuplicateU(Key, i64),
    /// 40001, because of this row.
    Conflict(Key),
    /// The whole table was locked against writers, asked for when this was visible: each transaction that wrote to it meanwhile has ended.
    Locked(Lsn),
}

/// One answer.
#[derive(Clone, Debug)]
pub struct ObservedReply {
    pub read_lsn: Lsn,
    /// What was visible when the statement had ended.
    pub upto: Lsn,
    /// The transaction's own changes before the statement.
    pub own: Own,
    pub reply: Reply,
    /// It went out to the client: what it depended on was waited for.
    pub given: bool,
}

/// A change, and the version that it replaced, as its maker saw it under the row's lock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Write {
    pub key: Key,
    pub before: Option<Row>,
    pub after: Option<Row>,
}

/// One transaction.
#[derive(Clone, Debug)]
pub struct Txn {
    pub isolation: Isolation,
    pub told: Vec<ObservedReply>,
    pub writes: Vec<Write>,
    /// Where it stands among the commits, whether or not its client knows.
    pub commit: Option<Lsn>,
    /// Its client was told that it committed.
    pub acknowledged: bool,
}

/// Why a history is wrong. The first number is the transaction's place in the history.
#[derive(Clone, Debug, PartialEq)]
#[allow(dead_code, reason = "read by people")]
pub enum Wrong {
    /// A statement saw what its snapshot does not have.
    Snapshot { txn: usize, told: String, expected: String },
    /// An answer about a newest version that never was the newest while the statement ran.
    Never { txn: usize, told: String },
    /// A change replaced another version than its maker saw: an update was lost.
    LostUpdate { txn: usize, key: Key, saw: Option<Row>, replaced: Option<Row> },
    /// Repeatable read: another transaction's commit lies between the snapshot and the change.
    NotFirst { txn: usize, key: Key, other: usize },
    /// Repeatable read: two snapshots in one transaction.
    TwoSnapshots { txn: usize },
    /// Two rows with one value in the unique index.
    NotUnique { after: Lsn, u: i64 },
    /// Acknowledged, and gone after the crash.
    Lost { txn: usize, commit: Lsn, left: Lsn },
    /// A reply that is not true of what the crash left.
    Reply { txn: usize, told: String, left: Lsn },
    /// What the crash left is no prefix of the commits.
    Left { expected: String, found: String },
}

/// A history with its states.
pub struct Oracle<'h> {
    history: &'h [Txn],
    /// After each commit, in order; the first before any.
    states: Vec<(Lsn, Rows)>,
    found: Vec<Wrong>,
}

fn apply(rows: &mut Rows, key: Key, row: Option<Row>) {
    match row {
        Some(row) => drop(rows.insert(key, row)),
        None => drop(rows.remove(&key)),
    }
}

fn with(rows: &Rows, own: &Own) -> Rows {
    let mut rows = rows.clone();
    own.iter().for_each(|(key, row)| apply(&mut rows, *key, *row));
    rows
}

/// The changes of the catalog are no rows of the table.
fn table(mut rows: Rows) -> Rows {
    rows.remove(&CATALOG);
    rows
}

impl<'h> Oracle<'h> {
    /// Replays the commits.
    pub fn new(history: &'h [Txn]) -> Oracle<'h> {
        let mut oracle = Oracle { history, states: vec![(Lsn::ZERO, Rows::new())], found: Vec::new() };
        let mut commits: Vec<(Lsn, usize)> =
            history.iter().enumerate().filter_map(|(at, txn)| Some((txn.commit?, at))).collect();
        commits.sort();
        for (lsn, at) in commits {
            oracle.replay(lsn, at);
        }
        oracle
    }

    fn replay(&mut self, lsn: Lsn, at: usize) {
        let txn = &self.history[at];
        let mut rows = self.states[self.states.len() - 1].1.clone();
        for write in &txn.writes {
            let replaced = rows.get(&write.key).copied();
            if replaced != write.before {
                let (key, saw) = (write.key, write.before);
                self.found.push(Wrong::LostUpdate { txn: at, key, saw, replaced });
            }
            apply(&mut rows, write.key, write.after);
        }
        let mut us: Vec<i64> = table(rows.clone()).values().map(|row| row.u).collect();
        us.sort_unstable();
        if let Some(pair) = us.windows(2).find(|pair| pair[0] == pair[1]) {
            self.found.push(Wrong::NotUnique { after: lsn, u: pair[0] });
        }
        self.states.push((lsn, rows));
    }

    fn at(&self, lsn: Lsn) -> &Rows {
        let after = self.states.partition_point(|(commit, _)| *commit <= lsn);
        &self.states[after - 1].1
    }

    /// The states that were the newest at some time from `from` to `to`.
    fn between(&self, from: Lsn, to: Lsn) -> impl Iterator<Item = &Rows> {
        let first = self.states.partition_point(|(commit, _)| *commit <= from) - 1;
        let last = self.states.partition_point(|(commit, _)| *commit <= to);
        self.states[first..last.max(first + 1)].iter().map(|(_, rows)| rows)
    }

    /// Whether an answer is true if no commit behind `end` ever was.
    fn holds(&self, told: &ObservedReply, end: Lsn) -> bool {
        let (from, to) = (told.read_lsn.min(end), told.upto.min(end));
        let newest = |is: &dyn Fn(&Rows) -> bool| self.between(from, to).any(|rows| is(&with(rows, &told.own)));
        match &told.reply {
            Reply::Point(key, row) => with(self.at(from), &told.own).get(key) == row.as_ref(),
            Reply::Table(rows) => table(with(self.at(from), &told.own)) == *rows,
            Reply::Newest(key, row) => newest(&|rows| rows.get(key) == row.as_ref()),
            Reply::DuplicateKey(key) => newest(&|rows| rows.contains_key(key)),
            Reply::DuplicateU(own, u) => newest(&|rows| rows.iter().any(|(key, row)| key != own && row.u == *u)),
            Reply::Locked(from) => !self.history.iter().any(|other| {
                let waited_for = other.commit.is_some_and(|commit| commit > *from && commit <= told.upto);
                waited_for && other.commit > Some(end) && other.writes.iter().any(|write| write.key != CATALOG)
            }),
            Reply::Conflict(key) => self.history.iter().any(|other| {
                let later = other.commit.is_some_and(|commit| commit > told.read_lsn && commit <= to);
                later && other.writes.iter().any(|write| write.key == *key)
            }),
        }
    }

    /// Isolation: what was seen and changed fits the order of commits, whether or not it was durable.
    pub fn isolation(mut self) -> Vec<Wrong> {
        for (at, txn) in self.history.iter().enumerate() {
            for told in &txn.told {
                if self.holds(told, Lsn(u64::MAX)) {
                    continue;
                }
                let said = format!("{told:?}");
                self.found.push(match &told.reply {
                    Reply::Point(..) | Reply::Table(_) => {
                        let expected = format!("{:?}", with(self.at(told.read_lsn), &told.own));
                        Wrong::Snapshot { txn: at, told: said, expected }
                    }
                    _ => Wrong::Never { txn: at, told: said },
                });
            }
            if txn.isolation == Isolation::RepeatableRead {
                self.repeatable(at, txn);
            }
        }
        self.found
    }

    fn repeatable(&mut self, at: usize, txn: &Txn) {
        let Some(first) = txn.told.first() else { return };
        if txn.told.iter().any(|told| told.read_lsn != first.read_lsn) {
            self.found.push(Wrong::TwoSnapshots { txn: at });
        }
        let Some(commit) = txn.commit else { return };
        let mut seen = BTreeSet::from([CATALOG]);
        for write in &txn.writes {
            // A new row under the key of one that was deleted meanwhile is no change of that one.
            if !seen.insert(write.key) || write.before.is_none() {
                continue;
            }
            let between = |other: &Txn| other.commit.is_some_and(|lsn| lsn > first.read_lsn && lsn < commit);
            let other = self.history.iter().position(|o| between(o) && o.writes.iter().any(|w| w.key == write.key));
            if let Some(other) = other {
                self.found.push(Wrong::NotFirst { txn: at, key: write.key, other });
            }
        }
    }

    /// The rule of the replies: `left` is the last commit that the crash left, `rows` the table then.
    pub fn replies(mut self, left: Lsn, rows: &Rows) -> Vec<Wrong> {
        self.found.clear();
        let expected = self.at(left);
        if expected != rows {
            self.found.push(Wrong::Left { expected: format!("{expected:?}"), found: format!("{rows:?}") });
        }
        for (at, txn) in self.history.iter().enumerate() {
            if let Some(commit) = txn.commit
                && txn.acknowledged
                && commit > left
            {
                self.found.push(Wrong::Lost { txn: at, commit, left });
            }
            for told in txn.told.iter().filter(|told| told.given) {
                if !self.holds(told, left) {
                    self.found.push(Wrong::Reply { txn: at, told: format!("{told:?}"), left });
                }
            }
        }
        self.found
    }
}
