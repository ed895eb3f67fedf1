/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The switch with programs that measure it. A repeated test run finds the packet as the run before
 * has left it, so each of these first makes it as it came, with another match value.
 */
#include "switch.bpf.c"

/*
 * The build defines, in the machine's order, what crates/xdp/benches/program says: CLIENT and
 * CLIENT_PORT; NODES_NET, to which a node's id is added, and NODES_PORT; NODES, how many; HOT_KEYS,
 * how many keys may be hot, and APART, how far their hashes lie from each other. The lower half of
 * those is asked for, and the replies for the upper half raise the floor. CACHED_KEYS, how many
 * keys a cache may hold, and SCATTER, what makes their hashes. VALUE_AT is where the value of a PUT
 * lies in its body.
 */

/* What the packet says in `count` of its key. */
enum {
	NO_KEY = 0,
	COLD = 1,
	HOT = 2,
	RAISED = 3,
	NEW_WRITE = 4,		/* On a delegation, with its client's next number each time. */
	SAME_WRITE = 5,		/* A copy of the one before. */
	CACHED = 6,		/* That a cache holds. */
};

/* What is known of the packet here must not save the switch from finding it out. */
#define FORGET()	asm volatile("" ::: "memory")

static __always_inline void addressed(struct iphdr *ip, struct udphdr *udp, __be32 from,
				      __be16 port)
{
	ip->saddr = from;
	ip->daddr = kw_service_addr();
	udp->source = port;
	udp->dest = service.port;
}

/*
 * The packet itself keeps time, in fields that the switch does not look at: `tag` runs are asked
 * for, and these begin with `client`, for delegated writes with the value, and in envelopes
 * behind the slots, in the key or the value. The kernel's own figure is cut to whole nanoseconds.
 */
struct clock {
	__u64	run;	/* Counts them. */
	__u64	time;	/* When the first began, then how long it was until the last began. */
} __attribute__((packed));

static __always_inline struct clock *clock_of(struct kw_header *kw, void *end)
{
	struct clock *in_value = (void *)(kw + 1) + VALUE_AT;

#ifdef KW_SEALED
	if (kw->op != KW_OP_PUT)
		in_value = (void *)(kw + 1);
#else
	if (kw->count != NEW_WRITE && kw->count != SAME_WRITE)
		return (void *)&kw->client;
#endif
	return (void *)(in_value + 1) <= end ? in_value : NULL;
}

#ifdef KW_SEALED
/* What packets are sealed with as they come, as the benchmark has it. */
struct {
	__u64	client[2];
	__u64	members[2];
	__be64	cookie;
	__u64	period;
} sealers SEC(".data.sealers");

/* Seals a packet as it comes. `skb`: in tc. */
static __always_inline void sealed_anew(struct __sk_buff *skb, const struct kw_packet *p)
{
	struct kw_envelope *envelope = kw_envelope(p);
	bool is_reply = p->kw->op & 0x80;
	const __u64 *key = is_reply ? sealers.members : sealers.client;
	__u8 kind = is_reply ? KW_ENVELOPE_KIND_MEMBER : KW_ENVELOPE_KIND_REQUEST;
	__u64 head = kw_head(kind, sealers.period, 0);
	__u32 slots = skb ? kw_slots(p->kw) : 0;
	struct kw_sip begun;

	kw_edge_begin(&begun, key, head, is_reply ? 0 : sealers.cookie);
	if (slots)
		kw_edge_slots(skb, &begun);
	KW_U64(envelope) = head;
	KW_U64(&envelope->edge) =
		kw_edge(envelope, &begun, KW_EDGE_LEN + slots * KW_MGET_SLOT_LEN);
}
#endif

static __always_inline void count_run(struct kw_header *kw, struct clock *clock)
{
	__u64 run = clock->run++;

	if (!run)
		clock->time = bpf_ktime_get_ns();
	else if (run == kw->tag)
		clock->time = bpf_ktime_get_ns() - clock->time;
}

/*
 * A write that may be delegated: its client is another one for each packet, and waits for each
 * answer.
 */
static __always_inline void numbered(struct kw_header *kw, const struct clock *clock, __u64 random)
{
	if (clock->run == 1)
		kw->client = random << 32 | random;
	KW_U64(&kw->seq) = kw->count == NEW_WRITE ? bpf_cpu_to_be64(clock->run) : 1;
	KW_U64((void *)kw + KW_DIRECTORY_CLOCK_AT) = ~0ULL;
}

/* The hash of a key that a cache holds. */
static __always_inline __u64 scattered(__u64 key)
{
	key = (key + 1) * SCATTER;
	key = (key ^ key >> 32) * SCATTER;
	return key ^ key >> 32;
}

