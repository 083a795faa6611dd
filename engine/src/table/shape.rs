//! The layout of a table's rows: which columns are in the key, which in the value, and since which schema version.
//!
//! # Invariants
//! - SHP-1: a row is read with the columns that its schema version had; a column that came later has its `missing` value, one that was
//!   dropped since is null.
//! - SHP-2: a column whose key form can be decoded to its exact value is stored in the key only.
//! - SHP-3: an expression of an index gets a position after all columns of the table; the same text has the same position in all indexes.
//! - SHP-4: a table with a key or an index that sorts by a form which the process does not have (KEY-4) is neither read nor written.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use clearway_storage::btree::Tree;
use clearway_storage::ids::TreeId;
use clearway_txn::transactions::Transactions;

use crate::catalog::{Catalog, Column, Index, IndexState, Oid, Relation};
use crate::codec::forms;
use crate::codec::key::{KeyColumn, decode_value, encode_value};
use crate::codec::places::Places;
use crate::codec::row::{RowDamage, RowReader, encode_row};
use crate::error::EngineError;
use crate::table::terms::{self, Terms};
use crate::value::{Storage, Value, ValueRef};

/// One column.
#[derive(Clone, Debug)]
pub struct ColumnShape {
    /// Its name.
    pub name: String,
    /// How it is stored.
    pub storage: Storage,
    /// No nulls.
    pub not_null: bool,
    pub(crate) since: u16,
    /// The version from which on rows do not have it.
    pub dropped: Option<u16>,
    pub(crate) missing: Value,
}

/// An index of the table, in a tree of its own.
#[derive(Clone, Debug)]
pub struct IndexShape {
    /// Its number.
    pub oid: Oid,
    /// Its name.
    pub name: String,
    /// Its tree.
    pub tree: TreeId,
    /// Positions of its columns in the table; for expressions see SHP-3.
    pub columns: Vec<usize>,
    /// What it computes of a row, if that is more than these columns.
    pub terms: Option<Arc<dyn Terms>>,
    /// How they sort.
    pub key: Vec<KeyColumn>,
    /// No two rows have the same values, nulls aside.
    pub unique: bool,
    /// Nulls are not put aside: two of them are the same value.
    pub nulls_not_distinct: bool,
    /// Whether it may be read, and from which snapshot on.
    pub state: IndexState,
    /// Older snapshots do not use it.
    pub valid_from_lsn: u64,
    handle: Handle,
}

/// What an index has of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The part of the entry's key before the row's own key.
    pub prefix: Vec<u8>,
    /// No other live entry may begin with it: the index is unique, and no value is null, or nulls are not distinct.
    pub constrained: bool,
}

/// A tree that was opened once, for all statements that go by this shape: making a handle anew costs an allocation, counters that
/// all threads share, and a look into the directory of trees.
#[derive(Clone, Default)]
struct Handle(OnceLock<Tree>);

impl Handle {
    fn open(&self, id: TreeId, all: &Transactions) -> &Tree {
        self.0.get_or_init(|| all.store().tree(id))
    }
}

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.get().is_some() { "open" } else { "not open" })
    }
}

/// A table as its rows are written and read.
#[derive(Clone, Debug)]
pub struct TableShape {
    /// Its number.
    pub oid: Oid,
    /// Its database.
    pub database: Oid,
    /// Its name.
    pub name: String,
    /// The tree of its rows.
    pub tree: TreeId,
    /// All columns, dropped ones included.
    pub columns: Vec<ColumnShape>,
    /// Positions of the primary key's columns; empty: by implicit row id.
    pub key: Vec<usize>,
    /// The primary key's index in the catalog, for the name in errors.
    pub primary: Option<(Oid, String)>,
    /// Every other index.
    pub indexes: Vec<IndexShape>,
    /// The expressions of these (SHP-3).
    pub expressions: Vec<String>,
    version: u16,
    key_columns: Vec<KeyColumn>,
    /// Of the version with which new rows are written: positions and storages in the value.
    stored: Vec<usize>,
    stored_storages: Vec<Storage>,
    handle: Handle,
}

