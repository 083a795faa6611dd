//! Redo, the second pass over the log: applies every page operation again that the page on disk does not contain.
//!
//! # Invariants
//! - REC-5: the operations of a record on a page are applied, all of them, if and only if the page's LSN is below the
//!   record's end. The last of these operations sets the page's LSN to that end. So a crash in the middle of redo, with some
//!   pages written, changes nothing for the next redo.
//! - REC-6: an operation on a page that can't be read is damage, and the opening fails, unless the first operation of its record on that page
//!   formats the page anew. From there on operations are applied to the page.

use crate::buffer::Pool;
use crate::error::{Corruption, StorageError};
use crate::ids::{Lsn, PageId};
use crate::mutation::{self, Mutation};
use crate::record::Redo;
use crate::wal::format::{Decoded, OpView};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The pass.
pub struct RedoPass {
    pool: Arc<Pool>,
    /// Redo by range of op codes.
    trees: Box<dyn Redo>,
    space: Box<dyn Redo>,
    unreadable: HashSet<PageId>,
    /// The LSNs of pages that were read. Only this pass changes pages, so the LSN of a page need not be read again.
    lsns: HashMap<PageId, Lsn>,
    /// Operations read.
    pub seen: u64,
    /// Operations applied.
    pub applied: u64,
}

impl RedoPass {
    /// A pass over the pages of `pool`.
    pub fn new(pool: Arc<Pool>, trees: Box<dyn Redo>, space: Box<dyn Redo>) -> RedoPass {
        RedoPass { pool, trees, space, unreadable: HashSet::new(), lsns: HashMap::new(), seen: 0, applied: 0 }
    }

    /// Applies what is new in one record.
    ///
    /// # Errors
    /// Damage, a failed read or write.
    pub async fn take(&mut self, record: &Decoded<'_>) -> Result<(), StorageError> {
        // REC-5: page by page, since the first operation on a page makes its LSN that of the record. Operations on
        // different pages do not know of each other.
        for (at, op) in record.ops.iter().enumerate() {
            if record.ops[..at].iter().any(|earlier| earlier.page == op.page) {
                continue;
            }
            let of_page = record.ops[at..].iter().filter(|other| other.page == op.page);
            if self.has_seen(op.page, record.lsn.end) {
                self.seen += of_page.count() as u64;
            } else {
                self.take_page(record, op.page, of_page.copied().collect()).await?;
            }
        }
        Ok(())
    }

    /// Whether a page that was read before contains the record that ends at `end` (REC-5).
    fn has_seen(&self, page: PageId, end: Lsn) -> bool {
        !mutation::active(Mutation::RedoAlways) && self.lsns.get(&page).is_some_and(|lsn| *lsn >= end)
    }

    /// Applies the operations of one record on one page, unless the page contains them.
    async fn take_page(
        &mut self,
        record: &Decoded<'_>,
        page: PageId,
        ops: Vec<OpView<'_>>,
    ) -> Result<(), StorageError> {
        self.seen += ops.len() as u64;
        let mut steps = Vec::with_capacity(ops.len());
        for op in &ops {
            let redo = match op.op {
                1..=63 => &self.trees,
                64..=95 => &self.space,
                _ => return Err(self.damaged(page, record.lsn.start, format!("operation {}", op.op))),
            };
            steps.push((redo, op));
        }
        if self.pool.wants_cleaning() {
            self.pool.clean_step().await?;
        }
        let (pin, whole) = self.pool.pin_for_redo(page).await?;
        // REC-6
        if steps.first().is_some_and(|(redo, op)| redo.is_init(op.op)) {
            self.unreadable.remove(&page);
        } else if !whole || self.unreadable.contains(&page) {
            self.unreadable.insert(page);
            let found = format!("{ops:?} on a page that can't be read");
            return Err(self.damaged(page, record.lsn.start, found));
        }
        let mut latched = pin.latch();
        if latched.page().lsn() >= record.lsn.end && !mutation::active(Mutation::RedoAlways) {
            self.lsns.insert(page, latched.page().lsn());
            return Ok(());
        }
        let view = record.view();
        for (redo, op) in steps {
            redo.redo(latched.page(), op.op, op.payload, &view)
                .map_err(|damage| damage.in_file(self.pool.space().file_name(page)))?;
        }
        latched.redone(record.lsn.start, record.lsn.end);
        self.applied += ops.len() as u64;
        Ok(())
    }

    fn damaged(&self, page: PageId, lsn: Lsn, found: String) -> StorageError {
        let file = self.pool.space().file_name(page);
        Corruption::in_page(page, lsn, "an operation that can be applied", found).in_file(file).into()
    }
}
