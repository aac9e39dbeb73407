// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// Services translated packet by packet, as Cilium does it at tc (what each part
// follows is said in src/dressing/services/ebpf/tc.rs): on the node's end of a pod's
// veth, one program for what the pod sends, and one for what it gets.
//
// Built by .ci/bpf; the object is checked in, so that loading needs no compiler.

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "services.h"
#include "flow.h"

// The kind of a flow: one has packets as the pod sends them, the other answers as they come
// from the endpoint.
#define ANSWER 1

struct connection {
	__u32 backend;
	__u32 service;
};

// The oldest goes when it is full. Cilium's holds eight times as many.
struct map SEC("maps") connections = {
	.type = BPF_MAP_TYPE_LRU_HASH,
	.key_size = sizeof(struct flow),
	.value_size = sizeof(struct connection),
	.max_entries = 65536,
};

// Where services are asked, by their numbers.
struct map SEC("maps") frontends = {
	.type = BPF_MAP_TYPE_HASH,
	.key_size = sizeof(__u32),
	.value_size = sizeof(struct l4_address),
	.max_entries = MOST_SERVICES,
	.flags = BPF_F_NO_PREALLOC,
};

// Puts an address and a port in place of the destination's, or of the source's.
static __always_inline long rewrite(struct __sk_buff *skb, const struct packet *packet, __u32 l4,
				    bool is_destination, const struct flow *flow,
				    const struct l4_address *with)
{
	struct l4_address new = *with;
	struct address old = is_destination ? flow->to : flow->from;
	__be16 old_port = is_destination ? flow->to_port : flow->from_port;
	__u32 checksum = l4 + __builtin_offsetof(struct tcphdr, check);
	__u32 port = l4 + (is_destination ? __builtin_offsetof(struct tcphdr, dest) :
					    __builtin_offsetof(struct tcphdr, source));
	__s64 difference = bpf_csum_diff(old.word, sizeof(old.word), new.address.word,
					 sizeof(new.address.word), 0);
	long failed;

	if (packet->family == FAMILY_V6) {
		__u32 at = is_destination ? __builtin_offsetof(struct ipv6hdr, daddr) :
					    __builtin_offsetof(struct ipv6hdr, saddr);

		failed = bpf_skb_store_bytes(skb, ETH_HLEN + at, new.address.word,
					     sizeof(new.address.word), 0);
	} else {
		__u32 at = is_destination ? __builtin_offsetof(struct iphdr, daddr) :
					    __builtin_offsetof(struct iphdr, saddr);

		failed = bpf_l3_csum_replace(skb, CHECKSUM_OFFSET, 0, difference, 0) ||
			 bpf_skb_store_bytes(skb, ETH_HLEN + at, new.address.word,
					     sizeof(__be32), 0);
	}
	return failed ||
	       bpf_l4_csum_replace(skb, checksum, 0, difference, BPF_F_PSEUDO_HDR) ||
	       bpf_l4_csum_replace(skb, checksum, old_port, new.port, sizeof(new.port)) ||
	       bpf_skb_store_bytes(skb, port, &new.port, sizeof(new.port), 0);
}

// Keeps where a new connection goes, and how its answers are to look.
static __always_inline long remember(const struct flow *flow, const struct l4_address *backend,
				     const struct connection *connection)
{
	struct flow answer = {
		.from = backend->address,
		.to = flow->from,
		.from_port = backend->port,
		.to_port = flow->from_port,
		.protocol = flow->protocol,
		.kind = ANSWER,
	};

	return bpf_map_update_elem(&connections, flow, connection, BPF_ANY) ||
	       bpf_map_update_elem(&connections, &answer, connection, BPF_ANY);
}

// What a pod sends.
SEC("classifier")
int from_container(struct __sk_buff *skb)
{
	struct service_key key = {};
	struct connection connection = {};
	const struct connection *known;
	const struct service *service;
	const struct l4_address *backend;
	struct packet packet;
	struct flow flow;
	__u32 l4;

	if (!read_flow(skb, &packet, &flow, &l4))
		return TC_ACT_OK;
	key.address = flow.to;
	key.port = flow.to_port;
	key.protocol = IPPROTO_TCP;
	service = bpf_map_lookup_elem(&services, &key);
	if (!service)
		return TC_ACT_OK;

	known = bpf_map_lookup_elem(&connections, &flow);
	connection.service = service->number;
	connection.backend = known ? known->backend : choose(&key, service);
	backend = bpf_map_lookup_elem(&backends, &connection.backend);
	if (!backend)
		return TC_ACT_SHOT;
	if (!known && remember(&flow, backend, &connection))
		return TC_ACT_SHOT;
	return rewrite(skb, &packet, l4, true, &flow, backend) ? TC_ACT_SHOT : TC_ACT_OK;
}

// What a pod gets.
SEC("classifier")
int to_container(struct __sk_buff *skb)
{
	const struct connection *known;
	const struct l4_address *frontend;
	struct packet packet;
	struct flow flow;
	__u32 l4, service;

	if (!read_flow(skb, &packet, &flow, &l4))
		return TC_ACT_OK;
	flow.kind = ANSWER;
	known = bpf_map_lookup_elem(&connections, &flow);
	if (!known)
		return TC_ACT_OK;
	service = known->service;
	frontend = bpf_map_lookup_elem(&frontends, &service);
	if (!frontend)
		return TC_ACT_OK;
	return rewrite(skb, &packet, l4, false, &flow, frontend) ? TC_ACT_SHOT : TC_ACT_OK;
}

char terms[] SEC("license") = "GPL";
