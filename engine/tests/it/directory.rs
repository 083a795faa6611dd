//! An opening changes nothing in a directory that is no database or only a part of one.

use clearway_base::sync::block_on;
use clearway_base::vfs::{FileKind, IoBuf, OpenHow, RealVfs, Vfs};
use clearway_engine::embedded::Database;
use clearway_storage::store::StoreOptions;
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A directory of its own for one test, gone when the test ends.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("clearway-directory-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir(&path).expect("a directory");
        Scratch(path)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Every file below a directory with its content, `LOCK` apart: a process that looks may write its number there.
fn content(dir: &Path) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    let mut all = BTreeMap::new();
    for entry in std::fs::read_dir(dir).expect("a directory") {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => {
                all.extend(content(&path));
                all.insert(path, None);
            }
            false if path.ends_with("LOCK") => {}
            false => drop(all.insert(path.clone(), Some(std::fs::read(&path).expect("a file")))),
        }
    }
    all
}

fn refusal(dir: &Path) -> String {
    let before = content(dir);
    let error = Database::open(dir).expect_err("the directory is not a database").to_string();
    assert_eq!(content(dir), before, "{error}: something was changed");
    error
}

fn make_database(dir: &Path) {
    let db = Database::open(dir).expect("a new database");
    let table = db.table::<i64, (i64,)>("t", &["id"], &["v"]).expect("a table");
    db.transact(|txn| txn.put(&table, &1, &(1,))).expect("a row");
    db.close().expect("closed");
}

#[test]
fn a_directory_that_is_not_a_database_is_refused_by_name_and_left_alone() {
    let scratch = Scratch::new("foreign");
    for (at, name) in
        ["precious.txt", "data/accounts.csv", "wal/readme.txt", "PG_VERSION", "control.tmp", "double-write"]
            .into_iter()
            .enumerate()
    {
        let dir = scratch.at(&at.to_string());
        let file = dir.join(name);
        std::fs::create_dir_all(file.parent().expect("a directory")).expect("directories");
        std::fs::write(&file, "precious").expect("a file");
        let told = refusal(&dir);
        assert!(told.contains(name) && told.contains("Nothing was changed"), "{told}");
        assert!(!dir.join("LOCK").exists(), "{name}: a lock file in somebody else's directory");
    }
}

#[test]
fn a_database_without_its_control_file_is_refused_and_opens_once_it_is_back() {
    let scratch = Scratch::new("control");
    let dir = scratch.at("db");
    make_database(&dir);
    std::fs::rename(dir.join("control"), scratch.at("control")).expect("moved");
    let told = refusal(&dir);
    assert!(told.contains("`control`") && told.contains("restore"), "{told}");
    // Less of it is no less a database.
    for part in ["wal", "checkpoint"] {
        std::fs::rename(dir.join(part), scratch.at(part)).expect("moved");
        refusal(&dir);
    }
    for part in ["wal", "checkpoint", "control"] {
        std::fs::rename(scratch.at(part), dir.join(part)).expect("moved back");
    }
    let db = Database::open(&dir).expect("whole again");
    let table = db.table::<i64, (i64,)>("t", &["id"], &["v"]).expect("the table");
    assert_eq!(db.transact(|txn| txn.get(&table, &1)).expect("a read"), Some((1,)));
    db.close().expect("closed");
}

