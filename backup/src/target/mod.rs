//! Targets: places that keep objects, each a name with slashes and bytes that are put whole.

mod directory;
pub mod file;
#[cfg(feature = "objects")]
pub mod objects;
pub mod stream;

pub use directory::Directory;

use crate::error::{BackupError, Result};
use clearway_base::vfs::Vfs;
use clearway_storage::seams::BoxFuture;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An object in a list.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Listed {
    /// Its name.
    pub name: String,
    /// Its length in bytes.
    pub bytes: u64,
}

/// A place for objects.
pub trait Target: Send + Sync {
    /// What users call it.
    fn place(&self) -> String;

    /// Puts an object there, whole or not at all (BKP-1), in place of one of that name; durable when this returns.
    fn put<'a>(&'a self, name: &'a str, bytes: &'a [u8]) -> BoxFuture<'a, Result<()>>;

    /// The same; fails with `Exists` where one of that name stands.
    fn put_new<'a>(&'a self, name: &'a str, bytes: &'a [u8]) -> BoxFuture<'a, Result<()>>;

    /// An object's bytes; fails with `NotFound`.
    fn get<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Vec<u8>>>;

    /// The objects whose names begin with `prefix`, which ends with a slash or is empty, sorted by name.
    fn list<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, Result<Vec<Listed>>>;

    /// Removes an object.
    fn remove<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<()>>;

    /// A backup was broken off. What it can't be resumed from is removed.
    fn abandon(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }

    /// All objects of a backup are there, its manifest too. A target of one stream ends here.
    fn finish(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async { Ok(()) })
    }
}

/// What the name of a backup in a single file ends with.
pub const FILE_ENDING: &str = ".backup";

/// What kind of target a name means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A directory of objects.
    Directory(PathBuf),
    /// One backup in a single file.
    File(PathBuf),
    /// Standard output, or standard input: `-`.
    Pipe,
    /// An object store.
    Objects(String),
}

impl Place {
    /// Reads a name.
    ///
    /// # Errors
    /// A kind of store that is not known.
    pub fn parse(name: &str) -> Result<Place> {
        const KNOWN: [&str; 3] = ["s3", "gs", "az"];
        let scheme = name.split_once("://").map(|(scheme, _)| scheme);
        Ok(match scheme {
            Some(scheme) if KNOWN.contains(&scheme) => Place::Objects(name.to_owned()),
            Some(_) => {
                let what = "is no target: expected a directory, a file named *.backup, -, s3://, gs:// or az://";
                return Err(BackupError::Refused(format!("{name} {what}")));
            }
            None if name == "-" => Place::Pipe,
            None if name.ends_with(FILE_ENDING) => Place::File(PathBuf::from(name)),
            None => Place::Directory(PathBuf::from(name)),
        })
    }
}

/// Opens a target that holds many objects, which come and go: a directory, or an object store. With `patient`, requests to a store that
/// fails are repeated for three minutes; else the caller repeats them.
///
/// # Errors
/// The name means another kind of target, or the address is not whole.
pub fn open(vfs: &Arc<dyn Vfs>, name: &str, patient: bool) -> Result<Box<dyn Target>> {
    match Place::parse(name)? {
        Place::Directory(path) => Ok(Box::new(Directory::new(Arc::clone(vfs), Path::new(&path)))),
        Place::Objects(url) => objects_at(&url, patient),
        Place::File(_) | Place::Pipe => Err(BackupError::Refused(format!(
            "{name} holds one backup at most: expected a directory or an object store"
        ))),
    }
}

#[cfg(feature = "objects")]
fn objects_at(url: &str, patient: bool) -> Result<Box<dyn Target>> {
    let patience = if patient { objects::Patience::Long } else { objects::Patience::Short };
    Ok(Box::new(objects::Objects::open(url, patience)?))
}

#[cfg(not(feature = "objects"))]
fn objects_at(url: &str, _patient: bool) -> Result<Box<dyn Target>> {
    Err(BackupError::Refused(format!("{url}: this program was built without object stores (the feature \"objects\")")))
}

/// An object, or none.
///
/// # Errors
/// All but `NotFound`.
pub async fn find(target: &dyn Target, name: &str) -> Result<Option<Vec<u8>>> {
    match target.get(name).await {
        Ok(bytes) => Ok(Some(bytes)),
        Err(crate::BackupError::NotFound(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_targets() {
        assert_eq!(Place::parse("-").expect("a pipe"), Place::Pipe);
        assert_eq!(Place::parse("/b/shop").expect("a directory"), Place::Directory("/b/shop".into()));
        assert_eq!(Place::parse("/b/shop.backup").expect("a file"), Place::File("/b/shop.backup".into()));
        assert_eq!(Place::parse("s3://b/shop").expect("a store"), Place::Objects("s3://b/shop".into()));
        let refused = Place::parse("ftp://b/shop").expect_err("no target").to_string();
        assert!(refused.contains("ftp://b/shop"), "{refused}");
    }
}
