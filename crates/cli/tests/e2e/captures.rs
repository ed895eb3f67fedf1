//! Captures made by hand: datagrams, what is around them on each kind of link, and both files.

use etherparse::PacketBuilder;
use std::net::{Ipv4Addr, Ipv6Addr};
use wire::{Header, Op, PutBody};

/// Where made-up packets come from and go to.
pub(crate) const FROM: ([u8; 4], u16) = ([10, 0, 0, 1], 40_000);
pub(crate) const TO: ([u8; 4], u16) = ([10, 0, 0, 2], 7_701);

/// Link types of pcap.
pub(crate) const ETHERNET: u32 = 1;
pub(crate) const LOOPBACK: u32 = 0;
pub(crate) const RAW: u32 = 101;
pub(crate) const COOKED: u32 = 113;
pub(crate) const COOKED_2: u32 = 276;

/// When the first frame of a capture was there, and how much later the next one.
pub(crate) const BEGIN_S: u32 = 1_700_000_000;
const STEP_US: u32 = 250;

/// A PUT of a key, as a client sends it.
pub(crate) fn put(key: &[u8], value: &[u8]) -> Vec<u8> {
    let header = Header {
        op: Op::Put as u8,
        client: 0x1234,
        seq: 7,
        key_len: key.len() as u16,
        ..Header::default()
    };
    let mut out = Vec::new();
    wire::emit(&mut out, &header, &[&PutBody { expiry_ms: 9 }.to_bytes(), key, value]);
    out
}

/// The kinds of frame that a datagram can be in, by link type.
pub(crate) fn frames(datagram: &[u8]) -> Vec<(u32, Vec<u8>)> {
    let ethernet = || PacketBuilder::ethernet2([2; 6], [4; 6]);
    let (from, to) = (Ipv4Addr::from(FROM.0), Ipv4Addr::from(TO.0));
    let mapped = |it: Ipv4Addr| Ipv6Addr::from(u128::from(u32::from(it)) | 0xfd << 120).octets();
    let plain = built(ethernet().ipv4(FROM.0, TO.0, 64).udp(FROM.1, TO.1), datagram);
    let tagged = ethernet().single_vlan(5.try_into().unwrap());
    let tagged = built(tagged.ipv4(FROM.0, TO.0, 64).udp(FROM.1, TO.1), datagram);
    let twice = ethernet().double_vlan(5.try_into().unwrap(), 6.try_into().unwrap());
    let twice = built(twice.ipv6(mapped(from), mapped(to), 64).udp(FROM.1, TO.1), datagram);
    let ip = built(PacketBuilder::ipv4(FROM.0, TO.0, 64).udp(FROM.1, TO.1), datagram);
    let six = PacketBuilder::ipv6(mapped(from), mapped(to), 64).udp(FROM.1, TO.1);
    let six = built(six, datagram);
    let family = [&2u32.to_le_bytes()[..], &ip].concat();
    let cooked = [&[0, 0, 3, 4, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0][..], &ip].concat();
    let mut cooked_2 = [0; 20].to_vec();
    cooked_2[..2].copy_from_slice(&[0x86, 0xdd]);
    cooked_2.extend_from_slice(&six);
    vec![
        (ETHERNET, plain),
        (ETHERNET, tagged),
        (ETHERNET, twice),
        (RAW, ip),
        (RAW, six),
        (LOOPBACK, family),
        (COOKED, cooked),
        (COOKED_2, cooked_2),
    ]
}

/// The datagram in IPv4 and Ethernet.
pub(crate) fn plain(datagram: &[u8]) -> Vec<u8> {
    frames(datagram).remove(0).1
}

fn built(step: etherparse::PacketBuilderStep<etherparse::UdpHeader>, datagram: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    step.write(&mut out, datagram).expect("it fits");
    out
}

/// How a pcap file begins.
pub(crate) fn pcap_head(link: u32) -> Vec<u8> {
    let head = [0xa1b2_c3d4, 2 | 4 << 16, 0, 0, 262_144, link];
    head.iter().flat_map(|it: &u32| it.to_le_bytes()).collect()
}

/// A frame in a pcap file, of which so many bytes are captured.
pub(crate) fn pcap_frame(number: u32, frame: &[u8], captured: usize) -> Vec<u8> {
    let (kept, len) = (captured.min(frame.len()) as u32, frame.len() as u32);
    let head = [BEGIN_S, STEP_US * number, kept, len];
    let head = head.iter().flat_map(|it: &u32| it.to_le_bytes());
    head.chain(frame[..kept as usize].iter().copied()).collect()
}

/// A pcap file with these frames.
pub(crate) fn pcap(link: u32, frames: &[Vec<u8>]) -> Vec<u8> {
    let each = frames.iter().zip(0..).flat_map(|(frame, n)| pcap_frame(n, frame, usize::MAX));
    pcap_head(link).into_iter().chain(each).collect()
}

/// A pcapng file with these frames, each on an interface of its own, in big-endian order.
pub(crate) fn pcapng(frames: &[(u32, Vec<u8>)]) -> Vec<u8> {
    let section = [&[0x1a, 0x2b, 0x3c, 0x4d, 0, 1, 0, 0][..], &[0xff; 8]].concat();
    let mut out = block(0x0a0d_0d0a, &section);
    for (link, _) in frames {
        let body = [&(*link as u16).to_be_bytes()[..], &[0, 0], &262_144u32.to_be_bytes()].concat();
        out.extend(block(1, &body));
    }
    for ((_, frame), number) in frames.iter().zip(0u32..) {
        let ticks = u64::from(BEGIN_S) * 1_000_000 + u64::from(STEP_US * number);
        let len = frame.len() as u32;
        let head = [number, (ticks >> 32) as u32, ticks as u32, len, len];
        let mut body: Vec<u8> = head.iter().flat_map(|it| it.to_be_bytes()).collect();
        body.extend_from_slice(frame);
        body.resize(body.len().next_multiple_of(4), 0);
        out.extend(block(6, &body));
    }
    out
}

fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let len = (body.len() as u32 + 12).to_be_bytes();
    [&kind.to_be_bytes()[..], &len, body, &len].concat()
}

/// Two digits for each byte.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