impl TableShape {
    /// The shape of a table in a version of the catalog.
    ///
    /// # Errors
    /// `Missing`; `BadCatalog` if a default for old rows is not of its column's storage.
    pub fn new(catalog: &Catalog, table: Oid) -> Result<Arc<TableShape>, EngineError> {
        let relation = catalog
            .relation(table)
            .ok_or_else(|| EngineError::Missing { kind: "relation", name: table.to_string() })?;
        let mut shape = TableShape::without_indexes(relation)?;
        for index in catalog.indexes(table) {
            if index.primary {
                shape.primary = Some((index.oid, index.name.clone()));
            }
            if index.tree != relation.tree {
                let terms = terms::of(catalog, relation, index)?;
                let index = index_shape(index, &shape.columns, relation, &mut shape.expressions, terms)?;
                shape.indexes.push(index);
            }
        }
        Ok(Arc::new(shape))
    }

    /// The shape of a table that has no index beside its key.
    ///
    /// # Errors
    /// `BadCatalog`, as for `new`.
    pub fn without_indexes(relation: &Relation) -> Result<TableShape, EngineError> {
        let columns = relation.columns.iter().map(column_shape).collect::<Result<Vec<_>, _>>()?;
        relation.key.iter().try_for_each(|c| can_sort(columns[*c].storage, &relation.name))?;
        let mut shape = TableShape {
            oid: relation.oid,
            database: relation.database,
            name: relation.name.clone(),
            tree: TreeId(relation.tree),
            key_columns: relation.key.iter().map(|c| KeyColumn::ascending(columns[*c].storage)).collect(),
            columns,
            key: relation.key.clone(),
            primary: None,
            indexes: Vec::new(),
            expressions: Vec::new(),
            version: relation.version,
            stored: Vec::new(),
            stored_storages: Vec::new(),
            handle: Handle::default(),
        };
        shape.stored = shape.stored_in(shape.version);
        shape.stored_storages = shape.stored.iter().map(|c| shape.columns[*c].storage).collect();
        Ok(shape)
    }

