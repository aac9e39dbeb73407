#!/usr/bin/env python3
"""How soon a pod has its network, and what a restart of its network's programs costs.

Takes runs of `plumbline run launch` and `plumbline survive` in clusters, and writes
docs/launch.md and docs/survive.md with their pictures. Each run gets the words by which
the tables call it; a launch on several networks is called by each of theirs. A page without
runs is not written.

With --launches it makes the runs of docs/launch.md first, in an hour and a half or so, and with
--restarts those of docs/survive.md, in two hours or so, in clusters of tests/kubelab (run
`kubelab build`, `kubelab build calico` and `kubelab build cilium` once before). PLUMBLINE must
then be a static build, and nothing else may run on the machine.

usage: scripts/life-of-a-pod.py [--launch LABEL=RUN] [--survive LABEL=RUN] PLUMBLINE
       scripts/life-of-a-pod.py --launch flannel=runs/A --launch calico=runs/B \\
           --survive 'flanneld killed=runs/C' target/release/plumbline
       sudo scripts/life-of-a-pod.py --launches --restarts target/x86_64-unknown-linux-musl/dist/plumbline
"""

import argparse
import json
import math
import os
import pathlib
import subprocess

import run_record

DOCS = run_record.TOP / "docs"
KUBELAB = "tests/kubelab/kubelab"
# Of each cluster: a program of the sender's node, the path, and what is beside the traffic.
PODS = "with new pods", ["--set", "workload.pods=5"]
POLICY = "under a policy", ["--set", "workload.policy=true"]
SERVICES = "beside 1,000 services", ["--services", "1000", "--position", "none"]
RESTARTED = {
    "flannel": [("flanneld", "pod", PODS), ("kube-proxy", "cluster-ip", SERVICES)],
    "calico": [("calico-felix", "pod", POLICY), ("calico-felix", "pod", PODS)],
    "cilium": [("cilium-agent", "pod", POLICY), ("cilium-agent", "pod", PODS)],
}
# What holds on its node once such a program works again: flanneld has written its file since it
# was started, and kube-proxy, whose health check passes before, has written its rules.
WORKS = {
    "flanneld": "test /run/flannel/subnet.env -nt /run/kubelab/flanneld.pid",
    "kube-proxy": "curl -s localhost:10249/metrics | grep -q ^kubeproxy_sync_proxy_rules_last_timestamp_seconds",
    "calico-felix": "curl -sf localhost:9099/readiness",
    "cilium-agent": "curl -sf localhost:9879/healthz",
}
# The experiments of launches, each with what it is called.
LAUNCHED = {"Two pods a second": "clusters", "Five, twenty and fifty a second": "faster"}
FLOWS = {"standing": "standing connections", "new": "new connections", "datagram": "datagrams"}


def time(ns):
    """A time in its unit, with three digits."""
    if ns is None:
        return "–"
    if ns == 0:
        return "0"
    unit, size = next((it for it in [("s", 1e9), ("ms", 1e6), ("µs", 1e3)] if ns >= it[1]), ("ns", 1))
    value = ns / size
    return f"{value:.{max(0, 3 - len(str(int(value))))}f} {unit}"


def within(middle, low, high):
    """A figure with its interval, where it has one."""
    bounds = "" if low is None or high is None else f" ({time(low)} to {time(high)})"
    return time(middle) + bounds


def spread(of):
    """A median over trials with its interval, where there is one."""
    return time(None) if of is None else within(of["median"], of["low"], of["high"])


def treatments(program, directory):
    return json.loads(run_record.report(program, directory, "json"))["treatments"]


def named(label, treatments):
    """Treatments of a launch, each with what the tables call it."""
    network = lambda one: one["factors"]["network"]
    is_one = len({network(one) for one in treatments}) == 1
    return [(label if is_one else network(one), one) for one in treatments]


def pace(treatment):
    """How many pods begin in each second, where not all do at once."""
    rate = treatment["factors"]["pods_per_second"]
    return "all at once" if rate is None else f"{rate:g}/s"


