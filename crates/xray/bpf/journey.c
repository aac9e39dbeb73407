// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// Follows requests and their answers through the kernel. One request at a time is on a
// journey: from the moment at which its sender hands it to TCP until the sender has read the
// answer. At each tracepoint that its packet passes, the time since the last one is added to
// the step. Journeys that passed the same places share one entry of `routes`, with the sums of
// their steps: nothing goes to user space for each packet.
//
// The time that these programs take themselves is left out: a step goes from the end of one
// program to the beginning of the next.
//
// A packet is known by the address of its skb, or by that of its bytes (`head`): a clone has
// the same bytes, and a packet that gets room for another header keeps its skb. Both are
// forgotten when it is read or freed, before anybody else can have them.
//
// Built by .ci/bpf; the object is checked in, so that loading needs no compiler.

#include <linux/bpf.h>
#include <stdbool.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

// Of the kernel's types what is read here; where it lies in this kernel the loader finds out.
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

struct sock_common {
	__be16 skc_dport;
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
	unsigned char *head;
};

#pragma clang attribute pop

// Steps of the longest journey. The loader reads the layout of what follows byte by byte, as
// src/tracer/layout.rs says.
#define MOST_STEPS 96

// As in src/place.rs.
enum hook {
	SENT = 1, // handed to TCP
	QUEUED = 2, // at the queueing discipline of a device
	TRANSMITTED = 3, // at the driver of a device
	ARRIVED = 4, // put into the receive queue of a CPU
	RECEIVED = 5, // taken from there
	ROUTED = 6, // looked up in a routing table
	DELIVERED = 7, // at the socket that it is for
	READY = 8, // the socket tells who waits
	READ = 9, // a program has it
};

struct step {
	__u32 namespace;
	__u32 device;
	__u32 hook;
	__u32 unused;
	__u64 ns;
};

struct route {
	__u64 journeys;
	__u32 steps;
	__u32 unused;
	struct step step[MOST_STEPS];
};

// Whom to follow.
struct order {
	__u32 client; // namespace of the sender
	__u16 port; // of the receiver
	__u16 unused;
	__u64 every; // one of so many requests; none where it is 0
	__u64 longest; // journeys that took longer, in ns, are counted and no more
};

struct journey {
	__u64 is_on;
	__u64 skb; // 0 while no packet is known
	__u64 head;
	__u64 client; // the socket of the sender
	__u64 socket; // the socket that sent it, or that it was delivered to
	__u64 shape; // of the places so far
	__u64 left; // when the last program ended
	__u64 took;
	__u64 requests;
	__u32 hook; // where it was seen last
	__u32 cpu;
	__u32 namespace;
	__u32 device;
	struct route route;
};

// What became of journeys, beside those in `routes`.
enum fate {
	TOO_LONG,
	LOST,
	DROPPED,
	NO_ROOM,
	FATES,
};

struct drop {
	__u32 namespace;
	__u32 device;
	__u32 hook;
	__u32 reason;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct order);
} orders SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct journey);
} journeys SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, __u64);
	__type(value, struct route);
} routes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, FATES);
	__type(key, __u32);
	__type(value, __u64);
} fates SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, struct drop);
	__type(value, __u64);
} drops SEC(".maps");

static __always_inline struct journey *any_journey(void)
{
	__u32 first = 0;

	return bpf_map_lookup_elem(&journeys, &first);
}

// The journey that is under way, if one is.
static __always_inline struct journey *under_way(void)
{
	struct journey *journey = any_journey();

	return journey && journey->is_on ? journey : 0;
}

static __always_inline const struct order *ordered(void)
{
	__u32 first = 0;

	return bpf_map_lookup_elem(&orders, &first);
}

static __always_inline void end_as(struct journey *journey, __u32 fate)
{
	__u64 *count = bpf_map_lookup_elem(&fates, &fate);

	journey->is_on = 0;
	if (count)
		*count += 1;
}

static __always_inline void forget_packet(struct journey *journey)
{
	journey->skb = 0;
	journey->head = 0;
}

static __always_inline __u32 namespace_of(const struct sock *sk)
{
	return sk->__sk_common.skc_net.net->ns.inum;
}

// Whether a packet is the one that is followed.
static __always_inline bool carries(struct journey *journey, const struct sk_buff *skb)
{
	__u64 address = (__u64)skb;
	__u64 head = (__u64)skb->head;

	if (address == journey->skb) {
		journey->head = head;
		return true;
	}
	if (head != journey->head)
		return false;
	journey->skb = address;
	return true;
}

