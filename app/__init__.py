"""The application: a worker that scores Kafka topics, its parts, and the command line.

`faust -A faust_oslrau.app worker` runs the attribute `app`, which reads its settings from the
environment; `attach` adds scoring to a user's own Faust app.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .worker import attach, create_app, run_worker

__all__ = ["attach", "create_app", "run_worker"]


def __getattr__(name: str) -> Any:
    # Faust takes a second to import, which commands without a worker need not wait for.
    if name in __all__:
        from . import worker

        return getattr(worker, name)
    if name == "app":
        globals()["app"] = _environment_app()
        return globals()["app"]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _environment_app() -> Any:
    import os

    from .processor import choose_level

    choose_level(os.environ)  # before numba is imported

    from .settings import load_settings
    from .worker import create_app

    return create_app(load_settings(None, os.environ))
