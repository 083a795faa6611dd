//! The parameters of a statement, and how the places where they stand give them types.

use super::bind_routines::ParamNames;
use super::bound::Bound;
use crate::error::{Pos, Result, SqlError, code};
use crate::syntax::ast::{Expr, ExprKind};
use crate::types::{Oid, format_type, oid};
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
    /// Those that stand, without a type at that point, where any type does (`$1 IS NULL`), and the places.
    pub untold: Vec<(u32, Pos)>,
}

impl Params {
    /// The types of all parameters.
    ///
    /// # Errors
    /// 42P18 for one that has none.
    pub fn settled(&self) -> Result<Vec<Oid>> {
        let all = 1..=self.types.len() as u32;
        all.map(|n| self.typed(n).ok_or_else(|| undetermined(code::INDETERMINATE_DATATYPE, n))).collect()
    }

    fn typed(&self, n: u32) -> Option<Oid> {
        self.types.get(n as usize - 1).copied().flatten().filter(|t| *t != oid::UNKNOWN)
    }

    /// Binds a clause by `f`.
    ///
    /// # Errors
    /// Those of `f`; 42P08 for a parameter that had no type yet in a place for any type and has one by the clause's end: `$1 IS NULL OR $1 = 1`.
    pub fn in_clause<R>(&mut self, f: impl FnOnce(&mut Params) -> Result<R>) -> Result<R> {
        let before = self.untold.len();
        let bound = f(self)?;
        let untold = self.untold.split_off(before);
        match untold.iter().find(|(n, _)| self.typed(*n).is_some()) {
            Some((n, pos)) => Err(undetermined(code::AMBIGUOUS_PARAMETER, *n).at(*pos)),
            None => Ok(bound),
        }
    }

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

fn undetermined(code: &'static str, n: u32) -> SqlError {
    SqlError::new(code, format!("could not determine data type of parameter ${n}"))
}

/// 42P08: a parameter would have two types.
pub fn inconsistent(n: u32, given: Oid, wanted: Oid) -> SqlError {
    let detail = format!("{} versus {}", format_type(given.into()), format_type(wanted.into()));
    SqlError::new(code::AMBIGUOUS_PARAMETER, format!("inconsistent types deduced for parameter ${n}")).detail(detail)
}
