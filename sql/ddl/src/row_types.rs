//! Columns and attributes of the types of tables' rows: what such a type keeps its table from, and what goes with the table.
//!
//! A stored row has the columns that the table had when the row was written. A column that came later reads as null of it, as in
//! PostgreSQL; any other change of the columns would need the rows to be written anew, and is refused while a column has the type.
//!
//! # Invariants
//! - RWT-1: a transaction that makes an object of a row type holds `AccessShare` on the table from before it looks at the table to its end;
//!   so the table is not dropped or altered meanwhile (SES-8 says it of other types).
//! - RWT-2: when a table gets a column while others have the type of its rows, no statement writes into those: one that does would know the
//!   row without the column, and lose it of the rows that it writes back.

use super::Ddl;
use super::cascade::{needed, shown, shown_attribute, shown_column, shown_type};
use super::composite::made_of_types;
use crate::error::{Result, SqlError, code};
use crate::types::format_type;
use clearway_engine::catalog::types::{row_array, row_type, table_of_row_type};
use clearway_engine::catalog::{Catalog, Column, Object, Oid, Relation, RelationKind, TypeBody};
use clearway_txn::lockmgr::{IfTaken, LockMode};
use std::collections::BTreeSet;

/// The numbers of the types of a relation's rows, and of arrays of them.
fn own_types(r: &Relation) -> Vec<Oid> {
    row_type(r.oid).into_iter().chain(row_array(r.oid)).collect()
}

/// The stored columns whose values are made of rows of a relation: the table and the column's place.
fn stored_users<'c>(catalog: &'c Catalog, r: &Relation) -> Vec<(&'c Relation, usize)> {
    let made = made_of_types(catalog, &own_types(r));
    let relations = catalog.objects().filter_map(|o| match &**o {
        Object::Relation(user) if user.kind != RelationKind::View => Some(user),
        _ => None,
    });
    let mut users: Vec<(&Relation, usize)> = relations
        .flat_map(|user| user.columns.iter().enumerate().map(move |(at, c)| (user, at, c)))
        .filter(|(_, _, c)| !c.is_dropped() && made.contains(&c.type_oid))
        .map(|(user, at, _)| (user, at))
        .collect();
    // As PostgreSQL finds them: arrays of the rows first.
    let array = row_array(r.oid);
    users.sort_by_key(|(user, at)| Some(user.columns[*at].type_oid) != array);
    users
}

/// The types that an object has columns or attributes of, or is over.
fn types_in(object: &Object) -> Vec<Oid> {
    match object {
        Object::Relation(r) => r.columns.iter().filter(|c| !c.is_dropped()).map(|c| c.type_oid).collect(),
        Object::Type(t) => match &t.body {
            TypeBody::Enum(_) => Vec::new(),
            TypeBody::Domain(domain) => vec![domain.below()],
            TypeBody::Composite(c) => c.attributes.iter().map(|a| a.type_oid).collect(),
        },
        _ => Vec::new(),
    }
}

