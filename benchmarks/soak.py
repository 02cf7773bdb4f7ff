"""One worker, tens of millions of records: memory, file handles, threads and tasks stay flat.

`python -m benchmarks.soak --records 30000000` prints a line a minute and a line of JSON last; its
exit code is 1 where a record was lost, or something grew.
"""

import argparse
import json
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from dataclasses import asdict, dataclass
from pathlib import Path

import orjson
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from faust_oslrau.app.brokers import KafkaBroker
from faust_oslrau.app.brokers.ports import free_ports

PARTITIONS = 4
_ROWS = 100_000
# So much waits for the worker: it is never idle, and retention never overtakes it.
_AHEAD = 300_000
_SAMPLE_SECONDS = 5.0
# While models grow to their node budget memory does too: what comes before this share is left out.
_WARM_UP = 0.3
_END = 0.15
_ROOM = {"rss_mb": 1.05, "files": 1.0, "threads": 1.0, "tasks": 1.0}
_SLACK = {"rss_mb": 10.0, "files": 3.0, "threads": 1.0, "tasks": 5.0}
_RETENTION = {"retention.bytes": str(256 * 2**20), "segment.bytes": str(64 * 2**20)}

# A worker that tells how many tasks it has.
_WORKER = """
import asyncio, os
from faust_oslrau.app.cli import main
from faust_oslrau.app.partitions.runtime import Runtime

start = Runtime.start

async def count():
    while True:
        with open(os.environ["SOAK_TASKS"], "w") as file:
            file.write(str(len(asyncio.all_tasks())))
        await asyncio.sleep(1)

async def start_and_count(self, consumer):
    await start(self, consumer)
    self.counting = asyncio.create_task(count())

Runtime.start = start_and_count
main(["worker"], prog_name="faust-oslrau")
"""


@dataclass(frozen=True, slots=True)
class Sample:
    seconds: float
    records: float
    rss_mb: float
    files: int
    threads: int
    tasks: int


