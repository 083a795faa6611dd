//! Where what was measured is shown. EXPLAIN ANALYZE carries out the plan that the statement by itself carries out, whose slots have been numbered anew and whose
//! scans have gates (`dense`, `gate`); it shows the plan as it was before, of the same shape, whose slots tell their columns.
//!
//! # Invariants
//! - XPM-1: what was measured at a part of the plan that was carried out is shown at the part that it was made of: the sum, where it was made of one by several copies
//!   (PLN-11).

use super::actual::{Actuals, address};
use crate::plan::{Action, Body, Node, Plan, Query, Scan};
use clearway_base::stack;
use clearway_values::expr::Bound;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

/// For the address of each part of a plan that is carried out at which something is measured, that of the same part of the plan that is shown.
#[derive(Debug, Default)]
pub struct Places(HashMap<usize, usize>);

impl Places {
    /// The places of a plan that was made of another one; `copies`: the subqueries that were copied, in the order of the copies behind the others.
    pub fn of(shown: &Plan, ran: &Plan, copies: &[usize]) -> Places {
        let mut all = Places::default();
        for (shown, ran) in shown.changes.iter().zip(&ran.changes) {
            all.action(&shown.action, &ran.action);
        }
        all.action(&shown.action, &ran.action);
        let ids = (0..shown.subqueries.len()).chain(copies.iter().copied());
        for (id, ran) in ids.zip(&ran.subqueries) {
            all.query(&shown.subqueries[id].query, &ran.query);
        }
        all
    }

    /// What was measured, by the addresses of what is shown (XPM-1).
    pub fn shown(&self, measured: Actuals) -> Actuals {
        let mut out = Actuals::with_capacity(measured.len());
        for ((at, step), actual) in measured {
            let at = self.0.get(&at).copied().unwrap_or(at);
            match out.entry((at, step)) {
                Entry::Vacant(place) => drop(place.insert(actual)),
                Entry::Occupied(mut place) => place.get_mut().add(&actual),
            }
        }
        out
    }

    fn put<T>(&mut self, shown: &T, ran: &T) {
        self.0.insert(address(ran), address(shown));
    }

    fn condition(&mut self, shown: Option<&Bound>, ran: Option<&Bound>) {
        if let (Some(shown), Some(ran)) = (shown, ran) {
            self.put(shown, ran);
        }
    }

    fn action(&mut self, shown: &Action, ran: &Action) {
        match (shown, ran) {
            (Action::Select(shown) | Action::Settings(shown), Action::Select(ran) | Action::Settings(ran)) => {
                self.query(shown, ran);
            }
            (Action::Insert(shown), Action::Insert(ran)) => self.query(&shown.source, &ran.source),
            (Action::Update(shown), Action::Update(ran)) => self.node(&shown.source, &ran.source),
            (Action::Delete(shown), Action::Delete(ran)) => self.node(&shown.source, &ran.source),
            (Action::Merge(shown), Action::Merge(ran)) => self.node(&shown.source, &ran.source),
            _ => {}
        }
    }

    fn query(&mut self, shown: &Arc<Query>, ran: &Arc<Query>) {
        // One that several levels share is looked at once.
        if self.0.insert(address(&**ran), address(&**shown)).is_some() {
            return;
        }
        stack::deeper(|| match (&shown.body, &ran.body) {
            (Body::Select(shown), Body::Select(ran)) => {
                self.put(&**shown, &**ran);
                self.node(&shown.source, &ran.source);
                self.condition(shown.filter.as_ref(), ran.filter.as_ref());
                if let (Some(shown), Some(ran)) = (&shown.grouping, &ran.grouping) {
                    self.condition(shown.having.as_ref(), ran.having.as_ref());
                }
            }
            (Body::SetOp { left, right, .. }, Body::SetOp { left: ran_left, right: ran_right, .. }) => {
                self.query(left, ran_left);
                self.query(right, ran_right);
            }
            (Body::Recursive { anchor, step, .. }, Body::Recursive { anchor: ran_anchor, step: ran_step, .. }) => {
                self.query(anchor, ran_anchor);
                self.query(step, ran_step);
            }
            _ => {}
        });
    }

    fn node(&mut self, shown: &Arc<Node>, ran: &Arc<Node>) {
        self.put(&**shown, &**ran);
        stack::deeper(|| match (&**shown, &**ran) {
            (Node::Scan(shown), Node::Scan(ran)) => self.scan(shown, ran),
            (Node::Sample(shown), Node::Sample(ran)) => self.scan(&shown.scan, &ran.scan),
            (Node::System(shown), Node::System(ran)) => self.condition(shown.filter.as_ref(), ran.filter.as_ref()),
            (Node::Work(shown), Node::Work(ran)) => self.condition(shown.filter.as_ref(), ran.filter.as_ref()),
            (Node::Derived(shown), Node::Derived(ran)) => {
                self.condition(shown.filter.as_ref(), ran.filter.as_ref());
                self.query(&shown.query, &ran.query);
            }
            (Node::Join(shown), Node::Join(ran)) => {
                self.put(shown, ran);
                self.condition(shown.on.as_ref(), ran.on.as_ref());
                self.node(&shown.left, &ran.left);
                self.node(&shown.right, &ran.right);
            }
            (Node::Filter { input, filter }, Node::Filter { input: ran_input, filter: ran_filter }) => {
                self.put(filter, ran_filter);
                self.node(input, ran_input);
            }
            _ => {}
        });
    }

    fn scan(&mut self, shown: &Scan, ran: &Scan) {
        self.put(shown, ran);
        self.condition(shown.filter.as_ref(), ran.filter.as_ref());
    }
}
