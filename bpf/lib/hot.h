/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The coherence directory: section 8 of spec/protocol.md, as crates/switch has it in `hot` and
 * `selection`.
 *
 * The loader puts elements in and takes them out. It never puts one in the place of another: what
 * programs have raised meanwhile would be lost. What changes in an element that stays is changed
 * where it is, by the program `resettle`.
 *
 * A program on another processor may still work on an element that was taken out. What it then does
 * not count was received before the key's next element was there, and the argument in
 * crates/switch/src/directory.rs holds: if it is a reply, its version was committed before the tail
 * can have seen a read stamped with the next generation, and the proof of that generation says no
 * less. If it is a read, it was asked before anything was shown that the old element did not count.
 * But the memory of an element may become that of another at once, whose floor must not be proven
 * by somebody else's proof: so the loader waits until no program runs that began before, and only
 * then puts others in.
 */
#ifndef KEYWAY_HOT_H
#define KEYWAY_HOT_H

#include "count.h"
#include "grants.h"
#include "tables.h"

/* Readers that are looked at for one read, as in crates/switch/src/spread.rs. */
#define KW_SAMPLES_MAX	4

/* Readers that fit of which the least busy is taken, or as many as can serve as much, as there. */
#define KW_OF_READS	2
#define KW_OF_WRITES	4

/* Beside a holder: only of readers to which a way is known. */
#define KW_REACHED	0x100

/* Floor of a read that only a tail may answer, which takes none: no copy is as new as that. */
#define KW_AT_TAIL	(~0ULL)

/* No node has this id. */
#define KW_NOBODY	0xffff

_Static_assert(sizeof(((struct kw_hot *)0)->holders) == KW_HOT_BANK_MAX,
	       "a holder for each reader");
_Static_assert(sizeof(((struct kw_holders *)0)->nodes) == 2 * KW_NODES_MAX,
	       "a place for each node");

/* The element of a key that may have one. */
static __noinline struct kw_hot *kw_hot(__be16 keyspace, __be64 keyhash)
{
	struct kw_hot_key key = { .keyhash = keyhash, .keyspace = keyspace };

	return bpf_map_lookup_elem(&hot_keys, &key);
}

/* That of a request's key: one that has its hash, but lies elsewhere, is another key. */
static __always_inline struct kw_hot *kw_hot_asked(__be16 keyspace, __be64 keyhash,
						   __be64 match_low)
{
	struct kw_hot *hot = kw_hot(keyspace, keyhash);

	return hot && hot->match_low == match_low ? hot : NULL;
}

static __always_inline bool kw_has_hot_bit(__u16 part)
{
	return hot_bits[part / 64] & 1ULL << part % 64;
}

/* Whether a key may be hot: two bits for parts of its hash spare most others a look at the map. */
static __always_inline bool kw_may_be_hot(__be64 keyhash)
{
	__u64 hash = bpf_be64_to_cpu(keyhash);

	return rule.hot && kw_has_hot_bit(hash) && kw_has_hot_bit(hash >> 16);
}

/* The holder of a version: one above the remainder by 255, of which 256 leaves one. */
static __always_inline __u8 kw_holder_tag(__u64 version)
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
	/* The address depends on `proven`, so that no processor reads the floor before that. */
	return *(const volatile __u64 *)((const void *)&hot->floor + kw_after(proven));
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

/* The id of a key's reader, or KW_NOBODY. */
static __always_inline __u32 kw_holder(const struct kw_hot *hot, __u32 reader)
{
	__u32 place = hot->first + reader, node;

	if (place >= holders.count)
		place -= holders.count;
	node = holders.nodes[place & (KW_NODES_MAX - 1)];
	return node < KW_NODES_MAX ? node : KW_NOBODY;
}

/* The node with an id, if it is in the node table. */
static __always_inline const struct kw_node *kw_known(__u32 id)
{
	const struct kw_node *node = bpf_map_lookup_elem(&nodes, &id);

	return node && node->shards ? node : NULL;
}

/* Whether a node is in the node table, or with KW_REACHED a way is known to it. */
static __always_inline bool kw_is_known(__u32 id, __u32 holder)
{
	return holder & KW_REACHED ? kw_node(bpf_htons(id)) != NULL : kw_known(id) != NULL;
}

/* The node's id of a reader that was picked. */
static __always_inline __u32 kw_picked(__u32 picked)
{
	return picked / KW_HOT_BANK_MAX;
}

/*
 * Of a reader by its place among them: that place, and its node's id times 64, if there is one, it
 * is not `taken`, a bit for each, holds the version with this holder, if there is one, and is in
 * the node table, or with KW_REACHED a way is known to it; else -1. A function of its own to the
 * verifier, like the next.
 */
