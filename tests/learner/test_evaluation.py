"""What was evaluated is not evaluated again for learning, and never makes a difference."""

from copy import deepcopy

import numpy as np
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


def test_an_evaluation_from_before_the_model_learned_more_is_not_used():
    model, rows = learned(), ROWS[2000:2100]
    evaluation = spoiled(model.evaluate(rows))
    model.partial_fit(ROWS[2100:2200])
    told, alone = learn_both_ways(model, rows, evaluation)
    assert told == alone


def test_an_evaluation_of_other_rows_is_not_used():
    model = learned()
    evaluation = spoiled(model.evaluate(ROWS[2000:2100]))
    for rows in (ROWS[2001:2101], ROWS[2000:2099]):
        told, alone = learn_both_ways(model, rows, evaluation)
        assert told == alone


def test_an_evaluation_by_another_model_is_not_used():
    rows = ROWS[2000:2100]
    models = [learned(), learned()]
    models[1].partial_fit(rows, evaluation=spoiled(models[0].evaluate(rows)))
    assert models[1].to_bytes() == models[0].partial_fit(rows).to_bytes()


def test_an_evaluation_is_not_used_where_learning_begins_by_forgetting():
    model, rows = learned(memory=1000.0), ROWS[2000:2100]
    told, alone = learn_both_ways(model, rows, spoiled(model.evaluate(rows)))
    assert told == alone


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
