"""Answers that break a careless reader: readable oddities, unreadable bodies, bodies far too large."""

import zlib
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, Final, NamedTuple

import msgspec

from pipeline.sandbox.faults.faults import Faults

_JSON: Final = b"application/json"
_MEGABYTE: Final = 1 << 20
READABLE: Final = frozenset({"extra_fields", "number_as_string", "duplicate_keys", "both_keys"})
"""Kinds in which every product can still be read; they count as served."""


class Spoiled(NamedTuple):
    """A spoiled answer. `chunks` are sent in turn; `encoding` is a Content-Encoding."""

    status: int
    content_type: bytes
    chunks: Callable[[], Iterator[bytes]]
    headers: tuple[tuple[bytes, bytes], ...] = ()
    encoding: bytes | None = None
    length: int | None = None


def spoil(kind: str, body: bytes, path: str, faults: Faults) -> Spoiled:
    """Return the intact 200 `body`, spoiled by one of `faults.GARBAGE_KINDS`."""
    if kind == "html_200":
        page = b"<!doctype html><html><body><h1>Scheduled maintenance</h1></body></html>"
        return _whole(page, content_type=b"text/html; charset=utf-8")
    if kind == "redirect":
        target = faults.redirect_to.rstrip("/").encode() + path.encode()
        return _whole(b"", status=302, headers=((b"location", target),))
    if kind == "bomb":
        packed = _bomb(faults.bomb_mb)
        return Spoiled(200, _JSON, lambda: iter((packed,)), encoding=b"gzip", length=len(packed))
    if kind == "huge_body":
        return Spoiled(200, _JSON, lambda: _huge(faults.huge_mb))
    return _whole(_REWRITTEN[kind](body))


def _whole(
    body: bytes, status: int = 200, content_type: bytes = _JSON, headers: tuple[tuple[bytes, bytes], ...] = ()
) -> Spoiled:
    return Spoiled(status, content_type, lambda: iter((body,)), headers, length=len(body))


@lru_cache(maxsize=2)
def _bomb(megabytes: int) -> bytes:
    """Return packed JSON, valid and mostly blanks, that unpacks to a thousand times its size."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    blanks = b" " * _MEGABYTE
    parts = [packer.compress(b'{"properties":[')]
    parts += [packer.compress(blanks) for _ in range(megabytes)]
    return b"".join([*parts, packer.compress(b"]}"), packer.flush()])


def _huge(megabytes: int) -> Iterator[bytes]:
    yield b'{"properties":['
    blanks = b" " * _MEGABYTE
    for _ in range(megabytes):
        yield blanks
    yield b"]}"


def _products(form: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for held in form.get("properties") or [form.get("property")]:
        for room in (held or {}).get("roomStays") or ():
            yield from room.get("products") or [product for product in (room.get("product"),) if product]


def _on_products(change: Callable[[int, dict[str, Any]], None]) -> Callable[[bytes], bytes]:
    def rewrite(body: bytes) -> bytes:
        form = msgspec.json.decode(body)
        for number, product in enumerate(_products(form)):
            change(number, product)
        return msgspec.json.encode(form)

    return rewrite


def _wrong_type(number: int, product: dict[str, Any]) -> None:
    # Every third product: the others stay intact.
    if number % 3 == 0:
        wrong: tuple[tuple[str, object], ...] = (
            ("productId", "not a number"),
            ("boardBasis", ["Room Only"]),
            ("charges", 199.5),
            ("promotions", "10% off"),
            ("cancelPenalties", {"penaltyWindow": 24}),
            ("charges", {"total": {"amount": 10}}),
        )
        name, value = wrong[number // 3 % len(wrong)]
        product[name] = value


def _extra_field(number: int, product: dict[str, Any]) -> None:
    product["loyaltyPoints"] = number
    if isinstance(product.get("charges"), dict):
        product["charges"]["netPrice"] = {"amount": 1.5, "kind": "NEW"}


def _number_as_string(_number: int, product: dict[str, Any]) -> None:
    product["productId"] = str(product.get("productId"))
    charges = product.get("charges")
    if isinstance(charges, dict):
        product["charges"] = {
            name: f"{value:.2f}" if isinstance(value, int | float) else value for name, value in charges.items()
        }


def _error_beside(body: bytes) -> bytes:
    """Keep the first property and report an error instead of the others."""
    form = msgspec.json.decode(body)
    if form.get("properties"):
        form["properties"] = form["properties"][:1]
    return msgspec.json.encode(form | {"errors": [_SERVER_ERROR]})


def _error_in_property(body: bytes) -> bytes:
    """Replace the offers of the last property with an error."""
    form = msgspec.json.decode(body)
    held = (form.get("properties") or [form.get("property")])[-1]
    if held:
        held["roomStays"], held["error"] = None, _SERVER_ERROR
    return msgspec.json.encode(form)


_SERVER_ERROR: Final = {"errorCode": 500, "errorDescription": "An unexpected error occurred"}
_ERRORS: Final = b'{"errors":[{"errorCode":500,"errorDescription":"An unexpected error occurred"}]}'
_REWRITTEN: Final[dict[str, Callable[[bytes], bytes]]] = {
    "empty_200": lambda _body: b"",
    "wrong_types": _on_products(_wrong_type),
    "extra_fields": _on_products(_extra_field),
    "number_as_string": _on_products(_number_as_string),
    "duplicate_keys": lambda body: body.replace(b'"charges":{"total":', b'"charges":{"total":1,"total":'),
    "invalid_utf8": lambda body: body.replace(b'"name":"', b'"name":"\xff\xfe'),
    "not_a_number": lambda body: body.replace(b'"total":', b'"total":NaN,"was":', 1),
    "deep_nesting": lambda _body: b'{"properties":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "both_keys": lambda body: body[:-1] + b',"errors":[{"code":1023,"message":"No offers for a part of the request"}]}',
    "other_error_shape": lambda _body: b'{"errors":[{"errorCode":1025,"errorDescription":"Nothing available"}]}',
    "bare_errors": lambda _body: b'{"errors":[{"code":1025},{"code":null,"message":null},null]}',
    "null_envelope": lambda body: body[: body.index(b":")] + b":null}",
    "empty_object": lambda _body: b"{}",
    "cut_json": lambda body: body[: len(body) // 2],
    "error_200": lambda _body: _ERRORS,
    "nested_error": lambda _body: b'{"response":' + _ERRORS + b"}",
    "capital_error": lambda _body: b'{"Errors":[{"ErrorCode":500,"ErrorDescription":"An unexpected error occurred"}]}',
    "long_error": lambda _body: _ERRORS.replace(b"unexpected", b"unexpected, truly unexpected" * 4000),
    "late_error": lambda _body: b" " * 600 + b'{"trace":"' + b"0" * 600 + b'",' + _ERRORS[1:],
    "utf16_error": lambda _body: _ERRORS.decode().encode("utf-16"),
    "error_beside": _error_beside,
    "error_in_property": _error_in_property,
}
