//! A random schema: tables with rows, keys, constraints and indexes, and views.
//!
//! # Structure
//! ```text
//! Schema   tables, views, the time zone
//! Table    columns, keys, foreign keys, rows; indexes with their expressions and conditions
//! ```
//! Expressions and conditions of indexes name columns as `@a`: a query puts its alias in the place of `@` (see [`Index`]).
//!
//! # Not here
//! Partitioned tables and inheritance, which Clearway refuses (docs/compat.md).

use crate::types::{self, LABELS, Ty};
use clearway_base::testkit::Rng;
use std::collections::HashSet;

#[derive(Clone, Debug)]
pub struct Column {
    pub name: String,
    pub ty: Ty,
    /// The type as it is declared.
    pub declared: String,
    pub not_null: bool,
    /// About how many different values there are.
    pub spread: u64,
    /// The expression of a generated column.
    pub generated: Option<String>,
    /// A part of a primary key, a unique constraint or a foreign key.
    pub keyed: bool,
    null_percent: u64,
    extreme_percent: u64,
    skewed: bool,
    wide: bool,
}

/// An index that is no constraint.
#[derive(Clone, Debug)]
pub struct Index {
    /// Its keys, `@` before each column.
    pub keys: Vec<(String, Ty, u64)>,
    order: Vec<&'static str>,
    include: Vec<String>,
    /// Its condition, `@` before each column.
    pub condition: Option<String>,
}

#[derive(Clone, Debug)]
pub struct Foreign {
    pub column: usize,
    pub parent: usize,
    pub action: &'static str,
}

#[derive(Clone, Debug)]
pub struct Table {
    pub name: String,
    pub columns: Vec<Column>,
    pub primary: Vec<usize>,
    pub unique: Vec<Vec<usize>>,
    pub foreign: Option<Foreign>,
    pub indexes: Vec<Index>,
    pub checks: Vec<String>,
    pub rows: Vec<Vec<String>>,
}

#[derive(Clone, Debug)]
pub struct View {
    pub name: String,
    pub columns: Vec<(String, Ty, u64)>,
    pub rows: u64,
    pub sql: String,
}

#[derive(Clone, Debug)]
pub struct Schema {
    pub tables: Vec<Table>,
    pub views: Vec<View>,
    pub zone: &'static str,
    /// Whether the tables without secondary indexes have their keys.
    pub bare_has_keys: bool,
    /// Whether the tables are so large that their groups, hash tables and sorts exceed 64 kB.
    pub is_large: bool,
}

impl Schema {
    /// The tables of a schema; its views are made by the generator of queries.
    pub fn random(rng: &mut Rng) -> Schema {
        let mut tables: Vec<Table> = Vec::new();
        let is_large = rng.chance(1, 6);
        for number in 0..rng.range(2..6) {
            let table = Table::random(rng, number, &tables, is_large);
            tables.push(table);
        }
        Schema {
            tables,
            views: Vec::new(),
            zone: ["UTC", "UTC", "Europe/Berlin", "America/New_York"][rng.index(4)],
            bare_has_keys: rng.chance(1, 2),
            is_large,
        }
    }

    /// The statements that make it, in the schema of that name; without secondary indexes, or even without keys.
    pub fn statements(&self, schema: &str, indexes: bool) -> Vec<String> {
        let keys = indexes || self.bare_has_keys;
        let mut all = vec![
            "begin".to_owned(),
            format!("drop schema if exists {schema} cascade"),
            format!("create schema {schema}"),
        ];
        all.push(format!("create type mood as enum ('{}')", LABELS.join("', '")));
        for table in &self.tables {
            all.push(table.definition(&self.tables, keys));
            all.extend(table.rows.chunks(100).map(|rows| table.insertion(rows)));
        }
        if indexes {
            all.extend(
                self.tables.iter().flat_map(|table| table.indexes.iter().map(|index| index.definition(&table.name))),
            );
        }
        all.extend(self.views.iter().map(|view| format!("create view {} as {}", view.name, view.sql)));
        all.push("commit".to_owned());
        all
    }
}

