//! Typed tables: keys and values of Rust types on the same data that SQL sees.

pub use clearway_engine::embedded::{AsyncTxn, Cell, Columns, Direction, Error, Key, KeyCell, Table, Txn};
