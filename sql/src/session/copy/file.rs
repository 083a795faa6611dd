//! COPY with a file of the server: the file takes the place of the client, so that COPY reads and writes it by the same code.

use crate::context::core::Core;
use crate::context::errors::of_file;
use crate::context::privileges::Judge;
use crate::error::{Result, SqlError};
use crate::session::client::{Client, ClientFuture, CopyIn, Gone};
use clearway_engine::catalog::predefined::{EXECUTE_SERVER_PROGRAM, READ_SERVER_FILES, WRITE_SERVER_FILES};
use clearway_storage::server_file::ServerFile;
use std::sync::Arc;

/// The file. It is opened when its first byte is due: a statement that fails before has emptied no file.
pub(super) struct FileEnd {
    core: Arc<Core>,
    path: String,
    from: bool,
    /// Bytes that came before the file was opened.
    early: Vec<u8>,
    file: Option<ServerFile>,
    failed: Option<SqlError>,
}

/// Whether the role may have the server read, write or run what stands outside of the database.
pub(super) fn check_rights(core: &Core, from: bool, program: bool) -> Result<()> {
    let (role, name, what) = match (program, from) {
        (true, _) => (EXECUTE_SERVER_PROGRAM, "pg_execute_server_program", "COPY to or from an external program"),
        (false, true) => (READ_SERVER_FILES, "pg_read_server_files", "COPY from a file"),
        (false, false) => (WRITE_SERVER_FILES, "pg_write_server_files", "COPY to a file"),
    };
    if Judge::of(core, &core.catalog()).has_rights_of(role) {
        return Ok(());
    }
    let message = format!("must be superuser or have privileges of the {name} role to {what}");
    let hint = "Anyone can COPY to stdout or from stdin. psql's \\copy command also works for anyone.";
    Err(SqlError::new("42501", message).hint(hint))
}

impl FileEnd {
    /// The file of a path; one that is written needs the whole path, so that the database's own files are not hit by chance.
    pub(super) fn new(core: &Arc<Core>, path: &str, from: bool) -> Result<FileEnd> {
        if !from && !path.starts_with('/') {
            return Err(SqlError::new("42602", "relative path not allowed for COPY to file"));
        }
        Ok(FileEnd { core: core.clone(), path: path.to_owned(), from, early: Vec::new(), file: None, failed: None })
    }

    /// The end of the copy: everything is handed to the operating system, and what failed here is told.
    pub(super) async fn end(&mut self, copied: Result<String>) -> Result<String> {
        let copied = match copied {
            Ok(tag) if !self.from => self.drain().await.map(|()| tag).map_err(|Gone| SqlError::internal("a lost file")),
            copied => copied,
        };
        match self.failed.take() {
            Some(error) => Err(error),
            None => copied,
        }
    }

    async fn opened(&mut self) -> Result<&mut ServerFile> {
        if self.file.is_none() {
            let store = self.core.db.transactions().store();
            let opened = if self.from {
                ServerFile::open(store, &self.path).await
            } else {
                ServerFile::create(store, &self.path).await
            };
            let mut file = opened.map_err(|e| self.could_not_open(&e))?;
            file.append(&std::mem::take(&mut self.early));
            self.file = Some(file);
        }
        self.file.as_mut().ok_or_else(|| SqlError::internal("a file that is not open"))
    }

    fn could_not_open(&self, e: &clearway_base::vfs::VfsError) -> SqlError {
        let (verb, way, does) = if self.from { ("read", "FROM", "reading") } else { ("write", "TO", "writing") };
        let error = of_file(&format!("could not open file \"{}\" for {does}", self.path), e);
        if !matches!(e.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::PermissionDenied) {
            return error;
        }
        error.hint(format!(
            "COPY {way} instructs the PostgreSQL server process to {verb} a file. You may want a client-side facility such as psql's \\copy."
        ))
    }

    async fn next(&mut self) -> Result<CopyIn> {
        let bytes = match self.opened().await?.read().await {
            Ok(bytes) => bytes.to_vec(),
            Err(e) if e.kind() == std::io::ErrorKind::IsADirectory => {
                return Err(SqlError::new("42809", format!("\"{}\" is a directory", self.path)));
            }
            Err(e) => return Err(of_file("could not read from COPY file", &e)),
        };
        Ok(if bytes.is_empty() { CopyIn::Done } else { CopyIn::Data(bytes) })
    }

    async fn put(&mut self) -> Result<()> {
        self.opened().await?.flush().await.map_err(|e| of_file("could not write to COPY file", &e))
    }

    /// A failure is kept for `end`: the copy knows only that its client is gone.
    fn kept<T>(&mut self, done: Result<T>) -> std::result::Result<T, Gone> {
        done.map_err(|e| {
            self.failed = Some(e);
            Gone
        })
    }
}

impl Client for FileEnd {
    fn row(&mut self, _: usize, _: &mut dyn FnMut(usize, &mut Vec<u8>) -> bool) {}

    fn copy_data(&mut self, data: &[u8]) {
        match &mut self.file {
            Some(file) => file.append(data),
            None => self.early.extend_from_slice(data),
        }
    }

    fn copy_next(&mut self) -> ClientFuture<'_, CopyIn> {
        Box::pin(async {
            let next = self.next().await;
            self.kept(next)
        })
    }

    fn is_full(&self) -> bool {
        self.file.as_ref().is_none_or(ServerFile::is_full)
    }

    fn drain(&mut self) -> ClientFuture<'_, ()> {
        Box::pin(async {
            let put = self.put().await;
            self.kept(put)
        })
    }
}
