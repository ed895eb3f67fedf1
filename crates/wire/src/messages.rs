//! What each message says in its header, beside what is always there. Generated from `spec/layout.toml` by `cargo xtask codegen`; do not edit.

use crate::layout::{Fields, HEADER_LEN, Header, Said, hop_flag};
use crate::number::{DelegationId, DirectoryClock, Generation, Version};

/// GET of a hot key, as the switch stamps it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HotGet {
    /// No answer may be of a lower version; 2^64-1: only the tail may answer.
    pub floor: Version,
    /// Generation of the directory's entry, to which the answer proves something.
    pub generation: Generation,
}

impl HotGet {
    /// What a packet says.
    #[inline]
    #[must_use]
    pub fn read(header: &[u8; HEADER_LEN]) -> Self {
        Self { floor: header.object_version(), generation: header.generation() }
    }

    /// Writes it into a packet.
    #[inline]
    pub fn write(self, header: &mut [u8; HEADER_LEN]) {
        header.set_hop_flags(header.hop_flags() | hop_flag::HOT);
        header.set_object_version(self.floor);
        header.set_generation(self.generation);
    }

    /// What a header says.
    #[inline]
    #[must_use]
    pub fn of(header: &Header) -> Self {
        Self {
            floor: header.object_version,
            generation: {
                let mut bytes = [0; 8];
                crate::bytes::put::<0, 8, 8>(
                    &mut bytes,
                    crate::bytes::get::<8, 8, 16>(&header.chain),
                );
                Generation::new(u64::from_be_bytes(bytes))
            },
        }
    }

    /// Puts it into a header.
    #[inline]
    pub fn put(self, header: &mut Header) {
        header.hop_flags |= hop_flag::HOT;
        header.object_version = self.floor;
        let bytes = self.generation.get().to_be_bytes();
        crate::bytes::put::<8, 8, 16>(&mut header.chain, crate::bytes::get::<0, 8, 8>(&bytes));
    }
}

/// GET reply to a GET with HOT, and HOT_PUBLISH, which says to the switch what such a reply would.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HotAnswer {
    /// Version of what is shown.
    pub version: Version,
    /// Generation that the GET named.
    pub generation: Generation,
}

impl HotAnswer {
    /// What a packet says.
    #[inline]
    #[must_use]
    pub fn read(header: &[u8; HEADER_LEN]) -> Self {
        Self { version: header.object_version(), generation: header.generation() }
    }

    /// Writes it into a packet.
    #[inline]
    pub fn write(self, header: &mut [u8; HEADER_LEN]) {
        header.set_object_version(self.version);
        header.set_generation(self.generation);
    }

    /// What a header says.
    #[inline]
    #[must_use]
    pub fn of(header: &Header) -> Self {
        Self {
            version: header.object_version,
            generation: {
                let mut bytes = [0; 8];
                crate::bytes::put::<0, 8, 8>(
                    &mut bytes,
                    crate::bytes::get::<8, 8, 16>(&header.chain),
                );
                Generation::new(u64::from_be_bytes(bytes))
            },
        }
    }

    /// Puts it into a header.
    #[inline]
    pub fn put(self, header: &mut Header) {
        header.object_version = self.version;
        let bytes = self.generation.get().to_be_bytes();
        crate::bytes::put::<8, 8, 16>(&mut header.chain, crate::bytes::get::<0, 8, 8>(&bytes));
    }
}

/// PUT that goes by its grant, from the switch down the grant's chain, and DELEGATION_WRITE.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GrantedPut {
    /// Version of the grant.
    pub version: Version,
    /// Number of the delegation of the grant.
    pub delegation: DelegationId,
}

impl GrantedPut {
    /// What a packet says.
    #[inline]
    #[must_use]
    pub fn read(header: &[u8; HEADER_LEN]) -> Self {
        Self { version: header.object_version(), delegation: header.delegation() }
    }

    /// Writes it into a packet.
    #[inline]
    pub fn write(self, header: &mut [u8; HEADER_LEN]) {
        header.set_hop_flags(header.hop_flags() | hop_flag::GRANTED);
        header.set_object_version(self.version);
        header.set_delegation(self.delegation);
    }

