//! Exact decimals as they are stored: base-10000 digits with a weight, as PostgreSQL keeps them. Arithmetic is the SQL layer's.

use std::sync::Arc;

/// Sign of a decimal, or that it is no finite number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Sign {
    /// Minus infinity.
    NegativeInfinity = 1,
    /// Below zero.
    Negative = 2,
    /// Zero.
    Zero = 3,
    /// Above zero.
    Positive = 4,
    /// Plus infinity.
    Infinity = 5,
    /// Not a number; sorts above everything.
    Nan = 6,
}

/// `sign * 0.d1 d2 d3 ... * 10000^(weight + 1)`, shown with `scale` digits after the point.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Decimal {
    /// Its sign.
    pub sign: Sign,
    /// The power of 10000 of the first digit.
    pub weight: i16,
    /// Decimal digits shown after the point.
    pub scale: u16,
    /// Base-10000 digits, most significant first, without zeros at either end; empty for zero and for what is not finite.
    pub digits: Arc<[u16]>,
}

/// The base of a digit.
pub const BASE: u16 = 10_000;

/// A decimal where it stands in its row: sign, weight and scale have been read, the digits not yet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StoredDecimal<'a> {
    /// Its sign.
    pub sign: Sign,
    /// As in [`Decimal`].
    pub weight: i16,
    /// As in [`Decimal`].
    pub scale: u16,
    digits: &'a [[u8; 2]],
}

impl<'a> StoredDecimal<'a> {
    /// Reads the stored form; `None` if the bytes are no such form.
    pub fn read(bytes: &'a [u8]) -> Option<StoredDecimal<'a>> {
        let (sign, rest) = bytes.split_first()?;
        let sign = match sign {
            1 => Sign::NegativeInfinity,
            2 => Sign::Negative,
            3 => Sign::Zero,
            4 => Sign::Positive,
            5 => Sign::Infinity,
            6 => Sign::Nan,
            _ => return None,
        };
        let (scale, rest) = rest.split_first_chunk::<2>()?;
        let scale = u16::from_le_bytes(*scale);
        if !matches!(sign, Sign::Positive | Sign::Negative) {
            return rest.is_empty().then_some(StoredDecimal { sign, weight: 0, scale, digits: &[] });
        }
        let (weight, rest) = rest.split_first_chunk::<2>()?;
        let (digits, []) = rest.as_chunks::<2>() else {
            return None;
        };
        let decimal = StoredDecimal { sign, weight: i16::from_le_bytes(*weight), scale, digits };
        let ends_well = digits.first().is_some_and(|d| *d != [0; 2]) && digits.last() != Some(&[0; 2]);
        (ends_well && decimal.digits().all(|d| d < BASE)).then_some(decimal)
    }

    /// The digits, most significant first.
    pub fn digits(&self) -> impl ExactSizeIterator<Item = u16> + use<'a> {
        self.digits.iter().map(|d| u16::from_le_bytes(*d))
    }

    /// The decimal by itself.
    pub fn to_decimal(&self) -> Decimal {
        Decimal { sign: self.sign, weight: self.weight, scale: self.scale, digits: self.digits().collect() }
    }
}

impl Decimal {
    /// Appends the order-preserving form: equal numbers give equal bytes whatever their scale, and bytes sort as numbers do.
    pub fn encode_key(&self, out: &mut Vec<u8>) {
        out.push(self.sign as u8);
        let flip = match self.sign {
            Sign::Positive => 0u16,
            Sign::Negative => u16::MAX,
            _ => return,
        };
        let weight = (self.weight as u16) ^ 0x8000 ^ flip;
        out.extend_from_slice(&weight.to_be_bytes());
        for digit in self.digits.iter() {
            // 1..=10000, so that the end (0) sorts before every digit; complemented for negative numbers.
            out.extend_from_slice(&((digit + 1) ^ flip).to_be_bytes());
        }
        out.extend_from_slice(&flip.to_be_bytes());
    }

    /// Reads over the order-preserving form of one decimal; `None` if the bytes are no such form.
    pub fn skip_key(bytes: &[u8]) -> Option<&[u8]> {
        let (sign, mut rest) = bytes.split_first()?;
        let end: u16 = match *sign {
            s if s == Sign::Positive as u8 => 0,
            s if s == Sign::Negative as u8 => u16::MAX,
            1 | 3 | 5 | 6 => return Some(rest),
            _ => return None,
        };
        rest = rest.get(2..)?;
        loop {
            let (digit, after) = rest.split_first_chunk::<2>()?;
            rest = after;
            if u16::from_be_bytes(*digit) == end {
                return Some(rest);
            }
        }
    }

    /// Appends the stored form, which keeps the scale.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(self.sign as u8);
        out.extend_from_slice(&self.scale.to_le_bytes());
        if matches!(self.sign, Sign::Positive | Sign::Negative) {
            out.extend_from_slice(&self.weight.to_le_bytes());
            self.digits.iter().for_each(|d| out.extend_from_slice(&d.to_le_bytes()));
        }
    }

    /// How many bytes [`Decimal::encode`] appends.
    pub fn encoded_len(&self) -> usize {
        let number = size_of_val(&self.weight) + size_of_val(&self.digits[..]);
        let rest = if matches!(self.sign, Sign::Positive | Sign::Negative) { number } else { 0 };
        1 + size_of_val(&self.scale) + rest
    }

    /// Reads the stored form; `None` if the bytes are no such form.
    pub fn decode(bytes: &[u8]) -> Option<Decimal> {
        Some(StoredDecimal::read(bytes)?.to_decimal())
    }
}
