"""What the settings of a worker must be for it to send the searches of another machine's night."""

from __future__ import annotations

import pytest

from pipeline.night.senders import SenderProbe, cannot_send, why_alone
from pipeline.settings import read_settings

HERE = {
    "NIGHTAUDIT_BASE_URL": "https://supplier.example",
    "NIGHTAUDIT_CLIENT_ID": "shop",
    "NIGHTAUDIT_CLIENT_SECRET": "never-to-be-seen",
    "NIGHTAUDIT_RATE_STORE": "rediss://store.example/0",
    "NIGHTAUDIT_CLUSTER": "tcp://127.0.0.1:8786",
}
LACKS_ALL = "has no NIGHTAUDIT_BASE_URL and no NIGHTAUDIT_RATE_STORE, so it cannot send searches"


@pytest.fixture
def settings_of(monkeypatch):
    """Return the settings of a machine that differs from this one; None: it lacks that setting."""

    def read(**others: str | None):
        for name, value in (HERE | {f"NIGHTAUDIT_{name}": value for name, value in others.items()}).items():
            monkeypatch.delenv(name, raising=False)
            if value is not None:
                monkeypatch.setenv(name, value)
        return read_settings(_env_file=None)

    return read


@pytest.mark.parametrize(
    ("differs", "why"),
    [
        ({}, ""),
        ({"BASE_URL": "HTTPS://Supplier.Example/"}, ""),
        ({"CLIENT_SECRET": "another"}, ""),
        (
            {"BASE_URL": "https://other.example"},
            "names the supplier other.example in NIGHTAUDIT_BASE_URL (here: supplier.example)",
        ),
        ({"BASE_URL": None, "RATE_STORE": None}, LACKS_ALL),
        ({"RATE_STORE": None}, "has no NIGHTAUDIT_RATE_STORE, so it cannot send searches"),
        (
            {"AUTH_URL": "https://tokens.example"},
            "gets its tokens from https://tokens.example (here: https://supplier.example; NIGHTAUDIT_AUTH_URL)",
        ),
        ({"CLIENT_ID": "shop-2"}, "uses the NIGHTAUDIT_CLIENT_ID shop-2 (here: shop)"),
    ],
)
def test_the_doctor_is_told_how_a_worker_differs_from_this_machine(settings_of, differs, why):
    probe = SenderProbe.of(settings_of(), lambda: "")
    settings_of(**differs)
    assert probe() == why


def test_a_worker_whose_settings_cannot_be_read_says_which(settings_of, monkeypatch):
    probe = SenderProbe.of(settings_of(), lambda: "")
    monkeypatch.setenv("NIGHTAUDIT_REQUESTS_PER_SECOND", "many")
    assert probe().startswith("cannot read its settings: These settings cannot be used: NIGHTAUDIT_REQUESTS_PER_SECOND")


def test_a_worker_of_another_rate_is_told_by_its_mark(settings_of):
    assert SenderProbe.of(settings_of(), lambda: "names another Redis server")() == "names another Redis server"


def test_a_worker_sends_no_search_of_another_supplier(settings_of):
    assert cannot_send(settings_of(), "supplier.example") == ""
    assert "here: other.example" in cannot_send(settings_of(), "other.example")


@pytest.mark.parametrize(
    ("differs", "why"),
    [
        ({}, ""),
        ({"BASE_URL": None}, "the bundled sandbox answers this machine alone"),
        ({"RATE_STORE": None}, "NIGHTAUDIT_RATE_STORE is not set"),
        ({"METRICS_PORT": "9109"}, "NIGHTAUDIT_METRICS_PORT counts the requests of this machine alone"),
    ],
)
def test_why_only_this_machine_sends_is_known(settings_of, differs, why):
    assert why_alone(settings_of(**differs)) == why
