"""What liveness and readiness say at each stage of a worker's life."""

import pytest
from memory_worker import FIRST, SECOND, until

from faust_oslrau.app.pages.health import liveness, models, readiness


def test_a_worker_that_starts_lives_and_says_what_it_waits_for(runtime):
    assert liveness(runtime) is None
    assert readiness(runtime, rebalancing=False) == "starting"
    runtime.preparing = "waiting for the broker and the topics"
    assert readiness(runtime, rebalancing=False) == "waiting for the broker and the topics"
    assert models(runtime) == {"partitions": []}


async def test_a_worker_is_ready_when_it_reads_its_partitions_and_not_before(joined, worker):
    assert readiness(joined, rebalancing=True) == "the group is rebalancing"
    assert readiness(joined, rebalancing=False) == "partitions are being opened"
    worker.broker.answering.clear()
    worker.assignment.assigned(frozenset({FIRST}))
    assert readiness(joined, rebalancing=False) == "partitions are being opened"
    worker.broker.answering.set()
    await until(lambda: worker.assignment.is_open)
    assert readiness(joined, rebalancing=False) is None
    await worker.assignment.revoked(60)
    assert readiness(joined, rebalancing=False) == "partitions are being opened"
    await worker.assign()
    assert readiness(joined, rebalancing=False) == "no partition is assigned"


async def test_a_worker_is_not_ready_while_the_broker_is_silent(clock, joined, worker):
    await worker.assign(FIRST)
    joined.contact.mark_answer()
    clock.now += worker.settings.session_timeout
    assert readiness(joined, rebalancing=False) is None
    clock.now += 1
    assert readiness(joined, rebalancing=True) == "the broker has not answered for 11 s"
    joined.contact.mark_answer()
    assert readiness(joined, rebalancing=False) is None


async def test_a_worker_counts_as_dead_when_records_wait_and_none_moves(clock, joined, worker):
    first, second = await worker.assign(FIRST, SECOND)
    await worker.read(FIRST, 100)
    first.set_lag(200)
    second.set_lag(100)
    clock.now += 119
    assert liveness(joined) is None
    clock.now += 2
    assert liveness(joined) == "300 records wait and none has moved for 121 s"
    await worker.read(FIRST)
    assert liveness(joined) is None


async def test_records_that_come_after_a_long_pause_have_time_to_move(clock, joined, worker):
    first, _ = await worker.assign(FIRST, SECOND)
    worker.assignment.set_lags({FIRST: 0, SECOND: 0})
    clock.now += 10_000
    worker.assignment.set_lags({FIRST: 0, SECOND: 0})
    clock.now += 100
    worker.assignment.set_lags({FIRST: 300, SECOND: 0})
    assert liveness(joined) is None
    clock.now += 21
    assert liveness(joined) == "300 records wait and none has moved for 121 s"
    await worker.assignment.revoked(60)
    (again, _) = await worker.assign(FIRST, SECOND)
    assert (again, again.lag, liveness(joined)) == (first, 300, None)


async def test_a_worker_that_has_nothing_to_do_lives(clock, joined, worker):
    first, _ = await worker.assign(FIRST, SECOND)  # no lag of the second is known
    first.set_lag(0)
    clock.now += 10_000
    assert liveness(joined) is None


async def test_models_are_summed_up_by_partition(joined, worker):
    first, _ = await worker.assign(SECOND, FIRST)
    first, second = worker.held[FIRST], worker.held[SECOND]
    worker.broker.logs[FIRST][50] = b"broken"
    await worker.read(FIRST)
    await first.measure_network()
    first.set_lag(7)
    await worker.assignment.commit([first])
    done, new = models(joined)["partitions"]
    assert (done["partition"], new["partition"]) == (0, 1)
    assert (done["fields"], new["fields"]) == (("a", "b"), ("a", "b"))
    assert (done["start"], done["next_offset"], done["committed_offset"]) == (0, 300, 300)
    assert (done["records"], done["lag"], done["missing_offsets"]) == (299, 7, 0)
    assert sum(done["nodes"].values()) == first.pipeline.learner.n_nodes_
    assert (done["edges"], done["depth"]) == (first.network.edges, first.network.depth)
    assert (new["records"], new["lag"], new["nodes"], new["depth"]) == (0, None, {}, 0)
    assert second.network is None


async def test_while_kernels_are_compiled_the_worker_says_how_far_it_is(runtime, monkeypatch):
    seen = []

    def compile_some(_, told):
        for done in (1, 3):
            told(done, 4)
            seen.append((readiness(runtime, rebalancing=False), runtime.compiled))
        raise InterruptedError

    monkeypatch.setattr("faust_oslrau.app.partitions.runtime.compile_pipeline", compile_some)
    with pytest.raises(InterruptedError):
        await runtime.start(None)
    reason = "compiling the kernels, once for this version: {} of some 4, about 0 s to go"
    assert seen == [(reason.format(1), 0.25), (reason.format(3), 0.75)]
