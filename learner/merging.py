"""One model of several: the mixture of their networks, by the records that each has learned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from faust_oslrau.learner.arrays import Arrays

from .entities.merging import merge_entities
from .errors import InvalidInputError
from .oslrau import OSLRAU
from .oslrau_merging import merge_oslrau
from .protocol import Learner
from .stacked import StackedSPN
from .state import pack, unpack
from .stream import StreamScorer


def merge_models(models: Sequence[Learner]) -> OSLRAU | StackedSPN:
    """Return the mixture of models of one kind, each weighted by its records.

    A record's density is the weighted mean of its densities by the models. The mixture is a network
    in units of the model with the most records, and learns on with the parameters of that one. The
    floors of variances are in these units, too. It has about as many nodes as the models together,
    whatever their budget.

    Raises
    ------
    InvalidInputError
        There is no model, or one has learned nothing, a field was never observed, they have
        different numbers of fields, or they are of different kinds.
    """
    grown = [model for model in models if isinstance(model, OSLRAU)]
    stacked = [model for model in models if isinstance(model, StackedSPN)]
    if len(models) not in (len(grown), len(stacked)):
        raise InvalidInputError("models: expected those of one kind, OSLRAU or StackedSPN")
    _check_learned(models)
    return StackedSPN.mixture(stacked) if stacked else merge_oslrau(grown)


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
        There is no scorer, or one has learned nothing; models are of different kinds; a scorer has
        other transforms, another history or another ``max_entities`` than the first one; or a
        scorer has seasons: what is known of those of one partition cannot be mixed with what is
        known of another's.
    """
    for scorer in scorers:
        _check(scorer, scorers[0])
    models: list[Learner] = [scorer.learner for scorer in scorers]
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
    like = scorers[largest]
    merged.incidents, merged.silences = like.incidents, like.silences
    merged.entity_events, merged.rates = like.entity_events, like.rates
    merged.rates_by = like.rates_by
    return merged.to_bytes()


def _check_learned(models: Sequence[Learner]) -> None:
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
