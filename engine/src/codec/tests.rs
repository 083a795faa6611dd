//! Random tuples: what is encoded is decoded, keys sort as values do, damage is an error.

use std::cmp::Ordering;

use super::key::{KeyColumn, decode_value, encode_key, encode_value, prefix_end};
use super::row::{RowReader, encode_row};
use crate::decimal::{Decimal, Sign};
use crate::value::{Storage, Value, ValueRef};

struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 16
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}

const ALL: [Storage; 11] = [
    Storage::Bool,
    Storage::Int(1),
    Storage::Int(2),
    Storage::Int(3),
    Storage::Int(4),
    Storage::Int(8),
    Storage::Float,
    Storage::Decimal,
    Storage::Bytes,
    Storage::Folded,
    // Without forms it sorts by its bytes.
    Storage::Sorted(3),
];

fn random_value(rng: &mut Rng, storage: Storage) -> Value {
    if rng.below(6) == 0 {
        return Value::Null;
    }
    match storage {
        Storage::Bool => Value::Bool(rng.below(2) == 0),
        Storage::Int(width) => {
            let shift = 64 - 8 * u32::from(width);
            let wide = (rng.next() << 40 ^ rng.next()) as i64;
            Value::Int(if rng.below(2) == 0 { wide << shift >> shift } else { rng.below(5) as i64 - 2 })
        }
        Storage::Float => Value::Float([0.0, -0.0, 1.5, -1.5, f64::INFINITY, f64::MIN, 1e-300][rng.below(7) as usize]),
        Storage::Decimal => {
            let sign =
                [Sign::NegativeInfinity, Sign::Negative, Sign::Zero, Sign::Positive, Sign::Nan][rng.below(5) as usize];
            if !matches!(sign, Sign::Negative | Sign::Positive) {
                return Value::Decimal(Decimal { sign, weight: 0, scale: rng.below(3) as u16, digits: [].into() });
            }
            let digits = (0..1 + rng.below(3)).map(|_| 1 + rng.below(3) as u16 * 4999).collect();
            let weight = rng.below(4) as i16 - 2;
            Value::Decimal(Decimal { sign, weight, scale: rng.below(9) as u16, digits })
        }
        Storage::Bytes | Storage::Sorted(_) => {
            let len = if rng.below(40) == 0 { 300 } else { rng.below(5) };
            Value::Bytes((0..len).map(|_| [0u8, 1, 0xff, b'a'][rng.below(4) as usize]).collect())
        }
        // In lower case, so that their bytes sort as they do.
        Storage::Folded => {
            Value::Bytes((0..rng.below(5)).map(|_| [0u8, 1, b'a', b'z'][rng.below(4) as usize]).collect())
        }
    }
}

fn compare(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Null, Value::Null) => Ordering::Equal,
        (Value::Null, _) => Ordering::Greater,
        (_, Value::Null) => Ordering::Less,
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Int(a), Value::Int(b)) => a.cmp(b),
        (Value::Float(a), Value::Float(b)) => a.partial_cmp(b).expect("no NaN is made here"),
        (Value::Bytes(a), Value::Bytes(b)) => a.cmp(b),
        (Value::Decimal(a), Value::Decimal(b)) => compare_decimals(a, b),
        _ => panic!("values of two storages"),
    }
}

fn compare_decimals(a: &Decimal, b: &Decimal) -> Ordering {
    let magnitude = |d: &Decimal| (d.weight, d.digits.to_vec());
    a.sign.cmp(&b.sign).then_with(|| match a.sign {
        Sign::Positive => magnitude(a).cmp(&magnitude(b)),
        Sign::Negative => magnitude(b).cmp(&magnitude(a)),
        _ => Ordering::Equal,
    })
}

#[test]
fn rows_come_back_and_damage_is_an_error() {
    for seed in 0..3_000 {
        let mut rng = Rng(seed);
        let columns: Vec<Storage> = (0..rng.below(12)).map(|_| ALL[rng.below(ALL.len() as u64) as usize]).collect();
        let values: Vec<Value> = columns.iter().map(|s| random_value(&mut rng, *s)).collect();
        let version = [0u16, 1, 63, 64, 9_999][rng.below(5) as usize];
        let mut bytes = Vec::new();
        encode_row(version, &columns, values.iter().map(Value::borrow), &mut bytes);
        let (read_version, head) = RowReader::head(&bytes).expect("a head");
        assert_eq!(read_version, version);
        let back = head.reader(columns.len()).and_then(|r| r.values(&columns)).expect("a row");
        assert_eq!(format!("{back:?}"), format!("{values:?}"), "ROW-1, seed {seed}");
        // Whatever the bytes, no panic.
        let cut = rng.below(bytes.len() as u64) as usize;
        let mut damaged = bytes.clone();
        damaged[cut] ^= 1 << rng.below(8);
        for bytes in [&bytes[..cut], &damaged] {
            if let Ok((_, head)) = RowReader::head(bytes) {
                let _ = head.reader(columns.len()).and_then(|r| r.values(&columns));
            }
        }
    }
}

/// ROW-2
#[test]
fn a_narrow_row_costs_one_byte() {
    let mut bytes = Vec::new();
    encode_row(1, &[Storage::Int(2); 5], [ValueRef::Int(7); 5].into_iter(), &mut bytes);
    assert_eq!(bytes.len(), 11);
}

