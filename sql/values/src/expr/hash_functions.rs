//! The hash functions behind PostgreSQL's hash operator classes: the same values, since programs divide work and place rows by them.
//!
//! Bytes are hashed by Bob Jenkins' lookup3, which begins with PostgreSQL's initial value (`src/common/hashfn.c`). The functions whose name ends in
//! `extended` take a seed and give 64 bits.

use super::eval::Env;
use super::functions::{Function, table};
use crate::error::{Result, SqlError, code};
use crate::types::datum::Datum;
use crate::types::oid::{
    BPCHAR, CHAR, FLOAT4, FLOAT8, INT2, INT4, INT8, INTERVAL, NAME, NUMERIC, OID, PG_LSN, TEXT, TIME, TIMESTAMP,
    TIMETZ, UUID,
};
use crate::types::{Oid, SqlType, byte_char, format_type, oid};
use clearway_base::breath;

const ANYARRAY: Oid = oid::ANYARRAY;

/// Hashes of 32 bits, and with a seed of 64.
#[rustfmt::skip]
pub static FUNCTIONS: &[Function] = table! {
    "hashint2"(INT2) INT4 strict hash; "hashint2extended"(INT2, INT8) INT8 strict extended;
    "hashint4"(INT4) INT4 strict hash; "hashint4extended"(INT4, INT8) INT8 strict extended;
    "hashint8"(INT8) INT4 strict hash; "hashint8extended"(INT8, INT8) INT8 strict extended;
    "hashoid"(OID) INT4 strict hash; "hashoidextended"(OID, INT8) INT8 strict extended;
    "hashchar"(CHAR) INT4 strict hash_char; "hashcharextended"(CHAR, INT8) INT8 strict extended_char;
    "hashname"(NAME) INT4 strict hash; "hashnameextended"(NAME, INT8) INT8 strict extended;
    "hashtext"(TEXT) INT4 strict hash; "hashtextextended"(TEXT, INT8) INT8 strict extended;
    "hashbpchar"(BPCHAR) INT4 strict hash; "hashbpcharextended"(BPCHAR, INT8) INT8 strict extended;
    "hashfloat4"(FLOAT4) INT4 strict hash; "hashfloat4extended"(FLOAT4, INT8) INT8 strict extended;
    "hashfloat8"(FLOAT8) INT4 strict hash; "hashfloat8extended"(FLOAT8, INT8) INT8 strict extended;
    "hash_numeric"(NUMERIC) INT4 strict hash; "hash_numeric_extended"(NUMERIC, INT8) INT8 strict extended;
    "uuid_hash"(UUID) INT4 strict hash; "uuid_hash_extended"(UUID, INT8) INT8 strict extended;
    "time_hash"(TIME) INT4 strict hash; "time_hash_extended"(TIME, INT8) INT8 strict extended;
    "timetz_hash"(TIMETZ) INT4 strict hash; "timetz_hash_extended"(TIMETZ, INT8) INT8 strict extended;
    "timestamp_hash"(TIMESTAMP) INT4 strict hash; "timestamp_hash_extended"(TIMESTAMP, INT8) INT8 strict extended;
    "interval_hash"(INTERVAL) INT4 strict hash; "interval_hash_extended"(INTERVAL, INT8) INT8 strict extended;
    "pg_lsn_hash"(PG_LSN) INT4 strict hash; "pg_lsn_hash_extended"(PG_LSN, INT8) INT8 strict extended;
    "hash_array"(ANYARRAY) INT4 strict hash; "hash_array_extended"(ANYARRAY, INT8) INT8 strict extended;
};

fn hash(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    Ok(Datum::Int4(of_value(&a[0], None)? as u32 as i32))
}

fn extended(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    Ok(Datum::Int8(of_value(&a[0], Some(seed(a)))? as i64))
}

/// A `"char"` counts as a number with a sign.
fn hash_char(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    Ok(Datum::Int4(of_word(char_word(a), None) as u32 as i32))
}

