//! The value that SET names, as text.

use crate::names;
use clearway_syntax::stmt::{OptionValue, SetVariable};

/// The text of the value that SET names; none: the default.
pub fn set_value(s: &SetVariable) -> Option<String> {
    let list = s.values.as_deref().filter(|list| !matches!(list, [OptionValue::Default]))?;
    // Each item of a list of names is one name, however it is written.
    let name = |text: &String| if s.name == "search_path" { names::quote(text) } else { text.clone() };
    let one = |v: &OptionValue| match v {
        OptionValue::Word(w) | OptionValue::Str(w) | OptionValue::Number(w) => name(w),
        OptionValue::Default => "default".to_owned(),
        OptionValue::List(l) => l.join(", "),
    };
    Some(list.iter().map(one).collect::<Vec<_>>().join(", "))
}
