//! SQL sessions in a simulation: virtual time, a simulated disk, tasks for clients.

#![allow(dead_code, reason = "each test uses its part")]

use std::future::Future;
use std::path::Path;
use std::sync::Arc;

use clearway_base::testkit::{self, Sim, Stop};
use clearway_base::vfs::Vfs;
use clearway_base::vfs::sim::SimDisk;
use clearway_base::waits::SessionStats;
use clearway_engine::db::{Db, DbOptions};
use clearway_sql::SqlError;
use clearway_sql::session::client::Client;
use clearway_sql::session::{Backend, Backends, Session, SessionStart};

/// Keeps the first column of every row.
#[derive(Default)]
pub struct Values(pub Vec<String>);

impl Client for Values {
    fn row(&mut self, _: usize, write: &mut dyn FnMut(usize, &mut Vec<u8>) -> bool) {
        let mut bytes = Vec::new();
        write(0, &mut bytes);
        self.0.push(String::from_utf8_lossy(&bytes).into_owned());
    }
}

/// Keeps the tag of the command.
#[derive(Default)]
pub struct Tag(pub String);

impl Client for Tag {
    fn row(&mut self, _: usize, _: &mut dyn FnMut(usize, &mut Vec<u8>) -> bool) {}
    fn command_complete(&mut self, tag: &str) {
        tag.clone_into(&mut self.0);
    }
}

/// Plays a scene in a simulation to its end.
pub fn simulate<F: Future<Output = ()> + Send + 'static>(seed: u64, scene: impl FnOnce() -> F + Send + 'static) {
    play(seed, scene).expect("the scene ends");
}

/// Plays a scene whose last act switches the disk off.
pub fn simulate_a_crash<F: Future<Output = ()> + Send + 'static>(
    seed: u64,
    scene: impl FnOnce() -> F + Send + 'static,
) {
    assert_eq!(play(seed, scene), Err(Stop::Crashed));
}

fn play<F: Future<Output = ()> + Send + 'static>(
    seed: u64,
    scene: impl FnOnce() -> F + Send + 'static,
) -> Result<(), Stop> {
    // Unoptimized futures of whole statements are large.
    let stage = std::thread::Builder::new().stack_size(64 << 20);
    let play = move || Sim::new(seed).block_on(async move { scene().await });
    match stage.spawn(play).expect("a thread").join() {
        Ok(ended) => ended,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// The database on a simulated disk, a new one where there is none; its background runs in the simulation.
pub async fn open(disk: &SimDisk) -> Arc<Db> {
    let dir = Path::new("/db");
    // It is there at the second opening.
    let _ = disk.create_dir(dir).await;
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

    /// The plan of a statement, as EXPLAIN shows it without costs.
    pub async fn plan(&mut self, sql: &str) -> String {
        self.explained("COSTS off", sql).await
    }

    /// What EXPLAIN with these options shows of a statement.
    pub async fn explained(&mut self, options: &str, sql: &str) -> String {
        self.run(&format!("EXPLAIN ({options}) {sql}")).await.unwrap_or_else(|e| panic!("{sql}: {e:?}")).join("\n")
    }

    /// The SQLSTATE of what fails.
    pub async fn code(&mut self, sql: &str) -> String {
        self.run(sql).await.map_or_else(|e| e.code().to_string(), |rows| panic!("{sql}: {rows:?}"))
    }
}
