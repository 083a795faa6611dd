//! Holes in the archived log: log that was released, or written while there was no archive, before it was sent.
//!
//! # Life of a hole
//! the archiver finds that the log which it would send next is gone -> it goes on with the oldest log that is left: the hole lies between ->
//! a backup of the same history is taken that ends behind the hole and so closes it: this backup and the log behind it can be restored.
//!
//! # Invariants
//! - HOL-1: log that is sent behind a hole counts as archived only when a backup that closes the hole is in the target. Before that the archive
//!   restores nothing that is behind the hole, so no commit there may be acknowledged as archived.

use crate::epochs::timeline;
use crate::error::Result;
use crate::pieces::Piece;
use crate::plan::Contents;
use crate::target::Target;
use clearway_storage::ids::Lsn;

/// Log from `from` to `to` is not in the archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hole {
    /// Its begin.
    pub from: Lsn,
    /// Its end.
    pub to: Lsn,
}

/// The last hole of a history: before its pieces, which are sorted, between them, or behind them. `begins` is where the history's log begins,
/// `next` is where sending goes on. Log that expired leaves such a hole, too; the oldest backup that was kept closes it.
pub fn last(pieces: &[Piece], begins: Lsn, next: Lsn) -> Option<Hole> {
    let (mut reached, mut hole) = (begins, None);
    let ends = pieces.iter().map(|piece| (piece.from, piece.to)).chain([(next, next)]);
    for (from, to) in ends {
        if from > reached {
            hole = Some(Hole { from: reached, to: from });
        }
        reached = reached.max(to);
    }
    hole
}

/// Whether a backup can be restored from which the log goes on behind the hole (HOL-1), in the history that ends with `epoch`.
///
/// # Errors
/// A damaged object; the target's.
pub async fn is_closed(target: &dyn Target, hole: Hole, epoch: u32) -> Result<bool> {
    let contents = Contents::read(target).await?;
    let history = timeline(&contents.epochs, epoch);
    let behind = contents.backups.iter().filter(|backup| backup.end >= hole.to);
    let mut of_history = behind.filter(|backup| history.covers(backup.epoch, backup.end));
    Ok(of_history.any(|backup| contents.chain(backup).is_ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(ranges: &[(u64, u64)]) -> Vec<Piece> {
        let piece = |(from, to): &(u64, u64)| Piece { name: String::new(), from: Lsn(*from), to: Lsn(*to) };
        ranges.iter().map(piece).collect()
    }

    #[test]
    fn the_last_hole_lies_before_pieces_between_them_or_behind_them() {
        let found = |ranges: &[(u64, u64)], begins, next| {
            last(&pieces(ranges), Lsn(begins), Lsn(next)).map(|hole| (hole.from.0, hole.to.0))
        };
        assert_eq!(found(&[], 8, 8), None);
        assert_eq!(found(&[], 8, 64), Some((8, 64)));
        assert_eq!(found(&[(8, 64), (64, 128)], 8, 128), None);
        // A piece that was sent again by the next epoch, and one within another.
        assert_eq!(found(&[(8, 64), (32, 128), (40, 50)], 8, 128), None);
        assert_eq!(found(&[(8, 64), (64, 128)], 8, 192), Some((128, 192)));
        assert_eq!(found(&[(8, 64), (100, 128), (200, 300)], 8, 300), Some((128, 200)));
        // Nothing was sent before the log was released, or it expired.
        assert_eq!(found(&[(100, 128)], 8, 128), Some((8, 100)));
    }
}
