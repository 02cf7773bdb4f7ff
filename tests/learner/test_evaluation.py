"""What was evaluated is not evaluated again for learning, and never makes a difference."""

from copy import deepcopy
from functools import partial

import numpy as np
import pytest
from streams import clusters
from subjects import WITH_MIXTURES

from faust_oslrau.learner import OSLRAU

ALL = clusters(5, 3000, 5)
ROWS, LATER = ALL[2000:2100], ALL[2100:2200]
# A structure that may grow may need more room first, and then evaluates again.
GROWN = partial(OSLRAU, max_leaf_vars=2, structure_until=2000)


@pytest.fixture(params=[GROWN, WITH_MIXTURES])
def kind(request):
    return request.param


def learned(kind, rows=ALL[:2000]):
    return kind().partial_fit(rows, batch_size=256)


def assert_makes_no_difference(model, evaluation, rows=ROWS, **parameters):
    plain = type(model).from_bytes(model.to_bytes()).partial_fit(rows, **parameters)
    model.partial_fit(rows, evaluation=evaluation, **parameters)
    assert model.to_bytes() == plain.to_bytes()


def test_an_evaluation_is_used():
    model = learned(GROWN)
    told, alone = deepcopy(model), deepcopy(model)
    evaluation = model.evaluate(ROWS)._replace(network=told.network_)
    wrong = evaluation._replace(values=np.roll(evaluation.values, 1, axis=1))
    assert told.partial_fit(ROWS, evaluation=wrong).to_bytes() != alone.partial_fit(ROWS).to_bytes()


@pytest.mark.parametrize("rows", [ALL[2001:2101], ALL[2000:2099]])
def test_an_evaluation_of_other_rows_is_not_used(kind, rows):
    model = learned(kind)
    assert_makes_no_difference(model, model.evaluate(rows))


def test_an_evaluation_by_another_model_is_not_used(kind):
    assert_makes_no_difference(learned(kind), learned(kind, -ALL[:2000]).evaluate(ROWS))


def test_an_evaluation_from_before_the_model_learned_more_is_not_used(kind):
    model = learned(kind)
    evaluation = model.evaluate(ROWS)
    assert_makes_no_difference(model.partial_fit(LATER), evaluation)


def test_an_evaluation_is_not_used_where_learning_begins_by_forgetting(kind):
    model = learned(kind).set_params(memory=100.0)
    assert_makes_no_difference(model, model.evaluate(ROWS))


def test_an_evaluation_of_many_mini_batches_is_not_used(kind):
    model, rows = learned(kind), ALL[2000:2200]
    assert_makes_no_difference(model, model.evaluate(rows), rows, batch_size=100)
