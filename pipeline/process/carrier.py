"""How a task reaches a machine without the lake's folder, and how its results come back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Brought:
    """What a task returned on a machine that does not see the lake's folder, and the files that it wrote there.

    `files` names the object of each path; None: the task removed that file.
    """

    result: object
    files: Mapping[str, tuple[str, int] | None]


class Parcel(Protocol):
    """What a task needs there."""

    def do(self, work: Callable[[], object]) -> Brought:
        """Do the work there."""


class Carrier(Protocol):
    """Takes tasks there."""

    def parcel(self, args: tuple[object, ...]) -> Parcel:
        """Return what a task with these arguments needs."""

    def land(self, brought: Brought) -> None:
        """Put in place what a task wrote."""
