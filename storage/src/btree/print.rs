//! A tree as text, for golden tests and for people: one line a node, one a row.
//!
//! ```text
//! level 1 page 1 [.. +inf) right 0
//!   "" -> 2
//!   "m" -> 3
//! level 0 page 2 [.. "m") right 3
//!   "a" = "value"
//!   "b" = "" ghost tag 7
//! ```
//! Bytes are shown as text where they are printable, as `\\xNN` elsewhere.

use super::check::Copy;
use super::tree::Tree;
use crate::error::StorageError;
use crate::ids::PageId;
use std::fmt::Write;

fn text(bytes: &[u8]) -> String {
    format!("\"{}\"", bytes.escape_ascii())
}

impl Tree {
    /// Appends the whole tree to `out`, level by level from the root, each from left to right.
    pub async fn print(&self, out: &mut String) -> Result<(), StorageError> {
        let mut first = Some(self.root().await?);
        while let Some(leftmost) = first.take() {
            let mut next = leftmost;
            while next != PageId(0) {
                let node = self.copy_node(next).await?;
                print_node(next, &node, out);
                if next == leftmost && node.frame.level > 0 {
                    first = node.rows.iter().next().and_then(|row| child(row.value));
                }
                next = node.frame.right;
            }
        }
        Ok(())
    }
}

fn child(value: &[u8]) -> Option<PageId> {
    Some(PageId(u32::from_le_bytes(value.try_into().ok()?)))
}

fn print_node(page: PageId, node: &Copy, out: &mut String) {
    let frame = &node.frame;
    let low = if frame.low.is_empty() { String::new() } else { text(&frame.low) };
    let high = frame.high.as_ref().map_or("+inf".to_owned(), |high| text(high));
    // Writing to a string does not fail.
    let _ = writeln!(out, "level {} page {page} [{low}.. {high}) right {}", frame.level, frame.right);
    for row in node.rows.iter() {
        let _ = match child(row.value).filter(|_| frame.level > 0) {
            Some(child) => write!(out, "  {} -> {child}", text(row.key)),
            None => write!(out, "  {} = {}", text(row.key), text(row.value)),
        };
        for (set, word) in [(row.ghost, " ghost"), (row.overflow, " overflow")] {
            out.push_str(if set { word } else { "" });
        }
        if !row.tag.is_settled() {
            let _ = write!(out, " tag {}", row.tag);
        }
        out.push('\n');
    }
}
