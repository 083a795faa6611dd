//! Tags that frameworks write into a comment behind a statement (sqlcommenter): `/*controller='users',route='%2Fusers'*/`.
//!
//! # Not here
//! `traceparent` and `tracestate`: their values differ in each request, so no statistics can be grouped by them.

/// Tags of a statement and their text are no longer than this.
const TAGS_MAX: usize = 512;

/// The tags of a statement as `key=value`, sorted, with commas between; empty where it has none.
pub fn of(sql: &str) -> String {
    let text = sql.trim_end().trim_end_matches(';').trim_end();
    let Some(inner) = text.strip_suffix("*/").and_then(|text| text.rsplit_once("/*")).map(|(_, inner)| inner.trim())
    else {
        return String::new();
    };
    if inner.len() > TAGS_MAX {
        return String::new();
    }
    let Some(mut tags) = inner.split(',').map(tag).collect::<Option<Vec<_>>>() else { return String::new() };
    tags.retain(|(key, _)| !matches!(key.as_str(), "traceparent" | "tracestate"));
    tags.sort_unstable();
    tags.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(",")
}

/// `key='value'`, both with the escapes of URLs; none: it is none, and the comment is an ordinary one.
fn tag(text: &str) -> Option<(String, String)> {
    let (key, value) = text.trim().split_once('=')?;
    let value = value.strip_prefix('\'')?.strip_suffix('\'')?;
    let plain =
        !key.is_empty() && key.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'%'));
    plain.then(|| (unescaped(key), unescaped(&value.replace("\\'", "'"))))
}

/// Decodes the escapes of URLs; an invalid escape is left as it is.
fn unescaped(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        let mut rest = bytes.clone();
        let digits = (byte == b'%').then(|| Some((rest.next()?, rest.next()?))).flatten();
        let digit = |b: u8| char::from(b).to_digit(16);
        match digits.and_then(|(high, low)| Some(digit(high)? * 16 + digit(low)?)) {
            Some(escaped) => {
                out.push(escaped as u8);
                bytes = rest;
            }
            None => out.push(byte),
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::of;

    #[test]
    fn tags_are_read_as_sqlcommenter_writes_them() {
        let sql = "SELECT 1 /*route='%2Fpolls%201',application='shop',traceparent='00-5bd-e9-01'*/;";
        assert_eq!(of(sql), "application=shop,route=/polls 1");
        for plain in
            ["select 1", "select 1 /* what = this */", "select 1 /*a='1'", "/*a='1'*/ select 1", "select 1 /**/"]
        {
            assert_eq!(of(plain), "", "{plain}");
        }
        assert_eq!(of("select 1 /*a='100%'*/"), "a=100%");
        assert_eq!(of("select 1 /*a='%ff'*/"), "a=\u{fffd}");
    }
}
