//! Derives findings from the figures of a column.

use super::dialect::{Dialect, Sort};
use super::told::{Column, Table, Type};

/// Something that could be better.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Its kind.
    pub finding: String,
    /// Where.
    pub object: String,
    /// How it is known.
    pub evidence: String,
    /// What the change saves; none: not space.
    pub bytes_saved: Option<u64>,
    /// The statements, or what to do.
    pub ddl: String,
}

/// A column of a primary key, or one that counts by its name, gets a narrower type only where so much of its range is unused: it grows with the
/// table.
const KEY_ROOM: i64 = 16;
const COUNTS: &[&str] = &["next", "cnt", "count", "total", "seq", "number_of"];
/// A VARCHAR is too wide from this length on, if its longest value has less than a quarter of it.
const WIDE: i64 = 64;
const WIDE_FACTOR: i64 = 4;
/// A longest value of more than so many times the mean length says little: the next one may be longer still (addresses, expressions, remarks).
const TAIL_FACTOR: i64 = 2;
/// Shorter ones are codes, and other codes may be longer.
const WIDE_LONGEST: i64 = 5;
/// A primary key is long from so many bytes on: twice a bigint.
const LONG_KEY: f64 = 16.0;
/// Digits that are no number: codes of one length, and columns of these names.
const CODE_LENGTH: i64 = 4;
const CODES: &[&str] = &[
    "zip", "postal", "postcode", "plz", "phone", "fax", "iban", "isbn", "ean", "code", "ssn", "password", "pin",
    "version",
];

/// Texts that may be of another type: a pattern that every server's regular expressions understand, and the type.
const PATTERNS: [(&str, Sort); 6] = [
    ("^-?(0|[1-9][0-9]{0,17})$", Sort::Whole),
    ("^-?(0|[1-9][0-9]{0,17})[.][0-9]{1,18}$", Sort::Decimal),
    ("^[0-9]{4}-[0-9]{2}-[0-9]{2}$", Sort::Date),
    ("^[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,6})?)?$", Sort::Timestamp),
    ("^(([0-9]{1,3}[.]){3}[0-9]{1,3}|[0-9A-Fa-f]{0,4}(:[0-9A-Fa-f]{0,4}){2,7})$", Sort::Address),
    ("^[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$", Sort::Uuid),
];

fn is_text(column: &Column) -> bool {
    matches!(column.ty, Type::Text | Type::Varchar(_))
}

fn is_integer(column: &Column) -> bool {
    matches!(column.ty, Type::Integer { .. })
}

/// The expressions that a column's figures come from, in the order in which [`ColumnFigures::read`] takes them.
pub(super) fn figures(column: &Column, dialect: Dialect) -> Vec<String> {
    let name = &column.name;
    if is_integer(column) {
        return vec![format!("min({name})"), format!("max({name})")];
    }
    if !is_text(column) {
        return Vec::new();
    }
    let (characters, bytes) = dialect.lengths();
    let mut out = vec![
        format!("count({name})"),
        format!("min({characters}({name}))"),
        format!("max({characters}({name}))"),
        format!("sum({bytes}({name}))"),
    ];
    let fits = |pattern: &str| format!("sum(CASE WHEN {} THEN 1 ELSE 0 END)", dialect.matches(name, pattern));
    out.extend(PATTERNS.iter().map(|(pattern, _)| fits(pattern)));
    out
}

/// The figures of a column.
#[derive(Clone, Debug, Default)]
pub(super) struct ColumnFigures {
    pub(super) rows: u64,
    /// Integers: the least and the greatest.
    pub(super) range: Option<(i64, i64)>,
    /// Texts: how many are not null, their lengths, their bytes.
    present: i64,
    shortest: i64,
    longest: i64,
    bytes: i64,
    /// How many fit each pattern.
    fits: [i64; PATTERNS.len()],
}

