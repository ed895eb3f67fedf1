/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * How busy the nodes are: what they report, and what is predicted of their queues, as in
 * crates/switch/src/loads.rs but by the kernel's ticks.
 *
 * Each processor counts what it sends for itself: to share the counts would cost each packet more
 * than all the rest of its way. Once a tick, when it first looks at a node, it adds what it has
 * sent to what all have sent, and so sees the others' share, a tick late at most.
 */
#ifndef KEYWAY_QUEUE_H
#define KEYWAY_QUEUE_H

#include "parse.h"

/* One request in `waiting`: then a rate and nanoseconds multiply to what is served in that time. */
#define KW_REQUEST	1000000000ULL

/* Half-life, in ticks, of requests to a node that does not say its rate. */
#define KW_HALVED_EVERY	4

/* Nanoseconds of a bank, as a power of two, as in crates/switch/src/reports.rs. */
#define KW_WINDOW_BITS	30

static __always_inline struct kw_report *kw_report(__u32 node)
{
	return &reports[node & (KW_NODES_MAX - 1)];
}

/* A longer backlog, in nanoseconds, counts as this: times any rate it still fits into 64 bits. */
#define KW_BACKLOG_MAX	(1ULL << 32)

/* Adds what this processor has sent to a node that serves so many requests in a second. */
static __always_inline void kw_pool(struct kw_queue *queue, __u32 node, __u64 now, __u32 rate)
{
	__u64 *backlog = &backlogs[node & (KW_NODES_MAX - 1)];
	__u64 at = queue->tick * rule.tick, said = *(volatile __u64 *)backlog;
	__u64 done = (said > at ? said : at) + queue->sent / rate, alone = at + queue->waiting / rate;

	/* What a node has told is more than what has been sent to it if others send to it, too. */
	if (done < alone)
		done = alone;
	if (done > now + KW_BACKLOG_MAX)
		done = now + KW_BACKLOG_MAX;
	/* When another one has just been here, this is said in the next tick. */
	if (__sync_val_compare_and_swap(backlog, said, done) == said)
		queue->sent = 0;
	queue->waiting = done > now ? (done - now) * rate : 0;
}

/* Lets go what a node has served since it was last looked at. */
static __always_inline void kw_leak(struct kw_own *own, struct kw_queue *queue, __u32 node)
{
	__u64 tick = own->tick, halvings = tick / KW_HALVED_EVERY - queue->tick / KW_HALVED_EVERY;
	__u32 rate = kw_report(node)->rate;

	if (rate && rule.tick) {
		kw_pool(queue, node, tick * rule.tick, rate);
	} else {
		queue->waiting = halvings < 64 ? queue->waiting >> halvings : 0;
		queue->sent = 0;
	}
	queue->tick = tick;
}

/*
 * The same apart from the look, since between two looks there seldom is a tick; a function of its
 * own to the verifier.
 */
__noinline int kw_leak_apart(struct kw_own *own, __u32 node)
{
	if (own)
		kw_leak(own, &own->queues[node & (KW_NODES_MAX - 1)], node);
	return 0;
}

/*
 * What waits at a node, as predicted for the tick in which this processor last asked the clock. So
 * no packet has to look at the time, and none at more nodes than it is about.
 */
static __always_inline struct kw_queue *kw_queue(struct kw_own *own, __u32 node)
{
	struct kw_queue *queue = &own->queues[node & (KW_NODES_MAX - 1)];

	if (queue->tick != own->tick)
		kw_leak_apart(own, node);
	return queue;
}

/* A request goes to a node, by its id as on the wire. */
static __always_inline void kw_sent(struct kw_own *own, __be16 id)
{
	struct kw_queue *queue;

	if (rule.hot != KW_CHOOSE_PREDICTED)
		return;
	queue = kw_queue(own, bpf_ntohs(id));
	queue->waiting += KW_REQUEST;
	queue->sent += KW_REQUEST;
}

