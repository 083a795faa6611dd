//! A server's life: directory, database, sockets, signals, end.
//!
//! # Life of a server
//! open and recover -> answer a statement -> bind -> listen, and say so -> SIGHUP: read the settings again -> SIGTERM or SIGINT: begin no
//! more sessions, end those that are open -> checkpoint, close.
//!
//! # Invariants
//! - RUN-1: the line with the psql command is written, and the service manager is told, only after a statement has been answered and the
//!   sockets are bound.
//! - RUN-2: a server that keeps its data in memory reads and writes all other files (log, settings, certificates) on disk like every
//!   server.

use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use clearway_base::sync::{ask_for_slice, block_on, spawn_thread};
use clearway_base::vfs::{FileKind, IoBuf, MemVfs, OpenHow, RealVfs, Vfs, VfsError, inline_io_here};
use clearway_base::waits::{Object, WaitEvent, in_wait};
use clearway_base::{breath, memory};
use clearway_engine::db::{Db, DbOptions};
use clearway_sql::context::configuration::Configuration as _;
use clearway_sql::context::log_line::Severity;
use clearway_sql::session::Backends;
use clearway_storage::buffer::PoolOptions;
use clearway_storage::store::redo_threads;
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::access::Rules;
use crate::archive::Archive;
use crate::config::{Config, ConfigError};
use crate::configuration::{Configured, session_defaults};
use crate::database::Database;
use crate::door::{self, Door, DoorError};
use crate::listen::{self, Bound};
use crate::log::Log;
use crate::notify;
use crate::observe::{self, Progress, Sampler, log_recovery};
use crate::server::{ListenError, Server};

/// How long sessions may take to end when the server stops.
const PATIENCE: Duration = Duration::from_secs(10);
/// A worker's stack, of which a thread takes what it touches; deep statements get more (`base/src/stack.rs`).
const STACK_BYTES: usize = 8 << 20;
/// The time for which a worker keeps its processor while other threads want it, in nanoseconds (docs/measured/catalog-reads.md).
const SLICE_NS: u64 = 100_000;
/// Threads for file operations that would block a worker.
const IO_THREADS: usize = 4;

/// Takes what a user should see, a line at a time.
pub type Say<'a> = dyn FnMut(&str) + Send + 'a;
/// Takes the addresses at which the server listens.
pub type Ready<'a> = dyn FnMut(&[SocketAddr]) + Send + 'a;

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
    /// Certificates, or the access file.
    #[error(transparent)]
    Door(#[from] DoorError),
    /// `huge_pages = on`, and the system never gives them.
    #[error(
        "huge_pages = on: the system gives no huge pages; /sys/kernel/mm/transparent_hugepage/enabled has to say \"madvise\" or \"always\""
    )]
    NoHugePages,
    /// The files of settings.
    #[error("{0}")]
    Settings(String),
    /// The operating system gives no threads or signals.
    #[error("{0}")]
    System(#[from] std::io::Error),
    /// The database did not close; the next start recovers.
    #[error("the database was not closed cleanly: {0}")]
    Close(String),
}

/// Runs a server until it is told to stop. What a user should see goes to `say`, line by line; `ready` is told the addresses when the server
/// listens.
///
/// # Errors
/// See [`RunError`].
pub fn run(config: &Config, say: &mut Say<'_>, ready: &mut Ready<'_>) -> Result<(), RunError> {
    raise_file_limit();
    let workers = match config.workers {
        0 => std::thread::available_parallelism().map_or(2, usize::from).max(2),
        workers => workers,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(workers)
        .thread_name("worker")
        .thread_stack_size(STACK_BYTES)
        // Where the system does not hear of it, it divides the processors as it does anyway.
        .on_thread_start(|| _ = ask_for_slice(SLICE_NS))
        .enable_io()
        .build()?;
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    // What computes for long leaves its worker to another thread, so that the others' messages are read and answered meanwhile.
    breath::install(|work| tokio::task::block_in_place(work), processors.min(workers));
    let vfs: Arc<dyn Vfs> =
        if config.memory { Arc::new(MemVfs::new()) } else { Arc::new(RealVfs::pooled(IO_THREADS)?) };
    // RUN-2
    let files: Arc<dyn Vfs> = if config.memory { Arc::new(RealVfs::pooled(1)?) } else { Arc::clone(&vfs) };
    let (log, writer) = Log::start(config.log.clone(), Arc::clone(&files))?;
    let ran = run_logged(config, Places { vfs: &vfs, files: &files }, runtime, &log, (say, ready));
    writer.stop();
    ran?;
    say("stopped");
    Ok(())
}

/// Where files are (RUN-2).
#[derive(Clone, Copy)]
struct Places<'a> {
    /// Those of the data directory.
    vfs: &'a Arc<dyn Vfs>,
    /// All others: the log, the files of settings and rules, certificates, sockets.
    files: &'a Arc<dyn Vfs>,
}

