//! A connection to the watched server, by PostgreSQL's protocol or by MySQL's: every query is a text, every answer a table of texts.

use crate::options::WatchError;
use crate::tls::{self, Mode, Tls};
use clearway_mysql::{Connection, MySqlAddress, MySqlError};
use std::time::Duration;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::{Client, Config, SimpleQueryMessage};

/// What a query of the console may take at most, in seconds.
const STATEMENT_TIMEOUT_S: u32 = 5;
/// What the console's sessions call themselves; its tables leave them out.
pub(crate) const APPLICATION: &str = "clearway watch";

/// Server, role and password.
#[derive(Clone, Debug)]
pub(crate) enum Login {
    Postgres(Box<Config>, Tls),
    MySql(MySqlAddress, Tls),
}

/// An answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Table {
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<Vec<Option<String>>>,
}

/// Why there is no answer.
#[derive(Clone, Debug)]
pub(crate) struct LinkError {
    /// In words, with the SQLSTATE where the server has said it.
    pub(crate) text: String,
    /// The server's SQLSTATE; none: the server has not answered.
    pub(crate) code: Option<String>,
}

impl From<tokio_postgres::Error> for LinkError {
    fn from(error: tokio_postgres::Error) -> Self {
        // The library's own text names only the stage.
        let text = match (error.as_db_error(), std::error::Error::source(&error)) {
            (Some(db), _) => format!("{} (SQLSTATE {})", db.message(), db.code().code()),
            (None, Some(reason)) => format!("{error}: {reason}"),
            (None, None) => error.to_string(),
        };
        LinkError { text, code: error.code().map(|code| code.code().to_owned()) }
    }
}

impl From<MySqlError> for LinkError {
    fn from(error: MySqlError) -> Self {
        LinkError { text: error.to_string(), code: error.code }
    }
}

impl Login {
    /// A server by its URL or its `name=value` pairs; the password is taken where these have none.
    pub(crate) fn of(server: &str, password: Option<&str>) -> Result<Login, WatchError> {
        if server.starts_with("mysql:") || server.starts_with("mariadb:") {
            let (server, tls) = tls::of_mysql(server)?;
            let mut address = MySqlAddress::parse(&server).ok_or(WatchError::MySqlUrl)?;
            if address.password.is_empty() {
                address.password = password.unwrap_or_default().to_owned();
            }
            APPLICATION.clone_into(&mut address.program);
            return Ok(Login::MySql(address, tls));
        }
        let (server, tls) = tls::of_postgres(server)?;
        let mut config: Config = server.parse().map_err(WatchError::Url)?;
        // CON-4; a socket of this machine has no TLS, as with psql.
        let is_here = config.get_hosts().iter().all(|host| matches!(host, Host::Unix(_))) && tls.mode == Mode::Prefer;
        config.ssl_mode(if is_here { SslMode::Disable } else { tls.ssl_mode() });
        config.application_name(APPLICATION).connect_timeout(Duration::from_secs(5));
        // CON-1
        let session = format!("-c default_transaction_read_only=on -c statement_timeout={STATEMENT_TIMEOUT_S}s");
        let given = config.get_options().map(|given| format!("{given} ")).unwrap_or_default();
        config.options(format!("{given}{session}"));
        if let (None, Some(password)) = (config.get_password(), password) {
            config.password(password);
        }
        Ok(Login::Postgres(Box::new(config), tls))
    }

    /// The same server with another role.
    pub(crate) fn of_role(&self, role: &str, password: &str) -> Login {
        match self {
            Login::Postgres(config, tls) => {
                let mut config = config.clone();
                config.user(role).password(password);
                Login::Postgres(config, tls.clone())
            }
            Login::MySql(address, tls) => {
                let (user, password) = (role.to_owned(), password.to_owned());
                Login::MySql(MySqlAddress { user, password, ..address.clone() }, tls.clone())
            }
        }
    }

    pub(crate) fn role(&self) -> &str {
        match self {
            Login::Postgres(config, _) => config.get_user().unwrap_or_default(),
            Login::MySql(address, _) => &address.user,
        }
    }

