//! Rights, tested through the wire: no role gets, by a setting, a name or an object, a right that it was not given.

use crate::program::{Running, scratch, start, stop};
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

/// A connection as a role, with start-up options.
async fn connect_with(running: &Running, user: &str, options: &str) -> Result<Client, String> {
    let text = format!("host=127.0.0.1 port={} user={user} dbname=postgres", running.port);
    let mut config: tokio_postgres::Config = text.parse().expect("a connection string");
    if !options.is_empty() {
        config.options(options);
    }
    let (client, connection) = config.connect(NoTls).await.map_err(|e| code_of(&e))?;
    tokio::spawn(connection);
    Ok(client)
}

async fn connect(running: &Running, user: &str) -> Client {
    connect_with(running, user, "").await.expect("connects")
}

fn code_of(error: &tokio_postgres::Error) -> String {
    error.code().map_or_else(|| error.to_string(), |code| code.code().to_owned())
}

async fn done(client: &Client, sql: &str) {
    client.batch_execute(sql).await.unwrap_or_else(|e| panic!("{sql}: {e:?}"));
}

/// The statement fails with this SQLSTATE.
async fn refused(client: &Client, sql: &str, code: &str) {
    match client.batch_execute(sql).await {
        Ok(()) => panic!("{sql}: allowed"),
        Err(e) => assert_eq!(code_of(&e), code, "{sql}: {e:?}"),
    }
}

/// The first value of the first row.
async fn value(client: &Client, sql: &str) -> String {
    let messages = client.simple_query(sql).await.unwrap_or_else(|e| panic!("{sql}: {e:?}"));
    let row = messages.iter().find_map(|m| if let SimpleQueryMessage::Row(row) = m { Some(row) } else { None });
    row.and_then(|row| row.get(0)).unwrap_or("").to_owned()
}

/// Runs a test against a server of its own, given a superuser's connection.
fn served<T: Future<Output = ()>>(name: &str, test: impl FnOnce(Running, Client) -> T) {
    let directory = scratch(name);
    let running = start(&directory);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let owner = connect(&running, "postgres").await;
        test(running, owner).await;
    });
    let _ = std::fs::remove_dir_all(&directory);
}

#[test]
fn nobody_becomes_a_role_by_a_setting() {
    served("rights-settings", async |running, postgres| {
        done(&postgres, "create role mallory login; create table secret (x int)").await;
        let mallory = connect(&running, "mallory").await;
        for way in [
            "set role postgres",
            "set session role postgres",
            "set local role postgres",
            "select set_config('role', 'postgres', false)",
            "select set_config('role', 'postgres', true)",
            "select set_config('session_authorization', 'postgres', false)",
            "set session authorization postgres",
        ] {
            refused(&mallory, way, "42501").await;
        }
        for way in ["set role nobody", "select set_config('role', 'nobody', false)"] {
            refused(&mallory, way, "22023").await;
        }
        refused(&mallory, "select set_config('is_superuser', 'on', false)", "55P02").await;
        refused(&mallory, "select * from secret", "42501").await;
        for (options, code) in [("-c role=postgres", "42501"), ("-c role=nobody", "22023")] {
            assert_eq!(connect_with(&running, "mallory", options).await.err().as_deref(), Some(code), "{options}");
        }
        let logged = connect_with(&running, "mallory", "-c log_statement=none").await;
        assert_eq!(logged.err().as_deref(), Some("42501"), "only superusers say what is logged");
        let option = "-c session_authorization=postgres";
        assert_eq!(connect_with(&running, "mallory", option).await.err().as_deref(), Some("42501"));

        // Those that may: a superuser, and a role that becomes itself.
        done(&mallory, "set role mallory; set session authorization mallory; reset role").await;
        let lowered = connect_with(&running, "postgres", "-c role=mallory").await.expect("connects");
        assert_eq!(value(&lowered, "select current_user").await, "mallory");
        assert_eq!(value(&lowered, "show is_superuser").await, "off");
        refused(&lowered, "select * from secret", "42501").await;
        done(&lowered, "set role none").await;
        done(&lowered, "select * from secret").await;
        done(&postgres, "set session authorization mallory").await;
        assert_eq!(value(&postgres, "select session_user").await, "mallory");
        refused(&postgres, "set role postgres", "42501").await;
        done(&postgres, "reset session authorization; set role postgres").await;
        // A rollback gives the role back.
        done(&postgres, "reset role; begin; set local role mallory").await;
        assert_eq!(value(&postgres, "select current_user").await, "mallory");
        done(&postgres, "rollback").await;
        assert_eq!(value(&postgres, "select current_user").await, "postgres");
        assert_eq!(value(&postgres, "show is_superuser").await, "on");
        stop(running);
    });
}

