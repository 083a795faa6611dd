//! Writes rows and describes columns in the form that the client asked for, text or binary.

use super::cells::write_integer;
use super::client::{Client, Column};
use crate::error::Result;
use crate::exec::Row;
use crate::planner::plan::OutputColumn;
use crate::types::size::fits;
use crate::types::text::{self, Conversion};
use crate::types::{Datum, binary, cast, facts, oid};
use std::sync::OnceLock;

/// The form of a column's values.
pub fn format_of(formats: &[i16], i: usize) -> bool {
    match formats {
        [] => false,
        [one] => *one == 1,
        list => list.get(i) == Some(&1),
    }
}

/// Writes a row as the client wants it.
///
/// # Errors
/// 54000, 53200 for a value whose text is too long.
pub fn write_row(
    conversion: &Conversion<'_>,
    columns: &[OutputColumn],
    formats: &[i16],
    row: &Row,
    client: &mut dyn Client,
) -> Result<()> {
    row.iter().try_for_each(fits)?;
    if conversion.format.encoding.differs() {
        return write_encoded(conversion, columns, formats, row, client);
    }
    client.row(row.len(), &mut |i, out| {
        let (Some(value), Some(column)) = (row.get(i), columns.get(i)) else { return false };
        if value.is_null() {
            return false;
        }
        match value {
            _ if format_of(formats, i) => binary::output(column.ty, value, out),
            Datum::Text(s) => {
                out.extend_from_slice(s.as_bytes());
                pad(s, column, out);
            }
            Datum::Bpchar(s) => out.extend_from_slice(s.as_bytes()),
            Datum::Int2(v) => write_integer(i64::from(*v), out),
            Datum::Int4(v) => write_integer(i64::from(*v), out),
            Datum::Int8(v) => write_integer(*v, out),
            Datum::Oid(v) if column.ty.oid == oid::OID => write_integer(i64::from(*v), out),
            Datum::Bool(b) => out.push(if *b { b't' } else { b'f' }),
            _ => out.extend_from_slice(text::output(column.ty, value, conversion).as_bytes()),
        }
        true
    });
    Ok(())
}

/// The same for a client whose text has another encoding.
#[cold]
fn write_encoded(
    conversion: &Conversion<'_>,
    columns: &[OutputColumn],
    formats: &[i16],
    row: &Row,
    client: &mut dyn Client,
) -> Result<()> {
    let encoding = conversion.format.encoding;
    let field = |(i, (value, column)): (usize, (&Datum, &OutputColumn))| {
        if value.is_null() {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        if format_of(formats, i) {
            binary::output(column.ty, binary::encoded(value, encoding)?.as_ref(), &mut bytes);
        } else {
            bytes.extend_from_slice(&encoding.encode(&text::output(column.ty, value, conversion))?);
        }
        Ok(Some(bytes))
    };
    let fields = row.iter().zip(columns).enumerate().map(field).collect::<Result<Vec<Option<Vec<u8>>>>>()?;
    client.row(row.len(), &mut |i, out| {
        let Some(Some(bytes)) = fields.get(i) else { return false };
        out.extend_from_slice(bytes);
        true
    });
    Ok(())
}

/// char(n) gets its blanks back.
fn pad(s: &str, column: &OutputColumn, out: &mut Vec<u8>) {
    if column.ty.oid == oid::BPCHAR && column.ty.modifier > 4 {
        out.resize(out.len() + (column.ty.modifier as usize - 4).saturating_sub(cast::characters(s.as_bytes())), b' ');
    }
}

/// What a connection has written for the columns of a prepared statement, to be written again.
#[derive(Debug)]
pub struct Described {
    formats: Vec<i16>,
    bytes: Box<[u8]>,
}

/// The columns of which a client is told before the rows.
#[derive(Clone, Copy)]
pub struct Told<'a> {
    /// These.
    pub columns: &'a [OutputColumn],
    /// Where the statement keeps what was written for them.
    pub kept: Option<&'a OnceLock<Described>>,
}

impl Told<'_> {
    /// Tells them. The first forms that are asked for are kept as bytes: making them took 280 instructions of a look-up of one value.
    pub fn tell(&self, formats: &[i16], client: &mut dyn Client) {
        let known = self.kept.and_then(OnceLock::get).filter(|known| known.formats == formats);
        if let (Some(known), Some(out)) = (known, client.output()) {
            out.extend_from_slice(&known.bytes);
            return;
        }
        let from = client.output().map(|out| out.len());
        describe(self.columns, formats, client);
        if let (Some(kept), Some(from), Some(out)) = (self.kept, from, client.output()) {
            let bytes = out.get(from..).unwrap_or_default().into();
            // Of other forms than the first nothing is kept.
            let _ = kept.set(Described { formats: formats.to_vec(), bytes });
        }
    }
}

/// Columns as the client is told of them.
pub fn describe(columns: &[OutputColumn], formats: &[i16], client: &mut dyn Client) {
    let described = |i: usize, c: &'_ OutputColumn| Column {
        name: "",
        table: c.origin.0,
        attribute: c.origin.1,
        ty: c.ty,
        len: facts(c.ty.oid).map_or(-1, |f| f.len),
        binary: format_of(formats, i),
    };
    // A list of one column, which every look-up of a value has, needs no memory.
    if let [only] = columns {
        return client.row_description(&[Column { name: &only.name, ..described(0, only) }]);
    }
    let list: Vec<Column<'_>> =
        columns.iter().enumerate().map(|(i, c)| Column { name: &c.name, ..described(i, c) }).collect();
    client.row_description(&list);
}
