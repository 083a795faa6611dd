//! Advanced regular expressions as PostgreSQL has them: their syntax, and how the parts of a text are given to the parts of a pattern.
//!
//! Structure: `parse` reads a pattern, `set` has its sets of characters, `translate` writes what the regex library can find itself, `matching`
//! finds the rest: look-around, back-references, and matches whose length or groups PostgreSQL chooses in another way than the library.
//!
//! The rules are those of PostgreSQL's manual (9.7.3.5): a match begins as early as it can. How long it is, is decided by the pattern's
//! preference, which is that of its first quantified part; alternatives prefer the longest. Its parts get their texts in the order in which they
//! stand, each by its own preference.

mod matching;
mod parse;
mod set;
mod translate;

pub(super) use matching::Search;
pub(super) use parse::parse;
pub(super) use translate::translate;

use crate::error::{Result, SqlError};
use set::Set;

/// How a pattern is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Options {
    /// Case does not matter.
    pub fold: bool,
    /// `.` and sets that exclude match no newline.
    pub stops: bool,
    /// `^` and `$` match at newlines, too.
    pub lines: bool,
    /// Blanks and comments in the pattern mean nothing.
    pub expanded: bool,
    /// The pattern is a text.
    pub quoted: bool,
}

impl Options {
    /// Sets what a letter of PostgreSQL's says, given as a flag or within `(?...)`; false: no option has that letter.
    ///
    /// # Errors
    /// 0A000 for basic regular expressions.
    pub fn set(&mut self, letter: char) -> Result<bool> {
        match letter {
            'i' => self.fold = true,
            'c' => self.fold = false,
            'n' | 'm' => (self.stops, self.lines) = (true, true),
            's' => (self.stops, self.lines) = (false, false),
            'p' => (self.stops, self.lines) = (true, false),
            'w' => (self.stops, self.lines) = (false, true),
            'x' => self.expanded = true,
            't' => self.expanded = false,
            'q' => self.quoted = true,
            'e' => {}
            'b' => return Err(SqlError::unsupported("a basic regular expression (flag b)")),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// A pattern.
#[derive(Debug)]
pub struct Are {
    pub(super) root: Node,
    /// Groups that capture.
    pub(super) groups: usize,
    /// Where each of them stands, for back-references.
    bodies: Vec<Node>,
    options: Options,
    /// Only `matching` finds it.
    pub(super) is_own: bool,
    /// The library's choice may differ from PostgreSQL's.
    pub(super) may_differ: bool,
}

/// What a quantified part prefers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Prefers {
    Nothing,
    Longest,
    Shortest,
}

/// A part of a pattern.
#[derive(Clone, Debug)]
pub(super) struct Node {
    /// Its number, by which `matching` keeps what it knows of it.
    id: usize,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Empty,
    Set(Set),
    Sequence(Vec<Node>),
    Alternatives(Vec<Node>),
    Repeat { node: Box<Node>, least: u32, most: Option<u32>, prefers: Prefers },
    Group(usize, Box<Node>),
    Same(usize),
    TextStart,
    TextEnd,
    LineStart,
    LineEnd,
    WordStart,
    WordEnd,
    WordEdge,
    NoWordEdge,
    Look { ahead: bool, wanted: bool, node: Box<Node> },
}

impl Node {
    fn prefers(&self) -> Prefers {
        match &self.kind {
            Kind::Alternatives(_) => Prefers::Longest,
            Kind::Repeat { prefers: Prefers::Nothing, node, .. } | Kind::Group(_, node) => node.prefers(),
            Kind::Repeat { prefers, .. } => *prefers,
            Kind::Sequence(list) => first_preference(list),
            _ => Prefers::Nothing,
        }
    }

    fn any(&self, f: &mut dyn FnMut(&Node) -> bool) -> bool {
        f(self)
            || match &self.kind {
                Kind::Sequence(list) | Kind::Alternatives(list) => list.iter().any(|n| n.any(f)),
                Kind::Repeat { node, .. } | Kind::Group(_, node) | Kind::Look { node, .. } => node.any(f),
                _ => false,
            }
    }

    /// Whether it matters how its text is divided.
    fn is_divided(&self) -> bool {
        self.any(&mut |n| matches!(n.kind, Kind::Group(..) | Kind::Same(_)))
    }

    /// How many characters it matches at most; none: there is no such number.
    fn most_characters(&self) -> Option<usize> {
        match &self.kind {
            Kind::Set(_) => Some(1),
            Kind::Sequence(list) => list.iter().map(Node::most_characters).sum(),
            Kind::Alternatives(list) => {
                list.iter().map(Node::most_characters).try_fold(0, |most, n| Some(n?.max(most)))
            }
            Kind::Repeat { node, most, .. } => node.most_characters()?.checked_mul((*most)? as usize),
            Kind::Group(_, node) => node.most_characters(),
            Kind::Same(_) => None,
            _ => Some(0),
        }
    }

    fn mentions(&self, wanted: Prefers) -> bool {
        self.any(&mut |n| match &n.kind {
            Kind::Alternatives(_) => wanted == Prefers::Longest,
            Kind::Repeat { prefers, .. } => *prefers == wanted,
            _ => false,
        })
    }
}

/// The characters of a part that is always one character.
fn character(node: &Node) -> Option<&Set> {
    match &node.kind {
        Kind::Set(set) => Some(set),
        Kind::Group(_, node) => character(node),
        _ => None,
    }
}

/// That of the first part that has one.
fn first_preference(list: &[Node]) -> Prefers {
    list.iter().map(Node::prefers).find(|p| *p != Prefers::Nothing).unwrap_or(Prefers::Nothing)
}

#[cfg(test)]
mod tests {
    use super::*;

    type Groups = Vec<Option<(usize, usize)>>;

    fn found(pattern: &str, text: &str) -> Result<Option<Groups>> {
        let are = parse(pattern, Options::default())?;
        Search::new(&are, text).find(0)
    }

    #[test]
    fn the_library_and_the_search_agree_where_the_library_is_asked() -> Result<()> {
        let patterns = [
            "a*b",
            "(a+)(b?)",
            "a{2,3}b",
            "[^a]b*",
            "\\w+\\s*",
            "(\\d+)-(\\d+)",
            "^a*$",
            "(a)b(c*)",
            "\\mb",
            "x*",
            "(a?)(b?)(c?)",
            "[ab]*b?c",
            "a?[ab]?b",
            "(a*)(a*)",
            "\\y\\w",
            "é+",
            "[[:alpha:]]+[[:digit:]]*",
            "a.c",
            "(a{0,2})(a*)",
        ];
        let texts = ["", "a", "b", "aab", "abcabc", "éa b", "12-345", "aaaa", "bbac", "a1 b22", "xaabbcc", "éé"];
        for pattern in patterns {
            let are = parse(pattern, Options::default())?;
            assert!(!are.is_own && !are.may_differ, "{pattern}");
            let library = regex::Regex::new(&translate(&are)).expect("a pattern");
            for text in texts {
                let theirs: Option<Vec<_>> =
                    library.captures(text).map(|c| c.iter().map(|g| g.map(|g| (g.start(), g.end()))).collect());
                assert_eq!(Search::new(&are, text).find(0)?, theirs, "{text} ~ {pattern}");
            }
        }
        Ok(())
    }

    #[test]
    fn long_texts_take_time_and_memory_by_their_length() -> Result<()> {
        let (text, count) = ("ab x ".repeat(4_000), |pattern: &str, text: &str| -> Result<Option<usize>> {
            Ok(found(pattern, text)?.and_then(|groups| groups[1]).map(|(from, to)| to - from))
        });
        assert_eq!(count("(.*?)(x|y)(.*)", &text)?, Some(3));
        assert_eq!(count("(.*)(x|y)(.*)", &text)?, Some(19_998));
        assert_eq!(count("(.*)(?<=b )(?=x)(x|y)(.*)", &text)?, Some(19_998));
        Ok(())
    }

    #[test]
    fn texts_are_divided_as_by_postgresql() -> Result<()> {
        let of = |pattern: &str, text: &str| -> Result<Vec<Option<String>>> {
            let part = |g: Option<(usize, usize)>| g.and_then(|(a, b)| text.get(a..b)).map(str::to_owned);
            Ok(found(pattern, text)?.unwrap_or_default().into_iter().map(part).collect())
        };
        let some = |list: &[&str]| list.iter().map(|t| Some((*t).to_owned())).collect::<Vec<_>>();
        assert_eq!(of("Y*([0-9]{1,3})", "XY1234Z")?, some(&["Y123", "123"]));
        assert_eq!(of("Y*?([0-9]{1,3})", "XY1234Z")?, some(&["Y1", "1"]));
        assert_eq!(of("(foo|foobar)", "foobar")?, some(&["foobar", "foobar"]));
        assert_eq!(of("(fo|foob)(ar|bar)?", "foobar")?, some(&["foobar", "foob", "ar"]));
        assert_eq!(of("^(ab)\\1$", "abab")?, some(&["abab", "ab"]));
        assert_eq!(of("foo(?=bar)", "foobaz foobar")?, some(&["foo"]));
        assert_eq!(of("(?<!a)b", "abb")?, some(&["b"]));
        assert_eq!(of("a?(?:ab)?(b?)", "ab")?, some(&["ab", ""]));
        assert!(of("(a)\\1", "ab")?.is_empty());
        assert_eq!(of("(a*)*", "b")?, some(&["", ""]));
        assert_eq!(of("(?:(a)|c)*", "b")?, [Some(String::new()), None]);
        Ok(())
    }
}
