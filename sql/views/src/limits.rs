//! The rows of clearway_limits: the limits of roles and databases, how much of them is used, and how often they were reached.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::{ViewOf, int, text};
use clearway_base::breath::processors;
use clearway_base::waits::now_ns;
use clearway_context::backend::Backend;
use clearway_context::limits::{Group, LimitKind, Scope, Values};
use clearway_engine::catalog::Object;
use clearway_exec::{Row, Run};
use clearway_values::types::Datum;

/// The rows of the views of this module.
pub const ROWS: &[ViewOf] = &[("pg_catalog", "clearway_limits", limits)];

/// A row for each limit that is set, and for each that was reached.
fn limits(run: &Run<'_>) -> Vec<Row> {
    let core = run.core;
    let (version, catalog) = (core.db.catalog_version(), core.db.catalog());
    let sessions = core.backends.all();
    let mut rows = Vec::new();
    for object in catalog.objects() {
        let (scope, oid, connections) = match &**object {
            Object::Role(role) => (Scope::Role, role.oid, role.connection_limit),
            Object::Database(database) => (Scope::Database, database.oid, database.connection_limit),
            _ => continue,
        };
        // Reading the view brings the limits up to date, also where all sessions wait.
        core.backends.limits.refreshed(scope, oid, (&catalog, version));
        let group = core.backends.limits.find(scope, oid);
        let values = Values::in_catalog(&catalog, oid);
        let known = Known { scope, oid, name: object.name(), group: group.as_ref(), sessions: &sessions };
        for kind in LimitKind::ALL {
            let limit = match kind {
                LimitKind::Connections => u64::try_from(connections).ok(),
                kind => Some(values.get(kind)).filter(|limit| *limit > 0),
            };
            if limit.is_some() || known.violations(kind).0 > 0 {
                rows.push(known.row(kind, limit));
            }
        }
    }
    rows
}

struct Known<'a> {
    scope: Scope,
    oid: u32,
    name: &'a str,
    group: Option<&'a Arc<Group>>,
    sessions: &'a [Arc<Backend>],
}

impl Known<'_> {
    fn violations(&self, kind: LimitKind) -> (u64, Option<i64>) {
        self.group.map_or((0, None), |group| group.violations(kind))
    }

    fn connections(&self) -> usize {
        let own = |session: &&Arc<Backend>| match self.scope {
            Scope::Role => session.role.load(Relaxed) == self.oid,
            Scope::Database => session.role.load(Relaxed) != 0 && session.database == self.name,
        };
        self.sessions.iter().filter(own).count()
    }

    /// What of a limit is used now, and how many wait; none: that has no meaning.
    fn used(&self, kind: LimitKind) -> (Option<u64>, Option<u64>) {
        let count = |n: usize| u64::try_from(n).ok();
        let bytes = |n: i64| u64::try_from(n).unwrap_or(0);
        match (kind, self.group) {
            (LimitKind::Connections, _) => (count(self.connections()), None),
            (LimitKind::StatementTime, _) | (_, None) => (None, None),
            (LimitKind::Statements, Some(group)) => {
                let (taken, waiting) = group.turns.counts();
                (count(taken), count(waiting))
            }
            (LimitKind::ProcessorShare, Some(group)) => {
                let whole = u64::try_from(processors()).unwrap_or(1) * 1_000_000_000;
                (Some(group.share.used_ns(now_ns()) * 100 / whole), None)
            }
            (LimitKind::Memory, Some(group)) => (group.pool().map(|pool| bytes(pool.bytes())), None),
            (LimitKind::Undo, Some(group)) => (Some(bytes(group.undo_bytes.load(Relaxed))), None),
        }
    }

    fn row(&self, kind: LimitKind, limit: Option<u64>) -> Row {
        let number = |n: Option<u64>| n.map_or(Datum::Null, int);
        let (used, waiting) = self.used(kind);
        let (violations, last) = self.violations(kind);
        vec![
            text(self.scope.name()),
            text(self.name),
            text(kind.setting()),
            text(kind.unit()),
            number(limit),
            number(used),
            number(waiting),
            int(violations),
            last.map_or(Datum::Null, Datum::TimestampTz),
        ]
    }
}
