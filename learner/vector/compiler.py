"""The one decorator of every compiled kernel."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numpy.typing import NDArray

Array = NDArray[Any]
"""Any array, in the signatures of kernels."""

F = TypeVar("F", bound=Callable[..., Any])


def drop_stale_cache(package: Path) -> None:
    """Remove all compiled kernels if one is older than the newest source in the package's folders.

    numba's cache follows the file of each function, but not the files of the functions and
    constants that it uses, which may lie in other folders. Without this, after an edit of one
    of them its callers would run the old code. No kernel is defined at the top level.
    """
    newest = max((source.stat().st_mtime for source in package.rglob("*/*.py")), default=0.0)
    cached = list(package.rglob("__pycache__/*.nb[ci]"))
    if any(file.stat().st_mtime < newest for file in cached):
        for file in cached:
            file.unlink()


with suppress(OSError):  # a read-only installation is not edited, or another process was faster
    drop_stale_cache(Path(__file__).parents[1])


def kernel(function: F) -> F:
    """Compile ``function`` on first use, cached on disk, free of the GIL, IEEE arithmetic.

    No fast-math: reordering or fusing operations would make the bits of a score depend on the
    block it was computed in.
    """
    return cast(F, numba.njit(cache=True, nogil=True, error_model="numpy")(function))
