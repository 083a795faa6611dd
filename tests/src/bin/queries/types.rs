//! The types of columns and expressions, and literals of them.
//!
//! Literals of conditions are marked, so that a statement can be prepared with parameters in their places: see [`plain`] and [`parameters`].
//!
//! Values are chosen so that an answer has one form:
//! - real and double precision are odd multiples of a quarter: their sums are exact in any order, and none of them is a zero, which has two signs.
//! - jsonb has whole numbers only: 1.0 and 1.00 are equal and differ.

use clearway_base::testkit::Rng;

/// What a column or an expression gives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ty {
    Int2,
    Int4,
    Int8,
    Num,
    Real,
    Double,
    Text,
    Varchar,
    Char,
    Bool,
    Date,
    Ts,
    Tstz,
    Interval,
    Uuid,
    Bytea,
    Ints,
    Enum,
    Jsonb,
}

/// Types that are compared with each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    Number,
    Float,
    Text,
    Moment,
    Other(Ty),
}

/// Types with their weights: what joins and aggregates take comes more often.
const WEIGHTED: [(Ty, u64); 19] = [
    (Ty::Int2, 4),
    (Ty::Int4, 22),
    (Ty::Int8, 8),
    (Ty::Num, 8),
    (Ty::Real, 3),
    (Ty::Double, 4),
    (Ty::Text, 16),
    (Ty::Varchar, 5),
    (Ty::Char, 4),
    (Ty::Bool, 5),
    (Ty::Date, 8),
    (Ty::Ts, 5),
    (Ty::Tstz, 4),
    (Ty::Interval, 2),
    (Ty::Uuid, 3),
    (Ty::Bytea, 2),
    (Ty::Ints, 3),
    (Ty::Enum, 4),
    (Ty::Jsonb, 3),
];

/// One of the types.
pub fn any(rng: &mut Rng) -> Ty {
    let mut left = rng.below(WEIGHTED.iter().map(|(_, weight)| weight).sum());
    for (ty, weight) in WEIGHTED {
        if left < weight {
            return ty;
        }
        left -= weight;
    }
    Ty::Int4
}

impl Ty {
    /// Its name, without a length.
    pub fn name(self) -> &'static str {
        match self {
            Ty::Int2 => "smallint",
            Ty::Int4 => "int",
            Ty::Int8 => "bigint",
            Ty::Num => "numeric",
            Ty::Real => "real",
            Ty::Double => "float8",
            Ty::Text => "text",
            Ty::Varchar => "varchar",
            Ty::Char => "bpchar",
            Ty::Bool => "bool",
            Ty::Date => "date",
            Ty::Ts => "timestamp",
            Ty::Tstz => "timestamptz",
            Ty::Interval => "interval",
            Ty::Uuid => "uuid",
            Ty::Bytea => "bytea",
            Ty::Ints => "int[]",
            Ty::Enum => "mood",
            Ty::Jsonb => "jsonb",
        }
    }

    /// Which types it is compared with.
    pub fn family(self) -> Family {
        match self {
            Ty::Int2 | Ty::Int4 | Ty::Int8 | Ty::Num => Family::Number,
            Ty::Real | Ty::Double => Family::Float,
            Ty::Text | Ty::Varchar | Ty::Char => Family::Text,
            Ty::Date | Ty::Ts | Ty::Tstz => Family::Moment,
            other => Family::Other(other),
        }
    }

    /// Whether min() and max() take it (of PostgreSQL 15).
    pub fn has_least(self) -> bool {
        !matches!(self, Ty::Bool | Ty::Uuid | Ty::Bytea | Ty::Jsonb)
    }

    pub fn is_int(self) -> bool {
        matches!(self, Ty::Int2 | Ty::Int4 | Ty::Int8)
    }
}

pub const LABELS: [&str; 4] = ["sad", "ok", "happy", "Zed"];

