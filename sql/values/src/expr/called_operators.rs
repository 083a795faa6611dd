//! Operators that are computed by functions; their rows are those of functions, under the operator's name.

use super::functions::Function;
use clearway_base::memory;
use std::collections::HashMap;
use std::sync::OnceLock;

/// Every table of them.
static TABLES: &[&[Function]] = &[
    super::json_functions::OPERATORS,
    super::json_path::OPERATORS,
    super::text_functions::OPERATORS,
    super::math_functions::OPERATORS,
    super::inet_functions::OPERATORS,
    super::range_functions::OPERATORS,
    super::bit_functions::OPERATORS,
    super::lsn_functions::OPERATORS,
    super::word_functions::OPERATORS,
    super::citext_functions::OPERATORS,
    super::hstore_functions::OPERATORS,
    super::geometry_table::OPERATORS,
];

/// The operators of a name.
pub fn named(name: &str) -> &'static [&'static Function] {
    static BY_NAME: OnceLock<HashMap<&'static str, Vec<&'static Function>>> = OnceLock::new();
    let by_name = BY_NAME.get_or_init(|| {
        memory::uncharged(|| {
            let mut map: HashMap<&'static str, Vec<&'static Function>> = HashMap::new();
            TABLES.iter().flat_map(|table| table.iter()).for_each(|f| map.entry(f.name).or_default().push(f));
            map
        })
    });
    by_name.get(name).map_or(&[], Vec::as_slice)
}
