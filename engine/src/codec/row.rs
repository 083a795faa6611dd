//! Rows: the part of a tuple that is in the tree's value, beside the key.
//!
//! # Structure
//! ```text
//! head (1 byte: schema version & 0x3f, 0x40 = version continues in 2 more bytes, 0x80 = some value is null)
//! [null bits, one a column, if some value is null]
//! fixed columns at their declared width, little-endian; nulls take no space
//! variable columns: [width of an offset (1 byte: 1, 2 or 4), end offsets, if there are two or more], then their bytes
//! ```
//! The width is the smallest that holds the length of the variable part. The last variable column ends with the row and has no offset. So
//! a row with a single variable column has neither width nor offsets. A null takes no space and counts as no column here.
//!
//! # Invariants
//! - ROW-1: decoding a row with the columns with which it was encoded gives the same values. Damaged bytes never cause a panic; bytes that do
//!   not decode give an error.
//! - ROW-2: a row without nulls and variable columns costs one byte beside its columns.

use std::ops::Range;

use crate::decimal::{Decimal, StoredDecimal};
use crate::value::{Storage, Value, ValueRef};

const LONG_VERSION: u8 = 0x40;
const HAS_NULLS: u8 = 0x80;

/// The bytes are no row of these columns: what was wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a stored row is damaged: {0}")]
pub struct RowDamage(pub &'static str);

/// Appends the value part of a row. The values fit the columns.
pub fn encode_row<'v>(
    version: u16,
    columns: &[Storage],
    values: impl ExactSizeIterator<Item = ValueRef<'v>> + Clone,
    out: &mut Vec<u8>,
) {
    assert_eq!(columns.len(), values.len(), "a row has a value for each column");
    let (mut nulls, mut variable_columns, mut variable_bytes) = (false, 0, 0);
    for (storage, value) in columns.iter().zip(values.clone()) {
        assert_form(storage, value);
        nulls |= value.is_null();
        if let Some(len) = variable_len(value) {
            variable_columns += 1;
            variable_bytes += len;
        }
    }
    encode_head(version, nulls, out);
    if nulls {
        let from = out.len();
        out.resize(from + columns.len().div_ceil(8), 0);
        for (i, _) in values.clone().enumerate().filter(|(_, v)| v.is_null()) {
            out[from + i / 8] |= 1 << (i % 8);
        }
    }
    for (storage, value) in columns.iter().zip(values.clone()) {
        match (value, storage.fixed_width()) {
            (ValueRef::Bool(b), _) => out.push(u8::from(b)),
            // A copy of a known length takes no call.
            (ValueRef::Int(i), Some(4)) => out.extend_from_slice(&(i as i32).to_le_bytes()),
            (ValueRef::Int(i), Some(width @ ..8)) => out.extend_from_slice(&i.to_le_bytes()[..width]),
            (ValueRef::Int(i), _) => out.extend_from_slice(&i.to_le_bytes()),
            (ValueRef::Float(f), _) => out.extend_from_slice(&f.to_le_bytes()),
            (ValueRef::Null | ValueRef::Decimal(_) | ValueRef::StoredDecimal(_) | ValueRef::Bytes(_), _) => {}
        }
    }
    if variable_columns > 1 {
        assert!(u32::try_from(variable_bytes).is_ok(), "ROW-1: a row of {variable_bytes} bytes");
        let width = match variable_bytes {
            0..=0xff => 1,
            0x100..=0xffff => 2,
            _ => 4,
        };
        out.push(width as u8);
        let mut end = 0;
        for len in values.clone().filter_map(variable_len).take(variable_columns - 1) {
            end += len;
            out.extend_from_slice(&(end as u32).to_le_bytes()[..width]);
        }
    }
    let from = out.len();
    for value in values {
        match value {
            ValueRef::Decimal(d) => d.encode(out),
            ValueRef::StoredDecimal(d) => d.to_decimal().encode(out),
            ValueRef::Bytes(bytes) => out.extend_from_slice(bytes),
            ValueRef::Null | ValueRef::Bool(_) | ValueRef::Int(_) | ValueRef::Float(_) => {}
        }
    }
    assert_eq!(out.len() - from, variable_bytes, "ROW-1: the offsets are those of the bytes");
}

