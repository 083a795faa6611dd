//! The work of the functions of `clearway.h`, by handle.
//!
//! A call takes its connection or statement out of the list of handles, works without the list's mutex, and puts it back. A call whose
//! connection or statement another call has taken returns CLEARWAY_MISUSE.

use std::ffi::{CString, c_char, c_int};
use std::sync::Arc;

use clearway::{Database, Error, Value, ValueRef};

use crate::handles::{self, Connection, ConnectionEntry, Statement, StatementEntry};

pub(crate) const OK: c_int = 0;
pub(crate) const ERROR: c_int = 1;
const INTERRUPT: c_int = 9;
const RETRY: c_int = 10;
const CANTOPEN: c_int = 14;
const CONSTRAINT: c_int = 19;
pub(crate) const MISUSE: c_int = 21;
const ROW: c_int = 100;
const DONE: c_int = 101;
const INTEGER: c_int = 1;
const FLOAT: c_int = 2;
const TEXT: c_int = 3;
const BLOB: c_int = 4;
pub(crate) const NULL: c_int = 5;

/// Parameters of a statement at most.
const PARAMETERS_MAX: usize = 65_535;

/// Takes a row's values and the columns' names; false ends the query.
pub(crate) type Callback<'a> = dyn FnMut(&[Option<CString>], &[CString]) -> bool + 'a;

/// A text for C; a zero in it ends it.
fn c_string(text: impl Into<Vec<u8>>) -> CString {
    let mut bytes: Vec<u8> = text.into();
    if let Some(zero) = bytes.iter().position(|byte| *byte == 0) {
        bytes.truncate(zero);
    }
    CString::new(bytes).unwrap_or_default()
}

fn code_of(error: &Error) -> c_int {
    match error.code() {
        Some("57014") => INTERRUPT,
        Some("40001" | "40P01") => RETRY,
        Some(code) if code.starts_with("23") => CONSTRAINT,
        _ if matches!(error, Error::Closed) => MISUSE,
        _ => ERROR,
    }
}

/// What the connection says of its last call.
fn note(entry: &mut ConnectionEntry, error: Option<&Error>) {
    let message = error.map_or_else(|| "not an error".to_owned(), ToString::to_string);
    entry.message = Arc::new(c_string(message));
    entry.sqlstate = Arc::new(c_string(error.and_then(Error::code).unwrap_or("00000")));
}

pub(crate) fn open(path: &str) -> (c_int, usize) {
    let opened = connect(path);
    handles::with(|handles| {
        let number = handles.number();
        let mut entry = ConnectionEntry {
            free: None,
            opened: false,
            cancel: None,
            message: Arc::default(),
            sqlstate: Arc::default(),
            changes: 0,
            path: None,
            database: None,
        };
        note(&mut entry, opened.as_ref().err());
        let code = match opened {
            Ok((database, inner, path)) => {
                entry.cancel = Some(inner.cancel_handle());
                entry.free = Some(Box::new(Connection { inner, stepping: 0, changes: 0 }));
                (entry.opened, entry.path, entry.database) = (true, path, Some(database));
                OK
            }
            Err(_) => CANTOPEN,
        };
        handles.connections.insert(number, entry);
        (code, number)
    })
}

fn connect(path: &str) -> Result<(Database, clearway::Connection, Option<String>), Error> {
    let shared = if path == ":memory:" { None } else { Some(absolute(path)) };
    let known = shared.as_ref().and_then(|path| {
        handles::with(|handles| {
            handles.databases.get_mut(path).map(|(database, users)| {
                *users += 1;
                database.clone()
            })
        })
    });
    let database = match (known, &shared) {
        (Some(database), _) => database,
        (None, None) => Database::in_memory()?,
        (None, Some(path)) => {
            let database = Database::open_or_connect(path)?;
            handles::with(|handles| handles.databases.insert(path.clone(), (database.clone(), 1)));
            database
        }
    };
    let connected = database.connect().and_then(|mut inner| inner.dates_as_text().map(|()| inner));
    match connected {
        Ok(inner) => Ok((database, inner, shared)),
        Err(error) => {
            leave(shared.as_deref(), database);
            Err(error)
        }
    }
}

