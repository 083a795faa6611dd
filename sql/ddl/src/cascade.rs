//! The messages of DROP about dependent objects, in PostgreSQL's words.

use super::Ddl;
use super::role_dependents::described;
use crate::context::core::Core;
use crate::context::extensions;
use crate::error::SqlError;
use crate::planner::environment::with_env;
use crate::types::user;
use clearway_base::sync::Mutex;
use clearway_engine::catalog::{Catalog, Index, Object, Policy, Relation, TypeObject};
use std::sync::Arc;

/// The lines that a NOTICE lists at most.
const LINES_MAX: usize = 100;

/// 2BP01: DROP without CASCADE. `detail` says what depends on what is dropped.
pub(super) fn needed(dropped: &str, detail: impl Into<String>) -> SqlError {
    SqlError::new("2BP01", format!("cannot drop {dropped} because other objects depend on it"))
        .detail(detail)
        .hint("Use DROP ... CASCADE to drop the dependent objects too.")
}

/// The same where each of `users` depends on `on`.
pub(super) fn needed_by<S: AsRef<str>>(users: &[S], dropped: &str, on: &str) -> SqlError {
    let lines: Vec<String> = users.iter().map(|user| format!("{} depends on {on}", user.as_ref())).collect();
    needed(dropped, lines.join("\n"))
}

/// A table, view or materialized view as DROP's messages name it.
pub(super) fn shown(r: &Relation) -> String {
    format!("{} {}", r.kind.name(), user::shown(r.schema, &r.name))
}

/// A column of a relation.
pub(super) fn shown_column(name: &str, r: &Relation) -> String {
    format!("column {name} of {}", shown(r))
}

/// A constraint of a table.
pub(super) fn shown_constraint(name: &str, r: &Relation) -> String {
    format!("constraint {name} on {}", shown(r))
}

/// A policy of a table.
pub(super) fn shown_policy(policy: &Policy, r: &Relation) -> String {
    format!("policy {} on {}", policy.name, shown(r))
}

/// A type.
pub(super) fn shown_type(t: &TypeObject) -> String {
    format!("type {}", user::shown(t.schema, &t.name))
}

/// An attribute of a composite type.
pub(super) fn shown_attribute(name: &str, t: &TypeObject) -> String {
    format!("column {name} of composite {}", shown_type(t))
}

/// An index.
pub(super) fn shown_index(index: &Index) -> String {
    format!("index {}", user::shown(index.schema, &index.name))
}

/// The objects of a schema that goes, in words. What belongs to another of them is not named.
pub(super) fn contents(core: &Core, catalog: &Arc<Catalog>, schema: u32, inside: &[u32]) -> Vec<String> {
    let (database, path) = with_env(core, catalog, |env| (env.database, env.path.to_vec()));
    let mut inside = inside.to_vec();
    inside.sort_unstable();
    let named = inside.iter().filter_map(|oid| catalog.get(*oid)).filter(|object| match &***object {
        Object::Sequence(sequence) => sequence.owned_by.is_none(),
        Object::Relation(_) | Object::Type(_) | Object::Routine(_) | Object::Operator(_) => true,
        _ => false,
    });
    let named = named.map(|object| described(catalog, (database, &path), object));
    let extensions = extensions::of(catalog, core.database).iter().filter(|e| e.schema == schema);
    named.chain(extensions.map(|e| format!("extension {}", e.name))).collect()
}

impl<'a> Ddl<'a> {
    /// `gathers`: what CASCADE drops is told at the end of the statement, all at once.
    pub(super) fn new(core: &'a Arc<Core>, server: &'static dyn crate::session::Server, gathers: bool) -> Ddl<'a> {
        Ddl { core, server, cascades: gathers.then(|| Mutex::new("sql/cascades", Vec::new())) }
    }

    /// Tells the client what CASCADE drops besides; nothing if there is nothing.
    pub(super) fn tell_cascade<S: AsRef<str>>(&self, users: &[S]) {
        let lines = users.iter().map(|user| format!("drop cascades to {}", user.as_ref()));
        match &self.cascades {
            Some(gathered) => gathered.lock().extend(lines),
            None => self.tell(lines.collect()),
        }
    }

    /// Tells what was gathered.
    pub(super) fn tell_cascades(&self) {
        if let Some(gathered) = &self.cascades {
            let lines = std::mem::take(&mut *gathered.lock());
            self.tell(lines);
        }
    }

    fn tell(&self, mut lines: Vec<String>) {
        let count = lines.len();
        let notice = match lines.as_slice() {
            [] => return,
            [one] => SqlError::new("00000", one.clone()),
            _ => {
                let more = count.saturating_sub(LINES_MAX);
                lines.truncate(LINES_MAX);
                if more > 0 {
                    let s = if more == 1 { "" } else { "s" };
                    lines.push(format!("and {more} other object{s} (see server log for list)"));
                }
                SqlError::new("00000", format!("drop cascades to {count} other objects")).detail(lines.join("\n"))
            }
        };
        self.core.notice("NOTICE", notice);
    }
}
