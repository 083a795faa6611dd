//! Nodes against a map: random rows with shared prefixes, tags, ghosts and long values.

use super::edit::{Full, Strip, put, remove, separator, truncate};
use super::image::{Frame, Image, NodeRow, Rows, node_of};
use super::write::{fits, fits_anew};
use crate::buffer::page::{PAGE_BYTES, PAGE_WORDS, PageMut, kind};
use crate::ids::{PageId, Tag, TreeId};
use clearway_base::for_each_seed;
use clearway_base::testkit::Rng;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;

type Model = BTreeMap<Vec<u8>, (Vec<u8>, u64, bool)>;

fn words() -> Box<[AtomicU64; PAGE_WORDS]> {
    let words: Box<[AtomicU64]> = (0..PAGE_WORDS).map(|_| AtomicU64::new(0)).collect();
    words.try_into().unwrap_or_else(|_| panic!("a page has {PAGE_WORDS} words"))
}

fn empty_leaf(page: &PageMut<'_>, low: &[u8], high: Option<&[u8]>) {
    let frame = Frame {
        id: PageId(9),
        tree: TreeId(4),
        level: 0,
        flags: 0,
        right: PageId(0),
        low: low.to_vec(),
        high: high.map(<[u8]>::to_vec),
        shared_tag: Tag::SETTLED,
    };
    let mut image = Image::new();
    assert!(image.build(&frame, &Rows::default(), 0, 0));
    image.store(page);
}

fn agree(page: &PageMut<'_>, model: &Model) {
    let node = node_of(page);
    let rows = Rows::of(node, 0, node.count());
    let found: Vec<_> = rows.iter().map(|row| (row.key.to_vec(), (row.value.to_vec(), row.tag.0, row.ghost))).collect();
    let expected: Vec<_> = model.iter().map(|(key, row)| (key.clone(), row.clone())).collect();
    assert_eq!(found, expected);
    for (index, key) in model.keys().enumerate() {
        assert_eq!(node.search(key), Ok(index));
        if index % 16 != model.len() % 16 {
            continue;
        }
        let shorter = [&key[..key.len() / 2], &key[..key.len().saturating_sub(1)]];
        for other in shorter.into_iter().filter(|_| index < 16) {
            let below = model.keys().take_while(|key| &key[..] < other).count();
            let expected = if model.contains_key(other) { Ok(below) } else { Err(below) };
            assert_eq!(node.search(other), expected, "{other:?}");
        }
        let next = [&key[..], b"\0"].concat();
        for low in [0, index / 2, index] {
            assert_eq!((node.search_from(key, low), rows.search_from(key, low)), (Ok(index), Ok(index)));
            let found = node.search(&next);
            assert_eq!((node.search_from(&next, low), rows.search_from(&next, low)), (found, found), "from {low}");
        }
    }
    assert!(node.used_bytes() <= PAGE_BYTES);
}

fn random_key(rng: &mut Rng, style: u64) -> Vec<u8> {
    match style {
        0 => (1_000_000 + rng.below(400)).to_be_bytes().to_vec(),
        1 => {
            let len = rng.index(5);
            (0..len).map(|_| *rng.pick(b"\0ab\xff")).collect()
        }
        // As in the first inner node of a level: an empty key, and others whose heads are the same.
        2 if rng.chance(1, 20) => Vec::new(),
        2 => {
            let len = rng.index(20);
            [1, 0x80].into_iter().chain((0..len).map(|_| *rng.pick(b"\0\0\x01\xff"))).collect()
        }
        _ => {
            let mut key = b"customer/".to_vec();
            let len = rng.index(300);
            key.extend((0..len).map(|_| b'a' + rng.below(2) as u8));
            key
        }
    }
}

