//! The rows of pg_enum, and those of pg_type for types that users define.

use super::catalog::{acl, int_oid, local};
use super::{ViewOf, expressions, opt, text};
use clearway_context::types::array_name;
use clearway_engine::catalog::types::{STEP, row_array, row_type, table_of_row_type};
use clearway_engine::catalog::{AclKind, Label, Object, TypeBody, TypeObject};
use clearway_exec::{Keys, Row, Run, SoughtRows};
use clearway_values::types::{Datum, oid};

/// The rows of the views of this module.
pub const ROWS: &[ViewOf] = &[("pg_catalog", "pg_enum", pg_enum)];

/// Places of pg_type's columns.
mod column {
    pub const OID: usize = 0;
    pub const NAME: usize = 1;
    pub const NAMESPACE: usize = 2;
    pub const OWNER: usize = 3;
    pub const TYPE: usize = 6;
    pub const CATEGORY: usize = 7;
    pub const PREFERRED: usize = 8;
    pub const RELATION: usize = 11;
    pub const ELEMENT: usize = 13;
    pub const ARRAY: usize = 14;
    pub const INPUT: usize = 15;
    pub const NOT_NULL: usize = 24;
    pub const BASE: usize = 25;
    pub const MODIFIER: usize = 26;
    pub const COLLATION: usize = 28;
    pub const DEFAULT_EXPRESSION: usize = 29;
    pub const DEFAULT: usize = 30;
    pub const ACL: usize = 31;
}

/// enum_in, enum_out, enum_recv, enum_send.
const ENUM_FUNCTIONS: [u32; 4] = [3504, 3505, 3532, 3533];

fn own_types<'r>(run: &'r Run<'_>) -> impl Iterator<Item = &'r TypeObject> {
    let database = run.names.database;
    run.names.catalog.types().filter(move |t| t.database == database)
}

/// Rows of pg_type; `known` are those of PostgreSQL's own types, from which these take what they have in common. Only some may be sought.
pub(super) fn user_types(run: &Run<'_>, known: &[Row], sought: Option<&SoughtRows>) -> Vec<Row> {
    let like = |oid: u32| known.iter().find(|row| matches!(row[column::OID], Datum::Oid(o) if o == oid)).cloned();
    let mut out = Vec::new();
    let is_sought = |ty: &TypeObject| {
        sought.is_none_or(|sought| match sought.column {
            "oid" => sought.keys.have(&int_oid(ty.oid)) || sought.keys.have(&int_oid(ty.array)),
            _ => true,
        })
    };
    for ty in own_types(run).filter(|ty| is_sought(ty)) {
        let named = |mut row: Row, oid: u32, name: &str| {
            row[column::OID] = int_oid(oid);
            row[column::NAME] = text(name);
            row[column::NAMESPACE] = int_oid(ty.schema);
            row[column::OWNER] = int_oid(ty.owner);
            row[column::PREFERRED] = Datum::Bool(false);
            row
        };
        let base = match &ty.body {
            TypeBody::Enum(_) => oid::INT4,
            TypeBody::Domain(d) if clearway_values::types::user::is_enum(d.base) => oid::INT4,
            TypeBody::Domain(d) => d.base,
            TypeBody::Composite(_) => oid::RECORD,
        };
        let (Some(own), Some(array)) = (like(base), like(oid::TEXT_ARRAY)) else { continue };
        let mut own = named(own, ty.oid, &ty.name);
        own[column::ARRAY] = int_oid(ty.array);
        own[column::ACL] = acl(run, ty.owner, &ty.acl, AclKind::Type);
        match &ty.body {
            TypeBody::Enum(_) => {
                own[column::TYPE] = text("e");
                own[column::CATEGORY] = text("E");
                own.iter_mut().skip(column::INPUT).zip(ENUM_FUNCTIONS).for_each(|(field, f)| *field = int_oid(f));
            }
            TypeBody::Composite(c) => {
                own[column::TYPE] = text("c");
                own[column::CATEGORY] = text("C");
                own[column::RELATION] = int_oid(c.class);
            }
            TypeBody::Domain(d) => {
                own[column::TYPE] = text("d");
                own[column::NOT_NULL] = Datum::Bool(d.not_null);
                own[column::BASE] = int_oid(d.below());
                own[column::MODIFIER] = Datum::Int4(if d.under.is_some() { -1 } else { d.base_mod });
                let default = opt(expressions::domain_default(run, (ty, d)).as_deref());
                // Without the expression, the text is the text form of a value, not an expression.
                own[column::DEFAULT_EXPRESSION] = default.clone();
                own[column::DEFAULT] = default;
            }
        }
        let mut array = named(array, ty.array, &array_name(&run.names.catalog, ty.schema, &ty.name, ty.oid));
        array[column::ELEMENT] = int_oid(ty.oid);
        array[column::COLLATION].clone_from(&own[column::COLLATION]);
        out.extend([own, array]);
    }
    row_types(run, &like, sought, &mut out);
    out
}

