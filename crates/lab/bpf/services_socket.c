// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// Services translated where a program connects, as Cilium does it at the socket
// (what each part follows is said in src/dressing/services/ebpf/socket.rs). Packets
// have the endpoint's address from the first one on.
//
// Built by .ci/bpf; the object is checked in, so that loading needs no compiler.

#include <stddef.h>

#include <linux/bpf.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "services.h"

// The network namespace whose sockets are meant, by its cookie. Programs of a cgroup
// see the sockets of all namespaces.
const volatile __u32 netns_low = 0;
const volatile __u32 netns_high = 0;

// A socket and the endpoint that it is connected to.
struct peer_key {
	__u64 socket;
	struct l4_address backend;
	__u32 unused;
};

// Which service the socket had asked. The oldest goes when it is full.
struct map SEC("maps") peers = {
	.type = BPF_MAP_TYPE_LRU_HASH,
	.key_size = sizeof(struct peer_key),
	.value_size = sizeof(struct l4_address),
	.max_entries = 65536,
};

static __always_inline bool is_ours(struct bpf_sock_addr *ctx)
{
	__u64 cookie = bpf_get_netns_cookie(ctx);

	return (__u32)cookie == netns_low && (__u32)(cookie >> 32) == netns_high;
}

// The kernel gives the port as a whole word only.
static __always_inline __be16 port_of(const struct bpf_sock_addr *ctx)
{
	volatile __u32 port = ctx->user_port;

	return (__be16)port;
}

// The endpoint in place of a service; NULL where none was asked.
static __always_inline const struct l4_address *translate(struct bpf_sock_addr *ctx,
							  const struct l4_address *asked)
{
	struct service_key key = {
		.address = asked->address,
		.port = asked->port,
		.protocol = IPPROTO_TCP,
	};
	struct peer_key peer = { .socket = bpf_get_socket_cookie(ctx) };
	const struct l4_address *backend;
	const struct service *service;
	__u32 number;

	service = bpf_map_lookup_elem(&services, &key);
	if (!service)
		return NULL;
	number = choose(&key, service);
	backend = bpf_map_lookup_elem(&backends, &number);
	if (!backend)
		return NULL;
	peer.backend = *backend;
	if (bpf_map_update_elem(&peers, &peer, asked, BPF_ANY))
		return NULL;
	return backend;
}

// The service that a socket had asked before it was given this endpoint.
static __always_inline const struct l4_address *asked_by(struct bpf_sock_addr *ctx,
							 const struct l4_address *backend)
{
	struct peer_key peer = {
		.socket = bpf_get_socket_cookie(ctx),
		.backend = *backend,
	};

	return bpf_map_lookup_elem(&peers, &peer);
}

static __always_inline void read4(struct bpf_sock_addr *ctx, struct l4_address *address)
{
	__builtin_memset(address, 0, sizeof(*address));
	address->address.word[0] = ctx->user_ip4;
	address->port = port_of(ctx);
}

static __always_inline void write4(struct bpf_sock_addr *ctx, const struct l4_address *address)
{
	ctx->user_ip4 = address->address.word[0];
	ctx->user_port = address->port;
}

static __always_inline void read6(struct bpf_sock_addr *ctx, struct l4_address *address)
{
	address->address.word[0] = ctx->user_ip6[0];
	address->address.word[1] = ctx->user_ip6[1];
	address->address.word[2] = ctx->user_ip6[2];
	address->address.word[3] = ctx->user_ip6[3];
	address->port = port_of(ctx);
	address->unused = 0;
}

static __always_inline void write6(struct bpf_sock_addr *ctx, const struct l4_address *address)
{
	ctx->user_ip6[0] = address->address.word[0];
	ctx->user_ip6[1] = address->address.word[1];
	ctx->user_ip6[2] = address->address.word[2];
	ctx->user_ip6[3] = address->address.word[3];
	ctx->user_port = address->port;
}

// A program connects. It may always do so.
SEC("cgroup/connect4")
int connect4(struct bpf_sock_addr *ctx)
{
	const struct l4_address *found;
	struct l4_address asked;

	if (!is_ours(ctx) || ctx->protocol != IPPROTO_TCP)
		return 1;
	read4(ctx, &asked);
	found = translate(ctx, &asked);
	if (found)
		write4(ctx, found);
	return 1;
}

SEC("cgroup/connect6")
int connect6(struct bpf_sock_addr *ctx)
{
	const struct l4_address *found;
	struct l4_address asked;

	if (!is_ours(ctx) || ctx->protocol != IPPROTO_TCP)
		return 1;
	read6(ctx, &asked);
	found = translate(ctx, &asked);
	if (found)
		write6(ctx, found);
	return 1;
}

// It wants to know whom it is connected to: the service.
SEC("cgroup/getpeername4")
int getpeername4(struct bpf_sock_addr *ctx)
{
	const struct l4_address *found;
	struct l4_address backend;

	if (!is_ours(ctx) || ctx->protocol != IPPROTO_TCP)
		return 1;
	read4(ctx, &backend);
	found = asked_by(ctx, &backend);
	if (found)
		write4(ctx, found);
	return 1;
}

SEC("cgroup/getpeername6")
int getpeername6(struct bpf_sock_addr *ctx)
{
	const struct l4_address *found;
	struct l4_address backend;

	if (!is_ours(ctx) || ctx->protocol != IPPROTO_TCP)
		return 1;
	read6(ctx, &backend);
	found = asked_by(ctx, &backend);
	if (found)
		write6(ctx, found);
	return 1;
}

char terms[] SEC("license") = "GPL";
