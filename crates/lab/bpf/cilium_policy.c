// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// What Cilium asks of the packets of a pod (cilium/cilium: what each part follows is said
// in src/dressing/policies/cilium.rs). Two programs at tc: for what goes to the pod, and for
// what comes from it. Both look for the connection, first as one that the packet answers,
// then as one that it belongs to. An answer passes. Whatever else a packet is, also of a
// connection that stands, its peer's address gives an identity, and the identity with the
// port an entry of the pod's policies, or it is dropped.
//
// Built by .ci/bpf; the object is checked in, so that loading needs no compiler.

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "address.h"
#include "flow.h"

// What has no identity of its own.
#define WORLD 2

#define SECOND 1000000000ull
#define LIFETIME (21600 * SECOND)
#define LIFETIME_OF_SYN (60 * SECOND)
#define LIFETIME_OF_CLOSED (10 * SECOND)
#define REPORT_INTERVAL (5 * SECOND)

// The kind of a flow: which way its first packet went, as seen from the pod, and whether it
// is that of errors that belong to a connection.
#define OUTWARD 0
#define INWARD 1
#define RELATED 2

// Each pair by direction of the packet.
struct connection {
	__u64 ends; // ns since boot
	__u64 reported[2];
	__u8 seen[2]; // flags of TCP
	__u8 closing[2];
	__u8 is_established;
	__u8 unused[3];
};

struct identity_key {
	__u32 prefix_length; // in bits, of all that follows
	__u16 cluster;
	__u8 unused;
	__u8 family;
	struct address address;
};

// Bits of `identity_key` before the address that are always compared.
#define IDENTITY_STATIC_BITS 32

struct policy_key {
	__u32 prefix_length; // in bits, of all that follows
	__u32 identity; // 0 for anybody
	__u8 is_egress;
	__u8 protocol;
	__be16 port;
};

#define POLICY_BITS (8 * (sizeof(struct policy_key) - sizeof(__u32)))
// Of protocol and port.
#define PORT_BITS 24

struct policy {
	__u8 denies;
	__u8 prefix_bits; // of protocol and port, in the key
	__u8 unused[2];
};

struct statistics_key {
	__u16 endpoint;
	__u8 unused;
	__u8 prefix_bits;
	__u32 identity;
	__u8 is_egress;
	__u8 protocol;
	__be16 port;
};

struct statistics {
	__u64 packets;
	__u64 bytes;
};

struct map SEC("maps") identities = {
	.type = BPF_MAP_TYPE_LPM_TRIE,
	.key_size = sizeof(struct identity_key),
	.value_size = sizeof(__u32),
	.max_entries = 65536,
	.flags = BPF_F_NO_PREALLOC,
};

struct map SEC("maps") policies = {
	.type = BPF_MAP_TYPE_LPM_TRIE,
	.key_size = sizeof(struct policy_key),
	.value_size = sizeof(struct policy),
	.max_entries = 16384,
	.flags = BPF_F_NO_PREALLOC,
};

// What each entry of `policies` has decided.
struct map SEC("maps") statistics = {
	.type = BPF_MAP_TYPE_LRU_PERCPU_HASH,
	.key_size = sizeof(struct statistics_key),
	.value_size = sizeof(struct statistics),
	.max_entries = 4096,
	.flags = BPF_F_NO_COMMON_LRU,
};

struct map SEC("maps") connections = {
	.type = BPF_MAP_TYPE_LRU_HASH,
	.key_size = sizeof(struct flow),
	.value_size = sizeof(struct connection),
	.max_entries = 32768,
};

// Errors that belong to connections, by addresses only.
struct map SEC("maps") related = {
	.type = BPF_MAP_TYPE_LRU_HASH,
	.key_size = sizeof(struct flow),
	.value_size = sizeof(struct connection),
	.max_entries = 4096,
};

static __always_inline void prolong(struct connection *connection, bool inward, __u8 flags)
{
	__u64 now = bpf_ktime_get_ns();
	__u8 seen = connection->seen[inward] | flags;

	if (!(flags & SYN))
		connection->is_established = 1;
	connection->ends = now + (connection->is_established ? LIFETIME : LIFETIME_OF_SYN);
	if (seen != connection->seen[inward] ||
	    connection->reported[inward] + REPORT_INTERVAL < now) {
		connection->seen[inward] = seen;
		connection->reported[inward] = now;
	}
}