__noinline int kw_fits(const struct kw_hot *hot, __u32 reader, __u64 taken, __u32 holder)
{
	__u32 node;

	if (!hot)
		return -1;
	reader &= KW_HOT_BANK_MAX - 1;
	if (reader >= hot->readers || taken >> reader & 1 ||
	    (holder & 0xff && hot->holders[reader] != (holder & 0xff)))
		return -1;
	node = kw_holder(hot, reader);
	if (!kw_is_known(node, holder))
		return -1;
	return node * KW_HOT_BANK_MAX + reader;
}

/* The last of the places that so many readers take up, filled up to a power of two. */
static __always_inline __u32 kw_last_place(__u32 readers)
{
	__u32 last = readers - 1;

	last |= last >> 1;
	last |= last >> 2;
	return (last | last >> 4) & (KW_HOT_BANK_MAX - 1);
}

/*
 * Of a key's readers that fit, so many from one at random on, by steps that are drawn, too: the one
 * of them that has the least to do, as above. Odd steps come to each place of a power of two. If
 * they were neighbours, those that have much to do would stay in each other's company.
 *
 * How many is an argument, of which the verifier knows nothing: the turns of the loop look alike to
 * it then, and it goes through each but once or twice.
 */
__noinline int kw_pick(const struct kw_hot *hot, __u64 taken, __u32 holder, struct kw_own *own,
		       __u32 of)
{
	__u64 least = ~0ULL, fit = 0, enough, load, draw;
	__u32 last, place, step, i;
	int found = -1, next;

	if (!hot || !own)
		return -1;
	last = kw_last_place(hot->readers);
	enough = kw_fastest() * of;
	draw = kw_draw(own);
	place = draw >> 16;
	step = draw >> 32 | 1;
	for (i = 0; i < KW_HOT_BANK_MAX && i <= last; i++, place += step) {
		next = kw_fits(hot, place & last, taken, holder);
		if (next < 0)
			continue;
		if (rule.hot == KW_CHOOSE_AT_RANDOM)
			return next;
		load = kw_busy(own, kw_picked(next));
		if (load < least) {
			found = next;
			least = load;
		}
		fit += kw_counts(kw_picked(next));
		if (fit >= enough)
			break;
	}
	return found;
}

/*
 * The id of a reader that holds the version with this holder, as above, or KW_NOBODY: of the first
 * that fit among a few at random the one that has the least to do.
 */
__noinline int kw_choose_few(const struct kw_hot *hot, __u32 holder, struct kw_own *own)
{
	__u32 found = KW_NOBODY, readers, reader, node, i, j;
	__u64 least = ~0ULL, fit = 0, enough, load, seen = 0, draw;

	if (!hot || !own)
		return KW_NOBODY;
	readers = hot->readers;
	enough = kw_fastest() * KW_OF_READS;
	draw = kw_draw(own);
	for (i = 0; i < KW_SAMPLES_MAX && i < readers; i++) {
		reader = (draw & 0xffff) * readers >> 16;
		draw >>= 16;
		for (j = 1; j < KW_SAMPLES_MAX && seen >> (reader & 63) & 1; j++)
			reader = reader + 1 < readers ? reader + 1 : 0;
		seen |= 1ULL << (reader & 63);
		if (hot->holders[reader & (KW_HOT_BANK_MAX - 1)] != (holder & 0xff))
			continue;
		node = kw_holder(hot, reader);
		if (!kw_is_known(node, holder))
			continue;
		if (rule.hot == KW_CHOOSE_AT_RANDOM)
			return node;
		load = kw_busy(own, node);
		if (load < least) {
			found = node;
			least = load;
		}
		fit += kw_counts(node);
		if (fit >= enough)
			break;
	}
	return found;
}

/* The id of a reader to ask for a version, or KW_NOBODY. `reached`: KW_REACHED, or 0. */
static __always_inline __u32 kw_choose(const struct kw_hot *hot, __u64 version, __u32 reached,
				       struct kw_own *own)
{
	int picked;

	if (!hot->replicas)
		return kw_choose_few(hot, kw_holder_tag(version) | reached, own);
	/* On a delegation a write is held by few at first, and nobody at home can help out. */
	picked = kw_pick(hot, 0, kw_holder_tag(version) | reached, own, KW_OF_READS);
	return picked < 0 ? KW_NOBODY : kw_picked(picked);
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

/* Notes what a node holds: the holder of a version, or 0. Nothing if it is no reader of the key. */
static __always_inline void kw_note_holder(struct kw_hot *hot, __u32 node, __u8 holder)
{
	__u32 place = holders.places[node & (KW_NODES_MAX - 1)], reader;

	if (place >= holders.count)
		return;
	reader = place >= hot->first ? place - hot->first : place + holders.count - hot->first;
	if (reader >= hot->readers)
		return;
	reader &= KW_HOT_BANK_MAX - 1;
	if (hot->holders[reader] != holder)
		hot->holders[reader] = holder;
}

#endif /* KEYWAY_HOT_H */
