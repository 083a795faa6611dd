//! Texts that the session has parsed before: those of the simple protocol, and those of the unnamed statement, which drivers send before each execution.

use super::choice::Choice;
use super::run;
use super::session::{CACHE_MAX, CACHED_TEXT_MAX, Prepared, Session};
use super::template::names_a_day;
use crate::context::backend::redacted;
use crate::context::statements::Digest;
use crate::error::Result;
use crate::syntax::stmt::Statement;
use crate::syntax::{Parsed, parse};
use crate::types::Oid;
use clearway_base::sync::Mutex;
use foldhash::fast::RandomState;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

/// Texts, the types that the client gave their parameters, and what was made of them.
pub(super) type Unnamed = HashMap<Arc<str>, (Box<[Oid]>, Arc<Prepared>), RandomState>;

impl Session {
    /// Forgets texts whose constants mean something else since the forms of values have changed.
    pub(super) fn forget_other_formats(&mut self) {
        let formats = self.core.settings.lock().format_changes;
        if std::mem::replace(&mut self.cache_formats, formats) != formats {
            self.cache.clear();
            self.templates.clear();
            self.unnamed.clear();
        }
    }

    /// The statements of a text of the simple protocol.
    pub(super) fn prepare_text(&mut self, sql: &str) -> Result<Arc<Vec<Arc<Prepared>>>> {
        self.forget_other_formats();
        if let Some(list) = self.cache.get(sql) {
            return Ok(list.clone());
        }
        if sql.len() <= CACHED_TEXT_MAX
            && let Some(prepared) = self.templates.statement(&self.core, sql)
        {
            return Ok(Arc::new(vec![Arc::new(prepared)]));
        }
        self.prepared_held.resume();
        if sql.len() <= CACHED_TEXT_MAX && !names_a_day(sql) {
            self.templates.learn(&self.core, sql);
        }
        let list: Vec<Arc<Prepared>> = match self.shared_plan(sql, &[], true) {
            Some(prepared) => vec![Arc::new(prepared)],
            None => parse(sql)?.into_iter().map(|p| Arc::new(unplanned(p, sql))).collect(),
        };
        let list = Arc::new(list);
        if sql.len() <= CACHED_TEXT_MAX && !names_a_day(sql) {
            if self.cache.len() >= CACHE_MAX {
                self.cache.clear();
            }
            self.cache.insert(sql.into(), list.clone());
            self.prepared_held.measure();
        }
        Ok(list)
    }

    /// Prepares the unnamed statement.
    pub(super) fn prepare_unnamed(&mut self, sql: &str, types: &[Oid]) -> Result<Arc<Prepared>> {
        self.forget_other_formats();
        if let Some((given, prepared)) = self.unnamed.get(sql)
            && **given == *types
            && self.fits(prepared)
        {
            if let Some(statement) = &prepared.statement {
                self.check_block(statement)?;
            }
            return Ok(prepared.clone());
        }
        let prepared = Arc::new(self.prepare(sql, types)?);
        let is_kept = self.fits(&prepared) && sql.len() <= CACHED_TEXT_MAX && !names_a_day(sql);
        if is_kept {
            if self.unnamed.len() >= CACHE_MAX {
                self.unnamed.clear();
            }
            self.unnamed.insert(sql.into(), (types.into(), prepared.clone()));
        }
        Ok(prepared)
    }

    /// Whether a statement that was made of a text before is still what the text means. What has no plan is made anew, but for BEGIN, COMMIT and their
    /// like, which depend on nothing.
    fn fits(&self, prepared: &Prepared) -> bool {
        match prepared.plan.lock().as_deref() {
            Some(cached) => run::is_fresh(&self.core, cached),
            None => matches!(prepared.statement.as_deref(), Some(Statement::Transaction(_))),
        }
    }
}

fn unplanned(parsed: Parsed, sql: &str) -> Prepared {
    let text: Arc<str> = redacted(sql.get(parsed.range).unwrap_or(sql)).into();
    Prepared {
        digest: Digest::within(&text, sql),
        text,
        statement: Some(Arc::new(parsed.statement)),
        types: Vec::new(),
        columns: None,
        constants: Arc::from([]),
        described: OnceLock::new(),
        choice: Choice::default(),
        shared: None,
        plan: Mutex::new("sql/plan", None),
    }
}