def slowest(label, treatment):
    """The slowest pod of a launch, and where its time went."""
    pod = treatment["launch"]["slowest"]
    if pod is None:
        return f"- {label}, {pace(treatment)}: none had its network"
    # What the cluster shows in one message has no length.
    parts = [one for one in pod["parts"] if one["to_ns"] > one["from_ns"]]
    parts = ", ".join(f"{one['name']} {time(one['to_ns'] - one['from_ns'])}" for one in parts)
    at = f"number {pod['position'] + 1} of block {pod['block'] + 1}, on {pod['node']}"
    return f"- {label}, {pace(treatment)}: {time(pod['network_up_ns'])}, {at} ({parts})"


def limited(label, treatment):
    """What requests waited in the rate limiters of the network's agents."""
    for wait in treatment["launch"]["limiter"]:
        mean = time(wait["waited_ns"] / wait["requests"]) if wait["waited_ns"] else "not at all"
        yield f"- {label}, {pace(treatment)}: {wait['requests']} requests `{wait['call']}` waited {mean} in the mean"


def launched(label, treatment):
    """A row of the pods of one launch."""
    launch = treatment["launch"]
    stretches = {one["name"]: one for one in launch["times"]}
    unseen = {"ns": None}
    share = lambda name, at: next((one for one in stretches.get(name, {"quantiles": []})["quantiles"] if one["share"] == at), unseen)
    up = [share("network_up", at) for at in (0.5, 0.9, 0.99)]
    stretches_of_half = ("attach", "add", "first_out", "first_in", "ready", "release")
    return [
        label,
        pace(treatment),
        *(f"{launch[key]} of {launch['pods']}" for key in ("up", "ready", "whole")),
        within(up[0]["ns"], up[0]["low_ns"], up[0]["high_ns"]),
        spread(up[0]["over_trials_ns"]),
        *(within(one["ns"], one["low_ns"], one["high_ns"]) for one in up[1:]),
        *(time(share(name, 0.5)["ns"]) for name in stretches_of_half),
        time(share("watches_apart", 0.99)["ns"]),
    ]


def stretches(label, treatment):
    """The lengths of the stretches of half of the pods of one launch, in their order."""
    middle = lambda one: next(it["ns"] for it in one["quantiles"] if it["share"] == 0.5)
    steps = (f"{one['name']} {time(middle(one))}" for one in treatment["launch"]["steps"])
    return f"- {label}, {pace(treatment)}: {', '.join(steps)}"


def outcome(label, treatment):
    """A row of what is most asked of an event."""
    survive, launch = treatment["survive"], treatment.get("launch")
    flows, forbidden = survive["flows"], survive.get("forbidden")
    return [
        label,
        f"{sum(one['broken'] for one in flows)} of {sum(one['connections'] for one in flows)}",
        *(spread(one["gap_ns"]) for one in flows),
        time(max(one["longest_gap_ns"] for one in flows)),
        f"{spread(survive['well_again_ns'])}, {survive['repetitions'] - survive['unwell']} of {survive['repetitions']}",
        new_pods(launch) if launch else "",
        f"{forbidden['opened']} of {forbidden['connections']}, {time(forbidden['longest_open_ns'])}" if forbidden else "",
    ]


def new_pods(launch):
    """How many had their network, how late the slowest of these had it, and how many were ready."""
    slowest = launch["slowest"]
    after = f", {time(slowest['network_up_ns'])}" if slowest else ""
    return f"{launch['up']} of {launch['pods']}{after}, {launch['ready']} ready"


def survived(label, treatment):
    """A row for each kind of traffic."""
    survive = treatment["survive"]
    for flow in survive["flows"]:
        yield [
            label,
            treatment["factors"]["path"] or treatment["factors"]["network"],
            FLOWS[flow["kind"]],
            f"{flow['broken']} of {flow['connections']}" if flow["connections"] else "",
            spread(flow["gap_ns"]),
            time(flow["longest_gap_ns"]),
            time(flow["longest_gap_before_ns"]),
            *(f"{flow[key] / flow['requests']:.3%}" for key in ("after_10ms", "after_100ms", "after_1s")),
        ]


def write(name, runs, text):
    sources = "\n".join(run_record.source(run) for _, run in runs)
    page = DOCS / f"{name}.md"
    page.write_text(f"""<!-- Made by scripts/life-of-a-pod.py; do not edit. -->

{text}
## How this was measured

Where a command does not make its cluster itself (`--provision`), `tests/kubelab/kubelab up --cni NETWORK` made it, with
Calico, Cilium, or for flanneld and kube-proxy Flannel, and `tests/kubelab/kubelab load` gave it the image.

{sources}
`scripts/life-of-a-pod.py` makes this page.
""")
    print(f"{page} is written")


