//! The scenarios, one file each.

mod bulk;
mod bulk_load;
mod commit_scaling;
mod context_switches;
mod convoy;
mod greedy_role;
mod hot_row;
mod no_primary_key;
mod reads;
mod rollback;
mod row_size;

use crate::LabError;
use crate::scenario::Scenario;

use bulk::Bulk;
use bulk_load::BulkLoad;
use commit_scaling::CommitScaling;
use context_switches::ContextSwitches;
use convoy::Convoy;
use greedy_role::GreedyRole;
use hot_row::HotRow;
use no_primary_key::NoPrimaryKey;
use reads::Reads;
use rollback::Rollback;
use row_size::RowSize;

/// Every scenario there is.
pub fn all() -> &'static [&'static dyn Scenario] {
    &[
        &HotRow,
        &Convoy,
        &Reads::Points,
        &Reads::Ranges,
        &Reads::Mixed,
        &NoPrimaryKey,
        &BulkLoad,
        &Bulk,
        &CommitScaling,
        &ContextSwitches,
        &Rollback,
        &RowSize,
        &GreedyRole,
    ]
}

/// A scenario by its name.
///
/// # Errors
/// [`LabError::Unknown`].
pub fn find(name: &str) -> Result<&'static dyn Scenario, LabError> {
    let known = || all().iter().map(|scenario| scenario.name()).collect::<Vec<_>>().join(", ");
    let found = all().iter().find(|scenario| scenario.name() == name).copied();
    found.ok_or_else(|| LabError::Unknown { kind: "scenario", name: name.to_owned(), known: known() })
}
