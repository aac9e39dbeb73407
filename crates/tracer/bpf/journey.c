// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// Follows requests and their answers through the kernel. One request at a time is on a
// journey: from the moment at which its sender hands it to TCP until the sender has read the
// answer. At each tracepoint that its packet passes, the time since the last one is added to
// the step. Journeys that passed the same places share one entry of `routes`, with the sums of
// their steps: nothing goes to user space for each packet.
//
// The time that these programs take themselves is left out: a step goes from the end of one
// program to the beginning of the next. What is in it all the same, the call of a program and a
// reading of the clock, shows in a rehearsal: the programs run and follow nobody.
//
// A packet is known by the address of its skb, or by that of its bytes (`head`): a clone has
// the same bytes, and a packet that gets room for another header keeps its skb. Both are
// forgotten when it is read or freed, before anybody else can have them.
//
// Where both ends are on one kernel, it follows a journey as a whole. Where each end has a kernel
// of its own, two of these follow a half each, by their own clocks: the sender's from the request
// being handed to TCP until it has left, and from the first sight of the answer to its end; the
// receiver's from the first sight of a request until its answer has left. Which of the packets
// that come is the one shows when it is at its socket, so what comes meanwhile is followed in
// `arrivals`, each packet apart.
//
// Before Linux 6.16 nothing tells that a message is handed to TCP. There it is seen first when its
// packet is at a device, and a journey begins there. Before 6.3 nothing tells that a socket says so
// to who waits, and that a packet is the one shows when it is at the socket with bytes in it.
//
// Built by .ci/bpf; the object is checked in, so that loading needs no compiler.

#include <linux/bpf.h>
#include <stdbool.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "kernel.h"

// Steps of the longest journey. The loader reads the layout of what follows byte by byte, as
// src/tracer/layout.rs says.
#define MOST_STEPS 96
// Of those, before it is known that a packet that comes is the one.
#define MOST_ARRIVING 40
// Packets that come at the same time and are told apart, a power of two.
#define ARRIVALS 256

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
	FILTERING = 10, // came to one of netfilter's hooks
	FILTERED = 11, // left it
};

// When a CPU came to a hook of netfilter with a packet, and when it left it.
struct filter {
	__u64 began;
	__u64 ended;
};

// The hooks at which packets may be stamped, in the order in which they are passed.
struct filters {
	struct filter prerouting;
	struct filter forward;
	struct filter postrouting;
};

struct step {
	__u32 namespace;
	__u32 device;
	__u32 hook;
	__u32 comes; // the first sight of a packet that comes from another kernel
	__u64 ns;
};

struct route {
	__u64 journeys;
	__u32 steps;
	__u32 unused;
	__u64 lasted; // from their first step to the last, these programs included
	struct step step[MOST_STEPS];
};

// What of a journey is followed.
enum part {
	WHOLE,
	SENDER, // the sender's half
	RECEIVER, // the receiver's half
};

// Whom to follow.
struct order {
	__u32 client; // namespace of the sender
	__u16 port; // that it sends to
	__u16 listening; // port of the receiver
	__u64 every; // one of so many requests; none where it is 0
	__u64 longest; // journeys that took longer, in ns, are counted and no more
	__u32 server; // namespace of the receiver
	__u32 unused;
	__u64 warm_up; // how long none is followed after the first ones, in ns
};

