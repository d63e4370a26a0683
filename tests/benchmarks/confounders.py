"""What happens to a planted world besides the plants: the supplier, markets, rates and answers change on their own.

Each is one that a rule might take for an anomaly. What is asked and answered differs from the clean world in nothing
else, so a finding that is added or lost is owed to it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "analytics"))

from planted_world import OTHER, REFERENCE, Course
from spoiler import Spoiler

from pipeline.sandbox.server.launch import SandboxProcess
from pipeline.sandbox.world.documented import MARKETS

RISE, DEARER, RATE_JUMP = 1.08, 1.07, 1.03
OWN_CURRENCY = {"GB": "GBP", "SE": "SEK", "NO": "NOK", "DK": "DKK", "PL": "PLN", "CH": "CHF", "US": "USD", "HU": "HUF"}
MONEY = ("total", "minSellablePrice", "prePromoTotal", "includedCharges")
NO_OFFER = b'{"errors": [{"code": 1023, "message": "No offers available"}]}'
OUTAGE = {"status_500_rate": 0.4, "by": "content"}
# Market, days until the last night, and the decoded answer: what is answered instead.
Change = Callable[[str, int, dict[str, Any]], dict[str, Any]]
# Markets that are asked besides where a confounder is of one market, and others are planted in or dearer.
SILENT, SWITCHED = "FR", "US"


class Confounder(NamedTuple):
    """How the nights of a world differ from clean ones."""

    change: Change | None = None
    faults: dict[str, Any] | None = None
    """Faults of the last night."""
    own_currencies: bool = False
    """Whether markets are asked in their own currency: every other one of them in the euro too."""
    switches: bool = False
    """Whether a market is asked in another currency from the last night on."""
    besides: tuple[str, ...] = ()
    """Markets that are asked beside those that what is planted is seen in."""
    rate: float = 1.0
    """What the reference rates of the last night are multiplied by."""
    nameless: bool = False
    """Whether one property of each list has no id on any night."""
    hides: frozenset[str] = frozenset()
    """Home currencies whose mark-up is none by the rates of the last night: `fx_markup` is wrong to find it."""
    wide: frozenset[tuple[str, str]] = frozenset()
    """Rule and market: one finding about the market is right, and none about its properties."""
    unseen: frozenset[tuple[str, str]] = frozenset()
    """Rule and market: what is planted there cannot be seen, as totals that do not meet have no gap in their fees."""
    is_unseen_at: Callable[[int], bool] = lambda _property_id: True
    """Whether it cannot be seen at a property."""


def _products(answer: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for hotel in answer.get("properties") or [answer.get("property") or {}]:
        for room in hotel.get("roomStays") or ():
            yield from room.get("products") or ()


def dearer(answer: dict[str, Any], factor: float) -> dict[str, Any]:
    for product in _products(answer):
        charges = product.get("charges") or {}
        fees = charges.get("excludedChargeDetails") or {}
        reported = sum(value for value in fees.values() if value is not None)
        for held, names in ((charges, MONEY), (fees, tuple(fees))):
            held.update({name: round(held[name] * factor, 2) for name in names if held.get(name) is not None})
        # Rounded one by one, fees would not add up to the stated sum.
        if charges.get("excludedCharges") is not None:
            risen = sum(value for value in fees.values() if value is not None)
            charges["excludedCharges"] = round(charges["excludedCharges"] + risen - reported, 2)
        for penalty in product.get("cancelPenalties") or ():
            if penalty.get("penaltyInAmount") is not None:
                penalty["penaltyInAmount"] = round(penalty["penaltyInAmount"] * factor, 2)
    return answer


def _risen(_market: str, days_left: int, answer: dict[str, Any]) -> dict[str, Any]:
    return dearer(answer, RISE) if days_left <= 1 else answer


def _dear_market(market: str, _days_left: int, answer: dict[str, Any]) -> dict[str, Any]:
    return dearer(answer, DEARER) if market == OTHER else answer


def _is_of_dearer_half(property_id: int) -> bool:
    return property_id % 2 == 1


def _half_dear(market: str, answer: dict[str, Any], which: str) -> dict[str, Any]:
    for hotel in answer.get("properties") or [answer.get("property") or {}]:
        if market == which and _is_of_dearer_half(hotel.get("propertyId", 0)):
            dearer({"property": hotel}, RISE)
    return answer


def _half_dear_market(market: str, _days_left: int, answer: dict[str, Any]) -> dict[str, Any]:
    return _half_dear(market, answer, OTHER)


def _half_dear_reference(market: str, _days_left: int, answer: dict[str, Any]) -> dict[str, Any]:
    return _half_dear(market, answer, REFERENCE)


def _duplicated(_market: str, _days_left: int, answer: dict[str, Any]) -> dict[str, Any]:
    for hotel in answer.get("properties") or [answer.get("property") or {}]:
        for room in hotel.get("roomStays") or ():
            room["products"] = [product for product in room.get("products") or () for _ in range(2)]
    return answer


def _silent_market(market: str, days_left: int, answer: dict[str, Any]) -> dict[str, Any]:
    return json.loads(NO_OFFER) if not days_left and market == SILENT else answer


def _nameless(_market: str, days_left: int, answer: dict[str, Any]) -> dict[str, Any]:
    if not days_left and (listed := answer.get("properties")):
        listed[len(listed) // 2].pop("propertyId", None)
    return answer


def _all_at_once(market: str, days_left: int, answer: dict[str, Any]) -> dict[str, Any]:
    for change in (_risen, _dear_market, _duplicated, _silent_market, _nameless):
        answer = change(market, days_left, answer)
    return answer


def _never_named(request: bytes, answer: dict[str, Any]) -> dict[str, Any]:
    """Leave out the id of one property in every answer about it: the one with the middle id of those asked for."""
    asked = sorted(json.loads(request).get("propertyIds") or ())
    for hotel in answer.get("properties") or ():
        if hotel.get("propertyId") == asked[len(asked) // 2]:
            hotel["propertyId"] = None
    return answer


_ALL_DEARER = {"wide": frozenset({("market_disparity", OTHER)}), "unseen": frozenset({("all_in_gap", OTHER)})}
CONFOUNDERS = {
    "clean": Confounder(),
    "own currencies": Confounder(own_currencies=True),
    # What is converted at 2.5% above yesterday's rate is within the tolerance of tonight's, where that rose by 3%.
    "rates jump": Confounder(own_currencies=True, rate=RATE_JUMP, hides=frozenset({"EUR"})),
    "rates fall": Confounder(own_currencies=True, rate=1 / RATE_JUMP, hides=frozenset({"GBP"})),
    "currency switched": Confounder(switches=True, besides=(SWITCHED,)),
    "supplier dearer": Confounder(_risen),
    "market dearer": Confounder(_dear_market, **_ALL_DEARER),
    "half a market dearer": Confounder(_half_dear_market, **_ALL_DEARER, is_unseen_at=_is_of_dearer_half),
    "half the reference market dearer": Confounder(
        _half_dear_reference,
        wide=frozenset({("market_disparity", REFERENCE)}),
        # With fees, each market is compared with the reference market, whose totals meet no other's there.
        unseen=frozenset(("all_in_gap", market) for market in MARKETS),
        is_unseen_at=_is_of_dearer_half,
    ),
    "duplicates": Confounder(_duplicated),
    "ids missing": Confounder(_nameless),
    "ids always missing": Confounder(nameless=True),
    "market silent": Confounder(_silent_market, besides=(SILENT,)),
    "outage": Confounder(faults=OUTAGE),
    # All of those that can be true of one night.
    "nine at once": Confounder(
        _all_at_once,
        OUTAGE,
        own_currencies=True,
        switches=True,
        besides=(SILENT, SWITCHED),
        rate=RATE_JUMP,
        hides=frozenset({"EUR"}),
        **_ALL_DEARER,
    ),
}


@contextmanager
def course_of(confounder: Confounder, sandbox: SandboxProcess, last: int) -> Iterator[Course]:
    """Give the course of the nights, the last of which has that number, while what stands between answers."""
    with Spoiler(sandbox.base_url) as between:
        at = {"night": 0}

        def spoil(market: str, request: bytes, answer: bytes) -> bytes:
            number, said = at["night"], json.loads(answer)
            if confounder.nameless:
                said = _never_named(request, said)
            if confounder.change:
                said = confounder.change(market, last - number, said)
            return json.dumps(said).encode()

        def before(number: int) -> None:
            at["night"] = number
            sandbox.control("faults", confounder.faults if confounder.faults and number == last else {})

        def currencies(market: str, number: int) -> tuple[str, ...]:
            own = OWN_CURRENCY.get(market)
            if confounder.switches and market == SWITCHED:
                return (OWN_CURRENCY[market],) if number == last else ()
            if confounder.own_currencies and own:
                return (own, "EUR") if market == REFERENCE or ord(market[0]) % 2 else (own,)
            return ()

        is_between = confounder.nameless or confounder.change is not None
        if is_between:
            between.spoil = spoil
        yield Course(
            between.base_url if is_between else None,
            before,
            currencies,
            lambda number: confounder.rate if number == last else 1.0,
            confounder.besides,
        )
