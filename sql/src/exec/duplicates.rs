//! The error of a duplicate key (23505), with the values that exist already.

use super::Cx;
use super::shown::detailed;
use crate::context::index_terms::{self, Key, Place};
use crate::context::privileges::Judge;
use crate::error::SqlError;
use crate::planner::explain::definition::definition;
use crate::planner::plan::{TableSlot, Target};
use crate::types::Datum;
use clearway_engine::catalog::{Index, Object};

impl Cx<'_> {
    pub(super) fn duplicate(self, target: &Target, index: &str, oid: u32, row: &[Datum]) -> SqlError {
        let shape = &target.table.shape;
        let secondary = shape.indexes.iter().find(|i| i.oid == oid);
        let shown = match secondary.and_then(index_terms::of) {
            None => self.key_shown(&target.table, secondary.map_or(&shape.key, |i| &i.columns), row),
            Some(terms) => self.terms_shown(&target.table, oid, terms, row),
        };
        let message = format!("duplicate key value violates unique constraint \"{index}\"");
        let detail = shown.map(|key| format!("{key} already exists."));
        self.about(detailed(SqlError::new("23505", message), detail), shape.oid).constraint(index)
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
