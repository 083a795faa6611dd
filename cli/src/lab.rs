//! `clearway lab`: runs the contention lab's own program, which is in the same directory as this one. So the server does not contain the
//! lab's code.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

/// The lab's program.
///
/// # Errors
/// It is not there; what to do about it.
pub fn program() -> Result<PathBuf, String> {
    let this = std::env::current_exe().map_err(|error| format!("could not find the path of this program: {error}"))?;
    let lab = this.with_file_name("clearway-lab");
    if lab.exists() {
        return Ok(lab);
    }
    let place = lab.display();
    Err(format!(
        "the contention lab is a program of its own, {place}, and is not there: cargo build --release -p clearway-lab"
    ))
}

/// Runs the lab with these arguments; it talks to the terminal itself, and says what failed. Its exit code.
///
/// # Errors
/// It is not there, or was stopped by a signal.
pub fn run(arguments: &[OsString]) -> Result<ExitCode, String> {
    let asks = arguments.first().is_none_or(|first| first == "--help" || first == "-h");
    let program = match program() {
        // What the program is can be told without it.
        Err(_) if asks => {
            print!("{}", crate::help::text(Some("lab")));
            return Ok(ExitCode::SUCCESS);
        }
        found => found?,
    };
    let ended = Command::new(&program).args(arguments).status();
    let status = ended.map_err(|error| format!("{}: {error}", program.display()))?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    code.map(ExitCode::from).ok_or_else(|| format!("the lab ended with {status}"))
}