/// What the tables have whose types of rows, or of arrays of them, are asked for.
fn table_keys(keys: &Keys) -> Keys {
    match keys {
        Keys::Oids(oids) => Keys::Oids(oids.iter().filter_map(|oid| Some(table_of_row_type(*oid)?.0)).collect()),
        Keys::Names(names) => {
            // An array's name has one underscore before its table's, or more.
            let of_arrays = |name: &String| {
                let below = std::iter::successors(Some(name.as_str()), |name| name.strip_prefix('_'));
                below.map(str::to_owned).collect::<Vec<_>>()
            };
            // Each table once, though it is sought by its name and by its array's.
            let all: std::collections::BTreeSet<String> = names.iter().flat_map(of_arrays).collect();
            Keys::Names(all.into_iter().collect())
        }
    }
}

/// The types of the rows of tables and views, and of their arrays.
fn row_types(run: &Run<'_>, like: &dyn Fn(u32) -> Option<Row>, sought: Option<&SoughtRows>, out: &mut Vec<Row>) {
    let keys = sought.map(|sought| table_keys(&sought.keys));
    let tables = keys.map_or_else(|| local(run).collect(), |keys| super::catalog::sought(run, &keys));
    if tables.is_empty() {
        return; // most types that are sought are PostgreSQL's own
    }
    let (Some(row), Some(array)) = (like(oid::RECORD), like(oid::TEXT_ARRAY)) else { return };
    for object in tables.into_iter().map_while(super::breathes(run)) {
        let Object::Relation(r) = object else { continue };
        let (Some(row_oid), Some(array_oid)) = (row_type(r.oid), row_array(r.oid)) else { continue };
        let named = |mut like: Row, oid: u32, name: &str| {
            like[column::OID] = int_oid(oid);
            like[column::NAME] = text(name);
            like[column::NAMESPACE] = int_oid(r.schema);
            like[column::OWNER] = int_oid(r.owner);
            like[column::PREFERRED] = Datum::Bool(false);
            like
        };
        let mut own = named(row.clone(), row_oid, &r.name);
        own[column::TYPE] = text("c");
        own[column::CATEGORY] = text("C");
        own[column::RELATION] = int_oid(r.oid);
        own[column::ARRAY] = int_oid(array_oid);
        let name = array_name(&run.names.catalog, r.schema, &r.name, r.oid);
        let mut array = named(array.clone(), array_oid, &name);
        array[column::ELEMENT] = int_oid(row_oid);
        array[column::COLLATION].clone_from(&own[column::COLLATION]);
        out.extend([own, array]);
    }
}

fn pg_enum(run: &Run<'_>) -> Vec<Row> {
    let mut out = Vec::new();
    for ty in own_types(run) {
        let TypeBody::Enum(labels) = &ty.body else { continue };
        let place = |l: &Label| Datum::Float4((l.order as f64 / STEP as f64) as f32);
        out.extend(labels.iter().map(|l| vec![int_oid(l.oid), int_oid(ty.oid), place(l), text(&l.text)]));
    }
    out
}
