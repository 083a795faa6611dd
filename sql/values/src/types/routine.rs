//! Functions and procedures that users define, as the binder and the types regproc and regprocedure know them. They are found like types:
//! by the session's search path, or by that of the definition whose text is being planned.

use super::datum::RowShape;
use super::operator::UserOperator;
use super::user::DefinitionPath;
use super::{Oid, user};
use crate::error::Result;
use std::sync::Arc;

/// An argument that a call gives.
#[derive(Clone, Debug)]
pub struct Input {
    /// Its name.
    pub name: Option<String>,
    /// Its type.
    pub ty: Oid,
    /// The text of its default.
    pub default: Option<String>,
}

/// A function or a procedure.
#[derive(Clone, Debug)]
pub struct Signature {
    /// Its number.
    pub oid: Oid,
    /// Its schema.
    pub schema: Arc<str>,
    /// Its name.
    pub name: String,
    /// It is called by CALL.
    pub procedure: bool,
    /// All arguments as they are declared: the letter of pg_proc, name, type.
    pub declared: Vec<(char, Option<String>, Oid)>,
    /// The arguments that a call gives.
    pub inputs: Vec<Input>,
    /// The last of them is an array of the arguments that repeat.
    pub variadic: bool,
    /// The type of its result.
    pub result: Oid,
    /// It gives rows.
    pub gives_rows: bool,
    /// The columns of its result, if it declares any: OUT arguments, or TABLE.
    pub outputs: Option<Arc<RowShape>>,
    /// `i`, `s` or `v`.
    pub volatility: char,
    /// A null among its arguments makes the result null.
    pub strict: bool,
    /// It runs as its owner, or with settings of its own: a call of it is never replaced by its body.
    pub apart: bool,
    /// Its text.
    pub body: String,
    /// The text is a body of the standard.
    pub atomic: bool,
    /// The schemas in which the names of such a body and of the defaults are looked for.
    pub path: Option<Arc<DefinitionPath>>,
}

impl Signature {
    /// The types of the arguments that a call gives.
    pub fn types(&self) -> Vec<Oid> {
        self.inputs.iter().map(|i| i.ty).collect()
    }
}

/// Finds functions, procedures and operators; the catalog implements it.
pub trait Routines: Send + Sync + std::fmt::Debug {
    /// Those of a name in a schema.
    fn named(&self, schema: &str, name: &str) -> Vec<Arc<Signature>>;
    /// That of a number.
    fn of_oid(&self, oid: Oid) -> Option<Arc<Signature>>;
    /// The operators of a name in a schema.
    fn operators(&self, schema: &str, name: &str) -> Vec<Arc<UserOperator>>;
    /// The operator of a number.
    fn operator(&self, oid: Oid) -> Option<Arc<UserOperator>>;
}

/// Whether a schema of the search path is the one of temporary objects. No function or operator is looked for there, as in PostgreSQL: a role could
/// put its own in front of another role's.
pub fn is_temporary(schema: &str) -> bool {
    schema == "pg_temp" || schema.starts_with("pg_temp_")
}

/// Those that a name may mean, in the order of the search path; of several with the same arguments the first.
///
/// # Errors
/// 42501 for a schema that the session's role may not look into.
pub fn named(schema: Option<&str>, name: &str) -> Result<Vec<Arc<Signature>>> {
    let Some(types) = user::current() else { return Ok(Vec::new()) };
    if let Some(schema) = schema {
        types.may_look_into(schema)?;
    }
    let Some(routines) = types.routines() else { return Ok(Vec::new()) };
    let definition = user::definition_path();
    let known = |s: &Arc<Signature>| match definition.as_ref().and_then(|path| path.routines.as_ref()) {
        Some(list) => list.contains(&s.oid), // USR-4
        None => true,
    };
    if let Some(schema) = schema {
        return Ok(routines.named(schema, name).into_iter().filter(known).collect());
    }
    let path: &[String] = definition.as_ref().map_or(types.path(), |path| &path.schemas);
    let mut out: Vec<Arc<Signature>> = Vec::new();
    for schema in path.iter().filter(|schema| !is_temporary(schema)) {
        for found in routines.named(schema, name).into_iter().filter(known) {
            if !out.iter().any(|known| known.types() == found.types()) {
                out.push(found);
            }
        }
    }
    Ok(out)
}

/// That of a number.
pub fn of_oid(oid: Oid) -> Option<Arc<Signature>> {
    if oid < user::FIRST_OID {
        return None;
    }
    user::current()?.routines()?.of_oid(oid)
}

/// Whether the name alone leads to a function.
pub fn is_visible(signature: &Signature) -> bool {
    named(None, &signature.name).is_ok_and(|found| found.iter().any(|found| found.oid == signature.oid))
}
