//! How many pages a tree has, without a look at its leaves: one page in a hundred or so is read.

use super::descend::{Descent, Target};
use super::node::Node;
use super::tree::Tree;
use crate::buffer::ReadReason;
use crate::error::StorageError;
use clearway_base::sync::yield_now;

/// After so many inner nodes others may go on.
const BREATH_NODES: usize = 64;

impl Tree {
    /// The number of nodes, without chains of long values: what the inner nodes say of the nodes below them. A node that was split off and is not
    /// known to its parent yet is not counted. Others may change the tree meanwhile; the figure is then one of a moment in between.
    ///
    /// # Errors
    /// Those of a descent.
    pub async fn count_nodes(&self) -> Result<u64, StorageError> {
        let root = self.root().await?;
        let top = self.copy_node(root).await?.frame.level;
        let (mut nodes, mut seen) = (1, 0);
        for level in (1..=top).rev() {
            let mut from = Vec::new();
            while let Some((children, high)) = self.children_at(root, &from, level).await? {
                nodes += children;
                seen += 1;
                if seen % BREATH_NODES == 0 {
                    yield_now().await;
                }
                match high {
                    Some(high) => from = high,
                    None => break,
                }
            }
        }
        Ok(nodes)
    }

    /// How many children the node for a key has on a level, and its upper fence; none if the tree has lost that level.
    async fn children_at(
        &self,
        root: crate::ids::PageId,
        key: &[u8],
        level: u8,
    ) -> Result<Option<(u64, Option<Vec<u8>>)>, StorageError> {
        loop {
            let miss = match self.descend(root, Target::Key(key), level)? {
                Descent::Miss(miss) => miss,
                Descent::Shallow => return Ok(None),
                Descent::At(page, _) => {
                    let node = Node(page.page);
                    let (count, high) = (node.count() as u64, node.high());
                    if page.validate() {
                        return Ok(Some((count, high)));
                    }
                    continue;
                }
            };
            self.pool().fetch_missing(miss, ReadReason::Path).await?;
        }
    }
}
