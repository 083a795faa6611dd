//! A server's life: directory, database, sockets, signals, end.
//!
//! # Life of a server
//! open and recover -> a statement answers -> bind -> listen, and say so -> SIGTERM or SIGINT -> no new sessions, those that are there
//! end -> checkpoint, close.
//!
//! # Invariants
//! - RUN-1: the line with the psql command is written after a statement has been answered and the sockets are bound, and only then.

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use clearway_base::sync::{block_on, spawn_thread};
use clearway_base::vfs::{FileKind, IoBuf, MemVfs, OpenHow, RealVfs, Vfs, VfsFile, inline_io_here};
use clearway_base::waits::{Object, WaitEvent, in_wait};
use clearway_base::{breath, memory};
use clearway_engine::db::{Db, DbOptions};
use clearway_sql::context::log_line::Severity;
use clearway_sql::session::Backends;
use clearway_storage::buffer::PoolOptions;
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio_rustls::TlsAcceptor;

use crate::archive::Archive;
use crate::config::{Config, ConfigError};
use crate::database::Database;
use crate::listen::{self, Bound};
use crate::log::Log;
use crate::observe::{self, Progress, Sampler, log_recovery};
use crate::server::{ListenError, Server};
use crate::tls::{self, TlsError};

/// How long sessions may take to end when the server stops.
const PATIENCE: Duration = Duration::from_secs(10);
/// A worker's stack, of which a thread takes what it touches; deep statements get more (`base/src/stack.rs`).
const STACK_BYTES: usize = 8 << 20;
/// Threads for file operations that would block a worker.
const IO_THREADS: usize = 4;

