//! The server's archiver: a thread that sends the log to the archive.
//!
//! # Life of an archiver
//! It checks several times a second whether a piece is due -> it sends the piece -> after a failure it pauses, longer each time. When the
//! server stops, once its sessions have ended, it sends the rest of the log, as far as a time limit allows.
//!
//! # Invariants
//! - SAR-1: only commits that ask for it (`synchronous_commit = archive`) wait for the archive; a failing archive delays no other commit.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use clearway_backup::archive::{ArchiveOptions, Archiver, Step};
use clearway_backup::target::{self, Directory};
use clearway_base::sync::{JoinHandle, block_on, sleep, spawn_thread, timeout};
use clearway_base::vfs::{Vfs, inline_io_here};
use clearway_base::waits::{Object, WaitEvent, in_wait};
use clearway_engine::db::Db;
use clearway_storage::store::Store;

use clearway_sql::context::log_line::Severity;

use crate::config::Config;
use crate::log::Log;

/// How often it looks whether a piece is due.
const LOOK: Duration = Duration::from_millis(100);
/// After a failure it waits so long, then twice as long each time,
const PAUSE_FIRST: Duration = Duration::from_secs(1);
/// up to this,
const PAUSE_MAX: Duration = Duration::from_secs(60);
/// or to this, while commits wait.
const PAUSE_MAX_AWAITED: Duration = Duration::from_secs(5);
/// What was not sent after so long at the end is sent by the next start.
const FAREWELL: Duration = Duration::from_secs(10);

/// The archiver's thread.
pub struct Archive {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Archive {
    /// Starts the thread (SAR-1), if the settings name an archive.
    ///
    /// # Errors
    /// The system gives no thread or no random bytes.
    pub fn start(config: &Config, vfs: &Arc<dyn Vfs>, db: &Arc<Db>, log: Log) -> io::Result<Option<Archive>> {
        let Some(target) = config.archive.target.as_deref().filter(|_| !config.memory) else { return Ok(None) };
        let mut number = [0; 8];
        getrandom::fill(&mut number).map_err(io::Error::other)?;
        let options = ArchiveOptions {
            timeout_ns: config.archive.timeout.as_nanos() as u64,
            limit_bytes: config.archive.limit_bytes(),
            claimer: u64::from_le_bytes(number).max(1),
        };
        let target = target::open(vfs, target, false).map_err(io::Error::other)?;
        let home = Directory::new(Arc::clone(vfs), &config.data);
        let store = Arc::clone(db.transactions().store());
        if config.archive.sync {
            store.archive().set_sync();
        }
        let archiver = Archiver::new(Arc::clone(&store), target, Box::new(home), options);
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let max_lag = config.archive.max_lag;
        let thread = spawn_thread("archiver", move || {
            let _inline = inline_io_here();
            block_on(run(archiver, &store, &told, max_lag, &log));
        })?;
        Ok(Some(Archive { stop, thread }))
    }

    /// Has it send what there is, and ends it.
    pub fn stop(self) {
        self.stop.store(true, SeqCst);
        // A panic there has been told; the log that was not sent is there at the next start.
        let _ = self.thread.join();
    }
}

async fn run(mut archiver: Archiver, store: &Store, stop: &AtomicBool, max_lag: u64, log: &Log) {
    let log = |line: &str| log.say(Severity::Log, format!("archive: {line}"));
    let mut pause = Duration::ZERO;
    let mut lags = false;
    loop {
        let stopping = stop.load(SeqCst);
        let step = archiver.step(stopping);
        let stepped = match stopping {
            true => match timeout(FAREWELL, step).await {
                Ok(stepped) => stepped,
                Err(_) => return,
            },
            false => step.await,
        };
        match stepped {
            Ok(done) => {
                if !pause.is_zero() {
                    log("works again");
                    pause = Duration::ZERO;
                }
                match done {
                    Step::Sent => {}
                    Step::Idle if stopping => return,
                    Step::Idle => {
                        let asked = timeout(LOOK, store.archive().asked_beyond(archiver.position()));
                        let _ = in_wait(WaitEvent::ArchiverMain, Object::NONE, asked).await;
                    }
                }
            }
            Err(error) => {
                let most = if store.archive().waiting() > 0 { PAUSE_MAX_AWAITED } else { PAUSE_MAX };
                pause = (pause * 2).clamp(PAUSE_FIRST, most);
                log(&format!("{error}; next attempt in {} s", pause.as_secs()));
                if stopping {
                    return;
                }
                rest(pause, stop).await;
            }
        }
        let behind = max_lag > 0 && archiver.lag_bytes() > max_lag;
        if behind != lags {
            lags = behind;
            let held = archiver.lag_bytes() >> 20;
            log(&if behind { format!("{held} MB behind, more than archive_max_lag") } else { "caught up".to_owned() });
        }
    }
}

/// Waits, but not for a server that stops.
async fn rest(pause: Duration, stop: &AtomicBool) {
    let mut left = pause;
    while !left.is_zero() && !stop.load(SeqCst) {
        in_wait(WaitEvent::RetryDelay, Object::NONE, sleep(LOOK.min(left))).await;
        left = left.saturating_sub(LOOK);
    }
}
