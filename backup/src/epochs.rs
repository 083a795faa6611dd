//! The order of epochs in an archive. Every opening after a crash and every restore begins a new epoch of the log. Two epochs may begin at
//! the end of the same one: a server that went on, and a restore from its archive.
//!
//! # Life of an epoch in an archive
//! A server claims its epoch before it sends the first piece: it puts an object that names the epoch before, the position at which this
//! epoch begins in the archive, and the claimer. A server that finds its epoch claimed by another directory does not send.

use crate::error::{BackupError, Result};
use crate::names;
use crate::object::FORMAT_VERSION;
use crate::target::{Listed, Target};
use clearway_storage::ids::Lsn;

/// An epoch of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Epoch {
    /// Its number.
    pub epoch: u32,
    /// The one before; 0: the archive begins with this one.
    pub parent: u32,
    /// From here on the log of this one counts, and that of the one before no more.
    pub begins: Lsn,
    /// Where it began in the database. What lies between `begins` and here was written in the epoch before and is sent by this one: the
    /// archive had not reached it.
    pub started: Lsn,
    /// Its sender: a random number of the directory.
    pub claimer: u64,
    /// When it was claimed, us since 1970.
    pub claimed_us: i64,
}

/// A part of a timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// The epoch.
    pub epoch: u32,
    /// Where it begins.
    pub from: Lsn,
    /// Where the next one begins in the archive.
    pub to: Lsn,
    /// Where the next one began in the database: what was written in this epoch up to here belongs to the history.
    pub until: Lsn,
}

/// One history: stretches that follow each other, the last one open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    /// By position.
    pub stretches: Vec<Stretch>,
}

impl Timeline {
    /// Whether what was written in `epoch` up to `position` belongs to this history.
    pub fn covers(&self, epoch: u32, position: Lsn) -> bool {
        self.stretches.iter().any(|stretch| stretch.epoch == epoch && position <= stretch.until)
    }

    /// The epoch with which it ends.
    pub fn last(&self) -> u32 {
        self.stretches.last().map_or(0, |stretch| stretch.epoch)
    }
}

impl Epoch {
    /// The text.
    pub fn encode(&self) -> String {
        let Epoch { epoch, parent, begins, started, claimer, claimed_us } = self;
        let body = format!(
            "clearway epoch {FORMAT_VERSION}\nepoch {epoch}\nparent {parent}\nbegins {begins}\nstarted {started}\n\
             claimer {claimer:016x}\nclaimed_us {claimed_us}\n"
        );
        format!("{body}sum {}\n", crate::object::sum(body.as_bytes()))
    }

    /// Reads a text back.
    ///
    /// # Errors
    /// Damage, a newer version.
    pub fn decode(name: &str, bytes: &[u8]) -> Result<Epoch> {
        let damaged = || {
            BackupError::damaged(
                name,
                format!("an epoch of format version {FORMAT_VERSION} or older"),
                String::from_utf8_lossy(bytes),
            )
        };
        let text = std::str::from_utf8(bytes).map_err(|_| damaged())?;
        let (body, stored) = text.trim_end_matches('\n').rsplit_once("\nsum ").ok_or_else(damaged)?;
        if crate::object::sum(format!("{body}\n").as_bytes()) != stored {
            return Err(damaged());
        }
        let field = |name: &str| body.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        let parsed = (|| {
            (field("clearway epoch")?.parse::<u32>().ok()? <= FORMAT_VERSION).then_some(())?;
            Some(Epoch {
                epoch: field("epoch")?.parse().ok()?,
                parent: field("parent")?.parse().ok()?,
                begins: Lsn(field("begins")?.parse().ok()?),
                // Earlier programs did not say.
                started: Lsn(field("started").or_else(|| field("begins"))?.parse().ok()?),
                claimer: u64::from_str_radix(field("claimer")?, 16).ok()?,
                claimed_us: field("claimed_us")?.parse().ok()?,
            })
        })();
        parsed.ok_or_else(damaged)
    }
}

/// The epochs of an archive, by number.
///
/// # Errors
/// Damage; the target's.
pub async fn all(target: &dyn Target) -> Result<Vec<Epoch>> {
    let mut epochs = Vec::new();
    for Listed { name, .. } in target.list(names::EPOCHS).await? {
        epochs.push(Epoch::decode(&name, &target.get(&name).await?)?);
    }
    epochs.sort_by_key(|epoch| epoch.epoch);
    Ok(epochs)
}

/// The history that ends with an epoch.
pub fn timeline(epochs: &[Epoch], last: u32) -> Timeline {
    let mut stretches = Vec::new();
    let (mut number, mut to, mut until) = (last, Lsn::MAX, Lsn::MAX);
    while let Some(epoch) = epochs.iter().find(|epoch| epoch.epoch == number) {
        // A history that was left before the epoch that it came from had begun there has nothing of that one.
        if epoch.begins < to || epoch.begins < until {
            stretches.push(Stretch { epoch: number, from: epoch.begins, to, until });
        }
        to = to.min(epoch.begins);
        until = until.min(epoch.started);
        if epoch.parent >= number {
            break;
        }
        number = epoch.parent;
    }
    stretches.reverse();
    Timeline { stretches }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn epoch(epoch: u32, parent: u32, begins: u64) -> Epoch {
        Epoch { epoch, parent, begins: Lsn(begins), started: Lsn(begins), claimer: 7, claimed_us: 1 }
    }

    #[test]
    fn what_the_archive_had_not_reached_at_a_crash_belongs_to_the_history() {
        // A backup of epoch 1 ended at 130 when the archive had 100; the crash left log up to 140, which epoch 2 sent.
        let all = [epoch(1, 0, 8), Epoch { started: Lsn(140), ..epoch(2, 1, 100) }];
        let history = timeline(&all, 2);
        assert!(history.covers(1, Lsn(130)) && history.covers(1, Lsn(140)) && !history.covers(1, Lsn(141)));
        assert_eq!(history.stretches.iter().map(|s| (s.epoch, s.from.0, s.to.0)).next_back(), Some((2, 100, u64::MAX)));
    }

    #[test]
    fn an_abandoned_epoch_is_no_part_of_the_history_that_left_it() {
        // 1 -> 2 (a crash at 100); 2 -> 3 (a restore to 150, while 2 went on); 2 -> 4 (a restore to 120).
        let all = [epoch(1, 0, 8), epoch(2, 1, 100), epoch(3, 2, 150), epoch(4, 2, 120)];
        let of = |last| timeline(&all, last).stretches.iter().map(|s| (s.epoch, s.from.0, s.to.0)).collect::<Vec<_>>();
        assert_eq!(of(3), [(1, 8, 100), (2, 100, 150), (3, 150, u64::MAX)]);
        assert_eq!(of(4), [(1, 8, 100), (2, 100, 120), (4, 120, u64::MAX)]);
        assert!(timeline(&all, 4).covers(2, Lsn(120)) && !timeline(&all, 4).covers(2, Lsn(121)));
        assert!(!timeline(&all, 4).covers(3, Lsn(200)));
    }

    #[test]
    fn an_epoch_reads_back_and_a_flipped_byte_is_found() {
        let text = epoch(3, 2, 150).encode();
        assert_eq!(Epoch::decode("e", text.as_bytes()).expect("whole"), epoch(3, 2, 150));
        for at in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 4;
            assert!(Epoch::decode("e", &bytes).is_err(), "byte {at}");
        }
    }
}
