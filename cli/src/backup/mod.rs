//! `clearway backup` and `clearway restore`.
//!
//! # Structure
//! `args` (the parsed command line), `place` (targets by name), `wire` (a server as a source), `show` (progress and lists). The backup
//! itself is made by the crate `clearway_backup`.

mod args;
mod place;
pub mod show;
mod wire;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clearway_backup::expire::{Keep, expire, manifests};
use clearway_backup::plan::{Contents, Goal, plan};
use clearway_backup::source::{Source, at_rest};
use clearway_backup::take::{TakeOptions, known, take};
use clearway_backup::target::{Target, open};
use clearway_backup::verify::verify;
use clearway_backup::{clock, restore};
use clearway_base::vfs::{RealVfs, Vfs};
use clearway_base::waits::wall_us;

pub use args::{Command, From, parse_backup, parse_restore};

/// Does it.
///
/// # Errors
/// What keeps it from being done, in words.
pub fn run(command: &Command) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    runtime.block_on(dispatch(command))
}

async fn dispatch(command: &Command) -> Result<(), String> {
    match command {
        Command::Take { target, from, incremental, resume, rate, share } => {
            let options = TakeOptions {
                incremental: *incremental,
                resume: *resume,
                rate_bytes_per_s: *rate,
                share_percent: *share,
                version: env!("CARGO_PKG_VERSION").to_owned(),
            };
            let place = place::to_write(&files(), target).await.map_err(words)?;
            let said = take_from(&*place, from, &options).await?;
            // Standard output may be the target.
            if target == "-" {
                eprintln!("{said}")
            } else {
                println!("{said}")
            }
            Ok(())
        }
        Command::List { target } => {
            let source = place::to_read(&files(), target, &scratch("list")).await.map_err(words)?;
            let all = async {
                known(source.target()).await?;
                manifests(source.target()).await
            };
            let all = all.await.map_err(words);
            source.close().await;
            show::backups(&all?);
            Ok(())
        }
        Command::Verify { target, open_it } => verify_all(target, *open_it).await,
        Command::Expire { target, keep } => expire_some(&*open(&files(), target, true).map_err(words)?, *keep).await,
        Command::Restore { source, dir, goal, epoch } => {
            // On the disk that has room for the database, too.
            let mut spool = dir.clone().into_os_string();
            spool.push(".incoming");
            let source = place::to_read(&files(), source, Path::new(&spool)).await.map_err(words)?;
            let restored = restore_to(source.target(), dir, goal, *epoch).await;
            source.close().await;
            restored
        }
        Command::Histories { source } => {
            let source = place::to_read(&files(), source, &scratch("list")).await.map_err(words)?;
            let contents = Contents::read(source.target()).await.map_err(words);
            source.close().await;
            show::histories(&contents?);
            Ok(())
        }
    }
}

fn words(error: clearway_backup::BackupError) -> String {
    error.to_string()
}

fn files() -> Arc<dyn Vfs> {
    Arc::new(RealVfs::inline())
}

/// A name in the directory for temporary files.
fn scratch(what: &str) -> PathBuf {
    std::env::temp_dir().join(format!("clearway-{what}-{}", std::process::id()))
}

async fn take_from(target: &dyn Target, from: &From, options: &TakeOptions) -> Result<String, String> {
    let mut source: Box<dyn Source> = match from {
        From::Server(url) => Box::new(wire::Server::connect(url.as_deref()).await?),
        From::Data(dir) => Box::new(at_rest(files(), dir).await.map_err(words)?),
    };
    let mut bar = show::Bar::new("backup", show::bytes);
    let taken =
        take(&mut *source, target, options, &mut |progress| bar.show(progress.done_bytes, progress.all_bytes)).await;
    bar.end();
    let manifest = taken.map_err(words)?;
    Ok(format!(
        "backup {}: {} pages, {} kept, ends at LSN {} of epoch {}, {}",
        manifest.id,
        manifest.pages,
        show::bytes(manifest.bytes()),
        manifest.end,
        manifest.epoch,
        clock::show(manifest.ended_us)
    ))
}

async fn verify_all(name: &str, open_it: bool) -> Result<(), String> {
    let source = place::to_read(&files(), name, &scratch("stream")).await.map_err(words)?;
    let verified = verify_source(source.target(), open_it).await;
    source.close().await;
    verified
}

async fn verify_source(target: &dyn Target, open_it: bool) -> Result<(), String> {
    let verified = verify(target).await.map_err(words)?;
    for damage in &verified.damage {
        eprintln!("{damage}");
    }
    println!(
        "{}, {} objects, {}: {} pages and {} log records are whole",
        show::count(verified.backups),
        verified.objects,
        show::bytes(verified.bytes),
        verified.pages,
        verified.records
    );
    for (epoch, end) in &verified.archives {
        println!("the archive of epoch {epoch} is complete up to LSN {end}");
    }
    match verified.damage.len() {
        0 => {}
        1 => return Err("1 place is damaged".to_owned()),
        places => return Err(format!("{places} places are damaged")),
    }
    if !open_it {
        return Ok(());
    }
    if verified.backups == 0 {
        return Err(format!("{} holds no backup", target.place()));
    }
    let scratch = scratch("verify");
    let restored = restore_to(target, &scratch, &Goal::End, None).await;
    let checked = restored.and_then(|()| crate::check::check(&scratch));
    crate::demo::remove(&scratch);
    checked
}

async fn expire_some(target: &dyn Target, keep: Keep) -> Result<(), String> {
    known(target).await.map_err(words)?;
    let expired = expire(target, keep, wall_us()).await.map_err(words)?;
    for id in &expired.backups {
        println!("removed backup {id}");
    }
    for id in &expired.unfinished {
        println!("removed {id}, which was never finished");
    }
    println!("removed {} objects of archived log; {} freed", expired.log_objects, show::bytes(expired.bytes));
    Ok(())
}

async fn restore_to(source: &dyn Target, dir: &Path, goal: &Goal, epoch: Option<u32>) -> Result<(), String> {
    let plan = plan(source, goal, epoch).await.map_err(words)?;
    let mut bar = show::Bar::new("restore", show::bytes);
    let mut tell = |progress: restore::Progress| bar.show(progress.done_bytes, progress.all_bytes);
    let restored = restore::restore(source, &plan, &files(), dir, &mut tell).await;
    bar.end();
    restored.map_err(words)?;
    let backup = plan.chain.last().map_or("", |manifest| manifest.id.as_str());
    println!("restored backup {backup} and the log up to LSN {} into {}", plan.cut, dir.display());
    match plan.last_commit {
        Some(commit) => println!("the last commit is LSN {}, {}", commit.lsn, clock::show(commit.wall_us)),
        None => println!("no commit lies between the backup's checkpoint and there"),
    }
    if let (None, [one, rest @ ..]) = (epoch, &*plan.others) {
        let rest: String = rest.iter().map(|epoch| format!(", {epoch}")).collect();
        println!("this is the history of epoch {}; there is log of others: --epoch {one}{rest}", plan.history);
    }
    println!("it opens in epoch {}", plan.epoch + 1);
    Ok(())
}
