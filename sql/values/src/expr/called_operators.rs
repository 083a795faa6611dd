//! Operators that are computed by functions; their rows are those of functions, under the operator's name.

use super::functions::Function;

/// Every table of them.
pub static TABLES: &[&[Function]] = &[
    super::json_functions::OPERATORS,
    super::json_path::OPERATORS,
    super::math_functions::OPERATORS,
    super::inet_functions::OPERATORS,
    super::range_functions::OPERATORS,
    super::bit_functions::OPERATORS,
    super::lsn_functions::OPERATORS,
    super::word_functions::OPERATORS,
    super::citext_functions::OPERATORS,
    super::hstore_functions::OPERATORS,
];
