//! The scenarios, one file each.

mod commit_scaling;
mod convoy;
mod hot_row;
mod read_only;

pub use commit_scaling::CommitScaling;
pub use convoy::Convoy;
pub use hot_row::HotRow;
pub use read_only::ReadOnly;
