//! The regexp_* functions, SIMILAR TO, and substring by pattern.

use super::are::Options;
use super::eval::Env;
use super::functions::{Function, i, s, table};
use super::long_text;
use super::pattern::{self, Pattern};
use super::text_functions::too_large;
use crate::error::{Result, SqlError, code};
use crate::types::datum::Array;
use crate::types::{Datum, oid};
use clearway_base::{breath, memory};

use oid::{BOOL, INT4, TEXT, TEXT_ARRAY};

#[rustfmt::skip]
pub static FUNCTIONS: &[Function] = table! {
    "regexp_match"(TEXT, TEXT) TEXT_ARRAY strict first_match; "regexp_match"(TEXT, TEXT, TEXT) TEXT_ARRAY strict first_match;
    "regexp_replace"(TEXT, TEXT, TEXT) TEXT strict |a, _| replace(a, 1, None, "");
    "regexp_replace"(TEXT, TEXT, TEXT, TEXT) TEXT strict replace_flags;
    "regexp_replace"(TEXT, TEXT, TEXT, INT4) TEXT strict |a, _| replace(a, i(a, 3), Some(1), "");
    "regexp_replace"(TEXT, TEXT, TEXT, INT4, INT4) TEXT strict |a, _| replace(a, i(a, 3), Some(i(a, 4)), "");
    "regexp_replace"(TEXT, TEXT, TEXT, INT4, INT4, TEXT) TEXT strict |a, _| replace(a, i(a, 3), Some(i(a, 4)), s(a, 5));
    "regexp_split_to_array"(TEXT, TEXT) TEXT_ARRAY strict split_to_array;
    "regexp_split_to_array"(TEXT, TEXT, TEXT) TEXT_ARRAY strict split_to_array;
    "regexp_like"(TEXT, TEXT) BOOL strict like; "regexp_like"(TEXT, TEXT, TEXT) BOOL strict like;
    "regexp_count"(TEXT, TEXT) INT4 strict count; "regexp_count"(TEXT, TEXT, INT4) INT4 strict count;
    "regexp_count"(TEXT, TEXT, INT4, TEXT) INT4 strict count;
    "regexp_instr"(TEXT, TEXT) INT4 strict instr; "regexp_instr"(TEXT, TEXT, INT4) INT4 strict instr;
    "regexp_instr"(TEXT, TEXT, INT4, INT4) INT4 strict instr; "regexp_instr"(TEXT, TEXT, INT4, INT4, INT4) INT4 strict instr;
    "regexp_instr"(TEXT, TEXT, INT4, INT4, INT4, TEXT) INT4 strict instr;
    "regexp_instr"(TEXT, TEXT, INT4, INT4, INT4, TEXT, INT4) INT4 strict instr;
    "regexp_substr"(TEXT, TEXT) TEXT strict substr; "regexp_substr"(TEXT, TEXT, INT4) TEXT strict substr;
    "regexp_substr"(TEXT, TEXT, INT4, INT4) TEXT strict substr; "regexp_substr"(TEXT, TEXT, INT4, INT4, TEXT) TEXT strict substr;
    "regexp_substr"(TEXT, TEXT, INT4, INT4, TEXT, INT4) TEXT strict substr;
    "similar_to_escape"(TEXT) TEXT strict similar; "similar_to_escape"(TEXT, TEXT) TEXT strict similar;
    "similar_escape"(TEXT, TEXT) TEXT lenient similar_lenient;
    "substring"(TEXT, TEXT, TEXT) TEXT strict similar_substring;
};

fn invalid(message: impl Into<String>) -> SqlError {
    SqlError::new(code::INVALID_PARAMETER_VALUE, message)
}

/// A pattern with the flags of the regexp_* functions; whether `g` is among them.
fn compile(pattern: &str, flags: &str) -> Result<(Pattern, bool)> {
    let (mut global, mut options) = (false, Options::default());
    for c in flags.chars() {
        if c == 'g' {
            global = true;
        } else if !options.set(c)? {
            return Err(invalid(format!("invalid regular expression option: \"{c}\"")));
        }
    }
    Ok((pattern::compile(pattern, options)?, global))
}

fn without_global(global: bool, function: &str) -> Result<()> {
    if !global {
        return Ok(());
    }
    Err(invalid(format!("{function} does not support the \"global\" option")))
}

/// The groups of a match: bytes from and to.
type Groups = Vec<Option<(usize, usize)>>;

/// The matches from byte `from` on: the first, or all of them.
fn matches(pattern: &Pattern, text: &str, from: usize, most: usize) -> Result<Vec<Groups>> {
    let mut out = Vec::new();
    let mut at = from;
    while out.len() < most && at <= text.len() {
        breath::step_bytes(64)?;
        memory::check()?;
        let Some(groups) = pattern.groups_at(text, at)? else { break };
        let Some((start, end)) = groups.first().copied().flatten() else { break };
        // Behind an empty match the search goes on one character later.
        at = if end > start { end } else { end + text[end..].chars().next().map_or(1, char::len_utf8) };
        out.push(groups);
    }
    Ok(out)
}

