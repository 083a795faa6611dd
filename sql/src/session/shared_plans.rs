//! Plans that all sessions share: a text that one session has prepared is neither parsed nor planned by the next.
//!
//! A session that prepares a text looks for it here first. A text that is asked for a second time, by whatever session, is planned for all.
//! What a session takes is its own prepared statement around a plan that others use too; the values of parameters, the choice between plans
//! ([`choice`](super::choice)) and all that an execution needs are the session's.
//!
//! # Invariants
//! - PSH-1: a plan is given to a session only if all on which it rests is the same there: the text, the types that were asked for, the
//!   database, the role, `row_security`, the settings of the planner (STR-2), the search path, the forms of values (DateStyle, TimeZone and the
//!   like), the version of the catalog and, where the plan depends on them, the statistics. A session with temporary objects or uncommitted changes of the catalog neither
//!   gives nor takes.
//! - PSH-2: a shared plan is generic: it has parameters, not their values; and no literal that means the moment (`names_a_day`).
//! - PSH-3: its memory belongs to no session's account. [`SHARD_MAX`] bounds how many plans there are; `statement_memory` of the session that
//!   makes a plan bounds how large it is, since that session plans the text for its own account first.

use super::choice::Choice;
use super::current_of::of_no_row;
use super::planned::Cached;
use super::session::{CACHED_TEXT_MAX, Prepared, Session, is_planned};
use super::template::names_a_day;
use crate::context::backend::{Backends, redacted};
use crate::context::core::{Core, now};
use crate::context::shared_plans::{SharedPlanList, SharedPlanRow};
use crate::context::statements::Digest;
use crate::syntax::parse;
use crate::types::Oid;
use clearway_base::memory::uncharged;
use clearway_base::sync::Mutex;
use foldhash::fast::RandomState;
use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::sync::{Arc, OnceLock};

/// Shards, each with a mutex.
const SHARDS: usize = 16;
/// Plans in a shard.
const SHARD_MAX: usize = 64;
/// Texts that a shard knows to have been asked for once.
const SEEN_MAX: usize = 256;

/// The plans of a server or an embedded database.
pub(super) struct SharedPlans {
    hasher: RandomState,
    shards: [Mutex<Shard>; SHARDS],
}

#[derive(Default)]
struct Shard {
    plans: HashMap<u64, Entry, RandomState>,
    /// The keys of texts that were asked for, and have no plan yet.
    seen: HashMap<u64, (), RandomState>,
}

struct Entry {
    plan: Arc<SharedPlan>,
    /// How often it was taken, and whether since room was last made.
    taken: u64,
    is_used: bool,
}

/// What a plan rests on, but for catalog and statistics (PSH-1).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Basis {
    database: Oid,
    role: Option<Oid>,
    row_security: bool,
    /// The number of the settings of the planner.
    steering: u64,
    path: Arc<[String]>,
    /// The forms of values, as text.
    format: Arc<str>,
    /// By the simple protocol, which shows another part of the text.
    simple: bool,
}

/// A statement with its plan.
pub(super) struct SharedPlan {
    basis: Basis,
    asked: Arc<str>,
    types: Vec<Oid>,
    at: i64,
    /// None only while it is dropped.
    statement: Option<Prepared>,
}

impl Drop for SharedPlan {
    fn drop(&mut self) {
        let statement = self.statement.take();
        uncharged(|| drop(statement)); // PSH-3
    }
}

impl SharedPlans {
    /// Those of a server or an embedded database.
    pub(super) fn of(backends: &Backends) -> Arc<SharedPlans> {
        let new = || {
            uncharged(|| {
                let shards = std::array::from_fn(|_| Mutex::new("sql/shared_plans", Shard::default()));
                Arc::new(SharedPlans { hasher: RandomState::default(), shards }) as Arc<_>
            })
        };
        let kept: Arc<dyn Any + Send + Sync> = backends.shared_plans.get_or_init(new).clone();
        kept.downcast().expect("sessions alone put it there")
    }

    fn shard(&self, key: u64) -> &Mutex<Shard> {
        &self.shards[(key >> 32) as usize % SHARDS]
    }
}

impl fmt::Debug for SharedPlans {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedPlans")
    }
}

impl SharedPlanList for SharedPlans {
    fn rows(&self) -> Vec<SharedPlanRow> {
        let mut rows = Vec::new();
        for shard in &self.shards {
            rows.extend(shard.lock().plans.values().map(|entry| SharedPlanRow {
                database: entry.plan.basis.database,
                role: entry.plan.basis.role,
                path: entry.plan.basis.path.clone(),
                simple: entry.plan.basis.simple,
                text: entry.plan.asked.clone(),
                taken: entry.taken,
                at: entry.plan.at,
            }));
        }
        rows
    }
}

impl Shard {
    /// The plan of a key, if it is for this text on this basis.
    fn find(&mut self, key: u64, is_same: impl Fn(&SharedPlan) -> bool) -> Option<Arc<SharedPlan>> {
        let entry = self.plans.get_mut(&key).filter(|entry| is_same(&entry.plan))?;
        (entry.is_used, entry.taken) = (true, entry.taken + 1);
        Some(entry.plan.clone())
    }

    /// Whether a key was asked for before.
    fn has_seen(&mut self, key: u64) -> bool {
        if self.seen.remove(&key).is_some() || self.plans.contains_key(&key) {
            return true;
        }
        if self.seen.len() >= SEEN_MAX {
            self.seen.clear();
        }
        self.seen.insert(key, ());
        false
    }

