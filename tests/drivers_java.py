"""The tests of pgjdbc, as a suite of drivers.py: the source distribution that Maven Central has beside the driver holds them."""

import os
import re
import shutil
import subprocess
import tarfile
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path

VERSION = "42.7.13"

#: What the distribution's own pom.xml does not name: the program that runs the tests, and the driver.
PACKAGES = ["org.junit.platform:junit-platform-console-standalone:1.14.4", f"org.postgresql:postgresql:{VERSION}"]

#: Tests that ask a host elsewhere: they are left out.
ELSEWHERE = ["ConnectTimeoutTest"]

#: Tests whose logins fail, after which Clearway delays every login by a password: they come last.
LOGINS = ["ScramTest", "PasswordUtilTest", "RequireAuthTest", "AuthenticationPluginTest", "LoginTimeoutTest"]

#: What --short runs, by parts of the classes' names.
SHORT = ["jdbc2.BatchExecuteTest", "jdbc2.ConnectionTest", "jdbc2.CopyTest", "jdbc2.CursorFetchTest", "jdbc2.PreparedStatementTest", "jdbc2.ResultSetTest",
         "jdbc2.UpdateableResultTest", "jdbc3.GeneratedKeysTest", "jdbc4.ArrayTest", "jdbc4.DatabaseMetaDataTest", "jdbc42.GetObject310Test"]

#: The databases, the roles and the extensions as pgjdbc's docker/postgres-server makes them. What does not exist here is missed by the tests that need it.
SETUP = {"postgres": ["create user test with password 'test'", "create database test owner test", "create database test_2 owner test", "create database hostdb"],
         "test": ["create extension hstore", "create extension sslinfo"]}

#: Its access rules; Clearway refuses the methods of RULES_THERE.
RULES = ["host all postgres all trust", "host authtest nobody all trust", "host authtest scram all scram-sha-256"]
RULES_THERE = ["host authtest pword all password", "host authtest md51 all md5", "host all all all md5"]


