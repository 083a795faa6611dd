#!/usr/bin/env python3
"""The console in a browser: a planted chain is drawn, its root's statement shown and ended from the page; a deadlock is drawn as a ring; a visitor without the rights sees neither. The last line is `N passed, N failed`.

usage: tests/console.py PATH-TO-clearway [DIRECTORY-FOR-SCREENSHOTS] [--later SECONDS]

With --later the slider is set back to the planted chain so many seconds after it has ended (600: ten minutes), instead of two seconds.

It needs chromium and chromedriver (Debian: chromium, chromium-driver), psql, and nothing else: WebDriver is spoken with Python's own library.
"""
import argparse, base64, json, os, pty, re, shutil, signal, subprocess, sys, tempfile, time, urllib.error, urllib.request

from checks import Checks, until

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("binary")
parser.add_argument("pictures", nargs="?")
parser.add_argument("--later", type=int, default=0)
asked = parser.parse_args()
BINARY, PICTURES = os.path.abspath(asked.binary), asked.pictures
scratch = tempfile.mkdtemp()
started = []
check = Checks("console")


def run(command, says, **more):
    """Starts a program and waits until its output holds what it says when it is up."""
    path = f"{scratch}/{len(started)}.log"
    process = subprocess.Popen(command, stdout=open(path, "w"), stderr=subprocess.STDOUT, **more)
    started.append(process)
    until(lambda: re.search(says, open(path).read()) or process.poll() is not None)
    found = re.search(says, open(path).read())
    if not found:
        raise SystemExit(f"{command[0]} did not come up:\n{open(path).read()}\n{check.totals(1)}")
    return process, found[1]


def end():
    for process in reversed(started):
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(timeout=60)
            except subprocess.TimeoutExpired:
                process.kill()
    shutil.rmtree(scratch, ignore_errors=True)


class Server:
    def __init__(self, *more, kept=("--memory",)):
        self.process, self.console = run([BINARY, "serve", *kept, "--listen", "127.0.0.1:0", *more], r"console of \S+ is at (http://\S+)/")
        self.port = re.search(r"-p (\d+)", open(f"{scratch}/{len(started) - 1}.log").read())[1]

    def psql(self, *sql, app="viewer", **more):
        command = ["psql", "-XAt", "-h", "127.0.0.1", "-p", self.port, "-U", "postgres", "-d", "postgres"]
        for one in sql:
            command += ["-c", one]
        done = subprocess.run(command, text=True, capture_output=True, env=os.environ | {"PGAPPNAME": app} | more)
        return (done.stdout + done.stderr).strip()


class Session:
    """A psql that is told line by line."""

    def __init__(self, server, app):
        self.app, self.server = app, server
        self.psql = subprocess.Popen(["psql", "-XAtq", "-h", "127.0.0.1", "-p", server.port, "-U", "postgres", "-d", "postgres"], text=True,
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=os.environ | {"PGAPPNAME": app})
        started.append(self.psql)

    def tell(self, sql):
        self.psql.stdin.write(sql + ";\n")
        self.psql.stdin.flush()

    def run(self, sql):
        self.tell(sql)
        self.psql.stdin.write("\\echo done\n")
        self.psql.stdin.flush()
        for line in self.psql.stdout:
            if line == "done\n":
                return

    def waits(self):
        until(lambda: self.server.psql(f"select count(*) from pg_stat_activity where application_name = '{self.app}' and wait_event_type = 'Lock'") == "1")

    def end(self):
        self.psql.stdin.close()
        out = self.psql.stdout.read()
        self.psql.wait()
        return out


