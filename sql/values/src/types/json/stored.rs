//! jsonb on disk: a byte for the kind of a value, then what it holds; lengths and counts are four bytes, little-endian.

use super::document::{DEPTH_MAX, Json};
use crate::types::Numeric;
use clearway_base::stack;
use std::sync::Arc;

/// The first byte of every stored document.
const VERSION: u8 = 1;

/// The stored form of a document.
pub fn encode(json: &Json) -> Vec<u8> {
    let mut out = vec![VERSION];
    write(json, &mut out);
    out
}

fn length(n: usize, out: &mut Vec<u8>) {
    out.extend((n as u32).to_le_bytes());
}

fn write(json: &Json, out: &mut Vec<u8>) {
    let text = |kind: u8, text: &str, out: &mut Vec<u8>| {
        out.push(kind);
        length(text.len(), out);
        out.extend(text.as_bytes());
    };
    match json {
        Json::Null => out.push(b'n'),
        Json::Bool(b) => out.push(if *b { b't' } else { b'f' }),
        Json::Number(n) => text(b'#', &n.to_string(), out),
        Json::String(s) | Json::Moment(_, s) => text(b's', s, out),
        Json::Array(list) => {
            out.push(b'[');
            length(list.len(), out);
            list.iter().for_each(|v| stack::deeper(|| write(v, out)));
        }
        Json::Object(list) => {
            out.push(b'{');
            length(list.len(), out);
            for (k, v) in list {
                length(k.len(), out);
                out.extend(k.as_bytes());
                stack::deeper(|| write(v, out));
            }
        }
    }
}

/// The document of a stored form; none: the bytes are none.
pub fn decode(bytes: &[u8]) -> Option<Json> {
    let (version, mut rest) = bytes.split_first()?;
    let json = read(&mut rest, 0)?;
    (*version == VERSION && rest.is_empty()).then_some(json)
}

fn count(rest: &mut &[u8]) -> Option<usize> {
    let (head, tail) = rest.split_first_chunk::<4>()?;
    *rest = tail;
    // Each of what is counted has a byte at least.
    Some(u32::from_le_bytes(*head) as usize).filter(|n| *n <= tail.len())
}

fn text<'a>(rest: &mut &'a [u8]) -> Option<&'a str> {
    let len = count(rest)?;
    let (head, tail) = rest.split_at_checked(len)?;
    *rest = tail;
    std::str::from_utf8(head).ok()
}

fn read(rest: &mut &[u8], depth: usize) -> Option<Json> {
    let (kind, tail) = rest.split_first()?;
    *rest = tail;
    if depth > DEPTH_MAX + 1 {
        return None;
    }
    Some(match kind {
        b'n' => Json::Null,
        b't' => Json::Bool(true),
        b'f' => Json::Bool(false),
        b'#' => Json::number(Numeric::parse(text(rest)?)?.ok()?),
        b's' => Json::string(text(rest)?),
        b'[' => {
            let n = count(rest)?;
            Json::Array((0..n).map(|_| stack::deeper(|| read(rest, depth + 1))).collect::<Option<_>>()?)
        }
        b'{' => {
            let n = count(rest)?;
            let member = |_| {
                let name: Arc<str> = text(rest)?.into();
                Some((name, stack::deeper(|| read(rest, depth + 1))?))
            };
            Json::Object((0..n).map(member).collect::<Option<_>>()?)
        }
        _ => return None,
    })
}
