//! The syntax tree of statements about extensions.

/// CREATE, DROP and COMMENT ON EXTENSION.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum ExtensionStatement {
    Create { name: String, if_not_exists: bool, schema: Option<String>, version: Option<String> },
    Drop { names: Vec<String>, if_exists: bool, cascade: bool },
    Comment { name: String, text: Option<String> },
}
