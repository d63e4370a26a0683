"""`nightaudit quote` and its flow: what they refuse, ask and show."""

from __future__ import annotations

import pytest

import flows  # noqa: F401 - sets defaults of Prefect's environment
from pipeline.domain.errors import InputError

pytestmark = pytest.mark.slow


@pytest.fixture
def environment(quotable):
    """Settings with which quotes are requested of the sandbox."""
    names = ("base_url", "client_id", "scopes", "quote_cap", "lake")
    given = {f"NIGHTAUDIT_{name.upper()}": str(getattr(quotable.settings, name)) for name in names}
    return given | {"NIGHTAUDIT_CLIENT_SECRET": quotable.settings.client_secret.get_secret_value()}


@pytest.fixture
def run(environment, tmp_path, monkeypatch, nightaudit):
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments):
        done = nightaudit(tmp_path, "quote", *arguments, **environment)
        assert environment["NIGHTAUDIT_CLIENT_SECRET"] not in done.stdout + done.stderr
        return done.returncode, done.stdout + done.stderr

    return run


def test_without_the_flag_nothing_is_asked_and_the_exit_code_is_2(run):
    code, said = run("--sample", 5)
    assert code == 2
    assert "up to 5 reservations" in said
    assert "--yes-make-reservations" in said
    assert "No quotes have been requested" in run()[1]


def test_a_sample_is_asked_and_stands_in_the_ledger(run, quotable):
    before = quotable.served("quote")
    code, said = run("--sample", 3, "--market", "GB", "--seed", 4, "--yes-make-reservations")
    assert code == 0
    assert "FROM mart.quote_check" in said
    assert quotable.served("quote") == before + 3
    code, said = run()
    assert (code, "reservations" in said, len(said.splitlines()) >= 2) == (0, True, True)


def test_the_ledger_names_what_is_unknown(run, quotable):
    quotable.sandbox.control("faults", {"fail_next": 1, "fail_next_with": "truncate"})
    assert "1 unknown: ask the supplier" in run("--sample", 1, "--yes-make-reservations")[1]
    assert "0 + 1 possible" in run()[1]


def test_the_flow_does_the_same_and_nothing_of_it_is_ever_retried(environment, tmp_path, monkeypatch):
    from prefect.settings import PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS, temporary_settings

    from flows import quote_check as module

    assert module.quote_check.retries == module.ask_quotes.retries == 0
    monkeypatch.chdir(tmp_path)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    # The steps as they are, without a Prefect server to record them.
    monkeypatch.setattr(module, "ask_quotes", module.ask_quotes.fn)
    with pytest.raises(InputError, match="2 reservations"):
        module.quote_check.fn(2)
    # The table of outcomes goes to a server anyway, and on busy processors that takes its time to start.
    with temporary_settings({PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS: 120}):
        assert module.quote_check.fn(2, markets=["GB"], yes_make_reservations=True).chosen == 2