/// Appends what stands before the null bits.
pub(crate) fn encode_head(version: u16, nulls: bool, out: &mut Vec<u8>) {
    let head = if nulls { HAS_NULLS } else { 0 };
    if version < u16::from(LONG_VERSION) {
        out.push(head | version as u8);
    } else {
        out.push(head | LONG_VERSION);
        out.extend_from_slice(&version.to_le_bytes());
    }
}

/// A value in another form than its column's would be read back as another value (ROW-1).
#[inline]
fn assert_form(storage: &Storage, value: ValueRef<'_>) {
    let width = storage.fixed_width();
    match value {
        ValueRef::Null => {}
        ValueRef::Bool(_) => assert_eq!(width, Some(1), "ROW-1: a boolean in a column of another width"),
        ValueRef::Int(_) => assert!(width.is_some(), "ROW-1: an integer in a column without a width"),
        ValueRef::Float(_) => assert_eq!(width, Some(8), "ROW-1: a float in a column of another width"),
        ValueRef::Decimal(_) | ValueRef::StoredDecimal(_) | ValueRef::Bytes(_) => {
            assert_eq!(width, None, "ROW-1: bytes in a column of a fixed width");
        }
    }
}

/// Bytes of a value of a variable column; none: it is no such value.
#[inline]
fn variable_len(value: ValueRef<'_>) -> Option<usize> {
    match value {
        ValueRef::Decimal(d) => Some(d.encoded_len()),
        ValueRef::StoredDecimal(d) => Some(d.to_decimal().encoded_len()),
        ValueRef::Bytes(bytes) => Some(bytes.len()),
        ValueRef::Null | ValueRef::Bool(_) | ValueRef::Int(_) | ValueRef::Float(_) => None,
    }
}

/// A stored row that is read column by column.
#[derive(Clone, Copy, Debug)]
pub struct RowReader<'a> {
    /// The schema version with which it was written.
    pub version: u16,
    nulls: Option<&'a [u8]>,
    body: &'a [u8],
}

impl<'a> RowReader<'a> {
    /// Reads the head; the columns are those of the row's schema version, which the caller looks up.
    pub fn head(bytes: &'a [u8]) -> Result<(u16, RowHead<'a>), RowDamage> {
        let (head, rest) = bytes.split_first().ok_or(RowDamage("it is empty"))?;
        let (version, rest) = if head & LONG_VERSION == 0 {
            (u16::from(head & (LONG_VERSION - 1)), rest)
        } else {
            let (version, rest) = rest.split_first_chunk::<2>().ok_or(RowDamage("its schema version is cut off"))?;
            (u16::from_le_bytes(*version), rest)
        };
        Ok((version, RowHead { version, has_nulls: head & HAS_NULLS != 0, rest }))
    }

    /// Whether any column is null.
    #[inline]
    pub(crate) fn has_nulls(&self) -> bool {
        self.nulls.is_some()
    }

    /// Whether this one is.
    pub(crate) fn is_null(&self, column: usize) -> bool {
        self.nulls.is_some_and(|bits| bits.get(column / 8).is_some_and(|b| b & (1 << (column % 8)) != 0))
    }

    /// Where in the body the bytes of a column of fixed width stand; none: it is null, or its width depends on its value.
    pub fn place(&self, columns: &[Storage], column: usize) -> Option<Range<usize>> {
        let width = columns.get(column)?.fixed_width()?;
        let before = columns.iter().take(column).enumerate().filter(|(i, _)| !self.is_null(*i));
        let from: usize = before.filter_map(|(_, storage)| storage.fixed_width()).sum();
        let place = from..from + width;
        (!self.is_null(column) && place.end <= self.body.len()).then_some(place)
    }

