/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The switch in the kernel: sections 3.1 to 3.9 of spec/protocol.md.
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
	*(volatile __u32 *)&rule.nodes = to->nodes;
	*(volatile __u8 *)&rule.installed = to->installed;
	*(volatile __u8 *)&rule.active = to->active;
	return 0;
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
