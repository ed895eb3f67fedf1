//! Ethernet frames around datagrams.

use std::net::Ipv4Addr;
use wire::Endpoint;

/// Bytes before the datagram.
pub const HEADERS: usize = 14 + 20 + 8;

/// What a frame says besides its datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    pub dmac: [u8; 6],
    pub smac: [u8; 6],
    pub from: (Ipv4Addr, u16),
    pub to: (Ipv4Addr, u16),
}

/// The IPv4 address of an endpoint, if it has one.
pub fn v4(endpoint: Endpoint) -> Option<(Ipv4Addr, u16)> {
    let addr = std::net::Ipv6Addr::from(endpoint.addr).to_ipv4_mapped()?;
    Some((addr, endpoint.port))
}

/// A plain frame: no options, no checksum over the datagram.
pub fn build(addresses: &Addresses, datagram: &[u8]) -> Vec<u8> {
    let Addresses { dmac, smac, from, to } = addresses;
    let len = |headers: usize| {
        u16::try_from(datagram.len() + headers).expect("short datagrams").to_be_bytes()
    };
    let mut ip = [0; 20];
    ip[0] = 0x45;
    ip[2..4].copy_from_slice(&len(28));
    ip[6] = 0x40;
    ip[8] = 64;
    ip[9] = 17;
    ip[12..16].copy_from_slice(&from.0.octets());
    ip[16..].copy_from_slice(&to.0.octets());
    let sum = !sum(&ip);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    let mut frame = [&dmac[..], smac, &[8, 0], &ip].concat();
    frame.extend([from.1.to_be_bytes(), to.1.to_be_bytes(), len(8), [0xbe, 0xef]].concat());
    frame.extend_from_slice(datagram);
    frame
}

/// What a frame says, once its checksum and lengths are right.
pub fn parse(frame: &[u8]) -> Result<(Addresses, &[u8]), String> {
    let (headers, datagram) = frame.split_first_chunk::<HEADERS>().ok_or("too short")?;
    let short = |at: usize| u16::from_be_bytes([headers[at], headers[at + 1]]);
    let addr = |at: usize| Ipv4Addr::from(*headers[at..].first_chunk::<4>().expect("it is inside"));
    let mac = |at: usize| *headers[at..].first_chunk::<6>().expect("it is inside");
    let holds = [
        (short(12) == 0x0800 && headers[14] == 0x45, "no plain IPv4"),
        (sum(&headers[14..34]) == 0xffff, "wrong IP checksum"),
        (usize::from(short(16)) == frame.len() - 14, "wrong IP length"),
        (usize::from(short(38)) == datagram.len() + 8, "wrong UDP length"),
        (short(40) == 0, "a UDP checksum, which local senders leave half done"),
    ];
    if let Some((_, why)) = holds.iter().find(|(holds, _)| !holds) {
        return Err(format!("{why}: {frame:02x?}"));
    }
    let (from, to) = ((addr(26), short(34)), (addr(30), short(36)));
    Ok((Addresses { dmac: mac(0), smac: mac(6), from, to }, datagram))
}

/// The Internet checksum's sum.
fn sum(bytes: &[u8]) -> u16 {
    let (words, _) = bytes.as_chunks::<2>();
    let sum: u32 = words.iter().map(|word| u32::from(u16::from_be_bytes(*word))).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    u16::try_from((folded & 0xffff) + (folded >> 16)).expect("it is folded")
}
