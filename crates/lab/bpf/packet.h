// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// Reading and changing the headers of a packet.
#pragma once

#include <linux/ip.h>
#include <linux/ipv6.h>

#define TTL_OFFSET (ETH_HLEN + __builtin_offsetof(struct iphdr, ttl))
#define CHECKSUM_OFFSET (ETH_HLEN + __builtin_offsetof(struct iphdr, check))
#define HOP_LIMIT_OFFSET (ETH_HLEN + __builtin_offsetof(struct ipv6hdr, hop_limit))

struct packet {
	struct address from;
	struct address to;
	__u8 family;
	__u8 ttl;
	__u8 protocol;
};

// Makes sure that the first `length` bytes can be read directly.
static __always_inline bool has_linear(struct __sk_buff *skb, __u32 length)
{
	if ((void *)(long)skb->data + length <= (void *)(long)skb->data_end)
		return true;
	return !bpf_skb_pull_data(skb, length);
}

// Reads the IP header; false for what is not IP or too short.
static __always_inline bool read_packet(struct __sk_buff *skb, struct packet *packet)
{
	__builtin_memset(packet, 0, sizeof(*packet));
	if (skb->protocol == bpf_htons(ETH_P_IP)) {
		struct iphdr *ip;

		if (!has_linear(skb, ETH_HLEN + sizeof(*ip)))
			return false;
		ip = (void *)(long)skb->data + ETH_HLEN;
		if ((void *)(ip + 1) > (void *)(long)skb->data_end)
			return false;
		packet->family = FAMILY_V4;
		packet->from.word[0] = ip->saddr;
		packet->to.word[0] = ip->daddr;
		packet->ttl = ip->ttl;
		packet->protocol = ip->protocol;
		return true;
	}
	if (skb->protocol == bpf_htons(ETH_P_IPV6)) {
		struct ipv6hdr *ip;

		if (!has_linear(skb, ETH_HLEN + sizeof(*ip)))
			return false;
		ip = (void *)(long)skb->data + ETH_HLEN;
		if ((void *)(ip + 1) > (void *)(long)skb->data_end)
			return false;
		packet->family = FAMILY_V6;
		__builtin_memcpy(&packet->from, &ip->saddr, sizeof(packet->from));
		__builtin_memcpy(&packet->to, &ip->daddr, sizeof(packet->to));
		packet->ttl = ip->hop_limit;
		packet->protocol = ip->nexthdr;
		return true;
	}
	return false;
}

// For a group, or for everybody on the link: nothing to look up.
static __always_inline bool is_multicast(const struct packet *packet)
{
	__u32 first = bpf_ntohl(packet->to.word[0]);

	return packet->family == FAMILY_V6 ? first >> 24 == 0xff : first >> 28 >= 0xe;
}

// Takes one hop off. Cilium answers an expired packet by ICMP; here it is lost.
static __always_inline long shorten_life(struct __sk_buff *skb, const struct packet *packet)
{
	__u8 left = packet->ttl - 1;

	if (packet->ttl <= 1)
		return -1;
	if (packet->family == FAMILY_V6)
		return bpf_skb_store_bytes(skb, HOP_LIMIT_OFFSET, &left, sizeof(left), 0);
	// The byte is the first of its 16 bits; this object is little-endian.
	if (bpf_l3_csum_replace(skb, CHECKSUM_OFFSET, packet->ttl, left, sizeof(__u16)))
		return -1;
	return bpf_skb_store_bytes(skb, TTL_OFFSET, &left, sizeof(left), 0);
}

static __always_inline long store_macs(struct __sk_buff *skb, const __u8 *to, const __u8 *from)
{
	return bpf_skb_store_bytes(skb, 0, to, ETH_ALEN, 0) ||
	       bpf_skb_store_bytes(skb, ETH_ALEN, from, ETH_ALEN, 0);
}
