//! CREATE TYPE ... AS (...), the changes of a composite type's attributes, and what is made of a type.

use super::Ddl;
use crate::context::convert::storage_of;
use crate::error::{Result, SqlError, code};
use crate::session::utility::with_env;
use crate::syntax::ast::{QualName, TypeName};
use crate::syntax::user_type::AttributeChange;
use crate::types::{facts, format_type, resolve};
use clearway_engine::catalog::{Attribute, Catalog, Composite, Object, TypeBody, TypeObject};

/// The most attributes (PostgreSQL's MaxHeapAttributeNumber).
const ATTRIBUTES_MAX: usize = 1_600;

impl Ddl<'_> {
    pub(super) async fn create_composite(
        &self,
        name: &QualName,
        attributes: &[(String, TypeName)],
    ) -> Result<&'static str> {
        let schema = self.new_type(name)?;
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
    let found = resolve(ty)?;
    if let Some((catalog, of)) = of
        && is_made_of(catalog, found.oid, of)
    {
        let message = format!("composite type {} cannot be made a member of itself", of.name);
        return Err(SqlError::new("42P16", message));
    }
    if facts(found.oid).is_none_or(|f| f.category == b'P') {
        let message = format!("column \"{name}\" has pseudo-type {}", format_type(found));
        return Err(SqlError::new("42P16", message));
    }
    if storage_of(found.oid).is_none() {
        return Err(SqlError::unsupported(format!("an attribute of type {}", format_type(found))).at(ty.name.pos));
    }
    list.push(Attribute { name: name.to_owned(), type_oid: found.oid, type_mod: found.modifier });
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

/// Whether a type is another one, an array of it, a domain over it, or a row that has it.
pub(super) fn is_made_of(catalog: &Catalog, oid: u32, of: &TypeObject) -> bool {
    if oid == of.oid || oid == of.array {
        return true;
    }
    let Some(ty) = catalog.types().find(|t| t.oid == oid || t.array == oid) else { return false };
    clearway_base::stack::deeper(|| match &ty.body {
        TypeBody::Enum(_) => false,
        TypeBody::Domain(domain) => is_made_of(catalog, domain.base, of),
        TypeBody::Composite(c) => c.attributes.iter().any(|a| is_made_of(catalog, a.type_oid, of)),
    })
}

/// A table and its column whose values are made of the type.
pub(super) fn user_of<'c>(catalog: &'c Catalog, ty: &TypeObject) -> Option<(&'c str, &'c str)> {
    catalog.objects().find_map(|o| match &**o {
        Object::Relation(r) => {
            let column = r.columns.iter().find(|c| !c.is_dropped() && is_made_of(catalog, c.type_oid, ty))?;
            Some((r.name.as_str(), column.name.as_str()))
        }
        _ => None,
    })
}

/// What another type has of it, as PostgreSQL names it.
pub(super) fn type_user_of(catalog: &Catalog, ty: &TypeObject) -> Option<String> {
    let uses = |oid: u32| oid == ty.oid || oid == ty.array;
    let has =
        |r: &&clearway_engine::catalog::Routine| r.arguments.iter().map(|a| a.type_oid).chain([r.result]).any(uses);
    if let Some(r) = catalog.routines().find(has) {
        return Some(format!("{} {}", r.kind.name(), super::routine::shown_plainly(r)));
    }
    catalog.types().find_map(|t| match &t.body {
        TypeBody::Enum(_) => None,
        TypeBody::Domain(domain) => uses(domain.base).then(|| format!("type {}", t.name)),
        TypeBody::Composite(c) => {
            let attribute = c.attributes.iter().find(|a| uses(a.type_oid))?;
            Some(format!("column {} of composite type {}", attribute.name, t.name))
        }
    })
}

/// 2BP01: something is made of the type.
pub(super) fn needed(ty: &TypeObject, user: String) -> SqlError {
    let message = format!("cannot drop type {} because other objects depend on it", ty.name);
    SqlError::new("2BP01", message)
        .detail(format!("{user} depends on type {}", ty.name))
        .hint("Use DROP ... CASCADE to drop the dependent objects too.")
}
