//! Many keys looked up leaf by leaf, against single look-ups.

use super::tree_tests::{contents, put};
use super::{LeafCopy, Tree};
use crate::ids::TxnId;
use crate::record::TxnLog;
use crate::testing::{Rig, now};
use clearway_base::for_each_seed;
use clearway_base::testkit::Rng;
use std::collections::BTreeMap;

/// A key; one in seven is long, so that leaves have prefixes of several lengths.
fn key(n: u64) -> Vec<u8> {
    let mut key = n.to_be_bytes()[5..].to_vec();
    if n.is_multiple_of(7) {
        key.resize(3 + (n % 60) as usize, b'k');
    }
    key
}

type Rows = Vec<(Vec<u8>, Vec<u8>)>;

/// The rows of these keys, and how many keys were answered at a time.
fn picked(tree: &Tree, keys: &[Vec<u8>]) -> (Rows, Vec<usize>) {
    let (mut rows, mut counts, mut copy, mut done) = (Vec::new(), Vec::new(), LeafCopy::default(), 0);
    while done < keys.len() {
        let count = tree.try_pick(|n| keys.get(done + n).map(|key| &key[..]), &mut copy).expect("pages in memory");
        assert!(count > 0 && count <= keys.len() - done, "{count} of {} keys", keys.len() - done);
        assert!(tree.still(&copy.seen()), "nothing changes meanwhile");
        rows.extend(copy.iter().map(|(key, row)| (key.to_vec(), row.value.to_vec())));
        counts.push(count);
        done += count;
    }
    (rows, counts)
}

#[test]
fn picks_give_what_single_look_ups_give() {
    // BTR-22
    for_each_seed!(4, against_look_ups);
}

fn against_look_ups(seed: u64) {
    let rig = Rig::in_memory(4096);
    now(async move {
        let (tree, mut rng) = (rig.tree(1).await, Rng::new(seed));
        let mut log = TxnLog::new(TxnId(1));
        assert_eq!(picked(&tree, &[key(1), key(5)]), (Vec::new(), vec![2]), "an empty tree");
        for n in 0..6_000 {
            if rng.below(4) > 0 {
                put(&tree, &mut log, &key(n), &vec![n as u8; 20 + (n % 90) as usize], 0).await;
            }
        }
        for share in [1, 3, 40, 900, 4_000] {
            let mut keys: Vec<Vec<u8>> = (0..6_500).filter(|_| rng.below(share) == 0).map(key).collect();
            keys.push(Vec::new());
            keys.push(vec![u8::MAX; 30]);
            keys.sort_unstable();
            let expected: BTreeMap<_, _> = contents(&tree, keys.iter()).await;
            let (rows, counts) = picked(&tree, &keys);
            assert!(rows.is_sorted_by(|a, b| a.0 < b.0), "one in {share}: the keys are in order");
            assert_eq!(rows.into_iter().collect::<BTreeMap<_, _>>(), expected, "one in {share}");
            assert!(share > 3 || counts.len() < keys.len() / 4, "{} picks for {} keys", counts.len(), keys.len());
        }
        let again = vec![key(7_000), key(7_000)];
        put(&tree, &mut log, &again[0], b"again", 0).await;
        let row = (again[0].clone(), b"again".to_vec());
        assert_eq!(picked(&tree, &again).0, [row.clone(), row], "a key that is given twice");
    });
}
