/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Writes of keys on trips: section 9 of spec/protocol.md, as crates/switch has it in `roam`, `trip`
 * and `spread`. Packets and what passes the switch's sockets are given their stamps here alone.
 *
 * The loader makes `rule.order` odd before it changes rows and trips of keys that stay, and even
 * when all is as the new order says; only then comes the moment of that order. A write that is sent
 * on a trip was stamped before `rule.order` was found to be even and the one that it began with: so
 * the row was whole, and whoever sends a copy home under the moment of a later order has seen the
 * stamp.
 */
#ifndef KEYWAY_TRIP_H
#define KEYWAY_TRIP_H

#include "hot.h"
#include "rewrite.h"
#include "stamps.h"

/* A write, and what it is given. */
struct kw_write {
	struct kw_request	who;
	struct kw_stamp		stamp;		/* Without a chain: it goes home, with the version. */
	__u64			moment;		/* The switch's, before anything was looked at. */
	__u64			order;
	__be64			first_sent;	/* The moment at which it was first sent. */
	struct kw_hot_key	key;
	__u32			lag;
	bool			must_reach;	/* A way has to be known to the first of the chain. */
	bool			again;		/* The stamp is not new. */
	bool			crowded;	/* There is no room for a stamp of it. */
};

/* The switch's moment. To be read before a stamp is looked for. */
static __always_inline __u64 kw_moment(void)
{
	return *(const volatile __u64 *)&rule.moment;
}

static __always_inline __u64 kw_order(void)
{
	return *(const volatile __u64 *)&rule.order;
}

/* Whether a write that may roam has to be looked at: a key is on a trip, or was. */
static __always_inline bool kw_roams(__u64 moment)
{
	const void *clients = (const void *)&roaming.clients + kw_after(moment);

	return *(const volatile __u8 *)&rule.roams || *(const volatile __u64 *)clients;
}

static __always_inline struct kw_trip *kw_trip(const struct kw_write *w)
{
	return bpf_map_lookup_elem(&trips, &w->key);
}

static __always_inline __u64 kw_begun(const struct kw_trip *trip)
{
	return *(const volatile __u64 *)&trip->begun;
}

/*
 * Nodes of a key's row of places that have little to do: those of the chain of a write, and readers
 * that it is copied to. 0, or there are not enough for the chain.
 */
__noinline int kw_choose_chain(const struct kw_hot *hot, struct kw_own *own, struct kw_stamp *to)
{
	__u64 taken = 0;
	int picked;

	if (!hot || !own || !to)
		return -1;
	/* In the places that stay free: nobody. */
	KW_U64(to->chain) = ~0ULL;
	KW_U64(to->chain + 8) = ~0ULL;
	for (int i = 0; i < KW_CHAIN_MAX && i < hot->chosen; i++) {
		picked = kw_pick(hot, taken, 0, own, KW_OF_WRITES);
		if (picked < 0) {
			if (i < hot->replicas)
				return -1;
			break;
		}
		taken |= 1ULL << (picked & (KW_HOT_WINDOW_MAX - 1));
		*(__be16 *)(void *)(to->chain + 2 * i) = bpf_htons(kw_picked(picked));
	}
	to->chain_len = hot->replicas;
	return 0;
}

/* The node that a stamped write goes to, if it is in the node table. */
static __always_inline const struct kw_node *kw_first(const struct kw_stamp *stamp)
{
	return kw_known(bpf_ntohs(*(__be16 *)(void *)stamp->chain));
}

/* Has the write no stamp, and gets none, it goes home. */
#define KW_NOT_GIVEN	(-2)

/*
 * Chooses a chain for a write: 0, or what becomes of the write. In line: the verifier takes eight
 * functions inside each other and no more, and what chooses is called from deep down.
 */
static __always_inline int kw_give_chain(struct kw_write *w, const struct kw_hot *hot,
				    const struct kw_trip *trip, struct kw_own *own)
{
	if (*(const volatile __u64 *)&trip->next > *(const volatile __u64 *)&trip->last ||
	    kw_choose_chain(hot, own, &w->stamp))
		return KW_NOT_GIVEN;
	if (w->must_reach) {
		const struct kw_node *first = kw_first(&w->stamp);

		if (first && !first->ifindex)
			return KW_TO_KERNEL;
	}
	/* The row was whole. What comes of it is noted only then. */
	kw_fence(own);
	return w->order & 1 || kw_order() != w->order ? KW_DROP_CONTENDED : 0;
}

