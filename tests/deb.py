#!/usr/bin/env python3
"""The Debian package: what is in it, what its scripts do, and that its service serves, says so to its manager, and reads its settings again.

usage: tests/deb.py BINARY      Nothing is installed on this machine: the package is unpacked, and its scripts run in a root of their own."""
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

BINARY = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else sys.exit(__doc__)
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
passed = failed = 0


def check(what, right, seen=""):
    global passed, failed
    passed, failed = passed + bool(right), failed + (not right)
    if not right:
        print(f"FAILED  {what}: {seen}", flush=True)


def run(*command, **more):
    more.setdefault("timeout", 150)
    return subprocess.run(command, capture_output=True, text=True, **more)


def contents(package):
    listed = run("dpkg-deb", "-c", package).stdout
    for path, mode in [
        ("./usr/bin/clearway", "-rwxr-xr-x root/root"),
        ("./lib/systemd/system/clearway.service", "-rw-r--r-- root/root"),
        ("./etc/clearway/clearway.conf", "-rw-r--r-- root/root"),
        ("./etc/clearway/access", "-rw-r--r-- root/root"),
        ("./usr/share/man/man1/clearway.1.gz", "-rw-r--r-- root/root"),
        ("./usr/share/bash-completion/completions/clearway", "-rw-r--r-- root/root"),
        ("./usr/share/zsh/vendor-completions/_clearway", "-rw-r--r-- root/root"),
        ("./usr/share/fish/vendor_completions.d/clearway.fish", "-rw-r--r-- root/root"),
        ("./usr/share/doc/clearway/copyright", "-rw-r--r-- root/root"),
        ("./usr/share/doc/clearway/changelog.gz", "-rw-r--r-- root/root"),
        ("./usr/share/doc/clearway/NEWS.gz", "-rw-r--r-- root/root"),
        ("./usr/share/lintian/overrides/clearway", "-rw-r--r-- root/root"),
    ]:
        line = next((line for line in listed.splitlines() if line.endswith(" " + path)), "")
        check(f"{path} is in the package", line.startswith(mode), line)
    control = run("dpkg-deb", "-f", package).stdout
    check("it says what it needs", re.search(r"Depends: .*libc6 \(>= 2\.\d+\)", control), control)


def debian(package):
    """Debian's own checker of packages."""
    if not shutil.which("lintian"):
        print("NOT RUN: lintian is not installed")
        return
    found = run("lintian", "--no-cfg", "--allow-root", "--fail-on", "error,warning", package)
    check("lintian finds no error and warns of nothing", found.returncode == 0, found.stdout + found.stderr)


def unit(tree):
    if not shutil.which("systemd-analyze"):
        print("NOT RUN: systemd-analyze is not installed")
        return
    path = f"{tree}/lib/systemd/system/clearway.service"
    # The unit names the program where it will be.
    copy = f"{tree}/clearway.service"
    with open(path) as file, open(copy, "w") as changed:
        changed.write(file.read().replace("/usr/bin/clearway", f"{tree}/usr/bin/clearway"))
    verified = run("systemd-analyze", "verify", "--man=no", copy)
    check("systemd finds no fault with the service", verified.returncode == 0 and "clearway" not in verified.stderr, verified.stderr)
    security = run("systemd-analyze", "security", "--offline=yes", "--no-pager", "--threshold=30", copy)
    check("systemd counts an exposure of at most 3.0", security.returncode == 0, security.stdout[-300:])
    os.remove(copy)


def served(tree, directory):
    """As the unit runs it, with the places of a test."""
    with open(f"{tree}/etc/clearway/clearway.conf") as file:
        settings = file.read()
    with open(f"{tree}/etc/clearway/access") as file:
        rules = file.read()
    right = run(f"{tree}/usr/bin/clearway", "check", "access", f"{tree}/etc/clearway/access")
    check("the rules of access are sound", right.returncode == 0, right.stderr)
    for name, new in [("/var/lib/clearway", f"{directory}/data"), ("/run/clearway", directory), ("/etc/clearway", directory), ("127.0.0.1:5433", "127.0.0.1:0")]:
        check(f"the settings name {name}", name in settings)
        settings = settings.replace(name, new)
    for name, text in [("clearway.conf", settings), ("access", rules)]:
        with open(f"{directory}/{name}", "w") as file:
            file.write(text)
    manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    manager.bind(f"{directory}/notify")
    manager.settimeout(150)
    command = [f"{tree}/usr/bin/clearway", "serve", "--config", f"{directory}/clearway.conf"]
    server = subprocess.Popen(command, env={**os.environ, "NOTIFY_SOCKET": f"{directory}/notify"}, stdout=subprocess.PIPE, text=True)
    try:
        check("it tells its manager that it serves", manager.recv(4096) == b"READY=1")
        port = next(line for line in server.stdout if line.startswith("listening at 127")).strip().rsplit(":", 1)[1]
        local = f"host={directory} port={port} user=postgres dbname=postgres"
        asked = run(f"{tree}/usr/bin/clearway", "sql", local, input="alter role postgres password 'x'; show lock_timeout;\n")
        check("the line of the file of rules lets the first user in", asked.returncode == 0, asked.stdout + asked.stderr)
        beyond = run("psql", "-XAtwc", "select 1", f"host=127.0.0.1 port={port} user=postgres")
        check("by TCP a password is wanted", "password" in beyond.stderr, beyond.stderr)
        within = run("psql", "-XAtwc", "select 1", f"host=127.0.0.1 port={port} user=postgres", env={**os.environ, "PGPASSWORD": "x"})
        check("and enough", within.stdout == "1\n", within.stderr)
        with open(f"{directory}/clearway.conf", "a") as file:
            file.write("lock_timeout = 7s\n")
        server.send_signal(signal.SIGHUP)
        show = lambda: run(f"{tree}/usr/bin/clearway", "sql", local, input="show lock_timeout;\n").stdout
        while "7s" not in show():
            if server.poll() is not None:
                break
        check("a reload reads the settings again", server.poll() is None)
        server.send_signal(signal.SIGTERM)
        check("it tells its manager that it stops", manager.recv(4096).startswith(b"STOPPING=1"))
        check("and stops", server.wait(150) == 0)
        check("the data belongs to its owner alone", os.stat(f"{directory}/data").st_mode & 0o777 == 0o700)
    finally:
        if server.poll() is None:
            server.kill()


