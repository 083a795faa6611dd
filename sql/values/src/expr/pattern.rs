//! Regular expressions. The regex library looks for what it finds as PostgreSQL does; where it may choose another length or other groups, it tells where
//! a match begins, and expr/are has the rest.

use super::are::{self, Are, Options, Search};
use super::long_regex::LongRegex;
use crate::error::{Result, SqlError, code};
use clearway_base::{breath, memory};
use regex::Regex;
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

/// A compiled pattern.
#[derive(Clone, Debug)]
pub struct Pattern {
    are: Arc<Are>,
    /// None: the library can't find it.
    short: Option<Regex>,
    /// For texts that may take long, made when the first one comes; none: there is none of that size.
    long: Arc<OnceLock<Option<LongRegex>>>,
    body: Arc<str>,
}

/// Bytes of text times states of the pattern that the library may be given in one piece: some ten milliseconds at its worst.
const COST_MAX: usize = 1 << 20;
/// Texts of so many bytes are short for every pattern.
const SHORT: usize = 64;
/// Bytes of a pattern. Its program is bounded, too, but the pattern must be read before.
const PATTERN_BYTES_MAX: usize = 1 << 17;

/// Where a match and its groups begin and end, in bytes.
pub type Groups = Vec<Option<(usize, usize)>>;

impl Pattern {
    fn long_for(&self, text: &str) -> Option<&LongRegex> {
        if text.len() <= SHORT {
            return None;
        }
        let long = self.long.get_or_init(|| memory::uncharged(|| LongRegex::new(&self.body)));
        long.as_ref().filter(|long| long.states().saturating_mul(text.len()) > COST_MAX)
    }

    /// Whether the text has a match.
    ///
    /// # Errors
    /// The reason for which the statement must end.
    pub fn is_match(&self, text: &str) -> Result<bool> {
        let Some(short) = &self.short else {
            return Ok(Search::new(&self.are, text).find(0)?.is_some());
        };
        match self.long_for(text) {
            Some(long) => long.is_match(text),
            None => {
                breath::step_bytes(8 * text.len())?;
                Ok(short.is_match(text))
            }
        }
    }

    /// The first match from byte `from` on: where it and its groups begin and end.
    ///
    /// # Errors
    /// The reason for which the statement must end.
    pub fn groups_at(&self, text: &str, from: usize) -> Result<Option<Groups>> {
        let Some(short) = &self.short else {
            return Search::new(&self.are, text).find(from);
        };
        breath::step_bytes(8 * text.len().saturating_sub(from).min(1 << 14))?;
        if self.are.may_differ {
            return match short.find_at(text, from) {
                Some(found) => Search::new(&self.are, text).match_at(found.start()),
                None => Ok(None),
            };
        }
        let mut slots = short.capture_locations();
        Ok(short.captures_read_at(&mut slots, text, from).map(|_| (0..slots.len()).map(|i| slots.get(i)).collect()))
    }

    /// The part of the text that the first group matches, or the whole pattern if it has no group; none: no match, or none of the group.
    ///
    /// # Errors
    /// The reason for which the statement must end.
    pub fn substring<'t>(&self, text: &'t str) -> Result<Option<&'t str>> {
        let group = usize::from(self.are.groups > 0);
        let own = match (&self.short, self.long_for(text)) {
            (Some(_), Some(long)) if !self.are.may_differ => {
                return Ok(long.find(text, false)?.and_then(|slots| {
                    let (from, to) = (*slots.get(2 * group)?, *slots.get(2 * group + 1)?);
                    text.get(from?..to?)
                }));
            }
            (Some(_), Some(long)) => match long.find(text, false)?.and_then(|slots| *slots.first()?) {
                Some(begin) => Search::new(&self.are, text).match_at(begin)?,
                None => None,
            },
            _ => self.groups_at(text, 0)?,
        };
        Ok(own.and_then(|groups| groups.get(group).copied().flatten()).and_then(|(from, to)| text.get(from..to)))
    }
}

/// `text ~ pattern`.
///
/// # Errors
/// 2201B, and the reason for which the statement must end.
pub fn matches(text: &str, pattern: &str, fold: bool) -> Result<bool> {
    compile(pattern, Options { fold, ..Options::default() })?.is_match(text)
}

/// Patterns that a thread keeps compiled.
const KEPT: usize = 64;

thread_local! {
    /// Compiling costs a hundred matches and more; a statement asks for the same few patterns row by row.
    static COMPILED: RefCell<HashMap<(String, Options), Pattern>> = RefCell::default();
}

/// Frees what the thread keeps.
pub(super) fn forget() {
    memory::uncharged(|| drop(COMPILED.take()));
}

/// A compiled pattern; compiled once per thread while it is among the last few in use.
///
/// # Errors
/// 2201B.
pub fn compile(pattern: &str, options: Options) -> Result<Pattern> {
    if pattern.len() > PATTERN_BYTES_MAX {
        let detail = format!("It has {} bytes; at most {PATTERN_BYTES_MAX} are compiled.", pattern.len());
        return Err(invalid("regular expression is too complex").detail(detail));
    }
    let key = (pattern.to_owned(), options);
    if let Some(known) = COMPILED.with_borrow(|kept| kept.get(&key).cloned()) {
        return Ok(known);
    }
    breath::step(1 << 14)?;
    // The parser's trees take some two hundred bytes a character; what is compiled is the thread's, not the session's.
    memory::claim(256 * pattern.len())?;
    let fresh = memory::uncharged(|| build(pattern, options))?;
    // The caller frees what it gets: that was allocated for its account.
    let given = fresh.clone();
    memory::uncharged(|| {
        COMPILED.with_borrow_mut(|kept| {
            if kept.len() >= KEPT {
                kept.clear();
            }
            kept.insert((pattern.to_owned(), options), fresh);
        });
    });
    Ok(given)
}

fn invalid(why: &str) -> SqlError {
    SqlError::new(code::INVALID_REGULAR_EXPRESSION, format!("invalid regular expression: {why}"))
}

/// Compiles a pattern, with a bound on the size of its program.
fn build(pattern: &str, options: Options) -> Result<Pattern> {
    let are = are::parse(pattern, options)?;
    let body = are::translate(&are);
    let short = match are.is_own {
        true => None,
        false => {
            let built = regex::RegexBuilder::new(&body).size_limit(1 << 20).nest_limit(4_000).build();
            Some(built.map_err(|_| invalid("regular expression is too complex"))?)
        }
    };
    Ok(Pattern { are: are.into(), short, long: Arc::default(), body: body.into() })
}
