//! The syntax tree of statements about operators.

use super::ast::{QualName, TypeName};
use super::ddl::RoleSpec;

/// CREATE, ALTER, DROP and COMMENT of operators.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum OperatorStatement {
    Create { name: QualName, options: Vec<OperatorOption> },
    Alter { operator: OperatorName, change: OperatorChange },
    Drop { operators: Vec<OperatorName>, if_exists: bool, cascade: bool },
    Comment { operator: OperatorName, text: Option<String> },
}

/// An operator by its name and the types of its operands; none stands for NONE.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct OperatorName {
    pub name: QualName,
    pub left: Option<TypeName>,
    pub right: Option<TypeName>,
}

/// What ALTER OPERATOR changes.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum OperatorChange {
    Owner(RoleSpec),
    Schema(String),
    Set(Vec<OperatorOption>),
}

/// An attribute, with what stands behind `=`.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct OperatorOption {
    pub name: String,
    pub value: Option<OperatorValue>,
}

/// gram.y's def_arg.
#[derive(Clone, Debug, PartialEq)]
pub enum OperatorValue {
    /// Words with dots between them, if the value is nothing else; and the type that the value is the name of, if it can be one, with whether SETOF
    /// stands before it.
    Name(Option<QualName>, Option<TypeName>, bool),
    /// An operator.
    Operator(QualName),
    /// A string or a number, as it is written.
    Constant(String),
    /// NONE.
    None,
}
