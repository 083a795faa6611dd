//! Counts the open connections of each address.
//!
//! # Invariants
//! - ORI-1: an address is in the table exactly as long as a connection from it is open, so the table is never larger than the list of
//!   sockets.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};

use clearway_base::sync::Mutex;

/// Where connections come from. A host with one IPv6 address has all that share its first 64 bits: they count as one.
pub fn origin(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
        address => address,
    }
}

/// The connections of each origin.
pub struct Origins(Mutex<HashMap<IpAddr, usize>>);

impl Default for Origins {
    fn default() -> Self {
        Origins(Mutex::new("server/origins", HashMap::new()))
    }
}

/// A connection that is counted while this lives.
pub struct Counted<'a> {
    origins: &'a Origins,
    origin: IpAddr,
}

impl Origins {
    /// Counts a connection; none: `max` of this origin are open already.
    pub fn enter(&self, address: IpAddr, max: usize) -> Option<Counted<'_>> {
        let origin = origin(address);
        let mut counts = self.0.lock();
        let count = counts.entry(origin).or_default();
        if *count >= max {
            // With a limit of 0 the entry has just been made.
            if *count == 0 {
                counts.remove(&origin);
            }
            return None;
        }
        *count += 1;
        Some(Counted { origins: self, origin })
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        let mut counts = self.origins.0.lock();
        if let Some(count) = counts.get_mut(&self.origin) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.origin); // ORI-1
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ORI-1
    #[test]
    fn an_origin_has_so_many_connections_and_is_forgotten_with_the_last() {
        let origins = Origins::default();
        let at = |text: &str| text.parse().expect("an address");
        let first = origins.enter(at("10.0.0.1"), 2);
        let second = origins.enter(at("::ffff:10.0.0.1"), 2);
        assert!(first.is_some() && second.is_some());
        assert!(origins.enter(at("10.0.0.1"), 2).is_none());
        assert!(origins.enter(at("10.0.0.2"), 2).is_some());
        drop(first);
        let third = origins.enter(at("10.0.0.1"), 2);
        assert!(third.is_some());
        let near = origins.enter(at("2001:db8::1"), 1);
        assert!(
            origins.enter(at("2001:db8::ffff:1"), 1).is_none() && origins.enter(at("2001:db8:0:1::1"), 1).is_some()
        );
        assert!(origins.enter(at("10.0.0.9"), 0).is_none());
        drop((second, third, near));
        assert!(origins.0.lock().is_empty());
    }
}
