/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The switch in the kernel: sections 3.1 to 3.9, 8 and 9 of spec/protocol.md, and
 * rules C22 to C25 of section 12.
 *
 *	frame ─▶ keyway_one (XDP) ─┬─▶ redirected: replies, requests for one key
 *				   ├─▶ keyway_many (tc): MGET and RANGE, one clone for each part
 *				   └─▶ the kernel: whatever else, and what it must find the way for
 */
#include "lib/one.h"
#include "lib/many.h"

SEC("xdp")
int keyway_one(struct xdp_md *ctx)
{
	return kw_one(ctx);
}

SEC("tc")
int keyway_many(struct __sk_buff *skb)
{
	return kw_many(skb);
}

/* More than delegations can begin while an order comes. */
#define KW_GOVERN_TRIES	64

/* Called by the loader: sets what holds for all packets, each word at once. 0 if that was done. */
SEC("syscall")
int govern(struct kw_rule *to)
{
	*(volatile __u64 *)&rule.leased_until = to->leased_until;
	/* In this order for all processors, which an exchange makes sure of. */
	__sync_lock_test_and_set(&rule.beginning, to->beginning);
	__sync_lock_test_and_set(&rule.order, to->order);
	/* Delegations that begin raise it, too. */
	for (int i = 0; i < KW_GOVERN_TRIES; i++) {
		__u64 directory_clock = kw_directory_clock();

		if (directory_clock >= to->directory_clock ||
		    __sync_val_compare_and_swap(&rule.directory_clock, directory_clock,
						to->directory_clock) == directory_clock)
			break;
		if (i + 1 == KW_GOVERN_TRIES)
			return 1;
	}
	*(volatile __u64 *)&rule.pass = to->pass;
	*(volatile __u32 *)&rule.nodes = to->nodes;
	*(volatile __u32 *)&rule.tick = to->tick;
	*(volatile __u8 *)&rule.installed = to->installed;
	*(volatile __u8 *)&rule.active = to->active;
	*(volatile __u8 *)&rule.hot = to->hot;
	*(volatile __u8 *)&rule.delegates = to->delegates;
	return 0;
}

/* Called by the loader: other readers for a hot key that stays. 0 if it is there. */
SEC("syscall")
int resettle(struct kw_hot_change *to)
{
	struct kw_hot_key key = { .keyhash = to->keyhash, .keyspace = to->keyspace };
	struct kw_hot *hot = bpf_map_lookup_elem(&hot_keys, &key);
	__u8 before[KW_HOT_BANK_MAX];

	if (!hot)
		return 1;
	/* Whoever reads half of this asks a node that may not hold the key, and says so. */
	*(volatile __u16 *)&hot->first = to->first;
	*(volatile __u16 *)&hot->readers = to->readers;
	*(volatile __u8 *)&hot->replicas = to->replicas;
	*(volatile __u8 *)&hot->chosen = to->chosen;
	__builtin_memcpy(before, hot->holders, sizeof(before));
#pragma clang loop unroll(full) /* The verifier wants constant offsets into `to`. */
	for (int i = 0; i < KW_HOT_BANK_MAX; i++) {
		__u8 from = to->from[i];

		hot->holders[i] = from < KW_HOT_BANK_MAX ? before[from] : 0;
	}
	return 0;
}

/*
 * Called by the loader: takes note of the header of a reply, which stands for a frame, before its
 * socket sends that on. No syscall program, since the loader cannot wait for one of those to end.
 */
SEC("xdp")
int note(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	const struct kw_header *kw = data;

	if ((void *)(kw + 1) > end)
		return XDP_ABORTED;
	return kw_observe(kw, bpf_ntohs(kw->node)) ? XDP_DROP : XDP_PASS;
}

/* Called by the loader: begins to forget a client. 0 if it was heard in no later pass. */
SEC("syscall")
int silence(struct kw_silent *of)
{
	struct kw_grantee *grantee = kw_grantee(of->client);

	if (!grantee)
		return 1;
	return __sync_val_compare_and_swap(&grantee->heard, of->heard, 0) != of->heard;
}

/* Called by the loader: takes a client out that it has begun to forget. */
SEC("syscall")
int part(struct kw_silent *from)
{
	__be64 client = from->client;

	if (bpf_map_delete_elem(&grantees, &client))
		return 1;
	__sync_fetch_and_sub(&delegated.clients, 1);
	return 0;
}

/* Called by the loader: forgets a client that had ended. */
SEC("syscall")
int forget(struct kw_silent *of)
{
	__be64 client = of->client;

	if (bpf_map_delete_elem(&ended, &client))
		return 1;
	__sync_fetch_and_sub(&delegated.clients, 1);
	return 0;
}

