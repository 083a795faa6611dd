//! Rows in temporary files, for what does not fit `work_mem`.
//!
//! A row is one frame of its file: its values one after the other, in a form used nowhere else. Only the statement that wrote a row reads
//! it, so the fields of a composite type, which do not change within a statement, are kept in memory once per type.

use super::Row;
use clearway_context::errors::from_engine;
use clearway_engine::error::EngineError;
use clearway_storage::error::StorageError;
use clearway_storage::temp_files::{TempFile, TempFiles, TempReader};
use clearway_syntax::error::{Result, SqlError};
use clearway_txn::error::TxnError;
use clearway_values::types::datum::{Array, Record, RowShape};
use clearway_values::types::inet::Inet;
use clearway_values::types::interval::Interval;
use clearway_values::types::{Datum, Numeric, binary, json, jsonpath, oid, user};
use std::ops::Range;
use std::sync::Arc;

/// The smallest block that is read at a time.
const BLOCK_BYTES_MIN: usize = 8 << 10;

fn failed(e: StorageError) -> SqlError {
    from_engine(EngineError::Txn(TxnError::from(e)))
}

/// The shapes of the rows of composite types that were written.
#[derive(Default)]
struct Shapes(Vec<Arc<RowShape>>);

/// A temporary file of rows.
pub struct Spilled {
    file: TempFile,
    shapes: Shapes,
    bytes: Vec<u8>,
    rows: u64,
}

impl Spilled {
    /// An empty one.
    pub async fn create((files, database): (&Arc<TempFiles>, u32)) -> Result<Self> {
        let file = files.create(database).await.map_err(failed)?;
        Ok(Self { file, shapes: Shapes::default(), bytes: Vec::new(), rows: 0 })
    }

    /// An empty one beside others among which rows are divided: the buffers of all of them are together about as large as `work_bytes`.
    pub async fn create_among(
        (files, database): (&Arc<TempFiles>, u32),
        count: usize,
        work_bytes: usize,
    ) -> Result<Self> {
        let file = files.create(database).await.map_err(failed)?.in_blocks(work_bytes / count);
        Ok(Self { file, shapes: Shapes::default(), bytes: Vec::new(), rows: 0 })
    }

    /// Where the next row goes.
    pub fn end(&self) -> u64 {
        self.file.end()
    }

    /// Rows that were written.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Appends a row, which may stand in two parts.
    pub async fn append(&mut self, first: &[Datum], second: &[Datum]) -> Result<()> {
        self.bytes.clear();
        for value in first.iter().chain(second) {
            self.shapes.put(value, &mut self.bytes);
        }
        self.rows += 1;
        self.file.append_frame(&self.bytes).await.map_err(failed)
    }

    /// Appends the values of a row in these slots, null for one that it lacks, and one more.
    pub async fn append_slots(&mut self, row: &[Datum], slots: &[usize], last: &Datum) -> Result<()> {
        self.bytes.clear();
        for slot in slots {
            self.shapes.put(row.get(*slot).unwrap_or(&Datum::Null), &mut self.bytes);
        }
        self.shapes.put(last, &mut self.bytes);
        self.rows += 1;
        self.file.append_frame(&self.bytes).await.map_err(failed)
    }

    /// Nothing is appended for now: no buffer is kept.
    pub async fn end_writing(&mut self) -> Result<()> {
        self.bytes = Vec::new();
        self.file.end_writing().await.map_err(failed)
    }

    /// A reader of all that was written, after `end_writing`.
    pub fn reader_of_all(&self, block_bytes: usize) -> SpillReader {
        let reader = self.file.reader(0..self.file.end(), block_bytes.max(BLOCK_BYTES_MIN));
        SpillReader { reader, shapes: self.shapes.0.clone() }
    }

    /// The same from a row on.
    pub fn reader_from(&self, from: u64, block_bytes: usize) -> SpillReader {
        let reader = self.file.reader(from..self.file.end(), block_bytes.max(BLOCK_BYTES_MIN));
        SpillReader { reader, shapes: self.shapes.0.clone() }
    }

    /// A reader of what was written to a part of the file.
    pub async fn reader(&mut self, part: Range<u64>, block_bytes: usize) -> Result<SpillReader> {
        self.file.flush().await.map_err(failed)?;
        let reader = self.file.reader(part, block_bytes.max(BLOCK_BYTES_MIN));
        Ok(SpillReader { reader, shapes: self.shapes.0.clone() })
    }
}

/// Reads rows of a temporary file.
pub struct SpillReader {
    reader: TempReader,
    shapes: Vec<Arc<RowShape>>,
}

