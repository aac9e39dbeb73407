// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// What Calico's eBPF mode asks of the packets of a pod (projectcalico/calico: what each part
// follows is said in src/dressing/policies/calico_ebpf.rs). A packet of a connection that is
// in the map of connections passes. Another one is described in `state` and handed to the
// program of the pod's policies, which is made instruction by instruction when they are
// known; it drops the packet, or hands it to the program here that takes the connection in.
//
// Built by .ci/bpf; the object is checked in, so that loading needs no compiler.

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "address.h"
#include "flow.h"

// What the program of policies reads: the offsets of the fields are in its builder,
// src/dressing/policies/policy_program.rs.
struct state {
	struct address from;
	struct address to;
	__u16 from_port;
	__u16 to_port;
	__u8 protocol;
	__u8 flags; // of TCP
	__u8 unused[2];
};

// The same both ways: the smaller end is the first.
struct connection_key {
	struct address address[2];
	__be16 port[2];
	__u8 protocol;
	__u8 unused[3];
};

struct connection {
	__u64 began; // ns since boot
	__u64 last_seen;
	__u8 seen[2]; // flags of TCP, from the first end and from the second
	__u8 unused[6];
};

struct set_key_v4 {
	__u32 prefix_length; // in bits, of all that follows
	__u8 rest[16]; // set (8), address (4), port (2), protocol, unused
};

struct set_key_v6 {
	__u32 prefix_length;
	__u8 rest[28];
};

struct map SEC("maps") state = {
	.type = BPF_MAP_TYPE_PERCPU_ARRAY,
	.key_size = sizeof(__u32),
	.value_size = sizeof(struct state),
	.max_entries = 1,
};

struct map SEC("maps") connections = {
	.type = BPF_MAP_TYPE_LRU_HASH,
	.key_size = sizeof(struct connection_key),
	.value_size = sizeof(struct connection),
	.max_entries = 32768,
};

struct map SEC("maps") sets_v4 = {
	.type = BPF_MAP_TYPE_LPM_TRIE,
	.key_size = sizeof(struct set_key_v4),
	.value_size = sizeof(__u32),
	.max_entries = 65536,
	.flags = BPF_F_NO_PREALLOC,
};

struct map SEC("maps") sets_v6 = {
	.type = BPF_MAP_TYPE_LPM_TRIE,
	.key_size = sizeof(struct set_key_v6),
	.value_size = sizeof(__u32),
	.max_entries = 65536,
	.flags = BPF_F_NO_PREALLOC,
};

// The programs of policies of what goes to the pod, then of what comes from it, each in
// as many parts as it needs.
#define TO_POD 0
#define FROM_POD 32

struct map SEC("maps") policies = {
	.type = BPF_MAP_TYPE_PROG_ARRAY,
	.key_size = sizeof(__u32),
	.value_size = sizeof(__u32),
	.max_entries = 64,
};

// `allowed`.
struct map SEC("maps") programs = {
	.type = BPF_MAP_TYPE_PROG_ARRAY,
	.key_size = sizeof(__u32),
	.value_size = sizeof(__u32),
	.max_entries = 1,
};

// Fills in the key; gives which end the packet comes from.
static __always_inline int key_of(struct connection_key *key, const struct address *from,
				  const struct address *to, __be16 from_port, __be16 to_port)
{
	int end = from_port > to_port;

#pragma unroll
	for (int word = 3; word >= 0; word--)
		if (from->word[word] != to->word[word])
			end = from->word[word] > to->word[word];
	key->protocol = IPPROTO_TCP;
	if (end) {
		key->address[0] = *to;
		key->address[1] = *from;
		key->port[0] = to_port;
		key->port[1] = from_port;
	} else {
		key->address[0] = *from;
		key->address[1] = *to;
		key->port[0] = from_port;
		key->port[1] = to_port;
	}
	return end;
}

// Whether a packet that begins a connection may take the place of an old one.
static __always_inline bool has_ended(const struct connection *connection)
{
	__u8 both = connection->seen[0] & connection->seen[1];
	__u8 any = connection->seen[0] | connection->seen[1];

	return (both & FIN) || (any & RST);
}

static __always_inline int judge(struct __sk_buff *skb, __u32 policy)
{
	struct connection_key key = {};
	struct connection *connection;
	struct state *described;
	struct packet packet;
	struct flow flow;
	__u32 zero = 0;
	__u8 flags;
	__u32 l4;
	int end;

	if (!read_flow(skb, &packet, &flow, &l4))
		return TC_ACT_OK;
	if (read_flags(skb, l4, &flags))
		return TC_ACT_SHOT;
	end = key_of(&key, &flow.from, &flow.to, flow.from_port, flow.to_port);
	connection = bpf_map_lookup_elem(&connections, &key);
	if (connection && !((flags & SYN) && has_ended(connection))) {
		connection->last_seen = bpf_ktime_get_ns();
		if (end)
			connection->seen[1] |= flags;
		else
			connection->seen[0] |= flags;
		return TC_ACT_OK;
	}

	described = bpf_map_lookup_elem(&state, &zero);
	if (!described)
		return TC_ACT_SHOT;
	described->from = flow.from;
	described->to = flow.to;
	described->from_port = bpf_ntohs(flow.from_port);
	described->to_port = bpf_ntohs(flow.to_port);
	described->protocol = flow.protocol;
	described->flags = flags;
	bpf_tail_call(skb, &policies, policy);
	return TC_ACT_SHOT;
}

// What goes to the pod.
SEC("classifier")
int to_pod(struct __sk_buff *skb)
{
	return judge(skb, TO_POD);
}

// What the pod sends.
SEC("classifier")
int from_pod(struct __sk_buff *skb)
{
	return judge(skb, FROM_POD);
}

// What a policy has allowed.
SEC("classifier")
int allowed(struct __sk_buff *skb __attribute__((unused)))
{
	struct connection connection = {};
	struct connection_key key = {};
	struct state *described;
	__u32 zero = 0;
	int end;

	described = bpf_map_lookup_elem(&state, &zero);
	if (!described)
		return TC_ACT_SHOT;
	end = key_of(&key, &described->from, &described->to, bpf_htons(described->from_port),
		     bpf_htons(described->to_port));
	connection.began = bpf_ktime_get_ns();
	connection.last_seen = connection.began;
	if (end)
		connection.seen[1] = described->flags;
	else
		connection.seen[0] = described->flags;
	if (bpf_map_update_elem(&connections, &key, &connection, BPF_ANY))
		return TC_ACT_SHOT;
	return TC_ACT_OK;
}

char terms[] SEC("license") = "GPL";
