#!/usr/bin/env python3
"""How often do the validity gates void a trial, and should they?

Runs A/A experiments (one network against itself, so that every difference is
chance) beside a process that keeps one CPU busy for a planted share of the time.
For each share it prints how many trials the gates void, which gates do so, and
how far the p50 of all trials spreads. A gate is worth its price if the trials
that it voids spread further than those that it keeps.

The figures in docs/method.md, "Calibration", come from this.

usage: scripts/calibrate.py [PLUMBLINE] [SHARE ...]     shares in percent of one CPU
"""

import collections
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

BURN = """
import sys, time
share = float(sys.argv[1])
while True:
    end = time.monotonic() + share * 0.02
    while time.monotonic() < end:
        pass
    time.sleep((1 - share) * 0.02)
"""


def spread(values):
    """Median absolute deviation from the median, as a share of the median."""
    if len(values) < 5:
        return None
    middle = statistics.median(values)
    return statistics.median(abs(v - middle) for v in values) / middle


def measure(plumbline, share, out):
    burner = None
    if share:
        burner = subprocess.Popen([sys.executable, "-c", BURN, str(share / 100)])
        time.sleep(0.5)
    try:
        subprocess.run(
            [plumbline, "run", "tour", "--network", "host-gw,host-gw", "--workload", "rr",
             "--set", "design.retries=0", "--blocks", "24", "--out", out, "--json"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    finally:
        if burner:
            burner.kill()
            burner.wait()
    run = next(pathlib.Path(out).iterdir())
    return [json.loads(line) for line in (run / "trials.jsonl").open()]


def main():
    plumbline = sys.argv[1] if len(sys.argv) > 1 else "target/release/plumbline"
    shares = [float(s) for s in sys.argv[2:]] or [0, 5, 10, 20, 40, 80]
    print("planted  voided  spread of p50: all, kept, voided   gates")
    for share in shares:
        with tempfile.TemporaryDirectory() as out:
            trials = measure(plumbline, share, out)
        gates = collections.Counter()
        kept, voided = [], []
        for trial in trials:
            failures = trial["status"].get("gates", [])
            for gate in failures:
                gates[gate.get("by", gate["gate"])] += 1
            if trial["observation"] and trial["observation"]["what"]["load"]["seconds"]:
                p50 = trial["observation"]["what"]["load"]["seconds"][0]["p50_ns"]
                (voided if failures else kept).append(p50)
        show = lambda values: "   -  " if spread(values) is None else f"{spread(values):6.1%}"
        print(f"{share:5.0f} %  {len(voided):3d}/{len(trials)}   "
              f"{show(kept + voided)} {show(kept)} {show(voided)}   {dict(gates)}", flush=True)


main()
