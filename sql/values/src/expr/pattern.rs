//! LIKE and regular expressions.

use crate::error::{Result, SqlError, code};
use regex::Regex;
use std::cell::RefCell;
use std::collections::HashMap;

/// `text LIKE pattern`; without an escape character none is special.
pub fn like(text: &str, pattern: &str, escape: Option<char>, fold: bool) -> Result<bool> {
    let chars = |s: &str| -> Vec<char> { if fold { s.to_lowercase().chars().collect() } else { s.chars().collect() } };
    let (text, pattern) = (chars(text), chars(pattern));
    // The last % seen, and where in the text its match may be made longer: greedy matching, no recursion.
    let (mut t, mut p) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    loop {
        let step = match pattern.get(p) {
            Some('%') if escape != Some('%') => {
                retry = Some((p + 1, t));
                p += 1;
                continue;
            }
            Some(c) if Some(*c) == escape => match pattern.get(p + 1) {
                None => {
                    return Err(SqlError::new(
                        code::INVALID_ESCAPE_SEQUENCE,
                        "LIKE pattern must not end with escape character",
                    ));
                }
                literal => (text.get(t) == literal).then_some(2),
            },
            Some('_') => (t < text.len()).then_some(1),
            Some(c) => (text.get(t) == Some(c)).then_some(1),
            None if t == text.len() => return Ok(true),
            None => None,
        };
        match (step, retry) {
            (Some(n), _) => {
                p += n;
                t += 1;
            }
            (None, Some((after, from))) if from < text.len() => {
                retry = Some((after, from + 1));
                p = after;
                t = from + 1;
            }
            _ => return Ok(false),
        }
    }
}

/// `text ~ pattern`. The common ground of POSIX and the regex crate is taken; back-references are not.
pub fn matches(text: &str, pattern: &str, fold: bool) -> Result<bool> {
    Ok(compile(pattern, fold)?.is_match(text))
}

/// Patterns that a thread keeps compiled.
const KEPT: usize = 64;

/// The longest pattern: a longer one would exceed the limit of its program anyway, after its trees had taken a hundred times as much.
const PATTERN_BYTES_MAX: usize = 128 << 10;

thread_local! {
    /// Compiling costs a hundred matches and more; a statement asks for the same few patterns row by row.
    static COMPILED: RefCell<HashMap<(String, bool), Regex>> = RefCell::default();
}

/// A compiled pattern; compiled once per thread while it is among the last few in use.
///
/// # Errors
/// 2201B.
pub fn compile(pattern: &str, fold: bool) -> Result<Regex> {
    let key = (pattern.to_owned(), fold);
    if let Some(known) = COMPILED.with_borrow(|kept| kept.get(&key).cloned()) {
        return Ok(known);
    }
    if pattern.len() > PATTERN_BYTES_MAX {
        let message = "invalid regular expression: regular expression is too complex";
        let detail = format!("It has {} bytes; at most {PATTERN_BYTES_MAX} are compiled.", pattern.len());
        return Err(SqlError::new(code::INVALID_REGULAR_EXPRESSION, message).detail(detail));
    }
    // The parser's trees take some two hundred bytes a character; what is compiled is the thread's, not the session's.
    clearway_base::memory::claim(256 * pattern.len())?;
    let fresh = clearway_base::memory::uncharged(|| build(pattern, fold))?;
    COMPILED.with_borrow_mut(|kept| {
        if kept.len() >= KEPT {
            kept.clear();
        }
        kept.insert(key, fresh.clone());
    });
    Ok(fresh)
}

/// Compiles a pattern, with a bound on the size of its program.
fn build(pattern: &str, fold: bool) -> Result<Regex> {
    let body = pattern.strip_prefix("***:").unwrap_or(pattern);
    let body = body.replace("\\m", "\\b{start}").replace("\\M", "\\b{end}").replace("\\y", "\\b");
    regex::RegexBuilder::new(&body)
        .case_insensitive(fold)
        .size_limit(1 << 20)
        .dot_matches_new_line(true)
        .build()
        .map_err(|e| {
            let message = format!("invalid regular expression: {}", e.to_string().lines().last().unwrap_or("").trim());
            SqlError::new(code::INVALID_REGULAR_EXPRESSION, message)
        })
}
