//! Parses and writes the text of settings' values: lists, truth values, names.

use clearway_values::types::datetime::{DateOrder, DateStyle};

/// The isolation levels.
pub(super) const ISOLATION: &[&str] = &["serializable", "repeatable read", "read committed", "read uncommitted"];

/// The longest `application_name`, in bytes.
const NAME_BYTES_MAX: usize = 63;

/// As much of a name as names have.
pub fn shortened(text: &str) -> &str {
    let end = (0..=NAME_BYTES_MAX.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    &text[..end]
}

/// A name that a client gives itself, as views and logs show it: one line of ASCII, and short, as in PostgreSQL. Every view of sessions copies it.
pub fn client_name(text: &str) -> String {
    shortened(text).bytes().map(|b| if matches!(b, b' '..=b'~') { char::from(b) } else { '?' }).collect()
}

/// Splits `a, "B c"` into its items, folding what is not quoted.
pub fn list_items(text: &str) -> Vec<String> {
    let mut out = vec![String::new()];
    let mut quoted = false;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            // Two of them within quotes are one of the name.
            '"' if quoted && chars.next_if_eq(&'"').is_some() => out.last_mut().into_iter().for_each(|s| s.push('"')),
            '"' => quoted = !quoted,
            ',' if !quoted => out.push(String::new()),
            c if quoted => out.last_mut().into_iter().for_each(|s| s.push(c)),
            c if c.is_whitespace() => {}
            c => out.last_mut().into_iter().for_each(|s| s.extend(c.to_lowercase())),
        }
    }
    out.retain(|s| !s.is_empty());
    out
}

/// on, off, true, yes, 1, ... or what of such a word no other one begins with.
pub fn parse_bool(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "" | "o" => None,
        "1" => Some(true),
        "0" => Some(false),
        word if ["on", "true", "yes"].iter().any(|whole| whole.starts_with(word)) => Some(true),
        word if ["off", "false", "no"].iter().any(|whole| whole.starts_with(word)) => Some(false),
        _ => None,
    }
}

/// Which messages the client does not want.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HiddenMessages {
    /// It wants all that there are.
    #[default]
    Nothing,
    /// Those below WARNING.
    Notices,
    /// All but errors.
    Warnings,
}

/// A level's name; those of the setting are all that come here.
pub(super) fn isolation_word(value: &str) -> &'static str {
    ISOLATION.iter().find(|word| **word == value).copied().unwrap_or("read committed")
}

/// The style of a word of `DateStyle`, in small letters. As in PostgreSQL, some words may have an end of any kind: PostgreSQL, european.
pub(super) fn style_of(word: &str) -> Option<DateStyle> {
    Some(match word {
        "iso" => DateStyle::Iso,
        _ if word.starts_with("postgres") => DateStyle::Postgres,
        "sql" => DateStyle::Sql,
        "german" => DateStyle::German,
        _ => return None,
    })
}

/// What `DateStyle` shows.
pub(super) fn date_style_name(style: DateStyle, order: DateOrder) -> String {
    let style = match style {
        DateStyle::Iso => "ISO",
        DateStyle::Postgres => "Postgres",
        DateStyle::Sql => "SQL",
        DateStyle::German => "German",
    };
    let order = match order {
        DateOrder::Mdy => "MDY",
        DateOrder::Dmy => "DMY",
        DateOrder::Ymd => "YMD",
    };
    format!("{style}, {order}")
}