#[test]
fn a_role_that_is_dropped_or_renamed_gains_nothing() {
    served("rights-dropped", async |running, postgres| {
        done(&postgres, "create role mallory login; create role other login; create table secret (x int)").await;
        done(&postgres, "create table mine (x int); grant select on mine to other").await;
        done(&postgres, "create sequence numbers").await;
        let mallory = connect(&running, "mallory").await;
        let other = connect(&running, "other").await;
        done(&other, "select * from mine").await;
        done(&postgres, "drop role mallory").await;
        for sql in [
            "select * from secret",
            "create role another superuser",
            "create table t (x int)",
            "drop table secret",
            "alter table secret add column y int",
            "select nextval('numbers')",
            "lock table secret",
            "checkpoint",
        ] {
            refused(&mallory, &format!("begin; {sql}"), "42501").await;
            done(&mallory, "rollback").await;
        }
        refused(&mallory, "create database d", "42501").await;
        refused(&mallory, "select current_user", "42704").await;
        assert_eq!(value(&mallory, "select pg_has_role('postgres', 'member')").await, "f");
        // A new role of the name is another role.
        done(&postgres, "create role mallory login superuser").await;
        refused(&mallory, "select * from secret", "42501").await;
        // A renamed one is the same.
        done(&postgres, "alter role other rename to another").await;
        assert_eq!(value(&other, "select current_user").await, "another");
        done(&other, "select * from mine").await;
        refused(&other, "select * from secret", "42501").await;
        done(&postgres, "create role other login superuser").await;
        refused(&other, "select * from secret", "42501").await;
        stop(running);
    });
}

#[test]
fn nobody_stops_or_watches_another_roles_session() {
    served("rights-sessions", async |running, postgres| {
        done(&postgres, "create role mallory login; create role alice login; create role watcher login").await;
        done(&postgres, "grant pg_monitor to watcher; create role stopper login; grant pg_signal_backend to stopper")
            .await;
        done(&postgres, "create role bob login; grant alice to bob").await;
        let (mallory, alice) = (connect(&running, "mallory").await, connect(&running, "alice").await);
        let (watcher, stopper) = (connect(&running, "watcher").await, connect(&running, "stopper").await);
        let bob = connect(&running, "bob").await;
        done(&alice, "select 'her business'").await;
        done(&postgres, "select 1; alter role alice password 'se''cret;x' login").await;
        let pid = value(&alice, "select pg_backend_pid()").await;
        let root = value(&postgres, "select pg_backend_pid()").await;
        let query = format!("select query from pg_stat_activity where pid = {pid}");
        assert_eq!(value(&mallory, &query).await, "<insufficient privilege>");
        for may in [&alice, &bob, &watcher, &postgres] {
            assert_ne!(value(may, &query).await, "<insufficient privilege>");
        }
        done(&postgres, "alter role alice password 'se''cret;x' login").await;
        let all = "select string_agg(query, ' ') from pg_stat_activity where pid <> pg_backend_pid()";
        let shown = value(&watcher, all).await;
        assert!(shown.contains("password <redacted> login") && !shown.contains("cret"), "{shown}");
        for function in ["pg_cancel_backend", "pg_terminate_backend"] {
            refused(&mallory, &format!("select {function}({pid})"), "42501").await;
            refused(&stopper, &format!("select {function}({root})"), "42501").await;
        }
        assert_eq!(value(&stopper, &format!("select pg_cancel_backend({pid})")).await, "t");
        assert_eq!(value(&bob, &format!("select pg_cancel_backend({pid})")).await, "t");
        // '' is no password.
        done(&postgres, "alter role alice password ''").await;
        stop(running);
    });
}