    /// What a header says.
    #[inline]
    #[must_use]
    pub fn of(header: &Header) -> Self {
        Self {
            version: header.object_version,
            delegation: {
                let mut bytes = [0; 8];
                crate::bytes::put::<0, 4, 8>(&mut bytes, header.bitmap.to_be_bytes());
                crate::bytes::put::<4, 2, 8>(&mut bytes, header.node.to_be_bytes());
                crate::bytes::put::<6, 2, 8>(&mut bytes, header.load.to_be_bytes());
                DelegationId::new(u64::from_be_bytes(bytes))
            },
        }
    }

    /// Puts it into a header.
    #[inline]
    pub fn put(self, header: &mut Header) {
        header.hop_flags |= hop_flag::GRANTED;
        header.object_version = self.version;
        let bytes = self.delegation.get().to_be_bytes();
        header.bitmap = u32::from_be_bytes(crate::bytes::get::<0, 4, 8>(&bytes));
        header.node = u16::from_be_bytes(crate::bytes::get::<4, 2, 8>(&bytes));
        header.load = u16::from_be_bytes(crate::bytes::get::<6, 2, 8>(&bytes));
    }
}

/// Write that the switch sends to the head of its partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HomeWrite {
    /// Version of the grant that the request has, or 0.
    pub granted: Version,
    /// The switch's directory clock when the request passed.
    pub clock: DirectoryClock,
}

impl HomeWrite {
    /// What a packet says.
    #[inline]
    #[must_use]
    pub fn read(header: &[u8; HEADER_LEN]) -> Self {
        Self { granted: header.object_version(), clock: header.directory_clock() }
    }

    /// Writes it into a packet.
    #[inline]
    pub fn write(self, header: &mut [u8; HEADER_LEN]) {
        header.set_object_version(self.granted);
        header.set_directory_clock(self.clock);
    }

    /// What a header says.
    #[inline]
    #[must_use]
    pub fn of(header: &Header) -> Self {
        Self {
            granted: header.object_version,
            clock: {
                let mut bytes = [0; 8];
                crate::bytes::put::<0, 4, 8>(&mut bytes, header.bitmap.to_be_bytes());
                crate::bytes::put::<4, 2, 8>(&mut bytes, header.node.to_be_bytes());
                crate::bytes::put::<6, 2, 8>(&mut bytes, header.load.to_be_bytes());
                DirectoryClock::new(u64::from_be_bytes(bytes))
            },
        }
    }

    /// Puts it into a header.
    #[inline]
    pub fn put(self, header: &mut Header) {
        header.object_version = self.granted;
        let bytes = self.clock.get().to_be_bytes();
        header.bitmap = u32::from_be_bytes(crate::bytes::get::<0, 4, 8>(&bytes));
        header.node = u16::from_be_bytes(crate::bytes::get::<4, 2, 8>(&bytes));
        header.load = u16::from_be_bytes(crate::bytes::get::<6, 2, 8>(&bytes));
    }
}

/// Write, from a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientWrite {
    /// The highest directory clock of all replies when the client first sent the request.
    pub first_sent: DirectoryClock,
}

impl ClientWrite {
    /// What a packet says.
    #[inline]
    #[must_use]
    pub fn read(header: &[u8; HEADER_LEN]) -> Self {
        Self { first_sent: header.directory_clock() }
    }

    /// Writes it into a packet.
    #[inline]
    pub fn write(self, header: &mut [u8; HEADER_LEN]) {
        header.set_directory_clock(self.first_sent);
    }

    /// What a header says.
    #[inline]
    #[must_use]
    pub fn of(header: &Header) -> Self {
        Self {
            first_sent: {
                let mut bytes = [0; 8];
                crate::bytes::put::<0, 4, 8>(&mut bytes, header.bitmap.to_be_bytes());
                crate::bytes::put::<4, 2, 8>(&mut bytes, header.node.to_be_bytes());
                crate::bytes::put::<6, 2, 8>(&mut bytes, header.load.to_be_bytes());
                DirectoryClock::new(u64::from_be_bytes(bytes))
            },
        }
    }

