//! Functions and operators on pg_lsn.

use super::eval::Env;
use super::functions::{Function, table};
use crate::error::{Result, SqlError, code};
use crate::types::numeric::Numeric;
use crate::types::{Datum, lsn, oid};

use oid::{NUMERIC, PG_LSN, TEXT};

#[rustfmt::skip]
pub static FUNCTIONS: &[Function] = table! {
    "pg_lsn"(NUMERIC) PG_LSN strict |a, _| lsn::of_number(&number(a, 0)?);
    "pg_wal_lsn_diff"(PG_LSN, PG_LSN) NUMERIC strict difference;
    "pg_walfile_name"(PG_LSN) TEXT strict |_, _| Err(SqlError::unsupported("pg_walfile_name"));
    "pg_walfile_name_offset"(PG_LSN) TEXT strict |_, _| Err(SqlError::unsupported("pg_walfile_name_offset"));
};

/// Operators that these functions compute.
#[rustfmt::skip]
pub static OPERATORS: &[Function] = table! {
    "-"(PG_LSN, PG_LSN) NUMERIC strict difference;
    "+"(PG_LSN, NUMERIC) PG_LSN strict |a, _| moved(a, (0, 1), "add", "to"); "+"(NUMERIC, PG_LSN) PG_LSN strict |a, _| moved(a, (1, 0), "add", "to");
    "-"(PG_LSN, NUMERIC) PG_LSN strict |a, _| moved(a, (0, 1), "subtract", "from");
};

fn number(a: &[Datum], n: usize) -> Result<Numeric> {
    match a.get(n) {
        Some(Datum::Numeric(n)) => Ok(n.clone()),
        Some(Datum::Lsn(v)) => Ok(lsn::number(*v)),
        _ => Err(SqlError::internal("a function of pg_lsn got another type")),
    }
}

fn difference(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    Ok(Datum::numeric(number(a, 0)?.sub(&number(a, 1)?)))
}

/// A position some bytes further on, or back.
fn moved(a: &[Datum], (from, by): (usize, usize), verb: &str, word: &str) -> Result<Datum> {
    let (from, by) = (number(a, from)?, number(a, by)?);
    if by.to_string() == "NaN" {
        return Err(SqlError::new(code::FEATURE_NOT_SUPPORTED, format!("cannot {verb} NaN {word} pg_lsn")));
    }
    lsn::of_number(&if verb == "add" { from.add(&by) } else { from.sub(&by) })
}
