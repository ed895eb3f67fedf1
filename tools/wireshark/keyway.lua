-- Shows packets of Keyway in Wireshark and tshark. Generated from spec/layout.toml by
-- `cargo xtask codegen`; do not edit. docs/operating/packets.md says how to use it.

local MAGIC, HEADER_LEN = 0x4b57, 120
local PORT = 7700
local ENVELOPE_MAGIC = 19269

local FAMILIES = {
  op = {
    [0x01] = "get",
    [0x02] = "put",
    [0x03] = "del",
    [0x04] = "cas",
    [0x05] = "incr",
    [0x06] = "mget",
    [0x07] = "range",
    [0x08] = "describe",
    [0x09] = "batch",
    [0x0a] = "goodbye",
    [0x40] = "chain_write",
    [0x41] = "chain_ack",
    [0x42] = "chain_commit",
    [0x43] = "chain_stable",
    [0x44] = "chain_expire",
    [0x45] = "chain_copy",
    [0x46] = "chain_copied",
    [0x47] = "hot_copy",
    [0x48] = "delegation_fetch",
    [0x49] = "delegation_found",
    [0x4a] = "delegation_end",
    [0x4b] = "delegation_commit",
    [0x4c] = "chain_verify",
    [0x4d] = "chain_verified",
    [0x4e] = "chain_mend",
    [0x4f] = "chain_goodbye",
    [0x50] = "chain_durable",
    [0x51] = "chain_offer",
    [0x52] = "chain_offered",
    [0x53] = "delegation_write",
    [0x54] = "delegation_durable",
    [0x55] = "cache_fetch",
    [0x56] = "cache_loan",
    [0x57] = "cache_renew",
    [0x58] = "cache_grant",
    [0x59] = "cache_update",
    [0x5a] = "cache_recall",
    [0x5b] = "cache_answer",
    [0x5c] = "cache_report",
    [0x5d] = "cache_rules",
    [0x5e] = "cache_ruled",
    [0x81] = "get_reply",
    [0x82] = "put_reply",
    [0x83] = "del_reply",
    [0x84] = "cas_reply",
    [0x85] = "incr_reply",
    [0x86] = "mget_reply",
    [0x87] = "range_reply",
    [0x88] = "describe_reply",
    [0x89] = "batch_reply",
    [0xc7] = "hot_copied",
    [0xc8] = "hot_publish",
  },
  code = {
    [0x00] = "ok",
    [0x01] = "not_found",
    [0x02] = "cas_mismatch",
    [0x03] = "not_a_number",
    [0x04] = "overflow",
    [0x05] = "parts_missing",
    [0x06] = "full",
    [0x10] = "stale_epoch",
    [0x11] = "not_owner",
    [0x12] = "overloaded",
    [0x13] = "not_serving",
    [0x14] = "expiring",
    [0x15] = "closed",
    [0x16] = "not_here",
    [0x17] = "delegated",
    [0x18] = "uncertain",
    [0x19] = "settling",
    [0x1a] = "no_session",
    [0x1b] = "store_refuses",
    [0x20] = "bad_request",
    [0x21] = "too_large",
    [0x22] = "bad_match",
    [0x23] = "unknown_keyspace",
    [0x24] = "not_together",
  },
  verify_state = {
    [0x00] = "nothing",
    [0x01] = "value",
    [0x02] = "deleted",
  },
  envelope_kind = {
    [0x01] = "request",
    [0x02] = "reply",
    [0x03] = "member",
    [0x04] = "cookie",
  },
  room = {
    [0x00] = "plenty",
    [0x01] = "tight",
    [0x02] = "full",
    [0x03] = "shut",
  },
  effect = {
    [0x00] = "none",
    [0x01] = "put",
    [0x02] = "delete",
    [0x03] = "register",
    [0x04] = "unregister",
    [0x05] = "delegate",
    [0x06] = "recall",
    [0x07] = "batch",
    [0x08] = "abandon",
  },
}

local BITS = {
  flag = {
    { name = "CAS_VALUE", bit = 0, ops = { [0x04] = true } },
    { name = "KEYS_ONLY", bit = 0, ops = { [0x07] = true, [0x87] = true } },
    { name = "GROUPED", bit = 0, ops = { [0x06] = true } },
    { name = "CAS_DELETE", bit = 1, ops = { [0x04] = true } },
    { name = "CAS_KEEP_VALUE", bit = 2, ops = { [0x04] = true } },
    { name = "REVERSE", bit = 1, ops = { [0x07] = true, [0x87] = true } },
    { name = "START_EXCLUSIVE", bit = 2, ops = { [0x07] = true, [0x87] = true } },
    { name = "END_EXCLUSIVE", bit = 3, ops = { [0x07] = true, [0x87] = true } },
    { name = "START_OPEN", bit = 4, ops = { [0x07] = true, [0x87] = true } },
    { name = "END_OPEN", bit = 5, ops = { [0x07] = true, [0x87] = true } },
    { name = "PARTIAL", bit = 6, ops = { [0x87] = true } },
    { name = "SINCE", bit = 6, ops = { [0x02] = true, [0x03] = true, [0x04] = true, [0x05] = true, [0x09] = true } },
    { name = "KEEP_EXPIRY", bit = 7, ops = { [0x02] = true, [0x04] = true } },
    { name = "COUNT_ONLY", bit = 7, ops = { [0x07] = true, [0x87] = true } },
    { name = "AT_HOME", bit = 7, ops = { [0x01] = true, [0x06] = true } },
  },
  hop_flag = {
    { name = "DIRECT", bit = 0, ops = nil },
    { name = "HOT", bit = 2, ops = nil },
    { name = "NEWEST", bit = 3, ops = nil },
    { name = "GRANTED", bit = 4, ops = nil },
    { name = "OLD", bit = 5, ops = nil },
    { name = "CROWDED", bit = 6, ops = nil },
    { name = "MISSED", bit = 7, ops = nil },
    { name = "CUT", bit = 1, ops = { [0x07] = true, [0x87] = true } },
    { name = "BY_ADDRESS", bit = 1, ops = { [0x01] = true, [0x81] = true, [0x02] = true, [0x82] = true, [0x03] = true, [0x83] = true, [0x04] = true, [0x84] = true, [0x05] = true, [0x85] = true, [0x09] = true, [0x89] = true, [0x0a] = true, [0x40] = true, [0x51] = true } },
  },
}

