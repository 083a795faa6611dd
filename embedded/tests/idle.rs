//! A database that is not in use takes no processor time: none of its threads wakes up. The test is a program of its own, since it counts the
//! wake-ups of all threads of the process.
#![cfg(target_os = "linux")]
#![allow(clippy::disallowed_methods, reason = "tests, no part of the database")]

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use clearway::Database;

/// How often each thread of this process, but for the caller, has gone to sleep so far, by number and name.
fn sleeps() -> BTreeMap<String, u64> {
    let own = std::fs::read_link("/proc/thread-self").expect("proc");
    let own = own.file_name().expect("a number").to_owned();
    let mut all = BTreeMap::new();
    for task in std::fs::read_dir("/proc/self/task").expect("tasks").flatten() {
        // A thread may end meanwhile.
        let Ok(status) = std::fs::read_to_string(task.path().join("status")) else { continue };
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim();
        if task.file_name() != own {
            let count = field("voluntary_ctxt_switches:").parse().expect("a number");
            all.insert(format!("{} {}", task.file_name().to_string_lossy(), field("Name:")), count);
        }
    }
    all
}

/// Waits for three seconds in which no thread wakes; the threads that woke in the last three seconds, if that does not come.
fn comes_to_rest(within: Duration) -> Result<(), String> {
    let begin = Instant::now();
    loop {
        let before = sleeps();
        std::thread::sleep(Duration::from_secs(3));
        let after = sleeps();
        if before == after {
            return Ok(());
        }
        if begin.elapsed() > within {
            let woke = after.iter().filter(|(thread, count)| before.get(*thread) != Some(count));
            return Err(woke.map(|(thread, count)| format!("{thread}: {count}; ")).collect());
        }
    }
}

/// Memory of this process, in MiB.
fn resident_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("proc");
    let kib = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a line");
    kib.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") >> 10
}

/// Opening touches neither the page cache nor the log's buffer: memory is taken as it is used.
fn an_empty_database_takes_no_memory_for_its_cache() {
    let before = resident_mib();
    let db = Database::builder().cache_bytes(1 << 30).in_memory().expect("opened");
    db.connect().expect("a connection").execute_batch("CREATE TABLE t (a int)").expect("made");
    let took = resident_mib().saturating_sub(before);
    assert!(took < 256, "an empty database with a cache of 1 GiB takes {took} MiB");
    println!("an empty database with a cache of 1 GiB takes {took} MiB");
    db.close().expect("closed");
}

fn main() {
    an_empty_database_takes_no_memory_for_its_cache();
    let within = Duration::from_secs(60);
    let dir = std::env::temp_dir().join(format!("clearway-idle-{}", std::process::id()));
    let db = Database::open(&dir).expect("opened");
    let mut c = db.connect().expect("a connection");
    c.execute_batch(
        "CREATE TABLE t (a int PRIMARY KEY, n int); INSERT INTO t SELECT g, 0 FROM generate_series(1, 1000) g",
    )
    .expect("rows");
    comes_to_rest(within).expect("at rest after writes");
    // Reading, and writing without waiting for the disk, wake it; then it rests again.
    for sql in [
        "SELECT count(*) FROM t",
        "SET synchronous_commit = off; UPDATE t SET n = n + 1",
        "BEGIN; DELETE FROM t; ROLLBACK",
    ] {
        c.execute_batch(sql).expect(sql);
        comes_to_rest(within).unwrap_or_else(|woke| panic!("at rest after {sql}: {woke}"));
    }
    // A lock of which another one waits is found by the search for deadlocks although both came to a database at rest.
    let mut other = db.connect().expect("a connection");
    c.execute_batch("BEGIN; UPDATE t SET n = 5 WHERE a = 1").expect("held");
    let waits = std::thread::spawn(move || other.execute("UPDATE t SET n = 6 WHERE a = 1", ()));
    std::thread::sleep(Duration::from_secs(5));
    c.execute_batch("COMMIT").expect("committed");
    assert_eq!(waits.join().expect("no panic").expect("updated"), 1);
    comes_to_rest(within).unwrap_or_else(|woke| panic!("at rest after a wait: {woke}"));
    drop(c);
    // A database at rest closes, and one that is only dropped ends its threads.
    db.close().expect("closed");
    let db = Database::open(&dir).expect("opened");
    assert_eq!(db.connect().expect("c").query_row::<(i64,)>("SELECT sum(n) FROM t", ()).expect("sum").0, 1_005);
    comes_to_rest(within).unwrap_or_else(|woke| panic!("at rest after opening: {woke}"));
    drop(db);
    let begin = Instant::now();
    let loops = ["upkeep", "deadlock", "cleaner", "checkpointer"];
    let left =
        || sleeps().into_keys().filter(|thread| loops.iter().any(|name| thread.contains(name))).collect::<Vec<_>>();
    while !left().is_empty() {
        assert!(begin.elapsed() < within, "threads of a database that was dropped: {:?}", left());
        std::thread::sleep(Duration::from_millis(50));
    }
    std::fs::remove_dir_all(&dir).expect("removed");
}
