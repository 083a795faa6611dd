//! Statements of a program in the same process: a read or a change of one row by its key, called with values.
//!
//! A client's message names its statement, and its parameters are bytes; a portal keeps both from Bind to Execute. A program that has the database in
//! its own process has the values themselves and waits for the answer of the call, so that a call needs no portal, no name and no bytes. It takes the same
//! fast paths (`point`, `range`, `short`) after the same questions.
//!
//! # Life of a call
//! `known`: a handle of a prepared statement, kept by the program -> `read_known` or `change_known` with values: the questions of Bind and Execute, then
//! the fast path, which writes the books -> `try_sync` commits a change that is its own transaction -> `may_send` or `before_send` (SES-4).
//!
//! # Invariants
//! - DCT-1: a call that does not answer that it is done has changed nothing, told nothing and counted no execution (a row that it looked at counts as
//!   looked at). The ordinary way (`bind`, `execute`, `sync`) begins anew with the same values, finds whatever error there is, and waits where it has to.
//! - DCT-2: a call that answers that it is done has run its statement, and the statement is not run again, whatever comes of its commit: `sync` goes on with that.
//! - DCT-3: a handle of a statement that the session has forgotten is refused.
//! - DCT-4: a call asks all that Bind and Execute ask: the number of the values, the state of the block, the time since Parse, the server's new defaults,
//!   and in `run_short` and `read_recent` whatever keeps a statement off the fast paths.
//! - DCT-5: each value is one of its parameter's type, as the ordinary way would make it of its bytes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::client::Client;
use super::session::{Prepared, Session};
use super::short::{Fast, Short};
use crate::types::Datum;

/// A handle of a prepared statement.
pub struct Known {
    name: Box<str>,
    prepared: Arc<Prepared>,
    /// How many statements the session had forgotten when the handle was last found to be good (DCT-3).
    forgotten: AtomicU64,
}

/// What came of a call that changes a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Called {
    /// The statement has run (DCT-2).
    Done,
    /// Something stood in the way (DCT-1). It may want its turn (`wants_turn`), and can be tried again then.
    GivenUp,
    /// It is another kind of statement, or a handle of no use (DCT-1).
    Other,
}

impl Known {
    /// Whether its statement gives rows.
    pub fn has_columns(&self) -> bool {
        self.prepared.columns.is_some()
    }
}

impl Session {
    /// A handle of the statement of this name; none: there is no such statement.
    pub fn known(&self, name: &str) -> Option<Known> {
        let prepared = self.statements.get(name)?.clone();
        Some(Known { name: name.into(), prepared, forgotten: AtomicU64::new(self.forgotten) })
    }

    /// Bind, Execute and Sync of a statement that reads alone. False: DCT-1.
    pub fn read_known(&mut self, known: &Known, params: &[Datum], formats: &[i16], client: &mut dyn Client) -> bool {
        let prepared = &*known.prepared;
        let columns = prepared.columns.as_ref().map_or(0, Vec::len);
        let fits = params.len() == prepared.types.len() && (formats.len() < 2 || formats.len() == columns);
        let may = fits && self.may_read_alone() && !self.is_overdue() && self.has(known);
        let done = may && self.read_alone(prepared, params, (formats, false), client);
        if done {
            prepared.choice.used();
        }
        done
    }

    /// Bind and Execute of a statement that changes one row.
    pub fn change_known(&mut self, known: &Known, params: &[Datum], client: &mut dyn Client) -> Called {
        let prepared = &*known.prepared;
        // DCT-4
        if params.len() != prepared.types.len() || self.may_follow() || self.is_overdue() || !self.has(known) {
            return Called::Other;
        }
        // Nothing else has the plan, and no fast path asks for it.
        let plan = prepared.plan.lend();
        let Some(cached) = plan.as_deref().and_then(Option::as_ref) else { return Called::Other };
        if !matches!(cached.fast, Some(Fast::Change(_))) {
            return Called::Other;
        }
        let (text, digest) = (&prepared.text, &prepared.digest);
        let short = Short { cached, text, digest, params, formats: &[], portal: Some(""), told: None };
        if !self.run_short(&short, client) {
            return Called::GivenUp;
        }
        prepared.choice.used();
        self.parsed_ns = 0;
        Called::Done
    }

    /// DCT-3
    fn has(&self, known: &Known) -> bool {
        known.forgotten.load(Relaxed) == self.forgotten || self.still_has(known)
    }

    #[cold]
    fn still_has(&self, known: &Known) -> bool {
        let has = self.statements.get(&*known.name).is_some_and(|prepared| Arc::ptr_eq(prepared, &known.prepared));
        if has {
            known.forgotten.store(self.forgotten, Relaxed);
        }
        has
    }
}
