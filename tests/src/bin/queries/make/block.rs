//! SELECT without ORDER BY: plain, DISTINCT, DISTINCT ON, groups, windows, set operations; sub-selects of conditions and expressions; WITH.

use super::source::Source;
use super::{Block, Col, Item, Maker, positions};
use crate::types::Ty;

impl Maker<'_> {
    /// A query; with columns of these types, or of any.
    pub(super) fn block(&mut self, want: Option<&[Ty]>) -> Block {
        let most = if self.depth == 0 { 4 } else { 2 };
        match self.rng.below(100) {
            0..10 if self.depth < 2 => self.set_operation(want),
            10..36 if want.is_none() => self.grouped(most),
            36..50 if want.is_none() => self.windowed(most),
            50..56 if want.is_none() => self.distinct_on(most),
            _ => self.plain(want, most),
        }
    }

    fn where_clause(&mut self, items: &[Item]) -> String {
        let most = *self.rng.pick(&[1, 1, 2]);
        if self.chance(20) { String::new() } else { format!(" where {}", self.conditions(items, most)) }
    }

    fn plain(&mut self, want: Option<&[Ty]>, most: usize) -> Block {
        let source = self.source(most);
        let filter = self.where_clause(&source.items);
        let outputs = self.outputs(&source.items, want);
        let distinct = if self.chance(15) { "distinct " } else { "" };
        self.named(&format!("select {distinct}"), &outputs, &format!(" from {}{filter}", source.text), source.rows)
    }

    /// Expressions of SELECT, their types and spreads.
    fn outputs(&mut self, items: &[Item], want: Option<&[Ty]>) -> Vec<(String, Ty, u64)> {
        if let Some(want) = want {
            return want.iter().map(|ty| (self.scalar(items, *ty, 2), *ty, 20)).collect();
        }
        (0..self.rng.range(1..6))
            .map(|_| match self.any_column(items) {
                Some(column) if self.chance(70) => (column.name, column.ty, column.spread),
                _ => {
                    let ty = crate::types::any(&mut self.rng);
                    (self.scalar(items, ty, 2), ty, 20)
                }
            })
            .collect()
    }

    /// Puts a query together; its columns are c1, c2 and so on.
    fn named(&mut self, head: &str, outputs: &[(String, Ty, u64)], tail: &str, rows: u64) -> Block {
        let list = outputs
            .iter()
            .enumerate()
            .map(|(n, (text, ..))| format!("{text} as c{}", n + 1))
            .collect::<Vec<_>>()
            .join(", ");
        let cols = outputs.iter().enumerate().map(|(n, (_, ty, spread))| Col {
            name: format!("c{}", n + 1),
            ty: *ty,
            spread: *spread,
        });
        Block { sql: format!("{head}{list}{tail}"), cols: cols.collect(), rows }
    }

    fn distinct_on(&mut self, most: usize) -> Block {
        let source = self.source(most);
        let filter = self.where_clause(&source.items);
        let outputs = self.outputs(&source.items, None);
        // The order has all columns, so that rows among which one is chosen differ in nothing that is shown.
        let on = self.rng.range(1..outputs.len() as u64 + 1) as usize;
        let block = self.named(
            &format!("select distinct on ({}) ", positions(on)),
            &outputs,
            &format!(" from {}{filter}", source.text),
            source.rows,
        );
        let inner = format!("{} order by {}", block.sql, positions(outputs.len()));
        Block { sql: format!("select * from ({inner}) d"), ..block }
    }

    fn grouped(&mut self, most: usize) -> Block {
        let source = self.source(most);
        let filter = self.where_clause(&source.items);
        let columns: Vec<Col> = self.without_outer(|maker| {
            (0..*maker.rng.pick(&[0, 1, 1, 1, 2, 2, 3])).filter_map(|_| maker.any_column(&source.items)).collect()
        });
        let mut keys: Vec<(String, Ty, u64)> = Vec::new();
        for column in &columns {
            let key = self.shape(column);
            if keys.iter().all(|(text, ..)| *text != key.0) {
                keys.push(key);
            }
        }
        let mut outputs = keys.clone();
        let aggregates: Vec<_> = (0..self.rng.range(if keys.is_empty() { 1 } else { 0 }..4))
            .map(|_| self.aggregate(&source.items))
            .collect();
        outputs.extend(aggregates.iter().map(|(text, ty)| (text.clone(), *ty, 20)));
        let texts: Vec<&str> = keys.iter().map(|(text, ..)| text.as_str()).collect();
        let mut tail = format!(" from {}{filter}", source.text);
        if !keys.is_empty() {
            let sets = self.grouping(&texts);
            if sets.contains("(()")
                || sets.starts_with("rollup")
                || sets.starts_with("cube")
                || sets.starts_with("grouping")
            {
                outputs.push((format!("grouping({})", texts[0]), Ty::Int4, 2));
            }
            tail += &format!(" group by {sets}");
        }
        if self.chance(30) {
            tail += &format!(" having {}", self.having(&source, &keys));
        }
        if self.chance(10) && !keys.is_empty() {
            let order = aggregates.first().map_or(texts[0], |(text, _)| text.as_str());
            outputs.push((format!("rank() over (order by {} desc)", crate::types::plain(order)), Ty::Int8, 20));
        }
        if self.chance(20) {
            outputs.rotate_left(1);
        }
        let block = self.named("select ", &outputs, &tail, source.rows);
        // PostgreSQL 15 takes a key that is null in a grouping set for equal to what its joins make it equal to, and leaves it out of an ORDER BY:
        // the order is one of the level above.
        if keys.len() > 1 && tail.contains("grouping sets") || tail.contains("rollup (") || tail.contains("cube (") {
            return Block { sql: format!("select * from ({} offset 0) g", block.sql), ..block };
        }
        block
    }

    /// What stands behind GROUP BY.
    fn grouping(&mut self, keys: &[&str]) -> String {
        let all = keys.join(", ");
        let one = keys[0];
        match self.rng.below(12) {
            0 => format!("rollup ({all})"),
            1 => format!("cube ({all})"),
            2 => format!("grouping sets (({all}), ({one}), ())"),
            3 => format!("grouping sets ({one}, ({all}))"),
            4 if keys.len() > 1 => format!("{one}, rollup ({})", keys[1..].join(", ")),
            5 if keys.len() > 1 => format!("grouping sets (rollup ({all}), ({}))", keys[1]),
            6 => format!("distinct rollup ({all}), rollup ({one})"),
            _ => all,
        }
    }

    fn having(&mut self, source: &Source, keys: &[(String, Ty, u64)]) -> String {
        // PostgreSQL 15 turns `key = false` into `NOT key`, and does not find the key of a grouping set in it any more.
        let is_compared = keys.first().filter(|key| key.1 != Ty::Bool);
        if let Some((text, ty, spread)) = is_compared.filter(|_| self.rng.chance(1, 3)) {
            let op = self.one(&["=", "<", ">=", "<>", "is distinct from"]);
            return format!("{text} {op} {}", self.literal(*ty, *spread));
        }
        match self.rng.below(3) {
            0 => format!("count(*) {} {}", self.one(&[">", "<", "=", "<>"]), self.small(5)),
            _ => {
                let (text, ty) = self.aggregate(&source.items);
                match self.rng.below(3) {
                    0 => format!("{text} is {}null", self.one(&["", "not "])),
                    _ => format!("{text} {} {}", self.one(&["<", ">=", "<>"]), self.literal(ty, 20)),
                }
            }
        }
    }

    fn windowed(&mut self, most: usize) -> Block {
        let source = self.source(most.min(3));
        let filter = self.where_clause(&source.items);
        let mut outputs = self.outputs(&source.items, None);
        outputs.truncate(3);
        // Rows that are the same in all that is shown have no order, and two functions may number them in two: one function then.
        let most = if source.items.iter().all(|item| item.is_distinct) { 4 } else { 2 };
        for _ in 0..self.rng.range(1..most) {
            let (text, ty) = self.window(&source.items);
            outputs.push((text, ty, 20));
        }
        let block = self.named("select ", &outputs, &format!(" from {}{filter}", source.text), source.rows);
        if self.chance(25) {
            // A condition on a window's result: the first rows of each part.
            let last = block.cols.last().cloned().expect("a window is the last column");
            let test = format!("{} {} {}", last.name, self.one(&["<", "<=", "=", ">"]), self.literal(last.ty, 5));
            return Block { sql: format!("select * from ({}) w where {test}", block.sql), ..block };
        }
        block
    }

    fn set_operation(&mut self, want: Option<&[Ty]>) -> Block {
        let types: Vec<Ty> = match want {
            Some(want) => want.to_vec(),
            None => (0..self.rng.range(1..4)).map(|_| crate::types::any(&mut self.rng)).collect(),
        };
        self.depth += 1;
        let first = self.plain(Some(&types), 2);
        let mut made = first;
        for _ in 0..self.rng.range(1..3) {
            let op =
                self.one(&["union", "union all", "union all", "intersect", "intersect all", "except", "except all"]);
            let next = if self.chance(10) {
                let row = types.iter().map(|ty| self.typed(*ty)).collect::<Vec<_>>().join(", ");
                Block { sql: format!("values ({row})"), cols: Vec::new(), rows: 1 }
            } else {
                self.plain(Some(&types), 2)
            };
            made.sql = if self.chance(30) {
                format!("({}) {op} ({})", made.sql, next.sql)
            } else {
                format!("{} {op} {}", made.sql, next.sql)
            };
            made.rows += next.rows;
        }
        self.depth -= 1;
        made
    }

    /// A sub-select of a condition with columns of these types; it may name the columns of the scope.
    pub(super) fn select(&mut self, scope: &[Item], want: &[Ty]) -> String {
        self.within(scope, |maker| {
            let source = maker.source(2);
            let mut filter = maker.conditions(&source.items, 2);
            if maker.chance(55)
                && let Some(correlated) = maker.correlated(&source.items)
            {
                filter = if maker.chance(50) { correlated } else { format!("{correlated} and {filter}") };
            }
            let filter = if maker.chance(10) { String::new() } else { format!(" where {filter}") };
            let outputs = want.iter().map(|ty| match maker.column(&source.items, |other| other == *ty) {
                Some(column) if maker.chance(75) => column.name,
                _ => maker.scalar(&source.items, *ty, 1),
            });
            let outputs = outputs.collect::<Vec<_>>().join(", ");
            if want.is_empty() {
                let list = maker.one(&["", "1", "*", "null"]);
                let behind = maker.one(&["", "", "", "", " limit 1", " offset 1", " limit 0"]);
                return format!("select {list} from {}{filter}{behind}", source.text);
            }
            let head = maker.one(&["", "", "", "distinct "]);
            let select = format!("select {head}{outputs} from {}{filter}", source.text);
            match maker.rng.below(12) {
                0 => format!("{select} order by {} limit {}", positions(want.len()), maker.rng.below(5)),
                1 => format!("{select} union {}", maker.plain(Some(want), 1).sql),
                2 => format!("{select} except {}", maker.plain(Some(want), 1).sql),
                3 => format!("{select} offset 0"),
                _ => select,
            }
        })
    }

    /// A condition between a column of the scope and one of a query around.
    fn correlated(&mut self, items: &[Item]) -> Option<String> {
        if self.outer.is_empty() {
            return None;
        }
        let outer = self.rng.pick(&self.outer).clone();
        let own: Vec<&Col> =
            items.iter().flat_map(|item| &item.cols).filter(|c| c.ty.family() == outer.ty.family()).collect();
        if own.is_empty() {
            return None;
        }
        let own = (*self.rng.pick(&own)).clone();
        let op = self.one(&["=", "=", "=", "=", "<", ">=", "<>", "is not distinct from"]);
        Some(format!("{} {op} {}", own.name, outer.name))
    }

    /// A sub-select that gives one value, in brackets; none where sub-selects are deep enough.
    pub(super) fn scalar_select(&mut self, scope: &[Item], ty: Ty) -> Option<String> {
        if self.depth >= 2 || self.rows_max() / self.estimate.max(1) < 40 {
            return None;
        }
        Some(self.within(scope, |maker| {
            let source = maker.source(2);
            let mut filter = maker.conditions(&source.items, 2);
            if maker.chance(60)
                && let Some(correlated) = maker.correlated(&source.items)
            {
                filter = if maker.chance(60) { correlated } else { format!("{correlated} and {filter}") };
            }
            let value = maker.without_outer(|maker| maker.scalar(&source.items, ty, 1));
            let rest = format!("from {} where {filter}", source.text);
            match maker.rng.below(4) {
                0 if ty == Ty::Int8 => format!("(select count(*) {rest})"),
                0 if ty == Ty::Num => format!(
                    "(select sum({}) {rest})",
                    maker.without_outer(|maker| maker.scalar(&source.items, Ty::Num, 0))
                ),
                0 | 1 if ty.has_least() && ty != Ty::Varchar => {
                    format!("(select {}({value}) {rest})", maker.one(&["min", "max"]))
                }
                _ => format!("(select {value} {rest} order by 1{} limit 1)", maker.one(&["", " desc", " nulls first"])),
            }
        }))
    }

    /// WITH and its queries, which later ones and the statement may name; the empty text at times.
    pub(super) fn with(&mut self) -> String {
        if !self.chance(22) {
            return String::new();
        }
        let mut parts = Vec::new();
        let mut recursive = false;
        for _ in 0..self.rng.range(1..3) {
            let name = format!("w{}", self.with.len() + 1);
            self.depth += 1;
            let (text, block) = if self.chance(25) {
                recursive = true;
                self.recursive(&name)
            } else {
                let block = self.block(None);
                let kept = self.one(&["", "", "materialized ", "not materialized "]);
                (format!("{name} as {kept}({})", block.sql), block)
            };
            self.depth -= 1;
            parts.push(text);
            let key = block.cols.iter().map(|col| col.name.clone()).collect();
            self.with.push(Item {
                alias: name,
                cols: block.cols,
                key,
                rows: block.rows,
                table: None,
                is_distinct: false,
            });
        }
        format!("with {}{} ", if recursive { "recursive " } else { "" }, parts.join(", "))
    }

    /// A query that follows equal values from row to row, a few steps far.
    fn recursive(&mut self, name: &str) -> (String, Block) {
        let alias = self.alias();
        let base = self.table_item(&alias);
        let from = self.rng.pick(&base.items[0].cols).clone();
        let alias = self.alias();
        let next = self.table_item(&alias);
        self.estimate = 1;
        let fits: Vec<Col> = next.items[0].cols.iter().filter(|c| c.ty == from.ty).cloned().collect();
        let (to, on) = match fits.is_empty() {
            true => ("r.x".to_owned(), "r.n < 2".to_owned()),
            false => {
                let (a, b) = (self.rng.pick(&fits).name.clone(), self.rng.pick(&fits).name.clone());
                (a, format!("{b} = r.x"))
            }
        };
        let all = self.one(&["", "", " all"]);
        // Without ALL the rows are few, for they are all different.
        let steps = if all.is_empty() { 3 } else { 1 };
        let filter = self.condition(&base.items, 1);
        // Without a length: both sides have one type.
        let cast = from.ty.name();
        let first = format!("select 0, {}::{cast} from {} where {filter}", from.name, base.text);
        let second = format!("select r.n + 1, {to}::{cast} from r_ join {} on {on} where r.n < {steps}", next.text)
            .replace("r_ ", &format!("{name} r "));
        let rows = base.rows * 3;
        let cols = vec![
            Col { name: "n".to_owned(), ty: Ty::Int4, spread: steps + 1 },
            Col { name: "x".to_owned(), ty: from.ty, spread: from.spread },
        ];
        (format!("{name}(n, x) as ({first} union{all} {second})"), Block { sql: String::new(), cols, rows })
    }
}
