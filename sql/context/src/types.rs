//! Makes the types that users define, from a catalog, for the session's use.

use super::names::quote;
use super::privileges::{Judge, denied};
use super::routines::{CatalogRoutines, definition_path};
use clearway_engine::catalog::types::{row_array, row_type, table_of_row_type};
use clearway_engine::catalog::{Catalog, Domain, Extension, Object, Relation, TypeBody, TypeObject};
use clearway_syntax::error::{Result, SqlError};
use clearway_values::expr::bind_routines::with_called;
use clearway_values::expr::{Binder, Bound, Env, Params, Scope, ScopeColumn, Session, eval};
use clearway_values::types::datetime::Format;
use clearway_values::types::datum::{EnumLabel, RowShape};
use clearway_values::types::text::{Conversion, Names, NoNames};
use clearway_values::types::user::{self, DefinitionPath, DomainCheck, Kind, RowTypes, Slot, UserType, UserTypes};
use clearway_values::types::{Datum, Oid, SqlType, TypeFacts, extension};
use std::cell::Cell;
use std::sync::{Arc, LazyLock, OnceLock};

/// Puts the types of a catalog into a session's slot.
pub fn refresh(slot: &Slot, catalog: &Arc<Catalog>, (database, role): (Oid, Option<Oid>), path: &[String]) {
    let rows = Rows { catalog: catalog.clone(), database, role, path: path.to_vec() };
    let mut types = UserTypes::new(path.to_vec()).with_rows(Arc::new(rows));
    if catalog.has_operators() {
        clearway_values::types::operator::there_are_some(); // OPR-1
    }
    if catalog.has_routines() || catalog.has_operators() {
        types = types.with_routines(Arc::new(CatalogRoutines { catalog: catalog.clone(), database }));
    }
    for ty in catalog.types().filter(|t| t.database == database) {
        add(&mut types, catalog, (ty, role), path);
    }
    for extension in super::extensions::of(catalog, database) {
        add_of_extension(&mut types, catalog, extension, path);
    }
    *slot.lock() = Arc::new(types);
}

/// The types that an extension brings, and those of their arrays.
fn add_of_extension(types: &mut UserTypes, catalog: &Catalog, made: &Extension, path: &[String]) {
    let Some(schema) = schema_name(catalog, made.schema) else { return };
    for own in extension::TYPES.iter().filter(|own| own.extension == made.name) {
        let shown = shown_name(&schema, own.facts.name, path);
        let facts = user::static_facts(own.facts, own.facts.name, &shown);
        types.add(UserType { facts, schema: schema.clone(), kind: Kind::Base });
        let array = TypeFacts { oid: own.facts.array, category: b'A', array: 0, element: own.facts.oid, ..own.facts };
        let facts = user::static_facts(array, &format!("_{}", own.facts.name), &format!("{shown}[]"));
        types.add(UserType { facts, schema: schema.clone(), kind: Kind::Array });
    }
}

/// The types of the rows of a catalog's tables.
struct Rows {
    catalog: Arc<Catalog>,
    database: Oid,
    role: Option<Oid>,
    path: Vec<String>,
}

impl std::fmt::Debug for Rows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Rows")
    }
}

impl Rows {
    fn of(&self, relation: &Relation, of_arrays: bool) -> Option<UserType> {
        let (row, array) = (row_type(relation.oid)?, row_array(relation.oid)?);
        if relation.database != self.database {
            return None;
        }
        let schema = schema_name(&self.catalog, relation.schema)?;
        let shown = shown_name(&schema, &relation.name, &self.path);
        let own = TypeFacts {
            oid: row,
            name: "",
            len: -1,
            category: b'C',
            preferred: false,
            array,
            element: 0,
            sql_name: "",
        };
        if of_arrays {
            let facts = TypeFacts { oid: array, category: b'A', array: 0, element: row, ..own };
            let name = array_name(&self.catalog, relation.schema, &relation.name, relation.oid);
            let facts = user::static_facts(facts, &name, &format!("{shown}[]"));
            return Some(UserType { facts, schema, kind: Kind::Array });
        }
        let live = || relation.columns.iter().filter(|c| !c.is_dropped());
        let shape = RowShape {
            oid: row,
            names: Some(live().map(|c| c.name.clone()).collect()),
            types: live().map(|c| SqlType { oid: c.type_oid, modifier: c.type_mod }).collect(),
        };
        let facts = user::static_facts(own, &relation.name, &shown);
        Some(UserType { facts, schema, kind: Kind::Composite(shape.into()) })
    }
}

