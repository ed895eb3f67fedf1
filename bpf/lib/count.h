/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What happened, for people and for the controller. */
#ifndef KEYWAY_COUNT_H
#define KEYWAY_COUNT_H

#include "maps.h"

/* What this processor has for itself: there always is one. */
static __always_inline struct kw_own *kw_own(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&own, &zero);
}

static __always_inline struct kw_load *kw_load(__u32 counter)
{
	__u32 number = counter / KW_LOADS_PER_PAGE;
	struct kw_load_page *page = bpf_map_lookup_elem(&loads, &number);

	return page ? &page->of[counter % KW_LOADS_PER_PAGE] : NULL;
}

static __always_inline void kw_count_read(__u32 counter)
{
	struct kw_load *load = kw_load(counter);

	if (load)
		load->reads++;
}

static __always_inline void kw_count_write(__u32 counter)
{
	struct kw_load *load = kw_load(counter);

	if (load)
		load->writes++;
}

static __always_inline struct kw_hot_load *kw_hot_load(__u32 counter)
{
	__u32 number = counter / KW_HOT_LOADS_PER_PAGE;
	struct kw_hot_load_page *page = bpf_map_lookup_elem(&hot_loads, &number);

	return page ? &page->of[counter % KW_HOT_LOADS_PER_PAGE] : NULL;
}

/* A read of a hot key, and whether it goes to a copy. */
static __always_inline void kw_count_hot_read(__u32 counter, bool spread)
{
	struct kw_hot_load *load = kw_hot_load(counter);

	if (load) {
		load->reads++;
		load->spread += spread;
	}
}

static __always_inline void kw_count_hot_write(__u32 counter)
{
	struct kw_hot_load *load = kw_hot_load(counter);

	if (load)
		load->writes++;
}

#endif /* KEYWAY_COUNT_H */
