"""What must never be stored or shown, however an answer spells it: the client's secret and its latest tokens."""

import base64
import html
import json
import re
from collections import deque
from collections.abc import Iterator, Sequence
from urllib.parse import quote_plus, unquote, unquote_plus

from pipeline.supplier.bodies import UnreadableBody, inflate
from pipeline.supplier.error_bodies import ERROR_BODY_BYTES

HIDDEN = "(hidden)"
# More tokens would fill memory if each search needed its own.
_TOKENS_KEPT = 100
# A shorter secret is in many texts by chance.
_SHORTEST_IN_ANSWERS = 8
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))")
# Without one of these, a text means what it says; zeros are in UTF-16.
_SPELLINGS = (b"\\", b"%", b"&", b"\0")


class SecretTexts:
    """The secret of a client in the forms in which it is sent, and the tokens that it got."""

    def __init__(self, secret: str, basic: str) -> None:
        self._secrets = {secret, quote_plus(secret), base64.b64encode(secret.encode()).decode(), basic} - {""}
        self._tokens: deque[str] = deque(maxlen=_TOKENS_KEPT)

    def add(self, token: str) -> None:
        """Add a token."""
        self._tokens.append(token)

    def tokens(self) -> tuple[str, ...]:
        """Return the tokens that are kept."""
        return tuple(self._tokens)

    def redact(self, text: str) -> str:
        """Return a text of ours without secrets; nothing of it if one is there in another spelling."""
        return _redacted(text, self._known())

    def redact_answered(self, text: str) -> str:
        """Return a text of an answer without secrets, like `redact`."""
        return _redacted(text, self._known(_SHORTEST_IN_ANSWERS))

    def _known(self, shortest: int = 1) -> list[str]:
        # The longest first, as one may be part of another.
        known = {each for each in (*self._secrets, *self._tokens) if len(each) >= shortest}
        return sorted(known, key=len, reverse=True)

    def redact_body(self, body: bytes, content_encoding: str, *, limit_bytes: int) -> tuple[bytes, str]:
        """Return the body of an answer and its encoding: as they are, or plain text without the secrets that it held.

        JSON is decoded first, so that a secret is found however it is escaped.
        """
        try:
            plain, encoding = inflate(body, content_encoding, limit_bytes=limit_bytes), ""
        except UnreadableBody:
            # It is damaged, or its encoding is another than it says.
            plain, encoding = body, content_encoding
        hidden = self._without(plain)
        return (body, content_encoding) if hidden is None else (hidden, encoding)

    def _without(self, plain: bytes) -> bytes | None:
        """Return a body without secrets; None: it holds none."""
        is_there = any(secret.encode() in plain for secret in self._known(_SHORTEST_IN_ANSWERS))
        if not is_there and not any(mark in plain for mark in _SPELLINGS):
            return None
        document = _document(plain)
        if document is None:
            text = plain.decode("utf-8", "surrogateescape")
            hidden = self.redact_answered(text)
            return None if hidden == text else hidden.encode("utf-8", "surrogateescape")
        if not is_there and all(self.redact_answered(text) == text for text in _texts(document)):
            return None
        try:
            return json.dumps(self._mapped(document), ensure_ascii=False).encode("utf-8", "replace")
        except RecursionError:
            return HIDDEN.encode()

    def _mapped(self, document: object) -> object:
        if isinstance(document, dict):
            return {self.redact_answered(name): self._mapped(value) for name, value in document.items()}
        if isinstance(document, list):
            return [self._mapped(value) for value in document]
        return self.redact_answered(document) if isinstance(document, str) else document


def _redacted(text: str, known: Sequence[str]) -> str:
    for secret in known:
        text = text.replace(secret, HIDDEN)
    if any(mark in text for mark in "\\%&"):
        readings = (unquote(text), unquote_plus(text), html.unescape(text), _ESCAPE.sub(_unescaped, text))
        if any(secret in reading for reading in readings for secret in known):
            return HIDDEN
    return text


def _document(plain: bytes) -> object:
    """Return a body's JSON; None: it is none, or so long that it is no error answer, of which texts are read."""
    if len(plain) > ERROR_BODY_BYTES:
        return None
    try:
        return json.loads(plain)
    except (ValueError, RecursionError):
        return None


def _texts(document: object) -> Iterator[str]:
    waiting = [document]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            waiting += [*part, *part.values()]
        elif isinstance(part, list):
            waiting += part
        elif isinstance(part, str):
            yield part


def _unescaped(found: re.Match[str]) -> str:
    return chr(int(found[1], 16)) if found[1] else found[2]
