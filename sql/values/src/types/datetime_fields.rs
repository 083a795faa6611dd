//! Splits the text of a date or time into fields, and knows the words that may occur in it: the first half of PostgreSQL's parsing
//! (`ParseDateTime` and its token table, src/backend/utils/adt/datetime.c).

/// What a field looks like before its neighbours are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FieldKind {
    /// Digits, with a decimal point perhaps.
    Number,
    /// A word.
    Word,
    /// A word behind a sign: `-infinity`.
    SignedWord,
    /// Digits and words joined by `-`, `/`, `.`: a date, or the name of a zone.
    Date,
    /// Digits with a colon.
    Time,
    /// A sign and digits.
    Zone,
}

/// A field in lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) kind: FieldKind,
    pub(super) text: String,
}

/// More fields than a date can have.
const MOST_FIELDS: usize = 25;

struct Reader<'a> {
    rest: &'a [u8],
    text: Vec<u8>,
}

impl Reader<'_> {
    fn next(&self) -> u8 {
        self.rest.first().copied().unwrap_or(0)
    }

    fn take(&mut self) {
        self.text.push(self.next().to_ascii_lowercase());
        self.rest = &self.rest[1..];
    }

    fn take_while(&mut self, belongs: impl Fn(u8) -> bool) {
        while !self.rest.is_empty() && belongs(self.next()) {
            self.take();
        }
    }

    fn number(&mut self) -> FieldKind {
        self.take_while(|c| c.is_ascii_digit());
        match self.next() {
            b':' => {
                self.take_while(|c| c.is_ascii_digit() || matches!(c, b':' | b'.'));
                FieldKind::Time
            }
            delimiter @ (b'-' | b'/' | b'.') => {
                self.take();
                if self.next().is_ascii_digit() {
                    self.take_while(|c| c.is_ascii_digit());
                    if self.next() != delimiter {
                        return if delimiter == b'.' { FieldKind::Number } else { FieldKind::Date };
                    }
                    self.take_while(|c| c.is_ascii_digit() || c == delimiter);
                } else {
                    self.take_while(|c| c.is_ascii_alphanumeric() || c == delimiter);
                }
                // A number may end with its point.
                if delimiter == b'.' && self.text.ends_with(b".") && !self.text[..self.text.len() - 1].contains(&b'.') {
                    FieldKind::Number
                } else {
                    FieldKind::Date
                }
            }
            _ => FieldKind::Number,
        }
    }

    fn word(&mut self) -> FieldKind {
        self.take_while(|c| c.is_ascii_alphabetic());
        let known = || token(std::str::from_utf8(&self.text).unwrap_or("")).is_some();
        let goes_on = match self.next() {
            b'-' | b'/' | b'.' => true,
            c => (c == b'+' || c.is_ascii_digit()) && !known(),
        };
        if !goes_on {
            return FieldKind::Word;
        }
        self.take_while(|c| c.is_ascii_alphanumeric() || matches!(c, b'+' | b'-' | b'/' | b'_' | b'.' | b':'));
        FieldKind::Date
    }

    fn signed(&mut self) -> Option<FieldKind> {
        self.take();
        let blanks = self.rest.iter().take_while(|c| c.is_ascii_whitespace()).count();
        self.rest = &self.rest[blanks..];
        if self.next().is_ascii_digit() {
            self.take_while(|c| c.is_ascii_digit() || matches!(c, b':' | b'.' | b'-'));
            Some(FieldKind::Zone)
        } else if self.next().is_ascii_alphabetic() {
            self.take_while(|c| c.is_ascii_alphabetic());
            Some(FieldKind::SignedWord)
        } else {
            None
        }
    }
}

