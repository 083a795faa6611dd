//! The operator classes of btree that an index may name. All classes of a type have one order here, that of C.UTF-8, so a class is kept for
//! the catalogs alone.

use super::names::{CatalogNames, quote};
use clearway_base::memory;
use clearway_syntax::ast::QualName;
use clearway_syntax::error::{Result, SqlError, code};
use clearway_values::builtin;
use clearway_values::types::{Oid, SqlType, format_type, oid, range, user};
use std::collections::HashMap;
use std::sync::LazyLock;

/// The access method btree.
const BTREE: &str = "403";

struct Class {
    oid: Oid,
    name: &'static str,
    /// opcintype.
    of: Oid,
    is_default: bool,
    /// The extension that brings it.
    extension: Option<&'static str>,
}

static CLASSES: LazyLock<Vec<Class>> = LazyLock::new(|| {
    let lines = builtin::rows_of("pg_opclass").unwrap_or("").lines().map(|line| (None, line));
    let own = builtin::extension_rows().filter(|(_, catalog, _)| *catalog == "pg_opclass");
    let own = own.map(|(extension, _, row)| (Some(extension), row));
    let class = |(extension, line): (Option<&'static str>, &'static str)| {
        let f: Vec<&'static str> = line.split('\t').collect();
        let (oid, of) = (f.first()?.parse().ok()?, f.get(6)?.parse().ok()?);
        let class = Class { oid, name: f.get(2)?, of, is_default: f.get(7) == Some(&"t"), extension };
        (f.get(1) == Some(&BTREE)).then_some(class)
    };
    memory::uncharged(|| lines.chain(own).filter_map(class).collect())
});

/// The type as whose values those of a type are ordered: varchar as text; arrays, enums, ranges and rows as any of their
/// kind.
fn ordered_as(ty: Oid) -> Oid {
    match user::base(SqlType::new(ty)).oid {
        oid::VARCHAR => oid::TEXT,
        ty if CLASSES.iter().any(|class| class.is_default && class.of == ty) => ty,
        ty if clearway_values::types::element_of(ty).is_some() => oid::ANYARRAY,
        ty if user::is_enum(ty) => oid::ANYENUM,
        ty if range::of_range(ty).is_some() => oid::ANYRANGE,
        ty if range::of_multirange(ty).is_some() => oid::ANYMULTIRANGE,
        ty if user::is_composite(ty) => oid::RECORD,
        ty => ty,
    }
}

/// The operator class of an index over a column of a type, where none is named.
pub fn of_type(ty: Oid) -> Oid {
    static DEFAULTS: LazyLock<HashMap<Oid, Oid>> = LazyLock::new(|| {
        memory::uncharged(|| {
            CLASSES.iter().filter(|class| class.is_default).map(|class| (class.of, class.oid)).collect()
        })
    });
    DEFAULTS.get(&ordered_as(ty)).copied().unwrap_or(0)
}

/// The operator class that CREATE INDEX names for a key of a type; none: it is the one that the type has anyway.
///
/// # Errors
/// 42704 for a class that btree does not have, 42804 for one of another type.
pub fn named(name: &QualName, ty: Oid) -> Result<Option<Oid>> {
    let mut found = CLASSES.iter().filter(|class| class.name == name.name()).peekable();
    if found.peek().is_none() {
        let message = format!("operator class \"{}\" does not exist for access method \"btree\"", name.name());
        return Err(SqlError::new(code::UNDEFINED_OBJECT, message));
    }
    let accepts = |class: &&Class| class.of == ordered_as(ty) || class.of == user::base(SqlType::new(ty)).oid;
    let Some(class) = found.find(accepts) else {
        let ty = format_type(SqlType::new(ty));
        let message = format!("operator class \"{}\" does not accept data type {ty}", name.name());
        return Err(SqlError::new("42804", message));
    };
    Ok((class.oid != of_type(ty)).then_some(class.oid))
}

/// A class's name, with its schema where the path does not lead to it.
pub fn name(names: &CatalogNames, class: Oid) -> String {
    let Some(class) = CLASSES.iter().find(|known| known.oid == class) else { return class.to_string() };
    let catalog = &names.catalog;
    let mut made = super::extensions::of(catalog, names.database).iter();
    let schema = made.find(|made| Some(&*made.name) == class.extension).map(|made| made.schema);
    match schema.and_then(|schema| super::types::schema_name(catalog, schema)) {
        Some(schema) if !names.path.iter().any(|s| **s == *schema) => format!("{}.{}", quote(&schema), class.name),
        _ => class.name.to_owned(),
    }
}
