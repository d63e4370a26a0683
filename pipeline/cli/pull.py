"""`nightaudit pull`: the published file of another lake, with the files that it reads."""

import shlex
from pathlib import Path

from rich.text import Text

from pipeline.cli.terminal import Terminal
from pipeline.lake import Lake
from pipeline.process.signals import stoppable
from pipeline.publish.pull import LakeFolder, LakeInStore, pull


def pull_lake(lake: str, folder: Path) -> None:
    """Pull from a lake into a folder, and say what was copied."""
    # Any other address than s3:// is refused there; it is not printed, as it may carry keys.
    source = LakeInStore(lake) if "://" in lake else LakeFolder(Lake(lake))
    with stoppable("What was pulled earlier is unchanged.", f"nightaudit pull {shlex.join((lake, str(folder)))}"):
        pulled = pull(source, folder)
    text = Text(f"Copied {pulled.copied:,} files ({pulled.copied_bytes:,} bytes), kept {pulled.kept:,}, ")
    text.append(f"and removed {pulled.removed:,} no longer used.\n")
    text.append(f"Open it with: duckdb -readonly {shlex.quote(str(pulled.file))}")
    Terminal().print(text, soft_wrap=True)
