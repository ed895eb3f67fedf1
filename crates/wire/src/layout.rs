//! The layout of every packet. Generated from `spec/layout.toml` by `cargo xtask codegen`; do not edit.

use crate::number::{DelegationId, DirectoryClock, Generation, LoanNumber, Revision, Version};
use crate::result::ChainResult;

/// First two bytes of every packet.
pub const MAGIC: u16 = 0x4b57;
/// Version of this layout.
pub const VERSION: u8 = 1;
/// Bytes of the header.
pub const HEADER_LEN: usize = 120;
/// Where the part under the tag begins.
pub const END_TO_END_AT: usize = 92;
/// Default UDP port of the service address.
pub const PORT: u16 = 7700;
/// Bytes of a packet: an Ethernet MTU of 1500 less 20 of IPv4 and 8 of UDP. Larger ones would be IP fragments, which no data plane can route by key.
pub const PACKET_MAX: usize = 1472;
/// Bytes up to which an author fills a packet that could be longer or shorter: there is room for an envelope within PACKET_MAX.
pub const FILL_MAX: usize = 1448;
/// First two bytes of every envelope: 0x4b45, "KE".
pub const ENVELOPE_MAGIC: u16 = 19269;
/// Bytes of a key.
pub const KEY_MAX: usize = 1024;
/// Bytes of key and value together: the largest that fits a chain write (35 bytes of body) and a RANGE entry (21), with room for fields to come.
pub const ENTRY_MAX: usize = 1280;
/// Bytes of what a store said that refuses changes: a line of a log. What is longer is cut.
pub const STORE_WORDS_MAX: usize = 88;
/// Bytes of a big value.
pub const VALUE_MAX: usize = 536870912;
/// Zero bytes between the key of a big value and the rest of a part's key: with them the match value of a part in a range keyspace is that of the key, and the order of (match value, key) is the order of the keys.
pub const PART_ZEROS: usize = 16;
/// What the rest of a part's key begins with. Other keys must not have it in that place after PART_ZEROS zeros.
pub const PART_MARK: usize = 21340093393195603;
/// Bit of every expiry that says that the value is the manifest of a big value, or a part of one. The other bits are the time.
pub const EXPIRY_BIG_BIT: usize = 63;
/// Bit of a request's expiry that says that the bits below are no time but milliseconds from when the head takes the write. No record, chain message or reply has it.
pub const EXPIRY_SPAN_BIT: usize = 62;
/// Nodes in a chain; the header has room for as many.
pub const CHAIN_MAX: usize = 8;
/// Keys of one MGET datagram, one bit each in `bitmap`.
pub const MGET_KEYS_MAX: usize = 32;
/// Groups that the hints of one MGET can name; what a switch that goes by hints sends at most.
pub const MGET_GROUPS_MAX: usize = 16;
/// Steps of one BATCH: with short keys about as many as BATCH_BYTES_MAX has room for.
pub const BATCH_STEPS_MAX: usize = 48;
/// Bytes of all steps of a BATCH, their keys and values together: what fits a chain write, whose steps are no longer than a request's.
pub const BATCH_BYTES_MAX: usize = 1312;
/// Pieces that the switch makes of one RANGE at most, so that its work per packet is bounded.
pub const RANGE_PIECES_MAX: usize = 32;
/// Entries of the coherence directory.
pub const HOT_KEYS_MAX: usize = 65536;
/// Nodes of a bank, a part of a key's candidates in which all that hold one version of a delegation are; a switch in the kernel knows of no more candidates what they hold.
pub const HOT_BANK_MAX: usize = 64;
/// Bytes of the longest key that is delegated: its delegations have to fit a piece of a copy.
pub const DELEGATED_KEY_MAX: usize = 256;
/// Versions that a key may be given under one delegation: those above the version of its DELEGATE. The head of its partition gives out none of them.
pub const DELEGATION_VERSIONS: usize = 4294967296;
/// Low bits of a switch's directory clock, which count the delegations that have begun since its order of hot keys came; those above are the order's revision.
pub const CLOCK_DELEGATIONS_BITS: usize = 16;
/// For how long nodes remember a silent client's outcomes, and switches its grants. No client retries for as long (its deadline is seconds), and no network holds a datagram back for as long (RFC 793 assumes 2 minutes).
pub const SESSION_IDLE_SECS: usize = 600;
/// Versions above this cannot be: 2^62, which a partition that gives each of a thousand delegations a second their versions comes to in 34 years. So no sum of a version and of what may come after it overflows.
pub const VERSION_MAX: usize = 4611686018427387904;
/// Revisions of maps and of orders of hot keys, which are Unix milliseconds or one more than the last, cannot be further ahead of the own clock: ten years, so that no clock that was set wrong for a while makes a cluster refuse its own orders.
pub const REVISION_AHEAD_MS: usize = 315576000000;
/// Bits of a client id that tell the clients of one pass apart. Those above are the number of the pass, which is never 0.
pub const CLIENT_SEAT_BITS: usize = 16;
/// For how long at least a node that makes room remembers a client that it has heard. A client that is told NO_SESSION within this time of the first copy of a write knows that the write was not applied.
pub const SESSION_KEPT_MS: usize = 3000;
/// Requests that a node can serve in a second at most: ten times what the fastest of today can. A reply that says more says nothing of it.
pub const RATE_MAX: usize = 100000000;
/// Node ids are below this.
pub const NODES_MAX: usize = 1024;
/// Caches of a cluster: a rack needs one, and each has rules of the switch.
pub const CACHES_MAX: usize = 16;
/// Partitions of all keyspaces together.
pub const PARTITIONS_MAX: usize = 65536;
/// Keyspaces of one cluster.
pub const KEYSPACES_MAX: usize = 256;
/// Bytes of a keyspace's name.
pub const NAME_MAX: usize = 64;
/// Bytes of a range keyspace's common prefix.
pub const PREFIX_MAX: usize = 256;
/// In-kernel switch: counts of so many partitions lie together in 8 KB, so that what leads to them stays in the nearest cache, whatever the number of partitions.
pub const LOADS_PER_PAGE: usize = 512;
/// In-kernel switch: counts of so many hot keys lie together.
pub const HOT_LOADS_PER_PAGE: usize = 256;
/// In-kernel switch: elements of 64 bytes of a keyspace's table, enough for some 7000 partitions.
pub const SPACE_ELEMENTS: usize = 8192;
/// In-kernel switch: elements of the table of a keyspace that needs more: 1, one for each 16 of PARTITIONS_MAX, and PARTITIONS_MAX.
pub const LARGE_SPACE_ELEMENTS: usize = 69633;
/// Buckets of a switch's table of the keys that caches hold, a power of two; each key may lie in two of them. With 65,536 rules half of the places are free, and of two buckets one has room.
pub const CACHE_RULE_BUCKETS: usize = 16384;
/// Rules in each of these buckets, which lie in one line of the processor's cache.
pub const CACHE_RULE_BUCKET_LEN: usize = 8;
/// Words of 64 bits of the filter before that table, a power of two: with 65,536 rules one other key in 170 has both of its bits there.
pub const CACHE_FILTER_WORDS: usize = 32768;
/// Words of 64 bits, one for each keyspace id there can be.
pub const KEYSPACE_WORDS: usize = 1024;
/// First bits of a content address: the service prefix.
pub const CONTENT_PREFIX_BITS: usize = 48;
/// Bits of a content address after the service prefix: a value of `content_class`. 0 is the class of no request: the service address itself may lie there.
pub const CONTENT_CLASS_BITS: usize = 4;
/// Bits of a content address after the class: the keyspace id.
pub const CONTENT_KEYSPACE_BITS: usize = 12;
/// Last bits of a content address: the first bits of the match value.
pub const CONTENT_MATCH_BITS: usize = 64;
/// The protocol number of the routes that `keyway switch --plane routes` adds: by it routing daemons know them, and a later start those that a crash has left. No daemon of `rt_protos` has it.
pub const ROUTE_PROTOCOL: usize = 107;
/// The metric of these routes. A route of an operator for the same prefix with a lower one goes before them.
pub const ROUTE_METRIC: usize = 7700;

/// What a packet asks for or answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Op {
    /// Read one key.
    Get = 0x01,
    /// Write one key.
    Put = 0x02,
    /// Delete one key.
    Del = 0x03,
    /// Write one key if its version, or its value, is the expected one.
    Cas = 0x04,
    /// Add a signed number to a decimal value.
    Incr = 0x05,
    /// Read up to 32 keys.
    Mget = 0x06,
    /// Read the keys of an interval, in order.
    Range = 0x07,
    /// Ask any node what a keyspace name means: id, kind, seed, prefix.
    Describe = 0x08,
    /// Write, delete or only check several keys of one partition at once, if what is there is what is expected of each.
    Batch = 0x09,
    /// The client has ended, and all of its requests: the partition that holds `match` need keep no outcomes for it. Nobody answers.
    Goodbye = 0x0a,
    /// Node to successor: record this write and pass it on.
    ChainWrite = 0x40,
    /// Node to predecessor: recorded here.
    ChainAck = 0x41,
    /// Node to predecessor: committed at the tail.
    ChainCommit = 0x42,
    /// Head to members: every write up to this version is committed everywhere.
    ChainStable = 0x43,
    /// Tail to head: the time of this key's value has come, and somebody asked for it.
    ChainExpire = 0x44,
    /// Tail to learner: a piece of the partition as it stands.
    ChainCopy = 0x45,
    /// Learner to tail: that piece is kept here.
    ChainCopied = 0x46,
    /// Tail to reader: the newest committed state of a hot key.
    HotCopy = 0x47,
    /// Head to node: say what you hold of a key from a delegation that is over.
    DelegationFetch = 0x48,
    /// Node to head: the newest write of that delegation that is held here, or that there is none.
    DelegationFound = 0x49,
    /// Head to node: the key is home from that delegation; forget what you hold of it.
    DelegationEnd = 0x4a,
    /// Last of a delegated write's chain to the others: the write of this version, which they keep, is committed.
    DelegationCommit = 0x4b,
    /// Tail to member: say what you hold of these keys, or give another member what you hold of this one.
    ChainVerify = 0x4c,
    /// Member to tail: what it holds of them.
    ChainVerified = 0x4d,
    /// Member to member: what you are to hold of this key, if you hold what was found to be wrong.
    ChainMend = 0x4e,
    /// Head to members: this client has said goodbye.
    ChainGoodbye = 0x4f,
    /// Member to the last one: these writes, which went on before, are on the sender's disk.
    ChainDurable = 0x50,
    /// Member to head, while the chain is closed: this write is pending here, and has not come down in this epoch.
    ChainOffer = 0x51,
    /// Member to head, while the chain is closed: all that is pending here has come down in this epoch.
    ChainOffered = 0x52,
    /// Node of a delegated write's chain to the next one: the PUT, before it is on the disks of all before.
    DelegationWrite = 0x53,
    /// Node of a delegated write's chain to the last one: the sender's disk has the write of this version, or a newer one.
    DelegationDurable = 0x54,
    /// Cache to tail: lend me this key.
    CacheFetch = 0x55,
    /// Tail to cache: the key, lent; or with a code that decides nothing that it is not.
    CacheLoan = 0x56,
    /// Cache to tail: go on lending me what you have lent me of this partition.
    CacheRenew = 0x57,
    /// Tail to cache: for so long, and from this loan on.
    CacheGrant = 0x58,
    /// Tail to cache: what is lent has this new value.
    CacheUpdate = 0x59,
    /// Tail to cache: hold this key no more; without a key, nothing of the partition.
    CacheRecall = 0x5a,
    /// Cache to tail: whether it holds the key, in answer to CACHE_UPDATE and CACHE_RECALL, or because it holds it no more.
    CacheAnswer = 0x5b,
    /// Node to cache: the keys that clients ask it for most.
    CacheReport = 0x5c,
    /// Cache to switch: which keys reads of go to the cache from here on, and of which no more.
    CacheRules = 0x5d,
    /// Switch to cache: the number of the first rule that it lacks.
    CacheRuled = 0x5e,
    /// Answer to Get.
    GetReply = 0x81,
    /// Answer to Put.
    PutReply = 0x82,
    /// Answer to Del.
    DelReply = 0x83,
    /// Answer to Cas.
    CasReply = 0x84,
    /// Answer to Incr.
    IncrReply = 0x85,
    /// Answer to some keys of an Mget: those in `bitmap`.
    MgetReply = 0x86,
    /// Answer to a piece of a Range: the interval match..=match_end.
    RangeReply = 0x87,
    /// Answer to Describe.
    DescribeReply = 0x88,
    /// Answer to Batch.
    BatchReply = 0x89,
    /// Reader to tail, through the switch: a hot key is held here in this version.
    HotCopied = 0xc7,
    /// A node to itself, through the switch, which observes it like an answer to a GET: of a tail, that candidates are to answer with no less than this version; with NOT_HERE, that a candidate has no copy.
    HotPublish = 0xc8,
}

impl Op {
    /// Every value, in the order of the specification.
    pub const ALL: [Self; 52] = [
        Self::Get,
        Self::Put,
        Self::Del,
        Self::Cas,
        Self::Incr,
        Self::Mget,
        Self::Range,
        Self::Describe,
        Self::Batch,
        Self::Goodbye,
        Self::ChainWrite,
        Self::ChainAck,
        Self::ChainCommit,
        Self::ChainStable,
        Self::ChainExpire,
        Self::ChainCopy,
        Self::ChainCopied,
        Self::HotCopy,
        Self::DelegationFetch,
        Self::DelegationFound,
        Self::DelegationEnd,
        Self::DelegationCommit,
        Self::ChainVerify,
        Self::ChainVerified,
        Self::ChainMend,
        Self::ChainGoodbye,
        Self::ChainDurable,
        Self::ChainOffer,
        Self::ChainOffered,
        Self::DelegationWrite,
        Self::DelegationDurable,
        Self::CacheFetch,
        Self::CacheLoan,
        Self::CacheRenew,
        Self::CacheGrant,
        Self::CacheUpdate,
        Self::CacheRecall,
        Self::CacheAnswer,
        Self::CacheReport,
        Self::CacheRules,
        Self::CacheRuled,
        Self::GetReply,
        Self::PutReply,
        Self::DelReply,
        Self::CasReply,
        Self::IncrReply,
        Self::MgetReply,
        Self::RangeReply,
        Self::DescribeReply,
        Self::BatchReply,
        Self::HotCopied,
        Self::HotPublish,
    ];

    /// The value that this byte stands for, if any.
    #[must_use]
    pub const fn from_wire(byte: u8) -> Option<Self> {
        match byte {
            0x01 => Some(Self::Get),
            0x02 => Some(Self::Put),
            0x03 => Some(Self::Del),
            0x04 => Some(Self::Cas),
            0x05 => Some(Self::Incr),
            0x06 => Some(Self::Mget),
            0x07 => Some(Self::Range),
            0x08 => Some(Self::Describe),
            0x09 => Some(Self::Batch),
            0x0a => Some(Self::Goodbye),
            0x40 => Some(Self::ChainWrite),
            0x41 => Some(Self::ChainAck),
            0x42 => Some(Self::ChainCommit),
            0x43 => Some(Self::ChainStable),
            0x44 => Some(Self::ChainExpire),
            0x45 => Some(Self::ChainCopy),
            0x46 => Some(Self::ChainCopied),
            0x47 => Some(Self::HotCopy),
            0x48 => Some(Self::DelegationFetch),
            0x49 => Some(Self::DelegationFound),
            0x4a => Some(Self::DelegationEnd),
            0x4b => Some(Self::DelegationCommit),
            0x4c => Some(Self::ChainVerify),
            0x4d => Some(Self::ChainVerified),
            0x4e => Some(Self::ChainMend),
            0x4f => Some(Self::ChainGoodbye),
            0x50 => Some(Self::ChainDurable),
            0x51 => Some(Self::ChainOffer),
            0x52 => Some(Self::ChainOffered),
            0x53 => Some(Self::DelegationWrite),
            0x54 => Some(Self::DelegationDurable),
            0x55 => Some(Self::CacheFetch),
            0x56 => Some(Self::CacheLoan),
            0x57 => Some(Self::CacheRenew),
            0x58 => Some(Self::CacheGrant),
            0x59 => Some(Self::CacheUpdate),
            0x5a => Some(Self::CacheRecall),
            0x5b => Some(Self::CacheAnswer),
            0x5c => Some(Self::CacheReport),
            0x5d => Some(Self::CacheRules),
            0x5e => Some(Self::CacheRuled),
            0x81 => Some(Self::GetReply),
            0x82 => Some(Self::PutReply),
            0x83 => Some(Self::DelReply),
            0x84 => Some(Self::CasReply),
            0x85 => Some(Self::IncrReply),
            0x86 => Some(Self::MgetReply),
            0x87 => Some(Self::RangeReply),
            0x88 => Some(Self::DescribeReply),
            0x89 => Some(Self::BatchReply),
            0xc7 => Some(Self::HotCopied),
            0xc8 => Some(Self::HotPublish),
            _ => None,
        }
    }

    /// The name used in metrics, logs and documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Put => "put",
            Self::Del => "del",
            Self::Cas => "cas",
            Self::Incr => "incr",
            Self::Mget => "mget",
            Self::Range => "range",
            Self::Describe => "describe",
            Self::Batch => "batch",
            Self::Goodbye => "goodbye",
            Self::ChainWrite => "chain_write",
            Self::ChainAck => "chain_ack",
            Self::ChainCommit => "chain_commit",
            Self::ChainStable => "chain_stable",
            Self::ChainExpire => "chain_expire",
            Self::ChainCopy => "chain_copy",
            Self::ChainCopied => "chain_copied",
            Self::HotCopy => "hot_copy",
            Self::DelegationFetch => "delegation_fetch",
            Self::DelegationFound => "delegation_found",
            Self::DelegationEnd => "delegation_end",
            Self::DelegationCommit => "delegation_commit",
            Self::ChainVerify => "chain_verify",
            Self::ChainVerified => "chain_verified",
            Self::ChainMend => "chain_mend",
            Self::ChainGoodbye => "chain_goodbye",
            Self::ChainDurable => "chain_durable",
            Self::ChainOffer => "chain_offer",
            Self::ChainOffered => "chain_offered",
            Self::DelegationWrite => "delegation_write",
            Self::DelegationDurable => "delegation_durable",
            Self::CacheFetch => "cache_fetch",
            Self::CacheLoan => "cache_loan",
            Self::CacheRenew => "cache_renew",
            Self::CacheGrant => "cache_grant",
            Self::CacheUpdate => "cache_update",
            Self::CacheRecall => "cache_recall",
            Self::CacheAnswer => "cache_answer",
            Self::CacheReport => "cache_report",
            Self::CacheRules => "cache_rules",
            Self::CacheRuled => "cache_ruled",
            Self::GetReply => "get_reply",
            Self::PutReply => "put_reply",
            Self::DelReply => "del_reply",
            Self::CasReply => "cas_reply",
            Self::IncrReply => "incr_reply",
            Self::MgetReply => "mget_reply",
            Self::RangeReply => "range_reply",
            Self::DescribeReply => "describe_reply",
            Self::BatchReply => "batch_reply",
            Self::HotCopied => "hot_copied",
            Self::HotPublish => "hot_publish",
        }
    }
}

/// How a request, or one key of it, ended. Below 16: decided. 16 to 31: ask again. From 32: refused, no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Code {
    /// Done.
    Ok = 0x00,
    /// Done: there is (or was) no such key.
    NotFound = 0x01,
    /// Done without effect: the value is not the expected one; `object_version` is the version found (BATCH: 0, and the body says which step).
    CasMismatch = 0x02,
    /// Done without effect: the value is not a decimal 64-bit number.
    NotANumber = 0x03,
    /// Done without effect: the sum leaves the 64-bit range.
    Overflow = 0x04,
    /// Done without effect: not all parts of this big value are there; it must be sent again, as another upload.
    PartsMissing = 0x05,
    /// Done without effect: there is no room for it on some node of the chain. What grows nothing, and deletes, are still taken.
    Full = 0x06,
    /// Ask again: the packet was stamped in another epoch than this node's.
    StaleEpoch = 0x10,
    /// Ask again: this node does not hold that role for that partition.
    NotOwner = 0x11,
    /// Ask again, later: a queue is full. Nothing was recorded.
    Overloaded = 0x12,
    /// Ask again: the controller has not taken this node in yet.
    NotServing = 0x13,
    /// Ask again, soon: the value's time has come and its removal is on the way down the chain.
    Expiring = 0x14,
    /// Ask again, soon: the chain of the partition is being changed.
    Closed = 0x15,
    /// Ask again, at home: what this node has of a hot key is not as new as the switch asks for, or newer than the switch knows.
    NotHere = 0x16,
    /// Ask again: writes of this key go anywhere, and this one came home.
    Delegated = 0x17,
    /// Ask again in vain: an earlier copy may have been applied where nobody remembers it.
    Uncertain = 0x18,
    /// Ask again, soon: parts of this big value are still on their way down the chain, or still being counted; or what the store held before Keyway, of which a piece is to be scanned, is still being listed.
    Settling = 0x19,
    /// Ask again, with `since`: the head has forgotten clients to make room, and cannot tell whether this is one of them. `object_version` is the version to name.
    NoSession = 0x1a,
    /// Ask again, later: the store below a node reads, and takes no changes for now. Nothing was recorded here. The body is what the store said: text of up to STORE_WORDS_MAX bytes.
    StoreRefuses = 0x1b,
    /// Refused: the body does not say what its operation needs.
    BadRequest = 0x20,
    /// Refused: key or value over the limit.
    TooLarge = 0x21,
    /// Refused: match value or keyhash is not that of the key.
    BadMatch = 0x22,
    /// Refused: no keyspace of that id or name.
    UnknownKeyspace = 0x23,
    /// Refused: the keys of a batch are not all in one partition.
    NotTogether = 0x24,
}

impl Code {
    /// Every value, in the order of the specification.
    pub const ALL: [Self; 24] = [
        Self::Ok,
        Self::NotFound,
        Self::CasMismatch,
        Self::NotANumber,
        Self::Overflow,
        Self::PartsMissing,
        Self::Full,
        Self::StaleEpoch,
        Self::NotOwner,
        Self::Overloaded,
        Self::NotServing,
        Self::Expiring,
        Self::Closed,
        Self::NotHere,
        Self::Delegated,
        Self::Uncertain,
        Self::Settling,
        Self::NoSession,
        Self::StoreRefuses,
        Self::BadRequest,
        Self::TooLarge,
        Self::BadMatch,
        Self::UnknownKeyspace,
        Self::NotTogether,
    ];

    /// The value that this byte stands for, if any.
    #[must_use]
    pub const fn from_wire(byte: u8) -> Option<Self> {
        match byte {
            0x00 => Some(Self::Ok),
            0x01 => Some(Self::NotFound),
            0x02 => Some(Self::CasMismatch),
            0x03 => Some(Self::NotANumber),
            0x04 => Some(Self::Overflow),
            0x05 => Some(Self::PartsMissing),
            0x06 => Some(Self::Full),
            0x10 => Some(Self::StaleEpoch),
            0x11 => Some(Self::NotOwner),
            0x12 => Some(Self::Overloaded),
            0x13 => Some(Self::NotServing),
            0x14 => Some(Self::Expiring),
            0x15 => Some(Self::Closed),
            0x16 => Some(Self::NotHere),
            0x17 => Some(Self::Delegated),
            0x18 => Some(Self::Uncertain),
            0x19 => Some(Self::Settling),
            0x1a => Some(Self::NoSession),
            0x1b => Some(Self::StoreRefuses),
            0x20 => Some(Self::BadRequest),
            0x21 => Some(Self::TooLarge),
            0x22 => Some(Self::BadMatch),
            0x23 => Some(Self::UnknownKeyspace),
            0x24 => Some(Self::NotTogether),
            _ => None,
        }
    }

    /// The name used in metrics, logs and documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::NotFound => "not_found",
            Self::CasMismatch => "cas_mismatch",
            Self::NotANumber => "not_a_number",
            Self::Overflow => "overflow",
            Self::PartsMissing => "parts_missing",
            Self::Full => "full",
            Self::StaleEpoch => "stale_epoch",
            Self::NotOwner => "not_owner",
            Self::Overloaded => "overloaded",
            Self::NotServing => "not_serving",
            Self::Expiring => "expiring",
            Self::Closed => "closed",
            Self::NotHere => "not_here",
            Self::Delegated => "delegated",
            Self::Uncertain => "uncertain",
            Self::Settling => "settling",
            Self::NoSession => "no_session",
            Self::StoreRefuses => "store_refuses",
            Self::BadRequest => "bad_request",
            Self::TooLarge => "too_large",
            Self::BadMatch => "bad_match",
            Self::UnknownKeyspace => "unknown_keyspace",
            Self::NotTogether => "not_together",
        }
    }
}

/// What a member holds of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum VerifyState {
    /// Nothing.
    Nothing = 0x00,
    /// A value.
    Value = 0x01,
    /// The mark of its deletion.
    Deleted = 0x02,
}

impl VerifyState {
    /// Every value, in the order of the specification.
    pub const ALL: [Self; 3] = [Self::Nothing, Self::Value, Self::Deleted];

