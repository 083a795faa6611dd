"""What the suite may ask of the dialect: what PostgreSQL's own dialect offers, as far as the suite has a name for it."""

from sqlalchemy.testing import exclusions
from sqlalchemy.testing.requirements import SuiteRequirements

#: Names of the suite that hold here.
OPEN = [
    "array_type", "autocommit", "boolean_col_expressions", "check_constraint_reflection", "comment_reflection",
    "computed_columns", "ctes", "ctes_on_dml", "cursor_works_post_rollback", "datetime_historic", "datetime_timezone",
    "deferrable_fks", "delete_returning", "duplicate_names_in_cursor_description", "empty_strings_varchar", "fetch_expression",
    "fetch_first", "foreign_key_constraint_option_reflection_ondelete", "foreign_key_constraint_option_reflection_onupdate",
    "foreign_keys_reflect_as_index", "full_outer_joins", "implicit_default_schema", "implicitly_named_constraints",
    "insert_executemany_returning", "insert_from_select", "insert_returning", "insertmanyvalues", "intersect", "except_",
    "isolation_level", "json_array_indexes", "json_type", "legacy_unconditional_json_extract", "materialized_views",
    "multivalues_inserts", "named_constraints", "order_by_collation", "precision_generic_float_type", "primary_key_constraint_reflection",
    "qmark_paramstyle", "recursive_fk_cascade", "reflect_tables_no_columns", "regexp_match", "regexp_replace", "returning",
    "row_triggers", "savepoints", "schemas", "sequences", "sequences_optional", "standalone_binds", "standalone_null_binds_whereclause",
    "supports_distinct_on", "temp_table_names", "temp_table_reflection", "temporary_tables", "temporary_views", "time_microseconds",
    "tuple_in", "two_phase_transactions", "unicode_ddl", "unique_constraint_reflection", "update_from", "delete_from", "update_returning",
    "uuid_data_type", "views", "window_functions",
]  # fmt: skip


class Requirements(SuiteRequirements):
    """See the head of this file."""


for _name in OPEN:
    if _name == "two_phase_transactions" or not hasattr(SuiteRequirements, _name):
        continue
    setattr(Requirements, _name, property(lambda self: exclusions.open()))

# Foreign keys have no index of their own; a name that stands twice is legal; there is no two-phase commit.
Requirements.foreign_keys_reflect_as_index = property(lambda self: exclusions.closed())
Requirements.qmark_paramstyle = property(lambda self: exclusions.closed())

#: The levels that the dialect takes.
Requirements.get_isolation_levels = lambda self, config: {
    "default": "READ COMMITTED",
    "supported": ["AUTOCOMMIT", "READ COMMITTED", "REPEATABLE READ"],
}
