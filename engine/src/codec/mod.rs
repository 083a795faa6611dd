//! Tuples as bytes: the key, whose bytes sort as its values do, and the rest of the row.

pub mod cells;
pub mod forms;
pub mod key;
pub mod places;
pub mod row;

#[cfg(test)]
mod tests;
