"""Asks a schema registry, by Confluent's interface."""

from __future__ import annotations

import base64
import ssl
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

import orjson
from msgspec import Struct

from faust_oslrau.app.errors import OslrauError, SettingsError
from faust_oslrau.app.files import LARGEST_PEM, read_file, read_secret
from faust_oslrau.app.settings import RegistrySettings, Settings
from faust_oslrau.topics.formats import Schema, missing_module

from .foreign import SchemaId, read

if TYPE_CHECKING:  # a quarter of a second, which commands on JSON need not wait for
    import aiohttp

_TIMEOUT_SECONDS = 5.0
_JSON = "application/vnd.schemaregistry.v1+json"
_HEADERS = {
    "Accept": f"{_JSON}, application/json",
    "Accept-Encoding": "identity",
    "Content-Type": _JSON,
}
_MOST_TOLD = 300  # characters of a refusal
_NO_SCHEMA = 40403
_CLIENT_ERRORS = {*range(400, 500)} - {408, 429}  # too slow, too many: later it may be otherwise
# What is accepted stays below the default limit of topics, 1 MB, as JSON, where a quote takes two.
_MOST_BYTES = 400_000
# Of an answer: what is accepted, even if each byte is escaped as six, and what it refers to.
_MOST_ANSWER_BYTES = 4_000_000
_MOST_AT_ONCE = 16
# Of schemas that a schema refers to; real ones have some ten, within each other a few.
_MOST_REFERENCES, _MOST_LEVELS = 1000, 50
_DEFAULT_KIND = "AVRO"
_MOST_KIND = 50  # characters

Answer = TypeVar("Answer")


class _Reference(Struct):
    name: str
    subject: str
    version: int


class _Found(Struct, rename="camel"):
    """A schema, as a registry answers."""

    schema: str
    schema_type: str | None = None
    references: list[_Reference] | None = None


class _Latest(_Found, kw_only=True):
    id: SchemaId


class _Number(Struct):
    id: SchemaId


class _Refusal(Struct):
    message: Any = "no JSON"
    error_code: Any = None


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

    def __init__(self, message: str, status: int, code: Any, place: str) -> None:
        super().__init__(message)
        self.code = code
        self.place = place
        self.is_final = status in _CLIENT_ERRORS


