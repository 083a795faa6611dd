"""Bacula: full and incremental backups with spooled attributes, lists, the virtual file system, restore, verify, prune, purge, dbcheck"""
import os, re, subprocess, sys, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "regress"))
from servers import free_port  # noqa: E402

PACKAGES = ["bacula-common", "bacula-common-pgsql", "bacula-director", "bacula-director-pgsql", "bacula-sd", "bacula-fd", "bacula-console", "liblzo2-2", "libwrap0",
            "libpq5", "libreadline8"]
CONFIGURATION = {
    "bacula-dir.conf": """
Director { Name = test-dir; DIRport = @dir@; DirAddress = 127.0.0.1; QueryFile = "@place@/query.sql"; WorkingDirectory = "@place@"; PidDirectory = "@place@"; Maximum Concurrent Jobs = 1;
    Password = secret; Messages = Daemon }
JobDefs { Name = Default; Type = Backup; Client = test-fd; FileSet = Files; Storage = File; Messages = Standard; Pool = File; SpoolAttributes = yes; Priority = 10; Write Bootstrap = "@place@/%n.bsr" }
Job { Name = Backup; JobDefs = Default; Level = Full; Accurate = yes }
Job { Name = Copy; JobDefs = Default; Level = Full; FileSet = Others }
Job { Name = Restore; Type = Restore; Client = test-fd; Storage = File; FileSet = Files; Pool = File; Messages = Standard; Where = "@place@/restored" }
Job { Name = Verify; Type = Verify; Level = VolumeToCatalog; Verify Job = Backup; Client = test-fd; FileSet = Files; Storage = File; Pool = File; Messages = Standard }
FileSet { Name = Files; Include { Options { signature = SHA1; compression = GZIP1 } File = "@place@/source" } }
FileSet { Name = Others; Include { Options { signature = MD5 } File = "@place@/source/deep" } }
Client { Name = test-fd; Address = 127.0.0.1; FDPort = @fd@; Catalog = Catalog; Password = secret; File Retention = 1 days; Job Retention = 1 days; AutoPrune = no }
Storage { Name = File; Address = 127.0.0.1; SDPort = @sd@; Password = secret; Device = Device; Media Type = File }
Catalog { Name = Catalog; dbname = "bacula"; dbuser = "postgres"; dbpassword = ""; DB Address = 127.0.0.1; DB Port = @port@ }
Messages { Name = Standard; console = all, !skipped, !saved; append = "@place@/log" = all, !skipped; catalog = all }
Messages { Name = Daemon; console = all, !skipped, !saved; append = "@place@/log" = all, !skipped }
Pool { Name = File; Pool Type = Backup; Recycle = yes; AutoPrune = no; Volume Retention = 1 days; Maximum Volume Jobs = 1; Maximum Volumes = 10; Label Format = "Vol-" }
Pool { Name = Scratch; Pool Type = Backup }
""",
    "bacula-sd.conf": """
Storage { Name = test-sd; SDPort = @sd@; SDAddress = 127.0.0.1; WorkingDirectory = "@place@"; Pid Directory = "@place@"; Plugin Directory = "@home@/usr/lib/bacula" }
Director { Name = test-dir; Password = secret }
Device { Name = Device; Media Type = File; Archive Device = "@place@/volumes"; LabelMedia = yes; Random Access = yes; AutomaticMount = yes; RemovableMedia = no; AlwaysOpen = no; Spool Directory = "@place@" }
Messages { Name = Standard; director = test-dir = all }
""",
    "bacula-fd.conf": """
Director { Name = test-dir; Password = secret }
FileDaemon { Name = test-fd; FDport = @fd@; FDAddress = 127.0.0.1; WorkingDirectory = "@place@"; Pid Directory = "@place@" }
Messages { Name = Standard; director = test-dir = all, !skipped, !restored }
""",
    "bconsole.conf": "Director { Name = test-dir; DIRport = @dir@; address = 127.0.0.1; Password = secret }\n",
}
QUERIES = """:Files of a job
*Enter JobId:
SELECT Path.Path || File.Filename AS name, File.FileIndex FROM File JOIN Path USING (PathId) WHERE JobId = %1 ORDER BY 1;
:Volumes of a client
SELECT DISTINCT Client.Name, Media.VolumeName, Media.VolStatus FROM Client, Job, JobMedia, Media WHERE Client.ClientId = Job.ClientId AND Job.JobId = JobMedia.JobId AND JobMedia.MediaId = Media.MediaId ORDER BY 2;
"""
#: What is typed at the console: a name, and the lines.
COMMANDS = [
    ("version of the catalog", "sqlquery\nSELECT VersionId FROM Version;\n\nquit"),
    ("estimate", "estimate job=Backup level=Full listing"),
    ("full backup", "run job=Backup level=Full yes\nwait\nmessages"),
    ("list files", "list files jobid=1"),
    ("another backup", "run job=Copy yes\nwait\nmessages"),
    ("CHANGE", ""),
    ("incremental backup", "run job=Backup level=Incremental yes\nwait\nmessages"),
    ("list files of the incremental", "list files jobid=3"),
    ("differential backup", "run job=Backup level=Differential yes\nwait\nmessages"),
    ("list jobs", "list jobs"), ("llist jobs", "llist jobs"), ("list volumes", "list volumes"), ("llist volumes", "llist volumes"), ("list pools", "list pools"), ("llist pools", "llist pools"),
    ("list clients", "list clients"), ("list jobtotals", "list jobtotals"), ("list jobmedia", "list jobmedia"), ("list joblog", "list joblog jobid=1"), ("list copies", "list copies"),
    ("list nextvol", "list nextvol job=Backup"), ("list filesets", "list filesets"), ("list jobs of a client", "list jobs client=test-fd jobstatus=T order=DESC limit=2"), ("list restores", "list restoreobjects jobid=1"),
    ("query of files", "query\n1\n3\nquit"), ("query of volumes", "query\n2\nquit"),
    ("virtual file system: update", ".bvfs_update\n.bvfs_get_jobids jobid=3\n.bvfs_get_jobids jobid=3 all"),
    ("virtual file system: directories", ".bvfs_lsdirs jobid=1,3 path=@place@/source/"), ("virtual file system: files", ".bvfs_lsfiles jobid=1,3 path=@place@/source/"),
    ("virtual file system: deep", ".bvfs_lsdirs jobid=1,3 path=@place@/source/deep/\n.bvfs_lsfiles jobid=1,3 path=@place@/source/deep/ pattern=a%"),
    ("virtual file system: versions", ".bvfs_versions client=test-fd jobid=0 path=@place@/source/ fname=changes.txt"),
    ("restore: a tree of files", "restore client=test-fd fileset=Files select current\nls\ncd @place@/source/deep\nls\ncount\nfind *.txt\nmark *\nlsmark\nestimate\nquit"),
    ("restore of all", "restore client=test-fd fileset=Files current all done yes where=@place@/restored\nwait\nmessages"),
    ("restore of a job", "restore jobid=1 all done yes where=@place@/first\nwait\nmessages"),
    ("restore of a file", "restore file=@place@/source/changes.txt client=test-fd fileset=Files where=@place@/one yes\n\nwait\nmessages"),
    ("verify", "run job=Verify jobid=1 yes\nwait\nmessages"),
    ("update of a volume", "update volume=Vol-0001 volstatus=Used VolRetention=2days\nlist volume=Vol-0001"),
    ("update of a pool", "update pool=File\nlist pools"), ("label", "label storage=File volume=Extra pool=Scratch slot=0 drive=0\nlist volumes pool=Scratch"),
    ("prune files", "prune files client=test-fd yes"), ("prune jobs", "prune jobs client=test-fd yes"), ("prune volume", "prune volume=Vol-0001 yes"),
    ("delete of a job", "delete jobid=2 yes\nlist jobs"), ("purge files", "purge files jobid=4\nlist files jobid=4"), ("purge volume", "purge volume=Vol-0003\nlist volumes"),
    ("delete of a volume", "delete volume=Vol-0003 pool=File yes\nlist volumes"), ("recycled volume", "run job=Copy yes\nwait\nmessages\nlist jobs\nlist volumes"),
    ("purge jobs", "purge jobs client=test-fd\nlist jobs"),
]
#: What Bacula asks for without an order.
UNORDERED = ("estimate", "list files", "list jobtotals", "virtual file system", "restore: a tree")
TABLES = {
    "job": "jobid, job IS NOT NULL, name, type, level, jobstatus, jobfiles, purgedfiles, hasbase", "fileset": "filesetid, fileset", "media": "volumename, volstatus, voljobs, recyclecount, labeltype",
    "path": "path", "file": "jobid, fileindex, filename", "client": "name, fileretention, jobretention", "pool": "name, numvols, maxvols, labelformat", "jobmedia": "jobid, mediaid, firstindex, lastindex",
    "counters": "*", "pathhierarchy": "count(*)", "storage": "name",
}


