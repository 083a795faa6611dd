//! DROP TYPE and DROP DOMAIN, and what depends on a type: columns, functions, operators, domains, attributes, and stored texts that cast to it.
//!
//! A stored text names a type by its name, which is looked for on the search path of the text (USR-3). A text without a path, of an older version,
//! counts as dependent if no other type has the name.

use super::Ddl;
use super::cascade::{needed, shown, shown_attribute, shown_column, shown_type};
use super::composite::user_of;
use super::drop::dependents;
use super::routine::shown_plainly;
use super::routine_drop::{Dependent, users_of};
use crate::error::{Result, SqlError};
use crate::syntax::ast::QualName;
use crate::syntax::lexer::{Tok, tokens};
use crate::types::{Oid, format_type, user};
use clearway_base::stack;
use clearway_engine::catalog::{Catalog, Object, Relation, RelationKind, TypeBody, TypeObject};
use clearway_txn::lockmgr::LockMode;

/// What depends on a type.
enum User {
    Column(Oid, String),
    Routine(Oid),
    Operator(Oid),
    Domain(Oid),
    Attribute(Oid, String),
    Text(Dependent),
}

/// What depends on a type, as DROP shows it, with the number of the type or of its arrays.
struct TypeUser {
    what: User,
    shown: String,
    on: Oid,
}

/// The casts of a text to types of a name, each with the schema that it says: `x::name`, `CAST(x AS schema.name)`, `name 'text'`.
fn casts_to(text: &str, name: &str) -> Vec<Option<String>> {
    let Ok(list) = tokens(text) else { return Vec::new() };
    let word = |at: usize| match &list.get(at)?.kind {
        Tok::Word(word) | Tok::Quoted(word) => Some(word.to_string()),
        _ => None,
    };
    let mut out = Vec::new();
    for at in (0..list.len()).filter(|at| word(*at).as_deref() == Some(name)) {
        let schema = if at >= 2 && list[at - 1].kind == Tok::Punct(b'.') { word(at - 2) } else { None };
        let first = if schema.is_some() { at - 2 } else { at };
        let before = first.checked_sub(1).map(|at| &list[at].kind);
        let is_as = matches!(before, Some(Tok::Word(word)) if *word == "as");
        let is_literal = matches!(list.get(at + 1).map(|t| &t.kind), Some(Tok::Str(_)));
        if before == Some(&Tok::Typecast) || is_as || is_literal {
            out.push(schema);
        }
    }
    out
}

/// What depends on a type itself; what uses its arrays comes first, as in PostgreSQL.
fn users(catalog: &Catalog, ty: &TypeObject) -> Vec<TypeUser> {
    let mut out: Vec<(bool, Oid, TypeUser)> = Vec::new();
    let mut add = |used: Oid, oid: Oid, what: User, shown: String| {
        if used == ty.oid || used == ty.array {
            out.push((used == ty.oid, oid, TypeUser { what, shown, on: used }));
        }
    };
    for object in catalog.objects() {
        match &**object {
            Object::Relation(r) if r.kind == RelationKind::Table => {
                for c in r.columns.iter().filter(|c| !c.is_dropped()) {
                    add(c.type_oid, r.oid, User::Column(r.oid, c.name.clone()), shown_column(&c.name, r));
                }
            }
            Object::Routine(r) => {
                let mut types = r.arguments.iter().map(|a| a.type_oid).chain([r.result]);
                if let Some(used) = types.find(|used| *used == ty.oid || *used == ty.array) {
                    add(used, r.oid, User::Routine(r.oid), format!("{} {}", r.kind.name(), shown_plainly(r)));
                }
            }
            Object::Operator(o) => {
                // An operator with a function goes with that.
                if let Some(used) = [o.left, o.right].into_iter().find(|used| *used == ty.oid || *used == ty.array) {
                    let shown = format!("operator {}", crate::context::operators::shown(o));
                    add(used, o.oid, User::Operator(o.oid), shown);
                }
            }
            Object::Type(t) => match &t.body {
                TypeBody::Enum(_) => {}
                TypeBody::Domain(domain) => add(domain.below(), t.oid, User::Domain(t.oid), shown_type(t)),
                TypeBody::Composite(c) => {
                    for a in &c.attributes {
                        add(a.type_oid, t.oid, User::Attribute(t.oid, a.name.clone()), shown_attribute(&a.name, t));
                    }
                }
            },
            _ => {}
        }
    }
    out.extend(text_users(catalog, ty).into_iter().map(|found| {
        let shown = found.shown.clone();
        (true, found.of(), TypeUser { what: User::Text(found), shown, on: ty.oid })
    }));
    out.sort_by_key(|(own, oid, _)| (*own, *oid));
    out.into_iter().map(|(_, _, user)| user).collect()
}

/// What has a text that casts to the type.
fn text_users(catalog: &Catalog, ty: &TypeObject) -> Vec<Dependent> {
    let is_only =
        || catalog.types().filter(|other| other.database == ty.database && other.name == ty.name).count() == 1;
    let has =
        |schema: &Oid| catalog.type_in(*schema, &ty.name).is_some() || catalog.in_schema(*schema, &ty.name).is_some();
    let means = |schema: Option<String>, path: Option<&[Oid]>| match (schema, path) {
        (Some(schema), _) => catalog.schema(ty.database, &schema).is_some_and(|schema| schema.oid == ty.schema),
        (None, Some(path)) => path.iter().find(|schema| has(schema)) == Some(&ty.schema),
        (None, None) => is_only(),
    };
    let uses =
        |text: &str, path: Option<&[Oid]>| casts_to(text, &ty.name).into_iter().any(|schema| means(schema, path));
    users_of(catalog, ty.database, ty.oid, &uses)
}

