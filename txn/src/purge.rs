//! Purge: takes the rows whose deletion every snapshot sees out of their trees.
//!
//! # Invariants
//! - PUR-1: a row leaves the list of rows to purge only when its leaf was purged after it came onto the list, or when that failed. If a pass
//!   ends early, the rows that it has taken off the list come back to it.

use clearway_base::sync::yield_now;

use crate::error::TxnError;
use crate::mvcc::book::VersionBook;
use crate::mvcc::prune::Purgeable;
use crate::transactions::Transactions;

/// Rows that are taken off the list together. They are sorted without a pause in between: this takes less than a millisecond.
const AT_ONCE: usize = 8192;

/// Rows that are purged together, those of one leaf side by side.
struct Batch<'b> {
    book: &'b VersionBook,
    rows: std::iter::Peekable<std::vec::IntoIter<Purgeable>>,
}

impl<'b> Batch<'b> {
    fn of(book: &'b VersionBook, count: usize) -> Batch<'b> {
        let mut rows = book.take_purgeable(count);
        // Stable, because the rows of one statement often come as ascending runs.
        rows.sort_by(|a, b| (a.tree, &a.key).cmp(&(b.tree, &b.key)));
        Batch { book, rows: rows.into_iter().peekable() }
    }
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        // PUR-1
        self.book.purge_again(&mut self.rows);
    }
}

impl Transactions {
    /// Purges the rows that are on the list now; how many they are.
    ///
    /// # Errors
    /// From the trees.
    pub(crate) async fn purge(&self) -> Result<usize, TxnError> {
        let book = self.book();
        let (due, mut done) = (book.purgeable(), 0);
        while done < due {
            let mut batch = Batch::of(book, AT_ONCE.min(due - done));
            let Some(mut row) = batch.rows.next() else { break };
            loop {
                done += 1;
                let purged = self.store().tree(row.tree).purge(&row.key, &**book).await?;
                // All rows of the batch were settled before, so none of them is left in this leaf (BTR-20).
                while batch.rows.next_if(|next| next.tree == row.tree && purged.reaches(&next.key)).is_some() {
                    done += 1;
                }
                let Some(next) = batch.rows.next() else { break };
                row = next;
                yield_now().await;
            }
        }
        Ok(done)
    }
}
