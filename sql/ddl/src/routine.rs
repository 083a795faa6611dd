//! CREATE, ALTER and COMMENT of functions and procedures; `routine_drop` has DROP.
//!
//! Source: PostgreSQL 15's src/backend/commands/functioncmds.c and src/backend/catalog/pg_proc.c, for the order of the checks and the errors.

use super::operator_texts;
use super::routine_drop::{Dependent, dependents};
use super::{Ddl, missing};
use crate::context::names::own_path;
use crate::context::privileges::denied;
use crate::context::set_value::set_value;
use crate::error::{Result, SqlError, code};
use crate::expr::bind_routines::is_polymorphic;
use crate::planner::environment::with_env;
use crate::syntax::ast::{ExprKind, Literal, TypeName};
use crate::syntax::ddl::Persistence;
use crate::syntax::routine as ast;
use crate::syntax::routine::{
    CreateRoutine, RoutineBody, RoutineChange, RoutineName, RoutineOptions, RoutineSetting, RoutineStatement,
};
use crate::types::{Oid, element_of, format_type, oid, resolve};
use clearway_engine::catalog::{Argument, ArgumentMode, Catalog, Language, Object, Routine, RoutineKind, Volatility};
use clearway_values::builtin;

/// The most arguments (PostgreSQL's FUNC_MAX_ARGS).
const ARGUMENTS_MAX: usize = 100;

/// 42P13.
fn wrong(message: impl Into<String>) -> SqlError {
    SqlError::new("42P13", message)
}

pub(super) fn mode(mode: ast::ArgumentMode) -> ArgumentMode {
    match mode {
        ast::ArgumentMode::In => ArgumentMode::In,
        ast::ArgumentMode::Out => ArgumentMode::Out,
        ast::ArgumentMode::InOut => ArgumentMode::InOut,
        ast::ArgumentMode::Variadic => ArgumentMode::Variadic,
        ast::ArgumentMode::Table => ArgumentMode::Table,
    }
}

/// A type of an argument or a result: pseudo-types, too.
pub(super) fn type_of(name: &TypeName) -> Result<Oid> {
    let written = name.name.name();
    let pseudo = builtin::pseudo_types().iter().find(|(_, known)| *known == written);
    let in_catalog = name.name.schema().is_none_or(|s| s == "pg_catalog");
    match pseudo {
        Some((oid, _)) if in_catalog && name.array_dims == 0 => Ok(*oid),
        // As in PostgreSQL the errors have no place in the statement.
        _ => Ok(resolve(name).map_err(SqlError::nowhere)?.oid),
    }
}

fn is_pseudo(ty: Oid) -> bool {
    builtin::pseudo_types().iter().any(|(oid, _)| *oid == ty)
}

/// The name and the types of the arguments, as errors show them.
pub(super) fn shown(name: &str, types: &[Oid]) -> String {
    let types: Vec<String> = types.iter().map(|ty| format_type((*ty).into())).collect();
    format!("{name}({})", types.join(", "))
}

/// As DROP and its dependents show it.
pub(super) fn shown_plainly(r: &Routine) -> String {
    let types: Vec<String> = r.input_types().iter().map(|ty| format_type((*ty).into())).collect();
    format!("{}({})", crate::context::names::quote(&r.name), types.join(","))
}

