"""PowerDNS: zones made by pdnsutil and by its HTTP API, signed, asked for by sdig, transferred to a second server"""
import json, os, re, subprocess, time, urllib.error, urllib.request

import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "regress"))
from servers import free_port  # noqa: E402

PACKAGES = ["pdns-server", "pdns-backend-pgsql", "pdns-tools", "libboost-program-options1.74.0", "libluajit-5.1-2", "libluajit-5.1-common", "libsodium23", "libp11-kit0",
            "libffi8", "libpq5", "libcurl4", "libsqlite3-0"]
ZONE = """$ORIGIN example.net.
$TTL 600
@ IN SOA ns1.example.net. hostmaster.example.net. 2024010101 7200 900 1209600 300
@ IN NS ns1
@ IN MX 10 mail
ns1 IN A 192.0.2.1
mail IN AAAA 2001:db8::25
www IN CNAME mail
text IN TXT "one \\"two\\"" "three"
_sip._tcp IN SRV 0 5 5060 mail
*.wild IN A 192.0.2.9
sub IN NS ns.sub
ns.sub IN A 192.0.2.53
"""


def masked(text):
    """Without keys, signatures, numbers of keys and times, which differ from run to run."""
    text = re.sub(r"(RRSIG\s+\w+ \d+ \d+ \d+ )\d+ \d+ \d+( \S+) \S+", r"\1...\2 ...", text)
    text = re.sub(r"(DNSKEY\s+\d+ \d+ \d+ )\S+( \S+)*", r"\1...", text)
    text = re.sub(r"(?<=[ =])[A-Za-z0-9+/]{40,}=*|[0-9a-f]{40,}", "...", text)
    text = re.sub(r"\b(DS = \S+ IN DS) \d+", r"\1 N", text)
    text = re.sub(r"tag = \d+|ID = \d+|\"(?:id|keytag)\": \d+", "N", text)
    text = re.sub(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\S*|[A-Z][a-z]{2} \d\d \d\d:\d\d:\d\d ", "", text)
    text = re.sub(r"\d+( 13 [124] \.\.\.)", r"N\1", text)
    text = re.sub(r"(?m)(cryptokeys +)\d+$", r"\1N", text)
    return re.sub(r"\"(?:modified_at|edited_serial|notified_serial|last_check)\": \d+", "TIME", text)


class PowerDns:
    def __init__(self, home, place, server, database, settings=()):
        self.home, self.place = home, place
        self.port, self.web = free_port(), free_port()
        library = home / "usr/lib/x86_64-linux-gnu"
        place.mkdir()
        self.environment = {**os.environ, "LD_LIBRARY_PATH": str(library), "TZ": "UTC"}
        lines = ["launch=gpgsql", f"module-dir={library}/pdns", "gpgsql-host=127.0.0.1", f"gpgsql-port={server.port}", f"gpgsql-dbname={database}", "gpgsql-user=postgres",
                 "gpgsql-dnssec=yes", "local-address=127.0.0.1", f"local-port={self.port}", f"socket-dir={place}", "api=yes", "api-key=key", "webserver=yes", f"webserver-port={self.web}",
                 "cache-ttl=0", "query-cache-ttl=0", "negquery-cache-ttl=0", "zone-cache-refresh-interval=0", "zone-metadata-cache-ttl=0", "dnsupdate=no", "resolver=127.0.0.1:1",
                 "xfr-cycle-interval=1", *settings]
        (place / "pdns.conf").write_text("\n".join(lines) + "\n")
        self.log = open(place / "log", "w+")

    def util(self, *arguments):
        done = subprocess.run([self.home / "usr/bin/pdnsutil", "--config-dir", self.place, *arguments], env=self.environment, capture_output=True, text=True, timeout=60)
        return masked(f"{done.stdout}{done.stderr}ended with {done.returncode}\n")

    def start(self):
        command = [self.home / "usr/sbin/pdns_server", f"--config-dir={self.place}", "--daemon=no", "--guardian=no", "--disable-syslog"]
        self.process = subprocess.Popen(command, env=self.environment, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        for _ in range(300):
            try:
                if self.api("GET", "servers/localhost")[:3] == "200":
                    return
            except OSError:
                pass
            time.sleep(0.1)
        raise RuntimeError(f"pdns_server did not start: {(self.place / 'log').read_text()[-2000:]}")

    def stop(self):
        self.process.terminate()
        self.process.wait(20)

    def ask(self, name, kind, *how):
        done = subprocess.run([self.home / "usr/bin/sdig", "127.0.0.1", str(self.port), name, kind, *how], env=self.environment, capture_output=True, text=True, timeout=20)
        # Parts of an answer that say the same have no order.
        return "\n".join(sorted(masked(done.stdout + done.stderr).splitlines())) + "\n"

    def transfer(self, name):
        done = subprocess.run([self.home / "usr/bin/saxfr", "127.0.0.1", str(self.port), name], env=self.environment, capture_output=True, text=True, timeout=20)
        return "\n".join(sorted(masked(done.stdout).splitlines())) + "\n"

    def api(self, method, path, body=None):
        request = urllib.request.Request(f"http://127.0.0.1:{self.web}/api/v1/{path}", method=method, headers={"X-API-Key": "key"}, data=json.dumps(body).encode() if body else None)
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                status, text = answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            status, text = error.code, error.read().decode()
        try:
            value = json.loads(text)
            if isinstance(value, dict) and "rrsets" in value:
                value["rrsets"].sort(key=lambda r: (r["name"], r["type"]))
            if isinstance(value, list):
                value.sort(key=lambda v: json.dumps(v, sort_keys=True))
            text = json.dumps(value, indent=1, sort_keys=True)
        except ValueError:
            pass
        return masked(f"{status} {text}\n").replace(str(self.web), "PORT").replace(str(self.port), "PORT")


def run(home, place, server, psql):
    schema = (home / "usr/share/pdns-backend-pgsql/schema/schema.pgsql.sql").read_text()
    steps = {}
    for database in ("pdns_first", "pdns_second"):
        psql("postgres", f"CREATE DATABASE {database}")
        steps[f"schema of {database}"] = psql(database, schema).stderr
    first = PowerDns(home, place / "first", server, "pdns_first", ["primary=yes", "allow-axfr-ips=127.0.0.0/8", "only-notify="])
    second = PowerDns(home, place / "second", server, "pdns_second", ["secondary=yes"])
    (place / "zone").write_text(ZONE)
    util = [
        ["create-zone", "example.org", "ns1.example.org"], ["create-zone", "example.org"], ["add-record", "example.org", "ns1", "A", "300", "192.0.2.1"],
        ["add-record", "example.org", "www", "A", "192.0.2.2"], ["add-record", "example.org", "www", "A", "192.0.2.3"], ["add-record", "example.org", "@", "MX", "25 mail.example.org"],
        ["add-record", "example.org", "bad", "A", "not.an.address"], ["replace-rrset", "example.org", "www", "A", "60", "192.0.2.4", "192.0.2.5"], ["load-zone", "example.net", str(place / "zone")],
        ["list-zone", "example.net"], ["list-all-zones"], ["check-zone", "example.net"], ["check-all-zones"], ["set-kind", "example.org", "primary"], ["set-kind", "example.net", "primary"],
        ["secure-zone", "example.org"], ["set-nsec3", "example.org", "1 0 1 ab"], ["rectify-zone", "example.org"], ["show-zone", "example.org"], ["add-zone-key", "example.org", "zsk", "256", "active", "ecdsa256"],
        ["list-keys", "example.org"], ["increase-serial", "example.net"], ["increase-serial", "example.org"], ["check-zone", "example.org"], ["set-meta", "example.net", "ALLOW-AXFR-FROM", "AUTO-NS"],
        ["get-meta", "example.net"], ["set-meta", "example.net", "ALLOW-AXFR-FROM"], ["import-tsig-key", "transfer", "hmac-sha256", "c2VjcmV0IGtleSBvZiB0aGUgdHJhbnNmZXI="], ["list-tsig-keys"],
        ["delete-rrset", "example.org", "www", "A"], ["add-autoprimary", "192.0.2.7", "ns7.example.org", "them"], ["list-autoprimaries"], ["secure-zone", "example.net"],
        ["unset-nsec3", "example.org"], ["rectify-all-zones"], ["add-record", "example.org", "www", "A", "192.0.2.2"], ["hash-zone-record", "example.org", "www.example.org"], ["list-zone", "example.org"],
    ]
    for at, arguments in enumerate(util):
        steps[f"pdnsutil {at + 1}: {' '.join(arguments[:2])}"] = first.util(*arguments).replace(str(place), "PLACE")
    first.start()
    try:
        for name, kind in [("example.net", "SOA"), ("www.example.net", "AAAA"), ("text.example.net", "TXT"), ("_sip._tcp.example.net", "SRV"), ("a.b.wild.example.net", "A"), ("no.example.net", "A"),
                           ("host.sub.example.net", "A"), ("example.net", "ANY"), ("example.org", "DNSKEY"), ("www.example.org", "A"), ("zzz.example.org", "A"), ("elsewhere.com", "A")]:
            steps[f"question {name} {kind}"] = first.ask(name, kind, "tcp")
            steps[f"question {name} {kind}, signed"] = first.ask(name, kind, "dnssec", "tcp")
        steps["transfer example.net"] = first.transfer("example.net")
        steps |= through_api(first)
        # The second server fetches the zone, and again after a change.
        steps["secondary zone"] = second.util("create-secondary-zone", "example.net", f"127.0.0.1:{first.port}").replace(str(first.port), "PORT")
        second.start()
        try:
            for name, change in (("first transfer", []), ("second transfer", ["add-record", "example.net", "later", "A", "192.0.2.77"])):
                if change:
                    first.util(*change)
                    first.util("increase-serial", "example.net")
                    second.api("PUT", "servers/localhost/zones/example.net/axfr-retrieve")
                probe = "later.example.net" if change else "www.example.net"
                for _ in range(100):
                    if "ttl" in second.ask(probe, "A", "tcp") and "SOA" not in second.ask(probe, "A", "tcp").replace("SOA\t6", ""):
                        break
                    time.sleep(0.1)
                steps[name] = "\n".join(sorted(second.util("list-zone", "example.net").splitlines()))
            steps["question to the second"] = second.ask("www.example.net", "AAAA", "dnssec", "tcp")
        finally:
            second.stop()
        steps["pdnsutil: delete-zone"] = first.util("delete-zone", "example.net") + first.util("list-all-zones")
    finally:
        first.stop()
    tables = ["domains", "records", "domainmetadata", "comments", "tsigkeys", "supermasters"]
    for table in tables:
        columns = {"domains": "id, name, master, type, account", "records": "domain_id, name, type, CASE WHEN type IN ('DNSKEY', 'NSEC') THEN NULL ELSE content END, ttl, prio, disabled, ordername, auth", "comments": "domain_id, name, type, account, comment"}
        for database in ("pdns_first", "pdns_second"):
            where = "WHERE type <> 'RRSIG'" if table == "records" else ""
            rows = psql(database, f"SELECT {columns.get(table, '*')} FROM {table} {where} ORDER BY 2, 3, 4").stdout
            steps[f"rows of {table} in {database}"] = re.sub(r"127\.0\.0\.1:\d+", "FIRST", rows)
    return steps


def through_api(first):
    """Zones and records by the HTTP API."""
    base = "servers/localhost/zones"
    records = lambda *values: [{"content": value, "disabled": False} for value in values]  # noqa: E731
    made = {"name": "example.com.", "kind": "Native", "nameservers": ["ns1.example.com.", "ns2.example.com."], "dnssec": True, "soa_edit_api": "INCEPTION-INCREMENT"}
    change = {"rrsets": [
        {"name": "www.example.com.", "type": "A", "ttl": 60, "changetype": "REPLACE", "records": records("192.0.2.5", "192.0.2.6"), "comments": [{"content": "it's \"new\"", "account": "admin", "modified_at": 1700000000}]},
        {"name": "text.example.com.", "type": "TXT", "ttl": 60, "changetype": "REPLACE", "records": records('"é and \\\\"')}]}
    calls = [
        ("POST", base, made), ("POST", base, made), ("GET", f"{base}/example.com", None), ("PATCH", f"{base}/example.com", change), ("GET", f"{base}/example.com", None),
        ("PATCH", f"{base}/example.com", {"rrsets": [{"name": "www.other.", "type": "A", "ttl": 1, "changetype": "REPLACE", "records": records("192.0.2.5")}]}),
        ("PATCH", f"{base}/example.com", {"rrsets": [{"name": "text.example.com.", "type": "TXT", "changetype": "DELETE"}]}), ("PUT", f"{base}/example.com/rectify", None),
        ("GET", f"{base}/example.com/export", None), ("GET", f"{base}/example.com/cryptokeys", None), ("POST", f"{base}/example.com/metadata", {"kind": "X-NOTE", "metadata": ["one", "two"]}),
        ("GET", f"{base}/example.com/metadata", None), ("PUT", f"{base}/example.com", {"kind": "Master", "account": "them"}), ("GET", base, None), ("GET", "servers/localhost/search-data?q=*192.0.2.*&max=50", None),
        ("GET", "servers/localhost/search-data?q=*new*&object_type=comment", None), ("POST", "servers/localhost/tsigkeys", {"name": "second", "algorithm": "hmac-sha256", "key": "c2Vjb25kIGtleSBvZiBhIHRlc3Qu"}),
        ("GET", "servers/localhost/tsigkeys", None), ("DELETE", "servers/localhost/tsigkeys/second.", None), ("DELETE", f"{base}/example.com", None), ("GET", f"{base}/example.com", None),
    ]
    seen = {f"API {at + 1}: {method} {path}": re.sub(r'20\d{8}\b|"(?:serial|edited_serial)": \d+', "SERIAL", first.api(method, path, body)) for at, (method, path, body) in enumerate(calls)}
    return seen
