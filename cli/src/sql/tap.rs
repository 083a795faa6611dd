//! A stream between the client library and the socket that also parses what the server sends.
//!
//! The library reports neither whether a transaction is open nor the words of a command's tag. Both are in the messages that the server
//! sends, so this stream looks at each message as it passes.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use clearway_base::sync::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The longest body that is kept; a tag is some twenty bytes long.
const BODY_BYTES_MAX: usize = 256;

/// What the server said last.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ServerState {
    /// The transaction: `I` none, `T` open, `E` failed.
    pub transaction: u8,
    /// The tag of the last command, as psql prints it.
    pub tag: String,
}

/// Finds the messages in the bytes of a server, which arrive in pieces of any length.
#[derive(Debug, Default)]
struct Messages {
    /// Type and length of the message that is being read.
    head: Vec<u8>,
    /// What is still to come of its body.
    left: usize,
    /// Its body, for the types that are looked at.
    body: Vec<u8>,
}

impl Messages {
    fn feed(&mut self, mut bytes: &[u8], said: &Mutex<ServerState>) {
        while !bytes.is_empty() {
            if self.head.len() < 5 {
                let (head, rest) = bytes.split_at(bytes.len().min(5 - self.head.len()));
                self.head.extend_from_slice(head);
                bytes = rest;
                let Ok(head) = <[u8; 5]>::try_from(&self.head[..]) else { return };
                // The length counts itself.
                self.left = (u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize).saturating_sub(4);
            }
            let (body, rest) = bytes.split_at(bytes.len().min(self.left));
            if matches!(self.head[0], b'C' | b'Z') {
                let room = BODY_BYTES_MAX.saturating_sub(self.body.len());
                self.body.extend_from_slice(&body[..body.len().min(room)]);
            }
            self.left -= body.len();
            bytes = rest;
            if self.left == 0 {
                self.ended(said);
            }
        }
    }

    fn ended(&mut self, said: &Mutex<ServerState>) {
        match (self.head[0], self.body.as_slice()) {
            (b'Z', [status, ..]) => said.lock().transaction = *status,
            (b'C', tag) => {
                let tag = tag.strip_suffix(&[0]).unwrap_or(tag);
                said.lock().tag = String::from_utf8_lossy(tag).into_owned();
            }
            _ => {}
        }
        self.head.clear();
        self.body.clear();
    }
}

/// Either kind of socket.
pub trait Socket: AsyncRead + AsyncWrite + Unpin + Send {}
impl<S: AsyncRead + AsyncWrite + Unpin + Send> Socket for S {}

/// A socket that is listened in on.
pub struct Tap {
    socket: Box<dyn Socket>,
    messages: Messages,
    said: Arc<Mutex<ServerState>>,
}

impl Tap {
    /// Listens in on a socket from its first byte.
    pub fn new(socket: Box<dyn Socket>, said: Arc<Mutex<ServerState>>) -> Self {
        Self { socket, messages: Messages::default(), said }
    }
}

impl AsyncRead for Tap {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let this = &mut *self;
        let read = Pin::new(&mut *this.socket).poll_read(cx, buf);
        this.messages.feed(&buf.filled()[before..], &this.said);
        read
    }
}

impl AsyncWrite for Tap {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.socket).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.socket).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_found_in_pieces_of_any_length() {
        let bytes = [b"D\0\0\0\x09ZCZCZ".as_slice(), b"C\0\0\0\x0dINSERT 0\0", b"Z\0\0\0\x05T"].concat();
        for piece in 1..=bytes.len() {
            let said = Mutex::new("test/said", ServerState::default());
            let mut messages = Messages::default();
            for part in bytes.chunks(piece) {
                messages.feed(part, &said);
            }
            assert_eq!(*said.lock(), ServerState { transaction: b'T', tag: "INSERT 0".into() }, "pieces of {piece}");
        }
    }
}
