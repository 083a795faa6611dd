//! The `clearway` command.
//!
//! Structure: `args` (what was asked for), `check` (the checker of a directory); serving is `clearway_server::run`.
#![forbid(unsafe_code)]

mod args;
mod check;

use std::io::Write as _;
use std::process::ExitCode;

use args::Command;

fn main() -> ExitCode {
    let command = match args::parse(lexopt::Parser::from_env()) {
        Ok(command) => command,
        Err(error) => {
            eprintln!("clearway: {error}\nTry 'clearway --help'.");
            return ExitCode::from(2);
        }
    };
    let done = match command {
        Command::Help => {
            print!("{}", args::HELP);
            Ok(())
        }
        Command::Version => {
            println!("clearway {}", env!("CARGO_PKG_VERSION"));
            Ok(())
        }
        Command::Serve(config) => {
            // Nobody may be reading any more: that is no reason to stop.
            let mut say = |line: &str| _ = writeln!(std::io::stdout(), "{line}");
            clearway_server::run::run(&config, &mut say).map_err(|error| error.to_string())
        }
        Command::Check(directory) => check::check(&directory),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("clearway: {error}");
            ExitCode::FAILURE
        }
    }
}
