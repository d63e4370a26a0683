"""The sandbox as a process and as an HTTP server."""

import gzip
import os
import signal
import socket
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

import httpx
import psutil
import pytest
from sandbox_searches import TODAY, all_products, search
from waiting import await_true

from pipeline.sandbox.faults.faults import FaultError
from pipeline.sandbox.server.answers import answer
from pipeline.sandbox.server.launch import SandboxProcess, SandboxStartError
from pipeline.sandbox.server.replies import accepts_gzip
from pipeline.sandbox.world.identifiers import property_ids as ids_of
from pipeline.sandbox.world.world import World

MULTI = "/v1/property/multi"


def is_running(pid):
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def test_it_ends_with_its_block():
    with SandboxProcess(properties=5) as sandbox:
        assert is_running(sandbox.pid)
        assert sandbox.base_url.startswith("http://127.0.0.1:")
    assert not is_running(sandbox.pid)


@pytest.mark.parametrize("leaves_a_child", [False, True], ids=["alone", "with a forked child"])
def test_it_ends_when_its_user_is_killed(leaves_a_child):
    program = (
        "import os, time\n"
        "from pipeline.sandbox.server.launch import SandboxProcess\n"
        "sandbox = SandboxProcess(properties=5).start()\n"
        f"child = os.fork() if {leaves_a_child} else 1\n"
        "if not child: time.sleep(120); os._exit(0)\n"
        "print(sandbox.pid, child, flush=True)\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as user:
        pid, child = map(int, user.stdout.readline().split())
        assert is_running(pid)
        user.kill()
        user.wait()
    try:
        await_true(lambda: not is_running(pid))
    finally:
        if leaves_a_child:
            os.kill(child, signal.SIGKILL)


def test_a_port_in_use_is_an_error_that_says_so():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(SandboxStartError, match="in use"):
            SandboxProcess(properties=5, port=taken.getsockname()[1]).start()


def test_a_second_sandbox_does_not_share_the_port_of_the_first(sandbox):
    port = int(sandbox.base_url.rpartition(":")[2])
    with pytest.raises(SandboxStartError, match="in use"):
        SandboxProcess(properties=5, port=port).start()


def test_a_wrong_fault_is_reported_before_anything_starts():
    with pytest.raises(FaultError, match="unknown field"):
        SandboxProcess(faults={"explode": True})


def test_a_clock_is_the_time_of_every_answer_and_gives_the_day():
    at = datetime(2026, 10, 1, 2, tzinfo=UTC)
    slow = {"schedule": {"1": "status_429"}, "retry_after_s": 60, "retry_after_as_date": True}
    with (
        SandboxProcess(properties=5, clock=at, faults=slow) as sandbox,
        httpx.Client(
            base_url=sandbox.base_url, timeout=60, trust_env=False, auth=(sandbox.client_id, sandbox.client_secret)
        ) as client,
    ):
        form = {"grant_type": "client_credentials", "scope": "read_rooms"}
        token = client.post("/auth/oauth/token", data=form)
        refused = client.post(MULTI, json={}, auth=None, headers=bearer(token.json()["access_token"]))
        reported = [parsedate_to_datetime(answer.headers["date"]) for answer in (token, refused)]
        assert reported == [at, at]
        assert parsedate_to_datetime(refused.headers["retry-after"]) == at + timedelta(seconds=60)
        assert sandbox.control("health")["today"] == "2026-10-01"


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


def test_credentials_stand_in_no_argument_and_no_variable(sandbox):
    process = psutil.Process(sandbox.pid)
    assert sandbox.client_secret not in " ".join(process.cmdline())
    assert sandbox.client_secret not in str(process.environ())


def test_it_listens_on_the_loopback_only(sandbox):
    listening = [c.laddr.ip for c in psutil.Process(sandbox.pid).net_connections() if c.status == "LISTEN"]
    assert set(listening) == {"127.0.0.1"}


def test_the_command_serves_until_it_is_interrupted():
    command = [sys.executable, "-m", "pipeline.sandbox", "--port", "0", "--properties", "5", "--today", "2030-01-01"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        base_url = process.stdout.readline().split()[3]

        def health():
            try:
                return httpx.get(f"{base_url}/sandbox/health", timeout=60, trust_env=False).json()
            except httpx.TransportError:
                return None

        await_true(lambda: health() is not None)
        assert health()["today"] == "2030-01-01"
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0


@pytest.mark.parametrize(
    "arguments", [["--faults", "{"], ["--night", "-1"], ["--today", "soon"], ["--faults", "@none"]]
)
def test_a_wrong_argument_of_the_command_is_exit_code_2(arguments):
    done = subprocess.run([sys.executable, "-m", "pipeline.sandbox", *arguments], capture_output=True, check=False)
    assert done.returncode == 2
    assert done.stderr


def test_the_answer_over_the_wire_is_the_answer_of_the_world(client, multi_request):
    world = World(7, 0, TODAY, 400)
    asked = search("multi", multi_request["propertyIds"], check_in=TODAY.replace(month=2, day=10))
    expected = answer(world, asked)
    for _ in range(2):  # the second one comes out of the cache
        for accepted in ("gzip", "identity"):
            with client.stream("POST", MULTI, json=multi_request, headers={"Accept-Encoding": accepted}) as got:
                raw = b"".join(got.iter_raw())
            assert got.headers.get("content-encoding", "identity") == accepted
            assert (gzip.decompress(raw) if accepted == "gzip" else raw) == expected.body


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("", False), ("gzip", True), ("br, GZIP;q=0.5", True), ("gzip;q=0", False), ("*", True),
        ("*;q=0", False), ("gzip;q=0, *", False), ("identity", False), ("gzip;q=x", False),
    ],
)  # fmt: skip
def test_gzip_is_used_where_it_is_accepted(header, expected):
    assert accepts_gzip(header) is expected


