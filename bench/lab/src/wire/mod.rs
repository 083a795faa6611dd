//! Clients of servers: one interface over two protocols, so that the same code drives every server.
//!
//! # Structure
//! ```text
//! Address      where a server is and which protocol it speaks
//! with_client  a connection for as long as some work lasts
//! Client       prepare, execute, command, ask
//!   postgres   tokio-postgres
//!   mysql      the crate clearway-mysql
//! ```
//! Statements are written with `$1`, `$2`, ...; for MySQL's protocol they are rewritten with question marks.

use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{NoTls, SimpleQueryMessage};

pub use clearway_mysql::MySqlAddress;
use clearway_mysql::{Connection, MySqlError};

/// Where a server is.
#[derive(Clone, Debug)]
pub enum Address {
    /// It speaks PostgreSQL's protocol.
    Postgres {
        /// How to connect.
        config: Box<tokio_postgres::Config>,
        /// Statements are not prepared under a name: a pool that lends a connection for one transaction loses names.
        unnamed: bool,
    },
    /// It speaks MySQL's protocol.
    MySql(MySqlAddress),
}

impl Address {
    /// The same server for another role. By MySQL's protocol the role stays.
    #[must_use]
    pub fn of_role(&self, role: &str) -> Address {
        let mut address = self.clone();
        if let Address::Postgres { config, .. } = &mut address {
            config.user(role);
        }
        address
    }
}

/// What went wrong with a statement or a connection.
#[derive(Clone, Debug)]
pub struct WireError {
    /// The server's SQLSTATE; None where the connection is lost.
    pub code: Option<String>,
    /// In words.
    pub text: String,
}

impl std::fmt::Display for WireError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.code {
            Some(code) => write!(f, "{} ({code})", self.text),
            None => f.write_str(&self.text),
        }
    }
}

impl WireError {
    fn lost(text: impl Into<String>) -> Self {
        Self { code: None, text: text.into() }
    }
}

impl From<tokio_postgres::Error> for WireError {
    fn from(error: tokio_postgres::Error) -> Self {
        match error.as_db_error() {
            Some(said) => Self { code: Some(said.code().code().to_owned()), text: said.message().to_owned() },
            None => {
                let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
                Self::lost(format!("{error}{cause}"))
            }
        }
    }
}

impl From<MySqlError> for WireError {
    fn from(error: MySqlError) -> Self {
        Self { code: error.code, text: error.text }
    }
}

/// A connection.
pub enum Client {
    /// PostgreSQL's protocol.
    Postgres {
        /// The driver's half of it.
        client: tokio_postgres::Client,
        /// See [`Address::Postgres`].
        unnamed: bool,
    },
    /// MySQL's protocol.
    MySql(Box<Connection>),
}

/// A statement that is ready to run.
pub enum Statement {
    /// Prepared under a name.
    Postgres(tokio_postgres::Statement),
    /// Sent with its text each time, in one round trip.
    Unnamed(String, usize),
    /// Prepared; which argument each question mark is.
    MySql(u32, Vec<usize>),
}

/// Connects, works, and takes its leave. Connection and work are one task: a round trip costs no switch between tasks.
///
/// # Errors
/// No connection, a lost one, or what the work returns.
pub async fn with_client<T>(
    address: &Address,
    work: impl AsyncFnOnce(Client) -> Result<T, WireError>,
) -> Result<T, WireError> {
    match address {
        Address::MySql(address) => work(Client::MySql(Box::new(Connection::open(address).await?))).await,
        Address::Postgres { config, unnamed } => {
            let (client, connection) = config.connect(NoTls).await?;
            tokio::pin!(connection);
            let work = work(Client::Postgres { client, unnamed: *unnamed });
            tokio::select! {
                biased;
                ended = work => {
                    // The client is gone: the connection takes its leave of the server.
                    let _ = connection.await;
                    ended
                }
                lost = &mut connection => match lost {
                    Ok(()) => Err(WireError::lost("connection closed")),
                    Err(error) => Err(error.into()),
                }
            }
        }
    }
}

