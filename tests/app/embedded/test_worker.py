"""Workers on the embedded broker, which creates no topics."""

from pathlib import Path

import orjson
import pytest
from command_line import SCRIPT


def test_a_topic_that_the_broker_does_not_create_is_named(broker, settings, start_worker):
    broker.create_topic(settings.source_topics[0], 2)
    worker = start_worker(log_level="ERROR")
    assert worker.wait() == 4
    assert worker.log() == (
        f"Error: topic {settings.scores_topic} with 2 partitions is missing, "
        "and this broker creates no topics\n"
    )


def test_a_taken_web_port_is_named_in_one_line(topics, start_worker):
    first = start_worker()
    first.wait_until(lambda: first.get("/healthz")[0] == 200, "alive")
    second = start_worker(log_level="ERROR")
    assert second.wait() == 2
    (line,) = second.log().splitlines()
    assert f"expected a free port, 127.0.0.1:{first.port} is taken" in line


@pytest.mark.parametrize("library", ["numpy", "llvmlite"])
def test_a_worker_that_still_imports_its_libraries_can_be_stopped(library, topics, start_worker):
    worker = start_worker(command=[SCRIPT, "worker"])
    mapped = Path(f"/proc/{worker.pid}/maps")
    worker.wait_until(lambda: library in mapped.read_text(), f"importing {library}")
    assert worker.terminate() == 0, worker.log()
    assert worker.log() == ""


def test_a_worker_that_compiles_kernels_can_be_stopped(topics, start_worker, monkeypatch, tmp_path):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))  # there are none
    worker = start_worker(command=[SCRIPT, "worker"])
    worker.wait_until(lambda: "compiling the kernels" in worker.get("/readyz")[1], "compiling")
    assert worker.terminate() == 0, worker.log()
    assert "no broker answers" not in worker.log()


def test_records_are_scored_and_the_pages_tell(topics, client, settings, start_worker, topic_name):
    client.send(topic_name, [(0, b'{"a": %d, "b": 1}' % i) for i in range(100)])
    worker = start_worker(features="a,b").wait_ready().wait_records(100)
    worker.wait_until(lambda: worker.model()[0]["lag"] == 0, "aware that nothing waits")
    worker.wait_until(lambda: worker.model()[0]["nodes"] != {}, "aware of the network")
    assert worker.get("/healthz") == (200, '{"status":"ok"}')
    first, second = worker.model()
    assert (first["fields"], first["records"], first["next_offset"]) == (["a", "b"], 100, 100)
    assert (second["fields"], second["records"], second["next_offset"]) == (["a", "b"], 0, 0)
    assert first["nodes"]["leaf"] >= 2
    nodes = first["nodes"]["leaf"]
    worker.wait_metric(nodes, "oslrau_network_nodes", kind="leaf")
    assert worker.metric("oslrau_learned_records_total") == 48
    assert worker.metric("oslrau_end_to_end_seconds_count") == 100
    for stage in ("decode", "score", "learn", "emit"):
        counted = lambda s=stage: worker.metric("oslrau_stage_seconds_count", stage=s)  # noqa: E731
        worker.wait_until(counted, f"timing the stage {stage}")
    client.send(topic_name, [(1, b'{"a": 1, "b": 2}'), (1, b"broken")])
    assert worker.wait_records(102).terminate() == 0
    scores = [orjson.loads(score.value) for score in client.read(settings.scores_topic)]
    places = [(score["partition"], score["offset"]) for score in scores]
    assert places == [*((0, offset) for offset in range(100)), (1, 0)]
    assert [letter.value for letter in client.read(settings.dead_letter_topic)] == [b"broken"]


def test_fausts_own_command_line_starts_a_worker(topics, client, settings, start_worker):
    client.send(settings.source_topics[0], [(0, b'{"a": 1}')])
    faust = ["-A", "faust_oslrau.app", "worker", "-l", "warn"]
    worker = start_worker(command=["-m", "faust", *faust]).wait_ready().wait_records(1)
    assert worker.terminate() == 0
    assert len(client.read(settings.scores_topic)) == 1


_OWN_APP = """
import os
import faust
from faust_oslrau.app import attach
from faust_oslrau.app.settings import load_settings

settings = load_settings(None, os.environ)
app = faust.App(
    settings.app_id,
    broker=f"kafka://{settings.broker}",
    web_bind="127.0.0.1",
    web_port=settings.web_port,
    datadir=os.environ["OWN_DATA"],
    topic_allow_declare=False,
    topic_disable_leader=True,
)

@app.page("/")
async def home(view, request):
    return view.web.text("own page")

attach(app, settings)
own = app.topic(os.environ["OWN_TOPIC"], value_type=bytes, value_serializer="raw")

@app.agent(own)
async def shout(values):
    async for value in values:
        print(f"own agent: {value.decode()}", flush=True)

app.main()
"""


def test_scoring_attaches_to_an_app_with_agents_and_a_page_of_its_own(
    topics, broker, client, settings, start_worker, tmp_path, monkeypatch
):
    own = f"{settings.app_id}.own"
    broker.create_topic(own, 1)
    (tmp_path / "own_app.py").write_text(_OWN_APP)
    monkeypatch.setenv("OWN_TOPIC", own)
    monkeypatch.setenv("OWN_DATA", str(tmp_path / "data"))
    client.send(settings.source_topics[0], [(0, b'{"a": 1}'), (1, b'{"a": 2}')])
    client.send(own, [(0, b"one"), (0, b"two")])
    script = [str(tmp_path / "own_app.py"), "worker", "-l", "warn"]
    worker = start_worker(command=script).wait_ready().wait_records(2)
    worker.wait_until(lambda: "own agent: two" in worker.log(), "done with its own topic")
    assert worker.get("/") == (200, "own page")
    assert "waiting_for" in worker.get("/live")[1]
    assert worker.terminate() == 0
    assert len(client.read(settings.scores_topic)) == 2
