"""How a task reaches a machine that cannot see the lake's folder, and how its results come back."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Brought:
    """The result of a task on such a machine, and the files that it wrote there.

    `files` names the object of each path; None: the task removed that file.
    """

    result: object
    files: Mapping[str, tuple[str, int] | None]


class Parcel(Protocol):
    """The files that a task needs."""

    def do(self, work: Callable[[], object]) -> Brought:
        """Do the work with these files."""


class Probe(Protocol):
    """Checks, on a worker, that it can do a part of the work, such as bring files there and back."""

    def __call__(self) -> str:
        """Return why it cannot, as a predicate; empty: it can."""


class Carrier(Protocol):
    """Brings files to tasks and back."""

    def parcel(self, args: tuple[object, ...]) -> Parcel:
        """Return what a task with these arguments needs."""

    def land(self, brought: Brought) -> None:
        """Put in place what a task wrote."""

    def probe(self) -> Probe:
        """Return what a worker checks before it gets work."""
