//! Threads that perform file operations for tasks.
//!
//! # Structure
//! One queue, first in first out, and a fixed number of threads. A task's operation is a closure that
//! owns its buffer; it ends by waking the task. Operations beyond the number of threads wait in the
//! queue, so hundreds may be pending at once.
//!
//! # Not here
//! Priorities: a task that must not wait behind others performs its own I/O (`inline_io_here`).

use crate::waits::{Object, Wait, WaitEvent};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

type Job = Box<dyn FnOnce() + Send>;

/// A pool of I/O threads. Dropping it performs what is queued, then ends the threads.
pub struct IoPool {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared {
    queue: Mutex<Queue>,
    work: Condvar,
}

struct Queue {
    jobs: VecDeque<Job>,
    closing: bool,
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        // No job runs under the mutex, so a panic can't leave the queue half changed.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl IoPool {
    /// Starts `threads` threads (at least one).
    ///
    /// # Errors
    /// The system's, if a thread can't be started.
    pub fn start(threads: usize) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            queue: Mutex::new(Queue { jobs: VecDeque::new(), closing: false }),
            work: Condvar::new(),
        });
        let mut pool = IoPool { shared, threads: Vec::new() };
        for number in 0..threads.max(1) {
            let shared = pool.shared.clone();
            let name = format!("io-{number}");
            let thread = std::thread::Builder::new().name(name).spawn(move || serve(&shared))?;
            pool.threads.push(thread);
        }
        Ok(pool)
    }

    /// Queues a job.
    pub(super) fn submit(&self, job: Job) {
        self.shared.queue().jobs.push_back(job);
        self.shared.work.notify_one();
    }
}

fn serve(shared: &Shared) {
    let mut queue = shared.queue();
    loop {
        if let Some(job) = queue.jobs.pop_front() {
            drop(queue);
            // A job that panics drops its completer, which tells the waiter; the thread lives on.
            let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(job));
            queue = shared.queue();
        } else if queue.closing {
            return;
        } else {
            let _idle = Wait::begin(WaitEvent::WorkerMain, Object::NONE);
            queue = shared.work.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for IoPool {
    fn drop(&mut self) {
        self.shared.queue().closing = true;
        self.shared.work.notify_all();
        let this_thread = std::thread::current().id();
        for thread in self.threads.drain(..) {
            // The last handle may be dropped by a job on one of the threads itself.
            if thread.thread().id() != this_thread {
                let _ = thread.join();
            }
        }
    }
}
