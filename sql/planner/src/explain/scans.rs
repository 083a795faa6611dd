//! EXPLAIN of the scan of a table: how its rows are found, and by which conditions.

use super::render::{Shown, Value};
use super::words::{Names, Words};
use super::{Explainer, skip, text};
use crate::facts::is_said_by;
use crate::indexes::expression_at;
use crate::plan::{Access, KeyValues, Range, RangePart, Ranges, RowEnd, Scan, TableSlot, conjunction, split};
use crate::walk;
use clearway_storage::btree::Direction;
use clearway_values::expr::operators::Op;
use clearway_values::expr::{Bound, BoundKind};

impl Explainer<'_> {
    /// A scan.
    pub(super) fn scan(&self, s: &Scan, levels: &[Names]) -> Shown {
        let table = &s.table;
        let mut words = self.words(levels);
        if !self.verbose {
            words.own = table.base..table.key_slot() + 1;
        }
        let index_name = |i: Option<usize>| match i {
            Some(i) => table.shape.indexes[i].name.clone(),
            None => table.shape.primary.as_ref().map_or_else(|| table.shape.name.clone(), |p| p.1.clone()),
        };
        let place = match &s.access {
            Access::Full => s.jump.map(|_| vec![None]),
            Access::Tids(_) => None,
            Access::Keys(_) | Access::KeyRange(_) => Some(vec![None]),
            Access::Index(i, _) => Some(vec![Some(*i)]),
            Access::Ranges(r) => Some(r.all_parts().map(|p| p.index).collect::<Vec<_>>()),
        };
        let mut identity = Vec::new();
        let mut indexes: Vec<String> = place.iter().flatten().map(|i| index_name(*i)).collect();
        indexes.dedup();
        let backward = s.order == Some(Direction::Backward);
        let by_tid = matches!(s.access, Access::Tids(_));
        let (kind, head) = if indexes.is_empty() {
            let kind = if by_tid { "Tid Scan" } else { "Seq Scan" };
            (kind, format!("{kind} on {}", self.shown_table(table)))
        } else {
            identity.push(("Scan Direction", text(if backward { "Backward" } else { "Forward" })));
            identity.push(("Index Name", text(indexes.join(", "))));
            let way = if backward { " Backward" } else { "" };
            let kind = if s.entries.is_some() || s.jump.is_some() { "Index Only Scan" } else { "Index Scan" };
            (kind, format!("{kind}{way} using {} on {}", indexes.join(", "), self.shown_table(table)))
        };
        identity.extend(self.identity(table));
        let mut details = Vec::new();
        let condition = self.condition(table, &s.access, &words);
        if !condition.is_empty() {
            details.push((if by_tid { "TID Cond" } else { "Index Cond" }, text(condition)));
        }
        skip::note(s, &words, &mut details);
        // An index leaves its conditions in the filter, where they stand for snapshots that are older than it.
        let guaranteed = |e: &Bound| match &s.access {
            Access::Index(i, r) => is_said_by(e, table, &table.shape.indexes[*i].columns, r),
            Access::Ranges(r) => r.beside.iter().flat_map(|beside| &beside.says).any(|said| walk::same(said, e)),
            _ => false,
        };
        let rest: Vec<Bound> = s.filter.iter().cloned().flat_map(split).filter(|e| !guaranteed(e)).collect();
        if let Some(filter) = conjunction(rest) {
            details.push(("Filter", text(words.expr(&filter))));
        }
        let own = Words { qualified: self.has_several_tables(levels), ..self.words(levels) };
        let output = if self.verbose { self.columns_read(s, &own) } else { Vec::new() };
        Shown { kind: kind.to_owned(), head, identity, output, details, ..Shown::default() }
    }

    /// What an access looks for.
    fn condition(&self, table: &TableSlot, access: &Access, words: &Words<'_>) -> String {
        let name = |c: &usize| {
            let Some(column) = table.shape.columns.get(*c) else {
                return expression_at(table, *c).map_or_else(String::new, |e| words.expr(&e));
            };
            let column = &column.name;
            if self.verbose { format!("{}.{column}", table.name) } else { column.clone() }
        };
        let all = |list: Vec<String>| if list.len() > 1 { format!("({})", list.join(" AND ")) } else { list.concat() };
        let range = |r: &Range, columns: &[usize]| {
            let mut list: Vec<String> =
                r.equal.iter().zip(columns).map(|(e, c)| format!("({} = {})", name(c), words.expr(e))).collect();
            if let Some(next) = columns.get(r.equal.len()) {
                let low = r.low.iter().map(|(e, with)| (e, if *with { ">=" } else { ">" }));
                let high = r.high.iter().map(|(e, with)| (e, if *with { "<=" } else { "<" }));
                list.extend(low.chain(high).map(|(e, op)| format!("({} {op} {})", name(next), words.expr(e))));
            }
            all(list)
        };
        match access {
            Access::Full => String::new(),
            Access::Keys(keys) => match keys.as_slice() {
                [key] => all(key
                    .iter()
                    .zip(&table.shape.key)
                    .map(|(e, c)| format!("({} = {})", name(c), words.expr(e)))
                    .collect()),
                many => {
                    let list: Vec<String> = many.iter().map(|key| words.list(key)).collect();
                    let column = table.shape.key.first().map_or_else(String::new, name);
                    format!("({column} = ANY ('{{{}}}'))", list.join(","))
                }
            },
            Access::KeyRange(r) => range(r, &table.shape.key),
            Access::Index(i, r) => range(r, &table.shape.indexes[*i].columns),
            Access::Ranges(ranges) => self.ranges(table, ranges, words, &name),
            Access::Tids(tids) => {
                let ctid = if self.verbose { format!("{}.ctid", table.name) } else { "ctid".to_owned() };
                values_shown(tids, &ctid, words).unwrap_or_default()
            }
        }
    }

    fn ranges(&self, table: &TableSlot, ranges: &Ranges, words: &Words<'_>, name: &dyn Fn(&usize) -> String) -> String {
        let part = |p: &RangePart| {
            let columns: &[usize] = p.index.map_or(&table.shape.key, |i| &table.shape.indexes[i].columns);
            let value = |(values, c): (&KeyValues, &usize)| values_shown(values, &name(c), words);
            let mut list: Vec<String> = p.columns.iter().zip(columns).filter_map(value).collect();
            if let Some(next) = columns.get(p.columns.len()) {
                let low = p.low.iter().map(|(e, with)| (e, if *with { ">=" } else { ">" }));
                let high = p.high.iter().map(|(e, with)| (e, if *with { "<=" } else { "<" }));
                list.extend(low.chain(high).map(|(e, op)| format!("({} {op} {})", name(next), words.expr(e))));
                let begins = |(op, e): &(Op, Bound)| format!("({} {} {})", name(next), op.name(), words.expr(e));
                list.extend(p.pattern.iter().map(begins));
            }
            let row = |end: &RowEnd, op: &str| {
                let names: Vec<String> =
                    columns.iter().skip(p.columns.len()).take(end.values.len()).map(name).collect();
                let op = if end.inclusive { format!("{op}=") } else { op.to_owned() };
                match (&names[..], &end.values[..]) {
                    ([name], [value]) => format!("({name} {op} {})", words.expr(value)),
                    _ => format!("(ROW({}) {op} ROW({}))", names.join(", "), words.list(&end.values)),
                }
            };
            list.extend(p.row_low.iter().map(|end| row(end, ">")).chain(p.row_high.iter().map(|end| row(end, "<"))));
            if list.len() > 1 { format!("({})", list.join(" AND ")) } else { list.concat() }
        };
        let parts: Vec<String> = ranges.parts.iter().map(part).collect();
        let own = if parts.len() > 1 { format!("({})", parts.join(" OR ")) } else { parts.concat() };
        match &ranges.beside {
            Some(beside) => format!("({own} AND {})", part(&beside.part)),
            None => own,
        }
    }
}

