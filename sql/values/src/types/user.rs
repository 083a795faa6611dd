//! The types that users define, as the running statement sees them: enums, domains, composite types, the types of tables' rows, those that an
//! extension brings, and the types of their arrays.
//!
//! Code asks for the facts of a type everywhere, by number alone. So a session's types are found through the thread: the code that polls
//! a statement installs the session's types for the duration of the poll ([`within`], [`enter`]).
//!
//! # Invariants
//! - USR-1: the numbers of these types begin at [`FIRST_OID`]; a lower number is never searched here.
//! - USR-2: a type's facts are kept for the life of the process: code holds them as static. Each type that is created takes some hundred
//!   bytes of the process for good, and the same again each time it is renamed.
//! - USR-3: the meaning of a name in a stored text (default, CHECK, policy, view) does not depend on the search path of the session that
//!   evaluates it: the text is planned on the path on which it was written.
//! - USR-4: a stored text calls the functions that existed when it was written. A function of the same name that is created later, in a
//!   schema of the path or with arguments that match better, is not called; otherwise a role that may create functions could make the
//!   text run its own function.

use super::datum::{Datum, EnumLabel, RowShape};
use super::routine::Routines;
use super::{Oid, SqlType, TypeFacts};
use crate::error::{Result, SqlError, code};
use clearway_base::sync::Mutex;
use std::cell::RefCell;
use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

/// The first number of a type that a user defines or an extension brings (EXN-1).
pub const FIRST_OID: Oid = super::extension::FIRST_OID;

/// Judges the values of a domain.
pub trait DomainCheck: Send + Sync + std::fmt::Debug {
    /// Whether a value, NULL too, meets the condition.
    ///
    /// # Errors
    /// Those of the condition.
    fn holds(&self, value: &Datum) -> Result<bool>;
}

/// A domain.
#[derive(Clone, Debug)]
pub struct Domain {
    /// The type below it, which is no domain.
    pub base: SqlType,
    /// No nulls.
    pub not_null: bool,
    /// Its conditions by name, those of a domain below it first.
    pub checks: Vec<(String, Arc<dyn DomainCheck>)>,
}

/// What a type is.
#[derive(Clone, Debug)]
pub enum Kind {
    /// An enum: its labels in order.
    Enum(Vec<Arc<EnumLabel>>),
    /// A domain.
    Domain(Domain),
    /// The type of another one's arrays.
    Array,
    /// Rows of a shape.
    Composite(Arc<RowShape>),
    /// A base type of an extension.
    Base,
}

/// The types of the rows of tables: made when they are asked for, since most tables' never are.
pub trait RowTypes: Send + Sync + std::fmt::Debug {
    /// The type of a number.
    fn of_oid(&self, oid: Oid) -> Option<UserType>;
    /// The type of the rows of the table or view of a name.
    fn of_name(&self, schema: &str, name: &str) -> Option<UserType>;
    /// Whether the session's role may look for names in a schema.
    fn may_look_into(&self, schema: &str) -> bool;
    /// Whether there is such a schema.
    fn has_schema(&self, schema: &str) -> bool;
    /// The name of an object of a schema: quoted where SQL needs it, and with its schema where the search path does not lead there.
    fn shown(&self, schema: Oid, name: &str) -> Option<String>;
}

/// A type.
#[derive(Clone, Debug)]
pub struct UserType {
    /// What pg_type says of it.
    pub facts: &'static TypeFacts,
    /// The schema.
    pub schema: Arc<str>,
    /// What it is.
    pub kind: Kind,
}

/// Types of tables' rows that have been asked for.
type RowTypeCache = Arc<Mutex<HashMap<Oid, UserType>>>;

/// The types of a catalog.
#[derive(Debug, Default)]
pub struct UserTypes {
    by_oid: HashMap<Oid, UserType>,
    by_name: HashMap<(Arc<str>, &'static str), Oid>,
    /// The schemas in which names without one are looked for.
    path: Vec<String>,
    /// The types of tables' rows, and those that have been asked for.
    rows: Option<(Arc<dyn RowTypes>, RowTypeCache)>,
    /// The functions, procedures and operators; none: there are none.
    routines: Option<Arc<dyn Routines>>,
}

impl UserTypes {
    /// No types, and this search path.
    pub fn new(path: Vec<String>) -> UserTypes {
        UserTypes { path, ..UserTypes::default() }
    }