impl RowTypes for Rows {
    fn of_oid(&self, oid: Oid) -> Option<UserType> {
        let (table, of_arrays) = table_of_row_type(oid)?;
        self.of(self.catalog.relation(table)?, of_arrays)
    }

    fn of_name(&self, schema: &str, name: &str) -> Option<UserType> {
        let within = self.catalog.schema(self.database, schema)?.oid;
        match &**self.catalog.in_schema(within, name)? {
            Object::Relation(relation) => self.of(relation, false),
            _ => None,
        }
    }

    fn may_look_into(&self, schema: &str) -> bool {
        let Some(schema) = self.catalog.schema(self.database, schema) else { return true };
        let judge = Judge::new(&self.catalog, self.database, self.role);
        // A role that is gone may look for names, and has no rights to what it finds.
        judge.role().is_none() || judge.may_with_schema(schema, 'U')
    }

    fn has_schema(&self, schema: &str) -> bool {
        is_schema(&self.catalog, self.database, schema)
    }

    fn shown(&self, schema: Oid, name: &str) -> Option<String> {
        Some(shown_name(&schema_name(&self.catalog, schema)?, name, &self.path))
    }
}

/// Whether a database has a schema of a name, or the system has.
pub fn is_schema(catalog: &Catalog, database: Oid, name: &str) -> bool {
    name.starts_with("pg_") || name == "information_schema" || catalog.schema(database, name).is_some()
}

/// The name of the schema of a number.
pub fn schema_name(catalog: &Catalog, oid: Oid) -> Option<Arc<str>> {
    match catalog.get(oid).map(|o| &**o) {
        Some(Object::Schema(s)) => Some(s.name.as_str().into()),
        _ => None,
    }
}

fn shown_name(schema: &str, name: &str, path: &[String]) -> String {
    let plain = quote(name);
    if path.iter().any(|p| p == schema) { plain } else { format!("{}.{plain}", quote(schema)) }
}

/// The name of the array over a type or over a table's rows. As in PostgreSQL it has one underscore in front, and more where a type that was
/// made by itself, or the array over an older one, has that name.
pub fn array_name(catalog: &Catalog, schema: Oid, name: &str, oid: Oid) -> String {
    let made = |name: &str| {
        let relation = || match catalog.in_schema(schema, name).map(|o| &**o) {
            Some(Object::Relation(relation)) => Some(relation.oid),
            _ => None,
        };
        catalog.type_in(schema, name).map(|ty| ty.oid).or_else(relation)
    };
    let is_older_array = |wanted: &str| {
        let below = std::iter::successors(wanted.strip_prefix('_'), |name| name.strip_prefix('_'));
        let older = |name| made(name).filter(|other| *other < oid).map(|other| (name, other));
        below.filter_map(older).any(|(name, other)| array_name(catalog, schema, name, other) == wanted)
    };
    let mut wanted = format!("_{name}");
    while made(&wanted).is_some() || is_older_array(&wanted) {
        wanted.insert(0, '_');
    }
    wanted
}

