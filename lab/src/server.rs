//! Servers: started on loopback with a scratch directory and equal durability, or given by a URL.
//!
//! # Invariants
//! - LSRV-1: a server that the lab started ends with the lab: its process is killed when it is dropped.
//! - LSRV-2: settings differ from a server's defaults only as [`Launch`] lists them, and the list is printed with the figures.

use std::fs::{File, create_dir_all, read_to_string};
use std::net::TcpListener;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio_postgres::{Client, Config, NoTls, SimpleQueryMessage};

use crate::LabError;

/// How long a server may take to start.
const PATIENCE: Duration = Duration::from_secs(30);

/// Which server, and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Clearway: this binary, `serve`.
    Clearway,
    /// PostgreSQL, as installed.
    Postgres,
    /// Any server that speaks PostgreSQL's protocol, already running: its settings are its owner's.
    Url {
        /// What the reports call it.
        name: String,
        /// `postgresql://...`
        url: String,
    },
}

impl Kind {
    /// From `clearway`, `postgres`, or `NAME=postgresql://...`.
    ///
    /// # Errors
    /// An unknown name; for servers that the lab can't drive yet, the reason.
    pub fn parse(text: &str) -> Result<Self, LabError> {
        let absent = |reason: &str| Err(LabError::Absent { server: text.to_owned(), reason: reason.to_owned() });
        let installed = |path: &str| Path::new(path).exists();
        match text {
            "clearway" => Ok(Self::Clearway),
            "postgres" | "postgresql" => Ok(Self::Postgres),
            "mariadb" if !installed("/usr/sbin/mariadbd") => absent(
                "it is not installed (apt install mariadb-server), and the load generator speaks PostgreSQL's protocol only",
            ),
            "mariadb" => absent("the load generator speaks PostgreSQL's protocol only"),
            "pgbouncer" if !installed("/usr/sbin/pgbouncer") => absent(
                "it is not installed (apt install pgbouncer), and the lab does not start it: give one that runs as pgbouncer=URL",
            ),
            "pgbouncer" => absent("the lab does not start it: give one that runs as pgbouncer=URL"),
            _ => match text.split_once('=') {
                Some((name, url)) if url.starts_with("postgres") && !name.is_empty() => {
                    Ok(Self::Url { name: name.to_owned(), url: url.to_owned() })
                }
                _ => Err(LabError::Unknown {
                    kind: "server",
                    name: text.to_owned(),
                    known: "clearway, postgres, NAME=postgresql://USER@HOST:PORT/DATABASE".to_owned(),
                }),
            },
        }
    }

    /// What the reports call it.
    pub fn name(&self) -> &str {
        match self {
            Self::Clearway => "clearway",
            Self::Postgres => "postgres",
            Self::Url { name, .. } => name,
        }
    }
}

/// What a start needs to know.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The `clearway` binary.
    pub clearway: PathBuf,
    /// An empty directory for data and logs.
    pub scratch: PathBuf,
    /// The most clients of the session.
    pub clients: u32,
}

/// A server that answers.
pub struct Server {
    /// What the reports call it.
    pub name: String,
    /// How to connect.
    pub config: Config,
    /// What it says it is.
    pub version: String,
    /// What it was started with, and what it answers when asked for isolation and durability.
    pub settings: Vec<(String, String)>,
    process: Option<Process>,
}

/// A child that ends with its owner.
struct Process {
    child: Child,
    log: PathBuf,
}

