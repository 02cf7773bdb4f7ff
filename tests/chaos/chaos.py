"""Random faults on workers and brokers of a real Kafka, and what became of the records.

`python tests/chaos/chaos.py --records 500000 --faults 30` prints its seed first and a line of JSON
last; its exit code is 1 where a record was lost or learned twice, or a score or model differs.
"""

import argparse
import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import orjson
from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from verdict import Outcome, verify_partition

from faust_oslrau.app.brokers import KafkaBroker
from faust_oslrau.app.brokers.ports import free_ports
from faust_oslrau.app.settings import Settings

NODES = 3
WORKERS = 2
_SESSION_SECONDS = 3.0
# Small batches keep the workers busy for longer: faults are to hit them in the middle.
_BATCH_RECORDS = 128
# Longer than a session lasts, after which the group takes partitions away.
_SETTLED_SECONDS = 8.0
_PATIENCE_SECONDS = 300.0
_POLL_SECONDS = 0.05
# A node that comes back is in service again at once.
_BROKER = {"broker.session.timeout.ms": "3000", "broker.heartbeat.interval.ms": "500"}

# A worker that restores the state but reads from the committed offset: the run must notice.
# Commits, snapshots and batches come often, so that faults hit them.
_PACED = f"""
from faust_oslrau.app import pace
from faust_oslrau.app.cli import main

pace.COMMIT_SECONDS, pace.SNAPSHOT_RECORDS, pace.BATCH_RECORDS = 0.5, 3000, {_BATCH_RECORDS}
"""
_MAIN = 'main(["worker"], prog_name="faust-oslrau")\n'
_WITHOUT_SEEK = """
from faust_oslrau.app.partitions.opening import Opener, PartitionState

find_with_seek = Opener.find

async def find_without_seek(self, log, parked):
    found = await find_with_seek(self, log, parked)
    if isinstance(found, PartitionState):
        found.pipeline.next_offset = found.resume.emit_from
    return found

Opener.find = find_without_seek
"""


@dataclass(frozen=True, slots=True)
class Plan:
    records: int
    faults: int
    seed: int
    delivery: str = "at_least_once"
    partitions: int = 4
    seek: bool = True


class Worker:
    """A worker process."""

    def __init__(self, settings: Settings, log: Path, command: list[str]) -> None:
        self._port = free_ports(1)[0]
        names = ("broker", "app_id", "delivery", "session_timeout", "snapshot_interval")
        environment = {f"OSLRAU_{name.upper()}": str(getattr(settings, name)) for name in names}
        environment["OSLRAU_WEB_PORT"] = str(self._port)
        self.log = log
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                command, env=os.environ | environment, stdout=output, stderr=output
            )

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def offsets(self) -> dict[int, int]:
        """Return the next offset of each partition, nothing where it does not answer."""
        try:
            page = f"http://127.0.0.1:{self._port}/model"
            with urllib.request.urlopen(page, timeout=0.5) as answer:
                found = json.load(answer)["partitions"]
        except OSError:
            return {}
        return {each["partition"]: each["next_offset"] for each in found}

    def last_words(self) -> str:
        """Return the end of the log, without the frames of tracebacks."""
        lines = [line for line in self.log.read_text().splitlines() if not line.startswith("  ")]
        return "\n".join([*lines[-60:], f"exit code {self._process.returncode}"])

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def end(self, number: signal.Signals) -> None:
        self.send(number)
        self._process.wait(60)


