// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// The services of a node and their endpoints, as Cilium's maps have them
// (cilium/cilium@0040d66, bpf/lib/lb.h: a service under its address with slot 0,
// and under each slot above it one of its endpoints). The loader writes them byte
// by byte: the layout here is the one in src/dressing/services/ebpf/tables.rs.
#pragma once

#include <linux/in.h>

#include "address.h"

struct service_key {
	struct address address;
	__be16 port;
	__u16 slot;
	__u8 protocol;
	__u8 unused[3];
};

struct service {
	__u32 backend; // of a slot above 0
	__u32 number;
	__u16 backends; // of slot 0: how many there are
	__u16 unused;
};

struct l4_address {
	struct address address;
	__be16 port;
	__u16 unused;
};

// The loader makes room for more where there are more.
#define MOST_SERVICES 65536

struct map SEC("maps") services = {
	.type = BPF_MAP_TYPE_HASH,
	.key_size = sizeof(struct service_key),
	.value_size = sizeof(struct service),
	.max_entries = MOST_SERVICES,
	.flags = BPF_F_NO_PREALLOC,
};

struct map SEC("maps") backends = {
	.type = BPF_MAP_TYPE_HASH,
	.key_size = sizeof(__u32),
	.value_size = sizeof(struct l4_address),
	.max_entries = MOST_SERVICES,
	.flags = BPF_F_NO_PREALLOC,
};

// Of one of the endpoints of a service, by chance; 0 for none. Changes the slot.
static __always_inline __u32 choose(struct service_key *key, const struct service *service)
{
	const struct service *slot;

	if (!service->backends)
		return 0;
	key->slot = bpf_get_prandom_u32() % service->backends + 1;
	slot = bpf_map_lookup_elem(&services, key);
	return slot ? slot->backend : 0;
}