/// The same directory has one name, however it is written.
fn absolute(path: &str) -> String {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.into());
    path.to_string_lossy().into_owned()
}

/// A connection has gone; the last one of a directory closes it.
fn leave(path: Option<&str>, database: Database) {
    let last = path.is_none_or(|path| {
        handles::with(|handles| {
            let Some((_, users)) = handles.databases.get_mut(path) else { return true };
            *users -= 1;
            if *users > 0 {
                return false;
            }
            handles.databases.remove(path);
            true
        })
    });
    if last {
        // What was committed is durable; a failed close is recovered by the next opening.
        let _ = database.close();
    }
}

pub(crate) fn close(connection: usize) -> c_int {
    let gone = handles::with(|handles| {
        let entry = handles.connections.get(&connection)?;
        if entry.opened && entry.free.is_none() {
            return None; // another thread is at work with it
        }
        let entry = handles.connections.remove(&connection)?;
        let (own, others): (Vec<_>, Vec<_>) =
            std::mem::take(&mut handles.statements).into_iter().partition(|(_, s)| s.connection == connection);
        handles.statements = others.into_iter().collect();
        Some((entry, own))
    });
    let Some((entry, statements)) = gone else { return MISUSE };
    drop(statements);
    let ConnectionEntry { free, path, database, .. } = entry;
    drop(free);
    if let Some(database) = database {
        leave(path.as_deref(), database);
    }
    OK
}

/// The text stays until the connection's next call, which puts another one in its place.
pub(crate) fn message(connection: usize) -> Option<Arc<CString>> {
    handles::with(|handles| handles.connections.get(&connection).map(|entry| Arc::clone(&entry.message)))
}

pub(crate) fn sqlstate(connection: usize) -> Option<Arc<CString>> {
    handles::with(|handles| handles.connections.get(&connection).map(|entry| Arc::clone(&entry.sqlstate)))
}

pub(crate) fn changes(connection: usize) -> i64 {
    handles::with(|handles| handles.connections.get(&connection).map_or(0, |entry| entry.changes))
}

pub(crate) fn in_transaction(connection: usize) -> c_int {
    handles::with(|handles| {
        let free = handles.connections.get(&connection).and_then(|entry| entry.free.as_ref());
        free.is_some_and(|free| free.inner.in_transaction().unwrap_or(false)).into()
    })
}

pub(crate) fn interrupt(connection: usize) -> c_int {
    let cancel = handles::with(|handles| handles.connections.get(&connection).and_then(|entry| entry.cancel.clone()));
    match cancel {
        Some(cancel) => {
            cancel.cancel();
            OK
        }
        None => MISUSE,
    }
}

/// Works with a connection that is taken out for the call; what it returns is noted.
fn at_work<T>(connection: usize, f: impl FnOnce(&mut Connection) -> Result<T, Error>) -> Result<T, c_int> {
    let taken = handles::with(|handles| handles.connections.get_mut(&connection).and_then(|entry| entry.free.take()));
    let mut taken = taken.ok_or(MISUSE)?;
    let result = f(&mut taken);
    let changes = taken.changes;
    handles::with(|handles| {
        if let Some(entry) = handles.connections.get_mut(&connection) {
            (entry.free, entry.changes) = (Some(taken), changes);
            note(entry, result.as_ref().err());
        }
    });
    result.map_err(|error| code_of(&error))
}

pub(crate) fn exec(connection: usize, sql: &str, callback: Option<&mut Callback<'_>>) -> c_int {
    let ran = at_work(connection, |connection| {
        connection.stepping = 0;
        let Some(callback) = callback else { return connection.inner.execute_batch(sql) };
        let mut rows = connection.inner.query(sql, ())?;
        let names: Vec<CString> = rows.columns().iter().map(|column| c_string(column.name.as_str())).collect();
        while let Some(row) = rows.next()? {
            let text = |at| row.value(at).map(|value| text_of(value).map(c_string));
            let values = (0..names.len()).map(text).collect::<Result<Vec<_>, _>>()?;
            if !callback(&values, &names) {
                break;
            }
        }
        connection.changes = i64::try_from(rows.changed()).unwrap_or(i64::MAX);
        Ok(())
    });
    ran.map_or_else(|code| code, |()| OK)
}

