"""The one decorator of every compiled kernel."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., Any])


def drop_stale_cache(folder: Path) -> None:
    """Remove compiled kernels older than the newest source of the folder.

    The compiler's cache follows each function's own file, but not the files of the kernels that
    it calls: after an edit of one, the callers would go on with the old one.
    """
    newest = max((source.stat().st_mtime for source in folder.glob("_*.py")), default=0.0)
    for cached in (folder / "__pycache__").glob("*.nb[ci]"):
        if cached.stat().st_mtime < newest:
            cached.unlink()


with suppress(OSError):  # a read-only installation is not edited, or another process was faster
    drop_stale_cache(Path(__file__).parent)


def kernel(function: F) -> F:
    """Compile ``function`` on first use, cached on disk, free of the GIL, IEEE arithmetic.

    No fast-math: reordering or fusing operations would make the bits of a score depend on the
    block it was computed in.
    """
    return cast(F, numba.njit(cache=True, nogil=True, error_model="numpy")(function))