impl Schema {
    /// What makes the tables and views that a statement names.
    pub fn definitions(&self, statement: &str) -> Vec<String> {
        let mut text = statement.to_owned();
        let mut all = Vec::new();
        for view in self.views.iter().filter(|view| names(statement, &view.name)) {
            all.push(format!("create view {} as {}", view.name, view.sql));
            text += &view.sql;
        }
        for table in self.tables.iter().filter(|table| names(&text, &table.name)) {
            all.push(table.definition(&self.tables, true));
            all.extend(table.indexes.iter().map(|index| index.definition(&table.name)));
        }
        all
    }
}

/// Whether the text has the name as a word.
fn names(text: &str, name: &str) -> bool {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').any(|word| word == name)
}

fn row_count(rng: &mut Rng, is_large: bool) -> u64 {
    match rng.below(100) {
        _ if is_large => rng.range(150..600),
        0..6 => 0,
        6..18 => rng.range(1..6),
        18..55 => rng.range(6..30),
        55..88 => rng.range(30..90),
        _ => rng.range(90..210),
    }
}

impl Table {
    fn random(rng: &mut Rng, number: u64, before: &[Table], is_large: bool) -> Table {
        let mut table = Table {
            name: format!("t{number}"),
            columns: Vec::new(),
            primary: Vec::new(),
            unique: Vec::new(),
            foreign: None,
            indexes: Vec::new(),
            checks: Vec::new(),
            rows: Vec::new(),
        };
        table.add_key(rng);
        for n in 0..rng.range(2..8) {
            let column = Column::random(rng, char::from(b'a' + n as u8).to_string(), is_large);
            table.columns.push(column);
        }
        table.add_foreign(rng, before);
        table.add_unique(rng);
        table.add_generated(rng);
        table.add_checks(rng);
        for _ in 0..rng.range(1..6) {
            let index = Index::random(rng, &table);
            table.indexes.push(index);
        }
        table.fill(rng, before, is_large);
        table
    }

    /// A primary key of one column, of two, or none; an ordinary column `id` then.
    fn add_key(&mut self, rng: &mut Rng) {
        let first = *rng.pick(&[Ty::Int4, Ty::Int4, Ty::Int4, Ty::Int8, Ty::Int2, Ty::Text, Ty::Uuid, Ty::Date]);
        let mut id = Column::plain("id", first, 300);
        if rng.chance(1, 4) {
            id.spread = rng.range(5..60);
            self.columns.push(id);
            return;
        }
        id.not_null = true;
        id.keyed = true;
        self.primary.push(0);
        if rng.chance(1, 3) {
            id.spread = rng.range(4..40);
            let second =
                *rng.pick(&[Ty::Int4, Ty::Int4, Ty::Int2, Ty::Text, Ty::Date, Ty::Ts, Ty::Num, Ty::Enum, Ty::Char]);
            let mut k = Column::plain("k", second, 60);
            (k.not_null, k.keyed) = (true, true);
            self.columns.push(k);
            self.primary.push(1);
        }
        self.columns.insert(0, id);
        // The second column may lead the key.
        if self.primary.len() == 2 && rng.chance(1, 3) {
            self.primary.reverse();
        }
    }

    fn add_foreign(&mut self, rng: &mut Rng, before: &[Table]) {
        let fit: Vec<usize> =
            (0..before.len()).filter(|n| before[*n].primary.len() == 1 && !before[*n].rows.is_empty()).collect();
        if fit.is_empty() || rng.chance(1, 3) {
            return;
        }
        let parent = *rng.pick(&fit);
        let mut column = Column::plain("o", before[parent].columns[0].ty, before[parent].rows.len() as u64);
        (column.keyed, column.null_percent) = (true, *rng.pick(&[0, 10, 50]));
        self.columns.push(column);
        let action = *rng.pick(&["", "", " on delete cascade", " on delete set null", " on update cascade"]);
        self.foreign = Some(Foreign { column: self.columns.len() - 1, parent, action });
    }

