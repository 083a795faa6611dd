//! COPY with futures: the bytes come from an `AsyncRead` and go to an `AsyncWrite` of the crate futures-io, which knows no runtime.

use std::future::poll_fn;
use std::pin::Pin;

use clearway_sql::session::client::ClientFuture;
use clearway_sql::session::{Client, CopyIn, Gone};
use futures_io::{AsyncRead, AsyncWrite};

use crate::connection::AsyncConnection;
use crate::copy::CHUNK_BYTES;
use crate::error::{Error, Result};
use crate::row::rows_of;

/// Gives the bytes of a reader to COPY FROM STDIN, and takes the tag.
struct From<'r, R> {
    reader: &'r mut R,
    failed: Option<std::io::Error>,
    tag: String,
}

impl<R: AsyncRead + Unpin + Send> Client for From<'_, R> {
    fn row(&mut self, _: usize, _: &mut dyn FnMut(usize, &mut Vec<u8>) -> bool) {}
    fn command_complete(&mut self, tag: &str) {
        self.tag = tag.to_owned();
    }
    fn copy_next(&mut self) -> ClientFuture<'_, CopyIn> {
        Box::pin(async move {
            let mut bytes = vec![0; CHUNK_BYTES];
            Ok(match poll_fn(|cx| Pin::new(&mut *self.reader).poll_read(cx, &mut bytes)).await {
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
            })
        })
    }
}

/// Takes the bytes of COPY TO STDOUT. They gather until there are [`CHUNK_BYTES`] of them; then the statement waits for the writer.
struct To<'w, W> {
    writer: &'w mut W,
    bytes: Vec<u8>,
    failed: Option<std::io::Error>,
    tag: String,
}

impl<W: AsyncWrite + Unpin + Send> To<'_, W> {
    /// Gives the writer what has gathered.
    async fn write(&mut self) {
        let mut done = 0;
        while done < self.bytes.len() && self.failed.is_none() {
            match poll_fn(|cx| Pin::new(&mut *self.writer).poll_write(cx, &self.bytes[done..])).await {
                Ok(0) => self.failed = Some(std::io::ErrorKind::WriteZero.into()),
                Ok(count) => done += count,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => self.failed = Some(error),
            }
        }
        self.bytes.clear();
    }
}

impl<W: AsyncWrite + Unpin + Send> Client for To<'_, W> {
    fn row(&mut self, _: usize, _: &mut dyn FnMut(usize, &mut Vec<u8>) -> bool) {}
    fn command_complete(&mut self, tag: &str) {
        self.tag = tag.to_owned();
    }
    fn copy_data(&mut self, data: &[u8]) {
        self.bytes.extend_from_slice(data);
    }
    fn is_full(&self) -> bool {
        self.bytes.len() >= CHUNK_BYTES
    }
    fn drain(&mut self) -> ClientFuture<'_, ()> {
        Box::pin(async move {
            self.write().await;
            // The writer takes nothing more: the statement ends.
            if self.failed.is_some() { Err(Gone) } else { Ok(()) }
        })
    }
}

impl AsyncConnection {
    /// Runs `COPY ... FROM STDIN` with the bytes of a reader; how many rows there were. Of tokio's readers `tokio_util::compat` makes such ones.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(async {
    /// # let db = clearway::Database::in_memory()?;
    /// # let mut connection = db.connect_async().await?;
    /// connection.execute("CREATE TABLE t (a int, b text)", ()).await?;
    /// let rows = connection.copy_in("COPY t FROM STDIN (FORMAT csv)", &mut "1,one\n2,two\n".as_bytes()).await?;
    /// assert_eq!(rows, 2);
    /// # Ok::<(), clearway::Error>(())
    /// # }).expect("done");
    /// ```
    ///
    /// # Errors
    /// The statement's; the reader's, and then no row is inserted.
    pub async fn copy_in(&mut self, sql: &str, reader: &mut (impl AsyncRead + Unpin + Send)) -> Result<u64> {
        let mut client = From { reader, failed: None, tag: String::new() };
        let ran = self.run_copy(sql, &mut client).await;
        match client.failed {
            Some(error) => Err(Error::Io(error)),
            None => ran.map(|()| rows_of(&client.tag)),
        }
    }

    /// Runs `COPY ... TO STDOUT` and gives the bytes to a writer; how many rows there were. The writer is flushed at the end, and not closed.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(async {
    /// # let db = clearway::Database::in_memory()?;
    /// # let mut connection = db.connect_async().await?;
    /// let mut csv = Vec::new();
    /// let sql = "COPY (SELECT g, g * g FROM generate_series(1, 2) g) TO STDOUT (FORMAT csv)";
    /// assert_eq!(connection.copy_out(sql, &mut csv).await?, 2);
    /// assert_eq!(csv, b"1,1\n2,4\n");
    /// # Ok::<(), clearway::Error>(())
    /// # }).expect("done");
    /// ```
    ///
    /// # Errors
    /// The statement's; the writer's.
    pub async fn copy_out(&mut self, sql: &str, writer: &mut (impl AsyncWrite + Unpin + Send)) -> Result<u64> {
        let mut client = To { writer, bytes: Vec::new(), failed: None, tag: String::new() };
        let ran = self.run_copy(sql, &mut client).await;
        if ran.is_ok() {
            client.write().await;
            if client.failed.is_none() {
                client.failed = poll_fn(|cx| Pin::new(&mut *client.writer).poll_flush(cx)).await.err();
            }
        }
        match client.failed {
            Some(error) => Err(Error::Io(error)),
            None => ran.map(|()| rows_of(&client.tag)),
        }
    }
}
