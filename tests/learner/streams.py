"""Streams for the learner's tests, and what is told of one record of them."""

import numpy as np
from scipy.integrate import simpson
from scipy.signal import lfilter

from faust_oslrau.learner import StreamScorer


def clusters(seed, n, d, missing=0.0):
    """Three correlated clusters, with a share of the values missing."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(scale=3.0, size=(3, d))
    mixing = rng.normal(size=(3, d, d))
    cluster = rng.integers(3, size=n)
    X = centres[cluster] + np.einsum("nij,nj->ni", mixing[cluster], rng.normal(size=(n, d)))
    X[rng.random(X.shape) < missing] = np.nan
    return X


def changing(seed, n_stretches, n, d, missing=0.0, step=20.0):
    """Clusters somewhere else after every ``n`` rows: a list of stretches."""
    return [clusters(seed + i, n, d, missing) + step * i for i in range(n_stretches)]


def autoregression(noise, keep):
    """Return rows of which each is a part of the one before it, and noise."""
    return lfilter([1.0], [1.0, -keep], noise, axis=0)


def codes(seed, n, sizes):
    """Return categories (n, c) that depend on each other, with a number before them."""
    rng = np.random.default_rng(seed)
    table = np.column_stack([rng.integers(size, size=n) for size in sizes])
    table[:, 1] = np.where(rng.random(n) < 0.8, table[:, 0] % sizes[1], table[:, 1])
    return np.column_stack([rng.normal(size=n), table])


def blame_of(block, row):
    """Return the fields to blame for an anomalous record, and all that is told of its fields."""
    assert block.is_anomaly[row]
    at = np.count_nonzero(block.is_anomaly[:row])
    blame = block.blame._make(column[at] for column in block.blame)
    return blame.order[: blame.n_blamed].tolist(), blame


def share_within(low, high, v, d, state, keys=None, place=None):
    """Return how much of field v's density, as the next record would have it, lies in a range."""
    axis, row, log_density = np.linspace(low, high, 201), np.full((1, d), np.nan), []
    for row[0, v] in axis:
        block = StreamScorer.from_bytes(state).process(row, keys, place)
        log_density.append(block.log_likelihood[0])
    return simpson(np.exp(log_density), x=axis)


def learned_by(layer, rows, batch=256, memory=None):
    """Return a layer of categories after it has learned rows in batches."""
    for start in range(0, len(rows), batch):
        layer.take(rows[start : start + batch])
        layer.end_batch(memory, learning=True)
    return layer


def losing(rows, share, column=1, seed=9):
    """Return rows of which a share lacks a column."""
    gone = rows.copy()
    gone[np.random.default_rng(seed).random(len(rows)) < share, column] = np.nan
    return gone
