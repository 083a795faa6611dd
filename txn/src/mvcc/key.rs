//! A row's key as an undo record keeps it: a short one is part of the record itself. Most keys are short, and each change of a row would
//! otherwise allocate and free one more piece of memory, and so would its purge.

use std::cmp::Ordering;
use std::fmt;
use std::ops::Deref;

/// The longest key without memory of its own: the key is as large with it as without.
const SHORT: usize = 22;

/// A row's key.
#[derive(Clone)]
pub struct RowKey(Form);

#[derive(Clone)]
enum Form {
    Short(u8, [u8; SHORT]),
    Long(Box<[u8]>),
}

impl RowKey {
    /// Bytes on the heap of a key of this length.
    pub(super) fn heap_bytes(len: usize) -> usize {
        if len > SHORT { len } else { 0 }
    }
}

impl Deref for RowKey {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Form::Short(len, bytes) => &bytes[..usize::from(*len)],
            Form::Long(bytes) => bytes,
        }
    }
}

impl From<&[u8]> for RowKey {
    fn from(key: &[u8]) -> RowKey {
        let mut bytes = [0; SHORT];
        match bytes.get_mut(..key.len()) {
            Some(place) => {
                place.copy_from_slice(key);
                RowKey(Form::Short(key.len() as u8, bytes))
            }
            None => RowKey(Form::Long(key.into())),
        }
    }
}

impl From<Box<[u8]>> for RowKey {
    fn from(key: Box<[u8]>) -> RowKey {
        if key.len() > SHORT { RowKey(Form::Long(key)) } else { RowKey::from(&key[..]) }
    }
}

impl From<&RowKey> for Box<[u8]> {
    fn from(key: &RowKey) -> Box<[u8]> {
        key[..].into()
    }
}

impl Default for RowKey {
    fn default() -> RowKey {
        RowKey(Form::Short(0, [0; SHORT]))
    }
}

impl PartialEq for RowKey {
    fn eq(&self, other: &RowKey) -> bool {
        **self == **other
    }
}

impl Eq for RowKey {}

impl PartialOrd for RowKey {
    fn partial_cmp(&self, other: &RowKey) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for RowKey {
    fn cmp(&self, other: &RowKey) -> Ordering {
        (**self).cmp(&**other)
    }
}

impl fmt::Debug for RowKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_of_any_length_is_kept_and_a_short_one_takes_no_heap() {
        assert_eq!(size_of::<RowKey>(), size_of::<Box<[u8]>>() + 8);
        let all: Vec<u8> = (1..=60).collect();
        for len in 0..=all.len() {
            let key = RowKey::from(&all[..len]);
            assert_eq!(key[..], all[..len]);
            assert_eq!(key, RowKey::from(Box::from(&all[..len])));
            assert_eq!(Box::<[u8]>::from(&key)[..], all[..len]);
            let heap_bytes = if matches!(key.0, Form::Long(_)) { len } else { 0 };
            assert_eq!(heap_bytes, RowKey::heap_bytes(len));
            assert!(len == 0 || key > RowKey::from(&all[..len - 1]), "keys sort as their bytes");
        }
    }
}
