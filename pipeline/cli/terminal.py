"""The terminal: all output passes through here, so that control characters in foreign text have no effect."""

import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from pipeline.cli.query_values import json_text
from pipeline.domain.errors import InputError, LakeFull, NightauditError
from pipeline.domain.texts import printable, shortened
from pipeline.process.regular_file import unusable_name

# Characters of one fact, however long a supplier's texts are.
_FACT = 2_000


def own_command() -> str:
    """Return the command by which the user can call this program again."""
    if shutil.which("nightaudit"):
        return "nightaudit"
    called, module = Path(sys.argv[0]), ""
    if called.name == "__main__.py":
        # Called as a module of Python, whose file is no command.
        called, module = Path(sys.executable), " -m pipeline.cli"
    return f"{called.relative_to(Path.cwd()) if called.is_relative_to(Path.cwd()) else called}{module}"


class Terminal(Console):
    """A console that shows control characters in texts instead of passing them on; its own colours stay."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the segments to print."""
        for segment in super().render(renderable, options):
            text, style, control = segment
            yield segment if control or text.isprintable() else Segment(printable(text), style)

    def facts(self, facts: Iterable[tuple[str, str]], style: str = "bold", before: str = "") -> None:
        """Print labels with their texts, a line each. Texts come from the supplier: no markup, and cut if very long."""
        for label, text in facts:
            self.print(Text.assemble((f"{before}{label}: ", style), shortened(text, _FACT)))


def listing(*heads: str) -> Table:
    """Return a table without lines whose first column, an id to copy, is never wrapped."""
    table = Table(*heads, box=None, pad_edge=False, header_style="bold")
    table.columns[0].no_wrap = True
    return table


def write_json_lines(rows: Iterable[Mapping[str, object]]) -> None:
    """Write one JSON object a line to standard output."""
    sys.stdout.writelines(json_text(row) + "\n" for row in rows)


@contextmanager
def opened(output: Path | None, *, is_binary: bool = False) -> Iterator[IO[Any]]:
    """Give the place to write to: standard output, or a file that takes its name once it is complete."""
    if output is None:
        yield sys.stdout.buffer if is_binary else sys.stdout
        return
    _refuse_pipe(output)
    # Others may read the file at any moment, and pick files by their suffix.
    beside = output.with_name(f".{output.name}.{os.getpid()}.part")
    try:
        with beside.open("wb") if is_binary else beside.open("w", encoding="utf-8", newline="\n") as place:
            yield place
        beside.replace(output)
    except OSError as error:
        raise cannot_write(output, error) from None
    finally:
        beside.unlink(missing_ok=True)


def _refuse_pipe(output: Path) -> None:
    """Raise InputError for a pipe or a device: a complete file takes its name in one step, and would replace it.

    Raises InputError also for a name that no file can have.
    """
    if why := unusable_name(output):
        raise InputError(f"{output} cannot be written: {why}.", hint="Choose another name.")
    if output.exists() and not (output.is_file() or output.is_dir()):
        raise InputError(
            f"{output} cannot be written: it is a pipe or a device, not a file.",
            kept="It is unchanged.",
            hint=f"Omit --output, and redirect the standard output: > {output}",
        )


def cannot_write(output: Path, error: OSError) -> NightauditError:
    """Return the error of an output file that cannot be written."""
    # This import is slow.
    from pipeline.process.failures import is_full, what_helps

    message, kept = f"{output} cannot be written: {error.strerror}.", "An earlier file there is unchanged."
    if is_full(error):
        return LakeFull(message, kept=kept, hint=what_helps(error))
    return InputError(message, kept=kept, hint="Choose a file in a folder that you can write to.")
