//! The rows that say which large objects there are.

use std::sync::Arc;

use clearway_storage::btree::{Direction, KeyRange};
use clearway_storage::seams::BoxFuture;
use clearway_txn::error::TxnError;
use clearway_txn::lockmgr::{IfTaken, LockMode};
use clearway_txn::mvcc::book::View;
use clearway_txn::transaction::{Basis, Change, Changed};

use crate::catalog::{Acl, Oid};
use crate::error::EngineError;
use crate::session::Session;
use crate::table::shape::TableShape;
use crate::value::Value;

/// A large object, without what it holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LargeObject {
    /// Its number.
    pub oid: Oid,
    /// Its owner.
    pub owner: Oid,
    /// The privileges on it.
    pub acl: Acl,
    /// What COMMENT ON LARGE OBJECT has set.
    pub comment: Option<String>,
}

fn bad(what: &str) -> EngineError {
    EngineError::BadCatalog(format!("a large object: {what}"))
}

impl LargeObject {
    fn to_row(&self, database: Oid) -> Result<Vec<Value>, EngineError> {
        let acl = match self.acl.is_default() {
            true => Value::Null,
            false => Value::bytes(serde_json::to_string(&self.acl).map_err(|e| bad(&e.to_string()))?.as_bytes()),
        };
        let comment = self.comment.as_ref().map_or(Value::Null, |text| Value::bytes(text.as_bytes()));
        let number = |oid: Oid| Value::Int(i64::from(oid));
        Ok(vec![number(database), number(self.oid), number(self.owner), acl, comment])
    }

    fn of_row(row: &[Value]) -> Result<LargeObject, EngineError> {
        let [_, Value::Int(oid), Value::Int(owner), acl, comment] = row else {
            return Err(bad("its row has other columns"));
        };
        let number = |n: i64| Oid::try_from(n).map_err(|_| bad("a number is no oid"));
        let acl = match acl {
            Value::Bytes(text) => serde_json::from_slice(text).map_err(|e| bad(&e.to_string()))?,
            _ => Acl::default(),
        };
        let comment = match comment {
            Value::Bytes(text) => Some(String::from_utf8(text.to_vec()).map_err(|e| bad(&e.to_string()))?),
            _ => None,
        };
        Ok(LargeObject { oid: number(*oid)?, owner: number(*owner)?, acl, comment })
    }
}

impl Session {
    pub(super) fn large_object_key(&self, table: &TableShape, oid: Oid) -> Vec<u8> {
        table.key_prefix(&[Value::Int(i64::from(self.database())), Value::Int(i64::from(oid))])
    }

    /// Creates an empty object in the session's database; 0 as its number asks for a new one. None: there is one of this number.
    ///
    /// # Errors
    /// `Deadlock`; from the trees.
    pub async fn create_large_object(&mut self, oid: Oid, owner: Oid) -> Result<Option<Oid>, EngineError> {
        let (_, table) = self.db().clone().made_large_object_tables().await?;
        loop {
            let number = if oid == 0 { self.db().new_oid() } else { oid };
            let object = LargeObject { oid: number, owner, ..LargeObject::default() };
            let value = table.value_of(&object.to_row(self.database())?);
            let key = self.large_object_key(&table, number);
            let tree = table.rows(self.db().transactions()).clone();
            let change = Change::Insert { value: &value };
            match self.txn().change(&tree, &key, change, Basis::Locked, IfTaken::Wait).await? {
                Changed::Done => return Ok(Some(number)),
                // A number that a user has chosen, or that was given before the directory was opened.
                _ if oid == 0 => {}
                Changed::Newer => return Err(TxnError::ConcurrentDelete.into()),
                Changed::Exists { .. } | Changed::Again => return Ok(None),
            }
        }
    }

    /// The object of a number in the session's database as a view shows it (LOB-1).
    ///
    /// # Errors
    /// From the trees; a row that does not decode.
    pub async fn large_object(&mut self, view: &View, oid: Oid) -> Result<Option<LargeObject>, EngineError> {
        let Some(table) = self.metadata_table()? else { return Ok(None) };
        let key = self.large_object_key(&table, oid);
        self.get(&table, view, &key).await?.map(|row| LargeObject::of_row(&row)).transpose()
    }

    /// Locks an object and gives its newest version; none: there is no such object. LOB-2 says which modes exclude each other.
    ///
    /// # Errors
    /// `Deadlock`, `LockNotAvailable`; from the trees; a row that does not decode.
    pub async fn lock_large_object(&mut self, oid: Oid, mode: LockMode) -> Result<Option<LargeObject>, EngineError> {
        let Some(table) = self.metadata_table()? else { return Ok(None) };
        let key = self.large_object_key(&table, oid);
        let locked = self.lock_row(&table, &key, mode, IfTaken::Wait).await?;
        locked.filter(|locked| !locked.ghost).map(|locked| LargeObject::of_row(&locked.row)).transpose()
    }