def masked(text):
    """Without times, sizes of blocks and rates, which differ from run to run."""
    text = re.sub(r"\d{4}-\d\d-\d\d[ _]\d\d[:.]\d\d([:.]\d\d)?(_\d\d)?|\d\d-[A-Z][a-z]{2}(-\d{4})? \d\d:\d\d(:\d\d)?", "WHEN", text)
    text = re.sub(r"(?m)^(.*(?:Elapsed time|Rate|Bytes/sec|Build OS|VolSessionTime|VolSessionId|jobtdate|labeldate|Scheduled time|Start time|End time|Transfer rate|[Vv]ersion: 9|Last Volume Bytes|despooled|"
                  r"Spool.*bytes|Bytes Written|Software|Encryption|Comm Compression|FD termination|volreadtime|volwritetime|ExpiresIn|endblock|volbytes|volabytes|lastpart|blockaddress|startblock|volblocks|volwrites).*)$",
                  lambda line: re.sub(r"[\d.,]+", "N", line[1]), text)
    text = re.sub(r"(Elapsed time: +N) secs?|(Volume Session Time: +)\d+|(Comm Line Compression: +)\S+ \S+", r"\1\2\3", text)
    text = re.sub(r"(?<=elapsed=)\S+|Sending Accurate.*|(?<=time=)\S+|(?<=, )\d+ bytes(?= for)", "", text)
    text = re.sub(r"Connecting to Director .*|Enter a period.*|You have messages\.|1000 OK: .*|Using Catalog.*|\bin \d+ sec\S*|restore-?[0-9.]+bsr|test-dir\.restore\.\S+|\.\d+_\d+\b", "", text)
    text = re.sub(r"127\.0\.0\.1:\d+", "SERVER", text)
    # Bacula asks for a database in SQL_ASCII, and says at each connection that it is not.
    return "\n".join(line.rstrip() for line in text.splitlines() if line.strip() and "Wanted SQL_ASCII" not in line)


