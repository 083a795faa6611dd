//! Demonstration: one row updated by more and more clients over TCP. The contention lab, a separate program, measures and draws it.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use super::Failure;

/// Updates of one row by 1, 10, 100 and 1,000 clients, each durable before its reply. The lab makes a scratch directory of its own: the user of
/// PostgreSQL, which refuses to run as root, may not pass through the demonstration's.
pub fn run(say: &mut dyn FnMut(&str)) -> Result<(), Failure> {
    let lab = match crate::lab::program() {
        Ok(lab) => lab,
        Err(missing) => {
            say("");
            say("3. One hot row: not shown.");
            let mut why = String::new();
            crate::help::filled(&mut why, &missing, 3);
            why.lines().for_each(say);
            return Ok(());
        }
    };
    let mut command = Command::new(lab);
    command.arg("demo").arg(std::env::temp_dir()).arg(std::env::current_exe()?).stdout(Stdio::piped());
    let mut child = command.spawn()?;
    if let Some(output) = child.stdout.take() {
        for line in BufReader::new(output).lines() {
            say(&line?);
        }
    }
    let status = child.wait()?;
    if status.success() { Ok(()) } else { Err(format!("the lab ended with {status}").into()) }
}
