//! Functions and procedures that users define.

use super::acl::Acl;
use super::object::{Oid, ViewMeaning};
use serde::{Deserialize, Serialize};

/// A function or a procedure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Routine {
    /// Its number.
    pub oid: Oid,
    /// Its database.
    pub database: Oid,
    /// Its schema.
    pub schema: Oid,
    /// Its name, which other routines with other arguments may have, too.
    pub name: String,
    /// Its owner.
    pub owner: Oid,
    /// Who may call it.
    #[serde(default, skip_serializing_if = "Acl::is_default")]
    pub acl: Acl,
    /// What it is.
    #[serde(default)]
    pub kind: RoutineKind,
    /// Its arguments, those that only give something out included.
    pub arguments: Vec<Argument>,
    /// The type of its result.
    pub result: Oid,
    /// It gives rows: SETOF or TABLE.
    #[serde(default)]
    pub gives_rows: bool,
    /// What its result depends on.
    #[serde(default)]
    pub volatility: Volatility,
    /// A null among its arguments makes the result null, without a call.
    #[serde(default)]
    pub strict: bool,
    /// It tells nothing of its arguments but its result.
    #[serde(default)]
    pub leakproof: bool,
    /// It runs with the rights of its owner.
    #[serde(default)]
    pub definer: bool,
    /// `u` for PARALLEL UNSAFE, `r` for RESTRICTED, `s` for SAFE.
    #[serde(default = "unsafe_letter")]
    pub parallel: char,
    /// The text of COST; none: 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<String>,
    /// The text of ROWS; none: 1000, or 0 for one that gives no rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<String>,
    /// SET: settings that hold while it runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<(String, String)>,
    /// The language of its text.
    #[serde(default, skip_serializing_if = "Language::is_sql")]
    pub language: Language,
    /// Its text: statements, or the body of the standard as it was written.
    pub body: String,
    /// The body is one of the standard: RETURN, or BEGIN ATOMIC ... END.
    #[serde(default)]
    pub atomic: bool,
    /// What each statement of such a body means: the relations and stars that it names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub meanings: Vec<ViewMeaning>,
    /// The schemas in which names of such a body, and of the defaults, are looked for, and the routines; as of a column.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<Vec<Oid>>,
}

fn unsafe_letter() -> char {
    'u'
}

/// What a routine is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum RoutineKind {
    /// A function.
    #[default]
    Function,
    /// A procedure.
    Procedure,
}

impl RoutineKind {
    /// What it is, for errors.
    pub fn name(self) -> &'static str {
        match self {
            RoutineKind::Function => "function",
            RoutineKind::Procedure => "procedure",
        }
    }
}

/// The language of a routine's text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Language {
    /// SQL.
    #[default]
    Sql,
    /// PL/pgSQL.
    Plpgsql,
}

impl Language {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Language::Sql => "sql",
            Language::Plpgsql => "plpgsql",
        }
    }

    fn is_sql(&self) -> bool {
        *self == Language::Sql
    }
}

/// What the result of a function depends on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Volatility {
    /// On the arguments alone.
    Immutable,
    /// On the database, too; within a statement it is the same.
    Stable,
    /// On anything; or the function changes something.
    #[default]
    Volatile,
}

/// What an argument is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ArgumentMode {
    /// It is given.
    #[default]
    In,
    /// It is a column of the result.
    Out,
    /// Both.
    InOut,
    /// An array of the arguments that repeat.
    Variadic,
    /// A column of RETURNS TABLE.
    Table,
}

/// An argument.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Argument {
    /// Its name, if it has one.
    pub name: Option<String>,
    /// Its type.
    pub type_oid: Oid,
    /// What it is for.
    #[serde(default)]
    pub mode: ArgumentMode,
    /// The text of its default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
}

impl Argument {
    /// Whether a call gives it.
    pub fn is_input(&self) -> bool {
        matches!(self.mode, ArgumentMode::In | ArgumentMode::InOut | ArgumentMode::Variadic)
    }

    /// Whether the result has it.
    pub fn is_output(&self) -> bool {
        matches!(self.mode, ArgumentMode::Out | ArgumentMode::InOut | ArgumentMode::Table)
    }
}

impl Routine {
    /// The arguments that a call gives.
    pub fn inputs(&self) -> impl Iterator<Item = &Argument> {
        self.arguments.iter().filter(|a| a.is_input())
    }

    /// The arguments that its result has.
    pub fn outputs(&self) -> impl Iterator<Item = &Argument> {
        self.arguments.iter().filter(|a| a.is_output())
    }

    /// The types of the arguments that a call gives.
    pub fn input_types(&self) -> Vec<Oid> {
        self.inputs().map(|a| a.type_oid).collect()
    }

    /// Its name and the types of its arguments: what no other routine of the schema has.
    pub fn signature(&self) -> String {
        let types: Vec<String> = self.inputs().map(|a| a.type_oid.to_string()).collect();
        format!("{}\0{}", self.name, types.join(","))
    }

    /// Whether it names a relation, or the type of one's rows; of a body that is a string nothing is known before it runs.
    pub fn names_relation(&self, oid: Oid) -> bool {
        self.meanings.iter().any(|m| m.names.iter().any(|(_, named)| *named == oid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_argument_that_only_gives_is_no_part_of_the_signature() {
        let argument = |type_oid, mode| Argument { name: None, type_oid, mode, default: None };
        let text = r#"{"oid":1,"database":2,"schema":3,"name":"f","owner":4,"arguments":[],"result":23,"body":""}"#;
        let mut routine: Routine = serde_json::from_str(text).expect("fields that are left out have defaults");
        assert_eq!((routine.volatility, routine.parallel), (Volatility::Volatile, 'u'));
        routine.arguments = vec![
            argument(23, ArgumentMode::In),
            argument(25, ArgumentMode::Out),
            argument(16, ArgumentMode::InOut),
            argument(20, ArgumentMode::Table),
        ];
        assert_eq!(routine.signature(), "f\x0023,16");
        assert_eq!(routine.outputs().count(), 3);
    }
}
