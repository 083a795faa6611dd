//! Tuples as bytes: the key, which sorts, and the rest of the row.

pub mod key;
pub mod row;

#[cfg(test)]
mod tests;
