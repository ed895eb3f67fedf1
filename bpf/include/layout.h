/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The layout of every packet and of the maps. Generated from spec/layout.toml by
 * `cargo xtask codegen`; do not edit.
 */
#ifndef KEYWAY_LAYOUT_H
#define KEYWAY_LAYOUT_H

#include <linux/types.h>

#define KW_MAGIC		0x4b57
#define KW_VERSION		1
#define KW_HEADER_LEN		120
#define KW_PORT	7700
#define KW_PACKET_MAX	1472
#define KW_FILL_MAX	1448
#define KW_ENVELOPE_MAGIC	19269
#define KW_KEY_MAX	1024
#define KW_ENTRY_MAX	1280
#define KW_STORE_WORDS_MAX	88
#define KW_VALUE_MAX	536870912
#define KW_PART_ZEROS	16
#define KW_PART_MARK	21340093393195603
#define KW_EXPIRY_BIG_BIT	63
#define KW_EXPIRY_SPAN_BIT	62
#define KW_CHAIN_MAX	8
#define KW_MGET_KEYS_MAX	32
#define KW_MGET_GROUPS_MAX	16
#define KW_BATCH_STEPS_MAX	48
#define KW_BATCH_BYTES_MAX	1312
#define KW_RANGE_PIECES_MAX	32
#define KW_HOT_KEYS_MAX	65536
#define KW_HOT_BANK_MAX	64
#define KW_DELEGATED_KEY_MAX	256
#define KW_DELEGATION_VERSIONS	4294967296
#define KW_CLOCK_DELEGATIONS_BITS	16
#define KW_SESSION_IDLE_SECS	600
#define KW_VERSION_MAX	4611686018427387904
#define KW_REVISION_AHEAD_MS	315576000000
#define KW_CLIENT_SEAT_BITS	16
#define KW_SESSION_KEPT_MS	3000
#define KW_RATE_MAX	100000000
#define KW_NODES_MAX	1024
#define KW_CACHES_MAX	16
#define KW_PARTITIONS_MAX	65536
#define KW_KEYSPACES_MAX	256
#define KW_NAME_MAX	64
#define KW_PREFIX_MAX	256
#define KW_LOADS_PER_PAGE	512
#define KW_HOT_LOADS_PER_PAGE	256
#define KW_SPACE_ELEMENTS	8192
#define KW_LARGE_SPACE_ELEMENTS	69633
#define KW_CACHE_RULE_BUCKETS	16384
#define KW_CACHE_RULE_BUCKET_LEN	8
#define KW_CACHE_FILTER_WORDS	32768
#define KW_KEYSPACE_WORDS	1024
#define KW_CONTENT_PREFIX_BITS	48
#define KW_CONTENT_CLASS_BITS	4
#define KW_CONTENT_KEYSPACE_BITS	12
#define KW_CONTENT_MATCH_BITS	64
#define KW_ROUTE_PROTOCOL	107
#define KW_ROUTE_METRIC	7700
#define KW_ENVELOPE_LEN	24
#define KW_PUT_LEN	8
#define KW_CAS_LEN	18
#define KW_INCR_LEN	8
#define KW_RANGE_LEN	4
#define KW_BATCH_STEP_LEN	22
#define KW_SINCE_LEN	16
#define KW_GET_REPLY_LEN	16
#define KW_RANGE_COUNT_LEN	16
#define KW_INCR_REPLY_LEN	8
#define KW_BATCH_REPLY_LEN	1
#define KW_DESCRIBE_REPLY_LEN	11
#define KW_CONTENT_ROUTING_LEN	10
#define KW_CHAIN_WRITE_LEN	35
#define KW_CHAIN_DURABLE_LEN	8
#define KW_CHAIN_STABLE_LEN	8
#define KW_CHAIN_STEP_LEN	21
#define KW_HOT_COPY_LEN	9
#define KW_DELEGATE_LEN	9
#define KW_RECALL_LEN	32
#define KW_DELEGATION_FETCH_LEN	16
#define KW_DELEGATION_FOUND_LEN	9
#define KW_DELEGATION_END_LEN	8
#define KW_DELEGATION_COMMIT_LEN	8
#define KW_DELEGATION_WRITE_LEN	1
#define KW_DELEGATION_DURABLE_LEN	8
#define KW_CACHE_LOAN_LEN	44
#define KW_CACHE_RENEW_LEN	8
#define KW_CACHE_GRANT_LEN	28
#define KW_CACHE_UPDATE_LEN	24
#define KW_CACHE_RECALL_LEN	16
#define KW_CACHE_ANSWER_LEN	17
#define KW_CACHE_REPORT_LEN	40
#define KW_CACHE_RULE_LEN	11
#define KW_CACHE_RULE_PLACED_LEN	19
#define KW_COPY_REGISTRATION_LEN	11
#define KW_COPY_DELEGATIONS_LEN	5
#define KW_DELEGATIONS_LEN	2
#define KW_DELEGATION_OVER_LEN	48
#define KW_DELEGATION_PRESENT_LEN	25
#define KW_COPY_RECORD_LEN	21
#define KW_COPY_SESSION_LEN	43
#define KW_COPY_ENDED_LEN	17
#define KW_COPY_END_LEN	33
#define KW_CHAIN_VERIFY_LEN	29
#define KW_CHAIN_VERIFIED_LEN	63
#define KW_CHAIN_MEND_LEN	42
#define KW_PART_LEN	28
#define KW_UPLOAD_LEN	16
#define KW_MANIFEST_LEN	30
#define KW_MGET_SLOT_LEN	24
#define KW_MGET_LEN_LEN	2
#define KW_MGET_ENTRY_LEN	20
#define KW_RANGE_ENTRY_LEN	21