fn run_logged(
    config: &Config,
    places: Places<'_>,
    runtime: Runtime,
    log: &Log,
    told: (&mut Say<'_>, &mut Ready<'_>),
) -> Result<(), RunError> {
    config.archive.check()?;
    // From here on: a SIGHUP that comes during recovery is obeyed when the server serves, instead of killing it.
    let hangup = {
        let _of_this_runtime = runtime.enter();
        signal(SignalKind::hangup())?
    };
    let Places { vfs, .. } = places;
    let db = open(config, vfs, log)?;
    let archive = Archive::start(config, vfs, &db, log.clone())?;
    let backends = Arc::new(Backends::default());
    let _ = backends.directory.set(config.data.display().to_string());
    observe::restore(&db, &backends);
    backends.recorded.run(config.recorders);
    let sampler = Sampler::start(&db, &backends, log)?;
    let served = runtime.block_on(serve(config, places, &db, (log, &backends), hangup, told));
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
    options.store.pool.huge_pages &= config.huge_pages != memory::HugePages::Off;
    if config.huge_pages == memory::HugePages::On && !memory::are_huge_pages_given() {
        return Err(RunError::NoHugePages);
    }
    options.store = options.store.recover_within(config.recovery_target);
    options.store.redo_threads = redo_threads();
    options.undo_bytes = config.undo_bytes;
    options.keep = !config.memory;
    options.store.archive_bytes = config.archive.target.as_ref().map(|_| config.archive.limit_bytes());
    let mut seed = [0; 8];
    getrandom::fill(&mut seed).map_err(|_| ListenError::NoRandom)?;
    options.store.database_seed = u64::from_le_bytes(seed);
    let progress = Progress::start(log, Arc::clone(&options.store.progress))?;
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

/// What a signal asks of a server.
enum SignalRequest {
    /// SIGTERM, SIGINT.
    Stop,
    /// SIGHUP.
    Reload,
}

/// The file in the data directory that makes the salts of roles that do not exist the same after a restart.
const MOCK_KEY: &str = "login.key";

/// The key of an earlier run, or a new one, which is kept. It proves nothing and opens nothing: it keeps from clients which roles exist.
async fn mock_key(config: &Config, vfs: &Arc<dyn Vfs>) -> Result<[u8; 32], RunError> {
    let path = config.data.join(MOCK_KEY);
    if !config.memory
        && let Ok(Some(kept)) = door::read(vfs, &path, 32).await
        && let Ok(key) = kept.try_into()
    {
        return Ok(key);
    }
    let mut key = [0; 32];
    getrandom::fill(&mut key).map_err(|_| ListenError::NoRandom)?;
    if !config.memory {
        let write = async {
            let file = vfs.open(&path, OpenHow::create(FileKind::Control)).await?;
            file.set_len(0).await?;
            file.write_at(0, IoBuf::from_slice(&key)).await?;
            file.sync_data().await?;
            vfs.sync_dir(&config.data).await
        };
        // On a full disk it is one of this run alone.
        let _kept: Result<(), VfsError> = write.await;
    }
    Ok(key)
}

async fn serve(
    config: &Config,
    Places { vfs, files }: Places<'_>,
    db: &Arc<Db>,
    (log, backends): (&Log, &Arc<Backends>),
    mut hangup: Signal,
    (say, ready): (&mut Say<'_>, &mut Ready<'_>),
) -> Result<(), RunError> {
    let configured = Configured::new(config, Arc::clone(files)).await.map_err(RunError::Settings)?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let (door, mut errors) = Door::read(config, files, None).await;
    if let Some(error) = errors.pop() {
        return Err(error.into());
    }
    let encrypted = door.tls.is_some();
    let (rules, mock_key) = (Arc::clone(&door.rules), mock_key(config, vfs).await?);
    let of_sessions = log.clone();
    backends.log_to(of_sessions);
    let (defaults, server_bytes) = session_defaults(config);
    memory::set_server_limit(server_bytes);
    backends.defaults.change(defaults);
    backends.configured_by(configured.clone());
    let database = Database::new(Arc::clone(db));
    database.answers().await.map_err(|error| RunError::Silent(error.to_string()))?;
    let server = Server::new(config.listen.clone(), database, Arc::clone(backends), Some(door), Some(log.clone()))?;
    server.keep_mock_key(mock_key);
    configured.attach(&server, db, log);
    remove_stale_socket(config, files).await;
    let bound = server.bind()?;
    let mut sockets: Vec<_> = bound.unix_path.iter().cloned().collect();
    // Programs that open the directory with the library find this server there; without it they are told its process number.
    let within = if config.memory { None } else { Some(listen::bind_in(&**vfs, &config.data).await) };
    announce(config, &bound, (encrypted, &rules), say); // RUN-1
    let addresses = bound.addresses.clone();
    server.serve(bound);
    ready(&addresses);
    tell_manager(notify::READY, log); // RUN-1
    match within {
        Some(Ok(bound)) => {
            sockets.extend(bound.unix_path.clone());
            server.serve(bound);
        }
        Some(Err(error)) => log.say(Severity::Warning, error.to_string()),
        None => {}
    }
    log.say(Severity::Log, "database system is ready to accept connections");
    loop {
        let told = std::future::poll_fn(|cx| {
            if terminate.poll_recv(cx).is_ready() || interrupt.poll_recv(cx).is_ready() {
                return Poll::Ready(SignalRequest::Stop);
            }
            hangup.poll_recv(cx).map(|_| SignalRequest::Reload)
        });
        match in_wait(WaitEvent::WorkerMain, Object::NONE, told).await {
            SignalRequest::Stop => break,
            // What could not be put in force stands in the log.
            SignalRequest::Reload => _ = configured.reload().await,
        }
    }
    say("stopping: sessions end, then a checkpoint is taken");
    tell_manager(notify::STOPPING, log);
    if !server.stop(PATIENCE).await {
        say("some sessions did not end in time; what they left open is rolled back at the next start");
    }
    for path in sockets {
        let _ = files.remove(&path).await;
    }
    Ok(())
}

/// A service manager that does not hear of it is no reason to stop.
fn tell_manager(state: &str, log: &Log) {
    if let Err(error) = notify::tell(state) {
        log.say(Severity::Warning, format!("the service manager was not told: {error}"));
    }
}

/// Removes the socket that a server left which died: one at which no process answers. What holds bytes is no socket and stays, and so does a
/// socket that is in use; binding then fails and names it.
async fn remove_stale_socket(config: &Config, files: &Arc<dyn Vfs>) {
    let (Some(directory), Some(first)) = (&config.listen.unix_directory, config.listen.addresses.first()) else {
        return;
    };
    let name = format!(".s.PGSQL.{}", first.port());
    let there = files.list(directory).await.unwrap_or_default();
    let path = directory.join(&name);
    if there.iter().any(|entry| entry.name == name && entry.size == 0)
        && let Err(error) = std::os::unix::net::UnixStream::connect(&path)
        && error.kind() == std::io::ErrorKind::ConnectionRefused
    {
        let _ = files.remove(&path).await;
    }
}

fn announce(config: &Config, bound: &Bound, (encrypted, rules): (bool, &Rules), say: &mut (dyn FnMut(&str) + Send)) {
    let kept =
        if config.memory { "in memory: all is lost at the end".to_owned() } else { config.data.display().to_string() };
    say(&format!("clearway {} serves {kept}", env!("CARGO_PKG_VERSION")));
    if rules.trust_this_machine() {
        let change = if config.access_file.is_some() {
            "the access file says so"
        } else {
            "password_on_loopback = on changes that"
        };
        say(&format!("WARNING: anybody on this machine may connect as any role WITHOUT A PASSWORD ({change})"));
    }
    if let Some(rule) = rules.trust_beyond() {
        say(&format!(
            "WARNING: line {} of the access file trusts OTHER MACHINES without a password: {}",
            rule.line,
            rule.text()
        ));
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
