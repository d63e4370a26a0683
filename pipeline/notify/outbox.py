"""The outbox: messages are sent one by one, and each is recorded once it has arrived.

Each message is recorded in the lake by receiver and way after it was sent: one that did not arrive is sent the next
time, and none twice. A stop signal waits for the message in hand; one that was cut off by a kill may be sent again.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

import msgspec

from pipeline.domain.errors import InputError
from pipeline.lake import Lake
from pipeline.lake.records import read_record
from pipeline.notify.ways import NotDelivered, Tell
from pipeline.process.signals import finished_first

T = TypeVar("T")

_HINT = "Remove the file; open findings are then sent once more."


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A message, and the function that records its arrival."""

    subject: str
    text: str
    remember: Callable[[], None]


class Outbox(Generic[T]):
    """The sent messages, as an object of the lake. The caller holds the lake's writer lock."""

    def __init__(self, lake: Lake, path: str, kind: type[T], empty: T) -> None:
        """Read the outbox. Raises CorruptObject if it cannot be read."""
        self._lake = lake
        self._path = path
        try:
            self.held = read_record(lake, path, kind, kept="Nothing was sent.", hint=_HINT)
        except FileNotFoundError:
            self.held = empty

    def save(self) -> None:
        """Write the outbox."""
        self._lake.put(self._path, msgspec.json.encode(self.held))

    def send(self, tell: Tell, messages: Iterable[Outgoing]) -> str | None:
        """Send messages by one way, in order; return why one did not arrive, or None."""
        try:
            for message in messages:
                with finished_first():
                    tell(message.subject, message.text)
                    message.remember()
                    self.save()
        except InputError as error:
            return error.message.removesuffix(".")
        except NotDelivered as error:
            return str(error)
        except Exception as error:
            # Not the error's text, which may hold the secret part of a notification block's address.
            return type(error).__name__
        return None
