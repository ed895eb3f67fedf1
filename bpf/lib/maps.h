/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Maps of the switch programs. The loader writes the first group, the programs the second.
 */
#ifndef KEYWAY_MAPS_H
#define KEYWAY_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <linux/bpf.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <layout.h>

/* Known when the programs are verified, so that comparing with it costs one instruction. */
const volatile struct kw_service service SEC(".rodata.service") __attribute__((aligned(8)));

/* Stored word by word by the program `govern`, so that nobody reads half a lease. */
struct kw_rule rule SEC(".data.rule");

/*
 * The partition table of one keyspace, in elements as long as a row: kw_space, then kw_bucket
 * sixteen to an element, then kw_row. All in one value, since each look into a map takes time.
 * Never changed once it is in `keyspaces`: a new revision is a new map.
 */
struct kw_space_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, KW_SPACE_ELEMENTS * sizeof(struct kw_row));
};

/* By keyspace id. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 65536);
	__type(key, __u32);
	__array(values, struct kw_space_map);
} keyspaces SEC(".maps");

struct kw_large_space_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, KW_LARGE_SPACE_ELEMENTS * sizeof(struct kw_row));
};

/* By keyspace id: those that need more elements. Only looked for if the other has none. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 65536);
	__type(key, __u32);
	__array(values, struct kw_large_space_map);
} large_keyspaces SEC(".maps");

/* By node id. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, KW_NODES_MAX);
	__type(key, __u32);
	__type(value, struct kw_node);
} nodes SEC(".maps");

/* Node ids in the order of the node table, which DESCRIBE counts through. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, KW_NODES_MAX);
	__type(key, __u32);
	__type(value, __u32);
} node_order SEC(".maps");

/* By cache id. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, KW_CACHES_MAX);
	__type(key, __u32);
	__type(value, struct kw_node);
} caches SEC(".maps");

/* Every port of every node and cache. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct kw_source);
	__type(value, struct kw_sender);
} senders SEC(".maps");

/*
 * One bit for each UDP port that a node or cache has: most requests need not be looked up in
 * `senders`. Not in a map of many values, since each look into one takes time.
 */
__u64 sender_ports[1024] SEC(".data.senders");

/* The interfaces that the switch is attached to, by themselves. */
struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP_HASH);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, __u32);
} ports SEC(".maps");

/* How a client is reached, as the kernel said lately. */
struct kw_client {
	struct kw_way	way;
	__u64		tick;	/* In which it said so. */
};

/* By IPv4 address. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, __be32);
	__type(value, struct kw_client);
} clients SEC(".maps");

/* What is predicted of a node's queue: see queue.h. */
struct kw_queue {
	__u64	waiting;	/* In KW_REQUEST. */
	__u64	sent;		/* What of that the other processors have not been told. */
	__u64	tick;		/* For which it was predicted. */
};

/* What each processor has for itself, in one value because each look into a map takes time. */
struct kw_own {
	struct kw_totals	totals;		/* First: that is what the loader reads. */
	__u64			leased_until;	/* As it was when the clock was last asked. */
	__u64			tick;		/* In which the clock was last asked. */
	__u64			random;		/* The last number drawn; 0: none was. */
	__u64			fence;		/* Of no use but to be written. */
	struct kw_queue		queues[KW_NODES_MAX];	/* By node id. */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct kw_own);
} own SEC(".maps");

struct kw_load_page {
	struct kw_load	of[KW_LOADS_PER_PAGE];
};

/* By the index that the rows name, page by page. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, KW_PARTITIONS_MAX / KW_LOADS_PER_PAGE);
	__type(key, __u32);
	__type(value, struct kw_load_page);
} loads SEC(".maps");

/* By node id. Not in a map of many values, since each look into one takes time. */
struct kw_report reports[KW_NODES_MAX] SEC(".data.reports");

/*
 * The most that any of them has said it serves in a second, in the present bank and in the one
 * before: see queue.h. Apart, since it is seldom written.
 */
