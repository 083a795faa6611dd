//! The kinds of servers, and whether the lab starts a server or gets its URL.

use crate::LabError;
use crate::wire::{Address, MySqlAddress};

/// Which server, and where it comes from.
#[derive(Clone, Debug)]
pub enum Kind {
    /// Clearway: `clearway serve`.
    Clearway,
    /// PostgreSQL, as installed.
    Postgres,
    /// PostgreSQL behind PgBouncer, which lends its connections for one transaction at a time.
    PgBouncer,
    /// MariaDB, as installed.
    MariaDb(MariaDbMode),
    /// The server that only speaks the protocol: a limit, no peer.
    WireOnly,
    /// A server that runs already: its settings are its owner's.
    Url {
        /// What the reports call it.
        name: String,
        /// Where it is.
        address: Address,
    },
}

/// What of MariaDB differs from its defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MariaDbMode {
    /// A thread per connection, its default.
    Threads,
    /// `thread_handling = pool-of-threads`.
    Pool,
    /// A thread per connection, `innodb_deadlock_detect = off`.
    NoDetection,
}

impl MariaDbMode {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Threads => "mariadb",
            Self::Pool => "mariadb-pool",
            Self::NoDetection => "mariadb-nodetect",
        }
    }
}

/// What `--against` may hold.
pub const KNOWN: &str = "clearway, postgres, pgbouncer, mariadb, mariadb-pool, mariadb-nodetect, all, \
    NAME=postgresql://USER@HOST:PORT/DATABASE, NAME=mysql://USER:PASSWORD@HOST:PORT/DATABASE";
/// What `all` stands for.
const ALL: [&str; 6] = ["clearway", "postgres", "pgbouncer", "mariadb", "mariadb-pool", "mariadb-nodetect"];

impl Kind {
    /// From what `--against` holds.
    ///
    /// # Errors
    /// An unknown name, or a URL that can't be read.
    pub fn parse_list(texts: &[String]) -> Result<Vec<Self>, LabError> {
        let mut kinds = Vec::new();
        for text in texts {
            let names = if text == "all" { ALL.map(str::to_owned).to_vec() } else { vec![text.clone()] };
            for name in names {
                kinds.push(Self::parse(&name)?);
            }
        }
        Ok(kinds)
    }

    fn parse(text: &str) -> Result<Self, LabError> {
        let unknown = || LabError::Unknown { kind: "server", name: text.to_owned(), known: KNOWN.to_owned() };
        match text {
            "clearway" => return Ok(Self::Clearway),
            "postgres" | "postgresql" => return Ok(Self::Postgres),
            "pgbouncer" => return Ok(Self::PgBouncer),
            _ => {}
        }
        let modes = [MariaDbMode::Threads, MariaDbMode::Pool, MariaDbMode::NoDetection];
        if let Some(mode) = modes.into_iter().find(|mode| mode.name() == text) {
            return Ok(Self::MariaDb(mode));
        }
        let (name, url) = text.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or_else(unknown)?;
        let address = if url.starts_with("postgres") {
            let config = url.parse::<tokio_postgres::Config>().map_err(|_| unknown())?;
            Address::Postgres { config: Box::new(config), unnamed: false }
        } else {
            Address::MySql(MySqlAddress::parse(url).ok_or_else(unknown)?)
        };
        Ok(Self::Url { name: name.to_owned(), address })
    }

    /// What the reports call it.
    pub fn name(&self) -> &str {
        match self {
            Self::Clearway => "clearway",
            Self::Postgres => "postgres",
            Self::PgBouncer => "pgbouncer",
            Self::MariaDb(mode) => mode.name(),
            Self::WireOnly => "wire only",
            Self::Url { name, .. } => name,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(list: &[&str]) -> Result<Vec<String>, LabError> {
        let texts: Vec<String> = list.iter().map(|text| (*text).to_owned()).collect();
        Ok(Kind::parse_list(&texts)?.iter().map(|kind| kind.name().to_owned()).collect())
    }

    #[test]
    fn servers_by_name() {
        assert_eq!(names(&["clearway", "postgresql"]).ok(), Some(vec!["clearway".into(), "postgres".into()]));
        assert_eq!(names(&["all"]).map(|all| all.len()).ok(), Some(ALL.len()));
        let urls = ["mine=postgresql://me@localhost/db", "other=mysql://me@localhost/db"];
        assert_eq!(names(&urls).ok(), Some(vec!["mine".into(), "other".into()]));
        for bad in ["oracle", "=postgresql://x", "x=http://y", "", "x=mysql://y"] {
            assert!(matches!(names(&[bad]), Err(LabError::Unknown { .. })), "{bad}");
        }
    }
}
