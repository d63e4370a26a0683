"""Whether a finished sweep is usable: how many of its cells failed, and whether it has any usable answer."""

from collections.abc import Mapping
from typing import Any

from pipeline.domain.errors import NothingUsable, TooManyFailures
from pipeline.domain.quantities import counted
from pipeline.domain.search import ANSWERED
from pipeline.lake import Lake
from pipeline.lake.database import connect, view_sweep_files

_WHY = "Check the supplier and the network: nightaudit doctor"


def failed_share(counts: Mapping[str, Any]) -> float:
    """Return the share of a sweep's planned cells that failed. `counts` is its row of the table `sweep`."""
    planned: int = counts["planned"]
    return counts["failed"] / planned if planned else 0.0


def refuse_too_many_failures(counts: Mapping[str, Any], tolerated: float, kept: str, hint: str) -> None:
    """Raise TooManyFailures if more of a sweep's planned cells failed than is tolerated."""
    share = failed_share(counts)
    if share > tolerated:
        raise TooManyFailures(
            f"{share:.1%} of the planned cells failed ({counts['failed']:,}); {tolerated:.1%} are tolerated "
            "(NIGHTAUDIT_TOLERATED_FAILED_SHARE).",
            kept=kept,
            hint=hint,
        )


def refuse_useless(lake: Lake, counts: Mapping[str, Any], kept: str) -> None:
    """Raise NothingUsable if cells were requested and none was answered."""
    asked = counts["planned"] - counts["not_swept"]
    if not asked or any(counts[status] for status in ANSWERED):
        return
    if counts["rejected"] < asked:
        ended = ((status, counts[status]) for status in ("rejected", "failed", "not_swept"))
        said = (f"{counted(n, 'cell')} {status.replace('_', ' ')}" for status, n in ended if n)
        raise NothingUsable(f"No search got a usable answer ({', '.join(said)}).", kept=kept, hint=_WHY)
    with connect(lake) as session:
        view_sweep_files(session, lake, counts["sweep_id"], "sweep_files")
        found = session.execute(
            "SELECT DISTINCT code FROM sweep_files.cell WHERE code IS NOT NULL ORDER BY 1"
        ).fetchall()
    codes = f"code{'s' * (len(found) > 1)} {', '.join(str(code) for (code,) in found)}" if found else ""
    raise NothingUsable(
        f"The supplier refused every search, {f'with {codes}' if codes else 'without a code'}: "
        "the sweep has no usable answer.",
        kept=kept,
        hint=f"See the supplier's document for {codes or 'what it accepts'}; correct the spec or the settings.",
    )