    /// Puts it into a header.
    #[inline]
    pub fn put(self, header: &mut Header) {
        let bytes = self.first_sent.get().to_be_bytes();
        header.bitmap = u32::from_be_bytes(crate::bytes::get::<0, 4, 8>(&bytes));
        header.node = u16::from_be_bytes(crate::bytes::get::<4, 2, 8>(&bytes));
        header.load = u16::from_be_bytes(crate::bytes::get::<6, 2, 8>(&bytes));
    }
}

/// Reply to a write with the code DELEGATED, from the head.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DelegatedReply {
    /// Version of the DELEGATE, or 0.
    pub delegated_at: Version,
    /// Number of the delegation that the key is under, or 0: the switch is to rely on none.
    pub delegation: DelegationId,
}

impl DelegatedReply {
    /// What a packet says.
    #[inline]
    #[must_use]
    pub fn read(header: &[u8; HEADER_LEN]) -> Self {
        Self { delegated_at: header.object_version(), delegation: header.reply_delegation() }
    }

    /// Writes it into a packet.
    #[inline]
    pub fn write(self, header: &mut [u8; HEADER_LEN]) {
        header.set_object_version(self.delegated_at);
        header.set_reply_delegation(self.delegation);
    }

    /// What a header says.
    #[inline]
    #[must_use]
    pub fn of(header: &Header) -> Self {
        Self {
            delegated_at: header.object_version,
            delegation: {
                let mut bytes = [0; 8];
                crate::bytes::put::<0, 8, 8>(
                    &mut bytes,
                    crate::bytes::get::<8, 8, 16>(&header.chain),
                );
                DelegationId::new(u64::from_be_bytes(bytes))
            },
        }
    }

    /// Puts it into a header.
    #[inline]
    pub fn put(self, header: &mut Header) {
        header.object_version = self.delegated_at;
        let bytes = self.delegation.get().to_be_bytes();
        crate::bytes::put::<8, 8, 16>(&mut header.chain, crate::bytes::get::<0, 8, 8>(&bytes));
    }
}

/// Reply about one key, but DELEGATED and NO_SESSION.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyReply {
    /// Version of the value that is shown, of the write that was done, or of what was found instead; 0 if there is none.
    pub version: Version,
}

impl KeyReply {
    /// What a packet says.
    #[inline]
    #[must_use]
    pub fn read(header: &[u8; HEADER_LEN]) -> Self {
        Self { version: header.object_version() }
    }

    /// Writes it into a packet.
    #[inline]
    pub fn write(self, header: &mut [u8; HEADER_LEN]) {
        header.set_object_version(self.version);
    }

    /// What a header says.
    #[inline]
    #[must_use]
    pub fn of(header: &Header) -> Self {
        Self { version: header.object_version }
    }

    /// Puts it into a header.
    #[inline]
    pub fn put(self, header: &mut Header) {
        header.object_version = self.version;
    }
}

/// Reply to a write with the code NO_SESSION, from the head.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NoSession {
    /// The version to name.
    pub since: Version,
}

impl NoSession {
    /// What a packet says.
    #[inline]
    #[must_use]
    pub fn read(header: &[u8; HEADER_LEN]) -> Self {
        Self { since: header.object_version() }
    }

    /// Writes it into a packet.
    #[inline]
    pub fn write(self, header: &mut [u8; HEADER_LEN]) {
        header.set_object_version(self.since);
    }

    /// What a header says.
    #[inline]
    #[must_use]
    pub fn of(header: &Header) -> Self {
        Self { since: header.object_version }
    }

    /// Puts it into a header.
    #[inline]
    pub fn put(self, header: &mut Header) {
        header.object_version = self.since;
    }
}

/// Reply, HOT_COPIED and HOT_PUBLISH, from a node to the switch. They have no chain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeReply {
    /// Requests that the node can serve in a second at most; 0: not known.
    pub rate: u32,
}

impl NodeReply {
    /// What a packet says.
    #[inline]
    #[must_use]
    pub fn read(header: &[u8; HEADER_LEN]) -> Self {
        Self { rate: header.rate() }
    }

    /// Writes it into a packet.
    #[inline]
    pub fn write(self, header: &mut [u8; HEADER_LEN]) {
        header.set_rate(self.rate);
    }