class Worker:
    """The worker's process, and what can be seen of it."""

    def __init__(self, servers: str, folder: Path, delivery: str) -> None:
        self._port = free_ports(1)[0]
        self._tasks = folder / "tasks"
        self.log = folder / "worker.log"
        own = {"BROKER": servers, "DELIVERY": delivery, "WEB_PORT": self._port}
        environment = {f"OSLRAU_{name}": str(value) for name, value in own.items()}
        environment["SOAK_TASKS"] = str(self._tasks)
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-c", _WORKER],
                env=os.environ | environment, stdout=output, stderr=output,
            )  # fmt: skip

    def metric(self, name: str) -> float:
        """Return the sum of a metric's series; 0 where the worker does not answer."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/metrics") as answer:
                text = answer.read().decode()
        except OSError:
            return 0.0
        return sum(float(value) for value in re.findall(rf"^{name}{{.*}} (.*)$", text, re.M))

    def sample(self, seconds: float, records: float) -> Sample:
        process = Path(f"/proc/{self.process.pid}")
        status = (process / "status").read_text()
        known = dict(re.findall(r"^(VmRSS|Threads):\s+(\d+)", status, re.M))
        files = len(os.listdir(process / "fd"))
        tasks = int(self._tasks.read_text() or 0) if self._tasks.exists() else 0
        rss = round(int(known["VmRSS"]) / 1024, 1)
        return Sample(round(seconds, 1), records, rss, files, int(known["Threads"]), tasks)


def feed(producer: Producer, rows: list[bytes], first: int, number: int) -> None:
    """Send so many of the rows, again and again from the first."""
    for i in range(first, first + number):
        while True:
            try:
                producer.produce("features", rows[i % _ROWS], partition=i % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.1)
    if producer.flush(120):
        raise RuntimeError("the broker takes no records")


def made_up_rows() -> list[bytes]:
    rng, rows = random.Random(0), []
    for _ in range(_ROWS):
        a = rng.gauss(0, 1) + 1000 * (rng.random() < 0.0005)
        row = {"a": a, "b": a + rng.gauss(0, 0.1), "c": rng.gauss(5, 2), "d": rng.random()}
        rows.append(b"broken" if rng.random() < 0.0005 else orjson.dumps(row))
    return rows


def create_topics(servers: str) -> None:
    names = ("features", "scores", "anomalies", "features-dead-letters")
    new = [NewTopic(name, PARTITIONS, 1, config=_RETENTION) for name in names]
    admin = AdminClient({"bootstrap.servers": servers})
    for done in admin.create_topics(new).values():
        done.result(60)


def run(
    records: int, minutes: float, delivery: str, folder: Path
) -> tuple[int, list[Sample], Worker]:
    """Feed a worker, and return how many records it got and what was seen of it."""
    retention = {"log.retention.check.interval.ms": "10000"}
    with KafkaBroker(folder / "kafka", properties=retention) as broker:
        servers = broker.bootstrap_servers
        create_topics(servers)
        worker = Worker(servers, folder, delivery)
        try:
            producer = Producer({"bootstrap.servers": servers})
            return *_watch(worker, producer, records, 60 * minutes), worker
        finally:
            worker.process.send_signal(signal.SIGTERM)
            worker.process.wait(60)


def _watch(
    worker: Worker, producer: Producer, records: int, seconds: float
) -> tuple[int, list[Sample]]:
    rows, samples, sent, done = made_up_rows(), list[Sample](), 0, 0.0
    began = last = time.monotonic()
    while done < records:
        if worker.process.poll() is not None:
            raise RuntimeError(f"the worker ended:\n{worker.log.read_text()[-4000:]}")
        if time.monotonic() - began > seconds:
            records = sent
        portion = int(min(records - sent, max(0, done + _AHEAD - sent), _AHEAD // 4))
        feed(producer, rows, sent, portion)
        sent += portion
        time.sleep(0.0 if portion else 0.2)
        done = worker.metric("oslrau_records_total")
        if time.monotonic() - last >= _SAMPLE_SECONDS:
            last = time.monotonic()
            samples.append(worker.sample(last - began, done))
            if len(samples) % 12 == 0:
                print(json.dumps(asdict(samples[-1])), flush=True)
    return records, [*samples, worker.sample(time.monotonic() - began, done)]


def verdict(samples: list[Sample], records: int, delivery: str) -> dict[str, object]:
    """Compare the run after the warm-up with its end, by medians."""
    last = samples[-1]
    begun = [s for s in samples if _WARM_UP <= s.records / records < _WARM_UP + _END]
    ended = [s for s in samples if s.records / records >= 1 - _END]
    found: dict[str, object] = {"soak": "worker", "delivery": delivery, "records": records}
    found |= {"seconds": last.seconds, "records_per_second": round(records / last.seconds)}
    found["lost"] = records - int(last.records)
    grown = []
    for name, room in _ROOM.items():
        early, late = (statistics.median(getattr(s, name) for s in part) for part in (begun, ended))
        found[name] = [early, late, max(getattr(s, name) for s in samples)]
        if late > max(early * room, early + _SLACK[name]):
            grown.append(name)
    return found | {"grown": grown}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, default=30_000_000)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="Feed no longer.")
    parser.add_argument("--delivery", default="at_least_once")
    parser.add_argument("--out", type=Path, help="Folder for the report.")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="oslrau-soak-") as folder:
        records, samples, worker = run(
            arguments.records, arguments.minutes, arguments.delivery, Path(folder)
        )
        found = verdict(samples, records, arguments.delivery)
        found["exit_code"] = worker.process.returncode
    if arguments.out:
        arguments.out.mkdir(parents=True, exist_ok=True)
        report = found | {"samples": [asdict(s) for s in samples[:: max(1, len(samples) // 60)]]}
        path = arguments.out / f"soak_{arguments.delivery}.json"
        path.write_text(json.dumps(report) + "\n")
    print(json.dumps(found))
    return 0 if not (found["grown"] or found["lost"] or found["exit_code"]) else 1


if __name__ == "__main__":
    sys.exit(main())
