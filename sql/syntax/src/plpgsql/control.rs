//! IF, CASE and the loops.

use super::names::Slot;
use super::parser::Parser;
use super::tree::{FragmentKind, Rows, Stmt, StmtKind, Target, VariableKind};
use crate::error::{Result, SqlError, code};
use crate::lexer::Tok;

impl Parser<'_> {
    pub(super) fn if_statement(&mut self) -> Result<StmtKind> {
        self.expect("if")?;
        let mut arms = Vec::new();
        let mut otherwise = Vec::new();
        let condition = self.expression_before("then")?;
        arms.push((condition, self.statements()?));
        loop {
            if self.eat("elsif") || self.eat("elseif") {
                let condition = self.expression_before("then")?;
                arms.push((condition, self.statements()?));
            } else if self.eat("else") {
                otherwise = self.statements()?;
                break;
            } else {
                break;
            }
        }
        self.expect("end")?;
        self.expect("if")?;
        self.semicolon()?;
        Ok(StmtKind::If { arms, otherwise })
    }

    pub(super) fn case_statement(&mut self) -> Result<StmtKind> {
        self.expect("case")?;
        let outer = self.place;
        let subject = match self.is("when") {
            true => None,
            false => {
                let value = self.expression_in_case()?;
                let name = format!("__Case__Variable_{}__", self.variables.len());
                let slot = self.variable(&name, VariableKind::Any);
                self.place = self.names.declare(self.place, &name, slot);
                Some((value, slot, name))
            }
        };
        let mut arms = Vec::new();
        while self.eat("when") {
            let condition = match &subject {
                None => self.expression_before("then")?,
                Some((_, _, name)) => {
                    let name = name.clone();
                    self.expression_in_arm(&name)?
                }
            };
            arms.push((condition, self.statements()?));
        }
        if arms.is_empty() {
            return Err(self.error_here());
        }
        let otherwise = if self.eat("else") { Some(self.statements()?) } else { None };
        self.expect("end")?;
        self.expect("case")?;
        self.semicolon()?;
        self.place = outer;
        let subject = subject.map(|(value, slot, _)| (value, slot));
        Ok(StmtKind::Case { subject, arms, otherwise })
    }

    fn expression_in_case(&mut self) -> Result<super::tree::Fragment> {
        // A WHEN inside of a CASE expression is not ours.
        let end = self.find_end(|tok| matches!(tok, Tok::Word(w) if w == "when"), "WHEN", "expression")?;
        self.expression_to(&end)
    }

    /// `WHEN a, b THEN`: whether the value that CASE looks at is one of them.
    fn expression_in_arm(&mut self, variable: &str) -> Result<super::tree::Fragment> {
        let is_then = |tok: &Tok<'_>| matches!(tok, Tok::Word(w) if w == "then");
        let end = self.find_end(is_then, "THEN", "expression")?;
        let first = self.at;
        let start = i64::from(self.pos());
        let text = format!("{})", self.text_between(first, end.token));
        let prefix = format!("SELECT \"{variable}\" IN (");
        let shown = format!("\"{variable}\" IN (");
        let fragment = self.fragment_of(&text, start, (&prefix, &shown), FragmentKind::Expression, false)?;
        self.at = end.token;
        self.advance();
        Ok(fragment)
    }

    pub(super) fn loops(&mut self, word: &str, label: Option<String>) -> Result<StmtKind> {
        let outer = self.place;
        self.place = self.names.level(outer, label.clone(), true);
        self.advance();
        let out = match word {
            "loop" => Ok(StmtKind::Loop { body: self.loop_body(label.as_deref())?, label }),
            "while" => {
                let condition = self.expression_before("loop")?;
                Ok(StmtKind::While { condition, body: self.loop_body(label.as_deref())?, label })
            }
            "for" => self.for_loop(label),
            _ => self.foreach_loop(label),
        };
        self.place = outer;
        out
    }

    /// Behind LOOP, to the end of the statement.
    pub(super) fn loop_body(&mut self, label: Option<&str>) -> Result<Vec<Stmt>> {
        let body = self.statements()?;
        self.expect("end")?;
        self.expect("loop")?;
        self.end_label(label)?;
        self.semicolon()?;
        Ok(body)
    }

    fn for_loop(&mut self, label: Option<String>) -> Result<StmtKind> {
        let variable_at = self.at;
        let known = self.target_here().is_some();
        let targets = if known { self.loop_targets()? } else { Vec::new() };
        let name = if known {
            let (Tok::Word(_) | Tok::Quoted(_)) = self.kind_of(variable_at) else { return Err(self.error_here()) };
            let at = std::mem::replace(&mut self.at, variable_at);
            let name = self.name()?;
            self.at = at;
            name
        } else {
            self.name()?
        };
        self.expect("in")?;
        if self.eat("execute") {
            let query = self.expression_in_list(&["using", "loop"])?;
            let values = self.using()?;
            self.expect("loop")?;
            let targets = self.rows_targets(known, targets, variable_at)?;
            let rows = Rows::Dynamic(query, values);
            return Ok(StmtKind::ForRows { targets, rows, body: self.loop_body(label.as_deref())?, label });
        }
        if let Some(cursor) = self.loop_cursor() {
            return self.cursor_loop(label, (&name, variable_at), targets.len(), cursor);
        }
        let reverse = self.eat("reverse");
        let ends = |tok: &Tok<'_>| match tok {
            Tok::DotDot => true,
            Tok::Word(w) => w == "loop",
            _ => false,
        };
        let end = self.find_end(ends, "LOOP", "statement")?;
        if *self.kind_of(end.token) == Tok::DotDot {
            return self.integer_loop(label, &name, reverse);
        }
        if reverse {
            return Err(self.error("cannot specify REVERSE in query FOR loop"));
        }
        let query = self.statement_between(self.at, end.token)?;
        self.at = end.token;
        self.expect("loop")?;
        let targets = self.rows_targets(known, targets, variable_at)?;
        let rows = Rows::Query(query);
        Ok(StmtKind::ForRows { targets, rows, body: self.loop_body(label.as_deref())?, label })
    }

    /// The variables before IN.
    fn loop_targets(&mut self) -> Result<Vec<Target>> {
        let mut targets = Vec::new();
        loop {
            let Some((target, tokens)) = self.target_here() else { return Err(self.no_variable()) };
            self.at += tokens;
            targets.push(target);
            if !self.eat_punct(b',') {
                return Ok(targets);
            }
        }
    }

    fn rows_targets(&mut self, known: bool, targets: Vec<Target>, variable_at: usize) -> Result<Vec<Target>> {
        if !known {
            self.at = variable_at;
            let message = "loop variable of loop over rows must be a record variable or list of scalar variables";
            return Err(SqlError::new(code::SYNTAX_ERROR, message).at(self.pos()));
        }
        for target in &targets {
            let at = std::mem::replace(&mut self.at, variable_at);
            self.may_change(target.slot)?;
            self.at = at;
        }
        Ok(targets)
    }

    fn integer_loop(&mut self, label: Option<String>, name: &str, reverse: bool) -> Result<StmtKind> {
        let low = {
            let end = self.find_end(|tok| *tok == Tok::DotDot, "..", "expression")?;
            self.expression_to(&end)?
        };
        self.advance();
        let is_end = |tok: &Tok<'_>| matches!(tok, Tok::Word(w) if w == "loop" || w == "by");
        let end = self.find_end(is_end, "LOOP", "expression")?;
        let high = self.expression_to(&end)?;
        let step = if self.eat("by") { Some(self.expression_before("loop")?) } else { None };
        if step.is_none() {
            self.expect("loop")?;
        }
        let variable: Slot = self.variable(name, VariableKind::Integer);
        self.place = self.names.declare(self.place, name, variable);
        let body = self.loop_body(label.as_deref())?;
        Ok(StmtKind::ForInteger { label, variable, bounds: Box::new([low, high]), step, reverse, body })
    }

    fn foreach_loop(&mut self, label: Option<String>) -> Result<StmtKind> {
        if self.target_here().is_none() {
            let message = "loop variable of FOREACH must be a known variable or list of variables";
            return Err(self.error(message));
        }
        let targets = self.target_list()?;
        let mut slice = 0;
        if self.eat("slice") {
            let Tok::Int(digits) = self.peek() else { return Err(self.error_here()) };
            slice = digits.parse().map_err(|_| self.error_here())?;
            self.advance();
        }
        self.expect("in")?;
        self.expect("array")?;
        let array = self.expression_before("loop")?;
        Ok(StmtKind::Foreach { targets, slice, array, body: self.loop_body(label.as_deref())?, label })
    }
}
