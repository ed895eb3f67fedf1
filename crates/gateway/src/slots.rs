//! Slots of a Redis Cluster, and where clients of one reach gateways.

use cluster::tag_of;
use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

/// Slots of a Redis Cluster.
pub(crate) const SLOTS: u16 = 16_384;

/// What clients of Redis Cluster are told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cluster {
    /// Where they reach this gateway; `None`: where each has connected to.
    pub announce: Option<Endpoint>,
    /// Where they reach the other gateways, which share the slots with this one. It may be among
    /// them. With any, [`announce`](Self::announce) is to be what the others call it.
    pub gateways: Vec<Endpoint>,
}

/// Where clients reach a gateway, in their own words.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Endpoint {
    /// A name, or an address without brackets.
    pub host: String,
    /// A TCP port, not 0.
    pub port: u16,
}

impl From<SocketAddr> for Endpoint {
    fn from(at: SocketAddr) -> Self {
        Self { host: at.ip().to_canonical().to_string(), port: at.port() }
    }
}

impl FromStr for Endpoint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let usage = || format!("{text:?} is no HOST:PORT, such as redis.example.com:6379");
        let (host, port) = text.rsplit_once(':').ok_or_else(usage)?;
        let host = host.strip_prefix('[').and_then(|it| it.strip_suffix(']')).unwrap_or(host);
        let is_name = |c: char| c.is_ascii_alphanumeric() || ".-_:".contains(c);
        match port.parse() {
            Ok(port @ 1..) if !host.is_empty() && host.chars().all(is_name) => {
                Ok(Self { host: host.to_owned(), port })
            }
            _ => Err(usage()),
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        write!(f, "{host}:{port}")
    }
}

/// The slot of a key, by the rule of Redis Cluster: that of its hash tag, if it has one.
pub(crate) fn slot(key: &[u8]) -> u16 {
    crc16(tag_of(key).unwrap_or(key)) % SLOTS
}

/// CRC-16 as XMODEM has it: appendix A of the specification of Redis Cluster.
fn crc16(bytes: &[u8]) -> u16 {
    let shift = |crc: u16, _| if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 };
    bytes.iter().fold(0, |crc, byte| (0..8).fold(crc ^ (u16::from(*byte) << 8), shift))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_of_redis() {
        assert_eq!(crc16(b"123456789"), 0x31c3);
        for (key, expected) in [
            ("foo", 12_182),
            ("bar", 5_061),
            ("{foo}bar", 12_182),
            ("a{foo}{bar}", 12_182),
            ("", 0),
        ] {
            assert_eq!(slot(key.as_bytes()), expected, "{key}");
        }
        assert_eq!(slot(b"{}foo"), crc16(b"{}foo") % SLOTS, "an empty tag is none");
        assert_eq!(slot(b"foo{bar"), crc16(b"foo{bar") % SLOTS, "nor is one without end");
    }

    #[test]
    fn endpoints_are_names_and_addresses_with_ports() {
        let read = |text: &str| text.parse::<Endpoint>();
        let is = |text: &str, host: &str, port| {
            assert_eq!(read(text), Ok(Endpoint { host: host.into(), port }), "{text}");
        };
        is("redis.example.com:6379", "redis.example.com", 6379);
        is("10.0.0.1:1", "10.0.0.1", 1);
        is("[::1]:6379", "::1", 6379);
        for text in ["6379", ":6379", "a:0", "a:65536", "a b:1", "a", "a@b:1"] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
