/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * One request for many nodes: MGET by endpoint, RANGE by partition. In tc, where a packet can be
 * cloned as often as it has to be, and each clone leaves through whichever port its node is behind.
 *
 * First everything is planned, and only then counted and sent: if the way to one of the nodes is
 * not known, the whole request is left to the kernel, untouched.
 */
#ifndef KEYWAY_MANY_H
#define KEYWAY_MANY_H

#include <linux/pkt_cls.h>
#include "count.h"
#include "hot.h"
#include "rewrite.h"
#include "tables.h"
#ifdef KW_SEALED
#include "sealed.h"
#else
#include "bare.h"
#endif

#define KW_PARTS_MAX	32

_Static_assert(KW_MGET_KEYS_MAX <= KW_PARTS_MAX, "a part for each key");
_Static_assert(KW_RANGE_PIECES_MAX <= KW_PARTS_MAX, "a part for each piece");

/* Nothing is left to plan. */
#define KW_PLANNED	1

/* Match values, both ends inclusive, in the machine's order. */
struct kw_interval {
	__u64	first_hi, first_lo, last_hi, last_lo;
};

/* Where a read goes: the row's, as far as a part needs it. */
struct kw_place {
	struct kw_interval	in;
	__be32			partition, epoch;
	__be16			node, port;
	__u32			counter;
};

/* What is sent to one node. */
struct kw_part {
	struct kw_interval	in;			/* RANGE */
	__be32			partition, epoch;	/* RANGE */
	__u32			bitmap;			/* MGET */
	__u32			hot_bitmap;		/* MGET: those that are answered from copies. */
	__be16			node, port;
};

struct kw_plan {
	__u32			parts;
	__u32			reads;
	__u32			no_partition, no_node;
	__u32			ends_with_part;		/* RANGE: the last piece has a node. */
	__u32			cut;			/* RANGE: there is more after the last. */
	__u32			at_home;		/* MGET: no copies are asked for. */
	struct kw_interval	left;			/* RANGE: still to be planned. */
	__u32			counters[KW_PARTS_MAX];	/* Of each read. */
	__u32			hot;			/* MGET: keys that are hot, */
	__u32			spread;			/* those of them that go to copies, */
	__u32			floored;		/* those that are asked for a floor, */
	__u32			hot_counters[KW_MGET_KEYS_MAX];	/* their counters, */
	__u64			floors[KW_MGET_KEYS_MAX];	/* and their floors. */
	struct kw_part		part[KW_PARTS_MAX];
	struct kw_seal		seal;
};

/* No program of ours interrupts another on the same processor. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct kw_plan);
} plans SEC(".maps");

/*
 * Where reads of a match value go: 0, a reason to drop, or KW_TO_KERNEL. A function of its own to
 * the verifier, which would otherwise follow every search of every key.
 */
__noinline int kw_locate(__u32 keyspace, __u64 hi, __u64 lo, struct kw_place *to)
{
	struct kw_match at = { hi, lo };
	const struct kw_row *row;

	if (!to)
		return KW_DROP_NO_PARTITION;
	row = kw_find(keyspace, at);
	if (!row)
		return KW_DROP_NO_PARTITION;
	to->in.first_hi = row->first_hi;
	to->in.first_lo = row->first_lo;
	to->in.last_hi = row->last_hi;
	to->in.last_lo = row->last_lo;
	to->partition = row->partition;
	to->epoch = row->epoch;
	to->node = kw_tail(row);
	to->port = row->tail_port;
	to->counter = row->counter;
	if (to->port && !kw_node(to->node))
		return KW_TO_KERNEL;
	return 0;
}

static __always_inline void kw_plan_read(struct kw_plan *plan, __u32 counter)
{
	__u32 place = plan->reads++;

	if (place < KW_PARTS_MAX)
		plan->counters[place] = counter;
}

/*
 * Adds a key to the part of its node's port, or as a part of its own. `hot_bit` is its bit if it is
 * answered from a copy, else 0.
 */
__noinline int kw_join(struct kw_plan *plan, __u32 node_port, __u32 bit, __u32 hot_bit)
{
	__be16 node = node_port >> 16, port = node_port;
	__u32 place;

	if (!plan)
		return -1;
	for (place = 0; place < KW_PARTS_MAX && place < plan->parts; place++) {
		struct kw_part *part = &plan->part[place];

		if (part->node == node && part->port == port) {
			part->bitmap |= bit;
			part->hot_bitmap |= hot_bit;
			return 0;
		}
	}
	if (place >= KW_PARTS_MAX)
		return -1;
	plan->part[place].partition = plan->part[place].epoch = 0;
	plan->part[place].node = node;
	plan->part[place].port = port;
	plan->part[place].bitmap = bit;
	plan->part[place].hot_bitmap = hot_bit;
	plan->parts = place + 1;
	return 0;
}

