//! What a role without rights could do to the server or learn from it through features that PostgreSQL does not have. Features that both
//! have are tested in tests/rights.

use crate::program::{connect_as, run, scratch, start, start_with, stop};
use tokio_postgres::{Client, SimpleQueryMessage};

async fn done(client: &Client, sql: &str) {
    client.batch_execute(sql).await.unwrap_or_else(|e| panic!("{sql}: {e:?}"));
}

/// The first value of the first row.
async fn value(client: &Client, sql: &str) -> String {
    let messages = client.simple_query(sql).await.unwrap_or_else(|e| panic!("{sql}: {e:?}"));
    let row = messages.iter().find_map(|m| if let SimpleQueryMessage::Row(row) = m { Some(row) } else { None });
    row.and_then(|row| row.get(0)).unwrap_or("").to_owned()
}

/// The SQLSTATE of a statement that fails.
async fn code(client: &Client, sql: &str) -> String {
    match client.simple_query(sql).await {
        Ok(_) => "00000".to_owned(),
        Err(e) => e.code().map_or_else(|| e.to_string(), |code| code.code().to_owned()),
    }
}

/// `expression` inside of so many queries, each of which makes a row of what the one below gives.
fn nested(expression: &str, row: &str, depth: usize) -> String {
    (0..depth)
        .fold(format!("select {expression} as r"), |query, _| format!("select {row} as r from ({query} offset 0) q"))
}

