//! Captures in the two forms of pcap, read block by block.

use super::frame::{self, LinkType};
use super::reading::{Reading, read_up_to, unread};
use anyhow::anyhow;
use console::exit::Failure;
use pcap_parser::pcapng::{Block, EnhancedPacketBlock, InterfaceDescriptionBlock};
use pcap_parser::traits::{PcapNGPacketBlock as _, PcapReaderIterator};
use pcap_parser::{LegacyPcapReader, PcapBlockOwned, PcapError, PcapNGReader};
use std::io::{Cursor, Read};
use std::time::Duration;

/// Bytes that are read at once; the longest frame that the usual programs capture fits.
const BUFFER_LEN: usize = 512 << 10;

/// Bytes of the longest block that is read, far more than a frame has: pcapng has others, and a
/// length that is wrong is not to be believed.
const BLOCK_MAX: usize = 16 << 20;

/// Interfaces of one section of a pcapng capture: far more than a machine has.
const INTERFACES_MAX: usize = 4096;

/// How a pcapng capture begins, and where it says which byte of a number comes first.
const SECTION: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];
const SECTION_HEAD_LEN: usize = 12;

/// How pcap captures begin, in either order of bytes, with microseconds or nanoseconds.
const MAGICS: [[u8; 4]; 4] = [
    [0xa1, 0xb2, 0xc3, 0xd4],
    [0xd4, 0xc3, 0xb2, 0xa1],
    [0xa1, 0xb2, 0x3c, 0x4d],
    [0x4d, 0x3c, 0xb2, 0xa1],
];

const HEADER_LEN: usize = 24;

pub(super) fn is_pcap(head: &[u8]) -> bool {
    head == SECTION || MAGICS.iter().any(|magic| head == magic)
}

/// What a capture says of an interface.
struct Interface {
    link: LinkType,
    /// Ticks of its clock in a second.
    resolution: u64,
    offset_s: i64,
}

pub(super) fn read(
    mut head: Vec<u8>,
    mut input: Box<dyn Read>,
    reading: &mut Reading<'_>,
) -> Result<(), Failure> {
    let is_new = head == SECTION;
    // The library wants the first header at once, and a pipe gives what there is.
    let wanted = if is_new { SECTION_HEAD_LEN } else { HEADER_LEN } - head.len();
    head.extend(read_up_to(&mut *input, wanted)?);
    if let (true, Some(len)) = (is_new, section_len(&head)) {
        let more = len.saturating_sub(head.len()).min(BUFFER_LEN - head.len());
        head.extend(read_up_to(&mut *input, more)?);
    }
    let input = Cursor::new(head).chain(input);
    let reader: Result<Box<dyn PcapReaderIterator>, _> = if is_new {
        PcapNGReader::new(BUFFER_LEN, input).map(|it| Box::new(it) as _)
    } else {
        LegacyPcapReader::new(BUFFER_LEN, input).map(|it| Box::new(it) as _)
    };
    let reader = reader.map_err(|_| damaged(0))?;
    Blocks { nanos: false, interfaces: Vec::new(), number: 0 }.read(reader, reading)
}

fn section_len(head: &[u8]) -> Option<usize> {
    let (&len, &order) = (head.get(4..)?.first_chunk()?, head.get(8..)?.first_chunk()?);
    let is_big = order == [0x1a, 0x2b, 0x3c, 0x4d];
    usize::try_from(if is_big { u32::from_be_bytes(len) } else { u32::from_le_bytes(len) }).ok()
}

struct Blocks {
    /// Whether the fractions of a second are nanoseconds; of the old form.
    nanos: bool,
    /// Of the new form those of the present section, of the old form the one that there is.
    interfaces: Vec<Interface>,
    /// The last frame.
    number: u64,
}

