/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * What a switch does with envelopes before and after it deals with a packet: rules S11 to S19 of
 * spec/protocol.md. In XDP those of all packets but MGETs and RANGEs, which meet tc.
 */
#ifndef KEYWAY_SEALED_H
#define KEYWAY_SEALED_H

#include "envelope.h"
#include "rewrite.h"

/* Counts a packet that is dropped, or answered with a cookie. */
static __noinline void kw_refuse(__u32 why)
{
	__u32 zero = 0;
	struct kw_refusals *of = bpf_map_lookup_elem(&refusals, &zero);

	if (of && why < sizeof(of->of) / sizeof(of->of[0]))
		of->of[why]++;
}

/* Whether a datagram's parts are where they should be: 0, or why it is refused. */
static __always_inline int kw_split(const struct kw_packet *p, void *end)
{
	const struct kw_envelope *envelope = kw_envelope(p);
	const __be16 *magic = &envelope->magic;

	if (p->len < KW_EDGE_LEN || (void *)(p->kw + 1) > end ||
	    envelope->magic != bpf_htons(KW_ENVELOPE_MAGIC)) {
		if (p->len >= sizeof(*magic) && (void *)(magic + 1) <= end &&
		    *magic == bpf_htons(KW_MAGIC))
			return KW_ENVELOPE_REFUSAL_BARE;
		return KW_ENVELOPE_REFUSAL_MALFORMED;
	}
	/* A cookie has no packet. */
	if (envelope->kind < KW_ENVELOPE_KIND_REQUEST ||
	    envelope->kind > KW_ENVELOPE_KIND_MEMBER || !kw_is_op(p->kw->op))
		return KW_ENVELOPE_REFUSAL_MALFORMED;
	return 0;
}

/* Whether somebody may send this, and with which keys: 0, or why it is refused. */
static __always_inline int kw_may_come(struct kw_packet *p, const struct kw_period_keys **found)
{
	const struct kw_envelope *envelope = kw_envelope(p);
	bool is_of_ring;

	*found = kw_keys_named(envelope->period);
	if (!*found)
		return KW_ENVELOPE_REFUSAL_PERIOD;
	if (envelope->kind == KW_ENVELOPE_KIND_REPLY)
		return KW_ENVELOPE_REFUSAL_MALFORMED;
	/* Whoever is in the tables is a member. */
	p->sender = kw_find_sender(p);
	is_of_ring = p->sender >= 0 || kw_is_of_ring(p->ip->saddr, p->udp->source);
	if (is_of_ring != (envelope->kind == KW_ENVELOPE_KIND_MEMBER))
		return KW_ENVELOPE_REFUSAL_SENDER;
	if (!is_of_ring && (!kw_is_request(p->kw->op) || !KW_U64(&p->kw->client)))
		return KW_ENVELOPE_REFUSAL_MALFORMED;
	return 0;
}

/* Slots under the edge tag. */
static __always_inline __u32 kw_slots(const struct kw_header *kw)
{
	return kw->op == KW_OP_MGET ? kw->count : 0;
}

/* Whether the edge tag of a packet is right: in tc, which knows it by `skb`, with its slots. */
static __always_inline bool kw_is_edge(struct __sk_buff *skb, const struct kw_envelope *envelope,
				       const struct kw_sip *begun)
{
	const struct kw_header *kw = (const void *)(envelope + 1);
	__u32 slots;
	struct kw_sip s;

	if (!skb)
		return kw_edge(envelope, begun, KW_EDGE_LEN) == envelope->edge;
	slots = kw_slots(kw);
	s = *begun;
	if (slots && kw_edge_slots(skb, &s))
		return false;
	return kw_edge(envelope, &s, KW_EDGE_LEN + slots * KW_MGET_SLOT_LEN) == envelope->edge;
}

/*
 * A request of a client that is not known: 0, or why it is refused. It is known from then on if it
 * has shown that it receives.
 */
