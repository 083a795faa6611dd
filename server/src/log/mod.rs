//! The server's log: standard error, or files that are rotated; as text, CSV or JSON, in PostgreSQL's formats.
//!
//! # Structure
//! ```text
//! sessions, background ──► queue (bounded) ──► thread `logger` ──► standard error
//!                                                             ╰─► clearway.log, .csv, .json: renamed to .1, .2, ... when full
//! ```
//!
//! # Invariants
//! - LOG-1: no session waits for the log: a line that does not fit into the queue is dropped and counted, and the next line says how many
//!   were dropped.
//! - LOG-2: a log entry can't be mistaken for two: line ends in its texts are followed by a tab, quoted or escaped, depending on the
//!   format.
//! - LOG-3: each format has at most `count` files, each with at most `bytes` and one more entry; an entry is never split between files.

mod format;

use std::collections::VecDeque;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use clearway_base::sync::{Condvar, JoinHandle, Mutex, block_on, spawn_thread};
use clearway_base::vfs::{FileKind, IoBuf, OpenHow, Vfs, VfsError, VfsFile, inline_io_here};
use clearway_base::waits::WaitEvent;
use clearway_sql::context::log_line::{Line, LogSink, Severity};

pub use format::Form;
use format::Formatter;

/// Bytes of texts that wait to be written.
const QUEUE_BYTES: usize = 4 << 20;

/// What is logged, where and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogConfig {
    /// `log_destination`.
    pub forms: Vec<Form>,
    /// `log_directory`; none: everything goes to standard error.
    pub directory: Option<PathBuf>,
    /// `log_rotation_size`.
    pub bytes: u64,
    /// `log_file_count`.
    pub count: u32,
    /// `log_line_prefix`.
    pub prefix: String,
    /// `log_min_messages`.
    pub least: Severity,
    /// `log_lock_waits`.
    pub lock_waits: bool,
    /// `log_connections`.
    pub connections: bool,
    /// `log_disconnections`.
    pub disconnections: bool,
}

impl Default for LogConfig {
    fn default() -> Self {
        LogConfig {
            forms: vec![Form::Text],
            directory: None,
            bytes: 10 << 20,
            count: 10,
            prefix: "%m [%p] ".to_owned(),
            least: Severity::Warning,
            lock_waits: true,
            connections: false,
            disconnections: false,
        }
    }
}

#[derive(Default)]
struct Queue {
    lines: VecDeque<Line>,
    bytes: usize,
    ended: bool,
}

struct Shared {
    queue: Mutex<Queue>,
    filled: Condvar,
    dropped: AtomicU64,
    config: Mutex<Arc<LogConfig>>,
}

/// The log. Clones write to the same.
#[derive(Clone)]
pub struct Log(Arc<Shared>);

impl std::fmt::Debug for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Log")
    }
}

/// The thread that writes; `stop` has it write what there is and end.
pub struct Writer {
    log: Log,
    thread: JoinHandle<()>,
}

fn size_of(line: &Line) -> usize {
    200 + line.message.len() + line.detail.len() + line.statement.len() + line.context.len() + line.hint.len()
}

impl LogSink for Log {
    fn keeps(&self, severity: Severity, lock_wait: bool) -> bool {
        Log::keeps(self, severity, lock_wait)
    }

    fn line(&self, line: Line) {
        Log::line(self, line);
    }
}

impl Log {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn start(config: LogConfig, vfs: Arc<dyn Vfs>) -> std::io::Result<(Log, Writer)> {
        let shared = Shared {
            queue: Mutex::new("server/log", Queue::default()),
            filled: Condvar::new(),
            dropped: AtomicU64::new(0),
            config: Mutex::new("server/log_config", Arc::new(config)),
        };
        let log = Log(Arc::new(shared));
        let mine = log.clone();
        let thread = spawn_thread("logger", move || {
            let _inline = inline_io_here();
            mine.run(&vfs);
        })?;
        Ok((log.clone(), Writer { log, thread }))
    }

    /// How the log is kept.
    pub fn config(&self) -> Arc<LogConfig> {
        Arc::clone(&self.0.config.lock())
    }

    /// What is logged from now on is kept so.
    pub fn configure(&self, config: LogConfig) {
        *self.0.config.lock() = Arc::new(config);
    }

