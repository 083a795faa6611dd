//! What large objects hold, page by page.

use clearway_storage::btree::{Direction, KeyRange};
use clearway_storage::seams::BoxFuture;
use clearway_txn::error::TxnError;
use clearway_txn::lockmgr::{IfTaken, LockMode};
use clearway_txn::mvcc::book::View;
use clearway_txn::transaction::{Basis, Change, Changed};

use crate::catalog::Oid;
use crate::error::EngineError;
use crate::session::Session;
use crate::table::shape::TableShape;
use crate::value::Value;

/// How many bytes a page has at most: PostgreSQL's LOBLKSIZE.
pub const PAGE_BYTES: u64 = 2048;
/// How long an object is at most: PostgreSQL's MAX_LARGE_OBJECT_SIZE.
pub const OBJECT_BYTES_MAX: u64 = i32::MAX as u64 * PAGE_BYTES;

/// Number and bytes of a page, from its row.
fn page_of(row: &[Value]) -> Result<(u64, &[u8]), EngineError> {
    match row {
        [_, _, Value::Int(number), Value::Bytes(data)] if *number >= 0 && data.len() as u64 <= PAGE_BYTES => {
            Ok((*number as u64, data)) // LOB-4
        }
        _ => Err(EngineError::BadCatalog("a page of a large object".to_owned())),
    }
}

impl Session {
    fn page_key(&self, table: &TableShape, oid: Oid, page: u64) -> Vec<u8> {
        assert!(page < OBJECT_BYTES_MAX / PAGE_BYTES + 1, "LOB-4: page {page} is beyond the end of any object");
        let numbers = [i64::from(self.database()), i64::from(oid), page as i64];
        table.key_prefix(&numbers.map(Value::Int))
    }

    /// The key behind an object's last page.
    fn page_end(&self, table: &TableShape, oid: Oid) -> Vec<u8> {
        table.key_prefix(&[Value::Int(i64::from(self.database())), Value::Int(i64::from(oid) + 1)])
    }

    /// How many bytes an object has in a view (LOB-1, LOB-4).
    ///
    /// # Errors
    /// From the trees; a page that does not decode.
    pub async fn large_object_bytes(&mut self, view: &View, oid: Oid) -> Result<u64, EngineError> {
        let Some(table) = self.page_table()? else { return Ok(0) };
        let range = KeyRange::new(self.page_key(&table, oid, 0), Some(self.page_end(&table, oid)));
        let mut scan = self.scan(&table, range, Direction::Backward, view);
        let Some(last) = self.next(&mut scan).await? else { return Ok(0) };
        let (number, data) = page_of(&last.row)?;
        Ok(number * PAGE_BYTES + data.len() as u64)
    }

    /// Reads up to `bytes` bytes of an object from `offset` on, as a view shows them; fewer: the object ends there.
    ///
    /// # Errors
    /// From the trees; a page that does not decode.
    pub async fn read_large_object(
        &mut self,
        view: &View,
        oid: Oid,
        offset: u64,
        bytes: usize,
    ) -> Result<Vec<u8>, EngineError> {
        let mut out = Vec::new();
        let end = offset.saturating_add(bytes as u64).min(OBJECT_BYTES_MAX);
        let Some(table) = self.page_table()?.filter(|_| offset < end) else { return Ok(out) };
        let from = self.page_key(&table, oid, offset / PAGE_BYTES);
        // The next page beyond the range tells whether the object goes on there.
        let range = KeyRange::new(from, Some(self.page_end(&table, oid)));
        let mut scan = self.scan(&table, range, Direction::Forward, view);
        while let Some(row) = self.next(&mut scan).await? {
            let (number, data) = page_of(&row.row)?;
            let begin = number * PAGE_BYTES;
            let filled = (begin.clamp(offset, end) - offset) as usize;
            // LOB-4: what no page has.
            out.resize(out.len().max(filled), 0);
            if begin >= end {
                break;
            }
            let skipped = (offset.max(begin) - begin).min(data.len() as u64) as usize;
            let taken = (end - begin).min(data.len() as u64) as usize;
            out.extend_from_slice(&data[skipped..taken.max(skipped)]);
        }
        assert!(out.len() <= bytes, "{} bytes were asked for, {} read", bytes, out.len());
        Ok(out)
    }

    /// Some pages of the objects whose numbers are in `oids`, in order from page `from` of the first on: object, page, bytes. Fewer than
    /// `most`: there are no more.
    ///
    /// # Errors
    /// From the trees; a page that does not decode.
    pub async fn large_object_pages(
        &mut self,
        view: &View,
        oids: std::ops::RangeInclusive<Oid>,
        from: u64,
        most: usize,
    ) -> Result<Vec<(Oid, u64, Vec<u8>)>, EngineError> {
        let mut found = Vec::new();
        let Some(table) = self.page_table()? else { return Ok(found) };
        let range = KeyRange::new(self.page_key(&table, *oids.start(), from), Some(self.page_end(&table, *oids.end())));
        let mut scan = self.scan(&table, range, Direction::Forward, view);
        while found.len() < most
            && let Some(row) = self.next(&mut scan).await?
        {
            let (number, data) = page_of(&row.row)?;
            let oid = match row.row[1] {
                Value::Int(oid) => Oid::try_from(oid).unwrap_or(0),
                _ => 0,
            };
            found.push((oid, number, data.to_vec()));
        }
        Ok(found)
    }

