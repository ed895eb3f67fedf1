/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * What a packet is matched against: the sender, the rules for all, the partition.
 */
#ifndef KEYWAY_TABLES_H
#define KEYWAY_TABLES_H

#include "parse.h"
#include "queue.h"

/* What comes of a packet: a reason to drop it (1 to 255), or one of these. */
enum kw_fate {
	KW_SEND		= 0,
	KW_TO_KERNEL	= -1,
};

/* Steps of a search among all partitions, and one to spare. */
#define KW_SEARCH_MAX	18

#define KW_ELEMENT_BUCKETS	(sizeof(struct kw_row) / sizeof(struct kw_bucket))

/*
 * For how long a processor that runs may see the same tick, in nanoseconds: no tick is longer than
 * 10 ms, and when the processor that counts them stands still another does so after five.
 */
#define KW_TICK_MAX	60000000

struct kw_match {
	__u64 hi, lo;	/* In the machine's order. */
};

static __always_inline bool kw_is_before(__u64 a_hi, __u64 a_lo, __u64 b_hi, __u64 b_lo)
{
	return a_hi < b_hi || (a_hi == b_hi && a_lo < b_lo);
}

/*
 * The row that holds a match value, in a table of so many elements. A bucket of the leading bits
 * brackets the search, so that with evenly spread partitions one or two rows are left to compare.
 */
static __always_inline const struct kw_row *kw_search(const struct kw_row *table, __u32 elements,
						      struct kw_match at)
{
	const struct kw_space *space = (const void *)table;
	const struct kw_bucket *buckets = (const void *)(table + 1);
	const struct kw_row *row;
	__u32 index, from, count;
	__u64 bucket;

	if (at.hi < space->first_hi)
		return NULL;
	bucket = (at.hi - space->first_hi) >> (space->shift & 63);
	if (bucket >= space->buckets)
		bucket = space->buckets - 1;
	if (bucket >= (elements - 1) * KW_ELEMENT_BUCKETS)
		return NULL;
	from = space->rows_at + buckets[bucket].row;
	count = buckets[bucket].more + 1;

	for (int i = 0; i < KW_SEARCH_MAX && count > 1; i++) {
		__u32 half = count >> 1;

		index = from + half;
		if (index >= elements)
			return NULL;
		row = &table[index];
		if (kw_is_before(at.hi, at.lo, row->first_hi, row->first_lo)) {
			count = half;
		} else {
			from = index;
			count -= half;
		}
	}
	if (from >= elements)
		return NULL;
	row = &table[from];
	if (kw_is_before(at.hi, at.lo, row->first_hi, row->first_lo) ||
	    kw_is_before(row->last_hi, row->last_lo, at.hi, at.lo))
		return NULL;
	return row;
}

/* The table that is all of a map. */
static __always_inline const struct kw_row *kw_table(void *space_map)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(space_map, &zero);
}

/* Apart, so that the compiler does not make one lookup of this one and the inlined one. */
static __noinline const struct kw_row *kw_search_large(__u32 keyspace, __u64 hi, __u64 lo)
{
	struct kw_match at = { hi, lo };
	void *map = bpf_map_lookup_elem(&large_keyspaces, &keyspace);
	const struct kw_row *table = map ? kw_table(map) : NULL;

	return table ? kw_search(table, KW_LARGE_SPACE_ELEMENTS, at) : NULL;
}

/* The row of a keyspace that holds a match value. */
static __always_inline const struct kw_row *kw_find(__u32 keyspace, struct kw_match at)
{
	void *map = bpf_map_lookup_elem(&keyspaces, &keyspace);
	const struct kw_row *table;

	if (!map)
		return kw_search_large(keyspace, at.hi, at.lo);
	table = kw_table(map);
	return table ? kw_search(table, KW_SPACE_ELEMENTS, at) : NULL;
}

static __always_inline bool kw_is_keyspace(__u32 id)
{
	return bpf_map_lookup_elem(&keyspaces, &id) || bpf_map_lookup_elem(&large_keyspaces, &id);
}

/* What is added to the id of a sender that is a cache. */
#define KW_CACHE	0x10000

/* The id of the node or cache that sent this, or -1. */
static __always_inline int kw_find_sender(const struct kw_packet *p)
{
	struct kw_source from;
	__u16 port = bpf_ntohs(p->udp->source);
	const struct kw_sender *sender;

	if (!(sender_ports[port / 64] & 1ULL << port % 64))
		return -1;
	__builtin_memset(&from, 0, sizeof(from));
	KW_U32(&from.addr[8]) = KW_MAPPED_MID;
	KW_U32(&from.addr[12]) = p->ip->saddr;
	from.port = p->udp->source;
	sender = bpf_map_lookup_elem(&senders, &from);
	return sender ? sender->id + sender->is_cache * KW_CACHE : -1;
}

/* The same, which is known of a packet that was opened. */
static __always_inline int kw_sender(const struct kw_packet *p)
{
#ifdef KW_SEALED
	return p->sender;
#else
	return kw_find_sender(p);
#endif
}

/*
 * Whether the lease has not ended. Asking the clock takes longer than all the rest of a packet, so
 * each processor asks once a tick, whether the lease will hold for as long as the tick may last.
 */
static __always_inline bool kw_is_leased(struct kw_own *own)
{
	__u64 until = *(volatile __u64 *)&rule.leased_until;
	__u64 tick = bpf_jiffies64(); /* Before the clock, so that the tick is not the longer. */

	if (own->tick == tick && own->leased_until == until)
		return true;
	if (bpf_ktime_get_boot_ns() + KW_TICK_MAX >= until)
		return false;
	own->tick = tick;
	own->leased_until = until;
	return true;
}

/* What holds for every request: 0, or the reason to drop it. */
static __always_inline int kw_admit(const struct kw_packet *p, struct kw_own *own)
{
	if (!rule.installed)
		return KW_DROP_NOT_SERVING;
	if (kw_sender(p) >= 0)
		return KW_DROP_REQUEST_FROM_NODE;
	if (!kw_is_leased(own))
		return KW_DROP_NO_LEASE;
	if (!rule.active)
		return KW_DROP_STANDBY;
	return 0;
}

/* The node with an id as it stands on the wire; NULL also if the kernel has to find the way. */
static __always_inline const struct kw_node *kw_node(__be16 id)
{
	__u32 index = bpf_ntohs(id);
	const struct kw_node *node = bpf_map_lookup_elem(&nodes, &index);

	return node && node->ifindex ? node : NULL;
}

#endif /* KEYWAY_TABLES_H */