static __always_inline int kw_meet(struct __sk_buff *skb, struct ethhdr *eth,
				   const struct kw_period_keys *from, struct kw_peer *place)
{
	const struct kw_packet p = kw_packet_at(eth);
	const struct kw_envelope *envelope = kw_envelope(&p);
	__u64 at = kw_at(p.ip->saddr, p.udp->source), head = KW_U64(envelope);
	struct kw_peer client;
	struct kw_sip begun;

	kw_derive_peer(&client, from, kw_pass_of(p.kw), at,
		       kw_cookie(from, p.ip->saddr, p.udp->source));
	kw_edge_begin(&begun, client.key, head, client.cookie);
	if (kw_is_edge(skb, envelope, &begun)) {
		*place = client;
		return 0;
	}
	kw_edge_begin(&begun, client.key, head, 0);
	if (kw_is_edge(skb, envelope, &begun))
		return KW_ENVELOPE_REFUSAL_NO_COOKIE;
	return KW_ENVELOPE_REFUSAL_EDGE;
}

/* Apart, so that others do not pay for it. */
static __noinline int kw_meet_one(struct ethhdr *eth, const struct kw_period_keys *from,
				  struct kw_peer *place)
{
	return kw_meet(NULL, eth, from, place);
}

static __noinline int kw_meet_many(struct __sk_buff *skb, struct ethhdr *eth,
				   const struct kw_period_keys *from, struct kw_peer *place)
{
	return kw_meet(skb, eth, from, place);
}

/* Whether a client is who it says, and is there: 0, or why it is refused. */
static __always_inline int kw_is_client(struct __sk_buff *skb, const struct kw_packet *p,
					const struct kw_period_keys *from)
{
	const struct kw_envelope *envelope = kw_envelope(p);
	__u64 pass = kw_pass_of(p->kw), at = kw_at(p->ip->saddr, p->udp->source);
	struct kw_peer *place = kw_peer_place(pass, at, from->serial);

	if (!place)
		return KW_ENVELOPE_REFUSAL_EDGE;
	if (kw_is_peer(place, pass, at, from->serial) && place->cookie && !envelope->echo &&
	    kw_is_edge(skb, envelope, &place->request))
		return 0;
	return skb ? kw_meet_many(skb, p->eth, from, place) : kw_meet_one(p->eth, from, place);
}

/* Whether a member had the keys: 0, or why it is refused. */
static __always_inline int kw_is_member(struct __sk_buff *skb, const struct kw_packet *p,
					const struct kw_period_keys *from)
{
	const struct kw_envelope *envelope = kw_envelope(p);
	const struct kw_sip *begun = (const void *)from->begun;
	struct kw_sip other;

	if (envelope->echo) {
		kw_edge_begin(&other, (const void *)from->members, KW_U64(envelope), 0);
		begun = &other;
	}
	return kw_is_edge(skb, envelope, begun) ? 0 : KW_ENVELOPE_REFUSAL_EDGE;
}

/* Whether whoever sent a packet had the keys, and a client's rights: 0, or why it is refused. */
static __always_inline int kw_prove(struct __sk_buff *skb, const struct kw_packet *p,
				    const struct kw_period_keys *from)
{
	int why = kw_envelope(p)->kind == KW_ENVELOPE_KIND_MEMBER ? kw_is_member(skb, p, from) :
								     kw_is_client(skb, p, from);

	if (why)
		return why;
	return kw_is_right(p->kw) ? 0 : KW_ENVELOPE_REFUSAL_RIGHT;
}

/* A cookie that is to be sent. */
struct kw_answer {
	__u64	head;
	__be64	edge;
	__be64	cookie;
};

/* What a client is sent whose request has no cookie: false if that cannot be. */
static __always_inline bool kw_answer(const struct kw_packet *p, struct kw_answer *to)
{
	const struct kw_period_keys *from = kw_keys_named(kw_envelope(p)->period);
	struct kw_peer client;
	struct kw_sip s;

	if (!from)
		return false;
	kw_derive_peer(&client, from, kw_pass_of(p->kw), 0, 0);
	to->cookie = kw_cookie(from, p->ip->saddr, p->udp->source);
	to->head = kw_head(KW_ENVELOPE_KIND_COOKIE, from->byte, KW_U32((void *)&p->kw->seq + 4));
	s = kw_sip(client.key[0], client.key[1]);
	kw_sip13_word(&s, to->head);
	kw_sip13_word(&s, 0);
	kw_sip13_word(&s, to->cookie);
	to->edge = bpf_cpu_to_be64(kw_sip13_end(&s, KW_ENVELOPE_LEN));
	return true;
}

/* Bytes of a frame with a cookie. */
#define KW_ANSWER_LEN	(KW_DATAGRAM_AT + KW_ENVELOPE_LEN)

