//! Random values: forms sort as `datum::compare` does, none is the beginning of another, and nothing but the bytes counts.

use super::{DAMAGED, JSONB, ROW, form_of, install};
use crate::convert::{storage_of, to_datum, to_value};
use clearway_base::breath::{self, StopFlag};
use clearway_engine::codec::key::{KeyColumn, decode_value, encode_key, encode_value};
use clearway_engine::value::{Storage, Value};
use clearway_values::types::datum::{self, Array, Datum, Record, RowShape};
use clearway_values::types::interval::Interval;
use clearway_values::types::json::{self, Json};
use clearway_values::types::range::{self, Edge, KINDS, Multirange, Range, RangeKind};
use clearway_values::types::{Numeric, Oid, SqlType, array_of, bits::Bits, oid, text};
use std::cmp::Ordering;
use std::sync::Arc;

struct Rng(u64);

impl Rng {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }

    fn of<'t>(&mut self, list: &[&'t str]) -> &'t str {
        list[self.below(list.len() as u64) as usize]
    }
}

/// Few texts of a type, so that neighbours and equal values are met often; of some of them one value has several texts.
fn texts(ty: Oid) -> &'static [&'static str] {
    match ty {
        oid::INTERVAL => {
            &["1 mon", "30 days", "29 days 24:00:00", "0", "-1 mon", "-30 days -00:00:00.000001", "1 day", "24:00:00"]
        }
        oid::INT4 => &["-2147483648", "-1", "0", "1", "256", "2147483647"],
        oid::INT8 => &["-9223372036854775808", "-1", "0", "1", "65536"],
        oid::NUMERIC => &["1.0", "1.00", "1", "-1.5", "-1.50", "0", "10000", "NaN", "Infinity", "0.00010"],
        oid::FLOAT8 => &["0", "-0", "1.5", "-1.5", "NaN", "Infinity", "-Infinity"],
        oid::TEXT | oid::CITEXT => &["", "a", "ab", "B", "b", "ä", "a b"],
        oid::BPCHAR => &["", "a", "a  ", "ab", "b "],
        oid::BOOL => &["t", "f"],
        oid::BYTEA => &["\\x", "\\x00", "\\x0000", "\\x00ff", "\\xff", "\\x01"],
        oid::DATE => &["2024-01-01", "2024-01-02", "infinity", "-infinity"],
        oid::TIMESTAMP => &["2024-01-01", "2024-01-01 00:00:01", "infinity", "1999-01-01"],
        oid::TIMESTAMPTZ => &["2024-01-01 00:00+00", "2024-01-01 01:00+01", "infinity"],
        oid::TIMETZ => &["10:00+00", "11:00+01", "09:00+00"],
        oid::UUID => &["00000000-0000-0000-0000-000000000000", "ffffffff-0000-0000-0000-000000000000"],
        oid::INET => &["10.0.0.1", "10.0.0.0/8", "10.0.0.1/8", "::1", "192.168.0.1"],
        oid::HSTORE => &["", "a=>1", "a=>2", "b=>1", "a=>NULL", "a=>1,b=>2"],
        oid::VARBIT => &["", "0", "00", "1", "10", "11111111", "111111110", "00000000"],
        other => panic!("no texts of {other}"),
    }
}

fn scalar(rng: &mut Rng, ty: Oid) -> Datum {
    let given = rng.of(texts(ty));
    text::input(ty.into(), given, &crate::index_terms::bare_conversion()).expect("a text of the type")
}

fn array(rng: &mut Rng, element: Oid) -> Datum {
    let (dims, count) = match rng.below(8) {
        0 => (Vec::new(), 0),
        1 => (vec![(2, 1), (1, rng.below(2) as i32)], 2),
        2 => (vec![(1, 1), (2, 1)], 2),
        _ => {
            let count = 1 + rng.below(3) as i32;
            (vec![(count, rng.below(3) as i32 - 1)], count as usize)
        }
    };
    let value = |rng: &mut Rng| match (rng.below(6), element) {
        (0, _) => Datum::Null,
        (_, oid::JSONB) => Datum::Jsonb(document(rng, 2).into()),
        (_, oid::INT4RANGE) => Datum::Range(range(rng, &KINDS[0]).into()),
        _ => scalar(rng, element),
    };
    Datum::Array(Array { element, dims, values: (0..count).map(|_| value(rng)).collect() }.into())
}