/* Gives a write a version that nobody else is given: whether there was one left. */
static __always_inline bool kw_give_version(struct kw_write *w, struct kw_trip *trip)
{
	__u64 version = __sync_fetch_and_add(&trip->next, 1);

	if (version > *(const volatile __u64 *)&trip->last)
		return false;
	w->stamp.trip = trip->number;
	w->stamp.version = bpf_cpu_to_be64(version);
	w->stamp.guard = kw_guard(&w->who, &w->stamp);
	return true;
}

/*
 * Gives a write that has none a stamp: 0, or what becomes of the write. A function of its own to the
 * verifier, as `kw_roam` is.
 */
__noinline int kw_give(struct kw_write *w, const struct kw_hot *hot, struct kw_trip *trip,
		       struct kw_own *own)
{
	struct kw_roamer *roamer;
	int fate;

	if (!w || !hot || !trip || !own)
		return KW_NOT_GIVEN;
	fate = kw_give_chain(w, hot, trip, own);
	if (fate)
		return fate;
	roamer = kw_roamer_made(&w->who);
	if (!roamer)
		return KW_NOT_GIVEN;
	if (bpf_be64_to_cpu(w->who.seq) < kw_low(roamer))
		return KW_DROP_STALE_REQUEST;
	if (!kw_give_version(w, trip))
		return KW_NOT_GIVEN;
	fate = bpf_map_update_elem(&stamps, &w->who, &w->stamp, BPF_NOEXIST);
	if (fate == -KW_EEXIST)
		return KW_DROP_CONTENDED;
	if (fate) {
		kw_note_full(&roaming.stamps_full);
		return KW_NOT_GIVEN;
	}
	/* If it had one before that was let go, the mark is above it. */
	kw_fence(own);
	return bpf_be64_to_cpu(w->who.seq) < kw_low(roamer) ? KW_DROP_STALE_REQUEST : 0;
}

static __always_inline void kw_begin_write(struct kw_write *w, const struct kw_header *kw,
					   struct kw_own *own)
{
	w->who.client = KW_U64(&kw->client);
	w->who.seq = KW_U64(&kw->seq);
	w->first_sent = KW_U64((void *)kw + KW_MOMENT_AT);
	w->key.keyhash = KW_U64(&kw->keyhash);
	w->key.keyspace = kw->keyspace;
	w->lag = bpf_ntohs(kw->lag);
	w->moment = kw_moment();
	w->order = kw_order();
	kw_fence(own);
}

/*
 * What becomes of a write that may roam: it is dropped for a reason, left to the kernel, or goes on
 * a trip if it has a chain then, else home. `hot` is what is known of its key, if that is hot.
 */
__noinline int kw_roam(const struct kw_hot *hot, struct kw_own *own, struct kw_write *w)
{
	int found = KW_NO_STAMP, fate;
	struct kw_roamer *roamer;
	struct kw_trip *trip;
	__u64 seq, begun;

	if (!own || !w)
		return KW_DROP_CONTENDED;
	trip = hot && hot->replicas ? kw_trip(w) : NULL;
	roamer = kw_roamer(w->who.client);
	seq = bpf_be64_to_cpu(w->who.seq);
	if (roamer) {
		if (!kw_hear(roamer, w->who.client, seq > w->lag ? seq - w->lag : 0))
			return KW_DROP_CONTENDED;
		found = kw_stamp_of(&w->who, &w->stamp);
		kw_fence(own);
		if (seq < kw_low(roamer))
			return KW_DROP_STALE_REQUEST;
	}
	if (found == KW_HALF_READ)
		return KW_DROP_CONTENDED;
	w->again = found == KW_STAMPED;
	if (!w->again) {
		begun = trip ? kw_begun(trip) : 0;
		fate = KW_NOT_GIVEN;
		if (begun && bpf_be64_to_cpu(w->first_sent) >= begun)
			fate = kw_give(w, hot, trip, own);
		if (fate == KW_NOT_GIVEN) {
			w->crowded = begun && kw_crowded(roamer != NULL);
			w->stamp.version = 0;
			w->stamp.chain_len = 0;
			return 0;
		}
		if (fate)
			return fate;
	}
	if (!trip || trip->number != w->stamp.trip) {
		w->stamp.chain_len = 0;
		return 0;
	}
	kw_fence(own);
	return w->order & 1 || kw_order() != w->order ? KW_DROP_CONTENDED : 0;
}