#[test]
fn a_text_or_a_value_that_grows_with_each_level_is_refused() {
    let directory = scratch("hostile-levels");
    let running = start(&directory);
    run(async {
        let peer = connect_as(&running, "postgres", "postgres").await;
        let other = connect_as(&running, "postgres", "postgres").await;
        // One word a hundred thousand times: the text is looked through for passwords.
        done(&peer, &format!("select 1 -- {}", "password;".repeat(100_000))).await;
        // Quotes double with each level.
        assert_eq!(code(&peer, &nested("'a \"b'::text", "row(r)", 50)).await, "54000");
        let cast = nested("'a \"b'::text", "row(r)", 50);
        assert_eq!(code(&peer, &format!("select length(r::text) from ({cast}) q")).await, "54000");
        assert_eq!(code(&peer, &format!("select concat(r) from ({cast}) q")).await, "54000");
        assert_eq!(code(&peer, &format!("select 'x' || r::text from ({cast}) q")).await, "54000");
        // Fields double with each level.
        for use_of in ["r = r", "row_to_json(r)", "r::text", "count(distinct r)"] {
            let doubled = nested("1", "row(r, r)", 50);
            assert_eq!(code(&peer, &format!("select {use_of} from ({doubled}) q")).await, "54000", "{use_of}");
        }
        assert_eq!(code(&peer, &nested("1", "row(array[r, r])", 45)).await, "54000");
        assert_eq!(value(&other, "select 1").await, "1");
        // What fits is shown.
        assert_eq!(value(&peer, &nested("'a b'::text", "row(r)", 2)).await, r#"("(""a b"")")"#);
    });
    stop(running);
    let _ = std::fs::remove_dir_all(&directory);
}

#[test]
fn types_made_of_types_have_a_largest_depth() {
    let directory = scratch("hostile-types");
    let running = start(&directory);
    run(async {
        let peer = connect_as(&running, "postgres", "postgres").await;
        done(&peer, "create type c0 as (a int)").await;
        // Each is made of the one before on two ways: 2^99 ways lead to the first.
        for n in 1..100 {
            done(&peer, &format!("create type c{n} as (a c{}, b c{})", n - 1, n - 1)).await;
        }
        assert_eq!(code(&peer, "create type c100 as (a c99)").await, "54001");
        done(&peer, "create type below as (a int); create type above as (a c98)").await;
        assert_eq!(code(&peer, "alter type below add attribute b c99").await, "54001");
        assert_eq!(code(&peer, "alter type c0 add attribute b below").await, "54001");
        done(&peer, "create table t (x c40); alter type below add attribute b int").await;
        assert_eq!(code(&peer, "alter type c0 add attribute b int").await, "0A000");
        assert_eq!(code(&peer, "drop type c0").await, "2BP01");
    });
    stop(running);
    let _ = std::fs::remove_dir_all(&directory);
}

#[test]
fn the_servers_own_texts_read_the_servers_own_relations() {
    let directory = scratch("hostile-names");
    let running = start(&directory);
    run(async {
        let postgres = connect_as(&running, "postgres", "postgres").await;
        done(
            &postgres,
            "create role mallory login; grant create on database postgres to mallory; create table secret (x int)",
        )
        .await;
        done(&postgres, "insert into secret values (42)").await;
        let mallory = connect_as(&running, "mallory", "postgres").await;
        // In front of the path, under the name of a relation that the system's views read.
        let indexes = value(&mallory, "select count(*) from pg_indexes").await;
        done(&mallory, "create temporary view pg_class with (security_invoker) as select * from secret").await;
        assert_eq!(value(&mallory, "select count(*) from pg_indexes").await, indexes);
        assert_eq!(code(&mallory, "select * from pg_class").await, "42501");
        // In a schema of the name of one of the system's: what SHOW ENGINE reads as a superuser.
        done(
            &mallory,
            "create schema performance_schema; grant usage on schema performance_schema to public;
            create view performance_schema.file_summary_by_event_name as select set_config('a.kept', 'evil', false) as event_name,
                1 as count_read, 1 as count_write, 1 as count_misc, 1 as sum_number_of_bytes_read, 1 as sum_number_of_bytes_write, 1 as count_star;
            grant select on performance_schema.file_summary_by_event_name to public",
        )
        .await;
        assert!(value(&postgres, "show engine innodb status").await == "InnoDB");
        assert_eq!(value(&postgres, "select current_setting('a.kept', true)").await, "");
    });
    stop(running);
    let _ = std::fs::remove_dir_all(&directory);
}

#[test]
fn where_the_archive_is_and_what_others_run_behind_one_login_is_hidden() {
    let directory = scratch("hostile-archive");
    let place = directory.join("hidden_place");
    std::fs::create_dir_all(&directory).expect("a directory");
    let running = start_with(&directory.join("data"), &["-c".into(), format!("archive={}", place.display())]);
    run(async {
        let postgres = connect_as(&running, "postgres", "postgres").await;
        done(&postgres, "create role peek login; create role watcher login in role pg_monitor").await;
        done(&postgres, "create role pool login noinherit; create role one; create role two; grant one, two to pool")
            .await;
        let (peek, watcher) =
            (connect_as(&running, "peek", "postgres").await, connect_as(&running, "watcher", "postgres").await);
        let target = "select target from clearway_archive";
        assert!(value(&postgres, target).await.contains("hidden_place"));
        assert!(value(&watcher, target).await.contains("hidden_place"));
        assert_eq!(value(&peek, target).await, "<insufficient privilege>");
        assert_eq!(code(&peek, "show archive").await, "42501");
        // One login that works for several roles.
        let pool = connect_as(&running, "pool", "postgres").await;
        done(&pool, "set role one").await;
        done(&pool, "select 1 as remarkable_name").await;
        done(&pool, "set role two").await;
        for view in ["clearway_statements", "pg_stat_statements"] {
            let seen = format!("select count(*) from {view} where query like '%remarkable_name%'");
            assert_eq!(value(&pool, &seen).await, "0", "{view}");
            assert_ne!(value(&postgres, &seen).await, "0", "{view}");
        }
        done(&pool, "reset role").await;
        assert_ne!(
            value(&pool, "select count(*) from pg_stat_statements where query like '%remarkable_name%'").await,
            "0"
        );
    });
    stop(running);
    let _ = std::fs::remove_dir_all(&directory);
}
