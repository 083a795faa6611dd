//! Queries: WITH, SELECT, VALUES, set operations, ORDER BY, LIMIT and locking clauses.

use super::super::ast::{
    Cte, Expr, LockStrength, LockWait, Locking, OrderBy, Query, QueryBody, Select, SetOp, Target, With,
};
use super::super::keywords;
use super::super::lexer::Tok;
use super::{HEIGHT_MAX, Parser, too_complex};
use crate::error::{Pos, Result, SqlError, code};

impl Parser<'_> {
    pub(super) fn is_query_start(&self) -> bool {
        self.is_any(&["select", "values", "with", "table"])
    }

    /// Whether what follows a parenthesised query makes it a part of a larger one.
    pub(super) fn is_query_continuation(&self) -> bool {
        self.is_any(&["union", "intersect", "except", "order", "limit", "offset", "fetch", "for"])
    }

    /// Behind `(`: a query and the closing parenthesis.
    pub(super) fn subquery_tail(&mut self) -> Result<Box<Query>> {
        let query = self.query()?;
        self.no_into()?;
        self.expect_punct(b')')?;
        Ok(Box::new(query))
    }

    /// A query with everything that may stand before and behind its body.
    pub(super) fn query(&mut self) -> Result<Query> {
        let outer = std::mem::take(&mut self.height);
        let query = self.nested(|p| {
            let with = p.opt_with()?;
            let mut query = p.set_operation(0)?;
            if with.is_some() && query.with.is_some() {
                return Err(p.unsupported("a WITH clause before a parenthesised query with one of its own"));
            }
            if with.is_some() {
                query.with = with;
            }
            p.query_tail(query)
        });
        self.finish_query(query, outer)
    }

    /// Goes on behind a parenthesised query that was taken for an operand.
    pub(super) fn continue_query(&mut self, left: Query) -> Result<Query> {
        let outer = std::mem::replace(&mut self.height, left.height);
        let query = self.nested(|p| {
            let query = p.set_operation_from(left, 0)?;
            p.query_tail(query)
        });
        self.finish_query(query, outer)
    }

    fn finish_query(&mut self, query: Result<Query>, outer: u16) -> Result<Query> {
        let mut query = query?;
        query.height = self.height.saturating_add(1);
        if query.height > HEIGHT_MAX {
            return Err(too_complex().at(query.pos));
        }
        self.height = outer.max(query.height);
        Ok(query)
    }

    pub(super) fn opt_with(&mut self) -> Result<Option<With>> {
        if !self.eat("with") {
            return Ok(None);
        }
        let recursive = self.eat("recursive");
        let ctes = self.comma_list(Self::cte)?;
        Ok(Some(With { recursive, ctes }))
    }

    fn cte(&mut self) -> Result<Cte> {
        let pos = self.pos();
        let name = self.col_id()?;
        let columns = self.opt_name_list()?;
        self.expect("as")?;
        let materialized = if self.eat("materialized") {
            Some(true)
        } else if self.eat_seq(&["not", "materialized"]) {
            Some(false)
        } else {
            None
        };
        self.expect_punct(b'(')?;
        let statement = self.nested(Self::preparable)?;
        self.no_into()?;
        self.expect_punct(b')')?;
        if self.is_any(&["search", "cycle"]) {
            return Err(self.unsupported("SEARCH and CYCLE of a common table expression"));
        }
        Ok(Cte { name, columns, materialized, statement: Box::new(statement), pos })
    }

    /// UNION and EXCEPT bind alike and less tightly than INTERSECT.
    fn set_operation(&mut self, min: u8) -> Result<Query> {
        let left = self.query_primary()?;
        self.set_operation_from(left, min)
    }

    fn set_operation_from(&mut self, mut left: Query, min: u8) -> Result<Query> {
        loop {
            let (op, tightness) = match self.peek() {
                Tok::Word(w) if w == "union" => (SetOp::Union, 1),
                Tok::Word(w) if w == "except" => (SetOp::Except, 1),
                Tok::Word(w) if w == "intersect" => (SetOp::Intersect, 2),
                _ => return Ok(left),
            };
            if tightness <= min {
                return Ok(left);
            }
            let pos = left.pos;
            self.advance();
            let all = self.eat("all");
            if !all {
                self.eat("distinct");
            }
            let before = self.into.take();
            let right = self.nested(|p| p.set_operation(tightness))?;
            self.no_second_into()?;
            self.into = before;
            let height = left.height.max(right.height).saturating_add(1);
            if height > HEIGHT_MAX {
                return Err(too_complex().at(pos));
            }
            self.height = self.height.max(height);
            let body = QueryBody::SetOp { op, all, left: Box::new(left), right: Box::new(right) };
            left = plain_query(body, pos, height);
        }
    }

    fn query_primary(&mut self) -> Result<Query> {
        let pos = self.pos();
        if self.eat_punct(b'(') {
            let query = self.query()?;
            self.expect_punct(b')')?;
            return Ok(query);
        }
        if self.eat("values") {
            let rows = self.comma_list(|p| p.paren_list(|p| p.expr()))?;
            if let Some(bad) = rows.iter().find(|r| r.len() != rows[0].len()) {
                let at = bad.first().map_or(pos, |e| e.pos);
                return Err(SqlError::new(code::SYNTAX_ERROR, "VALUES lists must all be the same length").at(at));
            }
            return Ok(plain_query(QueryBody::Values(rows), pos, self.height));
        }
        if self.eat("table") {
            let table = self.table_name()?;
            let select = Select {
                distinct: None,
                targets: vec![Target::Star(pos)],
                from: vec![super::super::ast::FromItem::Table(table)],
                filter: None,
                group_by: Vec::new(),
                group_distinct: false,
                having: None,
                windows: Vec::new(),
            };
            return Ok(plain_query(QueryBody::Select(Box::new(select)), pos, self.height));
        }
        self.expect("select")?;
        let select = self.select()?;
        Ok(plain_query(QueryBody::Select(Box::new(select)), pos, self.height))
    }

    fn select(&mut self) -> Result<Select> {
        let distinct = if self.eat("distinct") {
            let on = if self.eat("on") { self.paren_list(|p| p.expr())? } else { Vec::new() };
            Some(on)
        } else {
            self.eat("all");
            None
        };
        let targets = if self.is_target_start() { self.targets()? } else { Vec::new() };
        self.opt_into()?;
        let from = if self.eat("from") { self.table_items()? } else { Vec::new() };
        let filter = self.opt_where()?;
        let (group_by, group_distinct) =
            if self.eat_seq(&["group", "by"]) { self.group_by()? } else { (Vec::new(), false) };
        let having = if self.eat("having") { Some(self.expr()?) } else { None };
        let windows = self.opt_window_clause()?;
        Ok(Select { distinct, targets, from, filter, group_by, group_distinct, having, windows })
    }

    fn is_target_start(&self) -> bool {
        let stop = [
            "from",
            "where",
            "group",
            "having",
            "union",
            "intersect",
            "except",
            "order",
            "limit",
            "offset",
            "fetch",
            "for",
            "into",
            "window",
        ];
        !(*self.peek() == Tok::End || self.is_punct(b';') || self.is_punct(b')') || self.is_any(&stop))
    }

    pub(super) fn opt_where(&mut self) -> Result<Option<Expr>> {
        if self.eat("where") { Ok(Some(self.expr()?)) } else { Ok(None) }
    }

    /// A target list, also of RETURNING.
    pub(super) fn targets(&mut self) -> Result<Vec<Target>> {
        self.comma_list(Self::target)
    }

    fn target(&mut self) -> Result<Target> {
        let pos = self.pos();
        if self.eat_op("*") {
            return Ok(Target::Star(pos));
        }
        if let Some(name) = self.opt_qualified_star()? {
            // Columns keep their own names.
            self.opt_label()?;
            return Ok(Target::QualifiedStar(name));
        }
        let expr = self.expr()?;
        let alias = self.opt_label()?;
        Ok(Target::Expr { expr, alias })
    }

    fn opt_label(&mut self) -> Result<Option<String>> {
        if self.eat("as") {
            return self.col_label().map(Some);
        }
        match self.peek() {
            Tok::Quoted(_) => self.col_label().map(Some),
            Tok::Word(w) if keywords::lookup(w).is_none_or(|(_, bare)| bare) => self.col_label().map(Some),
            _ => Ok(None),
        }
    }

    /// Whether the token `n` ahead goes on with an expression, so that `t.*` before it is a row.
    fn is_operator_at(&self, n: usize) -> bool {
        match self.peek_at(n) {
            Tok::Op(_) => true,
            Tok::Word(w) => matches!(&**w, "is" | "in" | "between" | "not" | "and" | "or" | "isnull" | "notnull"),
            _ => false,
        }
    }

    /// `a.b.*`; looks ahead along the dots and takes nothing where it is something else.
    fn opt_qualified_star(&mut self) -> Result<Option<super::super::ast::QualName>> {
        if !self.is_col_id() {
            return Ok(None);
        }
        let mut n = 1;
        while *self.peek_at(n) == Tok::Punct(b'.') {
            match self.peek_at(n + 1) {
                Tok::Op("*") if self.is_operator_at(n + 2) => return Ok(None),
                Tok::Op("*") => {
                    let pos = self.pos();
                    let mut parts = vec![self.col_id()?];
                    while self.eat_punct(b'.') && !self.eat_op("*") {
                        parts.push(self.col_label()?);
                    }
                    return Ok(Some(super::super::ast::QualName { parts, pos }));
                }
                Tok::Word(_) | Tok::Quoted(_) => n += 2,
                _ => return Ok(None),
            }
        }
        Ok(None)
    }

    pub(super) fn order_by(&mut self) -> Result<Vec<OrderBy>> {
        self.expect_seq(&["order", "by"])?;
        self.comma_list(|p| {
            let expr = p.expr()?;
            let descending = if p.eat("using") { p.using_operator()? } else { p.direction() };
            let nulls_first = p.nulls_order()?;
            Ok(OrderBy { expr, descending, nulls_first })
        })
    }

    /// USING > (true), or USING <. Those of patterns order texts by their bytes, as the others do.
    fn using_operator(&mut self) -> Result<bool> {
        let pos = self.pos();
        let op = match self.peek() {
            Tok::Op(op) => {
                let op = (*op).to_owned();
                self.advance();
                op
            }
            _ => self.qualified_operator()?,
        };
        match op.as_str() {
            "<" | "~<~" => Ok(false),
            ">" | "~>~" => Ok(true),
            _ => {
                let message = format!("operator {op} is not a valid ordering operator");
                Err(SqlError::new(code::WRONG_OBJECT_TYPE, message)
                    .hint("Ordering operators must be \"<\" or \">\" members of btree operator families.")
                    .at(pos))
            }
        }
    }

    /// DESC (true), or ASC or nothing.
    pub(super) fn direction(&mut self) -> bool {
        self.eat("desc") || {
            self.eat("asc");
            false
        }
    }

    pub(super) fn nulls_order(&mut self) -> Result<Option<bool>> {
        if self.eat_seq(&["nulls", "first"]) {
            Ok(Some(true))
        } else if self.eat_seq(&["nulls", "last"]) {
            Ok(Some(false))
        } else {
            Ok(None)
        }
    }

    /// ORDER BY, LIMIT, OFFSET, FETCH and locking clauses, the latter two kinds in either order.
    fn query_tail(&mut self, inner: Query) -> Result<Query> {
        if !self.is_query_continuation() {
            return Ok(inner);
        }
        let mut query = inner;
        if self.is("order") {
            if !query.order_by.is_empty() {
                return Err(multiple("ORDER BY", self.pos()));
            }
            query.order_by = self.order_by()?;
        }
        let (mut limited, mut moved) = (false, false);
        loop {
            let pos = self.pos();
            let again = (limited && self.is_any(&["limit", "fetch"])) || (moved && self.is("offset"));
            if again {
                return Err(self.error_here());
            }
            limited |= self.is_any(&["limit", "fetch"]);
            moved |= self.is("offset");
            if self.eat("limit") {
                let limit = if self.eat("all") { None } else { Some(self.expr()?) };
                set_once(&mut query.limit, limit, "LIMIT", pos)?;
                if self.is_punct(b',') {
                    return Err(SqlError::new(code::SYNTAX_ERROR, "LIMIT #,# syntax is not supported")
                        .hint("Use separate LIMIT and OFFSET clauses.")
                        .at(pos));
                }
            } else if self.eat("offset") {
                let offset = self.expr()?;
                let _rows = self.eat("row") || self.eat("rows");
                set_once(&mut query.offset, Some(offset), "OFFSET", pos)?;
            } else if self.eat("fetch") {
                let (limit, ties) = self.fetch_first()?;
                query.ties = ties;
                set_once(&mut query.limit, Some(limit), "LIMIT", pos)?;
            } else if self.is("for") {
                if self.eat_seq(&["for", "read", "only"]) {
                    continue;
                }
                query.locking.push(self.locking()?);
            } else {
                return Ok(query);
            }
        }
    }

    /// The count, and whether WITH TIES follows.
    fn fetch_first(&mut self) -> Result<(Expr, bool)> {
        if !self.eat("first") {
            self.expect("next")?;
        }
        let pos = self.pos();
        let limit = if self.is_any(&["row", "rows"]) {
            self.node(super::super::ast::ExprKind::Literal(super::super::ast::Literal::Int(1)), pos)?
        } else {
            self.primary()?
        };
        if !self.eat("row") {
            self.expect("rows")?;
        }
        let ties = self.eat_seq(&["with", "ties"]);
        if !ties {
            self.expect("only")?;
        }
        Ok((limit, ties))
    }

    fn locking(&mut self) -> Result<Locking> {
        let pos = self.pos();
        self.expect("for")?;
        let strength = if self.eat("update") {
            LockStrength::Update
        } else if self.eat("share") {
            LockStrength::Share
        } else if self.eat("no") {
            self.expect_seq(&["key", "update"])?;
            LockStrength::NoKeyUpdate
        } else {
            self.expect_seq(&["key", "share"])?;
            LockStrength::KeyShare
        };
        let of = if self.eat("of") { self.comma_list(Self::qual_name)? } else { Vec::new() };
        let wait = if self.eat("nowait") {
            LockWait::NoWait
        } else if self.eat_seq(&["skip", "locked"]) {
            LockWait::SkipLocked
        } else {
            LockWait::Wait
        };
        Ok(Locking { strength, of, wait, pos, is_handed_down: false })
    }
}

fn plain_query(body: QueryBody, pos: Pos, height: u16) -> Query {
    let (order_by, locking) = (Vec::new(), Vec::new());
    Query { with: None, body, order_by, limit: None, offset: None, ties: false, locking, height, pos }
}

fn multiple(clause: &str, pos: Pos) -> SqlError {
    SqlError::new(code::SYNTAX_ERROR, format!("multiple {clause} clauses not allowed")).at(pos)
}

fn set_once(slot: &mut Option<Expr>, value: Option<Expr>, clause: &str, pos: Pos) -> Result<()> {
    if slot.is_some() {
        return Err(multiple(clause, pos));
    }
    *slot = value;
    Ok(())
}
