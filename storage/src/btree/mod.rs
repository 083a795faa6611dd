//! Trees of rows: B-link trees whose pages split, merge and come back from disk while others read and write.

mod edit;
mod image;
mod node;

#[cfg(test)]
mod edit_tests;
