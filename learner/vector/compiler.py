"""The one decorator of every compiled kernel."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core import config
from numba.core.registry import CPUDispatcher
from numpy.typing import NDArray

Array = NDArray[Any]
"""Any array, in the signatures of kernels."""

F = TypeVar("F", bound=Callable[..., Any])

_PACKAGE = Path(__file__).parents[1]
_STAMP = "kernels.sha256"


class Kernel(CPUDispatcher):
    """A kernel that other kernels call with 64-bit integers, whatever integers they have.

    numba compiles a function for each combination of types that it is called with, and a constant
    is a type of its own. It casts the arguments to the types that this class gives them.
    """

    @property
    def folder(self) -> str:
        """The folder of the package in which it is defined."""
        return str(self.py_func.__module__).split(".")[-2]

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Compile for the arguments of a call by another kernel, and return the signature."""
        wide = {name: _widened(value) for name, value in dict(kws).items()}
        return super().get_call_template(tuple(map(_widened, args)), wide)


KERNELS: list[Kernel] = []
"""All kernels of the modules that were imported."""


def _widened(type_: Any) -> Any:
    if isinstance(type_, numba.types.Literal):
        type_ = type_.literal_type
    return numba.types.int64 if isinstance(type_, numba.types.Integer) else type_


def kernel(function: F) -> F:
    """Compile ``function`` on first use, cached on disk, free of the GIL, IEEE arithmetic.

    No fast-math: reordering or fusing operations would make the bits of a score depend on the
    block it was computed in.
    """
    if config.DISABLE_JIT:  # type: ignore[attr-defined]
        return function
    options = {"nopython": True, "nogil": True, "error_model": "numpy"}
    compiled = Kernel(function, targetoptions=options)
    compiled.enable_caching()
    drop_stale_kernels(Path(str(compiled.stats.cache_path)), hash_of_sources(_PACKAGE))
    KERNELS.append(compiled)
    return cast(F, compiled)


@cache
def drop_stale_kernels(folder: Path, sources: str) -> None:
    """Remove the compiled kernels of a folder of the cache, unless they are of these sources.

    numba's cache follows the file of each function, but not the files of the functions and
    constants that it uses, which may lie in other folders. Without this, after an edit of one
    of them its callers would run the old code. A stamp in the folder holds the sources' hash:
    caches can be copied with the package, whatever becomes of the files' times.
    """
    stamp = folder / _STAMP
    with suppress(OSError):  # a read-only cache, or another process was faster
        if not stamp.exists() or stamp.read_text() != sources:
            for file in folder.glob("*.nb[ci]"):
                file.unlink(missing_ok=True)
            folder.mkdir(parents=True, exist_ok=True)
            stamp.write_text(sources)


@cache
def hash_of_sources(package: Path) -> str:
    """Return the hash of all sources in the package's folders; no kernel is at its top level."""
    digest = hashlib.sha256()
    for source in sorted(package.rglob("*/*.py")):
        digest.update(source.relative_to(package).as_posix().encode() + b"\0")
        digest.update(hashlib.sha256(source.read_bytes()).digest())
    return digest.hexdigest()