fn extended_char(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    Ok(Datum::Int8(of_word(char_word(a), Some(seed(a))) as i64))
}

fn char_word(a: &[Datum]) -> u32 {
    i32::from(byte_char::byte(a[0].as_str().unwrap_or("")) as i8) as u32
}

fn seed(a: &[Datum]) -> u64 {
    a.get(1).and_then(Datum::as_i64).unwrap_or(0) as u64
}

/// The hash of a value: of 32 bits without a seed.
fn of_value(value: &Datum, seed: Option<u64>) -> Result<u64> {
    Ok(match value {
        Datum::Int2(v) => of_word(i32::from(*v) as u32, seed),
        Datum::Int4(v) | Datum::Date(v) => of_word(*v as u32, seed),
        Datum::Oid(v) => of_word(*v, seed),
        Datum::Bool(b) => of_word(u32::from(*b), seed),
        Datum::Int8(v) | Datum::Time(v) | Datum::Timestamp(v) | Datum::TimestampTz(v) => of_long(*v, seed),
        Datum::Lsn(v) => of_long(*v as i64, seed),
        // The lower bits of the span, as PostgreSQL has it.
        Datum::Interval(i) => of_long(i.span() as i64, seed),
        Datum::TimeTz(time, west) => of_long(*time, seed) ^ of_word(*west as u32, seed),
        Datum::Float4(v) => of_double(f64::from(*v), seed),
        Datum::Float8(v) => of_double(*v, seed),
        Datum::Numeric(n) => {
            let (weight, sign, _, digits) = n.to_wire();
            of_digits(weight, sign, &digits, seed)
        }
        Datum::Text(s) => of_bytes(s.as_bytes(), seed)?,
        Datum::Bpchar(s) => of_bytes(s.trim_end_matches(' ').as_bytes(), seed)?,
        Datum::Bytea(b) => of_bytes(b, seed)?,
        Datum::Uuid(u) => of_bytes(u, seed)?,
        Datum::Array(a) => {
            let is_char = a.element == oid::CHAR;
            let mut sum = 1u64;
            for element in &a.values {
                let own = match element {
                    Datum::Null => 0,
                    _ if is_char => of_word(char_word(std::slice::from_ref(element)), seed),
                    _ => of_value(element, seed).map_err(|_| no_hash(a.element))?,
                };
                sum = sum.wrapping_mul(31).wrapping_add(own);
            }
            if seed.is_none() { u64::from(sum as u32) } else { sum }
        }
        _ => return Err(SqlError::unsupported("the hash of a value of this type")),
    })
}

/// 42883
fn no_hash(ty: Oid) -> SqlError {
    let shown = format_type(SqlType::new(ty));
    SqlError::new(code::UNDEFINED_FUNCTION, format!("could not identify a hash function for type {shown}"))
}

/// A number of 64 bits that one of 32 bits could be has the hash of that one.
fn of_long(value: i64, seed: Option<u64>) -> u64 {
    let (low, high) = (value as u32, (value >> 32) as u32);
    of_word(low ^ if value >= 0 { high } else { !high }, seed)
}

/// Both zeros are one value, and so are all that are no number.
fn of_double(value: f64, seed: Option<u64>) -> u64 {
    if value == 0.0 {
        return seed.unwrap_or(0);
    }
    let bits = if value.is_nan() { 0x7ff8_0000_0000_0000 } else { value.to_bits() };
    State::new(8, seed).end(&bits.to_le_bytes(), seed)
}

