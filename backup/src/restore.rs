//! Carries out a plan: makes a directory that opens as the database was at the plan's goal.

use crate::archive::{LOCAL, Local};
use crate::error::{BackupError, Result};
use crate::manifest::{Manifest, Part};
use crate::names;
use crate::object::{Kind, sum, unpack};
use crate::pieces::Joined;
use crate::plan::Plan;
use crate::target::{Directory, Target};
use clearway_base::vfs::Vfs;
use clearway_storage::backup::{Rebuild, Start};
use clearway_storage::ids::Lsn;
use clearway_storage::seams::BoxFuture;
use std::path::Path;
use std::sync::Arc;

/// How far it has come, in bytes of objects that were read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes read.
    pub done_bytes: u64,
    /// Bytes that there are.
    pub all_bytes: u64,
}

/// An object of a backup, checked against its manifest (BKP-2).
///
/// # Errors
/// Damage; the target's.
pub async fn part(target: &dyn Target, part: &Part) -> Result<Vec<u8>> {
    let bytes = target.get(&part.name).await?;
    let found = sum(&bytes);
    if found == part.sum {
        return Ok(bytes);
    }
    Err(BackupError::damaged(
        &part.name,
        format!("{} bytes with sum {}", part.bytes, part.sum),
        format!("{} with {found}", bytes.len()),
    ))
}

/// What a backup's copy began with.
///
/// # Errors
/// Damage; the target's.
pub async fn start_of(target: &dyn Target, manifest: &Manifest) -> Result<Start> {
    let first = names::Beginning { id: manifest.id.clone(), resumed: None }.start();
    let listed = manifest.parts.iter().find(|part| names::of_any_beginning(&first, &part.name));
    let listed = listed.ok_or_else(|| BackupError::damaged(&manifest.id, "an object named start", "none"))?;
    Ok(Start::decode(&part(target, listed).await?)?)
}

/// Restores into `dir`, which is empty or does not exist; the plan has read all log that is needed (BKP-4). `tell` hears how far it has come.
///
/// # Errors
/// Damage; the target's; the directory's. What was written until then stays, and is no database.
pub fn restore<'a>(
    target: &'a dyn Target,
    plan: &'a Plan,
    vfs: &'a Arc<dyn Vfs>,
    dir: &'a Path,
    tell: &'a mut (dyn FnMut(Progress) + Send),
) -> BoxFuture<'a, Result<()>> {
    Box::pin(rebuild(target, plan, vfs, dir, tell))
}

async fn rebuild(
    target: &dyn Target,
    plan: &Plan,
    vfs: &Arc<dyn Vfs>,
    dir: &Path,
    tell: &mut (dyn FnMut(Progress) + Send),
) -> Result<()> {
    let last = plan.chain.last().ok_or_else(|| BackupError::refused("a plan without a backup"))?;
    let mut rebuild = Rebuild::begin(vfs.clone(), dir, start_of(target, last).await?).await?;
    let mut progress = Progress::default();
    let of_pages = |part: &&Part| part.name.contains("/pages/");
    let all: Vec<&Part> = plan.chain.iter().flat_map(|manifest| manifest.parts.iter().filter(of_pages)).collect();
    progress.all_bytes = all.iter().map(|part| part.bytes).sum::<u64>() + (plan.cut.0 - last.scan.0);
    for listed in all {
        let object = part(target, listed).await?;
        let (header, pages) = unpack(&listed.name, Kind::Pages, &object)?;
        if header.database != last.database {
            let expected = format!("pages of database {:016x}", last.database);
            return Err(BackupError::damaged(&listed.name, expected, format!("{:016x}", header.database)));
        }
        rebuild.pages(&pages).await?;
        progress.done_bytes += listed.bytes;
        tell(progress);
    }
    rebuild.reach(plan.page_max).await?;
    let mut log = Joined::new(target, last.database, plan.pieces.clone(), last.scan);
    while rebuild.position() < plan.cut {
        let at = rebuild.position();
        let Some(bytes) = log.next().await? else {
            return Err(BackupError::damaged(
                &target.place(),
                format!("log up to LSN {}", plan.cut),
                format!("its end at {at}"),
            ));
        };
        let left = usize::try_from(plan.cut.0 - at.0).unwrap_or(usize::MAX);
        let now = bytes.get(..left).unwrap_or(&bytes);
        rebuild.log(now).await?;
        progress.done_bytes += now.len() as u64;
        tell(progress);
    }
    // What it archives will follow the history that it came from.
    let local = Local { claimer: 0, epoch: plan.history };
    Directory::new(vfs.clone(), dir).put(LOCAL, local.encode().as_bytes()).await?;
    rebuild.finish(plan.epoch).await?;
    Ok(())
}

/// Bytes of the log that a plan reads.
pub fn log_bytes(plan: &Plan) -> u64 {
    plan.cut.0 - plan.chain.last().map_or(Lsn::ZERO, |last| last.scan).0
}
