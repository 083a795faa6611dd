//! One changed byte anywhere in a repository, or in a backup in a single file: `verify` finds the damage, and says where it is.
//!
//! # Life of a run
//! Several openings of a small database leave a repository (full and incremental backups of two epochs, archived log) and a backup in one
//! file -> both are read into memory -> byte after byte is changed, verified, put back.
//!
//! # Invariants
//! - DMG-1: if one bit of any byte of an object of a repository is flipped, apart from what no manifest names, `verify` names that object or refuses the repository.
//! - DMG-2: if one bit of any byte of a backup in a single file is flipped, the file is refused, or `verify` finds damage.

use super::backups::KEEP;
use super::sweep::{Running, Stopper, World};
use super::txns::undo_loser;
use super::workload::Size;
use clearway_backup::plan::Contents;
use clearway_backup::take::{TakeOptions, take};
use clearway_backup::target::file::{self, StreamFile};
use clearway_backup::target::{Directory, Listed};
use clearway_backup::{BackupError, Target, names, verify};
use clearway_base::sync::block_on;
use clearway_base::testkit::{Sim, SimOptions};
use clearway_base::vfs::{FileKind, IoBuf, MemVfs, OpenHow, Vfs, VfsFile};
use clearway_storage::seams::BoxFuture;
use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::{Arc, Mutex};

type Bytes = BTreeMap<String, Vec<u8>>;

/// Objects in memory, which change while a reader uses them.
struct Objects(Mutex<Bytes>);

fn never<'a>() -> BoxFuture<'a, Result<(), BackupError>> {
    Box::pin(async { Err(BackupError::Refused("only read".into())) })
}

impl Target for Objects {
    fn place(&self) -> String {
        "memory".into()
    }

    fn put<'a>(&'a self, _: &'a str, _: &'a [u8]) -> BoxFuture<'a, Result<(), BackupError>> {
        never()
    }

    fn put_new<'a>(&'a self, _: &'a str, _: &'a [u8]) -> BoxFuture<'a, Result<(), BackupError>> {
        never()
    }

    fn get<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Vec<u8>, BackupError>> {
        let found = self.0.lock().expect("objects").get(name).cloned();
        Box::pin(async move { found.ok_or_else(|| BackupError::NotFound(name.into())) })
    }

    fn list<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, Result<Vec<Listed>, BackupError>> {
        let all = self.0.lock().expect("objects");
        let all = all.iter().filter(|(name, _)| name.starts_with(prefix));
        let found = all.map(|(name, bytes)| Listed { name: name.clone(), bytes: bytes.len() as u64 }).collect();
        Box::pin(async move { Ok(found) })
    }

    fn remove<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<(), BackupError>> {
        never()
    }
}

/// A repository and a backup in one file, byte by byte.
pub struct Kept {
    repository: Bytes,
    file: Vec<u8>,
}

/// The smallest database that has it all: a bit of everything, so that verifying takes milliseconds.
const SMALL: Size = Size { tasks: 1, txns: 3, keys: 6, value_bytes: 60, chain_bytes: 9000 };
const TARGET: &str = "/target";
const FILE: &str = "/one.backup";

impl Kept {
    /// Two lives with backups and archive, of which the first loses its power near its end.
    ///
    /// # Errors
    /// What is wrong before any byte was changed.
    pub fn new(seed: u64) -> Result<Kept, String> {
        let mut world = World::new(seed, SMALL);
        world.live_well(KEEP)?;
        let points = world.disk.points();
        let mut world = World::new(seed, SMALL);
        world.live(KEEP, Stopper::Power(points - 20)).map_err(|ended| format!("{ended:?}"))?;
        world.live_well(KEEP)?;
        let sim = Sim::with_options(seed, SimOptions { steps_max: 10_000_000 });
        let disk = world.disk.clone();
        sim.block_on(async move {
            let kept = async {
                let vfs: Arc<dyn Vfs> = Arc::new(disk.clone());
                let (running, recovered) = Running::open(&disk).await?;
                for loser in recovered.losers {
                    undo_loser(&running.store, &running.book, loser).await?;
                }
                let target = file::create(vfs.clone(), Path::new(FILE)).await?;
                let mut source = running.store.clone();
                take(&mut source, &target, &TakeOptions::default(), &mut |_| {}).await?;
                running.close().await?;
                let repository = Directory::new(vfs.clone(), Path::new(TARGET));
                let mut objects = Bytes::new();
                let contents = Contents::read(&repository).await?;
                let named: HashSet<&str> =
                    contents.backups.iter().flat_map(|manifest| &manifest.parts).map(|part| &*part.name).collect();
                for object in repository.list("").await? {
                    // What no manifest names, `verify` does not read (RSM-4).
                    let of_backup = object.name.starts_with(names::BACKUPS) && !object.name.ends_with("/manifest");
                    if of_backup && !named.contains(&*object.name) {
                        continue;
                    }
                    objects.insert(object.name.clone(), repository.get(&object.name).await?);
                }
                let file = Directory::new(vfs, Path::new("/")).get(&FILE[1..]).await?;
                Ok::<_, BackupError>(Kept { repository: objects, file })
            };
            kept.await.map_err(|error| error.to_string())
        })
        .map_err(|stop| stop.to_string())?
    }

