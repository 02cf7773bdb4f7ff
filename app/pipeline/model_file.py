"""The file of the setting `initial_model`: a snapshot with which new partitions begin."""

from __future__ import annotations

from functools import cache
from hashlib import blake2b

from faust_oslrau.app.errors import SettingsError
from faust_oslrau.app.files import LARGEST_MODEL, read_file
from faust_oslrau.app.settings import Settings, short

_DIGEST_BYTES = 16


def initial_digest(settings: Settings) -> str | None:
    """Return the digest of the setting `initial_model`; None without one.

    Raises
    ------
    SettingsError
        The file cannot be read.
    """
    return None if settings.initial_model is None else digest(settings.initial_model)


@cache
def digest(path: str) -> str:
    """Return the digest of a model's file, as it was when the program first asked for it.

    Raises
    ------
    SettingsError
        The file cannot be read.
    """
    return digest_of(_read(path))


def read(path: str) -> bytes:
    """Return the content of a model's file.

    Raises
    ------
    SettingsError
        The file cannot be read, or has changed since the program asked for its digest.
    """
    data = _read(path)
    if digest_of(data) != digest(path):
        raise SettingsError(f"setting initial_model: {short(path)} has changed, restart the worker")
    return data


def _read(path: str) -> bytes:
    try:
        return read_file(path, LARGEST_MODEL)
    except OSError as error:
        raise SettingsError(
            f"setting initial_model: expected a model's file, got {short(path)}: {error.strerror}"
        ) from None


def digest_of(data: bytes) -> str:
    """Return a short digest of any bytes."""
    return blake2b(data, digest_size=_DIGEST_BYTES).hexdigest()
