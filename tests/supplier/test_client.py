"""The client against a real server that the tests control."""

from __future__ import annotations

import asyncio
import gzip
import time
import tracemalloc
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline.domain.errors import SupplierUnreachable, SweepStopped, TokenRefused
from pipeline.domain.search import Operation
from pipeline.settings import Settings
from pipeline.supplier.answer import Failure
from pipeline.supplier.client import SupplierClient
from pipeline.supplier.connection import PooledTransport
from pipeline.supplier.exchange import Limits
from pipeline.supplier.failures import NETWORK_ERRORS
from pipeline.supplier.outcomes import Verdict, may_be_poisoned, outcome_of
from pipeline.supplier.pacer import Slot, Unlimited
from pipeline.supplier.store_away import RateStoreAway

MULTI, SINGLE, QUOTE = Operation.MULTI, Operation.SINGLE, Operation.QUOTE
GOOD = b'{"properties": [ ]}'


def ask(wire, supplier, *, times=1, operation=MULTI, attempts=None, **given):
    """Ask a running supplier `times` times at once and return the answers."""

    async def all_of_it():
        async with wire.running(supplier), wire.client(supplier.url, **given) as client:
            return await asyncio.gather(*(client.ask(operation, b"{}", attempts=attempts) for _ in range(times)))

    return asyncio.run(all_of_it())


def test_a_body_is_kept_byte_for_byte_as_it_came(wire):
    body = gzip.compress(GOOD + b" " * 50_000, mtime=0)
    supplier = wire.Supplier([wire.reply(200, body, headers=("Content-Encoding: gzip", "X-Request-Id: abc", "A: b"))])
    (answer,) = ask(wire, supplier)
    assert answer.body == body
    assert (answer.http_status, answer.content_type, answer.content_encoding) == (200, "application/json", "gzip")
    assert (answer.failure, answer.attempts) == (None, 1)
    assert answer.headers_of_interest == {
        "content-encoding": "gzip",
        "x-request-id": "abc",
        "content-type": "application/json",
        "content-length": str(len(body)),
    }


def test_a_search_goes_out_as_compact_json_with_a_bearer_token_and_asks_for_gzip(wire):
    supplier = wire.Supplier()
    ask(wire, supplier, operation=SINGLE, attempts=1)
    (request,) = supplier.asked
    assert request.path == "/v1/property/single"
    assert request.body == b"{}"
    assert request.headers["authorization"] == "Bearer token-1"
    assert request.headers["accept-encoding"] == "gzip"
    assert request.headers["content-type"] == "application/json"


def test_searches_share_one_token_and_kept_connections(wire):
    supplier = wire.Supplier()

    async def one_after_the_other():
        async with wire.running(supplier), wire.client(supplier.url) as client:
            for _ in range(5):
                await client.ask(MULTI, b"{}")

    asyncio.run(one_after_the_other())
    assert (len(supplier.asked), len(supplier.token_requests), supplier.connections) == (5, 1, 1)


def test_one_token_request_serves_all_waiting_searches(wire):
    supplier = wire.Supplier(delay_seconds=0.02)
    ask(wire, supplier, times=8)
    assert (len(supplier.asked), len(supplier.token_requests)) == (8, 1)


def test_a_refused_token_is_replaced_once_for_all_waiting_searches(wire):
    def only_the_second_token(request):
        is_good = request.headers["authorization"] == "Bearer token-2"
        return wire.reply(200, GOOD) if is_good else wire.reply(401, b"{}")

    supplier = wire.Supplier(
        tokens=[wire.token_reply("token-1"), wire.token_reply("token-2")],
        decide=only_the_second_token,
        delay_seconds=0.02,
    )
    answers = ask(wire, supplier, times=8)
    assert {answer.http_status for answer in answers} == {200}
    assert {answer.attempts for answer in answers} == {2}
    assert len(supplier.token_requests) == 2


def test_a_search_whose_fresh_token_is_refused_too_fails_alone(wire):
    def all_but_one(request):
        return wire.reply(401, b"{}") if b"poisoned" in request.body else wire.reply(200, GOOD)

    async def one_among_others():
        supplier = wire.Supplier(decide=all_but_one)
        async with wire.running(supplier), wire.client(supplier.url) as client:
            bodies = [b"{}", b'{"poisoned": 1}', b"{}", b"{}"]
            return supplier, await asyncio.gather(*(client.ask(MULTI, body) for body in bodies))

    supplier, answers = asyncio.run(one_among_others())
    assert [answer.http_status for answer in answers] == [200, 401, 200, 200]
    assert (answers[1].failure, answers[1].attempts) == (Failure.UNEXPECTED_STATUS, 2)
    assert may_be_poisoned(answers[1])
    assert len(supplier.token_requests) == 2


@pytest.mark.parametrize("status", [401, 403])
def test_a_first_search_that_is_refused_does_not_end_the_sweep(wire, status):
    supplier = wire.Supplier([*[wire.reply(status, b"{}")] * 2, wire.reply(200, GOOD)])
    refused, *others = ask(wire, supplier, times=3, concurrency=1)
    assert (refused.http_status, others[-1].http_status) == (status, 200)
    assert may_be_poisoned(refused)


