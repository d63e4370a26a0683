"""Neither the secret nor a token is anywhere but on the wire."""

from __future__ import annotations

import asyncio
import base64
import gzip
import hashlib
import html
import json
import logging
import traceback
import zlib
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from pipeline.domain.errors import TokenRefused
from pipeline.domain.search import Operation
from pipeline.settings import Settings
from pipeline.supplier.client import SupplierClient
from pipeline.supplier.error_bodies import error_messages
from pipeline.supplier.exchange import Limits
from pipeline.supplier.secret_texts import SecretTexts

TOKEN = "t0ken-that-nobody-may-see"
GOOD = b'{"properties": []}'


def forms_of(wire):
    pair = f"{quote_plus(wire.client_id)}:{quote_plus(wire.secret)}"
    return [wire.secret, quote_plus(wire.secret), base64.b64encode(pair.encode()).decode(), TOKEN]


def test_no_repr_log_error_or_traceback_holds_a_secret(wire, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    echo = f'{{"error": "{wire.secret}", "error_description": "{TOKEN}"}}'.encode()
    seen: list[str] = []

    async def one_of_each():
        supplier = wire.Supplier(
            [
                wire.reply(500, b"{}"),
                wire.Reply(b"", "reset"),
                wire.reply(302, headers=(f"Location: http://x/{TOKEN}",)),
                wire.reply(200, GOOD, length=99, then="close"),
                wire.reply(200, GOOD),
                wire.reply(401, b"{}"),
            ],
            tokens=[wire.token_reply(TOKEN), wire.reply(400, echo)],
        )
        async with wire.running(supplier), wire.client(supplier.url, attempts=2, limits=Limits(60, 60, 9999)) as client:
            seen.extend(map(repr, (client, client.__dict__, client._auth, client._auth._token)))
            for _ in range(3):
                answer = await client.ask(Operation.MULTI, b"{}")
                seen.extend((repr(answer), answer.failure_detail, repr(answer.headers_of_interest)))
            seen.append(repr(client._auth._token))
            await client.ask(Operation.MULTI, b"{}")

    with pytest.raises(TokenRefused) as caught:
        asyncio.run(one_of_each(), debug=True)
    error = caught.value
    seen.extend((str(error), repr(error), *traceback.format_exception(error)))
    seen.extend(repr(link) for link in (error.__cause__, error.__context__))
    seen.extend((caplog.text, *capfd.readouterr()))
    everything = "\n".join(seen)
    assert "(hidden)" in everything
    for form in forms_of(wire):
        assert form not in everything


B64_TOKEN = "TKzz.aa+bb/cc-LEAKED=="


def all_escaped(text):
    return "".join(f"\\u{ord(letter):04X}" for letter in text)


def document_of(said, code=500):
    return {"errors": [{"errorCode": code, "errorDescription": said, "id": 4711}]}


# How services write the same JSON text.
SPELLINGS = {
    "plain": lambda error: json.dumps(error, ensure_ascii=False).encode(),
    "ascii": lambda error: json.dumps(error).encode(),
    "slashes": lambda error: json.dumps(error).replace("/", "\\/").encode(),
    "equals": lambda error: json.dumps(error).replace("=", "\\u003d").encode(),
    "plus": lambda error: json.dumps(error).replace("+", "\\u002B").replace("u00e4", "u00E4").encode(),
    "letters": lambda error: json.dumps(error).replace(B64_TOKEN, all_escaped(B64_TOKEN)).encode(),
    "utf-16": lambda error: json.dumps(error).encode("utf-16"),
}


def answer_to(wire, operation, status, body, *headers, token=B64_TOKEN):
    async def ask():
        replies = [wire.reply(status, body, headers=headers)] * 2
        supplier = wire.Supplier(replies, tokens=[wire.token_reply(token), wire.token_reply(token)])
        limits = Limits(60, 60, 1 << 22)
        async with wire.running(supplier), wire.client(supplier.url, attempts=1, limits=limits) as client:
            return await client.ask(operation, b"{}")

    return asyncio.run(ask())


@pytest.mark.parametrize("status", [200, 400, 401, 404, 429, 500, 503])
@pytest.mark.parametrize("is_compressed", [False, True])
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_an_error_that_repeats_a_secret_lands_without_it_and_keeps_the_rest(wire, status, is_compressed, spelling):
    said = f"{wire.secret} {quote_plus(wire.secret)} Bearer {B64_TOKEN}"
    body, headers = SPELLINGS[spelling](document_of(said)), ()
    if is_compressed:
        body, headers = gzip.compress(body), ("Content-Encoding: gzip",)
    answer = answer_to(wire, Operation.MULTI, status, body, *headers)
    assert (answer.http_status, answer.content_encoding) == (status, "")
    assert json.loads(answer.body) == document_of("(hidden) (hidden) Bearer (hidden)")


@pytest.mark.parametrize("code", [500, 1023, 1099])
@pytest.mark.parametrize("operation", Operation)
def test_a_200_without_offers_lands_without_a_secret_whatever_its_code(wire, operation, code):
    answer = answer_to(wire, operation, 200, json.dumps(document_of(f"not sold {B64_TOKEN}", code)).encode())
    assert json.loads(answer.body) == document_of("not sold (hidden)", code)


@pytest.mark.parametrize("escape", [quote, html.escape, lambda text: json.dumps(json.dumps(f"{text}/"))])
def test_a_text_with_a_secret_in_another_spelling_is_hidden_as_a_whole(wire, escape):
    token = "a<b&c'd/e%f+g=="
    said = escape(token)
    assert token not in said or escape not in (quote, html.escape)
    answer = answer_to(wire, Operation.MULTI, 400, json.dumps(document_of(f"no {said}", 1001)).encode(), token=token)
    (landed,) = json.loads(answer.body)["errors"]
    assert token not in landed["errorDescription"]
    assert said not in landed["errorDescription"]


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (f"<p>{B64_TOKEN}</p>".encode(), ()),
        (f"<p>{B64_TOKEN}</p>".encode(), ("Content-Encoding: utf-8",)),
        (f"<p>{B64_TOKEN}</p>".encode() + b"x" * (1 << 20), ()),
        (b"{}", (f"X-Request-Id: Bearer {B64_TOKEN}", f"Content-Type: text/{B64_TOKEN}")),
    ],
    ids=["page", "mislabelled", "large", "headers"],
)
def test_neither_pages_nor_headers_keep_a_secret(wire, body, headers):
    answer = answer_to(wire, Operation.MULTI, 400, body, *headers)
    kept = [answer.body.decode(), answer.content_type, *answer.headers_of_interest.values()]
    assert not any(B64_TOKEN in text for text in kept)
    assert any("(hidden)" in text for text in kept)


