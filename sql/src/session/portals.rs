//! Portals of a session. The unnamed portal, which every client uses, is kept apart from the named ones.
//!
//! # Invariants
//! - POR-1: the lists of the unnamed portal are kept when it is closed, and the next unnamed portal uses them again. So a session that
//!   runs one prepared statement after the other allocates nothing for its parameters.

use std::collections::HashMap;
use std::sync::Arc;

use super::cursors::Listed;
use super::run::Execution;
use super::session::Prepared;
use crate::types::Datum;

/// A statement with its parameters, run or to be run.
pub(super) struct Portal {
    pub(super) prepared: Arc<Prepared>,
    pub(super) params: Vec<Datum>,
    pub(super) formats: Vec<i16>,
    /// In a place of its own: most portals are never suspended, and a portal is moved with every execution.
    pub(super) running: Option<Box<Execution>>,
    pub(super) finished: bool,
}

/// A portal that a client has named: a cursor for FETCH and for pg_cursors.
struct Named {
    portal: Portal,
    _listed: Listed,
}

/// All portals of a session.
#[derive(Default)]
pub(super) struct Portals {
    unnamed: Option<Portal>,
    named: HashMap<String, Named>,
    spare: (Vec<Datum>, Vec<i16>),
}

impl Portals {
    /// The portal of that name.
    pub(super) fn get(&self, name: &str) -> Option<&Portal> {
        if name.is_empty() { self.unnamed.as_ref() } else { self.named.get(name).map(|named| &named.portal) }
    }

    /// The same, to change it.
    pub(super) fn get_mut(&mut self, name: &str) -> Option<&mut Portal> {
        if name.is_empty() { self.unnamed.as_mut() } else { self.named.get_mut(name).map(|named| &mut named.portal) }
    }

    /// Takes the unnamed portal out if it has not begun to run.
    pub(super) fn take_fresh(&mut self) -> Option<Portal> {
        self.unnamed.take_if(|portal| !portal.finished && portal.running.is_none())
    }

    /// Puts it back.
    pub(super) fn give_back(&mut self, portal: Portal) {
        self.unnamed = Some(portal);
    }

    /// The lists of a portal that is not run again are for the next one (POR-1).
    pub(super) fn keep_lists(&mut self, mut params: Vec<Datum>, mut formats: Vec<i16>) {
        params.clear();
        formats.clear();
        self.spare = (params, formats);
    }

    /// Empty lists for the parameters and formats of the next portal (POR-1).
    pub(super) fn lists(&mut self) -> (Vec<Datum>, Vec<i16>) {
        self.remove("");
        std::mem::take(&mut self.spare)
    }

    /// Puts a portal in the place of the unnamed one.
    pub(super) fn insert(&mut self, portal: Portal) {
        self.unnamed = Some(portal);
    }

    /// Puts a portal in the place of that name.
    pub(super) fn insert_named(&mut self, name: &str, portal: Portal, listed: Listed) {
        self.named.insert(name.to_owned(), Named { portal, _listed: listed });
    }

    /// Forgets one.
    pub(super) fn remove(&mut self, name: &str) {
        if !name.is_empty() {
            self.named.remove(name);
        } else if let Some(Portal { params, formats, .. }) = self.unnamed.take() {
            self.keep_lists(params, formats);
        }
    }

    /// The transaction has failed: no portal runs again. Their names stay until its end, so that Execute is answered as other statements are.
    pub(super) fn fail(&mut self) {
        for portal in self.unnamed.iter_mut().chain(self.named.values_mut().map(|named| &mut named.portal)) {
            (portal.running, portal.finished) = (None, true);
        }
    }

    /// Forgets all.
    pub(super) fn clear(&mut self) {
        self.remove("");
        if !self.named.is_empty() {
            self.named.clear();
        }
    }
}