@pytest.mark.parametrize("status", [401, 403])
def test_searches_that_are_all_refused_fail_one_by_one(wire, status):
    supplier = wire.Supplier([wire.reply(status, b"{}")])
    answers = ask(wire, supplier, times=100, concurrency=2)
    assert {(answer.http_status, answer.failure) for answer in answers} == {(status, Failure.UNEXPECTED_STATUS)}


def test_quotes_that_are_refused_for_their_token_fail_one_by_one(wire):
    answers = ask(wire, wire.Supplier([wire.reply(401, b"{}")]), operation=QUOTE, times=40, concurrency=1)
    assert {answer.failure for answer in answers} == {Failure.UNEXPECTED_STATUS}


def test_a_first_quote_that_is_forbidden_ends_the_quotes(wire):
    with pytest.raises(TokenRefused, match="NIGHTAUDIT_SCOPES"):
        ask(wire, wire.Supplier([wire.reply(403, b"{}")]), operation=QUOTE)


def test_a_search_that_is_forbidden_after_others_were_not_fails_alone(wire):
    supplier = wire.Supplier([wire.reply(200, GOOD), wire.reply(403, b"{}"), wire.reply(200, GOOD)])
    answers = ask(wire, supplier, times=3, concurrency=1)
    assert sorted(answer.http_status for answer in answers) == [200, 200, 403]
    (forbidden,) = (answer for answer in answers if answer.failure)
    assert (forbidden.failure, forbidden.attempts) == (Failure.UNEXPECTED_STATUS, 1)
    assert may_be_poisoned(forbidden)


def test_refused_credentials_end_the_sweep_with_the_words_of_the_token_address(wire):
    said = f'{{"error": "invalid_client", "error_description": "who is {wire.secret}?"}}'.encode()
    with pytest.raises(TokenRefused, match=r"invalid_client - who is \(hidden\)\?"):
        ask(wire, wire.Supplier(tokens=[wire.reply(401, said)]))


@pytest.mark.parametrize("trouble", ["500", "reset", "huge", "html"])
def test_a_token_address_that_fails_for_now_is_tried_again(wire, trouble):
    bad = {
        "500": wire.reply(500, b"{}"),
        "reset": wire.Reply(b"", "reset"),
        "huge": wire.token_reply("token-0", scope="x" * 100_000),
        "html": wire.reply(200, b"<html>"),
    }[trouble]
    supplier = wire.Supplier([wire.reply(200, GOOD)], tokens=[bad, wire.token_reply("token-1")])
    (answer,) = ask(wire, supplier)
    assert (answer.failure, answer.attempts, len(supplier.token_requests)) == (None, 1, 2)


def test_a_token_address_that_keeps_failing_fails_the_search_and_not_the_sweep(wire):
    supplier = wire.Supplier(tokens=[wire.reply(503, b"{}", headers=("Retry-After: 7",))])
    pacer = wire.Pacer()
    (answer,) = ask(wire, supplier, pacer=pacer)
    assert (answer.failure, answer.http_status, answer.attempts) == (Failure.NO_TOKEN, None, 0)
    assert answer.failure_detail == "token endpoint: the token endpoint answered 503"
    # After the last attempt too: the others must not continue at once.
    assert pacer.pauses == [7.0, 7.0, 7.0, 7.0]


def test_the_secret_goes_to_the_token_address_alone_and_the_token_to_the_searches_alone(wire):
    async def two_hosts():
        base, auth = wire.Supplier(), wire.Supplier()
        async with wire.running(base), wire.running(auth), wire.client(base.url, auth_url=auth.url) as client:
            await client.ask(MULTI, b"{}")
        return base, auth

    base, auth = asyncio.run(two_hosts())
    assert [request.headers["authorization"][:6] for request in auth.received] == ["Basic "]
    assert [request.headers["authorization"][:7] for request in base.received] == ["Bearer "]


def test_a_server_error_is_tried_again_until_it_is_answered(wire):
    waits = wire.Waits()
    supplier = wire.Supplier([wire.reply(500, b"{}"), wire.reply(502, b""), wire.reply(200, GOOD)])
    (answer,) = ask(wire, supplier, sleep=waits)
    assert (answer.http_status, answer.failure, answer.attempts) == (200, None, 3)
    assert len(waits.seconds) == 2


def test_a_server_error_that_stays_is_a_failure_with_its_body_kept(wire):
    body = b'{"errors": [{"errorCode": 500}]}'
    (answer,) = ask(wire, wire.Supplier([wire.reply(500, body)]))
    assert (answer.failure, answer.http_status, answer.attempts) == (Failure.SERVER_ERROR, 500, 4)
    assert answer.body == body