    /// The value that this byte stands for, if any.
    #[must_use]
    pub const fn from_wire(byte: u8) -> Option<Self> {
        match byte {
            0x00 => Some(Self::Nothing),
            0x01 => Some(Self::Value),
            0x02 => Some(Self::Deleted),
            _ => None,
        }
    }

    /// The name used in metrics, logs and documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Value => "value",
            Self::Deleted => "deleted",
        }
    }
}

/// Why a packet was dropped without an answer: the index of one counter in every switch and node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum DropReason {
    /// Shorter than a header.
    Truncated = 0x01,
    /// Wrong magic.
    NotOurs = 0x02,
    /// Another version of the layout.
    BadVersion = 0x03,
    /// No such operation, or none that this role takes.
    BadOp = 0x04,
    /// Lengths in the header contradict the datagram or a limit.
    BadLength = 0x05,
    /// The payload does not have the form of its operation.
    BadBody = 0x06,
    /// The tag is not that of the bytes: damaged on the way.
    BadTag = 0x07,
    /// Chain length or position impossible, or not this node's chain.
    BadChain = 0x08,
    /// No table for that keyspace.
    NoKeyspace = 0x09,
    /// No partition holds that match value.
    NoPartition = 0x0a,
    /// The partition's node is not in the node table.
    NoNode = 0x0b,
    /// A reply whose sender is not in the node table: forged.
    ReplyNotFromNode = 0x0c,
    /// A request from a node's address: a loop.
    RequestFromNode = 0x0d,
    /// A chain message whose sender is not in that chain.
    NotFromMember = 0x0e,
    /// Below the client's low-water mark: it has ended long ago.
    StaleRequest = 0x0f,
    /// A chain message, or a goodbye, of another epoch.
    StaleEpoch = 0x10,
    /// A read-modify-write whose base has not arrived; its sender will send it again.
    OutOfOrder = 0x11,
    /// A bounded queue was full.
    QueueFull = 0x12,
    /// A reply to nothing that is waiting: late or doubled.
    UnknownRequest = 0x13,
    /// No table or assignment installed yet, or a member that still forgets what it had on record before.
    NotServing = 0x14,
    /// A reply with no address to send it to.
    BadReplyAddress = 0x15,
    /// The controller has not been heard for too long: somebody else may have taken over.
    NoLease = 0x16,
    /// A request that the active switch did not forward.
    NotFromSwitch = 0x17,
    /// A request at a switch that is not the active one.
    Standby = 0x18,
    /// A reply whose version could not be noted as the floor of a hot key: too many others were at it.
    Contended = 0x19,
    /// A number that cannot be: above what is known by more than may be new, or about what never was.
    Implausible = 0x1a,
    /// A piece of a copy at a learner that has little room, or something that would have to be written at a node whose disk is full or whose store refuses changes.
    NoRoom = 0x1b,
}

impl DropReason {
    /// Every value, in the order of the specification.
    pub const ALL: [Self; 27] = [
        Self::Truncated,
        Self::NotOurs,
        Self::BadVersion,
        Self::BadOp,
        Self::BadLength,
        Self::BadBody,
        Self::BadTag,
        Self::BadChain,
        Self::NoKeyspace,
        Self::NoPartition,
        Self::NoNode,
        Self::ReplyNotFromNode,
        Self::RequestFromNode,
        Self::NotFromMember,
        Self::StaleRequest,
        Self::StaleEpoch,
        Self::OutOfOrder,
        Self::QueueFull,
        Self::UnknownRequest,
        Self::NotServing,
        Self::BadReplyAddress,
        Self::NoLease,
        Self::NotFromSwitch,
        Self::Standby,
        Self::Contended,
        Self::Implausible,
        Self::NoRoom,
    ];

    /// The value that this byte stands for, if any.
    #[must_use]
    pub const fn from_wire(byte: u8) -> Option<Self> {
        match byte {
            0x01 => Some(Self::Truncated),
            0x02 => Some(Self::NotOurs),
            0x03 => Some(Self::BadVersion),
            0x04 => Some(Self::BadOp),
            0x05 => Some(Self::BadLength),
            0x06 => Some(Self::BadBody),
            0x07 => Some(Self::BadTag),
            0x08 => Some(Self::BadChain),
            0x09 => Some(Self::NoKeyspace),
            0x0a => Some(Self::NoPartition),
            0x0b => Some(Self::NoNode),
            0x0c => Some(Self::ReplyNotFromNode),
            0x0d => Some(Self::RequestFromNode),
            0x0e => Some(Self::NotFromMember),
            0x0f => Some(Self::StaleRequest),
            0x10 => Some(Self::StaleEpoch),
            0x11 => Some(Self::OutOfOrder),
            0x12 => Some(Self::QueueFull),
            0x13 => Some(Self::UnknownRequest),
            0x14 => Some(Self::NotServing),
            0x15 => Some(Self::BadReplyAddress),
            0x16 => Some(Self::NoLease),
            0x17 => Some(Self::NotFromSwitch),
            0x18 => Some(Self::Standby),
            0x19 => Some(Self::Contended),
            0x1a => Some(Self::Implausible),
            0x1b => Some(Self::NoRoom),
            _ => None,
        }
    }

    /// The name used in metrics, logs and documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Truncated => "truncated",
            Self::NotOurs => "not_ours",
            Self::BadVersion => "bad_version",
            Self::BadOp => "bad_op",
            Self::BadLength => "bad_length",
            Self::BadBody => "bad_body",
            Self::BadTag => "bad_tag",
            Self::BadChain => "bad_chain",
            Self::NoKeyspace => "no_keyspace",
            Self::NoPartition => "no_partition",
            Self::NoNode => "no_node",
            Self::ReplyNotFromNode => "reply_not_from_node",
            Self::RequestFromNode => "request_from_node",
            Self::NotFromMember => "not_from_member",
            Self::StaleRequest => "stale_request",
            Self::StaleEpoch => "stale_epoch",
            Self::OutOfOrder => "out_of_order",
            Self::QueueFull => "queue_full",
            Self::UnknownRequest => "unknown_request",
            Self::NotServing => "not_serving",
            Self::BadReplyAddress => "bad_reply_address",
            Self::NoLease => "no_lease",
            Self::NotFromSwitch => "not_from_switch",
            Self::Standby => "standby",
            Self::Contended => "contended",
            Self::Implausible => "implausible",
            Self::NoRoom => "no_room",
        }
    }
}

/// What a request wants of the partition that its address names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum ContentClass {
    /// GET: the tail, or a cache that holds the key.
    Read = 0x01,
    /// GET with AT_HOME: the tail.
    ReadAtHome = 0x02,
    /// PUT, DEL, CAS, INCR, BATCH, GOODBYE: the head.
    Write = 0x03,
}

impl ContentClass {
    /// Every value, in the order of the specification.
    pub const ALL: [Self; 3] = [Self::Read, Self::ReadAtHome, Self::Write];

    /// The value that this byte stands for, if any.
    #[must_use]
    pub const fn from_wire(byte: u8) -> Option<Self> {
        match byte {
            0x01 => Some(Self::Read),
            0x02 => Some(Self::ReadAtHome),
            0x03 => Some(Self::Write),
            _ => None,
        }
    }

    /// The name used in metrics, logs and documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::ReadAtHome => "read_at_home",
            Self::Write => "write",
        }
    }
}

/// Who wrote an envelope, and for whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum EnvelopeKind {
    /// A client, for a switch, node or cache.
    Request = 0x01,
    /// A switch, node or cache, for a client.
    Reply = 0x02,
    /// A switch, node or cache, for another.
    Member = 0x03,
    /// A switch, node or cache, for a client that has to show first that it receives. No packet follows.
    Cookie = 0x04,
}

impl EnvelopeKind {
    /// Every value, in the order of the specification.
    pub const ALL: [Self; 4] = [Self::Request, Self::Reply, Self::Member, Self::Cookie];

    /// The value that this byte stands for, if any.
    #[must_use]
    pub const fn from_wire(byte: u8) -> Option<Self> {
        match byte {
            0x01 => Some(Self::Request),
            0x02 => Some(Self::Reply),
            0x03 => Some(Self::Member),
            0x04 => Some(Self::Cookie),
            _ => None,
        }
    }

    /// The name used in metrics, logs and documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Reply => "reply",
            Self::Member => "member",
            Self::Cookie => "cookie",
        }
    }
}

/// Why what came in an envelope, or should have, was dropped before anybody looked at it: the index of a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum EnvelopeRefusal {
    /// A packet without an envelope.
    Bare = 0x01,
    /// Too short, of an unknown kind, or with a packet that cannot be in an envelope of its kind.
    Malformed = 0x02,
    /// Of a period whose keys are not here: over, or not yet.
    Period = 0x03,
    /// From an address that its kind cannot come from.
    Sender = 0x04,
    /// Whoever sent it has not got the keys: the edge tag is wrong.
    Edge = 0x05,
    /// The packet is not as its author wrote it: the end tag is wrong.
    End = 0x06,
    /// The client may not do that in that keyspace.
    Right = 0x07,
    /// From a client that has yet to show that it receives. It was sent a cookie.
    NoCookie = 0x08,
}

impl EnvelopeRefusal {
    /// Every value, in the order of the specification.
    pub const ALL: [Self; 8] = [
        Self::Bare,
        Self::Malformed,
        Self::Period,
        Self::Sender,
        Self::Edge,
        Self::End,
        Self::Right,
        Self::NoCookie,
    ];

    /// The value that this byte stands for, if any.
    #[must_use]
    pub const fn from_wire(byte: u8) -> Option<Self> {
        match byte {
            0x01 => Some(Self::Bare),
            0x02 => Some(Self::Malformed),
            0x03 => Some(Self::Period),
            0x04 => Some(Self::Sender),
            0x05 => Some(Self::Edge),
            0x06 => Some(Self::End),
            0x07 => Some(Self::Right),
            0x08 => Some(Self::NoCookie),
            _ => None,
        }
    }

    /// The name used in metrics, logs and documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bare => "bare",
            Self::Malformed => "malformed",
            Self::Period => "period",
            Self::Sender => "sender",
            Self::Edge => "edge",
            Self::End => "end",
            Self::Right => "right",
            Self::NoCookie => "no_cookie",
        }
    }
}

/// How much room a node has for new data, from much to none: `count` of CHAIN_ACK and CHAIN_COMMIT.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Room {
    /// Everything is taken.
    Plenty = 0x00,
    /// Nothing that can wait: no parts of big values, and no pieces of copies.
    Tight = 0x01,
    /// Nothing that grows: no new keys, no longer values.
    Full = 0x02,
    /// Nothing but deletes: whatever is written takes room on the disk first.
    Shut = 0x03,
}

impl Room {
    /// Every value, in the order of the specification.
    pub const ALL: [Self; 4] = [Self::Plenty, Self::Tight, Self::Full, Self::Shut];

    /// The value that this byte stands for, if any.
    #[must_use]
    pub const fn from_wire(byte: u8) -> Option<Self> {
        match byte {
            0x00 => Some(Self::Plenty),
            0x01 => Some(Self::Tight),
            0x02 => Some(Self::Full),
            0x03 => Some(Self::Shut),
            _ => None,
        }
    }

    /// The name used in metrics, logs and documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plenty => "plenty",
            Self::Tight => "tight",
            Self::Full => "full",
            Self::Shut => "shut",
        }
    }
}

/// What a chain write does to its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Effect {
    /// Nothing: a read-modify-write that failed, recorded so that the tail can answer it.
    None = 0x00,
    /// Replaces the value.
    Put = 0x01,
    /// Leaves a tombstone.
    Delete = 0x02,
    /// The key is hot from here on; its state stays as it is.
    Register = 0x03,
    /// The key is hot no more; its state stays as it is.
    Unregister = 0x04,
    /// The key's writes go anywhere from here on; its state stays as it is.
    Delegate = 0x05,
    /// The key is home again, with the newest write of its delegation.
    Recall = 0x06,
    /// Changes several keys at once, or none of some that it depends on: the value is a list of `chain_step`.
    Batch = 0x07,
    /// The parts of an upload that no manifest names are dropped; the key's state stays as it is.
    Abandon = 0x08,
}

impl Effect {
    /// Every value, in the order of the specification.
    pub const ALL: [Self; 9] = [
        Self::None,
        Self::Put,
        Self::Delete,
        Self::Register,
        Self::Unregister,
        Self::Delegate,
        Self::Recall,
        Self::Batch,
        Self::Abandon,
    ];

    /// The value that this byte stands for, if any.
    #[must_use]
    pub const fn from_wire(byte: u8) -> Option<Self> {
        match byte {
            0x00 => Some(Self::None),
            0x01 => Some(Self::Put),
            0x02 => Some(Self::Delete),
            0x03 => Some(Self::Register),
            0x04 => Some(Self::Unregister),
            0x05 => Some(Self::Delegate),
            0x06 => Some(Self::Recall),
            0x07 => Some(Self::Batch),
            0x08 => Some(Self::Abandon),
            _ => None,
        }
    }

    /// The name used in metrics, logs and documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Put => "put",
            Self::Delete => "delete",
            Self::Register => "register",
            Self::Unregister => "unregister",
            Self::Delegate => "delegate",
            Self::Recall => "recall",
            Self::Batch => "batch",
            Self::Abandon => "abandon",
        }
    }
}

/// Bits of `flags`.
pub mod flag {
    /// CAS: compare the value, not the version.
    pub const CAS_VALUE: u8 = 1 << 0;
    /// RANGE: entries without their values.
    pub const KEYS_ONLY: u8 = 1 << 0;
    /// MGET: its keys are sorted by node, and `group_ends`, `group` and `group_partitions` say how: hints, on which no answer depends.
    pub const GROUPED: u8 = 1 << 0;
    /// CAS: delete the key; there is no new value.
    pub const CAS_DELETE: u8 = 1 << 1;
    /// CAS: write the value that is there again, with another expiry; there is no new value.
    pub const CAS_KEEP_VALUE: u8 = 1 << 2;
    /// RANGE: from the end of the interval to its start.
    pub const REVERSE: u8 = 1 << 1;
    /// RANGE: the start key itself is outside.
    pub const START_EXCLUSIVE: u8 = 1 << 2;
    /// RANGE: the end key itself is outside.
    pub const END_EXCLUSIVE: u8 = 1 << 3;
    /// RANGE: no start key, from the first key of the keyspace.
    pub const START_OPEN: u8 = 1 << 4;
    /// RANGE: no end key, to the last key of the keyspace.
    pub const END_OPEN: u8 = 1 << 5;
    /// RANGE reply: covers the interval only up to and including its last entry's key.
    pub const PARTIAL: u8 = 1 << 6;
    /// PUT, DEL, CAS, INCR, BATCH: the payload ends with `since`. CHAIN_WRITE: never.
    pub const SINCE: u8 = 1 << 6;
    /// PUT, CAS: keep the expiry that the present value has.
    pub const KEEP_EXPIRY: u8 = 1 << 7;
    /// RANGE and its reply: only how many keys have a value.
    pub const COUNT_ONLY: u8 = 1 << 7;
    /// GET, MGET: only the tail is to answer, though the key is hot.
    pub const AT_HOME: u8 = 1 << 7;
}

/// Bits of `hop_flags`.
pub mod hop_flag {
    /// No switch on the way: the node answers straight to `reply_addr`.
    pub const DIRECT: u8 = 1 << 0;
    /// GET: stamped by an entry of the coherence directory: `object_version` is the floor, `generation` the entry's.
    pub const HOT: u8 = 1 << 2;
    /// GET reply: from the tail of a registered key, whose newest committed version this is.
    pub const NEWEST: u8 = 1 << 3;
    /// PUT, DELEGATION_WRITE: sent by its grant, with `delegation`, a version and a chain of its own. PUT reply: to one of those. HOT_COPY and DELEGATION_COMMIT: of one whose readers the switch has chosen; not answered.
    pub const GRANTED: u8 = 1 << 4;
    /// PUT to the head: first sent before this switch's directory began; another may have given it a grant.
    pub const OLD: u8 = 1 << 5;
    /// PUT to the head: its key is delegated, and the switch has no room to remember a grant for it.
    pub const CROWDED: u8 = 1 << 6;
    /// GET, from a cache to the tail: the cache does not hold the key. Nobody else is believed.
    pub const MISSED: u8 = 1 << 7;
    /// RANGE: the last piece the switch was allowed to make; the interval goes on after it.
    pub const CUT: u8 = 1 << 1;
    /// With DIRECT, requests about one key: sent to the content address of the key, and stamped by nobody. Replies, and what goes down the chain: of such a request.
    pub const BY_ADDRESS: u8 = 1 << 1;
}

/// A header as its author decides it: the fields in host order, without magic, version and tag, which [`write`](Self::write) and [`seal`](crate::seal) fill in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// Bits of `hop_flag`: what the switch tells the node and, echoed in the reply, the client.
    pub hop_flags: u8,
    /// Id of the partition that the switch matched; 0 in an MGET, whose keys may have several.
    pub partition: u32,
    /// Configuration number of that partition as the switch knew it. A node refuses any but its own.
    pub epoch: u32,
    /// MGET: bit i set means that key i is to be answered (request) or is answered here (reply). CHAIN_WRITE: bit i set means that the member at place i of the chain sent it on before it was on its disk.
    pub bitmap: u32,
    /// Id of the node that sent a reply or a chain message; 0 from clients.
    pub node: u16,
    /// In-band load report of that node: datagrams it found waiting when it took this one, saturating.
    pub load: u16,
    /// IPv6 (or IPv4-mapped) address of the client. Written by the switch from the source address.
    pub reply_addr: [u8; 16],
    /// UDP port of the client.
    pub reply_port: u16,
    /// How many entries of `chain` are used. A read carries only the tail.
    pub chain_len: u8,
    /// Index in `chain` of the node that this packet is for.
    pub chain_pos: u8,
    /// Node ids, 2 bytes each, head first, tail last. In a PUT or DELEGATION_WRITE with the hop flag GRANTED the places after those name the readers that it is copied to; 65535: nobody.
    pub chain: [u8; 16],
    /// Match value of the key. RANGE: first match value of the interval asked for or covered.
    pub match_value: u128,
    /// 64-bit hash of keyspace and key; what the coherence directory and the caches match on.
    pub keyhash: u64,
    /// Version of the value in a reply, of the write in a chain message; 0 if there is none. In a GET with the hop flag HOT: the floor, the least version that may be answered with. In a PUT from a switch: the version of its grant, or 0.
    pub object_version: Version,
    /// Operation, a value of `op`. Replies have the high bit set.
    pub op: u8,
    /// Bits of `flag`: variants of the operation, chosen by its author.
    pub flags: u8,
    /// Id of the keyspace.
    pub keyspace: u16,
    /// Bytes of key in the payload (RANGE: of the start key).
    pub key_len: u16,
    /// Bytes after the header; the datagram ends there.
    pub payload_len: u16,
    /// Client id, drawn at random when the client starts. With `seq` the request id.
    pub client: u64,
    /// Sequence number of the request within the client, from 1. A retransmission repeats it.
    pub seq: u64,
    /// seq - lag is the client's low-water mark: every request below it has ended, whatever its outcome.
    pub lag: u16,
    /// Outcome, a value of `code`; 0 in requests.
    pub code: u8,
    /// MGET: keys in the request. RANGE: most pieces the switch may make (request), entries (reply).
    pub count: u8,
}

impl Header {
    /// Writes every field but the tag, which is left zero.
    pub fn write(&self, out: &mut [u8; HEADER_LEN]) {
        *out = [0; HEADER_LEN];
        out.set_magic(MAGIC);
        out.set_version(VERSION);
        out.set_hop_flags(self.hop_flags);
        out.set_partition(self.partition);
        out.set_epoch(self.epoch);
        out.set_bitmap(self.bitmap);
        out.set_node(self.node);
        out.set_load(self.load);
        out.set_reply_addr(self.reply_addr);
        out.set_reply_port(self.reply_port);
        out.set_chain_len(self.chain_len);
        out.set_chain_pos(self.chain_pos);
        out.set_chain(self.chain);
        out.set_match_value(self.match_value);
        out.set_keyhash(self.keyhash);
        out.set_object_version(self.object_version);
        out.set_op(self.op);
        out.set_flags(self.flags);
        out.set_keyspace(self.keyspace);
        out.set_key_len(self.key_len);
        out.set_payload_len(self.payload_len);
        out.set_client(self.client);
        out.set_seq(self.seq);
        out.set_lag(self.lag);
        out.set_code(self.code);
        out.set_count(self.count);
    }

    /// Reads every field.
    #[must_use]
    pub fn read(bytes: &[u8; HEADER_LEN]) -> Self {
        Self {
            hop_flags: bytes.hop_flags(),
            partition: bytes.partition(),
            epoch: bytes.epoch(),
            bitmap: bytes.bitmap(),
            node: bytes.node(),
            load: bytes.load(),
            reply_addr: bytes.reply_addr(),
            reply_port: bytes.reply_port(),
            chain_len: bytes.chain_len(),
            chain_pos: bytes.chain_pos(),
            chain: bytes.chain(),
            match_value: bytes.match_value(),
            keyhash: bytes.keyhash(),
            object_version: bytes.object_version(),
            op: bytes.op(),
            flags: bytes.flags(),
            keyspace: bytes.keyspace(),
            key_len: bytes.key_len(),
            payload_len: bytes.payload_len(),
            client: bytes.client(),
            seq: bytes.seq(),
            lag: bytes.lag(),
            code: bytes.code(),
            count: bytes.count(),
        }
    }
}

/// The header fields in place, for readers and rewriters of raw bytes.
pub trait Fields {
    /// 0x4b57, "KW". Anything else on the port is somebody else's packet.
    #[must_use]
    fn magic(&self) -> u16;
    /// Overwrites `magic`.
    fn set_magic(&mut self, value: u16);
    /// Version of this layout.
    #[must_use]
    fn version(&self) -> u8;
    /// Overwrites `version`.
    fn set_version(&mut self, value: u8);
    /// Bits of `hop_flag`: what the switch tells the node and, echoed in the reply, the client.
    #[must_use]
    fn hop_flags(&self) -> u8;
    /// Overwrites `hop_flags`.
    fn set_hop_flags(&mut self, value: u8);
    /// CRC32C over the end-to-end part of the header and the payload that follows the slots.
    #[must_use]
    fn tag(&self) -> u32;
    /// Overwrites `tag`.
    fn set_tag(&mut self, value: u32);
    /// Id of the partition that the switch matched; 0 in an MGET, whose keys may have several.
    #[must_use]
    fn partition(&self) -> u32;
    /// Overwrites `partition`.
    fn set_partition(&mut self, value: u32);
    /// Configuration number of that partition as the switch knew it. A node refuses any but its own.
    #[must_use]
    fn epoch(&self) -> u32;
    /// Overwrites `epoch`.
    fn set_epoch(&mut self, value: u32);
    /// MGET: bit i set means that key i is to be answered (request) or is answered here (reply). CHAIN_WRITE: bit i set means that the member at place i of the chain sent it on before it was on its disk.
    #[must_use]
    fn bitmap(&self) -> u32;
    /// Overwrites `bitmap`.
    fn set_bitmap(&mut self, value: u32);
    /// Id of the node that sent a reply or a chain message; 0 from clients.
    #[must_use]
    fn node(&self) -> u16;
    /// Overwrites `node`.
    fn set_node(&mut self, value: u16);
    /// In-band load report of that node: datagrams it found waiting when it took this one, saturating.
    #[must_use]
    fn load(&self) -> u16;
    /// Overwrites `load`.
    fn set_load(&mut self, value: u16);
    /// IPv6 (or IPv4-mapped) address of the client. Written by the switch from the source address.
    #[must_use]
    fn reply_addr(&self) -> [u8; 16];
    /// Overwrites `reply_addr`.
    fn set_reply_addr(&mut self, value: [u8; 16]);
    /// UDP port of the client.
    #[must_use]
    fn reply_port(&self) -> u16;
    /// Overwrites `reply_port`.
    fn set_reply_port(&mut self, value: u16);
    /// How many entries of `chain` are used. A read carries only the tail.
    #[must_use]
    fn chain_len(&self) -> u8;
    /// Overwrites `chain_len`.
    fn set_chain_len(&mut self, value: u8);
    /// Index in `chain` of the node that this packet is for.
    #[must_use]
    fn chain_pos(&self) -> u8;
    /// Overwrites `chain_pos`.
    fn set_chain_pos(&mut self, value: u8);
    /// Node ids, 2 bytes each, head first, tail last. In a PUT or DELEGATION_WRITE with the hop flag GRANTED the places after those name the readers that it is copied to; 65535: nobody.
    #[must_use]
    fn chain(&self) -> [u8; 16];
    /// Overwrites `chain`.
    fn set_chain(&mut self, value: [u8; 16]);
    /// Match value of the key. RANGE: first match value of the interval asked for or covered.
    #[must_use]
    fn match_value(&self) -> u128;
    /// Overwrites `match`.
    fn set_match_value(&mut self, value: u128);
    /// 64-bit hash of keyspace and key; what the coherence directory and the caches match on.
    #[must_use]
    fn keyhash(&self) -> u64;
    /// Overwrites `keyhash`.
    fn set_keyhash(&mut self, value: u64);
    /// Operation, a value of `op`. Replies have the high bit set.
    #[must_use]
    fn op(&self) -> u8;
    /// Overwrites `op`.
    fn set_op(&mut self, value: u8);
    /// Bits of `flag`: variants of the operation, chosen by its author.
    #[must_use]
    fn flags(&self) -> u8;
    /// Overwrites `flags`.
    fn set_flags(&mut self, value: u8);
    /// Id of the keyspace.
    #[must_use]
    fn keyspace(&self) -> u16;
    /// Overwrites `keyspace`.
    fn set_keyspace(&mut self, value: u16);
    /// Bytes of key in the payload (RANGE: of the start key).
    #[must_use]
    fn key_len(&self) -> u16;
    /// Overwrites `key_len`.
    fn set_key_len(&mut self, value: u16);
    /// Bytes after the header; the datagram ends there.
    #[must_use]
    fn payload_len(&self) -> u16;
    /// Overwrites `payload_len`.
    fn set_payload_len(&mut self, value: u16);
    /// Client id, drawn at random when the client starts. With `seq` the request id.
    #[must_use]
    fn client(&self) -> u64;
    /// Overwrites `client`.
    fn set_client(&mut self, value: u64);
    /// Sequence number of the request within the client, from 1. A retransmission repeats it.
    #[must_use]
    fn seq(&self) -> u64;
    /// Overwrites `seq`.
    fn set_seq(&mut self, value: u64);
    /// seq - lag is the client's low-water mark: every request below it has ended, whatever its outcome.
    #[must_use]
    fn lag(&self) -> u16;
    /// Overwrites `lag`.
    fn set_lag(&mut self, value: u16);
    /// Outcome, a value of `code`; 0 in requests.
    #[must_use]
    fn code(&self) -> u8;
    /// Overwrites `code`.
    fn set_code(&mut self, value: u8);
    /// MGET: keys in the request. RANGE: most pieces the switch may make (request), entries (reply).
    #[must_use]
    fn count(&self) -> u8;
    /// Overwrites `count`.
    fn set_count(&mut self, value: u8);
}

