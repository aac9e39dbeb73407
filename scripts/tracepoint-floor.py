#!/usr/bin/env python3
"""What programs cost that do nothing, at the tracepoints at which `plumbline xray` has its own.

It is the least that anything there adds to a request. Measures a few networks with and without
such programs, in turns, and prints by how much the median is higher with them: geometric mean of
the pairs, 95 % interval by Student's t. As root; takes clang-14 and libbpf-dev, and three
minutes or so, in which nothing else may run on the machine.

usage: sudo scripts/tracepoint-floor.py PLUMBLINE
"""

import contextlib
import ctypes
import json
import math
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parent.parent
PAIRS = 8
T_975 = 2.365  # Student's t with PAIRS - 1 degrees of freedom
EXPERIMENT = """
name = "tracepoint-floor"
question = "What do programs cost that do nothing?"
[factors]
network = ["host", "host-gw", "vxlan"]
[[workload]]
kind = "rr"
connections = 1
arrival = "closed"
[design]
blocks = 4
duration = "400ms"
control = "off"
"""


def built(scratch):
    """An object with a program that does nothing for each tracepoint of xray's."""
    ours = (TOP / "crates/tracer/bpf/journey.c").read_text()
    names = sorted(set(re.findall(r'SEC\("tp_btf/(\w+)"\)', ours)))
    program = 'SEC("tp_btf/{0}") int on_{0}(__u64 *context) {{ return 0; }}'
    source = scratch / "nothing.c"
    includes = "#include <linux/bpf.h>\n#include <bpf/bpf_helpers.h>\n"
    source.write_text(includes + "\n".join(map(program.format, names)) + '\nchar terms[] SEC("license") = "GPL";\n')
    triple = subprocess.check_output(["clang-14", "-print-multiarch"], text=True).strip()
    flags = ["--target=bpfel", "-O2", "-g", f"-I/usr/include/{triple}", "-Wno-unused-parameter"]
    target = scratch / "nothing.o"
    subprocess.run(["clang-14", *flags, "-c", str(source), "-o", str(target)], check=True)
    return target


@contextlib.contextmanager
def running(target):
    """Has the programs of an object run at their tracepoints meanwhile."""
    bpf = ctypes.CDLL("libbpf.so.1", use_errno=True)
    handle = ctypes.c_void_p

    def call(name, *arguments):
        function = bpf[name]
        function.restype = handle
        return function(*arguments)

    loaded = call("bpf_object__open_file", str(target).encode(), None)
    if not loaded or bpf.bpf_object__load(handle(loaded)):
        sys.exit("the programs cannot be loaded")
    links, program = [], None
    while program := call("bpf_object__next_program", handle(loaded), handle(program)):
        link = call("bpf_program__attach", handle(program))
        if not link:
            sys.exit("a tracepoint is missing in this kernel")
        links.append(link)
    yield len(links)
    for link in links:
        bpf.bpf_link__destroy(handle(link))
    bpf.bpf_object__close(handle(loaded))


def medians(plumbline, scratch):
    """The median latency on each network, in nanoseconds."""
    file = scratch / "floor.toml"
    file.write_text(EXPERIMENT)
    words = [plumbline, "run", str(file), "--awake", "--json", "--out", str(scratch / "runs")]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    return {it["label"]: it["latency_ns"]["p50"] for it in json.loads(done.stdout)["treatments"]}


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    plumbline = str(pathlib.Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        target = built(scratch)
        pairs = []
        for at in range(PAIRS):
            pair = {}
            for is_with in (True, False) if at % 2 else (False, True):
                with running(target) if is_with else contextlib.nullcontext():
                    pair[is_with] = medians(plumbline, scratch)
            pairs.append(pair)
    for network in pairs[0][False]:
        logs = [math.log(pair[True][network] / pair[False][network]) for pair in pairs]
        mean, half = statistics.mean(logs), T_975 * statistics.stdev(logs) / math.sqrt(PAIRS)
        cost, low, high = (100 * math.expm1(it) for it in (mean, mean - half, mean + half))
        without = statistics.median(pair[False][network] for pair in pairs) / 1e3
        print(f"{network}: {without:.1f} µs without, {cost:+.1f} % with ({low:+.1f} to {high:+.1f})")


if __name__ == "__main__":
    main()
