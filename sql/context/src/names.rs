//! Resolves names of relations: by the search path, among the system's views and in the catalog.

use super::privileges::{Judge, denied};
use super::steering::Steering;
use super::views::{self, SystemView, mysql};
use clearway_engine::catalog::{Catalog, Index, Object, Relation, TEMP_PREFIX, TypeBody, TypeObject};
use clearway_engine::table::statistics::Statistics;
use clearway_syntax::ast::QualName;
use clearway_syntax::error::{Result, SqlError, code};
use clearway_txn::mvcc::snapshots::Snapshots;
pub use clearway_values::types::aliases::quoted as quote;
use clearway_values::types::text::{CatalogRows, Conversion, Names};
use clearway_values::types::{Oid, SqlType, user};
use std::sync::Arc;

/// What the planner knows of the session.
#[derive(Clone)]
pub struct PlanEnv<'a> {
    /// The catalog of the statement.
    pub catalog: &'a Arc<Catalog>,
    /// The session's database.
    pub database: Oid,
    /// Schemas searched for names without one, the user's included.
    pub path: &'a [String],
    /// What the session's role may do.
    pub judge: Judge<'a>,
    /// How literals are read.
    pub conversion: Conversion<'a>,
    /// What is known of tables.
    pub statistics: &'a Statistics,
    /// All sessions' snapshots: what every one of them sees.
    pub snapshots: &'a Snapshots,
    /// `row_security`: policies hide rows; off: a statement whose rows they would hide fails.
    pub row_security: bool,
    /// What the settings ask of the planner.
    pub steering: Steering,
}

/// A relation that a name leads to.
pub enum Found<'c> {
    /// An object of the catalog.
    Object(&'c Arc<Object>),
    /// A view of the system.
    System(&'static SystemView),
}

/// Looks names up; the implementation of the reg* types' names too.
#[derive(Clone, Debug)]
pub struct CatalogNames {
    /// The catalog.
    pub catalog: Arc<Catalog>,
    /// The database.
    pub database: Oid,
    /// The search path.
    pub path: Arc<[String]>,
    /// The session's role.
    pub role: Option<Oid>,
}

impl CatalogNames {
    /// The relation, index or sequence that a name means.
    pub fn find(&self, schema: Option<&str>, name: &str) -> Option<Found<'_>> {
        let path = user::definition_path();
        let path: &[String] = path.as_ref().map_or(&self.path, |path| &path.schemas);
        find(&self.catalog, self.database, path, schema, name)
    }

    /// Whether the session's role may look into a schema. A definition's names were resolved when it was written (USR-3).
    fn may_look_into(&self, schema: &str) -> Result<()> {
        let Some(schema) = self.catalog.schema(self.database, schema) else { return Ok(()) };
        let judge = Judge::new(&self.catalog, self.database, self.role);
        // A role that is gone may look for names, and has no rights to what it finds.
        let may = judge.role().is_none() || judge.may_with_schema(schema, 'U');
        match may || user::definition_path().is_some() {
            true => Ok(()),
            false => Err(denied("schema", &schema.name)),
        }
    }

    /// The number that a composite type has in pg_class.
    fn composite(&self, schema: Option<&str>, name: &str) -> Option<Oid> {
        let within = |schema: &str| {
            let found = self.catalog.type_in(self.catalog.schema(self.database, schema)?.oid, name)?;
            match &found.body {
                TypeBody::Composite(c) => Some(c.class),
                _ => None,
            }
        };
        let path = user::definition_path();
        let path: &[String] = path.as_ref().map_or(&self.path, |path| &path.schemas);
        match schema {
            Some(schema) => within(schema),
            None => path.iter().find_map(|schema| within(schema)),
        }
    }
}

