//! Finds where a statement ends: at a semicolon outside of strings, quoted names, comments and dollar quotes. A backslash outside of
//! these begins a command of the shell.

/// What a text begins with.
#[derive(Debug, PartialEq, Eq)]
pub enum First {
    /// A statement, which ends before this byte: just behind its semicolon.
    Statement(usize),
    /// A part of a statement, or nothing, and at this byte the backslash of a command.
    Command(usize),
}

/// What a text begins with; `None` while that is not complete.
pub fn first(text: &str) -> Option<First> {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        at = match byte {
            b';' => return Some(First::Statement(at + 1)),
            b'\\' => return Some(First::Command(at)),
            b'\'' => quoted(bytes, at + 1, b'\'', escapes(bytes, at))?,
            b'"' => quoted(bytes, at + 1, b'"', false)?,
            b'-' if bytes.get(at + 1) == Some(&b'-') => at + bytes[at..].iter().position(|&b| b == b'\n')? + 1,
            b'/' if bytes.get(at + 1) == Some(&b'*') => comment(bytes, at + 2)?,
            b'$' => match dollar_tag(&text[at..]) {
                Some(tag) => at + tag.len() + text[at + tag.len()..].find(tag)? + tag.len(),
                None => at + 1,
            },
            _ => at + 1,
        };
    }
    None
}

/// Whether a text holds nothing but blanks and comments.
pub fn is_blank(text: &str) -> bool {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        at = match byte {
            b'-' if bytes.get(at + 1) == Some(&b'-') => match bytes[at..].iter().position(|&b| b == b'\n') {
                Some(length) => at + length,
                None => return true,
            },
            b'/' if bytes.get(at + 1) == Some(&b'*') => match comment(bytes, at + 2) {
                Some(end) => end,
                None => return false,
            },
            byte if byte.is_ascii_whitespace() => at + 1,
            _ => return false,
        };
    }
    true
}

/// `E'...'`: a backslash protects what follows it.
fn escapes(bytes: &[u8], quote: usize) -> bool {
    let before = |back: usize| quote.checked_sub(back).and_then(|at| bytes.get(at));
    matches!(before(1), Some(b'e' | b'E')) && !before(2).is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_')
}

fn quoted(bytes: &[u8], mut at: usize, quote: u8, escapes: bool) -> Option<usize> {
    loop {
        match *bytes.get(at)? {
            b'\\' if escapes => at += 2,
            byte if byte == quote && bytes.get(at + 1) == Some(&quote) => at += 2,
            byte if byte == quote => return Some(at + 1),
            _ => at += 1,
        }
    }
}

/// Comments nest.
fn comment(bytes: &[u8], mut at: usize) -> Option<usize> {
    let mut depth = 1;
    while depth > 0 {
        let two = bytes.get(at..at + 2)?;
        (depth, at) = match two {
            b"*/" => (depth - 1, at + 2),
            b"/*" => (depth + 1, at + 2),
            _ => (depth, at + 1),
        };
    }
    Some(at)
}

/// `$tag$` at the start of a text; a parameter such as `$1` is none.
fn dollar_tag(text: &str) -> Option<&str> {
    let end = text[1..].find('$')? + 1;
    let name = &text[1..end];
    let sound =
        name.chars().all(|c| c.is_alphanumeric() || c == '_') && !name.starts_with(|c: char| c.is_ascii_digit());
    sound.then(|| &text[..=end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_end_where_they_end() {
        for (text, end) in [
            ("select 1; select 2", Some(9)),
            ("select ';'", None),
            ("select 'it''s;';", Some(16)),
            (r"select E'\';';", Some(14)),
            (r"select '\';", Some(11)),
            ("select \";\";", Some(11)),
            ("-- a; b\n;", Some(9)),
            ("-- a; b", None),
            ("/* ; /* ; */ ; */;", Some(18)),
            ("select $$ ; $$;", Some(15)),
            ("select $a$ ; $$ ; $a$;", Some(22)),
            ("select $1;", Some(10)),
            ("select $a$ ;", None),
            (r"-- \x", None),
            (r"select $$ \x $$", None),
        ] {
            assert_eq!(first(text), end.map(First::Statement), "{text}");
        }
        assert_eq!(first(r"select '\', 1 \g"), Some(First::Command(14)));
        assert_eq!(first(r"\x"), Some(First::Command(0)));
        assert!(is_blank(" \n-- x\n/* y */ ") && is_blank("--") && !is_blank("/* x") && !is_blank("a"));
    }
}