/* What a packet asks for or answers. */
enum kw_op {
	KW_OP_GET = 0x01,
	KW_OP_PUT = 0x02,
	KW_OP_DEL = 0x03,
	KW_OP_CAS = 0x04,
	KW_OP_INCR = 0x05,
	KW_OP_MGET = 0x06,
	KW_OP_RANGE = 0x07,
	KW_OP_DESCRIBE = 0x08,
	KW_OP_BATCH = 0x09,
	KW_OP_GOODBYE = 0x0a,
	KW_OP_CHAIN_WRITE = 0x40,
	KW_OP_CHAIN_ACK = 0x41,
	KW_OP_CHAIN_COMMIT = 0x42,
	KW_OP_CHAIN_STABLE = 0x43,
	KW_OP_CHAIN_EXPIRE = 0x44,
	KW_OP_CHAIN_COPY = 0x45,
	KW_OP_CHAIN_COPIED = 0x46,
	KW_OP_HOT_COPY = 0x47,
	KW_OP_DELEGATION_FETCH = 0x48,
	KW_OP_DELEGATION_FOUND = 0x49,
	KW_OP_DELEGATION_END = 0x4a,
	KW_OP_DELEGATION_COMMIT = 0x4b,
	KW_OP_CHAIN_VERIFY = 0x4c,
	KW_OP_CHAIN_VERIFIED = 0x4d,
	KW_OP_CHAIN_MEND = 0x4e,
	KW_OP_CHAIN_GOODBYE = 0x4f,
	KW_OP_CHAIN_DURABLE = 0x50,
	KW_OP_CHAIN_OFFER = 0x51,
	KW_OP_CHAIN_OFFERED = 0x52,
	KW_OP_DELEGATION_WRITE = 0x53,
	KW_OP_DELEGATION_DURABLE = 0x54,
	KW_OP_CACHE_FETCH = 0x55,
	KW_OP_CACHE_LOAN = 0x56,
	KW_OP_CACHE_RENEW = 0x57,
	KW_OP_CACHE_GRANT = 0x58,
	KW_OP_CACHE_UPDATE = 0x59,
	KW_OP_CACHE_RECALL = 0x5a,
	KW_OP_CACHE_ANSWER = 0x5b,
	KW_OP_CACHE_REPORT = 0x5c,
	KW_OP_CACHE_RULES = 0x5d,
	KW_OP_CACHE_RULED = 0x5e,
	KW_OP_GET_REPLY = 0x81,
	KW_OP_PUT_REPLY = 0x82,
	KW_OP_DEL_REPLY = 0x83,
	KW_OP_CAS_REPLY = 0x84,
	KW_OP_INCR_REPLY = 0x85,
	KW_OP_MGET_REPLY = 0x86,
	KW_OP_RANGE_REPLY = 0x87,
	KW_OP_DESCRIBE_REPLY = 0x88,
	KW_OP_BATCH_REPLY = 0x89,
	KW_OP_HOT_COPIED = 0xc7,
	KW_OP_HOT_PUBLISH = 0xc8,
};
/* Every operation, for a switch statement. */
#define KW_OP_CASES \
	case 0x01: \
	case 0x02: \
	case 0x03: \
	case 0x04: \
	case 0x05: \
	case 0x06: \
	case 0x07: \
	case 0x08: \
	case 0x09: \
	case 0x0a: \
	case 0x40: \
	case 0x41: \
	case 0x42: \
	case 0x43: \
	case 0x44: \
	case 0x45: \
	case 0x46: \
	case 0x47: \
	case 0x48: \
	case 0x49: \
	case 0x4a: \
	case 0x4b: \
	case 0x4c: \
	case 0x4d: \
	case 0x4e: \
	case 0x4f: \
	case 0x50: \
	case 0x51: \
	case 0x52: \
	case 0x53: \
	case 0x54: \
	case 0x55: \
	case 0x56: \
	case 0x57: \
	case 0x58: \
	case 0x59: \
	case 0x5a: \
	case 0x5b: \
	case 0x5c: \
	case 0x5d: \
	case 0x5e: \
	case 0x81: \
	case 0x82: \
	case 0x83: \
	case 0x84: \
	case 0x85: \
	case 0x86: \
	case 0x87: \
	case 0x88: \
	case 0x89: \
	case 0xc7: \
	case 0xc8:

