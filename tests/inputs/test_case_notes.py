"""Cases: one id night after night, and their notes are kept."""

from __future__ import annotations

import csv
import errno
import shutil
from datetime import date, timedelta

import pytest
from case_alerts import rules_of_cases
from nights import load_night, started_at, sweep_id

from pipeline.cli.case import show_or_note
from pipeline.domain.analysis import Analysis
from pipeline.domain.errors import InputError, LakeError
from pipeline.inputs.case_notes import case_row, flags_of_cases, open_cases, say_of_case
from pipeline.inputs.load import load
from pipeline.lake import Lake
from pipeline.lake.database import query_published
from pipeline.lake.simulated import SIMULATED
from pipeline.notify.alert_rules import AlertRules
from pipeline.notify.alerts import tell_alerts
from pipeline.publish import publish, republish_all
from pipeline.publish.refresh import catch_up, refresh

pytestmark = pytest.mark.slow

STAY = {"check_in": date(2030, 3, 1), "nights": 2, "party": "2"}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Two nights in which DE is dearer than GB and FR."""
    made = Lake(str(tmp_path_factory.mktemp("cases") / "lake"))
    for night, dearer in ((0, 108), (1, 109)):
        prices = {"GB": 100, "DE": dearer, "FR": 100}
        asked = list(enumerate(prices.items()))
        load_night(
            made,
            night,
            cell=[{"search_id": number, "market": market, **STAY} for number, (market, _) in asked],
            offer=[
                {"search_id": number, "market": market, "total": total, "currency": "EUR", "room_id": 7, "board_id": 14}
                | STAY
                for number, (market, total) in asked
            ],
        )
        publish(made, sweep_id(night), started_at(night), analysis=Analysis(reference_market="GB"))
    return made


@pytest.fixture
def lake(made, tmp_path):
    """A copy of them. Its views read the files of the first one until it is refreshed."""
    shutil.copytree(made.root, tmp_path / "lake")
    return Lake(str(tmp_path / "lake"))


def test_a_case_gathers_its_flags_and_keeps_its_id_and_what_was_said_of_it(lake):
    (case,) = open_cases(lake, 10)
    assert (case["rule"], case["property_id"], case["market"], case["flags"]) == ("market_disparity", 1, "DE", 1)
    assert (case["status"], case["first_seen_at"], case["last_seen_at"]) == ("open", started_at(0), started_at(1))
    say_of_case(lake, case["case_id"], started_at(2), is_acknowledged=True, owner="Ada", note="called")
    say_of_case(lake, case["case_id"], started_at(3), note="called again")
    refresh(lake)
    said = case_row(lake, case["case_id"])
    assert (said["status"], said["owner"], said["note"]) == ("acknowledged", "Ada", "called again")
    noted = "SELECT acknowledged_pct, acknowledged_eur, acknowledged_amounts FROM mart.case_noted"
    with query_published(lake.published_file, noted) as found:
        assert found.fetchall() == [(case["highest_pct"], 9, [{"currency": "EUR", "amount": 9}])]
    republish_all(lake, lambda: None)
    assert case_row(lake, case["case_id"]) == said
    assert flags_of_cases(lake, [case["case_id"], "b-1"]) == [case["evidence"][0]["flag_id"], "b-1"]


def test_what_is_said_by_a_clock_that_is_behind_the_nights_counts(lake):
    """Nights of the sandbox's clock lie in the future of a command without it."""
    refresh(lake)
    (case,) = open_cases(lake, 10)
    say_of_case(lake, case["case_id"], started_at(0) - timedelta(days=900), is_acknowledged=True)
    refresh(lake)
    said = case_row(lake, case["case_id"])
    assert (said["status"], said["acknowledged_at"]) == ("acknowledged", started_at(1))


RULES = rules_of_cases({"name": "flags", "relation": "report.flag", "who": ["desk"]})


