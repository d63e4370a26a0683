"""Findings over time: flags, and `nightaudit confirm`."""

from __future__ import annotations

import asyncio
import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from conftest import NIGHTS
from planted_world import rows
from spoiler import Spoiler

from pipeline.domain.errors import InputError, NothingSent
from pipeline.domain.tables import CONFIRMATION
from pipeline.lake.delta import is_committed
from pipeline.night import confirm as confirming
from pipeline.night import confirm_settle
from pipeline.night.confirm import confirm, confirmer
from pipeline.night.confirm_plan import choose_flags
from pipeline.notify.alert_rules import AlertRules
from pipeline.notify.alerts import tell_alerts
from pipeline.publish.publish import publish, republish_all
from pipeline.publish.refresh import refresh
from pipeline.publish.summaries import SUMMARIES
from pipeline.sandbox.server.launch import SandboxProcess

pytestmark = pytest.mark.slow

MOST = 64_000_000


@pytest.fixture
def settings(world, lake, sandbox):
    sandbox.control("faults", {})
    return world.settings.model_copy(update={"lake": str(lake.root)})


def now(lake):
    return rows(lake, "SELECT max(started_at) FROM mart.sweep")[0][0] + timedelta(hours=5)


def run(settings, lake, flags):
    return asyncio.run(confirm(settings, lake, flags, now=lambda: now(lake)))


# Flags over time ------------------------------------------------------------------------------------------------------


def test_what_is_planted_for_good_is_seen_every_night_under_one_id(world):
    found = rows(world.lake, "SELECT DISTINCT snapshots FROM report.flag WHERE rule = 'unnamed_promotion'")
    assert max(found) == (len(NIGHTS),)
    twice = "SELECT flag_id FROM report.flag GROUP BY flag_id HAVING count(*) > 1"
    assert rows(world.lake, twice) == []


def test_a_file_rebuilt_holds_the_same_flags(lake):
    flags = "FROM report.flag_history ORDER BY ALL"
    before = rows(lake, flags)
    assert before
    lake.published_file.unlink()
    publish(lake, lake.sweep_ids()[-1], datetime(2031, 1, 1, tzinfo=UTC))
    assert rows(lake, flags) == before