    /// Adds a type.
    pub fn add(&mut self, ty: UserType) {
        self.by_name.insert((ty.schema.clone(), ty.facts.name), ty.facts.oid);
        self.by_oid.insert(ty.facts.oid, ty);
    }

    /// The types of tables' rows are found there.
    pub fn with_rows(mut self, rows: Arc<dyn RowTypes>) -> UserTypes {
        self.rows = Some((rows, Arc::new(Mutex::new("sql/types/rows", HashMap::new()))));
        self
    }

    /// Functions, procedures and operators are found there.
    pub fn with_routines(mut self, routines: Arc<dyn Routines>) -> UserTypes {
        self.routines = Some(routines);
        self
    }

    /// Where functions, procedures and operators are found.
    pub fn routines(&self) -> Option<&Arc<dyn Routines>> {
        self.routines.as_ref()
    }

    /// The schemas in which names without one are looked for.
    pub fn path(&self) -> &[String] {
        &self.path
    }

    /// Whether the session's role may look for names in a schema.
    ///
    /// # Errors
    /// 42501; a definition's names were found when it was written (USR-3).
    pub fn may_look_into(&self, schema: &str) -> Result<()> {
        match &self.rows {
            Some((rows, _)) if definition_path().is_none() && !rows.may_look_into(schema) => {
                Err(SqlError::new("42501", format!("permission denied for schema {schema}")))
            }
            _ => Ok(()),
        }
    }

    /// What `f` says of the type of a number.
    pub fn get<R>(&self, oid: Oid, f: impl FnOnce(&UserType) -> R) -> Option<R> {
        if let Some(found) = self.by_oid.get(&oid) {
            return Some(f(found));
        }
        let (rows, asked) = self.rows.as_ref()?;
        if let Some(found) = asked.lock().get(&oid) {
            return Some(f(found));
        }
        let found = rows.of_oid(oid)?;
        let said = f(&found);
        asked.lock().insert(oid, found);
        Some(said)
    }

    fn find(&self, schema: Option<&str>, name: &str) -> Option<&'static TypeFacts> {
        // A session's types have no temporary ones of other sessions, so `pg_temp` is the only schema with such a name.
        let in_schema = |t: &UserType, schema: &str| match schema {
            "pg_temp" => t.schema.starts_with("pg_temp_"),
            _ => &*t.schema == schema,
        };
        let at = |schema: &str| {
            let own = self.by_oid.values().find(|t| t.facts.name == name && in_schema(t, schema)).map(|t| t.facts);
            own.or_else(|| Some(self.rows.as_ref()?.0.of_name(schema, name)?.facts))
        };
        match schema {
            Some(schema) => at(schema),
            None => match definition_path() {
                Some(path) => path.schemas.iter().find_map(|schema| at(schema)),
                None => self.path.iter().find_map(|schema| at(schema)),
            },
        }
    }
}

/// Facts that live as long as the process (USR-2).
pub fn static_facts(facts: TypeFacts, name: &str, sql_name: &str) -> &'static TypeFacts {
    type Known = HashMap<(Oid, String, String), &'static TypeFacts>;
    static KNOWN: OnceLock<Mutex<Known>> = OnceLock::new();
    let mut known = KNOWN.get_or_init(|| Mutex::new("sql/types", Known::new())).lock();
    clearway_base::memory::uncharged(|| {
        let key = (facts.oid, name.to_owned(), sql_name.to_owned());
        *known.entry(key).or_insert_with(|| {
            let (name, sql_name) = (Box::leak(name.into()), Box::leak(sql_name.into()));
            Box::leak(Box::new(TypeFacts { name, sql_name, ..facts }))
        })
    })
}

/// Where a session keeps its types.
pub type Slot = Arc<Mutex<Arc<UserTypes>>>;

/// An empty slot.
pub fn slot() -> Slot {
    Arc::new(Mutex::new("sql/session/types", Arc::default()))
}

thread_local! {
    static HERE: RefCell<Option<Slot>> = const { RefCell::new(None) };
}

/// Where the names of a stored text lead.
#[derive(Debug)]
pub struct DefinitionPath {
    /// The schemas in which names without one are looked for.
    pub schemas: Arc<[String]>,
    /// The functions that users had defined by the names that the text calls when it was written: it means no other (USR-4). None: the text is
    /// older than this list.
    pub routines: Option<Vec<Oid>>,
}

