//! A file of a newer program is refused with its name, the version found and the version supported; and docs/format.md has the versions
//! that the code writes.

use std::path::Path;
use std::sync::Arc;

use clearway_base::vfs::{EntryKind, FileKind, IoBuf, MemVfs, OpenHow, Vfs};
use clearway_engine::embedded::{Database, Error, Table};
use clearway_storage::store::StoreOptions;
use clearway_storage::wal::format::FORMAT_VERSION;

const DIR: &str = "/db";
const NEWER: u32 = FORMAT_VERSION + 1;

/// CRC-32C bit by bit, so that the test does not trust the code's own.
fn crc32c(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 };
    !bytes.iter().fold(!0, |crc: u32, byte| (0..8).fold(crc ^ u32::from(*byte), step))
}

fn open(vfs: &Arc<MemVfs>) -> Result<Database, Error> {
    Database::open_on(vfs.clone(), Path::new(DIR), StoreOptions::default())
}

/// A database that was closed properly.
fn closed() -> Arc<MemVfs> {
    let vfs = Arc::new(MemVfs::new());
    vfs.create_dir(Path::new(DIR)).wait().expect("a directory");
    let db = open(&vfs).expect("a new database");
    let table: Table<i64, i64> = db.table("t", &["id"], &["n"]).expect("a table");
    db.transact(|txn| txn.put(&table, &1, &1)).expect("committed");
    db.close().expect("closed");
    vfs
}

fn change(vfs: &MemVfs, name: &str, edit: impl FnOnce(&mut [u8])) {
    let path = Path::new(DIR).join(name);
    let file = vfs.open(&path, OpenHow::existing(FileKind::Other)).wait().expect("the file");
    let len = file.len().wait().expect("a length") as usize;
    let mut bytes = file.read_exact_at(0, IoBuf::zeroed(len), len).wait().expect("its bytes");
    edit(&mut bytes);
    file.write_at(0, bytes).wait().expect("written");
}

fn only(vfs: &MemVfs, dir: &str) -> String {
    let entries = vfs.list(&Path::new(DIR).join(dir)).wait().expect("listed");
    format!("{dir}/{}", entries.first().expect("a file").name)
}

fn put(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

/// Every file with its bytes, the lock file apart.
fn content(vfs: &MemVfs) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    for dir in ["", "wal", "data", "checkpoint"] {
        for entry in vfs.list(&Path::new(DIR).join(dir)).wait().expect("listed") {
            if entry.kind == EntryKind::Dir || entry.name == "LOCK" {
                continue;
            }
            let name = format!("{dir}/{}", entry.name);
            let path = Path::new(DIR).join(dir).join(&entry.name);
            let file = vfs.open(&path, OpenHow::read_only(FileKind::Other)).wait().expect("the file");
            let bytes = file.read_at(0, IoBuf::zeroed(0), entry.size as usize).wait().expect("its bytes");
            all.push((name, bytes.to_vec()));
        }
    }
    all
}

/// Opening changes nothing, and says which file it is, what was found and what is supported.
fn refused(vfs: &Arc<MemVfs>, name: &str) {
    let before = content(vfs);
    let error = open(vfs).err().unwrap_or_else(|| panic!("{name}: a newer version was opened")).to_string();
    assert!(content(vfs) == before, "{name}: something was changed before this: {error}");
    for part in [name, &format!("version {NEWER}"), &format!("format version {FORMAT_VERSION} or older")] {
        assert!(error.contains(part), "{name}: no \"{part}\" in \"{error}\"");
    }
}

#[test]
fn a_newer_control_file_is_refused() {
    let vfs = closed();
    change(&vfs, "control", |bytes| put(bytes, 8, NEWER));
    refused(&vfs, "control");
}

#[test]
fn a_directory_of_an_earlier_version_is_opened_and_is_of_this_version_then() {
    let vfs = closed();
    let segment = only(&vfs, "wal");
    change(&vfs, &segment, |bytes| put(bytes, 8, FORMAT_VERSION - 1));
    change(&vfs, "control", |bytes| bytes.chunks_mut(4096).for_each(|copy| put(copy, 8, FORMAT_VERSION - 1)));
    let db = open(&vfs).expect("an earlier version is opened");
    // An earlier program refuses the directory before the first record of the new version is in its log.
    change(&vfs, "control", |bytes| {
        let newest =
            bytes.chunks(4096).max_by_key(|copy| u64::from_le_bytes(copy[16..24].try_into().expect("8 bytes")));
        assert_eq!(newest.expect("a copy")[8..12], FORMAT_VERSION.to_le_bytes());
    });
    let table: Table<i64, i64> = db.table("t", &["id"], &["n"]).expect("the table");
    assert_eq!(db.transact(|txn| txn.get(&table, &1)).expect("read"), Some(1));
    db.close().expect("closed");
}

#[test]
fn a_newer_log_segment_is_refused() {
    let vfs = closed();
    let name = only(&vfs, "wal");
    change(&vfs, &name, |bytes| put(bytes, 8, NEWER));
    refused(&vfs, &name);
}

#[test]
fn a_newer_checkpoint_is_refused() {
    let vfs = closed();
    let name = only(&vfs, "checkpoint");
    let mut crc = 0;
    change(&vfs, &name, |bytes| {
        put(bytes, 8, NEWER);
        crc = crc32c(bytes);
    });
    change(&vfs, "control", |bytes| {
        for copy in bytes.chunks_mut(4096) {
            put(copy, 100, crc);
            let checksum = crc32c(&copy[16..]);
            put(copy, 12, checksum);
        }
    });
    refused(&vfs, &name);
}

#[test]
fn a_newer_data_file_is_refused() {
    let vfs = closed();
    let name = only(&vfs, "data");
    change(&vfs, &name, |bytes| {
        assert_eq!(bytes[28..32], FORMAT_VERSION.to_le_bytes(), "what was written");
        put(bytes, 28, NEWER);
        let checksum = crc32c(&bytes[4..8192]);
        put(bytes, 0, checksum);
    });
    refused(&vfs, &name);
}

#[test]
fn the_page_on_the_format_names_what_is_written() {
    let page = include_str!("../../../docs/format.md");
    assert!(page.contains(&format!("format version {FORMAT_VERSION}")), "the version");
    let vfs = closed();
    for name in ["control".to_owned(), only(&vfs, "wal"), only(&vfs, "checkpoint")] {
        change(&vfs, &name, |bytes| {
            let mark = String::from_utf8_lossy(&bytes[..8]).into_owned();
            assert!(page.contains(&format!("`{mark}`")), "{name} begins with {mark}");
            assert_eq!(bytes[8..12], FORMAT_VERSION.to_le_bytes(), "{name}: its version at 8");
        });
    }
    change(&vfs, "control", |bytes| {
        assert_eq!(crc32c(&bytes[16..4096]).to_le_bytes(), bytes[12..16], "control: its checksum at 12");
        assert_eq!(bytes[104], 1, "control: closed properly at 104");
    });
}