@pytest.mark.parametrize(
    ("status", "failure"),
    [(400, None), (404, Failure.UNEXPECTED_STATUS), (413, Failure.UNEXPECTED_STATUS), (204, Failure.UNEXPECTED_STATUS)],
)
def test_what_would_only_be_refused_again_is_sent_once(wire, status, failure):
    supplier = wire.Supplier([wire.reply(status, b"" if status == 204 else b"{}")])
    (answer,) = ask(wire, supplier)
    assert (answer.failure, answer.http_status, answer.attempts, len(supplier.asked)) == (failure, status, 1, 1)


@pytest.mark.parametrize("location", ["/v2/multi", "{url}/v2/multi?x=1#there", "../../v2/multi"])
@pytest.mark.parametrize("status", [307, 308])
def test_a_redirect_within_the_origin_is_followed_with_token_and_body(wire, status, location):
    async def with_a_new_place():
        supplier = wire.Supplier()
        async with wire.running(supplier), wire.client(supplier.url) as client:
            moved = wire.reply(status, headers=(f"Location: {location.format(url=supplier.url)}",))
            supplier.decide = lambda asked: wire.reply(200, GOOD) if asked.path.startswith("/v2") else moved
            return supplier, await client.ask(MULTI, b'{"a":1}')

    supplier, answer = asyncio.run(with_a_new_place())
    assert (answer.http_status, answer.failure, answer.attempts) == (200, None, 2)
    first, second = supplier.asked
    assert (second.body, second.headers["authorization"]) == (first.body, first.headers["authorization"])


@pytest.mark.parametrize(
    "location",
    ["{trap}/steal?x=1", "//127.0.0.1:1/steal", "https://127.0.0.1/steal", "http://localhost:{port}/v1/steal",
     "http://user:word@127.0.0.1:{port}/steal", "//[", "http://xn--/steal", "http://xn--ls8h.example/steal", ""],
)  # fmt: skip
@pytest.mark.parametrize("status", [307, 308])
def test_a_redirect_to_another_origin_is_never_followed(wire, status, location):
    async def with_a_trap():
        trap, supplier = wire.Supplier(), wire.Supplier()
        async with wire.running(trap), wire.running(supplier), wire.client(supplier.url, attempts=2) as client:
            target = location.format(trap=trap.url, port=supplier.port)
            supplier.searches = [wire.reply(status, headers=(f"Location: {target}",))]
            return trap, supplier, await client.ask(MULTI, b"{}")

    trap, supplier, answer = asyncio.run(with_a_trap())
    assert (answer.failure, answer.attempts, trap.received) == (Failure.REDIRECT, 2, [])
    assert {request.path for request in supplier.asked} == {"/v1/property/multi"}
    assert answer.failure_detail.startswith(f"HTTP {status} to ")
    assert answer.failure_detail.endswith("; not followed")
    assert may_be_poisoned(answer)


@pytest.mark.parametrize("status", [301, 302, 303])
def test_a_redirect_that_would_change_the_method_is_not_followed(wire, status):
    supplier = wire.Supplier([wire.reply(status, headers=("Location: /v2/multi",)), wire.reply(200, GOOD)])
    (first,), (answer,) = ask(wire, supplier, attempts=1), ask(wire, supplier)
    assert (first.failure, first.failure_detail) == (
        Failure.REDIRECT,
        f"HTTP {status} to the same host; not followed",
    )
    assert (answer.http_status, answer.attempts) == (200, 1)
    assert {request.path for request in supplier.asked} == {"/v1/property/multi"}


@pytest.mark.parametrize(
    ("leads_to", "requests"),
    [
        (lambda _path: "/v1/property/multi", 1),
        (lambda path: "/a" if path == "/b" else "/b", 3),
        (lambda path: path + "x", 6),
    ],
)
def test_redirects_in_a_circle_or_without_an_end_are_cut_and_retried_and_halved_as_other_failures(
    wire, leads_to, requests
):
    supplier = wire.Supplier(decide=lambda asked: wire.reply(307, headers=(f"Location: {leads_to(asked.path)}",)))
    (answer,) = ask(wire, supplier, attempts=2)
    assert (answer.failure, answer.attempts, len(supplier.asked)) == (Failure.REDIRECT, 2 * requests, 2 * requests)
    assert may_be_poisoned(answer)
    assert "endless redirects" in answer.failure_detail


def test_a_quote_follows_no_redirect(wire):
    supplier = wire.Supplier([wire.reply(307, headers=("Location: /v2/quote",)), wire.reply(200, GOOD)])
    (answer,) = ask(wire, supplier, operation=QUOTE)
    assert (answer.failure, answer.attempts, len(supplier.asked)) == (Failure.REDIRECT, 1, 1)


