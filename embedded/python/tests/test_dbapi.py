"""The package as programs use it; where sqlite3 has the same, both are asked."""

import asyncio
import datetime
import decimal
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import uuid

import pytest

import clearway


@pytest.fixture
def connection():
    with_memory = clearway.connect(":memory:")
    yield with_memory
    with_memory.close()


@pytest.fixture(params=[clearway, sqlite3], ids=["clearway", "sqlite3"])
def module(request):
    return request.param


def test_the_module_says_what_pep_249_wants():
    assert (clearway.apilevel, clearway.paramstyle) == ("2.0", "qmark")
    assert issubclass(clearway.IntegrityError, clearway.DatabaseError)
    assert clearway.Connection.OperationalError is clearway.OperationalError


def test_cursors_as_in_sqlite(module):
    connection = module.connect(":memory:")
    cursor = connection.cursor()
    cursor.execute("CREATE TABLE t (a integer PRIMARY KEY, b text)")
    assert cursor.description is None
    cursor.executemany("INSERT INTO t VALUES (?, ?)", [(i, f"row {i}") for i in range(10)])
    assert cursor.rowcount == 10
    cursor.execute("SELECT a, b FROM t WHERE a >= ? ORDER BY a", (3,))
    assert [column[0] for column in cursor.description] == ["a", "b"]
    assert cursor.fetchone() == (3, "row 3")
    assert cursor.fetchmany(2) == [(4, "row 4"), (5, "row 5")]
    assert [row[0] for row in cursor] == [6, 7, 8, 9]
    assert cursor.fetchone() is None and cursor.fetchall() == []
    cursor.execute("UPDATE t SET b = NULL WHERE a < :limit", {"limit": 4})
    assert cursor.rowcount == 4
    assert connection.execute("SELECT b FROM t WHERE a = 0").fetchone() == (None,)
    cursor.close()
    with pytest.raises(module.ProgrammingError):
        cursor.execute("SELECT 1")
    connection.close()
    with pytest.raises(module.ProgrammingError):
        connection.execute("SELECT 1")


def test_transactions_as_in_sqlite(module):
    connection = module.connect(":memory:")
    connection.execute("CREATE TABLE t (a integer PRIMARY KEY)")
    connection.commit()
    with connection:
        connection.execute("INSERT INTO t VALUES (1)")
        assert connection.in_transaction
    assert not connection.in_transaction
    with pytest.raises(ZeroDivisionError), connection:
        connection.execute("INSERT INTO t VALUES (2)")
        raise ZeroDivisionError
    with pytest.raises(module.IntegrityError), connection:
        connection.execute("INSERT INTO t VALUES (1)")
    assert connection.execute("SELECT count(*) FROM t").fetchone() == (1,)
    connection.isolation_level = None
    connection.execute("INSERT INTO t VALUES (3)")
    assert not connection.in_transaction
    connection.rollback()
    assert connection.execute("SELECT count(*) FROM t").fetchone() == (2,)


def test_rows_by_name_as_in_sqlite(module):
    connection = module.connect(":memory:")
    connection.row_factory = module.Row
    row = connection.execute("SELECT 1 AS one, 'x' AS letter").fetchone()
    assert (row["one"], row["LETTER"], row[0], row[-1], len(row)) == (1, "x", 1, "x", 2)
    assert row.keys() == ["one", "letter"] and tuple(row) == (1, "x") and dict(row) == {"one": 1, "letter": "x"}
    with pytest.raises(IndexError):
        row["other"]
    connection.row_factory = lambda cursor, values: {column[0]: value for column, value in zip(cursor.description, values)}
    assert connection.execute("SELECT 1 AS one").fetchone() == {"one": 1}


def test_a_loop_over_one_cursor_may_write_with_another(module):
    connection = module.connect(":memory:")
    connection.execute("CREATE TABLE t (a integer PRIMARY KEY, b integer)")
    connection.executemany("INSERT INTO t VALUES (?, 0)", ((i,) for i in range(1500)))
    seen = 0
    for (a,) in connection.execute("SELECT a FROM t ORDER BY a"):
        seen += 1
        if a % 500 == 0:
            connection.execute("UPDATE t SET b = 1 WHERE a = ?", (a,))
    assert seen == 1500
    assert connection.execute("SELECT sum(b) FROM t").fetchone() == (3,)


