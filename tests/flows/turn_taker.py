"""A run that waits for its turn at a supplier and sends paced requests there: ADDRESS RATE REQUESTS NAME."""

from __future__ import annotations

import asyncio
import sys

import httpx

from flows.turns import turn_at_supplier
from pipeline.settings import Settings
from pipeline.supplier.connection import SLOT, PooledTransport
from pipeline.supplier.exchange import exchange
from pipeline.supplier.pacer import Pacer


async def send(address: str, rate: float, requests: int, name: str) -> None:
    """Send them as the supplier's client does: four in flight, each in its slot."""
    pacer, in_flight = Pacer(rate), asyncio.Semaphore(4)
    async with PooledTransport(address) as transport:

        async def one() -> None:
            async with in_flight:
                slot = await pacer.slot()
                request = httpx.Request("GET", f"{address}/{name}", extensions={SLOT: slot, "timeout": {}})
                reply = await exchange(transport, request, seconds=60, limit_bytes=100)
                slot.sent()
                assert reply.status == httpx.codes.NO_CONTENT, reply

        await asyncio.gather(*(one() for _ in range(requests)))


if __name__ == "__main__":
    address, rate, requests, name = sys.argv[1:]
    given = Settings(_env_file=None, base_url=address, client_id="shop", client_secret="x")
    with turn_at_supplier(given):
        asyncio.run(send(address, float(rate), int(requests), name))
