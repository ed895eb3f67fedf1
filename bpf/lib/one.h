/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * One packet in, one packet out: replies, and requests for one key. All in XDP.
 *
 * Whatever has no known way (an address that the kernel has not resolved yet, or reaches through
 * an interface without this program) is left to the kernel untouched and uncounted: the switch's
 * own socket gets it, and the kernel finds the way for what that sends.
 */
#ifndef KEYWAY_ONE_H
#define KEYWAY_ONE_H

#include "cached.h"
#include "count.h"
#include "hot.h"
#include "observe.h"
#include "rewrite.h"
#include "tables.h"
#include "delegation.h"
#ifdef KW_SEALED
#include "sealed.h"
#else
#include "bare.h"
#endif

#ifndef AF_INET
#define AF_INET	2
#endif

/* For how long the kernel need not be asked again, in ticks of 1 to 10 ms. */
#define KW_ASK_AGAIN	100

/*
 * Asks the kernel how it would route from the service address to an IPv4 address: whether it knows.
 * That takes its time.
 */
static __always_inline bool kw_route(struct xdp_md *ctx, __be32 to, struct kw_way *way)
{
	struct bpf_fib_lookup fib = {
		.family = AF_INET,
		.l4_protocol = IPPROTO_UDP,
		.ifindex = ctx->ingress_ifindex,
		.ipv4_src = kw_service_addr(),
		.ipv4_dst = to,
	};

	if (bpf_fib_lookup(ctx, &fib, sizeof(fib), 0) != BPF_FIB_LKUP_RET_SUCCESS)
		return false;
	way->ifindex = fib.ifindex;
	__builtin_memcpy(way->dmac, fib.dmac, ETH_ALEN);
	__builtin_memcpy(way->smac, fib.smac, ETH_ALEN);
	return true;
}

/* Has the kernel say how a client is reached, and notes it, if it is through one of our ports. */
static __noinline const struct kw_client *kw_ask(struct xdp_md *ctx, __be32 to, __u64 tick)
{
	struct kw_client client = { .tick = tick };

	if (!kw_route(ctx, to, &client.way) ||
	    !bpf_map_lookup_elem(&ports, &client.way.ifindex)) {
		bpf_map_delete_elem(&clients, &to);
		return NULL;
	}
	bpf_map_update_elem(&clients, &to, &client, BPF_ANY);
	return bpf_map_lookup_elem(&clients, &to);
}

/* How an IPv4 address is reached, if that is known. */
static __always_inline const struct kw_client *kw_client(struct xdp_md *ctx, __be32 to)
{
	const struct kw_client *client = bpf_map_lookup_elem(&clients, &to);
	__u64 tick = bpf_jiffies64();

	if (client && tick - client->tick < KW_ASK_AGAIN)
		return client;
	return kw_ask(ctx, to, tick);
}

/* From a node or a cache to the client that it names. */
static __always_inline int kw_reply(struct xdp_md *ctx, const struct kw_packet *p,
				    struct kw_own *own, __u32 *ifindex)
{
	struct kw_header *kw = p->kw;
	const struct kw_client *client;
	int sender, reason;
	__be32 to;

	if (!kw_is_leased(own))
		return KW_DROP_NO_LEASE;
	if (rule.installed && !rule.active)
		return KW_DROP_STANDBY;
	sender = kw_sender(p);
	if (sender < 0 || (sender >= KW_CACHE && kw->op != KW_OP_GET_REPLY))
		return KW_DROP_REPLY_NOT_FROM_NODE;
	if (!kw->reply_port)
		return KW_DROP_BAD_REPLY_ADDRESS;
	if (bpf_ntohs(kw->node) != (sender & (KW_CACHE - 1)))
		return KW_DROP_REPLY_NOT_FROM_NODE;
	to = KW_U32(kw->reply_addr + 12);
	client = kw_is_mapped(kw->reply_addr) ? kw_client(ctx, to) : NULL;
	if (!client)
		return KW_TO_KERNEL;
	/* What a cache says, its lender has said to the nodes. */
	if (sender < KW_CACHE) {
		kw_answered(own, kw, sender);
		reason = kw_observe(kw, sender);
		if (reason)
			return reason;
	}
	if (kw->op < KW_OP_HOT_COPIED)
		KW_U64((void *)kw + KW_REPLY_DIRECTORY_CLOCK_AT) = bpf_cpu_to_be64(kw_directory_clock());
	kw_address(p, to, kw->reply_port);
	kw_frame(p->eth, client->way.dmac);
	*ifindex = client->way.ifindex;
	return KW_SEND;
}

