"""Client, requests and answers together, against the project's sandbox."""

from __future__ import annotations

import asyncio
from datetime import date

import msgspec
import pytest

from pipeline.domain.errors import SupplierUnreachable, TokenRefused
from pipeline.domain.search import Operation, ProductType, Search
from pipeline.domain.stay import Party, Stay
from pipeline.quote.read_answer import reservation_id_of
from pipeline.sandbox.server.launch import SandboxProcess
from pipeline.settings import Credentials
from pipeline.supplier.answer import Failure
from pipeline.supplier.auth import TOKEN_PATH, ClientCredentials
from pipeline.supplier.bodies import inflate
from pipeline.supplier.client import SupplierClient
from pipeline.supplier.exchange import Limits
from pipeline.supplier.outcomes import Outcome, Verdict, may_be_poisoned, outcome_of
from pipeline.supplier.pacer import Pacer
from pipeline.supplier.requests import quote_request_for, request_for
from pipeline.supplier.retries import Backoff
from pipeline.supplier.wire import ANSWERS

TODAY = date(2031, 5, 9)
SECRET = "se:cret +%/é"


@pytest.fixture(scope="module")
def running_sandbox():
    with SandboxProcess(seed=3, properties=60, today=TODAY, client_secret=SECRET) as process:
        yield process


@pytest.fixture
def sandbox(running_sandbox):
    yield running_sandbox
    running_sandbox.control("faults", {})


@pytest.fixture
def ids(sandbox):
    return tuple(sandbox.control("properties")["property_ids"])


def search(ids, operation=Operation.MULTI, **given):
    asked = {"market": "SE", "currency": "SEK", "stay": Stay.of(date(2031, 6, 10), 2)} | given
    return Search(
        0, operation, asked["market"], ProductType.HOTEL, asked["stay"], Party.parse("2c7"), asked["currency"], ids
    )


def ask(sandbox, *asked, scopes="read_rooms", credentials=Credentials.BASIC, secret=SECRET):
    """Ask (operation, body) one after the other and return the answers."""

    async def all_of_it():
        auth = ClientCredentials(
            sandbox.base_url + TOKEN_PATH, sandbox.client_id, secret, scopes=scopes, credentials=credentials
        )
        async with SupplierClient(
            sandbox.base_url,
            auth,
            pacer=Pacer(1e5),
            backoff=Backoff(0.001),
            limits=Limits(60, 60, 5_000_000),
        ) as client:
            return [await client.ask(operation, body) for operation, body in asked]

    return asyncio.run(all_of_it())


def wire_of(asked):
    return asked.operation, request_for(asked, today=TODAY).to_wire()


def read(operation, answer):
    plain = inflate(answer.body, answer.content_encoding, limit_bytes=10**8)
    return msgspec.json.decode(plain, type=ANSWERS[operation])


@pytest.mark.parametrize("credentials", list(Credentials))
def test_a_multi_search_is_answered_and_its_answer_can_be_read(sandbox, ids, credentials):
    (answer,) = ask(sandbox, wire_of(search(ids)), credentials=credentials)
    assert outcome_of(answer) == Outcome(Verdict.ANSWERED)
    found = read(Operation.MULTI, answer).properties
    assert found
    assert {one.property_id for one in found} - {None} <= set(ids)


def test_a_product_that_was_found_can_be_quoted_and_its_reservation_is_known(sandbox, ids):
    (multi,) = ask(sandbox, wire_of(search(ids)))
    one = next(one for one in read(Operation.MULTI, multi).properties if one.room_stays)
    single = search((one.property_id,), Operation.SINGLE)
    (detail,) = ask(sandbox, wire_of(single))
    product = read(Operation.SINGLE, detail).property.room_stays[0].products[0]
    body = quote_request_for(single, [product.product_id], today=TODAY).to_wire()
    (quote,) = ask(sandbox, (Operation.QUOTE, body), scopes="read_rooms write_rooms")
    plain = inflate(quote.body, quote.content_encoding, limit_bytes=10**6)
    assert reservation_id_of(plain) == read(Operation.QUOTE, quote).reservation_id
    assert reservation_id_of(plain) is not None


def test_what_the_supplier_refuses_is_rejected_with_its_code(sandbox, ids):
    operation, body = wire_of(search(ids[:1], stay=Stay.of(date(2031, 5, 10), 1)))
    yesterday = body.replace(b"2031-05-10", b"2031-05-08")
    (answer,) = ask(sandbox, (operation, yesterday))
    assert outcome_of(answer) == Outcome(Verdict.REJECTED, (1014,))
    assert not may_be_poisoned(answer)


def test_trouble_that_passes_is_sat_out(sandbox, ids):
    kinds = ("status_500", "reset", "truncate", "reset_midway", "truncate_chunked", "html_200", "empty_200")
    for kind in kinds:
        sandbox.control("faults", {"fail_next": 2, "fail_next_with": kind, "token_fail_next": 1})
        (answer,) = ask(sandbox, wire_of(search(ids[:5])))
        assert (answer.failure, answer.http_status, answer.attempts) == (None, 200, 3), kind


def test_trouble_that_stays_has_a_name(sandbox, ids):
    expected = {
        "status_500": Failure.SERVER_ERROR,
        "reset": Failure.CONNECTION,
        "reset_midway": Failure.TRUNCATED,
        "truncate": Failure.TRUNCATED,
        "truncate_chunked": Failure.TRUNCATED,
        "html_200": Failure.NOT_JSON,
        "empty_200": Failure.NOT_JSON,
        "redirect": Failure.REDIRECT,
        "huge_body": Failure.BODY_TOO_LARGE,
    }
    for kind, failure in expected.items():
        sandbox.control("faults", {"fail_next": 9, "fail_next_with": kind, "huge_mb": 6})
        (answer,) = ask(sandbox, wire_of(search(ids[:5])))
        assert answer.failure is failure, kind


def test_tokens_that_end_early_are_replaced(sandbox, ids):
    async def in_between():
        auth = ClientCredentials(sandbox.base_url + TOKEN_PATH, sandbox.client_id, SECRET)
        async with SupplierClient(sandbox.base_url, auth, pacer=Pacer(1e5), limits=Limits(60, 60, 5_000_000)) as client:
            first = await client.ask(*wire_of(search(ids[:5])))
            await asyncio.to_thread(sandbox.control, "faults", {"expire_tokens": True})
            return [first, *await asyncio.gather(*(client.ask(*wire_of(search(ids[:5]))) for _ in range(4)))]

    answers = asyncio.run(in_between())
    assert {(answer.http_status, answer.failure) for answer in answers} == {(200, None)}


def test_a_wrong_secret_is_refused_in_the_sandboxs_words(sandbox, ids):
    with pytest.raises(TokenRefused, match="invalid_client"):
        ask(sandbox, wire_of(search(ids[:1])), secret="wrong")


def test_a_supplier_that_resets_every_connection_fails_searches_and_one_that_is_gone_ends_the_sweep(ids):
    with SandboxProcess(seed=3, properties=5, today=TODAY, client_secret=SECRET, faults={"down": True}) as sandbox:
        (answer,) = ask(sandbox, wire_of(search(ids[:1])))
        assert answer.failure is Failure.NO_TOKEN
    with pytest.raises(SupplierUnreachable):
        ask(sandbox, wire_of(search(ids[:1])))
