//! Functions and procedures that users define: how the binder finds them, and the trait through which the executor calls them. The
//! session, a layer above the executor, implements the trait.
//!
//! # Invariants
//! - RTN-1: nested calls are counted; at most [`DEPTH_MAX`] are open at a time.

use super::core::Core;
use super::extensions;
use super::names::{CatalogNames, quote, split_name};
use super::operators;
use super::types::schema_name;
use clearway_engine::catalog::{ArgumentMode, Catalog, Language, Object, Routine, RoutineKind, Volatility};
use clearway_syntax::error::{Result, SqlError, code};
use clearway_syntax::lexer::{Tok, Token, tokens};
use clearway_txn::mvcc::book::View;
use clearway_values::builtin::procs_named;
use clearway_values::types::datum::RowShape;
use clearway_values::types::operator::UserOperator;
use clearway_values::types::routine::{Input, Routines, Signature};
use clearway_values::types::text::Names as _;
use clearway_values::types::user::DefinitionPath;
use clearway_values::types::{Datum, Oid, SqlType, oid, user};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock};

/// How deep calls may nest.
pub const DEPTH_MAX: u32 = 400;

/// The functions and procedures of a catalog, for the binder.
pub(super) struct CatalogRoutines {
    pub catalog: Arc<Catalog>,
    pub database: Oid,
}

impl std::fmt::Debug for CatalogRoutines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CatalogRoutines")
    }
}

impl Routines for CatalogRoutines {
    fn named(&self, schema: &str, name: &str) -> Vec<Arc<Signature>> {
        let Some(schema) = self.catalog.schema(self.database, schema) else { return Vec::new() };
        let found = self.catalog.routines_in(schema.oid, name).filter_map(|o| match &**o {
            Object::Routine(r) => Some(Arc::new(signature(&self.catalog, r))),
            _ => None,
        });
        found.collect()
    }

    fn of_oid(&self, oid: Oid) -> Option<Arc<Signature>> {
        self.catalog.routine(oid).map(|r| Arc::new(signature(&self.catalog, r)))
    }

    fn operators(&self, schema: &str, name: &str) -> Vec<Arc<UserOperator>> {
        let Some(schema) = self.catalog.schema(self.database, schema) else { return Vec::new() };
        self.catalog.operators_in(schema.oid, name).map(|o| Arc::new(operators::known(&self.catalog, o))).collect()
    }

    fn operator(&self, oid: Oid) -> Option<Arc<UserOperator>> {
        self.catalog.operator(oid).map(|o| Arc::new(operators::known(&self.catalog, o)))
    }
}

/// The columns of the result that a routine declares; none: it declares none.
pub fn outputs(r: &Routine) -> Option<RowShape> {
    let columns: Vec<_> = r.outputs().collect();
    if columns.is_empty() {
        return None;
    }
    let name = |(i, a): (usize, &&clearway_engine::catalog::Argument)| {
        a.name.clone().unwrap_or_else(|| format!("column{}", i + 1))
    };
    Some(RowShape {
        oid: oid::RECORD,
        names: Some(columns.iter().enumerate().map(name).collect()),
        types: columns.iter().map(|a| SqlType::new(a.type_oid)).collect(),
    })
}

/// Stands in a stored path between the schemas and the routines.
const ROUTINES: Oid = 0;

/// Whether a stored path says which routines its text calls (USR-4).
pub fn is_settled(path: Option<&[Oid]>) -> bool {
    path.is_some_and(|path| path.contains(&ROUTINES))
}

