//! The messages of OpenFlow 1.3 that it takes (7.3 to 7.5).

use crate::bytes::{Reader, set_len};
use crate::fields::{Does, Match};

/// The version of the protocol: 1.3.
pub(crate) const VERSION: u8 = 4;
/// Bytes of every message's header: version, type, length, number.
pub(crate) const HEADER_LEN: usize = 8;

/// `OFPTT_ALL`.
pub(crate) const ALL_TABLES: u8 = 0xff;
/// `OFPP_NORMAL`: as a switch without OpenFlow would.
pub(crate) const NORMAL: u32 = 0xffff_fffa;
/// `OFPP_ANY`, `OFPG_ANY` and `OFP_NO_BUFFER`.
const ANY: u32 = 0xffff_ffff;

/// What is sent to a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    Hello,
    /// What a switch asked to be sent back is apart: [`echo`].
    Features,
    /// Puts a flow in, in place of the one that matches the same.
    Add(Flow),
    /// Takes the flow out that matches the same, if its cookie has these bits.
    Remove(Flow, u64),
    /// Takes all flows of a table, or of [`ALL_TABLES`], with these bits in their cookies out.
    RemoveAll {
        table: u8,
        cookie: u64,
        mask: u64,
    },
    /// Is answered when all that was sent before is done.
    Barrier,
    /// Asks how many flows each table takes.
    Tables,
    /// Asks for all flows of a table, or of [`ALL_TABLES`], with these bits in their cookies.
    Flows {
        table: u8,
        cookie: u64,
        mask: u64,
    },
    /// Is sent back.
    Echo,
}

/// A flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flow {
    pub(crate) table: u8,
    pub(crate) priority: u16,
    pub(crate) cookie: u64,
    pub(crate) matches: Match,
    pub(crate) does: Does,
}

/// What a switch says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Said<'a> {
    /// The versions that it speaks: a bit each, or nothing but the highest.
    Hello {
        highest: u8,
        versions: Option<u32>,
    },
    Error {
        kind: u16,
        code: u16,
        text: &'a [u8],
    },
    Echo(&'a [u8]),
    Echoed,
    Features {
        datapath: u64,
        tables: u8,
    },
    Barrier,
    /// How many flows tables take, by their numbers, and whether more follow.
    Tables(Vec<(u8, u32)>, bool),
    /// Flows, and whether more follow. One that is not like ours is `None`.
    Flows(Vec<Option<Counted>>, bool),
    /// Something that nobody asked for.
    Other,
}

/// A flow, and how many packets it has matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counted {
    pub(crate) flow: Flow,
    pub(crate) packets: u64,
}

/// `OFPT_` and so on.
mod kind {
    pub(super) const HELLO: u8 = 0;
    pub(super) const ERROR: u8 = 1;
    pub(super) const ECHO_REQUEST: u8 = 2;
    pub(super) const ECHO_REPLY: u8 = 3;
    pub(super) const FEATURES_REQUEST: u8 = 5;
    pub(super) const FEATURES_REPLY: u8 = 6;
    pub(super) const FLOW_MOD: u8 = 14;
    pub(super) const MULTIPART_REQUEST: u8 = 18;
    pub(super) const MULTIPART_REPLY: u8 = 19;
    pub(super) const BARRIER_REQUEST: u8 = 20;
    pub(super) const BARRIER_REPLY: u8 = 21;
}

/// `OFPFC_ADD`.
const ADD: u8 = 0;
/// `OFPFC_DELETE`.
const DELETE: u8 = 3;
/// `OFPFC_DELETE_STRICT`.
const DELETE_STRICT: u8 = 4;
/// `OFPMP_FLOW`.
const FLOW_STATISTICS: u16 = 1;
/// `OFPMP_TABLE_FEATURES`.
const TABLE_FEATURES: u16 = 12;
/// `OFPMPF_REPLY_MORE`.
const MORE: u16 = 1;
/// `OFPHET_VERSIONBITMAP`.
const VERSION_BITMAP: u16 = 1;

impl Request {
    /// Appends it with this number.
    pub(crate) fn push(self, out: &mut Vec<u8>, number: u32) {
        let kind = match self {
            Self::Hello => kind::HELLO,
            Self::Features => kind::FEATURES_REQUEST,
            Self::Add(_) | Self::Remove(..) | Self::RemoveAll { .. } => kind::FLOW_MOD,
            Self::Barrier => kind::BARRIER_REQUEST,
            Self::Tables | Self::Flows { .. } => kind::MULTIPART_REQUEST,
            Self::Echo => kind::ECHO_REQUEST,
        };
        let from = begin(out, kind, number);
        match self {
            Self::Hello => {
                out.extend(VERSION_BITMAP.to_be_bytes());
                out.extend([0, 8]);
                out.extend((1u32 << VERSION).to_be_bytes());
            }
            Self::Features | Self::Barrier | Self::Echo => {}
            Self::Add(flow) => {
                push_flow_mod(out, ADD, flow, 0);
                flow.does.push(out);
            }
            Self::Remove(flow, mask) => push_flow_mod(out, DELETE_STRICT, flow, mask),
            Self::RemoveAll { table, cookie, mask } => {
                let does = Does::GoTo(0);
                let flow = Flow { table, priority: 0, cookie, matches: Match::All, does };
                push_flow_mod(out, DELETE, flow, mask);
            }
            Self::Tables => {
                out.extend(TABLE_FEATURES.to_be_bytes());
                out.extend([0; 6]);
            }
            Self::Flows { table, cookie, mask } => {
                out.extend(FLOW_STATISTICS.to_be_bytes());
                out.extend([0; 6]);
                out.extend([table, 0, 0, 0]);
                out.extend(ANY.to_be_bytes());
                out.extend(ANY.to_be_bytes());
                out.extend([0; 4]);
                out.extend(cookie.to_be_bytes());
                out.extend(mask.to_be_bytes());
                Match::All.push(out);
            }
        }
        end(out, from);
    }
}