fn value(text: &str, group: Option<(usize, usize)>) -> Datum {
    group.and_then(|(from, to)| text.get(from..to)).map_or(Datum::Null, Datum::text)
}

/// The groups of a pattern as an array; without groups the whole match.
fn array(text: &str, groups: &Groups) -> Datum {
    let list: Vec<Datum> = if groups.len() > 1 {
        groups[1..].iter().map(|g| value(text, *g)).collect()
    } else {
        groups.iter().map(|g| value(text, *g)).collect()
    };
    Datum::Array(Array::one_dimensional(oid::TEXT, list).into())
}

fn flags(a: &[Datum], n: usize) -> &str {
    a.get(n).and_then(Datum::as_str).unwrap_or("")
}

pub(super) fn first_match(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let (pattern, global) = compile(s(a, 1), flags(a, 2))?;
    if global {
        return Err(invalid("regexp_match() does not support the \"global\" option")
            .hint("Use the regexp_matches function instead."));
    }
    let found = matches(&pattern, s(a, 0), 0, 1)?;
    Ok(found.first().map_or(Datum::Null, |groups| array(s(a, 0), groups)))
}

/// regexp_matches.
pub fn all_matches(a: &[Datum]) -> Result<Vec<Vec<Datum>>> {
    let (pattern, global) = compile(s(a, 1), flags(a, 2))?;
    let found = matches(&pattern, s(a, 0), 0, if global { usize::MAX } else { 1 })?;
    Ok(found.iter().map(|groups| vec![array(s(a, 0), groups)]).collect())
}

/// Where character number `start`, from 1, begins.
fn start_byte(text: &str, start: i64) -> Result<usize> {
    if start <= 0 {
        return Err(invalid(format!("invalid value for parameter \"start\": {start}")));
    }
    if start as usize > long_text::count(text)? + 1 {
        return Ok(text.len() + 1);
    }
    long_text::offset(text, start as usize - 1)
}

pub(super) fn replace_flags(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let flags = s(a, 3);
    if let Some(c) = flags.chars().next().filter(char::is_ascii_digit) {
        let hint = "If you meant to use regexp_replace() with a start parameter, cast the fourth argument to integer explicitly.";
        return Err(invalid(format!("invalid regular expression option: \"{c}\"")).hint(hint));
    }
    replace(a, 1, None, flags)
}

/// `n`: which match is replaced; 0: all; none: the first one, or all by the flag.
fn replace(a: &[Datum], start: i64, n: Option<i64>, flags: &str) -> Result<Datum> {
    let (text, new) = (s(a, 0), s(a, 2));
    if let Some(n) = n.filter(|n| *n < 0) {
        return Err(invalid(format!("invalid value for parameter \"n\": {n}")));
    }
    let (pattern, global) = compile(s(a, 1), flags)?;
    let from = start_byte(text, start)?;
    let n = n.unwrap_or(i64::from(!global)) as usize;
    let found = if from > text.len() {
        Vec::new()
    } else {
        matches(&pattern, text, from, if n == 0 { usize::MAX } else { n })?
    };
    let mut out = String::new();
    let mut at = 0;
    for (number, groups) in found.iter().enumerate() {
        let Some((begin, end)) = groups.first().copied().flatten() else { continue };
        if n > 0 && number + 1 != n {
            continue;
        }
        long_text::append(&mut out, &text[at..begin])?;
        insert(&mut out, new, text, groups)?;
        if out.len() > 256 << 20 {
            return Err(too_large());
        }
        at = end;
    }
    long_text::append(&mut out, &text[at..])?;
    Ok(Datum::text(out))
}

/// The new text with `\1` to `\9` and `\&` filled in.
fn insert(out: &mut String, new: &str, text: &str, groups: &Groups) -> Result<()> {
    let mut chars = new.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        let group = match chars.next() {
            Some(d @ '1'..='9') => d as usize - '0' as usize,
            Some('&') => 0,
            Some('\\') => {
                out.push('\\');
                continue;
            }
            Some(other) => {
                out.push('\\');
                out.push(other);
                continue;
            }
            None => {
                out.push('\\');
                continue;
            }
        };
        if let Some((from, to)) = groups.get(group).copied().flatten() {
            long_text::append(out, &text[from..to])?;
        }
    }
    Ok(())
}

/// The texts between the matches.
pub fn pieces(a: &[Datum]) -> Result<Vec<Datum>> {
    let text = s(a, 0);
    let (pattern, global) = compile(s(a, 1), flags(a, 2))?;
    without_global(global, "regexp_split_to_table()")?;
    let (mut out, mut at) = (Vec::new(), 0);
    for groups in matches(&pattern, text, 0, usize::MAX)? {
        let Some((from, to)) = groups.first().copied().flatten() else { continue };
        // An empty match at the start, at the end or behind another match separates nothing.
        if to == from && (from == 0 || from >= text.len() || from == at) && (from >= text.len() || from == at) {
            continue;
        }
        out.push(Datum::text(&text[at..from]));
        at = to;
    }
    out.push(Datum::text(&text[at..]));
    Ok(out)
}