static __always_inline int kw_send_to(const struct kw_packet *p, const struct kw_node *node,
				      __be16 port, __u32 *ifindex)
{
	kw_address(p, KW_U32(&node->addr[12]), port);
	kw_frame(p->eth, node->dmac);
	*ifindex = node->ifindex;
	return KW_SEND;
}

/*
 * What the head of a chain is to know of a write: the version that it was stamped with under a
 * delegation, or 0, the switch's clock, and whether another switch may have stamped it,
 * because it was first sent before the directory began.
 */
static __always_inline void kw_stamp_home(struct kw_header *kw, __be64 first_sent,
					  __u64 directory_clock, __be64 version)
{
	/* The address depends on the moment, so that the beginning is not read before that. */
	const void *beginning = (const void *)&rule.beginning + kw_after(directory_clock);

	KW_U64((void *)kw + KW_DIRECTORY_CLOCK_AT) = bpf_cpu_to_be64(directory_clock);
	KW_U64(&kw->object_version) = version;
	if (bpf_be64_to_cpu(first_sent) < *(const volatile __u64 *)beginning)
		kw->hop_flags = KW_HOP_FLAG_OLD;
}

/* How a request for one key is to be sent home. */
struct kw_homeward {
	bool	write;
	__u64	directory_clock;		/* Of a write: the switch's, before a grant was looked for. */
	__be64	version;	/* Of a write: what it was stamped with under a delegation, or 0. */
	bool	crowded;	/* Of a write: its key is delegated, and there is no room for a grant. */
};

/* A read to its tail, a write to its head with the chain it will walk. */
static __always_inline int kw_home(const struct kw_packet *p, struct kw_own *own,
				   const struct kw_row *row, struct kw_homeward way, __u32 *ifindex)
{
	const struct kw_node *node = NULL;
	bool write = way.write;
	__be16 id = write ? *(__be16 *)(void *)row->chain : kw_tail(row);
	__be16 port = write ? row->head_port : row->tail_port;
	__be64 first_sent;

	if (port) {
		node = kw_node(id);
		if (!node)
			return KW_TO_KERNEL;
	}
	if (write)
		kw_count_write(row->counter);
	else
		kw_count_read(row->counter);
	if (!node)
		return KW_DROP_NO_NODE;
	first_sent = KW_U64((void *)p->kw + KW_DIRECTORY_CLOCK_AT);
	kw_stamp_request(p);
	kw_stamp_partition(p->kw, row->partition, row->epoch);
	if (write) {
		kw_stamp_chain(p->kw, row);
		kw_stamp_home(p->kw, first_sent, way.directory_clock, way.version);
		if (way.crowded) {
			p->kw->hop_flags |= KW_HOP_FLAG_CROWDED;
			own->totals.crowded++;
		}
		kw_sent_along(own, row);
	} else {
		kw_stamp_chain_of_one(p->kw, id);
		kw_sent(own, id);
	}
	return kw_send_to(p, node, port, ifindex);
}

/*
 * A read of a key that may have a rule: to its cache, stamped for its tail, or home. Apart, so that
 * others do not pay for it.
 */
static __noinline int kw_cacheable_read(struct ethhdr *eth, struct kw_own *own,
					const struct kw_row *row, __u32 *ifindex)
{
	struct kw_packet p = kw_packet_at(eth);
	const struct kw_node *cache = NULL;
	struct kw_homeward way = {};
	__u16 port = 0;

	if (!(p.kw->flags & KW_FLAG_AT_HOME) && row->tail_port)
		cache = kw_cache_of(bpf_ntohs(p.kw->keyspace),
				    bpf_be64_to_cpu(KW_U64(&p.kw->keyhash)), own->tick, &port);
	if (!cache)
		return kw_home(&p, own, row, way, ifindex);
	if (!cache->ifindex)
		return KW_TO_KERNEL;
	kw_count_read(row->counter);
	own->totals.cached++;
	kw_stamp_request(&p);
	kw_stamp_partition(p.kw, row->partition, row->epoch);
	kw_stamp_chain_of_one(p.kw, kw_tail(row));
	return kw_send_to(&p, cache, port, ifindex);
}

/*
 * A read of a hot key: to a reader that holds what the proven floor asks for, or to its tail, which
 * also is asked for the floor if the key is delegated. A reader to which no way is known is passed
 * over.
 */
static __always_inline int kw_hot_read(const struct kw_packet *p, struct kw_own *own,
				       struct kw_hot *hot, const struct kw_row *row, __u32 *ifindex)
{
	struct kw_header *kw = p->kw;
	const struct kw_node *node = NULL;
	__u32 proven = kw_proven(hot);
	__u64 floor = kw_floor(hot, proven);
	__be16 port, id = kw_tail(row);
	bool delegates = hot->replicas, spread = false;
	int chosen;

