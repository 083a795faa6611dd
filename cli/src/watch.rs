//! `clearway watch`: runs the console of a server, and reads the file of queries that become its metrics.

use clearway_base::sync::block_on;
use clearway_base::vfs::{FileKind, IoBuf, OpenHow, RealVfs, Vfs};
use clearway_console::{Entry, Listener, Options, Queries, custom};
use lexopt::prelude::*;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The largest file of queries that is read, in bytes.
const FILE_BYTES_MAX: u64 = 4 << 20;
/// The server that is watched by default.
const SERVER: &str = "postgresql://postgres@127.0.0.1:5433/clearway";
/// Where the console listens by default.
const LISTEN: ([u8; 4], u16) = ([127, 0, 0, 1], 9187);
/// How often the queries run by default, in seconds.
const INTERVAL_S: u64 = 60;

/// What is asked for.
#[derive(Debug, PartialEq, Eq)]
pub enum Command {
    /// The console of a server.
    Watch {
        /// Which one.
        server: String,
        /// Where the console listens.
        listen: SocketAddr,
        /// A file of queries.
        queries: Option<PathBuf>,
        /// Seconds between two runs of them.
        interval_s: u64,
        /// Whether the page may cancel.
        may_cancel: bool,
        /// How many processors the server has.
        processors: Option<u32>,
    },
    /// Sessions in a terminal.
    Top {
        /// Whose.
        server: String,
        /// Whether sessions may be ended.
        may_cancel: bool,
        /// Print one screen of this many columns and lines.
        once: Option<(usize, usize)>,
    },
    /// Look at a file of queries.
    CheckQueries(PathBuf),
}

/// Reads what follows `watch`; nothing: help is asked for.
///
/// # Errors
/// What can't be understood.
pub fn parse(mut parser: lexopt::Parser) -> Result<Option<Command>, lexopt::Error> {
    let (mut server, mut listen, mut queries) = (None, SocketAddr::from(LISTEN), None);
    let (mut interval_s, mut may_cancel, mut processors) = (INTERVAL_S, false, None);
    while let Some(argument) = parser.next()? {
        match argument {
            Short('h') | Long("help") => return Ok(None),
            Long("http") => {
                let text = parser.value()?.string()?;
                listen = text.parse().map_err(|_| format!("--http: expected ADDRESS:PORT, found \"{text}\""))?;
            }
            Long("queries") => queries = Some(PathBuf::from(parser.value()?)),
            Long("interval") => {
                let text = parser.value()?.string()?;
                interval_s = text
                    .parse()
                    .ok()
                    .filter(|s| (1..=86_400).contains(s))
                    .ok_or_else(|| format!("--interval: expected seconds from 1 to 86400, found \"{text}\""))?;
            }
            Long("cancel") => may_cancel = true,
            Long("processors") => {
                let text = parser.value()?.string()?;
                let number = text.parse().ok().filter(|n| (1..=65_536).contains(n));
                processors =
                    Some(number.ok_or_else(|| format!("--processors: expected 1 to 65536, found \"{text}\""))?);
            }
            Value(url) if server.is_none() => server = Some(url.string()?),
            other => return Err(other.unexpected()),
        }
    }
    let server = server.unwrap_or_else(|| SERVER.to_owned());
    Ok(Some(Command::Watch { server, listen, queries, interval_s, may_cancel, processors }))
}

/// Reads what follows `top`; nothing: help is asked for.
///
/// # Errors
/// What can't be understood.
pub fn parse_top(mut parser: lexopt::Parser) -> Result<Option<Command>, lexopt::Error> {
    let (mut server, mut may_cancel, mut once) = (None, false, None);
    while let Some(argument) = parser.next()? {
        match argument {
            Short('h') | Long("help") => return Ok(None),
            Long("cancel") => may_cancel = true,
            Long("once") => once = Some((80, 24)),
            Long("size") => {
                let text = parser.value()?.string()?;
                let size = text.split_once('x').and_then(|(w, h)| Some((w.parse().ok()?, h.parse().ok()?)));
                let size = size.filter(|(w, h)| (20..=1000).contains(w) && (5..=1000).contains(h));
                once = Some(size.ok_or_else(|| format!("--size: expected COLUMNSxLINES, found \"{text}\""))?);
            }
            Value(url) if server.is_none() => server = Some(url.string()?),
            other => return Err(other.unexpected()),
        }
    }
    Ok(Some(Command::Top { server: server.unwrap_or_else(|| SERVER.to_owned()), may_cancel, once }))
}

