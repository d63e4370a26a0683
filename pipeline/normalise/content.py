"""Content of single answers: names, descriptions, beds, amenities and images of properties and rooms.

The same content comes with every requested stay, so a segment keeps each distinct content once, with the first search
that returned it. Changes since earlier sweeps are computed when the sweep is published.
"""

from dataclasses import dataclass

import pyarrow as pa

from pipeline.domain.tables import PROPERTY_CONTENT, ROOM_CONTENT
from pipeline.supplier import wire


@dataclass(frozen=True, slots=True)
class RoomContent:
    """Content of a room; None: not stated."""

    room_id: int | None
    room_name: str | None
    room_description: str | None
    bed_type: str | None
    amenities: tuple[tuple[int | None, str | None], ...] | None
    images: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class PropertyContent:
    """Content of a property and its rooms."""

    property_id: int
    property_name: str | None
    rooms: tuple[RoomContent, ...]


def content_of(found: wire.DetailProperty) -> PropertyContent:
    """Return the content of a property. Raises OverflowError for the id of an amenity outside int64."""
    assert found.property_id is not None  # noqa: S101 - the reader of an answer has seen to it
    return PropertyContent(
        found.property_id, found.property_name, tuple(_room(room) for room in found.room_stays or ())
    )


def _room(room: wire.DetailRoomStay) -> RoomContent:
    amenities = None if room.amenities is None else tuple((item.id, item.name) for item in room.amenities)
    if any(number is not None and number not in wire.INT64 for number, _ in amenities or ()):
        raise OverflowError("the id of an amenity is not an int64")
    images = None if room.images is None else tuple(room.images)
    return RoomContent(room.room_id, room.room_name, room.room_description, room.bed_type, amenities, images)


class SegmentContent:
    """The distinct content of a segment, in the order of its first appearance."""

    def __init__(self) -> None:
        self._properties: dict[tuple[int, str | None], int] = {}
        self._rooms: dict[tuple[int, RoomContent], tuple[int, int]] = {}

    def add(self, search_id: int, content: PropertyContent) -> None:
        """Add the content from one search."""
        self._properties.setdefault((content.property_id, content.property_name), search_id)
        for number, room in enumerate(content.rooms):
            self._rooms.setdefault((content.property_id, room), (search_id, number))

    def arrow_tables(self, sweep_id: str) -> dict[str, pa.Table]:
        """Return the rows of the working tables."""
        properties = [
            {"sweep_id": sweep_id, "search_id": search_id, "property_id": property_id, "property_name": name}
            for (property_id, name), search_id in self._properties.items()
        ]
        rooms = [
            {
                "sweep_id": sweep_id,
                "search_id": search_id,
                "room_no": number,
                "property_id": property_id,
                "room_id": room.room_id,
                "room_name": room.room_name,
                "room_description": room.room_description,
                "bed_type": room.bed_type,
                "amenities": None
                if room.amenities is None
                else [{"amenity_id": number, "amenity_name": name} for number, name in room.amenities],
                "images": room.images,
            }
            for (property_id, room), (search_id, number) in self._rooms.items()
        ]
        return {
            PROPERTY_CONTENT.name: pa.Table.from_pylist(properties, schema=PROPERTY_CONTENT.schema),
            ROOM_CONTENT.name: pa.Table.from_pylist(rooms, schema=ROOM_CONTENT.schema),
        }
