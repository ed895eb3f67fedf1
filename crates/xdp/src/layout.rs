//! The records that the loader shares with the program in the kernel. Generated from
//! `spec/layout.toml` by `cargo xtask codegen`; do not edit. The generated C header has the
//! compiler check that it agrees.

use wire::{DelegationId, DirectoryClock, Generation, Version};

/// Element 0 of a keyspace's table: how to find a row. Bucket (hi(match) - first_hi) >> shift, at
/// most the last of `buckets`, says in which rows to search; the rows begin at element `rows_at`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// 8 bytes, as the machine has it.
    pub first_hi: u64,
    /// 4 bytes, as the machine has it.
    pub shift: u32,
    /// 4 bytes, as the machine has it.
    pub buckets: u32,
    /// 4 bytes, as the machine has it.
    pub rows_at: u32,
}

impl Space {
    /// Bytes in the map.
    pub const LEN: usize = 64;

    /// The bytes of the map's value.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 64] {
        let mut out = [0; 64];
        let mut at = 0;
        crate::bytes::put(&mut out, at, &self.first_hi.to_ne_bytes());
        at += 8;
        crate::bytes::put(&mut out, at, &self.shift.to_ne_bytes());
        at += 4;
        crate::bytes::put(&mut out, at, &self.buckets.to_ne_bytes());
        at += 4;
        crate::bytes::put(&mut out, at, &self.rows_at.to_ne_bytes());
        at += 4;
        at += 44;
        debug_assert_eq!(at, Self::LEN);
        out
    }

    /// What the bytes of the map's value say; `None` if they are too few.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Some(Self {
            first_hi: u64::from_ne_bytes(crate::bytes::get(bytes, 0)?),
            shift: u32::from_ne_bytes(crate::bytes::get(bytes, 8)?),
            buckets: u32::from_ne_bytes(crate::bytes::get(bytes, 12)?),
            rows_at: u32::from_ne_bytes(crate::bytes::get(bytes, 16)?),
        })
    }
}

/// Sixteen to an element, from element 1 on: the row that holds the first match value of the
/// bucket, or the one before it, and how many of those after it begin in the bucket or before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bucket {
    /// 2 bytes, as the machine has it.
    pub row: u16,
    /// 2 bytes, as the machine has it.
    pub more: u16,
}

impl Bucket {
    /// Bytes in the map.
    pub const LEN: usize = 4;

    /// The bytes of the map's value.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 4] {
        let mut out = [0; 4];
        let mut at = 0;
        crate::bytes::put(&mut out, at, &self.row.to_ne_bytes());
        at += 2;
        crate::bytes::put(&mut out, at, &self.more.to_ne_bytes());
        at += 2;
        debug_assert_eq!(at, Self::LEN);
        out
    }

    /// What the bytes of the map's value say; `None` if they are too few.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Some(Self {
            row: u16::from_ne_bytes(crate::bytes::get(bytes, 0)?),
            more: u16::from_ne_bytes(crate::bytes::get(bytes, 2)?),
        })
    }
}

/// A partition: its match values, what is stamped, to which UDP ports of the head and of the tail
/// (0: not in the node table), the place of the tail in the chain, and the index of the partition's
/// `load`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// 8 bytes, as the machine has it.
    pub first_hi: u64,
    /// 8 bytes, as the machine has it.
    pub first_lo: u64,
    /// 8 bytes, as the machine has it.
    pub last_hi: u64,
    /// 8 bytes, as the machine has it.
    pub last_lo: u64,
    /// 16 times 1 bytes, as the machine has it.
    pub chain: [u8; 16],
    /// 4 bytes, big-endian in the map.
    pub partition: u32,
    /// 4 bytes, big-endian in the map.
    pub epoch: u32,
    /// 2 bytes, big-endian in the map.
    pub head_port: u16,
    /// 2 bytes, big-endian in the map.
    pub tail_port: u16,
    /// 2 bytes, as the machine has it.
    pub counter: u16,
    /// 1 bytes, as the machine has it.
    pub chain_len: u8,
    /// 1 bytes, as the machine has it.
    pub tail: u8,
}

impl Row {
    /// Bytes in the map.
    pub const LEN: usize = 64;

    /// The bytes of the map's value.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 64] {
        let mut out = [0; 64];
        let mut at = 0;
        crate::bytes::put(&mut out, at, &self.first_hi.to_ne_bytes());
        at += 8;
        crate::bytes::put(&mut out, at, &self.first_lo.to_ne_bytes());
        at += 8;
        crate::bytes::put(&mut out, at, &self.last_hi.to_ne_bytes());
        at += 8;
        crate::bytes::put(&mut out, at, &self.last_lo.to_ne_bytes());
        at += 8;
        crate::bytes::put(&mut out, at, &self.chain);
        at += 16;
        crate::bytes::put(&mut out, at, &self.partition.to_be_bytes());
        at += 4;
        crate::bytes::put(&mut out, at, &self.epoch.to_be_bytes());
        at += 4;
        crate::bytes::put(&mut out, at, &self.head_port.to_be_bytes());
        at += 2;
        crate::bytes::put(&mut out, at, &self.tail_port.to_be_bytes());
        at += 2;
        crate::bytes::put(&mut out, at, &self.counter.to_ne_bytes());
        at += 2;
        crate::bytes::put(&mut out, at, &self.chain_len.to_ne_bytes());
        at += 1;
        crate::bytes::put(&mut out, at, &self.tail.to_ne_bytes());
        at += 1;
        debug_assert_eq!(at, Self::LEN);
        out
    }

    /// What the bytes of the map's value say; `None` if they are too few.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Some(Self {
            first_hi: u64::from_ne_bytes(crate::bytes::get(bytes, 0)?),
            first_lo: u64::from_ne_bytes(crate::bytes::get(bytes, 8)?),
            last_hi: u64::from_ne_bytes(crate::bytes::get(bytes, 16)?),
            last_lo: u64::from_ne_bytes(crate::bytes::get(bytes, 24)?),
            chain: crate::bytes::get(bytes, 32)?,
            partition: u32::from_be_bytes(crate::bytes::get(bytes, 48)?),
            epoch: u32::from_be_bytes(crate::bytes::get(bytes, 52)?),
            head_port: u16::from_be_bytes(crate::bytes::get(bytes, 56)?),
            tail_port: u16::from_be_bytes(crate::bytes::get(bytes, 58)?),
            counter: u16::from_ne_bytes(crate::bytes::get(bytes, 60)?),
            chain_len: u8::from_ne_bytes(crate::bytes::get(bytes, 62)?),
            tail: u8::from_ne_bytes(crate::bytes::get(bytes, 63)?),
        })
    }
}

