//! MERGE.

use super::super::ast::{TableRef, With};
use super::super::merge::{Merge, MergeAction, MergeClause};
use super::super::stmt::{Insert, Statement};
use super::Parser;
use crate::error::Result;

impl Parser<'_> {
    pub(super) fn merge(&mut self, with: Option<With>) -> Result<Statement> {
        self.expect_seq(&["merge", "into"])?;
        let table = self.modified_table()?;
        self.expect("using")?;
        let source = self.table_item()?;
        self.expect("on")?;
        let on = self.expr()?;
        let mut clauses = vec![self.merge_clause(&table)?];
        while self.is("when") {
            clauses.push(self.merge_clause(&table)?);
        }
        Ok(Statement::Merge(Box::new(Merge { with, table, source, on, clauses })))
    }

    fn merge_clause(&mut self, table: &TableRef) -> Result<MergeClause> {
        self.expect("when")?;
        let matched = !self.eat("not");
        self.expect("matched")?;
        let condition = if self.eat("and") { Some(self.expr()?) } else { None };
        self.expect("then")?;
        let action = if self.eat("do") {
            self.expect("nothing")?;
            MergeAction::Nothing
        } else if !matched {
            self.merge_insert(table)?
        } else if self.eat("delete") {
            MergeAction::Delete
        } else {
            self.expect_seq(&["update", "set"])?;
            MergeAction::Update(self.comma_list(Self::assignment)?)
        };
        Ok(MergeClause { matched, condition, action })
    }

    fn merge_insert(&mut self, table: &TableRef) -> Result<MergeAction> {
        self.expect("insert")?;
        let columns = if self.is_punct(b'(') { self.insert_columns()? } else { Vec::new() };
        let overriding_system = self.opt_overriding()?;
        let plain = columns.is_empty() && overriding_system.is_none();
        let values = if plain && self.eat_seq(&["default", "values"]) {
            None
        } else {
            self.expect("values")?;
            Some(self.paren_list(Self::expr)?)
        };
        let table = table.clone();
        let insert = Insert {
            with: None,
            table,
            columns,
            overriding_system,
            source: None,
            on_conflict: None,
            returning: Vec::new(),
        };
        Ok(MergeAction::Insert(Box::new(insert), values))
    }
}
