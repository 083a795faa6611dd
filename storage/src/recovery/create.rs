//! The creation of a new database, and the check of what a directory holds before anything in it is changed.
//!
//! # Life of a creation
//! 1. Look: the directory holds nothing, or only what an earlier creation left (NEW-2).
//! 2. Lock, and look again: another process may have come first.
//! 3. Make `wal/`, `data/`, `checkpoint/` and an empty `double-write`; sync the directory.
//! 4. Write and sync `control.tmp`, rename it to `control`, sync the directory and its parent.
//! 5. Go on as every opening does: segments, pages and checkpoints are written only under a durable `control`.
//!
//! # Invariants
//! - NEW-1: a creation removes nothing, and writes over nothing but an empty `double-write` and its own `control.tmp`.
//! - NEW-2: without `control` a database is made only where every name is one of LOCK (a process number), `wal`, `data`,
//!   `checkpoint` (empty directories), `double-write` (an empty file) and `control.tmp` (two blocks at most, in which
//!   each byte is zero or that of a new database's control block). Anything else belongs to some other program or
//!   user: the opening is refused, and the error names it.
//! - NEW-3: only the owner has access to a database's directory and to the files in it (VFS-9). A wider mode
//!   is refused, and the error names the file. The mode of an empty directory that the user has made is narrowed.
//! - NEW-4: `control` is made after the directories and their names, so a database without one of them has lost it, and
//!   is refused.
//!
//! # Crash safety
//! ```text
//!   crash during   leaves                                           the next opening
//!   3              some of the names, each of them empty            step 3 finds them and makes the others
//!   4, the write   control.tmp of up to two blocks, of which any    step 4 writes it again
//!                  part has been written and the rest is zeros
//!   4, the rename  control.tmp or control                           step 4, or step 5
//!   5              a durable control                                an ordinary recovery of an empty log
//! ```
//! So a creation in progress needs no marker: until `control` is durable there is no data to lose.
//!
//! # Errors
//! [`StorageError::Invalid`] with what is in the way and what to do.

use super::control::{self, Control};
use crate::error::StorageError;
use crate::ids::Lsn;
use crate::seams::BoxFuture;
use crate::store::StoreOptions;
use crate::wal::format::BLOCK_BYTES;
use clearway_base::vfs::{DirEntry, EntryKind, FileKind, IoBuf, OpenHow, Vfs};
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

/// Where the stream begins: zero means "none" in chains of undo.
pub(crate) const FIRST_LSN: Lsn = Lsn(8);

const PARTS: [&str; 3] = ["wal", "data", "checkpoint"];
const DOUBLE_WRITE: &str = "double-write";
const CONTROL: &str = "control";
/// The mode bits that give rights to others than the owner.
const OTHERS: u32 = 0o077;

/// What a directory holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// A database; whether it is whole is for recovery to say.
    Database,
    /// Nothing, or the remains of an unfinished creation.
    Nothing,
}

/// Checks what a directory holds without changing it (NEW-2, NEW-3).
///
/// # Errors
/// It is neither empty nor a database; a database without its control file or a directory of its own; a wider mode; a failed read.
pub fn contents_of<'a>(vfs: &'a Arc<dyn Vfs>, dir: &'a Path) -> BoxFuture<'a, Result<Held, StorageError>> {
    Box::pin(check_contents(vfs, dir))
}