fn range(rng: &mut Rng, kind: &'static RangeKind) -> Range {
    loop {
        let mut end = |lower| {
            let value = (rng.below(4) > 0).then(|| scalar(rng, kind.element));
            Edge { value, inclusive: rng.below(2) == 0, lower }
        };
        let (lower, upper) = (end(true), end(false));
        match Range::new(kind, lower, upper) {
            Ok(range) => return range,
            Err(_) => continue,
        }
    }
}

fn document(rng: &mut Rng, depth: u64) -> Json {
    match rng.below(if depth == 0 { 5 } else { 8 }) {
        0 => Json::Null,
        1 => Json::Bool(rng.below(2) == 0),
        2 => Json::string(rng.of(texts(oid::TEXT))),
        3 | 4 => Json::number(Numeric::parse(rng.of(&["0", "1", "1.0", "-1", "10"])).expect("a number").expect("one")),
        5 | 6 => Json::Array((0..rng.below(4)).map(|_| document(rng, depth - 1)).collect()),
        _ => {
            let member = |rng: &mut Rng| (Arc::from(rng.of(&["a", "b", "aa"])), document(rng, depth - 1));
            Json::object((0..rng.below(4)).map(|_| member(rng)).collect())
        }
    }
}

fn row_shape() -> Arc<RowShape> {
    let types = [oid::INT4, oid::INTERVAL, oid::TEXT].map(SqlType::new).to_vec();
    Arc::new(RowShape { oid: oid::RECORD, names: None, types })
}

/// A type with a form, and a value of it.
type Maker = fn(&mut Rng) -> Datum;

/// All kinds of values that have a form, with the number of it.
fn kinds() -> Vec<(Storage, String, Maker)> {
    let sorted = |ty: Oid| storage_of(ty).expect("it can be stored");
    let mut out: Vec<(Storage, String, Maker)> = vec![
        (sorted(oid::INTERVAL), "interval".to_owned(), |rng| scalar(rng, oid::INTERVAL)),
        (sorted(oid::VARBIT), "varbit".to_owned(), |rng| scalar(rng, oid::VARBIT)),
        (sorted(oid::JSONB), "jsonb".to_owned(), |rng| Datum::Jsonb(document(rng, 3).into())),
        (Storage::Sorted(ROW), "row".to_owned(), |rng| {
            let field = |rng: &mut Rng, ty: Oid| if rng.below(4) == 0 { Datum::Null } else { scalar(rng, ty) };
            let values = vec![field(rng, oid::INT4), field(rng, oid::INTERVAL), field(rng, oid::TEXT)];
            Datum::Row(Record::new(row_shape(), values).expect("a row").into())
        }),
    ];
    macro_rules! arrays { ($($element:ident)*) => { $(
        let ty = array_of(oid::$element).expect("a type of arrays");
        out.push((sorted(ty), format!("{}[]", stringify!($element)), |rng| array(rng, oid::$element)));
    )* } }
    arrays!(INTERVAL INT4 INT8 NUMERIC FLOAT8 TEXT BPCHAR BOOL BYTEA DATE TIMESTAMPTZ TIMETZ UUID INET JSONB VARBIT INT4RANGE);
    macro_rules! ranges { ($($at:literal)*) => { $(
        out.push((sorted(KINDS[$at].range), format!("range {}", $at), |rng| range::datum(range(rng, &KINDS[$at]))));
        out.push((sorted(KINDS[$at].multirange), format!("multirange {}", $at), |rng| {
            let ranges = (0..rng.below(4)).map(|_| range(rng, &KINDS[$at])).collect();
            match Multirange::of(&KINDS[$at], ranges) {
                Ok(multi) => Datum::Multirange(multi.into()),
                Err(_) => Datum::Multirange(Multirange { kind: &KINDS[$at], ranges: Vec::new() }.into()),
            }
        }));
    )* } }
    ranges!(0 1 2 3 4 5);
    out
}

