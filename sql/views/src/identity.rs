//! What an object is called, by its catalog, its number and its column: `pg_describe_object`, `pg_identify_object`,
//! `pg_identify_object_as_address`. The names are read from the rows of the catalogs, so objects of the system and of users have them alike.
//!
//! Source: PostgreSQL 15's `objectaddress.c`.

use super::SystemViews;
use clearway_context::names::quote;
use clearway_context::views::{self, SystemView};
use clearway_exec::{Keys, Row, Run, SoughtRows, ViewRows};
use clearway_syntax::error::{Result, SqlError};
use clearway_values::types::datum::Array;
use clearway_values::types::{Datum, Oid, aliases, element_of, facts, format_type, oid};

/// An object that is there.
struct Named {
    /// Its schema, where its kind has one.
    schema: Option<String>,
    /// Its name, where that and the schema are enough to find it.
    name: Option<String>,
    identity: String,
    /// As `pg_describe_object` has it.
    words: String,
    /// As CREATE and DROP name it: names, and types of arguments.
    names: Vec<String>,
    arguments: Vec<String>,
}

/// The kinds of objects whose rows are in a catalog: what one is called that is not there.
#[rustfmt::skip]
const KINDS: &[(&str, &str)] = &[
    ("pg_class", "relation"), ("pg_proc", "routine"), ("pg_type", "type"), ("pg_constraint", "constraint"), ("pg_namespace", "schema"), ("pg_authid", "role"),
    ("pg_database", "database"), ("pg_attrdef", "default value"), ("pg_operator", "operator"), ("pg_language", "language"), ("pg_cast", "cast"),
    ("pg_collation", "collation"), ("pg_opclass", "operator class"), ("pg_opfamily", "operator family"), ("pg_am", "access method"), ("pg_tablespace", "tablespace"),
    ("pg_extension", "extension"), ("pg_policy", "policy"), ("pg_rewrite", "rule"), ("pg_trigger", "trigger"), ("pg_statistic_ext", "statistics object"),
    ("pg_ts_parser", "text search parser"), ("pg_ts_dict", "text search dictionary"), ("pg_ts_template", "text search template"), ("pg_ts_config", "text search configuration"),
    ("pg_foreign_data_wrapper", "foreign-data wrapper"), ("pg_foreign_server", "server"), ("pg_user_mapping", "user mapping"), ("pg_default_acl", "default acl"),
    ("pg_event_trigger", "event trigger"), ("pg_parameter_acl", "parameter ACL"), ("pg_publication", "publication"), ("pg_publication_namespace", "publication namespace"),
    ("pg_publication_rel", "publication relation"), ("pg_subscription", "subscription"), ("pg_transform", "transform"), ("pg_conversion", "conversion"),
    ("pg_amop", "operator of access method"), ("pg_amproc", "function of access method"), ("pg_largeobject", "large object"),
];

/// A row of a catalog, read by the names of its columns.
struct Found<'r> {
    run: &'r Run<'r>,
    view: &'static SystemView,
    row: Row,
}

impl Found<'_> {
    fn value(&self, column: &str) -> &Datum {
        let at = self.view.columns.iter().position(|(name, _)| *name == column);
        at.and_then(|at| self.row.get(at)).unwrap_or(&Datum::Null)
    }

    fn text(&self, column: &str) -> String {
        self.value(column).as_str().unwrap_or("").to_owned()
    }

    fn oid(&self, column: &str) -> Oid {
        self.value(column).as_i64().unwrap_or(0) as Oid
    }

    fn schema(&self, column: &str) -> String {
        find(self.run, "pg_namespace", "oid", self.oid(column), |_| true)
            .map_or(String::new(), |found| found.text("nspname"))
    }

    /// The name of a row of another catalog.
    fn name_of(&self, column: &str, table: &str, name: &str) -> String {
        find(self.run, table, "oid", self.oid(column), |_| true).map_or(String::new(), |found| found.text(name))
    }
}

