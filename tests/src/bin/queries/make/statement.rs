//! One statement, and how it is judged.

use super::{Item, Maker, positions};
use crate::types::{self, Ty};

/// How a statement is judged.
#[derive(Clone, Debug)]
pub enum Form {
    /// Every server and every setting gives the same rows; in the order of these columns, counted from 0.
    Query(Vec<usize>),
    /// These statements give the same rows.
    Same(Vec<String>),
    /// A change, taken back; what it returns, and the rows of these tables afterwards.
    Change {
        tables: Vec<String>,
        /// Whether it means something without keys and foreign keys.
        bare: bool,
    },
}

/// A statement with marks at its literals.
#[derive(Clone, Debug)]
pub struct Statement {
    pub sql: String,
    pub form: Form,
}

impl Maker<'_> {
    /// One statement.
    pub fn statement(mut self) -> Statement {
        match self.rng.below(100) {
            0..10 => self.split(),
            10..19 => self.aggregated(),
            19..33 => self.change(),
            33..48 => self.along_index(),
            _ => self.query(),
        }
    }

    fn query(&mut self) -> Statement {
        let with = self.with();
        let block = self.block(None);
        let (order, tail) = self.order(block.cols.len());
        Statement { sql: format!("{with}{}{tail}", block.sql), form: Form::Query(order) }
    }

    /// An ORDER BY, by all columns where a limit follows.
    fn order(&mut self, count: usize) -> (Vec<usize>, String) {
        if self.chance(45) {
            return (Vec::new(), String::new());
        }
        let mut order: Vec<usize> = (0..count).collect();
        self.rng.shuffle(&mut order);
        let limited = self.chance(45);
        if !limited && self.chance(50) {
            order.truncate(1);
        }
        let terms = order
            .iter()
            .map(|n| format!("{}{}", n + 1, self.one(&["", "", " desc", " nulls first", " desc nulls last"])))
            .collect::<Vec<_>>()
            .join(", ");
        let limit = match self.rng.below(8) {
            _ if !limited => String::new(),
            0 => format!(" fetch first {} rows with ties", self.rng.range(1..6)),
            1 => format!(" offset {}", self.small(9)),
            2 => format!(" limit {} offset {}", self.small(12), self.small(6)),
            _ => format!(" limit {}", self.small(12)),
        };
        (order, format!(" order by {terms}{limit}"))
    }

    /// A query of one table by one of its indexes: conditions on its leading keys, its order, a limit.
    fn along_index(&mut self) -> Statement {
        let alias = self.alias();
        let source = self.table_item(&alias);
        self.estimate = source.rows;
        let item = &source.items[0];
        let table = &self.schema.tables[item.table.expect("it is a table")];
        let filter = match self.indexed(&source.items) {
            Some(filter) if self.chance(85) => filter,
            _ => self.conditions(&source.items, 2),
        };
        let more = if self.chance(25) { format!(" and {}", self.condition(&source.items, 1)) } else { String::new() };
        let index = if table.indexes.is_empty() { None } else { Some(self.rng.pick(&table.indexes).clone()) };
        let mut outputs: Vec<(String, Ty)> = index
            .iter()
            .flat_map(|i| &i.keys)
            .map(|(key, ty, _)| (key.replace('@', &format!("{alias}.")), *ty))
            .collect();
        if self.chance(60) {
            outputs.extend(item.cols.iter().map(|col| (col.name.clone(), col.ty)));
        }
        if outputs.is_empty() {
            outputs.push((item.cols[0].name.clone(), item.cols[0].ty));
        }
        if self.chance(20) {
            let (name, ty) = self.rng.pick(&outputs).clone();
            let least = if ty.has_least() {
                format!("min({name}), max({name}), count({name})")
            } else {
                format!("count({name})")
            };
            return Statement {
                sql: format!("select {least}, count(*) from {} where {filter}{more}", source.text),
                form: Form::Query(Vec::new()),
            };
        }
        let down = self.one(&["", "", " desc", " nulls first", " desc nulls last"]);
        let terms = (1..=outputs.len()).map(|n| format!("{n}{down}")).collect::<Vec<_>>().join(", ");
        let limit = if self.chance(40) { format!(" limit {}", self.small(10)) } else { String::new() };
        let distinct = self.one(&["", "", "", "distinct ", "distinct on (1) "]);
        let list = outputs.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
        let sql = format!("select {distinct}{list} from {} where {filter}{more} order by {terms}{limit}", source.text);
        Statement { sql, form: Form::Query((0..outputs.len()).collect()) }
    }

    /// A condition split into true, false and null; of WHERE, or of HAVING.
    fn split(&mut self) -> Statement {
        let source = self.source(3);
        let condition = types::plain(&self.condition(&source.items, 2));
        let shown = self.columns(&source.items, 4);
        if self.chance(25) {
            let key = types::plain(&self.shape(&shown[0]).0);
            let (aggregate, ty) = self.aggregate(&source.items);
            let having = format!("{aggregate} {} {}", self.one(&["<", ">=", "="]), self.literal(ty, 20));
            let (aggregate, having) = (types::plain(&aggregate), types::plain(&having));
            let all = types::plain(&format!("select {key}, {aggregate} from {} group by 1", source.text));
            let parts = format!(
                "{all} having {having} union all {all} having not ({having}) union all {all} having ({having}) is null"
            );
            return Statement { sql: all.clone(), form: Form::Same(vec![all, parts]) };
        }
        let list = shown.iter().map(|c| c.name.as_str()).collect::<Vec<_>>().join(", ");
        let all = types::plain(&format!("select {list} from {}", source.text));
        let parts = format!(
            "{all} where {condition} union all {all} where not ({condition}) union all {all} where ({condition}) is null"
        );
        Statement { sql: all.clone(), form: Form::Same(vec![all, parts]) }
    }

    fn columns(&mut self, items: &[Item], most: u64) -> Vec<super::Col> {
        let count = self.rng.range(1..most + 1);
        self.without_outer(|maker| (0..count).filter_map(|_| maker.any_column(items)).collect())
    }

    /// Aggregates against those of the same rows, which an OFFSET keeps apart, and against a condition that is counted row by row.
    fn aggregated(&mut self) -> Statement {
        let source = self.source(3);
        let filter = if self.chance(15) { "true".to_owned() } else { self.conditions(&source.items, 2) };
        let columns = self.columns(&source.items, 3);
        let over = |names: &[String], columns: &[super::Col], test: &str| {
            let mut list = vec![format!("count(*){test}")];
            for (name, column) in names.iter().zip(columns) {
                list.push(format!("count({name}){test}"));
                list.push(format!("count(distinct {name}){test}"));
                if column.ty.has_least() {
                    list.push(format!("min({name}){test}, max({name}){test}"));
                }
                if column.ty.is_int() || column.ty == Ty::Num {
                    list.push(format!("sum({name}){test}"));
                }
            }
            list.join(", ")
        };
        let names: Vec<String> = columns.iter().map(|c| c.name.clone()).collect();
        let inner: Vec<String> = (1..=columns.len()).map(|n| format!("z.c{n}")).collect();
        let group = self.chance(40) && !columns.is_empty();
        let (key, outer_key, by) = if group {
            (format!("{}, ", names[0]), "z.c1, ".to_owned(), " group by 1")
        } else {
            (String::new(), String::new(), "")
        };
        let shown =
            names.iter().enumerate().map(|(n, name)| format!("{name} as c{}", n + 1)).collect::<Vec<_>>().join(", ");
        let direct = format!("select {key}{} from {} where {filter}{by}", over(&names, &columns, ""), source.text);
        let apart = format!(
            "select {outer_key}{} from (select {shown} from {} where {filter} offset 0) z{by}",
            over(&inner, &columns, ""),
            source.text
        );
        let mut all = vec![types::plain(&direct), types::plain(&apart)];
        if !group {
            let counted =
                format!("select {} from {}", over(&names, &columns, &format!(" filter (where {filter})")), source.text);
            all.push(types::plain(&counted));
        }
        Statement { sql: direct, form: Form::Same(all) }
    }
}

/// The first columns, for an ORDER BY.
pub(super) fn by_all(count: usize) -> String {
    format!(" order by {}", positions(count))
}
