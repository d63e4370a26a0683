"""The costs on paper follow their formulas: twice the properties are twice the work."""

from __future__ import annotations

import pytest
from benchmarks.costs import CORES, EFFICIENCY, NIGHT_SECONDS, SCOPES, STATE_BYTES, Scope, cost, measured, table


def test_a_night_of_known_size_costs_what_is_computed_by_hand():
    found = {
        "nightaudit: CPU of each further offer": 4.0,
        "stored: a night's offers with penalties and promotions": 20.0,
        "stored: history as changes, over 30 nights": 2.0,
    }
    one = cost(1000, Scope("small", 10, 1, 2, 1), found)
    assert (one.searches, one.offers) == (200, 180_000)
    # 20,000 cells of 400 bytes and 200 searches of 1,000.
    assert one.wire_bytes == 8_200_000
    assert (one.table_bytes, one.history_bytes) == (3_600_000, 360_000)
    assert one.workers == 1
    assert one.state_bytes == 180_000 * STATE_BYTES
    assert one.moved_bytes == 2 * (8_200_000 + 3_600_000 + one.state_bytes)
    assert one.report_hours == pytest.approx(180_000 * 106 / 35.6e6 / 3600)
    assert one.searches_per_second == pytest.approx(200 / 28_800)


@pytest.mark.parametrize("scope", SCOPES, ids=lambda scope: scope.name)
def test_costs_grow_with_the_properties_and_workers_do_their_share(scope):
    small, large = (cost(properties, scope, measured()) for properties in (100_000, 1_000_000))
    assert large.cpu_hours == pytest.approx(10 * small.cpu_hours)
    assert large.report_hours == pytest.approx(10 * small.report_hours)
    assert f"{large.cpu_hours:,.1f}" in table()
    for each in (small, large):
        # What one machine does last is not shared, however many there are.
        capacity = (NIGHT_SECONDS / 3600 - each.report_hours) * CORES * EFFICIENCY
        if each.workers is None:
            assert capacity <= 0
        else:
            assert (each.workers - 1) * capacity < each.cpu_hours <= each.workers * capacity