class _UnusableError(RegistryError):
    """A schema is larger than what is accepted: who asks again gets no other."""


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
            place = f"/schemas/ids/{schema_id}"
            try:
                self._known[schema_id] = await self._schema_of(
                    await self._ask(_Found, "GET", place)
                )
            except _UnusableError as error:
                self._known[schema_id] = Schema(str(error), "")  # as of another format
            except _RefusedError as error:
                # Any web server answers 404; only a registry says that it has no such schema.
                if error.code == _NO_SCHEMA and error.place == place:
                    return None
                raise
        return self._known[schema_id]

    async def latest(self, subject: str) -> tuple[int, Schema]:
        """Return id and schema of the latest version of a subject; raises as `schema`."""
        place = f"/subjects/{quote(subject, safe='')}/versions/latest"
        found = await self._ask(_Latest, "GET", place)
        return found.id, await self._schema_of(found)

    async def register(self, subject: str, schema: Schema) -> int:
        """Return the id of a schema, which becomes a version of a subject; raises as `schema`."""
        wanted = {"schema": schema.text}
        if schema.kind != _DEFAULT_KIND:
            wanted["schemaType"] = schema.kind
        place = f"/subjects/{quote(subject, safe='')}/versions"
        return (await self._ask(_Number, "POST", place, orjson.dumps(wanted))).id

    async def aclose(self) -> None:
        """Disconnect."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _schema_of(self, found: _Found) -> Schema:
        references: dict[str, str] = {}
        await self._add_references(found, references, set(), 1)
        kind = (found.schema_type or _DEFAULT_KIND)[:_MOST_KIND]
        texts = [found.schema, *references.values(), *references]
        size = max(sum(len(each.encode()) for each in texts), len(orjson.dumps(texts)) // 2)
        if size > _MOST_BYTES:
            told = f"{kind} of {size:,} bytes, at most {_MOST_BYTES:,} are taken"
            raise _UnusableError(told)
        return Schema(kind, found.schema, tuple(references.items()))

    async def _add_references(
        self, found: _Found, known: dict[str, str], seen: set[str], level: int
    ) -> None:
        """Add the schemas that a schema refers to, each after those that it refers to itself.

        One that refers to itself is asked for once, and for its library to refuse.
        """
        for reference in found.references or ():
            if reference.name in seen:
                continue
            seen.add(reference.name)
            if len(seen) > _MOST_REFERENCES or level > _MOST_LEVELS:
                raise _UnusableError(
                    f"one with more than {_MOST_REFERENCES:,} references, or more than "
                    f"{_MOST_LEVELS} within each other"
                )
            subject = quote(reference.subject, safe="")
            place = f"/subjects/{subject}/versions/{reference.version}"
            inner = await self._ask(_Found, "GET", place)
            if len(inner.schema) + sum(map(len, known.values())) > _MOST_BYTES:
                raise _UnusableError(f"one of more than {_MOST_BYTES:,} bytes with its references")
            await self._add_references(inner, known, seen, level + 1)
            known[reference.name] = inner.schema

    async def _ask(
        self, wanted: type[Answer], method: str, place: str, body: bytes | None = None
    ) -> Answer:
        import aiohttp

        password = self._password()
        headers = _HEADERS | self._credentials(password)
        try:
            async with self._connected().request(
                method, self._url + place, data=body, ssl=self._tls, allow_redirects=False,
                headers=headers,
            ) as answer:  # fmt: skip
                content = await _bounded(answer)
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            raise RegistryError(f"registry {self._url}: {_reason(error)}") from error
        if answer.status != 200:
            raise self._refusal(answer.status, content, password, place)
        try:
            return read(wanted, content)
        except ValueError as error:
            raise RegistryError(f"registry {self._url}: not understood, {error}") from error

    def _password(self) -> str | None:
        try:
            return _password(self._settings)
        except SettingsError as error:  # it may be written at this moment
            raise RegistryError(str(error)) from None

    def _refusal(
        self, status: int, content: bytes, password: str | None, place: str
    ) -> _RefusedError:
        try:
            told = read(_Refusal, content)
        except ValueError:
            told = _Refusal()
        words = " ".join(str(told.message).split()).replace(password or "\n", "(secret)")
        message = f"registry {self._url}: status {status}, {words[:_MOST_TOLD]}"
        return _RefusedError(message, status, told.error_code, place)

    def _connected(self) -> aiohttp.ClientSession:
        import aiohttp

        if self._session is None:
            self._session = aiohttp.ClientSession(
                timeout=aiohttp.ClientTimeout(_TIMEOUT_SECONDS),
                connector=aiohttp.TCPConnector(limit=_MOST_AT_ONCE),
                auto_decompress=False,  # a small answer may become an endless one
            )
        return self._session

    def _credentials(self, password: str | None) -> dict[str, str]:
        if password is None:
            return {}
        username = self._settings.username
        if username is None:
            return {"Authorization": f"Bearer {password}"}
        login = base64.b64encode(f"{username}:{password}".encode())
        return {"Authorization": f"Basic {login.decode()}"}


def _password(settings: RegistrySettings) -> str | None:
    """Return the password or token; its file is read each time, as somebody else renews it.

    Raises
    ------
    SettingsError
        The file cannot be read.
    """
    path = settings.password_file
    if path is None:
        return settings.password
    try:
        if found := read_secret(path):
            return found
        reason = "it is empty"
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8"
    raise SettingsError(
        f"setting registry.password_file: expected a readable file, got {path!r}: {reason}"
    )


async def _bounded(answer: aiohttp.ClientResponse) -> bytes:
    """Return an answer's content.

    Raises
    ------
    _UnusableError
        It is a larger schema than what is accepted.
    ClientError
        It is something else without end.
    """
    import aiohttp

    content = bytearray()
    async for part in answer.content.iter_any():
        content += part
        if len(content) > _MOST_ANSWER_BYTES:
            told = f"an answer of more than {_MOST_ANSWER_BYTES:,} bytes"
            if answer.status == 200 and content.lstrip().startswith(b"{"):
                raise _UnusableError(told)
            raise aiohttp.ClientPayloadError(told)
    return bytes(content)


def check_format(settings: Settings) -> None:
    """Refuse a format whose library is not installed, and files that cannot be used.

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
    _password(settings.registry)


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
