//! Plans a restore: from a goal (a moment, a position, a name) to a backup, the backups on which it rests, the log that follows it, and the
//! position where the log is cut.
//!
//! # Life of a plan
//! the history (the newest epoch, or the one that was asked for) -> its backups, newest first -> for each: read the log from the
//! backup's `scan` to the goal. The first backup whose end is at or before the goal is used; by then the log up to the goal has been read
//! and is whole (BKP-4).

use crate::clock;
use crate::epochs::{self, Timeline};
use crate::error::{BackupError, Result};
use crate::expire;
use crate::manifest::Manifest;
use crate::names;
use crate::pieces::{self, Joined, Piece};
use crate::take::known;
use crate::target::{Listed, Target};
use clearway_storage::backup::{Moment, Stream};
use clearway_storage::ids::Lsn;
use clearway_storage::seams::BoxFuture;

/// Where a restore goes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Goal {
    /// As far as there is log.
    End,
    /// The end of one backup, without any log beyond it.
    Backup(String),
    /// Every commit with this LSN or a lower one.
    Lsn(Lsn),
    /// Every commit before the first one that is later than this, us since 1970.
    Time(i64),
    /// A restore point.
    Name(String),
}

/// A commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastCommit {
    /// Its LSN.
    pub lsn: Lsn,
    /// Its wall clock, us since 1970.
    pub wall_us: i64,
}

/// What is to be restored.
#[derive(Clone, Debug)]
pub struct Plan {
    /// A full backup, and those that rest on it, in order; the last one is restored.
    pub chain: Vec<Manifest>,
    /// The log that follows, its own included.
    pub pieces: Vec<Piece>,
    /// The log is cut here: the end of a record.
    pub cut: Lsn,
    /// The last commit before the cut, if there is one behind the place where recovery begins to read.
    pub last_commit: Option<LastCommit>,
    /// The log changes pages up to this one.
    pub page_max: u32,
    /// No epoch that the repository knows is greater.
    pub epoch: u32,
    /// The epoch of the history that was followed.
    pub history: u32,
    /// Epochs with log that this history leaves out: of databases that were restored from here, or go on beside them.
    pub others: Vec<u32>,
}

/// What stands in a repository.
pub struct Contents {
    /// Backups, oldest first.
    pub backups: Vec<Manifest>,
    /// Epochs of the archive.
    pub epochs: Vec<epochs::Epoch>,
    /// Objects of archived log.
    pub log: Vec<Listed>,
}

impl Contents {
    /// Reads what stands there.
    ///
    /// # Errors
    /// Nothing was ever put there; a damaged manifest; the target's.
    pub fn read(target: &dyn Target) -> BoxFuture<'_, Result<Contents>> {
        Box::pin(async move {
            known(target).await?;
            let backups = expire::manifests(target).await?;
            let (epochs, log) = (epochs::all(target).await?, target.list(names::LOG).await?);
            Ok(Contents { backups, epochs, log })
        })
    }

    /// The greatest epoch of anything.
    pub fn epoch_max(&self) -> u32 {
        let of_backups = self.backups.iter().map(|manifest| manifest.epoch);
        self.epochs.iter().map(|epoch| epoch.epoch).chain(of_backups).max().unwrap_or(0)
    }

    /// Epochs with archived log that is no part of a history.
    pub fn others(&self, history: &Timeline) -> Vec<u32> {
        let left_out = |epoch: &&epochs::Epoch| {
            let stretch = history.stretches.iter().find(|stretch| stretch.epoch == epoch.epoch);
            let limit = stretch.map_or(epoch.begins, |stretch| stretch.to);
            let of_epoch = self.log.iter().filter(|object| names::epoch_of(&object.name) == Some(epoch.epoch));
            of_epoch.filter_map(|object| names::range(&object.name)).any(|(_, to)| to > limit)
        };
        self.epochs.iter().filter(left_out).map(|epoch| epoch.epoch).collect()
    }

    /// A backup and what it rests on, the full one first.
    ///
    /// # Errors
    /// One of them is missing.
    pub fn chain(&self, last: &Manifest) -> Result<Vec<Manifest>> {
        let mut chain = vec![last.clone()];
        while let Some(first) = chain.last().filter(|first| !first.is_full()) {
            let parent = self.backups.iter().find(|manifest| manifest.id == first.parent);
            let missing =
                || BackupError::damaged(&first.id, format!("backup {}, on which it rests", first.parent), "none");
            chain.push(parent.ok_or_else(missing)?.clone());
        }
        chain.reverse();
        Ok(chain)
    }

    /// The log that follows a backup along a history: its own, and the archive's where the history has the backup.
    pub fn pieces(&self, backup: &Manifest, history: &Timeline) -> Vec<Piece> {
        let mut all = pieces::of_backup(backup);
        if history.covers(backup.epoch, backup.end) {
            all.extend(pieces::of_timeline(&self.log, history));
        }
        all
    }
}

/// Where the log is to be cut, and what was met on the way.
struct Cut {
    at: Lsn,
    last_commit: Option<LastCommit>,
    page_max: u32,
}

/// Makes a plan. `history` asks for the log of one epoch and those before it; none: the newest.
///
/// # Errors
/// There is no backup, or none early enough; the goal is not reached; damage.
pub fn plan<'a>(target: &'a dyn Target, goal: &'a Goal, history: Option<u32>) -> BoxFuture<'a, Result<Plan>> {
    Box::pin(make_plan(target, goal, history))
}

