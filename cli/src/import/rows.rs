//! Writes rows of SQLite in the text form of COPY.

use rusqlite::Rows;
use rusqlite::types::ValueRef;

/// Appends rows until there are so many bytes; how many rows, and whether more may follow.
pub fn fill(rows: &mut Rows<'_>, types: &[&str], most: usize, out: &mut Vec<u8>) -> rusqlite::Result<(u64, bool)> {
    let mut count = 0;
    while out.len() < most {
        let Some(row) = rows.next()? else { return Ok((count, false)) };
        for (at, ty) in types.iter().enumerate() {
            if at > 0 {
                out.push(b'\t');
            }
            field(row.get_ref(at)?, ty, out);
        }
        out.push(b'\n');
        count += 1;
    }
    Ok((count, true))
}

fn field(value: ValueRef<'_>, ty: &str, out: &mut Vec<u8>) {
    let mut number = |text: String| match ty {
        "bytea" => bytea(text.as_bytes(), out),
        _ => out.extend_from_slice(text.as_bytes()),
    };
    match value {
        ValueRef::Null => out.extend_from_slice(b"\\N"),
        ValueRef::Integer(value) if ty == "boolean" => out.push(if value == 0 { b'f' } else { b't' }),
        ValueRef::Integer(value) => number(value.to_string()),
        ValueRef::Real(value) if value.is_infinite() => {
            number(if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned())
        }
        ValueRef::Real(value) => number(value.to_string()),
        ValueRef::Blob(bytes) => bytea(bytes, out),
        ValueRef::Text(bytes) if ty == "bytea" => bytea(bytes, out),
        ValueRef::Text(bytes) => text(bytes, out),
    }
}

fn bytea(bytes: &[u8], out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.extend_from_slice(b"\\\\x");
    for byte in bytes {
        out.push(HEX[usize::from(byte >> 4)]);
        out.push(HEX[usize::from(byte & 15)]);
    }
}

fn text(bytes: &[u8], out: &mut Vec<u8>) {
    for byte in bytes {
        match byte {
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\t' => out.extend_from_slice(b"\\t"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            byte => out.push(*byte),
        }
    }
}