JWT = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9." + "kD7-x_Q2" * 30 + ".sflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c"


@pytest.mark.parametrize("padding", [0, 1, 150, 198])
def test_of_a_header_that_is_cut_no_part_of_a_secret_is_left(wire, padding):
    said = f"{'x' * padding} {JWT}"
    answer = answer_to(wire, Operation.MULTI, 200, b"<p>", f"X-Request-Id: {said}", f"Content-Type: {said}", token=JWT)
    kept = [answer.failure_detail, answer.content_type, *answer.headers_of_interest.values()]
    assert not any(JWT[:8] in text for text in kept)
    assert len(answer.headers_of_interest["x-request-id"]) <= 200


def percent(text):
    return "".join(f"%{ord(letter):02X}" for letter in text)


@pytest.mark.parametrize(
    "spelled",
    [
        lambda text: text.replace("+", "%2B").replace("=", "&#61;"),
        lambda text: percent(percent(text)),
        lambda text: html.escape(all_escaped(text)),
        lambda text: f"{text[:9]}\n   {text[9:]}",
        lambda text: percent(f"{text[:9]}\r\n{text[9:]}"),
    ],
    ids=["mixed", "percent twice", "escaped twice", "over two lines", "over two lines, escaped"],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-be", "utf-32"])
@pytest.mark.parametrize("wrap", ["<p>{}</p>", '{{"errors": [{{"errorCode": 1001, "message": "{}"}}]}}'])
def test_a_page_or_error_with_a_secret_in_any_mix_of_spellings_lands_without_it(wire, spelled, encoding, wrap):
    said = spelled(B64_TOKEN)
    body = wrap.format(said).encode(encoding)
    answer = answer_to(wire, Operation.MULTI, 500, body)
    assert b"(hidden)" in answer.body
    for part in (said, B64_TOKEN[:9], percent(B64_TOKEN[:4])):
        assert part.encode() not in answer.body.replace(b"\0", b"")


# Bytes that do not compress.
NOISE = b"".join(hashlib.sha256(bytes([number])).digest() for number in range(64))


def damaged(body):
    return body[:-8] + b"\0" * 4 + body[-4:]


@pytest.mark.parametrize(
    ("packed", "label"),
    [
        (gzip.compress, ""),
        (gzip.compress, "br"),
        (zlib.compress, ""),
        (lambda body: damaged(gzip.compress(body)), "gzip"),
        (lambda body: gzip.compress(body)[:-9], "gzip"),
        (lambda body: gzip.compress(body) + b"and more", "gzip"),
    ],
    ids=["no label", "another label", "zlib without label", "wrong checksum", "cut short", "with a rest"],
)
def test_a_compressed_page_lands_without_a_secret_whatever_its_label_and_damage(wire, packed, label):
    body = packed(b"<p>" + B64_TOKEN.encode() + b"</p>" + NOISE.hex().encode())
    answer = answer_to(wire, Operation.MULTI, 500, body, *((f"Content-Encoding: {label}",) if label else ()))
    assert b"<p>(hidden)</p>" in answer.body
    assert answer.content_encoding == ""


DIGITS = some.sampled_from(["1", "0", "9"]).flatmap(lambda digit: some.just(digit * 5000))
PIECES = some.lists(
    some.one_of(
        some.text(max_size=5),
        some.sampled_from(
            ["&#", "&#x", "&amp;#", "%26%23", "\\u0026#", "\\", "%", "&", ";", "\ud800", "\0", '"', "{", "["]
        ),
        DIGITS,
    ),
    max_size=8,
).map("".join)


@given(PIECES)
@settings(max_examples=300, deadline=None)
def test_no_text_or_body_stops_the_search_for_secrets(text):
    secrets = SecretTexts("s3cret-value-9", "abcdefghijkl")
    secrets.redact(text)
    assert "s3cret-value-9" not in secrets.redact_answered(f"{text} s3cret-value-9 {text}")
    for body in (text.encode("utf-8", "surrogatepass"), json.dumps({"errors": [{"message": text}]}).encode()):
        secrets.redact_body(body, "", limit_bytes=1 << 20, is_error=True)


@pytest.mark.parametrize("spelled", ["&#0000000116;0ken-in-entities", "&#x0000074;0ken-in-entities"])
def test_entities_with_leading_zeros_are_seen_through(spelled):
    secrets = SecretTexts("t0ken-in-entities", "abcdefghijkl")
    assert secrets.redact_answered(f"{spelled} &#{'1' * 5000};") == "(hidden)"


def test_an_error_that_cannot_be_read_at_all_is_hidden(wire):
    answer = answer_to(wire, Operation.MULTI, 500, NOISE, "Content-Encoding: br")
    assert (answer.body, answer.content_encoding) == (b"(hidden)", "")


def test_around_a_secret_an_answer_keeps_its_numbers_and_fields_as_they_were_written(wire):
    numbers = "[99999999999999.99991, -0, NaN, null, true]"
    body = f'{{"a": 1234567890123.12345678, "a": 1e999, "b": {numbers}, "t": "{B64_TOKEN}"}}'
    answer = answer_to(wire, Operation.MULTI, 500, body.encode())
    assert answer.body.decode() == body.replace(B64_TOKEN, "(hidden)")


@pytest.mark.parametrize("unit", [b"%61", b"\\u0061", b"&#97;", b"%2561", b"<p>&"])
def test_of_a_long_error_no_more_is_searched_and_kept_than_can_be_read_soon(wire, unit):
    """Reading all 64 MB of such a page would take a minute, in which nothing else is done."""
    long = B64_TOKEN.encode() + b"x" * ((1 << 20) - 2 * len(B64_TOKEN)) + percent(B64_TOKEN).encode() + unit * (1 << 18)
    body = gzip.compress(long)
    answer = answer_to(wire, Operation.MULTI, 500, body, "Content-Encoding: gzip")
    assert answer.body.startswith(b"(hidden)xx")
    assert len(answer.body) <= 1 << 20
    assert b"%54%4B" not in answer.body
    kept = answer_to(wire, Operation.MULTI, 200, body, "Content-Encoding: gzip")
    assert kept.body.startswith(b"(hidden)xx")
    assert len(kept.body) > 1 << 20


def test_of_an_error_next_to_prices_no_text_that_follows_a_word_for_a_secret_is_read():
    said = f'no price: Bearer {B64_TOKEN}, token="abc123456789"; the token is not valid, ask for order 4711-123456'
    body = {"properties": [{"propertyId": 1}], "errors": [{"code": 1023, "message": said}]}
    (read,) = error_messages(json.dumps(body).encode())
    assert read == 'no price: Bearer (hidden), token="(hidden)"; the token is not valid, ask for order 4711-123456'


def test_a_short_token_is_not_looked_for_in_answers_where_it_is_by_chance(wire):
    body = b'{"errors": [{"errorCode": 1001, "message": "\\ud800 not on sale & 5% off"}]}'
    answer = answer_to(wire, Operation.QUOTE, 200, body, "X-Request-Id: tttt", token="t")
    assert (answer.body, answer.content_encoding) == (body, "")
    assert answer.headers_of_interest["x-request-id"] == "tttt"


@pytest.mark.parametrize("encoding", ["", "gzip"])
def test_an_error_without_a_secret_lands_as_it_arrived(wire, encoding):
    body = b'{"errors": [{"errorCode": 1001}]}'
    body = gzip.compress(body) if encoding else body
    headers = (f"Content-Encoding: {encoding}",) if encoding else ()

    async def ask():
        supplier = wire.Supplier([wire.reply(400, body, headers=headers)], tokens=[wire.token_reply(TOKEN)])
        async with wire.running(supplier), wire.client(supplier.url, attempts=1) as client:
            return await client.ask(Operation.MULTI, b"{}")

    answer = asyncio.run(ask())
    assert (answer.body, answer.content_encoding) == (body, encoding)


def test_settings_show_no_secret(wire):
    shown = Settings(base_url="https://x.example", client_id="a", client_secret=wire.secret, _env_file=None)
    assert wire.secret not in f"{shown!r} {shown} {shown.model_dump()} {shown.model_dump_json()}"
    assert wire.secret not in f"{SupplierClient.of(shown).__dict__}"