    /// The tree of its rows, open.
    pub fn rows<'s>(&'s self, all: &Transactions) -> &'s Tree {
        self.handle.open(self.tree, all)
    }

    /// The schema version with which new rows are written.
    pub(crate) fn version(&self) -> u16 {
        self.version
    }

    /// Positions and storages of the columns that such a row has in its value.
    pub(crate) fn stored_now(&self) -> (&[usize], &[Storage]) {
        (&self.stored, &self.stored_storages)
    }

    /// How the key's columns sort.
    pub(crate) fn key_columns(&self) -> &[KeyColumn] {
        &self.key_columns
    }

    /// Whether rows have an implicit row id for a key.
    pub fn has_row_id(&self) -> bool {
        self.key.is_empty()
    }

    /// SHP-1, SHP-2: the columns that the value of a row of this version has.
    fn stored_in(&self, version: u16) -> Vec<usize> {
        let in_value = |(i, c): &(usize, &ColumnShape)| {
            let in_key = self.key.contains(i) && c.storage.key_is_invertible();
            c.since <= version && c.dropped.is_none_or(|d| d > version) && !in_key
        };
        self.columns.iter().enumerate().filter(in_value).map(|(i, _)| i).collect()
    }

    /// The key of a row, for tables that have one.
    pub fn key_of(&self, values: &[Value]) -> Vec<u8> {
        let mut key = Vec::with_capacity(9 * self.key.len());
        self.key_into(values, &mut key);
        key
    }

    /// Appends the key of a row, for tables that have one.
    pub fn key_into(&self, values: &[Value], out: &mut Vec<u8>) {
        for (position, column) in self.key.iter().zip(&self.key_columns) {
            encode_value(*column, &values[*position], out);
        }
    }

    /// The key that begins with these values of its first columns.
    pub fn key_prefix(&self, values: &[Value]) -> Vec<u8> {
        let mut key = Vec::new();
        self.append_prefix(values, &mut key);
        key
    }

    /// Appends it.
    pub(crate) fn append_prefix(&self, values: &[Value], out: &mut Vec<u8>) {
        assert!(values.len() <= self.key_columns.len(), "the key of {} has no {} columns", self.name, values.len());
        self.key_columns.iter().zip(values).for_each(|(c, v)| encode_value(*c, v, out));
    }

    /// The value part of a row.
    pub fn value_of(&self, values: &[Value]) -> Vec<u8> {
        let mut out = Vec::with_capacity(32);
        self.value_into(values, &mut out);
        out
    }

    /// Appends the value part of a row.
    pub fn value_into(&self, values: &[Value], out: &mut Vec<u8>) {
        assert!(values.len() >= self.columns.len(), "SHP-1: a row has a value for each column of {}", self.name);
        let stored = self.stored.iter().map(|c| values[*c].borrow());
        encode_row(self.version, &self.stored_storages, stored, out);
    }

    /// Takes a row apart.
    ///
    /// # Errors
    /// `BadRow`.
    pub fn row(&self, key: &[u8], value: &[u8]) -> Result<Vec<Value>, EngineError> {
        let mut row = Vec::with_capacity(self.columns.len());
        self.row_into(key, value, &mut row)?;
        Ok(row)
    }

    /// As [`TableShape::row`], in the place of what `row` had.
    ///
    /// # Errors
    /// `BadRow`.
    pub(crate) fn row_into(&self, key: &[u8], value: &[u8], row: &mut Vec<Value>) -> Result<(), EngineError> {
        row.clear();
        self.try_row(key, value, row).map_err(|damage| EngineError::BadRow { table: self.name.clone(), damage })
    }

    /// Gives each column of a row that is not dropped, nulls too, in any order, to `put` with its position: the values that [`TableShape::row`] gives.
    ///
    /// # Errors
    /// `BadRow`.
    pub fn read(&self, key: &[u8], value: &[u8], put: &mut dyn FnMut(usize, ValueRef<'_>)) -> Result<(), EngineError> {
        let bad = |damage| EngineError::BadRow { table: self.name.clone(), damage };
        let (version, head) = RowReader::head(value).map_err(bad)?;
        if version != self.version {
            let row = self.row(key, value)?;
            row.iter().enumerate().for_each(|(column, value)| put(column, value.borrow()));
            return Ok(());
        }
        let reader = head.reader(self.stored.len()).map_err(bad)?;
        reader.refs(&self.stored_storages, |at, value| put(self.stored[at], value)).map_err(bad)?;
        let mut rest = key;
        for (position, column) in self.key.iter().zip(&self.key_columns) {
            let (value, after) = decode_value(*column, rest).ok_or_else(|| bad(RowDamage("its key is malformed")))?;
            rest = after;
            if let Some(value) = value {
                put(*position, value.borrow());
            }
        }
        Ok(())
    }

    /// The columns of a row's value part where they are, each at its position in `row`, which has room for all columns; those of the key stay as
    /// they are. False: the row is of an older schema version, and nothing was read.
    ///
    /// # Errors
    /// `BadRow`.
    pub(crate) fn refs<'v>(&self, value: &'v [u8], row: &mut [ValueRef<'v>]) -> Result<bool, EngineError> {
        let bad = |damage| EngineError::BadRow { table: self.name.clone(), damage };
        let (version, head) = RowReader::head(value).map_err(bad)?;
        if version != self.version {
            return Ok(false);
        }
        let reader = head.reader(self.stored.len()).map_err(bad)?;
        reader.refs(&self.stored_storages, |at, value| row[self.stored[at]] = value).map_err(bad)?;
        Ok(true)
    }

    /// Where these columns are in the value of a row without a null, each by its place among them; none: that depends on the row, or one is in the key.
    pub(crate) fn places(&self, wanted: Range<usize>) -> Option<Places> {
        if !wanted.clone().all(|column| self.stored.contains(&column)) {
            return None;
        }
        let place = |column: &usize| wanted.contains(column).then(|| column - wanted.start);
        let columns: Vec<_> = self.stored.iter().map(|c| (self.columns[*c].storage, place(c))).collect();
        Places::of(self.version, &columns)
    }

    fn try_row(&self, key: &[u8], value: &[u8], row: &mut Vec<Value>) -> Result<(), RowDamage> {
        let (version, head) = RowReader::head(value)?;
        if version == self.version {
            self.place(head.reader(self.stored.len())?, &self.stored, &self.stored_storages, row)?;
        } else {
            if version > self.version {
                return Err(RowDamage("its schema version is newer than the table's"));
            }
            let stored = self.stored_in(version);
            let storages: Vec<Storage> = stored.iter().map(|c| self.columns[*c].storage).collect();
            self.place(head.reader(stored.len())?, &stored, &storages, row)?;
            for (i, column) in self.columns.iter().enumerate() {
                if column.since > version {
                    row[i] = column.missing.clone();
                }
                if column.dropped.is_some() {
                    row[i] = Value::Null;
                }
            }
        }
        let mut rest = key;
        for (position, column) in self.key.iter().zip(&self.key_columns) {
            let (value, after) = decode_value(*column, rest).ok_or(RowDamage("its key is malformed"))?;
            rest = after;
            if let Some(value) = value {
                row[*position] = value;
            }
        }
        Ok(())
    }

    fn place(
        &self,
        reader: RowReader<'_>,
        stored: &[usize],
        storages: &[Storage],
        row: &mut Vec<Value>,
    ) -> Result<(), RowDamage> {
        assert_eq!(stored.len(), storages.len(), "SHP-1: each stored column has its form");
        if stored.len() == self.columns.len() {
            return reader.read_into(storages, row);
        }
        row.resize(self.columns.len(), Value::Null);
        for (value, position) in reader.values(storages)?.into_iter().zip(stored) {
            row[*position] = value;
        }
        Ok(())
    }

    /// Whether a change from one row to another touches a column by which the row can be referred to: a column of a unique index.
    pub fn changes_key(&self, old: &[Value], new: &[Value]) -> bool {
        self.key_and_unique_columns().any(|c| old[c] != new[c])
    }

    /// The columns to which a foreign key may refer, some of them more than once.
    pub fn key_and_unique_columns(&self) -> impl Iterator<Item = usize> {
        let unique = self.indexes.iter().filter(|i| i.unique && i.terms.is_none()).flat_map(|i| &i.columns);
        self.key.iter().chain(unique).copied()
    }

    /// Checks that every value fits its column.
    ///
    /// # Errors
    /// `DoesNotFit`.
    pub fn check_fit(&self, values: &[Value]) -> Result<(), EngineError> {
        match self.columns.iter().zip(values).find(|(c, v)| !v.fits(c.storage)) {
            Some((column, _)) => Err(EngineError::DoesNotFit { column: column.name.clone() }),
            None => Ok(()),
        }
    }
}

