//! Messages of the client: splits a buffer into frames, then parses the body of one message (WIRE-1 and WIRE-2, see `wire`).

use std::ops::Range;

use super::WireError;
use super::few::Few;
use super::reader::Reader;

/// Bytes of a message that has no need of more, its length field included; PostgreSQL has the same two classes.
const SMALL_BYTES: usize = 10_000;
/// Bytes of a password or SASL message.
const PASSWORD_BYTES: usize = 65_535;
/// Bytes of the type and the length.
const HEADER_BYTES: usize = 5;

/// A frame: the type byte, and the range of its body in the buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The type byte.
    pub tag: u8,
    /// The body.
    pub body: Range<usize>,
}

/// What the next bytes are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Framing {
    /// A whole frame.
    Whole(Frame),
    /// Not yet: so many more bytes are needed at least.
    Needs(usize),
}

/// Finds the frame that begins at `start` of `bytes`; `large_bytes` limits queries, parameters and COPY data.
///
/// # Errors
/// An unknown type, or a length outside of what the type may have.
pub fn frame(bytes: &[u8], start: usize, large_bytes: usize) -> Result<Framing, WireError> {
    let rest = bytes.get(start..).unwrap_or_default();
    let Some((&[tag, l0, l1, l2, l3], _)) = rest.split_first_chunk::<HEADER_BYTES>() else {
        if let Some(&tag) = rest.first() {
            limit(tag, large_bytes)?;
        }
        return Ok(Framing::Needs(HEADER_BYTES - rest.len()));
    };
    let length = u32::from_be_bytes([l0, l1, l2, l3]) as usize;
    let limit = limit(tag, large_bytes)?;
    if length > limit && limit == large_bytes {
        return Err(WireError::TooLarge { bytes: length, max: large_bytes });
    }
    if length < 4 || length > limit {
        return Err(WireError::Length); // WIRE-2
    }
    let total = length + 1;
    if rest.len() < total {
        return Ok(Framing::Needs(total - rest.len()));
    }
    Ok(Framing::Whole(Frame { tag, body: start + HEADER_BYTES..start + total }))
}

fn limit(tag: u8, large_bytes: usize) -> Result<usize, WireError> {
    match tag {
        b'Q' | b'P' | b'B' | b'F' | b'd' => Ok(large_bytes),
        b'p' => Ok(PASSWORD_BYTES),
        b'C' | b'D' | b'E' | b'H' | b'S' | b'X' | b'c' | b'f' => Ok(SMALL_BYTES),
        other => Err(WireError::UnknownType(other)),
    }
}

/// What Describe and Close name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target<'a> {
    /// A prepared statement.
    Statement(&'a str),
    /// A portal.
    Portal(&'a str),
}

/// Format codes.
pub type Formats = Few<i16, 8>;

/// Bind's content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bind<'a> {
    /// The portal to make.
    pub portal: &'a str,
    /// From which statement.
    pub statement: &'a str,
    /// Parameter formats: none (all text), one for all, or one each; 0 or 1.
    pub formats: Formats,
    /// Parameters; None is NULL.
    pub values: Few<Option<&'a [u8]>, 8>,
    /// Formats of the result's columns, likewise.
    pub result_formats: Formats,
}

/// A function call's content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionCall<'a> {
    /// The number of the function.
    pub function: u32,
    /// Forms of the arguments, as in Bind.
    pub formats: Formats,
    /// Arguments; None is NULL.
    pub values: Few<Option<&'a [u8]>, 8>,
    /// The form of the result; 0 or 1.
    pub result_format: i16,
}

