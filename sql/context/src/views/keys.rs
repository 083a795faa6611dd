//! The columns of system tables by which single rows can be found without building the whole table.
//!
//! A table of the catalog is built when it is read. If a condition compares one of these columns with known values, only the rows of the
//! objects with those numbers or names are built. So a query about one table costs the same however many tables there are.
//!
//! # Invariants
//! - VKY-1: a search by such a column returns every row of the view that has one of the wanted values in it. Rows beyond these are
//!   permitted, since the executor compares each row with the values afterwards.
//!
//! # Not here
//! The rows (`clearway_views`); which conditions name such a column (`clearway_planner::sought`).

use super::SystemView;

/// Table, column, how many rows a value is expected to find, and how EXPLAIN calls the way to them: PostgreSQL's index, where there is one.
const KEYS: &[(&str, &str, f64, &str)] = &[
    ("pg_class", "oid", 1.0, "pg_class_oid_index"),
    ("pg_class", "relname", 1.0, "pg_class_relname_nsp_index"),
    ("pg_namespace", "oid", 1.0, "pg_namespace_oid_index"),
    ("pg_namespace", "nspname", 1.0, "pg_namespace_nspname_index"),
    ("pg_attribute", "attrelid", 8.0, "pg_attribute_relid_attnum_index"),
    ("pg_index", "indexrelid", 1.0, "pg_index_indexrelid_index"),
    ("pg_index", "indrelid", 2.0, "pg_index_indrelid_index"),
    ("pg_constraint", "conrelid", 2.0, "pg_constraint_conrelid_contypid_conname_index"),
    ("pg_constraint", "confrelid", 2.0, "pg_constraint_confrelid_index"),
    ("pg_attrdef", "adrelid", 2.0, "pg_attrdef_adrelid_adnum_index"),
    ("pg_sequence", "seqrelid", 1.0, "pg_sequence_seqrelid_index"),
    ("pg_type", "oid", 1.0, "pg_type_oid_index"),
    ("pg_type", "typname", 1.0, "pg_type_typname_nsp_index"),
    ("pg_proc", "oid", 1.0, "pg_proc_oid_index"),
    ("pg_proc", "proname", 2.0, "pg_proc_proname_args_nsp_index"),
    ("pg_operator", "oid", 1.0, "pg_operator_oid_index"),
    ("pg_aggregate", "aggfnoid", 1.0, "pg_aggregate_fnoid_index"),
    ("pg_cast", "castsource", 5.0, "pg_cast_source_target_index"),
    ("pg_opclass", "oid", 1.0, "pg_opclass_oid_index"),
    ("pg_largeobject", "loid", 8.0, "pg_largeobject_loid_pn_index"),
    ("pg_largeobject_metadata", "oid", 1.0, "pg_largeobject_metadata_oid_index"),
    ("pg_description", "objoid", 1.0, "pg_description_o_c_o_index"),
    ("pg_stat_all_tables", "relid", 1.0, "pg_class_oid_index"),
    ("pg_stat_all_tables", "relname", 1.0, "pg_class_relname_nsp_index"),
    ("pg_stat_xact_all_tables", "relid", 1.0, "pg_class_oid_index"),
    ("pg_stat_xact_all_tables", "relname", 1.0, "pg_class_relname_nsp_index"),
    ("pg_statio_all_tables", "relid", 1.0, "pg_class_oid_index"),
    ("pg_statio_all_tables", "relname", 1.0, "pg_class_relname_nsp_index"),
    ("pg_stat_all_indexes", "relid", 2.0, "pg_class_oid_index"),
    ("pg_stat_all_indexes", "relname", 2.0, "pg_class_relname_nsp_index"),
    ("pg_stat_all_indexes", "indexrelid", 1.0, "pg_class_oid_index"),
    ("pg_stat_all_indexes", "indexrelname", 1.0, "pg_class_relname_nsp_index"),
    ("pg_statio_all_indexes", "relid", 2.0, "pg_class_oid_index"),
    ("pg_statio_all_indexes", "relname", 2.0, "pg_class_relname_nsp_index"),
    ("pg_statio_all_indexes", "indexrelid", 1.0, "pg_class_oid_index"),
    ("pg_statio_all_indexes", "indexrelname", 1.0, "pg_class_relname_nsp_index"),
];

/// If rows of a table are found by a column: how many are expected to have one value in it, and how that way is called.
pub fn of(view: &SystemView, column: usize) -> Option<(f64, &'static str)> {
    let (name, _) = view.columns.get(column)?;
    let key = KEYS.iter().find(|(table, column, ..)| *table == view.name && column == name)?;
    (view.schema == "pg_catalog").then_some((key.2, key.3))
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_key_is_a_column() {
        for (table, column, ..) in super::KEYS {
            let view = super::super::find("pg_catalog", table).unwrap_or_else(|| panic!("{table}"));
            assert!(view.columns.iter().any(|c| c.0 == *column), "{table}.{column}");
        }
    }
}
