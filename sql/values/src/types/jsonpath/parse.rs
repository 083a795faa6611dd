//! Parses a path: recursive descent over PostgreSQL's grammar (jsonpath_gram.y).

use super::tree::{DEPTH_MAX, JsonPath, Method, Node, Operand, PathOp, Step};
use crate::error::{Result, SqlError, code};
use crate::types::numeric::Numeric;
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq)]
enum Tok {
    End,
    /// A word without quotes.
    Word(String),
    String(String),
    /// `$name`, `$"name"`.
    Variable(String),
    Number(String),
    /// An operator or mark.
    Mark(&'static str),
}

/// The marks, longest first.
const MARKS: &[&str] = &[
    "**", "&&", "||", "==", "!=", "<>", "<=", ">=", "$", "@", ".", "*", "[", "]", "(", ")", "{", "}", ",", "?", "!",
    "<", ">", "+", "-", "/", "%",
];

struct Reader<'a> {
    text: &'a str,
    at: usize,
    tok: Tok,
    /// Where the token begins.
    start: usize,
    depth: usize,
    in_filter: usize,
    in_subscript: usize,
}

/// A path of a text.
///
/// # Errors
/// 42601, 54001.
pub fn parse(text: &str) -> Result<JsonPath> {
    let mut r = Reader { text, at: 0, tok: Tok::End, start: 0, depth: 0, in_filter: 0, in_subscript: 0 };
    r.advance()?;
    if r.tok == Tok::End {
        let message = format!("invalid input syntax for type jsonpath: \"{text}\"");
        return Err(SqlError::new(code::INVALID_TEXT_REPRESENTATION, message));
    }
    let strict = r.eat_word("strict")?;
    if !strict {
        r.eat_word("lax")?;
    }
    let root = r.predicate(0)?;
    if r.tok != Tok::End {
        return Err(r.error());
    }
    Ok(JsonPath { strict, root })
}

impl<'a> Reader<'a> {
    fn error(&self) -> SqlError {
        let near = &self.text[self.start..self.at];
        let message = if near.is_empty() {
            "syntax error at end of jsonpath input".to_owned()
        } else {
            format!("syntax error at or near \"{near}\" of jsonpath input")
        };
        SqlError::new(code::SYNTAX_ERROR, message)
    }

