//! Loops over texts that may be long, with breaths.

use crate::error::Result;
use clearway_base::{breath, memory};

/// Bytes between two breaths.
const PIECE: usize = 1 << 14;

/// The pieces of a text, in order, with a breath before each.
///
/// # Errors
/// The reason for which the statement must end, and what `f` returns.
pub fn pieces<'a>(text: &'a str, mut f: impl FnMut(&'a str) -> Result<()>) -> Result<()> {
    let mut rest = text;
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.floor_char_boundary(rest.len().min(PIECE)));
        breath::step_bytes(4 * piece.len())?;
        f(piece)?;
        rest = after;
    }
    Ok(())
}

/// How many characters a text has.
///
/// # Errors
/// The reason for which the statement must end.
pub fn count(text: &str) -> Result<usize> {
    let mut n = 0;
    pieces(text, |piece| {
        n += piece.chars().count();
        Ok(())
    })?;
    Ok(n)
}

/// Where character number `n` begins, from 0; the text's length if it has fewer.
///
/// # Errors
/// The reason for which the statement must end.
pub fn offset(text: &str, n: usize) -> Result<usize> {
    let (mut left, mut at) = (n, 0);
    loop {
        let rest = &text[at..];
        let piece = &rest[..rest.floor_char_boundary(rest.len().min(PIECE))];
        breath::step_bytes(4 * piece.len())?;
        match piece.char_indices().nth(left) {
            Some((found, _)) => return Ok(at + found),
            None if piece.len() == rest.len() => return Ok(text.len()),
            None => left -= piece.chars().count(),
        }
        at += piece.len();
    }
}

/// Copies text behind other text.
///
/// # Errors
/// 53200, and the reason for which the statement must end.
pub fn append(out: &mut String, text: &str) -> Result<()> {
    memory::claim(text.len())?;
    Ok(breath::append_text(out, text)?)
}

/// Every character through `f`, which may leave it out.
///
/// # Errors
/// The reason for which the statement must end.
pub fn map(text: &str, mut f: impl FnMut(char) -> Option<char>) -> Result<String> {
    memory::claim(2 * text.len())?;
    let mut out = String::with_capacity(text.len());
    pieces(text, |piece| {
        out.extend(piece.chars().filter_map(&mut f));
        Ok(())
    })?;
    Ok(out)
}

/// Where a text that is not empty begins in another one, from byte `from` on.
///
/// # Errors
/// The reason for which the statement must end.
pub fn find(text: &str, needle: &str, from: usize) -> Result<Option<usize>> {
    // A piece is searched with as much behind it as a needle that begins in it can take.
    let width = PIECE.max(needle.len());
    let mut at = from;
    while at < text.len() {
        let end = text.ceil_char_boundary((at + width + needle.len()).min(text.len()));
        breath::step_bytes(end - at)?;
        if let Some(found) = text[at..end].find(needle) {
            return Ok(Some(at + found));
        }
        if end == text.len() {
            break;
        }
        at = text.ceil_char_boundary(at + width);
    }
    Ok(None)
}

/// A text with every occurrence of `from`, which is not empty, replaced; none: the result is longer than `max` bytes.
///
/// # Errors
/// The reason for which the statement must end.
pub fn replace(text: &str, from: &str, to: &str, max: usize) -> Result<Option<String>> {
    let (mut out, mut at) = (String::new(), 0);
    while let Some(found) = find(text, from, at)? {
        if out.len() + (found - at) + to.len() > max {
            return Ok(None);
        }
        append(&mut out, &text[at..found])?;
        append(&mut out, to)?;
        at = found + from.len();
    }
    append(&mut out, &text[at..])?;
    Ok((out.len() <= max).then_some(out))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Long enough for several pieces, with characters of several bytes at their ends.
    fn long() -> String {
        "aé€😀".repeat(9_000)
    }

    #[test]
    fn long_texts_are_passed_over_as_the_library_does() -> Result<()> {
        let text = long();
        assert_eq!(count(&text)?, text.chars().count());
        for n in [0, 1, 4_095, 4_096, 16_384, 35_999, 36_000, 40_000] {
            let expected = text.char_indices().nth(n).map_or(text.len(), |(at, _)| at);
            assert_eq!(offset(&text, n)?, expected, "{n}");
        }
        assert_eq!(map(&text, |c| (c != 'é').then_some(c))?, text.replace('é', ""));
        assert_eq!((count("")?, offset("", 3)?, map("", Some)?), (0, 0, String::new()));
        Ok(())
    }

    #[test]
    fn a_needle_is_found_wherever_it_lies() -> Result<()> {
        let needle = format!("b{}c", "é".repeat(12_000));
        for at in [0, 1, PIECE - 2, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE - 7, 90_000] {
            let text = format!("{}{needle}{}", "a".repeat(at), "a".repeat(50_000));
            assert_eq!(find(&text, &needle, 0)?, text.find(&needle), "{at}");
            assert_eq!(find(&text, &needle, at + 1)?, None);
            assert_eq!(replace(&text, &needle, "x", usize::MAX)?, Some(text.replace(&needle, "x")));
        }
        let text = long();
        assert_eq!(replace(&text, "€😀a", "--", usize::MAX)?, Some(text.replace("€😀a", "--")));
        assert_eq!(replace(&text, "a", "bb", text.len())?, None);
        assert_eq!(find(&text, "zz", 0)?, None);
        Ok(())
    }
}