/// The fields of a text; none if it holds a character that no date has, or too many fields.
pub(super) fn fields(text: &str) -> Option<Vec<Field>> {
    let mut reader = Reader { rest: text.as_bytes(), text: Vec::new() };
    let mut fields = Vec::new();
    while !reader.rest.is_empty() {
        let kind = match reader.next() {
            c if c.is_ascii_whitespace() || c == 0x0b => {
                reader.rest = &reader.rest[1..];
                continue;
            }
            c if c.is_ascii_digit() => reader.number(),
            b'.' => {
                reader.take();
                reader.take_while(|c| c.is_ascii_digit());
                FieldKind::Number
            }
            c if c.is_ascii_alphabetic() => reader.word(),
            b'+' | b'-' => reader.signed()?,
            c if c.is_ascii_punctuation() => {
                reader.rest = &reader.rest[1..];
                continue;
            }
            _ => return None,
        };
        if fields.len() == MOST_FIELDS {
            return None;
        }
        let text = String::from_utf8(std::mem::take(&mut reader.text)).ok()?;
        fields.push(Field { kind, text });
    }
    Some(fields)
}

/// A unit that a number behind it belongs to: `y2001m02d04`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub(super) enum Unit {
    Year,
    Month,
    Day,
    Hour,
    Minute,
    Second,
    Julian,
    /// `t`: a time follows.
    Time,
    /// Known to `extract`, not to a date's text.
    Other,
}

/// What a word means in a date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub(super) enum Token {
    /// Infinity, or with the sign its opposite.
    Late,
    Early,
    Epoch,
    Now,
    /// A day as an offset from today.
    Today(i64),
    /// Midnight in UTC.
    Midnight,
    Month(i64),
    Weekday,
    Unit(Unit),
    /// Whether it is the afternoon.
    Afternoon(bool),
    /// Whether it is before Christ.
    BeforeChrist(bool),
    /// `DST`: an hour more than the zone before it.
    Daylight,
    /// `at`, `on`.
    Nothing,
}

/// The longest part of a word that counts.
const TOKEN_CHARACTERS: usize = 10;

/// The meaning of a word in lower case.
pub(super) fn token(word: &str) -> Option<Token> {
    use Token as T;
    let word = word.get(..TOKEN_CHARACTERS).unwrap_or(word);
    Some(match word {
        "-infinity" => T::Early,
        "infinity" => T::Late,
        "epoch" => T::Epoch,
        "now" => T::Now,
        "today" => T::Today(0),
        "tomorrow" => T::Today(1),
        "yesterday" => T::Today(-1),
        "allballs" => T::Midnight,
        "ad" => T::BeforeChrist(false),
        "bc" => T::BeforeChrist(true),
        "am" => T::Afternoon(false),
        "pm" => T::Afternoon(true),
        "at" | "on" => T::Nothing,
        "dst" => T::Daylight,
        "jan" | "january" => T::Month(1),
        "feb" | "february" => T::Month(2),
        "mar" | "march" => T::Month(3),
        "apr" | "april" => T::Month(4),
        "may" => T::Month(5),
        "jun" | "june" => T::Month(6),
        "jul" | "july" => T::Month(7),
        "aug" | "august" => T::Month(8),
        "sep" | "sept" | "september" => T::Month(9),
        "oct" | "october" => T::Month(10),
        "nov" | "november" => T::Month(11),
        "dec" | "december" => T::Month(12),
        "sun" | "sunday" | "mon" | "monday" | "tue" | "tues" | "tuesday" | "wed" | "weds" | "wednesday" | "thu"
        | "thur" | "thurs" | "thursday" | "fri" | "friday" | "sat" | "saturday" => T::Weekday,
        "y" => T::Unit(Unit::Year),
        "m" => T::Unit(Unit::Month),
        "d" => T::Unit(Unit::Day),
        "h" => T::Unit(Unit::Hour),
        "mm" => T::Unit(Unit::Minute),
        "s" => T::Unit(Unit::Second),
        "j" | "jd" | "julian" => T::Unit(Unit::Julian),
        "t" => T::Unit(Unit::Time),
        "dow" | "doy" | "isodow" | "isoyear" => T::Unit(Unit::Other),
        _ => return None,
    })
}
