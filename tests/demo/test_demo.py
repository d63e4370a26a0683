"""A demo: nights on their own dates in an empty lake, which the next night continues."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest

from pipeline.cli import demo
from pipeline.cli.terminal import own_command
from pipeline.demo import make_demo, refuse_demo
from pipeline.demo.inputs import MARKUP_PCT
from pipeline.domain.analysis import Analysis
from pipeline.domain.errors import InputError, SettingsError, SweepStopped
from pipeline.lake import Lake
from pipeline.lake.database import query_published
from pipeline.night.read_spec import as_in_its_demo, mark_as_demo, read_spec_of
from pipeline.sandbox.world import planted, story
from pipeline.sandbox.world.prices import _level
from pipeline.sandbox.world.world import World
from pipeline.settings import Settings

from .conftest import LAST


def rows(settings: Settings, query: str) -> list[tuple]:
    return query_published(Lake(settings.lake).published_file, query).fetchall()


@pytest.mark.slow
def test_every_night_lies_on_its_own_date_passed_its_audit_and_is_simulated(two_nights):
    settings, made, reported = two_nights
    nights = rows(settings, "SELECT snapshot_date, audit, is_simulated FROM mart.sweep ORDER BY 1")
    assert nights == [(LAST - timedelta(days=1), "passed", True), (LAST, "passed", True)]
    assert (made.first, made.last) == (LAST - timedelta(days=1), LAST)
    assert made.reports.exists()
    # Counted from the first moment, and to the last.
    assert (reported[0].made, reported[0].nights, reported[-1].made) == (0, 2, 2)


@pytest.mark.slow
def test_what_users_load_and_ask_is_there(two_nights):
    settings, made, _ = two_nights
    counts = "SELECT (FROM (SELECT count(DISTINCT property_id) FROM mart.{}))"
    assert rows(settings, counts.format("cell_latest")) == [(made.properties,)]
    assert rows(settings, f"{counts.format('property')} ") == [(made.properties,)]
    assert rows(settings, "SELECT count(*) > 200 FROM mart.selling_price") == [(True,)]
    # `explain` and `rebuild` know prices by when they were loaded: the night before them did not.
    assert rows(
        settings, "SELECT min(loaded_at) > (SELECT max(started_at) FROM mart.sweep) FROM lake.selling_price"
    ) == [(True,)]
    assert rows(settings, "SELECT count(*) FROM mart.quote_check") == [(8,)]
    assert rows(settings, "SELECT count(DISTINCT market), count(DISTINCT product_type) FROM mart.offer_latest") == [
        (5, 2)
    ]
    own = "SELECT DISTINCT market, currency FROM mart.offer_latest WHERE currency <> 'EUR' ORDER BY 1"
    assert rows(settings, own) == [("GB", "GBP"), ("SE", "SEK"), ("US", "USD")]
    assert rows(settings, "SELECT count(*) FROM mart.property_map") != [(0,)]
    assert rows(settings, "SELECT count(*) FROM report.floor_breach") != [(0,)]


@pytest.mark.slow
def test_each_printed_query_has_an_answer_that_fits_a_screen(two_nights):
    settings, _, _ = two_nights
    for words, query in demo._QUERIES:
        assert 0 < len(rows(settings, query)) <= 50, words


@pytest.mark.slow
def test_the_next_night_asks_the_same_without_any_setting(two_nights):
    settings, _, _ = two_nights
    now = datetime.combine(LAST + timedelta(days=1), datetime.min.time(), UTC)
    spec, ids = read_spec_of(settings, now.date())
    before = Lake(settings.lake).sweep_ids()[-1]
    asked = rows(settings, f"SELECT count(DISTINCT property_id) FROM lake.cell WHERE sweep_id = '{before}'")  # noqa: S608 - our own id
    assert [(len(ids),)] == asked
    assert spec.ask.markets == ("GB", "DE", "NL", "SE", "US")


@pytest.mark.slow
def test_the_next_night_compares_with_the_mark_up_of_the_demo(two_nights):
    """Otherwise the findings that rest on it would be reported as ended."""
    settings, _, _ = two_nights
    assert as_in_its_demo(Lake(settings.lake), Analysis()).what_if_markup_pct == MARKUP_PCT
    assert rows(settings, "SELECT what_if_markup_pct FROM ref.analysis") == [(MARKUP_PCT,)]
    set_otherwise = Analysis(what_if_markup_pct=8.0)
    assert as_in_its_demo(Lake(settings.lake), set_otherwise) is set_otherwise


@pytest.mark.slow
def test_a_lake_that_is_not_empty_is_left_alone(two_nights):
    settings, _, _ = two_nights
    with pytest.raises(InputError, match="is not empty"):
        make_demo(settings, 2, LAST)
    assert len(Lake(settings.lake).sweep_ids()) == 2


@pytest.mark.parametrize("given", [{"base_url": "https://api.example", "client_id": "a", "client_secret": "b"}, {}])
def test_a_supplier_and_a_night_that_has_not_ended_are_refused_before_a_lake_is_made(tmp_path, given):
    settings = Settings(_env_file=None, lake=str(tmp_path / "lake"), **given)
    error, last = (SettingsError, LAST) if given else (InputError, date(2199, 1, 1))
    with pytest.raises(error):
        make_demo(settings, 2, last)
    assert not (tmp_path / "lake").exists()


def test_a_lake_that_a_refused_night_has_left_without_a_night_is_empty(tmp_path):
    settings = Settings(_env_file=None, lake=str(tmp_path / "lake"))
    with Lake(settings.lake).writing("a night that is refused"):
        pass
    refuse_demo(settings, Lake(settings.lake), LAST)


def test_the_command_refuses_before_it_says_what_it_makes(tmp_path, nightaudit):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    done = nightaudit(tmp_path, "demo", NIGHTAUDIT_LAKE="full")
    assert done.returncode == 2
    assert "is not empty" in done.stderr
    assert done.stdout == ""


def test_a_demo_that_was_killed_is_called_so_with_what_to_do(tmp_path, nightaudit):
    mark_as_demo(Lake(str(tmp_path / "lake")), "", 2)
    done = nightaudit(tmp_path, "demo", NIGHTAUDIT_LAKE="lake", COLUMNS="200")
    assert done.returncode == 2
    assert "holds a demo that was stopped before its end" in done.stderr
    assert "Remove that folder, then: nightaudit demo" in done.stderr


@pytest.mark.parametrize(
    ("advice", "hint"), [("", "Continue with: {}"), ("Free some space.", "Free some space.\nThen: {}")]
)
def test_a_demo_stopped_in_a_sweep_names_no_step_that_a_demo_does_not_have(tmp_path, monkeypatch, advice, hint):
    def stopped(*_):
        error = SweepStopped("Stopped as requested.", hint=advice)
        error.at_step("Sweep s: 3 of 4.", "nightaudit resume s-1")
        raise error

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NIGHTAUDIT_LAKE", "lake")
    monkeypatch.setattr("pipeline.cli.demo.make_demo", stopped)
    with pytest.raises(SweepStopped) as caught:
        demo.demo(2, LAST)
    assert caught.value.kept == "The nights made so far stay in lake."
    assert caught.value.hint == hint.format("nightaudit demo, once that folder is removed")


@pytest.mark.parametrize(
    ("called", "command"),
    [
        (".venv/bin/nightaudit", ".venv/bin/nightaudit"),
        ("pipeline/cli/__main__.py", ".venv/bin/python -m pipeline.cli"),
    ],
)
def test_the_printed_commands_can_be_called_as_the_demo_was(tmp_path, monkeypatch, called, command):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("shutil.which", lambda _: None)
    monkeypatch.setattr("sys.argv", [str(tmp_path / called)])
    monkeypatch.setattr("sys.executable", str(tmp_path / ".venv/bin/python"))
    assert own_command() == command


def kinds(world: World, night: int) -> dict[int, str]:
    """What each of the first properties carries on a night."""
    reported = world.at(night, world.today + timedelta(days=night))
    found = {index: reported.find(each) for index, each in enumerate(world.property_ids()[:40])}
    return {index: profile.anomaly.kind for index, profile in found.items() if profile.anomaly}


def test_what_a_story_plants_begins_and_ends_on_its_nights():
    world = World(1, 0, LAST, story=45)
    plain = World(1, 0, LAST)
    for chapter in story.CHAPTERS:
        if chapter.number is None:
            continue
        before, begins = 44 - chapter.begins - 1, 44 - chapter.begins
        assert before < 0 or kinds(world, before).get(chapter.number) in {None, planted.MARKET_DISPARITY}
        assert kinds(world, begins)[chapter.number] == chapter.kind
        assert kinds(world, 60).get(chapter.number) == (None if chapter.ends >= 0 else chapter.kind)
    dear = [night for night in range(50) if kinds(world, night).get(0) == planted.MARKET_DISPARITY]
    assert dear == list(range(32, 39))
    assert kinds(plain, 35).keys() == {28}


def test_in_a_story_it_pays_to_wait_until_three_weeks_ahead_and_to_book_from_then_on():
    told, plain = World(1, 0, LAST, story=45), World(1, 0, LAST)
    ids = told.property_ids()[:40]
    shapes = {profile.lead_shape for profile in map(told.find, ids) if profile}
    assert len(shapes) == 1
    assert len({profile.lead_shape for profile in map(plain.find, ids) if profile}) > 1
    (shape,) = shapes

    def typical(lead_days: int) -> float:
        return sum(_level(key, 1, shape, lead_days) for key in range(200)) / 200

    far, ahead, near, last = map(typical, (50, 20, 10, 2))
    assert ahead < far
    assert ahead < near < last
