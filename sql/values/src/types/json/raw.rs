//! The parts of a json text, as texts: values of type json keep their spelling, duplicates and order.
//!
//! The text has been validated before. If it is invalid nevertheless, a walk over it ends early and does not panic.

use super::document::Json;
use crate::error::Result;
use clearway_base::breath;

fn space(text: &str) -> &str {
    text.trim_start_matches([' ', '\t', '\n', '\r'])
}

/// The text without blanks around it.
pub fn trimmed(text: &str) -> &str {
    text.trim_matches([' ', '\t', '\n', '\r'])
}

/// Where the value at the start of a text ends.
fn end_of_value(text: &str) -> usize {
    let bytes = text.as_bytes();
    let (mut depth, mut at) = (0usize, 0);
    while at < bytes.len() {
        match bytes[at] {
            b'"' => at += end_of_string(&text[at..]) - 1,
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth == 0 => return at,
            b'}' | b']' => depth -= 1,
            b',' | b':' | b' ' | b'\t' | b'\n' | b'\r' if depth == 0 => return at,
            _ => {}
        }
        at += 1;
        if depth == 0 && matches!(bytes[at - 1], b'"' | b'}' | b']') {
            return at;
        }
    }
    at.min(bytes.len())
}

fn end_of_string(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut at = 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// The elements of an array.
///
/// # Errors
/// The reason for which the statement must end.
pub fn elements(text: &str) -> Result<Vec<&str>> {
    let mut rest = space(space(text).strip_prefix('[').unwrap_or(""));
    let mut out = Vec::new();
    while !rest.is_empty() && !rest.starts_with(']') {
        let (value, after) = rest.split_at(end_of_value(rest));
        breath::step_bytes(value.len() + 16)?;
        if value.is_empty() {
            break;
        }
        out.push(value);
        rest = space(after);
        rest = space(rest.strip_prefix(',').unwrap_or(rest));
    }
    Ok(out)
}

/// The members of an object, in order, with names decoded.
///
/// # Errors
/// 22P05 for a name that text can't hold.
pub fn members(text: &str) -> Result<Vec<(String, &str)>> {
    let mut rest = space(space(text).strip_prefix('{').unwrap_or(""));
    let mut out = Vec::new();
    while rest.starts_with('"') {
        let (name, after) = rest.split_at(end_of_string(rest));
        let after = space(space(after).strip_prefix(':').unwrap_or(""));
        let (value, after) = after.split_at(end_of_value(after));
        breath::step_bytes(name.len() + value.len() + 16)?;
        out.push((string(name)?, value));
        rest = space(after);
        rest = space(rest.strip_prefix(',').unwrap_or(rest));
    }
    Ok(out)
}

/// The text of a JSON string.
///
/// # Errors
/// 22P05.
pub fn string(text: &str) -> Result<String> {
    Ok(match super::parse::parse(text)? {
        Json::String(s) => s.to_string(),
        other => other.to_string(),
    })
}

/// What `->>` gives of a value: none for null.
///
/// # Errors
/// 22P05.
pub fn as_text(value: &str) -> Result<Option<String>> {
    Ok(match value.as_bytes().first() {
        Some(b'"') => Some(string(value)?),
        Some(b'n') => None,
        _ => Some(value.to_owned()),
    })
}

/// What `json_typeof` says.
pub fn type_name(text: &str) -> &'static str {
    match space(text).as_bytes().first() {
        Some(b'{') => "object",
        Some(b'[') => "array",
        Some(b'"') => "string",
        Some(b't' | b'f') => "boolean",
        Some(b'n') => "null",
        _ => "number",
    }
}

/// The part that a name or number chooses.
///
/// # Errors
/// As [`members`].
pub fn step<'a>(text: &'a str, key: &str) -> Result<Option<&'a str>> {
    match type_name(text) {
        // Of equal names the last one counts.
        "object" => Ok(members(text)?.into_iter().rev().find(|m| m.0 == key).map(|m| m.1)),
        "array" => {
            let Ok(n) = key.trim().parse::<i64>() else { return Ok(None) };
            element(text, n)
        }
        _ => Ok(None),
    }
}

/// An element; a negative number counts from the end.
///
/// # Errors
/// The reason for which the statement must end.
pub fn element(text: &str, n: i64) -> Result<Option<&str>> {
    if type_name(text) != "array" {
        return Ok(None);
    }
    let list = elements(text)?;
    let at = if n < 0 { n + list.len() as i64 } else { n };
    Ok(usize::try_from(at).ok().and_then(|at| list.get(at).copied()))
}
