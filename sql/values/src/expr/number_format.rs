//! Formats of numbers, as to_char and to_number take them apart (src/backend/utils/adt/formatting.c, `NUMDesc_prepare`).

use crate::error::{Result, SqlError, code};
use clearway_base::breath;

/// What a pattern of a format stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Comma,
    Dot,
    Zero,
    Nine,
    Blank,
    Decimal,
    Exponent,
    Fill,
    Group,
    Currency,
    Minus,
    Plus,
    Bracket,
    Roman,
    SignHere,
    Sign,
    Ordinal,
    Shift,
    Nothing,
}

/// The patterns, longer ones of a letter first; each is written in capitals or in small letters.
const PATTERNS: &[(&str, Key)] = &[
    (",", Key::Comma),
    (".", Key::Dot),
    ("0", Key::Zero),
    ("9", Key::Nine),
    ("B", Key::Blank),
    ("C", Key::Nothing),
    ("D", Key::Decimal),
    ("EEEE", Key::Exponent),
    ("FM", Key::Fill),
    ("G", Key::Group),
    ("L", Key::Currency),
    ("MI", Key::Minus),
    ("PL", Key::Plus),
    ("PR", Key::Bracket),
    ("RN", Key::Roman),
    ("SG", Key::SignHere),
    ("SP", Key::Nothing),
    ("S", Key::Sign),
    ("TH", Key::Ordinal),
    ("V", Key::Shift),
];

/// A piece of a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// A pattern; whether it is written in small letters.
    Pattern(Key, bool),
    /// Any other character.
    Char(char),
}

/// Where the sign of S stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SignPlace {
    None,
    Before,
    Behind,
}

/// A format of numbers.
#[derive(Clone, Debug)]
pub(super) struct Format {
    pub pieces: Vec<Piece>,
    /// Digits before the point, and behind it.
    pub pre: usize,
    pub post: usize,
    /// S, and the digits before it.
    pub sign: SignPlace,
    pub pre_sign: usize,
    /// Digits behind V.
    pub multi: usize,
    /// The place of the first 0, from 1, none: there is none; and of the last one.
    pub zero_start: Option<usize>,
    pub zero_end: usize,
    pub decimal: bool,
    pub fill: bool,
    pub bracket: bool,
    pub minus: bool,
    pub plus: bool,
    pub roman: bool,
    pub shift: bool,
    pub exponent: bool,
    blank: bool,
}

fn wrong(message: &str) -> SqlError {
    SqlError::new(code::SYNTAX_ERROR, message)
}

fn pattern(text: &str) -> Option<(&'static str, Key, bool)> {
    PATTERNS.iter().find_map(|(word, key)| {
        let start = text.get(..word.len())?;
        let small = start.bytes().all(|b| b.is_ascii_lowercase());
        (start == *word || small && start.eq_ignore_ascii_case(word)).then_some((*word, *key, small))
    })
}

impl Format {
    /// Takes a format apart.
    ///
    /// # Errors
    /// 42601 for patterns that can't stand together.
    pub fn parse(text: &str) -> Result<Format> {
        let mut f = Format {
            pieces: Vec::new(),
            pre: 0,
            post: 0,
            sign: SignPlace::None,
            pre_sign: 0,
            multi: 0,
            zero_start: None,
            zero_end: 0,
            decimal: false,
            fill: false,
            bracket: false,
            minus: false,
            plus: false,
            roman: false,
            shift: false,
            exponent: false,
            blank: false,
        };
        let (mut rest, mut quoted) = (text, false);
        while let Some(c) = rest.chars().next() {
            breath::step(16)?;
            if !quoted && let Some((word, key, small)) = pattern(rest) {
                rest = &rest[word.len()..];
                f.take(key)?;
                f.pieces.push(Piece::Pattern(key, small));
                continue;
            }
            rest = &rest[c.len_utf8()..];
            if c == '"' {
                quoted = !quoted;
                continue;
            }
            // A backslash quotes any character between double quotes, and only a double quote outside of them.
            let next = rest.chars().next().filter(|next| c == '\\' && (quoted || *next == '"'));
            if let Some(next) = next {
                rest = &rest[next.len_utf8()..];
            }
            f.pieces.push(Piece::Char(next.unwrap_or(c)));
        }
        Ok(f)
    }

