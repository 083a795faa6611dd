//! An owned buffer that direct I/O accepts.
//!
//! # Structure
//! The bytes are inside a larger vector; `start` is the offset of the first aligned byte. That costs up to `IO_ALIGN - 1` untouched
//! bytes per buffer and needs no unsafe code.
//!
//! # Invariants
//! - VFS-6: `start + len <= raw.len()`, and the address of the first byte, where there is one, is a multiple of `IO_ALIGN`.
//! - VFS-8: appending copies each byte a bounded number of times on average: what does not fit moves to an allocation of twice the
//!   size at least. (Growing by what was missing, eight bytes at a time, took a second for the log's first flush of four megabytes.)

use super::IO_ALIGN;
use std::ops::{Deref, DerefMut};

/// Owned bytes whose address is a multiple of [`IO_ALIGN`].
pub struct IoBuf {
    raw: Vec<u8>,
    start: usize,
    len: usize,
}

impl IoBuf {
    /// A buffer of `len` zero bytes.
    pub fn zeroed(len: usize) -> Self {
        if len == 0 {
            // It stands in for a buffer that is away with a request, at each flush of the log: nothing is allocated.
            return IoBuf { raw: Vec::new(), start: 0, len: 0 };
        }
        let raw = vec![0_u8; len + IO_ALIGN - 1];
        let start = raw.as_ptr().align_offset(IO_ALIGN);
        // VFS-6; `align_offset` may give up in theory (usize::MAX), never for bytes on real targets.
        assert!(start < IO_ALIGN, "no aligned byte in a fresh buffer");
        IoBuf { raw, start, len }
    }

    /// An empty buffer that can grow to `capacity` without a new allocation.
    pub fn with_capacity(capacity: usize) -> Self {
        let mut buf = IoBuf::zeroed(capacity);
        buf.len = 0;
        buf
    }

    /// A buffer with a copy of `bytes`.
    pub fn from_slice(bytes: &[u8]) -> Self {
        if bytes.is_empty() {
            return IoBuf::zeroed(0);
        }
        // Not zeroed first: each page that is written passes here.
        let mut raw: Vec<u8> = Vec::with_capacity(bytes.len() + IO_ALIGN - 1);
        let start = raw.as_ptr().align_offset(IO_ALIGN);
        assert!(start < IO_ALIGN, "no aligned byte in a fresh buffer"); // VFS-6
        raw.resize(start, 0);
        raw.extend_from_slice(bytes);
        IoBuf { raw, start, len: bytes.len() }
    }

    /// The number of bytes that fit without a new allocation.
    pub fn capacity(&self) -> usize {
        self.raw.len() - self.start
    }

    /// Sets the length. Bytes that come into view keep whatever they held (zeros in a fresh buffer);
    /// beyond the capacity a new allocation is made and the bytes are copied.
    #[inline]
    pub fn resize(&mut self, len: usize) {
        if len > self.capacity() {
            self.grow(len);
        }
        self.len = len;
    }

    fn grow(&mut self, capacity: usize) {
        let mut larger = IoBuf::zeroed(capacity);
        larger.len = self.len;
        larger.copy_from_slice(self);
        *self = larger;
    }

    /// Appends a copy of `bytes`; VFS-8.
    #[inline]
    pub fn extend_from_slice(&mut self, bytes: &[u8]) {
        let old = self.len;
        let len = old + bytes.len();
        if len > self.capacity() {
            self.grow(len.max(2 * self.capacity()));
        }
        self.len = len;
        self[old..].copy_from_slice(bytes);
    }
}

impl Deref for IoBuf {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.raw[self.start..self.start + self.len]
    }
}

impl DerefMut for IoBuf {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.raw[self.start..self.start + self.len]
    }
}

impl Clone for IoBuf {
    fn clone(&self) -> Self {
        // Not derived: the clone of a vector lies at another address.
        IoBuf::from_slice(self)
    }
}

impl std::fmt::Debug for IoBuf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "IoBuf({} bytes)", self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_make_a_buffer_aligns_it() {
        let mut grown = IoBuf::with_capacity(3);
        grown.extend_from_slice(b"abc");
        grown.extend_from_slice(&[7; 5000]);
        for buf in [IoBuf::zeroed(1), IoBuf::from_slice(b"xyz"), grown.clone(), grown] {
            assert_eq!(buf.as_ptr() as usize % IO_ALIGN, 0, "VFS-6");
        }
    }

    #[test]
    fn an_empty_buffer_allocates_nothing_and_grows() {
        let mut buf = IoBuf::zeroed(0);
        assert_eq!((buf.raw.capacity(), buf.capacity()), (0, 0));
        buf.extend_from_slice(b"abc");
        assert_eq!((&buf[..], buf.as_ptr() as usize % IO_ALIGN), (&b"abc"[..], 0), "VFS-6");
    }

    #[test]
    fn growing_keeps_the_bytes() {
        let mut buf = IoBuf::from_slice(b"abc");
        buf.resize(10_000);
        assert_eq!(&buf[..4], b"abc\0");
        assert_eq!(buf.len(), 10_000);
    }

    #[test]
    fn appending_words_moves_the_bytes_only_now_and_then() {
        // VFS-8: as the log's flusher takes records out of the ring.
        let mut buf = IoBuf::with_capacity(64 << 10);
        let (mut capacity, mut moves) = (buf.capacity(), 0);
        for word in 0..(4_u64 << 20) / 8 {
            buf.extend_from_slice(&word.to_le_bytes());
            if buf.capacity() != capacity {
                (capacity, moves) = (buf.capacity(), moves + 1);
            }
        }
        assert!(moves <= 7, "{moves} moves from 64 KiB to 4 MiB");
        assert_eq!((buf.len(), &buf[8..16]), (4 << 20, &1_u64.to_le_bytes()[..]));
        assert_eq!(buf.as_ptr() as usize % IO_ALIGN, 0, "VFS-6");
    }
}
