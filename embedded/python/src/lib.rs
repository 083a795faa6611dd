//! The native module of the Python package `clearway`: databases, connections and batches of rows. The package implements DB-API 2.0 on top
//! of them in Python (`python/clearway`).
//!
//! The interpreter's lock is released during every call into the database.

use std::path::PathBuf;
use std::time::Duration;

use clearway::{CancelHandle, Error, Named, Query, ToSql, Value, ValueRef};
use clearway_base::sync::Mutex;
use pyo3::exceptions::{PyException, PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyByteArray, PyBytes, PyDict, PyFloat, PyInt, PyList, PyMemoryView, PyString, PyTuple};

pyo3::create_exception!(
    clearway_native,
    NativeError,
    PyException,
    "SQLSTATE (or the kind of error), message, detail, hint, constraint, table, column."
);

/// An error as the arguments of [`NativeError`].
fn raise(error: Error) -> PyErr {
    type Arguments = (String, String, Option<String>, Option<String>, Option<String>, Option<String>, Option<String>);
    let arguments: Arguments = match &error {
        Error::Sql(failure) => {
            let own = |text: Option<&str>| text.map(str::to_owned);
            (
                failure.code().to_owned(),
                failure.message().to_owned(),
                own(failure.detail()),
                own(failure.hint()),
                own(failure.constraint()),
                own(failure.table()),
                own(failure.column()),
            )
        }
        other => {
            let kind = match other {
                Error::Closed => "closed",
                Error::Parameters(_) => "parameters",
                Error::Lost => "lost",
                _ => "other",
            };
            (kind.to_owned(), other.to_string(), None, None, None, None, None)
        }
    };
    NativeError::new_err(arguments)
}

/// Converts a parameter; the Python side has adapted everything that is none of these.
fn value(object: &Bound<'_, PyAny>) -> PyResult<Value> {
    if object.is_none() {
        return Ok(Value::Null);
    }
    if object.is_instance_of::<PyBool>() {
        return Ok(Value::Bool(object.extract()?));
    }
    if object.is_instance_of::<PyInt>() {
        // Beyond bigint: a numeric.
        return Ok(object.extract().map_or_else(|_| Value::Text(object.to_string()), Value::Int));
    }
    if object.is_instance_of::<PyFloat>() {
        return Ok(Value::Float(object.extract()?));
    }
    if let Ok(text) = object.cast::<PyString>() {
        return Ok(Value::Text(text.extract()?));
    }
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return Ok(Value::Bytes(bytes.as_bytes().to_vec()));
    }
    if object.is_instance_of::<PyByteArray>() || object.is_instance_of::<PyMemoryView>() {
        return Ok(Value::Bytes(
            object.call_method0("__bytes__").or_else(|_| object.call_method0("tobytes"))?.extract()?,
        ));
    }
    Err(PyTypeError::new_err(format!("a parameter of type {} is not supported", object.get_type().name()?)))
}

/// The rows that are here, as tuples.
fn rows<'py>(py: Python<'py>, query: &mut Query) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    let width = query.columns().len();
    while let Some(row) = query.buffered() {
        let fields = (0..width).map(|at| row.value(at).map_err(raise).and_then(|value| object(py, value)));
        list.append(PyTuple::new(py, fields.collect::<PyResult<Vec<_>>>()?)?)?;
    }
    Ok(list)
}

/// A value of a row. Dates and times come as numbers, which the Python side makes objects of by the column's type.
fn object<'py>(py: Python<'py>, value: ValueRef<'_>) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        ValueRef::Null => py.None().into_bound(py),
        ValueRef::Bool(value) => PyBool::new(py, value).to_owned().into_any(),
        ValueRef::Int(value) => value.into_pyobject(py)?.into_any(),
        ValueRef::Float(value) => PyFloat::new(py, value).into_any(),
        ValueRef::Text(text) => PyString::new(py, text).into_any(),
        ValueRef::Bytes(bytes) => PyBytes::new(py, bytes).into_any(),
        ValueRef::Date(days) => days.into_pyobject(py)?.into_any(),
        ValueRef::Time(micros) | ValueRef::Timestamp(micros) | ValueRef::TimestampTz(micros) => {
            micros.into_pyobject(py)?.into_any()
        }
        ValueRef::Uuid(bytes) => PyBytes::new(py, &bytes).into_any(),
        other => return Err(PyTypeError::new_err(format!("{} is not supported", other.kind()))),
    })
}

/// An open database.
#[pyclass(frozen)]
struct Database {
    inner: clearway::Database,
}

