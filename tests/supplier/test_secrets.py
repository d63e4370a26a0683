"""Neither the secret nor a token is anywhere but on the wire."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import logging
import traceback
from urllib.parse import quote_plus

import pytest

from pipeline.domain.errors import TokenRefused
from pipeline.domain.search import Operation
from pipeline.settings import Settings
from pipeline.supplier.client import SupplierClient
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


@pytest.mark.parametrize("status", [200, 400, 401, 403, 404, 429, 500, 503])
@pytest.mark.parametrize("is_compressed", [False, True])
@pytest.mark.parametrize("is_escaped", [False, True])
def test_an_error_that_repeats_a_secret_lands_without_it_and_keeps_the_rest(wire, status, is_compressed, is_escaped):
    token = "t0ken/with+slashes=="
    said = f"{wire.secret} {quote_plus(wire.secret)} Bearer {token}"
    error = json.dumps({"errors": [{"errorCode": 500, "errorDescription": said, "id": 4711}]}, ensure_ascii=is_escaped)
    body = (
        error.replace("/", "\\/").replace("u00e4", "u00E4").replace("u00f6", "u00F6") if is_escaped else error
    ).encode()
    headers = ()
    if is_compressed:
        body, headers = gzip.compress(body), ("Content-Encoding: gzip",)

    async def ask():
        supplier = wire.Supplier(
            [wire.reply(status, body, headers=headers)] * 2, tokens=[wire.token_reply(token), wire.token_reply(token)]
        )
        async with wire.running(supplier), wire.client(supplier.url, attempts=1) as client:
            return await client.ask(Operation.MULTI, b"{}")

    answer = asyncio.run(ask())
    assert (answer.http_status, answer.content_encoding) == (status, "")
    (landed,) = json.loads(answer.body)["errors"]
    assert landed == {"errorCode": 500, "errorDescription": "(hidden) (hidden) Bearer (hidden)", "id": 4711}


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
