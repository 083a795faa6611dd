//! json and jsonb: documents in memory, their text, and the stored form of jsonb.
//!
//! # Structure
//! `parse` reads text and validates it as PostgreSQL does; `format` writes it; `stored` is the form of jsonb on disk; `raw` splits a json
//! text into the texts of its parts without building a document; `order` compares; `moment` is a date or time in a path.
//!
//! # Invariants
//! - JSN-1: the members of an object are sorted by the length of their names, then by bytes, and names are unique.
//! - JSN-2: a document is at most [`DEPTH_MAX`] levels deep, so that every walk over it may recurse.

mod document;
mod format;
mod moment;
mod order;
mod parse;
pub mod raw;
pub mod stored;

pub use document::{DEPTH_MAX, Json, name_order};
pub use format::{escape, pretty};
pub use moment::Moment;
pub use order::compare;
pub use parse::{is_number, parse, validate};