/// LSRV-1
impl Drop for Process {
    fn drop(&mut self) {
        // PostgreSQL's "immediate shutdown" ends its children too; Clearway and whatever does not listen is killed.
        if let Ok(pid) = i32::try_from(self.child.id())
            && let Some(pid) = Pid::from_raw(pid)
        {
            let _ = kill_process(pid, Signal::QUIT);
        }
        for _ in 0..50 {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    /// Starts the server, or connects to it, and asks it what it is.
    ///
    /// # Errors
    /// It is not installed, or does not start, or does not answer.
    pub async fn start(kind: &Kind, launch: &Launch) -> Result<Self, LabError> {
        let mut server = match kind {
            Kind::Clearway => clearway(launch)?,
            Kind::Postgres => postgres(launch)?,
            Kind::Url { name, url } => {
                let config = url.parse::<Config>().map_err(|error| failed(name, error.to_string()))?;
                Self { name: name.clone(), config, version: String::new(), settings: Vec::new(), process: None }
            }
        };
        server.answers().await?;
        server.version = server.ask("SELECT version()").await.unwrap_or_else(|_| "version not told".to_owned());
        // LAB-1: neither server's defaults waive a sync; what they say of it is printed.
        for name in ["transaction_isolation", "synchronous_commit", "fsync"] {
            let shown = server.ask(&format!("SHOW {name}")).await.unwrap_or_else(|_| "not told".to_owned());
            server.settings.push((name.to_owned(), shown));
        }
        Ok(server)
    }

    /// Waits for the first answer.
    async fn answers(&mut self) -> Result<(), LabError> {
        let started = std::time::Instant::now();
        loop {
            let error = match self.ask("SELECT 1").await {
                Ok(_) => return Ok(()),
                Err(error) => error,
            };
            let ended = self.process.as_mut().is_some_and(|process| !matches!(process.child.try_wait(), Ok(None)));
            if ended || self.process.is_none() || started.elapsed() > PATIENCE {
                return Err(failed(&self.name, format!("{error}{}", self.log_end())));
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// The process of a server that the lab started.
    pub fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(|process| process.child.id())
    }

    /// The last lines of the log, for messages.
    pub fn log_end(&self) -> String {
        let Some(process) = &self.process else { return String::new() };
        let text = read_to_string(&process.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        let end = &lines[lines.len().saturating_sub(5)..];
        if end.is_empty() { String::new() } else { format!("; its log ends: {}", end.join(" | ")) }
    }

    /// Runs statements one by one.
    ///
    /// # Errors
    /// The first that fails, with its text.
    pub async fn run(&self, statements: &[String]) -> Result<(), LabError> {
        if statements.is_empty() {
            return Ok(());
        }
        let client = self.connect().await.map_err(|reason| self.statement("connect", reason))?;
        for statement in statements {
            let done = client.batch_execute(statement).await;
            done.map_err(|error| self.statement(statement, reason(&error)))?;
        }
        Ok(())
    }

    /// The first column of a query's first row.
    ///
    /// # Errors
    /// What the server says.
    pub async fn ask(&self, query: &str) -> Result<String, LabError> {
        let client = self.connect().await.map_err(|reason| self.statement(query, reason))?;
        let answer = client.simple_query(query).await.map_err(|error| self.statement(query, reason(&error)))?;
        let value = answer.iter().find_map(|message| match message {
            SimpleQueryMessage::Row(row) => Some(row.get(0).unwrap_or("NULL").to_owned()),
            _ => None,
        });
        value.ok_or_else(|| self.statement(query, "no row".to_owned()))
    }

    async fn connect(&self) -> Result<Client, String> {
        let (client, connection) = self.config.connect(NoTls).await.map_err(|error| reason(&error))?;
        tokio::spawn(connection);
        Ok(client)
    }

    fn statement(&self, statement: &str, reason: String) -> LabError {
        let text: String = statement.chars().take(80).collect();
        LabError::Statement { server: self.name.clone(), statement: text, reason }
    }
}

fn failed(server: &str, reason: String) -> LabError {
    LabError::Start { server: server.to_owned(), reason }
}

/// A database's own words where there are any.
fn reason(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(said) => format!("{} ({})", said.message(), said.code().code()),
        None => error.to_string(),
    }
}

/// A port that was free a moment ago.
fn free_port() -> Result<u16, std::io::Error> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

fn local(port: u16) -> Config {
    let mut config = Config::new();
    config.host("127.0.0.1").port(port).user("postgres").dbname("postgres").connect_timeout(PATIENCE);
    config
}

fn spawn(name: &str, command: &mut Command, dir: &Path) -> Result<Process, LabError> {
    let log = dir.join("log");
    let file = File::create(&log).map_err(LabError::file(&log))?;
    let other = file.try_clone().map_err(LabError::file(&log))?;
    let child = command.stdin(std::process::Stdio::null()).stdout(file).stderr(other).spawn();
    let child = child.map_err(|error| failed(name, format!("{}: {error}", command.get_program().display())))?;
    Ok(Process { child, log })
}

fn clearway(launch: &Launch) -> Result<Server, LabError> {
    let name = "clearway";
    let dir = launch.scratch.join(name);
    create_dir_all(&dir).map_err(LabError::file(&dir))?;
    let port = free_port().map_err(|error| failed(name, error.to_string()))?;
    let connections = (launch.clients + 50).to_string();
    let mut command = Command::new(&launch.clearway);
    command.arg("serve").arg("--data").arg(dir.join("data")).arg("--listen").arg(format!("127.0.0.1:{port}"));
    command.args(["-c", &format!("max_connections={connections}")]);
    let process = spawn(name, &mut command, &dir)?;
    let settings = vec![("max_connections".to_owned(), connections)];
    Ok(Server { name: name.to_owned(), config: local(port), version: String::new(), settings, process: Some(process) })
}

fn postgres(launch: &Launch) -> Result<Server, LabError> {
    let name = "postgres";
    let bin = postgres_bin().ok_or_else(|| LabError::Absent {
        server: name.to_owned(),
        reason: "it is not installed: apt install postgresql".to_owned(),
    })?;
    let dir = launch.scratch.join(name);
    create_dir_all(&dir).map_err(LabError::file(&dir))?;
    let owner = owner_of_postgres(&dir)?;
    let data = dir.join("data");
    let as_owner = |program: &str| {
        let mut command = Command::new(bin.join(program));
        if let Some((user, group)) = owner {
            command.uid(user).gid(group);
        }
        command.current_dir(&dir);
        command
    };
    let mut init = as_owner("initdb");
    init.args(["-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C", "-D"]).arg(&data);
    let made = init.output().map_err(|error| failed(name, error.to_string()))?;
    if !made.status.success() {
        return Err(failed(name, String::from_utf8_lossy(&made.stderr).into_owned()));
    }
    let port = free_port().map_err(|error| failed(name, error.to_string()))?;
    // LSRV-2. What its users change first: memory, and room in the log, so that no checkpoint falls into a run.
    let settings: Vec<(String, String)> = [
        ("max_connections", (launch.clients + 50).to_string().as_str()),
        ("shared_buffers", "256MB"),
        ("max_wal_size", "4GB"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .to_vec();
    let mut command = as_owner("postgres");
    command.arg("-D").arg(&data).args(["-h", "127.0.0.1", "-p", &port.to_string(), "-k", ""]);
    for (name, value) in &settings {
        command.args(["-c", &format!("{name}={value}")]);
    }
    let process = spawn(name, &mut command, &dir)?;
    Ok(Server { name: name.to_owned(), config: local(port), version: String::new(), settings, process: Some(process) })
}

/// Where PostgreSQL's programs are: the newest version that Debian's packages installed, else beside `postgres` in PATH.
fn postgres_bin() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let packaged = versions.filter_map(|entry| {
        let version: u32 = entry.file_name().to_str()?.parse().ok()?;
        let bin = entry.path().join("bin");
        bin.join("initdb").exists().then_some((version, bin))
    });
    if let Some((_, bin)) = packaged.max() {
        return Some(bin);
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).find(|dir| dir.join("initdb").exists() && dir.join("postgres").exists())
}

/// PostgreSQL refuses to run as root: then the user `postgres` of its package runs it, and owns the directory.
fn owner_of_postgres(dir: &Path) -> Result<Option<(u32, u32)>, LabError> {
    if !rustix::process::getuid().is_root() {
        return Ok(None);
    }
    let users = read_to_string("/etc/passwd").unwrap_or_default();
    let line = users.lines().find(|line| line.starts_with("postgres:"));
    let mut fields = line.unwrap_or_default().split(':').skip(2).map(|field| field.parse::<u32>().ok());
    let (Some(Some(user)), Some(Some(group))) = (fields.next(), fields.next()) else {
        return Err(failed("postgres", "it does not run as root, and there is no user \"postgres\"".to_owned()));
    };
    std::os::unix::fs::chown(dir, Some(user), Some(group)).map_err(LabError::file(dir))?;
    Ok(Some((user, group)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_by_name() {
        assert_eq!(Kind::parse("clearway").ok(), Some(Kind::Clearway));
        assert_eq!(Kind::parse("postgres").ok().as_ref().map(Kind::name), Some("postgres"));
        let url = Kind::parse("mine=postgresql://me@localhost/db").expect("a URL");
        assert_eq!(url.name(), "mine");
        assert!(matches!(Kind::parse("mariadb"), Err(LabError::Absent { .. })));
        for bad in ["oracle", "=postgresql://x", "x=http://y", ""] {
            assert!(matches!(Kind::parse(bad), Err(LabError::Unknown { .. })), "{bad}");
        }
    }
}
