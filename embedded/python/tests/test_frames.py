"""pandas and Arrow."""

import datetime
import decimal
import json

import pytest

import clearway

pandas = pytest.importorskip("pandas")
pyarrow = pytest.importorskip("pyarrow")
sqlalchemy = pytest.importorskip("sqlalchemy")


def test_a_frame_is_written_and_read(tmp_path):
    from sqlalchemy.dialects import registry

    registry.register("clearway", "clearway.sqlalchemy", "ClearwayDialect")
    engine = sqlalchemy.create_engine(f"clearway:///{tmp_path / 'db'}")
    days = pandas.to_datetime(["2024-02-29 00:00:00", "2024-03-01 01:00:00", "2024-03-02 12:00:00"])
    frame = pandas.DataFrame({"id": [1, 2, 3], "name": ["a", "b", None], "x": [0.5, 1.5, None], "day": days})
    frame.to_sql("t", engine, index=False)
    read = pandas.read_sql("SELECT * FROM t ORDER BY id", engine)
    assert read.id.tolist() == [1, 2, 3] and read.x[:2].tolist() == [0.5, 1.5] and read.day.tolist() == days.tolist()
    assert read.name[0] == "a" and pandas.isna(read.name[2]) and pandas.isna(read.x[2])
    assert len(pandas.read_sql_table("t", engine)) == 3
    some = pandas.read_sql(sqlalchemy.text("SELECT * FROM t WHERE id > :n"), engine, params={"n": 1})
    assert some.id.tolist() == [2, 3]
    chunks = pandas.read_sql("SELECT * FROM t ORDER BY id", engine, chunksize=2)
    assert [len(chunk) for chunk in chunks] == [2, 1]
    engine.dispose()


def test_arrow_has_the_types_of_the_columns():
    connection = clearway.connect(":memory:")
    columns = """1::int AS i, 2::bigint AS l, 'x'::text AS t, 1.5::numeric AS n, 0.5::float8 AS f, true AS yes, '\\x00ff'::bytea AS b,
                 date '2024-02-29' AS d, time '12:00' AS h, timestamp '2024-02-29 12:00' AS m, timestamptz '2024-02-29 12:00+00' AS z,
                 ARRAY[1, NULL, 3] AS a, '{"k": [1]}'::jsonb AS j, '00000000-0000-0000-0000-000000000001'::uuid AS u"""
    table = connection.execute(f"SELECT {columns}").fetch_arrow_table()
    names = "int32 int64 string decimal128(2, 1) double bool binary date32[day] time64[us] timestamp[us] timestamp[us, tz=UTC]"
    kinds = [str(kind) for kind in table.schema.types]
    assert " ".join(kinds[:11]) == names
    assert kinds[11] == "list<item: int32>" and kinds[12:] == ["string", "string"]
    row = table.to_pylist()[0]
    assert (row["i"], row["t"], row["n"], row["b"]) == (1, "x", decimal.Decimal("1.5"), b"\x00\xff")
    assert (row["d"], row["a"], json.loads(row["j"])) == (datetime.date(2024, 2, 29), [1, None, 3], {"k": [1]})
    # No value, and no row: the types are the same.
    nothing = connection.execute("SELECT NULL::int AS i, NULL::text AS t FROM generate_series(1, 2)").fetch_arrow_table()
    assert [str(kind) for kind in nothing.schema.types] == ["int32", "string"] and nothing.num_rows == 2
    empty = connection.execute("SELECT 1::bigint AS l, now() AS z WHERE false").fetch_arrow_table()
    assert [str(kind) for kind in empty.schema.types] == ["int64", "timestamp[us, tz=UTC]"]
    connection.close()
