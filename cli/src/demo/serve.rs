//! The server that stays up after the demonstration, on the directory that it used.

use std::path::Path;

use clearway_server::config::Config;
use clearway_server::run::{RunError, run as run_server};

use super::Failure;

/// Serves the directory until Ctrl-C, at the port of `clearway serve` or, where that is taken, at another one.
pub fn run(data: &Path, say: &mut (dyn FnMut(&str) + Send)) -> Result<(), Failure> {
    let mut config = Config { data: data.to_owned(), ..Config::default() };
    let mut heard = |line: &str| {
        if let Some(port) = line.strip_prefix("listening at 127.0.0.1:") {
            say("");
            say("5. The server is up, with the table accounts; Ctrl-C stops it and removes the directory");
            next_steps(port, say);
        } else if !line.starts_with("connect with") && !line.starts_with("clearway ") {
            say(&format!("   {line}"));
        }
    };
    match run_server(&config, &mut heard, &mut |_| ()) {
        Err(RunError::Listen(_)) => {
            config.set("listen", "127.0.0.1:0")?;
            Ok(run_server(&config, &mut heard, &mut |_| ())?)
        }
        ended => Ok(ended?),
    }
}

/// How to connect, and what to try.
pub fn next_steps(port: &str, say: &mut (dyn FnMut(&str) + Send)) {
    // As it was called: in a fresh clone it is in no PATH.
    let clearway = std::env::args().next().unwrap_or_else(|| "clearway".to_owned());
    say(&format!("     psql -h 127.0.0.1 -p {port} -U postgres clearway"));
    say(&format!("     {clearway} sql postgresql://postgres@127.0.0.1:{port}/clearway"));
    say("");
    say("   Three things to try next:");
    say("   - A block: in one session  BEGIN; UPDATE accounts SET balance = 0 WHERE id = 1;");
    say("     in a second one          UPDATE accounts SET balance = 1 WHERE id = 1;");
    say("     and in a third           SELECT pid, wait_event, query, pg_blocking_pids(pid) FROM pg_stat_activity;");
    say(&format!("   - A load:                  pgbench -h 127.0.0.1 -p {port} -U postgres -i -s 10 clearway"));
    say(&format!("     and then                 pgbench -h 127.0.0.1 -p {port} -U postgres -c 50 -T 10 clearway"));
    say(&format!("   - The contention lab:      {clearway} lab run hot-row --against clearway,postgres,mariadb"));
}