def table_without(text, names):
    """A table that bconsole draws, without the columns of these names."""
    out, places = [], None
    for line in text.splitlines():
        cells = line.split("|")
        if line.startswith("|") and any(cell.strip().lower() in names for cell in cells):
            places = [at for at, cell in enumerate(cells) if cell.strip().lower() in names]
        if line.startswith("|") and places:
            line = "|".join(cell.strip() for at, cell in enumerate(cells) if at not in places)
        elif line.startswith("|"):
            line = "|".join(cell.strip() for cell in cells)
        elif line.startswith("+-"):
            continue
        elif re.match(r"\s*(" + "|".join(names) + r"): ", line):
            continue
        out.append(line)
    return "\n".join(out) + "\n"


VARYING = {"volbytes", "expiresin", "lastwritten", "firstwritten", "labeldate", "starttime", "realstarttime", "endtime", "schedtime", "realendtime", "jobtdate", "volsessionid", "volsessiontime", "endblock", "startblock",
           "volblocks", "volwrites", "volabytes", "jobbytes", "createtime", "voladata", "md5", "volreadtime", "volwritetime", "lastpartbytes", "bytes", "readbytes", "job", "clientuname", "uname", "time", "initialwrite"}


class Bacula:
    def __init__(self, home, place, server):
        self.home, self.place, self.processes = home, place, []
        values = {"place": place, "home": home, "port": server.port, "dir": free_port(), "sd": free_port(), "fd": free_port()}
        for name, text in CONFIGURATION.items():
            (place / name).write_text(re.sub(r"@(\w+)@", lambda m: str(values[m[1]]), text))
        (place / "query.sql").write_text(QUERIES)
        (place / "volumes").mkdir()
        libraries = [home / "usr/lib/bacula", home / "usr/lib/x86_64-linux-gnu", home / "lib/x86_64-linux-gnu"]
        self.environment = {**os.environ, "LD_LIBRARY_PATH": ":".join(map(str, libraries)), "TZ": "UTC", "LC_ALL": "C.UTF-8"}

    def start(self):
        for program in ("bacula-sd", "bacula-fd", "bacula-dir"):
            log = open(self.place / f"{program}.log", "w")
            command = [self.home / "usr/sbin" / program, "-f", "-c", self.place / f"{program}.conf"]
            self.processes.append(subprocess.Popen(command, env=self.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.place))
        for _ in range(200):
            if "test-dir Version" in self.console("status director", check=False):
                return
            time.sleep(0.1)
        raise RuntimeError(f"Bacula did not start: {[(self.place / f'{p}.log').read_text()[-800:] for p in ('bacula-dir', 'bacula-sd', 'bacula-fd')]}")

    def console(self, lines, check=True):
        done = subprocess.run([self.home / "usr/sbin/bconsole", "-n", "-c", self.place / "bconsole.conf"], input=f"{lines}\nquit\n", env=self.environment, capture_output=True, text=True, timeout=120)
        return done.stdout + (done.stderr if check else "")

    def stop(self):
        for process in self.processes[::-1]:
            process.terminate()
        for process in self.processes:
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()

    def checked(self, *how):
        """What dbcheck finds in the catalog."""
        done = subprocess.run([self.home / "usr/sbin/dbcheck", "-b", "-v", *how, "-c", self.place / "bacula-dir.conf"], env=self.environment, capture_output=True, text=True, timeout=120)
        return masked(done.stdout + done.stderr) + f"\nended with {done.returncode}\n"


