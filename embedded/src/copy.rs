//! COPY: rows in bulk, as text, csv or PostgreSQL's binary form. The form with futures is in `copy_async`.

use std::io::{Read, Write};

use clearway_base::waits::with_session;
use clearway_sql::session::client::ClientFuture;
use clearway_sql::session::{Client, CopyIn};

use crate::blocking::Connection;
use crate::connection::AsyncConnection;
use crate::error::{Error, Result};
use crate::row::rows_of;
use crate::wait::wait;

/// Bytes that are read at a time.
pub(crate) const CHUNK_BYTES: usize = 64 << 10;

/// Gives the bytes of a reader to COPY FROM STDIN, and takes the tag.
struct From<'r, R> {
    reader: &'r mut R,
    failed: Option<std::io::Error>,
    asked: bool,
    tag: String,
}

impl<R: Read + Send> Client for From<'_, R> {
    fn row(&mut self, _: usize, _: &mut dyn FnMut(usize, &mut Vec<u8>) -> bool) {}
    fn command_complete(&mut self, tag: &str) {
        self.tag = tag.to_owned();
    }
    fn copy_next(&mut self) -> ClientFuture<'_, CopyIn> {
        self.asked = true;
        let mut bytes = vec![0; CHUNK_BYTES];
        let next = match self.reader.read(&mut bytes) {
            Ok(0) => CopyIn::Done,
            Ok(count) => {
                bytes.truncate(count);
                CopyIn::Data(bytes)
            }
            Err(error) => {
                let text = error.to_string();
                self.failed = Some(error);
                CopyIn::Failed(text)
            }
        };
        Box::pin(async move { Ok(next) })
    }
}

/// Takes the bytes of COPY TO STDOUT.
struct To<'w, W> {
    writer: &'w mut W,
    failed: Option<std::io::Error>,
    tag: String,
}

impl<W: Write + Send> Client for To<'_, W> {
    fn row(&mut self, _: usize, _: &mut dyn FnMut(usize, &mut Vec<u8>) -> bool) {}
    fn command_complete(&mut self, tag: &str) {
        self.tag = tag.to_owned();
    }
    fn copy_data(&mut self, data: &[u8]) {
        if self.failed.is_none() {
            self.failed = self.writer.write_all(data).err();
        }
    }
    fn is_full(&self) -> bool {
        self.failed.is_some()
    }
    fn drain(&mut self) -> ClientFuture<'_, ()> {
        // The writer takes nothing more: the statement ends.
        let failed = self.failed.is_some();
        Box::pin(async move { if failed { Err(clearway_sql::session::Gone) } else { Ok(()) } })
    }
}

impl Connection {
    /// Runs `COPY ... FROM STDIN` with the bytes of a reader; how many rows there were.
    ///
    /// ```
    /// # fn main() -> Result<(), clearway::Error> {
    /// let db = clearway::Database::in_memory()?;
    /// let mut connection = db.connect()?;
    /// connection.execute_batch("CREATE TABLE t (a int, b text)")?;
    /// assert_eq!(connection.copy_in("COPY t FROM STDIN (FORMAT csv)", &mut "1,one\n2,two\n".as_bytes())?, 2);
    /// let mut out = Vec::new();
    /// connection.copy_out("COPY t TO STDOUT", &mut out)?;
    /// assert_eq!(out, b"1\tone\n2\ttwo\n");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The statement's; the reader's, and then no row is inserted.
    pub fn copy_in(&mut self, sql: &str, reader: &mut (impl Read + Send)) -> Result<u64> {
        let mut client = From { reader, failed: None, asked: false, tag: String::new() };
        let ran = wait(self.0.run_copy(sql, &mut client));
        match client.failed {
            Some(error) => Err(Error::Io(error)),
            None => ran.map(|()| rows_of(&client.tag)),
        }
    }

    /// Runs `COPY ... TO STDOUT` and gives the bytes to a writer; how many rows there were.
    ///
    /// ```
    /// # fn main() -> Result<(), clearway::Error> {
    /// # let db = clearway::Database::in_memory()?;
    /// # let mut connection = db.connect()?;
    /// let mut csv = Vec::new();
    /// connection.copy_out("COPY (SELECT g, g * g FROM generate_series(1, 2) g) TO STDOUT (FORMAT csv)", &mut csv)?;
    /// assert_eq!(csv, b"1,1\n2,4\n");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The statement's; the writer's.
    pub fn copy_out(&mut self, sql: &str, writer: &mut (impl Write + Send)) -> Result<u64> {
        let mut client = To { writer, failed: None, tag: String::new() };
        let ran = wait(self.0.run_copy(sql, &mut client));
        match client.failed {
            Some(error) => Err(Error::Io(error)),
            None => ran.map(|()| rows_of(&client.tag)),
        }
    }
}

impl AsyncConnection {
    /// Runs a COPY statement whose bytes `client` gives or takes.
    pub(crate) async fn run_copy(&mut self, sql: &str, client: &mut dyn Client) -> Result<()> {
        let mut lease = self.lease().await?;
        let live = lease.live();
        let waits = std::sync::Arc::clone(&live.waits);
        let work = async {
            live.number += 1;
            if live.unfinished {
                live.finish().await?;
            }
            let ran = live.link.simple(sql, client).await;
            live.link.before_send().await?;
            ran
        };
        let ran = with_session(waits, work).await;
        lease.done();
        ran
    }
}
