//! A list that is short nearly always: its first items need no memory of their own. A message of every statement has three of them.

use std::fmt;
use std::ops::Deref;

/// Up to `N` items in place, more of them in memory.
#[derive(Clone)]
pub enum Few<T, const N: usize> {
    /// So many of these.
    InPlace([T; N], usize),
    /// All of these.
    InMemory(Vec<T>),
}

impl<T: Copy + Default, const N: usize> Few<T, N> {
    /// So many items as `next` gives, which is not asked for more after an error. Memory is reserved for `count` of them: the caller has
    /// checked that the message can hold so many (WIRE-1).
    ///
    /// # Errors
    /// Those of `next`.
    #[inline]
    pub fn read<E>(count: usize, mut next: impl FnMut() -> Result<T, E>) -> Result<Self, E> {
        if count > N {
            return (0..count).map(|_| next()).collect::<Result<_, E>>().map(Few::InMemory);
        }
        let mut items = [T::default(); N];
        for item in items.iter_mut().take(count) {
            *item = next()?;
        }
        Ok(Few::InPlace(items, count))
    }
}

impl<T, const N: usize> Deref for Few<T, N> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match self {
            Few::InPlace(items, count) => items.get(..*count).unwrap_or_default(),
            Few::InMemory(items) => items,
        }
    }
}

impl<T: fmt::Debug, const N: usize> fmt::Debug for Few<T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<T: PartialEq, const N: usize> PartialEq for Few<T, N> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: Eq, const N: usize> Eq for Few<T, N> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_any_length_read_as_they_are() {
        for count in [0, 1, 3, 4, 5, 100] {
            let mut given = 0..;
            let few = Few::<i32, 4>::read(count, || given.next().ok_or(()));
            let all: Vec<i32> = (0..count as i32).collect();
            assert_eq!(few.as_deref(), Ok(all.as_slice()));
            assert_eq!(matches!(few, Ok(Few::InPlace(..))), count <= 4);
            let mut left = count;
            let short = Few::<i32, 4>::read(count, || {
                left -= 1;
                if left == 0 { Err(()) } else { Ok(0) }
            });
            assert_eq!(short.is_err(), count > 0);
        }
    }
}
