"""The token flow by hand: it yields requests and is handed responses, and there is no network."""

from __future__ import annotations

import asyncio
import base64
import json
from urllib.parse import parse_qs, unquote_plus

import httpx
import pytest

from pipeline.domain.errors import TokenRefused
from pipeline.settings import Credentials
from pipeline.supplier.auth import UNSTATED_LIFETIME_SECONDS, ClientCredentials, TokenUnavailable

ADDRESS = "https://supplier.example/auth/oauth/token"
SECRET = "p:ss+wörd &%"


class Clock:
    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def search():
    return httpx.Request("POST", "https://supplier.example/v1/property/multi")


def token(value="t1", status=200, headers=None, **fields):
    return httpx.Response(status, json={"access_token": value, "token_type": "Bearer"} | fields, headers=headers)


def credentials(**given):
    return ClientCredentials(ADDRESS, "id:with colon", SECRET, **given)


def walk(auth, *responses):
    """Hand responses to the flow of one search; return what it asked to be sent, and the token it ended with."""

    async def all_of_it():
        flow = auth.async_auth_flow(request := search())
        seen = [await anext(flow)]
        for response in responses:
            try:
                seen.append(await flow.asend(response))
            except StopAsyncIteration:
                break
        await flow.aclose()
        # The same request is yielded again after a 401, so note what it carries as it goes by.
        return ["token" if one is not request else "search" for one in seen], request.headers.get("authorization")

    return asyncio.run(all_of_it())


def token_request(auth):
    return asyncio.run(anext(auth.async_auth_flow(search())))


def test_a_token_is_asked_for_before_the_first_search():
    assert walk(credentials(), token(), httpx.Response(200)) == (["token", "search"], "Bearer t1")


def test_id_and_secret_travel_as_basic_credentials_that_were_form_urlencoded_first():
    request = token_request(credentials(scopes=" read_rooms   write_rooms "))
    kind, _, pair = request.headers["authorization"].partition(" ")
    encoded = base64.b64decode(pair).decode().split(":")
    assert (kind, [unquote_plus(part) for part in encoded]) == ("Basic", ["id:with colon", SECRET])
    assert parse_qs(request.content.decode()) == {
        "grant_type": ["client_credentials"],
        "scope": ["read_rooms write_rooms"],
    }
    assert (request.method, str(request.url)) == ("POST", ADDRESS)
    assert request.headers["content-type"] == "application/x-www-form-urlencoded"


def test_id_and_secret_travel_in_the_body_where_the_setting_says_so():
    request = token_request(credentials(credentials=Credentials.BODY, scopes=""))
    assert "authorization" not in request.headers
    assert parse_qs(request.content.decode()) == {
        "grant_type": ["client_credentials"],
        "client_id": ["id:with colon"],
        "client_secret": [SECRET],
    }


@pytest.mark.parametrize("kind", ["bearer", "BEARER", "Bearer"])
def test_the_type_of_a_token_is_compared_without_case(kind):
    assert walk(credentials(), token(token_type=kind), httpx.Response(200))[1] == "Bearer t1"


@pytest.mark.parametrize(
    ("stated", "stale_after"),
    [
        (3600, 3570),
        ("3600", 3570),
        (10, 8),
        (None, UNSTATED_LIFETIME_SECONDS - 30),
        (0, UNSTATED_LIFETIME_SECONDS - 30),
        (-5, UNSTATED_LIFETIME_SECONDS - 30),
        ("soon", UNSTATED_LIFETIME_SECONDS - 30),
        (True, UNSTATED_LIFETIME_SECONDS - 30),
        ("inf", UNSTATED_LIFETIME_SECONDS - 30),
        ("nan", UNSTATED_LIFETIME_SECONDS - 30),
    ],
)
def test_a_token_is_replaced_shortly_before_its_end_and_not_sooner(stated, stale_after):
    clock = Clock()
    auth = credentials(now=clock)
    walk(auth, token(expires_in=stated), httpx.Response(200))
    clock.seconds = stale_after - 0.001
    assert walk(auth, httpx.Response(200))[0] == ["search"]
    clock.seconds = stale_after
    assert walk(auth, token("t2"), httpx.Response(200)) == (["token", "search"], "Bearer t2")


def test_a_401_gets_one_new_token_and_one_repetition():
    auth = credentials()
    seen = walk(auth, token(), httpx.Response(401), token("t2"), httpx.Response(200))
    assert seen == (["token", "search", "token", "search"], "Bearer t2")


def test_after_a_second_401_nothing_more_is_tried():
    seen = walk(credentials(), token(), httpx.Response(401), token("t2"), httpx.Response(401))
    assert seen[0] == ["token", "search", "token", "search"]


def test_a_401_for_an_already_replaced_token_requests_no_other():
    async def two_searches():
        auth = credentials()
        first, second = auth.async_auth_flow(search()), auth.async_auth_flow(search())
        await anext(first)
        await first.asend(token("t1"))
        await anext(second)
        # Both went out with t1; the first is refused and gets t2, then the second is refused.
        await first.asend(httpx.Response(401))
        repeated = await first.asend(token("t2"))
        again = await second.asend(httpx.Response(401))
        await first.aclose()
        await second.aclose()
        return repeated, again

    for request in asyncio.run(two_searches()):
        assert request.headers["authorization"] == "Bearer t2"