impl Fields for [u8; HEADER_LEN] {
    #[inline]
    fn magic(&self) -> u16 {
        u16::from_be_bytes(crate::bytes::get::<0, 2, HEADER_LEN>(self))
    }
    #[inline]
    fn set_magic(&mut self, value: u16) {
        crate::bytes::put::<0, 2, HEADER_LEN>(self, value.to_be_bytes());
    }
    #[inline]
    fn version(&self) -> u8 {
        u8::from_be_bytes(crate::bytes::get::<2, 1, HEADER_LEN>(self))
    }
    #[inline]
    fn set_version(&mut self, value: u8) {
        crate::bytes::put::<2, 1, HEADER_LEN>(self, value.to_be_bytes());
    }
    #[inline]
    fn hop_flags(&self) -> u8 {
        u8::from_be_bytes(crate::bytes::get::<3, 1, HEADER_LEN>(self))
    }
    #[inline]
    fn set_hop_flags(&mut self, value: u8) {
        crate::bytes::put::<3, 1, HEADER_LEN>(self, value.to_be_bytes());
    }
    #[inline]
    fn tag(&self) -> u32 {
        u32::from_be_bytes(crate::bytes::get::<4, 4, HEADER_LEN>(self))
    }
    #[inline]
    fn set_tag(&mut self, value: u32) {
        crate::bytes::put::<4, 4, HEADER_LEN>(self, value.to_be_bytes());
    }
    #[inline]
    fn partition(&self) -> u32 {
        u32::from_be_bytes(crate::bytes::get::<8, 4, HEADER_LEN>(self))
    }
    #[inline]
    fn set_partition(&mut self, value: u32) {
        crate::bytes::put::<8, 4, HEADER_LEN>(self, value.to_be_bytes());
    }
    #[inline]
    fn epoch(&self) -> u32 {
        u32::from_be_bytes(crate::bytes::get::<12, 4, HEADER_LEN>(self))
    }
    #[inline]
    fn set_epoch(&mut self, value: u32) {
        crate::bytes::put::<12, 4, HEADER_LEN>(self, value.to_be_bytes());
    }
    #[inline]
    fn bitmap(&self) -> u32 {
        u32::from_be_bytes(crate::bytes::get::<16, 4, HEADER_LEN>(self))
    }
    #[inline]
    fn set_bitmap(&mut self, value: u32) {
        crate::bytes::put::<16, 4, HEADER_LEN>(self, value.to_be_bytes());
    }
    #[inline]
    fn node(&self) -> u16 {
        u16::from_be_bytes(crate::bytes::get::<20, 2, HEADER_LEN>(self))
    }
    #[inline]
    fn set_node(&mut self, value: u16) {
        crate::bytes::put::<20, 2, HEADER_LEN>(self, value.to_be_bytes());
    }
    #[inline]
    fn load(&self) -> u16 {
        u16::from_be_bytes(crate::bytes::get::<22, 2, HEADER_LEN>(self))
    }
    #[inline]
    fn set_load(&mut self, value: u16) {
        crate::bytes::put::<22, 2, HEADER_LEN>(self, value.to_be_bytes());
    }
    #[inline]
    fn reply_addr(&self) -> [u8; 16] {
        crate::bytes::get::<24, 16, HEADER_LEN>(self)
    }
    #[inline]
    fn set_reply_addr(&mut self, value: [u8; 16]) {
        crate::bytes::put::<24, 16, HEADER_LEN>(self, value);
    }
    #[inline]
    fn reply_port(&self) -> u16 {
        u16::from_be_bytes(crate::bytes::get::<40, 2, HEADER_LEN>(self))
    }
    #[inline]
    fn set_reply_port(&mut self, value: u16) {
        crate::bytes::put::<40, 2, HEADER_LEN>(self, value.to_be_bytes());
    }
    #[inline]
    fn chain_len(&self) -> u8 {
        u8::from_be_bytes(crate::bytes::get::<42, 1, HEADER_LEN>(self))
    }
    #[inline]
    fn set_chain_len(&mut self, value: u8) {
        crate::bytes::put::<42, 1, HEADER_LEN>(self, value.to_be_bytes());
    }
    #[inline]
    fn chain_pos(&self) -> u8 {
        u8::from_be_bytes(crate::bytes::get::<43, 1, HEADER_LEN>(self))
    }
    #[inline]
    fn set_chain_pos(&mut self, value: u8) {
        crate::bytes::put::<43, 1, HEADER_LEN>(self, value.to_be_bytes());
    }
    #[inline]
    fn chain(&self) -> [u8; 16] {
        crate::bytes::get::<44, 16, HEADER_LEN>(self)
    }
    #[inline]
    fn set_chain(&mut self, value: [u8; 16]) {
        crate::bytes::put::<44, 16, HEADER_LEN>(self, value);
    }
    #[inline]
    fn match_value(&self) -> u128 {
        u128::from_be_bytes(crate::bytes::get::<60, 16, HEADER_LEN>(self))
    }
    #[inline]
    fn set_match_value(&mut self, value: u128) {
        crate::bytes::put::<60, 16, HEADER_LEN>(self, value.to_be_bytes());
    }
    #[inline]
    fn keyhash(&self) -> u64 {
        u64::from_be_bytes(crate::bytes::get::<76, 8, HEADER_LEN>(self))
    }
    #[inline]
    fn set_keyhash(&mut self, value: u64) {
        crate::bytes::put::<76, 8, HEADER_LEN>(self, value.to_be_bytes());
    }
    #[inline]
    fn op(&self) -> u8 {
        u8::from_be_bytes(crate::bytes::get::<92, 1, HEADER_LEN>(self))
    }
    #[inline]
    fn set_op(&mut self, value: u8) {
        crate::bytes::put::<92, 1, HEADER_LEN>(self, value.to_be_bytes());
    }
    #[inline]
    fn flags(&self) -> u8 {
        u8::from_be_bytes(crate::bytes::get::<93, 1, HEADER_LEN>(self))
    }
    #[inline]
    fn set_flags(&mut self, value: u8) {
        crate::bytes::put::<93, 1, HEADER_LEN>(self, value.to_be_bytes());
    }
    #[inline]
    fn keyspace(&self) -> u16 {
        u16::from_be_bytes(crate::bytes::get::<94, 2, HEADER_LEN>(self))
    }
    #[inline]
    fn set_keyspace(&mut self, value: u16) {
        crate::bytes::put::<94, 2, HEADER_LEN>(self, value.to_be_bytes());
    }
    #[inline]
    fn key_len(&self) -> u16 {
        u16::from_be_bytes(crate::bytes::get::<96, 2, HEADER_LEN>(self))
    }
    #[inline]
    fn set_key_len(&mut self, value: u16) {
        crate::bytes::put::<96, 2, HEADER_LEN>(self, value.to_be_bytes());
    }
    #[inline]
    fn payload_len(&self) -> u16 {
        u16::from_be_bytes(crate::bytes::get::<98, 2, HEADER_LEN>(self))
    }
    #[inline]
    fn set_payload_len(&mut self, value: u16) {
        crate::bytes::put::<98, 2, HEADER_LEN>(self, value.to_be_bytes());
    }
    #[inline]
    fn client(&self) -> u64 {
        u64::from_be_bytes(crate::bytes::get::<100, 8, HEADER_LEN>(self))
    }
    #[inline]
    fn set_client(&mut self, value: u64) {
        crate::bytes::put::<100, 8, HEADER_LEN>(self, value.to_be_bytes());
    }
    #[inline]
    fn seq(&self) -> u64 {
        u64::from_be_bytes(crate::bytes::get::<108, 8, HEADER_LEN>(self))
    }
    #[inline]
    fn set_seq(&mut self, value: u64) {
        crate::bytes::put::<108, 8, HEADER_LEN>(self, value.to_be_bytes());
    }
    #[inline]
    fn lag(&self) -> u16 {
        u16::from_be_bytes(crate::bytes::get::<116, 2, HEADER_LEN>(self))
    }
    #[inline]
    fn set_lag(&mut self, value: u16) {
        crate::bytes::put::<116, 2, HEADER_LEN>(self, value.to_be_bytes());
    }
    #[inline]
    fn code(&self) -> u8 {
        u8::from_be_bytes(crate::bytes::get::<118, 1, HEADER_LEN>(self))
    }
    #[inline]
    fn set_code(&mut self, value: u8) {
        crate::bytes::put::<118, 1, HEADER_LEN>(self, value.to_be_bytes());
    }
    #[inline]
    fn count(&self) -> u8 {
        u8::from_be_bytes(crate::bytes::get::<119, 1, HEADER_LEN>(self))
    }
    #[inline]
    fn set_count(&mut self, value: u8) {
        crate::bytes::put::<119, 1, HEADER_LEN>(self, value.to_be_bytes());
    }
}

/// Those that only messages read and write.
pub(crate) trait Said {
    /// Version of the value in a reply, of the write in a chain message; 0 if there is none. In a GET with the hop flag HOT: the floor, the least version that may be answered with. In a PUT from a switch: the version of its grant, or 0.
    #[must_use]
    fn object_version(&self) -> Version;
    /// Overwrites `object_version`.
    fn set_object_version(&mut self, value: Version);
    /// RANGE only, over keyhash and object_version, which a range has no use for: last match value of the interval, inclusive.
    #[must_use]
    fn match_end(&self) -> u128;
    /// Overwrites `match_end`.
    fn set_match_end(&mut self, value: u128);
    /// Replies only, over places of `chain`, which a reply has no use for: requests that the node can serve in a second at most; 0: not known. Means nothing unless `chain_len` is 0.
    #[must_use]
    fn rate(&self) -> u32;
    /// Overwrites `rate`.
    fn set_rate(&mut self, value: u32);
    /// MGET only, over places of `chain` that a read has no use for: bit i set means that slot i carries the directory's floor in place of the match value.
    #[must_use]
    fn hot_bitmap(&self) -> u32;
    /// Overwrites `hot_bitmap`.
    fn set_hot_bitmap(&mut self, value: u32);
    /// GET with the hop flag HOT, and its reply, over the last places of `chain`: generation of the directory's entry, to which the reply proves something.
    #[must_use]
    fn generation(&self) -> Generation;
    /// Overwrites `generation`.
    fn set_generation(&mut self, value: Generation);
    /// Writes, over what only MGET and replies need. From a client: the highest `reply_directory_clock` of all replies when it first sent the request. From a switch to a head: the switch's directory clock when it passed.
    #[must_use]
    fn directory_clock(&self) -> DirectoryClock;
    /// Overwrites `directory_clock`.
    fn set_directory_clock(&mut self, value: DirectoryClock);
    /// PUT with the hop flag GRANTED and DELEGATION_WRITE, at the place of `directory_clock`: number of the delegation of its grant.
    #[must_use]
    fn delegation(&self) -> DelegationId;
    /// Overwrites `delegation`.
    fn set_delegation(&mut self, value: DelegationId);
    /// Reply to a write with the code DELEGATED, at the place of `generation`: number of the delegation that the key is under, or 0.
    #[must_use]
    fn reply_delegation(&self) -> DelegationId;
    /// Overwrites `reply_delegation`.
    fn set_reply_delegation(&mut self, value: DelegationId);
    /// Replies to clients, over `generation`, of which they need nothing: the switch's directory clock when the reply passed.
    #[must_use]
    fn reply_directory_clock(&self) -> DirectoryClock;
    /// Overwrites `reply_directory_clock`.
    fn set_reply_directory_clock(&mut self, value: DirectoryClock);
    /// MGET with GROUPED, from a client, over `partition`: bit i set means that key i is the last of its group (KEYIDX of NetMC).
    #[must_use]
    fn group_ends(&self) -> u32;
    /// Overwrites `group_ends`.
    fn set_group_ends(&mut self, value: u32);
    /// MGET with GROUPED, from a client, over `epoch`: number of the first group that is left, from 0 (OID of NetMC).
    #[must_use]
    fn group(&self) -> u8;
    /// Overwrites `group`.
    fn set_group(&mut self, value: u8);
    /// MGET with GROUPED, from a client, over `match`, `keyhash` and `object_version`, which an MGET has no use for: for each group, in order, the id of a partition whose tail has its keys, 2 bytes each (SRV of NetMC).
    #[must_use]
    fn group_partitions(&self) -> [u8; 32];
    /// Overwrites `group_partitions`.
    fn set_group_partitions(&mut self, value: [u8; 32]);
    /// Copies and comparisons, at the place of `object_version`: number of the piece or of the question within the run.
    #[must_use]
    fn piece(&self) -> u64;
    /// Overwrites `piece`.
    fn set_piece(&mut self, value: u64);
    /// Copies and comparisons, at the place of `seq`: number of the run, which an answer repeats.
    #[must_use]
    fn run(&self) -> u64;
    /// Overwrites `run`.
    fn set_run(&mut self, value: u64);
    /// CHAIN_STABLE, at the place of `seq`: how many writes are committed up to the version in the header; 0: it does not say.
    #[must_use]
    fn writes(&self) -> u64;
    /// Overwrites `writes`.
    fn set_writes(&mut self, value: u64);
    /// CHAIN_ACK, CHAIN_COMMIT, at the place of `count`: the least room of the sender and of those behind it.
    #[must_use]
    fn room(&self) -> u8;
    /// Overwrites `room`.
    fn set_room(&mut self, value: u8);
    /// CHAIN_OFFER, and CHAIN_WRITE while the chain is closed, at the place of `count`: 1 if all that the write was computed from is committed at a sender.
    #[must_use]
    fn based(&self) -> u8;
    /// Overwrites `based`.
    fn set_based(&mut self, value: u8);
    /// DELEGATION_FOUND, at the place of `count`: 1 if this incarnation of the node was given no order older than the delegation.
    #[must_use]
    fn anew(&self) -> u8;
    /// Overwrites `anew`.
    fn set_anew(&mut self, value: u8);
}

impl Said for [u8; HEADER_LEN] {
    #[inline]
    fn object_version(&self) -> Version {
        Version::new(u64::from_be_bytes(crate::bytes::get::<84, 8, HEADER_LEN>(self)))
    }
    #[inline]
    fn set_object_version(&mut self, value: Version) {
        crate::bytes::put::<84, 8, HEADER_LEN>(self, value.get().to_be_bytes());
    }
    #[inline]
    fn match_end(&self) -> u128 {
        u128::from_be_bytes(crate::bytes::get::<76, 16, HEADER_LEN>(self))
    }
    #[inline]
    fn set_match_end(&mut self, value: u128) {
        crate::bytes::put::<76, 16, HEADER_LEN>(self, value.to_be_bytes());
    }
    #[inline]
    fn rate(&self) -> u32 {
        u32::from_be_bytes(crate::bytes::get::<44, 4, HEADER_LEN>(self))
    }
    #[inline]
    fn set_rate(&mut self, value: u32) {
        crate::bytes::put::<44, 4, HEADER_LEN>(self, value.to_be_bytes());
    }
    #[inline]
    fn hot_bitmap(&self) -> u32 {
        u32::from_be_bytes(crate::bytes::get::<48, 4, HEADER_LEN>(self))
    }
    #[inline]
    fn set_hot_bitmap(&mut self, value: u32) {
        crate::bytes::put::<48, 4, HEADER_LEN>(self, value.to_be_bytes());
    }
    #[inline]
    fn generation(&self) -> Generation {
        Generation::new(u64::from_be_bytes(crate::bytes::get::<52, 8, HEADER_LEN>(self)))
    }
    #[inline]
    fn set_generation(&mut self, value: Generation) {
        crate::bytes::put::<52, 8, HEADER_LEN>(self, value.get().to_be_bytes());
    }
    #[inline]
    fn directory_clock(&self) -> DirectoryClock {
        DirectoryClock::new(u64::from_be_bytes(crate::bytes::get::<16, 8, HEADER_LEN>(self)))
    }
    #[inline]
    fn set_directory_clock(&mut self, value: DirectoryClock) {
        crate::bytes::put::<16, 8, HEADER_LEN>(self, value.get().to_be_bytes());
    }
    #[inline]
    fn delegation(&self) -> DelegationId {
        DelegationId::new(u64::from_be_bytes(crate::bytes::get::<16, 8, HEADER_LEN>(self)))
    }
    #[inline]
    fn set_delegation(&mut self, value: DelegationId) {
        crate::bytes::put::<16, 8, HEADER_LEN>(self, value.get().to_be_bytes());
    }
    #[inline]
    fn reply_delegation(&self) -> DelegationId {
        DelegationId::new(u64::from_be_bytes(crate::bytes::get::<52, 8, HEADER_LEN>(self)))
    }
    #[inline]
    fn set_reply_delegation(&mut self, value: DelegationId) {
        crate::bytes::put::<52, 8, HEADER_LEN>(self, value.get().to_be_bytes());
    }
    #[inline]
    fn reply_directory_clock(&self) -> DirectoryClock {
        DirectoryClock::new(u64::from_be_bytes(crate::bytes::get::<52, 8, HEADER_LEN>(self)))
    }
    #[inline]
    fn set_reply_directory_clock(&mut self, value: DirectoryClock) {
        crate::bytes::put::<52, 8, HEADER_LEN>(self, value.get().to_be_bytes());
    }
    #[inline]
    fn group_ends(&self) -> u32 {
        u32::from_be_bytes(crate::bytes::get::<8, 4, HEADER_LEN>(self))
    }
    #[inline]
    fn set_group_ends(&mut self, value: u32) {
        crate::bytes::put::<8, 4, HEADER_LEN>(self, value.to_be_bytes());
    }
    #[inline]
    fn group(&self) -> u8 {
        u8::from_be_bytes(crate::bytes::get::<12, 1, HEADER_LEN>(self))
    }
    #[inline]
    fn set_group(&mut self, value: u8) {
        crate::bytes::put::<12, 1, HEADER_LEN>(self, value.to_be_bytes());
    }
    #[inline]
    fn group_partitions(&self) -> [u8; 32] {
        crate::bytes::get::<60, 32, HEADER_LEN>(self)
    }
    #[inline]
    fn set_group_partitions(&mut self, value: [u8; 32]) {
        crate::bytes::put::<60, 32, HEADER_LEN>(self, value);
    }
    #[inline]
    fn piece(&self) -> u64 {
        u64::from_be_bytes(crate::bytes::get::<84, 8, HEADER_LEN>(self))
    }
    #[inline]
    fn set_piece(&mut self, value: u64) {
        crate::bytes::put::<84, 8, HEADER_LEN>(self, value.to_be_bytes());
    }
    #[inline]
    fn run(&self) -> u64 {
        u64::from_be_bytes(crate::bytes::get::<108, 8, HEADER_LEN>(self))
    }
    #[inline]
    fn set_run(&mut self, value: u64) {
        crate::bytes::put::<108, 8, HEADER_LEN>(self, value.to_be_bytes());
    }
    #[inline]
    fn writes(&self) -> u64 {
        u64::from_be_bytes(crate::bytes::get::<108, 8, HEADER_LEN>(self))
    }
    #[inline]
    fn set_writes(&mut self, value: u64) {
        crate::bytes::put::<108, 8, HEADER_LEN>(self, value.to_be_bytes());
    }
    #[inline]
    fn room(&self) -> u8 {
        u8::from_be_bytes(crate::bytes::get::<119, 1, HEADER_LEN>(self))
    }
    #[inline]
    fn set_room(&mut self, value: u8) {
        crate::bytes::put::<119, 1, HEADER_LEN>(self, value.to_be_bytes());
    }
    #[inline]
    fn based(&self) -> u8 {
        u8::from_be_bytes(crate::bytes::get::<119, 1, HEADER_LEN>(self))
    }
    #[inline]
    fn set_based(&mut self, value: u8) {
        crate::bytes::put::<119, 1, HEADER_LEN>(self, value.to_be_bytes());
    }
    #[inline]
    fn anew(&self) -> u8 {
        u8::from_be_bytes(crate::bytes::get::<119, 1, HEADER_LEN>(self))
    }
    #[inline]
    fn set_anew(&mut self, value: u8) {
        crate::bytes::put::<119, 1, HEADER_LEN>(self, value.to_be_bytes());
    }
}

/// What stands before a packet where the network is not trusted: ENVELOPE_MAGIC; the low 8 bits of the period whose keys made the tags; in a Cookie the low 32 bits of `seq` of the request that it answers, else 0; the edge tag, of whoever sent the datagram; the end tag, of whoever wrote the packet, and in a Cookie the cookie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EnvelopeBody {
    /// 2 bytes, big-endian on the wire.
    pub magic: u16,
    /// 1 bytes, big-endian on the wire.
    pub kind: u8,
    /// 1 bytes, big-endian on the wire.
    pub period: u8,
    /// 4 bytes, big-endian on the wire.
    pub echo: u32,
    /// 8 bytes, big-endian on the wire.
    pub edge: u64,
    /// 8 bytes, big-endian on the wire.
    pub end: u64,
}

impl EnvelopeBody {
    /// Bytes on the wire.
    pub const LEN: usize = 24;

    /// Takes the fields off the front; `None` if there are too few bytes.
    #[must_use]
    pub fn split(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (fixed, rest) = bytes.split_first_chunk::<24>()?;
        Some((
            Self {
                magic: u16::from_be_bytes(crate::bytes::get::<0, 2, 24>(fixed)),
                kind: u8::from_be_bytes(crate::bytes::get::<2, 1, 24>(fixed)),
                period: u8::from_be_bytes(crate::bytes::get::<3, 1, 24>(fixed)),
                echo: u32::from_be_bytes(crate::bytes::get::<4, 4, 24>(fixed)),
                edge: u64::from_be_bytes(crate::bytes::get::<8, 8, 24>(fixed)),
                end: u64::from_be_bytes(crate::bytes::get::<16, 8, 24>(fixed)),
            },
            rest,
        ))
    }

    /// The fields as they stand on the wire.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 24] {
        let mut out = [0; 24];
        crate::bytes::put::<0, 2, 24>(&mut out, self.magic.to_be_bytes());
        crate::bytes::put::<2, 1, 24>(&mut out, self.kind.to_be_bytes());
        crate::bytes::put::<3, 1, 24>(&mut out, self.period.to_be_bytes());
        crate::bytes::put::<4, 4, 24>(&mut out, self.echo.to_be_bytes());
        crate::bytes::put::<8, 8, 24>(&mut out, self.edge.to_be_bytes());
        crate::bytes::put::<16, 8, 24>(&mut out, self.end.to_be_bytes());
        out
    }
}

/// PUT: expiry, 0 for never. With EXPIRY_SPAN_BIT how many milliseconds the value lives from when the head takes the write, else when it goes in Unix milliseconds. Then key, value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PutBody {
    /// 8 bytes, big-endian on the wire.
    pub expiry_ms: u64,
}

impl PutBody {
    /// Bytes on the wire.
    pub const LEN: usize = 8;

    /// Takes the fields off the front; `None` if there are too few bytes.
    #[must_use]
    pub fn split(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (fixed, rest) = bytes.split_first_chunk::<8>()?;
        Some((Self { expiry_ms: u64::from_be_bytes(crate::bytes::get::<0, 8, 8>(fixed)) }, rest))
    }

    /// The fields as they stand on the wire.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 8] {
        let mut out = [0; 8];
        crate::bytes::put::<0, 8, 8>(&mut out, self.expiry_ms.to_be_bytes());
        out
    }
}

