//! Reads from an X.509 certificate what server and console need of it: the common name of its subject, and the digest to which channel
//! binding ties a login. Whether a certificate is valid is decided by rustls.
//!
//! X.509 is DER: a tag, a length, a content. The bytes are untrusted: every read is checked, and a certificate that does not decode gives
//! `None`.

use sha2::{Digest as _, Sha256, Sha384, Sha512};

const INTEGER: u8 = 0x02;
const OBJECT: u8 = 0x06;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const VERSION: u8 = 0xa0;
/// The kinds of texts that a common name may be and that are ASCII or UTF-8: UTF8String, PrintableString, IA5String.
const TEXTS: [u8; 3] = [0x0c, 0x13, 0x16];
/// 2.5.4.3.
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];

/// Takes one element: its tag, its content, and what comes after it.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = bytes.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        // A length of at most four bytes: no certificate is larger.
        0x81..=0x84 => {
            let (length, rest) = rest.split_at_checked(usize::from(first - 0x80))?;
            (length.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte)), rest)
        }
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((tag, content, rest))
}

/// Takes an element of this tag: its content, and what comes after it.
fn expect(tag: u8, bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    element(bytes).filter(|(found, ..)| *found == tag).map(|(_, content, rest)| (content, rest))
}

/// The common name of the subject; none where there are several or none, or one that is no text without control characters.
pub fn common_name(der: &[u8]) -> Option<String> {
    let (certificate, _) = expect(SEQUENCE, der)?;
    let (to_be_signed, _) = expect(SEQUENCE, certificate)?;
    let rest = expect(VERSION, to_be_signed).map_or(to_be_signed, |(_, rest)| rest);
    let (_serial, rest) = expect(INTEGER, rest)?;
    let (_algorithm, rest) = expect(SEQUENCE, rest)?;
    let (_issuer, rest) = expect(SEQUENCE, rest)?;
    let (_validity, rest) = expect(SEQUENCE, rest)?;
    let (mut subject, _) = expect(SEQUENCE, rest)?;
    let mut name = None;
    while !subject.is_empty() {
        let (mut attributes, rest) = expect(SET, subject)?;
        subject = rest;
        while !attributes.is_empty() {
            let (attribute, rest) = expect(SEQUENCE, attributes)?;
            attributes = rest;
            let (kind, value) = expect(OBJECT, attribute)?;
            if kind == COMMON_NAME {
                let (tag, text, _) = element(value)?;
                let text = std::str::from_utf8(text).ok().filter(|_| TEXTS.contains(&tag))?;
                // Of two names it would depend on the reader which one counts.
                if name.replace(text.to_owned()).is_some() {
                    return None;
                }
            }
        }
    }
    name.filter(|name| !name.is_empty() && !name.chars().any(char::is_control))
}

/// The digest of a certificate that `tls-server-end-point` asks for (RFC 5929): by the digest of its own signature, and SHA-256 in place of
/// MD5 and SHA-1. None for signatures that have no digest apart, such as Ed25519, and for RSA-PSS.
pub fn end_point(der: &[u8]) -> Option<Vec<u8>> {
    let (certificate, _) = expect(SEQUENCE, der)?;
    let (_to_be_signed, rest) = expect(SEQUENCE, certificate)?;
    let (algorithm, _) = expect(SEQUENCE, rest)?;
    let (algorithm, _) = expect(OBJECT, algorithm)?;
    // 1.2.840.113549.1.1.x: RSA; 1.2.840.10045.4.x: ECDSA.
    Some(match algorithm {
        [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 4 | 5 | 11] | [0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 1] => {
            Sha256::digest(der).to_vec()
        }
        [0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2] => Sha256::digest(der).to_vec(),
        [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 12] | [0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 3] => {
            Sha384::digest(der).to_vec()
        }
        [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 13] | [0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 4] => {
            Sha512::digest(der).to_vec()
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn der(tag: u8, content: &[u8]) -> Vec<u8> {
        let mut all = vec![tag];
        match content.len() {
            length @ 0..=0x7f => all.push(length as u8),
            length => all.extend([0x82, (length >> 8) as u8, length as u8]),
        }
        all.extend_from_slice(content);
        all
    }

    fn sequence(parts: &[Vec<u8>]) -> Vec<u8> {
        der(SEQUENCE, &parts.concat())
    }

    /// A certificate with these common names, as far as it is looked at.
    fn certificate(names: &[(u8, &[u8])], algorithm: &[u8]) -> Vec<u8> {
        let attribute = |(tag, text): &(u8, &[u8])| der(SET, &sequence(&[der(OBJECT, COMMON_NAME), der(*tag, text)]));
        let organisation = der(SET, &sequence(&[der(OBJECT, &[0x55, 0x04, 0x0a]), der(0x0c, &[b'x'; 200])]));
        let mut subject = vec![organisation];
        subject.extend(names.iter().map(attribute));
        let body = [
            der(VERSION, &der(INTEGER, &[2])),
            der(INTEGER, &[7]),
            sequence(&[]),
            sequence(&[]),
            sequence(&[]),
            sequence(&subject),
        ];
        sequence(&[sequence(&body), sequence(&[der(OBJECT, algorithm)]), der(3, &[0])])
    }

    const ECDSA_SHA384: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 3];

    #[test]
    fn one_common_name_is_a_name() {
        let name = |names: &[(u8, &[u8])]| common_name(&certificate(names, ECDSA_SHA384));
        assert_eq!(name(&[(0x0c, b"ann")]).as_deref(), Some("ann"));
        assert_eq!(name(&[(0x13, b"ann")]).as_deref(), Some("ann"));
        assert_eq!(name(&[]), None);
        assert_eq!(name(&[(0x0c, b"ann"), (0x0c, b"bob")]), None, "which of them?");
        for (tag, text) in [(0x0c, &b""[..]), (0x0c, b"ann\0bob"), (0x0c, b"\xff"), (0x1e, b"\0a")] {
            assert_eq!(name(&[(tag, text)]), None, "{tag} {text:?}");
        }
    }

    #[test]
    fn anything_else_is_none_and_nothing_panics() {
        let whole = certificate(&[(0x0c, b"ann")], ECDSA_SHA384);
        for end in 0..whole.len() {
            assert_eq!(common_name(&whole[..end]), None);
            assert_eq!(end_point(&whole[..end]), None);
        }
        let mut rng = crate::testkit::Rng::new(1);
        for _ in 0..100_000 {
            let mut damaged = whole.clone();
            for _ in 0..=rng.below(3) {
                let at = rng.below(damaged.len() as u64) as usize;
                damaged[at] = rng.below(256) as u8;
            }
            let _ = (common_name(&damaged), end_point(&damaged));
        }
    }

    #[test]
    fn the_digest_is_that_of_the_signature() {
        let length = |algorithm: &[u8]| end_point(&certificate(&[], algorithm)).map(|digest| digest.len());
        assert_eq!(length(&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 5]), Some(32), "SHA-1 gives SHA-256");
        assert_eq!(length(&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 11]), Some(32));
        assert_eq!(length(&[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2]), Some(32));
        assert_eq!(length(&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 12]), Some(48));
        assert_eq!(length(ECDSA_SHA384), Some(48));
        assert_eq!(length(&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 13]), Some(64));
        assert_eq!(length(&[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 4]), Some(64));
        assert_eq!(length(&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 10]), None, "RSA-PSS");
        assert_eq!(length(&[0x2b, 0x65, 0x70]), None, "Ed25519");
    }
}
