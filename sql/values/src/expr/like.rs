//! LIKE: the pattern is split at its percent signs, and the pieces are searched one after the other, each at its leftmost match.

use super::long_text;
use crate::error::{Result, SqlError, code};
use clearway_base::{breath, memory};
use memchr::memmem::Finder;
use std::cell::RefCell;
use std::rc::Rc;

/// A pattern of at most so many bytes is kept split for the next row.
const KEPT_BYTES_MAX: usize = 1024;
/// A text of at most so many bytes is searched in one go.
const SHORT: usize = 1 << 14;

#[derive(Clone, Copy, PartialEq)]
enum Token {
    Char(char),
    /// `_`
    Any,
    /// The escape character at the end of the pattern: an error when the match reaches it.
    Broken,
}

/// What stands between two percent signs.
struct Piece {
    tokens: Vec<Token>,
    /// The piece's own text, if it has only characters, and what searches it.
    text: Option<(String, Finder<'static>)>,
}

impl Piece {
    fn new(tokens: Vec<Token>) -> Self {
        let text: Option<String> =
            tokens.iter().map(|t| if let Token::Char(c) = t { Some(*c) } else { None }).collect();
        let searched = |text: String| {
            let finder = Finder::new(&text).into_owned();
            (text, finder)
        };
        Self { tokens, text: text.map(searched) }
    }

    /// Where a match that begins at byte `at` ends.
    fn end_at(&self, text: &str, at: usize) -> Result<Option<usize>> {
        if let Some((own, _)) = &self.text {
            breath::step_bytes(own.len())?;
            return Ok(text[at..].starts_with(own).then_some(at + own.len()));
        }
        let mut chars = text[at..].chars();
        for token in &self.tokens {
            breath::step(8)?;
            let fits = match (token, chars.next()) {
                // A text that ends before the pattern does not reach its end.
                (_, None) => false,
                (Token::Broken, _) => {
                    let message = "LIKE pattern must not end with escape character";
                    return Err(SqlError::new(code::INVALID_ESCAPE_SEQUENCE, message));
                }
                (Token::Any, _) => true,
                (Token::Char(c), Some(d)) => *c == d,
            };
            if !fits {
                return Ok(None);
            }
        }
        Ok(Some(text.len() - chars.as_str().len()))
    }

    /// The end of the first match from byte `at` on.
    fn find(&self, text: &str, mut at: usize) -> Result<Option<usize>> {
        match &self.text {
            Some((own, _)) if own.is_empty() => Ok(Some(at)),
            Some((own, finder)) if text.len() - at <= SHORT => {
                breath::step_bytes((text.len() - at) / 8)?;
                Ok(finder.find(&text.as_bytes()[at..]).map(|found| at + found + own.len()))
            }
            Some((own, _)) => Ok(long_text::find(text, own, at)?.map(|found| found + own.len())),
            None => loop {
                if let Some(end) = self.end_at(text, at)? {
                    return Ok(Some(end));
                }
                match text[at..].chars().next() {
                    Some(c) => at += c.len_utf8(),
                    None => return Ok(None),
                }
            },
        }
    }

    /// Whether the text ends with a match that begins at byte `from` or behind it.
    fn ends(&self, text: &str, from: usize) -> Result<bool> {
        if self.tokens.last() == Some(&Token::Broken) {
            return Ok(self.find(text, from)?.is_some());
        }
        if let Some((own, _)) = &self.text {
            breath::step_bytes(own.len())?;
            return Ok(text[from..].ends_with(own));
        }
        let mut at = text.len();
        for _ in &self.tokens {
            breath::step(4)?;
            match text[from..at].chars().next_back() {
                Some(c) => at -= c.len_utf8(),
                None => return Ok(false),
            }
        }
        Ok(self.end_at(text, at)? == Some(text.len()))
    }
}

fn pieces(pattern: &str, escape: Option<char>) -> Result<Vec<Piece>> {
    let (mut all, mut tokens) = (Vec::new(), Vec::new());
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        breath::step(8)?;
        if Some(c) == escape {
            tokens.push(chars.next().map_or(Token::Broken, Token::Char));
        } else if c == '%' {
            all.push(Piece::new(std::mem::take(&mut tokens)));
        } else {
            tokens.push(if c == '_' { Token::Any } else { Token::Char(c) });
        }
    }
    all.push(Piece::new(tokens));
    Ok(all)
}

