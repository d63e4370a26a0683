"""The values that a spec's keys may hold, each with an error that says what is allowed."""

import re
from collections.abc import Callable, Hashable, Iterable
from datetime import date, datetime, timedelta
from difflib import SequenceMatcher, get_close_matches
from enum import StrEnum
from itertools import takewhile
from typing import Annotated, Any, Final, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer, PlainValidator, ValidationInfo
from pydantic_core import PydanticCustomError

from pipeline.domain.codes import ISO_4217, MARKETS
from pipeline.domain.search import Operation, ProductType
from pipeline.domain.stay import Party
from pipeline.domain.texts import quoted

MAX_PROPERTY_ID = 2**63 - 1
# The supplier's document limits neither; these catch a typing error before it becomes a month of requests.
MAX_LEAD_DAYS = 1095
MAX_NIGHTS = 365

# Two-letter codes that people write instead of a country's ISO code.
_OTHER_NAMES = {"UK": "GB", "EL": "GR"}
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")

T = TypeVar("T", bound=Hashable)


class Anchor(StrEnum):
    """What the days of a horizon count: days ahead, or days of the calendar."""

    LEAD_DAYS = "lead_days"
    CALENDAR = "calendar"


class DetailRule(StrEnum):
    """Why a property is searched in detail."""

    AVAILABLE = "available"
    CHANGED = "changed"
    STALE = "stale"
    WATCH = "watch"


def nearest(word: str, allowed: Iterable[str]) -> str:
    """Return `; did you mean …?` for the allowed word that is most like `word`, or an empty text.

    Of words that are as much like it, the one that begins like it is meant, then the first of `allowed`.
    """
    by_lower = {each.lower(): each for each in allowed}
    places = {each: place for place, each in enumerate(by_lower)}
    # More than there are currencies like one: the order among these is ours.
    close = get_close_matches(word.lower(), by_lower, n=50)

    def unlike(each: str) -> tuple[bool, float, int, int]:
        likeness = SequenceMatcher(None, each, word.lower()).ratio()
        alike = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(each, word.lower(), strict=False)))
        # In a code of three letters a swap looks like any other slip, so the word with the same letters comes first.
        return sorted(each) != sorted(word.lower()), -likeness, -alike, places[each]

    meant = min(close, key=unlike, default=None)
    return f"; did you mean `{by_lower[meant]}`?" if meant else ""


def at_item(index: int, message: str) -> PydanticCustomError:
    """Return an error about one item of a list, so that the item's line can be named."""
    return PydanticCustomError("item", "{message}", {"message": message, "index": index})


def _unique(items: tuple[T, ...]) -> tuple[T, ...]:
    first: dict[T, int] = {}
    for index, item in enumerate(items):
        if item in first:
            raise at_item(index, f"{item} is given twice (items {first[item] + 1} and {index + 1})")
        first[item] = index
    return items


def _one_of(what: str, allowed: tuple[str, ...], note: str = "") -> Callable[[object], object]:
    def check(value: object) -> object:
        if isinstance(value, str) and value in allowed:
            return value
        hint = nearest(value, allowed) if isinstance(value, str) else ""
        raise ValueError(f"{quoted(value)} is not {what}{hint or '.'} Allowed: {', '.join(allowed)}.{note}")

    return check


def _market(value: object) -> str:
    if isinstance(value, str) and value in MARKETS:
        return value
    meant = value.upper() if isinstance(value, str) else ""
    meant = _OTHER_NAMES.get(meant, meant)
    hint = f"; did you mean `{meant}`?" if meant in MARKETS else "."
    raise ValueError(
        f"{quoted(value)} is not a market{hint} Allowed: {', '.join(MARKETS)}; or 'all' in place of the list."
    )


# The currencies of the European Central Bank's reference rates.
_WITH_A_REFERENCE_RATE: Final = (
    "EUR", "USD", "GBP", "CHF", "SEK", "NOK", "DKK", "ISK", "PLN", "CZK", "HUF", "RON", "BGN", "TRY", "AUD", "BRL",
    "CAD", "CNY", "HKD", "IDR", "ILS", "INR", "JPY", "KRW", "MXN", "MYR", "NZD", "PHP", "SGD", "THB", "ZAR",
)  # fmt: skip