/* How a request, or one key of it, ended. Below 16: decided. 16 to 31: ask again. From 32: refused, no effect. */
enum kw_code {
	KW_CODE_OK = 0x00,
	KW_CODE_NOT_FOUND = 0x01,
	KW_CODE_CAS_MISMATCH = 0x02,
	KW_CODE_NOT_A_NUMBER = 0x03,
	KW_CODE_OVERFLOW = 0x04,
	KW_CODE_PARTS_MISSING = 0x05,
	KW_CODE_FULL = 0x06,
	KW_CODE_STALE_EPOCH = 0x10,
	KW_CODE_NOT_OWNER = 0x11,
	KW_CODE_OVERLOADED = 0x12,
	KW_CODE_NOT_SERVING = 0x13,
	KW_CODE_EXPIRING = 0x14,
	KW_CODE_CLOSED = 0x15,
	KW_CODE_NOT_HERE = 0x16,
	KW_CODE_DELEGATED = 0x17,
	KW_CODE_UNCERTAIN = 0x18,
	KW_CODE_SETTLING = 0x19,
	KW_CODE_NO_SESSION = 0x1a,
	KW_CODE_STORE_REFUSES = 0x1b,
	KW_CODE_BAD_REQUEST = 0x20,
	KW_CODE_TOO_LARGE = 0x21,
	KW_CODE_BAD_MATCH = 0x22,
	KW_CODE_UNKNOWN_KEYSPACE = 0x23,
	KW_CODE_NOT_TOGETHER = 0x24,
};

/* What a member holds of a key. */
enum kw_verify_state {
	KW_VERIFY_STATE_NOTHING = 0x00,
	KW_VERIFY_STATE_VALUE = 0x01,
	KW_VERIFY_STATE_DELETED = 0x02,
};

/* Why a packet was dropped without an answer: the index of one counter in every switch and node. */
enum kw_drop {
	KW_DROP_TRUNCATED = 0x01,
	KW_DROP_NOT_OURS = 0x02,
	KW_DROP_BAD_VERSION = 0x03,
	KW_DROP_BAD_OP = 0x04,
	KW_DROP_BAD_LENGTH = 0x05,
	KW_DROP_BAD_BODY = 0x06,
	KW_DROP_BAD_TAG = 0x07,
	KW_DROP_BAD_CHAIN = 0x08,
	KW_DROP_NO_KEYSPACE = 0x09,
	KW_DROP_NO_PARTITION = 0x0a,
	KW_DROP_NO_NODE = 0x0b,
	KW_DROP_REPLY_NOT_FROM_NODE = 0x0c,
	KW_DROP_REQUEST_FROM_NODE = 0x0d,
	KW_DROP_NOT_FROM_MEMBER = 0x0e,
	KW_DROP_STALE_REQUEST = 0x0f,
	KW_DROP_STALE_EPOCH = 0x10,
	KW_DROP_OUT_OF_ORDER = 0x11,
	KW_DROP_QUEUE_FULL = 0x12,
	KW_DROP_UNKNOWN_REQUEST = 0x13,
	KW_DROP_NOT_SERVING = 0x14,
	KW_DROP_BAD_REPLY_ADDRESS = 0x15,
	KW_DROP_NO_LEASE = 0x16,
	KW_DROP_NOT_FROM_SWITCH = 0x17,
	KW_DROP_STANDBY = 0x18,
	KW_DROP_CONTENDED = 0x19,
	KW_DROP_IMPLAUSIBLE = 0x1a,
	KW_DROP_NO_ROOM = 0x1b,
};

/* What a request wants of the partition that its address names. */
enum kw_content_class {
	KW_CONTENT_CLASS_READ = 0x01,
	KW_CONTENT_CLASS_READ_AT_HOME = 0x02,
	KW_CONTENT_CLASS_WRITE = 0x03,
};

