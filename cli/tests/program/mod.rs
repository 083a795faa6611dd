//! Runs the real program as a child of a test.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A running server; it is killed when the test ends in any other way.
pub struct Running {
    pub child: Child,
    pub port: u16,
    output: BufReader<ChildStdout>,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn command(directory: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_clearway"));
    command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(directory);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

#[allow(dead_code, reason = "not every test wants a server without arguments")]
pub fn start(directory: &Path) -> Running {
    start_with(directory, &[])
}

pub fn start_with(directory: &Path, arguments: &[String]) -> Running {
    start_command(command(directory).args(arguments))
}

/// Starts a command line that ends in a server.
pub fn start_command(command: &mut Command) -> Running {
    let mut child = command.spawn().expect("starts");
    let mut output = BufReader::new(child.stdout.take().expect("piped"));
    let (mut port, mut line) = (0, String::new());
    while output.read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
        // The path of a Unix socket has no port behind a colon.
        if let Some(found) = line.trim_end().strip_prefix("listening at ").filter(|place| !place.starts_with('/')) {
            port = found.rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port");
        }
        if line.starts_with("connect with: psql ") {
            return Running { child, port, output };
        }
        line.clear();
    }
    panic!("it did not start: {}", rest(&mut child, &mut output));
}

/// What it still says on both outputs, once it has ended.
fn rest(child: &mut Child, output: &mut impl std::io::Read) -> String {
    let mut said = String::new();
    let _ = output.read_to_string(&mut said);
    if let Some(errors) = &mut child.stderr {
        let _ = errors.read_to_string(&mut said);
    }
    said
}

/// Drives a test with a client in it.
#[allow(dead_code, reason = "not every test has such a client")]
pub fn run<T>(test: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(test)
}

#[allow(dead_code, reason = "not every test has such a client")]
pub async fn connect(running: &Running) -> tokio_postgres::Client {
    connect_as(running, "postgres", "postgres").await
}

#[allow(dead_code, reason = "not every test has such a client")]
pub async fn connect_as(running: &Running, role: &str, database: &str) -> tokio_postgres::Client {
    let text = format!("host=127.0.0.1 port={} user={role} dbname={database}", running.port);
    let (client, connection) = tokio_postgres::connect(&text, tokio_postgres::NoTls).await.expect("connects");
    tokio::spawn(connection);
    client
}

pub fn stop(mut running: Running) {
    let pid = running.child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().expect("kill runs").success());
    let said = rest(&mut running.child, &mut running.output);
    let status = running.child.wait().expect("ends");
    assert!(status.success(), "SIGTERM ends it cleanly, not with {status}: {said}");
}

/// A directory that no other test has, which is not there yet.
pub fn scratch(name: &str) -> PathBuf {
    static MADE: AtomicUsize = AtomicUsize::new(0);
    let number = MADE.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("clearway-{name}-{}-{number}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    path
}

/// The server under a limit of addresses: what is allocated beyond it aborts the process.
#[allow(dead_code, reason = "tests of memory alone need it")]
pub fn start_under(directory: &PathBuf, kib: usize, arguments: &[&str]) -> Running {
    let script = format!("ulimit -v {kib}; exec \"$0\" \"$@\"");
    let mut command = Command::new("sh");
    command.args(["-c", &script, env!("CARGO_BIN_EXE_clearway"), "serve", "--listen", "127.0.0.1:0", "--data"]);
    command.arg(directory).args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    start_command(&mut command)
}
