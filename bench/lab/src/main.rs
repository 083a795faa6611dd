//! The program `clearway-lab`: the contention lab. `clearway lab` starts it if it is in the same directory as `clearway`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    let done = clearway_lab::command::parse(lexopt::Parser::from_env())
        .map_err(|error| (2, format!("{error}\nTry 'clearway lab --help'.")))
        .and_then(|lab| clearway_lab::command::run(&lab).map_err(|error| (1, error)));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err((code, error)) => {
            eprintln!("clearway lab: {error}");
            ExitCode::from(code)
        }
    }
}