def told(lake: Lake, rules: AlertRules = RULES) -> list[str]:
    """Send alerts, and return the subjects of the messages."""
    subjects = []
    tell_alerts(lake, rules, "the page", block=lambda _: lambda subject, _text: subjects.append(subject))
    return subjects


def test_what_someone_takes_on_is_not_told_as_resolved_and_what_is_muted_not_at_all(lake):
    refresh(lake)
    (case,) = open_cases(lake, 10)
    assert told(lake) == [
        "nightaudit [warning] cases: 1 open before tonight",
        "nightaudit [warning] flags: 1 open before tonight",
    ]
    say_of_case(lake, case["case_id"], started_at(2), is_acknowledged=True)
    refresh(lake)
    assert told(lake) == []
    lake.local("alerts/told.json").unlink()
    say_of_case(lake, case["case_id"], started_at(3), muted_until=date(2100, 1, 1))
    refresh(lake)
    assert case_row(lake, case["case_id"])["status"] == "muted"
    assert told(lake) == []


@pytest.mark.parametrize(
    ("relation", "key"),
    [
        ("report.finding_case", ["property_id", "market"]),
        ("report.market_disparity", ["flag_id"]),
        ("report.flag", ["property_id", "check_in"]),
    ],
)
def test_what_is_muted_is_neither_told_nor_resolved_whatever_relation_and_key_a_rule_names(lake, relation, key):
    refresh(lake)
    (case,) = open_cases(lake, 10)
    rule = {"name": "any", "relation": relation, "key": key, "who": ["desk"]}
    rules = AlertRules.model_validate({"rule": [rule], "receiver": {"desk": {"block": "slack-webhook/desk"}}})
    assert len(told(lake, rules)) == 1
    say_of_case(lake, case["case_id"], started_at(3), muted_until=date(2100, 1, 1))
    refresh(lake)
    assert told(lake, rules) == []
    lake.local("alerts/told.json").unlink()
    assert told(lake, rules) == []


def test_a_case_that_was_told_is_told_once_more_when_its_mute_ends(lake):
    refresh(lake)
    (case,) = open_cases(lake, 10)
    told(lake)
    say_of_case(lake, case["case_id"], started_at(2), muted_until=date(2100, 1, 1))
    refresh(lake)
    assert told(lake) == []
    say_of_case(lake, case["case_id"], started_at(3), muted_until=started_at(1).date())
    refresh(lake)
    assert [told(lake), told(lake)] == [["nightaudit [warning] cases: 1 open before tonight"], []]


def test_an_empty_note_or_owner_takes_the_one_before_back(lake, monkeypatch, tmp_path):
    monkeypatch.setenv("NIGHTAUDIT_LAKE", str(lake.root))
    monkeypatch.chdir(tmp_path)
    (case,) = open_cases(lake, 10)
    for said in ({"note": "called", "owner": "Ada"}, {"note": "", "owner": ""}):
        show_or_note(case["case_id"], is_acknowledged=False, muted_until=None, **said)
        found = case_row(lake, case["case_id"])
        assert (found["note"], found["owner"]) == (said["note"] or None, said["owner"] or None)


def test_the_annotation_made_last_counts_although_the_clock_stands_still_or_was_set_back(lake):
    (case,) = open_cases(lake, 10)
    for at, note in ((started_at(3), "first"), (started_at(3), "second"), (started_at(2), "third")):
        say_of_case(lake, case["case_id"], at, note=note)
        refresh(lake)
        assert case_row(lake, case["case_id"])["note"] == note


def test_an_annotation_that_cannot_be_shown_yet_is_recorded_and_reported(lake, monkeypatch, tmp_path):
    monkeypatch.setenv("NIGHTAUDIT_LAKE", str(lake.root))
    monkeypatch.chdir(tmp_path)
    (found,) = open_cases(lake, 10)
    with monkeypatch.context() as full:
        full.setattr("pipeline.publish.refresh.put_in_place", full_disk)
        with pytest.raises(LakeError, match="does not show the annotation"):
            show_or_note(found["case_id"], is_acknowledged=False, muted_until=None, note="called", owner=None)
    assert case_row(lake, found["case_id"])["note"] is None
    assert catch_up(lake)
    assert case_row(lake, found["case_id"])["note"] == "called"


