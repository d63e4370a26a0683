"""Each notebook runs without a browser, over two nights and over the first one alone, and only reads."""

from __future__ import annotations

import hashlib
import html
import importlib.util
import re
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest
from nights import FIRST_DAY, load_night, started_at

from pipeline.lake import Lake
from pipeline.lake.database import open_published
from pipeline.publish import publish
from pipeline.report.charts import SERIES
from pipeline.report.read import Reader
from pipeline.report.scope import Scope

PROPERTIES = range(1, 26)
NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.py"))
# What a night without one before it cannot show, and the words that say why.
OF_THE_FIRST_NIGHT = {
    "booking_window": [
        "Not known yet: the answer comes from stays that have begun",
        "needs two nights",
        "two answers for the same cell",
        "No room has been picked up yet",
    ],
    "offer_explorer": ["Lead time: drag over a range"],
    "parity_explorer": ["are dearer", "than in "],
    "price_trends": ["0 price changes of"],
    "promotion_honesty": ["(not enough history)"],
}


def ran(notebook, lake, monkeypatch, **instead):
    """Return all that a notebook shows, as text, and the names that it leaves; `instead` replaces cells by values."""
    monkeypatch.setenv("NIGHTAUDIT_LAKE", str(lake.root))
    spec = importlib.util.spec_from_file_location(notebook.stem, notebook)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    outputs, names = module.app.run(defs=instead)
    return "\n".join(_text(output) for output in outputs), names


def _text(output) -> str:
    return output.text if hasattr(output, "text") else "" if output is None else str(output)


def _hash(lake):
    return hashlib.sha256(lake.published_file.read_bytes()).hexdigest()


@pytest.mark.slow
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda file: file.stem)
def test_a_notebook_runs_and_writes_nothing(notebook, nights, monkeypatch):
    before = _hash(nights.both), sorted(nights.both.published_file.parent.iterdir())
    shown, names = ran(notebook, nights.both, monkeypatch)
    assert "<h1" in shown
    assert names["ask"]("SELECT readonly FROM duckdb_databases() WHERE database_name = 'nightaudit'").item()
    assert (_hash(nights.both), sorted(nights.both.published_file.parent.iterdir())) == before


@pytest.mark.slow
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda file: file.stem)
def test_on_the_first_night_it_says_what_is_not_known_yet(notebook, nights, monkeypatch):
    shown, _ = ran(notebook, nights.first, monkeypatch)
    for words in OF_THE_FIRST_NIGHT[notebook.stem]:
        assert words in shown


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda file: file.stem)
def test_before_the_first_night_it_says_what_to_do(notebook, tmp_path, monkeypatch):
    shown, _ = ran(notebook, Lake(str(tmp_path / "none")), monkeypatch)
    assert "Nothing is published yet" in shown
    assert "nightaudit nightly" in shown


