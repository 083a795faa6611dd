//! The server that keeps running after the demonstration, on the directory that the demonstration used.

use std::path::Path;

use clearway_server::config::Config;
use clearway_server::run::{RunError, run as run_server};

use super::Failure;

/// Serves the directory until Ctrl-C, at the port of `clearway serve` or, where that is taken, at another one.
pub fn run(data: &Path, say: &mut (dyn FnMut(&str) + Send)) -> Result<(), Failure> {
    let mut config = Config { data: data.to_owned(), ..Config::default() };
    // The lines of the log would stand between those of the demonstration.
    config.set("log_min_messages", "fatal")?;
    let mut heard = |line: &str| {
        if let Some(port) = line.strip_prefix("listening at 127.0.0.1:") {
            say("");
            say("5. The server is up, with the table accounts.");
            say("   Ctrl-C stops it and removes the directory.");
            next_steps(port, say);
        } else if !line.starts_with("connect with") && !line.starts_with("clearway ") {
            let mut narrow = String::new();
            crate::help::filled(&mut narrow, line, 3);
            narrow.lines().for_each(&mut *say);
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
    let psql = format!("-h 127.0.0.1 -p {port} -U postgres");
    say(&format!("     psql {psql} clearway"));
    say(&format!("     {clearway} sql postgresql://postgres@127.0.0.1:{port}/clearway"));
    say("");
    say("   Three things to try next.");
    say("   - A block. In one session:");
    say("       BEGIN; UPDATE accounts SET balance = 0 WHERE id = 1;");
    say("     in a second one:");
    say("       UPDATE accounts SET balance = 1 WHERE id = 1;");
    say("     and in a third:");
    say("       SELECT pid, wait_event, query, pg_blocking_pids(pid)");
    say("       FROM pg_stat_activity;");
    say("   - A load:");
    say(&format!("       pgbench {psql} -i -s 10 clearway"));
    say(&format!("       pgbench {psql} -c 50 -T 10 clearway"));
    say("   - The contention lab:");
    say(&format!("       {clearway} lab run hot-row --against clearway,postgres,mariadb"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_steps_fit_eighty_columns() {
        let called = std::env::args().next().expect("the name of this program");
        let mut wide = Vec::new();
        // The path by which the program was called has any length.
        next_steps("65535", &mut |line| match line.replace(&called, "./clearway") {
            short if short.len() > 80 => wide.push(short),
            _ => {}
        });
        assert_eq!(wide, [""; 0]);
    }
}