    /// What a header says.
    #[inline]
    #[must_use]
    pub fn of(header: &Header) -> Self {
        Self {
            rate: {
                let mut bytes = [0; 4];
                crate::bytes::put::<0, 4, 4>(
                    &mut bytes,
                    crate::bytes::get::<0, 4, 16>(&header.chain),
                );
                u32::from_be_bytes(bytes)
            },
        }
    }

    /// Puts it into a header.
    #[inline]
    pub fn put(self, header: &mut Header) {
        let bytes = self.rate.to_be_bytes();
        crate::bytes::put::<0, 4, 16>(&mut header.chain, crate::bytes::get::<0, 4, 4>(&bytes));
    }
}

/// RANGE and its reply: the interval asked for, or covered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RangeInterval {
    /// Its first match value.
    pub first: u128,
    /// Its last match value.
    pub last: u128,
}

impl RangeInterval {
    /// What a packet says.
    #[inline]
    #[must_use]
    pub fn read(header: &[u8; HEADER_LEN]) -> Self {
        Self { first: header.match_value(), last: header.match_end() }
    }

    /// Writes it into a packet.
    #[inline]
    pub fn write(self, header: &mut [u8; HEADER_LEN]) {
        header.set_match_value(self.first);
        header.set_match_end(self.last);
    }

    /// What a header says.
    #[inline]
    #[must_use]
    pub fn of(header: &Header) -> Self {
        Self {
            first: header.match_value,
            last: {
                let mut bytes = [0; 16];
                crate::bytes::put::<0, 8, 16>(&mut bytes, header.keyhash.to_be_bytes());
                crate::bytes::put::<8, 8, 16>(
                    &mut bytes,
                    header.object_version.get().to_be_bytes(),
                );
                u128::from_be_bytes(bytes)
            },
        }
    }

    /// Puts it into a header.
    #[inline]
    pub fn put(self, header: &mut Header) {
        header.match_value = self.first;
        let bytes = self.last.to_be_bytes();
        header.keyhash = u64::from_be_bytes(crate::bytes::get::<0, 8, 16>(&bytes));
        header.object_version =
            Version::new(u64::from_be_bytes(crate::bytes::get::<8, 8, 16>(&bytes)));
    }
}

/// MGET, from the switch to a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HotMget {
    /// Bit i set means that slot i carries the directory's floor in place of the match value.
    pub hot: u32,
}

impl HotMget {
    /// What a packet says.
    #[inline]
    #[must_use]
    pub fn read(header: &[u8; HEADER_LEN]) -> Self {
        Self { hot: header.hot_bitmap() }
    }

    /// Writes it into a packet.
    #[inline]
    pub fn write(self, header: &mut [u8; HEADER_LEN]) {
        header.set_hot_bitmap(self.hot);
    }

    /// What a header says.
    #[inline]
    #[must_use]
    pub fn of(header: &Header) -> Self {
        Self {
            hot: {
                let mut bytes = [0; 4];
                crate::bytes::put::<0, 4, 4>(
                    &mut bytes,
                    crate::bytes::get::<4, 4, 16>(&header.chain),
                );
                u32::from_be_bytes(bytes)
            },
        }
    }

    /// Puts it into a header.
    #[inline]
    pub fn put(self, header: &mut Header) {
        let bytes = self.hot.to_be_bytes();
        crate::bytes::put::<4, 4, 16>(&mut header.chain, crate::bytes::get::<0, 4, 4>(&bytes));
    }
}

/// MGET with GROUPED, from a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupedMget {
    /// Bit i set means that key i is the last of its group.
    pub ends: u32,
    /// Number of the first group that is left, from 0.
    pub group: u8,
    /// For each group a partition whose tail has its keys.
    pub partitions: [u8; 32],
}

impl GroupedMget {
    /// What a packet says.
    #[inline]
    #[must_use]
    pub fn read(header: &[u8; HEADER_LEN]) -> Self {
        Self {
            ends: header.group_ends(),
            group: header.group(),
            partitions: header.group_partitions(),
        }
    }

