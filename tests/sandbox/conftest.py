import sys
from datetime import date
from pathlib import Path

import httpx
import pytest

from pipeline.sandbox.server.launch import SandboxProcess

# Tests are imported one by one, without their folder; the searches that they share are found through this.
sys.path.append(str(Path(__file__).parent))

TODAY = date(2030, 1, 1)


@pytest.fixture(scope="session")
def sandbox():
    with SandboxProcess(seed=7, properties=400, today=TODAY, client_secret="a:b c+%/é") as process:
        yield process


@pytest.fixture
def client(sandbox):
    """A client with a token of both scopes; the faults are gone afterwards."""
    with httpx.Client(base_url=sandbox.base_url, timeout=60, trust_env=False) as http:
        form = {
            "grant_type": "client_credentials",
            "client_id": sandbox.client_id,
            "client_secret": sandbox.client_secret,
        }
        http.headers["Authorization"] = "Bearer " + http.post("/auth/oauth/token", data=form).json()["access_token"]
        yield http
    sandbox.control("faults", {})


@pytest.fixture(scope="session")
def property_ids(sandbox):
    return sandbox.control("properties")["property_ids"]


@pytest.fixture
def multi_request(property_ids):
    return {
        "propertyIds": property_ids[:20],
        "checkIn": "2030-02-10",
        "checkOut": "2030-02-13",
        "market": "SE",
        "currencyCode": "EUR",
        "rateType": "BAR",
        "productType": "Hotel",
        "roomStays": [{"id": 0, "guestCount": {"adultCount": 2}}],
    }


@pytest.fixture
def single_request(multi_request, property_ids):
    return {name: value for name, value in multi_request.items() if name != "propertyIds"} | {
        "propertyId": property_ids[0]
    }
