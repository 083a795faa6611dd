//! Operators that users define, as the binder and the types regoper and regoperator know them. They are found like functions.
//!
//! # Invariants
//! - OPR-1: while no catalog of the process has such an operator, none is looked for.
//! - OPR-2: a stored text names an operator of a user with its schema, `OPERATOR(schema.+)`. Without one an operator in it is one of the system's,
//!   whatever operators exist when it is evaluated.

use super::user;
use super::{Oid, format_type, routine};
use crate::error::{Pos, Result};
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// An operator.
#[derive(Clone, Debug)]
pub struct UserOperator {
    /// Its number.
    pub oid: Oid,
    /// Its schema.
    pub schema: Arc<str>,
    /// Its name.
    pub name: String,
    /// The type on its left; 0: none.
    pub left: Oid,
    /// The type on its right.
    pub right: Oid,
    /// The function that computes it; 0: other operators name this one, and no statement has defined it.
    pub function: Oid,
}

impl UserOperator {
    /// The types of its operands.
    pub fn types(&self) -> Vec<Oid> {
        [self.left, self.right].into_iter().filter(|ty| *ty != 0).collect()
    }

    /// Its name and the types of its operands, as regoperator shows them.
    pub fn shown(&self) -> String {
        let shown = |ty: Oid| if ty == 0 { "NONE".to_owned() } else { format_type(ty.into()) };
        format!("{}({},{})", self.name, shown(self.left), shown(self.right))
    }
}

/// OPR-1
static ANY: AtomicBool = AtomicBool::new(false);

/// A catalog has operators of users.
pub fn there_are_some() {
    ANY.store(true, Relaxed);
}

/// Whether a catalog of the process has had one.
pub fn is_any() -> bool {
    ANY.load(Relaxed)
}

/// The schema before an operator's name, if one is written, and the name.
pub fn split(name: &str) -> (Option<&str>, &str) {
    match name.rsplit_once('.') {
        Some((schema, name)) => (Some(schema), name),
        None => (None, name),
    }
}

/// An operator, and whether its schema is searched before pg_catalog.
pub type Found = (Arc<UserOperator>, bool);

/// Those that a name may mean, in the order of the search path; of several with the same operands the first.
///
/// # Errors
/// 42501 for a schema that the session's role may not look into.
pub fn named(schema: Option<&str>, name: &str) -> Result<Vec<Found>> {
    let Some(types) = user::current().filter(|_| is_any()) else { return Ok(Vec::new()) };
    if let Some(schema) = schema {
        types.may_look_into(schema)?;
    }
    let Some(routines) = types.routines() else { return Ok(Vec::new()) };
    if let Some(schema) = schema {
        return Ok(routines.operators(schema, name).into_iter().map(|found| (found, true)).collect());
    }
    if user::definition_path().is_some() {
        return Ok(Vec::new()); // OPR-2
    }
    let catalog = types.path().iter().position(|schema| schema == "pg_catalog");
    let mut out: Vec<Found> = Vec::new();
    for (at, schema) in types.path().iter().enumerate().filter(|(_, schema)| !routine::is_temporary(schema)) {
        for found in routines.operators(schema, name) {
            if !out.iter().any(|(known, _)| known.types() == found.types()) {
                out.push((found, catalog.is_some_and(|catalog| at < catalog)));
            }
        }
    }
    Ok(out)
}

/// That of a number.
pub fn of_oid(oid: Oid) -> Option<Arc<UserOperator>> {
    if !is_any() || oid < user::FIRST_OID {
        return None;
    }
    user::current()?.routines()?.operator(oid)
}

/// Whether the name alone, between operands of just its types, leads to an operator.
pub fn is_visible(operator: &UserOperator) -> bool {
    let types = operator.types();
    let of_system = crate::builtin::operators();
    let hidden =
        of_system.iter().any(|o| o.name == operator.name && (o.left, o.right) == (operator.left, operator.right));
    let found = named(None, &operator.name).unwrap_or_default();
    let found = found.into_iter().find(|(known, _)| known.types() == types);
    found.is_some_and(|(known, before_catalog)| known.oid == operator.oid && (before_catalog || !hidden))
}

thread_local! {
    /// Where a text has operators of users, while [`collect`] asks.
    static MET: RefCell<Option<Vec<(Pos, Oid)>>> = const { RefCell::new(None) };
}

/// Puts back what was collected before.
pub(super) struct Met(Option<Vec<(Pos, Oid)>>);

impl Met {
    /// Another text is bound until this is dropped: its places are not those of the text that is asked about.
    pub(super) fn apart() -> Met {
        Met(MET.take())
    }
}

impl Drop for Met {
    fn drop(&mut self) {
        MET.set(self.0.take());
    }
}

/// What `f` gives, and the operators of users in the text that it binds on this thread, with their places.
pub fn collect<R>(f: impl FnOnce() -> R) -> (R, Vec<(Pos, Oid)>) {
    let _before = Met(MET.replace(Some(Vec::new())));
    let out = f();
    (out, MET.take().unwrap_or_default())
}

/// An operator stands at a place.
pub fn note(pos: Pos, operator: Oid) {
    MET.with_borrow_mut(|met| met.iter_mut().for_each(|met| met.push((pos, operator))));
}
