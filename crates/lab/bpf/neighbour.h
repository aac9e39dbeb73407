// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// Answers to a pod that asks for the hardware address of its gateway: it is
// the node's end of the pod's own veth, whatever address is asked for. So no
// neighbour has to be set up, and none of a pod's questions reaches the node.
#pragma once

#include <linux/icmpv6.h>
#include <linux/in.h>

// RFC 826; the kernel's own header for it wants the C library's.
#define ARP_ETHERNET 1
#define ARP_REQUEST 1
#define ARP_REPLY 2

#define SOLICITATION 135
#define ADVERTISEMENT 136
// Router, solicited, override (RFC 4861, section 4.4).
#define ADVERTISEMENT_FLAGS 0xe0000000
#define OPTION_TARGET_MAC 2

struct arp {
	__be16 hardware;
	__be16 protocol;
	__u8 hardware_length;
	__u8 protocol_length;
	__be16 operation;
	__u8 sender_mac[ETH_ALEN];
	__u8 sender[4];
	__u8 target_mac[ETH_ALEN];
	__u8 target[4];
} __attribute__((packed));

// RFC 4861, sections 4.3 and 4.4, with one option.
struct discovery {
	__u8 type;
	__u8 code;
	__be16 checksum;
	__be32 flags;
	struct address target;
	__u8 option;
	__u8 option_length; // in units of 8 bytes
	__u8 mac[ETH_ALEN];
};

#define DISCOVERY_OFFSET (ETH_HLEN + sizeof(struct ipv6hdr))

static __always_inline int answer_arp(struct __sk_buff *skb)
{
	__u32 ifindex = skb->ifindex;
	const struct port *port = bpf_map_lookup_elem(&ports, &ifindex);
	struct ethhdr *ethernet;
	struct arp *arp;
	__u8 asked[4];

	if (!port || !has_linear(skb, ETH_HLEN + sizeof(*arp)))
		return TC_ACT_OK;
	ethernet = (void *)(long)skb->data;
	arp = (void *)(ethernet + 1);
	if ((void *)(arp + 1) > (void *)(long)skb->data_end)
		return TC_ACT_OK;
	if (arp->hardware != bpf_htons(ARP_ETHERNET) ||
	    arp->operation != bpf_htons(ARP_REQUEST))
		return TC_ACT_OK;
	__builtin_memcpy(asked, arp->target, sizeof(asked));
	// A pod that asks for itself looks for a duplicate.
	if (!__builtin_memcmp(asked, arp->sender, sizeof(asked)))
		return TC_ACT_OK;
	arp->operation = bpf_htons(ARP_REPLY);
	__builtin_memcpy(arp->target_mac, arp->sender_mac, ETH_ALEN);
	__builtin_memcpy(arp->target, arp->sender, sizeof(asked));
	__builtin_memcpy(arp->sender_mac, port->mac, ETH_ALEN);
	__builtin_memcpy(arp->sender, asked, sizeof(asked));
	__builtin_memcpy(ethernet->h_dest, ethernet->h_source, ETH_ALEN);
	__builtin_memcpy(ethernet->h_source, port->mac, ETH_ALEN);
	return bpf_redirect(ifindex, 0);
}

static __always_inline bool is_solicitation(struct __sk_buff *skb, const struct packet *packet)
{
	struct discovery *question;

	if (packet->family != FAMILY_V6 || packet->protocol != IPPROTO_ICMPV6 ||
	    !has_linear(skb, DISCOVERY_OFFSET + sizeof(*question)))
		return false;
	question = (void *)(long)skb->data + DISCOVERY_OFFSET;
	if ((void *)(question + 1) > (void *)(long)skb->data_end)
		return false;
	return question->type == SOLICITATION;
}

// The checksum of an ICMPv6 message (RFC 4443, section 2.3).
static __always_inline __u16 checksum(struct address *from_to, struct discovery *message)
{
	__be32 rest[2] = { bpf_htonl(sizeof(*message)), bpf_htonl(IPPROTO_ICMPV6) };
	__u32 sum = bpf_csum_diff(0, 0, (__be32 *)from_to, 2 * sizeof(*from_to), 0);

	sum = bpf_csum_diff(0, 0, rest, sizeof(rest), sum);
	sum = bpf_csum_diff(0, 0, (__be32 *)message, sizeof(*message), sum);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return ~sum;
}

static __always_inline int answer_solicitation(struct __sk_buff *skb)
{
	__u32 ifindex = skb->ifindex;
	const struct port *port = bpf_map_lookup_elem(&ports, &ifindex);
	struct discovery reply = {
		.type = ADVERTISEMENT,
		.flags = bpf_htonl(ADVERTISEMENT_FLAGS),
		.option = OPTION_TARGET_MAC,
		.option_length = 1,
	};
	struct address from_to[2];
	__u8 asker[ETH_ALEN];
	struct discovery *question;
	struct ethhdr *ethernet = (void *)(long)skb->data;
	struct ipv6hdr *ip = (void *)(ethernet + 1);

	question = (void *)(ip + 1);
	if (!port || (void *)(question + 1) > (void *)(long)skb->data_end)
		return TC_ACT_OK;
	// Nothing but the one option, and not a search for duplicates, which has no sender.
	if (ip->payload_len != bpf_htons(sizeof(reply)) || !ip->saddr.in6_u.u6_addr32[0])
		return TC_ACT_OK;
	__builtin_memcpy(asker, ethernet->h_source, ETH_ALEN);
	__builtin_memcpy(&from_to[0], &question->target, sizeof(from_to[0]));
	__builtin_memcpy(&from_to[1], &ip->saddr, sizeof(from_to[1]));
	reply.target = from_to[0];
	__builtin_memcpy(reply.mac, port->mac, ETH_ALEN);
	reply.checksum = checksum(from_to, &reply);

	if (store_macs(skb, asker, reply.mac) ||
	    bpf_skb_store_bytes(skb, ETH_HLEN + __builtin_offsetof(struct ipv6hdr, saddr),
				from_to, sizeof(from_to), 0) ||
	    bpf_skb_store_bytes(skb, DISCOVERY_OFFSET, &reply, sizeof(reply), 0))
		return TC_ACT_SHOT;
	return bpf_redirect(ifindex, 0);
}
