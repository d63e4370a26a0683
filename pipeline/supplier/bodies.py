"""Response bodies: inflating them within a limit, recognising JSON, and counting its field names without decoding."""

import re
from collections.abc import Iterator

import msgspec
import numpy as np
import numpy.typing as npt

# Nearly three times as fast as the standard library's zlib, which would take a tenth of the time for an answer.
from isal import isal_zlib

_GZIP_OR_ZLIB = isal_zlib.MAX_WBITS | 32
# Its stub declares the class as an instance.
_DAMAGED: type[Exception] = isal_zlib.error  # type: ignore[assignment]
_START_BYTES = 64
_BLANK = b" \t\r\n"
_GZIP, _ZLIB = b"\x1f\x8b", b"x"
_PART_BYTES = 256
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_PLAIN = frozenset({"", "identity"})
_DEFLATED = frozenset({"gzip", "x-gzip", "deflate"})
# Servers send one member, or one per cached part. Each further one copies the rest, which takes quadratic time.
_MOST_MEMBERS = 1000


class UnreadableBody(ValueError):
    """A body cannot be decompressed, or only to more than the limit."""


class BodyTooLong(UnreadableBody):
    """A body is longer than the limit once it is decompressed."""


def inflate(body: bytes, content_encoding: str, *, limit_bytes: int) -> bytes:
    """Return the body without its content encoding.

    Raises UnreadableBody for an encoding that was not requested, damaged or cut bytes, or more than `limit_bytes`.
    """
    encoding = content_encoding.strip().lower()
    if encoding in _PLAIN:
        plain, rest = body[: limit_bytes + 1], b""
    elif encoding in _DEFLATED:
        plain, rest = _inflated(body, limit_bytes)
    else:
        raise UnreadableBody(f"content encoding {encoding[:40]!r} was not asked for")
    if rest or len(plain) > limit_bytes:
        raise BodyTooLong(f"body of more than {limit_bytes} bytes")
    return plain


def is_plainly_not_json(content_type: str, content_encoding: str, body: bytes) -> bool:
    """Whether the headers and the first byte show that this is not a JSON object.

    Cheap, and on the safe side: a compressed body that is labelled as JSON is believed.
    """
    if content_encoding.strip().lower() not in _PLAIN and "json" in content_type.lower():
        return not body
    # Servers mislabel JSON too, so look at the first bytes.
    start = beginning(body, content_encoding, _START_BYTES)
    first = start.removeprefix(BYTE_ORDER_MARK).lstrip(_BLANK)[:1]
    # Only blanks so far: the rest is read later.
    return first != b"{" and (bool(first) or len(start) < _START_BYTES)


def beginning(body: bytes, content_encoding: str, size: int) -> bytes:
    """Return at most the first `size` bytes of a body, inflated; none if it cannot be inflated."""
    if content_encoding.strip().lower() in _PLAIN:
        return body[:size]
    try:
        return isal_zlib.decompressobj(_GZIP_OR_ZLIB).decompress(body[: size + 1024], size)
    except _DAMAGED:
        return b""


def inflated_start(body: bytes, limit_bytes: int) -> bytes:
    """Return at most the first `limit_bytes` of a body that is compressed, before any damage; none if it is not."""
    if not (body.startswith(_GZIP) or (body[:1] == _ZLIB and int.from_bytes(body[:2], "big") % 31 == 0)):
        return b""
    member, parts, size = isal_zlib.decompressobj(_GZIP_OR_ZLIB), [], 0
    for at in range(0, len(body), _PART_BYTES):
        if size >= limit_bytes or member.eof:
            break
        try:
            parts.append(member.decompress(member.unconsumed_tail + body[at : at + _PART_BYTES], limit_bytes - size))
        except _DAMAGED:
            break
        size += len(parts[-1])
    return b"".join(parts)


def _inflated(body: bytes, limit_bytes: int) -> tuple[bytes, bytes]:
    """Return at most one byte more than the limit, and the rest of the input."""
    parts: list[bytes] = []
    size = 0
    # A gzip body may consist of several members.
    for _ in range(_MOST_MEMBERS):
        member = isal_zlib.decompressobj(_GZIP_OR_ZLIB)
        try:
            parts.append(member.decompress(body, limit_bytes + 1 - size))
        except _DAMAGED as error:
            raise UnreadableBody(f"damaged {error}") from None
        size += len(parts[-1])
        if size > limit_bytes:
            return b"".join(parts), b""
        if not member.eof:
            raise UnreadableBody("compressed body breaks off")
        body = member.unused_data
        if not body:
            return b"".join(parts), b""
    raise UnreadableBody(f"compressed body of more than {_MOST_MEMBERS:,} members")


# In JSON, the quote before a text, or within one, never follows a letter or digit; that after a name does.
_NAME = re.compile(rb'(?<=[0-9A-Za-z])"\s*:\s*(null)?')
_IS_LAST = np.array([bytes([octet]).isalnum() for octet in range(256)])
_QUOTE, _COLON, _SPACE, _NULL = b'": n'
# Positions of a part of the body are held at once.
_SCANNED_BYTES = 1 << 20
# Names have no or one space before their colon; those with more are checked one by one.
_USUAL_SPACES = 4


def names_in(body: bytes) -> int:
    """Return how many names that end in a letter or digit are in a JSON body.

    Spacing makes no difference, and nothing within a text counts: a count that is off by one could make up for a name
    that comes twice.
    """
    return sum(map(len, _colons_of_names(body)))


def nulls_in(body: bytes) -> int:
    """Return how many of these names are null; a null after more than one space is not counted."""
    octets = np.frombuffer(body, np.uint8)
    nulls = 0
    for colons in _colons_of_names(body):
        after, then = (octets[np.minimum(colons + steps, len(body) - 1)] for steps in (1, 2))
        nulls += int(np.count_nonzero((after == _NULL) | ((after == _SPACE) & (then == _NULL))))
    return nulls


def _colons_of_names(body: bytes) -> Iterator[npt.NDArray[np.int64]]:
    octets = np.frombuffer(body, np.uint8)
    for first in range(0, len(body), _SCANNED_BYTES):
        colons = first + np.flatnonzero(octets[first : first + _SCANNED_BYTES] == _COLON)
        before = colons - 1
        for _ in range(_USUAL_SPACES):
            kinds = octets[before]
            yield colons[(kinds == _QUOTE) & _IS_LAST[octets[before - 1]]]
            is_space = kinds <= _SPACE
            colons, before = colons[is_space], before[is_space] - 1
            if not len(before):
                break
        yield colons[[_ends_a_name(body, int(end) + 1) for end in before]]


def _ends_a_name(body: bytes, end: int) -> bool:
    """Return whether a name ends at `end` or some spaces before it, without copying all that is before them."""
    reach = _START_BYTES
    while len(text := body[max(end - reach, 0) : end].rstrip(_BLANK)) < 2 and reach < end:
        reach *= 2
    return text.endswith(b'"') and text[-2:-1].isalnum()


def names_and_nulls_in(text: bytes) -> tuple[int, int]:
    """Return how many such names are in a short JSON text, and how many of them are null."""
    found = _NAME.findall(text)
    return len(found), found.count(b"null")


def repeats_a_name(body: bytes, document: object) -> bool:
    """Whether an object in a body has, or may have, a name twice. `document` is the decoded body."""
    try:
        kept = msgspec.json.encode(document)
    except (msgspec.MsgspecError, OverflowError, UnicodeEncodeError, ValueError):
        return True
    return names_in(body) != names_in(kept)
