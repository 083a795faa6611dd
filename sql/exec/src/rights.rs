//! The functions that ask for the rights of a role: `has_table_privilege` and its variants, `pg_has_role`.
//!
//! # Structure
//! The role, the object and the privileges of a call are read one after the other; [`Judge`] answers. For kinds of objects without access
//! lists here (functions of the system, languages) PostgreSQL's default holds: every role may use them.

use super::Cx;
use clearway_context::privileges::{self, Judge, role_by_oid};
use clearway_context::views;
use clearway_engine::catalog::{Object, Relation};
use clearway_syntax::error::{Result, SqlError, code};
use clearway_values::types::text::Names;
use clearway_values::types::{Datum, Oid};

/// What a call asks about.
enum RightsSubject<'c> {
    /// An object with an access list.
    Object(&'c Object),
    /// A relation of the system; whether only superusers may read it.
    System(bool),
    /// Something that every role may use.
    Public,
}

/// One privilege of a list.
struct AskedPrivilege {
    letter: char,
    grant_option: bool,
}

/// The privileges that a kind of object knows, by the name of the function.
fn known(function: &str) -> &'static str {
    match function {
        "has_table_privilege" => "rawdDxt",
        "has_sequence_privilege" => "rwU",
        "has_any_column_privilege" | "has_column_privilege" => "rawx",
        "has_schema_privilege" => "UC",
        "has_database_privilege" => "CTc",
        "has_function_privilege" => "X",
        "has_tablespace_privilege" => "C",
        "has_parameter_privilege" => "sA",
        _ => "U",
    }
}

fn asked(function: &str, list: &str) -> Result<Vec<AskedPrivilege>> {
    let one = |text: &str| {
        let text = text.trim();
        let lower = text.to_ascii_lowercase();
        let (name, grant_option) = match lower.strip_suffix(" with grant option") {
            Some(name) => (name, true),
            None => (lower.as_str(), false),
        };
        let letter = privileges::letter(name).ok().filter(|letter| known(function).contains(*letter));
        let unknown =
            || SqlError::new(code::INVALID_PARAMETER_VALUE, format!("unrecognized privilege type: \"{text}\""));
        letter.map(|letter| AskedPrivilege { letter, grant_option }).ok_or_else(unknown)
    };
    // A privilege that no table has any more: PostgreSQL still reads its name, and says that no role has it.
    let gone = |text: &&str| {
        let lower = text.trim().to_ascii_lowercase();
        function == "has_table_privilege" && lower.strip_suffix(" with grant option").unwrap_or(&lower) == "rule"
    };
    list.split(',').filter(|text| !gone(text)).map(one).collect()
}

impl<'a> Cx<'a> {
    /// Answers a call of one of these functions.
    ///
    /// # Errors
    /// The code of the kind of object (42704, 42P01, 42703, ...) for names that do not exist, 22023 for unknown privileges.
    pub(super) fn has_privilege(self, function: &'static str, args: &[Datum]) -> Result<Datum> {
        if args.iter().any(Datum::is_null) {
            return Ok(Datum::Null);
        }
        let with_user = args.len() == if function == "has_column_privilege" { 4 } else { 3 };
        let (user, rest) = if with_user { args.split_at(1) } else { (&[][..], args) };
        let catalog = &self.run.names.catalog;
        let of = |role| Judge::new(catalog, self.run.core.database, Some(role));
        // A number that no role has holds nothing; what is asked of it is read all the same.
        let judge = match user.first() {
            None => Some(Judge::of(self.run.core, catalog)),
            Some(user) => self.role(user, function != "pg_has_role")?.map(of),
        };
        let list = rest.last().and_then(Datum::as_str).unwrap_or("");
        if function == "pg_has_role" {
            return self.has_role(judge, &rest[0], list);
        }
        if function == "has_parameter_privilege" {
            asked(function, list)?;
            return Ok(Datum::Bool(judge.is_some_and(|judge| judge.is_superuser())));
        }
        if function == "has_sequence_privilege" {
            asked(function, list)?;
            self.refuse_no_sequence(&rest[0])?;
        }
        let subject = self.object(function, &rest[0])?;
        let asked = asked(function, list)?;
        let Some(subject) = subject else { return Ok(Datum::Null) };
        let Some(judge) = judge else { return Ok(Datum::Bool(false)) };
        if function == "has_column_privilege" {
            return self.has_column(judge, &subject, &rest[0], &rest[1], &asked);
        }
        let some_column = function == "has_any_column_privilege";
        Ok(Datum::Bool(asked.iter().any(|asked| self.holds_privilege(judge, &subject, asked, some_column))))
    }

