//! CREATE, ALTER and DROP of enums and domains.

use super::Ddl;
use super::composite::{check_depth, made_of, rename_attribute};
use crate::context::privileges::denied;
use crate::context::types::bind_condition;
use crate::error::{Result, SqlError, code};
use crate::planner::environment::with_env;
use crate::syntax::ast::{QualName, TypeName};
use crate::syntax::ddl::Persistence;
use crate::syntax::user_type::{TypeChange, TypeStatement};
use crate::types::{SqlType, extension, facts, resolve, user};
use clearway_engine::catalog::types::{place_behind, place_between};
use clearway_engine::catalog::{Catalog, Check, Domain, Label, Object, TypeBody, TypeObject};

/// The longest label, in bytes.
const LABEL_BYTES_MAX: usize = 63;

/// What is said of a type that is not there: 3F000 where its schema is not.
fn no_such_type(name: &QualName) -> SqlError {
    user::missing_schema(name.schema()).unwrap_or_else(|| super::missing("type", &name.dotted()))
}

impl Ddl<'_> {
    pub(super) async fn types(&self, s: &TypeStatement) -> Result<&'static str> {
        match s {
            TypeStatement::CreateEnum { name, labels } => self.create_enum(name, labels).await,
            TypeStatement::CreateComposite { name, attributes } => self.create_composite(name, attributes).await,
            TypeStatement::CreateDomain { name, base, default, not_null, checks } => {
                self.create_domain(name, base, default.as_ref(), *not_null, checks).await
            }
            TypeStatement::Alter { name, domain, change } => self.alter_type(name, *domain, change).await,
            TypeStatement::Drop { domain, names, if_exists, cascade } => {
                self.drop_types(*domain, names, *if_exists, *cascade).await
            }
            TypeStatement::Comment { name, domain, text } => self.comment_on_type(name, *domain, text.as_deref()).await,
            TypeStatement::CommentCheck { domain, name, text } => {
                self.comment_on_check(domain, name, text.as_deref()).await
            }
        }
    }

    /// The schema of a new type; an error if its name is taken.
    pub(super) async fn new_type(&self, name: &QualName) -> Result<u32> {
        let name = &self.placed(name, Persistence::Permanent).await?;
        let catalog = self.catalog();
        let schema = with_env(self.core, &catalog, |env| env.schema_for(name))?;
        self.free_type_name(&catalog, schema, name.name())?;
        Ok(schema)
    }

    pub(super) fn free_type_name(&self, catalog: &Catalog, schema: u32, name: &str) -> Result<()> {
        // A table's name is that of the type of its rows, too.
        let table = catalog.in_schema(schema, name).is_some_and(|o| matches!(**o, Object::Relation(_)));
        let made = crate::context::extensions::of(catalog, self.core.database).iter().filter(|e| e.schema == schema);
        let of_extension = made.flat_map(|e| super::extension_users::types_of(&e.name)).any(|ty| ty.name == name);
        if catalog.type_in(schema, name).is_some() || table || of_extension {
            return Err(SqlError::new("42710", format!("type \"{name}\" already exists")));
        }
        Ok(())
    }

    pub(super) async fn put_type(&self, schema: u32, name: &QualName, body: TypeBody) -> Result<()> {
        let owner = self.role()?;
        let ty = TypeObject {
            oid: self.new_oid(),
            array: self.new_oid(),
            database: self.core.database,
            schema,
            name: name.name().to_owned(),
            owner,
            acl: self.first_acl('T', schema)?,
            body,
        };
        self.put(Object::Type(ty)).await
    }

    async fn create_enum(&self, name: &QualName, labels: &[String]) -> Result<&'static str> {
        let schema = self.new_type(name).await?;
        let mut list: Vec<Label> = Vec::new();
        for text in labels {
            check_label(text)?;
            if list.iter().any(|l| l.text == *text) {
                let message = "duplicate key value violates unique constraint \"pg_enum_typid_label_index\"";
                return Err(SqlError::new("23505", message));
            }
            let order = place_behind(list.last().map(|l| l.order)).ok_or_else(no_room)?;
            list.push(Label { oid: self.new_oid(), order, text: text.clone() });
        }
        self.put_type(schema, name, TypeBody::Enum(list)).await?;
        Ok("CREATE TYPE")
    }

    async fn create_domain(
        &self,
        name: &QualName,
        base: &TypeName,
        default: Option<&String>,
        not_null: bool,
        checks: &[(Option<String>, String)],
    ) -> Result<&'static str> {
        let schema = self.new_type(name).await?;
        let given = resolve(base).map_err(SqlError::nowhere)?;
        self.may_use_type(given.oid)?;
        let below = user::base(given);
        if facts(below.oid).is_some_and(|f| f.category == b'C') {
            return Err(SqlError::unsupported("a domain over a composite type").at(base.name.pos));
        }
        if facts(below.oid).is_none_or(|f| f.category == b'P') {
            let message = format!("\"{}\" is not a valid base type for a domain", base.name.name());
            return Err(SqlError::new(code::DATATYPE_MISMATCH, message).at(base.name.pos));
        }
        let catalog = self.catalog();
        let mut domain = Domain {
            base: below.oid,
            base_mod: below.modifier,
            under: None,
            not_null,
            default: default.cloned(),
            default_path: None,
            checks: Vec::new(),
        };
        if let Some(Object::Type(TypeObject { body: TypeBody::Domain(under), .. })) =
            catalog.get(given.oid).map(|o| &**o)
        {
            domain.under = Some(given.oid);
            if domain.default.is_none() {
                (domain.default, domain.default_path) = (under.default.clone(), under.default_path.clone());
            }
        }
        if let Some(text) = default {
            self.check_domain_default(text, below, name.name())?;
        }
        for (given, text) in checks {
            add_check(&mut domain, name.name(), given.as_ref(), (text, true))?;
        }
        self.put_type(schema, name, TypeBody::Domain(domain)).await?;
        Ok("CREATE DOMAIN")
    }

    /// # Errors
    /// What a default of this type may not be.
    pub(super) fn check_domain_default(&self, text: &str, base: SqlType, name: &str) -> Result<()> {
        with_env(self.core, &self.catalog(), |env| {
            crate::planner::Planner::new(env).new_domain_default(text, base, name)
        })
    }

    /// Refuses a type, or an array of one, that the session's role may not use in a definition.
    ///
    /// # Errors
    /// 42501.
    pub(super) fn may_use_type(&self, oid: u32) -> Result<()> {
        let catalog = self.catalog();
        let element = facts(oid).map_or(0, |facts| facts.element);
        let object = [oid, element].into_iter().filter(|oid| *oid != 0).find_map(|oid| catalog.get(oid));
        match object {
            Some(ty) if matches!(**ty, Object::Type(_)) && !self.judge(&catalog).may_with(ty, 'U') => {
                Err(denied("type", ty.name()))
            }
            _ => Ok(()),
        }
    }

    /// The type of a name.
    ///
    /// # Errors
    /// 42704; 42809 for one that is no domain; 0A000 for one of the system's.
    pub(super) fn named_type(&self, catalog: &Catalog, name: &QualName, domain: bool) -> Result<TypeObject> {
        with_env(self.core, &self.catalog(), |_| ());
        let found = user::find(name.schema(), name.name())?.and_then(|f| match catalog.get(f.oid).map(|o| &**o) {
            Some(Object::Type(ty)) => Some(ty.clone()),
            _ => None,
        });
        let Some(found) = found else {
            if crate::types::by_name(name.name()).is_some() && name.schema().is_none_or(|s| s == "pg_catalog") {
                return Err(SqlError::unsupported("GRANT and REVOKE on a type of the system").at(name.pos));
            }
            return Err(no_such_type(name));
        };
        if domain && !matches!(found.body, TypeBody::Domain(_)) {
            let message = format!("\"{}\" is not a domain", name.name());
            return Err(SqlError::new(code::WRONG_OBJECT_TYPE, message).hint("Use GRANT ON TYPE."));
        }
        Ok(found)
    }

    /// The type of a name, which the session's role owns.
    pub(super) fn own_type(&self, catalog: &Catalog, name: &QualName, domain: bool) -> Result<TypeObject> {
        let found = user::find(name.schema(), name.name())?.and_then(|f| match catalog.get(f.oid).map(|o| &**o) {
            Some(Object::Type(ty)) => Some(ty.clone()),
            _ => None,
        });
        let Some(found) = found else {
            let of_extension = user::find(name.schema(), name.name())?;
            if let Some(extension) = of_extension.and_then(|facts| extension::of_type(facts.oid)) {
                let message = format!("cannot drop type {} because extension {extension} requires it", name.name());
                return Err(
                    SqlError::new("2BP01", message).hint(format!("You can drop extension {extension} instead."))
                );
            }
            if crate::types::by_name(name.name()).is_some() && name.schema().is_none_or(|s| s == "pg_catalog") {
                return Err(SqlError::new("42501", format!("must be owner of type {}", name.name())));
            }
            return Err(no_such_type(name));
        };
        if domain && !matches!(found.body, TypeBody::Domain(_)) {
            return Err(SqlError::new(code::WRONG_OBJECT_TYPE, format!("{} is not a domain", name.name())));
        }
        self.owns(&Object::Type(found.clone()))?;
        Ok(found)
    }

    async fn alter_type(&self, name: &QualName, domain: bool, change: &TypeChange) -> Result<&'static str> {
        let catalog = self.catalog();
        with_env(self.core, &catalog, |_| ());
        let mut ty = self.own_type(&catalog, name, domain)?;
        match change {
            TypeChange::Rename(to) => {
                self.free_type_name(&catalog, ty.schema, to)?;
                ty.name.clone_from(to);
            }
            TypeChange::Owner(role) => {
                let owner = self.role_named(&catalog, role)?.oid;
                self.may_change_owner(&catalog, &Object::Type(ty.clone()), owner)?;
                ty.acl.change_owner(ty.owner, owner);
                ty.owner = owner;
            }
            TypeChange::Schema(schema) => {
                let found = catalog.schema(self.core.database, schema).map(|s| s.oid);
                let name = schema;
                let schema = found.ok_or_else(|| super::missing("schema", schema))?;
                if !catalog.get(schema).is_some_and(|object| self.judge(&catalog).may_with(object, 'C')) {
                    return Err(denied("schema", name));
                }
                self.free_type_name(&catalog, schema, &ty.name)?;
                ty.schema = schema;
            }
            TypeChange::AddValue { if_not_exists, label, beside } => {
                if !self.add_value(&mut ty, *if_not_exists, label, beside.as_ref())? {
                    return Ok("ALTER TYPE");
                }
            }
            TypeChange::RenameValue { from, to } => rename_value(&catalog, &mut ty, from, to)?,
            TypeChange::Attributes(changes) => self.change_attributes(&catalog, &mut ty, changes)?,
            TypeChange::RenameAttribute { from, to } => rename_attribute(&mut ty, from, to)?,
            TypeChange::Default(_)
            | TypeChange::NotNull(_)
            | TypeChange::AddCheck { .. }
            | TypeChange::DropCheck { .. }
            | TypeChange::ValidateCheck(_)
            | TypeChange::RenameCheck { .. } => {
                if !self.change_domain(&mut ty, change)? {
                    return Ok("ALTER DOMAIN");
                }
            }
        }
        self.put_changed_type(ty, change).await?;
        Ok(if domain { "ALTER DOMAIN" } else { "ALTER TYPE" })
    }

    async fn put_changed_type(&self, ty: TypeObject, change: &TypeChange) -> Result<()> {
        self.put(Object::Type(ty.clone())).await?;
        match change {
            TypeChange::Attributes(_) => check_depth(&self.catalog()),
            _ => self.after_domain_change(&ty, change).await,
        }
    }

    /// False: the label is there already.
    fn add_value(
        &self,
        ty: &mut TypeObject,
        if_not_exists: bool,
        label: &str,
        beside: Option<&(bool, String)>,
    ) -> Result<bool> {
        let name = ty.name.clone();
        let TypeBody::Enum(labels) = &mut ty.body else {
            return Err(SqlError::new(code::WRONG_OBJECT_TYPE, format!("{name} is not an enum")));
        };
        check_label(label)?;
        if labels.iter().any(|l| l.text == label) {
            let message = format!("enum label \"{label}\" already exists");
            if !if_not_exists {
                return Err(SqlError::new("42710", message));
            }
            self.core.notice("NOTICE", SqlError::new("42710", message + ", skipping"));
            return Ok(false);
        }
        let at = match beside {
            None => labels.len(),
            Some((before, other)) => {
                let found = labels.iter().position(|l| l.text == *other);
                let missing = || {
                    let message = format!("\"{other}\" is not an existing enum label");
                    SqlError::new(code::INVALID_PARAMETER_VALUE, message)
                };
                found.ok_or_else(missing)? + usize::from(!before)
            }
        };
        let before = at.checked_sub(1).map(|i| labels[i].order);
        let order = match labels.get(at) {
            None => place_behind(before),
            Some(next) => place_between(before, next.order),
        };
        labels.insert(at, Label { oid: self.new_oid(), order: order.ok_or_else(no_room)?, text: label.to_owned() });
        Ok(true)
    }
}

