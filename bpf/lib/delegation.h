/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Writes of delegated keys: section 9 of spec/protocol.md, as crates/switch has it in `delegate`,
 * `delegation` and `selection`. Packets and what passes the switch's sockets are given their grants
 * here alone.
 *
 * The loader makes `rule.order` odd before it changes rows and delegations of keys that stay,
 * and even when all is as the new order says; only then comes the clock of that order. A
 * write that is sent under a delegation was stamped before `rule.order` was found to be even and
 * the one that it began with: so the row was whole, and whoever sends a copy home under the
 * clock of a later order has seen the grant.
 */
#ifndef KEYWAY_DELEGATION_H
#define KEYWAY_DELEGATION_H

#include "hot.h"
#include "rewrite.h"
#include "grants.h"

/* A write, and what it is given. */
struct kw_write {
	struct kw_request	who;
	struct kw_grant		grant;		/* Without a chain: it goes home, with the version. */
	__u64			directory_clock;		/* The switch's, before anything was looked at. */
	__u64			order;
	__be64			first_sent;	/* The directory_clock at which it was first sent. */
	struct kw_hot_key	key;
	__u32			lag;
	bool			must_reach;	/* A way has to be known to the first of the chain. */
	bool			again;		/* The grant is not new. */
	bool			crowded;	/* There is no room for a grant of it. */
};

/* The switch's clock. To be read before a grant is looked for. */
static __always_inline __u64 kw_directory_clock(void)
{
	return *(const volatile __u64 *)&rule.directory_clock;
}

static __always_inline __u64 kw_order(void)
{
	return *(const volatile __u64 *)&rule.order;
}

/* Whether a write that may be delegated has to be looked at: a key is delegated, or was. */
static __always_inline bool kw_delegates(__u64 directory_clock)
{
	const void *clients = (const void *)&delegated.clients + kw_after(directory_clock);

	return *(const volatile __u8 *)&rule.delegates || *(const volatile __u64 *)clients;
}

static __always_inline struct kw_delegation *kw_delegation(const struct kw_write *w)
{
	return bpf_map_lookup_elem(&delegations, &w->key);
}

static __always_inline __u64 kw_begun(const struct kw_delegation *delegation)
{
	return *(const volatile __u64 *)&delegation->begun;
}

/*
 * Nodes of a key's candidates that have little to do: those of the chain of a write, and readers
 * that it is copied to. 0, or there are not enough for the chain.
 */
__noinline int kw_choose_chain(const struct kw_hot *hot, struct kw_own *own, struct kw_grant *to)
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
		taken |= 1ULL << (picked & (KW_HOT_BANK_MAX - 1));
		*(__be16 *)(void *)(to->chain + 2 * i) = bpf_htons(kw_picked(picked));
	}
	to->chain_len = hot->replicas;
	return 0;
}

/* The node that a stamped write goes to, if it is in the node table. */
static __always_inline const struct kw_node *kw_first(const struct kw_grant *grant)
{
	return kw_known(bpf_ntohs(*(__be16 *)(void *)grant->chain));
}

/* Has the write no grant, and gets none, it goes home. */
#define KW_NOT_GIVEN	(-2)

/*
 * Chooses a chain for a write: 0, or what becomes of the write. In line: the verifier takes eight
 * functions inside each other and no more, and what chooses is called from deep down.
 */
static __always_inline int kw_give_chain(struct kw_write *w, const struct kw_hot *hot,
				    const struct kw_delegation *delegation, struct kw_own *own)
{
	if (*(const volatile __u64 *)&delegation->next > *(const volatile __u64 *)&delegation->last ||
	    kw_choose_chain(hot, own, &w->grant))
		return KW_NOT_GIVEN;
	if (w->must_reach) {
		const struct kw_node *first = kw_first(&w->grant);

		if (first && !first->ifindex)
			return KW_TO_KERNEL;
	}
	/* The row was whole. What comes of it is noted only then. */
	kw_fence(own);
	return w->order & 1 || kw_order() != w->order ? KW_DROP_CONTENDED : 0;
}

/* Gives a write a version that nobody else is given: whether there was one left. */
static __always_inline bool kw_give_version(struct kw_write *w, struct kw_delegation *delegation)
{
	__u64 version = __sync_fetch_and_add(&delegation->next, 1);

	if (version > *(const volatile __u64 *)&delegation->last)
		return false;
	w->grant.delegation = delegation->number;
	w->grant.version = bpf_cpu_to_be64(version);
	w->grant.guard = kw_guard(&w->who, &w->grant);
	return true;
}

