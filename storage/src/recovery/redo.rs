//! The second pass over the log: every page operation that a page on disk has not seen is applied again.
//!
//! # Invariants
//! - REC-5: a record's operations on a page are applied, all of them, if and only if the page's LSN is below the
//!   record's end. The page's LSN becomes that end, so a crash in the middle of redo, with some pages written, changes nothing for the next one.
//! - REC-6: a page that can't be read is believed only from an operation on that makes it anew.

use crate::buffer::Pool;
use crate::error::{Corruption, StorageError};
use crate::ids::{Lsn, PageId};
use crate::mutation::{self, Mutation};
use crate::record::Redo;
use crate::wal::format::Decoded;
use std::collections::HashSet;
use std::sync::Arc;

/// The pass.
pub struct RedoPass {
    pool: Arc<Pool>,
    /// Redo by range of op codes.
    trees: Box<dyn Redo>,
    space: Box<dyn Redo>,
    /// Pages that could not be read and have not been made anew yet.
    unreadable: HashSet<PageId>,
    /// Operations looked at.
    pub seen: u64,
    /// Operations applied.
    pub applied: u64,
}

impl RedoPass {
    /// A pass over the pages of `pool`.
    pub fn new(pool: Arc<Pool>, trees: Box<dyn Redo>, space: Box<dyn Redo>) -> RedoPass {
        RedoPass { pool, trees, space, unreadable: HashSet::new(), seen: 0, applied: 0 }
    }

    /// Applies what is new in one record.
    ///
    /// # Errors
    /// Damage, a failed read or write.
    pub async fn take(&mut self, record: &Decoded<'_>) -> Result<(), StorageError> {
        let view = record.view();
        // Between records only: a page that has seen some of a record's operations already claims all of them.
        if self.pool.wants_cleaning() {
            self.pool.clean_step().await?;
        }
        // Several operations of one record may be of one page: the first decides for all.
        let mut applying: Vec<PageId> = Vec::new();
        for op in &record.ops {
            self.seen += 1;
            let redo = match op.op {
                1..=63 => &self.trees,
                64..=95 => &self.space,
                _ => return Err(self.damaged(op.page, record.lsn.start, format!("operation {}", op.op))),
            };
            let (pin, whole) = self.pool.pin_for_redo(op.page).await?;
            // REC-6
            if redo.is_init(op.op) {
                self.unreadable.remove(&op.page);
            } else if !whole || self.unreadable.contains(&op.page) {
                self.unreadable.insert(op.page);
                return Err(self.damaged(op.page, record.lsn.start, format!("{op:?} on a page that can't be read")));
            }
            let mut latched = pin.latch();
            let newer = latched.page().lsn() >= record.lsn.end && !applying.contains(&op.page);
            if newer && !mutation::active(Mutation::RedoAlways) {
                continue; // REC-5
            }
            applying.push(op.page);
            redo.redo(latched.page(), op.op, op.payload, &view)
                .map_err(|damage| damage.in_file(self.pool.space().file_name(op.page)))?;
            latched.redone(record.lsn.start, record.lsn.end);
            self.applied += 1;
        }
        Ok(())
    }

    fn damaged(&self, page: PageId, lsn: Lsn, found: String) -> StorageError {
        let file = self.pool.space().file_name(page);
        Corruption::in_page(page, lsn, "an operation that can be applied", found).in_file(file).into()
    }
}
