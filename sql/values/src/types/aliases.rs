//! The types that show an oid by a name: regclass, regtype, regproc, regprocedure, regoper, regoperator, regnamespace, regrole,
//! regcollation.

use super::operator::{self, UserOperator};
use super::routine::{self, Signature};
use super::text::{Conversion, Names};
use super::{Oid, extension, format_type, oid, user};
use crate::builtin::{self, Operator, Proc};
use crate::error::{Result, SqlError, code};
use std::sync::Arc;

/// The collations that Clearway has, with PostgreSQL's oids.
const COLLATIONS: [(Oid, &str); 4] = [(100, "default"), (950, "C"), (951, "POSIX"), (962, "ucs_basic")];

/// Whether a type shows an oid by a name.
pub fn is_alias(ty: Oid) -> bool {
    use oid::{REGCLASS, REGCOLLATION, REGNAMESPACE, REGOPER, REGOPERATOR, REGPROC, REGPROCEDURE, REGROLE, REGTYPE};
    matches!(
        ty,
        REGCLASS | REGCOLLATION | REGNAMESPACE | REGOPER | REGOPERATOR | REGPROC | REGPROCEDURE | REGROLE | REGTYPE
    )
}

/// The oid that a text names.
///
/// # Errors
/// 42P01, 42883, 42704, 3F000 and their kin for what does not exist; 42725 for a name that several functions have.
pub fn input(ty: Oid, text: &str, c: &Conversion<'_>) -> Result<Oid> {
    if text == "-" && ty != oid::REGOPER {
        return Ok(0);
    }
    if text.bytes().all(|b| b.is_ascii_digit()) && !text.is_empty() {
        return text.parse().map_err(|_| {
            let message = format!("value \"{text}\" is out of range for type oid");
            SqlError::new(code::NUMERIC_VALUE_OUT_OF_RANGE, message)
        });
    }
    let missing = |code, what: &str, name: &str| SqlError::new(code, format!("{what} \"{name}\" does not exist"));
    match ty {
        oid::REGTYPE => {
            let pseudo = builtin::pseudo_types().iter().find(|(_, name)| *name == folded(unqualified(text)));
            let found = super::resolve(&crate::syntax::parse_type_name(text)?).map(|t| t.oid);
            found.or_else(|e| pseudo.map(|(oid, _)| *oid).ok_or_else(|| SqlError::new(e.code(), e.message())))
        }
        oid::REGCLASS => relation(c.names, text),
        oid::REGNAMESPACE => {
            let name = single(text)?;
            c.names.schema(&name).ok_or_else(|| missing(code::INVALID_SCHEMA_NAME, "schema", &name))
        }
        oid::REGROLE => {
            let name = single(text)?;
            c.names.role(&name).ok_or_else(|| missing(code::UNDEFINED_OBJECT, "role", &name))
        }
        oid::REGCOLLATION => {
            let parts = name_parts(text)?;
            let name = match parts.as_slice() {
                [name] => Some(name),
                [schema, name] if schema == "pg_catalog" => Some(name),
                _ => None,
            };
            let found = COLLATIONS.iter().find(|(_, known)| name.is_some_and(|name| name == known));
            found.map(|(oid, _)| *oid).ok_or_else(|| {
                let message = format!("collation \"{}\" for encoding \"UTF8\" does not exist", parts.join("."));
                SqlError::new(code::UNDEFINED_OBJECT, message)
            })
        }
        oid::REGPROC => {
            let (schema, name) = qualified(text)?;
            let known = builtin::procs_named(&name).iter().map(|p| p.oid);
            let known = known.filter(|_| schema.as_deref().is_none_or(|s| s == "pg_catalog"));
            let own = routine::named(schema.as_deref(), &name)?;
            one(known.chain(own.iter().map(|s| s.oid)), (text, schema.as_deref()), "function")
        }
        oid::REGPROCEDURE => procedure(text),
        oid::REGOPER => {
            let (schema, name) = qualified_operator(text);
            let own = operator::named(schema.as_deref(), &name)?;
            let of_system = schema.as_deref().is_none_or(|s| s == "pg_catalog");
            let known = operators_named(&name).filter(|_| of_system).map(|o| o.oid);
            one(known.chain(own.iter().map(|(o, _)| o.oid)), (text, schema.as_deref()), "operator")
        }
        _ => operator_with_operands(text),
    }
}