impl Names for CatalogNames {
    fn relation(&self, parts: &[String]) -> Result<Option<Oid>> {
        let (schema, last) = match parts {
            [last] => (None, last),
            [schema, last] => (Some(schema.as_str()), last),
            [database, schema, last] => {
                if self.catalog.database(database).is_none_or(|d| d.oid != self.database) {
                    let message = format!("cross-database references are not implemented: \"{}\"", parts.join("."));
                    return Err(SqlError::new(code::FEATURE_NOT_SUPPORTED, message));
                }
                (Some(schema.as_str()), last)
            }
            _ => {
                let message = format!("improper relation name (too many dotted names): {}", parts.join("."));
                return Err(SqlError::new(code::SYNTAX_ERROR, message));
            }
        };
        schema.map_or(Ok(()), |schema| self.may_look_into(schema))?;
        let found = self.find(schema, last).map(|found| match found {
            Found::Object(o) => o.oid(),
            Found::System(v) => v.oid,
        });
        Ok(found.or_else(|| self.composite(schema, last)))
    }
    fn relation_name(&self, oid: Oid) -> Option<String> {
        if let Some(view) = views::by_oid(oid) {
            let qualified = format!("{}.{}", view.schema, view.name);
            return Some(if view.schema == "pg_catalog" { view.name.to_owned() } else { qualified });
        }
        let Some(object) = self.catalog.get(oid) else {
            // pg_class shows composite types, too.
            let class = |t: &&TypeObject| matches!(&t.body, TypeBody::Composite(c) if c.class == oid);
            return clearway_values::types::facts(self.catalog.types().find(class)?.oid).map(|f| f.sql_name.to_owned());
        };
        let shown = quote(object.name());
        let schema = schema_of(object)?;
        match self.find(None, object.name()) {
            Some(Found::Object(o)) if o.oid() == oid => Some(shown),
            _ => match &**self.catalog.get(schema)? {
                Object::Schema(s) => Some(format!("{}.{shown}", quote(&s.name))),
                _ => Some(shown),
            },
        }
    }
    fn schema(&self, name: &str) -> Option<Oid> {
        match name {
            "pg_catalog" => Some(views::PG_CATALOG),
            "information_schema" => Some(views::INFORMATION_SCHEMA),
            name => self.catalog.schema(self.database, name).map(|s| s.oid),
        }
    }
    fn has_extension_function(&self, schema: &str, function: &str) -> bool {
        super::extensions::has_function(&self.catalog, self.database, schema, function)
    }
    fn catalog_rows(&self, schema: Option<&str>, name: &str, arguments: usize) -> Option<CatalogRows> {
        views::functions::find(schema, name, arguments)
    }
    fn role(&self, name: &str) -> Option<Oid> {
        self.catalog.role(name).map(|role| role.oid)
    }
    fn may_execute(&self, oid: Oid) -> bool {
        let judge = Judge::new(&self.catalog, self.database, self.role);
        self.catalog.get(oid).is_some_and(|object| judge.may_with(object, 'X'))
    }
    fn role_name(&self, oid: Oid) -> Option<String> {
        super::privileges::role_by_oid(&self.catalog, oid).map(|role| quote(&role.name))
    }
    fn schema_name(&self, oid: Oid) -> Option<String> {
        match oid {
            views::PG_CATALOG => Some("pg_catalog".to_owned()),
            views::INFORMATION_SCHEMA => Some("information_schema".to_owned()),
            oid => match self.catalog.get(oid).map(|o| &**o) {
                Some(Object::Schema(s)) => Some(quote(&s.name)),
                _ => None,
            },
        }
    }
}

/// The name of a role in an access list: quoted where it has other characters than letters, digits and `_`, whatever word it is.
pub fn acl_name(name: &str) -> String {
    let plain = name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_');
    if plain { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

/// Checks are no objects: the number of one is made of its table's.
pub fn check_oid(r: &Relation, place: usize) -> Oid {
    check_oid_of(r.oid, place)
}

/// The same for what may also be a domain.
pub fn check_oid_of(owner: Oid, place: usize) -> Oid {
    owner.wrapping_mul(1_600).wrapping_add(1_000_000 + place as u32)
}

/// Splits `a."B c".d` at its dots, folding what is not quoted.
pub fn split_name(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut quoted = false;
    let mut left = text.trim().chars().peekable();
    while let Some(c) = left.next() {
        let last = parts.len() - 1;
        match c {
            '"' if quoted && left.next_if_eq(&'"').is_some() => parts[last].push('"'),
            '"' => quoted = !quoted,
            '.' if !quoted => parts.push(String::new()),
            c => parts[last].push(if quoted { c } else { c.to_ascii_lowercase() }),
        }
    }
    parts
}

/// The schema of an object that lives in one.
pub fn schema_of(object: &Object) -> Option<Oid> {
    match object {
        Object::Relation(o) => Some(o.schema),
        Object::Index(o) => Some(o.schema),
        Object::Sequence(o) => Some(o.schema),
        Object::Type(o) => Some(o.schema),
        Object::Routine(o) => Some(o.schema),
        Object::Operator(o) => Some(o.schema),
        Object::Database(_) | Object::Schema(_) | Object::Role(_) | Object::Comment(_) => None,
    }
}

/// The search path without the implicit schema of temporary objects at its beginning.
pub fn own_path(path: &[String]) -> impl Iterator<Item = &String> {
    path.iter().filter(|name| !name.starts_with(TEMP_PREFIX))
}

/// The relation, index or sequence that a name means.
pub fn find<'c>(
    catalog: &'c Catalog,
    database: Oid,
    path: &[String],
    schema: Option<&str>,
    name: &str,
) -> Option<Found<'c>> {
    match schema {
        Some(s) => {
            let view = views::find(s, name);
            if let Some(view) = view.filter(|view| !mysql::is_one(view) || !mysql::is_schema(s)) {
                return Some(Found::System(view));
            }
            // A schema of the user's own with the name of one of MySQL's comes first.
            let own = catalog.schema(database, s).and_then(|schema| catalog.in_schema(schema.oid, name));
            own.map(Found::Object).or(view.map(Found::System))
        }
        None => {
            let implicit = path.first().filter(|first| first.starts_with(TEMP_PREFIX));
            if let Some(found) = implicit.and_then(|own| catalog.in_schema(catalog.schema(database, own)?.oid, name)) {
                return Some(Found::Object(found));
            }
            if let Some(view) = views::find("pg_catalog", name) {
                return Some(Found::System(view));
            }
            path.iter().find_map(|s| {
                let own = catalog.schema(database, s).and_then(|s| catalog.in_schema(s.oid, name));
                let of_mysql = || if mysql::is_schema(s) { mysql::find(s, name) } else { None };
                own.map(Found::Object).or_else(|| of_mysql().map(Found::System))
            })
        }
    }
}

