//! Each file of a directory with acknowledged commits in turn is removed, cut, exchanged for another of its kind or for an older copy of
//! itself, and damaged byte by byte and range by range. Either the directory opens with exactly what was acknowledged, or an error names the
//! damaged file.
//!
//! Only the process had died before, not the operating system: docs/recovery.md says which damage can't be detected after that. Without
//! `CLEARWAY_LONG` every third of the listed variants is tried; `CLEARWAY_SEEDS=20000` is the long form of the random ones.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use clearway_base::for_each_seed;
use clearway_base::sync::{block_on, spawn_thread};
use clearway_base::testkit::Rng;
use clearway_base::vfs::{MemVfs, Vfs};
use clearway_engine::catalog::Oid;
use clearway_engine::db::{Db, DbOptions};
use clearway_engine::session::{Durability, Session, StatementMode, TxnOptions};
use clearway_engine::table::shape::TableShape;
use clearway_engine::value::Value;
use clearway_storage::btree::{Direction, KeyRange};
use clearway_txn::transaction::{Basis, Changed};

use super::damage::{DIR, Files, SEGMENT_BYTES, disk_of, options, photograph, place};
use super::support::{DATABASE, create, key, row};

/// The rows of a table by their first column.
type Rows = BTreeMap<i64, Vec<Value>>;

struct Subject {
    name: &'static str,
    files: Files,
    tables: Vec<(Oid, Rows)>,
    /// Where its log ended.
    end: u64,
}

fn open(vfs: Arc<dyn Vfs>) -> Result<Arc<Db>, String> {
    let mut how = DbOptions::new(vfs, Path::new(DIR));
    how.store = options();
    // Several files for so few rows.
    how.store.space.pages_per_file = 64;
    how.store.space.extent_pages = 16;
    let opened = Db::open(how, |name, task| {
        spawn_thread(name, move || block_on(task)).expect("a thread");
    });
    block_on(opened).map_err(|error| error.to_string())
}

/// A table that is changed, and what is in it.
struct Table {
    shape: Arc<TableShape>,
    rows: Rows,
}

impl Table {
    async fn put(&mut self, session: &mut Session, id: i64, a: i64, b: &str) {
        let new = row(id, a, b);
        session.begin(TxnOptions::default());
        match self.rows.get(&id) {
            None => drop(session.insert(&self.shape, &new).await.expect("inserted")),
            Some(old) => {
                let statement = session.open_statement(&"put".into(), StatementMode::Write);
                let (key, basis) = (key(&self.shape, id), Basis::Read(statement.view));
                let changed = session.update(&self.shape, &key, old, &new, basis).await.expect("updated");
                assert_eq!(changed, Changed::Done);
                session.close_statement(statement);
            }
        }
        session.commit(Durability::Wait).await.expect("acknowledged");
        self.rows.insert(id, new);
    }

    async fn delete(&mut self, session: &mut Session, id: i64) {
        let old = self.rows.remove(&id).expect("a row");
        session.begin(TxnOptions::default());
        let statement = session.open_statement(&"delete".into(), StatementMode::Write);
        let basis = Basis::Read(statement.view);
        let deleted = session.delete(&self.shape, &key(&self.shape, id), &old, basis).await.expect("deleted");
        assert_eq!(deleted, Changed::Done);
        session.close_statement(statement);
        session.commit(Durability::Wait).await.expect("acknowledged");
    }
}

/// One table with a unique index and changes of every kind, one without a key, one of values that stand in chains.
async fn work(session: &mut Session, tables: &mut [Table; 3], round: i64) {
    let [keyed, plain, long] = tables;
    for id in 0..120 {
        let id = round * 120 + id;
        keyed.put(session, id, id * 3, &format!("row {id} ").repeat(20)).await;
        if id % 5 == 0 {
            keyed.put(session, id, id * 3 + 1, "changed").await;
        }
        if id % 7 == 6 {
            keyed.delete(session, id - 3).await;
        }
        if id % 3 == 0 {
            plain.put(session, id, id, "without a key").await;
        }
    }
    for id in 0..5 {
        long.put(session, id, round, &format!("{id}{round}").repeat(9_000)).await;
    }
}

