//! Functions that look up the catalog by name for clients: `current_schemas`, the `to_reg*` functions, `pg_get_serial_sequence`.

use super::Cx;
use crate::context::names::{own_path, quote};
use crate::error::{Result, SqlError, code};
use crate::expr::HostFunction;
use crate::types::datum::Array;
use crate::types::text::{Conversion, NoNames, input};
use crate::types::{Datum, Oid, oid};
use clearway_engine::catalog::TEMP_PREFIX;
use clearway_engine::catalog::{Object, RelationKind};

fn text(args: &[Datum], i: usize) -> &str {
    args.get(i).and_then(Datum::as_str).unwrap_or("")
}

impl Cx<'_> {
    /// Calls one of these functions; none if it is another one.
    pub(super) fn catalog_call(self, function: HostFunction, args: &[Datum]) -> Option<Result<Datum>> {
        use HostFunction as F;
        Some(match function {
            F::CurrentSchemas => Ok(self.current_schemas(args.first().and_then(Datum::as_bool).unwrap_or(false))),
            F::ToRegclass => self.by_name(oid::REGCLASS, text(args, 0)),
            F::ToRegtype => self.by_name(oid::REGTYPE, text(args, 0)),
            F::ToRegnamespace => self.by_name(oid::REGNAMESPACE, text(args, 0)),
            F::SerialSequence => self.serial_sequence(text(args, 0), text(args, 1)),
            // Sessions begin when recovery has ended.
            F::IsInRecovery => Ok(Datum::Bool(false)),
            _ => return None,
        })
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

    /// to_regclass and its kin: NULL where nothing has the name. A name that can't be one is an error.
    fn by_name(self, ty: Oid, name: &str) -> Result<Datum> {
        if name.bytes().all(|b| b.is_ascii_digit()) {
            // A number is an oid, which these functions do not take.
            return Ok(Datum::Null);
        }
        let names: &dyn crate::types::text::Names = if ty == oid::REGTYPE { &NoNames } else { &self.run.names };
        let conversion = Conversion { format: &self.run.format, now: self.run.transaction_started, names };
        let missing =
            [code::UNDEFINED_TABLE, code::UNDEFINED_OBJECT, code::INVALID_SCHEMA_NAME, code::FEATURE_NOT_SUPPORTED];
        match input(ty.into(), name, &conversion) {
            Err(error) if missing.contains(&error.code()) => Ok(Datum::Null),
            found => found,
        }
    }

    /// pg_get_serial_sequence: the sequence that belongs to a column of a table.
    fn serial_sequence(self, table: &str, column: &str) -> Result<Datum> {
        let names = &self.run.names;
        let missing = || SqlError::new(code::UNDEFINED_TABLE, format!("relation \"{table}\" does not exist"));
        let found = crate::types::text::Names::relation(names, table).ok_or_else(missing)?;
        let relation = names.catalog.relation(found).filter(|r| r.kind == RelationKind::Table);
        let relation =
            relation.ok_or_else(|| SqlError::new(code::WRONG_OBJECT_TYPE, format!("\"{table}\" is not a table")))?;
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
