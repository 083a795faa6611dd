//! What a catalog whose rows can be changed says of itself, and how it reads its rows.

use crate::core::Core;
use clearway_engine::catalog::{Catalog, Object};
use clearway_syntax::error::{Result, SqlError};
use clearway_values::types::{Datum, Oid};

/// What a change of a row does to the catalog.
#[derive(Debug)]
pub enum Edit {
    /// An object is added or replaced.
    Put(Box<Object>),
    /// An object goes.
    Drop(Oid),
}

/// Where a row is changed.
#[derive(Clone, Copy)]
pub struct Here<'a> {
    /// The session.
    pub core: &'a Core,
    /// The catalog as it is now.
    pub catalog: &'a Catalog,
    /// The session's database.
    pub database: Oid,
}

/// A catalog whose rows can be changed.
pub trait Changeable: Sync {
    /// Its name.
    fn name(&self) -> &'static str;

    /// The index that makes rows unique, and the places of its columns.
    fn key(&self) -> (&'static str, &'static [usize]);

    /// The columns that UPDATE may change.
    fn columns(&self) -> &'static [&'static str];

    /// Whether INSERT and DELETE are possible, too.
    fn has_free_rows(&self) -> bool;

    /// The columns that may be null.
    fn nullable(&self) -> &'static [&'static str] {
        &[]
    }

    /// The object that keeps a row (CHG-2); none: no row of this key is kept in an object.
    fn kept_by(&self, here: Here<'_>, row: &[Datum]) -> Option<Oid>;

    /// The object that a row is about, if it may be dropped meanwhile: it is locked before a row is written.
    fn about(&self, _here: Here<'_>, _row: &[Datum]) -> Option<Oid> {
        None
    }

    /// What makes the catalog show the new row instead of the old one. No old row: it is inserted; no new one: it is deleted.
    ///
    /// # Errors
    /// 0A000 and others for rows that no object can show.
    fn edits(&self, here: Here<'_>, old: Option<&[Datum]>, new: Option<&[Datum]>) -> Result<Vec<Edit>>;
}

/// A number in a row.
pub(super) fn number(row: &[Datum], at: usize) -> Oid {
    row.get(at).and_then(Datum::as_i64).and_then(|n| Oid::try_from(n).ok()).unwrap_or(0)
}

/// A text in a row.
pub(super) fn text(row: &[Datum], at: usize) -> &str {
    row.get(at).and_then(Datum::as_str).unwrap_or("")
}

/// Whether a flag is set in a row.
pub(super) fn flag(row: &[Datum], at: usize) -> bool {
    row.get(at).and_then(Datum::as_bool) == Some(true)
}

/// A limit of connections.
pub(super) fn limit(row: &[Datum], at: usize) -> Result<i32> {
    let given = row.get(at).and_then(Datum::as_i64).unwrap_or(-1);
    let limit = i32::try_from(given).ok().filter(|limit| *limit >= -1);
    limit.ok_or_else(|| SqlError::new("22023", format!("invalid connection limit: {given}")))
}