    /// Lines that did not fit into the queue.
    pub fn dropped(&self) -> u64 {
        self.0.dropped.load(Relaxed)
    }

    /// A line that is about no session.
    pub fn say(&self, severity: Severity, message: impl Into<String>) {
        self.line(Line::new(severity, "00000", message));
    }

    /// Whether the configuration keeps such lines.
    fn keeps(&self, severity: Severity, lock_wait: bool) -> bool {
        let config = self.config();
        let rank = |severity| match severity {
            // PostgreSQL's order for the server's log: LOG stands above ERROR.
            Severity::Warning => 0,
            Severity::Error => 1,
            Severity::Log => 2,
            Severity::Fatal => 3,
        };
        rank(severity) >= rank(config.least) && (config.lock_waits || !lock_wait)
    }

    /// Hands a line to the thread, if it matters enough (LOG-1).
    pub fn line(&self, line: Line) {
        if !self.keeps(line.severity, line.lock_wait) {
            return;
        }
        let size = size_of(&line);
        {
            let mut queue = self.0.queue.lock();
            if queue.bytes + size > QUEUE_BYTES {
                self.0.dropped.fetch_add(1, Relaxed);
                return;
            }
            queue.bytes += size;
            queue.lines.push_back(line);
        }
        self.0.filled.notify_one();
    }

    fn run(&self, vfs: &Arc<dyn Vfs>) {
        let mut formatter = Formatter::default();
        let mut files: Vec<File> = Vec::new();
        let mut told_dropped = 0;
        loop {
            let (mut lines, ended) = self.next();
            let dropped = self.dropped();
            if dropped != told_dropped {
                let text = format!("the log was behind: {} lines were dropped", dropped - told_dropped);
                lines.push_back(Line::new(Severity::Warning, "01000", text));
                told_dropped = dropped;
            }
            let config = self.config();
            files.retain(|file| config.directory.as_deref() == file.path.parent());
            for form in &config.forms {
                let mut bytes = Vec::new();
                for line in &lines {
                    formatter.write(*form, &config.prefix, line, &mut bytes);
                    // LOG-3: what is collected goes out before a file could grow by more than one entry beyond its size.
                    if bytes.len() as u64 >= config.bytes.min(1 << 20) {
                        put(vfs, &config, &mut files, *form, &mut bytes);
                    }
                }
                put(vfs, &config, &mut files, *form, &mut bytes);
            }
            if ended && lines.is_empty() {
                return;
            }
        }
    }

    /// What there is to write; waits for some.
    fn next(&self) -> (VecDeque<Line>, bool) {
        let mut queue = self.0.queue.lock();
        while queue.lines.is_empty() && !queue.ended {
            queue = self.0.filled.wait(queue, WaitEvent::LoggerMain);
        }
        queue.bytes = 0;
        (std::mem::take(&mut queue.lines), queue.ended)
    }
}

/// Writes; a log that can't be written has no place to report that.
fn put(vfs: &Arc<dyn Vfs>, config: &LogConfig, files: &mut Vec<File>, form: Form, bytes: &mut Vec<u8>) {
    if bytes.is_empty() {
        return;
    }
    let written = match &config.directory {
        Some(directory) => {
            let at = match files.iter().position(|file| file.form == form) {
                Some(at) => at,
                None => {
                    files.push(File { form, path: directory.join(form.file()), open: None });
                    files.len() - 1
                }
            };
            block_on(files[at].append(vfs, config, bytes)).is_ok()
        }
        None => false,
    };
    if !written {
        _ = std::io::stderr().write_all(bytes);
    }
    bytes.clear();
}

impl Writer {
    /// Writes what there is, and ends.
    pub fn stop(self) {
        self.log.0.queue.lock().ended = true;
        self.log.0.filled.notify_one();
        // A panic there can't be logged: this is the log.
        let _ = self.thread.join();
    }
}

/// A file of the log.
struct File {
    form: Form,
    path: PathBuf,
    open: Option<(Arc<dyn VfsFile>, u64)>,
}

