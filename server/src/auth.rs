//! SCRAM-SHA-256 as the server plays it (RFC 5802 without channel binding).
//!
//! # Life of an exchange
//! client-first -> `begin` answers with nonce, salt and rounds -> client-final -> `finish` checks the proof and answers with
//! the server's signature.
//!
//! # Invariants
//! - AUTH-1: a role that does not exist, or has no password, gets the same messages as one whose password is wrong.
//!
//! # Not here
//! Verifiers: `clearway_sql::session::password`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clearway_sql::session::password::{ITERATIONS, KEY_BYTES, Verifier, hmac};
use sha2::{Digest, Sha256};

/// Why an exchange failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuthError {
    /// The message is not SCRAM, or asks for what was not offered.
    #[error("malformed SCRAM message: {0}")]
    Malformed(&'static str),
    /// The proof does not fit.
    #[error("password authentication failed")]
    WrongPassword,
}

/// An exchange after its first message.
#[derive(Debug)]
pub struct Exchange {
    verifier: Verifier,
    /// False for a role that can't have proven itself, whatever the proof.
    can_succeed: bool,
    /// client-first-bare and server-first with the comma between.
    messages: String,
    nonce: String,
}

const NONCE_BYTES: usize = 18;

fn random<const N: usize>() -> Result<[u8; N], AuthError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|_| AuthError::Malformed("no random bytes"))?;
    Ok(bytes)
}

/// SASLInitialResponse: the mechanism and the client's first message.
fn initial_response(body: &[u8]) -> Result<&str, AuthError> {
    let bad = AuthError::Malformed("initial response");
    let end = body.iter().position(|&byte| byte == 0).ok_or(bad)?;
    let (mechanism, rest) = body.split_at_checked(end).ok_or(bad)?;
    if mechanism != b"SCRAM-SHA-256" {
        return Err(AuthError::Malformed("mechanism"));
    }
    let (length, data) = rest.get(1..).and_then(|rest| rest.split_first_chunk::<4>()).ok_or(bad)?;
    if u32::from_be_bytes(*length) as usize != data.len() {
        return Err(bad);
    }
    std::str::from_utf8(data).map_err(|_| bad)
}

/// A printable nonce of the client without a comma.
fn is_nonce(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b',')
}

impl Exchange {
    /// Takes SASLInitialResponse and gives the server's first message. `stored` is the role's verifier; without one the
    /// exchange goes on and fails at its end (AUTH-1), with a salt that `mock_key` makes the same each time for `user`.
    ///
    /// # Errors
    /// See [`AuthError`].
    pub fn begin(
        body: &[u8],
        user: &str,
        stored: Option<&str>,
        mock_key: &[u8],
    ) -> Result<(Exchange, String), AuthError> {
        let first = initial_response(body)?;
        let bare = match first.split_once(',') {
            Some(("n" | "y", rest)) => rest.split_once(',').map(|(_authzid, bare)| bare),
            _ => return Err(AuthError::Malformed("channel binding was not offered")),
        };
        let bare = bare.ok_or(AuthError::Malformed("client-first"))?;
        // The name in the message is ignored, as PostgreSQL does: the startup packet has named the role.
        let client_nonce = bare
            .split(',')
            .find_map(|part| part.strip_prefix("r="))
            .filter(|nonce| is_nonce(nonce))
            .ok_or(AuthError::Malformed("nonce"))?;
        if bare.starts_with("m=") {
            return Err(AuthError::Malformed("extensions are not supported"));
        }
        let known = stored.and_then(Verifier::parse);
        let can_succeed = known.is_some();
        let verifier = match known {
            Some(verifier) => verifier,
            None => Verifier {
                iterations: ITERATIONS,
                salt: hmac(mock_key, &[user.as_bytes()]).get(..16).unwrap_or_default().to_vec(),
                stored_key: random()?,
                server_key: random()?,
            },
        };
        let nonce = format!("{client_nonce}{}", STANDARD.encode(random::<NONCE_BYTES>()?));
        let salt = STANDARD.encode(&verifier.salt);
        let answer = format!("r={nonce},s={salt},i={}", verifier.iterations);
        let messages = format!("{bare},{answer}");
        Ok((Exchange { verifier, can_succeed, messages, nonce }, answer))
    }

