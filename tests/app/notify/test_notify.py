"""`faust-oslrau notify` between a real Kafka and those who are told."""

import asyncio
import json
import shutil
import time
import urllib.request
from contextlib import contextmanager

import pytest
from command_line import run, start
from incident_events import incident_event
from post_server import PostServer
from server_process import server_process

from faust_oslrau.app.brokers.ports import free_ports
from faust_oslrau.app.notify import notifier
from faust_oslrau.app.notify.channels import Webhook
from faust_oslrau.app.notify.notifier import notify_all, told_before
from faust_oslrau.app.settings import NotifySettings, Settings

pytestmark = pytest.mark.real_kafka

PATIENCE_SECONDS = 240.0


def wait_for(look):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (found := look()):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return found


class Scene:
    """A topic of anomalies, and notifiers that read it."""

    def __init__(self, client, topic, folder):
        self.client, self.topic, self.file = client, topic, folder / "notify.log"
        self.file.touch()
        self.web = PostServer()
        client.create(topic, partitions=2)

    def send(self, name, state, *severity, fields=None, partition=0, **members):
        """Write the event of an incident, which blames the field of its name, or these."""
        more = {"start_timestamp": 1_790_000_000_000, **members}
        event = incident_event(
            name, state, *severity, fields=fields or [name], partition=partition, **more
        )
        self.client.send(self.topic, [(partition, event)])

    @contextmanager
    def notifier(self, channels=1, **variables):
        """Let a notifier read, and kill it; it tells the scene's web server unless told else."""
        variables = variables or {"OSLRAU_NOTIFY_WEBHOOK": self.web.address}
        before = self.log().count("reading")
        names = {"OSLRAU_APP_ID": self.topic, "OSLRAU_ANOMALIES_TOPIC": self.topic, **variables}
        with self.file.open("ab") as output:
            process = start("notify", stderr=output, OSLRAU_BROKER=self.client.servers, **names)
        try:
            wait_for(lambda: self.log().count("reading") >= before + channels)
            yield process
        finally:
            process.kill()
            process.wait()

    def told_up_to(self):
        """Return before which offset of each partition the server was told of all, as committed."""
        group = f"{self.topic}-notify-{Webhook(self.web.address, None, None).name}"
        return [commit.metadata for commit in self.client.committed(group).values()]

    def log(self):
        return self.file.read_text()


@pytest.fixture
def scene(client, topic_name, tmp_path):
    return Scene(client, topic_name, tmp_path)


def test_a_webhook_that_fails_and_hangs_is_told_of_each_incident_in_the_end(scene):
    scene.web = PostServer(500, None, 503, 200)
    with scene.notifier():
        scene.send("flow", "opened")
        scene.send("flow", "closed")
        wait_for(lambda: len(scene.web.bodies) == 2)
    assert [body["state"] for body in scene.web.bodies] == ["opened", "closed"]
    assert scene.web.bodies[0]["title"] == "pumps/0: flow is 1, expected 13.2 ± 0.28"
    assert "token-9f2" not in scene.log()  # the path may be a secret


def test_what_was_told_is_remembered_through_a_kill(scene):
    with scene.notifier():
        scene.send("flow", "opened")
        wait_for(lambda: "1" in scene.told_up_to())
    scene.send("heat", "opened", entity="p-7")
    scene.send("flow", "closed")
    with scene.notifier():
        wait_for(lambda: len(scene.web.bodies) == 3)
    told = [(body["fields"], body["state"]) for body in scene.web.bodies]
    assert told == [(["flow"], "opened"), (["heat"], "opened"), (["flow"], "closed")]


def test_an_incident_that_nothing_closed_ends_as_the_next_one_of_its_entity_opens(scene):
    with scene.notifier():
        for name, entity in (("flow", "p-7"), ("heat", "p-8"), ("leak", "p-7")):
            scene.send(name, "opened", entity=entity)
        wait_for(lambda: len(scene.web.bodies) == 4)
    told = [(body["incidents"], body["state"]) for body in scene.web.bodies]
    assert told == [
        (["pumps/0/flow"], "opened"), (["pumps/0/heat"], "opened"),
        (["pumps/0/flow"], "closed"), (["pumps/0/leak"], "opened"),
    ]  # fmt: skip


def test_what_comes_after_the_first_start_is_told_after_the_second(scene):
    scene.send("heat", "opened")
    with scene.notifier() as process:
        process.terminate()
        assert process.wait() == 0  # it stops when asked to
    scene.client.add_partitions(scene.topic, 3)
    for partition, name in ((0, "flow"), (2, "leak")):
        scene.send(name, "opened", partition=partition)
    with scene.notifier():
        wait_for(lambda: len(scene.web.bodies) == 2)
    assert sorted(body["fields"] for body in scene.web.bodies) == [["flow"], ["leak"]]


