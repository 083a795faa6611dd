//! DROP FUNCTION and DROP PROCEDURE, and the objects that depend on a function: those whose stored text calls it.
//!
//! A stored text calls a function by its name, not by its oid. So every text that calls a function of this name counts as dependent, even
//! if it means another function of the same name.

use super::Ddl;
use super::cascade::{needed, needed_by, shown, shown_column, shown_constraint, shown_index, shown_policy, shown_type};
use super::operator_drop;
use super::routine::shown_plainly;
use crate::context::routines::is_settled;
use crate::error::{Result, SqlError};
use crate::planner::environment::with_env;
use crate::syntax::lexer::{Tok, tokens};
use crate::syntax::routine::{RoutineKind, RoutineName};
use crate::types::{Oid, array_of, user};
use clearway_base::stack;
use clearway_engine::catalog::{Catalog, Object, Relation, RelationKind, Routine, TypeBody};
use clearway_txn::lockmgr::LockMode;
use clearway_values::builtin;

/// Something whose text calls a function.
pub(super) struct Dependent {
    /// As DROP shows it.
    pub shown: String,
    what: DependentObject,
    /// Its text says which functions it calls (USR-4).
    pub settled: bool,
}

enum DependentObject {
    View(u32),
    Default(u32, usize),
    Check(u32, String),
    Index(u32),
    Policy(u32, u32),
    Routine(u32),
    Operator(u32),
    /// What DROP ... CASCADE does not take away.
    Kept(&'static str),
}

impl Dependent {
    /// The object whose text it is; 0: it is none that goes with others.
    pub fn of(&self) -> u32 {
        match self.what {
            DependentObject::View(oid)
            | DependentObject::Index(oid)
            | DependentObject::Routine(oid)
            | DependentObject::Operator(oid)
            | DependentObject::Default(oid, _)
            | DependentObject::Check(oid, _)
            | DependentObject::Policy(oid, _) => oid,
            DependentObject::Kept(_) => 0,
        }
    }

    /// Whether values are stored that the function has computed.
    pub fn is_computed(&self, catalog: &Catalog) -> bool {
        match self.what {
            DependentObject::Index(_) | DependentObject::Kept(_) => true,
            DependentObject::Operator(oid) => {
                let users = catalog.operator(oid).map(|o| operator_drop::dependents(catalog, o));
                users.is_some_and(|users| users.iter().any(|user| user.is_computed(catalog)))
            }
            _ => false,
        }
    }