struct {
	__u32	bank;
	__u32	now;
	__u32	before;
} fastest SEC(".data.fastest");

/* When each node has done what all processors have sent to it: see queue.h. By node id. */
__u64 backlogs[KW_NODES_MAX] SEC(".data.backlogs");

/* The values of `rule.hot`: no key is hot, or how readers are chosen. */
enum kw_choice {
	KW_CHOOSE_NOBODY	= 0,
	KW_CHOOSE_AT_RANDOM	= 1,
	KW_CHOOSE_REPORTED	= 2,
	KW_CHOOSE_PREDICTED	= 3,
};

/* Made for each key that gets hot: most clusters have few. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, KW_HOT_KEYS_MAX);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct kw_hot_key);
	__type(value, struct kw_hot);
} hot_keys SEC(".maps");

/*
 * Each of them has a bit here for the last 16 bits of its keyhash, and one for those before: set
 * before it is in, gone after it is out.
 */
__u64 hot_bits[1024] SEC(".data.hot_bits");

/* Who may hold copies. */
struct kw_holders holders SEC(".data.holders");

/* Those of them that are under delegations: what is known of these. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, KW_HOT_KEYS_MAX);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct kw_hot_key);
	__type(value, struct kw_delegation);
} delegations SEC(".maps");

/* Grants that are kept. A write that finds no room goes home with the word that it did. */
#define KW_GRANTS_MAX	(1 << 18)

/* Clients that are remembered. */
#define KW_GRANTEES_MAX	(1 << 16)
#define KW_ENDED_MAX	(1 << 18)

/* What requests were given under delegations. The loader takes out those that programs left. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, KW_GRANTS_MAX);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct kw_request);
	__type(value, struct kw_grant);
} grants SEC(".maps");

/* By client id. The loader takes out those that were silent. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, KW_GRANTEES_MAX);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __be64);
	__type(value, struct kw_grantee);
} grantees SEC(".maps");

/*
 * Clients that have said goodbye, with the pass in which the loader took them out of `grantees`.
 * It alone changes this.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, KW_ENDED_MAX);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __be64);
	__type(value, __u64);
} ended SEC(".maps");

/*
 * How many clients are in `grantees` and `ended`: if none, nothing need be looked for. And the pass
 * in which one last found no room in `grantees`, and a grant in `grants`: until the next one there
 * is none.
 */
struct {
	__u64 clients;
	__u64 clients_full;
	__u64 grants_full;
} delegated SEC(".data.delegated");

struct kw_hot_load_page {
	struct kw_hot_load	of[KW_HOT_LOADS_PER_PAGE];
};

/* By the index that the elements of `hot_keys` name, page by page. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, KW_HOT_KEYS_MAX / KW_HOT_LOADS_PER_PAGE);
	__type(key, __u32);
	__type(value, struct kw_hot_load_page);
} hot_loads SEC(".maps");

/*
 * Which keys caches hold: see cached.h. The loader has it mapped and writes rules as it is told
 * them, with the code that a switch in user space has for its own.
 */
struct {
	__u64	buckets[KW_CACHE_RULE_BUCKETS][KW_CACHE_RULE_BUCKET_LEN];
	__u64	keyspaces[KW_KEYSPACE_WORDS];	/* A bit for each id: keys of it may have rules. */
	__u64	filter[KW_CACHE_FILTER_WORDS];	/* Two bits for each rule that is there: see cached.h. */
	__u64	until[KW_CACHES_MAX];		/* The tick from which rules of a cache count for nothing. */
} cached SEC(".data.cached");

struct kw_pause {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
};

/*
 * Of no use to programs: but whoever puts a map into one like it is kept waiting by the kernel
 * until no program runs any more that began before.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, __u32);
	__array(values, struct kw_pause);
} pauses SEC(".maps");

#endif /* KEYWAY_MAPS_H */
