//! OVER, WINDOW, frames, and the items of GROUP BY.

use super::super::ast::{Expr, ExprKind};
use super::super::lexer::Tok;
use super::super::window::{Exclude, Frame, FrameBound, FrameMode, GroupItem, Over, WindowSpec};
use super::Parser;
use crate::error::{Pos, Result, SqlError, code};

/// CUBE makes two to the power of its elements.
const CUBE_MAX: usize = 12;

fn windowing(message: &str, pos: Pos) -> SqlError {
    SqlError::new(code::WINDOWING_ERROR, message).at(pos)
}

impl Parser<'_> {
    /// What stands behind the arguments of a call.
    pub(super) fn opt_over(&mut self) -> Result<Option<Box<Over>>> {
        if !self.eat("over") {
            return Ok(None);
        }
        let pos = self.pos();
        let over = if self.is_punct(b'(') { Over::Spec(self.window_spec()?) } else { Over::Name(self.col_id()?, pos) };
        Ok(Some(Box::new(over)))
    }

    /// `WINDOW name AS (...)`, several.
    pub(super) fn opt_window_clause(&mut self) -> Result<Vec<(String, WindowSpec)>> {
        if !self.eat("window") {
            return Ok(Vec::new());
        }
        self.comma_list(|p| {
            let name = p.col_id()?;
            p.expect("as")?;
            Ok((name, p.window_spec()?))
        })
    }

    fn window_spec(&mut self) -> Result<WindowSpec> {
        let pos = self.pos();
        self.expect_punct(b'(')?;
        let clause = self.is_any(&["partition", "range", "rows", "groups", "order"]);
        let base = if !clause && self.is_col_id() { Some(self.col_id()?) } else { None };
        let partition_by = if self.eat("partition") {
            self.expect("by")?;
            self.comma_list(|p| p.expr())?
        } else {
            Vec::new()
        };
        let order_by = if self.is("order") { self.order_by()? } else { Vec::new() };
        let frame = self.opt_frame()?;
        self.expect_punct(b')')?;
        Ok(WindowSpec { base, partition_by, order_by, frame, pos })
    }

    fn opt_frame(&mut self) -> Result<Option<Frame<Expr>>> {
        let pos = self.pos();
        let mode = if self.eat("rows") {
            FrameMode::Rows
        } else if self.eat("range") {
            FrameMode::Range
        } else if self.eat("groups") {
            FrameMode::Groups
        } else {
            return Ok(None);
        };
        let (start, end) = self.frame_extent()?;
        let exclude = if !self.eat("exclude") {
            Exclude::NoOthers
        } else if self.eat_seq(&["current", "row"]) {
            Exclude::CurrentRow
        } else if self.eat("group") {
            Exclude::Group
        } else if self.eat("ties") {
            Exclude::Ties
        } else {
            self.expect_seq(&["no", "others"])?;
            Exclude::NoOthers
        };
        Ok(Some(Frame { mode, start, end, exclude, pos }))
    }

    fn frame_extent(&mut self) -> Result<(FrameBound<Expr>, FrameBound<Expr>)> {
        use FrameBound as B;
        let both = self.eat("between");
        let start_pos = self.pos();
        let start = self.frame_bound()?;
        if matches!(start, B::UnboundedFollowing) {
            return Err(windowing("frame start cannot be UNBOUNDED FOLLOWING", start_pos));
        }
        if !both {
            if matches!(start, B::Following(_)) {
                return Err(windowing("frame starting from following row cannot end with current row", start_pos));
            }
            return Ok((start, B::CurrentRow));
        }
        self.expect("and")?;
        let end_pos = self.pos();
        let end = self.frame_bound()?;
        match (&start, &end) {
            (_, B::UnboundedPreceding) => Err(windowing("frame end cannot be UNBOUNDED PRECEDING", end_pos)),
            (B::CurrentRow, B::Preceding(_)) => {
                Err(windowing("frame starting from current row cannot have preceding rows", end_pos))
            }
            (B::Following(_), B::Preceding(_) | B::CurrentRow) => {
                Err(windowing("frame starting from following row cannot have preceding rows", end_pos))
            }
            _ => Ok((start, end)),
        }
    }

    fn frame_bound(&mut self) -> Result<FrameBound<Expr>> {
        if self.eat_seq(&["unbounded", "preceding"]) {
            return Ok(FrameBound::UnboundedPreceding);
        }
        if self.eat_seq(&["unbounded", "following"]) {
            return Ok(FrameBound::UnboundedFollowing);
        }
        if self.eat_seq(&["current", "row"]) {
            return Ok(FrameBound::CurrentRow);
        }
        let offset = self.expr()?;
        if self.eat("preceding") {
            return Ok(FrameBound::Preceding(offset));
        }
        self.expect("following")?;
        Ok(FrameBound::Following(offset))
    }

    /// What stands behind GROUP BY; whether equal grouping sets count once.
    pub(super) fn group_by(&mut self) -> Result<(Vec<GroupItem>, bool)> {
        let distinct = self.eat("distinct");
        if !distinct {
            self.eat("all");
        }
        Ok((self.comma_list(Self::group_item)?, distinct))
    }

    fn group_item(&mut self) -> Result<GroupItem> {
        let pos = self.pos();
        if self.is_seq(&["grouping", "sets"]) {
            self.advance();
            self.advance();
            return self.nested(|p| Ok(GroupItem::Sets(p.paren_list(Self::group_item)?)));
        }
        let open = *self.peek_at(1) == Tok::Punct(b'(');
        if open && self.eat("rollup") {
            return Ok(GroupItem::Rollup(self.paren_list(Self::group_keys)?));
        }
        if open && self.eat("cube") {
            let list = self.paren_list(Self::group_keys)?;
            if list.len() > CUBE_MAX {
                let message = format!("CUBE is limited to {CUBE_MAX} elements");
                return Err(SqlError::new(code::TOO_MANY_COLUMNS, message).at(pos));
            }
            return Ok(GroupItem::Cube(list));
        }
        Ok(GroupItem::Keys(self.group_keys()?))
    }

    /// One key, or several in parentheses; none for `()`.
    fn group_keys(&mut self) -> Result<Vec<Expr>> {
        if self.is_punct(b'(') && *self.peek_at(1) == Tok::Punct(b')') {
            self.advance();
            self.advance();
            return Ok(Vec::new());
        }
        let parenthesis = self.is_punct(b'(');
        let key = self.expr()?;
        Ok(match *key.kind {
            ExprKind::Row(list) if parenthesis => list,
            _ => vec![key],
        })
    }
}