    /// Writes it into a packet.
    #[inline]
    pub fn write(self, header: &mut [u8; HEADER_LEN]) {
        header.set_group_ends(self.ends);
        header.set_group(self.group);
        header.set_group_partitions(self.partitions);
    }

    /// What a header says.
    #[inline]
    #[must_use]
    pub fn of(header: &Header) -> Self {
        Self {
            ends: {
                let mut bytes = [0; 4];
                crate::bytes::put::<0, 4, 4>(&mut bytes, header.partition.to_be_bytes());
                u32::from_be_bytes(bytes)
            },
            group: {
                let mut bytes = [0; 1];
                crate::bytes::put::<0, 1, 1>(
                    &mut bytes,
                    crate::bytes::get::<0, 1, 4>(&header.epoch.to_be_bytes()),
                );
                u8::from_be_bytes(bytes)
            },
            partitions: {
                let mut bytes = [0; 32];
                crate::bytes::put::<0, 16, 32>(&mut bytes, header.match_value.to_be_bytes());
                crate::bytes::put::<16, 8, 32>(&mut bytes, header.keyhash.to_be_bytes());
                crate::bytes::put::<24, 8, 32>(
                    &mut bytes,
                    header.object_version.get().to_be_bytes(),
                );
                bytes
            },
        }
    }

    /// Puts it into a header.
    #[inline]
    pub fn put(self, header: &mut Header) {
        let bytes = self.ends.to_be_bytes();
        header.partition = u32::from_be_bytes(crate::bytes::get::<0, 4, 4>(&bytes));
        let bytes = self.group.to_be_bytes();
        let mut whole = header.epoch.to_be_bytes();
        crate::bytes::put::<0, 1, 4>(&mut whole, crate::bytes::get::<0, 1, 1>(&bytes));
        header.epoch = u32::from_be_bytes(whole);
        let bytes = self.partitions;
        header.match_value = u128::from_be_bytes(crate::bytes::get::<0, 16, 32>(&bytes));
        header.keyhash = u64::from_be_bytes(crate::bytes::get::<16, 8, 32>(&bytes));
        header.object_version =
            Version::new(u64::from_be_bytes(crate::bytes::get::<24, 8, 32>(&bytes)));
    }
}

/// HOT_COPY.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HotCopy {
    /// Version of what is copied.
    pub version: Version,
}

impl HotCopy {
    /// What a packet says.
    #[inline]
    #[must_use]
    pub fn read(header: &[u8; HEADER_LEN]) -> Self {
        Self { version: header.object_version() }
    }

    /// Writes it into a packet.
    #[inline]
    pub fn write(self, header: &mut [u8; HEADER_LEN]) {
        header.set_object_version(self.version);
    }

    /// What a header says.
    #[inline]
    #[must_use]
    pub fn of(header: &Header) -> Self {
        Self { version: header.object_version }
    }

    /// Puts it into a header.
    #[inline]
    pub fn put(self, header: &mut Header) {
        header.object_version = self.version;
    }
}

/// HOT_COPIED.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HotCopied {
    /// The newest version that the sender holds.
    pub held: Version,
}

impl HotCopied {
    /// What a packet says.
    #[inline]
    #[must_use]
    pub fn read(header: &[u8; HEADER_LEN]) -> Self {
        Self { held: header.object_version() }
    }

    /// Writes it into a packet.
    #[inline]
    pub fn write(self, header: &mut [u8; HEADER_LEN]) {
        header.set_object_version(self.held);
    }

    /// What a header says.
    #[inline]
    #[must_use]
    pub fn of(header: &Header) -> Self {
        Self { held: header.object_version }
    }

    /// Puts it into a header.
    #[inline]
    pub fn put(self, header: &mut Header) {
        header.object_version = self.held;
    }
}

/// DELEGATION_FOUND.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DelegationFound {
    /// Version of the write that was found; 0 if there is none.
    pub version: Version,
    /// 1 if this incarnation of the node was given no order older than the delegation: it may have lost what an earlier one had.
    pub anew: u8,
}

impl DelegationFound {
    /// What a packet says.
    #[inline]
    #[must_use]
    pub fn read(header: &[u8; HEADER_LEN]) -> Self {
        Self { version: header.object_version(), anew: header.anew() }
    }

