//! Limits of roles and databases: the limits apply to all their sessions together, are changed while statements run, and are named when
//! they are reached.

use std::time::Duration;

use crate::program::{Running, connect, connect_as, run, scratch, start_with, stop};
use tokio_postgres::{Client, Error, SimpleQueryMessage};

/// A server with a role `app` and a table `t` that the role owns.
fn served(name: &str, test: impl AsyncFnOnce(&Running, Client)) -> String {
    let (directory, logs) = (scratch(name), scratch(&format!("{name}-log")));
    let arguments = ["-c".to_owned(), format!("log_directory={}", logs.display())];
    let running = start_with(&directory, &arguments);
    run(async {
        let owner = connect(&running).await;
        let made = "create role app login; create schema authorization app; \
                    create table app.t (id int primary key, n int); \
                    insert into app.t select g, 0 from generate_series(1, 10000) g; alter table app.t owner to app";
        done(&owner, made).await;
        test(&running, owner).await;
    });
    stop(running);
    let log = std::fs::read_to_string(logs.join("clearway.log")).expect("a log");
    for directory in [directory, logs] {
        let _ = std::fs::remove_dir_all(&directory);
    }
    log
}

async fn done(client: &Client, sql: &str) {
    client.batch_execute(sql).await.unwrap_or_else(|e| panic!("{sql}: {e:?}"));
}

/// SQLSTATE and message.
fn told(error: &Error) -> (String, String) {
    let error = error.as_db_error().unwrap_or_else(|| panic!("{error:?}"));
    (error.code().code().to_owned(), error.message().to_owned())
}

async fn refused(client: &Client, sql: &str, code: &str) -> String {
    let error = client.batch_execute(sql).await.expect_err(sql);
    let (told_code, message) = told(&error);
    assert_eq!(told_code, code, "{sql}: {message}");
    message
}

async fn value(client: &Client, sql: &str) -> String {
    let messages = client.simple_query(sql).await.unwrap_or_else(|e| panic!("{sql}: {e:?}"));
    let row = messages.iter().find_map(|m| if let SimpleQueryMessage::Row(row) = m { Some(row) } else { None });
    row.and_then(|row| row.get(0)).unwrap_or("").to_owned()
}

