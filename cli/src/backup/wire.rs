//! A server as the source of a backup: sends requests through the SQL function `clearway_backup`.
//!
//! If the connection breaks, it is opened again and the request repeated: the server keeps what the backup needs for five minutes.

use clearway_backup::error::Result;
use clearway_backup::source::{Source, end_of};
use clearway_backup::{BackupError, clock};
use clearway_base::sync::sleep;
use clearway_base::waits::{Object, WaitEvent, in_wait, wall_us};
use clearway_storage::backup::{Request, Start};
use clearway_storage::ids::{Lsn, PageId};
use clearway_storage::seams::BoxFuture;
use std::time::Duration;
use tokio_postgres::{Client, Config, NoTls, Statement};

const DEFAULT_URL: &str = "postgresql://postgres@127.0.0.1:5433/clearway";
const REQUEST: &str = "SELECT clearway_backup($1)";
/// Pauses before the attempts to connect again, in milliseconds.
const PAUSES_MS: [u64; 7] = [100, 500, 1000, 2000, 4000, 8000, 16_000];

/// A connection to a server.
pub struct Server {
    config: Config,
    open: Option<(Client, Statement)>,
}

impl Server {
    /// Connects.
    ///
    /// # Errors
    /// In words.
    pub async fn connect(url: Option<&str>) -> std::result::Result<Server, String> {
        let url = url.unwrap_or(DEFAULT_URL);
        let mut config = url.parse::<Config>().map_err(|error| format!("{url}: {}", chain(&error)))?;
        if config.get_user().is_none() {
            config.user("postgres");
        }
        if let (None, Ok(password)) = (config.get_password(), std::env::var("PGPASSWORD")) {
            config.password(password);
        }
        config.application_name("clearway backup");
        let open = open(&config).await.map_err(|error| crate::sql::not_connected(&config, &error))?;
        Ok(Server { config, open: Some(open) })
    }

    async fn ask(&mut self, request: Request) -> Result<Vec<u8>> {
        let text = request.to_string();
        let mut pauses = PAUSES_MS.into_iter();
        loop {
            let failed = match &self.open {
                None => match open(&self.config).await {
                    Ok(open) => {
                        self.open = Some(open);
                        continue;
                    }
                    Err(error) => error,
                },
                Some((client, statement)) => match client.query_one(statement, &[&text]).await {
                    Ok(row) => return row.try_get(0).map_err(|error| BackupError::Source(chain(&error))),
                    // The server's own words: to ask again would not help.
                    Err(error) if error.as_db_error().is_some() && !client.is_closed() => {
                        return Err(BackupError::Source(chain(&error)));
                    }
                    Err(error) => error,
                },
            };
            self.open = None;
            let Some(pause) = pauses.next() else { return Err(BackupError::Source(chain(&failed))) };
            eprintln!("{}: {}; connecting again", clock::show(wall_us()), chain(&failed));
            in_wait(WaitEvent::RetryDelay, Object::NONE, sleep(Duration::from_millis(pause))).await;
        }
    }
}

async fn open(config: &Config) -> std::result::Result<(Client, Statement), tokio_postgres::Error> {
    let (client, connection) = config.connect(NoTls).await?;
    // Its end shows at the next request.
    tokio::spawn(connection);
    let statement = client.prepare(REQUEST).await?;
    Ok((client, statement))
}

/// An error and what caused it.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

impl Source for Server {
    fn begin(&mut self) -> BoxFuture<'_, Result<Start>> {
        Box::pin(async { Ok(Start::decode(&self.ask(Request::Begin).await?)?) })
    }

    fn pages(&mut self, lease: u64, first: PageId, count: u32, since: Lsn) -> BoxFuture<'_, Result<Vec<u8>>> {
        Box::pin(self.ask(Request::Pages(lease, first, count, since)))
    }

    fn end(&mut self, lease: u64) -> BoxFuture<'_, Result<(Lsn, i64)>> {
        Box::pin(async move { end_of(&self.ask(Request::End(lease)).await?) })
    }

    fn log(&mut self, lease: u64, from: Lsn, to: Lsn) -> BoxFuture<'_, Result<Vec<u8>>> {
        Box::pin(self.ask(Request::Log(lease, from, to)))
    }

    fn leave(&mut self, lease: u64) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move { self.ask(Request::Leave(lease)).await.map(drop) })
    }
}