impl Ddl<'_> {
    /// RWT-1
    pub(super) async fn lock_row_types(&self, object: &Object) -> Result<()> {
        let tables = |object: &Object| -> BTreeSet<Oid> {
            types_in(object).into_iter().filter_map(|ty| table_of_row_type(ty).map(|(table, _)| table)).collect()
        };
        let mut wanted = tables(object);
        if wanted.is_empty() {
            return Ok(());
        }
        if let Some(before) = self.catalog().get(object.oid()) {
            tables(before).iter().for_each(|table| {
                wanted.remove(table);
            });
        }
        for table in wanted {
            self.core.lock_relation(table, LockMode::AccessShare, IfTaken::Wait).await?;
            let catalog = self.catalog();
            let Some(found) = catalog.get(table) else {
                return Err(SqlError::new(code::UNDEFINED_OBJECT, "the table of a row type has been dropped"));
            };
            if catalog.is_temporary(found) && !catalog.is_temporary(object) {
                let what = format!(
                    "the type of the rows of the temporary table \"{}\" in what is not temporary",
                    found.name()
                );
                return Err(SqlError::unsupported(what));
            }
        }
        Ok(())
    }

    /// Refuses a change of a relation's columns while a column has the type of its rows.
    ///
    /// # Errors
    /// 0A000, in PostgreSQL's words.
    pub(super) fn rows_may_change(&self, r: &Relation) -> Result<()> {
        match stored_users(&self.catalog(), r).first() {
            None => Ok(()),
            Some((user, at)) => {
                let (kind, column) = (r.kind.name(), &user.columns[*at].name);
                let message = format!(
                    "cannot alter {kind} \"{}\" because column \"{}.{column}\" uses its row type",
                    r.name, user.name
                );
                Err(SqlError::new(code::FEATURE_NOT_SUPPORTED, message))
            }
        }
    }

    /// A relation gets a column of this type: the type is not made of the relation's rows, and no statement writes such rows meanwhile (RWT-2).
    ///
    /// # Errors
    /// 42P16.
    pub(super) async fn rows_get_column(&self, r: &Relation, ty: Oid) -> Result<()> {
        self.row_may_have(r, ty)?;
        let users: BTreeSet<Oid> = stored_users(&self.catalog(), r).iter().map(|(user, _)| user.oid).collect();
        for user in users {
            self.lock(user, LockMode::ShareRowExclusive).await?;
        }
        Ok(())
    }

    /// Refuses to make a row a part of itself.
    ///
    /// # Errors
    /// 42P16.
    pub(super) fn row_may_have(&self, r: &Relation, ty: Oid) -> Result<()> {
        if !made_of_types(&self.catalog(), &own_types(r)).contains(&ty) {
            return Ok(());
        }
        let message = format!("composite type {} cannot be made a member of itself", r.name);
        Err(SqlError::new("42P16", message))
    }

    /// A relation goes: the columns of the type of its rows go with it, or keep it.
    ///
    /// # Errors
    /// 2BP01; 0A000 where CASCADE would have to drop a type.
    pub(super) async fn drop_row_users(&self, r: &Relation, cascade: bool, together: &[Oid]) -> Result<()> {
        let catalog = self.catalog();
        let own = own_types(r);
        let mut columns = Vec::new();
        for object in catalog.objects() {
            let Object::Relation(user) = &**object else { continue };
            if user.kind != RelationKind::Table || together.contains(&user.oid) {
                continue;
            }
            let have = |(_, c): &(usize, &Column)| !c.is_dropped() && own.contains(&c.type_oid);
            columns.extend(user.columns.iter().enumerate().filter(have).map(|(at, c)| {
                ((user.oid, at), c.name.clone(), shown_column(&c.name, user), format_type(c.type_oid.into()))
            }));
        }
        // As in PostgreSQL the youngest is named first.
        columns.sort_by_key(|(place, ..)| std::cmp::Reverse(*place));
        let mut lines: Vec<String> =
            columns.iter().map(|(_, _, shown, ty)| format!("{shown} depends on type {ty}")).collect();
        for user in catalog.types().filter(|t| !together.contains(&t.oid)) {
            let used = |ty: &Oid| own.contains(ty);
            let (what, used) = match &user.body {
                TypeBody::Composite(c) => match c.attributes.iter().find(|a| used(&a.type_oid)) {
                    Some(a) => (shown_attribute(&a.name, user), a.type_oid),
                    None => continue,
                },
                TypeBody::Domain(d) if used(&d.below()) => (shown_type(user), d.below()),
                _ => continue,
            };
            if cascade {
                return Err(SqlError::unsupported("DROP ... CASCADE while types are made of the rows that go"));
            }
            lines.push(format!("{what} depends on type {}", format_type(used.into())));
        }
        if !lines.is_empty() && !cascade {
            return Err(needed(&shown(r), lines.join("\n")));
        }
        for ((table, _), column, shown, _) in columns {
            self.tell_cascade(&[shown]);
            self.lock(table, LockMode::AccessExclusive).await?;
            if let Some(user) = self.catalog().relation(table).cloned() {
                Box::pin(self.drop_column(user, &column, true, true)).await?;
            }
        }
        Ok(())
    }
}