impl Ddl<'_> {
    pub(super) async fn routines(&self, s: &RoutineStatement) -> Result<&'static str> {
        match s {
            RoutineStatement::Create(c) => self.create_routine(c).await,
            RoutineStatement::Alter { kind, routine, change } => self.alter_routine(*kind, routine, change).await,
            RoutineStatement::Drop { kind, names, if_exists, cascade } => {
                self.drop_routines(*kind, names, *if_exists, *cascade).await
            }
            RoutineStatement::Comment { kind, routine, text } => {
                self.comment_on_routine(*kind, routine, text.as_deref()).await
            }
            RoutineStatement::Call { .. } => Err(SqlError::internal("CALL defines nothing")),
        }
    }

    async fn create_routine(&self, c: &CreateRoutine) -> Result<&'static str> {
        let name = self.placed(&c.name, Persistence::Permanent).await?;
        let catalog = self.catalog();
        let schema = with_env(self.core, &catalog, |env| env.schema_for(&name))?;
        let language = language_of(c)?;
        let mut r = self.described(c, schema, language)?;
        if r.atomic || r.arguments.iter().any(|a| a.default.is_some()) {
            let path = self.core.path();
            let own = own_path(&path).filter_map(|name| Some(catalog.schema(self.core.database, name)?.oid));
            r.path = Some(own.collect());
        }
        let known = catalog.routines_in(schema, &r.name).find_map(|o| match &**o {
            Object::Routine(old) if old.input_types() == r.input_types() => Some(old.clone()),
            _ => None,
        });
        match known {
            Some(old) if c.replace => {
                self.owns(&Object::Routine(old.clone()))?;
                may_replace(&old, &r)?;
                if (&old.body, old.strict) != (&r.body, r.strict) {
                    self.refuse_computed(&catalog, &old, "another body for a function", |_| true)?;
                }
                (r.oid, r.owner, r.acl) = (old.oid, old.owner, old.acl);
            }
            Some(_) => {
                let message = format!("function \"{}\" already exists with same argument types", r.name);
                return Err(SqlError::new("42723", message));
            }
            None => {
                // A stored text of an older version says only the names of functions: a new one might be meant from now on.
                self.refuse_computed(&catalog, &r, "a function with the name of one", |user| !user.settled)?;
                r.oid = self.new_oid();
                r.acl = self.first_acl('f', schema)?;
            }
        }
        let checks = self.core.show("check_function_bodies")? == "on";
        if !r.atomic {
            // It may call itself.
            self.put(Object::Routine(r.clone())).await?;
        }
        operator_texts::of_body(self, &self.catalog(), &mut r)?;
        if language == Language::Plpgsql {
            if checks {
                self.server.judge_plpgsql(self.core, &r, c.place)?;
            }
        } else if checks || r.atomic {
            let text = r.body.clone();
            r.meanings = self.server.judge_body(self.core, &self.catalog(), &r).map_err(|e| match e.fields().at {
                // PostgreSQL shows the place in the statement.
                Some(_) => e.internal_to(&text),
                None => e.within(format!("SQL function \"{}\"", r.name)),
            })?;
        }
        if r.atomic {
            self.put(Object::Routine(r)).await?;
        }
        Ok(if c.procedure { "CREATE PROCEDURE" } else { "CREATE FUNCTION" })
    }

    /// A routine as the statement describes it.
    fn described(&self, c: &CreateRoutine, schema: u32, language: Language) -> Result<Routine> {
        let mut r = Routine {
            oid: 0,
            database: self.core.database,
            schema,
            name: c.name.name().to_owned(),
            owner: self.role()?,
            acl: Default::default(),
            kind: if c.procedure { RoutineKind::Procedure } else { RoutineKind::Function },
            arguments: self.arguments(c, language)?,
            result: oid::VOID,
            gives_rows: false,
            volatility: Volatility::Volatile,
            strict: false,
            leakproof: false,
            definer: false,
            parallel: 'u',
            cost: None,
            rows: None,
            settings: Vec::new(),
            language,
            body: String::new(),
            atomic: false,
            meanings: Vec::new(),
            path: None,
        };
        self.result(c, &mut r)?;
        self.options(&mut r, &c.options)?;
        match &c.body {
            None => return Err(wrong("no function body specified")),
            Some(RoutineBody::Text(_, Some(_))) => {
                return Err(wrong(format!("only one AS item needed for language \"{}\"", language.name())));
            }
            Some(RoutineBody::Atomic(_)) if language != Language::Sql => {
                return Err(wrong("inline SQL function body only valid for language SQL"));
            }
            Some(RoutineBody::Text(text, None)) => r.body.clone_from(text),
            Some(RoutineBody::Atomic(text)) => {
                if r.inputs().any(|a| is_polymorphic(a.type_oid)) {
                    let message = "SQL function with unquoted function body cannot have polymorphic arguments";
                    return Err(wrong(message));
                }
                r.body.clone_from(text);
                r.atomic = true;
            }
        }
        Ok(r)
    }

    /// What is stored was computed by the functions that a text named when it was written: those must stay what they are.
    fn refuse_computed(
        &self,
        catalog: &Catalog,
        r: &Routine,
        what: &str,
        concerned: impl Fn(&Dependent) -> bool,
    ) -> Result<()> {
        match dependents(catalog, r).iter().find(|d| d.is_computed(catalog) && concerned(d)) {
            Some(user) => Err(SqlError::unsupported(format!("{what} that {} calls", user.shown))),
            None => Ok(()),
        }
    }

    fn arguments(&self, c: &CreateRoutine, language: Language) -> Result<Vec<Argument>> {
        let mut out: Vec<Argument> = Vec::new();
        let mut has_default = false;
        for (at, a) in c.arguments.iter().enumerate() {
            let ty = type_of(&a.ty).map_err(|e| match e.code() {
                code::UNDEFINED_OBJECT => SqlError::new(e.code(), e.message().replace('"', "")),
                _ => e,
            })?;
            let mode = mode(a.mode);
            let argument = Argument { name: a.name.clone(), type_oid: ty, mode, default: None };
            let what = if c.procedure { "procedure" } else { "function" };
            if is_pseudo(ty) && !is_polymorphic(ty) && (argument.is_input() || ty != oid::RECORD) {
                let message = format!("{} functions cannot have arguments of type", called(language));
                return Err(pseudo(language, message, ty));
            }
            if is_polymorphic(ty) && argument.is_output() {
                return Err(SqlError::unsupported("a polymorphic OUT argument").at(a.ty.name.pos));
            }
            if !is_pseudo(ty) {
                self.may_use_type(ty)?;
            }
            if mode == ArgumentMode::Variadic {
                if c.arguments[at + 1..]
                    .iter()
                    .any(|later| matches!(later.mode, ast::ArgumentMode::In | ast::ArgumentMode::InOut))
                {
                    return Err(wrong("VARIADIC parameter must be the last input parameter"));
                }
                if element_of(ty).is_none() && !is_polymorphic(ty) {
                    return Err(wrong("VARIADIC parameter must be an array"));
                }
            }
            if argument.is_input() && has_default && a.default.is_none() {
                let message = "input parameters after one with a default value must also have defaults";
                return Err(wrong(message));
            }
            let mut argument = argument;
            if let Some((_, text)) = &a.default {
                let text = &mut text.clone();
                if !argument.is_input() {
                    return Err(wrong("only input parameters can have default values"));
                }
                has_default = true;
                self.check_default(text, ty)?;
                operator_texts::of_table(self.core, &self.catalog(), None, text)?;
                let literal = matches!(&a.default, Some((e, _)) if matches!(&*e.kind, ExprKind::Literal(Literal::Str(_) | Literal::Null)));
                argument.default = match literal && !is_polymorphic(ty) {
                    true => Some(format!("{text}::{}", format_type(ty.into()))),
                    false => Some(text.clone()),
                };
            }
            if let Some(name) = &argument.name {
                // A TABLE column may not bear the name of an argument either; an IN and an OUT argument may not share one.
                if out.iter().any(|known| known.name.as_ref() == Some(name)) {
                    return Err(wrong(format!("parameter name \"{name}\" used more than once")));
                }
            }
            out.push(argument);
            if out.iter().filter(|a| a.is_input()).count() > ARGUMENTS_MAX {
                let message = format!("{what}s cannot have more than {ARGUMENTS_MAX} arguments");
                return Err(SqlError::new("54023", message));
            }
        }
        Ok(out)
    }

    fn check_default(&self, text: &str, ty: Oid) -> Result<()> {
        let catalog = self.catalog();
        let expr = crate::syntax::parse_expression(text)?;
        let concrete = if is_polymorphic(ty) { None } else { Some(ty) };
        with_env(self.core, &catalog, |env| {
            let scope = crate::expr::Scope::default();
            let mut params = crate::expr::Params::default();
            let mut planner = crate::planner::Planner::new(env).exempt();
            let place = "DEFAULT expressions";
            planner.bind(&scope, &mut params, place, None, |b| {
                let bound = b.bind_unsettled(&expr)?;
                let Some(ty) = concrete else { return Ok(()) };
                let from = bound.ty.oid;
                match b.coerce(bound, ty.into(), crate::types::cast::Context::Assignment)? {
                    Some(_) => Ok(()),
                    None => {
                        let (to, from) = (format_type(ty.into()), format_type(from.into()));
                        let message = format!("argument of DEFAULT must be type {to}, not type {from}");
                        Err(SqlError::new(code::DATATYPE_MISMATCH, message))
                    }
                }
            })
        })
    }

    /// The type of the result.
    fn result(&self, c: &CreateRoutine, r: &mut Routine) -> Result<()> {
        let outputs: Vec<Oid> = r.outputs().map(|a| a.type_oid).collect();
        let is_table = r.arguments.iter().any(|a| a.mode == ArgumentMode::Table);
        let by_outputs = match outputs.as_slice() {
            [] => None,
            [one] => Some(*one),
            _ => Some(oid::RECORD),
        };
        if c.procedure {
            r.result = if outputs.is_empty() { oid::VOID } else { oid::RECORD };
            return Ok(());
        }
        let given = match &c.returns {
            Some((name, gives_rows)) => {
                r.gives_rows = *gives_rows;
                Some(type_of(name)?)
            }
            None => None,
        };
        r.gives_rows |= is_table;
        r.result = match (given, by_outputs) {
            (Some(given), Some(wanted)) if given != wanted => {
                let message =
                    format!("function result type must be {} because of OUT parameters", format_type(wanted.into()));
                return Err(wrong(message));
            }
            (Some(given), _) => given,
            (None, Some(wanted)) => wanted,
            (None, None) => return Err(wrong("function result type must be specified")),
        };
        let (ty, language) = (r.result, r.language);
        if is_pseudo(ty) && !is_polymorphic(ty) && ty != oid::VOID && ty != oid::RECORD {
            if language == Language::Plpgsql && matches!(format_type(ty.into()).as_str(), "trigger" | "event_trigger") {
                return Err(SqlError::unsupported(format!("a function that returns {}", format_type(ty.into()))));
            }
            return Err(pseudo(language, format!("{} functions cannot return type", called(language)), ty));
        }
        if is_polymorphic(ty) && !r.inputs().any(|a| is_polymorphic(a.type_oid)) {
            let shown = format_type(ty.into());
            let detail = format!(
                "A result of type {shown} requires at least one input of type anyelement, anyarray, anynonarray, anyenum, anyrange, or anymultirange."
            );
            return Err(wrong("cannot determine result data type").detail(detail));
        }
        // The type of its bounds does not say which range is meant.
        let is_range = |ty: Oid| matches!(ty, oid::ANYRANGE | oid::ANYMULTIRANGE);
        if is_range(ty) && !r.inputs().any(|a| is_range(a.type_oid)) {
            let shown = format_type(ty.into());
            let detail =
                format!("A result of type {shown} requires at least one input of type anyrange or anymultirange.");
            return Err(wrong("cannot determine result data type").detail(detail));
        }
        if !is_pseudo(ty) {
            self.may_use_type(ty)?;
        }
        Ok(())
    }

    fn options(&self, r: &mut Routine, o: &RoutineOptions) -> Result<()> {
        if let Some(letter) = o.volatility {
            r.volatility = match letter {
                'i' => Volatility::Immutable,
                's' => Volatility::Stable,
                _ => Volatility::Volatile,
            };
        }
        r.strict = o.strict.unwrap_or(r.strict);
        if let Some(leakproof) = o.leakproof {
            if leakproof && !self.judge(&self.catalog()).is_superuser() {
                return Err(SqlError::new("42501", "only superuser can define a leakproof function"));
            }
            r.leakproof = leakproof;
        }
        r.definer = o.definer.unwrap_or(r.definer);
        if let Some(word) = &o.parallel {
            r.parallel = match word.as_str() {
                "safe" => 's',
                "restricted" => 'r',
                "unsafe" => 'u',
                _ => {
                    let message = "parameter \"parallel\" must be SAFE, RESTRICTED, or UNSAFE";
                    return Err(SqlError::new(code::SYNTAX_ERROR, message));
                }
            };
        }
        let positive = |text: &str, what: &str| match text.parse::<f32>() {
            Ok(n) if n > 0.0 => Ok(()),
            _ => Err(SqlError::new(code::INVALID_PARAMETER_VALUE, format!("{what} must be positive"))),
        };
        if let Some(cost) = &o.cost {
            positive(cost, "COST")?;
            r.cost = Some(cost.clone());
        }
        if let Some(rows) = &o.rows {
            positive(rows, "ROWS")?;
            if !r.gives_rows {
                let message = "ROWS is not applicable when function does not return a set";
                return Err(SqlError::new(code::INVALID_PARAMETER_VALUE, message));
            }
            r.rows = Some(rows.clone());
        }
        for setting in &o.settings {
            self.change_setting(r, setting)?;
        }
        Ok(())
    }

    fn change_setting(&self, r: &mut Routine, setting: &RoutineSetting) -> Result<()> {
        let (name, value) = match setting {
            RoutineSetting::ResetAll => {
                r.settings.clear();
                return Ok(());
            }
            RoutineSetting::Reset(name) => (name.clone(), None),
            RoutineSetting::Set(s) => (s.name.clone(), set_value(s)),
            RoutineSetting::FromCurrent(name) => (name.clone(), Some(self.core.show(name)?)),
        };
        if matches!(name.as_str(), "role" | "session_authorization") {
            return Err(SqlError::unsupported(format!("SET {name} for a function")));
        }
        let name = crate::context::settings::find(&name).map_or(name, |known| known.name.to_owned());
        r.settings.retain(|(known, _)| *known != name);
        if let Some(value) = value {
            self.server.check_setting(self.core, &name, &value)?;
            r.settings.push((name, value));
        }
        Ok(())
    }

    async fn alter_routine(
        &self,
        kind: ast::RoutineKind,
        name: &RoutineName,
        change: &RoutineChange,
    ) -> Result<&'static str> {
        let catalog = self.catalog();
        with_env(self.core, &catalog, |_| ());
        let found = self.find_routine(&catalog, kind, name)??;
        self.owns(&found)?;
        let found = match change {
            RoutineChange::Options(_) => found,
            // As in PostgreSQL, DROP waits for these; it may have gone to another owner during the wait.
            _ => {
                let locked = match self.lock_to_drop(found.oid()).await? {
                    Some(locked) => locked,
                    None => self.find_routine(&self.catalog(), kind, name)??,
                };
                self.owns(&locked)?;
                locked
            }
        };
        let catalog = self.catalog();
        let Object::Routine(old) = &*found else { return Err(SqlError::internal("a routine of another kind")) };
        let mut r = old.clone();
        match change {
            RoutineChange::Rename(to) => {
                r.name.clone_from(to);
                self.may_move(&catalog, old, &r)?;
            }
            RoutineChange::Schema(schema) => {
                let to = catalog.schema(self.core.database, schema).ok_or_else(|| missing("schema", schema))?;
                if !self.judge(&catalog).may_with_schema(to, 'C') {
                    return Err(denied("schema", schema));
                }
                let own = catalog.temp_schema().map(|own| own.oid);
                if r.schema != to.oid && own.is_some() && (own == Some(r.schema) || own == Some(to.oid)) {
                    return Err(SqlError::new("0A000", "cannot move objects into or out of temporary schemas"));
                }
                r.schema = to.oid;
                self.may_move(&catalog, old, &r)?;
            }
            RoutineChange::Owner(role) => {
                let owner = self.role_named(&catalog, role)?.oid;
                self.may_change_owner(&catalog, &found, owner)?;
                r.acl.change_owner(r.owner, owner);
                r.owner = owner;
            }
            RoutineChange::Options(options) => {
                self.options(&mut r, options)?;
            }
        }
        self.put(Object::Routine(r)).await?;
        Ok(match kind {
            ast::RoutineKind::Function => "ALTER FUNCTION",
            ast::RoutineKind::Procedure => "ALTER PROCEDURE",
            ast::RoutineKind::Routine => "ALTER ROUTINE",
        })
    }

    /// Whether a routine may have another name or schema: nothing has this one yet, and no stored text calls it by the old one.
    fn may_move(&self, catalog: &Catalog, old: &Routine, new: &Routine) -> Result<()> {
        if (old.schema, &old.name) == (new.schema, &new.name) {
            return Ok(());
        }
        let taken = catalog.routines_in(new.schema, &new.name).any(|o| match &**o {
            Object::Routine(r) => r.input_types() == new.input_types(),
            _ => false,
        });
        if taken {
            let schema = catalog.get(new.schema).map_or("", |s| s.name());
            let shown = shown(&new.name, &new.input_types());
            let message = format!("function {shown} already exists in schema \"{schema}\"");
            return Err(SqlError::new("42723", message));
        }
        if let Some(user) = dependents(catalog, old).iter().find(|user| !user.is_operator()) {
            let what = format!("another name or schema for a function that {} calls", user.shown);
            return Err(SqlError::unsupported(what));
        }
        Ok(())
    }

    async fn comment_on_routine(
        &self,
        kind: ast::RoutineKind,
        name: &RoutineName,
        text: Option<&str>,
    ) -> Result<&'static str> {
        let catalog = self.catalog();
        with_env(self.core, &catalog, |_| ());
        let found = self.find_routine(&catalog, kind, name)??;
        self.owns(&found)?;
        if !self.lock_commented(&found).await? {
            self.find_routine(&self.catalog(), kind, name)??;
        }
        self.put_comment(found.oid(), String::new(), text).await?;
        Ok("COMMENT")
    }
}