#[test]
fn what_a_role_does_not_own_it_does_not_change() {
    served("rights-owners", async |running, postgres| {
        done(&postgres, "create role mallory login; create role alice login; create table victim (id int primary key)")
            .await;
        done(&postgres, "create table secret (x int); create schema s").await;
        done(&postgres, "create database other").await;
        done(&postgres, "grant create on schema public to mallory").await;
        let mallory = connect(&running, "mallory").await;
        for sql in [
            "alter role postgres rename to x",
            "alter database other rename to x",
            "alter schema s rename to x",
            "alter table victim rename to x",
            "alter table victim rename column id to x",
            "alter table victim owner to mallory",
            "drop table victim",
            "drop schema s",
            "drop role alice",
            "alter role alice password 'x'",
            "create schema alice",
            "create table s.t (x int)",
            "select * from s.t",
            "create index on victim (id)",
            "create table f (x int references victim (id))",
            "refresh materialized view victim",
            "grant select on secret to mallory",
            "grant postgres to mallory",
            "create role x",
            "alter default privileges for role postgres grant select on tables to mallory",
            "reassign owned by postgres to mallory",
            "drop owned by postgres",
        ] {
            refused(&mallory, sql, "42501").await;
        }
        // No lock is held by what was refused in a block.
        done(&mallory, "begin").await;
        refused(&mallory, "alter table victim add column y int", "42501").await;
        done(&postgres, "begin; lock table victim nowait; rollback").await;
        done(&mallory, "rollback").await;
        // A view reads with its owner's rights: no role gives one to a role with more rights.
        done(&mallory, "create view v as select * from secret").await;
        refused(&mallory, "alter view v owner to postgres", "42501").await;
        refused(&mallory, "select * from v", "42501").await;
        refused(&mallory, "begin; lock table v", "42501").await;
        done(&mallory, "rollback").await;
        done(&mallory, "create materialized view m as select * from secret with no data").await;
        refused(&postgres, "refresh materialized view m", "42501").await;
        stop(running);
    });
}

#[test]
fn rights_come_by_membership_and_go_with_it() {
    served("rights-members", async |running, postgres| {
        done(&postgres, "create role staff; create table t (a int, b int); grant select on t to staff").await;
        done(&postgres, "create role ann login in role staff; create role noah login noinherit in role staff").await;
        let (ann, noah) = (connect(&running, "ann").await, connect(&running, "noah").await);
        done(&ann, "select * from t").await;
        refused(&noah, "select * from t", "42501").await;
        done(&noah, "set role staff; select * from t; reset role").await;
        refused(&ann, "grant staff to noah", "42501").await;
        done(&postgres, "grant staff to ann with admin option").await;
        done(&ann, "revoke staff from noah").await;
        refused(&noah, "set role staff", "42501").await;
        refused(&postgres, "grant ann to staff", "0LP01").await;
        // Grant options: what rests on one goes with it.
        done(&postgres, "grant update on t to ann with grant option").await;
        done(&ann, "grant update on t to noah").await;
        refused(&postgres, "revoke update on t from ann", "2BP01").await;
        assert_eq!(
            value(&postgres, "select relacl from pg_class where relname = 't'").await,
            "{postgres=arwdDxt/postgres,staff=r/postgres,ann=w*/postgres,noah=w/ann}"
        );
        done(&postgres, "revoke update on t from ann cascade").await;
        assert_eq!(
            value(&postgres, "select relacl from pg_class where relname = 't'").await,
            "{postgres=arwdDxt/postgres,staff=r/postgres}"
        );
        done(
            &postgres,
            "create role reader login in role pg_read_all_data; create schema hidden; create table hidden.h (x int)",
        )
        .await;
        let reader = connect(&running, "reader").await;
        done(&reader, "select * from t; select * from hidden.h").await;
        refused(&reader, "insert into t values (1, 2)", "42501").await;
        refused(&postgres, "drop role staff", "2BP01").await;
        done(&postgres, "drop owned by staff; drop role staff").await;
        refused(&ann, "select * from t", "42501").await;
        stop(running);
    });
}

