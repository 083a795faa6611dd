//! COPY FROM in text and csv form: a state machine splits the client's bytes into lines, and lines into values.
//!
//! # Life of a line
//! `push` appends the bytes of a message -> `line` continues where it stopped, and returns the line once its end has come -> `fields`
//! splits it. Returned lines are removed from the buffer once they make up half of it.
//!
//! # Invariants
//! - CPY-1: the search for the end of a line examines each byte once, however many messages the line is made of: the state of quotes and
//!   escapes is kept between messages.
//! - CPY-2: what COPY TO writes with the same options reads back as the same values.
//! - CPY-3: a line has at most [`LINE_BYTES_MAX`] bytes and is charged to the statement's account.
//!
//! # Errors
//! PostgreSQL's of copyfromparse.c: 22P04 for lines, 22021 and 22P05 for bytes that are no text of the encoding, 54000 for a line that is too long.

use super::options::{Form, Format};
use crate::encoding::utf8;
use crate::error::{Result, SqlError, code};
use std::ops::Range;

/// The longest line, in bytes: as long as PostgreSQL's.
pub const LINE_BYTES_MAX: usize = (1 << 30) - 1;

/// How lines end; the first one decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineEnd {
    Unknown,
    Lf,
    Cr,
    CrLf,
}

/// A line's fields: values in one text, and where each of them ends; none: NULL.
#[derive(Debug, Default)]
pub struct Fields {
    text: String,
    /// The text while it is made.
    bytes: Vec<u8>,
    ends: Vec<(usize, bool)>,
}

impl Fields {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// The n-th; none: NULL.
    pub fn get(&self, n: usize) -> Option<&str> {
        let (end, is_null) = self.ends[n];
        let from = if n == 0 { 0 } else { self.ends[n - 1].0 };
        // A part that escapes by number have cut is no text, though all of it is.
        (!is_null).then(|| self.text.get(from..end).unwrap_or_default())
    }

    /// The bytes are the text; false: they are none, and are dropped.
    fn become_text(&mut self) -> bool {
        match String::from_utf8(std::mem::take(&mut self.bytes)) {
            Ok(text) => self.text = text,
            Err(_) => return false,
        }
        true
    }

    /// Whether each value begins and ends between two characters.
    fn are_whole(&self) -> bool {
        self.ends.iter().all(|(end, _)| self.text.is_char_boundary(*end))
    }

    fn clear(&mut self) {
        // The memory is used again.
        self.bytes = std::mem::take(&mut self.text).into_bytes();
        self.bytes.clear();
        self.ends.clear();
    }
}

/// A line without its end.
#[derive(Clone, Debug)]
pub struct Line {
    /// Where it stands in the buffer.
    at: Range<usize>,
    /// There may be escapes of the text form in it, or quotes or escapes of the csv form.
    pub has_escapes: bool,
}

/// Lines of a stream.
pub struct Lines<'a> {
    /// The form in which they are.
    pub form: &'a Form,
    buffer: Vec<u8>,
    /// Where the line begins that has not been given yet.
    start: usize,
    /// What has been passed of it (CPY-1).
    at: usize,
    quoted: bool,
    escaped: bool,
    /// Escapes or quotes have been passed in the line.
    has_escapes: bool,
    line_end: LineEnd,
    /// The end-of-data marker has come: the rest is passed over.
    ended: bool,
    /// The number of the line given last, from 1.
    pub number: u64,
}

fn bad(message: impl Into<String>) -> SqlError {
    SqlError::new("22P04", message)
}

impl<'a> Lines<'a> {
    /// The text that stands for NULL.
    pub fn null(&self) -> &str {
        &self.form.null
    }

    /// Nothing yet.
    pub fn new(form: &'a Form) -> Self {
        Lines {
            form,
            buffer: Vec::new(),
            start: 0,
            at: 0,
            quoted: false,
            escaped: false,
            has_escapes: false,
            line_end: LineEnd::Unknown,
            ended: false,
            number: 0,
        }
    }

