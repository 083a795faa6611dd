//! Adds foreign keys to tables, and checks the existing rows against them.

use super::{Ddl, free_name};
use crate::context::privileges::denied;
use crate::error::{Result, SqlError, code};
use crate::planner::dml::column_of;
use crate::types::{Datum, Oid, cast, category, format_type, oid, user};
use clearway_engine::catalog::{Column, ForeignKey, Index, Object, Relation};
use clearway_txn::lockmgr::LockMode;
use std::sync::Arc;

use super::table::{Foreign, action};

/// Whether a column can refer to another one: they have one type, or one family of types whose values are stored and compared alike.
fn comparable(constraint: &str, column: &Column, referenced: &Column) -> Result<()> {
    let base = |ty: Oid| user::base(ty.into()).oid;
    let (a, b) = (base(column.type_oid), base(referenced.type_oid));
    let both = |family: &[Oid]| family.contains(&a) && family.contains(&b);
    if a == b || both(&[oid::INT2, oid::INT4, oid::INT8]) || both(&[oid::TEXT, oid::VARCHAR]) {
        return Ok(());
    }
    let same_kind = category(a) == category(b) && category(a) != b'U';
    if same_kind && cast::can(a, b, cast::Context::Implicit) {
        return Err(SqlError::unsupported("a foreign key between columns of these types"));
    }
    let shown = |ty: Oid| format_type(ty.into());
    let (names, types) = ((&column.name, &referenced.name), (shown(column.type_oid), shown(referenced.type_oid)));
    let message = format!("foreign key constraint \"{constraint}\" cannot be implemented");
    let detail = format!(
        "Key columns \"{}\" and \"{}\" are of incompatible types: {} and {}.",
        names.0, names.1, types.0, types.1
    );
    Err(SqlError::new("42804", message).detail(detail))
}