/// CAS: expiry as in a PUT; the version to find (0: no value), or with CAS_VALUE the length of the value to find. Then key, expected value, new value (none with CAS_DELETE and CAS_KEEP_VALUE).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CasBody {
    /// 8 bytes, big-endian on the wire.
    pub expiry_ms: u64,
    /// 8 bytes, big-endian on the wire.
    pub expect_version: Version,
    /// 2 bytes, big-endian on the wire.
    pub expect_len: u16,
}

impl CasBody {
    /// Bytes on the wire.
    pub const LEN: usize = 18;

    /// Takes the fields off the front; `None` if there are too few bytes.
    #[must_use]
    pub fn split(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (fixed, rest) = bytes.split_first_chunk::<18>()?;
        Some((
            Self {
                expiry_ms: u64::from_be_bytes(crate::bytes::get::<0, 8, 18>(fixed)),
                expect_version: Version::new(u64::from_be_bytes(crate::bytes::get::<8, 8, 18>(
                    fixed,
                ))),
                expect_len: u16::from_be_bytes(crate::bytes::get::<16, 2, 18>(fixed)),
            },
            rest,
        ))
    }

    /// The fields as they stand on the wire.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 18] {
        let mut out = [0; 18];
        crate::bytes::put::<0, 8, 18>(&mut out, self.expiry_ms.to_be_bytes());
        crate::bytes::put::<8, 8, 18>(&mut out, self.expect_version.get().to_be_bytes());
        crate::bytes::put::<16, 2, 18>(&mut out, self.expect_len.to_be_bytes());
        out
    }
}

/// INCR: two's complement; DECR is a negative one. Then key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IncrBody {
    /// 8 bytes, big-endian on the wire.
    pub delta: u64,
}

impl IncrBody {
    /// Bytes on the wire.
    pub const LEN: usize = 8;

    /// Takes the fields off the front; `None` if there are too few bytes.
    #[must_use]
    pub fn split(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (fixed, rest) = bytes.split_first_chunk::<8>()?;
        Some((Self { delta: u64::from_be_bytes(crate::bytes::get::<0, 8, 8>(fixed)) }, rest))
    }

    /// The fields as they stand on the wire.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 8] {
        let mut out = [0; 8];
        crate::bytes::put::<0, 8, 8>(&mut out, self.delta.to_be_bytes());
        out
    }
}

/// RANGE: most entries wanted from a piece. Then start key (key_len), end key (the rest).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RangeBody {
    /// 4 bytes, big-endian on the wire.
    pub limit: u32,
}

impl RangeBody {
    /// Bytes on the wire.
    pub const LEN: usize = 4;

    /// Takes the fields off the front; `None` if there are too few bytes.
    #[must_use]
    pub fn split(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (fixed, rest) = bytes.split_first_chunk::<4>()?;
        Some((Self { limit: u32::from_be_bytes(crate::bytes::get::<0, 4, 4>(fixed)) }, rest))
    }

    /// The fields as they stand on the wire.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 4] {
        let mut out = [0; 4];
        crate::bytes::put::<0, 4, 4>(&mut out, self.limit.to_be_bytes());
        out
    }
}

/// BATCH: one step for each key, at most BATCH_STEPS_MAX, no key twice; the header is about the first. What must be there: condition 0 anything, 1 no value, 2 a value, 3 a value of this version (else `version` is 0). What is left there: effect None, Put (with an expiry as in a PUT) or Delete. Then key, value (only of a Put).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BatchStepBody {
    /// 1 bytes, big-endian on the wire.
    pub condition: u8,
    /// 1 bytes, big-endian on the wire.
    pub effect: u8,
    /// 8 bytes, big-endian on the wire.
    pub version: Version,
    /// 8 bytes, big-endian on the wire.
    pub expiry_ms: u64,
    /// 2 bytes, big-endian on the wire.
    pub key_len: u16,
    /// 2 bytes, big-endian on the wire.
    pub value_len: u16,
}

impl BatchStepBody {
    /// Bytes on the wire.
    pub const LEN: usize = 22;

    /// Takes the fields off the front; `None` if there are too few bytes.
    #[must_use]
    pub fn split(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (fixed, rest) = bytes.split_first_chunk::<22>()?;
        Some((
            Self {
                condition: u8::from_be_bytes(crate::bytes::get::<0, 1, 22>(fixed)),
                effect: u8::from_be_bytes(crate::bytes::get::<1, 1, 22>(fixed)),
                version: Version::new(u64::from_be_bytes(crate::bytes::get::<2, 8, 22>(fixed))),
                expiry_ms: u64::from_be_bytes(crate::bytes::get::<10, 8, 22>(fixed)),
                key_len: u16::from_be_bytes(crate::bytes::get::<18, 2, 22>(fixed)),
                value_len: u16::from_be_bytes(crate::bytes::get::<20, 2, 22>(fixed)),
            },
            rest,
        ))
    }

    /// The fields as they stand on the wire.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 22] {
        let mut out = [0; 22];
        crate::bytes::put::<0, 1, 22>(&mut out, self.condition.to_be_bytes());
        crate::bytes::put::<1, 1, 22>(&mut out, self.effect.to_be_bytes());
        crate::bytes::put::<2, 8, 22>(&mut out, self.version.get().to_be_bytes());
        crate::bytes::put::<10, 8, 22>(&mut out, self.expiry_ms.to_be_bytes());
        crate::bytes::put::<18, 2, 22>(&mut out, self.key_len.to_be_bytes());
        crate::bytes::put::<20, 2, 22>(&mut out, self.value_len.to_be_bytes());
        out
    }
}

/// Last bytes of a write with SINCE: the version that NO_SESSION named, which is above 0; and the sequence number that the client had not used yet when it was told: what it numbers from there on is sent after that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SinceBody {
    /// 8 bytes, big-endian on the wire.
    pub since: Version,
    /// 8 bytes, big-endian on the wire.
    pub next: u64,
}

impl SinceBody {
    /// Bytes on the wire.
    pub const LEN: usize = 16;

    /// Takes the fields off the front; `None` if there are too few bytes.
    #[must_use]
    pub fn split(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (fixed, rest) = bytes.split_first_chunk::<16>()?;
        Some((
            Self {
                since: Version::new(u64::from_be_bytes(crate::bytes::get::<0, 8, 16>(fixed))),
                next: u64::from_be_bytes(crate::bytes::get::<8, 8, 16>(fixed)),
            },
            rest,
        ))
    }

    /// The fields as they stand on the wire.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 16] {
        let mut out = [0; 16];
        crate::bytes::put::<0, 8, 16>(&mut out, self.since.get().to_be_bytes());
        crate::bytes::put::<8, 8, 16>(&mut out, self.next.to_be_bytes());
        out
    }
}

/// GET reply: when the value goes, 0 for never; what time it is, by the cluster's clock as the answering node knows it. Then the value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GetReplyBody {
    /// 8 bytes, big-endian on the wire.
    pub expiry_ms: u64,
    /// 8 bytes, big-endian on the wire.
    pub now_ms: u64,
}

impl GetReplyBody {
    /// Bytes on the wire.
    pub const LEN: usize = 16;

    /// Takes the fields off the front; `None` if there are too few bytes.
    #[must_use]
    pub fn split(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (fixed, rest) = bytes.split_first_chunk::<16>()?;
        Some((
            Self {
                expiry_ms: u64::from_be_bytes(crate::bytes::get::<0, 8, 16>(fixed)),
                now_ms: u64::from_be_bytes(crate::bytes::get::<8, 8, 16>(fixed)),
            },
            rest,
        ))
    }

    /// The fields as they stand on the wire.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 16] {
        let mut out = [0; 16];
        crate::bytes::put::<0, 8, 16>(&mut out, self.expiry_ms.to_be_bytes());
        crate::bytes::put::<8, 8, 16>(&mut out, self.now_ms.to_be_bytes());
        out
    }
}

/// RANGE reply with COUNT_ONLY: how many keys of what it covers have a value, and how many of these values go by themselves some day. Then, with PARTIAL, a hole: as far as it counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RangeCountBody {
    /// 8 bytes, big-endian on the wire.
    pub keys: u64,
    /// 8 bytes, big-endian on the wire.
    pub expiring: u64,
}

impl RangeCountBody {
    /// Bytes on the wire.
    pub const LEN: usize = 16;

    /// Takes the fields off the front; `None` if there are too few bytes.
    #[must_use]
    pub fn split(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (fixed, rest) = bytes.split_first_chunk::<16>()?;
        Some((
            Self {
                keys: u64::from_be_bytes(crate::bytes::get::<0, 8, 16>(fixed)),
                expiring: u64::from_be_bytes(crate::bytes::get::<8, 8, 16>(fixed)),
            },
            rest,
        ))
    }

    /// The fields as they stand on the wire.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 16] {
        let mut out = [0; 16];
        crate::bytes::put::<0, 8, 16>(&mut out, self.keys.to_be_bytes());
        crate::bytes::put::<8, 8, 16>(&mut out, self.expiring.to_be_bytes());
        out
    }
}

/// INCR reply: the sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IncrReplyBody {
    /// 8 bytes, big-endian on the wire.
    pub result: u64,
}

impl IncrReplyBody {
    /// Bytes on the wire.
    pub const LEN: usize = 8;

    /// Takes the fields off the front; `None` if there are too few bytes.
    #[must_use]
    pub fn split(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (fixed, rest) = bytes.split_first_chunk::<8>()?;
        Some((Self { result: u64::from_be_bytes(crate::bytes::get::<0, 8, 8>(fixed)) }, rest))
    }

    /// The fields as they stand on the wire.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 8] {
        let mut out = [0; 8];
        crate::bytes::put::<0, 8, 8>(&mut out, self.result.to_be_bytes());
        out
    }
}

/// BATCH reply: with `cas_mismatch` the first step whose condition did not hold, else 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BatchReplyBody {
    /// 1 bytes, big-endian on the wire.
    pub step: u8,
}

impl BatchReplyBody {
    /// Bytes on the wire.
    pub const LEN: usize = 1;

    /// Takes the fields off the front; `None` if there are too few bytes.
    #[must_use]
    pub fn split(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (fixed, rest) = bytes.split_first_chunk::<1>()?;
        Some((Self { step: u8::from_be_bytes(crate::bytes::get::<0, 1, 1>(fixed)) }, rest))
    }

    /// The fields as they stand on the wire.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 1] {
        let mut out = [0; 1];
        crate::bytes::put::<0, 1, 1>(&mut out, self.step.to_be_bytes());
        out
    }
}

/// DESCRIBE reply: hash seed, keyspace id, kind (0 hash, 1 range, 2 hash with content addresses). Then the common prefix of a range keyspace, or where content addresses begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DescribeReplyBody {
    /// 8 bytes, big-endian on the wire.
    pub seed: u64,
    /// 2 bytes, big-endian on the wire.
    pub id: u16,
    /// 1 bytes, big-endian on the wire.
    pub kind: u8,
}

impl DescribeReplyBody {
    /// Bytes on the wire.
    pub const LEN: usize = 11;

    /// Takes the fields off the front; `None` if there are too few bytes.
    #[must_use]
    pub fn split(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (fixed, rest) = bytes.split_first_chunk::<11>()?;
        Some((
            Self {
                seed: u64::from_be_bytes(crate::bytes::get::<0, 8, 11>(fixed)),
                id: u16::from_be_bytes(crate::bytes::get::<8, 2, 11>(fixed)),
                kind: u8::from_be_bytes(crate::bytes::get::<10, 1, 11>(fixed)),
            },
            rest,
        ))
    }

    /// The fields as they stand on the wire.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 11] {
        let mut out = [0; 11];
        crate::bytes::put::<0, 8, 11>(&mut out, self.seed.to_be_bytes());
        crate::bytes::put::<8, 2, 11>(&mut out, self.id.to_be_bytes());
        crate::bytes::put::<10, 1, 11>(&mut out, self.kind.to_be_bytes());
        out
    }
}

/// DESCRIBE reply of kind 2: the first 64 bits of a content address without class and keyspace, and the port of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContentRoutingBody {
    /// 8 bytes, big-endian on the wire.
    pub prefix: u64,
    /// 2 bytes, big-endian on the wire.
    pub port: u16,
}

impl ContentRoutingBody {
    /// Bytes on the wire.
    pub const LEN: usize = 10;

    /// Takes the fields off the front; `None` if there are too few bytes.
    #[must_use]
    pub fn split(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (fixed, rest) = bytes.split_first_chunk::<10>()?;
        Some((
            Self {
                prefix: u64::from_be_bytes(crate::bytes::get::<0, 8, 10>(fixed)),
                port: u16::from_be_bytes(crate::bytes::get::<8, 2, 10>(fixed)),
            },
            rest,
        ))
    }

    /// The fields as they stand on the wire.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 10] {
        let mut out = [0; 10];
        crate::bytes::put::<0, 8, 10>(&mut out, self.prefix.to_be_bytes());
        crate::bytes::put::<8, 2, 10>(&mut out, self.port.to_be_bytes());
        out
    }
}

/// CHAIN_WRITE: base: version it was computed from; stable: every version up to it is committed everywhere; result: what an INCR answers; origin: the client's operation; effect; ordered: 1 if it may be taken only on top of base. Then key, value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChainWriteBody {
    /// 8 bytes, big-endian on the wire.
    pub base: Version,
    /// 8 bytes, big-endian on the wire.
    pub stable: Version,
    /// 8 bytes, big-endian on the wire.
    pub expiry_ms: u64,
    /// 8 bytes, big-endian on the wire.
    pub result: ChainResult,
    /// 1 bytes, big-endian on the wire.
    pub origin: u8,
    /// 1 bytes, big-endian on the wire.
    pub effect: u8,
    /// 1 bytes, big-endian on the wire.
    pub ordered: u8,
}

impl ChainWriteBody {
    /// Bytes on the wire.
    pub const LEN: usize = 35;

    /// Takes the fields off the front; `None` if there are too few bytes.
    #[must_use]
    pub fn split(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (fixed, rest) = bytes.split_first_chunk::<35>()?;
        Some((
            Self {
                base: Version::new(u64::from_be_bytes(crate::bytes::get::<0, 8, 35>(fixed))),
                stable: Version::new(u64::from_be_bytes(crate::bytes::get::<8, 8, 35>(fixed))),
                expiry_ms: u64::from_be_bytes(crate::bytes::get::<16, 8, 35>(fixed)),
                result: ChainResult::new(u64::from_be_bytes(crate::bytes::get::<24, 8, 35>(fixed))),
                origin: u8::from_be_bytes(crate::bytes::get::<32, 1, 35>(fixed)),
                effect: u8::from_be_bytes(crate::bytes::get::<33, 1, 35>(fixed)),
                ordered: u8::from_be_bytes(crate::bytes::get::<34, 1, 35>(fixed)),
            },
            rest,
        ))
    }

    /// The fields as they stand on the wire.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 35] {
        let mut out = [0; 35];
        crate::bytes::put::<0, 8, 35>(&mut out, self.base.get().to_be_bytes());
        crate::bytes::put::<8, 8, 35>(&mut out, self.stable.get().to_be_bytes());
        crate::bytes::put::<16, 8, 35>(&mut out, self.expiry_ms.to_be_bytes());
        crate::bytes::put::<24, 8, 35>(&mut out, self.result.get().to_be_bytes());
        crate::bytes::put::<32, 1, 35>(&mut out, self.origin.to_be_bytes());
        crate::bytes::put::<33, 1, 35>(&mut out, self.effect.to_be_bytes());
        crate::bytes::put::<34, 1, 35>(&mut out, self.ordered.to_be_bytes());
        out
    }
}

/// CHAIN_DURABLE, for each write: its version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChainDurableBody {
    /// 8 bytes, big-endian on the wire.
    pub version: Version,
}

impl ChainDurableBody {
    /// Bytes on the wire.
    pub const LEN: usize = 8;

    /// Takes the fields off the front; `None` if there are too few bytes.
    #[must_use]
    pub fn split(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (fixed, rest) = bytes.split_first_chunk::<8>()?;
        Some((
            Self { version: Version::new(u64::from_be_bytes(crate::bytes::get::<0, 8, 8>(fixed))) },
            rest,
        ))
    }

    /// The fields as they stand on the wire.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 8] {
        let mut out = [0; 8];
        crate::bytes::put::<0, 8, 8>(&mut out, self.version.get().to_be_bytes());
        out
    }
}

/// CHAIN_STABLE: the sum over the versions committed up to the one in the header (protocol.md section 6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChainStableBody {
    /// 8 bytes, big-endian on the wire.
    pub history: u64,
}

impl ChainStableBody {
    /// Bytes on the wire.
    pub const LEN: usize = 8;

    /// Takes the fields off the front; `None` if there are too few bytes.
    #[must_use]
    pub fn split(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (fixed, rest) = bytes.split_first_chunk::<8>()?;
        Some((Self { history: u64::from_be_bytes(crate::bytes::get::<0, 8, 8>(fixed)) }, rest))
    }

    /// The fields as they stand on the wire.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 8] {
        let mut out = [0; 8];
        crate::bytes::put::<0, 8, 8>(&mut out, self.history.to_be_bytes());
        out
    }
}

/// Value of a CHAIN_WRITE with the effect BATCH, for each key: effect None, Put or Delete; base: a version that must have arrived before, and of a key that is only checked the one found. Then key, value. The key of the CHAIN_WRITE is the first one's and not there a second time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChainStepBody {
    /// 1 bytes, big-endian on the wire.
    pub effect: u8,
    /// 8 bytes, big-endian on the wire.
    pub base: Version,
    /// 8 bytes, big-endian on the wire.
    pub expiry_ms: u64,
    /// 2 bytes, big-endian on the wire.
    pub key_len: u16,
    /// 2 bytes, big-endian on the wire.
    pub value_len: u16,
}

impl ChainStepBody {
    /// Bytes on the wire.
    pub const LEN: usize = 21;

    /// Takes the fields off the front; `None` if there are too few bytes.
    #[must_use]
    pub fn split(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (fixed, rest) = bytes.split_first_chunk::<21>()?;
        Some((
            Self {
                effect: u8::from_be_bytes(crate::bytes::get::<0, 1, 21>(fixed)),
                base: Version::new(u64::from_be_bytes(crate::bytes::get::<1, 8, 21>(fixed))),
                expiry_ms: u64::from_be_bytes(crate::bytes::get::<9, 8, 21>(fixed)),
                key_len: u16::from_be_bytes(crate::bytes::get::<17, 2, 21>(fixed)),
                value_len: u16::from_be_bytes(crate::bytes::get::<19, 2, 21>(fixed)),
            },
            rest,
        ))
    }

    /// The fields as they stand on the wire.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 21] {
        let mut out = [0; 21];
        crate::bytes::put::<0, 1, 21>(&mut out, self.effect.to_be_bytes());
        crate::bytes::put::<1, 8, 21>(&mut out, self.base.get().to_be_bytes());
        crate::bytes::put::<9, 8, 21>(&mut out, self.expiry_ms.to_be_bytes());
        crate::bytes::put::<17, 2, 21>(&mut out, self.key_len.to_be_bytes());
        crate::bytes::put::<19, 2, 21>(&mut out, self.value_len.to_be_bytes());
        out
    }
}

/// HOT_COPY: kind 0 is a value, kind 1 its absence. Then key, value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HotCopyBody {
    /// 1 bytes, big-endian on the wire.
    pub kind: u8,
    /// 8 bytes, big-endian on the wire.
    pub expiry_ms: u64,
}

impl HotCopyBody {
    /// Bytes on the wire.
    pub const LEN: usize = 9;

    /// Takes the fields off the front; `None` if there are too few bytes.
    #[must_use]
    pub fn split(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (fixed, rest) = bytes.split_first_chunk::<9>()?;
        Some((
            Self {
                kind: u8::from_be_bytes(crate::bytes::get::<0, 1, 9>(fixed)),
                expiry_ms: u64::from_be_bytes(crate::bytes::get::<1, 8, 9>(fixed)),
            },
            rest,
        ))
    }

    /// The fields as they stand on the wire.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 9] {
        let mut out = [0; 9];
        crate::bytes::put::<0, 1, 9>(&mut out, self.kind.to_be_bytes());
        crate::bytes::put::<1, 8, 9>(&mut out, self.expiry_ms.to_be_bytes());
        out
    }
}

/// Value of a CHAIN_WRITE with the effect DELEGATE: the incarnation of the switch at which the delegation is to begin, and how many nodes are in each of its chains; `result` is the delegation's number. Then a bit for each node that may be in one, by its id, as far as there are any: the first byte's lowest is that of node 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DelegateBody {
    /// 8 bytes, big-endian on the wire.
    pub switch: u64,
    /// 1 bytes, big-endian on the wire.
    pub replicas: u8,
}

impl DelegateBody {
    /// Bytes on the wire.
    pub const LEN: usize = 9;

    /// Takes the fields off the front; `None` if there are too few bytes.
    #[must_use]
    pub fn split(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (fixed, rest) = bytes.split_first_chunk::<9>()?;
        Some((
            Self {
                switch: u64::from_be_bytes(crate::bytes::get::<0, 8, 9>(fixed)),
                replicas: u8::from_be_bytes(crate::bytes::get::<8, 1, 9>(fixed)),
            },
            rest,
        ))
    }

    /// The fields as they stand on the wire.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 9] {
        let mut out = [0; 9];
        crate::bytes::put::<0, 8, 9>(&mut out, self.switch.to_be_bytes());
        crate::bytes::put::<8, 1, 9>(&mut out, self.replicas.to_be_bytes());
        out
    }
}

/// Value of a CHAIN_WRITE with the effect RECALL: version of the newest write of the delegation (0: there is none), the revision of the order of hot keys that ended it, the version of its DELEGATE and the incarnation of the switch that it was on; `result` is its number. Then what the newest write wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecallBody {
    /// 8 bytes, big-endian on the wire.
    pub newest: Version,
    /// 8 bytes, big-endian on the wire.
    pub ended: Revision,
    /// 8 bytes, big-endian on the wire.
    pub delegated_at: Version,
    /// 8 bytes, big-endian on the wire.
    pub switch: u64,
}

impl RecallBody {
    /// Bytes on the wire.
    pub const LEN: usize = 32;

    /// Takes the fields off the front; `None` if there are too few bytes.
    #[must_use]
    pub fn split(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (fixed, rest) = bytes.split_first_chunk::<32>()?;
        Some((
            Self {
                newest: Version::new(u64::from_be_bytes(crate::bytes::get::<0, 8, 32>(fixed))),
                ended: Revision::new(u64::from_be_bytes(crate::bytes::get::<8, 8, 32>(fixed))),
                delegated_at: Version::new(u64::from_be_bytes(crate::bytes::get::<16, 8, 32>(
                    fixed,
                ))),
                switch: u64::from_be_bytes(crate::bytes::get::<24, 8, 32>(fixed)),
            },
            rest,
        ))
    }

    /// The fields as they stand on the wire.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 32] {
        let mut out = [0; 32];
        crate::bytes::put::<0, 8, 32>(&mut out, self.newest.get().to_be_bytes());
        crate::bytes::put::<8, 8, 32>(&mut out, self.ended.get().to_be_bytes());
        crate::bytes::put::<16, 8, 32>(&mut out, self.delegated_at.get().to_be_bytes());
        crate::bytes::put::<24, 8, 32>(&mut out, self.switch.to_be_bytes());
        out
    }
}

/// DELEGATION_FETCH: which delegation, and the revision of an order of hot keys that has ended it. Then key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DelegationFetchBody {
    /// 8 bytes, big-endian on the wire.
    pub delegation: DelegationId,
    /// 8 bytes, big-endian on the wire.
    pub ended: Revision,
}

impl DelegationFetchBody {
    /// Bytes on the wire.
    pub const LEN: usize = 16;

    /// Takes the fields off the front; `None` if there are too few bytes.
    #[must_use]
    pub fn split(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (fixed, rest) = bytes.split_first_chunk::<16>()?;
        Some((
            Self {
                delegation: DelegationId::new(u64::from_be_bytes(crate::bytes::get::<0, 8, 16>(
                    fixed,
                ))),
                ended: Revision::new(u64::from_be_bytes(crate::bytes::get::<8, 8, 16>(fixed))),
            },
            rest,
        ))
    }

    /// The fields as they stand on the wire.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 16] {
        let mut out = [0; 16];
        crate::bytes::put::<0, 8, 16>(&mut out, self.delegation.get().to_be_bytes());
        crate::bytes::put::<8, 8, 16>(&mut out, self.ended.get().to_be_bytes());
        out
    }
}

/// DELEGATION_FOUND: which delegation; kind 0 is a value, of the version `object_version`; kind 1: nothing; kind 2: nothing, but this store is younger than the delegation. Then key, value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DelegationFoundBody {
    /// 8 bytes, big-endian on the wire.
    pub delegation: DelegationId,
    /// 1 bytes, big-endian on the wire.
    pub kind: u8,
}

impl DelegationFoundBody {
    /// Bytes on the wire.
    pub const LEN: usize = 9;