struct journey {
	__u32 part; // what is followed
	__u32 is_confined; // to what is seen in the namespaces of `inside`
	__u32 awaits; // whether a packet may come from another kernel
	__u32 is_rehearsal; // nobody is followed
	__u32 from_device; // a message is seen first at a device
	__u32 until_read; // what is at its socket is seen next when it was read
	__u32 sequence; // of the sender's last message, where that is seen first at a device
	__u32 unused;
	__u64 wait; // since when, which no other wait has
	__u64 coming; // the packet that was at its socket last
	__u64 is_on;
	__u64 began;
	__u64 skb; // 0 while no packet is known
	__u64 head;
	__u64 client; // the socket of the sender
	__u64 socket; // the socket that sent it, or that it was delivered to
	__u64 shape; // of the places so far
	__u64 left; // when the last program ended
	__u64 took;
	__u64 requests;
	__u64 counts_from; // when the first requests are over
	__u64 asked; // when a request was seen first, followed or not; 0 once it was answered
	__u64 answered; // requests that were answered within the longest time
	__u64 answered_ns; // what these took until the sender had read the answer
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

// A packet that comes, and where it was seen so far.
struct arrival {
	__u64 skb;
	__u64 wait; // in which it came
	__u64 came;
	__u64 left; // as of a journey
	__u32 hook;
	__u32 cpu;
	__u32 namespace;
	__u32 device;
	__u64 steps;
	struct step step[MOST_ARRIVING];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct order);
} orders SEC(".maps");

// By what their addresses come to: a later one takes the place of an earlier one.
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, ARRIVALS);
	__type(key, __u32);
	__type(value, struct arrival);
} arrivals SEC(".maps");

// The packet that each CPU received last.
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} latest SEC(".maps");

// Of each CPU, written by programs at netfilter's hooks, where there are some.
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct filters);
} filtering SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, __u32);
	__type(value, __u32);
} inside SEC(".maps");

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

// The journey, if it is under way.
static __always_inline struct journey *if_under_way(struct journey *journey)
{
	return journey && journey->is_on ? journey : 0;
}

// It, if it is under way or may be joined by a packet that comes.
static __always_inline struct journey *if_in_sight(struct journey *journey)
{
	return journey && (journey->is_on || journey->awaits) ? journey : 0;
}

static __always_inline struct journey *in_sight(void)
{
	return if_in_sight(any_journey());
}

// Reads the clock in a rehearsal, at a place where it would be read for a packet that is followed:
// all that a sight adds to a hop is there then, and nothing else.
static __always_inline void rehearse(const struct journey *journey)
{
	if (journey && journey->is_rehearsal)
		bpf_ktime_get_ns();
}

// The journey that is in sight, at a place where packets are seen.
static __always_inline struct journey *in_sight_here(void)
{
	struct journey *journey = any_journey();

	rehearse(journey);
	return if_in_sight(journey);
}

static __always_inline const struct order *ordered(void)
{
	__u32 first = 0;

	return bpf_map_lookup_elem(&orders, &first);
}

// Whether what is seen in a namespace counts.
static __always_inline bool is_inside(const struct journey *journey, __u32 namespace)
{
	return !journey->is_confined || bpf_map_lookup_elem(&inside, &namespace);
}

static __always_inline void end_as(struct journey *journey, __u32 fate)
{
	__u64 *count = bpf_map_lookup_elem(&fates, &fate);

	journey->is_on = 0;
	if (journey->part == SENDER)
		journey->awaits = 0;
	if (count)
		*count += 1;
}

