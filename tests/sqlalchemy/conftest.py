"""SQLAlchemy's own suite for dialects, over `clearway:///DIRECTORY`. tests/python-sqlalchemy.py runs it."""

import pytest
from sqlalchemy.dialects import registry

for _name in ("clearway", "clearway.clearway"):
    registry.register(_name, "clearway.sqlalchemy", "ClearwayDialect")
pytest.register_assert_rewrite("sqlalchemy.testing.assertions")

from sqlalchemy.testing import provision  # noqa: E402
from sqlalchemy.testing.plugin.pytestplugin import *  # noqa: E402, F403


@provision.temp_table_keyword_args.for_db("clearway")
def _temporary(config, engine):
    return {"prefixes": ["TEMPORARY"]}


@provision.prepare_for_drop_tables.for_db("clearway")
def _prepare(config, connection):
    """Nothing holds locks: each connection of the suite is this process's."""


@provision.set_default_schema_on_connection.for_db("clearway")
def _schema(config, connection, name):
    level, connection.isolation_level = connection.isolation_level, None
    connection.execute(f"SET search_path = '{name}'")
    connection.isolation_level = level