def full_disk(*_):
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize(("until", "status"), [(date(2030, 1, 3), "muted"), (date(2030, 1, 2), "open")])
def test_a_muted_case_is_muted_up_to_its_day(lake, until, status):
    (case,) = open_cases(lake, 10)
    say_of_case(lake, case["case_id"], started_at(2), muted_until=until)
    refresh(lake)
    said = case_row(lake, case["case_id"])
    assert (said["status"], said["muted_until"]) == (status, until)
    republish_all(lake, lambda: None)
    assert case_row(lake, case["case_id"]) == said


def test_a_case_that_is_not_known_is_refused(lake):
    with pytest.raises(InputError, match="no case"):
        say_of_case(lake, "case-0000000000000000", started_at(2), note="what")


def test_cases_are_limited_by_city_brand_and_group_in_any_case_of_letters(lake, tmp_path):
    file = tmp_path / "properties.csv"
    file.write_text("property_id,property_name,city,brand,property_group\n1,Fjord,Oslo,O'Neill,North\n")
    load(lake, "properties", file, started_at(2))
    refresh(lake)
    every = open_cases(lake, 10)
    assert len(every) == 1
    assert open_cases(lake, 10, {"city": "oslo", "brand": "o'neill", "property_group": None}) == every
    assert open_cases(lake, 10, {"city": "Oslo", "brand": "Vera"}) == []


def test_open_cases_are_written_in_full_for_spreadsheets_and_programs(lake, monkeypatch, tmp_path, capsys):
    from pipeline.cli.case import list_cases

    # The lake is a copy: its file reads what lies where it is now.
    refresh(lake)

    monkeypatch.setenv("NIGHTAUDIT_LAKE", str(lake.root))
    monkeypatch.chdir(tmp_path)
    list_cases(None, {}, "csv", None)
    header, line = capsys.readouterr().out.splitlines()
    (case,) = open_cases(lake, 10)
    assert header.startswith("case_id,rule,problem,property_id,property_name,")
    assert dict(zip(*csv.reader([header, line]), strict=True))["size_unit"] == case["size_unit"] == "%"
    amounts = " + ".join(f"{each['amount']} {each['currency']}" for each in case["amounts"])
    assert amounts.endswith(" EUR")
    assert dict(zip(*csv.reader([header, line]), strict=True))["amounts"] == amounts
    # Who reads a sheet knows no codes of rules.
    assert line.startswith(f"{case['case_id']},market_disparity,Price differs from other markets,")
    list_cases(None, {}, "xlsx", tmp_path / "cases.xlsx")
    assert (tmp_path / "cases.xlsx").read_bytes().startswith(b"PK")


def test_cases_are_a_few_lines_each_on_a_narrow_terminal_and_a_misspelt_city_is_not_all_clear(
    lake, monkeypatch, tmp_path, capsys
):
    from pipeline.cli.case import list_cases

    refresh(lake)
    monkeypatch.setenv("NIGHTAUDIT_LAKE", str(lake.root))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    list_cases(None, {}, "table", None)
    (case,) = open_cases(lake, 10)
    note, first, second, third = capsys.readouterr().out.splitlines()
    assert note == SIMULATED
    assert first.startswith(f"{case['case_id']}  ")
    assert second == "  property 1, DE: Price differs from other markets"
    assert third == f"  {case['finding']}"
    for form in ("table", "csv"):
        with pytest.raises(InputError, match="No property has these: city Berln") as caught:
            list_cases(None, {"city": "Berln", "brand": None}, form, None)
        assert "SELECT DISTINCT city, brand, property_group FROM mart.property" in caught.value.hint