/// How an address is reached: interface (0: not known, the kernel has to find it) and Ethernet
/// addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Way {
    /// 16 times 1 bytes, as the machine has it.
    pub addr: [u8; 16],
    /// 4 bytes, as the machine has it.
    pub ifindex: u32,
    /// 6 times 1 bytes, as the machine has it.
    pub dmac: [u8; 6],
    /// 6 times 1 bytes, as the machine has it.
    pub smac: [u8; 6],
}

impl Way {
    /// Bytes in the map.
    pub const LEN: usize = 32;

    /// The bytes of the map's value.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 32] {
        let mut out = [0; 32];
        let mut at = 0;
        crate::bytes::put(&mut out, at, &self.addr);
        at += 16;
        crate::bytes::put(&mut out, at, &self.ifindex.to_ne_bytes());
        at += 4;
        crate::bytes::put(&mut out, at, &self.dmac);
        at += 6;
        crate::bytes::put(&mut out, at, &self.smac);
        at += 6;
        debug_assert_eq!(at, Self::LEN);
        out
    }

    /// What the bytes of the map's value say; `None` if they are too few.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Some(Self {
            addr: crate::bytes::get(bytes, 0)?,
            ifindex: u32::from_ne_bytes(crate::bytes::get(bytes, 16)?),
            dmac: crate::bytes::get(bytes, 20)?,
            smac: crate::bytes::get(bytes, 26)?,
        })
    }
}

/// A node of the node table or a cache, by id: its way, the port of its first shard, and how many
/// it has (0: it is not in the tables).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// 16 times 1 bytes, as the machine has it.
    pub addr: [u8; 16],
    /// 4 bytes, as the machine has it.
    pub ifindex: u32,
    /// 6 times 1 bytes, as the machine has it.
    pub dmac: [u8; 6],
    /// 6 times 1 bytes, as the machine has it.
    pub smac: [u8; 6],
    /// 2 bytes, big-endian in the map.
    pub port: u16,
    /// 2 bytes, as the machine has it.
    pub shards: u16,
}

impl Node {
    /// Bytes in the map.
    pub const LEN: usize = 40;

    /// The bytes of the map's value.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 40] {
        let mut out = [0; 40];
        let mut at = 0;
        crate::bytes::put(&mut out, at, &self.addr);
        at += 16;
        crate::bytes::put(&mut out, at, &self.ifindex.to_ne_bytes());
        at += 4;
        crate::bytes::put(&mut out, at, &self.dmac);
        at += 6;
        crate::bytes::put(&mut out, at, &self.smac);
        at += 6;
        crate::bytes::put(&mut out, at, &self.port.to_be_bytes());
        at += 2;
        crate::bytes::put(&mut out, at, &self.shards.to_ne_bytes());
        at += 2;
        at += 4;
        debug_assert_eq!(at, Self::LEN);
        out
    }

    /// What the bytes of the map's value say; `None` if they are too few.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Some(Self {
            addr: crate::bytes::get(bytes, 0)?,
            ifindex: u32::from_ne_bytes(crate::bytes::get(bytes, 16)?),
            dmac: crate::bytes::get(bytes, 20)?,
            smac: crate::bytes::get(bytes, 26)?,
            port: u16::from_be_bytes(crate::bytes::get(bytes, 32)?),
            shards: u16::from_ne_bytes(crate::bytes::get(bytes, 34)?),
        })
    }
}

/// Where a datagram comes from; what nodes are recognised by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// 16 times 1 bytes, as the machine has it.
    pub addr: [u8; 16],
    /// 2 bytes, big-endian in the map.
    pub port: u16,
}

impl Source {
    /// Bytes in the map.
    pub const LEN: usize = 20;

    /// The bytes of the map's value.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 20] {
        let mut out = [0; 20];
        let mut at = 0;
        crate::bytes::put(&mut out, at, &self.addr);
        at += 16;
        crate::bytes::put(&mut out, at, &self.port.to_be_bytes());
        at += 2;
        at += 2;
        debug_assert_eq!(at, Self::LEN);
        out
    }

    /// What the bytes of the map's value say; `None` if they are too few.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Some(Self {
            addr: crate::bytes::get(bytes, 0)?,
            port: u16::from_be_bytes(crate::bytes::get(bytes, 16)?),
        })
    }
}

/// Whose port a source is: the id of a node, or of a cache (1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sender {
    /// 2 bytes, as the machine has it.
    pub id: u16,
    /// 2 bytes, as the machine has it.
    pub is_cache: u16,
}

impl Sender {
    /// Bytes in the map.
    pub const LEN: usize = 4;

    /// The bytes of the map's value.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 4] {
        let mut out = [0; 4];
        let mut at = 0;
        crate::bytes::put(&mut out, at, &self.id.to_ne_bytes());
        at += 2;
        crate::bytes::put(&mut out, at, &self.is_cache.to_ne_bytes());
        at += 2;
        debug_assert_eq!(at, Self::LEN);
        out
    }

    /// What the bytes of the map's value say; `None` if they are too few.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Some(Self {
            id: u16::from_ne_bytes(crate::bytes::get(bytes, 0)?),
            is_cache: u16::from_ne_bytes(crate::bytes::get(bytes, 2)?),
        })
    }
}

/// What one processor counted for a partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// 8 bytes, as the machine has it.
    pub reads: u64,
    /// 8 bytes, as the machine has it.
    pub writes: u64,
}

impl Load {
    /// Bytes in the map.
    pub const LEN: usize = 16;

