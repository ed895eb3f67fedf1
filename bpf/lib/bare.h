/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* In the place of sealed.h where packets are in no envelopes: nothing. */
#ifndef KEYWAY_BARE_H
#define KEYWAY_BARE_H

#include <linux/pkt_cls.h>
#include "parse.h"

static __always_inline bool kw_open(struct xdp_md *ctx, struct kw_packet *p, void *end, int *fate)
{
	(void)ctx;
	(void)p;
	(void)end;
	(void)fate;
	return true;
}

static __always_inline bool kw_open_many(struct __sk_buff *skb, struct kw_packet *p, void **end,
					 int *fate)
{
	(void)skb;
	(void)p;
	(void)end;
	(void)fate;
	return true;
}

/* XDP has dropped it: this is another one. */
static __always_inline int kw_unsound(__u32 why)
{
	(void)why;
	return TC_ACT_OK;
}

static __always_inline void kw_seal(const struct kw_packet *p)
{
	(void)p;
}

struct kw_seal {};

static __always_inline int kw_seal_parts(struct __sk_buff *skb, struct kw_seal *seal)
{
	(void)skb;
	(void)seal;
	return 0;
}

static __always_inline void kw_seal_part(const struct kw_packet *p, const struct kw_seal *seal)
{
	(void)p;
	(void)seal;
}

#endif /* KEYWAY_BARE_H */
