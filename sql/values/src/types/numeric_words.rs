//! Arithmetic of numerics whose digits fit a word, with results that do: most of those that a query computes row by row.

use super::numeric::Numeric::{self, Small};
use super::numeric::power;
use super::wide::SCALE_MAX;

/// Up to four digits to base 10,000 as one number; none: one is no digit.
#[inline]
pub(super) fn word_of(digits: impl Iterator<Item = u16>) -> Option<i64> {
    let mut word = 0;
    for digit in digits {
        if digit > 9_999 {
            return None;
        }
        word = word * 10_000 + i64::from(digit);
    }
    Some(word)
}

/// A number without its last decimal digits, where the last digit to base 10,000 has more than are shown; none: it is to be multiplied. A division by what the
/// compiler knows is a multiplication.
#[inline]
pub(super) fn cut_word(word: i64, exponent: i64) -> Option<i64> {
    Some(match exponent {
        0 => word,
        -1 => word / 10,
        -2 => word / 100,
        -3 => word / 1_000,
        _ => return None,
    })
}

impl Numeric {
    /// Both unscaled integers with the larger of the two scales, where they fit a word.
    #[inline]
    fn words(&self, other: &Self) -> Option<(i64, i64, u32)> {
        let (Small { unscaled: a, scale: s }, Small { unscaled: b, scale: t }) = (self, other) else { return None };
        if s == t {
            return Some((*a, *b, *s));
        }
        let step = |n: u32| power(n).and_then(|power| i64::try_from(power).ok());
        match s < t {
            true => Some((a.checked_mul(step(t - s)?)?, *b, *t)),
            false => Some((*a, b.checked_mul(step(s - t)?)?, *s)),
        }
    }

    /// Sum, of values and with a result that fit a word; none: some do not.
    #[inline]
    pub fn add_words(&self, other: &Self) -> Option<Self> {
        let (a, b, scale) = self.words(other)?;
        Some(Small { unscaled: a.checked_add(b)?, scale })
    }

    /// Difference, likewise.
    #[inline]
    pub fn sub_words(&self, other: &Self) -> Option<Self> {
        let (a, b, scale) = self.words(other)?;
        Some(Small { unscaled: a.checked_sub(b)?, scale })
    }

    /// Product, likewise.
    #[inline]
    pub fn mul_words(&self, other: &Self) -> Option<Self> {
        let (Small { unscaled: a, scale: s }, Small { unscaled: b, scale: t }) = (self, other) else { return None };
        (s + t <= SCALE_MAX).then_some(Small { unscaled: a.checked_mul(*b)?, scale: s + t })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::wide::Wide;

    #[test]
    fn words_give_what_wide_numbers_give() {
        let values = [0, 1, -1, 5, 99, -100, 12_345, i64::from(i32::MAX), i64::MAX, i64::MIN, 1 << 40, -(1 << 55)];
        let scales = [0, 1, 2, 6, 18, 19, 40];
        let all: Vec<Numeric> =
            values.iter().flat_map(|n| scales.iter().map(|scale| Small { unscaled: *n, scale: *scale })).collect();
        let wide = |n: &Numeric| match n {
            Small { unscaled, scale } => Wide::new((*unscaled).into(), *scale),
            _ => Wide::NaN,
        };
        let same = |word: Option<Numeric>, wide: Wide, what: &str| {
            let wide = Numeric::from(wide);
            let Some(word) = word else { return 0 };
            assert_eq!((word.to_string(), word.scale()), (wide.to_string(), wide.scale()), "{what}");
            1
        };
        let mut done = 0;
        for (a, b) in all.iter().flat_map(|a| all.iter().map(move |b| (a, b))) {
            done += same(a.add_words(b), wide(a).add(&wide(b)), &format!("{a} + {b}"));
            done += same(a.sub_words(b), wide(a).sub(&wide(b)), &format!("{a} - {b}"));
            done += same(a.mul_words(b), wide(a).mul(&wide(b), false), &format!("{a} * {b}"));
        }
        assert!(done > 3 * all.len(), "{done} fit a word");
    }

    #[test]
    fn digits_give_the_value_that_was_taken_apart() {
        for unscaled in
            [0, 1, -1, 5, 99, 100, 4_321, 10_000, 123_456, 99_999_999, -1_234_567_890_123, i64::MAX, i64::MIN]
        {
            for scale in 0..12 {
                let value = Small { unscaled, scale };
                let (weight, sign, shown, digits) = value.to_wire();
                let back = Numeric::of_digits(weight, sign, shown, digits.iter().copied());
                assert!(back.is_none_or(|back| back.to_string() == value.to_string()), "{value}");
            }
        }
    }
}
