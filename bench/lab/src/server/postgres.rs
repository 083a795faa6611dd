//! Starts PostgreSQL, alone or behind PgBouncer.

use std::fs::create_dir_all;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::process::owner;
use super::{Launch, Process, Server, absent, failed, free_port, local, settings};
use crate::LabError;
use crate::scenario::Flavour;

/// Connections that PgBouncer keeps to PostgreSQL: a few per processor, as its users size it.
const POOL: &str = "16";
const PGBOUNCER: &str = "/usr/sbin/pgbouncer";

pub(super) fn start(launch: &Launch) -> Result<Server, LabError> {
    let name = "postgres";
    let connections = (launch.clients + 50).to_string();
    let (process, port, settings) = cluster(name, &connections, launch)?;
    Ok(Server { settings, ..Server::new(name, Flavour::Postgres, local(port, false), vec![process]) })
}

pub(super) async fn start_pooled(launch: &Launch) -> Result<Server, LabError> {
    let name = "pgbouncer";
    if !Path::new(PGBOUNCER).exists() {
        return Err(absent(name, "pgbouncer"));
    }
    let (behind, behind_port, mut settings) = cluster(name, "100", launch)?;
    let dir = launch.scratch.join(name);
    let port = free_port(name)?;
    let file = dir.join("pgbouncer.ini");
    let clients = launch.clients + 50;
    // LSRV-2
    let text = format!(
        "[databases]\npostgres = host=127.0.0.1 port={behind_port} user=postgres dbname=postgres\n[pgbouncer]\n\
         listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\npool_mode = transaction\n\
         default_pool_size = {POOL}\nmax_client_conn = {clients}\nignore_startup_parameters = extra_float_digits\n"
    );
    std::fs::write(&file, text).map_err(LabError::file(&file))?;
    let mut command = Command::new(PGBOUNCER);
    command.arg(&file).current_dir(&dir);
    if let Some((user, group)) = owner(name, "postgres", &dir)? {
        command.uid(user).gid(group);
    }
    let pool = Process::spawn("pgbouncer-pool", &mut command, &dir)?;
    for (name, value) in [("pool_mode", "transaction"), ("default_pool_size", POOL), ("statements", "not named")] {
        settings.push((name.to_owned(), value.to_owned()));
    }
    Ok(Server { settings, ..Server::new(name, Flavour::Postgres, local(port, true), vec![behind, pool]) })
}

/// What it was started with, for the captions.
type Settings = Vec<(String, String)>;

/// A new cluster in a directory of its own, and its postmaster.
fn cluster(name: &str, connections: &str, launch: &Launch) -> Result<(Process, u16, Settings), LabError> {
    let bin = bin().ok_or_else(|| absent(name, "postgresql"))?;
    let dir = launch.scratch.join(name);
    create_dir_all(&dir).map_err(LabError::file(&dir))?;
    let owner = owner(name, "postgres", &dir)?;
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
    let port = free_port(name)?;
    // LSRV-2. What its users change first: memory, and room in the log, so that no checkpoint falls into a run.
    let settings = settings([("max_connections", connections), ("shared_buffers", "256MB"), ("max_wal_size", "4GB")]);
    let mut command = as_owner("postgres");
    command.arg("-D").arg(&data).args(["-h", "127.0.0.1", "-p", &port.to_string(), "-k", ""]);
    for (name, value) in &settings {
        command.args(["-c", &format!("{name}={value}")]);
    }
    Ok((Process::spawn(name, &mut command, &dir)?, port, settings))
}

/// Where PostgreSQL's programs are: the newest version that Debian's packages installed, else beside `postgres` in PATH.
fn bin() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let packaged = versions.filter_map(|entry| {
        let version: u32 = entry.file_name().to_str()?.parse().ok()?;
        let bin = entry.path().join("bin");
        (bin.join("initdb").exists() && bin.join("postgres").exists()).then_some((version, bin))
    });
    if let Some((_, bin)) = packaged.max() {
        return Some(bin);
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).find(|dir| dir.join("initdb").exists() && dir.join("postgres").exists())
}