fn no_room() -> SqlError {
    SqlError::new(code::PROGRAM_LIMIT_EXCEEDED, "no room is left between two labels of the enum")
}

fn check_label(text: &str) -> Result<()> {
    if text.len() <= LABEL_BYTES_MAX {
        return Ok(());
    }
    let message = format!("invalid enum label \"{text}\"");
    Err(SqlError::new(code::INVALID_NAME, message).detail(format!("Labels must be {LABEL_BYTES_MAX} bytes or less.")))
}

fn rename_value(catalog: &Catalog, ty: &mut TypeObject, from: &str, to: &str) -> Result<()> {
    check_label(to)?;
    // Arrays and rows hold the texts of their labels.
    let made = made_of(catalog, ty);
    let arrays = catalog.objects().any(|o| match &**o {
        Object::Relation(r) => r.columns.iter().any(|c| c.type_oid != ty.oid && made.contains(&c.type_oid)),
        _ => false,
    });
    if arrays {
        return Err(SqlError::unsupported("ALTER TYPE ... RENAME VALUE while columns hold arrays or rows of the type"));
    }
    let name = ty.name.clone();
    let TypeBody::Enum(labels) = &mut ty.body else {
        return Err(SqlError::new(code::WRONG_OBJECT_TYPE, format!("{name} is not an enum")));
    };
    if !labels.iter().any(|l| l.text == from) {
        let message = format!("\"{from}\" is not an existing enum label");
        return Err(SqlError::new(code::INVALID_PARAMETER_VALUE, message));
    }
    if labels.iter().any(|l| l.text == to) {
        return Err(SqlError::new("42710", format!("enum label \"{to}\" already exists")));
    }
    labels.iter_mut().filter(|l| l.text == from).for_each(|l| to.clone_into(&mut l.text));
    Ok(())
}

pub(super) fn add_check(
    domain: &mut Domain,
    owner: &str,
    given: Option<&String>,
    (text, validated): (&str, bool),
) -> Result<()> {
    bind_condition(text, SqlType { oid: domain.base, modifier: domain.base_mod })?;
    let taken = |name: &str| domain.checks.iter().any(|c| c.name == name);
    let name = match given {
        Some(name) if taken(name) => {
            let message = format!("constraint \"{name}\" for domain \"{owner}\" already exists");
            return Err(SqlError::new("42710", message));
        }
        Some(name) => name.clone(),
        None => {
            let first = format!("{owner}_check");
            let later = (1..).map(|n| format!("{owner}_check{n}"));
            std::iter::once(first.clone()).chain(later).find(|n| !taken(n)).unwrap_or(first)
        }
    };
    domain.checks.push(Check { name, condition: text.to_owned(), validated, path: None });
    Ok(())
}
