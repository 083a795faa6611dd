//! Bytes as hexadecimal digits.

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Appends two digits for each byte.
pub fn push_hex(bytes: &[u8], out: &mut String) {
    out.reserve(2 * bytes.len());
    for byte in bytes {
        out.push(char::from(DIGITS[usize::from(byte >> 4)]));
        out.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
}

/// Two digits for each byte.
pub fn hex(bytes: &[u8]) -> String {
    let mut out = String::new();
    push_hex(bytes, &mut out);
    out
}