fn subjects() -> &'static [Subject] {
    static SUBJECTS: OnceLock<Vec<Subject>> = OnceLock::new();
    SUBJECTS.get_or_init(|| {
        let vfs = MemVfs::new();
        block_on(vfs.create_dir(Path::new(DIR))).expect("a directory");
        let db = open(Arc::new(vfs.clone())).expect("a new database");
        block_on(make_subjects(&db, &vfs))
    })
}

async fn make_subjects(db: &Arc<Db>, vfs: &MemVfs) -> Vec<Subject> {
    let mut session = db.session(1, DATABASE);
    let mut tables = Vec::new();
    for (keyed, unique) in [(true, true), (false, false), (true, false)] {
        tables.push(Table { shape: create(&mut session, keyed, unique).await, rows: Rows::new() });
    }
    let Ok(mut tables) = <[Table; 3]>::try_from(tables) else { unreachable!("three tables") };
    let take = |name, tables: &[Table; 3]| {
        let tables = tables.iter().map(|table| (table.shape.oid, table.rows.clone())).collect();
        let end = db.transactions().store().wal().durable_lsn().0;
        Subject { name, files: photograph(vfs), tables, end }
    };
    work(&mut session, &mut tables, 0).await;
    // It never ends: each photograph has it unfinished.
    let mut open = db.session(2, DATABASE);
    open.begin(TxnOptions::default());
    for id in 0..30 {
        open.insert(&tables[0].shape, &row(100_000 + id, 300_000 + id, "not committed")).await.expect("inserted");
    }
    work(&mut session, &mut tables, 1).await;
    let never = take("never checkpointed", &tables);
    let store = db.transactions().store();
    store.checkpoint().await.expect("a checkpoint");
    work(&mut session, &mut tables, 2).await;
    let after = take("after a checkpoint", &tables);
    open.roll_back().await.expect("rolled back");
    drop((open, session));
    db.close().await.expect("closed");
    let closed = take("closed", &tables);
    vec![never, after, closed]
}

/// Everything of a table: by the key, and by each index.
async fn read(db: &Arc<Db>, oid: Oid) -> Result<Vec<Rows>, String> {
    let mut session = db.session(1, DATABASE);
    session.begin(TxnOptions::default());
    let catalog = session.catalog();
    // No report names a table that is not in the catalog.
    assert!(catalog.objects().any(|object| object.oid() == oid), "a table is missing");
    let shape = TableShape::new(&catalog, oid).map_err(|error| error.to_string())?;
    let statement = session.open_statement(&"read".into(), StatementMode::ReadOnly);
    let enter = |rows: &mut Rows, row: Vec<Value>| {
        let Value::Int(id) = row[0] else { panic!("{row:?}") };
        assert!(rows.insert(id, row).is_none(), "a row stands there twice");
    };
    let mut all = vec![Rows::new()];
    let mut scan = session.scan(&shape, KeyRange::all(), Direction::Forward, &statement.view);
    while let Some(found) = session.next(&mut scan).await.map_err(|error| error.to_string())? {
        enter(&mut all[0], found.row);
    }
    for index in 0..shape.indexes.len() {
        let mut rows = Rows::new();
        let mut scan = session.index_scan(&shape, index, KeyRange::all(), Direction::Forward, &statement.view);
        while let Some(found) = session.next_by_index(&mut scan).await.map_err(|error| error.to_string())? {
            enter(&mut rows, found.row);
        }
        all.push(rows);
    }
    session.close_statement(statement);
    Ok(all)
}

/// What a damaged directory says: nothing, because all is there, or why not.
fn look(files: &Files, subject: &Subject, whole_file: bool) -> Option<String> {
    let disk = disk_of(files);
    let db = match open(disk.clone()) {
        Ok(db) => db,
        Err(why) => {
            // REC-13: what happens to a whole file is found before anything is changed.
            let same =
                |(path, content): (&PathBuf, &Vec<u8>)| files.get(path) == Some(content) || path.ends_with("LOCK");
            let left = photograph(&disk);
            assert!(
                !whole_file || left.iter().all(same) && left.len() >= files.len(),
                "changed before it was refused: {why}"
            );
            return Some(why);
        }
    };
    let mut told = None;
    for (oid, rows) in &subject.tables {
        match block_on(read(&db, *oid)) {
            Ok(found) => {
                for found in found {
                    let wrong = rows.iter().find(|(id, row)| found.get(id) != Some(*row)).map(|(id, _)| *id);
                    assert!(
                        wrong.is_none() && found.len() == rows.len(),
                        "{} of {} rows, row {wrong:?}",
                        found.len(),
                        rows.len()
                    );
                }
            }
            Err(why) => drop(told.get_or_insert(why)),
        }
    }
    // What a background task met first.
    let closed = block_on(db.close()).err().map(|error| error.to_string());
    told.or(closed)
}