#[test]
fn a_leaf_agrees_with_a_map() {
    for_each_seed!(60, |seed| {
        let mut rng = Rng::new(seed);
        let words = words();
        let page = PageMut::new(&words);
        page.format(PageId(9), TreeId(4), 0, kind::NODE);
        empty_leaf(&page, b"", None);
        let mut model = Model::new();
        let style = rng.below(4);
        for _ in 0..600 {
            let key = random_key(&mut rng, style);
            match rng.below(10) {
                0..7 => {
                    let longest = if rng.chance(1, 10) { 700 } else { 20 };
                    let mut value = vec![0; rng.index(longest)];
                    rng.fill(&mut value);
                    let (tag, ghost) = (rng.below(4), rng.chance(1, 5));
                    let row = NodeRow { key: &key, value: &value, tag: Tag(tag), ghost, overflow: false };
                    if put(&page, &row) == Ok(()) {
                        model.insert(key, (value, tag, ghost));
                    } else {
                        assert!(node_of(&page).used_bytes() > PAGE_BYTES / 2, "BTR-4");
                    }
                }
                7..9 => assert_eq!(remove(&page, &key), model.remove(&key).is_some()),
                _ => {
                    let settled = rng.below(4);
                    let strip = Strip::find(&page, |tag| tag.0 <= settled);
                    let mut encoded = Vec::new();
                    strip.encode(&mut encoded);
                    assert_eq!(Strip::decode(&encoded, model.len()), Some(strip));
                    let strip = Strip::decode(&encoded, model.len()).expect("just compared");
                    strip.apply(&page).expect("a strip only shrinks");
                    model.retain(|_, row| !(row.2 && row.1 <= settled));
                    for row in model.values_mut() {
                        row.1 = if row.1 <= settled { 0 } else { row.1 };
                    }
                }
            }
            agree(&page, &model);
        }
    });
}

/// BTR-3, BTR-9: also where a row only grows, on pages that are nearly full, and on one of the same rows that lie in another
/// way, as redo may find them.
#[test]
fn what_is_said_to_fit_fits_however_the_rows_lie() {
    let (mut replaced, mut anew) = (0, 0);
    for_each_seed!(40, |seed| {
        let mut rng = Rng::new(seed);
        let (words, other_words) = (words(), words());
        let (page, other) = (PageMut::new(&words), PageMut::new(&other_words));
        page.format(PageId(9), TreeId(4), 0, kind::NODE);
        empty_leaf(&page, b"", None);
        let style = rng.below(3);
        for _ in 0..1500 {
            let mut key = random_key(&mut rng, style);
            let count = node_of(&page).count();
            if count > 0 && rng.chance(1, 2) {
                key = node_of(&page).key(rng.index(count));
            }
            let longest = if rng.chance(1, 4) { 400 } else { 24 };
            let max = rng.index(longest);
            if rng.chance(1, 16) {
                remove(&page, &key);
                continue;
            }
            let fits_as_it_is = fits(node_of(&page), &key, max);
            if !fits_as_it_is && fits_anew(node_of(&page), &key, max) {
                anew += 1;
            } else if !fits_as_it_is {
                // As after a compaction, which may change the prefix.
                let row = NodeRow { key: &key, value: &[8; 5], tag: Tag(1), ghost: false, overflow: false };
                let _ = put(&page, &row);
                continue;
            }
            let (tag, value) = (Tag(rng.below(3)), vec![7; if rng.chance(1, 2) { max } else { rng.index(max + 1) }]);
            let row = NodeRow { key: &key, value: &value, tag, ghost: false, overflow: false };
            let node = node_of(&page);
            let mut image = Image::new();
            assert!(image.build(&Frame::of(node), &Rows::of(node, 0, node.count()), 0, node.count()));
            other.format(PageId(9), TreeId(4), 0, kind::NODE);
            image.store(&other);
            replaced += usize::from(node.search(&key).is_ok() && node.gap() < value.len());
            put(&page, &row).expect("it was said to fit");
            put(&other, &row).expect("it was said to fit the same rows");
        }
    });
    assert!(replaced > 100, "{replaced} rows were replaced in pages without room for another");
    assert!(anew > 50, "{anew} rows ended the prefix of a node");
}

