"""Clearway for Python: a transactional SQL database inside the program, in the manner of sqlite3 (DB-API 2.0, PEP 249).

    import clearway
    connection = clearway.connect("visits")          # a directory; ":memory:" for memory
    with connection:                                  # commits, or rolls back on an exception
        connection.execute("CREATE TABLE IF NOT EXISTS visits (page text PRIMARY KEY, n bigint)")
        connection.execute("INSERT INTO visits VALUES (?, 1) ON CONFLICT (page) DO UPDATE SET n = visits.n + 1", ("/",))
    print(connection.execute("SELECT * FROM visits").fetchall())

The language is PostgreSQL's. Parameters are written `?`, `$1` or `:name`. Any number of connections, from any threads, may write at the same
time: none is ever told that the database is locked.
"""

from .clearway_native import version as __version__
from .connection import Connection, Cursor, Database, Row, connect
from .errors import (
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    Warning,
)
from .types import (
    BINARY,
    DATETIME,
    NUMBER,
    ROWID,
    STRING,
    Binary,
    Date,
    DateFromTicks,
    PrepareProtocol,
    Time,
    TimeFromTicks,
    Timestamp,
    TimestampFromTicks,
    adapt,
    adapters,
    converters,
    register_adapter,
    register_converter,
)

apilevel = "2.0"
#: Threads may share the module, connections and cursors.
threadsafety = 3
#: `$1` and `:name` work, too.
paramstyle = "qmark"

#: sqlite3's flag for converters by a column's declared type, which are always in force.
PARSE_DECLTYPES = 1

#: sqlite3's flag for converters by a column's name, which is refused: cast in the statement.
PARSE_COLNAMES = 2

version = __version__
version_info = tuple(int(part) for part in __version__.split("."))

__all__ = [name for name in dir() if not name.startswith("_")]
