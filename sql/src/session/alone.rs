//! Reads of the fast paths that are transactions of their own: outside of a block, and the only statement up to Sync.
//!
//! Such a transaction changes nothing and ends with its statement, so none is begun: no portal, no lock of the table, no virtual id, no marks to go
//! back to. The engine says why the answer is the same (`clearway_engine::session::alone`).
//!
//! # Life of a read
//! `terms`: the settings permit it and the plan fits -> the statement begins in the books (`watch`, `Backend`) -> `open` -> rows are copied -> `close`
//! -> the client is told -> the statement ends in the books.
//!
//! # Invariants
//! - LONE-1: an attempt that gives up has told the client nothing, and no snapshot and no transaction is open. The ordinary way begins anew and finds
//!   whatever error there is. (PNT-1, PNT-2, FEW-1 hold here too.)
//! - LONE-2: nothing reads alone within a block or before another statement of its batch, nor where the end of a transaction has work to do, a
//!   setting waits to be told, replies wait for the archive, or the session has to follow new defaults first.
//! - LONE-3: what others see of the session and what is recorded of the statement is what the ordinary way leaves behind: its text and state, its
//!   time, rows and waits, a commit of the database, look-ups of the table. While it runs, pg_locks has no lock and no virtual id of it.
//! - LONE-4: its answer leaves when all is durable on which it depends (SES-4): `may_send` or `before_send` comes after it as after Sync.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::client::Client;
use super::form::Told;
use super::fresh::{is_short_of_session, is_short_of_settings};
use super::portals::Portal;
use super::run::Cached;
use super::session::{Bind, Block, Prepared, Session};
use super::short::{Fast, Short};
use crate::context::backend::Mode;
use crate::types::Datum;
use clearway_base::waits;
use clearway_engine::session::{Session as EngineSession, Statement, StatementMode};
use clearway_txn::lockmgr::{LockMode, LockTag};

/// What the settings say of a read that is a transaction of its own.
#[derive(Clone, Copy)]
pub(super) struct Terms {
    /// The session's commits need not be durable before it goes on.
    relaxed: bool,
    /// How its transactions begin: see `Mode`.
    mode: u8,
}

/// How a statement of a fast path reads.
#[derive(Clone, Copy)]
pub(super) enum Reading {
    /// In the session's transaction, with a lock of its table.
    InTransaction,
    /// As a transaction of its own.
    Alone(Terms),
}

/// A statement that has begun to read.
#[derive(Clone, Copy)]
pub(super) struct Begun {
    pub(super) at_ns: u64,
    reading: Reading,
    /// It may read at the durable LSN (SES-3).
    durable: bool,
}

impl Begun {
    /// Opens the statement in the engine. None: it can't be done without waiting, or the plan is out of date (PNT-2).
    pub(super) fn open(&self, engine: &mut EngineSession, short: &Short<'_>, table: &LockTag) -> Option<Statement> {
        let version = short.cached.version?;
        match self.reading {
            Reading::Alone(terms) => engine.open_alone(table, version, terms.relaxed, self.at_ns),
            Reading::InTransaction => {
                let is_locked = engine.begin_short(short.text, table, LockMode::AccessShare, self.at_ns);
                if !is_locked || !engine.sees_catalog(version) || super::short::is_moved(engine, table) {
                    return None;
                }
                let durable = self.durable || engine.options().read_only;
                let mode = if durable { StatementMode::ReadOnly } else { StatementMode::Write };
                Some(engine.open_short(mode, self.at_ns))
            }
        }
    }

    /// Whether what was told may leave at once, where that is known when the statement is closed: with it ends its transaction.
    pub(super) fn replies(&self, engine: &EngineSession) -> bool {
        matches!(self.reading, Reading::Alone(_)) && engine.may_reply()
    }

    /// Closes it. False: what was read is of no use.
    pub(super) fn close(
        &self,
        engine: &mut EngineSession,
        statement: Statement,
        short: &Short<'_>,
        table: &LockTag,
    ) -> bool {
        match (self.reading, short.cached.version) {
            (Reading::Alone(_), Some(version)) => engine.close_alone(statement, table, version),
            _ => {
                engine.close_statement(statement);
                true
            }
        }
    }
}

impl Session {
    /// Bind, Execute and Sync of a statement that reads alone, in one call. False: nothing has happened.
    pub fn try_read(&mut self, statement: &str, bind: &Bind<'_>, client: &mut dyn Client) -> bool {
        let is_recent = self.recent.as_ref().is_some_and(|(name, _)| name == statement);
        (is_recent || self.bound(statement).is_ok()) && self.read_recent(bind, false, client)
    }

