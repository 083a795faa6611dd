//! Reads and writes files of settings: `name = value` lines. The file that ALTER SYSTEM writes has the same form.

use std::path::Path;
use std::sync::Arc;

use clearway_base::vfs::{FileKind, IoBuf, OpenHow, Vfs, VfsError};

/// What ALTER SYSTEM has set, beside the data.
pub const AUTO_FILE: &str = "clearway.auto.conf";
const TEMPORARY: &str = "clearway.auto.conf.tmp";
/// A larger file is none of settings.
pub const BYTES_MAX: usize = 1 << 20;

/// A line that is neither empty nor a comment: its number from 1, and name and value; none: it is neither.
pub type Line<'a> = (u32, Option<(&'a str, String)>);

/// The lines of a file.
pub fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    text.lines().zip(1u32..).filter_map(|(line, number)| match pair(line) {
        Ok(None) => None,
        Ok(Some(pair)) => Some((number, Some(pair))),
        Err(()) => Some((number, None)),
    })
}

/// Name and value of a line; None for an empty one.
fn pair(line: &str) -> Result<Option<(&str, String)>, ()> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    let (name, value) = line.split_once('=').ok_or(())?;
    let (name, value) = (name.trim(), value.trim());
    let value = match value.strip_prefix('\'') {
        Some(rest) => quoted(rest)?,
        None => value.split('#').next().unwrap_or_default().trim().to_owned(),
    };
    let named = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.');
    if named { Ok(Some((name, value))) } else { Err(()) }
}

/// The text up to the closing quote; a doubled quote is one quote of the value.
fn quoted(rest: &str) -> Result<String, ()> {
    let (mut value, mut rest) = (String::new(), rest);
    loop {
        let (inner, after) = rest.split_once('\'').ok_or(())?;
        value.push_str(inner);
        match after.strip_prefix('\'') {
            Some(more) => {
                value.push('\'');
                rest = more;
            }
            None if after.trim().is_empty() || after.trim().starts_with('#') => return Ok(value),
            None => return Err(()),
        }
    }
}

/// Writes what ALTER SYSTEM has set, whole or not at all: beside its place, synced, renamed.
///
/// # Errors
/// A failed file operation; the file still has its previous content.
pub async fn write(vfs: &Arc<dyn Vfs>, dir: &Path, pairs: &[(String, String)]) -> Result<(), VfsError> {
    let mut text = "# ALTER SYSTEM writes this file anew each time. Do not edit it while the server runs.\n".to_owned();
    for (name, value) in pairs {
        text.push_str(&format!("{name} = '{}'\n", value.replace('\'', "''")));
    }
    let temporary = dir.join(TEMPORARY);
    let file = vfs.open(&temporary, OpenHow::create(FileKind::Control)).await?;
    file.set_len(0).await?;
    file.write_at(0, IoBuf::from_slice(text.as_bytes())).await?;
    file.sync_data().await?;
    vfs.rename(&temporary, &dir.join(AUTO_FILE)).await?;
    vfs.sync_dir(dir).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearway_base::sync::block_on;
    use clearway_base::vfs::MemVfs;

    #[test]
    fn what_is_written_is_read_again() {
        let vfs: Arc<dyn Vfs> = Arc::new(MemVfs::new());
        let dir = Path::new("/d");
        block_on(vfs.create_dir(dir)).expect("a directory");
        let pairs = ["it's", "'", "''", "a # b", " c ", "", "\"x, y\", \\z"];
        let pairs: Vec<(String, String)> =
            pairs.iter().map(|value| ("search_path".to_owned(), (*value).to_owned())).collect();
        block_on(write(&vfs, dir, &pairs)).expect("written");
        let bytes = block_on(crate::door::read(&vfs, &dir.join(AUTO_FILE), BYTES_MAX)).expect("read").expect("small");
        let text = String::from_utf8(bytes).expect("text");
        let read: Vec<_> = lines(&text).map(|(_, pair)| pair.map(|(name, value)| (name.to_owned(), value))).collect();
        assert_eq!(read, pairs.into_iter().map(Some).collect::<Vec<_>>());
    }
}
