"""Contents of fields that are categories, as numbers that stand for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b
from typing import Any

from .fields import is_beyond, is_number

LONGEST_TEXT = 256
"""First characters of a text that tell which category it is."""

_CODE_BITS = 52
_WHOLE = 2**53


class CategoryCodes(dict[str, float]):
    """The code of each text: a hash of 52 bits, so that it depends on the text alone.

    It remembers the texts that it was asked for, by which messages name categories.
    """

    def __init__(self, texts: Iterable[str] = ()) -> None:
        super().__init__()
        self.texts: dict[float, str] = {}
        for text in texts:
            self[text]

    def __missing__(self, text: str) -> float:
        """Remember a text, and return its code."""
        digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        code = float(int.from_bytes(digest, "big") >> (64 - _CODE_BITS))
        self[text] = code
        self.texts[code] = text
        return code

    def keep(self, codes: Iterable[float]) -> None:
        """Forget all texts but those with these codes."""
        kept = [self.texts[code] for code in codes if code in self.texts]
        self.clear()
        self.texts.clear()
        for text in kept:
            self[text]


def coded(
    get: Callable[[Any], Sequence[Any]], at: Sequence[int], codes: CategoryCodes
) -> Callable[[Any], list[Any]]:
    """Return a function that reads contents like ``get``, with codes in place of categories.

    ``at`` are the positions of the categories among the contents.
    """

    def read(document: Any) -> list[Any]:
        contents = list(get(document))
        for i in at:
            content = contents[i]
            is_text = type(content) is str
            contents[i] = codes[content[:LONGEST_TEXT]] if is_text else code_of(content, codes)
        return contents

    return read


def code_of(content: Any, codes: CategoryCodes) -> Any:
    """Return the code of a field's content; what is no category stays as it is."""
    text = text_of(content)
    return content if text is None else codes[text]


def text_of(content: Any) -> str | None:
    """Return the text of a category; None for what is none: null, a list, an object.

    A number is its shortest text, so that 7 and 7.0 are one category.
    """
    if isinstance(content, str):
        return content[:LONGEST_TEXT]
    if isinstance(content, bool):
        return "true" if content else "false"
    if not is_number(content) or is_beyond(content):
        return None
    if abs(content) < _WHOLE and content == int(content):
        return str(int(content))
    return repr(float(content))