    /// The next bytes of the stream.
    ///
    /// # Errors
    /// 54000, 53200 (CPY-3).
    pub fn push(&mut self, bytes: &[u8]) -> Result<()> {
        if self.ended {
            return Ok(());
        }
        if self.start > self.buffer.len() / 2 {
            self.buffer.drain(..self.start);
            self.at -= self.start;
            self.start = 0;
        }
        let line = self.buffer.len() - self.start + bytes.len();
        if self.at - self.start > LINE_BYTES_MAX {
            let message = format!("a line of COPY has more than {LINE_BYTES_MAX} bytes");
            return Err(SqlError::new(code::PROGRAM_LIMIT_EXCEEDED, message));
        }
        if self.buffer.len() + bytes.len() > self.buffer.capacity() {
            clearway_base::memory::claim(line)?;
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    /// A line, which stays the last one of this number until the next one ends.
    fn given(&mut self, at: Range<usize>) -> Line {
        self.number += 1;
        Line { at, has_escapes: std::mem::take(&mut self.has_escapes) }
    }

    /// The bytes of a line.
    pub fn bytes(&self, line: &Line) -> &[u8] {
        &self.buffer[line.at.clone()]
    }

    /// The next line; none: more bytes are needed. `all_here`: there are no more.
    ///
    /// # Errors
    /// 22P04.
    pub fn line(&mut self, all_here: bool) -> Result<Option<Line>> {
        if self.ended {
            return Ok(None);
        }
        let csv = self.form.format == Format::Csv;
        loop {
            let Some(&byte) = self.buffer.get(self.at) else { return self.last(all_here) };
            // A carriage return may be half of an end, a backslash half of an escape: the byte after them decides.
            let next = self.buffer.get(self.at + 1).copied();
            if next.is_none() && !all_here && (byte == b'\r' || (byte == b'\\' && !self.quoted)) {
                return Ok(None);
            }
            if csv {
                self.quotes(byte);
            }
            let outside = !csv || !self.quoted;
            match byte {
                b'\n' | b'\r' if outside => {
                    if let Some(end) = self.end_of_line(byte, next)? {
                        return Ok(end);
                    }
                }
                b'\\' if !csv && next == Some(b'.') => match self.buffer.get(self.at + 2) {
                    None if !all_here => return Ok(None),
                    Some(b'\n' | b'\r') | None if self.at == self.start => self.at += 2,
                    Some(b'\n' | b'\r') | None => return Ok(Some(self.cut_off())),
                    Some(_) => return Err(bad("end-of-copy marker corrupt")),
                },
                b'\\' if !csv => {
                    self.at += if next.is_some() { 2 } else { 1 };
                    self.has_escapes = true;
                }
                _ => {
                    let (x, y) = if csv { (self.form.quote, self.form.escape) } else { (b'\\', b'\\') };
                    self.has_escapes |= csv && (byte == x || byte == y);
                    self.at += 1;
                    self.at += line_len(&self.buffer[self.at..], x, y);
                }
            }
        }
    }

    /// The part of a line before an end-of-data marker.
    fn cut_off(&mut self) -> Line {
        self.ended = true;
        self.given(self.start..self.at)
    }

    fn quotes(&mut self, byte: u8) {
        let (quote, escape) = (self.form.quote, self.form.escape);
        let own_escape = (escape != quote).then_some(escape);
        if self.quoted && Some(byte) == own_escape {
            self.escaped = !self.escaped;
        }
        if byte == quote && !self.escaped {
            self.quoted = !self.quoted;
        }
        if Some(byte) != own_escape {
            self.escaped = false;
        }
    }

    /// A line ends here, or it does not end so. The inner none: the end-of-data marker.
    #[allow(clippy::option_option, reason = "none: go on; some none: the data is over")]
    fn end_of_line(&mut self, byte: u8, next: Option<u8>) -> Result<Option<Option<Line>>> {
        let found = match (byte, next) {
            (b'\r', Some(b'\n')) if matches!(self.line_end, LineEnd::Unknown | LineEnd::CrLf) => LineEnd::CrLf,
            (b'\r', _) => LineEnd::Cr,
            _ => LineEnd::Lf,
        };
        if self.line_end == LineEnd::Unknown {
            self.line_end = found;
        }
        if self.line_end != found {
            return Err(self.literal_end(byte));
        }
        let line = self.given(self.start..self.at);
        self.at += if found == LineEnd::CrLf { 2 } else { 1 };
        self.start = self.at;
        if *self.bytes(&line) == *b"\\." {
            self.ended = true;
            return Ok(Some(None));
        }
        Ok(Some(Some(line)))
    }

    fn literal_end(&self, byte: u8) -> SqlError {
        let csv = self.form.format == Format::Csv;
        let (what, escape) = if byte == b'\r' { ("carriage return", "\\r") } else { ("newline", "\\n") };
        if csv {
            bad(format!("unquoted {what} found in data")).hint(format!("Use quoted CSV field to represent {what}."))
        } else {
            bad(format!("literal {what} found in data")).hint(format!("Use \"{escape}\" to represent {what}."))
        }
    }

    /// The line at the end of the stream, which need not have an end.
    fn last(&mut self, all_here: bool) -> Result<Option<Line>> {
        if !all_here || self.start == self.buffer.len() {
            return Ok(None);
        }
        if self.quoted {
            return Err(bad("unterminated CSV quoted field"));
        }
        let line = self.given(self.start..self.buffer.len());
        (self.start, self.at) = (line.at.end, line.at.end);
        self.ended = true;
        Ok((*self.bytes(&line) != *b"\\.").then_some(line))
    }

    /// A line's text, for contexts of errors; none where it has none in its encoding.
    pub fn text(&self, line: &Line) -> Option<String> {
        self.form.encoding.decode(self.bytes(line)).ok().map(std::borrow::Cow::into_owned)
    }

    /// Takes a line apart. `not_null` and `null` are the columns of the FORCE options.
    ///
    /// # Errors
    /// 22021, 22P04.
    pub fn fields(&self, line: &Line, (not_null, null): (&[bool], &[bool]), out: &mut Fields) -> Result<()> {
        out.clear();
        // Every encoding that is read has one byte a character, and those of ASCII where they are: so lines end where they seem to.
        let encoding = self.form.encoding;
        let bytes = self.bytes(line);
        // The bytes of a line without escapes, and zeros, are those of its values and delimiters, so that its values tell of the whole line whether it is text.
        let has_escapes = line.has_escapes || memchr::memchr(0, bytes).is_some();
        let tells = !encoding.differs() && self.form.format != Format::Csv && !has_escapes;
        if tells {
            self.separated(bytes, out);
            if out.become_text() && out.are_whole() {
                return Ok(());
            }
            out.clear();
        }
        let line = match encoding.decode(bytes) {
            Ok(text) => text,
            // The error shows as many bytes as the first announces, also where they stand in the next line.
            Err(error) if encoding.differs() => return Err(error),
            Err(_) => std::borrow::Cow::Borrowed(utf8(&self.buffer[line.at.start..])?),
        };
        let made_bytes = match self.form.format {
            Format::Csv => self.csv(line.as_bytes(), (not_null, null), out).map(|()| false)?,
            _ => self.separated(line.as_bytes(), out),
        };
        // Escapes by number may have made what is no text.
        if made_bytes {
            utf8(&out.bytes)?;
        }
        assert!(out.become_text() || made_bytes, "what is cut out of a text at bytes of ASCII is a text");
        Ok(())
    }

    /// Takes a line of the text form apart; whether bytes were given by their numbers.
    fn separated(&self, line: &[u8], out: &mut Fields) -> bool {
        let (delimiter, null) = (self.form.delimiter, self.form.null.as_bytes());
        let (mut at, mut made_bytes) = (0, false);
        loop {
            let begin = at;
            loop {
                let rest = &line[at..];
                let plain = plain_len(rest, [delimiter, b'\\']);
                out.bytes.extend_from_slice(&rest[..plain]);
                at += plain;
                if line.get(at) != Some(&b'\\') {
                    break;
                }
                let (byte, len, made) = escape(&line[at..]);
                made_bytes |= made;
                out.bytes.push(byte);
                at += len;
            }
            if line[begin..at] == *null {
                let from = out.ends.last().map_or(0, |e| e.0);
                out.bytes.truncate(from);
                out.ends.push((from, true));
            } else {
                out.ends.push((out.bytes.len(), false));
            }
            if at == line.len() {
                return made_bytes;
            }
            at += 1;
        }
    }

    fn csv(&self, line: &[u8], (not_null, force_null): (&[bool], &[bool]), out: &mut Fields) -> Result<()> {
        let (quote, escape, delimiter) = (self.form.quote, self.form.escape, self.form.delimiter);
        let null = self.form.null.as_bytes();
        let mut at = 0;
        loop {
            let from = out.bytes.len();
            let (mut quoted, mut was_quoted) = (false, false);
            while let Some(&byte) = line.get(at) {
                at += 1;
                if quoted {
                    let next = line.get(at).copied();
                    if byte == escape && (next == Some(quote) || next == Some(escape)) {
                        out.bytes.extend(next);
                        at += 1;
                    } else if byte == quote {
                        quoted = false;
                    } else {
                        out.bytes.push(byte);
                    }
                } else if byte == delimiter {
                    at -= 1;
                    break;
                } else if byte == quote {
                    (quoted, was_quoted) = (true, true);
                } else {
                    out.bytes.push(byte);
                }
            }
            if quoted {
                return Err(bad("unterminated CSV quoted field"));
            }
            let column = out.ends.len();
            let named = |list: &[bool]| list.get(column).copied().unwrap_or(false);
            let is_null = out.bytes[from..] == *null && if was_quoted { named(force_null) } else { !named(not_null) };
            if is_null {
                out.bytes.truncate(from);
            }
            out.ends.push((out.bytes.len(), is_null));
            if at == line.len() {
                return Ok(());
            }
            at += 1;
        }
    }
}

/// How many bytes stand before the first of these.
pub(super) fn plain_len(bytes: &[u8], ends: [u8; 2]) -> usize {
    // Most values are short.
    if let Some((first, _)) = bytes.split_first_chunk::<8>()
        && let at @ 0..8 = plain_of_eight(*first, ends)
    {
        return at;
    }
    memchr::memchr2(ends[0], ends[1], bytes).unwrap_or(bytes.len())
}

/// The same of eight bytes, compared side by side.
#[inline]
fn plain_of_eight(bytes: [u8; 8], ends: [u8; 2]) -> usize {
    const ONES: u64 = u64::MAX / 255;
    let word = u64::from_le_bytes(bytes);
    let mut found = 0;
    for end in ends {
        // Its lowest bit of this kind stands where the first byte is zero that is: borrows go upward alone.
        let zeros = word ^ (ONES * u64::from(end));
        found |= zeros.wrapping_sub(ONES) & !zeros & (ONES << 7);
    }
    found.trailing_zeros() as usize / 8
}

/// How many bytes stand before the first that may end a line, or is one of these.
fn line_len(bytes: &[u8], x: u8, y: u8) -> usize {
    let len = memchr::memchr3(b'\n', b'\r', x, bytes).unwrap_or(bytes.len());
    if x == y { len } else { memchr::memchr(y, &bytes[..len]).unwrap_or(len) }
}

/// What a backslash and the bytes after it stand for, how many bytes they are, and whether the byte was given by its number.
fn escape(bytes: &[u8]) -> (u8, usize, bool) {
    let digits = |from: usize, max: usize, radix: u32| {
        let found = bytes[from..].iter().take(max).map_while(|b| char::from(*b).to_digit(radix));
        found.fold((0u32, 0usize), |(value, len), digit| (value * radix + digit, len + 1))
    };
    match bytes.get(1) {
        None => (b'\\', 1, false),
        Some(b'b') => (8, 2, false),
        Some(b'f') => (12, 2, false),
        Some(b'n') => (b'\n', 2, false),
        Some(b'r') => (b'\r', 2, false),
        Some(b't') => (b'\t', 2, false),
        Some(b'v') => (11, 2, false),
        Some(b'0'..=b'7') => {
            let (value, len) = digits(1, 3, 8);
            (value as u8, 1 + len, true)
        }
        Some(b'x') if bytes.get(2).is_some_and(u8::is_ascii_hexdigit) => {
            let (value, len) = digits(2, 2, 16);
            (value as u8, 2 + len, true)
        }
        Some(other) => (*other, 2, false),
    }
}

#[cfg(test)]
mod tests {
    use super::super::options::{Forced, Header};
    use super::*;
    use crate::encoding::Encoding;

    fn form(format: Format) -> Form {
        let csv = format == Format::Csv;
        Form {
            format,
            delimiter: if csv { b',' } else { b'\t' },
            null: if csv { String::new() } else { "\\N".to_owned() },
            header: Header::None,
            quote: b'"',
            escape: b'"',
            force_quote: Forced::None,
            force_not_null: Forced::None,
            force_null: Forced::None,
            encoding: Encoding::UTF8,
        }
    }

    type Values = Vec<Vec<Option<String>>>;

    fn read(form: &Form, stream: &[u8], piece: usize) -> Result<Values> {
        let (mut lines, mut fields, mut out) = (Lines::new(form), Fields::default(), Vec::new());
        for (n, part) in stream.chunks(piece).enumerate() {
            lines.push(part)?;
            let all_here = (n + 1) * piece >= stream.len();
            while let Some(line) = lines.line(all_here)? {
                lines.fields(&line, (&[], &[]), &mut fields)?;
                out.push((0..fields.len()).map(|i| fields.get(i).map(str::to_owned)).collect());
            }
        }
        Ok(out)
    }

    #[test]
    fn a_line_reads_the_same_however_it_is_cut() {
        // What is plain for longer than the pieces of `plain_len`.
        let long = "ab c".repeat(20);
        let text = format!("a\\tb{long}\t\\N\tc{long}\\\nd\r\n{long}e\\x41\\101\tf\t\\\\N\r\n\\.\r\nrest").into_bytes();
        let csv = format!("a,\"b{long}\n\"\"x\"\"\",,\"\"\n\"\\.{long}\",1,2,{long}\n\\.\nrest").into_bytes();
        for (format, stream) in [(Format::Text, text), (Format::Csv, csv)] {
            let form = form(format);
            let whole = read(&form, &stream, stream.len()).expect("well formed");
            for piece in 1..stream.len() {
                assert_eq!(read(&form, &stream, piece).expect("well formed"), whole, "CPY-1: {piece} bytes a piece");
            }
            assert_eq!(whole.len(), 2, "{whole:?}");
        }
    }

    #[test]
    fn csv_with_an_escape_of_its_own_does_not_join_lines() {
        let form = Form { escape: b'\\', ..form(Format::Csv) };
        let rows = read(&form, b"\"a\\\"b\",1\n\"c\\\\\",2\n", 3).expect("well formed");
        let own = |list: &[&str]| list.iter().map(|s| Some((*s).to_owned())).collect::<Vec<_>>();
        assert_eq!(rows, [own(&["a\"b", "1"]), own(&["c\\", "2"])]);
    }

    #[test]
    fn a_line_that_is_no_text_is_refused_wherever_its_bytes_stand() {
        let text = form(Format::Text);
        // A delimiter and an escape within a character; a zero; a byte alone.
        for line in [&b"a\xe2\t\x82\xac\n"[..], b"\xe2\\\x82\xac\n", b"a\tb\0\n", b"x\xff\ty\n"] {
            let error = read(&text, line, 100).expect_err("no text");
            assert_eq!(error.code(), "22021", "{line:?}: {error:?}");
        }
        let rows = read(&text, "a\té€\t\n".as_bytes(), 100).expect("well formed");
        assert_eq!(rows, [["a", "é€", ""].map(|s| Some(s.to_owned())).to_vec()]);
    }

    #[test]
    fn plain_bytes_end_at_the_first_of_the_ends() {
        let mut rng = clearway_base::testkit::Rng::new(7);
        for len in 0..100 {
            let bytes: Vec<u8> =
                (0..len).map(|_| if rng.chance(1, 40) { rng.below(4) as u8 } else { rng.below(256) as u8 }).collect();
            let before = |ends: &[u8]| bytes.iter().position(|b| ends.contains(b)).unwrap_or(len);
            assert_eq!(plain_len(&bytes, [0, 255]), before(&[0, 255]), "{bytes:?}");
            assert_eq!(line_len(&bytes, 0, 0), before(b"\n\r\0"), "{bytes:?}");
            assert_eq!(line_len(&bytes, 0, 255), before(b"\n\r\0\xff"), "{bytes:?}");
        }
    }

    #[test]
    fn mixed_ends_of_lines_are_refused_as_in_postgresql() {
        let error = read(&form(Format::Text), b"a\nb\rc\n", 100).expect_err("mixed");
        assert_eq!((error.code(), error.message()), ("22P04", "literal carriage return found in data"));
        let error = read(&form(Format::Csv), b"a\r\nb\nc\r\n", 100).expect_err("mixed");
        assert_eq!(error.message(), "unquoted newline found in data");
    }
}
