//! Encodings of a client's text: what the server keeps is UTF-8, what a client, a file or `convert_to` wants may be another of PostgreSQL's.
//!
//! # Invariants
//! - ENC-1: what `encode` gives for a text, `decode` reads back as the same text.
//! - ENC-2: a text of ASCII characters alone has the same bytes in every encoding; it is neither copied nor looked up.
//!
//! # Errors
//! PostgreSQL's: 22021 for bytes that are no text of the encoding, 22P05 for a character that the other encoding does not have.
//!
//! # Not here
//! Encodings of more than one byte a character are known by name, and refused (0A000). SQL_ASCII takes the bytes as they are, and they have to be UTF-8.

mod single;

use std::borrow::Cow;
use std::sync::OnceLock;

use crate::error::{Result, SqlError, code};
use clearway_base::breath;
use single::Upper;

/// Bytes between two looks for a cancel.
const PIECE: usize = 4 << 10;

/// How bytes become characters.
enum Form {
    Utf8,
    /// The bytes are taken as they are.
    Ascii,
    /// One byte a character: those from 0x80 on are looked up.
    Single(&'static Upper),
    /// Known, and not converted.
    Refused,
}

struct Known {
    name: &'static str,
    /// Other names, in small letters and digits.
    aliases: &'static [&'static str],
    /// The most bytes that a character has.
    max_length: i32,
    form: Form,
}