/* Makes what is left of a request the answer to it, on the way on which it came. */
static __always_inline void kw_write_answer(void *frame, const struct kw_answer *answer)
{
	const struct kw_packet p = kw_packet_at(frame);
	struct kw_envelope *envelope = kw_envelope(&p);
	__be16 len = bpf_htons(sizeof(*p.ip) + sizeof(*p.udp) + KW_ENVELOPE_LEN);
	__u8 macs[2 * ETH_ALEN];

	__builtin_memcpy(macs, p.eth->h_source, ETH_ALEN);
	__builtin_memcpy(macs + ETH_ALEN, p.eth->h_dest, ETH_ALEN);
	__builtin_memcpy(p.eth, macs, sizeof(macs));
	p.ip->check = kw_csum(p.ip->check, p.ip->tot_len, len);
	p.ip->tot_len = len;
	kw_address(&p, p.ip->saddr, p.udp->source);
	p.udp->len = bpf_htons(sizeof(*p.udp) + KW_ENVELOPE_LEN);
	KW_U64(envelope) = answer->head;
	KW_U64(&envelope->edge) = answer->edge;
	KW_U64(&envelope->end) = answer->cookie;
}

static __noinline int kw_answer_one(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct kw_packet p = kw_packet_at(data);
	struct kw_answer answer;

	if ((void *)(p.kw + 1) > end || !kw_answer(&p, &answer) ||
	    bpf_xdp_adjust_tail(ctx, KW_ANSWER_LEN - (int)(end - data)))
		return XDP_DROP;
	data = (void *)(long)ctx->data;
	end = (void *)(long)ctx->data_end;
	if (data + KW_ANSWER_LEN > end)
		return XDP_DROP;
	kw_write_answer(data, &answer);
	/* Not XDP_TX: what a veth sends so lies there until its peer is sent something else. */
	return bpf_redirect(ctx->ingress_ifindex, 0);
}

static __noinline int kw_answer_many(struct __sk_buff *skb)
{
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	struct kw_packet p = kw_packet_at(data);
	struct kw_answer answer;

	if ((void *)(p.kw + 1) > end || !kw_answer(&p, &answer) ||
	    bpf_skb_change_tail(skb, KW_ANSWER_LEN, 0))
		return TC_ACT_SHOT;
	data = (void *)(long)skb->data;
	end = (void *)(long)skb->data_end;
	if (data + KW_ANSWER_LEN > end)
		return TC_ACT_SHOT;
	kw_write_answer(data, &answer);
	return bpf_redirect(skb->ifindex, 0);
}

/* What tc opens, and what the socket does. */
static __always_inline bool kw_is_for_later(__u8 op)
{
	return op == KW_OP_MGET || op == KW_OP_RANGE || op == KW_OP_CACHE_RULES ||
	       op == KW_OP_CACHE_RULED;
}

/* Opens a datagram: whether it goes on with the packet. If not, `fate` is what becomes of it. */
static __always_inline bool kw_open(struct xdp_md *ctx, struct kw_packet *p, void *end, int *fate)
{
	const struct kw_period_keys *from;
	int why = kw_split(p, end);

	if (!why) {
		if (kw_is_for_later(p->kw->op)) {
			*fate = XDP_PASS;
			return false;
		}
		why = kw_may_come(p, &from);
	}
	if (!why)
		why = kw_prove(NULL, p, from);
	if (!why) {
		p->len -= KW_ENVELOPE_LEN;
		return true;
	}
	kw_refuse(why);
	*fate = why == KW_ENVELOPE_REFUSAL_NO_COOKIE ? kw_answer_one(ctx) : XDP_DROP;
	return false;
}

/*
 * Opens the datagram of an MGET or RANGE. One whose slots are not all there, or are too many, is
 * the socket's.
 */
