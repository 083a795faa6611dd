//! Tables: rows and their index entries.
//!
//! # Structure
//! ```text
//! shape   how rows are laid out          write   rows and entries changed together
//! scan    walks in the order of a key    row_id  numbers for rows without a key
//! ghosts  deleted rows that a crash left   pick   some columns of a row
//! statistics  how many rows there are    verify  whether the indexes agree with the rows
//! sample  how the values of columns are spread   usage  what is read and changed of them
//! batch   entries that are changed in the order of their keys   terms  what an index computes of a row
//! patch   columns of a stored row that are overwritten where they stand   entry   columns read out of an entry of an index
//! by_head   a sort of places of keys   entry_runs   those of a batch that memory does not hold
//! entry_moves   entries of plain indexes that a change of one stored row moves   entry_copies   entries that are copied out of stored rows
//! recode  a stored row under another key, without its values
//! parts   a table cut into parts that several threads read
//! stored   statistics as they are kept in the directory   use_tally  counts of one session for `usage`
//! ```

pub mod batch;
pub(crate) mod by_head;
pub mod entry;
mod entry_copies;
pub mod entry_moves;
mod entry_runs;
mod gathered;
pub mod ghosts;
mod next_ranges;
pub mod parts;
pub mod patch;
pub mod pick;
pub(crate) mod recode;
mod refs;
pub mod row_id;
pub mod sample;
pub mod scan;
pub mod shape;
pub mod sieve;
pub mod statistics;
pub mod stored;
pub mod terms;
pub mod usage;
pub(crate) mod use_tally;
pub mod verify;
pub mod write;