    fn take(&mut self, key: Key) -> Result<()> {
        if self.exponent && key != Key::Exponent {
            return Err(wrong("\"EEEE\" must be the last pattern used"));
        }
        match key {
            Key::Nine | Key::Zero => self.take_digit(key == Key::Zero)?,
            Key::Blank => self.blank |= self.pre == 0 && self.post == 0 && self.zero_start.is_none(),
            Key::Decimal | Key::Dot => {
                if self.decimal {
                    return Err(wrong("multiple decimal points"));
                }
                if self.shift {
                    return Err(wrong("cannot use \"V\" and decimal point together"));
                }
                self.decimal = true;
            }
            Key::Fill => self.fill = true,
            Key::Sign => self.take_sign()?,
            Key::Minus | Key::Plus | Key::SignHere => {
                let (minus, plus) = (key != Key::Plus, key != Key::Minus);
                if self.sign != SignPlace::None {
                    let word = if !plus {
                        "MI"
                    } else if !minus {
                        "PL"
                    } else {
                        "SG"
                    };
                    return Err(wrong(&format!("cannot use \"S\" and \"{word}\" together")));
                }
                (self.minus, self.plus) = (self.minus || minus, self.plus || plus);
            }
            Key::Bracket => {
                if self.sign != SignPlace::None || self.plus || self.minus {
                    return Err(wrong("cannot use \"PR\" and \"S\"/\"PL\"/\"MI\"/\"SG\" together"));
                }
                self.bracket = true;
            }
            Key::Roman => self.roman = true,
            Key::Shift => {
                if self.decimal {
                    return Err(wrong("cannot use \"V\" and decimal point together"));
                }
                self.shift = true;
            }
            Key::Exponent => self.take_exponent()?,
            Key::Comma | Key::Group | Key::Currency | Key::Ordinal | Key::Nothing => {}
        }
        Ok(())
    }

    fn take_digit(&mut self, zero: bool) -> Result<()> {
        if self.bracket {
            let digit = if zero { '0' } else { '9' };
            return Err(wrong(&format!("\"{digit}\" must be ahead of \"PR\"")));
        }
        if !zero && self.shift {
            self.multi += 1;
            return Ok(());
        }
        if zero && self.zero_start.is_none() && !self.decimal {
            self.zero_start = Some(self.pre);
        }
        *(if self.decimal { &mut self.post } else { &mut self.pre }) += 1;
        if zero {
            self.zero_end = self.pre + self.post;
        }
        Ok(())
    }

    fn take_sign(&mut self) -> Result<()> {
        if self.sign != SignPlace::None {
            return Err(wrong("cannot use \"S\" twice"));
        }
        if self.plus || self.minus || self.bracket {
            return Err(wrong("cannot use \"S\" and \"PL\"/\"MI\"/\"SG\"/\"PR\" together"));
        }
        self.sign = if self.decimal { SignPlace::Behind } else { SignPlace::Before };
        if !self.decimal {
            self.pre_sign = self.pre;
        }
        Ok(())
    }

    fn take_exponent(&mut self) -> Result<()> {
        if self.exponent {
            return Err(wrong("cannot use \"EEEE\" twice"));
        }
        let signed = self.sign != SignPlace::None || self.bracket || self.minus || self.plus;
        if signed || self.blank || self.fill || self.roman || self.shift {
            return Err(wrong("\"EEEE\" is incompatible with other formats")
                .detail("\"EEEE\" may only be used together with digit and decimal point patterns."));
        }
        self.exponent = true;
        Ok(())
    }
}
