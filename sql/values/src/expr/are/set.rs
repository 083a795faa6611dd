//! Sets of characters.

/// A class of characters by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Alpha,
    Alnum,
    Blank,
    Cntrl,
    Digit,
    Graph,
    Lower,
    Print,
    Punct,
    Space,
    Upper,
    Xdigit,
    Ascii,
    Word,
}

impl Class {
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "alpha" => Self::Alpha,
            "alnum" => Self::Alnum,
            "blank" => Self::Blank,
            "cntrl" => Self::Cntrl,
            "digit" => Self::Digit,
            "graph" => Self::Graph,
            "lower" => Self::Lower,
            "print" => Self::Print,
            "punct" => Self::Punct,
            "space" => Self::Space,
            "upper" => Self::Upper,
            "xdigit" => Self::Xdigit,
            "ascii" => Self::Ascii,
            "word" => Self::Word,
            _ => return None,
        })
    }

    /// Letters and digits beyond ASCII are letters, and only those of ASCII digits, as in the locale C.UTF-8.
    fn has(self, c: char) -> bool {
        match self {
            Self::Alpha => c.is_alphanumeric() && !c.is_ascii_digit(),
            Self::Alnum => c.is_alphanumeric(),
            Self::Blank => {
                matches!(c, ' ' | '\t' | '\u{1680}' | '\u{2000}'..='\u{2006}' | '\u{2008}'..='\u{200a}' | '\u{205f}' | '\u{3000}')
            }
            Self::Cntrl => c.is_control(),
            Self::Digit => c.is_ascii_digit(),
            Self::Graph => !c.is_control() && !c.is_whitespace(),
            Self::Lower => c.is_lowercase(),
            Self::Print => !c.is_control(),
            Self::Punct => !c.is_control() && !c.is_whitespace() && !c.is_alphanumeric(),
            Self::Space => c.is_whitespace() && !matches!(c, '\u{85}' | '\u{a0}' | '\u{2007}' | '\u{202f}'),
            Self::Upper => c.is_uppercase(),
            Self::Xdigit => c.is_ascii_hexdigit(),
            Self::Ascii => c.is_ascii(),
            Self::Word => is_word(c),
        }
    }

    /// As the regex library writes it, inside of brackets.
    fn written(self) -> &'static str {
        match self {
            Self::Alpha => r"\p{Alphabetic}\p{N}--0-9",
            Self::Alnum => r"\p{Alphabetic}\p{N}",
            Self::Blank => r" \t\x{1680}\x{2000}-\x{2006}\x{2008}-\x{200a}\x{205f}\x{3000}",
            Self::Cntrl => r"\p{Cc}",
            Self::Digit => "0-9",
            Self::Graph => r"\P{Cc}--\s",
            Self::Lower => r"\p{Lowercase}",
            Self::Print => r"\P{Cc}",
            Self::Punct => r"\P{Cc}--\s\p{Alphabetic}\p{N}",
            Self::Space => r"\s--\x{85}\x{a0}\x{2007}\x{202f}",
            Self::Upper => r"\p{Uppercase}",
            Self::Xdigit => "0-9A-Fa-f",
            Self::Ascii => r"\x00-\x7f",
            Self::Word => r"\p{Alphabetic}\p{N}_",
        }
    }
}

/// Whether a character belongs to a word.
pub(super) fn is_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

/// Characters of which one is to come.
#[derive(Clone, Debug, Default)]
pub(super) struct Set {
    pub ranges: Vec<(char, char)>,
    /// Classes; false: all characters but those.
    pub classes: Vec<(Class, bool)>,
    /// All other characters are meant.
    pub excludes: bool,
    pub fold: bool,
}

impl Set {
    pub fn of(c: char, fold: bool) -> Self {
        Self { ranges: vec![(c, c)], fold, ..Self::default() }
    }

    pub fn has(&self, c: char) -> bool {
        let own = |c: char| {
            self.ranges.iter().any(|(a, b)| (*a..=*b).contains(&c))
                || self.classes.iter().any(|(class, wanted)| class.has(c) == *wanted)
        };
        let folded = || c.to_lowercase().chain(c.to_uppercase()).any(own);
        (own(c) || self.fold && folded()) != self.excludes
    }

    /// As the regex library writes it.
    pub fn write(&self, out: &mut String) {
        if let ([(a, b)], [], false) = (self.ranges.as_slice(), self.classes.as_slice(), self.excludes)
            && a == b
        {
            out.push_str(&regex::escape(&a.to_string()));
            return;
        }
        if self.ranges.is_empty() && self.classes.is_empty() {
            out.push_str(if self.excludes { r"[\x{0}-\x{10ffff}]" } else { r"[^\x{0}-\x{10ffff}]" });
            return;
        }
        out.push_str(if self.excludes { "[^" } else { "[" });
        for (a, b) in &self.ranges {
            out.push_str(&format!("\\x{{{:x}}}-\\x{{{:x}}}", *a as u32, *b as u32));
        }
        for (class, wanted) in &self.classes {
            out.push_str(if *wanted { "[" } else { "[^" });
            out.push_str(class.written());
            out.push(']');
        }
        out.push(']');
    }
}
