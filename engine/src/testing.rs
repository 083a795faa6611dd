//! Tables and values for the tests of rows in their stored form.

use crate::catalog::{Column, Relation};
use crate::decimal::{Decimal, Sign};
use crate::table::shape::TableShape;
use crate::value::{Storage, Value};
use clearway_base::testkit::Rng;

/// A table with columns that are stored so, of which those at these places are its key.
pub(crate) fn shape(storages: &[Storage], key: &[usize]) -> TableShape {
    let column = |(at, storage): (usize, &Storage)| Column {
        name: format!("c{at}"),
        storage: storage.code(),
        type_mod: -1,
        ..Column::default()
    };
    let columns = storages.iter().enumerate().map(column).collect();
    let mut table = Relation::table(20_000, 1, 2, "t", columns, 7);
    table.key = key.to_vec();
    TableShape::without_indexes(&table).expect("a shape")
}

/// Any value that is stored so.
pub(crate) fn value(rng: &mut Rng, storage: Storage) -> Value {
    match storage {
        Storage::Bool => Value::Bool(rng.below(2) == 1),
        Storage::Int(width) => {
            let shift = 64 - 8 * u32::from(width);
            Value::Int((rng.next_u64() << shift) as i64 >> shift)
        }
        Storage::Float => Value::Float(rng.below(1_000) as f64 / 8.0),
        Storage::Decimal => {
            let digits = (0..1 + rng.below(3)).map(|_| 1 + rng.below(9_999) as u16).collect();
            Value::Decimal(Decimal { sign: Sign::Negative, weight: rng.below(3) as i16, scale: 2, digits })
        }
        _ => Value::Bytes(vec![rng.below(256) as u8; rng.below(300) as usize].into()),
    }
}
