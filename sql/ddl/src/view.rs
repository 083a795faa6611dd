//! The relations that a view reads, and the view's options.

use super::{Ddl, exists};
use crate::error::{Result, SqlError, code};
use crate::planner::Planner;
use crate::planner::environment::with_env;
use crate::planner::plan::OutputColumn;
use crate::syntax::ast::Query;
use crate::syntax::stmt::GenericOption;
use crate::types::{SqlType, format_type};
use clearway_engine::catalog::{Column, Object, Relation, RelationKind, ViewMeaning};
use clearway_txn::lockmgr::{IfTaken, LockMode};
use std::sync::Arc;

/// The options of a view as the catalog keeps them.
///
/// # Errors
/// 22023, 0A000.
pub(super) fn options(options: &[GenericOption]) -> Result<Vec<String>> {
    let mut kept: Vec<String> = Vec::new();
    for o in options {
        let value = match o.name.as_str() {
            "check_option" => o.as_str().unwrap_or("true").to_ascii_lowercase(),
            "security_barrier" | "security_invoker" => {
                once(&kept, &o.name)?;
                kept.push(format!("{}={}", o.name, truth(o)?));
                continue;
            }
            name => return Err(SqlError::new("22023", format!("unrecognized parameter \"{name}\""))),
        };
        if !matches!(value.as_str(), "local" | "cascaded") {
            let message = format!("invalid value for enum option \"check_option\": {value}");
            return Err(SqlError::new("22023", message).detail("Valid values are \"local\" and \"cascaded\"."));
        }
        once(&kept, "check_option")?;
        kept.push(format!("check_option={value}"));
    }
    Ok(kept)
}

/// Checks that the columns of a view that is replaced stand first among those that replace them, which keep their defaults.
///
/// # Errors
/// 42P16.
pub(super) fn follows(old: &mut [Column], new: &mut [Column]) -> Result<()> {
    let refuse = |message: String| Err(SqlError::new("42P16", message));
    if new.len() < old.len() {
        return refuse("cannot drop columns from view".to_owned());
    }
    for (before, now) in old.iter_mut().zip(new) {
        if before.name != now.name {
            let message = format!("cannot change name of view column \"{}\" to \"{}\"", before.name, now.name);
            let hint = "Use ALTER VIEW ... RENAME COLUMN ... to change name of view column instead.";
            return Err(SqlError::new("42P16", message).hint(hint));
        }
        if (before.type_oid, before.type_mod) != (now.type_oid, now.type_mod) {
            let shown = |c: &Column| format_type(SqlType { oid: c.type_oid, modifier: c.type_mod });
            let (from, to) = (shown(before), shown(now));
            return refuse(format!("cannot change data type of view column \"{}\" from {from} to {to}", before.name));
        }
        (now.default, now.path) = (before.default.take(), before.path.take());
    }
    Ok(())
}

fn once(kept: &[String], name: &str) -> Result<()> {
    match kept.iter().any(|o| o.split('=').next() == Some(name)) {
        true => Err(SqlError::new("22023", format!("parameter \"{name}\" specified more than once"))),
        false => Ok(()),
    }
}

/// A boolean option as it was written, where it says yes or no.
fn truth(o: &GenericOption) -> Result<String> {
    let text = o.as_str().unwrap_or("true").to_ascii_lowercase();
    if crate::types::text::boolean(&text).is_err() {
        return Err(SqlError::new("22023", format!("invalid value for boolean option \"{}\": {text}", o.name)));
    }
    Ok(text)
}

impl Ddl<'_> {
    /// The view that CREATE OR REPLACE VIEW replaces, locked; none: there is none of that name.
    pub(super) async fn replaced_view(&self, schema: u32, name: &str, replace: bool) -> Result<Option<Relation>> {
        let catalog = self.catalog();
        match catalog.in_schema(schema, name).map(|o| &**o) {
            Some(Object::Relation(r)) if replace && r.kind == RelationKind::View => {
                self.own(r)?;
                self.lock(r.oid, LockMode::AccessExclusive).await?;
                let locked = self.catalog().relation(r.oid).cloned();
                // It may have gone to another owner during the wait.
                locked.as_ref().map_or(Ok(()), |view| self.own(view))?;
                Ok(locked)
            }
            Some(Object::Relation(_) | Object::Index(_) | Object::Sequence(_)) if replace => {
                Err(SqlError::new(code::WRONG_OBJECT_TYPE, format!("\"{name}\" is not a view")))
            }
            Some(_) => Err(exists(name)),
            None => Ok(None),
        }
    }

    /// The result columns of a view's query, with the tables that it reads locked: transactions that were changing them have ended.
    pub(super) async fn lock_read(&self, query: &Query, text: &str) -> Result<(Vec<OutputColumn>, ViewMeaning)> {
        loop {
            let catalog = self.catalog();
            let (outputs, meaning) = with_env(self.core, &catalog, |env| Planner::new(env).plan_view(query, text))?;
            for (_, oid) in &meaning.names {
                self.core.lock_relation(*oid, LockMode::AccessShare, IfTaken::Wait).await?;
            }
            let now = self.catalog();
            let same = |oid: u32| match (catalog.get(oid), now.get(oid)) {
                (Some(before), Some(now)) => Arc::ptr_eq(before, now),
                (before, now) => before.is_none() && now.is_none(),
            };
            if meaning.names.iter().all(|(_, oid)| same(*oid)) {
                return Ok((outputs, meaning));
            }
        }
    }

    /// Refuses a check option of a view that can't be changed through.
    ///
    /// # Errors
    /// 0A000.
    pub(super) fn may_check(&self, view: &Relation) -> Result<()> {
        if view.option("check_option").is_none() {
            return Ok(());
        }
        let catalog = self.catalog();
        match with_env(self.core, &catalog, |env| Planner::new(env).obstacle_of(view))? {
            None => Ok(()),
            Some(why) => {
                let message = "WITH CHECK OPTION is supported only on automatically updatable views";
                Err(SqlError::new("0A000", message).hint(why))
            }
        }
    }
}
