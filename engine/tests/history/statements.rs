//! The statements of the workload over one table with two indexes, as the layer above would run them.

use std::sync::Arc;

use clearway_engine::catalog::{Object, Schema};
use clearway_engine::embedded::{Direction, Isolation};
use clearway_engine::error::EngineError;
use clearway_engine::session::Session;
use clearway_engine::table::shape::TableShape;
use clearway_engine::value::Value;
use clearway_storage::btree::KeyRange;
use clearway_txn::error::TxnError;
use clearway_txn::lockmgr::{IfTaken, LockMode, LockScope, LockTag};
use clearway_txn::mvcc::book::View;
use clearway_txn::transaction::{Basis, Changed};

use super::oracle::{CATALOG, Key, Reply, Row, Rows, Write};

/// How many keys, and values of the unique column, there are.
pub const KEYS: i64 = 5;
pub const US: i64 = 7;
const DATABASE: u32 = 6;

/// A statement.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    Point(Key),
    Table,
    Catalog,
    Insert(Key, Row),
    /// Found in the snapshot (and locked if it is no longer the newest version), or locked at once.
    Update(Key, Row, bool),
    Delete(Key, bool),
    /// To another key.
    Move(Key, Key, i64),
    /// All rows with this `a` get the next one: by the index that it changes.
    Bump(i64, i64),
    LockRow(Key, LockMode),
    LockTable(LockMode),
    /// Creates the object beside the table, or drops it.
    Toggle,
    Pause,
}

/// What a statement did.
#[derive(Debug, Default)]
pub struct StatementEffects {
    pub replies: Vec<Reply>,
    pub writes: Vec<Write>,
}

/// Why it did not.
#[derive(Debug)]
pub enum Refused {
    /// What it did is to be undone; the transaction goes on.
    Statement(Reply),
    /// The transaction has failed, because of this row.
    Conflict(Key),
    Deadlock,
    Other(EngineError),
}

impl From<EngineError> for Refused {
    fn from(error: EngineError) -> Refused {
        match error {
            EngineError::Txn(TxnError::Deadlock(_)) => Refused::Deadlock,
            error => Refused::Other(error),
        }
    }
}

/// The values of a row; some do not fit a leaf.
fn values(key: Key, row: Row) -> Vec<Value> {
    let pad = match row.v % 40 {
        0 => 9_000,
        n if n % 7 == 0 => 700,
        n => n as usize,
    };
    vec![
        Value::Int(key),
        Value::Int(row.a),
        Value::Int(row.u),
        Value::Int(row.v),
        Value::bytes(&vec![row.v as u8; pad]),
    ]
}

fn int(value: &Value) -> i64 {
    match value {
        Value::Int(int) => *int,
        other => panic!("no integer: {other:?}"),
    }
}

/// The row that these values are, if they belong together.
pub fn row_of(found: &[Value]) -> (Key, Row) {
    let row = Row { a: int(&found[1]), u: int(&found[2]), v: int(&found[3]) };
    assert_eq!(found, values(int(&found[0]), row), "a row is the one that was written");
    (int(&found[0]), row)
}

pub fn key_bytes(shape: &TableShape, key: Key) -> Vec<u8> {
    shape.key_prefix(&[Value::Int(key)])
}

/// Runs statements of one transaction in one view.
pub struct Runner<'s> {
    pub session: &'s mut Session,
    pub shape: &'s Arc<TableShape>,
    pub view: View,
    pub isolation: Isolation,
}

/// A row that is about to be changed.
struct Target {
    key: Key,
    row: Row,
    basis: Basis,
}