    /// Takes the fields off the front; `None` if there are too few bytes.
    #[must_use]
    pub fn split(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (fixed, rest) = bytes.split_first_chunk::<9>()?;
        Some((
            Self {
                delegation: DelegationId::new(u64::from_be_bytes(crate::bytes::get::<0, 8, 9>(
                    fixed,
                ))),
                kind: u8::from_be_bytes(crate::bytes::get::<8, 1, 9>(fixed)),
            },
            rest,
        ))
    }

    /// The fields as they stand on the wire.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 9] {
        let mut out = [0; 9];
        crate::bytes::put::<0, 8, 9>(&mut out, self.delegation.get().to_be_bytes());
        crate::bytes::put::<8, 1, 9>(&mut out, self.kind.to_be_bytes());
        out
    }
}

/// DELEGATION_END: which delegation. Then key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DelegationEndBody {
    /// 8 bytes, big-endian on the wire.
    pub delegation: DelegationId,
}

impl DelegationEndBody {
    /// Bytes on the wire.
    pub const LEN: usize = 8;

    /// Takes the fields off the front; `None` if there are too few bytes.
    #[must_use]
    pub fn split(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (fixed, rest) = bytes.split_first_chunk::<8>()?;
        Some((
            Self {
                delegation: DelegationId::new(u64::from_be_bytes(crate::bytes::get::<0, 8, 8>(
                    fixed,
                ))),
            },
            rest,
        ))
    }

    /// The fields as they stand on the wire.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 8] {
        let mut out = [0; 8];
        crate::bytes::put::<0, 8, 8>(&mut out, self.delegation.get().to_be_bytes());
        out
    }
}

/// DELEGATION_COMMIT: which delegation. Then key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DelegationCommitBody {
    /// 8 bytes, big-endian on the wire.
    pub delegation: DelegationId,
}

impl DelegationCommitBody {
    /// Bytes on the wire.
    pub const LEN: usize = 8;

    /// Takes the fields off the front; `None` if there are too few bytes.
    #[must_use]
    pub fn split(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (fixed, rest) = bytes.split_first_chunk::<8>()?;
        Some((
            Self {
                delegation: DelegationId::new(u64::from_be_bytes(crate::bytes::get::<0, 8, 8>(
                    fixed,
                ))),
            },
            rest,
        ))
    }

    /// The fields as they stand on the wire.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 8] {
        let mut out = [0; 8];
        crate::bytes::put::<0, 8, 8>(&mut out, self.delegation.get().to_be_bytes());
        out
    }
}

/// DELEGATION_WRITE: the nodes of the chain, a bit for each place, that sent it on before it was on their disks. Then key, value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DelegationWriteBody {
    /// 1 bytes, big-endian on the wire.
    pub unsynced: u8,
}

impl DelegationWriteBody {
    /// Bytes on the wire.
    pub const LEN: usize = 1;

    /// Takes the fields off the front; `None` if there are too few bytes.
    #[must_use]
    pub fn split(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (fixed, rest) = bytes.split_first_chunk::<1>()?;
        Some((Self { unsynced: u8::from_be_bytes(crate::bytes::get::<0, 1, 1>(fixed)) }, rest))
    }

    /// The fields as they stand on the wire.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 1] {
        let mut out = [0; 1];
        crate::bytes::put::<0, 1, 1>(&mut out, self.unsynced.to_be_bytes());
        out
    }
}

/// DELEGATION_DURABLE: which delegation. Then key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DelegationDurableBody {
    /// 8 bytes, big-endian on the wire.
    pub delegation: DelegationId,
}

impl DelegationDurableBody {
    /// Bytes on the wire.
    pub const LEN: usize = 8;

    /// Takes the fields off the front; `None` if there are too few bytes.
    #[must_use]
    pub fn split(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (fixed, rest) = bytes.split_first_chunk::<8>()?;
        Some((
            Self {
                delegation: DelegationId::new(u64::from_be_bytes(crate::bytes::get::<0, 8, 8>(
                    fixed,
                ))),
            },
            rest,
        ))
    }

    /// The fields as they stand on the wire.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 8] {
        let mut out = [0; 8];
        crate::bytes::put::<0, 8, 8>(&mut out, self.delegation.get().to_be_bytes());
        out
    }
}

/// CACHE_LOAN: the incarnation of the tail's node, the number of the loan, and that of the first loan that is not void; when the value ends (0: never) and what time it is; and for how many milliseconds from when the cache asked the loans from that on last if they are not renewed. Then key, value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheLoanBody {
    /// 8 bytes, big-endian on the wire.
    pub lender: u64,
    /// 8 bytes, big-endian on the wire.
    pub loan: LoanNumber,
    /// 8 bytes, big-endian on the wire.
    pub from: LoanNumber,
    /// 8 bytes, big-endian on the wire.
    pub expiry_ms: u64,
    /// 8 bytes, big-endian on the wire.
    pub now_ms: u64,
    /// 4 bytes, big-endian on the wire.
    pub lasts_ms: u32,
}

impl CacheLoanBody {
    /// Bytes on the wire.
    pub const LEN: usize = 44;

    /// Takes the fields off the front; `None` if there are too few bytes.
    #[must_use]
    pub fn split(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (fixed, rest) = bytes.split_first_chunk::<44>()?;
        Some((
            Self {
                lender: u64::from_be_bytes(crate::bytes::get::<0, 8, 44>(fixed)),
                loan: LoanNumber::new(u64::from_be_bytes(crate::bytes::get::<8, 8, 44>(fixed))),
                from: LoanNumber::new(u64::from_be_bytes(crate::bytes::get::<16, 8, 44>(fixed))),
                expiry_ms: u64::from_be_bytes(crate::bytes::get::<24, 8, 44>(fixed)),
                now_ms: u64::from_be_bytes(crate::bytes::get::<32, 8, 44>(fixed)),
                lasts_ms: u32::from_be_bytes(crate::bytes::get::<40, 4, 44>(fixed)),
            },
            rest,
        ))
    }

    /// The fields as they stand on the wire.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 44] {
        let mut out = [0; 44];
        crate::bytes::put::<0, 8, 44>(&mut out, self.lender.to_be_bytes());
        crate::bytes::put::<8, 8, 44>(&mut out, self.loan.get().to_be_bytes());
        crate::bytes::put::<16, 8, 44>(&mut out, self.from.get().to_be_bytes());
        crate::bytes::put::<24, 8, 44>(&mut out, self.expiry_ms.to_be_bytes());
        crate::bytes::put::<32, 8, 44>(&mut out, self.now_ms.to_be_bytes());
        crate::bytes::put::<40, 4, 44>(&mut out, self.lasts_ms.to_be_bytes());
        out
    }
}

/// CACHE_RENEW: the incarnation of the tail's node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheRenewBody {
    /// 8 bytes, big-endian on the wire.
    pub lender: u64,
}

impl CacheRenewBody {
    /// Bytes on the wire.
    pub const LEN: usize = 8;

    /// Takes the fields off the front; `None` if there are too few bytes.
    #[must_use]
    pub fn split(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (fixed, rest) = bytes.split_first_chunk::<8>()?;
        Some((Self { lender: u64::from_be_bytes(crate::bytes::get::<0, 8, 8>(fixed)) }, rest))
    }

    /// The fields as they stand on the wire.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 8] {
        let mut out = [0; 8];
        crate::bytes::put::<0, 8, 8>(&mut out, self.lender.to_be_bytes());
        out
    }
}

/// CACHE_GRANT: the incarnation of the tail's node, the number of the first loan that is not void, what time it is, and for how many milliseconds from when the cache asked the loans from that on last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheGrantBody {
    /// 8 bytes, big-endian on the wire.
    pub lender: u64,
    /// 8 bytes, big-endian on the wire.
    pub from: LoanNumber,
    /// 8 bytes, big-endian on the wire.
    pub now_ms: u64,
    /// 4 bytes, big-endian on the wire.
    pub lasts_ms: u32,
}

impl CacheGrantBody {
    /// Bytes on the wire.
    pub const LEN: usize = 28;

    /// Takes the fields off the front; `None` if there are too few bytes.
    #[must_use]
    pub fn split(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (fixed, rest) = bytes.split_first_chunk::<28>()?;
        Some((
            Self {
                lender: u64::from_be_bytes(crate::bytes::get::<0, 8, 28>(fixed)),
                from: LoanNumber::new(u64::from_be_bytes(crate::bytes::get::<8, 8, 28>(fixed))),
                now_ms: u64::from_be_bytes(crate::bytes::get::<16, 8, 28>(fixed)),
                lasts_ms: u32::from_be_bytes(crate::bytes::get::<24, 4, 28>(fixed)),
            },
            rest,
        ))
    }

    /// The fields as they stand on the wire.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 28] {
        let mut out = [0; 28];
        crate::bytes::put::<0, 8, 28>(&mut out, self.lender.to_be_bytes());
        crate::bytes::put::<8, 8, 28>(&mut out, self.from.get().to_be_bytes());
        crate::bytes::put::<16, 8, 28>(&mut out, self.now_ms.to_be_bytes());
        crate::bytes::put::<24, 4, 28>(&mut out, self.lasts_ms.to_be_bytes());
        out
    }
}

/// CACHE_UPDATE: the incarnation of the tail's node, the number of the loan, and when the value ends (0: never). Then key, value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheUpdateBody {
    /// 8 bytes, big-endian on the wire.
    pub lender: u64,
    /// 8 bytes, big-endian on the wire.
    pub loan: LoanNumber,
    /// 8 bytes, big-endian on the wire.
    pub expiry_ms: u64,
}

impl CacheUpdateBody {
    /// Bytes on the wire.
    pub const LEN: usize = 24;

    /// Takes the fields off the front; `None` if there are too few bytes.
    #[must_use]
    pub fn split(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (fixed, rest) = bytes.split_first_chunk::<24>()?;
        Some((
            Self {
                lender: u64::from_be_bytes(crate::bytes::get::<0, 8, 24>(fixed)),
                loan: LoanNumber::new(u64::from_be_bytes(crate::bytes::get::<8, 8, 24>(fixed))),
                expiry_ms: u64::from_be_bytes(crate::bytes::get::<16, 8, 24>(fixed)),
            },
            rest,
        ))
    }

    /// The fields as they stand on the wire.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 24] {
        let mut out = [0; 24];
        crate::bytes::put::<0, 8, 24>(&mut out, self.lender.to_be_bytes());
        crate::bytes::put::<8, 8, 24>(&mut out, self.loan.get().to_be_bytes());
        crate::bytes::put::<16, 8, 24>(&mut out, self.expiry_ms.to_be_bytes());
        out
    }
}

/// CACHE_RECALL: the incarnation of the tail's node, and the number of the loan; without a key all loans of the partition up to that number. Then key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheRecallBody {
    /// 8 bytes, big-endian on the wire.
    pub lender: u64,
    /// 8 bytes, big-endian on the wire.
    pub loan: LoanNumber,
}

impl CacheRecallBody {
    /// Bytes on the wire.
    pub const LEN: usize = 16;

    /// Takes the fields off the front; `None` if there are too few bytes.
    #[must_use]
    pub fn split(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (fixed, rest) = bytes.split_first_chunk::<16>()?;
        Some((
            Self {
                lender: u64::from_be_bytes(crate::bytes::get::<0, 8, 16>(fixed)),
                loan: LoanNumber::new(u64::from_be_bytes(crate::bytes::get::<8, 8, 16>(fixed))),
            },
            rest,
        ))
    }

    /// The fields as they stand on the wire.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 16] {
        let mut out = [0; 16];
        crate::bytes::put::<0, 8, 16>(&mut out, self.lender.to_be_bytes());
        crate::bytes::put::<8, 8, 16>(&mut out, self.loan.get().to_be_bytes());
        out
    }
}

/// CACHE_ANSWER: the incarnation of the tail's node, the number of the loan, and whether the cache holds the key under it (1), or neither does nor will (0). Then key, as in what it answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheAnswerBody {
    /// 8 bytes, big-endian on the wire.
    pub lender: u64,
    /// 8 bytes, big-endian on the wire.
    pub loan: LoanNumber,
    /// 1 bytes, big-endian on the wire.
    pub held: u8,
}

impl CacheAnswerBody {
    /// Bytes on the wire.
    pub const LEN: usize = 17;

    /// Takes the fields off the front; `None` if there are too few bytes.
    #[must_use]
    pub fn split(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (fixed, rest) = bytes.split_first_chunk::<17>()?;
        Some((
            Self {
                lender: u64::from_be_bytes(crate::bytes::get::<0, 8, 17>(fixed)),
                loan: LoanNumber::new(u64::from_be_bytes(crate::bytes::get::<8, 8, 17>(fixed))),
                held: u8::from_be_bytes(crate::bytes::get::<16, 1, 17>(fixed)),
            },
            rest,
        ))
    }

    /// The fields as they stand on the wire.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 17] {
        let mut out = [0; 17];
        crate::bytes::put::<0, 8, 17>(&mut out, self.lender.to_be_bytes());
        crate::bytes::put::<8, 8, 17>(&mut out, self.loan.get().to_be_bytes());
        crate::bytes::put::<16, 1, 17>(&mut out, self.held.to_be_bytes());
        out
    }
}

/// CACHE_REPORT, for each key: where it lies, and how often it is read in a second. Then key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheReportBody {
    /// 2 bytes, big-endian on the wire.
    pub keyspace: u16,
    /// 4 bytes, big-endian on the wire.
    pub partition: u32,
    /// 4 bytes, big-endian on the wire.
    pub epoch: u32,
    /// 16 bytes, big-endian on the wire.
    pub match_value: u128,
    /// 8 bytes, big-endian on the wire.
    pub keyhash: u64,
    /// 4 bytes, big-endian on the wire.
    pub rate: u32,
    /// 2 bytes, big-endian on the wire.
    pub key_len: u16,
}

impl CacheReportBody {
    /// Bytes on the wire.
    pub const LEN: usize = 40;

    /// Takes the fields off the front; `None` if there are too few bytes.
    #[must_use]
    pub fn split(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (fixed, rest) = bytes.split_first_chunk::<40>()?;
        Some((
            Self {
                keyspace: u16::from_be_bytes(crate::bytes::get::<0, 2, 40>(fixed)),
                partition: u32::from_be_bytes(crate::bytes::get::<2, 4, 40>(fixed)),
                epoch: u32::from_be_bytes(crate::bytes::get::<6, 4, 40>(fixed)),
                match_value: u128::from_be_bytes(crate::bytes::get::<10, 16, 40>(fixed)),
                keyhash: u64::from_be_bytes(crate::bytes::get::<26, 8, 40>(fixed)),
                rate: u32::from_be_bytes(crate::bytes::get::<34, 4, 40>(fixed)),
                key_len: u16::from_be_bytes(crate::bytes::get::<38, 2, 40>(fixed)),
            },
            rest,
        ))
    }

    /// The fields as they stand on the wire.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 40] {
        let mut out = [0; 40];
        crate::bytes::put::<0, 2, 40>(&mut out, self.keyspace.to_be_bytes());
        crate::bytes::put::<2, 4, 40>(&mut out, self.partition.to_be_bytes());
        crate::bytes::put::<6, 4, 40>(&mut out, self.epoch.to_be_bytes());
        crate::bytes::put::<10, 16, 40>(&mut out, self.match_value.to_be_bytes());
        crate::bytes::put::<26, 8, 40>(&mut out, self.keyhash.to_be_bytes());
        crate::bytes::put::<34, 4, 40>(&mut out, self.rate.to_be_bytes());
        crate::bytes::put::<38, 2, 40>(&mut out, self.key_len.to_be_bytes());
        out
    }
}

/// CACHE_RULES, for each rule that changes: 1 if reads of the key go to the cache from here on, 0 if they go to its tail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheRuleBody {
    /// 1 bytes, big-endian on the wire.
    pub adds: u8,
    /// 2 bytes, big-endian on the wire.
    pub keyspace: u16,
    /// 8 bytes, big-endian on the wire.
    pub keyhash: u64,
}

impl CacheRuleBody {
    /// Bytes on the wire.
    pub const LEN: usize = 11;

    /// Takes the fields off the front; `None` if there are too few bytes.
    #[must_use]
    pub fn split(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (fixed, rest) = bytes.split_first_chunk::<11>()?;
        Some((
            Self {
                adds: u8::from_be_bytes(crate::bytes::get::<0, 1, 11>(fixed)),
                keyspace: u16::from_be_bytes(crate::bytes::get::<1, 2, 11>(fixed)),
                keyhash: u64::from_be_bytes(crate::bytes::get::<3, 8, 11>(fixed)),
            },
            rest,
        ))
    }

    /// The fields as they stand on the wire.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 11] {
        let mut out = [0; 11];
        crate::bytes::put::<0, 1, 11>(&mut out, self.adds.to_be_bytes());
        crate::bytes::put::<1, 2, 11>(&mut out, self.keyspace.to_be_bytes());
        crate::bytes::put::<3, 8, 11>(&mut out, self.keyhash.to_be_bytes());
        out
    }
}

/// CACHE_RULES, for each rule that changes of a key that has a content address: 3 in place of 1, 2 in place of 0. Its match value begins with these bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheRulePlacedBody {
    /// 1 bytes, big-endian on the wire.
    pub adds: u8,
    /// 2 bytes, big-endian on the wire.
    pub keyspace: u16,
    /// 8 bytes, big-endian on the wire.
    pub keyhash: u64,
    /// 8 bytes, big-endian on the wire.
    pub match_bits: u64,
}

impl CacheRulePlacedBody {
    /// Bytes on the wire.
    pub const LEN: usize = 19;

    /// Takes the fields off the front; `None` if there are too few bytes.
    #[must_use]
    pub fn split(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (fixed, rest) = bytes.split_first_chunk::<19>()?;
        Some((
            Self {
                adds: u8::from_be_bytes(crate::bytes::get::<0, 1, 19>(fixed)),
                keyspace: u16::from_be_bytes(crate::bytes::get::<1, 2, 19>(fixed)),
                keyhash: u64::from_be_bytes(crate::bytes::get::<3, 8, 19>(fixed)),
                match_bits: u64::from_be_bytes(crate::bytes::get::<11, 8, 19>(fixed)),
            },
            rest,
        ))
    }

    /// The fields as they stand on the wire.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 19] {
        let mut out = [0; 19];
        crate::bytes::put::<0, 1, 19>(&mut out, self.adds.to_be_bytes());
        crate::bytes::put::<1, 2, 19>(&mut out, self.keyspace.to_be_bytes());
        crate::bytes::put::<3, 8, 19>(&mut out, self.keyhash.to_be_bytes());
        crate::bytes::put::<11, 8, 19>(&mut out, self.match_bits.to_be_bytes());
        out
    }
}

/// CHAIN_COPY: kind 4: the registration of a hot key, with its generation. Then key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopyRegistrationBody {
    /// 1 bytes, big-endian on the wire.
    pub kind: u8,
    /// 8 bytes, big-endian on the wire.
    pub generation: Generation,
    /// 2 bytes, big-endian on the wire.
    pub key_len: u16,
}

impl CopyRegistrationBody {
    /// Bytes on the wire.
    pub const LEN: usize = 11;

    /// Takes the fields off the front; `None` if there are too few bytes.
    #[must_use]
    pub fn split(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (fixed, rest) = bytes.split_first_chunk::<11>()?;
        Some((
            Self {
                kind: u8::from_be_bytes(crate::bytes::get::<0, 1, 11>(fixed)),
                generation: Generation::new(u64::from_be_bytes(crate::bytes::get::<1, 8, 11>(
                    fixed,
                ))),
                key_len: u16::from_be_bytes(crate::bytes::get::<9, 2, 11>(fixed)),
            },
            rest,
        ))
    }

    /// The fields as they stand on the wire.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 11] {
        let mut out = [0; 11];
        crate::bytes::put::<0, 1, 11>(&mut out, self.kind.to_be_bytes());
        crate::bytes::put::<1, 8, 11>(&mut out, self.generation.get().to_be_bytes());
        crate::bytes::put::<9, 2, 11>(&mut out, self.key_len.to_be_bytes());
        out
    }
}

/// CHAIN_COPY: kind 5: the delegations of a key. Then key, and the delegations in the form in which nodes keep them on record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopyDelegationsBody {
    /// 1 bytes, big-endian on the wire.
    pub kind: u8,
    /// 2 bytes, big-endian on the wire.
    pub key_len: u16,
    /// 2 bytes, big-endian on the wire.
    pub delegations_len: u16,
}

impl CopyDelegationsBody {
    /// Bytes on the wire.
    pub const LEN: usize = 5;

    /// Takes the fields off the front; `None` if there are too few bytes.
    #[must_use]
    pub fn split(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (fixed, rest) = bytes.split_first_chunk::<5>()?;
        Some((
            Self {
                kind: u8::from_be_bytes(crate::bytes::get::<0, 1, 5>(fixed)),
                key_len: u16::from_be_bytes(crate::bytes::get::<1, 2, 5>(fixed)),
                delegations_len: u16::from_be_bytes(crate::bytes::get::<3, 2, 5>(fixed)),
            },
            rest,
        ))
    }

    /// The fields as they stand on the wire.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 5] {
        let mut out = [0; 5];
        crate::bytes::put::<0, 1, 5>(&mut out, self.kind.to_be_bytes());
        crate::bytes::put::<1, 2, 5>(&mut out, self.key_len.to_be_bytes());
        crate::bytes::put::<3, 2, 5>(&mut out, self.delegations_len.to_be_bytes());
        out
    }
}

/// The delegations of a key, as they are kept on record: how many of them are over, and how many bytes the nodes of the present one take (0: there is none). Then `delegation_over` for each, oldest first; of the present one `delegation_present`, then a bit for each of its nodes, as in `delegate`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DelegationsBody {
    /// 1 bytes, big-endian on the wire.
    pub over: u8,
    /// 1 bytes, big-endian on the wire.
    pub nodes: u8,
}

impl DelegationsBody {
    /// Bytes on the wire.
    pub const LEN: usize = 2;

    /// Takes the fields off the front; `None` if there are too few bytes.
    #[must_use]
    pub fn split(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (fixed, rest) = bytes.split_first_chunk::<2>()?;
        Some((
            Self {
                over: u8::from_be_bytes(crate::bytes::get::<0, 1, 2>(fixed)),
                nodes: u8::from_be_bytes(crate::bytes::get::<1, 1, 2>(fixed)),
            },
            rest,
        ))
    }

    /// The fields as they stand on the wire.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 2] {
        let mut out = [0; 2];
        crate::bytes::put::<0, 1, 2>(&mut out, self.over.to_be_bytes());
        crate::bytes::put::<1, 1, 2>(&mut out, self.nodes.to_be_bytes());
        out
    }
}

/// A delegation that is over: its number, the version of its DELEGATE, that of its newest write (0: there was none), the revision of the order that ended it, the incarnation of the switch that it was on, and when this member committed its RECALL, in Unix milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DelegationOverBody {
    /// 8 bytes, big-endian on the wire.
    pub number: DelegationId,
    /// 8 bytes, big-endian on the wire.
    pub delegated_at: Version,
    /// 8 bytes, big-endian on the wire.
    pub newest: Version,
    /// 8 bytes, big-endian on the wire.
    pub ended: Revision,
    /// 8 bytes, big-endian on the wire.
    pub switch: u64,
    /// 8 bytes, big-endian on the wire.
    pub since_ms: u64,
}

impl DelegationOverBody {
    /// Bytes on the wire.
    pub const LEN: usize = 48;

    /// Takes the fields off the front; `None` if there are too few bytes.
    #[must_use]
    pub fn split(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (fixed, rest) = bytes.split_first_chunk::<48>()?;
        Some((
            Self {
                number: DelegationId::new(u64::from_be_bytes(crate::bytes::get::<0, 8, 48>(fixed))),
                delegated_at: Version::new(u64::from_be_bytes(crate::bytes::get::<8, 8, 48>(
                    fixed,
                ))),
                newest: Version::new(u64::from_be_bytes(crate::bytes::get::<16, 8, 48>(fixed))),
                ended: Revision::new(u64::from_be_bytes(crate::bytes::get::<24, 8, 48>(fixed))),
                switch: u64::from_be_bytes(crate::bytes::get::<32, 8, 48>(fixed)),
                since_ms: u64::from_be_bytes(crate::bytes::get::<40, 8, 48>(fixed)),
            },
            rest,
        ))
    }

    /// The fields as they stand on the wire.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 48] {
        let mut out = [0; 48];
        crate::bytes::put::<0, 8, 48>(&mut out, self.number.get().to_be_bytes());
        crate::bytes::put::<8, 8, 48>(&mut out, self.delegated_at.get().to_be_bytes());
        crate::bytes::put::<16, 8, 48>(&mut out, self.newest.get().to_be_bytes());
        crate::bytes::put::<24, 8, 48>(&mut out, self.ended.get().to_be_bytes());
        crate::bytes::put::<32, 8, 48>(&mut out, self.switch.to_be_bytes());
        crate::bytes::put::<40, 8, 48>(&mut out, self.since_ms.to_be_bytes());
        out
    }
}

/// A key's present delegation: its number, the version of its DELEGATE, the incarnation of the switch, and how many nodes are in each chain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DelegationPresentBody {
    /// 8 bytes, big-endian on the wire.
    pub number: DelegationId,
    /// 8 bytes, big-endian on the wire.
    pub delegated_at: Version,
    /// 8 bytes, big-endian on the wire.
    pub switch: u64,
    /// 1 bytes, big-endian on the wire.
    pub replicas: u8,
}