    /// Takes SASLResponse, the client's last message, and gives the server's.
    ///
    /// # Errors
    /// See [`AuthError`].
    pub fn finish(self, body: &[u8]) -> Result<String, AuthError> {
        let last = std::str::from_utf8(body).map_err(|_| AuthError::Malformed("client-final"))?;
        let (without_proof, proof) = last.rsplit_once(",p=").ok_or(AuthError::Malformed("client-final"))?;
        let mut parts = without_proof.split(',');
        // "biws" is "n,,", "eSws" is "y,," in base64.
        if !matches!(parts.next(), Some("c=biws" | "c=eSws")) {
            return Err(AuthError::Malformed("channel binding"));
        }
        if parts.next().and_then(|part| part.strip_prefix("r=")) != Some(self.nonce.as_str()) {
            return Err(AuthError::Malformed("nonce"));
        }
        let proof: [u8; KEY_BYTES] =
            STANDARD.decode(proof).ok().and_then(|proof| proof.try_into().ok()).ok_or(AuthError::Malformed("proof"))?;
        let message = [self.messages.as_bytes(), b",", without_proof.as_bytes()];
        let mut client_key = hmac(&self.verifier.stored_key, &message);
        client_key.iter_mut().zip(proof).for_each(|(byte, proof)| *byte ^= proof);
        let derived: [u8; KEY_BYTES] = Sha256::digest(client_key).into();
        // In constant time: all bytes are compared.
        let differs = derived.iter().zip(self.verifier.stored_key).fold(0, |all, (a, b)| all | (a ^ b));
        if differs != 0 || !self.can_succeed {
            return Err(AuthError::WrongPassword);
        }
        Ok(format!("v={}", STANDARD.encode(hmac(&self.verifier.server_key, &message))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn initial(message: &str) -> Vec<u8> {
        let mut body = b"SCRAM-SHA-256\0".to_vec();
        body.extend_from_slice(&(message.len() as u32).to_be_bytes());
        body.extend_from_slice(message.as_bytes());
        body
    }

    /// A client that knows `password`, by the RFC and not by the code above.
    fn final_message(password: &str, answer: &str) -> String {
        let salt = STANDARD.decode(answer.split(",s=").nth(1).and_then(|s| s.split(',').next()).expect("salt"));
        let verifier_of = |key: &[u8]| Verifier::of(password, key, ITERATIONS);
        let verifier = verifier_of(&salt.expect("base64"));
        let nonce = answer.split(',').next().expect("nonce");
        let without_proof = format!("c=biws,{nonce}");
        let message = format!("n=,r=abc,{answer},{without_proof}");
        let signature = hmac(&verifier.stored_key, &[message.as_bytes()]);
        let salted = {
            let mut round = hmac(password.as_bytes(), &[&verifier.salt, &1u32.to_be_bytes()]);
            let mut sum = round;
            for _ in 1..ITERATIONS {
                round = hmac(password.as_bytes(), &[&round]);
                sum.iter_mut().zip(round).for_each(|(a, b)| *a ^= b);
            }
            sum
        };
        let mut proof = hmac(&salted, &[b"Client Key"]);
        proof.iter_mut().zip(signature).for_each(|(a, b)| *a ^= b);
        format!("{without_proof},p={}", STANDARD.encode(proof))
    }

    fn attempt(stored: Option<&str>, password: &str) -> Result<String, AuthError> {
        let (exchange, answer) = Exchange::begin(&initial("n,,n=,r=abc"), "u", stored, b"key")?;
        exchange.finish(final_message(password, &answer).as_bytes())
    }

    #[test]
    fn only_the_right_password_of_a_role_that_has_one_passes() {
        let stored = Verifier::of("right", b"0123456789abcdef", ITERATIONS).store();
        assert!(attempt(Some(&stored), "right").is_ok_and(|last| last.starts_with("v=")));
        assert_eq!(attempt(Some(&stored), "wrong"), Err(AuthError::WrongPassword));
        assert_eq!(attempt(None, "right"), Err(AuthError::WrongPassword), "AUTH-1");
    }

    #[test]
    fn malformed_messages_are_errors() {
        for first in
            ["", "n", "n,,", "n,,n=u", "n,,n=u,r=", "p=tls-unique,,n=u,r=a", "n,,m=x,n=u,r=a", "n,,n=u,r=a\u{7f}"]
        {
            assert!(Exchange::begin(&initial(first), "u", None, b"k").is_err(), "{first}");
        }
        for body in
            [&b""[..], b"SCRAM-SHA-256", b"SCRAM-SHA-256\0", b"SCRAM-SHA-256\0\0\0\0\x09n,,", b"PLAIN\0\0\0\0\0"]
        {
            assert!(Exchange::begin(body, "u", None, b"k").is_err(), "{body:?}");
        }
        for last in ["", ",p=", "c=biws,r=x,p=AAAA", "c=biws,p=AAAA"] {
            let begun = Exchange::begin(&initial("n,,n=,r=abc"), "u", None, b"k");
            let (exchange, _) = begun.expect("well formed");
            assert!(exchange.finish(last.as_bytes()).is_err(), "{last}");
        }
    }
}
