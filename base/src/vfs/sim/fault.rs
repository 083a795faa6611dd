//! Planted errors: the n-th call of some kind, on some file, fails.

use super::super::OpKind;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// A planted error. A write that fails may have written any part; a sync that fails follows DISK-3; every
/// other operation that fails has no effect.
#[derive(Clone, Debug)]
pub struct Fault {
    op: Option<OpKind>,
    path_part: String,
    skip: u64,
    times: u64,
    error: io::ErrorKind,
}

impl Fault {
    /// The next operation of any kind fails.
    pub fn any(error: io::ErrorKind) -> Self {
        Fault { op: None, path_part: String::new(), skip: 0, times: 1, error }
    }

    /// The next operation of this kind fails.
    pub fn on(op: OpKind, error: io::ErrorKind) -> Self {
        Fault { op: Some(op), ..Fault::any(error) }
    }

    /// Only operations on paths that contain `part` count.
    pub fn path(self, part: &str) -> Self {
        Fault { path_part: part.to_owned(), ..self }
    }

    /// The `nth` matching operation from now fails, and not the first. Counted from 1.
    pub fn nth(self, nth: u64) -> Self {
        assert!(nth > 0, "calls are counted from 1");
        Fault { skip: nth - 1, ..self }
    }

    /// From then on, that many in a row fail; `u64::MAX` for all.
    pub fn times(self, times: u64) -> Self {
        Fault { times, ..self }
    }
}

/// The faults of a disk, and how often each kind was called.
#[derive(Default)]
pub(super) struct Faults {
    planted: Vec<Fault>,
    calls: BTreeMap<&'static str, u64>,
}

impl Faults {
    pub(super) fn plant(&mut self, fault: Fault) {
        self.planted.push(fault);
    }

    pub(super) fn clear(&mut self) {
        self.planted.clear();
    }

    pub(super) fn calls(&self, op: OpKind) -> u64 {
        self.calls.get(op.name()).copied().unwrap_or(0)
    }

    /// Counts a call and says whether it is to fail.
    pub(super) fn call(&mut self, op: OpKind, path: &Path) -> Option<io::Error> {
        *self.calls.entry(op.name()).or_default() += 1;
        let path = path.to_string_lossy();
        let mut error = None;
        for fault in &mut self.planted {
            let matches = fault.op.is_none_or(|kind| kind == op) && path.contains(&fault.path_part);
            if !matches || fault.times == 0 {
                continue;
            }
            if fault.skip > 0 {
                fault.skip -= 1;
            } else if error.is_none() {
                fault.times -= 1;
                error = Some(io::Error::new(fault.error, "planted fault"));
            }
        }
        self.planted.retain(|fault| fault.times > 0);
        error
    }
}
