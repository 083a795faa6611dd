//! FROM: tables, subqueries, functions and joins.

use super::super::ast::{Alias, ExprKind, FromItem, JoinKind, JoinOn, TableRef, TableSample, TypeName};
use super::super::lexer::Tok;
use super::{ITEMS_MAX, Parser, too_complex};
use crate::error::Result;

impl Parser<'_> {
    /// gram.y's relation_expr: a table without an alias; `t *` and ONLY are taken.
    pub(super) fn table_name(&mut self) -> Result<TableRef> {
        let only = self.eat("only");
        let parens = only && self.eat_punct(b'(');
        let name = self.qual_name()?;
        if parens {
            self.expect_punct(b')')?;
        } else if !only {
            self.eat_op("*");
        }
        Ok(TableRef { name, only, alias: None })
    }

    /// What stands in FROM.
    pub(super) fn table_items(&mut self) -> Result<Vec<FromItem>> {
        let pos = self.pos();
        let items = self.comma_list(Self::table_item)?;
        if items.len() > ITEMS_MAX {
            return Err(too_complex().at(pos));
        }
        Ok(items)
    }

    /// A table with joins behind it.
    pub(super) fn table_item(&mut self) -> Result<FromItem> {
        self.nested(|p| {
            let mut left = p.table_primary()?;
            let mut joins = 0;
            while let Some(kind) = p.opt_join()? {
                joins += 1;
                if joins > ITEMS_MAX {
                    return Err(too_complex().at(p.pos()));
                }
                left = p.join(kind, left)?;
            }
            Ok(left)
        })
    }

    /// `[NATURAL] [INNER | LEFT | RIGHT | FULL | CROSS] JOIN`: the kind, and whether it is natural.
    fn opt_join(&mut self) -> Result<Option<(JoinKind, bool)>> {
        let natural = self.eat("natural");
        let kind = if self.eat("join") {
            return Ok(Some((JoinKind::Inner, natural)));
        } else if self.eat("inner") {
            JoinKind::Inner
        } else if self.is_any(&["left", "right", "full"]) {
            let kind = match self.word_at(0) {
                Some("left") => JoinKind::Left,
                Some("right") => JoinKind::Right,
                _ => JoinKind::Full,
            };
            self.advance();
            self.eat("outer");
            kind
        } else if !natural && self.eat("cross") {
            JoinKind::Cross
        } else if natural {
            return Err(self.error_here());
        } else {
            return Ok(None);
        };
        self.expect("join")?;
        Ok(Some((kind, natural)))
    }

    fn join(&mut self, (kind, natural): (JoinKind, bool), left: FromItem) -> Result<FromItem> {
        let pos = self.pos();
        let unconditional = natural || kind == JoinKind::Cross;
        // a JOIN b JOIN c ON x ON y: what follows without a condition of its own belongs to the right side.
        let mut right = self.table_primary()?;
        if !unconditional {
            let mut joins = 0;
            while !self.is_any(&["on", "using"]) {
                let Some(inner) = self.opt_join()? else { break };
                joins += 1;
                if joins > ITEMS_MAX {
                    return Err(too_complex().at(pos));
                }
                right = self.nested(|p| p.join(inner, right))?;
            }
        }
        let on = if natural {
            JoinOn::Natural
        } else if kind == JoinKind::Cross {
            JoinOn::Nothing
        } else if self.eat("on") {
            JoinOn::On(self.expr()?)
        } else {
            self.expect("using")?;
            let columns = self.name_list()?;
            let alias = if self.eat("as") { Some(self.col_id()?) } else { None };
            JoinOn::Using(columns, alias)
        };
        Ok(FromItem::Join { kind, left: Box::new(left), right: Box::new(right), on, alias: None, pos })
    }

    fn table_primary(&mut self) -> Result<FromItem> {
        let pos = self.pos();
        let lateral = self.eat("lateral");
        if self.eat_punct(b'(') {
            return self.table_in_parentheses(lateral, pos);
        }
        if self.is_seq(&["rows", "from"]) && *self.peek_at(2) == Tok::Punct(b'(') {
            self.advance();
            self.advance();
            let calls = self.paren_list(|p| {
                let call = p.primary()?;
                if p.is("as") { Err(p.unsupported("a column definition list in ROWS FROM")) } else { Ok(call) }
            })?;
            let ordinality = self.eat_seq(&["with", "ordinality"]);
            let alias = self.opt_function_alias()?;
            return Ok(FromItem::Function { calls, lateral, ordinality, alias, pos });
        }
        if self.is_function_call() {
            let call = self.primary()?;
            let ordinality = self.eat_seq(&["with", "ordinality"]);
            let alias = self.opt_function_alias()?;
            return Ok(FromItem::Function { calls: vec![call], lateral, ordinality, alias, pos });
        }
        if lateral {
            return Err(self.error_here());
        }
        let mut table = self.table_name()?;
        table.alias = self.opt_alias()?;
        if self.eat("tablesample") {
            return self.table_sample(table);
        }
        Ok(FromItem::Table(table))
    }

    fn table_sample(&mut self, table: TableRef) -> Result<FromItem> {
        let method = self.qual_name()?;
        let args = self.paren_list(|p| p.expr())?;
        let mut repeatable = None;
        if self.eat("repeatable") {
            self.expect_punct(b'(')?;
            repeatable = Some(self.expr()?);
            self.expect_punct(b')')?;
        }
        Ok(FromItem::Sample(Box::new(TableSample { table, method, args, repeatable })))
    }

    /// Looks ahead along a dotted name for its parenthesis; the few functions with keywords for names count.
    fn is_function_call(&self) -> bool {
        let mut n = 0;
        loop {
            if !matches!(self.peek_at(n), Tok::Word(_) | Tok::Quoted(_)) {
                return false;
            }
            match self.peek_at(n + 1) {
                Tok::Punct(b'(') => return !(n == 0 && self.is("only")),
                Tok::Punct(b'.') => n += 2,
                _ => {
                    return n == 0 && self.is_any(&["current_date", "current_timestamp", "current_user", "user"]);
                }
            }
        }
    }

    fn table_in_parentheses(&mut self, lateral: bool, pos: crate::error::Pos) -> Result<FromItem> {
        if self.is_query_start() {
            let query = self.subquery_tail()?;
            let alias = self.opt_alias()?;
            return Ok(FromItem::Subquery { query, lateral, alias, pos });
        }
        let inner = self.table_item()?;
        match inner {
            FromItem::Subquery { query, lateral: _, alias: None, pos: _ } => {
                let query = if self.is_query_continuation() { Box::new(self.continue_query(*query)?) } else { query };
                self.expect_punct(b')')?;
                let alias = self.opt_alias()?;
                Ok(FromItem::Subquery { query, lateral, alias, pos })
            }
            FromItem::Join { kind, left, right, on, alias, pos } if !lateral => {
                self.expect_punct(b')')?;
                let alias = self.opt_alias()?.or(alias);
                Ok(FromItem::Join { kind, left, right, on, alias, pos })
            }
            FromItem::Table(_)
            | FromItem::Sample(_)
            | FromItem::Subquery { .. }
            | FromItem::Function { .. }
            | FromItem::Join { .. } => Err(self.error_here()),
        }
    }

    pub(super) fn opt_alias(&mut self) -> Result<Option<Alias>> {
        self.alias(false)
    }

    /// The alias of a function's rows, which may be a column definition list.
    fn opt_function_alias(&mut self) -> Result<Option<Alias>> {
        self.alias(true)
    }

    fn alias(&mut self, may_define: bool) -> Result<Option<Alias>> {
        let explicit = self.eat("as");
        if explicit && may_define && self.is_punct(b'(') {
            let (columns, types) = self.column_definitions()?;
            return Ok(Some(Alias { name: String::new(), columns, types }));
        }
        if !explicit && !self.is_col_id() {
            return Ok(None);
        }
        let name = self.col_id()?;
        let ends = |t: &Tok<'_>| matches!(t, Tok::Punct(b',' | b')'));
        if may_define && self.is_punct(b'(') && !ends(self.peek_at(2)) {
            let (columns, types) = self.column_definitions()?;
            return Ok(Some(Alias { name, columns, types }));
        }
        let columns = self.opt_name_list()?;
        Ok(Some(Alias { name, columns, types: Vec::new() }))
    }

    /// `(a int, b text)`.
    fn column_definitions(&mut self) -> Result<(Vec<String>, Vec<TypeName>)> {
        let list = self.paren_list(|p| {
            let name = p.col_id()?;
            let ty = p.type_name()?;
            if p.eat("collate") {
                p.qual_name()?;
            }
            Ok((name, ty))
        })?;
        Ok(list.into_iter().unzip())
    }

    /// Whether `expr` is a bare call, as CREATE INDEX and FROM want it.
    pub(super) fn is_call(kind: &ExprKind) -> bool {
        matches!(
            kind,
            ExprKind::Call(_)
                | ExprKind::Coalesce(_)
                | ExprKind::NullIf(..)
                | ExprKind::Greatest(_)
                | ExprKind::Least(_)
        )
    }
}
