//! Owns which addresses a webhook may be sent to: the public ones, in whatever form they are written.
//! Knows no names; the connector asks about each address that it is about to connect to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether an address belongs to the public Internet; all that is reserved for anything else does not.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// The blocks of IPv4 that are not public, by network and length (IANA special-purpose registry).
const RESERVED_V4: [([u8; 4], u32); 15] = [
    ([0, 0, 0, 0], 8),
    ([10, 0, 0, 0], 8),
    ([100, 64, 0, 0], 10),
    ([127, 0, 0, 0], 8),
    ([169, 254, 0, 0], 16),
    ([172, 16, 0, 0], 12),
    ([192, 0, 0, 0], 24),
    ([192, 0, 2, 0], 24),
    ([192, 88, 99, 0], 24),
    ([192, 168, 0, 0], 16),
    ([198, 18, 0, 0], 15),
    ([198, 51, 100, 0], 24),
    ([203, 0, 113, 0], 24),
    ([224, 0, 0, 0], 4),
    ([240, 0, 0, 0], 4),
];

fn is_public_v4(address: Ipv4Addr) -> bool {
    let bits = address.to_bits();
    let within = |(network, length): &([u8; 4], u32)| {
        (bits ^ u32::from_be_bytes(*network)) >> (32 - length) == 0
    };
    !RESERVED_V4.iter().any(within)
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let groups = address.segments();
    let [.., high, low] = groups;
    let embedded = |high: u16, low: u16| {
        is_public_v4(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)))
    };
    match groups {
        // Mapped, and translated by the well-known prefix: the address within decides.
        [0, 0, 0, 0, 0, 0xffff, _, _] | [0x64, 0xff9b, 0, 0, 0, 0, _, _] => embedded(high, low),
        [0x2002, high, low, ..] => embedded(high, low),
        // Protocol assignments (Teredo among them), documentation.
        [0x2001, second, ..] if second < 0x200 || second == 0xdb8 => false,
        [0x3fff, second, ..] if second < 0x1000 => false,
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PUBLIC: &str = "1.1.1.1 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 \
        169.253.0.1 172.15.255.255 172.32.0.0 192.0.1.0 192.167.1.1 198.17.255.255 198.20.0.0 \
        223.255.255.255 2606:4700::1111 2a00::1 ::ffff:1.1.1.1 64:ff9b::1.1.1.1 2002:101:101:: \
        2001:4860::8888 3fff:1000::1";
    const RESERVED: &str = "0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.127.255.255 127.0.0.1 \
        127.255.255.254 169.254.169.254 172.16.0.1 172.31.255.255 192.0.0.8 192.0.2.1 \
        192.88.99.1 192.168.1.1 198.18.0.1 198.19.255.255 198.51.100.1 203.0.113.9 224.0.0.1 \
        239.255.255.255 240.0.0.1 255.255.255.255 :: ::1 ::127.0.0.1 ::1.1.1.1 \
        ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:169.254.169.254 64:ff9b::10.0.0.1 \
        64:ff9b:1::1.1.1.1 100::1 2001::1 2001:1ff::1 2001:db8::1 2002:7f00:1:: 2002:a00:1:: \
        3fff::1 5f00::1 fc00::1 fd12:3456::1 fe80::1 fec0::1 ff02::1 4000::1 1::1";

    /// Proves: WH-4
    #[test]
    fn only_public_addresses_are() {
        for text in PUBLIC.split_whitespace() {
            assert!(is_public(text.parse().unwrap()), "{text} is public");
        }
        for text in RESERVED.split_whitespace() {
            assert!(!is_public(text.parse().unwrap()), "{text} is not public");
        }
    }
}
