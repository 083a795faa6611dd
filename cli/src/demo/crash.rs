//! Demonstration: kill -9 in the middle of the load; every acknowledged commit is there afterwards.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use clearway_base::sync::{Mutex, block_on, sleep, spawn_thread};

use super::client::Local;
use super::{Failure, Opened};

const WRITERS: usize = 8;
const LOAD: Duration = Duration::from_secs(2);

/// Starts this program again as the loader, kills it, and counts.
pub fn run(dir: &Path, say: &mut dyn FnMut(&str)) -> Result<(), Failure> {
    say("");
    say("4. kill -9 in the middle of the load");
    let program = std::env::current_exe()?;
    let mut child = Command::new(program).arg("demo").arg("--load").arg(dir).stdout(Stdio::piped()).spawn()?;
    let out = child.stdout.take().ok_or("the loader has no output")?;
    let mut lines = BufReader::new(out).lines().map_while(Result::ok).filter_map(|line| line.parse::<u64>().ok());
    // On a slow machine the loader may take longer to begin than the load lasts.
    let first = lines.next().ok_or("the loader ended before its first row")?;
    let reader = spawn_thread("demo reader", move || std::iter::once(first).chain(lines).collect::<Vec<_>>())?;
    block_on(sleep(LOAD));
    child.kill()?;
    child.wait()?;
    let acknowledged = reader.join().map_err(|_| "the reader panicked")?;
    let opened = Opened::open(dir)?;
    let mut session = Local::open(&opened.db, &opened.backends, "demo")?;
    let rows = session.run("SELECT n FROM written")?;
    session.end();
    let found: std::collections::HashSet<u64> =
        rows.into_iter().filter_map(|r| r.first().cloned().flatten()?.parse().ok()).collect();
    let lost = acknowledged.iter().filter(|n| !found.contains(n)).count();
    opened.close()?;
    say(&format!("   acknowledged {}, found {}, lost {lost}", acknowledged.len(), found.len()));
    match lost {
        0 => Ok(()),
        lost => Err(format!("{lost} acknowledged rows are lost").into()),
    }
}

/// Writes rows and says each number when its commit is durable, until the process is killed.
pub fn load(dir: &Path) -> Result<(), Failure> {
    let opened = Opened::open(dir)?;
    let mut session = Local::open(&opened.db, &opened.backends, "loader")?;
    session.run("CREATE TABLE written (n bigint PRIMARY KEY)")?;
    session.end();
    let out = Arc::new(Mutex::new("cli/demo/out", std::io::stdout()));
    let mut threads = Vec::new();
    for writer in 0..WRITERS {
        let mut session = Local::open(&opened.db, &opened.backends, &format!("loader {writer}"))?;
        let out = out.clone();
        threads.push(spawn_thread("loader", move || -> Result<(), Failure> {
            for n in (writer as u64..).step_by(WRITERS) {
                session.run(&format!("INSERT INTO written VALUES ({n})"))?;
                writeln!(out.lock(), "{n}")?;
            }
            Ok(())
        })?);
    }
    for thread in threads {
        thread.join().map_err(|_| "a writer panicked")??;
    }
    Ok(())
}
