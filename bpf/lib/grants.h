/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The table of grants: section 9 of spec/protocol.md, as crates/switch has it in `grants`.
 *
 * There a client's grants are looked at under a lock. Here:
 *
 * - A request's grant is put in only if it has none, so that all copies have one.
 * - What has ended goes: its client's low-water mark is raised first. So whoever finds no grant, or
 *   has put one in, looks at the mark once more: if it is not above the request, no grant of it was
 *   let go before.
 * - The memory of what goes may become another's at once. A grant carries a sum over itself and its
 *   request, by which it is known that it was not read while that happened.
 * - A client that was silent is forgotten by the loader: it sets `heard` to zero, waits until no
 *   program runs that began before, and takes the client out. `heard` of an element that comes in
 *   is zero as well, until the rest of it is there. So who sees that it is not zero, and then the
 *   client's own id, has that client's element, and it stays for as long as the program runs.
 */
#ifndef KEYWAY_GRANTS_H
#define KEYWAY_GRANTS_H

#include "count.h"
#include "queue.h"

/* Numbers below the low-water mark whose grants a request of their client lets go. */
#define KW_LET_GO_MAX	4

/* What lies further below than this is left to the loader. */
#define KW_LET_GO_WITHIN	64

/* Times that a word is tried to be raised: each time somebody else has changed it meanwhile. */
#define KW_RAISE_MAX	16

#define KW_EEXIST	17

enum kw_found {
	KW_NO_GRANT	= 0,
	KW_GRANTED	= 1,
	KW_HALF_READ	= 2,
};

/* Zero, of which the compiler and the processor know only that it depends on what was read. */
static __always_inline __u64 kw_after(__u64 seen)
{
	asm volatile("%0 &= 0" : "+r"(seen));
	return seen;
}

/* All processors see what this one did before, before they see what it does after. */
static __always_inline void kw_fence(struct kw_own *own)
{
	__sync_lock_test_and_set(&own->fence, 1);
}

static __always_inline struct kw_grantee *kw_grantee(__be64 client)
{
	return bpf_map_lookup_elem(&grantees, &client);
}

/* Whether an element is that of this client, and will be for as long as this program runs. */
static __always_inline bool kw_is_there(struct kw_grantee *grantee, __be64 client)
{
	__u64 heard = *(volatile __u64 *)&grantee->heard;

	return heard && *(volatile __be64 *)((void *)&grantee->client + kw_after(heard)) == client;
}

static __always_inline __u64 kw_low(const struct kw_grantee *grantee)
{
	return *(const volatile __u64 *)&grantee->low;
}

/* Raises a client's low-water mark: whether that was done. */
static __always_inline bool kw_raise_low(struct kw_grantee *grantee, __u64 low)
{
	for (int i = 0; i < KW_RAISE_MAX; i++) {
		__u64 was = kw_low(grantee);

		if (was >= low || __sync_val_compare_and_swap(&grantee->low, was, low) == was)
			return true;
	}
	return false;
}

/* Whether all requests of a client that is not in `grantees` have ended, by its own word. */
static __always_inline bool kw_has_ended(__be64 client)
{
	return bpf_map_lookup_elem(&ended, &client);
}

/* A client says goodbye: all its requests have ended. The loader takes its grants out. */
static __noinline int kw_end(__be64 client)
{
	struct kw_grantee *grantee = kw_grantee(client);

	if (grantee && kw_is_there(grantee, client))
		kw_raise_low(grantee, ~0ULL);
	return 0;
}

/* Lets go some of the grants of requests that have ended. */
static __always_inline void kw_let_go(struct kw_grantee *grantee, __be64 client)
{
	__u64 low = kw_low(grantee), gone = *(volatile __u64 *)&grantee->gone, from = gone, to;
	struct kw_request ended = { .client = client };

	if (gone >= low)
		return;
	if (low - gone > KW_LET_GO_WITHIN)
		from = low - KW_LET_GO_WITHIN;
	to = low - from > KW_LET_GO_MAX ? from + KW_LET_GO_MAX : low;
	if (__sync_val_compare_and_swap(&grantee->gone, gone, to) != gone)
		return; /* Somebody else does it. */
	for (int i = 0; i < KW_LET_GO_MAX && from < to; i++, from++) {
		ended.seq = bpf_cpu_to_be64(from);
		bpf_map_delete_elem(&grants, &ended);
	}
}