/// A value as C sees it: a text, or the bytes of a blob.
fn text_of(value: ValueRef<'_>) -> Option<Vec<u8>> {
    Some(match value {
        ValueRef::Null => return None,
        ValueRef::Bool(value) => if value { "t" } else { "f" }.into(),
        ValueRef::Int(value) => value.to_string().into_bytes(),
        ValueRef::Float(value) => value.to_string().into_bytes(),
        ValueRef::Text(text) => text.as_bytes().to_vec(),
        ValueRef::Bytes(bytes) => bytes.to_vec(),
        // Asked for as texts (`dates_as_text`).
        _ => Vec::new(),
    })
}

pub(crate) fn prepare(connection: usize, sql: &str) -> (c_int, usize) {
    handles::with(|handles| {
        if !handles.connections.get(&connection).is_some_and(|entry| entry.opened) {
            return (MISUSE, 0);
        }
        let number = handles.number();
        let statement = Statement {
            sql: sql.to_owned(),
            values: Vec::new(),
            query: None,
            on_row: false,
            texts: Default::default(),
            names: Default::default(),
        };
        handles.statements.insert(number, StatementEntry { free: Some(Box::new(statement)), connection });
        (OK, number)
    })
}

pub(crate) fn finalize(statement: usize) -> c_int {
    let code = reset(statement);
    if code == MISUSE {
        return MISUSE;
    }
    handles::with(|handles| if handles.statements.remove(&statement).is_some() { OK } else { MISUSE })
}

/// Looks at a statement that no call has at the moment.
fn with_idle<T>(statement: usize, f: impl FnOnce(&mut Statement) -> T) -> Option<T> {
    handles::with(|handles| handles.statements.get_mut(&statement).and_then(|entry| entry.free.as_deref_mut()).map(f))
}

pub(crate) fn bind(statement: usize, index: c_int, value: Value) -> c_int {
    let at = usize::try_from(index).ok().and_then(|index| index.checked_sub(1)).filter(|at| *at < PARAMETERS_MAX);
    let Some(at) = at else { return MISUSE };
    let bound = with_idle(statement, |statement| {
        // SQLite's rule: a statement that is being stepped through keeps its parameters.
        if statement.query.is_some() {
            return MISUSE;
        }
        if statement.values.len() <= at {
            statement.values.resize(at + 1, Value::Null);
        }
        statement.values[at] = value;
        OK
    });
    bound.unwrap_or(MISUSE)
}

pub(crate) fn clear_bindings(statement: usize) -> c_int {
    with_idle(statement, |statement| statement.values.clear()).map_or(MISUSE, |()| OK)
}

/// Takes a statement out, works with it and its connection, and puts it back.
fn with_statement(statement: usize, f: impl FnOnce(&mut Statement, &mut Connection) -> Result<c_int, Error>) -> c_int {
    let taken = handles::with(|handles| {
        let entry = handles.statements.get_mut(&statement)?;
        Some((entry.free.take()?, entry.connection))
    });
    let Some((mut taken, connection)) = taken else { return MISUSE };
    let result = at_work(connection, |connection| f(&mut taken, connection));
    handles::with(|handles| {
        if let Some(entry) = handles.statements.get_mut(&statement) {
            entry.free = Some(taken);
        }
    });
    result.unwrap_or_else(|code| code)
}

