"""Which nights let the workers of a cluster send searches."""

from __future__ import annotations

import pytest

from pipeline.night.ask_block import store_of_workers
from pipeline.settings import read_settings


@pytest.mark.parametrize(
    ("others", "may_send"),
    [
        ({}, True),
        ({"daily_calls": 100}, True),
        ({"rate_store": None}, False),
        ({"cluster": None}, False),
        ({"metrics_port": 9109}, False),
        ({"base_url": None}, False),
    ],
)
def test_workers_send_only_at_one_rate(others, may_send):
    given = {
        "base_url": "https://supplier.example",
        "client_id": "a",
        "client_secret": "b",
        "cluster": "tcp://127.0.0.1:8786",
        "rate_store": "redis://127.0.0.1:6379/0",
    }
    settings = read_settings(_env_file=None, **(given | others))
    assert (store_of_workers(settings) is not None) is may_send