impl Runner<'_> {
    pub async fn run(&mut self, step: Step) -> Result<StatementEffects, Refused> {
        let mode = match step {
            Step::Pause | Step::Catalog | Step::Toggle => None,
            Step::Point(_) | Step::Table => Some(LockMode::AccessShare),
            Step::LockRow(..) => Some(LockMode::RowShare),
            Step::LockTable(mode) => Some(mode),
            _ => Some(LockMode::RowExclusive),
        };
        let asked = self.session.db().transactions().visible_lsn();
        if let Some(mode) = mode {
            let tag = LockTag::Relation { database: DATABASE, relation: u64::from(self.shape.oid) };
            self.session.lock(tag, mode, LockScope::Transaction, IfTaken::Wait).await?;
        }
        match step {
            Step::Pause => {
                clearway_base::testkit::yield_now().await;
                Ok(StatementEffects::default())
            }
            Step::LockTable(_) => Ok(StatementEffects { replies: vec![Reply::Locked(asked)], writes: Vec::new() }),
            Step::Point(key) => self.point(key).await,
            Step::Table => self.table().await,
            Step::Catalog => {
                Ok(StatementEffects { replies: vec![Reply::Newest(CATALOG, extra(self.session))], writes: Vec::new() })
            }
            Step::Insert(key, row) => self.insert(key, row).await,
            Step::Update(key, row, locks) => self.update(key, row, locks).await,
            Step::Delete(key, locks) => self.delete(key, locks).await,
            Step::Move(from, to, v) => self.go(from, to, v).await,
            Step::Bump(a, v) => self.bump(a, v).await,
            Step::LockRow(key, mode) => {
                let (at, row) = self.newest(key, mode).await?;
                Ok(StatementEffects { replies: vec![Reply::Newest(at, row.map(|t| t.row))], writes: Vec::new() })
            }
            Step::Toggle => self.toggle().await,
        }
    }

    async fn point(&mut self, key: Key) -> Result<StatementEffects, Refused> {
        let found = self.session.get(self.shape, &self.view, &key_bytes(self.shape, key)).await?;
        let reply = Reply::Point(key, found.map(|row| row_of(&row).1));
        Ok(StatementEffects { replies: vec![reply], writes: Vec::new() })
    }

    async fn table(&mut self) -> Result<StatementEffects, Refused> {
        let rows = read_table(self.session, self.shape, &self.view).await?;
        Ok(StatementEffects { replies: vec![Reply::Table(rows)], writes: Vec::new() })
    }

    /// A duplicate, as the reply that it is.
    fn duplicate<T>(&self, result: Result<T, EngineError>, key: Key, u: i64) -> Result<T, Refused> {
        result.map_err(|error| match error {
            EngineError::Duplicate { index, .. } if index == "t_u" => Refused::Statement(Reply::DuplicateU(key, u)),
            EngineError::Duplicate { .. } => Refused::Statement(Reply::DuplicateKey(key)),
            // Where the snapshot has a row that was deleted since.
            EngineError::Txn(TxnError::ConcurrentDelete) => Refused::Conflict(key),
            error => error.into(),
        })
    }

    async fn insert(&mut self, key: Key, row: Row) -> Result<StatementEffects, Refused> {
        let inserted = self.session.insert(self.shape, &values(key, row)).await;
        self.duplicate(inserted, key, row.u)?;
        Ok(StatementEffects { replies: Vec::new(), writes: vec![Write { key, before: None, after: Some(row) }] })
    }

    /// Locks a row, where it is by now, and reads its newest version.
    async fn newest(&mut self, key: Key, mode: LockMode) -> Result<(Key, Option<Target>), Refused> {
        let mut key = key;
        loop {
            let bytes = key_bytes(self.shape, key);
            let Some(locked) = self.session.lock_row(self.shape, &bytes, mode, IfTaken::Wait).await? else {
                return Ok((key, None));
            };
            if self.isolation == Isolation::RepeatableRead && locked.commit > self.view.read_lsn {
                return Err(Refused::Conflict(key));
            }
            match locked.moved_to {
                Some(to) if locked.ghost && locked.mine.is_none() => {
                    let moved = (0..KEYS).find(|k| *key_bytes(self.shape, *k) == *to);
                    key = moved.expect("a row moves to a key of the workload");
                }
                _ if locked.ghost => return Ok((key, None)),
                _ => {
                    let (_, row) = row_of(&locked.row);
                    return Ok((key, Some(Target { key, row, basis: Basis::Locked })));
                }
            }
        }
    }

    /// The row to be changed, and how sure that is.
    async fn target(&mut self, key: Key, mode: LockMode, locks: bool) -> Result<(Reply, Option<Target>), Refused> {
        if locks {
            let (at, target) = self.newest(key, mode).await?;
            return Ok((Reply::Newest(at, target.as_ref().map(|t| t.row)), target));
        }
        let found = self.session.get(self.shape, &self.view, &key_bytes(self.shape, key)).await?;
        let row = found.map(|row| row_of(&row).1);
        let target = row.map(|row| Target { key, row, basis: Basis::Read(self.view) });
        Ok((Reply::Point(key, row), target))
    }

    /// What to do when the row that was read is not the newest version.
    async fn again(&mut self, key: Key, mode: LockMode) -> Result<(Reply, Option<Target>), Refused> {
        if self.isolation == Isolation::RepeatableRead {
            return Err(Refused::Conflict(key));
        }
        let (at, target) = self.newest(key, mode).await?;
        Ok((Reply::Newest(at, target.as_ref().map(|t| t.row)), target))
    }

    async fn update(&mut self, key: Key, row: Row, locks: bool) -> Result<StatementEffects, Refused> {
        let mode = LockMode::RowUpdate;
        let mut found = self.target(key, mode, locks).await?;
        loop {
            let (reply, Some(target)) = found else {
                return Ok(StatementEffects { replies: vec![found.0], writes: Vec::new() });
            };
            let (at, bytes) = (target.key, key_bytes(self.shape, target.key));
            let (old, new) = (values(at, target.row), values(at, row));
            let updated = self.session.update(self.shape, &bytes, &old, &new, target.basis).await;
            match self.duplicate(updated, at, row.u)? {
                Changed::Done => {
                    let write = Write { key: at, before: Some(target.row), after: Some(row) };
                    return Ok(StatementEffects { replies: vec![reply], writes: vec![write] });
                }
                Changed::Newer => found = self.again(at, mode).await?,
                other => panic!("one statement changes a row once: {other:?}"),
            }
        }
    }

    async fn delete(&mut self, key: Key, locks: bool) -> Result<StatementEffects, Refused> {
        let mode = LockMode::RowUpdate;
        let mut found = self.target(key, mode, locks).await?;
        loop {
            let (reply, Some(target)) = found else {
                return Ok(StatementEffects { replies: vec![found.0], writes: Vec::new() });
            };
            let (at, bytes) = (target.key, key_bytes(self.shape, target.key));
            let old = values(at, target.row);
            match self.session.delete(self.shape, &bytes, &old, target.basis).await? {
                Changed::Done => {
                    let write = Write { key: at, before: Some(target.row), after: None };
                    return Ok(StatementEffects { replies: vec![reply], writes: vec![write] });
                }
                Changed::Newer => found = self.again(at, mode).await?,
                other => panic!("one statement deletes a row once: {other:?}"),
            }
        }
    }

    async fn go(&mut self, from: Key, to: Key, v: i64) -> Result<StatementEffects, Refused> {
        let (at, target) = self.newest(from, LockMode::RowUpdate).await?;
        let reply = Reply::Newest(at, target.as_ref().map(|t| t.row));
        let Some(target) = target.filter(|_| at != to) else {
            return Ok(StatementEffects { replies: vec![reply], writes: Vec::new() });
        };
        let new = Row { v, ..target.row };
        let (old, bytes) = (values(at, target.row), key_bytes(self.shape, at));
        let moved = self.session.update(self.shape, &bytes, &old, &values(to, new), Basis::Locked).await;
        assert_eq!(self.duplicate(moved, to, new.u)?, Changed::Done, "a locked row is as it was read");
        let leaves = Write { key: at, before: Some(target.row), after: None };
        let comes = Write { key: to, before: None, after: Some(new) };
        Ok(StatementEffects { replies: vec![reply], writes: vec![leaves, comes] })
    }

    async fn bump(&mut self, a: i64, v: i64) -> Result<StatementEffects, Refused> {
        let range = KeyRange::prefix(&self.shape.indexes[0].prefix(&[Value::Int(a)]));
        let mut scan = self.session.index_scan(self.shape, 0, range, Direction::Forward, &self.view);
        let mut did = StatementEffects::default();
        while let Some(found) = self.session.next_by_index(&mut scan).await? {
            let (key, row) = row_of(&found.row);
            let mut target = Target { key, row, basis: Basis::Read(self.view) };
            let mut reply = Reply::Point(key, Some(row));
            loop {
                let new = Row { a: target.row.a + 1, u: target.row.u, v: v + did.writes.len() as i64 };
                let (old, bytes) = (values(target.key, target.row), key_bytes(self.shape, target.key));
                let new_values = values(target.key, new);
                match self.session.update(self.shape, &bytes, &old, &new_values, target.basis).await? {
                    Changed::Done => {
                        did.replies.push(reply);
                        did.writes.push(Write { key: target.key, before: Some(target.row), after: Some(new) });
                        break;
                    }
                    // A row that moved here has been changed under its former key.
                    Changed::Again => break,
                    Changed::Newer => {}
                    other => panic!("{other:?}"),
                }
                let (next, newest) = self.again(target.key, LockMode::RowUpdate).await?;
                // Read committed: the newest version counts, if it still has the `a` that was looked for.
                match newest.filter(|t| t.row.a == a && !did.writes.iter().any(|w| w.key == t.key)) {
                    Some(again) => (target, reply) = (again, next),
                    None => break,
                }
            }
        }
        Ok(did)
    }

    async fn toggle(&mut self) -> Result<StatementEffects, Refused> {
        let tag = LockTag::Object { database: DATABASE, class: 1, object: 1 };
        self.session.lock(tag, LockMode::Exclusive, LockScope::Transaction, IfTaken::Wait).await?;
        let before = extra(self.session);
        let after = match before {
            Some(row) => {
                self.session.drop_object(row.v as u32).await?;
                None
            }
            None => {
                let oid = self.session.db().new_oid();
                let schema = Schema::new(oid, DATABASE, "extra", 10);
                self.session.put_object(Object::Schema(schema)).await?;
                Some(Row { a: 0, u: 0, v: i64::from(oid) })
            }
        };
        Ok(StatementEffects {
            replies: vec![Reply::Newest(CATALOG, before)],
            writes: vec![Write { key: CATALOG, before, after }],
        })
    }
}