/// The row whose column has a number and that fits.
fn find<'r>(
    run: &'r Run<'r>,
    table: &str,
    column: &'static str,
    number: Oid,
    fits: impl Fn(&Found<'r>) -> bool,
) -> Option<Found<'r>> {
    let view = views::find("pg_catalog", table)?;
    let place = view.columns.iter().position(|(name, _)| *name == column)?;
    // VKY-1: the others are built as a whole.
    let is_key = views::keys::of(view, place).is_some();
    let sought = is_key.then(|| SoughtRows { column, place, keys: Keys::Oids(vec![number]) });
    let rows = SystemViews.rows(view, sought.as_ref(), None, run);
    let mut found = rows.into_iter().map(|row| Found { run, view, row });
    found.find(|found| found.oid(column) == number && fits(found))
}

/// A type with its schema, where SQL has no name of its own for it.
fn qualified_type(run: &Run<'_>, ty: Oid) -> String {
    if let Some(element) = element_of(ty).filter(|_| !matches!(ty, oid::INT2VECTOR | oid::OIDVECTOR)) {
        return qualified_type(run, element) + "[]";
    }
    let own_name = facts(ty).is_some_and(|facts| facts.sql_name != facts.name && ty < 16_000) || ty == oid::BIT;
    match find(run, "pg_type", "oid", ty, |_| true).filter(|_| !own_name) {
        Some(found) => dotted(&[&found.schema("typnamespace"), &found.text("typname")]),
        None => format_type(ty.into()),
    }
}

fn dotted(names: &[&str]) -> String {
    names.iter().map(|name| quote(name)).collect::<Vec<_>>().join(".")
}

/// The kind of a relation by its letter.
fn relation_kind(letter: &str) -> &'static str {
    match letter {
        "r" | "p" => "table",
        "i" => "index",
        "S" => "sequence",
        "v" => "view",
        "m" => "materialized view",
        "c" => "composite type",
        _ => "relation",
    }
}

/// `table t`, as the session's path leads to it.
fn relation_words(found: &Found<'_>) -> String {
    let shown = aliases::output(oid::REGCLASS, found.oid("oid"), &found.run.names);
    format!("{} {shown}", relation_kind(&found.text("relkind")))
}

