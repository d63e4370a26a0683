"""What the spec and the settings say together."""

from __future__ import annotations

from datetime import date

import pytest

from pipeline.night.read_spec import read_spec_of
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
