//! The same rows in LMDB, through heed.

use heed::types::Bytes;
use heed::{Database, Env, EnvFlags, EnvOpenOptions, PutFlags};
use std::path::Path;

pub struct Lmdb {
    pub env: Env,
    pub db: Database<Bytes, Bytes>,
}

impl Lmdb {
    pub fn load(
        dir: &Path,
        rows: u64,
        key: impl Fn(u64) -> u64,
        value: impl Fn(u64, &mut [u8; 100]),
    ) -> heed::Result<Lmdb> {
        let _ = std::fs::remove_dir_all(dir);
        std::fs::create_dir_all(dir)?;
        let mut options = EnvOpenOptions::new();
        options.map_size(16 << 30).max_readers(64);
        // SAFETY: the directory is ours alone; no sync is wanted, and a crash loses only the test.
        let env = unsafe {
            options.flags(EnvFlags::NO_SYNC | EnvFlags::WRITE_MAP | EnvFlags::NO_READ_AHEAD);
            options.open(dir)?
        };
        let mut txn = env.write_txn()?;
        let db: Database<Bytes, Bytes> = env.create_database(&mut txn, None)?;
        let mut bytes = [0; 100];
        for row in 0..rows {
            value(row, &mut bytes);
            db.put_with_flags(&mut txn, PutFlags::APPEND, &key(row).to_be_bytes(), &bytes)?;
        }
        txn.commit()?;
        Ok(Lmdb { env, db })
    }
}
