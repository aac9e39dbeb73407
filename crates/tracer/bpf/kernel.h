/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Of the kernel's types what the programs read; where it lies in a kernel the loader finds out.
 */
#ifndef PLUMBLINE_KERNEL_H
#define PLUMBLINE_KERNEL_H

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct ns_common {
	unsigned int inum;
};

struct net {
	struct ns_common ns;
};

typedef struct {
	struct net *net;
} possible_net_t;

struct nsproxy {
	struct net *net_ns;
};

struct task_struct {
	struct nsproxy *nsproxy;
};

struct sock_common {
	__be16 skc_dport;
	__u16 skc_num;
	possible_net_t skc_net;
};

struct sock {
	struct sock_common __sk_common;
};

struct net_device {
	int ifindex;
	possible_net_t nd_net;
};

struct sk_buff {
	struct sock *sk;
	struct net_device *dev;
	__u16 transport_header;
	unsigned int tail;
	unsigned int data_len;
	unsigned char *head;
};

#pragma clang attribute pop

static __always_inline __u32 namespace_of(const struct sock *sk)
{
	return sk->__sk_common.skc_net.net->ns.inum;
}

static __always_inline __u32 namespace_at(const struct net_device *device)
{
	return device->nd_net.net->ns.inum;
}

#endif