fn add(types: &mut UserTypes, catalog: &Arc<Catalog>, (ty, role): (&TypeObject, Option<Oid>), path: &[String]) {
    let Some(schema) = schema_name(catalog, ty.schema) else { return };
    let shown = shown_name(&schema, &ty.name, path);
    let (category, len, kind) = match &ty.body {
        TypeBody::Enum(labels) => {
            let label = |l: &clearway_engine::catalog::Label| EnumLabel {
                ty: ty.oid,
                oid: l.oid,
                order: l.order,
                text: l.text.as_str().into(),
            };
            let mut labels: Vec<Arc<EnumLabel>> = labels.iter().map(|l| Arc::new(label(l))).collect();
            labels.sort_by_key(|l| l.order);
            (b'E', 4, Kind::Enum(labels))
        }
        TypeBody::Composite(composite) => {
            let shape = RowShape {
                oid: ty.oid,
                names: Some(composite.attributes.iter().map(|a| a.name.clone()).collect()),
                types: composite.attributes.iter().map(|a| SqlType { oid: a.type_oid, modifier: a.type_mod }).collect(),
            };
            (b'C', -1, Kind::Composite(shape.into()))
        }
        TypeBody::Domain(domain) => {
            let base = SqlType { oid: domain.base, modifier: domain.base_mod };
            // The types of the new catalog are not in place yet.
            let facts = extension::facts(base.oid).or_else(|| clearway_values::types::facts(base.oid));
            let chain = chain(catalog, domain);
            let conditions = chain.iter().rev().flat_map(|d| checks(catalog, (ty.database, role), d, base));
            let below = user::Domain { base, not_null: chain.iter().any(|d| d.not_null), checks: conditions.collect() };
            (facts.map_or(b'U', |f| f.category), facts.map_or(-1, |f| f.len), Kind::Domain(below))
        }
    };
    let own =
        TypeFacts { oid: ty.oid, name: "", len, category, preferred: false, array: ty.array, element: 0, sql_name: "" };
    types.add(UserType { facts: user::static_facts(own, &ty.name, &shown), schema: schema.clone(), kind });
    let array = TypeFacts { oid: ty.array, len: -1, category: b'A', array: 0, element: ty.oid, ..own };
    let name = array_name(catalog, ty.schema, &ty.name, ty.oid);
    let facts = user::static_facts(array, &name, &format!("{shown}[]"));
    types.add(UserType { facts, schema, kind: Kind::Array });
}

/// A domain, the domain that it is over, and so on.
fn chain<'c>(catalog: &'c Catalog, domain: &'c Domain) -> Vec<&'c Domain> {
    let mut chain = vec![domain];
    let mut next = domain.under;
    while let Some(Object::Type(TypeObject { body: TypeBody::Domain(under), .. })) =
        next.and_then(|oid| catalog.get(oid)).map(|object| &**object)
    {
        chain.push(under);
        next = under.under;
    }
    chain
}

/// The conditions of a domain itself. One that can't be bound any more refuses every value.
fn checks(
    catalog: &Arc<Catalog>,
    (database, role): (Oid, Option<Oid>),
    domain: &Domain,
    base: SqlType,
) -> Vec<(String, Arc<dyn DomainCheck>)> {
    let check = |c: &clearway_engine::catalog::Check| -> (String, Arc<dyn DomainCheck>) {
        let path = c.path.as_ref().map(|path| definition_path(catalog, path));
        let judge = role.map(|role| (catalog.clone(), database, role));
        (c.name.clone(), Arc::new(Condition { text: c.condition.clone(), path, base, judge, bound: OnceLock::new() }))
    };
    domain.checks.iter().map(check).collect()
}

/// Binds the condition of a domain, in which the value is called `value`.
///
/// # Errors
/// Whatever is wrong with the text.
pub fn bind_condition(text: &str, base: SqlType) -> Result<Bound> {
    let expr = clearway_syntax::parse_expression(text)?;
    let value = ScopeColumn::plain(None, "value".to_owned(), base, 0);
    let scope = Scope::over(vec![value], None);
    let mut params = Params::default();
    let mut binder = bare_binder(&scope, &mut params, "check constraints");
    let bound = binder.bind_condition(&expr, "CHECK")?;
    if bound.may_wait() {
        return Err(SqlError::unsupported("a function of the session in a condition of a domain"));
    }
    Ok(bound)
}

