"""Shows the progress of long work: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

# How often to print progress without a terminal.
_SECONDS_BETWEEN_LINES = 5.0

Report = Callable[[int, float], None]


@contextmanager
def progress(verb: str, things: str = "records") -> Iterator[Report]:
    """Yield a function that shows the number of things and the share of the work on stderr."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _lines(console, verb, things)
        return
    columns = (
        TextColumn(verb),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn(f"{{task.fields[done]:,}} {things}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(verb, total=1.0, done=0)
        yield lambda done, share: bar.update(task, completed=share, done=done)


def _lines(console: Console, verb: str, things: str) -> Report:
    last = monotonic()

    def report(done: int, share: float) -> None:
        nonlocal last
        if monotonic() - last >= _SECONDS_BETWEEN_LINES:
            last = monotonic()
            console.print(f"{verb} {done:,} {things}, {share:.0%}", highlight=False)

    return report
