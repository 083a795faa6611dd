//! Lower case, as the layers above compare texts by it: the SQL function `lower`, values whose case does not count, and their keys.
//!
//! # Invariants
//! - LCF-1: what a character becomes is the same in every build, since keys on disk are made by it. A test holds the sum of the whole table:
//!   a toolchain with a newer Unicode that changes it is noticed before it reads a directory.

/// The lower-case form of a character, if that is one character; else the character itself, as in C.UTF-8.
#[inline]
pub fn lower(c: char) -> char {
    if c.is_ascii() {
        return c.to_ascii_lowercase();
    }
    let mut all = c.to_lowercase();
    match (all.next(), all.next()) {
        (Some(one), None) => one,
        _ => c,
    }
}

/// Appends the lower-case form of a text; of bytes that are no text, the bytes.
pub fn lower_into(text: &[u8], out: &mut Vec<u8>) {
    match std::str::from_utf8(text) {
        Ok(_) if text.is_ascii() => out.extend(text.iter().map(u8::to_ascii_lowercase)),
        Ok(text) => {
            let mut bytes = [0; 4];
            text.chars().for_each(|c| out.extend_from_slice(lower(c).encode_utf8(&mut bytes).as_bytes()));
        }
        Err(_) => out.extend_from_slice(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// LCF-1
    #[test]
    fn the_table_of_lower_case_is_the_one_by_which_keys_were_made() {
        let changed = (0..=u32::from(char::MAX)).filter_map(char::from_u32).filter(|c| lower(*c) != *c);
        let (mut sum, mut count) = (0xcbf2_9ce4_8422_2325u64, 0);
        for c in changed {
            for n in [u32::from(c), u32::from(lower(c))] {
                sum = (sum ^ u64::from(n)).wrapping_mul(0x0100_0000_01b3);
            }
            count += 1;
        }
        assert_eq!((count, sum), (1487, 0x376b_498d_2c3e_d1a1), "keys of folded texts were made by another table");
    }

    #[test]
    fn a_text_is_folded_character_by_character() {
        let folded = |text: &[u8]| {
            let mut out = Vec::new();
            lower_into(text, &mut out);
            out
        };
        assert_eq!(folded("ABC ÄÖ Σ İ".as_bytes()), "abc äö σ İ".as_bytes());
        assert_eq!(folded(b"A\xff"), b"A\xff");
    }
}