    /// Writes bytes into an object from `offset` on. The caller holds `RowKeyShare` on the object (LOB-2).
    ///
    /// # Errors
    /// `Deadlock`, `ReadOnly`; from the trees.
    ///
    /// # Panics
    /// If the bytes do not end within [`OBJECT_BYTES_MAX`].
    pub async fn write_large_object(&mut self, oid: Oid, offset: u64, bytes: &[u8]) -> Result<(), EngineError> {
        let (mut offset, mut rest) = (offset, bytes);
        assert!(offset + rest.len() as u64 <= OBJECT_BYTES_MAX, "LOB-4: the caller has checked the end");
        while !rest.is_empty() {
            let within = (offset % PAGE_BYTES) as usize;
            let (now, later) = rest.split_at(rest.len().min(PAGE_BYTES as usize - within));
            self.change_page(oid, offset / PAGE_BYTES, &|page| {
                let end = within + now.len();
                page.resize(page.len().max(end), 0);
                page[within..end].copy_from_slice(now);
            })
            .await?;
            (offset, rest) = (offset + now.len() as u64, later);
        }
        Ok(())
    }

    /// Makes an object end at `bytes`, be it shorter or longer. Pages behind go with the calls of [`Session::drop_pages`] that have to follow.
    /// The caller holds `RowKeyShare` on the object (LOB-2).
    ///
    /// # Errors
    /// As [`Session::write_large_object`].
    ///
    /// # Panics
    /// If that is more than [`OBJECT_BYTES_MAX`].
    pub async fn truncate_large_object(&mut self, oid: Oid, bytes: u64) -> Result<(), EngineError> {
        assert!(bytes <= OBJECT_BYTES_MAX, "LOB-4: the caller has checked the end");
        // As in PostgreSQL the last page is there afterwards, though it may be empty: it is the end of what reads as zeros.
        let within = (bytes % PAGE_BYTES) as usize;
        self.change_page(oid, bytes / PAGE_BYTES, &|page| page.resize(within, 0)).await
    }

    /// Deletes some of an object's pages with this number or a greater one, as a view of what is newest shows them; whether there may be more.
    /// The caller holds `RowKeyShare` on the object, or has deleted it (LOB-2).
    ///
    /// # Errors
    /// As [`Session::write_large_object`].
    pub fn drop_pages<'a>(
        &'a mut self,
        newest: &'a View,
        oid: Oid,
        from: u64,
        most: usize,
    ) -> BoxFuture<'a, Result<bool, EngineError>> {
        Box::pin(self.drop_some_pages(newest, oid, from, most))
    }

    async fn drop_some_pages(&mut self, newest: &View, oid: Oid, from: u64, most: usize) -> Result<bool, EngineError> {
        let Some(table) = self.page_table()?.filter(|_| from <= i32::MAX as u64) else { return Ok(false) };
        let range = KeyRange::new(self.page_key(&table, oid, from), Some(self.page_end(&table, oid)));
        let (keys, more) = self.some_keys(newest, &table, range, most).await?;
        for key in keys {
            // LOB-3: another writer may have deleted it meanwhile.
            let locked = self.lock_row(&table, &key, LockMode::RowUpdate, IfTaken::Wait).await?;
            if locked.is_some_and(|locked| !locked.ghost) {
                let tree = table.rows(self.db().transactions()).clone();
                let change = Change::Delete { moved_to: None };
                self.txn().change(&tree, &key, change, Basis::Locked, IfTaken::Wait).await?;
            }
        }
        Ok(more)
    }

    /// Changes the newest version of a page; one that is not there is empty before.
    async fn change_page(
        &mut self,
        oid: Oid,
        page: u64,
        edit: &(dyn Fn(&mut Vec<u8>) + Sync),
    ) -> Result<(), EngineError> {
        let (table, _) = self.db().clone().made_large_object_tables().await?;
        let key = self.page_key(&table, oid, page);
        let tree = table.rows(self.db().transactions()).clone();
        loop {
            // LOB-3
            let locked = self.lock_row(&table, &key, LockMode::RowNoKeyUpdate, IfTaken::Wait).await?;
            let locked = locked.filter(|locked| !locked.ghost);
            let mut data = match &locked {
                Some(locked) => page_of(&locked.row)?.1.to_vec(),
                None => Vec::new(),
            };
            edit(&mut data);
            assert!(data.len() as u64 <= PAGE_BYTES, "LOB-4: a page of {} bytes", data.len());
            let numbers = [i64::from(self.database()), i64::from(oid), page as i64].map(Value::Int);
            let row: Vec<Value> = numbers.into_iter().chain([Value::bytes(&data)]).collect();
            let value = table.value_of(&row);
            let change = match locked {
                Some(_) => Change::Update { value: &value, strength: LockMode::RowNoKeyUpdate },
                None => Change::Insert { value: &value },
            };
            match self.txn().change(&tree, &key, change, Basis::Locked, IfTaken::Wait).await? {
                Changed::Done => return Ok(()),
                // Another writer has made the page, or deleted it, since it was looked for.
                Changed::Exists { .. } | Changed::Again => {}
                Changed::Newer => return Err(TxnError::ConcurrentDelete.into()),
            }
        }
    }
}