def test_the_notebooks_are_as_marimo_wants_them():
    checked = subprocess.run(
        [sys.executable, "-m", "marimo", "check", "--strict", *NOTEBOOKS], capture_output=True, text=True
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.slow
def test_the_parity_explorer_counts_what_the_parity_page_counts_and_lists_the_furthest_of_both_directions(
    nights, monkeypatch
):
    shown, names = ran(notebook("parity_explorer"), nights.both, monkeypatch)
    with open_published(nights.both.published_file) as session:
        total = Reader(session, Scope()).total("parity_total")
    counted = dict(names["counted"].select("verdict", "offers").group_by("verdict").sum().iter_rows())
    assert {verdict: counted.get(verdict, 0) for verdict in ("win", "meet", "lose")} == {
        verdict: total[verdict] for verdict in ("win", "meet", "lose")
    }
    assert f"Of {total['pairs']:,} offers, {total['lose']:,} are dearer" in shown
    gaps = names["differing"]["gap_pct"].abs()
    assert gaps.is_sorted(descending=True)
    assert set(names["differing"]["verdict"]) == {"win", "lose"}


@pytest.fixture(scope="module")
def dear_late(tmp_path_factory):
    """Of three check-ins, two have begun. Five days before them, prices rose by a third. Rooms left fall by night."""
    lake = Lake(str(tmp_path_factory.mktemp("dear-late") / "lake"))
    for number in (1, 2, 5, 9, 13, 17):
        stays = [(each, day) for each in PROPERTIES for day in (8, 16, 40) if day > number]
        cells = [
            {"property_id": each, "search_id": 100 * each + day, "check_in": FIRST_DAY + timedelta(days=day)}
            for each, day in stays
        ]
        offers = [
            cell
            | {"room_id": 7, "board_id": 14, "currency": "EUR", "total": 133 if day - number <= 5 else 100}
            | {"available_rooms": 20 - number}
            for cell, (_, day) in zip(cells, stays, strict=True)
        ]
        publish(
            lake,
            load_night(lake, number, cell=[cell | {"offers": 1} for cell in cells], offer=offers),
            started_at(number),
        )
    return lake


def notebook(name: str) -> Path:
    return next(each for each in NOTEBOOKS if each.stem == name)


@pytest.mark.slow
def test_the_booking_window_answers_in_a_sentence_and_says_what_the_answer_rests_on(dear_late, monkeypatch):
    shown, _ = ran(notebook("booking_window"), dear_late, monkeypatch)
    assert "In these markets: <strong>book now</strong> 7, 14 days ahead." in shown
    assert "named twice" not in shown
    # Fourteen days ahead, only the second check-in had been seen.
    assert "1 of the 2 answers rest on a single check-in date" in shown
    assert "<strong>1 of 1</strong> turned out within their interval" in shown
    assert "<strong>1</strong> were right; one and the same answer every time would have been right 1 times" in shown
    assert "They are about 1 check-in date, which all markets share" in shown


@pytest.mark.slow
@pytest.mark.parametrize("markets", [["GB"], []])
def test_the_query_of_the_booking_window_gives_the_table(dear_late, monkeypatch, markets):
    chosen = {"markets": SimpleNamespace(value=markets), "product_type": SimpleNamespace(value="Hotel")}
    controls = {name: SimpleNamespace(value=value) for name, value in (("ending", "off_sale"), ("furthest", 60))}
    shown, names = ran(notebook("booking_window"), dear_late, monkeypatch, **chosen, **controls)
    with open_published(dear_late.published_file) as session:
        assert session.sql(copied(shown, "SELECT market, lead_days")).pl().equals(names["listed"])
    assert names["listed"].height == (2 if markets else 0)
    assert names["market_colour"].to_dict()["scale"]["range"] == list(SERIES)


@pytest.mark.slow
def test_price_trends_opens_on_a_stay_that_can_still_be_booked(dear_late, monkeypatch):
    """Though the prices of those that have begun moved more often."""
    text, names = ran(notebook("price_trends"), dear_late, monkeypatch)
    assert names["stay"].value["check_in"] == FIRST_DAY + timedelta(days=40)
    assert sum(option.endswith("(has begun)") for option in names["stay"].options) == 2
    # The query below the chart gives what the chart shows.
    plain = html.unescape(re.sub("<[^>]*>", "", text))
    query = re.search(r"SELECT offer_key, room_name.*?ORDER BY offer_key, valid_from", plain, re.DOTALL)[0]
    with open_published(dear_late.published_file) as session:
        assert len(session.sql(query).fetchall()) == names["shown"].height
    assert f"currency = '{names['currency'].value}'" in query


@pytest.fixture(scope="module")
def currencies(tmp_path_factory):
    """One night: in GB, rooms in EUR and GBP; in SE, in SEK, two days later; some without a currency; some promoted."""
    lake = Lake(str(tmp_path_factory.mktemp("currencies") / "lake"))
    sold = [
        ("GB", "EUR", 20),
        ("GB", "GBP", 20),
        ("GB", "EUR", 30),
        ("SE", "EUR", 30),
        ("SE", "SEK", 40),
        ("SE", None, 50),
    ]
    cells, offers = [], []
    for each in PROPERTIES:
        for market, day in sorted({(market, day) for market, _, day in sold}):
            found = [currency for *key, currency in ((m, d, c) for m, c, d in sold) if key == [market, day]]
            cell = {
                "property_id": each,
                "market": market,
                "search_id": 1000 * each + day * 10 + (market == "SE"),
                "check_in": FIRST_DAY + timedelta(days=day),
            }
            cells.append(cell | {"offers": len(found)})
            offers += [
                cell
                | {"room_id": 7, "board_id": 14 if each % 2 else 1, "currency": currency, "total": 100 + each * day}
                | ({"pre_promo_total": 200 + each * day} if (each + day) % 3 == 0 else {})
                for currency in found
            ]
    publish(lake, load_night(lake, 0, cell=cells, offer=offers), started_at(0))
    return lake


def copied(shown, first_word):
    """Return the query that a notebook offers to copy."""
    blocks = re.findall(r"<code>(.*?)</code>", shown, re.DOTALL)
    plain = [html.unescape(re.sub("<[^>]*>", "", block)).strip() for block in blocks]
    return next(block for block in plain if block.startswith(first_word))


def selected(currency, show="offers", lead=(), markets=(), boards=(), properties=()):
    """What an analyst has chosen in the offer explorer."""
    chosen = {"lead": lead, "markets": markets, "boards": boards, "properties": properties}
    states = {f"get_{name}": lambda values=values: list(values) for name, values in chosen.items()}
    return {
        "currency": SimpleNamespace(value=currency),
        "product_type": SimpleNamespace(value="Hotel"),
        "shown": SimpleNamespace(value=show, selected_key=show),
        **states,
        **{f"set_{name}": lambda _: None for name in chosen},
    }


CHARTS = {
    "lead_days": "lead_chart",
    "market": "market_chart",
    "board_family": "board_chart",
    "property_id": "property_chart",
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "chosen",
    [
        selected("EUR"),
        selected("EUR", "per_night", properties=["3", "1"]),
        selected("EUR", "promoted_pct", lead=[25, 35], markets=["GB"]),
        # The markets and lead times of another currency are still selected.
        selected("SEK", "promoted_pct", lead=[20, 30], markets=["GB"]),
    ],
)
def test_the_query_of_the_offer_explorer_gives_the_bars_of_its_charts(currencies, monkeypatch, chosen):
    shown, names = ran(notebook("offer_explorer"), currencies, monkeypatch, **chosen)
    with open_published(currencies.published_file) as session:
        rows = session.sql(copied(shown, "WITH on_sale")).pl()
        # A file of properties, or a detail answer, may name some of them.
        known = dict(session.sql("SELECT property_id, property_name FROM mart.property").fetchall())
    of_properties = rows.filter(pl.col("property_id").is_not_null())
    assert of_properties["property_name"].to_list() == [known.get(each) for each in of_properties["property_id"]]
    for column, chart in CHARTS.items():
        figures = [pl.col(column).cast(pl.String), "offers", "per_night", "promoted_pct"]
        drawn = names[chart].dataframe.select(figures).sort(column)
        answered = rows.filter(pl.col(column).is_not_null()).select(figures).sort(column)
        assert drawn.height
        assert drawn[column].to_list() == answered[column].to_list()
        for figure in figures[1:]:
            assert drawn[figure].to_list() == pytest.approx(answered[figure].to_list())


@pytest.mark.slow
def test_what_is_not_on_sale_in_the_currency_does_not_filter_unseen(currencies, monkeypatch):
    """A lead time that only partly remains is cut to what does; the controls show what filters."""
    _, names = ran(
        notebook("offer_explorer"),
        currencies,
        monkeypatch,
        **selected("EUR", lead=[30, 40], markets=["GB", "DE"], properties=["-1"]),
    )
    assert names["market_control"].value == ["GB"]
    assert names["lead_control"].value == [30, 30]
    assert names["condition"]([30, 40], ["GB", "DE"], (), ["-1"]) == ["lead_days BETWEEN 30 AND 30", "market IN ('GB')"]
    assert names["condition"]([41, 60], ["DE"]) == []


@pytest.mark.slow
def test_the_offer_explorer_offers_no_currency_that_is_missing(currencies, monkeypatch):
    shown, names = ran(notebook("offer_explorer"), currencies, monkeypatch)
    assert sorted(names["currency"].options) == ["EUR", "GBP", "SEK"]
    assert "offers without a currency are left out" in " ".join(shown.split())


@pytest.mark.slow
@pytest.mark.parametrize("tolerance", [None, 3.3])
def test_the_query_of_the_parity_explorer_gives_the_table(nights, monkeypatch, tolerance):
    with open_published(nights.both.published_file) as session:
        [(usual,)] = session.sql("SELECT tolerance_pct FROM ref.analysis").fetchall()
        markets = [name for (name,) in session.sql("SELECT DISTINCT market FROM mart.market_parity").fetchall()]
        chosen = {
            "grade": "exact",
            "markets": markets,
            "product_types": ["Hotel", "Package"],
            "source": "multi",
            "tolerance": tolerance or usual,
        }
        instead = {name: SimpleNamespace(value=value) for name, value in chosen.items()}
        shown, names = ran(notebook("parity_explorer"), nights.both, monkeypatch, **instead)
        assert names["differing"].height
        assert session.sql(copied(shown, "SELECT market, property_id")).pl().equals(names["differing"])


@pytest.mark.slow
@pytest.mark.parametrize("verdict", ["%", "not_enough_history", "never_charged"])
def test_the_query_of_promotion_honesty_gives_the_list(nights, monkeypatch, verdict):
    with open_published(nights.both.published_file) as session:
        market = session.sql(
            "SELECT market FROM mart.reference_price WHERE source = 'multi' GROUP BY market "
            "ORDER BY count(DISTINCT reference_verdict) DESC, market LIMIT 1"
        ).fetchall()[0][0]
        chosen = {"market": SimpleNamespace(value=market), "verdict": SimpleNamespace(value=verdict)}
        shown, names = ran(notebook("promotion_honesty"), nights.both, monkeypatch, **chosen)
        assert session.sql(copied(shown, "SELECT price")).pl().equals(names["found"])
    assert list(names["offer"].options.values()) == names["found"].to_dicts()
    if verdict != "%":
        assert set(names["found"]["reference_verdict"]) == {verdict}


@pytest.mark.slow
def test_an_offer_in_two_currencies_is_listed_twice(currencies, monkeypatch):
    _, names = ran(notebook("promotion_honesty"), currencies, monkeypatch)
    found = names["found"]
    assert set(found["currency"]) == {"EUR", "GBP"}
    assert found.select("property_id", "check_in").is_duplicated().any()
    assert [row["offer_key"] for row in names["offer"].options.values()] == found["offer_key"].to_list()


@pytest.mark.slow
def test_price_trends_count_changes_of_the_price_and_not_of_the_rooms_left(dear_late, monkeypatch):
    shown, names = ran(notebook("price_trends"), dear_late, monkeypatch)
    assert names["shown"].height > 1
    assert "0 price changes of 1 offer" in shown
