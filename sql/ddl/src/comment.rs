//! COMMENT, and ALTER ... SET SCHEMA.

use super::{Ddl, exists, missing};
use crate::context::errors::from_engine;
use crate::context::names::schema_of;
use crate::context::privileges::denied;
use crate::error::{Result, SqlError, code};
use crate::planner::environment::find_object;
use crate::syntax::ast::QualName;
use crate::syntax::ddl::ObjectKind;
use clearway_engine::catalog::{Catalog, Comment, Object, Oid, Relation};
use clearway_txn::lockmgr::LockMode;
use std::sync::Arc;

/// What a statement says an object is.
fn asked(kind: ObjectKind) -> &'static str {
    match kind {
        ObjectKind::Index => "index",
        ObjectKind::View => "view",
        ObjectKind::MaterializedView => "materialized view",
        ObjectKind::Sequence => "sequence",
        _ => "table",
    }
}

impl Ddl<'_> {
    /// COMMENT ON; no text takes the comment away.
    pub(super) async fn comment(
        &self,
        kind: ObjectKind,
        name: &QualName,
        column: Option<&str>,
        text: Option<&str>,
    ) -> Result<&'static str> {
        if kind == ObjectKind::LargeObject {
            return self.comment_large_object(name, text).await;
        }
        let catalog = self.catalog();
        let (mut object, mut part) = match kind {
            ObjectKind::Schema | ObjectKind::Database | ObjectKind::Role => {
                (self.global(&catalog, kind, name.name())?, String::new())
            }
            _ => self.commented(&catalog, kind, name, column)?,
        };
        match &*object {
            Object::Role(role) => self.may_comment_role(role)?,
            object => self.owns(object)?,
        }
        if schema_of(&object).is_some() {
            let mut locked = None;
            while locked != Some(object.oid()) {
                self.lock(object.oid(), LockMode::ShareUpdateExclusive).await?;
                locked = Some(object.oid());
                // What may have changed while the lock was waited for.
                (object, part) = self.commented(&self.catalog(), kind, name, column)?;
                self.owns(&object)?;
            }
        }
        self.put_comment(object.oid(), part, text).await?;
        Ok("COMMENT")
    }

    /// Locks what a comment is about, so that it is not dropped meanwhile: nothing would take the comment away again. False: it has gone.
    /// Relations are locked by their own lock.
    pub(super) async fn lock_commented(&self, object: &Object) -> Result<bool> {
        let mut engine = self.engine();
        let locked = engine.lock_object(object, LockMode::ShareUpdateExclusive);
        self.core.lock_wait(locked).await.map_err(from_engine)?;
        engine.read_again(object.oid());
        Ok(engine.catalog().get(object.oid()).is_some())
    }

    /// Puts a comment in the place of the one before; no text takes it away.
    pub(super) async fn put_comment(&self, object: Oid, part: String, text: Option<&str>) -> Result<()> {
        if let Some(object) = self.catalog().get(object)
            && !self.lock_commented(object).await?
        {
            return Err(missing(object.kind(), object.name()));
        }
        let catalog = self.catalog();
        let known = catalog.comments(object).find(|comment| comment.part == part).map(|comment| comment.oid);
        match (text.filter(|text| !text.is_empty()), known) {
            (Some(text), known) => {
                let oid = known.unwrap_or_else(|| self.new_oid());
                self.put(Object::Comment(Comment { oid, object, part, text: text.to_owned() })).await
            }
            (None, Some(known)) => self.take_away(known, None).await,
            (None, None) => Ok(()),
        }
    }

    /// The object of a comment, and what of it.
    fn commented(
        &self,
        catalog: &Arc<Catalog>,
        kind: ObjectKind,
        name: &QualName,
        part: Option<&str>,
    ) -> Result<(Arc<Object>, String)> {
        let object = find_object(self.core, catalog, name).ok_or_else(|| self.no_such("relation", name).nowhere())?;
        let relation = |object: &Object| match object {
            Object::Relation(r) => Ok(r.clone()),
            other => {
                let message = format!("\"{}\" is not a table", other.name());
                Err(SqlError::new(code::WRONG_OBJECT_TYPE, message))
            }
        };
        let part = match (kind, part) {
            (ObjectKind::Column, Some(column)) => {
                let r = relation(&object)?;
                let at = r.columns.iter().position(|c| c.name == column && !c.is_dropped()).ok_or_else(|| {
                    let message = format!("column \"{column}\" of relation \"{}\" does not exist", r.name);
                    SqlError::new(code::UNDEFINED_COLUMN, message)
                })?;
                (at + 1).to_string()
            }
            (ObjectKind::Constraint, Some(constraint)) => {
                let r = relation(&object)?;
                if !constraint_is_there(catalog, &r, constraint) {
                    let message = format!("constraint \"{constraint}\" for table \"{}\" does not exist", r.name);
                    return Err(SqlError::new(code::UNDEFINED_OBJECT, message));
                }
                constraint.to_owned()
            }
            (ObjectKind::Policy, Some(policy)) => {
                let r = relation(&object)?;
                let found = r.security.policies.iter().find(|p| p.name == policy);
                let found = found.ok_or_else(|| super::policy::unknown(policy, &r.name))?;
                policy_part(found.oid)
            }
            _ => {
                if object.kind() != asked(kind) {
                    let article = if kind == ObjectKind::Index { "an" } else { "a" };
                    let message = format!("\"{}\" is not {article} {}", object.name(), asked(kind));
                    return Err(SqlError::new(code::WRONG_OBJECT_TYPE, message));
                }
                String::new()
            }
        };
        Ok((object, part))
    }

    /// ALTER ... SET SCHEMA: indexes and the columns' sequences go along.
    pub(super) async fn set_schema(
        &self,
        kind: ObjectKind,
        name: &QualName,
        if_exists: bool,
        schema: &str,
    ) -> Result<&'static str> {
        let tag = match kind {
            ObjectKind::View => "ALTER VIEW",
            ObjectKind::Sequence => "ALTER SEQUENCE",
            ObjectKind::MaterializedView => "ALTER MATERIALIZED VIEW",
            _ => "ALTER TABLE",
        };
        let judge = |catalog: &Arc<Catalog>, object: &Object| {
            self.owns(object)?;
            super::alter_kinds::may_move(catalog, object, kind)
        };
        let Some(object) = self.lock_found(name, judge, |_| LockMode::AccessExclusive).await? else {
            if if_exists {
                let message = format!("relation \"{}\" does not exist, skipping", name.name());
                self.core.notice("NOTICE", SqlError::new("00000", message));
                return Ok(tag);
            }
            return Err(self.no_such("relation", name));
        };
        let sequences = match &*object {
            Object::Relation(r) => self.lock_owned_sequences(r.oid).await?,
            _ => Vec::new(),
        };
        let catalog = self.catalog();
        let to = catalog.schema(self.core.database, schema).ok_or_else(|| missing("schema", schema))?;
        if !self.judge(&catalog).may_with_schema(to, 'C') {
            return Err(denied("schema", schema));
        }
        let object = catalog.get(object.oid()).ok_or_else(|| missing("relation", name.name()))?;
        let from = schema_of(object);
        if from == Some(to.oid) {
            return Ok(tag);
        }
        let own = catalog.temp_schema().map(|own| own.oid);
        if own.is_some() && (own == from || own == Some(to.oid)) {
            let message = "cannot move objects into or out of temporary schemas";
            return Err(SqlError::new("0A000", message));
        }
        let mut moved = vec![object.clone()];
        if let Object::Relation(r) = &**object {
            moved.extend(catalog.indexes(r.oid).filter_map(|i| catalog.get(i.oid)).cloned());
            moved.extend(sequences.iter().filter_map(|oid| catalog.get(*oid)).cloned());
        }
        for object in moved {
            if catalog.in_schema(to.oid, object.name()).is_some() {
                let message = format!("relation \"{}\" already exists in schema \"{schema}\"", object.name());
                return Err(SqlError::new(exists("").code(), message));
            }
            let mut object = Object::clone(&object);
            match &mut object {
                Object::Relation(r) => r.schema = to.oid,
                Object::Index(i) => i.schema = to.oid,
                Object::Sequence(q) => q.schema = to.oid,
                _ => {}
            }
            self.put(object).await?;
        }
        Ok(tag)
    }
}

/// What of a table a comment on a policy is about: a policy can get another name.
pub(super) fn policy_part(policy: Oid) -> String {
    format!("policy {policy}")
}

/// The comments on policies that a table has no more.
pub(super) fn of_policies_gone(catalog: &Catalog, object: &Object) -> Vec<Oid> {
    let Object::Relation(r) = object else { return Vec::new() };
    let gone = |comment: &&Comment| {
        let policy = comment.part.strip_prefix("policy ").and_then(|oid| oid.parse::<Oid>().ok());
        policy.is_some_and(|policy| !r.security.policies.iter().any(|p| p.oid == policy))
    };
    catalog.comments(r.oid).filter(gone).map(|comment| comment.oid).collect()
}

fn constraint_is_there(catalog: &Catalog, r: &Relation, name: &str) -> bool {
    r.checks.iter().any(|c| c.name == name)
        || r.foreign_keys.iter().any(|k| k.name == name)
        || catalog.indexes(r.oid).any(|i| i.constraint && i.name == name)
}