/// Appends the answer to a switch that wants this sent back.
pub(crate) fn echo(out: &mut Vec<u8>, number: u32, content: &[u8]) {
    let from = begin(out, kind::ECHO_REPLY, number);
    out.extend(content);
    end(out, from);
}

fn begin(out: &mut Vec<u8>, kind: u8, number: u32) -> usize {
    let from = out.len();
    out.extend([VERSION, kind, 0, 0]);
    out.extend(number.to_be_bytes());
    from
}

fn end(out: &mut [u8], from: usize) {
    let len = out.len() - from;
    set_len(out, from + 2, len);
}

fn push_flow_mod(out: &mut Vec<u8>, command: u8, flow: Flow, mask: u64) {
    let Flow { table, priority, cookie, matches, .. } = flow;
    out.extend(cookie.to_be_bytes());
    out.extend(mask.to_be_bytes());
    // It stays until it is taken out: both timeouts are 0.
    out.extend([table, command, 0, 0, 0, 0]);
    out.extend(priority.to_be_bytes());
    for any in [ANY; 3] {
        out.extend(any.to_be_bytes());
    }
    out.extend([0; 4]);
    matches.push(out);
}

/// How long the message is that begins here; `None` if that is not known yet.
pub(crate) fn len(bytes: &[u8]) -> Option<usize> {
    let mut reader = Reader(bytes);
    reader.take(2)?;
    reader.u16().map(usize::from)
}

/// Reads a whole message: its number, and what it says. `None` if it is not sound.
pub(crate) fn read(message: &[u8]) -> Option<(u32, Said<'_>)> {
    let mut reader = Reader(message);
    let (version, kind) = (reader.u8()?, reader.u8()?);
    reader.u16()?;
    let number = reader.u32()?;
    let said = match kind {
        kind::HELLO => Said::Hello { highest: version, versions: bitmap(reader) },
        _ if version != VERSION && kind != kind::ERROR => return None,
        kind::ERROR => Said::Error { kind: reader.u16()?, code: reader.u16()?, text: reader.0 },
        kind::ECHO_REQUEST => Said::Echo(reader.0),
        kind::ECHO_REPLY => Said::Echoed,
        kind::FEATURES_REPLY => {
            let datapath = reader.u64()?;
            reader.u32()?;
            Said::Features { datapath, tables: reader.u8()? }
        }
        kind::BARRIER_REPLY => Said::Barrier,
        kind::MULTIPART_REPLY => {
            let (kind, flags) = (reader.u16()?, reader.u16()?);
            reader.take(4)?;
            let more = flags & MORE != 0;
            match kind {
                FLOW_STATISTICS => Said::Flows(flows(reader)?, more),
                TABLE_FEATURES => Said::Tables(tables(reader)?, more),
                _ => return None,
            }
        }
        _ => Said::Other,
    };
    Some((number, said))
}

/// The versions that a HELLO names, if it does.
fn bitmap(mut reader: Reader<'_>) -> Option<u32> {
    loop {
        let kind = reader.u16()?;
        let len = usize::from(reader.u16()?);
        let mut element = Reader(reader.take(len.checked_sub(4)?)?);
        if kind == VERSION_BITMAP {
            return element.u32();
        }
        let padding = len.next_multiple_of(8) - len;
        reader.take(padding.min(reader.0.len()))?;
    }
}

/// How many flows each table of a reply takes (7.3.5.5).
fn tables(mut reader: Reader<'_>) -> Option<Vec<(u8, u32)>> {
    let mut tables = Vec::new();
    while !reader.0.is_empty() {
        let len = usize::from(reader.u16()?);
        let mut table = Reader(reader.take(len.checked_sub(2)?)?);
        let number = table.u8()?;
        // Padding, name, metadata that is matched and written, configuration.
        table.take(5 + 32 + 8 + 8 + 4)?;
        tables.push((number, table.u32()?));
    }
    Some(tables)
}

/// The flows of a statistics reply.
fn flows(mut reader: Reader<'_>) -> Option<Vec<Option<Counted>>> {
    let mut flows = Vec::new();
    while !reader.0.is_empty() {
        let len = usize::from(reader.u16()?);
        flows.push(counted(Reader(reader.take(len.checked_sub(2)?)?)));
    }
    Some(flows)
}

fn counted(mut reader: Reader<'_>) -> Option<Counted> {
    let table = reader.u8()?;
    reader.take(9)?;
    let priority = reader.u16()?;
    reader.take(10)?;
    let (cookie, packets) = (reader.u64()?, reader.u64()?);
    reader.u64()?;
    let matches = Match::split(&mut reader)?;
    let flow = Flow { table, priority, cookie, matches, does: Does::read(reader)? };
    Some(Counted { flow, packets })
}
