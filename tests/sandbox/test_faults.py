"""Faults over the wire, as a client meets them."""

import json
import socket
import time
import zlib
from email.utils import parsedate_to_datetime

import httpx
import pytest
from sandbox_searches import all_products

from pipeline.sandbox.faults.faults import GARBAGE_KINDS, FaultDesk, FaultError, read_faults
from pipeline.sandbox.faults.garbage import READABLE

MULTI = "/v1/property/multi"


def outcomes(client, request, count):
    found = []
    for _ in range(count):
        try:
            found.append(client.post(MULTI, json=request).status_code)
        except httpx.TransportError as error:
            found.append(type(error).__name__)
    return found


def raw_post(client, request):
    """Return (bytes received, exception at the end or None) of a search over a bare socket."""
    body = json.dumps(request).encode()
    head = (
        f"POST {MULTI} HTTP/1.1\r\nHost: sandbox\r\nContent-Type: application/json\r\n"
        f"Authorization: {client.headers['Authorization']}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    received, ended = b"", None
    with socket.create_connection((client.base_url.host, client.base_url.port), timeout=60) as bare:
        bare.sendall(head.encode() + body)
        try:
            while part := bare.recv(65536):
                received += part
        except OSError as error:
            ended = error
    return received, ended


def test_a_reset_is_a_reset_and_not_an_answer(client, sandbox, multi_request):
    sandbox.control("faults", {"schedule": {"1": "reset"}})
    received, ended = raw_post(client, multi_request)
    assert received == b""
    assert isinstance(ended, ConnectionResetError)
    assert client.post(MULTI, json=multi_request).status_code == 200


def test_a_reset_can_come_in_the_middle_of_the_body(client, sandbox, multi_request):
    sandbox.control("faults", {"schedule": {"1": "reset_midway"}})
    received, ended = raw_post(client, multi_request)
    assert received.startswith(b"HTTP/1.1 200 OK")
    assert isinstance(ended, ConnectionResetError)


@pytest.mark.parametrize(("kind", "header"), [("truncate", b"content-length"), ("truncate_chunked", b"chunked")])
def test_a_truncated_body_ends_before_what_was_announced(client, sandbox, multi_request, kind, header):
    sandbox.control("faults", {"schedule": {"1": kind, "2": kind}})
    received, ended = raw_post(client, multi_request)
    head, _, body = received.partition(b"\r\n\r\n")
    assert ended is None
    assert header in head.lower()
    assert body
    assert not body.endswith(b"0\r\n\r\n")
    with pytest.raises(httpx.RemoteProtocolError):
        client.post(MULTI, json=multi_request)


def test_down_resets_everything_but_the_control(client, sandbox, multi_request):
    sandbox.control("faults", {"down": True})
    for path in (MULTI, "/auth/oauth/token"):
        with pytest.raises(httpx.TransportError):
            client.post(path, json=multi_request)
    assert sandbox.control("health")["status"] == "ok"


def test_the_next_requests_fail_and_then_no_more(client, sandbox, multi_request):
    sandbox.control("faults", {"fail_next": 2})
    assert outcomes(client, multi_request, 3) == [500, 500, 200]
    sandbox.control("faults", {"fail_next": 1, "fail_next_with": "status_503", "token_fail_next": 1})
    assert outcomes(client, multi_request, 2) == [503, 200]
    assert client.post("/auth/oauth/token").status_code == 500
    assert client.post("/auth/oauth/token").status_code == 400


def test_a_500_has_the_documented_body(client, sandbox, multi_request):
    sandbox.control("faults", {"fail_next": 1})
    (error,) = client.post(MULTI, json=multi_request).json()["errors"]
    assert error.keys() == {"errorCode", "errorDescription"}
    assert error["errorCode"] == 500


def test_too_many_requests_say_when_to_come_back(client, sandbox, multi_request):
    sandbox.control("faults", {"schedule": {"1": "status_429"}, "retry_after_s": 7})
    answer = client.post(MULTI, json=multi_request)
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "7")
    sandbox.control("faults", {"schedule": {"1": "status_429"}, "retry_after_s": 60, "retry_after_as_date": True})
    moment = parsedate_to_datetime(client.post(MULTI, json=multi_request).headers["retry-after"])
    assert 50 < moment.timestamp() - time.time() < 61
    sandbox.control("faults", {"schedule": {"1": "status_429"}, "retry_after_s": None})
    assert "retry-after" not in client.post(MULTI, json=multi_request).headers


def test_a_real_limit_of_requests_a_second_can_be_set():
    desk = FaultDesk(1, read_faults({"requests_per_second": 3}))
    verdicts = [desk.judge(b"{}", at).kind for at in (0, 0.1, 0.2, 0.3, 0.9, 1.05, 1.08)]
    assert verdicts == [None, None, None, "status_429", "status_429", None, "status_429"]


def test_rates_hit_the_same_requests_every_time(client, sandbox, multi_request):
    runs = []
    for _ in range(2):
        sandbox.control("faults", {"status_500_rate": 0.3, "rate_429": 0.2})
        runs.append(outcomes(client, multi_request, 40))
    assert runs[0] == runs[1]
    assert {200, 429, 500} == set(runs[0])


