//! How `tableoid`, `ctid` and `xmax` of a table's rows are computed.
//!
//! PostgreSQL's ctid is the place of a row's version. Here a row has no place that stays, but a key that is its own: the ctid is the number that the key is, a row
//! id or a primary key of one integer. So `ctid` tells rows of a table apart and finds a row again, which is what statements use it for; an UPDATE
//! leaves it as it is, unless it changes the primary key. Other keys have no ctid: six bytes can't tell all of them apart.

use super::plan::TableSlot;
use clearway_context::errors::concurrent;
use clearway_engine::catalog::Relation;
use clearway_engine::codec::key::{KeyColumn, decode_value, encode_value};
use clearway_engine::table::shape::TableShape;
use clearway_engine::value::{Storage, Value};
use clearway_syntax::error::{Result, SqlError, code};
use clearway_values::expr::functions::{Body, Function};
use clearway_values::expr::system_columns::SystemColumns;
use clearway_values::expr::{Bound, BoundKind};
use clearway_values::types::{Datum, Oid, oid, user};

static TABLEOID: Function = function("tableoid", &[oid::BYTEA, oid::OID], oid::OID, |a, _| Ok(a[1].clone()));
static CTID_OF_ROW_ID: Function = function("ctid", &[oid::BYTEA], oid::TID, |a, _| {
    ctid(&a[0], |key| key.try_into().ok().map(|id| i128::from(u64::from_be_bytes(id))))
});
static CTID_OF_INT2: Function = function("ctid", &[oid::BYTEA], oid::TID, |a, _| ctid(&a[0], integer::<2>));
static CTID_OF_INT4: Function = function("ctid", &[oid::BYTEA], oid::TID, |a, _| ctid(&a[0], integer::<4>));
static CTID_OF_INT8: Function = function("ctid", &[oid::BYTEA], oid::TID, |a, _| ctid(&a[0], integer::<8>));

const fn function(name: &'static str, args: &'static [Oid], result: Oid, body: Body) -> Function {
    Function { name, args, result, strict: true, variadic: false, volatile: false, body }
}

/// The integer that a key of one column is.
fn integer<const WIDTH: u8>(key: &[u8]) -> Option<i128> {
    match decode_value(KeyColumn::ascending(Storage::Int(WIDTH)), key)? {
        (Some(Value::Int(n)), []) => Some(n.into()),
        _ => None,
    }
}

/// The ctid of a row of this key: the number in 48 bits, a negative one as the unsigned number of the same bits.
fn ctid(key: &Datum, number: fn(&[u8]) -> Option<i128>) -> Result<Datum> {
    let key = match key {
        Datum::Bytea(key) => key,
        // EXE-22
        Datum::Bool(deleted) => return Err(concurrent(*deleted)),
        _ => return Err(SqlError::internal("a slot of a row's key that has none")),
    };
    let number = number(key).ok_or_else(|| SqlError::internal("a row's key that is no number"))?;
    if !(-(1 << 47)..1 << 47).contains(&number) {
        let message = format!("ctid out of range: the row's key {number} does not fit into 48 bits");
        return Err(SqlError::new(code::NUMERIC_VALUE_OUT_OF_RANGE, message));
    }
    Ok(Datum::Word(number as u64 & 0xffff_ffff_ffff, oid::TID))
}

/// The function for the only column of a primary key.
fn of_integer(table: &TableSlot, column: usize) -> Option<&'static Function> {
    let ty = user::base(table.types[column]).oid;
    match (table.shape.columns[column].storage, ty) {
        (Storage::Int(2), oid::INT2) => Some(&CTID_OF_INT2),
        (Storage::Int(4), oid::INT4) => Some(&CTID_OF_INT4),
        (Storage::Int(8), oid::INT8) => Some(&CTID_OF_INT8),
        _ => None,
    }
}

/// The system columns of a table in a layout. `xmax`: the slot that the executor puts their xmax in.
pub(super) fn of_table(table: &TableSlot, xmax: Option<usize>) -> SystemColumns {
    let ctid = match table.shape.key.as_slice() {
        [] => Some(&CTID_OF_ROW_ID),
        [column] => of_integer(table, *column),
        _ => None,
    };
    SystemColumns { table: table.shape.oid, key: table.key_slot(), tableoid: &TABLEOID, ctid, xmax }
}

/// Whether the rows of a table have a ctid.
pub fn has_ctid(relation: &Relation) -> bool {
    match relation.key.as_slice() {
        [] => true,
        [column] => {
            let ty = user::base(relation.columns[*column].type_oid.into()).oid;
            matches!(ty, oid::INT2 | oid::INT4 | oid::INT8)
        }
        _ => false,
    }
}

/// The functions that give a ctid.
const CTIDS: [&Function; 4] = [&CTID_OF_ROW_ID, &CTID_OF_INT2, &CTID_OF_INT4, &CTID_OF_INT8];

/// Whether an expression is the ctid of the row at hand of a table.
pub(super) fn is_ctid(e: &Bound, table: &TableSlot) -> bool {
    let BoundKind::Call { function, args } = &e.kind else { return false };
    let is_own = |e: &Bound| matches!(e.kind, BoundKind::Column { index, level: 0 } if index == table.key_slot());
    CTIDS.iter().any(|f| std::ptr::eq(*f, *function)) && args.iter().all(is_own)
}

/// The key of the row that has a ctid; none: no row can have it.
pub fn key_of(shape: &TableShape, ctid: &Datum) -> Option<Vec<u8>> {
    let Datum::Word(number, oid::TID) = *ctid else { return None };
    let [column] = shape.key.as_slice() else {
        return shape.key.is_empty().then(|| number.to_be_bytes().to_vec());
    };
    // The sign is that of the 48 bits.
    let key = Value::Int((number << 16) as i64 >> 16);
    let storage = shape.columns[*column].storage;
    let mut bytes = Vec::new();
    key.fits(storage).then(|| encode_value(KeyColumn::ascending(storage), &key, &mut bytes))?;
    Some(bytes)
}

/// The name of a system column that an expression computes, and the slot of the row's key that it is computed from.
pub fn of_call(e: &Bound) -> Option<(&'static str, &Bound)> {
    let BoundKind::Call { function, args } = &e.kind else { return None };
    let is_one = CTIDS.into_iter().chain([&TABLEOID]).any(|f| std::ptr::eq(f, *function));
    is_one.then(|| (function.name, &args[0]))
}