    /// The bytes behind the head and the null bits, of which [`RowReader::place`] speaks.
    pub fn body(&self) -> &'a [u8] {
        self.body
    }

    /// Every value, in the order of the columns.
    pub fn values(&self, columns: &[Storage]) -> Result<Vec<Value>, RowDamage> {
        let mut values = Vec::with_capacity(columns.len());
        self.read_into(columns, &mut values)?;
        Ok(values)
    }

    /// Appends every value, in the order of the columns.
    pub fn read_into(&self, columns: &[Storage], values: &mut Vec<Value>) -> Result<(), RowDamage> {
        let from = values.len();
        let mut fixed = self.body;
        let mut variable_columns = 0;
        for (i, storage) in columns.iter().enumerate() {
            if self.is_null(i) {
                values.push(Value::Null);
                continue;
            }
            let Some(width) = storage.fixed_width() else {
                variable_columns += 1;
                values.push(Value::Bool(false));
                continue;
            };
            let (bytes, rest) = fixed.split_at_checked(width).ok_or(RowDamage("a fixed column is cut off"))?;
            values.push(fixed_value(*storage, bytes));
            fixed = rest;
        }
        if variable_columns == 0 {
            return fixed.is_empty().then_some(()).ok_or(RowDamage("bytes follow its last column"));
        }
        let mut ends = Ends::new(fixed, variable_columns)?;
        for (i, storage) in columns.iter().enumerate() {
            if storage.fixed_width().is_none() && !self.is_null(i) {
                let bytes = ends.next()?;
                values[from + i] = match storage {
                    Storage::Decimal => {
                        Value::Decimal(Decimal::decode(bytes).ok_or(RowDamage("a decimal is malformed"))?)
                    }
                    _ => Value::Bytes(bytes.into()),
                };
            }
        }
        Ok(())
    }

    /// Every value where it is, by its place among `columns`, which are all columns of the row. Fixed columns come first.
    pub fn refs(&self, columns: &[Storage], mut put: impl FnMut(usize, ValueRef<'a>)) -> Result<(), RowDamage> {
        let mut fixed = self.body;
        let mut variable_columns = 0;
        for (i, storage) in columns.iter().enumerate() {
            match storage.fixed_width() {
                _ if self.is_null(i) => put(i, ValueRef::Null),
                None => variable_columns += 1,
                Some(width) => {
                    let (bytes, rest) = fixed.split_at_checked(width).ok_or(RowDamage("a fixed column is cut off"))?;
                    fixed = rest;
                    put(
                        i,
                        match fixed_value(*storage, bytes) {
                            Value::Bool(value) => ValueRef::Bool(value),
                            Value::Int(value) => ValueRef::Int(value),
                            Value::Float(value) => ValueRef::Float(value),
                            _ => return Err(RowDamage("a fixed column is of no fixed type")),
                        },
                    );
                }
            }
        }
        if variable_columns == 0 {
            return fixed.is_empty().then_some(()).ok_or(RowDamage("bytes follow its last column"));
        }
        let mut ends = Ends::new(fixed, variable_columns)?;
        for (i, storage) in columns.iter().enumerate() {
            if storage.fixed_width().is_some() || self.is_null(i) {
                continue;
            }
            let bytes = ends.next()?;
            let decimal = || StoredDecimal::read(bytes).ok_or(RowDamage("a decimal is malformed"));
            put(
                i,
                if *storage == Storage::Decimal { ValueRef::StoredDecimal(decimal()?) } else { ValueRef::Bytes(bytes) },
            );
        }
        Ok(())
    }

    /// Gives the columns that are wanted, each with its position, to `put`. `columns` are all columns of the row.
    pub fn pick(
        &self,
        columns: &[(Storage, Option<usize>)],
        put: &mut dyn FnMut(usize, ValueRef<'_>),
    ) -> Result<(), RowDamage> {
        let mut fixed = self.body;
        let (mut variable_columns, mut want_variable) = (0, false);
        for (i, (storage, wanted)) in columns.iter().enumerate() {
            if self.is_null(i) {
                wanted.inspect(|position| put(*position, ValueRef::Null));
                continue;
            }
            let Some(width) = storage.fixed_width() else {
                variable_columns += 1;
                want_variable |= wanted.is_some();
                continue;
            };
            let (bytes, rest) = fixed.split_at_checked(width).ok_or(RowDamage("a fixed column is cut off"))?;
            fixed = rest;
            if let Some(position) = wanted {
                put(*position, fixed_value(*storage, bytes).borrow());
            }
        }
        if !want_variable {
            return Ok(());
        }
        let mut ends = Ends::new(fixed, variable_columns)?;
        for (i, (storage, wanted)) in columns.iter().enumerate() {
            if storage.fixed_width().is_some() || self.is_null(i) {
                continue;
            }
            let bytes = ends.next()?;
            match (wanted, storage) {
                (None, _) => {}
                (Some(position), Storage::Decimal) => {
                    let decimal = StoredDecimal::read(bytes).ok_or(RowDamage("a decimal is malformed"))?;
                    put(*position, ValueRef::StoredDecimal(decimal));
                }
                (Some(position), _) => put(*position, ValueRef::Bytes(bytes)),
            }
        }
        Ok(())
    }
}

/// A row whose schema version is known and whose columns are not yet.
#[derive(Clone, Copy, Debug)]
pub struct RowHead<'a> {
    version: u16,
    has_nulls: bool,
    rest: &'a [u8],
}

