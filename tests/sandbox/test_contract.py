"""The running sandbox against the contract, with requests that schemathesis makes up: good ones and broken ones."""

from datetime import date, timedelta
from pathlib import Path
from urllib.parse import quote_plus

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis import GenerationMode
from schemathesis.specs.openapi import checks as openapi_checks

CONTRACT = Path(__file__).parents[1] / "contract" / "supplier_openapi.yaml"
schema = schemathesis.openapi.from_path(CONTRACT)
# A request that the schema allows may still be refused for what no schema can say: these rules.
BEYOND_THE_SCHEMA = {1007, 1014, 1015, 1016, 1017, 1027}
AS_GENERATED = settings(
    max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck), database=None
)


@pytest.fixture(scope="session")
def token(sandbox):
    form = {
        "grant_type": "client_credentials",
        "client_id": sandbox.client_id,
        "client_secret": sandbox.client_secret,
    }
    return httpx.post(f"{sandbox.base_url}/auth/oauth/token", data=form, trust_env=False).json()["access_token"]


def is_positive(case):
    return case.meta is not None and case.meta.generation.mode is GenerationMode.POSITIVE


def refused_codes(response):
    return {error["errorCode"] for error in response.json()["errors"]}


@schema.exclude(path="/auth/oauth/token").parametrize()
@AS_GENERATED
def test_whatever_is_asked_the_answer_keeps_the_contract(case, sandbox, token):
    response = case.call_and_validate(
        base_url=sandbox.base_url,
        headers={"Authorization": f"Bearer {token}"},
        excluded_checks=[openapi_checks.positive_data_acceptance],
    )
    if is_positive(case):
        assert response.status_code == 200 or refused_codes(response) <= BEYOND_THE_SCHEMA


@pytest.mark.slow
@schema.exclude(path="/auth/oauth/token").parametrize()
@AS_GENERATED
def test_offers_keep_the_contract_too(case, sandbox, token, property_ids, sold_product):
    """What schemathesis makes up seldom has an offer, so properties, dates and currency are put right."""
    if not is_positive(case) or not isinstance(case.body, dict):
        return
    drawn = len(repr(case.body))
    check_in = date(2030, 1, 2) + timedelta(days=drawn % 200)
    case.body |= {
        "checkIn": check_in.isoformat(),
        "checkOut": (check_in + timedelta(days=1 + drawn % 9)).isoformat(),
        "currencyCode": ("EUR", "SEK", "JPY", "USD")[drawn % 4],
        "roomStays": [stay | {"id": place} for place, stay in enumerate(case.body["roomStays"][:2])],
    }
    if "propertyIds" in case.body:
        case.body["propertyIds"] = property_ids[drawn % 300 :][:100]
    else:
        case.body["propertyId"] = property_ids[drawn % 400]
    for stay in case.body["roomStays"]:
        stay["guestCount"] = {"adultCount": 1 + drawn % 2, "childAges": [7] * (drawn % 3 == 0)}
        if "productId" in stay:
            case.body["propertyId"], stay["productId"] = sold_product
    response = case.call_and_validate(
        base_url=sandbox.base_url,
        headers={"Authorization": f"Bearer {token}"},
        excluded_checks=[openapi_checks.positive_data_acceptance, openapi_checks.negative_data_rejection],
    )
    assert response.status_code == 200


@pytest.fixture(scope="session")
def sold_product(sandbox, token, property_ids):
    """A property and one of its lasting products, for quotes."""
    request = {
        "propertyIds": property_ids[:100],
        "checkIn": "2030-03-10",
        "checkOut": "2030-03-12",
        "market": "SE",
        "rateType": "BAR",
        "productType": "Hotel",
        "roomStays": [{"id": 0, "guestCount": {"adultCount": 2}}],
    }
    headers = {"Authorization": f"Bearer {token}"}
    answer = httpx.post(f"{sandbox.base_url}/v1/property/multi", json=request, headers=headers, trust_env=False)
    return next(
        (hotel["propertyId"], product["productId"])
        for hotel in answer.json()["properties"]
        for room in hotel.get("roomStays") or ()
        for product in room.get("products") or ()
        if hotel.get("propertyId") and (product.get("productId") or 2**60) < 2**53
    )


@schema.include(path="/auth/oauth/token").parametrize()
@settings(AS_GENERATED, max_examples=20)
def test_the_token_endpoint_keeps_the_contract(case, sandbox):
    case.call_and_validate(
        base_url=sandbox.base_url,
        auth=(quote_plus(sandbox.client_id), quote_plus(sandbox.client_secret)),
    )
