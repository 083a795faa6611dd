//! A cache with a lock against stampedes: if several callers miss a key at once, one computes the value and the others wait for it.
//! `cargo run --example cache -p clearway`.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU32, Ordering};

use clearway::{Connection, Database, Result};

/// The value of a key: from the table, or computed by the first caller.
fn cached(connection: &mut Connection, key: &str, compute: impl Fn() -> String) -> Result<String> {
    let read = "SELECT value FROM cache WHERE key = $1 AND expires > now()";
    if let Some((value,)) = connection.query_opt::<(String,)>(read, [key])? {
        return Ok(value);
    }
    let mut transaction = connection.transaction()?;
    // The caller with the lock computes; the others find the value when they get it.
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    transaction.execute("SELECT pg_advisory_xact_lock($1)", [hasher.finish().cast_signed()])?;
    if let Some((value,)) = transaction.query_opt::<(String,)>(read, [key])? {
        return Ok(value);
    }
    let value = compute();
    let write = "INSERT INTO cache VALUES ($1, $2, now() + interval '1 minute') \
                 ON CONFLICT (key) DO UPDATE SET value = excluded.value, expires = excluded.expires";
    transaction.execute(write, (key, value.as_str()))?;
    transaction.commit()?;
    Ok(value)
}

/// The program.
pub fn main() -> Result<()> {
    let db = Database::in_memory()?;
    db.connect()?.execute_batch("CREATE TABLE cache (key text PRIMARY KEY, value text, expires timestamptz)")?;
    let computed = AtomicU32::new(0);
    let compute = || {
        computed.fetch_add(1, Ordering::Relaxed);
        "the answer".to_owned()
    };
    std::thread::scope(|scope| {
        let readers: Vec<_> =
            (0..20).map(|_| scope.spawn(|| cached(&mut db.connect()?, "question", compute))).collect();
        readers.into_iter().try_for_each(|reader| reader.join().expect("a reader panicked").map(drop))
    })?;
    println!("20 readers, computed {} time", computed.load(Ordering::Relaxed));
    assert_eq!(computed.load(Ordering::Relaxed), 1);
    db.close()
}
