//! Messages of a client whose text is not UTF-8: what comes is brought to UTF-8 before it is decoded, what was written as UTF-8 is encoded behind that.
//!
//! Values in the binary form and rows are not touched: the session knows their types. COPY data is the session's, too.

use clearway_sql::SqlError;
use clearway_sql::encoding::Encoding;

use super::WireError;
use super::reader::Reader;

/// Why a body could not be rewritten.
enum Fault {
    /// It is not as it has to be: the decoder says how.
    Frame,
    /// Its text is none of the encoding.
    Text(SqlError),
}

impl From<WireError> for Fault {
    fn from(_: WireError) -> Self {
        Fault::Frame
    }
}

/// A body on its way to UTF-8.
struct Rewriting<'a> {
    rest: Reader<'a>,
    out: Vec<u8>,
    encoding: Encoding,
}

impl Rewriting<'_> {
    /// Bytes that are no text.
    fn plain(&mut self, count: usize) -> Result<(), Fault> {
        self.out.extend_from_slice(self.rest.bytes(count)?);
        Ok(())
    }

    /// A string with its zero byte.
    fn string(&mut self) -> Result<(), Fault> {
        let end = self.rest.0.iter().position(|&byte| byte == 0).ok_or(Fault::Frame)?;
        let text = self.encoding.decode(self.rest.bytes(end)?).map_err(Fault::Text)?;
        self.out.extend_from_slice(text.as_bytes());
        self.plain(1)
    }

    /// Format codes and the values behind them, of which those in the text form are text.
    fn values(&mut self) -> Result<(), Fault> {
        let mut formats = Vec::new();
        let count = self.count(2)?;
        for _ in 0..count {
            let code = self.rest.i16()?;
            formats.push(code);
            self.out.extend_from_slice(&code.to_be_bytes());
        }
        for i in 0..self.count(4)? {
            let length = self.rest.i32()?;
            let Ok(length) = usize::try_from(length) else {
                self.out.extend_from_slice(&length.to_be_bytes());
                continue;
            };
            let bytes = self.rest.bytes(length)?;
            let format = if formats.len() == 1 { formats.first() } else { formats.get(i) };
            let text = match format {
                Some(1) => None,
                _ => Some(self.encoding.decode(bytes).map_err(Fault::Text)?),
            };
            let value = text.as_ref().map_or(bytes, |text| text.as_bytes());
            // A message has at most 1 GiB, and a character of it at most three bytes in UTF-8.
            let length = i32::try_from(value.len()).map_err(|_| Fault::Frame)?;
            self.out.extend_from_slice(&length.to_be_bytes());
            self.out.extend_from_slice(value);
        }
        Ok(())
    }

    fn count(&mut self, item_bytes: usize) -> Result<usize, Fault> {
        let count = self.rest.count(item_bytes)?;
        self.out.extend_from_slice(&u16::try_from(count).unwrap_or(u16::MAX).to_be_bytes());
        Ok(count)
    }

    fn body(&mut self, tag: u8) -> Result<(), Fault> {
        match tag {
            b'Q' | b'f' | b'E' => self.string()?,
            b'P' => {
                self.string()?;
                self.string()?;
            }
            b'D' | b'C' => {
                self.plain(1)?;
                self.string()?;
            }
            b'B' => {
                self.string()?;
                self.string()?;
                self.values()?;
            }
            b'F' => {
                self.plain(4)?;
                self.values()?;
            }
            _ => {}
        }
        self.plain(self.rest.0.len())
    }
}

/// A client's message with its text in UTF-8; none: it is the same.
///
/// # Errors
/// 22021, 22P05.
pub fn to_utf8(encoding: Encoding, tag: u8, body: &[u8]) -> Result<Option<Vec<u8>>, SqlError> {
    if body.is_ascii() || tag == b'd' {
        return Ok(None);
    }
    let mut rewriting = Rewriting { rest: Reader(body), out: Vec::with_capacity(body.len() * 2), encoding };
    match rewriting.body(tag) {
        Ok(()) => Ok(Some(rewriting.out)),
        Err(Fault::Frame) => Ok(None),
        Err(Fault::Text(error)) => Err(error),
    }
}