impl DelegationPresentBody {
    /// Bytes on the wire.
    pub const LEN: usize = 25;

    /// Takes the fields off the front; `None` if there are too few bytes.
    #[must_use]
    pub fn split(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (fixed, rest) = bytes.split_first_chunk::<25>()?;
        Some((
            Self {
                number: DelegationId::new(u64::from_be_bytes(crate::bytes::get::<0, 8, 25>(fixed))),
                delegated_at: Version::new(u64::from_be_bytes(crate::bytes::get::<8, 8, 25>(
                    fixed,
                ))),
                switch: u64::from_be_bytes(crate::bytes::get::<16, 8, 25>(fixed)),
                replicas: u8::from_be_bytes(crate::bytes::get::<24, 1, 25>(fixed)),
            },
            rest,
        ))
    }

    /// The fields as they stand on the wire.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 25] {
        let mut out = [0; 25];
        crate::bytes::put::<0, 8, 25>(&mut out, self.number.get().to_be_bytes());
        crate::bytes::put::<8, 8, 25>(&mut out, self.delegated_at.get().to_be_bytes());
        crate::bytes::put::<16, 8, 25>(&mut out, self.switch.to_be_bytes());
        crate::bytes::put::<24, 1, 25>(&mut out, self.replicas.to_be_bytes());
        out
    }
}

/// CHAIN_COPY: kind 0 is a value, kind 1 a tombstone. Then key, value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopyRecordBody {
    /// 1 bytes, big-endian on the wire.
    pub kind: u8,
    /// 8 bytes, big-endian on the wire.
    pub version: Version,
    /// 8 bytes, big-endian on the wire.
    pub expiry_ms: u64,
    /// 2 bytes, big-endian on the wire.
    pub key_len: u16,
    /// 2 bytes, big-endian on the wire.
    pub value_len: u16,
}

impl CopyRecordBody {
    /// Bytes on the wire.
    pub const LEN: usize = 21;

    /// Takes the fields off the front; `None` if there are too few bytes.
    #[must_use]
    pub fn split(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (fixed, rest) = bytes.split_first_chunk::<21>()?;
        Some((
            Self {
                kind: u8::from_be_bytes(crate::bytes::get::<0, 1, 21>(fixed)),
                version: Version::new(u64::from_be_bytes(crate::bytes::get::<1, 8, 21>(fixed))),
                expiry_ms: u64::from_be_bytes(crate::bytes::get::<9, 8, 21>(fixed)),
                key_len: u16::from_be_bytes(crate::bytes::get::<17, 2, 21>(fixed)),
                value_len: u16::from_be_bytes(crate::bytes::get::<19, 2, 21>(fixed)),
            },
            rest,
        ))
    }

    /// The fields as they stand on the wire.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 21] {
        let mut out = [0; 21];
        crate::bytes::put::<0, 1, 21>(&mut out, self.kind.to_be_bytes());
        crate::bytes::put::<1, 8, 21>(&mut out, self.version.get().to_be_bytes());
        crate::bytes::put::<9, 8, 21>(&mut out, self.expiry_ms.to_be_bytes());
        crate::bytes::put::<17, 2, 21>(&mut out, self.key_len.to_be_bytes());
        crate::bytes::put::<19, 2, 21>(&mut out, self.value_len.to_be_bytes());
        out
    }
}

/// CHAIN_COPY: kind 2: the outcome of one write, and the low-water mark of its client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopySessionBody {
    /// 1 bytes, big-endian on the wire.
    pub kind: u8,
    /// 1 bytes, big-endian on the wire.
    pub origin: u8,
    /// 1 bytes, big-endian on the wire.
    pub code: u8,
    /// 8 bytes, big-endian on the wire.
    pub client: u64,
    /// 8 bytes, big-endian on the wire.
    pub seq: u64,
    /// 8 bytes, big-endian on the wire.
    pub floor: u64,
    /// 8 bytes, big-endian on the wire.
    pub version: Version,
    /// 8 bytes, big-endian on the wire.
    pub result: ChainResult,
}

impl CopySessionBody {
    /// Bytes on the wire.
    pub const LEN: usize = 43;

    /// Takes the fields off the front; `None` if there are too few bytes.
    #[must_use]
    pub fn split(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (fixed, rest) = bytes.split_first_chunk::<43>()?;
        Some((
            Self {
                kind: u8::from_be_bytes(crate::bytes::get::<0, 1, 43>(fixed)),
                origin: u8::from_be_bytes(crate::bytes::get::<1, 1, 43>(fixed)),
                code: u8::from_be_bytes(crate::bytes::get::<2, 1, 43>(fixed)),
                client: u64::from_be_bytes(crate::bytes::get::<3, 8, 43>(fixed)),
                seq: u64::from_be_bytes(crate::bytes::get::<11, 8, 43>(fixed)),
                floor: u64::from_be_bytes(crate::bytes::get::<19, 8, 43>(fixed)),
                version: Version::new(u64::from_be_bytes(crate::bytes::get::<27, 8, 43>(fixed))),
                result: ChainResult::new(u64::from_be_bytes(crate::bytes::get::<35, 8, 43>(fixed))),
            },
            rest,
        ))
    }

    /// The fields as they stand on the wire.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 43] {
        let mut out = [0; 43];
        crate::bytes::put::<0, 1, 43>(&mut out, self.kind.to_be_bytes());
        crate::bytes::put::<1, 1, 43>(&mut out, self.origin.to_be_bytes());
        crate::bytes::put::<2, 1, 43>(&mut out, self.code.to_be_bytes());
        crate::bytes::put::<3, 8, 43>(&mut out, self.client.to_be_bytes());
        crate::bytes::put::<11, 8, 43>(&mut out, self.seq.to_be_bytes());
        crate::bytes::put::<19, 8, 43>(&mut out, self.floor.to_be_bytes());
        crate::bytes::put::<27, 8, 43>(&mut out, self.version.get().to_be_bytes());
        crate::bytes::put::<35, 8, 43>(&mut out, self.result.get().to_be_bytes());
        out
    }
}

/// CHAIN_COPY: kind 6: a client that has said goodbye, and the newest version of a write of its.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopyEndedBody {
    /// 1 bytes, big-endian on the wire.
    pub kind: u8,
    /// 8 bytes, big-endian on the wire.
    pub client: u64,
    /// 8 bytes, big-endian on the wire.
    pub newest: Version,
}

impl CopyEndedBody {
    /// Bytes on the wire.
    pub const LEN: usize = 17;

    /// Takes the fields off the front; `None` if there are too few bytes.
    #[must_use]
    pub fn split(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (fixed, rest) = bytes.split_first_chunk::<17>()?;
        Some((
            Self {
                kind: u8::from_be_bytes(crate::bytes::get::<0, 1, 17>(fixed)),
                client: u64::from_be_bytes(crate::bytes::get::<1, 8, 17>(fixed)),
                newest: Version::new(u64::from_be_bytes(crate::bytes::get::<9, 8, 17>(fixed))),
            },
            rest,
        ))
    }

    /// The fields as they stand on the wire.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 17] {
        let mut out = [0; 17];
        crate::bytes::put::<0, 1, 17>(&mut out, self.kind.to_be_bytes());
        crate::bytes::put::<1, 8, 17>(&mut out, self.client.to_be_bytes());
        crate::bytes::put::<9, 8, 17>(&mut out, self.newest.get().to_be_bytes());
        out
    }
}

/// CHAIN_COPY: kind 3: all has been copied; the counters of the partition, and the newest version of an outcome that was forgotten to make room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopyEndBody {
    /// 1 bytes, big-endian on the wire.
    pub kind: u8,
    /// 8 bytes, big-endian on the wire.
    pub last_version: Version,
    /// 8 bytes, big-endian on the wire.
    pub stable: Version,
    /// 8 bytes, big-endian on the wire.
    pub collected: Version,
    /// 8 bytes, big-endian on the wire.
    pub forgotten: Version,
}

impl CopyEndBody {
    /// Bytes on the wire.
    pub const LEN: usize = 33;

    /// Takes the fields off the front; `None` if there are too few bytes.
    #[must_use]
    pub fn split(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (fixed, rest) = bytes.split_first_chunk::<33>()?;
        Some((
            Self {
                kind: u8::from_be_bytes(crate::bytes::get::<0, 1, 33>(fixed)),
                last_version: Version::new(u64::from_be_bytes(crate::bytes::get::<1, 8, 33>(
                    fixed,
                ))),
                stable: Version::new(u64::from_be_bytes(crate::bytes::get::<9, 8, 33>(fixed))),
                collected: Version::new(u64::from_be_bytes(crate::bytes::get::<17, 8, 33>(fixed))),
                forgotten: Version::new(u64::from_be_bytes(crate::bytes::get::<25, 8, 33>(fixed))),
            },
            rest,
        ))
    }

    /// The fields as they stand on the wire.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 33] {
        let mut out = [0; 33];
        crate::bytes::put::<0, 1, 33>(&mut out, self.kind.to_be_bytes());
        crate::bytes::put::<1, 8, 33>(&mut out, self.last_version.get().to_be_bytes());
        crate::bytes::put::<9, 8, 33>(&mut out, self.stable.get().to_be_bytes());
        crate::bytes::put::<17, 8, 33>(&mut out, self.collected.get().to_be_bytes());
        crate::bytes::put::<25, 8, 33>(&mut out, self.forgotten.get().to_be_bytes());
        out
    }
}

/// CHAIN_VERIFY: kind 0: a piece, at most `count` values after the key, or from the beginning without one. Kind 1: this key. Kind 2: give what you hold of this key to the member at `place` of the chain, if that holds this: a `verify_state`, version, expiry, and XXH3-64 of the value. Then key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChainVerifyBody {
    /// 1 bytes, big-endian on the wire.
    pub kind: u8,
    /// 2 bytes, big-endian on the wire.
    pub count: u16,
    /// 1 bytes, big-endian on the wire.
    pub place: u8,
    /// 1 bytes, big-endian on the wire.
    pub state: u8,
    /// 8 bytes, big-endian on the wire.
    pub version: Version,
    /// 8 bytes, big-endian on the wire.
    pub expiry_ms: u64,
    /// 8 bytes, big-endian on the wire.
    pub digest: u64,
}

impl ChainVerifyBody {
    /// Bytes on the wire.
    pub const LEN: usize = 29;

    /// Takes the fields off the front; `None` if there are too few bytes.
    #[must_use]
    pub fn split(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (fixed, rest) = bytes.split_first_chunk::<29>()?;
        Some((
            Self {
                kind: u8::from_be_bytes(crate::bytes::get::<0, 1, 29>(fixed)),
                count: u16::from_be_bytes(crate::bytes::get::<1, 2, 29>(fixed)),
                place: u8::from_be_bytes(crate::bytes::get::<3, 1, 29>(fixed)),
                state: u8::from_be_bytes(crate::bytes::get::<4, 1, 29>(fixed)),
                version: Version::new(u64::from_be_bytes(crate::bytes::get::<5, 8, 29>(fixed))),
                expiry_ms: u64::from_be_bytes(crate::bytes::get::<13, 8, 29>(fixed)),
                digest: u64::from_be_bytes(crate::bytes::get::<21, 8, 29>(fixed)),
            },
            rest,
        ))
    }

    /// The fields as they stand on the wire.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 29] {
        let mut out = [0; 29];
        crate::bytes::put::<0, 1, 29>(&mut out, self.kind.to_be_bytes());
        crate::bytes::put::<1, 2, 29>(&mut out, self.count.to_be_bytes());
        crate::bytes::put::<3, 1, 29>(&mut out, self.place.to_be_bytes());
        crate::bytes::put::<4, 1, 29>(&mut out, self.state.to_be_bytes());
        crate::bytes::put::<5, 8, 29>(&mut out, self.version.get().to_be_bytes());
        crate::bytes::put::<13, 8, 29>(&mut out, self.expiry_ms.to_be_bytes());
        crate::bytes::put::<21, 8, 29>(&mut out, self.digest.to_be_bytes());
        out
    }
}

/// CHAIN_VERIFIED: kind 0: how many values there are in the piece, a digest of them, whether nothing follows, and how many records have versions above the newest that was seen; then the last key that was looked at. Kind 1: what is held of the key, with the collected floor, the newest and the stable version of the partition, and of a part the version of what stands under the key of its value. A part that belongs to no value counts as nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChainVerifiedBody {
    /// 1 bytes, big-endian on the wire.
    pub kind: u8,
    /// 1 bytes, big-endian on the wire.
    pub state: u8,
    /// 1 bytes, big-endian on the wire.
    pub end: u8,
    /// 2 bytes, big-endian on the wire.
    pub count: u16,
    /// 2 bytes, big-endian on the wire.
    pub absurd: u16,
    /// 8 bytes, big-endian on the wire.
    pub version: Version,
    /// 8 bytes, big-endian on the wire.
    pub expiry_ms: u64,
    /// 8 bytes, big-endian on the wire.
    pub digest: u64,
    /// 8 bytes, big-endian on the wire.
    pub collected: Version,
    /// 8 bytes, big-endian on the wire.
    pub newest: Version,
    /// 8 bytes, big-endian on the wire.
    pub stable: Version,
    /// 8 bytes, big-endian on the wire.
    pub owner: Version,
}

impl ChainVerifiedBody {
    /// Bytes on the wire.
    pub const LEN: usize = 63;

    /// Takes the fields off the front; `None` if there are too few bytes.
    #[must_use]
    pub fn split(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (fixed, rest) = bytes.split_first_chunk::<63>()?;
        Some((
            Self {
                kind: u8::from_be_bytes(crate::bytes::get::<0, 1, 63>(fixed)),
                state: u8::from_be_bytes(crate::bytes::get::<1, 1, 63>(fixed)),
                end: u8::from_be_bytes(crate::bytes::get::<2, 1, 63>(fixed)),
                count: u16::from_be_bytes(crate::bytes::get::<3, 2, 63>(fixed)),
                absurd: u16::from_be_bytes(crate::bytes::get::<5, 2, 63>(fixed)),
                version: Version::new(u64::from_be_bytes(crate::bytes::get::<7, 8, 63>(fixed))),
                expiry_ms: u64::from_be_bytes(crate::bytes::get::<15, 8, 63>(fixed)),
                digest: u64::from_be_bytes(crate::bytes::get::<23, 8, 63>(fixed)),
                collected: Version::new(u64::from_be_bytes(crate::bytes::get::<31, 8, 63>(fixed))),
                newest: Version::new(u64::from_be_bytes(crate::bytes::get::<39, 8, 63>(fixed))),
                stable: Version::new(u64::from_be_bytes(crate::bytes::get::<47, 8, 63>(fixed))),
                owner: Version::new(u64::from_be_bytes(crate::bytes::get::<55, 8, 63>(fixed))),
            },
            rest,
        ))
    }

    /// The fields as they stand on the wire.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 63] {
        let mut out = [0; 63];
        crate::bytes::put::<0, 1, 63>(&mut out, self.kind.to_be_bytes());
        crate::bytes::put::<1, 1, 63>(&mut out, self.state.to_be_bytes());
        crate::bytes::put::<2, 1, 63>(&mut out, self.end.to_be_bytes());
        crate::bytes::put::<3, 2, 63>(&mut out, self.count.to_be_bytes());
        crate::bytes::put::<5, 2, 63>(&mut out, self.absurd.to_be_bytes());
        crate::bytes::put::<7, 8, 63>(&mut out, self.version.get().to_be_bytes());
        crate::bytes::put::<15, 8, 63>(&mut out, self.expiry_ms.to_be_bytes());
        crate::bytes::put::<23, 8, 63>(&mut out, self.digest.to_be_bytes());
        crate::bytes::put::<31, 8, 63>(&mut out, self.collected.get().to_be_bytes());
        crate::bytes::put::<39, 8, 63>(&mut out, self.newest.get().to_be_bytes());
        crate::bytes::put::<47, 8, 63>(&mut out, self.stable.get().to_be_bytes());
        crate::bytes::put::<55, 8, 63>(&mut out, self.owner.get().to_be_bytes());
        out
    }
}

/// CHAIN_MEND: what is right of a key, and what was found to be wrong. Then key, value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChainMendBody {
    /// 1 bytes, big-endian on the wire.
    pub state: u8,
    /// 8 bytes, big-endian on the wire.
    pub version: Version,
    /// 8 bytes, big-endian on the wire.
    pub expiry_ms: u64,
    /// 1 bytes, big-endian on the wire.
    pub wrong_state: u8,
    /// 8 bytes, big-endian on the wire.
    pub wrong_version: Version,
    /// 8 bytes, big-endian on the wire.
    pub wrong_expiry_ms: u64,
    /// 8 bytes, big-endian on the wire.
    pub wrong_digest: u64,
}

impl ChainMendBody {
    /// Bytes on the wire.
    pub const LEN: usize = 42;

    /// Takes the fields off the front; `None` if there are too few bytes.
    #[must_use]
    pub fn split(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (fixed, rest) = bytes.split_first_chunk::<42>()?;
        Some((
            Self {
                state: u8::from_be_bytes(crate::bytes::get::<0, 1, 42>(fixed)),
                version: Version::new(u64::from_be_bytes(crate::bytes::get::<1, 8, 42>(fixed))),
                expiry_ms: u64::from_be_bytes(crate::bytes::get::<9, 8, 42>(fixed)),
                wrong_state: u8::from_be_bytes(crate::bytes::get::<17, 1, 42>(fixed)),
                wrong_version: Version::new(u64::from_be_bytes(crate::bytes::get::<18, 8, 42>(
                    fixed,
                ))),
                wrong_expiry_ms: u64::from_be_bytes(crate::bytes::get::<26, 8, 42>(fixed)),
                wrong_digest: u64::from_be_bytes(crate::bytes::get::<34, 8, 42>(fixed)),
            },
            rest,
        ))
    }

    /// The fields as they stand on the wire.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 42] {
        let mut out = [0; 42];
        crate::bytes::put::<0, 1, 42>(&mut out, self.state.to_be_bytes());
        crate::bytes::put::<1, 8, 42>(&mut out, self.version.get().to_be_bytes());
        crate::bytes::put::<9, 8, 42>(&mut out, self.expiry_ms.to_be_bytes());
        crate::bytes::put::<17, 1, 42>(&mut out, self.wrong_state.to_be_bytes());
        crate::bytes::put::<18, 8, 42>(&mut out, self.wrong_version.get().to_be_bytes());
        crate::bytes::put::<26, 8, 42>(&mut out, self.wrong_expiry_ms.to_be_bytes());
        crate::bytes::put::<34, 8, 42>(&mut out, self.wrong_digest.to_be_bytes());
        out
    }
}

/// Last bytes of a part's key, after the key of its big value and PART_ZEROS zeros: PART_MARK; the upload, which is the id of a client and a number that this client gives to no other; the index of the part, from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartBody {
    /// 8 bytes, big-endian on the wire.
    pub mark: u64,
    /// 8 bytes, big-endian on the wire.
    pub client: u64,
    /// 8 bytes, big-endian on the wire.
    pub number: u64,
    /// 4 bytes, big-endian on the wire.
    pub index: u32,
}

impl PartBody {
    /// Bytes on the wire.
    pub const LEN: usize = 28;

    /// Takes the fields off the front; `None` if there are too few bytes.
    #[must_use]
    pub fn split(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (fixed, rest) = bytes.split_first_chunk::<28>()?;
        Some((
            Self {
                mark: u64::from_be_bytes(crate::bytes::get::<0, 8, 28>(fixed)),
                client: u64::from_be_bytes(crate::bytes::get::<8, 8, 28>(fixed)),
                number: u64::from_be_bytes(crate::bytes::get::<16, 8, 28>(fixed)),
                index: u32::from_be_bytes(crate::bytes::get::<24, 4, 28>(fixed)),
            },
            rest,
        ))
    }

    /// The fields as they stand on the wire.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 28] {
        let mut out = [0; 28];
        crate::bytes::put::<0, 8, 28>(&mut out, self.mark.to_be_bytes());
        crate::bytes::put::<8, 8, 28>(&mut out, self.client.to_be_bytes());
        crate::bytes::put::<16, 8, 28>(&mut out, self.number.to_be_bytes());
        crate::bytes::put::<24, 4, 28>(&mut out, self.index.to_be_bytes());
        out
    }
}

/// Value of a CHAIN_WRITE with the effect ABANDON: the upload whose parts are dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UploadBody {
    /// 8 bytes, big-endian on the wire.
    pub client: u64,
    /// 8 bytes, big-endian on the wire.
    pub number: u64,
}

impl UploadBody {
    /// Bytes on the wire.
    pub const LEN: usize = 16;

    /// Takes the fields off the front; `None` if there are too few bytes.
    #[must_use]
    pub fn split(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (fixed, rest) = bytes.split_first_chunk::<16>()?;
        Some((
            Self {
                client: u64::from_be_bytes(crate::bytes::get::<0, 8, 16>(fixed)),
                number: u64::from_be_bytes(crate::bytes::get::<8, 8, 16>(fixed)),
            },
            rest,
        ))
    }

    /// The fields as they stand on the wire.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 16] {
        let mut out = [0; 16];
        crate::bytes::put::<0, 8, 16>(&mut out, self.client.to_be_bytes());
        crate::bytes::put::<8, 8, 16>(&mut out, self.number.to_be_bytes());
        out
    }
}

/// What stands under the key of a big value, with the bit EXPIRY_BIG_BIT in its expiry: bytes of the value (at least 1), of each of its parts but the last, CRC32C of the value, and the upload that its parts belong to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ManifestBody {
    /// 8 bytes, big-endian on the wire.
    pub len: u64,
    /// 2 bytes, big-endian on the wire.
    pub part_len: u16,
    /// 4 bytes, big-endian on the wire.
    pub checksum: u32,
    /// 8 bytes, big-endian on the wire.
    pub client: u64,
    /// 8 bytes, big-endian on the wire.
    pub number: u64,
}

impl ManifestBody {
    /// Bytes on the wire.
    pub const LEN: usize = 30;

    /// Takes the fields off the front; `None` if there are too few bytes.
    #[must_use]
    pub fn split(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (fixed, rest) = bytes.split_first_chunk::<30>()?;
        Some((
            Self {
                len: u64::from_be_bytes(crate::bytes::get::<0, 8, 30>(fixed)),
                part_len: u16::from_be_bytes(crate::bytes::get::<8, 2, 30>(fixed)),
                checksum: u32::from_be_bytes(crate::bytes::get::<10, 4, 30>(fixed)),
                client: u64::from_be_bytes(crate::bytes::get::<14, 8, 30>(fixed)),
                number: u64::from_be_bytes(crate::bytes::get::<22, 8, 30>(fixed)),
            },
            rest,
        ))
    }

    /// The fields as they stand on the wire.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 30] {
        let mut out = [0; 30];
        crate::bytes::put::<0, 8, 30>(&mut out, self.len.to_be_bytes());
        crate::bytes::put::<8, 2, 30>(&mut out, self.part_len.to_be_bytes());
        crate::bytes::put::<10, 4, 30>(&mut out, self.checksum.to_be_bytes());
        crate::bytes::put::<14, 8, 30>(&mut out, self.client.to_be_bytes());
        crate::bytes::put::<22, 8, 30>(&mut out, self.number.to_be_bytes());
        out
    }
}

/// MGET: what the switch reads of one key. Not under the tag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MgetSlotBody {
    /// 16 bytes, big-endian on the wire.
    pub match_value: u128,
    /// 8 bytes, big-endian on the wire.
    pub keyhash: u64,
}

impl MgetSlotBody {
    /// Bytes on the wire.
    pub const LEN: usize = 24;

    /// Takes the fields off the front; `None` if there are too few bytes.
    #[must_use]
    pub fn split(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (fixed, rest) = bytes.split_first_chunk::<24>()?;
        Some((
            Self {
                match_value: u128::from_be_bytes(crate::bytes::get::<0, 16, 24>(fixed)),
                keyhash: u64::from_be_bytes(crate::bytes::get::<16, 8, 24>(fixed)),
            },
            rest,
        ))
    }

    /// The fields as they stand on the wire.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 24] {
        let mut out = [0; 24];
        crate::bytes::put::<0, 16, 24>(&mut out, self.match_value.to_be_bytes());
        crate::bytes::put::<16, 8, 24>(&mut out, self.keyhash.to_be_bytes());
        out
    }
}

/// MGET, after all slots: how long one key is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MgetLenBody {
    /// 2 bytes, big-endian on the wire.
    pub key_len: u16,
}

impl MgetLenBody {
    /// Bytes on the wire.
    pub const LEN: usize = 2;

    /// Takes the fields off the front; `None` if there are too few bytes.
    #[must_use]
    pub fn split(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (fixed, rest) = bytes.split_first_chunk::<2>()?;
        Some((Self { key_len: u16::from_be_bytes(crate::bytes::get::<0, 2, 2>(fixed)) }, rest))
    }

    /// The fields as they stand on the wire.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 2] {
        let mut out = [0; 2];
        crate::bytes::put::<0, 2, 2>(&mut out, self.key_len.to_be_bytes());
        out
    }
}

