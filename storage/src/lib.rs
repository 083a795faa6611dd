//! Log, pages, trees, space and recovery: durable bytes, no SQL and no transaction locks.

pub mod ids;
