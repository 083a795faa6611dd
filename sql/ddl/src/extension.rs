//! CREATE, DROP and COMMENT ON EXTENSION.

use super::extension_users::types_of;
use super::{Ddl, missing};
use crate::context::extensions::{KNOWN, comment_part, known, of};
use crate::context::privileges::Judge;
use crate::error::{Result, SqlError, code};
use crate::syntax::extension::ExtensionStatement;
use clearway_engine::catalog::{Database, Extension, Object};
use clearway_txn::lockmgr::LockMode;

impl Ddl<'_> {
    /// A statement about an extension.
    pub(super) async fn extension(&self, s: &ExtensionStatement) -> Result<&'static str> {
        match s {
            ExtensionStatement::Create { name, if_not_exists, schema, version } => {
                self.create_extension(name, *if_not_exists, (schema.as_deref(), version.as_deref())).await?;
                Ok("CREATE EXTENSION")
            }
            ExtensionStatement::Drop { names, if_exists, cascade } => {
                self.drop_extensions(names, *if_exists, *cascade).await?;
                Ok("DROP EXTENSION")
            }
            ExtensionStatement::Comment { name, text } => {
                let database = self.own_database().await?;
                let found = database.extensions.iter().find(|e| e.name == *name);
                let extension = found.ok_or_else(|| missing("extension", name))?;
                let catalog = self.catalog();
                if !Judge::of(self.core, &catalog).owns(extension.owner) {
                    return Err(SqlError::new("42501", format!("must be owner of extension {name}")));
                }
                self.put_comment(database.oid, comment_part(extension.oid), text.as_deref()).await?;
                Ok("COMMENT")
            }
        }
    }

    /// The session's database, locked against other changes of its extensions.
    async fn own_database(&self) -> Result<Database> {
        self.lock(self.core.database, LockMode::ShareUpdateExclusive).await?;
        match self.catalog().get(self.core.database).map(|object| &**object) {
            Some(Object::Database(database)) => Ok(database.clone()),
            _ => Err(SqlError::internal("the session's database is not in the catalog")),
        }
    }

    async fn create_extension(
        &self,
        name: &str,
        if_not_exists: bool,
        (schema, version): (Option<&str>, Option<&str>),
    ) -> Result<()> {
        let mut database = self.own_database().await?;
        if database.extensions.iter().any(|e| e.name == name) {
            let message = format!("extension \"{name}\" already exists");
            if !if_not_exists {
                return Err(SqlError::new("42710", message));
            }
            self.core.notice("NOTICE", SqlError::new("42710", format!("{message}, skipping")));
            return Ok(());
        }
        let Some(known) = known(name) else {
            let names: Vec<&str> = KNOWN.iter().map(|known| known.name).collect();
            let message = format!("extension \"{name}\" is not available");
            return Err(SqlError::new(code::FEATURE_NOT_SUPPORTED, message)
                .hint(format!("The extensions that are there: {}.", names.join(", "))));
        };
        if let Some(version) = version.filter(|version| *version != known.version) {
            let message =
                format!("extension \"{name}\" has no installation script nor update path for version \"{version}\"");
            return Err(SqlError::new(code::INVALID_PARAMETER_VALUE, message));
        }
        let catalog = self.catalog();
        let judge = Judge::of(self.core, &catalog);
        let object = Object::Database(database.clone());
        let may = judge.is_superuser() || known.trusted && judge.may_with(&object, 'C');
        let Some(role) = judge.role().filter(|_| may) else {
            let who = match known.trusted {
                true => "Must have CREATE privilege on current database to create this extension.",
                false => "Must be superuser to create this extension.",
            };
            return Err(SqlError::new("42501", format!("permission denied to create extension \"{name}\"")).hint(who));
        };
        let path = self.core.path();
        // An extension never goes into the session's own schema of temporary objects, though that stands first.
        let first = || {
            let lasting = path.iter().filter(|s| !s.starts_with("pg_"));
            lasting.into_iter().find_map(|s| catalog.schema(self.core.database, s))
        };
        let found = match schema {
            Some(schema) => catalog.schema(self.core.database, schema),
            None => first(),
        };
        let Some(found) = found else {
            return Err(match schema {
                Some(schema) => SqlError::new(code::INVALID_SCHEMA_NAME, format!("schema \"{schema}\" does not exist")),
                None => SqlError::new(code::INVALID_SCHEMA_NAME, "no schema has been selected to create in"),
            });
        };
        for ty in types_of(name) {
            self.free_type_name(&catalog, found.oid, ty.name)?;
        }
        let oid = self.new_oid();
        database.extensions.push(Extension {
            oid,
            name: name.to_owned(),
            schema: found.oid,
            owner: role.oid,
            version: known.version.to_owned(),
        });
        self.put(Object::Database(database)).await?;
        self.put_comment(self.core.database, comment_part(oid), Some(known.comment)).await
    }

    async fn drop_extensions(&self, names: &[String], if_exists: bool, cascade: bool) -> Result<()> {
        let mut database = self.own_database().await?;
        let catalog = self.catalog();
        let judge = Judge::of(self.core, &catalog);
        for name in names {
            match database.extensions.iter().find(|e| e.name == *name) {
                Some(e) if judge.owns(e.owner) => {}
                Some(_) => return Err(SqlError::new("42501", format!("must be owner of extension {name}"))),
                None if if_exists => {
                    let message = format!("extension \"{name}\" does not exist, skipping");
                    self.core.notice("NOTICE", SqlError::new("00000", message));
                }
                None => return Err(missing("extension", name)),
            }
        }
        let going: Vec<&str> = names.iter().map(String::as_str).collect();
        self.drop_users(&going, cascade).await?;
        self.without(&mut database, |e| names.contains(&e.name)).await
    }

    /// Takes extensions away, and the comments on them.
    async fn without(&self, database: &mut Database, goes: impl Fn(&Extension) -> bool) -> Result<()> {
        let gone: Vec<u32> = database.extensions.iter().filter(|e| goes(e)).map(|e| e.oid).collect();
        database.extensions.retain(|e| !goes(e));
        self.put(Object::Database(database.clone())).await?;
        for extension in gone {
            self.put_comment(database.oid, comment_part(extension), None).await?;
        }
        Ok(())
    }

    /// A schema goes: so do the extensions that stand in it.
    pub(super) async fn drop_extensions_of(&self, schema: u32) -> Result<()> {
        let catalog = self.catalog();
        let here = of(&catalog, self.core.database).iter().filter(|e| e.schema == schema);
        let going: Vec<&str> = here.map(|e| e.name.as_str()).collect();
        if going.is_empty() {
            return Ok(());
        }
        self.drop_users(&going, true).await?;
        let mut database = self.own_database().await?;
        self.without(&mut database, |e| e.schema == schema).await
    }
}
