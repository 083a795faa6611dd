//! Looks for a value in a long array without comparing it with each element, as PostgreSQL hashes arrays of nine elements and more: a condition
//! such as `x = ANY ($1)` that no index serves is evaluated for each row with the same array.
//!
//! # Invariants
//! - LAR-1: an array's order is used for that array alone. It is remembered beside a weak pointer, and while that lives the memory of the array's
//!   head is not used for another one.

use crate::error::Result;
use crate::types::Datum;
use crate::types::datum::{Array, compare};
use crate::types::numeric::Numeric;
use clearway_base::breath;
use std::cell::RefCell;
use std::sync::{Arc, Weak};

/// Elements from which on an array is sorted: PostgreSQL's `MIN_ARRAY_SIZE_FOR_HASHED_SAOP`.
pub const LONG: usize = 9;
/// Elements that are sorted without a breath.
const CHUNK: usize = 1 << 14;
/// Arrays that a thread remembers.
const REMEMBERED: usize = 4;
/// Work of sorting an element, in units of `breath::step`.
const SORTING: u32 = 64;

/// What is known of an array that was seen.
struct Known {
    array: Weak<Array>,
    /// None: it was seen once, and may be another one for each row.
    order: Option<Order>,
}

/// The elements that are not null, sorted in chunks.
struct Order {
    sorted: Sorted,
    has_null: bool,
}

enum Sorted {
    /// Numbers, all as integers with so many digits behind the point.
    Numbers(Vec<Vec<i64>>, u32),
    /// The places of elements of another type.
    Places(Vec<Vec<u32>>),
}

thread_local! {
    static KNOWN: RefCell<Vec<Known>> = const { RefCell::new(Vec::new()) };
}

/// Whether an element equals the value, which is not null, and whether there are nulls; none: the elements are to be compared one by one.
pub(super) fn look_up(array: &Arc<Array>, value: &Datum) -> Result<Option<(bool, bool)>> {
    if array.values.len() < LONG {
        return Ok(None);
    }
    KNOWN.with_borrow_mut(|known| {
        let Some(at) = known.iter().position(|k| std::ptr::eq(k.array.as_ptr(), Arc::as_ptr(array))) else {
            if known.len() == REMEMBERED {
                known.remove(0);
            }
            known.push(Known { array: Arc::downgrade(array), order: None });
            return Ok(None);
        };
        let order = match &mut known[at].order {
            Some(order) => order,
            order => order.insert(Order::of(&array.values, number_of(value))?),
        };
        let is_in = match &order.sorted {
            Sorted::Numbers(chunks, scale) => match number_of(value) {
                Some(number) => {
                    scaled(number, *scale).is_some_and(|number| chunks.iter().any(|c| c.binary_search(&number).is_ok()))
                }
                None => return Ok(None),
            },
            Sorted::Places(chunks) => chunks
                .iter()
                .any(|chunk| chunk.binary_search_by(|place| compare(&array.values[*place as usize], value)).is_ok()),
        };
        Ok(Some((is_in, order.has_null)))
    })
}

/// A number as an integer, and how many digits it has behind the point; none: it is not a number, or does not fit a word.
fn number_of(value: &Datum) -> Option<(i64, u32)> {
    match value {
        Datum::Numeric(Numeric::Small { scale, unscaled }) => Some((*unscaled, *scale)),
        Datum::Int4(n) => Some((i64::from(*n), 0)),
        Datum::Int8(n) => Some((*n, 0)),
        _ => None,
    }
}

/// The same number as an integer with so many digits behind the point; none: there is none that fits.
#[inline]
fn scaled((number, scale): (i64, u32), wanted: u32) -> Option<i64> {
    if scale == wanted {
        return Some(number);
    }
    let step = 10i64.checked_pow(scale.abs_diff(wanted));
    match (scale < wanted, step) {
        (true, step) => {
            if number == 0 {
                Some(0)
            } else {
                number.checked_mul(step?)
            }
        }
        (false, Some(step)) => (number % step == 0).then_some(number / step),
        (false, None) => (number == 0).then_some(0),
    }
}