/* There is no room for something, in this pass. */
static __always_inline void kw_note_full(__u64 *full)
{
	*(volatile __u64 *)full = *(const volatile __u64 *)&rule.pass;
}

/* Whether there is no room for a grant of this client, as far as was noticed. */
static __always_inline bool kw_crowded(bool known)
{
	__u64 pass = *(const volatile __u64 *)&rule.pass;

	return *(const volatile __u64 *)&delegated.grants_full == pass ||
	       (!known && *(const volatile __u64 *)&delegated.clients_full == pass);
}

/* A client is there, and all its requests below `low` have ended: whether that was noted. */
static __noinline bool kw_hear(struct kw_grantee *grantee, __be64 client, __u64 low)
{
	__u64 pass = *(volatile __u64 *)&rule.pass, heard = *(volatile __u64 *)&grantee->heard;

	/* Whoever else has changed it may have set it to zero. */
	if (heard && heard != pass)
		__sync_val_compare_and_swap(&grantee->heard, heard, pass);
	if (!kw_is_there(grantee, client) || !kw_raise_low(grantee, low))
		return false;
	kw_let_go(grantee, client);
	return true;
}

/* The sum over a grant and its request: no two of those are the same, so hardly two sums are. */
static __always_inline __u32 kw_guard(const struct kw_request *who, const struct kw_grant *grant)
{
	__u64 sum = who->client ^ grant->chain_len;

	sum = (sum ^ sum >> 29) * 0x9e3779b97f4a7c15ULL + who->seq;
	sum = (sum ^ sum >> 29) * 0x9e3779b97f4a7c15ULL + grant->delegation;
	sum = (sum ^ sum >> 29) * 0x9e3779b97f4a7c15ULL + grant->version;
	sum = (sum ^ sum >> 29) * 0x9e3779b97f4a7c15ULL + KW_U64(grant->chain);
	sum = (sum ^ sum >> 29) * 0x9e3779b97f4a7c15ULL + KW_U64(grant->chain + 8);
	sum = (sum ^ sum >> 29) * 0x9e3779b97f4a7c15ULL;
	return sum >> 32;
}

/* Copies the grant of a request, if it has one. */
static __noinline int kw_grant_of(const struct kw_request *who, struct kw_grant *to)
{
	const volatile struct kw_grant *found = bpf_map_lookup_elem(&grants, who);

	if (!found)
		return KW_NO_GRANT;
	to->delegation = found->delegation;
	to->version = found->version;
	KW_U64(to->chain) = *(const volatile __u64 *)found->chain;
	KW_U64(to->chain + 8) = *(const volatile __u64 *)(found->chain + 8);
	to->chain_len = found->chain_len;
	to->guard = found->guard;
	return to->guard == kw_guard(who, to) ? KW_GRANTED : KW_HALF_READ;
}

/*
 * The element of a client that may be new. NULL if there is no room, or somebody else is just
 * making it: then nothing can be noted.
 */
static __noinline struct kw_grantee *kw_grantee_made(const struct kw_request *who)
{
	struct kw_grantee fresh = { .client = who->client, .gone = bpf_be64_to_cpu(who->seq) };
	struct kw_grantee *grantee = kw_grantee(fresh.client);
	int failed;

	if (grantee)
		return kw_is_there(grantee, fresh.client) ? grantee : NULL;
	if (kw_has_ended(fresh.client))
		return NULL;
	/* Before whoever gives the grant looks whether its order is still the present one. */
	__sync_fetch_and_add(&delegated.clients, 1);
	failed = bpf_map_update_elem(&grantees, &fresh.client, &fresh, BPF_NOEXIST);
	if (failed) {
		__sync_fetch_and_sub(&delegated.clients, 1);
		if (failed != -KW_EEXIST)
			kw_note_full(&delegated.clients_full);
		return NULL;
	}
	grantee = kw_grantee(fresh.client);
	if (grantee)
		__sync_val_compare_and_swap(&grantee->heard, 0, *(volatile __u64 *)&rule.pass);
	return grantee;
}

#endif /* KEYWAY_GRANTS_H */