/// MGET reply: one answered key. Then the value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MgetEntryBody {
    /// 1 bytes, big-endian on the wire.
    pub index: u8,
    /// 1 bytes, big-endian on the wire.
    pub code: u8,
    /// 8 bytes, big-endian on the wire.
    pub version: Version,
    /// 8 bytes, big-endian on the wire.
    pub expiry_ms: u64,
    /// 2 bytes, big-endian on the wire.
    pub value_len: u16,
}

impl MgetEntryBody {
    /// Bytes on the wire.
    pub const LEN: usize = 20;

    /// Takes the fields off the front; `None` if there are too few bytes.
    #[must_use]
    pub fn split(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (fixed, rest) = bytes.split_first_chunk::<20>()?;
        Some((
            Self {
                index: u8::from_be_bytes(crate::bytes::get::<0, 1, 20>(fixed)),
                code: u8::from_be_bytes(crate::bytes::get::<1, 1, 20>(fixed)),
                version: Version::new(u64::from_be_bytes(crate::bytes::get::<2, 8, 20>(fixed))),
                expiry_ms: u64::from_be_bytes(crate::bytes::get::<10, 8, 20>(fixed)),
                value_len: u16::from_be_bytes(crate::bytes::get::<18, 2, 20>(fixed)),
            },
            rest,
        ))
    }

    /// The fields as they stand on the wire.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 20] {
        let mut out = [0; 20];
        crate::bytes::put::<0, 1, 20>(&mut out, self.index.to_be_bytes());
        crate::bytes::put::<1, 1, 20>(&mut out, self.code.to_be_bytes());
        crate::bytes::put::<2, 8, 20>(&mut out, self.version.get().to_be_bytes());
        crate::bytes::put::<10, 8, 20>(&mut out, self.expiry_ms.to_be_bytes());
        crate::bytes::put::<18, 2, 20>(&mut out, self.value_len.to_be_bytes());
        out
    }
}

/// RANGE reply: kind 0 is a value; kind 1 a hole: the scan came as far as this key, which has no value. Then key, value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RangeEntryBody {
    /// 1 bytes, big-endian on the wire.
    pub kind: u8,
    /// 8 bytes, big-endian on the wire.
    pub version: Version,
    /// 8 bytes, big-endian on the wire.
    pub expiry_ms: u64,
    /// 2 bytes, big-endian on the wire.
    pub key_len: u16,
    /// 2 bytes, big-endian on the wire.
    pub value_len: u16,
}

impl RangeEntryBody {
    /// Bytes on the wire.
    pub const LEN: usize = 21;

    /// Takes the fields off the front; `None` if there are too few bytes.
    #[must_use]
    pub fn split(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (fixed, rest) = bytes.split_first_chunk::<21>()?;
        Some((
            Self {
                kind: u8::from_be_bytes(crate::bytes::get::<0, 1, 21>(fixed)),
                version: Version::new(u64::from_be_bytes(crate::bytes::get::<1, 8, 21>(fixed))),
                expiry_ms: u64::from_be_bytes(crate::bytes::get::<9, 8, 21>(fixed)),
                key_len: u16::from_be_bytes(crate::bytes::get::<17, 2, 21>(fixed)),
                value_len: u16::from_be_bytes(crate::bytes::get::<19, 2, 21>(fixed)),
            },
            rest,
        ))
    }

    /// The fields as they stand on the wire.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 21] {
        let mut out = [0; 21];
        crate::bytes::put::<0, 1, 21>(&mut out, self.kind.to_be_bytes());
        crate::bytes::put::<1, 8, 21>(&mut out, self.version.get().to_be_bytes());
        crate::bytes::put::<9, 8, 21>(&mut out, self.expiry_ms.to_be_bytes());
        crate::bytes::put::<17, 2, 21>(&mut out, self.key_len.to_be_bytes());
        crate::bytes::put::<19, 2, 21>(&mut out, self.value_len.to_be_bytes());
        out
    }
}