/* Whether a hot key is read from a copy, which holds the floor. Then `to` says where from. */
static __always_inline bool kw_plan_copy(const struct kw_plan *plan, const struct kw_hot *hot,
					 __u64 floor, struct kw_place *to)
{
	__be16 port;
	int chosen;

	if (plan->at_home && !hot->replicas)
		return false;
	chosen = kw_choose(hot, floor, KW_REACHED, kw_own());
	if (!kw_shard(chosen, to->partition, &port))
		return false;
	to->node = bpf_htons(chosen);
	to->port = port;
	return true;
}

/* Plans the read of one key: 0, or KW_TO_KERNEL. */
__noinline int kw_plan_key(struct __sk_buff *skb, struct kw_plan *plan, __u32 keyspace, __u32 key)
{
	__u32 slot_at = KW_PACKET_AT + KW_HEADER_LEN + key * KW_MGET_SLOT_LEN;
	__u32 bit = 1U << (key & 31), hot_bit = 0, spread = 0, proven;
	struct kw_place place = {};
	struct kw_hot *hot;
	__be64 slot[KW_MGET_SLOT_LEN / 8];
	int fate;

	if (!plan || key >= KW_MGET_KEYS_MAX || bpf_skb_load_bytes(skb, slot_at, slot, sizeof(slot)))
		return KW_TO_KERNEL;
	fate = kw_locate(keyspace, bpf_be64_to_cpu(slot[0]), bpf_be64_to_cpu(slot[1]), &place);
	if (fate && fate != KW_TO_KERNEL) {
		plan->no_partition++;
		return 0;
	}
	hot = kw_may_be_hot(slot[2]) ? kw_hot_asked(bpf_htons(keyspace), slot[2], slot[1]) : NULL;
	if (hot) {
		plan->hot |= bit;
		plan->hot_counters[key] = hot->counter;
		proven = kw_proven(hot);
		plan->floors[key] = kw_floor(hot, proven);
		if (proven && kw_plan_copy(plan, hot, plan->floors[key], &place))
			spread = bit;
		plan->spread |= spread;
		/* Its home is asked for the floor, too, if the key is delegated. */
		hot_bit = proven && hot->replicas ? bit : spread;
		plan->floored |= hot_bit;
	}
	if (fate == KW_TO_KERNEL && !spread)
		return KW_TO_KERNEL;
	kw_plan_read(plan, place.counter);
	if (place.port)
		return kw_join(plan, (__u32)place.node << 16 | place.port, bit, hot_bit);
	plan->no_node++;
	return 0;
}

static __always_inline int kw_plan_mget(struct __sk_buff *skb, const struct kw_header *kw,
					struct kw_plan *plan)
{
	__u32 count = kw->count, keyspace = bpf_ntohs(kw->keyspace), asked;

	if (count < 1 || count > KW_MGET_KEYS_MAX ||
	    bpf_ntohs(kw->payload_len) < count * KW_MGET_SLOT_LEN)
		return KW_DROP_BAD_BODY;
	asked = bpf_ntohl(kw->bitmap) & (~0U >> (32 - count));
	if (!asked)
		return KW_DROP_BAD_BODY;
	if (!kw_is_keyspace(keyspace))
		return KW_DROP_NO_KEYSPACE;
	plan->at_home = kw->flags & KW_FLAG_AT_HOME;
	for (__u32 i = 0; i < KW_MGET_KEYS_MAX; i++)
		if (asked & 1U << i && kw_plan_key(skb, plan, keyspace, i))
			return KW_TO_KERNEL;
	return 0;
}

/*
 * Cuts a piece off what is left of the interval, at its end if `reverse`: 0, KW_TO_KERNEL, or
 * KW_PLANNED if nothing is left.
 */
