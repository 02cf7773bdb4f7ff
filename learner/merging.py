"""One model of several: the mixture of their networks, by the records that each has learned."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .errors import InvalidInputError
from .oslrau import OSLRAU
from .oslrau_merging import merge_oslrau
from .protocol import Learner
from .stacked import StackedSPN
from .state import pack, unpack
from .stream import StreamScorer

_LAYERS = {
    "max_entities": "entities",
    "history": "history",
    "stretches": "stretches",
    "seasons": "seasons",
}


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
    return StackedSPN.mixture(stacked) if stacked else merge_oslrau(grown)


def merge_scorers(scorers: Sequence[StreamScorer]) -> bytes:
    """Return the state of the scorer with the most records, with the mixture of all models.

    Recent scores, by which scores become p-values, are those of that scorer. Incidents and silences
    are followed if it does, but anew: no incident is open, and no gap between records is known, as
    these belong to the log of one partition.

    Raises
    ------
    InvalidInputError
        There is no scorer, or one has learned nothing; the models are of different kinds; a scorer
        has other transforms than the first one; or a scorer has entities, history, stretches or
        seasons: what these layers know of one partition cannot be mixed with what they know of
        another.
    """
    for scorer in scorers:
        for parameter, layer in _LAYERS.items():
            if scorer.parameters[parameter] is not None:
                raise InvalidInputError(f"models: expected those without {layer}")
        if scorer.parameters["transforms"] != scorers[0].parameters["transforms"]:
            raise InvalidInputError("models: expected those with the same transforms")
    merged = merge_models([scorer.learner for scorer in scorers])
    largest = max(scorers, key=lambda scorer: scorer.n_records)
    scorer = StreamScorer.from_bytes(largest.to_bytes(), type(merged))
    scorer.incidents, scorer.silences = None, False  # forget those of this partition
    scorer.incidents, scorer.silences = largest.incidents, largest.silences
    values, arrays = unpack(scorer.to_bytes(), "StreamScorer")
    arrays["learner"] = np.frombuffer(merged.to_bytes(), np.uint8)
    return pack("StreamScorer", values, arrays)
