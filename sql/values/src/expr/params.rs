//! The parameters of a statement, and how the places where they stand give them types.

use super::bind_routines::ParamNames;
use super::bound::Bound;
use crate::error::{Result, SqlError, code};
use crate::syntax::ast::{Expr, ExprKind};
use crate::types::{Oid, format_type};
use std::sync::Arc;

/// The parameters of a statement: their types, as far as known.
#[derive(Clone, Debug, Default)]
pub struct Params {
    /// By number minus one; none: not known yet.
    pub types: Vec<Option<Oid>>,
    /// Whether further parameters may appear.
    pub open: bool,
    /// The names by which the body of a function calls them.
    pub names: Option<Arc<ParamNames>>,
    /// What stands for them where the body takes the place of the call.
    pub values: Option<Arc<[Bound]>>,
    /// The types that were known before the list of assignments at hand: a parameter that stands alone in it takes the type of its column, and
    /// can't take two.
    pub listed: Vec<Option<Oid>>,
    /// The parameter that stands alone in the expression at hand and had no type before the list.
    pub alone: Option<u32>,
}

impl Params {
    /// Begins a list of assignments.
    pub fn begin_list(&mut self) {
        self.listed.clone_from(&self.types);
    }

    /// Binds the value of an assignment of the list by `f`.
    ///
    /// # Errors
    /// Those of `f`.
    pub fn in_list<R>(&mut self, value: &Expr, f: impl FnOnce(&mut Params) -> Result<R>) -> Result<R> {
        let known = |types: &[Option<Oid>], at: usize| types.get(at).copied().flatten();
        if let ExprKind::Param(n) = *value.kind {
            self.alone = Some(n).filter(|n| known(&self.listed, *n as usize - 1).is_none());
            let bound = f(self);
            self.alone = None;
            return bound;
        }
        let before = self.types.clone();
        let bound = f(self)?;
        // What an expression gives a type to has it in the rest of the list.
        self.listed.resize(self.types.len().max(self.listed.len()), None);
        for (at, ty) in self.types.iter().enumerate() {
            if known(&before, at).is_none() {
                self.listed[at] = *ty;
            }
        }
        Ok(bound)
    }
}

/// 42P08: a parameter would have two types.
pub fn inconsistent(n: u32, given: Oid, wanted: Oid) -> SqlError {
    let detail = format!("{} versus {}", format_type(given.into()), format_type(wanted.into()));
    SqlError::new(code::AMBIGUOUS_PARAMETER, format!("inconsistent types deduced for parameter ${n}")).detail(detail)
}
