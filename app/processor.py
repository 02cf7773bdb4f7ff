"""Refuses a processor that lacks instructions for which the kernels are compiled.

The container image brings kernels that are compiled for all processors of a level. On an older one
the first of them would end the process without a word.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from .errors import OslrauError

_CPU_NAME = "NUMBA_CPU_NAME"
# What the level has beyond the one before, as the kernel of Linux calls it.
_INSTRUCTIONS = {
    "x86-64-v3": {"abm", "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe"},
}


def check_processor(environ: Mapping[str, str], cpuinfo: Path = Path("/proc/cpuinfo")) -> None:
    """Raise OslrauError if this processor lacks what `NUMBA_CPU_NAME` asks for."""
    name = environ.get(_CPU_NAME, "")
    needed = _INSTRUCTIONS.get(name, set())
    missing = needed - _known(cpuinfo) if needed else set()
    if missing:
        raise OslrauError(
            f"{_CPU_NAME}={name}: this processor has no {', '.join(sorted(missing))}; set "
            f"{_CPU_NAME}=generic, or build the image with --build-arg CPU=generic"
        )


def _known(cpuinfo: Path) -> set[str]:
    """Return what the first processor has; all that may be asked for where that is not told."""
    try:
        lines = cpuinfo.read_text().splitlines()
    except OSError:
        lines = []
    flags = next((line for line in lines if line.startswith("flags")), None)
    return set().union(*_INSTRUCTIONS.values()) if flags is None else set(flags.split())