impl ColumnFigures {
    /// Takes a column's figures from an answer.
    pub(super) fn read(column: &Column, rows: u64, values: &mut dyn Iterator<Item = Option<String>>) -> ColumnFigures {
        let mut seen = ColumnFigures { rows, ..ColumnFigures::default() };
        let mut next = || values.next().flatten().and_then(|n| n.parse::<i64>().ok());
        if is_integer(column) {
            let (low, high) = (next(), next());
            seen.range = low.zip(high);
        } else if is_text(column) {
            let mut number = || next().unwrap_or(0);
            (seen.present, seen.shortest, seen.longest, seen.bytes) = (number(), number(), number(), number());
            seen.fits = std::array::from_fn(|_| number());
        }
        seen
    }

    /// Bytes of a value.
    pub(super) fn mean_bytes(&self, column: &Column) -> f64 {
        match column.len {
            len if len > 0 => f64::from(len),
            _ if is_text(column) => self.bytes as f64 / (self.present.max(1)) as f64,
            _ => 8.0,
        }
    }
}

/// A type that a column should have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WantedType {
    finding: &'static str,
    /// What the values are.
    pub(super) sort: Sort,
    /// The type's name.
    pub(super) ty: String,
    evidence: String,
}

impl WantedType {
    /// The narrowest type for whole numbers of this range.
    pub(super) fn narrow(&mut self, low: i64, high: i64, dialect: Dialect) {
        let ty = dialect.integer_for(low, high, 1, false);
        self.ty = ty.map_or("bigint", |(name, _)| name).to_owned();
        self.evidence += &format!(", from {low} to {high}");
    }

    /// The finding that it is.
    pub(super) fn finding(self, table: &Table, column: &Column, seen: &ColumnFigures, dialect: Dialect) -> Finding {
        let was = match column.len {
            len if len > 0 => i64::from(len) * seen.rows as i64,
            // A length or an offset beside each value.
            _ => seen.bytes + seen.present,
        };
        let of_values = if column.len > 0 { seen.rows as i64 } else { seen.present };
        let copies = 1 + dialect.indexes_with(table, column) as i64;
        let saved = dialect.size_of(&self.ty).map(|size| ((was - size * of_values) * copies).max(0) as u64);
        Finding {
            finding: self.finding.to_owned(),
            object: format!("{}.{}", table.shown, column.shown),
            evidence: self.evidence,
            bytes_saved: saved,
            ddl: dialect.change(table, column, &self.ty, self.sort),
        }
    }
}

/// The type that a column should have; none: its own.
pub(super) fn judged(table: &Table, column: &Column, seen: &ColumnFigures, dialect: Dialect) -> Option<WantedType> {
    // The columns of a foreign key change together or not at all. A counter goes on, there is no telling how far.
    if column.is_linked || column.is_counter {
        return None;
    }
    if let Some((low, high)) = seen.range {
        // One value does not tell what others there may be: a flag, or a moment that has not come yet.
        if low == high {
            return None;
        }
        let name = column.name.to_lowercase();
        let grows = table.key.contains(&column.number) || COUNTS.iter().any(|count| name.contains(count));
        let room = if grows { KEY_ROOM } else { 1 };
        let (ty, bytes) = dialect.integer_for(low, high, room, column.ty == Type::Integer { unsigned: true })?;
        let narrower = bytes < i64::from(column.len);
        let evidence = format!("{} rows, values from {low} to {high}", seen.rows);
        return narrower.then(|| WantedType {
            finding: "Narrower integer",
            sort: Sort::Integer,
            ty: ty.to_owned(),
            evidence,
        });
    }
    if !is_text(column) || seen.present == 0 || seen.present < seen.rows as i64 / 10 {
        return None;
    }
    if let Some((_, sort)) = PATTERNS.iter().zip(seen.fits).find(|(_, n)| *n == seen.present).map(|(p, _)| p)
        && !(*sort == Sort::Whole && is_code(column, seen))
    {
        let (finding, what) = match sort {
            Sort::Whole => ("Number kept as text", "whole numbers"),
            Sort::Decimal => ("Number kept as text", "numbers"),
            Sort::Date | Sort::Timestamp => ("Date kept as text", "dates"),
            Sort::Address => ("IP address kept as text", "IP addresses"),
            _ => ("UUID kept as text", "UUIDs"),
        };
        let evidence = format!("all {} values are {what}", seen.present);
        return Some(WantedType { finding, sort: *sort, ty: dialect.type_of(*sort).to_owned(), evidence });
    }
    let Type::Varchar(width) = column.ty else { return None };
    let is_even = seen.longest * seen.present <= seen.bytes * TAIL_FACTOR;
    if width >= WIDE && seen.longest >= WIDE_LONGEST && seen.longest * WIDE_FACTOR < width && is_even {
        // Room for values twice as long.
        let enough = (seen.longest * 2 + 7) / 8 * 8;
        let evidence =
            format!("varchar({width}), and the longest of {} values has {} characters", seen.present, seen.longest);
        let ty = format!("varchar({enough})");
        return Some(WantedType { finding: "VARCHAR wider than its data", sort: Sort::Varchar, ty, evidence });
    }
    None
}

