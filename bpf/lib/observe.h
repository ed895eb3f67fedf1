/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * What the switch observes from a reply, before it is sent on: rules H4 to H9 and D11 to D13 of
 * spec/protocol.md, as crates/switch has it in `observe`.
 */
#ifndef KEYWAY_OBSERVE_H
#define KEYWAY_OBSERVE_H

#include "hot.h"
#include "delegation.h"

/* Whether nothing was decided: the codes from the first one that asks again, known or not. */
static __always_inline bool kw_is_undecided(__u8 code)
{
	return code >= KW_CODE_STALE_EPOCH;
}

/*
 * A delegated write is acknowledged, under the version that is the floor now: whoever it was
 * stamped for holds it, or will when a read gets there, for its copies are ahead of that.
 */
static __noinline void kw_observe_delegated(const struct kw_header *kw, struct kw_hot *hot)
{
	struct kw_request who = { .client = KW_U64(&kw->client), .seq = KW_U64(&kw->seq) };
	struct kw_grant grant = {};
	__u8 holder;

	if (hot->chosen <= hot->replicas || kw_grant_of(&who, &grant) != KW_GRANTED ||
	    grant.version != KW_U64(&kw->object_version))
		return;
	holder = kw_holder_tag(bpf_be64_to_cpu(grant.version));
	for (int i = 0; i < KW_CHAIN_MAX; i++) {
		__u16 id = bpf_ntohs(*(__be16 *)(void *)(grant.chain + 2 * i));

		if (id < KW_NODES_MAX)
			kw_note_holder(hot, id, holder);
	}
}

/*
 * Whether a version is above all that there can be: under a delegation this switch alone gives them
 * out. That is counted. Most replies say the floor, and need no look at the delegation.
 */
static __always_inline bool kw_is_beyond(const struct kw_header *kw, const struct kw_hot *hot,
					 __u64 version)
{
	struct kw_hot_key key = {};
	const struct kw_delegation *delegation;
	struct kw_own *own;

	if (version > KW_VERSION_MAX)
		goto doubted;
	if (!hot->replicas || version <= *(const volatile __u64 *)&hot->floor)
		return false;
	key.keyhash = KW_U64(&kw->keyhash);
	key.keyspace = kw->keyspace;
	delegation = bpf_map_lookup_elem(&delegations, &key);
	if (!delegation || !kw_begun(delegation) || version < *(const volatile __u64 *)&delegation->next)
		return false;
doubted:
	own = kw_own();
	if (own)
		own->totals.doubted++;
	return true;
}

/*
 * Takes note of what a node says of a hot key in a reply to one key, before that is sent on: 0, or
 * the reason to drop it.
 */
static __noinline int kw_observe_hot(const struct kw_header *kw, __u32 sender)
{
	__u64 version = bpf_be64_to_cpu(KW_U64(&kw->object_version));
	struct kw_hot *hot = kw_hot(kw->keyspace, KW_U64(&kw->keyhash));
	/* A HOT_PUBLISH is what a GET would be told. */
	bool of_read = kw->op == KW_OP_GET_REPLY || kw->op == KW_OP_HOT_PUBLISH, of_this_generation;

	if (!hot)
		return 0;
	if (kw->op == KW_OP_HOT_COPIED) {
		/* What is below the floor is of no use, and would hide what it has taken since. */
		if (version >= *(volatile __u64 *)&hot->floor && !kw_is_beyond(kw, hot, version))
			kw_note_holder(hot, sender, kw_holder_tag(version));
		return 0;
	}
	of_this_generation = KW_U64((void *)kw + KW_GENERATION_AT) == hot->generation;
	if (kw->op == KW_OP_PUT_REPLY && kw->code == KW_CODE_DELEGATED) {
		struct kw_own *own = kw_own();

		if (own && hot->replicas)
			kw_delegated(kw, hot, own);
		return 0;
	}
	if (kw_is_undecided(kw->code)) {
		if (kw->code != KW_CODE_NOT_HERE || !of_read || !of_this_generation)
			return 0;
		if (!(kw->hop_flags & KW_HOP_FLAG_NEWEST)) {
			kw_note_holder(hot, sender, 0);
			return 0;
		}
		/* From the home of a delegated key: it proves, though it has no answer. */
	}
	if (kw_is_beyond(kw, hot, version))
		return 0;
	if (!kw_raise(hot, version))
		return KW_DROP_CONTENDED;
	/* Whoever answers for a delegation holds what it answers. */
	if (kw->op == KW_OP_PUT_REPLY && kw->hop_flags & KW_HOP_FLAG_GRANTED &&
	    *(volatile __u64 *)&hot->floor == version) {
		kw_note_holder(hot, sender, kw_holder_tag(version));
		kw_observe_delegated(kw, hot);
	}
	/* The branches before make sure that no processor shows this before the floor. */
	if (of_read && kw->hop_flags & KW_HOP_FLAG_NEWEST && of_this_generation && !kw_proven(hot))
		*(volatile __u32 *)&hot->proven = 1;
	return 0;
}

static __always_inline int kw_observe(const struct kw_header *kw, __u32 sender)
{
	if (!kw_may_be_hot(KW_U64(&kw->keyhash)))
		return 0;
	switch (kw->op) {
	case KW_OP_GET_REPLY:
	case KW_OP_PUT_REPLY:
	case KW_OP_DEL_REPLY:
	case KW_OP_CAS_REPLY:
	case KW_OP_INCR_REPLY:
	case KW_OP_HOT_COPIED:
	case KW_OP_HOT_PUBLISH:
		return kw_observe_hot(kw, sender);
	default:
		return 0;
	}
}

#endif /* KEYWAY_OBSERVE_H */
