"""How soon a stream is known: records until most of what can be gained is gained."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from faust_oslrau.learner import OSLRAU, StreamScorer

from .datasets import Array
from .families import clusters, factors
from .plots import plot_gains
from .report import prose, thousands, write_report

FIELDS = 8
SHARE = 0.95

TEXT = """\
A stream's log-likelihood, less that of independent Gaussians with the true means and variances, is
what the learner has found out about it. Its long-run gain is the one on 4,000 fresh records after
the whole stream; the table has the number of records after which the gain on the same fresh
records first reached 95 % of it. *Correlations* are Gaussian factors, *clusters* six Gaussians,
both of 8 fields."""


def run(out: Path, quick: bool) -> None:
    """Records until 95 % of the gain over independent Gaussians, median over seeds."""
    n, seeds = (2_000, 2) if quick else (40_000, 20)
    rows, curves = [], {}
    for name, family in {"correlations": factors, "clusters": clusters}.items():
        runs = []
        for seed in range(seeds):
            x = family(np.random.default_rng(seed), n + 4_000, FIELDS)
            runs.append(gains(x[:n], x[n:]))
        places, gain = runs[0][0], np.array([gain for _, gain in runs])
        reached = [int(places[np.argmax(one >= SHARE * one[-1])]) for one in gain]
        curves[name] = [*zip(places.tolist(), np.median(gain, axis=0).tolist(), strict=True)]
        rows.append(
            {
                "stream": name,
                "seeds": seeds,
                "long-run gain, nats": f"{np.median(gain[:, -1]):.2f}",
                "records to 95 %, median": thousands(float(np.median(reached))),
                "least": thousands(min(reached)),
                "most": thousands(max(reached)),
            }
        )
    plot_gains(out / "soon.png", curves)
    write_report(
        out, "soon", ["How soon a stream is known", prose(TEXT)],
        rows, {"rows": rows, "median_gain": curves}, ["soon.png"],
    )  # fmt: skip


def gains(x: Array, fresh: Array) -> tuple[Array, Array]:
    """Mean gain on fresh records at each learning boundary, up to every 1,024 records."""
    scorer = StreamScorer(OSLRAU())
    mean, deviation = x.mean(axis=0), x.std(axis=0)
    z = (fresh - mean) / deviation
    independent = -0.5 * (z**2 + np.log(2 * np.pi) + 2 * np.log(deviation)).sum(axis=1).mean()
    places, found = [], []
    for start, stop in steps(len(x)):
        scorer.process(x[start:stop])
        places.append(stop)
        found.append(float(scorer.learner.score_samples(fresh).mean() - independent))
    return np.array(places), np.array(found)


def steps(n: int) -> list[tuple[int, int]]:
    """Give the learning boundaries; the later ones four at a time."""
    ends, size = [16], 32
    while ends[-1] + size <= n:
        ends.append(ends[-1] + size)
        size = min(2 * size, 256 if ends[-1] < 8_000 else 1_024)
    return [*zip([0, *ends[:-1]], ends, strict=True)]
