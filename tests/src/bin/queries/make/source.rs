//! What a FROM clause holds: tables, views, queries of WITH, sub-selects, lists of values, functions, and joins of them.

use super::{Block, Col, Item, Maker};
use crate::types::{Family, Ty};

/// A FROM clause, or a part of one.
#[derive(Clone, Debug)]
pub struct Source {
    pub text: String,
    pub items: Vec<Item>,
    pub rows: u64,
}

impl Maker<'_> {
    /// A FROM clause of at most that many items. What is made next is evaluated for its rows.
    pub(super) fn source(&mut self, most: usize) -> Source {
        let count = 1 + self.rng.index(most);
        let source = self.tree(count, &[]);
        self.estimate = source.rows;
        source
    }

    fn tree(&mut self, count: usize, left_of: &[Item]) -> Source {
        if count == 1 {
            return self.item(left_of);
        }
        let right_count = if self.chance(20) { 1 + self.rng.index(count - 1) } else { 1 };
        let left = self.tree(count - right_count, left_of);
        // LATERAL sees what is on its left side.
        let right = self.tree(right_count, if right_count == 1 { &left.items } else { &[] });
        self.join(left, right)
    }

    fn item(&mut self, left: &[Item]) -> Source {
        let pick = self.rng.below(100);
        let alias = self.alias();
        if pick < 15 && !self.with.is_empty() {
            let with = self.rng.pick(&self.with).clone();
            return Source::new(
                with.alias.clone(),
                &alias,
                &with.cols.iter().map(|c| (c.name.clone(), c.ty, c.spread)).collect::<Vec<_>>(),
                with.rows,
            );
        }
        match pick {
            15..22 if !self.schema.views.is_empty() => {
                let view = self.rng.pick(&self.schema.views);
                Source::new(view.name.clone(), &alias, &view.columns, view.rows)
            }
            22..32 if self.depth < 2 => {
                let block = self.nested();
                let columns: Vec<_> = block.cols.iter().map(|c| (c.name.clone(), c.ty, c.spread)).collect();
                Source::new(format!("({})", block.sql), &alias, &columns, block.rows)
            }
            32..38 if self.depth < 2 && !left.is_empty() => {
                let estimate =
                    std::mem::replace(&mut self.estimate, left.iter().map(|item| item.rows).max().unwrap_or(1));
                let block = self.within(left, |maker| maker.block(None));
                self.estimate = estimate;
                let columns: Vec<_> = block.cols.iter().map(|c| (c.name.clone(), c.ty, c.spread)).collect();
                Source::new(format!("lateral ({})", block.sql), &alias, &columns, block.rows)
            }
            38..41 => self.values(&alias),
            41..43 => {
                let last = self.rng.below(8);
                let text = format!("generate_series(0, {last}) as {alias}(n)");
                let col = Col { name: format!("{alias}.n"), ty: Ty::Int4, spread: last + 1 };
                let item = Item {
                    alias: alias.clone(),
                    key: vec![col.name.clone()],
                    cols: vec![col],
                    rows: last + 1,
                    table: None,
                    is_distinct: false,
                };
                Source { text, rows: last + 1, items: vec![item] }
            }
            _ => self.table_item(&alias),
        }
    }

    /// A table of the schema under an alias.
    pub(super) fn table_item(&mut self, alias: &str) -> Source {
        let number = self.rng.index(self.schema.tables.len());
        let table = &self.schema.tables[number];
        let columns: Vec<_> = table.columns.iter().map(|c| (c.name.clone(), c.ty, c.spread)).collect();
        let mut source = Source::new(table.name.clone(), alias, &columns, table.rows.len() as u64);
        source.items[0].table = Some(number);
        if !table.primary.is_empty() {
            source.items[0].is_distinct = true;
            source.items[0].key = table.primary.iter().map(|n| format!("{alias}.{}", table.columns[*n].name)).collect();
        }
        source
    }

    fn values(&mut self, alias: &str) -> Source {
        let types: Vec<Ty> = (0..self.rng.range(1..4)).map(|_| crate::types::any(&mut self.rng)).collect();
        let count = self.rng.range(1..5);
        let rows: Vec<String> = (0..count)
            .map(|_| format!("({})", types.iter().map(|ty| self.typed(*ty)).collect::<Vec<_>>().join(", ")))
            .collect();
        let columns: Vec<_> = types.iter().enumerate().map(|(n, ty)| (format!("c{}", n + 1), *ty, 20)).collect();
        let names = columns.iter().map(|(name, ..)| name.as_str()).collect::<Vec<_>>().join(", ");
        let mut source = Source::new(format!("(values {})", rows.join(", ")), alias, &columns, count);
        source.text += &format!("({names})");
        source
    }

    /// A sub-select in FROM, with a limit at times.
    fn nested(&mut self) -> Block {
        let (outer, estimate) = (std::mem::take(&mut self.outer), self.estimate);
        self.depth += 1;
        let mut block = self.block(None);
        self.depth -= 1;
        (self.outer, self.estimate) = (outer, estimate);
        if self.chance(15) {
            let limit = self.rng.below(20);
            block.sql = format!("{} order by {} limit {limit}", block.sql, super::positions(block.cols.len()));
            block.rows = block.rows.min(limit);
        } else if self.chance(10) {
            block.sql += " offset 0";
        }
        block
    }

    fn join(&mut self, left: Source, right: Source) -> Source {
        let most = self.rows_max();
        let scope: Vec<Item> = left.items.iter().chain(&right.items).cloned().collect();
        let all = left.rows.max(1) * right.rows.max(1);
        let kind = self.one(&[
            "join",
            "join",
            "join",
            "left join",
            "left join",
            "left join",
            "right join",
            "full join",
            "cross join",
        ]);
        let right_text = if right.items.len() > 1 { format!("({})", right.text) } else { right.text.clone() };
        // LATERAL may not be on the side whose rows are filled up.
        let kind = if right.text.starts_with("lateral") && matches!(kind, "right join" | "full join") {
            "left join"
        } else {
            kind
        };
        if kind == "cross join" && all <= most / 4 {
            return Source { text: format!("{} cross join {right_text}", left.text), items: scope, rows: all };
        }
        let kind = if kind == "cross join" { "join" } else { kind };
        let (mut parts, mut estimate) = (Vec::new(), all);
        let equalities = if kind == "full join" { 2 } else { self.rng.range(0..3).max(u64::from(all > most)) };
        for _ in 0..equalities.max(1) + 1 {
            if parts.len() as u64 >= equalities && estimate <= most {
                break;
            }
            if let Some((text, values)) = self.equal_pair(&left.items, &right.items, kind == "full join") {
                parts.push(text);
                estimate = (estimate / values.max(1)).max(1);
            }
        }
        if estimate > most || (kind == "full join" && parts.is_empty()) {
            // Too large without something that is equal on both sides.
            return left;
        }
        if kind != "full join" && (parts.is_empty() || self.chance(30)) {
            let before = std::mem::replace(&mut self.estimate, all);
            parts.push(self.condition(&scope, 1));
            self.estimate = before;
        }
        let rows = match kind {
            "left join" => estimate.max(left.rows),
            "right join" => estimate.max(right.rows),
            "full join" => estimate.max(left.rows + right.rows),
            _ => estimate,
        };
        Source { text: format!("{} {kind} {right_text} on {}", left.text, parts.join(" and ")), items: scope, rows }
    }

    /// A column of each side that are equal, and how many values there are about.
    fn equal_pair(&mut self, left: &[Item], right: &[Item], same: bool) -> Option<(String, u64)> {
        let pick = |maker: &mut Self, items: &[Item]| {
            let item = maker.rng.pick(items).clone();
            // Keys are joined more often.
            let keys: Vec<Col> = item
                .cols
                .iter()
                .filter(|c| item.key.len() <= 2 && item.key.contains(&c.name) || c.name.ends_with(".o"))
                .cloned()
                .collect();
            let from = if !keys.is_empty() && maker.chance(40) { keys } else { item.cols.clone() };
            let col = maker.rng.pick(&from).clone();
            (col, item.rows)
        };
        for _ in 0..6 {
            let ((a, a_rows), (b, b_rows)) = (pick(self, left), pick(self, right));
            let fits = if same { a.ty == b.ty } else { a.ty.family() == b.ty.family() };
            if !fits || a.ty.family() == Family::Other(Ty::Bool) && self.chance(80) {
                continue;
            }
            let values = a.spread.min(a_rows).max(b.spread.min(b_rows)) * 2 / 3;
            return Some((
                if self.chance(50) { format!("{} = {}", a.name, b.name) } else { format!("{} = {}", b.name, a.name) },
                values,
            ));
        }
        None
    }
}

impl Source {
    fn new(text: String, alias: &str, columns: &[(String, Ty, u64)], rows: u64) -> Source {
        let cols: Vec<Col> = columns
            .iter()
            .map(|(name, ty, spread)| Col { name: format!("{alias}.{name}"), ty: *ty, spread: *spread })
            .collect();
        let item = Item {
            alias: alias.to_owned(),
            key: cols.iter().map(|c| c.name.clone()).collect(),
            cols,
            rows,
            table: None,
            is_distinct: false,
        };
        Source { text: format!("{text} {alias}"), items: vec![item], rows }
    }
}