    fn add_unique(&mut self, rng: &mut Rng) {
        if rng.chance(1, 2) {
            return;
        }
        let free: Vec<usize> = (0..self.columns.len())
            .filter(|n| !self.columns[*n].keyed && !matches!(self.columns[*n].ty, Ty::Bool | Ty::Jsonb))
            .collect();
        if free.is_empty() {
            return;
        }
        let mut columns = vec![*rng.pick(&free)];
        let second = *rng.pick(&free);
        if rng.chance(1, 2) && second != columns[0] {
            columns.push(second);
        }
        for column in &columns {
            let column = &mut self.columns[*column];
            (column.keyed, column.spread, column.skewed, column.wide) = (true, column.spread.max(200), false, false);
        }
        self.unique.push(columns);
    }

    fn add_generated(&mut self, rng: &mut Rng) {
        let fit: Vec<usize> = (0..self.columns.len())
            .filter(|n| matches!(self.columns[*n].ty, Ty::Int2 | Ty::Int4 | Ty::Text | Ty::Date))
            .collect();
        if fit.is_empty() || rng.chance(2, 3) {
            return;
        }
        let of = &self.columns[*rng.pick(&fit)];
        let (ty, text) = match of.ty {
            Ty::Text => (Ty::Text, format!("lower({0}) || coalesce({0}, '-')", of.name)),
            Ty::Date => (Ty::Bool, format!("{} > date '2020-02-02'", of.name)),
            _ => (Ty::Int8, format!("{}::bigint * 2 + 1", of.name)),
        };
        let mut column = Column::plain("x", ty, of.spread);
        column.generated = Some(text);
        self.columns.push(column);
    }

    /// Conditions that all rows fulfil, and some changes do not.
    fn add_checks(&mut self, rng: &mut Rng) {
        for column in self.columns.iter().filter(|c| c.extreme_percent == 0 && c.generated.is_none()) {
            if !rng.chance(1, 8) {
                continue;
            }
            match column.ty {
                Ty::Int2 | Ty::Int4 | Ty::Int8 | Ty::Num => self.checks.push(format!("{} < 7777", column.name)),
                Ty::Text => self.checks.push(format!("length({}) < 4000", column.name)),
                Ty::Date => self.checks.push(format!("{0} > '1990-01-01' or {0} is null", column.name)),
                _ => {}
            }
        }
    }

    fn fill(&mut self, rng: &mut Rng, before: &[Table], is_large: bool) {
        let keys: Vec<Vec<usize>> =
            self.unique.iter().cloned().chain([self.primary.clone()]).filter(|k| !k.is_empty()).collect();
        let mut seen: Vec<HashSet<Vec<String>>> = vec![HashSet::new(); keys.len()];
        for _ in 0..row_count(rng, is_large) {
            let mut row: Vec<String> = self.columns.iter().map(|column| column.value(rng)).collect();
            if let Some(foreign) = self.foreign.as_ref().filter(|f| row[f.column] != "null") {
                row[foreign.column] = rng.pick(&before[foreign.parent].rows)[0].clone();
            }
            let part =
                |key: &Vec<usize>| key.iter().map(|n| key_form(self.columns[*n].ty, &row[*n])).collect::<Vec<_>>();
            let clash = keys.iter().zip(&seen).any(|(key, seen)| {
                let part = part(key);
                part.iter().all(|value| value != "null") && seen.contains(&part)
            });
            if !clash {
                for (key, seen) in keys.iter().zip(&mut seen) {
                    seen.insert(part(key));
                }
                self.rows.push(row);
            }
        }
    }

