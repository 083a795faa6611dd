//! The cursor, and pieces of SQL text.

use super::names::{Names, Place, Slot};
use super::tree::{Body, Conflict, Fragment, FragmentKind, Owner, Target, Variable, VariableKind};
use crate::ast::{QueryBody, TypeName};
use crate::error::{Pos, Result, SqlError, code};
use crate::lexer::{self, Tok, Token};
use crate::parser as sql;
use crate::stmt::Statement;
use std::cell::Cell;
use std::sync::Arc;

/// How deep blocks and statements may nest.
const NESTING_MAX: u32 = 500;

/// The word that an expression is parsed behind.
pub(super) const SELECT: &str = "SELECT ";

pub(super) struct Parser<'a> {
    pub(super) text: &'a str,
    tokens: Vec<Token<'a>>,
    pub(super) at: usize,
    pub(super) owner: &'a Owner,
    pub(super) names: Names,
    pub(super) place: Place,
    pub(super) variables: Vec<Variable>,
    fragments: usize,
    depth: u32,
    /// A place in the text, and its line.
    known_line: Cell<(usize, u32)>,
}

/// Where a piece of text ends.
pub(super) struct End {
    /// The index of the token that ends it.
    pub(super) token: usize,
}

impl<'a> Parser<'a> {
    pub(super) fn new(text: &'a str, owner: &'a Owner) -> Result<Self> {
        Ok(Self {
            text,
            tokens: lexer::tokens(text)?,
            at: 0,
            owner,
            names: Names::default(),
            place: 0,
            variables: Vec::new(),
            fragments: 0,
            depth: 0,
            known_line: Cell::new((0, 1)),
        })
    }

    pub(super) fn body(mut self) -> Result<Body> {
        self.place = self.names.level(0, self.owner.function.clone(), false);
        let owner = self.owner;
        for (number, name) in owner.arguments.iter().enumerate() {
            let shown = name.clone().unwrap_or_else(|| format!("${}", number + 1));
            let slot = self.variable(&shown, VariableKind::Argument(number));
            if name.is_some() {
                self.place = self.names.declare(self.place, &shown, slot);
            }
        }
        let found = self.variable("found", VariableKind::Boolean);
        self.place = self.names.declare(self.place, "found", found);
        let conflict = self.options()?;
        let label = self.label()?;
        let block = self.block(label)?;
        self.eat_punct(b';');
        if *self.peek() != Tok::End {
            return Err(self.error_here());
        }
        let (variables, names) = (self.variables, Arc::new(self.names));
        Ok(Body {
            block,
            variables,
            arguments: owner.arguments.len(),
            names,
            conflict,
            fragments: self.fragments,
            found,
        })
    }

    /// `#variable_conflict` and others before the block.
    fn options(&mut self) -> Result<Conflict> {
        let mut conflict = Conflict::default();
        while self.is_op("#") {
            self.at += 1;
            if self.eat("variable_conflict") {
                conflict = match self.word() {
                    Some("error") => Conflict::Error,
                    Some("use_variable") => Conflict::Variable,
                    Some("use_column") => Conflict::Column,
                    _ => return Err(self.error_here()),
                };
                self.at += 1;
            } else if let Some(word @ ("option" | "print_strict_params")) = self.word() {
                return Err(SqlError::unsupported(format!("#{word}")).at(self.pos()));
            } else {
                return Err(self.error_here());
            }
        }
        Ok(conflict)
    }

    /// Adds a variable that has no name yet.
    pub(super) fn variable(&mut self, name: &str, kind: VariableKind) -> Slot {
        let line = self.line();
        let name = name.to_owned();
        self.variables.push(Variable {
            name,
            line,
            kind,
            constant: false,
            not_null: false,
            default: None,
            query: None,
        });
        self.variables.len() - 1
    }

