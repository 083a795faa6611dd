//! CREATE, ALTER and DROP POLICY.

use super::super::ddl::RoleSpec;
use super::super::policy::{Condition, CreatePolicy, PolicyStatement};
use super::super::stmt::Statement;
use super::Parser;
use crate::error::{Result, SqlError, code};

fn statement(policy: PolicyStatement) -> Result<Statement> {
    Ok(Statement::Policy(Box::new(policy)))
}

impl Parser<'_> {
    /// `POLICY name ON table`, with IF EXISTS where that may stand.
    fn policy_of(&mut self) -> Result<(String, crate::ast::QualName, bool)> {
        self.expect("policy")?;
        let if_exists = self.if_exists();
        let name = self.col_id()?;
        self.expect("on")?;
        Ok((name, self.qual_name()?, if_exists))
    }

    pub(super) fn create_policy(&mut self) -> Result<Statement> {
        let (name, table, if_exists) = self.policy_of()?;
        if if_exists {
            return Err(self.error_here());
        }
        let mut restrictive = false;
        if self.eat("as") {
            let pos = self.pos();
            match self.col_id()?.as_str() {
                "permissive" => {}
                "restrictive" => restrictive = true,
                other => {
                    let message = format!("unrecognized row security option \"{other}\"");
                    let hint = "Only PERMISSIVE or RESTRICTIVE policies are supported currently.";
                    return Err(SqlError::new(code::SYNTAX_ERROR, message).hint(hint).at(pos));
                }
            }
        }
        let command = if self.eat("for") { self.policy_command()? } else { '*' };
        let roles = self.policy_roles()?.unwrap_or_else(|| vec![RoleSpec::Public]);
        let (using, check) = self.policy_conditions()?;
        statement(PolicyStatement::Create(CreatePolicy { name, table, restrictive, command, roles, using, check }))
    }

    fn policy_command(&mut self) -> Result<char> {
        let known = [("all", '*'), ("select", 'r'), ("insert", 'a'), ("update", 'w'), ("delete", 'd')];
        let found = known.iter().find(|(word, _)| self.is(word)).map(|(_, letter)| *letter);
        let letter = found.ok_or_else(|| self.error_here())?;
        self.advance();
        Ok(letter)
    }

    fn policy_roles(&mut self) -> Result<Option<Vec<RoleSpec>>> {
        if self.eat("to") { self.comma_list(Self::role_spec).map(Some) } else { Ok(None) }
    }

    fn policy_conditions(&mut self) -> Result<(Option<Condition>, Option<Condition>)> {
        let using = if self.eat("using") { Some(self.policy_condition()?) } else { None };
        let check = if self.eat_seq(&["with", "check"]) { Some(self.policy_condition()?) } else { None };
        Ok((using, check))
    }

    fn policy_condition(&mut self) -> Result<Condition> {
        self.expect_punct(b'(')?;
        let first = self.at;
        let condition = self.expr()?;
        let text = self.text_from(first);
        self.expect_punct(b')')?;
        Ok((condition, text))
    }

    pub(super) fn alter_policy(&mut self) -> Result<Statement> {
        let (name, table, if_exists) = self.policy_of()?;
        if if_exists {
            return Err(self.error_here());
        }
        if self.eat_seq(&["rename", "to"]) {
            return statement(PolicyStatement::Rename { name, table, to: self.col_id()? });
        }
        let roles = self.policy_roles()?;
        let (using, check) = self.policy_conditions()?;
        statement(PolicyStatement::Alter { name, table, roles, using, check })
    }

    pub(super) fn drop_policy(&mut self) -> Result<Statement> {
        let (name, table, if_exists) = self.policy_of()?;
        self.cascade();
        statement(PolicyStatement::Drop { name, table, if_exists })
    }
}
