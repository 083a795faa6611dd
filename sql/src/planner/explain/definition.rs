//! Writes the expressions and conditions of indexes as their definitions show them.

use super::words::{Names, Style, Words};
use crate::context::index_terms::{Place, bare_conversion, bind_shown};
use crate::expr::{Bound, BoundKind};
use clearway_engine::catalog::{Catalog, Index, Relation};

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

/// The same of a text that is bound.
pub fn of_bound(table: &Relation, text: &str, bound: &Bound, pretty: bool) -> Definition {
    use BoundKind as K;
    let of_grammar = |e: &Bound| match &e.kind {
        K::Call { function, .. } | K::Spread { function, .. } => OF_GRAMMAR.contains(&function.name),
        K::Slice { .. } | K::Record { .. } | K::Row(_) => true,
        _ => false,
    };
    if bound.any(&of_grammar) {
        let text = if pretty { text.to_owned() } else { format!("({text})") };
        return Definition { text, is_call: false };
    }
    let column = |c: &clearway_engine::catalog::Column| (String::new(), crate::context::names::quote(&c.name));
    let names = Names { slots: table.columns.iter().map(column).collect(), aggregates: Vec::new() };
    let style = if pretty { Style::Pretty } else { Style::Definition };
    let conversion = bare_conversion();
    let words = Words { conversion: &conversion, levels: &[names], qualified: false, own: 0..0, style };
    let named = |function: &crate::expr::functions::Function| {
        function.name != crate::expr::bind_rows::FIELD.name && function.name.starts_with(|c: char| c.is_alphabetic())
    };
    let is_call = match &bound.kind {
        K::Call { function, .. } => named(function),
        K::Host { .. } | K::Spread { .. } | K::Coalesce(_) | K::MinMax { .. } => true,
        _ => false,
    };
    Definition { text: words.expr(bound), is_call }
}