static __always_inline void forget_packet(struct journey *journey)
{
	journey->skb = 0;
	journey->head = 0;
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

// FNV-1a, by numbers instead of bytes.
static __always_inline void shape(struct journey *journey, __u32 namespace, __u32 device,
				  __u32 hook)
{
	journey->shape = (journey->shape ^ namespace) * 0x100000001b3;
	journey->shape = (journey->shape ^ ((__u64)hook << 32 | device)) * 0x100000001b3;
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
	step->comes = 0;
	step->ns = ns;
	journey->route.steps = at + 1;
	journey->took += ns;
	shape(journey, namespace, device, hook);
	journey->namespace = namespace;
	journey->device = device;
	journey->hook = hook;
	journey->cpu = bpf_get_smp_processor_id();
	journey->left = bpf_ktime_get_ns();
}

static __always_inline void see_at(struct journey *journey, __u64 came,
				   const struct net_device *device, __u32 hook)
{
	see(journey, came, namespace_at(device), device->ifindex, hook);
}

// Adds what a hook of netfilter took, if this CPU was there since the packet was seen last. Between
// two sights of a packet that is being forwarded it works for that one.
static __always_inline void see_filtered(struct journey *journey, __u64 came,
					 const struct filter *filter)
{
	if (filter->began < journey->left || filter->ended < filter->began || came < filter->ended)
		return;
	see(journey, filter->began, journey->namespace, journey->device, FILTERING);
	journey->left = filter->began;
	see(journey, filter->ended, journey->namespace, journey->device, FILTERED);
	journey->left = filter->ended;
}

static __always_inline const struct filters *filtered(void)
{
	__u32 first = 0;

	return bpf_map_lookup_elem(&filtering, &first);
}

static __always_inline void arrive_home(struct journey *journey)
{
	const struct order *order = ordered();
	struct route *route;

	// There was no room for the last step.
	if (!journey->is_on)
		return;
	if (order && journey->took > order->longest) {
		end_as(journey, TOO_LONG);
		return;
	}
	journey->is_on = 0;
	journey->route.lasted = journey->left - journey->began;
	route = bpf_map_lookup_elem(&routes, &journey->shape);
	if (!route) {
		if (bpf_map_update_elem(&routes, &journey->shape, &journey->route, BPF_NOEXIST))
			end_as(journey, NO_ROOM);
		return;
	}
	route->journeys += 1;
	route->lasted += journey->route.lasted;
	for (__u32 at = 0; at < MOST_STEPS; at++) {
		if (at >= journey->route.steps)
			break;
		route->step[at].ns += journey->route.step[at].ns;
	}
}

static __always_inline void await(struct journey *journey)
{
	journey->awaits = 1;
	journey->wait = bpf_ktime_get_ns();
	journey->coming = 0;
}

// The place of a packet among those that come, whether it has it or not.
static __always_inline struct arrival *place_of(__u64 skb)
{
	__u32 low;
	__u32 at;

	// The kernel lets half of an address be copied, and none be shifted: a copy that the compiler
	// does not leave out.
	asm volatile("%0 = %1" : "=w"(low) : "w"((__u32)skb));
	at = (low >> 6 ^ low >> 14) & (ARRIVALS - 1);
	return bpf_map_lookup_elem(&arrivals, &at);
}

// A packet that has come, if it was seen.
static __always_inline struct arrival *arrived(const struct journey *journey, __u64 skb)
{
	struct arrival *arrival = place_of(skb);

	return arrival && arrival->skb == skb && arrival->wait == journey->wait ? arrival : 0;
}

// Adds a step of a packet that comes.
static __always_inline void see_coming(struct arrival *arrival, __u64 came, __u32 namespace,
				       __u32 device, __u32 hook)
{
	__u64 at = arrival->steps;
	struct step *step;

	if (at >= MOST_ARRIVING) {
		arrival->skb = 0;
		return;
	}
	step = &arrival->step[at];
	step->namespace = namespace;
	step->device = device;
	step->hook = hook;
	step->comes = !at;
	step->ns = came - arrival->left;
	arrival->steps = at + 1;
	arrival->namespace = namespace;
	arrival->device = device;
	arrival->hook = hook;
	arrival->cpu = bpf_get_smp_processor_id();
	arrival->left = bpf_ktime_get_ns();
}

// A packet that is not the followed one is at a device. It may be the one that is to come.
static __always_inline void notice(const struct journey *journey, __u64 came,
				   const struct sk_buff *skb, const struct net_device *device,
				   __u32 hook)
{
	struct arrival *arrival = place_of((__u64)skb);
	__u64 *received;
	__u32 first = 0;

	if (!arrival)
		return;
	if (arrival->skb != (__u64)skb || arrival->wait != journey->wait) {
		// Nothing comes that is sent here.
		if (hook != ARRIVED && hook != RECEIVED)
			return;
		arrival->skb = (__u64)skb;
		arrival->wait = journey->wait;
		arrival->came = came;
		arrival->left = came;
		arrival->steps = 0;
	}
	if (hook == RECEIVED) {
		received = bpf_map_lookup_elem(&latest, &first);
		if (received)
			*received = (__u64)skb;
	}
	see_coming(arrival, came, namespace_at(device), device->ifindex, hook);
}

// A packet is at a device.
static __always_inline int pass(const struct sk_buff *skb, const struct net_device *device,
				__u32 hook)
{
	struct journey *journey = in_sight_here();
	__u64 came;

	if (!journey)
		return 0;
	came = bpf_ktime_get_ns();
	if (!is_inside(journey, namespace_at(device)))
		return 0;
	if (journey->is_on && carries(journey, skb))
		see_at(journey, came, device, hook);
	else if (journey->awaits)
		notice(journey, came, skb, device, hook);
	return 0;
}

// Whether a socket is the one that packets come to.
static __always_inline bool receives(const struct journey *journey, const struct sock *sk)
{
	const struct order *order = ordered();

	if (journey->part == SENDER)
		return journey->is_on && (__u64)sk == journey->client;
	return order && journey->part == RECEIVER &&
	       sk->__sk_common.skc_num == order->listening && namespace_of(sk) == order->server;
}

// A journey begins.
static __always_inline void begin(struct journey *journey, __u64 came)
{
	forget_packet(journey);
	journey->shape = 0xcbf29ce484222325;
	journey->took = 0;
	journey->began = came;
	journey->route.journeys = 1;
	journey->route.steps = 0;
	journey->is_on = 1;
}

// The packet that has come is the one: its steps are those of the journey.
static __always_inline void join(struct journey *journey, struct arrival *arrival,
				 const struct sock *sk)
{
	__u64 away = 0;
	struct step *from;
	struct step *to;
	__u32 at;

	journey->awaits = 0;
	if (journey->part == RECEIVER) {
		if (journey->is_on)
			end_as(journey, LOST);
		begin(journey, arrival->came);
	} else if (journey->hook == TRANSMITTED) {
		away = arrival->came - journey->left;
	} else {
		end_as(journey, LOST);
		return;
	}
	forget_packet(journey);
	for (__u32 step = 0; step < MOST_ARRIVING; step++) {
		if (step >= arrival->steps)
			break;
		at = journey->route.steps;
		// Else the compiler counts on beside the check, which the kernel does not follow.
		barrier_var(at);
		if (at >= MOST_STEPS) {
			end_as(journey, NO_ROOM);
			return;
		}
		from = &arrival->step[step];
		to = &journey->route.step[at];
		to->namespace = from->namespace;
		to->device = from->device;
		to->hook = from->hook;
		to->comes = from->comes;
		to->ns = step ? from->ns : away;
		journey->took += to->ns;
		journey->route.steps = at + 1;
		shape(journey, from->namespace, from->device, from->hook);
	}
	arrival->skb = 0;
	journey->socket = (__u64)sk;
	journey->namespace = arrival->namespace;
	journey->device = arrival->device;
	journey->hook = arrival->hook;
	journey->cpu = bpf_get_smp_processor_id();
	journey->left = bpf_ktime_get_ns();
}

// Counts a request. Whether it is past the first ones, which find cold what others find warm. A
// connection's first message may open it long before there is any load.
static __always_inline bool is_warm(struct journey *journey, const struct order *order, __u64 now)
{
	journey->requests += 1;
	if (journey->requests <= 2)
		journey->counts_from = now + order->warm_up;
	return now >= journey->counts_from;
}

// A message of the sender is seen for the first time. Whether it is followed, as every so many
// are: then the journey has begun, and the caller sees where.
static __always_inline bool ask(struct journey *journey, const struct order *order,
				const struct sock *sk)
{
	journey->asked = bpf_ktime_get_ns();
	journey->client = (__u64)sk;
	if (!is_warm(journey, order, journey->asked) || journey->requests % order->every)
		return false;
	journey->awaits = 0;
	journey->socket = (__u64)sk;
	// The first step takes no time.
	journey->left = journey->asked;
	begin(journey, journey->asked);
	if (journey->part == SENDER)
		await(journey);
	return true;
}

// Whether a socket is that of the sender, where that is to be followed from here.
static __always_inline bool asks(const struct journey *journey, const struct order *order,
				 const struct sock *sk)
{
	return journey->part != RECEIVER && order->every &&
	       sk->__sk_common.skc_dport == bpf_htons(order->port) &&
	       namespace_of(sk) == order->client;
}

// const struct sock *, const struct msghdr *, const struct sk_buff *, int
SEC("tp_btf/tcp_sendmsg_locked")
int on_sent(__u64 *context)
{
	const struct sock *sk = (const struct sock *)context[0];
	struct journey *journey = any_journey();
	const struct order *order = ordered();

	rehearse(journey);
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
	if (!asks(journey, order, sk) || !ask(journey, order, sk))
		return 0;
	see(journey, journey->left, order->client, 0, SENT);
	return 0;
}

// What is read of a packet's TCP header.
struct tcp {
	__be16 source;
	__be16 destination;
	__be32 sequence;
	__be32 acknowledged;
	__u32 words; // the upper half of its first byte: how long the header is, four bytes each
};

// Reads that of a packet. How many bytes of a message it carries: one that only acknowledges has
// none. Computed from offsets into its buffer: verifiers of some kernels take its `data` for a
// pointer that may not be used in arithmetic.
static __always_inline __u32 carried(const struct sk_buff *skb, struct tcp *tcp)
{
	__u32 header = skb->transport_header;

	if (bpf_probe_read_kernel(tcp, sizeof(*tcp), skb->head + header))
		return 0;
	return skb->tail + skb->data_len - header - (tcp->words >> 4 & 0xf) * 4;
}

static __always_inline void take(struct journey *journey, const struct sk_buff *skb)
{
	journey->skb = (__u64)skb;
	journey->head = (__u64)skb->head;
}

// A packet of the sender's message, or of the answer to it, is at the first device, and nothing
// of it was seen before. Whether the journey begins here.
static __always_inline bool begins_at(struct journey *journey, const struct sk_buff *skb)
{
	const struct order *order = ordered();
	const struct sock *sk = skb->sk;
	struct tcp tcp;

	if (!order || !sk)
		return false;
	if (journey->is_on && journey->hook == READ && (__u64)sk == journey->socket) {
		if (carried(skb, &tcp))
			take(journey, skb);
		return false;
	}
	// At further devices it is the same message, or one of a tunnel.
	if (!asks(journey, order, sk) || !carried(skb, &tcp) ||
	    tcp.destination != bpf_htons(order->port) || tcp.sequence == journey->sequence)
		return false;
	journey->sequence = tcp.sequence;
	if (journey->is_on)
		end_as(journey, LOST);
	if (!ask(journey, order, sk))
		return false;
	take(journey, skb);
	see_at(journey, journey->left, skb->dev, QUEUED);
	return true;
}

// struct sk_buff *
SEC("tp_btf/net_dev_queue")
int on_queued(__u64 *context)
{
	const struct sk_buff *skb = (const struct sk_buff *)context[0];
	struct journey *journey = any_journey();

	if (journey && journey->from_device && begins_at(journey, skb))
		return 0;
	journey = if_under_way(journey);
	// The first packet that the socket sends is the one.
	if (journey && journey->hook == SENT && !journey->skb &&
	    (__u64)skb->sk == journey->socket)
		take(journey, skb);
	if (journey && journey->hook == ROUTED && journey->cpu == bpf_get_smp_processor_id() &&
	    is_inside(journey, namespace_at(skb->dev)) && carries(journey, skb)) {
		__u64 came = bpf_ktime_get_ns();
		const struct filters *filters = filtered();

		if (filters) {
			see_filtered(journey, came, &filters->forward);
			see_filtered(journey, came, &filters->postrouting);
		}
		see_at(journey, came, skb->dev, QUEUED);
		return 0;
	}
	return pass(skb, skb->dev, QUEUED);
}

// const struct sk_buff *, const struct net_device *
SEC("tp_btf/net_dev_start_xmit")
int on_transmitted(__u64 *context)
{
	const struct sk_buff *skb = (const struct sk_buff *)context[0];

	return pass(skb, (const struct net_device *)context[1], TRANSMITTED);
}

// struct sk_buff *
SEC("tp_btf/netif_rx")
int on_arrived(__u64 *context)
{
	const struct sk_buff *skb = (const struct sk_buff *)context[0];

	return pass(skb, skb->dev, ARRIVED);
}

// struct sk_buff *
SEC("tp_btf/netif_receive_skb")
int on_received(__u64 *context)
{
	const struct sk_buff *skb = (const struct sk_buff *)context[0];

	return pass(skb, skb->dev, RECEIVED);
}

// A lookup names no packet. It is that of the packet which this CPU has just received.
static __always_inline int look_up(void)
{
	struct journey *journey = in_sight_here();
	const struct filters *filters;
	struct arrival *arrival;
	__u64 *received;
	__u32 first = 0;
	__u64 came;

	if (!journey)
		return 0;
	came = bpf_ktime_get_ns();
	if (journey->is_on && journey->hook == RECEIVED &&
	    journey->cpu == bpf_get_smp_processor_id()) {
		filters = filtered();
		if (filters)
			see_filtered(journey, came, &filters->prerouting);
		see(journey, came, journey->namespace, journey->device, ROUTED);
		return 0;
	}
	received = bpf_map_lookup_elem(&latest, &first);
	if (!journey->awaits || !received)
		return 0;
	arrival = arrived(journey, *received);
	if (arrival && arrival->hook == RECEIVED && arrival->cpu == bpf_get_smp_processor_id())
		see_coming(arrival, came, arrival->namespace, arrival->device, ROUTED);
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

// A request is at the receiver's socket: the answer before has left.
static __always_inline void end_before(struct journey *journey, const struct sock *sk)
{
	if (journey->is_on && journey->part == RECEIVER && journey->hook == TRANSMITTED &&
	    (__u64)sk == journey->socket)
		arrive_home(journey);
}

// struct sock *, const struct sk_buff *
SEC("tp_btf/tcp_probe")
int on_delivered(__u64 *context)
{
	const struct sock *sk = (const struct sock *)context[0];
	const struct sk_buff *skb = (const struct sk_buff *)context[1];
	struct journey *journey = in_sight_here();
	struct arrival *arrival;
	bool is_message;
	struct tcp tcp;
	__u64 came;

	if (!journey)
		return 0;
	came = bpf_ktime_get_ns();
	if (!is_inside(journey, namespace_of(sk)))
		return 0;
	if (journey->is_on && carries(journey, skb)) {
		journey->socket = (__u64)sk;
		see(journey, came, namespace_of(sk), 0, DELIVERED);
		return 0;
	}
	is_message = journey->until_read && receives(journey, sk) && carried(skb, &tcp);
	if (is_message)
		end_before(journey, sk);
	arrival = journey->awaits ? arrived(journey, (__u64)skb) : 0;
	if (!arrival)
		return 0;
	if (!receives(journey, sk)) {
		arrival->skb = 0;
		return 0;
	}
	// One that only acknowledges comes no further.
	journey->coming = (__u64)skb;
	see_coming(arrival, came, namespace_of(sk), 0, DELIVERED);
	if (is_message && arrival->skb)
		join(journey, arrival, sk);
	return 0;
}

// const struct sock *
SEC("tp_btf/sk_data_ready")
int on_ready(__u64 *context)
{
	const struct sock *sk = (const struct sock *)context[0];
	struct journey *journey = in_sight_here();
	struct arrival *arrival;
	__u64 came;

	if (!journey)
		return 0;
	came = bpf_ktime_get_ns();
	if (journey->is_on && journey->hook == DELIVERED && (__u64)sk == journey->socket) {
		see(journey, came, journey->namespace, 0, READY);
		return 0;
	}
	end_before(journey, sk);
	if (!journey->awaits || !journey->coming)
		return 0;
	arrival = arrived(journey, journey->coming);
	if (!arrival || arrival->hook != DELIVERED || !receives(journey, sk))
		return 0;
	journey->coming = 0;
	see_coming(arrival, came, arrival->namespace, 0, READY);
	join(journey, arrival, sk);
	return 0;
}

// Every so many requests the receiver's half follows the next: the one that the sender's half
// follows, which counts alike. Its programs are then in the time that both have for it.
static __always_inline void count_request(struct journey *journey, const struct sock *sk)
{
	const struct order *order = ordered();

	if (!order || !order->every || !receives(journey, sk))
		return;
	if (is_warm(journey, order, bpf_ktime_get_ns()) &&
	    (journey->requests + 1) % order->every == 0)
		await(journey);
}

// The sender has an answer. What this program took is in the time.
static __always_inline void count_answer(struct journey *journey)
{
	const struct order *order = ordered();
	__u64 took = bpf_ktime_get_ns() - journey->asked;

	if (order && journey->asked && journey->asked >= journey->counts_from &&
	    took <= order->longest) {
		journey->answered += 1;
		journey->answered_ns += took;
	}
	journey->asked = 0;
}

// A program has what came to a socket.
static __always_inline int has_read(const struct sock *sk)
{
	struct journey *journey = any_journey();
	__u64 came;

	rehearse(journey);
	if (!journey)
		return 0;
	came = bpf_ktime_get_ns();
	if (journey->is_on && journey->hook == (journey->until_read ? DELIVERED : READY) &&
	    (__u64)sk == journey->socket) {
		forget_packet(journey);
		see(journey, came, journey->namespace, 0, READ);
		if ((__u64)sk == journey->client)
			arrive_home(journey);
	}
	if (journey->part == RECEIVER)
		count_request(journey, sk);
	else if ((__u64)sk == journey->client)
		count_answer(journey);
	return 0;
}

// struct sock *, int, int
SEC("tp_btf/sock_recv_length")
int on_read(__u64 *context)
{
	return (int)context[1] > 0 ? has_read((const struct sock *)context[0]) : 0;
}

// struct sock *
SEC("tp_btf/tcp_rcv_space_adjust")
int on_copied(__u64 *context)
{
	return has_read((const struct sock *)context[0]);
}

// A packet is gone, and another may have its address.
static __always_inline void forget_arrival(struct journey *journey, __u64 skb)
{
	struct arrival *arrival = journey->awaits ? arrived(journey, skb) : 0;

	if (arrival)
		arrival->skb = 0;
}

// struct sk_buff *, void *
SEC("tp_btf/consume_skb")
int on_consumed(__u64 *context)
{
	struct journey *journey = in_sight();

	if (!journey)
		return 0;
	forget_arrival(journey, context[0]);
	if (!journey->is_on || context[0] != journey->skb)
		return 0;
	// By the driver that has sent it to another kernel, or to a program, for one. What comes
	// of it there is another packet.
	if (journey->part != WHOLE && journey->hook == TRANSMITTED)
		forget_packet(journey);
	else
		end_as(journey, LOST);
	return 0;
}

static __always_inline int dropped(__u64 skb, __u32 reason)
{
	struct journey *journey = in_sight();
	struct drop drop = {};
	__u64 once = 1;
	__u64 *count;

	if (!journey)
		return 0;
	forget_arrival(journey, skb);
	if (!journey->is_on || skb != journey->skb)
		return 0;
	drop.namespace = journey->namespace;
	drop.device = journey->device;
	drop.hook = journey->hook;
	drop.reason = reason;
	end_as(journey, DROPPED);
	count = bpf_map_lookup_elem(&drops, &drop);
	if (count)
		*count += 1;
	else
		bpf_map_update_elem(&drops, &drop, &once, BPF_NOEXIST);
	return 0;
}

// struct sk_buff *, void *, enum skb_drop_reason, struct sock *
SEC("tp_btf/kfree_skb")
int on_dropped(__u64 *context)
{
	return dropped(context[0], (__u32)context[2]);
}

// Before Linux 5.17: struct sk_buff *, void *
SEC("tp_btf/kfree_skb")
int on_dropped_for_no_reason(__u64 *context)
{
	return dropped(context[0], 0);
}

char terms[] SEC("license") = "GPL";