    /// The bytes of the map's value.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 16] {
        let mut out = [0; 16];
        let mut at = 0;
        crate::bytes::put(&mut out, at, &self.reads.to_ne_bytes());
        at += 8;
        crate::bytes::put(&mut out, at, &self.writes.to_ne_bytes());
        at += 8;
        debug_assert_eq!(at, Self::LEN);
        out
    }

    /// What the bytes of the map's value say; `None` if they are too few.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Some(Self {
            reads: u64::from_ne_bytes(crate::bytes::get(bytes, 0)?),
            writes: u64::from_ne_bytes(crate::bytes::get(bytes, 8)?),
        })
    }
}

/// What one processor counted: packets that left as one, by operation, and so are counted once; all
/// others by operation, drops by reason, datagrams that the parser refused, what left as parts of
/// an MGET or RANGE, PUTs of delegated keys sent by a grant that was new, or was not, keys of MGETs
/// that were hot and went home, or to a copy, replies of versions that were never given out, PUTs
/// that a grant had no room for, and GETs sent to caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Totals {
    /// 256 times 8 bytes, as the machine has it.
    pub forwarded: [u64; 256],
    /// 256 times 8 bytes, as the machine has it.
    pub others: [u64; 256],
    /// 256 times 8 bytes, as the machine has it.
    pub dropped: [u64; 256],
    /// 8 bytes, as the machine has it.
    pub unparsed: u64,
    /// 8 bytes, as the machine has it.
    pub parts: u64,
    /// 2 times 8 bytes, as the machine has it.
    pub delegated: [u64; 2],
    /// 2 times 8 bytes, as the machine has it.
    pub hot_keys: [u64; 2],
    /// 8 bytes, as the machine has it.
    pub doubted: u64,
    /// 8 bytes, as the machine has it.
    pub crowded: u64,
    /// 8 bytes, as the machine has it.
    pub cached: u64,
}

impl Totals {
    /// Bytes in the map.
    pub const LEN: usize = 6216;

    /// The bytes of the map's value.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 6216] {
        let mut out = [0; 6216];
        let mut at = 0;
        for (i, one) in self.forwarded.iter().enumerate() {
            crate::bytes::put(&mut out, at + 8 * i, &one.to_ne_bytes());
        }
        at += 2048;
        for (i, one) in self.others.iter().enumerate() {
            crate::bytes::put(&mut out, at + 8 * i, &one.to_ne_bytes());
        }
        at += 2048;
        for (i, one) in self.dropped.iter().enumerate() {
            crate::bytes::put(&mut out, at + 8 * i, &one.to_ne_bytes());
        }
        at += 2048;
        crate::bytes::put(&mut out, at, &self.unparsed.to_ne_bytes());
        at += 8;
        crate::bytes::put(&mut out, at, &self.parts.to_ne_bytes());
        at += 8;
        for (i, one) in self.delegated.iter().enumerate() {
            crate::bytes::put(&mut out, at + 8 * i, &one.to_ne_bytes());
        }
        at += 16;
        for (i, one) in self.hot_keys.iter().enumerate() {
            crate::bytes::put(&mut out, at + 8 * i, &one.to_ne_bytes());
        }
        at += 16;
        crate::bytes::put(&mut out, at, &self.doubted.to_ne_bytes());
        at += 8;
        crate::bytes::put(&mut out, at, &self.crowded.to_ne_bytes());
        at += 8;
        crate::bytes::put(&mut out, at, &self.cached.to_ne_bytes());
        at += 8;
        debug_assert_eq!(at, Self::LEN);
        out
    }

    /// What the bytes of the map's value say; `None` if they are too few.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Some(Self {
            forwarded: {
                let mut all = [0; 256];
                for (i, one) in all.iter_mut().enumerate() {
                    let bytes = crate::bytes::get(bytes, 8 * i)?;
                    *one = u64::from_ne_bytes(bytes);
                }
                all
            },
            others: {
                let mut all = [0; 256];
                for (i, one) in all.iter_mut().enumerate() {
                    let bytes = crate::bytes::get(bytes, 2048 + 8 * i)?;
                    *one = u64::from_ne_bytes(bytes);
                }
                all
            },
            dropped: {
                let mut all = [0; 256];
                for (i, one) in all.iter_mut().enumerate() {
                    let bytes = crate::bytes::get(bytes, 4096 + 8 * i)?;
                    *one = u64::from_ne_bytes(bytes);
                }
                all
            },
            unparsed: u64::from_ne_bytes(crate::bytes::get(bytes, 6144)?),
            parts: u64::from_ne_bytes(crate::bytes::get(bytes, 6152)?),
            delegated: {
                let mut all = [0; 2];
                for (i, one) in all.iter_mut().enumerate() {
                    let bytes = crate::bytes::get(bytes, 6160 + 8 * i)?;
                    *one = u64::from_ne_bytes(bytes);
                }
                all
            },
            hot_keys: {
                let mut all = [0; 2];
                for (i, one) in all.iter_mut().enumerate() {
                    let bytes = crate::bytes::get(bytes, 6176 + 8 * i)?;
                    *one = u64::from_ne_bytes(bytes);
                }
                all
            },
            doubted: u64::from_ne_bytes(crate::bytes::get(bytes, 6192)?),
            crowded: u64::from_ne_bytes(crate::bytes::get(bytes, 6200)?),
            cached: u64::from_ne_bytes(crate::bytes::get(bytes, 6208)?),
        })
    }
}

/// The service address, fixed when the program is loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Service {
    /// 16 times 1 bytes, as the machine has it.
    pub addr: [u8; 16],
    /// 2 bytes, big-endian in the map.
    pub port: u16,
}

impl Service {
    /// Bytes in the map.
    pub const LEN: usize = 24;

    /// The bytes of the map's value.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 24] {
        let mut out = [0; 24];
        let mut at = 0;
        crate::bytes::put(&mut out, at, &self.addr);
        at += 16;
        crate::bytes::put(&mut out, at, &self.port.to_be_bytes());
        at += 2;
        at += 6;
        debug_assert_eq!(at, Self::LEN);
        out
    }

    /// What the bytes of the map's value say; `None` if they are too few.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Some(Self {
            addr: crate::bytes::get(bytes, 0)?,
            port: u16::from_be_bytes(crate::bytes::get(bytes, 16)?),
        })
    }
}