impl Order {
    /// The order of elements among which this number is looked for.
    fn of(values: &[Datum], sought: Option<(i64, u32)>) -> Result<Order> {
        let has_null = values.iter().any(Datum::is_null);
        let numbers = values.iter().filter(|value| !value.is_null()).map(number_of).collect::<Option<Vec<_>>>();
        if let (Some(numbers), Some(sought)) = (numbers, sought)
            && let Some(scale) = numbers.iter().map(|number| number.1).chain([sought.1]).max()
            && let Some(numbers) = numbers.into_iter().map(|number| scaled(number, scale)).collect::<Option<Vec<_>>>()
        {
            let mut chunks = Vec::new();
            for part in numbers.chunks(CHUNK) {
                breath::step(SORTING * part.len() as u32)?;
                let mut chunk = part.to_vec();
                chunk.sort_unstable();
                chunks.push(chunk);
            }
            return Ok(Order { sorted: Sorted::Numbers(chunks, scale), has_null });
        }
        let mut chunks = Vec::new();
        for (number, part) in values.chunks(CHUNK).enumerate() {
            breath::step(SORTING * part.len() as u32)?;
            let first = number * CHUNK;
            let places = (first..first + part.len()).filter(|place| !values[*place].is_null());
            let mut chunk: Vec<u32> = places.map(|place| place as u32).collect();
            chunk.sort_unstable_by(|a, b| compare(&values[*a as usize], &values[*b as usize]));
            chunks.push(chunk);
        }
        Ok(Order { sorted: Sorted::Places(chunks), has_null })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::oid;

    #[test]
    fn a_sorted_array_says_what_its_elements_say() {
        let array = |values: Vec<Datum>| Arc::new(Array::one_dimensional(oid::INT4, values));
        let numbers = array((0..40_000).map(|n| Datum::Int4(n * 7 % 40_000)).collect());
        let with_null = array((0..20).map(|n| if n == 3 { Datum::Null } else { Datum::Int4(n) }).collect());
        for turn in 0..3 {
            for n in [-1, 0, 3, 19, 20, 16_384, 39_999, 40_000] {
                let value = Datum::Int4(n);
                let (large, small) = (look_up(&numbers, &value).unwrap(), look_up(&with_null, &value).unwrap());
                if turn > 0 {
                    assert_eq!(large, Some(((0..40_000).contains(&n), false)), "{n}");
                    assert_eq!(small, Some(((0..20).contains(&n) && n != 3, true)), "{n}");
                }
            }
        }
    }

    #[test]
    fn numbers_are_found_whatever_their_scales() {
        let numeric = |text: &str| Datum::numeric(Numeric::parse(text).expect("a number").expect("that fits"));
        let texts = ["1", "2.50", "-3.125", "0", "400000000000", "7.0", "8", "9", "10.1", "11"];
        let elements = Arc::new(Array::one_dimensional(oid::NUMERIC, texts.map(numeric).to_vec()));
        let huge = Arc::new(Array::one_dimensional(
            oid::NUMERIC,
            [&texts[..], &["1e30"]].concat().iter().map(|t| numeric(t)).collect(),
        ));
        let sought = [
            "1.00",
            "2.5",
            "2.51",
            "-3.125",
            "-3.1250000",
            "3.125",
            "0.000",
            "400000000000.0",
            "7",
            "1e30",
            "NaN",
            "9223372036854775807",
        ];
        for first in sought {
            // The order is made for the number that is looked for first, and serves the others.
            let arrays =
                [&elements, &huge].map(|array| Arc::new(Array::one_dimensional(oid::NUMERIC, array.values.clone())));
            for value in [first, first].into_iter().chain(sought).map(numeric) {
                for array in &arrays {
                    let expected = array.values.iter().any(|element| compare(element, &value).is_eq());
                    let found = look_up(array, &value).unwrap();
                    assert!(found.is_none_or(|found| found == (expected, false)), "{value:?} after {first}");
                }
            }
        }
    }

    #[test]
    fn an_array_in_the_place_of_another_is_not_taken_for_it() {
        // The allocator gives the same memory again and again; LAR-1 is what keeps the arrays apart.
        for first in 0..50 {
            let mut values: Vec<Datum> = (first..first + 9).map(Datum::Int4).collect();
            if first % 2 == 1 {
                values.reverse();
            }
            let array = Arc::new(Array::one_dimensional(oid::INT4, values));
            for _ in 0..3 {
                let found = look_up(&array, &Datum::Int4(first)).unwrap();
                assert!(found.is_none_or(|found| found == (true, false)), "{first}");
            }
        }
    }
}