/// Encodes the text of the messages that `out` holds from `at` on: names, errors, notices, settings, tags and notifications.
pub fn encode(encoding: Encoding, out: &mut Vec<u8>, at: usize) {
    let written = out.split_off(at.min(out.len()));
    if written.is_ascii() {
        return out.extend_from_slice(&written);
    }
    let mut rest = written.as_slice();
    while let Some((&[tag, l0, l1, l2, l3], behind)) = rest.split_first_chunk::<5>() {
        let length = u32::from_be_bytes([l0, l1, l2, l3]) as usize;
        let (body, next) = behind.split_at(length.saturating_sub(4).min(behind.len()));
        let start = out.len();
        out.extend_from_slice(&[tag, 0, 0, 0, 0]);
        strings(encoding, tag, body, out);
        let length = u32::try_from(out.len() - start - 1).unwrap_or(u32::MAX);
        out[start + 1..start + 5].copy_from_slice(&length.to_be_bytes());
        rest = next;
    }
}

/// A body with its strings encoded.
fn strings(encoding: Encoding, tag: u8, body: &[u8], out: &mut Vec<u8>) {
    // Bytes before the first string, between strings, and how many strings there are.
    let (before, between, most) = match tag {
        b'T' => (2, 18, usize::MAX),
        b'E' | b'N' => (1, 1, usize::MAX),
        b'S' => (0, 0, 2),
        b'C' => (0, 0, 1),
        b'A' => (4, 0, 2),
        _ => return out.extend_from_slice(body),
    };
    let (head, mut rest) = body.split_at(before.min(body.len()));
    out.extend_from_slice(head);
    for _ in 0..most {
        let Some(end) = rest.iter().position(|&byte| byte == 0) else { break };
        // What the server writes is UTF-8.
        out.extend_from_slice(&encoding.encode_lossy(std::str::from_utf8(&rest[..end]).unwrap_or_default()));
        let behind = (end + 1 + between).min(rest.len());
        out.extend_from_slice(&rest[end..behind]);
        rest = &rest[behind..];
    }
    out.extend_from_slice(rest);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::backend;
    use crate::wire::frontend::{self, Message};

    fn latin1() -> Encoding {
        Encoding::find("latin1").expect("known")
    }

    #[test]
    fn text_and_names_become_utf8_and_binary_values_stay() {
        let body = b"\xe9\0s\xfc\0\0\x02\0\x00\0\x01\0\x03\0\0\0\x02\xe9x\0\0\0\x02\xe9x\xff\xff\xff\xff\0\0";
        let rewritten = to_utf8(latin1(), b'B', body).expect("latin1").expect("not ASCII");
        let Ok(Message::Bind(bind)) = frontend::decode(b'B', &rewritten) else { panic!("a Bind") };
        assert_eq!((bind.portal, bind.statement), ("\u{e9}", "s\u{fc}"));
        let values: Vec<_> = bind.values.iter().copied().collect();
        assert_eq!(values, [Some("\u{e9}x".as_bytes()), Some(&b"\xe9x"[..]), None]);
    }

    #[test]
    fn a_body_that_is_cut_off_is_left_to_the_decoder() {
        for end in 1..12 {
            let body = &b"\xe9\0\0\0\x01\0\x00\0\x01\0\0\0\x09\xe9"[..end];
            assert!(matches!(to_utf8(latin1(), b'B', body), Ok(None)), "{end} bytes");
        }
        let win1252 = Encoding::find("win1252").expect("known");
        assert_eq!(to_utf8(win1252, b'Q', b"select '\x81'\0").expect_err("no character").code(), "22P05");
    }

    #[test]
    fn messages_of_the_server_are_encoded_with_their_lengths() {
        let mut out = b"kept".to_vec();
        let at = out.len();
        backend::parameter_status(&mut out, "application_name", "caf\u{e9}");
        backend::error(&mut out, "ERROR", &SqlError::new("42P01", "relation \"\u{e9}\u{20ac}\" does not exist"), None);
        backend::ready(&mut out, clearway_sql::session::TransactionStatus::Idle);
        encode(latin1(), &mut out, at);
        let mut rest = &out[at..];
        let mut tags = Vec::new();
        while let Some((head, behind)) = rest.split_first_chunk::<5>() {
            tags.push(head[0]);
            let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
            rest = behind.get(length - 4..).expect("as long as it says");
        }
        assert_eq!((tags, rest), (vec![b'S', b'E', b'Z'], &[][..]));
        let holds = |bytes: &[u8]| out.windows(bytes.len()).any(|w| w == bytes);
        assert!(holds(b"kept") && holds(b"caf\xe9\0") && holds(b"relation \"\xe9?\" does not exist\0"));
    }
}