#[test]
fn keys_sort_as_values_do_and_come_back() {
    for seed in 0..20_000 {
        let mut rng = Rng(seed);
        let columns: Vec<KeyColumn> = (0..1 + rng.below(3))
            .map(|_| KeyColumn {
                storage: ALL[rng.below(ALL.len() as u64) as usize],
                descending: rng.below(3) == 0,
                nulls_first: rng.below(2) == 0,
            })
            .collect();
        let a: Vec<Value> = columns.iter().map(|c| random_value(&mut rng, c.storage)).collect();
        let b: Vec<Value> = columns.iter().map(|c| random_value(&mut rng, c.storage)).collect();
        let expected = columns.iter().zip(a.iter().zip(&b)).fold(Ordering::Equal, |order, (column, (a, b))| {
            order.then_with(|| match (a.is_null(), b.is_null()) {
                (false, false) if column.descending => compare(b, a),
                (false, false) => compare(a, b),
                _ if column.nulls_first => compare(b, a),
                _ => compare(a, b),
            })
        });
        let (key_a, key_b) = (encode_key(&columns, &a), encode_key(&columns, &b));
        assert_eq!(key_a.cmp(&key_b), expected, "KEY-1, seed {seed}: {a:?} {b:?} {columns:?}");
        let mut rest: &[u8] = &key_a;
        for (column, value) in columns.iter().zip(&a) {
            let (read, after) = decode_value(*column, rest).expect("a key");
            rest = after;
            match read {
                Some(read) => assert_eq!(&read, value, "seed {seed}"),
                None => assert!(!column.storage.key_is_invertible()),
            }
        }
        assert!(rest.is_empty());
    }
}

/// KEY-2
#[test]
fn no_encoded_value_is_a_prefix_of_another() {
    let mut rng = Rng(5);
    for storage in ALL {
        let column = KeyColumn::ascending(storage);
        let keys: Vec<Vec<u8>> = (0..200)
            .map(|_| {
                let mut key = Vec::new();
                encode_value(column, &random_value(&mut rng, storage), &mut key);
                key
            })
            .collect();
        for a in &keys {
            assert!(keys.iter().all(|b| a == b || !b.starts_with(a)), "{storage:?}");
        }
    }
}

#[test]
fn the_end_of_a_prefix_is_above_all_that_begin_with_it() {
    assert_eq!(prefix_end(&[1, 2]), Some(vec![1, 3]));
    assert_eq!(prefix_end(&[1, 0xff]), Some(vec![2]));
    assert_eq!(prefix_end(&[0xff, 0xff]), None);
}

#[test]
fn a_new_value_of_fixed_width_changes_the_bytes_of_its_place_only() {
    let mut rng = Rng(41);
    let (mut places, mut none) = (0, 0);
    for _ in 0..3_000 {
        let columns: Vec<Storage> = (0..1 + rng.below(9)).map(|_| ALL[rng.below(ALL.len() as u64) as usize]).collect();
        let mut values: Vec<Value> = columns.iter().map(|c| random_value(&mut rng, *c)).collect();
        let version = [0, 7, 100][rng.below(3) as usize];
        let encode = |values: &[Value]| {
            let mut out = Vec::new();
            encode_row(version, &columns, values.iter().map(Value::borrow), &mut out);
            out
        };
        let before = encode(&values);
        let at = rng.below(columns.len() as u64) as usize;
        let head = RowReader::head(&before).expect("a head").1;
        let reader = head.reader(columns.len()).expect("a row");
        let Some(place) = reader.place(&columns, at) else {
            assert!(values[at].is_null() || columns[at].fixed_width().is_none(), "{:?}", values[at]);
            none += 1;
            continue;
        };
        places += 1;
        let from = before.len() - reader.body().len();
        values[at] = loop {
            match random_value(&mut rng, columns[at]) {
                Value::Null => {}
                value => break value,
            }
        };
        let mut after = encode(&values);
        assert_eq!(after.len(), before.len());
        after[from + place.start..from + place.end].copy_from_slice(&before[from + place.start..from + place.end]);
        assert_eq!(after, before);
    }
    assert!(places > 500 && none > 500, "{places}, {none}");
}

/// KEY-3
#[test]
fn texts_that_differ_in_case_alone_are_one_key_which_does_not_give_them_back() {
    let column = KeyColumn::ascending(Storage::Folded);
    let key = |text: &str| encode_key(&[column], &[Value::bytes(text.as_bytes())]);
    assert_eq!(key("Ab\0Ä"), key("aB\0ä"));
    assert!(key("a") < key("B") && key("B") < key("c") && key("A") < key("aa") && key("z") < key("Ä"));
    let two = [key("Ab"), key("x")].concat();
    assert_eq!(decode_value(column, &two), Some((None, &key("x")[..])));
    assert!(!Storage::Folded.key_is_invertible(), "SHP-2, IXO-2: the text stands in the value");
    let mut row = Vec::new();
    encode_row(1, &[Storage::Folded], [Value::bytes(b"Ab")].iter().map(Value::borrow), &mut row);
    let (_, head) = RowReader::head(&row).expect("a head");
    let values = head.reader(1).expect("a row").values(&[Storage::Folded]).expect("values");
    assert_eq!(values, [Value::bytes(b"Ab")]);
}