fn key(storage: Storage, value: &Datum) -> Vec<u8> {
    let mut out = Vec::new();
    encode_value(KeyColumn::ascending(storage), &to_value(value), &mut out);
    out
}

/// SFM-1, SFM-2, and KEY-1 for the columns behind.
#[test]
fn forms_sort_as_values_do_and_none_begins_another() {
    install();
    for (storage, name, make) in kinds() {
        assert!(matches!(storage, Storage::Sorted(_)), "{name}");
        let mut rng = Rng(7);
        let values: Vec<(Datum, Vec<u8>)> = (0..220)
            .map(|_| {
                let value = make(&mut rng);
                let key = key(storage, &value);
                (value, key)
            })
            .collect();
        let (mut equal, mut before) = (0, 0);
        for (a, key_a) in &values {
            for (b, key_b) in &values {
                let order = datum::compare(a, b);
                assert_eq!(key_a.cmp(key_b), order, "SFM-1, {name}: {a:?} {b:?}");
                assert!(order.is_eq() || !key_b.starts_with(key_a), "SFM-2, {name}: {a:?} {b:?}");
                equal += u32::from(order.is_eq());
                before += u32::from(order.is_lt());
            }
            assert!(key_a[1] != DAMAGED, "SFM-4, {name}: {a:?}");
        }
        assert!(equal > 220 && before > 1_000, "{name}: {equal}, {before}");
        for ((a, key_a), (b, _)) in values.iter().zip(&values[1..]) {
            let descending = KeyColumn { descending: true, ..KeyColumn::ascending(storage) };
            let two = |x: &Datum, n: i64| encode_key(&[descending, descending], &[to_value(x), Value::Int(n)]);
            let expected = datum::compare(b, a).then(Ordering::Greater);
            assert_eq!(two(a, 1).cmp(&two(b, 2)), expected, "KEY-1, {name}: {a:?} {b:?}");
            let behind = [key_a, &[1u8, 2][..]].concat();
            let read = decode_value(KeyColumn::ascending(storage), &behind);
            assert_eq!(read, Some((None, &[1u8, 2][..])), "KEY-4, {name}: a key gives no value");
        }
    }
}

/// citext and hstore are of an extension, and have no type of arrays without it.
#[test]
fn parts_of_the_types_of_extensions_sort() {
    install();
    for element in [oid::CITEXT, oid::HSTORE] {
        let mut rng = Rng(11);
        let one = |rng: &mut Rng| {
            let mut wire = Vec::new();
            clearway_values::types::binary::output(element.into(), &scalar(rng, element), &mut wire);
            let mut out = Vec::new();
            super::put_part(element, Some(&wire), &mut out).expect("a value of the type");
            let value = clearway_values::types::binary::input(element.into(), &wire).expect("the same value");
            (value, out)
        };
        let values: Vec<(Datum, Vec<u8>)> = (0..60).map(|_| one(&mut rng)).collect();
        for (a, part_a) in &values {
            for (b, part_b) in &values {
                assert_eq!(part_a.cmp(part_b), datum::compare(a, b), "{a:?} {b:?}");
            }
        }
    }
}

