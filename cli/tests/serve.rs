//! The real program: it starts, says where it is, keeps what was committed, refuses a second start, stops on SIGTERM.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

/// A running server; it is killed when the test ends in any other way.
struct Running {
    child: Child,
    port: u16,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn command(directory: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_clearway"));
    command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(directory);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn start(directory: &Path) -> Running {
    let mut child = command(directory).spawn().expect("starts");
    let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let mut port = 0;
    for line in lines.map_while(Result::ok) {
        if let Some(found) = line.strip_prefix("listening at 127.0.0.1:") {
            port = found.parse().expect("a port");
        }
        if line.starts_with("connect with: psql ") {
            return Running { child, port };
        }
    }
    let mut error = String::new();
    let _ = child.stderr.take().expect("piped").read_to_string(&mut error);
    let _ = child.wait();
    panic!("it did not start: {error}");
}

fn stop(mut running: Running) {
    let pid = running.child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().expect("kill runs").success());
    assert!(running.child.wait().expect("ends").success(), "SIGTERM ends it cleanly");
}

fn run<T>(test: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(test)
}

async fn connect(running: &Running) -> Client {
    let text = format!("host=127.0.0.1 port={} user=postgres dbname=postgres", running.port);
    let (client, connection) = tokio_postgres::connect(&text, NoTls).await.expect("connects");
    tokio::spawn(connection);
    client
}

async fn value(client: &Client, sql: &str) -> String {
    let messages = client.simple_query(sql).await.expect("runs");
    let row = messages.iter().find_map(|m| if let SimpleQueryMessage::Row(row) = m { Some(row) } else { None });
    row.and_then(|row| row.get(0)).expect("a value").to_owned()
}

fn scratch(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("clearway-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    path
}

#[test]
fn what_was_committed_is_there_after_a_stop_and_after_a_kill() {
    let directory = scratch("serve");
    let first = start(&directory);
    run(async {
        let client = connect(&first).await;
        client.batch_execute("create table t (id int primary key, v text)").await.expect("creates");
        client.batch_execute("insert into t values (1, 'one'), (2, 'two')").await.expect("inserts");
        let rows = client.query("select v from t where id = $1", &[&2i32]).await.expect("selects");
        assert_eq!(rows[0].get::<_, String>(0), "two");
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
        client.batch_execute("insert into t values (3, 'three')").await.expect("inserts");
        client.batch_execute("begin; insert into t values (4, 'four')").await.expect("inserts");
    });
    drop(again); // SIGKILL
    let recovered = start(&directory);
    run(async {
        let client = connect(&recovered).await;
        assert_eq!(value(&client, "select count(*) from t").await, "3", "committed: there, open: gone");
    });
    stop(recovered);
    let checked = Command::new(env!("CARGO_BIN_EXE_clearway")).arg("check").arg(&directory).output().expect("runs");
    let said = String::from_utf8_lossy(&checked.stderr).into_owned();
    assert!(checked.status.success(), "{said}");
    let _ = std::fs::remove_dir_all(&directory);
}