    /// Bind, Execute and the work of Sync but its end, for the statement that was bound last and reads alone; `describes`: with Describe of the portal
    /// between. False: nothing has happened.
    pub fn try_read_batch(
        &mut self,
        statement: &str,
        bind: &Bind<'_>,
        describes: bool,
        client: &mut dyn Client,
    ) -> bool {
        let is_recent = |(name, prepared): &(String, Arc<Prepared>)| prepared.columns.is_some() && name == statement;
        // Looked at first: most statements that change something are told from reads by this.
        self.block == Block::None
            && self.recent.as_ref().is_some_and(is_recent)
            && self.read_recent(bind, describes, client)
    }

    fn read_recent(&mut self, bind: &Bind<'_>, describes: bool, client: &mut dyn Client) -> bool {
        if !self.may_read_alone() || self.is_overdue() {
            return false;
        }
        let Some(recent) = self.recent.take() else { return false };
        let mut params = std::mem::take(&mut self.scratch.params);
        let prepared = &*recent.1;
        let done = prepared.takes(bind)
            && prepared.plain_parameters(&self.core, bind, &mut params)
            && self.read_alone(prepared, &params, (bind.result_formats, describes), client);
        if done {
            prepared.choice.used();
        }
        params.clear();
        self.scratch.params = params;
        self.recent = Some(recent);
        done
    }

    /// As `try_execute` for the unnamed portal, where the client has sent Sync behind Execute.
    pub fn try_execute_last(&mut self, client: &mut dyn Client) -> bool {
        let reads = self.portals.get("").is_some_and(|portal| portal.prepared.columns.is_some());
        if reads
            && self.may_read_alone()
            && !self.is_overdue()
            && let Some(mut portal) = self.portals.take_fresh()
        {
            let Portal { prepared, params, formats, .. } = &portal;
            portal.finished = self.read_alone(prepared, params, (formats, false), client);
            let done = portal.finished;
            self.portals.give_back(portal);
            if done {
                self.parsed_ns = 0;
                return true;
            }
        }
        self.try_execute("", client)
    }

    /// LONE-2
    pub(super) fn may_read_alone(&self) -> bool {
        self.block == Block::None && !self.untold && !self.may_follow() && !self.core.has_end_work() && self.may_try()
    }

    pub(super) fn read_alone(
        &mut self,
        prepared: &Prepared,
        params: &[Datum],
        (formats, describes): (&[i16], bool),
        client: &mut dyn Client,
    ) -> bool {
        let Some(columns) = &prepared.columns else { return false };
        // Nothing else has the plan, and no fast path asks for it.
        let plan = prepared.plan.lend();
        let Some(cached) = plan.as_deref().and_then(Option::as_ref) else { return false };
        let (Some(fast @ (Fast::Point(_) | Fast::Range(_))), Some(_)) = (&cached.fast, cached.version) else {
            return false;
        };
        let Some(terms) = self.terms(cached) else { return false };
        let (text, digest) = (&prepared.text, &prepared.digest);
        let told = describes.then_some(Told { columns, kept: Some(&prepared.described) });
        let short = Short { cached, text, digest, params, formats, portal: Some(""), told };
        let reading = Reading::Alone(terms);
        match fast {
            Fast::Point(point) => self.run_point(&short, point, reading, client),
            Fast::Range(range) => self.run_range(&short, range, reading, client),
            Fast::Change(_) => false,
        }
    }

    /// None: replies wait for the archive, the plan is not of the session's role and path, or the client reads another encoding than UTF-8.
    fn terms(&self, cached: &Cached) -> Option<Terms> {
        let (terms, fits) = {
            let settings = self.core.settings.lock();
            if settings.commits_archived {
                return None;
            }
            let (level, read_only) = settings.default_modes;
            let terms = Terms { relaxed: settings.commits_later, mode: Mode::of(level, read_only) };
            (terms, is_short_of_settings(&settings, cached))
        };
        let same_figures = cached.generation.is_none_or(|g| g == self.core.db.statistics().generation());
        (fits && same_figures || is_short_of_session(&self.core, cached)).then_some(terms)
    }

    /// A statement of a fast path begins to read.
    pub(super) fn begin_reading(&mut self, short: &Short<'_>, reading: Reading) -> Begun {
        let at_ns = waits::now_ns();
        self.core.backend.runs_from(at_ns, short.text, None);
        self.watch_from(at_ns, short.digest, short.text, short.portal);
        let durable = match reading {
            Reading::InTransaction => {
                self.begin_implicit_at(at_ns);
                self.block == Block::Implicit && self.in_batch <= 1
            }
            Reading::Alone(terms) => {
                self.core.backend.mode.store(terms.mode, Relaxed);
                self.core.archived.end();
                true
            }
        };
        Begun { at_ns, reading, durable }
    }

    /// It gives up.
    pub(super) fn give_up_reading(&mut self, begun: &Begun) {
        if let Reading::InTransaction = begun.reading {
            self.in_batch -= 1;
        }
    }
}