impl Blocks {
    fn read(
        mut self,
        mut reader: Box<dyn PcapReaderIterator>,
        reading: &mut Reading<'_>,
    ) -> Result<(), Failure> {
        let mut capacity = BUFFER_LEN;
        loop {
            match reader.next() {
                Ok((len, block)) => {
                    self.take(&block, reading)?;
                    reader.consume(len);
                    continue;
                }
                Err(PcapError::Eof) => return Ok(()),
                Err(PcapError::Incomplete(_)) => {}
                Err(PcapError::BufferTooSmall) if capacity < BLOCK_MAX => {
                    capacity *= 2;
                    // The library says it once more if that does not suffice.
                    let _grown = reader.grow(capacity);
                }
                Err(PcapError::UnexpectedEof) => {
                    let frame = self.number;
                    let why =
                        anyhow!("the capture ends in the middle of what follows frame {frame}");
                    return Err(Failure::Other(why));
                }
                Err(_) => return Err(damaged(self.number)),
            }
            reading.taker.pause()?;
            reader.refill().map_err(|_| unread(std::io::ErrorKind::Other.into()))?;
        }
    }

    fn take(
        &mut self,
        block: &PcapBlockOwned<'_>,
        reading: &mut Reading<'_>,
    ) -> Result<(), Failure> {
        match block {
            PcapBlockOwned::LegacyHeader(header) => {
                self.nanos = header.is_nanosecond_precision();
                let resolution = if self.nanos { 1_000_000_000 } else { 1_000_000 };
                let link = LinkType::of(header.network);
                self.interfaces = vec![Interface { link, resolution, offset_s: 0 }];
                Ok(())
            }
            PcapBlockOwned::Legacy(it) => {
                let second = Duration::from_secs(it.ts_sec.into());
                let part = if self.nanos { 1 } else { 1_000 };
                let at = second + Duration::from_nanos(u64::from(it.ts_usec) * part);
                let len = it.data.len().min(usize::try_from(it.caplen).unwrap_or(usize::MAX));
                self.frame(0, Some(at), it.data.get(..len).unwrap_or_default(), reading)
            }
            PcapBlockOwned::NG(Block::SectionHeader(_)) => {
                self.interfaces.clear();
                Ok(())
            }
            PcapBlockOwned::NG(Block::InterfaceDescription(it)) => self.interface(it),
            PcapBlockOwned::NG(Block::EnhancedPacket(it)) => {
                let at = self.time(it);
                self.frame(it.if_id, at, it.packet_data(), reading)
            }
            PcapBlockOwned::NG(Block::SimplePacket(it)) => {
                self.frame(0, None, it.packet_data(), reading)
            }
            PcapBlockOwned::NG(_) => Ok(()),
        }
    }

    fn interface(&mut self, it: &InterfaceDescriptionBlock<'_>) -> Result<(), Failure> {
        if self.interfaces.len() == INTERFACES_MAX {
            let why = anyhow!("the capture has more than {INTERFACES_MAX} interfaces");
            return Err(Failure::Other(why));
        }
        let (link, offset_s) = (LinkType::of(it.linktype), it.ts_offset());
        let resolution = it.ts_resolution().unwrap_or(0);
        self.interfaces.push(Interface { link, resolution, offset_s });
        Ok(())
    }

    fn time(&self, it: &EnhancedPacketBlock<'_>) -> Option<Duration> {
        let Interface { resolution, offset_s, .. } =
            self.interfaces.get(usize::try_from(it.if_id).ok()?)?;
        let ticks = u64::from(it.ts_high) << 32 | u64::from(it.ts_low);
        let second = ticks.checked_div(*resolution)?.checked_add_signed(*offset_s)?;
        let part = u128::from(ticks % resolution) * 1_000_000_000 / u128::from(*resolution);
        Some(Duration::new(second, u32::try_from(part).ok()?))
    }

    fn frame(
        &mut self,
        interface: u32,
        at: Option<Duration>,
        bytes: &[u8],
        reading: &mut Reading<'_>,
    ) -> Result<(), Failure> {
        self.number += 1;
        let known = usize::try_from(interface).ok().and_then(|it| self.interfaces.get(it));
        match frame::datagram(known.map_or(LinkType::Unknown, |it| it.link), bytes) {
            Ok(found) => reading.take(found.captured(self.number, at)),
            Err(what) => {
                reading.other(what);
                Ok(())
            }
        }
    }
}

fn damaged(frame: u64) -> Failure {
    Failure::Other(anyhow!(
        "the capture is damaged after frame {frame}: `editcap IN OUT` of Wireshark may mend it"
    ))
}
