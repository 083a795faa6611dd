//! Tables, indexes and the catalog over trees and transactions; no SQL. `embedded` offers typed tables to programs.
#![forbid(unsafe_code)]

pub mod background;
mod bootstrap;
pub mod catalog;
pub mod codec;
pub mod db;
pub mod decimal;
pub mod embedded;
pub mod error;
mod exported;
pub mod kept;
pub mod large_object;
mod line;
mod open;
pub mod progress;
pub mod row_turn;
pub mod sequence;
pub mod session;
pub mod table;
#[cfg(test)]
mod testing;
mod upkeep;
pub mod value;
