"""What the supplier's document names: codes, markets, board ids, limits, a search. Transcribed, not imported."""

from datetime import date
from typing import Final, Literal, NamedTuple

from pipeline.sandbox.world.hashes import mix, mix_text

Operation = Literal["multi", "single", "quote"]

PATHS: Final[dict[str, Operation]] = {
    "/v1/property/multi": "multi",
    "/v1/property/single": "single",
    "/v1/property/quote": "quote",
}
TOKEN_PATH: Final = "/auth/oauth/token"  # noqa: S105 - an address, not a secret

READ_SCOPE: Final = "read_rooms"
WRITE_SCOPE: Final = "write_rooms"
# Which scope an operation needs is not documented; reading needs the read scope, a reservation the write scope.
SCOPE_OF: Final[dict[Operation, str]] = {"multi": READ_SCOPE, "single": READ_SCOPE, "quote": WRITE_SCOPE}

MARKETS: Final = (
    "AT", "BE", "BG", "CL", "HR", "CY", "CZ", "DK", "EE", "FI", "FR", "DE", "HU", "IS", "IN", "IE", "IT", "LV",
    "LT", "LU", "MT", "MX", "NL", "NO", "PL", "PT", "RO", "SK", "SI", "ES", "SE", "CH", "GB", "US", "AR", "GR",
)  # fmt: skip
MARKET_NUMBER: Final = {code: number for number, code in enumerate(MARKETS)}
PRODUCT_TYPES: Final = ("Hotel", "Package")
RATE_TYPES: Final = ("BAR",)

MAX_PROPERTY_IDS: Final = 100
MAX_ROOM_STAYS: Final = 9
MAX_ADULTS: Final = 9
MAX_CHILDREN: Final = 8


class Board(NamedTuple):
    """One line of the document's board table; `price` is our own: EUR cents per adult and night."""

    id: int
    name: str
    qualifier: str
    price: int


BOARDS: Final = (
    Board(1, "All Inclusive", "", 5200),
    Board(3, "Bed and Breakfast", "", 1150),
    Board(4, "Breakfast", "Buffet", 1350),
    Board(6, "Breakfast", "Continental", 900),
    Board(7, "Breakfast", "English", 1400),
    Board(10, "Full Board", "", 3900),
    Board(12, "Half Board", "", 2600),
    Board(14, "Room Only", "", 0),
    Board(15, "Self Catering", "", 0),
    Board(19, "Breakfast", "", 1100),
    Board(21, "Lunch", "", 1500),
    Board(22, "Dinner", "", 1900),
    Board(100, "Breakfast", "Scottish", 1450),
    Board(101, "Breakfast", "American", 1550),
    Board(102, "Breakfast", "For 2 person", 1000),
    Board(103, "Breakfast", "For 1 Person", 950),
    Board(104, "Breakfast", "For 3 person", 1050),
    Board(105, "All Inclusive", "Single Adult", 5600),
    Board(106, "All Inclusive", "Adults Only", 5900),
    Board(107, "All Inclusive", "Elite", 7800),
    Board(108, "All Inclusive", "For 2 person", 5000),
    Board(109, "All Inclusive", "Soft", 4400),
    Board(110, "All Inclusive", "Premium", 6900),
    Board(111, "Full Board", "With Drinks", 4500),
    Board(112, "Half Board", "American Breakfast & Dinner", 2900),
    Board(113, "Half Board", "Breakfast & Dinner", 2700),
    Board(114, "Half Board", "Buffet Breakfast and Dinner for 2 person", 2650),
    Board(115, "Half Board", "With Drinks", 3200),
)
BOARD_BY_ID: Final = {board.id: board for board in BOARDS}

# Texts are this sandbox's own; the document gives codes and conditions, not wording.
REFUSALS: Final[dict[int, str]] = {
    1001: "propertyIds is missing",
    1002: "checkIn is missing",
    1003: "checkOut is missing",
    1004: "market is missing",
    1005: "productType is missing",
    1006: "roomStays is missing",
    1007: "a room stay has no valid id (0, 1, 2, ... in order)",
    1008: "a room stay has no adult count of at least 1",
    1009: "a room stay has no readable guest count",
    1010: "a room stay has more than 8 children",
    1011: "a room stay has more than 9 adults",
    1012: "more than 9 rooms were requested",
    1013: "more than 100 propertyIds were requested",
    1014: "checkIn is not in the future",
    1015: "checkOut is not in the future",
    1016: "checkIn or checkOut is not a date in the format yyyy-MM-dd",
    1017: "checkOut is not after checkIn",
    1018: "market is not supported",
    1019: "productType is neither Hotel nor Package",
    1020: "propertyId is missing",
    1021: "a room stay has no productId",
    1022: "rateType is missing",
    1027: "currency is not supported",
}
NO_OFFER: Final = 1023
RESTRICTED: Final = 1024
NO_PROPERTY: Final = 1025
DIFFERENT_ROOMS: Final = 1026
UNAVAILABLE: Final[dict[int, str]] = {
    NO_OFFER: "No offers available",
    RESTRICTED: "Restricted rates requested",
    NO_PROPERTY: "None of the requested properties is available",
    DIFFERENT_ROOMS: "Multi-room bookings with different room types are not supported",
}
SERVER_ERROR: Final = 500
SERVER_ERROR_TEXT: Final = "Unexpected error, please try again later"


class Guests(NamedTuple):
    """The guests of one room; ages in years."""

    adults: int
    ages: tuple[int, ...]

    @property
    def people(self) -> int:
        """Return how many people sleep in the room."""
        return self.adults + len(self.ages)


class Search(NamedTuple):
    """One valid request. `currency` None = the property's own; `product_ids` are given in quotes only."""

    operation: Operation
    property_ids: tuple[int, ...]
    check_in: date
    check_out: date
    market: str
    currency: str | None
    rate_type: str | None
    product_type: str
    parties: tuple[Guests, ...]
    product_ids: tuple[int, ...] = ()

    @property
    def nights(self) -> int:
        """Return the length of the stay."""
        return (self.check_out - self.check_in).days

    def fingerprint(self) -> int:
        """Return 64 bits of everything asked but the operation, the properties and the products."""
        text = "|".join(
            (
                self.market,
                self.product_type,
                self.currency or "",
                ";".join(f"{guests.adults}:{','.join(map(str, guests.ages))}" for guests in self.parties),
            )
        )
        return mix(mix_text(text), self.check_in.toordinal(), self.check_out.toordinal())