static __noinline int keyed(struct kw_header *kw, const struct clock *clock, __u64 random)
{
	switch (kw->count) {
	case COLD:
		KW_U64(&kw->keyhash) = bpf_cpu_to_be64(random << 20 | random | 1ULL << 63);
		return 0;
	case NEW_WRITE:
		numbered(kw, clock, random);
		KW_U64(&kw->keyhash) = bpf_cpu_to_be64(random % (HOT_KEYS / 2) * APART);
		return 0;
	case SAME_WRITE:
		numbered(kw, clock, random);
		KW_U64(&kw->keyhash) = 0;
		return 0;
	case CACHED:
		KW_U64(&kw->keyhash) = bpf_cpu_to_be64(scattered(random % CACHED_KEYS));
		return 0;
	case HOT:
		KW_U64(&kw->keyhash) = bpf_cpu_to_be64(random % (HOT_KEYS / 2) * APART);
		return 0;
	default:
		KW_U64(&kw->keyhash) = bpf_cpu_to_be64((random % (HOT_KEYS / 2) + HOT_KEYS / 2) * APART);
		KW_U64(&kw->object_version) = bpf_cpu_to_be64(clock->run);
		return 0;
	}
}

static __always_inline bool anew(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	const struct kw_packet p = kw_packet_at(data);
	struct iphdr *ip = p.ip;
	struct udphdr *udp = p.udp;
	struct kw_header *kw = p.kw;
	__u64 random = bpf_get_prandom_u32();
	struct clock *clock;

	if ((void *)(kw + 1) > end)
		return false;
	clock = clock_of(kw, end);
	if (!clock)
		return false;
	count_run(kw, clock);
	if (kw->op & 0x80) {
		kw->node = bpf_htons(random % NODES);
		addressed(ip, udp, bpf_htonl(NODES_NET + random % NODES), bpf_htons(NODES_PORT));
	} else {
		KW_U64(&kw->match_hi) = random; /* As wide as it will be read. */
		addressed(ip, udp, bpf_htonl(CLIENT), bpf_htons(CLIENT_PORT));
	}
	if (__builtin_expect(kw->count != NO_KEY, 0))
		keyed(kw, clock, random);
#ifdef KW_SEALED
	sealed_anew(NULL, &p);
#endif
	FORGET();
	return true;
}

/* Only what the others do before they begin. */
SEC("xdp")
int only_anew(struct xdp_md *ctx)
{
	return anew(ctx) ? XDP_DROP : XDP_ABORTED;
}

SEC("xdp")
int anew_one(struct xdp_md *ctx)
{
	return anew(ctx) ? kw_one(ctx) : XDP_ABORTED;
}

/* The least that a switch does: rewrites the addresses, and redirects. */
SEC("xdp")
int anew_least(struct xdp_md *ctx)
{
	void *data, *end;
	struct kw_packet p;

	if (!anew(ctx))
		return XDP_ABORTED;
	data = (void *)(long)ctx->data;
	end = (void *)(long)ctx->data_end;
	p.eth = data;
	p.ip = (void *)(p.eth + 1);
	p.udp = (void *)(p.ip + 1);
	if ((void *)(p.udp + 1) > end || KW_U16(&p.eth->h_proto) != bpf_htons(ETH_P_IP) ||
	    p.ip->protocol != IPPROTO_UDP || p.udp->dest != service.port)
		return XDP_PASS;
	kw_address(&p, bpf_htonl(NODES_NET), bpf_htons(NODES_PORT));
	KW_U64(p.eth) = 0x0002020100000002ULL;
	KW_U32((__u8 *)p.eth + 8) = 0x01010000;
	return bpf_redirect_map(&ports, ctx->ingress_ifindex, XDP_ABORTED);
}

static __always_inline bool anew_many(struct __sk_buff *skb)
{
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	const struct kw_packet p = kw_packet_at(data);
	struct kw_header *kw = p.kw;
	struct clock *clock = (void *)&kw->client;

	if ((void *)(kw + 1) > end)
		return false;
#ifdef KW_SEALED
	/* Behind the slots and the lengths of keys. */
	clock = (void *)(kw + 1) + kw->count * (KW_MGET_SLOT_LEN + sizeof(__be16));
	if ((void *)(clock + 1) > end)
		return false;
#endif
	count_run(kw, clock);
	kw->bitmap = ~0U;
	addressed(p.ip, p.udp, bpf_htonl(CLIENT), bpf_htons(CLIENT_PORT));
	for (__u32 i = 0; i < KW_MGET_KEYS_MAX && i < kw->count; i++) {
		void *slot = (void *)(kw + 1) + i * KW_MGET_SLOT_LEN;

		if (slot + sizeof(__u64) > end)
			return false;
		KW_U64(slot) = bpf_get_prandom_u32();
	}
#ifdef KW_SEALED
	sealed_anew(skb, &p);
#endif
	FORGET();
	return true;
}

SEC("tc")
int only_anew_many(struct __sk_buff *skb)
{
	return anew_many(skb) ? TC_ACT_SHOT : TC_ACT_OK;
}

SEC("tc")
int anew_many_parts(struct __sk_buff *skb)
{
	return anew_many(skb) ? kw_many(skb) : TC_ACT_OK;
}

/* What sending the parts costs by itself: as many as the packet counts. */
SEC("tc")
int only_clones(struct __sk_buff *skb)
{
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	struct kw_header *kw = data + KW_PACKET_AT;
	const struct kw_node *node = kw_node(0);
	__u32 count;

	if ((void *)(kw + 1) > end || !node)
		return TC_ACT_OK;
	count_run(kw, (void *)&kw->client);
	count = kw->count;
	for (__u32 i = 1; i < KW_PARTS_MAX && i < count; i++)
		bpf_clone_redirect(skb, node->ifindex, 0);
	return bpf_redirect(node->ifindex, 0);
}
