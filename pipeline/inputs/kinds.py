"""Kinds of values in columns of users' files, each with the expression that reads it from text."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from zoneinfo import available_timezones

import polars as pl

from pipeline.domain.codes import A_MARKET, MARKETS
from pipeline.domain.search import ProductType
from pipeline.domain.stay import Party
from pipeline.domain.tables import MONEY_SCALE, RATE_SCALE

# The instant and the offset that it is meant with.
_INSTANT = "%Y-%m-%dT%H:%M:%S%.f%:z"


@dataclass(frozen=True, slots=True)
class Kind:
    """How a text becomes a value: an expression that gives NULL for other texts, and what it expects."""

    parse: Callable[[pl.Expr], pl.Expr]
    expected: str


def _matching(text: pl.Expr, pattern: str) -> pl.Expr:
    return pl.when(text.str.contains(pattern)).then(text)


def _one_of(values: Sequence[str]) -> Callable[[pl.Expr], pl.Expr]:
    return lambda text: pl.when(text.is_in(list(values))).then(text)


def _decimal(scale: int) -> Callable[[pl.Expr], pl.Expr]:
    # More digits than the type holds would be rounded silently; trailing zeros are harmless.
    pattern = rf"^\d{{1,{18 - scale}}}(\.\d{{1,{scale}}}0*)?$"

    def parse(text: pl.Expr) -> pl.Expr:
        number = _matching(text, pattern).cast(pl.Decimal(18, scale), strict=False)
        return pl.when(number > 0).then(number)

    return parse


def _instant(text: pl.Expr) -> pl.Expr:
    written = (
        _matching(text, r"^[12]\d{3}-").str.replace(r"[Zz]$", "+00:00").str.replace(r"^(\d{4}-\d{2}-\d{2}) ", "${1}T")
    )
    return written.str.to_datetime(_INSTANT, strict=False, time_zone="UTC", time_unit="us")


def _party(text: pl.Expr) -> pl.Expr:
    def parse(texts: pl.Series) -> pl.Series:
        # A file has few distinct parties and many rows.
        canonical = {each: _canonical(each) for each in texts.unique().drop_nulls().to_list()}
        return texts.replace_strict(canonical, return_dtype=pl.String) if canonical else texts

    return text.map_batches(parse, return_dtype=pl.String)


def _canonical(text: str) -> str | None:
    try:
        return Party.parse(text).text
    except ValueError:
        return None


def _weight(text: pl.Expr) -> pl.Expr:
    number = _matching(text, r"^\d+(\.\d+)?$").cast(pl.Float64, strict=False)
    return pl.when(number.is_finite()).then(number)


def _between(lowest: float, highest: float) -> Callable[[pl.Expr], pl.Expr]:
    def parse(text: pl.Expr) -> pl.Expr:
        number = _matching(text, r"^-?\d+(\.\d+)?$").cast(pl.Float64, strict=False)
        return pl.when(number.is_between(lowest, highest)).then(number)

    return parse


ID = Kind(lambda text: _matching(text, r"^\d+$").cast(pl.Int64, strict=False), "a whole number of up to 63 bits")
SIGNED = Kind(lambda text: text.cast(pl.Int64, strict=False), "a whole number of 64 bits")
BOARD = Kind(lambda text: text.cast(pl.Int32, strict=False), "a board basis id")
TEXT = Kind(lambda text: text, "a text")
COUNT = Kind(
    lambda text: _matching(text, r"^[1-9]\d{0,2}$").cast(pl.Int16, strict=False), "a number of nights, 1 to 999"
)
MARKET = Kind(_one_of(MARKETS), A_MARKET)
PRODUCT_TYPE = Kind(_one_of([kind.value for kind in ProductType]), "`Hotel` or `Package`")
CURRENCY = Kind(lambda text: _matching(text, r"^[A-Z]{3}$"), "an ISO 4217 code of three capital letters")
DAY = Kind(
    lambda text: _matching(text, r"^[12]\d{3}-\d{2}-\d{2}$").str.to_date("%Y-%m-%d", strict=False),
    "a date written yyyy-MM-dd, of the years 1000 to 2999",
)
INSTANT = Kind(_instant, "an instant with its offset, like 2026-11-20T02:30:00Z")
MONEY = Kind(_decimal(MONEY_SCALE), f"an amount above 0 with up to {MONEY_SCALE} decimals and a point")
RATE = Kind(_decimal(RATE_SCALE), f"a rate above 0 with up to {RATE_SCALE} decimals and a point")
PARTY = Kind(_party, "a party like 2, 2c5-9 or 2+1")
WEIGHT = Kind(_weight, "a number, 0 or more")
TIME = Kind(lambda text: _matching(text, r"^([01]\d|2[0-3]):[0-5]\d$"), "a time of day, 00:00 to 23:59")
# DuckDB knows all except this one, the machine's own.
TIME_ZONE = Kind(_one_of(sorted(available_timezones() - {"localtime"})), "a time zone like Europe/Stockholm")
STARS = Kind(_between(0, 7), "a number of stars, 0 to 7, with a point")
LATITUDE = Kind(_between(-90, 90), "degrees from -90 to 90, with a point")
LONGITUDE = Kind(_between(-180, 180), "degrees from -180 to 180, with a point")


@dataclass(frozen=True, slots=True)
class InputColumn:
    """A column of a user's file. One that is not required may be missing or empty."""

    name: str
    kind: Kind
    meaning: str
    is_required: bool = True
