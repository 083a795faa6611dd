//! SQL sessions in a simulation: virtual time, a simulated disk, tasks for clients.

#![allow(dead_code, reason = "each test uses its part")]

use std::path::Path;
use std::sync::Arc;

use clearway_base::testkit;
use clearway_base::vfs::Vfs;
use clearway_base::vfs::sim::SimDisk;
use clearway_base::waits::SessionStats;
use clearway_engine::db::{Db, DbOptions};
use clearway_sql::SqlError;
use clearway_sql::session::client::{Client, ClientFuture, Column, CopyFormat, CopyIn};
use clearway_sql::session::{Backend, Backends, Session, SessionStart};

/// Keeps the first column of every row.
#[derive(Default)]
pub struct Values(pub Vec<String>);

impl Client for Values {
    fn row_description(&mut self, _: &[Column<'_>]) {}
    fn no_data(&mut self) {}
    fn parameter_description(&mut self, _: &[u32]) {}
    fn row(&mut self, _: usize, write: &mut dyn FnMut(usize, &mut Vec<u8>) -> bool) {
        let mut bytes = Vec::new();
        write(0, &mut bytes);
        self.0.push(String::from_utf8_lossy(&bytes).into_owned());
    }
    fn command_complete(&mut self, _: &str) {}
    fn empty_query(&mut self) {}
    fn portal_suspended(&mut self) {}
    fn notice(&mut self, _: &'static str, _: &SqlError) {}
    fn parameter_status(&mut self, _: &str, _: &str) {}
    fn copy_out(&mut self, _: CopyFormat) {}
    fn copy_data(&mut self, _: &[u8]) {}
    fn copy_out_done(&mut self) {}
    fn copy_in(&mut self, _: CopyFormat) {}
    fn copy_next(&mut self) -> ClientFuture<'_, CopyIn> {
        Box::pin(async { Ok(CopyIn::Done) })
    }
    fn is_full(&self) -> bool {
        false
    }
    fn drain(&mut self) -> ClientFuture<'_, ()> {
        Box::pin(async { Ok(()) })
    }
}

/// A new database on a simulated disk; its background runs in the simulation.
pub async fn open(disk: &SimDisk) -> Arc<Db> {
    let dir = Path::new("/db");
    disk.create_dir(dir).await.expect("a directory");
    disk.sync_dir(Path::new("/")).await.expect("a durable name");
    let mut options = DbOptions::new(Arc::new(disk.clone()), dir);
    options.store.wal.caller_flushes = false;
    // Fewer frames than pages, so that readers wait for pages, too.
    options.store.pool.frames = 96;
    Db::open(options, |name, task| {
        testkit::spawn(name, task);
    })
    .await
    .expect("a database")
}

/// A client.
pub struct Connection {
    pub session: Session,
    pub backend: Arc<Backend>,
}

pub async fn connect(db: &Arc<Db>, backends: &Arc<Backends>) -> Connection {
    let listed = backends.list(SessionStats::new("client"), 1, Default::default());
    let backend = listed.backend().clone();
    // The list outlives the test.
    std::mem::forget(listed);
    let start = SessionStart {
        backend: backend.clone(),
        backends: backends.clone(),
        database: "postgres".to_owned(),
        user: "postgres".to_owned(),
        options: Vec::new(),
    };
    Connection { session: Session::new(db, start).await.expect("a session"), backend }
}

impl Connection {
    /// The first columns of the rows.
    pub async fn run(&mut self, sql: &str) -> Result<Vec<String>, SqlError> {
        let mut values = Values::default();
        self.session.simple(sql, &mut values).await?;
        Ok(values.0)
    }

    /// The first column of the last row.
    pub async fn value(&mut self, sql: &str) -> String {
        self.run(sql).await.unwrap_or_else(|e| panic!("{sql}: {e:?}")).pop().unwrap_or_default()
    }

    /// The SQLSTATE of what fails.
    pub async fn code(&mut self, sql: &str) -> String {
        self.run(sql).await.map_or_else(|e| e.code().to_string(), |rows| panic!("{sql}: {rows:?}"))
    }
}
