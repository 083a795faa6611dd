//! Typed tables: how a pair of Rust types becomes a table of the catalog, and rows become values.
//!
//! A typed table is an ordinary table of the database `clearway`, schema `public`, with a primary key. SQL can read and change it, and add
//! indexes and columns with defaults to it. After each change of the catalog the typed table checks again that its types still fit.

use std::marker::PhantomData;
use std::ops::{Bound, Range, RangeBounds};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use clearway_base::sync::Mutex;
use clearway_storage::btree::KeyRange;
use clearway_storage::ids::Lsn;

use super::columns::{Columns, Key};
use super::error::Error;
use crate::catalog::{Catalog, Column, Index, IndexColumn, IndexState, Object, Oid, Relation, RelationKind};
use crate::codec::key::prefix_end;
use crate::session::{Durability, Session, TxnOptions};
use crate::table::shape::TableShape;
use crate::value::Value;

/// Tables that this process has opened.
static TABLES: AtomicU64 = AtomicU64::new(0);

/// A table with keys of type `K` and values of type `V`. Cheap to clone.
pub struct Table<K, V> {
    inner: Arc<Inner>,
    types: PhantomData<fn(K) -> V>,
}

struct Inner {
    /// No other table that was opened has it.
    id: u64,
    name: String,
    oid: Oid,
    database: Oid,
    /// How many columns the key and the value have.
    columns: (usize, usize),
    /// The shape in the catalog of that LSN.
    shape: Mutex<(Lsn, Arc<TableShape>)>,
}

impl<K, V> Clone for Table<K, V> {
    fn clone(&self) -> Self {
        Table { inner: self.inner.clone(), types: PhantomData }
    }
}

/// The names of a table and of its columns.
#[derive(Clone, Debug)]
pub struct TableNames<'a> {
    /// The table.
    pub table: &'a str,
    /// The columns of the key.
    pub key: &'a [&'a str],
    /// The columns of the value.
    pub value: &'a [&'a str],
}

impl<K: Key, V: Columns> Table<K, V> {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    pub(super) fn id(&self) -> u64 {
        self.inner.id
    }

    /// Where the columns of the value are among those of the table.
    pub(super) fn value_columns(&self) -> Range<usize> {
        let (keys, values) = self.inner.columns;
        keys..keys + values
    }

    pub(super) fn oid(&self) -> Oid {
        self.inner.oid
    }

    pub(super) fn database(&self) -> Oid {
        self.inner.database
    }

    /// The table as the catalog knows it now.
    pub(super) fn shape(&self, catalog: &Catalog) -> Result<Arc<TableShape>, Error> {
        let mut cached = self.inner.shape.lock();
        if cached.0 != catalog.lsn {
            let shape = TableShape::new(catalog, self.inner.oid)?;
            check::<K, V>(&shape)?;
            *cached = (catalog.lsn, shape);
        }
        Ok(cached.1.clone())
    }

    /// Opens the table, or creates it in a transaction of its own.
    pub(super) async fn open(
        session: &mut Session,
        database: Oid,
        schema: Oid,
        names: &TableNames<'_>,
    ) -> Result<Table<K, V>, Error> {
        declared::<K, V>(names)?;
        loop {
            if let Some(table) = Self::find(&session.catalog(), schema, names.table)? {
                return Ok(table);
            }
            match create::<K, V>(session, database, schema, names).await {
                Ok(()) => {}
                Err(error) => {
                    session.roll_back().await?;
                    // Another transaction has just created it.
                    let exists = matches!(error, Error::Engine(crate::error::EngineError::Exists { .. }));
                    if !exists && !error.is_retryable() {
                        return Err(error);
                    }
                }
            }
        }
    }

    fn find(catalog: &Catalog, schema: Oid, name: &str) -> Result<Option<Table<K, V>>, Error> {
        let Some(object) = catalog.in_schema(schema, name) else { return Ok(None) };
        let Object::Relation(relation) = &**object else {
            return Err(mismatch(name, "it is no table"));
        };
        if relation.kind != RelationKind::Table {
            return Err(mismatch(name, "it is no table"));
        }
        let shape = TableShape::new(catalog, relation.oid)?;
        check::<K, V>(&shape)?;
        let inner = Inner {
            id: TABLES.fetch_add(1, Ordering::Relaxed),
            name: name.to_owned(),
            oid: relation.oid,
            database: relation.database,
            columns: (K::kinds().len(), V::kinds().len()),
            shape: Mutex::new("engine/typed_table", (catalog.lsn, shape)),
        };
        Ok(Some(Table { inner: Arc::new(inner), types: PhantomData }))
    }

    /// The row of a key and a value; columns that were added since have their defaults for old rows.
    pub(super) fn row(&self, shape: &TableShape, key: &K, value: &V) -> Vec<Value> {
        let mut row = Vec::with_capacity(shape.columns.len());
        self.row_into(shape, (key, value), &mut row);
        row
    }

    /// Writes it into an empty list.
    pub(super) fn row_into(&self, shape: &TableShape, (key, value): (&K, &V), row: &mut Vec<Value>) {
        key.write(row);
        value.write(row);
        row.extend(shape.columns[row.len()..].iter().map(|c| c.missing.clone()));
    }

    /// The row with another value in the columns that the table was declared with.
    pub(super) fn with_value(&self, old: &[Value], value: &V) -> Vec<Value> {
        let keys = self.inner.columns.0;
        let mut row = old[..keys].to_vec();
        value.write(&mut row);
        row.extend_from_slice(&old[row.len()..]);
        row
    }

