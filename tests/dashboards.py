#!/usr/bin/env python3
"""Every expression of every dashboard and of every alert is asked of a real Prometheus that scrapes a real server. The last line is
`N passed, N failed`.

usage: tests/dashboards.py PATH-TO-clearway

It needs prometheus and promtool (Debian: prometheus), and psql.
"""
import glob, json, os, re, shutil, signal, socket, subprocess, sys, tempfile, urllib.error, urllib.parse, urllib.request

from checks import Checks, until

BINARY = os.path.abspath(sys.argv[1])
HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DASHBOARDS = f"{HERE}/dashboards"
# As postgres_exporter reads it: the histogram's figures stand in columns beside its bounds.
MINE = """
mine:
  query: "select 7 as answer, 'b' as state, array[1, 2, 4]::float8[] as age, array[2, 6, 8] as age_bucket, 10 as age_sum, 8 as age_count"
  metrics:
    - answer: {usage: GAUGE}
    - state:
        usage: "MAPPEDMETRIC"
        metric_mapping:
          "a": 1
          "b": 2
    - Age:
        usage: "HISTOGRAM"
        description: "how old"
"""
scratch = tempfile.mkdtemp()
own = f"{scratch}/own.yaml"
started = []
check = Checks("dashboards")


def promtool(*arguments):
    done = subprocess.run(["promtool", *arguments], text=True, capture_output=True, cwd=DASHBOARDS)
    check(f"promtool {' '.join(arguments)}", done.returncode == 0, done.stdout + done.stderr)


def get(url):
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:
            return answer.read().decode()
    except (urllib.error.URLError, ConnectionError) as error:
        return f"{error}"


def client():
    return ["psql", "-XAtq", "-h", "127.0.0.1", "-p", port, "-U", "postgres", "-d", "postgres"]


def psql(*sql):
    command = client()
    for one in sql:
        command += ["-c", one]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def expressions():
    """Where it stands, and the expression without what compares it: that a rule says nothing of a healthy server is right."""
    for path in sorted(glob.glob(f"{DASHBOARDS}/*.json")):
        for panel in json.load(open(path))["panels"]:
            for target in panel["targets"]:
                yield f"{os.path.basename(path)}: {panel['title']}: {target['legendFormat']}", target["expr"]
    for alert, text in re.findall(r"- alert: (\w+)\n\s+expr: (.*)", open(f"{DASHBOARDS}/alerts.yml").read()):
        for part in text.split(" and "):
            yield f"alerts.yml: {alert}", re.split(r" (?:>|<|==) ", part)[0].replace("[5m]", "[1m]").replace("[10m]", "[1m]")


def answered(expression):
    question = expression.replace("$host", host).replace("$interval", "1m")
    answer = json.loads(get(f"{prometheus}/api/v1/query?" + urllib.parse.urlencode({"query": question})))
    return answer["data"]["result"] if answer["status"] == "success" else []


