"""`nightaudit verify`: which files of the lake are damaged, what that affects, and how to repair it."""

import dataclasses

from rich.text import Text

from pipeline.cli.terminal import Terminal, write_json_lines
from pipeline.domain.errors import CorruptObject
from pipeline.domain.quantities import counted
from pipeline.lake import Lake
from pipeline.night.verify import Verified, verify
from pipeline.process.pandasless import keep_pandas_out
from pipeline.settings import read_settings

_REPAIR = "Repair them as listed, then check every byte: nightaudit verify --deep"


def verify_lake(form: str, *, is_deep: bool) -> None:
    """Check all files of the lake of the settings. Raises CorruptObject (exit code 1) if one is damaged."""
    settings = read_settings()
    lake = Lake(settings.lake, may_be_damaged=True)
    lake.refuse_missing()
    keep_pandas_out()
    found = verify(lake, is_deep=is_deep, max_body_bytes=settings.max_body_bytes)
    if form == "json":
        write_json_lines([dataclasses.asdict(found)])
        refuse_damages(lake, found, _REPAIR)
        return
    console = Terminal(soft_wrap=True, highlight=False)
    for damage in found.damages:
        console.print(Text.assemble(("\u2717 ", "red"), (damage.path, "bold"), f": {damage.what}"))
        console.print(Text(f"    affects {damage.affects}"))
        console.print(Text(f"    repair: {damage.repair}", style="cyan"))
    refuse_damages(lake, found, _REPAIR)
    console.print(Text(reported(found, is_deep=is_deep), style="green"))


def reported(found: Verified, *, is_deep: bool) -> str:
    """Return the result of a check that found no damage."""
    how = "complete and unchanged" if is_deep else "present and of the recorded size"
    old = f"; {found.unrecorded:,} have no checksum (written by an earlier version)" if found.unrecorded else ""
    return f"{counted(found.files, 'file is', 'files are')} {how}{old}."


def refuse_damages(
    lake: Lake, found: Verified, hint: str = "List them with their repairs: nightaudit verify --deep"
) -> None:
    """Raise CorruptObject if there is damage."""
    if found.damages:
        count = counted(len(found.damages), "file is", "files are")
        raise CorruptObject(f"{count} damaged, of {found.files:,} in the lake {lake.root}.", hint=hint)
