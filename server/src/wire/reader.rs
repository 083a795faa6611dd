//! Reads one message's body; every read is checked (WIRE-1).

use super::WireError;

/// What is left of a body.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let (head, tail) = self.0.split_first_chunk::<N>().ok_or(WireError::Short)?;
        self.0 = tail;
        Ok(*head)
    }

    pub fn u8(&mut self) -> Result<u8, WireError> {
        self.take::<1>().map(|[byte]| byte)
    }

    pub fn u16(&mut self) -> Result<u16, WireError> {
        self.take().map(u16::from_be_bytes)
    }

    pub fn i16(&mut self) -> Result<i16, WireError> {
        self.take().map(i16::from_be_bytes)
    }

    pub fn i32(&mut self) -> Result<i32, WireError> {
        self.take().map(i32::from_be_bytes)
    }

    pub fn u32(&mut self) -> Result<u32, WireError> {
        self.take().map(u32::from_be_bytes)
    }

    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8], WireError> {
        let (head, tail) = self.0.split_at_checked(count).ok_or(WireError::Short)?;
        self.0 = tail;
        Ok(head)
    }

    /// A count of items of at least `item_bytes` each: one that the body can't hold is refused before anything is
    /// reserved for it.
    pub fn count(&mut self, item_bytes: usize) -> Result<usize, WireError> {
        let count = usize::from(self.u16()?);
        if self.0.len() < count.saturating_mul(item_bytes) {
            return Err(WireError::Short);
        }
        Ok(count)
    }

    /// A string that ends with a zero byte.
    pub fn string(&mut self) -> Result<&'a str, WireError> {
        let end = self.0.iter().position(|&byte| byte == 0).ok_or(WireError::Unterminated)?;
        let text = self.bytes(end)?;
        self.u8()?;
        // Most portals have no name.
        if text.is_empty() { Ok("") } else { utf8(text) }
    }

    /// Nothing may be left.
    pub fn end(self) -> Result<(), WireError> {
        if self.0.is_empty() { Ok(()) } else { Err(WireError::Long) }
    }
}

fn utf8(bytes: &[u8]) -> Result<&str, WireError> {
    std::str::from_utf8(bytes)
        .map_err(|error| WireError::Encoding(bytes.get(error.valid_up_to()).copied().unwrap_or(0)))
}