/* Who wrote an envelope, and for whom. */
enum kw_envelope_kind {
	KW_ENVELOPE_KIND_REQUEST = 0x01,
	KW_ENVELOPE_KIND_REPLY = 0x02,
	KW_ENVELOPE_KIND_MEMBER = 0x03,
	KW_ENVELOPE_KIND_COOKIE = 0x04,
};

/* Why what came in an envelope, or should have, was dropped before anybody looked at it: the index of a counter. */
enum kw_envelope_refusal {
	KW_ENVELOPE_REFUSAL_BARE = 0x01,
	KW_ENVELOPE_REFUSAL_MALFORMED = 0x02,
	KW_ENVELOPE_REFUSAL_PERIOD = 0x03,
	KW_ENVELOPE_REFUSAL_SENDER = 0x04,
	KW_ENVELOPE_REFUSAL_EDGE = 0x05,
	KW_ENVELOPE_REFUSAL_END = 0x06,
	KW_ENVELOPE_REFUSAL_RIGHT = 0x07,
	KW_ENVELOPE_REFUSAL_NO_COOKIE = 0x08,
};

/* How much room a node has for new data, from much to none: `count` of CHAIN_ACK and CHAIN_COMMIT. */
enum kw_room {
	KW_ROOM_PLENTY = 0x00,
	KW_ROOM_TIGHT = 0x01,
	KW_ROOM_FULL = 0x02,
	KW_ROOM_SHUT = 0x03,
};

/* What a chain write does to its key. */
enum kw_effect {
	KW_EFFECT_NONE = 0x00,
	KW_EFFECT_PUT = 0x01,
	KW_EFFECT_DELETE = 0x02,
	KW_EFFECT_REGISTER = 0x03,
	KW_EFFECT_UNREGISTER = 0x04,
	KW_EFFECT_DELEGATE = 0x05,
	KW_EFFECT_RECALL = 0x06,
	KW_EFFECT_BATCH = 0x07,
	KW_EFFECT_ABANDON = 0x08,
};

/* Bits of `flags`. */
#define KW_FLAG_CAS_VALUE	(1 << 0)
#define KW_FLAG_KEYS_ONLY	(1 << 0)
#define KW_FLAG_GROUPED	(1 << 0)
#define KW_FLAG_CAS_DELETE	(1 << 1)
#define KW_FLAG_CAS_KEEP_VALUE	(1 << 2)
#define KW_FLAG_REVERSE	(1 << 1)
#define KW_FLAG_START_EXCLUSIVE	(1 << 2)
#define KW_FLAG_END_EXCLUSIVE	(1 << 3)
#define KW_FLAG_START_OPEN	(1 << 4)
#define KW_FLAG_END_OPEN	(1 << 5)
#define KW_FLAG_PARTIAL	(1 << 6)
#define KW_FLAG_SINCE	(1 << 6)
#define KW_FLAG_KEEP_EXPIRY	(1 << 7)
#define KW_FLAG_COUNT_ONLY	(1 << 7)
#define KW_FLAG_AT_HOME	(1 << 7)

/* Bits of `hop_flags`. */
#define KW_HOP_FLAG_DIRECT	(1 << 0)
#define KW_HOP_FLAG_HOT	(1 << 2)
#define KW_HOP_FLAG_NEWEST	(1 << 3)
#define KW_HOP_FLAG_GRANTED	(1 << 4)
#define KW_HOP_FLAG_OLD	(1 << 5)
#define KW_HOP_FLAG_CROWDED	(1 << 6)
#define KW_HOP_FLAG_MISSED	(1 << 7)
#define KW_HOP_FLAG_CUT	(1 << 1)
#define KW_HOP_FLAG_BY_ADDRESS	(1 << 1)

/* The header of every packet. */
struct kw_header {
	__be16 magic;
	__u8 version;
	__u8 hop_flags;
	__be32 tag;
	__be32 partition;
	__be32 epoch;
	__be32 bitmap;
	__be16 node;
	__be16 load;
	__u8 reply_addr[16];
	__be16 reply_port;
	__u8 chain_len;
	__u8 chain_pos;
	__u8 chain[16];
	__be64 match_hi, match_lo;
	__be64 keyhash;
	__be64 object_version;
	__u8 op;
	__u8 flags;
	__be16 keyspace;
	__be16 key_len;
	__be16 payload_len;
	__be64 client;
	__be64 seq;
	__be16 lag;
	__u8 code;
	__u8 count;
} __attribute__((packed, aligned(4))); /* No byte-wise loads. */