/* A write goes along its chain. */
static __always_inline void kw_sent_along(struct kw_own *own, const struct kw_row *row)
{
	if (rule.hot != KW_CHOOSE_PREDICTED)
		return;
	for (int i = 0; i < KW_CHAIN_MAX && i < row->chain_len; i++)
		kw_sent(own, *(__be16 *)(void *)(row->chain + 2 * i));
}

/*
 * What a reply says that its node can serve: one that leaves the request's chain in it does not
 * know.
 */
static __always_inline __u32 kw_rate_of(const struct kw_header *kw)
{
	return kw->chain_len ? 0 : bpf_ntohl(KW_U32((void *)kw + KW_RATE_AT));
}

/*
 * What was said once is not believed for ever. A bank begins with what is said in it, so that in a
 * rest nothing is forgotten.
 */
static __always_inline void kw_note_rate(const struct kw_own *own, __u32 rate)
{
	__u32 bank = own->tick * rule.tick >> KW_WINDOW_BITS;
	__u32 last = *(volatile __u32 *)&fastest.bank;

	if (!rate)
		return;
	if ((__s32)(bank - last) > 0 &&
	    __sync_val_compare_and_swap(&fastest.bank, last, bank) == last) {
		fastest.before = fastest.now;
		fastest.now = rate;
	} else if (fastest.now < rate) {
		fastest.now = rate;
	}
}

/* A reply has come from a node. */
static __always_inline void kw_answered(struct kw_own *own, const struct kw_header *kw, __u32 node)
{
	__u32 said = kw_rate_of(kw), rate = said > KW_RATE_MAX ? 0 : said;
	struct kw_report *report = kw_report(node);
	__u64 told = bpf_ntohs(kw->load) * KW_REQUEST;
	struct kw_queue *queue;

	own->totals.doubted += said != rate;
	report->load = bpf_ntohs(kw->load) + 1;
	if (rule.hot != KW_CHOOSE_PREDICTED)
		return;
	queue = kw_queue(own, node); /* By the rate that it said before. */
	if (report->rate != rate)
		report->rate = rate;
	kw_note_rate(own, rate);
	/* What is said of copies answers no request. */
	if (!rate && kw->op < KW_OP_HOT_COPIED)
		queue->waiting = queue->waiting > KW_REQUEST ? queue->waiting - KW_REQUEST : 0;
	if (queue->waiting < told)
		queue->waiting = told;
}

/* What the fastest node can serve in a second; 1 if none says it. */
static __always_inline __u64 kw_fastest(void)
{
	__u32 now = *(volatile __u32 *)&fastest.now, before = *(volatile __u32 *)&fastest.before;
	__u32 most = now > before ? now : before;

	return most ? most : 1;
}

/* What a node can serve; one that does not say it passes for one of the fastest. */
static __always_inline __u64 kw_serves(__u32 node)
{
	__u32 rate = kw_report(node)->rate;

	return rate ? rate : kw_fastest();
}

/* What a node counts for among those that are looked at: half of the fastest at least. */
static __always_inline __u64 kw_counts(__u32 node)
{
	__u64 rate = kw_serves(node), half = (kw_fastest() + 1) / 2;

	return rate < half ? half : rate;
}

/*
 * How much a node has to do, by the order's measure: predicted, in how many nanoseconds it would
 * have served one more request. A function of its own to the verifier: it is asked in loops, and
 * their turns are alike then.
 */
__noinline __u64 kw_busy(struct kw_own *own, __u32 node)
{
	struct kw_queue *queue;

	if (!own)
		return 0;
	if (rule.hot == KW_CHOOSE_REPORTED)
		return kw_report(node)->load;
	queue = &own->queues[node & (KW_NODES_MAX - 1)];
	if (queue->tick != own->tick)
		kw_leak(own, queue, node);
	return (queue->waiting + KW_REQUEST) / kw_serves(node);
}

#endif /* KEYWAY_QUEUE_H */
