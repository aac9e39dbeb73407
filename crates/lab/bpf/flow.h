// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// The flow that a packet of TCP belongs to.
#pragma once

#include <linux/in.h>
#include <linux/tcp.h>

#include "address.h"
#include "packet.h"

// In the byte of flags of TCP, and where that is.
#define FIN 0x01
#define SYN 0x02
#define RST 0x04
#define FLAGS_OFFSET 13

// One direction of a connection.
struct flow {
	struct address from;
	struct address to;
	__be16 from_port;
	__be16 to_port;
	__u8 protocol;
	__u8 kind; // of those that a program tells apart; 0 where it is read
	__u16 unused;
};

// Reads the headers of TCP; false for anything else. Gives where that of TCP is. No
// packet of a lab has IP options.
static __always_inline bool read_flow(struct __sk_buff *skb, struct packet *packet,
				      struct flow *flow, __u32 *l4)
{
	__be16 ports[2];

	if (!read_packet(skb, packet) || packet->protocol != IPPROTO_TCP)
		return false;
	*l4 = ETH_HLEN + (packet->family == FAMILY_V6 ? sizeof(struct ipv6hdr) :
							sizeof(struct iphdr));
	if (bpf_skb_load_bytes(skb, *l4, ports, sizeof(ports)))
		return false;
	__builtin_memset(flow, 0, sizeof(*flow));
	flow->from = packet->from;
	flow->to = packet->to;
	flow->from_port = ports[0];
	flow->to_port = ports[1];
	flow->protocol = IPPROTO_TCP;
	return true;
}

// Reads the flags of TCP; not 0 where the packet ends before.
static __always_inline long read_flags(struct __sk_buff *skb, __u32 l4, __u8 *flags)
{
	return bpf_skb_load_bytes(skb, l4 + FLAGS_OFFSET, flags, sizeof(*flags));
}
