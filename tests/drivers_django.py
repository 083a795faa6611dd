"""Django's own tests that issue SQL, as a suite of drivers.py: the sdist has them."""

import json
import os
import subprocess
import tempfile
from pathlib import Path

#: The parts that issue SQL.
PARTS = """aggregation aggregation_regress annotations async backends base basic bulk_create cache composite_pk constraints contenttypes_tests custom_columns
    custom_lookups custom_managers custom_methods custom_migration_operations custom_pk datatypes dates datetimes db_functions db_typecasts db_utils defer
    defer_regress delete delete_regress distinct_on_fields empty expressions expressions_case expressions_window extra_regress field_defaults
    field_subclassing filtered_relation fixtures fixtures_model_package fixtures_regress force_insert_update foreign_object from_db_value
    generic_relations generic_relations_regress get_earliest_or_latest get_object_or_404 get_or_create indexes inspectdb introspection
    known_related_objects lookup m2m_and_m2o m2m_intermediary m2m_multiple m2m_recursive m2m_regress m2m_signals m2m_through m2m_through_regress
    m2o_recursive managers_regress many_to_many many_to_one many_to_one_null max_lengths migrate_signals migration_test_data_persistence migrations
    migrations2 model_enums model_fields model_forms model_formsets model_formsets_regress model_indexes model_inheritance model_inheritance_regress
    model_meta model_options model_package model_regress model_utils multiple_database mutually_referential nested_foreign_keys null_fk null_fk_ordering
    null_queries one_to_one or_lookups order_with_respect_to ordering pagination postgres_tests prefetch_related properties proxy_model_inheritance
    proxy_models queries queryset_pickle raw_query reserved_names reverse_lookup save_delete_hooks schema select_for_update select_related
    select_related_onetoone select_related_regress serializers signals sites_tests sitemaps_tests string_lookup swappable_models syndication_tests
    test_runner test_utils timezones transaction_hooks transactions unmanaged_models update update_only_fields validation validators xor_lookups
    admin_changelist admin_filters admin_views auth_tests sessions_tests redirects_tests flatpages_tests generic_views admin_utils admin_inlines
    admin_widgets dbshell""".split()

#: What --short runs.
SHORT = ["basic", "bulk_create", "composite_pk", "inspectdb", "introspection", "transactions", "update"]


class DjangoSuite:
    """How Django's tests are fetched and run, by Django's own program."""

    package, install = "Django==5.2.19", ["Django==5.2.19", "psycopg[binary,pool]==3.3.4", "tblib", "Jinja2", "PyYAML", "docutils"]
    alone, short = False, SHORT

    def __init__(self, environment_of, source_of):
        self.environment_of, self.source_of = environment_of, source_of

    def fetch(self, name, given):
        self.python, self.where = self.environment_of(name, self), self.source_of(name, self, given)

    def run(self, port, given, _tests=(), here=False):
        with tempfile.TemporaryDirectory() as work:
            out = Path(work) / "out"
            parts = given.only.split() if given.only else SHORT if given.short else PARTS
            environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent / "drivers"), "PYTHONDONTWRITEBYTECODE": "1", "PGOPTIONS": "",
                           "DRIVERS_PORT": str(port), "DRIVERS_OUT": str(out), "DRIVERS_HERE": "1" if here else ""}
            command = [self.python, "runtests.py", "--settings=django_runner", "--parallel=1", "--noinput", "-v", "0", *parts]
            try:
                ended = subprocess.run(command, cwd=self.where / "tests", env=environment, capture_output=True, text=True, timeout=given.seconds)
            except subprocess.TimeoutExpired as error:
                raise SystemExit(f"Django's tests took more than {given.seconds} s\n0 passed, 1 failed") from error
            if not out.exists():
                raise SystemExit(f"{ended.stdout[-3000:]}{ended.stderr[-3000:]}\n0 passed, 1 failed")
            seen = {}
            for name, how, text in map(json.loads, out.read_text().splitlines()):
                # A test with parts is there for each that failed, and a last time.
                if seen.get(name, ("", ""))[0] != "failed":
                    seen[name] = (how, text)
            return seen