fn list(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// Relations and their columns.
fn relation(found: &Found<'_>, part: i32) -> Option<Named> {
    let (schema, name) = (found.schema("relnamespace"), found.text("relname"));
    let mut named = Named {
        identity: dotted(&[&schema, &name]),
        words: relation_words(found),
        names: list(&[&schema, &name]),
        arguments: Vec::new(),
        schema: Some(schema),
        name: Some(name),
    };
    if part != 0 {
        let of = |a: &Found<'_>| a.value("attnum").as_i64() == Some(i64::from(part));
        let column = find(found.run, "pg_attribute", "attrelid", found.oid("oid"), of)?.text("attname");
        named.identity = format!("{}.{}", named.identity, quote(&column));
        named.words = format!("column {column} of {}", named.words);
        named.names.push(column);
    }
    Some(named)
}

fn routine(found: &Found<'_>) -> Named {
    let (schema, name) = (found.schema("pronamespace"), found.text("proname"));
    let types: Vec<Oid> = match found.value("proargtypes") {
        Datum::Array(types) => types.values.iter().filter_map(|ty| Some(ty.as_i64()? as Oid)).collect(),
        _ => Vec::new(),
    };
    let arguments: Vec<String> = types.iter().map(|ty| qualified_type(found.run, *ty)).collect();
    Named {
        identity: format!("{}({})", dotted(&[&schema, &name]), arguments.join(",")),
        words: format!("function {}", aliases::output(oid::REGPROCEDURE, found.oid("oid"), &found.run.names)),
        names: list(&[&schema, &name]),
        arguments,
        schema: Some(schema),
        name: None,
    }
}

fn type_(found: &Found<'_>) -> Named {
    let ty = found.oid("oid");
    let identity = qualified_type(found.run, ty);
    Named {
        schema: Some(found.schema("typnamespace")),
        name: Some(found.text("typname")),
        words: format!("type {}", aliases::output(oid::REGTYPE, ty, &found.run.names)),
        names: vec![identity.clone()],
        arguments: Vec::new(),
        identity,
    }
}

fn operator(found: &Found<'_>) -> Named {
    let (schema, name) = (found.schema("oprnamespace"), found.text("oprname"));
    let operands: Vec<String> = ["oprleft", "oprright"]
        .iter()
        .map(|side| found.oid(side))
        .map(|ty| match ty {
            0 => "NONE".to_owned(),
            ty => qualified_type(found.run, ty),
        })
        .collect();
    Named {
        identity: format!("{}.{name}({})", quote(&schema), operands.join(",")),
        words: format!("operator {}", aliases::output(oid::REGOPERATOR, found.oid("oid"), &found.run.names)),
        names: list(&[&schema, &name]),
        arguments: operands.into_iter().filter(|operand| operand != "NONE").collect(),
        schema: Some(schema),
        name: None,
    }
}

/// What belongs to a relation: a constraint, a policy, a rule.
fn of_relation(found: &Found<'_>, kind: &str, name: &str, relation_column: &str) -> Option<Named> {
    let name = found.text(name);
    let of = find(found.run, "pg_class", "oid", found.oid(relation_column), |_| true)?;
    let on = relation(&of, 0)?;
    let mut names = on.names;
    names.push(name.clone());
    Some(Named {
        schema: None,
        name: None,
        identity: format!("{} on {}", quote(&name), on.identity),
        words: format!("{kind} {name} on {}", on.words),
        names,
        arguments: Vec::new(),
    })
}

fn constraint(found: &Found<'_>) -> Option<Named> {
    let schema = Some(found.schema("connamespace"));
    if found.oid("conrelid") != 0 {
        return of_relation(found, "constraint", "conname", "conrelid").map(|named| Named { schema, ..named });
    }
    let (name, domain) = (found.text("conname"), qualified_type(found.run, found.oid("contypid")));
    Some(Named {
        schema,
        name: None,
        identity: format!("{} on {domain}", quote(&name)),
        words: format!("constraint {name}"),
        names: vec![domain],
        arguments: vec![name],
    })
}

fn default_value(found: &Found<'_>) -> Option<Named> {
    let of = find(found.run, "pg_class", "oid", found.oid("adrelid"), |_| true)?;
    let column = relation(&of, found.value("adnum").as_i64()? as i32)?;
    Some(Named {
        schema: None,
        name: None,
        identity: format!("for {}", column.identity),
        words: format!("default value for {}", column.words),
        ..column
    })
}

fn cast(found: &Found<'_>) -> Named {
    let (from, to) = (found.oid("castsource"), found.oid("casttarget"));
    let (source, target) = (qualified_type(found.run, from), qualified_type(found.run, to));
    Named {
        schema: None,
        name: None,
        identity: format!("({source} AS {target})"),
        words: format!("cast from {} to {}", format_type(from.into()), format_type(to.into())),
        names: vec![source],
        arguments: vec![target],
    }
}

/// A class or a family of operators.
fn of_method(found: &Found<'_>, kind: &str, prefix: &str) -> Named {
    let column = |name: &str| format!("{prefix}{name}");
    let (schema, name) = (found.schema(&column("namespace")), found.text(&column("name")));
    let method = found.name_of(&column("method"), "pg_am", "amname");
    Named {
        identity: format!("{} USING {}", dotted(&[&schema, &name]), quote(&method)),
        words: format!("{kind} {} for access method {method}", quote(&name)),
        names: list(&[&method, &schema, &name]),
        arguments: Vec::new(),
        schema: Some(schema),
        name: Some(name),
    }
}

/// What has a name and no schema.
fn global(found: &Found<'_>, kind: &str, column: &str) -> Named {
    let name = found.text(column);
    Named {
        schema: None,
        identity: quote(&name),
        words: format!("{kind} {name}"),
        names: vec![name.clone()],
        arguments: Vec::new(),
        name: Some(name),
    }
}

fn collation(found: &Found<'_>) -> Named {
    let (schema, name) = (found.schema("collnamespace"), found.text("collname"));
    Named {
        identity: dotted(&[&schema, &name]),
        words: format!("collation {}", quote(&name)),
        names: list(&[&schema, &name]),
        arguments: Vec::new(),
        schema: Some(schema),
        name: Some(name),
    }
}

/// The kind of an object, and its names if it is there.
fn named(run: &Run<'_>, class: Oid, number: Oid, part: i32) -> Result<(String, Option<Named>)> {
    let unknown = || SqlError::internal(format!("unrecognized object class: {class}"));
    let table = views::listed(class).filter(|view| view.schema == "pg_catalog");
    if part != 0 && table.is_none_or(|view| view.name != "pg_class") {
        return Err(SqlError::internal(format!("invalid non-zero objectSubId for object class {class}")));
    }
    let (table, kind) =
        KINDS.iter().find(|(name, _)| table.is_some_and(|view| view.name == *name)).ok_or_else(unknown)?;
    let Some(found) = find(run, table, "oid", number, |_| true) else { return Ok(((*kind).to_owned(), None)) };
    let plain = |named: Named| ((*kind).to_owned(), Some(named));
    Ok(match *table {
        "pg_class" => {
            let of = if part == 0 { "" } else { " column" };
            (format!("{}{of}", relation_kind(&found.text("relkind"))), relation(&found, part))
        }
        "pg_proc" => {
            let kind = match found.text("prokind").as_str() {
                "a" => "aggregate",
                "p" => "procedure",
                _ => "function",
            };
            (kind.to_owned(), Some(routine(&found)))
        }
        "pg_constraint" => {
            let of = if found.oid("conrelid") == 0 { "domain" } else { "table" };
            (format!("{of} constraint"), constraint(&found))
        }
        "pg_attrdef" => ((*kind).to_owned(), default_value(&found)),
        "pg_policy" => ((*kind).to_owned(), of_relation(&found, kind, "polname", "polrelid")),
        "pg_rewrite" => ((*kind).to_owned(), of_relation(&found, kind, "rulename", "ev_class")),
        "pg_type" => plain(type_(&found)),
        "pg_operator" => plain(operator(&found)),
        "pg_cast" => plain(cast(&found)),
        "pg_collation" => plain(collation(&found)),
        "pg_opclass" => plain(of_method(&found, kind, "opc")),
        "pg_opfamily" => plain(of_method(&found, kind, "opf")),
        "pg_namespace" => plain(global(&found, kind, "nspname")),
        "pg_authid" => plain(global(&found, kind, "rolname")),
        "pg_database" => plain(global(&found, kind, "datname")),
        "pg_language" => plain(global(&found, kind, "lanname")),
        "pg_am" => plain(global(&found, kind, "amname")),
        "pg_tablespace" => plain(global(&found, kind, "spcname")),
        "pg_extension" => plain(global(&found, kind, "extname")),
        _ => return Err(SqlError::unsupported(format!("the name of an object of {table}"))),
    })
}

/// pg_describe_object. None: the object is not there.
pub(super) fn described(run: &Run<'_>, class: Oid, number: Oid, part: i32) -> Result<Option<String>> {
    if class == 0 && number == 0 {
        return Ok(None);
    }
    Ok(named(run, class, number, part)?.1.map(|named| named.words))
}

fn arguments(args: &[Datum]) -> (Oid, Oid, i32) {
    let number = |at: usize| args.get(at).and_then(Datum::as_i64).unwrap_or(0);
    (number(0) as Oid, number(1) as Oid, number(2) as i32)
}

/// pg_identify_object.
pub(super) fn identified(run: &Run<'_>, args: &[Datum]) -> Result<Vec<Row>> {
    let (class, number, part) = arguments(args);
    let (kind, named) = named(run, class, number, part)?;
    let text = |value: Option<String>| value.map_or(Datum::Null, Datum::text);
    let Some(named) = named else { return Ok(vec![vec![Datum::text(kind), Datum::Null, Datum::Null, Datum::Null]]) };
    let quoted = |name: Option<String>| text(name.map(|name| quote(&name)));
    Ok(vec![vec![Datum::text(kind), quoted(named.schema), quoted(named.name), Datum::text(named.identity)]])
}

/// pg_identify_object_as_address.
pub(super) fn as_address(run: &Run<'_>, args: &[Datum]) -> Result<Vec<Row>> {
    let (class, number, part) = arguments(args);
    let (kind, named) = named(run, class, number, part)?;
    let texts = |names: Vec<String>| {
        Datum::Array(Array::one_dimensional(oid::TEXT, names.into_iter().map(Datum::text).collect()).into())
    };
    let Some(named) = named else { return Ok(vec![vec![Datum::text(kind), Datum::Null, Datum::Null]]) };
    Ok(vec![vec![Datum::text(kind), texts(named.names), texts(named.arguments)]])
}
