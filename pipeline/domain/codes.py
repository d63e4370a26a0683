"""Markets, board bases and error codes of the supplier's document, version 1.0.0; currencies of ISO 4217 (2026)."""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

from pipeline.domain.search import Operation

CONTRACT_VERSION = "1.0.0"

# The order of the document.
MARKETS = (
    "AT", "BE", "BG", "CL", "HR", "CY", "CZ", "DK", "EE", "FI", "FR", "DE", "HU", "IS", "IN", "IE", "IT", "LV",
    "LT", "LU", "MT", "MX", "NL", "NO", "PL", "PT", "RO", "SK", "SI", "ES", "SE", "CH", "GB", "US", "AR", "GR",
)  # fmt: skip
A_MARKET = f"one of the {len(MARKETS)} market codes"

BOARD_FAMILY_VERSION = 1


class BoardFamily(StrEnum):
    """Groups of similar board bases, compared where the exact board is missing."""

    ROOM_ONLY = "room only"
    BREAKFAST = "breakfast"
    HALF_BOARD = "half board"
    FULL_BOARD = "full board"
    ALL_INCLUSIVE = "all inclusive"
    SELF_CATERING = "self catering"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class BoardBasis:
    """A meal plan as the document lists it, with the family that we put it in."""

    id: int
    name: str
    qualifier: str | None
    family: BoardFamily


def _boards() -> dict[int, BoardBasis]:
    family = BoardFamily
    listed = (
        (1, "All Inclusive", None, family.ALL_INCLUSIVE),
        (3, "Bed and Breakfast", None, family.BREAKFAST),
        (4, "Breakfast", "Buffet", family.BREAKFAST),
        (6, "Breakfast", "Continental", family.BREAKFAST),
        (7, "Breakfast", "English", family.BREAKFAST),
        (10, "Full Board", None, family.FULL_BOARD),
        (12, "Half Board", None, family.HALF_BOARD),
        (14, "Room Only", None, family.ROOM_ONLY),
        (15, "Self Catering", None, family.SELF_CATERING),
        (19, "Breakfast", None, family.BREAKFAST),
        # One meal that is not breakfast is neither half board nor breakfast.
        (21, "Lunch", None, family.OTHER),
        (22, "Dinner", None, family.OTHER),
        (100, "Breakfast", "Scottish", family.BREAKFAST),
        (101, "Breakfast", "American", family.BREAKFAST),
        (102, "Breakfast", "For 2 person", family.BREAKFAST),
        (103, "Breakfast", "For 1 Person", family.BREAKFAST),
        (104, "Breakfast", "For 3 person", family.BREAKFAST),
        (105, "All Inclusive", "Single Adult", family.ALL_INCLUSIVE),
        (106, "All Inclusive", "Adults Only", family.ALL_INCLUSIVE),
        (107, "All Inclusive", "Elite", family.ALL_INCLUSIVE),
        (108, "All Inclusive", "For 2 person", family.ALL_INCLUSIVE),
        (109, "All Inclusive", "Soft", family.ALL_INCLUSIVE),
        (110, "All Inclusive", "Premium", family.ALL_INCLUSIVE),
        (111, "Full Board", "With Drinks", family.FULL_BOARD),
        (112, "Half Board", "American Breakfast & Dinner", family.HALF_BOARD),
        (113, "Half Board", "Breakfast & Dinner", family.HALF_BOARD),
        (114, "Half Board", "Buffet Breakfast and Dinner for 2 person", family.HALF_BOARD),
        (115, "Half Board", "With Drinks", family.HALF_BOARD),
    )
    return {board_id: BoardBasis(board_id, *rest) for board_id, *rest in listed}


BOARDS = _boards()


class CodeKind(StrEnum):
    """What an error code is about."""

    NO_AVAILABILITY = "no_availability"
    VALIDATION = "validation"
    SERVER = "server"


@dataclass(frozen=True, slots=True)
class ErrorCode:
    """A documented error code, where it occurs and what it means."""

    code: int
    kind: CodeKind
    http_status: int
    operations: frozenset[Operation]
    meaning: str


def _error_codes() -> dict[int, ErrorCode]:
    every = frozenset(Operation)
    multi, quote = frozenset({Operation.MULTI}), frozenset({Operation.QUOTE})
    validation = (
        (1001, multi, "propertyIds missing"),
        (1002, every, "checkIn missing"),
        (1003, every, "checkOut missing"),
        (1004, every, "market missing"),
        (1005, every, "productType missing"),
        (1006, every, "roomStay missing"),
        (1007, every, "room stay without id"),
        (1008, every, "room without adult count"),
        (1009, every, "room without guests"),
        (1010, every, "more than 8 children in a room"),
        (1011, every, "more than 9 adults in a room"),
        (1012, every, "more than 9 rooms"),
        (1013, multi, "more than 100 propertyIds"),
        (1014, every, "checkIn is not in the future"),
        (1015, every, "checkOut is not in the future"),
        (1016, every, "a date is not written yyyy-MM-dd"),
        (1017, every, "checkOut is not after checkIn"),
        (1018, every, f"market is not {A_MARKET}"),
        (1019, every, "productType is neither Hotel nor Package"),
        (1020, every - multi, "propertyId missing"),
        (1021, quote, "productId missing"),
        (1022, every, "rateType missing"),
        (1027, every, "currency not supported"),
    )
    no_availability = (
        (1023, "no offers available"),
        (1024, "restricted rates requested"),
        (1025, "none of the requested properties is available"),
        (1026, "several rooms of different types cannot be booked together"),
    )
    return {
        500: ErrorCode(500, CodeKind.SERVER, 500, every, "unexpected failure; may be retried later"),
        **{code: ErrorCode(code, CodeKind.VALIDATION, 400, where, text) for code, where, text in validation},
        **{code: ErrorCode(code, CodeKind.NO_AVAILABILITY, 200, every, text) for code, text in no_availability},
    }


