"""Folders that `nightaudit pull` has filled: they hold what a lake has published, and can only be read.

The next pull would remove what a command had written there, and no other reader of the lake would have seen it.
"""

import json
import shlex
from pathlib import Path
from typing import Final

from pipeline.domain.errors import InputError

# Marks such a folder and says from where; other folders are never pulled into.
NOTE: Final = "pulled.json"


def pulled_from(folder: Path) -> str | None:
    """Return where a folder was pulled from; None: it was not pulled."""
    try:
        return str(json.loads((folder / NOTE).read_text())["from"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def refuse_pulled(folder: Path) -> None:
    """Raise InputError if a folder was pulled: what is about to be written, or a raw answer, belongs to the lake."""
    if source := pulled_from(folder):
        raise InputError(
            f"{folder} is a copy of what {source} has published: it cannot be changed, and has no raw answers.",
            hint=f"Run the command in that lake: set NIGHTAUDIT_LAKE to it. To update the copy: "
            f"nightaudit pull {shlex.quote(source)} {shlex.quote(str(folder))}",
        )
