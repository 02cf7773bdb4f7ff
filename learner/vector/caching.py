"""Where compiled kernels lie: in the package if it brings them along, and in numba's own cache.

A package that was built for processors of a named level has kernels in `compiled/LEVEL/FOLDER`,
which is only read. numba finds one there if it was told that level (`NUMBA_CPU_NAME`), and if the
kernel is of this version of Python and of numba; all else is compiled.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from numba.core import config
from numba.core.caching import (
    CompileResultCacheImpl,
    FunctionCache,
    InTreeCacheLocator,
    NullCache,
)

_PACKAGE = Path(__file__).parents[1]
_STAMP = "kernels.sha256"


class _PackageLocator(InTreeCacheLocator):
    """Finds the folder of the package that has the kernels of a file, if it has any."""

    def get_cache_path(self) -> str:
        """Return the folder for the processor that numba was told."""
        return str(_brought() / Path(self._py_file).parent.name)

    def ensure_cache_path(self) -> None:
        """Accept a folder that cannot be written to, or is not there."""


class _PackageFiles(CompileResultCacheImpl):
    _locator_classes = [_PackageLocator]  # noqa: RUF012 - as numba declares it


class KernelCache(FunctionCache):
    """The cache of one kernel: read from the package, else read from numba's and written there."""

    _impl_class = _PackageFiles

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        if not _is_brought():
            self.disable()
        try:
            self._own: FunctionCache | NullCache = FunctionCache(function)
        except RuntimeError:  # there is no folder that can be written to
            self._own = NullCache()
        else:
            drop_stale_kernels(Path(self._own.cache_path), hash_of_sources(_PACKAGE))

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the kernel for a signature, or None if it has to be compiled."""
        found = super().load_overload(sig, target_context)
        return self._own.load_overload(sig, target_context) if found is None else found

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save a kernel; one that cannot be saved, as on a full disk, is compiled again."""
        with suppress(OSError):
            self._own.save_overload(sig, data)


def _brought() -> Path:
    """Return where the package has kernels for the processor that numba was told."""
    return _PACKAGE / "compiled" / str(config.CPU_NAME)  # type: ignore[attr-defined]


@cache
def _is_brought() -> bool:
    return _has_stamp(_brought(), hash_of_sources(_PACKAGE))


def _has_stamp(folder: Path, sources: str) -> bool:
    stamp = folder / _STAMP
    return stamp.exists() and stamp.read_text() == sources


@cache
def drop_stale_kernels(folder: Path, sources: str) -> None:
    """Remove the compiled kernels of a folder of the cache, unless they are of these sources.

    numba's cache follows the file of each function, but not the files of the functions and
    constants that it uses, which may lie in other folders. Without this, after an edit of one
    of them its callers would run the old code. A stamp in the folder holds the sources' hash:
    caches can be copied with the package, whatever becomes of the files' times.
    """
    with suppress(OSError):  # another process was faster
        if not _has_stamp(folder, sources):
            for file in folder.glob("*.nb[ci]"):
                file.unlink(missing_ok=True)
            folder.mkdir(parents=True, exist_ok=True)
            (folder / _STAMP).write_text(sources)


@cache
def hash_of_sources(package: Path) -> str:
    """Return the hash of all sources in the package's folders; no kernel is at its top level."""
    digest = hashlib.sha256()
    for source in sorted(package.rglob("*/*.py")):
        digest.update(source.relative_to(package).as_posix().encode() + b"\0")
        digest.update(hashlib.sha256(source.read_bytes()).digest())
    return digest.hexdigest()
