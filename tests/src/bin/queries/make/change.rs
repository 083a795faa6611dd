//! INSERT, UPDATE, DELETE and MERGE. The judge takes each back.
//!
//! What a change does must not depend on the order in which rows are visited (QRY-1): a row of a table is joined to at most one row that gives its
//! new values; keys get values that no row has; rows that are inserted come in an order.

use super::statement::by_all;
use super::statement::{Form, Statement};
use super::{Col, Item, Maker};
use crate::schema::Table;
use crate::types::Ty;

/// Beyond the keys that there are.
const FAR: u64 = 5000;

impl Maker<'_> {
    pub(super) fn change(&mut self) -> Statement {
        let with = if self.chance(20) { self.with() } else { String::new() };
        let number = self.rng.index(self.schema.tables.len());
        let table = &self.schema.tables[number];
        let alias = self.alias();
        let cols: Vec<Col> = table
            .columns
            .iter()
            .map(|c| Col { name: format!("{alias}.{}", c.name), ty: c.ty, spread: c.spread })
            .collect();
        let key = cols.iter().map(|c| c.name.clone()).collect();
        let target = Item { alias, cols, key, rows: table.rows.len() as u64, table: Some(number), is_distinct: false };
        self.estimate = target.rows;
        let (sql, bare) = match self.rng.below(100) {
            0..38 => self.update(table, &target),
            38..60 => self.delete(table, &target),
            60..85 => self.insert(table),
            _ => self.merge(table, &target),
        };
        let mut tables = vec![table.name.clone()];
        let referring =
            self.schema.tables.iter().filter(|other| other.foreign.as_ref().is_some_and(|f| f.parent == number));
        tables.extend(referring.map(|other| other.name.clone()));
        // Without foreign keys nothing follows from a change, nor is it refused.
        let bare = bare && tables.len() == 1 && table.foreign.is_none();
        Statement { sql: format!("{with}{sql}"), form: Form::Change { tables, bare } }
    }

    fn returning(&mut self, item: &Item) -> String {
        if self.chance(60) {
            return String::new();
        }
        let (a, b) = (self.rng.pick(&item.cols).clone(), self.rng.pick(&item.cols).clone());
        let third = self.scalar(std::slice::from_ref(item), Ty::Text, 1);
        format!(" returning {}, {}, {third}", a.name, b.name)
    }

    /// Columns that a change may set without a question of order.
    fn free(table: &Table) -> Vec<usize> {
        (0..table.columns.len()).filter(|n| !table.columns[*n].keyed && table.columns[*n].generated.is_none()).collect()
    }

    fn assignments(&mut self, table: &Table, scope: &[Item]) -> (String, bool) {
        let mut free = Self::free(table);
        self.rng.shuffle(&mut free);
        free.truncate(1 + self.rng.index(3));
        let mut parts: Vec<String> = Vec::new();
        for n in free {
            let column = &table.columns[n];
            let value = if self.chance(8) { "default".to_owned() } else { self.stored(scope, n, table) };
            parts.push(format!("{} = {value}", column.name));
        }
        // A key moves to where no row is.
        let moved = table
            .primary
            .first()
            .map(|n| &table.columns[*n])
            .filter(|c| matches!(c.ty, Ty::Int4 | Ty::Int8 | Ty::Int2));
        let mut bare = true;
        if let Some(column) = moved.filter(|_| self.chance(20) || parts.is_empty()) {
            parts.push(format!("{0} = {1}.{0} + {FAR}", column.name, scope[0].alias));
            bare = false;
        }
        if parts.is_empty() {
            // The table has keys only.
            let column = &table.columns[0];
            parts.push(format!("{0} = {1}.{0}", column.name, scope[0].alias));
        }
        (parts.join(", "), bare)
    }

    /// An expression that fits into the column.
    fn stored(&mut self, scope: &[Item], n: usize, table: &Table) -> String {
        let column = &table.columns[n];
        match column.ty {
            // Too long or too large for the declared type is an error.
            Ty::Num | Ty::Varchar | Ty::Char if self.chance(80) => self.literal(column.ty, column.spread),
            Ty::Num | Ty::Varchar | Ty::Char => self.scalar(scope, column.ty, 0),
            _ if self.chance(40) => self.literal(column.ty, column.spread),
            _ => self.scalar(scope, column.ty, 2),
        }
    }

    fn update(&mut self, table: &Table, target: &Item) -> (String, bool) {
        let own = std::slice::from_ref(target);
        let Item { alias, .. } = target;
        if self.chance(35)
            && let Some((source, on)) = self.unique_source(target)
        {
            let scope = [target.clone(), source.1];
            let (set, bare) = self.assignments(table, &scope);
            let filter = self.condition(&scope, 1);
            let returning = self.returning(target);
            return (
                format!("update {} {alias} set {set} from {} where {on} and {filter}{returning}", table.name, source.0),
                bare,
            );
        }
        let (set, bare) = self.assignments(table, own);
        let filter = self.conditions(own, 2);
        let returning = self.returning(target);
        (format!("update {} {alias} set {set} where {filter}{returning}", table.name), bare)
    }

    /// A sub-select that has at most one row for each value of a column, and the condition that joins it to the target.
    fn unique_source(&mut self, target: &Item) -> Option<((String, Item), String)> {
        let alias = self.alias();
        let inner = self.table_item(&alias);
        let item = &inner.items[0];
        let key = self.rng.pick(&item.cols).clone();
        let fits: Vec<&Col> = target.cols.iter().filter(|c| c.ty == key.ty).collect();
        if fits.is_empty() {
            return None;
        }
        let own = (*self.rng.pick(&fits)).clone();
        let value = self.without_outer(|maker| maker.column(&inner.items, Ty::has_least))?;
        let alias = self.alias();
        let text = format!(
            "(select {} as k, max({}) as v, count(*) as n from {} group by 1) {alias}",
            key.name, value.name, inner.text
        );
        let ty = if value.ty == Ty::Varchar { Ty::Text } else { value.ty };
        let col = |name: &str, ty, spread| Col { name: format!("{alias}.{name}"), ty, spread };
        let cols = vec![col("k", key.ty, key.spread), col("v", ty, value.spread), col("n", Ty::Int8, 5)];
        let item = Item {
            alias: alias.clone(),
            key: vec![format!("{alias}.k")],
            cols,
            rows: inner.rows,
            table: None,
            is_distinct: false,
        };
        Some(((text, item), format!("{} = {alias}.k", own.name)))
    }

    fn delete(&mut self, table: &Table, target: &Item) -> (String, bool) {
        let Item { alias, .. } = target;
        let returning = self.returning(target);
        if self.chance(30) {
            let other = self.alias();
            let source = self.table_item(&other);
            let scope = [target.clone(), source.items[0].clone()];
            let filter = self.conditions(&scope, 2);
            return (
                format!("delete from {} {alias} using {} where {filter}{returning}", table.name, source.text),
                true,
            );
        }
        let filter = self.conditions(std::slice::from_ref(target), 2);
        (format!("delete from {} {alias} where {filter}{returning}", table.name), true)
    }

    fn insert(&mut self, table: &Table) -> (String, bool) {
        let into: Vec<usize> = (0..table.columns.len()).filter(|n| table.columns[*n].generated.is_none()).collect();
        let names = into.iter().map(|n| table.columns[*n].name.as_str()).collect::<Vec<_>>().join(", ");
        let rows = if self.chance(60) {
            let rows: Vec<String> = (0..self.rng.range(1..5))
                .map(|_| format!("({})", into.iter().map(|n| self.fresh(table, *n)).collect::<Vec<_>>().join(", ")))
                .collect();
            format!("values {}", rows.join(", "))
        } else {
            let alias = self.alias();
            let source = self.table_item(&alias);
            self.estimate = source.rows;
            let filter = self.conditions(&source.items, 2);
            let list: Vec<String> = into
                .iter()
                .map(|n| {
                    let column = &table.columns[*n];
                    let text = if column.keyed {
                        self.scalar(&source.items, column.ty, 0)
                    } else {
                        self.stored(&source.items, *n, table)
                    };
                    format!("{text}::{}", column.ty.name())
                })
                .collect();
            format!("select {} from {} where {filter}{}", list.join(", "), source.text, by_all(list.len()))
        };
        let (conflict, keyed) = self.conflict(table);
        let alias = "n";
        let item = Item {
            alias: alias.to_owned(),
            cols: table
                .columns
                .iter()
                .map(|c| Col { name: format!("{alias}.{}", c.name), ty: c.ty, spread: c.spread })
                .collect(),
            key: Vec::new(),
            rows: 1,
            table: None,
            is_distinct: false,
        };
        let returning = self.returning(&item);
        let constrained = keyed || !table.primary.is_empty() || !table.unique.is_empty();
        (format!("insert into {} as n ({names}) {rows}{conflict}{returning}", table.name), !constrained)
    }

    /// A value for a new row: a key that is there, or is not.
    fn fresh(&mut self, table: &Table, n: usize) -> String {
        let column = &table.columns[n];
        if column.keyed && self.chance(40) && column.ty.is_int() {
            return (FAR + self.rng.below(20)).to_string();
        }
        if self.chance(5) { "default".to_owned() } else { self.literal(column.ty, column.spread) }
    }

    fn conflict(&mut self, table: &Table) -> (String, bool) {
        let mut keys: Vec<&Vec<usize>> = table.unique.iter().collect();
        if !table.primary.is_empty() {
            keys.push(&table.primary);
        }
        if keys.is_empty() || self.chance(30) {
            return (String::new(), false);
        }
        let key = (*self.rng.pick(&keys)).clone();
        let names = key.iter().map(|n| table.columns[*n].name.as_str()).collect::<Vec<_>>().join(", ");
        let free = Self::free(table);
        if free.is_empty() || self.chance(40) {
            let target = if self.chance(30) { String::new() } else { format!(" ({names})") };
            return (format!(" on conflict{target} do nothing"), true);
        }
        let column = &table.columns[*self.rng.pick(&free)];
        let name = &column.name;
        let value = match self.rng.below(3) {
            0 => format!("excluded.{name}"),
            1 => format!("coalesce(n.{name}, excluded.{name})"),
            _ => self.literal(column.ty, column.spread),
        };
        let only =
            if self.chance(30) { format!(" where n.{name} is distinct from excluded.{name}") } else { String::new() };
        (format!(" on conflict ({names}) do update set {name} = {value}{only}"), true)
    }

    fn merge(&mut self, table: &Table, target: &Item) -> (String, bool) {
        let Some((source, on)) = self.unique_source(target) else {
            return self.update(table, target);
        };
        let both = [target.clone(), source.1.clone()];
        let mut arms = Vec::new();
        // QRY-1: whether a row that is put in meets the old values of a row that is changed depends on the order of the two.
        let is_keyed = !table.primary.is_empty() || !table.unique.is_empty();
        let puts_in = self.chance(50);
        let changes = !puts_in || (!is_keyed && self.chance(50));
        if changes && self.chance(40) {
            let (set, _) = self.assignments(table, &both);
            arms.push(format!("when matched and {} then update set {set}", self.condition(&both, 1)));
        }
        match self.rng.below(3) {
            0 if changes => arms.push("when matched then delete".to_owned()),
            _ if !changes => arms.push("when matched then do nothing".to_owned()),
            1 => arms.push("when matched then do nothing".to_owned()),
            _ => {
                let (set, _) = self.assignments(table, &both);
                arms.push(format!("when matched then update set {set}"));
            }
        }
        if puts_in {
            let into: Vec<usize> = (0..table.columns.len()).filter(|n| table.columns[*n].generated.is_none()).collect();
            let names = into.iter().map(|n| table.columns[*n].name.as_str()).collect::<Vec<_>>().join(", ");
            let values = into.iter().map(|n| self.fresh(table, *n)).collect::<Vec<_>>().join(", ");
            let filter = self.condition(std::slice::from_ref(&source.1), 0);
            arms.push(format!("when not matched and {filter} then insert ({names}) values ({values})"));
        }
        (format!("merge into {} {} using {} on {on} {}", table.name, target.alias, source.0, arms.join(" ")), false)
    }
}
