//! Composite types: CREATE TYPE ... AS (...), changes of their attributes; and which types, columns and objects use a type.

use super::Ddl;
use crate::context::convert::storage_of;
use crate::error::{Result, SqlError, code};
use crate::planner::environment::with_env;
use crate::syntax::ast::{QualName, TypeName};
use crate::syntax::user_type::AttributeChange;
use crate::types::size::{ROW_DEPTH_MAX, too_deep};
use crate::types::{SqlType, facts, format_type, oid, resolve};
use clearway_engine::catalog::types::{row_array, row_type};
use clearway_engine::catalog::{
    Attribute, Catalog, Composite, FIRST_USER_OID, Object, Relation, RelationKind, TypeBody, TypeObject,
};
use std::collections::{HashMap, HashSet};

/// The most attributes (PostgreSQL's MaxHeapAttributeNumber).
const ATTRIBUTES_MAX: usize = 1_600;

impl Ddl<'_> {
    pub(super) async fn create_composite(
        &self,
        name: &QualName,
        attributes: &[(String, TypeName)],
    ) -> Result<&'static str> {
        let schema = self.new_type(name).await?;
        if self.catalog().in_schema(schema, name.name()).is_some() {
            return Err(super::exists(name.name()));
        }
        let mut list = Vec::new();
        for (attribute, ty) in attributes {
            push(&mut list, attribute, ty, None)?;
        }
        list.iter().try_for_each(|a| self.may_use_type(a.type_oid))?;
        let body = TypeBody::Composite(Composite { class: self.new_oid(), attributes: list });
        self.put_type(schema, name, body).await?;
        check_depth(&self.catalog())?;
        Ok("CREATE TYPE")
    }

    pub(super) fn change_attributes(
        &self,
        catalog: &Catalog,
        ty: &mut TypeObject,
        changes: &[AttributeChange],
    ) -> Result<()> {
        with_env(self.core, &self.catalog(), |_| ());
        let users = user_of(catalog, ty);
        let before = ty.clone();
        let name = ty.name.clone();
        let TypeBody::Composite(composite) = &mut ty.body else { return Err(not_composite(&name)) };
        for change in changes {
            if let AttributeChange::Add { ty, .. } | AttributeChange::Type { ty, .. } = change {
                self.may_use_type(resolve(ty).map_err(SqlError::nowhere)?.oid)?;
            }
            if let Some((table, column)) = users {
                if let AttributeChange::Type { .. } = change {
                    let message = format!("cannot alter type \"{name}\" because column \"{table}.{column}\" uses it");
                    return Err(SqlError::new(code::FEATURE_NOT_SUPPORTED, message));
                }
                return Err(SqlError::unsupported("ALTER TYPE of a composite type that columns have"));
            }
            let list = &mut composite.attributes;
            match change {
                AttributeChange::Add { name, ty } => push(list, name, ty, Some((catalog, &before)))?,
                AttributeChange::Drop { name: attribute, if_exists } => {
                    match list.iter().position(|a| a.name == *attribute) {
                        Some(at) => {
                            list.remove(at);
                        }
                        None if *if_exists => {
                            let message =
                                format!("column \"{attribute}\" of relation \"{name}\" does not exist, skipping");
                            self.core.notice("NOTICE", SqlError::new("00000", message));
                        }
                        None => return Err(no_attribute(attribute, &name)),
                    }
                }
                AttributeChange::Type { name: attribute, ty } => {
                    let at = list.iter().position(|a| a.name == *attribute);
                    let at = at.ok_or_else(|| no_attribute(attribute, &name))?;
                    let mut changed = Vec::new();
                    push(&mut changed, attribute, ty, Some((catalog, &before)))?;
                    list.splice(at..=at, changed);
                }
            }
        }
        Ok(())
    }
}

/// Adds an attribute; `of` is the type whose attribute it becomes.
fn push(list: &mut Vec<Attribute>, name: &str, ty: &TypeName, of: Option<(&Catalog, &TypeObject)>) -> Result<()> {
    if list.iter().any(|a| a.name == name) {
        let message = match of {
            None => format!("column \"{name}\" specified more than once"),
            Some((_, of)) => format!("column \"{name}\" of relation \"{}\" already exists", of.name),
        };
        return Err(SqlError::new("42701", message));
    }
    if list.len() == ATTRIBUTES_MAX {
        return Err(SqlError::new("54011", format!("tables can have at most {ATTRIBUTES_MAX} columns")));
    }
    let found = resolve(ty).map_err(SqlError::nowhere)?;
    if let Some((catalog, of)) = of
        && made_of(catalog, of).contains(&found.oid)
    {
        let message = format!("composite type {} cannot be made a member of itself", of.name);
        return Err(SqlError::new("42P16", message));
    }
    not_pseudo(name, found)?;
    if storage_of(found.oid).is_none() {
        return Err(SqlError::unsupported(format!("an attribute of type {}", format_type(found))).at(ty.name.pos));
    }
    list.push(Attribute { name: name.to_owned(), type_oid: found.oid, type_mod: found.modifier });
    Ok(())
}

/// No column, and no attribute, is of a pseudo-type.
///
/// # Errors
/// 42P16.
pub(super) fn not_pseudo(name: &str, ty: SqlType) -> Result<()> {
    if ty.oid == oid::UNKNOWN || facts(ty.oid).is_none_or(|f| f.category == b'P') {
        let message = format!("column \"{name}\" has pseudo-type {}", format_type(ty));
        return Err(SqlError::new("42P16", message));
    }
    Ok(())
}

fn not_composite(name: &str) -> SqlError {
    SqlError::new(code::WRONG_OBJECT_TYPE, format!("\"{name}\" is not a composite type"))
}

