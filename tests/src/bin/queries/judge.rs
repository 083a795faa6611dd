//! Answers, and whether they agree.
//!
//! Equal values may have several forms, and which one a group, a DISTINCT or a set operation shows is the server's choice. So the zeros at the end of
//! a numeric, the blanks at the end of a char(n), and how an interval is split into months, days and hours do not count.

use crate::client::Answer;

const BPCHAR: u32 = 1042;
const INTERVAL: u32 = 1186;
const NUMERIC: u32 = 1700;
/// Types from here on have numbers of their own in each database.
const FIRST_OF_USERS: u32 = 10_000;

/// What one place says of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// Types, and rows; those of several statements one after the other.
    Rows(Vec<Rows>),
    /// SQLSTATE and message.
    Error(String, String),
}

#[derive(Clone, Debug)]
pub struct Rows {
    types: Vec<u32>,
    /// All rows, sorted.
    sorted: Vec<String>,
    /// The columns of ORDER BY, row by row.
    ordered: Vec<String>,
    tag: String,
}

impl PartialEq for Rows {
    fn eq(&self, other: &Rows) -> bool {
        let same_type = |(a, b): (&u32, &u32)| a == b || (*a >= FIRST_OF_USERS && *b >= FIRST_OF_USERS);
        self.sorted == other.sorted
            && self.ordered == other.ordered
            && self.tag == other.tag
            && self.types.len() == other.types.len()
            && self.types.iter().zip(&other.types).all(same_type)
    }
}

impl Eq for Rows {}

/// Whether answers agree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    Same,
    Different,
    /// One side met an error that depends on what is evaluated first, or ran out of time.
    NotJudged,
}

impl Told {
    /// What the answers to one batch say; those of the statements at these places count. The rows are in the order of these columns.
    pub fn of(answers: &[Answer], counted: &[usize], order: &[usize]) -> Told {
        if let Some((state, message)) = answers.iter().find_map(|answer| answer.error.clone()) {
            return Told::Error(state, message);
        }
        Told::Rows(counted.iter().map(|n| Rows::of(&answers[*n], order)).collect())
    }

    /// Whether it has rows at all.
    pub fn has_rows(&self) -> bool {
        matches!(self, Told::Rows(all) if all.iter().any(|rows| !rows.sorted.is_empty()))
    }

    fn is_soft(&self) -> bool {
        let Told::Error(state, message) = self else { return false };
        match state.as_str() {
            // A key is too long; the limits differ.
            "54000" | "57014" => true,
            // An infinite numeric as an integer: what is evaluated first is open here, too.
            "0A000" => message.starts_with("cannot convert"),
            _ => state.starts_with("22") || state.starts_with("21"),
        }
    }

    /// Whether the statement took too long.
    pub fn is_late(&self) -> bool {
        matches!(self, Told::Error(state, _) if state == "57014")
    }

    pub fn verdict(&self, other: &Told) -> Verdict {
        match (self, other) {
            _ if self.is_late() || other.is_late() => Verdict::NotJudged,
            (Told::Error(a, _), Told::Error(b, _)) if a == b => Verdict::Same,
            _ if self.is_soft() || other.is_soft() => Verdict::NotJudged,
            // Which of several constraints a change meets first is open.
            (Told::Error(a, _), Told::Error(b, _)) if a.starts_with("23") && b.starts_with("23") => Verdict::Same,
            _ if self == other => Verdict::Same,
            _ => Verdict::Different,
        }
    }

    /// In a few lines; where `other` has rows, what differs from those.
    pub fn shown(&self, other: &Told) -> String {
        match (self, other) {
            (Told::Error(state, message), _) => format!("{state} {message}"),
            (Told::Rows(own), Told::Rows(others)) if own.len() == others.len() => {
                own.iter().zip(others).map(|(own, other)| own.shown(other)).collect::<Vec<_>>().join("; ")
            }
            (Told::Rows(own), _) => own.iter().map(|own| own.shown(&Rows::none())).collect::<Vec<_>>().join("; "),
        }
    }
}

