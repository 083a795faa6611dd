//! The PostgreSQL protocol, version 3.0: parses the client's bytes into messages, and writes answers as bytes.
//!
//! # Structure
//! `startup` (the packets before a session, which have no type byte), `frontend` (frames and messages of the client), `backend` (messages
//! of the server), `reader` (checked reading of one message's body), `few` (its short lists),
//! `recode` (text of clients whose encoding is not UTF-8).
//!
//! # Invariants
//! - WIRE-1: no bytes of a client make a decoder panic, read past the message's own end, or reserve memory by a length that the client
//!   only claims.
//! - WIRE-2: a message's length is checked against the limit of its type before its body is awaited.
//!
//! # Errors
//! [`WireError`]: malformed content of a well-framed message is an ERROR and the session goes on; broken framing is FATAL.

pub mod backend;
pub mod few;
pub mod frontend;
mod reader;
pub mod recode;
pub mod startup;

use clearway_sql::SqlError;

/// What is wrong with bytes of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// A type byte that no client sends; nothing after it can be trusted.
    #[error("invalid frontend message type {0}")]
    UnknownType(u8),
    /// A length that is too small, or too large for its type.
    #[error("invalid message length")]
    Length,
    /// A query, parameters or COPY data beyond the setting.
    #[error("invalid message length: {bytes} bytes, and max_message_size allows {max}")]
    TooLarge {
        /// As the message says.
        bytes: usize,
        /// The setting.
        max: usize,
    },
    /// The body is shorter than what it says that it holds.
    #[error("insufficient data left in message")]
    Short,
    /// The body is longer than that.
    #[error("invalid message format")]
    Long,
    /// A string without its end.
    #[error("invalid string in message")]
    Unterminated,
    /// A format code other than 0 and 1.
    #[error("unsupported format code: {0}")]
    FormatCode(i16),
    /// Not a subtype of this message.
    #[error("invalid {message} message subtype {subtype}")]
    Subtype {
        /// The message's name.
        message: &'static str,
        /// The byte.
        subtype: u8,
    },
    /// Text that is not UTF-8; the first bad byte.
    #[error("invalid byte sequence for encoding \"UTF8\": 0x{0:02x}")]
    Encoding(u8),
}

impl WireError {
    /// Whether the connection can't go on.
    pub fn is_fatal(self) -> bool {
        matches!(self, WireError::UnknownType(_) | WireError::Length | WireError::TooLarge { .. })
    }

    /// With PostgreSQL's SQLSTATE.
    pub fn to_sql(self) -> SqlError {
        let code = match self {
            WireError::Encoding(_) => "22021",
            WireError::FormatCode(_) => "22023",
            _ => "08P01",
        };
        SqlError::new(code, self.to_string())
    }
}
