//! Writes JSON text as PostgreSQL shows jsonb.

use super::document::Json;
use std::fmt;

/// A string in quotes, escaped as PostgreSQL's `escape_json` does.
pub fn escape(text: &str, out: &mut String) {
    out.push('"');
    let mut from = 0;
    for (i, b) in text.bytes().enumerate() {
        let short = match b {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            8 => "\\b",
            12 => "\\f",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0..=0x1f => "",
            _ => continue,
        };
        out.push_str(&text[from..i]);
        from = i + 1;
        if short.is_empty() {
            out.push_str(&format!("\\u{b:04x}"));
        } else {
            out.push_str(short);
        }
    }
    out.push_str(&text[from..]);
    out.push('"');
}

/// Writes a document; with an indent each part on its own line.
fn write(json: &Json, indent: Option<usize>, out: &mut String) {
    let line = |level: usize, out: &mut String| {
        out.push('\n');
        out.extend(std::iter::repeat_n(' ', 4 * level));
    };
    match json {
        Json::Null => out.push_str("null"),
        Json::Bool(b) => out.push_str(if *b { "true" } else { "false" }),
        Json::Number(n) => out.push_str(&n.to_string()),
        Json::String(s) | Json::Moment(_, s) => escape(s, out),
        Json::Array(list) => {
            out.push('[');
            for (i, v) in list.iter().enumerate() {
                separate(i, indent.is_some(), out);
                if let Some(level) = indent {
                    line(level + 1, out);
                }
                clearway_base::stack::deeper(|| write(v, indent.map(|l| l + 1), out));
            }
            if let Some(level) = indent {
                line(level, out);
            }
            out.push(']');
        }
        Json::Object(list) => {
            out.push('{');
            for (i, (k, v)) in list.iter().enumerate() {
                separate(i, indent.is_some(), out);
                if let Some(level) = indent {
                    line(level + 1, out);
                }
                escape(k, out);
                out.push_str(": ");
                clearway_base::stack::deeper(|| write(v, indent.map(|l| l + 1), out));
            }
            if let Some(level) = indent {
                line(level, out);
            }
            out.push('}');
        }
    }
}

fn separate(i: usize, lines: bool, out: &mut String) {
    if i > 0 {
        out.push_str(if lines { "," } else { ", " });
    }
}

/// What `jsonb_pretty` gives.
pub fn pretty(json: &Json) -> String {
    let mut out = String::new();
    write(json, Some(0), &mut out);
    out
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = String::new();
        write(self, None, &mut out);
        f.write_str(&out)
    }
}