/// What holds for all packets: the end of the lease in nanoseconds since the kernel was booted
/// (CLOCK_BOOTTIME), the switch's directory clock and that at the beginning of its directory, a
/// number that changes before and after the rows and delegations of hot keys do (odd: they are
/// changing), how often silent clients have been looked for (a second or more apart, from 1), how
/// many nodes are in the node table, how many nanoseconds a tick of the kernel has, whether there
/// are tables, whether this switch is the active one, how readers of hot keys are chosen (0: no key
/// is hot, 1: at random, 2: by reported load, 3: by predicted load), and whether any key is
/// delegated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// 8 bytes, as the machine has it.
    pub leased_until: u64,
    /// 8 bytes, as the machine has it.
    pub directory_clock: DirectoryClock,
    /// 8 bytes, as the machine has it.
    pub beginning: DirectoryClock,
    /// 8 bytes, as the machine has it.
    pub order: u64,
    /// 8 bytes, as the machine has it.
    pub pass: u64,
    /// 4 bytes, as the machine has it.
    pub nodes: u32,
    /// 4 bytes, as the machine has it.
    pub tick: u32,
    /// 1 bytes, as the machine has it.
    pub installed: u8,
    /// 1 bytes, as the machine has it.
    pub active: u8,
    /// 1 bytes, as the machine has it.
    pub hot: u8,
    /// 1 bytes, as the machine has it.
    pub delegates: u8,
}

impl Rule {
    /// Bytes in the map.
    pub const LEN: usize = 56;

    /// The bytes of the map's value.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 56] {
        let mut out = [0; 56];
        let mut at = 0;
        crate::bytes::put(&mut out, at, &self.leased_until.to_ne_bytes());
        at += 8;
        crate::bytes::put(&mut out, at, &self.directory_clock.get().to_ne_bytes());
        at += 8;
        crate::bytes::put(&mut out, at, &self.beginning.get().to_ne_bytes());
        at += 8;
        crate::bytes::put(&mut out, at, &self.order.to_ne_bytes());
        at += 8;
        crate::bytes::put(&mut out, at, &self.pass.to_ne_bytes());
        at += 8;
        crate::bytes::put(&mut out, at, &self.nodes.to_ne_bytes());
        at += 4;
        crate::bytes::put(&mut out, at, &self.tick.to_ne_bytes());
        at += 4;
        crate::bytes::put(&mut out, at, &self.installed.to_ne_bytes());
        at += 1;
        crate::bytes::put(&mut out, at, &self.active.to_ne_bytes());
        at += 1;
        crate::bytes::put(&mut out, at, &self.hot.to_ne_bytes());
        at += 1;
        crate::bytes::put(&mut out, at, &self.delegates.to_ne_bytes());
        at += 1;
        at += 4;
        debug_assert_eq!(at, Self::LEN);
        out
    }

    /// What the bytes of the map's value say; `None` if they are too few.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Some(Self {
            leased_until: u64::from_ne_bytes(crate::bytes::get(bytes, 0)?),
            directory_clock: DirectoryClock::new(u64::from_ne_bytes(crate::bytes::get(bytes, 8)?)),
            beginning: DirectoryClock::new(u64::from_ne_bytes(crate::bytes::get(bytes, 16)?)),
            order: u64::from_ne_bytes(crate::bytes::get(bytes, 24)?),
            pass: u64::from_ne_bytes(crate::bytes::get(bytes, 32)?),
            nodes: u32::from_ne_bytes(crate::bytes::get(bytes, 40)?),
            tick: u32::from_ne_bytes(crate::bytes::get(bytes, 44)?),
            installed: u8::from_ne_bytes(crate::bytes::get(bytes, 48)?),
            active: u8::from_ne_bytes(crate::bytes::get(bytes, 49)?),
            hot: u8::from_ne_bytes(crate::bytes::get(bytes, 50)?),
            delegates: u8::from_ne_bytes(crate::bytes::get(bytes, 51)?),
        })
    }
}

/// A cache that was heard, and for how many ticks its rules count from now on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Heard {
    /// 4 bytes, as the machine has it.
    pub cache: u32,
    /// 4 bytes, as the machine has it.
    pub ticks: u32,
}

impl Heard {
    /// Bytes in the map.
    pub const LEN: usize = 8;

    /// The bytes of the map's value.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 8] {
        let mut out = [0; 8];
        let mut at = 0;
        crate::bytes::put(&mut out, at, &self.cache.to_ne_bytes());
        at += 4;
        crate::bytes::put(&mut out, at, &self.ticks.to_ne_bytes());
        at += 4;
        debug_assert_eq!(at, Self::LEN);
        out
    }

    /// What the bytes of the map's value say; `None` if they are too few.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Some(Self {
            cache: u32::from_ne_bytes(crate::bytes::get(bytes, 0)?),
            ticks: u32::from_ne_bytes(crate::bytes::get(bytes, 4)?),
        })
    }
}

/// What a hot key is known by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HotKey {
    /// 8 bytes, big-endian in the map.
    pub keyhash: u64,
    /// 2 bytes, big-endian in the map.
    pub keyspace: u16,
}

impl HotKey {
    /// Bytes in the map.
    pub const LEN: usize = 16;

    /// The bytes of the map's value.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 16] {
        let mut out = [0; 16];
        let mut at = 0;
        crate::bytes::put(&mut out, at, &self.keyhash.to_be_bytes());
        at += 8;
        crate::bytes::put(&mut out, at, &self.keyspace.to_be_bytes());
        at += 2;
        at += 6;
        debug_assert_eq!(at, Self::LEN);
        out
    }

    /// What the bytes of the map's value say; `None` if they are too few.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Some(Self {
            keyhash: u64::from_be_bytes(crate::bytes::get(bytes, 0)?),
            keyspace: u16::from_be_bytes(crate::bytes::get(bytes, 8)?),
        })
    }
}

