//! Arithmetic in a machine word and in any size give the same; long values are counted as work.

use super::*;

/// Values around the limits of a word, of all scales that matter.
fn samples() -> Vec<Numeric> {
    let mut texts: Vec<String> = ["NaN", "Infinity", "-Infinity"].map(String::from).to_vec();
    let digits = ["0", "1", "5", "9", "10", "49", "50", "9999", "10000", "123456789", "9223372036854775807"];
    let more = ["9223372036854775808", "99999999999999999999", "123456789012345678901234567890"];
    for digits in digits.iter().chain(&more) {
        for scale in [0usize, 1, 2, 4, 5, 18, 19, 20, 25, 40] {
            let padded = format!("{digits:0>width$}", width = scale + 1);
            let (int, frac) = padded.split_at(padded.len() - scale);
            texts.push(format!("{int}.{frac}"));
            texts.push(format!("-{int}.{frac}"));
        }
    }
    texts.iter().map(|t| Numeric::parse(t).unwrap().unwrap()).collect()
}

fn same(a: &Numeric, b: &Wide, what: &str) {
    assert_eq!(a.to_string(), b.to_string(), "{what}");
    let fits = matches!(b, Wide::Finite { unscaled, .. } if unscaled.to_i64().is_some());
    assert_eq!(matches!(a, Small { .. }), fits, "NUM-1: {what}");
}

#[test]
fn the_next_breath_comes_sooner_after_an_operation_on_many_digits() {
    use clearway_base::breath::{StopFlag, step, within_now};
    let long = Numeric::parse("1e131000").unwrap().unwrap();
    let operations: [(&str, &dyn Fn()); 6] = [
        ("+", &|| drop(long.add(&long))),
        ("/", &|| drop(long.div(&Numeric::from(7)))),
        ("%", &|| drop(long.rem(&Numeric::from(7)))),
        ("=", &|| assert!(long.compare(&Numeric::from(7)).is_gt())),
        ("text", &|| drop(long.to_string())),
        ("stored", &|| drop(Numeric::from_wire(32_000, 0, 0, &[1; 6]))),
    ];
    for (name, operation) in operations {
        let flag = std::sync::Arc::new(StopFlag::new(4));
        flag.raise(1);
        let stopped = within_now(flag, || {
            operation();
            step(1)
        });
        assert!(stopped.is_err(), "{name}");
    }
}

#[test]
fn small_and_wide_agree_on_every_operation() {
    let all = samples();
    for a in &all {
        let wide = a.wide().into_owned();
        same(a, &wide, "the value itself");
        same(&a.negate(), &wide.negate(), &format!("- {a}"));
        same(&a.normalized(), &wide.normalized(), &format!("normalized {a}"));
        assert_eq!(a.to_wire(), wide.to_wire(), "{a}");
        let (weight, sign, scale, digits) = a.to_wire();
        same(&Numeric::from_wire(weight, sign, scale, &digits).unwrap(), &wide, &format!("from the wire {a}"));
        assert_eq!(a.to_f64().to_bits(), wide.to_f64().to_bits(), "{a}");
        assert_eq!(a.to_i64("bigint").ok(), wide.to_i64("bigint").ok(), "{a}");
        for scale in [-3, -1, 0, 1, 2, 3, 18, 19, 30, 45] {
            same(&a.round(scale), &wide.round(scale), &format!("round({a}, {scale})"));
            same(&a.trunc(scale), &wide.trunc(scale), &format!("trunc({a}, {scale})"));
            for precision in [1, 5, 18, 19, 20, 40] {
                match (a.fit(precision, scale), wide.fit(precision, scale)) {
                    (Ok(x), Ok(y)) => same(&x, &y, &format!("{a} as numeric({precision},{scale})")),
                    (x, y) => assert_eq!(x.is_err(), y.is_err(), "{a} as numeric({precision},{scale})"),
                }
            }
        }
    }
}

#[test]
fn small_and_wide_agree_on_every_pair() {
    let all = samples();
    for a in &all {
        for b in &all {
            let (x, y) = (a.wide().into_owned(), b.wide().into_owned());
            same(&a.add(b), &x.add(&y), &format!("{a} + {b}"));
            same(&a.sub(b), &x.sub(&y), &format!("{a} - {b}"));
            same(&a.mul(b), &x.mul(&y, false), &format!("{a} * {b}"));
            assert_eq!(a.compare(b), x.compare(&y), "{a} and {b}");
            for (small, wide, op) in [(a.div(b), x.div(&y), "/"), (a.rem(b), x.rem(&y), "%")] {
                match (small, wide) {
                    (Ok(small), Ok(wide)) => same(&small, &wide, &format!("{a} {op} {b}")),
                    (small, wide) => assert_eq!(small.is_err(), wide.is_err(), "{a} {op} {b}"),
                }
            }
        }
    }
}

#[test]
fn what_is_no_number_is_refused() {
    for text in ["", "-", ".", "1.2.3", "+-1", "1 2", "--1", "e5", "1e", "-.", "٣"] {
        assert!(Numeric::parse(text).is_none(), "{text}");
    }
}
