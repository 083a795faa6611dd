//! The meaning of a view's text: resolved once, when the view is created, and used whenever the view is read. So a view goes on reading the
//! tables from which it was created, even after they are renamed, and the columns for which its stars stood then.
//!
//! # Invariants
//! - VIE-1: planning the same text meets its stars in the same order each time.

use crate::context::names::Found;
use crate::expr::ScopeColumn;
use crate::syntax::ast::QualName;
use clearway_engine::catalog::{Catalog, Oid, Relation, ViewMeaning};

/// The meaning of the text that is being planned.
#[derive(Default)]
pub(crate) struct Meaning {
    /// Whose rights count: the owner of the view; none: the session's role.
    pub owner: Option<Oid>,
    /// Found out so far, or to be followed.
    pub text: ViewMeaning,
    /// It is followed, not found out.
    follows: bool,
    /// Stars met so far.
    stars: usize,
}

impl Meaning {
    /// That of a view.
    pub fn of(view: &Relation) -> Meaning {
        let follows = view.meaning.is_some();
        Meaning { owner: Some(view.owner), text: view.meaning.clone().unwrap_or_default(), follows, stars: 0 }
    }

    /// The relation that a name stands for, where that is settled.
    pub fn find<'c>(&self, name: &QualName, catalog: &'c Catalog) -> Option<Found<'c>> {
        if !self.follows {
            return None;
        }
        let dotted = name.dotted();
        let (_, oid) = self.text.names.iter().find(|(known, _)| *known == dotted)?;
        catalog.get(*oid).map(Found::Object)
    }

    /// Notes what a name stands for.
    pub fn note(&mut self, name: &QualName, found: &Found<'_>) {
        let Found::Object(object) = found else { return };
        let entry = (name.dotted(), object.oid());
        if !self.follows && !self.text.names.contains(&entry) {
            self.text.names.push(entry);
        }
    }

    /// The columns that a star stands for (VIE-1), out of all that it could.
    pub fn star<'s>(&mut self, columns: Vec<&'s ScopeColumn>) -> Vec<&'s ScopeColumn> {
        let name = |c: &ScopeColumn| (c.relation.clone().unwrap_or_default(), c.name.clone());
        let at = self.stars;
        self.stars += 1;
        if !self.follows {
            self.text.stars.push(columns.iter().map(|c| name(c)).collect());
            return columns;
        }
        match self.text.stars.get(at) {
            Some(known) => columns.into_iter().filter(|c| known.contains(&name(c))).collect(),
            None => columns,
        }
    }
}
