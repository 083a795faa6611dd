//! Trees of rows: B-link trees whose pages split, merge and come back from disk while others read and write.
//!
//! # Structure
//! ```text
//!   tree      the handle, single reads            write    edit, undo: one leaf, one record
//!   descend   root to leaf without a latch        split    compact, strip, split, separators
//!   node      a node's bytes, for reading         edit     changes of one node
//!   image     a node built afresh                 ops      operations in the log, redo
//!   cursor    ranges, both ways, read-ahead       leaf_copy  the rows of a leaf as a scan hands them out
//!   bulk      rows in key order                      tidy     background merge and strip
//!   overflow  values longer than a leaf holds      check    the checker; print
//!   dismantle  freeing a whole tree, piece by piece   repack  leaves packed by moving rows to the left
//!   run      many edits of one leaf                  count    nodes, without a look at the leaves
//!   purge    the settled ghosts of one leaf          cuts     keys that divide a range among readers
//!   picks    rows of many keys, leaf by leaf         run_record  the log record of a run
//!   run_ghosts  ghosts of a leaf, many at once
//! ```
//! Keys are bytes, compared as bytes. A node covers `[low, high)` and links to its right neighbour; a parent's
//! entries are hints (Lehman and Yao 1981; Lanin and Shasha 1986). Reads are optimistic (Leis, Haubenschild,
//! Neumann 2019), writes latch the leaf alone.
//!
//! # Invariants
//! BTR-1, 2: `node`. 3: `image`. 4: `edit`. 5: `ops`. 6, 7, 26: `descend`. 8, 9: `write`. 10, 11: `split`. 12: `overflow`.
//! 13: `cursor`. 14: `bulk`. 15: `tidy`. 16: `dismantle`. 17: `leaf_copy`. 18, 19: `run`. 20: `purge`. 21: `cuts`. 22: `picks`. 23: `run`.
//! 24, 25: `run_record`. 27: `run`. 28: `run_ghosts`.
//!
//! # Latch order
//! Left to right within a level, bottom to top, space's pages last.
//!
//! # Crash safety
//! Every change of structure is one record: whole after redo, or not there. Rows are redone by page and undone by
//! key.
//!
//! # Not here
//! Which version of a row a snapshot sees; locks of transactions (both above storage).

mod bulk;
mod check;
mod count;
mod cursor;
mod cuts;
mod descend;
mod dismantle;
mod edit;
mod image;
mod leaf_copy;
mod node;
mod ops;
mod overflow;
mod picks;
mod print;
mod purge;
mod repack;
mod run;
mod run_ghosts;
mod run_record;
mod spares;
mod split;
mod tidy;
mod tree;
mod write;

pub use bulk::BulkLoad;
pub use check::TreeReport;
pub use cursor::{Cursor, Direction, KeyRange, NextLeaf};
pub use leaf_copy::LeafCopy;
pub use ops::{TreeRedo, root_init};
pub use overflow::{CHAIN_PAGES, VALUE_BYTES_MAX, compensate_chain};
pub use picks::MissingLeaves;
pub use purge::Purged;
pub use run::{RunEdits, RunPut, TagRoom};
pub use run_record::{LoggedChange, RunChanges, RunGhosts, RunPositions};
pub use tidy::{Tidied, TidyBudget};
pub use tree::{Edit, LeafRow, Lookup, Row, RowBuf, Tree, TryGet};
pub use write::undo_bytes;

/// The longest key, in bytes.
pub const KEY_BYTES_MAX: usize = 1024;
/// The longest key and value together that a leaf holds, in bytes: four such rows and two fences fit a page.
pub const ROW_BYTES_MAX: usize = 1400;

#[cfg(test)]
mod edit_tests;
#[cfg(test)]
mod overflow_tests;
#[cfg(test)]
mod picks_tests;
#[cfg(test)]
mod print_tests;
#[cfg(test)]
mod purge_tests;
#[cfg(test)]
mod run_tests;
#[cfg(test)]
mod separator_tests;
#[cfg(test)]
mod shape_tests;
#[cfg(test)]
mod tree_tests;
