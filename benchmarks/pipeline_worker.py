"""The worker with its stages on the CPU clock: ``python -m benchmarks.pipeline_worker``.

Its own clock counts waiting too, for the interpreter lock and for a busy machine, which would be
taken for work of the model.
"""

from __future__ import annotations

import time
from unittest.mock import patch

from faust_oslrau.app.cli import main
from faust_oslrau.app.pipeline import pipeline as partition
from faust_oslrau.learner.stream import scorer

if __name__ == "__main__":
    # `patch` refuses where a module has no such clock any more.
    with (
        patch.object(partition, "perf_counter", time.thread_time),
        patch.object(scorer, "perf_counter", time.thread_time),
    ):
        main(["worker"])
