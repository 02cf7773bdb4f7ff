"""One model of several: the mixture of their networks, by the records that each has learned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from faust_oslrau.learner.arrays import Arrays, FloatArray

from .entities.merging import merge_entities
from .errors import InvalidInputError
from .network.layout import LEAF, MULTIVARIATE_LEAF, SUM, moments_length, statistics_length
from .network.packing import scopes_of
from .oslrau import OSLRAU
from .state import pack, unpack
from .stream import StreamScorer


def merge_models(models: Sequence[OSLRAU]) -> OSLRAU:
    """Return the mixture of models, each weighted by its records.

    A record's density is the weighted mean of its densities by the models. The mixture is a network
    in units of the model with the most records, and learns on with the parameters of that one. The
    floors of variances are in these units, too. It has about as many nodes as the models together,
    whatever their budget.

    Raises
    ------
    InvalidInputError
        There is no model, or one has learned nothing, or has no background or mixtures as the
        others have; a field was never observed; or they have different numbers of fields.
    """
    _check_learned(models)
    if len({(model.background, model.mixtures) for model in models}) > 1:
        raise InvalidInputError("models: expected mixtures in each, or in none")
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


def merge_scorers(scorers: Sequence[StreamScorer]) -> bytes:
    """Return the state of the scorer with the most records, with the mixture of all models.

    Recent scores, by which scores become p-values, are those of that scorer. Incidents and silences
    are followed if it does, but anew: no incident is open, and no gap between records is known, as
    these belong to the log of one partition. So do running means of a history, which begin anew.

    The entities are those of all scorers: each keeps its level, scale and habits. What entities are
    like is estimated from all of them. Events of entities begin anew.

    Raises
    ------
    InvalidInputError
        There is no scorer, or one has learned nothing; models do not go together; a scorer has
        other transforms, another history or another ``max_entities`` than the first one; or a
        scorer has seasons: what is known of those of one partition cannot be mixed with what is
        known of another's.
    """
    for scorer in scorers:
        _check(scorer, scorers[0])
    models = [scorer.learner for scorer in scorers]
    _check_learned(models)
    largest = int(np.argmax([scorer.n_records for scorer in scorers]))
    states = [_without_past(scorer) for scorer in scorers]
    values, arrays = states[largest]
    if values.get("max_entities") is not None:
        others = [other for _, other in states if other is not arrays]
        limits = values["max_entities"], values["max_former_entities"]
        arrays = merge_entities([arrays, *others], *limits)
    model = merge_models(models)
    arrays["learner"] = np.frombuffer(model.to_bytes(), np.uint8)
    merged = StreamScorer.from_bytes(pack("StreamScorer", values, arrays), type(model))
    merged.change_as(scorers[largest])
    return merged.to_bytes()


def _check_learned(models: Sequence[OSLRAU]) -> None:
    if not models or any(model.n_records_ == 0 for model in models):
        raise InvalidInputError("models: expected some that have learned records")


def _check(scorer: StreamScorer, first: StreamScorer) -> None:
    if scorer.parameters["seasons"] is not None:
        raise InvalidInputError("models: expected those without seasons")
    if scorer.parameters["n_categories"]:
        raise InvalidInputError("models: expected those without categories")
    for parameter in ("transforms", "max_entities", "history"):
        if scorer.parameters[parameter] != first.parameters[parameter]:
            raise InvalidInputError(f"models: expected those with the same {parameter}")


def _without_past(scorer: StreamScorer) -> tuple[dict[str, Any], Arrays]:
    """Return the state without what belongs to the log of one partition."""
    copy = StreamScorer.from_bytes(scorer.to_bytes(), type(scorer.learner))
    copy.incidents, copy.silences, copy.entity_events, copy.rates = None, False, (), None
    values, arrays = unpack(copy.to_bytes(), "StreamScorer")
    arrays["run_last"] = arrays["run_lengths"] = np.empty((0, 0))
    if "history" in values:
        spans = len(values["history"])
        arrays["history_means"] = np.empty((0, spans, 0, 2))
        arrays["history_last"] = np.empty(0, np.int64)
    return values, arrays


def _mixture(parts: Sequence[Arrays], n_records: FloatArray) -> Arrays:
    """Return the packed network whose root has the components of all roots.

    The background of the first one is that of the mixture; those of others are components.
    """
    found = [_components(part, n) for part, n in zip(parts, n_records, strict=True)]
    merged = {name: np.concatenate([part[name] for part, _ in found]) for name in _CONCATENATED}
    n_children = sum(n for _, n in found)
    root = {"kind": SUM, "n_children": n_children, "weight": 1.0, "count": n_records.sum()}
    for name, value in root.items():
        merged[name] = np.append(merged[name], np.array(value, merged[name].dtype))
    merged["changes"] = np.sum([part["changes"] for part in parts], axis=0)
    merged["background"] = parts[0]["background"]
    return merged


def _components(part: Arrays, n_records: float) -> tuple[Arrays, int]:
    """Return a packed network without a sum at its root, and the number of components it had.

    They have the weight of ``n_records`` together.
    """
    if part["kind"][-1] != SUM:
        return part | {"weight": np.append(part["weight"][:-1], n_records)}, 1
    children: list[int] = []  # those that wait for their parent
    for place, n in enumerate(part["n_children"][:-1].tolist()):
        del children[len(children) - n :]
        children.append(place)
    weight = part["weight"].copy()
    weight[children] *= n_records / weight[children].sum()
    own = {name: part[name][:-1] for name in ("kind", "n_children", "count")}
    return part | own | {"weight": weight[:-1]}, len(children)


_CONCATENATED = (
    "kind", "n_children", "weight", "count", "leaf_size", "leaf_scope",
    "observed", "mean", "variance", "statistics",
)  # fmt: skip


def _in_units(arrays: Arrays, location: FloatArray, scale: FloatArray) -> Arrays:
    """Return a packed network with its leaves in other units, (x - location) / scale."""
    factor = arrays["scale"] / scale
    shift = (arrays["location"] - location) / scale
    found = {name: arrays[name].copy() for name in (*_CONCATENATED, "changes", "background")}
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
