//! inet and cidr: addresses with the length of their network's prefix.

use super::Datum;
use crate::error::{Result, SqlError, code};
use std::cmp::Ordering;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Inet {
    /// Whether it is one of IPv6.
    pub v6: bool,
    /// The bits of the prefix.
    pub bits: u8,
    /// The address; one of IPv4 has four bytes.
    pub bytes: [u8; 16],
}

fn invalid(text: &str, cidr: bool) -> SqlError {
    let ty = if cidr { "cidr" } else { "inet" };
    let message = format!("invalid input syntax for type {ty}: \"{text}\"");
    SqlError::new(code::INVALID_TEXT_REPRESENTATION, message)
}

impl From<Inet> for Datum {
    fn from(address: Inet) -> Datum {
        Datum::Inet(address, false)
    }
}

impl Inet {
    /// The bits of its family's addresses.
    pub fn width(&self) -> u8 {
        if self.v6 { 128 } else { 32 }
    }

    /// The bytes of the address.
    pub fn address(&self) -> &[u8] {
        &self.bytes[..usize::from(self.width() / 8)]
    }

    /// An address of four or sixteen bytes.
    pub fn new(address: &[u8], bits: u8) -> Option<Inet> {
        let v6 = match address.len() {
            4 => false,
            16 => true,
            _ => return None,
        };
        let mut bytes = [0; 16];
        bytes[..address.len()].copy_from_slice(address);
        let inet = Inet { v6, bits, bytes };
        (bits <= inet.width()).then_some(inet)
    }

    /// The address of one host.
    pub fn of(address: IpAddr) -> Inet {
        let made = match address {
            IpAddr::V4(a) => Inet::new(&a.octets(), 32),
            IpAddr::V6(a) => Inet::new(&a.octets(), 128),
        };
        made.expect("an address has four or sixteen bytes")
    }

    /// The same with the bits behind the prefix cleared, or set.
    pub fn masked(mut self, set: bool) -> Inet {
        for bit in self.bits..self.width() {
            let mask = 0x80 >> (bit % 8);
            let byte = &mut self.bytes[usize::from(bit / 8)];
            *byte = if set { *byte | mask } else { *byte & !mask };
        }
        self
    }

    /// Reads an address, with `/bits` perhaps; as a cidr a short one of IPv4 is a network.
    ///
    /// # Errors
    /// 22P02.
    pub fn parse(text: &str, cidr: bool) -> Result<Inet> {
        let bad = || invalid(text, cidr);
        let (address, given) = match text.split_once('/') {
            Some((address, bits)) => {
                let digits = !bits.is_empty() && bits.len() <= 3 && bits.bytes().all(|b| b.is_ascii_digit());
                (address, Some(if digits { bits.parse::<u8>().map_err(|_| bad())? } else { return Err(bad()) }))
            }
            None => (text, None),
        };
        let (bytes, natural): (Vec<u8>, u8) = if address.contains(':') {
            (address.parse::<Ipv6Addr>().map_err(|_| bad())?.octets().to_vec(), 128)
        } else {
            let parts: Vec<&str> = address.split('.').collect();
            let number = |p: &&str| {
                let digits = (1..=3).contains(&p.len()) && p.bytes().all(|b| b.is_ascii_digit());
                if digits { p.parse::<u8>().map_err(|_| bad()) } else { Err(bad()) }
            };
            let mut bytes: Vec<u8> = parts.iter().map(number).collect::<Result<_>>()?;
            let count = bytes.len();
            let short = count < 4;
            if count > 4 || short && !cidr && given.is_none() {
                return Err(bad());
            }
            bytes.resize(4, 0);
            // The class of the network, if it is written in short.
            let class = match bytes[0] {
                0..=127 => 8,
                128..=191 => 16,
                192..=223 => 24,
                224..=239 => 8,
                _ => 32,
            };
            (bytes, if short { class.max(8 * count as u8) } else { 32 })
        };
        let inet = Inet::new(&bytes, given.unwrap_or(natural)).ok_or_else(bad)?;
        if cidr && inet.masked(false) != inet {
            let message = format!("invalid cidr value: \"{text}\"");
            return Err(SqlError::new(code::INVALID_TEXT_REPRESENTATION, message)
                .detail("Value has bits set to right of mask."));
        }
        Ok(inet)
    }

    /// The address alone.
    pub fn host(&self) -> String {
        if self.v6 {
            let v6 = Ipv6Addr::from(self.bytes);
            // PostgreSQL writes an embedded address of IPv4 for ::a.b.c.d, too.
            return match v6.to_ipv4() {
                Some(v4) if self.bytes[..12] == [0; 12] && u32::from(v4) > 0xffff => format!("::{v4}"),
                _ => v6.to_string(),
            };
        }
        Ipv4Addr::new(self.bytes[0], self.bytes[1], self.bytes[2], self.bytes[3]).to_string()
    }

    /// Its text; a cidr always shows its prefix.
    pub fn text(&self, cidr: bool) -> String {
        if cidr || self.bits != self.width() { format!("{}/{}", self.host(), self.bits) } else { self.host() }
    }

    /// By family, network, prefix, address.
    pub fn compare(&self, other: &Inet) -> Ordering {
        self.key().cmp(&other.key())
    }

    /// Bytes that sort as addresses do.
    pub fn key(&self) -> Vec<u8> {
        let mut out = vec![u8::from(self.v6)];
        out.extend(self.masked(false).address());
        out.push(self.bits);
        out.extend(self.address());
        out
    }

    /// The address of such bytes.
    pub fn of_key(bytes: &[u8]) -> Option<Inet> {
        let (v6, rest) = bytes.split_first()?;
        let width = match v6 {
            0 => 4,
            1 => 16,
            _ => return None,
        };
        let (_, rest) = rest.split_at_checked(width)?;
        let (bits, address) = rest.split_first()?;
        Inet::new(address, *bits).filter(|_| address.len() == width)
    }

    /// Whether another address lies in its network.
    pub fn holds(&self, other: &Inet) -> bool {
        let cut = Inet { bits: self.bits, ..*other };
        self.v6 == other.v6 && self.bits <= other.bits && cut.masked(false).bytes == self.masked(false).bytes
    }

    /// The wire's form: family, bits, whether it is a cidr, length, address.
    pub fn wire(&self, cidr: bool, out: &mut Vec<u8>) {
        out.extend([if self.v6 { 3 } else { 2 }, self.bits, u8::from(cidr), self.width() / 8]);
        out.extend(self.address());
    }

    /// The address of the wire's form.
    pub fn of_wire(bytes: &[u8]) -> Option<Inet> {
        let [family, bits, _, length, address @ ..] = bytes else { return None };
        let v6 = match family {
            2 => false,
            3 => true,
            _ => return None,
        };
        (usize::from(*length) == address.len()).then_some(())?;
        Inet::new(address, *bits).filter(|i| i.v6 == v6)
    }

    /// The address so many further; none: beyond the last one.
    pub fn moved(&self, by: i128) -> Option<Inet> {
        let number = self.number().checked_add_signed(by)?;
        let bytes = number.to_be_bytes();
        if !self.v6 && number > u128::from(u32::MAX) {
            return None;
        }
        Inet::new(if self.v6 { &bytes } else { &bytes[12..] }, self.bits)
    }

    /// The address as a number.
    pub fn number(&self) -> u128 {
        self.address().iter().fold(0, |n, b| n << 8 | u128::from(*b))
    }
}
