"""The command `nightaudit`. Each command is a few lines over the pipeline; slow imports happen inside them."""

from __future__ import annotations

import logging
import sys

from pipeline.domain.errors import NightauditError
from pipeline.domain.texts import printable


class _Lines(logging.Formatter):
    """Lines of the log for a terminal: they repeat what a supplier has said."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))


def main() -> None:
    """Run the command line. A user's mistake ends in a message and an exit code, never in a traceback."""
    from pipeline.cli.commands import app
    from pipeline.process.signals import step

    lines = logging.StreamHandler()
    lines.setFormatter(_Lines("%(levelname)s: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[lines])
    try:
        with step(
            "Answers that have landed are kept, and the published file is intact.",
            "the same command; resume a sweep with nightaudit resume",
        ):
            app()
    except NightauditError as error:
        _tell(error)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # The reader of our output has seen enough.
        sys.stderr.close()
        sys.exit(1)


def _tell(error: NightauditError) -> None:
    from rich.text import Text

    from pipeline.cli.terminal import Terminal

    console = Terminal(stderr=True, soft_wrap=True)
    console.print(Text(error.message, style="bold red"))
    if error.kept:
        console.print(Text(error.kept))
    if error.hint:
        console.print(Text(error.hint, style="cyan"))
