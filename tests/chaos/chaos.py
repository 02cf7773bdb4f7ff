"""Random faults on workers and brokers of a real Kafka, and what became of the records.

`make chaos ARGS="--records 500000 --faults 30"` prints its seed first and a line of JSON last; its
exit code is 1 where a record was lost or learned twice, or a score or model differs.
"""

import argparse
import asyncio
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import orjson
from aiokafka import AIOKafkaProducer
from kafka_client import KafkaClient
from verdict import Outcome, verify
from worker_process import WorkerProcess
from workers import Workers

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


class Chaos:
    """One run: a cluster, workers, faults, verification."""

    def __init__(self, plan: Plan, folder: Path) -> None:
        self._plan = plan
        self._folder = folder
        self._random = random.Random(plan.seed)
        fault = "" if plan.seek else _WITHOUT_SEEK
        self._command = ("-c", _PACED + fault + _MAIN)
        self._workers: list[WorkerProcess] = []
        self._sent: Counter[int] = Counter()
        self._kinds: Counter[str] = Counter()

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
            )
            self._started = Workers(self._settings, self._folder)
            stack.callback(self._started.kill)
            client = KafkaClient(self._settings.broker)
            client.create("features", self._plan.partitions, replicas=NODES)
            for _ in range(WORKERS):
                self._start()
            self._wait("the workers are ready", lambda: len(self._held()) == self._plan.partitions)
            self._do_faults()
            self._finish()
            outcome = self._verify()
        outcome.seconds = round(time.monotonic() - began, 1)
        return outcome

    def _start(self) -> None:
        own = {"web_port": free_ports(1)[0], "snapshot_interval": 1.0}
        self._workers.append(self._started.start(command=self._command, **own))

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

    def _busy(self) -> list[WorkerProcess]:
        """Return the workers in the middle of their work."""
        return [
            worker
            for worker in self._workers
            if any(done < self._sent[p] for p, done in worker.offsets().items())
        ]

    def _replace(self, worker: WorkerProcess) -> None:
        self._workers.remove(worker)
        self._start()

    def _kill(self, worker: WorkerProcess) -> str:
        worker.kill()
        self._replace(worker)
        return "kill"

    def _terminate(self, worker: WorkerProcess) -> str:
        worker.terminate()
        self._replace(worker)
        return "terminate"

    def _pause(self, worker: WorkerProcess) -> str:
        worker.pause()
        time.sleep(self._random.uniform(0.5, 2.5) * _SESSION_SECONDS)
        worker.go_on()
        return "pause"

    def _break_broker(self, _: WorkerProcess) -> str:
        node = self._random.randint(1, NODES)
        self._broker.kill(node)
        time.sleep(self._random.uniform(0, 5))
        self._broker.start_node(node)
        return "broker"

    def _join_or_leave(self, worker: WorkerProcess) -> str:
        if len(self._workers) <= WORKERS:
            self._start()
            return "join"
        worker.terminate()
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
            worker.terminate()

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

    def _verify(self) -> Outcome:
        outcome = Outcome(
            self._plan.seed, self._plan.delivery, sum(self._sent.values()),
            sum(self._kinds.values()), dict(self._kinds),
        )  # fmt: skip
        verify(self._settings, self._plan.partitions, outcome)
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
        arguments.records, arguments.faults, arguments.seed, arguments.delivery,
        seek=not arguments.without_seek,
    )  # fmt: skip
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