/* Called by the loader: a cache was heard. 0 if its rules count from now on. */
SEC("syscall")
int heard(struct kw_heard *of)
{
	__u32 cache = of->cache;

	if (cache >= KW_CACHES_MAX)
		return 1;
	*(volatile __u64 *)&cached.until[cache] = bpf_jiffies64() + of->ticks;
	return 0;
}

/*
 * Called by the loader: gives the header of a write that may be delegated, which stands for a
 * frame, what its socket sends it on with. XDP_TX: stamped for its delegation. XDP_PASS: it goes
 * home, stamped with the version in `object_version`. XDP_DROP: dropped, for the reason in `code`.
 */
SEC("xdp")
int delegate(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct kw_header *kw = data;
	struct kw_own *own = kw_own();
	struct kw_write w = {};
	struct kw_hot *hot = NULL;
	int fate;

	if ((void *)(kw + 1) > end || !own)
		return XDP_ABORTED;
	kw_begin_write(&w, kw, own);
	if (kw_may_be_hot(KW_U64(&kw->keyhash)))
		hot = kw_hot_asked(kw->keyspace, KW_U64(&kw->keyhash), KW_U64(&kw->match_lo));
	fate = kw_delegate(hot, own, &w);
	if (fate) {
		kw->code = fate;
		return XDP_DROP;
	}
	KW_U64(&kw->object_version) = w.grant.version;
	kw->hop_flags = w.crowded ? KW_HOP_FLAG_CROWDED : 0;
	own->totals.crowded += w.crowded;
	if (!w.grant.chain_len)
		return XDP_PASS;
	kw_stamp_delegation(kw, &w, own);
	return XDP_TX;
}

/*
 * Called by the loader: gives the header of a read of a key that may be hot, which stands for a
 * frame, what its socket stamps it with. XDP_PASS: the key is not hot. XDP_TX: `generation`, the
 * floor in `object_version`, and a chain of the reader, if it is to go to one.
 */
SEC("xdp")
int spread(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct kw_header *kw = data;
	struct kw_own *own = kw_own();
	__u32 proven, chosen = KW_NOBODY;
	const struct kw_hot *hot;
	__u64 floor;

	if ((void *)(kw + 1) > end || !own)
		return XDP_ABORTED;
	if (!kw_may_be_hot(KW_U64(&kw->keyhash)))
		return XDP_PASS;
	hot = kw_hot_asked(kw->keyspace, KW_U64(&kw->keyhash), KW_U64(&kw->match_lo));
	if (!hot)
		return XDP_PASS;
	proven = kw_proven(hot);
	floor = kw_floor(hot, proven);
	if (proven && (hot->replicas || !(kw->flags & KW_FLAG_AT_HOME)))
		chosen = kw_choose(hot, floor, 0, own);
	kw->chain_len = chosen < KW_NODES_MAX;
	*(__be16 *)(void *)kw->chain = bpf_htons(chosen);
	if (kw->chain_len)
		kw_sent(own, bpf_htons(chosen));
	else if (!proven || !hot->replicas)
		floor = KW_AT_TAIL;
	kw_count_hot_read(hot->counter, kw->chain_len);
	KW_U64(&kw->object_version) = bpf_cpu_to_be64(floor);
	KW_U64((void *)kw + KW_GENERATION_AT) = hot->generation;
	return XDP_TX;
}

/*
 * Called by the loader: how the kernel reaches the IPv4 address of a kw_way, which
 * stands in for a frame.
 */
SEC("xdp")
int resolve(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct kw_way *way = data;

	if ((void *)(way + 1) > end || !kw_is_mapped(way->addr))
		return XDP_ABORTED;
	return kw_route(ctx, KW_U32(&way->addr[12]), way) ? XDP_PASS : XDP_DROP;
}

#ifdef KW_SEALED
/* Called by the loader, which has written keys beside the active ones: from now on they are. */
SEC("syscall")
int turn(void *unused)
{
	__u64 next = !(*(const volatile __u64 *)&keys.active & 1);

	(void)unused;
	for (int i = 0; i < KW_PERIODS; i++) {
		struct kw_period_keys *of = &keys.of[next][i];

		kw_edge_begin((void *)of->begun, (const void *)of->members,
			      kw_head(KW_ENVELOPE_KIND_MEMBER, of->byte, 0), 0);
	}
	/* An exchange: all processors see what was written before. */
	__sync_lock_test_and_set(&keys.active, next);
	return 0;
}
#endif

char LICENSE[] SEC("license") = "GPL";