/// BTR-3: each key grows by what the prefix loses.
#[test]
fn a_key_that_ends_a_long_prefix_is_said_to_fit_only_where_it_does() {
    let (mut fit, mut full) = (0, 0);
    for count in (1..400).step_by(7) {
        for shared in [0, 1, 20, 59] {
            let words = words();
            let page = PageMut::new(&words);
            page.format(PageId(9), TreeId(4), 0, kind::NODE);
            empty_leaf(&page, b"", None);
            let row = |key: &[u8], n| {
                put(&page, &NodeRow { key, value: &[1; 9], tag: Tag(n), ghost: false, overflow: false })
            };
            let stored =
                (0..count).take_while(|n| row(&[&[7; 60][..], &(*n as u16).to_be_bytes()].concat(), *n).is_ok());
            let stored = stored.count();
            let key = [&[7; 60][..shared], &[9; 3]].concat();
            if !fits(node_of(&page), &key, 9) && fits_anew(node_of(&page), &key, 9) {
                fit += 1;
                row(&key, 1 << 40).expect("it was said to fit");
                assert_eq!(node_of(&page).count(), stored + 1);
            } else {
                full += 1;
            }
        }
    }
    assert!(fit > 20 && full > 20, "{fit} fitted, {full} did not");
}

#[test]
fn a_change_that_does_not_fit_changes_nothing() {
    let words = words();
    let page = PageMut::new(&words);
    page.format(PageId(9), TreeId(4), 0, kind::NODE);
    empty_leaf(&page, b"", None);
    let mut model = Model::new();
    for i in 0_u64.. {
        let key = (i * 7919).to_be_bytes();
        let row = NodeRow { key: &key, value: &[1; 100], tag: Tag(i), ghost: false, overflow: false };
        if put(&page, &row) == Err(Full) {
            break;
        }
        model.insert(key.to_vec(), (vec![1; 100], i, false));
    }
    agree(&page, &model);
}

#[test]
fn rows_of_a_full_leaf_that_lose_their_tags_stay_where_they_are() {
    // As a rollback does, latest first: no row moves, so the node is not built anew.
    let words = words();
    let page = PageMut::new(&words);
    page.format(PageId(9), TreeId(4), 0, kind::NODE);
    empty_leaf(&page, b"", None);
    let (mut model, mut tag) = (Model::new(), 0);
    loop {
        tag += 1;
        let key = (1_000_000_u64 + tag).to_be_bytes();
        if put(&page, &NodeRow { key: &key, value: b"value", tag: Tag(tag), ghost: false, overflow: false }).is_err() {
            break;
        }
        model.insert(key.to_vec(), (b"value".to_vec(), tag, false));
    }
    let node = node_of(&page);
    let (heap_top, garbage, used) = (node.heap_top(), node.garbage(), node.used_bytes());
    for key in model.keys().rev().cloned().collect::<Vec<_>>() {
        let row = NodeRow { key: &key, value: b"value", tag: Tag::SETTLED, ghost: false, overflow: false };
        assert_eq!(put(&page, &row), Ok(()));
        model.insert(key, (b"value".to_vec(), 0, false));
    }
    agree(&page, &model);
    assert_eq!(node.heap_top(), heap_top, "no cell was put elsewhere");
    let freed = node.garbage() - garbage;
    // The first row's tag was the one that all could have shared.
    assert_eq!((freed, used - node.used_bytes()), (8 * (model.len() - 1), freed));
}

#[test]
fn the_left_half_keeps_its_rows_and_learns_its_fence() {
    let words = words();
    let page = PageMut::new(&words);
    page.format(PageId(9), TreeId(4), 0, kind::NODE);
    empty_leaf(&page, b"", None);
    for i in 0_u64..100 {
        let key = i.to_be_bytes();
        let row = NodeRow { key: &key, value: b"value", tag: Tag::SETTLED, ghost: false, overflow: false };
        put(&page, &row).expect("room for a hundred short rows");
    }
    truncate(&page, 40, PageId(77), &40_u64.to_be_bytes()).expect("fewer rows fit");
    let node = node_of(&page);
    assert_eq!((node.count(), node.right()), (40, PageId(77)));
    assert!(node.high_admits(&39_u64.to_be_bytes()) && !node.high_admits(&40_u64.to_be_bytes()));
    assert_eq!(node.prefix_len(), 7);
}

