"""Nothing is sent to a server that cannot show who it is, however its address is spelled, nor in the clear."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest
from certificates import https_server, self_signed

from pipeline.domain.errors import SettingsError, SupplierUnreachable
from pipeline.domain.search import Operation
from pipeline.settings import Settings, read_settings
from pipeline.supplier.answer import Failure
from pipeline.supplier.client import SupplierClient

OUTSIDE = {"client_id": "a", "client_secret": "hunter2", "attempts": 1}
SPELLINGS = [
    "https://127.0.0.1:{port}",
    "https://127.0.0.1:{port}/",
    "HTTPS://127.0.0.1:{port}",
    "Https://127.0.0.1:{port}",
    "hTTpS://127.0.0.1:{port}/v2",
    " https://127.0.0.1:{port}",
    "\thttps://127.0.0.1:{port}\n",
    "HTTPS://localhost:{port}",
    "https://LOCALHOST:{port}",
    "https://localhost.:{port}",
    "HTTPS://LocalHost.:{port}//",
    "https://0x7f.0.0.1:{port}",
    "https://2130706433:{port}",
    "https://127.1:{port}",
    "https://localhost:0{port}",
    "https://%6cocalhost:{port}",
]
REFUSED = [
    "https:127.0.0.1:{port}",
    "https:/127.0.0.1:{port}",
    "https:\\\\127.0.0.1:{port}",
    "ht\ttps://127.0.0.1:{port}",
    "https\x00://127.0.0.1:{port}",
    "https ://127.0.0.1:{port}",
    "https:// 127.0.0.1:{port}",
    "https://a:b@127.0.0.1:{port}",
    "https://a@127.0.0.1:{port}",
    "https://127.0.0.1:{port}?x=1",
    "https://127.0.0.1:{port}/?",
    "https://127.0.0.1:{port}#x",
    "https://.:{port}",
    "https://127.0.0.1..example:{port}",
    f"https://{'a' * 64}.example:{{port}}",
    "//127.0.0.1:{port}",
    "127.0.0.1:{port}",
    "httpss://127.0.0.1:{port}",
    "http+unix://127.0.0.1:{port}",
]
TOKEN = json.dumps({"access_token": "t", "token_type": "Bearer", "expires_in": 3600}).encode()
REPLIES = [
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    for body in (TOKEN, b"{}")
]


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for name in ("https_proxy", "http_proxy", "all_proxy", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    for name in Settings.model_fields:
        monkeypatch.delenv(f"NIGHTAUDIT_{name.upper()}", raising=False)
    return monkeypatch


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return self_signed(tmp_path_factory.mktemp("certificate"))


def asked(files, spelling, *, auth=None):
    """Ask a server with that certificate at a spelling of its address: the answer or error, and what it received."""

    async def go():
        async with https_server(*files, REPLIES) as (port, received):
            given = {"base_url": spelling.format(port=port)}
            given |= {"auth_url": auth.format(port=port)} if auth else {}
            try:
                async with SupplierClient.of(read_settings(**OUTSIDE | given)) as client:
                    return await client.ask(Operation.MULTI, b"{}"), received
            except (SupplierUnreachable, SettingsError) as error:
                return error, received

    return asyncio.run(go())


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_certificate_without_a_trusted_signature_gets_nothing(files, spelling):
    answer, received = asked(files, spelling)
    assert isinstance(answer, SupplierUnreachable)
    assert "is not trusted: self-signed certificate" in answer.message
    assert received == []


@pytest.mark.parametrize("spelling", ["https://127.0.0.1:{port}", "HTTPS://LocalHost.:{port}/"])
def test_one_that_is_trusted_gets_the_search(files, spelling, plain_environment):
    plain_environment.setenv("SSL_CERT_FILE", str(files[0]))
    answer, received = asked(files, spelling)
    assert (answer.http_status, len(received)) == (200, 2)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("kind", ["missing", "pipe", "empty"])
def test_certificates_that_cannot_be_read_are_one_error_and_not_waited_for(files, kind, plain_environment, tmp_path):
    given = tmp_path / "trusted.pem"
    {"missing": lambda _: None, "pipe": os.mkfifo, "empty": Path.touch}[kind](given)
    plain_environment.setenv("SSL_CERT_FILE", str(given))
    answer, received = asked(files, "https://127.0.0.1:{port}")
    assert isinstance(answer, SettingsError)
    assert "SSL_CERT_FILE" in answer.message
    assert received == []


@pytest.mark.parametrize("spelling", REFUSED)
def test_what_is_no_base_address_is_refused(files, spelling):
    answer, received = asked(files, spelling)
    assert isinstance(answer, SettingsError)
    assert "NIGHTAUDIT_BASE_URL" in answer.message
    assert received == []


def test_the_token_address_is_held_to_the_same(files):
    answer, received = asked(files, "https://127.0.0.1:{port}", auth="HTTPS://127.0.0.1:{port}")
    assert isinstance(answer, SupplierUnreachable)
    assert received == []


def test_clear_text_and_tls_at_one_host_and_port_share_no_pool(files, plain_environment):
    plain_environment.setenv("SSL_CERT_FILE", str(files[0]))
    answer, received = asked(files, "http://127.0.0.1:{port}", auth="https://127.0.0.1:{port}")
    # The token came over TLS; the server does not speak clear text, and gets none in place of it.
    assert answer.failure is Failure.CONNECTION
    assert [head.split()[1] for head in received] == [b"/auth/oauth/token"]


@pytest.mark.parametrize("address", ["http://supplier.example", "HTTP://Supplier.Example:8080", " http://10.0.0.7/api"])
@pytest.mark.parametrize("name", ["base_url", "auth_url", "notify_webhook"])
def test_clear_text_to_another_machine_needs_a_setting(address, name):
    given = OUTSIDE | {"base_url": "https://supplier.example", name: address}
    with pytest.raises(SettingsError, match=f"NIGHTAUDIT_{name.upper()}: http to another machine") as caught:
        read_settings(**given)
    assert "NIGHTAUDIT_ALLOW_CLEAR_TEXT" in caught.value.message
    read_settings(**given, allow_clear_text=True)


@pytest.mark.parametrize(
    "address", ["redis://store.example", " REDIS://u:hunter2@10.0.0.7:6379/1", "redis://localhost.example"]
)
def test_clear_text_to_a_rate_store_on_another_machine_needs_its_own_setting(address):
    with pytest.raises(SettingsError, match="NIGHTAUDIT_RATE_STORE: redis to another machine") as caught:
        read_settings(rate_store=address, allow_clear_text=True)
    assert "hunter2" not in str(caught.value)
    assert "Use rediss" in caught.value.message
    assert "NIGHTAUDIT_RATE_STORE_CLEAR_TEXT=true" in caught.value.message
    assert (caught.value.kept, bool(caught.value.hint)) == ("Nothing was started.", True)
    read_settings(rate_store=address, rate_store_clear_text=True)


@pytest.mark.parametrize(
    "address",
    ["redis://127.0.0.1:6379/0", "redis://localhost", "redis://[::1]:6379", "REDIS://LOCALHOST.:6379",
     "unix:///run/redis.sock", "unix://u:hunter2@/run/redis.sock?db=1", "rediss://u:hunter2@store.example/1",
     "rediss://store.example?ssl_ca_certs=/ca.pem"],
)  # fmt: skip
def test_a_rate_store_on_this_machine_or_behind_tls_needs_none(address):
    assert read_settings(rate_store=address).rate_store.get_secret_value()


@pytest.mark.parametrize(
    "address",
    ["store.example:6379", "http://store.example", "redis://", "redis:///0", "redis:///0?host=store.example",
     "redis://localhost?host=store.example", "redis://localhost:99999", "redis://localhost/x", "redis://local host",
     "redis://local..host",
     "rediss://store.example?ssl_cert_reqs=none", "rediss://store.example?ssl_check_hostname=false", "unix://",
     "unix://store.example"],
)  # fmt: skip
def test_what_is_no_stores_address_or_turns_verification_off_is_refused_and_not_repeated(address):
    secret = address.replace("://", "://u:hunter2@")
    with pytest.raises(SettingsError, match="NIGHTAUDIT_RATE_STORE: ") as caught:
        read_settings(rate_store=secret, rate_store_clear_text=True)
    assert "hunter2" not in str(caught.value)
    if "?" not in address:
        with pytest.raises(SettingsError, match="rediss://"):
            read_settings(rate_store=address, rate_store_clear_text=True)


@pytest.mark.parametrize("host", ["127.0.0.1:9", "localhost", "[::1]:80", "127.8.8.8", "LOCALHOST."])
def test_clear_text_to_this_machine_needs_none(host):
    read_settings(**OUTSIDE, base_url=f"http://{host}")


def test_a_webhook_keeps_its_query_and_is_never_repeated():
    secret = "https://u:p@hooks.example/T0/B1?token=s3cr3t"
    kept = read_settings(notify_webhook=f" {secret.replace('https', 'HTTPS')}").notify_webhook
    assert kept.get_secret_value() == secret
    with pytest.raises(SettingsError) as caught:
        read_settings(notify_webhook="hooks.example/s3cr3t")
    assert "s3cr3t" not in str(caught.value)


@pytest.mark.parametrize("is_proxy", [False, True])
def test_an_encrypted_address_at_a_port_of_clear_text_is_reported(wire, monkeypatch, is_proxy):
    async def answer(reader, writer):
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    async def go():
        async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
            address = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            if is_proxy:
                monkeypatch.setenv("https_proxy", address.replace("//", "//user:hunter2@"))
            async with wire.client("https://supplier.example" if is_proxy else address, attempts=1) as client:
                with pytest.raises(SupplierUnreachable) as caught:
                    await client.ask(Operation.MULTI, b"{}")
            assert f"the address of {address[8:]} says https, but its port answers in clear text" in str(caught.value)
            assert "hunter2" not in str(caught.value)

    asyncio.run(go())
