//! A directory in which one file, or the end of the log, was removed, truncated, exchanged or damaged after the process died: the opening
//! either finds everything that was acknowledged, or fails with an error that names the file.

use clearway_base::sync::block_on;
use clearway_base::vfs::{EntryKind, FileKind, IoBuf, MemVfs, OpenHow, Vfs};
use clearway_engine::embedded::{Database, Error};
use clearway_storage::buffer::PoolOptions;
use clearway_storage::store::StoreOptions;
use clearway_storage::wal::segments::Layout;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub const DIR: &str = "/db";
pub const SEGMENT_BYTES: u64 = 64 << 10;
/// What names stand for: their content.
pub type Files = BTreeMap<PathBuf, Vec<u8>>;

pub fn options() -> StoreOptions {
    let pool = PoolOptions { frames: 256, batch_pages: 16, free_target: 16, huge_pages: false };
    let mut options = StoreOptions { pool, ..StoreOptions::default() };
    options.wal.segment_bytes = SEGMENT_BYTES;
    options.wal.ahead_bytes = 8 * SEGMENT_BYTES;
    options.wal.floor_bytes = 128 << 10;
    options.wal.ring_bytes = 1 << 20;
    options.space.pages_per_file = 512;
    options.space.extent_pages = 32;
    options
}

/// Every file of the database as a process that dies now leaves it.
pub fn photograph(vfs: &MemVfs) -> Files {
    let mut files = Files::new();
    let mut dirs = vec![PathBuf::from(DIR)];
    while let Some(dir) = dirs.pop() {
        for entry in block_on(vfs.list(&dir)).expect("a directory") {
            let path = dir.join(&entry.name);
            if entry.kind == EntryKind::Dir {
                dirs.push(path);
                continue;
            }
            let file = block_on(vfs.open(&path, OpenHow::read_only(FileKind::Other))).expect("a file");
            let len = entry.size as usize;
            files.insert(path, block_on(file.read_at(0, IoBuf::zeroed(0), len)).expect("read").to_vec());
        }
    }
    files
}

pub fn disk_of(files: &Files) -> Arc<MemVfs> {
    disk_with(files, &["", "wal", "data", "checkpoint"])
}

fn disk_with(files: &Files, dirs: &[&str]) -> Arc<MemVfs> {
    let vfs = MemVfs::new();
    for dir in dirs {
        block_on(vfs.create_dir(&Path::new(DIR).join(dir))).expect("a directory");
    }
    for (path, bytes) in files {
        let file = block_on(vfs.open(path, OpenHow::create(FileKind::Other))).expect("a file");
        block_on(file.write_at(0, IoBuf::from_slice(bytes))).expect("written");
    }
    Arc::new(vfs)
}

/// A database of which each row was acknowledged, photographed in three states.
struct Subject {
    name: &'static str,
    files: Files,
    rows: i64,
    /// Where its log ended.
    end: u64,
}

/// Long enough for several segments.
fn payload(id: i64) -> String {
    format!("{id}").repeat(200)
}

fn subjects() -> Vec<Subject> {
    let vfs = MemVfs::new();
    block_on(vfs.create_dir(Path::new(DIR))).expect("a directory");
    let db = Database::open_on(Arc::new(vfs.clone()), Path::new(DIR), options()).expect("a new database");
    let table = db.table::<i64, (String,)>("t", &["id"], &["v"]).expect("a table");
    let put = |ids: std::ops::Range<i64>| {
        for id in ids {
            db.transact(|txn| txn.put(&table, &id, &(payload(id),))).expect("acknowledged");
        }
    };
    let end = || db.engine().transactions().store().wal().durable_lsn().0;
    put(0..300);
    let never = Subject { name: "never checkpointed", files: photograph(&vfs), rows: 300, end: end() };
    block_on(db.engine().transactions().store().checkpoint()).expect("a checkpoint");
    put(300..400);
    let after = Subject { name: "after a checkpoint", files: photograph(&vfs), rows: 400, end: end() };
    let end = end();
    db.close().expect("closed");
    let closed = Subject { name: "closed", files: photograph(&vfs), rows: 400, end };
    vec![never, after, closed]
}

#[derive(Debug, PartialEq, Eq)]
enum Answer {
    Whole,
    Refused(String),
}