#[test]
fn what_is_read_needs_select_column_by_column() {
    served("rights-columns", async |running, postgres| {
        done(&postgres, "create table t (id int primary key, a int, b int); insert into t values (1, 2, 3)").await;
        done(&postgres, "create role w login; grant insert, update, delete on t to w").await;
        let w = connect(&running, "w").await;
        done(&w, "update t set a = 1; insert into t values (2, 2, 2) on conflict do nothing").await;
        for sql in [
            "select * from t",
            "select count(*) from t",
            "update t set a = 1 where b = 3",
            "update t set a = b",
            "update t set a = 1 returning a",
            "delete from t where id = 9",
            "insert into t values (5, 5, 5) returning id",
            "insert into t values (1, 1, 1) on conflict (id) do nothing",
            "insert into t values (1, 1, 1) on conflict (id) do update set a = t.b",
        ] {
            refused(&w, sql, "42501").await;
        }
        done(&postgres, "grant select (id, b) on t to w").await;
        done(
            &w,
            "select id, b from t; select count(*) from t; update t set a = 1 where b = 3; delete from t where id = 9",
        )
        .await;
        done(&w, "insert into t values (1, 1, 1) on conflict (id) do update set a = t.b").await;
        for sql in ["select a from t", "select * from t", "select x.a from t x", "update t set a = a + 1", "table t"] {
            refused(&w, sql, "42501").await;
        }
        done(&postgres, "create role c login; grant insert (id), update (a) on t to c").await;
        let c = connect(&running, "c").await;
        done(&c, "insert into t (id) values (77); update t set a = 5").await;
        refused(&c, "insert into t values (78, 1, 1)", "42501").await;
        refused(&c, "update t set a = 5, b = 6", "42501").await;
        stop(running);
    });
}

#[test]
fn a_connection_needs_connect_and_room() {
    served("rights-connect", async |running, postgres| {
        done(&postgres, "create role one login connection limit 1; create role shut login").await;
        done(&postgres, "create database d").await;
        let first = connect(&running, "one").await;
        assert_eq!(connect_with(&running, "one", "").await.err().as_deref(), Some("53300"));
        drop(first);
        done(&postgres, "revoke connect on database postgres from public; grant connect on database postgres to one")
            .await;
        assert_eq!(connect_with(&running, "shut", "").await.err().as_deref(), Some("42501"));
        let has = |user: &str| {
            format!("set session authorization {user}; select has_database_privilege('postgres', 'connect')")
        };
        assert_eq!(value(&postgres, &has("shut")).await, "f");
        assert_eq!(value(&postgres, &has("one")).await, "t");
        done(&postgres, "reset session authorization").await;
        stop(running);
    });
}

#[test]
fn policies_hold_for_copy_and_explain_tells_nothing_to_strangers() {
    served("rights-policies", async |running, postgres| {
        let setup = "create role alice login; create role stranger login; create table doc (id int, who name);
            insert into doc values (1, 'alice'), (2, 'bob'); grant all on doc to alice;
            alter table doc enable row level security; create policy own on doc using (who = current_user)";
        done(&postgres, setup).await;
        let alice = connect(&running, "alice").await;
        refused(&alice, "copy doc from stdin", "0A000").await;
        refused(&alice, "set row_security = off; copy doc to stdout", "42501").await;
        done(&alice, "reset row_security").await;
        assert_eq!(value(&alice, "select count(*) from doc").await, "1");
        let stranger = connect(&running, "stranger").await;
        for sql in ["explain select * from doc", "explain delete from doc", "explain analyze update doc set id = 3"] {
            refused(&stranger, sql, "42501").await;
        }
        stop(running);
    });
}

/// The relations in which statements, parameters and waits of sessions stand.
const WATCHED: &str =
    "select n.nspname || '.' || c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where c.relkind in ('r', 'v') and (n.nspname in ('performance_schema', 'sys')
    or n.nspname = 'pg_catalog' and c.relname ~ '^clearway|^pg_stat|lock|prepared|cursors')";

