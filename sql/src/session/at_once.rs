//! Handles a client's message without waiting, where that is possible. The connection tries this path first; if it refuses, the message
//! goes the path that may wait.
//!
//! # Invariants
//! - ONC-1: a refused attempt has changed nothing and told the client nothing, and the path that may wait begins anew. The one exception
//!   is reported as [`AtOnce::Uncommitted`].

use super::client::Client;
use super::form::Told;
use super::run;
use super::session::{Bind, Block, Prepared, Session};
use super::short::Short;
use crate::syntax::stmt::{Statement, Transaction, TransactionModes};
use crate::types::Datum;
use clearway_base::waits;
use clearway_engine::session::Durability;

/// What has come of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtOnce {
    /// Nothing.
    Nothing,
    /// Its statement has run and been told, and its transaction has still to commit: `sync` does that.
    Uncommitted,
    /// All that it asks for.
    Done,
}

impl Session {
    /// As `bind`, on the spot; false: there is an error, which `bind` finds again and tells.
    pub fn try_bind(&mut self, portal: &str, statement: &str, bind: &Bind<'_>) -> bool {
        !self.is_overdue() && self.bind_now(portal, statement, bind).is_ok()
    }

    /// As `describe_portal`, likewise.
    pub fn try_describe_portal(&mut self, name: &str, client: &mut dyn Client) -> bool {
        if self.is_overdue() {
            return false;
        }
        let Some(portal) = self.portals.get(name) else { return false };
        // The columns of a FETCH are its cursor's.
        if let Some(Statement::Fetch { .. }) = portal.prepared.statement.as_deref() {
            return false;
        }
        match &portal.prepared.columns {
            Some(columns) => run::describe(columns, &portal.formats, client),
            None => client.no_data(),
        }
        true
    }

    /// As `execute` without a limit, for what can be done on the spot; false: nothing has happened.
    pub fn try_execute(&mut self, portal: &str, client: &mut dyn Client) -> bool {
        if !portal.is_empty() || self.is_overdue() || (self.may_follow() && !self.follow_now()) {
            return false;
        }
        let Some(mut portal) = self.portals.take_fresh() else { return false };
        let prepared = &portal.prepared;
        // Nothing else has the plan, and no fast path asks for it.
        let plan = prepared.plan.lend();
        if let Some(cached) = plan.as_deref().and_then(Option::as_ref) {
            let (text, digest, params) = (&prepared.text, &prepared.digest, &portal.params);
            let formats = &portal.formats[..];
            let short = Short { cached, text, digest, params, formats, portal: Some(""), told: None };
            portal.finished = self.run_short(&short, client);
        } else if self.run_transaction(prepared, Some(""), client) {
            drop(plan);
            if self.block == Block::None {
                self.portals.keep_lists(portal.params, portal.formats);
            } else {
                self.portals.give_back(portal);
            }
            self.parsed_ns = 0;
            return true;
        }
        drop(plan);
        let done = portal.finished;
        if done {
            self.parsed_ns = 0;
        }
        self.portals.give_back(portal);
        done
    }

    /// As `simple`, likewise (ONC-1).
    pub fn try_simple(&mut self, sql: &str, client: &mut dyn Client) -> AtOnce {
        self.parsed_ns = 0;
        if self.may_follow() && !self.follow_now() {
            return AtOnce::Nothing;
        }
        let formats = self.core.settings.lock().format_changes;
        if self.cache_formats != formats {
            return AtOnce::Nothing;
        }
        let (mut params, no_formats) = self.portals.lists();
        let done = self.run_simple_text(sql, &mut params, client);
        self.portals.keep_lists(params, no_formats);
        if !done {
            return AtOnce::Nothing;
        }
        if self.block == Block::Implicit && !self.try_sync() {
            return AtOnce::Uncommitted;
        }
        self.deliver(client);
        AtOnce::Done
    }

