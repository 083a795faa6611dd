//! `clearway demo`: shows in less than a minute, in a scratch directory, what Clearway is for.
//!
//! # Structure
//! `client` (a session inside the process), `locks` (which session blocks which, a deadlock), `hot_row` (one row, many clients), `crash`
//! (kill -9 in the middle of the load), `serve` (the server that keeps running afterwards).

mod client;
mod crash;
mod hot_row;
mod locks;
mod serve;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clearway_base::sync::{block_on, spawn_thread};
use clearway_base::vfs::{RealVfs, Vfs};
use clearway_engine::db::{Db, DbOptions};
use clearway_sql::session::Backends;

/// What the demonstration says when something fails.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// A database that the demonstration has open.
pub struct Opened {
    /// The database.
    pub db: Arc<Db>,
    /// Its sessions.
    pub backends: Arc<Backends>,
}

impl Opened {
    /// Opens a directory, with its background work on threads.
    fn open(dir: &Path) -> Result<Opened, Failure> {
        let vfs: Arc<dyn Vfs> = Arc::new(RealVfs::inline());
        let spawn = |name: &'static str, task| {
            // Without its threads the database says so at the first thing that waits for them.
            let _ = spawn_thread(name, move || block_on(task));
        };
        let db = block_on(async {
            // They may be there already; if they can't be made, opening says why.
            for dir in dir.parent().into_iter().chain([dir]) {
                let _ = vfs.create_dir(dir).await;
            }
            Db::open(DbOptions::new(vfs.clone(), dir), spawn).await
        })?;
        Ok(Opened { db, backends: Arc::default() })
    }

    fn close(self) -> Result<(), Failure> {
        Ok(block_on(self.db.close())?)
    }
}

/// How the demonstration ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The server stays up until Ctrl-C.
    Serve,
    /// It stops: standard input is no terminal.
    Stop,
}

/// Shows everything, in a scratch directory that goes afterwards.
///
/// # Errors
/// Whatever went wrong, as a sentence.
pub fn run(end: End, say: &mut (dyn FnMut(&str) + Send)) -> Result<(), Failure> {
    let dir = scratch();
    say(&format!("The demonstration runs in {} ...", dir.display()));
    let shown = show(&dir, end, say);
    remove(&dir);
    shown
}

fn show(dir: &Path, end: End, say: &mut (dyn FnMut(&str) + Send)) -> Result<(), Failure> {
    let data = dir.join("demo");
    let opened = Opened::open(&data)?;
    locks::chain(&opened, say)?;
    locks::deadlock(&opened, say)?;
    opened.close()?;
    hot_row::run(say)?;
    crash::run(&dir.join("crash"), say)?;
    match end {
        End::Serve => serve::run(&data, say),
        End::Stop => {
            say("");
            say("5. On a terminal a server would stay up now: clearway serve");
            serve::next_steps("5433", say);
            Ok(())
        }
    }
}

/// The child of the crash: loads a directory until it is killed.
///
/// # Errors
/// Whatever went wrong.
pub fn load_until_killed(dir: &Path) -> Result<(), Failure> {
    crash::load(dir)
}

fn scratch() -> PathBuf {
    std::env::temp_dir().join(format!("clearway-demo-{}", std::process::id()))
}

/// Removes a scratch directory.
pub(crate) fn remove(dir: &Path) {
    // What can't be removed stays in the system's temporary directory.
    let _ = std::process::Command::new("rm").arg("-rf").arg(dir).status();
}