def launch_page(program, runs):
    rows, halves, tails, limits, pictures, single, calmest = [], [], [], [], [], [], {}
    for label, run in runs:
        all_of = named(label, treatments(program, run))
        rows += [launched(*one) for one in all_of]
        halves += [stretches(*one) for one in all_of]
        tails += [slowest(*one) for one in all_of]
        limits += [line for one in all_of for line in limited(*one)]
        rate = lambda one: one[1]["factors"]["pods_per_second"] or math.inf
        for one in all_of:
            calmest[one[0]] = min(calmest.get(one[0], one), one, key=rate)
        if len(run_record.read(run)["plan"]["blocks"]) == 1:
            single += dict.fromkeys(pace(one) for _, one in all_of)
        page = run_record.report(program, run, "html")
        pictures.append(f"{label}:\n\n" + run_record.pictures(page, "Start of the slowest pod", f"launch-{run_record.slug(label)}"))
    answers = [f"{launched(*one)[5]} on {network}, {pace(one[1])}" for network, one in calmest.items()]
    alone = f"One launch alone was made at {', '.join(single)}: what is said of it is within it, and another may differ by more.\n\n" if single else ""
    waits = "Where a network's agent shows what its plugins' requests waited in its rate limiter, which is in ADD and is no work:\n\n"
    waits = f"{waits}{chr(10).join(limits)}\n" if limits else ""
    head = ["network", "launched", "network up", "ready", "phases complete", "half of them within", "over launches", "90 %", "99 %", "attach", "ADD", "first packet out", "first packet in", "until ready", "release", "watches apart"]
    write("launch", runs, f"""# How soon a pod has its network

Pods begin at a rate, open loop, on the two nodes of a cluster on one machine, and each is followed until
packets have passed to and from it, and until it is gone: [what is seen](method.md#when-a-pod-has-its-network). The
first columns count from the moment at which a pod was to begin, with 95 % intervals within the run. *Phases complete* are the
pods of which every phase was seen that was seen of any: accepted, scheduled, its namespace, its sandbox, running, network up,
ready and released. *Over launches* is
the median of what half of the pods took in each launch of the run, with a 95 % interval where these are six or more. *Attach*
and the following ones are the median lengths of single stretches. *ADD* is the part of *attach* in which the network's plugins
work; 0.8 to 1.1 ms for each are ours, [for dating them](../tests/kubelab/README.md#what-a-plugin-takes). *Until ready*
is from the intended start, and *release* until the address of a pod that was deleted answers no more. Two
watches of the same pods were *apart* by at most this for 99 of 100: what the watched dates owe to the observer. The
cluster's own programs, and the observer, run on the same two CPUs, so how long pods queue says what this machine can
do; what differs between networks is theirs.

Half of the pods have their network within {", ".join(answers)}.

{alone}{run_record.table(head, rows)}

How long each step took, its median over pods: until the API server had the pod, a node was chosen and the sandbox was
begun, what the network's plugins did, and what the cluster showed afterwards:

{chr(10).join(halves)}

The slowest pod of each, by its trial and its place in the launch, and its stretches one after the other,
those after its network was up too:

{chr(10).join(tails)}

{waits}
{chr(10).join(f"{one}{chr(10)}" for one in pictures)}""")


