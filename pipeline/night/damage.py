"""Damage to files of a lake, collected as it is found: each file once, with what it affects and how to repair it."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pipeline.domain.errors import NightauditError
from pipeline.lake import Lake
from pipeline.night.repair import consequences

T = TypeVar("T")


@dataclass(frozen=True, slots=True, order=True)
class Damage:
    """One damaged or missing file: what is wrong, what that affects, and the command or step that repairs it."""

    path: str
    what: str
    affects: str
    repair: str


class Damages:
    """The damage found so far."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._found: dict[str, Damage] = {}

    def in_order(self) -> tuple[Damage, ...]:
        """Return all damage, by path."""
        return tuple(sorted(self._found.values()))

    def add(self, place: Path, what: str, *, is_missing: bool = False) -> None:
        """Add what is wrong with a file; of several, the first counts."""
        path = self._lake.path_of(place)
        is_missing = is_missing or not place.exists()
        self._found.setdefault(path, Damage(path, what, *consequences(self._lake, path, is_missing=is_missing)))

    def read(self, place: Path, look: Callable[[], T]) -> T | None:
        """Return the result of `look`; None if it fails, which is damage of `place`, or of a file in it."""
        try:
            return look()
        except NightauditError as error:
            path = self._lake.path_of(place)
            if not any(found.startswith(f"{path}/") for found in self._found):
                self.add(place, error.message.splitlines()[0])
            return None
