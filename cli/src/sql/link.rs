//! The connection to a server: connects, runs one statement at a time, and cancels the statement on Ctrl-C.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use clearway_base::sync::{Mutex, sleep, timeout};
use tokio::net::{TcpStream, UnixStream};
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio_postgres::config::Host;
use tokio_postgres::error::{DbError, Severity};
use tokio_postgres::{AsyncMessage, Client, Config, NoTls, SimpleQueryMessage};

use super::place::{chain, text_of};
use super::table::Table;
use super::tap::{ServerState, Socket, Tap};

/// PostgreSQL's port, which a URL means that names none.
const PORT: u16 = 5432;
/// The most that the key Tab waits for the server.
const TAB_WAIT: Duration = Duration::from_secs(2);

/// What came of a statement.
#[derive(Debug, Default)]
pub struct Answer {
    /// Its rows, of a statement that returns rows.
    pub table: Option<Table>,
    /// The tag of the command.
    pub tag: String,
}

/// A connection to a server.
pub struct Link {
    client: Client,
    config: Config,
    said: Arc<Mutex<ServerState>>,
    /// The server has said that it ends the connection, which it does a moment later.
    is_ended: Cell<bool>,
}

/// Reads a URL or `name=value` pairs; what is not said comes from the environment, or is as of a new server.
///
/// # Errors
/// They can't be read.
pub fn config(url: &str) -> Result<Config, String> {
    let mut config = url.parse::<Config>().map_err(|error| format!("{url}: {}", chain(&error)))?;
    if config.get_user().is_none() {
        config.user("postgres");
    }
    if let (None, Ok(password)) = (config.get_password(), std::env::var("PGPASSWORD")) {
        config.password(password);
    }
    config.application_name("clearway sql");
    Ok(config)
}

impl Link {
    /// Connects; Ctrl-C gives up.
    ///
    /// # Errors
    /// No connection.
    pub fn connect(runtime: &Runtime, config: Config) -> Result<Self, String> {
        let said = Arc::new(Mutex::new("cli/sql/said", ServerState::default()));
        let connecting = async {
            let stream = Tap::new(socket(&config).await?, Arc::clone(&said));
            let (client, mut connection) = config.connect_raw(stream, NoTls).await.map_err(|error| chain(&error))?;
            tokio::spawn(async move {
                while let Some(message) = std::future::poll_fn(|cx| connection.poll_message(cx)).await {
                    match message {
                        Ok(AsyncMessage::Notice(notice)) => eprintln!("{}:  {}", notice.severity(), notice.message()),
                        Ok(_) => {}
                        // The next statement tells.
                        Err(_) => return,
                    }
                }
            });
            Ok::<_, String>(client)
        };
        let client = runtime.block_on(async {
            let mut interrupt = signal(SignalKind::interrupt()).map_err(|error| error.to_string())?;
            tokio::select! {
                client = connecting => client,
                _ = interrupt.recv() => Err("given up".to_owned()),
            }
        })?;
        Ok(Self { client, config, said, is_ended: Cell::new(false) })
    }

    /// How it was connected.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The name of the database.
    pub fn database(&self) -> &str {
        self.config.get_dbname().or(self.config.get_user()).unwrap_or("postgres")
    }

