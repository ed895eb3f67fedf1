/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Which keys caches hold: rules C22 to C25 of spec/protocol.md, as crates/switch has it in
 * `cache_rules`, on the same memory.
 *
 * A rule is the upper 48 bits of a hash, and below them one more than the id of its cache. It lies
 * in one of two buckets, and may be written while it is read: a rule is one word, and a hint.
 */
#ifndef KEYWAY_CACHED_H
#define KEYWAY_CACHED_H

#include "tables.h"

/* What of a rule says which cache it is. */
#define KW_CACHE_BITS	0xffffULL

static __always_inline __u64 kw_cache_hash(__u16 keyspace, __u64 keyhash)
{
	return (keyhash ^ keyspace) * 0x9e3779b97f4a7c15ULL;
}

/*
 * Whether a key may have a rule: a bit of its keyspace and two of its hash, in one word, spare
 * nearly all others the look into the table, which no processor has close by. The upper part of the
 * hash says which word and which bits; the compiler makes shifts of it.
 */
static __always_inline bool kw_may_be_cached(__u16 keyspace, __be64 keyhash)
{
	__u64 marks, bits;

	if (!(cached.keyspaces[keyspace / 64] & 1ULL << keyspace % 64))
		return false;
	marks = kw_cache_hash(keyspace, bpf_be64_to_cpu(keyhash));
	marks /= (1ULL << 52) / KW_CACHE_FILTER_WORDS;
	bits = 1ULL << marks / 64 % 64 | 1ULL << marks % 64;
	return (cached.filter[marks / (64 * 64)] & bits) == bits;
}

/* One more than the number of the shard whose rule for this hash is in a bucket, or 0. */
static __always_inline __u32 kw_cache_in(__u32 bucket, __u64 hash)
{
	const volatile __u64 *rules = cached.buckets[bucket & (KW_CACHE_RULE_BUCKETS - 1)];

#pragma clang loop unroll(full)
	for (int i = 0; i < KW_CACHE_RULE_BUCKET_LEN; i++) {
		__u64 differs = rules[i] ^ (hash & ~KW_CACHE_BITS);

		/* In nothing but the cache, and there is one. */
		if (differs - 1 < KW_CACHE_BITS)
			return differs;
	}
	return 0;
}

/*
 * The cache that a key's reads go to at a tick, if that is heard and in the tables, and the port of
 * the shard that has told so.
 */
static __always_inline const struct kw_node *kw_cache_of(__u16 keyspace, __u64 keyhash, __u64 tick,
							 __u16 *port)
{
	__u64 hash = kw_cache_hash(keyspace, keyhash);
	const struct kw_node *node;
	__u32 first, cache, shard;

	hash ^= hash >> 32;
	first = hash;
	cache = kw_cache_in(first, hash);
	if (!cache)
		cache = kw_cache_in(first ^ (hash >> 40 | 1), hash);
	if (!cache)
		return NULL;
	cache--;
	shard = cache / KW_CACHES_MAX;
	cache %= KW_CACHES_MAX;
	if (*(volatile __u64 *)&cached.until[cache] <= tick)
		return NULL;
	node = bpf_map_lookup_elem(&caches, &cache);
	if (!node || shard >= node->shards)
		return NULL;
	*port = bpf_htons(bpf_ntohs(node->port) + shard);
	return node;
}

#endif /* KEYWAY_CACHED_H */