def survive_page(program, runs):
    outcomes, rows, pictures, flows = [], [], [], []
    for label, run in runs:
        all_of = treatments(program, run)
        rows += [row for one in all_of for row in survived(label, one)]
        outcomes += [outcome(label, one) for one in all_of]
        flows += [flow for one in all_of for flow in one["survive"]["flows"]]
        page = run_record.report(program, run, "html")
        pictures.append(f"{label}:\n\n" + run_record.pictures(page, "in the worst repetition", f"survive-{run_record.slug(label)}"))
    most_asked = ["event", "broken", *(f"gap of {it}" for it in FLOWS.values()), "longest of all", "well again", "new pods", "forbidden"]
    head = ["event", "path", "traffic", "broken", "longest gap of a repetition", "of all", "before the event", "> 10 ms", "> 100 ms", "> 1 s"]
    write("survive", runs, f"""# What a restart of a network's programs costs

Connections that stand, new ones and datagrams go on between two pods on two nodes, each 1,000 times a
second, while a program of the sender's node is ended and started again, until it works, and 3 s longer: [what is
seen](method.md#what-traffic-survives). *Nothing* is a command that only waits for a second: new pods, too, take
this machine's two CPUs, which carry the whole cluster, so each event is to be held against *nothing* beside the same.

A gap is a stretch of intended sends without an answer within 10 ms: the longest of each repetition, its median over
repetitions with a 95 % interval, and the longest of all kinds and repetitions. *Well again* is the time from the beginning of
the event to the end of the last gap that was longer than 10 ms and than any before it, its median with a 95 % interval; and in
how many repetitions traffic was well at the end. *New pods* began one a second with the event: how many had their network,
how late the slowest had it, and how many were ready. *Forbidden* are connections that a policy forbids: how many got through,
of how many that were tried, and for how long at most.

Of {sum(one["connections"] for one in flows):,} connections that stood, {sum(one["broken"] for one in flows)} broke.

{run_record.table(most_asked, outcomes)}

By kind of traffic, with the longest gap that the machine made by itself in the second before the event, which is less time
than there is since, and with the shares of late requests of all in the repetitions, those before the event too. A request
that is never answered counts as later than 1 s, also where its neighbours are answered:

{run_record.table(head, rows)}

The repetition with the longest gap, of each event:

{chr(10).join(f"{one}{chr(10)}" for one in pictures)}""")


def do(*words):
    subprocess.run(words, cwd=run_record.TOP, stdout=subprocess.DEVNULL, check=True)


def measured(name, *words):
    """The directory of a run of an experiment of this name, which these words make."""
    do(*words)
    return run_record.newest(name)


def launches(program):
    """Launches pods on each network; runs, each with its word."""
    for label, name in LAUNCHED.items():
        file = f"scripts/launch-{name}.toml"
        yield label, measured("launch", program, "run", file, "--provision", f"{KUBELAB} up --cni {{network}}")


def events(daemon):
    """What a program of the network is put through until it works again, and nothing at all for comparison."""
    end = f"p=$(cat /run/kubelab/{daemon}.pid); kill $p; while kill -0 $p 2>/dev/null; do sleep 0.1; done"
    works = f"timeout 50 sh -c 'until {WORKS[daemon]}; do sleep 0.2; done'"
    start = f"{KUBELAB} start node1 {daemon} && {KUBELAB} exec node1 {works}"
    return {
        "nothing": "sleep 1",
        f"{daemon} ended and started": f"{KUBELAB} exec node1 sh -c '{end}' && {start}",
        f"{daemon} killed and started": f"{KUBELAB} stop node1 {daemon} && {start}",
    }


def restarts(program):
    """Restarts the programs of each network under traffic; runs, each with its words."""
    home = pathlib.Path(os.environ.get("KUBELAB_HOME", "/var/lib/kubelab"))
    os.environ["KUBECONFIG"] = str(home / "admin.kubeconfig")
    image = str(home / "plumbline.tar")
    do(program, "image", "-o", image)
    for cni, programs in RESTARTED.items():
        do(KUBELAB, "up", "--cni", cni)
        try:
            do(KUBELAB, "load", image)
            for daemon, path, (words, flags) in programs:
                for event, command in events(daemon).items():
                    survive = [program, "survive", "--target", "kubernetes", "--network", path, "--during", command]
                    yield f"{cni}: {event}, {words}", measured("survive", *survive, "--blocks", "12", *flags)
        finally:
            do(KUBELAB, "down")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    called = lambda text: tuple(text.split("=", 1))
    parser.add_argument("--launch", type=called, action="append", default=[], metavar="LABEL=RUN")
    parser.add_argument("--survive", type=called, action="append", default=[], metavar="LABEL=RUN")
    parser.add_argument("--launches", action="store_true")
    parser.add_argument("--restarts", action="store_true")
    parser.add_argument("program", metavar="PLUMBLINE")
    arguments = parser.parse_args()
    program = str(pathlib.Path(arguments.program).resolve())
    of_launch = [*arguments.launch, *(launches(program) if arguments.launches else ())]
    of_survive = [*arguments.survive, *(restarts(program) if arguments.restarts else ())]
    for page, runs in ((launch_page, of_launch), (survive_page, of_survive)):
        if runs:
            page(program, runs)


if __name__ == "__main__":
    main()
