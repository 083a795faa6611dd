//! The errors of duplicate keys (23505), with the values of the key.

use super::Cx;
use super::shown::detailed;
use clearway_context::index_terms::{self, Key, Place};
use clearway_context::privileges::Judge;
use clearway_engine::catalog::{Index, Object};
use clearway_planner::explain::definition::definition;
use clearway_planner::plan::{TableSlot, Target};
use clearway_syntax::error::SqlError;
use clearway_values::types::Datum;

impl Cx<'_> {
    pub(super) fn duplicate(self, target: &Target, index: &str, oid: u32, row: &[Datum]) -> SqlError {
        let message = format!("duplicate key value violates unique constraint \"{index}\"");
        let detail = self.unique_key_shown(&target.table, oid, row).map(|key| format!("{key} already exists."));
        self.about(detailed(SqlError::new("23505", message), detail), target.table.shape.oid).constraint(index)
    }

    /// The error of an index that can't be built because two rows have the same key, of which this is one; the row is empty where it is not known.
    pub fn duplicated(self, table: &TableSlot, index: &str, oid: u32, row: &[Datum]) -> SqlError {
        let shown = if row.is_empty() { None } else { self.unique_key_shown(table, oid, row) };
        let detail = shown.map_or_else(|| "Duplicate keys exist.".to_owned(), |key| format!("{key} is duplicated."));
        let error = SqlError::new("23505", format!("could not create unique index \"{index}\"")).detail(detail);
        self.about(error, table.shape.oid).constraint(index)
    }

    fn unique_key_shown(self, table: &TableSlot, oid: u32, row: &[Datum]) -> Option<String> {
        let secondary = table.shape.indexes.iter().find(|i| i.oid == oid);
        match secondary.and_then(index_terms::of) {
            None => self.key_shown(table, secondary.map_or(&table.shape.key, |i| &i.columns), row),
            Some(terms) => self.terms_shown(table, oid, terms, row),
        }
    }

    /// `Key (lower(name))=(a)`; none where the session's role may not read the table (SHN-1): rights on columns say nothing of expressions.
    fn terms_shown(
        self,
        table: &TableSlot,
        oid: u32,
        terms: &index_terms::IndexTerms,
        row: &[Datum],
    ) -> Option<String> {
        let catalog = &self.run.names.catalog;
        let relation = catalog.relation(table.shape.oid)?;
        let judge = Judge::of(self.run.core, catalog);
        let may_read = catalog.get(relation.oid).is_some_and(|object| judge.may_with(object, 'r'));
        if judge.is_held_by_policies(relation) || !may_read {
            return None;
        }
        let Object::Index(index) = &**catalog.get(oid)? else { return None };
        let name = |(key, at): (&Key, usize)| match key {
            Key::Column(c) => table.shape.columns[*c].name.clone(),
            Key::Expression(_) => self.expression_shown(index, relation, at),
        };
        let names: Vec<String> = terms.keys.iter().zip(0..).map(name).collect();
        let values = index_terms::shown_values(terms, row).ok()?;
        let values: Vec<String> = values.iter().map(|(value, ty)| self.shown(value, *ty)).collect();
        Some(format!("Key ({})=({})", names.join(", "), values.join(", ")))
    }

    fn expression_shown(self, index: &Index, table: &clearway_engine::catalog::Relation, at: usize) -> String {
        let Some(e) = index.columns.get(at).and_then(|c| c.expression.as_ref()) else { return String::new() };
        let shown = definition(&self.run.names.catalog, (table, index), &e.text, Place::Key, true);
        if shown.is_call { shown.text } else { format!("({})", shown.text) }
    }
}
