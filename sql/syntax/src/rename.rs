//! Replaces the name of a renamed column in the stored texts of expressions.

use super::lexer::{Tok, tokens};

/// The text with the column `from` renamed to `to`, which is written as SQL writes it. Names of functions, types and tables stay.
pub fn column(text: &str, from: &str, to: &str) -> String {
    let Ok(list) = tokens(text) else { return text.to_owned() };
    let mut out = String::with_capacity(text.len());
    let mut copied = 0;
    for (at, token) in list.iter().enumerate() {
        let named = match &token.kind {
            Tok::Word(word) => *word == from,
            Tok::Quoted(word) => *word == from,
            _ => false,
        };
        let next = list.get(at + 1).map(|t| &t.kind);
        let before = at.checked_sub(1).and_then(|at| list.get(at)).map(|t| &t.kind);
        let is_type = matches!(before, Some(Tok::Op("::")));
        let is_function = matches!(next, Some(Tok::Punct(b'(')));
        let is_table = matches!(next, Some(Tok::Punct(b'.')));
        if named && !is_type && !is_function && !is_table {
            out.push_str(text.get(copied..token.start as usize).unwrap_or_default());
            out.push_str(to);
            copied = token.end as usize;
        }
    }
    out.push_str(text.get(copied..).unwrap_or_default());
    out
}
