"""What every model and every scorer makes of a state that cannot be one: it is refused.

With a `StateError`, damaged bytes too; whatever is accepted goes on to finite numbers.
"""

import functools

import numpy as np
import pytest
from contract import LONG, unpacked, whole
from hypothesis import given, settings
from hypothesis import strategies as st
from interpreter import examples
from streams import clusters
from subjects import MODELS, SUBJECTS

from faust_oslrau.learner import OSLRAU, StateError
from faust_oslrau.learner.errors import InvalidNetworkError
from faust_oslrau.learner.network.layout import LEAF, PRODUCT
from faust_oslrau.learner.state import pack

pytestmark = pytest.mark.usefixtures("sooner", "blocks_of_three")

STATES = [
    ("plain", 10), ("small batches", 1350), ("mixtures", 1960), ("incidents", 1340),
    ("categories", 1460), ("seasons", 1960), ("few entities", 700), ("entities", 10),
    ("entities", 1460), ("all", 1460), ("OSLRAU", 0), ("OSLRAU", 600),
    ("OSLRAU of many fields", 600), ("mixtures of OSLRAU", 256), ("mixtures of OSLRAU", 600),
    ("EntityDensity of few entities", 900), ("CategoricalDensity", 900),
]  # fmt: skip
"""States to be damaged: of what, and after how many records. Each array has numbers in one of them.
"""


def at(states):
    marked = [pytest.param(*state, marks=() if state[1] <= 700 else LONG) for state in states]
    return pytest.mark.parametrize(("name", "at"), marked)


at_states = at(STATES)

NOTHING_NEW = [
    ("OSLRAU", 0), ("OSLRAU of many fields", 600), ("mixtures of OSLRAU", 600),
]  # fmt: skip
"""States without an array that has numbers in none of those before them."""


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
    "removed": "first silence_times kinds_count kinds_mean kinds_sums kinds_squares",
    "of another type": "incident_means incident_seen",
    "in another dimension": "learner",
    "longer": "recent_marks drift_reference",
    "shorter along 0": "recent_marks drift_reference neighbours",
    "missing": "run_last pending_marks pending_measures pending_scores drift_reference "
    "incident_means",
    "infinite": "pending_marks pending_scores recent_scores recent_densities held_scores "
    "held_densities drift_reference history_spread incident_means incident_seen",
    "below zero": "run_last pending_marks pending_scores mass_location "
    "season_centre season_latest season_dates season_open season_last "
    "season_beside entity_levels habit_products habit_new_common watch_others "
    "history_last incident_means changes background rate_log_weight rate_nats",
}
"""What may be done to which arrays: they may have any length or any number, or may be left out."""


@functools.cache
def filled(name, at):
    """Return the names of the arrays of a state that have numbers in them."""
    return {array for array, content in unpacked(name, at)[1].items() if content.size}


@at([state for state in STATES if state not in NOTHING_NEW])
def test_an_array_that_cannot_be_is_refused(name, at):
    """Each array of a kind is tried in the first state that has numbers in it."""
    values, arrays = unpacked(name, at)
    earlier = [
        state
        for state in STATES[: STATES.index((name, at))]
        if SUBJECTS[state[0]].kind == SUBJECTS[name].kind
    ]
    accepted = []
    new = arrays.keys() - set().union(*(filled(*state) for state in earlier))
    assert any(arrays[array].size for array in new)
    for array in new:
        rest = {each: kept for each, kept in arrays.items() if each != array}
        some = {damage: {array: to} for damage, to in damages(arrays[array]).items()}
        for damage, damaged in ({"removed": {}} | some).items():
            if array in ACCEPTED.get(damage, "").split():
                continue
            if not is_refused(name, values, rest | damaged):
                accepted.append((array, damage))
    assert accepted == []


@pytest.mark.parametrize(("name", "at"), [("OSLRAU", 600), ("mixtures of OSLRAU", 256)])
def test_an_array_that_no_model_has_is_refused(name, at):
    values, arrays = unpacked(name, at)
    assert not is_refused(name, values, arrays)
    assert is_refused(name, values, arrays | {"other": np.zeros(3)})


WRONG = [-1, 2**70, float("nan"), "x", [None], [[0, 1]]]