/// Opens a copy and counts its rows. A row that can't be read is damage that is told.
fn open(files: &Files, rows: i64) -> Answer {
    let read = || -> Result<i64, Error> {
        let db = Database::open_on(disk_of(files), Path::new(DIR), options())?;
        let table = db.table::<i64, (String,)>("t", &["id"], &["v"])?;
        let mut found = 0;
        for id in 0..rows {
            let row = db.transact(|txn| txn.get(&table, &id))?;
            found += i64::from(row == Some((payload(id),)));
        }
        Ok(found)
    };
    match read() {
        Ok(found) => {
            assert_eq!(found, rows, "it opened with {found} of {rows} acknowledged rows and said nothing");
            Answer::Whole
        }
        Err(error) => Answer::Refused(error.to_string()),
    }
}

pub fn place(end: u64) -> (PathBuf, usize) {
    let layout = Layout { segment_bytes: SEGMENT_BYTES };
    let lsn = clearway_storage::ids::Lsn(end);
    (Path::new(DIR).join("wal").join(Layout::file_name(layout.number(lsn))), layout.offset(lsn) as usize)
}

fn must_be_refused(files: &Files, subject: &Subject, what: &str) {
    match open(files, subject.rows) {
        Answer::Refused(why) => assert!(why.contains("db/"), "{}, {what}: no file is named: {why}", subject.name),
        // Everything that its log says stands in its pages.
        Answer::Whole if subject.name == "closed" => {}
        Answer::Whole => panic!("{}, {what}: nothing was said", subject.name),
    }
}

#[test]
fn a_damaged_end_of_the_log_is_told_from_an_end() {
    for subject in subjects() {
        assert_eq!(open(&subject.files, subject.rows), Answer::Whole, "{}", subject.name);
        let (file, offset) = place(subject.end);
        for bytes in [1, 8, 64, 512, 5000, 20_000] {
            let from = offset.saturating_sub(bytes).max(4096);
            let mut files = subject.files.clone();
            files.get_mut(&file).expect("the last segment")[from..offset].fill(0);
            // The last bytes of a record may be zeros that only fill it up.
            if files == subject.files {
                continue;
            }
            must_be_refused(&files, &subject, &format!("the last {bytes} bytes zeroed"));
        }
        for back in [9, 30, 70, 300] {
            for bit in [0, 5] {
                let mut files = subject.files.clone();
                files.get_mut(&file).expect("the last segment")[offset - back] ^= 1 << bit;
                must_be_refused(&files, &subject, &format!("bit {bit} flipped {back} bytes before the end"));
            }
        }
    }
}

#[test]
fn segments_that_are_missing_swapped_short_or_long_are_told() {
    for subject in subjects() {
        let (last, _) = place(subject.end);
        let with_data: Vec<PathBuf> = subject
            .files
            .keys()
            .filter(|path| path.starts_with("/db/wal") && **path <= last && **path >= first_needed(&subject))
            .filter(|path| path.file_name().is_some_and(|name| Layout::parse_name(&name.to_string_lossy()).is_some()))
            .cloned()
            .collect();
        assert!(!with_data.is_empty(), "{}: {with_data:?}", subject.name);
        for path in &with_data {
            let mut files = subject.files.clone();
            files.remove(path);
            must_be_refused(&files, &subject, &format!("{} removed", path.display()));
            let mut files = subject.files.clone();
            files.get_mut(path).expect("there").truncate(8192);
            if *path != last || place(subject.end).1 > 8192 {
                must_be_refused(&files, &subject, &format!("{} truncated", path.display()));
            }
        }
        // The first of another length was taken for a spare, and all behind it: they were written over.
        for path in &with_data {
            for more in [1, 4096, SEGMENT_BYTES as usize] {
                let mut files = subject.files.clone();
                files.get_mut(path).expect("there").extend(vec![0; more]);
                must_be_refused(&files, &subject, &format!("{} {more} bytes longer", path.display()));
            }
        }
        let mut files = subject.files.clone();
        files.retain(|path, _| !path.starts_with("/db/wal"));
        must_be_refused(&files, &subject, "the whole log removed");
        for pair in with_data.windows(2) {
            let mut files = subject.files.clone();
            let (a, b) = (files[&pair[0]].clone(), files[&pair[1]].clone());
            files.insert(pair[0].clone(), b);
            files.insert(pair[1].clone(), a);
            must_be_refused(&files, &subject, &format!("{} and the next swapped", pair[0].display()));
        }
    }
}

/// Where recovery begins to read.
fn first_needed(subject: &Subject) -> PathBuf {
    let vfs: Arc<dyn Vfs> = disk_of(&subject.files);
    let opened = block_on(clearway_storage::recovery::control::ControlFile::open(&vfs, Path::new(DIR)));
    let (_, control) = opened.expect("a control file").expect("a database");
    place(control.scan.0).0
}

