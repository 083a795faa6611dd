//! The command line.

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
    /// How to use it.
    Help,
    /// Which version this is.
    Version,
    /// Serve a directory.
    Serve(Box<Config>),
    /// Check a directory.
    Check(PathBuf),
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
    /// All of it; at the end the server stays up where somebody sits at a terminal.
    Show {
        /// The server does not stay up in any case.
        no_wait: bool,
    },
    /// Load this directory until killed: the demonstration starts itself with this.
    Load(PathBuf),
}

/// The text of `--help`.
pub const HELP: &str = "\
Clearway, a transactional SQL database that PostgreSQL's clients can talk to.

  clearway serve [OPTIONS]      serve a data directory
    --data DIR                  the directory; made if it does not exist [clearway-data]
    --listen ADDRESS:PORT       where; port 0 takes a free one; several with commas [127.0.0.1:5433]
    --config FILE               lines of name = value; options of the command line win
    --http ADDRESS:PORT         also serve the console (a page) and /metrics there, on this machine
    --memory                    keep everything in memory
    --unix-socket-directory DIR also listen at DIR/.s.PGSQL.PORT
    --allow-plaintext-beyond-loopback
                                do without TLS for other machines
    -c, --set NAME=VALUE        any setting of the file or of sessions
  clearway check DIR            check a directory that no server has open
  clearway check access FILE    check a file of rules about who may connect (docs/serving.md)
    --as TYPE DATABASE USER [ADDRESS]
                                and say which line decides: TYPE is local, hostssl or hostnossl
  clearway backup TARGET [OPTIONS]
                                back up a running server into TARGET: a directory, an object store (s3://, gs://,
                                az://), a single file (*.backup) or standard output (-)
    --server URL                which one [postgresql://postgres@127.0.0.1:5433/clearway]
    --data DIR                  a directory that nobody serves instead
    --incremental               only what changed since the newest backup there
    --resume                    go on with the newest backup there that was broken off
    --rate BYTES                the most that is read in a second, with kB, MB or GB; 0 is no limit [64MB]
  clearway backup list TARGET   the backups in TARGET
  clearway backup verify TARGET [--open]
                                read everything there and check it; --open also restores it into a scratch directory
  clearway backup expire TARGET --keep 7d,4w
                                remove backups, and log, but for the newest of each of 7 days and 4 weeks
  clearway restore SOURCE DIR   make the directory DIR from the newest backup in SOURCE (- is standard input) and all
                                log after it
    --to 'TIME'                 as it was before the first commit after TIME
    --to-lsn LSN, --to-name NAME, --backup ID
                                as of a position in the log, a restore point, the end of one backup
    --epoch N                   along the history that ends with this epoch [the newest]
  clearway restore --list SOURCE
                                the histories and moments that can be restored
  clearway import sqlite FILE [OPTIONS]
                                the tables of a SQLite file with data, keys, indexes and foreign keys, into a directory
    --data DIR                  which one, also while a server or a program has it open [clearway-data]
    --schema NAME               the schema of the tables [public]
    --keep-case                 keep capital letters in names; without it names are in lower case
  clearway demo [--no-wait]     show what Clearway is for, in a scratch directory and less than a minute; then the
                                server stays up, unless nobody sits at a terminal or --no-wait is given
  clearway sql [URL]            a small shell for SQL [postgresql://postgres@127.0.0.1:5433/clearway]
  clearway sql --data DIR       the same on a directory that nobody serves
  clearway watch [URL]          the console of a server, Clearway or PostgreSQL, as a page and as metrics for Prometheus
    --http ADDRESS:PORT         where, on this machine [127.0.0.1:9187]
    --queries FILE              queries in YAML whose results become metrics, as the exporters read them
    --interval SECONDS          how often they run [60]
    --cancel                    the page may end the session that blocks others
  clearway metrics check FILE   check a file of queries
  clearway top [URL]            a server's sessions in a terminal: who is at work, who waits for whom, statements
    --cancel                    x may end what a session does
    --once, --size 80x24        print one screen and end
  clearway time [--target URL] -- COMMAND
                                run COMMAND and say how much of its time was database, how much of that I/O, and what a
                                memory file system would save
  clearway settings             every setting of server and sessions, with default and meaning
  clearway lab list             the contention lab's scenarios; 'clearway lab --help' tells more
  clearway lab run NAME         one of them against several servers
  clearway --version
";

/// Reads the command line.
///
/// # Errors
/// What can't be understood, or a file that can't be read.
pub fn parse(mut parser: lexopt::Parser) -> Result<Command, lexopt::Error> {
    match parser.next()? {
        None | Some(Short('h') | Long("help")) => Ok(Command::Help),
        Some(Short('V') | Long("version")) => Ok(Command::Version),
        Some(Value(command)) => match command.to_str() {
            Some("serve") => serve(parser),
            Some("check") => check(parser),
            Some("demo") => demo(parser),
            Some("sql") => sql(parser),
            Some("settings") => match parser.next()? {
                None => Ok(Command::Settings),
                Some(other) => Err(other.unexpected()),
            },
            Some("lab") => Ok(Command::Lab(parser.raw_args()?.collect())),
            Some("watch") => Ok(crate::watch::parse(parser)?.map_or(Command::Help, Command::Watch)),
            Some("top") => Ok(crate::watch::parse_top(parser)?.map_or(Command::Help, Command::Watch)),
            Some("metrics") => Ok(crate::watch::parse_metrics(parser)?.map_or(Command::Help, Command::Watch)),
            Some("backup") => help_or(crate::backup::parse_backup(parser)),
            Some("time") => Ok(crate::time::Timed::parse(parser)?.map_or(Command::Help, Command::Time)),
            Some("import") => Ok(crate::import::parse(parser)?.map_or(Command::Help, Command::Import)),
            Some("restore") => help_or(crate::backup::parse_restore(parser)),
            _ => Err(format!("unknown command {}", command.display()).into()),
        },
        Some(other) => Err(other.unexpected()),
    }
}

fn help_or(parsed: Result<Option<crate::backup::Command>, lexopt::Error>) -> Result<Command, lexopt::Error> {
    Ok(parsed?.map_or(Command::Help, Command::Backup))
}

fn demo(mut parser: lexopt::Parser) -> Result<Command, lexopt::Error> {
    let mut demo = Demo::Show { no_wait: false };
    while let Some(argument) = parser.next()? {
        match argument {
            Short('h') | Long("help") => return Ok(Command::Help),
            Long("no-wait") => demo = Demo::Show { no_wait: true },
            Long("load") => demo = Demo::Load(PathBuf::from(parser.value()?)),
            other => return Err(other.unexpected()),
        }
    }
    Ok(Command::Demo(demo))
}

fn sql(mut parser: lexopt::Parser) -> Result<Command, lexopt::Error> {
    let mut target = None;
    while let Some(argument) = parser.next()? {
        let one = match argument {
            Short('h') | Long("help") => return Ok(Command::Help),
            Long("data") => Target::Data(PathBuf::from(parser.value()?)),
            Value(url) => Target::Url(Some(url.string()?)),
            other => return Err(other.unexpected()),
        };
        if target.replace(one).is_some() {
            return Err("sql takes one URL or one --data DIR".into());
        }
    }
    Ok(Command::Sql(target.unwrap_or(Target::Url(None))))
}

fn serve(mut parser: lexopt::Parser) -> Result<Command, lexopt::Error> {
    let (mut given, mut file) = (Vec::new(), None);
    while let Some(argument) = parser.next()? {
        let (name, value) = match argument {
            Short('h') | Long("help") => return Ok(Command::Help),
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
        None => Ok(Command::Serve(Box::new(loaded.config))),
    }
}

fn check(mut parser: lexopt::Parser) -> Result<Command, lexopt::Error> {
    let (mut places, mut asked) = (Vec::new(), None);
    while let Some(argument) = parser.next()? {
        match argument {
            Short('h') | Long("help") => return Ok(Command::Help),
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
            Ok(Command::CheckAccess(crate::access::Question::new(file, asked)?))
        }
        (Some(word), None, _) if word.as_os_str() == "access" => {
            Err("check access needs a file (a directory of that name is ./access)".into())
        }
        (Some(directory), None, None) => Ok(Command::Check(directory)),
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
        assert_eq!(parsed(""), Ok(Command::Help));
        assert_eq!(parsed("check d"), Ok(Command::Check("d".into())));
        assert!(matches!(parsed("check access f --as hostssl a b ::1"), Ok(Command::CheckAccess(_))));
        assert!(matches!(parsed("check access f"), Ok(Command::CheckAccess(_))));
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