const fn of(name: &'static str, aliases: &'static [&'static str], max_length: i32, form: Form) -> Known {
    Known { name, aliases, max_length, form }
}

const fn one(name: &'static str, aliases: &'static [&'static str], upper: &'static Upper) -> Known {
    of(name, aliases, 1, Form::Single(upper))
}

/// In the order of PostgreSQL's numbers (pg_wchar.h).
static ENCODINGS: [Known; 42] = [
    of("SQL_ASCII", &[], 1, Form::Ascii),
    of("EUC_JP", &[], 3, Form::Refused),
    of("EUC_CN", &[], 3, Form::Refused),
    of("EUC_KR", &[], 3, Form::Refused),
    of("EUC_TW", &[], 4, Form::Refused),
    of("EUC_JIS_2004", &[], 3, Form::Refused),
    of("UTF8", &["unicode"], 4, Form::Utf8),
    of("MULE_INTERNAL", &[], 4, Form::Refused),
    one("LATIN1", &["iso88591"], &single::LATIN1),
    one("LATIN2", &["iso88592"], &single::LATIN2),
    one("LATIN3", &["iso88593"], &single::LATIN3),
    one("LATIN4", &["iso88594"], &single::LATIN4),
    one("LATIN5", &["iso88599"], &single::LATIN5),
    one("LATIN6", &["iso885910"], &single::LATIN6),
    one("LATIN7", &["iso885913"], &single::LATIN7),
    one("LATIN8", &["iso885914"], &single::LATIN8),
    one("LATIN9", &["iso885915"], &single::LATIN9),
    one("LATIN10", &["iso885916"], &single::LATIN10),
    one("WIN1256", &["windows1256"], &single::WIN1256),
    one("WIN1258", &["windows1258", "abc", "tcvn", "tcvn5712", "vscii"], &single::WIN1258),
    one("WIN866", &["windows866", "alt"], &single::WIN866),
    one("WIN874", &["windows874"], &single::WIN874),
    one("KOI8R", &["koi8"], &single::KOI8R),
    one("WIN1251", &["windows1251", "win"], &single::WIN1251),
    one("WIN1252", &["windows1252"], &single::WIN1252),
    one("ISO_8859_5", &[], &single::ISO_8859_5),
    one("ISO_8859_6", &[], &single::ISO_8859_6),
    one("ISO_8859_7", &[], &single::ISO_8859_7),
    one("ISO_8859_8", &[], &single::ISO_8859_8),
    one("WIN1250", &["windows1250"], &single::WIN1250),
    one("WIN1253", &["windows1253"], &single::WIN1253),
    one("WIN1254", &["windows1254"], &single::WIN1254),
    one("WIN1255", &["windows1255"], &single::WIN1255),
    one("WIN1257", &["windows1257"], &single::WIN1257),
    one("KOI8U", &[], &single::KOI8U),
    of("SJIS", &["shiftjis", "mskanji", "win932", "windows932"], 2, Form::Refused),
    of("BIG5", &["win950", "windows950"], 2, Form::Refused),
    of("GBK", &["win936", "windows936"], 2, Form::Refused),
    of("UHC", &["win949", "windows949"], 2, Form::Refused),
    of("GB18030", &[], 4, Form::Refused),
    of("JOHAB", &[], 3, Form::Refused),
    of("SHIFT_JIS_2004", &[], 2, Form::Refused),
];

/// An encoding that PostgreSQL knows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Encoding(u8);

impl std::fmt::Debug for Encoding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl Encoding {
    /// The encoding of all that is kept.
    pub const UTF8: Encoding = Encoding(6);

    /// The encoding of a name, of which only letters and digits count.
    pub fn find(name: &str) -> Option<Encoding> {
        let plain =
            |name: &str| name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
        let wanted = plain(name);
        let at = ENCODINGS.iter().position(|e| plain(e.name) == wanted || e.aliases.contains(&wanted.as_str()))?;
        u8::try_from(at).ok().map(Encoding)
    }

    /// The encoding of a number of PostgreSQL's.
    pub fn of_number(number: i64) -> Option<Encoding> {
        u8::try_from(number).ok().filter(|n| usize::from(*n) < ENCODINGS.len()).map(Encoding)
    }

    /// The number.
    pub fn number(self) -> i32 {
        i32::from(self.0)
    }

    fn known(self) -> &'static Known {
        &ENCODINGS[usize::from(self.0)]
    }

    /// The name as PostgreSQL shows it.
    pub fn name(self) -> &'static str {
        self.known().name
    }

    /// The most bytes that a character has.
    pub fn max_length(self) -> i32 {
        self.known().max_length
    }

    /// Whether text in it can become UTF-8 and the other way.
    pub fn is_supported(self) -> bool {
        !matches!(self.known().form, Form::Refused)
    }

    /// Whether its bytes differ from those of UTF-8.
    #[inline]
    pub fn differs(self) -> bool {
        self != Self::UTF8 && matches!(self.known().form, Form::Single(_))
    }

    /// Whether PostgreSQL has a conversion from this encoding to that one: from and to UTF8, and between some of one language.
    pub fn has_conversion_to(self, other: Encoding) -> bool {
        let languages: [&[&str]; 2] = [&["LATIN2", "WIN1250"], &["ISO_8859_5", "KOI8R", "WIN1251", "WIN866"]];
        let of_one = |names: &&[&str]| names.contains(&self.name()) && names.contains(&other.name());
        let keeps = |e: Encoding| matches!(e.known().form, Form::Utf8 | Form::Ascii);
        self == other || keeps(self) || keeps(other) || languages.iter().any(of_one)
    }

    /// The text of bytes in this encoding.
    ///
    /// # Errors
    /// 22021, 22P05; 0A000 for an encoding that is not converted.
    pub fn decode(self, bytes: &[u8]) -> Result<Cow<'_, str>> {
        match self.known().form {
            Form::Utf8 | Form::Ascii => utf8(bytes).map(Cow::Borrowed),
            Form::Refused => Err(self.refused()),
            Form::Single(upper) => {
                if bytes.contains(&0) {
                    return Err(self.invalid(&[0]));
                }
                // ENC-2
                if bytes.is_ascii() {
                    return utf8(bytes).map(Cow::Borrowed);
                }
                let mut text = String::with_capacity(bytes.len() + bytes.len() / 4);
                for piece in bytes.chunks(PIECE) {
                    breath::step_bytes(piece.len())?;
                    for &byte in piece {
                        text.push(character(upper, byte).ok_or_else(|| no_equivalent(self, Encoding::UTF8, &[byte]))?);
                    }
                }
                Ok(Cow::Owned(text))
            }
        }
    }

    /// The bytes of a text in this encoding.
    ///
    /// # Errors
    /// 22P05; 0A000 for an encoding that is not converted.
    pub fn encode(self, text: &str) -> Result<Cow<'_, [u8]>> {
        match self.known().form {
            Form::Utf8 | Form::Ascii => Ok(Cow::Borrowed(text.as_bytes())),
            Form::Refused => Err(self.refused()),
            Form::Single(_) if text.is_ascii() => Ok(Cow::Borrowed(text.as_bytes())), // ENC-2
            Form::Single(_) => {
                let mut bytes = Vec::with_capacity(text.len());
                for c in text.chars() {
                    bytes.push(self.byte(c)?);
                    if bytes.len().is_multiple_of(PIECE) {
                        breath::step_bytes(PIECE)?;
                    }
                }
                Ok(Cow::Owned(bytes))
            }
        }
    }

    /// The same, with a question mark for each character that the encoding does not have: for what can't fail, as an error's text.
    pub fn encode_lossy(self, text: &str) -> Cow<'_, [u8]> {
        match self.encode(text) {
            Ok(bytes) => bytes,
            Err(_) => Cow::Owned(text.chars().map(|c| self.byte(c).unwrap_or(b'?')).collect()),
        }
    }

    fn byte(self, c: char) -> Result<u8> {
        if c.is_ascii() {
            return Ok(c as u8);
        }
        let back = self.back();
        let found = u16::try_from(u32::from(c)).ok().and_then(|c| back.binary_search_by_key(&c, |(c, _)| *c).ok());
        found
            .map(|at| back[at].1)
            .ok_or_else(|| no_equivalent(Encoding::UTF8, self, c.encode_utf8(&mut [0; 4]).as_bytes()))
    }

    /// The characters that bytes from 0x80 on stand for, in order, with the byte of each.
    fn back(self) -> &'static [(u16, u8)] {
        static BACK: [OnceLock<Vec<(u16, u8)>>; ENCODINGS.len()] = [const { OnceLock::new() }; ENCODINGS.len()];
        BACK[usize::from(self.0)].get_or_init(|| {
            let Form::Single(upper) = self.known().form else { return Vec::new() };
            let bytes = upper.iter().zip(0x80..=0xffu8).filter(|(c, _)| **c != 0).map(|(c, byte)| (*c, byte));
            let mut back: Vec<(u16, u8)> = bytes.collect();
            back.sort_unstable();
            back
        })
    }

    /// The error for one that is not converted: 0A000.
    pub fn refused(self) -> SqlError {
        SqlError::new(
            code::FEATURE_NOT_SUPPORTED,
            format!("conversion between {} and UTF8 is not supported", self.name()),
        )
    }

    fn invalid(self, bytes: &[u8]) -> SqlError {
        let message = format!("invalid byte sequence for encoding \"{}\": {}", self.name(), shown(bytes));
        SqlError::new(code::CHARACTER_NOT_IN_REPERTOIRE, message)
    }
}

