//! Writes the expressions and conditions of indexes, defaults and checks as their definitions show them.
//!
//! # Invariants
//! - EXD-1: the text that is shown of a default or a check, read again, is shown as the same text, but for casts to text. What has no such text is shown as it was
//!   written: a dump must mean what the table means.

use super::words::{Names, Style, Words};
use clearway_context::index_terms::{Place, bare_conversion, bind_shown};
use clearway_engine::catalog::{Catalog, Index, Relation};
use clearway_values::expr::{Bound, BoundKind, HostFunction};
use clearway_values::types::{Oid, oid};

/// Functions whose calls SQL writes in a form of their own: a definition with one is shown as it was written.
const OF_GRAMMAR: &[&str] = &["extract", "position", "overlay", "normalize", "substring"];

/// What a text of an index means, in full; the text itself where that can't be written down.
pub struct Definition {
    /// The text.
    pub text: String,
    /// Whether it is a call of a function, which needs no parentheses as a column of an index.
    pub is_call: bool,
}

/// The definition of a text over the columns of a table.
pub fn definition(
    catalog: &Catalog,
    (table, index): (&Relation, &Index),
    text: &str,
    place: Place,
    pretty: bool,
) -> Definition {
    match bind_shown(catalog, table, index.path.as_deref(), text, place) {
        Ok(bound) => of_bound(table, text, &bound, pretty),
        Err(_) => Definition { text: text.to_owned(), is_call: false },
    }
}

/// The default of a column, what it is computed from, or a check: as PostgreSQL shows it, if what is shown means the same again.
pub fn shown(
    catalog: &Catalog,
    table: &Relation,
    path: Option<&[Oid]>,
    (text, place): (&str, Place),
    pretty: bool,
) -> Option<String> {
    if let Some(word) = keyword(text) {
        return Some(word);
    }
    if FORMS.iter().chain(KEYWORDS).any(|word| says(text, word)) || says_moment(text) {
        return None;
    }
    let written = |text: &str, path, pretty| {
        let bound = bind_shown(catalog, table, path, text, place).ok()?;
        (!of_grammar(&bound) && !of_zone(text, &bound)).then(|| of_bound(table, text, &bound, pretty).text)
    };
    let full = written(text, path, false)?;
    // EXD-1
    let again = written(&full, None, false)?;
    if without_text_casts(&again) != without_text_casts(&full) {
        return None;
    }
    if pretty { written(text, path, true) } else { Some(full) }
}

/// A text without parentheses and casts to text: the cast of an array of varchar to text[] is read as one of each element.
fn without_text_casts(text: &str) -> String {
    text.replace("::text", "").replace(['(', ')', '[', ']'], "")
}

/// The words that stand for a value.
const KEYWORDS: &[&str] = &[
    "current_date",
    "current_timestamp",
    "current_time",
    "localtime",
    "localtimestamp",
    "current_user",
    "current_role",
    "session_user",
    "user",
    "current_catalog",
    "current_schema",
];

/// A text that is one such word, or one with a precision, as it is shown.
fn keyword(text: &str) -> Option<String> {
    let word = text.trim().to_ascii_lowercase();
    let (name, behind) = word.split_at(word.find('(').unwrap_or(word.len()));
    let precision = behind.strip_prefix('(').and_then(|b| b.strip_suffix(')'));
    let is_precision = behind.is_empty() || precision.is_some_and(|p| p.parse::<u8>().is_ok());
    (KEYWORDS.contains(&name.trim()) && is_precision).then(|| format!("{}{behind}", name.trim().to_ascii_uppercase()))
}

/// Words of forms that what is bound does not tell any more: AT TIME ZONE, COLLATE, NULLIF.
const FORMS: &[&str] = &["at", "collate", "nullif"];

/// Whether a text has a word.
fn says(text: &str, word: &str) -> bool {
    let Ok(tokens) = clearway_syntax::lexer::tokens(text) else { return true };
    tokens.iter().any(|t| matches!(&t.kind, clearway_syntax::lexer::Tok::Word(w) if w == word))
}

/// Whether a text has a string that means another moment each time.
fn says_moment(text: &str) -> bool {
    let words = ["now", "today", "tomorrow", "yesterday"];
    words.iter().any(|word| text.to_ascii_lowercase().contains(&format!("'{word}")))
}

/// Whether a constant was read in the session's time zone.
fn of_zone(text: &str, bound: &Bound) -> bool {
    let zoned = |e: &Bound| matches!(e.kind, BoundKind::Const(_)) && matches!(e.ty.oid, oid::TIMESTAMPTZ | oid::TIMETZ);
    bound.any(&zoned) && !["+00", "Z'", "UTC"].iter().any(|zone| text.contains(zone))
}

/// Whether a part of an expression is written in a form of its own that is not known any more.
fn of_grammar(bound: &Bound) -> bool {
    use BoundKind as K;
    bound.any(&|e: &Bound| match &e.kind {
        K::Call { function, .. } | K::Spread { function, .. } => OF_GRAMMAR.contains(&function.name),
        K::Slice { .. } | K::Record { .. } | K::Row(_) => true,
        _ => false,
    })
}

/// The same of a text that is bound.
pub fn of_bound(table: &Relation, text: &str, bound: &Bound, pretty: bool) -> Definition {
    use BoundKind as K;
    if of_grammar(bound) {
        let text = if pretty { text.to_owned() } else { format!("({text})") };
        return Definition { text, is_call: false };
    }
    let column = |c: &clearway_engine::catalog::Column| (String::new(), clearway_context::names::quote(&c.name));
    let names = Names { slots: table.columns.iter().map(column).collect(), aggregates: Vec::new() };
    let style = if pretty { Style::Pretty } else { Style::Definition };
    let conversion = bare_conversion();
    let words = Words { conversion: &conversion, levels: &[names], qualified: false, own: 0..0, style };
    let named = |function: &clearway_values::expr::functions::Function| {
        function.name != clearway_values::expr::bind_rows::FIELD.name
            && function.name.starts_with(|c: char| c.is_alphabetic())
    };
    let is_call = match &bound.kind {
        K::Call { function, .. } => named(function),
        K::Host { function: HostFunction::Operator { .. }, .. } => false,
        K::Host { .. } | K::Spread { .. } | K::Coalesce(_) | K::MinMax { .. } => true,
        _ => false,
    };
    Definition { text: words.expr(bound), is_call }
}
