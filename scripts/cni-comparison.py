#!/usr/bin/env python3
"""Compares the networks of Kubernetes on this machine, and writes the report.

Runs the experiment `cni-comparison` with clusters of tests/kubelab (run `kubelab
build`, `kubelab build calico` and `kubelab build cilium` once before), and writes
docs/cni-comparison.md: the report as `plumbline report --format markdown` prints it,
and then the command, the machine and the date. If no trial counts, nothing is
written. Nothing else may run on the machine.

usage: sudo scripts/cni-comparison.py PLUMBLINE [FLAG OF RUN ...]
       sudo scripts/cni-comparison.py target/x86_64-unknown-linux-musl/dist/plumbline

PLUMBLINE must be a static build, because pods run it. `--resume RUN` continues a
run that was cut off.
"""

import contextlib
import os
import pathlib
import subprocess
import sys

import run_record

TOP = pathlib.Path(__file__).resolve().parent.parent
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
    return directory or max((TOP / "runs").glob("*-cni-comparison"))


def page(program, directory):
    """The report begins with the answer, so what was done comes last."""
    record = run_record.read(directory)
    report = subprocess.run(
        [program, "report", "--format", "markdown", directory], capture_output=True, text=True, check=True
    )
    return f"""<!-- Made by scripts/cni-comparison.py; do not edit. -->

{report.stdout.rstrip()}

## How this was measured

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
    PAGE.write_text(page(program, run(program, flags)))
    print(f"{PAGE} is written")


if __name__ == "__main__":
    main()
