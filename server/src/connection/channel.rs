//! The two directions of a connection with their buffers, and the `Client` to which a session writes its results.
//!
//! # Invariants
//! - CHAN-1: an idle connection holds at most [`IDLE_BYTES`] in each direction.
//! - CHAN-2: the output holds at most [`FULL_BYTES`] and one message; beyond that the task that fills it waits for the client.
//! - CHAN-3: `sent` counts exactly the bytes of the output that have been sent, even if the future that sent them was dropped halfway.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use clearway_base::waits::{Object, WaitEvent, in_wait};
use clearway_sql::SqlError;
use clearway_sql::encoding::Encoding;
use clearway_sql::session::client::ClientFuture;
use clearway_sql::session::{Client, Column, CopyFormat, CopyIn, Gone, TransactionStatus};
use tokio::io::{AsyncReadExt as _, AsyncWrite as _, AsyncWriteExt as _};

use crate::stream::Stream;
use crate::wire::frontend::{self, Frame, Framing, Message};
use crate::wire::{WireError, backend, recode};
use clearway_sql::context::backend::Tls;

/// What a buffer keeps while the client is silent.
const IDLE_BYTES: usize = 8 << 10;
/// From here on the output is sent before more is written to it.
const FULL_BYTES: usize = 32 << 10;
/// One read asks for this much; for more only as a large message really arrives (WIRE-1).
const READ_BYTES: usize = 8 << 10;
const LARGE_READ_BYTES: usize = 256 << 10;

/// The longest message of a client before it has proven who it is.
const PASSWORD_BYTES: usize = 64 << 10;

/// A connection's stream and buffers.
#[derive(Debug)]
pub struct Channel {
    stream: Stream,
    input: Vec<u8>,
    /// What of the input has been taken.
    taken: usize,
    output: Vec<u8>,
    sent: usize,
    large_bytes: usize,
    encoding: Encoding,
    /// Why the session can't go on, when a `Client` call has said Gone for a reason the client is told.
    failure: Option<SqlError>,
}

/// What the input holds next.
pub enum Next {
    /// A whole message.
    Frame(Frame),
    /// The client has closed.
    Closed,
}

impl Channel {
    /// A channel whose queries, parameters and COPY messages may have `large_bytes` each.
    pub fn new(stream: Stream, large_bytes: usize) -> Channel {
        let (input, output) = (Vec::new(), Vec::new());
        Channel { stream, input, taken: 0, output, sent: 0, large_bytes, encoding: Encoding::UTF8, failure: None }
    }

    /// The bytes of a frame.
    pub fn body(&self, frame: &Frame) -> &[u8] {
        self.input.get(frame.body.clone()).unwrap_or_default()
    }

    /// The bytes of a frame, what follows it, and where answers to it go meanwhile. The client's text is UTF-8.
    pub fn parts(&mut self, frame: &Frame) -> (&[u8], &[u8], Answers<'_>) {
        let body = self.input.get(frame.body.clone()).unwrap_or_default();
        let unread = self.input.get(self.taken..).unwrap_or_default();
        (body, unread, Answers(&mut self.output))
    }

    /// The client's text has this encoding from now on.
    pub fn speak(&mut self, encoding: Encoding) {
        self.encoding = encoding;
    }

    /// Whether the client's text has other bytes than UTF-8.
    pub fn is_recoded(&self) -> bool {
        self.encoding.differs()
    }

    /// The frame taken last, with its text in UTF-8.
    ///
    /// # Errors
    /// 22021, 22P05.
    pub fn in_utf8(&mut self, frame: &Frame) -> Result<Frame, SqlError> {
        let mut frame = frame.clone();
        if self.is_recoded()
            && let Some(body) = recode::to_utf8(self.encoding, frame.tag, self.body(&frame))?
        {
            let end = frame.body.start + body.len();
            self.input.splice(frame.body.clone(), body);
            frame.body.end = end;
            self.taken = end;
        }
        Ok(frame)
    }

    /// ErrorResponse; `text` is what the error's place counts in.
    pub fn error(&mut self, severity: backend::Severity, error: &SqlError, text: Option<&str>) {
        self.encoded(|out| backend::error(out, severity, error, text));
    }

    /// NotificationResponse.
    pub fn notification(&mut self, pid: i32, channel: &str, payload: &str) {
        self.encoded(|out| backend::notification(out, pid, channel, payload));
    }

