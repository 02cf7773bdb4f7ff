"""What cannot be is refused, with what was expected, and changes nothing."""

import functools
import math
import re

import numpy as np
import pytest
from streams import clusters

from faust_oslrau.learner import (
    OSLRAU,
    CategoricalDensity,
    EntityDensity,
    IncidentParameters,
    InvalidInputError,
    InvalidParameterError,
    NotFittedError,
    StreamScorer,
)
from faust_oslrau.learner.river import OSLRAUAnomaly

ROWS, KEYS = clusters(5, 300, 3), np.arange(300) % 20


def scorer_of(**parameters):
    return StreamScorer(OSLRAU(), **parameters)


def fitted(kind, *keys):
    """Return a model that is made with parameters and learns a record."""
    return lambda **parameters: kind(**parameters).partial_fit([[1.0, 2.0]], *keys)


PARAMETERS = [
    (fitted(OSLRAU), "corr_threshold", [0.0, 1.5], "in (0, 1]"),
    (fitted(OSLRAU), "min_count", [0, np.nan, None], "1 to"),
    (fitted(OSLRAU), "max_leaf_vars", [-1, 2**70], "0 to"),
    (fitted(OSLRAU), "n_init_components", [0, np.inf], "1 to"),
    (fitted(OSLRAU), "max_nodes", [1, 2**70], "2 to"),
    (fitted(OSLRAU), "merges_per_batch", [2**40], ""),
    (fitted(OSLRAU), "structure_until", [-1, np.inf], "0 to"),
    (fitted(OSLRAU), "variance_floor", [-1.0], ""),
    (fitted(OSLRAU), "memory", [0], "above 0, or None"),
    (lambda variance_floor: fitted(OSLRAU)().score_samples(
        [[1.0, 2.0]], variance_floor=variance_floor), "variance_floor",
        [-0.1, math.nan, [0.1, math.nan]], "at least 0"),
    (fitted(CategoricalDensity), "n_categories", [0], "from 1 to 128"),
    (fitted(EntityDensity, [b"a"]), "max_entities", [0], "at least 1"),
    (fitted(EntityDensity, [b"a"]), "max_former_entities", [-1], "at least 0"),
    (scorer_of, "adapt_after", [0, 8193], "from 1 to 8192"),
    (scorer_of, "alarm_rate", [0.0], "in (0, 1)"),
    (scorer_of, "batch_size", [8], "at least 16"),
    (scorer_of, "max_entities", [0], "at least 1"),
    (scorer_of, "n_categories", [1000], "from 1 to 128"),
    (scorer_of, "rates", [0.5, 3600.5, math.nan], "1 s to 3600 s"),
    (scorer_of, "seasons", ["", "Mars/Olympus", "../etc/passwd", "Europe", "no\0zone", "localtime",
                         "posixrules", "Factory"], "a time zone such as Europe/Berlin"),
    (IncidentParameters, "false_alarm_rate", [0.0, 0.02], "in (0, 0.01]"),
    (IncidentParameters, "quiet_records", [0], "at least 1"),
    (IncidentParameters, "quiet_seconds", [0, math.inf], "above 0, or None"),
    (OSLRAUAnomaly, "batch_size", [0], "at least 1"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("make", "name", "value", "expected"),
    [(make, name, value, rest) for make, name, values, rest in PARAMETERS for value in values],
)
def test_a_parameter_out_of_range_is_named_with_its_range(make, name, value, expected):
    with pytest.raises(InvalidParameterError, match=re.escape(f"{name} = {value!r}")) as caught:
        make(**{name: value})
    assert f": expected {expected}" in str(caught.value)


SPANS = [(), ("0",), ("0.5",), ("0s",), ("ten",), ("5d",), ("5", "5"), ("1", "2", "3", "4", "5"),
         ("-3",), ("1e3",)]  # fmt: skip


@pytest.mark.parametrize(
    ("make", "parameters", "message"),
    [
        *((scorer_of, {"history": spans}, "history: expected") for spans in SPANS),
        (scorer_of, {"directions": {0: "up"}}, "directions of column 0: got 'up'"),
        (scorer_of, {"least": {0: 0.0}}, "least of column 0: got 0.0"),
        (scorer_of, {"least": {0: np.nan}}, "least of column 0: got nan"),
        (scorer_of, {"transforms": {0: "sqrt"}}, r"'sqrt'.*expected one of log, log1p, asinh"),
        (scorer_of, {"max_entities": 5, "entity_events": ["old"]}, "expected some of new, unusual"),
        (scorer_of, {"entity_events": ["new"]}, "expected some of new, unusual with max_entities"),
        (StreamScorer, {"learner": OSLRAU(min_count=0)}, "min_count = 0"),
        (fitted(EntityDensity, ["a"]), {"learner": OSLRAU(min_count=0)}, "min_count = 0"),
        (EntityDensity().set_params, {"learner__min_count": 20}, "learner__min_count"),
        (OSLRAU().set_params, {"min_counts": 3}, "min_counts = 3: expected one of corr_thr"),
        (IncidentParameters, {"major": 80.0}, r"major, critical = \(80.0, 75.0\): expected 0 <="),
        (IncidentParameters, {"major": -1.0}, r"major, critical = \(-1.0, 75.0\): expected 0 <="),
        (OSLRAUAnomaly, {"learner": EntityDensity()}, "expected with an EntityDensity only"),
        (OSLRAUAnomaly, {"learner": OSLRAU(), "entity": "machine"}, "with an EntityDensity only"),
        (OSLRAUAnomaly, {"entity": "machine", "categories": ["service"]},
         "none together with an entity"),
        (OSLRAUAnomaly, {"learner": OSLRAU(), "categories": ["service"]},
         "expected as many as a CategoricalDensity"),
    ],
)  # fmt: skip
def test_parameters_that_do_not_fit_are_refused(make, parameters, message):
    with pytest.raises(InvalidParameterError, match=message):
        make(**parameters)


MODELS = {"OSLRAU": OSLRAU, "CategoricalDensity": CategoricalDensity}


@functools.cache
def taught(name):
    """Return what has learned rows of three columns, and the functions that take such rows."""
    if name == "EntityDensity":
        model = EntityDensity().partial_fit(ROWS, KEYS, batch_size=50)
        given = functools.partial(model.conditional_log_density, given=[0])
        uses = [model.partial_fit, model.score_samples, model.contributions, model.impute, given]
        return model, [lambda rows, use=use: use(rows, [1] * len(rows)) for use in uses]
    if name in MODELS:
        model = MODELS[name]().partial_fit(ROWS, batch_size=50)
        uses = [model.partial_fit, model.score_samples, model.contributions, model.impute]
        return model, [*uses, *([model.expected] if name != "CategoricalDensity" else [])]
    scorer = scorer_of(n_categories=int(name == "scorer of categories"))
    scorer.process(ROWS[: 3 if name == "young scorer" else 300])
    ranges = [lambda rows: scorer.expected_range(rows, 2.0)] if name == "scorer" else []
    return scorer, [scorer.process, *ranges]


@pytest.mark.parametrize(
    "name", [*MODELS, "EntityDensity", "scorer", "young scorer", "scorer of categories"]
)
@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (np.zeros(3), r"expected a matrix \(m, d\)"),
        (np.full((2, 3), np.inf), r"expected finite or missing \(NaN\) values, got infinity"),
        (np.zeros((2, 2)), "expected 3 columns, got 2"),
        (np.zeros((2, 4)), "expected 3 columns, got 4"),
    ],
)
def test_rows_that_cannot_be_are_refused_and_change_nothing(name, rows, message):
    subject, uses = taught(name)
    before = subject.to_bytes()
    for use in uses:
        with pytest.raises(InvalidInputError, match=message):
            use(rows)
    assert subject.to_bytes() == before