/// What is known of a hot key in its present generation: the lower half of its match value; the
/// floor and whether it is proven; the index of its `hot_load`; the place of the first reader, how
/// many there are, how many nodes are in the chain of each write of its delegation (0: it is on
/// none), how many are chosen for it with the readers that it is copied to, and what version each
/// reader holds (0: none).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hot {
    /// 8 bytes, big-endian in the map.
    pub generation: Generation,
    /// 8 bytes, big-endian in the map.
    pub match_low: u64,
    /// 8 bytes, as the machine has it.
    pub floor: Version,
    /// 4 bytes, as the machine has it.
    pub proven: u32,
    /// 4 bytes, as the machine has it.
    pub counter: u32,
    /// 2 bytes, as the machine has it.
    pub first: u16,
    /// 2 bytes, as the machine has it.
    pub readers: u16,
    /// 1 bytes, as the machine has it.
    pub replicas: u8,
    /// 1 bytes, as the machine has it.
    pub chosen: u8,
    /// 64 times 1 bytes, as the machine has it.
    pub holders: [u8; 64],
}

impl Hot {
    /// Bytes in the map.
    pub const LEN: usize = 104;

    /// The bytes of the map's value.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 104] {
        let mut out = [0; 104];
        let mut at = 0;
        crate::bytes::put(&mut out, at, &self.generation.get().to_be_bytes());
        at += 8;
        crate::bytes::put(&mut out, at, &self.match_low.to_be_bytes());
        at += 8;
        crate::bytes::put(&mut out, at, &self.floor.get().to_ne_bytes());
        at += 8;
        crate::bytes::put(&mut out, at, &self.proven.to_ne_bytes());
        at += 4;
        crate::bytes::put(&mut out, at, &self.counter.to_ne_bytes());
        at += 4;
        crate::bytes::put(&mut out, at, &self.first.to_ne_bytes());
        at += 2;
        crate::bytes::put(&mut out, at, &self.readers.to_ne_bytes());
        at += 2;
        crate::bytes::put(&mut out, at, &self.replicas.to_ne_bytes());
        at += 1;
        crate::bytes::put(&mut out, at, &self.chosen.to_ne_bytes());
        at += 1;
        at += 2;
        crate::bytes::put(&mut out, at, &self.holders);
        at += 64;
        debug_assert_eq!(at, Self::LEN);
        out
    }

    /// What the bytes of the map's value say; `None` if they are too few.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Some(Self {
            generation: Generation::new(u64::from_be_bytes(crate::bytes::get(bytes, 0)?)),
            match_low: u64::from_be_bytes(crate::bytes::get(bytes, 8)?),
            floor: Version::new(u64::from_ne_bytes(crate::bytes::get(bytes, 16)?)),
            proven: u32::from_ne_bytes(crate::bytes::get(bytes, 24)?),
            counter: u32::from_ne_bytes(crate::bytes::get(bytes, 28)?),
            first: u16::from_ne_bytes(crate::bytes::get(bytes, 32)?),
            readers: u16::from_ne_bytes(crate::bytes::get(bytes, 34)?),
            replicas: u8::from_ne_bytes(crate::bytes::get(bytes, 36)?),
            chosen: u8::from_ne_bytes(crate::bytes::get(bytes, 37)?),
            holders: crate::bytes::get(bytes, 40)?,
        })
    }
}

/// The delegation of a hot key: its number, the directory clock of its beginning (0: it has not
/// begun here), the version that is given next, and the last that may be given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delegation {
    /// 8 bytes, big-endian in the map.
    pub number: DelegationId,
    /// 8 bytes, as the machine has it.
    pub begun: DirectoryClock,
    /// 8 bytes, as the machine has it.
    pub next: Version,
    /// 8 bytes, as the machine has it.
    pub last: Version,
}

impl Delegation {
    /// Bytes in the map.
    pub const LEN: usize = 32;

    /// The bytes of the map's value.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 32] {
        let mut out = [0; 32];
        let mut at = 0;
        crate::bytes::put(&mut out, at, &self.number.get().to_be_bytes());
        at += 8;
        crate::bytes::put(&mut out, at, &self.begun.get().to_ne_bytes());
        at += 8;
        crate::bytes::put(&mut out, at, &self.next.get().to_ne_bytes());
        at += 8;
        crate::bytes::put(&mut out, at, &self.last.get().to_ne_bytes());
        at += 8;
        debug_assert_eq!(at, Self::LEN);
        out
    }

    /// What the bytes of the map's value say; `None` if they are too few.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Some(Self {
            number: DelegationId::new(u64::from_be_bytes(crate::bytes::get(bytes, 0)?)),
            begun: DirectoryClock::new(u64::from_ne_bytes(crate::bytes::get(bytes, 8)?)),
            next: Version::new(u64::from_ne_bytes(crate::bytes::get(bytes, 16)?)),
            last: Version::new(u64::from_ne_bytes(crate::bytes::get(bytes, 24)?)),
        })
    }
}

/// What a request is known by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// 8 bytes, big-endian in the map.
    pub client: u64,
    /// 8 bytes, big-endian in the map.
    pub seq: u64,
}

impl Request {
    /// Bytes in the map.
    pub const LEN: usize = 16;

    /// The bytes of the map's value.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 16] {
        let mut out = [0; 16];
        let mut at = 0;
        crate::bytes::put(&mut out, at, &self.client.to_be_bytes());
        at += 8;
        crate::bytes::put(&mut out, at, &self.seq.to_be_bytes());
        at += 8;
        debug_assert_eq!(at, Self::LEN);
        out
    }

    /// What the bytes of the map's value say; `None` if they are too few.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Some(Self {
            client: u64::from_be_bytes(crate::bytes::get(bytes, 0)?),
            seq: u64::from_be_bytes(crate::bytes::get(bytes, 8)?),
        })
    }
}

/// What a request was given under a delegation: the delegation's number, its version and its chain
/// as in the header. The guard is a sum over all of it and the request, by which half a grant is
/// known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Grant {
    /// 8 bytes, big-endian in the map.
    pub delegation: DelegationId,
    /// 8 bytes, big-endian in the map.
    pub version: Version,
    /// 16 times 1 bytes, as the machine has it.
    pub chain: [u8; 16],
    /// 4 bytes, as the machine has it.
    pub guard: u32,
    /// 1 bytes, as the machine has it.
    pub chain_len: u8,
}

