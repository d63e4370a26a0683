"""The file `.env` of the current folder: read without waiting or end, and refused if a line of it is unreadable.

The parser skips a line that it cannot read. The setting on it would silently have its default: another rate, or the
sandbox in place of the supplier.
"""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from dotenv.parser import Binding, parse_stream

from pipeline.domain.errors import SettingsError
from pipeline.process.regular_file import open_regular

ENV_FILE: Final = ".env"
# Settings and secrets take a few kilobytes.
_MOST_BYTES: Final = 1_000_000


def names_in_env_file() -> set[str]:
    """Return the names that the file sets. Raises SettingsError if it, or a line of it, cannot be read."""
    bindings = list(_bindings())
    # Not the text of the lines: they may hold secrets.
    if unreadable := [str(binding.original.line + _empty_lines(binding)) for binding in bindings if binding.error]:
        lines = "line" if len(unreadable) == 1 else "lines"
        raise _refused(f"{lines} {', '.join(unreadable)}: not of the form NAME=value, or a quote is not closed")
    return {binding.key for binding in bindings if binding.key}


def value_in_env_file(name: str) -> str | None:
    """Return the value of a name; None if the file does not set it, or cannot be read."""
    try:
        values = {binding.key: binding.value for binding in _bindings()}
    except SettingsError:
        return None
    return values.get(name)


def _bindings() -> Iterator[Binding]:
    file = Path(ENV_FILE)
    # A folder of this name is a Python environment. A link to nowhere is one to settings that are missing.
    if file.is_dir() or not (file.exists() or file.is_symlink()):
        return iter(())
    try:
        with open_regular(file) as opened:
            held = opened.read(_MOST_BYTES + 1)
    except OSError as error:
        raise _refused(error.strerror or str(error)) from None
    if len(held) > _MOST_BYTES:
        raise _refused(f"it is larger than {_MOST_BYTES:,} bytes")
    try:
        return parse_stream(io.StringIO(held.decode("utf-8-sig")))
    except UnicodeDecodeError as error:
        line = held.count(b"\n", 0, error.start) + 1
        raise _refused(f"line {line}: not UTF-8") from None


def _empty_lines(binding: Binding) -> int:
    """Count the empty lines that the parser puts before a line."""
    text = binding.original.string
    return text[: len(text) - len(text.lstrip())].count("\n")


def _refused(why: str) -> SettingsError:
    return SettingsError(
        f"{Path(ENV_FILE).absolute()} cannot be read: {why}.", hint="Correct that file, or move it away."
    )