/// A binder that knows no session: names of objects are not found, formats are the default ones.
pub(super) fn bare_binder<'b>(scope: &'b Scope<'b>, params: &'b mut Params, place: &'static str) -> Binder<'b> {
    Binder {
        scope,
        params,
        collected: None,
        subqueries: None,
        conversion: bare_conversion(),
        place,
        in_aggregate: false,
    }
}

/// The default formats, and no names.
pub(super) fn bare_conversion() -> Conversion<'static> {
    Conversion { format: &FORMAT, now: 0, names: &NoNames }
}

static FORMAT: LazyLock<Format> = LazyLock::new(Format::default);

/// A condition of a domain. It is bound when it is first asked for: only then are the types and functions that it names in place.
struct Condition {
    text: String,
    path: Option<Arc<DefinitionPath>>,
    base: SqlType,
    /// The role that evaluates it needs the right to call its functions; none where an index's term is computed.
    judge: Option<(Arc<Catalog>, Oid, Oid)>,
    bound: OnceLock<Result<Bound>>,
}

impl std::fmt::Debug for Condition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Condition").field("text", &self.text).finish_non_exhaustive()
    }
}

thread_local! {
    /// How many conditions are being bound: one may have a value of its own domain in it.
    static BINDING: Cell<u32> = const { Cell::new(0) };
}

impl Condition {
    fn judged(&self, calls: &[Oid]) -> Result<()> {
        let Some((catalog, database, role)) = &self.judge else { return Ok(()) };
        let judge = Judge::new(catalog, *database, Some(*role));
        let refused = calls.iter().filter_map(|oid| catalog.get(*oid)).find(|object| !judge.may_with(object, 'X'));
        refused.map_or(Ok(()), |object| Err(denied("function", object.name())))
    }

    fn bound(&self) -> Result<&Bound> {
        if self.bound.get().is_none() {
            if BINDING.get() > 0 {
                return Err(SqlError::unsupported("a constant of a domain in a condition of a domain"));
            }
            BINDING.set(1);
            let bind = || bind_condition(&self.text, self.base);
            let (bound, calls) = with_called(|| match &self.path {
                Some(path) => user::on_path(path.clone(), bind),
                None => bind(),
            });
            BINDING.set(0);
            let bound = bound.and_then(|bound| self.judged(&calls).map(|()| bound));
            // Another thread may have been first, with the same.
            let _ = self.bound.set(bound);
        }
        match self.bound.get() {
            Some(bound) => bound.as_ref().map_err(SqlError::clone),
            None => Err(SqlError::internal("a condition that is not bound")),
        }
    }
}

impl DomainCheck for Condition {
    fn holds(&self, value: &Datum) -> Result<bool> {
        let bound = self.bound()?;
        let row = std::slice::from_ref(value);
        let env = Env { row, outer: &[], params: &[], aggregates: &[], session: &NoSession };
        Ok(eval(bound, &env)?.as_bool() != Some(false))
    }
}

/// The session in which conditions of domains and terms of indexes are computed: they depend on their values alone.
pub struct NoSession;

impl Session for NoSession {
    fn format(&self) -> &Format {
        &FORMAT
    }
    fn transaction_start(&self) -> i64 {
        super::core::now()
    }
    fn statement_start(&self) -> i64 {
        super::core::now()
    }
    fn clock(&self) -> i64 {
        super::core::now()
    }
    fn current_user(&self) -> Result<String> {
        Err(SqlError::unsupported("current_user in a condition of a domain"))
    }
    fn session_user(&self) -> Result<String> {
        Err(SqlError::unsupported("session_user in a condition of a domain"))
    }
    fn database(&self) -> String {
        String::new()
    }
    fn schema(&self) -> Option<String> {
        None
    }
    fn version(&self) -> String {
        String::new()
    }
    fn backend_pid(&self) -> i32 {
        0
    }
    fn setting(&self, _: &str) -> Option<String> {
        None
    }
    fn random(&self) -> f64 {
        0.0
    }
    fn seed_random(&self, _: f64) {}
    fn query(&self) -> String {
        String::new()
    }
    fn names(&self) -> &dyn Names {
        &NoNames
    }
}
