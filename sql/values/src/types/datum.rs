//! A value in memory: 24 bytes; machine words are stored inline, larger values are shared.

use super::bits::Bits;
use super::geometry::Geometry;
use super::hstore::Hstore;
use super::inet::Inet;
use super::interval::Interval;
use super::json::Json;
use super::jsonpath::JsonPath;
use super::numeric::Numeric;
use super::range::{self, Multirange, Range};
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A value.
#[derive(Clone, Debug)]
pub enum Datum {
    /// NULL.
    Null,
    /// boolean.
    Bool(bool),
    /// smallint.
    Int2(i16),
    /// integer.
    Int4(i32),
    /// bigint.
    Int8(i64),
    /// real.
    Float4(f32),
    /// double precision.
    Float8(f64),
    /// oid, xid, cid and the reg* types.
    Oid(u32),
    /// numeric.
    Numeric(Numeric),
    /// text, varchar, char(n), name, "char", unknown, cstring.
    Text(Arc<str>),
    /// bytea.
    Bytea(Arc<[u8]>),
    /// Days since 2000-01-01; `i32::MAX` and `MIN` are the infinities.
    Date(i32),
    /// Microseconds since 2000-01-01 00:00 of no zone; `i64::MAX` and `MIN` are the infinities.
    Timestamp(i64),
    /// Microseconds since 2000-01-01 00:00 UTC; the same.
    TimestampTz(i64),
    /// interval.
    Interval(Interval),
    /// Any array, int2vector and oidvector included.
    Array(Arc<Array>),
    /// A row: what ROW(...) makes, or a value of a composite type.
    Row(Arc<Record>),
    /// char(n) with its blanks; they do not count when values are compared.
    Bpchar(Arc<str>),
    /// uuid.
    Uuid([u8; 16]),
    /// pg_lsn.
    Lsn(u64),
    /// money, macaddr, macaddr8, xid8: bits that sort as the values do, and the type.
    Word(u64, super::Oid),
    /// time: microseconds since midnight.
    Time(i64),
    /// timetz: microseconds since midnight, and seconds west of Greenwich.
    TimeTz(i64, i32),
    /// json: its text.
    Json(Arc<str>),
    /// jsonb.
    Jsonb(Arc<Json>),
    /// jsonpath.
    JsonPath(Arc<JsonPath>),
    /// A label of an enum.
    Enum(Arc<EnumLabel>),
    /// inet, or cidr (true).
    Inet(Inet, bool),
    /// bit, bit varying.
    Bits(Arc<Bits>),
    /// A range.
    Range(Arc<Range>),
    /// A multirange.
    Multirange(Arc<Multirange>),
    /// citext.
    Citext(Arc<str>),
    /// hstore.
    Hstore(Arc<Hstore>),
    /// point, line, lseg, box, path, polygon, circle.
    Geometry(Arc<Geometry>),
    /// The value of void.
    Void,
}

/// An array.
#[derive(Clone, Debug)]
pub struct Array {
    /// The elements' type.
    pub element: super::Oid,
    /// Length and lower bound per dimension; none: an empty array.
    pub dims: Vec<(i32, i32)>,
    /// The elements, last dimension fastest.
    pub values: Vec<Datum>,
}

/// A label of an enum.
#[derive(Clone, Debug)]
pub struct EnumLabel {
    /// The enum.
    pub ty: super::Oid,
    /// The label's own oid.
    pub oid: super::Oid,
    /// Its place among the labels; a label that is put between others lies between theirs.
    pub order: i64,
    /// Its text.
    pub text: Arc<str>,
}

/// What the fields of a row are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowShape {
    /// The row's type: record, or a composite type.
    pub oid: super::Oid,
    /// The names of the fields; none: f1, f2, ...
    pub names: Option<Vec<String>>,
    /// Their types.
    pub types: Vec<super::SqlType>,
}

