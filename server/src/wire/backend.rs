//! Messages of the server, appended to a buffer.

use clearway_sql::SqlError;
use clearway_sql::session::{Column, CopyFormat, TransactionStatus};

/// The next step of an authentication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Authentication<'a> {
    /// It is done.
    Ok,
    /// SCRAM-SHA-256 is asked for.
    Sasl,
    /// The same, and with channel binding if the client can do that.
    SaslPlus,
    /// The server's first message.
    SaslContinue(&'a [u8]),
    /// The server's last message.
    SaslFinal(&'a [u8]),
}

/// The severity of an error or a notice.
pub type Severity = &'static str;

/// Writes a message: its type, its length, its body.
fn message(out: &mut Vec<u8>, tag: u8, body: impl FnOnce(&mut Vec<u8>)) {
    out.push(tag);
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    body(out);
    // A message holds at most one row; rows beyond 2 GiB do not come into being.
    let length = u32::try_from(out.len() - at).unwrap_or(u32::MAX);
    if let Some(field) = out.get_mut(at..at + 4) {
        field.copy_from_slice(&length.to_be_bytes());
    }
}

/// A string with its zero byte; a zero byte inside would end it, so the text ends there.
fn string(out: &mut Vec<u8>, text: &str) {
    let text = text.as_bytes();
    let end = text.iter().position(|&byte| byte == 0).unwrap_or(text.len());
    out.extend_from_slice(text.get(..end).unwrap_or_default());
    out.push(0);
}

fn count(out: &mut Vec<u8>, count: usize) {
    // Results have at most 1,664 columns and statements at most 65,535 parameters.
    out.extend_from_slice(&u16::try_from(count).unwrap_or(u16::MAX).to_be_bytes());
}

/// FunctionCallResponse; no value is NULL.
pub fn function_call_response(out: &mut Vec<u8>, value: Option<&[u8]>) {
    message(out, b'V', |out| match value {
        // A value has at most 1 GiB (`types::size`).
        Some(value) => {
            out.extend_from_slice(&i32::try_from(value.len()).unwrap_or(i32::MAX).to_be_bytes());
            out.extend_from_slice(value);
        }
        None => out.extend_from_slice(&(-1i32).to_be_bytes()),
    });
}

/// NotificationResponse.
pub fn notification(out: &mut Vec<u8>, pid: i32, channel: &str, payload: &str) {
    message(out, b'A', |out| {
        out.extend_from_slice(&pid.to_be_bytes());
        string(out, channel);
        string(out, payload);
    });
}

/// ParseComplete.
pub fn parse_complete(out: &mut Vec<u8>) {
    out.extend_from_slice(&[b'1', 0, 0, 0, 4]);
}

/// BindComplete.
pub fn bind_complete(out: &mut Vec<u8>) {
    out.extend_from_slice(&[b'2', 0, 0, 0, 4]);
}

/// CloseComplete.
pub fn close_complete(out: &mut Vec<u8>) {
    out.extend_from_slice(&[b'3', 0, 0, 0, 4]);
}

/// NoData.
pub fn no_data(out: &mut Vec<u8>) {
    out.extend_from_slice(&[b'n', 0, 0, 0, 4]);
}

/// EmptyQueryResponse.
pub fn empty_query(out: &mut Vec<u8>) {
    out.extend_from_slice(&[b'I', 0, 0, 0, 4]);
}

/// PortalSuspended.
pub fn portal_suspended(out: &mut Vec<u8>) {
    out.extend_from_slice(&[b's', 0, 0, 0, 4]);
}

/// CopyDone.
pub fn copy_done(out: &mut Vec<u8>) {
    out.extend_from_slice(&[b'c', 0, 0, 0, 4]);
}

/// ReadyForQuery.
pub fn ready(out: &mut Vec<u8>, status: TransactionStatus) {
    let status = match status {
        TransactionStatus::Idle => b'I',
        TransactionStatus::InBlock => b'T',
        TransactionStatus::Failed => b'E',
    };
    out.extend_from_slice(&[b'Z', 0, 0, 0, 5, status]);
}

/// CommandComplete.
pub fn command_complete(out: &mut Vec<u8>, tag: &str) {
    message(out, b'C', |out| string(out, tag));
}

/// Authentication*.
pub fn authentication(out: &mut Vec<u8>, step: Authentication<'_>) {
    message(out, b'R', |out| {
        let (code, data): (u32, &[u8]) = match step {
            Authentication::Ok => (0, b""),
            Authentication::Sasl => (10, b"SCRAM-SHA-256\0\0"),
            Authentication::SaslPlus => (10, b"SCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0"),
            Authentication::SaslContinue(data) => (11, data),
            Authentication::SaslFinal(data) => (12, data),
        };
        out.extend_from_slice(&code.to_be_bytes());
        out.extend_from_slice(data);
    });
}

/// BackendKeyData.
pub fn key_data(out: &mut Vec<u8>, pid: i32, secret: i32) {
    message(out, b'K', |out| {
        out.extend_from_slice(&pid.to_be_bytes());
        out.extend_from_slice(&secret.to_be_bytes());
    });
}

/// NegotiateProtocolVersion: 3.0 is spoken, and these options are not known.
pub fn negotiate_version(out: &mut Vec<u8>, unknown: &[&str]) {
    message(out, b'v', |out| {
        out.extend_from_slice(&(3u32 << 16).to_be_bytes());
        out.extend_from_slice(&u32::try_from(unknown.len()).unwrap_or(0).to_be_bytes());
        unknown.iter().for_each(|name| string(out, name));
    });
}

/// ParameterStatus.
pub fn parameter_status(out: &mut Vec<u8>, name: &str, value: &str) {
    message(out, b'S', |out| {
        string(out, name);
        string(out, value);
    });
}

/// ParameterDescription.
pub fn parameter_description(out: &mut Vec<u8>, types: &[u32]) {
    message(out, b't', |out| {
        count(out, types.len());
        types.iter().for_each(|oid| out.extend_from_slice(&oid.to_be_bytes()));
    });
}

/// RowDescription.
pub fn row_description(out: &mut Vec<u8>, columns: &[Column<'_>]) {
    message(out, b'T', |out| {
        count(out, columns.len());
        for column in columns {
            string(out, column.name);
            let mut fields = [0; 18];
            fields[..4].copy_from_slice(&column.table.to_be_bytes());
            fields[4..6].copy_from_slice(&column.attribute.to_be_bytes());
            fields[6..10].copy_from_slice(&column.ty.oid.to_be_bytes());
            fields[10..12].copy_from_slice(&column.len.to_be_bytes());
            fields[12..16].copy_from_slice(&column.ty.modifier.to_be_bytes());
            fields[16..].copy_from_slice(&i16::from(column.binary).to_be_bytes());
            out.extend_from_slice(&fields);
        }
    });
}

/// DataRow; `write(i, out)` appends field i, or returns false for NULL.
pub fn row(out: &mut Vec<u8>, fields: usize, write: &mut dyn FnMut(usize, &mut Vec<u8>) -> bool) {
    message(out, b'D', |out| {
        count(out, fields);
        for field in 0..fields {
            let at = out.len();
            out.extend_from_slice(&[0; 4]);
            let length = if write(field, out) {
                u32::try_from(out.len() - at - 4).unwrap_or(u32::MAX)
            } else {
                out.truncate(at + 4);
                u32::MAX // -1
            };
            if let Some(prefix) = out.get_mut(at..at + 4) {
                prefix.copy_from_slice(&length.to_be_bytes());
            }
        }
    });
}

/// CopyInResponse ('G') or CopyOutResponse ('H').
pub fn copy_begins(out: &mut Vec<u8>, inward: bool, format: CopyFormat) {
    message(out, if inward { b'G' } else { b'H' }, |out| {
        out.push(u8::from(format.binary));
        count(out, format.columns);
        for _ in 0..format.columns {
            out.extend_from_slice(&u16::from(format.binary).to_be_bytes());
        }
    });
}

/// CopyData.
pub fn copy_data(out: &mut Vec<u8>, data: &[u8]) {
    message(out, b'd', |out| out.extend_from_slice(data));
}

/// ErrorResponse; `text` is what the error's place counts in.
pub fn error(out: &mut Vec<u8>, severity: Severity, error: &SqlError, text: Option<&str>) {
    message(out, b'E', |out| fields(out, severity, error, text));
}

/// NoticeResponse.
pub fn notice(out: &mut Vec<u8>, severity: Severity, notice: &SqlError) {
    message(out, b'N', |out| fields(out, severity, notice, None));
}

fn fields(out: &mut Vec<u8>, severity: Severity, error: &SqlError, text: Option<&str>) {
    let mut field = |tag: u8, value: &str| {
        out.push(tag);
        string(out, value);
    };
    let facts = error.fields();
    field(b'S', severity);
    field(b'V', severity);
    field(b'C', facts.code);
    field(b'M', &facts.message);
    if let Some(detail) = &facts.detail {
        field(b'D', detail);
    }
    if let Some(hint) = &facts.hint {
        field(b'H', hint);
    }
    if let Some(position) = text.and_then(|text| error.position(text)) {
        field(b'P', &position.to_string());
    }
    for (tag, name) in &facts.names {
        field(*tag, name);
    }
    field(b'F', facts.source.file());
    field(b'L', &facts.source.line().to_string());
    // Drivers know by the routine that they have to prepare the statement anew.
    let revalidates = facts.message == "cached plan must not change result type";
    let routine = if revalidates { "RevalidateCachedQuery".to_owned() } else { facts.source.routine() };
    field(b'R', &routine);
    out.push(0);
}
