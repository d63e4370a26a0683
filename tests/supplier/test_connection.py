"""Proxies of the environment, and the pool."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest

from pipeline.domain.addresses import web_address
from pipeline.domain.errors import SettingsError
from pipeline.supplier.connection import PooledTransport, proxy_for

pytestmark = pytest.mark.usefixtures("without_proxies")


def test_there_is_no_proxy_unless_the_environment_names_one():
    assert proxy_for("https://supplier.example") is None


def test_the_proxy_of_the_environment_is_used_for_its_scheme(monkeypatch):
    monkeypatch.setenv("https_proxy", "http://proxy.example:3128")
    assert proxy_for("https://supplier.example/v1") == "http://proxy.example:3128"
    assert proxy_for("http://supplier.example/v1") is None
    monkeypatch.setenv("all_proxy", "http://all.example:3128")
    assert proxy_for("http://supplier.example/v1") == "http://all.example:3128"


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "localhost", "[::1]:80", "supplier.inside.example"])
def test_this_machine_and_named_exceptions_are_reached_without_it(monkeypatch, host):
    monkeypatch.setenv("all_proxy", "http://proxy.example:3128")
    monkeypatch.setenv("no_proxy", "inside.example")
    assert proxy_for(f"http://{host}/v1") is None


@pytest.mark.parametrize(
    ("no_proxy", "host", "is_reached_directly"),
    [
        ("supplier.example:443", "supplier.example", True),
        ("supplier.example:8443", "supplier.example", False),
        ("supplier.example:8443", "supplier.example:8443", True),
        ("other.example, supplier.example", "supplier.example", True),
        (".example", "supplier.example", True),
        ("*.example", "supplier.example", True),
        ("plier.example", "supplier.example", False),
        ("SUPPLIER.EXAMPLE.", "supplier.example", True),
        ("*", "supplier.example", True),
        ("10.0.0.0/8", "10.1.2.3", True),
        ("10.0.0.0/8", "11.1.2.3", False),
        ("10.1.2.3", "10.1.2.3", True),
        ("10.1.2.3:443", "10.1.2.3:8443", False),
        ("fd00::/8", "[fd00::7]", True),
        ("fd00::7", "[fd00::7]", True),
        ("[fd00::7]:8443", "[fd00::7]:8443", True),
        ("[fd00::7]:8443", "[fd00::7]", False),
        ("", "supplier.example", False),
        (",, ,", "supplier.example", False),
        ("münchen.example", "xn--mnchen-3ya.example", True),
        ("münchen.example", "api.münchen.example", True),
    ],
)
def test_exceptions_are_hosts_domains_and_networks_with_or_without_a_port(
    monkeypatch, no_proxy, host, is_reached_directly
):
    monkeypatch.setenv("https_proxy", "http://proxy.example:3128")
    monkeypatch.setenv("no_proxy", no_proxy)
    assert (proxy_for(f"https://{host}/v1") is None) == is_reached_directly


@pytest.mark.parametrize(
    ("proxy", "said"),
    [
        ("proxy.example:3128", "https_proxy has no scheme"),
        ("socks5://proxy.example:1080", "https_proxy speaks 'socks5'"),
        ("SOCKS5H://u:hunter2@proxy.example", "https_proxy speaks 'socks5h'"),
        ("http://", "https_proxy is not an address"),
        ("http://u:hunter2@pro xy", "https_proxy is not an address"),
        ("http://u:hunter2@proxy..example", "https_proxy is not an address"),
    ],
)
def test_a_proxy_that_cannot_be_used_is_named_and_its_password_is_not(monkeypatch, proxy, said):
    monkeypatch.setenv("https_proxy", proxy)
    with pytest.raises(SettingsError, match=said) as caught:
        proxy_for("https://supplier.example")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("host", ["xn--ls8h.example", "münchen.example", "a_b.example", "[::1]"])
def test_a_host_of_any_characters_has_its_proxy(monkeypatch, host):
    monkeypatch.setenv("https_proxy", "http://proxy.example:3128")
    assert proxy_for(web_address(f"https://{host}")) == (None if "::" in host else "http://proxy.example:3128")


def test_a_proxy_is_used_in_its_one_spelling(monkeypatch):
    monkeypatch.setenv("https_proxy", " HTTP://u:p@Proxy.Example:3128/ ")
    assert proxy_for("https://supplier.example") == "http://u:p@proxy.example:3128"


def test_the_pool_has_no_limit_of_its_own_and_keeps_no_cookies(monkeypatch):
    monkeypatch.setenv("https_proxy", "http://proxy.example:3128")

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