#[pymethods]
impl Database {
    /// Opens a directory, or memory for None; `shared`: another process that has it open lets this one work through it.
    #[staticmethod]
    #[pyo3(signature = (path, cache_bytes=None, user=None, database=None, shared=false))]
    fn open(
        py: Python<'_>,
        path: Option<PathBuf>,
        cache_bytes: Option<usize>,
        user: Option<String>,
        database: Option<String>,
        shared: bool,
    ) -> PyResult<Database> {
        let mut builder = clearway::Database::builder();
        if let Some(bytes) = cache_bytes {
            builder = builder.cache_bytes(bytes);
        }
        if let Some(user) = user {
            builder = builder.user(user);
        }
        if let Some(database) = database {
            builder = builder.database(database);
        }
        let inner = py.detach(|| match path {
            Some(path) if shared => builder.open_or_connect(path),
            Some(path) => builder.open(path),
            None => builder.in_memory(),
        });
        Ok(Database { inner: inner.map_err(raise)? })
    }

    fn connect(&self, py: Python<'_>) -> PyResult<Connection> {
        let inner = py.detach(|| self.inner.connect()).map_err(raise)?;
        let cancel = inner.cancel_handle();
        let place = Place::Free(Box::new(State { inner, query: None }));
        Ok(Connection { place: Mutex::new("python/connection", place), cancel })
    }

    /// Serves the database at ADDRESS:PORT; the addresses where it listens.
    fn serve(&self, py: Python<'_>, address: &str) -> PyResult<Vec<String>> {
        let address = address.parse().map_err(|_| PyTypeError::new_err("the address is written ADDRESS:PORT"))?;
        let server = py.detach(|| self.inner.serve(&[address])).map_err(raise)?;
        Ok(server.addresses().iter().map(ToString::to_string).collect())
    }

    /// Whether this process has the directory open; else it works through the one that has.
    #[getter]
    fn has_directory(&self) -> bool {
        self.inner.has_directory()
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.inner.clone().close()).map_err(raise)
    }
}

/// A connection, and the query whose rows are being fetched.
#[pyclass(frozen)]
struct Connection {
    place: Mutex<Place>,
    cancel: CancelHandle,
}

/// Where a connection stands. A call takes it out, so that nothing waits with the mutex held.
enum Place {
    Free(Box<State>),
    Taken,
    Closed,
}

struct State {
    inner: clearway::Connection,
    query: Option<Query>,
}

/// Name and type of each column.
type Columns = Vec<(String, u32)>;

#[pymethods]
impl Connection {
    /// Runs a statement: its columns (None where it gives no rows), the first batch, whether more rows may follow, and the tag.
    #[pyo3(signature = (sql, parameters=None))]
    fn execute<'py>(
        &self,
        py: Python<'py>,
        sql: &str,
        parameters: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<(Option<Columns>, Bound<'py, PyList>, bool, String)> {
        let (names, values) = given(parameters)?;
        let begun = py.detach(|| {
            self.with(|state| {
                state.query = None;
                let query = match &names {
                    Some(names) => {
                        let pairs =
                            names.iter().map(String::as_str).zip(values.iter().map(|value| value as &dyn ToSql));
                        state.inner.begin_query(sql, Named(&pairs.collect::<Vec<_>>()))
                    }
                    None => state.inner.begin_query(sql, values.as_slice()),
                };
                query.map(|query| state.query = Some(query))
            })
        });
        begun?;
        self.batch(py)
    }