    fn run_simple_text(&mut self, sql: &str, params: &mut Vec<Datum>, client: &mut dyn Client) -> bool {
        let known = self.cache.get(sql).map(|list| list.as_slice());
        if let Some(list) = known {
            let [prepared] = list else { return false };
            let prepared = prepared.clone();
            let plan = prepared.plan.lock().clone();
            let Some(cached) = plan else { return self.run_transaction(&prepared, None, client) };
            let (text, digest, params) = (&prepared.text, &prepared.digest, &prepared.constants);
            let told = cached.plan.columns.as_deref().map(|columns| Told { columns, kept: None });
            let short = Short { cached: &cached, text, digest, params, formats: &[], portal: None, told };
            return self.run_short(&short, client);
        }
        let Some((cached, digest)) = self.templates.shared(&self.core, sql, params) else { return false };
        let text = self.templates.text(sql);
        let (columns, digest) = (cached.plan.columns.as_deref(), &digest);
        let told = columns.map(|columns| Told { columns, kept: None });
        let short = Short { cached: &cached, text: &text, digest, params, formats: &[], portal: None, told };
        self.run_short(&short, client)
    }

    /// BEGIN without modes outside of a block, and COMMIT within one.
    fn run_transaction(&mut self, prepared: &Prepared, portal: Option<&str>, client: &mut dyn Client) -> bool {
        let Some(Statement::Transaction(statement)) = prepared.statement.as_deref() else { return false };
        let begins = match statement {
            Transaction::Begin { modes, .. } if self.block == Block::None && *modes == TransactionModes::default() => {
                true
            }
            Transaction::Commit { chain: false } if self.block == Block::Open => false,
            _ => return false,
        };
        let may =
            if begins { self.check_modes(TransactionModes::default()).is_ok() } else { !self.core.has_end_work() };
        if !may || !self.may_try() {
            return false;
        }
        let began_ns = waits::now_ns();
        self.core.backend.runs_from(began_ns, &prepared.text, None);
        self.watch_from(began_ns, &prepared.digest, &prepared.text, portal);
        if begins {
            self.open(TransactionModes::default(), began_ns);
            self.block = Block::Open;
        } else if !self.end_now() {
            return false;
        }
        self.watch.has_looked_at_nothing();
        self.watched(&prepared.digest, began_ns, None, portal);
        self.deliver(client);
        client.command_complete(match statement {
            Transaction::Begin { start: true, .. } => "START TRANSACTION",
            Transaction::Begin { .. } => "BEGIN",
            _ => "COMMIT",
        });
        true
    }

    /// Commits; the reply still waits for its durability. False: nothing has happened, and perhaps the commit has more to do than to commit.
    pub(super) fn end_now(&mut self) -> bool {
        let (later, archived, has_local) = {
            let settings = self.core.settings.lock();
            (settings.commits_later, settings.commits_archived, settings.has_local())
        };
        if archived || self.core.has_end_work() {
            return false;
        }
        let durability = if later { Durability::Async } else { Durability::Wait };
        let ended = {
            let mut engine = self.core.engine.take();
            let ended = engine.end_unchanged() || engine.commit_now(durability);
            self.replies = ended && engine.may_reply();
            ended
        };
        self.give_turn_back();
        if ended {
            self.core.archived.end();
            self.committed(has_local);
        }
        ended
    }

    /// As `sync`, likewise: what has been committed is durable only when `before_send` has returned.
    pub fn try_sync(&mut self) -> bool {
        self.parsed_ns = 0;
        if self.untold || self.core.limits.must_wait(&self.core) {
            return false;
        }
        match self.block {
            Block::Implicit => self.end_now(),
            Block::None => {
                self.portals.clear();
                true
            }
            Block::Open | Block::Failed => true,
        }
    }

    /// As `before_send`; true: what has been told may leave.
    pub fn may_send(&mut self) -> bool {
        let may = (self.block == Block::Open && !self.told)
            || ((self.replies || self.core.engine.take().may_reply()) && self.core.may_tell());
        self.told &= !may;
        may
    }
}
