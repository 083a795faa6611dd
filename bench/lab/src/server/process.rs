//! A child process that is killed when its owner is dropped, and its log file.

use std::fs::{File, read_to_string};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, getuid, kill_process};

use super::failed;
use crate::LabError;

/// A child that ends with its owner.
pub struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts a command whose output goes to a log in `dir`.
    ///
    /// # Errors
    /// The log can't be made, or the program can't be run.
    pub fn spawn(server: &str, command: &mut Command, dir: &Path) -> Result<Self, LabError> {
        let log = dir.join(format!("{server}.log"));
        let file = File::create(&log).map_err(LabError::file(&log))?;
        let other = file.try_clone().map_err(LabError::file(&log))?;
        let child = command.stdin(Stdio::null()).stdout(file).stderr(other).spawn();
        let child = child.map_err(|error| failed(server, format!("{}: {error}", command.get_program().display())))?;
        Ok(Self { child, log })
    }

    /// Its number.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has ended by itself.
    pub fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// The last lines of the log.
    pub fn log_end(&self) -> String {
        let text = read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(5)..].join(" | ")
    }
}

/// LSRV-1
impl Drop for Process {
    fn drop(&mut self) {
        // Its number may belong to another process by now.
        if self.has_ended() {
            return;
        }
        // PostgreSQL's "immediate shutdown" ends its children too; whatever does not listen is killed.
        if let Ok(pid) = i32::try_from(self.child.id())
            && let Some(pid) = Pid::from_raw(pid)
        {
            let _ = kill_process(pid, Signal::QUIT);
        }
        for _ in 0..50 {
            if self.has_ended() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// For a server that refuses to run as root: the user of its package, which then owns the directory. None if this is not root.
///
/// # Errors
/// There is no such user, or the directory can't be given away.
pub fn owner(server: &str, user: &str, dir: &Path) -> Result<Option<(u32, u32)>, LabError> {
    if !getuid().is_root() {
        return Ok(None);
    }
    let users = read_to_string("/etc/passwd").unwrap_or_default();
    let line = users.lines().find(|line| line.split(':').next() == Some(user));
    let mut fields = line.unwrap_or_default().split(':').skip(2).map(|field| field.parse::<u32>().ok());
    let (Some(Some(id)), Some(Some(group))) = (fields.next(), fields.next()) else {
        return Err(failed(server, format!("it does not run as root, and there is no user \"{user}\"")));
    };
    std::os::unix::fs::chown(dir, Some(id), Some(group)).map_err(LabError::file(dir))?;
    Ok(Some((id, group)))
}