    /// What a repository must have for the test to mean anything: each kind of object, two epochs.
    ///
    /// # Errors
    /// One of them is missing.
    pub fn has_it_all(&self) -> Result<(), String> {
        for part in
            ["repository", "-full/manifest", "-incremental/manifest", "/begun", "/start", "/pages/", "/log/", "log/"]
        {
            if !self.repository.keys().any(|name| name.contains(part)) {
                return Err(format!("there is no {part} in {:?}", self.repository.keys()));
            }
        }
        match self.repository.keys().filter(|name| name.starts_with("epochs/")).count() {
            0 | 1 => Err(format!("there are no two epochs in {:?}", self.repository.keys())),
            _ => Ok(()),
        }
    }

    /// DMG-1. Of the bodies of packed objects every `step`th byte is changed, of all else every byte.
    ///
    /// # Errors
    /// A change that was not found.
    pub fn repository_flips(&self, step: usize) -> Result<u64, String> {
        let target = Objects(Mutex::new(self.repository.clone()));
        whole(&target)?;
        let mut looked = 0;
        // What stops `verify` when it is damaged is changed alone; of the others one byte of each at a time.
        let (alone, together): (Vec<_>, Vec<_>) = self.repository.iter().partition(|(name, _)| {
            name.ends_with("/manifest") || name.starts_with("epochs/") || name.as_str() == "repository"
        });
        for (name, bytes) in alone {
            for (at, bit) in (0..bytes.len()).flat_map(|at| (0..8).map(move |bit| (at, bit))) {
                target.flip(name, at, bit);
                let found = found(&target);
                target.flip(name, at, bit);
                looked += 1;
                if found.is_empty() {
                    return Err(format!(
                        "DMG-1: bit {bit} of byte {at} of {name} was flipped, and verify found nothing"
                    ));
                }
            }
        }
        let longest = together.iter().map(|(_, bytes)| bytes.len()).max().unwrap_or(0);
        for at in (0..longest).filter(|at| *at < HEAD || *at % step == 0) {
            let here: Vec<&String> =
                together.iter().filter(|(_, bytes)| at < bytes.len()).map(|(name, _)| *name).collect();
            here.iter().for_each(|name| target.flip(name, at, at % 8));
            let said = found(&target);
            here.iter().for_each(|name| target.flip(name, at, at % 8));
            looked += here.len() as u64;
            if let Some(missed) = here.iter().find(|name| !said.iter().any(|damage| damage.contains(name.as_str()))) {
                return Err(format!("DMG-1: byte {at} of {missed} was changed, and verify names only {said:?}"));
            }
        }
        whole(&target)?;
        Ok(looked)
    }

    /// DMG-2. The same for the backup in one file.
    ///
    /// # Errors
    /// A change that was not found.
    pub fn file_flips(&self, step: usize) -> Result<u64, String> {
        let vfs: Arc<dyn Vfs> = Arc::new(MemVfs::new());
        let write = |bytes: &[u8], at: usize| {
            block_on(async {
                let file: Arc<dyn VfsFile> = vfs.open(Path::new(FILE), OpenHow::create(FileKind::Other)).await?;
                file.write_at(at as u64, IoBuf::from_slice(bytes)).await.map(drop)
            })
            .expect("memory")
        };
        let look = || {
            block_on(async {
                let file = StreamFile::open(&vfs, Path::new(FILE)).await?;
                verify::verify(&file).await
            })
        };
        write(&self.file, 0);
        let whole = look().map_err(|error| error.to_string())?;
        if let Some(damage) = whole.damage.first() {
            return Err(format!("nothing was changed: {damage}"));
        }
        let mut looked = 0;
        for at in (0..self.file.len()).filter(|at| *at < HEAD || *at + HEAD > self.file.len() || at % step == 0) {
            write(&[self.file[at] ^ 1 << (at % 8)], at);
            let clean = look().is_ok_and(|verified| verified.damage.is_empty());
            write(&self.file[at..=at], at);
            looked += 1;
            if clean {
                return Err(format!("DMG-2: byte {at} of {} was changed, and verify found nothing", self.file.len()));
            }
        }
        Ok(looked)
    }

    /// Bytes in all.
    pub fn bytes(&self) -> usize {
        self.repository.values().map(Vec::len).sum::<usize>() + self.file.len()
    }
}

/// Where each byte means something else: the head of a packed object, and more.
const HEAD: usize = 256;

impl Objects {
    fn flip(&self, name: &str, at: usize, bit: usize) {
        if let Some(byte) = self.0.lock().expect("objects").get_mut(name).and_then(|bytes| bytes.get_mut(at)) {
            *byte ^= 1 << bit;
        }
    }
}

/// What verify finds, or why it refuses.
fn found(target: &Objects) -> Vec<String> {
    match block_on(verify::verify(target)) {
        Ok(verified) => verified.damage.iter().map(ToString::to_string).collect(),
        Err(error) => vec![error.to_string()],
    }
}

fn whole(target: &Objects) -> Result<(), String> {
    match found(target).first() {
        Some(damage) => Err(format!("nothing was changed: {damage}")),
        None => Ok(()),
    }
}