    pub(super) fn key_bytes(&self, shape: &TableShape, key: &K) -> Vec<u8> {
        let mut values = Vec::with_capacity(4);
        key.write(&mut values);
        shape.key_prefix(&values)
    }

    /// The key's bytes by the shape that was looked up last: they stay the same while the table is there.
    pub(super) fn place_key(&self, key: &K) -> Vec<u8> {
        let mut values = Vec::with_capacity(4);
        key.write(&mut values);
        self.inner.shape.lock().1.key_prefix(&values)
    }

    pub(super) fn value_of(&self, row: &[Value]) -> Result<V, Error> {
        row.get(self.value_columns()).and_then(V::read).ok_or_else(|| self.bad_value())
    }

    pub(super) fn key_of(&self, row: &[Value]) -> Result<K, Error> {
        row.get(..self.inner.columns.0).and_then(K::read).ok_or_else(|| self.bad_value())
    }

    pub(super) fn bad_value(&self) -> Error {
        Error::Value { table: self.inner.name.clone() }
    }

    /// The bytes between two keys.
    pub(super) fn range(&self, shape: &TableShape, bounds: &impl RangeBounds<K>) -> KeyRange {
        let from = match bounds.start_bound() {
            Bound::Included(key) => self.key_bytes(shape, key),
            // KEY-2: whole keys are no prefixes of each other, so what begins with one is that one.
            Bound::Excluded(key) => prefix_end(&self.key_bytes(shape, key)).unwrap_or_else(|| vec![u8::MAX]),
            Bound::Unbounded => Vec::new(),
        };
        let to = match bounds.end_bound() {
            Bound::Included(key) => prefix_end(&self.key_bytes(shape, key)),
            Bound::Excluded(key) => Some(self.key_bytes(shape, key)),
            Bound::Unbounded => None,
        };
        KeyRange::new(from, to)
    }
}

fn mismatch(table: &str, what: impl Into<String>) -> Error {
    Error::Mismatch { table: table.to_owned(), what: what.into() }
}

/// Whether the names fit the types.
fn declared<K: Key, V: Columns>(names: &TableNames<'_>) -> Result<(), Error> {
    let bad = |what: String| Err(Error::Declaration { table: names.table.to_owned(), what });
    for (what, given, types) in
        [("key", names.key.len(), K::kinds().len()), ("value", names.value.len(), V::kinds().len())]
    {
        if given != types {
            return bad(format!("{given} names for the {types} columns of its {what}"));
        }
    }
    let mut all: Vec<&&str> = names.key.iter().chain(names.value).collect();
    all.sort();
    match all.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => bad(format!("column \"{}\" is named twice", pair[0])),
        None => Ok(()),
    }
}

/// Whether a table is as its types say: the first columns are the key's, the next the value's, others have come since.
fn check<K: Key, V: Columns>(shape: &TableShape) -> Result<(), Error> {
    let (keys, values) = (K::kinds(), V::kinds());
    if shape.key != (0..keys.len()).collect::<Vec<_>>() {
        return Err(mismatch(&shape.name, "it has another primary key"));
    }
    for (at, kind) in keys.iter().chain(&values).enumerate() {
        let Some(column) = shape.columns.get(at).filter(|c| c.dropped.is_none()) else {
            return Err(mismatch(&shape.name, format!("column {} is not there", at + 1)));
        };
        if column.storage != kind.storage {
            let (is, wanted) = (column.storage, kind.storage);
            return Err(mismatch(&shape.name, format!("column \"{}\" is {is:?}, not {wanted:?}", column.name)));
        }
        if column.not_null && kind.nullable {
            return Err(mismatch(&shape.name, format!("column \"{}\" takes no nulls", column.name)));
        }
    }
    Ok(())
}

async fn create<K: Key, V: Columns>(
    session: &mut Session,
    database: Oid,
    schema: Oid,
    names: &TableNames<'_>,
) -> Result<(), Error> {
    let (table, index) = (session.db().new_oid(), session.db().new_oid());
    let kinds: Vec<_> = K::kinds().into_iter().chain(V::kinds()).collect();
    let columns = names.key.iter().chain(names.value).zip(&kinds).map(|(name, kind)| Column {
        name: (*name).to_owned(),
        storage: kind.storage.code(),
        type_oid: kind.type_oid,
        type_mod: -1,
        not_null: !kind.nullable,
        default: None,
        identity: None,
        dropped_version: None,
        statistics: None,
        since_version: 0,
        missing: None,
        ..Default::default()
    });
    session.begin(TxnOptions::default());
    let tree = session.create_tree().await?.0;
    let key: Vec<usize> = (0..names.key.len()).collect();
    let relation =
        Relation { key: key.clone(), ..Relation::table(table, database, schema, names.table, columns.collect(), tree) };
    session.put_object(Object::Relation(relation)).await?;
    let primary = Index {
        oid: index,
        database,
        schema,
        name: format!("{}_pkey", names.table),
        table,
        tree,
        columns: key.iter().map(|column| IndexColumn::ascending(*column)).collect(),
        include: Vec::new(),
        unique: true,
        primary: true,
        constraint: true,
        state: IndexState::Public,
        valid_from_lsn: 0,
        clustered: false,
        ..Index::default()
    };
    session.put_object(Object::Index(primary)).await?;
    Ok(session.commit(Durability::Wait).await?)
}
