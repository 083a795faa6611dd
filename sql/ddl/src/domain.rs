//! ALTER DOMAIN: constraints that come while columns have the domain, and the comments on constraints.

use super::Ddl;
use super::composite::made_of;
use super::type_create::add_check;
use crate::context::convert::read_row;
use crate::context::errors::{about, from_engine};
use crate::context::names::column_types;
use crate::error::{Result, SqlError, code};
use crate::exec::Row;
use crate::exec::anew::{RUN_ROWS, some_rows};
use crate::planner::environment::with_env;
use crate::syntax::ast::QualName;
use crate::syntax::user_type::TypeChange;
use crate::types::SqlType;
use crate::types::user::{self, DomainCheck};
use clearway_base::breath;
use clearway_engine::catalog::{Catalog, Comment, Domain, Object, Relation, RelationKind, TypeBody, TypeObject};
use clearway_engine::table::shape::TableShape;
use clearway_txn::lockmgr::{IfTaken, LockMode};
use std::collections::HashSet;
use std::sync::Arc;

/// What the values of a domain are asked; none: not to be NULL.
type Asked = Option<Arc<dyn DomainCheck>>;

/// No constraint of a domain has this name, in the words of ALTER DOMAIN.
fn no_constraint(name: &str, domain: &str) -> SqlError {
    SqlError::new(code::UNDEFINED_OBJECT, format!("constraint \"{name}\" of domain \"{domain}\" does not exist"))
}

/// The same in the words of RENAME and COMMENT.
fn unknown(name: &str, domain: &str) -> SqlError {
    SqlError::new(code::UNDEFINED_OBJECT, format!("constraint \"{name}\" for domain {domain} does not exist"))
}

/// RENAME CONSTRAINT.
fn rename_check(d: &mut Domain, domain: &str, from: &str, to: &str) -> Result<()> {
    let at = d.checks.iter().position(|c| c.name == from).ok_or_else(|| unknown(from, domain))?;
    if d.checks.iter().any(|c| c.name == to) {
        return Err(SqlError::new("42710", format!("constraint \"{to}\" for domain {domain} already exists")));
    }
    to.clone_into(&mut d.checks[at].name);
    Ok(())
}

