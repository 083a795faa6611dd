//! The rows of clearway_memory: the heap by session and kind.

use super::{ViewOf, text};
use clearway_base::memory::{Shown, accounts, server};
use clearway_exec::{Row, Run};
use clearway_values::types::Datum;

pub const ROWS: &[ViewOf] = &[("pg_catalog", "clearway_memory", memory)];

/// A limit; null: there is none.
fn limit(bytes: i64) -> Datum {
    if bytes == i64::MAX { Datum::Null } else { Datum::Int8(bytes) }
}

/// One row for the server, one for each session with all that it has, one for each kind of it.
fn memory(_: &Run<'_>) -> Vec<Row> {
    let (bytes, limit_bytes, refused) = server();
    let whole = vec![
        Datum::Null,
        text("server"),
        Datum::Int8(bytes),
        Datum::Null,
        limit(limit_bytes),
        Datum::Int8(i64::try_from(refused).unwrap_or(i64::MAX)),
    ];
    std::iter::once(whole).chain(accounts().iter().flat_map(session)).collect()
}

fn session(account: &Shown) -> Vec<Row> {
    let pid = Datum::Int4(account.pid);
    let all = vec![
        pid.clone(),
        text("session"),
        Datum::Int8(account.bytes),
        Datum::Int8(account.peak_bytes),
        limit(account.limit_bytes),
        Datum::Int8(i64::try_from(account.refused).unwrap_or(i64::MAX)),
    ];
    let kinds = account.kinds.iter().map(|(kind, bytes)| {
        vec![pid.clone(), text(kind.name()), Datum::Int8(*bytes), Datum::Null, Datum::Null, Datum::Null]
    });
    std::iter::once(all).chain(kinds).collect()
}
