//! The names of the objects in a repository.
//!
//! ```text
//!   repository                          whose backups and log these are
//!   backups/<id>/begun                  what is being taken, for a resume after an interruption
//!   backups/<id>/start                  what the copy began with
//!   backups/<id>/pages/<8 hex>-<8 hex>  pages from a number on, packed
//!   backups/<id>/log/<16 hex>-<16 hex>  log that recovery of the copy needs, packed
//!   backups/<id>/.../<name>-<16 hex>    start, pages and log that a resumed backup put: the number of its lease at the end (RSM-4)
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

/// One beginning of a backup, and the names of what it puts. A backup that is resumed begins several times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beginning {
    /// The backup.
    pub id: String,
    /// The lease of a beginning that is not the first (RSM-4).
    pub resumed: Option<u64>,
}

impl Beginning {
    fn name(&self, name: &str) -> String {
        match self.resumed {
            Some(lease) => format!("{BACKUPS}{}/{name}-{lease:016x}", self.id),
            None => format!("{BACKUPS}{}/{name}", self.id),
        }
    }

    /// What the copy began with.
    pub fn start(&self) -> String {
        self.name("start")
    }

    /// Pages `first..end`.
    pub fn pages(&self, first: u32, end: u32) -> String {
        self.name(&format!("pages/{first:08x}-{end:08x}"))
    }

    /// The log.
    pub fn log(&self, from: Lsn, to: Lsn) -> String {
        self.name(&format!("log/{:016x}-{:016x}", from.0, to.0))
    }
}

/// Whether this is a name under which a beginning puts what the first one puts under `first`.
pub fn of_any_beginning(first: &str, name: &str) -> bool {
    let Some(rest) = name.strip_prefix(first) else { return false };
    rest.is_empty() || rest.strip_prefix('-').is_some_and(|lease| hex16(lease).is_some())
}

/// Archived log.
pub fn log(epoch: u32, from: Lsn, to: Lsn) -> String {
    format!("{LOG}{epoch:08x}/{:016x}-{:016x}", from.0, to.0)
}

/// An epoch.
pub fn epoch(epoch: u32) -> String {
    format!("{EPOCHS}{epoch:08x}")
}

fn hex16(text: &str) -> Option<u64> {
    u64::from_str_radix(text, 16).ok().filter(|_| text.len() == 16)
}

/// The positions in a name of log.
pub fn range(name: &str) -> Option<(Lsn, Lsn)> {
    let mut parts = name.rsplit('/').next()?.split('-').map(hex16);
    let (from, to) = (Lsn(parts.next()??), Lsn(parts.next()??));
    // The lease of a resumed backup.
    let lease = parts.next();
    (lease.is_none_or(|lease| lease.is_some()) && parts.next().is_none() && from < to).then_some((from, to))
}

/// The epoch in the name of archived log or of an epoch.
pub fn epoch_of(name: &str) -> Option<u32> {
    let hex = name.strip_prefix(LOG).or_else(|| name.strip_prefix(EPOCHS))?.split('/').next()?;
    u32::from_str_radix(hex, 16).ok().filter(|_| hex.len() == 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beginnings_of_one_backup_share_no_name() {
        let first = Beginning { id: "b".into(), resumed: None };
        let again = Beginning { id: "b".into(), resumed: Some(0xa1) };
        assert_eq!(
            (first.start(), again.start()),
            ("backups/b/start".into(), "backups/b/start-00000000000000a1".into())
        );
        let pages = first.pages(0, 4096);
        assert!(of_any_beginning(&pages, &pages) && of_any_beginning(&pages, &again.pages(0, 4096)));
        assert!(
            !of_any_beginning(&pages, &again.pages(4096, 8192))
                && !of_any_beginning("backups/b/start", "backups/b/started")
        );
        let positions = Some((Lsn(8), Lsn(24)));
        assert_eq!((range(&first.log(Lsn(8), Lsn(24))), range(&again.log(Lsn(8), Lsn(24)))), (positions, positions));
        assert_eq!(range("log/00000001/0000000000000018-0000000000000008"), None);
        assert_eq!(range(&format!("{}-1", again.log(Lsn(8), Lsn(24)))), None);
    }
}
