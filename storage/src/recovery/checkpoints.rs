//! The control file of an open database, and where its checkpoints lie. What a checkpoint does: `crate::checkpoint`.

use super::control::{Control, ControlFile};
use super::taken::History;
use crate::error::StorageError;
use crate::sync::Turn;
use clearway_base::sync::Mutex;
use std::path::{Path, PathBuf};

/// The control file and the directory of checkpoints.
pub(crate) struct Checkpoints {
    file: ControlFile,
    control: Mutex<Control>,
    dir: PathBuf,
    turn: Turn,
    /// Those that were taken.
    pub(crate) history: History,
}

impl Checkpoints {
    pub(crate) fn new(file: ControlFile, control: Control, dir: PathBuf) -> Checkpoints {
        Checkpoints {
            file,
            control: Mutex::new("storage/recovery/control", control),
            dir,
            turn: Turn::new("storage/recovery/checkpoint_turn"),
            history: History::default(),
        }
    }

    /// One checkpoint is taken at a time.
    pub(crate) fn turn(&self) -> &Turn {
        &self.turn
    }

    /// Where checkpoints lie.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Writes and syncs the control file.
    pub(crate) async fn write(&self, control: Control) -> Result<(), StorageError> {
        self.file.write(&control).await?;
        *self.control.lock() = control;
        Ok(())
    }

    /// What the control file says.
    pub(crate) fn control(&self) -> Control {
        *self.control.lock()
    }
    /// Looks at the control block while no newer one can be put in its place.
    pub(crate) fn with_control<T>(&self, look: impl FnOnce(&Control) -> T) -> T {
        look(&self.control.lock())
    }
}
