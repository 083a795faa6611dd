//! Lists the backups of a repository and removes those that a retention rule does not keep.

use crate::clock;
use crate::error::{BackupError, Result};
use crate::manifest::Manifest;
use crate::names;
use crate::target::Target;
use clearway_storage::ids::Lsn;
use clearway_storage::seams::BoxFuture;
use std::collections::BTreeSet;

/// The backups of a repository, oldest first.
///
/// # Errors
/// A damaged manifest; the target's.
pub async fn manifests(target: &dyn Target) -> Result<Vec<Manifest>> {
    let mut all = Vec::new();
    for object in target.list(names::BACKUPS).await? {
        if object.name.ends_with("/manifest") {
            all.push(Manifest::decode(&object.name, &target.get(&object.name).await?)?);
        }
    }
    all.sort_by_key(|manifest| (manifest.begun_us, manifest.id.clone()));
    Ok(all)
}

/// What to keep: the newest backup of each of the last so many days and weeks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keep {
    /// Days.
    pub days: i64,
    /// Weeks.
    pub weeks: i64,
}

impl Keep {
    /// Reads `7d,4w`.
    ///
    /// # Errors
    /// Another text.
    pub fn parse(text: &str) -> Result<Keep> {
        let mut keep = Keep::default();
        for part in text.split(',').map(str::trim) {
            let number = |unit: char| part.strip_suffix(unit).and_then(|n| n.parse::<i64>().ok()).filter(|n| *n > 0);
            match (number('d'), number('w')) {
                (Some(days), _) => keep.days = days,
                (_, Some(weeks)) => keep.weeks = weeks,
                _ => return Err(BackupError::Refused(format!("expected days and weeks like 7d,4w, found {text}"))),
            }
        }
        Ok(keep)
    }

    /// The backups to keep: by the rule, the newest one, and whatever these rest on.
    pub fn choose(self, all: &[Manifest], now_us: i64) -> BTreeSet<String> {
        let today = clock::day(now_us);
        let (mut days, mut weeks) = (BTreeSet::new(), BTreeSet::new());
        let mut kept: BTreeSet<String> = all.last().map(|manifest| manifest.id.clone()).into_iter().collect();
        for manifest in all.iter().rev() {
            let day = clock::day(manifest.begun_us);
            let by_day = today - day < self.days && days.insert(day);
            let by_week = (today - day) / 7 < self.weeks && weeks.insert((today - day) / 7);
            if by_day || by_week {
                kept.insert(manifest.id.clone());
            }
        }
        // Newest first: a parent is older than what rests on it.
        for manifest in all.iter().rev() {
            if kept.contains(&manifest.id) && !manifest.is_full() {
                kept.insert(manifest.parent.clone());
            }
        }
        kept
    }
}

/// What expiring removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expired {
    /// Backups.
    pub backups: Vec<String>,
    /// Backups that were never finished.
    pub unfinished: Vec<String>,
    /// Objects of archived log.
    pub log_objects: usize,
    /// Bytes.
    pub bytes: u64,
}

/// A backup without a manifest that began so long ago is not being taken any more.
const UNFINISHED_US: i64 = 86_400_000_000;

/// Removes the backups that `keep` does not ask for, what was left unfinished for a day, and the archived log that no kept backup
/// needs. The manifest goes first, so that half of a backup is none.
///
/// # Errors
/// The target's; what is left is removed by the next call.
pub fn expire(target: &dyn Target, keep: Keep, now_us: i64) -> BoxFuture<'_, Result<Expired>> {
    Box::pin(remove_expired(target, keep, now_us))
}

async fn remove_expired(target: &dyn Target, keep: Keep, now_us: i64) -> Result<Expired> {
    let all = manifests(target).await?;
    let kept = keep.choose(&all, now_us);
    let mut expired = Expired::default();
    // What rests on others goes before them.
    for manifest in all.iter().rev().filter(|manifest| !kept.contains(&manifest.id)) {
        target.remove(&names::manifest(&manifest.id)).await?;
        expired.backups.push(manifest.id.clone());
    }
    let oldest_stamp = clock::stamp(now_us - UNFINISHED_US);
    for object in target.list(names::BACKUPS).await? {
        let Some(id) = object.name[names::BACKUPS.len()..].split('/').next() else { continue };
        let finished = all.iter().any(|manifest| manifest.id == id);
        if finished && kept.contains(id) || !finished && id >= oldest_stamp.as_str() {
            continue;
        }
        target.remove(&object.name).await?;
        expired.bytes += object.bytes;
        if !finished && expired.unfinished.last().is_none_or(|last| last != id) {
            expired.unfinished.push(id.to_owned());
        }
    }
    // Without any backup the log is all there is.
    let needed = all.iter().filter(|manifest| kept.contains(&manifest.id)).map(|manifest| manifest.scan).min();
    for object in target.list(names::LOG).await? {
        let below = names::range(&object.name).is_some_and(|(_, to)| to <= needed.unwrap_or(Lsn::ZERO));
        if below {
            target.remove(&object.name).await?;
            expired.log_objects += 1;
            expired.bytes += object.bytes;
        }
    }
    Ok(expired)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn backup(id: &str, day: i64, parent: &str) -> Manifest {
        Manifest { id: id.into(), begun_us: day * 86_400_000_000, parent: parent.into(), ..Manifest::default() }
    }

    #[test]
    fn what_a_kept_backup_rests_on_is_kept() {
        let all =
            [backup("a", 70, ""), backup("b", 90, ""), backup("c", 98, "b"), backup("d", 99, ""), backup("e", 99, "d")];
        let kept = |text: &str| {
            let chosen = Keep::parse(text).expect("well formed").choose(&all, 100 * 86_400_000_000);
            chosen.into_iter().collect::<Vec<_>>().join("")
        };
        assert_eq!(kept("1d"), "de");
        assert_eq!(kept("3d"), "bcde");
        assert_eq!(kept("1d,2w"), "bde");
        assert_eq!(kept("1d,5w"), "abde");
        assert!(Keep::parse("7").is_err() && Keep::parse("0d").is_err() && Keep::parse("7d;4w").is_err());
    }
}
