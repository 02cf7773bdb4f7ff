"""The one decorator of every compiled kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
from numba.core import config
from numba.core.registry import CPUDispatcher
from numpy.typing import NDArray

from .caching import KernelCache

Array = NDArray[Any]
"""Any array, in the signatures of kernels."""

F = TypeVar("F", bound=Callable[..., Any])


class Kernel(CPUDispatcher):
    """A kernel that other kernels call with 64-bit integers, whatever integers they have.

    numba compiles a function for each combination of types that it is called with, and a constant
    is a type of its own. It casts the arguments to the types that this class gives them.
    """

    @property
    def folder(self) -> str:
        """The folder of the package in which it is defined."""
        return str(self.py_func.__module__).split(".")[-2]

    def enable_caching(self) -> None:
        """Load compiled kernels from disk, and save them."""
        self._cache = KernelCache(self.py_func)

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
    block it was computed in. No kernel assigns an array to a part of another one: numba takes two
    seconds to compile the message about their sizes.
    """
    if config.DISABLE_JIT:  # type: ignore[attr-defined]
        return function
    options = {"nopython": True, "nogil": True, "error_model": "numpy"}
    options["no_cfunc_wrapper"] = True  # it takes time to compile, and nothing in C calls a kernel
    compiled = Kernel(function, targetoptions=options)
    compiled.enable_caching()
    KERNELS.append(compiled)
    return cast(F, compiled)