impl IndexShape {
    /// Its tree, open.
    pub fn entries<'s>(&'s self, all: &Transactions) -> &'s Tree {
        self.handle.open(self.tree, all)
    }

    /// What the index has of a row; none: the row does not meet the index's condition (TRM-2).
    ///
    /// # Errors
    /// `Terms`.
    pub fn entry_of(&self, row: &[Value]) -> Result<Option<Entry>, EngineError> {
        let Some(terms) = &self.terms else {
            return Ok(Some(Entry { prefix: self.prefix_of(row), constrained: self.constrains(row) }));
        };
        let Some(values) = terms.values(row)? else { return Ok(None) };
        let constrained = self.unique && (self.nulls_not_distinct || !values.iter().any(Value::is_null));
        Ok(Some(Entry { prefix: self.prefix(&values), constrained }))
    }

    /// Whether the entry that the columns of a row make has to be unique.
    pub(crate) fn constrains(&self, row: &[Value]) -> bool {
        self.unique && (self.nulls_not_distinct || self.columns.iter().all(|c| !row[*c].is_null()))
    }

    /// Whether a change from one row to another may change the entry.
    pub fn is_touched(&self, old: &[Value], new: &[Value]) -> bool {
        self.reads().iter().any(|c| old[*c] != new[*c])
    }

    /// The columns on which its entries depend.
    pub fn reads(&self) -> &[usize] {
        self.terms.as_ref().map_or(&self.columns[..], |terms| terms.reads())
    }

    /// Whether it has an entry for every row, by columns alone.
    pub fn is_plain(&self) -> bool {
        self.terms.is_none()
    }

    /// The part of an entry's key that the columns make.
    fn prefix_of(&self, values: &[Value]) -> Vec<u8> {
        let mut key = Vec::with_capacity(9 * self.columns.len() + 8);
        self.prefix_into(values, &mut key);
        key
    }

    /// Appends the part of an entry's key that the columns of a row make, without expressions.
    pub(crate) fn prefix_into(&self, values: &[Value], out: &mut Vec<u8>) {
        for (position, column) in self.columns.iter().zip(&self.key) {
            encode_value(*column, &values[*position], out);
        }
    }

    /// The part of a key that these values of the first columns make.
    pub fn prefix(&self, values: &[Value]) -> Vec<u8> {
        assert!(values.len() <= self.key.len(), "the index {} has no {} columns", self.name, values.len());
        let mut key = Vec::new();
        self.key.iter().zip(values).for_each(|(c, v)| encode_value(*c, v, &mut key));
        key
    }

    /// The key of the row to which an entry leads.
    ///
    /// # Errors
    /// `BadRow`.
    pub fn row_key<'k>(&self, entry: &'k [u8]) -> Result<&'k [u8], EngineError> {
        let mut rest = entry;
        for column in &self.key {
            rest = match decode_value(*column, rest) {
                Some((_, after)) => &entry[entry.len() - after.len()..],
                None => {
                    let damage = RowDamage("its key is malformed");
                    return Err(EngineError::BadRow { table: self.name.clone(), damage });
                }
            };
        }
        Ok(rest)
    }
}