    fn holds_privilege(
        self,
        judge: Judge<'_>,
        subject: &RightsSubject<'_>,
        asked: &AskedPrivilege,
        some_column: bool,
    ) -> bool {
        match subject {
            RightsSubject::System(hidden) => {
                judge.is_superuser() || (asked.letter == 'r' && !hidden && !asked.grant_option)
            }
            RightsSubject::Public => judge.is_superuser() || !asked.grant_option,
            RightsSubject::Object(object) if asked.grant_option => {
                let (Some(owner), Some((acl, kind))) = (object.owner(), object.acl()) else { return false };
                let grantable = |e: &clearway_engine::catalog::Grant| e.grantable.contains(asked.letter);
                let given = acl.entries(owner, kind).iter().any(|e| grantable(e) && judge.has_rights_of(e.role));
                judge.owns(owner) || given
            }
            RightsSubject::Object(object) => match object {
                Object::Relation(r) if some_column => judge.may_with_some_column(r, asked.letter),
                object => judge.may_with(object, asked.letter),
            },
        }
    }

    fn has_column(
        self,
        judge: Judge<'_>,
        subject: &RightsSubject<'_>,
        table: &Datum,
        column: &Datum,
        asked: &[AskedPrivilege],
    ) -> Result<Datum> {
        let RightsSubject::Object(Object::Relation(relation)) = subject else {
            return Ok(Datum::Bool(asked.iter().any(|asked| self.holds_privilege(judge, subject, asked, false))));
        };
        let Some(at) = column_of(relation, table, column)? else { return Ok(Datum::Null) };
        let held = asked.iter().any(|asked| match asked.grant_option {
            true => judge.owns(relation.owner),
            false => judge.may_with_column(relation, at, asked.letter),
        });
        Ok(Datum::Bool(held))
    }

    /// The number of a role; none for one that does not exist, given by its number.
    fn role(self, role: &Datum, public: bool) -> Result<Option<Oid>> {
        let catalog = &self.run.names.catalog;
        match role {
            Datum::Text(name) if public && &**name == "public" => Ok(Some(0)),
            Datum::Text(name) => {
                let missing = || SqlError::new(code::UNDEFINED_OBJECT, format!("role \"{name}\" does not exist"));
                catalog.role(name).map(|role| Some(role.oid)).ok_or_else(missing)
            }
            other => Ok(other.as_i64().map(|n| n as Oid).filter(|n| role_by_oid(catalog, *n).is_some())),
        }
    }

    fn has_role(self, judge: Option<Judge<'_>>, role: &Datum, list: &str) -> Result<Datum> {
        let role = self.role(role, false)?;
        let mut held = false;
        let asks = |ask: fn(&Judge<'_>, Oid) -> bool| match (&judge, role) {
            (Some(judge), Some(role)) => ask(judge, role),
            (Some(judge), None) => judge.is_superuser(),
            (None, _) => false,
        };
        for asked in list.split(',').map(str::trim) {
            held |= match asked.to_ascii_lowercase().as_str() {
                "usage" => asks(|judge, role| judge.has_rights_of(role)),
                "member" => asks(|judge, role| judge.is_member(role)),
                "usage with admin option"
                | "usage with grant option"
                | "member with admin option"
                | "member with grant option" => asks(|judge, role| judge.is_admin(role)),
                _ => {
                    let message = format!("unrecognized privilege type: \"{asked}\"");
                    return Err(SqlError::new(code::INVALID_PARAMETER_VALUE, message));
                }
            };
        }
        Ok(Datum::Bool(held))
    }