    /// Replaces what is known of an object, which the caller has locked with `RowNoKeyUpdate`.
    ///
    /// # Errors
    /// From the trees.
    pub async fn change_large_object(&mut self, object: &LargeObject) -> Result<(), EngineError> {
        let Some(table) = self.metadata_table()? else { return Err(bad("it has no table")) };
        let key = self.large_object_key(&table, object.oid);
        let value = table.value_of(&object.to_row(self.database())?);
        let tree = table.rows(self.db().transactions()).clone();
        let change = Change::Update { value: &value, strength: LockMode::RowNoKeyUpdate };
        let changed = self.txn().change(&tree, &key, change, Basis::Locked, IfTaken::Wait).await?;
        assert!(matches!(changed, Changed::Done), "LOB-2: an object that is locked is there: {changed:?}");
        Ok(())
    }

    /// Deletes an object's row of metadata; its pages are to follow (`drop_pages`). False: there is no such object.
    ///
    /// # Errors
    /// As [`Session::lock_large_object`].
    pub async fn forget_large_object(&mut self, oid: Oid) -> Result<bool, EngineError> {
        // LOB-2
        if self.lock_large_object(oid, LockMode::RowUpdate).await?.is_none() {
            return Ok(false);
        }
        let Some(table) = self.metadata_table()? else { return Ok(false) };
        let key = self.large_object_key(&table, oid);
        let tree = table.rows(self.db().transactions()).clone();
        let change = Change::Delete { moved_to: None };
        let changed = self.txn().change(&tree, &key, change, Basis::Locked, IfTaken::Wait).await?;
        Ok(matches!(changed, Changed::Done))
    }

    /// Some objects of a database, in the order of their numbers from `from` on; fewer than `most`: there are no more.
    ///
    /// # Errors
    /// From the trees; a row that does not decode.
    pub async fn large_objects(
        &mut self,
        view: &View,
        database: Oid,
        from: Oid,
        most: usize,
    ) -> Result<Vec<LargeObject>, EngineError> {
        let mut found = Vec::new();
        let Some(table) = self.metadata_table()? else { return Ok(found) };
        let (first, next) = (i64::from(database), i64::from(database) + 1);
        let from = table.key_prefix(&[Value::Int(first), Value::Int(i64::from(from))]);
        let range = KeyRange::new(from, Some(table.key_prefix(&[Value::Int(next)])));
        let mut scan = self.scan(&table, range, Direction::Forward, view);
        while found.len() < most
            && let Some(row) = self.next(&mut scan).await?
        {
            found.push(LargeObject::of_row(&row.row)?);
        }
        Ok(found)
    }

    /// Deletes some pages and objects of another database, of which no session is left, as a view of what is newest shows them; whether there may be more.
    ///
    /// # Errors
    /// From the trees.
    pub fn drop_some_large_objects<'a>(
        &'a mut self,
        newest: &'a View,
        database: Oid,
        most: usize,
    ) -> BoxFuture<'a, Result<bool, EngineError>> {
        Box::pin(self.drop_some_of(newest, database, most))
    }

    async fn drop_some_of(&mut self, newest: &View, database: Oid, most: usize) -> Result<bool, EngineError> {
        let Some(tables) = self.page_table()?.zip(self.metadata_table()?) else { return Ok(false) };
        for table in [tables.0, tables.1] {
            if self.drop_some(newest, &table, database, most).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Deletes some of the rows of a database, which no other session changes.
    async fn drop_some(
        &mut self,
        newest: &View,
        table: &Arc<TableShape>,
        database: Oid,
        most: usize,
    ) -> Result<bool, EngineError> {
        let bound = |database: i64| table.key_prefix(&[Value::Int(database)]);
        let range = KeyRange::new(bound(i64::from(database)), Some(bound(i64::from(database) + 1)));
        let (keys, more) = self.some_keys(newest, table, range, most).await?;
        let tree = table.rows(self.db().transactions()).clone();
        for key in keys {
            let change = Change::Delete { moved_to: None };
            self.txn().change(&tree, &key, change, Basis::Locked, IfTaken::Wait).await?;
        }
        Ok(more)
    }

    /// The first keys of a range, and whether there are more.
    pub(super) async fn some_keys(
        &mut self,
        view: &View,
        table: &Arc<TableShape>,
        range: KeyRange,
        most: usize,
    ) -> Result<(Vec<Vec<u8>>, bool), EngineError> {
        let mut scan = self.scan(table, range, Direction::Forward, view);
        let mut keys = Vec::new();
        while let Some(row) = self.next(&mut scan).await? {
            if keys.len() == most {
                return Ok((keys, true));
            }
            keys.push(row.key);
        }
        Ok((keys, false))
    }
}
