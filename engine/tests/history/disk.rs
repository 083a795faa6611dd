//! Opening a database on a simulated disk, in a simulation.

use std::path::Path;
use std::sync::Arc;

use clearway_base::testkit;
use clearway_base::vfs::Vfs;
use clearway_base::vfs::sim::SimDisk;
use clearway_engine::db::{Db, DbOptions};
use clearway_engine::error::EngineError;

/// Small sizes, so that segments, checkpoints and frames have their limits met.
pub async fn open_engine(disk: &SimDisk) -> Result<Arc<Db>, EngineError> {
    let dir = Path::new("/db");
    if disk.create_dir(dir).await.is_ok() {
        disk.sync_dir(Path::new("/")).await.expect("a durable name");
    }
    let mut options = DbOptions::new(Arc::new(disk.clone()), dir);
    options.store.wal.caller_flushes = false;
    options.store.wal.ring_bytes = 256 << 10;
    options.store.wal.segment_bytes = 256 << 10;
    options.store.wal.ahead_bytes = 256 << 10;
    options.store.wal.floor_bytes = 64 << 10;
    options.store.checkpoint_bytes = 48 << 10;
    options.store.checkpoint_pause = std::time::Duration::ZERO;
    options.store.pool.frames = 128;
    Db::open(options, |name, task| {
        testkit::spawn(name, task);
    })
    .await
}
