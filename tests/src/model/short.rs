//! A short list stored in place, so that a state of the model is one flat value: copied without allocation, hashed and
//! compared by its live entries only.

use std::hash::{Hash, Hasher};

/// At most `N` entries of `T`. Going past `N` is an error in a scenario's bounds and panics.
#[derive(Clone, Copy, Debug)]
pub struct Short<T, const N: usize> {
    len: u8,
    slots: [T; N],
}

impl<T: Copy + Default, const N: usize> Default for Short<T, N> {
    fn default() -> Self {
        Short { len: 0, slots: [T::default(); N] }
    }
}

impl<T: Copy + Default, const N: usize> Short<T, N> {
    /// Appends `entry`.
    ///
    /// # Panics
    /// When the list is full: the scenario needs larger bounds.
    pub fn push(&mut self, entry: T) {
        assert!((self.len as usize) < N, "a scenario exceeds the bound of {N} entries");
        self.slots[self.len as usize] = entry;
        self.len += 1;
    }

    /// The live entries.
    pub fn as_slice(&self) -> &[T] {
        &self.slots[..self.len as usize]
    }

    /// The live entries, to change in place.
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        &mut self.slots[..self.len as usize]
    }

    /// Iterates over the live entries.
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.as_slice().iter()
    }

    /// How many entries are live.
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Drops everything from entry `len` on.
    pub fn truncate(&mut self, len: usize) {
        if len < self.len as usize {
            self.len = len as u8;
        }
    }

    /// Drops every entry that `keep` refuses; the order of the others stays.
    pub fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        let mut kept = 0;
        for index in 0..self.len as usize {
            if keep(&self.slots[index]) {
                self.slots[kept] = self.slots[index];
                kept += 1;
            }
        }
        self.len = kept as u8;
    }

    /// Drops everything.
    pub fn clear(&mut self) {
        self.len = 0;
    }
}

impl<T: PartialEq + Copy + Default + Ord, const N: usize> Short<T, N> {
    /// Inserts `entry` in its place of a sorted list, once.
    pub fn insert_sorted(&mut self, entry: T) {
        if let Err(at) = self.as_slice().binary_search(&entry) {
            self.push(entry);
            self.as_mut_slice()[at..].rotate_right(1);
        }
    }
}

impl<T: PartialEq + Copy + Default, const N: usize> PartialEq for Short<T, N> {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl<T: Eq + Copy + Default, const N: usize> Eq for Short<T, N> {}

impl<T: Hash + Copy + Default, const N: usize> Hash for Short<T, N> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u8(self.len);
        for entry in self.as_slice() {
            entry.hash(state);
        }
    }
}
