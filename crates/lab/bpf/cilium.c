// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// The path of packets of pods as Cilium's datapath lays it, with BPF host
// routing and veth (cilium/cilium: what each part follows is said in
// src/network/cilium/mod.rs and in docs/networks.md). Three programs at tc
// ingress: on the node's end of a pod's veth, on the node's uplink, and on the
// device that takes packets out of the tunnel.
//
// Built by .ci/bpf; the object is checked in, so that loading needs no compiler.

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "maps.h"
#include "packet.h"
#include "neighbour.h"

#define AF_INET 2
#define AF_INET6 10
// Of all pods: Cilium gives pods of equal labels one identity, and the lab's have none.
#define POD_IDENTITY 10000
#define TUNNEL_TTL 64
#define TUNNEL_KEY_BYTES __builtin_offsetof(struct bpf_tunnel_key, local_ipv4)

// The device that puts packets into the tunnel; 0 where nodes route natively.
// Set before the programs are loaded, so that the verifier sees a constant.
const volatile __u32 encap_ifindex = 0;

// Hands a packet to a pod of this node: straight to the far end of its veth.
static __always_inline int deliver(struct __sk_buff *skb, const struct packet *packet,
				   const struct endpoint *endpoint, bool from_tunnel)
{
	if (shorten_life(skb, packet) || store_macs(skb, endpoint->mac, endpoint->node_mac))
		return TC_ACT_SHOT;
	count(endpoint->ifindex, false, skb->len);
	// What came out of the tunnel still has the other node's hardware address
	// and counts as another host's; the pod's stack would drop it.
	if (from_tunnel)
		bpf_skb_change_type(skb, PACKET_HOST);
	return bpf_redirect_peer(endpoint->ifindex, 0);
}

// Puts a packet into the tunnel to the node that `remote` names.
static __always_inline int encapsulate(struct __sk_buff *skb, const struct packet *packet,
				       const struct remote *remote)
{
	struct bpf_tunnel_key key = {
		.tunnel_id = POD_IDENTITY,
		.tunnel_ttl = TUNNEL_TTL,
	};
	__u64 flags;

	if (packet->family == FAMILY_V6) {
		__builtin_memcpy(key.remote_ipv6, &remote->node, sizeof(key.remote_ipv6));
		flags = BPF_F_TUNINFO_IPV6;
	} else {
		key.remote_ipv4 = bpf_ntohl(remote->node.word[0]);
		// No outer UDP checksum, which only IPv6 needs.
		flags = BPF_F_ZERO_CSUM_TX;
	}
	if (bpf_skb_set_tunnel_key(skb, &key, TUNNEL_KEY_BYTES, flags))
		return TC_ACT_SHOT;
	return bpf_redirect(encap_ifindex, 0);
}

// Sends a packet where the node's routing table says, past the node's stack.
static __always_inline int route(struct __sk_buff *skb, const struct packet *packet)
{
	struct bpf_fib_lookup fib = { .ifindex = skb->ifindex };
	struct bpf_redir_neigh next = {};
	long answer;

	if (packet->family == FAMILY_V6) {
		fib.family = AF_INET6;
		__builtin_memcpy(fib.ipv6_src, &packet->from, sizeof(fib.ipv6_src));
		__builtin_memcpy(fib.ipv6_dst, &packet->to, sizeof(fib.ipv6_dst));
	} else {
		fib.family = AF_INET;
		fib.ipv4_src = packet->from.word[0];
		fib.ipv4_dst = packet->to.word[0];
	}
	answer = bpf_fib_lookup(skb, &fib, sizeof(fib), 0);
	switch (answer) {
	case BPF_FIB_LKUP_RET_SUCCESS:
		if (shorten_life(skb, packet) || store_macs(skb, fib.dmac, fib.smac))
			return TC_ACT_SHOT;
		return bpf_redirect(fib.ifindex, 0);
	case BPF_FIB_LKUP_RET_NO_NEIGH:
		// The kernel resolves the next hop; the packet waits there.
		if (shorten_life(skb, packet))
			return TC_ACT_SHOT;
		next.nh_family = fib.family;
		__builtin_memcpy(next.ipv6_nh, fib.ipv6_dst, sizeof(next.ipv6_nh));
		return bpf_redirect_neigh(fib.ifindex, &next, sizeof(next), 0);
	case BPF_FIB_LKUP_RET_NOT_FWDED:
		// For the node itself.
		return TC_ACT_OK;
	default:
		return TC_ACT_SHOT;
	}
}

// What a pod sends.
SEC("classifier")
int from_container(struct __sk_buff *skb)
{
	const struct remote *remote;
	const struct endpoint *endpoint;
	struct packet packet;

	if (skb->protocol == bpf_htons(ETH_P_ARP))
		return answer_arp(skb);
	if (!read_packet(skb, &packet))
		return TC_ACT_OK;
	if (is_solicitation(skb, &packet))
		return answer_solicitation(skb);
	if (is_multicast(&packet))
		return TC_ACT_OK;

	count(skb->ifindex, true, skb->len);
	remote = find_remote(&packet.to, packet.family);
	endpoint = find_endpoint(&packet.to, packet.family);
	if (endpoint)
		return deliver(skb, &packet, endpoint, false);
	if (encap_ifindex && remote && remote->has_tunnel)
		return encapsulate(skb, &packet, remote);
	return route(skb, &packet);
}

// What comes from the wire.
SEC("classifier")
int from_netdev(struct __sk_buff *skb)
{
	const struct endpoint *endpoint;
	struct packet packet;

	if (!read_packet(skb, &packet))
		return TC_ACT_OK;
	endpoint = find_endpoint(&packet.to, packet.family);
	return endpoint ? deliver(skb, &packet, endpoint, false) : TC_ACT_OK;
}

// What comes out of the tunnel.
SEC("classifier")
int from_overlay(struct __sk_buff *skb)
{
	const struct endpoint *endpoint;
	struct bpf_tunnel_key key = {};
	struct packet packet;

	// The sender's identity, which a policy would judge by.
	if (bpf_skb_get_tunnel_key(skb, &key, TUNNEL_KEY_BYTES, 0) &&
	    bpf_skb_get_tunnel_key(skb, &key, TUNNEL_KEY_BYTES, BPF_F_TUNINFO_IPV6))
		return TC_ACT_SHOT;
	if (!read_packet(skb, &packet))
		return TC_ACT_OK;
	endpoint = find_endpoint(&packet.to, packet.family);
	return endpoint ? deliver(skb, &packet, endpoint, true) : TC_ACT_OK;
}

// The kernel lends `bpf_fib_lookup` to programs under its own licence only,
// which is one of the two of this file.
char terms[] SEC("license") = "GPL";