/// Names of everything that a role counts.
pub mod metric {
    use crate::metric::{Kind, Metric};
    /// Packets that entered the pipeline, by operation.
    pub const SWITCH_PACKETS: Metric = Metric {
        name: "keyway_switch_packets",
        kind: Kind::Counter,
        unit: None,
        labels: &["op"],
        help: "Packets that entered the pipeline, by operation.",
    };
    /// Packets that left the pipeline: one per request or reply, one per piece of a split.
    pub const SWITCH_EMITTED: Metric = Metric {
        name: "keyway_switch_emitted",
        kind: Kind::Counter,
        unit: None,
        labels: &[],
        help: "Packets that left the pipeline: one per request or reply, one per piece of a split.",
    };
    /// Packets the switch dropped, by drop reason.
    pub const SWITCH_DROPPED: Metric = Metric {
        name: "keyway_switch_dropped",
        kind: Kind::Counter,
        unit: None,
        labels: &["reason"],
        help: "Packets the switch dropped, by drop reason.",
    };
    /// Datagrams that the switch's kernel refused to send: to others they are lost.
    pub const SWITCH_UNSENT: Metric = Metric {
        name: "keyway_switch_unsent",
        kind: Kind::Counter,
        unit: None,
        labels: &[],
        help: "Datagrams that the switch's kernel refused to send: to others they are lost.",
    };
    /// Datagrams that the switch's kernel dropped because a receive buffer was full.
    pub const SWITCH_OVERFLOWED: Metric = Metric {
        name: "keyway_switch_overflowed",
        kind: Kind::Counter,
        unit: None,
        labels: &[],
        help: "Datagrams that the switch's kernel dropped because a receive buffer was full.",
    };
    /// Datagrams that the switch's program in the kernel dealt with; the others came to its sockets.
    pub const SWITCH_IN_KERNEL: Metric = Metric {
        name: "keyway_switch_in_kernel",
        kind: Kind::Counter,
        unit: None,
        labels: &[],
        help: "Datagrams that the switch's program in the kernel dealt with; the others came to its sockets.",
    };
    /// GETs, MGET keys and RANGE pieces that matched the partition.
    pub const SWITCH_PARTITION_READS: Metric = Metric {
        name: "keyway_switch_partition_reads",
        kind: Kind::Counter,
        unit: None,
        labels: &["keyspace", "partition"],
        help: "GETs, MGET keys and RANGE pieces that matched the partition.",
    };
    /// PUT, DEL, CAS and INCR packets that matched the partition.
    pub const SWITCH_PARTITION_WRITES: Metric = Metric {
        name: "keyway_switch_partition_writes",
        kind: Kind::Counter,
        unit: None,
        labels: &["keyspace", "partition"],
        help: "PUT, DEL, CAS and INCR packets that matched the partition.",
    };
    /// GETs that the switch sent to caches.
    pub const SWITCH_CACHED_READS: Metric = Metric {
        name: "keyway_switch_cached_reads",
        kind: Kind::Counter,
        unit: None,
        labels: &[],
        help: "GETs that the switch sent to caches.",
    };
    /// Keys whose reads the switch sends to caches.
    pub const SWITCH_CACHE_RULES: Metric = Metric {
        name: "keyway_switch_cache_rules",
        kind: Kind::Gauge,
        unit: None,
        labels: &[],
        help: "Keys whose reads the switch sends to caches.",
    };
    /// What the router, or the OpenFlow switch, has beside the switch: prefixes of partitions, one for each class of requests, and rules of cached keys, one for each address.
    pub const CONTENT_ENTRIES: Metric = Metric {
        name: "keyway_content_entries",
        kind: Kind::Gauge,
        unit: None,
        labels: &["kind"],
        help: "What the router, or the OpenFlow switch, has beside the switch: prefixes of partitions, one for each class of requests, and rules of cached keys, one for each address.",
    };
    /// Changes that the router, or the OpenFlow switch, is still to make.
    pub const CONTENT_PENDING: Metric = Metric {
        name: "keyway_content_pending",
        kind: Kind::Gauge,
        unit: None,
        labels: &[],
        help: "Changes that the router, or the OpenFlow switch, is still to make.",
    };
    /// Changes that the router, or the OpenFlow switch, was asked for: made, or refused, which are asked for again.
    pub const CONTENT_CHANGES: Metric = Metric {
        name: "keyway_content_changes",
        kind: Kind::Counter,
        unit: None,
        labels: &["outcome"],
        help: "Changes that the router, or the OpenFlow switch, was asked for: made, or refused, which are asked for again.",
    };
    /// Partitions that no prefix can lead to.
    pub const CONTENT_UNROUTABLE: Metric = Metric {
        name: "keyway_content_unroutable",
        kind: Kind::Gauge,
        unit: None,
        labels: &[],
        help: "Partitions that no prefix can lead to.",
    };
    /// Whether the router, or the OpenFlow switch, does as it is told: 1, or 0 while it does not answer.
    pub const CONTENT_ANSWERS: Metric = Metric {
        name: "keyway_content_answers",
        kind: Kind::Gauge,
        unit: None,
        labels: &[],
        help: "Whether the router, or the OpenFlow switch, does as it is told: 1, or 0 while it does not answer.",
    };
    /// GETs and MGET keys of each hot key in its present generation, by where they went: a copy, or home, to the tail.
    pub const SWITCH_HOT_READS: Metric = Metric {
        name: "keyway_switch_hot_reads",
        kind: Kind::Counter,
        unit: None,
        labels: &["keyspace", "keyhash", "to"],
        help: "GETs and MGET keys of each hot key in its present generation, by where they went: a copy, or home, to the tail.",
    };
    /// PUT, DEL, CAS and INCR packets of each hot key in its present generation.
    pub const SWITCH_HOT_WRITES: Metric = Metric {
        name: "keyway_switch_hot_writes",
        kind: Kind::Counter,
        unit: None,
        labels: &["keyspace", "keyhash"],
        help: "PUT, DEL, CAS and INCR packets of each hot key in its present generation.",
    };
    /// PUTs of delegated keys that were sent by a grant: a new one, or again one that the request had.
    pub const SWITCH_HOT_DELEGATED_WRITES: Metric = Metric {
        name: "keyway_switch_hot_delegated_writes",
        kind: Kind::Counter,
        unit: None,
        labels: &["grant"],
        help: "PUTs of delegated keys that were sent by a grant: a new one, or again one that the request had.",
    };
    /// Replies about delegated keys whose version is above all that were given out there: sent on, and not believed.
    pub const SWITCH_HOT_DOUBTED: Metric = Metric {
        name: "keyway_switch_hot_doubted",
        kind: Kind::Counter,
        unit: None,
        labels: &[],
        help: "Replies about delegated keys whose version is above all that were given out there: sent on, and not believed.",
    };
    /// PUTs of delegated keys that were sent home, to be told to come later, because the table of grants has no room for them.
    pub const SWITCH_HOT_CROWDED: Metric = Metric {
        name: "keyway_switch_hot_crowded",
        kind: Kind::Counter,
        unit: None,
        labels: &[],
        help: "PUTs of delegated keys that were sent home, to be told to come later, because the table of grants has no room for them.",
    };
    /// Keys of MGETs that were hot, by where they went: a copy, or home, to the tail. Each is in keyway_switch_hot_reads, too.
    pub const SWITCH_HOT_MULTIGET_KEYS: Metric = Metric {
        name: "keyway_switch_hot_multiget_keys",
        kind: Kind::Counter,
        unit: None,
        labels: &["to"],
        help: "Keys of MGETs that were hot, by where they went: a copy, or home, to the tail. Each is in keyway_switch_hot_reads, too.",
    };
    /// Revision of the installed order of hot keys; 0: none is installed.
    pub const SWITCH_HOT_REVISION: Metric = Metric {
        name: "keyway_switch_hot_revision",
        kind: Kind::Gauge,
        unit: None,
        labels: &[],
        help: "Revision of the installed order of hot keys; 0: none is installed.",
    };
    /// Revision of the installed tables.
    pub const SWITCH_TABLE_REVISION: Metric = Metric {
        name: "keyway_switch_table_revision",
        kind: Kind::Gauge,
        unit: None,
        labels: &[],
        help: "Revision of the installed tables.",
    };
    /// 1 while every thread of the switch has a lease, else 0: it then drops everything.
    pub const SWITCH_LEASED: Metric = Metric {
        name: "keyway_switch_leased",
        kind: Kind::Gauge,
        unit: None,
        labels: &[],
        help: "1 while every thread of the switch has a lease, else 0: it then drops everything.",
    };
    /// Client requests and chain messages that the node took, by operation.
    pub const NODE_REQUESTS: Metric = Metric {
        name: "keyway_node_requests",
        kind: Kind::Counter,
        unit: None,
        labels: &["node", "op"],
        help: "Client requests and chain messages that the node took, by operation.",
    };
    /// Replies that the node sent, by outcome code.
    pub const NODE_REPLIES: Metric = Metric {
        name: "keyway_node_replies",
        kind: Kind::Counter,
        unit: None,
        labels: &["node", "code"],
        help: "Replies that the node sent, by outcome code.",
    };
    /// Packets the node dropped, by drop reason.
    pub const NODE_DROPPED: Metric = Metric {
        name: "keyway_node_dropped",
        kind: Kind::Counter,
        unit: None,
        labels: &["node", "reason"],
        help: "Packets the node dropped, by drop reason.",
    };
    /// Datagrams that the node's kernel refused to send: to others they are lost.
    pub const NODE_UNSENT: Metric = Metric {
        name: "keyway_node_unsent",
        kind: Kind::Counter,
        unit: None,
        labels: &["node"],
        help: "Datagrams that the node's kernel refused to send: to others they are lost.",
    };
    /// Datagrams that the node's kernel dropped because a receive buffer was full.
    pub const NODE_OVERFLOWED: Metric = Metric {
        name: "keyway_node_overflowed",
        kind: Kind::Counter,
        unit: None,
        labels: &["node"],
        help: "Datagrams that the node's kernel dropped because a receive buffer was full.",
    };
    /// Chain writes sent again because the successor did not answer in time.
    pub const NODE_RESENDS: Metric = Metric {
        name: "keyway_node_resends",
        kind: Kind::Counter,
        unit: None,
        labels: &["node"],
        help: "Chain writes sent again because the successor did not answer in time.",
    };
    /// Values that were compared with those of the other members of their chains, at the tail.
    pub const NODE_VERIFIED: Metric = Metric {
        name: "keyway_node_verified",
        kind: Kind::Counter,
        unit: None,
        labels: &["node"],
        help: "Values that were compared with those of the other members of their chains, at the tail.",
    };
    /// Keys of which members were found to hold different things, at the tail.
    pub const NODE_DIFFERENCES: Metric = Metric {
        name: "keyway_node_differences",
        kind: Kind::Counter,
        unit: None,
        labels: &["node"],
        help: "Keys of which members were found to hold different things, at the tail.",
    };
    /// Records of this node that were found to be wrong and made right.
    pub const NODE_MENDED: Metric = Metric {
        name: "keyway_node_mended",
        kind: Kind::Counter,
        unit: None,
        labels: &["node"],
        help: "Records of this node that were found to be wrong and made right.",
    };
    /// Records found with a version that nobody can have given out yet, in any member, at the tail.
    pub const NODE_ABSURD: Metric = Metric {
        name: "keyway_node_absurd",
        kind: Kind::Counter,
        unit: None,
        labels: &["node"],
        help: "Records found with a version that nobody can have given out yet, in any member, at the tail.",
    };
    /// Reads that the cache was sent, by what became of them: hit, or missed, of which those that it could send on went to nodes.
    pub const CACHE_READS: Metric = Metric {
        name: "keyway_cache_reads",
        kind: Kind::Counter,
        unit: None,
        labels: &["cache", "how"],
        help: "Reads that the cache was sent, by what became of them: hit, or missed, of which those that it could send on went to nodes.",
    };
    /// Keys that the cache holds.
    pub const CACHE_ENTRIES: Metric = Metric {
        name: "keyway_cache_entries",
        kind: Kind::Gauge,
        unit: None,
        labels: &["cache"],
        help: "Keys that the cache holds.",
    };
    /// Bytes of these keys and their values.
    pub const CACHE_MEMORY_BYTES: Metric = Metric {
        name: "keyway_cache_memory_bytes",
        kind: Kind::Gauge,
        unit: Some("bytes"),
        labels: &["cache"],
        help: "Bytes of these keys and their values.",
    };
    /// Rules of the switch that lead to the cache, as far as it knows.
    pub const CACHE_RULES: Metric = Metric {
        name: "keyway_cache_rules",
        kind: Kind::Gauge,
        unit: None,
        labels: &["cache"],
        help: "Rules of the switch that lead to the cache, as far as it knows.",
    };
    /// Keys that the cache has asked nodes for.
    pub const CACHE_FETCHES: Metric = Metric {
        name: "keyway_cache_fetches",
        kind: Kind::Counter,
        unit: None,
        labels: &["cache"],
        help: "Keys that the cache has asked nodes for.",
    };
    /// New values of keys that nodes have sent the cache.
    pub const CACHE_UPDATES: Metric = Metric {
        name: "keyway_cache_updates",
        kind: Kind::Counter,
        unit: None,
        labels: &["cache"],
        help: "New values of keys that nodes have sent the cache.",
    };
    /// Datagrams that the cache dropped, by drop reason.
    pub const CACHE_DROPPED: Metric = Metric {
        name: "keyway_cache_dropped",
        kind: Kind::Counter,
        unit: None,
        labels: &["cache", "reason"],
        help: "Datagrams that the cache dropped, by drop reason.",
    };
    /// Datagrams that the kernel of the cache refused to send.
    pub const CACHE_UNSENT: Metric = Metric {
        name: "keyway_cache_unsent",
        kind: Kind::Counter,
        unit: None,
        labels: &["cache"],
        help: "Datagrams that the kernel of the cache refused to send.",
    };
    /// Datagrams that the kernel of the cache dropped because its receive buffer was full.
    pub const CACHE_OVERFLOWED: Metric = Metric {
        name: "keyway_cache_overflowed",
        kind: Kind::Counter,
        unit: None,
        labels: &["cache"],
        help: "Datagrams that the kernel of the cache dropped because its receive buffer was full.",
    };
    /// Time since the replicas of a partition were last compared; partitions that were not since the controller began are left out.
    pub const CONTROLLER_VERIFIED_AGE_SECONDS: Metric = Metric {
        name: "keyway_controller_verified_age_seconds",
        kind: Kind::Gauge,
        unit: Some("seconds"),
        labels: &["partition"],
        help: "Time since the replicas of a partition were last compared; partitions that were not since the controller began are left out.",
    };
    /// Retried requests that were recognised and not applied again.
    pub const NODE_DUPLICATES: Metric = Metric {
        name: "keyway_node_duplicates",
        kind: Kind::Counter,
        unit: None,
        labels: &["node"],
        help: "Retried requests that were recognised and not applied again.",
    };
    /// Writes that arrived when a newer one of their key was committed already.
    pub const NODE_SUPERSEDED: Metric = Metric {
        name: "keyway_node_superseded",
        kind: Kind::Counter,
        unit: None,
        labels: &["node"],
        help: "Writes that arrived when a newer one of their key was committed already.",
    };
    /// Values that the head turned into tombstones because their time had come.
    pub const NODE_EXPIRED: Metric = Metric {
        name: "keyway_node_expired",
        kind: Kind::Counter,
        unit: None,
        labels: &["node"],
        help: "Values that the head turned into tombstones because their time had come.",
    };
    /// Tombstones removed.
    pub const NODE_COLLECTED: Metric = Metric {
        name: "keyway_node_collected",
        kind: Kind::Counter,
        unit: None,
        labels: &["node"],
        help: "Tombstones removed.",
    };
    /// Parts of big values removed: of values that were replaced, and of uploads that were given up.
    pub const NODE_PARTS_DROPPED: Metric = Metric {
        name: "keyway_node_parts_dropped",
        kind: Kind::Counter,
        unit: None,
        labels: &["node"],
        help: "Parts of big values removed: of values that were replaced, and of uploads that were given up.",
    };
    /// Notes that the node's store keeps of its partitions, beside records, that made no sense when they were read, and were left out.
    pub const NODE_NOTES_IGNORED: Metric = Metric {
        name: "keyway_node_notes_ignored",
        kind: Kind::Counter,
        unit: None,
        labels: &["node"],
        help: "Notes that the node's store keeps of its partitions, beside records, that made no sense when they were read, and were left out.",
    };
    /// Records looked at for scans and counts. A count of whole partitions looks at none.
    pub const NODE_SCANNED: Metric = Metric {
        name: "keyway_node_scanned",
        kind: Kind::Counter,
        unit: None,
        labels: &["node"],
        help: "Records looked at for scans and counts. A count of whole partitions looks at none.",
    };
    /// Times that a shard took longer over one batch than it should, while it serves nobody else and takes no lease. The log says how long, and how much of it was the disk.
    pub const NODE_LONG_TURNS: Metric = Metric {
        name: "keyway_node_long_turns",
        kind: Kind::Counter,
        unit: None,
        labels: &["node"],
        help: "Times that a shard took longer over one batch than it should, while it serves nobody else and takes no lease. The log says how long, and how much of it was the disk.",
    };
    /// Uploads of big values of which parts are held and that are not values, or not any more.
    pub const NODE_UPLOADS: Metric = Metric {
        name: "keyway_node_uploads",
        kind: Kind::Gauge,
        unit: None,
        labels: &["node"],
        help: "Uploads of big values of which parts are held and that are not values, or not any more.",
    };
    /// Bytes of parts of big values that are not values yet, as of the last sweep.
    pub const NODE_UPLOAD_BYTES: Metric = Metric {
        name: "keyway_node_upload_bytes",
        kind: Kind::Gauge,
        unit: Some("bytes"),
        labels: &["node"],
        help: "Bytes of parts of big values that are not values yet, as of the last sweep.",
    };
    /// Memory that the node takes for keys, values, tombstones, sessions, pending writes and copies, about.
    pub const NODE_MEMORY_BYTES: Metric = Metric {
        name: "keyway_node_memory_bytes",
        kind: Kind::Gauge,
        unit: Some("bytes"),
        labels: &["node"],
        help: "Memory that the node takes for keys, values, tombstones, sessions, pending writes and copies, about.",
    };
    /// The most that it may take (`max_memory`); not there without a limit.
    pub const NODE_MEMORY_MAX_BYTES: Metric = Metric {
        name: "keyway_node_memory_max_bytes",
        kind: Kind::Gauge,
        unit: Some("bytes"),
        labels: &["node"],
        help: "The most that it may take (`max_memory`); not there without a limit.",
    };
    /// Bytes free on the disk that the node writes to; not there if it writes to none.
    pub const NODE_DISK_FREE_BYTES: Metric = Metric {
        name: "keyway_node_disk_free_bytes",
        kind: Kind::Gauge,
        unit: Some("bytes"),
        labels: &["node"],
        help: "Bytes free on the disk that the node writes to; not there if it writes to none.",
    };
    /// From how many free bytes on the node refuses new data (`min_free_disk`); not there if it writes to no disk.
    pub const NODE_DISK_FLOOR_BYTES: Metric = Metric {
        name: "keyway_node_disk_floor_bytes",
        kind: Kind::Gauge,
        unit: Some("bytes"),
        labels: &["node"],
        help: "From how many free bytes on the node refuses new data (`min_free_disk`); not there if it writes to no disk.",
    };
    /// Bytes of the files of the node's store; not there if it writes to no disk.
    pub const NODE_DISK_USED_BYTES: Metric = Metric {
        name: "keyway_node_disk_used_bytes",
        kind: Kind::Gauge,
        unit: Some("bytes"),
        labels: &["node"],
        help: "Bytes of the files of the node's store; not there if it writes to no disk.",
    };
    /// Keys that have a value at the node, whatever its part in their chains.
    pub const NODE_STORED_KEYS: Metric = Metric {
        name: "keyway_node_stored_keys",
        kind: Kind::Gauge,
        unit: None,
        labels: &["node", "keyspace"],
        help: "Keys that have a value at the node, whatever its part in their chains.",
    };
    /// Bytes of these keys and their values, as clients wrote them.
    pub const NODE_STORED_BYTES: Metric = Metric {
        name: "keyway_node_stored_bytes",
        kind: Kind::Gauge,
        unit: Some("bytes"),
        labels: &["node", "keyspace"],
        help: "Bytes of these keys and their values, as clients wrote them.",
    };
    /// How long packets were at the node, by operation: from when they were received until what they led to was durable and sent, with their wait for a node of limited rate.
    pub const NODE_LATENCY_SECONDS: Metric = Metric {
        name: "keyway_node_latency_seconds",
        kind: Kind::Histogram,
        unit: Some("seconds"),
        labels: &["node", "op"],
        help: "How long packets were at the node, by operation: from when they were received until what they led to was durable and sent, with their wait for a node of limited rate.",
    };
    /// What the node has room for: 0 everything, 1 nothing that can wait, 2 nothing that grows, 3 only deletes.
    pub const NODE_ROOM: Metric = Metric {
        name: "keyway_node_room",
        kind: Kind::Gauge,
        unit: None,
        labels: &["node"],
        help: "What the node has room for: 0 everything, 1 nothing that can wait, 2 nothing that grows, 3 only deletes.",
    };
    /// Writes recorded and not yet committed.
    pub const NODE_PENDING: Metric = Metric {
        name: "keyway_node_pending",
        kind: Kind::Gauge,
        unit: None,
        labels: &["node"],
        help: "Writes recorded and not yet committed.",
    };
    /// Client sessions held, over all partitions.
    pub const NODE_SESSIONS: Metric = Metric {
        name: "keyway_node_sessions",
        kind: Kind::Gauge,
        unit: None,
        labels: &["node"],
        help: "Client sessions held, over all partitions.",
    };
    /// Clients that have said goodbye, over all partitions: of their sessions no more is kept than that they have ended.
    pub const NODE_SESSIONS_ENDED: Metric = Metric {
        name: "keyway_node_sessions_ended",
        kind: Kind::Gauge,
        unit: None,
        labels: &["node"],
        help: "Clients that have said goodbye, over all partitions: of their sessions no more is kept than that they have ended.",
    };
    /// Client sessions that were forgotten before their time to make room for others.
    pub const NODE_SESSIONS_FORGOTTEN: Metric = Metric {
        name: "keyway_node_sessions_forgotten",
        kind: Kind::Counter,
        unit: None,
        labels: &["node"],
        help: "Client sessions that were forgotten before their time to make room for others.",
    };
    /// Times the engine made a batch durable.
    pub const NODE_SYNCS: Metric = Metric {
        name: "keyway_node_syncs",
        kind: Kind::Counter,
        unit: None,
        labels: &["node"],
        help: "Times the engine made a batch durable.",
    };
    /// Processor time that the threads of the node's shards have used.
    pub const NODE_CPU_SECONDS: Metric = Metric {
        name: "keyway_node_cpu_seconds",
        kind: Kind::Counter,
        unit: Some("seconds"),
        labels: &["node"],
        help: "Processor time that the threads of the node's shards have used.",
    };
    /// Requests that wait in the node's queues, as of the last batch of each shard.
    pub const NODE_WAITING: Metric = Metric {
        name: "keyway_node_waiting",
        kind: Kind::Gauge,
        unit: None,
        labels: &["node"],
        help: "Requests that wait in the node's queues, as of the last batch of each shard.",
    };
    /// Partitions the node has a role in.
    pub const NODE_PARTITIONS: Metric = Metric {
        name: "keyway_node_partitions",
        kind: Kind::Gauge,
        unit: None,
        labels: &["node"],
        help: "Partitions the node has a role in.",
    };
    /// Records that scans of the partition have examined at this node, since it has the partition.
    pub const NODE_PARTITION_SCANNED: Metric = Metric {
        name: "keyway_node_partition_scanned",
        kind: Kind::Counter,
        unit: None,
        labels: &["node", "partition"],
        help: "Records that scans of the partition have examined at this node, since it has the partition.",
    };
    /// Bytes of requests for the partition that this node has served, since it has the partition.
    pub const NODE_PARTITION_BYTES_IN: Metric = Metric {
        name: "keyway_node_partition_bytes_in",
        kind: Kind::Counter,
        unit: None,
        labels: &["node", "partition"],
        help: "Bytes of requests for the partition that this node has served, since it has the partition.",
    };
    /// Bytes of this node's answers to reads of the partition, since it has the partition.
    pub const NODE_PARTITION_BYTES_OUT: Metric = Metric {
        name: "keyway_node_partition_bytes_out",
        kind: Kind::Counter,
        unit: None,
        labels: &["node", "partition"],
        help: "Bytes of this node's answers to reads of the partition, since it has the partition.",
    };
    /// Hot keys of the partitions that the node has a role in, as they are marked there.
    pub const NODE_HOT_KEYS: Metric = Metric {
        name: "keyway_node_hot_keys",
        kind: Kind::Gauge,
        unit: None,
        labels: &["node"],
        help: "Hot keys of the partitions that the node has a role in, as they are marked there.",
    };
    /// Copies of hot keys held, to answer reads from.
    pub const NODE_HOT_COPIES: Metric = Metric {
        name: "keyway_node_hot_copies",
        kind: Kind::Gauge,
        unit: None,
        labels: &["node"],
        help: "Copies of hot keys held, to answer reads from.",
    };
    /// Copies of hot keys sent to other nodes, those sent again included.
    pub const NODE_HOT_COPIES_SENT: Metric = Metric {
        name: "keyway_node_hot_copies_sent",
        kind: Kind::Counter,
        unit: None,
        labels: &["node"],
        help: "Copies of hot keys sent to other nodes, those sent again included.",
    };
    /// Delegated keys of which the node holds a write, of whoever's partitions.
    pub const NODE_HOT_DELEGATED_KEYS: Metric = Metric {
        name: "keyway_node_hot_delegated_keys",
        kind: Kind::Gauge,
        unit: None,
        labels: &["node"],
        help: "Delegated keys of which the node holds a write, of whoever's partitions.",
    };
    /// Writes of delegated keys that the node committed, of whoever's partitions.
    pub const NODE_HOT_DELEGATED_WRITES: Metric = Metric {
        name: "keyway_node_hot_delegated_writes",
        kind: Kind::Counter,
        unit: None,
        labels: &["node"],
        help: "Writes of delegated keys that the node committed, of whoever's partitions.",
    };
    /// GETs and MGET keys answered from a copy.
    pub const NODE_HOT_READS: Metric = Metric {
        name: "keyway_node_hot_reads",
        kind: Kind::Counter,
        unit: None,
        labels: &["node"],
        help: "GETs and MGET keys answered from a copy.",
    };
    /// Keys that the node has lent to caches.
    pub const NODE_LOANS: Metric = Metric {
        name: "keyway_node_loans",
        kind: Kind::Counter,
        unit: None,
        labels: &["node"],
        help: "Keys that the node has lent to caches.",
    };
    /// Requests that waited because a cache had not answered what its tail told it of their key.
    pub const NODE_PARKED: Metric = Metric {
        name: "keyway_node_parked",
        kind: Kind::Counter,
        unit: None,
        labels: &["node"],
        help: "Requests that waited because a cache had not answered what its tail told it of their key.",
    };
    /// Requests that came to the content addresses of their keys, stamped by nobody.
    pub const NODE_BY_ADDRESS: Metric = Metric {
        name: "keyway_node_by_address",
        kind: Kind::Counter,
        unit: None,
        labels: &["node"],
        help: "Requests that came to the content addresses of their keys, stamped by nobody.",
    };
    /// 1 while every shard of the node has a lease, else 0: it then drops everything.
    pub const NODE_LEASED: Metric = Metric {
        name: "keyway_node_leased",
        kind: Kind::Gauge,
        unit: None,
        labels: &["node"],
        help: "1 while every shard of the node has a lease, else 0: it then drops everything.",
    };
    /// Revision of the cluster map.
    pub const CONTROLLER_MAP_REVISION: Metric = Metric {
        name: "keyway_controller_map_revision",
        kind: Kind::Gauge,
        unit: None,
        labels: &[],
        help: "Revision of the cluster map.",
    };
    /// Switches, nodes and caches that have acknowledged the present revision.
    pub const CONTROLLER_MEMBERS_READY: Metric = Metric {
        name: "keyway_controller_members_ready",
        kind: Kind::Gauge,
        unit: None,
        labels: &["role"],
        help: "Switches, nodes and caches that have acknowledged the present revision.",
    };
    /// Orders sent to members.
    pub const CONTROLLER_ORDERS: Metric = Metric {
        name: "keyway_controller_orders",
        kind: Kind::Counter,
        unit: None,
        labels: &[],
        help: "Orders sent to members.",
    };
    /// 1 while this controller decides, 0 while it stands by.
    pub const CONTROLLER_ACTIVE: Metric = Metric {
        name: "keyway_controller_active",
        kind: Kind::Gauge,
        unit: None,
        labels: &[],
        help: "1 while this controller decides, 0 while it stands by.",
    };
    /// The term of this controller while it leads: higher than that of any before.
    pub const CONTROLLER_TERM: Metric = Metric {
        name: "keyway_controller_term",
        kind: Kind::Gauge,
        unit: None,
        labels: &[],
        help: "The term of this controller while it leads: higher than that of any before.",
    };
    /// Time since the store of this controller answered last, while it leads; 0 for one that needs no answer.
    pub const CONTROLLER_STORE_SILENT_SECONDS: Metric = Metric {
        name: "keyway_controller_store_silent_seconds",
        kind: Kind::Gauge,
        unit: Some("seconds"),
        labels: &[],
        help: "Time since the store of this controller answered last, while it leads; 0 for one that needs no answer.",
    };
    /// Orders of controllers that do not lead any more, which this switch or node refused.
    pub const ORDERS_REFUSED: Metric = Metric {
        name: "keyway_orders_refused",
        kind: Kind::Counter,
        unit: None,
        labels: &["role"],
        help: "Orders of controllers that do not lead any more, which this switch or node refused.",
    };
    /// Datagrams that were dropped before anybody looked at the packet in them, by reason; where the network is not trusted.
    pub const ENVELOPES_REFUSED: Metric = Metric {
        name: "keyway_envelopes_refused",
        kind: Kind::Counter,
        unit: None,
        labels: &["role", "why"],
        help: "Datagrams that were dropped before anybody looked at the packet in them, by reason; where the network is not trusted.",
    };
    /// The highest term of a controller that this switch or node has had an order of; 0 for none.
    pub const LEADER_TERM: Metric = Metric {
        name: "keyway_leader_term",
        kind: Kind::Gauge,
        unit: None,
        labels: &["role"],
        help: "The highest term of a controller that this switch or node has had an order of; 0 for none.",
    };
    /// The switch that forwards, by its position in the configuration.
    pub const CONTROLLER_ACTIVE_SWITCH: Metric = Metric {
        name: "keyway_controller_active_switch",
        kind: Kind::Gauge,
        unit: None,
        labels: &[],
        help: "The switch that forwards, by its position in the configuration.",
    };
    /// Changes of chains and of their openness, over all partitions, since they were made.
    pub const CONTROLLER_EPOCHS: Metric = Metric {
        name: "keyway_controller_epochs",
        kind: Kind::Counter,
        unit: None,
        labels: &[],
        help: "Changes of chains and of their openness, over all partitions, since they were made.",
    };
    /// Partitions that are open, closed because their chain changes, under_replicated, or joining (they take a node in).
    pub const CONTROLLER_PARTITIONS: Metric = Metric {
        name: "keyway_controller_partitions",
        kind: Kind::Gauge,
        unit: None,
        labels: &["state"],
        help: "Partitions that are open, closed because their chain changes, under_replicated, or joining (they take a node in).",
    };
    /// Changes that were decided because nodes had too much to do, since this controller began: another member of a chain became its tail (turn), or a replica moved (move).
    pub const CONTROLLER_PLACEMENT_CHANGES: Metric = Metric {
        name: "keyway_controller_placement_changes",
        kind: Kind::Counter,
        unit: None,
        labels: &["change"],
        help: "Changes that were decided because nodes had too much to do, since this controller began: another member of a chain became its tail (turn), or a replica moved (move).",
    };
    /// What the node has to do, by what it can bear, against the mean of all nodes, when all that is under way has come to its end.
    pub const CONTROLLER_NODE_LOAD_RATIO: Metric = Metric {
        name: "keyway_controller_node_load_ratio",
        kind: Kind::Gauge,
        unit: Some("ratio"),
        labels: &["node"],
        help: "What the node has to do, by what it can bear, against the mean of all nodes, when all that is under way has come to its end.",
    };
    /// What the node holds of what it may, of its memory or its disk, when all that is under way has come to its end; not there without a limit.
    pub const CONTROLLER_NODE_ROOM_RATIO: Metric = Metric {
        name: "keyway_controller_node_room_ratio",
        kind: Kind::Gauge,
        unit: Some("ratio"),
        labels: &["node"],
        help: "What the node holds of what it may, of its memory or its disk, when all that is under way has come to its end; not there without a limit.",
    };
    /// Keys by what the controller thinks of them: hot, or pinned by an operator.
    pub const CONTROLLER_HOT_KEYS: Metric = Metric {
        name: "keyway_controller_hot_keys",
        kind: Kind::Gauge,
        unit: None,
        labels: &["state"],
        help: "Keys by what the controller thinks of them: hot, or pinned by an operator.",
    };
    /// Keys of the keyspace that have a value, each counted once; not there while some are not counted.
    pub const CONTROLLER_STORED_KEYS: Metric = Metric {
        name: "keyway_controller_stored_keys",
        kind: Kind::Gauge,
        unit: None,
        labels: &["keyspace"],
        help: "Keys of the keyspace that have a value, each counted once; not there while some are not counted.",
    };
    /// Bytes of these keys and their values, as clients wrote them, each counted once.
    pub const CONTROLLER_STORED_BYTES: Metric = Metric {
        name: "keyway_controller_stored_bytes",
        kind: Kind::Gauge,
        unit: Some("bytes"),
        labels: &["keyspace"],
        help: "Bytes of these keys and their values, as clients wrote them, each counted once.",
    };
    /// Part of the partition that its tail has copied to the node that is taken in.
    pub const CONTROLLER_COPY_RATIO: Metric = Metric {
        name: "keyway_controller_copy_ratio",
        kind: Kind::Gauge,
        unit: Some("ratio"),
        labels: &["partition", "from", "to"],
        help: "Part of the partition that its tail has copied to the node that is taken in.",
    };
    /// Bytes of the partition that its tail has copied to the node that is taken in.
    pub const CONTROLLER_COPY_BYTES: Metric = Metric {
        name: "keyway_controller_copy_bytes",
        kind: Kind::Gauge,
        unit: Some("bytes"),
        labels: &["partition", "from", "to"],
        help: "Bytes of the partition that its tail has copied to the node that is taken in.",
    };
    /// Connections to the admin server: those by which a controller gives orders and hears alerts (control), and all others (other).
    pub const ADMIN_CONNECTIONS: Metric = Metric {
        name: "keyway_admin_connections",
        kind: Kind::Gauge,
        unit: None,
        labels: &["kind"],
        help: "Connections to the admin server: those by which a controller gives orders and hears alerts (control), and all others (other).",
    };
    /// Connections that the admin server may have.
    pub const ADMIN_CONNECTIONS_MAX: Metric = Metric {
        name: "keyway_admin_connections_max",
        kind: Kind::Gauge,
        unit: None,
        labels: &["kind"],
        help: "Connections that the admin server may have.",
    };
    /// Connections to the admin server that were refused, or ended to make way for others (full), and those that took too long with a request or without one (slow).
    pub const ADMIN_TURNED_AWAY: Metric = Metric {
        name: "keyway_admin_turned_away",
        kind: Kind::Counter,
        unit: None,
        labels: &["why"],
        help: "Connections to the admin server that were refused, or ended to make way for others (full), and those that took too long with a request or without one (slow).",
    };
    /// Who was refused at the admin server: connections without a good certificate (certificate) or without TLS (handshake), requests that show no certificate (anonymous), whose role may not ask that (role), or that another site's page has sent (origin).
    pub const ADMIN_REFUSED: Metric = Metric {
        name: "keyway_admin_refused",
        kind: Kind::Counter,
        unit: None,
        labels: &["why"],
        help: "Who was refused at the admin server: connections without a good certificate (certificate) or without TLS (handshake), requests that show no certificate (anonymous), whose role may not ask that (role), or that another site's page has sent (origin).",
    };
    /// For how long the certificate is still valid that the process shows; no sample without one.
    pub const CERTIFICATE_LEFT_SECONDS: Metric = Metric {
        name: "keyway_certificate_left_seconds",
        kind: Kind::Gauge,
        unit: Some("seconds"),
        labels: &[],
        help: "For how long the certificate is still valid that the process shows; no sample without one.",
    };
    /// Descriptors that the process has open: files, sockets and the like.
    pub const FILES_OPEN: Metric = Metric {
        name: "keyway_files_open",
        kind: Kind::Gauge,
        unit: None,
        labels: &[],
        help: "Descriptors that the process has open: files, sockets and the like.",
    };
    /// Descriptors that are kept for stores, threads, and the connections that were promised a place.
    pub const FILES_RESERVED: Metric = Metric {
        name: "keyway_files_reserved",
        kind: Kind::Gauge,
        unit: None,
        labels: &[],
        help: "Descriptors that are kept for stores, threads, and the connections that were promised a place.",
    };
    /// Descriptors that the process may have.
    pub const FILES_MAX: Metric = Metric {
        name: "keyway_files_max",
        kind: Kind::Gauge,
        unit: None,
        labels: &[],
        help: "Descriptors that the process may have.",
    };
    /// Clients that are connected to the gateway.
    pub const GATEWAY_CONNECTIONS: Metric = Metric {
        name: "keyway_gateway_connections",
        kind: Kind::Gauge,
        unit: None,
        labels: &[],
        help: "Clients that are connected to the gateway.",
    };
    /// Clients that may be connected to the gateway at once.
    pub const GATEWAY_CONNECTIONS_MAX: Metric = Metric {
        name: "keyway_gateway_connections_max",
        kind: Kind::Gauge,
        unit: None,
        labels: &[],
        help: "Clients that may be connected to the gateway at once.",
    };
    /// Connections that the gateway let in.
    pub const GATEWAY_ACCEPTED: Metric = Metric {
        name: "keyway_gateway_accepted",
        kind: Kind::Counter,
        unit: None,
        labels: &[],
        help: "Connections that the gateway let in.",
    };
    /// Connections that the gateway turned away because it had too many.
    pub const GATEWAY_REJECTED: Metric = Metric {
        name: "keyway_gateway_rejected",
        kind: Kind::Counter,
        unit: None,
        labels: &[],
        help: "Connections that the gateway turned away because it had too many.",
    };
    /// Commands of Redis clients, by outcome: ok, error (carried out, and answered with an error), or refused (not carried out).
    pub const GATEWAY_COMMANDS: Metric = Metric {
        name: "keyway_gateway_commands",
        kind: Kind::Counter,
        unit: None,
        labels: &["command", "outcome"],
        help: "Commands of Redis clients, by outcome: ok, error (carried out, and answered with an error), or refused (not carried out).",
    };
    /// Time from when a command of a Redis client was begun to its reply.
    pub const GATEWAY_LATENCY_SECONDS: Metric = Metric {
        name: "keyway_gateway_latency_seconds",
        kind: Kind::Histogram,
        unit: Some("seconds"),
        labels: &["command"],
        help: "Time from when a command of a Redis client was begun to its reply.",
    };
    /// Error replies, by their first word.
    pub const GATEWAY_ERRORS: Metric = Metric {
        name: "keyway_gateway_errors",
        kind: Kind::Counter,
        unit: None,
        labels: &["code"],
        help: "Error replies, by their first word.",
    };
    /// Connections that the gateway ended because what they sent is no command.
    pub const GATEWAY_PROTOCOL_ERRORS: Metric = Metric {
        name: "keyway_gateway_protocol_errors",
        kind: Kind::Counter,
        unit: None,
        labels: &[],
        help: "Connections that the gateway ended because what they sent is no command.",
    };
    /// Bytes that Redis clients sent, without what TLS adds.
    pub const GATEWAY_RECEIVED_BYTES: Metric = Metric {
        name: "keyway_gateway_received_bytes",
        kind: Kind::Counter,
        unit: Some("bytes"),
        labels: &[],
        help: "Bytes that Redis clients sent, without what TLS adds.",
    };
    /// Bytes sent to Redis clients, without what TLS adds.
    pub const GATEWAY_SENT_BYTES: Metric = Metric {
        name: "keyway_gateway_sent_bytes",
        kind: Kind::Counter,
        unit: Some("bytes"),
        labels: &[],
        help: "Bytes sent to Redis clients, without what TLS adds.",
    };
    /// Commands that are under way.
    pub const GATEWAY_RUNNING: Metric = Metric {
        name: "keyway_gateway_running",
        kind: Kind::Gauge,
        unit: None,
        labels: &[],
        help: "Commands that are under way.",
    };
    /// Bytes that the gateway holds for its connections: in, read and not understood yet; out, replies not written yet.
    pub const GATEWAY_BUFFERED_BYTES: Metric = Metric {
        name: "keyway_gateway_buffered_bytes",
        kind: Kind::Gauge,
        unit: Some("bytes"),
        labels: &["direction"],
        help: "Bytes that the gateway holds for its connections: in, read and not understood yet; out, replies not written yet.",
    };
    /// Times that the gateway stopped reading from a client: a command waits for those before it (order), as many are under way as may be (overlap), it does not read its replies (replies), or CLIENT PAUSE.
    pub const GATEWAY_HELD_BACK: Metric = Metric {
        name: "keyway_gateway_held_back",
        kind: Kind::Counter,
        unit: None,
        labels: &["why"],
        help: "Times that the gateway stopped reading from a client: a command waits for those before it (order), as many are under way as may be (overlap), it does not read its replies (replies), or CLIENT PAUSE.",
    };
    /// Bytes that all connections of Redis clients hold: buffers, commands that are not whole, under way or queued, and replies that are not read.
    pub const GATEWAY_HELD_BYTES: Metric = Metric {
        name: "keyway_gateway_held_bytes",
        kind: Kind::Gauge,
        unit: Some("bytes"),
        labels: &[],
        help: "Bytes that all connections of Redis clients hold: buffers, commands that are not whole, under way or queued, and replies that are not read.",
    };
    /// Bytes that they may hold before those that hold most are ended: the parameter maxmemory-clients.
    pub const GATEWAY_HELD_BYTES_MAX: Metric = Metric {
        name: "keyway_gateway_held_bytes_max",
        kind: Kind::Gauge,
        unit: None,
        labels: &[],
        help: "Bytes that they may hold before those that hold most are ended: the parameter maxmemory-clients.",
    };
    /// Connections that the gateway ended: no command came for the time that the parameter timeout says (idle), one came too slowly (slow), nobody showed in time who it is (stranger), or it held too much (memory).
    pub const GATEWAY_ENDED: Metric = Metric {
        name: "keyway_gateway_ended",
        kind: Kind::Counter,
        unit: None,
        labels: &["why"],
        help: "Connections that the gateway ended: no command came for the time that the parameter timeout says (idle), one came too slowly (slow), nobody showed in time who it is (stranger), or it held too much (memory).",
    };
    /// Passwords of Redis clients that were wrong, and those that were refused without a look because too many wrong ones had come from the same address.
    pub const GATEWAY_WRONG_PASSWORDS: Metric = Metric {
        name: "keyway_gateway_wrong_passwords",
        kind: Kind::Counter,
        unit: None,
        labels: &["outcome"],
        help: "Passwords of Redis clients that were wrong, and those that were refused without a look because too many wrong ones had come from the same address.",
    };
    /// Memory that the gateway's process has, as the kernel counts it.
    pub const GATEWAY_RESIDENT_BYTES: Metric = Metric {
        name: "keyway_gateway_resident_bytes",
        kind: Kind::Gauge,
        unit: Some("bytes"),
        labels: &[],
        help: "Memory that the gateway's process has, as the kernel counts it.",
    };
    /// 1 if the threads of a role of this process answered in time, else 0: its other metrics are then missing.
    pub const ROLE_UP: Metric = Metric {
        name: "keyway_role_up",
        kind: Kind::Gauge,
        unit: None,
        labels: &["role"],
        help: "1 if the threads of a role of this process answered in time, else 0: its other metrics are then missing.",
    };
    /// Always 1: what runs here.
    pub const BUILD_INFO: Metric = Metric {
        name: "keyway_build_info",
        kind: Kind::Gauge,
        unit: None,
        labels: &["version", "roles"],
        help: "Always 1: what runs here.",
    };
    /// Processor time of the process, of the user and of the system.
    pub const PROCESS_CPU_SECONDS: Metric = Metric {
        name: "process_cpu_seconds",
        kind: Kind::Counter,
        unit: Some("seconds"),
        labels: &[],
        help: "Processor time of the process, of the user and of the system.",
    };
    /// Memory of the process that is in RAM.
    pub const PROCESS_RESIDENT_MEMORY_BYTES: Metric = Metric {
        name: "process_resident_memory_bytes",
        kind: Kind::Gauge,
        unit: Some("bytes"),
        labels: &[],
        help: "Memory of the process that is in RAM.",
    };
    /// Address space of the process.
    pub const PROCESS_VIRTUAL_MEMORY_BYTES: Metric = Metric {
        name: "process_virtual_memory_bytes",
        kind: Kind::Gauge,
        unit: Some("bytes"),
        labels: &[],
        help: "Address space of the process.",
    };
    /// Open file descriptors of the process.
    pub const PROCESS_OPEN_FDS: Metric = Metric {
        name: "process_open_fds",
        kind: Kind::Gauge,
        unit: None,
        labels: &[],
        help: "Open file descriptors of the process.",
    };
    /// Most file descriptors that the process may have open.
    pub const PROCESS_MAX_FDS: Metric = Metric {
        name: "process_max_fds",
        kind: Kind::Gauge,
        unit: None,
        labels: &[],
        help: "Most file descriptors that the process may have open.",
    };
    /// Threads of the process.
    pub const PROCESS_THREADS: Metric = Metric {
        name: "process_threads",
        kind: Kind::Gauge,
        unit: None,
        labels: &[],
        help: "Threads of the process.",
    };
    /// When the process started, since the Unix epoch.
    pub const PROCESS_START_TIME_SECONDS: Metric = Metric {
        name: "process_start_time_seconds",
        kind: Kind::Gauge,
        unit: Some("seconds"),
        labels: &[],
        help: "When the process started, since the Unix epoch.",
    };
}
