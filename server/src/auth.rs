//! The server's side of SCRAM-SHA-256 (RFC 5802), with channel binding over TLS (`tls-server-end-point`, RFC 5929). With channel binding
//! the proof is valid for this server's certificate only, so a machine in between with another certificate can't use it.
//!
//! # Life of an exchange
//! client-first -> `begin` answers with nonce, salt and rounds -> client-final -> `finish` checks the proof and answers with the server's
//! signature.
//!
//! # Invariants
//! - AUTH-1: a role that does not exist, or has no password, gets the same messages as a role whose password is wrong.
//! - AUTH-2: a client that supports channel binding and believes that the server does not is refused if the server does: a machine in
//!   between has removed the server's offer.
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
    /// What `c=` of the client's last message must be, in base64.
    binding: String,
}

const NONCE_BYTES: usize = 18;

fn random<const N: usize>() -> Result<[u8; N], AuthError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|_| AuthError::Malformed("no random bytes"))?;
    Ok(bytes)
}

/// The mechanism without channel binding.
const PLAIN: &[u8] = b"SCRAM-SHA-256";
/// The mechanism with it.
const PLUS: &[u8] = b"SCRAM-SHA-256-PLUS";

/// SASLInitialResponse: whether it asks for channel binding, and the client's first message.
fn initial_response(body: &[u8]) -> Result<(bool, &str), AuthError> {
    let bad = AuthError::Malformed("initial response");
    let end = body.iter().position(|&byte| byte == 0).ok_or(bad)?;
    let (mechanism, rest) = body.split_at_checked(end).ok_or(bad)?;
    if mechanism != PLAIN && mechanism != PLUS {
        return Err(AuthError::Malformed("mechanism"));
    }
    let (length, data) = rest.get(1..).and_then(|rest| rest.split_first_chunk::<4>()).ok_or(bad)?;
    if u32::from_be_bytes(*length) as usize != data.len() {
        return Err(bad);
    }
    Ok((mechanism == PLUS, std::str::from_utf8(data).map_err(|_| bad)?))
}

/// What the client binds to, of its first message: the rest of that, and what `c=` of its last message must be.
fn bound<'a>(plus: bool, first: &'a str, end_point: Option<&[u8]>) -> Result<(&'a str, String), AuthError> {
    let header_end = first.match_indices(',').nth(1).ok_or(AuthError::Malformed("client-first"))?.0 + 1;
    let (header, bare) = first.split_at(header_end);
    let binding = match (plus, header, end_point) {
        (true, "p=tls-server-end-point,,", Some(end_point)) => [header.as_bytes(), end_point].concat(),
        (false, "y,,", Some(_)) => return Err(AuthError::Malformed("the offer of channel binding got lost")), // AUTH-2
        (false, "n,," | "y,,", _) => header.as_bytes().to_vec(),
        (true, ..) => return Err(AuthError::Malformed("channel binding was not offered")),
        (false, ..) => return Err(AuthError::Malformed("client-first")),
    };
    Ok((bare, STANDARD.encode(binding)))
}

/// A printable nonce of the client without a comma.
fn is_nonce(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b',')
}

impl Exchange {
    /// Takes SASLInitialResponse and gives the server's first message. `stored` is the role's verifier; without one the
    /// exchange goes on and fails at its end (AUTH-1), with a salt that `mock_key` makes the same each time for `user`. `end_point` is what
    /// the channel can be bound to.
    ///
    /// # Errors
    /// See [`AuthError`].
    pub fn begin(
        body: &[u8],
        user: &str,
        stored: Option<&str>,
        mock_key: &[u8],
        end_point: Option<&[u8]>,
    ) -> Result<(Exchange, String), AuthError> {
        let (plus, first) = initial_response(body)?;
        let (bare, binding) = bound(plus, first, end_point)?;
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
        Ok((Exchange { verifier, can_succeed, messages, nonce, binding }, answer))
    }