    /// Runs `f` one level deeper.
    pub(super) fn nested<T>(&mut self, f: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        clearway_base::memory::check()?;
        if self.depth >= NESTING_MAX {
            return Err(SqlError::new(code::STATEMENT_TOO_COMPLEX, "stack depth limit exceeded").at(self.pos()));
        }
        self.depth += 1;
        let out = clearway_base::stack::deeper(|| f(self));
        self.depth -= 1;
        out
    }

    pub(super) fn peek(&self) -> &Tok<'a> {
        self.peek_at(0)
    }

    pub(super) fn peek_at(&self, ahead: usize) -> &Tok<'a> {
        &self.tokens[(self.at + ahead).min(self.tokens.len() - 1)].kind
    }

    pub(super) fn advance(&mut self) {
        self.at = (self.at + 1).min(self.tokens.len() - 1);
    }

    pub(super) fn pos(&self) -> Pos {
        self.pos_of(self.at)
    }

    fn pos_of(&self, token: usize) -> Pos {
        self.tokens[token.min(self.tokens.len() - 1)].start
    }

    /// The line of the token at the cursor, from 1.
    pub(super) fn line(&self) -> u32 {
        let to = (self.pos() as usize).min(self.text.len());
        let (known, line) = Some(self.known_line.get()).filter(|(known, _)| *known <= to).unwrap_or((0, 1));
        let between = &self.text.as_bytes()[known..to];
        let line = line + between.iter().filter(|b| **b == b'\n').count() as u32;
        self.known_line.set((to, line));
        line
    }

    pub(super) fn word(&self) -> Option<&str> {
        self.word_at(0)
    }

    pub(super) fn word_at(&self, ahead: usize) -> Option<&str> {
        match self.peek_at(ahead) {
            Tok::Word(w) => Some(w),
            _ => None,
        }
    }

    pub(super) fn is(&self, word: &str) -> bool {
        self.word() == Some(word)
    }

    pub(super) fn eat(&mut self, word: &str) -> bool {
        let hit = self.is(word);
        if hit {
            self.advance();
        }
        hit
    }

    pub(super) fn expect(&mut self, word: &str) -> Result<()> {
        if self.eat(word) { Ok(()) } else { Err(self.error_here()) }
    }

    pub(super) fn is_punct(&self, b: u8) -> bool {
        *self.peek() == Tok::Punct(b)
    }

    pub(super) fn eat_punct(&mut self, b: u8) -> bool {
        let hit = self.is_punct(b);
        if hit {
            self.advance();
        }
        hit
    }

    pub(super) fn semicolon(&mut self) -> Result<()> {
        if self.eat_punct(b';') { Ok(()) } else { Err(self.error_here()) }
    }

    pub(super) fn is_op(&self, op: &str) -> bool {
        matches!(self.peek(), Tok::Op(o) if *o == op)
    }

    pub(super) fn eat_op(&mut self, op: &str) -> bool {
        let hit = self.is_op(op);
        if hit {
            self.advance();
        }
        hit
    }

    /// Whether `:=` or `=` stands there.
    pub(super) fn is_assign_at(&self, ahead: usize) -> bool {
        matches!(self.peek_at(ahead), Tok::ColonEquals | Tok::Op("="))
    }

    /// A word or a quoted name.
    pub(super) fn name(&mut self) -> Result<String> {
        let name = match self.peek() {
            Tok::Word(w) => w.to_string(),
            Tok::Quoted(q) => q.to_string(),
            _ => return Err(self.error_here()),
        };
        self.advance();
        Ok(name)
    }

    /// `a.b.c` at the cursor, not taken; empty: no name stands there.
    pub(super) fn dotted(&self) -> Vec<String> {
        let mut parts = Vec::new();
        let mut ahead = 0;
        loop {
            match self.peek_at(ahead) {
                Tok::Word(w) => parts.push(w.to_string()),
                Tok::Quoted(q) => parts.push(q.to_string()),
                _ => return parts,
            }
            if *self.peek_at(ahead + 1) != Tok::Punct(b'.') {
                return parts;
            }
            ahead += 2;
        }
    }

    /// The variable at the cursor with the fields that are named of it; not taken.
    pub(super) fn target_here(&self) -> Option<(Target, usize)> {
        if let Tok::Param(n) = self.peek() {
            let slot = (*n as usize).checked_sub(1).filter(|slot| *slot < self.owner.arguments.len())?;
            return Some((Target { slot, fields: Vec::new() }, 1));
        }
        let parts = self.dotted();
        let found = self.names.find(self.place, &parts)?;
        let fields = parts[found.used..].to_vec();
        Some((Target { slot: found.slot, fields }, parts.len() * 2 - 1))
    }

    /// A variable or a field of one.
    pub(super) fn target(&mut self) -> Result<Target> {
        let Some((target, tokens)) = self.target_here() else { return Err(self.no_variable()) };
        self.may_change(target.slot)?;
        self.at += tokens;
        Ok(target)
    }

    /// Refuses a constant.
    pub(super) fn may_change(&self, slot: Slot) -> Result<()> {
        let variable = &self.variables[slot];
        if variable.constant {
            let message = format!("variable \"{}\" is declared CONSTANT", variable.name);
            return Err(SqlError::new("22005", message).at(self.pos()));
        }
        Ok(())
    }

    /// The error for a name that is none of a variable.
    pub(super) fn no_variable(&self) -> SqlError {
        let parts = self.dotted();
        if parts.is_empty() {
            return self.error_here();
        }
        self.error(format!("\"{}\" is not a known variable", parts.join(".")))
    }

    /// 42601 with this message, at the cursor.
    pub(super) fn error(&self, message: impl Into<String>) -> SqlError {
        SqlError::new(code::SYNTAX_ERROR, message).at(self.pos())
    }

    /// An error of no place, as PostgreSQL gives it while it reads the body.
    pub(super) fn unplaced(&self, state: &'static str, message: impl Into<String>) -> SqlError {
        let name = self.owner.function.as_deref().unwrap_or("inline_code_block");
        let context = format!("compilation of PL/pgSQL function \"{name}\" near line {}", self.line());
        SqlError::new(state, message).within(context)
    }

    pub(super) fn error_here(&self) -> SqlError {
        self.error_near("syntax error")
    }

    /// `message at or near` the token at the cursor.
    pub(super) fn error_near(&self, message: &str) -> SqlError {
        let token = &self.tokens[self.at];
        if token.kind == Tok::End {
            let error = SqlError::new(code::SYNTAX_ERROR, format!("{message} at end of input"));
            return error.at(self.text.len() as Pos);
        }
        let near = self.text.get(token.start as usize..token.end as usize).unwrap_or("");
        self.error(format!("{message} at or near \"{near}\""))
    }

    /// Looks for the first token outside of parentheses that `ends` accepts, from the cursor. `wanted` names it.
    pub(super) fn find_end(&self, ends: impl Fn(&Tok<'a>) -> bool, wanted: &str, what: &str) -> Result<End> {
        let mut depth = 0_i32;
        let mut token = self.at;
        loop {
            let kind = &self.tokens[token].kind;
            if depth == 0 && ends(kind) {
                break;
            }
            match kind {
                Tok::Punct(b'(' | b'[') => depth += 1,
                Tok::Punct(b')' | b']') if depth == 0 => return Err(self.near(token, "mismatched parentheses")),
                Tok::Punct(b')' | b']') => depth -= 1,
                Tok::Punct(b';') | Tok::End if depth != 0 => return Err(self.near(token, "mismatched parentheses")),
                Tok::Punct(b';') | Tok::End => {
                    let message = format!("missing \"{wanted}\" at end of SQL {what}");
                    return Err(SqlError::new(code::SYNTAX_ERROR, message).at(self.pos_of(token)));
                }
                _ => {}
            }
            token += 1;
        }
        if token == self.at {
            return Err(
                self.near(token, if what == "expression" { "missing expression" } else { "missing SQL statement" })
            );
        }
        Ok(End { token })
    }

    fn near(&self, token: usize, message: &str) -> SqlError {
        let token = &self.tokens[token];
        if token.kind == Tok::End {
            let error = SqlError::new(code::SYNTAX_ERROR, format!("{message} at end of input"));
            return error.at(self.text.len() as Pos);
        }
        let near = self.text.get(token.start as usize..token.end as usize).unwrap_or("");
        SqlError::new(code::SYNTAX_ERROR, format!("{message} at or near \"{near}\"")).at(token.start)
    }

    /// The text between two tokens, without what surrounds it.
    pub(super) fn text_between(&self, first: usize, end: usize) -> &'a str {
        let start = self.pos_of(first) as usize;
        let end = self.tokens[end.max(1) - 1].end as usize;
        self.text.get(start..end.max(start)).unwrap_or("")
    }

    /// The piece from token `first` to token `end` as SQL; `prefix` stands before it where it is parsed, and is part of the shown text if
    /// `shown`.
    fn fragment(&mut self, range: (usize, usize), prefix: &str, shown: &str, kind: FragmentKind) -> Result<Fragment> {
        let (first, end) = range;
        let (start, text) = (i64::from(self.pos_of(first)), self.text_between(first, end).to_owned());
        self.fragment_of(&text, start, (prefix, shown), kind, self.is_plain(first, end))
    }

    /// Whether names stand between two tokens, and no word that only queries have.
    fn is_plain(&self, first: usize, end: usize) -> bool {
        let tokens = &self.tokens[first..end];
        let of_query = |w: &str| matches!(w, "select" | "from" | "values");
        let named = |t: &Token<'_>| matches!(t.kind, Tok::Word(_) | Tok::Quoted(_) | Tok::Param(_));
        tokens.iter().any(named) && !tokens.iter().any(|t| matches!(&t.kind, Tok::Word(w) if of_query(w)))
    }

    /// A text that stands at `start` of the body.
    pub(super) fn fragment_of(
        &mut self,
        text: &str,
        start: i64,
        (prefix, shown): (&str, &str),
        kind: FragmentKind,
        plain: bool,
    ) -> Result<Fragment> {
        let parsed_text = format!("{prefix}{text}");
        let before = prefix.len() as i64;
        let here = |e: SqlError| match e.fields().at {
            Some(at) => e.nowhere().at(Pos::try_from(i64::from(at) - before + start).unwrap_or(0)),
            None => e,
        };
        let mut parsed = sql::parse(&parsed_text).map_err(here)?;
        let statement = match parsed.pop() {
            Some(only) if parsed.is_empty() => only.statement,
            _ => return Err(self.error_here()),
        };
        if kind != FragmentKind::Statement && !matches!(statement, Statement::Query(_)) {
            return Err(SqlError::new(code::SYNTAX_ERROR, "syntax error in expression").at(start as Pos));
        }
        let simple = plain && kind != FragmentKind::Statement && is_one_value(&statement);
        let id = self.fragments;
        self.fragments += 1;
        let (text, shift) = match shown {
            "" => (text.to_owned(), -before),
            shown => (format!("{shown}{text}"), shown.len() as i64 - before),
        };
        let statement = Arc::new(statement);
        Ok(Fragment { id, text: text.into(), statement, shift, at: self.place, kind, simple })
    }

    /// The expression up to token `end`; the cursor then stands there.
    pub(super) fn expression_to(&mut self, end: &End) -> Result<Fragment> {
        let first = self.at;
        let fragment = self.fragment((first, end.token), SELECT, "", FragmentKind::Expression)?;
        self.at = end.token;
        Ok(fragment)
    }

    /// The expression before a word, which is taken.
    pub(super) fn expression_before(&mut self, word: &str) -> Result<Fragment> {
        let is_word = |tok: &Tok<'_>| matches!(tok, Tok::Word(w) if w == word);
        let end = self.find_end(is_word, &word.to_ascii_uppercase(), "expression")?;
        let expression = self.expression_to(&end)?;
        self.advance();
        Ok(expression)
    }

    /// The expression before the semicolon, which is taken.
    pub(super) fn expression_before_semicolon(&mut self) -> Result<Fragment> {
        let end = self.find_end(|tok| *tok == Tok::Punct(b';'), ";", "expression")?;
        let expression = self.expression_to(&end)?;
        self.advance();
        Ok(expression)
    }

    /// The expression before a comma or one of `words` or the semicolon; the cursor then stands at that.
    pub(super) fn expression_in_list(&mut self, words: &[&str]) -> Result<Fragment> {
        let ends = |tok: &Tok<'_>| match tok {
            Tok::Punct(b',' | b';') => true,
            Tok::Word(w) => words.contains(&w.as_ref()),
            _ => false,
        };
        let end = self.find_end(ends, ";", "expression")?;
        self.expression_to(&end)
    }

    /// The value of an assignment that began at token `first`; the cursor stands behind `:=`.
    pub(super) fn assigned(&mut self, first: usize) -> Result<Fragment> {
        let end = self.find_end(|tok| *tok == Tok::Punct(b';'), ";", "expression")?;
        let start = self.pos_of(first) as usize;
        let shown = self.text.get(start..self.pos() as usize).unwrap_or("").to_owned();
        let fragment = self.fragment((self.at, end.token), SELECT, &shown, FragmentKind::Assignment)?;
        self.at = end.token;
        self.semicolon()?;
        Ok(fragment)
    }

    /// PERFORM: the query before the semicolon.
    pub(super) fn performed(&mut self) -> Result<Fragment> {
        let end = self.find_end(|tok| *tok == Tok::Punct(b';'), ";", "statement")?;
        let fragment = self.fragment((self.at, end.token), SELECT, SELECT, FragmentKind::Statement)?;
        self.at = end.token;
        self.semicolon()?;
        Ok(fragment)
    }

    /// The statement between two tokens.
    pub(super) fn statement_between(&mut self, first: usize, end: usize) -> Result<Fragment> {
        self.fragment((first, end), "", "", FragmentKind::Statement)
    }

    /// The statement between two tokens, with blanks for the text of another two.
    pub(super) fn statement_without(&mut self, (first, end): (usize, usize), cut: (usize, usize)) -> Result<Fragment> {
        let start = self.pos_of(first);
        let mut text = self.text_between(first, end).to_owned();
        let from = (self.pos_of(cut.0) - start) as usize;
        let to = ((self.pos_of(cut.1)) - start) as usize;
        let to = to.min(text.len());
        text.replace_range(from..to, &" ".repeat(to - from));
        let text = text.trim_end().to_owned();
        self.fragment_of(&text, i64::from(start), ("", ""), FragmentKind::Statement, false)
    }

    /// A type between the cursor and a token.
    pub(super) fn type_to(&mut self, end: &End) -> Result<TypeName> {
        let start = self.pos();
        let text = self.text_between(self.at, end.token);
        let here = |e: SqlError| match e.fields().at {
            Some(at) => e.nowhere().at(at + start),
            None => e,
        };
        let mut ty = sql::parse_type_name(text).map_err(here)?;
        ty.name.pos += start;
        self.at = end.token;
        Ok(ty)
    }

    /// The kind of the token at an index.
    pub(super) fn kind_of(&self, token: usize) -> &Tok<'a> {
        &self.tokens[token.min(self.tokens.len() - 1)].kind
    }
}

/// Whether a query is a target list of one value and nothing else.
fn is_one_value(statement: &Statement) -> bool {
    let Statement::Query(q) = statement else { return false };
    let bare = q.with.is_none() && q.order_by.is_empty() && q.limit.is_none() && q.offset.is_none();
    bare && matches!(&q.body, QueryBody::Select(s) if s.targets.len() == 1 && s.filter.is_none() && s.group_by.is_empty())
}
