/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The coherence directory: section 8 of spec/protocol.md, as crates/switch has it in `hot`, `learn`
 * and `spread`.
 *
 * The loader puts elements in and takes them out. It never puts one in the place of another: what
 * programs have raised meanwhile would be lost. What changes in an element that stays is changed
 * where it is, by the program `resettle`.
 *
 * A program on another processor may still work on an element that was taken out. What it then does
 * not count was received before the key's next element was there, and the argument in
 * crates/switch/src/directory.rs holds: if it is a reply, its version was committed before the tail
 * can have seen a read stamped with the next stay, and the proof of that stay says no less. If it
 * is a read, it was asked before anything was shown that the old element did not count. But the
 * memory of an element may become that of another at once, whose floor must not be proven by
 * somebody else's proof: so the loader waits until no program runs that began before, and only then
 * puts others in.
 */
#ifndef KEYWAY_HOT_H
#define KEYWAY_HOT_H

#include "count.h"
#include "tables.h"

/* Readers that are looked at for one read, as in crates/switch/src/spread.rs. */
#define KW_SAMPLES_MAX	4

/* Times that a floor is tried to be raised: each time somebody else has raised it meanwhile. */
#define KW_RAISE_MAX	16

/* No node has this id. */
#define KW_NOBODY	0xffff

_Static_assert(sizeof(((struct kw_hot *)0)->marks) == KW_HOT_READERS_MAX, "a mark for each reader");
_Static_assert(sizeof(((struct kw_holders *)0)->nodes) == 2 * KW_NODES_MAX, "a place for each node");

/* The element of a key that may have one. */
static __noinline struct kw_hot *kw_hot(__be16 keyspace, __be64 keyhash)
{
	struct kw_hot_key key = { .keyhash = keyhash, .keyspace = keyspace };

	return bpf_map_lookup_elem(&hot_keys, &key);
}

static __always_inline bool kw_has_hot_bit(__u16 part)
{
	return hot_bits[part / 64] & 1ULL << part % 64;
}

/* Whether a key may be hot: two bits for parts of its hash spare most others the look into the map. */
static __always_inline bool kw_may_be_hot(__be64 keyhash)
{
	__u64 hash = bpf_be64_to_cpu(keyhash);

	return rule.hot && kw_has_hot_bit(hash) && kw_has_hot_bit(hash >> 16);
}

/* The mark of a version: one above the remainder by 255, of which 256 leaves one. */
static __always_inline __u8 kw_mark(__u64 version)
{
	__u64 sum = (version & 0xffffffff) + (version >> 32);

	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xff) + (sum >> 8);
	sum = (sum & 0xff) + (sum >> 8);
	return sum >= 255 ? sum - 254 : sum + 1;
}

/* What a read is stamped with. */
static __always_inline __u64 kw_floor(const struct kw_hot *hot, __u32 proven)
{
	__u64 after = proven;

	/* The address depends on `proven`, so that no processor reads the floor before that. */
	asm volatile("%0 &= 0" : "+r"(after));
	return *(const volatile __u64 *)((const void *)&hot->floor + after);
}

static __always_inline __u32 kw_proven(const struct kw_hot *hot)
{
	return *(const volatile __u32 *)&hot->proven;
}

/* The way to a node's shard for a partition, if it is known. */
static __always_inline const struct kw_node *kw_shard(__u32 id, __be32 partition, __be16 *port)
{
	const struct kw_node *node = kw_node(bpf_htons(id));

	if (!node || !node->shards)
		return NULL;
	*port = bpf_htons(bpf_ntohs(node->port) + bpf_ntohl(partition) % node->shards);
	return node;
}

/* A number that nobody needs to be unable to guess. Asking the kernel for one takes a call. */
static __always_inline __u64 kw_draw(struct kw_own *own)
{
	__u64 random = own->random;

	if (!random)
		random = (__u64)bpf_get_prandom_u32() << 32 | 1;
	random ^= random << 13;
	random ^= random >> 7;
	random ^= random << 17;
	own->random = random;
	return random;
}

/*
 * The id of a reader that holds this version and to which a way is known, or KW_NOBODY: of the
 * first two among a few at random the one that has less to do. A function of its own to the
 * verifier.
 */
