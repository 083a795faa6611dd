//! The checker: walks a whole tree and reports damage of its structure. It is separate from the code that it checks: it
//! reads nodes by their keys and fences alone.
//!
//! # Structure
//! Level by level from the root, each from its leftmost node along the right links. Every node is checked against
//! BTR-1 and its left neighbour; every child pointer must be to a node of the level below that begins where the
//! pointer says; nodes that no parent lists are counted (unfinished splits).
//!
//! # Errors
//! Any violation is a `Corruption` with page, LSN, what was expected, what was found. The checker is meant for a tree at
//! rest; a tree that changes meanwhile may be reported as damaged.

use super::image::{Frame, Rows};
use super::node::Node;
use super::tree::Tree;
use crate::buffer::page::kind;
use crate::buffer::{Optimistic, ReadReason};
use crate::error::{Corruption, StorageError};
use crate::ids::{Lsn, PageId};
use std::collections::BTreeSet;

/// What a check counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TreeReport {
    /// Levels; 1 for a single leaf.
    pub levels: usize,
    /// Leaves.
    pub leaves: usize,
    /// Inner nodes.
    pub inner: usize,
    /// Rows, ghosts included.
    pub rows: u64,
    /// Ghosts.
    pub ghosts: u64,
    /// Rows with a tag.
    pub tagged: u64,
    /// Rows whose value is in an overflow chain.
    pub overflow_rows: u64,
    /// Pages of overflow chains.
    pub overflow_pages: usize,
    /// Nodes that their parent does not know yet.
    pub pending_separators: usize,
    /// Bytes in use in leaves, headers included.
    pub leaf_bytes_used: u64,
    /// All pages of the tree.
    pub pages: BTreeSet<PageId>,
}

/// A node copied out whole.
pub(super) struct Copy {
    pub(super) frame: Frame,
    pub(super) rows: Rows,
    lsn: Lsn,
    used: usize,
}

impl Tree {
    /// Walks the whole tree.
    pub async fn check(&self) -> Result<TreeReport, StorageError> {
        let mut report = TreeReport::default();
        let root = self.root().await?;
        let top = self.copy_node(root).await?;
        let levels = usize::from(top.frame.level) + 1;
        report.levels = levels;
        // Children that the level above points to: their fence and number.
        let mut known: Vec<(Vec<u8>, PageId)> = vec![(Vec::new(), root)];
        for level in (0..levels as u8).rev() {
            known = self.check_level(level, known, &mut report).await?;
        }
        Ok(report)
    }

    async fn check_level(
        &self,
        level: u8,
        known: Vec<(Vec<u8>, PageId)>,
        report: &mut TreeReport,
    ) -> Result<Vec<(Vec<u8>, PageId)>, StorageError> {
        let mut children = Vec::new();
        let mut known = known.into_iter().peekable();
        let mut next = known.peek().map(|(_, page)| *page);
        let mut low = Some(Vec::new());
        while let Some(page) = next {
            let node = self.copy_node(page).await?;
            let wrong = |expected: String, found: String| self.damage(page, node.lsn, expected, found);
            if !report.pages.insert(page) {
                return Err(wrong("a page reached once".into(), "reached twice".into()));
            }
            if node.frame.level != level {
                return Err(wrong(format!("level {level}"), format!("level {}", node.frame.level)));
            }
            if low.as_ref() != Some(&node.frame.low) {
                return Err(wrong(format!("low fence {low:02x?}"), format!("{:02x?}", node.frame.low)));
            }
            match known.peek() {
                Some((fence, child)) if *child == page && *fence == node.frame.low => {
                    known.next();
                }
                Some((fence, child)) if *fence <= node.frame.low => {
                    return Err(wrong(format!("{child:?} from {fence:02x?}, as the parent says"), format!("{page:?}")));
                }
                _ => report.pending_separators += 1,
            }
            self.check_node(page, &node)?;
            self.count(&node, report, &mut children).await?;
            low = node.frame.high.clone();
            next = (node.frame.right != PageId(0)).then_some(node.frame.right);
            if low.is_none() != next.is_none() {
                return Err(wrong(
                    "a right neighbour exactly where there is an upper fence".into(),
                    format!("{next:?}"),
                ));
            }
        }
        match known.next() {
            None => Ok(children),
            Some((fence, child)) => {
                let expected = format!("a node from {fence:02x?} on level {level}");
                Err(self.damage(child, Lsn::ZERO, expected, "none on the way along the right links".into()))
            }
        }
    }

