//! Sorts places of keys by the first eight bytes of their keys, byte by byte from the last one on, in an order that keeps those with equal bytes as they were.
//!
//! Comparing two of them costs as much as all the steps of one, and a sort by comparisons takes some seventeen for each.

/// Where a key stands.
pub(crate) trait Headed: Copy + Default {
    /// The first bytes of the key, the first one highest.
    fn head(&self) -> u64;
}

/// The first eight bytes of a key, zeros behind a shorter one.
#[inline]
pub(crate) fn head_of(key: &[u8]) -> u64 {
    let head = key.first_chunk::<8>().copied().unwrap_or_else(|| {
        let mut head = [0; 8];
        head[..key.len()].copy_from_slice(key);
        head
    });
    u64::from_be_bytes(head)
}

/// Fewer places are sorted by comparisons alone.
const COUNTED_MIN: usize = 512;

/// Puts places in the order of their keys; those of one key stay in their order if `alike` keeps it: it puts places with one head in the order of their keys.
pub(crate) fn sort<P: Headed>(places: &mut Vec<P>, alike: impl Fn(&mut [P])) {
    match places.len() < COUNTED_MIN {
        true => places.sort_by_key(P::head),
        false => sort_by_heads(places),
    }
    places.chunk_by_mut(|a, b| a.head() == b.head()).filter(|of_one| of_one.len() > 1).for_each(alike);
}

fn sort_by_heads<P: Headed>(places: &mut Vec<P>) {
    let digit = |place: &P, byte: usize| usize::from(place.head().to_le_bytes()[byte]);
    let mut counts = [[0_u32; 256]; 8];
    for place in places.iter() {
        counts.iter_mut().enumerate().for_each(|(byte, counts)| counts[digit(place, byte)] += 1);
    }
    let mut sorted: Vec<P> = Vec::new();
    for (byte, counts) in counts.iter_mut().enumerate() {
        if counts[digit(&places[0], byte)] as usize == places.len() {
            continue;
        }
        let mut before = 0;
        counts.iter_mut().for_each(|count| before += std::mem::replace(count, before));
        sorted.resize(places.len(), P::default());
        for place in places.iter() {
            let next = &mut counts[digit(place, byte)];
            sorted[*next as usize] = *place;
            *next += 1;
        }
        std::mem::swap(places, &mut sorted);
    }
}
