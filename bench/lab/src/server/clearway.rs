//! Starts Clearway, and the server that only speaks the protocol (`limit/wire`).

use std::fs::create_dir_all;
use std::process::Command;

use super::{Launch, Process, Server, free_port, local, settings};
use crate::LabError;
use crate::scenario::Flavour;

/// As its users start it: the defaults, and room for the clients.
pub(super) fn start(launch: &Launch) -> Result<Server, LabError> {
    let name = "clearway";
    let dir = launch.scratch.join(name);
    create_dir_all(&dir).map_err(LabError::file(&dir))?;
    let port = free_port(name)?;
    let connections = (launch.clients + 50).to_string();
    let mut command = Command::new(&launch.clearway);
    command.arg("serve").arg("--data").arg(dir.join("data")).arg("--listen").arg(format!("127.0.0.1:{port}"));
    command.args(["-c", &format!("max_connections={connections}")]);
    let process = Process::spawn(name, &mut command, &dir)?;
    // LSRV-2
    let settings = settings([("max_connections", &connections), ("cache_size", "256MB")]);
    Ok(Server { settings, ..Server::new(name, Flavour::Clearway, local(port, false), vec![process]) })
}

/// This program again; its protocol, and nothing behind it.
pub(super) fn start_wire_only(launch: &Launch) -> Result<Server, LabError> {
    let name = "wire only";
    let port = free_port(name)?;
    let mut command = Command::new(&launch.this);
    command.args(["wire-only", &format!("127.0.0.1:{port}")]);
    let process = Process::spawn("wire-only", &mut command, &launch.scratch)?;
    Ok(Server::new(name, Flavour::WireOnly, local(port, false), vec![process]))
}