// Whether there is such a connection; keeps what the packet says of it.
static __always_inline bool has_connection(const struct flow *flow, bool inward, __u8 flags)
{
	struct connection *connection = bpf_map_lookup_elem(&connections, flow);

	if (!connection)
		return false;
	if (!connection->closing[0] || !connection->closing[1])
		prolong(connection, inward, flags);
	if (flags & (FIN | RST)) {
		// One that was refused has seen no answer to its first packet.
		if ((flags & RST) && !(connection->seen[0] & connection->seen[1] & SYN))
			connection->closing[!inward] = 1;
		connection->closing[inward] = 1;
		if (connection->closing[0] && connection->closing[1])
			connection->ends = bpf_ktime_get_ns() + LIFETIME_OF_CLOSED;
	} else if ((flags & SYN) && (connection->closing[0] || connection->closing[1])) {
		connection->closing[0] = 0;
		connection->closing[1] = 0;
		prolong(connection, inward, flags);
	}
	return true;
}

// Takes a connection in, and errors that will belong to it.
static __always_inline long begin(const struct flow *flow, __u8 family, bool inward, __u8 flags)
{
	struct connection connection = {};
	struct flow errors = {
		.from = flow->from,
		.to = flow->to,
		.protocol = family == FAMILY_V6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP,
		.kind = flow->kind | RELATED,
	};

	prolong(&connection, inward, flags);
	if (bpf_map_update_elem(&connections, flow, &connection, BPF_ANY))
		return -1;
	connection.is_established = 1;
	return bpf_map_update_elem(&related, &errors, &connection, BPF_ANY);
}

static __always_inline __u32 identity_of(const struct address *address, __u8 family)
{
	struct identity_key key = {
		.prefix_length = IDENTITY_STATIC_BITS + (family == FAMILY_V6 ? 128 : 32),
		.family = family,
		.address = *address,
	};
	const __u32 *identity = bpf_map_lookup_elem(&identities, &key);

	return identity ? *identity : WORLD;
}

// Whether the entry that was found lets a packet pass; counts the packet for it.
static __always_inline bool decides(const struct policy *policy, const struct policy_key *asked,
				    __u32 identity, __u32 bytes)
{
	struct statistics_key key = {
		.prefix_bits = policy->prefix_bits,
		.identity = identity,
		.is_egress = asked->is_egress,
	};
	struct statistics *so_far;

	if (policy->prefix_bits == PORT_BITS) {
		key.protocol = asked->protocol;
		key.port = asked->port;
	}
	so_far = bpf_map_lookup_elem(&statistics, &key);
	if (so_far) {
		__sync_fetch_and_add(&so_far->packets, 1);
		__sync_fetch_and_add(&so_far->bytes, bytes);
	} else {
		struct statistics first = { .packets = 1, .bytes = bytes };

		bpf_map_update_elem(&statistics, &key, &first, BPF_NOEXIST);
	}
	return !policy->denies;
}

// What a policy says of the peer, and what one says of anybody, are both asked for.
static __always_inline bool is_allowed(__u32 identity, bool inward, __be16 port, __u32 bytes)
{
	struct policy_key key = {
		.prefix_length = POLICY_BITS,
		.identity = identity,
		.is_egress = !inward,
		.protocol = IPPROTO_TCP,
		.port = port,
	};
	const struct policy *own, *anybody;

	own = bpf_map_lookup_elem(&policies, &key);
	if (own && own->denies)
		return decides(own, &key, identity, bytes);
	key.identity = 0;
	anybody = bpf_map_lookup_elem(&policies, &key);
	if (anybody && (anybody->denies || !own || anybody->prefix_bits > own->prefix_bits))
		return decides(anybody, &key, 0, bytes);
	return own && decides(own, &key, identity, bytes);
}

static __always_inline int judge(struct __sk_buff *skb, bool inward)
{
	struct flow answered = {};
	struct packet packet;
	struct flow flow;
	__u32 l4, identity;
	bool is_known;
	__u8 flags;

	if (!read_flow(skb, &packet, &flow, &l4))
		return TC_ACT_OK;
	if (read_flags(skb, l4, &flags))
		return TC_ACT_SHOT;

	answered.from = flow.to;
	answered.to = flow.from;
	answered.from_port = flow.to_port;
	answered.to_port = flow.from_port;
	answered.protocol = flow.protocol;
	answered.kind = inward ? OUTWARD : INWARD;
	if (has_connection(&answered, inward, flags))
		return TC_ACT_OK;
	flow.kind = inward ? INWARD : OUTWARD;
	is_known = has_connection(&flow, inward, flags);

	identity = identity_of(inward ? &packet.from : &packet.to, packet.family);
	if (!is_allowed(identity, inward, flow.to_port, skb->len))
		return TC_ACT_SHOT;
	if (!is_known && begin(&flow, packet.family, inward, flags))
		return TC_ACT_SHOT;
	return TC_ACT_OK;
}

// What goes to the pod.
SEC("classifier")
int to_pod(struct __sk_buff *skb)
{
	return judge(skb, true);
}

// What the pod sends.
SEC("classifier")
int from_pod(struct __sk_buff *skb)
{
	return judge(skb, false);
}

char terms[] SEC("license") = "GPL";