impl Ddl<'_> {
    /// COMMENT ON TYPE and COMMENT ON DOMAIN.
    pub(super) async fn comment_on_type(
        &self,
        name: &QualName,
        domain: bool,
        text: Option<&str>,
    ) -> Result<&'static str> {
        let catalog = self.catalog();
        with_env(self.core, &catalog, |_| ());
        let ty = self.own_type(&catalog, name, domain)?;
        self.put_comment(ty.oid, String::new(), text).await?;
        Ok("COMMENT")
    }

    /// COMMENT ON CONSTRAINT ... ON DOMAIN.
    pub(super) async fn comment_on_check(
        &self,
        domain: &QualName,
        name: &str,
        text: Option<&str>,
    ) -> Result<&'static str> {
        let catalog = self.catalog();
        with_env(self.core, &catalog, |_| ());
        let ty = self.own_type(&catalog, domain, true)?;
        if !matches!(&ty.body, TypeBody::Domain(d) if d.checks.iter().any(|c| c.name == name)) {
            return Err(unknown(name, &ty.name));
        }
        self.put_comment(ty.oid, name.to_owned(), text).await?;
        Ok("COMMENT")
    }

    /// Changes what a domain says; false: there is nothing to change.
    pub(super) fn change_domain(&self, ty: &mut TypeObject, change: &TypeChange) -> Result<bool> {
        let own = ty.name.clone();
        let TypeBody::Domain(d) = &mut ty.body else { return Ok(true) };
        match change {
            TypeChange::Default(text) => {
                if let Some(text) = text {
                    self.check_domain_default(text, SqlType { oid: d.base, modifier: d.base_mod }, &own)?;
                }
                d.default.clone_from(text);
            }
            TypeChange::NotNull(on) => d.not_null = *on,
            TypeChange::AddCheck { name, text, valid } => add_check(d, &own, name.as_ref(), (text, *valid))?,
            TypeChange::DropCheck { name, if_exists } => {
                let before = d.checks.len();
                d.checks.retain(|c| c.name != *name);
                if d.checks.len() == before {
                    let missing = no_constraint(name, &own);
                    if !if_exists {
                        return Err(missing);
                    }
                    self.core.notice("NOTICE", SqlError::new("00000", format!("{}, skipping", missing.message())));
                }
            }
            TypeChange::ValidateCheck(name) => {
                let check = d.checks.iter_mut().find(|c| c.name == *name).ok_or_else(|| no_constraint(name, &own))?;
                return Ok(!std::mem::replace(&mut check.validated, true));
            }
            TypeChange::RenameCheck { from, to } => rename_check(d, &own, from, to)?,
            _ => {}
        }
        Ok(true)
    }

    /// What a change of a domain that is in the catalog now asks of the values that stand, and of the comments on its constraints.
    pub(super) async fn after_domain_change(&self, ty: &TypeObject, change: &TypeChange) -> Result<()> {
        let TypeBody::Domain(d) = &ty.body else { return Ok(()) };
        match change {
            TypeChange::NotNull(true) => self.judge_values(ty, None).await,
            TypeChange::AddCheck { valid: true, .. } => match d.checks.last() {
                Some(check) => self.judge_values(ty, Some(&check.name)).await,
                None => Ok(()),
            },
            TypeChange::ValidateCheck(name) => self.judge_values(ty, Some(name)).await,
            TypeChange::RenameCheck { from, to } => self.move_comment(ty.oid, from, Some(to)).await,
            TypeChange::DropCheck { name, .. } => self.move_comment(ty.oid, name, None).await,
            _ => Ok(()),
        }
    }

    /// The comment on a constraint goes along with its name, or goes.
    async fn move_comment(&self, domain: u32, from: &str, to: Option<&str>) -> Result<()> {
        let catalog = self.catalog();
        let Some(comment) = catalog.comments(domain).find(|comment| comment.part == from).cloned() else {
            return Ok(());
        };
        match to {
            Some(to) => self.put(Object::Comment(Comment { part: to.to_owned(), ..comment })).await,
            None => self.take_away(comment.oid, None).await,
        }
    }

    /// Judges the values of a domain, and of the domains over it, that columns have. As in PostgreSQL, the tables of other owners are read,
    /// too, and the rows that policies hide.
    async fn judge_values(&self, ty: &TypeObject, check: Option<&str>) -> Result<()> {
        let catalog = self.catalog();
        // The condition is found among the types that the statement has made.
        with_env(self.core, &catalog, |_| ());
        let asked = match check {
            Some(name) => Some(user::check_of(ty.oid, name).ok_or_else(|| no_constraint(name, &ty.name))?),
            None => None,
        };
        for table in tables_of(&catalog, ty)? {
            self.core.lock_relation(table, LockMode::Share, IfTaken::Wait).await?;
            // What the table is after the wait.
            let catalog = self.catalog();
            if let Some(relation) = catalog.relation(table) {
                self.judge_table(&catalog, relation, &with_upper(&catalog, ty.oid), &asked).await?;
            }
        }
        Ok(())
    }

    async fn judge_table(
        &self,
        catalog: &Arc<Catalog>,
        relation: &Relation,
        domains: &HashSet<u32>,
        asked: &Asked,
    ) -> Result<()> {
        let columns: Vec<usize> = columns_among(relation, domains).collect();
        let shape = TableShape::new(catalog, relation.oid).map_err(from_engine)?;
        let types = column_types(relation);
        let mut from = Vec::new();
        loop {
            let batch = some_rows(self.core, &shape, &mut from).await?;
            let rows = batch.len();
            for values in batch {
                let mut row = Row::new();
                read_row(&values, &types, &mut row)?;
                for at in &columns {
                    let (table, column) = (&relation.name, &relation.columns[*at].name);
                    let error = match asked {
                        None if row[*at].is_null() => {
                            let message = format!("column \"{column}\" of table \"{table}\" contains null values");
                            SqlError::new("23502", message)
                        }
                        Some(check) if !check.holds(&row[*at])? => SqlError::new(
                            "23514",
                            format!(
                                "column \"{column}\" of table \"{table}\" contains values that violate the new constraint"
                            ),
                        ),
                        _ => continue,
                    };
                    return Err(about(error, catalog, relation.oid).column(column.as_str()));
                }
                breath::breathe(breath::ROW).await?;
            }
            if rows < RUN_ROWS {
                return Ok(());
            }
        }
    }
}

/// A domain and those over it.
fn with_upper(catalog: &Catalog, domain: u32) -> HashSet<u32> {
    let (mut found, mut todo) = (HashSet::from([domain]), vec![domain]);
    while let Some(lower) = todo.pop() {
        for ty in catalog.types() {
            if matches!(&ty.body, TypeBody::Domain(d) if d.under == Some(lower)) && found.insert(ty.oid) {
                todo.push(ty.oid);
            }
        }
    }
    found
}

fn columns_among<'r>(r: &'r Relation, types: &'r HashSet<u32>) -> impl Iterator<Item = usize> {
    r.columns.iter().enumerate().filter(|(_, c)| !c.is_dropped() && types.contains(&c.type_oid)).map(|(at, _)| at)
}

/// The tables whose rows have values of a domain.
///
/// # Errors
/// 0A000 where a column has them within arrays or rows.
fn tables_of(catalog: &Catalog, ty: &TypeObject) -> Result<Vec<u32>> {
    let own = with_upper(catalog, ty.oid);
    let within: HashSet<u32> = made_of(catalog, ty).difference(&own).copied().collect();
    let mut found = Vec::new();
    for object in catalog.objects() {
        let Object::Relation(r) = &**object else { continue };
        if r.kind == RelationKind::View {
            continue;
        }
        if let Some(at) = columns_among(r, &within).next() {
            let (column, table) = (&r.columns[at].name, &r.name);
            let message = format!("cannot alter type \"{}\" because column \"{table}.{column}\" uses it", ty.name);
            return Err(SqlError::new(code::FEATURE_NOT_SUPPORTED, message));
        }
        if columns_among(r, &own).next().is_some() {
            found.push(r.oid);
        }
    }
    Ok(found)
}
