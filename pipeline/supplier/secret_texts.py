"""What must never be stored or shown, however an answer spells it: the client's secret and its latest tokens."""

import base64
import html
import json
import re
from collections import deque
from collections.abc import Iterator, Sequence
from urllib.parse import quote_plus, unquote, unquote_plus

from pipeline.supplier.bodies import UnreadableBody, inflate, inflated_start
from pipeline.supplier.error_bodies import ERROR_BODY_BYTES

HIDDEN = "(hidden)"
# More tokens would fill memory if each search needed its own.
_TOKENS_KEPT = 100
# A shorter secret is in many texts by chance.
_SHORTEST_IN_ANSWERS = 8
_LEADING_ZEROS = re.compile(r"&#0+(?=[0-9])")
_NO_CHARACTER = re.compile(r"&#[0-9]{8,};?")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))")
# A text may be escaped several times. The longest spelling of a letter is `%255Cu0061`, or a line break in between.
_MOST_ROUNDS = 4
_LONGEST_SPELLING = 12
# Of commas and quotes in a body that is read as JSON, text by text; one with more is read as one text.
_MOST_SIGNS = 20_000
# Without one of these, a text means what it says; zeros are in UTF-16.
_SPELLINGS = (b"\\", b"%", b"&", b"\0")


class SecretTexts:
    """The secret of a client in the forms in which it is sent, and the tokens that it got."""

    def __init__(self, secret: str, basic: str) -> None:
        self._secrets = {secret, quote_plus(secret), base64.b64encode(secret.encode()).decode(), basic} - {""}
        self._tokens: deque[str] = deque(maxlen=_TOKENS_KEPT)
        self._known: list[str] = []
        self._in_answers: list[str] = []
        self._sort()

    def add(self, token: str) -> None:
        """Add a token."""
        self._tokens.append(token)
        self._sort()

    def tokens(self) -> tuple[str, ...]:
        """Return the tokens that are kept."""
        return tuple(self._tokens)

    def redact(self, text: str) -> str:
        """Return a text of ours without secrets; nothing of it if one is there in another spelling."""
        return _redacted(text, self._known)

    def redact_answered(self, text: str) -> str:
        """Return a text of an answer without secrets, like `redact`."""
        return _redacted(text, self._in_answers)

    def _sort(self) -> None:
        # The longest first, as one may be part of another.
        self._known = sorted({*self._secrets, *self._tokens}, key=len, reverse=True)
        self._in_answers = [each for each in self._known if len(each) >= _SHORTEST_IN_ANSWERS]

    def redact_body(self, body: bytes, content_encoding: str, *, limit_bytes: int, is_error: bool) -> tuple[bytes, str]:
        """Return the body of an answer and its encoding: as they are, or plain text without the secrets that it held.

        JSON is decoded first, so that a secret is found however it is escaped. That takes up to three seconds per
        megabyte: of a longer body, only secrets that are written plainly are hidden, and an error is cut if it has
        escapes.
        """
        plain, is_all = _readable(body, content_encoding, limit_bytes)
        hidden: bytes | None
        if plain is None:
            hidden = HIDDEN.encode()
        elif len(plain) <= ERROR_BODY_BYTES:
            hidden = self._without(plain)
        elif not is_all or (is_error and any(mark in plain for mark in _SPELLINGS)):
            hidden = self._beginning(plain)
        else:
            hidden = self._without_plain_ones(plain)
        return (body, content_encoding) if hidden is None else (hidden, "")

    def _beginning(self, plain: bytes) -> bytes:
        """Return the beginning of a long body, without secrets."""
        hidden = self._without(plain[:ERROR_BODY_BYTES]) or plain[:ERROR_BODY_BYTES]
        # Not even a part of a secret may be at the end.
        reach = _LONGEST_SPELLING * len(self._in_answers[0]) if self._in_answers else 0
        return hidden if hidden == HIDDEN.encode() else hidden[: len(hidden) - reach]

    def _without_plain_ones(self, plain: bytes) -> bytes | None:
        """Return a long body without secrets that are written plainly; None: it holds none."""
        hidden = plain
        for secret in self._in_answers:
            hidden = hidden.replace(secret.encode(), HIDDEN.encode())
        return None if hidden == plain else hidden

    def _without(self, plain: bytes) -> bytes | None:
        """Return a body without secrets; None: it holds none."""
        joined = b"".join(plain.split())
        is_plainly_there = any(secret.encode() in joined or secret.encode() in plain for secret in self._in_answers)
        if not is_plainly_there and not any(mark in plain for mark in _SPELLINGS):
            return None
        document = _document(plain)
        if document is not None:
            if all(self.redact_answered(text) == text for text in _texts(document)):
                return None
            try:
                return self._written(document).encode()
            except RecursionError:
                return HIDDEN.encode()
        text = plain.decode("utf-8", "surrogateescape")
        hidden = self.redact_answered(text)
        # UTF-16 and UTF-32 have zeros in between.
        if "\0" in text and self.redact_answered(bare := text.replace("\0", "")) != bare:
            hidden = HIDDEN
        return None if hidden == text else hidden.encode("utf-8", "surrogateescape")

    def _written(self, document: object) -> str:
        """Return a document as JSON without secrets, with its numbers as they were written and every field."""
        if isinstance(document, _Object):
            fields = (f"{self._written(name)}: {self._written(value)}" for name, value in document)
            return f"{{{', '.join(fields)}}}"
        if isinstance(document, list):
            return f"[{', '.join(map(self._written, document))}]"
        if not isinstance(document, str):
            return json.dumps(document)
        hidden = self.redact_answered(document)
        return hidden if isinstance(document, _Number) and hidden == document else json.dumps(hidden)