    /// Writes messages in the client's encoding.
    fn encoded(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let at = self.output.len();
        write(&mut self.output);
        if self.is_recoded() {
            recode::encode(self.encoding, &mut self.output, at);
        }
    }

    /// Bytes of the client that were not taken yet.
    pub fn unread(&self) -> &[u8] {
        self.input.get(self.taken..).unwrap_or_default()
    }

    /// Takes so many of them.
    pub fn take(&mut self, count: usize) {
        self.taken = (self.taken + count).min(self.input.len());
    }

    /// Where messages of the server are written.
    pub fn output(&mut self) -> &mut Vec<u8> {
        &mut self.output
    }

    /// The stream itself, for the change to TLS; nothing may be buffered.
    pub fn into_stream(self) -> Stream {
        self.stream
    }

    /// The stream, to ask who is at its other end.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Whether no third party can read it.
    pub fn is_encrypted(&self) -> bool {
        matches!(self.stream, Stream::Tls(_))
    }

    /// How it is encrypted.
    pub fn tls(&self) -> Option<Tls> {
        let Stream::Tls(stream) = &self.stream else { return None };
        let state = stream.get_ref().1;
        let version = match state.protocol_version() {
            Some(tokio_rustls::rustls::ProtocolVersion::TLSv1_2) => "TLSv1.2",
            _ => "TLSv1.3",
        };
        let suite = state.negotiated_cipher_suite();
        // As PostgreSQL has it from OpenSSL: TLS_AES_256_GCM_SHA384.
        let cipher = suite.and_then(|suite| suite.suite().as_str()).unwrap_or("").replace("TLS13_", "TLS_");
        let bits = if cipher.contains("AES_128") { 128 } else { 256 };
        Some(Tls { version: version.to_owned(), cipher, bits })
    }

    /// Whether it is TCP that nothing encrypts yet.
    pub fn is_tcp(&self) -> bool {
        matches!(self.stream, Stream::Tcp(_))
    }

    /// The reason behind a Gone that the client is to be told.
    pub fn take_failure(&mut self) -> Option<SqlError> {
        self.failure.take()
    }

    /// The next frame if it is here already; else how many bytes are missing at least.
    ///
    /// # Errors
    /// Broken framing.
    pub fn buffered(&mut self) -> Result<Framing, WireError> {
        let framing = frontend::frame(&self.input, self.taken, self.large_bytes)?;
        if let Framing::Whole(frame) = &framing {
            self.taken = frame.body.end;
        }
        Ok(framing)
    }

    /// Reads more of the client; 0 bytes: it has closed. The wait is booked.
    ///
    /// # Errors
    /// The connection's.
    pub async fn read(&mut self, missing: usize) -> io::Result<usize> {
        self.make_room(missing);
        in_wait(WaitEvent::ClientRead, Object::NONE, self.stream.read_buf(&mut self.input)).await
    }

    fn make_room(&mut self, missing: usize) {
        if self.taken == self.input.len() {
            self.input.clear();
            if self.input.capacity() > IDLE_BYTES {
                self.input = Vec::with_capacity(IDLE_BYTES); // CHAN-1
            }
        } else if self.taken > 0 {
            self.input.drain(..self.taken);
        }
        self.taken = 0;
        if self.input.capacity() - self.input.len() < missing.min(READ_BYTES) {
            self.input.reserve(missing.clamp(READ_BYTES, LARGE_READ_BYTES));
        }
    }

