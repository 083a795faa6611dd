//! The SQL names of a lock tag: its kind, object and key.

use clearway_engine::catalog::{Catalog, Object, Relation};
use clearway_engine::codec::key::{KeyColumn, decode_value};
use clearway_engine::value::Storage;
use clearway_exec::convert::to_datum;
use clearway_storage::ids::TreeId;
use clearway_txn::lockmgr::LockTag;
use clearway_values::types::datetime::Format;
use clearway_values::types::text::{Conversion, NoNames, output};
use clearway_values::types::{Datum, SqlType};
use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::Write as _;

/// Bytes of a value that are shown.
const VALUE_MAX: usize = 200;

/// What is locked, as a reader of SQL knows it.
#[derive(Clone, Debug, Default)]
pub(super) struct Locked {
    pub(super) kind: &'static str,
    /// The relation with its schema, or the text that is shown instead.
    pub(super) object: String,
    /// `(id)=(7)`.
    pub(super) key: Option<String>,
}

impl Locked {
    /// `tuple public.t (id)=(7)`.
    pub(super) fn text(&self) -> String {
        let mut out = format!("{} {}", self.kind, self.object);
        if let Some(key) = &self.key {
            let _ = write!(out, " {key}");
        }
        out
    }
}

/// The columns of a key: names, forms, types.
type Columns = Vec<(String, KeyColumn, SqlType)>;

/// Names tags by a catalog; what one tree is called is found out once.
pub(super) struct Namer<'c> {
    catalog: &'c Catalog,
    trees: RefCell<HashMap<u64, Option<(String, Columns)>>>,
}

impl<'c> Namer<'c> {
    pub(super) fn new(catalog: &'c Catalog) -> Self {
        Namer { catalog, trees: RefCell::default() }
    }

    fn qualified(&self, schema: u32, name: &str) -> String {
        self.catalog.get(schema).map_or_else(|| name.to_owned(), |schema| format!("{}.{name}", schema.name()))
    }

    fn column(
        &self,
        table: &Relation,
        column: usize,
        (descending, nulls_first): (bool, bool),
    ) -> Option<(String, KeyColumn, SqlType)> {
        let column = table.columns.get(column)?;
        let form = KeyColumn { storage: column.storage(), descending, nulls_first };
        Some((column.name.clone(), form, SqlType { oid: column.type_oid, modifier: column.type_mod }))
    }

    fn describe(&self, tree: TreeId) -> Option<(String, Columns)> {
        self.catalog.objects().find_map(|object| match &**object {
            Object::Relation(table) if table.tree == tree.0 => {
                let columns = table.key.iter().filter_map(|c| self.column(table, *c, (false, false)));
                Some((self.qualified(table.schema, &table.name), columns.collect()))
            }
            Object::Index(index) if index.tree == tree.0 => {
                let table = self.catalog.relation(index.table)?;
                let columns = index.columns.iter();
                let columns = columns.filter_map(|c| match &c.expression {
                    None => self.column(table, c.column, (c.descending, c.nulls_first)),
                    Some(e) => {
                        let storage = Storage::from_code(e.storage)?;
                        let form = KeyColumn { storage, descending: c.descending, nulls_first: c.nulls_first };
                        Some((e.text.clone(), form, SqlType { oid: e.type_oid, modifier: e.type_mod }))
                    }
                });
                Some((self.qualified(index.schema, &index.name), columns.collect()))
            }
            _ => None,
        })
    }

    /// What is locked.
    pub(super) fn name(&self, tag: &LockTag) -> Locked {
        let plain = |object: String| Locked { kind: tag.kind(), object, key: None };
        match tag {
            LockTag::Relation { relation, .. } => {
                let object = u32::try_from(*relation).ok().and_then(|oid| self.catalog.get(oid));
                plain(object.map_or_else(
                    || relation.to_string(),
                    |object| match &**object {
                        Object::Relation(table) => self.qualified(table.schema, &table.name),
                        Object::Index(index) => self.qualified(index.schema, &index.name),
                        other => other.name().to_owned(),
                    },
                ))
            }
            LockTag::Row { tree, key } | LockTag::UniqueKey { tree, key } | LockTag::Place { tree, key } => {
                let mut trees = self.trees.borrow_mut();
                let found = trees.entry(tree.0).or_insert_with(|| self.describe(*tree));
                match found {
                    Some((name, columns)) => Locked { key: Some(key_text(columns, key)), ..plain(name.clone()) },
                    None => Locked { key: Some(hex(key)), ..plain(format!("tree {}", tree.0)) },
                }
            }
            LockTag::Transaction(txn) => plain(txn.0.to_string()),
            LockTag::VirtualTransaction(id) => plain(id.to_string()),
            LockTag::Object { class, object, .. } => {
                let named = u32::try_from(*object).ok().and_then(|oid| self.catalog.get(oid));
                plain(named.map_or_else(|| format!("{class}/{object}"), |object| object.name().to_owned()))
            }
            LockTag::Advisory { key, .. } => {
                use clearway_txn::lockmgr::AdvisoryKey::{One, Two};
                plain(match key {
                    One(key) => key.to_string(),
                    Two(a, b) => format!("{a}, {b}"),
                })
            }
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    let mut out = String::from("\\x");
    bytes.iter().take(VALUE_MAX).for_each(|byte| _ = write!(out, "{byte:02x}"));
    out
}

/// `(a, b)=(1, x)`. A row of a table without a primary key has an implicit number; a value that its key's form does not give back is `?`.
fn key_text(columns: &Columns, key: &[u8]) -> String {
    if columns.is_empty() {
        let number = <[u8; 8]>::try_from(key).map(u64::from_be_bytes);
        return number.map_or_else(|_| hex(key), |number| format!("(row id)=({number})"));
    }
    let format = Format::default();
    let conversion = Conversion { format: &format, now: 0, names: &NoNames };
    let (mut names, mut values) = (Vec::new(), Vec::new());
    let mut rest = key;
    for (name, form, ty) in columns {
        let Some((value, after)) = decode_value(*form, rest) else { break };
        rest = after;
        names.push(name.as_str());
        let datum = value.map(|value| to_datum(&value, *ty));
        let mut shown = match datum {
            Some(Ok(Datum::Null)) => "null".to_owned(),
            Some(Ok(datum)) => output(*ty, &datum, &conversion),
            _ => "?".to_owned(),
        };
        if let Some((end, _)) = shown.char_indices().nth(VALUE_MAX) {
            shown.truncate(end);
            shown.push_str("...");
        }
        values.push(shown);
    }
    format!("({})=({})", names.join(", "), values.join(", "))
}