class _Number(str):
    """A number as it is written, or NaN or Infinity."""

    __slots__ = ()


class _Object(list[tuple[str, object]]):
    """The fields of an object, also those that it has twice."""

    __slots__ = ()


def _redacted(text: str, known: Sequence[str]) -> str:
    for secret in known:
        text = text.replace(secret, HIDDEN)
    for reading in _readings(text):
        if any(secret in reading for secret in known):
            return HIDDEN
    return text


def _readings(text: str) -> Iterator[str]:
    """Yield what a text may mean besides what it says: parts that are joined, or escaped in one or several ways."""
    yield "".join(text.split())
    if any(mark in text for mark in "\\%&"):
        yield unquote_plus(text)
        for _ in range(_MOST_ROUNDS):
            before, text = text, _without_entities(unquote(_ESCAPE.sub(_unescaped, text)))
            if text == before:
                break
            yield text
            yield "".join(text.split())


def _without_entities(text: str) -> str:
    # Python reads no number of more than 4,300 digits, and no character has more than seven.
    return html.unescape(_NO_CHARACTER.sub("\N{REPLACEMENT CHARACTER}", _LEADING_ZEROS.sub("&#", text)))


def _readable(body: bytes, content_encoding: str, limit_bytes: int) -> tuple[bytes | None, bool]:
    """Return a body as text, as far as it can be read whatever its headers say, and whether this is all of it.

    None: nothing of it can be read.
    """
    try:
        plain, is_readable = inflate(body, content_encoding, limit_bytes=limit_bytes), True
    except UnreadableBody:
        plain, is_readable = body, False
    if start := inflated_start(plain, ERROR_BODY_BYTES + 1):
        return start, False
    return (plain, True) if is_readable or _is_text(plain) else (None, False)


def _is_text(plain: bytes) -> bool:
    try:
        plain.decode()
    except UnicodeDecodeError:
        return False
    return True


def _document(plain: bytes) -> object:
    """Return a body's JSON; None: it is none, or reading its many parts would take seconds."""
    if plain.count(b",") + plain.count(b'"') > _MOST_SIGNS:
        return None
    try:
        return json.loads(
            plain, parse_float=_Number, parse_int=_Number, parse_constant=_Number, object_pairs_hook=_Object
        )
    except (ValueError, RecursionError):
        return None


def _texts(document: object) -> Iterator[str]:
    waiting = [document]
    while waiting:
        part = waiting.pop()
        if isinstance(part, _Object):
            for name, value in part:
                waiting += (name, value)
        elif isinstance(part, list):
            waiting += part
        elif isinstance(part, str):
            yield part


def _unescaped(found: re.Match[str]) -> str:
    return chr(int(found[1], 16)) if found[1] else found[2]