    /// The next frame, waited for.
    ///
    /// # Errors
    /// The connection's, or broken framing as `InvalidData`.
    pub async fn frame(&mut self) -> io::Result<Next> {
        loop {
            match self.buffered().map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))? {
                Framing::Whole(frame) => return Ok(Next::Frame(frame)),
                Framing::Needs(missing) => {
                    if self.read(missing).await? == 0 {
                        return Ok(Next::Closed);
                    }
                }
            }
        }
    }

    /// Whether anything waits to be sent.
    pub fn has_output(&self) -> bool {
        self.sent < self.output.len()
    }

    /// Sends what is buffered as far as the system takes it at once; true if that was all. What is left, and any error, is for `send`.
    pub fn send_now(&mut self) -> bool {
        let rest = self.output.get(self.sent..).unwrap_or_default();
        if let Some(Ok(count)) = self.stream.try_write(rest) {
            self.sent += count; // CHAN-3
        }
        if self.has_output() {
            return false;
        }
        self.sent_all();
        true
    }

    /// Takes back what was never begun to be sent. What was begun had been allowed to leave, and the client needs its rest to read on.
    pub fn take_back(&mut self) {
        if self.sent == 0 {
            self.output.clear();
        }
    }

    /// The next message of a client that has not proven who it is: a password message of at most [`PASSWORD_BYTES`], whose type and length
    /// are looked at before more of it is read; None for anything else.
    ///
    /// # Errors
    /// The connection's; a client that has closed.
    pub async fn password_frame(&mut self) -> io::Result<Option<Frame>> {
        loop {
            let unread = self.unread();
            let length = unread.get(1..5).and_then(|bytes| bytes.first_chunk()).map(|bytes| u32::from_be_bytes(*bytes));
            let is_long = length.is_some_and(|length| length as usize > PASSWORD_BYTES);
            if unread.first().is_some_and(|tag| *tag != b'p') || is_long {
                return Ok(None);
            }
            let missing = match self.buffered() {
                Ok(Framing::Whole(frame)) => return Ok(Some(frame)),
                Ok(Framing::Needs(missing)) => missing,
                Err(_) => return Ok(None),
            };
            if self.read(missing).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    fn sent_all(&mut self) {
        self.output.clear();
        self.sent = 0;
        if self.output.capacity() > IDLE_BYTES.max(FULL_BYTES) {
            self.output = Vec::with_capacity(IDLE_BYTES);
        }
    }

    /// Sends all that is buffered. The wait is booked.
    ///
    /// # Errors
    /// The connection's.
    pub async fn send(&mut self) -> io::Result<()> {
        in_wait(
            WaitEvent::ClientWrite,
            Object::NONE,
            poll_fn(|cx| {
                while let Some(rest) = self.output.get(self.sent..).filter(|rest| !rest.is_empty()) {
                    match Pin::new(&mut self.stream).poll_write(cx, rest) {
                        Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                        Poll::Ready(Ok(count)) => self.sent += count, // CHAN-3
                        Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                        Poll::Pending => return Poll::Pending,
                    }
                }
                Pin::new(&mut self.stream).poll_flush(cx)
            }),
        )
        .await?;
        self.sent_all();
        Ok(())
    }

    /// Sends a message ahead of what is buffered, as far as the system takes it at once; the rest of it goes out with the buffer, still ahead.
    fn send_ahead(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        if self.sent > 0 {
            // A message may be half sent.
            write(&mut self.output);
            return;
        }
        let mut message = Vec::new();
        write(&mut message);
        let mut context = Context::from_waker(Waker::noop());
        let sent = match Pin::new(&mut self.stream).poll_write(&mut context, &message) {
            Poll::Ready(Ok(count)) => count,
            // The error is for `send`.
            Poll::Ready(Err(_)) | Poll::Pending => 0,
        };
        let _ = Pin::new(&mut self.stream).poll_flush(&mut context);
        self.output.splice(..0, message.drain(sent..));
    }

    /// Gives back what an idle connection needs no more (CHAN-1).
    pub fn rest(&mut self) {
        if self.output.is_empty() && self.output.capacity() > IDLE_BYTES {
            self.output = Vec::new();
        }
    }

    /// Closes the sending side; errors don't matter any more.
    pub async fn close(&mut self) {
        let _ = self.stream.shutdown().await;
    }

    async fn next_copy(&mut self) -> Result<CopyIn, Gone> {
        if self.has_output() {
            self.send().await.map_err(|_| Gone)?;
        }
        loop {
            let frame = match self.frame().await {
                Ok(Next::Frame(frame)) => frame,
                Ok(Next::Closed) => return Err(Gone),
                Err(error) => {
                    if error.kind() == io::ErrorKind::InvalidData {
                        self.failure = Some(SqlError::new("08P01", error.to_string()));
                    }
                    return Err(Gone);
                }
            };
            let frame = match self.in_utf8(&frame) {
                Ok(frame) => frame,
                Err(error) => {
                    self.failure = Some(error);
                    return Err(Gone);
                }
            };
            match frontend::decode(frame.tag, self.body(&frame)) {
                Ok(Message::CopyData(data)) => return Ok(CopyIn::Data(data.to_vec())),
                Ok(Message::CopyDone) => return Ok(CopyIn::Done),
                Ok(Message::CopyFail(reason)) => return Ok(CopyIn::Failed(reason.to_owned())),
                // Sent by a client that does not know yet whether it will copy.
                Ok(Message::Flush | Message::Sync) => {}
                Ok(Message::Terminate) => return Err(Gone),
                Ok(_) => {
                    let text = format!("unexpected message type 0x{:02X} during COPY from stdin", frame.tag);
                    self.failure = Some(SqlError::new("08P01", text));
                    return Err(Gone);
                }
                Err(error) => {
                    self.failure = Some(error.to_sql());
                    return Err(Gone);
                }
            }
        }
    }
}

impl Client for Channel {
    fn row_description(&mut self, columns: &[Column<'_>]) {
        self.encoded(|out| backend::row_description(out, columns));
    }

    fn no_data(&mut self) {
        backend::no_data(&mut self.output);
    }

    fn parameter_description(&mut self, types: &[u32]) {
        backend::parameter_description(&mut self.output, types);
    }

    fn row(&mut self, fields: usize, write: &mut dyn FnMut(usize, &mut Vec<u8>) -> bool) {
        backend::row(&mut self.output, fields, write);
    }

    fn encoding(&self) -> Encoding {
        self.encoding
    }

    fn command_complete(&mut self, tag: &str) {
        self.encoded(|out| backend::command_complete(out, tag));
    }

    fn empty_query(&mut self) {
        backend::empty_query(&mut self.output);
    }

    fn portal_suspended(&mut self) {
        backend::portal_suspended(&mut self.output);
    }

    fn notice(&mut self, severity: &'static str, message: &SqlError) {
        self.encoded(|out| backend::notice(out, severity, message));
    }

    fn notice_now(&mut self, severity: &'static str, message: &SqlError) {
        let encoding = self.encoding;
        self.send_ahead(|out| {
            let at = out.len();
            backend::notice(out, severity, message);
            if encoding.differs() {
                recode::encode(encoding, out, at);
            }
        });
    }

    fn parameter_status(&mut self, name: &str, value: &str) {
        if name == "client_encoding" {
            self.speak(Encoding::find(value).unwrap_or(Encoding::UTF8));
        }
        self.encoded(|out| backend::parameter_status(out, name, value));
    }

    fn copy_out(&mut self, format: CopyFormat) {
        backend::copy_begins(&mut self.output, false, format);
    }

    fn copy_data(&mut self, data: &[u8]) {
        backend::copy_data(&mut self.output, data);
    }

    fn copy_out_done(&mut self) {
        backend::copy_done(&mut self.output);
    }

    fn copy_in(&mut self, format: CopyFormat) {
        backend::copy_begins(&mut self.output, true, format);
    }

    fn copy_next(&mut self) -> ClientFuture<'_, CopyIn> {
        Box::pin(self.next_copy())
    }

    fn is_full(&self) -> bool {
        self.output.len() - self.sent.min(self.output.len()) >= FULL_BYTES // CHAN-2
    }

    fn drain(&mut self) -> ClientFuture<'_, ()> {
        Box::pin(async { self.send().await.map_err(|_| Gone) })
    }
}

/// The output of a channel whose client has no other encoding than UTF-8, for a read that is told whole.
#[derive(Debug)]
pub struct Answers<'a>(pub &'a mut Vec<u8>);

impl Client for Answers<'_> {
    fn output(&mut self) -> Option<&mut Vec<u8>> {
        Some(self.0)
    }

    fn row_description(&mut self, columns: &[Column<'_>]) {
        backend::row_description(self.0, columns);
    }

    fn row(&mut self, fields: usize, write: &mut dyn FnMut(usize, &mut Vec<u8>) -> bool) {
        backend::row(self.0, fields, write);
    }

    fn command_complete(&mut self, tag: &str) {
        backend::command_complete(self.0, tag);
    }

    fn notice(&mut self, severity: &'static str, message: &SqlError) {
        backend::notice(self.0, severity, message);
    }
}

/// ReadyForQuery into the channel.
pub fn ready(channel: &mut Channel, status: TransactionStatus) {
    backend::ready(channel.output(), status);
}