async def test_events_of_a_partition_that_is_added_are_told(scene, caplog, monkeypatch):
    monkeypatch.setattr(notifier, "_METADATA_MS", 200)
    caplog.set_level("INFO")
    settings = Settings(
        broker=scene.client.servers, app_id=scene.topic, anomalies_topic=scene.topic,
        notify=NotifySettings(webhook=(scene.web.address,)),
    )  # fmt: skip
    telling = asyncio.create_task(notify_all(settings))

    def grow():
        wait_for(lambda: "reading" in caplog.text)
        scene.send("flow", "opened")
        scene.client.add_partitions(scene.topic, 3)
        scene.send("heat", "opened", partition=2)
        wait_for(lambda: len(scene.web.bodies) == 2)
        for partition, name in ((0, "flow"), (2, "heat")):
            scene.send(name, "closed", partition=partition)
        wait_for(lambda: len(scene.web.bodies) == 4)

    try:
        await asyncio.to_thread(grow)
    finally:
        telling.cancel()
    told = sorted((body["fields"], body["state"]) for body in scene.web.bodies)
    assert told == [
        (["flow"], "closed"), (["flow"], "opened"), (["heat"], "closed"), (["heat"], "opened"),
    ]  # fmt: skip


def test_what_happened_at_once_in_two_partitions_is_one_notice_to_who_reads_it_later(scene):
    with scene.notifier():
        scene.send("heat", "opened", entity="p-7")
        wait_for(lambda: scene.web.bodies)
    for state in ("opened", "closed"):
        for partition in (0, 1):
            scene.send(f"leak-{partition}", state, fields=["flow"], partition=partition)
    with scene.notifier():
        wait_for(lambda: scene.web.bodies[-1]["state"] == "closed")
    told = [(body["state"], len(body["incidents"])) for body in scene.web.bodies[-2:]]
    assert told == [("opened", 1), ("closed", 2)]


def test_an_alertmanager_fires_and_resolves(scene, tmp_path):
    program = shutil.which("prometheus-alertmanager")
    if program is None:
        pytest.skip("no prometheus-alertmanager; Debian's package of that name brings it")
    (port,) = free_ports(1)
    address = f"http://127.0.0.1:{port}"
    (tmp_path / "alertmanager.yml").write_text("route: {receiver: no}\nreceivers: [{name: no}]\n")
    command = [
        program, f"--config.file={tmp_path / 'alertmanager.yml'}", "--cluster.listen-address=",
        f"--storage.path={tmp_path / 'data'}", f"--web.listen-address=127.0.0.1:{port}",
    ]  # fmt: skip

    def alerts():
        with urllib.request.urlopen(f"{address}/api/v2/alerts", timeout=5) as answer:
            return json.load(answer)

    with server_process(command, f"{address}/-/ready", PATIENCE_SECONDS):
        page = {"OSLRAU_PAGE_URL": "https://ops.example"}
        with scene.notifier(OSLRAU_NOTIFY_ALERTMANAGER=address, **page):
            scene.send("flow", "opened", fields=["flow", "heat"])
            (alert,) = wait_for(alerts)
            assert alert["labels"] == {
                "alertname": "OslrauNoticeIncident", "topic": "pumps", "severity": "minor",
                "field": "flow", "notice": "pumps/0/flow",
            }  # fmt: skip
            assert alert["annotations"]["summary"] == "pumps/0: flow is 1, expected 13.2 ± 0.28"
            assert alert["annotations"]["description"] == "In pumps, fields flow, heat."
            assert alert["startsAt"].startswith("2026-09-21T")
            assert alert["generatorURL"] == "https://ops.example/incidents/pumps/0/flow"
            scene.send("flow", "updated", "critical")
            wait_for(lambda: [a["labels"]["severity"] for a in alerts()] == ["critical"])
            scene.send("flow", "closed", "critical", fields=["heat", "flow"])
            wait_for(lambda: alerts() == [])  # an alert ends by the labels with which it began


def test_an_address_that_is_away_does_not_hold_up_another_one(scene):
    away, server = PostServer(503), PostServer(200)
    addresses = f"{away.address},{server.address}"
    with scene.notifier(
        3, OSLRAU_NOTIFY_ALERTMANAGER=away.address, OSLRAU_NOTIFY_WEBHOOK=addresses
    ):
        scene.send("flow", "opened")
        scene.send("flow", "closed")
        wait_for(lambda: len(server.bodies) == 2 and "told, closed" in scene.log())
    assert away.bodies == [] and scene.log().count("told, closed") == 1


@pytest.mark.parametrize(
    ("metadata", "offset"),
    [("", 7), ("7", 7), ("20", 20), ("6", 7), ("21", 7), ("9" * 4000, 7), ("-1", 7), ("told", 7)],
)
def test_a_commit_that_no_notify_wrote_hides_no_notice(metadata, offset):
    assert told_before(metadata, 7, 20) == offset


def test_somebody_must_be_told():
    done = run("notify")
    assert done.exit_code == 2
    told = "Error: setting notify: expected alertmanager or webhook, got neither"
    assert done.stderr.strip() == told