def scripts(package, directory):
    """Installs, removes and purges with dpkg in a root of its own; the commands that change users and services are recorded."""
    tools, root = f"{directory}/tools", f"{directory}/root"
    os.makedirs(tools)
    for name in ["adduser", "chown", "deb-systemd-helper", "deb-systemd-invoke", "systemctl"]:
        with open(f"{tools}/{name}", "w") as file:
            file.write(f'#!/bin/sh\necho "{name} $*" >> {directory}/done\n')
        os.chmod(f"{tools}/{name}", 0o755)
    for name, script in [
        ("getent", "exit 2"),
        ("install", f'echo "install $*" >> {directory}/done; mkdir -p "{root}/var/lib/clearway"'),
        ("chmod", f'echo "chmod $*" >> {directory}/done'),
    ]:
        with open(f"{tools}/{name}", "w") as file:
            file.write(f"#!/bin/sh\n{script}\n")
        os.chmod(f"{tools}/{name}", 0o755)
    os.makedirs(f"{root}/var/lib/dpkg/info")
    os.makedirs(f"{root}/var/lib/dpkg/updates")
    os.makedirs(f"{root}/var/lib/dpkg/triggers")
    for name in ["status", "available"]:
        open(f"{root}/var/lib/dpkg/{name}", "w").close()
    environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}
    options = ["--root=" + root, "--force-not-root", "--force-depends", "--force-script-chrootless", "--log=" + f"{directory}/dpkg.log"]
    dpkg = lambda *command: run("dpkg", *options, *command, env=environment)

    def recorded():
        with open(f"{directory}/done") as file:
            return file.read()

    installed = dpkg("-i", package)
    check("dpkg installs it", installed.returncode == 0, installed.stderr)
    text = recorded()
    check("a user is made", "adduser --quiet --system --group --home /var/lib/clearway" in text, text)
    check("with a directory of its own", "install -d -o clearway -g clearway -m 0700 /var/lib/clearway" in text, text)
    check("the service is enabled", "deb-systemd-helper enable clearway.service" in text, text)
    with open(f"{root}/var/lib/clearway/table", "w") as file:
        file.write("data")
    with open(f"{root}/etc/clearway/clearway.conf", "a") as file:
        file.write("# changed here\n")
    again = dpkg("-i", "--force-confold", package)
    with open(f"{root}/etc/clearway/clearway.conf") as file:
        check("an upgrade keeps what the user has changed", again.returncode == 0 and "changed here" in file.read(), again.stderr)
    removed = dpkg("-r", "clearway")
    check("it is removed", removed.returncode == 0 and not os.path.exists(f"{root}/usr/bin/clearway"), removed.stderr)
    check("its settings stay", os.path.exists(f"{root}/etc/clearway/clearway.conf"))
    purged = dpkg("-P", "clearway")
    check("it is purged", purged.returncode == 0 and not os.path.exists(f"{root}/etc/clearway/clearway.conf"), purged.stderr)
    check("the data stays", os.path.exists(f"{root}/var/lib/clearway/table"))


with tempfile.TemporaryDirectory(prefix="clearway-deb-") as directory:
    built = run("cargo", "run", "--quiet", "--package", "xtask", "--", "deb", "--fast", "--binary", BINARY, cwd=ROOT, timeout=600)
    package = next(iter(built.stdout.split()), "")
    check("the package is built", os.path.exists(package), built.stdout + built.stderr)
    if os.path.exists(package):
        tree = f"{directory}/tree"
        contents(package)
        debian(package)
        run("dpkg-deb", "-x", package, tree)
        unit(tree)
        os.makedirs(f"{directory}/served")
        served(tree, f"{directory}/served")
        scripts(package, directory)
print(f"{passed} passed, {failed} failed")
sys.exit(failed > 0)
