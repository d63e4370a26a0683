"""Proxies of the environment, and the pool."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest

from pipeline.supplier.connection import PooledTransport, proxy_for


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    return monkeypatch


def test_there_is_no_proxy_unless_the_environment_names_one():
    assert proxy_for("https://supplier.example") is None


def test_the_proxy_of_the_environment_is_used_for_its_scheme(environment):
    environment.setenv("https_proxy", "http://proxy.example:3128")
    assert proxy_for("https://supplier.example/v1") == "http://proxy.example:3128"
    assert proxy_for("http://supplier.example/v1") is None
    environment.setenv("all_proxy", "http://all.example:3128")
    assert proxy_for("http://supplier.example/v1") == "http://all.example:3128"


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "localhost", "[::1]:80", "supplier.inside.example"])
def test_this_machine_and_named_exceptions_are_reached_without_it(environment, host):
    environment.setenv("all_proxy", "http://proxy.example:3128")
    environment.setenv("no_proxy", "inside.example")
    assert proxy_for(f"http://{host}/v1") is None


def test_the_pool_has_no_limit_of_its_own_and_keeps_no_cookies(environment):
    environment.setenv("https_proxy", "http://proxy.example:3128")

    async def look():
        transport = PooledTransport("https://supplier.example")
        session = transport.get_client()
        try:
            return session.connector.limit, type(session.cookie_jar), str(transport.proxy.url)
        finally:
            await transport.aclose()

    assert asyncio.run(look()) == (0, aiohttp.DummyCookieJar, "http://proxy.example:3128")


def test_certificates_are_checked():
    async def look():
        transport = PooledTransport("https://supplier.example")
        await transport.aclose()
        return transport.ssl_context

    context = asyncio.run(look())
    assert context.check_hostname
    assert context.verify_mode.name == "CERT_REQUIRED"