impl File {
    async fn append(&mut self, vfs: &Arc<dyn Vfs>, config: &LogConfig, bytes: &[u8]) -> Result<(), VfsError> {
        if self.open.is_none() {
            if let Some(directory) = self.path.parent()
                && vfs.list(directory).await.is_err()
            {
                vfs.create_dir(directory).await?;
            }
            let file = vfs.open(&self.path, OpenHow::create(FileKind::Log)).await?;
            let len = file.len().await?;
            self.open = Some((file, len));
        }
        if self.open.as_ref().is_some_and(|(_, len)| *len > 0 && *len + bytes.len() as u64 > config.bytes) {
            self.open = None;
            self.rotate(vfs, config.count).await;
            let file = vfs.open(&self.path, OpenHow::create(FileKind::Log)).await?;
            self.open = Some((file, 0));
        }
        let Some((file, len)) = &mut self.open else { return Ok(()) };
        file.write_at(*len, IoBuf::from_slice(bytes)).await?;
        *len += bytes.len() as u64;
        Ok(())
    }

    /// The file becomes `.1`, that `.2`, and so on; the last goes (LOG-3).
    async fn rotate(&self, vfs: &Arc<dyn Vfs>, count: u32) {
        let numbered = |n: u32| self.path.with_file_name(format!("{}.{n}", self.form.file()));
        // Names that are not there are no errors.
        if count <= 1 {
            let _ = vfs.remove(&self.path).await;
            return;
        }
        for n in (1..count - 1).rev() {
            let _ = vfs.rename(&numbered(n), &numbered(n + 1)).await;
        }
        let _ = vfs.rename(&self.path, &numbered(1)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearway_base::vfs::MemVfs;

    fn read(vfs: &Arc<dyn Vfs>, name: &str) -> String {
        let attempt = async {
            let file = vfs.open(&PathBuf::from("/log").join(name), OpenHow::read_only(FileKind::Log)).await?;
            let len = file.len().await? as usize;
            file.read_exact_at(0, IoBuf::zeroed(len), len).await
        };
        block_on(attempt).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }

    /// LOG-3
    #[test]
    fn files_are_as_large_and_as_many_as_they_may_be_and_no_entry_is_cut() {
        let vfs: Arc<dyn Vfs> = Arc::new(MemVfs::new());
        let config = LogConfig {
            directory: Some("/log".into()),
            forms: vec![Form::Text, Form::Csv, Form::Json],
            bytes: 1_000,
            count: 3,
            prefix: String::new(),
            ..LogConfig::default()
        };
        let (log, writer) = Log::start(config, vfs.clone()).expect("a thread");
        for n in 0..100 {
            log.say(Severity::Log, format!("line {n:03} {}\nsecond", "x".repeat(50)));
            // So that they do not come at once.
            while !log.0.queue.lock().lines.is_empty() {
                std::thread::yield_now();
            }
        }
        writer.stop();
        let names: Vec<String> =
            block_on(vfs.list(&PathBuf::from("/log"))).expect("a directory").into_iter().map(|e| e.name).collect();
        assert_eq!(names.len(), 9, "{names:?}");
        for form in ["clearway.log", "clearway.csv", "clearway.json"] {
            for suffix in ["", ".1", ".2"] {
                let text = read(&vfs, &format!("{form}{suffix}"));
                assert!(
                    text.len() <= 1_000 && text.ends_with('\n') && text.contains("line 0"),
                    "{form}{suffix}: {text}"
                );
            }
        }
        assert!(read(&vfs, "clearway.log").contains("line 099"));
        assert!(read(&vfs, "clearway.log").contains("\n\tsecond\n"), "LOG-2");
    }

    /// LOG-1
    #[test]
    fn a_flood_is_dropped_and_counted() {
        let vfs: Arc<dyn Vfs> = Arc::new(MemVfs::new());
        let config = LogConfig { directory: Some("/log".into()), bytes: 100 << 20, ..LogConfig::default() };
        let (log, writer) = Log::start(config, vfs.clone()).expect("a thread");
        let held = log.0.queue.lock();
        let flood = {
            let log = log.clone();
            spawn_thread("flood", move || {
                let text = "x".repeat(1 << 20);
                (0..20).for_each(|_| log.say(Severity::Log, text.clone()));
            })
        };
        drop(held);
        assert!(flood.is_ok_and(|flood| flood.join().is_ok()));
        writer.stop();
        let text = read(&vfs, "clearway.log");
        let written = text.matches(" LOG:  x").count() as u64;
        assert_eq!(written + log.dropped(), 20);
        assert_eq!(text.contains("lines were dropped"), log.dropped() > 0);
    }
}