impl Grant {
    /// Bytes in the map.
    pub const LEN: usize = 40;

    /// The bytes of the map's value.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 40] {
        let mut out = [0; 40];
        let mut at = 0;
        crate::bytes::put(&mut out, at, &self.delegation.get().to_be_bytes());
        at += 8;
        crate::bytes::put(&mut out, at, &self.version.get().to_be_bytes());
        at += 8;
        crate::bytes::put(&mut out, at, &self.chain);
        at += 16;
        crate::bytes::put(&mut out, at, &self.guard.to_ne_bytes());
        at += 4;
        crate::bytes::put(&mut out, at, &self.chain_len.to_ne_bytes());
        at += 1;
        at += 3;
        debug_assert_eq!(at, Self::LEN);
        out
    }

    /// What the bytes of the map's value say; `None` if they are too few.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Some(Self {
            delegation: DelegationId::new(u64::from_be_bytes(crate::bytes::get(bytes, 0)?)),
            version: Version::new(u64::from_be_bytes(crate::bytes::get(bytes, 8)?)),
            chain: crate::bytes::get(bytes, 16)?,
            guard: u32::from_ne_bytes(crate::bytes::get(bytes, 32)?),
            chain_len: u8::from_ne_bytes(crate::bytes::get(bytes, 36)?),
        })
    }
}

/// A client that has grants: its id once more, its low-water mark, below which number its grants
/// were let go, in which pass it was heard last (0: it is not there yet, or is being forgotten),
/// and whether one of its grants is being made anew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Grantee {
    /// 8 bytes, big-endian in the map.
    pub client: u64,
    /// 8 bytes, as the machine has it.
    pub low: u64,
    /// 8 bytes, as the machine has it.
    pub gone: u64,
    /// 8 bytes, as the machine has it.
    pub heard: u64,
    /// 4 bytes, as the machine has it.
    pub busy: u32,
}

impl Grantee {
    /// Bytes in the map.
    pub const LEN: usize = 40;

    /// The bytes of the map's value.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 40] {
        let mut out = [0; 40];
        let mut at = 0;
        crate::bytes::put(&mut out, at, &self.client.to_be_bytes());
        at += 8;
        crate::bytes::put(&mut out, at, &self.low.to_ne_bytes());
        at += 8;
        crate::bytes::put(&mut out, at, &self.gone.to_ne_bytes());
        at += 8;
        crate::bytes::put(&mut out, at, &self.heard.to_ne_bytes());
        at += 8;
        crate::bytes::put(&mut out, at, &self.busy.to_ne_bytes());
        at += 4;
        at += 4;
        debug_assert_eq!(at, Self::LEN);
        out
    }

    /// What the bytes of the map's value say; `None` if they are too few.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Some(Self {
            client: u64::from_be_bytes(crate::bytes::get(bytes, 0)?),
            low: u64::from_ne_bytes(crate::bytes::get(bytes, 8)?),
            gone: u64::from_ne_bytes(crate::bytes::get(bytes, 16)?),
            heard: u64::from_ne_bytes(crate::bytes::get(bytes, 24)?),
            busy: u32::from_ne_bytes(crate::bytes::get(bytes, 32)?),
        })
    }
}

/// A client that is to be forgotten, and in which pass it was heard last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Silent {
    /// 8 bytes, big-endian in the map.
    pub client: u64,
    /// 8 bytes, as the machine has it.
    pub heard: u64,
}

impl Silent {
    /// Bytes in the map.
    pub const LEN: usize = 16;

    /// The bytes of the map's value.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 16] {
        let mut out = [0; 16];
        let mut at = 0;
        crate::bytes::put(&mut out, at, &self.client.to_be_bytes());
        at += 8;
        crate::bytes::put(&mut out, at, &self.heard.to_ne_bytes());
        at += 8;
        debug_assert_eq!(at, Self::LEN);
        out
    }

    /// What the bytes of the map's value say; `None` if they are too few.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Some(Self {
            client: u64::from_be_bytes(crate::bytes::get(bytes, 0)?),
            heard: u64::from_ne_bytes(crate::bytes::get(bytes, 8)?),
        })
    }
}

/// Other readers for a hot key that stays, which reader each of them was before (255: none), how
/// many nodes are in the chain of each write of its delegation (0: it is on none), and how many are
/// chosen for it with the readers that it is copied to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HotChange {
    /// 8 bytes, big-endian in the map.
    pub keyhash: u64,
    /// 2 bytes, big-endian in the map.
    pub keyspace: u16,
    /// 2 bytes, as the machine has it.
    pub first: u16,
    /// 2 bytes, as the machine has it.
    pub readers: u16,
    /// 1 bytes, as the machine has it.
    pub replicas: u8,
    /// 1 bytes, as the machine has it.
    pub chosen: u8,
    /// 64 times 1 bytes, as the machine has it.
    pub from: [u8; 64],
}

impl HotChange {
    /// Bytes in the map.
    pub const LEN: usize = 80;

    /// The bytes of the map's value.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 80] {
        let mut out = [0; 80];
        let mut at = 0;
        crate::bytes::put(&mut out, at, &self.keyhash.to_be_bytes());
        at += 8;
        crate::bytes::put(&mut out, at, &self.keyspace.to_be_bytes());
        at += 2;
        crate::bytes::put(&mut out, at, &self.first.to_ne_bytes());
        at += 2;
        crate::bytes::put(&mut out, at, &self.readers.to_ne_bytes());
        at += 2;
        crate::bytes::put(&mut out, at, &self.replicas.to_ne_bytes());
        at += 1;
        crate::bytes::put(&mut out, at, &self.chosen.to_ne_bytes());
        at += 1;
        crate::bytes::put(&mut out, at, &self.from);
        at += 64;
        debug_assert_eq!(at, Self::LEN);
        out
    }

    /// What the bytes of the map's value say; `None` if they are too few.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Some(Self {
            keyhash: u64::from_be_bytes(crate::bytes::get(bytes, 0)?),
            keyspace: u16::from_be_bytes(crate::bytes::get(bytes, 8)?),
            first: u16::from_ne_bytes(crate::bytes::get(bytes, 10)?),
            readers: u16::from_ne_bytes(crate::bytes::get(bytes, 12)?),
            replicas: u8::from_ne_bytes(crate::bytes::get(bytes, 14)?),
            chosen: u8::from_ne_bytes(crate::bytes::get(bytes, 15)?),
            from: crate::bytes::get(bytes, 16)?,
        })
    }
}

