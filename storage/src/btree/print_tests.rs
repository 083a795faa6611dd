//! A small tree's dump against the one in the repository, `testdata/print.txt`.
//!
//! `REWRITE=1 cargo test -p clearway-storage a_small_tree_prints` writes it anew.

use super::tree_tests::put;
use super::{Edit, Tree};
use crate::ids::{Tag, TxnId};
use crate::record::TxnLog;
use crate::testing::{Rig, now};

/// Two levels, with all that a row can be: short and empty values, bytes that are no text, tags, a ghost, a chain; a leaf
/// without rows.
async fn small(tree: &Tree) {
    let mut log = TxnLog::new(TxnId(1));
    let names =
        ["ash", "beech", "birch", "cedar", "elm", "fir", "hazel", "larch", "lime", "maple", "oak", "pine", "yew"];
    for name in names {
        put(tree, &mut log, name.as_bytes(), &[b'x'; 1200], 0).await;
    }
    for name in names {
        put(tree, &mut log, name.as_bytes(), &name.as_bytes()[..name.len() - 1], 0).await;
    }
    for name in ["lime", "maple", "oak", "pine", "yew"] {
        tree.edit(&mut log, name.as_bytes(), 0, |_| (Edit::Remove, ())).await.unwrap();
    }
    put(tree, &mut log, b"fir", b"", 7).await;
    put(tree, &mut log, b"fig\0\xff\"", b"\n\x01", 7).await;
    tree.edit(&mut log, b"elm", 0, |_| (Edit::ghost(Tag(9)), ())).await.unwrap();
    let reference = tree.write_overflow(&mut log, Tag::SETTLED, &[b'y'; 9000], &mut |_, _| {}).await.unwrap();
    let put = Edit::Put { value: (&reference[..]).into(), tag: Tag(11), ghost: false, overflow: true };
    tree.edit(&mut log, b"birch", reference.len(), |_| (put, ())).await.unwrap();
}

#[test]
#[allow(clippy::disallowed_methods, reason = "a test that writes what it expects")]
fn a_small_tree_prints_as_it_did() {
    let rig = Rig::in_memory(64);
    let mut printed = String::new();
    now(async {
        let tree = rig.tree(1).await;
        small(&tree).await;
        tree.check().await.unwrap();
        tree.print(&mut printed).await.unwrap();
    });
    if std::env::var_os("REWRITE").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/btree/testdata/print.txt");
        std::fs::write(path, &printed).unwrap();
    }
    assert_eq!(printed, include_str!("testdata/print.txt"));
}