	if (proven && (delegates || !(kw->flags & KW_FLAG_AT_HOME))) {
		chosen = kw_choose(hot, floor, KW_REACHED, own);
		node = kw_shard(chosen, row->partition, &port);
		if (node) {
			spread = true;
			id = bpf_htons(chosen);
		}
	}
	if (!spread && row->tail_port) {
		port = row->tail_port;
		node = kw_node(id);
		if (!node)
			return KW_TO_KERNEL;
	}
	kw_count_read(row->counter);
	kw_count_hot_read(hot->counter, spread);
	if (!node)
		return KW_DROP_NO_NODE;
	kw_stamp_request(p);
	kw_stamp_partition(kw, row->partition, row->epoch);
	kw_stamp_chain_of_one(kw, id);
	kw_stamp_hot(kw, spread || (delegates && proven) ? floor : KW_AT_TAIL, hot->generation);
	kw_sent(own, id);
	return kw_send_to(p, node, port, ifindex);
}

/*
 * A request for a key that may be hot. Apart, so that what it needs does not crowd the registers of
 * others.
 */
static __noinline int kw_hot_single(struct ethhdr *eth, struct kw_own *own,
				    const struct kw_row *row, __u32 *ifindex)
{
	struct kw_packet p = kw_packet_at(eth);
	struct kw_hot *hot = kw_hot_asked(p.kw->keyspace, KW_U64(&p.kw->keyhash),
					  KW_U64(&p.kw->match_lo));
	struct kw_homeward way = { .write = p.kw->op != KW_OP_GET };
	int fate;

	if (hot && !way.write)
		return kw_hot_read(&p, own, hot, row, ifindex);
	if (!way.write && kw_may_be_cached(bpf_ntohs(p.kw->keyspace), KW_U64(&p.kw->keyhash)))
		return kw_cacheable_read(eth, own, row, ifindex);
	if (way.write)
		way.directory_clock = kw_directory_clock();
	fate = kw_home(&p, own, row, way, ifindex);
	if (hot && fate != KW_TO_KERNEL)
		kw_count_hot_write(hot->counter);
	return fate;
}

/* A write that has a grant sets out under its delegation. */
static __always_inline int kw_depart(const struct kw_packet *p, struct kw_own *own,
				     const struct kw_row *row, const struct kw_write *w,
				     __u32 *ifindex)
{
	const struct kw_node *node = kw_first(&w->grant);
	__u16 port;

	if (node && !node->ifindex)
		return KW_TO_KERNEL;
	kw_count_write(row->counter);
	if (!node)
		return KW_DROP_NO_NODE;
	port = bpf_ntohs(node->port) + bpf_ntohl(row->partition) % node->shards;
	kw_stamp_request(p);
	kw_stamp_partition(p->kw, row->partition, row->epoch);
	kw_stamp_delegation(p->kw, w, own);
	return kw_send_to(p, node, bpf_htons(port), ifindex);
}

/* A PUT that may be delegated, while any key is or was. Apart, as those for hot keys are. */
static __noinline int kw_delegated_put(struct ethhdr *eth, struct kw_own *own,
				     const struct kw_row *row, __u32 *ifindex)
{
	struct kw_packet p = kw_packet_at(eth);
	struct kw_write w = { .must_reach = true };
	struct kw_hot *hot = NULL;
	int fate;

	kw_begin_write(&w, p.kw, own);
	if (kw_may_be_hot(KW_U64(&p.kw->keyhash)))
		hot = kw_hot_asked(p.kw->keyspace, KW_U64(&p.kw->keyhash),
				   KW_U64(&p.kw->match_lo));
	fate = kw_delegate(hot, own, &w);
	if (fate > 0) {
		kw_count_write(row->counter);
	} else if (!fate && w.grant.chain_len) {
		fate = kw_depart(&p, own, row, &w, ifindex);
	} else if (!fate) {
		struct kw_homeward way = { true, w.directory_clock, w.grant.version, w.crowded };

		fate = kw_home(&p, own, row, way, ifindex);
	}
	if (hot && fate != KW_TO_KERNEL)
		kw_count_hot_write(hot->counter);
	return fate;
}

/*
 * A request for one key. `may_be_delegated`: a write whose grant has to be looked for if there are
 * any.
 */
static __always_inline int kw_single(const struct kw_packet *p, struct kw_own *own,
				     struct kw_homeward way, bool may_be_delegated, __u32 *ifindex)
{
	struct kw_header *kw = p->kw;
	struct kw_match at = { bpf_be64_to_cpu(KW_U64(&kw->match_hi)),
			       bpf_be64_to_cpu(KW_U64(&kw->match_lo)) };
	const struct kw_row *row;
	__u32 keyspace = bpf_ntohs(kw->keyspace);
	int reason;

