"""Compiles all kernels, once before several processes need them at the same time.

`python tests/compile_kernels.py` shows a bar on a terminal, and lines elsewhere; nothing if there
is nothing to compile.
"""

from numba.core import event

from faust_oslrau.app.offline.progress import Report, progress
from faust_oslrau.learner import compile_kernels
from faust_oslrau.learner.vector.compiler import KERNELS, Kernel


class _Counter(event.Listener):
    """Reports how many kernels this process has compiled; a second one helps."""

    def __init__(self, report: Report) -> None:
        self._done, self._report = 0, report

    def on_start(self, _: event.Event) -> None:
        pass

    def on_end(self, done: event.Event) -> None:
        if isinstance(done.data["dispatcher"], Kernel):
            self._done += 1
            self._report(self._done, min(1.0, self._done / len(KERNELS)))


if __name__ == "__main__":
    with (
        progress("compiled", "kernels") as report,
        event.install_listener("numba:compile", _Counter(report)),
    ):
        compile_kernels()