SERVER_FAILURES = [
    b'{"errors":[{"errorCode":500,"errorDescription":"unexpected"}]}',
    b'{"errors":[{"code":500,"message":"unexpected"}]}',
    b'{"errors":[{"code":1023},{"errorCode":503}]}',
    b'{"errors":{"errorCode":"502"}}',
    b'{"properties":[],"errors":[{"errorCode":504.0}]}',
    b'{"error":{"code":500}}',
    b'{"errorCode":500,"errorDescription":"unexpected"}',
    b'{"errors":[500]}',
    b'{"errors":["Internal Server Error"]}',
    b'{"errors":[{"message":"boom"}]}',
    b' \n{ "ERRORS" : 1, "errors": [ { "errorCode" : 500 } ] }',
    b'{"response":{"errors":[{"errorCode":500}]}}',
    b'{"Errors":[{"ErrorCode":500}]}',
    b'{"properties":null,"error":{"status":{"code":"E500"}}}',
    b'{"padding":"' + b"x" * 600 + b'","errors":[{"errorCode":500}]}',
    b'{"errors":[{"errorCode":500,"errorDescription":"' + b"trace " * 12_000 + b'"}]}',
    b" " * 600 + b'{"errors":[{"errorCode":500}]}',
    b'{"errors":[{"code":1023}],"status":"500.0"}',
    b'{"errors":[{"code":9999}]}',
]


@pytest.mark.parametrize("is_compressed", [False, True])
@pytest.mark.parametrize("body", SERVER_FAILURES)
def test_a_200_that_reports_a_server_failure_is_retried_like_a_500(wire, body, is_compressed):
    headers = ("Content-Encoding: gzip",) if is_compressed else ()
    bad = wire.reply(200, gzip.compress(body) if is_compressed else body, headers=headers)
    (answer,) = ask(wire, wire.Supplier([bad, bad, wire.reply(200, GOOD)]))
    assert (answer.failure, answer.attempts) == (None, 3)
    (answer,) = ask(wire, wire.Supplier([bad]), attempts=2)
    assert (answer.failure, answer.http_status, answer.attempts) == (Failure.SERVER_ERROR, 200, 2)
    assert answer.failure_detail.startswith("HTTP 200 with error")
    assert may_be_poisoned(answer)
    assert outcome_of(answer).verdict is Verdict.FAILED


NOTHING_SAID = [
    b"{}",
    b'{"errors":[]}',
    b'{"properties":null}',
    b'{"properties":{}}',
    b'{"properties":[{}]}',
    b'{"ok":1}',
]
NO_OBJECTS = [
    b"null", b"[]", b'"ok"', b"{", b'{"properties":[]}\n{"errors":[]}', b'{"properties":[', b"[" * 100_000,
    '{"properties":[]}'.encode("utf-16"),
]  # fmt: skip


@pytest.mark.parametrize("body", [*NOTHING_SAID, *NO_OBJECTS])
def test_a_200_that_says_nothing_of_any_property_is_tried_again(wire, body):
    packed = wire.reply(200, gzip.compress(body), headers=("Content-Type: application/json", "Content-Encoding: gzip"))
    (answer,) = ask(wire, wire.Supplier([packed, packed, wire.reply(200, GOOD)]))
    assert (answer.failure, answer.attempts) == (None, 3)
    (answer,) = ask(wire, wire.Supplier([packed]), attempts=2)
    expected = Failure.NOT_JSON if body in NO_OBJECTS else Failure.SERVER_ERROR
    assert (answer.failure, answer.http_status, answer.attempts) == (expected, 200, 2)
    assert may_be_poisoned(answer)


@pytest.mark.parametrize(
    ("encoding", "body"),
    [("br", GOOD), ("gzip", b"not gzip"), ("gzip", gzip.compress(GOOD)[:-9])],
    ids=["another encoding", "not gzip", "cut off"],
)
def test_a_200_that_cannot_be_decompressed_is_tried_again(wire, encoding, body):
    bad = wire.reply(200, body, headers=("Content-Type: application/json", f"Content-Encoding: {encoding}"))
    (answer,) = ask(wire, wire.Supplier([bad, wire.reply(200, GOOD)]))
    assert (answer.failure, answer.attempts) == (None, 2)
    (answer,) = ask(wire, wire.Supplier([bad]), attempts=2)
    assert (answer.failure, answer.attempts) == (Failure.NOT_JSON, 2)


@pytest.mark.parametrize(
    "body",
    [
        SERVER_FAILURES[0],
        b'{"status":500,"error":"Internal Server Error"}',
        b'{"errors":[{"errorCode":"500.0"}]}',
        '{"Errors":[{"ErrorCode":500}]}'.encode("utf-16"),
    ],
)
def test_a_400_with_the_code_of_a_failure_of_the_server_is_one(wire, body):
    (answer,) = ask(wire, wire.Supplier([wire.reply(400, body), wire.reply(200, GOOD)]))
    assert (answer.http_status, answer.attempts) == (200, 2)


@pytest.mark.parametrize(
    "body",
    [
        b'{"errors":[{"code":1023,"message":"no offers, error 500"}]}',
        b'{"errors":[{"code":1999,"message":"a new code"}]}',
        b'{"properties":[]}',
        b'\xef\xbb\xbf { "properties" : [ ] , "errors" : null, "took_ms": 500 }',
        b'{"errors":[],"properties":[{"propertyId":1}]}',
        b'{"properties":[{"propertyId":500,"errors":[{"errorCode":500}]}]}',
        b'{"properties":[{"propertyId":1}],"errors":[{"errorCode":500}]}',
    ],
)
def test_other_answers_with_200_are_answers(wire, body):
    (answer,) = ask(wire, wire.Supplier([wire.reply(200, body)]))
    assert (answer.failure, answer.attempts, answer.body) == (None, 1, body)


