//! What the binder collects from the expressions of a level: aggregates, window functions, set-returning functions.

use super::aggregate::AggregateCall;
use super::sets::SetCall;
use super::window::{WindowCall, WindowDefinition};
use crate::syntax::window::WindowSpec;
use std::cell::RefCell;
use std::rc::Rc;

/// Aggregates of a level, which its subqueries may add to.
pub type Aggregates = Rc<RefCell<Vec<AggregateCall>>>;

/// What may stand in the expression that is being bound.
#[derive(Clone, Copy, Debug, Default)]
pub struct Permits {
    /// Window functions.
    pub windows: bool,
    /// Functions that give rows.
    pub sets: bool,
    /// It is a key of GROUP BY: aggregates may not.
    pub is_key: bool,
}

/// What has been gathered so far.
#[derive(Debug, Default)]
pub struct Collected {
    /// Aggregates.
    pub aggregates: Aggregates,
    /// The windows that calls look through, each once.
    pub windows: Vec<WindowDefinition>,
    /// Calls with OVER.
    pub window_calls: Vec<WindowCall>,
    /// Functions that give rows; those in arguments of others come first.
    pub sets: Vec<SetCall>,
    /// The WINDOW clause.
    pub named: Vec<(String, WindowSpec)>,
    /// What may stand here.
    pub permits: Permits,
    /// Whether the arguments of a window function are being bound.
    pub in_window: bool,
    /// Whether a window is being bound.
    pub in_definition: bool,
}

impl Collected {
    /// What of it there is, as errors name it; none: nothing.
    pub fn made(&self) -> Option<&'static str> {
        if !self.aggregates.borrow().is_empty() {
            return Some("aggregate functions");
        }
        if !self.window_calls.is_empty() {
            return Some("window functions");
        }
        (!self.sets.is_empty()).then_some("set-returning functions")
    }

    /// Adds a function that gives rows, or finds the same one; its number.
    pub fn set(&mut self, call: SetCall) -> usize {
        let volatile = call.args.iter().any(|a| a.is_volatile());
        if !volatile && let Some(at) = self.sets.iter().position(|s| s.same(&call)) {
            return at;
        }
        self.sets.push(call);
        self.sets.len() - 1
    }

    /// Adds a call with OVER, or finds the same one; its number.
    pub fn window_call(&mut self, call: WindowCall) -> usize {
        if !call.is_volatile()
            && let Some(at) = self.window_calls.iter().position(|c| c.same(&call))
        {
            return at;
        }
        self.window_calls.push(call);
        self.window_calls.len() - 1
    }

    /// Adds a window, or finds the same one; its number.
    pub fn window(&mut self, window: WindowDefinition) -> usize {
        if let Some(at) = self.windows.iter().position(|w| w.same(&window)) {
            return at;
        }
        self.windows.push(window);
        self.windows.len() - 1
    }
}

/// Adds an aggregate, or finds the same one; its number.
pub fn add_aggregate(list: &Aggregates, call: AggregateCall) -> usize {
    let mut list = list.borrow_mut();
    if !call.is_volatile()
        && let Some(at) = list.iter().position(|c| c.same(&call))
    {
        return at;
    }
    list.push(call);
    list.len() - 1
}
