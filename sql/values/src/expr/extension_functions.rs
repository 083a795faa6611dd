//! Functions of PostgreSQL's extensions pgcrypto and uuid-ossp.

use super::eval::Env;
use super::functions::{Function, i, s, table};
use crate::error::{Result, SqlError, code};
use crate::types::{Datum, oid};
use clearway_base::breath;
use sha2::Digest;

use oid::{BYTEA, INT4, TEXT, UUID};

#[rustfmt::skip]
pub static FUNCTIONS: &[Function] = table! {
    "digest"(TEXT, TEXT) BYTEA strict digest; "digest"(BYTEA, TEXT) BYTEA strict digest;
    "hmac"(TEXT, TEXT, TEXT) BYTEA strict hmac; "hmac"(BYTEA, BYTEA, TEXT) BYTEA strict hmac;
    "gen_random_bytes"(INT4) BYTEA volatile random_bytes;
    "uuid_nil"() UUID strict |_, _| Ok(Datum::Uuid([0; 16]));
    "uuid_ns_dns"() UUID strict |_, _| Ok(Datum::Uuid(namespace(0x10)));
    "uuid_ns_url"() UUID strict |_, _| Ok(Datum::Uuid(namespace(0x11)));
    "uuid_ns_oid"() UUID strict |_, _| Ok(Datum::Uuid(namespace(0x12)));
    "uuid_ns_x500"() UUID strict |_, _| Ok(Datum::Uuid(namespace(0x14)));
    "uuid_generate_v1"() UUID volatile by_time; "uuid_generate_v1mc"() UUID volatile by_time;
    "uuid_generate_v3"(UUID, TEXT) UUID strict |a, _| by_name(a, Hash::Md5, 3);
    "uuid_generate_v4"() UUID volatile |_, _| Ok(Datum::Uuid(crate::types::uuid::random(random()?)));
    "uuid_generate_v5"(UUID, TEXT) UUID strict |a, _| by_name(a, Hash::Sha1, 5);
};

/// The most bytes that gen_random_bytes gives.
const RANDOM_MAX: i64 = 1024;

#[derive(Clone, Copy)]
enum Hash {
    Md5,
    Sha1,
    Sha224,
    Sha256,
    Sha384,
    Sha512,
}

impl Hash {
    fn named(name: &str) -> Result<Hash> {
        Ok(match name.to_ascii_lowercase().as_str() {
            "md5" => Hash::Md5,
            "sha1" => Hash::Sha1,
            "sha224" => Hash::Sha224,
            "sha256" => Hash::Sha256,
            "sha384" => Hash::Sha384,
            "sha512" => Hash::Sha512,
            _ => {
                let message = format!("Cannot use \"{name}\": No such hash algorithm");
                return Err(SqlError::new(code::INVALID_PARAMETER_VALUE, message));
            }
        })
    }

    /// The bytes that it takes at a time.
    fn block(self) -> usize {
        match self {
            Hash::Sha384 | Hash::Sha512 => 128,
            _ => 64,
        }
    }

    /// The digest of some parts, one behind the other.
    fn of(self, parts: &[&[u8]]) -> Result<Vec<u8>> {
        match self {
            Hash::Md5 => sum::<md5::Md5>(parts),
            Hash::Sha1 => sum::<sha1::Sha1>(parts),
            Hash::Sha224 => sum::<sha2::Sha224>(parts),
            Hash::Sha256 => sum::<sha2::Sha256>(parts),
            Hash::Sha384 => sum::<sha2::Sha384>(parts),
            Hash::Sha512 => sum::<sha2::Sha512>(parts),
        }
    }
}

fn pieces<'p>(parts: &'p [&'p [u8]]) -> impl Iterator<Item = &'p [u8]> {
    parts.iter().flat_map(|part| part.chunks(1 << 13))
}

fn sum<D: Digest>(parts: &[&[u8]]) -> Result<Vec<u8>> {
    let mut digest = D::new();
    for piece in pieces(parts) {
        breath::step_bytes(2 * piece.len())?;
        digest.update(piece);
    }
    Ok(digest.finalize().to_vec())
}

/// The bytes of a text or a bytea.
fn bytes(a: &[Datum], n: usize) -> &[u8] {
    match a.get(n) {
        Some(Datum::Bytea(b)) => b,
        _ => s(a, n).as_bytes(),
    }
}

fn digest(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    Ok(Datum::Bytea(Hash::named(s(a, 1))?.of(&[bytes(a, 0)])?.into()))
}

/// RFC 2104.
fn hmac(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let hash = Hash::named(s(a, 2))?;
    let (data, key) = (bytes(a, 0), bytes(a, 1));
    let mut block = if key.len() > hash.block() { hash.of(&[key])? } else { key.to_vec() };
    block.resize(hash.block(), 0);
    let padded = |with: u8| block.iter().map(|b| b ^ with).collect::<Vec<u8>>();
    let inner = hash.of(&[&padded(0x36), data])?;
    Ok(Datum::Bytea(hash.of(&[&padded(0x5c), &inner])?.into()))
}

pub(super) fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|_| SqlError::internal("could not generate random values"))?;
    Ok(bytes)
}

fn random_bytes(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let length = i(a, 0);
    if !(1..=RANDOM_MAX).contains(&length) {
        return Err(SqlError::new("39000", "Length not in range"));
    }
    let mut bytes = vec![0; length as usize];
    getrandom::fill(&mut bytes).map_err(|_| SqlError::internal("could not generate random values"))?;
    Ok(Datum::Bytea(bytes.into()))
}

/// The name spaces of RFC 4122, appendix C, which differ in one byte.
fn namespace(which: u8) -> [u8; 16] {
    [0x6b, 0xa7, 0xb8, which, 0x9d, 0xad, 0x11, 0xd1, 0x80, 0xb4, 0x00, 0xc0, 0x4f, 0xd4, 0x30, 0xc8]
}

/// With the version, and the variant of RFC 4122.
fn marked(mut bytes: [u8; 16], version: u8) -> Datum {
    bytes[6] = bytes[6] & 0x0f | version << 4;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    Datum::Uuid(bytes)
}

fn by_name(a: &[Datum], hash: Hash, version: u8) -> Result<Datum> {
    let Some(Datum::Uuid(space)) = a.first() else {
        return Err(SqlError::internal("a name space that is no uuid"));
    };
    let digest = hash.of(&[space, bytes(a, 1)])?;
    let mut out = [0; 16];
    out.copy_from_slice(&digest[..16]);
    Ok(marked(out, version))
}

/// By the time, in tenths of microseconds since 1582, with a random node: two calls at one moment differ too.
fn by_time(_: &[Datum], e: &Env<'_>) -> Result<Datum> {
    // 2000-01-01 is that long after 1582-10-15.
    const SINCE_1582: i64 = 0x01d3_bfde_63b0_0000;
    let moment = (SINCE_1582.wrapping_add(e.session.clock().wrapping_mul(10)) as u64).to_be_bytes();
    let mut out = [0; 16];
    out[..4].copy_from_slice(&moment[4..]);
    out[4..6].copy_from_slice(&moment[2..4]);
    out[6..8].copy_from_slice(&moment[..2]);
    out[8..].copy_from_slice(&random::<8>()?);
    // The bit of a node that is no network card.
    out[10] |= 1;
    Ok(marked(out, 1))
}
