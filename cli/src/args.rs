//! Parses the command line.

use std::path::PathBuf;
use std::sync::Arc;

use clearway_base::sync::block_on;
use clearway_base::vfs::{RealVfs, Vfs};
use clearway_server::config::{Config, Sources};
use clearway_server::configuration::load;
use lexopt::prelude::*;

use crate::sql::Target;

/// What was asked for.
#[derive(Debug, PartialEq, Eq)]
pub enum Command {
    /// How to use it, or one of its commands.
    Help(Option<&'static str>),
    /// Completions of a shell, or the manual page.
    Print(String),
    /// Which version this is.
    Version,
    /// Serve a directory.
    Serve(Box<Config>),
    /// Check a directory.
    Check(PathBuf),
    /// Check the schema of a server.
    CheckSchema(crate::schema::Question),
    /// Check an access file.
    CheckAccess(crate::access::Question),
    /// Show what it is for.
    Demo(Demo),
    /// Every setting.
    Settings,
    /// A shell for SQL.
    Sql(crate::sql::Target),
    /// The contention lab.
    Lab(Vec<std::ffi::OsString>),
    /// The console of a server.
    Watch(crate::watch::Command),
    /// Backups and restores.
    Backup(crate::backup::Command),
    /// Where a command's time goes.
    Time(crate::time::Timed),
    /// Another database's file.
    Import(crate::import::Import),
}

/// What part of the demonstration.
#[derive(Debug, PartialEq, Eq)]
pub enum Demo {
    /// All of it; at the end the server stays up where standard input is a terminal.
    Show {
        /// The server does not stay up in any case.
        no_wait: bool,
    },
    /// Load this directory until killed: the demonstration starts itself with this.
    Load(PathBuf),
}

/// Reads the command line.
///
/// # Errors
/// What can't be understood, or a file that can't be read.
pub fn parse(mut parser: lexopt::Parser) -> Result<Command, lexopt::Error> {
    match parser.next()? {
        None | Some(Short('h') | Long("help")) => Ok(Command::Help(None)),
        Some(Short('V') | Long("version")) => Ok(Command::Version),
        Some(Value(command)) => {
            let page = command.to_str().and_then(crate::help::page);
            let Some(page) = page else { return no_page(&command.to_string_lossy(), parser) };
            Ok(of_command(page.name, parser)?.unwrap_or(Command::Help(Some(page.name))))
        }
        Some(other) => Err(other.unexpected()),
    }
}

/// `help` and `help COMMAND`; any other word is no command.
fn no_page(word: &str, mut parser: lexopt::Parser) -> Result<Command, lexopt::Error> {
    if word != "help" {
        let near = crate::help::nearest(word);
        let near = near.map_or_else(String::new, |name| format!("; is \"{name}\" meant?"));
        return Err(format!("unknown command \"{word}\"{near}").into());
    }
    let Some(argument) = parser.next()? else { return Ok(Command::Help(None)) };
    let Value(name) = argument else { return Err(argument.unexpected()) };
    match name.to_str().and_then(crate::help::page) {
        Some(page) => Ok(Command::Help(Some(page.name))),
        None => Err(format!("unknown command \"{}\"", name.display()).into()),
    }
}

/// Reads what follows a subcommand's name; none: help is asked for.
fn of_command(name: &str, mut parser: lexopt::Parser) -> Result<Option<Command>, lexopt::Error> {
    match name {
        "serve" => serve(parser),
        "check" => check(parser),
        "demo" => demo(parser),
        "sql" => sql(parser),
        "lab" => Ok(Some(Command::Lab(parser.raw_args()?.collect()))),
        "watch" => Ok(crate::watch::parse(parser)?.map(Command::Watch)),
        "top" => Ok(crate::watch::parse_top(parser)?.map(Command::Watch)),
        "metrics" => Ok(crate::watch::parse_metrics(parser)?.map(Command::Watch)),
        "backup" => Ok(crate::backup::parse_backup(parser)?.map(Command::Backup)),
        "import" => Ok(crate::import::parse(parser)?.map(Command::Import)),
        "time" => Ok(crate::time::Timed::parse(parser)?.map(Command::Time)),
        "restore" => Ok(crate::backup::parse_restore(parser)?.map(Command::Backup)),
        _ => {
            let rest: Vec<String> = parser.raw_args()?.map(|word| word.to_string_lossy().into_owned()).collect();
            match (name, rest.iter().map(String::as_str).collect::<Vec<_>>().as_slice()) {
                (_, ["-h" | "--help"]) => Ok(None),
                ("settings", []) => Ok(Some(Command::Settings)),
                ("man", []) => Ok(Some(Command::Print(crate::help::man()))),
                ("completions", [shell]) => match crate::help::completions(shell) {
                    Some(text) => Ok(Some(Command::Print(text))),
                    None => Err("completions are for bash, zsh and fish".into()),
                },
                ("completions", []) => Err("completions needs a shell: bash, zsh or fish".into()),
                (_, words) => Err(format!("unexpected argument \"{}\"", words.last().unwrap_or(&"")).into()),
            }
        }
    }
}

fn demo(mut parser: lexopt::Parser) -> Result<Option<Command>, lexopt::Error> {
    let mut demo = Demo::Show { no_wait: false };
    while let Some(argument) = parser.next()? {
        match argument {
            Short('h') | Long("help") => return Ok(None),
            Long("no-wait") => demo = Demo::Show { no_wait: true },
            Long("load") => demo = Demo::Load(PathBuf::from(parser.value()?)),
            other => return Err(other.unexpected()),
        }
    }
    Ok(Some(Command::Demo(demo)))
}

fn sql(mut parser: lexopt::Parser) -> Result<Option<Command>, lexopt::Error> {
    let mut target = None;
    while let Some(argument) = parser.next()? {
        let one = match argument {
            Short('h') | Long("help") => return Ok(None),
            Long("data") => Target::Data(PathBuf::from(parser.value()?)),
            Value(url) => Target::Url(Some(url.string()?)),
            other => return Err(other.unexpected()),
        };
        if target.replace(one).is_some() {
            return Err("sql takes one URL or one --data DIR".into());
        }
    }
    Ok(Some(Command::Sql(target.unwrap_or(Target::Url(None)))))
}

fn serve(mut parser: lexopt::Parser) -> Result<Option<Command>, lexopt::Error> {
    let (mut given, mut file) = (Vec::new(), None);
    while let Some(argument) = parser.next()? {
        let (name, value) = match argument {
            Short('h') | Long("help") => return Ok(None),
            Long("config") => {
                file = Some(PathBuf::from(parser.value()?));
                continue;
            }
            Long("memory") => ("memory".to_owned(), "on".to_owned()),
            Long("allow-plaintext-beyond-loopback") => ("allow_plaintext_beyond_loopback".to_owned(), "on".to_owned()),
            Long("data") => ("data".to_owned(), parser.value()?.string()?),
            Long("listen") => ("listen".to_owned(), parser.value()?.string()?),
            Long("http") => ("http".to_owned(), parser.value()?.string()?),
            Long("unix-socket-directory") => ("unix_socket_directory".to_owned(), parser.value()?.string()?),
            Short('c') | Long("set") => {
                let text = parser.value()?.string()?;
                let (name, value) = text.split_once('=').ok_or_else(|| format!("expected NAME=VALUE, found {text}"))?;
                // A prefix of lines ends with a blank.
                (name.trim().to_owned(), value.trim_start().to_owned())
            }
            other => return Err(other.unexpected()),
        };
        given.push((name, value));
    }
    let vfs: Arc<dyn Vfs> = Arc::new(RealVfs::inline());
    let loaded = block_on(load(&vfs, &Sources { file, given }))?;
    match loaded.mistake() {
        Some(mistake) => Err(mistake.into()),
        None => Ok(Some(Command::Serve(Box::new(loaded.config)))),
    }
}

fn check(mut parser: lexopt::Parser) -> Result<Option<Command>, lexopt::Error> {
    let (mut places, mut asked) = (Vec::new(), None);
    if parser.try_raw_args().is_some_and(|mut rest| rest.next_if(|word| word == "schema").is_some()) {
        return Ok(crate::schema::parse(parser)?.map(Command::CheckSchema));
    }
    while let Some(argument) = parser.next()? {
        match argument {
            Short('h') | Long("help") => return Ok(None),
            Long("as") if asked.is_none() => {
                let words = parser.values()?.map(|word| word.string()).collect::<Result<Vec<_>, _>>()?;
                asked = Some(words);
            }
            Value(path) if places.len() < 2 => places.push(PathBuf::from(path)),
            other => return Err(other.unexpected()),
        }
    }
    let mut places = places.into_iter();
    match (places.next(), places.next(), asked) {
        (Some(word), Some(file), asked) if word.as_os_str() == "access" => {
            Ok(Some(Command::CheckAccess(crate::access::Question::new(file, asked)?)))
        }
        (Some(word), None, _) if word.as_os_str() == "access" => {
            Err("check access needs a file (a directory of that name is ./access)".into())
        }
        (Some(directory), None, None) => Ok(Some(Command::Check(directory))),
        (None, ..) => Err("check needs a directory, or: access FILE".into()),
        _ => Err("check takes one directory, or: access FILE [--as TYPE DATABASE USER [ADDRESS]]".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Command, String> {
        let arguments = std::iter::once("clearway").chain(line.split_whitespace());
        parse(lexopt::Parser::from_iter(arguments)).map_err(|error| error.to_string())
    }

    #[test]
    fn the_command_line() {
        assert_eq!(parsed(""), Ok(Command::Help(None)));
        for page in crate::help::PAGES.iter().filter(|page| page.name != "lab") {
            assert_eq!(parsed(&format!("{} --help", page.name)), Ok(Command::Help(Some(page.name))));
        }
        assert_eq!(parsed("help"), Ok(Command::Help(None)));
        assert_eq!(parsed("help backup"), Ok(Command::Help(Some("backup"))));
        assert_eq!(parsed("serv"), Err("unknown command \"serv\"; is \"serve\" meant?".to_owned()));
        assert!(matches!(parsed("completions zsh"), Ok(Command::Print(_))));
        assert!(matches!(parsed("man"), Ok(Command::Print(_))));
        assert_eq!(parsed("check d"), Ok(Command::Check("d".into())));
        assert!(matches!(parsed("check access f --as hostssl a b ::1"), Ok(Command::CheckAccess(_))));
        assert!(matches!(parsed("check access f"), Ok(Command::CheckAccess(_))));
        assert!(matches!(parsed("check schema --json postgresql://h/d"), Ok(Command::CheckSchema(_))));
        assert_eq!(parsed("check schema --help"), Ok(Command::Help(Some("check"))));
        assert_eq!(parsed("check ./access"), Ok(Command::Check("./access".into())));
        assert_eq!(parsed("demo --no-wait"), Ok(Command::Demo(Demo::Show { no_wait: true })));
        assert_eq!(parsed("sql"), Ok(Command::Sql(Target::Url(None))));
        assert_eq!(parsed("sql --data d"), Ok(Command::Sql(Target::Data("d".into()))));
        let Ok(Command::Serve(config)) = parsed("serve --data x --listen 127.0.0.1:0 -c lock_timeout=5s --memory")
        else {
            panic!("it is well formed");
        };
        assert_eq!((config.data.to_str(), config.memory), (Some("x"), true));
        assert_eq!(config.settings, [("lock_timeout".to_owned(), "5s".to_owned())]);
        for bad in [
            "serv",
            "help me",
            "help --x",
            "man x",
            "settings x",
            "completions",
            "completions csh",
            "completions bash x",
            "serve --date x",
            "serve x",
            "serve --listen nowhere",
            "serve -c x",
            "check",
            "check a b",
            "check access",
            "check d --as local a b",
            "check access f --as local a",
            "check access f --as local a b 10.0.0.1",
            "check access f --as hostssl a b",
            "check access f --as hostssl a b nowhere",
            "check schema a b",
            "check schema --min-rows x",
            "--x",
            "sql a b",
            "import",
            "import oracle x",
            "import sqlite",
            "import sqlite a b",
        ] {
            assert!(parsed(bad).is_err(), "{bad}");
        }
    }
}