    /// Host and port, without the password.
    pub(crate) fn place(&self) -> String {
        let config = match self {
            Login::Postgres(config, _) => config,
            Login::MySql(address, _) => return format!("{}:{}", address.host, address.port),
        };
        let host = match config.get_hosts().first() {
            Some(Host::Tcp(name)) => name.clone(),
            Some(Host::Unix(path)) => path.display().to_string(),
            None => "localhost".to_owned(),
        };
        format!("{host}:{}", config.get_ports().first().copied().unwrap_or(5432))
    }

    /// A connection whose session changes nothing and gives no query more than its time (CON-1).
    pub(crate) async fn connect(&self) -> Result<Link, LinkError> {
        match self {
            Login::Postgres(config, tls) => {
                let (client, connection) = config.connect(tls.clone()).await?;
                // It ends with the client; why is what the client's next call says.
                tokio::spawn(async move { drop(connection.await) });
                Ok(Link::Postgres(client))
            }
            Login::MySql(address, tls) => {
                let mut connection = Connection::open_with(address, tls.upgrade()).await?;
                for sql in ["SET NAMES utf8mb4", "SET SESSION TRANSACTION READ ONLY"] {
                    connection.query(sql).await?;
                }
                // MariaDB's name of the limit, then MySQL's.
                if connection.query(&format!("SET SESSION max_statement_time = {STATEMENT_TIMEOUT_S}")).await.is_err() {
                    let milliseconds = STATEMENT_TIMEOUT_S * 1000;
                    connection.query(&format!("SET SESSION max_execution_time = {milliseconds}")).await?;
                }
                Ok(Link::MySql(Box::new(connection)))
            }
        }
    }
}

/// A connection.
pub(crate) enum Link {
    Postgres(Client),
    MySql(Box<Connection>),
}

impl Link {
    /// A statement's answer, with at most so many rows; more are read and dropped.
    pub(crate) async fn table(&mut self, sql: &str, rows_max: usize) -> Result<Table, LinkError> {
        let client = match self {
            Link::Postgres(client) => client,
            Link::MySql(connection) => {
                let (columns, rows) = connection.table(sql, rows_max).await?;
                return Ok(Table { columns, rows });
            }
        };
        let mut table = Table::default();
        for message in client.simple_query(sql).await? {
            match message {
                SimpleQueryMessage::RowDescription(named) => {
                    table.columns = named.iter().map(|column| column.name().to_owned()).collect();
                }
                SimpleQueryMessage::Row(row) if table.rows.len() < rows_max => {
                    table.rows.push((0..row.len()).map(|at| row.get(at).map(str::to_owned)).collect());
                }
                _ => {}
            }
        }
        Ok(table)
    }

    /// The texts of the first column, of what the server takes as one statement and no more: a text from the server, which a stranger may have written.
    pub(crate) async fn one_statement(&mut self, sql: &str) -> Result<Vec<String>, LinkError> {
        let client = match self {
            Link::Postgres(client) => client,
            Link::MySql(_) => {
                let rows = self.table(sql, usize::MAX).await?.rows;
                return Ok(rows.into_iter().filter_map(|row| row.into_iter().next().flatten()).collect());
            }
        };
        let rows = client.query(sql, &[]).await?;
        Ok(rows.iter().filter_map(|row| row.try_get::<_, String>(0).ok()).collect())
    }

    /// The first column of the first row.
    pub(crate) async fn field(&mut self, sql: &str) -> Result<Option<String>, LinkError> {
        let table = self.table(sql, 1).await?;
        Ok(table.rows.into_iter().next().and_then(|row| row.into_iter().next()).flatten())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_by_their_urls() {
        let login = Login::of("mysql://me@h:3307/mysql", Some("s")).expect("a URL");
        assert_eq!((login.place().as_str(), login.role()), ("h:3307", "me"));
        let Login::MySql(address, _) = login.of_role("other", "p") else { panic!("it stays MySQL's") };
        assert_eq!((address.user.as_str(), address.password.as_str(), address.port), ("other", "p", 3307));
        let Login::MySql(address, _) = login else { panic!("it is MySQL's") };
        assert_eq!(address.password, "s");
        assert!(matches!(Login::of("mysql://h", None), Err(WatchError::MySqlUrl)));
        let login = Login::of("postgresql://ann@db/x", Some("s")).expect("a URL");
        assert_eq!((login.place().as_str(), login.role()), ("db:5432", "ann"));
    }
}
