"""The relations of quotes, from given rows to expected rows."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import duckdb
import pyarrow as pa
import pytest
from nights import filled

from pipeline.domain.tables import INSTANT, MONEY, QUOTE, QUOTE_OFFER
from pipeline.lake.relations import relation

AT = datetime(2030, 1, 1, 2, tzinfo=UTC)
OFFER = {
    "source": "multi", "offer_key": 1, "property_id": 7, "market": "GB", "product_type": "Hotel",
    "check_in": date(2030, 3, 1), "nights": 1, "party": "2", "currency_asked": "EUR", "room_stay_id": 0, "room_id": 5,
    "board_id": 14, "policy_key": 3, "product_id": 99, "currency": "EUR", "total": Decimal(100),
    "is_whole": True, "seen_sweep_id": "s", "seen_search_id": 1, "seen_offer_no": 0,
}  # fmt: skip
WANTED = (
    "SELECT 1::BIGINT seed, 10::BIGINT size, DATE '2030-01-01' today, []::VARCHAR[] markets, []::BIGINT[] property_ids"
)


@pytest.fixture
def session():
    with duckdb.connect() as opened:
        opened.execute("SET TimeZone = 'UTC'; CREATE SCHEMA mart; CREATE SCHEMA lake")
        yield opened


def given(session, name, rows, schema=None):
    rows = pa.Table.from_pylist(rows, schema=schema)
    session.register("given_rows", rows)
    session.execute(f"CREATE OR REPLACE TABLE {name} AS SELECT * FROM given_rows")  # noqa: S608 - our own words


def offers(session, *changes):
    rows = [OFFER | {"offer_key": number} | change for number, change in enumerate(changes)]
    kinds = {"total": MONEY, "currency": pa.string(), "currency_asked": pa.string(), "product_id": pa.int64()}
    schema = pa.schema([(name, kinds.get(name, pa.array([value]).type)) for name, value in OFFER.items()])
    given(session, "mart.offer_latest", rows, schema)
    searches = [
        {"sweep_id": "s", "search_id": n, "started_at": AT + timedelta(minutes=n), "sent_property_id": sent}
        for n, sent in ((1, None), (2, None), (3, 77))
    ]
    given(
        session,
        "lake.search",
        searches,
        pa.schema(
            [("sweep_id", "string"), ("search_id", "int64"), ("started_at", INSTANT), ("sent_property_id", "int64")]
        ),
    )
    opaque(session)


def opaque(session, *pairs):
    rows = [{"branded_id": branded, "unbranded_id": unbranded} for branded, unbranded in pairs]
    schema = pa.schema([("branded_id", "int64"), ("unbranded_id", "int64")])
    given(session, "mart.property_map", rows, schema)


def quotes(session, *changes):
    usual = {name: OFFER[name] for name in OFFER if name in {column.name for column in QUOTE.columns}}
    usual |= {
        "run_id": "r",
        "sweep_id": "s",
        "search_id": 1,
        "searched_at": AT,
        "search_total": 100,
        "outcome": "matched",
    }
    usual |= {"intended_at": AT + timedelta(hours=1), "quoted_at": AT + timedelta(hours=1), "quote_currency": "EUR"}
    usual |= {"rooms": 1, "sent_property_id": OFFER["property_id"]}
    rows = [filled(QUOTE, usual | {"quote_no": number} | change) for number, change in enumerate(changes)]
    given(session, "lake.quote", rows, QUOTE.schema)
    products = [
        {"run_id": row["run_id"], "quote_no": row["quote_no"], "property_id": row["property_id"],
         "offer_key": row["offer_key"], "total": row["quote_total"]}
        for row in rows
    ]  # fmt: skip
    given(session, "lake.quote_offer", [filled(QUOTE_OFFER, product) for product in products], QUOTE_OFFER.schema)


def sample(session, wanted=WANTED):
    sql = relation("staging", "quote_sample").sql
    found = session.execute(f"WITH wanted AS ({wanted}) SELECT rooms FROM ({sql})").fetchall()  # noqa: S608 - our own words
    return [tuple(room["offer_key"] for room in rooms) for (rooms,) in found]


def test_only_offers_with_product_price_and_currency_ahead_of_today_are_sampled(session):
    offers(
        session,
        {},
        {"room_id": 6, "product_id": None},
        {"room_id": 7, "total": None},
        {"room_id": 8, "currency": None},
        {"check_in": date(2030, 1, 1)},
    )
    assert sample(session) == [(0,)]


def test_an_offer_of_both_answers_is_sampled_once_as_the_detail_has_it(session):
    offers(session, {"offer_key": 1}, {"offer_key": 1, "source": "detail"}, {"offer_key": 2, "board_id": 3})
    assert sorted(sample(session)) == [(1,), (2,)]
    sql = relation("staging", "quote_sample").sql
    found = session.execute(f"WITH wanted AS ({WANTED}) SELECT source FROM ({sql}) ORDER BY 1").fetchall()  # noqa: S608 - our own words
    assert found == [("detail",), ("multi",)]


def test_a_branded_property_of_the_map_is_quoted_by_what_was_answered_under_its_unbranded_id(session):
    offers(
        session,
        {"offer_key": 1},
        {"offer_key": 2, "source": "detail", "seen_search_id": 3, "board_id": 3},
        {"offer_key": 3, "property_id": 8},
    )
    sql = relation("staging", "quote_sample").sql
    query = f"WITH wanted AS ({WANTED}) SELECT rooms[1].offer_key, sent_property_id FROM ({sql}) ORDER BY 1"  # noqa: S608 - our own words
    # Without a map, or after it was taken back, a product is quoted under the id of its answer.
    assert session.execute(query).fetchall() == [(1, 7), (2, 77), (3, 8)]
    opaque(session, (7, 77))
    assert session.execute(query).fetchall() == [(2, 77), (3, 8)]


def test_an_offer_of_several_rooms_is_sampled_where_each_room_has_a_product_of_the_same_type_and_terms(session):
    offers(
        session,
        {"party": "2+1", "room_stay_id": 1},
        {"party": "2+1", "room_stay_id": 0},
        {"party": "2+1", "room_stay_id": 0, "room_id": 6},
        {"party": "2+1", "room_stay_id": 0, "board_id": 3},
        {"party": "2+1", "room_stay_id": 1, "board_id": 3, "product_id": None},
        {"party": "2+1", "room_stay_id": 0, "board_id": 4},
        {"party": "2+1", "room_stay_id": 1, "board_id": 4, "seen_search_id": 2},
        {"party": "2+1", "room_stay_id": None, "board_id": 5},
        {"party": "2+1", "room_stay_id": 2, "board_id": 6},
        {"party": "2+1", "room_stay_id": 0, "board_id": 6},
        {"party": "2+1", "room_stay_id": 0, "room_id": None},
        {"party": "2+1", "room_stay_id": 1, "room_id": None},
    )
    assert sample(session) == [(1, 0)]


def test_markets_properties_and_size_narrow_a_sample(session):
    offers(session, {}, {"market": "SE"}, {"property_id": 8})
    assert sample(session, WANTED.replace("[]::VARCHAR[]", "['SE']")) == [(1,)]
    assert sample(session, WANTED.replace("[]::BIGINT[]", "[8]::BIGINT[]")) == [(2,)]
    assert len(sample(session, WANTED.replace("10::BIGINT", "2::BIGINT"))) == 2


def test_a_change_is_reported_in_one_currency_only_and_by_the_age_of_the_price(session):
    quotes(
        session,
        {"quote_total": 110, "age_seconds": 3599},
        {"quote_total": 90, "age_seconds": 3600},
        {"quote_total": 90, "quote_currency": "GBP", "age_seconds": 86_400},
        {"quoted_at": None, "quote_currency": None},
    )
    columns = "quote_no, total_change, total_change_pct, age_group"
    found = session.execute(f"SELECT {columns} FROM ({relation('mart', 'quote_check').sql}) ORDER BY 1").fetchall()  # noqa: S608 - our own words
    assert found == [
        (0, Decimal(10), 10.0, "under 1 h"),
        (1, Decimal(-10), -10.0, "1 to 6 h"),
        (2, None, None, "over 24 h"),
        (3, None, None, None),
    ]


@pytest.mark.parametrize("outcome", ["not_comparable", "unknown", "failed"])
def test_what_was_quoted_for_another_product_is_no_change_of_price(session, outcome):
    offers(session, {"offer_key": 1})
    quotes(session, {"quote_total": 150, "outcome": outcome})
    columns = "quote_total, total_change, total_change_pct"
    assert session.sql(relation("mart", "quote_check").sql).select(columns).fetchall() == [(150, None, None)]
    columns = "list_total, quote_total, quote_outcome, quote_above_list"
    assert session.sql(relation("mart", "offer_truth").sql).select(columns).fetchall() == [(100, None, outcome, None)]


@pytest.mark.parametrize(
    ("rooms", "is_other"),
    [
        ([(3, "refundable")], False),
        ([(3, "refundable"), (4, "non_refundable")], True),
        ([(4, "unknown")], None),
        ([(None, None)], None),
    ],
)
def test_a_quote_of_other_cancellation_terms_says_so(session, rooms, is_other):
    quotes(session, {"quote_total": 100})
    products = [
        {"run_id": "r", "quote_no": 0, "room_no": number, "policy_key": key, "refundability": refundability}
        for number, (key, refundability) in enumerate(rooms)
    ]
    given(session, "lake.quote_offer", [filled(QUOTE_OFFER, product) for product in products], QUOTE_OFFER.schema)
    found = session.sql(relation("mart", "quote_check").sql).select("outcome, has_other_policy").fetchall()
    assert found == [("matched", is_other)]


def test_the_branded_list_is_not_compared_with_the_opaque_offer_of_detail_and_quote(session):
    offers(
        session,
        {"offer_key": 1},
        {"offer_key": 1, "source": "detail", "total": Decimal(80), "seen_search_id": 3},
    )
    quotes(session, {"quote_total": 85, "sent_property_id": 77})
    sql = relation("mart", "offer_truth").sql
    columns = "list_total, detail_total, quote_total, detail_above_list, quote_above_detail, quote_above_list"
    found = session.sql(sql).select(f"{columns}, detail_sent_property_id, quote_sent_property_id").fetchall()
    assert found == [(100, 80, 85, None, 5, None, 77, 77)]


def test_list_detail_and_last_quote_of_one_offer_key_become_one_row(session):
    offers(
        session,
        {"offer_key": 1},
        {"offer_key": 1, "source": "detail", "total": Decimal(104), "seen_search_id": 2},
        {"offer_key": 2, "source": "detail", "board_id": 3},
        {"offer_key": 3, "room_id": None, "currency_asked": None},
        {"offer_key": 3, "room_id": None, "currency_asked": None, "source": "detail", "total": Decimal(99)},
    )
    later = {"intended_at": AT + timedelta(hours=2), "quoted_at": AT + timedelta(hours=2)}
    quotes(
        session,
        {"quote_total": 120, "outcome": "raised"},
        {"quote_total": 110, "outcome": "raised", **later},
    )
    sql = relation("mart", "offer_truth").sql
    columns = (
        "offer_key, room_id, list_total, detail_total, quote_total, quote_outcome, "
        "list_to_detail_seconds, detail_to_quote_seconds, detail_above_list, quote_above_detail, quote_above_list"
    )
    found = session.sql(sql).select(columns).order("room_id").fetchall()
    assert found == [
        (1, 5, 100, 104, 110, "raised", 60, 7200 - 120, 4, 6, 10),
        (3, None, 100, 99, None, None, 0, None, -1, None, None),
    ]