thread_local! {
    static PATH: RefCell<Option<Arc<DefinitionPath>>> = const { RefCell::new(None) };
}

/// Puts the path back that held before.
struct PathBefore(Option<Arc<DefinitionPath>>, #[allow(dead_code)] super::operator::Met);

impl Drop for PathBefore {
    fn drop(&mut self) {
        PATH.set(self.0.take());
    }
}

/// While `f` runs, names without a schema, of types and in values of reg* types, are looked for in these schemas (USR-3).
pub fn on_path<R>(path: Arc<DefinitionPath>, f: impl FnOnce() -> R) -> R {
    let _before = PathBefore(PATH.replace(Some(path)), super::operator::Met::apart());
    f()
}

/// While `f` runs, names are looked for as in a statement of the session: the body of a function, wherever its call stands.
pub fn off_path<R>(f: impl FnOnce() -> R) -> R {
    let _before = PathBefore(PATH.replace(None), super::operator::Met::apart());
    f()
}

/// The same of a future: whenever it runs.
pub async fn run_on_path<F: Future>(path: Option<Arc<DefinitionPath>>, future: F) -> F::Output {
    let mut future = std::pin::pin!(future);
    std::future::poll_fn(|cx| match &path {
        Some(path) => on_path(path.clone(), || future.as_mut().poll(cx)),
        None => future.as_mut().poll(cx),
    })
    .await
}

/// The path of the definition whose text is being planned on this thread; none: the session's holds.
pub fn definition_path() -> Option<Arc<DefinitionPath>> {
    PATH.with_borrow(Clone::clone)
}

/// The types of the session that runs on this thread; none outside of a statement.
pub fn current() -> Option<Arc<UserTypes>> {
    HERE.with_borrow(|slot| slot.as_ref().map(|slot| slot.lock().clone()))
}

/// What `f` says of the type of a number, if a user defined it.
fn with<R>(oid: Oid, f: impl FnOnce(&UserType) -> R) -> Option<R> {
    if oid < FIRST_OID {
        return None; // USR-1
    }
    current()?.get(oid, f)
}

/// Whether a type is an enum.
pub fn is_enum(oid: Oid) -> bool {
    with(oid, |t| matches!(t.kind, Kind::Enum(_))) == Some(true)
}

/// Whether a type is a domain.
pub fn is_domain(oid: Oid) -> bool {
    with(oid, |t| matches!(t.kind, Kind::Domain(_))) == Some(true)
}

/// The schema of a type.
pub fn schema(oid: Oid) -> Option<Arc<str>> {
    with(oid, |t| t.schema.clone())
}

/// The facts of a number.
pub fn facts(oid: Oid) -> Option<&'static TypeFacts> {
    with(oid, |t| t.facts)
}

/// The type of a name.
///
/// # Errors
/// 42501 for a schema that the session's role may not look into; a definition's names were found when it was written (USR-3).
pub fn find(schema: Option<&str>, name: &str) -> Result<Option<&'static TypeFacts>> {
    let Some(types) = current() else { return Ok(None) };
    schema.map_or(Ok(()), |schema| types.may_look_into(schema))?;
    Ok(types.find(schema, name))
}

/// 3F000 where a name that leads to nothing has a schema that does not exist.
pub fn missing_schema(schema: Option<&str>) -> Option<SqlError> {
    let schema = schema?;
    let types = current()?;
    let (rows, _) = types.rows.as_ref()?;
    let message = || format!("schema \"{schema}\" does not exist");
    (!rows.has_schema(schema)).then(|| SqlError::new(code::INVALID_SCHEMA_NAME, message()))
}

/// The name of an object of a schema as messages show it: quoted where SQL needs it, and with its schema where the search path does not lead there.
pub fn shown(schema: Oid, name: &str) -> String {
    let shown = current().and_then(|types| types.rows.as_ref().and_then(|(rows, _)| rows.shown(schema, name)));
    shown.unwrap_or_else(|| name.to_owned())
}

/// Whether a type is a composite one, or that of a table's rows.
pub fn is_composite(oid: Oid) -> bool {
    with(oid, |t| matches!(t.kind, Kind::Composite(_))) == Some(true)
}

