/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What leaves: header fields that the switch grants, addresses, checksums. */
#ifndef KEYWAY_REWRITE_H
#define KEYWAY_REWRITE_H

#include "parse.h"

/* Takes a request in: where its answer goes, and nothing of what only a node says. */
static __always_inline void kw_stamp_request(const struct kw_packet *p)
{
	struct kw_header *kw = p->kw;

	KW_U64(kw->reply_addr) = KW_MAPPED_HI;
	KW_U32(kw->reply_addr + 8) = KW_MAPPED_MID;
	KW_U32(kw->reply_addr + 12) = p->ip->saddr;
	kw->reply_port = p->udp->source;
	kw->hop_flags = 0;
	kw->node = 0;
	kw->load = 0;
}

static __always_inline void kw_stamp_partition(struct kw_header *kw, __be32 partition, __be32 epoch)
{
	kw->partition = partition;
	kw->epoch = epoch;
	kw->chain_pos = 0;
	kw->bitmap = 0;
}

static __always_inline void kw_stamp_chain(struct kw_header *kw, const struct kw_row *row)
{
	KW_U64(kw->chain) = KW_U64(row->chain);
	KW_U64(kw->chain + 8) = KW_U64(row->chain + 8);
	kw->chain_len = row->chain_len;
}

static __always_inline void kw_stamp_chain_of_one(struct kw_header *kw, __be16 node)
{
	KW_U64(kw->chain) = 0;
	KW_U64(kw->chain + 8) = 0;
	*(__be16 *)(void *)kw->chain = node;
	kw->chain_len = 1;
}

/* What whoever answers a read of a hot key is to know. The chain comes first: it lies below. */
static __always_inline void kw_stamp_hot(struct kw_header *kw, __u64 floor, __be64 generation)
{
	kw->hop_flags = KW_HOP_FLAG_HOT;
	KW_U64(&kw->object_version) = bpf_cpu_to_be64(floor);
	KW_U64((void *)kw + KW_GENERATION_AT) = generation;
}

/* The id of the tail, as it stands on the wire. */
static __always_inline __be16 kw_tail(const struct kw_row *row)
{
	return *(__be16 *)(void *)(row->chain + 2 * (row->tail & (KW_CHAIN_MAX - 1)));
}

/* RFC 1624 for two words that changed at once. */
static __always_inline __sum16 kw_csum(__sum16 csum, __be32 from, __be32 to)
{
	__u32 sum = (__u16)~csum;

	sum += (__u16)~from + (__u16)~(from >> 16);
	sum += (__u16)to + (to >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return ~sum;
}

/*
 * Sends it from the service address. The UDP checksum goes: over IPv4 it is optional, what local
 * senders left in it is only begun, and the tag covers what matters.
 */
static __always_inline void kw_address(const struct kw_packet *p, __be32 addr, __be16 port)
{
	__be32 own = kw_service_addr();
	/* The service address is in one of the fields already, whichever: the sum has it. */
	__be32 gone = p->ip->saddr == own ? p->ip->daddr : p->ip->saddr;

	p->ip->check = kw_csum(p->ip->check, gone, addr);
	p->ip->saddr = own;
	p->ip->daddr = addr;
	p->udp->source = service.port;
	p->udp->dest = port;
	p->udp->check = 0;
}

/*
 * Both Ethernet addresses, which lie one after the other wherever they are. In words: clang copies
 * what is not aligned byte by byte.
 */
static __always_inline void kw_frame(struct ethhdr *eth, const __u8 *addrs)
{
	KW_U64(eth) = KW_U64(addrs);
	KW_U32((__u8 *)eth + 8) = KW_U32(addrs + 8);
}

#endif /* KEYWAY_REWRITE_H */
