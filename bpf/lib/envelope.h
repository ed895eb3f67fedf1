/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Envelopes: section 14 of spec/protocol.md, as crates/envelope has it for a switch. What is here
 * opens what comes and seals what is sent; bare.h stands in its place where there are none.
 *
 * Whatever goes to the socket goes there in its envelope, unchanged, and is opened there: nothing
 * is written before a packet is sent, and only the way to it is checked twice. That also holds for
 * what the edge tag alone covers.
 */
#ifndef KEYWAY_ENVELOPE_H
#define KEYWAY_ENVELOPE_H

#include <linux/pkt_cls.h>
#include "count.h"
#include "siphash.h"
#include "tables.h"

struct kw_envelope {
	__be16	magic;
	__u8	kind;
	__u8	period;
	__be32	echo;
	__be64	edge;
	__be64	end;
} __attribute__((packed, aligned(4)));

_Static_assert(sizeof(struct kw_envelope) == KW_ENVELOPE_LEN, "no padding");

/* Periods whose packets are taken: the present one, then the others. */
#define KW_PERIODS	3

/*
 * Two sets of keys. The loader writes the one that is not active, and makes it active when it is
 * whole: so each packet is opened with the one or the other.
 */
struct {
	struct kw_period_keys	of[2][KW_PERIODS];
	__u64			active;
} keys SEC(".data.keys");

/* Every port of every member. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct kw_source);
	__type(value, __u32);
} ring SEC(".maps");

/* One bit for each UDP port that a member has, as `sender_ports`. */
__u64 ring_ports[1024] SEC(".data.ring_ports");

/* What a class of clients may do in a keyspace. */
enum kw_allowed {
	KW_MAY_READ	= 1 << 0,
	KW_MAY_WRITE	= 1 << 1,
	KW_MAY_SCAN	= 1 << 2,
	KW_IS_CLASS	= 1 << 3,	/* There is such a class. */
	KW_HAS_SPACES	= 1 << 4,	/* In some keyspaces it has other rights. */
};

#define KW_CLASSES	4096

/* By class, in keyspaces in which it has no others. Class 0 may do everything. */
__u8 classes[KW_CLASSES] SEC(".data.classes");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct kw_class_keyspace);
	__type(value, __u32);
} class_keyspaces SEC(".maps");

/* What a processor knows of a client at an address. It costs more than a packet to find out. */
struct kw_peer {
	__u64	pass;		/* The number of its pass. */
	__u64	at;		/* Its address and port. */
	__u64	serial;		/* Of the keys that the rest follows from. */
	__u64	key[2];
	__be64	cookie;		/* 0: nobody asked for it. */
	struct kw_sip request;	/* The state of a hash after the first words of its requests, */
	struct kw_sip reply;	/* and after those of replies to it. */
};

#define KW_PEERS_BITS	12

/* Each client has one place. Only who has shown that it is there takes one from another. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1 << KW_PEERS_BITS);
	__type(key, __u32);
	__type(value, struct kw_peer);
} peers SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct kw_refusals);
} refusals SEC(".maps");

static __always_inline struct kw_envelope *kw_envelope(const struct kw_packet *p)
{
	return (void *)(p->udp + 1);
}

/* The keys of the present period are the first ones. */
static __always_inline const struct kw_period_keys *kw_key_set(void)
{
	return keys.of[*(const volatile __u64 *)&keys.active & 1];
}

/* The keys that an envelope names by this byte. */
static __always_inline const struct kw_period_keys *kw_keys_named(__u8 byte)
{
	const struct kw_period_keys *set = kw_key_set();

#pragma clang loop unroll(full)
	for (int i = 0; i < KW_PERIODS; i++)
		if (set[i].byte == byte && set[i].serial)
			return &set[i];
	return NULL;
}

/* Whether a member is there. Content addresses are none of IPv4. */
static __always_inline bool kw_is_of_ring(__be32 addr, __be16 at)
{
	struct kw_source member;
	__u16 port = bpf_ntohs(at);

	if (!(ring_ports[port / 64] & 1ULL << port % 64))
		return false;
	__builtin_memset(&member, 0, sizeof(member));
	KW_U32(&member.addr[8]) = KW_MAPPED_MID;
	KW_U32(&member.addr[12]) = addr;
	member.port = at;
	return bpf_map_lookup_elem(&ring, &member);
}

static __always_inline __u64 kw_pass_of(const struct kw_header *kw)
{
	return bpf_be64_to_cpu(KW_U64(&kw->client)) >> 16;
}

/* Whether this is what a client asks. */
static __always_inline bool kw_is_request(__u8 op)
{
	return !(op & 0xc0);
}

/* What a request needs. */
static __always_inline __u8 kw_needed(__u8 op)
{
	switch (op) {
	case KW_OP_GET:
	case KW_OP_MGET:
		return KW_IS_CLASS | KW_MAY_READ;
	case KW_OP_RANGE:
		return KW_IS_CLASS | KW_MAY_SCAN;
	case KW_OP_PUT:
	case KW_OP_DEL:
		return KW_IS_CLASS | KW_MAY_WRITE;
	case KW_OP_CAS:
	case KW_OP_INCR:
	case KW_OP_BATCH:
		return KW_IS_CLASS | KW_MAY_READ | KW_MAY_WRITE;
	default:
		return KW_IS_CLASS;
	}
}

