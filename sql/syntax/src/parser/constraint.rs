//! Columns and constraints of CREATE TABLE and ALTER TABLE.

use super::super::ast::{Expr, QualName};
use super::super::ddl::{
    ColumnConstraint, ColumnConstraintKind, ColumnDef, ForeignAction, References, SequenceOption, TableConstraint,
    TableConstraintKind, Timing,
};
use super::super::lexer::Tok;
use super::super::stmt::GenericOption;
use super::Parser;
use crate::error::{Result, SqlError, code};

impl Parser<'_> {
    pub(super) fn is_table_constraint(&self) -> bool {
        self.is_any(&["constraint", "primary", "unique", "check", "foreign"])
            || (self.is("exclude") && (self.word_at(1) == Some("using") || matches!(self.peek_at(1), Tok::Punct(b'('))))
    }

    pub(super) fn column_def(&mut self) -> Result<ColumnDef> {
        let (name, pos) = self.col_id_at()?;
        let ty = self.type_name()?;
        let mut collation = None;
        let mut constraints: Vec<ColumnConstraint> = Vec::new();
        loop {
            let clause = self.pos();
            if self.eat("collate") {
                collation = Some(QualName { pos: clause, ..self.qual_name()? });
                continue;
            }
            let at = self.pos();
            let constraint = if self.eat("constraint") { Some(self.col_id()?) } else { None };
            if constraint.is_none()
                && let Some(last) = constraints.last_mut()
                && self.timing_into(&mut last.timing)?
            {
                continue;
            }
            match self.column_constraint()? {
                Some(kind) => {
                    constraints.push(ColumnConstraint { name: constraint, kind, timing: Timing::default(), pos: at });
                }
                None if constraint.is_some() => return Err(self.error_here()),
                None => {
                    return Ok(ColumnDef { name, pos, ty, collation, constraints });
                }
            }
        }
    }

    fn column_constraint(&mut self) -> Result<Option<ColumnConstraintKind>> {
        use ColumnConstraintKind as K;
        Ok(Some(if self.eat_seq(&["not", "null"]) {
            K::NotNull
        } else if self.eat("null") {
            K::Null
        } else if self.eat("default") {
            let first = self.at;
            let expr = self.restricted_expr()?;
            K::Default(expr, self.text_from(first))
        } else if self.eat_seq(&["primary", "key"]) {
            K::PrimaryKey(self.index_parameters()?)
        } else if self.eat("unique") {
            let nulls = self.nulls_not_distinct();
            K::Unique(self.index_parameters()?, nulls)
        } else if self.eat("check") {
            let (expr, text) = self.check_expr()?;
            K::Check(expr, text)
        } else if self.is("references") {
            K::References(self.references()?)
        } else if self.eat("generated") {
            self.generated()?
        } else {
            return Ok(None);
        }))
    }

    fn generated(&mut self) -> Result<ColumnConstraintKind> {
        let always = self.eat("always");
        if !always {
            self.expect_seq(&["by", "default"])?;
        }
        self.expect("as")?;
        if self.eat("identity") {
            let options = self.identity_options()?;
            return Ok(ColumnConstraintKind::Identity { always, options });
        }
        if !always {
            return Err(self.error_here());
        }
        let (expr, text) = self.check_expr()?;
        self.expect("stored")?;
        Ok(ColumnConstraintKind::Generated(expr, text))
    }

    pub(super) fn identity_options(&mut self) -> Result<Vec<SequenceOption>> {
        if !self.eat_punct(b'(') {
            return Ok(Vec::new());
        }
        let options = self.sequence_options()?;
        self.expect_punct(b')')?;
        Ok(options)
    }

    /// NULLS [NOT] DISTINCT.
    pub(super) fn nulls_not_distinct(&mut self) -> bool {
        let same = self.eat_seq(&["nulls", "not", "distinct"]);
        if !same {
            self.eat_seq(&["nulls", "distinct"]);
        }
        same
    }

    /// A condition in parentheses with its text.
    pub(super) fn check_expr(&mut self) -> Result<(Expr, String)> {
        self.expect_punct(b'(')?;
        let first = self.at;
        let expr = self.expr()?;
        let text = self.text_from(first);
        self.expect_punct(b')')?;
        if self.is_seq(&["no", "inherit"]) {
            return Err(self.unsupported("NO INHERIT"));
        }
        Ok((expr, text))
    }

    /// WITH (...) and USING INDEX TABLESPACE of a constraint that makes an index.
    fn index_parameters(&mut self) -> Result<Vec<GenericOption>> {
        let storage = self.opt_storage()?;
        if self.is_seq(&["using", "index", "tablespace"]) {
            self.expect_seq(&["using", "index"])?;
            self.no_tablespace()?;
        }
        Ok(storage)
    }

    fn references(&mut self) -> Result<References> {
        self.expect("references")?;
        let table = self.qual_name()?;
        let columns = self.opt_name_list()?;
        let mut full = false;
        if self.eat("match") {
            if self.is("partial") {
                return Err(self.unsupported("MATCH PARTIAL"));
            }
            full = self.eat("full");
            if !full {
                self.expect("simple")?;
            }
        }
        let (mut on_delete, mut on_update) = (ForeignAction::NoAction, ForeignAction::NoAction);
        let mut delete_columns = Vec::new();
        while self.is_seq(&["on", "delete"]) || self.is_seq(&["on", "update"]) {
            let pos = self.pos();
            self.advance();
            let delete = self.is("delete");
            self.advance();
            let action = self.foreign_action()?;
            let set = match action {
                ForeignAction::SetNull => "SET NULL",
                ForeignAction::SetDefault => "SET DEFAULT",
                _ => "",
            };
            let listed = if set.is_empty() { Vec::new() } else { self.opt_name_list()? };
            if delete {
                (on_delete, delete_columns) = (action, listed);
            } else if listed.is_empty() {
                on_update = action;
            } else {
                let message = format!("a column list with {set} is only supported for ON DELETE actions");
                return Err(SqlError::new(code::FEATURE_NOT_SUPPORTED, message).at(pos));
            }
        }
        Ok(References { table, columns, full, on_delete, delete_columns, on_update })
    }

    fn foreign_action(&mut self) -> Result<ForeignAction> {
        Ok(if self.eat("cascade") {
            ForeignAction::Cascade
        } else if self.eat("restrict") {
            ForeignAction::Restrict
        } else if self.eat_seq(&["set", "null"]) {
            ForeignAction::SetNull
        } else if self.eat_seq(&["set", "default"]) {
            ForeignAction::SetDefault
        } else {
            self.expect_seq(&["no", "action"])?;
            ForeignAction::NoAction
        })
    }

    /// Takes one word of a constraint's timing; false where there is none.
    fn timing_into(&mut self, timing: &mut Timing) -> Result<bool> {
        if self.eat("deferrable") {
            timing.deferrable = true;
        } else if self.eat_seq(&["not", "deferrable"]) {
            if timing.initially_deferred {
                return Err(SqlError::new(
                    code::SYNTAX_ERROR,
                    "constraint declared INITIALLY DEFERRED must be DEFERRABLE",
                ));
            }
            timing.deferrable = false;
        } else if self.eat_seq(&["initially", "deferred"]) {
            timing.deferrable = true;
            timing.initially_deferred = true;
        } else if self.eat_seq(&["initially", "immediate"]) {
            timing.initially_deferred = false;
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    pub(super) fn timing(&mut self) -> Result<Timing> {
        let mut timing = Timing::default();
        loop {
            if self.eat_seq(&["not", "valid"]) {
                timing.not_valid = true;
            } else if !self.timing_into(&mut timing)? {
                return Ok(timing);
            }
        }
    }

    pub(super) fn table_constraint(&mut self) -> Result<TableConstraint> {
        use TableConstraintKind as K;
        let pos = self.pos();
        let name = if self.eat("constraint") { Some(self.col_id()?) } else { None };
        let kind = if self.is("primary") || self.is("unique") {
            let primary = self.eat("primary");
            self.advance();
            let nulls_not_distinct = !primary && self.nulls_not_distinct();
            if self.eat_seq(&["using", "index"]) {
                let index = self.col_id()?;
                if primary { K::PrimaryKeyUsing(index) } else { K::UniqueUsing(index) }
            } else {
                let columns = self.name_list()?;
                let include = if self.eat("include") { self.name_list()? } else { Vec::new() };
                let storage = self.index_parameters()?;
                if primary {
                    K::PrimaryKey { columns, include, storage }
                } else {
                    K::Unique { columns, include, storage, nulls_not_distinct }
                }
            }
        } else if self.eat("check") {
            let (expr, text) = self.check_expr()?;
            K::Check(expr, text)
        } else if self.eat_seq(&["foreign", "key"]) {
            let columns = self.name_list()?;
            K::Foreign { columns, references: self.references()? }
        } else if self.is("exclude") {
            return Err(self.unsupported("an exclusion constraint"));
        } else {
            return Err(self.error_here());
        };
        Ok(TableConstraint { name, kind, timing: self.timing()?, pos })
    }
}
