//! Reads a pattern (PostgreSQL's `regc_lex.c` and `regcomp.c`), with PostgreSQL's errors.

use super::set::{Class, Set};
use super::{Are, Kind, Node, Options, Prefers, character};
use crate::error::{Result, SqlError, code};
use clearway_base::{breath, stack};

/// How often a quantifier with bounds may say.
const BOUND_MAX: u32 = 255;
/// Brackets that stand in each other.
const NESTING_MAX: usize = 500;

const BAD_ESCAPE: &str = "invalid escape \\ sequence";
const BAD_COUNT: &str = "invalid repetition count(s)";
const BAD_QUANTIFIER: &str = "quantifier operand invalid";
const BAD_BRACKETS: &str = "brackets [] not balanced";
const BAD_PARENTHESES: &str = "parentheses () not balanced";
const BAD_RANGE: &str = "invalid character range";

pub(super) fn invalid(why: &str) -> SqlError {
    SqlError::new(code::INVALID_REGULAR_EXPRESSION, format!("invalid regular expression: {why}"))
}

/// Reads a pattern.
///
/// # Errors
/// 2201B; 0A000 for basic regular expressions.
pub fn parse(pattern: &str, mut options: Options) -> Result<Are> {
    let mut text = pattern;
    if !options.quoted {
        if let Some(rest) = text.strip_prefix("***=") {
            (text, options.quoted) = (rest, true);
        } else if let Some(rest) = text.strip_prefix("***:") {
            text = rest;
        } else if text.starts_with("***") {
            return Err(invalid(BAD_QUANTIFIER));
        }
    }
    if !options.quoted {
        text = embedded(text, &mut options)?;
    }
    let chars = text.chars().collect();
    let mut p = Parser { chars, at: 0, options, ids: 0, groups: 0, bodies: Vec::new(), ahead: 0, depth: 0 };
    let root = if options.quoted { p.literal() } else { p.alternatives(None)? };
    let is_own = root.any(&mut |n| matches!(n.kind, Kind::Look { .. } | Kind::Same(_)));
    let bodies = p.bodies.into_iter().flatten().collect();
    let mut are = Are { root, groups: p.groups, bodies, options, is_own, may_differ: false };
    are.may_differ = may_differ(&are.root);
    Ok(are)
}

/// `(?i)` and the like at the beginning.
fn embedded<'p>(text: &'p str, options: &mut Options) -> Result<&'p str> {
    let Some(rest) = text.strip_prefix("(?").filter(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic())) else {
        return Ok(text);
    };
    let end = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
    for c in rest[..end].chars() {
        if !options.set(c)? {
            return Err(invalid("invalid embedded option"));
        }
    }
    rest[end..].strip_prefix(')').ok_or_else(|| invalid("invalid embedded option"))
}

/// The library takes the first alternative that fits and divides by the preference of each part; a part that may be left out and is longer than a
/// character can keep it from the longest match.
fn may_differ(root: &Node) -> bool {
    root.any(&mut |n| match &n.kind {
        Kind::Alternatives(_) => true,
        Kind::Repeat { prefers: Prefers::Shortest, .. } => true,
        Kind::Repeat { node, least, most, .. } if Some(*least) != *most => character(node).is_none(),
        _ => false,
    })
}

struct Parser {
    chars: Vec<char>,
    at: usize,
    options: Options,
    ids: usize,
    groups: usize,
    bodies: Vec<Option<Node>>,
    /// Look-around that is open: its groups do not capture.
    ahead: usize,
    /// Brackets that are open.
    depth: usize,
}

impl Parser {
    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn looking(&self, text: &str) -> bool {
        text.chars().enumerate().all(|(i, c)| self.chars.get(self.at + i) == Some(&c))
    }

    fn take(&mut self, text: &str) -> bool {
        let found = self.looking(text);
        self.at += if found { text.chars().count() } else { 0 };
        found
    }

    fn node(&mut self, kind: Kind) -> Node {
        self.ids += 1;
        Node { id: self.ids, kind }
    }

    fn literal(&mut self) -> Node {
        let (chars, fold) = (std::mem::take(&mut self.chars), self.options.fold);
        let list = chars.into_iter().map(|c| self.node(Kind::Set(Set::of(c, fold)))).collect();
        self.node(Kind::Sequence(list))
    }

