//! jsonpath: the tree of a path, and its text (src/backend/utils/adt/jsonpath.c). Paths are executed in `expr`.

mod parse;
mod text;
mod tree;

pub use parse::parse;
pub use tree::{JsonPath, Method, Node, Operand, PathOp, Step};
