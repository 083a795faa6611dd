//! Looks for a value in a long array without comparing it with each element, as PostgreSQL hashes arrays of nine elements and more: a condition
//! such as `x = ANY ($1)` that no index serves is evaluated for each row with the same array.
//!
//! # Invariants
//! - LAR-1: an array's order is used for that array alone. It is remembered beside a weak pointer, and while that lives the memory of the array's
//!   head is not used for another one.

use crate::error::Result;
use crate::types::Datum;
use crate::types::datum::{Array, compare};
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

/// Places of the elements that are not null, sorted in chunks.
struct Order {
    chunks: Vec<Vec<u32>>,
    has_null: bool,
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
            order => order.insert(Order::of(&array.values)?),
        };
        let is_in = order
            .chunks
            .iter()
            .any(|chunk| chunk.binary_search_by(|place| compare(&array.values[*place as usize], value)).is_ok());
        Ok(Some((is_in, order.has_null)))
    })
}

impl Order {
    fn of(values: &[Datum]) -> Result<Order> {
        let mut order = Order { chunks: Vec::new(), has_null: false };
        for (number, part) in values.chunks(CHUNK).enumerate() {
            breath::step(SORTING * part.len() as u32)?;
            let first = number * CHUNK;
            let places = (first..first + part.len()).filter(|place| !values[*place].is_null());
            let mut chunk: Vec<u32> = places.map(|place| place as u32).collect();
            order.has_null |= chunk.len() < part.len();
            chunk.sort_unstable_by(|a, b| compare(&values[*a as usize], &values[*b as usize]));
            order.chunks.push(chunk);
        }
        Ok(order)
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