_Static_assert(sizeof(struct kw_header) == 120, "no padding");
_Static_assert(__builtin_offsetof(struct kw_header, magic) == 0, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_header, version) == 2, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_header, hop_flags) == 3, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_header, tag) == 4, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_header, partition) == 8, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_header, epoch) == 12, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_header, bitmap) == 16, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_header, node) == 20, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_header, load) == 22, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_header, reply_addr) == 24, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_header, reply_port) == 40, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_header, chain_len) == 42, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_header, chain_pos) == 43, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_header, chain) == 44, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_header, match_hi) == 60, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_header, keyhash) == 76, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_header, object_version) == 84, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_header, op) == 92, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_header, flags) == 93, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_header, keyspace) == 94, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_header, key_len) == 96, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_header, payload_len) == 98, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_header, client) == 100, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_header, seq) == 108, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_header, lag) == 116, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_header, code) == 118, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_header, count) == 119, "as in Rust");
#define KW_MATCH_END_AT	76
#define KW_RATE_AT	44
#define KW_HOT_BITMAP_AT	48
#define KW_GENERATION_AT	52
#define KW_DIRECTORY_CLOCK_AT	16
#define KW_DELEGATION_AT	16
#define KW_REPLY_DELEGATION_AT	52
#define KW_REPLY_DIRECTORY_CLOCK_AT	52
#define KW_GROUP_ENDS_AT	8
#define KW_GROUP_AT	12
#define KW_GROUP_PARTITIONS_AT	60
#define KW_PIECE_AT	84
#define KW_RUN_AT	108
#define KW_WRITES_AT	108
#define KW_ROOM_AT	119
#define KW_BASED_AT	119
#define KW_ANEW_AT	119

/* Element 0 of a keyspace's table: how to find a row. Bucket (hi(match) - first_hi) >> shift, at most the last of `buckets`, says in which rows to search; the rows begin at element `rows_at`. */
struct kw_space {
	__u64 first_hi;
	__u32 shift;
	__u32 buckets;
	__u32 rows_at;
	__u8 pad[44];
};
_Static_assert(sizeof(struct kw_space) == 64, "no padding");
_Static_assert(__builtin_offsetof(struct kw_space, first_hi) == 0, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_space, shift) == 8, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_space, buckets) == 12, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_space, rows_at) == 16, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_space, pad) == 20, "as in Rust");

/* Sixteen to an element, from element 1 on: the row that holds the first match value of the bucket, or the one before it, and how many of those after it begin in the bucket or before. */
struct kw_bucket {
	__u16 row;
	__u16 more;
};
_Static_assert(sizeof(struct kw_bucket) == 4, "no padding");
_Static_assert(__builtin_offsetof(struct kw_bucket, row) == 0, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_bucket, more) == 2, "as in Rust");

/* A partition: its match values, what is stamped, to which UDP ports of the head and of the tail (0: not in the node table), the place of the tail in the chain, and the index of the partition's `load`. */
struct kw_row {
	__u64 first_hi;
	__u64 first_lo;
	__u64 last_hi;
	__u64 last_lo;
	__u8 chain[16];
	__be32 partition;
	__be32 epoch;
	__be16 head_port;
	__be16 tail_port;
	__u16 counter;
	__u8 chain_len;
	__u8 tail;
};
_Static_assert(sizeof(struct kw_row) == 64, "no padding");
_Static_assert(__builtin_offsetof(struct kw_row, first_hi) == 0, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_row, first_lo) == 8, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_row, last_hi) == 16, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_row, last_lo) == 24, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_row, chain) == 32, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_row, partition) == 48, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_row, epoch) == 52, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_row, head_port) == 56, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_row, tail_port) == 58, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_row, counter) == 60, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_row, chain_len) == 62, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_row, tail) == 63, "as in Rust");

/* How an address is reached: interface (0: not known, the kernel has to find it) and Ethernet addresses. */
struct kw_way {
	__u8 addr[16];
	__u32 ifindex;
	__u8 dmac[6];
	__u8 smac[6];
};
_Static_assert(sizeof(struct kw_way) == 32, "no padding");
_Static_assert(__builtin_offsetof(struct kw_way, addr) == 0, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_way, ifindex) == 16, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_way, dmac) == 20, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_way, smac) == 26, "as in Rust");

