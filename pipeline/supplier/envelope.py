"""An answer as a whole: whether it is one, and what it says about properties that it does not list.

A cell becomes `absent` or `no_offer` because its answer says so, never because nothing was found in it: the answer must
list properties in the documented shape, or give a documented code. Anything else is a failure of the server. The client
uses this to decide whether to retry at once, and the normaliser to decide each cell's status: one decision for both.
"""

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from enum import Enum
from typing import Any

import msgspec

from pipeline.domain.codes import ERROR_CODES, CodeKind
from pipeline.domain.search import Operation
from pipeline.supplier.answer import Failure
from pipeline.supplier.bodies import BYTE_ORDER_MARK, BodyTooLong, UnreadableBody, beginning, inflate, repeats_a_name
from pipeline.supplier.error_bodies import codes_of
from pipeline.supplier.failure_signs import SERVER_CODES, has_message, server_code, speaks_of_failure

# What lists properties, by operation.
LISTING = {Operation.MULTI: "properties", Operation.SINGLE: "property"}

# The codes of the document, and those reserved for it.
_DOCUMENT_CODES = range(1000, 2000)

# Answers with offers begin like this and are not read here: the normaliser reads them, once, in another process, and
# notices if they are wrapped by a gateway.
_OFFERS = {
    Operation.MULTI: re.compile(rb'"properties"\s*:\s*\[\s*\{\s*"(?!err)'),
    Operation.SINGLE: re.compile(rb'"property"\s*:\s*\{\s*"(?!err)'),
}
_BEGINNING_BYTES = 2048

# Answers without offers are short. A longer one is left to the normaliser, which has it requested again if needed.
_SHORT_BYTES = 2 << 20

# More digits than any integer that we could keep; reading many more takes quadratic time.
_MOST_DIGITS = 40


class Rest(Enum):
    """What an answer says about the properties that it does not list."""

    NOT_LISTED = "not_listed"  # a list of properties without them
    CODE = "code"  # a documented code
    NEW_CODE = "new_code"  # a code that may belong to the document and is not in it
    FAILURE = "failure"  # nothing: the server failed


def rest_of(
    codes: Sequence[int],
    *,
    has_errors: bool,
    is_listing: bool,
    failed_code: int | None = None,
    is_failure: bool = False,
) -> tuple[Rest, int | None]:
    """Return what an answer says about the properties that it does not list, and the code that says so.

    `codes` are those of its errors, `failed_code` that of a server's failure anywhere next to the properties, and
    `is_failure` whether it reports errors in a way that the document does not describe.
    """
    failed_code = failed_code or next((code for code in codes if code in SERVER_CODES), None)
    if failed_code is not None:
        return Rest.FAILURE, failed_code
    for kind in (CodeKind.NO_AVAILABILITY, CodeKind.VALIDATION):
        for code in codes:
            if code in ERROR_CODES and ERROR_CODES[code].kind is kind:
                return Rest.CODE, code
    new = next((code for code in codes if code in _DOCUMENT_CODES), None)
    if new is not None:
        return Rest.NEW_CODE, new
    if has_errors or is_failure or not is_listing:
        return Rest.FAILURE, codes[0] if codes else None
    return Rest.NOT_LISTED, None


def beside_listing(document: dict[str, Any], operation: Operation) -> dict[str, Any]:
    """Return an answer without the properties that it lists in the documented shape."""
    name = LISTING[operation]
    kind = list if operation is Operation.MULTI else dict
    return {key: held for key, held in document.items() if key != name or not isinstance(held, kind)}


def speaks_of_other_errors(beside: dict[str, Any], *, is_without_offers: bool) -> bool:
    """Whether anything next to the properties reports errors in a way that the document does not describe.

    If no property has an offer, a message is enough: the properties are requested again, in halves.
    """
    others = {key: held for key, held in beside.items() if key != "errors"}
    return speaks_of_failure(others) or (is_without_offers and has_message(others))


class Repeated(dict[str, Any]):
    """An object that has fields twice, with different values, of which readers would keep one.

    A null counts for nothing: a field with a null and a value has the value.
    """

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.update((name, held) for name, held in pairs if held is not None)
        self.names = frozenset(name for name, held in pairs if held is not None and held != self[name])


def decoded_with_repeats(body: bytes) -> Any:  # noqa: ANN401 - whatever JSON can hold
    """Decode a body like `decoded`, with objects that have fields twice as Repeated."""
    document = decoded(body)
    if not repeats_a_name(body, document):
        return document
    return json.loads(body.decode("utf-8", "surrogateescape"), parse_int=whole_number, object_pairs_hook=object_of)