class JavaSuite:
    """How these tests are fetched, compiled and run. A test is a method: it fails if it fails with one of its parameters."""

    alone = False

    def __init__(self, cache, fetched):
        self.home, self.fetched = cache / "pgjdbc", fetched
        self.where = None

    def settings(self, home, here):
        """The settings of the server that is made in this directory."""
        rules = Path(home) / "access.conf"
        rules.write_text("\n".join([*RULES, *([] if here else RULES_THERE), "host all all all scram-sha-256"]) + "\n")
        rules.chmod(0o644)
        return [f"access_file = '{rules}'"] if here else [f"hba_file={rules}", "max_prepared_transactions=64", "wal_level=logical"]

    def fetch(self, _name, given):
        mark = self.home / "done"
        source = str(given.resolve()) if given else VERSION
        self.where = given.resolve() if given else self.home / f"postgresql-{VERSION}-jdbc-src"
        if mark.exists() and mark.read_text() == source:
            return
        shutil.rmtree(self.home, ignore_errors=True)
        self.home.mkdir(parents=True)
        if not given:
            self.copied(f"org.postgresql:postgresql:{VERSION}:tar.gz:jdbc-src", self.home)
            with tarfile.open(next(self.home.glob("*.tar.gz"))) as archive:
                # The Python of Debian 12 has no filters.
                archive.extractall(self.home, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
        self.fetched(["mvn", "-q", "-B", "-f", self.where / "pom.xml", "dependency:copy-dependencies", f"-DoutputDirectory={self.home / 'lib'}"])
        for package in PACKAGES:
            self.copied(package, self.home / ("runner" if "console" in package else "lib"))
        tests = sorted((self.where / "src/test/java").rglob("*.java"))
        self.fetched(["javac", "-nowarn", "-parameters", "-encoding", "UTF-8", "-cp", f"{self.home}/lib/*", "-d", self.home / "made", *tests])
        mark.write_text(source)

    def copied(self, artifact, into):
        self.fetched(["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={artifact}", f"-DoutputDirectory={into}"], cwd=self.home)

    def run(self, port, given, _tests=()):
        psql = ["psql", "-X", "-q", "-h", "127.0.0.1", "-p", str(port), "-U", "postgres"]
        for database, statements in SETUP.items():
            for statement in statements:
                subprocess.run([*psql, "-d", database, "-c", statement], check="extension" not in statement, capture_output=True)
        wanted = [given.only] if given.only else [part.replace(".", r"\.") for part in (SHORT if given.short else [])]
        include = f".*({'|'.join(wanted)}).*" if wanted else ".*"
        seen = self.run_classes(port, given, include, [*ELSEWHERE, *LOGINS])
        if not given.short:
            seen.update(self.run_classes(port, given, f"(?={include}).*({'|'.join(LOGINS)})", ELSEWHERE))
        return seen

    def run_classes(self, port, given, include, without):
        """How the tests ended in classes of some names."""
        properties = {"build.properties.relative.path": self.where, "test.url.PGHOST": "127.0.0.1", "test.url.PGPORT": port}
        # The program brings JUnit with it.
        brought = re.compile(r"(junit-(platform|jupiter|vintage)|opentest4j|apiguardian)-.*")
        classes = [self.home / "made", self.where / "src/test/resources", *(jar for jar in (self.home / "lib").iterdir() if not brought.match(jar.name))]
        with tempfile.TemporaryDirectory() as work:
            command = ["java", "-Xmx1g", "-Duser.language=en", *(f"-D{name}={value}" for name, value in properties.items()),
                       "-jar", next((self.home / "runner").iterdir()), "execute", "--disable-banner", "--details=none", "--scan-classpath", self.home / "made",
                       "--class-path", ":".join(map(str, classes)), "--include-classname", include,
                       "--exclude-classname", f".*({'|'.join(without)})", "--reports-dir", work,
                       "--config", "junit.jupiter.extensions.autodetection.enabled=true", "--config", "junit.jupiter.execution.timeout.default=5m"]
            try:
                ended = subprocess.run(command, cwd=work, env={**os.environ, "LC_ALL": "C.UTF-8"}, capture_output=True, text=True, timeout=given.seconds)
            except subprocess.TimeoutExpired as error:
                raise SystemExit(f"pgjdbc's tests took more than {given.seconds} s\n0 passed, 1 failed") from error
            out = Path(work) / "TEST-junit-jupiter.xml"
            if not out.exists():
                raise SystemExit(f"{ended.stdout[-3000:]}{ended.stderr[-3000:]}\n0 passed, 1 failed")
            return of_methods(out, self.where / "src/test/java")


def methods_of(sources, name):
    """The methods of a class that are tests, by its source."""
    text = (sources / f"{name.partition('$')[0].replace('.', '/')}.java").read_text()
    return re.findall(r"@(?:Test|ParameterizedTest|RepeatedTest)\b(?:(?!@(?:Parameterized|Repeated)?Test)[^{;])*?\bvoid\s+(\w+)\(", text)


def of_methods(out, sources):
    """How the methods ended. The first error of those that failed says with how many of their parameters they did. Where a class fails before
    its tests, they are found in its source: each of them fails."""
    runs = {}
    for case in ElementTree.parse(out).iter("testcase"):
        found = next((part for part in case if part.tag in ("failure", "error", "skipped")), None)
        how = "passed" if found is None else "skipped" if found.tag == "skipped" else "failed"
        said = "" if found is None else (found.get("message") or found.text or "").strip().partition("\n")[0]
        of, method = case.get("classname"), re.split(r"[(]", case.get("name"))[0]
        for method in methods_of(sources, of) if method == of else [method]:
            name = f"{of.removeprefix('org.postgresql.').removeprefix('test.')}.{method}"
            runs.setdefault(re.sub(r"\s+", "_", name), []).append((how, said))
    seen = {}
    for name, ends in runs.items():
        failed = [said for how, said in ends if how == "failed"]
        if failed:
            seen[name] = ("failed", f"{failed[0]} ({len(failed)} of {len(ends)})")
        else:
            seen[name] = ("passed" if any(how == "passed" for how, _ in ends) else "skipped", "")
    return seen
