//! The watched server: how to connect to it, and its product and version.

use crate::link::{Link, LinkError, Login};
use crate::options::WatchError;
use crate::processors::Processors;
use clearway_base::sync::Mutex;
use std::time::Duration;

/// After a login that was refused.
const REFUSED_PAUSE: Duration = Duration::from_secs(60);
/// Between two attempts to connect, at first and at most.
const PAUSE: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(10));

/// What kind of server answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Clearway,
    PostgreSql,
    /// 10.6 and later, with performance_schema = ON.
    MariaDb,
    /// 8.0; never tried.
    MySql,
}

impl Kind {
    /// By what the server answers to `version()`.
    fn of(login: &Login, version: &str) -> Kind {
        match login {
            Login::Postgres(..) if version.contains("Clearway") => Kind::Clearway,
            Login::Postgres(..) => Kind::PostgreSql,
            Login::MySql(..) if version.contains("MariaDB") => Kind::MariaDb,
            Login::MySql(..) => Kind::MySql,
        }
    }

    /// What the page calls it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Clearway => "clearway",
            Kind::PostgreSql => "postgresql",
            Kind::MariaDb => "mariadb",
            Kind::MySql => "mysql",
        }
    }
}

/// The watched server.
pub(crate) struct Source {
    /// The console's own login.
    login: Login,
    /// The same without its password, unless the URL itself has one.
    bare: Login,
    seen: Mutex<ServerFacts>,
    processors: Mutex<Processors>,
}

/// What is known of the server.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServerFacts {
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
        let (login, bare) = (Login::of(server, password)?, Login::of(server, None)?);
        let processors = Mutex::new("console/processors", Processors::Unknown("the server has not answered yet"));
        Ok(Source { login, bare, seen: Mutex::new("console/source", ServerFacts::default()), processors })
    }

    /// The console's own login.
    pub(crate) fn login(&self) -> &Login {
        &self.login
    }

    /// Server and role without a password, unless the URL itself has one.
    pub(crate) fn bare(&self) -> &Login {
        &self.bare
    }

    /// Host and port, without the password.
    pub(crate) fn place(&self) -> String {
        self.login.place()
    }

    pub(crate) fn seen(&self) -> ServerFacts {
        self.seen.lock().clone()
    }

    /// How many processors the server has.
    pub(crate) fn processors(&self) -> Processors {
        *self.processors.lock()
    }

    pub(crate) fn has_processors(&self, processors: Processors) {
        *self.processors.lock() = processors;
    }

    /// A connection, however long that takes; says what is in the way meanwhile.
    pub(crate) async fn attach(&self) -> (Link, Kind) {
        let mut pause = PAUSE.0;
        loop {
            let error = match self.try_attach().await {
                Ok((link, kind, version)) => {
                    *self.seen.lock() = ServerFacts { kind: Some(kind), version, error: None, connected: true };
                    return (link, kind);
                }
                Err(error) => error,
            };
            self.lost(&error);
            // Each wrong password makes the next login from this machine wait longer.
            let is_refused = error.code.is_some_and(|code| code.starts_with("28"));
            pause = if is_refused { REFUSED_PAUSE } else { pause };
            clearway_base::sync::sleep(pause).await;
            pause = (pause * 2).min(PAUSE.1);
        }
    }

    /// One attempt.
    pub(crate) async fn try_attach(&self) -> Result<(Link, Kind, String), LinkError> {
        let mut link = self.login.connect().await?;
        let version = link.field("select version()").await?.unwrap_or_default();
        let kind = Kind::of(&self.login, &version);
        let shown = if kind == Kind::MySql { format!("MySQL {version}") } else { version };
        Ok((link, kind, shown))
    }

    /// The connection has answered.
    pub(crate) fn answers(&self) {
        let mut seen = self.seen.lock();
        (seen.connected, seen.error) = (true, None);
    }

    /// The connection does not answer any more.
    pub(crate) fn lost(&self, error: &LinkError) {
        let mut seen = self.seen.lock();
        seen.connected = false;
        seen.error = Some(error.text.clone());
    }
}