impl<'a> RowHead<'a> {
    /// The row, which has this many columns.
    pub fn reader(self, columns: usize) -> Result<RowReader<'a>, RowDamage> {
        let bits = if self.has_nulls { columns.div_ceil(8) } else { 0 };
        let (nulls, body) = self.rest.split_at_checked(bits).ok_or(RowDamage("its null bits are cut off"))?;
        Ok(RowReader { version: self.version, nulls: self.has_nulls.then_some(nulls), body })
    }
}

/// The variable columns of a row, one after the other.
struct Ends<'a> {
    offsets: &'a [u8],
    width: usize,
    data: &'a [u8],
    at: usize,
    left: usize,
}

impl<'a> Ends<'a> {
    fn new(bytes: &'a [u8], columns: usize) -> Result<Self, RowDamage> {
        if columns == 1 {
            return Ok(Ends { offsets: &[], width: 1, data: bytes, at: 0, left: 1 });
        }
        let (width, rest) = bytes.split_first().ok_or(RowDamage("its offsets are cut off"))?;
        let width = match width {
            1 | 2 | 4 => usize::from(*width),
            _ => return Err(RowDamage("the width of its offsets is neither 1, 2 nor 4")),
        };
        let (offsets, data) =
            rest.split_at_checked(width * (columns - 1)).ok_or(RowDamage("its offsets are cut off"))?;
        Ok(Ends { offsets, width, data, at: 0, left: columns })
    }

    fn next(&mut self) -> Result<&'a [u8], RowDamage> {
        self.left -= 1;
        let end = if self.left == 0 {
            self.data.len()
        } else {
            let (offset, rest) =
                self.offsets.split_at_checked(self.width).ok_or(RowDamage("its offsets are cut off"))?;
            self.offsets = rest;
            offset.iter().rev().fold(0usize, |n, b| n << 8 | usize::from(*b))
        };
        let bytes = self.data.get(self.at..end).ok_or(RowDamage("an offset lies outside the row"))?;
        self.at = end;
        Ok(bytes)
    }
}

fn fixed_value(storage: Storage, bytes: &[u8]) -> Value {
    match fixed_ref(storage, bytes) {
        ValueRef::Bool(value) => Value::Bool(value),
        ValueRef::Float(value) => Value::Float(value),
        ValueRef::Int(value) => Value::Int(value),
        _ => Value::Null,
    }
}

/// The same without a place of its own; the bytes are as many as the width of the storage.
#[inline]
pub(crate) fn fixed_ref(storage: Storage, bytes: &[u8]) -> ValueRef<'static> {
    let unsigned = match bytes.try_into() {
        Ok(eight) => u64::from_le_bytes(eight),
        Err(_) => bytes.iter().rev().fold(0u64, |n, b| n << 8 | u64::from(*b)),
    };
    match storage {
        Storage::Bool => ValueRef::Bool(unsigned != 0),
        Storage::Float => ValueRef::Float(f64::from_bits(unsigned)),
        _ => {
            // No bytes: there is no such storage.
            let shift = 64 - 8 * bytes.len().clamp(1, 8) as u32;
            ValueRef::Int((unsigned << shift) as i64 >> shift)
        }
    }
}