def test_served_counts_what_went_out_whole(client, sandbox, multi_request):
    before = sandbox.control("served")
    sandbox.control("faults", {"schedule": {"1": "truncate", "2": "status_500"}})
    for _ in range(3):
        try:
            got = client.post(MULTI, json=multi_request)
        except httpx.TransportError:
            continue
    client.post(MULTI, json={})
    after = sandbox.control("served")
    count = len(all_products(got.json()))
    assert after["products_served"]["multi"] - before["products_served"].get("multi", 0) == count
    requests = {
        outcome: number - before["requests"].get("multi", {}).get(outcome, 0)
        for outcome, number in after["requests"]["multi"].items()
    }
    assert {name: number for name, number in requests.items() if number} == {
        "truncate": 1, "500": 1, "200": 1, "400": 1,
    }  # fmt: skip


def test_the_night_can_be_turned_while_it_runs(client, sandbox, multi_request):
    first = client.post(MULTI, json=multi_request).content
    assert sandbox.control("night", {"night": 400})["night"] == 400
    assert client.post(MULTI, json=multi_request).content != first
    assert sandbox.control("night", {"night": 0, "today": "2030-02-10"})["today"] == "2030-02-10"
    assert client.post(MULTI, json=multi_request).json()["errors"][0]["errorCode"] == 1014
    sandbox.control("night", {"night": 0, "today": "2030-01-01"})
    assert client.post(MULTI, json=multi_request).content == first


def test_the_control_surface_lists_what_the_world_holds(client, sandbox):
    listed = sandbox.control("properties")
    assert listed["property_ids"] == ids_of(7, 400)
    world = World(7, 0, TODAY, 400)
    assert [(pair["branded"], pair["unbranded"]) for pair in listed["opaque_pairs"]] == world.opaque_pairs()
    assert sandbox.control("planted")["anomalies"] == world.planted()
    assert sandbox.control("rates")["rates"]["EUR"] == 1
    assert client.get("/sandbox/nothing").status_code == 404
    assert client.post("/sandbox/night", json={"night": -3}).status_code == 400
    assert client.post("/sandbox/health").status_code == 405


def test_a_quote_reserves_under_a_number_of_its_own(client, single_request, multi_request):
    hotel = next(
        hotel
        for hotel in client.post(MULTI, json=multi_request).json()["properties"]
        if hotel.get("roomStays") and hotel["roomStays"][0].get("products")
    )
    request = single_request | {
        "propertyId": hotel["propertyId"],
        "roomStays": [
            {
                "id": 0,
                "productId": hotel["roomStays"][0]["products"][0]["productId"],
                "guestCount": {"adultCount": 2},
            }
        ],
    }
    quoted = [client.post("/v1/property/quote", json=request).json() for _ in range(2)]
    assert quoted[0]["property"] == quoted[1]["property"]
    assert 0 < quoted[0]["reservationId"] != quoted[1]["reservationId"] < 2**63


def test_other_addresses_and_methods_are_refused(client):
    assert client.post("/v1/reservation", json={}).status_code == 404
    answer = client.get(MULTI)
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