    /// Skips comments, and blanks where they mean nothing.
    fn skip(&mut self) {
        loop {
            let before = self.at;
            if self.looking("(?#") {
                while self.peek().is_some_and(|c| c != ')') {
                    self.at += 1;
                }
                self.at += 1;
            }
            if self.options.expanded {
                while self.peek().is_some_and(char::is_whitespace) {
                    self.at += 1;
                }
                if self.peek() == Some('#') {
                    while self.peek().is_some_and(|c| c != '\n') {
                        self.at += 1;
                    }
                }
            }
            if self.at == before {
                return;
            }
        }
    }

    /// Alternatives up to the end, or up to the bracket that closes them.
    fn alternatives(&mut self, close: Option<char>) -> Result<Node> {
        self.depth += 1;
        if self.depth > NESTING_MAX {
            return Err(invalid("regular expression is too complex"));
        }
        let mut list = Vec::new();
        loop {
            let branch = stack::deeper(|| self.branch())?;
            list.push(branch);
            match self.peek() {
                Some('|') => self.at += 1,
                Some(')') if close.is_some() => {
                    self.at += 1;
                    break;
                }
                Some(_) => return Err(invalid(BAD_PARENTHESES)),
                None if close.is_some() => return Err(invalid(BAD_PARENTHESES)),
                None => break,
            }
        }
        self.depth -= 1;
        Ok(match (list.len(), list.pop()) {
            (1, Some(only)) => only,
            (_, last) => {
                list.extend(last);
                self.node(Kind::Alternatives(list))
            }
        })
    }

    fn branch(&mut self) -> Result<Node> {
        let mut list = Vec::new();
        loop {
            breath::step(32)?;
            self.skip();
            match self.peek() {
                None | Some('|' | ')') => break,
                Some(c) => list.push(self.part(c)?),
            }
        }
        Ok(match (list.len(), list.pop()) {
            (1, Some(only)) => only,
            (0, _) => self.node(Kind::Empty),
            (_, last) => {
                list.extend(last);
                self.node(Kind::Sequence(list))
            }
        })
    }

    /// An atom with its quantifier, or a constraint.
    fn part(&mut self, c: char) -> Result<Node> {
        self.at += 1;
        let atom = match c {
            '*' | '+' | '?' => return Err(invalid(BAD_QUANTIFIER)),
            '{' if self.peek().is_some_and(|c| c.is_ascii_digit()) => return Err(invalid(BAD_QUANTIFIER)),
            '^' if self.options.lines => Kind::LineStart,
            '^' => Kind::TextStart,
            '$' if self.options.lines => Kind::LineEnd,
            '$' => Kind::TextEnd,
            '(' => self.parenthesis()?,
            '[' if self.take("[:<:]]") => Kind::WordStart,
            '[' if self.take("[:>:]]") => Kind::WordEnd,
            '[' => self.bracket()?,
            '.' => {
                let ranges = if self.options.stops { vec![('\n', '\n')] } else { Vec::new() };
                Kind::Set(Set { ranges, excludes: true, ..Set::default() })
            }
            '\\' => self.escape()?,
            c => Kind::Set(Set::of(c, self.options.fold)),
        };
        let node = self.node(atom);
        // A constraint has no quantifier: the next part would be one without an operand.
        let is_operand = match node.kind {
            Kind::Set(_) | Kind::Same(_) => true,
            Kind::Look { .. } => false,
            _ => c == '(',
        };
        if !is_operand {
            return Ok(node);
        }
        self.quantified(node)
    }

    fn parenthesis(&mut self) -> Result<Kind> {
        if self.take("?:") {
            return self.alternatives(Some(')')).map(|n| n.kind);
        }
        for (text, ahead, wanted) in
            [("?=", true, true), ("?!", true, false), ("?<=", false, true), ("?<!", false, false)]
        {
            if self.take(text) {
                self.ahead += 1;
                let node = self.alternatives(Some(')'))?;
                self.ahead -= 1;
                return Ok(Kind::Look { ahead, wanted, node: Box::new(node) });
            }
        }
        if self.peek() == Some('?') {
            return Err(invalid(BAD_QUANTIFIER));
        }
        if self.ahead > 0 {
            return self.alternatives(Some(')')).map(|n| n.kind);
        }
        self.groups += 1;
        let number = self.groups;
        self.bodies.push(None);
        let node = self.alternatives(Some(')'))?;
        self.bodies[number - 1] = Some(node.clone());
        Ok(Kind::Group(number, Box::new(node)))
    }

    fn quantified(&mut self, node: Node) -> Result<Node> {
        self.skip();
        let (least, most) = match self.peek() {
            Some('*') => (0, None),
            Some('+') => (1, None),
            Some('?') => (0, Some(1)),
            Some('{') if self.chars.get(self.at + 1).is_some_and(char::is_ascii_digit) => {
                self.at += 1;
                return self.bounded(node);
            }
            _ => return Ok(node),
        };
        self.at += 1;
        let prefers = self.preference();
        Ok(self.node(Kind::Repeat { node: Box::new(node), least, most, prefers }))
    }