/// The relation that a text names.
///
/// # Errors
/// 42P01, 3F000 where the schema does not exist, 42501.
pub fn relation(names: &dyn Names, text: &str) -> Result<Oid> {
    let parts = name_parts(text)?;
    names.relation(&parts)?.ok_or_else(|| {
        let missing =
            || SqlError::new(code::UNDEFINED_TABLE, format!("relation \"{}\" does not exist", parts.join(".")));
        let schema = parts.len().checked_sub(2).map(|at| parts[at].as_str());
        user::missing_schema(schema).unwrap_or_else(missing)
    })
}

fn unqualified(text: &str) -> &str {
    let text = text.trim();
    text.strip_prefix("pg_catalog.").unwrap_or(text)
}

/// The schema, if one is written, and the name of an operator.
fn qualified_operator(text: &str) -> (Option<String>, String) {
    match text.trim().rsplit_once('.') {
        Some((schema, name)) => (Some(folded(schema)), name.to_owned()),
        None => (None, text.trim().to_owned()),
    }
}

/// An operator of a user, with its schema where its name alone does not lead to it.
fn shown_operator(o: &UserOperator, shown: &str) -> String {
    if operator::is_visible(o) { shown.to_owned() } else { format!("{}.{shown}", quoted(&o.schema)) }
}

/// The names of `a . "B c".d`, what is not quoted in lower case, as PostgreSQL reads them.
///
/// # Errors
/// 42602 for a text that is no such list: a name that is missing or not closed, blanks inside a name that is not quoted.
pub fn name_parts(text: &str) -> Result<Vec<String>> {
    let invalid = || SqlError::new(code::INVALID_NAME, "invalid name syntax");
    let blank = |c: char| matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{b}' | '\u{c}');
    let mut parts = Vec::new();
    let mut rest = text.trim_start_matches(blank);
    loop {
        let (name, behind) = match rest.strip_prefix('"') {
            Some(quoted) => quoted_name(quoted).ok_or_else(invalid)?,
            None => {
                let end = rest.find(|c| c == '.' || blank(c)).unwrap_or(rest.len());
                (rest[..end].to_lowercase(), &rest[end..])
            }
        };
        // A name between quotes may be empty.
        if name.is_empty() && !rest.starts_with('"') {
            return Err(invalid());
        }
        parts.push(name);
        rest = behind.trim_start_matches(blank);
        match rest.strip_prefix('.') {
            Some(next) => rest = next.trim_start_matches(blank),
            None if rest.is_empty() => return Ok(parts),
            None => return Err(invalid()),
        }
    }
}

/// A name up to the quote that closes it, and what stands behind; a quote within it is written twice.
fn quoted_name(text: &str) -> Option<(String, &str)> {
    let mut name = String::new();
    let mut rest = text;
    loop {
        let (before, behind) = rest.split_once('"')?;
        name.push_str(before);
        match behind.strip_prefix('"') {
            Some(next) => {
                name.push('"');
                rest = next;
            }
            None => return Some((name, behind)),
        }
    }
}

/// The schema, if one is written, and the name.
fn qualified(text: &str) -> Result<(Option<String>, String)> {
    let mut parts = name_parts(text)?;
    let name = parts.pop().unwrap_or_default();
    Ok((parts.pop(), name))
}

/// A name that stands alone.
fn single(text: &str) -> Result<String> {
    match qualified(text)? {
        (None, name) => Ok(name),
        _ => Err(SqlError::new(code::INVALID_NAME, "invalid name syntax")),
    }
}

