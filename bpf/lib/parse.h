/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * From a frame to a checked header. The only place that compares a pointer with the end.
 */
#ifndef KEYWAY_PARSE_H
#define KEYWAY_PARSE_H

#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/udp.h>
#include "maps.h"

/*
 * The headers' fields lie anywhere: the machines that this runs on load unaligned words, and clang
 * is to use them. 16-byte fields are two.
 */
#define KW_U64(at) (*(__u64 *)(void *)(at))
#define KW_U32(at) (*(__u32 *)(void *)(at))
#define KW_U16(at) (*(__u16 *)(void *)(at))

/* IPv4 addresses are mapped into IPv6: 10 zeros, two 0xff, the address. */
#define KW_MAPPED_HI	0ULL
#define KW_MAPPED_MID	bpf_htonl(0xffff)

/* Longer datagrams are for the kernel; the verifier wants a bound. */
#define KW_LOOKED_AT_MAX	4095

/* From the first byte of a frame to the datagram, and to the packet in it. */
#define KW_DATAGRAM_AT	(sizeof(struct ethhdr) + sizeof(struct iphdr) + sizeof(struct udphdr))
#ifdef KW_SEALED
#define KW_PACKET_AT	(KW_DATAGRAM_AT + KW_ENVELOPE_LEN)
#else
#define KW_PACKET_AT	KW_DATAGRAM_AT
#endif

struct kw_packet {
	struct ethhdr		*eth;
	struct iphdr		*ip;
	struct udphdr		*udp;
	struct kw_header	*kw;	/* Only if `len` is at least KW_HEADER_LEN. */
	__u32			len;	/* Of the datagram; of the packet when it is opened. */
#ifdef KW_SEALED
	int			sender;	/* As kw_find_sender says, when it is opened. */
#endif
};

/* Where things are in a frame that was found to be whole and plain. */
static __always_inline struct kw_packet kw_packet_at(void *frame)
{
	struct kw_packet p = { .eth = frame };

	p.ip = (void *)(p.eth + 1);
	p.udp = (void *)(p.ip + 1);
	p.kw = frame + KW_PACKET_AT;
	return p;
}

/* Read as volatile: to clang a constant without initialiser is zero. */
static __always_inline __be32 kw_service_addr(void)
{
	return *(const volatile __be32 *)&service.addr[12];
}

/* Whether an address is IPv4 in IPv6. */
static __always_inline bool kw_is_mapped(const __u8 *addr)
{
	return KW_U64(addr) == KW_MAPPED_HI && KW_U32(addr + 8) == KW_MAPPED_MID;
}

/*
 * Whether a frame of `len` bytes, of which those to `end` can be seen, is a whole and plain
 * datagram for the service address. Whatever else there is
 * (fragments, IP options, VLANs, lengths that contradict each other) is for the kernel to judge; a
 * datagram among it reaches the switch's own socket.
 */
static __always_inline bool kw_is_ours(void *data, void *end, __u32 len, struct kw_packet *p)
{
	*p = kw_packet_at(data);
	if ((void *)(p->udp + 1) > end || KW_U16(&p->eth->h_proto) != bpf_htons(ETH_P_IP))
		return false;
	if (p->ip->version != 4 || p->ip->ihl != 5 || p->ip->protocol != IPPROTO_UDP)
		return false;
	if (p->ip->daddr != kw_service_addr() || p->udp->dest != service.port)
		return false;
	if (p->ip->frag_off & bpf_htons(0x3fff)) /* More fragments, or not the first. */
		return false;
	if (p->ip->ttl <= 1)
		return false;
	p->len = bpf_ntohs(p->udp->len) - sizeof(*p->udp);
	if (p->len > KW_LOOKED_AT_MAX ||
	    bpf_ntohs(p->ip->tot_len) != sizeof(*p->ip) + sizeof(*p->udp) + p->len)
		return false;
	return KW_DATAGRAM_AT + p->len <= len;
}

static __always_inline bool kw_is_op(__u8 op)
{
	switch (op) {
	KW_OP_CASES
		return true;
	default:
		return false;
	}
}

/* The checks of every target: 0, or the reason to drop it. */
static __always_inline int kw_check(const struct kw_packet *p, void *end)
{
	const struct kw_header *kw = p->kw;
	__u32 payload_len, key_len;

	if (p->len < KW_HEADER_LEN)
		return KW_DROP_TRUNCATED;
	if ((void *)(kw + 1) > end)
		return KW_DROP_TRUNCATED;
	if (kw->magic != bpf_htons(KW_MAGIC))
		return KW_DROP_NOT_OURS;
	if (kw->version != KW_VERSION)
		return KW_DROP_BAD_VERSION;
	if (!kw_is_op(kw->op))
		return KW_DROP_BAD_OP;
	payload_len = bpf_ntohs(kw->payload_len);
	key_len = bpf_ntohs(kw->key_len);
	if (KW_HEADER_LEN + payload_len != p->len || p->len > KW_PACKET_MAX ||
	    key_len > payload_len || key_len > KW_KEY_MAX)
		return KW_DROP_BAD_LENGTH;
	if (kw->chain_len > KW_CHAIN_MAX || kw->chain_pos >= (kw->chain_len ? kw->chain_len : 1))
		return KW_DROP_BAD_CHAIN;
	return 0;
}

/* Whether a checked request is a PUT that depends on no earlier state and that no time ends. */
static __always_inline bool kw_may_be_delegated(const struct kw_packet *p, void *end)
{
	const struct kw_header *kw = p->kw;
	const __be64 *expiry = (const void *)(kw + 1);

	return kw->op == KW_OP_PUT && !(kw->flags & KW_FLAG_KEEP_EXPIRY) &&
	       p->len >= KW_HEADER_LEN + sizeof(*expiry) && (void *)(expiry + 1) <= end &&
	       !KW_U64(expiry);
}

#endif /* KEYWAY_PARSE_H */
