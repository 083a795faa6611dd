//! The page cache: 8 KiB pages in frames, read without latches, written behind the commit path.
//!
//! # Structure
//! ```text
//!   page id -> table (one atomic word) -> frame (meta + words in the arena)
//!   pool     read, throttle                the only way to a page
//!   guard    optimistic views, latches, pins
//!   load     misses
//!   evict    clock hand, free frames
//!   cleaner  dirty pages -> double write -> data files (in_place)
//! ```
//!
//! # Life of a page
//! `read` finds the page resident and copies optimistically. A miss is an await (`fetch`), after which the caller calls
//! `read` again; `fetch` gives no page. `pin` keeps the page in its frame across awaits. `latch` (compare-and-swap on the
//! entry) lets one thread change the page, with no await until the guard is dropped. A change makes the frame dirty from
//! an LSN. The cleaner copies the page out under a short latch, waits until its `page_lsn` is durable, writes the copy
//! twice, and marks the frame clean.
//!
//! # Invariants
//! - BUF-1, BUF-2: `page`. BUF-3, BUF-4, BUF-5: `table`.
//! - BUF-6: a frame is evicted only while the evictor holds the latch of its entry, and the frame has no pin, is not
//!   dirty and is not being written.
//! - BUF-7: a dirty frame's `rec_lsn` is at or below the start of the first record that changed the page since
//!   the page was last copied out, and it is set before that record is appended. So a checkpoint that reads the end of
//!   the log first and the frames afterwards misses no record.
//! - BUF-8: a page reaches the disk only after the log is durable up to its `page_lsn`.
//! - BUF-9: a page is overwritten in place only after its copy in the double-write area is durable, and the area
//!   is reused only after the pages in place are.
//! - BUF-10: the pool never holds more frames than its budget.
//! - BUF-12, BUF-14, BUF-20: `cleaner`. BUF-11: `gate`. BUF-13, BUF-16, BUF-17: `load`. BUF-15: `double_write`. BUF-18, BUF-21: `ahead`. BUF-19: `in_place`.
//!
//! # Latch order
//! Pages are latched left to right within a level and bottom to top, space's pages last. The mutexes of the pool itself
//! (free list) are leaves: no latch is taken while one is held.
//!
//! # Crash safety
//! Redo repeats from the log the changes that were lost with memory: pages on disk are never newer than the log (BUF-8), and
//! a page that was torn in place is restored from the double-write area before redo reads it (BUF-9).
//!
//! # Not here
//! The content of pages (trees, space); the time of checkpoints (recovery).

mod ahead;
mod cleaner;
mod counters;
mod double_write;
mod evict;
mod gate;
mod guard;
mod in_place;
mod load;
mod owned;
pub mod page;
mod pool;
mod table;
mod tree_reads;

pub use counters::{Counters, CountersView};
pub(crate) use double_write::whole;
pub use double_write::{DoubleWrite, Restored, Twins};
pub use guard::{Latched, Optimistic, Pin, Seen};
pub use load::{Miss, ReadReason};
pub(crate) use load::{not_ahead, verify};
pub use owned::OwnedPin;
pub use page::{PAGE_BYTES, Page, PageMut};
pub use pool::{Pool, PoolOptions};