local HEADER = {
  { name = "magic", at = 0, size = 2, shown = "hex",
    doc = "0x4b57, \"KW\". Anything else on the port is somebody else's packet." },
  { name = "version", at = 2, size = 1, shown = "number",
    doc = "Version of this layout." },
  { name = "hop_flags", at = 3, size = 1, shown = "bits", bits = BITS.hop_flag,
    doc = "Bits of `hop_flag`: what the switch tells the node and, echoed in the reply, the client." },
  { name = "tag", at = 4, size = 4, shown = "hex",
    doc = "CRC32C over the end-to-end part of the header and the payload that follows the slots." },
  { name = "partition", at = 8, size = 4, shown = "number",
    doc = "Id of the partition that the switch matched; 0 in an MGET, whose keys may have several." },
  { name = "group_ends", at = 8, size = 4, shown = "hex",
    when = { { ops = { [0x06] = true }, flags = 0x01, zero = { "chain_len" } }, },
    doc = "MGET with GROUPED, from a client, over `partition`: bit i set means that key i is the last of its group (KEYIDX of NetMC)." },
  { name = "epoch", at = 12, size = 4, shown = "number",
    doc = "Configuration number of that partition as the switch knew it. A node refuses any but its own." },
  { name = "group", at = 12, size = 1, shown = "number",
    when = { { ops = { [0x06] = true }, flags = 0x01, zero = { "chain_len" } }, },
    doc = "MGET with GROUPED, from a client, over `epoch`: number of the first group that is left, from 0 (OID of NetMC)." },
  { name = "bitmap", at = 16, size = 4, shown = "hex",
    doc = "MGET: bit i set means that key i is to be answered (request) or is answered here (reply). CHAIN_WRITE: bit i set means that the member at place i of the chain sent it on before it was on its disk." },
  { name = "directory_clock", at = 16, size = 8, shown = "number",
    when = { { ops = { [0x03] = true, [0x04] = true, [0x05] = true, [0x09] = true } }, { ops = { [0x02] = true }, hop_clear = 0x10 }, },
    doc = "Writes, over what only MGET and replies need. From a client: the highest `reply_directory_clock` of all replies when it first sent the request. From a switch to a head: the switch's directory clock when it passed." },
  { name = "delegation", at = 16, size = 8, shown = "number",
    when = { { ops = { [0x02] = true, [0x53] = true }, hop = 0x10 }, },
    doc = "PUT with the hop flag GRANTED and DELEGATION_WRITE, at the place of `directory_clock`: number of the delegation of its grant." },
  { name = "node", at = 20, size = 2, shown = "number",
    doc = "Id of the node that sent a reply or a chain message; 0 from clients." },
  { name = "load", at = 22, size = 2, shown = "number",
    doc = "In-band load report of that node: datagrams it found waiting when it took this one, saturating." },
  { name = "reply_addr", at = 24, size = 16, shown = "address",
    doc = "IPv6 (or IPv4-mapped) address of the client. Written by the switch from the source address." },
  { name = "reply_port", at = 40, size = 2, shown = "number",
    doc = "UDP port of the client." },
  { name = "chain_len", at = 42, size = 1, shown = "number",
    doc = "How many entries of `chain` are used. A read carries only the tail." },
  { name = "chain_pos", at = 43, size = 1, shown = "number",
    doc = "Index in `chain` of the node that this packet is for." },
  { name = "chain", at = 44, size = 16, shown = "ids", count = "chain_len",
    rest = { name = "readers", when = { { ops = { [0x02] = true, [0x53] = true }, hop = 0x10 }, } },
    doc = "Node ids, 2 bytes each, head first, tail last. In a PUT or DELEGATION_WRITE with the hop flag GRANTED the places after those name the readers that it is copied to; 65535: nobody." },
  { name = "rate", at = 44, size = 4, shown = "number",
    when = { { ops = { [0x81] = true, [0x82] = true, [0x83] = true, [0x84] = true, [0x85] = true, [0x86] = true, [0x87] = true, [0x88] = true, [0x89] = true, [0xc7] = true, [0xc8] = true }, zero = { "chain_len" } }, },
    doc = "Replies only, over places of `chain`, which a reply has no use for: requests that the node can serve in a second at most; 0: not known. Means nothing unless `chain_len` is 0." },
  { name = "hot_bitmap", at = 48, size = 4, shown = "hex",
    when = { { ops = { [0x06] = true } }, },
    doc = "MGET only, over places of `chain` that a read has no use for: bit i set means that slot i carries the directory's floor in place of the match value." },
  { name = "generation", at = 52, size = 8, shown = "number",
    when = { { ops = { [0x01] = true }, hop = 0x04 }, { ops = { [0x81] = true }, hop = 0x04, delivered = false }, { ops = { [0xc8] = true } }, },
    doc = "GET with the hop flag HOT, and its reply, over the last places of `chain`: generation of the directory's entry, to which the reply proves something." },
  { name = "reply_delegation", at = 52, size = 8, shown = "number",
    when = { { ops = { [0x82] = true, [0x83] = true, [0x84] = true, [0x85] = true, [0x89] = true }, codes = { [0x17] = true }, delivered = false }, },
    doc = "Reply to a write with the code DELEGATED, at the place of `generation`: number of the delegation that the key is under, or 0." },
  { name = "reply_directory_clock", at = 52, size = 8, shown = "number",
    when = { { ops = { [0x81] = true, [0x82] = true, [0x83] = true, [0x84] = true, [0x85] = true, [0x86] = true, [0x87] = true, [0x88] = true, [0x89] = true }, hop_clear = 0x01, delivered = true }, },
    doc = "Replies to clients, over `generation`, of which they need nothing: the switch's directory clock when the reply passed." },
  { name = "match", at = 60, size = 16, shown = "hex",
    doc = "Match value of the key. RANGE: first match value of the interval asked for or covered." },
  { name = "group_partitions", at = 60, size = 32, shown = "ids",
    when = { { ops = { [0x06] = true }, flags = 0x01, zero = { "chain_len" } }, },
    doc = "MGET with GROUPED, from a client, over `match`, `keyhash` and `object_version`, which an MGET has no use for: for each group, in order, the id of a partition whose tail has its keys, 2 bytes each (SRV of NetMC)." },
  { name = "keyhash", at = 76, size = 8, shown = "hex",
    doc = "64-bit hash of keyspace and key; what the coherence directory and the caches match on." },
  { name = "match_end", at = 76, size = 16, shown = "hex",
    when = { { ops = { [0x07] = true, [0x87] = true } }, },
    doc = "RANGE only, over keyhash and object_version, which a range has no use for: last match value of the interval, inclusive." },
  { name = "object_version", at = 84, size = 8, shown = "number",
    doc = "Version of the value in a reply, of the write in a chain message; 0 if there is none. In a GET with the hop flag HOT: the floor, the least version that may be answered with. In a PUT from a switch: the version of its grant, or 0." },
  { name = "piece", at = 84, size = 8, shown = "number",
    when = { { ops = { [0x45] = true, [0x46] = true, [0x4c] = true, [0x4d] = true } }, },
    doc = "Copies and comparisons, at the place of `object_version`: number of the piece or of the question within the run." },
  { name = "op", at = 92, size = 1, shown = "named", names = FAMILIES.op,
    doc = "Operation, a value of `op`. Replies have the high bit set." },
  { name = "flags", at = 93, size = 1, shown = "bits", bits = BITS.flag,
    doc = "Bits of `flag`: variants of the operation, chosen by its author." },
  { name = "keyspace", at = 94, size = 2, shown = "number",
    doc = "Id of the keyspace." },
  { name = "key_len", at = 96, size = 2, shown = "number",
    doc = "Bytes of key in the payload (RANGE: of the start key)." },
  { name = "payload_len", at = 98, size = 2, shown = "number",
    doc = "Bytes after the header; the datagram ends there." },
  { name = "client", at = 100, size = 8, shown = "hex",
    doc = "Client id, drawn at random when the client starts. With `seq` the request id." },
  { name = "seq", at = 108, size = 8, shown = "number",
    doc = "Sequence number of the request within the client, from 1. A retransmission repeats it." },
  { name = "run", at = 108, size = 8, shown = "hex",
    when = { { ops = { [0x45] = true, [0x46] = true, [0x4c] = true, [0x4d] = true } }, },
    doc = "Copies and comparisons, at the place of `seq`: number of the run, which an answer repeats." },
  { name = "writes", at = 108, size = 8, shown = "number",
    when = { { ops = { [0x43] = true } }, },
    doc = "CHAIN_STABLE, at the place of `seq`: how many writes are committed up to the version in the header; 0: it does not say." },
  { name = "lag", at = 116, size = 2, shown = "number",
    doc = "seq - lag is the client's low-water mark: every request below it has ended, whatever its outcome." },
  { name = "code", at = 118, size = 1, shown = "named", names = FAMILIES.code,
    doc = "Outcome, a value of `code`; 0 in requests." },
  { name = "count", at = 119, size = 1, shown = "number",
    doc = "MGET: keys in the request. RANGE: most pieces the switch may make (request), entries (reply)." },
  { name = "room", at = 119, size = 1, shown = "named", names = FAMILIES.room,
    when = { { ops = { [0x41] = true, [0x42] = true } }, },
    doc = "CHAIN_ACK, CHAIN_COMMIT, at the place of `count`: the least room of the sender and of those behind it." },
  { name = "based", at = 119, size = 1, shown = "number",
    when = { { ops = { [0x40] = true, [0x51] = true } }, },
    doc = "CHAIN_OFFER, and CHAIN_WRITE while the chain is closed, at the place of `count`: 1 if all that the write was computed from is committed at a sender." },
  { name = "anew", at = 119, size = 1, shown = "number",
    when = { { ops = { [0x49] = true } }, },
    doc = "DELEGATION_FOUND, at the place of `count`: 1 if this incarnation of the node was given no order older than the delegation." },
}

