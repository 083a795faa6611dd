//! Large objects: sequences of bytes without a name, each known by a number in its database, written and read in pieces.
//!
//! # Structure
//! Two tables of the system hold the objects of all databases. They are relations of the catalog like any other, without a database and
//! outside of the schemas, so that log, undo, locks, snapshots, checks and backups know them as tables.
//! ```text
//! pg_largeobject_metadata   (database, oid)          -> owner, access list, comment
//! pg_largeobject            (database, loid, pageno) -> up to 2048 bytes
//! ```
//! `tables` makes and finds them, `metadata` has the first, `pages` the second.
//!
//! # Life of an object
//! `create_large_object` -> `write_large_object`, `truncate_large_object`, `read_large_object` -> `forget_large_object`, then `drop_pages` until no
//! page is left. The first creation in a directory makes the tables, in a transaction of its own: a directory of an older version has none until
//! then, and none is needed to read it.
//!
//! # Invariants
//! - LOB-1: an object exists for a reader whose view shows its row of metadata. What it holds is what the same view shows of its pages: an
//!   open snapshot gives the same bytes always.
//! - LOB-2: a transaction that changes pages holds `RowKeyShare` on the object's row of metadata, or has deleted that row. Deleting it needs `RowUpdate`,
//!   which waits for all holders of `RowKeyShare`. So no page outlives its object, and none is written to an object that is going.
//! - LOB-3: a page is changed after its row was locked (`RowNoKeyUpdate`) and read in its newest version. So of two writers of different bytes of
//!   one page neither undoes the other's, whatever snapshot each has.
//! - LOB-4: a page has at most `PAGE_BYTES` bytes. What a page does not have, and a page that is not there, reads as zeros, up to the end of the
//!   last page, which is the end of the object.
//!
//! # Not here
//! Privileges, descriptors and their positions: the layer above.

mod metadata;
mod pages;
mod tables;

pub use metadata::LargeObject;
pub use pages::{OBJECT_BYTES_MAX, PAGE_BYTES};
pub use tables::{METADATA_TABLE, PAGES_TABLE};
