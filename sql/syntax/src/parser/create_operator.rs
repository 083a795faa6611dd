//! CREATE, ALTER, DROP and COMMENT of operators.

use super::super::ast::QualName;
use super::super::lexer::Tok;
use super::super::operator::{OperatorChange, OperatorName, OperatorOption, OperatorStatement, OperatorValue};
use super::super::stmt::Statement;
use super::Parser;
use crate::error::{Result, SqlError, code};

/// The most bytes of an operator's name.
const NAME_BYTES_MAX: usize = 63;

fn operator(statement: OperatorStatement) -> Statement {
    Statement::Operator(Box::new(statement))
}

impl Parser<'_> {
    /// Behind CREATE, ALTER, DROP or COMMENT ON: takes OPERATOR; classes and families of operators are refused.
    fn operator_word(&mut self) -> Result<()> {
        if let Some(word @ ("class" | "family")) = self.word_at(1) {
            return Err(self.unsupported(&format!("OPERATOR {} as an object", word.to_ascii_uppercase())));
        }
        self.expect("operator")
    }

    /// gram.y's any_operator: the name with the schemas before it.
    pub(super) fn any_operator(&mut self) -> Result<QualName> {
        let pos = self.pos();
        let mut parts = Vec::new();
        while self.is_col_id() {
            parts.push(self.col_id()?);
            self.expect_punct(b'.')?;
        }
        let Tok::Op(name) = self.peek() else { return Err(self.error_here()) };
        if name.len() > NAME_BYTES_MAX {
            return Err(SqlError::new(code::SYNTAX_ERROR, format!("operator too long at or near \"{name}\"")).at(pos));
        }
        parts.push((*name).to_owned());
        self.advance();
        if parts.len() > 3 {
            let message = format!("improper qualified name (too many dotted names): {}", parts.join("."));
            return Err(SqlError::new(code::SYNTAX_ERROR, message).at(pos));
        }
        Ok(QualName { parts, pos })
    }

    /// Behind CREATE.
    pub(super) fn create_operator(&mut self) -> Result<Statement> {
        self.operator_word()?;
        let name = self.any_operator()?;
        let options = self.paren_list(Self::operator_option)?;
        Ok(operator(OperatorStatement::Create { name, options }))
    }

    fn operator_option(&mut self) -> Result<OperatorOption> {
        let name = self.col_label()?;
        let value = if self.eat_op("=") { Some(self.operator_value()?) } else { None };
        Ok(OperatorOption { name, value })
    }

    fn operator_value(&mut self) -> Result<OperatorValue> {
        if self.eat("none") {
            return Ok(OperatorValue::None);
        }
        if self.is("operator") && *self.peek_at(1) == Tok::Punct(b'(') {
            self.advance();
            self.advance();
            let name = self.any_operator()?;
            self.expect_punct(b')')?;
            return Ok(OperatorValue::Operator(name));
        }
        let signed = matches!(self.peek(), Tok::Op("+" | "-")) && matches!(self.peek_at(1), Tok::Int(_) | Tok::Num(_));
        if matches!(self.peek(), Tok::Op(_)) && !signed {
            return Ok(OperatorValue::Operator(self.any_operator()?));
        }
        if let Tok::Str(text) = self.peek() {
            let text = text.to_string();
            self.advance();
            return Ok(OperatorValue::Constant(text));
        }
        if signed || matches!(self.peek(), Tok::Int(_) | Tok::Num(_)) {
            let first = self.at;
            if signed {
                self.advance();
            }
            self.advance();
            return Ok(OperatorValue::Constant(self.text_from(first)));
        }
        self.operator_value_name()
    }

    /// The name of a function, of a type, or a word.
    fn operator_value_name(&mut self) -> Result<OperatorValue> {
        let setof = self.eat("setof");
        let first = self.at;
        let pos = self.pos();
        let mut parts = vec![self.col_label()?];
        while self.eat_punct(b'.') {
            parts.push(self.col_label()?);
        }
        let behind = self.at;
        self.at = first;
        match self.type_name() {
            Ok(ty) => {
                let name = (self.at == behind).then_some(QualName { parts, pos });
                Ok(OperatorValue::Name(name, Some(ty), setof))
            }
            // A word that is no name of a type.
            Err(_) => {
                self.at = behind;
                Ok(OperatorValue::Name(Some(QualName { parts, pos }), None, setof))
            }
        }
    }

    /// An operator with the types of its operands.
    fn operator_name(&mut self) -> Result<OperatorName> {
        let name = self.any_operator()?;
        self.expect_punct(b'(')?;
        let left = if self.eat("none") { None } else { Some(self.type_name()?) };
        if self.is_punct(b')') && left.is_some() {
            return Err(SqlError::new(code::SYNTAX_ERROR, "missing argument")
                .hint("Use NONE to denote the missing argument of a unary operator.")
                .at(self.pos()));
        }
        self.expect_punct(b',')?;
        let right = if self.is("none") && left.is_some() { None } else { Some(self.type_name()?) };
        if right.is_none() {
            self.advance();
        }
        self.expect_punct(b')')?;
        Ok(OperatorName { name, left, right })
    }

    /// Behind DROP.
    pub(super) fn drop_operator(&mut self) -> Result<Statement> {
        self.operator_word()?;
        let if_exists = self.if_exists();
        let operators = self.comma_list(Self::operator_name)?;
        let cascade = self.cascade();
        Ok(operator(OperatorStatement::Drop { operators, if_exists, cascade }))
    }

    /// Behind ALTER.
    pub(super) fn alter_operator(&mut self) -> Result<Statement> {
        self.operator_word()?;
        let name = self.operator_name()?;
        let change = if self.eat_seq(&["owner", "to"]) {
            OperatorChange::Owner(self.role_spec()?)
        } else if self.eat_seq(&["set", "schema"]) {
            OperatorChange::Schema(self.col_id()?)
        } else {
            self.expect("set")?;
            OperatorChange::Set(self.paren_list(Self::operator_option)?)
        };
        Ok(operator(OperatorStatement::Alter { operator: name, change }))
    }

    /// Behind COMMENT ON.
    pub(super) fn comment_on_operator(&mut self) -> Result<Statement> {
        self.operator_word()?;
        let name = self.operator_name()?;
        self.expect("is")?;
        let text = if self.eat("null") { None } else { Some(self.string()?) };
        Ok(operator(OperatorStatement::Comment { operator: name, text }))
    }
}
