//! Failures of background work: every error is recorded, and a panic stops the database.
//!
//! # Invariants
//! - BG-1: an error of background work is counted, kept as the last error, and logged unless it equals the one before it.
//! - BG-2: a panic in a background task poisons the database. Otherwise the task's work would stop unnoticed.
//! - BG-3: a pass of the upkeep, which may append to the log, and closing exclude each other, and no pass begins after closing. So nothing stands
//!   in the log behind the end that the last checkpoint names; the next opening would take that for damage.

use std::any::Any;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;

use clearway_base::sync::Mutex;
use clearway_storage::seams::BoxFuture;
use clearway_storage::wal::Wal;

type ReportError = Box<dyn Fn(&str) + Send + Sync>;

/// Errors of background work (BG-1).
pub struct BackgroundErrors {
    count: AtomicU64,
    last: Mutex<String>,
    tell: OnceLock<ReportError>,
}

impl Default for BackgroundErrors {
    fn default() -> Self {
        let last = Mutex::new("engine/background_error", String::new());
        BackgroundErrors { count: AtomicU64::new(0), last, tell: OnceLock::new() }
    }
}

impl BackgroundErrors {
    /// Has `tell` called with each new error; the first caller's stays.
    pub fn on_error(&self, tell: impl Fn(&str) + Send + Sync + 'static) {
        let _ = self.tell.set(Box::new(tell));
    }

    /// How many there were, and the last one.
    pub fn seen(&self) -> (u64, String) {
        (self.count.load(Ordering::Relaxed), self.last.lock().clone())
    }

    /// Notes what came of a piece of background work.
    pub(crate) fn note<T>(&self, what: &str, ended: Result<T, impl std::fmt::Display>) {
        let Err(error) = ended else { return };
        self.count.fetch_add(1, Ordering::Relaxed);
        let text = format!("{what} failed and is tried again: {error}");
        let is_new = {
            let mut last = self.last.lock();
            let is_new = *last != text;
            last.clone_from(&text);
            is_new
        };
        if let Some(tell) = self.tell.get().filter(|_| is_new) {
            tell(&text);
        }
    }
}

/// What a panic said.
pub fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("a panic without a text")
}

/// The task, with a panic in it poisoning the database (BG-2).
pub(crate) fn guarded(wal: Arc<Wal>, name: &'static str, mut body: BoxFuture<'static, ()>) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        let ended = poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| body.as_mut().poll(cx))) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(())) => Poll::Ready(Ok(())),
            Err(panic) => Poll::Ready(Err(panic)),
        });
        if let Err(panic) = ended.await {
            wal.poison(&format!("the background task {name} panicked: {}", panic_text(&*panic)));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    /// BG-1
    #[test]
    fn an_error_is_counted_each_time_and_told_when_it_is_new() {
        let errors = BackgroundErrors::default();
        let told = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&told);
        errors.on_error(move |_| _ = counter.fetch_add(1, Ordering::Relaxed));
        for error in ["a", "a", "b"] {
            errors.note("pruning", Err::<(), _>(error));
        }
        errors.note("pruning", Ok::<_, &str>(()));
        assert_eq!(errors.seen(), (3, "pruning failed and is tried again: b".to_owned()));
        assert_eq!(told.load(Ordering::Relaxed), 2);
    }

    /// BG-2
    #[test]
    fn a_panic_in_a_background_task_poisons_the_database() {
        let db = crate::embedded::Database::in_memory().expect("a database");
        let table = db.table::<i64, (i64,)>("t", &["id"], &["v"]).expect("a table");
        db.transact(|txn| txn.put(&table, &1, &(1,))).expect("committed");
        let wal = db.engine().transactions().store().wal().clone();
        let task: BoxFuture<'static, ()> = Box::pin(async { std::panic::resume_unwind(Box::new("planted")) });
        clearway_base::sync::block_on(guarded(wal.clone(), "pruning", task));
        let told = wal.poisoned().expect("poisoned").to_string();
        assert!(told.contains("pruning") && told.contains("planted"), "{told}");
        let refused = db.transact(|txn| txn.put(&table, &1, &(2,)));
        assert!(refused.is_err(), "the change was accepted");
        assert_eq!(db.transact(|txn| txn.get(&table, &1)).expect("reads go on"), Some((1,)));
    }
}
