//! Rewrites a table whose primary key changes: its rows move to fresh trees (engine/src/session/rewrite.rs).

use super::Ddl;
use crate::context::errors::{about, from_engine};
use crate::error::{Result, SqlError};
use clearway_engine::catalog::object::ROWS_MOVE;
use clearway_engine::catalog::{Index, Object, Relation};
use clearway_engine::error::EngineError;
use clearway_engine::session::rewrite::{Rewritten, Rows};
use clearway_engine::table::shape::TableShape;
use std::sync::Arc;

impl Ddl<'_> {
    /// Moves the rows of `old` to the table as it is to be; `primary` is the index of its new key.
    pub(super) async fn rewrite(&self, old: &Arc<TableShape>, r: Relation, primary: Option<Index>) -> Result<()> {
        let before = self.engine().mark();
        match self.move_rows(old, &r, primary.clone(), Rows::AsTheyCome).await? {
            Rewritten::Done => return Ok(()),
            Rewritten::Null(column) => return Err(self.has_nulls(&r, column)),
            Rewritten::Unordered => {}
        }
        self.engine().roll_back_to(&before).await.map_err(from_engine)?;
        match self.move_rows(old, &r, primary, Rows::SORTED).await? {
            Rewritten::Done => Ok(()),
            Rewritten::Null(column) => Err(self.has_nulls(&r, column)),
            Rewritten::Unordered => Err(SqlError::internal("sorted rows out of order")),
        }
    }

    async fn move_rows(
        &self,
        old: &Arc<TableShape>,
        r: &Relation,
        primary: Option<Index>,
        rows: Rows,
    ) -> Result<Rewritten> {
        let moved = Relation { rows_from_lsn: ROWS_MOVE, ..r.clone() };
        self.fresh_trees(&moved).await?;
        let name = primary.as_ref().map(|index| index.name.clone());
        if let Some(mut index) = primary {
            index.tree = self.catalog().relation(r.oid).map_or(0, |fresh| fresh.tree);
            self.put(Object::Index(index)).await?;
        }
        let new = TableShape::new(&self.catalog(), r.oid).map_err(from_engine)?;
        let moved = self.engine().rewrite(old, &new, rows).await;
        moved.map_err(|e| match e {
            EngineError::Duplicate { index, oid, row } => {
                let index = name.unwrap_or(index);
                self.not_built(r.oid, EngineError::Duplicate { index, oid, row })
            }
            e => from_engine(e),
        })
    }

    fn has_nulls(&self, r: &Relation, column: usize) -> SqlError {
        let column = &r.columns[column].name;
        let message = format!("column \"{column}\" of relation \"{}\" contains null values", r.name);
        about(SqlError::new("23502", message), &self.catalog(), r.oid).column(column.as_str())
    }
}
