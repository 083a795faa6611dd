//! Parses the command lines of `clearway backup` and `clearway restore`.

use std::path::PathBuf;

use clearway_backup::expire::Keep;
use clearway_backup::plan::Goal;
use clearway_base::waits::wall_us;
use clearway_storage::ids::Lsn;
use clearway_values::types::datetime::{Format, parse_timestamptz};
use lexopt::prelude::*;

/// What the server gives at most in a second when nothing else is said, in bytes.
const RATE: u64 = 64 << 20;
/// The part of the time in which a backup of a server works, if no rate is named, in percent.
const SHARE_PERCENT: u32 = 10;
/// Microseconds from 1970 to 2000.
const EPOCH_2000_US: i64 = 946_684_800_000_000;

/// What is backed up.
#[derive(Debug, PartialEq, Eq)]
pub enum From {
    /// A server; none: the default.
    Server(Option<String>),
    /// A directory at rest.
    Data(PathBuf),
}

/// What was asked for.
#[derive(Debug, PartialEq, Eq)]
pub enum Command {
    /// Take a backup.
    Take {
        /// Where to.
        target: String,
        /// Of what.
        from: From,
        /// Only what changed.
        incremental: bool,
        /// Go on with what was broken off.
        resume: bool,
        /// Bytes in a second; 0: no limit.
        rate: u64,
        /// The most of the time in which it works, in percent; 0: no limit.
        share: u32,
    },
    /// List backups.
    List {
        /// Where.
        target: String,
    },
    /// Verify backups.
    Verify {
        /// Where.
        target: String,
        /// Restore and check too.
        open_it: bool,
    },
    /// Remove backups.
    Expire {
        /// Where.
        target: String,
        /// What stays.
        keep: Keep,
    },
    /// Restore.
    Restore {
        /// Where from.
        source: String,
        /// Where to.
        dir: PathBuf,
        /// To which moment.
        goal: Goal,
        /// Along which history.
        epoch: Option<u32>,
    },
    /// Show what can be restored.
    Histories {
        /// Where.
        source: String,
    },
}

/// Reads the arguments of `backup`; none: help was asked for.
///
/// # Errors
/// What can't be understood.
pub fn parse_backup(mut parser: lexopt::Parser) -> Result<Option<Command>, lexopt::Error> {
    let (mut words, mut server, mut data) = (Vec::new(), None, None);
    let (mut incremental, mut resume, mut open_it, mut rate, mut keep) = (false, false, false, None, None);
    while let Some(argument) = parser.next()? {
        match argument {
            Short('h') | Long("help") => return Ok(None),
            Long("server") => server = Some(parser.value()?.string()?),
            Long("data") => data = Some(PathBuf::from(parser.value()?)),
            Long("incremental") => incremental = true,
            Long("resume") => resume = true,
            Long("open") => open_it = true,
            Long("rate") => rate = Some(bytes(&parser.value()?.string()?)?),
            Long("keep") => keep = Some(Keep::parse(&parser.value()?.string()?).map_err(|error| error.to_string())?),
            Value(word) => words.push(word.string()?),
            other => return Err(other.unexpected()),
        }
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let taking = server.is_some() || data.is_some() || incremental || resume || rate.is_some();
    if incremental && resume {
        return Err("backup --resume continues the backup that was begun: leave out --incremental".into());
    }
    Ok(Some(match (words.as_slice(), taking, open_it, keep) {
        (["list", target], false, false, None) => Command::List { target: (*target).to_owned() },
        (["verify", target], false, _, None) => Command::Verify { target: (*target).to_owned(), open_it },
        (["expire", target], false, false, Some(keep)) => Command::Expire { target: (*target).to_owned(), keep },
        (["expire", _], false, false, None) => {
            return Err("backup expire needs --keep, for example --keep 7d,4w".into());
        }
        (["list" | "verify" | "expire"], ..) => return Err("it needs a target".into()),
        ([target], _, false, None) => {
            let from = match (server, data) {
                (Some(_), Some(_)) => return Err("backup takes one --server URL or one --data DIR".into()),
                (server, None) => From::Server(server),
                (None, Some(dir)) => From::Data(dir),
            };
            // A rate that is named applies; without one a server at work is spared.
            let share = if rate.is_none() && matches!(from, From::Server(_)) { SHARE_PERCENT } else { 0 };
            let rate = rate.unwrap_or(RATE);
            Command::Take { target: (*target).to_owned(), from, incremental, resume, rate, share }
        }
        ([], ..) => return Err("backup needs a target".into()),
        _ => return Err("these arguments of backup do not belong together".into()),
    }))
}

/// Reads the arguments of `restore`; none: help was asked for.
///
/// # Errors
/// What can't be understood.
pub fn parse_restore(mut parser: lexopt::Parser) -> Result<Option<Command>, lexopt::Error> {
    let (mut words, mut goal, mut epoch, mut list) = (Vec::new(), None, None, false);
    while let Some(argument) = parser.next()? {
        let one = match argument {
            Short('h') | Long("help") => return Ok(None),
            Long("list") => {
                list = true;
                continue;
            }
            Long("epoch") => {
                epoch = Some(parser.value()?.parse()?);
                continue;
            }
            Value(word) => {
                words.push(word.string()?);
                continue;
            }
            Long("to") => Goal::Time(time(&parser.value()?.string()?)?),
            Long("to-lsn") => Goal::Lsn(Lsn(parser.value()?.parse()?)),
            Long("to-name") => Goal::Name(parser.value()?.string()?),
            Long("backup") => Goal::Backup(parser.value()?.string()?),
            other => return Err(other.unexpected()),
        };
        if goal.replace(one).is_some() {
            return Err("restore takes only one of --to, --to-lsn, --to-name and --backup".into());
        }
    }
    Ok(Some(match (words.as_slice(), list) {
        ([source], true) if goal.is_none() && epoch.is_none() => Command::Histories { source: source.clone() },
        ([source, dir], false) => {
            Command::Restore { source: source.clone(), dir: PathBuf::from(dir), goal: goal.unwrap_or(Goal::End), epoch }
        }
        _ => return Err("restore needs a source and a directory, or --list and a source".into()),
    }))
}

/// A moment as in SQL; without a zone it is one of UTC, as times are shown.
fn time(text: &str) -> Result<i64, String> {
    let now = wall_us() - EPOCH_2000_US;
    let parsed = parse_timestamptz(text, &Format::default(), now).map_err(|error| error.message().to_owned())?;
    Ok(parsed + EPOCH_2000_US)
}

fn bytes(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "" | "B" => Some(1),
        "kB" => Some(1u64 << 10),
        "MB" => Some(1 << 20),
        "GB" => Some(1 << 30),
        _ => None,
    };
    let number = unit.and_then(|unit| digits.trim().parse::<u64>().ok()?.checked_mul(unit));
    number.ok_or_else(|| format!("expected bytes, kB, MB or GB, found {text}"))
}