static __noinline bool kw_class_may(__u32 class, const struct kw_header *kw)
{
	struct kw_class_keyspace in = { .class = class, .keyspace = bpf_ntohs(kw->keyspace) };
	__u8 needed = kw_needed(kw->op), allowed = classes[class & (KW_CLASSES - 1)];
	const __u32 *other;

	if (allowed & KW_HAS_SPACES) {
		other = bpf_map_lookup_elem(&class_keyspaces, &in);
		if (other)
			allowed = *other;
	}
	return (allowed & needed) == needed;
}

/* Whether a packet is within the rights of whoever asks, if somebody does. */
static __always_inline bool kw_is_right(const struct kw_header *kw)
{
	__u32 class = bpf_ntohs(KW_U16(&kw->client)) >> 4;

	return !class || !kw_is_request(kw->op) || kw_class_may(class, kw);
}

/* The beginning of an envelope, as it is hashed. */
static __always_inline __u64 kw_head(__u8 kind, __u8 period, __be32 echo)
{
	return bpf_htons(KW_ENVELOPE_MAGIC) | (__u64)kind << 16 | (__u64)period << 24 |
	       (__u64)echo << 32;
}

/*
 * The state of a hash after the first words. They are the same in all envelopes of a kind under a
 * key, but for clients' cookies, and so the state is kept.
 */
static __noinline void kw_edge_begin(struct kw_sip *to, const __u64 *key, __u64 head,
				     __be64 cookie)
{
	struct kw_sip s = kw_sip(key[0], key[1]);

	kw_sip13_word(&s, head);
	kw_sip13_word(&s, cookie);
	*to = s;
}

/* Takes the slots of an MGET in, in tc: their caller has found them to be there. */
__noinline int kw_edge_slots(struct __sk_buff *skb, struct kw_sip *to)
{
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	const struct kw_header *kw = data + KW_PACKET_AT;
	const void *slot = kw + 1, *next;
	struct kw_sip s;

	if (slot > end || !to)
		return -1;
	s = *to;
	for (__u32 i = 0; i < KW_MGET_KEYS_MAX && i < kw->count; i++, slot = next) {
		next = slot + KW_MGET_SLOT_LEN;
		asm volatile("" : "+r"(next)); /* The verifier wants this to be compared. */
		if (next > end)
			return -1;
		kw_sip13_word(&s, KW_U64(slot));
		kw_sip13_word(&s, KW_U64(slot + 8));
		kw_sip13_word(&s, KW_U64(slot + 16));
	}
	*to = s;
	return 0;
}

#define KW_EDGE_LEN	(KW_ENVELOPE_LEN + KW_HEADER_LEN)

/* The edge tag over so many bytes, of which what is before the end tag was taken in. */
static __noinline __be64 kw_edge(const struct kw_envelope *envelope, const struct kw_sip *begun,
				 __u32 bytes)
{
	const void *packet = envelope + 1;
	struct kw_sip s = *begun;

	kw_sip13_word(&s, KW_U64(&envelope->end));
#pragma clang loop unroll(full)
	for (int at = 0; at < KW_HEADER_LEN; at += sizeof(__u64))
		kw_sip13_word(&s, KW_U64(packet + at));
	return bpf_cpu_to_be64(kw_sip13_end(&s, bytes));
}

static __always_inline __be64 kw_cookie(const struct kw_period_keys *from, __be32 addr,
					__be16 port)
{
	__u64 low = KW_MAPPED_MID | (__u64)addr << 32;
	__u64 cookie = kw_sip24((const void *)from->cookies, KW_MAPPED_HI, low, port);

	return bpf_cpu_to_be64(cookie ? cookie : 1);
}

static __always_inline __u64 kw_at(__be32 addr, __be16 port)
{
	return (__u64)addr << 16 | port;
}

/* The place of a client in `peers`. */
static __always_inline struct kw_peer *kw_peer_place(__u64 pass, __u64 at, __u64 serial)
{
	__u64 mixed = (pass ^ at << 13) * 0x9e3779b97f4a7c15ULL;
	__u32 place = ((mixed >> 32) + serial) & ((1 << KW_PEERS_BITS) - 1);

	return bpf_map_lookup_elem(&peers, &place);
}

static __always_inline bool kw_is_peer(const struct kw_peer *peer, __u64 pass, __u64 at,
					__u64 serial)
{
	return peer->pass == pass && peer->at == at && peer->serial == serial;
}

/* Derives what follows for a client from keys, with a cookie or 0. */
static __always_inline void kw_derive_peer(struct kw_peer *client,
					   const struct kw_period_keys *from, __u64 pass,
					   __u64 at, __be64 cookie)
{
	client->pass = pass;
	client->at = at;
	client->serial = from->serial;
	client->cookie = cookie;
	kw_sip24_128((const void *)from->clients, bpf_cpu_to_be64(pass), client->key);
	kw_edge_begin(&client->request, client->key,
		      kw_head(KW_ENVELOPE_KIND_REQUEST, from->byte, 0), cookie);
	kw_edge_begin(&client->reply, client->key,
		      kw_head(KW_ENVELOPE_KIND_REPLY, from->byte, 0), 0);
}

#endif /* KEYWAY_ENVELOPE_H */
