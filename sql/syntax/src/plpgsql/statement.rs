//! Blocks, and which statement comes.

use super::declare::is_reserved;
use super::names::Slot;
use super::parser::{End, Parser};
use super::tree::{
    Block, Destination, Fragment, Gives, Handlers, Part, Returned, Rows, Stmt, StmtKind, Target, VariableKind,
};
use crate::error::{Result, SqlError, code};
use crate::lexer::Tok;

impl Parser<'_> {
    /// `<<label>>`.
    pub(super) fn label(&mut self) -> Result<Option<String>> {
        if !self.eat_op("<<") {
            return Ok(None);
        }
        let label = self.name()?;
        if self.eat_op(">>") { Ok(Some(label)) } else { Err(self.error_here()) }
    }

    /// The label behind END.
    pub(super) fn end_label(&mut self, label: Option<&str>) -> Result<()> {
        if self.is_punct(b';') || *self.peek() == Tok::End {
            return Ok(());
        }
        let at = self.at;
        let given = self.name()?;
        let message = match label {
            Some(label) if label == given => return Ok(()),
            Some(label) => format!("end label \"{given}\" differs from block's label \"{label}\""),
            None => format!("end label \"{given}\" specified for unlabeled block"),
        };
        self.at = at;
        Err(self.error(message))
    }

    /// A block without its label, up to the label behind END.
    pub(super) fn block(&mut self, label: Option<String>) -> Result<Block> {
        let outer = self.place;
        self.place = self.names.level(outer, label.clone(), false);
        let variables = if self.eat("declare") { self.declarations()? } else { Vec::new() };
        self.expect("begin")?;
        let body = self.statements()?;
        let handlers = if self.is("exception") { Some(self.handlers()?) } else { None };
        self.expect("end")?;
        self.end_label(label.as_deref())?;
        self.place = outer;
        Ok(Block { label, variables, body, handlers })
    }

    fn handlers(&mut self) -> Result<Handlers> {
        self.expect("exception")?;
        let outer = self.place;
        let state = self.variable("sqlstate", VariableKind::Text);
        let message = self.variable("sqlerrm", VariableKind::Text);
        for slot in [state, message] {
            self.variables[slot].constant = true;
            let name = self.variables[slot].name.clone();
            self.place = self.names.declare(self.place, &name, slot);
        }
        let mut list = Vec::new();
        while self.eat("when") {
            let conditions = self.conditions()?;
            list.push((conditions, self.statements()?));
        }
        if list.is_empty() {
            return Err(self.error_here());
        }
        self.place = outer;
        Ok(Handlers { state, message, list })
    }

    /// Statements up to a word that ends them.
    pub(super) fn statements(&mut self) -> Result<Vec<Stmt>> {
        let mut out = Vec::new();
        loop {
            match self.peek() {
                Tok::End => return Ok(out),
                Tok::Word(w) if matches!(w.as_ref(), "end" | "else" | "elsif" | "elseif" | "when") => return Ok(out),
                // A variable may bear this name; a statement can't begin with it.
                Tok::Word(w) if w == "exception" && !self.is_assign_at(1) => return Ok(out),
                _ => out.push(self.nested(Self::stmt)?),
            }
        }
    }

    fn stmt(&mut self) -> Result<Stmt> {
        let labelled = self.is_op("<<");
        let label = self.label()?;
        let line = self.line();
        let kind = self.stmt_kind(labelled, label)?;
        Ok(Stmt { line, kind })
    }

    fn stmt_kind(&mut self, labelled: bool, label: Option<String>) -> Result<StmtKind> {
        let word = self.word().unwrap_or("").to_owned();
        match word.as_str() {
            "declare" | "begin" => {
                let block = self.block(label)?;
                self.semicolon()?;
                return Ok(StmtKind::Block(block));
            }
            "loop" | "while" | "for" | "foreach" => return self.loops(&word, label),
            _ if labelled => return Err(self.error_here()),
            "if" => return self.if_statement(),
            "case" => return self.case_statement(),
            "execute" => return self.execute_statement(),
            "null" => {
                self.advance();
                self.semicolon()?;
                return Ok(StmtKind::Null);
            }
            _ => {}
        }
        // A variable may have the name of a statement.
        let follows = self.is_assign_at(1) || matches!(self.peek_at(1), Tok::Punct(b'.' | b'['));
        if !is_reserved(&word) && (follows || matches!(self.peek(), Tok::Param(_))) {
            return self.assignment();
        }
        self.advance_over(&word)
    }

    /// A statement that begins with a word of its own.
    fn advance_over(&mut self, word: &str) -> Result<StmtKind> {
        match word {
            "exit" | "continue" => self.exit_statement(word == "exit"),
            "return" => self.return_statement(),
            "raise" => self.raise_statement(),
            "assert" => self.assert_statement(),
            "get" => self.diagnostics_statement(),
            "perform" => {
                self.advance();
                Ok(StmtKind::Perform(self.performed()?))
            }
            "commit" | "rollback" if !matches!(self.word_at(1), Some("to" | "prepared")) => {
                self.advance();
                let chain = self.chain()?;
                self.semicolon()?;
                Ok(if word == "commit" { StmtKind::Commit { chain } } else { StmtKind::Rollback { chain } })
            }
            "open" => self.open_statement(),
            "fetch" | "move" => self.fetch_statement(word == "move"),
            "close" => {
                self.advance();
                let cursor = self.cursor_variable()?;
                self.semicolon()?;
                Ok(StmtKind::Close(cursor))
            }
            _ => self.sql_statement(),
        }
    }

    fn chain(&mut self) -> Result<bool> {
        if !self.eat("and") {
            return Ok(false);
        }
        let no = self.eat("no");
        self.expect("chain")?;
        Ok(!no)
    }

    fn assignment(&mut self) -> Result<StmtKind> {
        let first = self.at;
        let Some((target, tokens)) = self.target_here() else { return Err(self.no_variable()) };
        self.may_change(target.slot)?;
        self.at += tokens;
        let mut parts: Vec<Part> = target.fields.into_iter().map(Part::Field).collect();
        loop {
            if self.eat_punct(b'[') {
                parts.push(self.subscript()?);
            } else if self.eat_punct(b'.') {
                parts.push(Part::Field(self.name()?));
            } else {
                break;
            }
        }
        if !self.is_assign_at(0) {
            return Err(self.error_here());
        }
        self.advance();
        let value = self.assigned(first)?;
        Ok(StmtKind::Assign { target: target.slot, parts, value })
    }

    fn subscript(&mut self) -> Result<Part> {
        let ends = |tok: &Tok<'_>| matches!(tok, Tok::Punct(b']' | b':'));
        let bound = |p: &mut Self| -> Result<Option<Fragment>> {
            if ends(p.peek()) {
                return Ok(None);
            }
            let end = p.find_end(ends, "]", "expression")?;
            p.expression_to(&end).map(Some)
        };
        let low = bound(self)?;
        let part = if self.eat_punct(b':') {
            Part::Slice(low, bound(self)?)
        } else {
            Part::Element(low.ok_or_else(|| self.error_here())?)
        };
        if self.eat_punct(b']') { Ok(part) } else { Err(self.error_here()) }
    }

    fn exit_statement(&mut self, ends: bool) -> Result<StmtKind> {
        let at = self.at;
        self.advance();
        let mut label = None;
        if !self.is_punct(b';') && !self.is("when") {
            let given = self.name()?;
            let Some(of_loop) = self.names.label(self.place, &given) else {
                self.at -= 1;
                let message =
                    format!("there is no label \"{given}\" attached to any block or loop enclosing this statement");
                return Err(self.error(message));
            };
            if !ends && !of_loop {
                self.at -= 1;
                return Err(self.error(format!("block label \"{given}\" cannot be used in CONTINUE")));
            }
            label = Some(given);
        }
        if label.is_none() && !self.names.in_loop(self.place) {
            self.at = at;
            return Err(self.error(match ends {
                true => "EXIT cannot be used outside a loop, unless it has a label",
                false => "CONTINUE cannot be used outside a loop",
            }));
        }
        let when = if self.eat("when") {
            Some(self.expression_before_semicolon()?)
        } else {
            self.semicolon()?;
            None
        };
        Ok(StmtKind::Exit { ends, label, when })
    }

    /// The cursor stands at a variable and the semicolon follows.
    fn lone_variable(&self) -> Option<Slot> {
        let (target, tokens) = self.target_here()?;
        let lone = target.fields.is_empty() && *self.peek_at(tokens) == Tok::Punct(b';');
        lone.then_some(target.slot)
    }

    fn returned(&mut self) -> Result<Returned> {
        if let Some(slot) = self.lone_variable() {
            while !self.eat_punct(b';') {
                self.advance();
            }
            return Ok(Returned::Variable(slot));
        }
        Ok(Returned::Value(self.expression_before_semicolon()?))
    }

    fn return_statement(&mut self) -> Result<StmtKind> {
        let pos = self.pos();
        self.expect("return")?;
        if self.is("next") || self.is("query") {
            let next = self.is("next");
            if !self.owner.gives_rows {
                let what = if next { "NEXT" } else { "QUERY" };
                let message = format!("cannot use RETURN {what} in a non-SETOF function");
                return Err(SqlError::new(code::DATATYPE_MISMATCH, message).at(pos));
            }
            self.advance();
            return if next { self.return_next() } else { self.return_query() };
        }
        let refused = |p: &Self, message: &str| Err(SqlError::new(code::DATATYPE_MISMATCH, message).at(p.pos()));
        let empty = self.is_punct(b';');
        if self.owner.gives_rows {
            if !empty {
                let hint = "Use RETURN NEXT or RETURN QUERY.";
                let error =
                    SqlError::new(code::DATATYPE_MISMATCH, "RETURN cannot have a parameter in function returning set");
                return Err(error.hint(hint).at(self.pos()));
            }
        } else if self.owner.has_outputs {
            if !empty {
                return refused(self, "RETURN cannot have a parameter in function with OUT parameters");
            }
            self.advance();
            return Ok(StmtKind::Return(Returned::Outputs));
        } else if self.owner.gives != Gives::Value {
            if !empty {
                let what =
                    if self.owner.gives == Gives::ByProcedure { "a procedure" } else { "function returning void" };
                return refused(self, &format!("RETURN cannot have a parameter in {what}"));
            }
        } else if empty {
            return Err(self.error_near("missing expression"));
        } else {
            return Ok(StmtKind::Return(self.returned()?));
        }
        self.semicolon()?;
        Ok(StmtKind::Return(Returned::Nothing))
    }

    fn return_next(&mut self) -> Result<StmtKind> {
        if self.owner.has_outputs {
            if !self.is_punct(b';') {
                let message = "RETURN NEXT cannot have a parameter in function with OUT parameters";
                return Err(SqlError::new(code::DATATYPE_MISMATCH, message).at(self.pos()));
            }
            self.advance();
            return Ok(StmtKind::ReturnNext(Returned::Outputs));
        }
        Ok(StmtKind::ReturnNext(self.returned()?))
    }

    fn return_query(&mut self) -> Result<StmtKind> {
        if self.eat("execute") {
            let query = self.expression_in_list(&["using"])?;
            let values = self.using()?;
            self.semicolon()?;
            return Ok(StmtKind::ReturnQuery(Rows::Dynamic(query, values)));
        }
        let end = self.find_end(|tok| *tok == Tok::Punct(b';'), ";", "statement")?;
        let query = self.statement_between(self.at, end.token)?;
        self.at = end.token;
        self.semicolon()?;
        Ok(StmtKind::ReturnQuery(Rows::Query(query)))
    }

    /// USING of EXECUTE, if it is there; the cursor then stands at what follows.
    pub(super) fn using(&mut self) -> Result<Vec<Fragment>> {
        let mut values = Vec::new();
        if self.eat("using") {
            loop {
                values.push(self.expression_in_list(&["into", "loop"])?);
                if !self.eat_punct(b',') {
                    break;
                }
            }
        }
        Ok(values)
    }

    fn execute_statement(&mut self) -> Result<StmtKind> {
        self.expect("execute")?;
        let ends = |tok: &Tok<'_>| match tok {
            Tok::Punct(b';') => true,
            Tok::Word(w) => matches!(w.as_ref(), "into" | "using"),
            _ => false,
        };
        let end = self.find_end(ends, "INTO", "expression")?;
        let query = self.expression_to(&end)?;
        let (mut into, mut values) = (None, Vec::new());
        loop {
            if self.is("into") && into.is_none() {
                self.advance();
                into = Some(self.destination()?);
            } else if self.is("using") && values.is_empty() {
                values = self.using()?;
            } else {
                self.semicolon()?;
                return Ok(StmtKind::Execute { query, into, values });
            }
        }
    }

    /// Behind INTO.
    pub(super) fn destination(&mut self) -> Result<Destination> {
        let strict = self.eat("strict");
        Ok(Destination { strict, targets: self.target_list()? })
    }

    /// Variables with commas between.
    pub(super) fn target_list(&mut self) -> Result<Vec<Target>> {
        let mut targets = vec![self.target()?];
        while self.eat_punct(b',') {
            if let Some(first) = targets.first()
                && self.is_record(first.slot)
                && first.fields.is_empty()
            {
                let message = "record variable cannot be part of multiple-item INTO list";
                return Err(self.error(message));
            }
            targets.push(self.target()?);
        }
        Ok(targets)
    }

    fn is_record(&self, slot: Slot) -> bool {
        matches!(self.variables[slot].kind, VariableKind::Record | VariableKind::RowOf(..))
    }

    /// A statement of SQL, with or without INTO.
    fn sql_statement(&mut self) -> Result<StmtKind> {
        let first = self.at;
        if !matches!(self.peek(), Tok::Word(_) | Tok::Punct(b'(')) {
            return Err(self.error_here());
        }
        let (mut into, mut cut) = (None, None);
        let (mut depth, mut token) = (0_u32, self.at);
        let end = loop {
            match self.kind_of(token) {
                Tok::Punct(b';') if depth == 0 => break End { token },
                Tok::End => return Err(self.at_token(token).error_near("syntax error")),
                Tok::Punct(b'(') => depth += 1,
                Tok::Punct(b')') => depth = depth.saturating_sub(1),
                Tok::Word(w) if w == "into" => {
                    let before =
                        token.checked_sub(1).filter(|before| *before >= first).map(|before| self.kind_of(before));
                    let of_sql = matches!(before, Some(Tok::Word(w)) if matches!(w.as_ref(), "insert" | "merge"));
                    if !of_sql {
                        if into.is_some() {
                            return Err(self.at_token(token).error("INTO specified more than once"));
                        }
                        self.at = token + 1;
                        into = Some(self.destination()?);
                        cut = Some((token, self.at));
                        token = self.at;
                        continue;
                    }
                }
                _ => {}
            }
            token += 1;
        };
        self.at = first;
        let fragment = match cut {
            None => self.statement_between(first, end.token)?,
            Some(cut) => self.statement_without((first, end.token), cut)?,
        };
        self.at = end.token;
        self.semicolon()?;
        Ok(StmtKind::Sql { fragment, into })
    }

    /// The cursor at another token, for an error.
    fn at_token(&mut self, token: usize) -> &Self {
        self.at = token;
        self
    }
}
