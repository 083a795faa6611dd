"""Settings and runner of Django's own tests: DRIVERS_PORT is the server's port, and DRIVERS_OUT gets a line of JSON for each test: its name, how it
ended, its first error. With DRIVERS_HERE set, what Clearway refuses does not stop the tests of what works: extensions that are not there are passed
over, columns for text search are text, and the collation of tests that take any is C."""

import json
import os
import re
import unittest
from importlib import import_module

from django.test.runner import DiscoverRunner

_server = {"ENGINE": "django.db.backends.postgresql", "HOST": "127.0.0.1", "PORT": os.environ["DRIVERS_PORT"], "USER": "postgres", "NAME": "postgres"}
DATABASES = {"default": {**_server, "TEST": {"NAME": "django_default"}}, "other": {**_server, "TEST": {"NAME": "django_other"}}}
SECRET_KEY = "of tests"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
USE_TZ = False
TEST_RUNNER = "django_runner.Runner"

if os.environ.get("DRIVERS_HERE"):
    from django.contrib.postgres import operations, search
    from django.db.backends.postgresql.features import DatabaseFeatures

    DatabaseFeatures.test_collations = {name: "C" for name in DatabaseFeatures.test_collations}
    _forwards = operations.CreateExtension.database_forwards

    def _forwards_if_there(self, *rest):
        if self.name in ("citext", "hstore", "pgcrypto", "uuid-ossp"):
            _forwards(self, *rest)

    operations.CreateExtension.database_forwards = _forwards_if_there
    search.SearchVectorField.db_type = lambda self, connection: "text"


def _names(test):
    """The name of a test; of a class that could not be set up, those of all its tests."""
    of_class = re.fullmatch(r"setUpClass \((.+)\.(\w+)\)", test.id())
    if not of_class:
        return [test.id()]
    tests = unittest.TestLoader().getTestCaseNames(getattr(import_module(of_class[1]), of_class[2]))
    return [f"{of_class[1]}.{of_class[2]}.{name}" for name in tests]


def _say(test, how, error=None):
    text = f"{error[0].__name__}: {error[1]}".partition("\n")[0] if error else ""
    with open(os.environ["DRIVERS_OUT"], "a") as out:
        out.writelines(json.dumps([name, how, text]) + "\n" for name in _names(test))


class Result(unittest.TextTestResult):
    def addSuccess(self, test):
        super().addSuccess(test)
        _say(test, "passed")

    def addError(self, test, error):
        super().addError(test, error)
        _say(test, "failed", error)

    def addFailure(self, test, error):
        super().addFailure(test, error)
        _say(test, "failed", error)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        _say(test, "skipped")

    def addExpectedFailure(self, test, error):
        super().addExpectedFailure(test, error)
        _say(test, "passed")

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        _say(test, "failed")

    def addSubTest(self, test, part, error):
        super().addSubTest(test, part, error)
        if error:
            _say(test, "failed", error)


class Runner(DiscoverRunner):
    def get_resultclass(self):
        return Result