impl SpillReader {
    /// The values of the next row; none: there is none.
    pub async fn next(&mut self) -> Result<Option<Row>> {
        let mut row = Row::new();
        Ok(self.append_next(&mut row).await?.then_some(row))
    }

    /// Appends the values of the next row to a list; false: there is none.
    pub async fn append_next(&mut self, out: &mut Vec<Datum>) -> Result<bool> {
        if self.reader.next_frame().await.map_err(failed)?.is_none() {
            return Ok(false);
        }
        let mut rest = self.reader.frame();
        while !rest.is_empty() {
            match value(&mut rest, &self.shapes) {
                Some(value) => out.push(value),
                None => return Err(failed(self.reader.damaged("the values of a row").into())),
            }
        }
        Ok(true)
    }
}

/// A value of 64 bits: its kind, the bits, and the type where several have the kind.
fn put_word(value: &Datum, out: &mut Vec<u8>) {
    match value {
        Datum::Lsn(v) => {
            out.push(30);
            out.extend(v.to_le_bytes());
        }
        Datum::Word(v, ty) => {
            out.push(31);
            out.extend(v.to_le_bytes());
            out.extend(ty.to_le_bytes());
        }
        _ => {}
    }
}

impl Shapes {
    fn place(&mut self, shape: &Arc<RowShape>) -> u32 {
        let same = |s: &Arc<RowShape>| Arc::ptr_eq(s, shape) || **s == **shape;
        let found = self.0.iter().rposition(same).unwrap_or_else(|| {
            self.0.push(shape.clone());
            self.0.len() - 1
        });
        found as u32
    }

    /// Appends a value.
    fn put(&mut self, value: &Datum, out: &mut Vec<u8>) {
        use Datum as D;
        match value {
            D::Null => out.push(0),
            D::Bool(b) => out.extend([1, u8::from(*b)]),
            D::Int2(v) => fixed(2, &v.to_le_bytes(), out),
            D::Int4(v) => fixed(3, &v.to_le_bytes(), out),
            D::Int8(v) => fixed(4, &v.to_le_bytes(), out),
            D::Float4(v) => fixed(5, &v.to_le_bytes(), out),
            D::Float8(v) => fixed(6, &v.to_le_bytes(), out),
            D::Oid(v) => fixed(7, &v.to_le_bytes(), out),
            D::Numeric(Numeric::Small { unscaled, scale }) => {
                fixed(8, &unscaled.to_le_bytes(), out);
                out.extend(scale.to_le_bytes());
            }
            D::Numeric(n) => bytes(9, n.to_string().as_bytes(), out),
            D::Text(s) => bytes(10, s.as_bytes(), out),
            D::Bytea(b) => bytes(11, b, out),
            D::Date(v) => fixed(12, &v.to_le_bytes(), out),
            D::Timestamp(v) => fixed(13, &v.to_le_bytes(), out),
            D::TimestampTz(v) => fixed(14, &v.to_le_bytes(), out),
            D::Interval(i) => {
                fixed(15, &i.micros.to_le_bytes(), out);
                out.extend(i.days.to_le_bytes());
                out.extend(i.months.to_le_bytes());
            }
            D::Array(a) => {
                fixed(16, &a.element.to_le_bytes(), out);
                out.extend((a.dims.len() as u32).to_le_bytes());
                for (len, low) in &a.dims {
                    out.extend(len.to_le_bytes());
                    out.extend(low.to_le_bytes());
                }
                self.put_list(&a.values, out);
            }
            D::Row(r) => {
                fixed(17, &self.place(&r.shape).to_le_bytes(), out);
                self.put_list(&r.values, out);
            }
            D::Bpchar(s) => bytes(18, s.as_bytes(), out),
            D::Uuid(u) => fixed(19, u, out),
            D::Lsn(_) | D::Word(..) => put_word(value, out),
            D::Time(v) => fixed(20, &v.to_le_bytes(), out),
            D::TimeTz(v, west) => {
                fixed(21, &v.to_le_bytes(), out);
                out.extend(west.to_le_bytes());
            }
            D::Json(s) => bytes(22, s.as_bytes(), out),
            D::Jsonb(j) => bytes(23, &json::stored::encode(j), out),
            D::JsonPath(p) => bytes(24, p.to_string().as_bytes(), out),
            D::Enum(e) => {
                fixed(25, &e.ty.to_le_bytes(), out);
                out.extend(e.order.to_le_bytes());
            }
            D::Inet(v, cidr) => bytes(if *cidr { 27 } else { 26 }, &v.key(), out),
            D::Void => out.push(28),
            D::Bits(_) => wire(oid::VARBIT, value, out),
            D::Range(r) => wire(r.kind.range, value, out),
            D::Multirange(m) => wire(m.kind.multirange, value, out),
            D::Citext(_) => wire(oid::CITEXT, value, out),
            D::Hstore(_) => wire(oid::HSTORE, value, out),
            D::Geometry(g) => wire(g.ty(), value, out),
        }
    }

