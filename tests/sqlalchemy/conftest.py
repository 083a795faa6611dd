"""SQLAlchemy's own suite for dialects, over `clearway:///DIRECTORY`. tests/python-sqlalchemy.py runs it."""

import faulthandler

import pytest
from sqlalchemy.dialects import registry

for _name in ("clearway", "clearway.clearway"):
    registry.register(_name, "clearway.sqlalchemy", "ClearwayDialect")
pytest.register_assert_rewrite("sqlalchemy.testing.assertions")

from sqlalchemy.dialects.postgresql import provision as postgresql  # noqa: E402
from sqlalchemy.testing import provision  # noqa: E402
from sqlalchemy.testing.plugin.pytestplugin import *  # noqa: E402, F403

# A statement that never ends shows where it stands, and ends the run.
faulthandler.enable()


@provision.temp_table_keyword_args.for_db("clearway")
def _temporary(config, engine):
    return {"prefixes": ["TEMPORARY"]}


@provision.prepare_for_drop_tables.for_db("clearway")
def _prepare(config, connection):
    """A connection that forgets its transaction fails the test that comes to its locks (lock_timeout)."""


@provision.set_default_schema_on_connection.for_db("clearway")
def _schema(config, connection, name):
    level, connection.isolation_level = connection.isolation_level, None
    connection.execute(f"SET search_path = '{name}'")
    connection.isolation_level = level


@provision.post_configure_engine.for_db("clearway")
def _schemas(url, engine, follower):
    with engine.begin() as connection:
        for name in ("test_schema", "test_schema_2"):
            connection.exec_driver_sql(f"CREATE SCHEMA IF NOT EXISTS {name}")


provision.upsert.for_db("clearway")(postgresql._upsert)
provision.drop_all_schema_objects_post_tables.for_db("clearway")(postgresql.drop_all_schema_objects_post_tables)