pub(super) fn split_to_array(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    if flags(a, 2).contains('g') {
        return Err(invalid("regexp_split_to_array() does not support the \"global\" option"));
    }
    Ok(Datum::Array(Array::one_dimensional(oid::TEXT, pieces(a)?).into()))
}

fn like(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let (pattern, global) = compile(s(a, 1), flags(a, 2))?;
    without_global(global, "regexp_like()")?;
    Ok(Datum::Bool(pattern.is_match(s(a, 0))?))
}

fn count(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let start = a.get(2).map_or(1, |_| i(a, 2));
    let from = start_byte(s(a, 0), start)?;
    let (pattern, global) = compile(s(a, 1), flags(a, 3))?;
    without_global(global, "regexp_count()")?;
    if from > s(a, 0).len() {
        return Ok(Datum::Int4(0));
    }
    Ok(Datum::Int4(matches(&pattern, s(a, 0), from, usize::MAX)?.len() as i32))
}

/// The group of the n-th match that regexp_instr and regexp_substr look for.
fn chosen(a: &[Datum], flags_at: usize, group_at: usize, function: &str) -> Result<Option<(usize, usize)>> {
    let start = a.get(2).map_or(1, |_| i(a, 2));
    let n = a.get(3).map_or(1, |_| i(a, 3));
    let group = a.get(group_at).map_or(0, |_| i(a, group_at));
    let from = start_byte(s(a, 0), start)?;
    for (name, value, least) in [("n", n, 1), ("subexpr", group, 0)] {
        if value < least {
            return Err(invalid(format!("invalid value for parameter \"{name}\": {value}")));
        }
    }
    let (pattern, global) = compile(s(a, 1), flags(a, flags_at))?;
    without_global(global, function)?;
    if from > s(a, 0).len() {
        return Ok(None);
    }
    let found = matches(&pattern, s(a, 0), from, n as usize)?;
    Ok(found.get(n as usize - 1).and_then(|groups| groups.get(group as usize).copied().flatten()))
}

fn instr(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let end = a.get(4).map_or(0, |_| i(a, 4));
    if !(0..=1).contains(&end) {
        return Err(invalid(format!("invalid value for parameter \"endoption\": {end}")));
    }
    let at = chosen(a, 5, 6, "regexp_instr()")?.map(|(from, to)| if end == 1 { to } else { from });
    Ok(Datum::Int4(match at {
        Some(at) => long_text::count(&s(a, 0)[..at])? as i32 + 1,
        None => 0,
    }))
}

fn substr(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    Ok(value(s(a, 0), chosen(a, 4, 5, "regexp_substr()")?))
}

/// A pattern of SIMILAR TO as a regular expression (`similar_escape_internal` of src/backend/utils/adt/regexp.c).
fn similar_pattern(pattern: &str, escape: Option<&str>) -> Result<String> {
    let mut given = escape.unwrap_or("\\").chars();
    let (escape, more) = (given.next(), given.next());
    if more.is_some() {
        return Err(SqlError::new(code::INVALID_ESCAPE_SEQUENCE, "invalid escape string")
            .hint("Escape string must be empty or one character."));
    }
    let mut out = String::from("^(?:");
    let (mut after_escape, mut in_set, mut quotes) = (false, false, 0);
    for c in pattern.chars() {
        breath::step(8)?;
        if after_escape {
            if c == '"' && !in_set {
                match quotes {
                    0 => out.push_str("){1,1}?("),
                    1 => out.push_str("){1,1}(?:"),
                    _ => {
                        let message =
                            "SQL regular expression may not contain more than two escape-double-quote separators";
                        return Err(SqlError::new("2200C", message));
                    }
                }
                quotes += 1;
            } else {
                out.push_str(&regex::escape(&c.to_string()));
            }
            after_escape = false;
        } else if Some(c) == escape {
            after_escape = true;
        } else if in_set {
            if c == '\\' {
                out.push('\\');
            }
            out.push(c);
            in_set = c != ']';
        } else {
            match c {
                '[' => {
                    out.push(c);
                    in_set = true;
                }
                '%' => out.push_str(".*"),
                '_' => out.push('.'),
                '(' => out.push_str("(?:"),
                '\\' | '.' | '^' | '$' => {
                    out.push('\\');
                    out.push(c);
                }
                c => out.push(c),
            }
        }
    }
    out.push_str(")$");
    Ok(out)
}

fn similar(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    Ok(Datum::text(similar_pattern(s(a, 0), a.get(1).and_then(Datum::as_str))?))
}

fn similar_lenient(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    if a[0].is_null() {
        return Ok(Datum::Null);
    }
    Ok(Datum::text(similar_pattern(s(a, 0), a[1].as_str())?))
}

fn similar_substring(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let pattern = pattern::compile(&similar_pattern(s(a, 1), Some(s(a, 2)))?, Options::default())?;
    Ok(pattern.substring(s(a, 0))?.map_or(Datum::Null, Datum::text))
}
