//! Cursor variables: OPEN, FETCH, MOVE, CLOSE, and loops over cursors.

use super::evaluate::Begun;
use super::flow::{Turn, after};
use super::frame::{Flow, Frame};
use crate::error::{Result, SqlError, code};
use crate::planner::plan::OutputColumn;
use crate::session::cursors::no_cursor;
use crate::syntax::plpgsql::names::Slot;
use crate::syntax::plpgsql::tree::{Direction, Distance, Fragment, Opened, Rows, StmtKind, Target};
use crate::syntax::stmt::FetchDirection;
use crate::types::{Datum, oid};
use clearway_base::breath;
use std::sync::Arc;

fn is_null(message: impl Into<String>) -> SqlError {
    SqlError::new("22004", message)
}

impl Frame<'_> {
    /// The name that a cursor variable holds.
    fn held_name(&self, cursor: Slot) -> Result<Option<String>> {
        if self.types[cursor].oid != oid::REFCURSOR {
            let message = format!("variable \"{}\" must be of type cursor or refcursor", self.name_of(cursor));
            return Err(SqlError::new(code::DATATYPE_MISMATCH, message));
        }
        Ok(self.shown(&self.values[cursor], self.types[cursor]))
    }

    /// The name of an open cursor that a variable holds.
    fn open_name(&self, cursor: Slot) -> Result<String> {
        let name = self.held_name(cursor)?;
        name.ok_or_else(|| is_null(format!("cursor variable \"{}\" is null", self.name_of(cursor))))
    }

    /// The name under which a cursor is to be opened; none: the variable is NULL.
    fn free_name(&self, cursor: Slot) -> Result<Option<String>> {
        let name = self.held_name(cursor)?;
        // The empty name is that of the portal in which the statement itself runs.
        if let Some(name) = &name
            && (name.is_empty() || self.session.core.cursors.lock().contains_key(name))
        {
            return Err(SqlError::new("42P03", format!("cursor \"{name}\" already in use")));
        }
        Ok(name)
    }

    /// Opens a cursor over what has begun to run; a variable that is NULL gets its name.
    fn opened(&mut self, cursor: Slot, name: Option<String>, (begun, scroll): (Begun, Option<bool>)) -> Result<String> {
        let unnamed = name.is_none();
        let opened = self.session.open_cursor(name, begun.execution, begun.text, scroll, begun.identity)?;
        if unnamed {
            if self.code.body.variables[cursor].constant {
                let message = format!("variable \"{}\" is declared CONSTANT", self.name_of(cursor));
                return Err(SqlError::new("22005", message));
            }
            self.assign(cursor, Datum::text(opened.clone()), oid::REFCURSOR.into())?;
        }
        Ok(opened)
    }

    /// Begins the query of a cursor.
    async fn begin_cursor(&mut self, rows: &Rows, scroll: Option<bool>) -> Result<(Begun, Option<bool>)> {
        let begun = self.rows_of(rows, true).await?;
        let locks = begun.execution.locks_rows();
        if locks && scroll == Some(true) {
            let message = "DECLARE SCROLL CURSOR ... FOR UPDATE/SHARE is not supported";
            let error = SqlError::new(code::FEATURE_NOT_SUPPORTED, message);
            let error = error.detail("Scrollable cursors must be READ ONLY.");
            return Err(error.within(format!("SQL statement \"{}\"", begun.text)));
        }
        Ok((begun, if locks { Some(false) } else { scroll }))
    }

    /// Begins the query to which a cursor variable is bound.
    async fn begin_bound(&mut self, cursor: Slot, arguments: Option<&Fragment>) -> Result<(Begun, Option<bool>)> {
        let code = self.code.clone();
        let bound = code.body.variables[cursor].query.clone();
        let bound = bound.ok_or_else(|| SqlError::internal("a cursor variable without a query"))?;
        if let Some(arguments) = arguments {
            let (rows, columns) = self.query(arguments, 2).await?;
            let columns: Arc<[OutputColumn]> = columns.into();
            let targets: Vec<Target> =
                bound.arguments.iter().map(|slot| Target { slot: *slot, fields: Vec::new() }).collect();
            self.assign_row(&targets, rows.into_iter().next(), &columns).await?;
        }
        self.begin_cursor(&Rows::Query(bound.query.clone()), bound.scroll).await
    }

    /// OPEN.
    pub(super) async fn open(&mut self, cursor: Slot, what: &Opened, scroll: Option<bool>) -> Result<()> {
        let name = self.free_name(cursor)?;
        let begun = match what {
            Opened::Bound(arguments) => self.begin_bound(cursor, arguments.as_ref()).await?,
            Opened::Rows(rows) => self.begin_cursor(rows, scroll).await?,
        };
        self.opened(cursor, name, begun).map(drop)
    }

    /// FETCH and MOVE.
    pub(super) async fn fetch(
        &mut self,
        cursor: Slot,
        (direction, distance): (Direction, &Distance),
        into: Option<&[Target]>,
    ) -> Result<()> {
        let name = self.open_name(cursor)?;
        if !self.session.core.cursors.lock().contains_key(&name) {
            return Err(no_cursor(&name));
        }
        let distance = match distance {
            Distance::Fixed(n) => *n,
            Distance::Counted(f) => {
                let (value, ty) = self.evaluate(f).await?;
                let value = self.converted(value, ty, oid::INT4.into())?;
                value.as_i64().ok_or_else(|| is_null("relative or absolute cursor position is null"))?
            }
        };
        let direction = match direction {
            Direction::Forward => FetchDirection::Forward(distance),
            Direction::Backward => FetchDirection::Backward(distance),
            Direction::Absolute => FetchDirection::Absolute(distance),
            Direction::Relative => FetchDirection::Relative(distance),
        };
        let fetching = self.session.fetch_rows(&name, direction, into.is_none());
        let (rows, columns, count) = Box::pin(clearway_base::stack::deeper_polls(fetching)).await?;
        if let Some(targets) = into {
            self.assign_row(targets, rows.into_iter().next(), &columns).await?;
        }
        self.row_count = count;
        self.found(count > 0);
        Ok(())
    }

    /// CLOSE.
    pub(super) fn close(&mut self, cursor: Slot) -> Result<()> {
        let name = self.open_name(cursor)?;
        self.session.close_cursor(Some(&name)).map(drop)
    }

    /// FOR over a cursor.
    pub(super) async fn for_cursor(&mut self, kind: &StmtKind) -> Result<Flow> {
        let StmtKind::ForCursor { label, cursor, arguments, variable, body } = kind else { return Ok(Flow::Next) };
        let name = self.free_name(*cursor)?;
        let unnamed = name.is_none();
        let begun = self.begin_bound(*cursor, arguments.as_ref()).await?;
        let name = self.opened(*cursor, name, begun)?;
        self.session.cursors.pin(&name, true);
        let target = [Target { slot: *variable, fields: Vec::new() }];
        let (mut turned, mut flow) = (false, Flow::Next);
        loop {
            breath::breathe(breath::ROW).await?;
            let fetching = self.session.fetch_rows(&name, FetchDirection::Forward(1), false);
            let (rows, columns, _) = Box::pin(clearway_base::stack::deeper_polls(fetching)).await?;
            let row = rows.into_iter().next();
            let ended = row.is_none();
            // As PostgreSQL does, the row of NULLs behind the last one is assigned only where no turn was made.
            if !ended || !turned {
                self.assign_row(&target, row, &columns).await?;
            }
            if ended {
                break;
            }
            turned = true;
            if let Turn::Ends(ended) = after(self.statements(body).await?, label.as_deref()) {
                flow = ended;
                break;
            }
        }
        self.session.cursors.pin(&name, false);
        self.session.close_cursor(Some(&name))?;
        if unnamed {
            self.assign(*cursor, Datum::Null, oid::REFCURSOR.into())?;
        }
        self.found(turned);
        Ok(flow)
    }
}