/// A pattern, its escape character, and its pieces.
struct Split {
    pattern: String,
    escape: Option<char>,
    pieces: Rc<[Piece]>,
}

thread_local! {
    /// The pattern of the last LIKE: a statement asks for the same pattern row by row.
    static LAST: RefCell<Option<Split>> = const { RefCell::new(None) };
}

/// Frees what the thread keeps.
pub(super) fn forget() {
    memory::uncharged(|| LAST.set(None));
}

/// The pieces of a pattern, which are kept for the next row.
fn split(pattern: &str, escape: Option<char>) -> Result<Rc<[Piece]>> {
    if pattern.len() > KEPT_BYTES_MAX {
        return Ok(pieces(pattern, escape)?.into());
    }
    let known = LAST.with_borrow(|last| match last {
        Some(last) if last.pattern == pattern && last.escape == escape => Some(last.pieces.clone()),
        _ => None,
    });
    match known {
        Some(pieces) => Ok(pieces),
        None => memory::uncharged(|| {
            let fresh: Rc<[Piece]> = pieces(pattern, escape)?.into();
            LAST.set(Some(Split { pattern: pattern.to_owned(), escape, pieces: fresh.clone() }));
            Ok(fresh)
        }),
    }
}

/// A text in small letters, one by one as the C library folds them.
fn folded(text: &str) -> Result<String> {
    long_text::map(text, |c| {
        let mut small = c.to_lowercase();
        match (small.next(), small.next()) {
            (Some(one), None) => Some(one),
            _ => Some(c),
        }
    })
}

/// `text LIKE pattern`; without an escape character none is special.
///
/// # Errors
/// 22025 for a pattern that ends with the escape character, if the match comes there.
pub fn like(text: &str, pattern: &str, escape: Option<char>, fold: bool) -> Result<bool> {
    if fold {
        return like(&folded(text)?, &folded(pattern)?, escape, false);
    }
    let pieces = split(pattern, escape)?;
    let [first, middle @ .., last] = &*pieces else {
        return Ok(pieces[0].end_at(text, 0)? == Some(text.len()));
    };
    let Some(mut at) = first.end_at(text, 0)? else { return Ok(false) };
    for piece in middle {
        match piece.find(text, at)? {
            Some(end) => at = end,
            None => return Ok(false),
        }
    }
    last.ends(text, at)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition, by recursion.
    fn plain(text: &[char], pattern: &[char]) -> bool {
        match pattern {
            [] => text.is_empty(),
            ['%', rest @ ..] => (0..=text.len()).any(|n| plain(&text[n..], rest)),
            ['_', rest @ ..] => !text.is_empty() && plain(&text[1..], rest),
            ['\\', c, rest @ ..] | [c, rest @ ..] => text.first() == Some(c) && plain(&text[1..], rest),
        }
    }

    #[test]
    fn like_is_what_its_definition_says() -> Result<()> {
        let letters = ['a', 'b', '%', '_', 'é', '\\'];
        let mut seed = 7u64;
        let mut next = |n: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as usize % n
        };
        for _ in 0..20_000 {
            let text: Vec<char> = (0..next(8)).map(|_| letters[next(5)]).collect();
            let mut pattern: Vec<char> = (0..next(7)).map(|_| letters[next(6)]).collect();
            if pattern.iter().rev().take_while(|c| **c == '\\').count() % 2 == 1 {
                pattern.pop();
            }
            let (t, p): (String, String) = (text.iter().collect(), pattern.iter().collect());
            assert_eq!(like(&t, &p, Some('\\'), false)?, plain(&text, &pattern), "{t} LIKE {p}");
        }
        Ok(())
    }

    #[test]
    fn a_long_pattern_on_a_long_text_takes_as_long_as_both() -> Result<()> {
        let pattern = format!("%{}b", "a".repeat(20_000));
        assert!(!like(&"a".repeat(2_000_000), &pattern, Some('\\'), false)?);
        Ok(())
    }
}
