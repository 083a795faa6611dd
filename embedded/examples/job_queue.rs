//! A job queue: workers take different jobs without waiting for each other, and a job whose worker fails comes back.
//! `cargo run --example job_queue -p clearway`.

use clearway::{Connection, Database, FromRow, Result};

#[derive(FromRow)]
struct Job {
    id: i64,
    payload: String,
}

const SETUP: &str = "
    CREATE TABLE jobs (id bigserial PRIMARY KEY, payload text NOT NULL, done_by int);
    CREATE INDEX open_jobs ON jobs (done_by, id);
    INSERT INTO jobs (payload) SELECT 'job ' || n FROM generate_series(1, 200) n";

/// The oldest job that no other worker has; its row stays locked to the end of the transaction.
const TAKE: &str = "SELECT id, payload FROM jobs WHERE done_by IS NULL ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED";

fn work(connection: &mut Connection, worker: i32) -> Result<u32> {
    let mut done = 0;
    loop {
        let mut transaction = connection.transaction()?;
        let Some(job) = transaction.query_opt::<Job>(TAKE, ())? else { return Ok(done) };
        if job.payload.is_empty() {
            continue; // the guard rolls back: the job is free again
        }
        transaction.execute("UPDATE jobs SET done_by = $1 WHERE id = $2", (worker, job.id))?;
        transaction.commit()?;
        done += 1;
    }
}

/// The program.
pub fn main() -> Result<()> {
    let db = Database::in_memory()?;
    db.connect()?.execute_batch(SETUP)?;
    let done = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..16)
            .map(|n| {
                scope.spawn({
                    let db = &db;
                    move || work(&mut db.connect()?, n)
                })
            })
            .collect();
        workers.into_iter().map(|worker| worker.join().expect("a worker panicked")).sum::<Result<u32>>()
    })?;
    println!("16 workers did {done} jobs, each once");
    assert_eq!(done, 200);
    db.close()
}