    /// Writes it into a packet.
    #[inline]
    pub fn write(self, header: &mut [u8; HEADER_LEN]) {
        header.set_object_version(self.version);
        header.set_anew(self.anew);
    }

    /// What a header says.
    #[inline]
    #[must_use]
    pub fn of(header: &Header) -> Self {
        Self {
            version: header.object_version,
            anew: {
                let mut bytes = [0; 1];
                crate::bytes::put::<0, 1, 1>(&mut bytes, header.count.to_be_bytes());
                u8::from_be_bytes(bytes)
            },
        }
    }

    /// Puts it into a header.
    #[inline]
    pub fn put(self, header: &mut Header) {
        header.object_version = self.version;
        let bytes = self.anew.to_be_bytes();
        header.count = u8::from_be_bytes(crate::bytes::get::<0, 1, 1>(&bytes));
    }
}

/// DELEGATION_COMMIT.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DelegationCommit {
    /// Version of the write.
    pub version: Version,
}

impl DelegationCommit {
    /// What a packet says.
    #[inline]
    #[must_use]
    pub fn read(header: &[u8; HEADER_LEN]) -> Self {
        Self { version: header.object_version() }
    }

    /// Writes it into a packet.
    #[inline]
    pub fn write(self, header: &mut [u8; HEADER_LEN]) {
        header.set_object_version(self.version);
    }

    /// What a header says.
    #[inline]
    #[must_use]
    pub fn of(header: &Header) -> Self {
        Self { version: header.object_version }
    }

    /// Puts it into a header.
    #[inline]
    pub fn put(self, header: &mut Header) {
        header.object_version = self.version;
    }
}

/// DELEGATION_DURABLE.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DelegationDurable {
    /// Version up to which the disk has what the delegation wrote.
    pub version: Version,
}

impl DelegationDurable {
    /// What a packet says.
    #[inline]
    #[must_use]
    pub fn read(header: &[u8; HEADER_LEN]) -> Self {
        Self { version: header.object_version() }
    }

    /// Writes it into a packet.
    #[inline]
    pub fn write(self, header: &mut [u8; HEADER_LEN]) {
        header.set_object_version(self.version);
    }

    /// What a header says.
    #[inline]
    #[must_use]
    pub fn of(header: &Header) -> Self {
        Self { version: header.object_version }
    }

    /// Puts it into a header.
    #[inline]
    pub fn put(self, header: &mut Header) {
        header.object_version = self.version;
    }
}

/// CHAIN_WRITE.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChainWrite {
    /// Version of the write.
    pub version: Version,
    /// The members, a bit for each place, that sent it on before it was on their disks.
    pub unsynced: u32,
    /// While the chain is closed: 1 if all that it was computed from is committed at the sender, or at one before it.
    pub based: u8,
}

impl ChainWrite {
    /// What a packet says.
    #[inline]
    #[must_use]
    pub fn read(header: &[u8; HEADER_LEN]) -> Self {
        Self { version: header.object_version(), unsynced: header.bitmap(), based: header.based() }
    }

    /// Writes it into a packet.
    #[inline]
    pub fn write(self, header: &mut [u8; HEADER_LEN]) {
        header.set_object_version(self.version);
        header.set_bitmap(self.unsynced);
        header.set_based(self.based);
    }

    /// What a header says.
    #[inline]
    #[must_use]
    pub fn of(header: &Header) -> Self {
        Self {
            version: header.object_version,
            unsynced: header.bitmap,
            based: {
                let mut bytes = [0; 1];
                crate::bytes::put::<0, 1, 1>(&mut bytes, header.count.to_be_bytes());
                u8::from_be_bytes(bytes)
            },
        }
    }

    /// Puts it into a header.
    #[inline]
    pub fn put(self, header: &mut Header) {
        header.object_version = self.version;
        header.bitmap = self.unsynced;
        let bytes = self.based.to_be_bytes();
        header.count = u8::from_be_bytes(crate::bytes::get::<0, 1, 1>(&bytes));
    }
}

/// CHAIN_OFFER.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChainOffer {
    /// Version of the write.
    pub version: Version,
    /// 1 if all that it was computed from is committed at the sender.
    pub based: u8,
}

