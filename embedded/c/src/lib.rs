//! The C library: the functions that `include/clearway.h` declares.
//!
//! Structure: this file has the functions that C code calls; they read C's strings and write through C's pointers. `work` does their work, in
//! safe code. `handles` gives connections and statements to C as numbers and finds them again.
//!
//! # Invariants
//! - CAPI-1: a handle is a number that is given out once, not an address. So a stale handle is detected, and the call returns CLEARWAY_MISUSE.
//! - CAPI-2: no panic crosses into C: it is caught, and the call returns CLEARWAY_ERROR, or NULL or 0 where it returns no code.

mod handles;
mod work;

use std::ffi::{CStr, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{null, null_mut};

use clearway::Value;
use work::{Callback, ERROR, MISUSE};

/// A connection's handle.
pub type Connection = *mut c_void;
/// A statement's handle.
pub type Statement = *mut c_void;

/// CAPI-2
fn guarded<T>(otherwise: T, f: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(f)).unwrap_or(otherwise)
}

/// A panic, for the test of CAPI-2.
#[cfg(feature = "planted")]
#[unsafe(no_mangle)]
pub extern "C" fn clearway_planted_panic() -> c_int {
    guarded(ERROR, || panic!("planted"))
}

/// A string of C's as UTF-8.
///
/// # Safety
/// `text` is NULL or points to a string with a terminating zero.
unsafe fn string<'a>(text: *const c_char) -> Option<&'a str> {
    if text.is_null() {
        return None;
    }
    // SAFETY: as the caller promises.
    unsafe { CStr::from_ptr(text) }.to_str().ok()
}

/// Bytes of C's; a negative length means up to the terminating zero.
///
/// # Safety
/// `bytes` is NULL or points to so many bytes.
unsafe fn slice<'a>(bytes: *const c_void, length: c_int) -> Option<&'a [u8]> {
    if bytes.is_null() {
        return None;
    }
    match usize::try_from(length) {
        // SAFETY: as the caller promises.
        Ok(length) => Some(unsafe { std::slice::from_raw_parts(bytes.cast(), length) }),
        // SAFETY: as the caller promises.
        Err(_) => Some(unsafe { CStr::from_ptr(bytes.cast()) }.to_bytes()),
    }
}

/// See clearway.h.
#[unsafe(no_mangle)]
pub extern "C" fn clearway_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// See clearway.h.
///
/// # Safety
/// `path` is a string with a terminating zero, `connection` points to where the handle goes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearway_open(path: *const c_char, connection: *mut Connection) -> c_int {
    if connection.is_null() {
        return MISUSE;
    }
    // SAFETY: as the caller promises.
    let path = unsafe { string(path) };
    let (code, handle) = guarded((ERROR, 0), || path.map_or((MISUSE, 0), work::open));
    // SAFETY: it is not NULL, and as the caller promises.
    unsafe { connection.write(handle as Connection) };
    code
}

/// See clearway.h.
#[unsafe(no_mangle)]
pub extern "C" fn clearway_close(connection: Connection) -> c_int {
    guarded(ERROR, || work::close(connection as usize))
}

/// See clearway.h.
#[unsafe(no_mangle)]
pub extern "C" fn clearway_errmsg(connection: Connection) -> *const c_char {
    guarded(null(), || work::message(connection as usize).map_or(null(), |text| text.as_ptr()))
}

/// See clearway.h.
#[unsafe(no_mangle)]
pub extern "C" fn clearway_sqlstate(connection: Connection) -> *const c_char {
    guarded(null(), || work::sqlstate(connection as usize).map_or(null(), |text| text.as_ptr()))
}

/// See clearway.h.
#[unsafe(no_mangle)]
pub extern "C" fn clearway_changes(connection: Connection) -> i64 {
    guarded(0, || work::changes(connection as usize))
}

/// See clearway.h.
#[unsafe(no_mangle)]
pub extern "C" fn clearway_in_transaction(connection: Connection) -> c_int {
    guarded(0, || work::in_transaction(connection as usize))
}

/// See clearway.h.
#[unsafe(no_mangle)]
pub extern "C" fn clearway_interrupt(connection: Connection) -> c_int {
    guarded(ERROR, || work::interrupt(connection as usize))
}

/// What C gives for the rows of `clearway_exec`.
type RowFunction = unsafe extern "C" fn(*mut c_void, c_int, *mut *mut c_char, *mut *mut c_char) -> c_int;

/// See clearway.h.
///
/// # Safety
/// `sql` is a string with a terminating zero; `callback` may be called with `argument`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearway_exec(
    connection: Connection,
    sql: *const c_char,
    callback: Option<RowFunction>,
    argument: *mut c_void,
) -> c_int {
    // SAFETY: as the caller promises.
    let Some(sql) = (unsafe { string(sql) }) else { return MISUSE };
    guarded(ERROR, || {
        let Some(callback) = callback else { return work::exec(connection as usize, sql, None) };
        let mut row: Box<Callback<'_>> = Box::new(move |values, names| {
            let mut names: Vec<*mut c_char> = names.iter().map(|name| name.as_ptr().cast_mut()).collect();
            let pointer =
                |value: &Option<std::ffi::CString>| value.as_ref().map_or(null_mut(), |v| v.as_ptr().cast_mut());
            let mut values: Vec<*mut c_char> = values.iter().map(pointer).collect();
            let columns = c_int::try_from(names.len()).unwrap_or(c_int::MAX);
            // SAFETY: as the caller promises; the lists live until it returns.
            unsafe { callback(argument, columns, values.as_mut_ptr(), names.as_mut_ptr()) == 0 }
        });
        work::exec(connection as usize, sql, Some(&mut *row))
    })
}

