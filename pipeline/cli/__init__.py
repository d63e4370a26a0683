"""The command `nightaudit`. Each command is a few lines over the pipeline; slow imports happen inside them."""

import logging
import sys

from pipeline.domain.errors import NightauditError
from pipeline.process.log_lines import begin_log, is_log_json

logger = logging.getLogger(__name__)


def main() -> None:
    """Run the command line. A user's mistake ends in a message and an exit code, never in a traceback."""
    from pipeline.process.signals import end_at_once_until_stoppable, said_to_the_end, stoppable

    end_at_once_until_stoppable()
    from pipeline.cli.commands import app

    is_json = is_log_json()
    begin_log(is_json=is_json)
    try:
        with stoppable(
            "Answers that have landed are kept, and the published file is intact.",
            "the same command, or for a sweep: nightaudit resume",
        ):
            app()
    except NightauditError as error:
        with said_to_the_end():
            (_log if is_json else _tell)(error)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # The reader of our output has closed it.
        sys.stderr.close()
        sys.exit(1)
    except Exception:
        if not is_json:
            raise
        logger.exception("Unexpected error.", extra={"exit_code": 1})
        sys.exit(1)


def _log(error: NightauditError) -> None:
    said = {"kept": error.kept, "hint": error.hint, "exit_code": error.exit_code}
    logger.error("%s", error.message, extra={name: value for name, value in said.items() if value})


def _tell(error: NightauditError) -> None:
    from rich.text import Text

    from pipeline.cli.terminal import Terminal

    console = Terminal(stderr=True, soft_wrap=True)
    console.print(Text(error.message, style="bold red"))
    if error.kept:
        console.print(Text(error.kept))
    if error.hint:
        console.print(Text(error.hint, style="cyan"))
