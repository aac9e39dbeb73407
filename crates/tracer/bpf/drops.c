// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// Counts the datagrams of one probe that the kernel drops, by the device at which that happens
// and the reason that the kernel gives. They are known by what they carry: the last bytes of
// each are those of its probe, whatever headers a tunnel has put before them.
//
// Built by .ci/bpf; the object is checked in, so that loading needs no compiler.

#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "kernel.h"

// As in src/drops.rs.
struct probe {
	__u64 key; // what its payload begins with
	__u64 bytes; // of its payload
};

struct place {
	__u32 namespace;
	__u32 device; // 0 where there is none
	__u32 reason;
	__u32 unused;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct probe);
} probes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 256);
	__type(key, struct place);
	__type(value, __u64);
} drops SEC(".maps");

static __always_inline int dropped(const struct sk_buff *skb, __u32 reason)
{
	const struct probe *probe;
	const struct task_struct *task;
	const struct net_device *device;
	const struct sock *sk;
	struct place place = {};
	__u64 once = 1;
	__u64 key = 0;
	__s64 address = 0;
	__u32 first = 0;
	__u64 *count;

	probe = bpf_map_lookup_elem(&probes, &first);
	if (!probe || skb->tail < probe->bytes)
		return 0;
	if (bpf_probe_read_kernel(&key, sizeof(key), skb->head + skb->tail - probe->bytes) ||
	    key != probe->key)
		return 0;
	device = skb->dev;
	sk = skb->sk;
	bpf_probe_read_kernel(&address, sizeof(address), &skb->dev);
	if (address > 0) {
		// No address of the kernel: in the queue of its socket a datagram has notes of UDP
		// there. It was found to be wrong by whoever reads it.
		task = (const struct task_struct *)bpf_get_current_task();
		place.namespace = BPF_CORE_READ(task, nsproxy, net_ns, ns.inum);
	} else if (device) {
		place.namespace = namespace_at(device);
		place.device = device->ifindex;
	} else if (sk) {
		// Before a device is chosen.
		place.namespace = namespace_of(sk);
	}
	place.reason = reason;
	count = bpf_map_lookup_elem(&drops, &place);
	if (count)
		__sync_fetch_and_add(count, 1);
	else
		bpf_map_update_elem(&drops, &place, &once, BPF_NOEXIST);
	return 0;
}

// struct sk_buff *, void *, enum skb_drop_reason, struct sock *
SEC("tp_btf/kfree_skb")
int on_dropped(__u64 *context)
{
	return dropped((const struct sk_buff *)context[0], (__u32)context[2]);
}

// Before Linux 5.17: struct sk_buff *, void *
SEC("tp_btf/kfree_skb")
int on_dropped_for_no_reason(__u64 *context)
{
	return dropped((const struct sk_buff *)context[0], 0);
}

char terms[] SEC("license") = "GPL";
