//! EXPLAIN: the columns of an index whose values are found by jumping from one to the next.

use super::render::Value;
use super::words::Words;
use crate::indexes::expression_at;
use crate::plan::{Access, KeyValues, Scan};

/// Adds the names of these columns to the details of a scan.
pub(super) fn note(scan: &Scan, words: &Words<'_>, details: &mut Vec<(&'static str, Value)>) {
    let table = &scan.table;
    let columns = |index: Option<usize>| index.map_or(&table.shape.key, |i| &table.shape.indexes[i].columns);
    let name = |c: &usize| match table.shape.columns.get(*c) {
        Some(column) => column.name.clone(),
        None => expression_at(table, *c).map_or_else(String::new, |e| words.expr(&e)),
    };
    let mut names: Vec<String> = Vec::new();
    match &scan.access {
        Access::Ranges(ranges) => {
            for part in ranges.all_parts() {
                let each = part.columns.iter().zip(columns(part.index));
                let each = each.filter(|(values, _)| matches!(values, KeyValues::Each(_)));
                names.extend(each.map(|(_, c)| name(c)));
            }
        }
        Access::Index(place, _) => {
            let jumped = scan.jump.map_or(0, |jump| jump.columns);
            names.extend(columns(Some(*place)).iter().take(jumped).map(name));
        }
        Access::Tids(_) => {}
        Access::Full | Access::KeyRange(_) | Access::Keys(_) => {
            let jumped = scan.jump.map_or(0, |jump| jump.columns);
            names.extend(columns(None).iter().take(jumped).map(name));
        }
    }
    names.dedup();
    if !names.is_empty() {
        details.push(("Skip Key", Value::List(names)));
    }
}
