//! CREATE TABLE (LIKE ...): copies the columns of another table, and of its other properties those that the statement includes.

use super::Ddl;
use super::objects::SequencePlan;
use super::table::{Draft, Unique};
use crate::context::privileges;
use crate::error::{Result, SqlError};
use crate::planner::environment::relation_oid;
use crate::syntax::ddl::{Like, LikeOption, SequenceOption, Timing};
use clearway_engine::catalog::{Column, Comment, Index, Object, Relation};

/// What is made when the table is there.
#[derive(Default)]
pub(super) struct LikeRest {
    indexes: Vec<Index>,
    comments: Vec<(usize, String)>,
}

/// Whether an option is included: the last word on it counts.
fn includes(like: &Like, option: LikeOption) -> bool {
    let about = like.options.iter().rev().find(|(named, _)| *named == option || *named == LikeOption::All);
    about.is_some_and(|(_, including)| *including)
}

impl Ddl<'_> {
    /// Takes over the columns of another table, and notes what follows when the new one is there.
    pub(super) fn like(&self, like: &Like, d: &mut Draft, rest: &mut LikeRest) -> Result<()> {
        let (oid, catalog) = relation_oid(self.core, &like.table)?;
        let source = catalog.relation(oid).ok_or_else(|| super::missing("relation", like.table.name()))?;
        privileges::relation(self.core, &catalog, source, "r")?;
        let mut places = vec![None; source.columns.len()];
        for (from, c) in source.columns.iter().enumerate().filter(|(_, c)| !c.is_dropped()) {
            if d.columns.iter().any(|o| o.name == c.name) {
                let message = format!("column \"{}\" specified more than once", c.name);
                return Err(SqlError::new("42701", message));
            }
            places[from] = Some(d.columns.len());
            self.like_column(like, source, from, d);
            let number = (from + 1).to_string();
            if includes(like, LikeOption::Comments)
                && let Some(comment) = catalog.comments(oid).find(|comment| comment.part == number)
            {
                rest.comments.push((d.columns.len() - 1, comment.text.clone()));
            }
        }
        if includes(like, LikeOption::Constraints) {
            d.checks.extend(source.checks.iter().cloned());
        }
        if !includes(like, LikeOption::Indexes) {
            return Ok(());
        }
        let place = |c: usize| places.get(c).copied().flatten().unwrap_or(c);
        for index in catalog.indexes(oid) {
            let mut index = index.clone();
            index.columns.iter_mut().for_each(|c| c.column = place(c.column));
            index.include.iter_mut().for_each(|c| *c = place(*c));
            index.reads.iter_mut().for_each(|c| *c = place(*c));
            if !index.constraint {
                rest.indexes.push(index);
                continue;
            }
            let timing = Timing { deferrable: index.deferrable, initially_deferred: index.deferred, not_valid: false };
            let columns = index.columns.iter().map(|c| c.column).collect();
            let Index { include, primary, nulls_not_distinct, .. } = index;
            d.uniques.push(Unique { name: None, columns, include, primary, nulls_not_distinct, timing });
        }
        Ok(())
    }

    fn like_column(&self, like: &Like, source: &Relation, from: usize, d: &mut Draft) {
        let c = &source.columns[from];
        let mut column = Column {
            name: c.name.clone(),
            storage: c.storage,
            type_oid: c.type_oid,
            type_mod: c.type_mod,
            not_null: c.not_null,
            path: c.path.clone(),
            strategy: c.strategy.filter(|_| includes(like, LikeOption::Storage)),
            ..Column::default()
        };
        if c.generated && includes(like, LikeOption::Generated) {
            (column.generated, column.default) = (true, c.default.clone());
        } else if c.identity.is_some() {
            if includes(like, LikeOption::Identity) {
                column.identity = c.identity;
                let plan = SequencePlan { ty: c.type_oid, options: self.options_of(source.oid, from) };
                d.sequences.push((d.columns.len(), plan));
            }
        } else if !c.generated && includes(like, LikeOption::Defaults) {
            column.default = c.default.clone();
        }
        d.columns.push(column);
    }

    /// The options that make another sequence like that of a column.
    fn options_of(&self, table: u32, at: usize) -> Vec<SequenceOption> {
        let catalog = self.catalog();
        let found = catalog.objects().find_map(|o| match &**o {
            Object::Sequence(q) if q.owned_by == Some((table, at)) => Some(q.clone()),
            _ => None,
        });
        found.map_or_else(Vec::new, |q| {
            vec![
                SequenceOption::Increment(q.increment),
                SequenceOption::MinValue(Some(q.min)),
                SequenceOption::MaxValue(Some(q.max)),
                SequenceOption::Start(q.start),
                SequenceOption::Cache(q.cache),
                SequenceOption::Cycle(q.cycle),
            ]
        })
    }

    /// The indexes and comments of a table that was made like another.
    pub(super) async fn finish_like(&self, table: u32, rest: LikeRest) -> Result<()> {
        let Some(relation) = self.catalog().relation(table).cloned() else { return Ok(()) };
        for index in rest.indexes {
            let mut parts = vec![relation.name.as_str()];
            let names = crate::planner::indexes::column_names(&relation, &index.columns);
            parts.extend(names.iter().map(String::as_str));
            parts.extend(index.include.iter().map(|c| relation.columns[*c].name.as_str()));
            let name = super::free_name(&self.catalog(), relation.schema, &[], &parts, "idx");
            let (oid, schema) = (self.new_oid(), relation.schema);
            let index = Index { oid, schema, name, table, tree: 0, clustered: false, ..index };
            self.make_index(&relation, index).await?;
        }
        for (at, text) in rest.comments {
            let comment = Comment { oid: self.new_oid(), object: table, part: (at + 1).to_string(), text };
            self.put(Object::Comment(comment)).await?;
        }
        Ok(())
    }
}
