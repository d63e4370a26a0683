"""Neither the secret nor a token is anywhere but on the wire."""

from __future__ import annotations

import asyncio
import base64
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


def test_settings_show_no_secret(wire):
    settings = Settings(base_url="https://x.example", client_id="a", client_secret=wire.secret, _env_file=None)
    assert wire.secret not in f"{settings!r} {settings} {settings.model_dump()} {settings.model_dump_json()}"
    assert wire.secret not in f"{SupplierClient.of(settings).__dict__}"
