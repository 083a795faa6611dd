//! The real program: it starts, prints its address, keeps what was committed, refuses a second start, stops on SIGTERM.

use std::io::BufRead as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::program::{self, command, connect, run, scratch, start, stop};
use tokio_postgres::{Client, SimpleQueryMessage};

async fn value(client: &Client, sql: &str) -> String {
    let messages = client.simple_query(sql).await.expect("runs");
    let row = messages.iter().find_map(|m| if let SimpleQueryMessage::Row(row) = m { Some(row) } else { None });
    row.and_then(|row| row.get(0)).expect("a value").to_owned()
}

#[test]
fn what_was_committed_is_there_after_a_stop_and_after_a_kill() {
    let directory = scratch("serve");
    let first = start(&directory);
    run(async {
        let client = connect(&first).await;
        client.batch_execute("create table t (id int primary key, v text)").await.expect("creates");
        client.batch_execute("insert into t values (1, 'one'), (2, 'two')").await.expect("inserts");
        let function = "create function named(int, text) returns text language sql as 'select $1 || $2'";
        client.batch_execute(function).await.expect("creates");
        let operator = "create operator ## (leftarg = int, rightarg = text, function = named)";
        client.batch_execute(operator).await.expect("creates");
        let rows = client.query("select v from t where id = $1", &[&2i32]).await.expect("selects");
        assert_eq!(rows[0].get::<_, String>(0), "two");
        let control = || std::fs::read(directory.join("control")).expect("the control file");
        let before = control();
        client.batch_execute("checkpoint").await.expect("is taken");
        assert_ne!(control(), before, "recovery begins somewhere else");
        client.batch_execute("create role plain login").await.expect("creates");
        client.batch_execute("set role plain").await.expect("sets");
        let refused = client.batch_execute("checkpoint").await.expect_err("no superuser");
        assert_eq!(refused.code().map(|code| code.code()), Some("42501"));
    });
    let second = command(&directory).output().expect("runs");
    assert!(!second.status.success());
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(said.contains(&first.child.id().to_string()), "the holder's pid: {said}");
    assert!(second.stdout.is_empty(), "nothing to connect to");
    stop(first);
    let again = start(&directory);
    run(async {
        let client = connect(&again).await;
        assert_eq!(value(&client, "select count(*) from t").await, "2");
        assert_eq!(value(&client, "select id ## v from t where id = 2").await, "2two");
        client.batch_execute("create operator #- (rightarg = int8, function = factorial)").await.expect("creates");
        client.batch_execute("insert into t values (3, 'three')").await.expect("inserts");
        client.batch_execute("begin; insert into t values (4, 'four')").await.expect("inserts");
    });
    drop(again); // SIGKILL
    let recovered = start(&directory);
    run(async {
        let client = connect(&recovered).await;
        assert_eq!(value(&client, "select count(*) from t").await, "3", "committed: there, open: gone");
        assert_eq!(value(&client, "select (#- 4)::int ## v from t where id = 2").await, "24two");
    });
    stop(recovered);
    let checked = Command::new(env!("CARGO_BIN_EXE_clearway")).arg("check").arg(&directory).output().expect("runs");
    let said = String::from_utf8_lossy(&checked.stderr).into_owned();
    assert!(checked.status.success(), "{said}");
    let _ = std::fs::remove_dir_all(&directory);
}

#[test]
fn a_signal_to_read_the_settings_again_does_not_end_a_server_that_starts() {
    let directory = scratch("early-signal");
    let mut child = command(&directory).spawn().expect("starts");
    // The directory is locked before it is recovered; sessions are served long after.
    while !directory.join("LOCK").exists() {
        std::thread::yield_now();
    }
    let pid = child.id().to_string();
    let mut said = std::io::BufReader::new(child.stdout.take().expect("piped")).lines();
    for _ in 0..20 {
        assert!(Command::new("kill").args(["-HUP", &pid]).status().expect("kill runs").success());
    }
    assert!(said.any(|line| line.is_ok_and(|line| line.starts_with("connect with: "))), "{:?}", child.wait());
    assert!(Command::new("kill").args(["-TERM", &pid]).status().expect("kill runs").success());
    assert!(child.wait().expect("ends").success());
    let _ = std::fs::remove_dir_all(&directory);
}

/// RUN-2: only the data is in memory.
#[test]
fn a_server_in_memory_reads_its_files_from_the_disk_at_the_start_and_on_a_signal() {
    let directory = scratch("memory-files");
    std::fs::create_dir_all(&directory).expect("a directory");
    let (settings, rules) = (directory.join("conf"), directory.join("access"));
    let write = |path: &Path, text: &str| std::fs::write(path, text).expect("is written");
    let text = |lock_timeout: &str| format!("lock_timeout = {lock_timeout}\naccess_file = '{}'\n", rules.display());
    write(&settings, &text("3s"));
    write(&rules, "host all postgres 127.0.0.1/32 trust\n");
    let mut serve = Command::new(env!("CARGO_BIN_EXE_clearway"));
    serve.args(["serve", "--memory", "--listen", "127.0.0.1:0", "--config"]).arg(&settings);
    serve.stdout(Stdio::piped()).stderr(Stdio::piped());
    let running = program::start_command(&mut serve);
    run(async {
        let client = connect(&running).await;
        assert_eq!(value(&client, "show lock_timeout").await, "3s");
        write(&settings, &text("4s"));
        write(&rules, "host all postgres 127.0.0.1/32 trust\nhost all other 127.0.0.1/32 reject\n");
        let pid = running.child.id().to_string();
        assert!(Command::new("kill").args(["-HUP", &pid]).status().expect("kill runs").success());
        while value(&connect(&running).await, "show lock_timeout").await == "3s" {
            std::thread::yield_now();
        }
        let client = connect(&running).await;
        assert_eq!(value(&client, "show lock_timeout").await, "4s");
        assert_eq!(value(&client, "select count(*) from pg_hba_file_rules where error is null").await, "2");
        assert_eq!(value(&client, "select pg_reload_conf()").await, "t");
    });
    stop(running);
    let _ = std::fs::remove_dir_all(&directory);
}
