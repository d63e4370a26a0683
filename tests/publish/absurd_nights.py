"""Nights in which each property has one value that no price has: what one absurd row may cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal

from nights import load_night, started_at

from pipeline.domain.tables import MOST_MONEY
from pipeline.inputs.load import load
from pipeline.lake import Lake
from pipeline.night.gate import audit_sweep, publish_checked
from pipeline.settings import Settings

MOST, LARGEST = Decimal(int(MOST_MONEY)), Decimal("99999999999999.9999")
MONEY = [MOST, LARGEST, -LARGEST, Decimal(0), Decimal("0.0001"), Decimal("-0.0001"), None]
INTS = [2**31 - 1, -(2**31), -1, 0, None]
LONGS = [2**63 - 1, -(2**63), -1, 0, None]
NUMBERS = [1e308, -1e308, float("inf"), float("-inf"), float("nan"), 5e-324, 1000.0, 100.0, -100.0, 0.0, None]
TIMES = [datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC), None]
OFFSETS = ["", "+14:00", "-99:99", "x" * 5000, None]
TEXTS = ["", "euro", "\u20ac", "x" * 5000, "a\x00b", "=1+1", "9" * 40 + "% off", "stay " + "9" * 20 + " pay 1", None]
AMOUNTS = (
    *("total", "pre_promo_total", "floor", "included_charges", "excluded_charges", "resort_fee", "child_resort_fee"),
    *("city_taxes", "hotel_service_fee"),
)
VALUES: dict[str, dict[str, list[object]]] = {
    "offer": {
        **dict.fromkeys(AMOUNTS, MONEY),
        **dict.fromkeys(("room_stay_id", "available_rooms", "board_id", "free_cancel_hours"), INTS),
        **dict.fromkeys(("room_id", "product_id"), LONGS),
        **dict.fromkeys(("currency", "room_name", "board_name", "board_detail", "rate_type"), TEXTS),
        "discount_pct": NUMBERS,
        "free_cancel_until": TIMES,
    },
    "penalty": {
        "window_hours": INTS,
        **dict.fromkeys(("penalty_pct", "penalty_nights"), NUMBERS),
        **dict.fromkeys(("start_at", "end_at"), TIMES),
        **dict.fromkeys(("start_offset", "end_offset"), OFFSETS),
        "amount": MONEY,
    },
    "promotion": dict.fromkeys(("description", "promo_type"), TEXTS),
}

_EACH = [
    {table: {column: value}}
    for table, columns in VALUES.items()
    for column, values in columns.items()
    for value in values
]
_TOGETHER: list[dict[str, dict[str, object]]] = [
    {"offer": dict.fromkeys(AMOUNTS, MOST), "penalty": {"penalty_nights": 1000.0, "penalty_pct": 100.0}},
    {"offer": dict.fromkeys(AMOUNTS, Decimal("0.0001"))},
    {"offer": dict.fromkeys(AMOUNTS, MOST) | {"total": Decimal("0.0001")}},
    {"offer": dict.fromkeys(AMOUNTS, Decimal(0)) | {"total": MOST}},
    {"offer": {"total": MOST, "discount_pct": -1e308}, "promotion": {"description": "100% off"}},
]
# The first property is as it should be.
ALL: list[dict[str, dict[str, object]]] = [{}, *_EACH, *_TOGETHER]


@dataclass
class _Asked:
    number: int
    market: str
    party: str
    source: str
    product_type: str
    currency: str
    absurd: Mapping[str, Mapping[str, object]] = field(default_factory=dict)


def absurd_nights(
    lake: Lake,
    absurd: list[dict[str, dict[str, object]]],
    nights: int = 2,
    markets: tuple[str, ...] = ("SE",),
    *,
    is_offered: bool = True,
) -> Lake:
    """Load, audit and publish nights in which property n has the values of `absurd[n - 1]`, in those `markets`."""
    rates = lake.root.parent / "rates.csv"
    rates.write_text("Date,GBP\n2030-01-01,0.00000001\n2030-01-02,9999999\n")
    load(lake, "rates", rates, datetime(2030, 1, 1, tzinfo=UTC))
    settings = Settings(_env_file=None, lake=str(lake.root), tolerated_quarantined_share=1.0)
    for night in range(nights):
        rows = _rows(night, absurd, markets)
        if not is_offered:
            none = {"offers": 0, "status": "no_offer"}
            rows = {"search": [row | {"offers": 0} for row in rows["search"]], "cell": [r | none for r in rows["cell"]]}
        sweep_id = load_night(lake, night, **rows)
        audit_sweep(settings, lake, sweep_id, started_at(night))
        publish_checked(lake, sweep_id, started_at(night), override="absurd on purpose")
    return lake


def _rows(
    night: int, absurd: list[dict[str, dict[str, object]]], markets: tuple[str, ...]
) -> dict[str, list[dict[str, object]]]:
    rows: dict[str, list[dict[str, object]]] = {
        name: [] for name in ("search", "cell", "offer", "penalty", "promotion")
    }
    for number, values in enumerate(absurd, 1):
        kinds = [
            (market, party, source, product_type, currency)
            for market in ("GB", "SE")
            for party in ("2", "2+2")
            for source, product_type in (("multi", "Hotel"), ("multi", "Package"), ("detail", "Hotel"))
            for currency in (("EUR", "GBP") if party == "2" else ("EUR",))
        ]
        for kind, asked in enumerate(kinds):
            of_market = values if asked[0] in markets else {}
            _add(rows, night, (number * 100 + kind) * 256 + 1, _Asked(number, *asked, of_market))
    return rows


def _add(rows: dict[str, list[dict[str, object]]], night: int, search_id: int, asked: _Asked) -> None:
    rooms = asked.party.count("2")
    cell = {
        "search_id": search_id,
        "market": asked.market,
        "party": asked.party,
        "product_type": asked.product_type,
        "check_in": date(2030, 1, 20),
        "nights": 2,
        "currency_asked": asked.currency,
    }
    operation = "multi" if asked.source == "multi" else "single"
    said = {"operation": operation, "offers": 2 * rooms}
    times = dict.fromkeys(("started_at", "ended_at"), started_at(night))
    rows["search"].append(
        cell | said | times | {"properties": 1, "attempts": 1, "http_status": 200, "raw_address": "x"}
    )
    rows["cell"].append(cell | said | {"property_id": asked.number})
    for offer_no in range(2 * rooms):
        of_offer = {"search_id": search_id, "offer_no": offer_no, "property_id": asked.number, "market": asked.market}
        board = (14, 3)[offer_no % 2]
        total = Decimal(100 + 5 * board + 3 * night + (10 if asked.market == "SE" else 0))
        detail = asked.source == "detail"
        offer = cell | of_offer | {
            "source": asked.source, "room_stay_id": offer_no // 2, "room_id": 7, "room_name": "Double",
            "board_id": board, "product_id": 1, "currency": asked.currency, "total": total,
            # Eight percent are stated, and twenty or so are given: each of these is a finding.
            "pre_promo_total": total + 30, "discount_pct": 8.0, "floor": total - 5, "available_rooms": 5 - night,
            "policy_key": 11, "promotion_key": 22, "free_cancel_hours": 48,
            **(dict.fromkeys(("included_charges", "excluded_charges", "resort_fee"), Decimal(4)) if detail else {}),
        }  # fmt: skip
        penalty = of_offer | {"penalty_no": 0, "window_hours": 48, "penalty_pct": 50.0, "penalty_nights": 2.0}
        if detail:
            penalty |= {"amount": total, "start_at": datetime(2030, 1, 18, tzinfo=UTC)}
        promotion = of_offer | {"promotion_no": 0, "promo_type": "Discount Off", "description": "8% off"}
        for table, row, key in (("offer", offer, ""), ("penalty", penalty, "policy_key"),
                                ("promotion", promotion, "promotion_key")):  # fmt: skip
            if values := asked.absurd.get(table):
                row.update(values)
                offer |= {key: 1000 + asked.number} if key else {}
        rows["offer"].append(offer)
        rows["penalty"].append(penalty)
        rows["promotion"].append(promotion)