def test_values_have_the_types_of_their_columns(connection):
    moment = datetime.datetime(2026, 11, 22, 9, 52, 27, 123456, tzinfo=datetime.timezone.utc)
    values = {
        "boolean": True,
        "smallint": -7,
        "bigint": 2**62,
        "float8": 0.1,
        "numeric": decimal.Decimal("12345678901234567890.123"),
        "text": "ünïcode",
        "bytea": b"\x00\xff",
        "date": datetime.date(1999, 12, 31),
        "time": datetime.time(23, 59, 59, 5),
        "timestamp": moment.replace(tzinfo=None),
        "timestamptz": moment,
        "uuid": uuid.UUID(int=5),
        "jsonb": {"a": [1, None, "x"]},
        "int[]": [1, None, 3],
        "text[]": ["a", 'b"c\\', "NULL", ""],
    }
    for name, value in values.items():
        assert connection.execute(f"SELECT ?::{name}", (value,)).fetchone() == (value,), name
        assert connection.execute(f"SELECT ?::{name}", (None,)).fetchone() == (None,), name
    assert connection.execute("SELECT ?::numeric", (2**80,)).fetchone() == (2**80,)


def test_intervals_and_times_of_a_zone(connection):
    one = lambda sql: connection.execute(f"SELECT {sql}").fetchone()[0]
    delta = datetime.timedelta
    assert one("interval '1 day 02:03:04.5'") == delta(days=1, hours=2, minutes=3, seconds=4.5)
    assert one("interval '-00:00:01'") == delta(seconds=-1)
    assert one("interval '1 year 2 mons -3 days'") == delta(days=365 + 60 - 3)
    assert one("interval '0'") == delta()
    value = delta(days=-2, hours=5, microseconds=7)
    assert connection.execute("SELECT ?::interval", (value,)).fetchone() == (value,)
    zone = datetime.timezone(delta(hours=-3, minutes=-30))
    assert one("time with time zone '12:34:56.5-03:30'") == datetime.time(12, 34, 56, 500_000, zone)
    connection.execute("CREATE TABLE t (a int, b int, c int, PRIMARY KEY (c, a))")
    assert one("indkey FROM pg_index WHERE indrelid = 't'::regclass") == [3, 1]


def test_adapters_and_converters(connection):
    class Point:
        def __init__(self, x):
            self.x = x

    clearway.register_adapter(Point, lambda point: point.x)
    assert connection.execute("SELECT ?::int", (Point(5),)).fetchone() == (5,)
    with pytest.raises(clearway.ProgrammingError, match="object"):
        connection.execute("SELECT ?::int", (object(),))


def test_errors_have_their_sqlstate(connection):
    connection.isolation_level = None
    connection.execute("CREATE TABLE t (a int CONSTRAINT positive CHECK (a > 0))")
    with pytest.raises(clearway.IntegrityError) as caught:
        connection.execute("INSERT INTO t VALUES (-1)")
    assert (caught.value.sqlstate, caught.value.constraint_name, caught.value.table_name) == ("23514", "positive", "t")
    for sql, kind in [
        ("SELEC 1", clearway.ProgrammingError),
        ("SELECT * FROM nowhere", clearway.ProgrammingError),
        ("SELECT 1 / 0", clearway.DataError),
        ("CREATE TRIGGER x BEFORE INSERT ON t EXECUTE FUNCTION f()", clearway.NotSupportedError),
    ]:
        with pytest.raises(kind):
            connection.execute(sql)
    with pytest.raises(clearway.ProgrammingError):
        connection.execute("SELECT ?::int", (1, 2))
    with pytest.raises(clearway.NotSupportedError, match="create_function"):
        connection.create_function("f", 1, len)


def test_forty_threads_write_at_once_and_nobody_is_told_that_it_is_locked(tmp_path):
    path = tmp_path / "visits"
    setup = clearway.connect(path)
    setup.executescript("CREATE TABLE t (a int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 0)")
    failures = []

    def count():
        try:
            connection = clearway.connect(path, isolation_level=None)
            for _ in range(25):
                connection.execute("UPDATE t SET n = n + 1 WHERE a = 1")
            connection.close()
        except Exception as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=count) for _ in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert setup.execute("SELECT n FROM t").fetchone() == (1000,)
    setup.close()
    again = clearway.connect(path)
    assert again.execute("SELECT n FROM t").fetchone() == (1000,)
    again.close()


def test_a_statement_is_stopped_from_another_thread(connection):
    done = threading.Event()

    def interrupt():
        while not done.wait(0.02):
            connection.interrupt()

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(clearway.OperationalError) as caught:
        connection.execute("SELECT pg_sleep(600)")
    done.set()
    thread.join()
    assert caught.value.sqlstate == "57014"


def test_asyncio():
    from clearway import aio

    async def work():
        async with await aio.connect(":memory:") as connection:
            await connection.execute("CREATE TABLE t (a int)")
            await connection.executemany("INSERT INTO t VALUES (?)", [(i,) for i in range(5)])
            cursor = await connection.execute("SELECT a FROM t ORDER BY a")
            rows = [row[0] async for row in cursor]
            sleeping = asyncio.create_task(connection.execute("SELECT pg_sleep(600)"))
            await asyncio.sleep(0.1)
            sleeping.cancel()
            with pytest.raises(asyncio.CancelledError):
                await sleeping
            await connection.rollback()
            return rows

    assert asyncio.run(work()) == [0, 1, 2, 3, 4]


