//! The `clearway` command.
//!
//! # Structure
//! ```text
//! args       parses the command line            help      help, manual page and completions
//! serve      the server and its console         sql       a shell
//! check      checks a directory                 access    checks a file of access rules
//! schema     checks a server's schema           settings  the reference of settings
//! backup     backups and restores               import    imports from SQLite
//! watch      the console of any server          time      where a command's time goes
//! demo       a demonstration in a minute        lab       runs the contention lab's program
//! ```
#![forbid(unsafe_code)]

mod access;
mod args;
mod backup;
mod check;
mod demo;
mod help;
mod import;
mod lab;
mod schema;
mod serve;
mod settings;
mod sql;
mod time;
mod watch;

use std::io::IsTerminal as _;
use std::process::ExitCode;

use args::Command;
// Installs the allocator.
use clearway_allocator as _;

/// Plants the mistake that the environment names, to prove that tests against the program find it.
#[cfg(feature = "mutations")]
fn plant() {
    use clearway_txn::mutation::{LOCKSTEP, plant};
    let Ok(name) = std::env::var("CLEARWAY_PLANTED") else { return };
    let (_, mutation) = LOCKSTEP.into_iter().find(|(known, _)| *known == name).expect("a planted mistake of this name");
    plant(mutation);
}

fn main() -> ExitCode {
    clearway_base::memory::limit_arenas();
    #[cfg(feature = "mutations")]
    plant();
    let command = match args::parse(lexopt::Parser::from_env()) {
        Ok(command) => command,
        Err(error) => {
            let name = std::env::args().nth(1).and_then(|name| help::page(&name));
            let name = name.map_or_else(String::new, |page| format!("{} ", page.name));
            eprintln!("clearway: {error}\nTry 'clearway {name}--help'.");
            return ExitCode::from(2);
        }
    };
    let done = match command {
        Command::Help(name) => {
            print!("{}", help::text(name));
            Ok(())
        }
        Command::Print(text) => {
            print!("{text}");
            Ok(())
        }
        Command::Version => {
            println!("clearway {}", env!("CARGO_PKG_VERSION"));
            Ok(())
        }
        Command::Serve(config) => serve::run(&config),
        Command::Check(directory) => check::check(&directory),
        Command::CheckAccess(question) => access::check(&question),
        Command::CheckSchema(question) => schema::run(&question),
        Command::Demo(args::Demo::Show { no_wait }) => {
            let end = if no_wait || !std::io::stdin().is_terminal() { demo::End::Stop } else { demo::End::Serve };
            demo::run(end, &mut |line| println!("{line}")).map_err(|error| error.to_string())
        }
        Command::Demo(args::Demo::Load(dir)) => demo::load_until_killed(&dir).map_err(|error| error.to_string()),
        Command::Settings => {
            print!("{}", settings::reference());
            Ok(())
        }
        Command::Sql(target) => sql::run(&target),
        Command::Lab(lab) => match lab::run(&lab) {
            Ok(code) => return code,
            Err(error) => Err(error),
        },
        Command::Watch(command) => watch::run(command),
        Command::Backup(command) => backup::run(&command),
        Command::Time(timed) => match time::run(&timed) {
            Ok(code) => return code,
            Err(error) => Err(error),
        },
        Command::Import(import) => import::run(&import, &mut |line| println!("{line}")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("clearway: {error}");
            ExitCode::FAILURE
        }
    }
}
