//! The syntax tree of statements about functions and procedures.

use super::ast::{Call, Expr, QualName, TypeName};
use super::ddl::RoleSpec;
use super::error::Pos;
use super::stmt::SetVariable;

/// CREATE, ALTER, DROP and CALL of functions and procedures.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum RoutineStatement {
    Create(Box<CreateRoutine>),
    Alter { kind: RoutineKind, routine: RoutineName, change: RoutineChange },
    Drop { kind: RoutineKind, names: Vec<RoutineName>, if_exists: bool, cascade: bool },
    Comment { kind: RoutineKind, routine: RoutineName, text: Option<String> },
    Call { call: Call, pos: Pos },
}

impl RoutineStatement {
    /// Whether it is a CALL.
    pub fn is_call(&self) -> bool {
        self.as_call().is_some()
    }

    /// What CALL calls, and where that stands; none: it is another statement.
    pub fn as_call(&self) -> Option<(&Call, Pos)> {
        match self {
            RoutineStatement::Call { call, pos } => Some((call, *pos)),
            _ => None,
        }
    }
}

/// What a statement says that it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum RoutineKind {
    Function,
    Procedure,
    /// Either.
    Routine,
}

/// What an argument is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum ArgumentMode {
    #[default]
    In,
    Out,
    InOut,
    Variadic,
    /// A column of RETURNS TABLE.
    Table,
}

/// An argument of a new function.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct ArgumentDef {
    pub mode: ArgumentMode,
    pub name: Option<String>,
    pub ty: TypeName,
    /// With its text.
    pub default: Option<(Expr, String)>,
}

/// A function by its name, and by its arguments where they are written.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct RoutineName {
    pub name: QualName,
    pub arguments: Option<Vec<ArgumentDef>>,
}

/// The body of a new function.
#[derive(Clone, Debug, PartialEq)]
pub enum RoutineBody {
    /// A string, and the second one of a function of another language.
    Text(String, Option<String>),
    /// RETURN, or BEGIN ATOMIC ... END, as it is written.
    Atomic(String),
}

/// A setting of a function.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum RoutineSetting {
    Set(SetVariable),
    FromCurrent(String),
    Reset(String),
    ResetAll,
}

/// The attributes of a function, as far as written.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs)]
pub struct RoutineOptions {
    /// `i`, `s` or `v`.
    pub volatility: Option<char>,
    pub strict: Option<bool>,
    pub leakproof: Option<bool>,
    pub definer: Option<bool>,
    pub parallel: Option<String>,
    pub cost: Option<String>,
    pub rows: Option<String>,
    pub settings: Vec<RoutineSetting>,
}

/// CREATE FUNCTION and CREATE PROCEDURE.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct CreateRoutine {
    pub procedure: bool,
    pub replace: bool,
    pub name: QualName,
    pub arguments: Vec<ArgumentDef>,
    /// The type of the result, and whether SETOF stands before it.
    pub returns: Option<(TypeName, bool)>,
    pub language: Option<String>,
    pub options: RoutineOptions,
    pub body: Option<RoutineBody>,
    /// Where the text of the body begins, if it stands there as it is.
    pub place: Option<Pos>,
}

/// What ALTER FUNCTION changes.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum RoutineChange {
    Rename(String),
    Owner(RoleSpec),
    Schema(String),
    Options(RoutineOptions),
}
