//! `tls-server-end-point` (RFC 5929): the digest of the server's certificate that SCRAM's channel binding ties a login to.
//!
//! The digest is that of the certificate's own signature, and SHA-256 in place of MD5 and SHA-1. None: the signature has no digest apart
//! (Ed25519), or is not known here; then the login goes without channel binding.

use sha2::{Digest as _, Sha256, Sha384, Sha512};

const SEQUENCE: u8 = 0x30;
const OBJECT: u8 = 0x06;
/// 1.2.840.113549.1.1: RSA; 1.2.840.10045.4: ECDSA.
const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01];
const ECDSA: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04];

/// The content of the element of this tag that comes first, and what comes after it. DER: a tag, a length, a content.
fn expect(tag: u8, bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&found, rest) = bytes.split_first()?;
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
    (found == tag).then(|| rest.split_at_checked(length)).flatten()
}

/// Of a certificate.
pub(super) fn of(der: &[u8]) -> Option<Vec<u8>> {
    let (certificate, _) = expect(SEQUENCE, der)?;
    let (_to_be_signed, rest) = expect(SEQUENCE, certificate)?;
    let (algorithm, _) = expect(SEQUENCE, rest)?;
    let (algorithm, _) = expect(OBJECT, algorithm)?;
    let digest_bits = match (algorithm.strip_prefix(RSA), algorithm.strip_prefix(ECDSA)) {
        (Some([4 | 5 | 11]), _) | (_, Some([1] | [3, 2])) => 256,
        (Some([12]), _) | (_, Some([3, 3])) => 384,
        (Some([13]), _) | (_, Some([3, 4])) => 512,
        _ => return None,
    };
    Some(match digest_bits {
        256 => Sha256::digest(der).to_vec(),
        384 => Sha384::digest(der).to_vec(),
        _ => Sha512::digest(der).to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sequence(parts: &[&[u8]]) -> Vec<u8> {
        let content = parts.concat();
        [&[SEQUENCE, content.len() as u8], content.as_slice()].concat()
    }

    fn certificate(algorithm: &[u8]) -> Vec<u8> {
        let object = [&[OBJECT, algorithm.len() as u8], algorithm].concat();
        sequence(&[&sequence(&[b"anything"]), &sequence(&[&object])])
    }

    #[test]
    fn the_digest_is_that_of_the_signature() {
        let length = |prefix: &[u8], rest: &[u8]| of(&certificate(&[prefix, rest].concat())).map(|digest| digest.len());
        assert_eq!([length(RSA, &[5]), length(RSA, &[11]), length(ECDSA, &[3, 2])], [Some(32); 3]);
        assert_eq!([length(RSA, &[12]), length(ECDSA, &[3, 3])], [Some(48); 2]);
        assert_eq!([length(RSA, &[13]), length(ECDSA, &[3, 4])], [Some(64); 2]);
        assert_eq!([length(RSA, &[10]), length(&[0x2b, 0x65, 0x70], &[])], [None; 2], "RSA-PSS, Ed25519");
    }

    #[test]
    fn a_part_of_a_certificate_has_none() {
        let whole = certificate(&[RSA, &[11]].concat());
        assert!((0..whole.len()).all(|end| of(&whole[..end]).is_none()));
    }
}