    /// Whether it is an operator, which knows the function by its number.
    pub fn is_operator(&self) -> bool {
        matches!(self.what, DependentObject::Operator(_))
    }
}

/// Whether a text calls a function of a name.
fn calls(text: &str, name: &str) -> bool {
    let Ok(list) = tokens(text) else { return false };
    list.windows(2).any(|pair| {
        let named = match &pair[0].kind {
            Tok::Word(word) | Tok::Quoted(word) => *word == name,
            _ => false,
        };
        named && pair[1].kind == Tok::Punct(b'(')
    })
}

/// Whether a text, which was written on a search path (USR-3), uses what is to go.
type Uses<'u> = &'u dyn Fn(&str, Option<&[u32]>) -> bool;

fn of_relation(r: &Relation, uses: Uses<'_>, out: &mut Vec<Dependent>) {
    let mut add = |shown: String, what, path: Option<&Vec<u32>>| {
        out.push(Dependent { shown, what, settled: is_settled(path.map(Vec::as_slice)) });
    };
    if r.kind != RelationKind::Table {
        let path = r.meaning.as_ref().and_then(|meaning| meaning.path.as_ref());
        if r.query.as_ref().is_some_and(|query| uses(query, path.map(Vec::as_slice))) {
            add(shown(r), DependentObject::View(r.oid), path);
        }
        return;
    }
    for (at, c) in r.columns.iter().enumerate().filter(|(_, c)| !c.is_dropped()) {
        if !c.default.as_ref().is_some_and(|text| uses(text, c.path.as_deref())) {
            continue;
        }
        match c.generated {
            true => add(shown_column(&c.name, r), DependentObject::Kept("a generated column"), c.path.as_ref()),
            false => {
                let shown = format!("default value for {}", shown_column(&c.name, r));
                add(shown, DependentObject::Default(r.oid, at), c.path.as_ref());
            }
        }
    }
    for c in r.checks.iter().filter(|c| uses(&c.condition, c.path.as_deref())) {
        add(shown_constraint(&c.name, r), DependentObject::Check(r.oid, c.name.clone()), c.path.as_ref());
    }
    for p in &r.security.policies {
        let mut conditions = p.using.iter().chain(&p.check);
        if conditions.any(|c| uses(&c.text, c.meaning.path.as_deref())) {
            let path = p.using.iter().chain(&p.check).find_map(|c| c.meaning.path.as_ref());
            add(shown_policy(p, r), DependentObject::Policy(r.oid, p.oid), path);
        }
    }
}

/// What calls a function of the name of this one, and the operators that it computes or estimates for.
pub(super) fn dependents(catalog: &Catalog, r: &Routine) -> Vec<Dependent> {
    let mut out = users_of(catalog, r.database, r.oid, &|text, _| calls(text, &r.name));
    let operators = catalog.operators().filter(|o| o.calls(r.oid));
    out.extend(operators.map(|o| Dependent {
        shown: format!("operator {}", crate::context::operators::shown(o)),
        what: DependentObject::Operator(o.oid),
        settled: true,
    }));
    out
}

/// What of a database has a text that uses what is to go; but for one object.
pub(super) fn users_of(catalog: &Catalog, database: u32, except: u32, uses: Uses<'_>) -> Vec<Dependent> {
    let mut out = Vec::new();
    for object in catalog.objects().filter(|object| object.oid() != except) {
        let inside = match &**object {
            Object::Relation(o) => o.database == database,
            Object::Index(o) => o.database == database,
            Object::Type(o) => o.database == database,
            Object::Routine(o) => o.database == database,
            _ => false,
        };
        if inside {
            of_object(object, uses, &mut out);
        }
    }
    out
}

/// What of an object has a text that uses what `uses` looks for.
fn of_object(object: &Object, uses: Uses<'_>, out: &mut Vec<Dependent>) {
    match object {
        Object::Relation(o) => of_relation(o, uses, out),
        Object::Index(i) => {
            let expressions = i.columns.iter().filter_map(|c| c.expression.as_ref()).map(|e| &e.text);
            if expressions.chain(&i.condition).any(|text| uses(text, i.path.as_deref())) {
                let settled = is_settled(i.path.as_deref());
                out.push(Dependent { shown: shown_index(i), what: DependentObject::Index(i.oid), settled });
            }
        }
        Object::Type(t) => {
            if let TypeBody::Domain(d) = &t.body
                && (d.default.as_ref().is_some_and(|text| uses(text, d.default_path.as_deref()))
                    || d.checks.iter().any(|c| uses(&c.condition, c.path.as_deref())))
            {
                let what = DependentObject::Kept("a domain");
                let mut paths = d.checks.iter().map(|c| &c.path).chain(d.default.as_ref().map(|_| &d.default_path));
                let settled = paths.all(|path| is_settled(path.as_deref()));
                out.push(Dependent { shown: shown_type(t), what, settled });
            }
        }
        Object::Routine(o) => {
            let path = o.path.as_deref();
            let by_default = o.arguments.iter().filter_map(|a| a.default.as_ref()).any(|text| uses(text, path));
            if (o.atomic && uses(&o.body, path)) || by_default {
                let shown = format!("{} {}", o.kind.name(), shown_plainly(o));
                let settled = is_settled(path);
                out.push(Dependent { shown, what: DependentObject::Routine(o.oid), settled });
            }
        }
        _ => {}
    }
}

/// Whether a text calls a function of a schema by the schema's name.
fn calls_within(text: &str, schemas: &[&str]) -> bool {
    let Ok(list) = tokens(text) else { return false };
    list.windows(4).any(|part| {
        let schema = match &part[0].kind {
            Tok::Word(word) | Tok::Quoted(word) => schemas.contains(&&**word),
            _ => false,
        };
        schema && part[1].kind == Tok::Punct(b'.') && part[3].kind == Tok::Punct(b'(')
    })
}

/// What of an object calls a function of the schema of temporary objects, which goes with the session.
pub(super) fn temporary_calls(catalog: &Catalog, object: &Object) -> Vec<Dependent> {
    let mut out = Vec::new();
    if let Some(own) = catalog.temp_schema()
        && !catalog.is_temporary(object)
    {
        of_object(object, &|text, _| calls_within(text, &["pg_temp", &own.name]), &mut out);
    }
    out
}

/// What keeps a function: what uses it, and what uses the operators that it computes.
fn lines_of(catalog: &Catalog, users: &[Dependent], on: &str) -> Vec<String> {
    let mut lines = Vec::new();
    for user in users {
        lines.push(format!("{} depends on {on}", user.shown));
        if let DependentObject::Operator(oid) = user.what {
            let further = catalog.operator(oid).map_or_else(Vec::new, |o| operator_drop::dependents(catalog, o));
            lines.extend(further.iter().map(|further| format!("{} depends on {}", further.shown, user.shown)));
        }
    }
    lines
}

impl Ddl<'_> {
    pub(super) async fn drop_routines(
        &self,
        kind: RoutineKind,
        names: &[RoutineName],
        if_exists: bool,
        cascade: bool,
    ) -> Result<&'static str> {
        for name in names {
            let catalog = self.catalog();
            with_env(self.core, &catalog, |_| ());
            match self.find_routine(&catalog, kind, name)? {
                Ok(found) => {
                    self.lock_own_to_drop(&catalog, &found).await?;
                    self.drop_routine(found.oid(), cascade, &[]).await?;
                }
                Err(missing) => {
                    let in_catalog = name.name.schema().is_none_or(|s| s == "pg_catalog");
                    if in_catalog && !builtin::procs_named(name.name.name()).is_empty() && name.arguments.is_some() {
                        let message = missing.message().replacen("function ", "cannot drop function ", 1);
                        let message = message.replace(" does not exist", "");
                        let message = format!("{message} because it is required by the database system");
                        return Err(SqlError::new("2BP01", message));
                    }
                    if !if_exists {
                        return Err(missing);
                    }
                    self.core.notice("NOTICE", SqlError::new("00000", skipped(name, kind)));
                }
            }
        }
        Ok(match kind {
            RoutineKind::Function => "DROP FUNCTION",
            RoutineKind::Procedure => "DROP PROCEDURE",
            RoutineKind::Routine => "DROP ROUTINE",
        })
    }

    /// Drops a routine; what calls it goes with it, or keeps it.
    pub(super) async fn drop_routine(&self, oid: u32, cascade: bool, together: &[u32]) -> Result<()> {
        self.lock_to_drop(oid).await?;
        let catalog = self.catalog();
        let Some(r) = catalog.routine(oid) else { return Ok(()) };
        let mut users = dependents(&catalog, r);
        users.retain(|user| !together.contains(&user.of()));
        if !users.is_empty() && !cascade {
            let this = format!("{} {}", r.kind.name(), shown_plainly(r));
            return Err(needed(&this, lines_of(&catalog, &users, &this).join("\n")));
        }
        let shown: Vec<&str> = users.iter().map(|user| user.shown.as_str()).collect();
        self.tell_cascade(&shown);
        for user in users {
            self.drop_user(user, "FUNCTION").await?;
        }
        self.take_away(oid, None).await
    }

    /// A relation goes: the routines that have the type of its rows, and those whose bodies of the standard name it, go with it or keep it.
    pub(super) async fn drop_routines_about(&self, r: &Relation, cascade: bool, together: &[u32]) -> Result<()> {
        let catalog = self.catalog();
        if !catalog.has_routines() {
            return Ok(());
        }
        let row = clearway_engine::catalog::types::row_type(r.oid);
        let about = |f: &&Routine| f.names_relation(r.oid) || row.is_some_and(|row| uses_type(f, row));
        let about: Vec<&Routine> = catalog.routines().filter(about).filter(|f| !together.contains(&f.oid)).collect();
        for f in about {
            let named = format!("{} {}", f.kind.name(), shown_plainly(f));
            if !cascade {
                let this = shown(r);
                return Err(needed_by(&[named], &this, &this));
            }
            self.tell_cascade(&[named]);
            Box::pin(stack::deeper_polls(self.drop_routine(f.oid, true, together))).await?;
        }
        Ok(())
    }

    /// Drops what uses an object of a kind that goes.
    pub(super) async fn drop_user(&self, user: Dependent, kind: &str) -> Result<()> {
        let what = user.what;
        match what {
            DependentObject::Kept(by) => {
                let what = kind.to_ascii_lowercase();
                Err(SqlError::unsupported(format!("DROP {kind} ... CASCADE while {by} calls the {what}")))
            }
            DependentObject::Operator(oid) => Box::pin(stack::deeper_polls(self.drop_operator(oid, true, &[]))).await,
            DependentObject::View(oid) | DependentObject::Index(oid) => {
                Box::pin(stack::deeper_polls(self.drop_one(oid, true, &[]))).await
            }
            DependentObject::Routine(oid) => Box::pin(stack::deeper_polls(self.drop_routine(oid, true, &[]))).await,
            DependentObject::Default(table, _)
            | DependentObject::Check(table, _)
            | DependentObject::Policy(table, _) => {
                self.lock(table, LockMode::AccessExclusive).await?;
                let Some(mut fresh) = self.catalog().relation(table).cloned() else { return Ok(()) };
                match what {
                    DependentObject::Default(_, column) => fresh.columns[column].default = None,
                    DependentObject::Check(_, name) => fresh.checks.retain(|c| c.name != name),
                    DependentObject::Policy(_, policy) => fresh.security.policies.retain(|p| p.oid != policy),
                    _ => {}
                }
                self.put(Object::Relation(fresh)).await
            }
        }
    }
}