impl Rows {
    fn none() -> Rows {
        Rows { types: Vec::new(), sorted: Vec::new(), ordered: Vec::new(), tag: String::new() }
    }

    fn of(answer: &Answer, order: &[usize]) -> Rows {
        let rows: Vec<Vec<String>> = answer
            .rows
            .iter()
            .map(|row| {
                let typed = row.iter().zip(answer.types.iter().copied().chain(std::iter::repeat(0)));
                typed.map(|(cell, ty)| cell.as_deref().map_or("NULL".to_owned(), |cell| form(cell, ty))).collect()
            })
            .collect();
        let ordered = if order.is_empty() {
            Vec::new()
        } else {
            rows.iter()
                .map(|row| order.iter().filter_map(|n| row.get(*n)).cloned().collect::<Vec<_>>().join(" | "))
                .collect()
        };
        let mut sorted: Vec<String> = rows.iter().map(|row| row.join(" | ")).collect();
        sorted.sort_unstable();
        Rows { types: answer.types.clone(), sorted, ordered, tag: answer.tag.clone() }
    }

    fn shown(&self, other: &Rows) -> String {
        const MOST: usize = 6;
        let mut rest = other.sorted.clone();
        let mut extra: Vec<&str> = Vec::new();
        for row in &self.sorted {
            match rest.binary_search(row) {
                Ok(at) => drop(rest.remove(at)),
                Err(_) => extra.push(row),
            }
        }
        let cut = |row: &str| row.chars().take(300).collect::<String>();
        let mut text = format!("{} ({} rows)", self.tag, self.sorted.len());
        if !extra.is_empty() {
            text += &format!(
                "; only here {}: {}",
                extra.len(),
                extra.iter().take(MOST).map(|row| format!("[{}]", cut(row))).collect::<Vec<_>>().join(" ")
            );
        }
        if !rest.is_empty() {
            text += &format!(
                "; missing {}: {}",
                rest.len(),
                rest.iter().take(MOST).map(|row| format!("[{}]", cut(row))).collect::<Vec<_>>().join(" ")
            );
        }
        if extra.is_empty() && rest.is_empty() && self.ordered != other.ordered {
            text += &format!(
                "; in the order {}",
                cut(&self.ordered.iter().take(MOST * 3).map(|row| format!("[{row}]")).collect::<Vec<_>>().join(" "))
            );
        }
        if self.types != other.types {
            text += &format!("; types {:?}", self.types);
        }
        text
    }
}

/// A value in the one form of those that are equal.
fn form(cell: &str, ty: u32) -> String {
    match ty {
        NUMERIC if cell.contains('.') => cell.trim_end_matches('0').trim_end_matches('.').to_owned(),
        BPCHAR => cell.trim_end_matches(' ').to_owned(),
        INTERVAL => microseconds(cell).map_or_else(|| cell.to_owned(), |all| format!("{all} us")),
        _ => cell.to_owned(),
    }
}

/// An interval in the style of PostgreSQL; a month is 30 days, as where intervals are compared.
fn microseconds(text: &str) -> Option<i128> {
    const DAY: i128 = 86_400_000_000;
    let mut all = 0;
    let mut words = text.split(' ');
    while let Some(word) = words.next() {
        if word.contains(':') {
            let (sign, digits) = word.strip_prefix('-').map_or((1, word), |rest| (-1, rest));
            let mut fields = digits.trim_start_matches('+').split(':');
            let (hours, minutes): (i128, i128) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
            let (seconds, fraction) = fields.next()?.split_once('.').unwrap_or((digits.rsplit(':').next()?, ""));
            let micros: i128 = format!("{fraction:0<6}").parse().ok()?;
            all += sign * (((hours * 60 + minutes) * 60 + seconds.parse::<i128>().ok()?) * 1_000_000 + micros);
        } else {
            let number: i128 = word.parse().ok()?;
            all += number
                * match words.next()? {
                    "year" | "years" => 360 * DAY,
                    "mon" | "mons" => 30 * DAY,
                    "day" | "days" => DAY,
                    _ => return None,
                };
        }
    }
    Some(all)
}
