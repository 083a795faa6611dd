//! Keys that cut a range into parts of about equally many leaves, for readers that share it. One page in a hundred or so is read, no leaf.
//!
//! # Invariants
//! - BTR-21: cuts come in order, and lie inside the range. So the parts between them are disjoint, and together they are the range, whatever
//!   splits or merges meanwhile.

use super::cursor::KeyRange;
use super::descend::{Descent, Target};
use super::node::Node;
use super::tree::Tree;
use crate::buffer::ReadReason;
use crate::error::StorageError;

impl Tree {
    /// Appends keys that cut the beginning of a range, as far as one inner node knows it, into parts of at most about so many leaves. False: the
    /// range has no more cuts; else the last of them is where the next call goes on.
    ///
    /// # Errors
    /// Those of a descent.
    pub async fn cut(&self, range: &KeyRange, leaves: usize, out: &mut Vec<Vec<u8>>) -> Result<bool, StorageError> {
        let root = self.root().await?;
        loop {
            let miss = match self.descend(root, Target::Key(&range.from), 1)? {
                Descent::Miss(miss) => miss,
                // The root is a leaf.
                Descent::Shallow => return Ok(false),
                Descent::At(page, _) => {
                    let node = Node(page.page);
                    let count = node.count();
                    let parts = count.div_ceil(leaves.max(1));
                    let cuts: Vec<Vec<u8>> = (1..parts).map(|part| node.key(part * count / parts)).collect();
                    let high = node.high();
                    if !page.validate() {
                        continue;
                    }
                    let is_end = high.is_none();
                    for cut in cuts.into_iter().chain(high) {
                        if range.to.as_ref().is_some_and(|to| cut >= *to) {
                            return Ok(false);
                        }
                        if cut > range.from {
                            out.push(cut); // BTR-21
                        }
                    }
                    return Ok(!is_end);
                }
            };
            self.pool().fetch_missing(miss, ReadReason::Path).await?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tree_tests::put;
    use super::super::{Direction, KeyRange, Tree};
    use crate::ids::TxnId;
    use crate::record::TxnLog;
    use crate::testing::{Rig, now};

    fn key(n: u32) -> Vec<u8> {
        n.to_be_bytes().to_vec()
    }

    /// The parts of a range.
    async fn parts(tree: &Tree, mut range: KeyRange, leaves: usize) -> Vec<KeyRange> {
        let (mut out, mut more) = (Vec::new(), true);
        while more {
            let mut cuts = Vec::new();
            more = tree.cut(&range, leaves, &mut cuts).await.unwrap();
            for cut in cuts {
                assert!(cut > range.from && range.to.as_ref().is_none_or(|to| cut < *to), "BTR-21");
                let from = std::mem::replace(&mut range.from, cut.clone());
                out.push(KeyRange::new(from, Some(cut)));
            }
        }
        out.push(range);
        out
    }

    async fn keys(tree: &Tree, range: KeyRange) -> Vec<Vec<u8>> {
        let (mut out, mut cursor) = (Vec::new(), tree.cursor(range, Direction::Forward));
        while let Some(leaf) = cursor.next_leaf().await.unwrap() {
            out.extend(leaf.iter().map(|(key, _)| key.to_vec()));
        }
        out
    }

    #[test]
    fn the_parts_of_a_range_have_each_of_its_keys_once_though_leaves_split_meanwhile() {
        let rig = Rig::in_memory(4096);
        now(async {
            let tree = rig.tree(1).await;
            assert_eq!(parts(&tree, KeyRange::all(), 1).await, [KeyRange::all()], "a tree of one leaf");
            let mut log = TxnLog::new(TxnId(1));
            for n in 0..4_000 {
                put(&tree, &mut log, &key(2 * n), &[b'x'; 600], 0).await;
            }
            let range = KeyRange::new(key(777), Some(key(7_001)));
            for (range, leaves) in [(KeyRange::all(), 1), (KeyRange::all(), 7), (range.clone(), 3), (range, 1000)] {
                let cut = parts(&tree, range.clone(), leaves).await;
                assert!(cut.len() > 100 / leaves, "{} parts of {leaves} leaves", cut.len());
                let before = keys(&tree, range.clone()).await;
                let mut of_parts = Vec::new();
                for (at, part) in cut.into_iter().enumerate() {
                    // Leaves of later parts split, and get keys.
                    let new = 8_001 + 2 * at as u32 + 1_000 * leaves as u32;
                    put(&tree, &mut log, &key(new), &[b'y'; 900], 0).await;
                    of_parts.extend(keys(&tree, part).await);
                }
                of_parts.retain(|key| before.contains(key));
                assert_eq!(of_parts, before, "BTR-21");
            }
        });
    }
}
