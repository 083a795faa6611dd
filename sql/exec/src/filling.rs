//! A table that takes the rows of a query as they come, without a look at constraints: CREATE TABLE AS, REFRESH MATERIALIZED VIEW.

use crate::change::engine_row;
use crate::sink::Sink;
use crate::{BoxFuture, Row, Run};
use clearway_context::core::Core;
use clearway_context::errors::from_engine;
use clearway_engine::session::load::Loading;
use clearway_engine::table::shape::TableShape;
use clearway_engine::value::Value;
use clearway_syntax::error::Result;
use std::sync::Arc;

/// Rows at a time.
const BATCH_ROWS: usize = 256;

/// A table that takes rows.
pub struct Filling<'a> {
    core: &'a Core,
    shape: Arc<TableShape>,
    rows: Vec<Vec<Value>>,
    loading: Loading,
}

impl Filling<'_> {
    /// The table of a shape, which is empty.
    pub fn of(core: &Core, shape: Arc<TableShape>) -> Filling<'_> {
        Filling { core, shape, rows: Vec::new(), loading: Loading::default() }
    }

    /// Ends it, after the last row.
    ///
    /// # Errors
    /// The store's.
    pub async fn end(&mut self) -> Result<()> {
        self.core.engine.take().end_loading(&mut self.loading, &self.shape).await.map_err(from_engine)
    }
}

impl Sink for Filling<'_> {
    fn row(&mut self, _: &Run<'_>, row: Row) -> Result<()> {
        self.rows.push(engine_row(&row));
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.rows.len() >= BATCH_ROWS
    }

    fn flush(&mut self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async {
            let mut engine = self.core.engine.take();
            for values in self.rows.drain(..) {
                let left = engine.take_one_of(&mut self.loading, &self.shape, values).map_err(from_engine)?;
                if let Some(values) = left {
                    engine.insert_one_of(&mut self.loading, &self.shape, &values).await.map_err(from_engine)?;
                }
            }
            Ok(())
        })
    }
}
