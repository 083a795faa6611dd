//! The catalogs whose rows INSERT, UPDATE and DELETE change, as superusers may do in PostgreSQL.
//!
//! # Structure
//! Each such catalog is a [`Changeable`]: it says which of its columns may be changed and what a change of a row does to the objects of the
//! catalog. The planner asks it for columns, the executor for the [`Edit`]s. All other catalogs are changed by DDL alone; `refusal` names
//! the statements.
//! ```text
//! catalog         the trait
//! descriptions    pg_description, pg_shdescription      roles       pg_authid
//! databases       pg_database                           of_roles    pg_db_role_setting
//! ```
//!
//! # Invariants
//! - CHG-1: a change leaves the objects as the DDL statement for the same purpose could leave them. So no invariant of the catalog depends on
//!   what is written into its rows.
//! - CHG-2: a row belongs to one object at most, which keeps it; a statement that changes the row locks the name of that object first, and reads it
//!   afterwards.

mod catalog;
mod databases;
mod descriptions;
mod of_roles;
mod roles;

use super::views::SystemView;
use crate::convert::storage_of;
use clearway_engine::catalog::{Column, Relation};
use clearway_syntax::error::SqlError;
use clearway_values::types::Oid;

pub use catalog::{Changeable, Edit, Here};

static ALL: [&dyn Changeable; 5] = [
    &descriptions::Descriptions,
    &descriptions::SharedDescriptions,
    &roles::Roles,
    &databases::Databases,
    &of_roles::RoleSettings,
];

/// How a view is changed; none: by DDL alone, or not at all.
pub fn find(view: &SystemView) -> Option<&'static dyn Changeable> {
    ALL.into_iter().find(|c| view.schema == "pg_catalog" && c.name() == view.name)
}

/// A relation of the system as a table, with the columns that may be null.
pub fn relation(view: &SystemView, nullable: &[&str]) -> Relation {
    let column = |(name, ty): &(&str, Oid)| Column {
        name: (*name).to_owned(),
        storage: storage_of(*ty).map_or(0, |storage| storage.code()),
        type_oid: *ty,
        type_mod: -1,
        not_null: !nullable.contains(name),
        ..Column::default()
    };
    let columns = view.columns.iter().map(column).collect();
    Relation::table(view.oid, 0, super::views::PG_CATALOG, view.name, columns, 0)
}

/// The error for a change of a catalog, or of one of its columns, that is made by DDL alone.
pub fn refusal(verb: &str, column: Option<&str>, catalog: &str) -> SqlError {
    let what = match (verb, column) {
        ("INSERT" | "MERGE", _) => format!("{verb} into"),
        ("DELETE", _) => format!("{verb} from"),
        (_, Some(column)) => format!("{verb} of the column \"{column}\" of"),
        (_, None) => format!("{verb} of"),
    };
    let error = SqlError::unsupported(format!("{what} the catalog \"{catalog}\""));
    match statements(catalog) {
        "" => error,
        statements => error.hint(format!("Use {statements}.")),
    }
}

/// The statements that change what a catalog shows; empty: none does.
fn statements(catalog: &str) -> &'static str {
    match catalog {
        "pg_class" | "pg_attribute" | "pg_attrdef" => "CREATE TABLE, ALTER TABLE or DROP TABLE",
        "pg_constraint" => "ALTER TABLE",
        "pg_index" => "CREATE INDEX, ALTER INDEX, REINDEX or DROP INDEX",
        "pg_sequence" => "CREATE SEQUENCE, ALTER SEQUENCE or DROP SEQUENCE",
        "pg_type" | "pg_enum" | "pg_range" => "CREATE TYPE, ALTER TYPE or DROP TYPE",
        "pg_proc" => "CREATE FUNCTION, ALTER FUNCTION or DROP FUNCTION",
        "pg_namespace" => "CREATE SCHEMA, ALTER SCHEMA or DROP SCHEMA",
        "pg_rewrite" => "CREATE VIEW, CREATE RULE or DROP RULE",
        "pg_policy" => "CREATE POLICY, ALTER POLICY or DROP POLICY",
        "pg_authid" => "CREATE ROLE, ALTER ROLE or DROP ROLE",
        "pg_auth_members" => "GRANT or REVOKE",
        "pg_database" => "CREATE DATABASE, ALTER DATABASE or DROP DATABASE",
        "pg_db_role_setting" => "ALTER ROLE SET or ALTER DATABASE SET",
        "pg_default_acl" => "ALTER DEFAULT PRIVILEGES",
        "pg_extension" => "CREATE EXTENSION or DROP EXTENSION",
        "pg_description" | "pg_shdescription" => "COMMENT",
        "pg_statistic" => "ANALYZE",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::views;

    #[test]
    fn each_changeable_catalog_is_declared_with_storable_columns() {
        for changeable in ALL {
            let name = changeable.name();
            let view = views::find("pg_catalog", name).unwrap_or_else(|| panic!("{name}"));
            assert!(view.is_table(), "{name}");
            for column in changeable.columns().iter().chain(changeable.nullable()) {
                assert!(view.columns.iter().any(|c| c.0 == *column), "{name}.{column}");
            }
            for (column, ty) in view.columns {
                assert!(storage_of(*ty).is_some(), "{name}.{column}");
            }
            assert!(changeable.key().1.iter().all(|at| *at < view.columns.len()), "{name}");
        }
    }

    #[test]
    fn the_statements_are_those_of_catalogs() {
        for view in views::all().filter(|view| !view.is_table()) {
            assert_eq!(statements(view.name), "", "{}", view.name);
        }
    }
}