/// The object beside the table, as the catalog of the moment has it.
pub fn extra(session: &mut Session) -> Option<Row> {
    let catalog = session.catalog();
    catalog.schema(DATABASE, "extra").map(|s| Row { a: 0, u: 0, v: i64::from(s.oid) })
}

/// The table, which is also what each index says.
pub async fn read_table(session: &mut Session, shape: &Arc<TableShape>, view: &View) -> Result<Rows, EngineError> {
    let mut scan = session.scan(shape, KeyRange::all(), Direction::Forward, view);
    let mut rows = Rows::new();
    while let Some(found) = session.next(&mut scan).await? {
        let (key, row) = row_of(&found.row);
        assert!(rows.insert(key, row).is_none(), "row {key} came twice");
    }
    for index in 0..shape.indexes.len() {
        let mut scan = session.index_scan(shape, index, KeyRange::all(), Direction::Backward, view);
        let mut found = Rows::new();
        while let Some(next) = session.next_by_index(&mut scan).await? {
            let (key, row) = row_of(&next.row);
            assert!(found.insert(key, row).is_none(), "index {} has row {key} twice", shape.indexes[index].name);
        }
        assert_eq!(found, rows, "TAB-1: index {} and the table at {view:?}", shape.indexes[index].name);
    }
    Ok(rows)
}
