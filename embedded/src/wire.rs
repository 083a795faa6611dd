//! The Unix socket to the process that has the directory: PostgreSQL's messages, as bytes.
//!
//! # Invariants
//! - GST-1: the memory for an answer is bounded: a message of more than a gibibyte ends the connection, and data of COPY is skipped unless
//!   the caller asked for it.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Bytes that are read at a time.
const CHUNK_BYTES: usize = 64 << 10;
/// The longest message (GST-1).
const MESSAGE_BYTES_MAX: usize = 1 << 30;

/// The socket, and what was read from it beyond the last answer.
pub(crate) struct Wire {
    stream: UnixStream,
    input: Vec<u8>,
    /// Where the first message begins that was not given out.
    at: usize,
}

/// Where an answer ends.
#[derive(Clone, Copy)]
pub(crate) struct Until {
    /// Messages of these kinds end it.
    pub(crate) kinds: &'static [u8],
    /// It also ends after so many bytes.
    pub(crate) bytes: usize,
    /// Data of COPY belongs to it.
    pub(crate) copy_data: bool,
}

impl Until {
    pub(crate) const fn any(kinds: &'static [u8]) -> Until {
        Until { kinds, bytes: usize::MAX, copy_data: false }
    }
}

/// Whole messages.
pub(crate) struct Answer {
    bytes: Vec<u8>,
    /// The other side has ended the connection.
    pub(crate) ended: bool,
}

impl Answer {
    /// Kind and content of each message.
    pub(crate) fn messages(&self) -> impl Iterator<Item = (u8, &[u8])> {
        let mut rest = self.bytes.as_slice();
        std::iter::from_fn(move || {
            let length = whole(rest).ok()??;
            let (message, after) = rest.split_at_checked(length)?;
            rest = after;
            Some((*message.first()?, message.get(5..)?))
        })
    }
}

/// The length of the message at the start of `bytes`, if it is there as a whole.
fn whole(bytes: &[u8]) -> io::Result<Option<usize>> {
    let Some(length) = bytes.get(1..).and_then(|rest| rest.first_chunk::<4>()) else { return Ok(None) };
    let length = u32::from_be_bytes(*length) as usize;
    if !(4..=MESSAGE_BYTES_MAX).contains(&length) {
        return Err(io::ErrorKind::InvalidData.into());
    }
    Ok(Some(length + 1).filter(|length| bytes.len() >= *length))
}

impl Wire {
    pub(crate) fn connect(socket: &Path) -> io::Result<Wire> {
        Ok(Wire { stream: UnixStream::connect(socket)?, input: Vec::new(), at: 0 })
    }

    /// Sends, and reads an answer up to its end.
    pub(crate) fn exchange(&mut self, send: &[u8], until: Until) -> io::Result<Answer> {
        self.send(send)?;
        let mut answer = Answer { bytes: Vec::new(), ended: false };
        loop {
            let Some(length) = whole(self.input.get(self.at..).unwrap_or_default())? else {
                if !self.read()? {
                    answer.ended = true;
                    return Ok(answer);
                }
                continue;
            };
            let message = self.input.get(self.at..self.at + length).unwrap_or_default();
            self.at += length;
            let kind = message.first().copied().unwrap_or_default();
            if kind != b'd' || until.copy_data {
                answer.bytes.extend_from_slice(message); // GST-1
            }
            if until.kinds.contains(&kind) || answer.bytes.len() >= until.bytes {
                return Ok(answer);
            }
        }
    }

    /// Reads until a notification has come (a message of kind A), or for so long.
    pub(crate) fn listen(&mut self, limit: Option<Duration>) -> io::Result<Answer> {
        // Zero would mean for ever.
        let limit = limit.map(|limit| limit.max(Duration::from_millis(1)));
        self.stream.set_read_timeout(limit)?;
        let mut heard = self.exchange(&[], Until::any(b"A"));
        if let Err(error) = &heard
            && matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
        {
            heard = Ok(Answer { bytes: Vec::new(), ended: false });
        }
        self.stream.set_read_timeout(None)?;
        heard
    }

    /// Sends without waiting for an answer.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() { Ok(()) } else { self.stream.write_all(bytes) }
    }

    /// Reads more; false where the other side has ended the connection.
    fn read(&mut self) -> io::Result<bool> {
        self.input.drain(..self.at);
        self.at = 0;
        let start = self.input.len();
        self.input.resize(start + CHUNK_BYTES, 0);
        let read = loop {
            match self.stream.read(self.input.get_mut(start..).unwrap_or_default()) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // A peer that closes with something unread resets the connection.
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => break Ok(0),
                other => break other,
            }
        };
        self.input.truncate(start + read.as_ref().copied().unwrap_or(0));
        Ok(read? > 0)
    }
}

/// Appends a message of a kind; `content` writes what is in it.
pub(crate) fn message(out: &mut Vec<u8>, kind: u8, content: impl FnOnce(&mut Vec<u8>)) {
    if kind != 0 {
        out.push(kind);
    }
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    content(out);
    let length = u32::try_from(out.len() - start).unwrap_or(u32::MAX).to_be_bytes();
    out[start..start + 4].copy_from_slice(&length);
}

/// Appends a text with a zero behind it. A text that holds one is cut there, as every client of the protocol does.
pub(crate) fn text(out: &mut Vec<u8>, text: &str) {
    out.extend(text.bytes().take_while(|byte| *byte != 0));
    out.push(0);
}

/// Takes a text that ends with a zero.
pub(crate) fn take_text(bytes: &mut &[u8]) -> Option<String> {
    let end = bytes.iter().position(|byte| *byte == 0)?;
    let text = String::from_utf8_lossy(bytes.get(..end)?).into_owned();
    *bytes = bytes.get(end + 1..)?;
    Some(text)
}

/// Takes a big-endian number.
pub(crate) fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (number, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*number)
}

#[cfg(test)]
mod tests {
    use super::{Until, Wire};
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    fn wire(bytes: &[u8]) -> Wire {
        let (mut theirs, ours) = UnixStream::pair().expect("a pair of sockets");
        theirs.write_all(bytes).expect("a few bytes");
        Wire { stream: ours, input: Vec::new(), at: 0 }
    }

    #[test]
    fn an_answer_ends_where_it_should() {
        let mut wire = wire(b"D\0\0\0\x05ad\0\0\0\x05bC\0\0\0\x04Z\0\0\0\x05I");
        let answer = wire.exchange(&[], Until::any(b"C")).expect("an answer");
        assert_eq!(answer.messages().collect::<Vec<_>>(), [(b'D', &b"a"[..]), (b'C', &b""[..])]);
        let answer = wire.exchange(&[], Until::any(b"Z")).expect("an answer");
        assert_eq!(answer.messages().collect::<Vec<_>>(), [(b'Z', &b"I"[..])]);
    }

    #[test]
    fn malformed_lengths_are_errors_and_a_closed_socket_ends_the_answer() {
        assert!(wire(b"D\0\0\0\x03").exchange(&[], Until::any(b"Z")).is_err());
        assert!(wire(b"D\xff\xff\xff\xff").exchange(&[], Until::any(b"Z")).is_err());
        let answer = wire(b"D\0\0\0\x05aD\0\0").exchange(&[], Until::any(b"Z")).expect("what there was");
        assert!(answer.ended);
        assert_eq!(answer.messages().count(), 1);
    }
}
