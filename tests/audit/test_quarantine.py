"""Quarantine: what a rule takes is a reject with the rule's name, and nothing gets lost on the way."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from decimal import Decimal

import polars as pl
import pytest
from audited_nights import audited, clean_night, load, settings_of
from nights import started_at, sweep_id
from polars.testing import assert_frame_equal

from pipeline.audit.rules import declared_rules, rules
from pipeline.domain.tables import TABLES
from pipeline.lake.database import open_published, query_published
from pipeline.lake.delta import commit_files
from pipeline.night.gate import audit_sweep, publish_checked
from pipeline.night.verify import verify

pytestmark = pytest.mark.slow

# A search to break each group of rules in, so that their effects can be distinguished; XX is no market.
SEARCH = tuple(number * 256 + 1 for number in range(7))
NEGATIVE = (
    *("pre_promo_total", "floor", "included_charges", "excluded_charges", "resort_fee", "child_resort_fee"),
    *("city_taxes", "hotel_service_fee"),
)


def change(rows, table, values, **where):
    """Change the first row of a table for which all of `where` holds."""
    for place, row in enumerate(rows[table]):
        if all(row[name] == value for name, value in where.items()):
            rows[table][place] = row | values
            return
    raise AssertionError(where)


@pytest.fixture(scope="module")
def night():
    """A night that breaks every rule that quarantines: its rows, and the offers that each rule is to take."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("audited_nights.MARKETS", ("GB", "XX"))
        rows = clean_night(0)
    taken = {}

    def take(rule, search, *offers):
        taken[rule] = {(SEARCH[search], offer) for offer in offers}

    def all_of(search):
        return [row["offer_no"] for row in rows["offer"] if row["search_id"] == SEARCH[search]]

    change(rows, "offer", {"total": Decimal(0)}, search_id=SEARCH[0], offer_no=0)
    take("total_not_positive", 0, 0)
    change(rows, "offer", {"currency": "euro"}, search_id=SEARCH[0], offer_no=1)
    take("currency_not_as_asked", 0, 1)
    take("currency_unknown", 0, 1)
    change(rows, "offer", {"nights": 5}, search_id=SEARCH[1], offer_no=2)
    take("offer_without_search", 1, 2)
    # The offer of total 0 breaks this one as well: it is one reject.
    change(rows, "penalty", {"penalty_pct": -1.0}, search_id=SEARCH[0], offer_no=0)
    take("penalty_pct_out_of_range", 0, 0)
    change(rows, "penalty", {"penalty_nights": -1.0}, search_id=SEARCH[0], offer_no=2)
    take("range_penalty_nights", 0, 2)
    change(rows, "penalty", {"amount": Decimal(-1)}, search_id=SEARCH[0], offer_no=3)
    take("range_amount", 0, 3)
    change(rows, "offer", {"total": Decimal(2 * 10**11)}, search_id=SEARCH[0], offer_no=4)
    take("range_total", 0, 4)
    for number, name in enumerate(NEGATIVE):
        change(rows, "offer", {name: Decimal(-1)}, search_id=SEARCH[2], offer_no=number)
        take(f"range_{name}", 2, number)
    for table in ("search", "offer", "cell"):
        rows[table] = [
            row | {"check_in": started_at(0).date()} if row["search_id"] == SEARCH[3] else row for row in rows[table]
        ]
    take("stay_not_ahead", 3, *all_of(3))
    change(rows, "search", {"started_at": started_at(0) - timedelta(minutes=6)}, search_id=SEARCH[4])
    take("answer_outside_sweep", 4, *all_of(4))
    # The clock was set right within the sweep, which takes an hour: these answers are its own.
    change(rows, "search", {"started_at": started_at(0) - timedelta(minutes=4)}, search_id=SEARCH[5])
    change(rows, "search", {"ended_at": started_at(0) + timedelta(minutes=64)}, search_id=SEARCH[6])
    taken["market_unknown"] = {(r["search_id"], r["offer_no"]) for r in rows["offer"] if r["market"] == "XX"}
    for table, offer_no in (("penalty", 9_000), ("promotion", 9_001)):
        last = rows[table][-1]
        rows[table].append(last | {"offer_no": offer_no})
        taken[f"{table}_without_offer"] = {(last["search_id"], offer_no)}
    return rows, taken


