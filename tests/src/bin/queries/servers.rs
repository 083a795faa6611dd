//! The two servers beside each other: a PostgreSQL 15 and a Clearway in directories of their own.

use crate::client::Session;
use std::fs;
use std::io::Write;
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const BINARIES: &str = "/usr/lib/postgresql/15/bin";
/// Texts have the order and the cases of C.UTF-8, as in Clearway. Plans are left to PostgreSQL, but for those that a processor's load would change.
const POSTGRES_CONF: &str = "
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
max_connections = 20
shared_buffers = 64MB
fsync = off
synchronous_commit = off
full_page_writes = off
wal_level = minimal
max_wal_senders = 0
autovacuum = off
max_parallel_workers_per_gather = 0
jit = off
log_min_messages = fatal
log_min_error_statement = panic
";
const CLEARWAY_CONF: &str = "
ddl_block_window = -1
password_on_loopback = off
synchronous_commit = off
";

/// A directory that goes with its value.
pub struct Scratch(PathBuf);

impl Scratch {
    /// A new directory for temporary files.
    pub fn new() -> Result<Scratch, String> {
        let path = std::env::temp_dir().join(format!("clearway-queries-{}", std::process::id()));
        fs::create_dir_all(&path).map_err(|err| format!("{}: {err}", path.display()))?;
        Ok(Scratch(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A server that was started for the occasion.
pub struct Server {
    process: Child,
    /// Where it listens.
    pub port: u16,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Server {
    /// Whether its process is there.
    pub fn lives(&mut self) -> bool {
        matches!(self.process.try_wait(), Ok(None))
    }
}

/// The user and the group that PostgreSQL runs as: it refuses to run as root.
fn as_user() -> Option<(u32, u32)> {
    let ids = |line: &str| {
        let mut fields = line.split(':').skip(2).map(|field| field.parse().ok());
        Some((fields.next()??, fields.next()??))
    };
    let users = fs::read_to_string("/etc/passwd").ok()?;
    let root = fs::metadata("/proc/self").ok().is_some_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0);
    let mut named =
        ["postgres:", "nobody:"].iter().filter_map(|name| users.lines().find(|line| line.starts_with(name)));
    if root { named.next().and_then(ids) } else { None }
}

fn command(program: &str, user: Option<(u32, u32)>) -> Command {
    let mut command = Command::new(format!("{BINARIES}/{program}"));
    command.current_dir("/").stdin(Stdio::null());
    if let Some((user, group)) = user {
        command.uid(user).gid(group);
    }
    command
}

/// Makes a PostgreSQL in the directory and starts it.
pub fn postgres(scratch: &Scratch) -> Result<Server, String> {
    let directory = scratch.0.join("postgres");
    let data = directory.join("data");
    let user = as_user();
    fs::create_dir_all(&directory).map_err(|err| err.to_string())?;
    if let Some((user, group)) = user {
        std::os::unix::fs::chown(&directory, Some(user), Some(group)).map_err(|err| err.to_string())?;
    }
    let mut initdb = command("initdb", user);
    initdb.args(["-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync", "-D"]).arg(&data);
    let made = initdb.output().map_err(|err| format!("initdb: {err}"))?;
    if !made.status.success() {
        return Err(format!("initdb: {}", String::from_utf8_lossy(&made.stderr)));
    }
    let mut conf =
        fs::OpenOptions::new().append(true).open(data.join("postgresql.conf")).map_err(|err| err.to_string())?;
    conf.write_all(POSTGRES_CONF.as_bytes()).map_err(|err| err.to_string())?;
    let port =
        TcpListener::bind("127.0.0.1:0").and_then(|probe| probe.local_addr()).map_err(|err| err.to_string())?.port();
    let log = fs::File::create(directory.join("log")).map_err(|err| err.to_string())?;
    let mut serve = command("postgres", user);
    serve.arg("-D").arg(&data).args(["-p", &port.to_string()]).stdout(Stdio::null()).stderr(log);
    let process = serve.spawn().map_err(|err| format!("postgres: {err}"))?;
    let mut server = Server { process, port };
    for _ in 0..600 {
        if Session::open(port, "").is_ok() {
            return Ok(server);
        }
        if !server.lives() {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Err(format!("PostgreSQL did not start: {}", fs::read_to_string(directory.join("log")).unwrap_or_default()))
}

/// Starts a Clearway in a new directory.
pub fn clearway(scratch: &Scratch, binary: &Path, number: u64) -> Result<Server, String> {
    let directory = scratch.0.join(format!("clearway{number}"));
    let beside = |extension: &str| directory.with_extension(extension);
    fs::write(beside("conf"), CLEARWAY_CONF).map_err(|err| err.to_string())?;
    let log = fs::File::create(beside("log")).map_err(|err| err.to_string())?;
    let mut serve = Command::new(binary);
    serve
        .arg("serve")
        .arg("--data")
        .arg(&directory)
        .arg("--config")
        .arg(beside("conf"))
        .args(["--listen", "127.0.0.1:0"]);
    serve.stdin(Stdio::null()).stdout(log.try_clone().map_err(|err| err.to_string())?).stderr(log);
    let process = serve.spawn().map_err(|err| format!("{}: {err}", binary.display()))?;
    let mut server = Server { process, port: 0 };
    for _ in 0..1200 {
        let told = fs::read_to_string(beside("log")).unwrap_or_default();
        let port = told.lines().find_map(|line| line.strip_prefix("listening at 127.0.0.1:"));
        if let Some(port) = port.filter(|_| told.lines().any(|line| line.starts_with("connect with"))) {
            server.port = port
                .split(|c: char| !c.is_ascii_digit())
                .next()
                .unwrap_or("")
                .parse()
                .map_err(|err| format!("{port}: {err}"))?;
            return Ok(server);
        }
        if !server.lives() {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Err(format!("clearway did not start: {}", fs::read_to_string(beside("log")).unwrap_or_default()))
}

/// The last lines of what Clearway wrote.
pub fn log(scratch: &Scratch, number: u64) -> String {
    let told = fs::read_to_string(scratch.0.join(format!("clearway{number}.log"))).unwrap_or_default();
    let lines: Vec<&str> = told.lines().collect();
    lines[lines.len().saturating_sub(12)..].join("\n")
}