/// As PostgreSQL's errors call functions of a language.
fn called(language: Language) -> &'static str {
    match language {
        Language::Sql => "SQL",
        Language::Plpgsql => "PL/pgSQL",
    }
}

/// A pseudo-type that functions of a language have no values of.
fn pseudo(language: Language, message: String, ty: Oid) -> SqlError {
    let message = format!("{message} {}", format_type(ty.into()));
    match language {
        Language::Sql => wrong(message),
        Language::Plpgsql => SqlError::new(code::FEATURE_NOT_SUPPORTED, message),
    }
}

fn language_of(c: &CreateRoutine) -> Result<Language> {
    let atomic = matches!(c.body, Some(RoutineBody::Atomic(_)));
    let language = match &c.language {
        Some(language) => language.to_lowercase(),
        None if atomic => "sql".to_owned(),
        None => return Err(wrong("no language specified")),
    };
    match language.as_str() {
        "sql" => Ok(Language::Sql),
        "plpgsql" => Ok(Language::Plpgsql),
        "c" | "internal" | "plpython3u" | "plperl" | "plperlu" | "pltcl" | "pltclu" => {
            Err(SqlError::unsupported(format!("a function in language {language}")))
        }
        _ => Err(SqlError::new(code::UNDEFINED_OBJECT, format!("language \"{language}\" does not exist"))),
    }
}