/// How many relations show another session's statement with this word.
async fn seen_in(client: &Client, word: &str) -> Vec<String> {
    let mut seen = Vec::new();
    for message in client.simple_query(WATCHED).await.expect("a list") {
        let SimpleQueryMessage::Row(row) = message else { continue };
        let name = row.get(0).expect("a name").to_owned();
        let rows = match client.simple_query(&format!("select * from {name}")).await {
            Ok(rows) => rows,
            Err(e) => {
                assert_eq!(code_of(&e), "42501", "{name}: {e:?}");
                continue;
            }
        };
        let shows = |message: &SimpleQueryMessage| match message {
            SimpleQueryMessage::Row(row) => (0..row.len()).any(|i| row.get(i).is_some_and(|v| v.contains(word))),
            _ => false,
        };
        if rows.iter().any(shows) {
            seen.push(name);
        }
    }
    seen
}

#[test]
fn what_others_say_is_hidden_everywhere() {
    served("rights-hidden", async |running, postgres| {
        done(&postgres, "create role peek login; create role watcher login in role pg_read_all_stats").await;
        done(&postgres, "create table t (id int primary key, n int); insert into t values (1, 1), (2, 2)").await;
        let (first, second) = (connect(&running, "postgres").await, connect(&running, "postgres").await);
        done(&first, "begin; update t as hidden_word set n = 3 where id = 1").await;
        done(&second, "begin; update t as hidden_word set n = 4 where id = 2").await;
        // A wait and a deadlock for the archives, and an open transaction with its statement.
        let waits = first.batch_execute("update t as hidden_word set n = 5 where id = 2");
        let closes = second.batch_execute("update t as hidden_word set n = 5 where id = 1");
        let (waited, closed) = tokio::join!(waits, closes);
        assert!(waited.is_err() || closed.is_err(), "a ring of two has a victim");
        done(&postgres, "prepare p as select 1 as hidden_word; execute p").await;
        let peek = connect(&running, "peek").await;
        assert_eq!(seen_in(&peek, "hidden_word").await, Vec::<String>::new());
        let watcher = connect(&running, "watcher").await;
        assert!(seen_in(&watcher, "hidden_word").await.len() >= 4, "pg_read_all_stats shows them");
        stop(running);
    });
}

#[test]
fn policies_judge_a_row_again_that_changed_while_its_lock_was_waited_for() {
    served("rights-recheck", async |running, postgres| {
        let setup = "create role alice login; create table doc (id int primary key, who name, n int);
            create table most (who name, n int); insert into most values ('alice', 50); grant all on doc, most to alice;
            alter table doc enable row level security";
        done(&postgres, setup).await;
        let alice = connect(&running, "alice").await;
        // A condition of the scan, one with a query, and one that looks into another table for each row.
        for policy in [
            "who = current_user",
            "who = current_user and n <= (select m.n from most m where m.who = current_user)",
            "exists (select 1 from most m where m.who = doc.who and m.n >= doc.n)",
        ] {
            done(&postgres, &format!("drop policy if exists p on doc; create policy p on doc using ({policy})")).await;
            for (change, count) in [("who = 'nobody'", 0), ("n = 2", 1)] {
                for sql in [
                    "update doc set n = 7",
                    "delete from doc where id = 1",
                    "select * from doc for update",
                    "select doc.* from doc left join most on most.who = doc.who for update of doc",
                ] {
                    done(&postgres, "delete from doc; insert into doc values (1, 'alice', 1), (2, 'nobody', 1)").await;
                    done(&postgres, &format!("begin; update doc set {change} where id = 1")).await;
                    done(&alice, "begin").await;
                    let release = async {
                        let waits = "select count(*) from pg_stat_activity where usename = 'alice' and wait_event_type = 'Lock'";
                        while value(&postgres, waits).await == "0" {
                            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
                        }
                        done(&postgres, "commit").await;
                    };
                    let (rows, ()) = tokio::join!(alice.query(sql, &[]), release);
                    let rows = rows.unwrap_or_else(|e| panic!("{sql}: {e:?}")).len();
                    if sql.starts_with("select") {
                        assert_eq!(rows, count, "{policy}: {change}: {sql}");
                    }
                    done(&alice, "commit").await;
                    let left = value(&postgres, "select count(*) from doc where id = 1 and n < 7").await;
                    let untouched = sql.starts_with("select") || count == 0;
                    assert_eq!(left, if untouched { "1" } else { "0" }, "{policy}: {change}: {sql}");
                }
            }
        }
        stop(running);
    });
}
