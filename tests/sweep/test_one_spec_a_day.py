"""A sweep that began today is resumed as it began, or not at all."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest
from pydantic import SecretStr

from pipeline.domain.errors import InputError, SupplierUnreachable
from pipeline.night import night_sweep
from pipeline.night.night import Night
from pipeline.night.nightly import finish_left_over
from pipeline.publish import published_sweeps
from pipeline.settings import Settings
from pipeline.sweep import close

NOW = datetime(2030, 1, 1, 2, tzinfo=UTC)
SPEC = """
[properties]
ids = [1, 2]
[stays]
nights = [1]
[[stays.horizon]]
to_days = {days}
[ask]
markets = ["GB"]
parties = ["2"]
"""


@pytest.fixture
def settings_for(lake, tmp_path):
    def make(days):
        path = tmp_path / "sweep.toml"
        path.write_text(SPEC.format(days=days))
        return Settings(_env_file=None, base_url=None, lake=str(lake.root), spec=path)

    return make


def test_an_unfinished_sweep_of_today_is_resumed(lake, settings_for):
    begun = night_sweep.start(settings_for(2), lake, NOW)
    assert night_sweep.start_or_go_on(settings_for(2), lake, NOW.replace(hour=5)) == begun


def test_a_loaded_sweep_of_today_is_judged_again_and_that_is_reported(lake, settings_for, caplog):
    begun = night_sweep.start(settings_for(2), lake, NOW)
    asyncio.run(night_sweep.collect(Night(settings_for(2), lake, begun, clock=lambda: NOW)))
    assert night_sweep.start_or_go_on(settings_for(2), lake, NOW.replace(hour=5)) == begun
    assert f"{begun.sweep_id} is loaded but not published" in caplog.text


def test_a_spec_that_was_changed_since_is_not_ignored(lake, settings_for):
    begun = night_sweep.start(settings_for(2), lake, NOW)
    with pytest.raises(InputError, match="its spec differs") as refused:
        night_sweep.start_or_go_on(settings_for(3), lake, NOW.replace(hour=5))
    assert begun.sweep_id in refused.value.hint
    assert lake.sweep_ids() == [begun.sweep_id]


@pytest.mark.parametrize("day", [1, 2])
def test_a_night_that_a_mistyped_address_began_makes_way_for_the_right_one(lake, settings_for, day):
    wrong = settings_for(2).model_copy(
        update={"base_url": "http://127.0.0.1:1", "client_id": "x", "client_secret": SecretStr("x")}
    )
    begun = night_sweep.start(wrong, lake, NOW)
    with pytest.raises(SupplierUnreachable):
        asyncio.run(night_sweep.collect(Night(wrong, lake, begun, clock=lambda: NOW)))
    later = NOW.replace(day=day, hour=5)
    finish_left_over(Night(settings_for(2), lake, clock=lambda: later))
    assert published_sweeps(lake) == []
    made = night_sweep.start_or_go_on(settings_for(2), lake, later)
    assert made.supplier == "sandbox"
    assert lake.sweep_ids() == [made.sweep_id]


def test_a_sweep_that_was_closed_without_an_answer_is_not_resumed(lake, settings_for):
    begun = night_sweep.start(settings_for(2), lake, NOW)
    close(lake, begun, NOW)
    made = night_sweep.start_or_go_on(settings_for(2), lake, NOW.replace(hour=5))
    assert lake.sweep_ids() == [begun.sweep_id, made.sweep_id]
