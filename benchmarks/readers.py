"""What readers of a worker's pages cost its scores: ``python -m benchmarks.readers``."""

from __future__ import annotations

import asyncio
import http.client
import multiprocessing
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Thread

import click

from faust_oslrau.app.brokers import KafkaBroker

from .latency import Load
from .pipeline import TOPIC, environment, reader_environment
from .pipeline_process import WORKER, ReaderProcess, cpu_seconds
from .pipeline_topic import create_topics, fill
from .plan import RESULTS
from .report import WAITING, markdown, thousands, write_page

_WARM_UP_SECONDS = 300.0
_DRAIN_SECONDS = 60.0
_HAMMERING, _NOT_READING = 8, 200
_PAGES = ("/live", "/live?since=1", "/model", "/model?partition=0", "/metrics", "/", "/healthz")
_REQUEST = b"GET /live HTTP/1.1\r\nHost: localhost\r\n\r\n"
_PIPELINED = 50

TEXT = f"""\
A worker scores {{rate}} records a second of 16 partitions from a real Kafka (same machine), in turn
without readers, with {_HAMMERING} clients that ask for pages again as soon as they have an answer,
and with {_NOT_READING} that send {_PIPELINED} requests for `/live` each and read nothing. The
clients are a process of their own on the same machine. *CPU* is the worker's, as a share of one
CPU. Latencies are those of scores, as in `python -m benchmarks.latency`; compare the rows of one
run."""


@dataclass(frozen=True)
class Round:
    """Latencies of scores in milliseconds, and the worker's share of a CPU, beside some readers."""

    readers: str
    records: int
    p50: float
    p99: float
    cpu: float


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--seconds", default=12.0, show_default=True, help="Seconds of each round.")
@click.option("--rate", default=5_000, show_default=True, help="Records per second.")
@click.option("--filled", default=200_000, show_default=True, help="Records before the rounds.")
@click.option("--rounds", default=2, show_default=True, help="Rounds of each kind, in turn.")
@click.option(
    "--out", default=RESULTS, help="Folder of the result.", type=click.Path(path_type=Path)
)
def main(seconds: float, rate: int, filled: int, rounds: int, out: Path) -> None:
    """Measure scores while clients ask for pages. Needs Java 17 and Maven."""
    with KafkaBroker() as broker, tempfile.TemporaryDirectory() as logs:
        log = Path(logs) / "worker.log"
        servers = broker.bootstrap_servers
        found = asyncio.run(measure(servers, seconds, rate, filled, rounds, log))
    table = [
        {
            "readers": each.readers,
            "records": thousands(each.records),
            "p50 ms": f"{each.p50:.0f}",
            "p99 ms": f"{each.p99:.0f}",
            "CPU": f"{each.cpu:.0%}",
        }
        for each in found
    ]
    blocks = ["Scores while pages are read", WAITING, TEXT.format(rate=thousands(rate))]
    figures = {"rounds": [vars(each) for each in found]}
    write_page(
        out, "readers", [*blocks, markdown(table)], figures, "benchmarks.readers", environment()
    )


async def measure(
    servers: str, seconds: float, rate: int, filled: int, rounds: int, log: Path
) -> list[Round]:
    """Measure latencies without readers and with each kind, in turn."""
    source = f"{TOPIC}.readers"
    settings = reader_environment(servers, "readers") | {"OSLRAU_SOURCE_TOPICS": source}
    scores = settings["OSLRAU_SCORES_TOPIC"]
    await create_topics(servers, source, settings["OSLRAU_ANOMALIES_TOPIC"])
    await create_topics(servers, scores, **{"message.timestamp.type": "LogAppendTime"})
    await fill(servers, source, filled)
    port, found = int(settings["OSLRAU_WEB_PORT"]), []
    kinds = {"none": None, f"{_HAMMERING} asking": hammer, f"{_NOT_READING} not reading": not_read}
    with ReaderProcess(WORKER, settings, log) as worker:
        async with Load(servers, source, scores, worker) as load:
            await load.drained(_WARM_UP_SECONDS)
            for name, readers in [*kinds.items()] * rounds:
                click.echo(f"running: {name}", err=True)
                with process(readers, port):
                    before, began = cpu_seconds(worker.pid), time.monotonic()
                    latency = await load.run(name, rate, seconds)
                    share = (cpu_seconds(worker.pid) - before) / (time.monotonic() - began)
                found.append(Round(name, latency.records, latency.p50, latency.p99, share))
                await load.drained(_DRAIN_SECONDS)
    return found


@contextmanager
def process(readers: Callable[[int], None] | None, port: int) -> Iterator[None]:
    """Run readers in a process of their own, none if there are none."""
    if readers is None:
        yield
        return
    running = multiprocessing.get_context("spawn").Process(
        target=readers, args=(port,), daemon=True
    )
    running.start()
    try:
        yield
    finally:
        running.terminate()
        running.join()


def hammer(port: int) -> None:
    """Ask for pages all the time with several clients, for ever."""

    def client(number: int) -> None:
        while True:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
            with suppress(OSError, http.client.HTTPException):
                while True:
                    connection.request("GET", _PAGES[number % len(_PAGES)])
                    connection.getresponse().read()

    threads = [Thread(target=client, args=(number,)) for number in range(_HAMMERING)]
    for thread in threads:
        thread.start()


def not_read(port: int) -> None:
    """Send requests on many connections and read nothing, for ever; open anew what is closed."""

    async def client() -> None:
        while True:
            with suppress(OSError):
                _, writer = await asyncio.open_connection("127.0.0.1", port, limit=1)
                while True:
                    writer.write(_REQUEST * _PIPELINED)
                    await writer.drain()
                    await asyncio.sleep(1)

    async def clients() -> None:
        await asyncio.gather(*[client() for _ in range(_NOT_READING)])

    asyncio.run(clients())


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.readers")
