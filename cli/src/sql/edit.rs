//! Edits a statement in the user's editor, and reads files of statements.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use clearway_base::sync::block_on;
use clearway_base::vfs::{FileKind, IoBuf, OpenHow, RealVfs, Vfs, VfsError, VfsFile};

/// The longest text that is taken back from an editor.
const EDITED_BYTES_MAX: usize = 64 << 20;
/// How much of a file is read at a time.
const CHUNK_BYTES: usize = 64 << 10;
/// The longest line of a file.
const LINE_BYTES_MAX: usize = 256 << 20;

/// Lets the user edit a text, or a file; gives the text afterwards.
///
/// # Errors
/// There is no editor, it failed, or the file can't be read or written.
pub fn edited(text: &str, file: Option<&Path>) -> Result<String, String> {
    let scratch = match file {
        Some(_) => None,
        None => Some(write_scratch(text)?),
    };
    let path = file.or(scratch.as_deref()).unwrap_or(Path::new(""));
    let edited = edit(path).and_then(|()| {
        let mut lines = Lines::open(path)?;
        let mut text = String::new();
        while let Some(line) = lines.next()? {
            if text.len() + line.len() > EDITED_BYTES_MAX {
                return Err(format!("{}: longer than {EDITED_BYTES_MAX} bytes", path.display()));
            }
            text.push_str(&line);
            text.push('\n');
        }
        Ok(text)
    });
    if let Some(scratch) = &scratch {
        // What the user wrote is not worth an error about a file in the directory for temporary files.
        let _ = block_on(RealVfs::inline().remove(scratch));
    }
    edited
}

/// Runs the editor that the environment names.
fn edit(path: &Path) -> Result<(), String> {
    let mut named = ["PSQL_EDITOR", "EDITOR", "VISUAL"].into_iter().filter_map(|name| std::env::var(name).ok());
    let editor = named.find(|editor| !editor.trim().is_empty()).unwrap_or_else(|| "vi".to_owned());
    // The variable may hold options: the shell takes it apart.
    let status = Command::new("sh").args(["-c", &format!("{editor} \"$1\""), "sh"]).arg(path).status();
    let status = status.map_err(|error| format!("{editor}: {error}"))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("the editor {editor} failed ({status}): set EDITOR to use another"))
    }
}

/// A new file that only its owner may read.
fn write_scratch(text: &str) -> Result<PathBuf, String> {
    let vfs = RealVfs::inline();
    let mut failed = String::new();
    for number in 0..100 {
        let path = std::env::temp_dir().join(format!("clearway.edit.{}.{number}.sql", std::process::id()));
        let written = block_on(async {
            let file = vfs.open(&path, OpenHow::create_new(FileKind::Other)).await?;
            let text = if text.is_empty() || text.ends_with('\n') { text.to_owned() } else { format!("{text}\n") };
            file.write_at(0, IoBuf::from_slice(text.as_bytes())).await?;
            Ok::<_, VfsError>(())
        });
        match written {
            Ok(()) => return Ok(path),
            Err(error) => failed = format!("{}: {error}", path.display()),
        }
    }
    Err(failed)
}

/// The lines of a file, of which a part is in memory.
pub struct Lines {
    path: PathBuf,
    file: Arc<dyn VfsFile>,
    at: u64,
    read: Vec<u8>,
    /// How much of `read` has been given out.
    given: usize,
}

impl Lines {
    /// Opens a file.
    ///
    /// # Errors
    /// It can't be read.
    pub fn open(path: &Path) -> Result<Self, String> {
        let file = block_on(RealVfs::inline().open(path, OpenHow::read_only(FileKind::Other)));
        let file = file.map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Self { path: path.to_owned(), file, at: 0, read: Vec::new(), given: 0 })
    }

    /// The next line, without its end.
    ///
    /// # Errors
    /// The file can't be read, is no text in UTF-8, or has a line that is too long.
    pub fn next(&mut self) -> Result<Option<String>, String> {
        let fail = |path: &Path, what: &dyn std::fmt::Display| format!("{}: {what}", path.display());
        let mut searched = self.given;
        loop {
            if let Some(length) = self.read[searched..].iter().position(|&byte| byte == b'\n') {
                let line = self.read[self.given..searched + length].to_vec();
                self.given = searched + length + 1;
                return String::from_utf8(line).map(Some).map_err(|_| fail(&self.path, &"not a text in UTF-8"));
            }
            self.read.drain(..self.given);
            self.given = 0;
            searched = self.read.len();
            if searched > LINE_BYTES_MAX {
                return Err(fail(&self.path, &format!("a line is longer than {LINE_BYTES_MAX} bytes")));
            }
            let more = block_on(self.file.read_at(self.at, IoBuf::zeroed(0), CHUNK_BYTES));
            let more = more.map_err(|error| fail(&self.path, &error))?;
            if more.is_empty() {
                let rest = std::mem::take(&mut self.read);
                let rest = String::from_utf8(rest).map_err(|_| fail(&self.path, &"not a text in UTF-8"))?;
                return Ok(Some(rest).filter(|rest| !rest.is_empty()));
            }
            self.at += more.len() as u64;
            self.read.extend_from_slice(&more);
        }
    }
}
