//! Aggregates, and functions of windows.

use super::{Item, Maker};
use crate::types::Ty;

impl Maker<'_> {
    /// An aggregate over the scope, and its type.
    pub(super) fn aggregate(&mut self, scope: &[Item]) -> (String, Ty) {
        let (text, ty) = self.without_outer(|maker| {
            let (text, ty) = maker.plain_aggregate(scope);
            if maker.chance(20) {
                (format!("{text} filter (where {})", maker.condition(scope, 1)), ty)
            } else {
                (text, ty)
            }
        });
        (text, ty)
    }

    fn plain_aggregate(&mut self, scope: &[Item]) -> (String, Ty) {
        let own = |maker: &mut Self, ty: Ty| maker.scalar(scope, ty, 1);
        match self.rng.below(100) {
            0..12 => ("count(*)".to_owned(), Ty::Int8),
            12..24 => {
                let ty = self.any_column(scope).map_or(Ty::Int4, |c| c.ty);
                let distinct = self.one(&["", "distinct "]);
                (format!("count({distinct}{})", own(self, ty)), Ty::Int8)
            }
            24..52 => {
                let column = self.column(scope, Ty::has_least);
                let ty = column.as_ref().map_or(Ty::Int4, |c| c.ty);
                let function = self.one(&["min", "max"]);
                let text = match column.filter(|_| self.rng.chance(3, 4)) {
                    Some(column) => column.name,
                    None => own(self, ty),
                };
                // min(varchar) is a text.
                (format!("{function}({text})"), if ty == Ty::Varchar { Ty::Text } else { ty })
            }
            52..64 => {
                let (ty, gives) = *self.rng.pick(&[
                    (Ty::Int4, Ty::Int8),
                    (Ty::Int2, Ty::Int8),
                    (Ty::Int8, Ty::Num),
                    (Ty::Num, Ty::Num),
                    (Ty::Double, Ty::Double),
                ]);
                let distinct = self.one(&["", "", "", "distinct "]);
                (format!("sum({distinct}{})", own(self, ty)), gives)
            }
            64..70 => {
                let (ty, gives) = *self.rng.pick(&[(Ty::Int4, Ty::Num), (Ty::Int8, Ty::Num), (Ty::Num, Ty::Num)]);
                // QRY-1: not of floats, whose average depends on the order of its rows in the last digits, as does what is computed with it.
                (format!("avg({})", own(self, ty)), gives)
            }
            70..75 => (format!("{}({})", self.one(&["bool_and", "bool_or", "every"]), own(self, Ty::Bool)), Ty::Bool),
            75..80 => (format!("{}({})", self.one(&["bit_and", "bit_or", "bit_xor"]), own(self, Ty::Int4)), Ty::Int4),
            80..84 => {
                let text = own(self, Ty::Text);
                let text = crate::types::plain(&text);
                (format!("string_agg({text}, ',' order by {text})"), Ty::Text)
            }
            84..88 => {
                let text = crate::types::plain(&own(self, Ty::Int4));
                let order = self.one(&["", " desc", " nulls first"]);
                (format!("array_agg({text} order by {text}{order})"), Ty::Ints)
            }
            88..92 => (
                format!("{}({})", self.one(&["stddev", "variance", "var_pop", "stddev_pop"]), own(self, Ty::Int4)),
                Ty::Num,
            ),
            _ => self.ordered_set(scope),
        }
    }

    /// An aggregate over values in their order.
    fn ordered_set(&mut self, scope: &[Item]) -> (String, Ty) {
        match self.rng.below(8) {
            0..3 => {
                let ty = *self.rng.pick(&[Ty::Int4, Ty::Text, Ty::Date, Ty::Num]);
                let at = self.one(&["0", "0.25", "0.5", "0.9", "1"]);
                (format!("percentile_disc({at}) within group (order by {})", self.scalar(scope, ty, 1)), ty)
            }
            3..5 => {
                let at = self.one(&["0.25", "0.5", "1"]);
                let value = self.scalar(scope, Ty::Double, 1);
                (format!("percentile_cont({at}) within group (order by {value})"), Ty::Double)
            }
            _ => {
                let ty = *self.rng.pick(&[Ty::Int4, Ty::Text, Ty::Date]);
                (format!("mode() within group (order by {})", self.scalar(scope, ty, 1)), ty)
            }
        }
    }

    /// All that distinguishes rows of the scope (QRY-1).
    pub(super) fn total_order(&self, scope: &[Item]) -> String {
        scope.iter().flat_map(|item| &item.key).cloned().collect::<Vec<_>>().join(", ")
    }

    /// A function of a window, and its type.
    pub(super) fn window(&mut self, scope: &[Item]) -> (String, Ty) {
        let partition = match self.any_column(scope) {
            Some(column) if self.chance(60) => format!("partition by {} ", self.shape(&column).0),
            _ => String::new(),
        };
        let lead = match self.any_column(scope) {
            Some(column) if self.chance(70) => {
                format!("{}{}, ", column.name, self.one(&["", " desc", " nulls first", " desc nulls last"]))
            }
            _ => String::new(),
        };
        // Rows that all keys leave together are the same in all that a function shows.
        let order = format!("order by {lead}{}", self.total_order(scope));
        match self.rng.below(100) {
            0..14 => (format!("row_number() over ({partition}{order})"), Ty::Int8),
            14..28 => {
                let function = self.one(&["rank()", "dense_rank()"]);
                let order = if lead.is_empty() { order } else { format!("order by {}", lead.trim_end_matches(", ")) };
                (format!("{function} over ({partition}{order})"), Ty::Int8)
            }
            28..34 => {
                let order = if lead.is_empty() { order } else { format!("order by {}", lead.trim_end_matches(", ")) };
                let function = self.one(&["percent_rank()", "cume_dist()"]);
                (format!("round(({function} over ({partition}{order}))::numeric, 4)"), Ty::Num)
            }
            34..39 => (format!("ntile({}) over ({partition}{order})", self.rng.range(1..6)), Ty::Int4),
            39..55 => {
                let ty = self.any_column(scope).map_or(Ty::Int4, |c| c.ty);
                let value = self.without_outer(|maker| maker.scalar(scope, ty, 1));
                let function = self.one(&["lag", "lead"]);
                let rest = match self.rng.below(3) {
                    0 => String::new(),
                    1 => format!(", {}", self.rng.below(4)),
                    _ => format!(", {}, {}", self.rng.below(4), self.typed(ty)),
                };
                (format!("{function}({value}{rest}) over ({partition}{order})"), ty)
            }
            55..68 => {
                let ty = self.any_column(scope).map_or(Ty::Int4, |c| c.ty);
                let value = self.without_outer(|maker| maker.scalar(scope, ty, 1));
                let call = match self.rng.below(3) {
                    0 => format!("first_value({value})"),
                    1 => format!("last_value({value})"),
                    _ => format!("nth_value({value}, {})", self.rng.range(1..4)),
                };
                (format!("{call} over ({partition}{order} {})", self.rows_frame()), ty)
            }
            68..80 => {
                let (call, ty) = self.framed_aggregate(scope);
                (format!("{call} over ({partition}{order} {})", self.rows_frame()), ty)
            }
            80..90 => {
                let (call, ty) = self.framed_aggregate(scope);
                let order = if lead.is_empty() { order } else { format!("order by {}", lead.trim_end_matches(", ")) };
                let order = if self.chance(15) { String::new() } else { order };
                (format!("{call} over ({partition}{order})"), ty)
            }
            _ => self.range_window(scope, &partition),
        }
    }

    /// An aggregate whose result does not depend on the order of the rows.
    fn framed_aggregate(&mut self, scope: &[Item]) -> (String, Ty) {
        self.without_outer(|maker| {
            let (ty, gives) = *maker.rng.pick(&[(Ty::Int4, Ty::Int8), (Ty::Num, Ty::Num), (Ty::Double, Ty::Double)]);
            let value = maker.scalar(scope, ty, 1);
            let filter =
                if maker.chance(15) { format!(" filter (where {})", maker.condition(scope, 1)) } else { String::new() };
            match maker.rng.below(6) {
                0 => (format!("count(*){filter}"), Ty::Int8),
                1 => (format!("count({value}){filter}"), Ty::Int8),
                2 => (format!("min({value}){filter}"), ty),
                3 => (format!("max({value}){filter}"), ty),
                4 if ty != Ty::Double => (format!("avg({value}){filter}"), Ty::Num),
                _ => (format!("sum({value}){filter}"), gives),
            }
        })
    }

    fn exclusion(&mut self) -> &'static str {
        self.one(&["", "", "", "", " exclude current row", " exclude group", " exclude ties", " exclude no others"])
    }

    fn rows_frame(&mut self) -> String {
        let kind = self.one(&["rows", "rows", "groups"]);
        let (a, b) = (self.rng.below(4), self.rng.below(4));
        let frame = match self.rng.below(8) {
            0 => "between unbounded preceding and current row".to_owned(),
            1 => "between current row and unbounded following".to_owned(),
            2 => "between unbounded preceding and unbounded following".to_owned(),
            3 => format!("between {a} preceding and current row"),
            4 => format!("between {} preceding and {} preceding", a.max(b), a.min(b)),
            5 => format!("between {} following and {} following", a.min(b), a.max(b)),
            6 => format!("{a} preceding"),
            _ => format!("between {a} preceding and {b} following"),
        };
        format!("{kind} {frame}{}", self.exclusion())
    }

    /// A frame by the distance of values, or by groups of equal rows.
    fn range_window(&mut self, scope: &[Item], partition: &str) -> (String, Ty) {
        let (call, ty) = self.framed_aggregate(scope);
        let fits = |ty: Ty| matches!(ty, Ty::Int4 | Ty::Int2 | Ty::Int8 | Ty::Num | Ty::Date | Ty::Ts | Ty::Double);
        let Some(column) = self.column(scope, fits) else {
            return (format!("{call} over ({partition})"), ty);
        };
        let direction = self.one(&["", " desc", " nulls first", " desc nulls last"]);
        let (a, b) = (self.rng.below(5), self.rng.below(5));
        let (kind, a, b) = match column.ty {
            _ if self.chance(30) => ("groups", a.to_string(), b.to_string()),
            Ty::Date | Ty::Ts => ("range", format!("interval '{a} days'"), format!("interval '{b} months'")),
            _ => ("range", a.to_string(), b.to_string()),
        };
        let frame = match self.rng.below(5) {
            0 => format!("between unbounded preceding and {b} following"),
            1 => format!("between {a} preceding and current row"),
            2 => format!("between {a} preceding and {a} preceding"),
            3 => format!("between current row and {b} following"),
            _ => format!("between {a} preceding and {b} following"),
        };
        (format!("{call} over ({partition}order by {}{direction} {kind} {frame}{})", column.name, self.exclusion()), ty)
    }
}