impl RowShape {
    /// The name of a field, from 0.
    pub fn name(&self, field: usize) -> String {
        let given = self.names.as_ref().and_then(|n| n.get(field));
        given.cloned().unwrap_or_else(|| format!("f{}", field + 1))
    }
}

/// A row.
#[derive(Clone, Debug)]
pub struct Record {
    /// What its fields are.
    pub shape: Arc<RowShape>,
    /// Their values.
    pub values: Vec<Datum>,
    /// The bytes of all of it (SIZ-1).
    pub(super) bytes: u64,
    /// How many rows stand within each other, itself included.
    pub(super) depth: u16,
}

impl Array {
    /// An array of one dimension that counts from 1.
    pub fn one_dimensional(element: super::Oid, values: Vec<Datum>) -> Self {
        let dims = if values.is_empty() { Vec::new() } else { vec![(values.len() as i32, 1)] };
        Self { element, dims, values }
    }
    /// An int2vector or oidvector, whose elements are counted from 0.
    pub fn vector(element: super::Oid, values: Vec<Datum>) -> Self {
        let mut array = Self::one_dimensional(element, values);
        array.dims.iter_mut().for_each(|d| d.1 = 0);
        array
    }
}

impl Datum {
    /// A text value.
    pub fn text(s: impl Into<Arc<str>>) -> Self {
        Self::Text(s.into())
    }
    /// A numeric value.
    pub fn numeric(n: Numeric) -> Self {
        Self::Numeric(n)
    }
    /// Whether it is NULL.
    #[inline]
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }
    /// Bytes of the value beyond its own 24; what is shared counts in full.
    pub fn heap_bytes(&self) -> usize {
        match self {
            Self::Text(s) => s.len(),
            Self::Bytea(b) => b.len(),
            Self::Array(a) => a.values.iter().map(|v| size_of::<Datum>() + v.heap_bytes()).sum(),
            Self::Row(r) => usize::try_from(r.bytes.saturating_mul(3)).unwrap_or(usize::MAX),
            Self::Bpchar(s) | Self::Json(s) | Self::Citext(s) => s.len(),
            Self::Hstore(h) => h.heap_bytes(),
            Self::Geometry(g) => g.heap_bytes(),
            Self::Numeric(n) => n.heap_bytes(),
            Self::Bits(b) => b.bytes().len(),
            Self::Range(r) => r.heap_bytes(),
            Self::Multirange(m) => m.heap_bytes(),
            Self::Jsonb(j) => size_of::<Json>() + j.heap_bytes(),
            _ => 0,
        }
    }
    /// The value of a text type.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Text(s) | Self::Bpchar(s) | Self::Json(s) | Self::Citext(s) => Some(s),
            _ => None,
        }
    }
    /// The value of an integer of any width.
    #[inline]
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Self::Int2(v) => Some(i64::from(*v)),
            Self::Int4(v) => Some(i64::from(*v)),
            Self::Int8(v) => Some(*v),
            Self::Oid(v) => Some(i64::from(*v)),
            _ => None,
        }
    }
    /// The value of a boolean.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(b) => Some(*b),
            _ => None,
        }
    }
    /// The value of a float of either width.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Self::Float4(v) => Some(f64::from(*v)),
            Self::Float8(v) => Some(*v),
            _ => None,
        }
    }
}