__noinline int kw_plan_piece(struct kw_plan *plan, __u32 keyspace, bool reverse)
{
	struct kw_interval *left;
	struct kw_place place = {};
	struct kw_part *part;
	__u32 number;
	int fate;

	if (!plan)
		return KW_TO_KERNEL;
	left = &plan->left;
	fate = kw_locate(keyspace, reverse ? left->last_hi : left->first_hi,
			 reverse ? left->last_lo : left->first_lo, &place);
	if (fate == KW_TO_KERNEL)
		return KW_TO_KERNEL;
	if (fate) {
		plan->no_partition++;
		return KW_PLANNED;
	}
	/* What of the interval is inside the partition. */
	if (kw_is_before(place.in.first_hi, place.in.first_lo, left->first_hi, left->first_lo)) {
		place.in.first_hi = left->first_hi;
		place.in.first_lo = left->first_lo;
	}
	if (kw_is_before(left->last_hi, left->last_lo, place.in.last_hi, place.in.last_lo)) {
		place.in.last_hi = left->last_hi;
		place.in.last_lo = left->last_lo;
	}
	kw_plan_read(plan, place.counter);
	number = plan->parts;
	if (!place.port) {
		plan->no_node++;
	} else if (number < KW_PARTS_MAX) {
		part = &plan->part[number];
		part->in = place.in;
		part->partition = place.partition;
		part->epoch = place.epoch;
		part->node = place.node;
		part->port = place.port;
		part->bitmap = part->hot_bitmap = 0;
		plan->parts = number + 1;
	}
	plan->ends_with_part = place.port != 0;
	/* What is left begins, or ends, beside the piece. */
	if (reverse) {
		if (place.in.first_hi == left->first_hi && place.in.first_lo == left->first_lo)
			return KW_PLANNED;
		left->last_lo = place.in.first_lo - 1;
		left->last_hi = place.in.first_hi - !place.in.first_lo;
	} else {
		if (place.in.last_hi == left->last_hi && place.in.last_lo == left->last_lo)
			return KW_PLANNED;
		left->first_lo = place.in.last_lo + 1;
		left->first_hi = place.in.last_hi + !left->first_lo;
	}
	return 0;
}

/* Algorithm 1 of TurboKV, from either end. */
static __always_inline int kw_plan_range(const struct kw_header *kw, struct kw_plan *plan)
{
	const __u8 *match_end = (const __u8 *)kw + KW_MATCH_END_AT;
	struct kw_interval *whole = &plan->left;
	__u32 keyspace = bpf_ntohs(kw->keyspace), pieces_max = kw->count;
	bool reverse = kw->flags & KW_FLAG_REVERSE;
	int fate;

	whole->first_hi = bpf_be64_to_cpu(KW_U64(&kw->match_hi));
	whole->first_lo = bpf_be64_to_cpu(KW_U64(&kw->match_lo));
	whole->last_hi = bpf_be64_to_cpu(KW_U64(match_end));
	whole->last_lo = bpf_be64_to_cpu(KW_U64(match_end + 8));
	if (pieces_max > KW_RANGE_PIECES_MAX)
		pieces_max = KW_RANGE_PIECES_MAX;
	if (!pieces_max ||
	    kw_is_before(whole->last_hi, whole->last_lo, whole->first_hi, whole->first_lo))
		return KW_DROP_BAD_BODY;
	if (!kw_is_keyspace(keyspace))
		return KW_DROP_NO_KEYSPACE;
	for (__u32 i = 0; i < KW_RANGE_PIECES_MAX && i < pieces_max; i++) {
		fate = kw_plan_piece(plan, keyspace, reverse);
		if (fate == KW_TO_KERNEL)
			return KW_TO_KERNEL;
		if (fate)
			return 0;
	}
	plan->cut = plan->ends_with_part;
	return 0;
}

static __always_inline void kw_stamp_part(struct kw_header *kw, const struct kw_part *part,
					  bool cut)
{
	kw_stamp_partition(kw, part->partition, part->epoch);
	kw_stamp_chain_of_one(kw, part->node);
	if (kw->op == KW_OP_MGET) {
		kw->bitmap = bpf_htonl(part->bitmap);
		KW_U32((void *)kw + KW_HOT_BITMAP_AT) = bpf_htonl(part->hot_bitmap);
		return;
	}
	KW_U64(&kw->match_hi) = bpf_cpu_to_be64(part->in.first_hi);
	KW_U64(&kw->match_lo) = bpf_cpu_to_be64(part->in.first_lo);
	KW_U64((__u8 *)kw + KW_MATCH_END_AT) = bpf_cpu_to_be64(part->in.last_hi);
	KW_U64((__u8 *)kw + KW_MATCH_END_AT + 8) = bpf_cpu_to_be64(part->in.last_lo);
	if (cut)
		kw->hop_flags = KW_HOP_FLAG_CUT;
}

/*
 * Puts floors in the place of the match values of the keys that are asked for them: 0 if that could
 * be done. The slots are the same in all parts, but each key is in one of them alone.
 */
__noinline int kw_write_floors(struct __sk_buff *skb, const struct kw_plan *plan)
{
	if (!plan)
		return -1;
	for (__u32 i = 0; i < KW_MGET_KEYS_MAX; i++) {
		__be64 floor[2] = { 0, bpf_cpu_to_be64(plan->floors[i]) };
		__u32 slot_at = KW_PACKET_AT + KW_HEADER_LEN + i * KW_MGET_SLOT_LEN;

		if (plan->floored & 1U << i && bpf_skb_store_bytes(skb, slot_at, floor, sizeof(floor), 0))
			return -1;
	}
	return 0;
}

