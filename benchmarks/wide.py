"""Wide records: densities beside one full Gaussian, spikes of single fields, time and state."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from time import process_time

import numpy as np

from faust_oslrau.learner import OSLRAU, StreamScorer, compile_kernels

from .datasets import Array
from .families import factors
from .learners import LEARNERS
from .mixtures import log_gaussian
from .report import NOISE, prose, write_report

N_RECORDS = 5_000
SETTLED = 4_352
N_FRESH = 1_000
N_SPIKES = 28
SPIKE = 8.0
RIDGE = 1e-6

TEXT = """\
Correlated fields of two kinds: *ten* factors, and a *third* as many factors as fields. After 5,000
records in mini-batches of 256, the mean log-likelihood of 1,000 fresh ones in nats, and that of
one Gaussian with the mean and covariance of the 5,000. *Spikes* are records with one field 8
standard deviations off: how many of 28 are anomalies for `StreamScorer`. *Score* and *learn* are
microseconds per record after the first 4,352. *Longest* is the longest learning of a mini-batch in
milliseconds; *state* is bytes per field."""


@dataclass(frozen=True)
class Wide:
    """One learner on one stream; log-likelihoods are means in nats."""

    factors: str
    fields: int
    learner: str
    mean: float
    gaussian: float
    spikes: int
    score_us: float
    learn_us: float
    longest_ms: float
    bytes_per_field: float


def run(out: Path, quick: bool) -> None:
    """Densities of wide records beside one full Gaussian, spikes of single fields, cost."""
    compile_kernels()
    widths = [16, 200] if quick else [16, 64, 128, 129, 200, 256, 257, 300, 500, 1000]
    results = [
        measure(learner, name, d)
        for name in ("ten", "third")
        for d in widths
        for learner in LEARNERS
    ]
    write_report(
        out, "wide", ["Wide records", prose(TEXT), NOISE],
        [row(result) for result in results], [asdict(result) for result in results],
    )  # fmt: skip


def measure(learner: str, name: str, d: int) -> Wide:
    rng = np.random.default_rng(d)
    x = (ten_factors if name == "ten" else factors)(rng, N_RECORDS + N_FRESH, d)
    known, fresh = x[:N_RECORDS], x[N_RECORDS:]
    model = LEARNERS[learner]()
    score_us, learn_us, longest_ms = learn(model, known)
    covariance = np.cov(known.T) + RIDGE * np.eye(d)
    gaussian = float(log_gaussian(fresh, known.mean(axis=0), covariance).mean())
    return Wide(
        name, d, learner, float(model.score_samples(fresh).mean()), gaussian,
        count_spikes(learner, known, fresh), score_us, learn_us, longest_ms,
        len(model.to_bytes()) / d,
    )  # fmt: skip


def ten_factors(rng: np.random.Generator, n: int, d: int) -> Array:
    loadings = rng.normal(size=(10, d)) / np.sqrt(10)
    return rng.normal(size=(n, 10)) @ loadings + rng.uniform(0.1, 0.5, d) * rng.normal(size=(n, d))


def learn(model: OSLRAU, x: Array) -> tuple[float, float, float]:
    """Learn the rows; return what a late record takes to score and to learn, and the longest."""
    scoring, learning, longest = 0.0, 0.0, 0.0
    for start in range(0, len(x), 256):
        rows = x[start : start + 256]
        began = process_time()
        evaluation = model.evaluate(rows) if start > 0 else None
        evaluated = process_time()
        model.partial_fit(rows, evaluation=evaluation)
        learned = process_time()
        longest = max(longest, learned - evaluated)
        if start >= SETTLED:
            scoring, learning = scoring + evaluated - began, learning + learned - evaluated
    per_record = 1e6 / (len(x) - SETTLED)
    return scoring * per_record, learning * per_record, 1e3 * longest


def count_spikes(learner: str, known: Array, fresh: Array) -> int:
    """Count the anomalies among spikes that come within one mini-batch."""
    scorer = StreamScorer(LEARNERS[learner]())
    scorer.process(known)
    spiked, fields = fresh[:N_SPIKES].copy(), np.arange(N_SPIKES) * known.shape[1] // N_SPIKES
    spiked[np.arange(N_SPIKES), fields] += SPIKE * known.std(axis=0)[fields]
    return int(scorer.process(spiked).is_anomaly.sum())


def row(result: Wide) -> dict[str, object]:
    return {
        "factors": result.factors,
        "fields": result.fields,
        "learner": result.learner,
        "log-likelihood": f"{result.mean:.1f}",
        "full Gaussian": f"{result.gaussian:.1f}",
        "spikes": f"{result.spikes} of {N_SPIKES}",
        "score, us": f"{result.score_us:.1f}",
        "learn, us": f"{result.learn_us:.1f}",
        "longest, ms": f"{result.longest_ms:.0f}",
        "state": f"{result.bytes_per_field:,.0f}",
    }
