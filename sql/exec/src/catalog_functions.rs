//! Functions that look things up in the catalog for clients: `current_schemas`, the `to_reg*` functions, `pg_get_serial_sequence`,
//! definitions, properties, default rights. The functions about the rights of roles are in `rights`.

use super::Cx;
use clearway_context::names::{own_path, quote};
use clearway_context::routines::qualified;
use clearway_engine::catalog::{Object, RelationKind, TEMP_PREFIX};
use clearway_planner::Updatable;
use clearway_syntax::error::{Result, SqlError, code};
use clearway_values::types::datum::Array;
use clearway_values::types::inet::Inet;
use clearway_values::types::text::{Conversion, NoNames, input};
use clearway_values::types::{Datum, Oid, oid};

fn text(args: &[Datum], i: usize) -> &str {
    args.get(i).and_then(Datum::as_str).unwrap_or("")
}

fn oid_at(args: &[Datum], i: usize) -> Oid {
    args.get(i).and_then(Datum::as_i64).unwrap_or(0) as Oid
}

/// INSERT, UPDATE and DELETE, by the numbers of PostgreSQL's commands.
const UPDATABLE: i32 = (1 << 2) | (1 << 3) | (1 << 4);

/// The oid of the access method btree.
const BTREE: Oid = 403;

/// The value of a property; NULL for an unknown property.
fn property(name: &str, known: &[(&str, bool)]) -> Datum {
    let found = known.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
    found.map_or(Datum::Null, |(_, value)| Datum::Bool(*value))
}

/// The type in which a function looks a name up.
fn looked_up_as(function: &str) -> Option<Oid> {
    Some(match function {
        "to_regclass" => oid::REGCLASS,
        "to_regtype" => oid::REGTYPE,
        "to_regnamespace" => oid::REGNAMESPACE,
        "to_regproc" => oid::REGPROC,
        "to_regprocedure" => oid::REGPROCEDURE,
        "to_regoper" => oid::REGOPER,
        "to_regoperator" => oid::REGOPERATOR,
        "to_regrole" => oid::REGROLE,
        "to_regcollation" => oid::REGCOLLATION,
        _ => return None,
    })
}

/// The answers that are always the same.
fn settled(function: &str) -> Option<Datum> {
    Some(match function {
        // Sessions begin when recovery has ended; no libraries compile; other sessions' temporary schemas are not seen.
        "pg_is_in_recovery" | "pg_jit_available" | "pg_is_other_temp_schema" => Datum::Bool(false),
        "pg_trigger_depth" => Datum::Int4(0),
        "pg_safe_snapshot_blocking_pids" => Datum::Array(Array::one_dimensional(oid::INT4, Vec::new()).into()),
        // Collations have no versions; nothing is partitioned; there are no statistics over several columns.
        "pg_collation_actual_version"
        | "pg_database_collation_actual_version"
        | "pg_get_partition_constraintdef"
        // No table has partitions.
        | "pg_partition_root"
        | "pg_last_xact_replay_timestamp"
        | "pg_last_wal_receive_lsn"
        | "pg_last_wal_replay_lsn"
        // Statistics are never kept as they were; values are not compressed; files of the log are not told by their names.
        | "pg_stat_get_snapshot_timestamp"
        | "pg_column_compression"
        | "pg_get_statisticsobjdef" => Datum::Null,
        _ => return None,
    })
}

/// The number under which PostgreSQL would keep the rows of a relation: its own, if it has rows.
fn file_of(object: &Object) -> Option<Oid> {
    match object {
        Object::Relation(r) => (r.kind != RelationKind::View).then_some(r.oid),
        Object::Index(i) => Some(i.oid),
        Object::Sequence(s) => Some(s.oid),
        _ => None,
    }
}

