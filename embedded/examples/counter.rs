//! Eight threads count in one row: `cargo run --example counter -p clearway`.

use clearway::{Database, Result};

/// The program.
pub fn main() -> Result<()> {
    let db = Database::in_memory()?;
    db.connect()?
        .execute_batch("CREATE TABLE counter (id int PRIMARY KEY, n bigint); INSERT INTO counter VALUES (1, 0)")?;
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| -> Result<()> {
                    let mut connection = db.connect()?;
                    for _ in 0..1_000 {
                        connection.execute("UPDATE counter SET n = n + 1 WHERE id = $1", [1])?;
                    }
                    Ok(())
                })
            })
            .collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("a worker panicked"))
    })?;
    let (n,) = db.connect()?.query_row::<(i64,)>("SELECT n FROM counter", ())?;
    println!("counted to {n}");
    assert_eq!(n, 8_000);
    db.close()
}
