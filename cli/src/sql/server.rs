//! Starts a server of the shell's own, for a directory that no server serves.

use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use clearway_base::sync::spawn_thread;
use tokio::signal::unix::{SignalKind, signal};

/// This program as `clearway serve`, on a free port; it is killed if it is not stopped.
pub struct Served {
    child: Child,
    port: String,
}

impl Served {
    /// Starts it, and waits until it answers.
    ///
    /// # Errors
    /// It does not start: its own words.
    pub fn start(dir: &Path) -> Result<Self, String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut command = Command::new(program);
        command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(dir);
        // In a process group of its own: Ctrl-C cancels a statement and does not stop the server.
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut child = command.spawn().map_err(|error| error.to_string())?;
        let out = child.stdout.take().ok_or("the server has no output")?;
        let mut port = String::new();
        for line in BufReader::new(out).lines().map_while(Result::ok) {
            if let Some(found) = line.strip_prefix("listening at 127.0.0.1:") {
                found.clone_into(&mut port);
            }
            if line.starts_with("connect with: psql ") {
                stop_with_us(child.id())?;
                return Ok(Self { child, port });
            }
        }
        let mut said = String::new();
        if let Some(mut error) = child.stderr.take() {
            let _ = error.read_to_string(&mut said);
        }
        let _ = child.wait();
        Err(said.trim().trim_start_matches("clearway: ").to_owned())
    }

    /// Where it listens.
    pub fn url(&self) -> String {
        format!("postgresql://postgres@127.0.0.1:{}/clearway", self.port)
    }

    /// Ends it as SIGTERM does: sessions end, a checkpoint is taken.
    ///
    /// # Errors
    /// It did not end well.
    pub fn stop(mut self) -> Result<(), String> {
        terminate_process(self.child.id())?;
        let ended = self.child.wait().map_err(|error| error.to_string())?;
        if ended.success() { Ok(()) } else { Err(format!("the server did not stop cleanly: {ended}")) }
    }
}

/// A terminal that goes away, or SIGTERM, ends the shell; its server must not stay behind.
fn stop_with_us(server: u32) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let watcher = spawn_thread("sql signals", move || {
        if runtime.block_on(told_to_end()).is_ok() {
            // It may have ended by itself.
            let _ = terminate_process(server);
            std::process::exit(129);
        }
    });
    watcher.map(drop).map_err(|error| error.to_string())
}

async fn told_to_end() -> std::io::Result<()> {
    let (mut hang_up, mut terminate) = (signal(SignalKind::hangup())?, signal(SignalKind::terminate())?);
    tokio::select! {
        _ = hang_up.recv() => {}
        _ = terminate.recv() => {}
    }
    Ok(())
}

fn terminate_process(pid: u32) -> Result<(), String> {
    let told = Command::new("kill").args(["-TERM", &pid.to_string()]).status();
    told.map(drop).map_err(|error| error.to_string())
}

impl Drop for Served {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}