/* A node of the node table or a cache, by id: its way, the port of its first shard, and how many it has (0: it is not in the tables). */
struct kw_node {
	__u8 addr[16];
	__u32 ifindex;
	__u8 dmac[6];
	__u8 smac[6];
	__be16 port;
	__u16 shards;
	__u8 pad[4];
};
_Static_assert(sizeof(struct kw_node) == 40, "no padding");
_Static_assert(__builtin_offsetof(struct kw_node, addr) == 0, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_node, ifindex) == 16, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_node, dmac) == 20, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_node, smac) == 26, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_node, port) == 32, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_node, shards) == 34, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_node, pad) == 36, "as in Rust");

/* Where a datagram comes from; what nodes are recognised by. */
struct kw_source {
	__u8 addr[16];
	__be16 port;
	__u16 pad;
};
_Static_assert(sizeof(struct kw_source) == 20, "no padding");
_Static_assert(__builtin_offsetof(struct kw_source, addr) == 0, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_source, port) == 16, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_source, pad) == 18, "as in Rust");

/* Whose port a source is: the id of a node, or of a cache (1). */
struct kw_sender {
	__u16 id;
	__u16 is_cache;
};
_Static_assert(sizeof(struct kw_sender) == 4, "no padding");
_Static_assert(__builtin_offsetof(struct kw_sender, id) == 0, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_sender, is_cache) == 2, "as in Rust");

/* What one processor counted for a partition. */
struct kw_load {
	__u64 reads;
	__u64 writes;
};
_Static_assert(sizeof(struct kw_load) == 16, "no padding");
_Static_assert(__builtin_offsetof(struct kw_load, reads) == 0, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_load, writes) == 8, "as in Rust");

/* What one processor counted: packets that left as one, by operation, and so are counted once; all others by operation, drops by reason, datagrams that the parser refused, what left as parts of an MGET or RANGE, PUTs of delegated keys sent by a grant that was new, or was not, keys of MGETs that were hot and went home, or to a copy, replies of versions that were never given out, PUTs that a grant had no room for, and GETs sent to caches. */
struct kw_totals {
	__u64 forwarded[256];
	__u64 others[256];
	__u64 dropped[256];
	__u64 unparsed;
	__u64 parts;
	__u64 delegated[2];
	__u64 hot_keys[2];
	__u64 doubted;
	__u64 crowded;
	__u64 cached;
};
_Static_assert(sizeof(struct kw_totals) == 6216, "no padding");
_Static_assert(__builtin_offsetof(struct kw_totals, forwarded) == 0, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_totals, others) == 2048, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_totals, dropped) == 4096, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_totals, unparsed) == 6144, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_totals, parts) == 6152, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_totals, delegated) == 6160, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_totals, hot_keys) == 6176, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_totals, doubted) == 6192, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_totals, crowded) == 6200, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_totals, cached) == 6208, "as in Rust");

/* The service address, fixed when the program is loaded. */
struct kw_service {
	__u8 addr[16];
	__be16 port;
	__u8 pad[6];
};
_Static_assert(sizeof(struct kw_service) == 24, "no padding");
_Static_assert(__builtin_offsetof(struct kw_service, addr) == 0, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_service, port) == 16, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_service, pad) == 18, "as in Rust");

/* What holds for all packets: the end of the lease in nanoseconds since the kernel was booted (CLOCK_BOOTTIME), the switch's directory clock and that at the beginning of its directory, a number that changes before and after the rows and delegations of hot keys do (odd: they are changing), how often silent clients have been looked for (a second or more apart, from 1), how many nodes are in the node table, how many nanoseconds a tick of the kernel has, whether there are tables, whether this switch is the active one, how readers of hot keys are chosen (0: no key is hot, 1: at random, 2: by reported load, 3: by predicted load), and whether any key is delegated. */
struct kw_rule {
	__u64 leased_until;
	__u64 directory_clock;
	__u64 beginning;
	__u64 order;
	__u64 pass;
	__u32 nodes;
	__u32 tick;
	__u8 installed;
	__u8 active;
	__u8 hot;
	__u8 delegates;
	__u32 pad;
};
_Static_assert(sizeof(struct kw_rule) == 56, "no padding");
_Static_assert(__builtin_offsetof(struct kw_rule, leased_until) == 0, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_rule, directory_clock) == 8, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_rule, beginning) == 16, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_rule, order) == 24, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_rule, pass) == 32, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_rule, nodes) == 40, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_rule, tick) == 44, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_rule, installed) == 48, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_rule, active) == 49, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_rule, hot) == 50, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_rule, delegates) == 51, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_rule, pad) == 52, "as in Rust");

/* A cache that was heard, and for how many ticks its rules count from now on. */
struct kw_heard {
	__u32 cache;
	__u32 ticks;
};
_Static_assert(sizeof(struct kw_heard) == 8, "no padding");
_Static_assert(__builtin_offsetof(struct kw_heard, cache) == 0, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_heard, ticks) == 4, "as in Rust");