    /// Keeps a plan; those that were not asked for since the last time make room.
    fn keep(&mut self, key: u64, plan: Arc<SharedPlan>) {
        if self.plans.len() >= SHARD_MAX {
            self.plans.retain(|_, entry| std::mem::take(&mut entry.is_used));
        }
        if self.plans.len() >= SHARD_MAX {
            self.plans.clear();
        }
        self.plans.insert(key, Entry { plan, taken: 0, is_used: true });
    }
}

impl SharedPlan {
    /// A session's own prepared statement with this plan.
    fn prepared(self: &Arc<Self>, core: &Core) -> Option<Prepared> {
        let shared = self.statement.as_ref()?;
        let cached = shared.plan.lock().clone()?;
        Some(Prepared {
            text: shared.text.clone(),
            statement: shared.statement.clone(),
            types: shared.types.clone(),
            columns: shared.columns.clone(),
            digest: shared.digest.clone(),
            constants: Arc::from([]),
            described: OnceLock::new(),
            choice: Choice::default(),
            plan: Mutex::new("sql/plan", Some(Arc::new(cached.for_session(core)))),
            shared: Some(self.clone()),
        })
    }

    /// Whether catalog and statistics are still those of the plan (PSH-1).
    fn is_fresh(&self, core: &Core, version: u64) -> bool {
        let Some(shared) = &self.statement else { return false };
        let plan = shared.plan.lock();
        plan.as_ref().is_some_and(|cached| {
            cached.version == Some(version) && cached.generation.is_none_or(|g| g == core.db.statistics().generation())
        })
    }
}

impl Session {
    /// A text as a prepared statement with a plan that sessions share; none: the session is to parse it itself. `types` are those that the client
    /// has given parameters, `simple` is the simple protocol.
    pub(super) fn shared_plan(&mut self, sql: &str, types: &[Oid], simple: bool) -> Option<Prepared> {
        if sql.len() > CACHED_TEXT_MAX {
            return None;
        }
        let version = self.core.catalog_version()?;
        let basis = self.basis(simple);
        let plans = self.shared.clone();
        let key = plans.hasher.hash_one((sql, types, &basis));
        let is_same = |plan: &SharedPlan| *plan.asked == *sql && plan.types == types && plan.basis == basis;
        let found = plans.shard(key).lock().find(key, is_same);
        if let Some(plan) = found.filter(|plan| plan.is_fresh(&self.core, version)) {
            return plan.prepared(&self.core);
        }
        if !uncharged(|| plans.shard(key).lock().has_seen(key)) || names_a_day(sql) {
            return None; // PSH-2
        }
        // For the session's account first, which may refuse it (PSH-3).
        self.planned_for_all(sql, types, simple)?;
        uncharged(|| {
            let statement = self.planned_for_all(sql, types, simple)?;
            let plan = Arc::new(SharedPlan {
                basis,
                asked: sql.into(),
                types: types.into(),
                at: now(),
                statement: Some(statement),
            });
            if !plan.is_fresh(&self.core, version) {
                return None;
            }
            plans.shard(key).lock().keep(key, plan.clone());
            Some(plan)
        })?
        .prepared(&self.core)
    }

    fn basis(&mut self, simple: bool) -> Basis {
        let path = self.core.path();
        let settings = self.core.settings.lock();
        if self.format_text.0 != settings.format_changes || self.format_text.1.is_empty() {
            self.format_text = (settings.format_changes, format!("{:?}", settings.format).into());
        }
        Basis {
            database: self.core.database,
            role: settings.current_role(),
            row_security: settings.row_security,
            steering: settings.steering.number(),
            path,
            format: self.format_text.1.clone(),
            simple,
        }
    }

    /// Parses and plans a text; none: it has no plan, or is wrong.
    fn planned_for_all(&mut self, sql: &str, types: &[Oid], simple: bool) -> Option<Prepared> {
        let mut parsed = parse(sql).ok()?;
        let only = parsed.pop().filter(|only| parsed.is_empty() && is_planned(&only.statement))?;
        if !matches!(of_no_row(&only.statement), Ok(None)) {
            return None;
        }
        let text = if simple { sql.get(only.range)? } else { sql };
        let mut prepared = self.prepare_statement(only.statement, redacted(text).into(), types).ok()?;
        if simple {
            if !prepared.types.is_empty() {
                return None;
            }
            prepared.columns = None;
            prepared.digest = Digest::within(&prepared.text, sql);
        }
        let has_plan = prepared.plan.lock().is_some();
        has_plan.then_some(prepared)
    }
}

impl Cached {
    /// The same for a session with the same role, path and catalog (PSH-1).
    fn for_session(&self, core: &Core) -> Cached {
        let (path_changes, role_changes) = {
            let settings = core.settings.lock();
            (settings.path_changes, settings.role_changes)
        };
        let fast = self.fast.as_ref().and_then(|_| super::short::Fast::of(&self.plan, core.database));
        Cached {
            catalog: core.catalog(),
            version: self.version,
            path: self.path.clone(),
            path_changes,
            role_changes,
            role: self.role,
            row_security: self.row_security,
            permitted: self.permitted,
            generation: self.generation,
            cost: self.cost,
            outline: self.outline,
            steering: self.steering,
            steered: self.steering.number().into(),
            fast,
            plan: self.plan.clone(),
            shown: self.shown.clone(),
        }
    }
}
