//! Log, pages, trees, space and recovery: durable bytes, no SQL and no transaction locks.

#![forbid(unsafe_code)]

pub(crate) mod archive;
pub mod backup;
pub mod btree;
pub mod buffer;
pub mod check;
mod checkpoint;
pub mod error;
pub mod ids;
pub mod interleave;
mod leases;
pub mod mutation;
mod options;
mod pending;
pub mod record;
pub mod recovery;
pub mod rest;
pub mod seams;
pub mod server_file;
pub mod space;
pub mod store;
pub mod sync;
pub mod temp_files;
mod tidier;
pub mod undo;
pub mod wal;
mod zeroed;

#[cfg(any(test, feature = "interleave"))]
#[allow(missing_docs)]
pub mod testing;
