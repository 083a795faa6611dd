//! Entries of indexes keep to what their statement's account allows; locks of rows are the server's memory, and have its limit.

use crate::program::{connect, run, scratch, start_under, start_with, stop};

/// Statements that lock many rows of the table `parts`.
const LOCKING: &[&str] = &[
    "insert into children select id, id from parts",
    "select count(*) from (select id from parts for update) l",
    "select count(*) from (select id from parts for key share) l",
    "update parts set n = n + 1 where id > 0",
];

#[test]
fn locks_of_rows_are_the_servers_memory_and_have_its_limit() {
    // LKM-16
    let directory = scratch("locks");
    let arguments = ["-c", "cache_size=16MB", "-c", "server_memory=160MB"];
    let running = start_with(&directory, &arguments.map(str::to_owned));
    run(async {
        let (client, other) = (connect(&running).await, connect(&running).await);
        let tables = "create table parts (id int primary key, n int);
            create table children (id int primary key, part int references parts);
            insert into parts select i, 0 from generate_series(1, 60000) i; analyze; set statement_memory = '4MB'";
        client.batch_execute(tables).await.expect("made");
        let server = "select sum(bytes)::bigint from clearway_memory where kind = 'server'";
        for sql in LOCKING {
            client.batch_execute("begin").await.expect("begun");
            client.batch_execute(sql).await.unwrap_or_else(|e| panic!("{sql}: {e:?}"));
            client.batch_execute("rollback").await.expect("rolled back");
        }
        // What a lock took is given back to the account from which it was taken, however often.
        let before: i64 = other.query_one(server, &[]).await.expect("shown").get(0);
        for _ in 0..8 {
            client.batch_execute(LOCKING[1]).await.expect("locked");
        }
        let after: i64 = other.query_one(server, &[]).await.expect("shown").get(0);
        assert!((after - before).abs() < 8 << 20, "{before} before, {after} after 480,000 locks");
        // A transaction with more locks than the server has room for is refused another one, and the others go on.
        client
            .batch_execute(
                "set statement_memory = 0; insert into parts select i, 0 from generate_series(60001, 400000) i",
            )
            .await
            .expect("made");
        let refused = client.batch_execute(LOCKING[1]).await.expect_err("no room for 400,000 locks");
        let error = refused.as_db_error().expect("an error of the server");
        assert_eq!(error.code().code(), "53200", "{error:?}");
        assert!(error.message().contains("server_memory"), "{error:?}");
        assert!(error.detail().unwrap_or_default().contains("locks of rows"), "{error:?}");
        other.query("select id from parts where id = 7 for update", &[]).await.expect("goes on");
        client.batch_execute("select id from parts where id < 100 for update").await.expect("goes on");
        // Advisory locks of a transaction likewise, which no row stands for.
        let advisory = "select count(pg_advisory_xact_lock(g)) from generate_series(1, 20000000) g";
        let refused = client.batch_execute(advisory).await.expect_err("no room for 20,000,000 locks");
        let error = refused.as_db_error().expect("an error of the server");
        assert_eq!(error.code().code(), "53200", "{error:?}");
        assert!(error.message().contains("server_memory"), "{error:?}");
        client.batch_execute("select pg_advisory_xact_lock(1)").await.expect("goes on");
    });
    stop(running);
    let _ = std::fs::remove_dir_all(&directory);
}

/// Changes of many rows of a table with two indexes, each for both halves of what a batch of entries holds: deletions and insertions.
const INDEXED: &[&str] = &[
    "delete from items where id % 2 = 0",
    "update items set a = a + 1, b = b || 'x'",
    "insert into items select i, i, md5(i::text) from generate_series(1000001, 1150000) i",
    "with gone as (delete from items where id % 3 = 0 returning a) select count(*) from gone",
    "create temp table copies (id int, a int, b text); create index on copies (a); create index on copies (b); insert into copies select * from items",
];

#[test]
fn batches_of_index_entries_keep_to_what_the_account_allows() {
    // BAT-4. With work_mem alone a batch would hold 32 MB, and some more while it is sorted.
    let directory = scratch("entries");
    let running = start_under(&directory, 2 << 20, &["-c", "cache_size=64MB"]);
    run(async {
        let client = connect(&running).await;
        let table = "create table items (id int primary key, a int, b text);
            create index items_a on items (a); create index items_b on items (b);
            insert into items select i, (i * 7919::bigint % 10000019)::int, md5(i::text) from generate_series(1, 150000) i";
        client.batch_execute(table).await.expect("made");
        for memory in ["16MB", "40MB"] {
            let set = format!("set statement_memory = '{memory}'; set work_mem = '1GB'");
            client.batch_execute(&set).await.expect("set");
            for sql in INDEXED {
                client.batch_execute("begin").await.expect("begun");
                client.batch_execute(sql).await.unwrap_or_else(|e| panic!("{memory}: {sql}: {e:?}"));
                let counts = "select count(*) from items union all select count(*) from items where a > -1 union all select count(*) from items where b >= ''";
                let counts = client.query(counts, &[]).await.expect("counted");
                let counts: Vec<i64> = counts.iter().map(|row| row.get(0)).collect();
                assert!(counts.iter().all(|count| *count == counts[0]), "{memory}: {sql}: {counts:?}");
                client.batch_execute("rollback").await.expect("rolled back");
            }
        }
    });
    stop(running);
    let _ = std::fs::remove_dir_all(&directory);
}
