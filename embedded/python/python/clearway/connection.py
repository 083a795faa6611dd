"""Connections and cursors, as sqlite3 has them."""

import collections.abc
import os
import re
import threading
import weakref

from . import errors, types
from .clearway_native import Database as NativeDatabase
from .clearway_native import NativeError

NO_FACTORY = object()

#: Statements before which a transaction is begun, unless isolation_level is None.
CHANGES = re.compile(r"(?:\s|--[^\n]*\n|/\*.*?\*/)*(insert|update|delete|merge|replace|copy)\b", re.IGNORECASE | re.DOTALL)

ISOLATION_LEVELS = {
    "": "BEGIN",
    "DEFERRED": "BEGIN",
    "IMMEDIATE": "BEGIN",
    "EXCLUSIVE": "BEGIN",
    "READ COMMITTED": "BEGIN ISOLATION LEVEL READ COMMITTED",
    "REPEATABLE READ": "BEGIN ISOLATION LEVEL REPEATABLE READ",
}

_open = {}
_opening = threading.Lock()


def _level(level):
    """Refuses what is no isolation level."""
    if level is not None and (not isinstance(level, str) or level.upper() not in ISOLATION_LEVELS):
        raise ValueError(
            "isolation_level string must be '', 'DEFERRED', 'IMMEDIATE', or 'EXCLUSIVE', or 'READ COMMITTED' or 'REPEATABLE READ'"
        )


def _call(function, *arguments):
    try:
        return function(*arguments)
    except NativeError as error:
        raise errors.of(error) from None


class Database:
    """An open database; its connections share it. The connections of `connect(path)` share one, too.

    Several processes may open one directory: the first one has it, the others work through that process. With `shared=False` a second
    process is refused instead, and told which one has the directory.
    """

    def __init__(self, path=":memory:", *, cache_bytes=None, user=None, database=None, shared=True):
        self.path = None if path == ":memory:" else os.path.realpath(os.fspath(path))
        self._native = _call(NativeDatabase.open, self.path, cache_bytes, user, database, shared)
        self._users = None

    def connect(self, **options):
        """A connection; each thread that works at the same time as others has its own."""
        return (options.pop("factory", None) or Connection)(self, **options)

    @property
    def has_directory(self):
        """Whether this process has the directory open; else it works through the process that has."""
        return self._native.has_directory

    def serve(self, address="127.0.0.1:0"):
        """Opens the live database to psql and other clients of PostgreSQL's protocol; the addresses where it listens."""
        return _call(self._native.serve, address)

    def close(self):
        """Closes for good: connections answer ProgrammingError from now on, open transactions are rolled back."""
        with _opening:
            if _open.get(self.path) is self:
                del _open[self.path]
        _call(self._native.close)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _leave(self):
        """A connection of `connect(path)` has closed; the last one closes the database."""
        if self._users is None:
            return
        with _opening:
            self._users -= 1
            last = self._users == 0
            if last:
                _open.pop(self.path, None)
                _call(self._native.close)


def connect(database, timeout=5.0, detect_types=0, isolation_level="", check_same_thread=False, factory=None, cached_statements=128, uri=False):
    """Opens the directory `database`, or makes it, and returns a connection. Several connections of this process share it.

    `timeout` is the longest wait for a lock in seconds (lock_timeout); 0 or None: no limit. `detect_types` asks for sqlite3's converters, which get
    bytes; without it converters get values. `check_same_thread` and `cached_statements` have nothing to do here: any thread may use a connection.
    """
    options = {"timeout": timeout, "isolation_level": isolation_level}
    if detect_types != 0:
        options["detect_types"] = detect_types
    if uri:
        options["uri"] = uri
    return (factory or Connection)(database, **options)


def _shared(path):
    """The open database of a directory, for one connection more."""
    with _opening:
        shared = _open.get(path)
        if shared is None:
            shared = Database(path)
            shared._users = 0
            _open[path] = shared
        shared._users += 1
    return shared


def _opened(database):
    """The database of an argument of `connect`."""
    if isinstance(database, Database):
        return database
    name = os.fspath(database)
    if isinstance(name, bytes):
        name = os.fsdecode(name)
    if name == ":memory:":
        shared = Database()
        shared._users = 1
        return shared
    return _shared(os.path.realpath(name))