def server():
    log = open(f"{scratch}/server.log", "w")
    shutil.copy(f"{DASHBOARDS}/innodb-mutex.yaml", own)
    settings = ["-c", f"http_queries={own}", "-c", "http_queries_interval=1s"]
    started.append(subprocess.Popen([BINARY, "serve", "--data", f"{scratch}/data", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", *settings],
                                    stdout=log, stderr=log))
    text = lambda: open(log.name).read()
    if not until(lambda: "the console of" in text() or started[-1].poll() is not None) or started[-1].poll() is not None:
        sys.exit(f"the server did not come up:\n{text()}\n0 passed, 1 failed")
    return re.search(r"-p (\d+)", text())[1], re.search(r"is at http://(\S+)/", text())[1]


def scraper():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        at = f"127.0.0.1:{free.getsockname()[1]}"
    config = open(f"{DASHBOARDS}/prometheus.yml").read().replace("127.0.0.1:9187", host).replace("10s", "1s").replace("alerts.yml", f"{DASHBOARDS}/alerts.yml")
    open(f"{scratch}/prometheus.yml", "w").write(config)
    log = open(f"{scratch}/prometheus.log", "w")
    started.append(subprocess.Popen(["prometheus", f"--config.file={scratch}/prometheus.yml", f"--storage.tsdb.path={scratch}/tsdb", f"--web.listen-address={at}"],
                                    stdout=log, stderr=log))
    return f"http://{at}"


try:
    promtool("check", "config", "prometheus.yml")
    promtool("check", "rules", "alerts.yml")
    checked = subprocess.run([BINARY, "metrics", "check", f"{DASHBOARDS}/innodb-mutex.yaml"], text=True, capture_output=True)
    check("clearway metrics check", checked.returncode == 0 and "3 columns" in checked.stdout, checked.stderr)
    port, host = server()
    prometheus = scraper()
    # Something to see: statements, commits, a wait for a lock, and mutexes that sessions contend for.
    psql("create table t (id int primary key, v int)", "insert into t select g, 0 from generate_series(1, 100) g").wait()
    holder = subprocess.Popen(client(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    holder.stdin.write("begin; update t set v = 1 where id = 1; select 'taken';\n")
    holder.stdin.flush()
    until(lambda: "taken" in holder.stdout.readline())
    waiter = psql("update t set v = 2 where id = 1")
    load = [subprocess.Popen(["pgbench", "-n", "-h", "127.0.0.1", "-p", port, "-U", "postgres", "-c", "8", "-j", "2", "-T", "5", "-f", "/dev/stdin", "postgres"],
                             stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True)]
    load[0].stdin.write("\\set id random(2, 100)\nupdate t set v = v + 1 where id = :id;\n")
    load[0].stdin.close()
    scraped = f"http://{host}/metrics"
    check("what a scraper gets is well formed", until(lambda: "clearway_log_written_bytes_total" in get(scraped)))
    check("a session that waits is in it", until(lambda: "\nclearway_watch_blocked_sessions 1\n" in get(scraped)), get(scraped)[:2000])
    holder.stdin.close()
    linted = subprocess.run(["promtool", "check", "metrics"], input=get(scraped), text=True, capture_output=True)
    # It also has opinions on names; the names of a custom query are the user's.
    check("promtool check metrics", linted.returncode in (0, 3), linted.stderr)
    for process in [holder, waiter, *load]:
        process.wait()
    for name, expression in expressions():
        check(name, until(lambda: answered(expression)), expression)
    # The file of queries is read again while the server runs; a mistake in it is told.
    with open(own, "w") as file:
        file.write(MINE)
    check("queries that change are taken", until(lambda: "\nmine_answer 7\n" in get(scraped)), get(scraped)[-500:])
    # What the exporters make of MAPPEDMETRIC and HISTOGRAM, as Prometheus understands it.
    value = lambda expression: (until(lambda: answered(expression)) or [{"value": [0, None]}])[0]["value"][1]
    check("a text stands for its number", value("mine_state") == "2", get(scraped)[-900:])
    check("a histogram is one", value("histogram_quantile(0.5, mine_Age_bucket)") == "1.5" and value("mine_Age_sum / mine_Age_count") == "1.25", get(scraped)[-900:])
    check("and is declared as one", until(lambda: json.loads(get(f"{prometheus}/api/v1/metadata?metric=mine_Age"))["data"].get("mine_Age", [{}])[0].get("type") == "histogram"),
          get(f"{prometheus}/api/v1/metadata?metric=mine_Age"))
    linted = subprocess.run(["promtool", "check", "metrics"], input=get(scraped), text=True, capture_output=True)
    check("promtool takes the histogram", linted.returncode in (0, 3), linted.stderr)
    with open(own, "w") as file:
        file.write("mine: [\n")
    check("and a mistake is told", until(lambda: "own.yaml:2: not YAML" in get(f"http://{host}/api/now")), get(f"http://{host}/api/now")[:500])
    # A scrape has a second here; one that took longer is followed by another.
    targets = lambda: json.loads(get(f"{prometheus}/api/v1/targets"))["data"]["activeTargets"]
    check("Prometheus takes every line", until(lambda: [(t["health"], t["lastError"]) for t in targets()] == [("up", "")]), targets())
    complaints = [line for line in open(f"{scratch}/prometheus.log") if "level=warn" in line or "level=error" in line]
    check("and has nothing to complain of", not [line for line in complaints if "scrape" in line or "sample" in line], complaints)
finally:
    for process in reversed(started):
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
    shutil.rmtree(scratch, ignore_errors=True)
print(check.totals())
sys.exit(check.failed > 0)
