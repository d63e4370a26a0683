"""Neither the secret nor a token is anywhere but on the wire."""

from __future__ import annotations

import asyncio
import base64
import gzip
import html
import json
import logging
import traceback
from urllib.parse import quote, quote_plus

import pytest

from pipeline.domain.errors import TokenRefused
from pipeline.domain.search import Operation
from pipeline.settings import Settings
from pipeline.supplier.client import SupplierClient
from pipeline.supplier.error_bodies import error_messages
from pipeline.supplier.exchange import Limits

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
    settings = Settings(base_url="https://x.example", client_id="a", client_secret=wire.secret, _env_file=None)
    assert wire.secret not in f"{settings!r} {settings} {settings.model_dump()} {settings.model_dump_json()}"
    assert wire.secret not in f"{SupplierClient.of(settings).__dict__}"
