/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The other end of a port: counts the datagrams that arrive, and drops them. */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} arrived SEC(".maps");

SEC("xdp")
int sink(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ethhdr *eth = data;
	__u64 *count;
	__u32 zero = 0;

	/* Neighbours are asked and answered. */
	if ((void *)(eth + 1) > end || eth->h_proto != bpf_htons(ETH_P_IP))
		return XDP_PASS;
	count = bpf_map_lookup_elem(&arrived, &zero);
	if (count)
		(*count)++;
	return XDP_DROP;
}

char LICENSE[] SEC("license") = "GPL";