	/* Before the rest, which then need not wait for memory. */
	row = kw_find(keyspace, at);
	reason = kw_admit(p, own);
	if (reason)
		return reason;
	if (!row)
		return kw_is_keyspace(keyspace) ? KW_DROP_NO_PARTITION : KW_DROP_NO_KEYSPACE;
	if (way.write)
		way.directory_clock = kw_directory_clock();
	if (kw->op == KW_OP_GOODBYE && kw_delegates(way.directory_clock))
		kw_end(KW_U64(&kw->client));
	if (may_be_delegated && kw_delegates(way.directory_clock))
		return kw_delegated_put(p->eth, own, row, ifindex);
	if (kw_may_be_hot(KW_U64(&kw->keyhash)))
		return kw_hot_single(p->eth, own, row, ifindex);
	if (!way.write && kw_may_be_cached(keyspace, KW_U64(&kw->keyhash)))
		return kw_cacheable_read(p->eth, own, row, ifindex);
	return kw_home(p, own, row, way, ifindex);
}

/* Any node knows all keyspaces: the asker and its count choose one. */
static __always_inline int kw_describe(const struct kw_packet *p, struct kw_own *own,
				       __u32 *ifindex)
{
	struct kw_header *kw = p->kw;
	const struct kw_node *node;
	const __u32 *id;
	__u64 number;
	__u32 place;
	int reason;

	reason = kw_admit(p, own);
	if (reason)
		return reason;
	if (!rule.nodes)
		return KW_DROP_NO_NODE;
	number = bpf_be64_to_cpu(KW_U64(&kw->client)) + bpf_be64_to_cpu(KW_U64(&kw->seq));
	place = number % rule.nodes;
	id = bpf_map_lookup_elem(&node_order, &place);
	if (!id)
		return KW_DROP_NO_NODE;
	node = kw_node(bpf_htons(*id));
	if (!node)
		return KW_TO_KERNEL;
	kw_stamp_request(p);
	return kw_send_to(p, node, node->port, ifindex);
}

static __always_inline int kw_forward(struct xdp_md *ctx, const struct kw_packet *p,
				      struct kw_own *own, __u32 *ifindex)
{
	struct kw_homeward way = { .write = p->kw->op != KW_OP_GET };

	switch (p->kw->op) {
	case KW_OP_GET:
	case KW_OP_PUT:
	case KW_OP_DEL:
	case KW_OP_CAS:
	case KW_OP_INCR:
	case KW_OP_BATCH:
	case KW_OP_GOODBYE:
		return kw_single(p, own, way, kw_may_be_delegated(p, (void *)(long)ctx->data_end), ifindex);
	case KW_OP_DESCRIBE:
		return kw_describe(p, own, ifindex);
	case KW_OP_MGET:
	case KW_OP_RANGE:
		return KW_TO_KERNEL; /* On its way there it meets the tc program. */
	case KW_OP_CACHE_RULES:
		/* The sockets write rules. Nobody else tells a switch anything. */
		return kw_sender(p) >= KW_CACHE ? KW_TO_KERNEL : KW_DROP_BAD_OP;
	default:
		if (p->kw->op & 0x80)
			return kw_reply(ctx, p, own, ifindex);
		return KW_DROP_BAD_OP; /* Nodes send chain messages to each other. */
	}
}

static __always_inline int kw_one(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct kw_packet p;
	struct kw_own *own;
	__u32 ifindex = 0;
	int fate;
	__u8 op;

	if (!kw_is_ours(data, end, end - data, &p))
		return XDP_PASS;
	if (!kw_open(ctx, &p, end, &fate))
		return fate;
	own = kw_own();
	if (!own)
		return XDP_PASS;
	fate = kw_check(&p, end);
	if (fate) {
		own->totals.unparsed++;
		own->totals.dropped[fate & 0xff]++;
		return XDP_DROP;
	}
	op = p.kw->op;
	fate = kw_forward(ctx, &p, own, &ifindex);
	if (fate == KW_TO_KERNEL)
		return XDP_PASS;
	if (fate != KW_SEND) {
		own->totals.others[op]++;
		own->totals.dropped[fate & 0xff]++;
		return XDP_DROP;
	}
	kw_seal(&p);
	own->totals.forwarded[op]++;
	return bpf_redirect_map(&ports, ifindex, XDP_ABORTED);
}

#endif /* KEYWAY_ONE_H */