fn float_order(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

/// Orders two values of comparable types; neither is NULL except inside arrays and rows, where NULL is last.
///
/// Trailing blanks of char(n) do not count (TYP-1).
#[inline]
pub fn compare(a: &Datum, b: &Datum) -> Ordering {
    use Datum as D;
    match (a, b) {
        (D::Int4(x), D::Int4(y)) => x.cmp(y),
        (D::Int8(x), D::Int8(y)) => x.cmp(y),
        (D::Text(x), D::Text(y)) => x.as_bytes().cmp(y.as_bytes()),
        (D::Date(x), D::Date(y)) => x.cmp(y),
        (D::Numeric(x), D::Numeric(y)) => x.compare(y),
        (D::Bpchar(x), D::Bpchar(y)) => unpadded(x).as_bytes().cmp(unpadded(y).as_bytes()),
        _ => compare_any(a, b),
    }
}

fn compare_any(a: &Datum, b: &Datum) -> Ordering {
    use Datum as D;
    if let (Some(x), Some(y)) = (a.as_i64(), b.as_i64()) {
        return x.cmp(&y);
    }
    if let (Some(x), Some(y)) = (a.as_f64(), b.as_f64()) {
        return float_order(x, y);
    }
    match (a, b) {
        (D::Null, D::Null) => Ordering::Equal,
        (D::Null, _) => Ordering::Greater,
        (_, D::Null) => Ordering::Less,
        (D::Bool(x), D::Bool(y)) => x.cmp(y),
        (D::Numeric(x), D::Numeric(y)) => x.compare(y),
        (D::Bytea(x), D::Bytea(y)) => x.cmp(y),
        (D::Date(x), D::Date(y)) => x.cmp(y),
        (D::Timestamp(x), D::Timestamp(y)) | (D::TimestampTz(x), D::TimestampTz(y)) => x.cmp(y),
        (D::Date(x), D::Timestamp(y)) => super::datetime::compare_date(*x, *y),
        (D::Timestamp(x), D::Date(y)) => super::datetime::compare_date(*y, *x).reverse(),
        (D::Interval(x), D::Interval(y)) => x.span().cmp(&y.span()),
        (D::Array(x), D::Array(y)) => {
            let elements = x.values.iter().zip(&y.values).map(|(p, q)| compare(p, q)).find(|o| o.is_ne());
            elements.unwrap_or_else(|| {
                let lengths = |a: &Array| a.dims.iter().map(|d| d.0).collect::<Vec<_>>();
                let bounds = |a: &Array| a.dims.iter().map(|d| d.1).collect::<Vec<_>>();
                let counts = x.values.len().cmp(&y.values.len()).then_with(|| x.dims.len().cmp(&y.dims.len()));
                counts.then_with(|| lengths(x).cmp(&lengths(y))).then_with(|| bounds(x).cmp(&bounds(y)))
            })
        }
        (D::Row(x), D::Row(y)) => {
            let fields = x.values.iter().zip(&y.values).map(|(p, q)| compare(p, q)).find(|o| o.is_ne());
            fields.unwrap_or_else(|| x.values.len().cmp(&y.values.len()))
        }
        (D::Uuid(x), D::Uuid(y)) => x.cmp(y),
        (D::Lsn(x), D::Lsn(y)) | (D::Word(x, _), D::Word(y, _)) => x.cmp(y),
        (D::Time(x), D::Time(y)) => x.cmp(y),
        (D::TimeTz(x, west), D::TimeTz(y, other)) => super::time::zoned_order((*x, *west), (*y, *other)),
        (D::Jsonb(x), D::Jsonb(y)) => super::json::compare(x, y),
        (D::Inet(x, _), D::Inet(y, _)) => x.compare(y),
        (D::Enum(x), D::Enum(y)) => x.order.cmp(&y.order),
        (D::Bits(x), D::Bits(y)) => x.compare(y),
        (D::Range(x), D::Range(y)) => range::compare(x, y),
        (D::Multirange(x), D::Multirange(y)) => range::compare_multi(x, y),
        (D::Citext(x), D::Citext(y)) => super::citext::compare(x, y),
        (D::Hstore(x), D::Hstore(y)) => super::hstore::compare(x, y),
        (D::Geometry(x), D::Geometry(y)) => x.order(y),
        (D::Bpchar(_) | D::Text(_) | D::Json(_), D::Bpchar(_) | D::Text(_) | D::Json(_)) => {
            without_blanks(a).cmp(without_blanks(b))
        }
        // The binder never pairs other types; an order by kind keeps sorting total.
        _ => kind(a).cmp(&kind(b)),
    }
}

/// A char(n) without the blanks at its end. By bytes: that of the standard library decodes characters from the end on.
#[inline]
fn unpadded(s: &str) -> &str {
    // A character ends there: a blank or nothing follows.
    let end = s.as_bytes().iter().rposition(|byte| *byte != b' ').map_or(0, |at| at + 1);
    &s[..end]
}

/// The bytes by which a text is compared (TYP-1).
#[inline]
fn without_blanks(d: &Datum) -> &[u8] {
    match d {
        Datum::Bpchar(s) => unpadded(s).as_bytes(),
        other => other.as_str().unwrap_or("").as_bytes(),
    }
}

fn kind(d: &Datum) -> u8 {
    use Datum as D;
    match d {
        D::Bool(_) => 0,
        D::Int2(_) | D::Int4(_) | D::Int8(_) | D::Oid(_) => 1,
        D::Float4(_) | D::Float8(_) => 2,
        D::Numeric(_) => 3,
        D::Text(_) | D::Bpchar(_) | D::Json(_) => 4,
        D::Bytea(_) => 5,
        D::Date(_) | D::Timestamp(_) => 6,
        D::TimestampTz(_) => 7,
        D::Interval(_) => 8,
        D::Array(_) => 9,
        D::Row(_) => 10,
        D::Void => 11,
        D::Null => 12,
        D::Uuid(_) => 13,
        D::Time(_) => 14,
        D::TimeTz(..) => 15,
        D::Jsonb(_) => 16,
        D::JsonPath(_) => 17,
        D::Enum(_) => 18,
        D::Inet(..) => 19,
        D::Range(_) => 20,
        D::Multirange(_) => 21,
        D::Bits(_) => 22,
        D::Lsn(_) => 23,
        D::Word(..) => 24,
        D::Citext(_) => 25,
        D::Hstore(_) => 26,
        D::Geometry(_) => 27,
    }
}

/// Equality and hash for grouping: NULL equals NULL.
impl PartialEq for Datum {
    fn eq(&self, other: &Self) -> bool {
        compare(self, other).is_eq()
    }
}

impl Eq for Datum {}

impl Hash for Datum {
    fn hash<H: Hasher>(&self, state: &mut H) {
        use Datum as D;
        if let Some(v) = self.as_i64() {
            return v.hash(state);
        }
        if let Some(v) = self.as_f64() {
            let canonical = if v == 0.0 {
                0.0
            } else if v.is_nan() {
                f64::NAN
            } else {
                v
            };
            return canonical.to_bits().hash(state);
        }
        match self {
            D::Bool(v) => v.hash(state),
            D::Numeric(n) => n.hash(state),
            D::Text(s) => s.hash(state),
            D::Bytea(b) => b.hash(state),
            D::Date(d) => super::datetime::date_to_timestamp(*d).hash(state),
            D::Timestamp(t) | D::TimestampTz(t) => t.hash(state),
            D::Interval(i) => i.span().hash(state),
            D::Array(a) => a.values.hash(state),
            D::Row(r) => r.values.hash(state),
            D::Bpchar(s) => unpadded(s).hash(state),
            D::Json(s) => s.hash(state),
            D::Uuid(u) => u.hash(state),
            D::Lsn(v) | D::Word(v, _) => v.hash(state),
            D::Time(t) => t.hash(state),
            D::TimeTz(t, west) => (t + i64::from(*west) * 1_000_000, west).hash(state),
            D::Jsonb(j) => j.hash_into(state),
            D::Enum(e) => e.order.hash(state),
            D::Inet(v, _) => v.hash(state),
            D::Bits(b) => b.hash(state),
            D::Range(r) => r.hash(state),
            D::Multirange(m) => m.ranges.iter().for_each(|r| r.hash(state)),
            D::Citext(s) => super::citext::hash(s, state),
            D::Hstore(h) => h.hash(state),
            D::Geometry(g) => g.hash(state),
            _ => kind(self).hash(state),
        }
    }
}

const _: () = assert!(size_of::<Datum>() == 24);