# Positions and numbers of nights are counted by the reader, and cannot be negative but by a fault of ours, which other
# checks tell as well.
OURS = {"range_offer_no", "range_nights"}


def test_the_night_breaks_every_rule_that_quarantines(night):
    _, taken = night
    assert {rule.name for rule in rules() if rule.quarantines} - OURS == set(taken)


def test_each_rule_takes_what_breaks_it_and_counts_balance(lake, night, monkeypatch):
    monkeypatch.setattr("audited_nights.MARKETS", ("GB", "XX"))
    rows, taken = night
    found = audited(lake, 0, rows)
    publish_checked(lake, sweep_id(0), started_at(0), override="to see what is left")

    def asked(query):
        return query_published(lake.published_file, query).fetchall()

    rejected: dict[str, set[tuple[int, int]]] = {}
    for names, search_id, offer_no in asked("SELECT rule, search_id, offer_no FROM lake.reject WHERE rule IS NOT NULL"):
        for name in names.split(","):
            rejected.setdefault(name, set()).add((search_id, offer_no))
    assert rejected == taken

    served = Counter(row["search_id"] for row in rows["offer"])
    stored = Counter(dict(asked("SELECT search_id, count(*) FROM lake.offer GROUP BY ALL")))
    out = Counter(
        dict(asked("SELECT search_id, count(*) FROM lake.reject WHERE rule IS NOT NULL AND part = 'offer' GROUP BY 1"))
    )
    assert stored + out == served
    assert asked("SELECT quarantined FROM mart.sweep") == [(out.total(),)] == [(found.quarantined,)]
    assert asked("SELECT part, count(*) FROM lake.reject WHERE rule LIKE '%without_offer' GROUP BY ALL ORDER BY 1") == [
        ("penalty", 1),
        ("promotion", 1),
    ]
    assert asked("SELECT count(*) FROM lake.penalty ANTI JOIN lake.offer USING (search_id, offer_no)") == [(0,)]
    assert asked("SELECT count(*) FROM lake.promotion ANTI JOIN lake.offer USING (search_id, offer_no)") == [(0,)]
    reasons = asked("SELECT count(*) FROM lake.reject WHERE reason = '' OR raw_address IS NULL")
    assert reasons == [(0,)]


def test_a_currency_of_200_kb_is_cut_wherever_it_is_quoted(lake):
    rows = clean_night(0)
    change(rows, "offer", {"currency": "x" * 200_000}, search_id=SEARCH[0], offer_no=0)
    audited(lake, 0, rows)
    publish_checked(lake, sweep_id(0), started_at(0), override="to see what is left")
    asked = "SELECT max(length(reason)), max(length(sample)) FROM lake.reject WHERE rule IS NOT NULL"
    assert max(query_published(lake.published_file, asked).fetchone()) <= 500
    asked = "SELECT max(length(examples)) FROM lake.quality"
    assert query_published(lake.published_file, asked).fetchone()[0] < 10_000


def test_every_rule_says_why_it_quarantines_or_does_not():
    assert [name for name, rule in declared_rules().items() if not rule.reason] == []


@pytest.mark.parametrize("table", ["offer", "penalty", "promotion"])
def test_readers_of_the_delta_tables_get_what_was_published(lake, night, monkeypatch, table):
    monkeypatch.setattr("audited_nights.MARKETS", ("GB", "XX"))
    rows, _ = night
    load(lake, 0, rows)
    for name in ("offer", "penalty", "promotion"):
        files = sorted((lake.table_root(name) / sweep_id(0)).glob("*.parquet"))
        commit_files(lake, TABLES[name], {"loaded": [file.relative_to(lake.root).as_posix() for file in files]})
    for _ in range(2):
        audit_sweep(settings_of(lake), lake, sweep_id(0), started_at(0))
    publish_checked(lake, sweep_id(0), started_at(0), override="to see what is left")
    names = [column.name for column in TABLES[table].stored]
    with open_published(lake.published_file) as session:
        published = session.sql(f"FROM lake.{table}").pl().select(names)
    read = pl.read_delta(str(lake.table_root(table))).select(names)
    assert len(read) < len(rows[table])
    assert_frame_equal(read, published, check_row_order=False, check_dtypes=False)
    assert not [each for each in verify(lake, is_deep=True).damages if each.path.startswith(f"tables/{table}")]
