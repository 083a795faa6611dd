//! `crypt` and `gen_salt` of pgcrypto: hashes of passwords by MD5 and by Blowfish. Those by DES are refused.

use super::eval::Env;
use super::extension_functions::random;
use super::functions::{Function, i, s, table};
use crate::error::{Result, SqlError, code};
use crate::types::{Datum, oid};
use blowfish::Blowfish;
use clearway_base::breath;
use md5::{Digest, Md5};

use oid::{INT4, TEXT};

#[rustfmt::skip]
pub static FUNCTIONS: &[Function] = table! {
    "crypt"(TEXT, TEXT) TEXT strict crypt; "gen_salt"(TEXT) TEXT volatile |a, _| salt(s(a, 0), 0); "gen_salt"(TEXT, INT4) TEXT volatile |a, _| salt(s(a, 0), i(a, 1));
};

/// The digits of the hashes by MD5, and of those by Blowfish.
const MD5_DIGITS: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const BF_DIGITS: &[u8; 64] = b"./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
/// The bytes of a password that Blowfish takes.
const BF_KEY_MAX: usize = 72;
/// What a hash by Blowfish takes of the time of one round, in nanoseconds or so.
const BF_ROUND_COST: usize = 60_000;

fn invalid(message: impl Into<String>) -> SqlError {
    SqlError::new(code::INVALID_PARAMETER_VALUE, message)
}

fn crypt(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let (password, salt) = (s(a, 0), s(a, 1));
    if salt.starts_with("$2a$") {
        return by_blowfish(password, salt).map(Datum::text);
    }
    if let Some(salt) = salt.strip_prefix("$1$") {
        return by_md5(password, salt).map(Datum::text);
    }
    if salt.starts_with("$2$") {
        return Err(SqlError::new("39000", "crypt(3) returned NULL"));
    }
    if salt.len() < 2 {
        return Err(invalid("invalid salt"));
    }
    Err(SqlError::unsupported(match salt {
        _ if salt.starts_with("$2x$") => "crypt with a salt of $2x$",
        _ if salt.starts_with('_') => "crypt by extended DES",
        _ => "crypt by DES",
    }))
}

fn salt(kind: &str, rounds: i64) -> Result<Datum> {
    let wrong = || invalid("gen_salt: Incorrect number of rounds");
    match kind.to_ascii_lowercase().as_str() {
        "md5" if !matches!(rounds, 0 | 1000) => Err(wrong()),
        "md5" => Ok(Datum::text(format!("$1${}", md5_digits(&random::<6>()?)))),
        "bf" => {
            let rounds = if rounds == 0 { 6 } else { rounds };
            if !(4..=31).contains(&rounds) {
                return Err(wrong());
            }
            Ok(Datum::text(format!("$2a${rounds:02}${}", bf_digits(&random::<16>()?))))
        }
        "des" | "xdes" => Err(SqlError::unsupported(format!("gen_salt('{}')", kind.to_ascii_lowercase()))),
        _ => Err(invalid("gen_salt: Unknown salt algorithm")),
    }
}

/// Three bytes as four digits, the lowest bits first.
fn md5_digits(bytes: &[u8]) -> String {
    let mut out = String::new();
    for group in bytes.chunks(3) {
        let mut bits = group.iter().rev().fold(0u32, |bits, byte| bits << 8 | u32::from(*byte));
        for _ in 0..=group.len() {
            out.push(char::from(MD5_DIGITS[(bits & 63) as usize]));
            bits >>= 6;
        }
    }
    out
}

/// The hash of FreeBSD, `$1$salt$hash`.
fn by_md5(password: &str, salt: &str) -> Result<String> {
    let salt = salt.split('$').next().unwrap_or("");
    let salt = &salt[..salt.floor_char_boundary(salt.len().min(8))];
    let (password, salted) = (password.as_bytes(), salt.as_bytes());
    breath::step_bytes(password.len())?;
    let mut sum = Md5::new_with_prefix([password, b"$1$", salted].concat());
    let mut last = Md5::digest([password, salted, password].concat());
    for piece in password.chunks(16) {
        sum.update(&last[..piece.len()]);
    }
    let mut left = password.len();
    while left > 0 {
        sum.update(if left & 1 == 1 { &[0][..] } else { &password[..1] });
        left >>= 1;
    }
    last = sum.finalize();
    for round in 0..1000 {
        breath::step_bytes(1_000 + 4 * password.len())?;
        let mut sum = Md5::new();
        sum.update(if round & 1 == 1 { password } else { &last[..] });
        if round % 3 != 0 {
            sum.update(salted);
        }
        if round % 7 != 0 {
            sum.update(password);
        }
        sum.update(if round & 1 == 1 { &last[..] } else { password });
        last = sum.finalize();
    }
    let order = [12, 6, 0, 13, 7, 1, 14, 8, 2, 15, 9, 3, 5, 10, 4];
    let mut shown: Vec<u8> = order.iter().map(|at| last[*at]).collect();
    shown.push(last[11]);
    Ok(format!("$1${salt}${}", md5_digits(&shown)))
}