static __always_inline bool kw_open_many(struct __sk_buff *skb, struct kw_packet *p, void **end,
					 int *fate)
{
	const struct kw_period_keys *from;
	__u32 slots;
	int why;

	*fate = TC_ACT_OK;
	if (kw_split(p, *end) || (p->kw->op != KW_OP_MGET && p->kw->op != KW_OP_RANGE))
		return false;
	slots = p->kw->op == KW_OP_MGET ? p->kw->count : 0;
	if (slots > KW_MGET_KEYS_MAX || KW_EDGE_LEN + slots * KW_MGET_SLOT_LEN > p->len)
		return false;
	if (bpf_skb_pull_data(skb, KW_DATAGRAM_AT + KW_EDGE_LEN + slots * KW_MGET_SLOT_LEN))
		return false;
	*end = (void *)(long)skb->data_end;
	slots = p->len;
	*p = kw_packet_at((void *)(long)skb->data);
	p->len = slots - KW_ENVELOPE_LEN;
	if ((void *)(p->kw + 1) > *end)
		return false;
	why = kw_may_come(p, &from);
	if (!why)
		why = kw_prove(skb, p, from);
	if (!why)
		return true;
	kw_refuse(why);
	*fate = why == KW_ENVELOPE_REFUSAL_NO_COOKIE ? kw_answer_many(skb) : TC_ACT_SHOT;
	return false;
}

/* What comes of a packet in tc that was opened and is not sound. XDP has not seen it. */
static __always_inline int kw_unsound(__u32 why)
{
	struct kw_own *own = kw_own();

	if (own) {
		own->totals.unparsed++;
		own->totals.dropped[why & 0xff]++;
	}
	return TC_ACT_SHOT;
}

/* How the hash of a reply to a client begins. */
static __always_inline const struct kw_sip *kw_begun_for(const struct kw_packet *p,
							 const struct kw_period_keys *from)
{
	__u64 pass = kw_pass_of(p->kw), at = kw_at(p->ip->daddr, p->udp->dest);
	struct kw_peer *client = kw_peer_place(pass, at, from->serial);

	if (client && !kw_is_peer(client, pass, at, from->serial))
		kw_derive_peer(client, from, pass, at, 0);
	return client ? &client->reply : NULL;
}

/*
 * The keys that a packet is sent on with: those that it came with, for its end tag is of that
 * period. They are not here any more if others were taken since; then nobody may open it.
 */
static __always_inline const struct kw_period_keys *kw_keys_of(const struct kw_envelope *envelope)
{
	const struct kw_period_keys *from = kw_keys_named(envelope->period);

	return from ? from : kw_key_set();
}

/* Seals a packet that is about to be sent to one. */
static __always_inline void kw_seal(const struct kw_packet *p)
{
	struct kw_envelope *envelope = kw_envelope(p);
	const struct kw_period_keys *from = kw_keys_of(envelope);
	const struct kw_sip *begun = (const void *)from->begun;
	__u8 kind = KW_ENVELOPE_KIND_MEMBER;

	/* Requests go to members, whose tables and ring are the same. */
	if (p->kw->op & 0x80 && !kw_is_of_ring(p->ip->daddr, p->udp->dest)) {
		kind = KW_ENVELOPE_KIND_REPLY;
		begun = kw_begun_for(p, from);
		if (!begun)
			return;
	}
	KW_U64(envelope) = kw_head(kind, from->byte, 0);
	KW_U64(&envelope->edge) = kw_edge(envelope, begun, KW_EDGE_LEN);
}

/* How the parts of a request are sealed, whose slots are the same. */
struct kw_seal {
	__u64		head;
	struct kw_sip	begun;
};

/* Begins to seal them: 0 if that could be done. */
static __always_inline int kw_seal_parts(struct __sk_buff *skb, struct kw_seal *seal)
{
	const struct kw_header *kw = (void *)(long)skb->data + KW_PACKET_AT;
	const struct kw_period_keys *from;

	if ((void *)(kw + 1) > (void *)(long)skb->data_end)
		return -1;
	from = kw_keys_of((const struct kw_envelope *)kw - 1);
	seal->head = kw_head(KW_ENVELOPE_KIND_MEMBER, from->byte, 0);
	seal->begun = *(const struct kw_sip *)from->begun;
	return kw_slots(kw) ? kw_edge_slots(skb, &seal->begun) : 0;
}

/* Seals one of them. */
static __always_inline void kw_seal_part(const struct kw_packet *p, const struct kw_seal *seal)
{
	struct kw_envelope *envelope = kw_envelope(p);
	__u32 slots = kw_slots(p->kw);

	KW_U64(envelope) = seal->head;
	KW_U64(&envelope->edge) =
		kw_edge(envelope, &seal->begun, KW_EDGE_LEN + slots * KW_MGET_SLOT_LEN);
}

#endif /* KEYWAY_SEALED_H */
