//! uuid: its text, and random uuids.

/// Sixteen bytes of 32 hexadecimal digits, with a hyphen after any group of four, and in braces perhaps.
pub fn parse(text: &str) -> Option<[u8; 16]> {
    let bytes = text.as_bytes();
    let braced = bytes.first() == Some(&b'{');
    let mut at = usize::from(braced);
    let mut out = [0; 16];
    for (i, byte) in out.iter_mut().enumerate() {
        let digit = |at: usize| bytes.get(at).and_then(|b| char::from(*b).to_digit(16));
        *byte = (digit(at)? << 4 | digit(at + 1)?) as u8;
        at += 2;
        if i % 2 == 1 && i < 15 && bytes.get(at) == Some(&b'-') {
            at += 1;
        }
    }
    if braced {
        (bytes.get(at) == Some(&b'}')).then_some(())?;
        at += 1;
    }
    (at == bytes.len()).then_some(out)
}

/// `00000000-0000-0000-0000-000000000000`.
pub fn format(uuid: &[u8; 16]) -> String {
    let mut out = String::with_capacity(36);
    for (i, byte) in uuid.iter().enumerate() {
        if matches!(i, 4 | 6 | 8 | 10) {
            out.push('-');
        }
        for digit in [byte >> 4, byte & 15] {
            out.push(char::from_digit(u32::from(digit), 16).unwrap_or('0'));
        }
    }
    out
}

/// A version 4 uuid of sixteen random bytes.
pub fn random(mut bytes: [u8; 16]) -> [u8; 16] {
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    bytes
}
