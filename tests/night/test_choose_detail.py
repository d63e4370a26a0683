"""Which properties are requested in detail: by rule from the last published night, within a budget."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import pytest
from nights import FIRST_DAY, load_night, started_at, sweep_id

from pipeline.domain.errors import SpecError
from pipeline.domain.search import Operation
from pipeline.lake import Lake
from pipeline.night.choose_detail import choose_detail
from pipeline.plan import SweepPlan
from pipeline.publish import publish
from pipeline.spec import parse_spec
from pipeline.sweep import begin, plan_of

SPEC = """[properties]
ids = [1, 2, 3, 4, 5, 6]
[stays]
nights = [1, 2]
[[stays.horizon]]
to_days = 1
[ask]
markets = ["GB"]
parties = ["2"]
operations = ["multi", "single"]
[detail]
choose = {rules}
budget = {budget}
{more}
"""
HERE = Path()
IDS = (1, 2, 3, 4, 5, 6)
TODAY = FIRST_DAY + timedelta(days=2)


def spec(rules, budget=100, more=""):
    return parse_spec(SPEC.format(rules=rules, budget=budget, more=more), Path("sweep.toml"))


@pytest.fixture(scope="module")
def nights(tmp_path_factory):
    """Two nights: of six properties five are on sale; in the second a price and a floor move, and one is gone."""
    lake = Lake(str(tmp_path_factory.mktemp("nights") / "lake"))
    stay = {"check_in": date(2030, 3, 1)}

    def offer(number, **fields):
        return stay | {"property_id": number, "offer_no": number, "room_id": 7, "total": 100, "floor": 90} | fields

    def cell(number, **fields):
        return stay | {"property_id": number, "offers": 1} | fields

    first = [cell(n) for n in range(1, 6)] + [cell(6, status="no_offer", offers=0)]
    # A search is of one operation.
    seen = [cell(5, operation="single", search_id=257, status="offered", searched_at=started_at(0))]
    load_night(lake, 0, cell=first + seen, offer=[offer(n) for n in range(1, 6)])
    publish(lake, sweep_id(0), started_at(0))
    second = [offer(1, total=120), offer(2, floor=95), offer(4, available_rooms=3), offer(5)]
    cells = [cell(n, status="no_offer" if n in {3, 6} else "offered") for n in range(1, 7)]
    load_night(lake, 1, cell=cells, offer=second)
    return publish(lake, sweep_id(1), started_at(1)).file


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rules", "more", "expected"),
    [
        ('["changed"]', "", (1, 2, 3)),
        ('["available"]', "", (1, 2, 4, 5)),
        ('["stale"]', "", (1, 2, 3, 4, 6)),
        ('["stale"]', "stale_after_days = 1", IDS),
        ('["watch"]', "watch = [6]", (6,)),
        ('["watch", "changed"]', "watch = [6]", (1, 2, 3, 6)),
    ],
)
def test_each_rule_chooses_what_it_says(nights, rules, more, expected):
    assert choose_detail(spec(rules, more=more), IDS, TODAY, nights, HERE).property_ids == expected


@pytest.mark.slow
def test_a_first_request_is_no_change_and_an_offer_where_there_was_none_is_one(lake):
    """A horizon moves on each night: its last day is new, and nothing about it is news."""
    known, new = {"check_in": date(2030, 3, 1)}, {"check_in": date(2030, 3, 2), "search_id": 9}

    def on_sale(number, stay):
        return stay | {"property_id": number, "offer_no": number, "room_id": 7, "total": 100}

    before = [known | {"property_id": n, "offers": 1} for n in (1, 2)]
    before.append(known | {"property_id": 3, "offers": 0, "status": "no_offer"})
    load_night(lake, 0, cell=before, offer=[on_sale(n, known) for n in (1, 2)])
    publish(lake, sweep_id(0), started_at(0))
    cells = [known | {"property_id": n, "offers": 1} for n in (1, 2, 3)] + [new | {"property_id": 1, "offers": 1}]
    offers = [on_sale(n, known) for n in (1, 2, 3)] + [on_sale(1, new) | {"offer_no": 9}]
    load_night(lake, 1, cell=cells, offer=[*offers, on_sale(2, known) | {"offer_no": 8, "room_id": 8}])
    file = publish(lake, sweep_id(1), started_at(1)).file
    assert choose_detail(spec('["changed"]'), IDS, TODAY, file, HERE).property_ids == (2, 3)


@pytest.mark.slow
def test_the_order_of_the_rules_decides_who_is_left_when_the_budget_ends(nights):
    assert choose_detail(spec('["watch", "changed"]', 4, "watch = [6]"), IDS, TODAY, nights, HERE).property_ids == (
        1,
        6,
    )
    assert choose_detail(spec('["changed", "watch"]', 7, "watch = [6]"), IDS, TODAY, nights, HERE).property_ids == (
        1,
        2,
        3,
    )
    found = choose_detail(spec('["available"]', 6), IDS, TODAY, nights, HERE)
    assert found.property_ids == (1, 2, 4), "what was never seen in detail comes first"
    assert (found.requests_each, found.fitting) == (2, {"available": 4})


def test_before_the_first_night_only_the_watch_list_is_asked(tmp_path):
    found = choose_detail(spec('["changed", "watch"]', more="watch = [2]"), IDS, TODAY, tmp_path / "none.duckdb", HERE)
    assert found.property_ids == (2,)
    assert found.is_first_night


def test_a_budget_below_one_property_is_refused(tmp_path):
    with pytest.raises(SpecError, match="single property takes 2"):
        choose_detail(spec('["changed"]', 1), IDS, TODAY, tmp_path / "none.duckdb", HERE)


@pytest.mark.slow
def test_the_watch_list_can_be_a_file_that_changes_while_the_spec_stays_or_be_empty(tmp_path, nights):
    watching = spec('["watch"]', more='watch_file = "watch.csv"')
    file = tmp_path / "watch.csv"
    for text, expected in (("property_id,why\n6,new\n2,old\n", (2, 6)), ("# none yet\n", ())):
        file.write_text(text)
        assert choose_detail(watching, IDS, TODAY, nights, tmp_path).property_ids == expected
    assert choose_detail(spec('["watch"]', more="watch = []"), IDS, TODAY, nights, HERE).property_ids == ()
    file.write_text("six\n")
    with pytest.raises(SpecError, match="this is not a property id"):
        choose_detail(watching, IDS, TODAY, nights, tmp_path)
    with pytest.raises(SpecError, match=r"detail\.watch_file of the sweep spec, .* cannot be read"):
        choose_detail(watching, IDS, TODAY, nights, tmp_path / "elsewhere")
    with pytest.raises(SpecError, match="watch or watch_file, not both"):
        spec('["watch"]', more='watch = [6]\nwatch_file = "watch.csv"')


@pytest.mark.parametrize(
    ("change", "reported"),
    [
        ('choose = ["changed"]=>choose = ["cheap"]', "sweep.toml:12: detail.choose[1]: 'cheap' is not a rule"),
        ('choose = ["changed"]=>choose = ["watch"]', "sweep.toml:11: detail: give the list `watch`"),
        ('operations = ["multi", "single"]=>operations = ["multi"]', 'does not name "single"'),
        ("budget = 100=>single_properties = 3", "sweep.toml:13: detail.single_properties: unknown key"),
    ],
)
def test_a_mistake_is_reported_with_its_line(change, reported):
    before, after = change.split("=>")
    text = SPEC.format(rules='["changed"]', budget=100, more="").replace(before, after)
    with pytest.raises(SpecError) as raised:
        parse_spec(text, Path("sweep.toml"))
    assert reported in raised.value.message


def test_a_resumed_sweep_asks_what_was_chosen_when_it_began(lake):
    wanted = spec('["changed"]')
    manifest = begin(lake, wanted, IDS, now=started_at(0), supplier="sandbox", is_simulated=True, detail_ids=(5, 2))
    plan = plan_of(manifest)
    assert [s.property_ids for s in plan.searches() if s.operation is Operation.SINGLE] == [(2,), (2,), (5,), (5,)]
    assert plan.counts() == SweepPlan.of(wanted, IDS, started_at(0).date(), (2, 5)).counts()
    assert manifest.cells == 12 + 4


def test_a_night_of_which_the_rules_choose_nothing_asks_lists_alone(lake):
    wanted = spec('["watch"]', more="watch = []")
    manifest = begin(lake, wanted, IDS, now=started_at(0), supplier="sandbox", is_simulated=True, detail_ids=())
    assert manifest.cells == 12
    assert {search.operation for search in plan_of(manifest).searches()} == {Operation.MULTI}
