//! Which plan a prepared statement runs by: the generic one, which fits any values of its parameters, or a custom one, which is made for the
//! values at hand.
//!
//! The first five executions are planned for their values. After them the generic plan is taken, unless it is estimated to cost more than the
//! custom plans have cost on average, their planning included, and one of these had another outline (CHO-3). `plan_cache_mode` decides for either.
//!
//! # Invariants
//! - CHO-1: a custom plan serves one execution and is kept nowhere: its parameters have become constants.
//! - CHO-2: a statement that would have the same plan by any statistics (by whole keys, or of an INSERT's VALUES) runs by its generic plan from
//!   the first time on. So statements of one row, and what the fast paths carry out, are never planned anew.
//! - CHO-3: custom plans that read the tables as the generic plan does bring nothing that their planning would be worth: after five of them the
//!   generic plan is taken, whatever it is estimated to cost.
//! - CHO-4: a generic plan by which a statement has run stays when settings of the planner change, as in PostgreSQL, where only what drops a plan (a
//!   change of the catalog, new statistics) makes another by them. A text that is sent anew is planned by the settings of the moment.
//!
//! # Source
//! `choose_custom_plan` and `cached_plan_cost` of PostgreSQL's plancache.c. CHO-2 and CHO-3 differ: PostgreSQL plans such statements anew for as
//! long as its estimates differ.

use super::run::Cached;
use super::session::Prepared;
use crate::context::core::{Core, PlanUses};
use crate::context::settings::PlanCacheMode;
use crate::context::steering::Steering;
use crate::expr::bound::{Bound, BoundKind};
use crate::types::{Datum, Oid, SqlType, user};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Executions that are planned for their values before the costs are compared.
const CUSTOM_FIRST: u64 = 5;
/// What planning costs, in the unit of costs: for the statement, and for each of its tables. PostgreSQL's thousand `cpu_operator_cost`.
const PLANNING: f64 = 250.0;

/// The uses of a prepared statement. Its session alone writes them.
#[derive(Debug, Default)]
pub(super) struct Choice {
    /// Each Bind and EXECUTE.
    uses: AtomicU64,
    /// Those of them that made a custom plan.
    custom: AtomicU64,
    /// What these cost, a float's bits.
    custom_cost: AtomicU64,
    /// The outline of the custom plans; 0: they have several.
    outline: AtomicU64,
}

impl Choice {
    /// The statement is about to run.
    pub(super) fn used(&self) {
        self.uses.store(self.uses.load(Relaxed) + 1, Relaxed);
    }

    /// Whether this execution is to be planned for its values. `generic` is the plan for all values.
    pub(super) fn is_custom(&self, core: &Core, generic: Option<&Cached>) -> bool {
        let Some(generic) = generic.filter(|plan| plan.generation.is_some() && !plan.plan.params.is_empty()) else {
            return false; // CHO-2
        };
        match core.settings.lock().plan_cache_mode {
            PlanCacheMode::Generic => false,
            PlanCacheMode::Custom => true,
            PlanCacheMode::Auto => {
                let (made, cost) = (self.custom.load(Relaxed), f64::from_bits(self.custom_cost.load(Relaxed)));
                let is_other = || self.outline.load(Relaxed) != generic.outline; // CHO-3
                made < CUSTOM_FIRST || (is_other() && generic.cost >= cost / made as f64)
            }
        }
    }

    /// A custom plan has been made.
    pub(super) fn made(&self, plan: &Cached) {
        let tables = plan.plan.locks.len() as f64;
        let cost = f64::from_bits(self.custom_cost.load(Relaxed)) + plan.cost + PLANNING * (tables + 1.0);
        self.custom_cost.store(cost.to_bits(), Relaxed);
        let made = self.custom.load(Relaxed);
        if made == 0 {
            self.outline.store(plan.outline, Relaxed);
        } else if self.outline.load(Relaxed) != plan.outline {
            self.outline.store(0, Relaxed);
        }
        self.custom.store(made + 1, Relaxed);
    }

    /// Whether an execution before this one was by the generic plan.
    fn has_kept(&self) -> bool {
        self.uses.load(Relaxed) > self.custom.load(Relaxed) + 1
    }

    /// The generic plan for this execution; none: it is to be made anew (CHO-4).
    pub(super) fn kept(&self, core: &Core, generic: Arc<Cached>) -> Option<Arc<Cached>> {
        let number = core.settings.lock().steering.number();
        if generic.steered.load(Relaxed) != number {
            if !self.has_kept() {
                return None;
            }
            generic.steered.store(number, Relaxed);
        }
        Some(generic)
    }

    /// The settings of the planner by which a generic plan was made that is kept (CHO-4).
    pub(super) fn steering_of(&self, generic: &Cached) -> Option<Steering> {
        self.has_kept().then_some(generic.steering)
    }
}

impl PlanUses for Prepared {
    fn by_plan(&self) -> (u64, u64) {
        let custom = self.choice.custom.load(Relaxed);
        (self.choice.uses.load(Relaxed).saturating_sub(custom), custom)
    }
}

/// Values of parameters, as the planner takes them in the place of the parameters.
pub(super) fn constants(values: &[Datum], types: &[Option<Oid>]) -> Arc<[Bound]> {
    let constant = |(value, ty): (&Datum, &Option<Oid>)| Bound {
        kind: BoundKind::Const(value.clone()),
        ty: SqlType::new(user::base(ty.unwrap_or(crate::types::oid::UNKNOWN).into()).oid),
        pos: 0,
    };
    values.iter().zip(types).map(constant).collect()
}
