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

/* The load that a node reports in a reply. */
static __always_inline void kw_note_report(__u32 node, __be16 load)
{
	__u32 report = bpf_ntohs(load) + 1;

	bpf_map_update_elem(&reports, &node, &report, BPF_ANY);
}

#endif /* KEYWAY_COUNT_H */