#: Names are found in any case of their ASCII letters.
LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}


class Row:
    """A row whose values are found by number or by name, in any case; `row_factory = clearway.Row` asks for it."""

    __slots__ = ("_names", "_values")

    def __init__(self, cursor, values):
        if not issubclass(type(cursor), Cursor):
            raise TypeError(f"a row belongs to a cursor, not to {type(cursor).__name__}")
        self._names = tuple(column[0] for column in cursor.description or ())
        self._values = tuple(values)

    def keys(self):
        return list(self._names)

    def __getitem__(self, key):
        if isinstance(key, str):
            lower = key.translate(LOWER)
            for name, value in zip(self._names, self._values):
                if name.translate(LOWER) == lower:
                    return value
            raise IndexError("No item with that key")
        if not isinstance(key, (int, slice)):
            raise IndexError("Index must be int or string")
        return self._values[key]

    def __len__(self):
        return len(self._values)

    def __iter__(self):
        return iter(self._values)

    def __eq__(self, other):
        return isinstance(other, Row) and (self._names, self._values) == (other._names, other._values)

    def __hash__(self):
        return hash((self._names, self._values))

    def __repr__(self):
        fields = ", ".join(f"{name}={value!r}" for name, value in zip(self._names, self._values))
        return f"Row({fields})"


collections.abc.Sequence.register(Row)


