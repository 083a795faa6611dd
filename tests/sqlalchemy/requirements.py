"""What the suite may ask of the dialect: what SQLAlchemy's own tests ask of PostgreSQL 15, as far as the suite has a name for it."""

from sqlalchemy.testing import exclusions
from sqlalchemy.testing.requirements import SuiteRequirements

#: Closed by default in the suite, and open for PostgreSQL.
OPEN = """
    array_type autocommit boolean_col_expressions check_constraint_reflection column_collation_reflection comment_reflection
    comment_reflection_full_unicode computed_columns computed_columns_default_persisted computed_columns_reflect_persisted
    computed_columns_stored constraint_comment_reflection create_or_replace_view create_table_as create_temp_table_as
    cross_schema_fk_reflection ctes ctes_on_dml ctes_with_update_delete ctes_with_values date_historic datetime_historic datetime_interval
    datetime_timezone datetime_timezone_historic default_schema_name_switch deferrable_fks delete_from
    duplicate_names_in_cursor_description empty_strings_varchar except_ expression_server_defaults fetch_expression fetch_first
    fetch_no_order_by fetch_offset_with_options fetch_ties fk_constraint_option_reflection_ondelete_restrict
    fk_constraint_option_reflection_onupdate_restrict float_or_double_precision_behaves_generically
    foreign_key_constraint_name_reflection foreign_key_constraint_option_reflection_ondelete
    foreign_key_constraint_option_reflection_onupdate has_temp_table identity_columns identity_columns_standard implicit_default_schema
    implicitly_named_constraints index_ddl_if_exists index_reflects_included_columns indexes_with_expressions infinity_floats
    inline_check_constraint_reflection insert_from_select insert_returning intersect isolation_level json_array_indexes json_type
    legacy_unconditional_json_extract materialized_views multivalues_inserts named_constraints order_by_collation percent_schema_names
    precision_generic_float_type precision_numerics_many_significant_digits precision_numerics_retains_significant_digits
    primary_key_constraint_reflection recursive_fk_cascade reflect_indexes_with_expressions reflect_tables_no_columns reflect_table_options reflects_pk_names
    regexp_match regexp_replace repeated_column_foreign_keys repeated_remote_col_foreign_keys savepoints schema_create_delete schemas
    sequences sequences_optional server_defaults standalone_binds standalone_null_binds_whereclause supports_bitwise_and
    supports_bitwise_not supports_bitwise_or supports_bitwise_shift supports_bitwise_xor supports_distinct_on table_ddl_if_exists
    table_value_constructor temp_table_comment_reflection temp_table_names temp_table_reflection temporary_tables temporary_views
    time_microseconds time_timezone timestamp_microseconds tuple_in unicode_ddl unique_constraint_reflection
    unique_constraints_reflect_as_index update_from uuid_data_type views window_functions window_range window_range_numeric
    window_range_non_numeric
""".split()

#: Open by default in the suite, and not so for PostgreSQL 15.
CLOSED = "foreign_keys_reflect_as_index".split()


class Requirements(SuiteRequirements):
    """See the head of this file."""

    def get_isolation_levels(self, config):
        """The levels that the dialect takes."""
        return {"default": "READ COMMITTED", "supported": ["AUTOCOMMIT", "READ COMMITTED", "REPEATABLE READ"]}

    def get_order_by_collation(self, config):
        """One that is no other's default."""
        return "POSIX"


def _always(exclusion):
    return property(lambda self: exclusion())


for _name in OPEN:
    # A release of SQLAlchemy that does not know a name has no test for it.
    if hasattr(SuiteRequirements, _name):
        setattr(Requirements, _name, _always(exclusions.open))
for _name in CLOSED:
    setattr(Requirements, _name, _always(exclusions.closed))