/// Waits for a state, however long it takes.
async fn becomes(client: &Client, sql: &str, wanted: &str) {
    while value(client, sql).await != wanted {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

const STATEMENTS: &str = "select used || ' ' || waiting || ' ' || (violations > 0) from clearway_limits \
                          where scope = 'role' and name = 'app' and setting = 'limit_statements'";

#[test]
fn transactions_beyond_the_limit_wait_for_a_turn() {
    let log = served("limit-statements", async |running, owner| {
        done(&owner, "alter role app set limit_statements = 1").await;
        let [first, second, hasty, third] = [0; 4].map(|_| connect_as(running, "app", "postgres"));
        let (first, second, hasty, third) = (first.await, second.await, hasty.await, third.await);
        done(&hasty, "set statement_timeout = 1").await;
        done(&first, "begin; select 1").await;
        assert_eq!(value(&owner, STATEMENTS).await, "1 0 false");
        // It waits, and its cancel and its timeout end the wait.
        let token = second.cancel_token();
        let waits = tokio::spawn(async move {
            let ended = second.batch_execute("select 1").await;
            (second, ended)
        });
        becomes(&owner, STATEMENTS, "1 1 true").await;
        assert_eq!(
            value(&owner, "select wait_event from pg_stat_activity where wait_event = 'StatementLimit'").await,
            "StatementLimit"
        );
        token.cancel_query(tokio_postgres::NoTls).await.expect("sent");
        let (second, ended) = waits.await.expect("joined");
        assert_eq!(told(&ended.expect_err("cancelled")).0, "57014");
        becomes(&owner, STATEMENTS, "1 0 true").await;
        refused(&hasty, "select 1", "57014").await;
        // By either protocol, it goes on when the first transaction ends.
        let waits = tokio::spawn(async move {
            let row = second.query_one("select count(*) from app.t", &[]).await.expect("counts");
            (second, row.get::<_, i64>(0))
        });
        becomes(&owner, STATEMENTS, "1 1 true").await;
        done(&first, "update app.t set n = 1 where id = 1; commit").await;
        let (second, count) = waits.await.expect("joined");
        assert_eq!(count, 10_000);
        becomes(&owner, STATEMENTS, "0 0 true").await;
        // A session that holds a lock does not wait (LIM-1).
        done(&second, "select pg_advisory_lock(1)").await;
        done(&first, "begin; select 1").await;
        let message = refused(&second, "select 1", "53400").await;
        assert_eq!(message, "limit_statements of role \"app\" (1) is reached");
        // A raised limit, and none, let the waiting go on.
        let waits = tokio::spawn(async move {
            done(&third, "select 1").await;
        });
        becomes(&owner, STATEMENTS, "1 1 true").await;
        done(&owner, "alter role app set limit_statements = 3").await;
        becomes(&owner, STATEMENTS, "1 0 true").await;
        waits.await.expect("joined");
        done(&second, "select 1").await;
        done(&owner, "alter role app reset limit_statements").await;
        done(&second, "select 1").await;
        done(&first, "commit").await;
        becomes(&owner, STATEMENTS.replace("used || ' ' || waiting", "used").as_str(), "0 true").await;
        // Superusers have no limits.
        done(
            &owner,
            "alter role postgres set limit_statement_time = 1; alter database postgres set limit_statements = 1",
        )
        .await;
        done(&first, "begin; select 1").await;
        done(&owner, "select pg_sleep(0.01)").await;
        done(&first, "commit").await;
    });
    assert!(log.contains("limit_statements of role \"app\" was reached"), "{log}");
}

#[test]
fn a_role_computes_for_its_share_of_the_processors() {
    served("limit-share", async |running, owner| {
        done(&owner, "alter role app set limit_processor_share = 5").await;
        let greedy = connect_as(running, "app", "postgres").await;
        let token = greedy.cancel_token();
        let endless = tokio::spawn(async move {
            let ended = greedy.batch_execute("select count(*) from generate_series(1, 100000000000) g").await;
            (greedy, ended)
        });
        becomes(&owner, "select wait_event from pg_stat_activity where usename = 'app'", "ProcessorShare").await;
        // A function that computes without a row in between waits as well.
        token.cancel_query(tokio_postgres::NoTls).await.expect("sent");
        let (greedy, ended) = endless.await.expect("joined");
        assert_eq!(told(&ended.expect_err("cancelled")).0, "57014");
        let token = greedy.cancel_token();
        let endless = tokio::spawn(async move {
            let like = "select repeat('a', 5000000) like '%' || repeat('a_', 3000) || 'b%'";
            (greedy.batch_execute(like).await, greedy)
        });
        becomes(&owner, "select wait_event from pg_stat_activity where usename = 'app'", "ProcessorShare").await;
        token.cancel_query(tokio_postgres::NoTls).await.expect("sent");
        let (ended, greedy) = endless.await.expect("joined");
        assert_eq!(told(&ended.expect_err("cancelled")).0, "57014");
        done(&greedy, "select 1").await;
        let violations = "select violations > 0 from clearway_limits where setting = 'limit_processor_share'";
        assert_eq!(value(&owner, violations).await, "t");
    });
}

#[test]
fn sessions_share_memory_undo_and_the_time_of_a_statement() {
    let log = served("limit-memory", async |running, owner| {
        let app = connect_as(running, "app", "postgres").await;
        // What has to be in memory whole: a sort would go to files.
        let text = "select length(string_agg(repeat('x', 100), '')) from generate_series(1, 200000)";
        done(&app, "set work_mem = '1GB'").await;
        done(&owner, "alter role app set limit_memory = '8MB'").await;
        let message = refused(&app, text, "53200").await;
        assert_eq!(message, "out of memory: limit_memory of role \"app\" (8.0 MB) is used up");
        done(&owner, "alter role app reset limit_memory; alter database postgres set limit_memory = '9MB'").await;
        let message = refused(&app, text, "53200").await;
        assert_eq!(message, "out of memory: limit_memory of database \"postgres\" (9.0 MB) is used up");
        done(&owner, "alter database postgres reset limit_memory").await;
        done(&app, text).await;

        done(&owner, "alter role app set limit_undo = '64kB'").await;
        let other = connect_as(running, "app", "postgres").await;
        done(&app, "begin; update app.t set n = n + 1 where id <= 100").await;
        let message = refused(&other, "update app.t set n = n + 1 where id > 100", "53400").await;
        assert_eq!(message, "limit_undo of role \"app\" (64kB) is used up");
        done(&app, "rollback").await;
        let undo = "select used || ' ' || violations from clearway_limits where setting = 'limit_undo'";
        assert_eq!(value(&owner, undo).await, "0 1", "what the transactions had is given back");
        done(&other, "update app.t set n = n + 1 where id <= 100").await;
        done(&other, "begin").await;
        // Small statements of a long transaction add up.
        let mut ended = Ok(());
        for id in 1..10_000 {
            ended = other.batch_execute(&format!("update app.t set n = n + 1 where id = {id}")).await;
            if ended.is_err() {
                break;
            }
        }
        assert_eq!(told(&ended.expect_err("undo has a limit")).0, "53400");
        done(&other, "rollback").await;
        done(&owner, "alter role app reset limit_undo").await;

        done(&owner, "alter role app set limit_statement_time = 20").await;
        done(&app, "set statement_timeout = 0").await;
        let named = "canceling statement due to limit_statement_time of role \"app\"";
        assert_eq!(refused(&app, "select pg_sleep(3600)", "57014").await, named);
        let error = app.query("select pg_sleep(3600)", &[]).await.expect_err("its time is over");
        assert_eq!(told(&error).1, named);
        done(&app, "set statement_timeout = 1").await;
        let message = refused(&app, "select pg_sleep(3600)", "57014").await;
        assert_eq!(message, "canceling statement due to statement timeout", "the session's own is shorter");
        let seen = "select string_agg(setting || ' ' || violations, ', ' order by setting) from clearway_limits where scope = 'role' and violations > 0";
        assert_eq!(value(&owner, seen).await, "limit_memory 1, limit_statement_time 2, limit_undo 2");
    });
    for line in
        ["limit_memory of role", "limit_memory of database", "limit_undo of role", "limit_statement_time of role"]
    {
        assert!(log.contains(line), "{line}: {log}");
    }
}

#[test]
fn no_role_lifts_its_own_limit() {
    served("limit-rights", async |running, owner| {
        done(&owner, "alter role app set limit_memory = '8MB'; alter role app set limit_statement_time = '1h'").await;
        done(&owner, "alter role app connection limit 1").await;
        let app = connect_as(running, "app", "postgres").await;
        for way in [
            "set limit_memory = 0",
            "set local limit_memory = 0",
            "reset limit_memory",
            "select set_config('limit_memory', '0', false)",
            "alter role app set limit_memory = 0",
            "alter role app reset limit_memory",
            "alter role app in database postgres set limit_memory = 0",
            "create function f() returns int language sql set limit_memory = 0 as 'select 1'",
        ] {
            let error = app.batch_execute(way).await.expect_err(way);
            assert!(["42501", "55P02", "0A000"].contains(&told(&error).0.as_str()), "{way}: {error:?}");
        }
        done(&app, "alter role app reset all; reset all").await;
        done(&app, "discard all").await;
        assert_eq!(value(&app, "show limit_memory").await, "8MB");
        assert_eq!(value(&app, "select current_setting('limit_statement_time')").await, "1h");
        assert_eq!(value(&app, "select setting from pg_settings where name = 'limit_memory'").await, "8MB");
        for way in ["set limit_memory = 0", "alter system set limit_memory = '1MB'"] {
            refused(&owner, way, "55P02").await;
        }
        refused(&owner, "alter role all set limit_memory = '1MB'", "0A000").await;
        refused(&owner, "alter role app in database postgres set limit_memory = '1MB'", "0A000").await;
        refused(&owner, "alter role app set limit_processor_share = 101", "22023").await;

        let text = format!("host=127.0.0.1 port={} user=app dbname=postgres", running.port);
        let again = tokio_postgres::connect(&text, tokio_postgres::NoTls).await.err().expect("one too many");
        assert_eq!(told(&again).0, "53300");
        drop(app);
        becomes(&owner, "select count(*) from pg_stat_activity where usename = 'app'", "0").await;
        let options = format!("{text} options='-c limit_memory=0'");
        let begun = tokio_postgres::connect(&options, tokio_postgres::NoTls).await.err().expect("refused");
        assert_eq!(told(&begun).0, "42501");
        let seen = "select limit_value || ' ' || used || ' ' || violations from clearway_limits where setting = 'connection limit' and name = 'app'";
        assert_eq!(value(&owner, seen).await, "1 0 1");
    });
}