/* Sends part `number` of a planned request: a clone, but the packet itself for the last one. */
__noinline int kw_send_part(struct __sk_buff *skb, struct kw_plan *plan, __u32 number)
{
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	const struct kw_node *node;
	const struct kw_part *part;
	struct kw_own *own;
	struct kw_packet p;
	bool last;

	if (!plan || number >= KW_PARTS_MAX || data + KW_PACKET_AT + KW_HEADER_LEN > end)
		return TC_ACT_SHOT;
	part = &plan->part[number];
	last = number + 1 == plan->parts;
	node = kw_node(part->node);
	if (!node)
		return TC_ACT_SHOT; /* The way was lost since it was planned. */
	p = kw_packet_at(data);
	kw_stamp_part(p.kw, part, last && plan->cut);
	kw_address(&p, KW_U32(&node->addr[12]), part->port);
	kw_frame(p.eth, node->dmac);
	kw_seal_part(&p, &plan->seal);
	own = kw_own();
	if (own) {
		own->totals.parts++;
		kw_sent(own, part->node);
	}
	if (last)
		return bpf_redirect(node->ifindex, 0);
	bpf_clone_redirect(skb, node->ifindex, 0);
	return TC_ACT_SHOT;
}

static __always_inline int kw_plan(struct __sk_buff *skb, const struct kw_packet *p,
				   struct kw_own *own, struct kw_plan *plan)
{
	int reason = kw_admit(p, own);

	if (reason)
		return reason;
	if (p->kw->op == KW_OP_MGET)
		return kw_plan_mget(skb, p->kw, plan);
	return kw_plan_range(p->kw, plan);
}

__noinline int kw_count_plan(const struct kw_plan *plan)
{
	struct kw_own *own = kw_own();

	if (!plan || !own)
		return 0;
	for (__u32 i = 0; i < KW_PARTS_MAX && i < plan->reads; i++)
		kw_count_read(plan->counters[i]);
	for (__u32 i = 0; plan->hot && i < KW_MGET_KEYS_MAX; i++)
		if (plan->hot & 1U << i) {
			kw_count_hot_read(plan->hot_counters[i], plan->spread >> i & 1);
			own->totals.hot_keys[plan->spread >> i & 1]++;
		}
	own->totals.dropped[KW_DROP_NO_PARTITION] += plan->no_partition;
	own->totals.dropped[KW_DROP_NO_NODE] += plan->no_node;
	return 0;
}

static __always_inline int kw_many(struct __sk_buff *skb)
{
	void *data, *end;
	struct kw_packet p;
	struct kw_plan *plan;
	struct kw_own *own;
	__u32 zero = 0;
	int fate;

	if (skb->len < KW_PACKET_AT + KW_HEADER_LEN || skb->protocol != bpf_htons(ETH_P_IP))
		return TC_ACT_OK;
	if (skb->data_end - skb->data < KW_PACKET_AT + KW_HEADER_LEN &&
	    bpf_skb_pull_data(skb, KW_PACKET_AT + KW_HEADER_LEN))
		return TC_ACT_OK;
	data = (void *)(long)skb->data;
	end = (void *)(long)skb->data_end;
	if (!kw_is_ours(data, end, skb->len, &p))
		return TC_ACT_OK;
	if (!kw_open_many(skb, &p, &end, &fate))
		return fate;
	fate = kw_check(&p, end);
	if (fate)
		return kw_unsound(fate);
	if (p.kw->op != KW_OP_MGET && p.kw->op != KW_OP_RANGE)
		return TC_ACT_OK;
	plan = bpf_map_lookup_elem(&plans, &zero);
	own = kw_own();
	if (!plan || !own)
		return TC_ACT_OK;
	plan->parts = plan->reads = plan->no_partition = plan->no_node = 0;
	plan->ends_with_part = plan->cut = plan->hot = plan->spread = plan->floored = 0;
	fate = kw_plan(skb, &p, own, plan);
	if (fate == KW_TO_KERNEL)
		return TC_ACT_OK;
	own->totals.others[p.kw->op]++;
	if (fate) {
		own->totals.dropped[fate & 0xff]++;
		return TC_ACT_SHOT;
	}
	kw_count_plan(plan);
	kw_stamp_request(&p);
	fate = TC_ACT_SHOT;
	if (plan->floored && kw_write_floors(skb, plan))
		return fate;
	if (kw_seal_parts(skb, &plan->seal))
		return fate;
	for (__u32 i = 0; i < KW_PARTS_MAX && i < plan->parts; i++)
		fate = kw_send_part(skb, plan, i);
	return fate;
}

#endif /* KEYWAY_MANY_H */