/// The condition that a column has one of these values; none: it may have any.
fn values_shown(values: &KeyValues, column: &str, words: &Words<'_>) -> Option<String> {
    Some(match values {
        KeyValues::One(e) => format!("({column} = {})", words.expr(e)),
        KeyValues::List(list) => format!("({column} = ANY (ARRAY[{}]))", words.list(list)),
        KeyValues::Array(e) => format!("({column} = ANY ({}))", words.expr(e)),
        KeyValues::Null => format!("({column} IS NULL)"),
        KeyValues::Each(_) => return None,
    })
}

impl Explainer<'_> {
    /// The name of a table, for VERBOSE with its schema, and its alias.
    pub(super) fn shown_table(&self, table: &TableSlot) -> String {
        let name = match self.schema_of(table) {
            Some(schema) => format!("{schema}.{}", table.shape.name),
            None => table.shape.name.clone(),
        };
        if table.name == table.shape.name { name } else { format!("{name} {}", table.name) }
    }

    /// The properties that name a table.
    pub(super) fn identity(&self, table: &TableSlot) -> Vec<(&'static str, Value)> {
        let mut out = vec![("Relation Name", text(&table.shape.name))];
        out.extend(self.schema_of(table).map(|schema| ("Schema", text(schema))));
        out.push(("Alias", text(&table.name)));
        out
    }

    /// The bytes of a row of a scan.
    pub(super) fn width_of_scan(&self, s: &Scan) -> u32 {
        let width = |column: usize| self.figures.width(&s.table, column);
        let bytes: f64 = match &s.wanted {
            Some(wanted) => wanted.wanted().iter().map(|column| width(*column)).sum(),
            None => (0..s.table.types.len()).map(width).sum(),
        };
        bytes as u32
    }

    fn schema_of(&self, table: &TableSlot) -> Option<String> {
        if self.verbose { (self.schema)(table.shape.oid) } else { None }
    }

    /// The columns that a scan reads.
    fn columns_read(&self, s: &Scan, words: &Words<'_>) -> Vec<String> {
        let shown = |column: usize| {
            let kind = BoundKind::Column { index: s.table.base + s.place(column), level: 0 };
            let ty = *s.table.types.get(column)?;
            Some(words.expr(&Bound { kind, ty, pos: Default::default() }))
        };
        match &s.wanted {
            Some(wanted) => wanted.wanted().iter().filter_map(|column| shown(*column)).collect(),
            None => (0..s.table.types.len()).filter_map(shown).collect(),
        }
    }
}