    /// The transaction as psql's prompt shows it: nothing, `*` open, `!` failed.
    pub fn transaction(&self) -> &'static str {
        match self.said.lock().transaction {
            b'T' => "*",
            b'E' => "!",
            _ => "",
        }
    }

    /// Whether the server has gone away.
    pub fn is_lost(&self) -> bool {
        self.is_ended.get() || self.client.is_closed()
    }

    /// Runs one statement; Ctrl-C cancels it.
    ///
    /// # Errors
    /// What the server says, with the place in the statement.
    pub fn ask(&self, runtime: &Runtime, statement: &str) -> Result<Answer, String> {
        self.said.lock().tag.clear();
        let messages = runtime.block_on(async {
            let mut interrupt = signal(SignalKind::interrupt()).map_err(|error| error.to_string())?;
            let query = self.client.simple_query(statement);
            tokio::pin!(query);
            loop {
                tokio::select! {
                    done = &mut query => return done.map_err(|error| {
                        self.is_ended.set(self.is_ended.get() || ends_connection(&error));
                        said_of(statement, &error)
                    }),
                    _ = interrupt.recv() => self.cancel().await,
                }
            }
        })?;
        let mut answer = Answer { table: None, tag: self.said.lock().tag.clone() };
        for message in messages {
            match message {
                SimpleQueryMessage::RowDescription(columns) => {
                    let columns = columns.iter().map(|column| column.name().to_owned()).collect();
                    answer.table = Some(Table { columns, rows: Vec::new() });
                }
                SimpleQueryMessage::Row(row) => {
                    let cells = (0..row.len()).map(|at| row.get(at).map(str::to_owned)).collect();
                    answer.table.get_or_insert_default().rows.push(cells);
                }
                _ => {}
            }
        }
        Ok(answer)
    }

    /// The first column of a query that the key Tab asks. None where the transaction has failed or the server takes long.
    pub fn names(&self, runtime: &Runtime, query: &str) -> Vec<String> {
        if self.said.lock().transaction == b'E' {
            return Vec::new();
        }
        let rows = runtime.block_on(async {
            let rows = timeout(TAB_WAIT, self.client.simple_query(query)).await;
            if rows.is_err() {
                self.cancel().await;
            }
            rows
        });
        let rows = rows.ok().and_then(Result::ok).unwrap_or_default();
        let name = |message: &SimpleQueryMessage| match message {
            SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
            _ => None,
        };
        rows.iter().filter_map(name).collect()
    }

    /// Asks the server to cancel. If it can't be told, the statement goes on, and so does the wait for it.
    async fn cancel(&self) {
        if let Ok(socket) = socket(&self.config).await {
            let _ = self.client.cancel_token().cancel_query_raw(socket, NoTls).await;
        }
    }
}

/// Waits; false: Ctrl-C ended the wait.
///
/// # Errors
/// The operating system gives no signals.
pub fn pause(runtime: &Runtime, time: Duration) -> Result<bool, String> {
    runtime.block_on(async {
        let mut interrupt = signal(SignalKind::interrupt()).map_err(|error| error.to_string())?;
        tokio::select! {
            () = sleep(time) => Ok(true),
            _ = interrupt.recv() => Ok(false),
        }
    })
}

/// A socket to the first of the servers that a URL names which takes a connection.
async fn socket(config: &Config) -> Result<Box<dyn Socket>, String> {
    let mut failed = "no server is named".to_owned();
    for (at, host) in config.get_hosts().iter().enumerate() {
        // One port stands for all.
        let port = config.get_ports().get(at).or(config.get_ports().first()).copied().unwrap_or(PORT);
        let (place, socket) = match host {
            Host::Tcp(name) => {
                let stream = TcpStream::connect((name.as_str(), port)).await;
                let stream = stream.and_then(|stream| stream.set_nodelay(true).map(|()| stream));
                (format!("{name}:{port}"), stream.map(|stream| Box::new(stream) as Box<dyn Socket>))
            }
            Host::Unix(directory) => {
                let path = directory.join(format!(".s.PGSQL.{port}"));
                let stream = UnixStream::connect(&path).await;
                (path.display().to_string(), stream.map(|stream| Box::new(stream) as Box<dyn Socket>))
            }
        };
        match socket {
            Ok(socket) => return Ok(socket),
            Err(error) => failed = format!("{place}: {error}"),
        }
    }
    Err(failed)
}

fn ends_connection(error: &tokio_postgres::Error) -> bool {
    let severity = error.as_db_error().and_then(DbError::parsed_severity);
    matches!(severity, Some(Severity::Fatal | Severity::Panic))
}

fn said_of(statement: &str, error: &tokio_postgres::Error) -> String {
    error.as_db_error().map_or_else(|| chain(error), |said| text_of(Some(statement), said))
}