/*
 * Gives a write that has none a grant: 0, or what becomes of the write. A function of its own to
 * the verifier, as `kw_delegate` is.
 */
__noinline int kw_give(struct kw_write *w, const struct kw_hot *hot,
		       struct kw_delegation *delegation, struct kw_own *own)
{
	struct kw_grantee *grantee;
	int fate;

	if (!w || !hot || !delegation || !own)
		return KW_NOT_GIVEN;
	fate = kw_give_chain(w, hot, delegation, own);
	if (fate)
		return fate;
	grantee = kw_grantee_made(&w->who);
	if (!grantee)
		return KW_NOT_GIVEN;
	if (bpf_be64_to_cpu(w->who.seq) < kw_low(grantee))
		return KW_DROP_STALE_REQUEST;
	if (!kw_give_version(w, delegation))
		return KW_NOT_GIVEN;
	fate = bpf_map_update_elem(&grants, &w->who, &w->grant, BPF_NOEXIST);
	if (fate == -KW_EEXIST)
		return KW_DROP_CONTENDED;
	if (fate) {
		kw_note_full(&delegated.grants_full);
		return KW_NOT_GIVEN;
	}
	/* If it had one before that was let go, the mark is above it. */
	kw_fence(own);
	return bpf_be64_to_cpu(w->who.seq) < kw_low(grantee) ? KW_DROP_STALE_REQUEST : 0;
}

static __always_inline void kw_begin_write(struct kw_write *w, const struct kw_header *kw,
					   struct kw_own *own)
{
	w->who.client = KW_U64(&kw->client);
	w->who.seq = KW_U64(&kw->seq);
	w->first_sent = KW_U64((void *)kw + KW_DIRECTORY_CLOCK_AT);
	w->key.keyhash = KW_U64(&kw->keyhash);
	w->key.keyspace = kw->keyspace;
	w->lag = bpf_ntohs(kw->lag);
	w->directory_clock = kw_directory_clock();
	w->order = kw_order();
	kw_fence(own);
}

/*
 * What becomes of a write that may be delegated: it is dropped for a reason, left to the kernel, or
 * is delegated if it has a chain then, else home. `hot` is what is known of its key, if that is
 * hot.
 */
__noinline int kw_delegate(const struct kw_hot *hot, struct kw_own *own, struct kw_write *w)
{
	int found = KW_NO_GRANT, fate;
	struct kw_grantee *grantee;
	struct kw_delegation *delegation;
	__u64 seq, begun;

	if (!own || !w)
		return KW_DROP_CONTENDED;
	delegation = hot && hot->replicas ? kw_delegation(w) : NULL;
	grantee = kw_grantee(w->who.client);
	seq = bpf_be64_to_cpu(w->who.seq);
	if (grantee) {
		if (!kw_hear(grantee, w->who.client, seq > w->lag ? seq - w->lag : 0))
			return KW_DROP_CONTENDED;
		found = kw_grant_of(&w->who, &w->grant);
		kw_fence(own);
		if (seq < kw_low(grantee))
			return KW_DROP_STALE_REQUEST;
	} else if (kw_has_ended(w->who.client)) {
		return KW_DROP_STALE_REQUEST;
	}
	if (found == KW_HALF_READ)
		return KW_DROP_CONTENDED;
	w->again = found == KW_GRANTED;
	if (!w->again) {
		begun = delegation ? kw_begun(delegation) : 0;
		fate = KW_NOT_GIVEN;
		if (begun && bpf_be64_to_cpu(w->first_sent) >= begun)
			fate = kw_give(w, hot, delegation, own);
		if (fate == KW_NOT_GIVEN) {
			w->crowded = begun && kw_crowded(grantee != NULL);
			w->grant.version = 0;
			w->grant.chain_len = 0;
			return 0;
		}
		if (fate)
			return fate;
	}
	if (!delegation || delegation->number != w->grant.delegation) {
		w->grant.chain_len = 0;
		return 0;
	}
	kw_fence(own);
	return w->order & 1 || kw_order() != w->order ? KW_DROP_CONTENDED : 0;
}