def test_a_token_request_says_who_asks_as_a_search_does(wire):
    supplier = wire.Supplier()
    ask(wire, supplier)
    (token,), (search,) = supplier.token_requests, supplier.asked
    assert token.headers["user-agent"] == search.headers["user-agent"] == "nightaudit"


def test_a_redirect_of_the_token_address_is_never_followed(wire):
    async def with_a_trap():
        trap = wire.Supplier()
        async with wire.running(trap):
            supplier = wire.Supplier(tokens=[wire.reply(302, headers=(f"Location: {trap.url}",))])
            async with wire.running(supplier), wire.client(supplier.url) as client:
                with pytest.raises(TokenRefused, match="NIGHTAUDIT_AUTH_URL"):
                    await client.ask(MULTI, b"{}")
        return trap

    assert asyncio.run(with_a_trap()).received == []


@pytest.mark.parametrize("status", [429, 503])
def test_a_retry_after_holds_up_the_whole_sweep_and_not_one_search(wire, status):
    pacer, waits = wire.Pacer(), wire.Waits()
    supplier = wire.Supplier([wire.reply(status, headers=("Retry-After: 12",)), wire.reply(200, GOOD)])
    (answer,) = ask(wire, supplier, pacer=pacer, sleep=waits)
    assert (answer.http_status, answer.attempts) == (200, 2)
    assert (pacer.pauses, waits.seconds) == ([12.0], [])


def test_a_retry_after_of_nothing_is_no_leave_to_hammer(wire):
    pacer = wire.Pacer()
    supplier = wire.Supplier([wire.reply(429, headers=("Retry-After: 0",)), wire.reply(200, GOOD)])
    ask(wire, supplier, pacer=pacer)
    assert pacer.pauses
    assert all(pacer.pauses)


def test_a_429_without_a_retry_after_holds_up_the_sweep_as_well(wire):
    pacer = wire.Pacer()
    (answer,) = ask(wire, wire.Supplier([wire.reply(429)]), pacer=pacer)
    assert (answer.failure, answer.attempts, len(pacer.pauses)) == (Failure.THROTTLED, 4, 4)