impl ChainOffer {
    /// What a packet says.
    #[inline]
    #[must_use]
    pub fn read(header: &[u8; HEADER_LEN]) -> Self {
        Self { version: header.object_version(), based: header.based() }
    }

    /// Writes it into a packet.
    #[inline]
    pub fn write(self, header: &mut [u8; HEADER_LEN]) {
        header.set_object_version(self.version);
        header.set_based(self.based);
    }

    /// What a header says.
    #[inline]
    #[must_use]
    pub fn of(header: &Header) -> Self {
        Self {
            version: header.object_version,
            based: {
                let mut bytes = [0; 1];
                crate::bytes::put::<0, 1, 1>(&mut bytes, header.count.to_be_bytes());
                u8::from_be_bytes(bytes)
            },
        }
    }

    /// Puts it into a header.
    #[inline]
    pub fn put(self, header: &mut Header) {
        header.object_version = self.version;
        let bytes = self.based.to_be_bytes();
        header.count = u8::from_be_bytes(crate::bytes::get::<0, 1, 1>(&bytes));
    }
}

/// CHAIN_ACK and CHAIN_COMMIT.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChainAnswer {
    /// Version of the write that is recorded, or committed, at the sender.
    pub version: Version,
    /// A `Room`: the least of the sender and of those behind it.
    pub room: u8,
}

impl ChainAnswer {
    /// What a packet says.
    #[inline]
    #[must_use]
    pub fn read(header: &[u8; HEADER_LEN]) -> Self {
        Self { version: header.object_version(), room: header.room() }
    }

    /// Writes it into a packet.
    #[inline]
    pub fn write(self, header: &mut [u8; HEADER_LEN]) {
        header.set_object_version(self.version);
        header.set_room(self.room);
    }

    /// What a header says.
    #[inline]
    #[must_use]
    pub fn of(header: &Header) -> Self {
        Self {
            version: header.object_version,
            room: {
                let mut bytes = [0; 1];
                crate::bytes::put::<0, 1, 1>(&mut bytes, header.count.to_be_bytes());
                u8::from_be_bytes(bytes)
            },
        }
    }

    /// Puts it into a header.
    #[inline]
    pub fn put(self, header: &mut Header) {
        header.object_version = self.version;
        let bytes = self.room.to_be_bytes();
        header.count = u8::from_be_bytes(crate::bytes::get::<0, 1, 1>(&bytes));
    }
}

/// CHAIN_STABLE.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChainStable {
    /// Every write up to it is committed everywhere.
    pub version: Version,
    /// How many these are; 0: not known.
    pub writes: u64,
}

impl ChainStable {
    /// What a packet says.
    #[inline]
    #[must_use]
    pub fn read(header: &[u8; HEADER_LEN]) -> Self {
        Self { version: header.object_version(), writes: header.writes() }
    }

    /// Writes it into a packet.
    #[inline]
    pub fn write(self, header: &mut [u8; HEADER_LEN]) {
        header.set_object_version(self.version);
        header.set_writes(self.writes);
    }

    /// What a header says.
    #[inline]
    #[must_use]
    pub fn of(header: &Header) -> Self {
        Self {
            version: header.object_version,
            writes: {
                let mut bytes = [0; 8];
                crate::bytes::put::<0, 8, 8>(&mut bytes, header.seq.to_be_bytes());
                u64::from_be_bytes(bytes)
            },
        }
    }

    /// Puts it into a header.
    #[inline]
    pub fn put(self, header: &mut Header) {
        header.object_version = self.version;
        let bytes = self.writes.to_be_bytes();
        header.seq = u64::from_be_bytes(crate::bytes::get::<0, 8, 8>(&bytes));
    }
}

/// CHAIN_EXPIRE.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChainExpire {
    /// Version of the value whose time has come; 0 for a part that belongs to no value.
    pub version: Version,
}

impl ChainExpire {
    /// What a packet says.
    #[inline]
    #[must_use]
    pub fn read(header: &[u8; HEADER_LEN]) -> Self {
        Self { version: header.object_version() }
    }

