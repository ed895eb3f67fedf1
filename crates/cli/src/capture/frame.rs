//! UDP datagrams in frames: what is around them is taken off.

use super::reading::Captured;
use etherparse::{
    EtherType, LaxPacketHeaders, LaxPayloadSlice, NetHeaders, TransportHeader, ether_type,
};
use pcap_parser::Linktype;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// What a frame begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LinkType {
    Ethernet,
    /// An address family of four bytes, as on the loopback interface of BSD and macOS.
    Family,
    Ip,
    Cooked,
    Cooked2,
    Unknown,
}

impl LinkType {
    pub(super) fn of(kind: Linktype) -> Self {
        match kind {
            Linktype::ETHERNET => Self::Ethernet,
            Linktype::NULL | Linktype::LOOP => Self::Family,
            Linktype::RAW | Linktype::IPV4 | Linktype::IPV6 | Linktype(12 | 14) => Self::Ip,
            Linktype::LINUX_SLL => Self::Cooked,
            Linktype::LINUX_SLL2 => Self::Cooked2,
            _ => Self::Unknown,
        }
    }

    /// Of bytes that nobody has said it of. An IPv4 header without options begins with 0x45, one of
    /// IPv6 with 6: the makers of network cards have few addresses like these.
    pub(super) fn guess(bytes: &[u8]) -> Self {
        match bytes.first() {
            Some(0x45 | 0x60..=0x6f) => Self::Ip,
            _ => Self::Ethernet,
        }
    }
}

/// A datagram in a frame.
#[derive(Debug)]
pub(super) struct Found<'a> {
    ends: (SocketAddr, SocketAddr),
    bytes: &'a [u8],
    cut: bool,
}

impl<'a> Found<'a> {
    pub(super) fn captured(self, number: u64, at: Option<Duration>) -> Captured<'a> {
        Captured { number, at, ends: Some(self.ends), bytes: self.bytes, cut: self.cut }
    }
}

const MALFORMED: &str = "malformed or cut frames";

/// The UDP datagram in a frame, or what the frame is instead.
pub(super) fn datagram(link: LinkType, frame: &[u8]) -> Result<Found<'_>, &'static str> {
    let headers = match link {
        LinkType::Ethernet => LaxPacketHeaders::from_ethernet(frame).map_err(|_| MALFORMED)?,
        LinkType::Ip => LaxPacketHeaders::from_ip(frame).map_err(|_| MALFORMED)?,
        LinkType::Family => {
            let packet = frame.get(4..).ok_or(MALFORMED)?;
            LaxPacketHeaders::from_ip(packet).map_err(|_| MALFORMED)?
        }
        LinkType::Cooked => {
            let (head, packet) = frame.split_first_chunk::<16>().ok_or(MALFORMED)?;
            let [.., high, low] = *head;
            LaxPacketHeaders::from_ether_type(EtherType(u16::from_be_bytes([high, low])), packet)
        }
        LinkType::Cooked2 => {
            let (head, packet) = frame.split_first_chunk::<20>().ok_or(MALFORMED)?;
            let [high, low, ..] = *head;
            LaxPacketHeaders::from_ether_type(EtherType(u16::from_be_bytes([high, low])), packet)
        }
        LinkType::Unknown => return Err("frames of a link type that is not known here"),
    };
    let (from, to) = match headers.net {
        Some(NetHeaders::Ipv4(ip, _)) if ip.is_fragmenting_payload() => return Err(FRAGMENT),
        Some(NetHeaders::Ipv4(ip, _)) => (IpAddr::from(ip.source), IpAddr::from(ip.destination)),
        Some(NetHeaders::Ipv6(_, more)) if more.is_fragmenting_payload() => return Err(FRAGMENT),
        Some(NetHeaders::Ipv6(ip, _)) => (IpAddr::from(ip.source), IpAddr::from(ip.destination)),
        Some(NetHeaders::Arp(_)) | None => return Err(not_ip(&headers)),
    };
    match (headers.transport, headers.payload) {
        (Some(TransportHeader::Udp(udp)), LaxPayloadSlice::Udp { payload, incomplete }) => {
            let said = usize::from(udp.length).saturating_sub(8);
            let cut = incomplete || payload.len() < said;
            let ends = ((from, udp.source_port).into(), (to, udp.destination_port).into());
            Ok(Found { ends, bytes: payload, cut })
        }
        _ if headers.stop_err.is_some() => Err(MALFORMED),
        _ => Err("IP packets without UDP"),
    }
}

const FRAGMENT: &str = "IP fragments, which packets of Keyway never are";

fn not_ip(headers: &LaxPacketHeaders<'_>) -> &'static str {
    match &headers.payload {
        LaxPayloadSlice::Ether(ether)
            if [ether_type::IPV4, ether_type::IPV6].contains(&ether.ether_type) =>
        {
            MALFORMED
        }
        _ if headers.stop_err.is_some() => MALFORMED,
        _ => "frames without IP",
    }
}