/// See clearway.h.
///
/// # Safety
/// `sql` is a string with a terminating zero, `statement` points to where the handle goes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearway_prepare(
    connection: Connection,
    sql: *const c_char,
    statement: *mut Statement,
) -> c_int {
    // SAFETY: as the caller promises.
    let (Some(sql), false) = (unsafe { string(sql) }, statement.is_null()) else { return MISUSE };
    let (code, handle) = guarded((ERROR, 0), || work::prepare(connection as usize, sql));
    // SAFETY: it is not NULL, and as the caller promises.
    unsafe { statement.write(handle as Statement) };
    code
}

/// See clearway.h.
#[unsafe(no_mangle)]
pub extern "C" fn clearway_finalize(statement: Statement) -> c_int {
    guarded(ERROR, || work::finalize(statement as usize))
}

/// See clearway.h.
#[unsafe(no_mangle)]
pub extern "C" fn clearway_bind_null(statement: Statement, index: c_int) -> c_int {
    guarded(ERROR, || work::bind(statement as usize, index, Value::Null))
}

/// See clearway.h.
#[unsafe(no_mangle)]
pub extern "C" fn clearway_bind_int64(statement: Statement, index: c_int, value: i64) -> c_int {
    guarded(ERROR, || work::bind(statement as usize, index, Value::Int(value)))
}

/// See clearway.h.
#[unsafe(no_mangle)]
pub extern "C" fn clearway_bind_double(statement: Statement, index: c_int, value: f64) -> c_int {
    guarded(ERROR, || work::bind(statement as usize, index, Value::Float(value)))
}

/// See clearway.h.
///
/// # Safety
/// `value` points to `length` bytes, or to a string with a terminating zero if that is negative.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearway_bind_text(
    statement: Statement,
    index: c_int,
    value: *const c_char,
    length: c_int,
) -> c_int {
    // SAFETY: as the caller promises.
    let Some(bytes) = (unsafe { slice(value.cast(), length) }) else { return MISUSE };
    guarded(ERROR, || match std::str::from_utf8(bytes) {
        Ok(text) => work::bind(statement as usize, index, Value::Text(text.to_owned())),
        Err(_) => MISUSE,
    })
}

/// See clearway.h.
///
/// # Safety
/// `value` points to `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearway_bind_blob(
    statement: Statement,
    index: c_int,
    value: *const c_void,
    length: c_int,
) -> c_int {
    // SAFETY: as the caller promises; a negative length is refused.
    let bytes = if length < 0 { None } else { unsafe { slice(value, length) } };
    let Some(bytes) = bytes else { return MISUSE };
    guarded(ERROR, || work::bind(statement as usize, index, Value::Bytes(bytes.to_vec())))
}

/// See clearway.h.
#[unsafe(no_mangle)]
pub extern "C" fn clearway_clear_bindings(statement: Statement) -> c_int {
    guarded(ERROR, || work::clear_bindings(statement as usize))
}

/// See clearway.h.
#[unsafe(no_mangle)]
pub extern "C" fn clearway_step(statement: Statement) -> c_int {
    guarded(ERROR, || work::step(statement as usize))
}

/// See clearway.h.
#[unsafe(no_mangle)]
pub extern "C" fn clearway_reset(statement: Statement) -> c_int {
    guarded(ERROR, || work::reset(statement as usize))
}

/// See clearway.h.
#[unsafe(no_mangle)]
pub extern "C" fn clearway_column_count(statement: Statement) -> c_int {
    guarded(0, || work::column_count(statement as usize))
}

/// See clearway.h.
#[unsafe(no_mangle)]
pub extern "C" fn clearway_column_name(statement: Statement, column: c_int) -> *const c_char {
    guarded(null(), || work::column_name(statement as usize, column).unwrap_or(null()))
}

/// See clearway.h.
#[unsafe(no_mangle)]
pub extern "C" fn clearway_column_type(statement: Statement, column: c_int) -> c_int {
    guarded(work::NULL, || work::column_type(statement as usize, column))
}

/// See clearway.h.
#[unsafe(no_mangle)]
pub extern "C" fn clearway_column_int64(statement: Statement, column: c_int) -> i64 {
    guarded(0, || work::column_int64(statement as usize, column))
}

/// See clearway.h.
#[unsafe(no_mangle)]
pub extern "C" fn clearway_column_double(statement: Statement, column: c_int) -> f64 {
    guarded(0.0, || work::column_double(statement as usize, column))
}

/// See clearway.h.
#[unsafe(no_mangle)]
pub extern "C" fn clearway_column_text(statement: Statement, column: c_int) -> *const c_char {
    guarded(null(), || work::column_text(statement as usize, column).unwrap_or(null()).cast())
}

/// See clearway.h.
#[unsafe(no_mangle)]
pub extern "C" fn clearway_column_blob(statement: Statement, column: c_int) -> *const c_void {
    guarded(null(), || work::column_text(statement as usize, column).unwrap_or(null()).cast())
}

/// See clearway.h.
#[unsafe(no_mangle)]
pub extern "C" fn clearway_column_bytes(statement: Statement, column: c_int) -> c_int {
    guarded(0, || work::column_bytes(statement as usize, column))
}