    /// Writes it into a packet.
    #[inline]
    pub fn write(self, header: &mut [u8; HEADER_LEN]) {
        header.set_object_version(self.version);
    }

    /// What a header says.
    #[inline]
    #[must_use]
    pub fn of(header: &Header) -> Self {
        Self { version: header.object_version }
    }

    /// Puts it into a header.
    #[inline]
    pub fn put(self, header: &mut Header) {
        header.object_version = self.version;
    }
}

/// CHAIN_COPY and CHAIN_VERIFY, each a part of a run, and what answers them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunPart {
    /// Number of the run.
    pub run: u64,
    /// Number of the piece or of the question, from 1.
    pub number: u64,
}

impl RunPart {
    /// What a packet says.
    #[inline]
    #[must_use]
    pub fn read(header: &[u8; HEADER_LEN]) -> Self {
        Self { run: header.run(), number: header.piece() }
    }

    /// Writes it into a packet.
    #[inline]
    pub fn write(self, header: &mut [u8; HEADER_LEN]) {
        header.set_run(self.run);
        header.set_piece(self.number);
    }

    /// What a header says.
    #[inline]
    #[must_use]
    pub fn of(header: &Header) -> Self {
        Self {
            run: {
                let mut bytes = [0; 8];
                crate::bytes::put::<0, 8, 8>(&mut bytes, header.seq.to_be_bytes());
                u64::from_be_bytes(bytes)
            },
            number: {
                let mut bytes = [0; 8];
                crate::bytes::put::<0, 8, 8>(&mut bytes, header.object_version.get().to_be_bytes());
                u64::from_be_bytes(bytes)
            },
        }
    }

    /// Puts it into a header.
    #[inline]
    pub fn put(self, header: &mut Header) {
        let bytes = self.run.to_be_bytes();
        header.seq = u64::from_be_bytes(crate::bytes::get::<0, 8, 8>(&bytes));
        let bytes = self.number.to_be_bytes();
        header.object_version =
            Version::new(u64::from_be_bytes(crate::bytes::get::<0, 8, 8>(&bytes)));
    }
}

/// CACHE_LOAN, CACHE_UPDATE and CACHE_ANSWER.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheCopy {
    /// Version of what is lent, or held.
    pub version: Version,
}

impl CacheCopy {
    /// What a packet says.
    #[inline]
    #[must_use]
    pub fn read(header: &[u8; HEADER_LEN]) -> Self {
        Self { version: header.object_version() }
    }

    /// Writes it into a packet.
    #[inline]
    pub fn write(self, header: &mut [u8; HEADER_LEN]) {
        header.set_object_version(self.version);
    }

    /// What a header says.
    #[inline]
    #[must_use]
    pub fn of(header: &Header) -> Self {
        Self { version: header.object_version }
    }

    /// Puts it into a header.
    #[inline]
    pub fn put(self, header: &mut Header) {
        header.object_version = self.version;
    }
}

/// Reply, on its way from the switch to a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientReply {
    /// The switch's directory clock when the reply passed.
    pub clock: DirectoryClock,
}

impl ClientReply {
    /// What a packet says.
    #[inline]
    #[must_use]
    pub fn read(header: &[u8; HEADER_LEN]) -> Self {
        Self { clock: header.reply_directory_clock() }
    }

    /// Writes it into a packet.
    #[inline]
    pub fn write(self, header: &mut [u8; HEADER_LEN]) {
        header.set_reply_directory_clock(self.clock);
    }

    /// What a header says.
    #[inline]
    #[must_use]
    pub fn of(header: &Header) -> Self {
        Self {
            clock: {
                let mut bytes = [0; 8];
                crate::bytes::put::<0, 8, 8>(
                    &mut bytes,
                    crate::bytes::get::<8, 8, 16>(&header.chain),
                );
                DirectoryClock::new(u64::from_be_bytes(bytes))
            },
        }
    }

    /// Puts it into a header.
    #[inline]
    pub fn put(self, header: &mut Header) {
        let bytes = self.clock.get().to_be_bytes();
        crate::bytes::put::<8, 8, 16>(&mut header.chain, crate::bytes::get::<0, 8, 8>(&bytes));
    }
}