    fn preference(&mut self) -> Prefers {
        if self.take("?") { Prefers::Shortest } else { Prefers::Longest }
    }

    fn bounded(&mut self, node: Node) -> Result<Node> {
        let least = self.count()?;
        let (mut most, mut exact) = (Some(least), true);
        if self.take(",") {
            exact = false;
            most = if self.peek().is_some_and(|c| c.is_ascii_digit()) { Some(self.count()?) } else { None };
        }
        match self.peek() {
            Some('}') => self.at += 1,
            None => return Err(invalid("braces {} not balanced")),
            Some(_) => return Err(invalid(BAD_COUNT)),
        }
        if most.is_some_and(|most| most < least) {
            return Err(invalid(BAD_COUNT));
        }
        let prefers = self.preference();
        // {m} has the preference of its operand.
        let prefers = if exact { Prefers::Nothing } else { prefers };
        Ok(self.node(Kind::Repeat { node: Box::new(node), least, most, prefers }))
    }

    fn count(&mut self) -> Result<u32> {
        let mut n = 0;
        while let Some(d) = self.peek().and_then(|c| c.to_digit(10)) {
            self.at += 1;
            n = n * 10 + d;
            if n > BOUND_MAX {
                return Err(invalid(BAD_COUNT));
            }
        }
        Ok(n)
    }

    /// The number in so many digits.
    fn digits(&mut self, base: u32, least: usize, most: usize) -> Result<u32> {
        let (mut n, mut count) = (0u32, 0);
        while let Some(d) = self.peek().filter(|_| count < most).and_then(|c| c.to_digit(base)) {
            n = n.checked_mul(base).and_then(|n| n.checked_add(d)).ok_or_else(|| invalid(BAD_ESCAPE))?;
            (self.at, count) = (self.at + 1, count + 1);
        }
        if count < least { Err(invalid(BAD_ESCAPE)) } else { Ok(n) }
    }

    fn escape(&mut self) -> Result<Kind> {
        let Some(c) = self.peek() else { return Err(invalid(BAD_ESCAPE)) };
        let fold = self.options.fold;
        if let Some((class, wanted)) = shorthand(c) {
            self.at += 1;
            return Ok(Kind::Set(Set { classes: vec![(class, wanted)], ..Set::default() }));
        }
        let constraint = match c {
            'A' => Kind::TextStart,
            'Z' => Kind::TextEnd,
            'm' => Kind::WordStart,
            'M' => Kind::WordEnd,
            'y' => Kind::WordEdge,
            'Y' => Kind::NoWordEdge,
            '1'..='9' => {
                let before = self.at;
                let number = self.digits(10, 1, 255)? as usize;
                if self.at != before + 1 && number > self.groups {
                    self.at = before;
                    return Ok(Kind::Set(Set::of(self.character()?, fold)));
                }
                // The group must be closed, and look-around knows none.
                return match self.bodies.get(number - 1) {
                    Some(Some(_)) if self.ahead == 0 => Ok(Kind::Same(number)),
                    _ => Err(invalid("invalid backreference number")),
                };
            }
            _ => return Ok(Kind::Set(Set::of(self.character()?, fold))),
        };
        self.at += 1;
        Ok(constraint)
    }

    /// The character that an escape means.
    fn character(&mut self) -> Result<char> {
        let Some(c) = self.peek() else { return Err(invalid(BAD_ESCAPE)) };
        self.at += 1;
        let number = match c {
            'a' => 7,
            'b' => 8,
            'B' => return Ok('\\'),
            'c' => {
                let of = self.peek().ok_or_else(|| invalid(BAD_ESCAPE))?;
                self.at += 1;
                of as u32 & 0o37
            }
            'e' => 27,
            'f' => 12,
            'n' => 10,
            'r' => 13,
            't' => 9,
            'v' => 11,
            'u' => self.digits(16, 4, 4)?,
            'U' => self.digits(16, 8, 8)?,
            'x' => self.digits(16, 1, 255)?,
            '0'..='9' => {
                self.at -= 1;
                self.digits(8, 1, 3)?
            }
            c if c.is_ascii_alphabetic() => return Err(invalid(BAD_ESCAPE)),
            c => return Ok(c),
        };
        char::from_u32(number).ok_or_else(|| invalid(BAD_ESCAPE))
    }

