"""Whether the field that was made wrong is the one that is blamed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from faust_oslrau.learner import OSLRAU
from faust_oslrau.learner.scoring.blame import blame

from .datasets import Array
from .report import write_report

TRAINED = 20_000
FAULTY = 1000
RATE = 0.001
WIDTHS = (4, 8, 16)
TEXT = (
    f"OSLRAU learns {TRAINED:,} records. Of {FAULTY:,} others fields are made wrong: moved by so "
    "many of their standard deviations, up or down, or replaced by the same field of another "
    "record, which breaks its relation to the other fields and leaves its distribution as it is. "
    f"*Clear* are those less likely than {RATE:.1%} of usual records; the other columns are shares "
    "of these.",
    "*First* is a wrong field; *all* wrong fields come before any other. *One look* orders fields "
    "by -log p(field | the other fields), without setting those blamed aside. Of four fields, two "
    "wrong ones cannot always be told from the two right ones.",
)

Stream = Callable[[np.random.Generator, int, int], Array]
Fault = Callable[[np.random.Generator, Array, Array], tuple[Array, Array]]
"""Takes usual records and others; returns faulty records (m, d) and their wrong fields (m, k)."""


def factors(rng: np.random.Generator, n: int, d: int) -> Array:
    """Draw fields that follow a few common factors."""
    k = max(2, d // 4)
    return rng.normal(size=(n, k)) @ rng.normal(size=(k, d)) + 0.5 * rng.normal(size=(n, d))


def clusters(rng: np.random.Generator, n: int, d: int) -> Array:
    """Draw three clusters, each with correlations of its own."""
    mixing = rng.normal(size=(3, d, d)) / np.sqrt(d)
    centres, member = 3.0 * rng.normal(size=(3, d)), rng.integers(3, size=n)
    parts = np.einsum("nij,nj->ni", mixing[member], rng.normal(size=(n, d)))
    return np.asarray(centres[member] + parts + 0.3 * rng.normal(size=(n, d)))


def chain(rng: np.random.Generator, n: int, d: int) -> Array:
    """Draw fields each of which follows the one before it."""
    rows = rng.normal(size=(n, d))
    for v in range(1, d):
        rows[:, v] = 0.9 * rows[:, v - 1] + np.sqrt(1 - 0.9**2) * rows[:, v]
    return rows


def shift(n_fields: int, deviations: float) -> Fault:
    """Return the fault that shifts some fields at once."""

    def fault(rng: np.random.Generator, rows: Array, others: Array) -> tuple[Array, Array]:
        wrong = rng.permuted(np.tile(np.arange(rows.shape[1]), (len(rows), 1)), axis=1)
        wrong, at = wrong[:, :n_fields], np.arange(len(rows))[:, None]
        bad, sign = rows.copy(), rng.choice([-1.0, 1.0], wrong.shape)
        bad[at, wrong] += deviations * sign * others.std(axis=0)[wrong]
        return bad, wrong

    return fault


def break_relation(rng: np.random.Generator, rows: Array, others: Array) -> tuple[Array, Array]:
    """Replace one field by that of another record."""
    wrong, at = rng.integers(rows.shape[1], size=(len(rows), 1)), np.arange(len(rows))[:, None]
    bad = rows.copy()
    bad[at, wrong] = others[rng.integers(len(others), size=(len(rows), 1)), wrong]
    return bad, wrong


STREAMS: dict[str, Stream] = {"factors": factors, "clusters": clusters, "chain": chain}
FAULTS: dict[str, Fault] = {
    "one field, 4 deviations": shift(1, 4.0),
    "one field, 8 deviations": shift(1, 8.0),
    "two fields, 5 deviations": shift(2, 5.0),
    "broken relation": break_relation,
}


def measure(model: OSLRAU, bad: Array, wrong: Array, limit: float) -> dict[str, float]:
    """Return the share of clear records, and of these the share with the right fields in front."""
    score = model.score_samples(bad)
    clear = score < limit
    bad, wrong, score = bad[clear], np.sort(wrong[clear]), score[clear]
    found = blame(model, bad, score, lambda scores: scores > limit).order
    plain = np.argsort(-model.contributions(bad), axis=1)
    k = wrong.shape[1]
    return {
        "clear": float(clear.mean()),
        "first": float((found[:, :1] == wrong).any(axis=1).mean()),
        "all": float((np.sort(found[:, :k]) == wrong).all(axis=1).mean()),
        "all, one look": float((np.sort(plain[:, :k]) == wrong).all(axis=1).mean()),
    }


def cases(quick: bool) -> Iterator[dict[str, object]]:
    """Measure every fault on every stream."""
    n, m = (4000, 100) if quick else (TRAINED, FAULTY)
    for name, stream in STREAMS.items():
        for d in WIDTHS[:1] if quick else WIDTHS:
            rng = np.random.default_rng(d)
            rows = stream(rng, 2 * n + m, d)
            usual, others, last = np.split(rows, [n, 2 * n])
            model = OSLRAU().partial_fit(usual, batch_size=256)
            limit = float(np.quantile(model.score_samples(others), RATE))
            for fault_name, fault in FAULTS.items():
                bad, wrong = fault(rng, last, others)
                shares = measure(model, bad, wrong, limit)
                yield {"stream": name, "fields": d, "fault": fault_name, **shares}


def run(out: Path, quick: bool) -> None:
    """Blame for one wrong field, two at once, and a broken relation."""
    found = list(cases(quick))
    shown = [
        {name: f"{x:.1%}" if isinstance(x, float) else x for name, x in case.items()}
        for case in found
    ]
    write_report(out, "blame", ["Which field is to blame", *TEXT], shown, found)
