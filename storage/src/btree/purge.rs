//! Purge: takes the ghosts that every snapshot has left behind out of a leaf, all of them under one latch and with one record.
//!
//! # Invariants
//! - BTR-20: no ghost that was settled when a purge began is left in the leaf of its key when it ends. So a caller that knows of several such
//!   ghosts passes over those below the leaf's end.
//!
//! A ghost's overflow chain is not freed here: the transaction that made the ghost does that.

use super::edit::{Strip, remove_all};
use super::image::node_of;
use super::ops;
use super::tree::Tree;
use super::write::{Attempt, record_bytes, take_credit};
use crate::buffer::page::PAGE_BYTES;
use crate::error::StorageError;
use crate::ids::PageId;
use crate::record::{PageOp, Record};
use crate::seams::{Credit, Purpose, Versions};

/// Room in the log for the numbers of all rows that a leaf may have.
const ROWS_BYTES: usize = 16 + 2 * PAGE_BYTES / 4;

/// What a purge came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Purged {
    /// Ghosts that were taken out.
    pub count: usize,
    /// Where the leaf ends in which the purge looked; none: at the end of the tree.
    pub end: Option<Vec<u8>>,
}

impl Purged {
    /// Whether a key that is not below the one of the purge belongs to the same leaf (BTR-20).
    pub fn reaches(&self, key: &[u8]) -> bool {
        self.end.as_ref().is_none_or(|end| *key < end[..])
    }
}

impl Tree {
    /// Takes all settled ghosts out of the leaf that owns `key`; judged under the latch.
    ///
    /// # Errors
    /// Those of a descent; poisoned.
    pub async fn purge(&self, key: &[u8], versions: &dyn Versions) -> Result<Purged, StorageError> {
        let root = self.root().await?;
        let wal = self.pool().log().clone();
        let bytes = record_bytes(&*wal, 1, ROWS_BYTES.max(8 + super::KEY_BYTES_MAX));
        loop {
            let mut credit = take_credit(&*wal, Purpose::Change, bytes).await?;
            let attempt = self.try_purge(root, &mut credit, key, versions)?;
            drop(credit);
            match attempt {
                Ok(purged) => return Ok(purged),
                Err(obstacle) => self.clear(obstacle, key, 0, Purpose::Change).await?,
            }
        }
    }

    fn try_purge(&self, root: PageId, credit: &mut Credit<'_>, key: &[u8], versions: &dyn Versions) -> Attempt<Purged> {
        let mut leaf = match self.latch_leaf(root, key)? {
            Ok(leaf) => leaf,
            Err(obstacle) => return Ok(Err(obstacle)),
        };
        let strip = Strip::ghosts(leaf.page(), |tag| versions.is_settled(tag));
        let node = node_of(leaf.page());
        let purged = Purged { count: strip.purge.len(), end: node.high() };
        let Some(first) = strip.purge.first() else { return Ok(Ok(purged)) };
        let mut args = versions.horizon().0.to_le_bytes().to_vec();
        let op = match purged.count {
            1 => {
                args.extend_from_slice(&node.key(usize::from(*first)));
                ops::PURGE
            }
            _ => {
                strip.encode(&mut args);
                ops::STRIP
            }
        };
        leaf.will_change();
        // Redo of a strip builds the node anew: the same rows, which may lie in another way (BTR-3). Here that would cost more than all the rest.
        remove_all(leaf.page(), &strip.purge);
        self.note_sparse(&leaf);
        let op = PageOp { page: leaf.page().id(), op, payload: &[&args] };
        let range = self.pool().log().append(credit, &Record::structure(&[op]));
        leaf.changed(range.end);
        Ok(Ok(purged))
    }
}
