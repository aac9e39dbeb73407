#!/usr/bin/env python3
"""What one rule of each kind costs on this kernel, as a page with pictures.

Runs the experiments `services` and `policies` in the lab, or takes runs of them, and
writes docs/price-of-a-rule.md with its pictures: what each further Service and policy
costs a new connection and one that stands, in time and in CPU, as the laws of the
reports have it. With runs in clusters the lab's slope stands beside that of the real
program, and the page says whether their intervals meet. Where no law has an interval,
nothing is written. Nothing else may run on the machine while it measures.

usage: scripts/price-of-a-rule.py [--run EXPERIMENT=RUN] [--more 'EXPERIMENT NAME=RUN']
                                  [--cluster LABEL=RUN] [--beside 'EXPERIMENT NAME=RUN'] PLUMBLINE
       scripts/price-of-a-rule.py target/release/plumbline
       scripts/price-of-a-rule.py --run services=runs/A --run policies=runs/B \\
           --cluster iptables-nft=runs/C --cluster nftables=runs/D \\
           --beside services=runs/E target/release/plumbline

`--more` adds the rules of another run of an experiment to its table: other proxies, or other
enforcers. NAME, if there is one, is what they are called there, with `{}` for the name that the
run has for each of them. What the table has already by that name is replaced.

LABEL is the name in the lab's run beside it of what the cluster of a run has. What is compared is
its path `pod`. A second path in the run has it measured in turns, where steal voids
a trial later than in whole windows.
In a cluster nobody knows which place a service has, so its traffic asks none: the lab's run
to set beside it has `--position none`. The CPU of the whole machine is in the runs: of so few
requests a second it says little.
"""

import argparse
import json
import pathlib
import subprocess
import sys

import run_record

TOP = pathlib.Path(__file__).resolve().parent.parent
PAGE = TOP / "docs" / "price-of-a-rule.md"
EXPERIMENTS = ["services", "policies"]
# What is looked at, and what the tables call it.
METRICS = {
    "p50": "median request",
    "handshake": "handshake",
    "process_cpu_per_request": "CPU of the processes",
}
# Policies that name their peers by labels, and why these cost less in a cluster.
EMPTY_SETS = "of pods"
WHY_EMPTY = """Nobody in the cluster has the labels by which policies name their peers, so the sets of a real Calico are empty,
and each of the lab's holds an address. That is what differs: a lab whose sets were emptied was cheaper by as much ([how
that was tried](method.md#policies))."""
CONNECTIONS = {"crr": "a new connection", "rr": "one that stands"}


def measured(program, experiment):
    """Runs an experiment, and gives the directory of the run."""
    subprocess.run([program, "run", experiment], cwd=TOP, stdout=subprocess.DEVNULL, check=True)
    return run_record.newest(experiment)


def reported(program, run):
    """The report of a run, read."""
    return json.loads(run_record.report(program, run, "json"))


def laws(result, factor, name="{}"):
    """The laws of a factor that have an interval, by what their treatment is called, workload and
    metric."""
    known = [one for one in result.get("laws", []) if one["factor"] == factor and one["low"] is not None]
    if not known:
        sys.exit(f"no law of {factor} has an interval: run it again on a quiet machine")
    return {(name.format(one["treatment"]), one["workload"], one["metric"]): one for one in known}


def named_laws(program, name, run):
    """The experiment that the first word says, and the laws of its run, called by the others."""
    experiment, _, name = name.partition(" ")
    return experiment, laws(reported(program, run), experiment, name or "{}")


def network(result):
    """What was found in the cluster of a run."""
    return "; ".join(
        f"{one['network'] or 'a network that is not known'}{' with ' + one['transport'] if one['transport'] else ''}, "
        f"{one['proxy'] or 'a proxy that is not known'}"
        for one in result.get("clusters") or [])


def nanoseconds(value, width):
    """As many decimals as an interval of this width is worth."""
    decimals = next((digits for digits in range(3) if width >= 2 * 10**-digits), 3)
    # Nothing is less than none.
    rounded = round(value, decimals) or 0.0
    return f"{rounded:.{decimals}f}".replace("-", "−")


def may_be_none(law):
    """Whether its interval has no cost in it, and is too wide to call it flat."""
    return law["verdict"] != "equivalent" and law["low"] <= 0 <= law["high"]


def slope(law):
    """What each further one costs, in words."""
    width = law["high"] - law["low"]
    value, low, high = (nanoseconds(law[key], width) for key in ("per_level", "low", "high"))
    if law["verdict"] == "equivalent":
        return f"flat, at most {high} ns" if law["high"] > 0 else f"flat, between {low} and {high} ns"
    if may_be_none(law):
        return f"between {low} and {high} ns"
    bend = law["bend"]
    bent = ", not evenly" if bend and bend["shape"] == "bent" else ""
    return f"{value} ns ({low} to {high}){bent}"


def prices(found):
    """A row for each form of the rules and kind of connection, a column for each metric."""
    labels = dict.fromkeys(label for label, _, _ in found)
    metrics = [metric for metric in METRICS if any(of == metric for _, _, of in found)]
    rows = []
    for label in labels:
        for workload, words in CONNECTIONS.items():
            cells = [found.get((label, workload, metric)) for metric in metrics]
            if any(cells):
                rows.append([label, words, *(slope(one) if one else "–" for one in cells)])
    return run_record.table(["rules", "paid by", *(METRICS[metric] for metric in metrics)], rows)