/* The header of a write that goes on a trip, and what is to be remembered of that. */
static __always_inline void kw_stamp_trip(struct kw_header *kw, const struct kw_write *w,
					  struct kw_own *own)
{
	const struct kw_stamp *stamp = &w->stamp;

	kw->hop_flags = KW_HOP_FLAG_ROAM;
	KW_U64((void *)kw + KW_TRIP_AT) = stamp->trip;
	KW_U64(&kw->object_version) = stamp->version;
	KW_U64(kw->chain) = KW_U64(stamp->chain);
	KW_U64(kw->chain + 8) = KW_U64(stamp->chain + 8);
	kw->chain_len = stamp->chain_len;
	own->totals.roamed[w->again]++;
	for (int i = 0; i < KW_CHAIN_MAX; i++) {
		__be16 id = *(__be16 *)(void *)(stamp->chain + 2 * i);

		if (id != bpf_htons(KW_NOBODY))
			kw_sent(own, id);
	}
}

/* The moment of a trip that begins, if there is one left before the next order; else 0. */
static __always_inline __u64 kw_next_moment(void)
{
	for (int i = 0; i < KW_RAISE_MAX; i++) {
		__u64 moment = kw_moment(), next = moment + 1;

		if (next >> KW_MOMENT_TRIPS_BITS != moment >> KW_MOMENT_TRIPS_BITS)
			return 0;
		if (__sync_val_compare_and_swap(&rule.moment, moment, next) == moment)
			return next;
	}
	return 0;
}

/* The LEAVE of this version is committed everywhere: the trip begins, unless it has. */
static __always_inline void kw_begin(struct kw_trip *trip, __u64 leave)
{
	__u64 last = leave + KW_TRIP_VERSIONS, moment;

	/* One above the last is to be a version, too: RETURN's. */
	if (kw_begun(trip) || leave > KW_VERSION_MAX || last >= KW_VERSION_MAX)
		return;
	/* Whoever else comes here at the same time says the same version. */
	__sync_lock_test_and_set(&trip->last, last);
	__sync_val_compare_and_swap(&trip->next, 0, leave + 1);
	moment = kw_next_moment();
	if (moment)
		__sync_val_compare_and_swap(&trip->begun, 0, moment);
}

/* Gives a write another stamp in the place of that of an older trip. */
static __always_inline void kw_give_anew(struct kw_write *w, const struct kw_hot *hot,
					 struct kw_trip *trip, struct kw_own *own)
{
	struct kw_roamer *roamer = kw_roamer(w->who.client);

	if (!roamer || !kw_is_there(roamer, w->who.client) ||
	    bpf_be64_to_cpu(w->who.seq) < kw_low(roamer) ||
	    __sync_val_compare_and_swap(&roamer->busy, 0, 1))
		return;
	/* Alone from here on: nobody else may have given one meanwhile. */
	if (kw_stamp_of(&w->who, &w->stamp) == KW_STAMPED &&
	    bpf_be64_to_cpu(w->stamp.trip) < bpf_be64_to_cpu(trip->number) &&
	    !kw_give_chain(w, hot, trip, own) && kw_give_version(w, trip))
		bpf_map_update_elem(&stamps, &w->who, &w->stamp, BPF_EXIST);
	__sync_lock_test_and_set(&roamer->busy, 0);
}

/* The head's word that a write was never applied at home, and that the trip has begun. */
static __noinline void kw_away(const struct kw_header *kw, const struct kw_hot *hot,
			       struct kw_own *own)
{
	struct kw_write w = {};
	struct kw_trip *trip;

	kw_begin_write(&w, kw, own);
	trip = kw_trip(&w);
	if (!trip || trip->number != KW_U64((void *)kw + KW_STAY_AT))
		return;
	kw_begin(trip, bpf_be64_to_cpu(KW_U64(&kw->object_version)));
	if (!kw_begun(trip))
		return;
	if (bpf_map_lookup_elem(&stamps, &w.who))
		kw_give_anew(&w, hot, trip, own);
	else
		kw_give(&w, hot, trip, own);
}

#endif /* KEYWAY_TRIP_H */