impl Cx<'_> {
    /// Answers one of the questions of `expr::inquiries`.
    pub(super) fn catalog_call(self, name: &'static str, args: &[Datum]) -> Result<Datum> {
        if let Some(ty) = looked_up_as(name) {
            return self.by_name(ty, text(args, 0));
        }
        if let Some(answer) = settled(name) {
            return Ok(answer);
        }
        if let "pg_is_wal_replay_paused" | "pg_get_wal_replay_pause_state" = name {
            let hint = "Recovery control functions can only be executed during recovery.";
            return Err(SqlError::new("55000", "recovery is not in progress").hint(hint));
        }
        if let Some(value) = self.statistic(name, args) {
            return value;
        }
        if let Some(field) = name.strip_prefix("pg_stat_get_") {
            return Ok(Datum::Int8(self.counted(field, oid_at(args, 0)) as i64));
        }
        let answer = self.session_call(name).or_else(|| self.transaction_call(name, args));
        match answer.or_else(|| self.index_call(name, args)) {
            Some(answer) => answer,
            None => self.object_call(name, args),
        }
    }

    /// What statements have done with a table or an index, as pg_stat_all_tables and pg_stat_all_indexes show it.
    fn counted(self, field: &str, oid: Oid) -> u64 {
        let catalog = &self.run.names.catalog;
        let index = match catalog.get(oid).map(|o| &**o) {
            Some(Object::Index(index)) => Some(index),
            _ => None,
        };
        // The primary key's index is the table itself.
        let table = index.and_then(|i| catalog.relation(i.table).filter(|r| r.tree == i.tree));
        let used = self.run.core.db.usage().of(table.map_or(oid, |r| r.oid));
        match (field, index.is_some()) {
            ("numscans", true) => used.lookups,
            ("tuples_returned" | "tuples_fetched", true) => used.lookup_rows,
            ("numscans", false) => used.whole,
            ("tuples_returned", false) => used.whole_rows,
            ("tuples_fetched", false) => used.lookup_rows + used.fetched,
            ("tuples_inserted", false) => used.inserted,
            ("tuples_updated", false) => used.updated,
            ("tuples_hot_updated", false) => used.in_place,
            ("tuples_deleted", false) => used.deleted,
            // Nothing is changed in an index by itself; old versions stand in the undo memory, not in tables.
            _ => 0,
        }
    }

    /// Questions about the session and its server.
    fn session_call(self, name: &str) -> Option<Result<Datum>> {
        let core = self.run.core;
        let address = |a: Option<std::net::SocketAddr>| a.map_or(Datum::Null, |a| Inet::of(a.ip()).into());
        let port = |a: Option<std::net::SocketAddr>| a.map_or(Datum::Null, |a| Datum::Int4(i32::from(a.port())));
        Some(Ok(match name {
            "inet_client_addr" => address(core.backend.client),
            "inet_client_port" => port(core.backend.client),
            "inet_server_addr" => address(core.backend.server),
            "inet_server_port" => port(core.backend.server),
            // Settings are read when the server starts.
            "pg_postmaster_start_time" => Datum::TimestampTz(core.backends.started),
            "pg_conf_load_time" => {
                let loaded = core.backends.configuration().map(|configuration| configuration.loaded());
                Datum::TimestampTz(loaded.unwrap_or(core.backends.started))
            }
            "pg_my_temp_schema" => Datum::Oid(self.run.names.catalog.temp_schema().map_or(0, |own| own.oid)),
            "getpgusername" => return Some(core.current_user().map(Datum::text)),
            _ => return None,
        }))
    }

    /// Questions about an index.
    fn index_call(self, name: &str, args: &[Datum]) -> Option<Result<Datum>> {
        let is_index = || matches!(self.run.names.catalog.get(oid_at(args, 0)).map(|o| &**o), Some(Object::Index(_)));
        let of_index = [("clusterable", true), ("index_scan", true), ("bitmap_scan", false), ("backward_scan", true)];
        let of_method = [
            ("can_order", true),
            ("can_unique", true),
            ("can_multi_col", true),
            ("can_exclude", false),
            ("can_include", true),
        ];
        Some(Ok(match name {
            "_pg_index_position" => {
                self.index_position(oid_at(args, 0), args.get(1).and_then(Datum::as_i64).unwrap_or(0))
            }
            "pg_index_column_has_property" => self.index_column_property(args),
            "pg_index_has_property" if is_index() => property(text(args, 1), &of_index),
            "pg_indexam_has_property" if oid_at(args, 0) == BTREE => property(text(args, 1), &of_method),
            "pg_index_has_property" | "pg_indexam_has_property" => Datum::Null,
            _ => return None,
        }))
    }

    /// Questions about other objects and the rights on them.
    fn object_call(self, name: &'static str, args: &[Datum]) -> Result<Datum> {
        let object = self.run.names.catalog.get(oid_at(args, 0)).map(|o| &**o);
        let is_table = matches!(object, Some(Object::Relation(r)) if r.kind == RelationKind::Table);
        Ok(match name {
            "pg_get_functiondef" => self.routine_definition(oid_at(args, 0)),
            "pg_get_function_sqlbody" => self.routine_body(oid_at(args, 0)),
            "current_schemas" => self.current_schemas(args.first().and_then(Datum::as_bool).unwrap_or(false)),
            "pg_get_serial_sequence" => self.serial_sequence(text(args, 0), text(args, 1))?,
            "pg_relation_is_publishable" => Datum::Bool(is_table),
            "pg_column_is_updatable" => {
                let place = args.get(1).and_then(Datum::as_i64).unwrap_or(0);
                Datum::Bool(place > 0 && (is_table || self.view_can(object).is_some_and(|v| v.changes(place))))
            }
            "pg_relation_is_updatable" => match self.view_can(object) {
                Some(view) => Datum::Int4(view.events),
                None => Datum::Int4(if is_table { UPDATABLE } else { 0 }),
            },
            "pg_get_ruledef" => {
                self.run.views.rule_definition(oid_at(args, 0), self.run).map_or(Datum::Null, Datum::text)
            }
            "pg_get_viewdef" => match &args[0] {
                Datum::Text(name) => {
                    self.view_definition(clearway_values::types::aliases::relation(&self.run.names, name)?)
                }
                _ => self.view_definition(oid_at(args, 0)),
            },
            "row_security_active" => self.row_security_active(&args[0])?,
            "pg_relation_filenode" | "pg_relation_filepath" => {
                let system = clearway_context::views::by_oid(oid_at(args, 0)).filter(|view| view.is_table());
                let Some(file) = object.and_then(file_of).or(system.map(|view| view.oid)) else {
                    return Ok(Datum::Null);
                };
                match (name, system.is_some_and(|view| view.is_shared())) {
                    ("pg_relation_filenode", _) => Datum::Oid(file),
                    (_, true) => Datum::text(format!("global/{file}")),
                    (_, false) => Datum::text(format!("base/{}/{file}", self.run.names.database)),
                }
            }
            "acldefault" => self.default_acl(text(args, 0), oid_at(args, 1))?,
            "makeaclitem" => self.acl_item(args)?,
            "pg_describe_object" => {
                let part = args.get(2).and_then(Datum::as_i64).unwrap_or(0) as i32;
                let words = self.run.views.described(oid_at(args, 0), oid_at(args, 1), part, self.run)?;
                words.map_or(Datum::Null, Datum::text)
            }
            "pg_filenode_relation" => {
                let (space, file) = (oid_at(args, 0), oid_at(args, 1));
                let own = self.run.names.catalog.get(file).map(|o| &**o).and_then(file_of);
                let system = clearway_context::views::by_oid(file).filter(|view| view.is_table());
                let found = own.or(system.map(|view| view.oid)).filter(|_| matches!(space, 0 | 1663 | 1664));
                found.map_or(Datum::Null, Datum::Oid)
            }
            "pg_get_replica_identity_index" => {
                let primary = self.run.names.catalog.indexes(oid_at(args, 0)).find(|index| index.primary);
                primary.map_or(Datum::Null, |index| Datum::Oid(index.oid))
            }
            "pg_xact_commit_timestamp" => {
                let hint = "Make sure the configuration parameter \"track_commit_timestamp\" is set.";
                return Err(SqlError::new("55000", "could not get commit timestamp data").hint(hint));
            }
            // No transaction has several lockers under one number.
            "mxid_age" => Datum::Int4(match oid_at(args, 0) {
                0 => i32::MAX,
                number => 1_i32.wrapping_sub(number as i32),
            }),
            name => self.has_privilege(name, args)?,
        })
    }

    /// What can be done to the rows of a view.
    fn view_can(self, object: Option<&Object>) -> Option<Updatable> {
        let Some(Object::Relation(r)) = object else { return None };
        if r.kind != RelationKind::View {
            return None;
        }
        let catalog = &self.run.names.catalog;
        self.with_planner(catalog, |planner| Ok(planner.updatable(r))).ok()
    }

    /// pg_get_viewdef: the query of a view.
    pub(super) fn view_definition(self, relation: Oid) -> Datum {
        let query = match clearway_context::views::by_oid(relation) {
            Some(view) => view.text(),
            None => {
                let catalog = self.run.names.catalog.clone();
                let Some(r) = catalog.relation(relation).filter(|r| r.query.is_some()) else { return Datum::Null };
                let path = self.run.names.path.clone();
                let present = self.with_planner(&catalog, |planner| planner.present_text(r, &path)).ok();
                let text = present.as_deref().or(r.query.as_deref()).unwrap_or_default();
                let path = r.meaning.as_ref().and_then(|meaning| meaning.path.clone()).unwrap_or_default();
                return Datum::text(format!(" {};", qualified(&self.run.names, &path, text)));
            }
        };
        query.map_or(Datum::Null, |q| Datum::text(format!(" {};", q.trim().trim_end_matches(';').trim_end())))
    }

    /// acldefault: the rights on an object of a kind on which nothing was granted or revoked.
    fn default_acl(self, kind: &str, owner: Oid) -> Result<Datum> {
        let (public, own) = match kind {
            "c" => ("", ""),
            "r" => ("", "arwdDxt"),
            "s" => ("", "rwU"),
            "d" => ("Tc", "CTc"),
            "f" => ("X", "X"),
            "l" | "T" => ("U", "U"),
            "L" => ("", "rw"),
            "n" => ("", "UC"),
            "p" => ("", "sA"),
            "t" => ("", "C"),
            "F" | "S" => ("", "U"),
            _ => return Err(SqlError::internal(format!("unrecognized objtype abbreviation: {kind}"))),
        };
        let owner = self.role_in_acl(owner);
        let mut items = Vec::new();
        if !public.is_empty() {
            items.push(Datum::text(format!("={public}/{owner}")));
        }
        if !own.is_empty() {
            items.push(Datum::text(format!("{owner}={own}/{owner}")));
        }
        Ok(Datum::Array(Array::one_dimensional(oid::TEXT, items).into()))
    }

    fn role_in_acl(self, oid: Oid) -> String {
        let role = clearway_context::privileges::role_by_oid(&self.run.names.catalog, oid);
        role.map_or_else(|| oid.to_string(), |role| clearway_context::names::acl_name(&role.name))
    }

    /// makeaclitem: the text of one entry.
    fn acl_item(self, args: &[Datum]) -> Result<Datum> {
        let role = |oid: Oid| match oid {
            0 => String::new(),
            oid => self.role_in_acl(oid),
        };
        let star = if args.get(3).and_then(Datum::as_bool) == Some(true) { "*" } else { "" };
        let mut letters = String::new();
        for asked in text(args, 2).split(',') {
            let unknown = || SqlError::new("22023", format!("unrecognized privilege type: \"{}\"", asked.trim()));
            letters.push(clearway_context::privileges::letter(asked.trim()).map_err(|_| unknown())?);
            letters.push_str(star);
        }
        Ok(Datum::text(format!("{}={letters}/{}", role(oid_at(args, 0)), role(oid_at(args, 1)))))
    }

    /// information_schema._pg_index_position: where a column of the table stands in an index, from 1.
    fn index_position(self, index: Oid, column: i64) -> Datum {
        let Some(Object::Index(index)) = self.run.names.catalog.get(index).map(|o| &**o) else { return Datum::Null };
        let at = index.columns.iter().position(|c| c.column as i64 + 1 == column);
        at.map_or(Datum::Null, |at| Datum::Int4(at as i32 + 1))
    }

    fn index_column_property(self, args: &[Datum]) -> Datum {
        let Some(Object::Index(index)) = self.run.names.catalog.get(oid_at(args, 0)).map(|o| &**o) else {
            return Datum::Null;
        };
        let at = args.get(1).and_then(Datum::as_i64).and_then(|n| usize::try_from(n - 1).ok());
        let Some(column) = at.and_then(|at| index.columns.get(at)) else {
            let included = at.is_some_and(|at| at < index.columns.len() + index.include.len());
            let returnable = included && text(args, 2).eq_ignore_ascii_case("returnable");
            return if returnable { Datum::Bool(true) } else { Datum::Null };
        };
        property(
            text(args, 2),
            &[
                ("asc", !column.descending),
                ("desc", column.descending),
                ("nulls_first", column.nulls_first),
                ("nulls_last", !column.nulls_first),
                ("orderable", true),
                ("distance_orderable", false),
                ("returnable", true),
                ("search_array", true),
                ("search_nulls", true),
            ],
        )
    }

    /// current_schemas: the schemas of the search path that exist, with `implicit` the catalog that is always searched first.
    fn current_schemas(self, implicit: bool) -> Datum {
        let names = &self.run.names;
        let named = |s: &String| Some(Datum::text(names.catalog.schema(names.database, s)?.name.as_str()));
        let mut schemas: Vec<Datum> = own_path(&names.path).filter_map(named).collect();
        if implicit && !names.path.iter().any(|s| s == "pg_catalog") {
            schemas.insert(0, Datum::text("pg_catalog"));
        }
        if let Some(own) = names.path.first().filter(|first| implicit && first.starts_with(TEMP_PREFIX)) {
            schemas.insert(0, Datum::text(own.as_str()));
        }
        Datum::Array(Array::one_dimensional(oid::NAME, schemas).into())
    }

    /// to_regclass and its variants: NULL where nothing has the name. A malformed name is an error.
    fn by_name(self, ty: Oid, name: &str) -> Result<Datum> {
        if !name.is_empty() && name.bytes().all(|b| b.is_ascii_digit()) {
            // A number is an oid, which these functions do not take.
            return Ok(Datum::Null);
        }
        let names: &dyn clearway_values::types::text::Names =
            if ty == oid::REGTYPE { &NoNames } else { &self.run.names };
        let conversion = Conversion { format: &self.run.format, now: self.run.transaction_started, names };
        let missing = [
            code::UNDEFINED_TABLE,
            code::UNDEFINED_OBJECT,
            code::INVALID_SCHEMA_NAME,
            code::FEATURE_NOT_SUPPORTED,
            code::UNDEFINED_FUNCTION,
            code::AMBIGUOUS_FUNCTION,
        ];
        match input(ty.into(), name, &conversion) {
            Err(error) if missing.contains(&error.code()) => Ok(Datum::Null),
            found => found,
        }
    }

    /// pg_get_serial_sequence: the sequence that belongs to a column of a table.
    fn serial_sequence(self, table: &str, column: &str) -> Result<Datum> {
        let names = &self.run.names;
        let found = clearway_values::types::aliases::relation(names, table)?;
        // Columns of a view, as any that no sequence belongs to, have none; so have those of the catalogs.
        let Some(relation) = names.catalog.relation(found) else { return Ok(Datum::Null) };
        let place =
            relation.columns.iter().position(|c| c.name == column && c.dropped_version.is_none()).ok_or_else(|| {
                let message = format!("column \"{column}\" of relation \"{}\" does not exist", relation.name);
                SqlError::new(code::UNDEFINED_COLUMN, message)
            })?;
        let owned = names.catalog.objects().find_map(|object| match &**object {
            Object::Sequence(s) if s.owned_by == Some((found, place)) => Some(s),
            _ => None,
        });
        let Some(sequence) = owned else { return Ok(Datum::Null) };
        let schema = match names.catalog.get(sequence.schema).map(|o| &**o) {
            Some(Object::Schema(s)) => quote(&s.name),
            _ => return Err(SqlError::internal("a sequence without a schema")),
        };
        Ok(Datum::text(format!("{schema}.{}", quote(&sequence.name))))
    }
}
