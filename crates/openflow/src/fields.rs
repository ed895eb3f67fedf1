//! What flows match, and what they do.

use crate::bytes::{Reader, pad, set_len};
use std::fmt;
use std::net::Ipv6Addr;
use std::str::FromStr;
use wire::AddressPrefix;

/// A hardware address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mac(pub [u8; 6]);

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl FromStr for Mac {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bytes = text.split(':').map(|byte| u8::from_str_radix(byte, 16).ok());
        let bytes: Option<Vec<u8>> = bytes.collect();
        let bytes = bytes.and_then(|bytes| bytes.try_into().ok());
        bytes.map(Self).ok_or("a hardware address is like 02:00:5e:10:00:01")
    }
}

/// What a flow matches: all packets, or those to some IPv6 addresses (7.2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Match {
    All,
    To(AddressPrefix),
}

/// `OFPMT_OXM`.
const OXM: u16 = 1;
/// `OFPXMC_OPENFLOW_BASIC`.
const BASIC: u16 = 0x8000;
/// `OFPXMT_OFB_ETH_DST`.
const ETH_DST: u8 = 3;
/// `OFPXMT_OFB_ETH_TYPE`.
const ETH_TYPE: u8 = 5;
/// `OFPXMT_OFB_IPV6_DST`.
const IPV6_DST: u8 = 27;
/// The Ethernet type of IPv6.
const IPV6: u16 = 0x86dd;

/// Appends a field with its mask, if it has one.
fn push_field(out: &mut Vec<u8>, field: u8, value: &[u8], mask: Option<&[u8]>) {
    let len = value.len() + mask.map_or(0, <[u8]>::len);
    out.extend(BASIC.to_be_bytes());
    out.push(field << 1 | u8::from(mask.is_some()));
    out.push(u8::try_from(len).expect("fields are short"));
    out.extend(value);
    out.extend(mask.unwrap_or_default());
}

impl Match {
    pub(crate) fn push(self, out: &mut Vec<u8>) {
        let from = out.len();
        out.extend(OXM.to_be_bytes());
        out.extend([0, 0]);
        if let Self::To(AddressPrefix { addr, len }) = self {
            push_field(out, ETH_TYPE, &IPV6.to_be_bytes(), None);
            let mask = mask(len).to_be_bytes();
            push_field(out, IPV6_DST, &addr.octets(), (len < 128).then_some(&mask));
        }
        let len = out.len() - from;
        set_len(out, from + 2, len);
        pad(out, from, 8);
    }

    /// Reads one, if it matches nothing else.
    pub(crate) fn split(reader: &mut Reader<'_>) -> Option<Self> {
        let kind = reader.u16()?;
        let len = usize::from(reader.u16()?);
        let mut fields = Reader(reader.take(len.checked_sub(4)?)?);
        reader.take(len.next_multiple_of(8) - len)?;
        let mut found = Self::All;
        while !fields.0.is_empty() {
            let (class, field) = (fields.u16()?, fields.u8()?);
            let len = usize::from(fields.u8()?);
            let mut value = Reader(fields.take(len)?);
            match (class, field) {
                (BASIC, field) if field == ETH_TYPE << 1 => {
                    (value.u16()? == IPV6).then_some(())?;
                }
                (BASIC, field) if field == IPV6_DST << 1 => {
                    let addr = Ipv6Addr::from(value.u128()?);
                    found = Self::To(AddressPrefix { addr, len: 128 });
                }
                (BASIC, field) if field == IPV6_DST << 1 | 1 => {
                    let (addr, mask) = (Ipv6Addr::from(value.u128()?), value.u128()?);
                    let len = u8::try_from(mask.leading_ones()).ok()?;
                    (mask == self::mask(len)).then_some(())?;
                    found = Self::To(AddressPrefix { addr, len });
                }
                _ => return None,
            }
        }
        (kind == OXM).then_some(found)
    }
}

fn mask(len: u8) -> u128 {
    u128::MAX.checked_shl(128 - u32::from(len)).unwrap_or(0)
}

/// What a flow does (7.2.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Does {
    /// The next table says.
    GoTo(u8),
    /// Out there, with another hardware address or the one that it has.
    Send(Option<Mac>, u32),
}

/// `OFPIT_GOTO_TABLE`.
const GOTO_TABLE: u16 = 1;
/// `OFPIT_APPLY_ACTIONS`.
const APPLY_ACTIONS: u16 = 4;
/// `OFPAT_OUTPUT`.
const OUTPUT: u16 = 0;
/// `OFPAT_SET_FIELD`.
const SET_FIELD: u16 = 25;

impl Does {
    pub(crate) fn push(self, out: &mut Vec<u8>) {
        match self {
            Self::GoTo(table) => {
                out.extend(GOTO_TABLE.to_be_bytes());
                out.extend([0, 8, table, 0, 0, 0]);
            }
            Self::Send(mac, port) => {
                let from = out.len();
                out.extend(APPLY_ACTIONS.to_be_bytes());
                out.extend([0; 6]);
                if let Some(Mac(mac)) = mac {
                    let action = out.len();
                    out.extend(SET_FIELD.to_be_bytes());
                    out.extend([0, 16]);
                    push_field(out, ETH_DST, &mac, None);
                    pad(out, action, 8);
                }
                out.extend(OUTPUT.to_be_bytes());
                out.extend([0, 16]);
                out.extend(port.to_be_bytes());
                out.extend([0; 8]);
                let len = out.len() - from;
                set_len(out, from + 2, len);
            }
        }
    }

    /// Reads one, if it does nothing else.
    pub(crate) fn read(mut reader: Reader<'_>) -> Option<Self> {
        let kind = reader.u16()?;
        let len = usize::from(reader.u16()?);
        let mut body = Reader(reader.take(len.checked_sub(4)?)?);
        // There is one instruction.
        reader.0.is_empty().then_some(())?;
        match kind {
            GOTO_TABLE => Some(Self::GoTo(body.u8()?)),
            APPLY_ACTIONS => {
                body.take(4)?;
                let mut mac = None;
                loop {
                    let kind = body.u16()?;
                    let len = usize::from(body.u16()?);
                    let mut action = Reader(body.take(len.checked_sub(4)?)?);
                    match kind {
                        SET_FIELD => {
                            let head = (action.u16()?, action.u8()?, action.u8()?);
                            (head == (BASIC, ETH_DST << 1, 6)).then_some(())?;
                            mac = Some(Mac(action.take(6)?.try_into().ok()?));
                        }
                        OUTPUT if body.0.is_empty() => return Some(Self::Send(mac, action.u32()?)),
                        _ => return None,
                    }
                }
            }
            _ => None,
        }
    }
}