class Connection:
    """A connection. Its methods may be called from any thread, one at a time."""

    Error = errors.Error
    Warning = errors.Warning
    InterfaceError = errors.InterfaceError
    DatabaseError = errors.DatabaseError
    DataError = errors.DataError
    OperationalError = errors.OperationalError
    IntegrityError = errors.IntegrityError
    InternalError = errors.InternalError
    ProgrammingError = errors.ProgrammingError
    NotSupportedError = errors.NotSupportedError

    def __init__(self, database, timeout=None, detect_types=0, isolation_level="", check_same_thread=False, factory=None, cached_statements=128, uri=False):
        if detect_types not in (0, 1, 2, 3):
            raise errors.NotSupportedError("detect_types is PARSE_DECLTYPES, PARSE_COLNAMES or both")
        if uri:
            raise errors.NotSupportedError("URIs are not supported: give the path of a directory, or ':memory:'")
        _level(isolation_level)
        if self.__dict__.get("_native") is not None:
            self.close()
        self._native = None
        self.database = _opened(database)
        self.row_factory = None
        self.text_factory = str
        self._detect_types = detect_types
        self._trace = None
        self._changes = 0
        self._lock = threading.RLock()
        self._cursor = lambda: None
        try:
            self._native = _call(self.database._native.connect)
            self._isolation_level = isolation_level
            if timeout:
                _call(self._native.batch_text, f"SET lock_timeout = {int(timeout * 1000)}")
        except BaseException:
            self._native = None
            self.database._leave()
            raise

    @property
    def total_changes(self):
        """How many rows the connection has changed so far."""
        self._checked()
        return self._changes

    @property
    def isolation_level(self):
        """'' (a transaction begins before the first change), None (each statement by itself), or REPEATABLE READ."""
        self._checked()
        return self._isolation_level

    @isolation_level.setter
    def isolation_level(self, level):
        self._checked()
        _level(level)
        self._isolation_level = level
        if level is None and self.in_transaction:
            self.commit()

    @property
    def in_transaction(self):
        """Whether a transaction is open."""
        native = self._checked()
        with self._lock:
            return _call(native.in_transaction)

    @property
    def pid(self):
        """The connection's number in pg_stat_activity and in lock views."""
        return self._checked().pid

    def cursor(self, factory=NO_FACTORY):
        """A cursor."""
        self._checked()
        cursor = (Cursor if factory is NO_FACTORY else factory)(self)
        if not issubclass(type(cursor), Cursor):
            raise TypeError(f"factory must return a cursor, not {type(cursor).__name__}")
        if self.row_factory is not None:
            cursor.row_factory = self.row_factory
        return cursor

    def execute(self, sql, parameters=()):
        """Runs a statement with a new cursor."""
        return self.cursor().execute(sql, parameters)

    def executemany(self, sql, parameters):
        """Runs a statement for each set of parameters."""
        return self.cursor().executemany(sql, parameters)

    def executescript(self, script):
        """Runs all statements of a text."""
        return self.cursor().executescript(script)

    def begin(self):
        """Begins a transaction at the isolation level of the connection."""
        with self._lock:
            self._set_aside(None)
            _call(self._checked().execute, ISOLATION_LEVELS[(self._isolation_level or "").upper()], None)

    def commit(self):
        """Ends the transaction and returns when it is durable; nothing happens if none is open."""
        self._end("COMMIT")

    def rollback(self):
        """Undoes the transaction; nothing happens if none is open."""
        self._end("ROLLBACK")

    def _end(self, how):
        native = self._checked()
        with self._lock:
            self._set_aside(None)
            if not _call(native.in_transaction):
                return
            self._say(how)
            tag = _call(native.execute, how, None)[3]
        if how == "COMMIT" and tag == "ROLLBACK":
            raise errors.InternalError("the transaction is rolled back: one of its statements failed", "25P02")

    def interrupt(self):
        """Stops what the connection runs, from any thread: it fails with OperationalError, SQLSTATE 57014."""
        self._checked().cancel()

    def notifications(self, timeout=None):
        """What NOTIFY has sent on the channels to which this connection said LISTEN, as a list of (channel, payload, pid). Waits for the first
        of them, at most `timeout` seconds; in a transaction none come."""
        with self._lock:
            self._set_aside(None)
            return _call(self._checked().notifications, timeout)

    def backup(self, target, *, progress=None):
        """Backs the database up into the directory of backups `target`, while others go on working. `clearway restore` makes a directory of it.
        `progress(done, all)` is called with bytes."""
        if isinstance(target, Connection):
            raise errors.NotSupportedError("a backup goes to a directory of backups: give its path")
        with self._lock:
            self._set_aside(None)
            _call(self._checked().backup, os.fspath(target), progress)

    def copy_in(self, sql, data):
        """Runs COPY ... FROM STDIN with these bytes; how many rows there were."""
        with self._lock:
            self._set_aside(None)
            self._begin(sql)
            return _call(self._checked().copy_in, sql, bytes(data))

    def copy_out(self, sql):
        """The bytes of COPY ... TO STDOUT."""
        with self._lock:
            self._set_aside(None)
            return _call(self._checked().copy_out, sql)

    def close(self):
        """Closes; an open transaction is rolled back."""
        if "_native" not in self.__dict__:
            raise errors.ProgrammingError("Base Connection.__init__ not called.")
        native, self._native = self._native, None
        if native is not None:
            native.close()
            self.database._leave()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            try:
                self.commit()
            except errors.Error:
                self.rollback()
                raise
        else:
            self.rollback()
        return False

    def __call__(self, *sql):
        self._checked()
        raise errors.NotSupportedError("statements are kept prepared by their text; there are no statement objects")

    def __del__(self):
        try:
            self.close()
        except Exception:  # noqa: BLE001 (nobody is there to be told)
            pass

    def __getattr__(self, name):
        if name in UNSUPPORTED:

            def refuse(*_, **__):
                self._checked()
                raise errors.NotSupportedError(f"{name} is not supported: {UNSUPPORTED[name]}")

            return refuse
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def _checked(self):
        native = self.__dict__.get("_native", NO_FACTORY)
        if native is NO_FACTORY:
            raise errors.ProgrammingError("Base Connection.__init__ not called.")
        if native is None:
            raise errors.ProgrammingError("Cannot operate on a closed database.")
        return native

    def _begin(self, sql):
        if self._isolation_level is not None and CHANGES.match(sql):
            native = self._checked()
            if not _call(native.in_transaction):
                self._say(f"BEGIN {self._isolation_level}")
                _call(native.execute, ISOLATION_LEVELS[self._isolation_level.upper()], None)
        self._say(sql)

    def _say(self, sql):
        if self._trace is not None:
            self._trace(sql)

    def set_trace_callback(self, trace_callback):
        """`trace_callback(sql)` is called with each statement that the connection runs, BEGIN and COMMIT included; None ends that."""
        self._checked()
        self._trace = trace_callback

    def _set_aside(self, cursor):
        """Another cursor wants the connection: the one whose rows are being fetched takes the rest of them into memory."""
        active = self._cursor()
        if active is not None and active is not cursor:
            active._take_rest()
        self._cursor = (lambda: None) if cursor is None else weakref.ref(cursor)


