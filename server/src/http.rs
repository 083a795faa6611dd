//! The console's options in the server's configuration. The `clearway` command runs the console beside the server, as a client of the
//! server: nothing in this crate speaks HTTP.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// What may be chosen about the console.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpConfig {
    /// Where it listens; none: there is no console.
    pub address: Option<SocketAddr>,
    /// The role with which the console samples the sessions.
    pub role: String,
    /// A file with that role's password.
    pub password_file: Option<PathBuf>,
    /// A file of queries whose results become metrics.
    pub queries: Option<PathBuf>,
    /// How often these queries run.
    pub interval: Duration,
}

impl Default for HttpConfig {
    fn default() -> Self {
        let interval = Duration::from_secs(60);
        Self { address: None, role: "postgres".to_owned(), password_file: None, queries: None, interval }
    }
}

impl HttpConfig {
    /// Takes one setting; else what it should be.
    pub(crate) fn set(&mut self, name: &str, value: &str) -> Result<(), &'static str> {
        let file = || Some(PathBuf::from(value)).filter(|path| !path.as_os_str().is_empty());
        match name {
            "http" if value.is_empty() => self.address = None,
            "http" => self.address = Some(value.parse().map_err(|_| "ADDRESS:PORT")?),
            "http_role" if value.is_empty() => return Err("a role"),
            "http_role" => self.role = value.to_owned(),
            "http_password_file" => self.password_file = file(),
            "http_queries" => self.queries = file(),
            _ => {
                let seconds = value.strip_suffix('s').unwrap_or(value).parse::<u64>().ok();
                let seconds = seconds.filter(|s| (1..=86_400).contains(s)).ok_or("seconds, 1 to 86400")?;
                self.interval = Duration::from_secs(seconds);
            }
        }
        Ok(())
    }
}
