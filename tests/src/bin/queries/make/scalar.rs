//! Expressions of a given type.

use super::{Item, Maker};
use crate::types::Ty;

impl Maker<'_> {
    /// An expression of exactly this type.
    pub(super) fn scalar(&mut self, scope: &[Item], ty: Ty, depth: u32) -> String {
        let pick = self.rng.below(100);
        if depth == 0 || pick < 45 {
            return match self.column(scope, |other| other == ty) {
                Some(column) => column.name,
                None => self.typed(ty),
            };
        }
        match pick {
            45..52 => self.typed(ty),
            52..60 => {
                let (a, b) = (self.scalar(scope, ty, depth - 1), self.scalar(scope, ty, depth - 1));
                format!("coalesce({a}, {b})")
            }
            60..68 => self.case(scope, ty, depth),
            68..71 => format!("nullif({}, {})", self.scalar(scope, ty, depth - 1), self.typed(ty)),
            71..74 if ty.has_least() => {
                let function = self.one(&["greatest", "least"]);
                format!("{function}({}, {})", self.scalar(scope, ty, depth - 1), self.scalar(scope, ty, depth - 1))
            }
            74..78 => self.scalar_select(scope, ty).unwrap_or_else(|| self.typed(ty)),
            _ => self.composed(scope, ty, depth - 1),
        }
    }

    fn case(&mut self, scope: &[Item], ty: Ty, depth: u32) -> String {
        let (a, b) = (self.scalar(scope, ty, depth - 1), self.scalar(scope, ty, depth - 1));
        if self.chance(25)
            && let Some(column) = self.any_column(scope)
        {
            let (one, other) = (self.literal(column.ty, column.spread), self.literal(column.ty, column.spread));
            return format!("case {} when {one} then {a} when {other} then {b} end", column.name);
        }
        let condition = self.condition(scope, depth - 1);
        let last = if self.chance(75) { format!(" else {b}") } else { String::new() };
        format!("case when {condition} then {a}{last} end")
    }

    /// Functions and operators whose result has the type.
    fn composed(&mut self, scope: &[Item], ty: Ty, depth: u32) -> String {
        match ty {
            Ty::Int2 => format!("({} % 100)::smallint", self.scalar(scope, Ty::Int4, depth)),
            Ty::Int4 => self.composed_int(scope, depth),
            Ty::Int8 => {
                let a = self.scalar(scope, Ty::Int4, depth);
                let op = self.one(&["+", "-", "*"]);
                format!("({a}::bigint {op} {})", self.small(9))
            }
            Ty::Num => match self.rng.below(4) {
                0 => format!("({} + {})", self.scalar(scope, Ty::Num, depth), self.scalar(scope, Ty::Num, depth)),
                1 => format!("({} * {})", self.scalar(scope, Ty::Num, depth), self.scalar(scope, Ty::Int4, depth)),
                2 => format!("round({}, 1)", self.scalar(scope, Ty::Num, depth)),
                _ => format!("{}::numeric", self.scalar(scope, Ty::Int8, depth)),
            },
            Ty::Real => self.scalar(scope, Ty::Real, 0),
            // Numbers of 32 bits and quarters of them are exact, and so are their sums.
            Ty::Double => match self.rng.below(3) {
                0 => format!("({} + {})", self.scalar(scope, Ty::Double, 0), self.scalar(scope, Ty::Real, 0)),
                1 => format!("{}::float8", self.scalar(scope, Ty::Int4, depth)),
                _ => format!("({} - 0.5::float8)", self.scalar(scope, Ty::Double, 0)),
            },
            Ty::Text => self.composed_text(scope, depth),
            Ty::Varchar => format!("{}::varchar(5)", self.scalar(scope, Ty::Text, depth)),
            Ty::Char => format!("{}::char(4)", self.scalar(scope, Ty::Text, depth)),
            Ty::Bool => format!("({})", self.condition(scope, depth)),
            Ty::Date | Ty::Ts | Ty::Tstz => self.composed_moment(scope, ty, depth),
            Ty::Interval => self.typed(ty),
            Ty::Uuid => format!("md5({})::uuid", self.scalar(scope, Ty::Text, depth)),
            Ty::Bytea => format!("convert_to({}, 'UTF8')", self.scalar(scope, Ty::Text, depth)),
            Ty::Ints => match self.rng.below(3) {
                0 => format!("array[{}, {}]", self.scalar(scope, Ty::Int4, depth), self.scalar(scope, Ty::Int4, depth)),
                // Not array_remove and array_append, which refuse arrays of several dimensions: whether such a one is met depends on the order in which
                // conditions are judged.
                1 => format!(
                    "array_replace({}, {}, 3)",
                    self.scalar(scope, Ty::Ints, 0),
                    self.scalar(scope, Ty::Int4, depth)
                ),
                _ => format!(
                    "array[cardinality({}), {}]",
                    self.scalar(scope, Ty::Ints, 0),
                    self.scalar(scope, Ty::Int4, depth)
                ),
            },
            Ty::Enum => format!("greatest({}, {})", self.scalar(scope, Ty::Enum, 0), self.typed(Ty::Enum)),
            Ty::Jsonb => match self.rng.below(3) {
                0 => format!("to_jsonb({})", self.scalar(scope, Ty::Int4, depth)),
                1 => format!("jsonb_build_object('a', {})", self.scalar(scope, Ty::Text, depth)),
                _ => format!("({} -> 'a')", self.scalar(scope, Ty::Jsonb, 0)),
            },
        }
    }

    fn composed_int(&mut self, scope: &[Item], depth: u32) -> String {
        match self.rng.below(14) {
            0..3 => {
                let a = self.scalar(scope, Ty::Int4, depth);
                let op = self.one(&["+", "-", "*"]);
                format!("({a} {op} {})", self.small(9))
            }
            3 => format!("({} % {})", self.scalar(scope, Ty::Int4, depth), self.rng.range(2..9)),
            4 => format!("({} / {})", self.scalar(scope, Ty::Int4, depth), self.rng.range(2..9)),
            5 => format!("length({})", self.scalar(scope, Ty::Text, depth)),
            6 => format!("position('a' in {})", self.scalar(scope, Ty::Text, depth)),
            7 => format!("cardinality({})", self.scalar(scope, Ty::Ints, depth)),
            8 => format!("({})[{}]", self.scalar(scope, Ty::Ints, depth), self.rng.range(1..3)),
            9 => {
                let field = self.one(&["year", "month", "day", "dow", "doy", "quarter"]);
                format!("extract({field} from {})::int", self.scalar(scope, Ty::Date, depth))
            }
            10 => {
                let field = self.one(&["hour", "minute", "month"]);
                format!("date_part('{field}', {})::int", self.scalar(scope, Ty::Ts, depth))
            }
            11 => format!("({} - {})", self.scalar(scope, Ty::Date, 0), self.typed(Ty::Date)),
            12 => format!("{}::int", self.scalar(scope, Ty::Bool, depth)),
            _ => format!("({} + {})", self.scalar(scope, Ty::Int2, 0), self.scalar(scope, Ty::Int4, 0)),
        }
    }

    fn composed_text(&mut self, scope: &[Item], depth: u32) -> String {
        let text = self.scalar(scope, Ty::Text, depth);
        match self.rng.below(16) {
            0 => format!("lower({text})"),
            1 => format!("upper({text})"),
            2..4 => format!("({text} || {})", self.scalar(scope, Ty::Text, depth)),
            4 => format!("substr({text}, {}, {})", self.rng.range(1..3), self.rng.range(1..4)),
            5 => format!("left({text}, {})", self.rng.below(5) as i64 - 2),
            6 => format!("replace({text}, 'a', 'xy')"),
            7 => format!("{}::text", self.scalar(scope, Ty::Int4, depth)),
            8 => {
                let ty = *self.rng.pick(&[Ty::Date, Ty::Uuid, Ty::Enum, Ty::Bool, Ty::Ts, Ty::Jsonb]);
                format!("{}::text", self.scalar(scope, ty, depth))
            }
            9 => format!(
                "concat({text}, {}, {})",
                self.scalar(scope, Ty::Int4, depth),
                self.scalar(scope, Ty::Varchar, depth)
            ),
            10 => format!("lpad({text}, {}, '*')", self.rng.range(1..6)),
            11 => format!("split_part({text}, 'b', {})", self.rng.range(1..3)),
            12 => format!("reverse({text})"),
            13 => format!("btrim({text}, 'ab')"),
            14 => format!("({} ->> 'a')", self.scalar(scope, Ty::Jsonb, 0)),
            _ => format!("translate({text}, 'abc', 'xy')"),
        }
    }

    fn composed_moment(&mut self, scope: &[Item], ty: Ty, depth: u32) -> String {
        // Intervals of columns are not added: equal ones have different effects, and which one a group shows is the server's choice.
        let interval = self.one(&["'1 day'", "'1 month'", "'-3 hours'", "'1 year 2 days'"]);
        match ty {
            Ty::Date => match self.rng.below(3) {
                0 => format!("({} + {})", self.scalar(scope, Ty::Date, depth), self.small(40)),
                1 => format!("({} - {})", self.scalar(scope, Ty::Date, depth), self.small(40)),
                _ => format!("{}::date", self.scalar(scope, Ty::Ts, depth)),
            },
            Ty::Ts => match self.rng.below(3) {
                0 => format!("({} + interval {interval})", self.scalar(scope, Ty::Date, depth)),
                1 => {
                    let field = self.one(&["month", "day", "hour", "year", "week"]);
                    format!("date_trunc('{field}', {})", self.scalar(scope, Ty::Ts, depth))
                }
                _ => format!("({} at time zone 'UTC')", self.scalar(scope, Ty::Tstz, depth)),
            },
            _ => match self.rng.below(2) {
                0 => format!("({} + interval {interval})", self.scalar(scope, Ty::Tstz, depth)),
                _ => format!("({} at time zone 'Europe/Berlin')", self.scalar(scope, Ty::Ts, depth)),
            },
        }
    }

    /// An expression of a column only, with its type and spread: a key of a group.
    pub(super) fn shape(&mut self, column: &super::Col) -> (String, Ty, u64) {
        let name = &column.name;
        if self.chance(65) {
            return (name.clone(), column.ty, column.spread);
        }
        match column.ty {
            Ty::Int2 | Ty::Int4 | Ty::Int8 => match self.rng.below(3) {
                0 => (format!("({name}::bigint + 1)"), Ty::Int8, column.spread),
                1 => (format!("({name}::bigint % 3)"), Ty::Int8, 3),
                _ => (format!("({name} is null)"), Ty::Bool, 2),
            },
            Ty::Text | Ty::Varchar => match self.rng.below(3) {
                0 => (format!("lower({name})"), Ty::Text, column.spread),
                1 => (format!("length({name})"), Ty::Int4, 4),
                _ => (format!("substr({name}, 1, 1)"), Ty::Text, 9),
            },
            Ty::Date => (format!("extract(month from {name})::int"), Ty::Int4, 12),
            Ty::Ts => (format!("date_trunc('month', {name})"), Ty::Ts, column.spread / 8 + 1),
            Ty::Ints => (format!("cardinality({name})"), Ty::Int4, 3),
            Ty::Jsonb => (format!("({name} ->> 'a')"), Ty::Text, 20),
            _ => (name.clone(), column.ty, column.spread),
        }
    }
}
