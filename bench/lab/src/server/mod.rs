//! Servers: started on loopback with a scratch directory and equal durability, or given by a URL.
//!
//! # Structure
//! `kind` (names and URLs), `process` (a child process that is killed with its owner), `clearway`, `postgres` (also behind PgBouncer),
//! `mariadb`, `promises` (the isolation and durability that a server reports, and whether they are those that the lab asks for).
//!
//! # Invariants
//! - LSRV-1: a server that the lab started does not outlive the lab: its process is killed when its [`Server`] is dropped.
//! - LSRV-2: a server's settings differ from its defaults only as its file here lists, and the list is printed with the figures.
//! - LSRV-3: a server whose commits are not durable, or whose isolation is not read committed, does not take part, unless the user waives
//!   that; then its caption says so.

mod clearway;
mod kind;
mod mariadb;
mod postgres;
mod process;
mod promises;

use std::path::PathBuf;
use std::time::Duration;

pub use kind::{Kind, MariaDbMode};
use process::Process;

use crate::LabError;
use crate::scenario::Flavour;
use crate::wire::{Address, WireError, with_client};

/// How long a server may take to start.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a start needs to know.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The `clearway` binary.
    pub clearway: PathBuf,
    /// This program, which is also the server that only speaks the protocol.
    pub this: PathBuf,
    /// An empty directory for data and logs.
    pub scratch: PathBuf,
    /// The most clients of the session.
    pub clients: u32,
    /// Servers take part whose durability or isolation is another one.
    pub accept_unequal: bool,
}

/// A server that answers.
pub struct Server {
    /// What the reports call it.
    pub name: String,
    /// Whose words it understands.
    pub flavour: Flavour,
    /// How to connect.
    pub address: Address,
    /// What it says it is.
    pub version: String,
    /// What it was started with, and what it answers when asked for isolation and durability.
    pub settings: Vec<(String, String)>,
    /// LSRV-1: each ends with it.
    processes: Vec<Process>,
}

impl Server {
    /// Starts the server, or connects to it, and asks it what it is.
    ///
    /// # Errors
    /// It is not installed, or does not start, or does not answer, or promises less than the others.
    pub async fn start(kind: &Kind, launch: &Launch) -> Result<Self, LabError> {
        let mut server = match kind {
            Kind::Clearway => clearway::start(launch)?,
            Kind::WireOnly => clearway::start_wire_only(launch)?,
            Kind::Postgres => postgres::start(launch)?,
            Kind::PgBouncer => postgres::start_pooled(launch).await?,
            Kind::MariaDb(mode) => mariadb::start(*mode, launch).await?,
            Kind::Url { name, address } => Self::new(name, Flavour::Postgres, address.clone(), Vec::new()),
        };
        server.answers().await?;
        if server.flavour == Flavour::WireOnly {
            return Ok(server);
        }
        server.version = server.ask("SELECT version()").await.unwrap_or_else(|_| "version unknown".to_owned());
        if matches!(kind, Kind::Url { .. }) {
            server.flavour = match &server.address {
                Address::MySql(_) => Flavour::MySql,
                Address::Postgres { .. } if server.version.contains("Clearway") => Flavour::Clearway,
                Address::Postgres { .. } => Flavour::Postgres,
            };
        }
        promises::examine(&mut server, launch.accept_unequal).await?;
        Ok(server)
    }

    fn new(name: &str, flavour: Flavour, address: Address, processes: Vec<Process>) -> Self {
        Self { name: name.to_owned(), flavour, address, version: String::new(), settings: Vec::new(), processes }
    }

    /// Waits for the first answer.
    async fn answers(&mut self) -> Result<(), LabError> {
        let started = std::time::Instant::now();
        loop {
            let error = match self.ask("SELECT 1").await {
                Ok(_) => return Ok(()),
                Err(error) => error,
            };
            let ended = self.processes.iter_mut().any(Process::has_ended);
            if ended || self.processes.is_empty() || started.elapsed() > PATIENCE {
                return Err(failed(&self.name, format!("{error}{}", self.log_end())));
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// The processes of a server that the lab started.
    pub fn pids(&self) -> Vec<u32> {
        self.processes.iter().map(Process::pid).collect()
    }

    /// The last lines of the log, for messages.
    pub fn log_end(&self) -> String {
        let ends: Vec<String> = self.processes.iter().map(Process::log_end).filter(|end| !end.is_empty()).collect();
        if ends.is_empty() { String::new() } else { format!("; its log ends: {}", ends.join(" || ")) }
    }

    /// Runs statements one by one.
    ///
    /// # Errors
    /// The first that fails, with its text.
    pub async fn run(&self, statements: &[String]) -> Result<(), LabError> {
        if statements.is_empty() {
            return Ok(());
        }
        let mut at = "connect";
        let ran = with_client(&self.address, async |mut client| {
            for statement in statements {
                at = statement;
                client.command(statement).await?;
            }
            Ok(())
        });
        ran.await.map_err(|error| self.statement(at, &error))
    }

    /// The first column of a query's first row.
    ///
    /// # Errors
    /// What the server says.
    pub async fn ask(&self, query: &str) -> Result<String, LabError> {
        let answer = with_client(&self.address, async |mut client| client.ask(query).await).await;
        let answer = answer.map_err(|error| self.statement(query, &error))?;
        answer.ok_or_else(|| self.statement(query, &WireError { code: None, text: "no row".to_owned() }))
    }

    fn statement(&self, statement: &str, error: &WireError) -> LabError {
        let text: String = statement.chars().take(80).collect();
        LabError::Statement { server: self.name.clone(), statement: text, reason: error.to_string() }
    }
}

fn failed(server: &str, reason: impl Into<String>) -> LabError {
    LabError::Start { server: server.to_owned(), reason: reason.into() }
}

fn absent(server: &str, package: &str) -> LabError {
    LabError::Absent { server: server.to_owned(), reason: format!("it is not installed: apt install {package}") }
}

/// A port that was free a moment ago.
fn free_port(server: &str) -> Result<u16, LabError> {
    let port = std::net::TcpListener::bind(("127.0.0.1", 0)).and_then(|listener| listener.local_addr());
    port.map(|address| address.port()).map_err(|error| failed(server, error.to_string()))
}

/// PostgreSQL's protocol at a local port.
fn local(port: u16, unnamed: bool) -> Address {
    let mut config = tokio_postgres::Config::new();
    config.host("127.0.0.1").port(port).user("postgres").dbname("postgres").connect_timeout(PATIENCE);
    Address::Postgres { config: Box::new(config), unnamed }
}

/// Settings as the reports print them.
fn settings<const N: usize>(pairs: [(&str, &str); N]) -> Vec<(String, String)> {
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec()
}
