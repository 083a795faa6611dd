//! The parser's cursor, its entry points, and names.
//!
//! The parser looks one token ahead; the few places that look further say so. An error names the token at the cursor, which is where
//! PostgreSQL's LALR parser stops too.

mod alter;
mod constraint;
mod create;
mod create_operator;
mod dml;
mod expr;
mod extension;
mod grant;
mod into;
mod merge;
mod mysql;
mod operators;
mod options;
mod policy;
mod primary;
mod role;
mod routine;
mod select;
mod statement;
mod table;
mod transaction;
mod types;
mod user_type;
mod utility;
mod window;

use super::ast::{Expr, ExprKind, QualName, TypeName};
use super::keywords::{self, Category};
use super::lexer::{self, Tok, Token};
use super::stmt::Statement;
use crate::error::{Pos, Result, SqlError, code};
use clearway_base::stack;
use std::ops::Range;

/// How deep parentheses and subqueries may nest.
pub const NESTING_MAX: u32 = 1_500;
/// How high an expression may grow, the heights of subqueries included.
pub const HEIGHT_MAX: u16 = 3_000;

/// How many items a FROM may have: a join of them is a tree of that height.
pub const ITEMS_MAX: usize = 1_000;

pub use routine::{atomic_text, statements as routine_statements};

/// A statement with its bytes in the text.
#[derive(Clone, Debug, PartialEq)]
pub struct Parsed {
    /// The statement.
    pub statement: Statement,
    /// From its first token to its last; without the semicolon.
    pub range: Range<usize>,
    /// The highest `$n` inside.
    pub params: u32,
}

/// Parses the text of one Query or Parse message: statements between semicolons, empty ones left out.
pub fn parse(sql: &str) -> Result<Vec<Parsed>> {
    Parser::new(sql)?.all_statements()
}

/// The operations of a text, each by the place of its operator, with the bytes from its first operand to its last.
///
/// # Errors
/// As [`parse`], or as [`parse_expression`] for an expression.
pub fn operations(sql: &str, is_expression: bool) -> Result<Vec<(Pos, Range<usize>)>> {
    let mut p = Parser::new(sql)?;
    p.operations = Some(Vec::new());
    match is_expression {
        true => p.expr().map(drop)?,
        false => p.all_statements().map(drop)?,
    }
    Ok(p.operations.unwrap_or_default())
}

/// Parses one expression, such as the catalog keeps for a default.
pub fn parse_expression(sql: &str) -> Result<Expr> {
    let mut p = Parser::new(sql)?;
    let expr = p.expr()?;
    if *p.peek() == Tok::End { Ok(expr) } else { Err(p.error_here()) }
}

/// Parses the name of a type, as `regtype` takes it.
pub fn parse_type_name(sql: &str) -> Result<TypeName> {
    let mut p = Parser::new(sql)?;
    let ty = p.type_name()?;
    if *p.peek() == Tok::End { Ok(ty) } else { Err(p.error_here()) }
}

/// The table that a query's INTO names.
struct IntoTable {
    name: super::ast::QualName,
    persistence: super::ddl::Persistence,
}

pub(super) struct Parser<'a> {
    sql: &'a str,
    tokens: Vec<Token<'a>>,
    at: usize,
    depth: u32,
    height: u16,
    /// The table that the query being read is to make.
    into: Option<IntoTable>,
    /// See [`operations`]; none: they are not wanted.
    operations: Option<Vec<(Pos, Range<usize>)>>,
}

impl<'a> Parser<'a> {
    fn new(sql: &'a str) -> Result<Self> {
        Ok(Self { sql, tokens: lexer::tokens(sql)?, at: 0, depth: 0, height: 0, into: None, operations: None })
    }

    fn all_statements(&mut self) -> Result<Vec<Parsed>> {
        let mut out = Vec::new();
        loop {
            while self.eat_punct(b';') {}
            if *self.peek() == Tok::End {
                return Ok(out);
            }
            let first = self.at;
            let statement = self.whole_statement()?;
            if *self.peek() != Tok::End && !self.is_punct(b';') {
                return Err(self.error_here());
            }
            let tokens = &self.tokens[first..self.at];
            let start = tokens.first().map_or(0, |t| t.start as usize);
            let end = tokens.last().map_or(start, |t| t.end as usize);
            let params = tokens.iter().map(|t| if let Tok::Param(n) = t.kind { n } else { 0 }).max().unwrap_or(0);
            out.push(Parsed { statement, range: start..end, params });
        }
    }