ERROR_CODES = _error_codes()
NO_AVAILABILITY_CODES = frozenset(c.code for c in ERROR_CODES.values() if c.kind is CodeKind.NO_AVAILABILITY)

# Results of a cell, not our mistakes: a date that has passed since the plan was made (1014, 1015), a market or
# currency that the supplier does not serve (1018, 1027).
_RESULT_CODES = frozenset({1014, 1015, 1018, 1027})
# The other validation codes answer a malformed request, which is our mistake.
SHAPE_CODES = frozenset(c.code for c in ERROR_CODES.values() if c.kind is CodeKind.VALIDATION) - _RESULT_CODES


def storable_code(codes: Iterable[int]) -> int | None:
    """Return the first of an answer's codes that the tables hold, documented or not; None: there is none."""
    return next((code for code in codes if -(2**31) <= code < 2**31), None)


# The document names the kinds in prose and does not fix their spelling.
_PROMOTIONS = frozenset({"valueadd", "discountoff", "freenight"})


def is_known_promotion(kind: str) -> bool:
    """Whether a kind of promotion is one that the document names, in whatever spelling."""
    return "".join(letter for letter in kind.casefold() if letter.isalpha()) in _PROMOTIONS


_WITHOUT_MINOR_UNIT = (
    "BIF", "CLP", "DJF", "GNF", "ISK", "JPY", "KMF", "KRW", "PYG", "RWF", "UGX", "VND", "VUV", "XAF", "XOF", "XPF",
)  # fmt: skip
_OF_A_THOUSANDTH = ("BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND")
_OF_A_HUNDREDTH = (
    "AED", "ARS", "AUD", "BGN", "BRL", "CAD", "CHF", "CNY", "COP", "CRC", "CZK", "DKK", "DOP", "EGP", "EUR", "GBP",
    "GEL", "HKD", "HRK", "HUF", "IDR", "ILS", "INR", "KES", "MAD", "MOP", "MUR", "MXN", "MYR", "NOK", "NZD", "PEN",
    "PHP", "PLN", "QAR", "RON", "RSD", "RUB", "SAR", "SEK", "SGD", "THB", "TRY", "TWD", "UAH", "USD", "UYU", "ZAR",
)  # fmt: skip

# Decimals of an amount. A currency that is not listed has two.
MINOR_DIGITS = (
    dict.fromkeys(_WITHOUT_MINOR_UNIT, 0) | dict.fromkeys(_OF_A_THOUSANDTH, 3) | dict.fromkeys(_OF_A_HUNDREDTH, 2)
)

# Currency codes in use today or withdrawn since 2023, without metals, funds and test codes.
ISO_4217 = frozenset((
    "AED", "AFN", "ALL", "AMD", "ANG", "AOA", "ARS", "AUD", "AWG", "AZN", "BAM", "BBD", "BDT", "BGN", "BHD", "BIF",
    "BMD", "BND", "BOB", "BRL", "BSD", "BTN", "BWP", "BYN", "BZD", "CAD", "CDF", "CHF", "CLP", "CNY", "COP", "CRC",
    "CUP", "CVE", "CZK", "DJF", "DKK", "DOP", "DZD", "EGP", "ERN", "ETB", "EUR", "FJD", "FKP", "GBP", "GEL", "GHS",
    "GIP", "GMD", "GNF", "GTQ", "GYD", "HKD", "HNL", "HRK", "HTG", "HUF", "IDR", "ILS", "INR", "IQD", "IRR", "ISK",
    "JMD", "JOD", "JPY", "KES", "KGS", "KHR", "KMF", "KPW", "KRW", "KWD", "KYD", "KZT", "LAK", "LBP", "LKR", "LRD",
    "LSL", "LYD", "MAD", "MDL", "MGA", "MKD", "MMK", "MNT", "MOP", "MRU", "MUR", "MVR", "MWK", "MXN", "MYR", "MZN",
    "NAD", "NGN", "NIO", "NOK", "NPR", "NZD", "OMR", "PAB", "PEN", "PGK", "PHP", "PKR", "PLN", "PYG", "QAR", "RON",
    "RSD", "RUB", "RWF", "SAR", "SBD", "SCR", "SDG", "SEK", "SGD", "SHP", "SLE", "SLL", "SOS", "SRD", "SSP", "STN",
    "SVC", "SYP", "SZL", "THB", "TJS", "TMT", "TND", "TOP", "TRY", "TTD", "TWD", "TZS", "UAH", "UGX", "USD", "UYU",
    "UZS", "VES", "VND", "VUV", "WST", "XAF", "XCD", "XCG", "XOF", "XPF", "YER", "ZAR", "ZMW", "ZWG", "ZWL",
))  # fmt: skip


def minor_unit(currency: str) -> Decimal:
    """Return the smallest amount of a currency, in its units: 0.01 of most, 1 of JPY."""
    return Decimal(1).scaleb(-MINOR_DIGITS.get(currency, 2))
