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


UNUSED = {
    "of other rows": lambda model, _: (model, model.evaluate(ALL[2001:2101])),
    "of fewer rows": lambda model, _: (model, model.evaluate(ALL[2000:2099])),
    "by another model": lambda model, kind: (model, learned(kind, -ALL[:2000]).evaluate(ROWS)),
    "from before": lambda model, _: (model, (model.evaluate(ROWS), model.partial_fit(LATER))[0]),
    "forgetting first": lambda model, _: (model.set_params(memory=100.0), model.evaluate(ROWS)),
}


@pytest.mark.parametrize("case", UNUSED)
def test_an_evaluation_that_is_none_of_these_rows_by_the_model_as_it_is_is_not_used(kind, case):
    assert_makes_no_difference(*UNUSED[case](learned(kind), kind))


def test_an_evaluation_of_many_mini_batches_is_not_used(kind):
    model, rows = learned(kind), ALL[2000:2200]
    assert_makes_no_difference(model, model.evaluate(rows), rows, batch_size=100)
