/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The switch in the kernel: sections 3.1 to 3.9 and 8 of spec/protocol.md.
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

/* Called by the loader: sets what holds for all packets, each word at once. */
SEC("syscall")
int govern(struct kw_rule *to)
{
	*(volatile __u64 *)&rule.leased_until = to->leased_until;
	/* In this order for all processors, which an exchange makes sure of. */
	__sync_lock_test_and_set(&rule.beginning, to->beginning);
	*(volatile __u64 *)&rule.moment = to->moment;
	*(volatile __u32 *)&rule.nodes = to->nodes;
	*(volatile __u32 *)&rule.tick = to->tick;
	*(volatile __u8 *)&rule.installed = to->installed;
	*(volatile __u8 *)&rule.active = to->active;
	*(volatile __u8 *)&rule.hot = to->hot;
	return 0;
}

/* Called by the loader: other readers for a hot key that stays. 0 if it is there. */
SEC("syscall")
int resettle(struct kw_hot_change *to)
{
	struct kw_hot_key key = { .keyhash = to->keyhash, .keyspace = to->keyspace };
	struct kw_hot *hot = bpf_map_lookup_elem(&hot_keys, &key);
	__u8 before[KW_HOT_READERS_MAX];

	if (!hot)
		return 1;
	/* Whoever reads half of this asks a node that may not hold the key, and says so. */
	*(volatile __u16 *)&hot->first = to->first;
	*(volatile __u16 *)&hot->readers = to->readers;
	__builtin_memcpy(before, hot->marks, sizeof(before));
#pragma clang loop unroll(full) /* The verifier wants constant offsets into `to`. */
	for (int i = 0; i < KW_HOT_READERS_MAX; i++) {
		__u8 from = to->from[i];

		hot->marks[i] = from < KW_HOT_READERS_MAX ? before[from] : 0;
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
	return kw_learn(kw, bpf_ntohs(kw->node)) ? XDP_DROP : XDP_PASS;
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

char LICENSE[] SEC("license") = "GPL";