/// Who may hold copies: the node id at each place (65535: nobody), the place of each node id
/// (65535: none), and how many places there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holders {
    /// 1024 times 2 bytes, as the machine has it.
    pub nodes: [u16; 1024],
    /// 1024 times 2 bytes, as the machine has it.
    pub places: [u16; 1024],
    /// 4 bytes, as the machine has it.
    pub count: u32,
}

impl Holders {
    /// Bytes in the map.
    pub const LEN: usize = 4104;

    /// The bytes of the map's value.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 4104] {
        let mut out = [0; 4104];
        let mut at = 0;
        for (i, one) in self.nodes.iter().enumerate() {
            crate::bytes::put(&mut out, at + 2 * i, &one.to_ne_bytes());
        }
        at += 2048;
        for (i, one) in self.places.iter().enumerate() {
            crate::bytes::put(&mut out, at + 2 * i, &one.to_ne_bytes());
        }
        at += 2048;
        crate::bytes::put(&mut out, at, &self.count.to_ne_bytes());
        at += 4;
        at += 4;
        debug_assert_eq!(at, Self::LEN);
        out
    }

    /// What the bytes of the map's value say; `None` if they are too few.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Some(Self {
            nodes: {
                let mut all = [0; 1024];
                for (i, one) in all.iter_mut().enumerate() {
                    let bytes = crate::bytes::get(bytes, 2 * i)?;
                    *one = u16::from_ne_bytes(bytes);
                }
                all
            },
            places: {
                let mut all = [0; 1024];
                for (i, one) in all.iter_mut().enumerate() {
                    let bytes = crate::bytes::get(bytes, 2048 + 2 * i)?;
                    *one = u16::from_ne_bytes(bytes);
                }
                all
            },
            count: u32::from_ne_bytes(crate::bytes::get(bytes, 4096)?),
        })
    }
}

/// What one processor counted for a hot key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HotLoad {
    /// 8 bytes, as the machine has it.
    pub reads: u64,
    /// 8 bytes, as the machine has it.
    pub spread: u64,
    /// 8 bytes, as the machine has it.
    pub writes: u64,
}

impl HotLoad {
    /// Bytes in the map.
    pub const LEN: usize = 24;

    /// The bytes of the map's value.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 24] {
        let mut out = [0; 24];
        let mut at = 0;
        crate::bytes::put(&mut out, at, &self.reads.to_ne_bytes());
        at += 8;
        crate::bytes::put(&mut out, at, &self.spread.to_ne_bytes());
        at += 8;
        crate::bytes::put(&mut out, at, &self.writes.to_ne_bytes());
        at += 8;
        debug_assert_eq!(at, Self::LEN);
        out
    }

    /// What the bytes of the map's value say; `None` if they are too few.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Some(Self {
            reads: u64::from_ne_bytes(crate::bytes::get(bytes, 0)?),
            spread: u64::from_ne_bytes(crate::bytes::get(bytes, 8)?),
            writes: u64::from_ne_bytes(crate::bytes::get(bytes, 16)?),
        })
    }
}

/// What a node last said of itself: how many requests it serves in a second (0: it does not say),
/// and its load, plus one (0: none).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// 4 bytes, as the machine has it.
    pub rate: u32,
    /// 4 bytes, as the machine has it.
    pub load: u32,
}

impl Report {
    /// Bytes in the map.
    pub const LEN: usize = 8;

    /// The bytes of the map's value.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 8] {
        let mut out = [0; 8];
        let mut at = 0;
        crate::bytes::put(&mut out, at, &self.rate.to_ne_bytes());
        at += 4;
        crate::bytes::put(&mut out, at, &self.load.to_ne_bytes());
        at += 4;
        debug_assert_eq!(at, Self::LEN);
        out
    }

    /// What the bytes of the map's value say; `None` if they are too few.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Some(Self {
            rate: u32::from_ne_bytes(crate::bytes::get(bytes, 0)?),
            load: u32::from_ne_bytes(crate::bytes::get(bytes, 4)?),
        })
    }
}

/// The edge keys of a period: a number that no other keys of this program have (0: there are none
/// here), the key that those of clients follow from, that of the members, that of cookies, the
/// state of a hash under the key of the members after the first words of their envelopes, which the
/// program sets, and the byte by which envelopes name the period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeriodKeys {
    /// 8 bytes, as the machine has it.
    pub serial: u64,
    /// 16 times 1 bytes, as the machine has it.
    pub clients: [u8; 16],
    /// 16 times 1 bytes, as the machine has it.
    pub members: [u8; 16],
    /// 16 times 1 bytes, as the machine has it.
    pub cookies: [u8; 16],
    /// 4 times 8 bytes, as the machine has it.
    pub begun: [u64; 4],
    /// 1 bytes, as the machine has it.
    pub byte: u8,
}

impl PeriodKeys {
    /// Bytes in the map.
    pub const LEN: usize = 96;

