//! The page cache: 8 KiB pages in frames, read without latches, written behind the commit path.
//!
//! # Structure
//! ```text
//!   page id -> table (one atomic word) -> frame (meta + words in the arena)
//!   pool     read, throttle                the only way to a page
//!   guard    optimistic views, latches, pins
//!   load     misses
//!   evict    clock hand, free frames
//!   cleaner  dirty pages -> double write -> data files
//! ```
//!
//! # Life of a page
//! `read` finds it resident and copies optimistically; a miss is an await (`fetch`) that ends with "look again",
//! never with a page in hand. `pin` keeps it in its frame across awaits; `latch` (compare-and-swap on the entry)
//! lets one thread change it, with no await until the guard goes. A change makes the frame dirty from an LSN;
//! the cleaner copies it out under a short latch, waits until its `page_lsn` is durable, writes the copy twice
//! and calls the frame clean again.
//!
//! # Invariants
//! - BUF-1, BUF-2: `page`. BUF-3, BUF-4, BUF-5: `table`.
//! - BUF-6: a frame is evicted only while its entry is latched by the evictor, and the frame has no pin, is not
//!   dirty and is not being written.
//! - BUF-7: a dirty frame's `rec_lsn` is at or below the start of the first record that changed the page since
//!   it was last copied out, and it is set before that record is appended; so a checkpoint that reads the end of
//!   the log first and the frames afterwards misses no record.
//! - BUF-8: a page reaches the disk only after the log is durable up to its `page_lsn`.
//! - BUF-9: a page is overwritten in place only after its copy in the double-write area is durable, and the area
//!   is reused only after the pages in place are.
//! - BUF-10: the pool never holds more frames than its budget.
//! - BUF-12, BUF-14: `cleaner`. BUF-13, BUF-16: `load`. BUF-15: `double_write`.
//!
//! # Latch order
//! Pages are latched left to right within a level and bottom to top, space's pages last. Locks of the pool itself
//! (free list) are leaves: nothing is latched below them.
//!
//! # Crash safety
//! Whatever is lost from memory is redone from the log: pages on disk are never newer than the log (BUF-8), and
//! a page that was torn in place is restored from the double-write area before redo looks at it (BUF-9).
//!
//! # Not here
//! What pages mean (trees, space); when to checkpoint (recovery).

mod cleaner;
mod counters;
mod double_write;
mod evict;
mod gate;
mod guard;
mod load;
mod owned;
pub mod page;
mod pool;
mod table;

pub use counters::{Counters, CountersView};
pub use double_write::{DoubleWrite, Restored};
pub use guard::{Latched, Optimistic, Pin, Seen};
pub use load::{Miss, Why};
pub(crate) use load::{not_ahead, verify};
pub use owned::OwnedPin;
pub use page::{PAGE_BYTES, Page, PageMut};
pub use pool::{Pool, PoolOptions};