def files(place):
    """Files to keep: made once for both servers, so that their numbers and times are the same."""
    source = place / "source"
    for at in range(60):
        folder = source / ("deep" if at % 3 else "flat") / f"folder {at % 5}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"a'file \\ {at} é.txt").write_text(f"file {at}\n" * at)
    (source / "changes.txt").write_text("before\n")
    (source / "goes.txt").write_text("goes\n")
    (source / "link").symlink_to("changes.txt")


def run(home, place, server, psql):
    psql("postgres", "CREATE DATABASE bacula")
    schema = (home / "usr/share/dbconfig-common/data/bacula-director-pgsql/install/pgsql").read_text()
    steps = {"schema": psql("bacula", schema).stderr}
    files(place)
    bacula = Bacula(home, place, server)
    bacula.start()
    try:
        for name, lines in COMMANDS:
            if name == "CHANGE":
                time.sleep(1.1)
                (place / "source/changes.txt").write_text("after\n")
                (place / "source/comes.txt").write_text("comes\n")
                (place / "source/goes.txt").unlink()
                continue
            said = bacula.console(lines.replace("@place@", str(place)))
            # Paths and files are numbered as the system gives them, and the virtual file system shows their times.
            said = re.sub(r"(?m)^\d+\t\d+\t\d+\t(\d+\t)\S+( \S+){3,}\t", r"\1", said)
            said = table_without(masked(said), VARYING)
            steps[name] = "\n".join(sorted(said.splitlines())) if name.startswith(UNORDERED) else said
        for folder in ("restored", "first", "one"):
            compared = subprocess.run(["diff", "-r", place / "source", f"{place}/{folder}{place}/source"], capture_output=True, text=True)
            steps[f"what was restored to {folder}"] = compared.stdout + compared.stderr
        steps["dbcheck"] = bacula.checked()
        steps["dbcheck -f"] = bacula.checked("-f")
        steps["dbcheck again"] = bacula.checked()
    finally:
        bacula.stop()
    for table, columns in TABLES.items():
        steps[f"rows of {table}"] = psql("bacula", f"SELECT {columns} FROM {table} ORDER BY {'1' if columns != '*' else 'counter'}").stdout
    return steps