__noinline int kw_choose(const struct kw_hot *hot, __u64 version, struct kw_own *own)
{
	__u32 found = KW_NOBODY, readers, reader, place, node, i, j;
	__u8 mark = kw_mark(version);
	__u64 seen = 0, draw;

	if (!hot || !own)
		return KW_NOBODY;
	readers = hot->readers;
	draw = kw_draw(own);
	for (i = 0; i < KW_SAMPLES_MAX && i < readers; i++) {
		reader = (draw & 0xffff) * readers >> 16;
		draw >>= 16;
		for (j = 1; j < KW_SAMPLES_MAX && seen >> (reader & 63) & 1; j++)
			reader = reader + 1 < readers ? reader + 1 : 0;
		seen |= 1ULL << (reader & 63);
		if (hot->marks[reader & (KW_HOT_READERS_MAX - 1)] != mark)
			continue;
		place = hot->first + reader;
		if (place >= holders.count)
			place -= holders.count;
		node = holders.nodes[place & (KW_NODES_MAX - 1)];
		if (node >= KW_NODES_MAX || !kw_node(bpf_htons(node)))
			continue;
		if (found != KW_NOBODY)
			return kw_busy(own, node) < kw_busy(own, found) ? node : found;
		found = node;
		if (rule.hot == KW_CHOOSE_AT_RANDOM)
			break;
	}
	return found;
}

/* Lifts the floor to a version: whether that was done. The reply that shows it comes after. */
static __always_inline bool kw_raise(struct kw_hot *hot, __u64 version)
{
	for (int i = 0; i < KW_RAISE_MAX; i++) {
		__u64 floor = *(volatile __u64 *)&hot->floor;

		/* Most replies show nothing new, and then the line stays with all processors. */
		if (floor >= version ||
		    __sync_val_compare_and_swap(&hot->floor, floor, version) == floor)
			return true;
	}
	return false;
}

/* Notes what a node holds: the mark of a version, or 0. Nothing if it is no reader of the key. */
static __always_inline void kw_note_mark(struct kw_hot *hot, __u32 node, __u8 mark)
{
	__u32 place = holders.places[node & (KW_NODES_MAX - 1)], reader;

	if (place >= holders.count)
		return;
	reader = place >= hot->first ? place - hot->first : place + holders.count - hot->first;
	if (reader >= hot->readers)
		return;
	reader &= KW_HOT_READERS_MAX - 1;
	if (hot->marks[reader] != mark)
		hot->marks[reader] = mark;
}

/* Codes above the decided ones that are known: others are taken for decided. */
static __always_inline bool kw_is_undecided(__u8 code)
{
	return (code >= KW_CODE_STALE_EPOCH && code <= KW_CODE_UNCERTAIN) ||
	       (code >= KW_CODE_BAD_REQUEST && code <= KW_CODE_NOT_ORDERED);
}

/*
 * Takes note of what a node says of a hot key in a reply to one key, before that is sent on: 0, or
 * the reason to drop it.
 */
static __noinline int kw_learn_hot(const struct kw_header *kw, __u32 sender)
{
	__u64 version = bpf_be64_to_cpu(KW_U64(&kw->object_version));
	struct kw_hot *hot = kw_hot(kw->keyspace, KW_U64(&kw->keyhash));
	bool of_get = kw->op == KW_OP_GET_REPLY, of_this_stay;

	if (!hot)
		return 0;
	if (kw->op == KW_OP_HOT_COPIED) {
		/* What is below the floor is of no use, and would hide what it has taken since. */
		if (version >= *(volatile __u64 *)&hot->floor)
			kw_note_mark(hot, sender, kw_mark(version));
		return 0;
	}
	of_this_stay = KW_U64((void *)kw + KW_STAY_AT) == hot->stay;
	if (kw->op != KW_OP_HOT_COVER && kw_is_undecided(kw->code)) {
		if (kw->code != KW_CODE_NOT_HERE || !of_get || !of_this_stay)
			return 0;
		if (!(kw->hop_flags & KW_HOP_FLAG_NEWEST)) {
			kw_note_mark(hot, sender, 0);
			return 0;
		}
		/* From the home of a key on a trip: it proves, though it has no answer. */
	}
	if (!kw_raise(hot, version))
		return KW_DROP_CONTENDED;
	/* Whoever answers for a trip holds what it answers. */
	if (kw->op == KW_OP_PUT_REPLY && kw->hop_flags & KW_HOP_FLAG_ROAM &&
	    *(volatile __u64 *)&hot->floor == version)
		kw_note_mark(hot, sender, kw_mark(version));
	/* The branches before make sure that no processor shows this before the floor. */
	if (of_get && kw->hop_flags & KW_HOP_FLAG_NEWEST && of_this_stay && !kw_proven(hot))
		*(volatile __u32 *)&hot->proven = 1;
	return 0;
}

static __always_inline int kw_learn(const struct kw_header *kw, __u32 sender)
{
	if (!kw_may_be_hot(KW_U64(&kw->keyhash)))
		return 0;
	switch (kw->op) {
	case KW_OP_GET_REPLY:
	case KW_OP_PUT_REPLY:
	case KW_OP_DEL_REPLY:
	case KW_OP_CAS_REPLY:
	case KW_OP_INCR_REPLY:
	case KW_OP_HOT_COPIED:
	case KW_OP_HOT_COVER:
		return kw_learn_hot(kw, sender);
	default:
		return 0;
	}
}

#endif /* KEYWAY_HOT_H */
