"""What the doctor says about the connection to a supplier."""

from __future__ import annotations

import asyncio
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from pipeline.cli.doctor import _connection, _limits, _probe
from pipeline.domain.errors import NightauditError, SettingsError
from pipeline.settings import Settings

GIVEN = {"_env_file": None, "client_id": "a", "client_secret": "b"}


pytestmark = pytest.mark.usefixtures("without_proxies")


def test_an_encrypted_way_is_called_so_and_no_certificate_verified_before_it_was_seen():
    said = _connection(Settings(**GIVEN, base_url="HTTPS://Supplier.Example"))
    assert said == "https://supplier.example: encrypted, certificate must verify"


def test_clear_text_that_is_allowed_is_reported_all_the_same():
    settings = Settings(**GIVEN, base_url="https://a.example", auth_url="http://b.example", allow_clear_text=True)
    assert "http://b.example: CLEAR TEXT" in _connection(settings)
    assert "https://a.example: encrypted" in _connection(settings)


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("redis://u:hunter2@store.example:7000/1", "store.example:7000: CLEAR TEXT, allowed by"),
        ("rediss://u:hunter2@store.example", "store.example: encrypted, certificate must verify"),
        ("redis://u:hunter2@localhost", "localhost: to this machine only"),
        ("unix://u:hunter2@/run/redis.sock", "/run/redis.sock: to this machine only"),
    ],
)
def test_the_way_to_the_rate_store_is_named_without_its_password(address, said):
    settings = Settings(_env_file=None, rate_store=address, rate_store_clear_text=True)
    assert f"; rate store {said}" in _connection(settings)
    assert "hunter2" not in _connection(settings)


def test_a_proxy_is_named_without_its_password(monkeypatch):
    monkeypatch.setenv("https_proxy", "http://u:hunter2@proxy.example:3128")
    said = _connection(Settings(**GIVEN, base_url="https://supplier.example"))
    assert said.endswith(", through the proxy proxy.example:3128")


def test_a_proxy_that_cannot_be_used_is_an_error_with_a_reason(monkeypatch):
    monkeypatch.setenv("https_proxy", "proxy.example:3128")
    with pytest.raises(SettingsError, match="has no scheme"):
        _connection(Settings(**GIVEN, base_url="https://supplier.example"))


def test_the_sandbox_is_on_this_machine():
    assert _connection(Settings(_env_file=None, base_url=None)) == "to this machine only"


@pytest.mark.parametrize(
    ("others", "pace", "cap"),
    [
        ({}, "5 requests per second of each process", "no daily cap"),
        (
            {"daily_calls": 1000, "requests_per_second": 0.5},
            "0.5 requests per second of each process",
            "1,000 calls a day of everything that writes to this lake; another lake at this supplier counts its own",
        ),
        (
            {"daily_calls": 1000, "rate_store": "rediss://store.example"},
            "5 requests per second of everything that names this rate store",
            "1,000 calls a day of everything that names this rate store",
        ),
    ],
)
def test_who_shares_the_rate_and_the_daily_cap_is_reported(others, pace, cap):
    assert _limits(Settings(**GIVEN, base_url="https://supplier.example", **others)) == f"{pace}; {cap}"


@pytest.mark.parametrize(
    ("token", "said"),
    [
        (b"<html>down</html>", "the probe search failed: no_token token endpoint: "),
        (b'{"access_token": "t", "token_type": "Bearer"}', "a token was issued, but the probe search failed: not_json"),
    ],
    ids=["no token", "no answer"],
)
def test_a_failed_probe_mentions_a_token_only_if_one_was_issued(tmp_path, token, said):
    class Supplier(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = token if self.path.endswith("/token") else b"<html></html>"
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    (tmp_path / "ids.csv").write_text("property_id\n1\n")
    (tmp_path / "spec.toml").write_text(
        '[properties]\nfile = "ids.csv"\n[stays]\nnights = [1]\n[[stays.horizon]]\nto_days = 2\n'
        '[ask]\nmarkets = ["GB"]\nparties = ["2"]\n'
    )
    with ThreadingHTTPServer(("127.0.0.1", 0), Supplier) as supplier:
        thread = threading.Thread(target=supplier.serve_forever)
        thread.start()
        try:
            address, lake = f"http://127.0.0.1:{supplier.server_port}", str(tmp_path / "lake")
            settings = Settings(**GIVEN, base_url=address, lake=lake, spec=tmp_path / "spec.toml")
            with pytest.raises(NightauditError) as failed:
                asyncio.run(_probe(settings))
        finally:
            supplier.shutdown()
            thread.join()
    assert failed.value.message.startswith(said)
