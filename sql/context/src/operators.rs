//! Operators that users define: how the binder finds them, and how texts show them.

use super::names::CatalogNames;
use super::types::schema_name;
use clearway_engine::catalog::{Catalog, Operator};
use clearway_syntax::lexer::{Tok, Token, tokens};
use clearway_values::types::operator::{UserOperator, is_visible};
use clearway_values::types::{Oid, format_type};
use std::borrow::Cow;

/// An operator as the binder knows it.
pub fn known(catalog: &Catalog, o: &Operator) -> UserOperator {
    UserOperator {
        oid: o.oid,
        schema: schema_name(catalog, o.schema).unwrap_or_default(),
        name: o.name.clone(),
        left: o.left,
        right: o.right,
        function: o.function,
    }
}

/// Its name and the types of its operands, as errors and DROP show it.
pub fn shown(o: &Operator) -> String {
    let ty = |oid: Oid| if oid == 0 { "NONE".to_owned() } else { format_type(oid.into()) };
    format!("{}({},{})", o.name, ty(o.left), ty(o.right))
}

/// `OPERATOR(schema.name)` in a text.
pub struct Written<'t> {
    /// Its bytes.
    pub start: usize,
    /// Their end.
    pub end: usize,
    /// The schema.
    pub schema: String,
    /// The name.
    pub name: &'t str,
}

fn word(token: &Token<'_>) -> Option<String> {
    match &token.kind {
        Tok::Word(word) | Tok::Quoted(word) => Some(word.to_string()),
        _ => None,
    }
}

/// The operators that a text names with their schemas (OPR-2).
pub fn written(text: &str) -> Vec<Written<'_>> {
    let Ok(list) = tokens(text) else { return Vec::new() };
    let one = |w: &[Token<'_>]| {
        let is_operator = matches!(&w[0].kind, Tok::Word(word) if word == "operator");
        let is_mark = |at: usize, mark: u8| w[at].kind == Tok::Punct(mark);
        if !(is_operator && is_mark(1, b'(') && is_mark(3, b'.') && is_mark(5, b')')) {
            return None;
        }
        let (start, end) = (w[0].start as usize, w[5].end as usize);
        let Tok::Op(_) = &w[4].kind else { return None };
        let name = text.get(w[4].start as usize..w[4].end as usize)?;
        // The lexer's other spelling of <>.
        let name = if name == "!=" { "<>" } else { name };
        Some((start, end, word(&w[2])?, name))
    };
    let found = list.windows(6).filter_map(one);
    found.map(|(start, end, schema, name)| Written { start, end, schema, name }).collect()
}

/// A stored text as the session's search path lets it be written: an operator whose name alone leads to it has no schema.
pub(super) fn without_schemas<'t>(names: &CatalogNames, text: &'t str) -> Cow<'t, str> {
    if !names.catalog.has_operators() {
        return Cow::Borrowed(text);
    }
    let (mut out, mut copied) = (String::new(), 0);
    for found in written(text) {
        let Some(schema) = names.catalog.schema(names.database, &found.schema) else { continue };
        let mut all = names.catalog.operators_in(schema.oid, found.name).peekable();
        if all.peek().is_none() || !all.all(|o| is_visible(&known(&names.catalog, o))) {
            continue;
        }
        out.push_str(text.get(copied..found.start).unwrap_or_default());
        out.push_str(found.name);
        copied = found.end;
    }
    out.push_str(text.get(copied..).unwrap_or_default());
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::written;

    #[test]
    fn operators_with_schemas_are_told_from_calls() {
        let found = written("a OPERATOR(\"S\".!=) b + operator(c.d) OPERATOR(pg_catalog.+) 'OPERATOR(s.-)'");
        let found: Vec<_> = found.iter().map(|w| (w.schema.as_str(), w.name)).collect();
        assert_eq!(found, [("S", "<>"), ("pg_catalog", "+")]);
    }
}