#: Methods of sqlite3 that have no counterpart.
UNSUPPORTED = {
    "blobopen": "values are read and written whole",
    "create_aggregate": "functions in Python do not run in the database",
    "create_collation": "texts are ordered by their bytes (C.UTF-8)",
    "create_function": "functions in Python do not run in the database",
    "create_window_function": "functions in Python do not run in the database",
    "deserialize": "a database is a directory",
    "enable_load_extension": "there are no extensions to load",
    "iterdump": "`pg_dump` writes a database that is served",
    "load_extension": "there are no extensions to load",
    "serialize": "a database is a directory",
    "set_authorizer": "GRANT and REVOKE say what a role may do",
    "set_progress_handler": "statement_timeout and interrupt() stop a statement",
}


#: Names of parameters, and some that stand in literals; those are not used.
NAMES_IN_TEXT = re.compile(r"(?<![:\w]):([A-Za-z_]\w*)")


#: How SQLite's programs begin a transaction; the word has nothing to do here, since no writer keeps the others out.
BEGIN = re.compile(r"\s*begin\s+(?:deferred|immediate|exclusive)\b", re.IGNORECASE)


def _text(sql):
    """A statement as the database takes it."""
    if not isinstance(sql, str):
        raise TypeError("the statement must be a str")
    return BEGIN.sub("BEGIN", sql, count=1) if BEGIN.match(sql) else sql


