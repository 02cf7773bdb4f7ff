"""What was evaluated is not evaluated again for learning, and never makes a difference."""

from copy import deepcopy

import numpy as np
import pytest
from streams import clusters

from faust_oslrau.learner import OSLRAU

D = 5
ROWS = clusters(5, 3000, D)


def learned(rows=ROWS[:2000], **parameters):
    return OSLRAU(max_leaf_vars=2, **parameters).partial_fit(rows, batch_size=256)


def spoiled(evaluation):
    """As if each row were the one before it, so that it shows whether it was used."""
    return evaluation._replace(values=np.roll(evaluation.values, 1, axis=1))


def learn_both_ways(model, rows, evaluation):
    """Return the states of two copies, one of which is told the evaluation."""
    told, alone = deepcopy(model), deepcopy(model)
    evaluation = evaluation._replace(network=told.network_)  # of the copy as of the original
    told.partial_fit(rows, evaluation=evaluation)
    return told.to_bytes(), alone.partial_fit(rows).to_bytes()


def test_an_evaluation_is_used():
    # A structure that may grow may need more room first, and then evaluates again.
    model, rows = learned(structure_until=2000), ROWS[2000:2100]
    told, alone = learn_both_ways(model, rows, spoiled(model.evaluate(rows)))
    assert told != alone


@pytest.mark.parametrize("rows", [ROWS[2001:2101], ROWS[2000:2099]])
def test_an_evaluation_of_other_rows_is_not_used(rows):
    model = learned()
    told, alone = learn_both_ways(model, rows, spoiled(model.evaluate(ROWS[2000:2100])))
    assert told == alone


@pytest.mark.parametrize("change", ["a model that learned more", "another model", "a memory"])
def test_an_evaluation_by_a_model_as_it_no_longer_is_is_not_used(change):
    model, rows = learned(), ROWS[2000:2100]
    evaluation = spoiled(model.evaluate(rows))
    if change == "a model that learned more":
        model.partial_fit(ROWS[2100:2200])
    elif change == "a memory":  # learning begins by forgetting
        model.set_params(memory=1000.0)
    other = OSLRAU.from_bytes(model.to_bytes())
    plain = other.partial_fit(rows).to_bytes()
    taught = learned() if change == "another model" else model
    assert taught.partial_fit(rows, evaluation=evaluation).to_bytes() == plain


def test_an_evaluation_of_many_mini_batches_is_not_used():
    model, rows = learned(), ROWS[2000:2200]
    evaluation = spoiled(model.evaluate(rows))
    plain = deepcopy(model).partial_fit(rows, batch_size=100)
    model.partial_fit(rows, batch_size=100, evaluation=evaluation)
    assert model.to_bytes() == plain.to_bytes()


def test_rows_with_missing_values_or_too_many_for_a_block_are_evaluated_when_they_are_learned():
    model, rows = learned(), ROWS[2000:2100].copy()
    assert model.evaluate(ROWS[2000:2300]).values is None
    rows[50, 1] = np.nan
    assert model.evaluate(rows).values is None
    told, alone = learn_both_ways(model, rows, model.evaluate(rows))
    assert told == alone
