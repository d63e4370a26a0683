"""Stay and party: when guests sleep, and who they are."""

import re
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property
from typing import Self

from pipeline.domain.texts import quoted

MAX_ADULTS_PER_ROOM = 9
MAX_CHILDREN_PER_ROOM = 8
MAX_ROOMS = 9

_ROOM = re.compile(r"(?P<adults>[1-9])(?:c(?P<ages>\d{1,2}(?:-\d{1,2})*))?")


@dataclass(frozen=True, slots=True, order=True)
class Stay:
    """The nights of a stay. `check_out` is the day of departure and not part of it."""

    check_in: date
    check_out: date

    def __post_init__(self) -> None:
        if self.check_out <= self.check_in:
            raise ValueError(f"check_out {self.check_out} is not after check_in {self.check_in}")

    @classmethod
    def of(cls, check_in: date, nights: int) -> Self:
        """Return the stay of `nights` nights from `check_in`."""
        return cls(check_in, check_in + timedelta(days=nights))

    @property
    def nights(self) -> int:
        """Number of nights, at least 1."""
        return (self.check_out - self.check_in).days


@dataclass(frozen=True, slots=True, order=True)
class Room:
    """The guests of one room."""

    adults: int
    child_ages: tuple[int, ...] = ()

    def __str__(self) -> str:
        ages = "-".join(map(str, self.child_ages))
        return f"{self.adults}c{ages}" if ages else f"{self.adults}"


@dataclass(frozen=True)
class Party:
    """The guests of all rooms of one request; rooms keep their order, ages ascend."""

    rooms: tuple[Room, ...]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `2`, `2c5-9` or `2c5-9+1`. Raises ValueError that says what is wrong with the text."""
        rooms = text.strip().split("+")
        if len(rooms) > MAX_ROOMS:
            raise ValueError(
                f"party {quoted(text)} has {len(rooms)} rooms; at most {MAX_ROOMS} are allowed (error 1012)"
            )
        return cls(tuple(_room(room, text) for room in rooms))

    @cached_property
    def text(self) -> str:
        """The canonical text: equal parties have equal texts."""
        return "+".join(map(str, self.rooms))

    def __str__(self) -> str:
        return self.text


def _room(text: str, party: str) -> Room:
    match = _ROOM.fullmatch(text)
    if not match:
        raise ValueError(
            f"party {quoted(party)}: {quoted(text)} is not a room. Write 1 to {MAX_ADULTS_PER_ROOM} adults, "
            "then the ages of children if there are any: 2, 2c5-9, rooms joined by +: 2c5-9+1"
        )
    ages = tuple(sorted(int(age) for age in (match["ages"] or "").split("-") if age))
    if len(ages) > MAX_CHILDREN_PER_ROOM:
        many = f"{len(ages)} children in a room; at most {MAX_CHILDREN_PER_ROOM} are allowed"
        raise ValueError(f"party {quoted(party)}: {many} (error 1010)")
    if ages and ages[-1] > 17:
        raise ValueError(f"party {quoted(party)}: {ages[-1]} is not the age of a child (0 to 17)")
    return Room(int(match["adults"]), ages)