/// A name as SQL writes it: quoted, too, where it is a keyword that can't be a name of everything, such as `time`.
pub fn quoted(name: &str) -> String {
    let plain =
        name.chars().enumerate().all(|(i, c)| c == '_' || c.is_ascii_lowercase() || (i > 0 && c.is_ascii_digit()));
    let reserved =
        crate::syntax::keywords::lookup(name).is_some_and(|k| k.0 != crate::syntax::keywords::Category::Unreserved);
    if plain && !reserved && !name.is_empty() { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

/// A function of a user, with its schema where its name alone does not lead to it.
fn shown_routine(signature: &Signature) -> String {
    let name = quoted(&signature.name);
    if routine::is_visible(signature) { name } else { format!("{}.{name}", quoted(&signature.schema)) }
}

/// The schema of a function of an extension: that of its types.
fn schema_of(p: &Proc) -> Option<Arc<str>> {
    p.arguments.iter().chain([&p.result]).filter(|ty| extension::is_one(**ty)).find_map(|ty| user::schema(*ty))
}

/// Whether the search path has the schema of a function of an extension.
pub fn is_on_path(function: Oid) -> bool {
    let schema = builtin::proc(function).and_then(schema_of);
    schema.is_some_and(|schema| user::current().is_some_and(|types| types.path().iter().any(|s| **s == *schema)))
}

/// A function of an extension, with its schema where its name alone does not lead to it, or leads to others too.
fn shown_added(p: &Proc) -> String {
    let alone = builtin::extension_procs_named(p.name) == 1 && builtin::procs_named(p.name).is_empty();
    match schema_of(p) {
        Some(schema) if !(alone && is_on_path(p.oid)) => format!("{}.{}", quoted(&schema), quoted(p.name)),
        _ => p.name.to_owned(),
    }
}

/// A name without its quotes; what is not quoted in lower case.
fn folded(text: &str) -> String {
    match text.strip_prefix('"').and_then(|t| t.strip_suffix('"')) {
        Some(quoted) => quoted.replace("\"\"", "\""),
        None => text.to_lowercase(),
    }
}

fn operators_named(name: &str) -> impl Iterator<Item = &'static Operator> + use<'_> {
    builtin::operators().iter().filter(move |o| o.name == name)
}

fn one(mut found: impl Iterator<Item = Oid>, (text, schema): (&str, Option<&str>), what: &str) -> Result<Oid> {
    match (found.next(), found.next()) {
        (Some(oid), None) => Ok(oid),
        (None, _) if let Some(missing) = user::missing_schema(schema) => Err(missing),
        (None, _) if what == "operator" => {
            Err(SqlError::new(code::UNDEFINED_FUNCTION, format!("operator does not exist: {text}")))
        }
        (None, _) => Err(SqlError::new(code::UNDEFINED_FUNCTION, format!("{what} \"{text}\" does not exist"))),
        (Some(_), Some(_)) => {
            let shown = if what == "operator" { text.to_owned() } else { format!("\"{text}\"") };
            Err(SqlError::new(code::AMBIGUOUS_FUNCTION, format!("more than one {what} named {shown}")))
        }
    }
}

/// The types between the parentheses of `name(a, b)`; NONE stands for no type.
fn signature<'t>(text: &'t str, ty: &str) -> Result<(&'t str, Vec<Oid>)> {
    let bad = |what: &str| SqlError::new(code::INVALID_TEXT_REPRESENTATION, format!("expected a {what} parenthesis"));
    let (name, rest) = text.trim().split_once('(').ok_or_else(|| bad("left"))?;
    let list = rest.trim_end().strip_suffix(')').ok_or_else(|| bad("right"))?;
    let mut types = Vec::new();
    for one in list.split(',').map(str::trim).filter(|t| !t.is_empty()) {
        let none = ty == "operator" && one.eq_ignore_ascii_case("none");
        types.push(if none { 0 } else { super::resolve(&crate::syntax::parse_type_name(one)?)?.oid });
    }
    Ok((name, types))
}

fn procedure(text: &str) -> Result<Oid> {
    let (name, types) = signature(text, "function")?;
    let (schema, name) = qualified(name)?;
    let known = builtin::procs_named(&name).iter().find(|p| p.arguments == types);
    let known = known.filter(|_| schema.as_deref().is_none_or(|s| s == "pg_catalog")).map(|p| p.oid);
    let own = routine::named(schema.as_deref(), &name)?.iter().find(|s| s.types() == types).map(|s| s.oid);
    known.or(own).ok_or_else(|| {
        let missing = || SqlError::new(code::UNDEFINED_FUNCTION, format!("function \"{text}\" does not exist"));
        user::missing_schema(schema.as_deref()).unwrap_or_else(missing)
    })
}

fn operator_with_operands(text: &str) -> Result<Oid> {
    let (name, types) = signature(text, "operator")?;
    let missing = || SqlError::new(code::UNDEFINED_FUNCTION, format!("operator does not exist: {text}"));
    let [left, right] = types[..] else {
        let hint = if types.len() == 1 { "missing argument" } else { "too many arguments" };
        return Err(SqlError::new(code::UNDEFINED_PARAMETER, hint));
    };
    let (schema, name) = qualified_operator(name);
    let is_one = |l: Oid, r: Oid| l == left && r == right;
    let own = operator::named(schema.as_deref(), &name)?;
    let own = own.iter().find(|(o, _)| is_one(o.left, o.right)).map(|(o, before)| (o.oid, *before));
    let mut named = operators_named(&name).filter(|_| schema.as_deref().is_none_or(|s| s == "pg_catalog"));
    let known = named.find(|o| is_one(o.left, o.right)).map(|o| o.oid);
    match (own, known) {
        (Some((own, true)), _) | (Some((own, _)), None) => Ok(own),
        (_, known) => known.ok_or_else(|| user::missing_schema(schema.as_deref()).unwrap_or_else(missing)),
    }
}

/// A type as a signature shows it.
fn shown_type(ty: Oid) -> String {
    if ty == 0 { "NONE".to_owned() } else { format_type(ty.into()) }
}

fn shown_procedure(p: &Proc) -> String {
    let types: Vec<String> = p.arguments.iter().map(|t| shown_type(*t)).collect();
    format!("{}({})", p.name, types.join(","))
}

/// What an oid is shown as.
pub fn output(ty: Oid, value: Oid, names: &dyn Names) -> String {
    if value == 0 {
        return if ty == oid::REGOPER || ty == oid::REGOPERATOR { "0" } else { "-" }.to_owned();
    }
    let found = match ty {
        oid::REGTYPE => Some(format_type(value.into())).filter(|shown| shown != "???"),
        oid::REGCLASS => names.relation_name(value),
        oid::REGNAMESPACE => names.schema_name(value),
        oid::REGROLE => names.role_name(value),
        oid::REGCOLLATION => COLLATIONS.iter().find(|c| c.0 == value).map(|c| match c.1 {
            "ucs_basic" => c.1.to_owned(),
            name => format!("\"{name}\""),
        }),
        oid::REGPROC if extension::is_one(value) => builtin::proc(value).map(shown_added),
        oid::REGPROC => builtin::proc(value)
            .map(|p| match builtin::procs_named(p.name) {
                [_] => p.name.to_owned(),
                _ => format!("pg_catalog.{}", p.name),
            })
            .or_else(|| routine::of_oid(value).map(|s| shown_routine(&s))),
        oid::REGPROCEDURE => {
            let own = || {
                let signature = routine::of_oid(value)?;
                let types: Vec<String> = signature.types().iter().map(|t| shown_type(*t)).collect();
                Some(format!("{}({})", shown_routine(&signature), types.join(",")))
            };
            builtin::proc(value).map(shown_procedure).or_else(own)
        }
        oid::REGOPER => {
            let alone = |o: &UserOperator| {
                let others = operator::named(None, &o.name).map_or(0, |found| found.len());
                operators_named(&o.name).next().is_none() && others == 1
            };
            let own = |o: Arc<UserOperator>| match alone(&o) {
                true => shown_operator(&o, &o.name),
                false => format!("{}.{}", quoted(&o.schema), o.name),
            };
            let known = builtin::operator(value).map(|o| match operators_named(o.name).nth(1) {
                None => o.name.to_owned(),
                Some(_) => format!("pg_catalog.{}", o.name),
            });
            known.or_else(|| operator::of_oid(value).map(own))
        }
        _ => {
            let known = |o: &Operator| format!("{}({},{})", o.name, shown_type(o.left), shown_type(o.right));
            let own = || operator::of_oid(value).map(|o| shown_operator(&o, &o.shown()));
            builtin::operator(value).map(known).or_else(own)
        }
    };
    found.unwrap_or_else(|| value.to_string())
}