/// A message of the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// A simple query.
    Query(&'a str),
    /// Prepares a statement.
    Parse {
        /// Its name.
        name: &'a str,
        /// Its text.
        sql: &'a str,
        /// Types of the first parameters; 0 leaves one open.
        types: Vec<u32>,
    },
    /// Makes a portal.
    Bind(Bind<'a>),
    /// Asks what a statement or a portal is.
    Describe(Target<'a>),
    /// Runs a portal for `max_rows` rows; 0: to its end.
    Execute {
        /// The portal.
        portal: &'a str,
        /// The limit.
        max_rows: u32,
    },
    /// Forgets a statement or a portal.
    Close(Target<'a>),
    /// Send what there is.
    Flush,
    /// The batch ends.
    Sync,
    /// The session ends.
    Terminate,
    /// COPY data.
    CopyData(&'a [u8]),
    /// All COPY data has been sent.
    CopyDone,
    /// The client gives COPY up.
    CopyFail(&'a str),
    /// Calls a function by its number.
    FunctionCall(FunctionCall<'a>),
    /// A password or SASL answer.
    Password(&'a [u8]),
}

/// Decodes the body of a frame.
///
/// # Errors
/// See [`WireError`].
pub fn decode(tag: u8, body: &[u8]) -> Result<Message<'_>, WireError> {
    let mut reader = Reader(body);
    let message = match tag {
        b'Q' => Message::Query(reader.string()?),
        b'P' => parse(&mut reader)?,
        b'B' => return bind(body).map(Message::Bind),
        b'D' => Message::Describe(target(&mut reader, "DESCRIBE")?),
        b'C' => Message::Close(target(&mut reader, "CLOSE")?),
        b'E' => {
            let portal = reader.string()?;
            // PostgreSQL takes a negative limit for none as well.
            Message::Execute { portal, max_rows: u32::try_from(reader.i32()?).unwrap_or(0) }
        }
        b'H' => Message::Flush,
        b'S' => Message::Sync,
        b'X' => Message::Terminate,
        b'c' => Message::CopyDone,
        b'd' => Message::CopyData(reader.bytes(body.len())?),
        b'f' => Message::CopyFail(reader.string()?),
        b'F' => Message::FunctionCall(function_call(&mut reader)?),
        b'p' => Message::Password(reader.bytes(body.len())?),
        other => return Err(WireError::UnknownType(other)),
    };
    reader.end()?;
    Ok(message)
}

fn parse<'a>(reader: &mut Reader<'a>) -> Result<Message<'a>, WireError> {
    let (name, sql) = (reader.string()?, reader.string()?);
    let count = reader.count(4)?;
    let types = (0..count).map(|_| reader.u32()).collect::<Result<Vec<_>, _>>()?;
    Ok(Message::Parse { name, sql, types })
}

/// Decodes the body of a Bind.
///
/// # Errors
/// See [`WireError`].
pub fn bind(body: &[u8]) -> Result<Bind<'_>, WireError> {
    let mut reader = Reader(body);
    let reader = &mut reader;
    let (portal, statement) = (reader.string()?, reader.string()?);
    let formats = format_codes(reader)?;
    let count = reader.count(4)?;
    let values = Few::read(count, || value(reader))?;
    let result_formats = format_codes(reader)?;
    reader.end()?;
    Ok(Bind { portal, statement, formats, values, result_formats })
}

fn function_call<'a>(reader: &mut Reader<'a>) -> Result<FunctionCall<'a>, WireError> {
    let function = reader.u32()?;
    let formats = format_codes(reader)?;
    let count = reader.count(4)?;
    let values = Few::read(count, || value(reader))?;
    let result_format = format_code(reader)?;
    Ok(FunctionCall { function, formats, values, result_format })
}

/// A value behind its length; -1 is NULL.
fn value<'a>(reader: &mut Reader<'a>) -> Result<Option<&'a [u8]>, WireError> {
    match reader.i32()? {
        -1 => Ok(None),
        length => {
            let length = usize::try_from(length).map_err(|_| WireError::Short)?;
            reader.bytes(length).map(Some)
        }
    }
}

fn format_code(reader: &mut Reader<'_>) -> Result<i16, WireError> {
    match reader.i16()? {
        code @ (0 | 1) => Ok(code),
        other => Err(WireError::FormatCode(other)),
    }
}

fn format_codes(reader: &mut Reader<'_>) -> Result<Formats, WireError> {
    let count = reader.count(2)?;
    Few::read(count, || format_code(reader))
}

fn target<'a>(reader: &mut Reader<'a>, message: &'static str) -> Result<Target<'a>, WireError> {
    let subtype = reader.u8()?;
    let name = reader.string()?;
    match subtype {
        b'S' => Ok(Target::Statement(name)),
        b'P' => Ok(Target::Portal(name)),
        subtype => Err(WireError::Subtype { message, subtype }),
    }
}
