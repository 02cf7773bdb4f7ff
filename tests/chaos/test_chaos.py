"""A short chaos run; `make chaos` does the long one."""

import pytest
from chaos import Chaos, Plan

pytestmark = pytest.mark.real_kafka


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "delivery", [pytest.param("at_least_once", marks=pytest.mark.slow), "exactly_once"]
)
def test_nothing_is_lost_or_learned_twice_in_random_faults(delivery, kafka_installed, tmp_path):
    plan = Plan(records=30_000, faults=3, seed=4, delivery=delivery)
    outcome = Chaos(plan, tmp_path).run()
    assert outcome.is_clean, outcome
    assert outcome.faults == 3