def agreement(ours, theirs):
    """Whether the lab's interval and that of the real program meet."""
    has_cost = ours["verdict"] != "equivalent" and not may_be_none(ours)
    if has_cost and may_be_none(theirs):
        # It meets a cost as well as none.
        return "too wide to say"
    return "yes" if ours["low"] <= theirs["high"] and theirs["low"] <= ours["high"] else "no"


def beside(lab, clusters):
    """The lab's slope and that of the real program, for a new connection."""
    rows = []
    for label, found in clusters:
        if (label, "crr", "p50") not in lab or ("pod", "crr", "p50") not in found:
            sys.exit(f"no law of a new connection both of {label} in the lab and of the path pod in its cluster")
        for metric in METRICS:
            ours = lab.get((label, "crr", metric))
            theirs = found.get(("pod", "crr", metric))
            if ours is None or theirs is None:
                continue
            # Of two that are flat no ratio says anything.
            is_cost = ours["low"] > 0 and theirs["low"] > 0
            ratio = f"{ours['per_level'] / theirs['per_level']:.2f}" if is_cost else "–"
            rows.append([label, METRICS[metric], slope(ours), slope(theirs), ratio, agreement(ours, theirs)])
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    named = lambda text: tuple(text.split("=", 1))
    parser.add_argument("--run", type=named, action="append", default=[], metavar="EXPERIMENT=RUN")
    parser.add_argument("--more", type=named, action="append", default=[], metavar="EXPERIMENT=RUN")
    parser.add_argument("--cluster", type=named, action="append", default=[], metavar="LABEL=RUN")
    parser.add_argument("--beside", type=named, action="append", default=[], metavar="EXPERIMENT=RUN")
    parser.add_argument("program", metavar="PLUMBLINE")
    arguments = parser.parse_args()
    program = str(pathlib.Path(arguments.program).resolve())
    given = dict(arguments.run)
    runs = {one: given.get(one) or measured(program, one) for one in EXPERIMENTS}
    results = {one: reported(program, runs[one]) for one in EXPERIMENTS}
    found = {one: laws(results[one], one) for one in EXPERIMENTS}
    for name, run in arguments.more:
        experiment, more = named_laws(program, name, run)
        found[experiment] |= more
    clusters = {one: [] for one in EXPERIMENTS}
    networks = {}
    for label, directory in arguments.cluster:
        result = reported(program, directory)
        factor = next((one for one in EXPERIMENTS if any(law["factor"] == one for law in result.get("laws", []))), None)
        if factor is None:
            sys.exit(f"{directory} has no law of {' or '.join(EXPERIMENTS)}")
        clusters[factor].append((label, laws(result, factor)))
        networks[directory] = f"\nFound in that cluster: {network(result)}.\n"
    models = {}
    for name, run in arguments.beside:
        experiment, model = named_laws(program, name, run)
        models[experiment] = models.get(experiment, {}) | model
    pictures = {
        one: run_record.picture(run_record.report(program, runs[one], "html"), f" by {one}", f"price-of-{one}") for one in EXPERIMENTS
    }
    rows = [row for one in EXPERIMENTS for row in beside(models.get(one, found[one]), clusters[one])]
    head = ["rules", "", "lab", "cluster", "lab/cluster", "intervals meet"]
    in_clusters = run_record.table(head, rows) if rows else "No cluster was measured for this page."
    if any(row[0].endswith(EMPTY_SETS) and row[-1] == "no" for row in rows):
        in_clusters += f"\n\n{WHY_EMPTY}"
    further = arguments.more + arguments.beside + arguments.cluster
    directories = [*runs.values(), *(directory for _, directory in further)]
    PAGE.write_text(f"""<!-- Made by scripts/price-of-a-rule.py; do not edit. -->

# The price of a rule

What one more Service, or one more network policy, costs on this kernel: a new connection, whose first
packet meets the rules, and one that stands, whose packets connection tracking lets past them.

- {results['services']['answer']}.
- {results['policies']['answer']}.

Each figure is the slope of a straight line through the levels with rules that were measured, in each block, with
its 95 % interval ([the method](method.md#what-each-further-one-costs)). *Flat*: over all levels
together the cost changes by less than what matters in practice, and each further one costs at most
what is said. The CPU of the whole machine is left out: of 40 to 60 new connections a second it says nothing.

## Services

{prices(found['services'])}

{pictures['services']}

By the rules of iptables a new connection between two nodes walks the list of the sender's node up to its
service, here the one in the middle, and that of the receiver's node to its end; with `userspace` it is two
connections, and nftables and eBPF have no list to walk but look it up ([what is
written](method.md#services)). `ipvs` is missing, because this kernel does not have it.

## Policies

{prices(found['policies'])}

{pictures['policies']}

The policy that allows the traffic is the last ([what is written](method.md#policies)).

## The lab beside real clusters

If the lab's rules are those that the real programs write, their prices are the same. Where the lab has a price
and the interval of the cluster has none in it too, it is too wide to say.

{in_clusters}

In a cluster nobody knows which place a service or a policy has. So no service is asked there, and neither in the lab's
runs beside it: both nodes' lists are walked to their ends, which is two walks, and not one and a half as in the table
above. Clusters were made by `tests/kubelab/kubelab`.

## How this was measured

{chr(10).join(run_record.source(one) + networks.get(one, "") for one in directories)}
`scripts/price-of-a-rule.py` makes this page.
""")
    print(f"{PAGE} is written")


if __name__ == "__main__":
    main()
