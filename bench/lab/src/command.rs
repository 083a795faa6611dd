//! The command line of `clearway-lab`, which `clearway lab` runs.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::books;
use crate::report;
use crate::scenarios;
use crate::session::{LEAST_REPEATS, Request, run as run_session};
use lexopt::prelude::*;

/// The text of `clearway lab --help`.
pub const HELP: &str = "\
The contention lab: the same load against Clearway and its peers, on this
machine, with equal durability.

  clearway lab list             the lab's scenarios
  clearway lab books [OPTIONS]  each scenario once, Clearway alone: whether
                                elapsed time is processor, run queue and waits
                                to within 1 %; with --seconds, --scratch,
                                --lock and --clearway
  clearway lab run NAME [OPTIONS]
                                one scenario against several servers, started
                                here on loopback
    --against LIST              clearway, postgres, pgbouncer (PostgreSQL
                                behind it), mariadb, mariadb-pool (its pool of
                                threads), mariadb-nodetect (its deadlock
                                detection off), all; or a server that runs:
                                NAME=postgresql://USER@HOST:PORT/DATABASE,
                                NAME=mysql://USER:PASSWORD@HOST:PORT/DATABASE
                                [clearway,postgres]
    --clients LIST              client counts, or what else the scenario's x
                                axis counts [the scenario's]
    --seconds N                 of each run [2]
    --repeats N                 equal runs, at least 3 [3]
    --out DIR                   where JSON, table and chart go [lab-results]
    --page FILE.md              write a page, with chart and figures beside it
    --accept-unequal            take servers with another durability or
                                isolation, too; captions say so
    --lock FILE                 hold this file's lock (flock) during the runs,
                                several with commas: other work on this
                                machine that takes it has its turn in between
    --scratch DIR               data directories go there [the system's
                                temporary directory]
    --clearway FILE             the Clearway that is measured [`clearway`
                                beside this one]

Examples:
  clearway lab list
      the scenarios
  clearway lab run hot-row --against clearway,postgres,mariadb --seconds 5
      one of them, on three servers
";

/// What was asked for.
#[derive(Debug, PartialEq, Eq)]
pub enum Lab {
    /// Name the scenarios.
    List,
    /// How to use it.
    Help,
    /// Run one.
    Run(Box<Run>),
    /// Whether Clearway's books close in each of them.
    Books(Box<Run>),
    /// Be the server that only speaks the protocol; the lab starts itself with this.
    WireOnly(SocketAddr),
    /// The hot row of `clearway demo`: a directory for the data, and the server's binary.
    Demo(PathBuf, PathBuf),
}

/// How to run one.
#[derive(Debug, PartialEq, Eq)]
pub struct Run {
    scenario: String,
    against: Vec<String>,
    points: Vec<u32>,
    window: Duration,
    repeats: u32,
    out: PathBuf,
    page: Option<PathBuf>,
    scratch: PathBuf,
    clearway: Option<PathBuf>,
    locks: Vec<PathBuf>,
    accept_unequal: bool,
}

/// Reads what follows `clearway lab`.
///
/// # Errors
/// What can't be understood.
pub fn parse(mut parser: lexopt::Parser) -> Result<Lab, lexopt::Error> {
    match parser.next()? {
        Some(Value(word)) if word == "list" => match parser.next()? {
            None => Ok(Lab::List),
            Some(other) => Err(other.unexpected()),
        },
        Some(Value(word)) if word == "run" => run_options(parser, false),
        Some(Value(word)) if word == "books" => run_options(parser, true),
        Some(Value(word)) if word == "wire-only" => Ok(Lab::WireOnly(parser.value()?.parse()?)),
        Some(Value(word)) if word == "demo" => Ok(Lab::Demo(parser.value()?.into(), parser.value()?.into())),
        None | Some(Short('h') | Long("help")) => Ok(Lab::Help),
        Some(other) => Err(other.unexpected()),
    }
}

fn run_options(mut parser: lexopt::Parser, of_books: bool) -> Result<Lab, lexopt::Error> {
    let mut run = Run {
        scenario: String::new(),
        against: vec!["clearway".to_owned(), "postgres".to_owned()],
        points: Vec::new(),
        window: Duration::from_secs(2),
        repeats: LEAST_REPEATS,
        out: PathBuf::from("lab-results"),
        page: None,
        scratch: std::env::temp_dir(),
        clearway: None,
        locks: Vec::new(),
        accept_unequal: false,
    };
    while let Some(argument) = parser.next()? {
        match argument {
            Short('h') | Long("help") => return Ok(Lab::Help),
            Value(name) if run.scenario.is_empty() && !of_books => run.scenario = name.string()?,
            Long(name @ ("against" | "clients" | "repeats" | "out" | "page")) if of_books => {
                return Err(format!("--{name}: books takes --seconds, --scratch, --lock and --clearway").into());
            }
            Long("against") => run.against = list(&parser.value()?.string()?),
            Long("clients") => {
                let one = |text: &String| text.parse().ok().filter(|&count: &u32| (1..=10_000_000).contains(&count));
                let counts: Option<Vec<u32>> = list(&parser.value()?.string()?).iter().map(one).collect();
                run.points = counts.ok_or("--clients: numbers from 1 to 10000000, with commas")?;
            }
            Long("seconds") => {
                let seconds = parser.value()?.parse::<f64>()?;
                let sound = (0.1..=3600.0).contains(&seconds);
                run.window =
                    Duration::from_secs_f64(if sound { seconds } else { return Err("--seconds: 0.1 to 3600".into()) });
            }
            Long("repeats") => run.repeats = parser.value()?.parse()?,
            Long("out") => run.out = parser.value()?.into(),
            Long("page") => run.page = Some(parser.value()?.into()),
            Long("clearway") => run.clearway = Some(parser.value()?.into()),
            Long("lock") => run.locks = list(&parser.value()?.string()?).into_iter().map(PathBuf::from).collect(),
            Long("accept-unequal") => run.accept_unequal = true,
            Long("scratch") => run.scratch = parser.value()?.into(),
            other => return Err(other.unexpected()),
        }
    }
    if run.repeats < LEAST_REPEATS {
        return Err(format!("--repeats: at least {LEAST_REPEATS}, else there is no spread to show").into());
    }
    if of_books {
        run.against = vec!["clearway".to_owned()];
        return Ok(Lab::Books(Box::new(run)));
    }
    if run.scenario.is_empty() {
        Err("run needs a NAME; 'clearway lab list' shows them".into())
    } else {
        Ok(Lab::Run(Box::new(run)))
    }
}

fn list(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

/// Does what was asked for; progress and the table go to standard output.
///
/// # Errors
/// What the user should know, in a sentence.
pub fn run(lab: &Lab) -> Result<(), String> {
    match lab {
        Lab::List => {
            for scenario in scenarios::all() {
                println!("{:<16} {}", scenario.name(), scenario.title());
            }
            Ok(())
        }
        Lab::Help => {
            print!("{HELP}");
            Ok(())
        }
        Lab::Run(run) => one(run),
        Lab::Books(run) => all_books(run),
        Lab::WireOnly(address) => crate::limit::serve_wire(*address).map_err(|error| error.to_string()),
        Lab::Demo(scratch, clearway) => {
            crate::demo::run(scratch, clearway, &mut |line| println!("{line}")).map_err(|error| error.to_string())
        }
    }
}

/// The server's binary beside this one.
fn server_beside(this: &Path) -> PathBuf {
    this.with_file_name("clearway")
}

/// Each scenario once, and what its books say.
fn all_books(run: &Run) -> Result<(), String> {
    let (mut lines, mut closed) = (Vec::new(), true);
    for scenario in scenarios::all() {
        let Some(x) = books::point(*scenario) else { continue };
        let request = Request { points: vec![x], repeats: 1, ..request(run)? };
        let outcome =
            run_session(*scenario, &request, &mut |line| println!("{line}")).map_err(|error| error.to_string())?;
        let (more, closes) = books::lines(&outcome);
        lines.extend(more);
        closed &= closes;
    }
    println!("\n{}", lines.join("\n"));
    if closed {
        Ok(())
    } else {
        Err("more than 1 % of a scenario's time is unaccounted, or its run does not count".to_owned())
    }
}

fn request(run: &Run) -> Result<Request, String> {
    let this = std::env::current_exe().map_err(|error| format!("where is this binary? {error}"))?;
    Ok(Request {
        against: run.against.clone(),
        seconds: run.window.as_secs_f64(),
        points: run.points.clone(),
        repeats: run.repeats,
        clearway: run.clearway.clone().unwrap_or_else(|| server_beside(&this)),
        this,
        locks: run.locks.clone(),
        accept_unequal: run.accept_unequal,
        scratch: run.scratch.clone(),
        command: command(run),
    })
}

fn one(run: &Run) -> Result<(), String> {
    let scenario = scenarios::find(&run.scenario).map_err(|error| error.to_string())?;
    let request = request(run)?;
    let outcome = run_session(scenario, &request, &mut |line| println!("{line}")).map_err(|error| error.to_string())?;
    println!("\n{}", report::text(&outcome));
    let mut written = report::write_all(&outcome, &run.out).map_err(|error| error.to_string())?;
    if let Some(page) = &run.page {
        written.extend(report::write_page(&outcome, page).map_err(|error| error.to_string())?);
    }
    for path in written {
        println!("wrote {}", path.display());
    }
    Ok(())
}

/// The command that repeats a run; where it writes is no part of it, nor is what a URL may hold of passwords.
fn command(run: &Run) -> String {
    let against: Vec<&str> =
        run.against.iter().map(|text| text.split_once('=').map_or(text.as_str(), |(name, _)| name)).collect();
    let mut text = format!("clearway lab run {} --against {}", run.scenario, against.join(","));
    text.push_str(&format!(" --seconds {} --repeats {}", run.window.as_secs_f64(), run.repeats));
    if run.accept_unequal {
        text.push_str(" --accept-unequal");
    }
    if !run.points.is_empty() {
        let clients: Vec<String> = run.points.iter().map(u32::to_string).collect();
        text.push_str(&format!(" --clients {}", clients.join(",")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Lab, String> {
        let arguments = std::iter::once("clearway-lab").chain(line.split_whitespace());
        parse(lexopt::Parser::from_iter(arguments)).map_err(|error| error.to_string())
    }

    #[test]
    fn the_command_line() {
        assert_eq!(parsed("list"), Ok(Lab::List));
        let line = "run hot-row --against clearway,x=postgresql://a:secret@b/c --clients 1,10 --seconds 0.5";
        let Ok(Lab::Run(run)) = parsed(line) else { panic!("it is well formed") };
        assert_eq!((run.points.as_slice(), run.repeats), ([1, 10].as_slice(), 3));
        let repeats = command(&run);
        assert_eq!(repeats, "clearway lab run hot-row --against clearway,x --seconds 0.5 --repeats 3 --clients 1,10");
        let Ok(Lab::Books(run)) = parsed("books --seconds 0.5") else { panic!("it is well formed") };
        assert_eq!(
            (run.against.as_slice(), run.window),
            (["clearway".to_owned()].as_slice(), Duration::from_millis(500))
        );
        assert_eq!((parsed(""), parsed("run --help")), (Ok(Lab::Help), Ok(Lab::Help)));
        for bad in [
            "lost",
            "list x",
            "books hot-row",
            "books --against postgres",
            "run",
            "run a b",
            "run a --clients 0",
            "run a --clients x",
            "run a --seconds 0",
            "run a --repeats 2",
        ] {
            assert!(parsed(bad).is_err(), "{bad}");
        }
    }
}
