//! A database inside the program: tables of Rust types, transactions as closures, a restart.
//!
//! `cargo run --example quickstart [DIRECTORY]`; without a directory, in memory.

use clearway_engine::embedded::{Database, Error, Isolation, Table, TxnOptions};

type Accounts = Table<i64, (String, i64)>;

fn main() -> Result<(), Error> {
    let db = match std::env::args().nth(1) {
        Some(dir) => Database::open(dir)?,
        None => Database::in_memory()?,
    };
    let accounts: Accounts = db.table("accounts", &["id"], &["owner", "balance"])?;

    db.transact(|txn| {
        txn.put(&accounts, &1, &("Ada".to_owned(), 100))?;
        txn.put(&accounts, &2, &("Grace".to_owned(), 50))
    })?;

    // A snapshot for all of it; if another thread changes an account meanwhile, the closure runs again.
    let moved = db.transact(|txn| transfer(txn, &accounts, 1, 2, 30))?;
    println!("moved: {moved}");

    // One row, changed under its lock: nothing to run again, and the lock does not wait for the disk.
    let balance = db.update_with(&accounts, &2, |(_, balance)| {
        *balance += 1;
        *balance
    })?;
    println!("Grace has {balance:?}");

    // An error undoes everything.
    let refused: Result<(), Error> = db.transact(|txn| {
        txn.delete(&accounts, &1)?;
        txn.insert(&accounts, &2, &("Nobody".to_owned(), 0))
    });
    match refused {
        Err(error) if error.is_duplicate() => println!("refused: {error}"),
        other => other?,
    }

    let options = TxnOptions { isolation: Isolation::RepeatableRead, read_only: true };
    for (id, (owner, balance)) in db.transact_with(options, |txn| txn.range(&accounts, ..))? {
        println!("{id}: {owner} has {balance}");
    }
    db.close()
}

fn transfer(
    txn: &mut clearway_engine::embedded::Txn<'_, '_>,
    accounts: &Accounts,
    from: i64,
    to: i64,
    amount: i64,
) -> Result<bool, Error> {
    let (Some((payer, has)), Some((payee, had))) = (txn.get(accounts, &from)?, txn.get(accounts, &to)?) else {
        return Ok(false);
    };
    if has < amount {
        return Ok(false);
    }
    txn.put(accounts, &from, &(payer, has - amount))?;
    txn.put(accounts, &to, &(payee, had + amount))?;
    Ok(true)
}
