//! COPY TO: writes rows as text, csv or in the binary form (CPY-2).

use super::options::{Form, Format, Header, forced_columns};
use crate::error::{Result, SqlError, code};
use crate::planner::plan::OutputColumn;
use crate::types::text::{self, Conversion};
use crate::types::{Datum, binary, oid};

/// The first bytes of the binary form.
pub const SIGNATURE: &[u8] = b"PGCOPY\n\xff\r\n\0";
/// The longest value of the binary form.
const VALUE_BYTES_MAX: usize = i32::MAX as usize;

/// Rows on their way out.
pub struct Writer<'a> {
    form: &'a Form,
    columns: Vec<OutputColumn>,
    force_quote: Vec<bool>,
}

impl<'a> Writer<'a> {
    /// A writer for rows of these columns.
    ///
    /// # Errors
    /// 42P10 for a FORCE_QUOTE column that is not copied.
    pub fn new(form: &'a Form, columns: Vec<OutputColumn>) -> Result<Self> {
        let names: Vec<String> = columns.iter().map(|c| c.name.clone()).collect();
        let force_quote = forced_columns(&form.force_quote, &names, "FORCE_QUOTE")?;
        Ok(Writer { form, columns, force_quote })
    }

    /// The bytes before the first row.
    ///
    /// # Errors
    /// 22P05.
    pub fn begin(&self, out: &mut Vec<u8>) -> Result<()> {
        if self.form.format == Format::Binary {
            out.extend_from_slice(SIGNATURE);
            out.extend_from_slice(&[0; 8]);
        } else if self.form.header != Header::None {
            for (i, column) in self.columns.iter().enumerate() {
                self.separator(i, out);
                match self.form.format {
                    // PostgreSQL quotes a name only where it must, whatever FORCE_QUOTE says.
                    Format::Csv => self.quoted(&column.name, false, out),
                    _ => self.escaped(&column.name, out),
                }
            }
            out.push(b'\n');
        }
        self.encode(out)
    }

    /// What was written as UTF-8, in the encoding that is asked for. The bytes between values are those of ASCII in each.
    fn encode(&self, out: &mut Vec<u8>) -> Result<()> {
        if self.form.encoding.differs() && self.form.format != Format::Binary {
            let encoded = self.form.encoding.encode(crate::encoding::utf8(out)?)?.into_owned();
            *out = encoded;
        }
        Ok(())
    }

    /// The bytes behind the last row.
    pub fn end(&self, out: &mut Vec<u8>) {
        if self.form.format == Format::Binary {
            out.extend_from_slice(&(-1i16).to_be_bytes());
        }
    }

    fn separator(&self, column: usize, out: &mut Vec<u8>) {
        if column > 0 {
            out.push(self.form.delimiter);
        }
    }

    /// One row.
    ///
    /// # Errors
    /// 54000 for a value that is too long for the binary form.
    pub fn row(&self, row: &[Datum], conversion: &Conversion<'_>, out: &mut Vec<u8>) -> Result<()> {
        row.iter().try_for_each(crate::types::size::fits)?;
        if self.form.format == Format::Binary {
            return self.binary(row, out);
        }
        let csv = self.form.format == Format::Csv;
        for (i, (value, column)) in row.iter().zip(&self.columns).enumerate() {
            self.separator(i, out);
            match value {
                Datum::Null => out.extend_from_slice(self.form.null.as_bytes()),
                // Digits need no quotes and no escapes; a text delimiter is none.
                Datum::Int4(_) | Datum::Int8(_) if !csv && self.form.delimiter != b'-' => {
                    crate::session::cells::write_integer(value.as_i64().unwrap_or(0), out);
                }
                Datum::Text(s) if column.ty.oid != oid::BPCHAR => self.shown(i, s, csv, out),
                _ => self.shown(i, &text::output(column.ty, value, conversion), csv, out),
            }
        }
        out.push(b'\n');
        self.encode(out)
    }

    fn shown(&self, column: usize, shown: &str, csv: bool, out: &mut Vec<u8>) {
        if csv {
            self.quoted(shown, self.force_quote[column], out);
        } else {
            self.escaped(shown, out);
        }
    }

    fn binary(&self, row: &[Datum], out: &mut Vec<u8>) -> Result<()> {
        out.extend_from_slice(&(row.len() as i16).to_be_bytes());
        for (value, column) in row.iter().zip(&self.columns) {
            if value.is_null() {
                out.extend_from_slice(&(-1i32).to_be_bytes());
                continue;
            }
            let at = out.len();
            out.extend_from_slice(&[0; 4]);
            if self.form.encoding.differs() {
                binary::output(column.ty, binary::encoded(value, self.form.encoding)?.as_ref(), out);
            } else {
                binary::output(column.ty, value, out);
            }
            let len = out.len() - at - 4;
            if len > VALUE_BYTES_MAX {
                let message = format!("a value of COPY has {len} bytes, of at most {VALUE_BYTES_MAX}");
                return Err(SqlError::new(code::PROGRAM_LIMIT_EXCEEDED, message));
            }
            out[at..at + 4].copy_from_slice(&(len as i32).to_be_bytes());
        }
        Ok(())
    }

    fn quoted(&self, s: &str, force: bool, out: &mut Vec<u8>) {
        let (quote, escape, delimiter) = (self.form.quote, self.form.escape, self.form.delimiter);
        let special = |b: u8| b == quote || b == delimiter || b == b'\n' || b == b'\r';
        // The end-of-data marker alone in a line would end the data.
        let is_marker = s == "\\." && self.columns.len() == 1;
        if !force && !is_marker && s != self.form.null && !s.bytes().any(special) {
            return out.extend_from_slice(s.as_bytes());
        }
        out.push(quote);
        for b in s.bytes() {
            if b == quote || b == escape {
                out.push(escape);
            }
            out.push(b);
        }
        out.push(quote);
    }

    fn escaped(&self, s: &str, out: &mut Vec<u8>) {
        let delimiter = self.form.delimiter;
        let bytes = s.as_bytes();
        let mut plain = 0;
        for (at, b) in bytes.iter().enumerate() {
            let letter = match b {
                8 => b'b',
                12 => b'f',
                b'\n' => b'n',
                b'\r' => b'r',
                b'\t' => b't',
                11 => b'v',
                b if *b == b'\\' || *b == delimiter => *b,
                _ => continue,
            };
            out.extend_from_slice(&bytes[plain..at]);
            out.extend_from_slice(&[b'\\', letter]);
            plain = at + 1;
        }
        out.extend_from_slice(&bytes[plain..]);
    }
}