/// BTR-3: a leaf that keeps all of its rows at a split has them where they lay, and redo makes the same of it.
#[test]
fn a_leaf_that_gets_another_fence_keeps_its_rows_where_they_lie() {
    let (mut fenced, mut full) = (0, 0);
    for_each_seed!(60, |seed| {
        let mut rng = Rng::new(seed);
        let (words, left_words) = (words(), words());
        let (page, left) = (PageMut::new(&words), PageMut::new(&left_words));
        page.format(PageId(9), TreeId(4), 0, kind::NODE);
        let style = rng.below(3);
        let high_before = rng.chance(1, 2).then_some(&b"\xff\xff\xff"[..]);
        empty_leaf(&page, b"", high_before);
        let mut model = Model::new();
        for _ in 0..1500 {
            let key = random_key(&mut rng, style);
            if rng.chance(1, 8) {
                assert_eq!(remove(&page, &key), model.remove(&key).is_some());
            } else {
                let value = vec![5; rng.index(60)];
                let (tag, ghost) = (rng.below(4), rng.chance(1, 5));
                let row = NodeRow { key: &key, value: &value, tag: Tag(tag), ghost, overflow: false };
                if put(&page, &row) == Ok(()) {
                    model.insert(key, (value, tag, ghost));
                }
            }
            let Some(last) = model.keys().next_back().filter(|_| rng.chance(1, 4)) else { continue };
            let high = [&last[..], &vec![b'x'; rng.index(24)], b"\x01"].concat();
            let Some(image) = Image::fenced(node_of(&page), PageId(33), PageId(77), &high) else {
                full += 1;
                continue;
            };
            fenced += 1;
            left.format(PageId(33), TreeId(4), 0, kind::NODE);
            image.store(&left);
            agree(&left, &model);
            let node = node_of(&left);
            assert_eq!((node.0.id(), node.right(), node.high()), (PageId(33), PageId(77), Some(high.clone())));
            assert_eq!((node.low(), node.garbage()), (Vec::new(), node_of(&page).garbage()));
            assert_eq!(
                Image::from_parts(&image.parts().concat()).map(|image| image.used_bytes()),
                Some(image.used_bytes())
            );
            // As redo does, in a page of the same rows.
            let mut bytes = [0; PAGE_BYTES];
            page.copy_out(&mut bytes);
            left.copy_in(&bytes);
            truncate(&left, model.len(), PageId(77), &high).expect("the same rows fit with that fence");
            agree(&left, &model);
        }
    });
    assert!(fenced > 1000 && full > 100, "{fenced} leaves had room for their fence, {full} had none");
}

#[test]
fn separators_are_short_and_separate() {
    for (left, right, expected) in [
        (&b"abc"[..], &b"abd"[..], &b"abd"[..]),
        (b"abc", b"b", b"b"),
        (b"ab", b"abc", b"abc"),
        (b"a", b"abcdef", b"ab"),
        (b"", b"zebra", b"z"),
    ] {
        let separator = separator(left, right);
        assert_eq!(separator, expected);
        assert!(left < &separator[..] && &separator[..] <= right);
    }
}

#[test]
fn no_bytes_make_reading_a_node_panic() {
    for_each_seed!(300, |seed| {
        let mut rng = Rng::new(seed);
        let words = words();
        let page = PageMut::new(&words);
        let mut bytes = [0; PAGE_BYTES];
        rng.fill(&mut bytes);
        page.copy_in(&bytes);
        let node = node_of(&page);
        for key in [&b""[..], b"a", b"abcdefghijkl"] {
            let _ = node.search(key);
            let _ = node.child_index(key).map(|index| node.child(index));
            let _ = (node.low_admits(key), node.high_admits(key), node.high_is_below(Some(key)));
        }
        let mut rows = Rows::default();
        rows.extend(node, 0, 20);
        let _ = Image::from_parts(&bytes[..rng.index(PAGE_BYTES)]);
        let _ = Strip::decode(&bytes[..rng.index(100)], 100);
    });
}