def test_a_night_in_many_ranges_of_properties_finds_what_one_range_finds(lake):
    relations = "SELECT schema_name || '.' || view_name FROM duckdb_views() WHERE schema_name IN ('mart', 'report')"
    names = [
        *(row[0] for row in rows(lake, relations)),
        *SUMMARIES,
        "state.flag_open",
        "state.flag_closed",
        "mart.sweep",
    ]
    before = {name: rows(lake, f"FROM {name} ORDER BY ALL") for name in names}
    assert before["state.flag_open"]
    assert republish_all(lake, lambda: None, most_offers=len(before["mart.offer_latest"]) // 2)
    assert rows(lake, "SELECT count(DISTINCT first_property_id) FROM state.file")[0][0] > 1
    for name, expected in before.items():
        assert rows(lake, f"FROM {name} ORDER BY ALL") == expected, name


def test_a_flag_that_stood_twice_is_read_as_it_stood_last(lake):
    (flag_id,) = rows(lake, "SELECT min(flag_id) FROM report.flag")[0]
    with duckdb.connect(":memory:") as session:
        session.execute(f"ATTACH '{lake.published_file}' AS held")
        session.execute(
            "INSERT INTO held.state.flag_closed BY NAME SELECT "  # noqa: S608 - our own names
            "* REPLACE (first_flagged_at - INTERVAL 9 DAY AS first_flagged_at, 'before' AS finding), "
            "first_flagged_at AS resolved_at, first_flagged_sweep_id AS resolved_sweep_id, 'gone' AS ended_by "
            f"FROM held.state.flag_open WHERE flag_id = '{flag_id}'"
        )
    assert len(rows(lake, f"SELECT 1 FROM report.flag_history WHERE flag_id = '{flag_id}'")) == 2  # noqa: S608 - our own names
    (flag,) = choose_flags(lake, [flag_id], [], 1)
    assert flag["finding"] != "before"


# Confirmed ------------------------------------------------------------------------------------------------------------


def test_flags_that_still_hold_are_confirmed_and_lead_to_the_new_answers(settings, lake, sandbox):
    before = sandbox.control("served")["requests"]
    flags = choose_flags(lake, [], [], 10)
    summary = run(settings, lake, flags)
    assert summary.outcomes == {"confirmed": 10, "gone": 0, "not_confirmable": 0}
    served = sandbox.control("served")["requests"]
    assert sum(sum(kind.values()) for kind in served.values()) == summary.searches + sum(
        sum(kind.values()) for kind in before.values()
    )
    held = rows(lake, "SELECT confirmation, confirmation_raw_address FROM report.flag WHERE confirmation IS NOT NULL")
    assert len(held) == 10
    from pipeline.lake.raw_answer import evidence_at

    assert all(
        evidence_at(lake, address).record.http_status == 200 for _, reported in held for address in reported.split()
    )


def test_what_is_not_there_any_more_is_gone(settings, lake):
    flags = choose_flags(lake, [], ["unnamed_promotion"], 3)
    with SandboxProcess(seed=1, properties=400, plant_share=0, missing_share=0, today=now(lake).date()) as honest:
        honest.control("night", {"night": NIGHTS[-1], "today": now(lake).date().isoformat()})
        elsewhere = settings.model_copy(update={"base_url": honest.base_url})
        with pytest.MonkeyPatch.context() as patch:
            asked = rows(lake, "SELECT any_value(supplier) FROM mart.sweep")[0][0]
            patch.setattr("pipeline.night.supplier.supplier_name", lambda _: asked)
            summary = run(elsewhere, lake, flags)
    assert summary.outcomes == {"confirmed": 0, "gone": 3, "not_confirmable": 0}


def test_what_an_unreadable_part_may_show_is_not_called_gone(settings, lake, sandbox):
    of_details = "SELECT flag_id FROM report.flag WHERE rule = 'unnamed_promotion' AND source = 'detail' LIMIT 3"
    flags = choose_flags(lake, [flag_id for (flag_id,) in rows(lake, of_details)], [], 3)

    def spoil(_market, _request, answer):
        said = json.loads(answer)
        for room in said["property"]["roomStays"]:
            (first, *_) = room["products"]
            readable = first | {"charges": first["charges"] | {"prePromoTotal": None}}
            for product in room["products"]:
                product["charges"]["total"] = "NaN"
            room["products"].append(readable)
        return json.dumps(said).encode()

    with Spoiler(sandbox.base_url) as between, pytest.MonkeyPatch.context() as patch:
        between.spoil = spoil
        asked = rows(lake, "SELECT any_value(supplier) FROM mart.sweep")[0][0]
        patch.setattr("pipeline.night.supplier.supplier_name", lambda _: asked)
        summary = run(settings.model_copy(update={"base_url": between.base_url}), lake, flags)
    assert summary.outcomes == {"confirmed": 0, "gone": 0, "not_confirmable": 3}
    assert {row["reason"] for row in summary.rows} == {"a part of the answers could not be read, and may show it"}


def test_what_gets_no_answer_is_not_confirmable_with_its_reason(settings, lake, sandbox):
    flags = choose_flags(lake, [], [], 4)
    sandbox.control("faults", {"status_500_rate": 1.0})
    summary = run(settings.model_copy(update={"attempts": 1}), lake, flags)
    assert summary.outcomes == {"confirmed": 0, "gone": 0, "not_confirmable": 4}
    assert all("not answered" in row["reason"] for row in summary.rows)


def test_no_more_searches_are_sent_than_the_cap_allows(settings, lake):
    flags = choose_flags(lake, [], [], 50)
    summary = run(settings.model_copy(update={"confirm_cap": 2}), lake, flags)
    assert summary.searches <= 2
    assert summary.left == len(flags) - len(summary.rows) > 0


def test_an_alert_that_asks_for_it_is_confirmed_first(settings, lake, sandbox):
    rule = {"name": "charged", "relation": "report.flag", "where": "rule = 'unnamed_promotion'", "who": ["one"]}
    receiver = {"one": {"webhook_from": "ADDRESS_THAT_IS_NOT_SET"}}
    rules = AlertRules.model_validate({"rule": [rule | {"confirm": True}], "receiver": receiver})
    standing = rows(lake, "SELECT count(*) FROM report.flag WHERE rule = 'unnamed_promotion'")[0][0]

    def reported(cap, hour):
        capped = settings.model_copy(update={"confirm_cap": cap, "attempts": 1})
        again = confirmer(capped, lake, lambda: now(lake) + timedelta(hours=hour))
        return tell_alerts(lake, rules, "", confirm=again)[0].new

    assert reported(25, 0) == min(standing, 25)
    asked = "SELECT count(*) FROM lake.confirmation WHERE outcome = 'confirmed'"
    assert rows(lake, asked)[0][0] == min(standing, 25)
    assert reported(1, 1) <= 1
    sandbox.control("faults", {"status_500_rate": 1.0})
    assert reported(25, 2) == 0


def test_a_run_that_was_killed_is_settled_by_the_next_one(settings, lake, monkeypatch):
    flags = choose_flags(lake, [], [], 6)
    monkeypatch.setattr(confirming, "settle", lambda *_, **__: [])
    run(settings, lake, flags)
    monkeypatch.undo()
    (killed,) = (name for name in lake.names("raw") if name.startswith("confirm-"))
    landed = sorted(lake.local(f"raw/{killed}").glob("*.parquet"))
    landed[0].unlink()
    assert not is_committed(lake, CONFIRMATION, killed)
    confirming.settle_left_over(lake, MOST)
    refresh(lake)
    outcomes = dict(rows(lake, "SELECT outcome, count(*) FROM lake.confirmation GROUP BY ALL"))
    assert sum(outcomes.values()) == 6
    assert outcomes["not_confirmable"] >= 1
    assert rows(lake, "SELECT DISTINCT reason FROM lake.confirmation WHERE reason IS NOT NULL") == [
        (confirm_settle._STOPPED,)
    ]


def test_an_unknown_flag_or_rule_or_a_flag_that_has_ended_is_refused(lake):
    with pytest.raises(InputError, match="no flag"):
        choose_flags(lake, ["phantom_promotion-0"], [], 5)
    closed = rows(lake, "SELECT min(flag_id) FROM report.flag_history WHERE resolved_at IS NOT NULL")[0][0]
    if closed and (closed,) not in rows(lake, "SELECT flag_id FROM report.flag"):
        with pytest.raises(InputError, match="is no longer open"):
            choose_flags(lake, [closed], [], 5)
    with pytest.raises(InputError, match=r"no rule no_such_rule\.") as refused:
        choose_flags(lake, [], ["no_such_rule"], 5)
    assert not isinstance(refused.value, NothingSent)
    assert "phantom_promotion" in refused.value.hint
