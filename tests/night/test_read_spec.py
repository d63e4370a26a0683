"""What the spec and the settings say together."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from pipeline.domain.errors import SpecError
from pipeline.lake import Lake
from pipeline.night import night_sweep
from pipeline.night.read_spec import mark_as_demo, read_spec_of, spec_name
from pipeline.settings import read_settings

SPEC = """
[properties]
ids = [1]
[stays]
nights = [1]
check_in = ["2030-06-10"]
[ask]
markets = ["DE", "FR", "GB"]
parties = ["2"]
currencies = ["EUR"]
currency_by_market = {{ GB = [{of_gb}] }}
operations = ["multi"]
"""


@pytest.mark.parametrize(
    ("reference", "of_gb", "is_told"),
    [("GB", '"GBP"', True), ("GB", '"GBP", "EUR"', False), ("DE", '"GBP"', False), (None, '"GBP"', False)],
)
def test_a_reference_market_that_shares_no_currency_is_told(tmp_path, caplog, reference, of_gb, is_told):
    spec = tmp_path / "sweep.toml"
    spec.write_text(SPEC.format(of_gb=of_gb))
    read_spec_of(read_settings(_env_file=None, spec=spec, reference_market=reference), date(2030, 6, 1))
    told = [record.getMessage() for record in caplog.records if "reference market" in record.getMessage()]
    assert len(told) == is_told
    if told:
        assert told[0].startswith("The reference market GB (NIGHTAUDIT_REFERENCE_MARKET) shares no currency")
        assert 'GB = ["GBP", "EUR"] in currency_by_market' in told[0]


DETAIL = """
[detail]
choose = ["watch"]
watch = [{}]
budget = 100
"""


def watching(watched: str) -> str:
    given = SPEC.format(of_gb='"GBP"').replace("ids = [1]", "ids = [1, 2, 3]")
    return given.replace('["multi"]', '["multi", "single"]') + DETAIL.format(watched)


def test_a_limited_night_watches_the_properties_that_it_sweeps(tmp_path):
    """A list that names others of the spec is not refused for that."""
    spec = tmp_path / "sweep.toml"
    spec.write_text(watching("2, 3"))
    settings = read_settings(_env_file=None, spec=spec, property_limit=2, lake=str(tmp_path / "lake"))
    manifest = night_sweep.start(settings, Lake(settings.lake), datetime(2030, 6, 1, tzinfo=UTC))
    assert (manifest.property_ids, manifest.detail_property_ids) == ((1, 2), (2,))


def test_an_unknown_property_on_the_watch_list_is_refused_before_there_is_a_lake(tmp_path):
    spec = tmp_path / "sweep.toml"
    spec.write_text(watching("9"))
    settings = read_settings(_env_file=None, spec=spec, lake=str(tmp_path / "lake"))
    with pytest.raises(SpecError, match="names 9"):
        read_spec_of(settings, date(2030, 6, 1))
    assert not (tmp_path / "lake").exists()


def test_a_night_is_named_after_its_spec(tmp_path):
    settings = read_settings(_env_file=None, lake=str(tmp_path / "lake"))
    assert spec_name(settings) == "sample"
    mark_as_demo(Lake(settings.lake), "", 3)
    assert spec_name(settings) == "demo"
    assert spec_name(settings.model_copy(update={"spec": tmp_path / "gb.toml"})) == "gb"
