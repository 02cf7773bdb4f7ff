"""The processors for which kernels are compiled.

The container image and some wheels bring kernels that are compiled for all processors of a level.
On an older one the first of them would end the process without a word.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from importlib.util import find_spec
from pathlib import Path

from .errors import OslrauError

_CPU_NAME, _CPU_FEATURES = "NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES"
CPUINFO = Path("/proc/cpuinfo")
# What the level has beyond the one before, as the kernel of Linux calls it.
_INSTRUCTIONS = {
    "x86-64-v3": {"abm", "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe"},
}


def choose_level(
    environ: MutableMapping[str, str], learner: Path | None = None, cpuinfo: Path = CPUINFO
) -> None:
    """Ask for kernels that the package brings, if this processor has their level.

    To be called before numba is imported, which reads the variables then. What a user has asked
    for stays.
    """
    if _CPU_NAME in environ or _CPU_FEATURES in environ:
        return
    known = _instructions(cpuinfo) or set()
    for name, needed in _INSTRUCTIONS.items():
        if needed <= known and ((learner or _learner()) / "compiled" / name).is_dir():
            environ.update({_CPU_NAME: name, _CPU_FEATURES: ""})


def check_processor(environ: Mapping[str, str], cpuinfo: Path = CPUINFO) -> None:
    """Raise OslrauError if this processor lacks what `NUMBA_CPU_NAME` asks for."""
    name = environ.get(_CPU_NAME, "")
    known = _instructions(cpuinfo) if name in _INSTRUCTIONS else None
    missing = _INSTRUCTIONS[name] - known if known is not None else set()
    if missing:
        raise OslrauError(
            f"{_CPU_NAME}={name}: this processor has no {', '.join(sorted(missing))}; set "
            f"{_CPU_NAME}=generic, or build the image with --build-arg CPU=generic"
        )


def _learner() -> Path:
    """Return the folder of the learner without importing it, and numba with it."""
    spec = find_spec("faust_oslrau.learner")
    return Path(spec.origin or "").parent if spec else Path()


def _instructions(cpuinfo: Path) -> set[str] | None:
    """Return what the first processor has; None where that is not told."""
    try:
        lines = cpuinfo.read_text().splitlines()
    except OSError:
        lines = []
    flags = next((line for line in lines if line.startswith("flags")), None)
    return None if flags is None else set(flags.split())
