//! The names of the objects in a repository.
//!
//! ```text
//!   repository                          whose backups and log these are
//!   backups/<id>/begun                  what is being taken, for a resume after an interruption
//!   backups/<id>/start                  what the copy began with
//!   backups/<id>/pages/<8 hex>-<8 hex>  pages from a number on, packed
//!   backups/<id>/log/<16 hex>-<16 hex>  log that recovery of the copy needs, packed
//!   backups/<id>/manifest               put last
//!   epochs/<8 hex>                      where an epoch begins in the archive, and the epoch before it
//!   log/<8 hex>/<16 hex>-<16 hex>       archived log of an epoch, packed
//! ```

use clearway_storage::ids::Lsn;

/// The object that says whose repository this is.
pub const REPOSITORY: &str = "repository";
/// Under which backups stand.
pub const BACKUPS: &str = "backups/";
/// Under which the archived log stands.
pub const LOG: &str = "log/";
/// Under which epochs stand.
pub const EPOCHS: &str = "epochs/";

/// What a backup consists of, under this name.
pub fn backup(id: &str) -> String {
    format!("{BACKUPS}{id}/")
}

/// A backup's manifest.
pub fn manifest(id: &str) -> String {
    format!("{BACKUPS}{id}/manifest")
}

/// What is being taken.
pub fn begun(id: &str) -> String {
    format!("{BACKUPS}{id}/begun")
}

/// What a copy began with.
pub fn start(id: &str) -> String {
    format!("{BACKUPS}{id}/start")
}

/// Pages `first..end` of a backup.
pub fn pages(id: &str, first: u32, end: u32) -> String {
    format!("{BACKUPS}{id}/pages/{first:08x}-{end:08x}")
}

/// The log of a backup.
pub fn backup_log(id: &str, from: Lsn, to: Lsn) -> String {
    format!("{BACKUPS}{id}/log/{:016x}-{:016x}", from.0, to.0)
}

/// Archived log.
pub fn log(epoch: u32, from: Lsn, to: Lsn) -> String {
    format!("{LOG}{epoch:08x}/{:016x}-{:016x}", from.0, to.0)
}

/// An epoch.
pub fn epoch(epoch: u32) -> String {
    format!("{EPOCHS}{epoch:08x}")
}

/// The positions at the end of a name of log.
pub fn range(name: &str) -> Option<(Lsn, Lsn)> {
    let (from, to) = name.rsplit('/').next()?.split_once('-')?;
    let number = |hex: &str| u64::from_str_radix(hex, 16).ok().filter(|_| hex.len() == 16).map(Lsn);
    Some((number(from)?, number(to)?)).filter(|(from, to)| from < to)
}

/// The epoch in the name of archived log or of an epoch.
pub fn epoch_of(name: &str) -> Option<u32> {
    let hex = name.strip_prefix(LOG).or_else(|| name.strip_prefix(EPOCHS))?.split('/').next()?;
    u32::from_str_radix(hex, 16).ok().filter(|_| hex.len() == 8)
}