// Adds a step that ended when the caller began.
static __always_inline void see(struct journey *journey, __u64 came, __u32 namespace, __u32 device,
				__u32 hook)
{
	__u32 at = journey->route.steps;
	__u64 ns = came - journey->left;
	struct step *step;

	if (at >= MOST_STEPS) {
		end_as(journey, NO_ROOM);
		return;
	}
	step = &journey->route.step[at];
	step->namespace = namespace;
	step->device = device;
	step->hook = hook;
	step->ns = ns;
	journey->route.steps = at + 1;
	journey->took += ns;
	// FNV-1a, by numbers instead of bytes.
	journey->shape = (journey->shape ^ namespace) * 0x100000001b3;
	journey->shape = (journey->shape ^ ((__u64)hook << 32 | device)) * 0x100000001b3;
	journey->namespace = namespace;
	journey->device = device;
	journey->hook = hook;
	journey->cpu = bpf_get_smp_processor_id();
	journey->left = bpf_ktime_get_ns();
}

static __always_inline void see_at(struct journey *journey, __u64 came,
				   const struct net_device *device, __u32 hook)
{
	see(journey, came, device->nd_net.net->ns.inum, device->ifindex, hook);
}

static __always_inline void arrive_home(struct journey *journey)
{
	const struct order *order = ordered();
	struct route *route;

	if (order && journey->took > order->longest) {
		end_as(journey, TOO_LONG);
		return;
	}
	journey->is_on = 0;
	route = bpf_map_lookup_elem(&routes, &journey->shape);
	if (!route) {
		if (bpf_map_update_elem(&routes, &journey->shape, &journey->route, BPF_NOEXIST))
			end_as(journey, NO_ROOM);
		return;
	}
	route->journeys += 1;
	for (__u32 at = 0; at < MOST_STEPS; at++) {
		if (at >= journey->route.steps)
			break;
		route->step[at].ns += journey->route.step[at].ns;
	}
}

// const struct sock *, const struct msghdr *, const struct sk_buff *, int
SEC("tp_btf/tcp_sendmsg_locked")
int on_sent(__u64 *context)
{
	const struct sock *sk = (const struct sock *)context[0];
	struct journey *journey = any_journey();
	const struct order *order = ordered();

	if (!journey || !order)
		return 0;
	if (journey->is_on) {
		if (journey->hook == READ && (__u64)sk == journey->socket) {
			see(journey, bpf_ktime_get_ns(), namespace_of(sk), 0, SENT);
			return 0;
		}
		// One request is under way at a time, so the answer was missed.
		if ((__u64)sk != journey->client)
			return 0;
		end_as(journey, LOST);
	}
	if (sk->__sk_common.skc_dport != bpf_htons(order->port) ||
	    namespace_of(sk) != order->client || !order->every)
		return 0;
	journey->requests += 1;
	if (journey->requests % order->every)
		return 0;
	forget_packet(journey);
	journey->client = (__u64)sk;
	journey->socket = (__u64)sk;
	journey->shape = 0xcbf29ce484222325;
	journey->took = 0;
	journey->route.journeys = 1;
	journey->route.steps = 0;
	journey->is_on = 1;
	// The first step takes no time.
	journey->left = bpf_ktime_get_ns();
	see(journey, journey->left, order->client, 0, SENT);
	return 0;
}

// struct sk_buff *
SEC("tp_btf/net_dev_queue")
int on_queued(__u64 *context)
{
	const struct sk_buff *skb = (const struct sk_buff *)context[0];
	struct journey *journey = under_way();
	__u64 came;

	if (!journey)
		return 0;
	came = bpf_ktime_get_ns();
	if (!carries(journey, skb)) {
		// The first packet that the socket sends is the one.
		if (journey->hook != SENT || (__u64)skb->sk != journey->socket)
			return 0;
		journey->skb = (__u64)skb;
		journey->head = (__u64)skb->head;
	}
	see_at(journey, came, skb->dev, QUEUED);
	return 0;
}

// const struct sk_buff *, const struct net_device *
SEC("tp_btf/net_dev_start_xmit")
int on_transmitted(__u64 *context)
{
	const struct sk_buff *skb = (const struct sk_buff *)context[0];
	struct journey *journey = under_way();
	__u64 came;

	if (!journey)
		return 0;
	came = bpf_ktime_get_ns();
	if (carries(journey, skb))
		see_at(journey, came, (const struct net_device *)context[1], TRANSMITTED);
	return 0;
}