def test_what_was_committed_survives_kill_9(tmp_path):
    program = """
import sys, clearway
connection = clearway.connect(sys.argv[1])
connection.execute("CREATE TABLE t (a int PRIMARY KEY)")
connection.commit()
i = 0
while True:
    with connection:
        connection.execute("INSERT INTO t VALUES (?)", (i,))
    print(i, flush=True)
    i += 1
"""
    child = subprocess.Popen([sys.executable, "-c", program, str(tmp_path / "db")], stdout=subprocess.PIPE, text=True)
    acknowledged = -1
    for line in child.stdout:
        acknowledged = int(line)
        if acknowledged >= 200:
            os.kill(child.pid, signal.SIGKILL)
            break
    # The last line may be cut off.
    complete = child.stdout.read().split("\n")[:-1]
    child.wait()
    acknowledged = max([acknowledged, *map(int, complete)])
    connection = clearway.connect(tmp_path / "db")
    count, last = connection.execute("SELECT count(*), max(a) FROM t").fetchone()
    assert count == last + 1 and last >= acknowledged
    connection.close()


def test_the_live_database_is_served(connection):
    connection.executescript("CREATE TABLE t (a int); INSERT INTO t VALUES (7)")
    host, port = connection.database.serve()[0].split(":")
    command = ["psql", "-XAtq", "-h", host, "-p", port, "-U", "postgres", "-d", "clearway", "-c", "SELECT a FROM t"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "7\n"


def test_copy(connection):
    connection.execute("CREATE TABLE t (a int, b text)")
    assert connection.copy_in("COPY t FROM STDIN (FORMAT csv)", b"1,one\n2,two\n") == 2
    connection.commit()
    assert connection.copy_out("COPY t TO STDOUT") == b"1\tone\n2\ttwo\n"


OTHER = """
import sys, clearway
database = clearway.Database(sys.argv[1], shared=sys.argv[2] == "shared")
print(database.has_directory, flush=True)
connection = database.connect()
for line in sys.stdin:
    print(connection.execute(line).fetchall(), flush=True)
    connection.commit()
"""


def other(path, how="shared"):
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([sys.executable, "-c", OTHER, str(path), how], text=True, **pipes)


def test_several_processes_work_with_one_directory(tmp_path):
    path = tmp_path / "db"
    owner = other(path)
    assert owner.stdout.readline() == "True\n"
    connection = clearway.connect(path)
    assert not connection.database.has_directory
    connection.executescript("CREATE TABLE t (a int PRIMARY KEY)")
    with connection:
        connection.executemany("INSERT INTO t VALUES (?)", [(i,) for i in range(1000)])
    owner.stdin.write("SELECT count(*) FROM t\n")
    owner.stdin.flush()
    assert owner.stdout.readline() == "[(1000,)]\n"
    with pytest.raises(clearway.IntegrityError), connection:
        connection.execute("INSERT INTO t VALUES (1)")
    # The owner dies: the open transaction is lost with it, what was acknowledged is not, and this process opens the directory.
    connection.execute("INSERT INTO t VALUES (2000)")
    owner.kill()
    owner.wait()
    for _ in range(2):
        with pytest.raises(clearway.OperationalError, match="has ended"):
            connection.execute("INSERT INTO t VALUES (2001)")
    connection.rollback()
    assert connection.execute("SELECT count(*) FROM t").fetchone() == (1000,)
    assert connection.database.has_directory
    refused = other(path, "alone")
    assert refused.wait() != 0 and str(os.getpid()) in refused.stderr.read()
    connection.close()


def test_notifications(connection):
    connection.execute("LISTEN news")
    assert connection.notifications(0) == []
    sender = connection.database.connect()
    sender.isolation_level = None
    sender.execute("NOTIFY news, 'seven'")
    assert connection.notifications(60) == [("news", "seven", sender.pid)]
    sender.close()


def test_backup(connection, tmp_path):
    connection.executescript("CREATE TABLE t (a int); INSERT INTO t VALUES (7)")
    seen = []
    connection.backup(tmp_path / "backups", progress=lambda done, all: seen.append((done, all)))
    assert seen and seen[-1][0] > 0 and list((tmp_path / "backups").iterdir())
    with pytest.raises(clearway.NotSupportedError):
        connection.backup(clearway.connect(":memory:"))
    with pytest.raises(clearway.OperationalError):
        clearway.connect(":memory:").backup(tmp_path / "backups")  # those of another database