def _currency(value: object) -> str:
    if isinstance(value, str) and value in ISO_4217:
        return value
    upper = value.strip().upper() if isinstance(value, str) else ""
    # A slip is more often in a code that many use.
    hint = nearest(upper, [*_WITH_A_REFERENCE_RATE, *sorted(ISO_4217)]) or ":"
    raise ValueError(
        f"{quoted(value)} is not a currency of ISO 4217{hint} Write three capital letters, for example EUR."
    )


def _party(value: object) -> Party:
    # A party of adults alone looks like a number, and YAML and TOML read it as one when it is not quoted.
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str):
        msg = f"{quoted(value)} is not a party: write 2, or 2c5-9 for 2 adults with children aged 5 and 9"
        raise ValueError(msg)  # noqa: TRY004 - pydantic reports a ValueError, and lets a TypeError through
    return Party.parse(value)


def _date(value: object) -> date:
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    try:
        if isinstance(value, str) and _DATE.fullmatch(value):
            return date.fromisoformat(value)
    except ValueError as error:
        raise ValueError(f"{quoted(value)} is not a day of the calendar ({error})") from None
    raise ValueError(f"{quoted(str(value))} is not a date: write it as yyyy-MM-dd, for example 2027-01-05")


def check_in_problem(check_in: date, snapshot_date: date) -> str:
    """Return why `check_in` cannot be requested on `snapshot_date`, or an empty text.

    A date that has passed is not a mistake: a spec is used night after night, and its dates pass one by one.
    """
    if check_in > snapshot_date + timedelta(days=MAX_LEAD_DAYS):
        return f"{check_in} is more than {MAX_LEAD_DAYS} days after the snapshot date {snapshot_date}"
    return ""


def _in_reach(check_in: date, info: ValidationInfo) -> date:
    snapshot_date: date | None = (info.context or {}).get("snapshot_date")
    if snapshot_date and (problem := check_in_problem(check_in, snapshot_date)):
        raise ValueError(problem)
    return check_in


_UNIQUE: Any = AfterValidator(_unique)
_FILLED: Any = Field(min_length=1)
_ALL_MARKETS: Any = BeforeValidator(lambda value: list(MARKETS) if value == "all" else value)
_LISTED: Any = BeforeValidator(lambda value: [value] if isinstance(value, str) else value)

PropertyId = Annotated[int, Field(strict=True, ge=1, le=MAX_PROPERTY_ID)]
Days = Annotated[int, Field(strict=True, ge=1, le=MAX_LEAD_DAYS)]
Nights = Annotated[int, Field(strict=True, ge=1, le=MAX_NIGHTS)]
CheckIn = Annotated[date, BeforeValidator(_date), AfterValidator(_in_reach)]
Market = Annotated[str, PlainValidator(_market)]
Currency = Annotated[str, PlainValidator(_currency)]
AskedParty = Annotated[Party, PlainValidator(_party), PlainSerializer(str)]
SweptOperation = Annotated[
    Operation, BeforeValidator(_one_of("an operation of a sweep", ("multi", "single"), " A quote makes a reservation."))
]
SoldType = Annotated[ProductType, BeforeValidator(_one_of("a product type", tuple(ProductType)))]
AnchorName = Annotated[Anchor, BeforeValidator(_one_of("an anchor", tuple(Anchor)))]

DetailRuleName = Annotated[DetailRule, BeforeValidator(_one_of("a rule", tuple(DetailRule)))]
DetailRules = Annotated[tuple[DetailRuleName, ...], _FILLED, _UNIQUE]
PropertyIds = Annotated[tuple[PropertyId, ...], _FILLED, _UNIQUE]
# A list that may be empty: nothing is watched yet.
WatchedIds = Annotated[tuple[PropertyId, ...], _UNIQUE]
NightsList = Annotated[tuple[Nights, ...], _FILLED, _UNIQUE]
CheckIns = Annotated[tuple[CheckIn, ...], _FILLED, _UNIQUE]
Markets = Annotated[tuple[Market, ...], _FILLED, _UNIQUE, _ALL_MARKETS]
ProductTypes = Annotated[tuple[SoldType, ...], _FILLED, _UNIQUE]
Parties = Annotated[tuple[AskedParty, ...], _FILLED, _UNIQUE]
Currencies = Annotated[tuple[Currency, ...], _FILLED, _UNIQUE]
Operations = Annotated[tuple[SweptOperation, ...], _FILLED, _UNIQUE]
CurrenciesByMarket = dict[Market, Annotated[Currencies, _LISTED]]