// struct sk_buff *
SEC("tp_btf/netif_rx")
int on_arrived(__u64 *context)
{
	const struct sk_buff *skb = (const struct sk_buff *)context[0];
	struct journey *journey = under_way();
	__u64 came;

	if (!journey)
		return 0;
	came = bpf_ktime_get_ns();
	if (carries(journey, skb))
		see_at(journey, came, skb->dev, ARRIVED);
	return 0;
}

// struct sk_buff *
SEC("tp_btf/netif_receive_skb")
int on_received(__u64 *context)
{
	const struct sk_buff *skb = (const struct sk_buff *)context[0];
	struct journey *journey = under_way();
	__u64 came;

	if (!journey)
		return 0;
	came = bpf_ktime_get_ns();
	if (carries(journey, skb))
		see_at(journey, came, skb->dev, RECEIVED);
	return 0;
}

// A lookup names no packet. It is that of the packet which this CPU has just received.
static __always_inline int look_up(void)
{
	struct journey *journey = under_way();
	__u64 came;

	if (!journey || journey->hook != RECEIVED || journey->cpu != bpf_get_smp_processor_id())
		return 0;
	came = bpf_ktime_get_ns();
	see(journey, came, journey->namespace, journey->device, ROUTED);
	return 0;
}

SEC("tp_btf/fib_table_lookup")
int on_routed(__u64 *context)
{
	(void)context;
	return look_up();
}

SEC("tp_btf/fib6_table_lookup")
int on_routed_v6(__u64 *context)
{
	(void)context;
	return look_up();
}

// struct sock *, const struct sk_buff *
SEC("tp_btf/tcp_probe")
int on_delivered(__u64 *context)
{
	const struct sock *sk = (const struct sock *)context[0];
	const struct sk_buff *skb = (const struct sk_buff *)context[1];
	struct journey *journey = under_way();
	__u64 came;

	if (!journey)
		return 0;
	came = bpf_ktime_get_ns();
	if (!carries(journey, skb))
		return 0;
	journey->socket = (__u64)sk;
	see(journey, came, namespace_of(sk), 0, DELIVERED);
	return 0;
}

// const struct sock *
SEC("tp_btf/sk_data_ready")
int on_ready(__u64 *context)
{
	const struct sock *sk = (const struct sock *)context[0];
	struct journey *journey = under_way();
	__u64 came;

	if (!journey || journey->hook != DELIVERED || (__u64)sk != journey->socket)
		return 0;
	came = bpf_ktime_get_ns();
	see(journey, came, journey->namespace, 0, READY);
	return 0;
}

// struct sock *, int, int
SEC("tp_btf/sock_recv_length")
int on_read(__u64 *context)
{
	const struct sock *sk = (const struct sock *)context[0];
	int length = (int)context[1];
	struct journey *journey = under_way();
	__u64 came;

	if (!journey || journey->hook != READY || (__u64)sk != journey->socket || length <= 0)
		return 0;
	came = bpf_ktime_get_ns();
	forget_packet(journey);
	see(journey, came, journey->namespace, 0, READ);
	if ((__u64)sk == journey->client)
		arrive_home(journey);
	return 0;
}

// struct sk_buff *, void *
SEC("tp_btf/consume_skb")
int on_consumed(__u64 *context)
{
	struct journey *journey = under_way();

	// To a program, for one. What comes of it is another packet.
	if (journey && context[0] == journey->skb)
		end_as(journey, LOST);
	return 0;
}

// struct sk_buff *, void *, enum skb_drop_reason, struct sock *
SEC("tp_btf/kfree_skb")
int on_dropped(__u64 *context)
{
	struct journey *journey = under_way();
	struct drop drop = {};
	__u64 once = 1;
	__u64 *count;

	if (!journey || context[0] != journey->skb)
		return 0;
	drop.namespace = journey->namespace;
	drop.device = journey->device;
	drop.hook = journey->hook;
	drop.reason = (__u32)context[2];
	end_as(journey, DROPPED);
	count = bpf_map_lookup_elem(&drops, &drop);
	if (count)
		*count += 1;
	else
		bpf_map_update_elem(&drops, &drop, &once, BPF_NOEXIST);
	return 0;
}

char terms[] SEC("license") = "GPL";
