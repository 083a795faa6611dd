//! Password verifiers of SCRAM-SHA-256 (RFC 5802, RFC 7677), in the form in which PostgreSQL stores them.
//!
//! `SCRAM-SHA-256$<iterations>:<salt>$<StoredKey>:<ServerKey>`; all but the iterations is in base64. The password itself is not stored.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256};

use clearway_syntax::error::{Result, SqlError};

/// What a key or a signature has.
pub const KEY_BYTES: usize = 32;
/// Rounds for new verifiers, as in PostgreSQL.
pub const ITERATIONS: u32 = 4096;
/// The most rounds of a verifier that a client makes: they are gone through once, to see whether it is that of the empty password.
const ITERATIONS_MAX: u32 = 100_000;
const SALT_BYTES: usize = 16;
const SCHEME: &str = "SCRAM-SHA-256$";

/// What is stored in place of a password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verifier {
    /// Rounds of hashing.
    pub iterations: u32,
    /// The salt.
    pub salt: Vec<u8>,
    /// Proves the client.
    pub stored_key: [u8; KEY_BYTES],
    /// Proves the server.
    pub server_key: [u8; KEY_BYTES],
}

impl Verifier {
    /// The verifier of a password with a salt.
    pub fn of(password: &str, salt: &[u8], iterations: u32) -> Verifier {
        let salted = salted_password(password, salt, iterations);
        let stored_key = Sha256::digest(hmac(&salted, &[b"Client Key"])).into();
        let server_key = hmac(&salted, &[b"Server Key"]);
        Verifier { iterations, salt: salt.to_vec(), stored_key, server_key }
    }

    /// Reads the stored form; None if it is another.
    pub fn parse(stored: &str) -> Option<Verifier> {
        let (head, keys) = stored.strip_prefix(SCHEME)?.split_once('$')?;
        let (iterations, salt) = head.split_once(':')?;
        let (stored_key, server_key) = keys.split_once(':')?;
        let key = |text: &str| STANDARD.decode(text).ok()?.try_into().ok();
        Some(Verifier {
            iterations: iterations.parse().ok().filter(|&rounds| rounds > 0)?,
            salt: STANDARD.decode(salt).ok()?,
            stored_key: key(stored_key)?,
            server_key: key(server_key)?,
        })
    }

    /// The stored form.
    pub fn store(&self) -> String {
        let (salt, stored, server) =
            (STANDARD.encode(&self.salt), STANDARD.encode(self.stored_key), STANDARD.encode(self.server_key));
        format!("{SCHEME}{}:{salt}${stored}:{server}", self.iterations)
    }
}

/// What `PASSWORD 'text'` stores: a verifier of the text, or the text itself if it is a verifier already; none for the empty password, also in
/// the form of a verifier.
///
/// # Errors
/// XX000 if the system gives no random bytes; 0A000 for MD5 hashes, which can't be used, and for verifiers of too many rounds.
pub fn to_store(text: &str) -> Result<Option<String>> {
    if text.is_empty() {
        return Ok(None);
    }
    if let Some(given) = Verifier::parse(text) {
        if given.iterations > ITERATIONS_MAX {
            return Err(SqlError::unsupported(format!("a verifier of more than {ITERATIONS_MAX} rounds")));
        }
        let empty = Verifier::of("", &given.salt, given.iterations);
        return Ok((empty != given).then(|| text.to_owned()));
    }
    if text.len() == 35 && text.starts_with("md5") {
        return Err(SqlError::unsupported("a password in MD5 form"));
    }
    let mut salt = [0; SALT_BYTES];
    getrandom::fill(&mut salt)
        .map_err(|error| SqlError::internal(format!("could not generate random salt: {error}")))?;
    Ok(Some(Verifier::of(text, &salt, ITERATIONS).store()))
}

/// HMAC-SHA-256 over parts.
pub fn hmac(key: &[u8], parts: &[&[u8]]) -> [u8; KEY_BYTES] {
    let mut mac = <Hmac<Sha256> as Mac>::new_from_slice(key).expect("HMAC takes a key of any length");
    parts.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().into()
}

/// PBKDF2 with one block: `Hi` of RFC 5802. The password is normalised by SASLprep where that applies, else taken as it is.
fn salted_password(password: &str, salt: &[u8], iterations: u32) -> [u8; KEY_BYTES] {
    let prepared = stringprep::saslprep(password).unwrap_or(password.into());
    let key = prepared.as_bytes();
    let mut round = hmac(key, &[salt, &1u32.to_be_bytes()]);
    let mut result = round;
    for _ in 1..iterations {
        round = hmac(key, &[&round]);
        result.iter_mut().zip(round).for_each(|(sum, byte)| *sum ^= byte);
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 7677, section 3: user "user", password "pencil".
    #[test]
    fn the_example_of_the_rfc() {
        let salt = STANDARD.decode("W22ZaJ0SNY7soEsUEjb6gQ==").expect("base64");
        let verifier = Verifier::of("pencil", &salt, 4096);
        let message = "n=user,r=rOprNGfwEbeRWgbNEkqO,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
            s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
        let signature = hmac(&verifier.server_key, &[message.as_bytes()]);
        assert_eq!(STANDARD.encode(signature), "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
    }

    #[test]
    fn stored_form_comes_back_and_others_are_refused() {
        let verifier = Verifier::of("secret", b"0123456789abcdef", 4096);
        assert_eq!(Verifier::parse(&verifier.store()), Some(verifier.clone()));
        assert_eq!(to_store(&verifier.store()), Ok(Some(verifier.store())));
        assert_eq!(to_store(&Verifier::of("", b"0123456789abcdef", 4096).store()), Ok(None));
        let long = verifier.store().replacen("4096", "4294967295", 1);
        assert_eq!(to_store(&long).map_err(|e| e.code()), Err("0A000"));
        for bad in ["", "secret", "SCRAM-SHA-256$", "SCRAM-SHA-256$0:AA==$AA==:AA==", "SCRAM-SHA-256$1:AA==$AA==:AA=="]
        {
            assert_eq!(Verifier::parse(bad), None, "{bad}");
        }
        assert!(to_store("md5aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa").is_err());
    }
}