/// The nth word of the texts.
pub fn word(mut n: u64) -> String {
    const LETTERS: [char; 9] = ['a', 'b', 'c', '_', 'B', '%', 'é', ' ', '\''];
    let mut word = String::new();
    while n > 0 {
        let letter = LETTERS[(n % 9) as usize];
        // A blank at the end does not count in char(n), and does in text: char(n) has no such words, so that both mean the same.
        word.push(if letter == ' ' && n < 9 { 'd' } else { letter });
        n /= 9;
    }
    word
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// A value of the type, quoted where it has to be, of about `spread` different ones.
pub fn value(rng: &mut Rng, ty: Ty, spread: u64) -> String {
    let n = rng.below(spread.max(1));
    nth(rng, ty, n)
}

/// The nth value of the type. Some types have several forms of the nth value.
pub fn nth(rng: &mut Rng, ty: Ty, n: u64) -> String {
    // Some are negative.
    let signed = if n % 5 == 4 { -(n as i64) } else { n as i64 };
    let day = || {
        format!(
            "20{:02}-{:02}-{:02}",
            19 + n / 120 % 3,
            n / 10 % 12 + 1,
            [1, 2, 9, 15, 27, 28, 10, 20, 5, 31 - 3][(n % 10) as usize]
        )
    };
    match ty {
        Ty::Int2 | Ty::Int4 | Ty::Int8 => signed.to_string(),
        Ty::Num => format!("{}.{}", signed, ["00", "25", "50", "75"][rng.index(4)]),
        Ty::Real | Ty::Double => format!("{}.{}5", signed, if n.is_multiple_of(2) { 2 } else { 7 }),
        Ty::Text => quoted(&word(n)),
        Ty::Varchar | Ty::Char => quoted(&word(n % 729)),
        Ty::Bool => (if n % 3 == 1 { "false" } else { "true" }).to_owned(),
        Ty::Date => format!("'{}'", day()),
        Ty::Ts => format!("'{} {}'", day(), rng.pick(&["00:00:00", "00:00:00", "12:30:00", "23:59:59.999999"])),
        Ty::Tstz => format!("'{} {}+00'", day(), rng.pick(&["00:00:00", "00:00:00", "22:30:00", "23:59:59.5"])),
        Ty::Interval => format!("'{} {}'", signed, ["days", "hours", "mons", "minutes"][(n % 4) as usize]),
        Ty::Uuid => format!("'{:08x}-0000-4000-8000-{:012x}'", n * 7919 % 251, n),
        Ty::Bytea => format!(
            "'\\x{}'",
            ["", "00", "01ff", "ff", "0100", "61626364"][(n % 6) as usize].to_owned() + &format!("{:02x}", n / 6 % 256)
        ),
        Ty::Ints => format!(
            "'{}'",
            [format!("{{{n}}}"), "{}".to_owned(), format!("{{{},{n}}}", n % 3), format!("{{NULL,{n}}}")]
                [(n % 4) as usize]
        ),
        Ty::Enum => quoted(LABELS[(n % 4) as usize]),
        Ty::Jsonb => format!(
            "'{}'",
            [
                format!("{{\"a\": {n}}}"),
                format!("{n}"),
                format!("{{\"a\": \"{}\", \"b\": [{n}, null]}}", ["x", "y"][(n / 6 % 2) as usize]),
                "null".to_owned(),
                format!("[{n}]"),
                "{}".to_owned()
            ][(n % 6) as usize]
        ),
    }
}

/// A value at the end of what the type has.
pub fn extreme(rng: &mut Rng, ty: Ty) -> String {
    let all: &[&str] = match ty {
        Ty::Int2 => &["32767", "-32768"],
        Ty::Int4 => &["2147483647", "-2147483648", "2147483646"],
        Ty::Int8 => &["9223372036854775807", "-9223372036854775808", "4294967296"],
        Ty::Num => &["'NaN'", "9999.99", "-9999.99", "0.01"],
        Ty::Real | Ty::Double => &["'NaN'", "'Infinity'", "'-Infinity'"],
        Ty::Text => &["''", "'zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz'", "'\u{10ffff}'", "'  '"],
        Ty::Date => &["'infinity'", "'-infinity'", "'0044-03-15 BC'", "'9999-12-31'"],
        Ty::Ts => &["'infinity'", "'-infinity'", "'0044-03-15 12:00:00 BC'", "'9999-12-31 23:59:59.999999'"],
        Ty::Tstz => &["'infinity'", "'-infinity'", "'0044-03-15 12:00:00+00 BC'", "'9999-12-31 23:59:59.999999+00'"],
        Ty::Interval => &["'0'", "'-1 year'", "'100 years 3 days'"],
        Ty::Uuid => &["'00000000-0000-0000-0000-000000000000'", "'ffffffff-ffff-ffff-ffff-ffffffffffff'"],
        Ty::Ints => &["'{2147483647}'", "'{NULL}'", "'{{1,2},{3,4}}'"],
        _ => return value(rng, ty, 20),
    };
    (*rng.pick(all)).to_owned()
}

const BEGIN: char = '\u{1}';
const TYPE: char = '\u{2}';
const END: char = '\u{3}';

/// A literal that may become a parameter of the type.
pub fn marked(literal: &str, ty: Ty) -> String {
    // Without a cast a number is what its digits say.
    let wide = literal.parse::<i64>().is_ok_and(|number| i32::try_from(number).is_err());
    let name = match ty {
        Ty::Int2 | Ty::Int4 | Ty::Int8 if wide => "bigint",
        Ty::Int2 | Ty::Int4 | Ty::Int8 => "int",
        Ty::Real | Ty::Double if !literal.starts_with('\'') => "numeric",
        _ => ty.name(),
    };
    format!("{BEGIN}{literal}{TYPE}{name}{END}")
}

/// The statement with its literals.
pub fn plain(sql: &str) -> String {
    let mut out = String::new();
    let mut inside = false;
    for c in sql.chars() {
        match c {
            TYPE => inside = true,
            BEGIN | END => inside = false,
            _ if !inside => out.push(c),
            _ => {}
        }
    }
    out
}

/// The statement with parameters, their types, and their values.
pub fn parameters(sql: &str) -> (String, Vec<String>, Vec<String>) {
    let (mut out, mut types, mut values) = (String::new(), Vec::new(), Vec::new());
    let mut rest = sql;
    while let Some((before, after)) = rest.split_once(BEGIN) {
        let (literal, tail) = after.split_once(TYPE).expect("a mark has three parts");
        let (ty, tail) = tail.split_once(END).expect("a mark has three parts");
        out.push_str(before);
        values.push(literal.to_owned());
        types.push(ty.to_owned());
        out.push_str(&format!("${}", values.len()));
        rest = tail;
    }
    out.push_str(rest);
    (out, types, values)
}
