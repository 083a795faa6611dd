//! citext: text whose case does not count in comparisons.

use clearway_base::fold::lower;
use std::cmp::Ordering;
use std::hash::Hasher;

/// The order of two values: that of their lower-case forms, byte by byte (KEY-3 of the engine's keys).
pub fn compare(a: &str, b: &str) -> Ordering {
    // UTF-8 sorts as its characters do.
    a.chars().map(lower).cmp(b.chars().map(lower))
}

/// Equal values have equal hashes.
pub fn hash<H: Hasher>(text: &str, state: &mut H) {
    text.chars().for_each(|c| state.write_u32(u32::from(lower(c))));
    state.write_u8(0xff);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hash::DefaultHasher;

    #[test]
    fn case_does_not_count() {
        assert_eq!(compare("Straße ÄB", "sTRAßE äb"), Ordering::Equal);
        assert!(compare("a", "B").is_lt() && compare("B", "c").is_lt() && compare("A", "aa").is_lt());
        let hashed = |text: &str| {
            let mut state = DefaultHasher::new();
            hash(text, &mut state);
            state.finish()
        };
        assert_eq!(hashed("Ab"), hashed("aB"));
        assert_ne!(hashed("ab"), hashed("abc"));
    }

    #[test]
    fn the_order_is_that_of_the_keys() {
        let words = ["", "a", "A", "Z", "z", "aa", "É", "é", "ﬀ", "İ", "ı", "𐐀", "𐐨", "\u{ffff}"];
        let key = |text: &str| {
            let mut out = Vec::new();
            clearway_base::fold::lower_into(text.as_bytes(), &mut out);
            out
        };
        for (a, b) in words.iter().flat_map(|a| words.iter().map(move |b| (a, b))) {
            assert_eq!(compare(a, b), key(a).cmp(&key(b)), "{a} and {b}");
        }
    }
}