    fn definition(&self, tables: &[Table], keys: bool) -> String {
        let mut parts: Vec<String> = self.columns.iter().map(Column::definition).collect();
        let names =
            |columns: &[usize]| columns.iter().map(|n| self.columns[*n].name.as_str()).collect::<Vec<_>>().join(", ");
        parts.extend(self.checks.iter().map(|check| format!("check ({check})")));
        if keys {
            if !self.primary.is_empty() {
                parts.push(format!("primary key ({})", names(&self.primary)));
            }
            parts.extend(self.unique.iter().map(|columns| format!("unique ({})", names(columns))));
            if let Some(foreign) = &self.foreign {
                parts.push(format!(
                    "foreign key ({}) references {}{}",
                    names(&[foreign.column]),
                    tables[foreign.parent].name,
                    foreign.action
                ));
            }
        }
        format!("create table {} ({})", self.name, parts.join(", "))
    }

    fn insertion(&self, rows: &[Vec<String>]) -> String {
        let own: Vec<usize> = (0..self.columns.len()).filter(|n| self.columns[*n].generated.is_none()).collect();
        let names = own.iter().map(|n| self.columns[*n].name.as_str()).collect::<Vec<_>>().join(", ");
        let rows =
            rows.iter().map(|row| format!("({})", own.iter().map(|n| row[*n].as_str()).collect::<Vec<_>>().join(", ")));
        format!("insert into {} ({names}) values {}", self.name, rows.collect::<Vec<_>>().join(", "))
    }
}

/// Literals of one value have one form as keys.
fn key_form(ty: Ty, literal: &str) -> String {
    match ty {
        // '1 mon' and '30 days', '24 hours' and '1 day' are equal.
        Ty::Interval => {
            let inner = literal.trim_matches('\'');
            let minutes = |unit: &str| match unit {
                "mons" => 43_200,
                "days" => 1440,
                "hours" => 60,
                _ => 1,
            };
            inner
                .split_once(' ')
                .and_then(|(n, unit)| Some((n.parse::<i64>().ok()? * minutes(unit)).to_string()))
                .unwrap_or("0".to_owned())
        }
        Ty::Char | Ty::Varchar => literal.trim_end_matches([' ', '\'']).to_owned(),
        _ => literal.to_owned(),
    }
}

impl Column {
    fn plain(name: &str, ty: Ty, spread: u64) -> Column {
        Column {
            name: name.to_owned(),
            ty,
            declared: ty.name().to_owned(),
            not_null: false,
            spread,
            generated: None,
            keyed: false,
            null_percent: 0,
            extreme_percent: 0,
            skewed: false,
            wide: false,
        }
    }

    fn random(rng: &mut Rng, name: String, is_large: bool) -> Column {
        let ty = types::any(rng);
        let spread = *rng.pick(&[2, 4, 8, 8, 20, 20, 60, 300]);
        let mut column = Column::plain(&name, ty, spread);
        column.declared = match ty {
            Ty::Num => (*rng.pick(&["numeric(10,2)", "numeric(6,2)", "numeric(12,4)", "numeric"])).to_owned(),
            Ty::Varchar => (*rng.pick(&["varchar", "varchar(20)"])).to_owned(),
            Ty::Char => (*rng.pick(&["char(4)", "char(6)"])).to_owned(),
            _ => ty.name().to_owned(),
        };
        column.not_null = rng.chance(1, 5);
        column.null_percent = if column.not_null { 0 } else { *rng.pick(&[0, 5, 15, 15, 50, 95]) };
        column.extreme_percent = *rng.pick(&[0, 0, 0, 3]);
        column.skewed = rng.chance(1, 3);
        column.wide = ty == Ty::Text && rng.chance(1, if is_large { 2 } else { 8 });
        column
    }

    fn value(&self, rng: &mut Rng) -> String {
        if rng.below(100) < self.null_percent {
            return "null".to_owned();
        }
        if rng.below(100) < self.extreme_percent {
            return types::extreme(rng, self.ty);
        }
        let mut n = rng.below(self.spread);
        if self.skewed {
            n = n.min(rng.below(self.spread)).min(rng.below(self.spread));
        }
        let value = types::nth(rng, self.ty, n);
        // Two of them fit into a key of 1024 bytes, the most that Clearway takes.
        if self.wide { format!("repeat({value}, {})", 30 + n % 5 * 10) } else { value }
    }

