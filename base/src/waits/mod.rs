//! Wait events, clocks, session blocks and totals: where elapsed time goes.
//!
//! # Structure
//! ```text
//! wait_events.txt --build.rs--> event      the enum, rows for views, the documentation page, legends
//! tsc, kernel ----------------> clock      now_ns: calibrated counter, system clock, or a simulation's clock
//! Wait, in_wait (wait) -------> session    the block that shows a wait while it lasts, totals per session
//!                       \-----> totals     per thread, merged when read
//!                        \----> books      one future's elapsed time, divided
//! with_session --------------> processor  elapsed and processor time of each session
//! ```
//!
//! # Invariants
//! - WAIT-1: code that blocks a thread does so inside a [`Wait`]; code that suspends a task does so inside [`in_wait`].
//! - WAIT-2: a thread that holds a latch waits for nothing but a latch or a mutex; both wrappers assert it.
//!
//! # Not here
//! The waiting itself: `sync` has the queues and latches, `vfs` the files, the server its sockets.

mod books;
pub mod clock;
mod context;
mod event;
mod kernel;
mod processor;
mod session;
mod totals;
mod tsc;
mod used;
mod wait;

pub use books::{Books, InBooks, WaitShare, books, books_of};
pub use clock::{VirtualClock, VirtualTime, now_ns, wall_us, wall_us_at};
pub use event::{WaitClass, WaitEvent, WaitEventRow, markdown};
pub use processor::{Measure, SessionTime, account, add_helper, read, read_short, settle};
pub use session::{CurrentWait, Object, SessionStats, SessionTotals, ended_time, restore_time, session, sessions};
pub use totals::{
    EventTotals, HISTOGRAM_BUCKETS, Instrument, bucket_of, instrument, restore_totals, set_instrument, totals,
};
pub use wait::{
    InWait, Wait, WithSession, current_session, current_session_id, in_wait, set_thread_session, with_session,
};
