"""What the pages answer, and how it is sent to readers that may be slow."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson
from aiohttp.web import Request, StreamResponse

# A reader that takes longer has stopped reading, or would occupy its place for too long.
_SEND_SECONDS = 10.0
# Of an answer, no more than about this lies in the worker's memory for each slow reader.
_PIECE_BYTES = 64 * 1024
# Smaller pages are sent sooner than they are compressed.
_COMPRESS_BYTES = 16 * 1024
# The fastest level: metrics shrink to a twentieth.
_COMPRESS_LEVEL = 1

_JSON = {"Content-Type": "application/json"}


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer: its bytes, also compressed if that is worth while, its headers and status."""

    content: bytes
    headers: Mapping[str, str] = field(default_factory=lambda: _JSON)
    status: int = 200
    compressed: bytes | None = None


def json_answer(data: Any, status: int = 200) -> Answer:
    """Return data as JSON; NaN, which stands for what is not known, becomes null."""
    return Answer(orjson.dumps(data), status=status)


def text_answer(text: str, status: int = 200) -> Answer:
    """Return plain text."""
    return Answer(text.encode(), {"Content-Type": "text/plain; charset=utf-8"}, status)


def refusal(status: int, reason: str, **headers: str) -> Answer:
    """Return why there is no such answer."""
    content = orjson.dumps({"status": "refused", "reason": reason})
    return Answer(content, {**_JSON, **headers}, status)


async def compress(answer: Answer) -> Answer:
    """Return an answer with its compressed bytes if it is large."""
    content = answer.content
    if len(content) < _COMPRESS_BYTES:
        return answer
    compressed = await asyncio.to_thread(gzip.compress, content, _COMPRESS_LEVEL, mtime=0)
    return Answer(content, answer.headers, answer.status, compressed)


async def send(request: Request, answer: Answer) -> StreamResponse:
    """Send an answer, and cut off a reader that does not take it in time."""
    response = StreamResponse(status=answer.status, headers=answer.headers)
    content = answer.content
    if answer.compressed is not None:
        response.headers.add("Vary", "Accept-Encoding")
        if "gzip" in request.headers.get("Accept-Encoding", ""):
            response.headers["Content-Encoding"] = "gzip"
            content = answer.compressed
    response.content_length = len(content)
    try:
        async with asyncio.timeout(_SEND_SECONDS):
            await response.prepare(request)
            if request.method != "HEAD":
                for begin in range(0, len(content), _PIECE_BYTES):
                    await response.write(content[begin : begin + _PIECE_BYTES])
            await response.write_eof()
    except TimeoutError:
        if request.transport is not None:
            request.transport.abort()
    return response