fn no_attribute(attribute: &str, of: &str) -> SqlError {
    let message = format!("column \"{attribute}\" of relation \"{of}\" does not exist");
    SqlError::new(code::UNDEFINED_COLUMN, message)
}

pub(super) fn rename_attribute(ty: &mut TypeObject, from: &str, to: &str) -> Result<()> {
    let name = ty.name.clone();
    let TypeBody::Composite(composite) = &mut ty.body else { return Err(not_composite(&name)) };
    if composite.attributes.iter().any(|a| a.name == to) {
        let message = format!("column \"{to}\" of relation \"{name}\" already exists");
        return Err(SqlError::new("42701", message));
    }
    let found = composite.attributes.iter_mut().find(|a| a.name == from);
    found.ok_or_else(|| no_attribute(from, &name))?.name = to.to_owned();
    Ok(())
}

/// The types that a type is made of: of a domain its base, of a row its fields', of an array its elements'.
fn parts<'c>(ty: &'c TypeObject) -> impl Iterator<Item = u32> + 'c {
    let (base, attributes) = match &ty.body {
        TypeBody::Enum(_) => (None, &[][..]),
        TypeBody::Domain(domain) => (Some(domain.below()), &[][..]),
        TypeBody::Composite(c) => (None, c.attributes.as_slice()),
    };
    base.into_iter().chain(attributes.iter().map(|a| a.type_oid))
}

/// The numbers of a type and of all that is made of it: arrays of it, domains over it, rows that have it, and what is made of those. Each type
/// is looked at once: one may be met on many ways.
pub(super) fn made_of(catalog: &Catalog, of: &TypeObject) -> HashSet<u32> {
    made_of_types(catalog, &[of.oid, of.array])
}

/// The same of several types.
pub(super) fn made_of_types(catalog: &Catalog, of: &[u32]) -> HashSet<u32> {
    // The numbers of a type and of its arrays, by each part of it; the rows of tables are types, too.
    let mut users: HashMap<u32, Vec<(u32, u32)>> = HashMap::new();
    for ty in catalog.types() {
        parts(ty).for_each(|part| users.entry(part).or_default().push((ty.oid, ty.array)));
    }
    for (row, array, r) in rows(catalog) {
        parts_of_row(r).for_each(|part| users.entry(part).or_default().push((row, array)));
    }
    let mut found: HashSet<u32> = of.iter().copied().collect();
    let mut todo = of.to_vec();
    while let Some(oid) = todo.pop() {
        for (user, array) in users.get(&oid).into_iter().flatten() {
            if found.insert(*user) {
                found.insert(*array);
                todo.extend([*user, *array]);
            }
        }
    }
    found
}

/// The relations with the numbers of their rows' type and its arrays.
fn rows(catalog: &Catalog) -> impl Iterator<Item = (u32, u32, &Relation)> {
    catalog.objects().filter_map(|o| match &**o {
        Object::Relation(r) => Some((row_type(r.oid)?, row_array(r.oid)?, r)),
        _ => None,
    })
}

/// The types of a relation's columns that are no types of the system.
fn parts_of_row(r: &Relation) -> impl Iterator<Item = u32> {
    let live = r.columns.iter().filter(|c| !c.is_dropped()).map(|c| c.type_oid);
    live.filter(|oid| *oid >= FIRST_USER_OID)
}

/// Refuses types whose rows would stand deeper within each other than rows may.
///
/// # Errors
/// 54001.
pub(super) fn check_depth(catalog: &Catalog) -> Result<()> {
    /// The parts of a type, and how much deeper it is than they are.
    type Node = (Vec<u32>, u16);
    let mut types: HashMap<u32, Node> = HashMap::new();
    for ty in catalog.types() {
        let node = (parts(ty).collect(), u16::from(matches!(ty.body, TypeBody::Composite(_))));
        types.extend([(ty.oid, node), (ty.array, (vec![ty.oid], 0))]);
    }
    // CREATE OR REPLACE VIEW may put rows of a table into a view whose rows the table has: only what is stored has to end.
    for (row, array, r) in rows(catalog).filter(|(_, _, r)| r.kind != RelationKind::View) {
        types.extend([(row, (parts_of_row(r).collect(), 1)), (array, (vec![row], 0))]);
    }
    // A type is finished when all that it is made of is: then its depth is known.
    let mut depths: HashMap<u32, u16> = HashMap::new();
    let mut todo: Vec<u32> = types.keys().copied().collect();
    while let Some(oid) = todo.pop() {
        let Some((parts, own)) = types.get(&oid).filter(|_| !depths.contains_key(&oid)) else { continue };
        let below: Vec<u32> = parts.iter().copied().filter(|part| types.contains_key(part)).collect();
        let open: Vec<u32> = below.iter().copied().filter(|part| !depths.contains_key(part)).collect();
        if !open.is_empty() {
            todo.push(oid);
            todo.extend(open);
            continue;
        }
        let depth = below.iter().filter_map(|part| depths.get(part)).max().copied().unwrap_or(0) + own;
        if depth > ROW_DEPTH_MAX {
            return Err(too_deep());
        }
        depths.insert(oid, depth);
    }
    Ok(())
}

/// A table and its column whose values are made of the type.
pub(super) fn user_of<'c>(catalog: &'c Catalog, ty: &TypeObject) -> Option<(&'c str, &'c str)> {
    let made = made_of(catalog, ty);
    catalog.objects().find_map(|o| match &**o {
        Object::Relation(r) => {
            let column = r.columns.iter().find(|c| !c.is_dropped() && made.contains(&c.type_oid))?;
            Some((r.name.as_str(), column.name.as_str()))
        }
        _ => None,
    })
}
