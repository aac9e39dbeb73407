#!/usr/bin/env python3
"""Writes expected.json: what the tests of this crate hold its numbers against.

Needs NumPy and SciPy 1.15 or later. Run it after a change of the cases, and
commit both files:

    python3 make_expected.py

Where SciPy has the function, its answer is taken. Where it has not (Geyer's
sum), the definition is computed here by a route that the Rust code does not
take. The cases are drawn in turn, so a section that comes or goes changes those
after it.
"""

import itertools
import json
import pathlib

import numpy as np
import scipy
from scipy import stats

rng = np.random.default_rng(20251121)


def normal():
    tails = [0.5, 0.4, 0.2, 0.1, 0.05, 0.025, 0.01, 1e-3, 3e-4, 1e-4, 1e-6, 1e-9, 1e-12]
    return [{"tail": t, "value": stats.norm.isf(t)} for t in tails]


def student():
    cases = itertools.product([0.2, 0.05, 0.025, 0.016, 0.01], [5, 6, 9, 11, 19, 49, 199])
    return [{"tail": t, "freedom": f, "value": stats.t.isf(t, f)} for t, f in cases]


def or_none(value):
    return None if np.isnan(value) else int(value)


def percentile_ranks():
    """quantile_test works with exact sums for every n, ranks are its values
    when sample i is i; beyond 100 expected exceedances, L-14's own form."""
    exact = [
        (n, q, level)
        for n in (1, 5, 6, 10, 30, 100, 299, 368, 369, 1000, 5000)
        for q in (0.01, 0.25, 0.5, 0.9, 0.99, 0.999)
        for level in (0.9, 0.95, 0.99)
        if n * min(q, 1 - q) < 99.9
    ] + [(100_000, 0.9999, 0.95), (3_000_000, 0.99999, 0.95)]
    rows = []
    for n, q, level in exact:
        test = stats.quantile_test(np.arange(1, n + 1), q=0, p=q)
        ranked = test.confidence_interval(level)
        rows.append({"n": n, "q": q, "level": level,
                     "low": or_none(ranked.low), "high": or_none(ranked.high)})
    for n, q, level in [(1000, 0.5, 0.95), (20_000, 0.99, 0.95), (2_000_000, 0.9999, 0.99)]:
        reach = stats.norm.isf((1 - level) / 2) * np.sqrt(n * q * (1 - q))
        rows.append({"n": n, "q": q, "level": level,
                     "low": int(np.floor(n * q - reach)),
                     "high": int(np.ceil(n * q + reach)) + 1})
    return rows


def medians():
    rows = []
    for n in (1, 5, 6, 7, 10, 20, 41, 150):
        values = rng.lognormal(3, 0.3, n).round(6)
        ranked = stats.quantile_test(values, q=0, p=0.5).confidence_interval(0.95)
        row = {"values": values.tolist(), "median": float(np.median(values)), "interval": None}
        if not np.isnan(ranked.low) and not np.isnan(ranked.high):
            low = int((values < ranked.low).sum())  # samples strictly below
            high = int((values > ranked.high).sum())
            coins = stats.binom(n, 0.5)
            row["interval"] = {"low": float(ranked.low), "high": float(ranked.high),
                               "level": float(1 - coins.cdf(low) - coins.cdf(high))}
        rows.append(row)
    return rows


def autoregressive(n, correlation):
    series = [rng.normal()]
    for _ in range(n - 1):
        series.append(correlation * series[-1] + rng.normal())
    return np.array(series).round(6)


def series():
    rows = []
    cases = [autoregressive(300, c) for c in (0.0, 0.3, 0.8, -0.5)]
    cases.append(np.round(autoregressive(200, 0.5)))
    for values in cases:
        n = len(values)
        centred = values - values.mean()
        # By way of the Fourier transform, padded so that it does not wrap.
        spectrum = np.abs(np.fft.rfft(centred, 2 * n)) ** 2
        rho = np.fft.irfft(spectrum)[:n]
        rho = rho / rho[0]
        pairs = rho[0 : n - n % 2 : 2] + rho[1::2]
        stop = np.argmax(pairs <= 0) if (pairs <= 0).any() else len(pairs)
        kept = rho[1 : 2 * stop]
        rows.append({"values": values.tolist(),
                     "effective_samples": float(min(n, n / (1 + 2 * kept.sum()))),
                     "lag1_spearman": float(stats.spearmanr(values[:-1], values[1:]).statistic)})
    return rows


def outliers():
    rows = []
    for n in (5, 12, 31):
        values = rng.normal(100, 2, n).round(6)
        values[n // 2] += 80
        mad = stats.median_abs_deviation(values)
        rows.append({"values": values.tolist(),
                     "scores": (np.abs(values - np.median(values)) / mad).tolist()})
    return rows


def kendall():
    """Tau-b, and the share of all orders that agree as well: SciPy's exact
    table where nothing is tied, else every order by itself."""
    rows = []
    for n, decimals in [(2, 6), (3, 6), (5, 6), (5, 1), (6, 0), (7, 6), (8, 1), (40, 6), (40, 1)]:
        x = rng.normal(0, 1, n).round(decimals)
        y = (x + rng.normal(0, 1, n)).round(decimals)
        tau = stats.kendalltau(x, y, variant="b").statistic
        share = None
        if n <= 8 and decimals == 6:
            share = stats.kendalltau(x, y, method="exact", alternative="greater").pvalue
        elif n <= 8:
            taus = [stats.kendalltau(x, order).statistic for order in itertools.permutations(y)] \
                if n <= 6 else \
                [np.sign(np.subtract.outer(x, x) * np.subtract.outer(o, o)).sum()
                 for o in map(np.array, itertools.permutations(y))]
            seen = tau if n <= 6 else np.sign(np.subtract.outer(x, x) * np.subtract.outer(y, y)).sum()
            share = (np.array(taus) >= seen - 1e-12).mean()
        rows.append({"first": x.tolist(), "second": y.tolist(), "tau": float(tau),
                     "share": None if share is None else float(share)})
    return rows


sections = [normal, student, percentile_ranks, medians, series, outliers, kendall]
expected = {"made_with": f"scipy {scipy.__version__}, numpy {np.__version__}"}
expected |= {section.__name__: section() for section in sections}
path = pathlib.Path(__file__).with_name("expected.json")
path.write_text("{\n" + ",\n".join(
    f"{json.dumps(name)}: " + (json.dumps(rows) if isinstance(rows, str) else
                               "[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]")
    for name, rows in expected.items()) + "\n}\n")
