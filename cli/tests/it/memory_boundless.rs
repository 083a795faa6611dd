//! Changes of any number of rows keep to what their statement's account allows. A debug build takes two minutes for it.

use crate::program::{connect, run, scratch, start_under, stop};

/// Rows of the tables of the next test.
const MANY: i64 = 40_000;

/// Changes of all rows of tables, and a query that gives how many rows are then as they should be.
const BOUNDLESS: &[(&str, &str)] = &[
    // Undo of changes that share nothing: those of rows in the order of another index, and of rows that are changed one by one.
    ("update items set a = a + 1, b = b || 'x'", "select count(*) from items where b like '%x' and a > 0"),
    ("update items set id = id + 1000000", "select count(*) from items where id > 1000000"),
    ("delete from items", "select 40000 - count(*) from items"),
    (
        "update items set b = v || 'y' from plain where plain.id = items.id",
        "select count(*) from items where b like '%y'",
    ),
    ("delete from items using plain where plain.id = items.id", "select 40000 - count(*) from items"),
    (
        "merge into items using plain p on p.id = items.id when matched then update set a = -p.id, b = p.v || 'm'",
        "select count(*) from items where a = -id",
    ),
    (
        "merge into items using plain p on p.id = items.id when matched then delete",
        "select 40000 - count(*) from items",
    ),
    (
        "merge into items using plain p on p.id = items.id + 1000000 when not matched then insert values (p.id + 1000000, 7, p.v)",
        "select count(*) from items where id > 1000000",
    ),
    // Locks of the rows in the way.
    (
        "insert into items select id, 1, 'z' from plain on conflict (id) do update set a = excluded.a - items.id",
        "select count(*) from items where a = 1 - id",
    ),
    (
        "insert into items select id, 1, 'z' from plain on conflict do nothing",
        "select count(*) from items where b <> 'z'",
    ),
    // What reads the table that it changes.
    ("insert into items select id + 1000000, a, b from items", "select count(*) - 40000 from items"),
    ("insert into keyless select * from keyless", "select count(*) - 40000 from keyless"),
    ("update keyless set id = id + 1; update keyless set id = id + 1", "select count(*) from keyless where id > 2"),
    // What foreign keys have still to do.
    ("insert into kin select id, 1 from plain", "select count(*) from kin"),
    ("delete from parent", "select 40000 - count(*) from grandchild"),
    ("update parent set id = id + 1000000", "select count(*) from child where p > 1000000"),
    ("delete from one", "select 40000 - count(*) from of_one"),
    ("update one set id = 2", "select count(*) from of_one where p = 2"),
    ("delete from one_null", "select count(*) from of_null where p is null"),
    // What RETURNING gives.
    (
        "with gone as (delete from items returning id, b) insert into kept select id, b from gone",
        "select count(*) from kept k join plain p on p.id = k.id and p.v = k.v",
    ),
    (
        "with a as (update plain set v = v || 'x' returning id, v) insert into kept select one.id, two.v from a one join a two on one.id = two.id",
        "select count(*) from kept where v like '%x'",
    ),
];

#[test]
fn changes_of_any_number_of_rows_keep_to_what_the_account_allows() {
    // RWL-2, PEN-1, REF-1, REF-2, EXE-27; undo belongs to no account.
    let directory = scratch("boundless");
    let running = start_under(&directory, 2 << 20, &["-c", "cache_size=64MB"]);
    run(async {
        let client = connect(&running).await;
        let tables = "create table plain (id int primary key, v text);
            insert into plain select i, md5(i::text) from generate_series(1, 40000) i;
            create table items (id int primary key, a int, b text);
            create index items_a on items (a); create index items_b on items (b);
            insert into items select id, (id * 7919::bigint % 10000019)::int, v from plain;
            create table keyless (id int, v text); insert into keyless select id, v from plain;
            create table kept (id int, v text);
            create table one (id int primary key); insert into one values (1);
            create table one_null (id int primary key); insert into one_null values (1);
            create table parent (id int primary key); insert into parent select id from plain;
            create table child (id int primary key, p int references parent on delete cascade on update cascade);
            create table grandchild (id int primary key, c int references child on delete cascade);
            create table of_one (id int primary key, p int references one on delete cascade on update cascade);
            create table of_null (id int primary key, p int references one_null on delete set null);
            create table kin (id int primary key, p int references one);
            insert into child select id, id from plain; insert into grandchild select id, id from plain; insert into of_one select id, 1 from plain;
            insert into of_null select id, 1 from plain;
            create index on child (p); create index on grandchild (c); create index on of_one (p); analyze;
            set statement_memory = '2MB'; set work_mem = '256kB'";
        client.batch_execute(tables).await.expect("made");
        for (sql, right) in BOUNDLESS {
            client.batch_execute("begin").await.expect("begun");
            client.batch_execute(sql).await.unwrap_or_else(|e| panic!("{sql}: {e:?}"));
            let row = client.query_one(*right, &[]).await.unwrap_or_else(|e| panic!("{sql}: {e:?}"));
            assert_eq!(row.get::<_, i64>(0), MANY, "{sql}");
            client.batch_execute("rollback").await.expect("rolled back");
        }
        // Rows that go to the client.
        client.batch_execute("begin").await.expect("begun");
        for sql in
            ["update plain set v = v || v returning id, v", "insert into keyless select * from plain returning id, v"]
        {
            let rows = client.query(sql, &[]).await.unwrap_or_else(|e| panic!("{sql}: {e:?}"));
            let sum: i64 = rows.iter().map(|row| i64::from(row.get::<_, i32>(0))).sum();
            assert_eq!((rows.len() as i64, sum), (MANY, MANY * (MANY + 1) / 2), "{sql}");
            assert!(rows.iter().all(|row| row.get::<_, &str>(1).len() == 64), "{sql}: its own values");
        }
        client.batch_execute("rollback").await.expect("rolled back");
    });
    stop(running);
    let left = std::fs::read_dir(&directory).expect("the directory").filter_map(Result::ok);
    let left: Vec<String> = left.map(|e| e.file_name().to_string_lossy().into_owned()).collect();
    assert!(!left.iter().any(|name| name.starts_with("temp-")), "{left:?}");
    let _ = std::fs::remove_dir_all(&directory);
}