#[test]
fn any_one_file_that_is_lost_cut_emptied_or_foreign_is_told_or_does_no_harm() {
    let foreign = {
        let vfs = MemVfs::new();
        block_on(vfs.create_dir(Path::new(DIR))).expect("a directory");
        let other = StoreOptions { database_seed: 99, ..options() };
        let db = Database::open_on(Arc::new(vfs.clone()), Path::new(DIR), other).expect("another database");
        db.close().expect("closed");
        photograph(&vfs)
    };
    let mut refused = 0;
    for subject in subjects() {
        // Of the segments that hold nothing yet, one is enough.
        let (last, _) = place(subject.end + SEGMENT_BYTES);
        for path in subject.files.keys().filter(|path| !path.starts_with("/db/wal") || **path <= last) {
            let whole = &subject.files[path];
            let mut variants = vec![
                ("lost", None),
                ("cut in half", Some(whole[..whole.len() / 2 / 4096 * 4096].to_vec())),
                ("emptied", Some(Vec::new())),
                ("zeroed", Some(vec![0; whole.len()])),
            ];
            // Pages don't say whose they are (docs/recovery.md).
            if let Some(other) = foreign.get(path).filter(|_| !path.starts_with("/db/data")) {
                variants.push(("another database's", Some(other.clone())));
            }
            for (what, content) in variants {
                let mut files = subject.files.clone();
                match content {
                    None => drop(files.remove(path)),
                    Some(bytes) => drop(files.insert(path.clone(), bytes)),
                }
                match open(&files, subject.rows) {
                    Answer::Whole => {}
                    Answer::Refused(why) => {
                        refused += 1;
                        assert!(
                            why.contains("db/") || why.contains("/db "),
                            "{}, {} {what}: {why}",
                            subject.name,
                            path.display()
                        );
                    }
                }
            }
        }
    }
    assert!(refused > 20, "{refused} were refused");
}

/// Opens it; where that is refused, every file but the lock file is as before. Says why.
fn refused_untouched(vfs: &Arc<MemVfs>, what: &str) -> Option<String> {
    let others = |mut files: Files| {
        files.retain(|path, _| !path.ends_with("LOCK"));
        files
    };
    let before = others(photograph(vfs));
    let error = Database::open_on(vfs.clone(), Path::new(DIR), options()).err()?.to_string();
    let after = others(photograph(vfs));
    for path in before.keys().chain(after.keys()) {
        assert!(before.get(path) == after.get(path), "{what}: {} was changed before this: {error}", path.display());
    }
    Some(error)
}

#[test]
fn what_is_lost_or_of_no_use_is_told_before_anything_is_changed() {
    for subject in subjects() {
        for part in ["wal", "data", "checkpoint"] {
            let left: Vec<&str> = ["", "wal", "data", "checkpoint"].into_iter().filter(|dir| *dir != part).collect();
            let mut files = subject.files.clone();
            files.retain(|path, _| !path.starts_with(Path::new(DIR).join(part)));
            let what = format!("{}, {part} lost", subject.name);
            let why = refused_untouched(&disk_with(&files, &left), &what);
            assert!(why.is_some_and(|why| why.contains(&format!("`{part}`"))), "{what}");
            // A file stands in its place.
            files.insert(Path::new(DIR).join(part), b"not a directory".to_vec());
            let why = refused_untouched(&disk_with(&files, &left), &what);
            assert!(why.is_some_and(|why| why.contains(&format!("`{part}`"))), "{what}");
        }
        let mut refused = 0;
        for (path, whole) in &subject.files {
            let mut variants = vec![("lost", None)];
            // What a crash may leave of a page shows when recovery has repaired the torn ones.
            if subject.name == "closed" || !path.starts_with("/db/data") {
                variants.extend([("emptied", Some(Vec::new())), ("zeroed", Some(vec![0; whole.len()]))]);
            }
            for (how, content) in variants {
                let mut files = subject.files.clone();
                match content {
                    None => drop(files.remove(path)),
                    Some(bytes) => drop(files.insert(path.clone(), bytes)),
                }
                let what = format!("{}, {} {how}", subject.name, path.display());
                refused += usize::from(refused_untouched(&disk_of(&files), &what).is_some());
            }
        }
        assert!(refused > 2, "{}: {refused} were refused", subject.name);
    }
}