    /// BTR-1.
    fn check_node(&self, page: PageId, node: &Copy) -> Result<(), StorageError> {
        let wrong = |expected: &str, found: String| self.damage(page, node.lsn, expected.into(), found);
        let mut last: Option<&[u8]> = None;
        for index in 0..node.rows.len() {
            let key = node.rows.get(index).key;
            if last.is_some_and(|last| last >= key) {
                return Err(wrong("keys in ascending order", format!("{key:02x?} after {last:02x?}")));
            }
            let inside = *node.frame.low <= *key && node.frame.high.as_ref().is_none_or(|high| *key < **high);
            if !inside {
                return Err(wrong("keys within the fences", format!("{key:02x?} in {:02x?}", node.frame)));
            }
            last = Some(key);
        }
        if node.frame.level == 0 {
            return Ok(());
        }
        match node.rows.iter().next() {
            Some(first) if first.key == node.frame.low => {}
            first => {
                return Err(wrong("a first child at the low fence", format!("{first:02x?}")));
            }
        }
        match node.rows.iter().find(|row| row.value.len() != 4) {
            Some(row) => Err(wrong("children's numbers of four bytes", format!("{row:02x?}"))),
            None => Ok(()),
        }
    }

    async fn count(
        &self,
        node: &Copy,
        report: &mut TreeReport,
        children: &mut Vec<(Vec<u8>, PageId)>,
    ) -> Result<(), StorageError> {
        if node.frame.level > 0 {
            report.inner += 1;
            for row in node.rows.iter() {
                let child = u32::from_le_bytes(row.value.try_into().expect("checked: four bytes"));
                children.push((row.key.to_vec(), PageId(child)));
            }
            return Ok(());
        }
        report.leaves += 1;
        report.leaf_bytes_used += node.used as u64;
        for index in 0..node.rows.len() {
            let row = node.rows.get(index);
            report.rows += 1;
            report.ghosts += u64::from(row.ghost);
            report.tagged += u64::from(!row.tag.is_settled());
            if row.overflow {
                report.overflow_rows += 1;
                let pages = self.overflow_pages(row.value).await?;
                report.overflow_pages += pages.len();
                for page in pages {
                    if !report.pages.insert(page) {
                        let found = "a page reached twice".to_owned();
                        return Err(self.damage(page, node.lsn, "a chain of its own".into(), found));
                    }
                }
            }
        }
        Ok(())
    }

    fn damage(&self, page: PageId, lsn: Lsn, expected: String, found: String) -> StorageError {
        Corruption::in_page(page, lsn, expected, found).in_file(self.pool().space().file_name(page)).into()
    }

    /// A consistent copy of a live node of this tree.
    pub(super) async fn copy_node(&self, page: PageId) -> Result<Copy, StorageError> {
        loop {
            let Some(found) = self.pool().read(page) else {
                self.pool().fetch(page, ReadReason::Path).await?;
                continue;
            };
            if let Some(copy) = self.try_copy(found)? {
                return Ok(copy);
            }
        }
    }

    pub(super) fn try_copy(&self, page: Optimistic<'_>) -> Result<Option<Copy>, StorageError> {
        let node = Node(page.page);
        let (is_node, tree) = (node.0.kind() == kind::NODE, node.0.tree());
        let copy = Copy {
            frame: Frame::of(node),
            rows: Rows::of(node, 0, node.count()),
            lsn: node.0.lsn(),
            used: node.used_bytes(),
        };
        if !page.validate() {
            return Ok(None);
        }
        if !is_node || tree != self.id() || copy.frame.id != page.id() {
            let found = format!("kind {}, {tree:?}", page.page.kind());
            return Err(self.damage(page.id(), copy.lsn, format!("a live node of {:?}", self.id()), found));
        }
        Ok(Some(copy))
    }
}
