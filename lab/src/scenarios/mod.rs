//! The scenarios, one file each.

mod bulk_load;
mod commit_scaling;
mod context_switches;
mod convoy;
mod hot_row;
mod no_primary_key;
mod reads;
mod rollback;
mod row_size;

pub use bulk_load::BulkLoad;
pub use commit_scaling::CommitScaling;
pub use context_switches::ContextSwitches;
pub use convoy::Convoy;
pub use hot_row::HotRow;
pub use no_primary_key::NoPrimaryKey;
pub use reads::Reads;
pub use rollback::Rollback;
pub use row_size::RowSize;