local FORMS = {
  ["envelope"] = {
    { name = "magic", at = 0, size = 2, shown = "hex" },
    { name = "kind", at = 2, size = 1, shown = "named", names = FAMILIES.envelope_kind },
    { name = "period", at = 3, size = 1, shown = "number" },
    { name = "echo", at = 4, size = 4, shown = "number" },
    { name = "edge", at = 8, size = 8, shown = "hex" },
    { name = "end", at = 16, size = 8, shown = "hex" },
    len = 24,
    parts = {},
  },
  ["put"] = {
    { name = "expiry_ms", at = 0, size = 8, shown = "number" },
    len = 8,
    parts = {},
  },
  ["cas"] = {
    { name = "expiry_ms", at = 0, size = 8, shown = "number" },
    { name = "expect_version", at = 8, size = 8, shown = "number" },
    { name = "expect_len", at = 16, size = 2, shown = "number" },
    len = 18,
    parts = {},
  },
  ["incr"] = {
    { name = "delta", at = 0, size = 8, shown = "signed" },
    len = 8,
    parts = {},
  },
  ["range"] = {
    { name = "limit", at = 0, size = 4, shown = "number" },
    len = 4,
    parts = {},
  },
  ["batch_step"] = {
    { name = "condition", at = 0, size = 1, shown = "number" },
    { name = "effect", at = 1, size = 1, shown = "named", names = FAMILIES.effect },
    { name = "version", at = 2, size = 8, shown = "number" },
    { name = "expiry_ms", at = 10, size = 8, shown = "number" },
    { name = "key_len", at = 18, size = 2, shown = "number" },
    { name = "value_len", at = 20, size = 2, shown = "number" },
    len = 22,
    parts = {
      { bytes = "key", len = "key_len" },
      { bytes = "value", len = "value_len" },
    },
  },
  ["since"] = {
    { name = "since", at = 0, size = 8, shown = "number" },
    { name = "next", at = 8, size = 8, shown = "number" },
    len = 16,
    tail = { { ops = { [0x02] = true, [0x03] = true, [0x04] = true, [0x05] = true, [0x09] = true }, flags = 0x40 }, },
    parts = {},
  },
  ["get_reply"] = {
    { name = "expiry_ms", at = 0, size = 8, shown = "number" },
    { name = "now_ms", at = 8, size = 8, shown = "number" },
    len = 16,
    parts = {},
  },
  ["range_count"] = {
    { name = "keys", at = 0, size = 8, shown = "number" },
    { name = "expiring", at = 8, size = 8, shown = "number" },
    len = 16,
    parts = {},
  },
  ["incr_reply"] = {
    { name = "result", at = 0, size = 8, shown = "signed" },
    len = 8,
    parts = {},
  },
  ["batch_reply"] = {
    { name = "step", at = 0, size = 1, shown = "number" },
    len = 1,
    parts = {},
  },
  ["describe_reply"] = {
    { name = "seed", at = 0, size = 8, shown = "hex" },
    { name = "id", at = 8, size = 2, shown = "number" },
    { name = "kind", at = 10, size = 1, shown = "number" },
    len = 11,
    parts = {},
  },
  ["content_routing"] = {
    { name = "prefix", at = 0, size = 8, shown = "hex" },
    { name = "port", at = 8, size = 2, shown = "number" },
    len = 10,
    parts = {},
  },
  ["chain_write"] = {
    { name = "base", at = 0, size = 8, shown = "number" },
    { name = "stable", at = 8, size = 8, shown = "number" },
    { name = "expiry_ms", at = 16, size = 8, shown = "number" },
    { name = "result", at = 24, size = 8, shown = "number" },
    { name = "origin", at = 32, size = 1, shown = "named", names = FAMILIES.op },
    { name = "effect", at = 33, size = 1, shown = "named", names = FAMILIES.effect },
    { name = "ordered", at = 34, size = 1, shown = "number" },
    len = 35,
    parts = {},
  },
  ["chain_durable"] = {
    { name = "version", at = 0, size = 8, shown = "number" },
    len = 8,
    parts = {},
  },
  ["chain_stable"] = {
    { name = "history", at = 0, size = 8, shown = "hex" },
    len = 8,
    parts = {},
  },
  ["chain_step"] = {
    { name = "effect", at = 0, size = 1, shown = "named", names = FAMILIES.effect },
    { name = "base", at = 1, size = 8, shown = "number" },
    { name = "expiry_ms", at = 9, size = 8, shown = "number" },
    { name = "key_len", at = 17, size = 2, shown = "number" },
    { name = "value_len", at = 19, size = 2, shown = "number" },
    len = 21,
    parts = {
      { bytes = "key", len = "key_len" },
      { bytes = "value", len = "value_len" },
    },
  },
  ["hot_copy"] = {
    { name = "kind", at = 0, size = 1, shown = "number" },
    { name = "expiry_ms", at = 1, size = 8, shown = "number" },
    len = 9,
    parts = {},
  },
  ["delegate"] = {
    { name = "switch", at = 0, size = 8, shown = "hex" },
    { name = "replicas", at = 8, size = 1, shown = "number" },
    len = 9,
    parts = {},
  },
  ["recall"] = {
    { name = "newest", at = 0, size = 8, shown = "number" },
    { name = "ended", at = 8, size = 8, shown = "number" },
    { name = "delegated_at", at = 16, size = 8, shown = "number" },
    { name = "switch", at = 24, size = 8, shown = "hex" },
    len = 32,
    parts = {},
  },
  ["delegation_fetch"] = {
    { name = "delegation", at = 0, size = 8, shown = "number" },
    { name = "ended", at = 8, size = 8, shown = "number" },
    len = 16,
    parts = {},
  },
  ["delegation_found"] = {
    { name = "delegation", at = 0, size = 8, shown = "number" },
    { name = "kind", at = 8, size = 1, shown = "number" },
    len = 9,
    parts = {},
  },
  ["delegation_end"] = {
    { name = "delegation", at = 0, size = 8, shown = "number" },
    len = 8,
    parts = {},
  },
  ["delegation_commit"] = {
    { name = "delegation", at = 0, size = 8, shown = "number" },
    len = 8,
    parts = {},
  },
  ["delegation_write"] = {
    { name = "unsynced", at = 0, size = 1, shown = "number" },
    len = 1,
    parts = {},
  },
  ["delegation_durable"] = {
    { name = "delegation", at = 0, size = 8, shown = "number" },
    len = 8,
    parts = {},
  },
  ["cache_loan"] = {
    { name = "lender", at = 0, size = 8, shown = "hex" },
    { name = "loan", at = 8, size = 8, shown = "number" },
    { name = "from", at = 16, size = 8, shown = "number" },
    { name = "expiry_ms", at = 24, size = 8, shown = "number" },
    { name = "now_ms", at = 32, size = 8, shown = "number" },
    { name = "lasts_ms", at = 40, size = 4, shown = "number" },
    len = 44,
    parts = {},
  },
  ["cache_renew"] = {
    { name = "lender", at = 0, size = 8, shown = "hex" },
    len = 8,
    parts = {},
  },
  ["cache_grant"] = {
    { name = "lender", at = 0, size = 8, shown = "hex" },
    { name = "from", at = 8, size = 8, shown = "number" },
    { name = "now_ms", at = 16, size = 8, shown = "number" },
    { name = "lasts_ms", at = 24, size = 4, shown = "number" },
    len = 28,
    parts = {},
  },
  ["cache_update"] = {
    { name = "lender", at = 0, size = 8, shown = "hex" },
    { name = "loan", at = 8, size = 8, shown = "number" },
    { name = "expiry_ms", at = 16, size = 8, shown = "number" },
    len = 24,
    parts = {},
  },
  ["cache_recall"] = {
    { name = "lender", at = 0, size = 8, shown = "hex" },
    { name = "loan", at = 8, size = 8, shown = "number" },
    len = 16,
    parts = {},
  },
  ["cache_answer"] = {
    { name = "lender", at = 0, size = 8, shown = "hex" },
    { name = "loan", at = 8, size = 8, shown = "number" },
    { name = "held", at = 16, size = 1, shown = "number" },
    len = 17,
    parts = {},
  },
  ["cache_report"] = {
    { name = "keyspace", at = 0, size = 2, shown = "number" },
    { name = "partition", at = 2, size = 4, shown = "number" },
    { name = "epoch", at = 6, size = 4, shown = "number" },
    { name = "match", at = 10, size = 16, shown = "hex" },
    { name = "keyhash", at = 26, size = 8, shown = "hex" },
    { name = "rate", at = 34, size = 4, shown = "number" },
    { name = "key_len", at = 38, size = 2, shown = "number" },
    len = 40,
    parts = {
      { bytes = "key", len = "key_len" },
    },
  },
  ["cache_rule"] = {
    { name = "adds", at = 0, size = 1, shown = "number" },
    { name = "keyspace", at = 1, size = 2, shown = "number" },
    { name = "keyhash", at = 3, size = 8, shown = "hex" },
    len = 11,
    kinds = { [0x00] = true, [0x01] = true },
    parts = {},
  },
  ["cache_rule_placed"] = {
    { name = "adds", at = 0, size = 1, shown = "number" },
    { name = "keyspace", at = 1, size = 2, shown = "number" },
    { name = "keyhash", at = 3, size = 8, shown = "hex" },
    { name = "match_bits", at = 11, size = 8, shown = "hex" },
    len = 19,
    kinds = { [0x02] = true, [0x03] = true },
    parts = {},
  },
  ["copy_registration"] = {
    { name = "kind", at = 0, size = 1, shown = "number" },
    { name = "generation", at = 1, size = 8, shown = "number" },
    { name = "key_len", at = 9, size = 2, shown = "number" },
    len = 11,
    kinds = { [0x04] = true },
    parts = {
      { bytes = "key", len = "key_len" },
    },
  },
  ["copy_delegations"] = {
    { name = "kind", at = 0, size = 1, shown = "number" },
    { name = "key_len", at = 1, size = 2, shown = "number" },
    { name = "delegations_len", at = 3, size = 2, shown = "number" },
    len = 5,
    kinds = { [0x05] = true },
    parts = {
      { bytes = "key", len = "key_len" },
      { bytes = "delegations", len = "delegations_len" },
    },
  },
  ["delegations"] = {
    { name = "over", at = 0, size = 1, shown = "number" },
    { name = "nodes", at = 1, size = 1, shown = "number" },
    len = 2,
    parts = {},
  },
  ["delegation_over"] = {
    { name = "number", at = 0, size = 8, shown = "number" },
    { name = "delegated_at", at = 8, size = 8, shown = "number" },
    { name = "newest", at = 16, size = 8, shown = "number" },
    { name = "ended", at = 24, size = 8, shown = "number" },
    { name = "switch", at = 32, size = 8, shown = "hex" },
    { name = "since_ms", at = 40, size = 8, shown = "number" },
    len = 48,
    parts = {},
  },
  ["delegation_present"] = {
    { name = "number", at = 0, size = 8, shown = "number" },
    { name = "delegated_at", at = 8, size = 8, shown = "number" },
    { name = "switch", at = 16, size = 8, shown = "hex" },
    { name = "replicas", at = 24, size = 1, shown = "number" },
    len = 25,
    parts = {},
  },
  ["copy_record"] = {
    { name = "kind", at = 0, size = 1, shown = "number" },
    { name = "version", at = 1, size = 8, shown = "number" },
    { name = "expiry_ms", at = 9, size = 8, shown = "number" },
    { name = "key_len", at = 17, size = 2, shown = "number" },
    { name = "value_len", at = 19, size = 2, shown = "number" },
    len = 21,
    kinds = { [0x00] = true, [0x01] = true },
    parts = {
      { bytes = "key", len = "key_len" },
      { bytes = "value", len = "value_len" },
    },
  },
  ["copy_session"] = {
    { name = "kind", at = 0, size = 1, shown = "number" },
    { name = "origin", at = 1, size = 1, shown = "named", names = FAMILIES.op },
    { name = "code", at = 2, size = 1, shown = "named", names = FAMILIES.code },
    { name = "client", at = 3, size = 8, shown = "hex" },
    { name = "seq", at = 11, size = 8, shown = "number" },
    { name = "floor", at = 19, size = 8, shown = "number" },
    { name = "version", at = 27, size = 8, shown = "number" },
    { name = "result", at = 35, size = 8, shown = "number" },
    len = 43,
    kinds = { [0x02] = true },
    parts = {},
  },
  ["copy_ended"] = {
    { name = "kind", at = 0, size = 1, shown = "number" },
    { name = "client", at = 1, size = 8, shown = "hex" },
    { name = "newest", at = 9, size = 8, shown = "number" },
    len = 17,
    kinds = { [0x06] = true },
    parts = {},
  },
  ["copy_end"] = {
    { name = "kind", at = 0, size = 1, shown = "number" },
    { name = "last_version", at = 1, size = 8, shown = "number" },
    { name = "stable", at = 9, size = 8, shown = "number" },
    { name = "collected", at = 17, size = 8, shown = "number" },
    { name = "forgotten", at = 25, size = 8, shown = "number" },
    len = 33,
    kinds = { [0x03] = true },
    parts = {},
  },
  ["chain_verify"] = {
    { name = "kind", at = 0, size = 1, shown = "number" },
    { name = "count", at = 1, size = 2, shown = "number" },
    { name = "place", at = 3, size = 1, shown = "number" },
    { name = "state", at = 4, size = 1, shown = "named", names = FAMILIES.verify_state },
    { name = "version", at = 5, size = 8, shown = "number" },
    { name = "expiry_ms", at = 13, size = 8, shown = "number" },
    { name = "digest", at = 21, size = 8, shown = "hex" },
    len = 29,
    parts = {},
  },
  ["chain_verified"] = {
    { name = "kind", at = 0, size = 1, shown = "number" },
    { name = "state", at = 1, size = 1, shown = "named", names = FAMILIES.verify_state },
    { name = "end", at = 2, size = 1, shown = "number" },
    { name = "count", at = 3, size = 2, shown = "number" },
    { name = "absurd", at = 5, size = 2, shown = "number" },
    { name = "version", at = 7, size = 8, shown = "number" },
    { name = "expiry_ms", at = 15, size = 8, shown = "number" },
    { name = "digest", at = 23, size = 8, shown = "hex" },
    { name = "collected", at = 31, size = 8, shown = "number" },
    { name = "newest", at = 39, size = 8, shown = "number" },
    { name = "stable", at = 47, size = 8, shown = "number" },
    { name = "owner", at = 55, size = 8, shown = "number" },
    len = 63,
    parts = {},
  },
  ["chain_mend"] = {
    { name = "state", at = 0, size = 1, shown = "named", names = FAMILIES.verify_state },
    { name = "version", at = 1, size = 8, shown = "number" },
    { name = "expiry_ms", at = 9, size = 8, shown = "number" },
    { name = "wrong_state", at = 17, size = 1, shown = "named", names = FAMILIES.verify_state },
    { name = "wrong_version", at = 18, size = 8, shown = "number" },
    { name = "wrong_expiry_ms", at = 26, size = 8, shown = "number" },
    { name = "wrong_digest", at = 34, size = 8, shown = "hex" },
    len = 42,
    parts = {},
  },
  ["part"] = {
    { name = "mark", at = 0, size = 8, shown = "hex" },
    { name = "client", at = 8, size = 8, shown = "hex" },
    { name = "number", at = 16, size = 8, shown = "number" },
    { name = "index", at = 24, size = 4, shown = "number" },
    len = 28,
    parts = {},
  },
  ["upload"] = {
    { name = "client", at = 0, size = 8, shown = "hex" },
    { name = "number", at = 8, size = 8, shown = "number" },
    len = 16,
    parts = {},
  },
  ["manifest"] = {
    { name = "len", at = 0, size = 8, shown = "number" },
    { name = "part_len", at = 8, size = 2, shown = "number" },
    { name = "checksum", at = 10, size = 4, shown = "hex" },
    { name = "client", at = 14, size = 8, shown = "hex" },
    { name = "number", at = 22, size = 8, shown = "number" },
    len = 30,
    parts = {},
  },
  ["mget_slot"] = {
    { name = "match", at = 0, size = 16, shown = "hex" },
    { name = "keyhash", at = 16, size = 8, shown = "hex" },
    len = 24,
    parts = {},
  },
  ["mget_len"] = {
    { name = "key_len", at = 0, size = 2, shown = "number" },
    len = 2,
    parts = {},
  },
  ["mget_entry"] = {
    { name = "index", at = 0, size = 1, shown = "number" },
    { name = "code", at = 1, size = 1, shown = "named", names = FAMILIES.code },
    { name = "version", at = 2, size = 8, shown = "number" },
    { name = "expiry_ms", at = 10, size = 8, shown = "number" },
    { name = "value_len", at = 18, size = 2, shown = "number" },
    len = 20,
    parts = {
      { bytes = "value", len = "value_len" },
    },
  },
  ["range_entry"] = {
    { name = "kind", at = 0, size = 1, shown = "number" },
    { name = "version", at = 1, size = 8, shown = "number" },
    { name = "expiry_ms", at = 9, size = 8, shown = "number" },
    { name = "key_len", at = 17, size = 2, shown = "number" },
    { name = "value_len", at = 19, size = 2, shown = "number" },
    len = 21,
    parts = {
      { bytes = "key", len = "key_len" },
      { bytes = "value", len = "value_len" },
    },
  },
}

