//! The watched server: connections to it, and what it calls things.

use crate::options::WatchError;
use clearway_base::sync::Mutex;
use std::time::Duration;
use tokio_postgres::config::Host;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Config, NoTls, Row};

/// What a query of the console may take at most.
const STATEMENT_TIMEOUT: &str = "5s";
/// What the console's sessions call themselves; its tables leave them out.
pub(crate) const APPLICATION: &str = "clearway watch";
/// After a login that was refused.
const REFUSED_PAUSE: Duration = Duration::from_secs(60);
/// Between two attempts to connect, at first and at most.
const PAUSE: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(10));

/// What kind of server answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Clearway,
    PostgreSql,
}

/// The watched server.
pub(crate) struct Source {
    /// The console's own login.
    config: Config,
    /// The same without its password.
    bare: Config,
    seen: Mutex<Seen>,
}

/// What is known of the server.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    /// None before the first connection.
    pub(crate) kind: Option<Kind>,
    pub(crate) version: String,
    /// Why there is no connection.
    pub(crate) error: Option<String>,
    pub(crate) connected: bool,
}

impl Source {
    /// A server by its URL or its `name=value` pairs; the password is taken where these have none.
    pub(crate) fn of(server: &str, password: Option<&str>) -> Result<Source, WatchError> {
        let mut config: Config = server.parse().map_err(WatchError::Url)?;
        config.application_name(APPLICATION).connect_timeout(Duration::from_secs(5));
        // CON-1
        let session = format!("-c default_transaction_read_only=on -c statement_timeout={STATEMENT_TIMEOUT}");
        let given = config.get_options().map(|given| format!("{given} ")).unwrap_or_default();
        config.options(format!("{given}{session}"));
        let bare = config.clone();
        if let (None, Some(password)) = (config.get_password(), password) {
            config.password(password);
        }
        Ok(Source { config, bare, seen: Mutex::new("console/source", Seen::default()) })
    }

    /// The console's own login.
    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    /// Server and role without a password, unless the URL itself has one.
    pub(crate) fn bare(&self) -> &Config {
        &self.bare
    }

    /// Host and port, without the password.
    pub(crate) fn place(&self) -> String {
        let host = match self.config.get_hosts().first() {
            Some(Host::Tcp(name)) => name.clone(),
            Some(Host::Unix(path)) => path.display().to_string(),
            None => "localhost".to_owned(),
        };
        format!("{host}:{}", self.config.get_ports().first().copied().unwrap_or(5432))
    }

    pub(crate) fn seen(&self) -> Seen {
        self.seen.lock().clone()
    }

    /// One attempt, with a login.
    pub(crate) async fn connect_by(config: &Config) -> Result<Client, tokio_postgres::Error> {
        let (client, connection) = config.connect(NoTls).await?;
        // It ends with the client; why is what the client's next call says.
        tokio::spawn(async move { drop(connection.await) });
        Ok(client)
    }

    /// A connection, however long that takes; says what is in the way meanwhile.
    pub(crate) async fn attach(&self) -> (Client, Kind) {
        let mut pause = PAUSE.0;
        loop {
            let error = match Source::connect_by(&self.config).await {
                Ok(client) => match version_of(&client).await {
                    Ok((kind, version)) => {
                        *self.seen.lock() = Seen { kind: Some(kind), version, error: None, connected: true };
                        return (client, kind);
                    }
                    Err(error) => error,
                },
                Err(error) => error,
            };
            self.lost(&error);
            // Each wrong password makes the next login from this machine wait longer.
            let is_refused = error.code().is_some_and(|code| code.code().starts_with("28"));
            pause = if is_refused { REFUSED_PAUSE } else { pause };
            clearway_base::sync::sleep(pause).await;
            pause = (pause * 2).min(PAUSE.1);
        }
    }

    /// The connection has answered.
    pub(crate) fn answers(&self) {
        let mut seen = self.seen.lock();
        (seen.connected, seen.error) = (true, None);
    }

    /// The connection does not answer any more.
    pub(crate) fn lost(&self, error: &tokio_postgres::Error) {
        let mut seen = self.seen.lock();
        seen.connected = false;
        seen.error = Some(told(error));
    }
}

/// An error with its reason: the library's own text names only the stage.
pub(crate) fn told(error: &tokio_postgres::Error) -> String {
    match (error.as_db_error(), std::error::Error::source(error)) {
        (Some(db), _) => format!("{} (SQLSTATE {})", db.message(), db.code().code()),
        (None, Some(reason)) => format!("{error}: {reason}"),
        (None, None) => error.to_string(),
    }
}

pub(crate) async fn version_of(client: &Client) -> Result<(Kind, String), tokio_postgres::Error> {
    const NO_PARAMETERS: &[&(dyn ToSql + Sync)] = &[];
    let row: Row = client.query_one("select version()", NO_PARAMETERS).await?;
    let version: String = row.get(0);
    let kind = if version.contains("Clearway") { Kind::Clearway } else { Kind::PostgreSql };
    Ok((kind, version))
}
