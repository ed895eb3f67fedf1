/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * A bad link, at its far end: UDP datagrams that come in are lost, doubled or overtaken. What
 * happens to the n-th of them is a function of the seed and n, so that one seed is one sequence of
 * faults.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/pkt_cls.h>
#include <linux/udp.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <layout.h>

/* Set by the loader. */
const volatile struct kw_faults faults SEC(".rodata.faults");

/* For the loader. */
struct kw_fault_counts counts SEC(".data.counts");

#define MILLION 1000000

/* What dice are cast for. */
enum { LOST, DOUBLED, OVERTAKEN, BEHIND, KINDS };

/* An Ethernet frame without tags at the usual MTU; larger ones are not held back. */
#define FRAME_MAX 1514
#define FRAME_MIN (sizeof(struct ethhdr) + sizeof(struct iphdr) + sizeof(struct udphdr))
#define CHECKSUM_AT (FRAME_MIN - sizeof(__u16))

/* A datagram is overtaken by so many others at most. */
#define OVERTAKEN_BY_MAX 16

/*
 * The frame that is held back. Nothing here can keep a packet, so its bytes are kept, and another
 * packet that comes later is made of them after its own have been delivered.
 */
struct {
	__u32 state;
	__u32 len;
	__s32 behind;	/* So many others still pass. */
	__u8 frame[FRAME_MAX];
} held;

/* States: whoever takes the frame from FREE or FULL has it alone. */
#define FREE 0
#define TAKEN 1
#define FULL 2

/* In skb->mark of a packet that has been through here already. */
#define SEEN 0x4b574b57

/* One step of SplitMix64, from any state. */
static __always_inline __u64 mix(__u64 z)
{
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

/* The die for one kind of fault of the n-th datagram. */
static __always_inline __u64 die(__u64 n, __u64 kind)
{
	return mix(faults.seed + (KINDS * n + kind) * 0x9e3779b97f4a7c15ULL);
}

/* In the fragment field: there are more, or this is not the first. */
#define IP_FRAGMENT 0x3fff

/* Whether a packet is a whole datagram in IPv4 without options. */
static __always_inline int is_udp(struct __sk_buff *skb)
{
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	struct iphdr *ip = data + sizeof(struct ethhdr);

	return skb->protocol == bpf_htons(ETH_P_IP) && (void *)(ip + 1) <= end && ip->ihl == 5 &&
	       !(ip->frag_off & bpf_htons(IP_FRAGMENT)) && ip->protocol == IPPROTO_UDP;
}

/* Delivers what the packet is now, as if it came in once more. */
static __always_inline long deliver_copy(struct __sk_buff *skb)
{
	long status;

	skb->mark = SEEN;
	status = bpf_clone_redirect(skb, skb->ifindex, BPF_F_INGRESS);
	skb->mark = 0;
	return status;
}

/* Keeps the bytes of a packet; whether that was possible. */
static __always_inline int hold(struct __sk_buff *skb, __u32 behind)
{
	__u32 len = skb->len;

	if (len < FRAME_MIN || len > FRAME_MAX || skb->gso_segs > 1 ||
	    __sync_val_compare_and_swap(&held.state, FREE, TAKEN) != FREE)
		return 0;
	if (bpf_skb_load_bytes(skb, 0, held.frame, len)) {
		held.state = FREE;
		return 0;
	}
	/* A checksum that its sender has left to the hardware would never be made. */
	__builtin_memset(held.frame + CHECKSUM_AT, 0, sizeof(__u16));
	held.len = len;
	held.behind = behind;
	__sync_lock_test_and_set(&held.state, FULL);
	return 1;
}

/* Lets this packet pass the one that is held back, if there is one, and perhaps releases that. */
static __always_inline int pass(struct __sk_buff *skb)
{
	__u32 len;

	if (held.state != FULL || __sync_fetch_and_sub(&held.behind, 1) > 1)
		return TC_ACT_OK;
	if (skb->gso_segs > 1 ||
	    __sync_val_compare_and_swap(&held.state, FULL, TAKEN) != FULL)
		return TC_ACT_OK;
	len = held.len;
	if (len < FRAME_MIN || len > FRAME_MAX || deliver_copy(skb)) {
		held.state = FULL;
		return TC_ACT_OK;
	}
	if (bpf_skb_change_tail(skb, len, 0) ||
	    bpf_skb_store_bytes(skb, 0, held.frame, len, BPF_F_INVALIDATE_HASH)) {
		held.state = FREE;
		return TC_ACT_SHOT;
	}
	held.state = FREE;
	skb->mark = SEEN;
	return bpf_redirect(skb->ifindex, BPF_F_INGRESS);
}

SEC("tc")
int keyway_faults(struct __sk_buff *skb)
{
	__u64 n;

	if (skb->mark == SEEN) {
		skb->mark = 0;
		return TC_ACT_OK;
	}
	if (!is_udp(skb))
		return TC_ACT_OK;
	n = __sync_fetch_and_add(&counts.came, 1);
	if (die(n, LOST) % MILLION < faults.lost_ppm) {
		__sync_fetch_and_add(&counts.lost, 1);
		return TC_ACT_SHOT;
	}
	if (die(n, DOUBLED) % MILLION < faults.doubled_ppm && !deliver_copy(skb))
		__sync_fetch_and_add(&counts.doubled, 1);
	if (die(n, OVERTAKEN) % MILLION < faults.overtaken_ppm &&
	    hold(skb, 1 + die(n, BEHIND) % OVERTAKEN_BY_MAX)) {
		__sync_fetch_and_add(&counts.overtaken, 1);
		return TC_ACT_SHOT;
	}
	return pass(skb);
}

char LICENSE[] SEC("license") = "GPL";
