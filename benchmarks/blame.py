"""Whether exactly the fields that were made wrong are blamed, and what is expected of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from faust_oslrau.learner import OSLRAU
from faust_oslrau.learner.scoring.blame import Blame, blame
from faust_oslrau.learner.scoring.wrong_fields import compare_without, excess_alone

from .datasets import Array
from .learners import LEARNERS
from .oracle import Oracle, of_bursts, of_heavy, of_skewed
from .report import write_report

TRAINED = 20_000
FAULTY = 1000
RATE = 0.001
SAMPLE = 128
"""Usual records that tell what a field is alone, as many as a scorer uses."""

TEXT = (
    f"The learner learns {TRAINED:,} records. Of {FAULTY:,} others fields are made wrong: moved by "
    "so many of their standard deviations, up or down, or one is replaced by the same field of "
    "another record, which breaks its relation to the other fields and leaves its distribution as "
    f"it is. All figures are shares of the *clear* ones, which are less likely than {RATE:.1%} of "
    "usual records. The JSON below has their share.",
    "The columns of faults are shares of records in which exactly the wrong fields are blamed. "
    "*Expected* is the share of blamed wrong fields whose value before the fault is within three "
    "deviations of what is expected of it, and *others* the same for the fields that are not "
    "wrong, both for one to three fields that are 8 deviations off. Constants were chosen on the "
    "streams of the first kind. Of the held-out ones, *skewed* and *bursts* were evaluated once, "
    "after all choices. *Lines* and *groups* were evaluated once before, with *heavy*, which then "
    "moved to the first kind: its heavy tails hid the second of two wrong fields.",
    "A broken relation cannot always be told from the one that it is related to: of four fields "
    "that follow two factors, for example.",
    "The *oracle* is not learned: it is the true density of the stream, with the same search for "
    "fields to blame. It shows what a model that fits the stream perfectly would reach. In "
    "*heavy*, *skewed* and *bursts*, even of the values that follow the true density, 0.7% to 2.4% "
    "are more than three deviations off. In *skewed*, 8 deviations upwards are only 3 to 4 on the "
    "scale of logarithms, and three such fields of four can agree better than the fourth one with "
    "them.",
)


class Drawn(NamedTuple):
    """Records (n, d) of a stream, and its true density where that was worked out."""

    rows: Array
    oracle: Oracle | None = None


Stream = Callable[[np.random.Generator, int, int], Drawn]
Fault = Callable[[np.random.Generator, Array, Array], tuple[Array, Array]]
"""Takes usual records and others; returns faulty records (m, d) and their wrong fields (m, k)."""


def factors(rng: np.random.Generator, n: int, d: int) -> Drawn:
    """Draw fields that follow a few common factors."""
    k = max(2, d // 4)
    return Drawn(rng.normal(size=(n, k)) @ rng.normal(size=(k, d)) + 0.5 * rng.normal(size=(n, d)))


def clusters(rng: np.random.Generator, n: int, d: int) -> Drawn:
    """Draw three clusters, each with correlations of its own."""
    mixing = rng.normal(size=(3, d, d)) / np.sqrt(d)
    centres, member = 3.0 * rng.normal(size=(3, d)), rng.integers(3, size=n)
    parts = np.einsum("nij,nj->ni", mixing[member], rng.normal(size=(n, d)))
    return Drawn(centres[member] + parts + 0.3 * rng.normal(size=(n, d)))


def chain(rng: np.random.Generator, n: int, d: int) -> Drawn:
    """Draw fields each of which follows the one before it."""
    rows = rng.normal(size=(n, d))
    for v in range(1, d):
        rows[:, v] = 0.9 * rows[:, v - 1] + np.sqrt(1 - 0.9**2) * rows[:, v]
    return Drawn(rows)


def heavy(rng: np.random.Generator, n: int, d: int) -> Drawn:
    """Draw fields with heavy tails that follow a common factor with heavy tails."""
    load = rng.standard_t(6, size=(n, 1))
    slope, spread = rng.normal(size=d), 0.5
    rows = load * slope + spread * rng.standard_t(6, size=(n, d))
    return Drawn(rows, of_heavy(slope, spread))


def lines(rng: np.random.Generator, n: int, d: int) -> Drawn:
    """Draw records around two lines: the same load drives the fields in two modes."""
    slopes, member = rng.normal(size=(2, d)), rng.integers(2, size=n)
    load = rng.uniform(1.0, 5.0, size=(n, 1))
    return Drawn(load * slopes[member] + 0.2 * rng.normal(size=(n, d)))


def groups(rng: np.random.Generator, n: int, d: int) -> Drawn:
    """Draw groups of up to three fields of very different units, each with a cause of its own."""
    cause = rng.gamma(4.0, size=(n, d // 3 + 1))[:, np.arange(d) // 3]
    return Drawn((cause + 0.3 * rng.normal(size=(n, d))) * np.geomspace(0.01, 1e4, d))


def skewed(rng: np.random.Generator, n: int, d: int) -> Drawn:
    """Draw positive fields with long tails to one side, as latencies and counts have."""
    load = rng.normal(size=(n, 1))
    slope, spread = 0.5 * rng.normal(size=d), 0.3
    rows = np.exp(load * slope + spread * rng.normal(size=(n, d)))
    return Drawn(rows, of_skewed(slope, spread))


def bursts(rng: np.random.Generator, n: int, d: int) -> Drawn:
    """Draw fields that follow two causes, of which one is mostly small and sometimes large."""
    cause = np.column_stack([rng.normal(size=n), rng.laplace(size=n)])
    slopes, spread = rng.normal(size=(2, d)), 0.3
    rows = cause @ slopes + spread * rng.laplace(size=(n, d))
    return Drawn(rows, of_bursts(slopes, spread))


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


DEVELOPMENT: dict[str, Stream] = {
    "factors": factors,
    "clusters": clusters,
    "chain": chain,
    "heavy": heavy,
}
HELD_OUT: dict[str, Stream] = {
    "lines": lines,
    "groups": groups,
    "skewed": skewed,
    "bursts": bursts,
}
ORACLE = "oracle"
WIDTHS = (4, 8, 16)
FAULTS: dict[str, Fault] = {
    "one, 4": shift(1, 4.0),
    "one, 8": shift(1, 8.0),
    "two, 8": shift(2, 8.0),
    "three, 8": shift(3, 8.0),
    "relation": break_relation,
}
FAR = tuple(name for name in FAULTS if name.endswith("8"))


def blamed_fields(found: Blame) -> Array:
    """Return which fields (m, d) are blamed."""
    is_listed = np.arange(found.order.shape[1]) < found.n_blamed[:, None]
    result = np.zeros(is_listed.shape, np.bool_)
    np.put_along_axis(result, found.order, is_listed, axis=1)
    return result


def measure(
    model: OSLRAU | Oracle,
    original: Array,
    bad: Array,
    wrong: Array,
    limit: float,
    sample: Array,
) -> dict[str, float | None]:
    """Return the share of clear records, and of these those blamed and expected rightly."""
    score = model.score_samples(bad)
    clear = score < limit
    original, bad, score = original[clear], bad[clear], score[clear]
    truth = np.zeros(bad.shape, np.bool_)
    np.put_along_axis(truth, wrong[clear], True, axis=1)
    alone = excess_alone(bad, sample)
    found = blame(model, bad, score, alone, lambda scores: scores > limit)
    blamed = blamed_fields(found)
    rest = compare_without(model, bad, blamed)
    is_near = np.abs(original - rest.expected) < 3.0 * rest.deviation
    return {
        "clear": share(clear),
        "first": share(np.take_along_axis(truth, found.order[:, :1], axis=1)),
        "exact": share((blamed == truth).all(axis=1)),
        "expected": share(is_near[blamed & truth]),
        "others": share(is_near[~truth]),
    }


def share(flags: Array) -> float | None:
    """Return the share that is true; None if there is none, as without clear records."""
    return float(flags.mean()) if flags.size else None


def percent(shares: Sequence[float | None]) -> str:
    """Return the mean of those that are known."""
    known = [each for each in shares if each is not None]
    return f"{np.mean(known):.1%}" if known else "-"


def cases(quick: bool) -> Iterator[dict[str, object]]:
    """Measure every fault on every stream with every learner, and with oracles."""
    n, m = (4000, 100) if quick else (TRAINED, FAULTY)
    for learner in (*LEARNERS, ORACLE):
        for name, stream in (DEVELOPMENT | HELD_OUT).items():
            for d in WIDTHS[:1] if quick else WIDTHS:
                rng = np.random.default_rng(d)
                rows, oracle = stream(rng, 2 * n + m, d)
                usual, others, last = np.split(rows, [n, 2 * n])
                model = oracle if learner == ORACLE else learned(learner, usual)
                if model is None:
                    continue
                limit = float(np.quantile(model.score_samples(others), RATE))
                part = "held out" if name in HELD_OUT else "choices"
                case = {"learner": learner, "streams": part, "stream": name, "fields": d}
                yield case | {
                    fault_name: measure(
                        model, last, *fault(rng, last, others), limit, others[:SAMPLE]
                    )
                    for fault_name, fault in FAULTS.items()
                }


def learned(learner: str, usual: Array) -> OSLRAU:
    return LEARNERS[learner]().partial_fit(usual, batch_size=256)


def shown(case: dict[str, object]) -> dict[str, object]:
    """Return a row of the table."""
    row = {name: case[name] for name in ("learner", "streams", "stream", "fields")}
    figures = {name: case[name] for name in FAULTS}
    row |= {name: percent([figures[name]["exact"]]) for name in FAULTS}
    return row | {
        name: percent([figures[fault][name] for fault in FAR]) for name in ("expected", "others")
    }


def run(out: Path, quick: bool) -> None:
    """Blame for one to three wrong fields, and for a broken relation."""
    found = list(cases(quick))
    write_report(out, "blame", ["Which fields are to blame", *TEXT], list(map(shown, found)), found)
