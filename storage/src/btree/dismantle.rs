//! Frees the pages of a dropped tree, which no session reads any more, piece by piece.
//!
//! # Structure
//! Levels are freed from the leaves up, and each level from its right end to its left. So after a crash all higher levels are whole,
//! and the lowest level that is left begins at its leftmost node and goes on along the right links, up to the first
//! page that is no node of this tree any more. Leaves are freed parent by parent, so that the numbers of all leaves are
//! never in memory at once; the overflow chains of a leaf are freed before the leaf.
//!
//! # Invariants
//! - BTR-16: a page is freed only if, under its latch, it is a node of this tree: pages of other trees, and pages freed
//!   before, stay as they are.
//!
//! # Not here
//! The root: space frees it together with the directory's entry, in one record.

use super::check::Copy;
use super::node::Node;
use super::ops;
use super::tree::Tree;
use super::write::{record_bytes, take_credit};
use crate::buffer::page::kind;
use crate::buffer::{Latched, Pin, ReadReason};
use crate::error::StorageError;
use crate::ids::PageId;
use crate::record::PageOp;
use crate::seams::Purpose;
use clearway_base::sync::yield_now;

/// Nodes that one record frees at most (PND-3); fewer in a small pool, where each pin counts.
const BATCH_PAGES_MAX: usize = 32;

impl Tree {
    /// Frees all nodes but the root, which it gives; none if `stop` said so in between.
    pub(crate) async fn dismantle(&self, stop: impl Fn() -> bool) -> Result<Option<PageId>, StorageError> {
        let root = self.root().await?;
        let top = self.copy_node(root).await?;
        // The leftmost node of each level that is left, from the top.
        let mut leftmost = vec![(root, top)];
        loop {
            let (_, node) = leftmost.last().expect("the root at least");
            let Some(child) = first_child(node) else { break };
            let level = node.frame.level - 1;
            match self.own_node(child, level).await? {
                Some(copy) => leftmost.push((child, copy)),
                None => break,
            }
        }
        while let Some((page, node)) = leftmost.pop() {
            let level = node.frame.level;
            if level == 1 && !self.free_children(page, &stop).await? {
                return Ok(None);
            }
            if page == root {
                if level == 0 {
                    self.free_chains(&node).await?;
                }
                continue;
            }
            if level > 0 && !self.free_from(page, level, None, &stop).await? {
                return Ok(None);
            }
        }
        Ok(Some(root))
    }

    /// Frees the leaves, parent by parent from the right; `first` is the leftmost parent.
    async fn free_children(&self, first: PageId, stop: &impl Fn() -> bool) -> Result<bool, StorageError> {
        for parent in self.nodes_from(first, 1, None).await?.into_iter().rev() {
            let Some(node) = self.own_node(parent, 1).await? else { continue };
            let Some(child) = first_child(&node) else { continue };
            if !self.free_from(child, 0, node.frame.high.as_deref(), stop).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Frees the nodes of a level from `first` on that begin below `end`, from the right; false if stopped.
    async fn free_from(
        &self,
        first: PageId,
        level: u8,
        end: Option<&[u8]>,
        stop: &impl Fn() -> bool,
    ) -> Result<bool, StorageError> {
        let batch_pages = (self.pool().frames() / 8).clamp(1, BATCH_PAGES_MAX);
        for batch in self.nodes_from(first, level, end).await?.rchunks(batch_pages) {
            if stop() {
                return Ok(false);
            }
            if level == 0 {
                for leaf in batch {
                    if let Some(node) = self.own_node(*leaf, 0).await? {
                        self.free_chains(&node).await?;
                    }
                }
            }
            self.free_nodes(batch, level).await?;
            yield_now().await;
        }
        Ok(true)
    }

    /// The nodes of a level from `first` on along the right links, as far as they are left and begin below `end`.
    async fn nodes_from(&self, first: PageId, level: u8, end: Option<&[u8]>) -> Result<Vec<PageId>, StorageError> {
        let mut nodes = Vec::new();
        let mut next = first;
        while next != PageId(0) {
            let Some(node) = self.own_node(next, level).await? else { break };
            if end.is_some_and(|end| &node.frame.low[..] >= end) {
                break;
            }
            nodes.push(next);
            next = node.frame.right;
        }
        Ok(nodes)
    }

    /// A copy of a node of this tree and level; none if the page is something else by now.
    async fn own_node(&self, page: PageId, level: u8) -> Result<Option<Copy>, StorageError> {
        loop {
            let Some(found) = self.pool().read(page) else {
                if !self.pool().fetch_if_used(page, ReadReason::Path).await? {
                    return Ok(None);
                }
                continue;
            };
            let node = Node(found.page);
            let ours = node.0.kind() == kind::NODE && node.0.tree() == self.id() && node.0.level() == level;
            if !found.validate() {
                continue;
            }
            if !ours {
                return Ok(None);
            }
            if let Some(copy) = self.try_copy(found)? {
                return Ok(Some(copy));
            }
        }
    }

    async fn free_chains(&self, leaf: &Copy) -> Result<(), StorageError> {
        for index in 0..leaf.rows.len() {
            let row = leaf.rows.get(index);
            if row.overflow {
                self.free_overflow(row.value).await?;
            }
        }
        Ok(())
    }

    /// Frees those of the pages that are nodes of this tree, in one record.
    async fn free_nodes(&self, pages: &[PageId], level: u8) -> Result<(), StorageError> {
        assert!(pages.len() <= BATCH_PAGES_MAX, "PND-3: one record frees {} pages", pages.len());
        let wal = self.pool().log().clone();
        let mut freeing = self.pool().space().reserve_free(pages.len()).await?;
        let mut pins: Vec<Pin<'_>> = Vec::with_capacity(pages.len());
        for page in pages {
            if self.pool().fetch_if_used(*page, ReadReason::Path).await? {
                pins.push(self.pool().pin(*page).await?);
            }
        }
        // Per page its own operation and at most one of space, of 16 bytes at most.
        let bytes = record_bytes(&*wal, 2 * pages.len(), 16 * pages.len());
        let mut credit = take_credit(&*wal, Purpose::Change, bytes).await?;
        let mut latches: Vec<Latched<'_>> = pins.iter().map(Pin::latch).collect();
        // BTR-16
        latches.retain(|latched| {
            let page = latched.page();
            page.kind() == kind::NODE && page.tree() == self.id() && page.level() == level
        });
        if latches.is_empty() {
            return Ok(());
        }
        let freed: Vec<PageId> = latches.iter().map(|latched| latched.page().id()).collect();
        let space = freeing.latch(&freed);
        for latched in &mut latches {
            latched.will_change();
            ops::free(latched.page());
        }
        let ops: Vec<PageOp<'_>> =
            freed.iter().map(|page| PageOp { page: *page, op: ops::FREE, payload: &[] }).collect();
        let end = self.append_structure(&mut credit, &ops, space);
        for latched in &mut latches {
            latched.changed(end);
        }
        Ok(())
    }
}

fn first_child(node: &Copy) -> Option<PageId> {
    if node.frame.level == 0 {
        return None;
    }
    let first = node.rows.iter().next()?;
    first.value.try_into().ok().map(|child| PageId(u32::from_le_bytes(child)))
}