    fn definition(&self) -> String {
        let mut text = format!("{} {}", self.name, self.declared);
        if let Some(generated) = &self.generated {
            text += &format!(" generated always as ({generated}) stored");
        }
        if self.not_null {
            text += " not null";
        }
        text
    }
}

impl Index {
    fn random(rng: &mut Rng, table: &Table) -> Index {
        let mut index = Index { keys: Vec::new(), order: Vec::new(), include: Vec::new(), condition: None };
        for _ in 0..*rng.pick(&[1, 1, 2, 2, 3]) {
            let column = rng.pick(&table.columns);
            let key = if rng.chance(1, 5) {
                expression(rng, column)
            } else {
                (format!("@{}", column.name), column.ty, column.spread)
            };
            if index.keys.iter().all(|(before, ..)| *before != key.0) {
                index.keys.push(key);
                index.order.push(*rng.pick(&["", "", "", " desc", " nulls first", " desc nulls last"]));
            }
        }
        if rng.chance(1, 10) {
            index.include.push(rng.pick(&table.columns).name.clone());
        }
        if rng.chance(1, 4) {
            index.condition = Some(condition(rng, rng.clone().pick(&table.columns)));
        }
        index
    }

    fn definition(&self, table: &str) -> String {
        let keys = self.keys.iter().zip(&self.order).map(|((key, ..), order)| {
            let key = key.replace('@', "");
            let bare = key.chars().all(|c| c.is_ascii_alphanumeric());
            if bare { format!("{key}{order}") } else { format!("({key}){order}") }
        });
        let mut text = format!("create index on {table} ({})", keys.collect::<Vec<_>>().join(", "));
        if !self.include.is_empty() {
            text += &format!(" include ({})", self.include.join(", "));
        }
        if let Some(condition) = &self.condition {
            text += &format!(" where {}", condition.replace('@', ""));
        }
        text
    }
}

/// An expression of a column that can be a key, its type and how many values it has.
fn expression(rng: &mut Rng, column: &Column) -> (String, Ty, u64) {
    let at = format!("@{}", column.name);
    match column.ty {
        Ty::Text | Ty::Varchar => match rng.below(3) {
            0 => (format!("lower({at})"), Ty::Text, column.spread),
            1 => (format!("length({at})"), Ty::Int4, 4),
            _ => (format!("substr({at}, 1, 1)"), Ty::Text, 9),
        },
        Ty::Int2 | Ty::Int4 => match rng.below(3) {
            0 => (format!("{at} % 3"), if column.ty == Ty::Int2 { Ty::Int4 } else { column.ty }, 3),
            1 => (format!("coalesce({at}, 0)"), Ty::Int4, column.spread),
            _ => (format!("{at}::bigint + 1"), Ty::Int8, column.spread),
        },
        Ty::Ts => (format!("date_trunc('month', {at})"), Ty::Ts, column.spread / 8 + 1),
        Ty::Date => (format!("extract(month from {at})"), Ty::Num, 12),
        Ty::Ints => (format!("cardinality({at})"), Ty::Int4, 3),
        Ty::Jsonb => (format!("{at} ->> 'a'"), Ty::Text, 20),
        Ty::Num => (format!("round({at})"), Ty::Num, column.spread),
        _ => (format!("{at} is null"), Ty::Bool, 2),
    }
}

/// A condition over a column, of which conditions of queries may follow.
fn condition(rng: &mut Rng, column: &Column) -> String {
    let at = format!("@{}", column.name);
    let value = types::value(rng, column.ty, column.spread);
    match (column.ty, rng.below(4)) {
        (Ty::Bool, _) => at,
        (_, 0) => format!("{at} is not null"),
        (Ty::Jsonb | Ty::Ints, _) | (_, 1) => format!("{at} is null"),
        (_, 2) => format!("{at} > {value}"),
        _ => format!("{at} = {value}"),
    }
}