#[test]
fn a_database_that_lost_a_part_is_refused_by_name_and_opens_once_it_is_back() {
    let scratch = Scratch::new("parts");
    let dir = scratch.at("db");
    make_database(&dir);
    let lock = std::fs::read(dir.join("LOCK")).expect("a lock file");
    let away = scratch.at("away");
    for part in ["wal", "data", "checkpoint"] {
        std::fs::rename(dir.join(part), &away).expect("moved");
        for stand_in in [false, true] {
            if stand_in {
                std::fs::write(dir.join(part), "not a directory").expect("a file");
            }
            let told = refusal(&dir);
            assert!(told.contains(&format!("`{part}`")) && told.contains("Nothing was changed"), "{told}");
            assert_eq!(std::fs::read(dir.join("LOCK")).ok().as_ref(), Some(&lock), "{part}: the lock file was changed");
        }
        std::fs::remove_file(dir.join(part)).expect("removed");
        std::fs::rename(&away, dir.join(part)).expect("moved back");
    }
    for part in ["data/000000.dat", "checkpoint", "wal"] {
        // The first file of a directory, or the file that is named.
        let path = match dir.join(part) {
            path if path.is_dir() => {
                std::fs::read_dir(path).expect("a directory").map(|e| e.expect("an entry").path()).min()
            }
            path => Some(path),
        };
        let path = path.expect("a file");
        std::fs::rename(&path, &away).expect("moved");
        let told = refusal(&dir);
        assert!(told.contains(&path.display().to_string()), "{told}");
        std::fs::rename(&away, &path).expect("moved back");
    }
    let control = std::fs::read(dir.join("control")).expect("the control file");
    let damaged = |range: std::ops::Range<usize>| {
        let mut bytes = control.clone();
        bytes[range].iter_mut().for_each(|byte| *byte ^= 0x55);
        std::fs::write(dir.join("control"), bytes).expect("damaged");
        let told = refusal(&dir);
        assert!(told.contains("control"), "{told}");
    };
    damaged(0..control.len());
    damaged(16..control.len());
    std::fs::write(dir.join("control"), []).expect("emptied");
    assert!(refusal(&dir).contains("control"));
    std::fs::write(dir.join("control"), &control).expect("put back");
    make_database(&dir);
}

#[test]
fn files_of_others_within_a_database_stay() {
    let scratch = Scratch::new("guests");
    let dir = scratch.at("db");
    make_database(&dir);
    let guests = ["wal/notes.wal", "wal/notes.tmp", "checkpoint/notes", "data/notes.dat.old", "notes"];
    for guest in guests {
        std::fs::write(dir.join(guest), "mine").expect("a file");
    }
    for _ in 0..2 {
        make_database(&dir);
    }
    for guest in guests {
        assert_eq!(std::fs::read(dir.join(guest)).ok().as_deref(), Some(&b"mine"[..]), "{guest}");
    }
}

#[test]
fn what_is_created_is_its_owners_alone_and_wider_modes_are_refused_by_name() {
    let scratch = Scratch::new("modes");
    let dir = scratch.at("db");
    // An empty directory with the usual mode is narrowed.
    std::fs::create_dir(&dir).expect("a directory");
    std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(0o755)).expect("a mode");
    make_database(&dir);
    let mode = |path: &Path| std::fs::metadata(path).expect("there").permissions().mode() & 0o777;
    assert_eq!(mode(&dir), 0o700);
    for (path, content) in content(&dir) {
        assert_eq!(mode(&path), if content.is_some() { 0o600 } else { 0o700 }, "{}", path.display());
    }
    for name in ["", "control", "wal", "data/000000.dat"] {
        let path = if name.is_empty() { dir.clone() } else { dir.join(name) };
        let narrow = mode(&path);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(narrow | 0o040)).expect("a mode");
        let told = refusal(&dir);
        assert!(told.contains(&format!("{} has mode", path.display())) && told.contains("chmod"), "{told}");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(narrow)).expect("a mode");
    }
    make_database(&dir);
}

#[test]
fn looking_for_a_database_that_must_exist_makes_nothing() {
    let scratch = Scratch::new("absent");
    let options = StoreOptions { create: false, ..StoreOptions::default() };
    let vfs = std::sync::Arc::new(RealVfs::inline());
    let error = Database::open_on(vfs, &scratch.0, options).expect_err("there is none");
    assert!(error.to_string().contains("no database"), "{error}");
    assert!(content(&scratch.0).is_empty() && !scratch.at("LOCK").exists());
}

/// A file that a creation can't have written makes the directory one of another program.
#[test]
fn a_control_block_that_says_more_than_a_new_one_is_nobodys_leftover() {
    let vfs = clearway_base::vfs::MemVfs::new();
    block_on(vfs.create_dir(Path::new("/db"))).expect("a directory");
    let path = Path::new("/db").join("control.tmp");
    let file = block_on(vfs.open(&path, OpenHow::create(FileKind::Control))).expect("a file");
    block_on(file.write_at(0, IoBuf::from_slice(&[7; 4096]))).expect("written");
    let opened = Database::open_on(std::sync::Arc::new(vfs), Path::new("/db"), StoreOptions::default());
    let told = opened.expect_err("not ours").to_string();
    assert!(told.contains("control.tmp"), "{told}");
}
