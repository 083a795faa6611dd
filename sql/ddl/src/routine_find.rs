//! Finds the function or procedure that a statement names.
//!
//! Source: PostgreSQL 15's `LookupFuncWithArgs` (src/backend/parser/parse_func.c).

use super::routine::{mode, shown, type_of};
use super::{Ddl, missing};
use crate::context::privileges::denied;
use crate::error::{Result, SqlError, code};
use crate::syntax::routine::{ArgumentDef, RoutineKind, RoutineName};
use crate::types::Oid;
use crate::types::routine::is_temporary;
use clearway_engine::catalog::{self, ArgumentMode, Catalog, Object};
use std::sync::Arc;

/// What a name leads to; an error where it leads nowhere, which IF EXISTS lets pass.
pub(super) type Found = std::result::Result<Arc<Object>, SqlError>;

fn is_kind(o: &Object, kind: RoutineKind) -> bool {
    match (o, kind) {
        (Object::Routine(r), RoutineKind::Function) => r.kind == catalog::RoutineKind::Function,
        (Object::Routine(r), RoutineKind::Procedure) => r.kind == catalog::RoutineKind::Procedure,
        _ => true,
    }
}

fn word(kind: RoutineKind) -> &'static str {
    if kind == RoutineKind::Procedure { "procedure" } else { "function" }
}

/// The only routine of a name.
fn only(all: &[Arc<Object>], kind: RoutineKind, name: &RoutineName) -> Result<Found> {
    let (what, shown) = (word(kind), name.name.dotted());
    let fitting: Vec<&Arc<Object>> = all.iter().filter(|o| is_kind(o, kind)).collect();
    match (fitting.as_slice(), all.is_empty()) {
        ([one], _) => Ok(Ok(Arc::clone(one))),
        ([], false) => Err(SqlError::new(code::WRONG_OBJECT_TYPE, format!("{shown} is not a {what}"))),
        ([], true) => {
            let message = format!("could not find a {what} named \"{shown}\"");
            Ok(Err(SqlError::new(code::UNDEFINED_FUNCTION, message)))
        }
        _ => {
            let message = format!("{what} name \"{shown}\" is not unique");
            let hint = format!("Specify the argument list to select the {what} unambiguously.");
            Err(SqlError::new(code::AMBIGUOUS_FUNCTION, message).hint(hint))
        }
    }
}

/// The routine with these arguments.
fn with_arguments(
    all: &[Arc<Object>],
    kind: RoutineKind,
    name: &RoutineName,
    arguments: &[ArgumentDef],
) -> Result<Found> {
    let what = word(kind);
    let (mut types, mut every) = (Vec::new(), Vec::new());
    for a in arguments {
        let ty = match type_of(&a.ty) {
            Ok(ty) => ty,
            Err(e) => return Ok(Err(e)),
        };
        every.push(ty);
        if matches!(mode(a.mode), ArgumentMode::In | ArgumentMode::InOut | ArgumentMode::Variadic) {
            types.push(ty);
        }
    }
    // Types without a mode may be those of all parameters of a procedure, or those of its inputs.
    let plain = arguments.iter().all(|a| mode(a.mode) == ArgumentMode::In);
    let of_all = |r: &catalog::Routine| {
        let all: Vec<Oid> = r.arguments.iter().map(|a| a.type_oid).collect();
        r.kind == catalog::RoutineKind::Procedure && all == every
    };
    let fits = |o: &&Arc<Object>| match &***o {
        Object::Routine(r) => r.input_types() == types || of_all(r),
        _ => false,
    };
    if plain && kind == RoutineKind::Procedure && all.iter().filter(fits).count() > 1 {
        let message = format!("procedure name \"{}\" is not unique", name.name.dotted());
        return Err(SqlError::new(code::AMBIGUOUS_FUNCTION, message));
    }
    match all.iter().find(fits) {
        Some(found) if is_kind(found, kind) => Ok(Ok(found.clone())),
        Some(_) => {
            let message = format!("{} is not a {what}", shown(name.name.name(), &types));
            Err(SqlError::new(code::WRONG_OBJECT_TYPE, message))
        }
        None => {
            let message = format!("{what} {} does not exist", shown(&name.name.dotted(), &types));
            Ok(Err(SqlError::new(code::UNDEFINED_FUNCTION, message)))
        }
    }
}

impl Ddl<'_> {
    /// The routine that a statement names.
    ///
    /// # Errors
    /// 42725, 42809, 42501 for a schema that the session's role may not look into.
    pub(super) fn find_routine(&self, catalog: &Catalog, kind: RoutineKind, name: &RoutineName) -> Result<Found> {
        let path = self.core.path();
        let schemas: Vec<u32> = match name.name.schema() {
            Some("pg_catalog") => Vec::new(),
            Some(schema) => match catalog.schema(self.core.database, schema) {
                Some(schema) if self.judge(catalog).may_with_schema(schema, 'U') => vec![schema.oid],
                Some(schema) => return Err(denied("schema", &schema.name)),
                None => return Ok(Err(missing("schema", schema))),
            },
            // A function of the schema of temporary objects is found under that schema's name only.
            None => {
                let searched = path.iter().filter(|s| !is_temporary(s));
                searched.filter_map(|s| Some(catalog.schema(self.core.database, s)?.oid)).collect()
            }
        };
        let mut all: Vec<Arc<Object>> = Vec::new();
        for schema in schemas {
            for o in catalog.routines_in(schema, name.name.name()) {
                let Object::Routine(r) = &**o else { continue };
                let same = |k: &Arc<Object>| matches!(&**k, Object::Routine(k) if k.input_types() == r.input_types());
                if !all.iter().any(same) {
                    all.push(o.clone());
                }
            }
        }
        match &name.arguments {
            None => only(&all, kind, name),
            Some(arguments) => with_arguments(&all, kind, name, arguments),
        }
    }
}
