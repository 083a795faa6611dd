//! Starts MariaDB: with a thread per connection, with its thread pool, or without its deadlock detection.

use std::fs::create_dir_all;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use super::process::owner;
use super::{Launch, MariaDbMode, PATIENCE, Process, Server, absent, failed, free_port};
use crate::LabError;
use crate::scenario::Flavour;
use crate::wire::{Address, MySqlAddress, with_client};

const SERVER: &str = "/usr/sbin/mariadbd";
const INSTALL: &str = "/usr/bin/mariadb-install-db";
/// The database of the tables.
const DATABASE: &str = "lab";

pub(super) async fn start(mode: MariaDbMode, launch: &Launch) -> Result<Server, LabError> {
    let name = mode.name();
    if !Path::new(SERVER).exists() || !Path::new(INSTALL).exists() {
        return Err(absent(name, "mariadb-server"));
    }
    let dir = launch.scratch.join(name);
    create_dir_all(&dir).map_err(LabError::file(&dir))?;
    let data = dir.join("data");
    let owner = owner(name, "mysql", &dir)?;
    let as_owner = |program: &str| {
        let mut command = Command::new(program);
        if let Some((user, group)) = owner {
            command.uid(user).gid(group);
        }
        command.arg("--no-defaults").current_dir(&dir);
        command
    };
    let mut install = as_owner(INSTALL);
    install.arg("--auth-root-authentication-method=normal").arg(format!("--datadir={}", data.display()));
    let made = install.output().map_err(|error| failed(name, error.to_string()))?;
    if !made.status.success() {
        return Err(failed(name, String::from_utf8_lossy(&made.stderr).into_owned()));
    }
    let port = free_port(name)?;
    let settings = options(mode, launch.clients + 50);
    let mut command = as_owner(SERVER);
    command.arg(format!("--datadir={}", data.display())).arg(format!("--socket={}", dir.join("socket").display()));
    command.arg("--bind-address=127.0.0.1").arg(format!("--port={port}"));
    // Neither names are looked up nor clients refused because many come at once.
    command.args([
        "--skip-name-resolve",
        "--back-log=4096",
        "--max-connect-errors=1000000",
        "--open-files-limit=20000",
    ]);
    for (name, value) in &settings {
        command.arg(format!("--{}={value}", name.replace('_', "-")));
    }
    let process = Process::spawn(name, &mut command, &dir)?;
    let address = |database: &str| {
        Address::MySql(MySqlAddress {
            host: "127.0.0.1".to_owned(),
            port,
            user: "root".to_owned(),
            password: String::new(),
            database: database.to_owned(),
            program: String::new(),
        })
    };
    let mut server = Server { settings, ..Server::new(name, Flavour::MySql, address("mysql"), vec![process]) };
    make_database(&mut server).await?;
    server.address = address(DATABASE);
    Ok(server)
}

/// LSRV-2. What its users change first: memory, and room in the log. The isolation is that of the others; the binary log is off by
/// default, and with it on a row would be held through a second sync.
fn options(mode: MariaDbMode, connections: u32) -> Vec<(String, String)> {
    let connections = connections.to_string();
    let mut options = super::settings([
        ("max_connections", connections.as_str()),
        ("innodb_buffer_pool_size", "256M"),
        ("innodb_log_file_size", "1G"),
        ("transaction_isolation", "READ-COMMITTED"),
        ("max_prepared_stmt_count", "1000000"),
        ("thread_cache_size", "1000"),
    ]);
    let more = match mode {
        MariaDbMode::Threads => None,
        MariaDbMode::Pool => Some(("thread_handling", "pool-of-threads")),
        MariaDbMode::NoDetection => Some(("innodb_deadlock_detect", "OFF")),
    };
    options.extend(more.map(|(name, value)| (name.to_owned(), value.to_owned())));
    options
}

async fn make_database(server: &mut Server) -> Result<(), LabError> {
    let began = Instant::now();
    let make = format!("CREATE DATABASE {DATABASE}");
    loop {
        let made = with_client(&server.address, async |mut client| client.command(&make).await).await;
        let Err(error) = made else { return Ok(()) };
        if error.code.is_some() || began.elapsed() > PATIENCE || server.processes.iter_mut().any(Process::has_ended) {
            return Err(failed(&server.name, format!("{error}{}", server.log_end())));
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