    /// Passes over blanks and comments; returns the text behind them.
    fn behind_blanks(&mut self) -> Result<&'a str> {
        loop {
            let rest = self.text[self.at..].trim_start_matches([' ', '\t', '\n', '\r', '\x0c']);
            self.at = self.text.len() - rest.len();
            let Some(comment) = rest.strip_prefix("/*") else { return Ok(rest) };
            let end = comment.find("*/").ok_or_else(|| {
                SqlError::new(code::SYNTAX_ERROR, "unexpected end of comment at end of jsonpath input")
            })?;
            self.at += end + 4;
        }
    }

    fn advance(&mut self) -> Result<()> {
        let rest = self.behind_blanks()?;
        self.start = self.at;
        let Some(first) = rest.chars().next() else {
            self.tok = Tok::End;
            return Ok(());
        };
        self.tok = match first {
            '"' => Tok::String(self.quoted()?),
            '$' => {
                self.at += 1;
                let next = self.text[self.at..].chars().next().unwrap_or(' ');
                if next == '"' {
                    Tok::Variable(self.quoted()?)
                } else if is_word(next) {
                    Tok::Variable(self.word()?)
                } else {
                    Tok::Mark("$")
                }
            }
            c if c.is_ascii_digit() => self.number()?,
            '.' if rest[1..].starts_with(|c: char| c.is_ascii_digit()) => self.number()?,
            _ => match MARKS.iter().find(|m| rest.starts_with(**m)) {
                Some(mark) => {
                    self.at += mark.len();
                    Tok::Mark(mark)
                }
                None if is_word(first) || first == '\\' => Tok::Word(self.word()?),
                None => {
                    self.at += first.len_utf8();
                    return Err(self.error());
                }
            },
        };
        Ok(())
    }

    fn number(&mut self) -> Result<Tok> {
        let rest = &self.text.as_bytes()[self.at..];
        let digits = |from: usize| rest[from.min(rest.len())..].iter().take_while(|b| b.is_ascii_digit()).count();
        let mut end = digits(0);
        let whole = end;
        if rest.get(end) == Some(&b'.')
            && (digits(end + 1) > 0 || !rest.get(end + 1).is_some_and(|b| is_word(char::from(*b))))
        {
            end += 1 + digits(end + 1);
        }
        if matches!(rest.get(end), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(rest.get(end + 1), Some(b'+' | b'-')));
            if digits(end + 1 + sign) > 0 {
                end += 1 + sign + digits(end + 1 + sign);
            }
        }
        let text = self.text[self.at..self.at + end].to_owned();
        self.at += end;
        let junk = self.text[self.at..].starts_with(|c: char| is_word(c));
        if junk || whole > 1 && text.starts_with('0') {
            self.at += usize::from(junk);
            let near = &self.text[self.start..self.at];
            let message = format!("trailing junk after numeric literal at or near \"{near}\" of jsonpath input");
            return Err(SqlError::new(code::SYNTAX_ERROR, message));
        }
        Ok(Tok::Number(text))
    }

    fn word(&mut self) -> Result<String> {
        let mut out = String::new();
        loop {
            match self.text[self.at..].chars().next() {
                Some('\\') => out.extend(self.escape()?),
                Some(c) if is_word(c) => {
                    self.at += c.len_utf8();
                    out.push(c);
                }
                _ => return Ok(out),
            }
        }
    }

    fn quoted(&mut self) -> Result<String> {
        self.at += 1;
        let mut out = String::new();
        loop {
            match self.text[self.at..].chars().next() {
                Some('"') => {
                    self.at += 1;
                    return Ok(out);
                }
                Some('\\') => out.extend(self.escape()?),
                Some(c) => {
                    self.at += c.len_utf8();
                    out.push(c);
                }
                None => {
                    let message = "unterminated quoted string at end of jsonpath input";
                    return Err(SqlError::new(code::SYNTAX_ERROR, message));
                }
            }
        }
    }

    /// What stands behind a backslash.
    fn escape(&mut self) -> Result<Option<char>> {
        let rest = &self.text[self.at + 1..];
        let bad = || SqlError::new(code::SYNTAX_ERROR, "invalid escape sequence of jsonpath input");
        let Some(c) = rest.chars().next() else { return Err(bad()) };
        self.at += 1 + c.len_utf8();
        let hex = |text: &str, n: usize| text.get(..n).and_then(|t| u32::from_str_radix(t, 16).ok()).ok_or_else(bad);
        Ok(Some(match c {
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            'x' => {
                let value = hex(&rest[1..], 2)?;
                self.at += 2;
                char::from_u32(value).ok_or_else(bad)?
            }
            'u' => {
                let after = &rest[1..];
                let (value, used) = match after.strip_prefix('{').and_then(|t| t.split_once('}')) {
                    Some((digits, _)) if (1..=6).contains(&digits.len()) => {
                        (hex(digits, digits.len())?, digits.len() + 2)
                    }
                    Some(_) => return Err(bad()),
                    None => (hex(after, 4)?, 4),
                };
                self.at += used;
                if value == 0 {
                    let detail = "\\u0000 cannot be converted to text.";
                    return Err(SqlError::new("22P05", "unsupported Unicode escape sequence").detail(detail));
                }
                if (0xd800..0xdc00).contains(&value) {
                    let low = self.text[self.at..].strip_prefix("\\u").ok_or_else(bad)?;
                    let low = hex(low, 4)?;
                    self.at += 6;
                    return Ok(char::from_u32(0x10000 + ((value & 0x3ff) << 10 | low & 0x3ff)));
                }
                char::from_u32(value).ok_or_else(bad)?
            }
            other => other,
        }))
    }

    fn is(&self, mark: &str) -> bool {
        matches!(self.tok, Tok::Mark(m) if m == mark)
    }

    fn eat(&mut self, mark: &str) -> Result<bool> {
        let found = self.is(mark);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    fn expect(&mut self, mark: &str) -> Result<()> {
        if self.eat(mark)? { Ok(()) } else { Err(self.error()) }
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(&self.tok, Tok::Word(w) if w.eq_ignore_ascii_case(word))
    }

    fn eat_word(&mut self, word: &str) -> Result<bool> {
        let found = self.is_word(word);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    /// A node whose operators bind at least as tightly as `min`: 0 ||, 1 &&, 2 comparisons, 3 + -, 4 * / %.
    fn predicate(&mut self, min: u8) -> Result<Node> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(SqlError::new(code::STATEMENT_TOO_COMPLEX, "stack depth limit exceeded"));
        }
        let mut left = self.unary()?;
        loop {
            let op = match &self.tok {
                Tok::Mark(m) => match *m {
                    "||" => PathOp::Or,
                    "&&" => PathOp::And,
                    "==" => PathOp::Eq,
                    "!=" | "<>" => PathOp::Ne,
                    "<" => PathOp::Lt,
                    ">" => PathOp::Gt,
                    "<=" => PathOp::Le,
                    ">=" => PathOp::Ge,
                    "+" => PathOp::Add,
                    "-" => PathOp::Sub,
                    "*" => PathOp::Mul,
                    "/" => PathOp::Div,
                    "%" => PathOp::Mod,
                    _ => break,
                },
                Tok::Word(w) if min <= 2 && w.eq_ignore_ascii_case("starts") => PathOp::StartsWith,
                Tok::Word(w) if min <= 2 && w.eq_ignore_ascii_case("like_regex") => {
                    left = self.like_regex(left)?;
                    continue;
                }
                Tok::Word(w) if w.eq_ignore_ascii_case("is") => {
                    self.advance()?;
                    if !self.eat_word("unknown")? {
                        return Err(self.error());
                    }
                    left = Node::IsUnknown(Box::new(left));
                    continue;
                }
                _ => break,
            };
            if op.priority() < min {
                break;
            }
            self.advance()?;
            if op == PathOp::StartsWith && !self.eat_word("with")? {
                return Err(self.error());
            }
            let right = self.predicate(op.priority() + 1)?;
            left = Node::Binary(op, Box::new(left), Box::new(right));
        }
        self.depth -= 1;
        Ok(left)
    }

    fn like_regex(&mut self, left: Node) -> Result<Node> {
        self.advance()?;
        let Tok::String(pattern) = self.tok.clone() else { return Err(self.error()) };
        self.advance()?;
        let mut flags = String::new();
        if self.eat_word("flag")? {
            let Tok::String(given) = self.tok.clone() else { return Err(self.error()) };
            self.advance()?;
            for c in given.chars() {
                if !"ismxq".contains(c) {
                    let message = "invalid input syntax for type jsonpath";
                    let detail = format!("Unrecognized flag character \"{c}\" in LIKE_REGEX predicate.");
                    return Err(SqlError::new(code::SYNTAX_ERROR, message).detail(detail));
                }
            }
            if given.contains('x') && !given.contains('q') {
                let message = "XQuery \"x\" flag (expanded regular expressions) is not implemented";
                return Err(SqlError::new(code::FEATURE_NOT_SUPPORTED, message));
            }
            flags = "ismxq".chars().filter(|c| given.contains(*c)).collect();
        }
        Ok(Node::LikeRegex(Box::new(left), pattern.into(), flags))
    }

    fn unary(&mut self) -> Result<Node> {
        if self.eat("!")? {
            if self.eat("(")? {
                let inner = self.predicate(0)?;
                self.expect(")")?;
                return Ok(Node::Not(Box::new(inner)));
            }
            if self.is_word("exists") {
                return Ok(Node::Not(Box::new(self.unary()?)));
            }
            return Err(self.error());
        }
        for (mark, minus) in [("+", false), ("-", true)] {
            if self.eat(mark)? {
                self.depth += 1;
                if self.depth > DEPTH_MAX {
                    return Err(SqlError::new(code::STATEMENT_TOO_COMPLEX, "stack depth limit exceeded"));
                }
                let arg = self.unary()?;
                self.depth -= 1;
                return Ok(signed(minus, arg));
            }
        }
        if self.is_word("exists") {
            self.advance()?;
            self.expect("(")?;
            let inner = self.predicate(0)?;
            self.expect(")")?;
            return Ok(Node::Exists(Box::new(inner)));
        }
        self.chain()
    }

    fn chain(&mut self) -> Result<Node> {
        let refused = |message: &str| SqlError::new(code::SYNTAX_ERROR, message);
        let operand = match self.tok.clone() {
            Tok::Mark("$") => Operand::Root,
            Tok::Mark("@") if self.in_filter == 0 => return Err(refused("@ is not allowed in root expressions")),
            Tok::Mark("@") => Operand::Current,
            Tok::Variable(name) => Operand::Variable(name.into()),
            Tok::String(s) => Operand::String(s.into()),
            Tok::Number(text) => {
                let number = Numeric::parse(&text).unwrap_or_else(|| Err(self.error()))?;
                Operand::Number(Arc::new(number))
            }
            Tok::Word(w) if w == "last" && self.in_subscript == 0 => {
                return Err(refused("LAST is allowed only in array subscripts"));
            }
            Tok::Word(w) => match w.as_str() {
                "null" => Operand::Null,
                "true" => Operand::Bool(true),
                "false" => Operand::Bool(false),
                "last" => Operand::Last,
                _ => return Err(self.error()),
            },
            Tok::Mark("(") => {
                self.advance()?;
                let inner = self.predicate(0)?;
                if !self.is(")") {
                    return Err(self.error());
                }
                Operand::Inner(inner)
            }
            _ => return Err(self.error()),
        };
        self.advance()?;
        let mut steps = Vec::new();
        loop {
            if steps.len() > 10_000 {
                return Err(SqlError::new(code::STATEMENT_TOO_COMPLEX, "stack depth limit exceeded"));
            }
            if self.eat(".")? {
                steps.push(self.member()?);
            } else if self.eat("[")? {
                steps.push(self.elements()?);
            } else if self.eat("?")? {
                self.expect("(")?;
                self.in_filter += 1;
                let condition = self.predicate(0)?;
                self.in_filter -= 1;
                self.expect(")")?;
                steps.push(Step::Filter(condition));
            } else {
                return Ok(Node::Chain(Box::new(operand), steps));
            }
        }
    }

    fn member(&mut self) -> Result<Step> {
        let step = match self.tok.clone() {
            Tok::Mark("*") => Step::AnyMember,
            Tok::Mark("**") => {
                self.advance()?;
                return self.levels();
            }
            Tok::String(name) => Step::Member(name.into()),
            Tok::Word(name) => {
                self.advance()?;
                if !self.is("(") {
                    return Ok(Step::Member(name.into()));
                }
                if name == "datetime" {
                    self.advance()?;
                    return self.datetime();
                }
                let method = Method::ALL.iter().find(|m| m.0 == name).map(|m| m.1).ok_or_else(|| self.error())?;
                self.advance()?;
                self.expect(")")?;
                return Ok(Step::Method(method));
            }
            _ => return Err(self.error()),
        };
        self.advance()?;
        Ok(step)
    }

    /// `.datetime`, behind its parenthesis.
    fn datetime(&mut self) -> Result<Step> {
        let template = match self.tok.clone() {
            Tok::String(template) => Some(template.into()),
            _ => None,
        };
        if template.is_some() {
            self.advance()?;
        }
        self.expect(")")?;
        Ok(Step::DateTime(template))
    }

    fn level(&mut self) -> Result<u32> {
        let n = match &self.tok {
            Tok::Word(w) if w == "last" => u32::MAX,
            Tok::Number(text) => text.parse().map_err(|_| self.error())?,
            _ => return Err(self.error()),
        };
        self.advance()?;
        Ok(n)
    }

    fn levels(&mut self) -> Result<Step> {
        if !self.eat("{")? {
            return Ok(Step::Levels(0, u32::MAX));
        }
        let first = self.level()?;
        let last = if self.eat_word("to")? { self.level()? } else { first };
        self.expect("}")?;
        Ok(Step::Levels(first, last))
    }

    fn elements(&mut self) -> Result<Step> {
        if self.eat("*")? {
            self.expect("]")?;
            return Ok(Step::AnyElement);
        }
        self.in_subscript += 1;
        let mut list = Vec::new();
        loop {
            let from = self.predicate(3)?;
            let to = if self.eat_word("to")? { Some(self.predicate(3)?) } else { None };
            list.push((from, to));
            if !self.eat(",")? {
                break;
            }
        }
        self.in_subscript -= 1;
        self.expect("]")?;
        Ok(Step::Elements(list))
    }
}

/// A sign; that of a number alone belongs to it.
fn signed(minus: bool, arg: Node) -> Node {
    if let Node::Chain(operand, steps) = &arg
        && let (Operand::Number(n), true) = (&**operand, steps.is_empty())
    {
        let number = if minus { Arc::new(n.negate()) } else { n.clone() };
        return Node::Chain(Box::new(Operand::Number(number)), Vec::new());
    }
    Node::Signed(minus, Box::new(arg))
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || !c.is_ascii()
}