    fn bracket(&mut self) -> Result<Kind> {
        let mut set = Set { excludes: self.take("^"), fold: self.options.fold, ..Set::default() };
        let first = self.at;
        loop {
            breath::step(16)?;
            match self.peek() {
                None => return Err(invalid(BAD_BRACKETS)),
                Some(']') if self.at > first => break,
                Some('-') if self.at > first && self.chars.get(self.at + 1) != Some(&']') => {
                    return Err(invalid(BAD_RANGE));
                }
                Some(_) => self.member(&mut set)?,
            }
        }
        self.at += 1;
        if set.excludes && self.options.stops {
            set.ranges.push(('\n', '\n'));
        }
        Ok(Kind::Set(set))
    }

    /// A character, a range, or a class in brackets.
    fn member(&mut self, set: &mut Set) -> Result<()> {
        if self.take("[:") {
            let name = self.name(':')?;
            let class = Class::named(&name).ok_or_else(|| invalid("invalid character class"))?;
            set.classes.push((class, true));
            return Ok(());
        }
        if self.looking("\\")
            && let Some(class) = self.chars.get(self.at + 1).and_then(|c| shorthand(*c))
        {
            self.at += 2;
            set.classes.push(class);
            return Ok(());
        }
        let from = self.element()?;
        let is_range = self.peek() == Some('-') && self.chars.get(self.at + 1).is_some_and(|c| *c != ']');
        let to = match is_range {
            true => {
                self.at += 1;
                self.element()?
            }
            false => from,
        };
        if from > to {
            return Err(invalid(BAD_RANGE));
        }
        set.ranges.push((from, to));
        Ok(())
    }

    /// One character in brackets.
    fn element(&mut self) -> Result<char> {
        for (open, close) in [("[.", '.'), ("[=", '=')] {
            if self.take(open) {
                return collating(&self.name(close)?).ok_or_else(|| invalid("invalid collating element"));
            }
        }
        match self.peek() {
            None => Err(invalid(BAD_BRACKETS)),
            Some('\\') => {
                self.at += 1;
                match self.peek() {
                    Some('A' | 'Z' | 'm' | 'M' | 'y' | 'Y') | None => Err(invalid(BAD_ESCAPE)),
                    Some(_) => self.character(),
                }
            }
            Some(c) => {
                self.at += 1;
                Ok(c)
            }
        }
    }

    /// A name up to `:]` and the like.
    fn name(&mut self, close: char) -> Result<String> {
        let mut name = String::new();
        while let Some(c) = self.peek() {
            self.at += 1;
            if c == close && self.take("]") {
                return Ok(name);
            }
            name.push(c);
        }
        Err(invalid(BAD_BRACKETS))
    }
}

/// `\d` and its kin.
fn shorthand(c: char) -> Option<(Class, bool)> {
    Some(match c {
        'd' => (Class::Digit, true),
        'D' => (Class::Digit, false),
        's' => (Class::Space, true),
        'S' => (Class::Space, false),
        'w' => (Class::Word, true),
        'W' => (Class::Word, false),
        _ => return None,
    })
}

/// The character of a name: itself, or one of ASCII by its name.
fn collating(name: &str) -> Option<char> {
    const NAMES: [(&str, char); 33] = [
        ("tab", '\t'),
        ("newline", '\n'),
        ("carriage-return", '\r'),
        ("space", ' '),
        ("exclamation-mark", '!'),
        ("quotation-mark", '"'),
        ("number-sign", '#'),
        ("dollar-sign", '$'),
        ("percent-sign", '%'),
        ("ampersand", '&'),
        ("apostrophe", '\''),
        ("left-parenthesis", '('),
        ("right-parenthesis", ')'),
        ("asterisk", '*'),
        ("plus-sign", '+'),
        ("comma", ','),
        ("hyphen", '-'),
        ("hyphen-minus", '-'),
        ("period", '.'),
        ("slash", '/'),
        ("colon", ':'),
        ("semicolon", ';'),
        ("less-than-sign", '<'),
        ("equals-sign", '='),
        ("greater-than-sign", '>'),
        ("question-mark", '?'),
        ("commercial-at", '@'),
        ("left-square-bracket", '['),
        ("backslash", '\\'),
        ("right-square-bracket", ']'),
        ("circumflex", '^'),
        ("underscore", '_'),
        ("tilde", '~'),
    ];
    let mut chars = name.chars();
    match (chars.next(), chars.next()) {
        (Some(only), None) => Some(only),
        _ => NAMES.iter().find(|(known, _)| *known == name).map(|(_, c)| *c),
    }
}
