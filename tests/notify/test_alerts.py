"""Messages to a real receiver over HTTP: once, to each separately, and again only if one did not arrive."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import threading
import time
from contextlib import contextmanager

import pytest
from nights import sweep_id
from tiny_night import receiving

from pipeline.domain.errors import InputError, SweepStopped
from pipeline.lake import Lake
from pipeline.lake.simulated import SIMULATED
from pipeline.notify import ways
from pipeline.notify.alert_rules import AlertRules, Rule
from pipeline.notify.alerts import confirmed, tell_alerts
from pipeline.process.signals import stoppable

WHERE = "reports/index.html"


@pytest.fixture(scope="module")
def lake(a_night, tmp_path_factory):
    made = Lake(str(tmp_path_factory.mktemp("alerts") / "lake"))
    shutil.copytree(a_night.root, made.root)
    return made


@pytest.fixture(autouse=True)
def _nothing_was_sent(lake):
    lake.local("alerts/told.json").unlink(missing_ok=True)


def rules(where="true", who=("one",), **more):
    rule = {"name": "sweeps", "relation": "mart.sweep", "where": where, "key": ["sweep_id"], "who": who} | more
    receivers = {name: {"webhook_from": f"ADDRESS_{name.upper()}"} for name in who}
    return AlertRules.model_validate({"rule": [rule], "receiver": receivers})


def test_a_row_is_reported_once_and_once_more_when_it_is_over(lake, monkeypatch):
    with receiving() as (address, got):
        monkeypatch.setenv("ADDRESS_ONE", address)
        tell_alerts(lake, rules(), WHERE)
        tell_alerts(lake, rules(), WHERE)
        assert [message["subject"] for message in got] == ["nightaudit [warning] sweeps: 1 new"]
        assert sweep_id(0) in got[0]["text"]
        assert got[0]["text"].endswith(f"\n{SIMULATED}\n{WHERE}")
        tell_alerts(lake, rules("false"), WHERE)
        tell_alerts(lake, rules("false"), WHERE)
        assert [message["subject"] for message in got[1:]] == ["nightaudit [resolved] sweeps: 1 resolved"]


def test_what_is_resolved_leads_to_the_page_of_how_it_ended(lake, monkeypatch):
    with receiving() as (address, got):
        monkeypatch.setenv("ADDRESS_ONE", address)
        tell_alerts(lake, rules(), WHERE)
        tell_alerts(lake, rules("false"), WHERE, case_pages={sweep_id(0): "https://rates.example/ended.html"})
        _, resolved = got
        assert f"\n- {sweep_id(0)}: " in resolved["text"]
        assert "\n  https://rates.example/ended.html\n0 still open." in resolved["text"]


def test_an_unreached_receiver_gets_the_message_next_time_and_the_others_not_twice(lake, monkeypatch, caplog):
    with receiving() as (well, got), receiving(500) as (ill, _):
        monkeypatch.setenv("ADDRESS_ONE", well)
        monkeypatch.setenv("ADDRESS_TWO", ill)
        with caplog.at_level(logging.WARNING):
            first = tell_alerts(lake, rules(who=("one", "two")), WHERE)
        assert [bool(item.failure) for item in first] == [False, True]
        assert "hidden-part" not in caplog.text + str(first)
        with receiving() as (repaired, got_later):
            monkeypatch.setenv("ADDRESS_TWO", repaired)
            tell_alerts(lake, rules(who=("one", "two")), WHERE)
            assert len(got_later) == 1
        assert len(got) == 1


@pytest.mark.parametrize("times", [1, 2])
def test_a_stop_waits_for_the_message_in_hand_which_is_not_sent_again(lake, monkeypatch, capfd, times):
    """A second signal stops at once: whether the message arrived is then unknown."""
    with receiving(delay=0.5) as (address, got):

        def stop():
            while not got:
                time.sleep(0.01)
            for _ in range(times):
                os.kill(os.getpid(), signal.SIGTERM)
                time.sleep(0.1)

        monkeypatch.setenv("ADDRESS_ONE", address)
        threading.Thread(target=stop).start()
        began = time.monotonic()
        with pytest.raises(SweepStopped), stoppable("kept", "next"):
            tell_alerts(lake, rules(), WHERE)
        if times == 1:
            tell_alerts(lake, rules(), WHERE)
        assert len(got) == 1
        assert time.monotonic() - began < 60
        assert lake.local("alerts/told.json").exists() == (times == 1)
    assert "press Ctrl-C again to stop at once" in capfd.readouterr().err


@contextmanager
def failing_at(number):
    """A receiver that refuses its `number`-th message, counted from 0."""
    with receiving() as (address, got):
        original = ways.webhook

        def webhook(to):
            send = original(to)

            def tell(subject, text):
                if len(got) == number:
                    raise ways.NotDelivered("it answered 500")
                send(subject, text)

            return tell

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("pipeline.notify.alerts.webhook", webhook)
            yield address, got


def test_new_findings_are_not_sent_again_if_the_message_of_resolved_ones_did_not_arrive(lake, monkeypatch):
    with receiving() as (address, got):
        monkeypatch.setenv("ADDRESS_ONE", address)
        tell_alerts(lake, rules(key=["sweep_id"]), WHERE)
        assert len(got) == 1
    # The same row under another key: one is new, the other is resolved.
    with failing_at(1) as (address, got):
        monkeypatch.setenv("ADDRESS_ONE", address)
        (reported,) = tell_alerts(lake, rules(key=["state"]), WHERE)
        assert reported.failure == "it answered 500"
        assert [message["subject"] for message in got] == ["nightaudit [warning] sweeps: 1 new"]
    with receiving() as (address, got):
        monkeypatch.setenv("ADDRESS_ONE", address)
        tell_alerts(lake, rules(key=["state"]), WHERE)
        tell_alerts(lake, rules(key=["state"]), WHERE)
        assert [message["subject"] for message in got] == ["nightaudit [resolved] sweeps: 1 resolved"]


def test_a_way_that_failed_does_not_send_again_what_arrived_by_the_other(lake, monkeypatch):
    def away(_subject, _text):
        raise OSError

    both = rules()
    both = both.model_copy(
        update={"receiver": {"one": both.receiver["one"].model_copy(update={"block": "slack-webhook/one"})}}
    )
    heard = []
    with receiving() as (address, got):
        monkeypatch.setenv("ADDRESS_ONE", address)
        (reported,) = tell_alerts(lake, both, WHERE, block=lambda _: away)
        assert (reported.failure, len(got)) == ("OSError", 1)
        tell_alerts(lake, both, WHERE, block=lambda _: lambda subject, _: heard.append(subject))
        assert (len(got), len(heard)) == (1, 1)


def test_a_rehearsal_sends_and_remembers_nothing(lake, monkeypatch):
    with receiving() as (address, got):
        monkeypatch.setenv("ADDRESS_ONE", address)
        (reported,) = tell_alerts(lake, rules(), WHERE, is_rehearsal=True)
        assert (reported.new, got) == (1, [])
        ((subject, text),) = reported.texts
        assert subject == "nightaudit [warning] sweeps: 1 new"
        assert sweep_id(0) in text
        tell_alerts(lake, rules(), WHERE)
        assert len(got) == 1


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"status": 500}, "it answered 500"),
        ({"status": 302}, "it answered 302"),
        ({"delay": 30}, "no answer within"),
        ({"address": "http://127.0.0.1:9/hidden-part"}, "it could not be reached"),
        ({"address": "htp:/hidden-part"}, "its address is not a web address"),
    ],
)
def test_why_a_message_did_not_arrive_is_reported_without_the_address(lake, monkeypatch, caplog, how, said):
    monkeypatch.setattr(ways, "_TIMEOUT_SECONDS", 0.2 if "delay" in how else 60)
    address = how.pop("address", None)
    with receiving(**how) as (own, _), caplog.at_level(logging.DEBUG):
        monkeypatch.setenv("ADDRESS_ONE", address or own)
        (reported,) = tell_alerts(lake, rules(), WHERE)
    assert said in reported.failure
    assert f"'one' could not be notified of 'sweeps': {said}" in caplog.text
    assert "hidden-part" not in caplog.text + str(reported)


def test_an_answer_that_drips_holds_no_other_up(lake, monkeypatch):
    monkeypatch.setattr(ways, "_TIMEOUT_SECONDS", 60)
    with receiving(is_dripping=True) as (address, got):
        monkeypatch.setenv("ADDRESS_ONE", address)
        (reported,) = tell_alerts(lake, rules(), WHERE)
        # The receiver runs until it is released.
        assert (reported.failure, len(got)) == (None, 1)


def test_an_address_that_is_not_set_is_reported_by_its_name(lake, monkeypatch):
    monkeypatch.delenv("ADDRESS_ONE", raising=False)
    (reported,) = tell_alerts(lake, rules(), WHERE)
    assert "ADDRESS_ONE" in reported.failure


def test_an_address_may_be_in_the_env_file_like_other_secrets(lake, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with receiving() as (address, got):
        (tmp_path / ".env").write_text(f"ADDRESS_ONE={address}\n")
        (reported,) = tell_alerts(lake, rules(), WHERE)
    assert (reported.failure, len(got)) == (None, 1)


@pytest.mark.parametrize("where", ["no_such_column = 1", "1 = (SELECT count(*) FROM mart.none)"])
def test_a_condition_that_cannot_be_asked_sends_nothing(lake, monkeypatch, where):
    with receiving() as (address, got):
        monkeypatch.setenv("ADDRESS_ONE", address)
        with pytest.raises(InputError, match="rule 'sweeps' cannot be evaluated"):
            tell_alerts(lake, rules(where), WHERE)
        assert got == []


def test_new_flags_are_reported_only_when_they_are_found_again():
    rule = Rule(name="flags", relation="report.flag", who=("one",), confirm=True)
    rows = [{"flag_id": name} for name in ("known", "stands", "is-gone")]
    asked = []

    def confirm(flags):
        asked.extend(flags)
        return {"stands"}

    left = confirmed(rule, rows, {"one": {"known": "sent before"}}, confirm)
    assert [row["flag_id"] for row in left] == ["known", "stands"]
    assert asked == ["stands", "is-gone"]
