"""The mixture of networks that oSLRAU grew, itself a network that oSLRAU can grow on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from faust_oslrau.learner.arrays import Arrays, FloatArray

from .errors import InvalidInputError
from .network.layout import LEAF, MULTIVARIATE_LEAF, SUM, moments_length, statistics_length
from .network.packing import NO_BACKGROUND, scopes_of
from .oslrau import OSLRAU
from .state import pack, unpack


def merge_oslrau(models: Sequence[OSLRAU]) -> OSLRAU:
    """Return the mixture of models that have learned records, each weighted by these.

    A record's density is the weighted mean of its densities by the models. The mixture is a network
    in units of the model with the most records, and learns on with the parameters of that one. The
    floors of variances are in these units, too.

    Raises
    ------
    InvalidInputError
        A field was never observed in a model, or they have different numbers of fields.
    """
    read = [unpack(model.to_bytes(), "OSLRAU") for model in models]
    largest = int(np.argmax([model.n_records_ for model in models]))
    values, units = read[largest]
    if any(len(arrays["scale"]) != len(units["scale"]) for _, arrays in read):
        raise InvalidInputError("models: expected as many fields in each")
    if any(np.isnan(arrays["scale"]).any() for _, arrays in read):
        raise InvalidInputError("models: expected each field to have been observed in each")
    parts = [_in_units(arrays, units["location"], units["scale"]) for _, arrays in read]
    n_records = [model.n_records_ for model in models]
    merged = _mixture(parts, np.array(n_records, np.float64))
    merged |= {"location": units["location"], "scale": units["scale"]}
    return OSLRAU.from_bytes(pack("OSLRAU", {**values, "n_records": sum(n_records)}, merged))


def _mixture(parts: Sequence[Arrays], n_records: FloatArray) -> Arrays:
    """Return the packed network whose root is the sum of the roots of others."""
    merged = {name: np.concatenate([part[name] for part in parts]) for name in _CONCATENATED}
    ends = np.cumsum([len(part["kind"]) for part in parts])
    merged["weight"][ends - 1] = n_records
    root = {"kind": SUM, "n_children": len(parts), "weight": 1.0, "count": n_records.sum()}
    for name, value in root.items():
        merged[name] = np.append(merged[name], np.array(value, merged[name].dtype))
    merged["changes"] = np.sum([part["changes"] for part in parts], axis=0)
    merged["background"] = np.array([NO_BACKGROUND])
    return merged


_CONCATENATED = (
    "kind", "n_children", "weight", "count", "leaf_size", "leaf_scope",
    "observed", "mean", "variance", "statistics",
)  # fmt: skip


def _in_units(arrays: Arrays, location: FloatArray, scale: FloatArray) -> Arrays:
    """Return a packed network with its leaves in other units, (x - location) / scale."""
    factor = arrays["scale"] / scale
    shift = (arrays["location"] - location) / scale
    found = {name: arrays[name].copy() for name in (*_CONCATENATED, "changes")}
    scopes = np.split(arrays["leaf_scope"], np.cumsum(arrays["leaf_size"])[:-1])
    leaves = arrays["kind"][np.isin(arrays["kind"], [LEAF, MULTIVARIATE_LEAF])]
    single = np.array(
        [scope[0] for scope, kind in zip(scopes, leaves, strict=True) if kind == LEAF]
    )
    if len(single) > 0:
        found["mean"] = factor[single] * arrays["mean"] + shift[single]
        found["variance"] = factor[single] ** 2 * arrays["variance"]
    at = 0
    every = scopes_of(len(factor), arrays)
    for kind, scope in zip(arrays["kind"].tolist(), map(np.array, every), strict=True):
        k = len(scope)
        if statistics_length(kind, k) == 0:
            continue
        moments = found["statistics"][at : at + moments_length(k)]
        moments[:k] = factor[scope] * moments[:k] + shift[scope]
        matrix, upper = moments[2 * k :].reshape(k, k), np.triu_indices(k)
        matrix[upper] *= np.outer(factor[scope], factor[scope])[upper]
        at += len(moments)
    return found
