"""Asks a schema registry, by Confluent's interface."""

from __future__ import annotations

import base64
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import orjson

from faust_oslrau.app.errors import OslrauError, SettingsError
from faust_oslrau.app.files import LARGEST_PEM, read_file
from faust_oslrau.app.settings import RegistrySettings, Settings
from faust_oslrau.topics.formats import Schema, missing_module

if TYPE_CHECKING:  # a quarter of a second, which commands on JSON need not wait for
    import aiohttp

_TIMEOUT_SECONDS = 5.0
_JSON = "application/vnd.schemaregistry.v1+json"
_HEADERS = {"Accept": f"{_JSON}, application/json", "Content-Type": _JSON}
_NO_SCHEMA = 40403
_CLIENT_ERRORS = {*range(400, 500)} - {408, 429}  # too slow, too many: later it may be otherwise
# What is accepted stays below the default limit of topics, 1 MB, even if each byte is escaped.
_MOST_BYTES = 400_000
_DEFAULT_KIND = "AVRO"


class RegistryError(OslrauError):
    """The registry does not answer, or refuses.

    Attributes
    ----------
    is_final
        Whether it has refused what was asked, and will again.
    """

    exit_code = 3
    is_final = False


class _RefusedError(RegistryError):
    """The registry has answered that there is no such thing, or that it takes none."""

    def __init__(self, message: str, status: int, code: Any) -> None:
        super().__init__(message)
        self.code = code
        self.is_final = status in _CLIENT_ERRORS


class Registry:
    """A registry, whose schemas are remembered by their ids; use it in one event loop.

    Parameters
    ----------
    settings
        Where it is, and who asks.

    Raises
    ------
    SettingsError
        The file with the authorities cannot be used.
    """

    def __init__(self, settings: RegistrySettings) -> None:
        self._url = (settings.url or "").rstrip("/")
        self._settings = settings
        self._tls = _tls(settings)
        self._session: aiohttp.ClientSession | None = None
        self._known: dict[int, Schema] = {}

    async def schema(self, schema_id: int) -> Schema | None:
        """Return the schema of an id; None if the registry has none.

        Raises
        ------
        RegistryError
            The registry does not answer, or refuses.
        """
        if schema_id not in self._known:
            try:
                found = await self._ask("GET", f"/schemas/ids/{schema_id}")
            except _RefusedError as error:
                # Any web server answers 404; only a registry says that it has no such schema.
                if error.code == _NO_SCHEMA:
                    return None
                raise
            with self._understood():
                self._known[schema_id] = await self._schema_of(found)
        return self._known[schema_id]

    async def latest(self, subject: str) -> tuple[int, Schema]:
        """Return id and schema of the latest version of a subject; raises as `schema`."""
        found = await self._ask("GET", f"/subjects/{quote(subject, safe='')}/versions/latest")
        with self._understood():
            return int(found["id"]), await self._schema_of(found)

    async def register(self, subject: str, schema: Schema) -> int:
        """Return the id of a schema, which becomes a version of a subject; raises as `schema`."""
        wanted = {"schema": schema.text}
        if schema.kind != _DEFAULT_KIND:
            wanted["schemaType"] = schema.kind
        place = f"/subjects/{quote(subject, safe='')}/versions"
        found = await self._ask("POST", place, orjson.dumps(wanted))
        with self._understood():
            return int(found["id"])

    async def aclose(self) -> None:
        """Disconnect."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _schema_of(self, found: dict[str, Any]) -> Schema:
        references: dict[str, str] = {}
        await self._add_references(found, references)
        kind, text = str(found.get("schemaType") or _DEFAULT_KIND), str(found["schema"])
        size = len(text.encode()) + sum(len(each.encode()) for each in references.values())
        if size > _MOST_BYTES:
            return Schema(f"{kind} of {size:,} bytes, at most {_MOST_BYTES:,} are taken", "")
        return Schema(kind, text, tuple(references.items()))

    async def _add_references(self, found: dict[str, Any], known: dict[str, str]) -> None:
        """Add the schemas that a schema refers to, each after those that it refers to itself."""
        for reference in found.get("references") or ():
            name, subject = str(reference["name"]), quote(str(reference["subject"]), safe="")
            if name not in known:
                place = f"/subjects/{subject}/versions/{int(reference['version'])}"
                inner = await self._ask("GET", place)
                await self._add_references(inner, known)
                known[name] = str(inner["schema"])

    @contextmanager
    def _understood(self) -> Iterator[None]:
        """Raise RegistryError for an answer without what is asked for."""
        try:
            yield
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise RegistryError(f"registry {self._url}: not understood, {error!r}") from error

    async def _ask(self, method: str, place: str, body: bytes | None = None) -> dict[str, Any]:
        import aiohttp

        try:
            async with self._connected().request(
                method, self._url + place, data=body, ssl=self._tls, allow_redirects=False
            ) as answer:
                content = await answer.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise RegistryError(f"registry {self._url}: {_reason(error)}") from error
        return self._read(answer.status, content)

    def _read(self, status: int, content: bytes) -> dict[str, Any]:
        try:
            found = orjson.loads(content)
        except orjson.JSONDecodeError:
            found = None
        if status != 200 or not isinstance(found, dict):
            told = found if isinstance(found, dict) else {}
            message = f"registry {self._url}: status {status}, {told.get('message', 'no JSON')}"
            raise _RefusedError(message, status, told.get("error_code"))
        return found

    def _connected(self) -> aiohttp.ClientSession:
        import aiohttp

        if self._session is None:
            self._session = aiohttp.ClientSession(
                timeout=aiohttp.ClientTimeout(_TIMEOUT_SECONDS),
                headers=_HEADERS | self._credentials(),
            )
        return self._session

    def _credentials(self) -> dict[str, str]:
        settings = self._settings
        if settings.password is None:
            return {}
        if settings.username is None:
            return {"Authorization": f"Bearer {settings.password}"}
        login = base64.b64encode(f"{settings.username}:{settings.password}".encode())
        return {"Authorization": f"Basic {login.decode()}"}


def check_format(settings: Settings) -> None:
    """Refuse a format whose library is not installed, and authorities that cannot be used.

    Raises
    ------
    SettingsError
        The message names the setting.
    """
    for name in ("format", "scores_format"):
        wanted = getattr(settings, name)
        missing = None if wanted == "json" else missing_module(wanted)
        if missing is not None:
            raise SettingsError(
                f"setting {name}: {wanted} needs {missing}, which is not installed: "
                "pip install 'faust-oslrau[formats]'"
            )
    _tls(settings.registry)


def _tls(settings: RegistrySettings) -> ssl.SSLContext | bool:
    if settings.ca_file is None:
        return True
    try:
        read_file(settings.ca_file, LARGEST_PEM)  # OpenSSL would wait for a pipe
        return ssl.create_default_context(cafile=settings.ca_file)
    except (OSError, ssl.SSLError) as error:
        raise SettingsError(
            f"setting registry.ca_file: expected a readable PEM, got {settings.ca_file!r}: "
            f"{error.strerror or error}"
        ) from None


def _reason(error: BaseException) -> str:
    return "no answer in time" if isinstance(error, TimeoutError) else str(error) or repr(error)