/// The digits of a numeric without the zeros at both ends, and its weight: the same for each scale.
fn of_digits(weight: i16, sign: u16, digits: &[u16], seed: Option<u64>) -> u64 {
    if !matches!(sign, 0x0000 | 0x4000) {
        return seed.unwrap_or(0);
    }
    let Some(first) = digits.iter().position(|d| *d != 0) else {
        return seed.map_or(u64::from(u32::MAX), |seed| seed.wrapping_sub(1));
    };
    let last = digits.iter().rposition(|d| *d != 0).unwrap_or(first);
    let bytes: Vec<u8> = digits[first..=last].iter().flat_map(|d| d.to_le_bytes()).collect();
    let weight = i64::from(weight) - first as i64;
    let mut state = State::new(bytes.len(), seed);
    let rest = state.groups(&bytes);
    let of_digits = state.end(rest, seed);
    if seed.is_none() { u64::from(of_digits as u32 ^ weight as u32) } else { of_digits ^ weight as u64 }
}

/// The hash of bytes.
fn of_bytes(bytes: &[u8], seed: Option<u64>) -> Result<u64> {
    let mut state = State::new(bytes.len(), seed);
    let mut rest = bytes;
    // A multiple of the size of a group.
    while let Some((piece, after)) = rest.split_at_checked(12 << 12) {
        breath::step_bytes(piece.len())?;
        state.groups(piece);
        rest = after;
    }
    breath::step_bytes(rest.len())?;
    let rest = state.groups(rest);
    Ok(state.end(rest, seed))
}

fn of_word(word: u32, seed: Option<u64>) -> u64 {
    let mut state = State::new(4, seed);
    state.0 = state.0.wrapping_add(word);
    state.end(&[], seed)
}

/// The three numbers that are mixed.
struct State(u32, u32, u32);

impl State {
    fn new(length: usize, seed: Option<u64>) -> State {
        let first = 0x9e37_79b9u32.wrapping_add(length as u32).wrapping_add(3_923_095);
        let mut state = State(first, first, first);
        if let Some(seed @ 1..) = seed {
            state.0 = state.0.wrapping_add((seed >> 32) as u32);
            state.1 = state.1.wrapping_add(seed as u32);
            state.mix();
        }
        state
    }

    /// Takes whole groups of twelve bytes, and gives what is left.
    fn groups<'b>(&mut self, mut bytes: &'b [u8]) -> &'b [u8] {
        while let Some((group, rest)) = bytes.split_first_chunk::<12>() {
            self.add(group);
            self.mix();
            bytes = rest;
        }
        bytes
    }

    fn add(&mut self, group: &[u8; 12]) {
        let word = |at: usize| u32::from_le_bytes([group[at], group[at + 1], group[at + 2], group[at + 3]]);
        self.0 = self.0.wrapping_add(word(0));
        self.1 = self.1.wrapping_add(word(4));
        self.2 = self.2.wrapping_add(word(8));
    }

    /// The hash, after the last bytes, fewer than twelve. The lowest byte of the third number belongs to the length.
    fn end(mut self, rest: &[u8], seed: Option<u64>) -> u64 {
        let mut group = [0; 12];
        for (at, byte) in rest.iter().enumerate() {
            group[if at < 8 { at } else { at + 1 }] = *byte;
        }
        self.add(&group);
        self.finish();
        if seed.is_none() { u64::from(self.2) } else { u64::from(self.1) << 32 | u64::from(self.2) }
    }

    fn mix(&mut self) {
        let State(a, b, c) = self;
        for turn in [[4, 6, 8], [16, 19, 4]] {
            for by in turn {
                *a = a.wrapping_sub(*c) ^ c.rotate_left(by);
                *c = c.wrapping_add(*b);
                (*a, *b, *c) = (*b, *c, *a);
            }
        }
    }

    fn finish(&mut self) {
        let State(a, b, c) = self;
        for by in [14, 11, 25, 16, 4, 14, 24] {
            *c = (*c ^ *b).wrapping_sub(b.rotate_left(by));
            (*a, *b, *c) = (*b, *c, *a);
        }
        // Seven turns have moved each of them by one place.
        (*a, *b, *c) = (*c, *a, *b);
    }
}
