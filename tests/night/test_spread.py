"""Which nights let the workers of a cluster send searches."""

from __future__ import annotations

import pytest
from nights import finish, sweep_id

from pipeline.domain.errors import SettingsError
from pipeline.lake import Lake
from pipeline.night.ask_block import ask_block
from pipeline.night.senders import store_of_workers
from pipeline.settings import read_settings

GIVEN = {
    "base_url": "https://supplier.example",
    "client_id": "a",
    "client_secret": "b",
    "cluster": "tcp://127.0.0.1:8786",
    "rate_store": "redis://127.0.0.1:6379/0",
}


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
    settings = read_settings(_env_file=None, **(GIVEN | others))
    assert (store_of_workers(settings) is not None) is may_send


def test_a_worker_that_joined_late_with_another_rate_store_sends_nothing(monkeypatch, tmp_path):
    """It has no supplier here: it would fail otherwise if it tried."""
    lake = Lake(str(tmp_path))
    finish(lake, 1, supplier="supplier.example")

    class Probe:
        def patiently(self) -> str:
            return "names another Redis server."

    for name, value in GIVEN.items():
        monkeypatch.setenv(f"NIGHTAUDIT_{name.upper()}", value)
    with pytest.raises(SettingsError, match=r"^The worker \S+ names another Redis server\.\n"):
        ask_block(lake, sweep_id(1), [], 1, rate=5, daily_calls=None, unbranded={}, handed=None, shares_rate=Probe())
