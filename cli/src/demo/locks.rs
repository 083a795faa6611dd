//! Demonstration: which session blocks which, and a deadlock with every statement that its participants ran.

use clearway_base::sync::{JoinHandle, block_on, sleep, spawn_thread};
use std::time::Duration;

use super::client::Local;
use super::{Failure, Opened};

/// A lock chain three deep, as a tree.
pub fn chain(opened: &Opened, say: &mut dyn FnMut(&str)) -> Result<(), Failure> {
    say("");
    say("1. Who blocks whom");
    let mut sessions = sessions(opened, 3)?;
    sessions[0].run("CREATE TABLE accounts (id int PRIMARY KEY, balance int)")?;
    sessions[0].run("INSERT INTO accounts VALUES (1, 100), (2, 100), (3, 100)")?;
    for (i, session) in sessions.iter_mut().enumerate() {
        session.run("BEGIN")?;
        session.run(&format!("UPDATE accounts SET balance = balance - 1 WHERE id = {}", i + 1))?;
    }
    let pids: Vec<i32> = sessions.iter().map(Local::pid).collect();
    let last = sessions.pop().expect("three sessions");
    let middle = sessions.pop().expect("three sessions");
    let mut first = sessions.pop().expect("three sessions");
    let waiting = [
        waits(middle, "UPDATE accounts SET balance = balance + 1 WHERE id = 1"),
        waits(last, "UPDATE accounts SET balance = balance + 1 WHERE id = 2"),
    ];
    block_on(sleep(Duration::from_millis(300)));
    tree(opened, pids[0], 0, say);
    first.run("COMMIT")?;
    for thread in waiting {
        let (mut session, outcome) = thread.join().map_err(|_| "a session's thread panicked")?;
        outcome?;
        session.run("COMMIT")?;
        session.end();
    }
    first.end();
    say("   The first commits, and the others are through.");
    Ok(())
}

/// Prints a session and, below it, the sessions that it blocks.
fn tree(opened: &Opened, pid: i32, depth: usize, say: &mut dyn FnMut(&str)) {
    let locks = opened.db.transactions().locks();
    let indent = "   ".repeat(depth + 1);
    let rows: Vec<_> = locks.locks().into_iter().filter(|l| l.pid == pid).collect();
    let age_ms = |since_ns: u64| clearway_base::waits::now_ns().saturating_sub(since_ns) / 1_000_000;
    match rows.iter().find(|l| !l.granted) {
        Some(wait) => {
            let backend = opened.backends.get(pid);
            let statement = backend.map(|b| b.activity.lock().query.to_string()).unwrap_or_default();
            say(&format!("{indent}└─ pid {pid} has waited {} ms to run", age_ms(wait.since_ns)));
            say(&format!("{indent}     {statement}"));
        }
        None => say(&format!("{indent}pid {pid} waits for no session")),
    }
    let mut waiting: Vec<_> = locks.locks().into_iter().filter(|l| !l.granted).collect();
    waiting.retain(|wait| locks.blockers(wait.pid).contains(&pid));
    if let Some(first) = waiting.first() {
        // The lock itself stands in the row where no other transaction ever wanted it; then the transaction's last change took it.
        let taken = rows.iter().filter(|l| l.granted && l.statement.is_some());
        let lock = taken.clone().find(|l| l.tag == first.tag).or_else(|| taken.clone().max_by_key(|l| l.since_ns));
        if let Some((lock, statement)) = lock.and_then(|l| Some((l, l.statement.clone()?))) {
            say(&format!("{indent}   holds a lock since {} ms, taken by", age_ms(lock.since_ns)));
            say(&format!("{indent}     {statement}"));
        }
    }
    for wait in waiting {
        tree(opened, wait.pid, depth + 1, say);
    }
}

/// A ring of three, found by the session that closes it.
pub fn deadlock(opened: &Opened, say: &mut dyn FnMut(&str)) -> Result<(), Failure> {
    say("");
    say("2. A deadlock of three");
    let mut sessions = sessions(opened, 3)?;
    for (i, session) in sessions.iter_mut().enumerate() {
        session.run("BEGIN")?;
        session.run(&format!("UPDATE accounts SET balance = 0 WHERE id = {}", i + 1))?;
    }
    let threads: Vec<_> = sessions
        .into_iter()
        .enumerate()
        .map(|(i, session)| {
            let thread = waits(session, &format!("UPDATE accounts SET balance = 1 WHERE id = {}", (i + 1) % 3 + 1));
            block_on(sleep(Duration::from_millis(100)));
            thread
        })
        .collect();
    let mut victim = String::new();
    for thread in threads.into_iter().rev() {
        let (mut session, outcome) = thread.join().map_err(|_| "a session's thread panicked")?;
        if let Err(error) = &outcome {
            victim = format!("{error}");
        }
        session.run("ROLLBACK")?;
        session.end();
    }
    let archive = opened.db.transactions().locks().archive();
    let reports = archive.reports();
    let report = reports.last().ok_or("no deadlock was found")?;
    report.to_string().lines().for_each(|line| say(&format!("   {line}")));
    say(&format!("   The victim was told: {victim}"));
    Ok(())
}

fn sessions(opened: &Opened, count: usize) -> Result<Vec<Local>, Failure> {
    (0..count).map(|i| Ok(Local::open(&opened.db, &opened.backends, &format!("demo {}", i + 1))?)).collect()
}

type Outcome = (Local, Result<(), Failure>);

/// Runs a statement on a thread of its own, since it will wait.
fn waits(mut session: Local, sql: &str) -> JoinHandle<Outcome> {
    let sql = sql.to_owned();
    let body = move || {
        let outcome = session.run(&sql).map(|_| ()).map_err(Failure::from);
        (session, outcome)
    };
    spawn_thread("demo", body).expect("the system has a thread to give")
}
