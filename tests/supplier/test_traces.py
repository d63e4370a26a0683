"""Libraries that trace requests add a trace to each session of aiohttp: those of ours are seen too."""

from __future__ import annotations

import asyncio

import aiohttp

from pipeline.domain.search import Operation


def test_a_trace_of_sessions_sees_each_request_once_and_no_secret(wire, monkeypatch):
    seen, trace, made = [], aiohttp.TraceConfig(), aiohttp.ClientSession.__init__

    async def began(_session, _context, sent) -> None:
        seen.append(("began", f"{sent.method} {sent.url.path}"))

    async def ended(_session, _context, sent) -> None:
        seen.append(("ended", sent.response.status, sent.url))

    trace.on_request_start.append(began)
    trace.on_request_end.append(ended)

    def make(session, *given, **named):
        made(session, *given, trace_configs=[*named.pop("trace_configs", ()), trace], **named)

    monkeypatch.setattr(aiohttp.ClientSession, "__init__", make)

    async def ask():
        supplier = wire.Supplier([wire.reply(500), wire.reply(200, b'{"properties":[]}')])
        async with wire.running(supplier), wire.client(supplier.url) as client:
            return supplier, await client.ask(Operation.MULTI, b"{}")

    supplier, answer = asyncio.run(ask())
    assert answer.http_status == 200
    assert [what[1] for what in seen if what[0] == "began"] == [f"POST {each.path}" for each in supplier.received]
    assert [what[1] for what in seen if what[0] == "ended"] == [200, 500, 200]
    assert wire.secret not in repr(seen)