local PAYLOADS = {
  {
    when = { { ops = { [0x81] = true, [0x82] = true, [0x83] = true, [0x84] = true, [0x85] = true, [0x86] = true, [0x87] = true, [0x88] = true, [0x89] = true }, codes = { [0x1b] = true } }, },
    parts = {
      { bytes = "words" },
    },
  },
  {
    when = { { ops = { [0x81] = true, [0x82] = true, [0x83] = true, [0x84] = true, [0x85] = true, [0x86] = true, [0x87] = true, [0x88] = true, [0x89] = true }, codes_from = 16 }, },
    parts = {},
  },
  {
    when = { { ops = { [0x01] = true, [0x03] = true, [0x44] = true } }, },
    parts = {
      { bytes = "key", len = "key_len" },
    },
  },
  {
    when = { { ops = { [0x02] = true } }, },
    parts = {
      { form = "put" },
      { bytes = "key", len = "key_len" },
      { bytes = "value" },
    },
  },
  {
    when = { { ops = { [0x04] = true } }, },
    parts = {
      { form = "cas" },
      { bytes = "key", len = "key_len" },
      { bytes = "expected", len = "expect_len", when = { { flags = 0x01 }, } },
      { bytes = "value" },
    },
  },
  {
    when = { { ops = { [0x05] = true } }, },
    parts = {
      { form = "incr" },
      { bytes = "key", len = "key_len" },
    },
  },
  {
    when = { { ops = { [0x06] = true } }, },
    parts = {
      { times = "count", each = { "mget_slot" } },
      { times = "count", each = { "mget_len" } },
      { bytes = "key", lens = "mget_len" },
    },
  },
  {
    when = { { ops = { [0x07] = true } }, },
    parts = {
      { form = "range" },
      { bytes = "start", len = "key_len" },
      { bytes = "end" },
    },
  },
  {
    when = { { ops = { [0x08] = true } }, },
    parts = {
      { bytes = "name" },
    },
  },
  {
    when = { { ops = { [0x09] = true } }, },
    parts = {
      { each = { "batch_step" } },
    },
  },
  {
    when = { { ops = { [0x50] = true } }, },
    parts = {
      { each = { "chain_durable" } },
    },
  },
  {
    when = { { ops = { [0x40] = true, [0x51] = true } }, },
    parts = {
      { form = "chain_write" },
      { each = { "chain_step" }, having = { effect = { [0x07] = true } } },
      { bytes = "key", len = "key_len", unless = { effect = { [0x07] = true } } },
      { form = "delegate", having = { effect = { [0x05] = true } } },
      { bytes = "nodes", having = { effect = { [0x05] = true } } },
      { form = "recall", having = { effect = { [0x06] = true } } },
      { form = "upload", having = { effect = { [0x08] = true } } },
      { bytes = "value", having = { effect = { [0x01] = true, [0x06] = true } } },
    },
  },
  {
    when = { { ops = { [0x41] = true, [0x42] = true, [0x46] = true, [0xc7] = true, [0xc8] = true, [0x82] = true, [0x83] = true, [0x84] = true } }, { ops = { [0x0a] = true, [0x4f] = true, [0x52] = true } }, },
    parts = {},
  },
  {
    when = { { ops = { [0x43] = true } }, },
    parts = {
      { form = "chain_stable" },
    },
  },
  {
    when = { { ops = { [0x45] = true } }, },
    parts = {
      { each = { "copy_record", "copy_session", "copy_end", "copy_registration", "copy_delegations", "copy_ended" } },
    },
  },
  {
    when = { { ops = { [0x4c] = true } }, },
    parts = {
      { form = "chain_verify" },
      { bytes = "key" },
    },
  },
  {
    when = { { ops = { [0x4d] = true } }, },
    parts = {
      { form = "chain_verified" },
      { bytes = "last" },
    },
  },
  {
    when = { { ops = { [0x4e] = true } }, },
    parts = {
      { form = "chain_mend" },
      { bytes = "key", len = "key_len" },
      { bytes = "value" },
    },
  },
  {
    when = { { ops = { [0x47] = true } }, },
    parts = {
      { form = "hot_copy" },
      { bytes = "key", len = "key_len" },
      { bytes = "value" },
    },
  },
  {
    when = { { ops = { [0x48] = true } }, },
    parts = {
      { form = "delegation_fetch" },
      { bytes = "key", len = "key_len" },
    },
  },
  {
    when = { { ops = { [0x49] = true } }, },
    parts = {
      { form = "delegation_found" },
      { bytes = "key", len = "key_len" },
      { bytes = "value" },
    },
  },
  {
    when = { { ops = { [0x4a] = true } }, },
    parts = {
      { form = "delegation_end" },
      { bytes = "key", len = "key_len" },
    },
  },
  {
    when = { { ops = { [0x4b] = true } }, },
    parts = {
      { form = "delegation_commit" },
      { bytes = "key", len = "key_len" },
    },
  },
  {
    when = { { ops = { [0x53] = true } }, },
    parts = {
      { form = "delegation_write" },
      { bytes = "key", len = "key_len" },
      { bytes = "value" },
    },
  },
  {
    when = { { ops = { [0x54] = true } }, },
    parts = {
      { form = "delegation_durable" },
      { bytes = "key", len = "key_len" },
    },
  },
  {
    when = { { ops = { [0x55] = true } }, },
    parts = {
      { bytes = "key", len = "key_len" },
    },
  },
  {
    when = { { ops = { [0x56] = true }, codes = { [0x00] = true } }, },
    parts = {
      { form = "cache_loan" },
      { bytes = "key", len = "key_len" },
      { bytes = "value" },
    },
  },
  {
    when = { { ops = { [0x56] = true } }, },
    parts = {
      { bytes = "key", len = "key_len" },
    },
  },
  {
    when = { { ops = { [0x57] = true } }, },
    parts = {
      { form = "cache_renew" },
    },
  },
  {
    when = { { ops = { [0x58] = true } }, },
    parts = {
      { form = "cache_grant" },
    },
  },
  {
    when = { { ops = { [0x59] = true } }, },
    parts = {
      { form = "cache_update" },
      { bytes = "key", len = "key_len" },
      { bytes = "value" },
    },
  },
  {
    when = { { ops = { [0x5a] = true } }, },
    parts = {
      { form = "cache_recall" },
      { bytes = "key", len = "key_len" },
    },
  },
  {
    when = { { ops = { [0x5b] = true } }, },
    parts = {
      { form = "cache_answer" },
      { bytes = "key", len = "key_len" },
    },
  },
  {
    when = { { ops = { [0x5c] = true } }, },
    parts = {
      { each = { "cache_report" } },
    },
  },
  {
    when = { { ops = { [0x5d] = true } }, },
    parts = {
      { each = { "cache_rule", "cache_rule_placed" } },
    },
  },
  {
    when = { { ops = { [0x5e] = true } }, },
    parts = {},
  },
  {
    when = { { ops = { [0x81] = true } }, },
    parts = {
      { form = "get_reply" },
      { bytes = "value" },
    },
  },
  {
    when = { { ops = { [0x85] = true } }, },
    parts = {
      { form = "incr_reply" },
    },
  },
  {
    when = { { ops = { [0x86] = true } }, },
    parts = {
      { each = { "mget_entry" } },
    },
  },
  {
    when = { { ops = { [0x87] = true } }, },
    parts = {
      { form = "range_count", when = { { flags = 0x80 }, } },
      { each = { "range_entry" } },
    },
  },
  {
    when = { { ops = { [0x88] = true } }, },
    parts = {
      { form = "describe_reply" },
      { bytes = "prefix" },
    },
  },
  {
    when = { { ops = { [0x89] = true } }, },
    parts = {
      { form = "batch_reply" },
    },
  },
}