async fn make_plan(target: &dyn Target, goal: &Goal, history: Option<u32>) -> Result<Plan> {
    let contents = Contents::read(target).await?;
    let newest = contents.epochs.iter().map(|epoch| epoch.epoch).max().unwrap_or(0);
    let timeline = epochs::timeline(&contents.epochs, history.unwrap_or(newest));
    if let Some(asked) = history.filter(|asked| timeline.last() != *asked) {
        return Err(BackupError::Refused(format!("{} has no epoch {asked}", target.place())));
    }
    let mut why = BackupError::Refused(format!("{} holds no backup that could be restored", target.place()));
    for backup in contents.backups.iter().rev() {
        let of_history = timeline.stretches.is_empty() || timeline.covers(backup.epoch, backup.end);
        let wanted = match goal {
            Goal::Backup(id) => backup.id == *id,
            Goal::Lsn(lsn) => of_history && backup.end <= *lsn,
            Goal::Time(us) => of_history && backup.ended_us <= *us,
            Goal::End | Goal::Name(_) => of_history,
        };
        if !wanted {
            continue;
        }
        let pieces = match goal {
            Goal::Backup(_) => pieces::of_backup(backup),
            _ => contents.pieces(backup, &timeline),
        };
        match find_cut(target, backup, pieces.clone(), goal).await {
            Ok(cut) => {
                let Cut { at, last_commit, page_max } = cut;
                let chain = contents.chain(backup)?;
                let epoch = contents.epoch_max();
                let on_it = timeline.covers(backup.epoch, backup.end);
                let history = if on_it { timeline.last() } else { backup.epoch };
                let others = if on_it { contents.others(&timeline) } else { Vec::new() };
                return Ok(Plan { chain, pieces, cut: at, last_commit, page_max, epoch, history, others });
            }
            // An older backup may lie before the name.
            Err(error @ BackupError::Refused(_)) if matches!(goal, Goal::Name(_)) => why = error,
            Err(error) => return Err(error),
        }
    }
    if let (Goal::Time(us), Some(first)) = (goal, contents.backups.first()) {
        let (asked, ended) = (clock::show(*us), clock::show(first.ended_us));
        return Err(BackupError::Refused(format!("{asked} lies before the end of the oldest backup, {ended}")));
    }
    if let (Goal::Lsn(lsn), Some(first)) = (goal, contents.backups.first())
        && first.end > *lsn
    {
        let what = format!("LSN {lsn} lies before the end of the oldest backup, {}", first.end);
        return Err(BackupError::Refused(what));
    }
    if let (Goal::Backup(id), true) = (goal, !contents.backups.is_empty()) {
        return Err(BackupError::Refused(format!("{} holds no backup {id}", target.place())));
    }
    Err(why)
}

/// Reads the log from where recovery of `backup` begins to read, to the goal.
async fn find_cut(target: &dyn Target, backup: &Manifest, pieces: Vec<Piece>, goal: &Goal) -> Result<Cut> {
    let mut log = Joined::new(target, backup.database, pieces, backup.scan);
    let mut stream = Stream::new(backup.scan, &target.place());
    let mut cut = Cut { at: backup.scan, last_commit: None, page_max: 0 };
    loop {
        while let Some(record) = stream.step()? {
            let passed = record.range.end > backup.end;
            match (goal, &record.moment) {
                (Goal::Lsn(lsn), _) if record.range.end > *lsn => return reached(cut, backup, goal),
                (Goal::Time(us), Moment::Commit(wall)) if wall > us && passed => return reached(cut, backup, goal),
                _ => {}
            }
            cut.at = record.range.end;
            cut.page_max = cut.page_max.max(record.page_max.unwrap_or(0));
            match (goal, record.moment) {
                (_, Moment::Commit(wall_us)) => cut.last_commit = Some(LastCommit { lsn: record.range.end, wall_us }),
                (Goal::Name(name), Moment::Point(point)) if point.name == *name => return reached(cut, backup, goal),
                _ => {}
            }
        }
        match log.next().await? {
            Some(bytes) => stream.push(&bytes),
            None => break,
        }
    }
    if let Some(next) = log.hole() {
        let what = format!("the log from LSN {} to {next} is missing", log.position());
        return Err(BackupError::damaged(&target.place(), "the log without a hole", what));
    }
    if cut.at < backup.end {
        let found = format!("records up to {}", cut.at);
        return Err(BackupError::damaged(&backup.id, format!("log up to LSN {}", backup.end), found));
    }
    let last = cut.last_commit.map_or_else(|| "none".to_owned(), |commit| clock::show(commit.wall_us));
    let beyond = |what: String| {
        let ends = format!("the log ends at LSN {}, the last commit in it is of {last}", cut.at);
        Err(BackupError::Refused(format!("{what}: {ends} (restore without --to takes all of it)")))
    };
    match goal {
        Goal::End | Goal::Backup(_) => Ok(cut),
        Goal::Lsn(lsn) if *lsn == cut.at => Ok(cut),
        Goal::Lsn(lsn) => beyond(format!("LSN {lsn} is not reached")),
        Goal::Time(us) => {
            beyond(format!("no commit later than {} shows that all before it are there", clock::show(*us)))
        }
        Goal::Name(name) => beyond(format!("there is no restore point \"{name}\" after backup {}", backup.id)),
    }
}

/// BAK-3: a copy is whole only with all of its log.
fn reached(cut: Cut, backup: &Manifest, goal: &Goal) -> Result<Cut> {
    if cut.at >= backup.end {
        return Ok(cut);
    }
    let what = match goal {
        Goal::Name(name) => format!("restore point \"{name}\""),
        _ => format!("LSN {}", cut.at),
    };
    Err(BackupError::Refused(format!("{what} lies before the end of backup {}, {}", backup.id, backup.end)))
}