async fn check_contents(vfs: &Arc<dyn Vfs>, dir: &Path) -> Result<Held, StorageError> {
    let entries = vfs.list(dir).await?;
    if entries.iter().any(|entry| entry.name == CONTROL) {
        for part in PARTS {
            match vfs.list(&dir.join(part)).await {
                Ok(_) => {}
                Err(err) if matches!(err.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                    return Err(incomplete(dir, part)); // NEW-4
                }
                Err(err) => return Err(err.into()),
            }
        }
        private(vfs, dir, &entries).await?;
        return Ok(Held::Database);
    }
    for part in PARTS {
        let inside = match vfs.list(&dir.join(part)).await {
            Ok(inside) => inside,
            Err(err) if matches!(err.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => continue,
            Err(err) => return Err(err.into()),
        };
        if let Some(own) = inside.iter().find(|entry| is_databases(part, &entry.name)) {
            return Err(no_control(dir, &format!("{part}/{}", own.name)));
        }
        if let Some(foreign) = inside.first() {
            return Err(foreign_in(dir, &format!("{part}/{}", foreign.name)));
        }
    }
    for entry in &entries {
        if entry.name == DOUBLE_WRITE && entry.kind == EntryKind::File && entry.size > 0 {
            return Err(no_control(dir, DOUBLE_WRITE));
        }
        if !is_leftover(vfs, dir, entry).await? {
            return Err(foreign_in(dir, &entry.name));
        }
    }
    Ok(Held::Nothing)
}

/// Whether a database gives such names to files in that part.
pub(super) fn is_databases(part: &str, name: &str) -> bool {
    let hex = |text: &str| text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    match part {
        "wal" => name.strip_suffix(".wal").is_some_and(|stem| hex(stem) || stem.starts_with("spare-")),
        "data" => name.strip_suffix(".dat").is_some_and(|stem| stem.bytes().all(|byte| byte.is_ascii_digit())),
        _ => hex(name),
    }
}

/// Whether an interrupted creation may have left this entry, by its content (NEW-2).
async fn is_leftover(vfs: &Arc<dyn Vfs>, dir: &Path, entry: &DirEntry) -> Result<bool, StorageError> {
    let path = dir.join(&entry.name);
    match (entry.name.as_str(), entry.kind) {
        // Their content was looked at; a link to a directory counts as one.
        (name, EntryKind::Dir) => Ok(PARTS.contains(&name)),
        (name, EntryKind::File) if PARTS.contains(&name) => Ok(vfs.list(&path).await.is_ok()),
        ("LOCK", EntryKind::File) => {
            let text = read_short(vfs, &path, entry.size, 32).await?;
            Ok(text.is_some_and(|text| text.iter().all(|byte| byte.is_ascii_digit() || *byte == b'\n')))
        }
        (DOUBLE_WRITE, EntryKind::File) => Ok(entry.size == 0),
        ("control.tmp", EntryKind::File) => {
            let Some(bytes) = read_short(vfs, &path, entry.size, 2 * BLOCK_BYTES).await? else { return Ok(false) };
            Ok(bytes.chunks(BLOCK_BYTES).all(control::is_unfinished_first))
        }
        _ => Ok(false),
    }
}

/// The bytes of a file of at most `most` bytes.
async fn read_short(vfs: &Arc<dyn Vfs>, path: &Path, size: u64, most: usize) -> Result<Option<Vec<u8>>, StorageError> {
    if size > most as u64 {
        return Ok(None);
    }
    let file = vfs.open(path, OpenHow::read_only(FileKind::Control)).await?;
    Ok(Some(file.read_at(0, IoBuf::zeroed(0), most).await?.to_vec()))
}

fn foreign_in(dir: &Path, name: &str) -> StorageError {
    let dir = dir.display();
    let text = format!(
        "{dir} is neither empty nor a Clearway database: it holds {name}. Nothing was changed. Name an empty or a new \
         directory"
    );
    StorageError::Invalid(text.into())
}

fn no_control(dir: &Path, name: &str) -> StorageError {
    let dir = dir.display();
    let text = format!(
        "{dir} holds a Clearway database ({name}) without its file `control`, which says where the log begins and what \
         was durable. Nothing was changed. Put the file back from the same copy as the rest, or restore a backup"
    );
    StorageError::Invalid(text.into())
}

/// NEW-4
fn incomplete(dir: &Path, part: &str) -> StorageError {
    let dir = dir.display();
    let text = format!(
        "{dir} holds a Clearway database without its directory `{part}`. Nothing was changed. Put it back from the same copy as \
         the rest, or restore a backup"
    );
    StorageError::Invalid(text.into())
}

/// NEW-3
async fn private(vfs: &Arc<dyn Vfs>, dir: &Path, entries: &[DirEntry]) -> Result<(), StorageError> {
    let mut paths = vec![dir.to_owned()];
    let own = |name: &str| PARTS.contains(&name) || [CONTROL, DOUBLE_WRITE, "durable"].contains(&name);
    for entry in entries.iter().filter(|entry| own(&entry.name)) {
        let path = dir.join(&entry.name);
        if entry.kind == EntryKind::Dir {
            let inside = vfs.list(&path).await?;
            let files = inside.iter().filter(|file| is_databases(&entry.name, &file.name));
            paths.extend(files.map(|file| path.join(&file.name)));
        }
        paths.push(path);
    }
    for path in paths {
        let mode = match vfs.mode(&path).await {
            Ok(mode) => mode,
            // The process that has the directory open may be removing it just now.
            Err(err) if err.kind() == ErrorKind::NotFound => continue,
            Err(err) => return Err(err.into()),
        };
        if mode & OTHERS != 0 {
            let (path, dir) = (path.display(), dir.display());
            let text = format!(
                "{path} has mode {mode:04o}: others than its owner may get at the data. `chmod -R go= {dir}` takes that \
                 from them"
            );
            return Err(StorageError::Invalid(text.into()));
        }
    }
    Ok(())
}

/// Makes the directories of a new database where [`look`] found nothing, and says what its control file begins with.
///
/// # Errors
/// A failed file operation.
pub(super) async fn prepare_new(
    vfs: &Arc<dyn Vfs>,
    dir: &Path,
    options: &StoreOptions,
) -> Result<Control, StorageError> {
    if vfs.mode(dir).await? & OTHERS != 0 {
        vfs.make_private(dir).await?; // NEW-3
    }
    for part in PARTS {
        match vfs.create_dir(&dir.join(part)).await {
            Err(err) if err.kind() != ErrorKind::AlreadyExists => return Err(err.into()),
            _ => {}
        }
    }
    // The name of the double-write area has to survive before the first page is written over.
    vfs.open(&dir.join(DOUBLE_WRITE), OpenHow::create(FileKind::Data).direct()).await?;
    vfs.sync_dir(dir).await?;
    Ok(Control::first(options.database_seed, options.wal.segment_bytes, options.space.pages_per_file))
}

/// Makes the name of a new database's directory durable.
///
/// # Errors
/// A failed sync. A parent that may not be read can't be synced, and is not the database's to care for.
pub(super) async fn sync_parent(vfs: &Arc<dyn Vfs>, dir: &Path) -> Result<(), StorageError> {
    let parent = match dir.parent() {
        None => return Ok(()),
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
    };
    match vfs.sync_dir(parent).await {
        Err(err) if err.kind() != ErrorKind::PermissionDenied => Err(err.into()),
        _ => Ok(()),
    }
}
