"""Only those who have the printed address can read what `nightaudit serve` serves, and no page of another origin."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import psutil
import pytest
from free_port import free_port
from served import served
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from pipeline.domain.errors import InputError
from pipeline.report.guard import Key
from pipeline.report.serve import application, notebook_names, serve_reports
from pipeline.report.write import write_reports

NOTEBOOK = f"/notebooks/{notebook_names()[0]}/"
FOREIGN_ORIGINS = ["https://attacker.example", "http://127.0.0.1:1", "http://localhost", "null", "file://"]
FOREIGN_HOSTS = [
    "attacker.example", "attacker.example:{port}", "127.0.0.1.attacker.example", "127.0.0.1@attacker", "",
    "[::1]attacker.example", "[::1]attacker.example:{port}", "127.0.0.1:{port}:1", "127.0.0.1:", "127.0.0.1:+{port}",
    "localhost/attacker.example", "0.0.0.0:{port}", "127.0.0.1 attacker.example",
]  # fmt: skip


@pytest.fixture(scope="module")
def pages(two_nights):
    write_reports(two_nights)
    with served(two_nights) as pages:
        yield pages


@pytest.fixture
def browser(pages):
    """A client that has opened the printed address."""
    with httpx.Client(base_url=pages.address, follow_redirects=True) as client:
        client.get(pages.printed()).raise_for_status()
        yield client


@pytest.mark.slow
def test_the_printed_address_opens_the_reports_and_the_token_leaves_the_address(pages):
    with httpx.Client(follow_redirects=True) as client:
        answer = client.get(pages.printed())
        assert "Reports of all nights" in answer.text
        assert str(answer.url) == f"{pages.address}/reports/"
        assert client.get(f"{pages.address}{NOTEBOOK}").status_code == 200
        (cookie,) = client.cookies.jar
    assert cookie.has_nonstandard_attr("HttpOnly")
    assert cookie.get_nonstandard_attr("SameSite").lower() == "strict"
    assert pages.key.token not in cookie.value


@pytest.mark.parametrize("path", ["/", "/reports/", "/reports/index.html", NOTEBOOK, f"{NOTEBOOK}api/status", "/none"])
@pytest.mark.parametrize("query", ["", "?access_token=", "?access_token=guess"])
def test_without_the_token_no_route_answers(pages, path, query):
    answer = httpx.get(f"{pages.address}{path}{query}", cookies={f"nightaudit-{pages.port}": "guess"})
    assert answer.status_code == 403
    assert "nightaudit serve" in answer.text


@pytest.mark.parametrize("origin", FOREIGN_ORIGINS)
@pytest.mark.parametrize("path", ["/reports/", NOTEBOOK, f"{NOTEBOOK}api/kernel/instantiate"])
def test_another_origin_is_refused_on_every_route_even_with_the_token(pages, browser, origin, path):
    for method in ("GET", "POST", "OPTIONS"):
        answer = browser.request(method, f"{path}?access_token={pages.key.token}", headers={"origin": origin})
        assert answer.status_code == 400
        assert not [name for name in answer.headers if name.startswith("access-control-")]


@pytest.mark.parametrize("host", FOREIGN_HOSTS)
def test_another_host_is_refused_on_every_route(pages, browser, host):
    for path in ("/reports/", NOTEBOOK):
        assert browser.get(path, headers={"host": host.format(port=pages.port)}).status_code == 400


@pytest.mark.slow
def test_an_address_can_be_opened_as_soon_as_it_is_printed(two_nights):
    write_reports(two_nights)
    port = free_port()

    def open_it(addresses):
        assert addresses
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
        raise StopIteration

    with pytest.raises(StopIteration):
        serve_reports(two_nights, port, open_it)


@pytest.mark.slow
def test_the_command_listens_on_the_loopback_address_alone(two_nights):
    write_reports(two_nights)
    port = free_port()
    command = [sys.executable, "-m", "pipeline.cli", "serve", "--port", str(port)]
    given = os.environ | {"NIGHTAUDIT_LAKE": str(two_nights.root), "PYTHONPATH": str(Path(__file__).parents[2])}
    with subprocess.Popen(command, env=given, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            while not (held := [each for each in psutil.Process(process.pid).net_connections() if each.laddr]):
                assert process.poll() is None
                time.sleep(0.05)
        finally:
            process.terminate()
    assert {(each.laddr.ip, each.laddr.port) for each in held} == {("127.0.0.1", port)}


@pytest.mark.slow
def test_a_stop_while_a_notebook_runs_ends_with_its_exit_code_and_no_abort(two_nights):
    write_reports(two_nights)
    port = free_port()
    command = [sys.executable, "-m", "pipeline.cli", "serve", "--port", str(port)]
    given = os.environ | {
        "NIGHTAUDIT_LAKE": str(two_nights.root), "PYTHONPATH": str(Path(__file__).parents[2]), "COLUMNS": "200"
    }  # fmt: skip
    server = subprocess.Popen(command, env=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with contextlib.ExitStack() as ended:
        ended.callback(server.kill)
        token = server.stdout.readline().split("?")[-1].strip()
        while not psutil.Process(server.pid).net_connections():
            time.sleep(0.05)
        notebook = f"ws://127.0.0.1:{port}{NOTEBOOK}ws?session_id=s_123456&{token}"
        with connect(notebook, max_size=None) as socket:
            for _ in range(30):
                socket.recv(timeout=60)
            server.terminate()
            printed = server.communicate(timeout=60)[1]
    assert (server.returncode, "FATAL" in printed) == (143, False)
    assert "no longer served" in printed


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_what_another_sites_page_includes_is_refused(browser, site):
    assert browser.get("/reports/", headers={"sec-fetch-site": site}).status_code == 403


@pytest.mark.parametrize("path", ["/reports/", NOTEBOOK, "/none"])
def test_every_answer_may_not_be_sniffed_framed_or_read_from_elsewhere(browser, path):
    headers = browser.get(path).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] in {"DENY", "SAMEORIGIN"}
    assert "frame-ancestors" in headers["content-security-policy"]
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert not [name for name in headers if name.startswith("access-control-")]


@pytest.mark.parametrize(
    ("origin", "token", "is_accepted"),
    [
        ("own", "query", True),
        ("own", "cookie", True),
        (None, "query", True),
        ("own", None, False),
        (None, None, False),
        ("https://attacker.example", "query", False),
        ("https://attacker.example", "cookie", False),
        ("http://127.0.0.1:1", "cookie", False),
    ],
)
def test_a_socket_needs_the_token_and_no_foreign_origin(pages, browser, origin, token, is_accepted):
    query = f"&access_token={pages.key.token}" if token == "query" else ""
    cookies = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
    with contextlib.nullcontext() if is_accepted else pytest.raises(InvalidStatus, match="403"):
        connect(
            f"ws://127.0.0.1:{pages.port}{NOTEBOOK}ws?session_id=s1&file=x{query}",
            origin=pages.address if origin == "own" else origin,
            additional_headers={"cookie": cookies} if token == "cookie" else {},
        ).close()


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"a": 1}', b"\xff\xfe"])
def test_a_malformed_request_for_a_notebook_is_logged_in_one_line(browser, caplog, capfd, body):
    answer = browser.post(f"{NOTEBOOK}api/kernel/function_call", content=body)
    assert answer.status_code in {400, 500}
    (record,) = (record for record in caplog.records if record.name == "pipeline.report.serve")
    assert f"A request for '{NOTEBOOK}api/kernel/function_call' failed: " in record.getMessage()
    assert "Traceback" not in "".join(capfd.readouterr())


def test_what_lies_beside_the_reports_is_not_served(browser):
    assert browser.get("/reports/%2e%2e/published/nightaudit.duckdb").status_code == 404


def test_the_redirect_to_a_page_stays_on_this_host(pages):
    answer = httpx.get(f"{pages.address}//attacker.example/?access_token={pages.key.token}&a=1")
    assert (answer.status_code, answer.headers["location"]) == (303, "/attacker.example/?a=1")


def test_before_the_first_report_there_is_nothing_to_serve(lake):
    with pytest.raises(InputError, match="no reports yet"):
        application(lake, Key())
