// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// What the programs look up, and what they count. The loader writes the maps
// byte by byte: the layout here is the one in src/network/cilium/tables.rs.
#pragma once

#include "address.h"

struct endpoint_key {
	struct address address;
	__u8 family;
	__u8 unused;
	__u16 cluster;
};

// A pod of this node.
struct endpoint {
	__u32 ifindex; // the node's end of its veth
	__u8 mac[ETH_ALEN];
	__u8 node_mac[ETH_ALEN];
};

struct remote_key {
	__u32 prefix_length; // in bits, of all that follows
	__u16 cluster;
	__u8 unused;
	__u8 family;
	struct address address;
};

// Bits of `remote_key` before the address that are always compared.
#define REMOTE_STATIC_BITS 32

// Where the pods of another node are.
struct remote {
	__u32 identity;
	struct address node;
	__u8 has_tunnel;
	__u8 unused[3];
};

// The hardware address of the node's end of a veth, by its index.
struct port {
	__u8 mac[ETH_ALEN];
	__u8 unused[2];
};

// What a pod's device carried, by the index of the node's end. Kernels before
// 6.8 do not count what bpf_redirect_peer puts into a device.
struct carried {
	__u64 from_pod_packets;
	__u64 from_pod_bytes;
	__u64 to_pod_packets;
	__u64 to_pod_bytes;
};

#define MOST_DEVICES 64

struct map SEC("maps") endpoints = {
	.type = BPF_MAP_TYPE_HASH,
	.key_size = sizeof(struct endpoint_key),
	.value_size = sizeof(struct endpoint),
	.max_entries = 1024,
};

struct map SEC("maps") remotes = {
	.type = BPF_MAP_TYPE_LPM_TRIE,
	.key_size = sizeof(struct remote_key),
	.value_size = sizeof(struct remote),
	.max_entries = 1024,
	.flags = BPF_F_NO_PREALLOC,
};

struct map SEC("maps") ports = {
	.type = BPF_MAP_TYPE_ARRAY,
	.key_size = sizeof(__u32),
	.value_size = sizeof(struct port),
	.max_entries = MOST_DEVICES,
};

struct map SEC("maps") counters = {
	.type = BPF_MAP_TYPE_PERCPU_ARRAY,
	.key_size = sizeof(__u32),
	.value_size = sizeof(struct carried),
	.max_entries = MOST_DEVICES,
};

static __always_inline const struct endpoint *find_endpoint(const struct address *to, __u8 family)
{
	struct endpoint_key key = { .address = *to, .family = family };

	return bpf_map_lookup_elem(&endpoints, &key);
}

static __always_inline const struct remote *find_remote(const struct address *to, __u8 family)
{
	struct remote_key key = {
		.prefix_length = REMOTE_STATIC_BITS + (family == FAMILY_V6 ? 128 : 32),
		.family = family,
		.address = *to,
	};

	return bpf_map_lookup_elem(&remotes, &key);
}

static __always_inline void count(__u32 ifindex, bool from_pod, __u32 bytes)
{
	struct carried *carried = bpf_map_lookup_elem(&counters, &ifindex);

	if (!carried)
		return;
	if (from_pod) {
		carried->from_pod_packets += 1;
		carried->from_pod_bytes += bytes;
	} else {
		carried->to_pod_packets += 1;
		carried->to_pod_bytes += bytes;
	}
}
