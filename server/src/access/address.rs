//! The addresses of a rule: a single address, or all addresses that share a prefix of bits.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// All addresses whose first `bits` are those of `address`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u8,
}

fn width(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// The first `bits` of an address, as a number of 128 bits from the left.
fn prefix(address: IpAddr, bits: u8) -> u128 {
    let number = match address {
        IpAddr::V4(address) => u128::from(address.to_bits()) << 96,
        IpAddr::V6(address) => address.to_bits(),
    };
    number & u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0)
}

impl Network {
    /// None: more bits than such an address has.
    pub fn new(address: IpAddr, bits: u8) -> Option<Network> {
        (bits <= width(address)).then_some(Network { address, bits })
    }

    /// An address and a mask of the same kind, whose ones come first.
    pub fn with_mask(address: IpAddr, mask: IpAddr) -> Option<Network> {
        let (ones, zeros) = match mask {
            IpAddr::V4(mask) => (mask.to_bits().leading_ones(), mask.to_bits().trailing_zeros()),
            IpAddr::V6(mask) => (mask.to_bits().leading_ones(), mask.to_bits().trailing_zeros()),
        };
        let whole = ones + zeros >= u32::from(width(mask)) && address.is_ipv4() == mask.is_ipv4();
        whole.then_some(Network { address, bits: ones as u8 })
    }

    /// 127.0.0.0/8.
    pub fn loopback_v4() -> Network {
        Network { address: IpAddr::V4(Ipv4Addr::new(127, 0, 0, 0)), bits: 8 }
    }

    /// ::1/128.
    pub fn loopback_v6() -> Network {
        Network { address: IpAddr::V6(Ipv6Addr::LOCALHOST), bits: 128 }
    }

    /// Whether an address is one of them; an IPv4 address in IPv6 form counts as IPv4.
    pub fn holds(&self, address: IpAddr) -> bool {
        let (address, own) = (address.to_canonical(), self.address);
        address.is_ipv4() == own.is_ipv4() && prefix(address, self.bits) == prefix(own, self.bits)
    }

    /// Whether all of them are this machine's own.
    pub fn is_loopback(&self) -> bool {
        let least = if self.address.is_ipv4() { 8 } else { 128 };
        self.bits >= least && self.address.is_loopback()
    }

    /// The address as it was written.
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// The mask as PostgreSQL shows it.
    pub fn mask(&self) -> IpAddr {
        let ones = u128::MAX.checked_shl(128 - u32::from(self.bits)).unwrap_or(0);
        match self.address {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::from_bits((ones >> 96) as u32)),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::from_bits(ones)),
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_hold_what_shares_their_bits() {
        let network = |text: &str, bits| Network::new(text.parse().expect("an address"), bits);
        let holds =
            |network: Option<Network>, text: &str| network.expect("a network").holds(text.parse().expect("one"));
        assert!(holds(network("10.1.2.3", 8), "10.255.0.1") && !holds(network("10.1.2.3", 8), "11.0.0.1"));
        assert!(holds(network("0.0.0.0", 0), "203.0.113.9") && !holds(network("0.0.0.0", 0), "::1"));
        assert!(holds(network("10.1.2.3", 32), "10.1.2.3") && !holds(network("10.1.2.3", 32), "10.1.2.2"));
        assert!(holds(network("fe80::", 10), "febf::1") && !holds(network("fe80::", 10), "fec0::1"));
        assert!(holds(network("::", 0), "2001:db8::1") && !holds(network("::", 0), "::ffff:10.0.0.1"));
        assert_eq!(network("10.0.0.0", 33), None);
        let masked = |address: &str, mask: &str| {
            Network::with_mask(address.parse().expect("one"), mask.parse().expect("one")).map(|n| n.to_string())
        };
        assert_eq!(masked("10.0.0.0", "255.255.0.0").as_deref(), Some("10.0.0.0/16"));
        assert_eq!(masked("10.0.0.0", "0.0.0.0").as_deref(), Some("10.0.0.0/0"));
        assert_eq!(masked("10.0.0.0", "255.0.255.0"), None);
        assert_eq!(masked("10.0.0.0", "ffff::"), None);
        assert_eq!(network("10.0.0.0", 9).expect("one").mask().to_string(), "255.128.0.0");
        assert_eq!(network("::", 0).expect("one").mask().to_string(), "::");
        assert!(Network::loopback_v4().is_loopback() && !network("127.0.0.0", 7).expect("one").is_loopback());
    }
}