    /// The bytes of the map's value.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 96] {
        let mut out = [0; 96];
        let mut at = 0;
        crate::bytes::put(&mut out, at, &self.serial.to_ne_bytes());
        at += 8;
        crate::bytes::put(&mut out, at, &self.clients);
        at += 16;
        crate::bytes::put(&mut out, at, &self.members);
        at += 16;
        crate::bytes::put(&mut out, at, &self.cookies);
        at += 16;
        for (i, one) in self.begun.iter().enumerate() {
            crate::bytes::put(&mut out, at + 8 * i, &one.to_ne_bytes());
        }
        at += 32;
        crate::bytes::put(&mut out, at, &self.byte.to_ne_bytes());
        at += 1;
        at += 7;
        debug_assert_eq!(at, Self::LEN);
        out
    }

    /// What the bytes of the map's value say; `None` if they are too few.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Some(Self {
            serial: u64::from_ne_bytes(crate::bytes::get(bytes, 0)?),
            clients: crate::bytes::get(bytes, 8)?,
            members: crate::bytes::get(bytes, 24)?,
            cookies: crate::bytes::get(bytes, 40)?,
            begun: {
                let mut all = [0; 4];
                for (i, one) in all.iter_mut().enumerate() {
                    let bytes = crate::bytes::get(bytes, 56 + 8 * i)?;
                    *one = u64::from_ne_bytes(bytes);
                }
                all
            },
            byte: u8::from_ne_bytes(crate::bytes::get(bytes, 88)?),
        })
    }
}

/// A class of clients that has rights of its own in a keyspace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassKeyspace {
    /// 2 bytes, as the machine has it.
    pub class: u16,
    /// 2 bytes, as the machine has it.
    pub keyspace: u16,
}

impl ClassKeyspace {
    /// Bytes in the map.
    pub const LEN: usize = 4;

    /// The bytes of the map's value.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 4] {
        let mut out = [0; 4];
        let mut at = 0;
        crate::bytes::put(&mut out, at, &self.class.to_ne_bytes());
        at += 2;
        crate::bytes::put(&mut out, at, &self.keyspace.to_ne_bytes());
        at += 2;
        debug_assert_eq!(at, Self::LEN);
        out
    }

    /// What the bytes of the map's value say; `None` if they are too few.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Some(Self {
            class: u16::from_ne_bytes(crate::bytes::get(bytes, 0)?),
            keyspace: u16::from_ne_bytes(crate::bytes::get(bytes, 2)?),
        })
    }
}

/// What one processor refused of what came in envelopes, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refusals {
    /// 9 times 8 bytes, as the machine has it.
    pub of: [u64; 9],
}

impl Refusals {
    /// Bytes in the map.
    pub const LEN: usize = 72;

    /// The bytes of the map's value.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 72] {
        let mut out = [0; 72];
        let mut at = 0;
        for (i, one) in self.of.iter().enumerate() {
            crate::bytes::put(&mut out, at + 8 * i, &one.to_ne_bytes());
        }
        at += 72;
        debug_assert_eq!(at, Self::LEN);
        out
    }

    /// What the bytes of the map's value say; `None` if they are too few.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Some(Self {
            of: {
                let mut all = [0; 9];
                for (i, one) in all.iter_mut().enumerate() {
                    let bytes = crate::bytes::get(bytes, 8 * i)?;
                    *one = u64::from_ne_bytes(bytes);
                }
                all
            },
        })
    }
}

/// How bad a link is. What happens to the n-th datagram is a function of the seed and n. Of a
/// million datagrams so many are dropped, delivered twice, and kept back until 1 to 16 others have
/// passed, for as long as none come. Only one is kept at a time: what should be meanwhile is
/// delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// 8 bytes, as the machine has it.
    pub seed: u64,
    /// 4 bytes, as the machine has it.
    pub lost_ppm: u32,
    /// 4 bytes, as the machine has it.
    pub doubled_ppm: u32,
    /// 4 bytes, as the machine has it.
    pub overtaken_ppm: u32,
}

impl Faults {
    /// Bytes in the map.
    pub const LEN: usize = 24;

    /// The bytes of the map's value.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 24] {
        let mut out = [0; 24];
        let mut at = 0;
        crate::bytes::put(&mut out, at, &self.seed.to_ne_bytes());
        at += 8;
        crate::bytes::put(&mut out, at, &self.lost_ppm.to_ne_bytes());
        at += 4;
        crate::bytes::put(&mut out, at, &self.doubled_ppm.to_ne_bytes());
        at += 4;
        crate::bytes::put(&mut out, at, &self.overtaken_ppm.to_ne_bytes());
        at += 4;
        at += 4;
        debug_assert_eq!(at, Self::LEN);
        out
    }

    /// What the bytes of the map's value say; `None` if they are too few.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Some(Self {
            seed: u64::from_ne_bytes(crate::bytes::get(bytes, 0)?),
            lost_ppm: u32::from_ne_bytes(crate::bytes::get(bytes, 8)?),
            doubled_ppm: u32::from_ne_bytes(crate::bytes::get(bytes, 12)?),
            overtaken_ppm: u32::from_ne_bytes(crate::bytes::get(bytes, 16)?),
        })
    }
}

/// What a link has done to datagrams: all that came in, those dropped, delivered twice, and kept
/// back until others had passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultCounts {
    /// 8 bytes, as the machine has it.
    pub came: u64,
    /// 8 bytes, as the machine has it.
    pub lost: u64,
    /// 8 bytes, as the machine has it.
    pub doubled: u64,
    /// 8 bytes, as the machine has it.
    pub overtaken: u64,
}

impl FaultCounts {
    /// Bytes in the map.
    pub const LEN: usize = 32;

    /// The bytes of the map's value.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 32] {
        let mut out = [0; 32];
        let mut at = 0;
        crate::bytes::put(&mut out, at, &self.came.to_ne_bytes());
        at += 8;
        crate::bytes::put(&mut out, at, &self.lost.to_ne_bytes());
        at += 8;
        crate::bytes::put(&mut out, at, &self.doubled.to_ne_bytes());
        at += 8;
        crate::bytes::put(&mut out, at, &self.overtaken.to_ne_bytes());
        at += 8;
        debug_assert_eq!(at, Self::LEN);
        out
    }

    /// What the bytes of the map's value say; `None` if they are too few.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Some(Self {
            came: u64::from_ne_bytes(crate::bytes::get(bytes, 0)?),
            lost: u64::from_ne_bytes(crate::bytes::get(bytes, 8)?),
            doubled: u64::from_ne_bytes(crate::bytes::get(bytes, 16)?),
            overtaken: u64::from_ne_bytes(crate::bytes::get(bytes, 24)?),
        })
    }
}