/// Reads what follows `metrics`; nothing: help is asked for.
///
/// # Errors
/// What can't be understood.
pub fn parse_metrics(mut parser: lexopt::Parser) -> Result<Option<Command>, lexopt::Error> {
    let mut words = Vec::new();
    while let Some(argument) = parser.next()? {
        match argument {
            Short('h') | Long("help") => return Ok(None),
            Value(word) => words.push(word),
            other => return Err(other.unexpected()),
        }
    }
    match <[_; 2]>::try_from(words) {
        Ok([check, file]) if check == "check" => Ok(Some(Command::CheckQueries(PathBuf::from(file)))),
        _ => Err("metrics takes: check FILE".into()),
    }
}

/// Does it.
///
/// # Errors
/// The error, as a text for the user.
pub fn run(command: Command) -> Result<(), String> {
    match command {
        Command::CheckQueries(file) => {
            let queries =
                custom::parse(&file.display().to_string(), &read(&file)?).map_err(|problem| problem.to_string())?;
            for query in &queries {
                println!("{}: {} columns", query.name, query.columns.len());
            }
            Ok(())
        }
        Command::Top { server, may_cancel, once } => {
            let options = Options {
                server,
                password: std::env::var("PGPASSWORD").ok(),
                queries: None,
                interval: Duration::from_secs(INTERVAL_S),
                may_cancel,
                processors: None,
                entry: Entry::Everybody,
            };
            runtime()?.block_on(clearway_console::top(options, once)).map_err(|error| error.to_string())
        }
        Command::Watch { server, listen, queries, interval_s, may_cancel, processors } => {
            let options = Options {
                server,
                password: std::env::var("PGPASSWORD").ok(),
                queries: queries.map(named),
                interval: Duration::from_secs(interval_s),
                may_cancel,
                processors,
                entry: Entry::Everybody,
            };
            let watched = runtime()?.block_on(async {
                let listener = Listener::bind(listen).await?;
                clearway_console::watch(options, listener, &mut |line| println!("{line}")).await
            });
            watched.map_err(|error| error.to_string())
        }
    }
}

/// What the console runs on.
pub fn runtime() -> Result<tokio::runtime::Runtime, String> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string())
}

/// A file of queries.
pub fn named(path: PathBuf) -> Queries {
    Queries { name: path.display().to_string(), read: Box::new(move || read(&path)) }
}

/// The password in a file that its owner alone may read.
///
/// # Errors
/// It can't be read, or others can read it as well.
pub fn secret(path: &Path) -> Result<String, String> {
    let mode = block_on(RealVfs::inline().mode(path)).map_err(|error| format!("{}: {error}", path.display()))?;
    if mode & 0o077 != 0 {
        return Err(format!("{} can be read by others: chmod 600 {}", path.display(), path.display()));
    }
    let text = read(path)?;
    Ok(text.strip_suffix('\n').unwrap_or(&text).to_owned())
}

fn read(path: &Path) -> Result<String, String> {
    let fail = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let vfs = RealVfs::inline();
    let read = block_on(async {
        let file = vfs.open(path, OpenHow::read_only(FileKind::Other)).await?;
        let len = file.len().await?.min(FILE_BYTES_MAX + 1);
        file.read_at(0, IoBuf::zeroed(0), len as usize).await
    });
    let bytes = read.map_err(|error| fail(&error))?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(fail(&format!("larger than {FILE_BYTES_MAX} bytes")));
    }
    String::from_utf8(bytes.to_vec()).map_err(|_| fail(&"not a text in UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Option<Command>, String> {
        let arguments = std::iter::once("clearway").chain(line.split_whitespace());
        parse(lexopt::Parser::from_iter(arguments)).map_err(|error| error.to_string())
    }

    #[test]
    fn the_command_line() {
        let Ok(Some(Command::Watch { server, listen, interval_s, may_cancel, .. })) = parsed("") else { panic!() };
        assert_eq!((server.as_str(), listen.to_string().as_str()), (SERVER, "127.0.0.1:9187"));
        assert_eq!((interval_s, may_cancel), (60, false));
        assert!(parsed("--interval 0").unwrap_err().contains("from 1 to 86400"));
        let Ok(Some(Command::Watch { processors, .. })) = parsed("--processors 48") else { panic!() };
        assert_eq!(processors, Some(48));
        assert!(parsed("--processors 0").unwrap_err().contains("1 to 65536"));
        assert!(parsed("--http nowhere").unwrap_err().contains("ADDRESS:PORT"));
        assert!(parsed("a b").is_err());
    }
}