/// How often damage did no harm, and how often it was told.
#[derive(Debug, Default)]
struct Count {
    whole: u64,
    told: u64,
}

impl Count {
    fn look(&mut self, files: &Files, subject: &Subject, what: &str) {
        let whole_file = [": removed", ": cut ", ": swapped "].iter().any(|harm| what.contains(harm));
        let looked = catch_unwind(AssertUnwindSafe(|| look(files, subject, whole_file)));
        let Ok(answer) = looked else { panic!("{}, {what}: see above", subject.name) };
        match answer {
            None => self.whole += 1,
            Some(why) => {
                assert!(
                    why.contains("db/") || why.contains("/db "),
                    "{}, {what}: no file is named: {why}",
                    subject.name
                );
                self.told += 1;
            }
        }
    }
}

/// Files that are worth damaging; of the segments that hold nothing yet, one is enough.
fn files_of(subject: &Subject) -> Vec<&PathBuf> {
    let (last, _) = place(subject.end + SEGMENT_BYTES);
    let files = subject.files.keys().filter(|path| !path.starts_with("/db/wal") || **path <= last);
    files.filter(|path| !path.ends_with("LOCK")).collect()
}

fn with(files: &Files, path: &Path, content: Vec<u8>) -> Files {
    let mut files = files.clone();
    files.insert(path.to_owned(), content);
    files
}

/// What happens to a whole file, with its name.
fn variants(subject: &Subject, older: &Files, path: &Path) -> Vec<(String, Files)> {
    let whole = &subject.files[path];
    let len = whole.len();
    let mut removed = subject.files.clone();
    removed.remove(path);
    let mut all = vec![("removed".to_owned(), removed)];
    let places =
        [0, 1, 40, 512, 4096, 8192, len / 2, len.saturating_sub(8192), len.saturating_sub(4096), len.saturating_sub(1)];
    for cut in places.into_iter().filter(|cut| *cut < len) {
        all.push((format!("cut to {cut} bytes"), with(&subject.files, path, whole[..cut].to_vec())));
    }
    all.push(("zeroed".to_owned(), with(&subject.files, path, vec![0; len])));
    all.push(("a page longer".to_owned(), with(&subject.files, path, [&whole[..], &[0; 8192]].concat())));
    all.push(("twice as long".to_owned(), with(&subject.files, path, [&whole[..], &vec![0; len]].concat())));
    // That pages are an older copy nothing tells (docs/recovery.md).
    if let Some(old) = older.get(path).filter(|old| *old != whole && !path.starts_with("/db/data")) {
        all.push(("an older copy".to_owned(), with(&subject.files, path, old.clone())));
    }
    let others = files_of(subject).into_iter().filter(|other| *other != path && other.parent() == path.parent());
    for other in others.filter(|other| path.parent() != Some(Path::new(DIR)) && other.as_path() > path) {
        let mut swapped = with(&subject.files, path, subject.files[other].clone());
        swapped.insert(other.clone(), whole.clone());
        all.push((format!("swapped with {}", other.display()), swapped));
    }
    all
}

#[test]
fn every_file_lost_cut_swapped_or_older_is_told_or_does_no_harm() {
    let step = if std::env::var_os("CLEARWAY_LONG").is_some() { 1 } else { 3 };
    let subjects = subjects();
    let (mut count, mut number) = (Count::default(), 0_usize);
    for (at, subject) in subjects.iter().enumerate() {
        count.look(&subject.files, subject, "nothing");
        let older = &subjects[at.saturating_sub(1)].files;
        let files = files_of(subject);
        let data = files.iter().filter(|path| path.starts_with("/db/data")).count();
        let log = files.iter().filter(|path| path.starts_with("/db/wal")).count();
        assert!(data > 2 && log > 1, "{}: {data} files of pages, {log} of log", subject.name);
        for path in files {
            for (what, damaged) in variants(subject, older, path) {
                number += 1;
                if number.is_multiple_of(step) {
                    count.look(&damaged, subject, &format!("{}: {what}", path.display()));
                }
            }
        }
    }
    assert!(count.told > 40 && count.whole > 3, "{count:?}");
    println!("{count:?}");
}

