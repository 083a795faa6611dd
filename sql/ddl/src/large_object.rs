//! Owners, privileges and comments of large objects, and what becomes of them with their role or their database.

use super::Ddl;
use crate::context::errors::from_engine;
use crate::error::{Result, SqlError, code};
use crate::syntax::ast::QualName;
use crate::syntax::ddl::{Grant, RoleSpec};
use clearway_engine::catalog::{AclKind, Object};
use clearway_engine::large_object::LargeObject;
use clearway_txn::lockmgr::LockMode;

/// Objects, or pages, that are read or dropped at a time.
const PIECE: usize = 256;

fn missing(oid: u32) -> SqlError {
    SqlError::new(code::UNDEFINED_OBJECT, format!("large object {oid} does not exist"))
}

/// The number that a statement names; the parser has let no other text pass.
fn number(name: &QualName) -> Result<u32> {
    name.name()
        .parse()
        .map_err(|_| SqlError::new("22003", format!("value \"{}\" is out of range for type oid", name.name())))
}

impl Ddl<'_> {
    /// The newest version of an object, locked against other changes of its owner, privileges and comment, and against its end.
    async fn locked_object(&self, oid: u32) -> Result<Option<LargeObject>> {
        let mut engine = self.core.engine.take();
        let locked = engine.lock_large_object(oid, LockMode::RowNoKeyUpdate);
        self.core.lock_wait(locked).await.map_err(from_engine)
    }

    async fn changed_object(&self, object: &LargeObject) -> Result<()> {
        self.core.engine.take().change_large_object(object).await.map_err(from_engine)
    }

    /// SES-8: a role that an object is to name is not dropped meanwhile.
    async fn hold_role(&self, role: u32) -> Result<()> {
        let Some(object) = self.catalog().get(role).cloned() else { return Ok(()) };
        let mut engine = self.core.engine.take();
        let held = engine.lock_object(&object, LockMode::AccessShare);
        self.core.lock_wait(held).await.map_err(from_engine)?;
        drop(engine);
        match self.catalog().get(role) {
            Some(_) => Ok(()),
            None => Err(SqlError::new(code::UNDEFINED_OBJECT, format!("role {role} was concurrently dropped"))),
        }
    }

    /// Whether the session's role may do with an object what its owner may.
    fn owns_large_object(&self, object: &LargeObject, compatible: bool) -> Result<()> {
        let compatible = compatible && self.core.settings.lock().get("lo_compat_privileges") == "on";
        if compatible || self.judge(&self.catalog()).owns(object.owner) {
            return Ok(());
        }
        Err(SqlError::new("42501", format!("must be owner of large object {}", object.oid)))
    }

    /// GRANT and REVOKE ... ON LARGE OBJECT.
    pub(super) async fn grant_large_objects(&self, s: &Grant) -> Result<&'static str> {
        for name in &s.names {
            let oid = number(name)?;
            let mut object = self.locked_object(oid).await?.ok_or_else(|| missing(oid))?;
            self.change_large_object_acl(s, &mut object)?;
            for role in object.acl.entries(object.owner, AclKind::LargeObject) {
                self.hold_role(role.role).await?;
            }
            self.changed_object(&object).await?;
        }
        Ok(if s.revoke { "REVOKE" } else { "GRANT" })
    }

    /// ALTER LARGE OBJECT ... OWNER TO.
    pub(super) async fn own_large_object(&self, name: &QualName, owner: &RoleSpec) -> Result<&'static str> {
        let oid = number(name)?;
        let object = self.locked_object(oid).await?.ok_or_else(|| missing(oid))?;
        let catalog = self.catalog();
        let owner = self.role_named(&catalog, owner)?.oid;
        if owner != object.owner {
            self.owns_large_object(&object, false)?;
            if !self.judge(&catalog).is_member(owner) {
                let name = catalog.get(owner).map_or("", |role| role.name());
                return Err(SqlError::new("42501", format!("must be member of role \"{name}\"")));
            }
            self.give_large_object(object, owner).await?;
        }
        Ok("ALTER LARGE OBJECT")
    }

    async fn give_large_object(&self, mut object: LargeObject, owner: u32) -> Result<()> {
        self.hold_role(owner).await?;
        object.acl.change_owner(object.owner, owner);
        object.owner = owner;
        self.changed_object(&object).await
    }

    /// COMMENT ON LARGE OBJECT; no text takes the comment away.
    pub(super) async fn comment_large_object(&self, name: &QualName, text: Option<&str>) -> Result<&'static str> {
        let oid = number(name)?;
        let mut object = self.locked_object(oid).await?.ok_or_else(|| missing(oid))?;
        self.owns_large_object(&object, true)?;
        object.comment = text.filter(|text| !text.is_empty()).map(str::to_owned);
        self.changed_object(&object).await?;
        Ok("COMMENT")
    }

    /// The objects of a database that name a role, as they are now.
    async fn large_objects_of(&self, database: u32, role: u32) -> Result<Vec<LargeObject>> {
        let newest = self.core.seen(None);
        let (mut found, mut next) = (Vec::new(), Some(0));
        while let Some(from) = next {
            clearway_base::breath::breathe(clearway_base::breath::ROW * PIECE as u32).await?;
            let some = self.core.engine.take().large_objects(&newest.view(), database, from, PIECE).await;
            let some = some.map_err(from_engine)?;
            next = some.last().filter(|_| some.len() == PIECE).and_then(|last| last.oid.checked_add(1));
            found.extend(some.into_iter().filter(|o| o.owner == role || o.acl.names(role)));
        }
        Ok(found)
    }

    /// The lines of the error that refuses to drop a role, each with the database in which the object is.
    pub(super) async fn large_objects_that_need(&self, role: u32) -> Result<Vec<(u32, String)>> {
        let catalog = self.catalog();
        let mut lines = Vec::new();
        for database in catalog.objects() {
            let Object::Database(database) = &**database else { continue };
            for object in self.large_objects_of(database.oid, role).await? {
                let how = if object.owner == role { "owner of" } else { "privileges for" };
                lines.push((database.oid, format!("{how} large object {}", object.oid)));
            }
        }
        Ok(lines)
    }

    /// REASSIGN OWNED: the large objects of a role.
    pub(super) async fn reassign_large_objects(&self, from: u32, to: u32) -> Result<()> {
        for object in self.large_objects_of(self.core.database, from).await? {
            if let Some(object) = self.locked_object(object.oid).await?.filter(|object| object.owner == from) {
                self.give_large_object(object, to).await?;
            }
        }
        Ok(())
    }

    /// DROP OWNED: the large objects of a role go, and what it was granted on others.
    pub(super) async fn drop_owned_large_objects(&self, role: u32) -> Result<()> {
        for object in self.large_objects_of(self.core.database, role).await? {
            let Some(mut object) = self.locked_object(object.oid).await? else { continue };
            if object.owner == role {
                self.drop_large_object(object.oid).await?;
            } else {
                object.acl.forget(role, object.owner);
                self.changed_object(&object).await?;
            }
        }
        Ok(())
    }

    async fn drop_large_object(&self, oid: u32) -> Result<()> {
        self.core.close_descriptors_of(oid);
        {
            let mut engine = self.core.engine.take();
            self.core.lock_wait(engine.forget_large_object(oid)).await.map_err(from_engine)?;
        }
        loop {
            clearway_base::breath::breathe(clearway_base::breath::ROW * PIECE as u32).await?;
            let newest = self.core.seen(None);
            let (view, mut engine) = (newest.view(), self.core.engine.take());
            if !self.core.lock_wait(engine.drop_pages(&view, oid, 0, PIECE)).await.map_err(from_engine)? {
                return Ok(());
            }
        }
    }

    /// DROP DATABASE: its large objects go with it.
    pub(super) async fn drop_large_objects_in(&self, database: u32) -> Result<()> {
        loop {
            clearway_base::breath::breathe(clearway_base::breath::ROW * PIECE as u32).await?;
            let newest = self.core.seen(None);
            let (view, mut engine) = (newest.view(), self.core.engine.take());
            if !engine.drop_some_large_objects(&view, database, PIECE).await.map_err(from_engine)? {
                return Ok(());
            }
        }
    }
}
