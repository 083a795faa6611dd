//! Bit strings: bit and bit varying.
//!
//! # Invariants
//! - BIT-1: the unused bits of the last byte, behind the last bit, are zero.

use super::{SqlType, oid};
use crate::error::{Result, SqlError, code};
use clearway_base::memory;
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

/// The most bits (PostgreSQL's VARBITMAXLEN).
pub const BITS_MAX: usize = (i32::MAX - 7) as usize;

/// A bit string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bits {
    /// How many bits.
    length: usize,
    /// The bits, the first one highest.
    bytes: Vec<u8>,
}

impl Bits {
    /// Zeros.
    ///
    /// # Errors
    /// 54000 for too many; 53200.
    pub fn zeros(length: usize) -> Result<Bits> {
        if length > BITS_MAX {
            let message = format!("bit string length exceeds the maximum allowed ({BITS_MAX})");
            return Err(SqlError::new(code::PROGRAM_LIMIT_EXCEEDED, message));
        }
        memory::claim(length.div_ceil(8))?;
        Ok(Bits { length, bytes: vec![0; length.div_ceil(8)] })
    }

    /// These bits of these bytes; none: there are not as many.
    pub fn of_bytes(length: usize, bytes: &[u8]) -> Option<Bits> {
        if bytes.len() != length.div_ceil(8) || length > BITS_MAX {
            return None;
        }
        let mut out = Bits { length, bytes: bytes.to_vec() };
        out.clear_rest();
        Some(out)
    }

    fn clear_rest(&mut self) {
        if let (Some(last), used @ 1..) = (self.bytes.last_mut(), self.length % 8) {
            *last &= 0xff << (8 - used);
        }
    }

    /// How many bits.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The bytes (BIT-1).
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// A bit, from 0.
    pub fn get(&self, at: usize) -> bool {
        self.bytes.get(at / 8).is_some_and(|b| b & (0x80 >> (at % 8)) != 0)
    }

    /// Sets a bit.
    pub fn set(&mut self, at: usize, on: bool) {
        if at >= self.length {
            return;
        }
        let mask = 0x80 >> (at % 8);
        if on { self.bytes[at / 8] |= mask } else { self.bytes[at / 8] &= !mask }
    }

    /// Reads the text form: `0101`, `b0101` or `x5`.
    ///
    /// # Errors
    /// 22P02.
    pub fn parse(text: &str) -> Result<Bits> {
        let (hex, digits) = match text.chars().next() {
            Some('x' | 'X') => (true, &text[1..]),
            Some('b' | 'B') => (false, &text[1..]),
            _ => (false, text),
        };
        let width = if hex { 4 } else { 1 };
        let mut out = Bits::zeros(digits.chars().count() * width)?;
        for (i, c) in digits.chars().enumerate() {
            let digit = c.to_digit(if hex { 16 } else { 2 }).ok_or_else(|| {
                let kind = if hex { "hexadecimal" } else { "binary" };
                let message = format!("\"{c}\" is not a valid {kind} digit");
                SqlError::new(code::INVALID_TEXT_REPRESENTATION, message)
            })?;
            for bit in 0..width {
                out.set(i * width + bit, digit >> (width - 1 - bit) & 1 == 1);
            }
        }
        Ok(out)
    }

    /// The text form.
    pub fn text(&self) -> String {
        (0..self.length).map(|i| if self.get(i) { '1' } else { '0' }).collect()
    }

    /// Some of the bits, from a place on.
    ///
    /// # Errors
    /// 53200.
    pub fn part(&self, from: usize, length: usize) -> Result<Bits> {
        let length = length.min(self.length.saturating_sub(from));
        let mut out = Bits::zeros(length)?;
        if from % 8 == 0 {
            let bytes = out.bytes.len();
            out.bytes.copy_from_slice(&self.bytes[from / 8..from / 8 + bytes]);
            out.clear_rest();
            return Ok(out);
        }
        (0..length).for_each(|i| out.set(i, self.get(from + i)));
        Ok(out)
    }

    /// These bits, then others.
    ///
    /// # Errors
    /// 54000, 53200.
    pub fn joined(&self, other: &Bits) -> Result<Bits> {
        let mut out = Bits::zeros(self.length + other.length)?;
        out.bytes[..self.bytes.len()].copy_from_slice(&self.bytes);
        if self.length % 8 == 0 {
            out.bytes[self.bytes.len()..].copy_from_slice(&other.bytes);
        } else {
            (0..other.length).for_each(|i| out.set(self.length + i, other.get(i)));
        }
        Ok(out)
    }

    /// The low bits of a number.
    ///
    /// # Errors
    /// 54000, 53200.
    pub fn of_number(value: i64, length: usize) -> Result<Bits> {
        let mut out = Bits::zeros(length)?;
        for i in 0..length {
            let place = length - 1 - i;
            out.set(i, value >> place.min(63) & 1 == 1);
        }
        Ok(out)
    }

    /// As a number of so many bits; none: it has more.
    pub fn number(&self, width: usize) -> Option<i64> {
        if self.length > width {
            return None;
        }
        let value = (0..self.length).fold(0u64, |v, i| v << 1 | u64::from(self.get(i)));
        Some(if width == 32 { i64::from(value as u32 as i32) } else { value as i64 })
    }

    /// By bytes, then by length.
    pub fn compare(&self, other: &Bits) -> Ordering {
        let common = self.bytes.len().min(other.bytes.len());
        self.bytes[..common].cmp(&other.bytes[..common]).then(self.length.cmp(&other.length))
    }

    /// Fits them into the length of a type.
    ///
    /// # Errors
    /// 22026 for another length than that of bit(n), 22001 for more than varbit(n) takes; an explicit cast cuts or fills with zeros.
    pub fn fit(&self, ty: SqlType, explicit: bool) -> Result<Option<Bits>> {
        let wanted = usize::try_from(ty.modifier).unwrap_or(0);
        let (length, fixed) = (self.length, ty.oid == oid::BIT);
        if length == wanted || !fixed && length < wanted {
            return Ok(None);
        }
        if explicit {
            let mut out = self.part(0, wanted)?;
            out.bytes.resize(wanted.div_ceil(8), 0);
            out.length = wanted;
            return Ok(Some(out));
        }
        Err(match fixed {
            true => SqlError::new("22026", format!("bit string length {length} does not match type bit({wanted})")),
            false => SqlError::new("22001", format!("bit string too long for type bit varying({wanted})")),
        })
    }
}

impl Hash for Bits {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.length.hash(state);
        self.bytes.hash(state);
    }
}
