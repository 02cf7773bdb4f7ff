"""What every model and every scorer promises of its state, whatever it is made of.

Any cutting of the stream gives the same bits, with restarts or without. A state that cannot be one
is refused with a `StateError`, damaged bytes too; whatever is accepted goes on to finite numbers.
"""

import dataclasses
import functools
import json
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from interpreter import examples, needs_compiler
from subjects import KEYS, MODELS, PLACES, SCORERS, SUBJECTS, exact

from faust_oslrau.learner import InvalidInputError, StackedSPN, StateError
from faust_oslrau.learner.entities import watch
from faust_oslrau.learner.state import pack, unpack
from faust_oslrau.learner.vector.blocks import MOST_ROWS

LONG = needs_compiler("whole streams, again and again")


@pytest.fixture(scope="module", autouse=True)
def _sooner():
    """Let entities be told of, and fields be many, on a stream that is short and narrow."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(watch, "YOUNG", 800)
        patch.setattr(watch, "EVERY", 128)
        patch.setattr(watch, "FEWEST_ENTITIES", 5)
        yield


@pytest.fixture(autouse=True)
def _blocks_of_three(request, monkeypatch):
    """Let three fields be many, where a model is to have many."""
    name = request.getfixturevalue("name") if "name" in request.fixturenames else None
    if name in MODELS and MODELS[name].wide:
        for place in (
            "algorithm.start.WIDEST_BACKGROUND",
            "stacked.background.WIDEST",
            "stacked.sizes.WIDEST_MIXTURE",
        ):
            monkeypatch.setattr(f"faust_oslrau.learner.{place}", 3)


def run(subject, cuts=(), *, restart=False, until=None):
    """Return what goes through the stream in pieces, and all that it answers."""
    n = until or subject.n
    ends = sorted({0, *(cut // subject.batch * subject.batch for cut in cuts if cut < n), n})
    taught, said = subject.new(), []
    for start, stop in pairwise(ends):
        if restart:
            taught = subject.read(taught.to_bytes())
        said.append(subject.go_on(taught, slice(start, stop)))
    return taught, said


@functools.cache
def at_once(name):
    taught, said = run(SUBJECTS[name])
    return taught.to_bytes(), SUBJECTS[name].answers(taught, said), said


def whole(name):
    return at_once(name)[:2]


AROUND_BOUNDARIES = [1, 15, 16, 17, 47, 48, 49, 111, 112, 239, 240, 241, 300, 496, 497, 1000]
IN_THE_MIDST = [820, 840, 860, 905, 1125, 1350, 1366, 1430, 1479, 1530, 1776, 1800, 1801, 1950]


QUICK = ("plain", "OSLRAU", "OSLRAU of one component", "EntityDensity")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else LONG) for name in SUBJECTS]
)
@settings(max_examples=2, deadline=None)
@given(cuts=st.lists(st.integers(0, 2000), max_size=20), restart=st.booleans())
@example(cuts=AROUND_BOUNDARIES + IN_THE_MIDST, restart=True)
def test_any_cutting_and_any_restart_give_the_same_bits(name, cuts, restart):
    subject = SUBJECTS[name]
    state, answers = whole(name)
    taught, said = run(subject, cuts, restart=restart)
    found = subject.answers(taught, said)
    assert found == answers
    assert taught.to_bytes() == state


@LONG
def test_the_stream_has_something_for_each_layer():
    """Else the same bits would say little."""
    blocks = {name: at_once(name)[2][0][1] for name in SCORERS}
    states = {event.state for event in blocks["incidents"].incidents}
    assert states == {"opened", "updated", "closed"}
    assert {event.state for event in blocks["all"].silences} == {"began", "ended"}
    assert {event.state for event in blocks["entities"].entity_events} == {"new"}
    assert {event.state for event in blocks["rates"].rate_changes} == {"began", "ended"}
    assert blocks["plain"].held_back > 30
    assert all(block.is_anomaly.any() for block in blocks.values())
    for scorer in (SUBJECTS[name].read(whole(name)[0]) for name in SCORERS):
        is_stacked = isinstance(scorer.learner, StackedSPN)
        assert len(scorer.learner.shares) == 1 + is_stacked, "there is a challenger"
        if scorer.parameters["seasons"] is not None:
            assert unpack(scorer.to_bytes(), "StreamScorer")[1]["season_counting"].any()
        if scorer.parameters["max_former_entities"]:
            assert scorer.n_former_entities > 0


@LONG
@pytest.mark.parametrize("name", [name for name in MODELS if "Density" not in name])
def test_learning_what_was_evaluated_gives_the_same_bits(name):
    subject = SUBJECTS[name]
    model, size = subject.new(), subject.batch
    for start in range(0, subject.n, size):
        rows = subject.rows[start : start + size]
        model.partial_fit(rows, evaluation=model.evaluate(rows) if start else None)
    assert model.to_bytes() == whole(name)[0]


QUERIES = {
    "score_samples": lambda model, *given: model.score_samples(*given)[:, None],
    "contributions": lambda model, *given: model.contributions(*given),
    "impute": lambda model, *given: model.impute(*given),
    "expected": lambda model, *given: np.hstack(model.expected(*given)),
    "given_others": lambda model, *given: np.hstack(model.given_others(*given)),
    "measures": lambda model, *given: model.evaluate(*given).measures,
    "quantiles": lambda model, *given: np.hstack(
        [*model.conditional_quantiles(*given, [0.01, 0.5])[1]]
    ),
}


@LONG
@pytest.mark.parametrize("name", MODELS)
def test_an_answer_about_a_row_depends_on_that_row_alone(name):
    subject = SUBJECTS[name]
    model = subject.read(whole(name)[0])
    rows = np.concatenate([subject.rows[:227], subject.rows[-30:]])
    assert len(rows) == MOST_ROWS + 1, "a row is left over by a block"
    rows[::7, -1] = rows[::5, 0] = np.nan
    rows[3], rows[50], rows[20, 1] = 1e12, np.nan, 1e12
    rows[60:63, 1:] = np.nan
    keys = [] if subject.keys is None else [[*subject.keys[:227], *subject.keys[-30:]]]
    fewer = {"EntityDensity": [*QUERIES][:4], "CategoricalDensity": [*QUERIES][:3]}
    queries = fewer.get(subject.kind, QUERIES)
    for query in queries:

        def ask(some, order="C", query=query):
            given = np.asarray(rows[some], order=order)
            return QUERIES[query](model, given, *(each[some] for each in keys))

        together = ask(slice(None))
        assert np.array_equal(ask(slice(13, 147), "F"), together[13:147], equal_nan=True), query
        assert np.array_equal(ask(slice(None, None, -1)), together[::-1], equal_nan=True), query
        for r in [*range(0, 64, 7), 255, 256]:
            alone = ask(slice(r, r + 1))
            assert exact(alone) == exact(together[r : r + 1]), (query, r)
    assert model.to_bytes() == whole(name)[0], "asking changes nothing"


@LONG
@pytest.mark.parametrize("at", [101, 1461, 1851])
@pytest.mark.parametrize("name", [name for name in SCORERS if SCORERS[name].later])
def test_the_forecast_of_the_next_record_is_what_its_band_will_be(name, at):
    subject, state, some = SCORERS[name], state_at(name, at), slice(at, at + 1)
    scorer = subject.read(state)
    keys = KEYS[some] if "max_entities" in subject.parameters else None
    foreseen = scorer.forecast(keys, PLACES[some, 1])
    assert scorer.to_bytes() == state
    assert exact(subject.go_on(scorer, some)[1].forecast) == exact(foreseen)


OFF = {
    "incidents": ("incidents", None),
    "entity_events": ("entity_events", ()),
    "silences": ("silences", False),
    "forecasting": ("forecast", False),
}
"""What may be told besides scores, and how to leave it out."""


@LONG
@pytest.mark.parametrize("setting", OFF)
def test_what_is_told_besides_scores_changes_none_of_them_and_nothing_else(setting):
    subject, (member, off) = SCORERS["all"], OFF[setting]
    fewer = [
        {key: value for key, value in each.items() if key != setting}
        for each in (subject.parameters, subject.later)
    ]
    without = dataclasses.replace(subject, parameters=fewer[0], later=fewer[1])
    scorer, said = run(without)
    state, answers = whole("all")
    assert without.answers(scorer, said) | {member: None} == answers | {member: None}
    told = subject.read(state)
    setattr(told, setting, off)
    assert told.to_bytes() == scorer.to_bytes()


@LONG
def test_a_layer_that_is_off_leaves_nothing_in_the_state():
    values, arrays = unpacked("plain", 1960)
    layers = "entit former habit kinds watch history season silence rate incident evidence category"
    assert not [name for name in (*values, *arrays) if name.startswith(tuple(layers.split()))]
    timed = ("silences", "rates", "history", "seasons", "all but entities", "all", "all stacked")
    for name, subject in SCORERS.items():
        assert subject.new().needs_times == (name in timed), name


@LONG
def test_a_season_may_begin_to_count_beside_categories():
    both = {"seasons": "Europe/Berlin", "n_categories": 2}
    run(dataclasses.replace(SCORERS["categories"], parameters=both))


STATES = [
    ("plain", 10),
    ("small batches", 1350),
    ("stacked", 1960),
    ("incidents", 1340),
    ("categories", 1460),
    ("seasons", 1960),
    ("few entities", 700),
    ("entities", 10),
    ("entities", 1460),
    ("all but entities", 1460),
    ("all", 1460),
    ("OSLRAU", 0),
    ("OSLRAU", 600),
    ("OSLRAU of many fields", 600),
    ("StackedSPN", 0),
    ("StackedSPN", 256),
    ("StackedSPN with a challenger", 100),
    ("StackedSPN with a challenger", 1000),
    ("StackedSPN of many fields", 600),
    ("StackedSPN that is settled", 5888),
    ("EntityDensity of few entities", 900),
    ("CategoricalDensity", 900),
]
"""States to be damaged: of what, and after how many records. Each array has numbers in one of them.
"""


def is_quick(name, at=0):
    return at <= 700 and "tacked" not in name


at_states = pytest.mark.parametrize(
    ("name", "at"),
    [pytest.param(*state, marks=() if is_quick(*state) else LONG) for state in STATES],
)


@functools.cache
def state_at(name, at):
    return run(SUBJECTS[name], until=at)[0].to_bytes() if at else SUBJECTS[name].new().to_bytes()


def unpacked(name, at):
    values, arrays = unpack(state_at(name, at), SUBJECTS[name].kind)
    return json.loads(json.dumps(values)), arrays


def read(name, values, arrays):
    arrays = {each: np.ascontiguousarray(array) for each, array in arrays.items()}
    return SUBJECTS[name].read(pack(SUBJECTS[name].kind, values, arrays))


def is_refused(name, values, arrays):
    """Say so; any error but a `StateError` fails the test."""
    try:
        read(name, values, arrays)
    except StateError:
        return True
    return False


TYPES = {"<f8": "<f4", "<f4": "<f8", "<i8": "<i4", "<i4": "<i8", "|u1": "<i8", "|i1": "|u1"}


def with_one(array, number):
    changed = array.copy()
    changed.reshape(-1)[array.size // 2] = number
    return changed


def damages(array):
    """Return arrays that can hardly be in the place of one, by what was done to it."""
    if array.size == 0:
        return {}
    of_another_type = array.astype(TYPES[array.dtype.str])
    found = {"of another type": of_another_type, "in another dimension": array[None]}
    found["longer"] = np.concatenate([array, array[-1:]])
    found |= {f"shorter along {axis}": np.delete(array, 0, axis) for axis in range(array.ndim)}
    if array.ndim > 1:
        found["flat"] = array.reshape(-1)
    if array.dtype.kind == "f" and not np.isnan(array).any():
        found["missing"] = with_one(array, np.nan)
    if array.dtype.kind == "f" and not np.isinf(array).any():
        found["infinite"] = with_one(array, np.inf)
    if array.dtype.kind != "u" and (array >= 0).all():
        found["below zero"] = -1 - array
    return found


ACCEPTED = {
    "removed": "silence_clock kinds_count kinds_mean kinds_sums kinds_squares",
    "of another type": "incident_means incident_seen",
    "in another dimension": "learner",
    "longer": "recent_marks drift_reference history challenger_history",
    "shorter along 0": "recent_marks drift_reference history challenger_history neighbours",
    "missing": "run_last pending_marks pending_measures pending_scores level "
    "drift_reference incident_means",
    "infinite": "pending_marks pending_scores recent_scores recent_densities held_scores "
    "held_densities drift_reference history_spread incident_means incident_seen",
    "below zero": "run_last pending_marks pending_scores mass_location mass_votes "
    "gaussian_votes season_centre season_latest season_dates season_open season_last "
    "season_beside entity_levels habit_products habit_new_common watch_others "
    "history_last silence_deadlines incident_means changes background rate_log_weight rate_nats "
    "rate_against",
}
"""What may be done to which arrays: they may have any length or any number, or may be left out."""


@at_states
def test_an_array_that_cannot_be_is_refused(name, at):
    values, arrays = unpacked(name, at)
    accepted = []
    for array in arrays:
        rest = {each: kept for each, kept in arrays.items() if each != array}
        some = {damage: {array: to} for damage, to in damages(arrays[array]).items()}
        for damage, damaged in ({"removed": {}} | some).items():
            if array in ACCEPTED.get(damage, "").split():
                continue
            if not is_refused(name, values, rest | damaged):
                accepted.append((array, damage))
    assert accepted == []


WRONG = [-1, 2**70, float("nan"), "x", [None], [[0, 1]]]

ACCEPTED_VALUES = {
    "incidents removed",
    "seasons removed",
    "rates removed",
    "least = [[0, 1]]",
    "max_entities removed",
    "entity_events removed",
    *(f"{limit} = {2**70}" for limit in ("batch_size", "max_entities", "max_former_entities")),
}
"""Scorers of other settings."""


def wrong_values(values):
    """Return values of which one is removed or hardly can be, by what was done to it."""
    for name, value in values.items():
        yield f"{name} removed", {each: kept for each, kept in values.items() if each != name}
        for wrong in WRONG:
            yield f"{name} = {wrong}", values | {name: wrong}
        if isinstance(value, dict) and name != "parameters":
            for what, changed in wrong_values(value):
                yield f"{name}.{what}", values | {name: changed}


@at_states
def test_a_value_that_cannot_be_is_refused(name, at):
    values, arrays = unpacked(name, at)
    accepted = {what for what, wrong in wrong_values(values) if not is_refused(name, wrong, arrays)}
    assert accepted <= ACCEPTED_VALUES


def zero(array):
    return 0 * array


def backwards(array):
    return array[::-1]


TOGETHER = [
    # name, at, and what is done to arrays whose own shapes and ranges stay possible
    ("plain", 1000, {"recent_marks": np.ones_like}),
    ("plain", 1400, {"drift_reference": backwards}),
    ("plain", 1400, {"drift_reference": lambda a: np.append(a, a[-1])}),
    ("plain", 1400, {"lowest": lambda a: a + 1e9}),
    ("plain", 1400, {"lowest": lambda a: a[:2], "highest": lambda a: a[:2]}),
    ("plain", 1400, {"neighbours": lambda a: a[:, :2], "variance": lambda a: a[:2]}),
    ("plain", 1400, {"neighbours": lambda a: np.tile(a, (9, 1))}),
    ("plain", 1400, {"neighbours": lambda a: a[:0]}),
    ("plain", 1400, {"mass_count": zero}),
    ("plain", 1400, {"spread": zero}),
    ("plain", 1400, {"level": lambda a: a[:2], "spread": lambda a: a[:2]}),
    ("plain", 1960, {"held_rows": lambda a: a[:, :2]}),
    ("plain", 1960, {"held_numbers": backwards}),
    ("plain", 1960, {"held_numbers": zero}),
    ("history", 1000, {"level": lambda a: np.append(a, 1), "spread": lambda a: np.append(a, 1)}),
    ("history", 1000, {"history_spread": zero}),
    ("incidents", 1340, {"evidence": lambda a: a + 2}),
    ("incidents", 1340, {"evidence_marks": lambda a: zero(a) - 10}),
    ("silences", 1000, {"silence_clock": lambda a: a - 10**15}),
    ("silences", 1000, {"silence_numbers": lambda a: a + 1}),
    ("silences", 1000, {"silence_largest": lambda a: a[..., ::-1]}),
    ("seasons", 1960, {"season_usual": zero}),
    ("entities", 1460, {"level": lambda a: np.append(a, 1), "spread": lambda a: np.append(a, 1)}),
    ("entities", 1460, {"entity_ages": zero}),
    ("entities", 1460, {"entity_reference": zero}),
    ("entities", 1460, {"entity_population": zero}),
    ("entities", 1460, {"entity_key_lengths": lambda a: a + 100}),
    ("entities", 1460, {"former_key_lengths": lambda a: a + 100}),
    ("entities", 1460, {"watch_slots": lambda a: zero(a) + 999}),
    ("entities", 1460, {"watch_name_lengths": lambda a: zero(a) + 999}),
    ("entities", 1460, {"watch_others": zero}),
    ("OSLRAU", 600, {"weight": lambda a: zero(a) + 1e-310}),
    ("StackedSPN with a challenger", 1000, {"background_sums": lambda a: a + 1e36}),
]
"""What fits neither other arrays nor a narrower range than the damage above goes beyond."""


@LONG
@pytest.mark.parametrize(("name", "at", "damage"), TOGETHER)
def test_arrays_that_do_not_go_together_are_refused(name, at, damage):
    values, arrays = unpacked(name, at)
    damaged = {array: change(arrays[array]) for array, change in damage.items()}
    assert is_refused(name, values, arrays | damaged)


@LONG
@pytest.mark.parametrize(
    ("name", "at", "changes"),
    [
        *(("plain", 100, {"transforms": each}) for each in ([[1.5, "asinh"]], [[0, "exp"]], 7)),
        ("plain", 100, {"adapt_after": 0}),
        ("plain", 100, {"neighbours_taken": 1}),
        *(("incidents", 1340, {"incidents": change}) for change in (
            {"open": {}}, {"open": 3}, {"slots": [1]}, {"slots": [0, 0]}, {"quiet": [-1]},
            {"anomalies": [-1]}, {"parameters": {"quiet_records": 0}}, {"parameters": {"no": 0}},
        )),
        ("EntityDensity of few entities", 900, {"n_fields": 2}),
        ("OSLRAU", 600, {"parameters": {"evil": 1}}),
        ("OSLRAU", 600, {"n_records": float("inf")}),
    ],
)  # fmt: skip
def test_values_that_do_not_fit_are_refused(name, at, changes):
    values, arrays = unpacked(name, at)
    for each, change in changes.items():
        inner = isinstance(values[each], dict) and each == "incidents"
        values[each] = values[each] | change if inner else change
    assert is_refused(name, values, arrays)


def goes_on(name, at, values, arrays):
    """Say whether a state is refused, or goes on to finite numbers and to states that are read."""
    try:
        taught = read(name, values, arrays)
    except StateError:
        return True
    try:
        SUBJECTS[name].go_on(taught, slice(at, at + 128))
    except InvalidInputError:  # a state of other settings wants other rows
        return True
    return taught.to_bytes() != b""


def changed(draw, array, largest):
    """Return an array of another content, type or length."""
    how = draw(st.sampled_from(["one", "one", "all", "type", "cut", "more", "order"]))
    if how == "type":
        with np.errstate(invalid="ignore", over="ignore"):
            return array.astype(draw(st.sampled_from(sorted(TYPES))))
    if how in ("cut", "more", "order"):
        cut = array[: draw(st.integers(0, 2))]
        return {"cut": cut, "more": np.concatenate([array, cut]), "order": array[::-1]}[how]
    if array.dtype.kind == "f":
        special = st.sampled_from([0.0, 1.0, -1.0, np.nan, np.inf, -np.inf])
        numbers = st.floats(-largest, largest, width=8 * array.dtype.itemsize) | special
    else:
        bounds = np.iinfo(array.dtype)
        numbers = st.integers(int(bounds.min), int(bounds.max)) | st.integers(0, 3)
    result = array.copy()
    at = draw(st.integers(0, array.size - 1)) if how == "one" and array.size else slice(None)
    result.reshape(-1)[at] = draw(numbers)
    return result


DAMAGE = {
    "kinds_sums": ("entities", 1460, lambda a: with_one(a, 1e300)),
    "kinds_squares": ("entities", 1460, lambda a: with_one(a, 1e45)),
    "category_joint": ("categories", 1460, lambda a: 0 * a),
    "habit_new_common": ("entities", 1460, lambda a: 0 * a - 1e300),
    "entity_population": ("entities", 1460, lambda a: 0 * a + 1e300),
    "location": ("OSLRAU", 600, lambda a: a.astype("<i4")),
    "scale": ("OSLRAU", 600, lambda a: (a + 1.0).astype("<i4")),
    "pending_measures": ("plain", 100, lambda a: a[:, 1:]),
    "season_rows": ("seasons", 1960, lambda a: a[:, 1:]),
}
"""Damage after which scores would not be finite, or there would be another error."""


@LONG
@pytest.mark.parametrize(
    ("array", "name", "at", "damage"), [(array, *damage) for array, damage in DAMAGE.items()]
)
def test_damage_that_would_show_later_is_refused_or_goes_on(array, name, at, damage):
    values, arrays = unpacked(name, at)
    assert goes_on(name, at, values, arrays | {array: damage(arrays[array])})


@at_states
@settings(max_examples=examples(20), deadline=None)
@given(data=st.data())
def test_a_damaged_state_is_refused_or_goes_on(name, at, data):
    values, arrays = unpacked(name, at)
    some = data.draw(st.sampled_from(sorted(arrays) or [None]))
    if some is not None:
        largest = 1.0 if arrays[some].dtype == "<f4" else 1e300
        arrays[some] = changed(data.draw, arrays[some], largest)
    assert goes_on(name, at, values, arrays)


@LONG
@pytest.mark.parametrize("name", ["all stacked", *MODELS])
@settings(max_examples=examples(10), deadline=None)
@given(data=st.data())
def test_damaged_bytes_are_refused(name, data):
    good = whole(name)[0]
    at = data.draw(st.integers(0, len(good) - 1))
    flipped = bytes([good[at] ^ data.draw(st.integers(1, 255))])
    more = data.draw(st.binary(min_size=1, max_size=20))
    for bad in (good[:at], good[:at] + flipped + good[at + 1 :], good + more):
        with pytest.raises(StateError):
            SUBJECTS[name].read(bad)


def test_the_bytes_of_another_kind_are_refused():
    kinds = ["plain", "OSLRAU", "StackedSPN", "EntityDensity"]
    for name in kinds:
        for other in set(kinds) - {name}:
            with pytest.raises(StateError, match=f"expected the kind '{SUBJECTS[name].kind}', got"):
                SUBJECTS[name].read(SUBJECTS[other].new().to_bytes())