-- From here on nothing is generated: it goes through packets by the tables above.

local keyway = Proto("keyway", "Keyway")
local opaque = ProtoField.bytes("keyway.left", "left")
local fields, protofields = {}, { opaque }
local missing = ProtoExpert.new("keyway.missing", "The datagram ends before this",
  expert.group.MALFORMED, expert.severity.ERROR)
keyway.experts = { missing }

-- The field of Wireshark by the name `abbr`, made when it is first asked for.
local function protofield(abbr, make)
  if not fields[abbr] then
    fields[abbr] = make("keyway." .. abbr)
    protofields[#protofields + 1] = fields[abbr]
  end
  return fields[abbr]
end

local UNSIGNED = {
  ProtoField.uint8, ProtoField.uint16, nil, ProtoField.uint32, [8] = ProtoField.uint64,
}

local function define(prefix, field)
  field.proto = protofield(prefix .. field.name, function(abbr)
    if field.shown == "ids" then
      return ProtoField.uint16(abbr, field.name, base.DEC, nil, nil, field.doc)
    elseif field.shown == "address" then
      return ProtoField.ipv6(abbr, field.name, field.doc)
    elseif field.shown == "named" then
      return ProtoField.uint8(abbr, field.name, base.HEX, field.names, nil, field.doc)
    elseif field.shown == "signed" then
      return ProtoField.int64(abbr, field.name, base.DEC, nil, nil, field.doc)
    elseif not UNSIGNED[field.size] then
      return ProtoField.bytes(abbr, field.name, base.NONE, field.doc)
    end
    local form = (field.shown == "hex" or field.shown == "bits") and base.HEX or base.DEC
    return UNSIGNED[field.size](abbr, field.name, form, nil, nil, field.doc)
  end)
  for _, flag in ipairs(field.bits or {}) do
    flag.proto = protofield(prefix .. field.name .. "." .. flag.name:lower(), function(abbr)
      return ProtoField.bool(abbr, flag.name, 8, nil, 2 ^ flag.bit)
    end)
  end
end

local function define_parts(parts)
  for _, part in ipairs(parts) do
    if part.bytes then
      local bytes = function(abbr) return ProtoField.bytes(abbr, part.bytes) end
      part.proto = protofield(part.bytes, bytes)
    end
  end
end

-- First, since bytes may have the name of a body, and then show what they are.
for _, form in pairs(FORMS) do define_parts(form.parts) end
for _, row in ipairs(PAYLOADS) do define_parts(row.parts) end
local by_name = {}
for _, field in ipairs(HEADER) do
  define("", field)
  by_name[field.name] = field
  if field.rest then
    field.rest.shown = "ids"
    define("", field.rest)
  end
end
for name, form in pairs(FORMS) do
  form.name = name
  for _, field in ipairs(form) do define(name .. ".", field) end
  form.proto = protofield(name, function(abbr) return ProtoField.none(abbr, name) end)
end
keyway.fields = protofields

-- Whether all bits of `mask` are set in a byte, or none of them. Without a library of bits, which
-- versions of Lua have under different names.
local function bits(byte, mask, wanted)
  for bit = 0, 7 do
    if math.floor(mask / 2 ^ bit) % 2 == 1 and math.floor(byte / 2 ^ bit) % 2 ~= wanted then
      return false
    end
  end
  return true
end

local function is_zero(range)
  for at = 0, range:len() - 1 do
    if range(at, 1):uint() ~= 0 then return false end
  end
  return true
end

-- A header: its bytes, and whether it is on its last way, to the reply address.
local Header = {}
Header.__index = Header

function Header:of(name)
  local field = by_name[name]
  return self.tvb(field.at, field.size)
end

local function row_holds(header, row)
  if row.ops and not row.ops[header.op] then return false end
  if row.codes and not row.codes[header.code] then return false end
  if row.codes_from and header.code < row.codes_from then return false end
  if row.hop and not bits(header.hop_flags, row.hop, 1) then return false end
  if row.hop_clear and not bits(header.hop_flags, row.hop_clear, 0) then return false end
  if row.flags and not bits(header.flags, row.flags, 1) then return false end
  for _, name in ipairs(row.zero or {}) do
    if not is_zero(header:of(name)) then return false end
  end
  return row.delivered == nil or row.delivered == header.delivered
end

function Header:holds(rows)
  if not self.whole then return false end
  for _, row in ipairs(rows) do
    if row_holds(self, row) then return true end
  end
  return false
end

local function used(header, field)
  local count = field.count and by_name[field.count]
  if not count or count.at + count.size > header.tvb:len() then return field.size end
  return math.min(field.size, 2 * header:of(field.count):uint())
end

local function is_covered(header, field, size)
  for _, over in ipairs(HEADER) do
    if over.when and over.at < field.at + size and field.at < over.at + over.size
        and header:holds(over.when) then
      return true
    end
  end
  return false
end

local function show(header, tree, field, range)
  if field.shown == "ids" then
    for at = 0, range:len() - 2, 2 do
      -- 65535 is nobody's.
      if range(at, 2):uint() ~= 0xffff then tree:add(field.proto, range(at, 2)) end
    end
    return
  end
  local item = tree:add(field.proto, range)
  for _, flag in ipairs(field.bits or {}) do
    if not flag.ops or flag.ops[header.op] then item:add(flag.proto, range) end
  end
end

local function show_header(header, tree)
  for _, field in ipairs(HEADER) do
    if field.at + field.size > header.tvb:len() then
      tree:add_proto_expert_info(missing, field.name)
      return
    end
    local size = used(header, field)
    local shown
    if field.when then
      shown = header:holds(field.when)
    else
      shown = not is_covered(header, field, size)
    end
    if shown then
      if size > 0 then show(header, tree, field, header.tvb(field.at, size)) end
      if field.rest and size < field.size and header:holds(field.rest.when) then
        show(header, tree, field.rest, header.tvb(field.at + size, field.size - size))
      end
    end
  end
end

-- A payload that is gone through: `at` is where the rest begins, `ends` where it ends.
local Walk = {}
Walk.__index = Walk

-- A field of the body that the parts at hand belong to, or of the first one after it that has one.
function Walk:in_bodies(name)
  for n = self.level, #self.seen do
    for _, field in ipairs(self.seen[n].form) do
      if field.name == name then return self.seen[n].range(field.at, field.size):uint() end
    end
  end
end

function Walk:number(name)
  return self:in_bodies(name) or self.header:of(name):uint()
end

function Walk:is_one(fields)
  for name, values in pairs(fields) do
    if not values[self:in_bodies(name)] then return false end
  end
  return true
end

function Walk:has(part)
  return (not part.when or self.header:holds(part.when))
    and (not part.having or self:is_one(part.having))
    and not (part.unless and self:is_one(part.unless))
end

function Walk:left(tree)
  if self.at < self.ends then tree:add(opaque, self.tvb(self.at, self.ends - self.at)) end
  self.at = self.ends
end

local function printable(range)
  local text = range:raw()
  return not text:find("[^\32-\126]") and text
end

-- Shows as many bytes as there are; false if those are too few.
function Walk:bytes(tree, part, len)
  local there = math.min(len, self.ends - self.at)
  local range = self.tvb(self.at, there)
  local item = tree:add(part.proto, range)
  local text = there > 0 and printable(range)
  if text then
    item:append_text(" \"" .. text .. "\"")
    if part.bytes == "key" and not self.key then self.key = text end
  end
  self.at = self.at + there
  if there < len then tree:add_proto_expert_info(missing, part.bytes) end
  return there == len
end

function Walk:form(tree, form)
  if self.at + form.len > self.ends then
    tree:add_proto_expert_info(missing, form.name)
    return false
  end
  local range = self.tvb(self.at, form.len)
  self.at = self.at + form.len
  local outer = self.level
  self.level = #self.seen + 1
  self.seen[self.level] = { form = form, range = range }
  local item = tree:add(form.proto, range)
  for _, field in ipairs(form) do
    show(self.header, item, field, range(field.at, field.size))
  end
  local begins = range:offset()
  local ended = self:parts(item, form.parts)
  self.level = outer
  item:set_len(self.at - begins)
  return ended
end

function Walk:each(tree, part)
  local times = part.times and self:number(part.times)
  while times and times > 0 or not times and self.at < self.ends do
    times = times and times - 1
    local fitting
    for _, name in ipairs(part.each) do
      local kinds = FORMS[name].kinds
      local fits = not kinds or self.at < self.ends and kinds[self.tvb(self.at, 1):uint()]
      if fits and not fitting then fitting = FORMS[name] end
    end
    if not fitting or not self:form(tree, fitting) then return false end
  end
  return true
end

function Walk:part(tree, part)
  if part.form then return self:form(tree, FORMS[part.form]) end
  if part.each then return self:each(tree, part) end
  if not part.lens then
    return self:bytes(tree, part, part.len and self:number(part.len) or self.ends - self.at)
  end
  for n = 1, #self.seen do
    local seen = self.seen[n]
    if seen.form.name == part.lens and not self:bytes(tree, part, seen.range:uint()) then
      return false
    end
  end
  return true
end

function Walk:parts(tree, parts)
  for _, part in ipairs(parts) do
    if self:has(part) and not self:part(tree, part) then return false end
  end
  return true
end

function Walk:payload(tree)
  local len = self.header:of("payload_len"):uint()
  local all = self.ends
  local ends = math.min(HEADER_LEN + len, all)
  local whole = ends == HEADER_LEN + len
  local tail
  for _, form in pairs(FORMS) do
    if whole and form.tail and self.header:holds(form.tail) then tail = form end
  end
  self.ends = math.max(self.at, ends - (tail and tail.len or 0))
  local row
  for _, one in ipairs(PAYLOADS) do
    if not row and self.header:holds(one.when) then row = one end
  end
  local ended = self:parts(tree, row and row.parts or {})
  if ended then
    self:left(tree)
    self.ends = ends
    ended = not tail or self:form(tree, tail)
  end
  if ended and not whole then tree:add_proto_expert_info(missing, "payload") end
  self:left(tree)
  self.ends = all
  self:left(tree)
end

-- Whether a datagram of these ends is on its last way.
local function is_delivered(header, pinfo)
  local addr = header:of("reply_addr")
  local mapped = is_zero(addr(0, 10)) and addr(10, 2):uint() == 0xffff
  local to = mapped and addr(12, 4):ipv4() or addr:ipv6()
  return pinfo.dst == to and pinfo.dst_port == header:of("reply_port"):uint()
end

-- The envelope before a packet: how long it is, 0 if there is none.
local function envelope_len(tvb)
  local is_in_one = tvb:len() >= 2 and tvb(0, 2):uint() == ENVELOPE_MAGIC
  return is_in_one and math.min(tvb:len(), FORMS.envelope.len) or 0
end

local function is_ours(tvb)
  return tvb:len() >= 2 and (tvb(0, 2):uint() == MAGIC or envelope_len(tvb) > 0)
end

local function show_envelope(tvb, tree)
  local form = FORMS.envelope
  if tvb:len() < form.len then
    tree:add_proto_expert_info(missing, form.name)
    return
  end
  local item = tree:add(form.proto, tvb())
  for _, field in ipairs(form) do show({}, item, field, tvb(field.at, field.size)) end
end

-- Bytes of the first datagram: all, unless another begins where the header says that it ends.
local function one_len(tvb)
  local before = envelope_len(tvb)
  if tvb:len() < before + HEADER_LEN then return tvb:len() end
  local field = by_name.payload_len
  local len = before + HEADER_LEN + tvb(before + field.at, field.size):uint()
  return len < tvb:len() and is_ours(tvb(len):tvb()) and len or tvb:len()
end

local function show_one(tvb, pinfo, tree)
  local item = tree:add(keyway, tvb())
  local before = envelope_len(tvb)
  if before > 0 then
    show_envelope(tvb(0, before):tvb(), item)
    if before == tvb:len() then
      local info = before < FORMS.envelope.len and "cut short" or "cookie"
      item:append_text(", " .. info)
      return info
    end
    tvb = tvb(before):tvb()
  end
  local header = setmetatable({ tvb = tvb, whole = tvb:len() >= HEADER_LEN }, Header)
  local info = "cut short"
  if header.whole then
    for _, name in ipairs({ "op", "code", "hop_flags", "flags" }) do
      header[name] = header:of(name):uint()
    end
    header.delivered = is_delivered(header, pinfo)
    info = FAMILIES.op[header.op] or string.format("op %#04x", header.op)
  end
  show_header(header, item)
  if header.whole then
    local walk = { tvb = tvb, header = header, at = HEADER_LEN, ends = tvb:len(), seen = {},
      level = 1 }
    setmetatable(walk, Walk):payload(item)
    if walk.key then info = info .. " " .. walk.key end
    if header.code > 0 then info = info .. " " .. (FAMILIES.code[header.code] or header.code) end
  end
  item:append_text(", " .. info)
  return info
end

-- One datagram, or several where the kernel had not cut yet what it was given at once.
function keyway.dissector(tvb, pinfo, tree)
  if not is_ours(tvb) then return 0 end
  pinfo.cols.protocol = "Keyway"
  local infos, at, more = {}, 0, 0
  while at < tvb:len() do
    local len = one_len(tvb(at):tvb())
    local info = show_one(tvb(at, len):tvb(), pinfo, tree)
    at = at + len
    if #infos < 3 then infos[#infos + 1] = info else more = more + 1 end
  end
  if more > 0 then infos[#infos + 1] = more .. " more" end
  pinfo.cols.info = table.concat(infos, "; ")
  return tvb:len()
end

DissectorTable.get("udp.port"):add(PORT, keyway)
keyway:register_heuristic("udp", function(tvb, pinfo, tree)
  return keyway.dissector(tvb, pinfo, tree) > 0
end)
