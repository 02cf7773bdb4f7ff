"""Where the worker's time goes, by a sampling profiler: ``python -m benchmarks.profile``."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import click

from faust_oslrau.app.brokers import KafkaBroker

from .pipeline import TOPIC, environment, watched
from .pipeline_process import WORKER
from .pipeline_topic import create_topics, fill
from .plan import RESULTS
from .report import markdown, write_page

_RATE = 250  # samples a second: more slow the worker down
_WARM_UP = 0.2

PARTS = {
    "decoding records": ("(topics/features.py",),
    "scoring: the network": ("NetworkDensity.evaluate (learner/queries/density.py",),
    "scoring: contributions of anomalies": ("blame (learner/scoring/blame.py",),
    "scoring: other measures, p-values": ("score (learner/stream/row_scores.py",),
    "learning: the network": ("Model.partial_fit (learner/model.py",),
    "learning: calibration, guard, drift": ("learn (learner/stream/learning.py",),
    "the scorer, the rest": ("(learner/stream/scorer.py",),
    "writing scores as JSON": ("Messages.scores (app/pipeline/messages.py",),
    "filling batches of messages": (
        "Connection.fill (app/kafka/connection.py",
        "BatchBuilder.append (aiokafka/producer/message_accumulator.py",
        "BatchBuilder._serialize (aiokafka/producer/message_accumulator.py",
    ),
    "making records of fetched bytes": (
        "PartitionRecords._unpack_records (aiokafka/consumer/fetcher.py",
        "PartitionRecords._consumer_record (aiokafka/consumer/fetcher.py",
    ),
    "sockets": ("(asyncio/selector_events.py", "(asyncio/streams.py"),
    "aiokafka, the rest": ("(aiokafka/",),
    "Faust": ("(faust/", "(mode/"),
    "this project's pipeline, the rest": ("(app/",),
}
"""Marks of frames, by part. A sample counts for the part of its innermost marked frame."""

WAITING = ("EpollSelector.select (", "_worker (concurrent/futures/thread.py")
"""Innermost frames of an idle thread."""

TEXT = f"""\
The worker of the pipeline benchmark at full load, after the first fifth of the records: samples of
its busy threads, {_RATE} times a second, by what the innermost frame that can be told is for. A
thread that waits for the interpreter's lock counts as busy. The profiler (py-spy) stops the worker
for each sample and makes it a little slower."""


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--records", default=1_000_000, show_default=True, help="Rows in the topic.")
@click.option("--seconds", default=6, show_default=True, help="How long the worker is watched.")
@click.option(
    "--out", default=RESULTS, help="Folder of the result.", type=click.Path(path_type=Path)
)
def main(records: int, seconds: int, out: Path) -> None:
    """Watch a worker at full load. Needs Java 17 and Maven, and the right to trace processes."""
    with KafkaBroker() as broker, tempfile.TemporaryDirectory() as folder:
        stacks = asyncio.run(profile(broker.bootstrap_servers, records, seconds, Path(folder)))
    shares = shares_of(stacks)
    table = [{"part": part, "share": f"{share:.0%}"} for part, share in shares.items()]
    blocks = ["Where a record's time goes", TEXT, markdown(table)]
    figures = {part: round(share, 3) for part, share in shares.items()}
    write_page(out, "profile", blocks, {"shares": figures}, "benchmarks.profile", environment())


async def profile(servers: str, records: int, seconds: int, folder: Path) -> Counter[str]:
    """Return how often the worker was seen with each stack, outermost frame first."""
    await create_topics(servers, TOPIC)
    await fill(servers, TOPIC, records)
    async with watched(servers, WORKER, folder) as watch:
        await watch.warm_up(_WARM_UP * records)
        return sampled(watch.reader.pid, seconds, folder / "stacks")


def sampled(pid: int, seconds: int, path: Path) -> Counter[str]:
    """Sample a process; raises RuntimeError if that is not allowed."""
    options = {"pid": pid, "duration": seconds, "rate": _RATE, "format": "raw", "output": path}
    command = [Path(sys.executable).with_name("py-spy"), "record"]
    command += [f"--{name}={value}" for name, value in options.items()]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"py-spy could not watch the worker: {done.stderr.strip()}")
    stacks = Counter[str]()
    for line in path.read_text().splitlines():
        stack, count = line.rsplit(" ", 1)
        stacks[stack] += int(count)
    return stacks


def shares_of(stacks: Counter[str]) -> dict[str, float]:
    """Return the share of each part, the largest first, and of the rest, of threads at work."""
    counts = Counter[str]()
    for stack, count in stacks.items():
        frames = stack.split(";")
        if not frames[-1].startswith(WAITING):
            counts[part_of(frames)] += count
    total, rest = counts.total(), counts.pop("the rest", 0)
    return {part: n / total for part, n in [*counts.most_common(), ("the rest", rest)]}


def part_of(frames: Sequence[str]) -> str:
    """Return the part to which a stack (outermost frame first) belongs."""
    return next(filter(None, map(_part_of_frame, reversed(frames))), "the rest")


def _part_of_frame(frame: str) -> str | None:
    return next((p for p, marks in PARTS.items() if any(mark in frame for mark in marks)), None)


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.profile")
