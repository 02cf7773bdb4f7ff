"""Reads the settings: overrides win over the environment, which wins over a TOML file."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from faust_oslrau.app.errors import SettingsError
from faust_oslrau.app.files import read_file, read_secret

from .definitions import SecuritySettings, Settings
from .former import FORMER
from .incident_settings import IncidentSettings
from .learner_settings import LearnerSettings
from .notify_settings import NotifySettings
from .registry_settings import RegistrySettings
from .section import Section, short

PREFIX = "OSLRAU_"
SETTINGS_FILE = "OSLRAU_SETTINGS"
# Environment variables with our prefix that are no settings: the settings file, and test data.
_OTHER_NAMES = frozenset({SETTINGS_FILE, "OSLRAU_DATASETS", "OSLRAU_SCHEMAS"})
# Far more than a settings file has.
_MAX_FILE_BYTES = 1_000_000
_SECTIONS: dict[str, type[Section]] = {
    "incidents": IncidentSettings,
    "notify": NotifySettings,
    "learner": LearnerSettings,
    "registry": RegistrySettings,
    "security": SecuritySettings,
}


def load_settings(path: Path | None, environ: Mapping[str, str], **overrides: Any) -> Settings:
    """Return the settings of a TOML file, the environment and `overrides`; the last one wins.

    Without `path`, the environment variable `OSLRAU_SETTINGS` may name the file. Overrides that are
    None are ignored; those of a section are a mapping.

    Raises
    ------
    SettingsError
        A name is unknown or a value is invalid. The message names the setting, the value and what
        was expected, in one line.
    """
    if path is None and environ.get(SETTINGS_FILE):
        path = Path(environ[SETTINGS_FILE])
    layers = [
        _read_file(path) if path else {},
        _read_environment(environ),
        {name: value for name, value in overrides.items() if value is not None},
    ]
    sections = {name: _merge_section(name, layers) for name in _SECTIONS}
    plain = {name: value for layer in layers for name, value in layer.items()}
    _check_names(plain, Settings)
    return Settings(**{**plain, **sections})


def _read_file(path: Path) -> dict[str, Any]:
    try:
        found = tomllib.loads(read_file(path, _MAX_FILE_BYTES).decode())
    except OSError as error:
        raise SettingsError(f"settings file {path}: {error.strerror}") from None
    except ValueError as error:  # not TOML, or not UTF-8
        raise SettingsError(f"settings file {path}: expected TOML, {error}") from None
    except RecursionError:
        raise SettingsError(f"settings file {path}: expected TOML with fewer brackets") from None
    _refuse_secrets(found)
    return found


def _refuse_secrets(found: Mapping[str, Any]) -> None:
    for section, entry in _entries():
        inside = found.get(section) if section else found
        if entry.metadata["secret"] and isinstance(inside, Mapping) and entry.name in inside:
            name = _environment_name(section, entry.name)
            raise SettingsError(
                f"setting {section}.{entry.name}: expected the environment variable {name} or "
                f"{name}_FILE, got it in the settings file"
            )


def _read_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    names = {_environment_name(section, e.name): (section, e) for section, e in _entries()}
    files = {f"{name}_FILE": name for name, (_, e) in names.items() if e.metadata["secret"]}
    # A file that is a setting itself is read again whenever its secret is sent.
    secrets = {file: name for file, name in files.items() if file not in names}
    found: dict[str, Any] = {}
    for name, value in environ.items():
        if not name.startswith(PREFIX) or name in _OTHER_NAMES:
            continue
        if name in _former_variables():
            raise SettingsError(
                f"environment variable {name} is no longer a setting: {_former_variables()[name]}"
            )
        if name not in names and name not in secrets:
            raise SettingsError(_unknown("environment variable", name, [*names, *secrets]))
        section, entry = names[secrets.get(name, name)]
        if name in secrets:
            if secrets[name] in environ:
                raise SettingsError(f"setting {name}: expected it or {secrets[name]}, got both")
            value = _read_secret(name, value)
        inside = found.setdefault(section, {}) if section else found
        inside[entry.name] = value
    return found


def _read_secret(name: str, path: str) -> str:
    try:
        return read_secret(path)
    except OSError as error:
        reason = error.strerror or repr(error)
    except ValueError:
        reason = "not UTF-8"
    raise SettingsError(f"setting {name}: expected a readable file, got {path!r}: {reason}")


def _entries() -> Iterator[tuple[str, Any]]:
    """Yield the section ('' for none) and the dataclass field of each setting."""
    yield from (("", entry) for entry in fields(Settings) if "value_type" in entry.metadata)
    for section, settings in _SECTIONS.items():
        yield from ((section, entry) for entry in fields(settings))  # type: ignore[arg-type]


def _environment_name(section: str, name: str) -> str:
    # OSLRAU_SASL_PASSWORD, not OSLRAU_SECURITY_SASL_PASSWORD.
    plain = not section or name.startswith("sasl_")
    return PREFIX + (name if plain else f"{section}_{name}").upper()


def _former_variables() -> dict[str, str]:
    return {PREFIX + name.replace(".", "_").upper(): told for name, told in FORMER.items()}


def _merge_section(name: str, layers: list[dict[str, Any]]) -> Section:
    merged: dict[str, Any] = {}
    for layer in layers:
        inside = layer.get(name, {})
        if isinstance(inside, Section):
            return inside
        if not isinstance(inside, Mapping):
            raise SettingsError(f"setting {name}: expected a table, got {short(inside)}")
        merged.update(inside)
    _check_names(merged, _SECTIONS[name])
    return _SECTIONS[name](**merged)


def _check_names(found: Mapping[str, Any], section: type[Section]) -> None:
    known = [entry.name for entry in fields(section)]  # type: ignore[arg-type]
    for name in found:
        if section.prefix + name in FORMER:
            former = section.prefix + name
            raise SettingsError(f"{former} is no longer a setting: {FORMER[former]}")
        if name not in known:
            full = [section.prefix + candidate for candidate in known]
            raise SettingsError(_unknown("setting", section.prefix + name, full))


def _unknown(what: str, name: str, known: list[str]) -> str:
    close = get_close_matches(name, known, n=1)
    hint = f"did you mean {close[0]}?" if close else f"expected one of {', '.join(known)}"
    return f"unknown {what} {name}, {hint}"