/* The header of a write that is delegated, and what is to be remembered of that. */
static __always_inline void kw_stamp_delegation(struct kw_header *kw, const struct kw_write *w,
					  struct kw_own *own)
{
	const struct kw_grant *grant = &w->grant;

	kw->hop_flags = KW_HOP_FLAG_GRANTED;
	KW_U64((void *)kw + KW_DELEGATION_AT) = grant->delegation;
	KW_U64(&kw->object_version) = grant->version;
	KW_U64(kw->chain) = KW_U64(grant->chain);
	KW_U64(kw->chain + 8) = KW_U64(grant->chain + 8);
	kw->chain_len = grant->chain_len;
	own->totals.delegated[w->again]++;
	for (int i = 0; i < KW_CHAIN_MAX; i++) {
		__be16 id = *(__be16 *)(void *)(grant->chain + 2 * i);

		if (id != bpf_htons(KW_NOBODY))
			kw_sent(own, id);
	}
}

/* The clock of a delegation that begins, if there is one left before the next order; else 0. */
static __always_inline __u64 kw_next_clock(void)
{
	for (int i = 0; i < KW_RAISE_MAX; i++) {
		__u64 directory_clock = kw_directory_clock(), next = directory_clock + 1;

		if (next >> KW_CLOCK_DELEGATIONS_BITS != directory_clock >> KW_CLOCK_DELEGATIONS_BITS)
			return 0;
		if (__sync_val_compare_and_swap(&rule.directory_clock, directory_clock, next) == directory_clock)
			return next;
	}
	return 0;
}

/* The DELEGATE of this version is committed everywhere: the delegation begins, unless it has. */
static __always_inline void kw_begin(struct kw_delegation *delegation, __u64 delegated_at)
{
	__u64 last = delegated_at + KW_DELEGATION_VERSIONS, directory_clock;

	/* One above the last is to be a version, too: RECALL's. */
	if (kw_begun(delegation) || delegated_at > KW_VERSION_MAX || last >= KW_VERSION_MAX)
		return;
	/* Whoever else comes here at the same time says the same version. */
	__sync_lock_test_and_set(&delegation->last, last);
	__sync_val_compare_and_swap(&delegation->next, 0, delegated_at + 1);
	directory_clock = kw_next_clock();
	if (directory_clock)
		__sync_val_compare_and_swap(&delegation->begun, 0, directory_clock);
}

/* Gives a write another grant in the place of that of an older delegation. */
static __always_inline void kw_give_anew(struct kw_write *w, const struct kw_hot *hot,
					 struct kw_delegation *delegation, struct kw_own *own)
{
	struct kw_grantee *grantee = kw_grantee(w->who.client);

	if (!grantee || !kw_is_there(grantee, w->who.client) ||
	    bpf_be64_to_cpu(w->who.seq) < kw_low(grantee) ||
	    __sync_val_compare_and_swap(&grantee->busy, 0, 1))
		return;
	/* Alone from here on: nobody else may have given one meanwhile. */
	if (kw_grant_of(&w->who, &w->grant) == KW_GRANTED &&
	    bpf_be64_to_cpu(w->grant.delegation) < bpf_be64_to_cpu(delegation->number) &&
	    !kw_give_chain(w, hot, delegation, own) && kw_give_version(w, delegation))
		bpf_map_update_elem(&grants, &w->who, &w->grant, BPF_EXIST);
	__sync_lock_test_and_set(&grantee->busy, 0);
}

/* The head's word that a write was never applied at home, and that the delegation has begun. */
static __noinline void kw_delegated(const struct kw_header *kw, const struct kw_hot *hot,
			       struct kw_own *own)
{
	struct kw_write w = {};
	struct kw_delegation *delegation;

	kw_begin_write(&w, kw, own);
	delegation = kw_delegation(&w);
	if (!delegation || delegation->number != KW_U64((void *)kw + KW_REPLY_DELEGATION_AT))
		return;
	kw_begin(delegation, bpf_be64_to_cpu(KW_U64(&kw->object_version)));
	if (!kw_begun(delegation))
		return;
	if (bpf_map_lookup_elem(&grants, &w.who))
		kw_give_anew(&w, hot, delegation, own);
	else
		kw_give(&w, hot, delegation, own);
}

#endif /* KEYWAY_DELEGATION_H */