    fn put_list(&mut self, values: &[Datum], out: &mut Vec<u8>) {
        out.extend((values.len() as u32).to_le_bytes());
        clearway_base::stack::deeper(|| values.iter().for_each(|v| self.put(v, out)));
    }
}

fn fixed(tag: u8, value: &[u8], out: &mut Vec<u8>) {
    out.push(tag);
    out.extend_from_slice(value);
}

fn bytes(tag: u8, value: &[u8], out: &mut Vec<u8>) {
    out.push(tag);
    out.extend((value.len() as u32).to_le_bytes());
    out.extend_from_slice(value);
}

/// The type, and the form on the wire with its length.
fn wire(ty: u32, value: &Datum, out: &mut Vec<u8>) {
    fixed(29, &ty.to_le_bytes(), out);
    let mut form = Vec::new();
    binary::output(ty.into(), value, &mut form);
    out.extend((form.len() as u32).to_le_bytes());
    out.extend(form);
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (first, after) = rest.split_first_chunk::<N>()?;
    *rest = after;
    Some(*first)
}

fn take_bytes<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = u32::from_le_bytes(take(rest)?) as usize;
    let (first, after) = rest.split_at_checked(len)?;
    *rest = after;
    Some(first)
}

fn take_text<'a>(rest: &mut &'a [u8]) -> Option<&'a str> {
    std::str::from_utf8(take_bytes(rest)?).ok()
}

fn take_list(rest: &mut &[u8], shapes: &[Arc<RowShape>]) -> Option<Vec<Datum>> {
    let count = u32::from_le_bytes(take(rest)?) as usize;
    let mut values = Vec::with_capacity(count.min(rest.len()));
    clearway_base::stack::deeper(|| {
        for _ in 0..count {
            values.push(value(rest, shapes)?);
        }
        Some(values)
    })
}