def test_by_content_a_fault_hangs_on_the_body_and_its_repetition_not_on_the_order():
    faults = read_faults({"status_500_rate": 0.5, "by": "content"})
    bodies = [f'{{"n":{number}}}'.encode() for number in range(100)]
    forwards, backwards = FaultDesk(1, faults), FaultDesk(1, faults)
    first = {body: forwards.judge(body, 0).kind for body in bodies}
    assert {body: backwards.judge(body, 0).kind for body in reversed(bodies)} == first
    assert {body: forwards.judge(body, 0).kind for body in bodies} != first
    assert 30 < list(first.values()).count("status_500") < 70


def test_a_poisoned_property_fails_its_searches_and_no_others(client, sandbox, multi_request):
    poisoned, *others = multi_request["propertyIds"]
    sandbox.control("faults", {"poisoned_property_ids": [poisoned]})
    assert outcomes(client, multi_request, 2) == [500, 500]
    assert outcomes(client, multi_request | {"propertyIds": others}, 1) == [200]


def test_an_unreadable_property_spoils_the_body_it_is_in(client, sandbox, multi_request):
    sandbox.control("faults", {"unreadable_property_ids": multi_request["propertyIds"][:1]})
    answer = client.post(MULTI, json=multi_request)
    assert answer.status_code == 200
    with pytest.raises(json.JSONDecodeError):
        answer.json()


def test_latency_holds_an_answer_up(client, sandbox, multi_request):
    sandbox.control("faults", {"latency_ms": 150})
    started = time.monotonic()
    assert client.post(MULTI, json=multi_request).status_code == 200
    assert time.monotonic() - started >= 0.15


def test_a_hanging_request_gets_no_answer(client, sandbox, multi_request):
    # An answer that came after all would be counted among those of a later test.
    sandbox.control("faults", {"schedule": {"1": "hang"}, "hang_s": 3600})
    with pytest.raises(httpx.ReadTimeout):
        client.post(MULTI, json=multi_request, timeout=0.3)


def read_or_error(answer):
    try:
        return answer.json()
    except (ValueError, RecursionError) as error:
        return type(error)


@pytest.mark.parametrize("kind", [kind for kind in GARBAGE_KINDS if kind not in {"bomb", "huge_body", "redirect"}])
def test_garbage_comes_whole_with_200(client, sandbox, multi_request, kind):
    sandbox.control("faults", {"schedule": {"1": kind}})
    before = sandbox.control("served")["products_served"].get("multi", 0)
    good = client.post(MULTI, json=multi_request)
    honest = client.post(MULTI, json=multi_request)
    assert good.status_code == honest.status_code == 200
    assert good.content != honest.content
    count = len(all_products(honest.json()))
    served = sandbox.control("served")["products_served"]["multi"] - before
    assert served == (2 if kind in READABLE else 1) * count
    read_or_error(good)


def test_wrong_types_spoil_a_third_of_the_products(client, sandbox, multi_request):
    sandbox.control("faults", {"schedule": {"1": "wrong_types"}})
    spoiled = all_products(client.post(MULTI, json=multi_request).json())
    whole = all_products(client.post(MULTI, json=multi_request).json())
    changed = [place for place, product in enumerate(spoiled) if product != whole[place]]
    assert changed == list(range(0, len(whole), 3))


def test_a_redirect_leads_to_another_host(client, sandbox, multi_request):
    sandbox.control("faults", {"schedule": {"1": "redirect"}})
    answer = client.post(MULTI, json=multi_request)
    assert answer.status_code == 302
    assert answer.headers["location"] == "http://elsewhere.supplier.example/v1/property/multi"


def test_a_bomb_is_a_thousand_times_as_large_as_it_looks(client, sandbox, multi_request):
    sandbox.control("faults", {"schedule": {"1": "bomb"}, "bomb_mb": 32})
    with client.stream("POST", MULTI, json=multi_request) as answer:
        packed = b"".join(answer.iter_raw())
    assert answer.headers["content-encoding"] == "gzip"
    assert len(packed) < 100_000
    assert len(zlib.decompress(packed, 31)) > 32 << 20


def test_a_huge_body_never_ends(client, sandbox, multi_request):
    sandbox.control("faults", {"schedule": {"1": "huge_body"}, "huge_mb": 8})
    with client.stream("POST", MULTI, json=multi_request) as answer:
        assert "content-length" not in answer.headers
        assert sum(map(len, answer.iter_raw())) > 8 << 20


@pytest.mark.parametrize(
    "faults",
    [
        {"status_500_rat": 0.1},
        {"status_500_rate": 1.5},
        {"status_500_rate": 0.6, "reset_rate": 0.6},
        {"reset_rate": -0.1},
        {"garbage_kinds": ["confetti"]},
        {"schedule": {"first": "reset"}},
        {"schedule": {"1": "confetti"}},
    ],
)
def test_faults_that_make_no_sense_are_refused(client, faults):
    with pytest.raises(FaultError):
        read_faults(faults)
    answer = client.post("/sandbox/faults", json=faults)
    assert answer.status_code == 400
    assert answer.json()["error"]