@pytest.mark.parametrize(
    ("bad", "failure", "status"),
    [
        ("reset before the answer", Failure.CONNECTION, None),
        ("close before the answer", Failure.CONNECTION, None),
        ("not http", Failure.CONNECTION, None),
        ("reset while reading", Failure.TRUNCATED, 200),
        ("shorter than stated", Failure.TRUNCATED, 200),
        ("chunks break off", Failure.TRUNCATED, 200),
        ("hang before the answer", Failure.TIMEOUT, None),
        ("hang while reading", Failure.TIMEOUT, 200),
        ("html", Failure.NOT_JSON, 200),
        ("empty", Failure.NOT_JSON, 200),
        ("408", Failure.TIMEOUT, 408),
    ],
)
def test_a_broken_answer_is_tried_again_and_then_a_failure_of_its_own_name(wire, bad, failure, status):
    chunked = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{    \r\n"
    replies = {
        "reset before the answer": wire.Reply(b"", "reset"),
        "close before the answer": wire.Reply(b"", "close"),
        "not http": wire.Reply(b"SSH-2.0-OpenSSH_9.6\r\n\r\n", "close"),
        "reset while reading": wire.reply(200, GOOD, length=99, then="reset"),
        "shorter than stated": wire.reply(200, GOOD, length=99, then="close"),
        "chunks break off": wire.Reply(chunked, "close"),
        "hang before the answer": wire.Reply(b"", "hang"),
        "hang while reading": wire.reply(200, GOOD, length=99, then="hang"),
        "html": wire.reply(200, b"<html>", headers=("Content-Type: text/html",)),
        "empty": wire.reply(200, b""),
        "408": wire.reply(408, b""),
    }
    supplier = wire.Supplier([replies[bad]])
    # The second answer of those below must come within it, also where the processors are busy.
    limits = Limits(connect_seconds=2, read_seconds=0.5 if "hang" in bad else 60, body_bytes=1000)
    (answer,) = ask(wire, supplier, limits=limits, attempts=2)
    assert (answer.failure, answer.http_status, answer.attempts) == (failure, status, 2)
    assert answer.failure_detail
    assert not answer.body or status == 408 or failure is Failure.NOT_JSON

    once = wire.Supplier([replies[bad], wire.reply(200, GOOD)])
    (answer,) = ask(wire, once, limits=limits)
    assert (answer.failure, answer.http_status, answer.attempts) == (None, 200, 2)


def test_an_answer_that_drips_in_forever_is_abandoned(wire):
    supplier = wire.Supplier([wire.reply(200, GOOD * 100, then="drip")])
    (answer,) = ask(wire, supplier, attempts=1, limits=Limits(connect_seconds=1, read_seconds=0.1, body_bytes=10_000))
    assert (answer.failure, answer.attempts) == (Failure.TIMEOUT, 1)


@pytest.mark.parametrize("is_stated", [True, False])
def test_a_body_above_the_limit_is_refused_while_it_arrives_and_not_requested_again(wire, is_stated):
    part = b"10000\r\n" + b"{" * 0x10000 + b"\r\n"
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + part * 40 + b"0\r\n\r\n"
    supplier = wire.Supplier([wire.reply(200, b"{" * 2_000_000) if is_stated else wire.Reply(chunked)])
    (answer,) = ask(wire, supplier, limits=Limits(60, 60, 1_000_000))
    assert (answer.failure, answer.http_status, answer.attempts) == (Failure.BODY_TOO_LARGE, 200, 1)
    assert answer.body == b""


def test_a_body_that_is_announced_as_too_large_is_not_waited_for(wire):
    supplier = wire.Supplier([wire.reply(200, b"", length=2_000_000, then="hang")])
    (answer,) = ask(wire, supplier, limits=Limits(60, 60, 1_000_000))
    assert answer.failure is Failure.BODY_TOO_LARGE


@pytest.mark.parametrize("start", [b'{"properties": [', b"<html>"])
def test_a_body_that_inflates_to_more_than_the_limit_is_called_too_large_not_broken_off(wire, start):
    body = gzip.compress(start + b" " * 5_000_000 + b"]}")
    supplier = wire.Supplier([wire.reply(200, body, headers=("Content-Encoding: gzip",))])
    (answer,) = ask(wire, supplier, limits=Limits(60, 60, 3_000_000))
    assert (answer.failure, answer.http_status, answer.attempts) == (Failure.BODY_TOO_LARGE, 200, 1)
    assert "3000000 bytes" in answer.failure_detail
    assert answer.body == b""


def test_every_response_is_closed_however_its_reading_ends(wire):
    class Stream(httpx.AsyncByteStream):
        opened = closed = 0

        async def __aiter__(self):
            Stream.opened += 1
            yield GOOD.ljust(600)
            if Stream.opened == 2:
                raise httpx.ReadError("broke")
            yield b" " * 600

        async def aclose(self):
            Stream.closed += 1

    def transport(_):
        def respond(request):
            if request.url.path == wire.token_path:
                return httpx.Response(200, json={"access_token": "t", "token_type": "Bearer"})
            return httpx.Response(200, stream=Stream())

        return httpx.MockTransport(respond)

    async def ask_thrice():
        seen = []
        for limit in (5000, 5000, 1000):
            async with wire.client("http://x", transport=transport, limits=Limits(60, 60, limit), attempts=1) as client:
                seen.append((await client.ask(MULTI, b"{}")).failure)
        return seen

    assert asyncio.run(ask_thrice()) == [None, Failure.TRUNCATED, Failure.BODY_TOO_LARGE]
    assert (Stream.opened, Stream.closed) == (3, 3)


def test_a_body_of_exactly_the_limit_is_taken(wire):
    (answer,) = ask(wire, wire.Supplier([wire.reply(200, GOOD.ljust(1000))]), limits=Limits(60, 60, 1000))
    assert (answer.failure, len(answer.body)) == (None, 1000)


@pytest.mark.parametrize("trouble", ["500", "429", "reset", "hang", "cut", "html"])
def test_a_quote_is_never_sent_twice(wire, trouble):
    bad = {
        "500": wire.reply(500, b"{}"),
        "429": wire.reply(429, headers=("Retry-After: 1",)),
        "reset": wire.Reply(b"", "reset"),
        "hang": wire.Reply(b"", "hang"),
        "cut": wire.reply(200, GOOD, length=99, then="close"),
        "html": wire.reply(200, b"<html>"),
    }[trouble]
    supplier = wire.Supplier([bad, wire.reply(200, GOOD)])
    limits = Limits(2, 0.5 if trouble == "hang" else 60, 1000)
    (answer,) = ask(wire, supplier, operation=QUOTE, attempts=9, limits=limits)
    assert answer.failure is not None
    assert (answer.attempts, len(supplier.asked)) == (1, 1)


def test_a_quote_that_was_refused_for_its_token_is_not_repeated_and_the_next_one_has_a_new_token(wire):
    supplier = wire.Supplier([wire.reply(401, b"{}"), wire.reply(200, GOOD)])

    async def one_after_the_other():
        async with wire.running(supplier), wire.client(supplier.url) as client:
            return [await client.ask(QUOTE, b"{}") for _ in range(2)]

    refused, good = asyncio.run(one_after_the_other())
    assert (refused.http_status, refused.failure, refused.attempts) == (401, "unexpected_status", 1)
    assert (good.http_status, good.attempts) == (200, 1)
    assert (len(supplier.asked), len(supplier.token_requests)) == (2, 2)


def test_a_supplier_that_was_never_reached_ends_the_sweep(wire):
    async def no_server_listens():
        async with wire.running(wire.Supplier()) as gone:
            url = gone.url
        async with wire.client(url, attempts=2) as client:
            await client.ask(MULTI, b"{}")

    with pytest.raises(SupplierUnreachable, match="NIGHTAUDIT_BASE_URL"):
        asyncio.run(no_server_listens())


def test_a_name_that_does_not_exist_ends_the_sweep(wire):
    async def nowhere():
        async with wire.client("http://nobody.invalid", attempts=2) as client:
            await client.ask(MULTI, b"{}")

    with pytest.raises(SupplierUnreachable, match=r"nobody\.invalid"):
        asyncio.run(nowhere())


def test_a_supplier_that_goes_away_later_fails_its_searches_and_not_the_sweep(wire):
    async def goes_away():
        supplier = wire.Supplier([wire.reply(200, GOOD, headers=("Connection: close",), then="close")])
        async with AsyncExitStack() as stack:
            async with wire.running(supplier):
                client = await stack.enter_async_context(wire.client(supplier.url))
                first = await client.ask(MULTI, b"{}")
            return first, await client.ask(MULTI, b"{}", attempts=2)

    first, second = asyncio.run(goes_away())
    assert first.failure is None
    assert (second.failure, second.attempts, second.http_status) == (Failure.UNREACHABLE, 2, None)


def test_every_search_that_leaves_takes_a_slot_and_a_call_of_the_day_and_a_token_only_a_slot(wire):
    class Counted:
        taken = 0

        def take(self):
            self.taken += 1

    pacer, allowance = wire.Pacer(), Counted()
    supplier = wire.Supplier([wire.reply(500), wire.reply(401), wire.reply(500), wire.reply(200, GOOD)])
    (answer,) = ask(wire, supplier, pacer=pacer, allowance=allowance)
    assert (answer.attempts, allowance.taken, len(supplier.asked)) == (4, 4, 4)
    assert pacer.slots == 4 + len(supplier.token_requests) == 6


def test_a_slot_counts_from_when_its_request_is_written(wire):
    pacer, noted, asked_at = wire.Pacer(), [], []

    class Slow(wire.Supplier):
        def _next(self, request):
            # This very loop runs the client: what it wrote, it has noted in the same step, and not before.
            noted.append(asked_at[-1] < pacer.taken[-1].sent_at)
            return super()._next(request)

    class Connects(PooledTransport):
        async def handle_async_request(self, request):
            asked_at.append(time.monotonic())
            return await super().handle_async_request(request)

    ask(wire, Slow([wire.reply(500), wire.reply(200, GOOD)]), pacer=pacer, transport=Connects)
    assert noted == [True] * 3


def test_a_slot_that_has_lapsed_when_the_connection_is_there_is_taken_again_before_a_byte_is_written(wire):
    waited = []

    class Lapses(Slot):
        async def opens(self):
            await asyncio.sleep(0.05)
            waited.append(len(supplier.received))

    class Late(wire.Pacer):
        async def slot(self):
            await super().slot()
            return Lapses(time.monotonic)

    supplier = wire.Supplier([wire.reply(200, GOOD)])
    (answer,) = ask(wire, supplier, pacer=Late())
    assert (answer.failure, waited) == (None, [0, 1])


def test_the_store_of_the_rate_that_goes_away_while_a_request_waits_to_be_written_ends_the_sweep(wire):
    class Gone(Slot):
        async def opens(self):
            raise RateStoreAway("away")

    class Late(wire.Pacer):
        async def slot(self):
            await super().slot()
            return Gone(time.monotonic)

    supplier = wire.Supplier([wire.reply(200, GOOD)])
    with pytest.raises(RateStoreAway):
        ask(wire, supplier, pacer=Late())
    assert supplier.received == []


@pytest.mark.parametrize("encoding", ["gzip", "gzip, gzip", "br"])
def test_a_token_answer_that_grows_beyond_its_limit_is_refused_before_it_fills_memory(wire, encoding):
    bomb = gzip.compress(gzip.compress(bytes(200_000_000), 1), 9)
    assert len(bomb) < 64 * 1024
    tokens = [wire.reply(status, bomb, headers=(f"Content-Encoding: {encoding}",)) for status in (200, 401)]
    supplier = wire.Supplier([wire.reply(200, GOOD)], tokens=[tokens[0], wire.token_reply("next")])
    tracemalloc.start()
    (answer,) = ask(wire, supplier, attempts=1)
    assert tracemalloc.get_traced_memory()[1] < 20_000_000
    tracemalloc.stop()
    assert answer.failure is Failure.NO_TOKEN
    assert answer.failure_detail.startswith("token endpoint: the token endpoint answered 200: ")
    with pytest.raises(TokenRefused, match=r"answered 401\n"):
        ask(wire, wire.Supplier(tokens=[tokens[1]]), attempts=1)


def test_while_the_days_calls_cannot_be_counted_a_search_waits_and_other_tasks_go_on(wire):
    class Away(Unlimited):
        tries = 0

        def take(self) -> None:
            self.tries += 1
            if self.tries < 4:
                away = RateStoreAway("away")
                away.again_after_seconds = 7.0
                raise away

    allowance, waits = Away(), wire.Waits()
    (answer,) = ask(wire, wire.Supplier([wire.reply(200, GOOD)]), allowance=allowance, sleep=waits)
    assert (answer.failure, allowance.tries) == (None, 4)
    assert list(waits.seconds) == [7.0, 7.0, 7.0]


def test_the_end_of_the_days_calls_stops_the_sweep_before_a_request_leaves(wire):
    class UsedUp:
        def take(self):
            raise SweepStopped("The day's 100 calls are used up.")

    supplier = wire.Supplier()
    with pytest.raises(SweepStopped):
        ask(wire, supplier, allowance=UsedUp())
    assert supplier.asked == []


def test_never_more_than_the_allowed_number_is_in_flight(wire):
    supplier = wire.Supplier(delay_seconds=0.005)
    ask(wire, supplier, times=40, concurrency=3)
    assert (supplier.most_in_flight, len(supplier.asked)) == (3, 40)
    assert supplier.connections <= 3


def test_a_search_that_waits_to_be_repeated_leaves_its_place_to_others(wire):
    async def one_place():
        calm = asyncio.Event()

        async def until_calm(_):
            await calm.wait()

        supplier = wire.Supplier([wire.reply(500), wire.reply(200, GOOD)])
        async with (
            wire.running(supplier),
            wire.client(supplier.url, sleep=until_calm, concurrency=1) as client,
            asyncio.timeout(60),
        ):
            first = asyncio.ensure_future(client.ask(MULTI, b"{}"))
            await supplier.was_asked.wait()
            second = await client.ask(MULTI, b"{}")
            calm.set()
            return await first, second

    first, second = asyncio.run(one_place())
    assert (first.attempts, second.attempts) == (2, 1)


def test_the_times_of_an_answer_are_those_of_its_last_attempt(wire):
    ticks = iter(datetime(2031, 5, 10, tzinfo=UTC) + timedelta(seconds=n) for n in range(100))
    supplier = wire.Supplier([wire.reply(500), wire.reply(200, GOOD)])
    (answer,) = ask(wire, supplier, wall_clock=lambda: next(ticks))
    assert answer.ended_at - answer.started_at == timedelta(seconds=1)
    assert answer.started_at > datetime(2031, 5, 10, 0, 0, 2, tzinfo=UTC)
    assert answer.started_at.tzinfo is UTC


def test_a_cancelled_search_leaves_a_client_that_still_works(wire):
    async def cancel_one():
        supplier = wire.Supplier([wire.reply(200, GOOD, length=99, then="hang"), wire.reply(200, GOOD)])
        async with wire.running(supplier), wire.client(supplier.url, concurrency=1) as client:
            task = asyncio.ensure_future(client.ask(MULTI, b"{}"))
            await supplier.was_asked.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            return await client.ask(MULTI, b"{}")

    assert asyncio.run(cancel_one()).http_status == 200


def test_a_mistake_of_ours_is_not_taken_for_trouble_of_the_network(wire):
    class Broken:
        def take(self):
            raise ZeroDivisionError

    assert not issubclass(ZeroDivisionError, NETWORK_ERRORS)
    with pytest.raises(ZeroDivisionError):
        ask(wire, wire.Supplier(), allowance=Broken())


answers = st.builds(
    bytes.__add__,
    st.sampled_from(
        [
            b"",
            b"HTTP/1.1 200 OK\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-",
            b"HTTP/1.1 401 No\r\nRetry-After: ",
            b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n",
            b"HTTP/1.1 302 Found\r\nLocation: ",
            b"HTTP/9.9 ",
        ]
    ),
    st.binary(max_size=60),
)


@given(answers)
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_bytes_that_a_supplier_sends_end_the_sweep(wire, data):
    supplier = wire.Supplier([wire.Reply(data, "close")], tokens=[wire.token_reply("a"), wire.token_reply("b")])
    limits = Limits(connect_seconds=60, read_seconds=60, body_bytes=1000)
    try:
        (answer,) = ask(wire, supplier, attempts=1, limits=limits)
    except TokenRefused:
        assert data.startswith(b"HTTP/1.1 401")
        return
    assert answer.failure is not None or answer.http_status in {200, 400}


def test_settings_describe_a_client_and_the_sandbox_takes_precedence(wire):
    async def both():
        supplier = wire.Supplier()
        async with wire.running(supplier):
            outside = Settings(
                base_url=supplier.url, client_id="a", client_secret="b", attempts=2, max_body_mb=1, _env_file=None
            )
            async with SupplierClient.of(outside) as client:
                first = await client.ask(MULTI, b"{}")
            bundled = Settings(_env_file=None)
            async with SupplierClient.of(bundled, base_url=supplier.url, client_id="a", client_secret="b") as client:
                second = await client.ask(MULTI, b"{}")
        return first, second

    assert {answer.http_status for answer in asyncio.run(both())} == {200}