    /// The next batch of rows, whether more may follow, and the tag.
    fn fetch<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyList>, bool, String)> {
        py.detach(|| {
            self.with(|state| match &mut state.query {
                Some(query) => state.inner.fetch(query).map(drop),
                None => Ok(()),
            })
        })?;
        self.batch(py).map(|(_, rows, more, tag)| (rows, more, tag))
    }

    /// Ends the query; rows that were not fetched are not read.
    fn end(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| {
            self.with(|state| match state.query.take() {
                Some(mut query) => state.inner.end_query(&mut query),
                None => Ok(()),
            })
        })
    }

    /// Runs all statements of a text.
    fn batch_text(&self, py: Python<'_>, sql: &str) -> PyResult<()> {
        py.detach(|| self.with(|state| state.inner.execute_batch(sql)))
    }

    /// Bytes for COPY ... FROM STDIN.
    fn copy_in(&self, py: Python<'_>, sql: &str, data: Vec<u8>) -> PyResult<u64> {
        py.detach(|| self.with(|state| state.inner.copy_in(sql, &mut data.as_slice())))
    }

    /// Bytes of COPY ... TO STDOUT.
    fn copy_out<'py>(&self, py: Python<'py>, sql: &str) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = py.detach(|| {
            self.with(|state| {
                let mut bytes = Vec::new();
                state.inner.copy_out(sql, &mut bytes)?;
                Ok(bytes)
            })
        })?;
        Ok(PyBytes::new(py, &bytes))
    }

    fn in_transaction(&self, py: Python<'_>) -> PyResult<bool> {
        py.detach(|| self.with(|state| state.inner.in_transaction()))
    }

    /// What NOTIFY has sent to this connection; waits for the first of them at most so many seconds, without a limit for None.
    #[pyo3(signature = (seconds=None))]
    fn notifications(&self, py: Python<'_>, seconds: Option<f64>) -> PyResult<Vec<(String, String, i32)>> {
        let limit = match seconds.map(Duration::try_from_secs_f64).transpose() {
            Ok(limit) => limit,
            Err(_) => return Err(PyTypeError::new_err("the time is a number of seconds from 0 on")),
        };
        let heard = py.detach(|| self.with(|state| state.inner.notifications(limit)))?;
        Ok(heard.into_iter().map(|one| (one.channel, one.payload, one.pid)).collect())
    }

    /// Backs up into a directory; `progress` is called with the bytes done and all bytes.
    #[pyo3(signature = (target, progress=None))]
    fn backup(&self, py: Python<'_>, target: String, progress: Option<Py<PyAny>>) -> PyResult<()> {
        let mut raised = None;
        let done = py.detach(|| {
            self.with(|state| {
                state.inner.backup(&target, |done, all| {
                    let Some(progress) = progress.as_ref().filter(|_| raised.is_none()) else { return };
                    raised = Python::attach(|py| progress.call1(py, (done, all)).err());
                })
            })
        });
        done.and(raised.map_or(Ok(()), Err))
    }

    /// Stops what runs, from any thread.
    fn cancel(&self) {
        self.cancel.cancel();
    }

    /// The number in pg_stat_activity.
    #[getter]
    fn pid(&self) -> i32 {
        self.cancel.pid()
    }

    fn close(&self, py: Python<'_>) {
        py.detach(|| drop(std::mem::replace(&mut *self.place.lock(), Place::Closed)));
    }
}

impl Connection {
    /// Works with the connection.
    ///
    /// # Errors
    /// It is closed; another thread is at work with it (the Python side lets one after the other).
    fn with<T>(&self, f: impl FnOnce(&mut State) -> Result<T, Error>) -> PyResult<T> {
        let taken = {
            let mut place = self.place.lock();
            match std::mem::replace(&mut *place, Place::Taken) {
                Place::Free(state) => Some(state),
                Place::Taken => None,
                Place::Closed => {
                    *place = Place::Closed;
                    return Err(raise(Error::Closed));
                }
            }
        };
        let busy = || raise(Error::Parameters("another thread is at work with the connection".to_owned()));
        let mut state = taken.ok_or_else(busy)?;
        let result = f(&mut state);
        let mut place = self.place.lock();
        // Closed meanwhile: the connection ends here.
        if matches!(*place, Place::Taken) {
            *place = Place::Free(state);
        }
        result.map_err(raise)
    }

    fn batch<'py>(&self, py: Python<'py>) -> PyResult<(Option<Columns>, Bound<'py, PyList>, bool, String)> {
        let mut made = None;
        self.with(|state| {
            made = Some(match &mut state.query {
                Some(query) => {
                    let columns = query.columns().iter().map(|column| (column.name.clone(), column.type_oid));
                    let columns: Columns = columns.collect();
                    rows(py, query).map(|list| {
                        let (more, tag) = (query.has_more(), query.tag().to_owned());
                        ((!columns.is_empty()).then_some(columns), list, more, tag)
                    })
                }
                None => Err(PyRuntimeError::new_err("no query is open")),
            });
            Ok(())
        })?;
        made.unwrap_or_else(|| Err(PyRuntimeError::new_err("no query is open")))
    }
}

/// Names, if the parameters are a mapping, and values.
fn given(parameters: Option<&Bound<'_, PyAny>>) -> PyResult<(Option<Vec<String>>, Vec<Value>)> {
    let Some(parameters) = parameters else { return Ok((None, Vec::new())) };
    if let Ok(map) = parameters.cast::<PyDict>() {
        let (mut names, mut values) = (Vec::new(), Vec::new());
        for (name, object) in map {
            names.push(name.extract()?);
            values.push(value(&object)?);
        }
        return Ok(if names.is_empty() { (None, values) } else { (Some(names), values) });
    }
    let values = parameters.try_iter()?.map(|object| value(&object?));
    Ok((None, values.collect::<PyResult<_>>()?))
}

/// The module.
#[pymodule]
fn clearway_native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("NativeError", module.py().get_type::<NativeError>())?;
    module.add("version", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<Database>()?;
    module.add_class::<Connection>()
}