/// The next value.
fn value(rest: &mut &[u8], shapes: &[Arc<RowShape>]) -> Option<Datum> {
    use Datum as D;
    let [tag] = take(rest)?;
    Some(match tag {
        0 => D::Null,
        1 => D::Bool(take::<1>(rest)? != [0]),
        2 => D::Int2(i16::from_le_bytes(take(rest)?)),
        3 => D::Int4(i32::from_le_bytes(take(rest)?)),
        4 => D::Int8(i64::from_le_bytes(take(rest)?)),
        5 => D::Float4(f32::from_le_bytes(take(rest)?)),
        6 => D::Float8(f64::from_le_bytes(take(rest)?)),
        7 => D::Oid(u32::from_le_bytes(take(rest)?)),
        8 => {
            let unscaled = i64::from_le_bytes(take(rest)?);
            D::numeric(Numeric::Small { unscaled, scale: u32::from_le_bytes(take(rest)?) })
        }
        9 => D::numeric(Numeric::parse(take_text(rest)?)?.ok()?),
        10 => D::text(take_text(rest)?),
        11 => D::Bytea(take_bytes(rest)?.into()),
        12 => D::Date(i32::from_le_bytes(take(rest)?)),
        13 => D::Timestamp(i64::from_le_bytes(take(rest)?)),
        14 => D::TimestampTz(i64::from_le_bytes(take(rest)?)),
        15 => {
            let micros = i64::from_le_bytes(take(rest)?);
            let days = i32::from_le_bytes(take(rest)?);
            D::Interval(Interval { micros, days, months: i32::from_le_bytes(take(rest)?) })
        }
        16 => {
            let element = u32::from_le_bytes(take(rest)?);
            let mut dims = Vec::new();
            for _ in 0..u32::from_le_bytes(take(rest)?) {
                dims.push((i32::from_le_bytes(take(rest)?), i32::from_le_bytes(take(rest)?)));
            }
            D::Array(Array { element, dims, values: take_list(rest, shapes)? }.into())
        }
        17 => {
            let shape = shapes.get(u32::from_le_bytes(take(rest)?) as usize)?.clone();
            D::Row(Record::new(shape, take_list(rest, shapes)?).ok()?.into())
        }
        18 => D::Bpchar(take_text(rest)?.into()),
        19 => D::Uuid(take(rest)?),
        30 => D::Lsn(u64::from_le_bytes(take(rest)?)),
        31 => {
            let word = u64::from_le_bytes(take(rest)?);
            D::Word(word, u32::from_le_bytes(take(rest)?))
        }
        20 => D::Time(i64::from_le_bytes(take(rest)?)),
        21 => {
            let time = i64::from_le_bytes(take(rest)?);
            D::TimeTz(time, i32::from_le_bytes(take(rest)?))
        }
        22 => D::Json(take_text(rest)?.into()),
        23 => D::Jsonb(json::stored::decode(take_bytes(rest)?)?.into()),
        24 => D::JsonPath(jsonpath::parse(take_text(rest)?).ok()?.into()),
        25 => {
            let ty = u32::from_le_bytes(take(rest)?);
            user::label_at(ty, i64::from_le_bytes(take(rest)?))?
        }
        26 | 27 => D::Inet(Inet::of_key(take_bytes(rest)?)?, tag == 27),
        28 => D::Void,
        29 => {
            let ty = u32::from_le_bytes(take(rest)?);
            binary::input(ty.into(), take_bytes(rest)?).ok()?
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_value_comes_back() {
        let shape = Arc::new(RowShape { oid: oid::RECORD, names: None, types: vec![oid::INT4.into()] });
        let record = |values| Datum::Row(Record::new(shape.clone(), values).unwrap().into());
        let row = |n| record(vec![Datum::Int4(n), Datum::Null]);
        let numeric = |text: &str| Datum::numeric(Numeric::parse(text).unwrap().unwrap());
        let values = vec![
            Datum::Null,
            Datum::Bool(true),
            Datum::Citext("Ab".into()),
            Datum::Hstore(clearway_values::types::hstore::parse("a=>B, c=>NULL").unwrap().into()),
            Datum::Int2(-2),
            Datum::Int4(i32::MIN),
            Datum::Int8(i64::MAX),
            Datum::Float4(1.5),
            Datum::Float8(f64::NEG_INFINITY),
            Datum::Oid(u32::MAX),
            numeric("-12.340"),
            numeric("123456789012345678901234567890.5"),
            numeric("NaN"),
            Datum::text("é"),
            Datum::Bytea([0, 255][..].into()),
            Datum::Date(-1),
            Datum::Timestamp(i64::MIN),
            Datum::TimestampTz(7),
            Datum::Interval(Interval { months: 1, days: -2, micros: 3 }),
            Datum::Array(
                Array { element: oid::INT4, dims: vec![(2, 0)], values: vec![Datum::Int4(1), Datum::Null] }.into(),
            ),
            row(1),
            row(2),
            Datum::Bpchar("a  ".into()),
            Datum::Uuid([9; 16]),
            Datum::Lsn(u64::MAX - 1),
            clearway_values::types::word::money(-12_345),
            Datum::Time(5),
            Datum::TimeTz(5, -3600),
            Datum::Json("{\"a\": 1}".into()),
            Datum::Jsonb(
                json::stored::decode(&json::stored::encode(&json::Json::number(Numeric::from(7)))).unwrap().into(),
            ),
            Datum::JsonPath(jsonpath::parse("$.a[*] ? (@ > 1)").unwrap().into()),
            Datum::Inet(Inet::parse("10.1.2.3/8", false).unwrap(), false),
            Datum::Inet(Inet::parse("10.0.0.0/8", true).unwrap(), true),
            clearway_values::types::geometry_text::parse(oid::PATH, "[(1,2),(3,4)]").unwrap(),
            clearway_values::types::geometry_text::parse(oid::CIRCLE, "<(1,2),3>").unwrap(),
            Datum::Void,
        ];
        let (mut shapes, mut bytes) = (Shapes::default(), Vec::new());
        values.iter().for_each(|v| shapes.put(v, &mut bytes));
        assert_eq!(shapes.0.len(), 1, "rows of one shape share it");
        let mut rest = &bytes[..];
        for expected in &values {
            let found = value(&mut rest, &shapes.0).unwrap();
            assert_eq!(format!("{found:?}"), format!("{expected:?}"));
        }
        assert!(rest.is_empty());
        // Bytes that were cut off are told, whatever is missing.
        for end in 0..bytes.len() {
            let mut rest = &bytes[..end];
            while !rest.is_empty() && value(&mut rest, &shapes.0).is_some() {}
        }
    }
}
