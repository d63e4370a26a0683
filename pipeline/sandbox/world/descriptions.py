"""Names, descriptions, amenities and image addresses: the words of the simulated properties."""

from typing import Any, Final

from pipeline.sandbox.world.hashes import Dice

_FIRST: Final = (
    "Amber", "Blue Heron", "Casa Miró", "Dünen", "Eiffelhof", "Fjord", "Grand", "Hôtel du Lac", "Izarra",
    "Jasmin", "Königshof", "Lighthouse", "Meridian", "Nordlys", "Oasis", "Palácio", "Quinta", "Río Claro",
    "Sakura 桜", "Terrazza", "Ürgüp", "Villa O'Neill", "Windmill", "Zátiší",
)  # fmt: skip
_LAST: Final = ("Hotel", "Resort", "Suites", "Inn", "Residence", "& Spa", "Boutique Hotel", "Aparthotel")
PLACES: Final = (
    "Lisboa", "Göteborg", "Berlin", "Malmö", "Praha", "Sevilla", "Kraków", "Dublin", "Athína", "Cancún",
    "Oslo", "Innsbruck", "Split", "Nice", "London", "Riga",
)  # fmt: skip
_ROOM_CLASS: Final = ("Standard", "Superior", "Deluxe", "Premium", "Junior Suite", "Suite")
_ROOM_KIND: Final = ("Double Room", "Twin Room", "Family Room", "Studio", "Apartment")
_ROOM_VIEW: Final = ("", ", Sea View", ", Garden View", ", City View", ", Balcony", ' "Corner"')
_BEDS: Final = (
    "1 double bed", "2 single beds", "1 king bed", "1 queen bed and 1 sofa bed", "2 double beds",
    "1 double bed or 2 single beds",
)  # fmt: skip
_AMENITIES: Final = (
    "Air conditioning", "Free WiFi", "Minibar", "Safe", "Hair dryer", "Kettle", "Balcony", "Bathtub",
    "Rain shower", "Desk", "Blackout curtains", "Kitchenette", "Coffee machine", "Ironing board", "Crib on request",
    "Wheelchair accessible", "Non-smoking", "Flat-screen TV",
)  # fmt: skip
_REMARKS: Final = (
    "City tax is paid at the property.",
    "Adults only: guests must be 16 or older.",
    "A deposit of 100 is taken on arrival; it is given back on departure.\nCards only.",
    "Check-in from 15:00, late arrival must be announced.",
    "Renovation of the pool area; noise is possible between 9 and 17.",
    "Pets are not allowed.",
)
_UNNAMED: Final = ("3-star hotel", "4-star hotel", "5-star hotel", "Design hotel", "Beach hotel")


def property_name(dice: Dice) -> str:
    """Return the name of a property."""
    return f"{dice.pick(_FIRST)} {dice.pick(_LAST)} {dice.pick(PLACES)}"


def unbranded_name(dice: Dice) -> str:
    """Return what a property is called where its brand must not be shown."""
    return f"{dice.pick(_UNNAMED)} near {dice.pick(PLACES)}"


def room_words(dice: Dice, number: int, capacity: int) -> dict[str, Any]:
    """Return name, description, beds, images and amenities of a room type, under the document's field names."""
    name = f"{_ROOM_CLASS[min(number, 5)]} {dice.pick(_ROOM_KIND)}{dice.pick(_ROOM_VIEW)}"
    picture = dice.below(100_000)
    first = dice.below(len(_AMENITIES))
    return {
        "roomName": name,
        "roomDescription": f"{name}: about {dice.between(16, 60)} m², for up to {capacity} guests.",
        "bedTypeInfo": dice.pick(_BEDS),
        "images": [
            f"https://images.supplier.example/{picture}/{shot}.jpg?w=1200&h=800" for shot in range(dice.below(5))
        ],
        "roomAmenities": [
            {"id": 500 + (first + step) % len(_AMENITIES), "name": _AMENITIES[(first + step) % len(_AMENITIES)]}
            for step in range(dice.below(7))
        ],
    }


def remarks(dice: Dice) -> str:
    """Return the special terms of a property."""
    return dice.pick(_REMARKS)
