//! Functions on pg_snapshot and txid_snapshot. The ids of the one are xid8, those of the other bigint.

use super::eval::Env;
use super::functions::{Function, i, s, table};
use super::set_table::{Rows, column};
use crate::error::Result;
use crate::types::snapshot::{self, Snapshot};
use crate::types::{Datum, oid};

use oid::{BOOL, INT8, PG_SNAPSHOT, TXID_SNAPSHOT, XID8};

#[rustfmt::skip]
pub static FUNCTIONS: &[Function] = table! {
    "pg_snapshot_xmin"(PG_SNAPSHOT) XID8 strict |a, _| Ok(wide(of(a, 0)?.xmin)); "txid_snapshot_xmin"(TXID_SNAPSHOT) INT8 strict |a, _| Ok(plain(of(a, 0)?.xmin));
    "pg_snapshot_xmax"(PG_SNAPSHOT) XID8 strict |a, _| Ok(wide(of(a, 0)?.xmax)); "txid_snapshot_xmax"(TXID_SNAPSHOT) INT8 strict |a, _| Ok(plain(of(a, 0)?.xmax));
    "pg_visible_in_snapshot"(XID8, PG_SNAPSHOT) BOOL strict is_visible; "txid_visible_in_snapshot"(INT8, TXID_SNAPSHOT) BOOL strict is_visible;
};

fn of(a: &[Datum], at: usize) -> Result<Snapshot> {
    snapshot::parse(s(a, at))
}

fn wide(id: u64) -> Datum {
    Datum::Word(id, XID8)
}

fn plain(id: u64) -> Datum {
    Datum::Int8(id as i64)
}

fn is_visible(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let id = match &a[0] {
        Datum::Word(id, _) => *id,
        _ => i(a, 0) as u64,
    };
    Ok(Datum::Bool(of(a, 1)?.sees(id)))
}

/// The ids of the transactions that run.
pub(super) fn running(a: &[Datum], in_words: bool) -> Result<Rows> {
    let ids = of(a, 0)?.running.into_iter().map(if in_words { wide } else { plain });
    Ok(column(ids.collect()))
}