    /// Takes SASLResponse, the client's last message, and gives the server's.
    ///
    /// # Errors
    /// See [`AuthError`].
    pub fn finish(self, body: &[u8]) -> Result<String, AuthError> {
        let last = std::str::from_utf8(body).map_err(|_| AuthError::Malformed("client-final"))?;
        let (without_proof, proof) = last.rsplit_once(",p=").ok_or(AuthError::Malformed("client-final"))?;
        let mut parts = without_proof.split(',');
        if parts.next().and_then(|part| part.strip_prefix("c=")) != Some(self.binding.as_str()) {
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
        initial_of("SCRAM-SHA-256", message)
    }

    fn initial_of(mechanism: &str, message: &str) -> Vec<u8> {
        let mut body = format!("{mechanism}\0").into_bytes();
        body.extend_from_slice(&(message.len() as u32).to_be_bytes());
        body.extend_from_slice(message.as_bytes());
        body
    }

    /// A client that knows `password`, by the RFC and not by the code above.
    fn final_message(password: &str, answer: &str) -> String {
        bound_message(password, answer, "biws")
    }

    fn bound_message(password: &str, answer: &str, binding: &str) -> String {
        let salt = STANDARD.decode(answer.split(",s=").nth(1).and_then(|s| s.split(',').next()).expect("salt"));
        let verifier_of = |key: &[u8]| Verifier::of(password, key, ITERATIONS);
        let verifier = verifier_of(&salt.expect("base64"));
        let nonce = answer.split(',').next().expect("nonce");
        let without_proof = format!("c={binding},{nonce}");
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
        let (exchange, answer) = Exchange::begin(&initial("n,,n=,r=abc"), "u", stored, b"key", None)?;
        exchange.finish(final_message(password, &answer).as_bytes())
    }

    #[test]
    fn only_the_right_password_of_a_role_that_has_one_passes() {
        let stored = Verifier::of("right", b"0123456789abcdef", ITERATIONS).store();
        assert!(attempt(Some(&stored), "right").is_ok_and(|last| last.starts_with("v=")));
        assert_eq!(attempt(Some(&stored), "wrong"), Err(AuthError::WrongPassword));
        assert_eq!(attempt(None, "right"), Err(AuthError::WrongPassword), "AUTH-1");
    }

    /// AUTH-2; the digest in `c=` must be that of the certificate which the server itself has shown.
    #[test]
    fn a_login_is_bound_to_the_channel() {
        let stored = Verifier::of("right", b"0123456789abcdef", ITERATIONS).store();
        let end_point: &[u8] = &[7; 32];
        let attempt = |mechanism: &str, header: &str, offered: Option<&[u8]>, sent: &[u8]| {
            let first = initial_of(mechanism, &format!("{header}n=,r=abc"));
            let (exchange, answer) = Exchange::begin(&first, "u", Some(&stored), b"key", offered)?;
            let binding = STANDARD.encode([header.as_bytes(), sent].concat());
            exchange.finish(bound_message("right", &answer, &binding).as_bytes())
        };
        let (plus, plain, bound) = ("SCRAM-SHA-256-PLUS", "SCRAM-SHA-256", "p=tls-server-end-point,,");
        assert!(attempt(plus, bound, Some(end_point), end_point).is_ok());
        assert!(attempt(plain, "n,,", Some(end_point), b"").is_ok());
        assert!(attempt(plain, "y,,", None, b"").is_ok());
        for (mechanism, header, offered, sent) in [
            (plus, bound, Some(end_point), &[8; 32][..]),
            (plus, bound, Some(end_point), b""),
            (plus, bound, None, end_point),
            (plus, "n,,", Some(end_point), b""),
            (plus, "p=tls-unique,,", Some(end_point), end_point),
            (plain, bound, Some(end_point), end_point),
            (plain, "y,,", Some(end_point), b""),
            (plain, "n,a=other,", Some(end_point), b""),
        ] {
            assert!(attempt(mechanism, header, offered, sent).is_err(), "{mechanism} {header} {sent:?}");
        }
    }

    #[test]
    fn malformed_messages_are_errors() {
        for first in
            ["", "n", "n,,", "n,,n=u", "n,,n=u,r=", "p=tls-unique,,n=u,r=a", "n,,m=x,n=u,r=a", "n,,n=u,r=a\u{7f}"]
        {
            assert!(Exchange::begin(&initial(first), "u", None, b"k", None).is_err(), "{first}");
        }
        for body in
            [&b""[..], b"SCRAM-SHA-256", b"SCRAM-SHA-256\0", b"SCRAM-SHA-256\0\0\0\0\x09n,,", b"PLAIN\0\0\0\0\0"]
        {
            assert!(Exchange::begin(body, "u", None, b"k", None).is_err(), "{body:?}");
        }
        for last in ["", ",p=", "c=biws,r=x,p=AAAA", "c=biws,p=AAAA"] {
            let begun = Exchange::begin(&initial("n,,n=,r=abc"), "u", None, b"k", None);
            let (exchange, _) = begun.expect("well formed");
            assert!(exchange.finish(last.as_bytes()).is_err(), "{last}");
        }
    }
}
