//! Conditions: comparisons, lists, patterns, rows, sub-selects, and AND, OR and NOT of them; those that an index serves.

use super::{Col, Item, Maker};
use crate::types::{Family, Ty};

/// How deep sub-selects stand in each other.
const SELECTS_MAX: u32 = 3;

impl Maker<'_> {
    /// A condition over the scope.
    pub(super) fn condition(&mut self, scope: &[Item], depth: u32) -> String {
        let pick = self.rng.below(100);
        let Some(column) = self.any_column(scope) else {
            return self.one(&["true", "false", "1 = 1", "null::bool"]).to_owned();
        };
        if depth > 0 {
            match pick {
                0..10 => return self.either(scope, depth),
                10..13 => return format!("not ({})", self.condition(scope, depth - 1)),
                13..15 => {
                    let test = self.one(&[
                        "is true",
                        "is not true",
                        "is false",
                        "is not false",
                        "is unknown",
                        "is not unknown",
                    ]);
                    return format!("({}) {test}", self.condition(scope, depth - 1));
                }
                15..30 => {
                    if let Some(made) = self.select_condition(scope, &column) {
                        return made;
                    }
                }
                30..40 => return self.compared(scope, depth),
                _ => {}
            }
        }
        match pick {
            0..12 => self.beside(scope, &column).unwrap_or_else(|| self.simple(&column)),
            12..22 => self.row_comparison(scope),
            22..42 => self.indexed(scope).unwrap_or_else(|| self.simple(&column)),
            _ => self.simple(&column),
        }
    }

    /// One to three conditions that all hold.
    pub(super) fn conditions(&mut self, scope: &[Item], most: u64) -> String {
        let made: Vec<String> = (0..self.rng.range(1..most + 1)).map(|_| self.condition(scope, 2)).collect();
        made.iter()
            .map(|one| if one.contains(" or ") { format!("({one})") } else { one.clone() })
            .collect::<Vec<_>>()
            .join(" and ")
    }

    fn either(&mut self, scope: &[Item], depth: u32) -> String {
        let made: Vec<String> = (0..self.rng.range(2..4))
            .map(|_| {
                let arm = self.condition(scope, depth - 1);
                if self.chance(30) {
                    format!("({arm} and {})", self.condition(scope, depth - 1))
                } else {
                    format!("({arm})")
                }
            })
            .collect();
        format!("({})", made.join(" or "))
    }

    /// A condition on one column and literals.
    fn simple(&mut self, column: &Col) -> String {
        let Col { name, ty, spread } = column;
        let (ty, spread) = (*ty, *spread);
        if ty == Ty::Bool && self.chance(40) {
            return name.clone();
        }
        let op = self.one(&["=", "=", "=", "<", "<=", ">", ">=", "<>"]);
        match self.rng.below(100) {
            0..42 => {
                let literal = self.beside_literal(column);
                if self.chance(12) { format!("{literal} {op} {name}") } else { format!("{name} {op} {literal}") }
            }
            42..52 => {
                let list: Vec<String> = (0..self.rng.range(1..5)).map(|_| self.literal(ty, spread)).collect();
                format!("{name} {}in ({})", self.one(&["", "", "not "]), list.join(", "))
            }
            52..58 if ty != Ty::Ints => {
                let list: Vec<String> = (0..self.rng.range(1..5)).map(|_| self.literal(ty, spread)).collect();
                let how = self.one(&["= any", "= any", "<> all", "< any", ">= all", "= all"]);
                format!("{name} {how} (array[{}]::{}[])", list.join(", "), ty.name())
            }
            58..68 => format!("{name} is {}null", self.one(&["", "not "])),
            68..78 => {
                let (from, to) = (self.literal(ty, spread), self.literal(ty, spread));
                format!(
                    "{name} {} {from} and {to}",
                    self.one(&["between", "between", "between", "between symmetric", "not between"])
                )
            }
            78..82 => format!("{name} is {}distinct from {}", self.one(&["", "not "]), self.literal(ty, spread)),
            82..94 => match ty {
                Ty::Text | Ty::Varchar => self.pattern(name),
                Ty::Ints => format!("{} {} ({name})", self.typed(Ty::Int4), self.one(&["= any", "<> all", "< any"])),
                Ty::Jsonb => self.of_json(name),
                _ => format!("{name} {op} {}", self.literal(ty, spread)),
            },
            _ => {
                let literal = self.literal(ty, spread);
                format!(
                    "({name} {op} {literal}) is {}",
                    self.one(&["true", "not true", "false", "not false", "unknown", "not unknown"])
                )
            }
        }
    }

    /// A literal beside a column, sometimes of another type of its family.
    fn beside_literal(&mut self, column: &Col) -> String {
        let other = match column.ty.family() {
            Family::Number if self.chance(12) => *self.rng.pick(&[Ty::Num, Ty::Int8, Ty::Double]),
            Family::Float if self.chance(20) => *self.rng.pick(&[Ty::Int4, Ty::Num, Ty::Real]),
            Family::Moment if self.chance(15) => *self.rng.pick(&[Ty::Ts, Ty::Date]),
            Family::Text if self.chance(8) => Ty::Text,
            _ => return self.literal(column.ty, column.spread),
        };
        let literal = self.literal(other, column.spread);
        if literal.ends_with(other.name()) { literal } else { format!("{literal}::{}", other.name()) }
    }

    fn pattern(&mut self, name: &str) -> String {
        let word = crate::types::word(self.rng.below(90)).replace('\'', "").replace('%', "\\%");
        match self.rng.below(8) {
            0..3 => format!("{name} like '{word}%'"),
            3 => format!("{name} like '%{word}'"),
            4 => format!("{name} not like '{word}_'"),
            5 => format!("{name} ilike '{word}%'"),
            6 => format!("{name} ~ '^{}'", word.replace(['\\', '%', '_'], "")),
            _ => format!("starts_with({name}, '{}')", word.replace('\\', "")),
        }
    }

    fn of_json(&mut self, name: &str) -> String {
        match self.rng.below(4) {
            0 => format!("{name} @> '{{\"a\": {}}}'", self.rng.below(9)),
            1 => format!("{name} ? 'a'"),
            2 => format!("{name} ->> 'a' = '{}'", self.rng.below(9)),
            _ => format!("jsonb_typeof({name}) = '{}'", self.one(&["number", "object", "array", "null"])),
        }
    }

    /// A column beside a column of its family.
    fn beside(&mut self, scope: &[Item], column: &Col) -> Option<String> {
        let family = column.ty.family();
        let other = self.column(scope, |ty| ty.family() == family)?;
        let op = self.one(&["=", "=", "<", "<=", ">", "<>", "is distinct from", "is not distinct from"]);
        Some(format!("{} {op} {}", column.name, other.name))
    }

    /// Two expressions of a type.
    fn compared(&mut self, scope: &[Item], depth: u32) -> String {
        let ty = self.any_column(scope).map_or(Ty::Int4, |column| column.ty);
        let op = self.one(&["=", "=", "<", "<=", ">", ">=", "<>", "is distinct from"]);
        format!("{} {op} {}", self.scalar(scope, ty, depth), self.scalar(scope, ty, depth))
    }

    fn row_comparison(&mut self, scope: &[Item]) -> String {
        let columns: Vec<Col> = (0..self.rng.range(2..4)).filter_map(|_| self.any_column(scope)).collect();
        if columns.len() < 2 {
            return "true".to_owned();
        }
        let names = columns.iter().map(|c| c.name.as_str()).collect::<Vec<_>>().join(", ");
        let values = |maker: &mut Self| {
            format!("({})", columns.iter().map(|c| maker.literal(c.ty, c.spread)).collect::<Vec<_>>().join(", "))
        };
        if self.chance(30) {
            let list: Vec<String> = (0..self.rng.range(1..4)).map(|_| values(self)).collect();
            return format!("({names}) {}in ({})", self.one(&["", "", "not "]), list.join(", "));
        }
        let op = self.one(&["=", "<", "<=", ">", ">=", "<>"]);
        format!("({names}) {op} {}", values(self))
    }

    /// Conditions on the leading keys of an index, and what a partial index asks for.
    pub(super) fn indexed(&mut self, scope: &[Item]) -> Option<String> {
        let item = self.rng.pick(scope).clone();
        let table = self.table(&item)?;
        let at = |text: &str| text.replace('@', &format!("{}.", item.alias));
        let key = |n: &usize| (format!("@{}", table.columns[*n].name), table.columns[*n].ty, table.columns[*n].spread);
        let mut keys: Vec<(Vec<_>, Option<String>)> =
            table.indexes.iter().map(|index| (index.keys.clone(), index.condition.clone())).collect();
        keys.extend(
            [&table.primary]
                .into_iter()
                .chain(&table.unique)
                .filter(|k| !k.is_empty())
                .map(|k| (k.iter().map(key).collect(), None)),
        );
        if keys.is_empty() {
            return None;
        }
        let (keys, partial) = self.rng.pick(&keys).clone();
        let mut parts = Vec::new();
        if let Some(partial) = partial.filter(|_| self.chance(75)) {
            parts.push(at(&partial));
        }
        let equal = self.rng.index(keys.len() + 1);
        for (n, (name, ty, spread)) in keys.iter().enumerate() {
            let name = at(name);
            let name = if name.contains(' ') { format!("({name})") } else { name };
            let column = Col { name, ty: *ty, spread: *spread };
            match n {
                _ if n < equal => parts.push(self.equality(&column)),
                _ if n == equal => parts.push(self.range(&column)),
                _ if self.chance(20) => parts.push(self.simple(&column)),
                _ => {}
            }
        }
        Some(parts.join(" and "))
    }

    fn equality(&mut self, column: &Col) -> String {
        let Col { name, ty, spread } = column;
        match self.rng.below(10) {
            0 => format!("{name} is null"),
            1..3 => {
                let list: Vec<String> = (0..self.rng.range(2..5)).map(|_| self.literal(*ty, *spread)).collect();
                format!("{name} in ({})", list.join(", "))
            }
            _ => format!("{name} = {}", self.literal(*ty, *spread)),
        }
    }

    fn range(&mut self, column: &Col) -> String {
        let Col { name, ty, spread } = column;
        let (low, high) = (self.literal(*ty, *spread), self.literal(*ty, *spread));
        match self.rng.below(6) {
            0 => format!("{name} >= {low} and {name} < {high}"),
            1 => format!("{name} > {low} and {name} <= {high}"),
            2 => format!("{name} between {low} and {high}"),
            3 => format!("{name} is not null"),
            _ => {
                let op = self.one(&["<", "<=", ">", ">="]);
                format!("{name} {op} {low}")
            }
        }
    }

    /// A condition with a sub-select, unless sub-selects are deep enough.
    fn select_condition(&mut self, scope: &[Item], column: &Col) -> Option<String> {
        if self.depth >= SELECTS_MAX || self.rows_max() / self.estimate.max(1) < 40 {
            return None;
        }
        let name = &column.name;
        let own = |maker: &mut Self| maker.scalar(scope, column.ty, 1);
        Some(match self.rng.below(100) {
            0..30 => {
                let select = self.select(scope, &[column.ty]);
                format!(
                    "{} {}in ({select})",
                    if self.chance(80) { name.clone() } else { own(self) },
                    self.one(&["", "", "not "])
                )
            }
            30..65 => {
                let select = self.select(scope, &[]);
                format!("{}exists ({select})", self.one(&["", "", "not "]))
            }
            65..75 => {
                let other = self.any_column(scope)?;
                let select = self.select(scope, &[column.ty, other.ty]);
                format!("({name}, {}) {}in ({select})", other.name, self.one(&["", "", "not "]))
            }
            75..85 => {
                let how = self.one(&["= any", "<> all", "< any", "<= all", "> all", ">= any", "<> any", "= all"]);
                format!("{name} {how} ({})", self.select(scope, &[column.ty]))
            }
            _ => {
                let op = self.one(&["=", "<", "<=", ">", ">=", "<>"]);
                format!("{name} {op} {}", self.scalar_select(scope, column.ty)?)
            }
        })
    }
}