/// Bytes as digits, the highest bits first.
fn bf_digits(bytes: &[u8]) -> String {
    let mut out = String::new();
    for group in bytes.chunks(3) {
        let bits = (0..3).fold(0u32, |bits, at| bits << 8 | group.get(at).map_or(0, |byte| u32::from(*byte)));
        for digit in 0..=group.len() {
            out.push(char::from(BF_DIGITS[(bits >> (18 - 6 * digit) & 63) as usize]));
        }
    }
    out
}

/// The sixteen bytes of 22 digits.
fn of_bf_digits(text: &[u8]) -> Option<[u8; 16]> {
    let (mut out, mut bits, mut count, mut filled) = ([0; 16], 0u32, 0, 0);
    for digit in text.get(..22)? {
        bits = bits << 6 | BF_DIGITS.iter().position(|d| d == digit)? as u32;
        count += 6;
        if count >= 8 && filled < out.len() {
            count -= 8;
            out[filled] = (bits >> count) as u8;
            filled += 1;
        }
    }
    Some(out)
}

/// The hash of OpenBSD, `$2a$rounds$salthash` (bcrypt).
fn by_blowfish(password: &str, given: &str) -> Result<String> {
    let bad = || invalid("invalid salt");
    let (rounds, digits) = given.strip_prefix("$2a$").and_then(|rest| rest.split_once('$')).ok_or_else(bad)?;
    let two_digits = rounds.len() == 2 && rounds.bytes().all(|b| b.is_ascii_digit());
    let rounds: u32 = rounds.parse().ok().filter(|_| two_digits).ok_or_else(bad)?;
    let salt = of_bf_digits(digits.as_bytes()).filter(|_| (4..=31).contains(&rounds)).ok_or_else(bad)?;
    let mut key = password.as_bytes()[..password.len().min(BF_KEY_MAX)].to_vec();
    key.push(0);
    key.truncate(BF_KEY_MAX);
    let mut state: Blowfish = Blowfish::bc_init_state();
    state.salted_expand_key(&salt, &key);
    for _ in 0..1u64 << rounds {
        breath::step_bytes(BF_ROUND_COST)?;
        state.bc_expand_key(&key);
        state.bc_expand_key(&salt);
    }
    let mut hash = Vec::new();
    for block in b"OrpheanBeholderScryDoubt".chunks_exact(8) {
        let word = |at: usize| block[at..at + 4].iter().fold(0u32, |word, byte| word << 8 | u32::from(*byte));
        let mut words = [word(0), word(4)];
        for _ in 0..64 {
            words = state.bc_encrypt(words);
        }
        words.iter().for_each(|word| hash.extend(word.to_be_bytes()));
    }
    hash.truncate(23);
    Ok(format!("$2a${rounds:02}${}{}", bf_digits(&salt), bf_digits(&hash)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_pgcrypto() {
        let hashed = |password: &str, salt: &str| {
            salt.strip_prefix("$1$").map_or_else(|| by_blowfish(password, salt), |salt| by_md5(password, salt))
        };
        for (password, salt, hash) in [
            ("a", "$2a$04$abcdefghijklmnopqrstuv", "$2a$04$abcdefghijklmnopqrstuuMFdJu9yVgmagVAIC24fOZkaFqd3s9JC"),
            (
                "pässword",
                "$2a$05$......................",
                "$2a$05$......................eVJDMCHVq9pb1izqjkE0dHqf5LOKXBW",
            ),
            ("", "$2a$04$zzzzzzzzzzzzzzzzzzzzz.", "$2a$04$zzzzzzzzzzzzzzzzzzzzz.5Hn4SWoNTn3oJQncumD/sMWz61A8PpG"),
            ("a", "$1$", "$1$$Ij31LCAysPM23KuPlm1wA/"),
            (
                "a long password of more than sixteen bytes",
                "$1$saltstringtoolong$x",
                "$1$saltstri$odYV/v9BPrl75nFBoMHtR0",
            ),
            ("", "$1$ab", "$1$ab$rn6aQS/o7141mj179E/zA."),
            ("x", "$1$a$b", "$1$a$TYcRT0JumNkKBBlirG1X4/"),
        ] {
            assert_eq!(hashed(password, salt).expect("a hash"), hash);
        }
    }
}