def of_entities():
    scorer = scorer_of(max_entities=20)
    scorer.process(ROWS, KEYS)
    return scorer


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (None, "expected one for each of 3 records"),
        ([], "expected one for each of 3 records"),
        ([b"a"], "expected one for each of 3 records"),
        ("a bc", "expected one for each of 3 records"),
        ([b"a", b"b", 7.5], "expected bytes, text, a whole number or None, got float"),
        ([b"a", 7, True], "expected bytes, text, a whole number or None, got bool"),
    ],
)
def test_entities_that_cannot_be_are_refused_and_change_nothing(keys, message):
    (density, _), scorer = taught("EntityDensity"), of_entities()
    given = functools.partial(density.conditional_log_density, given=[0])
    uses = [density.partial_fit, density.score_samples, density.contributions, density.impute]
    before = density.to_bytes(), scorer.to_bytes()
    for use in [*uses, given, scorer.process]:
        with pytest.raises(InvalidInputError, match=f"entity: {message}"):
            use(np.zeros((3, 3)), keys)
    assert (density.to_bytes(), scorer.to_bytes()) == before


PLACES = np.zeros((299, 2))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: OSLRAU().score_samples([[1.0]]), NotFittedError, "partial_fit"),
        (lambda: EntityDensity().score_samples(ROWS, KEYS), NotFittedError, "call partial_fit"),
        (lambda: EntityDensity().expected(ROWS, KEYS), NotFittedError, "call partial_fit first"),
        (lambda: EntityDensity().sample("a"), NotFittedError, "call partial_fit first"),
        (lambda: CategoricalDensity().score_samples([[1.0, 2.0]]), NotFittedError, None),
        (lambda: CategoricalDensity(n_categories=2).partial_fit([[1.0]]), InvalidInputError,
         "at least 2 columns, got 1"),
        (lambda: scorer_of(n_categories=2).process([[1.0]]), InvalidInputError,
         "expected 2 columns or more, got 1"),
        (lambda: scorer_of(directions={3: "high"}).process(ROWS), InvalidInputError, "directions"),
        (lambda: scorer_of(least={-1: 1.0}).process(ROWS), InvalidInputError, "least"),
        (lambda: scorer_of().process(ROWS, places=PLACES), InvalidInputError, "places"),
        (lambda: scorer_of().process(ROWS[:1], [b"a"]), InvalidInputError,
         "expected none without max_entities"),
        (lambda: scorer_of().forecast([b"machine-1"]), InvalidInputError, "entity"),
        (lambda: of_entities().forecast(), InvalidInputError, "entity"),
        (lambda: of_entities().forecast([b"a"], [1, 2]), InvalidInputError, "timestamps"),
        *((lambda level=level: taught("OSLRAU")[0].conditional_quantiles(ROWS[:1], [level]),
           InvalidParameterError, "levels") for level in (0.0, 1.0, np.nan)),
    ],
)  # fmt: skip
def test_questions_that_cannot_be_answered_are_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()
