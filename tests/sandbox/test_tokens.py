"""The token endpoint as the two OAuth standards have it, over the wire."""

import base64
from urllib.parse import quote_plus

import httpx
import pytest

from pipeline.sandbox.server.tokens import TokenDesk

GRANT = {"grant_type": "client_credentials"}


@pytest.fixture
def http(sandbox):
    with httpx.Client(base_url=sandbox.base_url, timeout=60, trust_env=False) as plain:
        yield plain


@pytest.fixture
def body_credentials(sandbox):
    return {"client_id": sandbox.client_id, "client_secret": sandbox.client_secret}


def basic(client_id, secret):
    return {"Authorization": "Basic " + base64.b64encode(f"{client_id}:{secret}".encode()).decode()}


def test_basic_credentials_are_form_urlencoded_first(http, sandbox):
    encoded = basic(quote_plus(sandbox.client_id), quote_plus(sandbox.client_secret))
    answer = http.post("/auth/oauth/token", data=GRANT, headers=encoded)
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "no-store"
    assert answer.json()["token_type"] == "Bearer"
    assert answer.json()["expires_in"] == 3600
    raw = http.post("/auth/oauth/token", data=GRANT, headers=basic(sandbox.client_id, sandbox.client_secret))
    assert raw.status_code == 401


def test_body_credentials_do_as_well_but_not_both(http, sandbox, body_credentials):
    assert http.post("/auth/oauth/token", data=GRANT | body_credentials).status_code == 200
    header = basic(quote_plus(sandbox.client_id), quote_plus(sandbox.client_secret))
    both = http.post("/auth/oauth/token", data=GRANT | body_credentials, headers=header)
    assert (both.status_code, both.json()["error"]) == (400, "invalid_request")


@pytest.mark.parametrize(
    ("form", "status", "error"),
    [
        ({}, 400, "invalid_request"),
        ({"grant_type": "password"}, 400, "unsupported_grant_type"),
        (GRANT | {"scope": "read_rooms all"}, 400, "invalid_scope"),
        (GRANT | {"scope": ""}, 400, "invalid_scope"),
        (GRANT | {"client_secret": "wrong"}, 401, "invalid_client"),
        (GRANT | {"client_id": "stranger"}, 401, "invalid_client"),
    ],
)
def test_a_wrong_token_request_has_its_error(http, body_credentials, form, status, error):
    answer = http.post("/auth/oauth/token", data=body_credentials | form)
    assert (answer.status_code, answer.json()["error"]) == (status, error)
    assert ("www-authenticate" in answer.headers) == (status == 401)


def test_only_a_form_is_read(http, body_credentials):
    assert http.post("/auth/oauth/token", json=GRANT | body_credentials).status_code == 400


def test_searching_needs_the_read_scope_and_quoting_the_write_scope(http, body_credentials):
    for scope, allowed in (("read_rooms", "single"), ("write_rooms", "quote")):
        token = http.post("/auth/oauth/token", data=GRANT | body_credentials | {"scope": scope}).json()
        assert token["scope"] == scope
        for operation in ("multi", "single", "quote"):
            header = {"Authorization": f"bearer {token['access_token']}"}
            answer = http.post(f"/v1/property/{operation}", json={}, headers=header)
            is_allowed = (operation == "quote") == (allowed == "quote")
            assert answer.status_code == (400 if is_allowed else 403)
            if not is_allowed:
                assert "insufficient_scope" in answer.headers["www-authenticate"]


@pytest.mark.parametrize("header", [{}, {"Authorization": "Bearer nonsense"}, {"Authorization": "Basic YTpi"}])
def test_a_request_without_a_good_token_is_challenged(http, header):
    answer = http.post("/v1/property/multi", json={}, headers=header)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("Bearer ")
    assert answer.json()["error"]


def test_a_token_ends_with_its_lifetime():
    desk = TokenDesk("id", "secret", lifetime_s=60)
    form = b"grant_type=client_credentials&client_id=id&client_secret=secret"
    assert desk.issue(None, "application/x-www-form-urlencoded; charset=utf-8", form, now=100).status == 200
    (token,) = desk.issued
    assert desk.check(f"Bearer {token}", "read_rooms", now=159.9) is None
    assert desk.check(f"Bearer {token}", "read_rooms", now=160).status == 401


def test_every_token_can_be_made_to_expire_at_once(client, sandbox):
    assert client.post("/v1/property/multi", json={}).status_code == 400
    sandbox.control("faults", {"expire_tokens": True})
    assert client.post("/v1/property/multi", json={}).status_code == 401
