//! A session's descriptors of large objects: what `lo_open` gives, and what reading, writing and seeking go by.
//!
//! # Invariants
//! - DSC-1: a descriptor ends with its transaction. A rollback to a savepoint, and a failure, end those that were opened since; one that was
//!   opened before keeps its position.
//! - DSC-2: a descriptor that was opened for reading alone reads what the statement saw that opened it, and holds that snapshot open. One that
//!   may write reads and changes what is newest, whatever the isolation.
//! - DSC-3: a position is between 0 and `OBJECT_BYTES_MAX`.

use super::core::Core;
use clearway_engine::catalog::Oid;
use clearway_engine::large_object::OBJECT_BYTES_MAX;
use clearway_engine::session::Statement as EngineStatement;
use clearway_syntax::error::{Result, SqlError, code};
use clearway_txn::mvcc::book::View;

/// An open large object.
#[derive(Debug)]
struct Descriptor {
    oid: Oid,
    /// The snapshot by which it reads; none: it may write.
    kept: Option<EngineStatement>,
    position: u64,
    /// How many savepoints there were when it was opened.
    level: usize,
}

/// What a descriptor stands for at the moment.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// The object.
    pub oid: Oid,
    /// What it reads; none: what is newest, and it may write.
    pub view: Option<View>,
    /// The position.
    pub position: u64,
}

/// The descriptors, each at its number.
#[derive(Debug, Default)]
pub struct Descriptors(Vec<Option<Descriptor>>);

impl Descriptors {
    fn unknown(number: i32) -> SqlError {
        SqlError::new(code::UNDEFINED_OBJECT, format!("invalid large-object descriptor: {number}"))
    }

    fn of(&mut self, number: i32) -> Result<&mut Descriptor> {
        let at = usize::try_from(number).ok();
        let found = at.and_then(|at| self.0.get_mut(at)).and_then(Option::as_mut);
        found.ok_or_else(|| Self::unknown(number))
    }

    /// What a descriptor stands for.
    ///
    /// # Errors
    /// 42704.
    pub fn place(&mut self, number: i32) -> Result<Place> {
        let Descriptor { oid, kept, position, .. } = self.of(number)?;
        Ok(Place { oid: *oid, view: kept.as_ref().map(|kept| kept.view), position: *position })
    }

    /// Moves a descriptor (DSC-3).
    ///
    /// # Errors
    /// 42704.
    pub fn set_position(&mut self, number: i32, position: u64) -> Result<()> {
        assert!(position <= OBJECT_BYTES_MAX, "DSC-3: position {position}");
        self.of(number)?.position = position;
        Ok(())
    }

    /// The savepoint at `at` and those above it are released.
    pub fn release(&mut self, at: usize) {
        self.0.iter_mut().flatten().for_each(|descriptor| descriptor.level = descriptor.level.min(at));
    }

    /// Takes out what is to be closed, with the snapshots that are to be given back.
    fn remove(&mut self, goes: impl Fn(&Descriptor) -> bool) -> Vec<EngineStatement> {
        let going = self.0.iter_mut().filter(|place| matches!(place, Some(descriptor) if goes(descriptor)));
        going.filter_map(|place| place.take()?.kept).collect()
    }
}

/// A snapshot beside that of the statement; given back on drop, also when the statement is dropped in the middle of a wait.
pub struct Seen<'c> {
    core: &'c Core,
    statement: Option<EngineStatement>,
}

impl Seen<'_> {
    /// What it sees.
    pub fn view(&self) -> View {
        self.statement.as_ref().map_or_else(View::default, |statement| statement.view)
    }

    /// The snapshot, for a descriptor.
    pub fn into_statement(mut self) -> Option<EngineStatement> {
        self.statement.take()
    }
}

impl Drop for Seen<'_> {
    fn drop(&mut self) {
        self.core.give_back(self.statement.take());
    }
}

impl Core {
    /// What is newest, or what a view shows, kept.
    pub fn seen(&self, view: Option<&View>) -> Seen<'_> {
        let mut engine = self.engine.take();
        let statement = match view {
            Some(view) => engine.keep_view(view),
            None => engine.open_newest(),
        };
        drop(engine);
        Seen { core: self, statement: Some(statement) }
    }

    /// Opens a descriptor at the beginning of an object; `kept` is what it reads, if it may not write. The lowest number that is free.
    pub fn open_descriptor(&self, oid: Oid, kept: Option<EngineStatement>) -> i32 {
        self.ends_with_work();
        let level = self.savepoint.lock().level;
        let descriptors = &mut self.large_objects.lock().0;
        let at = descriptors.iter().position(Option::is_none).unwrap_or(descriptors.len());
        if at == descriptors.len() {
            descriptors.push(None);
        }
        descriptors[at] = Some(Descriptor { oid, kept, position: 0, level });
        at as i32
    }

    /// Closes a descriptor.
    ///
    /// # Errors
    /// 42704.
    pub fn close_descriptor(&self, number: i32) -> Result<()> {
        let kept = {
            let mut descriptors = self.large_objects.lock();
            descriptors.of(number)?;
            descriptors.0[number as usize].take().and_then(|descriptor| descriptor.kept)
        };
        self.give_back(kept);
        Ok(())
    }

    /// Closes the descriptors of an object.
    pub fn close_descriptors_of(&self, oid: Oid) {
        let kept = self.large_objects.lock().remove(|descriptor| descriptor.oid == oid);
        self.give_back(kept);
    }

    /// DSC-1: a rollback to the savepoint at `at`, or the end of the transaction (none).
    pub fn close_descriptors(&self, at: Option<usize>) {
        let kept = {
            let mut descriptors = self.large_objects.lock();
            if descriptors.0.is_empty() {
                return;
            }
            let kept = descriptors.remove(|descriptor| at.is_none_or(|at| descriptor.level > at));
            if at.is_none() {
                descriptors.0 = Vec::new();
            }
            kept
        };
        self.give_back(kept);
    }

    fn give_back(&self, kept: impl IntoIterator<Item = EngineStatement>) {
        for statement in kept {
            self.engine.take().close_statement(statement);
        }
    }
}
