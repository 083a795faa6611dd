//! The pieces of log that a backup or a timeline has, and reading them as one stream.

use crate::epochs::Timeline;
use crate::error::{BackupError, Result};
use crate::manifest::Manifest;
use crate::names;
use crate::object::{Kind, unpack};
use crate::target::{Listed, Target};
use clearway_storage::ids::Lsn;

/// Log in an object, as far as it counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The object.
    pub name: String,
    /// Where the object begins.
    pub from: Lsn,
    /// It counts up to here.
    pub to: Lsn,
}

/// The log of a backup.
pub fn of_backup(manifest: &Manifest) -> Vec<Piece> {
    let prefix = format!("{}log/", names::backup(&manifest.id));
    let of_log = manifest.parts.iter().filter(|part| part.name.starts_with(&prefix));
    let mut pieces: Vec<Piece> = of_log.filter_map(|part| piece(&part.name, Lsn::MAX)).collect();
    pieces.sort_by_key(|piece| piece.from);
    pieces
}

/// The archived log along a timeline (BKP-3).
pub fn of_timeline(listed: &[Listed], timeline: &Timeline) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    for stretch in &timeline.stretches {
        let of_epoch = listed.iter().filter(|object| names::epoch_of(&object.name) == Some(stretch.epoch));
        pieces.extend(of_epoch.filter_map(|object| piece(&object.name, stretch.to)));
    }
    pieces.sort_by_key(|piece| (piece.from, piece.to));
    pieces
}

fn piece(name: &str, limit: Lsn) -> Option<Piece> {
    let (from, to) = names::range(name)?;
    let to = to.min(limit);
    (from < to).then(|| Piece { name: name.to_owned(), from, to })
}

/// Reads log from a position on, piece after piece, as far as pieces join.
pub struct Joined<'a> {
    target: &'a dyn Target,
    database: u64,
    pieces: Vec<Piece>,
    position: Lsn,
}

impl<'a> Joined<'a> {
    /// A reader of `pieces` that begins at `position`.
    pub fn new(target: &'a dyn Target, database: u64, pieces: Vec<Piece>, position: Lsn) -> Joined<'a> {
        Joined { target, database, pieces, position }
    }

    /// Where it stands.
    pub fn position(&self) -> Lsn {
        self.position
    }

    /// Where the next piece begins if there is one, but not here: the log has a hole.
    pub fn hole(&self) -> Option<Lsn> {
        let joins = self.pieces.iter().any(|piece| piece.from <= self.position && piece.to > self.position);
        let next = self.pieces.iter().map(|piece| piece.from).filter(|from| *from > self.position).min();
        next.filter(|_| !joins)
    }

    /// The next bytes; none where no piece goes on.
    ///
    /// # Errors
    /// A damaged object; the target's.
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>> {
        let here = self.position;
        // Of pieces that overlap, the one that reaches farthest.
        let best =
            self.pieces.iter().filter(|piece| piece.from <= here && piece.to > here).max_by_key(|piece| piece.to);
        let Some(piece) = best.cloned() else { return Ok(None) };
        let object = self.target.get(&piece.name).await?;
        let bytes = log_of(&piece.name, &object, self.database)?;
        let (skip, keep) = ((here.0 - piece.from.0) as usize, (piece.to.0 - piece.from.0) as usize);
        let taken = bytes.get(skip..keep).unwrap_or_default().to_vec();
        self.position = piece.to;
        Ok(Some(taken))
    }
}

/// The bytes of an object of log, which is what its name says.
///
/// # Errors
/// Damage; another database's.
pub fn log_of(name: &str, object: &[u8], database: u64) -> Result<Vec<u8>> {
    let (header, bytes) = unpack(name, Kind::Log, object)?;
    let range = names::range(name).map(|(from, to)| (from.0, to.0));
    let fits = range == Some((header.from, header.to)) && bytes.len() as u64 == header.to - header.from;
    if !fits || header.database != database {
        let found =
            format!("database {:016x}, {} to {}, {} bytes", header.database, header.from, header.to, bytes.len());
        return Err(BackupError::damaged(name, format!("what the name says, of database {database:016x}"), found));
    }
    Ok(bytes)
}