pub(crate) fn step(number: usize) -> c_int {
    with_statement(number, |statement, connection| {
        statement.texts.clear();
        statement.on_row = false;
        let query = match &mut statement.query {
            Some(query) => query,
            none => {
                statement.names.clear();
                connection.stepping = number;
                none.insert(connection.inner.begin_query(&statement.sql, statement.values.as_slice())?)
            }
        };
        loop {
            if query.buffered().is_some() {
                statement.on_row = true;
                return Ok(ROW);
            }
            let fetched = connection.inner.fetch(query);
            if !matches!(fetched, Ok(true)) {
                let changed = query.tag().rsplit(' ').next().and_then(|count| count.parse().ok());
                if !query.tag().starts_with("SELECT") {
                    connection.changes = changed.unwrap_or(connection.changes);
                }
                statement.query = None;
                fetched?;
                return Ok(DONE);
            }
        }
    })
}

pub(crate) fn reset(number: usize) -> c_int {
    let idle = with_idle(number, |statement| {
        statement.texts.clear();
        statement.on_row = false;
        statement.query.is_none()
    });
    match idle {
        None => MISUSE,
        Some(true) => OK,
        Some(false) => with_statement(number, |statement, connection| {
            if let Some(mut query) = statement.query.take() {
                connection.inner.end_query(&mut query)?;
            }
            Ok(OK)
        }),
    }
}

pub(crate) fn column_count(statement: usize) -> c_int {
    let count = with_idle(statement, |statement| statement.query.as_ref().map_or(0, |query| query.columns().len()));
    c_int::try_from(count.unwrap_or(0)).unwrap_or(c_int::MAX)
}

pub(crate) fn column_name(statement: usize, column: c_int) -> Option<*const c_char> {
    let at = usize::try_from(column).ok()?;
    with_idle(statement, |statement| {
        let name = statement.query.as_ref()?.columns().get(at)?.name.clone();
        Some(statement.names.entry(at).or_insert_with(|| c_string(name)).as_ptr())
    })?
}

/// Looks at a value of the current row.
fn value<T>(statement: usize, column: c_int, f: impl FnOnce(ValueRef<'_>) -> T) -> Option<T> {
    let at = usize::try_from(column).ok()?;
    with_idle(statement, |statement| {
        let row = statement.query.as_ref().filter(|_| statement.on_row)?.current()?;
        row.value(at).ok().map(f)
    })?
}

pub(crate) fn column_type(statement: usize, column: c_int) -> c_int {
    let kind = value(statement, column, |value| match value {
        ValueRef::Null => NULL,
        ValueRef::Bool(_) | ValueRef::Int(_) => INTEGER,
        ValueRef::Float(_) => FLOAT,
        ValueRef::Bytes(_) => BLOB,
        _ => TEXT,
    });
    kind.unwrap_or(NULL)
}

pub(crate) fn column_int64(statement: usize, column: c_int) -> i64 {
    let number = value(statement, column, |value| match value {
        ValueRef::Bool(value) => value.into(),
        ValueRef::Int(value) => value,
        ValueRef::Float(value) => value as i64,
        ValueRef::Text(text) => text.parse().unwrap_or(0),
        _ => 0,
    });
    number.unwrap_or(0)
}

pub(crate) fn column_double(statement: usize, column: c_int) -> f64 {
    let number = value(statement, column, |value| match value {
        ValueRef::Bool(value) => f64::from(u8::from(value)),
        ValueRef::Int(value) => value as f64,
        ValueRef::Float(value) => value,
        ValueRef::Text(text) => text.parse().unwrap_or(0.0),
        _ => 0.0,
    });
    number.unwrap_or(0.0)
}

/// The bytes of a value with a zero behind them, kept until the next step.
pub(crate) fn column_text(statement: usize, column: c_int) -> Option<*const u8> {
    let at = usize::try_from(column).ok()?;
    let mut bytes = value(statement, column, text_of)??;
    with_idle(statement, |statement| {
        let kept = statement.texts.entry(at).or_insert_with(|| {
            bytes.push(0);
            bytes
        });
        kept.as_ptr()
    })
}

pub(crate) fn column_bytes(statement: usize, column: c_int) -> c_int {
    let length = value(statement, column, |value| text_of(value).map_or(0, |bytes| bytes.len()));
    c_int::try_from(length.unwrap_or(0)).unwrap_or(c_int::MAX)
}