class Cursor:
    """A statement's rows."""

    def __init__(self, connection):
        if not isinstance(connection, Connection):
            raise TypeError("a cursor belongs to a connection")
        self.connection = connection
        self.arraysize = 1
        self.row_factory = None
        self._closed = False
        self._reset()

    def _reset(self):
        self.description = None
        self.rowcount = -1
        self.lastrowid = None
        self._rows = []
        self._next = 0
        self._more = False
        self._converters = ()

    def execute(self, sql, parameters=()):
        """Runs a statement."""
        connection = self._ready()
        sql = _text(sql)
        given = self._given(parameters, sql)
        with connection._lock:
            connection._set_aside(self)
            self._reset()
            connection._begin(sql)
            self._run(sql, given)
        return self

    def executemany(self, sql, parameters):
        """Runs a statement for each set of parameters."""
        connection = self._ready()
        sql = _text(sql)
        count = 0
        with connection._lock:
            connection._set_aside(self)
            self._reset()
            connection._begin(sql)
            for given in parameters:
                self._reset()
                self._run(sql, self._given(given, sql))
                if self.description is not None:
                    raise errors.ProgrammingError("executemany() can only execute statements that return no rows")
                count += max(self.rowcount, 0)
        self.rowcount = count
        return self

    def executescript(self, script):
        """Runs all statements of a text; an open transaction is committed first."""
        connection = self._ready()
        if not isinstance(script, str):
            raise TypeError("the script must be a str")
        if "\0" in script:
            raise ValueError("embedded null character")
        with connection._lock:
            connection.commit()
            connection._set_aside(self)
            self._reset()
            _call(connection._checked().batch_text, script)
        return self

    @staticmethod
    def _given(parameters, sql):
        if isinstance(parameters, (list, tuple)):
            return [types.parameter(value) for value in parameters] or None
        if hasattr(parameters, "keys") and not isinstance(parameters, Row):
            names = set(parameters.keys())
            if hasattr(parameters, "__missing__"):
                # It makes values as they are asked for.
                names.update(NAMES_IN_TEXT.findall(sql))
            return {name: types.parameter(parameters[name]) for name in names} or None
        if isinstance(parameters, (str, bytes)):
            raise errors.ProgrammingError("parameters are a sequence or a mapping, not a text")
        if hasattr(parameters, "__len__") and hasattr(parameters, "__getitem__"):
            parameters = [parameters[at] for at in range(len(parameters))]
        elif not hasattr(parameters, "__iter__"):
            raise errors.ProgrammingError("parameters are of unsupported type")
        return [types.parameter(value) for value in parameters] or None

    def _run(self, sql, given):
        native = self.connection._checked()
        try:
            columns, rows, more, tag = _call(native.execute, sql, given)
        except TypeError as error:
            raise errors.ProgrammingError(str(error)) from None
        if columns is not None:
            by_name = self.connection._detect_types & 2
            convert = ((at, self._converter(name if by_name else "", oid)) for at, (name, oid) in enumerate(columns))
            self._converters = tuple(pair for pair in convert if pair[1] is not None)
            if by_name:
                columns = [(name.partition(" [")[0], oid) for name, oid in columns]
            self.description = tuple((name, oid, None, None, None, None, None) for name, oid in columns)
        self._accept(rows, more, tag)

    def _converter(self, name, oid):
        """What makes a value of a column's raw value. `name` may name a converter (PARSE_COLNAMES)."""
        connection = self.connection
        wanted = name.rpartition("[")[2].rstrip("]") if name.endswith("]") else None
        if connection._detect_types:
            found = types.sqlite3_converter(wanted, oid, connection._detect_types & 1)
            if found is not None:
                return found
        factory = connection.text_factory
        if factory is not str and oid == types.STRING:
            return lambda text: factory(text.encode())
        return types.plain_converter(oid) if connection._detect_types else types.converter(oid)

    def _accept(self, rows, more, tag):
        if self._converters:
            rows = [self._converted(row) for row in rows]
        self._rows = rows
        self._next = 0
        self._more = more
        if not more and tag:
            word, _, number = tag.rpartition(" ")
            changed = number.isdigit() and not word.startswith("SELECT")
            if changed:
                self.rowcount = int(number)
                self.connection._changes += self.rowcount
            elif number.isdigit() and self.rowcount < 0:
                self.rowcount = -1

    def _converted(self, row):
        values = list(row)
        for at, convert in self._converters:
            if values[at] is not None:
                values[at] = convert(values[at])
        return tuple(values)

    def _take_rest(self):
        rows = self._rows[self._next :]
        while self._more:
            self._fetch()
            rows.extend(self._rows)
        self._rows = rows
        self._next = 0

    def _fetch(self):
        self._accept(*_call(self.connection._checked().fetch))

    def fetchone(self):
        """The next row, or None."""
        with self._ready()._lock:
            while self._next == len(self._rows):
                if not self._more:
                    return None
                self._fetch()
            row = self._rows[self._next]
            self._next += 1
        factory = self.row_factory
        return row if factory is None else factory(self, row)

    def fetchmany(self, size=None):
        """The next rows, at most `size`."""
        rows = []
        for _ in range(self.arraysize if size is None else size):
            row = self.fetchone()
            if row is None:
                break
            rows.append(row)
        return rows

    def fetchall(self):
        """All rows that are left."""
        return list(self)

    def fetch_arrow_table(self):
        """All rows that are left as a table of pyarrow, which must be installed."""
        import pyarrow

        described = [(column[0], column[1]) for column in self.description or ()]
        factory, self.row_factory = self.row_factory, None
        try:
            columns = list(zip(*self)) or [()] * len(described)
        finally:
            self.row_factory = factory
        arrays = [types.arrow_array(pyarrow, column, oid) for column, (_, oid) in zip(columns, described)]
        return pyarrow.Table.from_arrays(arrays, names=[name for name, _ in described])

    def __iter__(self):
        return self

    def __next__(self):
        row = self.fetchone()
        if row is None:
            raise StopIteration
        return row

    def close(self):
        """Ends the query."""
        if self._more:
            with self.connection._lock:
                if self.connection._cursor() is self and self.connection._native is not None:
                    _call(self.connection._native.end)
        self._reset()
        self._closed = True

    def setinputsizes(self, sizes):
        """Does nothing; DB-API 2.0 wants it."""

    def setoutputsize(self, size, column=None):
        """Does nothing; DB-API 2.0 wants it."""

    def _ready(self):
        if self._closed:
            raise errors.ProgrammingError("Cannot operate on a closed cursor.")
        self.connection._checked()
        return self.connection