/* What a hot key is known by. */
struct kw_hot_key {
	__be64 keyhash;
	__be16 keyspace;
	__u8 pad[6];
};
_Static_assert(sizeof(struct kw_hot_key) == 16, "no padding");
_Static_assert(__builtin_offsetof(struct kw_hot_key, keyhash) == 0, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_hot_key, keyspace) == 8, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_hot_key, pad) == 10, "as in Rust");

/* What is known of a hot key in its present generation: the lower half of its match value; the floor and whether it is proven; the index of its `hot_load`; the place of the first reader, how many there are, how many nodes are in the chain of each write of its delegation (0: it is on none), how many are chosen for it with the readers that it is copied to, and what version each reader holds (0: none). */
struct kw_hot {
	__be64 generation;
	__be64 match_low;
	__u64 floor;
	__u32 proven;
	__u32 counter;
	__u16 first;
	__u16 readers;
	__u8 replicas;
	__u8 chosen;
	__u8 pad[2];
	__u8 holders[64];
};
_Static_assert(sizeof(struct kw_hot) == 104, "no padding");
_Static_assert(__builtin_offsetof(struct kw_hot, generation) == 0, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_hot, match_low) == 8, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_hot, floor) == 16, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_hot, proven) == 24, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_hot, counter) == 28, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_hot, first) == 32, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_hot, readers) == 34, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_hot, replicas) == 36, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_hot, chosen) == 37, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_hot, pad) == 38, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_hot, holders) == 40, "as in Rust");

/* The delegation of a hot key: its number, the directory clock of its beginning (0: it has not begun here), the version that is given next, and the last that may be given. */
struct kw_delegation {
	__be64 number;
	__u64 begun;
	__u64 next;
	__u64 last;
};
_Static_assert(sizeof(struct kw_delegation) == 32, "no padding");
_Static_assert(__builtin_offsetof(struct kw_delegation, number) == 0, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_delegation, begun) == 8, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_delegation, next) == 16, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_delegation, last) == 24, "as in Rust");

/* What a request is known by. */
struct kw_request {
	__be64 client;
	__be64 seq;
};
_Static_assert(sizeof(struct kw_request) == 16, "no padding");
_Static_assert(__builtin_offsetof(struct kw_request, client) == 0, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_request, seq) == 8, "as in Rust");

/* What a request was given under a delegation: the delegation's number, its version and its chain as in the header. The guard is a sum over all of it and the request, by which half a grant is known. */
struct kw_grant {
	__be64 delegation;
	__be64 version;
	__u8 chain[16];
	__u32 guard;
	__u8 chain_len;
	__u8 pad[3];
};
_Static_assert(sizeof(struct kw_grant) == 40, "no padding");
_Static_assert(__builtin_offsetof(struct kw_grant, delegation) == 0, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_grant, version) == 8, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_grant, chain) == 16, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_grant, guard) == 32, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_grant, chain_len) == 36, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_grant, pad) == 37, "as in Rust");

/* A client that has grants: its id once more, its low-water mark, below which number its grants were let go, in which pass it was heard last (0: it is not there yet, or is being forgotten), and whether one of its grants is being made anew. */
struct kw_grantee {
	__be64 client;
	__u64 low;
	__u64 gone;
	__u64 heard;
	__u32 busy;
	__u32 pad;
};
_Static_assert(sizeof(struct kw_grantee) == 40, "no padding");
_Static_assert(__builtin_offsetof(struct kw_grantee, client) == 0, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_grantee, low) == 8, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_grantee, gone) == 16, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_grantee, heard) == 24, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_grantee, busy) == 32, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_grantee, pad) == 36, "as in Rust");

/* A client that is to be forgotten, and in which pass it was heard last. */
struct kw_silent {
	__be64 client;
	__u64 heard;
};
_Static_assert(sizeof(struct kw_silent) == 16, "no padding");
_Static_assert(__builtin_offsetof(struct kw_silent, client) == 0, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_silent, heard) == 8, "as in Rust");

/* Other readers for a hot key that stays, which reader each of them was before (255: none), how many nodes are in the chain of each write of its delegation (0: it is on none), and how many are chosen for it with the readers that it is copied to. */
struct kw_hot_change {
	__be64 keyhash;
	__be16 keyspace;
	__u16 first;
	__u16 readers;
	__u8 replicas;
	__u8 chosen;
	__u8 from[64];
};
_Static_assert(sizeof(struct kw_hot_change) == 80, "no padding");
_Static_assert(__builtin_offsetof(struct kw_hot_change, keyhash) == 0, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_hot_change, keyspace) == 8, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_hot_change, first) == 10, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_hot_change, readers) == 12, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_hot_change, replicas) == 14, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_hot_change, chosen) == 15, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_hot_change, from) == 16, "as in Rust");