/// The last segments of the log removed, and its end zeroed or flipped.
#[test]
fn every_damaged_end_of_the_log_is_told_or_does_no_harm() {
    let mut count = Count::default();
    for subject in subjects() {
        let (last, offset) = place(subject.end);
        let segments: Vec<&PathBuf> = subject.files.keys().filter(|path| path.starts_with("/db/wal")).collect();
        let used = segments.iter().filter(|path| path.as_path() <= last.as_path()).count();
        for lost in [1, 2, used.saturating_sub(1), used] {
            let mut files = subject.files.clone();
            // The ones behind the end go with them.
            for path in &segments[used.saturating_sub(lost)..] {
                files.remove(*path);
            }
            count.look(&files, subject, &format!("the last {lost} segments removed"));
        }
        for bytes in [1, 8, 100, 512, 3000, 30_000] {
            let mut content = subject.files[&last].clone();
            content[offset.saturating_sub(bytes).max(4096)..offset].fill(0);
            count.look(&with(&subject.files, &last, content), subject, &format!("the last {bytes} bytes zeroed"));
        }
        for back in [9, 24, 33, 64, 250] {
            let mut content = subject.files[&last].clone();
            content[offset.saturating_sub(back).max(4096)] ^= 0x10;
            count.look(
                &with(&subject.files, &last, content),
                subject,
                &format!("a bit flipped {back} bytes before the end"),
            );
        }
    }
    // All of it but where the database had been closed, and zeros that were zeros.
    assert!(count.told >= 24, "{count:?}");
}

/// A length that is small more often than not.
fn some_bytes(rng: &mut Rng, most: usize) -> usize {
    let bits = rng.below(18);
    ((rng.below(1 << bits) + 1) as usize).min(most)
}

/// Damages one file somewhere; says how.
fn damage(rng: &mut Rng, content: &mut Vec<u8>, end: Option<usize>) -> String {
    let len = content.len();
    // Of a segment, mostly what is used of it.
    let most = end.filter(|_| rng.chance(3, 4)).unwrap_or(len).clamp(1, len);
    let from = rng.index(most);
    let bytes = some_bytes(rng, len - from);
    let to = from + bytes;
    match rng.below(7) {
        0 => {
            let bit = rng.below(8);
            content[from] ^= 1 << bit;
            format!("bit {bit} of byte {from} flipped")
        }
        1 => {
            let value = rng.below(256) as u8;
            content[from] = value;
            format!("byte {from} set to {value}")
        }
        2 => {
            content[from..to].fill(0);
            format!("bytes {from}..{to} zeroed")
        }
        3 => {
            rng.fill(&mut content[from..to]);
            format!("bytes {from}..{to} made up")
        }
        4 => {
            content.truncate(from);
            format!("cut to {from} bytes")
        }
        5 => {
            let (source, target) = (rng.index(len) / 512 * 512, from / 512 * 512);
            let bytes = bytes.min(len - source).min(len - target);
            content.copy_within(source..source + bytes, target);
            format!("{bytes} bytes from {source} copied to {target}")
        }
        _ => {
            content.drain(from..to);
            format!("bytes {from}..{to} taken out")
        }
    }
}

#[test]
fn random_damage_of_one_file_is_told_or_does_no_harm() {
    let mut count = Count::default();
    for_each_seed!(120, |seed| {
        let mut rng = Rng::new(seed);
        let subject = &subjects()[rng.index(subjects().len())];
        let files: Vec<&PathBuf> =
            files_of(subject).into_iter().filter(|path| !subject.files[*path].is_empty()).collect();
        let path = *rng.pick(&files);
        let (last, offset) = place(subject.end);
        let mut content = subject.files[path].clone();
        let what = damage(&mut rng, &mut content, (*path == last).then_some(offset));
        count.look(&with(&subject.files, path, content), subject, &format!("{}: {what}", path.display()));
    });
    println!("{count:?}");
}