/// What keeps a type, and what depends on that.
fn lines(catalog: &Catalog, ty: &TypeObject, out: &mut Vec<String>) {
    for user in users(catalog, ty) {
        out.push(format!("{} depends on type {}", user.shown, format_type(user.on.into())));
        match user.what {
            User::Column(table, name) => {
                if let Some(r) = catalog.relation(table) {
                    let readers = readers(catalog, r, &name);
                    out.extend(readers.iter().map(|view| format!("{} depends on {}", shown(view), user.shown)));
                }
            }
            User::Domain(oid) => {
                if let Some(Object::Type(domain)) = catalog.get(oid).map(|o| &**o) {
                    stack::deeper(|| lines(catalog, domain, out));
                }
            }
            _ => {}
        }
    }
    let mut met = std::collections::HashSet::new();
    out.retain(|line| met.insert(line.clone()));
}

/// The views that read a column.
fn readers(catalog: &Catalog, r: &Relation, column: &str) -> Vec<Relation> {
    let Some(at) = r.columns.iter().position(|c| c.name == column && !c.is_dropped()) else { return Vec::new() };
    let mut readers = dependents(catalog, r);
    readers.retain(|view| crate::planner::may_read_column(view, r, at));
    readers
}

impl Ddl<'_> {
    pub(super) async fn drop_types(
        &self,
        domain: bool,
        names: &[QualName],
        if_exists: bool,
        cascade: bool,
    ) -> Result<&'static str> {
        for name in names {
            let catalog = self.catalog();
            crate::planner::environment::with_env(self.core, &catalog, |_| ());
            if if_exists && user::find(name.schema(), name.name())?.is_none() {
                let message = match user::missing_schema(name.schema()) {
                    Some(missing) => format!("{}, skipping", missing.message()),
                    None => format!("type \"{}\" does not exist, skipping", name.dotted()),
                };
                self.core.notice("NOTICE", SqlError::new("00000", message));
                continue;
            }
            let ty = self.own_type(&catalog, name, domain)?;
            self.drop_type(&ty, cascade).await?;
        }
        Ok(if domain { "DROP DOMAIN" } else { "DROP TYPE" })
    }

    /// Drops a type; what depends on it goes with it, or keeps it.
    pub(super) async fn drop_type(&self, ty: &TypeObject, cascade: bool) -> Result<()> {
        self.lock_to_drop(ty.oid).await?;
        let users = users(&self.catalog(), ty);
        if !users.is_empty() && !cascade {
            let mut details = Vec::new();
            lines(&self.catalog(), ty, &mut details);
            return Err(needed(&shown_type(ty), details.join("\n")));
        }
        for TypeUser { what, shown, .. } in users {
            self.drop_type_user(what, shown).await?;
        }
        self.take_away(ty.oid, None).await
    }

    async fn drop_type_user(&self, what: User, shown: String) -> Result<()> {
        match what {
            User::Column(table, name) => {
                self.lock(table, LockMode::AccessExclusive).await?;
                let Some(r) = self.catalog().relation(table).cloned() else { return Ok(()) };
                if !r.columns.iter().any(|c| c.name == name && !c.is_dropped()) {
                    return Ok(());
                }
                self.tell_cascade(&[shown]);
                self.not_in_use("ALTER TABLE", table, &r.name)?;
                Box::pin(stack::deeper_polls(self.drop_column(r, &name, true, true))).await
            }
            User::Routine(oid) | User::Operator(oid) | User::Domain(oid) => {
                if self.catalog().get(oid).is_none() {
                    return Ok(()); // It has gone with one before it.
                }
                self.tell_cascade(&[shown]);
                Box::pin(stack::deeper_polls(self.drop_one(oid, true, &[]))).await
            }
            User::Attribute(oid, name) => {
                let Some(Object::Type(found)) = self.catalog().get(oid).map(|o| Object::clone(o)) else {
                    return Ok(());
                };
                if user_of(&self.catalog(), &found).is_some() {
                    let what = "DROP TYPE ... CASCADE while columns have a composite type with the type";
                    return Err(SqlError::unsupported(what));
                }
                self.tell_cascade(&[shown]);
                let mut composite = found;
                if let TypeBody::Composite(c) = &mut composite.body {
                    c.attributes.retain(|a| a.name != name);
                }
                self.put(Object::Type(composite)).await
            }
            User::Text(user) => {
                if self.catalog().get(user.of()).is_none() {
                    return Ok(());
                }
                self.tell_cascade(&[shown]);
                self.drop_user(user, "TYPE").await
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::casts_to;

    #[test]
    fn a_cast_is_told_from_a_column() {
        for text in ["'ok'::mood", "cast(a AS mood)", "mood 'ok'", "x::mood[]"] {
            assert_eq!(casts_to(text, "mood"), [None], "{text}");
        }
        for text in ["x::public.mood[]", "public.\"mood\" 'ok'"] {
            assert_eq!(casts_to(text, "mood"), [Some("public".to_owned())], "{text}");
        }
        for text in ["mood <> 'ok'", "t.mood = 'ok'", "'mood'::text", "as_mood(mood)", "a::moody"] {
            assert!(casts_to(text, "mood").is_empty(), "{text}");
        }
    }
}