    /// An operation from a token to the last one taken.
    fn note_operation(&mut self, first: usize, pos: Pos) {
        let range = self.tokens[first].start as usize..self.tokens[self.at.max(1) - 1].end as usize;
        self.operations.iter_mut().for_each(|list| list.push((pos, range.clone())));
    }

    /// The token at the cursor. The list ends with `End` and the cursor never passes it.
    fn peek(&self) -> &Tok<'a> {
        &self.tokens[self.at].kind
    }

    fn peek_at(&self, ahead: usize) -> &Tok<'a> {
        &self.tokens[(self.at + ahead).min(self.tokens.len() - 1)].kind
    }

    fn pos(&self) -> Pos {
        self.tokens[self.at].start
    }

    fn advance(&mut self) {
        self.at = (self.at + 1).min(self.tokens.len() - 1);
    }

    /// The text from token `first` to the last one taken.
    fn text_from(&self, first: usize) -> String {
        let end = self.tokens[self.at.max(1) - 1].end as usize;
        let start = self.tokens[first].start as usize;
        self.sql.get(start..end).unwrap_or("").to_owned()
    }

    /// `syntax error at or near` the token at the cursor.
    fn error_here(&self) -> SqlError {
        let t = &self.tokens[self.at];
        if t.kind == Tok::End {
            return SqlError::new(code::SYNTAX_ERROR, "syntax error at end of input").at(self.sql.len() as Pos);
        }
        let near = self.sql.get(t.start as usize..t.end as usize).unwrap_or("");
        SqlError::new(code::SYNTAX_ERROR, format!("syntax error at or near \"{near}\"")).at(t.start)
    }

    /// SYN-3: the error of a feature that the parser recognises and does not support.
    fn unsupported(&self, what: &str) -> SqlError {
        SqlError::unsupported(what).at(self.pos())
    }

    fn word_at(&self, ahead: usize) -> Option<&str> {
        match self.peek_at(ahead) {
            Tok::Word(w) => Some(w),
            _ => None,
        }
    }

    fn is(&self, word: &str) -> bool {
        matches!(self.peek(), Tok::Word(w) if w == word)
    }

    fn is_any(&self, words: &[&str]) -> bool {
        matches!(self.peek(), Tok::Word(w) if words.contains(&w.as_ref()))
    }

    fn is_seq(&self, words: &[&str]) -> bool {
        words.iter().enumerate().all(|(i, w)| self.word_at(i) == Some(w))
    }

    fn eat(&mut self, word: &str) -> bool {
        let hit = self.is(word);
        if hit {
            self.advance();
        }
        hit
    }

    /// Takes all of `words` or none.
    fn eat_seq(&mut self, words: &[&str]) -> bool {
        let hit = self.is_seq(words);
        if hit {
            words.iter().for_each(|_| self.advance());
        }
        hit
    }

    fn expect(&mut self, word: &str) -> Result<()> {
        if self.eat(word) { Ok(()) } else { Err(self.error_here()) }
    }

    fn expect_seq(&mut self, words: &[&str]) -> Result<()> {
        words.iter().try_for_each(|w| self.expect(w))
    }

    fn is_punct(&self, b: u8) -> bool {
        *self.peek() == Tok::Punct(b)
    }

    fn eat_punct(&mut self, b: u8) -> bool {
        let hit = self.is_punct(b);
        if hit {
            self.advance();
        }
        hit
    }

    fn expect_punct(&mut self, b: u8) -> Result<()> {
        if self.eat_punct(b) { Ok(()) } else { Err(self.error_here()) }
    }

    fn is_op(&self, op: &str) -> bool {
        matches!(self.peek(), Tok::Op(o) if *o == op)
    }

    fn eat_op(&mut self, op: &str) -> bool {
        let hit = self.is_op(op);
        if hit {
            self.advance();
        }
        hit
    }

    fn comma_list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let mut out = vec![item(self)?];
        while self.eat_punct(b',') {
            out.push(item(self)?);
        }
        Ok(out)
    }

    fn paren_list<T>(&mut self, item: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        self.expect_punct(b'(')?;
        let out = self.comma_list(item)?;
        self.expect_punct(b')')?;
        Ok(out)
    }

    /// Runs `f` one level deeper (SYN-2).
    fn nested<T>(&mut self, f: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        clearway_base::memory::check()?;
        if self.depth >= NESTING_MAX {
            return Err(too_complex().at(self.pos()));
        }
        self.depth += 1;
        let out = stack::deeper(|| f(self));
        self.depth -= 1;
        out
    }

    /// Builds a node and checks its height (SYN-2).
    fn node(&mut self, kind: ExprKind, pos: Pos) -> Result<Expr> {
        let height = operators::height_below(&kind).saturating_add(1);
        if height > HEIGHT_MAX {
            return Err(too_complex().at(pos));
        }
        self.height = self.height.max(height);
        Ok(Expr { kind: Box::new(kind), pos, height })
    }

    /// A word or quoted name whose category `allowed` accepts (none: not a keyword).
    fn name_where(&mut self, allowed: impl Fn(Option<Category>) -> bool) -> Result<String> {
        let name = match self.peek() {
            Tok::Quoted(q) => q.to_string(),
            Tok::Word(w) if allowed(keywords::lookup(w).map(|k| k.0)) => w.to_string(),
            _ => return Err(self.error_here()),
        };
        self.advance();
        Ok(name)
    }

    fn is_col_id(&self) -> bool {
        match self.peek() {
            Tok::Quoted(_) => true,
            Tok::Word(w) => is_col_id(keywords::lookup(w).map(|k| k.0)),
            _ => false,
        }
    }

    /// gram.y's ColId: the name of a column, table and most else.
    fn col_id(&mut self) -> Result<String> {
        self.name_where(is_col_id)
    }

    /// gram.y's ColLabel: any word.
    fn col_label(&mut self) -> Result<String> {
        self.name_where(|_| true)
    }

    /// gram.y's NonReservedWord.
    fn non_reserved(&mut self) -> Result<String> {
        self.name_where(|c| c != Some(Category::Reserved))
    }

    fn col_id_at(&mut self) -> Result<(String, Pos)> {
        let pos = self.pos();
        Ok((self.col_id()?, pos))
    }

    fn qual_name(&mut self) -> Result<QualName> {
        let pos = self.pos();
        let mut parts = vec![self.col_id()?];
        while self.is_punct(b'.') {
            self.advance();
            parts.push(self.col_label()?);
        }
        if parts.len() > 3 {
            let message = format!("improper qualified name (too many dotted names): {}", parts.join("."));
            return Err(SqlError::new(code::SYNTAX_ERROR, message).at(pos));
        }
        Ok(QualName { parts, pos })
    }

    fn name_list(&mut self) -> Result<Vec<String>> {
        self.paren_list(Self::col_id)
    }

    fn opt_name_list(&mut self) -> Result<Vec<String>> {
        if self.is_punct(b'(') { self.name_list() } else { Ok(Vec::new()) }
    }

    fn string(&mut self) -> Result<String> {
        let Tok::Str(s) = self.peek() else {
            return Err(self.error_here());
        };
        let s = s.to_string();
        self.advance();
        Ok(s)
    }

    /// An integer with an optional sign.
    fn signed_int(&mut self) -> Result<i64> {
        let negative = self.eat_op("-") || {
            self.eat_op("+");
            false
        };
        let Tok::Int(digits) = self.peek() else {
            return Err(self.error_here());
        };
        let text = if negative { format!("-{digits}") } else { (*digits).to_owned() };
        let value = text.parse().map_err(|_| {
            SqlError::new(code::NUMERIC_VALUE_OUT_OF_RANGE, format!("value \"{text}\" is out of range for type bigint"))
        })?;
        self.advance();
        Ok(value)
    }

    fn if_exists(&mut self) -> bool {
        self.eat_seq(&["if", "exists"])
    }

    fn if_not_exists(&mut self) -> bool {
        self.eat_seq(&["if", "not", "exists"])
    }

    /// CASCADE (true), or RESTRICT or nothing.
    fn cascade(&mut self) -> bool {
        self.eat("cascade") || {
            self.eat("restrict");
            false
        }
    }
}

fn is_col_id(category: Option<Category>) -> bool {
    matches!(category, None | Some(Category::Unreserved | Category::ColumnName))
}

fn too_complex() -> SqlError {
    SqlError::new(code::STATEMENT_TOO_COMPLEX, "stack depth limit exceeded")
        .hint("The statement nests too deeply: split it, or write long chains of operators as lists.")
}