def repeats_its_envelope(document: object, operation: Operation) -> bool:
    """Whether an answer has one of its outermost fields twice."""
    return isinstance(document, Repeated) and not document.names.isdisjoint({LISTING[operation], "errors"})


def object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of a JSON text, given its fields: as Repeated if it has some twice."""
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    repeated = Repeated(pairs)
    return repeated if repeated.names else dict(repeated)


def decoded(body: bytes) -> Any:  # noqa: ANN401 - whatever JSON can hold
    """Decode a body. Raises msgspec's errors, ValueError or RecursionError if it is not JSON.

    NaN, numbers beyond a double and bytes that are not UTF-8 make msgspec fail on the complete body. The standard
    library accepts them, so that they cost only the part that they are in.
    """
    try:
        return msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        with suppress(ValueError):
            return json.loads(body.decode("utf-8", "surrogateescape"), parse_int=whole_number)
        raise


def whole_number(digits: str) -> int | float:
    """Return a whole number of a JSON text; one that is too long to keep as a double."""
    return int(digits) if len(digits) <= _MOST_DIGITS else float(digits)


def has_offers(operation: Operation, body: bytes, content_encoding: str) -> bool:
    """Whether a body begins like an answer with offers."""
    return operation in _OFFERS and bool(_OFFERS[operation].search(beginning(body, content_encoding, _BEGINNING_BYTES)))


def failure_in(
    operation: Operation, body: bytes, content_encoding: str, *, limit_bytes: int
) -> tuple[Failure | None, str]:
    """Return why a complete 200 is not an answer to a search, with a short text; None: it is one, or may be.

    Cheap: only the beginning of an answer with offers is inflated. Any other is refused beyond `limit_bytes`.
    """
    if has_offers(operation, body, content_encoding):
        return None, ""
    try:
        plain = inflate(body, content_encoding, limit_bytes=min(_SHORT_BYTES, limit_bytes))
    except BodyTooLong:
        return _failure_of_size(body, content_encoding, limit_bytes)
    except UnreadableBody as error:
        return Failure.NOT_JSON, f"HTTP 200 with a body that cannot be read: {error}"
    try:
        document = decoded_with_repeats(plain.removeprefix(BYTE_ORDER_MARK))
    except (msgspec.MsgspecError, ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        return Failure.NOT_JSON, f"HTTP 200 with {len(plain)} bytes that are not a JSON object"
    if _has_properties(document.get(LISTING[operation]), operation):
        return None, ""
    return _without_properties(document, operation)


def _failure_of_size(body: bytes, content_encoding: str, limit_bytes: int) -> tuple[Failure | None, str]:
    try:
        inflate(body, content_encoding, limit_bytes=limit_bytes)
    except BodyTooLong:
        return Failure.BODY_TOO_LARGE, f"HTTP 200 with more than {limit_bytes} bytes"
    except UnreadableBody:
        # The normaliser says why.
        pass
    return None, ""


def _without_properties(document: dict[str, Any], operation: Operation) -> tuple[Failure | None, str]:
    is_repetitive = repeats_its_envelope(document, operation)
    said, code = _rest(document, operation, is_repetitive=is_repetitive)
    if said is not Rest.FAILURE:
        return None, ""
    return Failure.SERVER_ERROR, f"HTTP 200 with {_words(code, document, is_repetitive=is_repetitive)}"


def _rest(document: dict[str, Any], operation: Operation, *, is_repetitive: bool) -> tuple[Rest, int | None]:
    errors = document.get("errors")
    return rest_of(
        codes_of(errors),
        has_errors=errors not in (None, []),
        is_listing=document.get(LISTING[operation]) == [] and operation is Operation.MULTI,
        failed_code=server_code(document),
        is_failure=is_repetitive or speaks_of_other_errors(beside_listing(document, operation), is_without_offers=True),
    )


def _words(code: int | None, document: dict[str, Any], *, is_repetitive: bool) -> str:
    if code is not None:
        return f"error {code}"
    if speaks_of_failure(document):
        return "errors without a code"
    if is_repetitive:
        return "a field twice"
    return "a message and no properties" if has_message(document) else "neither properties nor a documented code"


def tells_of_a_property(value: object) -> bool:
    """Whether a value is a property. Every field is optional, but one without id and room stays says nothing."""
    return isinstance(value, dict) and any(value.get(name) is not None for name in ("propertyId", "roomStays"))


def _has_properties(listed: object, operation: Operation) -> bool:
    if operation is Operation.MULTI:
        return isinstance(listed, list) and any(map(tells_of_a_property, listed))
    return tells_of_a_property(listed)
