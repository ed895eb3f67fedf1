//! The form of what the fuzz target `pipeline` takes, for who reads it and who writes it.
//!
//! Length of the tables, tables; then for each item a source, 2 bytes of length with flags, and so
//! many bytes. Sources are a client or, from [`NODE_SOURCE`] on, a node's place in [`NODE_IDS`]
//! times 4 plus its shard. Where the bytes end, zeros follow.

/// Of a length: the datagram's magic, version, length and tag are put right before it is sent.
pub const MEND: u16 = 0x8000;

/// Of a length: what follows is an order of hot keys. Its bytes are the selection, plus 4 times a
/// step: how many revisions lie between the newest before and its own, or, from [`OLDER`] on, 64
/// less how much older it is; how many places there are; for each of them the node's place in
/// [`NODE_IDS`], plus 8 times its incarnation, or [`HOLE`]; and the keys. A key is its first place,
/// plus 8 times its readers, and [`IN_RANGE`]; its generation, plus 16 times the number of its
/// delegation (0: as before, or new); nodes in a chain (0: under no delegation), plus 4 times the
/// copies; 8 bytes of keyhash, and 8 of the lower half of its match value.
pub const ORDER: u16 = 0x4000;

/// Of the step to the revision of an order: it is an older one.
pub const OLDER: u8 = 60;

/// Of a length, both: the switch stands by for a moment.
pub const STANDBY: u16 = MEND | ORDER;

/// Of a key: it is in the range keyspace.
pub const IN_RANGE: u8 = 0x40;

/// Instead of a node in a place.
pub const HOLE: u8 = 0x80;

/// The source of the first node.
pub const NODE_SOURCE: u8 = 224;

/// The node ids of the vectors, then some more.
pub const NODE_IDS: [u16; 8] = [1, 2, 3, 258, 5, 0, 700, 1023];

/// A hash keyspace and a range keyspace.
pub const KEYSPACES: [u16; 2] = [1, 40_000];
