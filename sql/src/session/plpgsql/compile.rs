//! A body with the types of its variables.

use crate::context::core::Core;
use crate::error::{Pos, Result, SqlError, code};
use crate::expr::bind_routines::ParamNames;
use crate::planner::environment::with_env;
use crate::session::choice::Choice;
use crate::session::run::Cached;
use crate::syntax::ast::QualName;
use crate::syntax::plpgsql::names::Slot;
use crate::syntax::plpgsql::tree::{Body, VariableKind};
use crate::types::datum::RowShape;
use crate::types::{Oid, SqlType, oid, resolve};
use clearway_base::sync::Mutex;
use clearway_engine::catalog::types::row_type;
use std::sync::Arc;

/// The type of a variable.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    /// A named type, those of rows included.
    Of(SqlType),
    /// RECORD: what it is, a value says.
    Record,
    /// Whatever is assigned to it.
    Any,
}

/// What a function gives.
#[derive(Clone)]
pub(super) struct Returns {
    /// The type of its result.
    pub(super) ty: SqlType,
    /// The columns that it declares: OUT arguments, or TABLE.
    pub(super) shape: Option<Arc<RowShape>>,
    /// It has OUT arguments, or TABLE.
    pub(super) has_outputs: bool,
}

/// A plan of a piece of SQL text, and the variables that it was made for.
pub(super) struct Planned {
    pub(super) cached: Arc<Cached>,
    pub(super) names: Arc<ParamNames>,
    pub(super) types: Vec<Oid>,
    /// By which plan it runs.
    pub(super) choice: Choice,
}

/// A body that can run.
pub(super) struct Compiled {
    /// What CONTEXT calls it.
    pub(super) shown: String,
    pub(super) body: Body,
    /// The types of its variables.
    pub(super) kinds: Vec<Kind>,
    /// The variables of its OUT arguments.
    pub(super) outputs: Vec<Slot>,
    /// What it gives; none: DO.
    pub(super) returns: Option<Returns>,
    /// A plan for each piece of SQL text.
    pub(super) plans: Vec<Mutex<Option<Arc<Planned>>>>,
}

/// Looks up the types of a body's variables; `arguments` has those of the arguments.
///
/// # Errors
/// 42704, 42P01, 42703, with the place in the body.
pub(super) fn compile(core: &Core, shown: String, body: Body, arguments: &[SqlType]) -> Result<Compiled> {
    let mut kinds: Vec<Kind> = Vec::with_capacity(body.variables.len());
    for variable in &body.variables {
        // PostgreSQL tells the line alone.
        let near = |e: SqlError| {
            let name = shown.split('(').next().unwrap_or(&shown);
            e.nowhere().within(format!("compilation of PL/pgSQL function \"{name}\" near line {}", variable.line))
        };
        let kind = match &variable.kind {
            VariableKind::Typed(name) => Kind::Of(resolve(name)?),
            VariableKind::LikeVariable(slot) => kinds[*slot],
            VariableKind::LikeColumn(parts, pos) => Kind::Of(column_type(core, parts, *pos).map_err(near)?),
            VariableKind::RowOf(parts, pos) => Kind::Of(row_of(core, parts, *pos).map_err(near)?),
            VariableKind::Record => Kind::Record,
            VariableKind::Argument(n) => match arguments.get(*n).copied() {
                Some(ty) if ty.oid != oid::RECORD => Kind::Of(ty),
                _ => Kind::Record,
            },
            VariableKind::Boolean => Kind::Of(oid::BOOL.into()),
            VariableKind::Text => Kind::Of(oid::TEXT.into()),
            VariableKind::Cursor => Kind::Of(oid::REFCURSOR.into()),
            VariableKind::Integer => Kind::Of(oid::INT4.into()),
            VariableKind::Any => Kind::Any,
        };
        kinds.push(kind);
    }
    let plans = (0..body.fragments).map(|_| Mutex::new("sql/plpgsql/plan", None)).collect();
    Ok(Compiled { shown, body, kinds, outputs: Vec::new(), returns: None, plans })
}

/// The type of `table.column`.
fn column_type(core: &Core, parts: &[String], pos: Pos) -> Result<SqlType> {
    let Some((column, relation)) = parts.split_last().filter(|(_, relation)| !relation.is_empty()) else {
        return Err(
            SqlError::new(code::SYNTAX_ERROR, format!("variable \"{}\" does not exist", parts.join("."))).at(pos)
        );
    };
    let name = QualName { parts: relation.to_vec(), pos };
    let catalog = core.catalog();
    with_env(core, &catalog, |env| {
        let relation = env.relation(&name)?;
        let found = relation.columns.iter().find(|c| c.name == *column && c.dropped_version.is_none());
        match found {
            Some(found) => Ok(SqlType { oid: found.type_oid, modifier: found.type_mod }),
            None => {
                let message = format!("column \"{column}\" of relation \"{}\" does not exist", relation.name);
                Err(SqlError::new(code::UNDEFINED_COLUMN, message).at(pos))
            }
        }
    })
}

/// The type of the rows of a table, or a composite type.
fn row_of(core: &Core, parts: &[String], pos: Pos) -> Result<SqlType> {
    let name = QualName { parts: parts.to_vec(), pos };
    let catalog = core.catalog();
    let composite = crate::types::user::find(name.schema(), name.name())?;
    if let Some(found) = composite.filter(|found| crate::types::user::is_composite(found.oid)) {
        return Ok(found.oid.into());
    }
    let table = with_env(core, &catalog, |env| env.relation(&name).map(|r| r.oid))?;
    row_type(table).map(SqlType::new).ok_or_else(|| SqlError::unsupported("%ROWTYPE of this relation").at(pos))
}
