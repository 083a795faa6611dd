"""The dialect of SQLAlchemy: `create_engine("clearway:///path/of/directory")`, `create_engine("clearway://")` for memory.

The language is PostgreSQL's, and so is the dialect, but for the module through which it speaks.
"""

from json import dumps

from sqlalchemy import pool, types
from sqlalchemy.dialects.postgresql import base, json


def _cast(base_type):
    """The type, with a cast around each of its parameters: the server is told what it is given."""
    return type(f"_{base_type.__name__}", (base_type,), {"render_bind_cast": True})


class _Numeric(types.Numeric):
    render_bind_cast = True

    def bind_processor(self, dialect):
        return None

    def result_processor(self, dialect, coltype):
        return None if self.asdecimal else (lambda value: None if value is None else float(value))


class _Json(json.JSON):
    render_bind_cast = True

    def result_processor(self, dialect, coltype):
        return _again(dialect)


class _Jsonb(json.JSONB):
    render_bind_cast = True

    def result_processor(self, dialect, coltype):
        return _again(dialect)


def _again(dialect):
    """The module has read the text already; a deserializer of the program's own gets it anew."""
    loads = dialect._json_deserializer
    return loads and (lambda value: None if value is None else loads(dumps(value)))


class _Interval(base.INTERVAL):
    render_bind_cast = True

    @classmethod
    def adapt_emulated_to_native(cls, interval, **options):
        return cls(precision=interval.second_precision)


class ClearwayDialect(base.PGDialect):
    """PostgreSQL's dialect over the module `clearway`."""

    driver = "clearway"
    supports_statement_cache = True
    supports_server_side_cursors = False
    supports_sane_multi_rowcount = True
    use_insertmanyvalues_wo_returning = True
    execution_ctx_cls = type("ClearwayContext", (base.PGExecutionContext,), {})
    colspecs = {
        **base.PGDialect.colspecs,
        types.Integer: _cast(types.Integer),
        types.SmallInteger: _cast(types.SmallInteger),
        types.BigInteger: _cast(types.BigInteger),
        types.Float: _cast(types.Float),
        types.Numeric: _Numeric,
        types.Boolean: _cast(types.Boolean),
        types.Date: _cast(types.Date),
        types.DateTime: _cast(types.DateTime),
        types.Time: _cast(types.Time),
        types.Interval: _Interval,
        base.INTERVAL: _Interval,
        types.Uuid: _cast(types.Uuid),
        types.JSON: _Json,
        json.JSON: _Json,
        json.JSONB: _Jsonb,
    }

    def __init__(self, **options):
        # `?` is an operator of jsonb.
        options.setdefault("paramstyle", "numeric_dollar")
        super().__init__(**options)

    @classmethod
    def import_dbapi(cls):
        import clearway

        return clearway

    @classmethod
    def get_pool_class(cls, url):
        # One connection is one database in memory: it has to stay.
        return pool.QueuePool if url.database else pool.SingletonThreadPool

    def create_connect_args(self, url):
        options = url.translate_connect_args()
        return [options.get("database") or ":memory:"], dict(url.query)

    def get_isolation_level_values(self, dbapi_connection):
        return ("AUTOCOMMIT", "READ COMMITTED", "REPEATABLE READ")

    def set_isolation_level(self, dbapi_connection, level):
        dbapi_connection.isolation_level = None if level == "AUTOCOMMIT" else level

    def get_isolation_level(self, dbapi_connection):
        level = dbapi_connection.isolation_level
        return "AUTOCOMMIT" if level is None else level or "READ COMMITTED"

    def do_begin(self, dbapi_connection):
        if dbapi_connection.isolation_level is not None and not dbapi_connection.in_transaction:
            dbapi_connection.begin()

    def is_disconnect(self, error, connection, cursor):
        return "closed database" in str(error)


dialect = ClearwayDialect