    /// What a call asks about; none for a number that nothing has.
    fn object(self, function: &str, object: &Datum) -> Result<Option<RightsSubject<'a>>> {
        let names = &self.run.names;
        let catalog = &names.catalog;
        let number = match object {
            Datum::Text(name) => self.number_of(function, name)?,
            other => other.as_i64().unwrap_or(0) as Oid,
        };
        // An array has the rights of its elements.
        let element = clearway_values::types::facts(number).map_or(0, |facts| facts.element);
        let number = match function == "has_type_privilege" && catalog.get(element).is_some() {
            true => element,
            false => number,
        };
        let is_schema = function == "has_schema_privilege";
        if is_schema && matches!(number, views::PG_CATALOG | views::INFORMATION_SCHEMA) {
            return Ok(Some(RightsSubject::Public));
        }
        if let Some(view) = views::by_oid(number).filter(|_| is_relation(function)) {
            return Ok(Some(RightsSubject::System(view.is_for_superusers())));
        }
        let public = match function {
            "has_function_privilege" => clearway_values::builtin::proc(number).is_some(),
            "has_type_privilege" => clearway_values::types::facts(number).is_some() && catalog.get(number).is_none(),
            "has_language_privilege" => matches!(number, 12..=14),
            "has_tablespace_privilege" => number == 1663,
            _ => false,
        };
        if public {
            return Ok(Some(if number == 1663 { RightsSubject::System(true) } else { RightsSubject::Public }));
        }
        let fits = |o: &Object| match o {
            Object::Relation(_) => is_relation(function),
            Object::Sequence(_) => matches!(function, "has_table_privilege" | "has_sequence_privilege"),
            Object::Schema(_) => is_schema,
            Object::Database(_) => function == "has_database_privilege",
            Object::Type(_) => function == "has_type_privilege",
            Object::Routine(_) => function == "has_function_privilege",
            _ => false,
        };
        Ok(catalog.get(number).map(|o| &**o).filter(|o| fits(o)).map(RightsSubject::Object))
    }

    /// 42809 for a relation that is no sequence.
    fn refuse_no_sequence(self, object: &Datum) -> Result<()> {
        let number = match object {
            Datum::Text(name) => self.number_of("has_sequence_privilege", name)?,
            other => other.as_i64().unwrap_or(0) as Oid,
        };
        let known = self.run.names.catalog.get(number).map(|o| &**o);
        let name = match known {
            Some(Object::Sequence(_)) => return Ok(()),
            Some(object @ (Object::Relation(_) | Object::Index(_))) => object.name(),
            _ => match views::by_oid(number) {
                Some(view) => view.name,
                None => return Ok(()),
            },
        };
        Err(SqlError::new(code::WRONG_OBJECT_TYPE, format!("\"{name}\" is not a sequence")))
    }

    fn number_of(self, function: &str, name: &str) -> Result<Oid> {
        let names = &self.run.names;
        let missing = |code, what: &str| SqlError::new(code, format!("{what} \"{name}\" does not exist"));
        let conversion = clearway_values::types::text::Conversion {
            format: &self.run.format,
            now: self.run.transaction_started,
            names,
        };
        let by_type = |ty: Oid| {
            let read = clearway_values::types::text::input(ty.into(), name, &conversion)?;
            Ok(read.as_i64().unwrap_or(0) as Oid)
        };
        match function {
            "has_schema_privilege" => names.schema(name).ok_or_else(|| missing(code::INVALID_SCHEMA_NAME, "schema")),
            "has_database_privilege" => {
                names.catalog.database(name).map(|d| d.oid).ok_or_else(|| missing("3D000", "database"))
            }
            "has_function_privilege" => by_type(clearway_values::types::oid::REGPROCEDURE),
            "has_type_privilege" => by_type(clearway_values::types::oid::REGTYPE),
            "has_language_privilege" => match name {
                "internal" => Ok(12),
                "c" => Ok(13),
                "sql" => Ok(14),
                _ => Err(missing(code::UNDEFINED_OBJECT, "language")),
            },
            "has_tablespace_privilege" if name == "pg_default" => Ok(1663),
            "has_tablespace_privilege" => Err(missing(code::UNDEFINED_OBJECT, "tablespace")),
            "has_server_privilege" => Err(missing(code::UNDEFINED_OBJECT, "server")),
            "has_foreign_data_wrapper_privilege" => Err(missing(code::UNDEFINED_OBJECT, "foreign-data wrapper")),
            _ => clearway_values::types::aliases::relation(names, name),
        }
    }
}

fn is_relation(function: &str) -> bool {
    matches!(function, "has_table_privilege" | "has_any_column_privilege" | "has_column_privilege")
}

/// The place of a column, by its name or number; none for a number that no column has.
fn column_of(relation: &Relation, table: &Datum, column: &Datum) -> Result<Option<usize>> {
    match column {
        Datum::Text(name) => {
            let at = relation.columns.iter().position(|c| c.name == **name && !c.is_dropped());
            let shown = table.as_str().map_or_else(|| relation.name.clone(), str::to_owned);
            let missing = || {
                let message = format!("column \"{name}\" of relation \"{shown}\" does not exist");
                SqlError::new(code::UNDEFINED_COLUMN, message)
            };
            at.map(Some).ok_or_else(missing)
        }
        number => {
            let at = number.as_i64().and_then(|n| usize::try_from(n - 1).ok());
            Ok(at.filter(|at| relation.columns.get(*at).is_some_and(|c| !c.is_dropped())))
        }
    }
}