fn character(upper: &Upper, byte: u8) -> Option<char> {
    match byte.checked_sub(0x80) {
        None => Some(char::from(byte)),
        Some(at) => Some(upper[usize::from(at)]).filter(|c| *c != 0).and_then(|c| char::from_u32(c.into())),
    }
}

fn no_equivalent(from: Encoding, to: Encoding, bytes: &[u8]) -> SqlError {
    let (from, to) = (from.name(), to.name());
    let bytes = shown(bytes);
    let message =
        format!("character with byte sequence {bytes} in encoding \"{from}\" has no equivalent in encoding \"{to}\"");
    SqlError::new("22P05", message)
}

fn shown(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("0x{b:02x}")).collect::<Vec<_>>().join(" ")
}

/// Bytes as text, which has no zero byte.
///
/// # Errors
/// 22021 with the first bytes that are none: as many as the first of them announces.
pub fn utf8(bytes: &[u8]) -> Result<&str> {
    let bad_at = match std::str::from_utf8(bytes) {
        // Several bytes at a time; a zero is rare.
        Ok(text) if !bytes.contains(&0) => return Ok(text),
        Ok(_) => bytes.iter().position(|b| *b == 0).unwrap_or(0),
        Err(e) => e.valid_up_to().min(bytes.iter().position(|b| *b == 0).unwrap_or(usize::MAX)),
    };
    let rest = &bytes[bad_at..];
    let announced = match rest.first() {
        Some(0xc0..=0xdf) => 2,
        Some(0xe0..=0xef) => 3,
        Some(0xf0..=0xf7) => 4,
        _ => 1,
    };
    Err(Encoding::UTF8.invalid(&rest[..announced.min(rest.len())]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_read_back() {
        for number in 0.. {
            let Some(encoding) = Encoding::of_number(number) else { break };
            assert_eq!(Encoding::find(encoding.name()), Some(encoding));
            let Form::Single(upper) = encoding.known().form else { continue };
            for byte in 1..=255u8 {
                let Some(c) = character(upper, byte) else {
                    assert_eq!(encoding.decode(&[byte]).expect_err("no character").code(), "22P05");
                    continue;
                };
                let text = c.to_string();
                assert_eq!(encoding.decode(&[byte]).expect("a character"), text);
                assert_eq!(&*encoding.encode(&text).expect("a byte"), [byte], "ENC-1: {encoding:?} {c:?}");
            }
        }
    }

    #[test]
    fn names_are_compared_by_letters_and_digits() {
        assert_eq!(Encoding::find("iso-8859-15").map(Encoding::name), Some("LATIN9"));
        assert_eq!(Encoding::find("Windows-1252").map(Encoding::name), Some("WIN1252"));
        assert_eq!(Encoding::find("sql_ascii").map(Encoding::number), Some(0));
        assert_eq!(Encoding::find("latin11"), None);
    }

    #[test]
    fn a_message_shows_the_bytes_of_the_character_that_failed() {
        let latin1 = Encoding::find("latin1").expect("known");
        let error = latin1.encode("a\u{20ac}").expect_err("no euro");
        assert_eq!(
            error.message(),
            "character with byte sequence 0xe2 0x82 0xac in encoding \"UTF8\" has no equivalent in encoding \"LATIN1\""
        );
        assert_eq!(&*latin1.encode_lossy("\u{e9}\u{20ac}"), b"\xe9?");
        let error = utf8(b"ab\xc3(").expect_err("half a character");
        assert_eq!(error.message(), "invalid byte sequence for encoding \"UTF8\": 0xc3 0x28");
    }
}