/* Who may hold copies: the node id at each place (65535: nobody), the place of each node id (65535: none), and how many places there are. */
struct kw_holders {
	__u16 nodes[1024];
	__u16 places[1024];
	__u32 count;
	__u32 pad;
};
_Static_assert(sizeof(struct kw_holders) == 4104, "no padding");
_Static_assert(__builtin_offsetof(struct kw_holders, nodes) == 0, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_holders, places) == 2048, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_holders, count) == 4096, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_holders, pad) == 4100, "as in Rust");

/* What one processor counted for a hot key. */
struct kw_hot_load {
	__u64 reads;
	__u64 spread;
	__u64 writes;
};
_Static_assert(sizeof(struct kw_hot_load) == 24, "no padding");
_Static_assert(__builtin_offsetof(struct kw_hot_load, reads) == 0, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_hot_load, spread) == 8, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_hot_load, writes) == 16, "as in Rust");

/* What a node last said of itself: how many requests it serves in a second (0: it does not say), and its load, plus one (0: none). */
struct kw_report {
	__u32 rate;
	__u32 load;
};
_Static_assert(sizeof(struct kw_report) == 8, "no padding");
_Static_assert(__builtin_offsetof(struct kw_report, rate) == 0, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_report, load) == 4, "as in Rust");

/* The edge keys of a period: a number that no other keys of this program have (0: there are none here), the key that those of clients follow from, that of the members, that of cookies, the state of a hash under the key of the members after the first words of their envelopes, which the program sets, and the byte by which envelopes name the period. */
struct kw_period_keys {
	__u64 serial;
	__u8 clients[16];
	__u8 members[16];
	__u8 cookies[16];
	__u64 begun[4];
	__u8 byte;
	__u8 pad[7];
};
_Static_assert(sizeof(struct kw_period_keys) == 96, "no padding");
_Static_assert(__builtin_offsetof(struct kw_period_keys, serial) == 0, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_period_keys, clients) == 8, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_period_keys, members) == 24, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_period_keys, cookies) == 40, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_period_keys, begun) == 56, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_period_keys, byte) == 88, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_period_keys, pad) == 89, "as in Rust");

/* A class of clients that has rights of its own in a keyspace. */
struct kw_class_keyspace {
	__u16 class;
	__u16 keyspace;
};
_Static_assert(sizeof(struct kw_class_keyspace) == 4, "no padding");
_Static_assert(__builtin_offsetof(struct kw_class_keyspace, class) == 0, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_class_keyspace, keyspace) == 2, "as in Rust");

/* What one processor refused of what came in envelopes, by reason. */
struct kw_refusals {
	__u64 of[9];
};
_Static_assert(sizeof(struct kw_refusals) == 72, "no padding");
_Static_assert(__builtin_offsetof(struct kw_refusals, of) == 0, "as in Rust");

/* How bad a link is. What happens to the n-th datagram is a function of the seed and n. Of a million datagrams so many are dropped, delivered twice, and kept back until 1 to 16 others have passed, for as long as none come. Only one is kept at a time: what should be meanwhile is delivered. */
struct kw_faults {
	__u64 seed;
	__u32 lost_ppm;
	__u32 doubled_ppm;
	__u32 overtaken_ppm;
	__u32 pad;
};
_Static_assert(sizeof(struct kw_faults) == 24, "no padding");
_Static_assert(__builtin_offsetof(struct kw_faults, seed) == 0, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_faults, lost_ppm) == 8, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_faults, doubled_ppm) == 12, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_faults, overtaken_ppm) == 16, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_faults, pad) == 20, "as in Rust");

/* What a link has done to datagrams: all that came in, those dropped, delivered twice, and kept back until others had passed. */
struct kw_fault_counts {
	__u64 came;
	__u64 lost;
	__u64 doubled;
	__u64 overtaken;
};
_Static_assert(sizeof(struct kw_fault_counts) == 32, "no padding");
_Static_assert(__builtin_offsetof(struct kw_fault_counts, came) == 0, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_fault_counts, lost) == 8, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_fault_counts, doubled) == 16, "as in Rust");
_Static_assert(__builtin_offsetof(struct kw_fault_counts, overtaken) == 24, "as in Rust");

#endif /* KEYWAY_LAYOUT_H */