fn column_shape(column: &Column) -> Result<ColumnShape, EngineError> {
    let missing = match &column.missing {
        None => Value::Null,
        Some(hex) => decode_missing(hex, column.storage())
            .ok_or_else(|| EngineError::BadCatalog(format!("the default of {} for old rows", column.name)))?,
    };
    Ok(ColumnShape {
        name: column.name.clone(),
        storage: column.storage(),
        not_null: column.not_null,
        since: column.since_version,
        dropped: column.dropped_version,
        missing,
    })
}

/// SHP-4
fn can_sort(storage: Storage, what: &str) -> Result<(), EngineError> {
    match storage {
        Storage::Sorted(form) if !forms::is_known(form) => {
            Err(EngineError::BadCatalog(format!("{what} sorts by an unknown form, {form}")))
        }
        _ => Ok(()),
    }
}

fn index_shape(
    index: &Index,
    columns: &[ColumnShape],
    relation: &Relation,
    expressions: &mut Vec<String>,
    terms: Option<Arc<dyn Terms>>,
) -> Result<IndexShape, EngineError> {
    let damaged = |what: &str| EngineError::BadCatalog(format!("index {} of {} {what}", index.name, relation.name));
    let (mut key, mut positions) = (Vec::new(), Vec::new());
    for c in &index.columns {
        let (position, storage) = match &c.expression {
            None => {
                let column = columns.get(c.column).ok_or_else(|| damaged("names a column that the table has not"))?;
                (c.column, column.storage)
            }
            Some(expression) => {
                let known = expressions.iter().position(|text| *text == expression.text);
                let at = known.unwrap_or_else(|| {
                    expressions.push(expression.text.clone());
                    expressions.len() - 1
                });
                let storage = Storage::from_code(expression.storage);
                (columns.len() + at, storage.ok_or_else(|| damaged("stores an expression in an unknown form"))?)
            }
        };
        can_sort(storage, &index.name)?;
        positions.push(position);
        key.push(KeyColumn { storage, descending: c.descending, nulls_first: c.nulls_first });
    }
    if terms.iter().flat_map(|terms| terms.reads()).any(|c| *c >= columns.len()) {
        return Err(damaged("computes with a column that the table has not"));
    }
    Ok(IndexShape {
        oid: index.oid,
        name: index.name.clone(),
        tree: TreeId(index.tree),
        columns: positions,
        terms,
        key,
        // A constraint that may be checked late is checked by the layer above.
        unique: index.unique && !index.deferrable,
        nulls_not_distinct: index.nulls_not_distinct,
        state: index.state,
        valid_from_lsn: index.valid_from_lsn,
        handle: Handle::default(),
    })
}

/// The form in which the catalog keeps a value for old rows: one stored row of one column, in hexadecimal.
pub fn encode_missing(value: &Value, storage: Storage) -> String {
    let mut bytes = Vec::new();
    encode_row(0, &[storage], std::iter::once(value.borrow()), &mut bytes);
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn decode_missing(hex: &str, storage: Storage) -> Option<Value> {
    let (pairs, []) = hex.as_bytes().as_chunks::<2>() else {
        return None;
    };
    let bytes: Option<Vec<u8>> =
        pairs.iter().map(|p| u8::from_str_radix(std::str::from_utf8(p).ok()?, 16).ok()).collect();
    let bytes = bytes?;
    let (_, head) = RowReader::head(&bytes).ok()?;
    head.reader(1).ok()?.values(&[storage]).ok()?.pop()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SHP-4
    #[test]
    fn a_table_whose_key_sorts_by_an_unknown_form_has_no_shape() {
        let column = |name: &str, storage: Storage| Column {
            name: name.to_owned(),
            storage: storage.code(),
            type_mod: -1,
            ..Column::default()
        };
        let columns = vec![column("id", Storage::Int(8)), column("span", Storage::Sorted(63))];
        let mut table = Relation::table(20_000, 1, 2, "t", columns, 7);
        table.key = vec![0];
        assert!(TableShape::without_indexes(&table).is_ok(), "a column that is in no key");
        table.key = vec![1];
        let refused = TableShape::without_indexes(&table).expect_err("no form has the number");
        assert!(matches!(refused, EngineError::BadCatalog(_)), "{refused}");
    }
}
