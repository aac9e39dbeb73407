#!/usr/bin/env python3
"""Compares the networks of Kubernetes on this machine, and writes the report.

Runs the experiment `cni-comparison` with clusters of tests/kubelab (run `kubelab
build`, `kubelab build calico` and `kubelab build cilium` once before), and writes
docs/cni-comparison.md: the report as `plumbline report --format markdown` prints it,
and then the command, the machine and the date. What has too few blocks that count is
measured again at half its rate, in a run of its own below it. If no trial counts,
nothing is written. Nothing else may run on the machine.

usage: sudo scripts/cni-comparison.py PLUMBLINE [FLAG OF RUN ...]
       sudo scripts/cni-comparison.py target/x86_64-unknown-linux-musl/dist/plumbline
       scripts/cni-comparison.py PLUMBLINE --of RUN [RUN ...]

PLUMBLINE must be a static build, because pods run it. `--resume RUN` continues a
run that was cut off; `--of` writes the page of runs that have ended, the large one first.
"""

import contextlib
import itertools
import json
import os
import pathlib
import subprocess
import sys

import run_record

TOP = run_record.TOP
PAGE = TOP / "docs" / "cni-comparison.md"
PROVISION = "tests/kubelab/kubelab up --cni {network}"


@contextlib.contextmanager
def awake():
    """Keeps idle CPUs from halting meanwhile, as `--awake` does for a lab (PM QoS)."""
    latency = os.open("/dev/cpu_dma_latency", os.O_WRONLY)
    try:
        os.write(latency, (0).to_bytes(4, sys.byteorder))
        yield
    finally:
        os.close(latency)


def run(program, flags):
    """The run directory: the newest one, or the one that is resumed."""
    if "--resume" in flags:
        where = flags
        directory = pathlib.Path(flags[flags.index("--resume") + 1])
    else:
        where = ["cni-comparison", *flags]
        directory = None
    command = [program, "run", *where, "--provision", PROVISION]
    with awake():
        subprocess.run(command, cwd=TOP, stdout=subprocess.DEVNULL, check=True)
    return directory or run_record.newest("cni-comparison")


def thin(program, directory):
    """The workloads of which a network has too few blocks that count, with these networks."""
    report = json.loads(run_record.report(program, directory, "json"))
    found = {}
    for one in report["comparisons"]:
        if one["primary"] and one["pairs"] < one["blocks_needed"]:
            found.setdefault(one["workload"], set()).add(one["treatment"].split("/")[0])
    return found


def again(program, directory):
    """Runs of what is thin in another one, at half the rate."""
    plan = run_record.read(directory)["plan"]["treatments"]
    rates = {one["workload"]["name"]: one["workload"]["arrival"].get("rate") for one in plan}
    for workload, networks in thin(program, directory).items():
        flags = ["--network", ",".join(sorted(networks)), "--workload", workload]
        yield run(program, [*flags, "--rate", f"{rates[workload] / 2:g}"])


def addition(program, directory):
    """What a run shows that is there for a few networks of another one."""
    record = run_record.read(directory)
    workload = record["plan"]["treatments"][0]["workload"]
    lines = run_record.report(program, directory, "markdown").splitlines()
    is_row = lambda line: line.startswith("|")
    first = itertools.dropwhile(lambda line: not is_row(line), lines)
    table = "\n".join(itertools.takewhile(is_row, first))
    return f"""## {workload['name']} at {workload['arrival']['rate']:g}/s

Above, too few blocks of these networks count under {workload['name']}: beside all else on two CPUs the sender itself was
late. At half the rate, in {run_record.minutes(directory)} minutes:

{table}

```
{run_record.command(record)}
```

"""


def page(program, directory, further):
    """The report begins with the answer, so what was done comes last."""
    record = run_record.read(directory)
    report = run_record.report(program, directory, "markdown")
    return f"""<!-- Made by scripts/cni-comparison.py; do not edit. -->

{report.rstrip()}

{"".join(addition(program, one) for one in further)}## How this was measured

On {record['provenance']['started'][:10]} with Plumbline {record['provenance']['version']}, in
{run_record.minutes(directory)} minutes, on one machine: {run_record.machine(record)}.

```
{run_record.command(record)}
```

In each block every network had a cluster of its own, made for that block, and in it
the paths took turns in slices of 25 ms. Both nodes are namespaces of one machine, so
read the figures as relative: what they show is the work that each network adds, not
what a wire does to it. Idle CPUs were kept from halting (PM QoS), as `--awake` does for a
lab: in a virtual machine one that halts comes back when the hypervisor lets it, which
would be most of what differs. The machine's CPU holds the control plane and all daemons
of that cluster too, which do as they like beside the traffic: its columns say less than
those of the processes. [How clusters are made for a
run](kubernetes.md#several-networks-in-one-run).
"""


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    program, flags = str(pathlib.Path(sys.argv[1]).resolve()), sys.argv[2:]
    if flags[:1] == ["--of"]:
        directory, *further = flags[1:]
    else:
        directory = run(program, flags)
        further = list(again(program, directory))
    PAGE.write_text(page(program, directory, further))
    print(f"{PAGE} is written")


if __name__ == "__main__":
    main()
