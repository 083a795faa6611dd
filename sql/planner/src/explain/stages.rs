//! Writes, for EXPLAIN, the values behind the slots of a level's rows (PLN-8).

use super::words::Words;
use crate::plan::StageCall;
use clearway_values::expr::aggregate::AggregateCall;
use clearway_values::expr::sets::SetCall;
use clearway_values::expr::window::WindowFunction;

/// The name of a variant as SQL writes it.
fn snake(variant: &str) -> String {
    let mut out = String::new();
    for c in variant.chars().take_while(|c| c.is_alphanumeric()) {
        if c.is_ascii_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

/// An aggregate.
pub fn aggregate(call: &AggregateCall, words: &Words<'_>) -> String {
    let kind = format!("{:?}", call.kind);
    let star = kind == "CountStar";
    let name = snake(kind.trim_end_matches("Star"));
    let distinct = if call.distinct { "DISTINCT " } else { "" };
    let args = if star { "*".to_owned() } else { words.list(&call.args) };
    format!("{name}({distinct}{args})")
}

/// A window function.
pub fn window(call: &StageCall, words: &Words<'_>) -> String {
    let shown = match &call.function {
        WindowFunction::Aggregate(inner) => aggregate(inner, words),
        WindowFunction::Shifted(forward) => {
            format!("{}({})", if *forward { "lead" } else { "lag" }, words.list(&call.args))
        }
        function => format!("{}({})", snake(&format!("{function:?}")), words.list(&call.args)),
    };
    format!("{shown} OVER (?)")
}

/// A function that gives rows.
pub fn set(call: &SetCall, words: &Words<'_>) -> String {
    let name = call.columns.first().map_or("function", |c| c.0.as_str());
    format!("{name}({})", words.list(&call.args))
}
