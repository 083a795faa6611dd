//! The packets before a session: a length, a code, a body.

use super::WireError;
use super::reader::Reader;

/// Bytes of the largest such packet.
const PACKET_BYTES: usize = 10_000;
const CANCEL: u32 = 80_877_102;
const SSL: u32 = 80_877_103;
const GSSENC: u32 = 80_877_104;

/// A packet before the session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Startup {
    /// Asks for TLS.
    Ssl,
    /// Asks for GSSAPI encryption, which is never given.
    GssEnc,
    /// Cancels what another session runs; this connection ends with it.
    Cancel {
        /// That session's number.
        pid: i32,
        /// What only it and the server know.
        secret: i32,
    },
    /// Begins a session.
    Session {
        /// 3 in the upper half, the minor version in the lower.
        version: u32,
        /// Names and values, in the order of the packet.
        parameters: Vec<(String, String)>,
    },
}

/// The length of the packet that `bytes` begins with, its own four bytes included; None if too few bytes are there to say.
///
/// # Errors
/// A length that no such packet has.
pub fn length(bytes: &[u8]) -> Result<Option<usize>, WireError> {
    let Some((head, _)) = bytes.split_first_chunk::<4>() else { return Ok(None) };
    match u32::from_be_bytes(*head) as usize {
        length @ 8..=PACKET_BYTES => Ok(Some(length)),
        _ => Err(WireError::Length),
    }
}

/// Decodes a packet without its length.
///
/// # Errors
/// See [`WireError`].
pub fn decode(packet: &[u8]) -> Result<Startup, WireError> {
    let mut reader = Reader(packet);
    let code = reader.u32()?;
    let startup = match code {
        SSL => Startup::Ssl,
        GSSENC => Startup::GssEnc,
        CANCEL => Startup::Cancel { pid: reader.i32()?, secret: reader.i32()? },
        version => {
            let mut parameters = Vec::new();
            loop {
                let name = reader.string()?;
                if name.is_empty() {
                    break;
                }
                parameters.push((name.to_owned(), reader.string()?.to_owned()));
            }
            Startup::Session { version, parameters }
        }
    };
    reader.end()?;
    Ok(startup)
}
