"""A sweep that was begun today is gone on with as it was begun, or not at all."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest

from pipeline import night
from pipeline.domain.errors import InputError
from pipeline.settings import Settings

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


def test_an_unfinished_sweep_of_today_is_gone_on_with(lake, settings_for):
    begun = night.start(settings_for(2), lake, NOW)
    assert night.start_or_go_on(settings_for(2), lake, NOW.replace(hour=5)) == begun


def test_a_loaded_sweep_of_today_is_judged_again_and_that_is_told(lake, settings_for, caplog):
    begun = night.start(settings_for(2), lake, NOW)
    asyncio.run(night.collect(settings_for(2), lake, begun))
    assert night.start_or_go_on(settings_for(2), lake, NOW.replace(hour=5)) == begun
    assert f"{begun.sweep_id} of today is loaded and not published" in caplog.text


def test_a_spec_that_was_changed_since_is_not_ignored(lake, settings_for):
    begun = night.start(settings_for(2), lake, NOW)
    with pytest.raises(InputError, match="asks something else") as refused:
        night.start_or_go_on(settings_for(3), lake, NOW.replace(hour=5))
    assert begun.sweep_id in refused.value.hint
    assert lake.sweep_ids() == [begun.sweep_id]