impl Ddl<'_> {
    /// The table that a foreign key refers to, locked, if the session's role may refer to it.
    pub(super) async fn referred(&self, table: u32, f: &Foreign) -> Result<u32> {
        let name = &f.references.table;
        if crate::planner::environment::relation_oid(self.core, name)?.0 == table {
            self.may_refer(table, f)?;
            return Ok(table);
        }
        let judge = |_: &Arc<_>, parent| self.may_refer(parent, f);
        Ok(self.lock_named(name, LockMode::ShareRowExclusive, judge).await?.0)
    }

    /// Whether the session's role may refer to a table: by the right for the table or for each of the columns.
    pub(super) fn may_refer(&self, parent: u32, f: &Foreign) -> Result<()> {
        let catalog = self.catalog();
        let Some(relation) = catalog.relation(parent) else { return Ok(()) };
        let judge = self.judge(&catalog);
        let columns: Vec<usize> = if f.references.columns.is_empty() {
            relation.key.clone()
        } else {
            f.references.columns.iter().filter_map(|name| column_of(relation, name, 0).ok()).collect()
        };
        let by_column = || !columns.is_empty() && columns.iter().all(|c| judge.may_with_column(relation, *c, 'x'));
        let by_table = catalog.get(parent).is_some_and(|object| judge.may_with(object, 'x'));
        if by_table || by_column() { Ok(()) } else { Err(denied(relation.kind.name(), &relation.name)) }
    }

    /// Adds a foreign key to a table; `check` looks at the rows that are there.
    pub(super) async fn add_foreign(&self, table: u32, f: Foreign, check: bool) -> Result<()> {
        let parent = self.referred(table, &f).await?;
        let catalog = self.catalog();
        let (Some(child), Some(parent)) = (catalog.relation(table), catalog.relation(parent)) else {
            return Err(SqlError::internal("a table of a foreign key has gone"));
        };
        self.same_persistence(child, parent)?;
        let columns = columns_named(child, &f.columns)?;
        let referenced = if f.references.columns.is_empty() {
            parent.key.clone()
        } else {
            columns_named(parent, &f.references.columns)?
        };
        if referenced.is_empty() {
            let message = format!("there is no primary key for referenced table \"{}\"", parent.name);
            return Err(SqlError::new(code::UNDEFINED_OBJECT, message));
        }
        if referenced.len() != columns.len() {
            let message = "number of referencing and referenced columns for foreign key disagree";
            return Err(SqlError::new("42830", message));
        }
        let fits = |i: &Index| {
            !i.is_computed()
                && i.columns.len() == referenced.len()
                && i.columns.iter().all(|c| referenced.contains(&c.column))
        };
        let unique = catalog.indexes(parent.oid).any(|i| i.unique && !i.deferrable && fits(i));
        if !unique && catalog.indexes(parent.oid).any(|i| i.deferrable && fits(i)) {
            let message = format!("cannot use a deferrable unique constraint for referenced table \"{}\"", parent.name);
            return Err(SqlError::new("55000", message));
        }
        if !unique {
            let message =
                format!("there is no unique constraint matching given keys for referenced table \"{}\"", parent.name);
            return Err(SqlError::new("42830", message));
        }
        let mut parts = vec![child.name.as_str()];
        parts.extend(columns.iter().map(|c| child.columns[*c].name.as_str()));
        let taken: Vec<String> = child.foreign_keys.iter().map(|k| k.name.clone()).collect();
        let name = f.name.unwrap_or_else(|| free_name(&catalog, child.schema, &taken, &parts, "fkey"));
        for (c, p) in columns.iter().zip(&referenced) {
            comparable(&name, &child.columns[*c], &parent.columns[*p])?;
        }
        let delete_columns = columns_of_key(child, &columns, &f.references.delete_columns)?;
        let mut changed = child.clone();
        changed.foreign_keys.push(ForeignKey {
            oid: self.new_oid(),
            name: name.clone(),
            columns,
            references: parent.oid,
            referenced,
            on_delete: action(f.references.on_delete),
            delete_columns,
            on_update: action(f.references.on_update),
            validated: !f.timing.not_valid,
            deferrable: f.timing.deferrable || f.timing.initially_deferred,
            deferred: f.timing.initially_deferred,
            full: f.references.full,
        });
        let key = changed.foreign_keys.last().cloned();
        let parent = parent.clone();
        self.put(Object::Relation(changed.clone())).await?;
        if check
            && !f.timing.not_valid
            && let Some(key) = key
        {
            self.validate_foreign(&changed, &parent, &key).await?;
        }
        Ok(())
    }

    /// Looks for rows that refer to nothing.
    pub(super) async fn validate_foreign(&self, child: &Relation, parent: &Relation, key: &ForeignKey) -> Result<()> {
        use crate::context::names::quote;
        let on: Vec<String> = key
            .columns
            .iter()
            .zip(&key.referenced)
            .map(|(c, p)| format!("c.{} = p.{}", quote(&child.columns[*c].name), quote(&parent.columns[*p].name)))
            .collect();
        let some: Vec<String> =
            key.columns.iter().map(|c| format!("c.{} IS NOT NULL", quote(&child.columns[*c].name))).collect();
        let values: Vec<String> = key.columns.iter().map(|c| format!("c.{}", quote(&child.columns[*c].name))).collect();
        let missing = quote(&parent.columns[key.referenced[0]].name);
        let sql = format!(
            "SELECT {}, concat_ws(', ', {}) FROM {} c LEFT JOIN {} p ON {} WHERE ({}) AND p.{missing} IS NULL LIMIT 1",
            some.join(" AND "),
            values.join(", "),
            self.full_name(child),
            self.full_name(parent),
            on.join(" AND "),
            some.join(if key.full { " OR " } else { " AND " })
        );
        if let Some(row) = self.query_rows(&sql).await?.first() {
            let message = format!(
                "insert or update on table \"{}\" violates foreign key constraint \"{}\"",
                child.name, key.name
            );
            let error = SqlError::new("23503", message);
            let whole = row.first().and_then(Datum::as_bool) == Some(true);
            let error = error.detail(match whole {
                true => self.not_present(child, parent, key, row.get(1)),
                false => crate::exec::foreign::MIXED.to_owned(),
            });
            let error = crate::context::errors::about(error, &self.catalog(), child.oid);
            return Err(error.constraint(key.name.as_str()));
        }
        Ok(())
    }

    /// Why a row refers to nothing; its key is told as far as the role may read it.
    fn not_present(&self, child: &Relation, parent: &Relation, key: &ForeignKey, values: Option<&Datum>) -> String {
        let catalog = self.catalog();
        let judge = self.judge(&catalog);
        let may = key.columns.iter().all(|c| judge.may_with_column(child, *c, 'r'));
        if !may || judge.is_held_by_policies(child) {
            return format!("Key is not present in table \"{}\".", parent.name);
        }
        let names: Vec<&str> = key.columns.iter().map(|c| child.columns[*c].name.as_str()).collect();
        let values = values.and_then(Datum::as_str).unwrap_or("");
        format!("Key ({})=({values}) is not present in table \"{}\".", names.join(", "), parent.name)
    }

    /// A relation's name with its schema, quoted.
    pub(super) fn full_name(&self, r: &Relation) -> String {
        use crate::context::names::quote;
        match self.catalog().get(r.schema).map(|o| o.name().to_owned()) {
            Some(schema) => format!("{}.{}", quote(&schema), quote(&r.name)),
            None => quote(&r.name),
        }
    }

    /// Runs a query of our own; its rows.
    pub(super) async fn query_rows(&self, sql: &str) -> Result<Vec<crate::exec::Row>> {
        self.server.rows(self.core, sql).await
    }
}

/// The places of a foreign key's columns.
fn columns_named(relation: &Relation, names: &[String]) -> Result<Vec<usize>> {
    let place = |name: &String| {
        column_of(relation, name, 0).map_err(|_| {
            let message = format!("column \"{name}\" referenced in foreign key constraint does not exist");
            SqlError::new(code::UNDEFINED_COLUMN, message)
        })
    };
    names.iter().map(place).collect()
}

/// The columns of a foreign key that ON DELETE sets.
fn columns_of_key(child: &Relation, key: &[usize], names: &[String]) -> Result<Vec<usize>> {
    let columns = columns_named(child, names)?;
    match columns.iter().find(|c| !key.contains(c)) {
        None => Ok(columns),
        Some(other) => {
            let shown = &child.columns[*other].name;
            let message = format!("column \"{shown}\" referenced in ON DELETE SET action must be part of foreign key");
            Err(SqlError::new(code::INVALID_COLUMN_REFERENCE, message))
        }
    }
}