/// Whether a routine may take the place of another one with the same arguments.
fn may_replace(old: &Routine, new: &Routine) -> Result<()> {
    if old.kind != new.kind {
        let detail = format!("\"{}\" is a {}.", old.name, old.kind.name());
        return Err(SqlError::new(code::WRONG_OBJECT_TYPE, "cannot change routine kind").detail(detail));
    }
    let hint = format!("Use DROP {} {} first.", old.kind.name().to_uppercase(), shown_plainly(old));
    let row =
        |r: &Routine| -> Vec<(Option<String>, Oid)> { r.outputs().map(|a| (a.name.clone(), a.type_oid)).collect() };
    if old.result != new.result || old.gives_rows != new.gives_rows {
        let message = match old.kind {
            RoutineKind::Procedure => "cannot change whether a procedure has output parameters",
            RoutineKind::Function => "cannot change return type of existing function",
        };
        return Err(wrong(message).hint(hint));
    }
    if old.result == oid::RECORD && row(old) != row(new) {
        return Err(wrong("cannot change return type of existing function")
            .detail("Row type defined by OUT parameters is different.")
            .hint(hint));
    }
    for (old, new) in old.inputs().zip(new.inputs()) {
        if let Some(name) = &old.name
            && new.name.as_ref() != Some(name)
        {
            return Err(wrong(format!("cannot change name of input parameter \"{name}\"")).hint(hint));
        }
    }
    let defaults = |r: &Routine| r.inputs().filter(|a| a.default.is_some()).count();
    if defaults(new) < defaults(old) {
        return Err(wrong("cannot remove parameter defaults from existing function").hint(hint));
    }
    Ok(())
}
