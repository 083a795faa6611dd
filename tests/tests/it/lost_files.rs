//! A directory that lost, shortened or exchanged any one of its files: it opens whole, or is refused by name and left as it was.

use clearway_base::sync::block_on;
use clearway_base::testkit::{Sim, SimOptions};
use clearway_base::vfs::sim::SimDisk;
use clearway_base::vfs::{EntryKind, FileKind, IoBuf, OpenHow, Vfs};
use clearway_storage::error::StorageError;
use clearway_storage::ids::TreeId;
use clearway_tests::crash::sweep::{DIR, Running};
use clearway_tests::crash::txns::Txn;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// So many rows lie in several data files.
const ROWS: usize = 2400;

fn simulate<T: Send + 'static>(seed: u64, run: impl Future<Output = T> + Send + 'static) -> T {
    Sim::with_options(seed, SimOptions { steps_max: 20_000_000 }).block_on(run).expect("nothing stops it")
}

fn row(number: usize) -> (Vec<u8>, Vec<u8>) {
    (format!("{number:05}").into_bytes(), vec![number as u8; 500])
}

async fn made(disk: SimDisk, close: bool) -> Result<TreeId, StorageError> {
    let (running, _) = Running::open(&disk).await?;
    let mut txn = Txn::begin(&running.store, &running.book);
    let tree = txn.create_tree().await?;
    txn.commit(|_| {}).await?;
    for batch in 0..ROWS / 100 {
        let mut txn = Txn::begin(&running.store, &running.book);
        for number in batch * 100..batch * 100 + 100 {
            let (key, value) = row(number);
            txn.write(tree, &key, Some(&value)).await?;
        }
        txn.commit(|_| {}).await?;
        running.store.tick();
        // The last checkpoint does not know of the last rows.
        if batch == ROWS / 100 - 4 {
            running.store.checkpoint().await?;
        }
    }
    if close {
        running.close().await?;
    }
    Ok(tree)
}

/// `all`: every row was acknowledged, and no power cut has made the end of the log uncertain.
async fn opened(disk: SimDisk, tree: TreeId, all: bool) -> Result<(), StorageError> {
    let (running, _) = Running::open(&disk).await?;
    let reader = Txn::begin(&running.store, &running.book);
    for number in 0..ROWS {
        let (key, value) = row(number);
        match reader.read(tree, &key).await {
            Ok(None) if !all => {}
            Ok(found) => assert!(found == Some(value), "row {number} is lost"),
            Err(err) => panic!("it was opened, and row {number} is damaged: {err}"),
        }
    }
    running.close().await
}

/// Every file with its bytes.
fn content(disk: &SimDisk) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for dir in
        [PathBuf::from(DIR), Path::new(DIR).join("wal"), Path::new(DIR).join("data"), Path::new(DIR).join("checkpoint")]
    {
        for entry in block_on(disk.list(&dir)).expect("listed") {
            if entry.kind == EntryKind::Dir || entry.name == "LOCK" {
                continue;
            }
            let path = dir.join(&entry.name);
            let file = block_on(disk.open(&path, OpenHow::read_only(FileKind::Other))).expect("a file");
            let bytes = block_on(file.read_at(0, IoBuf::zeroed(0), entry.size as usize)).expect("its bytes");
            all.insert(path, bytes.to_vec());
        }
    }
    all
}

/// What happens to a file.
#[derive(Clone, Debug)]
enum FileDamage {
    Removed,
    Cut(u64),
    Exchanged(PathBuf),
}

fn harm(disk: &SimDisk, path: &Path, how: &FileDamage) {
    let done = async {
        match how {
            FileDamage::Removed => disk.remove(path).await,
            FileDamage::Cut(len) => {
                let file = disk.open(path, OpenHow::existing(FileKind::Other)).await?;
                file.set_len(*len).await
            }
            FileDamage::Exchanged(other) => {
                let aside = Path::new(DIR).join("aside");
                disk.rename(path, &aside).await?;
                disk.rename(other, path).await?;
                disk.rename(&aside, other).await
            }
        }
    };
    block_on(done).expect("harmed");
}

/// REC-13, SPC-12
fn every_harm(seed: u64, disk: &SimDisk, tree: TreeId, power_cut: bool) -> usize {
    let whole = content(&disk.restart());
    let files = whole.keys().filter(|path| path.extension().is_some_and(|ext| ext == "dat")).count();
    assert!(files >= 3, "there are {files} data files: the test shows little");
    let mut refused = 0;
    for (path, bytes) in &whole {
        let len = bytes.len() as u64;
        let mut harms = vec![
            FileDamage::Removed,
            FileDamage::Cut(0),
            FileDamage::Cut(len / 2),
            FileDamage::Cut(len.saturating_sub(1)),
        ];
        let others = whole.keys().filter(|other| *other > path && other.parent() == path.parent());
        harms.extend(others.map(|other| FileDamage::Exchanged(other.clone())));
        for how in harms {
            let disk = disk.restart();
            harm(&disk, path, &how);
            let before = content(&disk);
            // docs/recovery.md: which commits of the last second a damaged log may lose after a power cut.
            let all = !power_cut || !path.starts_with("/db/wal");
            let Err(error) = simulate(seed, opened(disk.clone(), tree, all)) else { continue };
            refused += 1;
            let what = format!("{} {how:?}: {error}", path.display());
            assert!(content(&disk) == before, "something was changed: {what}");
            // A log that ends too early may be told by the pages that were written after its end.
            let told = error.to_string();
            assert!(told.contains(DIR) || told.contains("double-write"), "no file is named: {what}");
        }
    }
    refused
}

#[test]
fn a_closed_database_that_lost_a_file_is_whole_or_refused_and_left_alone() {
    let disk = SimDisk::new(1);
    let tree = simulate(1, made(disk.clone(), true)).expect("made");
    assert!(every_harm(1, &disk, tree, false) > 10);
}

#[test]
fn a_database_after_a_power_cut_that_lost_a_file_is_whole_or_refused_and_left_alone() {
    clearway_base::for_each_seed!(2, |seed| {
        let disk = SimDisk::new(seed);
        let tree = simulate(seed, made(disk.clone(), false)).expect("made");
        assert!(every_harm(seed, &disk.restart(), tree, true) > 10);
    });
}
