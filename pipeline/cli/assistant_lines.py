"""The input of `nightaudit mcp`, line by line, until the assistant hangs up or a signal stops the command."""

import io
import os
import select
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, Final

from pipeline.process.signals import STOP_SIGNALS, handlers_kept

# A query has at most a million characters.
MOST_LINE_BYTES: Final = 8_000_000


class AssistantLines(io.RawIOBase):
    """Standard input that ends at a line longer than any message, when the output has no reader, or by `end`.

    However it ends, `end_work` is called: the server waits for running tools, whose answers no one would get.
    """

    def __init__(self, source: BinaryIO, output: BinaryIO, end_work: Callable[[], None]) -> None:
        super().__init__()
        self._source = source
        # The SDK turns the number of the output to another file while it serves.
        self._output = os.dup(output.fileno())
        self.end_work = end_work
        self._ended, self._end = os.pipe()
        self._since_line_end = 0
        self.is_too_long = False

    def readable(self) -> bool:
        """Whether it can be read."""
        return True

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 - what a buffer is has no type before Python 3.12
        """Read available input; nothing after a line that is too long, or after `end`."""
        part = b"" if self.is_too_long or self._is_ended() else os.read(self._source.fileno(), len(buffer))
        _, line_end, rest = part.rpartition(b"\n")
        self._since_line_end = len(rest) + (0 if line_end else self._since_line_end)
        self.is_too_long = self.is_too_long or self._since_line_end > MOST_LINE_BYTES
        buffer[: len(part)] = part
        if not part:
            self.end_work()
        return len(part)

    def end(self) -> None:
        """End the reading thread, which would keep a stopped process alive."""
        os.write(self._end, b"\0")

    def _is_ended(self) -> bool:
        """Wait for input or the end; return whether it is the end."""
        if sys.platform == "win32":
            return False
        waited = select.poll()
        waited.register(self._source.fileno(), select.POLLIN)
        waited.register(self._ended, select.POLLIN)
        # Only that its reader has gone, which is always reported.
        waited.register(self._output, 0)
        return not {self._ended, self._output}.isdisjoint(place for place, _ in waited.poll())


@contextmanager
def hanging_up(lines: AssistantLines) -> Iterator[None]:
    """Let a stop signal end the input, as the assistant does, and raise it once everything is served.

    Raised within an event loop, it would end whichever task is running, with a traceback.
    """
    asked: list[int] = []

    def stop(number: int, _: object) -> None:
        asked.append(number)
        lines.end()
        lines.end_work()

    try:
        with handlers_kept():
            for number in STOP_SIGNALS:
                signal.signal(number, stop)
            yield
    finally:
        lines.end()
    if asked:
        signal.raise_signal(asked[0])
