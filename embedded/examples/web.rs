//! A web service that counts its visits in an embedded database, to which the console connects.
//! `cargo run --example web -p clearway --features server -- 127.0.0.1:8080 127.0.0.1:5433`, and beside it
//! `clearway watch postgresql://postgres@127.0.0.1:5433/clearway`: the console shows the service's own threads, their waits and their locks.
//! Without addresses the service requests some pages from itself and ends.

#![allow(clippy::disallowed_methods, reason = "a program with the library, no part of the database")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};

use clearway::{Connection, Database, Result};

const VISIT: &str = "INSERT INTO visits VALUES ($1, 1) ON CONFLICT (page) DO UPDATE SET n = visits.n + 1 RETURNING n";
const WORKERS: usize = 4;

/// Answers one request: `GET /page`.
fn answer(connection: &mut Connection, stream: TcpStream) -> Result<()> {
    let mut line = String::new();
    BufReader::new(&stream).take(8_192).read_line(&mut line)?;
    let page = line.split(' ').nth(1).filter(|page| page.starts_with('/')).unwrap_or("/");
    let (status, body) = match connection.query_row::<(i64,)>(VISIT, [page]) {
        Ok((n,)) => ("200 OK", format!("{page} was visited {n} times\n")),
        Err(error) => ("500 Internal Server Error", format!("{error}\n")),
    };
    write!(&stream, "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())?;
    Ok(())
}

/// Each worker has a connection of its own and takes one request after the other.
fn work(db: &Database, listener: &TcpListener) -> Result<()> {
    let mut connection = db.connect()?;
    loop {
        let (stream, _) = listener.accept()?;
        // A client that goes away in the middle is its own affair.
        let _ = answer(&mut connection, stream);
    }
}

fn ask(address: SocketAddr, page: &str) -> Result<String> {
    let mut stream = TcpStream::connect(address)?;
    write!(stream, "GET {page} HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// The program.
pub fn main() -> Result<()> {
    let addresses: Vec<SocketAddr> = std::env::args().skip(1).filter_map(|argument| argument.parse().ok()).collect();
    let free = SocketAddr::from(([127, 0, 0, 1], 0));
    let db = Database::in_memory()?;
    db.connect()?.execute_batch("CREATE TABLE visits (page text PRIMARY KEY, n bigint NOT NULL)")?;
    // psql and the console see the same database, live.
    let server = db.serve(&[addresses.get(1).copied().unwrap_or(free)])?;
    let listener = TcpListener::bind(addresses.first().copied().unwrap_or(free))?;
    let here = listener.local_addr()?;
    println!("pages:    http://{here}/");
    println!("console:  clearway watch postgresql://postgres@{}/clearway", server.addresses()[0]);
    for _ in 1..WORKERS {
        let (db, listener) = (db.clone(), listener.try_clone()?);
        std::thread::spawn(move || work(&db, &listener));
    }
    if !addresses.is_empty() {
        return work(&db, &listener);
    }
    for n in 1..=3 {
        assert!(ask(here, "/index")?.ends_with(&format!("/index was visited {n} times\n")));
    }
    // What the console asks: who is at work here?
    let sql = "SELECT count(*) FROM pg_stat_activity WHERE datname = 'clearway'";
    let (sessions,) = db.connect()?.query_row::<(i64,)>(sql, ())?;
    println!("sessions: {sessions}");
    db.close()
}
