"""Where notices go: Alertmanager, and webhooks."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from string import Template
from typing import Any, Protocol
from urllib.parse import urlsplit

import aiohttp

from faust_oslrau.app.errors import SettingsError
from faust_oslrau.app.files import read_file
from faust_oslrau.app.settings import NotifySettings
from faust_oslrau.learner.scoring.incident import CLOSED

from .notices import MEMBERS, News, Notice

logger = logging.getLogger(__name__)

# How long Alertmanager keeps an alert that is not sent again; it is, each minute.
_KEPT = timedelta(minutes=5)
_RETRY_SECONDS = (1.0, 2.0, 5.0, 10.0, 30.0)
_TIMEOUT = aiohttp.ClientTimeout(total=10)
_LARGEST_TEMPLATE = 1_000_000
# What a later try may accept.
_RETRIED = {408, 425, 429}


class Channel(Protocol):
    """Where notices go.

    Attributes
    ----------
    name
        Its name among the channels.
    """

    name: str

    async def tell(self, news: News) -> None:
        """Tell that a notice was opened, updated or closed, or of what happened once."""

    async def remind(self, notices: Sequence[Notice]) -> None:
        """Tell that these notices, which were told, are still open."""


class Alertmanager:
    """Posts alerts to an Alertmanager, one for each notice.

    An alert is known by its labels, which are those of what opened the notice: later events may
    blame other fields. So a notice that becomes more severe ends one and begins another. What has
    no end is told once, and ends as Alertmanager hears no more of it: it does not tell people of an
    alert that ends at once.
    """

    name = "alertmanager"

    def __init__(self, address: str, session: aiohttp.ClientSession) -> None:
        self._address = f"{address.rstrip('/')}/api/v2/alerts"
        self._session = session

    async def tell(self, news: News) -> None:
        """Begin or end an alert."""
        state, notice, before = news
        alerts = [_alert(notice, notice.severity, ends=state == CLOSED)]
        if before not in (None, notice.severity):
            alerts.append(_alert(notice, str(before), ends=True))
        await _post(self._session, self._address, json.dumps(alerts).encode())

    async def remind(self, notices: Sequence[Notice]) -> None:
        """Send the alerts again, as they end else."""
        alerts = [_alert(notice, notice.severity, ends=False) for notice in notices]
        if alerts:
            await _post(self._session, self._address, json.dumps(alerts).encode())


def _alert(notice: Notice, severity: str, *, ends: bool) -> dict[str, Any]:
    first, now = notice.first.message, datetime.now(UTC)
    labels = {
        # Not the name of an alert of docker/prometheus/rules.yml.
        "alertname": f"OslrauNotice{str(first.event).title()}",
        "topic": first.topic,
        "severity": severity,
        "notice": notice.name,
        **({"field": first.fields[0]} if first.fields else {}),
        **({} if first.entity is None else {"entity": first.entity}),
    }
    found = notice.as_dict("")
    return {
        "labels": labels,
        "annotations": {
            "summary": notice.title,
            "description": _description(found),
        },
        "startsAt": _began(notice.since, now).isoformat(),
        "endsAt": (now if ends else now + _KEPT).isoformat(),
        **({"generatorURL": notice.address} if notice.address else {}),
    }


def _began(since: int | None, now: datetime) -> datetime:
    """Return the time of what began at milliseconds since 1970; now where a producer's is wrong."""
    if since is None or not 0 <= since < 1000 * now.timestamp():
        return now
    return datetime.fromtimestamp(since / 1000, UTC)


def _description(notice: Mapping[str, Any]) -> str:
    listed = {name: ", ".join(notice[name][:20]) for name in ("fields", "entities")}
    told = (f", {name} {names}" for name, names in listed.items() if names)
    return f"In {notice['topic']}{''.join(told)}."


class Webhook:
    """Posts JSON to an address: the notice, or what a template makes of it."""

    def __init__(
        self, address: str, template: Template | None, session: aiohttp.ClientSession
    ) -> None:
        # The address itself may be a secret, its place in the list may change.
        self.name = f"webhook-{sha256(address.encode()).hexdigest()[:8]}"
        self._address = address
        self._template = template
        self._session = session

    async def tell(self, news: News) -> None:
        """Post a notice."""
        told = news.notice.as_dict(news.state)
        await _post(self._session, self._address, body(self._template, told))

    async def remind(self, notices: Sequence[Notice]) -> None:
        """Do nothing: who was told knows."""


def body(template: Template | None, notice: Mapping[str, Any]) -> bytes:
    """Return the body of a webhook's request.

    A template is JSON with `$title` and other members of a notice inside its texts.
    """
    if template is None:
        return json.dumps(notice).encode()
    texts = {name: _inside_text(content) for name, content in notice.items()}
    return template.substitute(texts).encode()


def _inside_text(content: Any) -> str:
    text = ", ".join(map(str, content)) if isinstance(content, list) else str(content)
    return json.dumps(text)[1:-1]


def read_template(path: str | None) -> Template | None:
    """Return the template of a file.

    Raises
    ------
    SettingsError
        The file cannot be read, or it is not JSON with members of a notice.
    """
    if path is None:
        return None
    try:
        template = Template(read_file(Path(path), _LARGEST_TEMPLATE).decode())
        json.loads(body(template, dict.fromkeys(MEMBERS, "")))
    except (OSError, ValueError, KeyError, RecursionError) as error:
        raise SettingsError(
            f"setting notify.template: expected a file of JSON with names such as $title, "
            f"got {path}: {error}"
        ) from None
    return template


def channels(
    settings: NotifySettings, template: Template | None, session: aiohttp.ClientSession
) -> Iterable[Channel]:
    """Yield the channels of the settings, with the webhooks' template."""
    if settings.alertmanager is not None:
        yield Alertmanager(settings.alertmanager, session)
    for address in settings.webhook or ():
        yield Webhook(address, template, session)


async def _post(session: aiohttp.ClientSession, address: str, content: bytes) -> None:
    """Post JSON, again and again until it is taken, or refused for good."""
    headers = {"Content-Type": "application/json"}
    # All but host and port may hold a secret.
    place = urlsplit(address).netloc.rpartition("@")[2]
    for attempt in itertools.count():
        try:
            # Behind a redirect, a post becomes a request without the notice.
            async with session.post(
                address, data=content, headers=headers, timeout=_TIMEOUT, allow_redirects=False
            ) as answer:
                if answer.status < 300:
                    return
                if 400 <= answer.status < 500 and answer.status not in _RETRIED:
                    logger.error("%s refuses a notice: status %d", place, answer.status)
                    return
                reason = f"status {answer.status}"
        except (aiohttp.ClientError, TimeoutError) as error:
            reason = type(error).__name__
        logger.warning("%s did not take a notice, it is sent again: %s", place, reason)
        await asyncio.sleep(_RETRY_SECONDS[min(attempt, len(_RETRY_SECONDS) - 1)])