/// Adds the routines of all names that texts call, unless the path has them already (USR-4).
pub fn settle<'t>(
    catalog: &Catalog,
    database: Oid,
    path: &mut Option<Vec<Oid>>,
    texts: impl IntoIterator<Item = &'t str>,
) {
    let Some(path) = path.as_mut().filter(|path| !path.contains(&ROUTINES)) else { return };
    path.push(ROUTINES);
    if !catalog.has_routines() {
        return;
    }
    let (mut called, mut fields): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    for text in texts {
        let list = tokens(text).unwrap_or_default();
        let name = |kind: &Tok| match kind {
            Tok::Word(name) | Tok::Quoted(name) => Some(name.to_string()),
            _ => None,
        };
        let before = |pair: &[Token<'_>]| name(&pair[0].kind).filter(|_| pair[1].kind == Tok::Punct(b'('));
        let behind = |pair: &[Token<'_>]| name(&pair[1].kind).filter(|_| pair[0].kind == Tok::Punct(b'.'));
        called.extend(list.windows(2).filter_map(before));
        fields.extend(list.windows(2).filter_map(behind));
    }
    // `t.f` may call a function of the row.
    let takes_row = |r: &Routine| r.inputs().count() == 1 && r.inputs().all(|a| user::is_composite(a.type_oid));
    let is_called = |r: &Routine| called.contains(&r.name) || fields.contains(&r.name) && takes_row(r);
    let known = catalog.routines().filter(|r| r.database == database && is_called(r));
    path.extend(known.map(|r| r.oid));
}

/// Where the names of a text with a stored path lead.
pub fn definition_path(catalog: &Catalog, path: &[Oid]) -> Arc<DefinitionPath> {
    let mut parts = path.split(|oid| *oid == ROUTINES);
    let schemas = parts.next().unwrap_or_default();
    let schemas = schemas.iter().filter_map(|oid| schema_name(catalog, *oid)).map(|name| name.to_string()).collect();
    Arc::new(DefinitionPath { schemas, routines: parts.next().map(<[Oid]>::to_vec) })
}

/// A routine as the binder knows it.
pub fn signature(catalog: &Catalog, r: &Routine) -> Signature {
    let input = |a: &clearway_engine::catalog::Argument| Input {
        name: a.name.clone(),
        ty: a.type_oid,
        default: a.default.clone(),
    };
    Signature {
        oid: r.oid,
        schema: schema_name(catalog, r.schema).unwrap_or_default(),
        name: r.name.clone(),
        procedure: r.kind == RoutineKind::Procedure,
        declared: r.arguments.iter().map(|a| (mode(a.mode), a.name.clone(), a.type_oid)).collect(),
        inputs: r.inputs().map(input).collect(),
        variadic: r.inputs().last().is_some_and(|a| a.mode == ArgumentMode::Variadic),
        result: r.result,
        gives_rows: r.gives_rows,
        outputs: outputs(r).map(Arc::new),
        volatility: letter(r.volatility),
        strict: r.strict,
        apart: r.definer || !r.settings.is_empty() || r.language != Language::Sql,
        body: r.body.clone(),
        atomic: r.atomic,
        path: r.path.as_ref().map(|path| definition_path(catalog, path)),
    }
}

/// The letter of an argument in pg_proc.
pub fn mode(mode: ArgumentMode) -> char {
    match mode {
        ArgumentMode::In => 'i',
        ArgumentMode::Out => 'o',
        ArgumentMode::InOut => 'b',
        ArgumentMode::Variadic => 'v',
        ArgumentMode::Table => 't',
    }
}

/// The letter of pg_proc.
pub fn letter(volatility: Volatility) -> char {
    match volatility {
        Volatility::Immutable => 'i',
        Volatility::Stable => 's',
        Volatility::Volatile => 'v',
    }
}

/// A stored text as a session with another search path must read it: calls of functions that its path does not lead to have their schema.
/// `definition`: the schemas in which the names of the text are looked for.
pub fn qualified(names: &CatalogNames, definition: &[Oid], text: &str) -> String {
    let catalog = &names.catalog;
    let text = &*operators::without_schemas(names, text);
    let sequences = named_sequences(catalog, definition, text);
    if !catalog.has_routines() && extensions::of(catalog, names.database).is_empty() && sequences.is_empty() {
        return text.to_owned();
    }
    let Ok(list) = tokens(text) else { return text.to_owned() };
    let has = |schema: &Oid, name: &str| {
        catalog.routines_in(*schema, name).next().is_some()
            || extensions::schema_of(catalog, names.database, name) == Some(*schema)
    };
    let (mut out, mut copied) = (String::with_capacity(text.len()), 0);
    for (at, pair) in list.windows(2).enumerate() {
        if let Some((_, sequence)) = sequences.iter().find(|(place, _)| *place == at) {
            let shown = names.relation_name(*sequence).unwrap_or_default();
            let (start, end) = (pair[0].start as usize, pair[0].end as usize);
            out.push_str(text.get(copied..start).unwrap_or_default());
            out.push_str(&format!("'{}'", shown.replace('\'', "''")));
            out.push_str(if pair[1].kind == Tok::Typecast { "" } else { "::regclass" });
            copied = end;
        }
        let (Tok::Word(name) | Tok::Quoted(name)) = &pair[0].kind else { continue };
        let after_dot = at > 0 && list[at - 1].kind == Tok::Punct(b'.');
        if pair[1].kind != Tok::Punct(b'(') || after_dot || !procs_named(name).is_empty() {
            continue;
        }
        // The functions of an extension are there on every path; the schema is for a PostgreSQL that reads the text.
        let of_extension = extensions::schema_of(catalog, names.database, name);
        let found = definition.iter().find(|schema| has(schema, name));
        let Some(schema) = found.or(of_extension.as_ref()) else { continue };
        let mut path = names.path.iter().filter_map(|s| Some(catalog.schema(names.database, s)?.oid));
        if path.find(|schema| has(schema, name)) == Some(*schema) {
            continue;
        }
        let start = pair[0].start as usize;
        out.push_str(text.get(copied..start).unwrap_or_default());
        out.push_str(&format!("{}.", quote(&schema_name(catalog, *schema).unwrap_or_default())));
        copied = start;
    }
    out.push_str(text.get(copied..).unwrap_or_default());
    out
}

/// The sequences that calls of their functions in a stored text name, and the places of those names among its tokens.
pub fn named_sequences(catalog: &Catalog, definition: &[Oid], text: &str) -> Vec<(usize, Oid)> {
    let Some(list) = text.contains("val").then(|| tokens(text).unwrap_or_default()) else { return Vec::new() };
    let is_word = |at: usize, words: &[&str]| matches!(list.get(at).map(|token| &token.kind), Some(Tok::Word(word)) if words.contains(&&**word));
    let is = |at: usize, kind: &Tok<'_>| list.get(at).is_some_and(|token| token.kind == *kind);
    let mut found = Vec::new();
    for (at, token) in list.iter().enumerate().skip(2) {
        let Tok::Str(name) = &token.kind else { continue };
        let called = is(at - 1, &Tok::Punct(b'(')) && is_word(at - 2, &["nextval", "currval", "setval"]);
        let parts = split_name(name);
        // A name with its schema means the same on every path.
        let [name] = parts.as_slice() else { continue };
        if !called || (is(at + 1, &Tok::Typecast) && !is_word(at + 2, &["regclass"])) {
            continue;
        }
        let objects = definition.iter().filter_map(|schema| catalog.in_schema(*schema, name));
        found.extend(objects.take(1).filter(|o| matches!(&***o, Object::Sequence(_))).map(|o| (at, o.oid())));
    }
    found
}

/// The same for a text of a relation's definition.
pub fn qualified_of(names: &CatalogNames, relation: Oid, text: &str) -> String {
    let Some(r) = names.catalog.relation(relation) else { return text.to_owned() };
    let columns = r.columns.iter().filter_map(|c| c.path.as_deref());
    let paths = columns.chain(r.checks.iter().filter_map(|c| c.path.as_deref())).flatten().copied();
    let definition: Vec<Oid> = paths.chain([r.schema]).collect();
    qualified(names, &definition, text)
}

/// A call.
pub struct RoutineCall {
    /// The routine.
    pub oid: Oid,
    /// Its arguments; behind those of a polymorphic one stand their types and that of the result.
    pub args: Vec<Datum>,
    /// The rows that are wanted as columns, of these types; none: as single values, or rows.
    pub columns: Option<Vec<SqlType>>,
    /// It is a CALL.
    pub by_call: bool,
    /// What the statement sees that calls.
    pub view: View,
    /// The statement changes or locks rows.
    pub changes: bool,
}

/// A future that may move between threads.
pub type CallFuture<'a> = Pin<Box<dyn Future<Output = Result<Vec<Vec<Datum>>>> + Send + 'a>>;

/// Runs the bodies of routines; the session implements it.
pub trait RoutineRunner: Send + Sync {
    /// The rows that a call gives; of a function that gives no rows, one.
    fn call<'a>(&'a self, core: &'a Core, call: RoutineCall) -> CallFuture<'a>;
}

static RUNNER: OnceLock<&'static dyn RoutineRunner> = OnceLock::new();

/// Has calls carried out by this.
pub fn install(runner: &'static dyn RoutineRunner) {
    // The first one is the same.
    let _ = RUNNER.set(runner);
}

/// Carries out a call.
///
/// # Errors
/// 54001 beyond [`DEPTH_MAX`]; what the body gives.
pub async fn call(core: &Core, call: RoutineCall) -> Result<Vec<Vec<Datum>>> {
    let runner = RUNNER.get().ok_or_else(|| SqlError::internal("no runner of functions is installed"))?;
    let _deeper = Deeper::into(core)?;
    runner.call(core, call).await
}

/// RTN-1
pub struct Deeper<'a>(&'a Core);

impl<'a> Deeper<'a> {
    /// One more call is open, until this is dropped.
    ///
    /// # Errors
    /// 54001 beyond [`DEPTH_MAX`].
    pub fn into(core: &'a Core) -> Result<Deeper<'a>> {
        if core.calls.fetch_add(1, Relaxed) >= DEPTH_MAX {
            core.calls.fetch_sub(1, Relaxed);
            let hint = format!("Calls of functions nest at most {DEPTH_MAX} deep.");
            return Err(SqlError::new(code::STATEMENT_TOO_COMPLEX, "stack depth limit exceeded").hint(hint));
        }
        Ok(Deeper(core))
    }
}

impl Drop for Deeper<'_> {
    fn drop(&mut self) {
        self.0.calls.fetch_sub(1, Relaxed);
    }
}