class Browser:
    """Chromium by WebDriver."""

    def __init__(self):
        _, port = run([os.environ.get("CHROMEDRIVER", "chromedriver"), "--port=0"], r"successfully on port (\d+)")
        self.at = f"http://127.0.0.1:{port}"
        arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--force-color-profile=srgb",
                     f"--user-data-dir={scratch}/chromium"]
        wanted = {"capabilities": {"alwaysMatch": {"browserName": "chrome", "goog:chromeOptions": {"args": arguments},
                                                   "goog:loggingPrefs": {"browser": "ALL"}}}}
        self.at += "/session/" + self.call("POST", "/session", wanted)["sessionId"]

    def call(self, method, path, body=None):
        data = None if body is None and method == "GET" else json.dumps(body or {}).encode()
        request = urllib.request.Request(self.at + path, data, {"content-type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(error.read().decode()[:500]) from None

    def go(self, url):
        self.call("POST", "/url", {"url": url})

    def js(self, script, *arguments):
        return self.call("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def text(self, selector):
        return self.js("const e = document.querySelector(arguments[0]); return e ? e.innerText : ''", selector)

    def click(self, selector):
        found = self.call("POST", "/element", {"using": "css selector", "value": selector})
        self.call("POST", f"/element/{next(iter(found.values()))}/click")

    def keys(self, selector, text):
        found = self.call("POST", "/element", {"using": "css selector", "value": selector})
        self.call("POST", f"/element/{next(iter(found.values()))}/value", {"text": text})

    def chrome(self, command, **parameters):
        return self.call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def size(self, width, dark=False):
        self.chrome("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        self.chrome("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def picture(self, name):
        if PICTURES:
            height = min(self.js("return document.documentElement.scrollHeight"), 1700)
            width = self.js("return document.documentElement.clientWidth")
            clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
            png = self.chrome("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
            open(f"{PICTURES}/{name}.png", "wb").write(base64.b64decode(png["data"]))

    def errors(self):
        """What the browser has complained of, but for answers that the test asks for."""
        log = self.call("POST", "/se/log", {"type": "browser"})
        return [entry["message"] for entry in log if entry["level"] == "SEVERE" and "status of 4" not in entry["message"]]


def pictures(browser, name):
    if PICTURES:
        for width in (1280, 390):
            for dark in (False, True):
                browser.size(width, dark)
                time.sleep(1.5)
                browser.picture(f"{name}-{width}-{'dark' if dark else 'light'}")
    browser.size(1280)


def accessible(browser, where=""):
    """axe-core finds no serious fault of the page, light and dark, wide and narrow. npm fetches it; without npm that is not looked at."""
    fetched = shutil.which("npm") and subprocess.run(["npm", "pack", "--silent", "axe-core@4.14.1"], cwd=scratch, text=True, capture_output=True)
    if not fetched or fetched.returncode:
        print(f"NOT RUN: axe-core, which npm fetches ({fetched.stderr.strip()[-200:] if fetched else 'npm is missing'})", flush=True)
        return
    subprocess.run(["tar", "xzf", fetched.stdout.strip(), "package/axe.min.js"], cwd=scratch, check=True)
    browser.js(open(f"{scratch}/package/axe.min.js").read())
    for width, dark in ((1280, False), (1280, True), (390, False)):
        browser.size(width, dark)
        found = browser.js("return axe.run(document, {resultTypes: ['violations']}).then((r) => r.violations.map((v) => [v.impact, v.id, v.help, v.nodes.map((n) => n.target.join(' ')).slice(0, 5)]))")
        bad = [one for one in found if one[0] in ("serious", "critical")]
        check(f"axe-core finds nothing serious at {width} pixels{', dark' if dark else ''}{where}", not bad, bad)
    browser.size(1280)


def http(url, method="GET", headers={}, body=None):
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, headers, method=method), timeout=60) as answer:
            return answer.status, answer.read().decode(), dict(answer.headers)
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode(), dict(error.headers)


def chain(server):
    """Five sessions; each waits for the one before."""
    sessions = [Session(server, f"link {n}") for n in range(5)]
    for n, session in enumerate(sessions):
        session.run("begin")
        session.run(f"update t set v = {n} where id = {n}")
    sessions[0].run("select 'later'")
    for n, session in enumerate(sessions[1:]):
        session.tell(f"update t set v = 9 where id = {n}")
        session.waits()
    return sessions


def ring(server):
    sessions = [Session(server, f"ring {n}") for n in range(3)]
    for n, session in enumerate(sessions):
        session.run("begin")
        session.run(f"update t set v = {n} where id = {5 + n}")
    for n, session in enumerate(sessions):
        session.tell(f"update t set v = 8 where id = {5 + (n + 1) % 3}")
        if n < 2:
            session.waits()
    told = ""
    for session in reversed(sessions):
        session.tell("commit")
        told += session.end()
    return told


def top_captured(server):
    """What `clearway top` shows of the chain, at the two sizes that docs/ has."""
    if PICTURES:
        for size in ("80x24", "200x60"):
            shown = subprocess.run([BINARY, "top", f"postgresql://postgres@127.0.0.1:{server.port}/postgres", "--size", size], text=True, capture_output=True)
            with open(f"{PICTURES}/top-{size}.txt", "w") as file:
                file.write("\n".join(line.rstrip() for line in shown.stdout.splitlines()) + "\n")


def one_statement(server, browser):
    """From the table of statements to the page of the one that the chain waits with, and by its address."""
    home = browser.js("return location.href")
    find = "return [...document.querySelectorAll('#statements tbody tr')].find((row) => row.innerText.includes('update t set v'))?.querySelector('a')"
    browser.js("document.getElementById('statements').scrollIntoView()")
    check("a statement's trend stands in the table", until(lambda: browser.js("return document.querySelectorAll('#statements svg rect').length")), browser.text("#statements")[:500])
    until(lambda: browser.js(find + "?.click() || location.hash.startsWith('#statement=')"))
    address = browser.js("return location.href")
    browser.go("about:blank")
    browser.go(address)
    shown = until(lambda: (lambda text: text if "Index Scan" in text else "")(browser.text("#statement"))) or browser.text("#statement")
    check("a statement has a page with its own address", "#statement=" in address and "update t set v" in browser.text("#statement-text"), shown)
    check("with its plan", "using t_pkey on t" in browser.text("#statement-plan"), browser.text("#statement-plan"))
    check("what it waited for", "Lock" in browser.text("#statement-waits"), browser.text("#statement-waits"))
    bars = browser.js("return [...document.querySelectorAll('#statement-times tbody tr')].map((row) => row.cells[2].innerText)")
    calls = browser.js("return [...document.querySelectorAll('#statement-figures tr')].find((row) => row.innerText.startsWith('calls'))?.cells.length") or 1
    check("how its times are spread", bars and sum(map(int, bars)) >= calls - 1, bars)
    risen = "return [...document.querySelectorAll('#statement-trend rect')].filter((bar) => bar.height.baseVal.value > 1).length"
    check("its trend rises while it runs", until(lambda: server.psql("update t set v = 5 where id = 9") == "UPDATE 1" and browser.js(risen)), browser.text("#statement-trend"))
    check("and its figures", "calls" in browser.text("#statement-figures") and "p99 ms" in browser.text("#statement-figures"), browser.text("#statement-figures"))
    check("and not the rest", not browser.js("return document.querySelector('#tree').offsetParent"))
    accessible(browser, " on the statement's page")
    check("its page is not wider than 390 pixels", [browser.size(390), browser.js("return document.documentElement.scrollWidth")][1] <= 390)
    pictures(browser, "statement")
    browser.size(1280)
    browser.click("#statement a")
    check("a link leads back", until(lambda: browser.js("return !!document.querySelector('#tree').offsetParent")))
    browser.go("about:blank")
    browser.go(home)
    until(lambda: "link" in browser.text("#tree"))


def in_a_browser(server, browser):
    server.psql("create table t (id int primary key, v int)", "insert into t select g, 0 from generate_series(0, 9) g")
    told = ring(server)
    check("a ring of three is a deadlock", told.count("deadlock detected") == 1, told)
    sessions = chain(server)
    browser.size(1280)
    browser.go(server.console + "/")
    tree = until(lambda: (lambda text: text if text.count("link") >= 5 else "")(browser.text("#tree"))) or browser.text("#tree")
    check("the chain of five is on the page", all(f"link {n}" in tree for n in range(5)) and "blocks 4 sessions" in tree, tree)
    check("its root stands first, with the statement that took the lock", re.search(r"^\d+ postgres \(link 0\)", tree) and "took what others wait for by: update t set v = 0 where id = 0" in tree, tree)
    check("the chart has the class of these waits", until(lambda: "Lock" in browser.text("#legend")), browser.text("#legend"))
    cores = len(os.sched_getaffinity(0))
    line = "return [...document.querySelectorAll('#chart line.processors')].map((line) => line.getBoundingClientRect().top - document.querySelector('#chart').getBoundingClientRect().top)"
    check("and a line for the processors", until(lambda: f"{cores} processor" in browser.text("#legend")) and (cores > 12 or len(browser.js(line)) == 1 and 0 < browser.js(line)[0] < 160),
          (browser.text("#legend"), browser.js(line)))
    browser.js("document.querySelector('#deadlocks').scrollIntoView()")
    check("the ring has three sessions", until(lambda: browser.js("return document.querySelectorAll('.ring circle').length") == 3), browser.text("#deadlocks"))
    check("and three arrows", browser.js("return document.querySelectorAll('.ring svg > path').length") == 3)
    shown = browser.text("#deadlocks")
    check("and each one's statements", all(f"update t set v = {n} where id = {5 + n}" in shown for n in range(3)) and ", the victim" in shown, shown)
    for name, wanted in [("transactions", "link 0"), ("statements", "update t set v"), ("lock_waits", "deadlock"), ("findings", "Idle blocker"), ("waits", "Lock"),
                         ("tables", "public.t"), ("indexes", "t_pkey"), ("files", "log_file"), ("latches", "The SQL behind it")]:
        browser.js("document.getElementById(arguments[0]).scrollIntoView()", name)
        check(f"table {name}", until(lambda: wanted in browser.text(f"#{name}")), browser.text(f"#{name}")[:800])
    accessible(browser)
    one_statement(server, browser)
    browser.js("scrollTo(0, 0)")
    check("nothing is wider than the page", [browser.size(390), browser.js("return document.documentElement.scrollWidth")][1] <= 390)
    pictures(browser, "console")
    top_captured(server)

    # 5,000 sessions, each behind the one before, and 5,000 behind one: drawn from what a console would send.
    for name, blocker in [("in a chain", "n - 1"), ("behind one", "0")]:
        drawn = browser.js("""
            const sessions = Array.from({length: 5000}, (_, n) => ({pid: n, user: 'u', application: 'a', state: 'active', event: 'tuple', class: 'Lock',
                in_state_s: 1, transaction_s: 1, query: 'update t set v = v + 1 where id = 1', blocked_by: n ? [%s] : [], lock: null}));
            const began = performance.now();
            drawTree({sessions}); drawSessions({sessions});
            return [document.querySelector('#tree').innerText.slice(0, 100), document.querySelectorAll('#tree .node').length, performance.now() - began]""" % blocker)
        check(f"5,000 sessions {name} are drawn ({drawn[2]:.0f} ms)", "blocks 4999 sessions" in drawn[0] and 100 < drawn[1] <= 501, drawn)

    planted_us = json.loads(http(server.console + "/api/now")[1])["second"]["at"]
    # The moment before: the slider goes back, the address names it, and the button leads back to now.
    browser.js("const h = document.getElementById('hour'); h.value = -2; h.dispatchEvent(new Event('input'))")
    check("the slider shows an earlier second", until(lambda: "as of" in browser.text("#moment")) and browser.js("return location.hash").startswith("#at="))
    browser.click("#live")

    browser.js("scrollTo(0, 0)")
    until(lambda: browser.js("return !!document.querySelector('#tree button')"))
    # The tree is drawn again each second: the button is clicked in one step.
    browser.js("document.querySelector('#tree button').click()")
    check("the page asks before it ends a session", "blocks 4" in browser.text("#confirm-text"), browser.text("#confirm-text"))
    browser.click("#confirm-no")
    check("no means no", server.psql("select count(*) from pg_stat_activity where application_name = 'link 0'") == "1")
    browser.js("document.querySelector('#tree button').click()")
    browser.click("#confirm-yes")
    check("the root has ended", until(lambda: server.psql("select count(*) from pg_stat_activity where application_name = 'link 0'") == "0"), browser.text("#done"))
    sessions[1].run("commit")
    check("the next one goes on", server.psql("select v from t where id = 0") == "9")
    for session in sessions[2:]:
        session.run("commit")
    check("and all others", server.psql("select string_agg(v::text, ',' order by id) from t where id < 4") == "9,9,9,9")
    check("the page shows that nobody waits", until(lambda: "Nobody waits" in browser.text("#tree")), browser.text("#tree"))
    if asked.later:
        long_ago(server, browser, planted_us)
    for session in sessions:
        session.end()
    errors = browser.errors()
    check("the browser has nothing to complain of", not errors, errors)


def long_ago(server, browser, planted_us):
    """The incident is over for long: the slider leads back to it, and so does its address for somebody else."""
    since_s = lambda: (json.loads(http(server.console + "/api/now")[1])["second"]["at"] - planted_us) / 1e6
    while since_s() < asked.later:
        time.sleep(1)
    browser.go("about:blank")
    browser.go(server.console + "/")
    until(lambda: "Nobody waits" in browser.text("#tree"))
    # In seconds behind now, as somebody moves it; the second before the planted moment has the chain as well.
    browser.js("const h = document.getElementById('hour'); h.value = -arguments[0]; h.dispatchEvent(new Event('input'))", round(since_s()) + 2)
    whole = lambda text: all(f"link {n}" in text for n in range(5)) and "blocks 4 sessions" in text and "took what others wait for by: update t set v = 0 where id = 0" in text
    check(f"the slider {asked.later} s back shows the chain with its root and the statement that took the lock", until(lambda: whole(browser.text("#tree"))), browser.text("#tree"))
    address = browser.js("return location.href")
    at_us = int(address.split("#at=")[1])
    check("of a moment so long ago", 0.9 * asked.later < since_s() and at_us <= planted_us + 3_000_000, (at_us, planted_us))
    browser.js("document.getElementById('lock_waits').scrollIntoView()")
    shown = until(lambda: (lambda text: text if all(f"update t set v = 9 where id = {n}" in text for n in range(4)) else "")(browser.text("#lock_waits"))) or browser.text("#lock_waits")
    check("with the waits of that moment", all(f"update t set v = 9 where id = {n}" in shown for n in range(4)), shown)
    browser.go("about:blank")
    browser.go(address)
    check("its address leads there", until(lambda: whole(browser.text("#tree"))), browser.text("#tree"))
    browser.click("#live")
    check("and the button back to now", until(lambda: "Nobody waits" in browser.text("#tree")), browser.text("#tree"))


def who_may(server):
    at = server.console
    page = http(at + "/")
    token = re.search(r'name="token" content="(\w+)"', page[1])[1]
    check("the page loads nothing from elsewhere", "default-src 'none'" in page[2]["content-security-policy"] and not re.search(r"(src|href)=\"(?!/|#|data:,)", page[1]))
    check("another name for this machine is refused", http(at + "/api/now", headers={"host": "evil.example"})[0] == 421)
    check("a forged cancel is refused", http(at + "/api/cancel?pid=1", "POST")[0] == 403)
    check("and one from another origin", http(at + "/api/cancel?pid=1", "POST", {"x-clearway-token": token, "origin": "http://evil.example"})[0] == 403)
    check("and one of an opaque origin", http(at + "/api/cancel?pid=1", "POST", {"x-clearway-token": token, "origin": "null"})[0] == 403)
    check("the page's own is not", "has ended already" in http(at + "/api/cancel?pid=999999", "POST", {"x-clearway-token": token, "origin": at})[1])
    check("health and readiness", (http(at + "/health")[0], until(lambda: http(at + "/ready")[0] == 200)) == (200, True))
    metrics = until(lambda: (lambda text: text if "clearway_statement_calls_total" in text else "")(http(at + "/metrics", headers={"accept": "application/openmetrics-text"})[1]))
    check("metrics", metrics and metrics.endswith("# EOF\n") and "clearway_watch_up 1" in metrics, metrics)
    check("the console leaves its own sessions out", "clearway watch" not in http(at + "/api/table/statements")[1].split('"sql"')[0])


def with_passwords(browser):
    secret = f"{scratch}/password"
    with open(os.open(secret, os.O_CREAT | os.O_WRONLY, 0o600), "w") as file:
        file.write("of the sampler\n")
    settings = f"{scratch}/settings"
    open(settings, "w").close()
    server = Server("--http", "127.0.0.1:0", "-c", f"http_password_file={secret}", "--config", settings, kept=("--data", f"{scratch}/data"))
    server.psql("alter role postgres password 'of the sampler'", "create role watcher login password 'w'", "grant pg_monitor to watcher",
                "create role guest login password 'g'", "create table secret (id int)")
    with open(settings, "w") as file:
        file.write("password_on_loopback = on\n")
    server.process.send_signal(signal.SIGHUP)
    at = server.console
    check("without a login there is nothing to see", until(lambda: http(at + "/api/now")[0] == 401))
    check("nor metrics", http(at + "/metrics")[0] == 401 and "Basic" in http(at + "/metrics")[2].get("www-authenticate", ""))
    basic = lambda text: {"authorization": "Basic " + base64.b64encode(text.encode()).decode()}
    check("a scraper logs in", http(at + "/metrics", headers=basic("watcher:w"))[0] == 200)
    check("but not with a wrong password", http(at + "/metrics", headers=basic("watcher:x"))[0] == 401)
    answer = http(at + "/metrics", headers=basic("guest:g"))
    check("nor who may not see the others' statements", answer[0] == 403 and "pg_monitor" in answer[1], answer)
    browser.go(at + "/")
    check("the page asks for a login", until(lambda: browser.js("return document.getElementById('login').open")))
    browser.keys("#login-role", "watcher")
    browser.keys("#login-password", "wrong")
    browser.click("#login button")
    check("a wrong password is told", until(lambda: "authentication failed" in browser.text("#login-error")), browser.text("#login-error"))
    browser.js("document.getElementById('login-password').value = ''")
    browser.keys("#login-password", "w")
    browser.click("#login button")
    check("a right one opens the page", until(lambda: "as watcher" in browser.text("#who")), browser.text("#login-error"))
    check("the sampler has its own login", until(lambda: "Clearway" in browser.text("#server")), browser.text("#server"))
    holder = session_of(server, "postgres", "of the sampler")
    pid = server.psql("select pid from pg_stat_activity where application_name = 'holder'", PGPASSWORD="of the sampler")
    said = browser.js("return fetch('/api/cancel?pid=' + arguments[0], {method: 'POST', headers: {'x-clearway-token': meta('token'), 'x-clearway-session': sessionStorage.getItem('session')}}).then((a) => a.text())", pid)
    check("a visitor ends no session that its role may not end", "permission denied" in said or "must be" in said, said)
    holder.end()
    browser.click("#logout")
    check("logging out ends it", until(lambda: browser.js("return document.getElementById('login').open")))


def findings(server):
    """Each planted defect is found, and what is no defect is not."""
    server.psql("create table no_key (a int)", "create table d (id int primary key, a int, b int, c int unique, plain int)", "create index d_a on d (a)",
                "create index d_a_b on d (a, b)", "create index d_used on d (b, id)", "insert into d select g, g, g, g, g from generate_series(1, 5000) g", "analyze d",
                *["select count(*) from d where plain + 0 = 3"] * 5, *["select id from d where b = 7"] * 3)
    script = f"{scratch}/one.sql"
    with open(script, "w") as file:
        file.write("\\set id random(1, 5000)\nselect a from d where id = :id;\n")
    subprocess.run(["pgbench", "-n", "-h", "127.0.0.1", "-p", server.port, "-U", "postgres", "-c", "1", "-t", "1000", "-f", script, "postgres"],
                   capture_output=True, env=os.environ | {"PGAPPNAME": "row by row"}, check=True)
    ask = lambda: json.loads(http(server.console + "/api/table/findings")[1])
    of = lambda table: {(row[0], row[1].removeprefix("public.")) for row in table.get("rows", [])}
    until(lambda: ("N+1 queries", "row by row") in of(ask()))
    table = ask()
    found = of(table)
    for wanted in [("No primary key", "no_key"), ("Duplicate index", "d_a"), ("Unused index", "d_a_b"), ("N+1 queries", "row by row"), ("Missing index", "viewer")]:
        check(f"a finding: {wanted[0].lower()}", wanted in found, table)
    wrong = [one for one in found if one[1] in ("d_used", "d_pkey", "d_c_key", "t_pkey", "d", "t") or one == ("Duplicate index", "d_a_b")]
    check("and no wrong ones", not wrong, wrong)


def in_a_terminal(server):
    """`clearway top` on a terminal of 80 by 24, which answers where its cursor is."""
    holder, waiter = Session(server, "top holder"), Session(server, "top waiter")
    holder.run("begin")
    holder.run("update t set v = 1 where id = 9")
    waiter.tell("update t set v = 2 where id = 9")
    waiter.waits()
    ours, theirs = pty.openpty()
    url = f"postgresql://postgres@127.0.0.1:{server.port}/postgres"
    top = subprocess.Popen([BINARY, "top", url, "--cancel"], stdin=theirs, stdout=theirs, stderr=theirs, env=os.environ | {"TERM": "xterm"})
    started.append(top)
    os.close(theirs)
    os.set_blocking(ours, False)
    shown = ""

    def screen():
        nonlocal shown
        try:
            read = os.read(ours, 1 << 16).decode(errors="replace")
            if "\x1b[6n" in read:
                os.write(ours, b"\x1b[24;80R")
            shown = (shown + read)[-20000:]
        except BlockingIOError:
            pass
        except OSError:
            return ""
        return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown.split("\x1b[999;999H\x1b[6n\x1b[H")[-1])

    check("top shows who waits below whom", until(lambda: re.search(r"top holder.*\n +\d+ +top waiter +Lock: ", screen())), screen())
    for key, wanted in [(b"j", ""), (b"x", "end what session"), (b"y", "was told to end")]:
        os.write(ours, key)
        check(f"top's key {key.decode()}", until(lambda: wanted in screen()), screen())
        time.sleep(0.5)
    check("the session has ended", until(lambda: server.psql("select count(*) from pg_stat_activity where application_name = 'top holder'") == "0"))
    waiter.run("select 1")
    check("and the one behind it goes on", server.psql("select v from t where id = 9") == "2")
    os.write(ours, b"q")
    check("top ends by q", until(lambda: screen() is not None and top.poll() == 0), top.poll())
    for session in (holder, waiter):
        session.end()
    once = subprocess.run([BINARY, "top", url, "--size", "200x60"], text=True, capture_output=True)
    check("top prints one screen", once.returncode == 0 and len(once.stdout.splitlines()) == 60, once.stdout + once.stderr)


def session_of(server, role, password):
    os.environ["PGPASSWORD"] = password
    session = Session(server, "holder")
    session.run("begin")
    del os.environ["PGPASSWORD"]
    return session


try:
    browser = Browser()
    server = Server("--http", "127.0.0.1:0", "-c", "http_queries_interval=1s")
    in_a_browser(server, browser)
    who_may(server)
    in_a_terminal(server)
    findings(server)
    with_passwords(browser)
    _, watch = run([BINARY, "watch", f"postgresql://postgres@127.0.0.1:{server.port}/postgres", "--http", "127.0.0.1:0"], r"console of \S+ is at (http://\S+)/")
    check("clearway watch serves the same page", until(lambda: '"connected":true' in http(watch + "/api/now")[1]))
    page = http(watch + "/")[1]
    token = re.search(r'name="token" content="(\w+)"', page)[1]
    check("and cancels nothing without --cancel", http(watch + "/api/cancel?pid=1", "POST", {"x-clearway-token": token})[0] == 403)
    began = time.time()
    server.process.send_signal(signal.SIGTERM)
    check("the server stops while its console watches", server.process.wait() == 0)
    check("and the watcher says that it is gone", until(lambda: http(watch + "/ready")[0] == 503))
finally:
    end()
print(check.totals())
sys.exit(check.failed > 0)