/// Digits that are no number to calculate with.
fn is_code(column: &Column, seen: &ColumnFigures) -> bool {
    let name = column.name.to_lowercase();
    let of_one_length = seen.shortest == seen.longest && seen.longest >= CODE_LENGTH;
    of_one_length || CODES.iter().any(|code| name.contains(code))
}

/// A primary key that is repeated in every other index, and costs more there than a number of the row would.
pub(super) fn long_key(table: &Table, rows: u64, key_bytes: f64, dialect: Dialect) -> Option<Finding> {
    let others = table.indexes.len() as f64;
    let saved = rows as f64 * (others * (key_bytes - 8.0) - 8.0);
    if key_bytes < LONG_KEY || table.is_referenced || table.indexes.is_empty() || saved <= 0.0 {
        return None;
    }
    let of = |number: &i16| table.columns.iter().find(|column| column.number == *number);
    let shown: Vec<&str> = table.key.iter().map(|number| of(number).map_or("", |c| c.shown.as_str())).collect();
    Some(Finding {
        finding: "Long primary key".to_owned(),
        object: format!("{} ({})", table.shown, shown.join(", ")),
        evidence: format!(
            "{key_bytes:.0} bytes on average, repeated in {} other indexes of {rows} rows",
            table.indexes.len()
        ),
        bytes_saved: Some(saved as u64),
        ddl: dialect.replace_key(table)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIGNED: Type = Type::Integer { unsigned: false };
    const PG: Dialect = Dialect::PostgreSql;

    fn text(name: &str, width: i64) -> Column {
        Column {
            number: 2,
            name: name.to_owned(),
            shown: name.to_owned(),
            ty: Type::Varchar(width),
            len: -1,
            ..Column::default()
        }
    }

    fn seen(pattern: Option<usize>, shortest: i64, longest: i64) -> ColumnFigures {
        let mut seen = ColumnFigures {
            rows: 1000,
            present: 1000,
            shortest,
            longest,
            bytes: 1000 * longest,
            ..ColumnFigures::default()
        };
        pattern.into_iter().for_each(|at| seen.fits[at] = 1000);
        seen
    }

    #[test]
    fn integers_get_the_type_that_holds_their_values() {
        let column = Column { number: 1, name: "n".to_owned(), ty: SIGNED, len: 8, ..Column::default() };
        let judged = |column: &Column, range| {
            let seen = ColumnFigures { rows: 10, range: Some(range), ..ColumnFigures::default() };
            judged(&Table::default(), column, &seen, PG).map(|wanted| wanted.ty)
        };
        assert_eq!(judged(&column, (-32_768, 32_767)).as_deref(), Some("smallint"));
        assert_eq!(judged(&column, (-32_769, 0)).as_deref(), Some("integer"));
        assert_eq!(judged(&column, (0, 1 << 31)), None);
        assert_eq!(judged(&Column { is_counter: true, ..column.clone() }, (1, 30_000)), None);
        let keyed = Table { key: vec![1], ..Table::default() };
        let seen = |high| ColumnFigures { rows: 10, range: Some((1, high)), ..ColumnFigures::default() };
        let of_key = |high| super::judged(&keyed, &column, &seen(high), PG).map(|wanted| wanted.ty);
        assert_eq!((of_key(30_000).as_deref(), of_key(1 << 28)), (Some("integer"), None));
        // TPC-C's orders are numbered within their district, and its warehouses.
        let part = Table { key: vec![2, 3, 1], ..Table::default() };
        let int4 = |name: &str| Column { number: 1, name: name.to_owned(), ty: SIGNED, len: 4, ..Column::default() };
        let of_part = |name: &str, high| super::judged(&part, &int4(name), &seen(high), PG).map(|wanted| wanted.ty);
        assert_eq!((of_part("o_id", 3000), of_part("d_id", 10).as_deref()), (None, Some("smallint")));
        assert_eq!(judged(&int4("d_next_o_id"), (3001, 3050)), None);
        assert_eq!(judged(&int4("o_c_id"), (1, 3000)).as_deref(), Some("smallint"));
        // Zabbix's items.lastcheck before anything has run.
        assert_eq!(judged(&int4("lastcheck"), (0, 0)), None);
        assert_eq!(judged(&Column { is_linked: true, ..column.clone() }, (0, 1)), None);
        assert_eq!(judged(&Column { ty: SIGNED, len: 4, ..column }, (0, 100_000)), None);
    }

    #[test]
    fn texts_that_are_something_else() {
        let table = Table { name: "public.t".to_owned(), ..Table::default() };
        let of = |column: &Column, seen: &ColumnFigures| judged(&table, column, seen, PG).map(|w| (w.finding, w.ty));
        assert_eq!(of(&text("amount", -1), &seen(Some(0), 1, 5)), Some(("Number kept as text", "bigint".to_owned())));
        assert_eq!(of(&text("amount", -1), &seen(Some(1), 3, 5)), Some(("Number kept as text", "numeric".to_owned())));
        assert_eq!(of(&text("at", -1), &seen(Some(2), 10, 10)), Some(("Date kept as text", "date".to_owned())));
        // Digits of one length, and telephone numbers.
        assert_eq!(of(&text("branch", -1), &seen(Some(0), 6, 6)), None);
        assert_eq!(of(&text("phone_home", -1), &seen(Some(0), 5, 9)), None);
        assert_eq!(of(&text("name", 255), &seen(None, 1, 60)).map(|w| w.1), Some("varchar(120)".to_owned()));
        assert_eq!(of(&text("name", 255), &seen(None, 1, 64)), None);
        assert_eq!(of(&text("name", 50), &seen(None, 1, 2)), None);
        // Mostly empty, and some long ones: the next one may be longer.
        let tail = ColumnFigures { bytes: 5000, ..seen(None, 0, 60) };
        assert_eq!(of(&text("url", 2048), &tail), None);
        assert_eq!(of(&text("keep_for", 255), &seen(None, 2, 4)), None);
    }

    #[test]
    fn the_statement_says_what_it_saves() {
        let table = Table { name: "public.t".to_owned(), indexes: vec![vec![2]], ..Table::default() };
        let (column, seen) = (text("amount", -1), seen(Some(0), 1, 9));
        let mut wanted = judged(&table, &column, &seen, PG).expect("a number");
        wanted.narrow(1, 100_000, PG);
        let found = wanted.finding(&table, &column, &seen, PG);
        assert_eq!(found.ddl, "ALTER TABLE public.t ALTER COLUMN amount TYPE integer USING amount::integer");
        // 9 bytes and a length against 4, in the table and in an index.
        assert_eq!(found.bytes_saved, Some(2 * 1000 * (10 - 4)));
    }
}