/// Why a server does not run, or did not end well.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The directory can't be made or read.
    #[error("{place}: {error}")]
    Directory {
        /// The path.
        place: String,
        /// The reason.
        error: String,
    },
    /// The database does not open.
    #[error("could not open {place}: {error}")]
    Open {
        /// The directory.
        place: String,
        /// The reason; for a directory in use it names the holder's process.
        error: String,
    },
    /// The database opened, and answers nothing.
    #[error("the database does not answer: {0}")]
    Silent(String),
    /// Sockets.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// Settings.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// TLS.
    #[error("TLS: {0}")]
    Tls(#[from] TlsError),
    /// The operating system gives no threads or signals.
    #[error("{0}")]
    System(#[from] std::io::Error),
    /// The database did not close; the next start recovers.
    #[error("the database was not closed cleanly: {0}")]
    Close(String),
}

/// Runs a server until it is told to stop. What a user should see goes to `say`, line by line.
///
/// # Errors
/// See [`RunError`].
pub fn run(config: &Config, say: &mut (dyn FnMut(&str) + Send)) -> Result<(), RunError> {
    raise_file_limit();
    let workers = match config.workers {
        0 => std::thread::available_parallelism().map_or(2, usize::from).max(2),
        workers => workers,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(workers)
        .thread_name("worker")
        .thread_stack_size(STACK_BYTES)
        .enable_io()
        .build()?;
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    // What computes for long leaves its worker to another thread, so that the others' messages are read and answered meanwhile.
    breath::install(|work| tokio::task::block_in_place(work), processors.min(workers));
    let vfs: Arc<dyn Vfs> =
        if config.memory { Arc::new(MemVfs::new()) } else { Arc::new(RealVfs::pooled(IO_THREADS)?) };
    // The log is on disk also where nothing else is.
    let log_vfs: Arc<dyn Vfs> = if config.memory { Arc::new(RealVfs::pooled(1)?) } else { Arc::clone(&vfs) };
    let (log, writer) = Log::start(config.log.clone(), log_vfs)?;
    let ran = run_logged(config, &vfs, runtime, &log, say);
    writer.stop();
    ran?;
    say("stopped");
    Ok(())
}

fn run_logged(
    config: &Config,
    vfs: &Arc<dyn Vfs>,
    runtime: Runtime,
    log: &Log,
    say: &mut (dyn FnMut(&str) + Send),
) -> Result<(), RunError> {
    let db = open(config, vfs, log)?;
    let archive = Archive::start(config, vfs, &db, log.clone())?;
    let backends = Arc::new(Backends::default());
    observe::restore(&db, &backends);
    let sampler = Sampler::start(&db, &backends, log)?;
    let served = runtime.block_on(serve(config, vfs, &db, (log, &backends), say));
    sampler.stop();
    // No session is left when the database is closed.
    runtime.shutdown_timeout(Duration::from_secs(1));
    if let Some(archive) = archive {
        archive.stop();
    }
    log.say(Severity::Log, "shutting down");
    let closed = block_on(db.close()).map_err(|error| RunError::Close(error.to_string()));
    observe::log_last_checkpoint(&db, log);
    log.say(Severity::Log, "database system is shut down");
    served.and(closed)
}

fn open(config: &Config, vfs: &Arc<dyn Vfs>, log: &Log) -> Result<Arc<Db>, RunError> {
    let place = config.data.display().to_string();
    let fail = |error: String| RunError::Directory { place: place.clone(), error };
    if let Err(error) = block_on(vfs.list(&config.data)) {
        let made = match error.kind() {
            std::io::ErrorKind::NotFound => block_on(vfs.create_dir(&config.data)),
            _ => Err(error),
        };
        made.map_err(|error| fail(error.to_string()))?;
    }
    let mut options = DbOptions::new(Arc::clone(vfs), &config.data);
    options.store.pool = PoolOptions::for_budget(config.cache_bytes);
    options.store = options.store.recover_within(config.recovery_target);
    options.undo_bytes = config.undo_bytes;
    options.keep = !config.memory;
    options.store.archive_bytes = config.archive.target.as_ref().map(|_| config.archive.limit_bytes());
    let mut seed = [0; 8];
    getrandom::fill(&mut seed).map_err(|_| ListenError::NoRandom)?;
    options.store.database_seed = u64::from_le_bytes(seed);
    let progress = Progress::start(log)?;
    let opened = block_on(Db::open(options, |name, body| {
        let started = spawn_thread(name, move || {
            // What commits wait for is not handed to yet another thread; the others may have many operations under way.
            let _inline = (name == "flusher").then(inline_io_here);
            block_on(body);
        });
        assert!(started.is_ok(), "no thread for {name}: {started:?}");
    }));
    progress.stop();
    let db = opened.map_err(|error| RunError::Open { place, error: error.to_string() })?;
    let min_ns = u64::try_from(config.lock_history_min.as_nanos()).unwrap_or(u64::MAX);
    db.transactions().locks().history().remember_from(min_ns);
    log_recovery(&db, log);
    let (of_errors, of_alarms) = (log.clone(), log.clone());
    db.background_errors().on_error(move |error| of_errors.say(Severity::Log, error));
    db.transactions().book().on_alarm(move |alarm| of_alarms.say(Severity::Log, alarm.to_string()));
    Ok(db)
}

async fn serve(
    config: &Config,
    vfs: &Arc<dyn Vfs>,
    db: &Arc<Db>,
    (log, backends): (&Log, &Arc<Backends>),
    say: &mut (dyn FnMut(&str) + Send),
) -> Result<(), RunError> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let tls = acceptor(config, vfs).await?;
    let encrypted = tls.is_some();
    let of_sessions = log.clone();
    backends.log_to(move |line| of_sessions.line(line));
    let (server_bytes, statement_bytes) = config.memory(memory::granted_bytes());
    memory::set_server_limit(server_bytes);
    let mut settings = vec![("statement_memory".to_owned(), format!("{}kB", statement_bytes >> 10))];
    settings.extend(config.settings.iter().cloned());
    let database = Database::new(Arc::clone(db), settings);
    database.answers().await.map_err(|error| RunError::Silent(error.to_string()))?;
    let server = Server::new(config.listen.clone(), database, Arc::clone(backends), tls, Some(log.clone()))?;
    remove_stale_socket(config, vfs).await;
    let bound = server.bind()?;
    let mut sockets: Vec<_> = bound.unix_path.iter().cloned().collect();
    announce(config, &bound, (encrypted, server.options.password_on_loopback), say); // RUN-1
    server.serve(bound);
    if !config.memory {
        // Programs that open the directory with the library find this server there; without it they are told its process number.
        match listen::bind_in(&**vfs, &config.data).await {
            Ok(bound) => {
                sockets.extend(bound.unix_path.clone());
                server.serve(bound);
            }
            Err(error) => log.say(Severity::Warning, error.to_string()),
        }
    }
    log.say(Severity::Log, "database system is ready to accept connections");
    let stop = std::future::poll_fn(|cx| {
        if terminate.poll_recv(cx).is_ready() {
            std::task::Poll::Ready(())
        } else {
            interrupt.poll_recv(cx).map(|_| ())
        }
    });
    in_wait(WaitEvent::WorkerMain, Object::NONE, stop).await;
    say("stopping: sessions end, then a checkpoint is taken");
    if !server.stop(PATIENCE).await {
        say("some sessions did not end in time; what they left open is rolled back at the next start");
    }
    for path in sockets {
        let _ = vfs.remove(&path).await;
    }
    Ok(())
}

async fn acceptor(config: &Config, vfs: &Arc<dyn Vfs>) -> Result<Option<TlsAcceptor>, RunError> {
    let Some((certificate, key)) = config.tls()? else { return Ok(None) };
    let mode = vfs.mode(key).await.map_err(|error| RunError::System(std::io::Error::other(error.to_string())))?;
    if mode & 0o077 != 0 {
        return Err(TlsError::Readable { key: key.display().to_string(), mode }.into());
    }
    let (certificate, key) = (read(vfs, certificate).await?, read(vfs, key).await?);
    Ok(Some(tls::acceptor(&certificate, &key)?))
}

/// A whole small file.
///
/// # Errors
/// It can't be read.
pub async fn read(vfs: &Arc<dyn Vfs>, path: &Path) -> Result<Vec<u8>, RunError> {
    let fail = |error: String| RunError::Directory { place: path.display().to_string(), error };
    let attempt = async {
        let file: Arc<dyn VfsFile> = vfs.open(path, OpenHow::read_only(FileKind::Other)).await?;
        let length = usize::try_from(file.len().await?).unwrap_or(usize::MAX);
        file.read_exact_at(0, IoBuf::zeroed(length), length).await
    };
    attempt.await.map(|bytes| bytes.to_vec()).map_err(|error: clearway_base::vfs::VfsError| fail(error.to_string()))
}

/// Removes the socket that a server left which died: one at which nobody answers. What holds bytes is no socket and stays, and so does a
/// socket that is in use; binding then fails and names it.
async fn remove_stale_socket(config: &Config, vfs: &Arc<dyn Vfs>) {
    let (Some(directory), Some(first)) = (&config.listen.unix_directory, config.listen.addresses.first()) else {
        return;
    };
    let name = format!(".s.PGSQL.{}", first.port());
    let there = vfs.list(directory).await.unwrap_or_default();
    let path = directory.join(&name);
    if there.iter().any(|entry| entry.name == name && entry.size == 0)
        && let Err(error) = std::os::unix::net::UnixStream::connect(&path)
        && error.kind() == std::io::ErrorKind::ConnectionRefused
    {
        let _ = vfs.remove(&path).await;
    }
}

fn announce(
    config: &Config,
    bound: &Bound,
    (encrypted, asks_for_passwords): (bool, bool),
    say: &mut (dyn FnMut(&str) + Send),
) {
    let kept =
        if config.memory { "in memory: all is lost at the end".to_owned() } else { config.data.display().to_string() };
    say(&format!("clearway {} serves {kept}", env!("CARGO_PKG_VERSION")));
    if !asks_for_passwords {
        say(
            "WARNING: anybody on this machine may connect as any role WITHOUT A PASSWORD (password_on_loopback = on changes that)",
        );
    }
    let beyond = bound.addresses.iter().any(|address| !address.ip().to_canonical().is_loopback());
    if beyond && !encrypted {
        say("WARNING: connections beyond this machine are NOT ENCRYPTED (waived by allow_plaintext_beyond_loopback)");
    }
    for address in &bound.addresses {
        say(&format!("listening at {address}"));
    }
    if let Some(path) = &bound.unix_path {
        say(&format!("listening at {}", path.display()));
    }
    if let Some(address) = bound.addresses.first() {
        let host = match address.ip() {
            ip if ip.is_unspecified() => "127.0.0.1".to_owned(),
            ip => ip.to_string(),
        };
        say(&format!("connect with: psql -h {host} -p {} -U postgres postgres", address.port()));
    }
    let _ = std::io::stdout().flush();
}

/// Thousands of connections need more descriptors than most shells allow a program; the hard limit is the system's.
fn raise_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    }
}
