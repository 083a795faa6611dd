//! The tree of names of a file system in memory; shared by `mem` and `sim`.
//!
//! Paths are compared by their normal components: `/db/wal`, `db/wal` and `db/./wal` are one name. The
//! root always exists. `..` is refused.

use std::collections::BTreeMap;
use std::io;
use std::path::{Component, Path, PathBuf};

/// What a name leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Node<F> {
    Dir,
    File(F),
}

/// Names of directories and files (`F` identifies a file).
#[derive(Clone, Debug)]
pub(super) struct Names<F> {
    nodes: BTreeMap<PathBuf, Node<F>>,
}

/// The one spelling of a path.
pub(super) fn normal(path: &Path) -> io::Result<PathBuf> {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => normal.push(name),
            Component::RootDir | Component::CurDir => {}
            Component::ParentDir | Component::Prefix(_) => {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, "`..` in a path"));
            }
        }
    }
    Ok(normal)
}

/// The directory of a normal path.
pub(super) fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new(""))
}

impl<F: Clone> Names<F> {
    pub(super) fn new() -> Self {
        Names { nodes: BTreeMap::new() }
    }

    /// What stands at a normal path.
    pub(super) fn get(&self, path: &Path) -> Option<Node<F>> {
        if path.as_os_str().is_empty() { Some(Node::Dir) } else { self.nodes.get(path).cloned() }
    }

    /// The file at a normal path.
    pub(super) fn file(&self, path: &Path) -> io::Result<F> {
        match self.get(path) {
            Some(Node::File(file)) => Ok(file),
            Some(Node::Dir) => Err(io::ErrorKind::IsADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// Fails unless `path` is a directory.
    pub(super) fn expect_dir(&self, path: &Path) -> io::Result<()> {
        match self.get(path) {
            Some(Node::Dir) => Ok(()),
            Some(Node::File(_)) => Err(io::ErrorKind::NotADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// Adds a name that must be free, in a directory that must exist.
    pub(super) fn add(&mut self, path: &Path, node: Node<F>) -> io::Result<()> {
        if self.get(path).is_some() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        self.expect_dir(parent(path))?;
        self.set(path, node);
        Ok(())
    }

    /// Removes the name of a file and returns the file.
    pub(super) fn remove_file(&mut self, path: &Path) -> io::Result<F> {
        let file = self.file(path)?;
        self.unset(path);
        Ok(file)
    }

    /// Renames a file; returns it, and the file that was replaced.
    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> io::Result<(F, Option<F>)> {
        let file = self.file(from)?;
        self.expect_dir(parent(to))?;
        let replaced = match self.get(to) {
            Some(Node::Dir) => return Err(io::ErrorKind::IsADirectory.into()),
            Some(Node::File(replaced)) => Some(replaced),
            None => None,
        };
        self.unset(from);
        self.set(to, Node::File(file.clone()));
        Ok((file, replaced))
    }

    /// The children of a directory, sorted by name.
    pub(super) fn list(&self, dir: &Path) -> io::Result<Vec<(String, Node<F>)>> {
        self.expect_dir(dir)?;
        let children = self.nodes.iter().filter(|(path, _)| parent(path) == dir);
        let mut list: Vec<_> = children
            .filter_map(|(path, node)| Some((path.file_name()?.to_string_lossy().into_owned(), node.clone())))
            .collect();
        list.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(list)
    }

    /// Every file that has a name.
    pub(super) fn files(&self) -> impl Iterator<Item = &F> {
        self.nodes.values().filter_map(|node| match node {
            Node::Dir => None,
            Node::File(file) => Some(file),
        })
    }

    /// Sets a name without any check.
    pub(super) fn set(&mut self, path: &Path, node: Node<F>) {
        self.nodes.insert(path.to_path_buf(), node);
    }

    /// Removes a name without any check.
    pub(super) fn unset(&mut self, path: &Path) {
        self.nodes.remove(path);
    }

    /// Removes names whose directory does not exist.
    pub(super) fn drop_unreachable(&mut self) {
        // Sorted by components, a directory comes before what is in it.
        for path in self.nodes.keys().cloned().collect::<Vec<_>>() {
            if self.expect_dir(parent(&path)).is_err() {
                self.unset(&path);
            }
        }
    }
}