/// The shape of the rows of a composite type.
pub fn shape(oid: Oid) -> Option<Arc<RowShape>> {
    let shape = |t: &UserType| match &t.kind {
        Kind::Composite(shape) => Some(shape.clone()),
        _ => None,
    };
    with(oid, shape).flatten()
}

/// The type below a domain; any other type itself.
pub fn base(ty: SqlType) -> SqlType {
    let below = |t: &UserType| match &t.kind {
        Kind::Domain(domain) => Some(domain.base),
        _ => None,
    };
    with(ty.oid, below).flatten().unwrap_or(ty)
}

/// The labels of an enum, in order.
pub fn labels(oid: Oid) -> Option<Vec<Arc<EnumLabel>>> {
    let labels = |t: &UserType| match &t.kind {
        Kind::Enum(labels) => Some(labels.clone()),
        _ => None,
    };
    with(oid, labels).flatten()
}

fn find_label(oid: Oid, wanted: impl Fn(&EnumLabel) -> bool) -> Option<Datum> {
    let find = |t: &UserType| match &t.kind {
        Kind::Enum(labels) => labels.iter().find(|l| wanted(l)).map(|l| Datum::Enum(l.clone())),
        _ => None,
    };
    with(oid, find).flatten()
}

/// The label of a text.
///
/// # Errors
/// 22P02.
pub fn label(oid: Oid, text: &str) -> Result<Datum> {
    find_label(oid, |l| &*l.text == text).ok_or_else(|| {
        let name = facts(oid).map_or("enum", |f| f.sql_name);
        let message = format!("invalid input value for enum {name}: \"{text}\"");
        SqlError::new(code::INVALID_TEXT_REPRESENTATION, message)
    })
}

/// The label at a place.
pub fn label_at(oid: Oid, order: i64) -> Option<Datum> {
    find_label(oid, |l| l.order == order)
}

/// Checks a value that is to be one of a domain.
///
/// # Errors
/// 23502, 23514.
pub fn check(oid: Oid, value: &Datum) -> Result<()> {
    let Some(found) = with(oid, UserType::clone) else { return Ok(()) };
    let Kind::Domain(domain) = &found.kind else { return Ok(()) };
    let name = found.facts.name;
    let named = |e: SqlError| e.data_type(&*found.schema, name);
    if domain.not_null && value.is_null() {
        let message = format!("domain {} does not allow null values", found.facts.sql_name);
        return Err(named(SqlError::new("23502", message)));
    }
    for (constraint, check) in &domain.checks {
        if !check.holds(value)? {
            let shown = found.facts.sql_name;
            let message = format!("value for domain {shown} violates check constraint \"{constraint}\"");
            return Err(named(SqlError::new("23514", message)).constraint(constraint.as_str()));
        }
    }
    Ok(())
}

/// A condition of a domain by its name: its own before those of a domain below it.
pub fn check_of(oid: Oid, constraint: &str) -> Option<Arc<dyn DomainCheck>> {
    let Kind::Domain(domain) = with(oid, UserType::clone)?.kind else { return None };
    domain.checks.iter().rev().find(|(name, _)| name == constraint).map(|(_, check)| check.clone())
}

/// Puts a session's types in place until it is dropped.
pub struct Entered {
    before: Option<Slot>,
}

/// See [`Entered`].
pub fn enter(slot: Slot) -> Entered {
    Entered { before: HERE.replace(Some(slot)) }
}

impl Drop for Entered {
    fn drop(&mut self) {
        HERE.set(self.before.take());
    }
}

/// A future whose polls have a session's types in place.
pub struct Within<'a, F> {
    slot: Option<Slot>,
    future: Pin<&'a mut F>,
}

/// See [`Within`].
pub fn within<F: Future>(slot: Slot, future: Pin<&mut F>) -> Within<'_, F> {
    Within { slot: Some(slot), future }
}

impl<F: Future> Future for Within<'_, F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        // The slot goes to the thread and comes back: no reference is counted.
        let this = &mut *self;
        let before = HERE.replace(this.slot.take());
        let _back = TakeBack { before, slot: &mut this.slot };
        this.future.as_mut().poll(cx)
    }
}

/// Takes the slot from the thread again, also when the poll panics.
struct TakeBack<'a> {
    before: Option<Slot>,
    slot: &'a mut Option<Slot>,
}

impl Drop for TakeBack<'_> {
    #[inline]
    fn drop(&mut self) {
        *self.slot = HERE.replace(self.before.take());
    }
}
