//! Where the rows of groups go.
//!
//! # Invariants
//! - GSK-1: once groups have been put out, what they had of the statement's memory is the sink's and no longer theirs. A row is put into the sink while its group is freed, so that what the
//!   sink has measured meanwhile is the one less the other, and what the groups have measured did not become less. (Groups of a file found the room taken by those of the file before: each file
//!   was divided again, down to files of 64 groups.)

use super::sort::Sorter;
use super::{Cx, Row};
use clearway_base::memory::{Held, Kind};
use clearway_syntax::error::Result;

/// Where rows of groups go, with what that has of the statement's memory.
pub struct Sink<'s, 'a>(pub &'s mut Sorter<'a>, pub &'s mut Held);

impl Sink<'_, '_> {
    /// Takes a row.
    pub(super) async fn put(&mut self, row: Row, cx: Cx<'_>) -> Result<()> {
        self.0.push(row, cx, self.1).await
    }

    /// GSK-1: all groups were put out, of which `held` says what they have.
    pub(super) fn take_over(&mut self, held: &mut Held) {
        held.measure();
        drop(std::mem::replace(held, Held::new(Kind::Groups)));
        self.1.measure();
        held.resume();
    }
}