impl<'a> PlanEnv<'a> {
    /// The relation, index or sequence that a name means.
    ///
    /// # Errors
    /// 42P01; 0A000 for another database.
    pub fn lookup(&self, name: &QualName) -> Result<Found<'a>> {
        if name.parts.len() == 3 {
            let known = self.catalog.database(&name.parts[0]).is_some_and(|d| d.oid == self.database);
            if !known {
                let message = format!("cross-database references are not implemented: \"{}\"", name.dotted());
                return Err(SqlError::new(code::FEATURE_NOT_SUPPORTED, message).at(name.pos));
            }
        }
        if let Some(schema) = name.schema().and_then(|schema| self.catalog.schema(self.database, schema))
            && self.judge.role().is_some()
            && !self.judge.may_with_schema(schema, 'U')
        {
            return Err(denied("schema", &schema.name).at(name.pos));
        }
        find(self.catalog, self.database, self.path, name.schema(), name.name()).ok_or_else(|| {
            let message = format!("relation \"{}\" does not exist", name.dotted());
            SqlError::new(code::UNDEFINED_TABLE, message).at(name.pos)
        })
    }

    /// The relation of the system that a name means.
    ///
    /// # Errors
    /// 42P01.
    pub fn lookup_system(&self, name: &QualName) -> Result<Found<'a>> {
        let found = views::find(name.schema().unwrap_or("pg_catalog"), name.name());
        found.map(Found::System).ok_or_else(|| {
            let message = format!("relation \"{}\" does not exist", name.dotted());
            SqlError::new(code::UNDEFINED_TABLE, message).at(name.pos)
        })
    }

    /// A table, view or materialized view by name.
    ///
    /// # Errors
    /// 42P01; 42809 for what is no relation.
    pub fn relation(&self, name: &QualName) -> Result<&'a Relation> {
        match self.lookup(name)? {
            Found::Object(o) => match &**o {
                Object::Relation(r) => Ok(r),
                other => {
                    let message = format!("\"{}\" is not a table", other.name());
                    Err(SqlError::new(code::WRONG_OBJECT_TYPE, message))
                }
            },
            Found::System(v) => {
                let message = format!("permission denied: \"{}\" is a system catalog", v.name);
                Err(SqlError::new("42501", message))
            }
        }
    }

    /// An index by name.
    ///
    /// # Errors
    /// 42704, 42809.
    pub fn index(&self, name: &QualName) -> Result<&'a Index> {
        match self.lookup(name) {
            Ok(Found::Object(o)) => match &**o {
                Object::Index(i) => Ok(i),
                other => {
                    let message = format!("\"{}\" is not an index", other.name());
                    Err(SqlError::new(code::WRONG_OBJECT_TYPE, message))
                }
            },
            _ => {
                let message = format!("index \"{}\" does not exist", name.name());
                Err(SqlError::new(code::UNDEFINED_OBJECT, message))
            }
        }
    }

    /// The schema in which a new object of this name goes, if the session's role may make one there.
    ///
    /// # Errors
    /// 3F000, 42501.
    pub fn schema_for(&self, name: &QualName) -> Result<Oid> {
        let missing = |s: &str| SqlError::new(code::INVALID_SCHEMA_NAME, format!("schema \"{s}\" does not exist"));
        match name.schema() {
            Some(s @ ("pg_catalog" | "information_schema")) => {
                let message = format!("permission denied to create \"{s}.{}\"", name.name());
                Err(SqlError::new("42501", message).detail("System catalog modifications are currently disallowed."))
            }
            Some(s) => self.catalog.schema(self.database, s).ok_or_else(|| missing(s)),
            None => own_path(self.path).find_map(|s| self.catalog.schema(self.database, s)).ok_or_else(|| {
                SqlError::new(code::INVALID_SCHEMA_NAME, "no schema has been selected to create in").at(name.pos)
            }),
        }
        .and_then(|schema| {
            let allowed = self.judge.may_with_schema(schema, 'C');
            if allowed { Ok(schema.oid) } else { Err(denied("schema", &schema.name).at(name.pos)) }
        })
    }
}

/// The types of a relation's columns, dropped ones included.
pub fn column_types(relation: &Relation) -> Arc<[SqlType]> {
    relation.columns.iter().map(|c| SqlType { oid: c.type_oid, modifier: c.type_mod }).collect()
}
