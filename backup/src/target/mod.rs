//! Where objects are kept: names with slashes, bytes that are put whole.

mod directory;

pub use directory::Directory;

use crate::error::Result;
use clearway_storage::seams::BoxFuture;

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