class Chaos:
    """One run: a cluster, workers, faults, verification."""

    def __init__(self, plan: Plan, folder: Path) -> None:
        self._plan = plan
        self._folder = folder
        self._random = random.Random(plan.seed)
        fault = "" if plan.seek else _WITHOUT_SEEK
        self._command = [sys.executable, "-c", _PACED + fault + _MAIN]
        self._workers: list[Worker] = []
        self._sent: Counter[int] = Counter()
        self._kinds: Counter[str] = Counter()
        self._started = 0

    def run(self) -> Outcome:
        began = time.monotonic()
        with ExitStack() as stack:
            self._broker = stack.enter_context(
                KafkaBroker(self._folder / "kafka", nodes=NODES, properties=_BROKER)
            )
            self._settings = Settings(
                broker=self._broker.bootstrap_servers,
                app_id="chaos",
                delivery=self._plan.delivery,
                session_timeout=_SESSION_SECONDS,
                snapshot_interval=1.0,
            )
            stack.callback(self._kill_all)
            asyncio.run(self._create())
            for _ in range(WORKERS):
                self._start()
            self._wait("the workers are ready", lambda: len(self._held()) == self._plan.partitions)
            self._do_faults()
            self._finish()
            outcome = asyncio.run(self._verify())
        outcome.seconds = round(time.monotonic() - began, 1)
        return outcome

    def _start(self) -> None:
        log = self._folder / f"worker-{self._started}.log"
        self._workers.append(Worker(self._settings, log, self._command))
        self._started += 1

    def _kill_all(self) -> None:
        for worker in self._workers:
            worker.end(signal.SIGKILL)

    def _do_faults(self) -> None:
        portion = -(-self._plan.records // self._plan.faults)
        while sum(self._kinds.values()) < self._plan.faults:
            before = sum(self._sent.values())
            asyncio.run(self._feed(portion))
            place = before + self._random.uniform(0.1, 0.7) * portion
            self._wait("work goes on", lambda place=place: self._done() > place)
            busy = self._busy()
            if not busy:
                print("the portion was done too soon, no fault", flush=True)
                continue
            kind = self._random.choice(
                [self._kill, self._terminate, self._pause, self._break_broker, self._join_or_leave]
            )
            done = self._done()
            name = kind(self._random.choice(busy))
            self._kinds[name] += 1
            print(f"{sum(self._kinds.values())}: {name} after {done} records", flush=True)

    def _busy(self) -> list[Worker]:
        """Return the workers in the middle of their work."""
        return [
            worker
            for worker in self._workers
            if any(done < self._sent[p] for p, done in worker.offsets().items())
        ]

    def _replace(self, worker: Worker) -> None:
        self._workers.remove(worker)
        self._start()

    def _kill(self, worker: Worker) -> str:
        worker.end(signal.SIGKILL)
        self._replace(worker)
        return "kill"

    def _terminate(self, worker: Worker) -> str:
        worker.end(signal.SIGTERM)
        self._replace(worker)
        return "terminate"

    def _pause(self, worker: Worker) -> str:
        worker.send(signal.SIGSTOP)
        time.sleep(self._random.uniform(0.5, 2.5) * _SESSION_SECONDS)
        worker.send(signal.SIGCONT)
        return "pause"

    def _break_broker(self, _: Worker) -> str:
        node = self._random.randint(1, NODES)
        self._broker.kill(node)
        time.sleep(self._random.uniform(0, 5))
        self._broker.start_node(node)
        return "broker"

    def _join_or_leave(self, worker: Worker) -> str:
        if len(self._workers) <= WORKERS:
            self._start()
            return "join"
        worker.end(signal.SIGTERM)
        self._workers.remove(worker)
        return "leave"

    def _finish(self) -> None:
        """End when all is done and stays so.

        A worker that was paused shows its partitions for a while after they went to another one,
        who may be far from done.
        """
        ends, since = sorted(self._sent.items()), time.monotonic()

        def is_settled() -> bool:
            nonlocal since
            if sorted(self._shown()) != ends:
                since = time.monotonic()
            return time.monotonic() - since > _SETTLED_SECONDS

        self._wait("all is done", is_settled)
        for worker in self._workers:
            worker.end(signal.SIGTERM)

    def _shown(self) -> list[tuple[int, int]]:
        """Return the partitions with their next offsets, as often as workers show them."""
        return [place for worker in self._workers for place in worker.offsets().items()]

    def _held(self) -> dict[int, int]:
        return dict(sorted(self._shown()))  # of two workers the one that is further on

    def _done(self) -> int:
        return sum(self._held().values())

    def _wait(self, what: str, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while not condition():
            for worker in self._workers:
                if not worker.is_running:
                    raise RuntimeError(f"{what}: a worker ended\n{worker.last_words()}")
            if time.monotonic() > deadline:
                raise RuntimeError(f"not in time: {what}, {self._held()} of {dict(self._sent)}")
            time.sleep(_POLL_SECONDS)

    async def _create(self) -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=self._settings.broker)
        await admin.start()
        try:
            await admin.create_topics([NewTopic("features", self._plan.partitions, NODES)])
        finally:
            await admin.close()

    async def _feed(self, number: int) -> None:
        """Send a portion; a broker may be away, but no record may come twice."""
        async with AIOKafkaProducer(
            bootstrap_servers=self._settings.broker, enable_idempotence=True, linger_ms=5
        ) as producer:
            sent = [await self._send(producer) for _ in range(number)]
            await asyncio.gather(*sent)

    async def _send(self, producer: AIOKafkaProducer) -> Any:
        partition = self._random.randrange(self._plan.partitions)
        a = self._random.gauss(0, 1)
        row = {"a": a, "b": a + self._random.gauss(0, 0.1)}
        row |= {f"c{i}": self._random.gauss(5, 2) for i in range(6)}
        # Some are no records, and some are far away.
        value = b"broken" if self._random.random() < 0.001 else orjson.dumps(row)
        self._sent[partition] += 1
        return await producer.send("features", value, partition=partition)

    async def _verify(self) -> Outcome:
        outcome = Outcome(
            self._plan.seed,
            self._plan.delivery,
            sum(self._sent.values()),
            sum(self._kinds.values()),
            dict(self._kinds),
        )
        for partition in range(self._plan.partitions):
            await verify_partition(self._settings, partition, outcome)
        return outcome


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, default=500_000)
    parser.add_argument("--faults", type=int, default=30)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--delivery", default="at_least_once")
    parser.add_argument("--without-seek", action="store_true", help="Break it, to see it fail.")
    parser.add_argument("--out", type=Path, help="Folder for the report.")
    arguments = parser.parse_args()
    plan = Plan(
        arguments.records,
        arguments.faults,
        arguments.seed,
        arguments.delivery,
        seek=not arguments.without_seek,
    )
    print(f"seed {plan.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="oslrau-chaos-") as folder:
        outcome = Chaos(plan, Path(folder)).run()
    report = json.dumps(asdict(outcome))
    if arguments.out:
        arguments.out.mkdir(parents=True, exist_ok=True)
        name = plan.delivery if plan.seek else "without_seek"
        (arguments.out / f"chaos_{name}.json").write_text(report + "\n")
    print(report)
    return 0 if outcome.is_clean else 1


if __name__ == "__main__":
    sys.exit(main())
