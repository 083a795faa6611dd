//! One row, more and more clients.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use clearway_base::sync::{block_on, sleep, spawn_thread};
use clearway_base::waits::now_ns;

use super::client::Local;
use super::{Failure, Opened};

/// PostgreSQL 15 on two cores with its defaults but for shared_buffers, durable, by client count; recorded, not run here.
const POSTGRES_RECORDED: [(usize, u64); 4] = [(1, 4_100), (10, 3_100), (100, 1_800), (1_000, 310)];
/// Columns of the longest bar.
const BAR_COLUMNS: u64 = 50;
const STEP: Duration = Duration::from_secs(3);

/// Updates of one row by 1, 10, 100 and 1,000 clients, each waiting until its commit is durable.
pub fn run(opened: &Opened, say: &mut dyn FnMut(&str)) -> Result<(), Failure> {
    say("");
    say("3. One hot row, durable: UPDATE hot SET b = b + 1 WHERE a = 1");
    let mut session = Local::open(&opened.db, &opened.backends, "demo")?;
    session.run("CREATE TABLE hot (a int PRIMARY KEY, b bigint); INSERT INTO hot VALUES (1, 0)")?;
    let mut done = 0;
    let mut rates = Vec::new();
    for (clients, postgres) in POSTGRES_RECORDED {
        let (updates, elapsed_ns) = load(opened, clients)?;
        done += updates;
        rates.push((clients, updates * 1_000_000_000 / elapsed_ns.max(1), postgres));
    }
    let widest = rates.iter().map(|(_, ours, postgres)| *ours.max(postgres)).max().unwrap_or(1).max(1);
    let bar = |sign: &str, rate: u64| sign.repeat((rate * BAR_COLUMNS / widest).max(1) as usize);
    for (clients, ours, postgres) in rates {
        say(&format!("   {clients:>5} clients {ours:>8}/s {}", bar("█", ours)));
        say(&format!("      PostgreSQL {postgres:>8}/s {}", bar("▒", postgres)));
    }
    say("   (Clearway inside this process; PostgreSQL 15 as recorded on two cores over TCP, not run here)");
    let rows = session.run("SELECT b FROM hot WHERE a = 1")?;
    let found = rows.first().and_then(|r| r.first().cloned().flatten()).unwrap_or_default();
    say(&format!("   acknowledged {done} increments, found {found}"));
    session.end();
    if found != done.to_string() {
        return Err(format!("{done} increments were acknowledged and {found} are there").into());
    }
    Ok(())
}

/// How many updates were acknowledged, and in how long, in nanoseconds.
fn load(opened: &Opened, clients: usize) -> Result<(u64, u64), Failure> {
    let (stop, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let mut threads = Vec::with_capacity(clients);
    for i in 0..clients {
        let mut session = Local::open(&opened.db, &opened.backends, &format!("hot {i}"))?;
        let (stop, done) = (stop.clone(), done.clone());
        threads.push(spawn_thread("hot", move || -> Result<(), Failure> {
            while !stop.load(Ordering::Relaxed) {
                session.run("UPDATE hot SET b = b + 1 WHERE a = 1")?;
                done.fetch_add(1, Ordering::Relaxed);
            }
            session.end();
            Ok(())
        })?);
    }
    let began = now_ns();
    block_on(sleep(STEP));
    stop.store(true, Ordering::Relaxed);
    for thread in threads {
        thread.join().map_err(|_| "a client's thread panicked")??;
    }
    Ok((done.load(Ordering::Relaxed), now_ns() - began))
}
