//! CREATE, ALTER and DROP of types and domains.

use super::super::ast::{QualName, TypeName};
use super::super::lexer::Tok;
use super::super::stmt::Statement;
use super::super::user_type::{AttributeChange, TypeChange, TypeStatement};
use super::Parser;
use crate::error::{Result, SqlError, code};

impl Parser<'_> {
    /// Behind CREATE: `TYPE name AS ENUM (...)`, `TYPE name AS (attribute type, ...)`.
    pub(super) fn create_type(&mut self) -> Result<Statement> {
        self.advance();
        let name = self.qual_name()?;
        if self.is("as") && *self.peek_at(1) == Tok::Punct(b'(') {
            self.advance();
            self.advance();
            let attributes = if self.is_punct(b')') { Vec::new() } else { self.comma_list(Self::attribute)? };
            self.expect_punct(b')')?;
            return Ok(Statement::Type(Box::new(TypeStatement::CreateComposite { name, attributes })));
        }
        if !self.is_seq(&["as", "enum"]) {
            let what = match self.word_at(1) {
                Some("range") => "a range type",
                _ => "a base type",
            };
            return Err(self.unsupported(&format!("CREATE TYPE of {what}")));
        }
        self.advance();
        self.advance();
        self.expect_punct(b'(')?;
        let labels = if self.is_punct(b')') { Vec::new() } else { self.comma_list(Self::string)? };
        self.expect_punct(b')')?;
        Ok(Statement::Type(Box::new(TypeStatement::CreateEnum { name, labels })))
    }

    /// `name type [COLLATE name]`.
    fn attribute(&mut self) -> Result<(String, TypeName)> {
        let name = self.col_id()?;
        let ty = self.type_name()?;
        if self.eat("collate") {
            self.qual_name()?;
        }
        Ok((name, ty))
    }

    /// One change of ALTER TYPE to an attribute.
    fn attribute_change(&mut self) -> Result<AttributeChange> {
        let change = if self.eat_seq(&["add", "attribute"]) {
            let (name, ty) = self.attribute()?;
            AttributeChange::Add { name, ty }
        } else if self.eat_seq(&["drop", "attribute"]) {
            let if_exists = self.if_exists();
            AttributeChange::Drop { name: self.col_id()?, if_exists }
        } else {
            self.expect_seq(&["alter", "attribute"])?;
            let name = self.col_id()?;
            self.eat_seq(&["set", "data"]);
            self.expect("type")?;
            let ty = self.type_name()?;
            AttributeChange::Type { name, ty }
        };
        self.cascade();
        Ok(change)
    }

    /// Behind CREATE: `DOMAIN name AS type ...`.
    pub(super) fn create_domain(&mut self) -> Result<Statement> {
        self.advance();
        let name = self.qual_name()?;
        self.eat("as");
        let base = self.type_name()?;
        let (mut default, mut nullable, mut checks) = (None, None, Vec::new());
        loop {
            let constraint = if self.eat("constraint") { Some(self.col_id()?) } else { None };
            if self.eat("default") {
                let first = self.at;
                self.restricted_expr()?;
                default = Some(self.text_from(first));
            } else if self.is_seq(&["not", "null"]) || self.is("null") {
                let this = !self.eat("not");
                self.expect("null")?;
                if nullable.is_some_and(|before| before != this) {
                    return Err(SqlError::new(code::SYNTAX_ERROR, "conflicting NULL/NOT NULL constraints"));
                }
                nullable = Some(this);
            } else if self.eat("check") {
                checks.push((constraint, self.check_expr()?.1));
            } else if self.eat("collate") {
                self.qual_name()?;
            } else if constraint.is_some() {
                return Err(self.error_here());
            } else {
                break;
            }
        }
        let not_null = nullable == Some(false);
        Ok(Statement::Type(Box::new(TypeStatement::CreateDomain { name, base, default, not_null, checks })))
    }

    /// Behind ALTER: `TYPE name ...` or `DOMAIN name ...`.
    pub(super) fn alter_type(&mut self) -> Result<Statement> {
        let domain = self.is("domain");
        self.advance();
        let name = self.qual_name()?;
        let change = if domain { self.domain_change()? } else { self.enum_change()? };
        Ok(Statement::Type(Box::new(TypeStatement::Alter { name, domain, change })))
    }

    fn any_change(&mut self) -> Result<TypeChange> {
        if self.eat_seq(&["rename", "to"]) {
            return Ok(TypeChange::Rename(self.col_id()?));
        }
        if self.eat_seq(&["owner", "to"]) {
            return Ok(TypeChange::Owner(self.role_spec()?));
        }
        if self.eat_seq(&["set", "schema"]) {
            return Ok(TypeChange::Schema(self.col_id()?));
        }
        Err(self.error_here())
    }

    fn enum_change(&mut self) -> Result<TypeChange> {
        if self.eat_seq(&["add", "value"]) {
            let if_not_exists = self.eat_seq(&["if", "not", "exists"]);
            let label = self.string()?;
            let beside = if self.eat("before") {
                Some((true, self.string()?))
            } else if self.eat("after") {
                Some((false, self.string()?))
            } else {
                None
            };
            return Ok(TypeChange::AddValue { if_not_exists, label, beside });
        }
        if self.eat_seq(&["rename", "value"]) {
            let from = self.string()?;
            self.expect("to")?;
            return Ok(TypeChange::RenameValue { from, to: self.string()? });
        }
        if self.is_any(&["add", "drop", "alter"]) {
            return Ok(TypeChange::Attributes(self.comma_list(Self::attribute_change)?));
        }
        if self.eat_seq(&["rename", "attribute"]) {
            let from = self.col_id()?;
            self.expect("to")?;
            let to = self.col_id()?;
            self.cascade();
            return Ok(TypeChange::RenameAttribute { from, to });
        }
        self.any_change()
    }

    fn domain_change(&mut self) -> Result<TypeChange> {
        if self.eat_seq(&["set", "default"]) {
            let first = self.at;
            self.expr()?;
            return Ok(TypeChange::Default(Some(self.text_from(first))));
        }
        if self.eat_seq(&["drop", "default"]) {
            return Ok(TypeChange::Default(None));
        }
        if self.eat_seq(&["set", "not", "null"]) {
            return Ok(TypeChange::NotNull(true));
        }
        if self.eat_seq(&["drop", "not", "null"]) {
            return Ok(TypeChange::NotNull(false));
        }
        if self.eat("add") {
            let name = if self.eat("constraint") { Some(self.col_id()?) } else { None };
            self.expect("check")?;
            let text = self.check_expr()?.1;
            let valid = !self.eat_seq(&["not", "valid"]);
            return Ok(TypeChange::AddCheck { name, text, valid });
        }
        if self.eat_seq(&["drop", "constraint"]) {
            let if_exists = self.if_exists();
            let name = self.col_id()?;
            self.cascade();
            return Ok(TypeChange::DropCheck { name, if_exists });
        }
        if self.eat_seq(&["validate", "constraint"]) {
            return Ok(TypeChange::ValidateCheck(self.col_id()?));
        }
        if self.eat_seq(&["rename", "constraint"]) {
            let from = self.col_id()?;
            self.expect("to")?;
            return Ok(TypeChange::RenameCheck { from, to: self.col_id()? });
        }
        self.any_change()
    }

    /// Behind DROP: `TYPE name, ...` or `DOMAIN name, ...`.
    pub(super) fn drop_type(&mut self) -> Result<Statement> {
        let domain = self.is("domain");
        self.advance();
        let if_exists = self.if_exists();
        let names: Vec<QualName> = self.comma_list(Self::qual_name)?;
        let cascade = self.cascade();
        Ok(Statement::Type(Box::new(TypeStatement::Drop { domain, names, if_exists, cascade })))
    }
}