/// SFM-4: no panic, and what the row's reader would refuse sorts behind every value.
#[test]
fn damaged_bytes_sort_behind_all_values() {
    install();
    let mut rng = Rng(3);
    let mut damaged = 0;
    for (storage, name, make) in kinds() {
        let greatest = (0..50).map(|_| key(storage, &make(&mut rng))).max().expect("some values");
        for _ in 0..300 {
            let Value::Bytes(bytes) = to_value(&make(&mut rng)) else { panic!("{name} is stored as bytes") };
            let mut bytes = bytes.to_vec();
            match rng.below(3) {
                0 => bytes.truncate(rng.below(bytes.len() as u64 + 1) as usize),
                1 => bytes.push(0),
                _ => {
                    if let Some(at) = (!bytes.is_empty()).then(|| rng.below(bytes.len() as u64) as usize) {
                        bytes[at] ^= 1 << rng.below(8);
                    }
                }
            }
            let key = encode_key(&[KeyColumn::ascending(storage)], &[Value::bytes(&bytes)]);
            if key[1] == DAMAGED {
                damaged += 1;
                assert!(key > greatest, "{name}");
            }
        }
    }
    assert!(damaged > 2_000, "{damaged}");
}

/// SFM-3: the key of a row is the same while its statement is being cancelled.
#[test]
fn an_interrupt_changes_no_form() {
    install();
    let list: Vec<Json> = (0..20_000).map(|n| Json::string(n.to_string())).collect();
    let element = Datum::Jsonb(Json::Array(list).into());
    let array = Datum::Array(Array::one_dimensional(oid::JSONB, vec![element]).into());
    let storage = storage_of(array_of(oid::JSONB).expect("jsonb[]")).expect("it can be stored");
    let flag = Arc::new(StopFlag::new(4));
    flag.raise(1);
    let stopped = breath::within_now(flag, || {
        let wire = to_value(&array);
        assert!(breath::step(u32::MAX).is_err(), "the flag ends computations");
        encode_key(&[KeyColumn::ascending(storage)], &[wire])
    });
    assert!(stopped[1] != DAMAGED);
    assert_eq!(stopped, key(storage, &array));
}

/// SFM-3: what can change its order has no form, and is no key.
#[test]
fn which_types_are_keys() {
    for ty in [oid::INTERVAL, oid::JSONB, oid::BIT, oid::INT4RANGE, oid::TSTZMULTIRANGE, oid::INT4, oid::TEXT] {
        assert!(super::can_be_key(ty), "{ty}");
    }
    for ty in [oid::JSON, oid::JSONPATH, oid::REFCURSOR, oid::POINT, oid::INT2VECTOR, oid::RECORD, oid::VOID] {
        assert!(!super::can_be_key(ty), "{ty}");
    }
    for t in clearway_values::types::TYPES {
        if let Some(array) = array_of(t.oid).filter(|_| storage_of(t.oid).is_some()) {
            let is_vector = matches!(t.oid, oid::INT2VECTOR | oid::OIDVECTOR);
            assert_eq!(super::can_be_key(array), super::can_be_key(t.oid) && !is_vector, "{}[]", t.name);
            assert_eq!(form_of(array).is_some(), super::can_be_key(array), "{}[]", t.name);
        }
    }
    assert_eq!(form_of(oid::JSONB), Some(JSONB));
}

/// The stored bytes stay those of the value: a row gives back what was put in.
#[test]
fn equal_values_keep_their_own_bytes() {
    install();
    let of = |given: &str| text::input(oid::INTERVAL.into(), given, &crate::index_terms::bare_conversion());
    let (month, days) = (of("1 mon").expect("one"), of("30 days").expect("one"));
    let storage = Storage::Sorted(form_of(oid::INTERVAL).expect("a form"));
    assert_eq!(key(storage, &month), key(storage, &days));
    let back = |value: &Datum| to_datum(&to_value(value), oid::INTERVAL.into()).expect("an interval");
    let Datum::Interval(Interval { months: 1, days: 0, .. }) = back(&month) else { panic!("a month") };
    let Datum::Interval(Interval { months: 0, days: 30, .. }) = back(&days) else { panic!("thirty days") };
    let bits = Bits::of_bytes(3, &[0b1010_0000]).expect("bits");
    assert_eq!(json::compare(&Json::Array(Vec::new()), &Json::Null), Ordering::Less, "as in PostgreSQL");
    assert_eq!(bits.len(), 3);
}