ACCEPTED_VALUES = {
    "incidents removed", "seasons removed", "rates removed", "least = [[0, 1]]",
    "max_entities removed", "entity_events removed",
    *(f"{limit} = {2**70}" for limit in ("batch_size", "max_entities", "max_former_entities")),
}  # fmt: skip
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
    ("silences", 1000, {"clock": lambda a: a - 10**15}),
    ("silences", 1000, {"silence_times": lambda a: zero(a) - 1}),
    ("silences", 1000, {"silence_counts": zero}),
    ("all", 1460, {"silence_deadlines": lambda a: np.append(1e15, np.zeros(len(a) - 1))}),
    ("silences", 1000, {"silence_largest": lambda a: a[..., ::-1]}),
    ("silences", 1000, {"silence_pauses": lambda a: a[..., ::-1]}),
    ("seasons", 1960, {"season_usual": zero}),
    ("entities", 1460, {"level": lambda a: np.append(a, 1), "spread": lambda a: np.append(a, 1)}),
    ("entities", 1460, {"entity_ages": zero}),
    ("entities", 1460, {"entity_reference": zero}),
    ("entities", 1460, {"entity_population": zero}),
    ("entities", 1460, {"entity_population": lambda a: zero(a) + 1e-250}),
    ("entities", 1460, {"entity_key_lengths": lambda a: a + 100}),
    ("entities", 1460, {"former_key_lengths": lambda a: a + 100}),
    ("entities", 1460, {"watch_slots": lambda a: zero(a) + 999}),
    ("entities", 1460, {"watch_name_lengths": lambda a: zero(a) + 999}),
    ("entities", 1460, {"watch_others": zero}),
    ("OSLRAU", 600, {"weight": lambda a: zero(a) + 1e-310}),
    ("OSLRAU", 600, {"leaf_scope": lambda a: np.roll(a, 1)}),
    ("OSLRAU", 600, {"n_children": backwards}),
    ("OSLRAU", 600, {"kind": backwards}),
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
        *(("plain", 100, each) for each in (
            {"transforms": [[0, "exp"]]}, {"adapt_after": 0}, {"neighbours_taken": 1},
        )),
        *(("incidents", 1340, {"incidents": change}) for change in (
            {"slots": [1]}, {"slots": [0, 0]}, {"quiet": [-1]}, {"parameters": {"major": -1}},
        )),
        ("EntityDensity of few entities", 900, {"n_fields": 2}),
    ],
)  # fmt: skip
def test_values_that_do_not_fit_others_are_refused(name, at, changes):
    values, arrays = unpacked(name, at)
    for each, change in changes.items():
        values[each] = values[each] | change if each == "incidents" else change
    assert is_refused(name, values, arrays)


@pytest.mark.parametrize(
    ("kind", "member", "change", "expected"),
    [
        (LEAF, "scope", lambda scope: scope ^ 1, "disjoint scopes"),
        (PRODUCT, "n_scope", lambda n: n - 1, "equal scopes|disjoint scopes"),
        (PRODUCT, "n_children", lambda n: n - 1, "as many children"),
        (LEAF, "variance", lambda _: -1.0, "no negative variance"),
    ],
)
def test_a_damaged_network_is_not_valid(kind, member, change, expected):
    model = OSLRAU(min_count=8, max_leaf_vars=0)
    network = model.partial_fit(clusters(3, 600, 4), batch_size=64).network_
    network.check_validity()
    node = next(i for i in network.live if network.nodes[i]["kind"] == kind)
    network.nodes[member][node] = change(network.nodes[member][node])
    with pytest.raises(InvalidNetworkError, match=expected):
        network.check_validity()


def goes_on(name, at, values, arrays):
    """Say whether a state is refused, or goes on to finite numbers and to states that are read."""
    try:
        taught = read(name, values, arrays)
    except StateError:
        return True
    SUBJECTS[name].go_on(taught, slice(at, at + 128))
    return taught.to_bytes() != b""


def changed(draw, array):
    """Return an array of another content, type or length."""
    how = draw(st.sampled_from(["one", "one", "all", "type", "cut", "more", "order"]))
    if how == "type":
        with np.errstate(invalid="ignore", over="ignore"):
            return array.astype(draw(st.sampled_from(sorted(TYPES))))
    if how in ("cut", "more", "order"):
        cut = array[: draw(st.integers(0, 2))]
        return {"cut": cut, "more": np.concatenate([array, cut]), "order": array[::-1]}[how]
    if array.dtype.kind == "f":
        largest = min(float(np.finfo(array.dtype).max), 1e300)
        far = [largest, largest**0.55]  # whose square is too large, too
        special = st.sampled_from([0.0, 1.0, -1.0, np.nan, np.inf, -np.inf, *far])
        numbers = st.floats(-largest, largest, width=8 * array.dtype.itemsize) | special
    else:
        bounds = np.iinfo(array.dtype)
        numbers = st.integers(int(bounds.min), int(bounds.max)) | st.integers(0, 3)
    result = array.copy()
    at = draw(st.integers(0, array.size - 1)) if how == "one" and array.size else slice(None)
    result.reshape(-1)[at] = draw(numbers)
    return result


@at_states
@settings(max_examples=examples(20), deadline=None)
@given(data=st.data())
def test_a_damaged_state_is_refused_or_goes_on(name, at, data):
    values, arrays = unpacked(name, at)
    some = data.draw(st.sampled_from(sorted(arrays) or [None]))
    if some is not None:
        arrays[some] = changed(data.draw, arrays[some])
    assert goes_on(name, at, values, arrays)


@LONG
@pytest.mark.parametrize("name", ["all with mixtures", *MODELS])
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
    kinds = ["plain", "OSLRAU", "CategoricalDensity", "EntityDensity"]
    for name in kinds:
        for other in set(kinds) - {name}:
            with pytest.raises(StateError, match=f"expected the kind '{SUBJECTS[name].kind}', got"):
                SUBJECTS[name].read(SUBJECTS[other].new().to_bytes())
