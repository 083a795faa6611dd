//! CREATE DATABASE and ALTER DATABASE, with their options.

use super::Ddl;
use crate::error::{Result, SqlError, code};
use crate::syntax::ddl::RoleSpec;
use crate::syntax::stmt::GenericOption;
use clearway_engine::catalog::predefined::DATABASE_OWNER;
use clearway_engine::catalog::{Acl, Comment, Database, Object, Schema};
use clearway_values::encoding::Encoding;

/// The two templates, which every new database equals.
const TEMPLATES: [&str; 2] = ["template0", "template1"];
/// Spellings of the locale that every database has.
const LOCALE: [&str; 2] = ["c.utf-8", "c.utf8"];

impl Ddl<'_> {
    /// CREATE DATABASE.
    pub(super) async fn create_database(&self, name: &str, options: &[GenericOption]) -> Result<&'static str> {
        self.may("create database", |r| r.create_db)?;
        refuse_twice(options)?;
        let (mut owner, mut connection_limit) = (self.role()?, -1);
        for o in options {
            // DEFAULT is what holds without the option.
            let Some(value) = o.as_str() else { continue };
            match o.name.as_str() {
                "owner" => {
                    let named = self.role_named(&self.catalog(), &RoleSpec::Name(value.to_owned()))?;
                    if !self.judge(&self.catalog()).is_member(named.oid) {
                        return Err(SqlError::new("42501", format!("must be member of role \"{}\"", named.name)));
                    }
                    owner = named.oid;
                }
                "connection limit" => connection_limit = parse_limit(value)?,
                "template" => self.check_template(value, o)?,
                _ => check_fixed_option(value, o)?,
            }
        }
        if self.catalog().database(name).is_some() {
            return Err(SqlError::new("42P04", format!("database \"{name}\" already exists")));
        }
        let oid = self.new_oid();
        self.put(Object::Database(Database { connection_limit, ..Database::new(oid, name, owner) })).await?;
        let acl = Acl::of_public_schema(DATABASE_OWNER);
        let schema = Schema { acl, ..Schema::new(self.new_oid(), oid, "public", DATABASE_OWNER) };
        let comment = Comment::of_public_schema(self.new_oid(), schema.oid);
        self.put(Object::Schema(schema)).await?;
        self.put(Object::Comment(comment)).await?;
        Ok("CREATE DATABASE")
    }

    fn check_template(&self, name: &str, o: &GenericOption) -> Result<()> {
        if TEMPLATES.contains(&name) {
            return Ok(());
        }
        if self.catalog().database(name).is_none() {
            return Err(SqlError::new("3D000", format!("template database \"{name}\" does not exist")));
        }
        Err(SqlError::unsupported(format!("CREATE DATABASE with the template \"{name}\"")).at(o.pos))
    }

    /// ALTER DATABASE ... WITH: counts from the next connection on.
    pub(super) async fn alter_database(&self, name: &str, options: &[GenericOption]) -> Result<&'static str> {
        let catalog = self.catalog();
        refuse_twice(options)?;
        let Some(mut database) = catalog.database(name).cloned() else {
            return Err(SqlError::new("3D000", format!("database \"{name}\" does not exist")));
        };
        self.own_oid(&catalog, database.oid)?;
        for o in options {
            match (o.name.as_str(), o.as_str()) {
                ("connection limit", Some(limit)) => database.connection_limit = parse_limit(limit)?,
                ("is_template" | "allow_connections" | "tablespace", Some(value)) => check_fixed_option(value, o)?,
                _ => return Err(unknown_option(o)),
            }
        }
        self.put(Object::Database(database)).await?;
        Ok("ALTER DATABASE")
    }
}

fn unknown_option(o: &GenericOption) -> SqlError {
    SqlError::new(code::SYNTAX_ERROR, format!("option \"{}\" not recognized", o.name)).at(o.pos)
}

fn refuse_twice(options: &[GenericOption]) -> Result<()> {
    for (at, o) in options.iter().enumerate() {
        if options[..at].iter().any(|earlier| earlier.name == o.name) {
            return Err(SqlError::new(code::SYNTAX_ERROR, "conflicting or redundant options").at(o.pos));
        }
    }
    Ok(())
}

/// An option that can have the value alone that every database has: any other value that PostgreSQL knows is not supported.
fn check_fixed_option(value: &str, o: &GenericOption) -> Result<()> {
    let lower = value.to_lowercase();
    let is_so = match o.name.as_str() {
        "encoding" => match Encoding::find(value).or_else(|| value.parse().ok().and_then(Encoding::of_number)) {
            Some(encoding) => encoding == Encoding::UTF8,
            None => {
                return Err(SqlError::new("42704", format!("{value} is not a valid encoding name")).at(o.pos));
            }
        },
        "strategy" if matches!(&*lower, "wal_log" | "file_copy") => true,
        "strategy" => {
            let message = format!("invalid create database strategy \"{value}\"");
            let hint = "Valid strategies are \"wal_log\" and \"file_copy\".";
            return Err(SqlError::new(code::INVALID_PARAMETER_VALUE, message).hint(hint));
        }
        // Texts are ordered by their bytes in each of these.
        "lc_collate" => matches!(&*lower, "c" | "posix") || LOCALE.contains(&&*lower),
        "lc_ctype" | "locale" => LOCALE.contains(&&*lower),
        "locale_provider" => lower == "libc",
        "tablespace" => value == "pg_default",
        "allow_connections" => flag(o)?,
        "is_template" => !flag(o)?,
        "icu_locale" | "collation_version" | "oid" => false,
        _ => return Err(unknown_option(o)),
    };
    if is_so {
        return Ok(());
    }
    let what = o.name.to_uppercase();
    Err(SqlError::unsupported(format!("{what} \"{value}\" of a database")).at(o.pos))
}

fn flag(o: &GenericOption) -> Result<bool> {
    let wrong = || SqlError::new(code::SYNTAX_ERROR, format!("{} requires a Boolean value", o.name));
    o.as_bool().ok_or_else(wrong)
}

fn parse_limit(text: &str) -> Result<i32> {
    let limit = text.parse::<i32>().ok().filter(|limit| *limit >= -1);
    limit.ok_or_else(|| SqlError::new(code::INVALID_PARAMETER_VALUE, format!("invalid connection limit: {text}")))
}