impl Client {
    /// Prepares a statement whose arguments are integers.
    ///
    /// # Errors
    /// What the server says.
    pub async fn prepare(&mut self, sql: &str, arguments: usize) -> Result<Statement, WireError> {
        match self {
            Self::Postgres { unnamed: true, .. } => Ok(Statement::Unnamed(sql.to_owned(), arguments)),
            Self::Postgres { client, .. } => {
                Ok(Statement::Postgres(client.prepare_typed(sql, &vec![Type::INT4; arguments]).await?))
            }
            Self::MySql(connection) => {
                let (sql, order) = question_marks(sql);
                Ok(Statement::MySql(connection.prepare(&sql).await?, order))
            }
        }
    }

    /// Runs a prepared statement and reads its rows.
    ///
    /// # Errors
    /// What the server says; a statement of another protocol.
    pub async fn execute(&mut self, statement: &Statement, arguments: &[i32]) -> Result<(), WireError> {
        match (self, statement) {
            (Self::Postgres { client, .. }, Statement::Postgres(statement)) => {
                let values: Vec<&(dyn ToSql + Sync)> = arguments.iter().map(|value| value as _).collect();
                client.query(statement, &values).await?;
            }
            (Self::Postgres { client, .. }, Statement::Unnamed(sql, count)) => {
                let values: Vec<(&(dyn ToSql + Sync), Type)> =
                    arguments.iter().take(*count).map(|value| (value as _, Type::INT4)).collect();
                client.query_typed(sql, &values).await?;
            }
            (Self::MySql(connection), Statement::MySql(id, order)) => {
                connection.execute(*id, order.iter().filter_map(|&at| arguments.get(at).copied())).await?;
            }
            _ => return Err(WireError::lost("a statement of another protocol")),
        }
        Ok(())
    }

    /// Runs a statement as text.
    ///
    /// # Errors
    /// What the server says.
    pub async fn command(&mut self, sql: &str) -> Result<(), WireError> {
        match self {
            Self::Postgres { client, .. } => Ok(client.batch_execute(sql).await?),
            Self::MySql(connection) => Ok(connection.query(sql).await.map(drop)?),
        }
    }

    /// The first column of a query's first row; None for no row or NULL.
    ///
    /// # Errors
    /// What the server says.
    pub async fn ask(&mut self, sql: &str) -> Result<Option<String>, WireError> {
        match self {
            Self::Postgres { client, .. } => {
                let answer = client.simple_query(sql).await?;
                Ok(answer.iter().find_map(|message| match message {
                    SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
                    _ => None,
                }))
            }
            Self::MySql(connection) => Ok(connection.query(sql).await?),
        }
    }
}

/// A statement with question marks, and which argument (from 0) each of them is.
fn question_marks(sql: &str) -> (String, Vec<usize>) {
    let (mut text, mut order) = (String::with_capacity(sql.len()), Vec::new());
    let mut rest = sql;
    while let Some(at) = rest.find('$') {
        let digits = rest[at + 1..].bytes().take_while(u8::is_ascii_digit).count();
        let number = rest[at + 1..at + 1 + digits].parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        text.push_str(&rest[..at]);
        match number {
            Some(number) => {
                text.push('?');
                order.push(number);
            }
            None => text.push_str(&rest[at..=at + digits]),
        }
        rest = &rest[at + 1 + digits..];
    }
    text.push_str(rest);
    (text, order)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_become_question_marks() {
        let rewritten = |sql| question_marks(sql);
        assert_eq!(rewritten("a = $1"), ("a = ?".to_owned(), vec![0]));
        assert_eq!(rewritten("($2 + 1, $1), ($12)"), ("(? + 1, ?), (?)".to_owned(), vec![1, 0, 11]));
        assert_eq!(rewritten("no $ here"), ("no $ here".to_owned(), vec![]));
    }
}