def test_all_who_wait_use_the_token_that_one_of_them_asked_for():
    async def many():
        auth = credentials()
        flows = [auth.async_auth_flow(search()) for _ in range(5)]
        asker = await anext(flows[0])
        waiting = [asyncio.ensure_future(anext(flow)) for flow in flows[1:]]
        await asyncio.sleep(0)
        assert str(asker.url) == ADDRESS
        assert not any(task.done() for task in waiting)
        await flows[0].asend(token("t1"))
        carried = [request.headers["authorization"] for request in await asyncio.gather(*waiting)]
        for flow in flows:
            await flow.aclose()
        return carried

    assert asyncio.run(many()) == ["Bearer t1"] * 4


def test_one_who_gives_up_while_asking_leaves_the_asking_to_the_next():
    async def gives_up():
        auth = credentials()
        first, second = auth.async_auth_flow(search()), auth.async_auth_flow(search())
        await anext(first)
        waiting = asyncio.ensure_future(anext(second))
        await asyncio.sleep(0)
        await first.aclose()
        request = await waiting
        await second.aclose()
        return request

    assert str(asyncio.run(gives_up()).url) == ADDRESS


@pytest.mark.parametrize("status", [400, 401, 403])
def test_a_refusal_is_reported_in_the_words_of_the_token_address(status):
    said = {"error": "invalid_scope", "error_description": "no\nwrite_rooms", "error_uri": "x"}
    with pytest.raises(TokenRefused) as caught:
        walk(credentials(), httpx.Response(status, json=said))
    assert f"answered {status}: invalid_scope - no write_rooms" in caught.value.message
    assert "NIGHTAUDIT_CLIENT_SECRET" in caught.value.hint


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"error": 3}', b"[" * 100_000])
def test_a_refusal_without_readable_words_is_a_refusal_all_the_same(body):
    with pytest.raises(TokenRefused, match="answered 401"):
        walk(credentials(), httpx.Response(401, content=body))


@pytest.mark.parametrize("status", [301, 404, 405])
def test_an_address_that_gives_no_tokens_is_a_refusal_that_points_at_the_address(status):
    with pytest.raises(TokenRefused, match="NIGHTAUDIT_AUTH_URL"):
        walk(credentials(), httpx.Response(status))


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503])
def test_a_token_address_that_is_busy_or_broken_is_unavailable_and_its_retry_after_is_handed_on(status):
    with pytest.raises(TokenUnavailable) as caught:
        walk(credentials(), httpx.Response(status, headers={"Retry-After": "9"}))
    assert caught.value.retry_after == "9"


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b"null"])
def test_a_200_that_is_no_token_answer_is_unavailable(body):
    with pytest.raises(TokenUnavailable):
        walk(credentials(), httpx.Response(200, content=body))


@pytest.mark.parametrize("value", [None, "", 5, "two words", "line\nbreak", "ünicode"])
def test_a_token_that_could_not_be_sent_is_a_refusal(value):
    with pytest.raises(TokenRefused, match="access_token"):
        walk(credentials(), token(value))


@pytest.mark.parametrize("kind", ["mac", "", 5, None])
def test_a_token_that_is_no_bearer_token_is_a_refusal(kind):
    with pytest.raises(TokenRefused, match="Bearer"):
        walk(credentials(), token(token_type=kind))


def test_neither_secret_nor_token_is_in_a_refusal_that_repeats_them():
    auth = credentials()
    walk(auth, token("t0ken"), httpx.Response(200))
    blob = token_request(credentials()).headers["authorization"].removeprefix("Basic ")
    said = {"error": f"bad {SECRET}", "error_description": f"{blob} t0ken"}
    with pytest.raises(TokenRefused) as caught:
        walk(auth, httpx.Response(401), httpx.Response(400, content=json.dumps(said)))
    assert "bad (hidden) - (hidden) (hidden)" in str(caught.value)


def test_the_flow_is_an_httpx_authentication_like_any_other():
    def supplier(request):
        if request.url.path.endswith("token"):
            return token()
        return httpx.Response(200, text=request.headers["authorization"])

    async def through_httpx():
        async with httpx.AsyncClient(transport=httpx.MockTransport(supplier), auth=credentials()) as client:
            return await client.post("https://supplier.example/v1/property/multi")

    assert asyncio.run(through_httpx()).text == "Bearer t1"


def test_a_new_token_for_every_search_is_hidden_and_does_not_fill_the_memory():
    auth = credentials(now=(clock := Clock()))
    for number in range(300):
        walk(auth, token(f"token-{number:03}", expires_in=1), httpx.Response(200))
        clock.seconds += 2
    assert auth.secrets.redact("token-299 token-298 token-250") == "(hidden) (hidden) (hidden)"
    assert auth.secrets.redact("token-000") == "token-000"