/// Whether a routine has a type, or arrays of it, among its arguments or as its result.
fn uses_type(r: &Routine, ty: Oid) -> bool {
    let array = array_of(ty).unwrap_or(ty);
    r.arguments.iter().map(|a| a.type_oid).chain([r.result]).any(|used| used == ty || used == array)
}

/// What DROP IF EXISTS says of a routine that is not there.
fn skipped(name: &RoutineName, kind: RoutineKind) -> String {
    let what = if kind == RoutineKind::Procedure { "procedure" } else { "function" };
    if let Some(missing) = user::missing_schema(name.name.schema()) {
        return format!("{}, skipping", missing.message());
    }
    match &name.arguments {
        Some(arguments) => {
            // The types as they were understood, not as they are known: they may not exist.
            let types: Vec<String> = arguments.iter().map(|a| a.ty.name.dotted()).collect();
            format!("{what} {}({}) does not exist, skipping", name.name.dotted(), types.join(","))
        }
        None => format!("{what} {}() does not exist, skipping", name.name.dotted()),
    }
}

#[cfg(test)]
mod tests {
    use super::{calls, calls_within};

    #[test]
    fn a_call_is_told_from_a_column() {
        assert!(calls("a + F (b)", "f"));
        assert!(calls("public.f(1)", "f") && calls("\"f\"(1)", "f"));
        assert!(!calls("f + g(1)", "f") && !calls("'f(1)'", "f"));
        assert!(calls_within("1 + pg_temp . f (a)", &["pg_temp"]) && calls_within("\"pg_temp_3\".f()", &["pg_temp_3"]));
        assert!(!calls_within("pg_temp.f + f(1)", &["pg_temp"]) && !calls_within("public.f(1)", &["pg_temp"]));
    }
}
